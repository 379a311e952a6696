//! Tests of languages: random expressions, and a slow oracle that knows which short texts over few
//! characters are in them.
//!
//! - `algebra`: operations and canonical forms
//! - `spellings`: automata over bytes against a decoder
//! - `bounds`: limits and interrupts

mod algebra;
mod bounds;
mod spellings;

use super::*;
use crate::budget::Interrupt;
use crate::limits::Limits;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Characters of one to four bytes, among them the last scalar value and those beside the
/// surrogates.
const LETTERS: [char; 6] = ['a', 'b', 'é', '\u{D7FF}', '\u{E000}', '\u{10FFFF}'];

fn unbounded() -> Budget {
    let limits = Limits { max_network_work: u64::MAX, ..Limits::default() };
    Budget::new(&limits, &Interrupt::default())
}

fn within(budget: &Budget) -> Bounds<'_> {
    Bounds { budget, max_states: 100_000 }
}

/// All texts of up to so many letters.
fn universe(most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..most {
        last = last.iter().flat_map(|t| LETTERS.iter().map(move |c| format!("{t}{c}"))).collect();
        all.extend(last.iter().cloned());
    }
    all
}

/// An expression, with its language among the short texts as the oracle sees it.
#[derive(Clone, Debug)]
enum Expression {
    Set(Vec<char>, bool),
    Texts(Vec<String>),
    Lengths(u32, Option<u32>),
    Complement(Box<Expression>),
    Both(Operator, Box<Expression>, Box<Expression>),
    Repeat(Box<Expression>, u32, Option<u32>),
    ByNfa(Box<Expression>),
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    And,
    Or,
    Without,
    Then,
}

const MOST: usize = 4;

fn expressions(letters: &'static [char]) -> impl Strategy<Value = Expression> {
    let letter = || proptest::sample::select(letters);
    let text = proptest::collection::vec(letter(), 0..4);
    let text = text.prop_map(|letters| letters.into_iter().collect::<String>());
    let leaf = prop_oneof![
        (proptest::collection::vec(letter(), 0..4), any::<bool>())
            .prop_map(|(set, is_negated)| Expression::Set(set, is_negated)),
        proptest::collection::vec(text, 0..5).prop_map(Expression::Texts),
        (0u32..3, proptest::option::of(0u32..4))
            .prop_map(|(min, max)| Expression::Lengths(min, max)),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let operators = [Operator::And, Operator::Or, Operator::Without, Operator::Then];
        let operator = proptest::sample::select(operators.to_vec());
        prop_oneof![
            inner.clone().prop_map(|a| Expression::Complement(a.into())),
            (operator, inner.clone(), inner.clone()).prop_map(|(o, a, b)| Expression::Both(
                o,
                a.into(),
                b.into()
            )),
            (inner.clone(), 0u32..3, proptest::option::of(0u32..4))
                .prop_map(|(a, min, max)| Expression::Repeat(a.into(), min, max)),
            inner.prop_map(|a| Expression::ByNfa(a.into())),
        ]
    })
}

fn set_of(letters: &[char], is_negated: bool) -> CharSet {
    let set = CharSet::new(letters.iter().map(|&c| (c as u32, c as u32)));
    if is_negated { set.complement() } else { set }
}

impl Expression {
    fn dfa(&self, bounds: &Bounds<'_>) -> Dfa {
        let result = match self {
            Expression::Set(letters, is_negated) => {
                Ok(Dfa::character(&set_of(letters, *is_negated)))
            }
            Expression::Texts(texts) => Dfa::texts(texts.iter().map(String::as_str), bounds),
            Expression::Lengths(min, max) => Dfa::lengths(*min, *max, bounds),
            Expression::Complement(a) => Ok(a.dfa(bounds).complement()),
            Expression::Both(operator, a, b) => {
                let (a, b) = (a.dfa(bounds), b.dfa(bounds));
                match operator {
                    Operator::And => a.intersection(&b, bounds),
                    Operator::Or => a.union(&b, bounds),
                    Operator::Without => a.difference(&b, bounds),
                    Operator::Then => a.concatenation(&b, bounds),
                }
            }
            Expression::Repeat(a, min, max) => a.dfa(bounds).repetition(*min, *max, bounds),
            Expression::ByNfa(a) => {
                let mut nfa = ScalarNfa::new();
                let (start, end) = (nfa.add_state(), nfa.add_state());
                nfa.add_start(start);
                nfa.set_final(end);
                nfa.add_dfa(start, &a.dfa(bounds), end);
                Dfa::from_nfa(&nfa, bounds)
            }
        };
        result.expect("within bounds")
    }

    /// The texts of the universe that are in the language.
    fn texts(&self, universe: &[String]) -> BTreeSet<String> {
        let keep = |test: &dyn Fn(&str) -> bool| -> BTreeSet<String> {
            universe.iter().filter(|text| test(text)).cloned().collect()
        };
        match self {
            Expression::Set(letters, is_negated) => keep(&|text| {
                let mut chars = text.chars();
                chars.next().is_some_and(|c| letters.contains(&c) != *is_negated)
                    && chars.next().is_none()
            }),
            Expression::Texts(texts) => keep(&|text| texts.iter().any(|known| known == text)),
            Expression::Lengths(min, max) => keep(&|text| {
                let length = text.chars().count() as u32;
                *min <= length && max.is_none_or(|max| length <= max)
            }),
            Expression::Complement(a) => {
                let a = a.texts(universe);
                keep(&|text| !a.contains(text))
            }
            Expression::Both(operator, a, b) => {
                let (a, b) = (a.texts(universe), b.texts(universe));
                match operator {
                    Operator::And => keep(&|text| a.contains(text) && b.contains(text)),
                    Operator::Or => keep(&|text| a.contains(text) || b.contains(text)),
                    Operator::Without => keep(&|text| a.contains(text) && !b.contains(text)),
                    Operator::Then => then(&a, &b),
                }
            }
            Expression::Repeat(a, min, max) => {
                let a = a.texts(universe);
                let mut power = BTreeSet::from([String::new()]);
                let mut out = BTreeSet::new();
                // Texts without the empty one grow, and with it powers grow: more of them than
                // letters plus `min` add nothing.
                for count in 0..=max.unwrap_or(*min + MOST as u32) {
                    if count >= *min {
                        out.extend(power.iter().cloned());
                    }
                    power = then(&power, &a);
                }
                out
            }
            Expression::ByNfa(a) => a.texts(universe),
        }
    }
}

fn then(a: &BTreeSet<String>, b: &BTreeSet<String>) -> BTreeSet<String> {
    let length = |text: &str| text.chars().count();
    let mut out = BTreeSet::new();
    for x in a {
        let left = MOST - length(x);
        out.extend(b.iter().filter(|y| length(y) <= left).map(|y| format!("{x}{y}")));
    }
    out
}
