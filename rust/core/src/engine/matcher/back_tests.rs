//! A matcher whose oldest steps are thinned beside one that keeps all of them.

use super::*;
use crate::budget::{Budget, Interrupt, Observer};
use crate::compile::{CompileOptions, compile};
use crate::engine::history::{Stand, Thinning};
use crate::engine::refuse_chart;
use crate::json_schema::{KeyOrder, SchemaOptions, convert};
use crate::limits::Limits;
use crate::mask::words;
use crate::syntax::parse;
use crate::vocabulary::Vocabulary;
use std::sync::atomic::AtomicUsize;

const ALL: Thinning = Thinning { keep: 1 << 30, every: 1 };
const FEW: Thinning = Thinning { keep: 4, every: 3 };
const STOP: u32 = 0;

fn none() -> Interrupt {
    Interrupt::default()
}

fn texts() -> Vec<Vec<u8>> {
    let mut out: Vec<Vec<u8>> = vec![b"</s>".to_vec()];
    out.extend(b"[]{},:\"abx01-.e\\nu ()".iter().map(|&byte| vec![byte]));
    let more = [
        "\",\"", "ab", "[\"", "\\u00", "\"a", "],[", "ba", "\"b\":", "null", "10", "\"]", "[[",
        "aab",
    ];
    out.extend(more.map(|text| text.as_bytes().to_vec()));
    out
}

fn engine(grammar: &crate::grammar::Grammar) -> Arc<Engine> {
    let (mut blob, mut offsets) = (Vec::new(), vec![0]);
    for text in texts() {
        blob.extend(text);
        offsets.push(blob.len() as u32);
    }
    let vocabulary = Vocabulary::new(blob, offsets, &[STOP], &[]).expect("sound").into();
    compile(grammar, &vocabulary, &CompileOptions::default(), &none()).expect("an engine")
}

fn of_schema(text: &str, key_order: KeyOrder) -> Arc<Engine> {
    let limits = Limits::default();
    let (options, work) = (SchemaOptions { key_order, ..SchemaOptions::default() }, none());
    let budget = Budget::new(&limits, &work);
    engine(&convert(text, &[], &options, &limits, &budget).expect("a schema").grammar)
}

fn of_text(text: &str) -> Arc<Engine> {
    let (limits, work) = (Limits::default(), none());
    let grammar = parse(text, "root", &limits).expect("grammar text");
    let budget = Budget::new(&limits, &work);
    let bounded = grammar.with_bounded_rules(limits.max_automaton_states, &budget);
    engine(&bounded.expect("regular rules"))
}

fn grammars() -> Vec<(&'static str, Arc<Engine>)> {
    let strings = r#"{"type": "array", "items": {"type": "string"}}"#;
    let unique = r#"{"type": "array", "items": {"type": ["string", "number", "null"]}, "uniqueItems": true}"#;
    let inner = r#"{"type": "array", "items": {"type": ["string", "array"], "maxItems": 1}, "uniqueItems": true}"#;
    let nested = format!(r#"{{"type": "array", "items": {inner}, "uniqueItems": true}}"#);
    let many = format!(r#"{{"type": "array", "items": {unique}}}"#);
    let names = ["a", "b", "ab", "ba", "aab", "x", "a0", "b1", "e", "u"];
    let members = names.map(|name| format!(r#""{name}": {{"type": ["string", "number"]}}"#));
    let objects = format!(
        r#"{{"type": "array", "items": {{"type": "object", "properties": {{{}}},
             "required": ["a"], "additionalProperties": false}}}}"#,
        members.join(", ")
    );
    let any = r#"{"type": "array"}"#;
    vec![
        ("strings", of_schema(strings, KeyOrder::Schema)),
        ("unique", of_schema(unique, KeyOrder::Schema)),
        ("nested", of_schema(&nested, KeyOrder::Schema)),
        ("many", of_schema(&many, KeyOrder::Schema)),
        ("objects", of_schema(&objects, KeyOrder::Any)),
        ("any", of_schema(any, KeyOrder::Schema)),
        ("long", of_text(r#"root ::= "\"" [ab\\n]* "\"" [ab]*"#)),
        ("deep", of_text(r#"root ::= ("a" root? "b" | "[" root "]" | "x")+"#)),
        ("many ways", of_text(r#"root ::= root root | "a" | "b" root? "a" | "x""#)),
        (
            "in tokens",
            of_text("root ::= (\"[\" t \"]\" | \"a\" root)*\nt[max_tokens=2] ::= [abx]*"),
        ),
        ("whole", of_text(r#"root ::= ("a" | Token(30) | "b" root "x")*"#)),
    ]
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % most.max(1)
    }
}

fn thinning(matcher: &Matcher, thinning: Thinning) {
    matcher.family.write().set_thinning(thinning);
}

/// A matcher that thins, and one that does not.
struct Pair(Matcher, Matcher);

impl Pair {
    fn new(engine: &Arc<Engine>, stops: &StopRule) -> Self {
        let new = || Matcher::new(engine.clone(), stops.clone()).expect("a matcher");
        Self(new(), new()).thinned()
    }

    fn thinned(self) -> Self {
        thinning(&self.0, FEW);
        thinning(&self.1, ALL);
        self
    }

    fn both<T: PartialEq + std::fmt::Debug>(&mut self, call: impl Fn(&mut Matcher) -> T) -> T {
        let (ours, theirs) = (call(&mut self.0), call(&mut self.1));
        assert_eq!(ours, theirs);
        ours
    }

    /// All that can be seen; the tokens that may follow.
    fn compare(&mut self) -> Vec<u32> {
        self.both(|matcher| matcher.text(&none())).expect("a state");
        self.both(|matcher| matcher.steps(&none())).expect("a state");
        self.both(|matcher| matcher.is_accepting(&none())).expect("a state");
        let look = |look: &Look<'_>| (look.tokens_left(), look.expected());
        self.both(|matcher| matcher.look(&none(), look)).expect("a state");
        let row = self.both(|matcher| {
            let mut row = vec![0; words(texts().len())];
            matcher.fill(&mut row, &none()).map(|_| row)
        });
        let Ok(row) = row else { return Vec::new() };
        (0..texts().len() as u32)
            .filter(|&id| row[id as usize / 32] >> (id % 32) & 1 != 0)
            .collect()
    }

    fn accept(&mut self, random: &mut Random, allowed: &[u32]) {
        let text = |id: u32| texts()[id as usize].clone();
        // Some text goes on for long.
        let open: Vec<u32> = allowed.iter().copied().filter(|&id| id != STOP && id != 2).collect();
        let among = if random.below(60) > 0 && !open.is_empty() { &open } else { allowed };
        let Some(&id) = among.get(random.below(among.len())) else { return };
        match random.below(12) {
            0 => drop(self.both(|matcher| matcher.accept_bytes(&text(id), &none()))),
            1 => drop(self.both(|matcher| matcher.accept_bytes(b"", &none()))),
            2 => drop(self.both(|matcher| matcher.accept_token(3, &none()))),
            3..7 => {
                // One of them may leave it to the other call.
                let (ours, theirs) =
                    (self.0.accept_token_now(id), self.1.accept_token(id, &none()));
                let ours = ours.unwrap_or_else(|| self.0.accept_token(id, &none()));
                assert_eq!(ours, theirs);
            }
            _ => drop(self.both(|matcher| matcher.accept_token(id, &none()))),
        }
    }

    fn fork(&self) -> Self {
        Self(self.0.fork(), self.1.fork())
    }

    /// A matcher that reads the same text anew.
    fn read_anew(&mut self, stops: &StopRule) {
        let mut anew = Matcher::new(self.0.engine.clone(), stops.clone()).expect("a matcher");
        let family = self.1.family.read();
        for (_, read) in family.reads(self.1.at) {
            let accepted = match read {
                Read::Token(id) | Read::Stop(id) => anew.accept_token(id, &none()),
                Read::Bytes(text) => anew.accept_bytes(family.bytes_of(text), &none()),
                Read::Nothing => continue,
            };
            assert_eq!(accepted, Ok(Accept::Taken));
        }
        drop(family);
        if self.0.max_tokens.is_none() && !self.0.is_terminated(&none()).expect("a state") {
            assert_eq!(anew.state(&none()), self.0.state(&none()));
            let mut rows = [vec![0; words(texts().len())], vec![0; words(texts().len())]];
            assert!(anew.fill(&mut rows[0], &none()).is_ok());
            assert!(self.0.fill(&mut rows[1], &none()).is_ok());
            assert_eq!(rows[0], rows[1]);
        }
    }
}

/// How often what may be thinned was met.
#[derive(Debug, Default, PartialEq, Eq)]
struct Met {
    thinned: usize,
    far: usize,
    far_with_forks: usize,
    charts: usize,
    whole_again: usize,
}

/// Whether a text may go over to a chart, had it taken more work.
fn may_chart(matcher: &Matcher) -> bool {
    let family = matcher.family.read();
    let is_on_stacks = matches!(family.step(matcher.at).stand, Stand::Stacks(_));
    let is_free = matcher.max_tokens.is_none() && family.may_chart;
    is_on_stacks && is_free && refuse_chart(&matcher.engine.network).is_ok()
}

fn walk(engine: &Arc<Engine>, seed: u64, met: &mut Met) {
    let (mut random, stops) = (Random(seed), StopRule::default());
    let mut pairs = vec![Pair::new(engine, &stops)];
    let unique = engine.network.only_unique_items();
    let is_counted = engine.network.counts_sets() && unique.is_none_or(|items| !items.nested);
    if seed % 4 == 1 && is_counted && !engine.network.takes_tokens() {
        drop(pairs[0].both(|matcher| matcher.limit_tokens(120, 0, &none())));
    }
    let mut is_restored = false;
    for _ in 0..150 {
        let (chosen, count) = (random.below(pairs.len()), pairs.len());
        let pair = &mut pairs[chosen];
        let allowed = pair.compare();
        let thinned = pair.0.family.read().thinned();
        let was_on_chart = {
            let family = pair.0.family.read();
            family.is_on_chart(family.step(pair.0.at).stand)
        };
        met.thinned += usize::from(thinned > 0);
        met.charts += usize::from(was_on_chart);
        match random.below(40) {
            0 | 1 => {
                let steps = pair.0.steps(&none()).expect("a state");
                let count_back = random.below(steps + 2);
                let is_far = count_back <= steps && (steps - count_back) < thinned as usize;
                met.far += usize::from(is_far);
                met.far_with_forks += usize::from(is_far && !pair.0.is_alone());
                drop(pair.both(|matcher| matcher.rollback(count_back, &none())));
            }
            2 => {
                let steps = pair.0.steps(&none()).expect("a state");
                let few = random.below(8.min(steps + 1));
                let ours = pair.0.rollback_now(few);
                let ours = ours.unwrap_or_else(|| pair.0.rollback(few, &none()));
                assert_eq!(ours, pair.1.rollback(few, &none()));
            }
            3 if count < 4 => {
                let fork = pair.fork();
                pairs.push(fork);
            }
            4 | 5 if count > 1 => drop(pairs.remove(chosen)),
            6 if random.below(3) == 0 => drop(pair.both(|matcher| matcher.reset(&none()))),
            7 => drop(pair.both(|matcher| matcher.state(&none()))),
            8 => drop(pair.both(|matcher| matcher.rebuild(&none()))),
            9 if !is_restored => pair.read_anew(&stops),
            10 if random.below(4) == 0 && !pair.0.is_terminated(&none()).expect("a state") => {
                let state = pair.both(|matcher| matcher.state(&none())).expect("a state");
                let restored = Pair::new(engine, &stops);
                pair.0 = restored.0;
                pair.1 = restored.1;
                drop(pair.both(|matcher| matcher.restore(&state, &none())));
                thinning(&pair.0, FEW);
                thinning(&pair.1, ALL);
                is_restored = true;
            }
            11 => drop(pair.both(|matcher| matcher.forced_bytes(9, &none()))),
            12 => drop(pair.both(|matcher| matcher.readable(b"a\"b,[", &none()))),
            13 if may_chart(&pair.0) => {
                let mut family = pair.0.family.write();
                let stand = pair.0.read_on_a_chart(&mut family, b"", &none());
                assert!(matches!(stand, Ok(Some(Stand::Chart(_)))));
                family.release();
                met.whole_again += usize::from(family.thinned() < thinned);
            }
            _ => pair.accept(&mut random, &allowed),
        }
    }
}

#[test]
fn what_is_thinned_is_as_if_it_were_whole() {
    let seeds: u64 = std::env::var("WALKS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    for (name, engine) in grammars() {
        let mut met = Met::default();
        let start = std::time::Instant::now();
        for seed in 0..seeds {
            walk(&engine, seed, &mut met);
        }
        eprintln!("{name}: {met:?} {:?}", start.elapsed());
        assert!(met.thinned > 0, "{name}");
        assert!(met.far > 0 && met.far_with_forks > 0, "{name}: {met:?}");
        assert!(engine.network.has_sets() || name != "objects");
        let has_charts = refuse_chart(&engine.network).is_ok();
        assert_eq!(met.charts > 0 && met.whole_again > 0, has_charts, "{name}: {met:?}");
    }
}

/// Ends a call after so many looks.
struct Ends(AtomicUsize);

impl Observer for Ends {
    fn go_on(&self) -> bool {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    fn progress(&self, _: usize, _: usize) -> bool {
        self.go_on()
    }
}

fn seen(matcher: &Matcher) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut row = vec![0; words(texts().len())];
    let filled = matcher.fill(&mut row, &none());
    (filled, row, matcher.text(&none()), matcher.steps(&none()), matcher.state(&none()))
}

#[test]
fn a_far_rollback_that_is_ended_changes_nothing() {
    let mut ended = 0;
    for (name, engine) in grammars() {
        let mut matcher = Matcher::new(engine, StopRule::default()).expect("a matcher");
        thinning(&matcher, Thinning { keep: 4, every: 7 });
        let (mut random, mut ids, mut places) = (Random(3), Vec::new(), Vec::new());
        for _ in 0..60 {
            let mut row = vec![0; words(texts().len())];
            matcher.fill(&mut row, &none()).expect("a row");
            let is_allowed = |id: u32| row[id as usize / 32] >> (id % 32) & 1 != 0;
            let allowed: Vec<u32> =
                (1..texts().len() as u32).filter(|&id| id != 2 && is_allowed(id)).collect();
            let Some(&id) = allowed.get(random.below(allowed.len())) else { break };
            places.push(seen(&matcher));
            assert_eq!(matcher.accept_token(id, &none()), Ok(Accept::Taken));
            ids.push(id);
        }
        let before = seen(&matcher);
        for with_fork in [false, true] {
            let thinned = matcher.family.read().thinned();
            for left in 0..thinned as usize {
                let fork = with_fork.then(|| matcher.fork());
                assert!(matcher.rollback_now(ids.len() - left).is_none(), "{name}");
                let looks = (0..).find(|&looks| {
                    let interrupt = none().with_observer(Arc::new(Ends(AtomicUsize::new(looks))));
                    let done = matcher.rollback(ids.len() - left, &interrupt);
                    if done.is_err() {
                        assert_eq!(done, Err(Error::Cancelled));
                        assert_eq!(seen(&matcher), before, "{name} {left}");
                    }
                    done.is_ok()
                });
                ended += looks.unwrap_or_default();
                assert_eq!(seen(&matcher), places[left], "{name} {left}");
                drop(fork);
                for &id in &ids[left..] {
                    assert_eq!(matcher.accept_token(id, &none()), Ok(Accept::Taken));
                }
                assert_eq!(seen(&matcher), before, "{name} {left}");
            }
        }
    }
    assert!(ended > 1_000, "{ended}");
}

#[test]
fn long_texts_are_gone_back_in() {
    let engine = of_text("root ::= [ab]*");
    let mut matcher = Matcher::new(engine.clone(), StopRule::default()).expect("a matcher");
    let (mut random, mut steps) = (Random(11), Vec::new());
    for round in 0..40 {
        let goal = steps.len() + random.below(2_500);
        while steps.len() < goal {
            let step: Vec<u8> = (0..random.below(3)).map(|at| b"ab"[(at + round) % 2]).collect();
            let accepted = match &*step {
                b"a" => matcher.accept_token(8, &none()),
                text => matcher.accept_bytes(text, &none()),
            };
            assert_eq!(accepted, Ok(Accept::Taken));
            steps.push(step);
        }
        let left = random.below(steps.len() + 1);
        // A fork goes back, or the other one does.
        let mut fork = matcher.fork();
        assert_eq!(fork.rollback(steps.len() - left, &none()), Ok(()));
        assert_eq!(fork.steps(&none()), Ok(left));
        assert_eq!(fork.text(&none()), Ok(steps[..left].concat()));
        match round % 3 {
            0 => matcher = fork,
            1 => drop(fork),
            _ => assert_eq!(fork.accept_token(9, &none()), Ok(Accept::Taken)),
        }
        if round % 3 > 0 {
            assert_eq!(matcher.text(&none()), Ok(steps.concat()));
            assert_eq!(matcher.rollback(steps.len() - left, &none()), Ok(()));
        }
        steps.truncate(left);
        assert_eq!(matcher.text(&none()), Ok(steps.concat()));
    }
}

#[test]
fn a_far_rollback_names_the_deadline() {
    let engine = of_text(r#"root ::= "a"*"#);
    let mut matcher = Matcher::new(engine, StopRule::default()).expect("a matcher");
    for _ in 0..2_000 {
        assert_eq!(matcher.accept_bytes(b"a", &none()), Ok(Accept::Taken));
    }
    let over = none().with_deadline("max_accept_milliseconds", Some(0));
    std::thread::sleep(std::time::Duration::from_millis(1));
    let error = Error::Deadline { limit: "max_accept_milliseconds", milliseconds: 0 };
    assert_eq!(matcher.rollback(1_999, &over), Err(error));
    assert_eq!(matcher.steps(&none()), Ok(2_000));
    // A step that was kept, as the first one is, needs no time; nor does a matcher that was cancelled.
    matcher.cancel_switch().store(true, Ordering::Relaxed);
    assert_eq!(matcher.rollback(1_001, &none()), Ok(()));
    assert_eq!(matcher.text(&none()), Ok(vec![b'a'; 999]));
    assert_eq!(matcher.reset(&over), Ok(()));
    assert_eq!(matcher.steps(&none()), Ok(0));
}

#[test]
fn a_text_whose_tokens_are_counted_goes_over_to_no_chart() {
    // A chart does not see where tokens end.
    for (option, expected) in [("", true), ("[max_tokens=2]", false)] {
        let engine = of_text(&format!("root ::= \"(\" t \")\"\nt{option} ::= [ab]*"));
        let matcher = Matcher::new(engine, StopRule::default()).expect("no stops");
        let family = matcher.family.read();
        let before = family.step(matcher.at).stand;
        let too_much = Err(crate::budget::Halt::Work);
        let what = accept::What::Token(STOP + 1);
        assert_eq!(matcher.is_better_on_a_chart(&family, before, what, 0, &too_much), expected);
    }
}
