//! Groups that bytes fall into, few enough for a set of them to be a number.
//!
//! What strings, names and comments tell apart from the rest stands alone. Past ASCII a character falls into the group
//! of its first byte: patterns leave out few of these characters, blanks and ends of lines as a rule, and the others
//! begin with other bytes.

use std::ops::RangeInclusive;

/// A set of groups.
pub type Groups = u64;

/// Among the groups below a node: some bytes there are not those of whole characters in UTF-8, and the beginning of
/// one, when a character has just ended at the node.
pub const BROKEN: Groups = 1 << 63;

/// The number of groups.
pub const NUM_GROUPS: usize = 38;

/// The first group of characters past ASCII.
const FIRST_OF_TEXT: u32 = 30;

/// The groups of characters past ASCII.
pub const TEXT: Groups = ((1 << NUM_GROUPS) - 1) & !((1 << FIRST_OF_TEXT) - 1);

/// The group of a byte, as a set of one; none of a byte that begins no character: see [`BROKEN`].
pub fn group(byte: u8) -> Groups {
    let group = match byte {
        b'a'..=b'f' => 0,
        b'g'..=b'z' => 1,
        b'A'..=b'F' => 2,
        b'G'..=b'Z' => 3,
        b'0'..=b'9' => 4,
        b' ' => 5,
        b'\n' => 6,
        b'\r' | b'\t' => 7,
        0..=31 | 127 => 8,
        b'"' => 9,
        b'\'' => 10,
        b'\\' => 11,
        b'<' => 12,
        b'>' => 13,
        b'/' => 14,
        b'*' => 15,
        b'`' => 16,
        b'(' | b')' => 17,
        b'[' | b']' => 18,
        b'{' | b'}' => 19,
        b',' => 20,
        b':' | b';' => 21,
        b'=' => 22,
        b'|' | b'&' => 23,
        b'-' => 24,
        b'_' => 25,
        b'.' => 26,
        b'+' => 27,
        b'#' | b'$' | b'%' | b'@' => 28,
        0x80..=0xC1 | 0xF5.. => return 0,
        0xC2 => 30,
        0xC3..=0xDF => 31,
        0xE0..=0xE1 => 32,
        0xE2 => 33,
        0xE3 => 34,
        0xE4..=0xED => 35,
        0xEE..=0xEF => 36,
        0xF0..=0xF4 => 37,
        _ => 29,
    };
    1 << group
}

/// The bytes with which the characters past ASCII of a group begin, which is a set of one.
pub(super) fn first_bytes(group: Groups) -> RangeInclusive<u8> {
    match group.trailing_zeros() {
        30 => 0xC2..=0xC2,
        31 => 0xC3..=0xDF,
        32 => 0xE0..=0xE1,
        33 => 0xE2..=0xE2,
        34 => 0xE3..=0xE3,
        35 => 0xE4..=0xED,
        36 => 0xEE..=0xEF,
        _ => 0xF0..=0xF4,
    }
}

/// Groups, each as a set of one.
pub fn each_of(groups: Groups) -> impl Iterator<Item = Groups> {
    let rest = |&left: &Groups| (left != 0).then(|| left & (left - 1));
    let left = std::iter::successors(Some(groups), rest).take_while(|&left| left != 0);
    left.map(|left| left & left.wrapping_neg())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_past_ascii_has_the_group_of_its_first_byte() {
        let mut buffer = [0; 4];
        for character in '\0'..=char::MAX {
            let bytes = character.encode_utf8(&mut buffer).as_bytes();
            let is_text = group(bytes[0]) & TEXT != 0;
            assert_eq!(is_text, !character.is_ascii(), "{character:?}");
            assert_eq!(group(bytes[0]).count_ones(), 1, "{character:?}");
            assert!(bytes[1..].iter().all(|&byte| group(byte) == 0), "{character:?}");
        }
    }

    #[test]
    fn first_bytes_are_those_of_their_group() {
        for one in each_of(TEXT) {
            let of_group = (0..=255u8).filter(|&byte| group(byte) == one);
            assert!(of_group.eq(first_bytes(one)), "{one:#x}");
        }
    }

    #[test]
    fn each_group_is_there_once() {
        let all = (0..=255u8).fold(0, |all, byte| all | group(byte));
        assert_eq!(each_of(all).count(), NUM_GROUPS);
        assert_eq!(each_of(all).sum::<Groups>(), all);
        assert_eq!(all, (1 << NUM_GROUPS) - 1);
        assert_eq!(all & BROKEN, 0);
    }
}
