//! Limits and interrupts.

use super::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Texts of `a` and `b` of which the 20th letter from the end is `a`: 2^20 states and more.
fn explosive() -> ScalarNfa {
    let mut nfa = ScalarNfa::new();
    let states: Vec<u32> = (0..=20).map(|_| nfa.add_state()).collect();
    let letters = set_of(&['a', 'b'], false);
    nfa.add_start(states[0]);
    nfa.set_final(states[20]);
    nfa.add_edge(states[0], &letters, states[0]);
    nfa.add_edge(states[0], &set_of(&['a'], false), states[1]);
    for pair in states[1..].windows(2) {
        nfa.add_edge(pair[0], &letters, pair[1]);
    }
    nfa
}

type Operation = fn(&Bounds<'_>, &(Dfa, Dfa)) -> Result<()>;

/// Everything that takes bounds, over two automata of some hundred states.
const OPERATIONS: [(&str, Operation); 12] = [
    ("texts", |bounds, _| {
        let texts: Vec<String> = (0..5000).map(|i| format!("{}", i * i)).collect();
        Dfa::texts(texts.iter().map(String::as_str), bounds).map(drop)
    }),
    ("lengths", |bounds, _| Dfa::lengths(0, Some(u32::MAX), bounds).map(drop)),
    ("from_nfa", |bounds, _| Dfa::from_nfa(&explosive(), bounds).map(drop)),
    ("from_table", |bounds, _| {
        let rows: Vec<_> = (0..5000).map(|q| vec![(0, (q + 1) % 5000)]).collect();
        let finals: Vec<bool> = (0..5000).map(|q| q == 0).collect();
        Dfa::from_table(&[CharSet::single(97)], &rows, &finals, bounds).map(drop)
    }),
    ("intersection", |bounds, (a, b)| a.intersection(b, bounds).map(drop)),
    ("union", |bounds, (a, b)| a.union(b, bounds).map(drop)),
    ("difference", |bounds, (a, b)| a.difference(b, bounds).map(drop)),
    ("is_disjoint_from", |bounds, (a, b)| {
        let odd = Dfa::lengths(1, Some(1), &within(&unbounded()))?;
        a.is_disjoint_from(&b.concatenation(&odd, &within(&unbounded()))?, bounds).map(drop)
    }),
    ("concatenation", |bounds, (a, b)| a.concatenation(b, bounds).map(drop)),
    ("repetition", |bounds, (a, _)| a.repetition(3, Some(u32::MAX), bounds).map(drop)),
    ("unbounded repetition", |bounds, (a, _)| a.repetition(1000, None, bounds).map(drop)),
    ("encode", |bounds, _| {
        let texts: Vec<String> = (0..300).map(|i| format!("{}", i * i)).collect();
        let texts = Dfa::texts(texts.iter().map(String::as_str), &within(&unbounded()))?;
        encode(&texts, Spelling::Json(JsonEscapes::Any), bounds).map(drop)
    }),
];

/// Texts whose length is a multiple of 60, and of 61.
fn operands() -> (Dfa, Dfa) {
    let budget = unbounded();
    let bounds = within(&budget);
    let multiples = |count: u32| {
        let once = Dfa::lengths(count, Some(count), &bounds).expect("within bounds");
        once.repetition(1, None, &bounds).expect("within bounds")
    };
    (multiples(60), multiples(61))
}

#[test]
fn too_many_states_are_refused() {
    let budget = unbounded();
    let bounds = Bounds { budget: &budget, max_states: 100 };
    for (name, operation) in OPERATIONS {
        match operation(&bounds, &operands()) {
            Err(Error::Limit { limit: "max_automaton_states", value: 100, .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    let error = Dfa::lengths(0, Some(100), &bounds).expect_err("one too many").to_string();
    assert!(error.starts_with("limit max_automaton_states = 100 reached: an automaton"), "{error}");
    assert!(Dfa::lengths(0, Some(99), &bounds).is_ok());
}

#[test]
fn too_much_work_is_refused() {
    let operands = operands();
    for (name, operation) in OPERATIONS {
        let limits = Limits { max_network_work: 1000, ..Limits::default() };
        let budget = Budget::new(&limits, &Interrupt::default());
        let bounds = Bounds { budget: &budget, max_states: usize::MAX };
        match operation(&bounds, &operands) {
            Err(Error::Limit { limit: "max_network_work", value: 1000, .. }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn interrupts_are_heard() {
    let flag = Arc::new(AtomicBool::new(true));
    let limits = Limits { max_network_work: u64::MAX, ..Limits::default() };
    let interrupt = Interrupt::default().with_flag(&flag);
    let budget = Budget::new(&limits, &interrupt);
    let bounds = Bounds { budget: &budget, max_states: usize::MAX };
    assert_eq!(Dfa::from_nfa(&explosive(), &bounds), Err(Error::Cancelled));
    assert!(budget.done() < 1 << 16, "{}", budget.done());
    let operands = operands();
    for (name, operation) in OPERATIONS {
        let budget = Budget::new(&limits, &interrupt);
        budget.spend(1 << 14).expect("nothing is looked at before");
        let bounds = Bounds { budget: &budget, max_states: usize::MAX };
        assert_eq!(operation(&bounds, &operands), Err(Error::Cancelled), "{name}");
    }
}
