//! Lookahead that is implied, and that is not. Random grammars against all their texts: tests/grammar.

use super::Places;
use crate::budget::{Budget, Interrupt, Ticks};
use crate::ids::RuleId;
use crate::limits::Limits;
use crate::syntax;

/// Whether all lookahead of a grammar is said to be implied.
fn is_implied(text: &str) -> bool {
    let limits = Limits::default();
    let grammar = syntax::parse(text, "root", &limits).expect("the text is a grammar");
    let work = Budget::new(&limits, &Interrupt::default());
    let places = Places::new(&grammar, |_| false, &Ticks::new(&work)).expect("it is small");
    let rules = (0..grammar.rules().len()).map(RuleId::new);
    rules
        .map(|rule| places.imply(rule, &work).expect("it is small"))
        .fold(true, |all, one| all & one)
}

#[test]
fn what_is_implied() {
    let cases = [
        ("root ::= a \"b\"\na ::= \"x\" (= \"b\")", true),
        ("root ::= a \"b\"\na ::= \"x\" (= \"c\")", false),
        ("root ::= a\na ::= \"x\" (= \"c\")", true), // nothing follows
        ("root ::= a \"b\" | \"z\" a\na ::= \"x\" (= \"bc\")", true), // a beginning of it
        ("root ::= a \"bd\"\na ::= \"x\" (= \"bc\")", false),
        ("root ::= (a [,;])*\na ::= \"x\" (= [,;.])", true),
        ("root ::= (a [,;])*\na ::= \"x\" (= [,.])", false),
        ("root ::= a a\na ::= \"x\" (= \"y\")", false),
        ("root ::= a b\nb ::= \"\" | \",\" b\na ::= \"x\" a | \"y\" (= \",\")", true),
        ("root ::= a* \"!\"\na ::= \"x\" (= [x!])", true),
        ("root ::= a* \"!\"\na ::= \"x\" (= \"x\")", false),
        (
            "root ::= \"[\" list \"]\"\nlist ::= a (ws \",\" ws a)* ws\nws ::= [ \\n]*\na ::= \"\\\"\" c\n\
          c ::= [a-z] c | \"\\\"\" (= [ \\n]* [,\\]])",
            true,
        ),
        (
            "root ::= \"[\" list \"]\"\nlist ::= a (ws \",\" ws a)* ws\nws ::= [ \\n\\t]*\na ::= [a-z]+ \
          (= [ \\n]* [,\\]])",
            false,
        ),
        ("root ::= a [é]\na ::= \"x\" (= [à-ü])", true),
        ("root ::= a [é]\na ::= \"x\" (= [a-z])", false),
        ("root ::= a b\na ::= \"x\" (= b)\nb ::= \"(\" b \")\" | \"y\"", false), // not seen to be regular
        ("root ::= a TagDispatch((\"t\", b))\na ::= \"x\" (= [a-z])\nb ::= \"y\"", false),
        ("root ::= b\na ::= \"x\" (= \"c\")\nb ::= \"y\"", true), // stands nowhere
    ];
    for (text, expected) in cases {
        assert_eq!(is_implied(text), expected, "{text}");
    }
}
