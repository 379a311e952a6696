//! A reader of UTF-8, byte by byte.

use super::groups::{Groups, TEXT, each_of, first_bytes};

/// States of a reader of UTF-8: between characters, before one, two or three more bytes of any
/// kind, and after the four leading bytes whose next byte is narrower.
pub(super) const UTF8_STATES: u8 = 8;
/// The state between characters.
pub(super) const BETWEEN: u8 = 0;

/// One byte further; `None` where no character goes on so. Surrogates are none.
pub(super) fn utf8_step(state: u8, byte: u8) -> Option<u8> {
    match (state, byte) {
        (BETWEEN, 0..=127) => Some(BETWEEN),
        (BETWEEN, 0xC2..=0xDF) => Some(1),
        (BETWEEN, 0xE0) => Some(4),
        (BETWEEN, 0xE1..=0xEC | 0xEE..=0xEF) => Some(2),
        (BETWEEN, 0xED) => Some(5),
        (BETWEEN, 0xF0) => Some(6),
        (BETWEEN, 0xF1..=0xF3) => Some(3),
        (BETWEEN, 0xF4) => Some(7),
        (1, 0x80..=0xBF) => Some(BETWEEN),
        (2, 0x80..=0xBF) | (4, 0xA0..=0xBF) | (5, 0x80..=0x9F) => Some(1),
        (3, 0x80..=0xBF) | (6, 0x90..=0xBF) | (7, 0x80..=0x8F) => Some(2),
        _ => None,
    }
}

/// Whether an automaton reads every character past ASCII of some groups from a state and is back in that state behind
/// each. All prefixes of these that the reader of UTF-8 does not tell apart must lead to one state.
///
/// `class` is the byte class of the automaton. `step(state, class, ends)` is its next state, or `None` where it
/// cannot read on. If `ends` is true, the byte is the last of a character: then `step` returns `None` too
/// where the next state is not the first one.
pub fn reads_characters<S: Copy + PartialEq, E>(
    (start, groups): (S, Groups),
    class: impl Fn(u8) -> u8,
    mut step: impl FnMut(S, u8, bool) -> Result<Option<S>, E>,
) -> Result<bool, E> {
    let mut known: [Option<S>; UTF8_STATES as usize] = [None; UTF8_STATES as usize];
    let mut work = vec![(BETWEEN, start)];
    while let Some((reader, before)) = work.pop() {
        let mut last = None;
        let firsts =
            each_of(if reader == BETWEEN { groups & TEXT } else { 0 }).flat_map(first_bytes);
        let others = if reader == BETWEEN { 0..0 } else { 0x80..0xC0 };
        for byte in firsts.chain(others) {
            let Some(next) = utf8_step(reader, byte) else { continue };
            // Bytes of one class stand side by side.
            let this = Some((class(byte), next));
            if std::mem::replace(&mut last, this) == this {
                continue;
            }
            let Some(after) = step(before, class(byte), next == BETWEEN)? else { return Ok(false) };
            if next == BETWEEN {
                continue;
            }
            let is_first = known[next as usize].is_none();
            if *known[next as usize].get_or_insert(after) != after {
                return Ok(false);
            }
            if is_first {
                work.push((next, after));
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::super::groups::group;
    use super::*;

    /// Whether an automaton of all characters but one reads those of some groups. Its states are those of the reader,
    /// and how many bytes of the one were read.
    fn reads_without(missing: char, groups: Groups) -> bool {
        let mut buffer = [0; 4];
        let missing = missing.encode_utf8(&mut buffer).as_bytes();
        let step = |(reader, read): (u8, Option<usize>), byte, _| {
            let next = utf8_step(reader, byte);
            let read = read.filter(|&read| missing.get(read) == Some(&byte)).map(|read| read + 1);
            let next = next.filter(|_| read != Some(missing.len()));
            Ok::<_, ()>(next.map(|next| (next, if next == BETWEEN { Some(0) } else { read })))
        };
        reads_characters(((BETWEEN, Some(0)), groups), |byte| byte, step) == Ok(true)
    }

    #[test]
    fn groups_without_a_missing_character_are_read() {
        for missing in ['\u{85}', 'é', '\u{800}', '\u{2028}', '\u{3000}', '你', '\u{feff}', '😀']
        {
            let own = group(missing.encode_utf8(&mut [0; 4]).as_bytes()[0]);
            for groups in each_of(TEXT) {
                assert_eq!(reads_without(missing, groups), groups != own, "{missing:?}");
            }
            assert!(!reads_without(missing, TEXT), "{missing:?}");
            assert!(reads_without(missing, TEXT & !own), "{missing:?}");
        }
        assert!(reads_without('a', TEXT));
    }
}
