//! A bounded rule has the same texts in a network that is made at once, in a linked one, and in a frame.

use crate::budget::{Budget, Interrupt};
use crate::compile::CompileOptions;
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::network::{Network, NetworkPart};
use crate::recognizer::Recognizer;
use crate::syntax;

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
