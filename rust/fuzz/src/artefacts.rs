//! What comes from outside as numbers: saved masks, states, classes, automata, lexers and rows.
//! Each is taken up or refused; what is taken up may say anything, but never panics.

use crate::engines::{
    Said, Way, accept_bytes, accept_token, fill, matcher, none, pool, seen, small_limits,
};
use crate::input::Input;
use crate::settings::{Setting, fixed};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use tokfold_core::classes::TokenClasses;
use tokfold_core::engine::{Engine, Matcher, Pool, Representation, StopRule};
use tokfold_core::grammar::{CallEdge, Callee, Described};
use tokfold_core::network::{Network, NetworkOptions};
use tokfold_core::vocabulary::Vocabulary;
use tokfold_mask_store::decode::{RowLimits, RowTable};
use tokfold_mask_store::{
    EndCondition, Joints, LexerLetter, LexerRow, Newline, SavedLexer, Scanners, Store,
    TerminalAutomata, WalkLimits,
};

/// What is the same for all cases.
struct Known {
    settings: Vec<Setting>,
    /// For each setting what a pool wrote after some masks.
    pools: HashMap<usize, Vec<u8>>,
    lexer: SavedLexer,
    rows: SavedRows,
}

#[derive(Clone)]
struct SavedRows {
    letters: Vec<LexerLetter>,
    sequences: (Vec<u32>, Vec<u32>),
    shared: Vec<LexerRow>,
    own: Vec<LexerRow>,
    ends: Vec<[u32; 4]>,
}

/// A case of any of the formats.
pub fn run(data: &[u8]) {
    thread_local! {
        static KNOWN: RefCell<Known> = RefCell::new(Known::new());
    }
    KNOWN.with_borrow_mut(|known| {
        let mut input = Input::new(data);
        match input.below(8) {
            0 => pool_bytes(input),
            1 | 2 => known.pool(&mut input),
            3 | 4 => known.state(&mut input),
            5 => known.classes(&mut input),
            6 => known.automaton(&mut input),
            _ => known.lexer(&mut input),
        }
    });
}

/// Bytes as they come.
fn pool_bytes(mut input: Input<'_>) {
    let numbers = input.number();
    let words = input.number() as usize % 64;
    let nodes = input.number();
    let data = input.rest();
    let pool = Pool::new(10_000, 0);
    let before = pool.counters();
    match pool.add_bytes(data, numbers, words, nodes) {
        Ok(count) => {
            let counters = pool.counters();
            assert!(counters.entries <= count && counters.bytes <= 10_000, "{counters:?}");
            let saved = pool.to_bytes(usize::MAX);
            let again = Pool::new(10_000, 0);
            again.add_bytes(&saved, numbers, words, nodes).expect("what a pool wrote");
            assert_eq!(again.to_bytes(usize::MAX), saved, "what is read is written again");
        }
        Err(_) => assert_eq!(pool.counters(), before, "refused bytes leave nothing"),
    }
}

/// Changes some of the numbers, each of four bytes in a list of them.
fn mutated(numbers: &[u32], input: &mut Input<'_>) -> Vec<u32> {
    let mut out = numbers.to_vec();
    for _ in 0..1 + input.below(4) {
        let place = input.below(out.len() + 1);
        match input.below(5) {
            0 => out.insert(place, input.number()),
            1 if place < out.len() => drop(out.remove(place)),
            2 => out.truncate(place),
            3 if place < out.len() => out[place] = out[input.below(out.len())],
            _ if place < out.len() => out[place] = input.number(),
            _ => {}
        }
    }
    out
}

fn mutated_bytes(bytes: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..1 + input.below(4) {
        let place = input.below(out.len() + 1);
        match input.below(5) {
            0 => out.insert(place, input.byte()),
            1 if place < out.len() => drop(out.remove(place)),
            2 => out.truncate(place),
            3 if place + 4 <= out.len() => {
                out[place..place + 4].copy_from_slice(&input.number().to_le_bytes());
            }
            _ if place < out.len() => out[place] = input.byte(),
            _ => {}
        }
    }
    out
}

/// Calls of a matcher that may stand anywhere: they answer or refuse.
fn use_up(matcher: &mut Matcher, input: &mut Input<'_>) {
    let size = matcher.engine().vocabulary().len();
    let width = size.div_ceil(32);
    for _ in 0..1 + input.below(5) {
        if let Said::Done((row, forbids)) = fill(matcher, width) {
            let is_set = |id: usize| row[id >> 5] >> (id & 31) & 1 == 1;
            assert!(!(size..32 * width).any(is_set), "no bit stands for no token");
            assert_eq!(forbids, !(0..size).all(is_set), "whether the row forbids any");
        }
        let mut row = vec![0; matcher.engine().class_words().unwrap_or(0)];
        let _ = Said::of(matcher.fill_classes(&mut row, &none()));
        let _ = Said::of(matcher.forced_bytes(6, &none()));
        let _ = Said::of(matcher.readable(b"ab", &none()));
        let before = seen(matcher);
        let mut fork = matcher.fork();
        let id = input.below(size) as u32;
        let said = accept_token(&mut fork, id);
        assert_eq!(seen(matcher), before, "a fork changes nothing");
        if said == Said::Done(true) {
            fork.rollback(1, &none()).expect("one step");
            assert_eq!(seen(&fork), before, "a step is taken back");
        }
        let bytes = input.bytes(2);
        match input.byte() & 1 {
            0 => drop(accept_bytes(matcher, bytes)),
            _ => drop(accept_token(matcher, id)),
        }
        let mut rows = vec![0; 3 * width];
        let _ = Said::of(matcher.fill_draft(&[-1, 0], &[id, 4], false, &mut rows, &none()));
    }
}

impl Known {
    fn new() -> Self {
        let (store, rows) = store();
        Self { settings: fixed(), pools: HashMap::new(), lexer: store.saved(), rows }
    }

    fn engine(&self, number: usize, network: usize, pool: &Arc<Pool>) -> Option<Arc<Engine>> {
        let setting = &self.settings[number];
        let representation = Representation::Automatic;
        let way = Way { network, representation, is_pooled: true, limit: None };
        let made = setting.network(network)?;
        Some(way.engine(&made, &setting.vocabulary, pool))
    }

    /// Saved masks with something changed, under keys that are asked for.
    fn pool(&mut self, input: &mut Input<'_>) {
        let number = input.below(self.settings.len());
        let fresh = pool();
        let Some(engine) = self.engine(number, 0, &fresh) else { return };
        let walk = |engine: &Arc<Engine>, check: &mut dyn FnMut(&Matcher)| {
            let Some(mut matcher) = matcher(engine, &StopRule::default()) else { return };
            for id in [7, 4, 2, 25] {
                check(&matcher);
                let _ = accept_token(&mut matcher, id);
            }
            check(&matcher);
        };
        let size = engine.vocabulary().len();
        let width = size.div_ceil(32);
        let saved = self.pools.entry(number).or_insert_with(|| {
            walk(&engine, &mut |matcher| drop(fill(matcher, width)));
            fresh.to_bytes(usize::MAX)
        });
        let data = mutated_bytes(saved, input);
        fresh.clear();
        let nodes = match engine.network().takes_tokens() {
            true => engine.vocabulary().trie_with_ids().len(),
            false => engine.vocabulary().trie().len(),
        };
        let _ = fresh.add_bytes(&data, size as u32, width, nodes as u32);
        engine.forget();
        walk(&engine, &mut |matcher| {
            if let Said::Done((row, _)) = fill(matcher, width) {
                let rest = row.last().copied().unwrap_or(0) as u32;
                assert!(size % 32 == 0 || rest >> (size % 32) == 0, "no bit stands for no token");
            }
        });
    }

    /// A state with something changed, or numbers as they come.
    fn state(&mut self, input: &mut Input<'_>) {
        let number = input.below(self.settings.len());
        let network = input.below(2);
        let fresh = pool();
        let Some(engine) = self.engine(number, network, &fresh) else { return };
        let Some(mut matcher) = matcher(&engine, &StopRule::default()) else { return };
        for _ in 0..input.below(4) {
            let id = input.below(engine.vocabulary().len()) as u32;
            let _ = accept_token(&mut matcher, id);
        }
        let Said::Done(state) = Said::of(matcher.state(&none())) else { return };
        let forged = match input.one_in(4) {
            false => mutated(&state, input),
            true => (0..input.below(12)).map(|_| input.number()).collect(),
        };
        if input.one_in(4)
            && let Some(classes) = self.settings[number].classes()
        {
            engine.take_classes(classes).expect("classes of the vocabulary");
        }
        let before = seen(&matcher);
        match Said::of(matcher.restore(&forged, &none())) {
            Said::Done(()) => {
                assert_eq!(matcher.steps(&none()), Ok(0));
                assert_eq!(matcher.text(&none()), Ok(Vec::new()));
                let made = matcher.state(&none()).expect("a state that was restored");
                let mut again = matcher.fork();
                again.restore(&made, &none()).expect("a state of a matcher");
                assert_eq!(again.state(&none()).as_ref(), Ok(&made), "a state comes back");
                use_up(&mut matcher, input);
            }
            Said::State | Said::Limit => {
                assert_eq!(seen(&matcher), before, "a refused state changes nothing");
            }
            other => panic!("restore says {other:?}"),
        }
    }

    /// Classes that are none of this grammar, or of no vocabulary.
    fn classes(&mut self, input: &mut Input<'_>) {
        let number = input.below(self.settings.len());
        let fresh = pool();
        let Some(engine) = self.engine(number, 0, &fresh) else { return };
        let Some(known) = self.settings[number].classes() else { return };
        let mut classes: TokenClasses = known.clone();
        for _ in 0..1 + input.below(4) {
            match input.below(4) {
                0 => {
                    let place = input.below(classes.class_of.len().max(1));
                    if let Some(class) = classes.class_of.get_mut(place) {
                        *class = input.number() as i32;
                    }
                }
                1 => classes.representatives = mutated(&classes.representatives, input),
                2 => classes.num_stop_classes = input.number() as usize,
                _ => classes.class_of.truncate(input.below(classes.class_of.len() + 1)),
            }
        }
        if engine.take_classes(&classes).is_ok() {
            let Some(mut matcher) = matcher(&engine, &StopRule::default()) else { return };
            use_up(&mut matcher, input);
        } else {
            assert!(!engine.has_classes(), "refused classes leave nothing");
        }
    }

    /// Automata in place of macros.
    fn automaton(&mut self, input: &mut Input<'_>) {
        let text = "root ::= \"a\" TagDispatch() x\nx ::= TagDispatch((\"a\", x)) | \"b\"";
        let limits = small_limits();
        let Ok(grammar) = tokfold_core::syntax::parse(text, "root", &limits) else {
            return self.pool(input);
        };
        let mut meanings = HashMap::new();
        for id in grammar.macros() {
            let mut meaning = Vec::new();
            for _ in 0..1 + input.below(3) {
                let states = 1 + input.below(4) as u32;
                let state = |input: &mut Input<'_>| match input.one_in(32) {
                    true => input.number(),
                    false => input.below(states as usize) as u32,
                };
                let mut described = Described { states, start: state(input), ..Default::default() };
                described.finals = (0..input.below(3)).map(|_| state(input)).collect();
                for _ in 0..input.below(4) {
                    let (from, to) = (state(input), state(input));
                    described.bytes.push((from, input.byte(), input.byte(), to));
                }
                for _ in 0..input.below(3) {
                    let (from, to) = (state(input), state(input));
                    let callee = match input.byte() & 1 {
                        0 => Callee::Rule(input.below(3)),
                        _ => Callee::Automaton(input.below(3)),
                    };
                    let min = input.below(3) as u32;
                    let max = (input.byte() & 1 == 0).then(|| input.below(5) as u32);
                    described.calls.push(CallEdge { from, callee, min, max, to });
                }
                meaning.push(described);
            }
            meanings.insert(id, meaning);
        }
        if let Some(meant) = grammar.with_meanings(&meanings) {
            let counters = input.byte() & 1 == 1;
            let options = NetworkOptions { counters, limits, ..Default::default() };
            let _ = Network::new(&meant, &options);
        }
    }

    /// A lexer or its rows with something changed.
    fn lexer(&mut self, input: &mut Input<'_>) {
        if input.byte() & 1 == 0 {
            return self.rows(input);
        }
        let mut saved = self.lexer.clone();
        let pairs = |flat: Vec<u32>| flat.chunks_exact(2).map(|c| [c[0], c[1]]).collect();
        match input.below(7) {
            0 => {
                let place = input.below(saved.scanner_sets.len());
                saved.scanner_sets[place] ^= 1 << input.below(64);
            }
            1 => saved.questions = mutated(&saved.questions, input),
            2 => saved.question_offsets = mutated(&saved.question_offsets, input),
            3 => {
                let flat = mutated(saved.entries.as_flattened(), input);
                saved.entries = flat.chunks_exact(4).map(|c| [c[0], c[1], c[2], c[3]]).collect();
            }
            4 => saved.entry_offsets = mutated(&saved.entry_offsets, input),
            5 => saved.configurations = pairs(mutated(saved.configurations.as_flattened(), input)),
            _ => saved.states = pairs(mutated(saved.states.as_flattened(), input)),
        }
        if let Ok(mut store) = Store::restored(joints(), &saved) {
            let _ = store.saved();
            let state = input.below(saved.states.len() + 1) as u32;
            let state = if state as usize == saved.states.len() { store.start() } else { state };
            let _ = store.advance(state, b"=a");
            let _ = store.complete(state);
        }
    }

    fn rows(&mut self, input: &mut Input<'_>) {
        let mut rows = self.rows.clone();
        match input.below(6) {
            0 => rows.sequences.0 = mutated(&rows.sequences.0, input),
            1 => rows.sequences.1 = mutated(&rows.sequences.1, input),
            2 => {
                let flat = mutated(rows.ends.as_flattened(), input);
                rows.ends = flat.chunks_exact(4).map(|c| [c[0], c[1], c[2], c[3]]).collect();
            }
            3 => rows.letters.truncate(input.below(rows.letters.len() + 1)),
            which => {
                let list = if which == 4 { &mut rows.shared } else { &mut rows.own };
                let place = input.below(list.len() + 1);
                if let Some(row) = list.get_mut(place) {
                    let field = [
                        &mut row.source,
                        &mut row.terminal,
                        &mut row.scanners,
                        &mut row.sequence,
                        &mut row.tokens,
                    ];
                    let which = input.below(field.len());
                    if let Some(field) = field.into_iter().nth(which) {
                        *field = input.number();
                    }
                }
            }
        }
        let limits = RowLimits { terminals: 4, sets: 8, token_sets: 40 };
        let sequences = (&rows.sequences.0[..], &rows.sequences.1[..]);
        let (shared, own, ends) = (&rows.shared, &rows.own, &rows.ends);
        let _ = RowTable::saved(&rows.letters, sequences, shared, own, ends, limits);
    }
}

/// A lexer of four terminals, one of them under a condition, in two scanners.
fn joints() -> Joints {
    let words: [&[u8]; 4] = [b"==", b"=", b"a", b"\n"];
    let (mut moves, mut ends, mut offsets) = (Vec::new(), Vec::new(), vec![0u32]);
    for word in words {
        let first = ends.len();
        for (place, &byte) in word.iter().enumerate() {
            let mut row = [-1; 256];
            row[usize::from(byte)] = (first + place + 1) as i32;
            moves.extend_from_slice(&row);
            ends.push(0);
        }
        moves.extend_from_slice(&[-1; 256]);
        ends.push(if word == b"a" { 2 } else { 1 });
        offsets.push(ends.len() as u32);
    }
    let conditions = [EndCondition { negated: true, state: 3 }];
    let ignored = vec![false, false, false, true];
    let newline = Some(Newline { terminal: 3, tab: 4 });
    let terminals = TerminalAutomata::new(&moves, &ends, &conditions, &offsets, ignored, newline);
    let members = [vec![0, 1, 2, 3], vec![1, 3]];
    let after = [vec![0], vec![0, 1], vec![1], vec![0, 1]];
    let scanners = Scanners::new(4, &members, &after, &[]).expect("scanners");
    Joints::new(terminals.expect("tables that fit"), scanners, false)
}

fn store() -> (Store, SavedRows) {
    let tokens: [&[u8]; 8] = [b"=", b"==", b"===", b"a", b"a=", b"=a\n", b"\n", b"aa"];
    let mut offsets = vec![0];
    for token in tokens {
        offsets.push(offsets[offsets.len() - 1] + token.len() as u32);
    }
    let vocabulary = Vocabulary::new(tokens.concat(), offsets, &[], &[]).expect("tokens");
    let limits = WalkLimits { max_states: 1_000, max_work: 100_000 };
    let store = Store::new(joints(), &vocabulary, &limits, &none()).expect("a store");
    let (own, _) = store.rows();
    let rows = SavedRows {
        letters: store.letters().to_vec(),
        sequences: store.sequences(),
        shared: own.clone(),
        own,
        ends: store.at_once(),
    };
    (store, rows)
}
