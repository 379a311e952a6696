//! `hostname` (RFC 1123, section 2.1), `email` (RFC 5321, section 4.1.2), `idn-hostname`, `idn-email` and
//! `name-email`.
//!
//! A label has at most 63 characters and a name at most 253. An automaton that counts both exactly
//! needs a state for nearly each pair of counts, some 25,000. So the first labels of a name are
//! charged as if they were as long as they may be, and only what follows is counted exactly.

use super::abnf::{
    AbnfRule, alphanumeric, any_number, choice, class, optional, repeated, sequence,
};
use super::address;
use crate::error::Result;
use crate::grammar::CharSet;
use crate::regular::pattern::{PatternDialect, parse};
use crate::regular::{Bounds, Dfa};
use std::collections::HashMap;

/// The most characters of a label.
const LABEL: u32 = 63;

/// A name of 253 characters or fewer, of labels that neither begin nor end with a hyphen.
///
/// Narrowed: at most 66 characters follow the third dot (a name of the reverse tree of IPv6 fits),
/// at most 124 with the third label, which leaves room for two full labels before it; no dot stands
/// at the end; and no label has hyphens in its third and fourth place. RFC 5890 reserves those for
/// encodings: what follows `xn--` must decode to a valid name, which no automaton tells.
pub(super) fn hostname(bounds: &Bounds<'_>) -> Result<Dfa> {
    Host { charged: 3, most: 253, rest: 66 }.automaton(bounds)
}

/// `Mailbox`: at most 64 characters stand before the at-sign, and at most 254 in all.
///
/// Narrowed: the domain is a host name with at most 63 characters behind its first dot, otherwise
/// as [`hostname`]; an address in brackets is one of IPv4, without zeros before its numbers, or one
/// of IPv6 behind `IPv6:` in this spelling; and in quotation marks a space has no backslash, which
/// not all validators read.
pub(super) fn email(bounds: &Bounds<'_>) -> Result<Dfa> {
    let domain = Host { charged: 1, most: 127, rest: 63 }.automaton(bounds)?;
    // RFC 5321 lets `::` stand for two groups or more.
    let six = sequence(&[&"IPv6:", &address::ipv6_with(2)]);
    let literal = choice(&[&address::ipv4(), &six]);
    let literal = sequence(&[&"[", &literal, &"]"]);
    let domain = choice(&[&AbnfRule::Automaton(domain), &literal]);
    sequence(&[&AbnfRule::Automaton(local_part(bounds)?), &"@", &domain]).automaton(bounds)
}

/// A mailbox behind a name and in angle brackets, or alone (RFC 5322, section 3.4, and RFC 6532).
///
/// Narrowed: the mailbox as [`email`]; the name is words with one space between them, of the
/// characters of an atom and of letters of any script, without quotation marks.
pub(super) fn name_email(bounds: &Bounds<'_>) -> Result<Dfa> {
    let character = choice(&[&alphanumeric(ATOM), &letter(bounds)?]).automaton(bounds)?;
    let word = repeated(&AbnfRule::Automaton(character), 1, None);
    let name = sequence(&[&word, &any_number(&sequence(&[&" ", &word]))]);
    let mailbox = AbnfRule::Automaton(email(bounds)?);
    choice(&[&mailbox, &sequence(&[&name, &" <", &mailbox, &">"])]).automaton(bounds)
}

/// A host name, or one with labels in other scripts (RFC 5890, section 2.3.2.3).
///
/// Narrowed: what is no [`hostname`] has at most four labels of at most ten characters, so that their
/// encodings fit. The characters are small letters and digits, hyphens between them, and letters that IDNA
/// 2008 (RFC 5892) allows anywhere: Han, kana, Hangul syllables, small letters of Latin 1, Greek and Cyrillic.
/// Other scripts have rules on what may stand beside what, or run from right to left.
pub(super) fn idn_hostname(bounds: &Bounds<'_>) -> Result<Dfa> {
    choice(&[&AbnfRule::Automaton(hostname(bounds)?), &AbnfRule::Automaton(labels(bounds)?)])
        .automaton(bounds)
}

/// A mailbox whose local part may have letters of any script, and whose domain may be internationalized
/// (RFC 6531, section 3.3).
///
/// Narrowed: what is no [`email`] has at most 16 characters, of 64 bytes, before the at-sign, which are those of an
/// atom and letters; and its domain is narrowed as in [`idn_hostname`].
pub(super) fn idn_email(bounds: &Bounds<'_>) -> Result<Dfa> {
    let atom = repeated(&choice(&[&alphanumeric(ATOM), &letter(bounds)?]), 1, None);
    let any_length = sequence(&[&atom, &any_number(&sequence(&[&".", &atom]))]);
    let few = Dfa::lengths(1, Some(16), bounds)?;
    let local = AbnfRule::Automaton(any_length.automaton(bounds)?.intersection(&few, bounds)?);
    let ascii = AbnfRule::Automaton(Host { charged: 1, most: 127, rest: 63 }.automaton(bounds)?);
    let domain = choice(&[&ascii, &AbnfRule::Automaton(labels(bounds)?)]);
    let mailbox = AbnfRule::Automaton(email(bounds)?);
    // Beside any local part of ASCII the domain is one of other scripts too.
    let of_ascii = AbnfRule::Automaton(local_part(bounds)?);
    let local = choice(&[&local, &of_ascii]);
    choice(&[&mailbox, &sequence(&[&local, &"@", &domain])]).automaton(bounds)
}

/// Labels of which some may be in other scripts.
fn labels(bounds: &Bounds<'_>) -> Result<Dfa> {
    const LETTERS: [(char, char); 14] = [
        ('0', '9'),
        ('a', 'z'),
        ('à', 'ö'),
        ('ø', 'ÿ'),
        ('ά', 'ί'),
        ('α', 'ρ'),
        ('σ', 'ω'),
        ('ό', 'ώ'),
        ('а', 'я'),
        ('ѐ', 'џ'),
        ('ぁ', 'ゖ'),
        ('ァ', 'ヺ'),
        ('一', '龥'),
        ('가', '힣'),
    ];
    let letter = class(&LETTERS, "");
    let label = sequence(&[&letter, &any_number(&sequence(&[&optional(&"-"), &letter]))]);
    let few = Dfa::lengths(1, Some(10), bounds)?;
    let label = AbnfRule::Automaton(label.automaton(bounds)?.intersection(&few, bounds)?);
    sequence(&[&label, &repeated(&sequence(&[&".", &label]), 0, Some(3))]).automaton(bounds)
}

/// A letter of any script.
fn letter(bounds: &Bounds<'_>) -> Result<AbnfRule> {
    Ok(AbnfRule::Automaton(match parse(r"^\p{L}$", PatternDialect::Ecma, "u") {
        Ok(letter) => letter.to_dfa(true, bounds)?,
        Err(_) => Dfa::nothing(),
    }))
}

/// `Local-part`, of at most 64 characters.
fn local_part(bounds: &Bounds<'_>) -> Result<Dfa> {
    let atom = repeated(&alphanumeric(ATOM), 1, None);
    let dots = any_number(&sequence(&[&".", &atom]));
    let dot_string = sequence(&[&atom, &dots]);
    let text = class(&[(' ', '!'), ('#', '['), (']', '~')], "");
    let pair = sequence(&[&"\\", &class(&[('!', '~')], "")]);
    let content = any_number(&choice(&[&text, &pair]));
    let quoted = sequence(&[&"\"", &content, &"\""]);
    let any_length = choice(&[&dot_string, &quoted]).automaton(bounds)?;
    any_length.intersection(&Dfa::lengths(1, Some(64), bounds)?, bounds)
}

/// The characters of an atom, beside letters and digits.
const ATOM: &str = "!#$%&'*+-/=?^_`{|}~";

/// How the characters of a name are counted.
struct Host {
    /// So many labels at the front are charged; all but the last of these as if they were full.
    charged: u32,
    /// The most characters in all.
    most: u32,
    /// The most characters behind the charged labels.
    rest: u32,
}

/// Where a name may be cut off.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct CutPoint {
    /// How many charged labels are complete.
    labels: u32,
    /// The characters that may still follow, once the charged labels are complete.
    left: u32,
    /// The characters of the label.
    label: u32,
    /// Whether the last of them is a hyphen.
    hyphen: bool,
}

/// The symbols of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HostSymbol {
    Alphanumeric,
    Hyphen,
    Dot,
}

const SYMBOLS: [HostSymbol; 3] = [HostSymbol::Alphanumeric, HostSymbol::Hyphen, HostSymbol::Dot];

impl Host {
    fn automaton(&self, bounds: &Bounds<'_>) -> Result<Dfa> {
        let start = CutPoint { labels: 0, left: self.rest, label: 0, hyphen: false };
        let mut places = vec![start];
        let mut numbers = HashMap::from([(start, 0)]);
        let mut rows = Vec::new();
        while let Some(&place) = places.get(rows.len()) {
            let mut row = Vec::with_capacity(SYMBOLS.len());
            for (symbol, one) in (0..).zip(SYMBOLS) {
                let Some(next) = self.after(place, one) else { continue };
                let fresh = numbers.len() as u32;
                let number = *numbers.entry(next).or_insert(fresh);
                if number == fresh {
                    places.push(next);
                }
                row.push((symbol, number));
            }
            rows.push(row);
        }
        let finals: Vec<bool> =
            places.iter().map(|place| place.label > 0 && !place.hyphen).collect();
        let range = |first: char, last: char| (u32::from(first), u32::from(last));
        let symbols = [
            CharSet::new([range('0', '9'), range('A', 'Z'), range('a', 'z')]),
            CharSet::new([range('-', '-')]),
            CharSet::new([range('.', '.')]),
        ];
        Dfa::from_table(&symbols, &rows, &finals, bounds)
    }

    /// Where a symbol leads from a place; `None` where it may not stand.
    fn after(&self, place: CutPoint, symbol: HostSymbol) -> Option<CutPoint> {
        let is_counted = place.labels == self.charged;
        let left = if is_counted { place.left.checked_sub(1)? } else { place.left };
        match symbol {
            HostSymbol::Dot if place.label == 0 || place.hyphen => None,
            HostSymbol::Dot if is_counted => Some(CutPoint { left, label: 0, ..place }),
            HostSymbol::Dot => {
                let labels = place.labels + 1;
                let full = (self.charged - 1) * (LABEL + 1);
                let exact = self.most.checked_sub(full + place.label + 1)?;
                let is_last = labels == self.charged;
                let left = if is_last { exact.min(self.rest) } else { left };
                Some(CutPoint { labels, left, label: 0, hyphen: false })
            }
            HostSymbol::Hyphen if place.label == 0 || (place.label == 3 && place.hyphen) => None,
            _ if place.label == LABEL => None,
            _ => {
                let hyphen = symbol == HostSymbol::Hyphen;
                let label = place.label + 1;
                // Once what is left fits into the label, its length no longer matters.
                let is_free = is_counted && label > 4 && label + left <= LABEL;
                let label = if is_free { 4 } else { label };
                Some(CutPoint { left, label, hyphen, ..place })
            }
        }
    }
}
