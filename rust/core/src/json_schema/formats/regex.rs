//! `regex`: patterns of ECMA-262 that are valid under the flag `u`.
//!
//! Brackets nest, so the language is context-free: one rule, which calls itself between the
//! brackets of a group, over parts that are regular. Every valid pattern that is not
//! narrowed away has one derivation.
//!
//! Narrowed: no names of groups and no references back to groups, since what they name must be
//! there; no flags within a group; no `\0`; of surrogates no escapes; in a class, `[` is escaped, a
//! hyphen for itself stands first or last, and a range goes from a character to a later one that
//! [`ranges`] knows; counts have at most three digits, without zeros before them, and the least and
//! the most of three digits each differ in the first; of properties those that [`PROPERTIES`] and
//! [`SCRIPTS`] list.

use super::MAX_STATES;
use super::abnf::{
    AbnfRule, any_number, any_of, choice, class, exactly, hex_digit, none_of, one_of, optional,
    repeated, sequence, texts,
};
use crate::budget::{Budget, Interrupt};
use crate::error::{Position, Result};
use crate::grammar::{CharSet, Expr, GrammarBuilder};
use crate::ids::{ExprId, RuleId};
use crate::limits::Limits;
use crate::regular::{Bounds, Dfa};
use std::sync::OnceLock;

/// `SyntaxCharacter`, and the slash: an escape of one of them is the character.
const SYNTAX: &str = "^$\\.*+?()[]{}|/";

/// Values of `General_Category`, and binary properties.
const PROPERTIES: [&str; 45] = [
    "L",
    "Lu",
    "Ll",
    "Lt",
    "Lm",
    "Lo",
    "M",
    "Mn",
    "Mc",
    "Me",
    "N",
    "Nd",
    "Nl",
    "No",
    "P",
    "Pc",
    "Pd",
    "Ps",
    "Pe",
    "Pi",
    "Pf",
    "Po",
    "S",
    "Sm",
    "Sc",
    "Sk",
    "So",
    "Z",
    "Zs",
    "Zl",
    "Zp",
    "Cc",
    "Cf",
    "Letter",
    "Number",
    "Punctuation",
    "Symbol",
    "Any",
    "ASCII",
    "Alphabetic",
    "Lowercase",
    "Uppercase",
    "White_Space",
    "ID_Start",
    "ID_Continue",
];

/// Values of `Script`.
const SCRIPTS: [&str; 12] = [
    "Arabic",
    "Armenian",
    "Cyrillic",
    "Devanagari",
    "Greek",
    "Han",
    "Hangul",
    "Hebrew",
    "Hiragana",
    "Katakana",
    "Latin",
    "Thai",
];

/// First characters of blocks beyond ASCII. A range goes from a block to a later one.
const BLOCKS: [u32; 14] = [
    0x80, 0xC1, 0x100, 0x250, 0x370, 0x3B1, 0x400, 0x430, 0x590, 0x3041, 0x30A1, 0x4E00, 0x9000,
    0xAC01,
];

/// The regular parts of a pattern.
pub(super) struct RegexParts {
    /// What has no group: a character or a class and its quantifier, an anchor, a bar.
    pub(super) flat: Dfa,
    /// What opens a group, and what closes one.
    pub(super) group: (Dfa, Dfa),
    /// What opens a lookaround, and what closes one.
    pub(super) look: (Dfa, Dfa),
}

/// Adds the right-hand side of the rule `rule`, whose language is that of the patterns.
///
/// `leaf` adds the expression of a regular part: its texts as they are spelled where the pattern
/// stands, in a string of JSON for example. It is called once for each of five automata.
///
/// # Errors
/// Those of `leaf`.
pub fn body(
    builder: &mut GrammarBuilder,
    rule: RuleId,
    leaf: &mut dyn FnMut(&mut GrammarBuilder, &Dfa) -> Result<ExprId>,
) -> Result<ExprId> {
    let parts = parts()?;
    let here = Position::default();
    let mut items = vec![leaf(builder, &parts.flat)?];
    for (open, close) in [&parts.group, &parts.look] {
        let open = leaf(builder, open)?;
        let within = builder.add(Expr::Rule(rule), here);
        let close = leaf(builder, close)?;
        items.push(builder.add(Expr::Sequence([open, within, close].into()), here));
    }
    let item = builder.add(Expr::Choice(items.into()), here);
    Ok(builder.add(Expr::Repeat { body: item, min: 0, max: None }, here))
}

/// The parts, made once a process.
pub(super) fn parts() -> Result<&'static RegexParts> {
    static PARTS: OnceLock<Result<RegexParts>> = OnceLock::new();
    let made = PARTS.get_or_init(|| {
        let budget = Budget::new(&Limits::default(), &Interrupt::default());
        RegexParts::new(&Bounds { budget: &budget, max_states: MAX_STATES })
    });
    made.as_ref().map_err(Clone::clone)
}

impl RegexParts {
    fn new(bounds: &Bounds<'_>) -> Result<Self> {
        let quantifier = optional(&AbnfRule::Automaton(quantifier().automaton(bounds)?));
        let atom = choice(&[
            &none_of(&SYNTAX.replace('/', "")),
            &".",
            &sequence(&[&"\\", &escape("")]),
            &class_of_characters(bounds)?,
        ]);
        let flat = choice(&[
            &sequence(&[&atom, &quantifier]),
            &one_of("^$|"),
            &sequence(&[&"\\", &one_of("bB")]),
        ]);
        let close = sequence(&[&")", &quantifier]);
        Ok(Self {
            flat: flat.automaton(bounds)?,
            group: (texts(&["(", "(?:"]).automaton(bounds)?, close.automaton(bounds)?),
            look: (
                texts(&["(?=", "(?!", "(?<=", "(?<!"]).automaton(bounds)?,
                AbnfRule::Text(")".to_owned()).automaton(bounds)?,
            ),
        })
    }
}

/// A character as a range.
fn point(one: char) -> (u32, u32) {
    (u32::from(one), u32::from(one))
}

/// A decimal digit from `least` up.
fn digit_from(least: u32) -> AbnfRule {
    class(&[(char::from_digit(least, 10).unwrap_or('9'), '9')], "")
}

/// `Quantifier`: the least count is at most the most.
fn quantifier() -> AbnfRule {
    let count = |digits: u32| sequence(&[&digit_from(1), &exactly(digits - 1, &digit_from(0))]);
    let (one, two, three) = (digit_from(0), count(2), count(3));
    let some = choice(&[&one, &two, &three]);
    let mut counts = vec![
        some.clone(),
        sequence(&[&some, &","]),
        sequence(&[&one, &",", &choice(&[&two, &three])]),
        sequence(&[&two, &",", &three]),
    ];
    for first in 0..=9 {
        let is = first.to_string();
        counts.push(sequence(&[&is.as_str(), &",", &digit_from(first)]));
        if first == 0 {
            continue;
        }
        // Of two digits: the first is less, or equal and the second is not greater.
        let same = (0..=9).map(|second: u32| {
            let text = format!("{is}{second},{is}");
            sequence(&[&text.as_str(), &digit_from(second)])
        });
        counts.extend(same);
        if first < 9 {
            for digits in [1, 2] {
                let rest = exactly(digits, &digit_from(0));
                let most = sequence(&[&digit_from(first + 1), &rest]);
                counts.push(sequence(&[&is.as_str(), &rest, &",", &most]));
            }
        }
    }
    let counted = sequence(&[&"{", &any_of(counts), &"}"]);
    sequence(&[&choice(&[&one_of("*+?"), &counted]), &optional(&"?")])
}

/// What follows a backslash that stands for a character or a class; `more` too.
fn escape(more: &str) -> AbnfRule {
    let letter = class(&[('A', 'Z'), ('a', 'z')], "");
    let hex = hex_digit();
    let script = sequence(&[&texts(&["Script=", "sc="]), &texts(&SCRIPTS)]);
    let named = choice(&[&texts(&PROPERTIES), &script]);
    // A code point has five digits or fewer, or six up to 10FFFF.
    let code_point = choice(&[
        &repeated(&hex, 1, Some(5)),
        &sequence(&[&"0", &exactly(5, &hex)]),
        &sequence(&[&"10", &exactly(4, &hex)]),
    ]);
    choice(&[
        &one_of(&format!("{SYNTAX}{more}dDsSwWfnrtv")),
        &sequence(&[&"c", &letter]),
        &sequence(&[&"x", &hex, &hex]),
        &sequence(&[&"u", &four_digits()]),
        &sequence(&[&"u{", &code_point, &"}"]),
        &sequence(&[&one_of("pP"), &"{", &named, &"}"]),
    ])
}

/// Four hexadecimal digits of no surrogate.
fn four_digits() -> AbnfRule {
    let hex = hex_digit();
    let first = class(&[('0', '9'), ('A', 'C'), ('a', 'c')], "EFef");
    let low = class(&[('0', '7')], "");
    choice(&[
        &sequence(&[&first, &exactly(3, &hex)]),
        &sequence(&[&one_of("Dd"), &low, &hex, &hex]),
    ])
}

/// `CharacterClass`.
fn class_of_characters(bounds: &Bounds<'_>) -> Result<AbnfRule> {
    let item = choice(&[
        &none_of("-[]\\"),
        &sequence(&[&"\\", &escape("-b")]),
        &AbnfRule::Automaton(ranges(bounds)?),
        &AbnfRule::Automaton(escaped_ranges(bounds)?),
    ]);
    let hyphen = optional(&"-");
    Ok(sequence(&[&"[", &optional(&"^"), &hyphen, &any_number(&item), &hyphen, &"]"]))
}

/// Ranges from a character to one that is not before it: exactly so in ASCII; beyond, between
/// [`BLOCKS`].
fn ranges(bounds: &Bounds<'_>) -> Result<Dfa> {
    // The ends of ranges, in order, each with the least symbol that may end a range from it.
    let is_plain = |one: &char| !"-[]\\".contains(*one);
    let mut symbols: Vec<CharSet> =
        (' '..='~').filter(is_plain).map(|one| CharSet::new([point(one)])).collect();
    let ascii = symbols.len();
    let ends = BLOCKS[1..].iter().map(|&next| next - 1).chain([0x10_FFFF]);
    symbols.extend(BLOCKS.into_iter().zip(ends).map(|block| CharSet::new([block])));
    let (hyphen, all) = (symbols.len() as u32, symbols.len() as u32);
    symbols.push(CharSet::new([point('-')]));
    // State 0; of each symbol, the state behind it and that behind the hyphen; the end.
    let end = 2 * all + 1;
    let mut rows = vec![(0..all).map(|symbol| (symbol, 1 + 2 * symbol)).collect()];
    for symbol in 0..all {
        let least = if (symbol as usize) < ascii { symbol } else { symbol + 1 };
        rows.push(vec![(hyphen, 2 + 2 * symbol)]);
        rows.push((least..all).map(|last| (last, end)).collect());
    }
    rows.push(Vec::new());
    let mut finals = vec![false; rows.len()];
    finals[end as usize] = true;
    Dfa::from_table(&symbols, &rows, &finals, bounds)
}

/// Ranges `\x00-\x1F` and `\u0000-\u001F` of which the first digit that differs is less: any digit
/// but the last behind `\x`, and behind `\u` the first, the second behind 0, the third behind 00.
fn escaped_ranges(bounds: &Bounds<'_>) -> Result<Dfa> {
    let hex = hex_digit();
    let digits = |from: u32, to: u32| {
        let lower = (from..to).filter_map(|value| char::from_digit(value, 16));
        let both: String = lower.flat_map(|one| [one, one.to_ascii_uppercase()]).collect();
        one_of(&both)
    };
    let mut out = Vec::new();
    for value in 0..15 {
        let (less, greater) = (digits(value, value + 1), digits(value + 1, 16));
        out.push(sequence(&[&"\\x", &less, &hex, &"-\\x", &greater, &hex]));
        for (same, rest) in [("", 3), ("0", 2), ("00", 1)] {
            let rest = exactly(rest, &hex);
            let first = sequence(&[&"\\u", &same, &less, &rest]);
            out.push(sequence(&[&first, &"-\\u", &same, &greater, &rest]));
        }
    }
    let four = sequence(&[&"\\u", &four_digits()]);
    let two = sequence(&[&"\\x", &hex, &hex]);
    let either = choice(&[&sequence(&[&four, &"-", &four]), &sequence(&[&two, &"-", &two])]);
    any_of(out).automaton(bounds)?.intersection(&either.automaton(bounds)?, bounds)
}
