//! JSON values as bytes: equal values have equal encodings, and no encoding begins another.
//!
//! - A scalar: its key ([`super::values`]) and [`END`].
//! - An array: `[`, the number of bytes that follow in four bytes, the encodings of its items.
//! - An object: `{`, that number, and for each member its name, [`END`], the encoding of its value; sorted
//!   by name. Of members with one name the last counts.
//!
//! An item of an array is held by its key, which for a scalar is its encoding without the end.

use super::numbers::{self, NUMBER};
use super::reader::STRING;
use std::sync::Arc;

/// What ends a scalar or a name: no text in UTF-8 has this byte.
pub(super) const END: u8 = 0xff;
/// The bytes in front of what a container holds.
pub(super) const HEADER: usize = 5;

/// The key of an item.
pub(super) fn item_key(encoding: &[u8]) -> &[u8] {
    match encoding.split_last() {
        Some((_, key)) if !is_container(encoding) => key,
        _ => encoding,
    }
}

/// The encoding of an item.
pub(super) fn encoded_item(key: &[u8]) -> Arc<[u8]> {
    match is_container(key) {
        true => key.into(),
        false => [key, &[END]].concat().into(),
    }
}

fn is_container(encoding: &[u8]) -> bool {
    matches!(encoding.first(), Some(b'[' | b'{'))
}

/// The encoding of an array.
pub(super) fn encoded_array<'p>(items: impl Iterator<Item = &'p (Vec<u8>, Arc<[u8]>)>) -> Vec<u8> {
    encoded(b'[', items.map(|item| &*item.1))
}

/// The encoding of an object.
pub(super) fn encoded_object<'p>(
    members: impl DoubleEndedIterator<Item = &'p (Vec<u8>, Arc<[u8]>)>,
) -> Vec<u8> {
    let mut sorted: Vec<&(Vec<u8>, Arc<[u8]>)> = members.rev().collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    sorted.dedup_by(|later, first| later.0 == first.0);
    let parts = sorted.into_iter().flat_map(|(name, value)| [&**name, &[END], &**value]);
    encoded(b'{', parts)
}

fn encoded<'p>(tag: u8, parts: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut out = vec![tag, 0, 0, 0, 0];
    parts.for_each(|part| out.extend_from_slice(part));
    // What is longer than that is over every budget.
    let length = u32::try_from(out.len() - HEADER).unwrap_or(u32::MAX);
    out[1..HEADER].copy_from_slice(&length.to_be_bytes());
    out
}

/// Where a container ends.
fn end_of(item: &[u8], container: usize) -> Option<usize> {
    let length = item.get(container + 1..container + HEADER)?.try_into().ok()?;
    Some(container + HEADER + u32::from_be_bytes(length) as usize)
}

/// How many bytes the value at a place has.
pub(super) fn length_of(item: &[u8], value: usize) -> Option<usize> {
    match is_container(item.get(value..)?) {
        true => Some(end_of(item, value)? - value),
        false => Some(item[value..].iter().position(|&byte| byte == END)? + 1),
    }
}

/// Where the value of a member is.
pub(super) fn member(item: &[u8], container: usize, name: &[u8]) -> Option<usize> {
    let (mut at, end) = (container + HEADER, end_of(item, container)?);
    while at < end {
        let value = at + item[at..end].iter().position(|&byte| byte == END)? + 1;
        if &item[at..value - 1] == name {
            return Some(value);
        }
        at = value + length_of(item, value)?;
    }
    None
}

/// The names of the members of an object.
pub(super) fn member_names(item: &[u8], container: usize) -> impl Iterator<Item = &[u8]> {
    let end = end_of(item, container).unwrap_or(container);
    let mut at = container + HEADER;
    std::iter::from_fn(move || {
        let value = at + item.get(at..end)?.iter().position(|&byte| byte == END)? + 1;
        let name = &item[at..value - 1];
        at = value + length_of(item, value)?;
        Some(name)
    })
}

/// Where the element of an array is that stands at a place, if there is one.
pub(super) fn element(item: &[u8], container: usize, at: usize) -> Option<usize> {
    Some(at).filter(|&at| end_of(item, container).is_some_and(|end| at < end))
}

/// Where an element of an array is, by its number.
pub(super) fn nth_element(item: &[u8], container: usize, number: usize) -> Option<usize> {
    let mut at = container + HEADER;
    for _ in 0..number {
        at += length_of(item, at)?;
    }
    element(item, container, at)
}

/// Whether some bytes are the key of an item.
pub(super) fn is_key(key: &[u8]) -> bool {
    match is_container(key) {
        // Containers in it are looked into one after the other: they may be deep.
        true => {
            let mut work = vec![0];
            while let Some(container) = work.pop() {
                match parts(key, container) {
                    Some(more) => work.extend(more),
                    None => return false,
                }
            }
            end_of(key, 0) == Some(key.len())
        }
        false => is_scalar(key),
    }
}

/// The containers that stand in a container; `None` where it is none.
fn parts(key: &[u8], container: usize) -> Option<Vec<usize>> {
    let (mut at, end) = (container + HEADER, end_of(key, container)?);
    let (mut out, mut before) = (Vec::new(), None);
    if end > key.len() {
        return None;
    }
    while at < end {
        if key[container] == b'{' {
            let name = &key[at..at + key[at..end].iter().position(|&byte| byte == END)?];
            if before.is_some_and(|before| before >= name) {
                return None;
            }
            before = Some(name);
            at += name.len() + 1;
        }
        let next = at + length_of(key, at).filter(|&length| length <= end - at)?;
        match is_container(&key[at..]) {
            true => out.push(at),
            false if is_scalar(&key[at..next - 1]) => {}
            false => return None,
        }
        at = next;
    }
    Some(out)
}

fn is_scalar(key: &[u8]) -> bool {
    match key.first() {
        Some(&STRING) => !key.contains(&END),
        Some(&NUMBER) => numbers::is_part(key) && key.len() > 1,
        Some(b'n' | b't' | b'f') => key.len() == 1,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unique::nested::Nested;
    use crate::unique::values::{SeenId, Values};

    fn key(item: &str) -> Vec<u8> {
        let mut array = Nested::new(SeenId::NONE, &Values::default());
        let mut out = None;
        for byte in format!("{item},").bytes() {
            if byte == b'[' && array.awaits_value() {
                array.open_array(false);
            } else {
                out = out.or(array.read(byte).item);
            }
        }
        out.expect("an item")
    }

    #[test]
    fn equal_values_have_one_key() {
        for (one, other) in [
            (r#"{"a": 1, "b": [2, {}]}"#, r#"{"b":[2.0,{}],"a":10e-1}"#),
            (r#"["\u0061", null]"#, r#"["a",null]"#),
            (r#"{"a": 1, "a": 2}"#, r#"{"a": 2}"#),
        ] {
            assert_eq!(key(one), key(other));
        }
    }

    #[test]
    fn no_key_begins_another() {
        let items = [
            "[]",
            "{}",
            "[[]]",
            "[[],[]]",
            "[{}]",
            "1",
            "12",
            "[1]",
            "[1,2]",
            "[12]",
            r#""a""#,
            r#"["a"]"#,
            r#"["ab"]"#,
            r#"["a","b"]"#,
            r#"{"a":"b"}"#,
            r#"{"a":["b"]}"#,
            r#"{"":[]}"#,
            r#"{"ab":1}"#,
            r#"{"a":1,"b":1}"#,
            "null",
            "[null]",
            "true",
            "[true,false]",
        ];
        let keys = items.map(key);
        for (place, one) in keys.iter().enumerate() {
            assert!(is_key(one), "{}", items[place]);
            for (other_place, other) in keys.iter().enumerate() {
                let one = encoded_item(one);
                let other = encoded_item(other);
                let begins = place != other_place && other.starts_with(&one);
                assert!(!begins, "{} {}", items[place], items[other_place]);
            }
        }
    }

    #[test]
    fn other_bytes_are_no_keys() {
        let whole = key(r#"{"a": [1, "x"], "b": {"c": null}}"#);
        assert!(is_key(&whole));
        for length in 0..whole.len() {
            assert!(!is_key(&whole[..length]), "{length}");
        }
        assert!(!is_key(&[&*whole, b"x"].concat()));
        let unsorted = encoded(b'{', [&b"b\xffn\xff"[..], b"a\xffn\xff"].into_iter());
        assert!(!is_key(&unsorted));
    }
}
