//! Small lexers whose rows can be written by hand.

use super::*;
use tokfold_core::vocabulary::Vocabulary;

/// Automata of words: one terminal each.
fn words(words: &[&str]) -> TerminalAutomata {
    let (mut moves, mut ends, mut offsets) = (Vec::new(), Vec::new(), vec![0u32]);
    for word in words {
        let first = ends.len();
        for (i, byte) in word.bytes().enumerate() {
            let mut row = [-1; 256];
            row[usize::from(byte)] = (first + i + 1) as i32;
            moves.extend_from_slice(&row);
            ends.push(0);
        }
        moves.extend_from_slice(&[-1; 256]);
        ends.push(1);
        offsets.push(ends.len() as u32);
    }
    let ignored = words.iter().map(|&word| word == " ").collect();
    TerminalAutomata::new(&moves, &ends, &[], &offsets, ignored, None).expect("tables that fit")
}

fn vocabulary(tokens: &[&str]) -> Vocabulary {
    let blob = tokens.concat().into_bytes();
    let mut offsets = vec![0];
    for token in tokens {
        offsets.push(offsets[offsets.len() - 1] + token.len() as u32);
    }
    Vocabulary::new(blob, offsets, &[], &[]).expect("tokens")
}

fn store(terminals: &[&str], scanners: &[Vec<u32>], tokens: &[&str]) -> Store {
    let count = terminals.len();
    let anywhere: Vec<u32> = (0..scanners.len() as u32).collect();
    let after = vec![anywhere; count];
    let scanners = Scanners::new(count, scanners, &after, &[]).expect("scanners");
    let joints = Joints::new(words(terminals), scanners, false);
    let limits = WalkLimits { max_states: 1000, max_work: 100_000 };
    Store::new(joints, &vocabulary(tokens), &limits, &tokfold_core::budget::Interrupt::default())
        .expect("small")
}

/// The store of words in one scanner, with its vocabulary.
pub(super) fn store_of_words(words: &[&str], tokens: &[&str]) -> (Store, Vocabulary) {
    let all = (0..words.len() as u32).collect();
    (store(words, &[all], tokens), vocabulary(tokens))
}

fn terminals(way: &Stepped) -> Vec<u32> {
    way.letters.iter().map(|letter| letter.terminal).collect()
}

#[test]
fn the_longest_match_of_the_first_terminal_wins() {
    let mut made = store(&["==", "="], &[vec![0, 1]], &["=", "==", "==="]);
    let ways = made.advance(made.start(), b"===");
    let found: Vec<Vec<u32>> = ways.iter().map(terminals).collect();
    // What is third may still become `==`.
    assert_eq!(found, [vec![0, 0], vec![0, 1]]);
}

#[test]
fn what_a_scanner_does_not_look_for_does_not_take_part() {
    let mut made = store(&["==", "="], &[vec![0, 1], vec![1]], &["=", "=="]);
    let ways = made.advance(made.start(), b"==");
    let sets = made.scanner_sets().to_vec();
    let split = ways.iter().find(|way| way.letters.len() == 2).expect("two of one");
    assert_eq!(*sets[split.letters[0].scanners as usize], [0b10]);
}

#[test]
fn ignored_terminals_leave_no_letter() {
    let mut made = store(&["a", " "], &[vec![0, 1]], &["a", " ", "a a "]);
    let ways = made.advance(made.start(), b"a a ");
    assert_eq!(ways.iter().map(terminals).collect::<Vec<_>>(), [vec![0, 0]]);
    let state = ways[0].state.expect("a token leads there");
    assert_eq!(made.complete(state), ALL);
}

#[test]
fn a_bound_is_an_error() {
    let scanners = Scanners::new(1, &[vec![0]], &[vec![0]], &[]).expect("scanners");
    let joints = Joints::new(words(&["abc"]), scanners, false);
    let limits = WalkLimits { max_states: 1, max_work: 100_000 };
    let made = Store::new(
        joints,
        &vocabulary(&["a", "ab"]),
        &limits,
        &tokfold_core::budget::Interrupt::default(),
    );
    assert!(made.is_err());
}

#[test]
fn tables_that_do_not_fit_are_refused() {
    assert!(TerminalAutomata::new(&[0; 255], &[1], &[], &[0, 1], vec![false], None).is_err());
    assert!(TerminalAutomata::new(&[7; 256], &[1], &[], &[0, 1], vec![false], None).is_err());
    assert!(TerminalAutomata::new(&[-1; 256], &[2], &[], &[0, 1], vec![false], None).is_err());
    assert!(Scanners::new(1, &[vec![1]], &[vec![0]], &[]).is_err());
    assert!(Scanners::new(1, &[vec![0]], &[vec![1]], &[]).is_err());
}
