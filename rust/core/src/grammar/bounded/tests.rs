//! A bounded rule has the same texts in a network that is made at once, in a linked one, and in a frame.

use crate::budget::{Budget, Interrupt};
use crate::compile::CompileOptions;
use crate::engine::{Accept, Engine, EngineOptions, Matcher, SharedVocabulary, StopRule};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::network::{Network, NetworkPart};
use crate::recognizer::Recognizer;
use crate::syntax;
use crate::vocabulary::Vocabulary;
use std::sync::Arc;

fn bounded(text: &str) -> Grammar {
    let (limits, interrupt) = (Limits::default(), Interrupt::default());
    let grammar = syntax::parse(text, "root", &limits).expect("it is grammar text");
    let budget = Budget::new(&limits, &interrupt);
    grammar.with_bounded_rules(limits.max_automaton_states, &budget).expect("it is regular")
}

/// Texts of `a`, `b` and `!` of up to seven letters.
fn texts(network: &Network) -> Vec<String> {
    let (limits, interrupt) = (Limits::default(), Interrupt::default());
    let mut out = Vec::new();
    let mut words = vec![String::new()];
    for _ in 0..7 {
        let longer =
            words.iter().flat_map(|word| ["a", "b", "!"].map(|letter| format!("{word}{letter}")));
        words = longer.collect();
        out.extend(
            words
                .iter()
                .filter(|word| {
                    let mut recognizer =
                        Recognizer::new(network, &limits, &interrupt).expect("small");
                    word.bytes().all(|byte| recognizer.advance(byte).expect("short"))
                        && recognizer.is_accepting()
                })
                .cloned(),
        );
    }
    out
}

#[test]
fn parts_keep_bounds() {
    let (limits, interrupt) = (Limits::default(), Interrupt::default());
    let work = Budget::new(&limits, &interrupt);
    let options = CompileOptions::default().network;
    for (text, expected) in [
        ("root ::= t \"!\"\nt[max_chars=2] ::= \"a\"+ \"b\"?", vec!["a!", "aa!", "ab!"]),
        ("root ::= t \"!\"\nt[max_chars=1] ::= (\"a\" | \"ab\")*", vec!["!", "a!"]),
        ("root ::= t \"!\"\nt[max_chars=2] ::= \"a\"*", vec!["!", "a!", "aa!"]),
    ] {
        let grammar = bounded(text);
        let made = Network::make(&grammar, &options, &work).expect("small");
        assert_eq!(texts(&made), expected, "{text}");
        let linked = Network::linked(&grammar, &options, &work).expect("small");
        assert_eq!(texts(&linked), expected, "{text}");
        let frame = NetworkPart::of_frame(&grammar, &[], &options, &work).expect("small");
        let linked = frame.link(&limits, &work).expect("small");
        assert_eq!(texts(&linked), expected, "{text}");
    }
}

/// Sequences of up to five tokens that a text may begin with.
fn begins(network: Network, vocabulary: &SharedVocabulary) -> Vec<Vec<u32>> {
    let (options, none) = (EngineOptions::default(), Interrupt::default());
    let engine = Arc::new(Engine::new(Arc::new(network), vocabulary, &options).expect("stacks"));
    let mut out = Vec::new();
    let mut paths = vec![Vec::new()];
    while let Some(path) = paths.pop() {
        for token in 0..vocabulary.len() as u32 {
            let mut matcher = Matcher::new(engine.clone(), StopRule::default()).expect("no stops");
            let longer: Vec<u32> = path.iter().copied().chain([token]).collect();
            let taken = |&token: &u32| matcher.accept_token(token, &none) == Ok(Accept::Taken);
            if longer.iter().all(taken) {
                out.push(longer.clone());
                paths.extend((longer.len() < 5).then_some(longer));
            }
        }
    }
    out.sort();
    out
}

#[test]
fn parts_keep_budgets_of_tokens() {
    let (limits, interrupt) = (Limits::default(), Interrupt::default());
    let work = Budget::new(&limits, &interrupt);
    let options = CompileOptions::default().network;
    let tokens = ["a", "b", "!", "ab", "(a", "("];
    let mut offsets = vec![0];
    offsets.extend(tokens.iter().scan(0, |end, token| {
        *end += token.len() as u32;
        Some(*end)
    }));
    let vocabulary = Vocabulary::new(tokens.concat().into(), offsets, &[], &[]).expect("sound");
    let vocabulary = vocabulary.into();
    for (text, most) in [
        ("root ::= \"(\" t \"!\"\nt[max_tokens=2] ::= [ab]*", 4),
        ("root ::= \"(\" t \"!\"\nt[max_tokens=1] ::= [ab]+", 3),
        // Behind the budget comes the nearest end, which is one token here.
        ("root ::= \"(\" t\nt[max_tokens=1] ::= [ab]* \"!\"", 3),
        ("root ::= \"(\" t\nt[max_tokens=0] ::= [ab]* \"!\"", 2),
    ] {
        let grammar = bounded(text);
        let made = begins(Network::make(&grammar, &options, &work).expect("small"), &vocabulary);
        assert_eq!(made.iter().map(Vec::len).max(), Some(most), "{text}");
        let linked = Network::linked(&grammar, &options, &work).expect("small");
        assert_eq!(begins(linked, &vocabulary), made, "{text}");
        let frame = NetworkPart::of_frame(&grammar, &[], &options, &work).expect("small");
        assert_eq!(begins(frame.link(&limits, &work).expect("small"), &vocabulary), made, "{text}");
    }
}
