//! Sets of characters that have names: properties, cases, digits, words, spaces.
//!
//! The tables are those of the crate `regex-syntax`, of Unicode 16. Names of properties are those
//! of ECMA-262, spelled as there.

use super::advice::{NameMeaning, advice_on_property};
use crate::grammar::CharSet;
use regex_syntax::hir::{Class, HirKind};
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

mod names;

/// The greatest code point.
pub(super) const LAST: u32 = 0x10_FFFF;

/// The characters that end a line in ECMA-262.
pub(super) fn line_terminators() -> CharSet {
    CharSet::new([(10, 10), (13, 13), (0x2028, 0x2029)])
}

/// The character that ends a line elsewhere.
pub(super) fn newline() -> CharSet {
    CharSet::new([(10, 10)])
}

/// `[0-9A-Za-z_]`.
pub(super) fn ascii_word() -> CharSet {
    CharSet::new([(0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)])
}

/// White space and line terminators of ECMA-262.
pub(super) fn space() -> CharSet {
    CharSet::new([
        (9, 13),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x2000, 0x200A),
        (0x2028, 0x2029),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
        (0xFEFF, 0xFEFF),
    ])
}

/// Spaces and tabs, the white space that may stand within a line: `\h` of Perl, PCRE and Java.
pub(super) fn blanks() -> CharSet {
    CharSet::new([
        (9, 9),
        (0x20, 0x20),
        (0xA0, 0xA0),
        (0x1680, 0x1680),
        (0x180E, 0x180E),
        (0x2000, 0x200A),
        (0x202F, 0x202F),
        (0x205F, 0x205F),
        (0x3000, 0x3000),
    ])
}

/// What Python's `str.isspace` holds for.
pub(super) fn space_of_python() -> CharSet {
    let besides = CharSet::new([(0x1C, 0x1F), (0x85, 0x85)]);
    space().difference(&CharSet::single(0xFEFF)).union(&besides)
}

/// What Python's `str.isdecimal` holds for.
pub(super) fn digits_of_python() -> CharSet {
    static SET: OnceLock<CharSet> = OnceLock::new();
    SET.get_or_init(|| table(r"\p{Nd}").unwrap_or_default()).clone()
}

/// What Python's `str.isalnum` holds for, and `_`.
pub(super) fn word_of_python() -> CharSet {
    static SET: OnceLock<CharSet> = OnceLock::new();
    SET.get_or_init(|| table(r"[\p{L}\p{N}_]").unwrap_or_default()).clone()
}

/// `\w` of the crate `regex`.
pub(super) fn word_of_rust() -> CharSet {
    static SET: OnceLock<CharSet> = OnceLock::new();
    SET.get_or_init(|| table(r"\w").unwrap_or_default()).clone()
}

/// Whether a character may stand in the name of a group.
pub(super) fn may_stand_in_name(character: char, is_first: bool) -> bool {
    static STARTS: OnceLock<CharSet> = OnceLock::new();
    static OTHERS: OnceLock<CharSet> = OnceLock::new();
    let set = match is_first {
        _ if character.is_ascii() => {
            return character == '_'
                || character.is_ascii_alphabetic()
                || (!is_first && character.is_ascii_digit());
        }
        true => STARTS.get_or_init(|| table(r"\p{ID_Start}").unwrap_or_default()),
        false => {
            OTHERS.get_or_init(|| table(r"[\p{ID_Continue}\u{200C}\u{200D}]").unwrap_or_default())
        }
    };
    set.contains(character as u32)
}

/// The set without code points that are no scalar values.
pub(super) fn without_surrogates(set: &CharSet) -> CharSet {
    set.intersection(&CharSet::scalar_values())
}

/// The set that a class of `regex-syntax` stands for.
fn table(class: &str) -> Option<CharSet> {
    match regex_syntax::parse(class).ok()?.into_kind() {
        HirKind::Class(class) => Some(set_of(&class)),
        // A class of one character.
        HirKind::Literal(literal) => {
            let character = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(CharSet::single(character.into()))
        }
        _ => None,
    }
}

/// The set of a class.
pub(super) fn set_of(class: &Class) -> CharSet {
    match class {
        Class::Unicode(class) => {
            CharSet::new(class.iter().map(|range| (range.start() as u32, range.end() as u32)))
        }
        Class::Bytes(class) => {
            CharSet::new(class.iter().map(|range| (range.start().into(), range.end().into())))
        }
    }
}

/// The set behind `\p{..}`, by what stands in the braces; else what is wrong.
pub(super) fn property(text: &str) -> Result<CharSet, String> {
    let holds = |names: &str, name: &str| names.split_ascii_whitespace().any(|known| known == name);
    let class = match text.split_once('=') {
        Some(("General_Category" | "gc", value)) if holds(names::CATEGORIES, value) => {
            return category(value).ok_or_else(|| lacking(text));
        }
        Some(("Script" | "sc", value)) if holds(names::SCRIPTS, value) => {
            return script("sc", value).ok_or_else(|| lacking(text));
        }
        Some(("Script_Extensions" | "scx", value)) if holds(names::SCRIPTS, value) => {
            return script("scx", value).ok_or_else(|| lacking(text));
        }
        None if holds(names::CATEGORIES, text) => {
            return category(text).ok_or_else(|| lacking(text));
        }
        None if holds(names::BINARY, text) => match text {
            "Any" => return Ok(CharSet::new([(0, LAST)])),
            "ASCII" => return Ok(CharSet::new([(0, 0x7F)])),
            "Assigned" => {
                let unassigned = category("Cn").ok_or_else(|| lacking(text))?;
                return Ok(unassigned.complement());
            }
            _ => format!(r"\p{{{text}}}"),
        },
        _ => {
            let what = |name: &str| match () {
                () if holds(names::SCRIPTS, name) => NameMeaning::Script,
                () if holds(names::CATEGORIES, name) || holds(names::BINARY, name) => {
                    NameMeaning::Property
                }
                () => NameMeaning::Nothing,
            };
            if let Some(advice) = advice_on_property(text, what) {
                return Err(advice);
            }
            return Err("ECMA-262 knows no such property; names are spelled as in Unicode's \
                        tables, as in `\\p{Lu}`, `\\p{Letter}`, `\\p{Script=Greek}`"
                .to_owned());
        }
    };
    table(&class).ok_or_else(|| lacking(text))
}

/// The names of all properties, with those of scripts written out.
#[cfg(test)]
pub(super) fn property_names() -> Vec<String> {
    let scripts = names::SCRIPTS.split_ascii_whitespace();
    let scripts = scripts.flat_map(|name| [format!("Script={name}"), format!("scx={name}")]);
    let categories = names::CATEGORIES.split_ascii_whitespace();
    let categories = categories.flat_map(|name| [name.to_owned(), format!("gc={name}")]);
    let binary = names::BINARY.split_ascii_whitespace().map(str::to_owned);
    scripts.chain(categories).chain(binary).collect()
}

fn lacking(name: &str) -> String {
    format!("the tables at hand lack {name}; write a class of its characters")
}

/// A general category. Surrogates are code points, and in no table of scalar values.
fn category(name: &str) -> Option<CharSet> {
    let surrogates = CharSet::new([(0xD800, 0xDFFF)]);
    match name {
        "Cs" | "Surrogate" => Some(surrogates),
        "C" | "Other" => Some(table(&format!(r"\p{{gc={name}}}"))?.union(&surrogates)),
        _ => Some(table(&format!(r"\p{{gc={name}}}"))?.difference(&surrogates)),
    }
}

/// The characters of a script, or of its extensions. `Unknown` is what is in no script.
fn script(key: &str, name: &str) -> Option<CharSet> {
    if !matches!(name, "Unknown" | "Zzzz") {
        return table(&format!(r"\p{{{key}={name}}}"));
    }
    let mut known = CharSet::default();
    for script in names::SCRIPTS.split_ascii_whitespace() {
        if !matches!(script, "Unknown" | "Zzzz") {
            known = known.union(&table(&format!(r"\p{{sc={script}}}")).unwrap_or_default());
        }
    }
    Some(known.complement())
}

/// Which characters are cases of each other.
struct Cases {
    /// Each character that has other cases, in order, and the number of its group.
    groups: Vec<(u32, u32)>,
    members: Vec<Vec<u32>>,
}

/// The groups of simple case folding.
fn cases() -> &'static Cases {
    static CASES: OnceLock<Cases> = OnceLock::new();
    CASES.get_or_init(|| {
        let with_cases = table(r"[\p{Cased}\p{CWCM}\p{CWCF}]").unwrap_or_default();
        let mut out = Cases { groups: Vec::new(), members: Vec::new() };
        let mut known: FxHashMap<u32, u32> = FxHashMap::default();
        for code_point in with_cases.ranges().iter().flat_map(|&(a, b)| a..=b) {
            let group = match known.get(&code_point) {
                Some(&group) => group,
                None => {
                    let Some(character) = char::from_u32(code_point) else { continue };
                    let range = regex_syntax::hir::ClassUnicodeRange::new(character, character);
                    let mut class = regex_syntax::hir::ClassUnicode::new([range]);
                    if class.try_case_fold_simple().is_err() {
                        continue;
                    }
                    let members: Vec<u32> = class
                        .iter()
                        .flat_map(|range| range.start()..=range.end())
                        .map(u32::from)
                        .collect();
                    if members.len() < 2 {
                        continue;
                    }
                    let group = out.members.len() as u32;
                    members.iter().for_each(|&member| {
                        known.insert(member, group);
                    });
                    out.members.push(members);
                    group
                }
            };
            out.groups.push((code_point, group));
        }
        out
    })
}

/// The set with the other cases of its characters: simple case folding, as in ECMA-262 with the
/// flags `i` and `u`.
pub(super) fn with_cases(set: &CharSet) -> CharSet {
    let cases = cases();
    let mut more = Vec::new();
    for &(a, b) in set.ranges() {
        let from = cases.groups.partition_point(|entry| entry.0 < a);
        let here = cases.groups[from..].iter().take_while(|entry| entry.0 <= b);
        for &(_, group) in here {
            let members = cases.members[group as usize].iter();
            let outside = members.filter(|&&member| member < a || b < member);
            more.extend(outside.map(|&member| (member, member)));
        }
    }
    if more.is_empty() { set.clone() } else { CharSet::new(more).union(set) }
}

/// The same for Python, for which the four letters i are one; with the flag `a` only the letters
/// of ASCII have cases.
pub(super) fn with_cases_of_python(set: &CharSet, is_ascii: bool) -> CharSet {
    if is_ascii {
        let letters = CharSet::new([(0x41, 0x5A), (0x61, 0x7A)]).intersection(set);
        let swapped = CharSet::new(letters.ranges().iter().map(|&(a, b)| (a ^ 0x20, b ^ 0x20)));
        return set.union(&swapped);
    }
    let closed = with_cases(set);
    let letters_i = CharSet::new([(0x49, 0x49), (0x69, 0x69), (0x130, 0x131)]);
    if closed.intersection(&letters_i).is_empty() { closed } else { closed.union(&letters_i) }
}
