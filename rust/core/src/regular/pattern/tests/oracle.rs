//! Random patterns against a slow statement of what ECMA-262 means: where matches of each part may
//! end. All texts of up to four letters are compared.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const LETTERS: [char; 5] = ['a', 'B', '\n', '-', '\u{1D6FC}'];

#[derive(Clone, Debug)]
enum Ast {
    Character(char),
    Any,
    Class { is_negated: bool, ranges: Vec<(char, char)> },
    Word { is_negated: bool },
    Start,
    End,
    Boundary { is_negated: bool },
    Sequence(Vec<Ast>),
    Choice(Vec<Ast>),
    Repeat { body: Box<Ast>, min: u32, max: Option<u32>, is_lazy: bool },
    Look { body: Box<Ast>, is_ahead: bool, is_negated: bool },
    Flag { body: Box<Ast>, letter: char, is_on: bool },
}

#[derive(Clone, Copy, Default, Debug)]
struct Modes {
    i: bool,
    m: bool,
    s: bool,
}

fn is_word(c: Option<&char>) -> bool {
    c.is_some_and(|&c| c.is_ascii_alphanumeric() || c == '_')
}

fn ends_line(c: Option<&char>) -> bool {
    c.is_none_or(|c| "\n\r\u{2028}\u{2029}".contains(*c))
}

impl Ast {
    /// The ends of the matches that begin at a place.
    fn ends(&self, text: &[char], at: usize, modes: Modes) -> BTreeSet<usize> {
        let before = at.checked_sub(1).and_then(|at| text.get(at));
        let here = text.get(at);
        let place = |holds: bool| holds.then_some(at).into_iter().collect();
        let one = |holds: &dyn Fn(char) -> bool| {
            here.filter(|&&c| holds(c)).map(|_| at + 1).into_iter().collect()
        };
        let cases = |c: char| match modes.i {
            true => vec![c.to_ascii_lowercase(), c.to_ascii_uppercase()],
            false => vec![c],
        };
        match self {
            Ast::Character(expected) => one(&|c| cases(c).contains(expected)),
            Ast::Any => one(&|c| modes.s || !ends_line(Some(&c))),
            Ast::Word { is_negated } => one(&|c| is_word(Some(&c)) != *is_negated),
            Ast::Class { is_negated, ranges } => one(&|c| {
                let holds = |c: &char| ranges.iter().any(|(low, high)| (low..=high).contains(&c));
                cases(c).iter().any(holds) != *is_negated
            }),
            Ast::Start => place(at == 0 || (modes.m && ends_line(before))),
            Ast::End => place(at == text.len() || (modes.m && ends_line(here))),
            Ast::Boundary { is_negated } => {
                place((is_word(before) != is_word(here)) != *is_negated)
            }
            Ast::Sequence(parts) => parts.iter().fold([at].into(), |known, part| {
                known.into_iter().flat_map(|at| part.ends(text, at, modes)).collect()
            }),
            Ast::Choice(parts) => {
                parts.iter().flat_map(|part| part.ends(text, at, modes)).collect()
            }
            Ast::Repeat { body, min, max, .. } => {
                let mut now: BTreeSet<usize> = [at].into();
                for _ in 0..*min {
                    now = now.into_iter().flat_map(|at| body.ends(text, at, modes)).collect();
                }
                let mut all = now.clone();
                // More passes than characters read nothing new.
                for _ in *min..max.unwrap_or(u32::MAX).min(min + text.len() as u32 + 1) {
                    now = now.into_iter().flat_map(|at| body.ends(text, at, modes)).collect();
                    all.extend(&now);
                }
                all
            }
            Ast::Look { body, is_ahead: true, is_negated } => {
                place(body.ends(text, at, modes).is_empty() == *is_negated)
            }
            Ast::Look { body, is_ahead: false, is_negated } => {
                let holds = (0..=at).any(|from| body.ends(text, from, modes).contains(&at));
                place(holds != *is_negated)
            }
            Ast::Flag { body, letter, is_on } => {
                let mut modes = modes;
                match letter {
                    'i' => modes.i = *is_on,
                    'm' => modes.m = *is_on,
                    _ => modes.s = *is_on,
                }
                body.ends(text, at, modes)
            }
        }
    }

    fn print(&self, out: &mut String) {
        let list = |parts: &[Ast], separator: &str, out: &mut String| {
            out.push_str("(?:");
            for (place, part) in parts.iter().enumerate() {
                out.push_str(if place > 0 { separator } else { "" });
                part.print(out);
            }
            out.push(')');
        };
        match self {
            Ast::Character(c) => out.push_str(&format!("\\u{{{:x}}}", *c as u32)),
            Ast::Any => out.push('.'),
            Ast::Class { is_negated, ranges } => {
                out.push_str(if *is_negated { "[^" } else { "[" });
                for (low, high) in ranges {
                    out.push_str(&format!("\\u{{{:x}}}-{high}", *low as u32).replace("--", "-\\-"));
                }
                out.push(']');
            }
            Ast::Word { is_negated } => out.push_str(if *is_negated { "\\W" } else { "\\w" }),
            Ast::Start => out.push('^'),
            Ast::End => out.push('$'),
            Ast::Boundary { is_negated } => out.push_str(if *is_negated { "\\B" } else { "\\b" }),
            Ast::Sequence(parts) => list(parts, "", out),
            Ast::Choice(parts) => list(parts, "|", out),
            Ast::Repeat { body, min, max, is_lazy } => {
                list(std::slice::from_ref(&**body), "", out);
                out.push_str(&match (min, max) {
                    (0, None) => "*".to_owned(),
                    (min, None) => format!("{{{min},}}"),
                    (min, Some(max)) => format!("{{{min},{max}}}"),
                });
                out.push_str(if *is_lazy { "?" } else { "" });
            }
            Ast::Look { body, is_ahead, is_negated } => {
                out.push_str(if *is_ahead { "(?" } else { "(?<" });
                out.push(if *is_negated { '!' } else { '=' });
                body.print(out);
                out.push(')');
            }
            Ast::Flag { body, letter, is_on } => {
                out.push_str(&format!("(?{}{letter}:", if *is_on { "" } else { "-" }));
                body.print(out);
                out.push(')');
            }
        }
    }
}

fn ast() -> impl Strategy<Value = Ast> {
    let letter = || proptest::sample::select(LETTERS.to_vec());
    let range = (letter(), letter()).prop_map(|(a, b)| (a.min(b), a.max(b)));
    let ranges = proptest::collection::vec(range, 0..3);
    let leaf = prop_oneof![
        4 => letter().prop_map(Ast::Character),
        1 => Just(Ast::Any),
        1 => (any::<bool>(), ranges).prop_map(|(is_negated, ranges)| Ast::Class { is_negated, ranges }),
        1 => any::<bool>().prop_map(|is_negated| Ast::Word { is_negated }),
        1 => Just(Ast::Start),
        1 => Just(Ast::End),
        1 => any::<bool>().prop_map(|is_negated| Ast::Boundary { is_negated }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let counts = (0u32..3, proptest::option::of(0u32..3))
            .prop_map(|(min, more)| (min, more.map(|more| min + more)));
        prop_oneof![
            3 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Ast::Sequence),
            2 => proptest::collection::vec(inner.clone(), 1..4).prop_map(Ast::Choice),
            2 => (inner.clone(), counts, any::<bool>()).prop_map(|(body, (min, max), is_lazy)| {
                Ast::Repeat { body: Box::new(body), min, max, is_lazy }
            }),
            1 => (inner.clone(), any::<bool>(), any::<bool>()).prop_map(
                |(body, is_ahead, is_negated)| Ast::Look { body: Box::new(body), is_ahead, is_negated }
            ),
            1 => (inner, proptest::sample::select(vec!['i', 'm', 's']), any::<bool>()).prop_map(
                |(body, letter, is_on)| Ast::Flag { body: Box::new(body), letter, is_on }
            ),
        ]
    })
}

/// Patterns that assert much, and look at the characters before and behind alone.
fn neighbours() -> impl Strategy<Value = Ast> {
    let letter = || proptest::sample::select(LETTERS.to_vec());
    let leaf = prop_oneof![
        4 => letter().prop_map(Ast::Character),
        1 => Just(Ast::Any),
        2 => any::<bool>().prop_map(|is_negated| Ast::Word { is_negated }),
        1 => Just(Ast::Start),
        1 => Just(Ast::End),
        4 => any::<bool>().prop_map(|is_negated| Ast::Boundary { is_negated }),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let counts = (0u32..3, proptest::option::of(0u32..4))
            .prop_map(|(min, more)| (min, more.map(|more| min + more)));
        let flag = proptest::sample::select(vec!['i', 'm', 's']);
        prop_oneof![
            4 => proptest::collection::vec(inner.clone(), 0..6).prop_map(Ast::Sequence),
            2 => proptest::collection::vec(inner.clone(), 1..4).prop_map(Ast::Choice),
            3 => (inner.clone(), counts).prop_map(|(body, (min, max))| {
                Ast::Repeat { body: Box::new(body), min, max, is_lazy: false }
            }),
            1 => (inner, flag, any::<bool>()).prop_map(|(body, letter, is_on)| {
                Ast::Flag { body: Box::new(body), letter, is_on }
            }),
        ]
    })
}

/// Whether a pattern has `\b` or `\B`, and no other assertion than `^` and `$`.
fn has_boundary(pattern: &Pattern) -> bool {
    let is_boundary = |node: &PatternNode| {
        matches!(node, PatternNode::Assert(syntax::Assertion::Boundary { .. }))
    };
    pattern.tree.nodes.iter().any(is_boundary)
}

/// All texts of up to four letters.
fn universe() -> Vec<Vec<char>> {
    let mut all = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..4 {
        let longer = |text: &Vec<char>| {
            let text = text.clone();
            LETTERS.map(|c| text.iter().copied().chain([c]).collect::<Vec<char>>())
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.iter().cloned());
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Automata and expressions say what ECMA-262 does, searched for and as whole texts.
    #[test]
    fn languages_are_those_of_the_oracle(ast in ast(), i: bool, m: bool, s: bool) {
        let mut text = String::new();
        ast.print(&mut text);
        let flags: String =
            [(i, 'i'), (m, 'm'), (s, 's')].iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
        let pattern = parse(&text, PatternDialect::Ecma, &flags).expect("printed patterns are patterns");
        prop_assert!(!pattern.is_annex_b());
        let modes = Modes { i, m, s };
        for search in [false, true] {
            let budget = budget();
            let language = pattern.to_dfa(search, &within(&budget)).expect("it is small");
            for text in universe() {
                let expected = match search {
                    true => (0..=text.len()).any(|at| !ast.ends(&text, at, modes).is_empty()),
                    false => ast.ends(&text, 0, modes).contains(&text.len()),
                };
                let text: String = text.into_iter().collect();
                prop_assert_eq!(language.accepts(&text), expected, "{:?}, search {}", text, search);
            }
            if let Some(written) = written(&pattern, search) {
                prop_assert!(pattern.is_plain() || has_boundary(&pattern));
                prop_assert_eq!(&written, &language);
            }
            if let Some(pieces) = pattern.pieces(search, 0) {
                let mut joined = Dfa::empty_string();
                for piece in &pieces {
                    let piece = piece.to_dfa(false, &within(&budget)).expect("it is small");
                    joined = joined.concatenation(&piece, &within(&budget)).expect("it is small");
                }
                prop_assert_eq!(joined, language, "in pieces, search {}", search);
            }
        }
    }

    /// Kinds of characters and formulas make one automaton of a pattern that looks at neighbours alone.
    #[test]
    fn kinds_and_formulas_agree(ast in neighbours(), i: bool, m: bool) {
        let mut text = String::new();
        ast.print(&mut text);
        let flags = [(i, "i"), (m, "m")].map(|(is_on, flag)| if is_on { flag } else { "" }).concat();
        let pattern = parse(&text, PatternDialect::Ecma, &flags).expect("printed patterns are patterns");
        for search in [false, true] {
            let budget = budget();
            let bounds = within(&budget);
            let by_kinds = kinds::automaton(&pattern.tree, search, &bounds).expect("it is small");
            let by_formulas = residual::automaton(&pattern.tree, search, &bounds).expect("it is small");
            prop_assert_eq!(by_kinds, Some(by_formulas.clone()), "{}, search {}", text, search);
            if let Some(written) = written(&pattern, search) {
                prop_assert_eq!(written, by_formulas, "{}, search {}, written", text, search);
            }
        }
    }
}
