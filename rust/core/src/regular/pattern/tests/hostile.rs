//! Deep, long and growing patterns: a result or a limit, soon.

use super::*;
use crate::error::Error;

const MANY: usize = 100_000;

fn states(text: &str, search: bool) -> std::result::Result<usize, &'static str> {
    let pattern = parse(text, PatternDialect::Ecma, "").map_err(|_| "syntax")?;
    let budget = budget();
    match pattern.to_dfa(search, &within(&budget)) {
        Ok(language) => Ok(language.num_states()),
        Err(Error::Limit { limit, .. }) => Err(limit),
        Err(_) => Err("another error"),
    }
}

fn nested(open: &str, inner: &str, close: &str, depth: usize) -> String {
    [&open.repeat(depth), inner, &close.repeat(depth)].concat()
}

#[test]
fn deep_groups() {
    assert_eq!(states(&"(".repeat(MANY), true), Err("syntax"));
    assert_eq!(states(&nested("(", "a", ")", MANY), true), Ok(2));
    assert_eq!(states(&nested("(", "a*", ")*", MANY), false), Ok(1));
    assert_eq!(states(&nested("(?:b|", "a", ")", MANY), false), Ok(2));
    assert_eq!(states(&nested("(?:a?", "a", "){2}", 30), false), Err("max_automaton_states"));
    assert_eq!(states(&nested("(?=", "a", ")", MANY), true), Ok(2));
    assert_eq!(states(&nested("(?!", "a", ")", 1_000), false), Ok(1));
    assert!(states(&nested("(?<=", "a", ")", 1_000), true).is_ok());
    assert!(states(&nested("(?=(?<=", "a", "))", 300), true).is_ok());
    let rust = nested("(", "a", ")", MANY);
    assert_eq!(automaton(&rust, PatternDialect::Rust, "", false).num_states(), 2);
}

#[test]
fn long_texts() {
    assert_eq!(states(&"a".repeat(10 * MANY), false), Err("max_automaton_states"));
    assert_eq!(states(&"[".repeat(10 * MANY), false), Err("syntax"));
    assert_eq!(states(&"^".repeat(10 * MANY), false), Ok(1));
    assert_eq!(states(&r"\b".repeat(MANY), true), Ok(2));
    let class = format!("[{}]", r"\p{L}".repeat(MANY));
    assert_eq!(states(&class, false), Ok(2));
}

#[test]
fn many_constructs_of_other_dialects() {
    for part in [r"\A", r"\Q\E", "(?i)", "(?-x)", "(?#a)", "(?x: )", "(?x)#\n"] {
        assert!(states(&part.repeat(MANY), false).is_ok(), "{part}");
        let pattern = parse(&part.repeat(MANY), PatternDialect::Ecma, "").expect(part);
        assert!(pattern.remarks().len() <= 2, "{part}");
    }
    for part in [r"\Q", "(?#", "[[:", "[[:alph", "a{1,", "a{1 ", "[a&&[", "(?P<a>"] {
        assert!(states(&part.repeat(MANY), false).is_err(), "{part}");
    }
    assert_eq!(states(&"(?x)#".repeat(MANY), false), Ok(1));
}

#[test]
fn growing_counts() {
    assert_eq!(states("(((a{1000}){1000}){1000})", true), Err("max_automaton_states"));
    assert_eq!(states("(?:a{1000}){1000}", false), Err("max_automaton_states"));
    assert_eq!(states("^a{0,4096}$", true), Ok(4_097));
    assert_eq!(states(".*a.{20}$", true), Err("max_automaton_states"));
    assert_eq!(states(r"^(?:[a-z]{1,63}\.){1,127}[a-z]{1,63}$", true), Ok(8_192));
    assert_eq!(states("^(a+a+)+b$", true), Ok(4));
    assert_eq!(states(&["^", &"a?".repeat(500), &"a".repeat(500), "$"].concat(), true), Ok(1_001));
}

#[test]
fn a_hundred_thousand_words() {
    let words: Vec<String> = (0..MANY).map(|number| format!("w{:x}", number * 7_919)).collect();
    let budget = Budget::new(&Limits::default(), &Interrupt::default());
    let bounds = Bounds { budget: &budget, max_states: 1_000_000 };
    let pattern = parse(&words.join("|"), PatternDialect::Ecma, "").expect("a pattern");
    let language = pattern.to_dfa(false, &bounds).expect("a trie");
    assert!(words.iter().all(|word| language.accepts(word)));
    assert!(!language.accepts("w") && !language.accepts("w0w0"));
    // Linear: less than a unit of work for every byte and state, a few times.
    assert!(budget.done() < 100 * MANY as u64 * 4, "{}", budget.done());
}

/// The work of a pattern's automaton, or of its refusal.
fn work_of(text: &str, search: bool) -> u64 {
    let budget = Budget::new(&Limits::default(), &Interrupt::default());
    let bounds = Bounds { budget: &budget, max_states: 200_000 };
    let pattern = parse(text, PatternDialect::Python, "").expect("a pattern");
    let _ = pattern.to_dfa(search, &bounds);
    budget.done()
}

#[test]
fn formulas_are_counted_literal_by_literal() {
    // Each of 500 states is a formula of 1 to 500 literals, read for each of four kinds of characters.
    let literals = 500 * 500 / 2;
    let work = work_of("(?:.*(?<!x)y{1,500}z)*", false);
    assert!((4 * literals..24 * literals).contains(&work), "{work}");
    // Here a lookbehind runs along at 1 to 500 positions; a position takes more time than a literal.
    let work = work_of("(?:.*(?<!.y{1,500}z)a)*", false);
    assert!(work > 12 * literals, "{work}");
}

#[test]
fn counts_beside_lookaround_stay_counts() {
    for (pattern, flags, pieces) in [
        ("a.*(?<!x)y{1,9999}z", "", Some(["a.*(?<!x)", "y{1,9999}z", ""])),
        ("y{1,9999}z(?=a).*", "", Some(["", "y{1,9999}z", "(?=a).*"])),
        ("a(?<=a)y{99}(?!b).*", "", Some(["a(?<=a)", "y{99}", "(?!b).*"])),
        ("^a(?<!x)y{99}$", "", Some(["^a(?<!x)", "y{99}", ""])),
        (r"a\by{99}\bz", "", None),
        ("a(?=y)y{99}", "", None),
        ("y{99}(?<=y)a", "", None),
        ("(?:a(?<!x)y{99})*", "", None),
        ("^a(?<!x)^y{99}$", "m", Some(["^a(?<!x)^", "y{99}", "$"])),
        ("a(?<!x)y{9}", "", None),
    ] {
        let parsed = parse(pattern, PatternDialect::Ecma, flags).expect(pattern);
        let budget = budget();
        let bounds = Bounds { budget: &budget, max_states: 20_000 };
        let made = parsed.pieces(false, LARGE_COUNT).map(|made| {
            made.iter().map(|piece| piece.to_dfa(false, &bounds).expect(pattern)).collect()
        });
        let expected: Option<Vec<Dfa>> = pieces.map(|pieces| {
            pieces.iter().map(|text| automaton(text, PatternDialect::Ecma, flags, false)).collect()
        });
        assert_eq!(made, expected, "{pattern}");
    }
    // A search is bound to the text by its anchors.
    let parse = |text| parse(text, PatternDialect::Ecma, "").expect(text);
    assert!(parse("^a(?<!x)y{99}$").pieces(true, LARGE_COUNT).is_some());
    assert!(parse("^a(?<!x)y{99}").pieces(true, LARGE_COUNT).is_none());
    assert!(parse("a(?<!x)y{99}$").pieces(true, LARGE_COUNT).is_none());
}
