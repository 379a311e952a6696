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
use rustc_hash::FxHashMap;
use std::sync::OnceLock;

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

fn is_container(encoding: &[u8]) -> bool {
    matches!(encoding.first(), Some(b'[' | b'{'))
}

/// The encoding of an array with the encodings of its items, some after the other in each piece.
pub(super) fn encoded_array<'p>(items: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    encoded(b'[', items)
}

/// The encoding of an object with its members, some after the other in each piece: the name, [`END`] and the
/// encoding of the value.
pub(super) fn encoded_object<'p>(members: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut sorted: Vec<(&[u8], &[u8])> = Vec::new();
    for piece in members {
        let mut at = 0;
        while let Some((name, end)) = member_at(piece, at) {
            sorted.push((name, &piece[at..end]));
            at = end;
        }
    }
    sorted.reverse();
    sorted.sort_by_key(|member| member.0);
    sorted.dedup_by_key(|member| member.0);
    encoded(b'{', sorted.into_iter().map(|member| member.1))
}

fn encoded<'p>(tag: u8, parts: impl Iterator<Item = &'p [u8]>) -> Vec<u8> {
    let mut out = vec![tag, 0, 0, 0, 0];
    parts.for_each(|part| out.extend_from_slice(part));
    // What is longer than that is over every budget.
    let length = u32::try_from(out.len() - HEADER).unwrap_or(u32::MAX);
    out[1..HEADER].copy_from_slice(&length.to_be_bytes());
    out
}

/// The name of the member at a place, and where the member ends.
fn member_at(item: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let name = &item[at..at + item.get(at..)?.iter().position(|&byte| byte == END)?];
    let value = at + name.len() + 1;
    Some((name, value + length_of(item, value)?))
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

/// An item that was read.
#[derive(Debug)]
pub(super) struct Item {
    encoding: Box<[u8]>,
    /// For each large object in it where its members begin; found when first asked for.
    members: OnceLock<FxHashMap<usize, Box<[u32]>>>,
}

/// An object of so many bytes is large.
const LARGE: usize = 256;

impl Item {
    /// The item with an encoding.
    pub(super) fn new(encoding: &[u8]) -> Self {
        Self { encoding: encoding.into(), members: OnceLock::new() }
    }

    /// The item with a key.
    pub(super) fn of_key(key: &[u8]) -> Self {
        match is_container(key) {
            true => Self::new(key),
            false => Self::new(&[key, &[END]].concat()),
        }
    }

    pub(super) fn encoding(&self) -> &[u8] {
        &self.encoding
    }

    /// Bytes held, at most.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.encoding.len()
    }

    /// Where the members of an object begin, if it is large.
    fn members_of(&self, object: usize) -> Option<&[u32]> {
        let is_large = end_of(&self.encoding, object)? - object >= LARGE;
        let members = is_large.then(|| self.members.get_or_init(|| large_objects(&self.encoding)));
        members?.get(&object).map(|members| &**members)
    }

    /// Where the first member of an object is whose name is not less than one; the end where there is none.
    fn first_from(&self, object: usize, name: &[u8]) -> Option<usize> {
        let (item, end) = (&*self.encoding, end_of(&self.encoding, object)?);
        let is_less = |at: usize| member_at(item, at).is_some_and(|member| member.0 < name);
        if let Some(members) = self.members_of(object) {
            let first = members.partition_point(|&at| is_less(at as usize));
            return Some(members.get(first).map_or(end, |&at| at as usize));
        }
        let mut at = object + HEADER;
        while at < end && is_less(at) {
            at = member_at(item, at)?.1;
        }
        Some(at)
    }

    /// Where the value of a member of an object is.
    pub(super) fn member(&self, object: usize, name: &[u8]) -> Option<usize> {
        let at = self.first_from(object, name)?;
        let is_it = self.encoding[at..].starts_with(name)
            && self.encoding.get(at + name.len()) == Some(&END)
            && at < end_of(&self.encoding, object)?;
        is_it.then_some(at + name.len() + 1)
    }

    /// The names of the members of an object that begin so.
    pub(super) fn names(&self, object: usize, begin: &[u8]) -> impl Iterator<Item = &[u8]> {
        let end = end_of(&self.encoding, object).unwrap_or(object);
        let mut at = self.first_from(object, begin).unwrap_or(end);
        std::iter::from_fn(move || {
            let (name, next) = member_at(self.encoding.get(..end)?, at)?;
            at = next;
            Some(name)
        })
        .take_while(move |name| name.starts_with(begin))
    }

    /// Where the element of an array is that stands at a place, if there is one.
    pub(super) fn element(&self, array: usize, at: usize) -> Option<usize> {
        Some(at).filter(|&at| end_of(&self.encoding, array).is_some_and(|end| at < end))
    }
}

/// Where the members of the large objects of an item begin.
fn large_objects(item: &[u8]) -> FxHashMap<usize, Box<[u32]>> {
    let mut out = FxHashMap::default();
    let mut work = vec![0];
    while let Some(container) = work.pop() {
        let Some(end) = end_of(item, container) else { continue };
        if end - container < LARGE {
            continue;
        }
        let is_object = item[container] == b'{';
        let (mut at, mut members) = (container + HEADER, Vec::new());
        while at < end {
            let value = match is_object {
                true => member_at(item, at).map(|member| at + member.0.len() + 1),
                false => Some(at),
            };
            let Some((value, length)) = value.and_then(|at| Some((at, length_of(item, at)?)))
            else {
                break;
            };
            if is_container(&item[value..]) {
                work.push(value);
            }
            members.extend(u32::try_from(at).ok().filter(|_| is_object));
            at = value + length;
        }
        if is_object {
            out.insert(container, members.into());
        }
    }
    out
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
                let [one, other] = [one, other].map(|key| Item::of_key(key));
                let begins = place != other_place && other.encoding.starts_with(&one.encoding);
                assert!(!begins, "{} {}", items[place], items[other_place]);
            }
        }
    }

    #[test]
    fn members_of_large_objects_are_those_that_are_looked_for_one_by_one() {
        let names = |count: usize| (0..count).map(|n| format!("{:x}", n * 7_919 % 1_009));
        let member = |name: &String| format!(r#""{name}": [{{"{name}": {{}}}}, "{name}"]"#);
        for count in [0, 1, 3, 12, 40, 300] {
            let members: Vec<String> = names(count).map(|name| member(&name)).collect();
            let item = Item::of_key(&key(&format!("[1, {{{}}}]", members.join(", "))));
            let object = item.element(0, HEADER + length_of(item.encoding(), HEADER).expect("one"));
            let object = object.expect("the second element");
            for name in names(count + 5).chain(["".into(), "zzz".into(), "1f".into()]) {
                let found = item.member(object, name.as_bytes());
                assert_eq!(found.is_some(), names(count).any(|one| one == name), "{count} {name}");
                let expected = key(&format!("[{{\"{name}\": {{}}}}, \"{name}\"]"));
                assert!(found.is_none_or(|at| item.encoding()[at..].starts_with(&expected)));
                let mut begin: Vec<String> =
                    names(count).filter(|one| one.starts_with(&name)).collect();
                begin.sort();
                let found: Vec<&[u8]> = item.names(object, name.as_bytes()).collect();
                assert_eq!(found, begin.iter().map(String::as_bytes).collect::<Vec<_>>());
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
