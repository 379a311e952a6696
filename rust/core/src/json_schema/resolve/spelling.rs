//! Names that are like known ones.

use crate::json_schema::dialect::{KEYWORDS, Keyword};
use std::sync::OnceLock;

/// Letters of a name that is compared; no keyword has so many.
const MOST_LETTERS: usize = 31;

/// The keyword that a name means which is none, as far as its letters say: always where they differ in
/// case and marks alone, else where few letters differ and the value `fits`.
pub(super) fn keyword_like(
    name: &str,
    fits: impl Fn(&'static Keyword) -> bool,
) -> Option<&'static Keyword> {
    static KNOWN: OnceLock<Vec<(String, &'static Keyword)>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        let plain = |keyword: &'static Keyword| Some((plain(keyword.name)?, keyword));
        KEYWORDS.iter().filter_map(plain).collect()
    });
    // Names such as `_format` and `//pattern` are left out on purpose.
    let plain =
        plain(name).filter(|_| name.starts_with(|c: char| c == '$' || c.is_alphabetic()))?;
    let near = |(known, keyword): &(String, &'static Keyword)| {
        let is_same_but_for_dollar = name.starts_with('$') != keyword.name.starts_with('$');
        let changes = match plain == *known && !is_same_but_for_dollar {
            true => return Some((0, *keyword)),
            false => changes(&plain, known, most_changes(&plain, known))?,
        };
        fits(keyword).then_some((changes, *keyword))
    };
    let nearest = known.iter().filter_map(near).min_by_key(|(changes, _)| *changes);
    nearest.map(|(_, keyword)| keyword)
}

/// The nearest of some names, where few letters differ; the first where several are as near.
pub(in crate::json_schema) fn name_like<'n>(
    name: &str,
    names: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    let wanted = plain(name)?;
    let near = |known: &'n str| {
        let letters = plain(known)?;
        let most = if letters.len() < 6 { 1 } else { 2 };
        Some((changes(&wanted, &letters, most)?, known))
    };
    names.filter_map(near).min_by_key(|(changes, _)| *changes).map(|(_, known)| known)
}

/// The letters and digits of a name, in lower case; nothing of a name in other letters than ASCII, or
/// of too many.
fn plain(name: &str) -> Option<String> {
    let letters = || name.chars().filter(|c| c.is_alphanumeric());
    let is_plain =
        letters().take(MOST_LETTERS + 1).count() <= MOST_LETTERS && letters().all(|c| c.is_ascii());
    is_plain.then(|| letters().map(|c| c.to_ascii_lowercase()).collect())
}

/// The letters of a name, as bits.
fn letters(name: &[u8]) -> u32 {
    name.iter().fold(0, |bits, letter| bits | 1 << (letter & 31))
}

fn most_changes(name: &str, known: &str) -> usize {
    match name.len().min(known.len()) {
        0..=3 => 0,
        4..=8 => 1,
        9..=14 => 2,
        _ => 3,
    }
}

/// How many letters are added, left out, replaced or swapped with the next between two names, where
/// that is at most so many.
fn changes(a: &str, b: &str, most: usize) -> Option<usize> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    // A change makes two letters at most be of one name alone.
    let others = letters(a) ^ letters(b);
    if a.len().abs_diff(b.len()) > most || others.count_ones() as usize > 2 * most {
        return None;
    }
    let mut before = [0; MOST_LETTERS + 1];
    let mut last: [u8; MOST_LETTERS + 1] = std::array::from_fn(|column| column as u8);
    for row in 1..=a.len() {
        let mut next = [row as u8; MOST_LETTERS + 1];
        for column in 1..=b.len() {
            let is_other = u8::from(a[row - 1] != b[column - 1]);
            let mut least = (last[column - 1] + is_other).min(last[column] + 1);
            least = least.min(next[column - 1] + 1);
            let is_swapped = row > 1 && column > 1 && a[row - 1] == b[column - 2];
            if is_swapped && a[row - 2] == b[column - 1] {
                least = least.min(before[column - 2] + 1);
            }
            next[column] = least;
        }
        (before, last) = (last, next);
    }
    Some(usize::from(last[b.len()])).filter(|changes| *changes <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_like_keywords_are_found() {
        let found = |name| keyword_like(name, |_| true).map(|keyword| keyword.name);
        for (name, keyword) in [
            ("propertes", "properties"),
            ("propertys", "properties"),
            ("minLenght", "minLength"),
            ("minlength", "minLength"),
            ("min_length", "minLength"),
            ("additional-properties", "additionalProperties"),
            ("additionalProperty", "additionalProperties"),
            ("properties ", "properties"),
            ("type:", "type"),
            ("tpye", "type"),
            ("ref", "$ref"),
            ("AllOf", "allOf"),
            ("onOf", "oneOf"),
            ("emum", "enum"),
            ("itens", "items"),
            ("decsription", "description"),
        ] {
            assert_eq!(found(name), Some(keyword), "{name}");
        }
        for name in ["weight", "units", "_format", "//pattern", "pbj", "self", "container", "count"]
        {
            assert_eq!(found(name), None, "{name}");
        }
        let long = "properties".repeat(9);
        assert_eq!(found(&long), None);
        assert_eq!(found("propriétés"), None);
        assert_eq!(found(""), None);
        let never = |name| keyword_like(name, |_| false).map(|keyword| keyword.name);
        assert_eq!((never("TYPE"), never("ref"), never("tpye")), (Some("type"), None, None));
    }

    #[test]
    fn names_that_are_like_others_are_found() {
        let found = |name| name_like(name, ["date", "date-time", "uri", "uuid"].into_iter());
        assert_eq!(found("datetime"), Some("date-time"));
        assert_eq!((found("url"), found("uuid4")), (Some("uri"), Some("uuid")));
        assert_eq!((found("colour"), found("")), (None, None));
    }
}
