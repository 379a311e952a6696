//! Lookaheads that bound the length of a text.

use crate::regular::pattern::{PatternDialect, parse};

fn bounds_of(text: &str) -> Option<(u32, Option<u32>)> {
    let pattern = parse(text, PatternDialect::Ecma, "").expect("a pattern");
    pattern.lengths_aside(256).map(|aside| aside.bounds)
}

#[test]
fn lookaheads_over_the_set_of_the_rest_are_bounds() {
    for (text, bounds) in [
        ("^(?=.{1,253}$)[a-z]+$", (1, Some(253))),
        ("^(?=.{3,})[a-z]+$", (3, None)),
        ("^(?=.{3,9})[a-z]+$", (3, None)),
        ("^(?!.{254,})[a-z]+$", (0, Some(253))),
        ("^(?!.{255})[a-z]+$", (0, Some(254))),
        ("^(?!.{254,}$)[a-z]+$", (0, Some(253))),
        ("^(?=.{2,8}$)(?!.{7})(?=.*b)[a-z]+$", (2, Some(6))),
        (r"^(?=.*b)(?=[\s\S]{2,8}$)[^a]+$", (2, Some(8))),
        ("^.{0,262144}$", (0, Some(262_144))),
        ("^[a-z]{300}$", (300, Some(300))),
        ("^[a-z]{300,}$", (300, None)),
        ("^(?=.{1,40}$)[a-z]{0,300}$", (1, Some(40))),
        (r"^(?=.*[a-z])(?=.*\d).{8,128}$", (8, Some(128))),
        (r"^(?!.*(.)\s)(?=.{9,}).{8,16}$", (9, Some(16))),
    ] {
        assert_eq!(bounds_of(text), Some(bounds), "{text}");
    }
}

#[test]
fn other_lookaheads_stay() {
    for text in [
        "^(?=.{1,253}$)[^a]+$",   // a newline ends what the lookahead reads
        "^(?=.{1,253}$)[a-z]+",   // the rest does not end at `$`
        "(?=.{1,253}$)[a-z]+$",   // nor begin at `^`
        "^a(?=.{1,253}$)[a-z]+$", // a character stands before
        "^(?=[ab]{1,9}$)[a-z]+$", // other characters
        "^(?=(?:ab){1,9}$)[a-z]+$",
        "^(?!.{2,9}$)[a-z]+$", // lengths on both sides
        "^(?!.{0,}$)[a-z]+$",
        "^(?=.{1,9}$)a|b$",
        r"^(?=.{1,9}\s?$)[a-z]+$", // no set of the last character within the dot's
        "^(?=.{1,9}a*$)[a-z]+$",
        "^(?!.{1,9}a?$)[a-z]+$",
        "^[a-z]+$",
        "^[a-z]{3,9}$", // short: an automaton is as good
        "^[a-z]{3,900}",
        "^x[a-z]{3,900}$",
        "^(?:ab){3,900}$",
        "^(?=.*a).{3,15}$", // short
        "^(?=.*a)b.{3,90}$",
        "^(?<=a).{3,90}$", // looks behind
    ] {
        assert_eq!(bounds_of(text), None, "{text}");
    }
}

#[test]
fn one_more_character_may_follow() {
    let aside = |text: &str| {
        let pattern = parse(text, PatternDialect::Ecma, "").expect("a pattern");
        let aside = pattern.lengths_aside(256).expect("a length");
        (aside.bounds, aside.longer.map(|(most, _)| most))
    };
    assert_eq!(aside(r"^(?=.{1,253}\.?$)[a-z.]+$"), ((1, None), Some(253)));
    assert_eq!(aside(r"^(?=.{1,253}\.?$)(?=.{3,90}$)[a-z.]+$"), ((3, Some(90)), Some(253)));
    let short = parse("^[a-z]{3,99}$", PatternDialect::Ecma, "").expect("a pattern");
    assert!(short.lengths_aside(16).is_some() && short.lengths_aside(256).is_none());
}
