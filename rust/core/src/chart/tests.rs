//! Charts beside stacks, over all texts up to a length.

use super::{Scratch, Tables, Tree};
use crate::budget::{Interrupt, Meter};
use crate::limits::Limits;
use crate::network::{ClassSet, LeftRecursion, Network, NetworkOptions, contains};
use crate::recognizer::Recognizer;
use crate::syntax::parse;

/// The bytes of some classes.
fn spelled(network: &Network, classes: &ClassSet) -> Vec<u8> {
    (0..=255).filter(|&byte| contains(classes, network.alphabet().class(byte))).collect()
}

/// Walks all texts over a few bytes up to a length: chart and stacks say the same.
fn compare(text: &str, options: &NetworkOptions, bytes: &[u8], length: usize) -> usize {
    let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
    let network = Network::new(&grammar, options).expect("network");
    let loops = NetworkOptions { left_recursion: LeftRecursion::Loops, ..options.clone() };
    let with_loops = Network::new(&grammar, &loops).expect("network");
    let tables = Tables::new(&network, &mut Meter::default(), usize::MAX).expect("no bound");
    let mut scratch = Scratch::new(&tables);
    let mut compared = 0;
    let mut tree = Tree::default();
    let mut work = vec![(Vec::new(), scratch.start(&tables, &mut tree).expect("no bound"))];
    while let Some((read, at)) = work.pop() {
        let limits = Limits::default();
        let mut stacks =
            Recognizer::new(&with_loops, &limits, &Interrupt::default()).expect("a start");
        for &byte in &read {
            assert!(stacks.advance(byte).expect("no limit"), "{text} {read:?}");
        }
        let tip = tree.column(at);
        assert_eq!(
            spelled(&network, tip.next()),
            stacks.expected().expect("no limit"),
            "{text} {read:?}"
        );
        assert_eq!(tip.accepts(), stacks.is_accepting(), "{text} {read:?}");
        compared += 1;
        if read.len() == length {
            continue;
        }
        for &byte in bytes {
            let class = network.alphabet().class(byte);
            let next = scratch.step(&tables, &mut tree, at, class).expect("no limit");
            assert_eq!(
                next.is_some(),
                stacks.expected().expect("no limit").contains(&byte),
                "{text} {read:?}"
            );
            if let Some(next) = next {
                let read = [&read[..], &[byte]].concat();
                work.push((read, next));
            }
        }
    }
    compared
}

const TEXTS: &[&str] = &[
    "root ::= root root | \"a\" | \"b\"",
    "root ::= root root root | root root | \"a\"",
    "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"\"",
    "root ::= x y | y x \"a\"\nx ::= \"a\" x \"b\"? | \"a\"\ny ::= x \"b\" | \"a\" y",
    "root ::= x{2,5} root?\nx ::= \"a\" | \"b\" x? \"a\"",
    "root ::= s\ns ::= n v | s p n\nn ::= \"a\" | \"b\" n | n p n\nv ::= \"a\" n? | v p n\n\
         p ::= \"b\"",
    "root ::= a a a\na ::= \"a\"* b?\nb ::= \"b\" a | \"\"",
    // What a rule does after its own left call, it does by that call.
    "root ::= root \"b\"? | \"a\"",
    "root ::= x \"b\" | root x\nx ::= x \"b\"? | root \"a\" | \"a\"",
    "root ::= x \"b\" root | x\nx ::= x \"b\"? | \"a\" x \"a\" | \"a\"",
    // Which rules may begin at a place depends on what was before it.
    "root ::= \"a\" v | \"b\" w\nv ::= x \"a\" v? | \"ab\" v\nw ::= x \"b\" w? | \"ba\" w\nx ::= \"a\" x | \"b\"",
    // Equal rules whose forms differ, on one cycle, and one of them on none.
    "root ::= x \"b\" | \"a\" root\nx ::= (\"b\" | root | x) | y\ny ::= \"aa\" | x x |",
    "root ::= \"a\" x | \"b\" y\nx ::= x \"b\" | y\ny ::= \"a\" \"b\"*",
    // What rules can read first that begin with each other, and two calls of one rule at one place.
    "root ::= x\nx ::= y \"b\" | \"a\"\ny ::= z \"a\"\nz ::= w \"b\"\nw ::= x \"a\" | \"c\"",
    "root ::= x | \"a\" z\nz ::= x \"c\"\nx ::= \"a\" y | \"aa\" y\ny ::= \"b\" | \"b\" y \"a\"",
    "root ::= x | \"b\" y\nx ::= x x | y \"a\" | \"a\"\ny ::= y y | x \"a\" | \"a\"",
];

#[test]
fn a_chart_says_what_stacks_say() {
    for text in TEXTS {
        for (simplify, counters, inline_budget) in
            [(true, false, 20), (false, true, 0), (false, false, 0), (true, true, 0)]
        {
            for left_recursion in [LeftRecursion::Loops, LeftRecursion::Both, LeftRecursion::Kept] {
                let options = NetworkOptions {
                    simplify,
                    left_recursion,
                    counters,
                    inline_budget,
                    ..NetworkOptions::default()
                };
                assert!(compare(text, &options, b"ab", 8) > 8);
            }
        }
    }
}

#[test]
fn columns_that_are_dropped_leave_no_trace() {
    let mut seed = 1u64;
    let mut random = |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below
    };
    for text in TEXTS {
        let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
        let left_recursion = if random(2) == 0 { LeftRecursion::Both } else { LeftRecursion::Kept };
        let options =
            NetworkOptions { left_recursion, simplify: false, ..NetworkOptions::default() };
        let network = Network::new(&grammar, &options).expect("network");
        let tables = Tables::new(&network, &mut Meter::default(), usize::MAX).expect("no bound");
        let (mut scratch, mut tree) = (Scratch::new(&tables), Tree::default());
        let mut path = vec![scratch.start(&tables, &mut tree).expect("no bound")];
        let mut read: Vec<u8> = Vec::new();
        for _ in 0..400 {
            let tip = path[read.len()];
            let expected = spelled(&network, tree.column(tip).next());
            if expected.is_empty() || read.len() > 90 || random(4) == 0 {
                // Within a few words' reach, and across.
                let kept = random(read.len() + 1);
                read.truncate(kept);
                path.truncate(kept + 1);
                tree.truncate(path[kept]);
            } else {
                let byte = expected[random(expected.len())];
                let class = network.alphabet().class(byte);
                let next = scratch.step(&tables, &mut tree, tip, class).expect("no limit");
                read.push(byte);
                path.push(next.expect("was expected"));
            }
            let mut fresh = (Scratch::new(&tables), Tree::default());
            let mut at = fresh.0.start(&tables, &mut fresh.1).expect("no bound");
            for &byte in &read {
                let class = network.alphabet().class(byte);
                let next = fresh.0.step(&tables, &mut fresh.1, at, class).expect("no limit");
                at = next.expect("was read");
            }
            let (one, other) = (tree.column(path[read.len()]), fresh.1.column(at));
            assert_eq!(one.next(), other.next(), "{text} {read:?}");
            assert_eq!(one.accepts(), other.accepts(), "{text} {read:?}");
            assert!(one.states().eq(other.states()), "{text} {read:?}");
        }
    }
}

#[test]
fn networks_without_loops_are_made_where_loops_do_not_fit() {
    let text =
        "root ::= x y | \"b\" root\nx ::= y \"a\" | x x | \"a\"\ny ::= x \"b\" | y y \"a\" | \"b\"";
    let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
    let make = |left_recursion, max_network_work| {
        let limits = Limits { max_network_work, ..Limits::default() };
        let options = NetworkOptions { left_recursion, limits, ..NetworkOptions::default() };
        Network::new(&grammar, &options)
    };
    let least = |left_recursion| (0..).find(|&work| make(left_recursion, work).is_ok());
    let [both, fitting] = [LeftRecursion::Both, LeftRecursion::Fitting].map(least);
    let (both, fitting) = (both.expect("enough work"), fitting.expect("enough work"));
    assert!(fitting < both, "{fitting} {both}");
    for work in fitting..both + 3 {
        let network = make(LeftRecursion::Fitting, work).expect("one way or the other");
        assert_eq!(network.is_for_charts(), work < both, "{work}");
    }
    let whole = make(LeftRecursion::Both, 80_000_000).expect("within bounds");
    let kept = make(LeftRecursion::Kept, 80_000_000).expect("within bounds");
    assert!(!whole.is_for_charts() && kept.is_for_charts());
    assert_eq!(kept.read_by_charts() as usize, kept.len());
    let (one, other) = (whole.first(whole.start()), kept.first(kept.start()));
    assert_eq!(spelled(&whole, one), spelled(&kept, other));
    let refused = make(LeftRecursion::Both, both - 1).expect_err("too little work").to_string();
    assert!(refused.contains("engine=\"chart\""), "{refused}");
}
