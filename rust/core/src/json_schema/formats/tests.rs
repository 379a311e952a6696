//! Tests of formats: texts from the standards, and slow validators written by hand.

mod names;
mod networks;
mod patterns;
mod random;
mod references;
mod tables;
mod times;

use super::*;

/// Calls a function with bounds that nothing in a test reaches.
fn with_bounds<T>(run: impl FnOnce(&Bounds<'_>) -> T) -> T {
    let budget = Budget::new(&Limits::default(), &Interrupt::default());
    run(&Bounds { budget: &budget, max_states: 100_000 })
}

/// The automaton of a format.
fn automaton(name: &str) -> Dfa {
    match with_bounds(|bounds| format(name, bounds)) {
        Ok(Format::Regular(automaton)) => automaton,
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn names_that_have_no_automaton_say_what_they_are() {
    let of = |name| with_bounds(|bounds| format(name, bounds)).expect("within bounds");
    assert!(matches!(of("regex"), Format::ContextFree("regex")));
    for name in ["", "int32", "int64", "float", "double", "color", "binary", "password", "Date"] {
        assert!(matches!(of(name), Format::Annotation), "{name}");
    }
}

#[test]
fn a_format_is_made_once_and_charges_the_same_each_time() {
    let charged = || {
        with_bounds(|bounds| {
            format("ipv6", bounds).expect("within bounds");
            bounds.budget.done()
        })
    };
    assert_eq!(charged(), charged());
    assert_eq!(charged(), automaton("ipv6").num_states() as u64);
}

#[test]
fn automata_stay_small() {
    let most = [
        ("base64", 12),
        ("base64url", 12),
        ("byte", 12),
        ("date", 50),
        ("date-time", 120),
        ("duration", 40),
        ("email", 1_000),
        ("hostname", 1_200),
        ("idn-email", 4_000),
        ("idn-hostname", 2_000),
        ("ipv4", 40),
        ("ipv4interface", 60),
        ("ipv4network", 400),
        ("ipv6", 500),
        ("ipv6interface", 600),
        ("ipv6network", 3_300),
        ("ipvanyaddress", 600),
        ("ipvanyinterface", 700),
        ("ipvanynetwork", 3_800),
        ("iri", 600),
        ("iri-reference", 600),
        ("json-pointer", 3),
        ("name-email", 3_300),
        ("relative-json-pointer", 8),
        ("time", 70),
        ("uri", 600),
        ("uri-reference", 600),
        ("uri-template", 40),
        ("uuid", 37),
        ("uuid1", 37),
        ("uuid3", 37),
        ("uuid4", 37),
        ("uuid5", 37),
        ("uuid6", 37),
        ("uuid7", 37),
        ("uuid8", 37),
    ];
    assert_eq!(most.len(), KNOWN.len());
    for (name, most) in most {
        let states = automaton(name).num_states();
        assert!(states <= most, "{name}: {states} states");
    }
}
