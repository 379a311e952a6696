//! Sequences of matcher calls on several engines at once, against the Earley recognizer.
//!
//! All engines of a case read the same texts. Each answer must be the recognizer's, on every
//! engine; a call that is refused leaves the matcher as it was; no fork changes another.

use crate::earley::{Place, START, TooMuch};
use crate::engines::{
    MEMO, NETWORKS, Said, Way, accept_bytes, accept_bytes_until, accept_token, fill, fill_until,
    matcher, none, patient, pool, seen, set_cancelled,
};
use crate::input::Input;
use crate::settings::{Few, Setting, fixed};
use std::cell::RefCell;
use std::sync::Arc;
use tokfold_core::engine::{Engine, Matcher, Pool, StopRule};
use tokfold_core::network::Network;

/// Lines of one case at once.
const MOST_LINES: usize = 4;

/// Bytes of the text of a line.
const LONGEST: usize = 32;

/// Calls of one case.
const MOST_CALLS: usize = 24;

/// Columns of the recognizer that are kept from case to case.
const COLUMNS_KEPT: usize = 20_000;

/// A case over one of the fixed settings.
pub fn run(data: &[u8]) {
    thread_local! {
        static SETTINGS: RefCell<Vec<Setting>> = RefCell::new(fixed());
    }
    SETTINGS.with_borrow_mut(|settings| {
        let mut input = Input::new(data);
        let mut shared = None;
        for &calls in plan(&mut input) {
            let number = input.below(settings.len());
            let setting = &mut settings[number];
            setting.tidy(COLUMNS_KEPT);
            // A pool is for one vocabulary.
            let vocabulary = setting.vocabulary.clone();
            let known = shared.take().filter(|(of, _)| vocabulary.is(of));
            let (_, pool) = known.unwrap_or_else(|| (vocabulary.clone(), pool()));
            play(setting, &pool, calls, &mut input);
            shared = Some((vocabulary, pool));
        }
    });
}

/// A case over a random grammar.
pub fn run_random(data: &[u8]) {
    thread_local! {
        static FEW: Few = Few::default();
    }
    let mut input = Input::new(data);
    let pool = pool();
    for &calls in plan(&mut input) {
        if let Some(mut setting) = FEW.with(|few| few.setting(&mut input)) {
            play(&mut setting, &pool, calls, &mut input);
        }
    }
}

/// How many calls there are on each of one or two grammars, which share a pool.
fn plan(input: &mut Input<'_>) -> &'static [usize] {
    match input.one_in(4) {
        true => &[5, MOST_CALLS],
        false => &[MOST_CALLS],
    }
}

/// One accepted step, as the recognizer sees it.
#[derive(Clone, Copy)]
struct Step {
    place: Place,
    /// Bytes of the text up to here.
    text: usize,
    /// Whether a stop token was read.
    is_stop: bool,
}

/// A text on its way, with a matcher on each engine, as long as no limit kept it from reading on.
struct Line {
    matchers: Vec<Option<Matcher>>,
    /// The first is where the line begins.
    steps: Vec<Step>,
    text: Vec<u8>,
}

impl Line {
    fn last(&self) -> Step {
        *self.steps.last().expect("a first step")
    }
}

struct Case<'s> {
    setting: &'s mut Setting,
    ways: Vec<Way>,
    engines: Vec<Arc<Engine>>,
    pool: Arc<Pool>,
    stops: StopRule,
    lines: Vec<Line>,
}

fn play(setting: &mut Setting, pool: &Arc<Pool>, calls: usize, input: &mut Input<'_>) {
    let Some(mut case) = Case::read(setting, pool.clone(), input) else { return };
    // The recognizer gives up where a text is too ambiguous for it: the case is over.
    let _ = case.play(calls, input);
}

impl<'s> Case<'s> {
    fn read(setting: &'s mut Setting, pool: Arc<Pool>, input: &mut Input<'_>) -> Option<Self> {
        let (mut ways, mut engines) = (Vec::new(), Vec::new());
        let mut networks: [Option<Arc<Network>>; NETWORKS] = Default::default();
        for _ in 0..1 + input.below(3) {
            let way = Way::read(input);
            let network = &mut networks[way.network];
            if network.is_none() {
                *network = setting.network(way.network);
            }
            let network = network.as_ref()?;
            engines.push(way.engine(network, &setting.vocabulary, &pool));
            ways.push(way);
        }
        let rule = input.byte();
        let stop_ids = match rule & 6 {
            0 => Some(vec![4, 1, 4]),
            2 => Some(Vec::new()),
            _ => None,
        };
        let stops = StopRule { stop_ids, when_complete: rule & 1 == 1 };
        let matchers = engines.iter().map(|engine| matcher(engine, &stops)).collect();
        let first = Step { place: START, text: 0, is_stop: false };
        let lines = vec![Line { matchers, steps: vec![first], text: Vec::new() }];
        Some(Self { setting, ways, engines, pool, stops, lines })
    }

    fn play(&mut self, calls: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        for _ in 0..calls {
            if input.is_empty() {
                break;
            }
            let line = input.below(self.lines.len());
            match input.below(24) {
                0..=5 => self.accept_allowed(line, input)?,
                6 => self.accept_any(line, input)?,
                7 | 8 => self.accept_text(line, input)?,
                9 | 10 => self.look(line)?,
                11 | 12 => self.rollback(line, input),
                13 | 14 => self.fork(line),
                15 => self.forced(line, input)?,
                16 => self.readable(line, input)?,
                17 => self.restore(line, input),
                18 => self.cancelled(line, input)?,
                19 => self.serve(input),
                20 => self.draft(line, input)?,
                21 => self.prefix(line, input)?,
                22 => self.together()?,
                _ => self.classes(line)?,
            }
            (0..self.lines.len()).for_each(|line| self.check(line));
        }
        (0..self.lines.len()).try_for_each(|line| self.look(line))
    }

    fn accepts(&self, place: Place) -> bool {
        self.setting.earley.accepts(place)
    }

    fn has_ended(&self, step: Step) -> bool {
        step.is_stop || (self.stops.when_complete && self.accepts(step.place))
    }

    fn stop_ids(&self) -> Vec<u32> {
        let mut ids = match &self.stops.stop_ids {
            Some(ids) => ids.clone(),
            None => self.setting.vocabulary.stop_ids().to_vec(),
        };
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// The row of a place, stop tokens included.
    fn truth(&mut self, place: Place) -> Result<Vec<i32>, TooMuch> {
        let mut row = self.setting.mask(place)?.to_vec();
        for id in self.stop_ids() {
            let bit = 1 << (id & 31);
            row[id as usize >> 5] &= !bit;
            row[id as usize >> 5] |= if self.after_token(place, id)?.is_some() { bit } else { 0 };
        }
        Ok(row)
    }

    fn forbids(&self, row: &[i32]) -> bool {
        (0..self.setting.vocabulary.len()).any(|id| row[id >> 5] >> (id & 31) & 1 == 0)
    }

    /// Whether an engine may refuse what takes too much: a bound on what is remembered refuses
    /// nothing.
    fn may_limit(&self, engine: usize) -> bool {
        self.ways[engine].limit.is_some_and(|limit| limit.0 != MEMO)
    }

    fn at(&self, line: usize, engine: usize) -> String {
        let Line { text, steps, .. } = &self.lines[line];
        let text = text.escape_ascii();
        let steps = steps.len() - 1;
        format!("{:?} after {steps} steps, \"{text}\" of {}", self.ways[engine], self.setting.text)
    }

    /// What costs next to nothing to compare.
    fn check(&self, number: usize) {
        let line = &self.lines[number];
        let last = line.last();
        let (accepts, ended) = (self.accepts(last.place), self.has_ended(last));
        for (engine, matcher) in line.matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || self.at(number, engine);
            assert_eq!(matcher.steps(&none()), Ok(line.steps.len() - 1), "steps, {}", at());
            assert_eq!(matcher.text(&none()).as_ref(), Ok(&line.text), "text, {}", at());
            assert_eq!(matcher.is_accepting(&none()), Ok(accepts), "accepting, {}", at());
            assert_eq!(matcher.is_terminated(&none()), Ok(ended), "terminated, {}", at());
        }
    }

    /// Compares masks and states.
    fn look(&mut self, number: usize) -> Result<(), TooMuch> {
        let last = self.lines[number].last();
        let truth = self.truth(last.place)?;
        let forbids = self.forbids(&truth);
        let ended = self.has_ended(last);
        let mut states: Vec<(usize, Vec<u32>)> = Vec::new();
        for (engine, matcher) in self.lines[number].matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || self.at(number, engine);
            match fill(matcher, truth.len()) {
                Said::Done((row, flag)) => {
                    assert!(!ended, "a mask after the end, {}", at());
                    assert_eq!(row, truth, "the mask, {}", at());
                    assert_eq!(flag, forbids, "whether the mask forbids any, {}", at());
                }
                Said::State => assert!(ended, "no mask before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("a mask says {other:?}, {}", at()),
            }
            let mut row = vec![-1; truth.len()];
            match Said::of(matcher.fill_now(&mut row)) {
                Said::Done(Some(flag)) => {
                    assert_eq!((row, flag), (truth.clone(), forbids), "what is there, {}", at());
                }
                Said::Done(None) => {}
                Said::State => assert!(ended, "nothing now before the end, {}", at()),
                other => panic!("a mask now says {other:?}, {}", at()),
            }
            let network = self.ways[engine].network;
            match Said::of(matcher.state(&none())) {
                Said::Done(state) => match states.iter().find(|known| known.0 == network) {
                    Some(known) => assert_eq!(known.1, state, "states differ, {}", at()),
                    None => states.push((network, state)),
                },
                Said::State => {
                    assert!(self.engines[engine].network().is_for_charts(), "a state, {}", at());
                }
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("a state says {other:?}, {}", at()),
            }
        }
        Ok(())
    }

    /// One call on all matchers of a line: `next` is where the recognizer stands if they take it,
    /// `None` where they must refuse, and `call` says whether they did.
    fn step(
        &mut self,
        number: usize,
        next: Option<Step>,
        text: &[u8],
        mut call: impl FnMut(&mut Matcher) -> Said<bool>,
    ) {
        let ended = self.has_ended(self.lines[number].last());
        let next = next.filter(|_| !ended);
        for engine in 0..self.engines.len() {
            let Some(mut matcher) = self.lines[number].matchers[engine].take() else { continue };
            let before = next.is_none().then(|| seen(&matcher));
            // A limit may refuse what the recognizer takes.
            let limited = self.may_limit(engine).then(|| seen(&matcher));
            let said = call(&mut matcher);
            let at = || self.at(number, engine);
            match said {
                Said::Done(true) => assert!(next.is_some(), "{text:?} is taken, {}", at()),
                Said::Done(false) => {
                    assert!(next.is_none() && !ended, "{text:?} is refused, {}", at());
                }
                Said::State => assert!(ended, "a step before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("a step says {other:?}, {}", at()),
            }
            if said != Said::Done(true)
                && let Some(before) = before.or(limited)
            {
                assert_eq!(seen(&matcher), before, "a refused call changes nothing, {}", at());
            }
            // One that did not take what the others took goes on alone no more.
            let is_with_others = next.is_none() || said == Said::Done(true);
            self.lines[number].matchers[engine] = is_with_others.then_some(matcher);
        }
        if let Some(step) = next {
            let line = &mut self.lines[number];
            line.text.extend_from_slice(text);
            line.steps.push(Step { text: line.text.len(), ..step });
        }
    }

    fn token(&mut self, number: usize, id: u32) -> Result<(), TooMuch> {
        let last = self.lines[number].last();
        let vocabulary = self.setting.vocabulary.clone();
        let next = self.after_token(last.place, id)?;
        let text = if self.is_end(last.place, id) { b"" } else { vocabulary.bytes(id) };
        if self.lines[number].text.len() + text.len() <= LONGEST {
            self.step(number, next, text, |matcher| accept_token(matcher, id));
        }
        Ok(())
    }

    fn after_token(&mut self, place: Place, id: u32) -> Result<Option<Step>, TooMuch> {
        if self.is_end(place, id) {
            return Ok(Some(Step { place, text: 0, is_stop: true }));
        }
        let (vocabulary, is_stop) =
            (self.setting.vocabulary.clone(), self.stop_ids().contains(&id));
        let after = self.setting.earley.token(&vocabulary, place, id)?;
        // A stop token is read where it completes the text.
        let after = after.filter(|&after| !is_stop || self.accepts(after));
        Ok(after.map(|place| Step { place, text: 0, is_stop }))
    }

    /// Whether a token ends a text that is complete, and is not read.
    fn is_end(&self, place: Place, id: u32) -> bool {
        self.stop_ids().contains(&id) && self.accepts(place)
    }

    fn accept_allowed(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let row = self.truth(self.lines[number].last().place)?;
        let size = self.setting.vocabulary.len() as u32;
        let allowed: Vec<u32> =
            (0..size).filter(|&id| row[id as usize >> 5] >> (id & 31) & 1 == 1).collect();
        match allowed.is_empty() {
            true => Ok(()),
            false => self.token(number, input.pick(&allowed)),
        }
    }

    fn accept_any(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let size = self.setting.vocabulary.len();
        let id = input.below(size + 2) as u32;
        if (id as usize) < size {
            return self.token(number, id);
        }
        let id = if id as usize == size { id } else { u32::MAX };
        for matcher in self.lines[number].matchers.iter_mut().flatten() {
            let before = seen(matcher);
            assert_eq!(accept_token(matcher, id), Said::Vocabulary);
            assert_eq!(seen(matcher), before, "an unknown token changes nothing");
        }
        Ok(())
    }

    /// Bytes out of tokens, or as they come.
    fn some_bytes(&self, input: &mut Input<'_>) -> Vec<u8> {
        let vocabulary = &self.setting.vocabulary;
        let mut out = Vec::new();
        for _ in 0..input.below(4) {
            match input.below(vocabulary.len() + 8).checked_sub(8) {
                Some(id) => out.extend_from_slice(vocabulary.bytes(id as u32)),
                None => out.push(input.byte()),
            }
        }
        out
    }

    fn accept_text(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let text = self.some_bytes(input);
        let line = &self.lines[number];
        if line.text.len() + text.len() > LONGEST {
            return Ok(());
        }
        let place = self.setting.earley.bytes(line.last().place, &text)?;
        let next = place.map(|place| Step { place, text: 0, is_stop: false });
        self.step(number, next, &text, |matcher| accept_bytes(matcher, &text));
        Ok(())
    }

    fn rollback(&mut self, number: usize, input: &mut Input<'_>) {
        let line = &mut self.lines[number];
        let count = match input.byte() {
            255 => usize::MAX,
            254 => line.steps.len() - 1,
            small => usize::from(small) % (line.steps.len() + 1),
        };
        let is_possible = count < line.steps.len();
        for matcher in line.matchers.iter_mut().flatten() {
            let before = (!is_possible).then(|| seen(matcher));
            match Said::of(matcher.rollback(count, &none())) {
                Said::Done(()) => assert!(is_possible, "{count} steps are taken back"),
                Said::State => {
                    assert!(!is_possible, "{count} steps are not taken back");
                    assert_eq!(Some(seen(matcher)), before, "a refused rollback changes nothing");
                }
                other => panic!("a rollback says {other:?}"),
            }
        }
        if is_possible {
            line.steps.truncate(line.steps.len() - count);
            line.text.truncate(line.last().text);
        }
    }

    fn fork(&mut self, number: usize) {
        if self.lines.len() == MOST_LINES {
            // One goes, and its tables with it where nobody shares them.
            let gone = usize::from(number == 0);
            self.lines.remove(gone);
            return;
        }
        let line = &self.lines[number];
        let forked = line.matchers.iter().map(|matcher| matcher.as_ref().map(Matcher::fork));
        let (steps, text) = (line.steps.clone(), line.text.clone());
        self.lines.push(Line { matchers: forked.collect(), steps, text });
    }

    fn forced(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let limit = input.below(20);
        let last = self.lines[number].last();
        let ended = self.has_ended(last);
        let mut truth = Vec::new();
        let mut place = last.place;
        while truth.len() < limit && !self.accepts(place) && !self.setting.earley.takes_token(place)
        {
            let next = self.setting.earley.next_bytes(place);
            let mut bytes = (0..=255u8).filter(|&byte| next[byte as usize]);
            let (Some(byte), None) = (bytes.next(), bytes.next()) else { break };
            truth.push(byte);
            place = self.setting.earley.byte(place, byte)?.expect("one of the next bytes");
        }
        for (engine, matcher) in self.lines[number].matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || self.at(number, engine);
            match Said::of(matcher.forced_bytes(limit, &none())) {
                Said::Done(forced) => {
                    assert!(!ended, "forced after the end, {}", at());
                    assert_eq!(forced, truth, "forced bytes, {}", at());
                }
                Said::State => assert!(ended, "nothing forced before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("forced bytes say {other:?}, {}", at()),
            }
        }
        Ok(())
    }

    fn next_bytes(&self, place: Place) -> Vec<u8> {
        let next = self.setting.earley.next_bytes(place);
        (0..=255u8).filter(|&byte| next[byte as usize]).collect()
    }

    fn readable(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let text = self.some_bytes(input);
        let last = self.lines[number].last();
        let (mut place, mut count) = (last.place, 0);
        for &byte in &text {
            let Some(next) = self.setting.earley.byte(place, byte)? else { break };
            (place, count) = (next, count + 1);
        }
        let (mut after, here) = (self.next_bytes(place), self.next_bytes(last.place));
        // Nothing comes behind a text that ends by itself.
        let is_whole = count > 0 && count == text.len();
        if is_whole && self.stops.when_complete && self.accepts(place) {
            after.clear();
        }
        let ended = self.has_ended(last);
        for (engine, matcher) in self.lines[number].matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || self.at(number, engine);
            let expected = matcher.look(&none(), |look| look.expected());
            assert_eq!(expected, Ok(Some(here.clone())), "expected, {}", at());
            match Said::of(matcher.readable(&text, &none())) {
                Said::Done(said) => assert_eq!(said, (count, after.clone()), "{text:?}, {}", at()),
                Said::State => assert!(ended, "nothing readable before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("readable bytes say {other:?}, {}", at()),
            }
        }
        Ok(())
    }

    /// States go to matchers of any engine with the same network, and come back the same.
    fn restore(&mut self, number: usize, input: &mut Input<'_>) {
        let known: Vec<(usize, Vec<u32>)> = (0..self.engines.len())
            .filter_map(|engine| {
                let matcher = self.lines[number].matchers[engine].as_ref()?;
                match Said::of(matcher.state(&none())) {
                    Said::Done(state) => Some((engine, state)),
                    _ => None,
                }
            })
            .collect();
        if known.is_empty() {
            return;
        }
        let (from, state) = &known[input.below(known.len())];
        let mut matchers = Vec::with_capacity(self.engines.len());
        for (engine, way) in self.ways.iter().enumerate() {
            let is_same = way.network == self.ways[*from].network;
            let made = is_same.then(|| matcher(&self.engines[engine], &self.stops)).flatten();
            matchers.push(made.and_then(|mut matcher| {
                match Said::of(matcher.restore(state, &none())) {
                    Said::Done(()) => {
                        // What stands in a state with a limit on memory may say so again.
                        match Said::of(matcher.state(&none())) {
                            Said::Done(again) => assert_eq!(&again, state, "a state comes back"),
                            other => panic!("a state that was restored says {other:?}"),
                        }
                        Some(matcher)
                    }
                    Said::Limit if self.may_limit(engine) => None,
                    other => panic!("restore says {other:?}, {}", self.at(number, engine)),
                }
            }));
        }
        let first = Step { text: 0, ..self.lines[number].last() };
        let line = Line { matchers, steps: vec![first], text: Vec::new() };
        match self.lines.len() < MOST_LINES {
            true => self.lines.push(line),
            false => self.lines[number] = line,
        }
    }

    /// Calls of a matcher that is switched off, and calls that are interrupted on the way, do
    /// nothing, or what they do otherwise.
    fn cancelled(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let text = self.some_bytes(input);
        let last = self.lines[number].last();
        let truth = self.truth(last.place)?;
        let ended = self.has_ended(last);
        let id = input.below(self.setting.vocabulary.len()) as u32;
        for matcher in self.lines[number].matchers.iter_mut().flatten() {
            let before = seen(matcher);
            set_cancelled(matcher, true);
            let said = fill(matcher, truth.len());
            assert!(matches!(said, Said::Cancelled | Said::State), "a mask says {said:?}");
            assert_eq!(said == Said::State, ended, "the end comes first");
            if !text.is_empty() {
                let said = accept_bytes(matcher, &text);
                assert_eq!(said, if ended { Said::State } else { Said::Cancelled });
            }
            let mut fork = matcher.fork();
            let said = accept_token(&mut fork, id);
            assert!(said != Said::Cancelled, "a fork has a switch of its own");
            set_cancelled(matcher, false);
            assert_eq!(seen(matcher), before, "a cancelled call changes nothing");
        }
        self.interrupted(number, &text, input.below(8) as u32)
    }

    fn interrupted(&mut self, number: usize, text: &[u8], looks: u32) -> Result<(), TooMuch> {
        let last = self.lines[number].last();
        let (truth, ended) = (self.truth(last.place)?, self.has_ended(last));
        let forbids = self.forbids(&truth);
        let is_read = self.setting.earley.bytes(last.place, text)?.is_some();
        for (engine, matcher) in self.lines[number].matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || format!("{looks} looks, {}", self.at(number, engine));
            let before = seen(matcher);
            match fill_until(matcher, truth.len(), &patient(looks)) {
                Said::Done(said) => assert_eq!(said, (truth.clone(), forbids), "{}", at()),
                Said::Cancelled => assert!(!ended, "the end comes first, {}", at()),
                Said::State => assert!(ended, "no mask before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("an interrupted mask says {other:?}, {}", at()),
            }
            let mut fork = matcher.fork();
            match accept_bytes_until(&mut fork, text, &patient(looks)) {
                Said::Done(said) => assert_eq!(said, is_read, "{text:?}, {}", at()),
                Said::Cancelled => {
                    assert_eq!(seen(&fork), before, "an interrupt changes nothing, {}", at());
                }
                Said::State => assert!(ended, "no step before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("an interrupted step says {other:?}, {}", at()),
            }
            assert_eq!(seen(matcher), before, "what is interrupted changes nothing, {}", at());
            match fill(matcher, truth.len()) {
                Said::Done(said) => assert_eq!(said, (truth.clone(), forbids), "{}", at()),
                Said::State => assert!(ended, "no mask before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("a mask after an interrupt says {other:?}, {}", at()),
            }
        }
        Ok(())
    }

    /// What happens around matchers changes no answer.
    fn serve(&mut self, input: &mut Input<'_>) {
        let engine = &self.engines[input.below(self.engines.len())];
        match input.below(6) {
            0 | 1 => {
                if let Some(classes) = self.setting.classes() {
                    engine.take_classes(classes).expect("classes of the vocabulary");
                }
            }
            2 => engine.forget(),
            3 => {
                let warmed = engine.warm(input.below(6), &none());
                assert!(warmed.is_ok(), "{warmed:?}");
            }
            4 => self.pool.clear(),
            _ => {
                let saved = self.pool.to_bytes(usize::MAX);
                let size = self.setting.vocabulary.len();
                let trie = self.setting.vocabulary.trie();
                if !engine.network().takes_tokens() {
                    let nodes = trie.len() as u32;
                    self.pool.clear();
                    let added = self.pool.add_bytes(&saved, size as u32, size.div_ceil(32), nodes);
                    added.expect("what the pool wrote");
                }
            }
        }
    }

    fn draft(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let last = self.lines[number].last();
        let ended = self.has_ended(last);
        let size = self.setting.vocabulary.len();
        let width = self.setting.words();
        let count = input.below(6);
        let (mut parents, mut tokens) = (Vec::new(), Vec::new());
        let mut places = vec![Some(last.place)];
        let mut allowed = Vec::new();
        for node in 0..count {
            let parent = input.below(node + 1);
            let id = input.below(size) as u32;
            parents.push(parent as i64 - 1);
            tokens.push(id);
            let step = match places[parent] {
                Some(place) => self.after_token(place, id)?,
                None => None,
            };
            allowed.push(step.is_some());
            places.push(step.filter(|&step| !self.has_ended(step)).map(|step| step.place));
        }
        let mut truth = Vec::new();
        for place in &places {
            truth.extend(match place {
                Some(place) => self.truth(*place)?,
                None => vec![0; width],
            });
        }
        for (engine, matcher) in self.lines[number].matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || self.at(number, engine);
            let before = seen(matcher);
            let mut rows = vec![0x5A5A_5A5A; width * (count + 1)];
            match Said::of(matcher.fill_draft(&parents, &tokens, false, &mut rows, &none())) {
                Said::Done(said) => {
                    assert_eq!(said, allowed, "of the draft {parents:?} {tokens:?}, {}", at());
                    assert_eq!(rows, truth, "rows of the draft {parents:?} {tokens:?}, {}", at());
                }
                Said::State => assert!(ended, "no draft before the end, {}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("a draft says {other:?}, {}", at()),
            }
            assert_eq!(seen(matcher), before, "a draft changes nothing, {}", at());
        }
        Ok(())
    }

    fn prefix(&mut self, number: usize, input: &mut Input<'_>) -> Result<(), TooMuch> {
        let size = self.setting.vocabulary.len();
        let tokens: Vec<u32> = (0..input.below(5)).map(|_| input.below(size) as u32).collect();
        let vocabulary = self.setting.vocabulary.clone();
        let Line { steps, text, .. } = &self.lines[number];
        let matchers = vec![None; self.engines.len()];
        let mut line = Line { matchers, steps: steps.clone(), text: text.clone() };
        let mut count = 0;
        for &id in &tokens {
            let last = line.last();
            let next = self.after_token(last.place, id)?;
            let Some(next) = next.filter(|_| !self.has_ended(last)) else { break };
            if !self.is_end(last.place, id) {
                line.text.extend_from_slice(vocabulary.bytes(id));
            }
            line.steps.push(Step { text: line.text.len(), ..next });
            count += 1;
        }
        if line.text.len() > LONGEST {
            return Ok(());
        }
        for engine in 0..self.engines.len() {
            let Some(mut matcher) = self.lines[number].matchers[engine].take() else { continue };
            let before = seen(&matcher);
            let said = Said::of(matcher.accept_prefix(&tokens, &none()));
            let at = || self.at(number, engine);
            let is_with_others = match said {
                Said::Done(said) => {
                    assert_eq!(said, count, "the prefix of {tokens:?}, {}", at());
                    true
                }
                Said::Limit => {
                    assert!(self.may_limit(engine), "a limit, {}", at());
                    assert_eq!(seen(&matcher), before, "a limit changes nothing, {}", at());
                    false
                }
                other => panic!("a prefix says {other:?}, {}", at()),
            };
            line.matchers[engine] = is_with_others.then_some(matcher);
        }
        self.lines[number] = line;
        Ok(())
    }

    /// Masks of all lines in one call.
    fn together(&mut self) -> Result<(), TooMuch> {
        let width = self.setting.words();
        let mut truths = Vec::new();
        for line in 0..self.lines.len() {
            truths.push(self.truth(self.lines[line].last().place)?);
        }
        let mut known = Vec::new();
        for (line, truth) in self.lines.iter().zip(&truths) {
            if !self.has_ended(line.last()) {
                let there = line.matchers.iter().enumerate();
                let there = there.filter_map(|(engine, matcher)| Some((matcher.as_ref()?, engine)));
                known.extend(there.map(|(matcher, engine)| (matcher, engine, truth)));
            }
        }
        let mut rows = vec![vec![0x5A5A_5A5A; width]; known.len()];
        let mut work: Vec<(&Matcher, &mut [i32])> =
            known.iter().zip(&mut rows).map(|(known, row)| (known.0, row.as_mut_slice())).collect();
        let said = Matcher::fill_many(&mut work, &none());
        drop(work);
        assert_eq!(said.len(), known.len(), "a result for each");
        for (((_, engine, truth), row), said) in known.iter().zip(&rows).zip(said) {
            let at = || format!("{:?} of {}", self.ways[*engine], self.setting.text);
            match Said::of(said) {
                Said::Done(flag) => {
                    assert_eq!(&row, truth, "one of many masks, {}", at());
                    assert_eq!(flag, self.forbids(truth), "a flag, {}", at());
                }
                Said::Limit => assert!(self.may_limit(*engine), "a limit, {}", at()),
                other => panic!("one of many masks says {other:?}, {}", at()),
            }
        }
        Ok(())
    }

    /// The row of classes says of each class what the row of tokens says of its members.
    fn classes(&mut self, number: usize) -> Result<(), TooMuch> {
        let last = self.lines[number].last();
        let truth = self.truth(last.place)?;
        let forbids = self.forbids(&truth);
        let ended = self.has_ended(last);
        let is_own =
            self.stop_ids().iter().all(|id| self.setting.vocabulary.stop_ids().contains(id));
        for (engine, matcher) in self.lines[number].matchers.iter().enumerate() {
            let Some(matcher) = matcher else { continue };
            let at = || self.at(number, engine);
            let words = self.engines[engine].class_words();
            let mut row = vec![0x5A5A_5A5A; words.unwrap_or(0)];
            match Said::of(matcher.fill_classes(&mut row, &none())) {
                Said::Done(flag) => {
                    let classes = self.setting.classes().expect("they were taken up");
                    assert!(!ended && is_own, "classes, {}", at());
                    for (id, &class) in classes.class_of.iter().enumerate() {
                        let bit = truth[id >> 5] >> (id & 31) & 1;
                        let said = match usize::try_from(class) {
                            Ok(class) => row[class >> 5] >> (class & 31) & 1,
                            Err(_) => 0,
                        };
                        assert_eq!(said, bit, "token {id} in class {class}, {}", at());
                    }
                    assert_eq!(flag, forbids, "whether classes forbid any, {}", at());
                }
                Said::State => assert!(ended || !is_own || words.is_none(), "{}", at()),
                Said::Limit => assert!(self.may_limit(engine), "a limit, {}", at()),
                other => panic!("classes say {other:?}, {}", at()),
            }
        }
        Ok(())
    }
}
