//! Nested brackets, whose table can be written by hand.

use super::*;
use crate::parser::{ParseTable, Production, StackLanguages, TableParts};
use crate::tests::store_of_words;
use std::sync::{Arc, Mutex};
use tokfold_core::vocabulary::Vocabulary;

const OPEN: u32 = 0;
const CLOSE: u32 = 1;
const ONE: u32 = 2;
const END: u32 = 3;

/// `start: "[" start "]" | "1"`.
fn table() -> ParseTable {
    let shifts = vec![
        vec![(OPEN, 1), (ONE, 2)],
        vec![(OPEN, 1), (ONE, 2)],
        vec![],
        vec![],
        vec![(CLOSE, 5)],
        vec![],
    ];
    let reduced = |production| vec![(CLOSE, production), (END, production)];
    let reductions = vec![vec![], vec![], reduced(1), vec![], vec![], reduced(0)];
    let gotos = vec![vec![(0, 3)], vec![(0, 4)], vec![], vec![], vec![], vec![]];
    let productions = vec![
        Production { rule: 0, symbols: vec![(false, OPEN), (true, 0), (false, CLOSE)] },
        Production { rule: 0, symbols: vec![(false, ONE)] },
    ];
    let parts = TableParts {
        shifts,
        reductions,
        gotos,
        productions,
        terminals: 4,
        rules: 1,
        start: 0,
        end_state: 3,
    };
    ParseTable::new(parts).expect("a table that fits")
}

const TOKENS: [&str; 7] = ["[", "]", "1", "[[", "]]", "1]", "[1]]"];

struct Sets(Vec<Box<[u32]>>);

impl TokenSource for Sets {
    fn with(&self, sets: &[u32], look: &mut dyn FnMut(usize, &[u32])) {
        sets.iter().enumerate().for_each(|(place, &set)| look(place, &self.0[set as usize]));
    }

    fn count(&self) -> u32 {
        self.0.len() as u32
    }
}

fn decoder() -> (Decoder, Vocabulary) {
    let (store, vocabulary) = store_of_words(&["[", "]", "1"], &TOKENS);
    let (shared, own) = store.rows();
    let sequences = (0..store.sequences.len() as u32)
        .map(|sequence| {
            let letters = store.sequences.get(sequence).into_iter();
            letters.map(|letter| store.letters()[letter as usize]).collect()
        })
        .collect();
    let rows = RowTable::new(sequences, &shared, &own.rows, &store.at_once());
    let tokens = Sets(own.token_sets);
    let decoder = Decoder::new(DecoderParts {
        lexer: Arc::new(Mutex::new(store)),
        rows,
        tokens: Box::new(tokens),
        size: TOKENS.len(),
        parser: StackLanguages::new(table(), vec![0; 6], 1_000),
        ignored: vec![false; 3],
        indentation: None,
        scanner_of_state: vec![0; 6],
        memory: Memory { max_starts: 1_000, max_bytes: 1 << 20 },
    });
    (decoder.expect("parts that fit"), vocabulary)
}

fn text(decoder: &Decoder) -> TextMatcher {
    TextMatcher::new(decoder, Arc::from([]), Arc::from([]))
}

fn allowed(decoder: &mut Decoder, text: &TextMatcher) -> Vec<u32> {
    let mut row = [0];
    text.fill(decoder, &mut row).expect("small");
    (0..TOKENS.len() as u32).filter(|token| row[0] >> token & 1 == 1).collect()
}

fn accepted(decoder: &mut Decoder, vocabulary: &Vocabulary, text: &TextMatcher) -> Vec<u32> {
    let taken = |token: &u32| text.clone().accept(decoder, vocabulary, *token).expect("small");
    (0..TOKENS.len() as u32).filter(taken).collect()
}

#[test]
fn masks_are_what_is_accepted() {
    let (mut decoder, vocabulary) = decoder();
    let mut waiting = vec![text(&decoder)];
    let mut looked = 0;
    while let Some(text) = waiting.pop() {
        let mask = allowed(&mut decoder, &text);
        assert_eq!(mask, accepted(&mut decoder, &vocabulary, &text), "{:?}", text.bytes());
        looked += 1;
        for token in mask {
            let mut after = text.clone();
            assert!(after.accept(&mut decoder, &vocabulary, token).expect("small"));
            if after.bytes().len() < 7 {
                waiting.push(after);
            }
        }
    }
    assert!(looked > 20);
}

#[test]
fn a_mutated_class_changes_masks() {
    let (mut decoder, vocabulary) = decoder();
    let mut inside = text(&decoder);
    for token in [3, 2] {
        assert!(inside.accept(&mut decoder, &vocabulary, token).expect("small"));
    }
    let right = allowed(&mut decoder, &inside);
    assert_eq!(right, accepted(&mut decoder, &vocabulary, &inside));
    assert!(decoder.mutate() > 0);
    assert_ne!(allowed(&mut decoder, &inside), right);
}

#[test]
fn deep_stacks_are_read_and_let_go_of_without_recursion() {
    let (mut decoder, vocabulary) = decoder();
    let mut deep = text(&decoder);
    for _ in 0..300_000 {
        assert!(deep.accept(&mut decoder, &vocabulary, 0).expect("small"));
    }
    assert!(allowed(&mut decoder, &deep).contains(&2));
    assert_eq!(deep.places()[0].stack.depth(), 300_001);
    deep.rollback(299_999).expect("there are as many");
    assert_eq!(deep.bytes(), b"[");
    assert!(deep.rollback(2).is_err());
    assert_eq!(deep.len(), 1);
}

#[test]
fn stacks_are_equal_by_what_they_hold() {
    let one = crate::Stack::new(1).with(2).with(3);
    let two = crate::Stack::new(1).with(2).with(3);
    assert_eq!(one, two);
    assert_ne!(one, two.with(3));
    assert_eq!(one.below(2), Some(crate::Stack::new(1)));
    assert_eq!(one.below(3), None);
    assert_eq!(one.states().collect::<Vec<_>>(), [3, 2, 1]);
}
