//! The network against its definition: the strings and the prefixes of random small grammars,
//! computed by sets of strings alone, are what a walk over the network finds, however much is
//! inlined and whether or not dead ends are dropped. And what people see when they print one.

use proptest::collection::vec;
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokfold_core::budget::{Budget, Interrupt};
use tokfold_core::error::{Error, Position};
use tokfold_core::grammar::{CharSet, Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use tokfold_core::ids::{ExprId, RuleId};
use tokfold_core::limits::Limits;
use tokfold_core::network::{Adjacency, BOTTOM, LeftRecursion, Network, NetworkOptions};
use tokfold_core::recognizer::Recognizer;
use tokfold_core::syntax::parse;

const LETTERS: [u8; 3] = *b"abc";
/// Strings up to this length are compared.
const LONGEST: u32 = 6;
const RULES: usize = 3;
const BUDGETS: [usize; 4] = [0, 20, 200, 10_000];

/// An expression as a tree.
#[derive(Clone, Debug)]
enum Tree {
    Empty,
    Literal(Vec<u8>),
    Class(Vec<u8>),
    Rule(usize),
    Sequence(Vec<Tree>),
    Choice(Vec<Tree>),
    Repeat(Box<Tree>, u32, Option<u32>),
}

fn letter() -> impl Strategy<Value = u8> {
    (0..LETTERS.len()).prop_map(|i| LETTERS[i])
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = prop_oneof![
        1 => Just(Tree::Empty),
        4 => vec(letter(), 1..4).prop_map(Tree::Literal),
        2 => vec(letter(), 0..3).prop_map(Tree::Class),
        5 => (0..RULES).prop_map(Tree::Rule),
    ];
    let bounds = (0..3u32, proptest::option::of(0..3u32)).prop_map(|(m, d)| (m, d.map(|d| m + d)));
    leaf.prop_recursive(3, 12, 3, move |inner| {
        prop_oneof![
            3 => vec(inner.clone(), 2..4).prop_map(Tree::Sequence),
            3 => vec(inner.clone(), 2..4).prop_map(Tree::Choice),
            1 => (inner, bounds.clone()).prop_map(|(t, (m, n))| Tree::Repeat(t.into(), m, n)),
        ]
    })
}

/// Adds a tree to the arena, children first.
fn add(builder: &mut GrammarBuilder, tree: &Tree) -> ExprId {
    let children = |builder: &mut GrammarBuilder, trees: &[Tree]| -> Box<[ExprId]> {
        trees.iter().map(|t| add(builder, t)).collect()
    };
    let expr = match tree {
        Tree::Empty => Expr::Empty,
        Tree::Literal(bytes) => Expr::Literal(bytes.clone().into()),
        Tree::Class(letters) => {
            Expr::Class(CharSet::new(letters.iter().map(|&b| (b.into(), b.into()))))
        }
        Tree::Rule(rule) => Expr::Rule(RuleId::new(*rule)),
        Tree::Sequence(trees) => Expr::Sequence(children(builder, trees)),
        Tree::Choice(trees) => Expr::Choice(children(builder, trees)),
        Tree::Repeat(body, min, max) => {
            Expr::Repeat { body: add(builder, body), min: *min, max: *max }
        }
    };
    builder.add(expr, Position::default())
}

fn grammar(bodies: &[Tree]) -> Grammar {
    with_common(bodies, |_| false)
}

/// The grammar of some bodies, some of whose rules are common.
fn with_common(bodies: &[Tree], is_common: impl Fn(usize) -> bool) -> Grammar {
    let mut builder = GrammarBuilder::new();
    let rules = bodies.iter().enumerate().map(|(i, body)| Rule {
        name: format!("r{i}"),
        options: RuleOptions::default(),
        body: add(&mut builder, body),
        lookahead: None,
        position: Position { line: i as u32 + 1, column: 1 },
        is_common: is_common(i),
    });
    let rules = rules.collect();
    builder.finish(rules, RuleId::new(0))
}

/// The number of a string among all, shorter ones first.
fn number(word: &[u8]) -> usize {
    let value = word.iter().fold(0, |value, b| value * 3 + usize::from(b - b'a'));
    (3usize.pow(word.len() as u32) - 1) / 2 + value
}

/// For each string the numbers of the two parts at every cut.
fn cuts() -> Vec<Vec<(usize, usize)>> {
    let of_length = |n: u32| (0..3usize.pow(n)).map(move |x| spelled(x, n));
    let words = (0..=LONGEST).flat_map(of_length);
    words.map(|w| (0..=w.len()).map(|k| (number(&w[..k]), number(&w[k..]))).collect()).collect()
}

fn spelled(value: usize, length: u32) -> Vec<u8> {
    (0..length).rev().map(|i| LETTERS[value / 3usize.pow(i) % 3]).collect()
}

/// What an expression means, for strings up to [`LONGEST`]: the definition, nothing else.
#[derive(Clone, Debug, PartialEq)]
struct Meaning {
    language: Vec<bool>,
    /// What can be read before it leaves the expression.
    prefixes: Vec<bool>,
    /// Whether it has a string of any length.
    productive: bool,
}

struct Definition {
    cuts: Vec<Vec<(usize, usize)>>,
    prune: bool,
}

impl Definition {
    fn nothing(&self) -> Meaning {
        let none = vec![false; self.cuts.len()];
        Meaning { language: none.clone(), prefixes: none, productive: false }
    }

    fn word(&self, word: &[u8]) -> Meaning {
        let mut out = self.nothing();
        out.language[number(word)] = true;
        (0..=word.len()).for_each(|k| out.prefixes[number(&word[..k])] = true);
        out.productive = true;
        out
    }

    fn either(&self, a: &Meaning, b: &Meaning) -> Meaning {
        let or = |x: &[bool], y: &[bool]| x.iter().zip(y).map(|(x, y)| x | y).collect();
        Meaning {
            language: or(&a.language, &b.language),
            prefixes: or(&a.prefixes, &b.prefixes),
            productive: a.productive || b.productive,
        }
    }

    fn then(&self, a: &Meaning, b: &Meaning) -> Meaning {
        let productive = a.productive && b.productive;
        if self.prune && !productive {
            return self.nothing();
        }
        let join = |right: &[bool]| -> Vec<bool> {
            let has =
                |cuts: &Vec<(usize, usize)>| cuts.iter().any(|c| a.language[c.0] && right[c.1]);
            self.cuts.iter().map(has).collect()
        };
        let within_b = join(&b.prefixes);
        let prefixes = a.prefixes.iter().zip(within_b).map(|(x, y)| x | y).collect();
        Meaning { language: join(&b.language), prefixes, productive }
    }

    fn of(&self, tree: &Tree, rules: &[Meaning]) -> Meaning {
        match tree {
            Tree::Empty => self.word(b""),
            Tree::Literal(word) => self.word(word),
            Tree::Class(letters) => {
                let mut none = self.nothing();
                none.prefixes[0] = !self.prune; // a place where nothing can come
                letters.iter().fold(none, |out, &b| self.either(&out, &self.word(&[b])))
            }
            Tree::Rule(rule) => rules[*rule].clone(),
            Tree::Sequence(trees) => {
                trees.iter().fold(self.word(b""), |out, t| self.then(&out, &self.of(t, rules)))
            }
            Tree::Choice(trees) => {
                trees.iter().fold(self.nothing(), |out, t| self.either(&out, &self.of(t, rules)))
            }
            Tree::Repeat(body, min, max) => {
                let body = self.of(body, rules);
                let mut last = self.word(b"");
                for _ in 0..*min {
                    last = self.then(&last, &body);
                }
                let mut out = last.clone();
                let mut left = max.map(|max| max - min);
                while left != Some(0) {
                    last = self.then(&last, &body);
                    let more = self.either(&out, &last);
                    if max.is_none() && more == out {
                        break;
                    }
                    out = more;
                    left = left.map(|n| n - 1);
                }
                out
            }
        }
    }

    /// The least meanings of the rules that satisfy all rules at once.
    fn solve(&self, bodies: &[Tree]) -> Vec<Meaning> {
        let mut rules = vec![self.nothing(); bodies.len()];
        loop {
            let next: Vec<Meaning> = bodies.iter().map(|body| self.of(body, &rules)).collect();
            if next == rules {
                return rules;
            }
            rules = next;
        }
    }
}

fn options(prune: bool, inline_budget: usize) -> NetworkOptions {
    NetworkOptions { prune, inline_budget, ..NetworkOptions::default() }
}

/// Reads every string of the full length, and compares at each prefix not met before.
fn agrees(network: &Network, meaning: &Meaning) -> Result<(), TestCaseError> {
    let check = |recognizer: &mut Recognizer<'_>, read: &[u8]| {
        prop_assert_eq!(recognizer.is_accepting(), meaning.language[number(read)], "{:?}", read);
        if read.len() < LONGEST as usize {
            let can = |b: &u8| meaning.prefixes[number(&[read, &[*b]].concat())];
            let next: Vec<u8> = LETTERS.into_iter().filter(can).collect();
            prop_assert_eq!(recognizer.expected().expect("no limit"), next, "after {:?}", read);
        }
        Ok(())
    };
    for value in 0..3usize.pow(LONGEST) {
        let word = spelled(value, LONGEST);
        let mut recognizer =
            Recognizer::new(network, &Limits::default(), &Interrupt::default()).expect("fits");
        if value == 0 {
            check(&mut recognizer, b"")?;
        }
        for read in 1..=word.len() {
            let viable = recognizer.advance(word[read - 1]).expect("fits");
            prop_assert_eq!(viable, meaning.prefixes[number(&word[..read])], "{:?}", &word[..read]);
            if !viable {
                break;
            }
            if word[read..].iter().all(|&b| b == b'a') {
                check(&mut recognizer, &word[..read])?;
            }
        }
    }
    Ok(())
}

proptest! {
        #[test]
    fn strings_and_prefixes_are_those_of_the_grammar(bodies in vec(tree(), RULES)) {
        let grammar = grammar(&bodies);
        for prune in [true, false] {
            let definition = Definition { cuts: cuts(), prune };
            let root = definition.solve(&bodies).swap_remove(0);
            for budget in BUDGETS {
                match Network::new(&grammar, &options(prune, budget)) {
                    Ok(network) => {
                        prop_assert!(root.productive || !prune);
                        prop_assert_eq!(network.accepts_empty(), root.language[0]);
                        agrees(&network, &root)?;
                    }
                    Err(Error::Unsupported { construct, position, .. }) => {
                        prop_assert!(prune && !root.productive);
                        prop_assert_eq!((construct.as_str(), position.line), ("r0", 1));
                    }
                    Err(other) => prop_assert!(false, "{other}"),
                }
            }
        }
    }

    /// Parts of common rules are kept from one case to the next, by what they say.
    #[test]
    fn common_rules_are_read_alike(bodies in vec(tree(), RULES), common in 1..8usize, counters: bool) {
        let definition = Definition { cuts: cuts(), prune: true };
        let mut rules = definition.solve(&bodies);
        let grammar = with_common(&bodies, |rule| common >> rule & 1 == 1 && rules[rule].productive);
        let options = NetworkOptions { counters, ..options(true, 20) };
        let work = Budget::new(&options.limits, &Interrupt::default());
        match Network::linked(&grammar, &options, &work) {
            Ok(network) => {
                let root = rules.swap_remove(0);
                prop_assert_eq!(network.accepts_empty(), root.language[0]);
                agrees(&network, &root)?;
            }
            Err(Error::Unsupported { .. }) => prop_assert!(!rules[0].productive),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn networks_keep_their_invariants(bodies in vec(tree(), RULES), prune: bool, which in 0..4usize) {
        let Ok(network) = Network::new(&grammar(&bodies), &options(prune, BUDGETS[which])) else {
            return Ok(());
        };
        let again = Network::new(&grammar(&bodies), &options(prune, BUDGETS[which])).expect("as before");
        prop_assert_eq!(network.to_string(), again.to_string());
        let adjacency = Adjacency::new(&network, usize::MAX).expect("no bound");
        for q in 0..network.len() as u32 {
            prop_assert!(network.listed(q).windows(2).all(|w| w[0] < w[1]), "sorted, distinct");
            let mut next: Vec<u32> = network.edges(q).map(|e| e.1).collect();
            for call in network.calls(q).iter() {
                prop_assert!(!network.is_final(call.start), "a call takes at least one byte");
                next.push(call.to);
                let beneath = &adjacency.sets()[adjacency.set_of_rule(network.rule_of(call.start)) as usize];
                prop_assert_eq!(network.stays(call.to), beneath.contains(&call.to));
            }
            prop_assert!(next.iter().all(|&t| network.rule_of(t) == network.rule_of(q)));
            prop_assert_eq!(
                network.stays(q),
                !network.is_final(q) || !network.listed(q).is_empty() || !network.calls(q).is_empty()
            );
        }
        let start = adjacency.set_of_rule(network.rule_of(network.start())) as usize;
        prop_assert!(adjacency.sets()[start].contains(&BOTTOM));
    }
}

fn printed(text: &str, prune: bool, inline_budget: usize) -> String {
    let grammar = parse(text, "root", &Limits::default()).expect("well-formed");
    Network::new(&grammar, &options(prune, inline_budget)).expect("a network").to_string()
}

/// Two common rules that call each other, each entered from outside.
#[test]
fn common_rules_of_one_cycle_are_told_apart() {
    let rule = |rule| Tree::Rule(rule);
    let word = |text: &[u8]| Tree::Literal(text.to_vec());
    let bodies = [
        Tree::Choice(vec![
            Tree::Sequence(vec![word(b"a"), rule(1)]),
            Tree::Sequence(vec![word(b"b"), rule(2)]),
        ]),
        Tree::Choice(vec![Tree::Sequence(vec![word(b"a"), rule(2)]), word(b"b")]),
        Tree::Choice(vec![Tree::Sequence(vec![word(b"c"), rule(1)]), word(b"cc")]),
    ];
    reads_alike(&bodies, |rule| rule > 0);
}

/// A common rule in a cycle with one that has no string.
#[test]
fn common_rules_beside_one_without_strings() {
    let rule = |rule| Tree::Rule(rule);
    let bodies = [
        Tree::Choice(vec![Tree::Literal(b"a".to_vec()), rule(1), rule(2)]),
        Tree::Choice(vec![Tree::Literal(b"b".to_vec()), rule(2)]),
        Tree::Sequence(vec![Tree::Class(vec![]), rule(1)]),
    ];
    reads_alike(&bodies, |rule| rule == 1);
}

fn reads_alike(bodies: &[Tree], is_common: impl Fn(usize) -> bool) {
    let meaning = Definition { cuts: cuts(), prune: true }.solve(bodies).swap_remove(0);
    let options = options(true, 0);
    let work = Budget::new(&options.limits, &Interrupt::default());
    let network = Network::linked(&with_common(bodies, is_common), &options, &work);
    agrees(&network.expect("within bounds"), &meaning).expect("the same strings");
}

/// Where the loops of left recursion pass a limit, a grammar with common rules has a network without
/// them too.
#[test]
fn common_rules_beside_left_recursion() {
    let rule = |rule| Tree::Rule(rule);
    let word = |text: &[u8]| Tree::Literal(text.to_vec());
    let both = |left, right| Tree::Sequence(vec![left, right]);
    let bodies = [
        Tree::Choice(vec![
            both(rule(1), word(b"a")),
            both(rule(1), rule(2)),
            both(rule(0), word(b"bca")),
            word(b"c"),
        ]),
        Tree::Choice(vec![
            both(rule(0), word(b"cab")),
            both(rule(0), rule(1)),
            both(rule(1), rule(1)),
            both(rule(2), word(b"b")),
        ]),
        Tree::Sequence(vec![word(b"cb"), Tree::Class(b"ab".to_vec())]),
    ];
    let grammar = with_common(&bodies, |rule| rule == 2);
    let (mut with_loops, mut without) = (0, 0);
    for max_network_states in 1..200 {
        let limits = Limits { max_network_states, ..Limits::default() };
        let left_recursion = LeftRecursion::Fitting;
        let options = NetworkOptions { left_recursion, limits, ..options(true, 20) };
        let work = Budget::new(&options.limits, &Interrupt::default());
        match Network::linked(&grammar, &options, &work) {
            Ok(network) if network.is_for_charts() => without += 1,
            Ok(_) => with_loops += 1,
            Err(error) => assert!(matches!(error, Error::Limit { .. }), "{error}"),
        }
    }
    assert!(with_loops > 0 && without > 0, "{with_loops} with loops, {without} without");
}

#[test]
fn a_literal() {
    assert_eq!(
        printed("root ::= \"aab\"", true, 20),
        "1 rules, 4 states, 3 byte classes; start 0\n\
         rule 0\n  0 [a]->1\n  1 [a]->2\n  2 [b]->3\n  3 final\n"
    );
}

#[test]
fn nesting_stays_a_call() {
    assert_eq!(
        printed("root ::= \"(\" root \")\" | \"a\"", true, 20),
        "2 rules, 6 states, 4 byte classes; start 4\n\
         rule 0\n  0 [(]->1 [a]->2\n  1 rule 0->3\n  2 final\n  3 [)]->2\n\
         rule 1\n  4 rule 0->5\n  5 final\n"
    );
}

#[test]
fn left_and_tail_recursion_are_loops() {
    assert_eq!(
        printed("root ::= \"a\" root | \"b\"", true, 20),
        "1 rules, 2 states, 3 byte classes; start 0\nrule 0\n  0 [a]->0 [b]->1\n  1 final\n"
    );
    assert_eq!(
        printed("root ::= root \"x\" | \"a\"", true, 20),
        "1 rules, 2 states, 3 byte classes; start 0\nrule 0\n  0 [a]->1\n  1 final [x]->1\n"
    );
}

#[test]
fn dead_ends_are_dropped_or_kept() {
    let text = "root ::= \"a\" | \"b\" dead\ndead ::= \"c\" dead";
    assert_eq!(
        printed(text, true, 20),
        "1 rules, 2 states, 2 byte classes; start 0\nrule 0\n  0 [a]->1\n  1 final\n"
    );
    assert_eq!(
        printed(text, false, 20),
        "1 rules, 3 states, 4 byte classes; start 0\n\
         rule 0\n  0 [a]->1 [b]->2\n  1 final\n  2 [c]->2\n"
    );
}

#[test]
fn equal_rules_become_one() {
    let rules = "\na ::= \"x\" root \"y\" | \"z\"\nb ::= \"x\" root \"y\" | \"z\"";
    let two = format!("root ::= \"1\" a | \"2\" b | a root b | \"?\"{rules}");
    let one = format!("root ::= \"1\" a | \"2\" a | a root a | \"?\"{rules}");
    assert_eq!(printed(&two, true, 0), printed(&one, true, 0));
    let other = two.replace("b ::= \"x\"", "b ::= \"w\"");
    assert_ne!(printed(&other, true, 0), printed(&one, true, 0));
}

#[test]
fn the_empty_string_is_a_flag_of_the_whole() {
    assert!(printed("root ::= \"a\"?", true, 20).contains("accepts the empty string"));
    assert_eq!(
        printed("root ::= \"\"", true, 20),
        "1 rules, 1 states, 1 byte classes; start 0, accepts the empty string\nrule 0\n  0\n"
    );
}

/// Both bounds are met exactly, and the error names the bound and the rule.
#[test]
fn states_and_edges_are_bounded() {
    let grammar = parse("root ::= long\nlong ::= \"a\"{200}", "root", &Limits::default())
        .expect("well-formed");
    let network = |limits: Limits| {
        Network::new(&grammar, &NetworkOptions { limits, ..NetworkOptions::default() })
    };
    let states = Limits { max_network_states: 100, ..Limits::default() };
    match network(states).map(|n| n.to_string()) {
        Err(Error::Limit { limit, value, message }) => {
            assert_eq!((limit, value), ("max_network_states", 100));
            assert!(message.contains("\"long\""), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let edges = Limits { max_network_edges: 100, ..Limits::default() };
    match network(edges).map(|n| n.to_string()) {
        Err(Error::Limit { limit, value, .. }) => {
            assert_eq!((limit, value), ("max_network_edges", 100))
        }
        other => panic!("{other:?}"),
    }
}

/// Rules may share a body: each has its strings, also those that stand before the last.
#[test]
fn rules_that_share_a_body_are_all_productive() {
    for shared in [Expr::Literal((*b"ab").into()), Expr::Empty, Expr::Class(CharSet::single(97))] {
        for first in 1..3 {
            let mut builder = GrammarBuilder::new();
            let position = Position::default();
            let body = builder.add(shared.clone(), position);
            let calls = [first, 3 - first, first].map(|rule| Expr::Rule(RuleId::new(rule)));
            let calls = calls.map(|call| builder.add(call, position));
            let end = builder.add(Expr::Literal((*b"c").into()), position);
            let root = Expr::Sequence([calls.to_vec(), vec![end]].concat().into());
            let root = builder.add(root, position);
            let rule = |(name, body): (&str, ExprId)| Rule {
                name: name.to_owned(),
                options: RuleOptions::default(),
                body,
                lookahead: None,
                position,
                is_common: false,
            };
            let rules = [("root", root), ("x", body), ("y", body)].map(rule).to_vec();
            let grammar = builder.finish(rules, RuleId::new(0));
            let network =
                Network::new(&grammar, &NetworkOptions::default()).expect("it has a string");
            let mut recognizer =
                Recognizer::new(&network, &Limits::default(), &Interrupt::default()).expect("fits");
            let text: &[u8] = match shared {
                Expr::Literal(_) => b"abababc",
                Expr::Empty => b"c",
                _ => b"aaac",
            };
            assert!(text.iter().all(|&byte| recognizer.advance(byte).expect("fits")), "{shared:?}");
            assert!(recognizer.is_accepting(), "{shared:?}");
        }
    }
}

/// Whatever bound on states is in force, the language is the grammar's or there is an error.
#[test]
fn a_bound_never_changes_the_language() {
    for text in
        ["root ::= \"a\"{40}", "root ::= (\"ab\" | \"a\"){3,40} \"c\"", "root ::= (\"a\"{3}){10}"]
    {
        let grammar = parse(text, "root", &Limits::default()).expect("well-formed");
        let whole = Network::new(&grammar, &NetworkOptions::default()).expect("fits").to_string();
        for max_network_states in 1..200 {
            let limits = Limits { max_network_states, ..Limits::default() };
            match Network::new(&grammar, &NetworkOptions { limits, ..NetworkOptions::default() }) {
                Ok(network) => {
                    assert_eq!(network.to_string(), whole, "{text} {max_network_states}")
                }
                Err(error) => {
                    assert!(matches!(error, Error::Limit { limit: "max_network_states", .. }))
                }
            }
        }
    }
}

/// Whatever bound on work is in force, there is the language of the grammar or an error; and the
/// caller, who is asked now and then, can end it.
#[test]
fn work_is_bounded_and_can_be_ended() {
    let text = "root ::= (\"ab\" | \"a\"){3,40} \"c\" | r\nr ::= \"a\" r \"b\" | r \"c\" | \"d\"";
    let grammar = parse(text, "root", &Limits::default()).expect("well-formed");
    let accepts = |network: &Network, text: &str| {
        let mut recognizer =
            Recognizer::new(network, &Limits::default(), &Interrupt::default()).expect("fits");
        text.bytes().all(|b| recognizer.advance(b).expect("fits")) && recognizer.is_accepting()
    };
    let mut made = 0;
    for exponent in 0..40 {
        let max_network_work = (1.5f64.powi(exponent)) as u64 + 1;
        let limits = Limits { max_network_work, ..Limits::default() };
        match Network::new(&grammar, &NetworkOptions { limits, ..NetworkOptions::default() }) {
            Ok(network) => {
                made += 1;
                for (word, wanted) in [("aabac", true), ("aac", false), ("aadbcb", true)] {
                    assert_eq!(accepts(&network, word), wanted, "{word} {max_network_work}");
                }
            }
            Err(Error::Limit { limit, value, .. }) => {
                assert_eq!((limit, value, made), ("max_network_work", max_network_work, 0));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(made > 10);
    let large = parse("root ::= ([ab] \"a\"{1,90}){1,900}", "root", &Limits::default());
    let options = NetworkOptions::default();
    let flag = Arc::new(AtomicBool::new(true));
    let work = Budget::new(&options.limits, &Interrupt::default().with_flag(&flag));
    let ended = Network::make(&large.expect("well-formed"), &options, &work);
    assert!(matches!(ended, Err(Error::Cancelled)));
}
