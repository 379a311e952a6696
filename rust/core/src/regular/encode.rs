//! Automata over the bytes by which texts are written.

use super::alphabet::LAST;
use super::dfa::Dfa;
use super::merge::merge_nodes;
use super::spell::{Digits, SpellEdge, SpellNodes, hexadecimal, within};
use super::table::DEAD;
use super::{Bounds, CharSet};
use crate::budget::{Budget, Interrupt};
use crate::error::Result;
use crate::grammar::{ByteAutomaton, Described};
use crate::limits::Limits;

/// How texts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// In UTF-8.
    Utf8,
    /// As the inside of a JSON string, in UTF-8.
    Json(JsonEscapes),
}

/// Which escapes are allowed in a JSON string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonEscapes {
    /// Those that are needed: `\"` and `\\`; `\b`, `\f`, `\n`, `\r`, `\t`; `\u00xx` for the other
    /// control characters, with hexadecimal digits of either case. All else stands for itself.
    Plain,
    /// Besides `\/`, and `\uxxxx` for each scalar value, as a pair of surrogates above U+FFFF. A
    /// surrogate never stands alone.
    Any,
}

/// Characters with an escape of one letter, and the letter.
const SHORT: [(u32, u8); 7] = [
    (0x08, b'b'),
    (0x09, b't'),
    (0x0A, b'n'),
    (0x0C, b'f'),
    (0x0D, b'r'),
    (0x22, b'"'),
    (0x5C, b'\\'),
];

/// The automaton over bytes of the spellings of all texts of a language. It is deterministic and
/// minimal, and the same for equal languages. The states of the language keep their numbers; behind them stand
/// those within a character.
///
/// # Errors
/// [`crate::error::Error::Limit`] and what ends the work.
pub fn encode(dfa: &Dfa, spelling: Spelling, bounds: &Bounds<'_>) -> Result<Described> {
    let mut nodes = SpellNodes::new(dfa.len());
    let mut bytes: Vec<(u32, u8, u8, u32)> = Vec::new();
    for q in 0..dfa.len() {
        let ranges = dfa.ranges(q);
        let (before, begun) = (nodes.num_edges(), nodes.begin());
        match spelling {
            Spelling::Utf8 => utf8(&mut nodes, &ranges),
            Spelling::Json(escapes) => json(&mut nodes, &ranges, escapes),
        }
        let row = nodes.state_row(begun);
        bounds.budget.spend(1 + ranges.len() + row.len() + nodes.num_edges() - before)?;
        bounds.check(dfa.num_states() + nodes.len())?;
        bytes.extend(row.into_iter().map(|(a, b, to)| (q, a, b, to)));
    }
    bytes.extend(nodes.edges());
    let finals = (0..dfa.len()).filter(|&q| dfa.is_final(q)).collect();
    let states = dfa.len() + nodes.len() as u32;
    let automaton = Described { states, start: 0, finals, bytes, calls: Vec::new() };
    match spelling {
        Spelling::Utf8 => Ok(automaton),
        Spelling::Json(_) => merge_nodes(automaton, dfa.len(), bounds),
    }
}

/// The automaton over bytes of the spellings of all texts of a language in a JSON string, with the
/// quotation mark at its end, where the language has all texts that begin otherwise than some: where the
/// characters that no state names lead to the state in which all texts are. It is deterministic and
/// minimal. Most states lead there with most characters; they list the others, and fall back.
///
/// # Errors
/// As [`encode`].
pub fn encode_all_but(
    dfa: &Dfa,
    escapes: JsonEscapes,
    bounds: &Bounds<'_>,
) -> Result<Option<ByteAutomaton>> {
    let Some(all) = (1..dfa.len()).find(|&q| dfa.accepts_all_from(q)) else { return Ok(None) };
    if (0..dfa.len()).any(|q| dfa.default(q) != all) {
        return Ok(None);
    }
    let end = dfa.len();
    let mut nodes = SpellNodes::new(end + 1);
    let mut bytes: Vec<(u32, u8, u8, u32)> = Vec::with_capacity(4 * dfa.num_edges());
    let mut falls_back = vec![false; end as usize];
    for q in 0..dfa.len() {
        let (before, begun) = (nodes.num_edges(), bytes.len());
        let named = if q != 0 && dfa.is_final(q) { plain_edges(dfa, q, &mut nodes) } else { None };
        match named.filter(|named| !named.is_empty()) {
            Some(named) => {
                falls_back[q as usize] = true;
                bytes.extend(named.into_iter().map(|(a, b, to)| (q, a, b, to)));
            }
            None => {
                let begun = nodes.begin();
                json(&mut nodes, &dfa.ranges(q), escapes);
                if dfa.is_final(q) {
                    nodes.row().push((b'"', b'"', end));
                }
                let row = nodes.state_row(begun);
                bytes.extend(row.into_iter().map(|(a, b, to)| (q, a, b, to)));
            }
        }
        bounds.budget.spend(1 + bytes.len() - begun + nodes.num_edges() - before)?;
        bounds.check(dfa.num_states() + nodes.len())?;
    }
    bytes.extend(nodes.edges());
    let mut finals = vec![false; dfa.num_states() + 1 + nodes.len()];
    finals[end as usize] = true;
    falls_back.resize(finals.len(), false);
    Ok(Some(ByteAutomaton {
        start: 0,
        finals: finals.into(),
        bytes: bytes.into(),
        parts: Box::default(),
        guards: Box::default(),
        counts: None,
        counts_tokens: false,
        has_copies: false,
        falls_back: falls_back.into(),
        fallback: all,
    }))
}

/// The bytes by which a state leads elsewhere than the rest of the characters does, where each is a
/// character that stands for itself.
fn plain_edges(dfa: &Dfa, q: u32, nodes: &mut SpellNodes) -> Option<Vec<SpellEdge>> {
    let classes = dfa.class_ranges();
    let edges = || {
        let row = dfa.row(q).iter();
        row.flat_map(|&(class, to)| classes.of(class).iter().map(move |&(a, b)| (a, b, to)))
    };
    let is_plain = |(first, last, to): (u32, u32, u32)| {
        to != DEAD
            && (0x20..=0x7F).contains(&first)
            && last <= 0x7F
            && ![0x22, 0x5C].iter().any(|quoted| (first..=last).contains(quoted))
    };
    if !edges().all(is_plain) {
        return None;
    }
    let begun = nodes.begin();
    nodes.row().extend(edges().map(|(first, last, to)| (first as u8, last as u8, to)));
    Some(nodes.state_row(begun))
}

/// The automaton over bytes of the spellings of one character of the set. Surrogates in the set
/// count for nothing.
pub fn encode_character(set: &CharSet, spelling: Spelling) -> Described {
    let limits = Limits { max_network_work: u64::MAX, ..Limits::default() };
    let budget = Budget::new(&limits, &Interrupt::default());
    let bounds = Bounds { budget: &budget, max_states: usize::MAX };
    encode(&Dfa::character(set), spelling, &bounds).expect("nothing bounds it")
}

/// Adds the edges of a state that read the code points of `ranges` in UTF-8.
fn utf8(nodes: &mut SpellNodes, ranges: &[(u32, u32, u32)]) {
    for &(first, last, to) in within(ranges, 0, 0x7F) {
        nodes.row().push((first as u8, last.min(0x7F) as u8, to));
    }
    // Continuation bytes, the code points that have so many, and the lead byte of code point 0 if
    // it were one of them.
    let lengths = [(1, 0x80, 0x7FF, 0xC0), (2, 0x800, 0xFFFF, 0xE0), (3, 0x1_0000, LAST, 0xF0)];
    for (len, first, last, lead) in lengths {
        let clipped = within(ranges, first, last).iter();
        let clipped: Vec<_> = clipped.map(|&(a, b, to)| (a.max(first), b.min(last), to)).collect();
        if clipped.is_empty() {
            continue;
        }
        nodes.runs(Digits::Continuation, len, (0, last), &clipped, |first, last, to, row| {
            row.push((lead + first as u8, lead + last as u8, to));
        });
    }
}

/// Adds the edges of a state that read the code points of `ranges` inside a JSON string.
fn json(nodes: &mut SpellNodes, ranges: &[(u32, u32, u32)], escapes: JsonEscapes) {
    let mut raw: Vec<(u32, u32, u32)> = Vec::with_capacity(ranges.len() + 2);
    for &(first, last, to) in ranges {
        let mut next = first.max(0x20);
        for quoted in [0x22, 0x5C] {
            if (next..=last).contains(&quoted) {
                raw.push((next, quoted.wrapping_sub(1), to));
                next = quoted + 1;
            }
        }
        raw.push((next, last, to));
    }
    raw.retain(|range| range.0 <= range.1);
    utf8(nodes, &raw);

    let target = |c: u32| within(ranges, c, c).first().map_or(DEAD, |range| range.2);
    let begun = nodes.begin();
    let digits = match escapes {
        JsonEscapes::Plain => {
            let controls = within(ranges, 0, 0x1F).iter().map(|&(a, b, to)| (a, b.min(0x1F), to));
            let mut long = Vec::new();
            for (a, b, to) in controls {
                let has_no_letter = |c: &u32| SHORT.iter().all(|short| short.0 != *c);
                long.extend((a..=b).filter(has_no_letter).map(|c| (c, c, to)));
            }
            nodes.block(Digits::Hexadecimal, 4, 0, &long)
        }
        JsonEscapes::Any => {
            nodes.row().push((b'/', b'/', target(u32::from(b'/'))));
            any_digits(nodes, ranges)
        }
    };
    nodes.row().extend(SHORT.map(|(c, letter)| (letter, letter, target(c))));
    nodes.row().push((b'u', b'u', digits));
    let node = nodes.node(begun);
    nodes.row().push((b'\\', b'\\', node));
}

/// The node behind `\u`, where every scalar value may be written so.
fn any_digits(nodes: &mut SpellNodes, ranges: &[(u32, u32, u32)]) -> u32 {
    let begun = nodes.begin();
    nodes.runs(Digits::Hexadecimal, 3, (0, 0xCFFF), ranges, hexadecimal);
    // D000 to D7FF, then pairs of surrogates.
    let behind_d = nodes.begin();
    nodes.runs(Digits::Hexadecimal, 2, (0xD000, 0xD7FF), ranges, hexadecimal);
    nodes.runs(Digits::HighSurrogate, 2, (0x1_0000, LAST), ranges, |first, last, to, row| {
        hexadecimal(8 + first, 8 + last, to, row);
    });
    let node = nodes.node(behind_d);
    hexadecimal(0xD, 0xD, node, nodes.row());
    nodes.runs(Digits::Hexadecimal, 3, (0xE000, 0xFFFF), ranges, |first, last, to, row| {
        hexadecimal(0xE + first, 0xE + last, to, row);
    });
    nodes.node(begun)
}
