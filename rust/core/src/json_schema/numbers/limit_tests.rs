//! How large automata are, and what is refused.

use super::tests::{ONE, decimal, made, with_states};
use super::*;
use crate::error::Error;

fn limit(result: Result<Dfa>) -> &'static str {
    match result {
        Err(Error::Limit { limit, .. }) => limit,
        other => panic!("{other:?}"),
    }
}

/// Small sets have small automata: a state more than is needed is paid in every mask.
#[test]
fn automata_are_small() {
    let states = |make: &dyn Fn(&Bounds<'_>) -> Result<Dfa>| made(make).num_states();
    let between = |a: i64, b: i64| {
        states(&move |bounds| integers_between(Some(&a.into()), Some(&b.into()), ONE, bounds))
    };
    assert_eq!(between(0, 1023), 7);
    assert!(between(i64::MIN, i64::MAX) <= 100);
    assert!(states(&|b| multiples(&decimal("64"), b)) <= 32);
    assert!(states(&|b| multiples(&decimal("100000"), b)) <= 12);
    assert!(states(&|b| multiples(&decimal("0.01"), b)) <= 12);
    assert!(states(&|b| multiples(&decimal("0.0000001"), b)) <= 22);
    let long: String = "1234567890".repeat(30);
    let (low, high) = (decimal(&format!("{long}1.{long}")), decimal(&format!("{long}9.{long}")));
    let single = states(&|b| at_least(&low, b));
    assert!(single <= 2 * 301 + 300 + 16, "{single}");
    let both = states(&|b| at_least(&low, b)?.intersection(&at_most(&high, b)?, b));
    assert!(both <= 301 + 2 * 301 + 16, "{both}");
}

#[test]
fn great_moduli_are_refused_by_name() {
    for text in ["123456789", "10007", "0.10007", "1e-30", "9999", "65536", "0.0078125", "1e17"] {
        let result = with_states(20_000, |b| multiples(&decimal(text), b));
        match text {
            "123456789" | "10007" | "0.10007" => {
                let Err(Error::Limit { limit, value, message }) = result else { panic!("{text}") };
                assert_eq!((limit, value), ("max_multiple", 10_000));
                assert!(message.contains(text), "{message}");
            }
            _ => assert!(result.is_ok(), "{text}: {result:?}"),
        }
    }
    for text in ["1e18", "1e1000000", "1e300", "1234567890123456789e-3"] {
        assert_eq!(limit(with_states(20_000, |b| multiples(&decimal(text), b))), "max_multiple");
    }
    for text in ["1e-1000000", "1e-20001", "2e-30000", "1073741824"] {
        let result = with_states(20_000, |b| multiples(&decimal(text), b));
        assert_eq!(limit(result), "max_automaton_states", "{text}");
    }
}

#[test]
fn bounds_and_values_of_many_digits_end_at_a_limit() {
    for text in ["1e1000000", "-1e-1000000", "1.5e20000", "-3e-20000"] {
        let value = decimal(text);
        for make in [at_least, at_most, greater, less] {
            assert_eq!(limit(with_states(20_000, |b| make(&value, b))), "max_automaton_states");
        }
        let result = with_states(20_000, |b| values([&value], b));
        assert_eq!(limit(result), "max_automaton_states");
    }
    let long = "7".repeat(9_000);
    for text in [long.clone(), format!("-0.{long}")] {
        let dfa = made(|b| at_least(&decimal(&text), b));
        assert!(dfa.accepts(&text) && !dfa.accepts("-1"), "{} digits", text.len());
    }
    let many: Vec<Decimal> = (0..100_000i64).map(|i| Decimal::from(i * 7919 - 50_000)).collect();
    let dfa = with_states(1_000_000, |b| values(&many, b)).expect("a large automaton");
    assert!(many.iter().step_by(997).all(|value| dfa.accepts(&value.to_string())));
    assert!(!dfa.accepts("1"));
}

#[test]
fn the_budget_ends_it() {
    let limits = Limits { max_network_work: 100, ..Limits::default() };
    let budget = Budget::new(&limits, &Interrupt::default());
    let bounds = Bounds { budget: &budget, max_states: 1_000 };
    assert_eq!(limit(at_least(&decimal("1e30"), &bounds)), "max_network_work");
}
