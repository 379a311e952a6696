//! Grammar syntax from outside: what is printed is read back, no text panics, limits hold.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use tokfold_core::error::{Error, Position};
use tokfold_core::grammar::{
    CharSet, Expr, Grammar, GrammarBuilder, Macro, MacroArgument, Rule, RuleOptions,
};
use tokfold_core::ids::{ExprId, RuleId};
use tokfold_core::limits::Limits;
use tokfold_core::syntax::{parse, print, structurally_equal};

/// Names of the rules of random grammars; some look like other things.
const NAMES: [&str; 6] = ["root", "a-1", "_b.c", "Token", "true", "7"];

/// An expression as a tree.
#[derive(Clone, Debug)]
enum Tree {
    Leaf(Expr),
    Sequence(Vec<Tree>),
    Choice(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
}

fn code_point() -> impl Strategy<Value = u32> {
    prop_oneof![
        0u32..0x80,
        0u32..0x800,
        0u32..=0x10_FFFF,
        select(vec![0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xFFFF, 0x1_0000, 0x10_FFFF]),
    ]
}

/// Characters in UTF-8; in place of what is half of a surrogate pair U+FFFD.
fn text(codes: &[u32]) -> Box<[u8]> {
    let character = |&code: &u32| char::from_u32(code).unwrap_or('\u{fffd}');
    codes.iter().map(character).collect::<String>().into_bytes().into()
}

fn call() -> impl Strategy<Value = Macro> {
    let tag = || vec(code_point(), 1..4).prop_map(|codes| MacroArgument::Text(text(&codes)));
    let token = (0..=i64::from(i32::MAX)).prop_map(MacroArgument::Integer);
    // Inside a macro `true` is a boolean and `7` a number.
    let rule = (0..4usize).prop_map(|r| MacroArgument::Rule(RuleId::new(r)));
    let pair = (tag(), rule).prop_map(|(tag, rule)| MacroArgument::Tuple(vec![tag, rule]));
    let looped =
        any::<bool>().prop_map(|v| ("loop_after_dispatch".into(), MacroArgument::Boolean(v)));
    let named = |name: &str, positional, named| Macro { name: name.into(), positional, named };
    prop_oneof![
        vec(token, 1..4).prop_map(move |ids| named("Token", ids, vec![])),
        vec(tag(), 0..4).prop_map(move |chunks| named("Substring", chunks, vec![])),
        (vec(pair, 0..4), vec(looped, 0..2)).prop_map(move |(p, n)| named("TagDispatch", p, n)),
    ]
}

fn leaf() -> impl Strategy<Value = Tree> {
    let class = vec((code_point(), code_point()), 0..4)
        .prop_map(|ends| CharSet::new(ends.into_iter().map(|(a, b)| (a.min(b), a.max(b)))));
    prop_oneof![
        Just(Expr::Empty),
        vec(code_point(), 1..6).prop_map(|codes| Expr::Literal(text(&codes))),
        (class, any::<bool>()).prop_map(|(set, c)| Expr::Class(if c {
            set.complement()
        } else {
            set
        })),
        (0..NAMES.len()).prop_map(|rule| Expr::Rule(RuleId::new(rule))),
        call().prop_map(Expr::Macro),
    ]
    .prop_map(Tree::Leaf)
}

fn bounds() -> impl Strategy<Value = (u32, Option<u32>)> {
    prop_oneof![
        select(vec![(0, None), (1, None), (0, Some(1)), (1, Some(1)), (0, Some(0)), (7, None)]),
        (any::<u32>(), any::<u32>()).prop_map(|(a, b)| (a.min(b), Some(a.max(b)))),
    ]
}

fn tree() -> impl Strategy<Value = Tree> {
    leaf().prop_recursive(6, 40, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Tree::Sequence),
            vec(inner.clone(), 2..4).prop_map(Tree::Choice),
            (inner, bounds()).prop_map(|(body, (min, max))| Tree::Repeat(body.into(), min, max)),
        ]
    })
}

fn options() -> impl Strategy<Value = RuleOptions> {
    (
        any::<Option<u32>>(),
        any::<Option<u32>>(),
        proptest::option::of("[^\"\\\\\r\n\0]{1,5}"),
        any::<bool>(),
        proptest::option::of(0.0..3e38f64),
    )
        .prop_map(|(max_tokens, max_chars, capture, lazy, temperature)| RuleOptions {
            max_tokens,
            max_chars,
            capture,
            lazy,
            temperature,
            other: Vec::new(),
        })
}

/// Adds a tree to the arena, children first.
fn add(builder: &mut GrammarBuilder, tree: &Tree) -> ExprId {
    let children = |builder: &mut GrammarBuilder, trees: &[Tree]| -> Box<[ExprId]> {
        trees.iter().map(|t| add(builder, t)).collect()
    };
    let expr = match tree {
        Tree::Leaf(expr) => expr.clone(),
        Tree::Sequence(trees) => Expr::Sequence(children(builder, trees)),
        Tree::Choice(trees) => Expr::Choice(children(builder, trees)),
        Tree::Repeat(body, min, max) => {
            Expr::Repeat { body: add(builder, body), min: *min, max: *max }
        }
    };
    builder.add(expr, Position::default())
}

fn grammar() -> impl Strategy<Value = Grammar> {
    let rule = (options(), tree(), proptest::option::weighted(0.2, tree()));
    vec(rule, NAMES.len()).prop_map(|bodies| {
        let mut builder = GrammarBuilder::new();
        let mut rules = Vec::new();
        for (name, (options, body, lookahead)) in NAMES.into_iter().zip(bodies) {
            let body = add(&mut builder, &body);
            let lookahead = lookahead.map(|tree| add(&mut builder, &tree));
            let position = Position::default();
            let is_common = false;
            rules.push(Rule { name: name.into(), options, body, lookahead, position, is_common });
        }
        builder.finish(rules, RuleId::new(0))
    })
}

/// Reads a text; a grammar must print and read back as itself, an error must stand in the text.
fn check(text: &str) {
    match parse(text, "root", &Limits::default()) {
        Ok(grammar) => {
            let printed = print(&grammar);
            let again = parse(&printed, "root", &Limits::default());
            let again = again.unwrap_or_else(|e| panic!("{text:?}\n{printed}\n{e}"));
            assert!(structurally_equal(&grammar, &again), "{text:?}\n{printed}");
            assert_eq!(print(&again), printed);
        }
        Err(Error::Syntax { position, .. } | Error::Unsupported { position, .. }) => {
            let lines = text.replace("\r\n", "\n").replace('\r', "\n");
            let line = lines.split('\n').nth(position.line as usize - 1);
            let columns = line.map(|line| line.chars().count() as u32 + 1);
            assert!(
                columns.is_some_and(|c| (1..=c).contains(&position.column)),
                "{text:?} {position:?}"
            );
        }
        Err(_) => {}
    }
}

/// Pieces of grammar text, whole and broken.
const PIECES: &[&str] = &[
    "root ::= ",
    "\na ::= ",
    "\n",
    "\r\n",
    "\r",
    " ",
    "a",
    "b",
    "(",
    ")",
    "|",
    "*",
    "+",
    "?",
    "{2}",
    "{2,}",
    "{0, -1}",
    "{",
    "}",
    ",",
    "=",
    "::=",
    ":",
    "\"x\"",
    "\"",
    "\\",
    "\"\\x4",
    "[a-z]",
    "[^",
    "]",
    "[",
    "[lazy]",
    "[capture=\"",
    "-",
    ".",
    "(=",
    "#",
    "é",
    "\0",
    "<[5]>",
    "!<",
    ">",
    "'",
    "Token(",
    "TagDispatch((\"t\", a)",
    "excludes=(",
    "true",
    "4294967296",
    "\u{feff}",
    "\u{2028}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn printed_grammars_read_back(grammar in grammar()) {
        let printed = print(&grammar);
        let again = parse(&printed, "root", &Limits::default());
        let again = again.unwrap_or_else(|e| panic!("{printed}\n{e}"));
        prop_assert!(structurally_equal(&grammar, &again), "{}", printed);
    }

    #[test]
    fn no_text_panics(bytes in vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn no_pieces_panic(pieces in vec(select(PIECES), 0..40)) {
        check(&pieces.concat());
        check(&format!("root ::= {}", pieces.concat()));
    }

    #[test]
    fn no_mutation_panics(
        grammar in grammar(),
        edits in vec((any::<proptest::sample::Index>(), select(PIECES)), 1..4),
    ) {
        let mut chars: Vec<char> = print(&grammar).chars().collect();
        for (index, piece) in edits {
            let at = index.index(chars.len());
            chars.splice(at..=at, piece.chars());
        }
        check(&chars.into_iter().collect::<String>());
    }
}

fn limit(text: &str, limits: &Limits) -> Option<(&'static str, u64, String)> {
    match parse(text, "root", limits) {
        Err(Error::Limit { limit, value, message }) => Some((limit, value, message)),
        Ok(_) => None,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn limits_are_exact() {
    let text = "root ::= (\"a\" (\"b\" | (\"c\" \"d\")*))\na ::= \"x\"";
    let bytes = text.len();
    let tight =
        Limits { max_grammar_bytes: bytes, max_rules: 2, max_nesting: 3, ..Limits::default() };
    assert_eq!(limit(text, &tight), None);
    assert_eq!(
        limit(text, &Limits { max_grammar_bytes: bytes - 1, ..tight.clone() }),
        Some((
            "max_grammar_bytes",
            bytes as u64 - 1,
            format!("the grammar text has {bytes} bytes; shorten it or raise the limit")
        ))
    );
    assert_eq!(
        limit(text, &Limits { max_rules: 1, ..tight.clone() }),
        Some((
            "max_rules",
            1,
            "line 2 defines one rule more; shorten the grammar or raise the limit".into()
        ))
    );
    assert_eq!(
        limit(text, &Limits { max_nesting: 2, ..tight }),
        Some((
            "max_nesting",
            2,
            "groups and repetitions are nested deeper at line 1, column 22; give inner groups \
             rules of their own, or raise the limit"
                .into()
        ))
    );
}

#[test]
fn nesting_is_bounded_and_what_is_read_prints_within_the_bound() {
    let limits = Limits::default();
    let deep =
        |n: usize, middle: &str| format!("root ::= {}{middle}{}", "(".repeat(n), ")".repeat(n));
    assert_eq!(limit(&deep(1_000, "\"a\""), &limits), None);
    for text in
        [deep(1_001, "\"a\""), deep(10_000, "\"a\""), "root ::= ".to_owned() + &"(".repeat(10_000)]
    {
        assert_eq!(limit(&text, &limits).map(|l| l.0), Some("max_nesting"));
    }
    let stacked = |n: usize| format!("root ::= \"a\"{}", "*".repeat(n));
    assert_eq!(limit(&stacked(1_001), &limits), None);
    assert_eq!(limit(&stacked(1_002), &limits).map(|l| l.0), Some("max_nesting"));
    assert_eq!(
        limit(&deep(500, &format!("\"a\"{}", "*".repeat(502))), &limits).map(|l| l.0),
        Some("max_nesting")
    );
    check(&stacked(1_001));
    check(&deep(500, &format!("\"a\"{}", "*".repeat(501))));
}

#[test]
fn long_texts_take_linear_time() {
    let line =
        |i: usize| format!("r{i} ::= \"abc\" [a-z0-9]* (r{} | \"x\"{{2,3}})? # note\n", i / 2);
    let rules: String = (0..100_000).map(line).collect();
    check(&format!("root ::= r99999\n{rules}"));
    let undefined = format!("root ::= r1x9999\n{rules}");
    assert!(parse(&undefined, "root", &Limits::default()).is_err());
    for piece in [
        "<", "'", "a[\"]", "a[x", "a.", "[", "(", "|", "\"\\", "!<", "\"a\"?", "a=", "\r", "#", "*",
    ] {
        check(&format!("a ::= \"x\"\nroot ::= \"a\"{}", piece.repeat(1_000_000)));
    }
    let excludes =
        "\"".to_owned() + &"a".repeat(500_000) + "b\", \"" + &"a".repeat(500_000) + "c\"";
    let trigger = "a".repeat(1_000_000);
    check(&format!("root ::= TagDispatch((\"{trigger}\", root), excludes=({excludes}))"));
}

/// Reads every file of the folder that `TOKFOLD_GRAMMARS` names; run on request.
#[test]
#[ignore = "needs a folder of grammars in TOKFOLD_GRAMMARS"]
fn folder_of_grammars() {
    let folder = std::env::var("TOKFOLD_GRAMMARS").expect("TOKFOLD_GRAMMARS names a folder");
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("a grammar is UTF-8");
        if let Err(error) = parse(&text, "root", &Limits::default()) {
            panic!("{}: {error}", path.display());
        }
        check(&text);
    }
}
