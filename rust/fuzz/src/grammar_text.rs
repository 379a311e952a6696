//! Grammar text: what is read prints as itself, a network is made or refused, nothing panics.

use crate::earley::{Earley, START};
use crate::engines::{NETWORKS, network_options, none, small_limits};
use tokfold_core::error::{Error, Position};
use tokfold_core::grammar::{Grammar, WholeTokens};
use tokfold_core::limits::Limits;
use tokfold_core::network::{Network, NetworkOptions};
use tokfold_core::recognizer::Recognizer;
use tokfold_core::syntax::{parse, print, repair_printed, structurally_equal};

/// Ids of the vocabulary over which macros of tokens are read; the first is a stop token.
const IDS: u32 = 20;

/// Bytes that are recognized under each grammar.
const LONGEST: usize = 12;

/// A byte says how the network is made; the rest is the text.
pub fn run(data: &[u8]) {
    let Some((&options, text)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(text);
    let limits = small_limits();
    let grammar = match parse(&text, "root", &limits) {
        Ok(grammar) => grammar,
        Err(error) => return check_error(&error, &text, &limits),
    };
    let printed = print(&grammar);
    let longer = Limits { max_grammar_bytes: usize::MAX, ..limits.clone() };
    match parse(&printed, "root", &longer) {
        Ok(again) => {
            assert!(structurally_equal(&grammar, &again), "{text:?} prints as {printed:?}");
            assert_eq!(print(&again), printed, "what is printed prints as itself");
        }
        Err(error) => panic!("{text:?} prints as {printed:?}, which is refused: {error}"),
    }
    let repaired = repair_printed(&printed);
    assert_eq!(repaired, printed, "nothing that we print needs repair");
    make(&grammar, options, &text, &limits);
}

fn make(grammar: &Grammar, options: u8, text: &str, limits: &Limits) {
    let whole = || WholeTokens { ranges: vec![(1, IDS - 1)], stops: &[] };
    let over_ids = match grammar.with_tokens(whole, IDS as usize) {
        Ok(over_ids) => over_ids,
        Err(error) => return check_error(&error, text, limits),
    };
    let grammar = over_ids.as_ref().unwrap_or(grammar);
    let grammar = match grammar.with_dispatches(limits) {
        Ok(grammar) => grammar,
        Err(error) => return check_error(&error, text, limits),
    };
    let way = usize::from(options) % NETWORKS;
    let prune = options & 16 == 0;
    let usual = network_options(way, limits.clone());
    let options = NetworkOptions {
        prune,
        counters: usual.counters && prune,
        simplify: options & 32 == 0,
        skip_lookahead: options & 64 != 0,
        ..usual
    };
    let network = match Network::new(&grammar, &options) {
        Ok(network) => network,
        Err(error) => return check_error(&error, text, limits),
    };
    assert!(network.is_state(network.start()));
    assert!(network.len() <= limits.max_network_states, "states of {text:?}");
    // What only charts read has no stacks, which the recognizer needs; without pruning, a byte is
    // taken where nothing can follow.
    if prune && !network.is_for_charts() {
        recognize(&grammar, &network, text, limits);
    }
}

/// Reads the grammar's own text, a plausible one, and what may come next, where there is one.
fn recognize(grammar: &Grammar, network: &Network, text: &str, limits: &Limits) {
    let grammar = grammar.without_lookahead();
    let Some(mut earley) = Earley::new(&grammar) else { return };
    let Ok(mut recognizer) = Recognizer::new(network, limits, &none()) else { return };
    let mut place = START;
    for &byte in text.as_bytes().iter().take(LONGEST) {
        let next = earley.next_bytes(place);
        let expected: Vec<u8> = (0..=255u8).filter(|&byte| next[byte as usize]).collect();
        assert_eq!(
            recognizer.expected().expect("no limit"),
            expected,
            "what may come next under {text:?}"
        );
        assert_eq!(recognizer.is_accepting(), earley.accepts(place), "accepting under {text:?}");
        let Some(&other) = expected.get(usize::from(byte) % expected.len().max(1)) else { return };
        for byte in [byte, other] {
            let Ok(truth) = earley.byte(place, byte) else { return };
            match recognizer.advance(byte) {
                Ok(is_read) => assert_eq!(is_read, truth.is_some(), "{byte} under {text:?}"),
                Err(error) => return check_error(&error, text, limits),
            }
            if let Some(next) = truth {
                place = next;
                break;
            }
        }
    }
}

/// An error says what, and names a place in the text or a limit as it is.
fn check_error(error: &Error, text: &str, limits: &Limits) {
    assert!(!error.to_string().is_empty());
    let is_in = |position: &Position| {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let line = text.split('\n').nth((position.line as usize).wrapping_sub(1));
        line.is_some_and(|line| {
            (1..=line.chars().count() + 1).contains(&(position.column as usize))
        })
    };
    match error {
        Error::Syntax { message, position } | Error::Unsupported { message, position, .. } => {
            assert!(!message.is_empty(), "an error of {text:?} says something");
            assert!(is_in(position), "{position:?} is no place in {text:?}: {message}");
        }
        Error::Limit { limit, value, message } => {
            let known = match *limit {
                "max_grammar_bytes" => limits.max_grammar_bytes as u64,
                "max_rules" => limits.max_rules as u64,
                "max_nesting" => limits.max_nesting as u64,
                "max_network_states" => limits.max_network_states as u64,
                "max_network_edges" => limits.max_network_edges as u64,
                "max_network_work" => limits.max_network_work,
                "max_stack_depth" => u64::from(limits.max_stack_depth),
                "max_total_work" => limits.max_total_work,
                "max_automaton_bytes" => limits.max_automaton_bytes as u64,
                other => panic!("{other} is no limit here: {message}"),
            };
            assert_eq!(*value, known, "the limit {limit} of {text:?}");
        }
        other => panic!("{text:?} says {other:?}"),
    }
}
