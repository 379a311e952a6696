//! Token classes against their definition: two tokens of one class can stand for each other in
//! every string and every prefix of a string; and what `compile` promises about numbering,
//! representatives, budgets, cancelling and limits.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use proptest::collection::vec;
use proptest::prelude::*;

use tokfold_core::budget::{Interrupt, Observer};
use tokfold_core::classes::{ClassOptions, ClassStats, TokenClasses, compile};
use tokfold_core::error::{Error, Result};
use tokfold_core::grammar::Grammar;
use tokfold_core::limits::Limits;
use tokfold_core::syntax::parse;
use tokfold_core::vocabulary::Vocabulary;

const RULES: usize = 3;
/// Contexts on either side, tokens, and strings in all.
const CONTEXT: usize = 3;
const TOKEN: usize = 3;
const LONGEST: usize = 2 * CONTEXT + TOKEN;

/// A part of an alternative: a letter, a rule, or so many letters.
#[derive(Clone, Debug)]
enum Symbol {
    Letter(u8),
    Rule(usize),
    Repeat(u8, usize, usize),
}

/// For each rule its alternatives.
type Rules = Vec<Vec<Vec<Symbol>>>;

fn rules() -> impl Strategy<Value = Rules> {
    let letter = || (0..3u8).prop_map(|i| b'a' + i);
    let symbol = prop_oneof![
        6 => letter().prop_map(Symbol::Letter),
        6 => (0..RULES).prop_map(Symbol::Rule),
        1 => (letter(), 0..3usize, 0..9usize).prop_map(|(b, m, d)| Symbol::Repeat(b, m, m + d)),
    ];
    vec(vec(vec(symbol, 0..5), 1..4), RULES)
}

fn text(rules: &Rules) -> String {
    let symbol = |s: &Symbol| match *s {
        Symbol::Letter(b) => format!("\"{}\" ", b as char),
        Symbol::Rule(rule) => format!("r{rule} "),
        Symbol::Repeat(b, min, max) => format!("\"{}\"{{{min},{max}}} ", b as char),
    };
    let alternative =
        |a: &Vec<Symbol>| format!("\"\" {}", a.iter().map(symbol).collect::<String>());
    let body = |r: &Vec<Vec<Symbol>>| r.iter().map(alternative).collect::<Vec<_>>().join("| ");
    rules.iter().enumerate().map(|(i, rule)| format!("r{i} ::= {}\n", body(rule))).collect()
}

/// All strings of up to `longest` letters, shorter ones first.
fn words(longest: usize) -> Vec<Vec<u8>> {
    let mut out = vec![Vec::new()];
    let mut from = 0;
    for _ in 0..longest {
        let to = out.len();
        for i in from..to {
            out.extend(b"abc".iter().map(|b| [&out[i][..], &[*b]].concat()).collect::<Vec<_>>());
        }
        from = to;
    }
    out
}

/// The place of a string in [`words`].
fn number(word: &[u8]) -> usize {
    let value = word.iter().fold(0, |value, b| value * 3 + usize::from(b - b'a'));
    (3usize.pow(word.len() as u32) - 1) / 2 + value
}

/// For each string up to [`LONGEST`] the places of its two parts at every cut.
fn cuts() -> &'static [Vec<(usize, usize)>] {
    static CUTS: OnceLock<Vec<Vec<(usize, usize)>>> = OnceLock::new();
    let of = |w: &Vec<u8>| (0..=w.len()).map(|k| (number(&w[..k]), number(&w[k..]))).collect();
    CUTS.get_or_init(|| words(LONGEST).iter().map(of).collect())
}

/// The strings of each rule up to [`LONGEST`], by derivation until nothing is new.
fn languages(rules: &Rules) -> Vec<Vec<bool>> {
    let mut known = vec![vec![false; cuts().len()]; RULES];
    loop {
        let mut next = known.clone();
        for (rule, alternatives) in rules.iter().enumerate() {
            for alternative in alternatives {
                let mut here = vec![false; cuts().len()];
                here[0] = true;
                for symbol in alternative {
                    here = extended(&here, symbol, &known);
                }
                next[rule].iter_mut().zip(here).for_each(|(old, new)| *old |= new);
            }
        }
        if next == known {
            return known;
        }
        known = next;
    }
}

/// What is in `left` followed by one more symbol.
fn extended(left: &[bool], symbol: &Symbol, known: &[Vec<bool>]) -> Vec<bool> {
    let mut letters = vec![false; left.len()];
    let right = match *symbol {
        Symbol::Rule(rule) => &known[rule],
        Symbol::Letter(b) => {
            letters[number(&[b])] = true;
            &letters
        }
        Symbol::Repeat(b, min, max) => {
            (min..=max.min(LONGEST)).for_each(|n| letters[number(&vec![b; n])] = true);
            &letters
        }
    };
    cuts().iter().map(|cuts| cuts.iter().any(|cut| left[cut.0] && right[cut.1])).collect()
}

fn vocabulary(tokens: &[&[u8]], stop: &[u32], special: &[u32]) -> Vocabulary {
    let mut offsets = vec![0];
    let mut blob = Vec::new();
    for token in tokens {
        blob.extend_from_slice(token);
        offsets.push(blob.len() as u32);
    }
    Vocabulary::new(blob, offsets, stop, special).expect("a vocabulary")
}

fn grammar(text: &str) -> Grammar {
    let root = text.split(' ').next().expect("a rule");
    parse(text, root, &Limits::default()).expect("well-formed")
}

fn folded(
    grammar: &Grammar,
    vocabulary: &Vocabulary,
    options: &ClassOptions,
) -> Result<(TokenClasses, ClassStats)> {
    compile(grammar, vocabulary, options, &Interrupt::default())
}

/// For each token the contexts (before, after) in which it makes a string, as bits.
fn uses(language: &[bool], token: &[u8], contexts: &[Vec<u8>]) -> Vec<bool> {
    let before = contexts.iter();
    before
        .flat_map(|u| contexts.iter().map(move |v| number(&[u, token, v].concat())))
        .map(|whole| language[whole])
        .collect()
}

proptest! {
    /// Also where budgets are too small for the grammar: then there are more classes, never wrong
    /// ones.
    #[test]
    fn members_stand_for_each_other(
        rules in rules(),
        prune: bool,
        inline_budget in prop::sample::select(vec![0, 20, 200, 10_000]),
        max_token_work in prop_oneof![2 => Just(200_000u64), 1 => 1..60u64],
        max_total_work in prop_oneof![2 => Just(15_000_000u64), 1 => 1..2_000u64],
    ) {
        let text = text(&rules);
        let tokens = words(TOKEN);
        let bytes: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
        let vocabulary = vocabulary(&bytes, &[], &[]);
        let limits = Limits { max_token_work, max_total_work, ..Limits::default() };
        let options = ClassOptions { prune, inline_budget, limits, ..ClassOptions::default() };
        let (classes, stats) = match folded(&grammar(&text), &vocabulary, &options) {
            Ok(folded) => folded,
            Err(Error::Unsupported { .. }) if prune => {
                prop_assert!(!languages(&rules)[0].contains(&true), "{}", text);
                return Ok(());
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        };
        let language = &languages(&rules)[0];
        let contexts = words(CONTEXT);
        let mut first_of: BTreeMap<i32, (usize, Vec<bool>)> = BTreeMap::new();
        prop_assert_eq!(classes.class_of[0], -1, "the empty token");
        for (id, token) in tokens.iter().enumerate().skip(1) {
            let class = classes.class_of[id];
            let here = uses(language, token, &contexts);
            if class == -1 {
                prop_assert!(!here.contains(&true), "{}token {:?} is not dead", text, token);
                continue;
            }
            let (other, there) = first_of.entry(class).or_insert_with(|| (id, here.clone()));
            prop_assert!(
                *there == here,
                "{}prune {}: tokens {:?} and {:?} are in one class ({:?})",
                text, prune, tokens[*other], token, stats
            );
        }
        prop_assert_eq!(first_of.len(), classes.representatives.len());
        // Numbered by their lowest token.
        let order: Vec<usize> = first_of.values().map(|first| first.0).collect();
        prop_assert!(order.windows(2).all(|w| w[0] < w[1]));
    }

    /// Adding tokens, or the order of ids, does not change who is with whom.
    #[test]
    fn classes_do_not_depend_on_ids(rules in rules(), prune: bool, seed in any::<prop::sample::Index>()) {
        let grammar = grammar(&text(&rules));
        let options = ClassOptions { prune, ..ClassOptions::default() };
        let tokens = words(2);
        let bytes: Vec<&[u8]> = tokens.iter().skip(1).map(Vec::as_slice).collect();
        let by = seed.index(bytes.len());
        let mut turned = bytes.clone();
        turned.rotate_left(by);
        let a = folded(&grammar, &vocabulary(&bytes, &[], &[]), &options);
        let b = folded(&grammar, &vocabulary(&turned, &[], &[]), &options);
        let (Ok((a, _)), Ok((b, _))) = (a, b) else { return Ok(()) };
        let mut pairs: BTreeMap<i32, i32> = BTreeMap::new();
        for id in 0..bytes.len() {
            let there = b.class_of[(id + bytes.len() - by) % bytes.len()];
            let known = *pairs.entry(a.class_of[id]).or_insert(there);
            prop_assert_eq!(known, there);
        }
        prop_assert_eq!(a.representatives.len(), b.representatives.len());
    }
}

const NESTED: &str = "root ::= \"(\" root \")\" | \"[\" root \"]\" | [a-z]+";

#[test]
fn numbers_and_representatives() {
    let tokens: [&[u8]; 12] =
        [b"xyz", b"(", b"</s>", b"ab", b"", b"c", b"<pad>", b"#", b"d", b"(", b"<eot>", b"))"];
    let vocabulary = vocabulary(&tokens, &[10, 2], &[6]);
    let (classes, stats) =
        folded(&grammar(NESTED), &vocabulary, &ClassOptions::default()).expect("folded");
    assert_eq!(classes.class_of, [0, 1, 3, 0, -1, 0, -1, -1, 0, 1, 4, 2]);
    assert_eq!(classes.representatives, [5, 1, 11, 2, 10], "shortest, then lowest");
    assert_eq!(classes.num_stop_classes, 2);
    assert_eq!((stats.dead_tokens, stats.over_budget_tokens), (1, 0));
}

/// The place after `b` may be passed over without reading: beneath a frame of `b` stands not only
/// that place, but whatever stands beneath it. The recursion keeps both rules from being inlined.
#[test]
fn frames_that_are_passed_over() {
    let text = "root ::= \"1\" a \"2\" | \"3\" a \"4\"\na ::= \"x\" b \"y\"? | \"(\" a \")\"\n\
                b ::= \"p\" b \"q\" | \"r\"";
    let tokens: [&[u8]; 8] = [b"q", b"q2", b"q4", b"qy", b"qy2", b"q)", b"q)4", b"qqy))"];
    for (prune, inline_budget) in [(true, 20), (false, 20), (true, 0)] {
        let options = ClassOptions { prune, inline_budget, ..ClassOptions::default() };
        let (classes, _) =
            folded(&grammar(text), &vocabulary(&tokens, &[], &[]), &options).expect("folded");
        assert_eq!(classes.class_of, [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

/// Ids with the same bytes stay together when there is no work to spend.
#[test]
fn doubles_stay_together_over_budget() {
    let tokens: [&[u8]; 6] = [b"((", b"a", b"((", b"))", b"a", b"(("];
    let limits = Limits { max_token_work: 1, max_total_work: 1, ..Limits::default() };
    let options = ClassOptions { limits, ..ClassOptions::default() };
    let (classes, stats) =
        folded(&grammar(NESTED), &vocabulary(&tokens, &[], &[]), &options).expect("folded");
    assert!(stats.over_budget_tokens > 0);
    let of = |id: usize| classes.class_of[id];
    assert_eq!((of(0), of(1)), (of(2), of(4)));
    assert_eq!(of(0), of(5));
    assert_ne!(of(0), of(3));
}

#[test]
fn progress_is_heard() {
    let tokens: Vec<Vec<u8>> = (0..20_000).map(|i| format!("{i}").into_bytes()).collect();
    let bytes: Vec<&[u8]> = tokens.iter().map(Vec::as_slice).collect();
    let vocabulary = vocabulary(&bytes, &[], &[]);
    let grammar = grammar("root ::= [0-9] root [0-9] | [0-9]");
    let run = |stop: usize| {
        let hearing = Arc::new(Hearing { reports: Mutex::default(), stop });
        let interrupt = Interrupt::default().with_observer(hearing.clone());
        let outcome = compile(&grammar, &vocabulary, &ClassOptions::default(), &interrupt);
        (outcome.map(drop), hearing.reports.lock().expect("no panic").clone())
    };
    let (outcome, reports) = run(usize::MAX);
    assert_eq!(outcome, Ok(()));
    assert!(reports.len() > 4);
    assert!(reports.windows(2).all(|w| w[0].0 <= w[1].0));
    assert!(reports.iter().all(|&(done, total)| total == 20_000 && done <= total));
    assert_eq!(reports.last().map(|report| report.0), Some(20_000));
    // An observer that ends the work is obeyed, at every report.
    for stop in 0..reports.len() {
        let (outcome, heard) = run(stop);
        assert_eq!(outcome, Err(Error::Cancelled), "at report {stop}");
        assert_eq!(heard.len(), stop + 1);
    }
}

/// Keeps what it hears, and ends the work after so many reports.
struct Hearing {
    reports: Mutex<Vec<(usize, usize)>>,
    stop: usize,
}

impl Observer for Hearing {
    fn go_on(&self) -> bool {
        true
    }

    fn progress(&self, done: usize, total: usize) -> bool {
        let mut reports = self.reports.lock().expect("no panic");
        reports.push((done, total));
        reports.len() <= self.stop
    }
}

/// The error of folding under limits.
fn limit(text: &str, limits: Limits) -> (&'static str, u64) {
    let tokens: [&[u8]; 3] = [b"a", b"ab", b"aaaaaaaa"];
    let options = ClassOptions { limits, ..ClassOptions::default() };
    match folded(&grammar(text), &vocabulary(&tokens, &[], &[]), &options) {
        Err(Error::Limit { limit, value, message }) => {
            assert!(!message.is_empty());
            (limit, value)
        }
        other => panic!("{:?}", other.map(|f| f.0)),
    }
}

#[test]
fn limits_are_named() {
    let defaults = Limits::default;
    assert_eq!(
        limit("root ::= \"abcdefghij\"", Limits { max_network_states: 5, ..defaults() }),
        ("max_network_states", 5)
    );
    assert_eq!(
        limit("root ::= \"abcdefghij\"", Limits { max_network_edges: 5, ..defaults() }),
        ("max_network_edges", 5)
    );
    // The grammar's own adjacency, not only its edges.
    let calls: String =
        (0..40).map(|i| format!("| \"{i}\" root [a-{}] ", (b'a' + i % 26) as char)).collect();
    let text = format!("root ::= \"x\" root \"y\" {calls}| \"z\"");
    assert_eq!(
        limit(&text, Limits { max_network_edges: 150, ..defaults() }),
        ("max_network_edges", 150)
    );
}

/// A bound on memory gives classes of their own to the tokens that no longer fit.
#[test]
fn a_full_automaton_is_over_budget() {
    let tokens: [&[u8]; 4] = [b"a", b"b", b"ab", b"(("];
    let limits = Limits { max_automaton_bytes: 1, ..Limits::default() };
    let options = ClassOptions { limits, ..ClassOptions::default() };
    match folded(&grammar(NESTED), &vocabulary(&tokens, &[], &[]), &options) {
        Ok((classes, stats)) => {
            assert!(stats.over_budget_tokens > 0);
            assert_ne!(classes.class_of[3], classes.class_of[0]);
        }
        Err(error) => {
            assert!(matches!(error, Error::Limit { limit: "max_automaton_bytes", value: 1, .. }))
        }
    }
}

#[test]
fn classes_for_ends_alone_are_not_made_at_any_price() {
    // As many copies of what is counted are kept as a long token can read.
    let vocabulary = vocabulary(&[b"a", b"b", &[b'a'; 99], b"</s>"], &[3], &[]);
    let grammar = grammar("root ::= (\"a\"{0,120} \"b\"?){0,120} \"a\"");
    let made = |for_ends: bool| {
        let options = ClassOptions { for_ends, ..ClassOptions::default() };
        compile(&grammar, &vocabulary, &options, &Interrupt::default())
    };
    let (_, stats) = made(false).expect("within the default limits");
    assert!(stats.network_work > 5_000_000, "{}", stats.network_work);
    let limit = made(true).expect_err("rows over all tokens cost less");
    assert!(matches!(limit, Error::Limit { limit: "max_network_work", .. }), "{limit}");
}
