//! Digests do not depend on what is asked first, nor on how many states are described at a time.

use super::identity::Quota;
use super::naming::Identity;
use super::{Network, NetworkOptions};
use crate::limits::Limits;
use crate::syntax;
use std::fmt::Write;

const GRAMMAR: &str = r#"
    root ::= "{" pair ("," pair)* "}" | list | "<" [a-z]{20,40} ">"
    pair ::= text ":" value
    value ::= text | list | root | "-"? [0-9]+
    list ::= "[" (value ("," value)*)? "]" | "(" value ")"
    text ::= "'" [^']* "'"
"#;

fn network(text: &str) -> Network {
    let grammar = syntax::parse(text, "root", &Limits::default()).expect("it is a grammar");
    let options = NetworkOptions { counters: true, simplify: false, ..NetworkOptions::default() };
    Network::new(&grammar, &options).expect("within bounds")
}

/// States that lead to each other, more than are told apart; others behind and before them.
fn a_large_cycle() -> String {
    let mut text = String::from("root ::= \"<\" r0 \">\" | \"[\" t* \"]\"\n");
    for rule in 0..120 {
        let (next, other) = ((rule + 1) % 120, (rule * 7 + 3) % 120);
        writeln!(text, "r{rule} ::= \"x\" r{next} | \"y\" r{other} \"z\" | t").expect("a string");
    }
    text + "t ::= \"(\" [a-z]{20,40} (\",\" t)? \")\"\n"
}

fn states(network: &Network) -> Vec<u32> {
    (0..).take_while(|&state| network.is_state(state)).collect()
}

#[test]
fn digests_do_not_depend_on_what_is_asked_first() {
    let all = network(GRAMMAR);
    let states = states(&all);
    assert!(states.len() > all.len());
    let known: Vec<Identity> = states.iter().map(|&state| all.identity(state)).collect();
    for step in [1, 3, 7, 11] {
        let some = network(GRAMMAR);
        for &state in states.iter().cycle().step_by(step).take(states.len()) {
            let mut few = Quota { most: state as usize % 5, ahead: 0, ..Quota::all() };
            let few = some.find_identity(state, &mut few);
            let found = some.find_identity(state, &mut Quota::all());
            assert_eq!(found, Some(known[state as usize]));
            assert!(few.is_none() || few == found);
        }
    }
}

#[test]
fn states_described_a_few_at_a_time() {
    for text in [GRAMMAR, &a_large_cycle()] {
        let all = network(text);
        let states = states(&all);
        let known: Vec<Identity> = states.iter().map(|&state| all.identity(state)).collect();
        let mut rounds = 0;
        for (step, ahead, in_a_hurry) in [(1, 1, 1_000), (3, 2, 41), (7, 9, 13), (11, 40, 29)] {
            let some = network(text);
            let mut missing = states.len();
            let asked = states.iter().cycle().step_by(step);
            for (turn, &state) in asked.enumerate().take(states.len() * 200) {
                // Now and then one is needed at once, in the middle of what is being described.
                let most = if turn % in_a_hurry == in_a_hurry - 1 { usize::MAX } else { turn % 3 };
                let mut quota = Quota { most, ahead, at_once: most, used: 0 };
                let found = some.find_identity(state, &mut quota);
                assert!(found.is_none_or(|found| found == known[state as usize]), "{state}");
                assert!(found.is_some() || most < usize::MAX);
                assert!(most == usize::MAX || quota.used <= most.max(ahead));
                missing = if found.is_some() { missing - 1 } else { states.len() };
                rounds += usize::from(found.is_none());
                if missing == 0 {
                    break;
                }
            }
            assert_eq!(missing, 0, "all were described in time");
        }
        assert!(rounds > 0);
    }
}

#[test]
fn nothing_is_described_past_the_quota() {
    let network = network(GRAMMAR);
    for _ in 0..3 {
        let mut quota = Quota { most: 10, ahead: 0, at_once: 10, used: 0 };
        assert_eq!(network.find_identity(network.start(), &mut quota), None);
        assert_eq!(quota.used, 0);
    }
}
