//! The tokens of a vocabulary in which items end and begin, found once for all texts.

use super::nested::Nested;
use super::numbers::{self, Begun, NUMBER};
use super::reader::{End, Escape, Phase, Reader, STRING};
use super::values::{SeenId, Values};
use crate::vocabulary::{Groups, Trie, Vocabulary, group};
use rustc_hash::FxHashMap;

/// The tokens that hold more than the end of one item and the beginning of the next.
#[derive(Debug)]
pub(crate) struct ManyItems {
    /// Those in which two items end, or one that is not the first begins and holds something.
    pub(super) within: Vec<u32>,
    /// Those with a comma.
    pub(super) commas: Vec<u32>,
    /// Those that open an array, end an item there, and go on to the next.
    pub(super) opening: Vec<u32>,
    /// Those of them in which an array ends before.
    pub(super) reopening: Vec<u32>,
    /// Those in which a value begins behind a comma: wherever it stands, and behind the end of a string.
    pub(super) behind_comma: Vec<u32>,
    pub(super) behind_string: Vec<u32>,
    /// Those of them that close something.
    pub(super) closing: Vec<u32>,
    pub(super) closing_string: Vec<u32>,
    /// What ends in a token in a string, in a number, before and behind an item.
    pub(super) in_string: Ends,
    pub(super) in_number: Ends,
    pub(super) before: Ends,
    pub(super) behind: Ends,
}

/// The items that tokens end which begin at one kind of place, each with the nodes of the trie below which
/// all tokens do.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// Strings, by what the tokens add to what they say.
    pub(super) strings: FxHashMap<Box<[u8]>, Vec<u32>>,
    /// The most that they add.
    pub(super) longest: usize,
    /// Numbers, likewise by their text.
    pub(super) numbers: Vec<(Box<[u8]>, u32)>,
    /// Literals, by their first letter.
    pub(super) literals: Vec<(u8, u32)>,
    /// The tokens in which two items end.
    pub(super) two: Vec<u32>,
    /// The tokens that end in a number that may be zero alone (`0`, `-0.0`), as far as they say.
    pub(super) zeros: Vec<u32>,
}

impl Ends {
    fn new(trie: &Trie, from: &Reader) -> Self {
        let (mut out, values) = (Self::default(), Values::default());
        let delimiters = [b',', b']', b' ', b'\t', b'\n'].into_iter().map(group);
        let delimiters = delimiters.fold(0, |all, one| all | one);
        let mut work = vec![(0, from.clone())];
        while let Some((node, reader)) = work.pop() {
            for (child, byte) in children(trie, node) {
                let mut after = reader.clone();
                let read = after.read(byte, &values);
                let Some(key) = read.value else {
                    let below = match after.phase {
                        Phase::String(_) => group(b'"'),
                        Phase::Number => delimiters,
                        _ => Groups::MAX,
                    };
                    if read.end == End::Within && trie.groups_below(child) & below != 0 {
                        work.push((child, after));
                    }
                    continue;
                };
                match reader.phase {
                    Phase::String(_) => {
                        let more = &key[from.piece.len().max(1)..];
                        out.longest = out.longest.max(more.len());
                        out.strings.entry(more.into()).or_default().push(child);
                    }
                    Phase::Number => out.numbers.push((reader.piece[1..].into(), child)),
                    _ => out.literals.push((byte, child)),
                }
            }
        }
        out
    }
}

/// The children of a node, with the bytes that lead to them.
pub(super) fn children(trie: &Trie, node: u32) -> impl Iterator<Item = (u32, u8)> + use<'_> {
    let end = trie.ids().map_or(trie.end(node), |ids| trie.end(node).min(ids));
    let first = Some(node + 1).filter(|&child| child < end);
    let all = std::iter::successors(first, move |&child| {
        Some(trie.end(child)).filter(|&next| next < end)
    });
    all.map(move |child| (child, trie.byte(child)))
}

impl ManyItems {
    pub(crate) fn new(vocabulary: &Vocabulary, trie: &Trie) -> Self {
        let ends = |phase: Phase| Ends::new(trie, &beginning(phase, b""));
        let mut out = Self {
            within: Vec::new(),
            commas: Vec::new(),
            opening: Vec::new(),
            reopening: Vec::new(),
            behind_comma: Vec::new(),
            behind_string: Vec::new(),
            closing: Vec::new(),
            closing_string: Vec::new(),
            in_string: ends(Phase::String(Escape::default())),
            in_number: ends(Phase::Number),
            before: ends(Phase::Comma),
            behind: ends(Phase::Behind),
        };
        let values = Values::default();
        for id in 0..vocabulary.len() as u32 {
            let bytes = vocabulary.bytes(id);
            if !vocabulary.is_textual(id) {
                continue;
            }
            // Only these end in a number.
            if bytes.last().is_some_and(|byte| b"0123456789+-.eE".contains(byte)) {
                out.note_zeros(id, bytes, &values);
            }
            if !bytes.contains(&b',') {
                continue;
            }
            out.commas.push(id);
            if goes_on(bytes) {
                let closes = bytes.iter().any(|byte| matches!(byte, b'}' | b']'));
                out.behind_comma.push(id);
                out.closing.extend(closes.then_some(id));
                // It may be escaped, and what escapes it may stand in front of the token.
                let quote = bytes.iter().position(|&byte| byte == b'"');
                if quote.is_some_and(|quote| goes_on(&bytes[quote..])) {
                    out.behind_string.push(id);
                    out.closing_string.extend(closes.then_some(id));
                }
            }
            if beginnings().any(|reader| is_of_many(reader, bytes, &values)) {
                out.within.push(id);
            }
            for (phase, ends) in [
                (Phase::String(Escape::default()), &mut out.in_string),
                (Phase::Number, &mut out.in_number),
                (Phase::Comma, &mut out.before),
                (Phase::Behind, &mut out.behind),
            ] {
                if read(beginning(phase, b"1"), bytes, &values).0 > 1 {
                    ends.two.push(id);
                }
            }
            let opens = (0..bytes.len()).filter(|&place| bytes[place] == b'[');
            let repeats = |place: usize| {
                let (ends, end, _) = read(Reader::new(), &bytes[place + 1..], &values);
                ends > 1 || ends > 0 && end == End::Within || begins_two(&bytes[place + 1..])
            };
            if opens.into_iter().any(repeats) {
                out.opening.push(id);
                let ends = bytes.iter().position(|&byte| byte == b']');
                let opens_again = ends.is_some_and(|end| bytes[end..].contains(&b'['));
                out.reopening.extend(opens_again.then_some(id));
            }
        }
        out
    }

    /// Takes note of the places where a token that ends in a number may end in one that is zero alone.
    fn note_zeros(&mut self, id: u32, bytes: &[u8], values: &Values) {
        for (phase, ends) in [
            (Phase::String(Escape::default()), &mut self.in_string),
            (Phase::Number, &mut self.in_number),
            (Phase::Comma, &mut self.before),
            (Phase::Behind, &mut self.behind),
        ] {
            let (_, end, reader) = read(beginning(phase, b"0"), bytes, values);
            let may_be_zero = end == End::Within && ends_in_zero(&reader, values);
            ends.zeros.extend(may_be_zero.then_some(id));
        }
    }

    /// The tokens that may begin an array and repeat an item of it.
    pub(crate) fn opening(&self) -> &[u32] {
        &self.opening
    }
}

/// Whether a value begins behind a comma.
fn goes_on(bytes: &[u8]) -> bool {
    let commas = (0..bytes.len()).filter(|&place| bytes[place] == b',');
    let begins = |rest: &[u8]| {
        let first = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        first.is_some_and(|byte| b"\"{[-0123456789tfn".contains(byte))
    };
    commas.into_iter().any(|place| begins(&bytes[place + 1..]))
}

/// Whether an item of an array, and what follows behind a comma, stand in some bytes that follow its bracket.
fn begins_two(bytes: &[u8]) -> bool {
    let mut array = Nested::new(SeenId::NONE, &Values::default());
    let mut has_item = false;
    for &byte in bytes {
        if byte == b'[' && array.awaits_value() {
            array.open_array(false);
        } else {
            let step = array.read(byte);
            let is_item = step.item.is_some();
            if is_item && has_item {
                return true;
            }
            has_item |= is_item;
            if step.end != End::Within {
                return false;
            }
        }
        if has_item && (array.is_within_item() || !array.is_between()) {
            return true;
        }
    }
    false
}

/// Readers of all places in an array where it matters what follows.
fn beginnings() -> impl Iterator<Item = Reader> {
    let escapes = [0, 6, 5, 4, 3, 2].map(|left| Phase::String(Escape::with(left)));
    let phases = [Phase::Comma, Phase::Behind, Phase::Literal, Phase::Number];
    escapes.into_iter().chain(phases).map(|phase| beginning(phase, b"1"))
}

/// A reader that has read nothing before; of a number these digits.
fn beginning(phase: Phase, digits: &[u8]) -> Reader {
    let piece = match phase {
        Phase::String(_) => vec![STRING],
        Phase::Number => [&[NUMBER], digits].concat(),
        _ => Vec::new(),
    };
    let begun = Begun::default().with(&piece);
    Reader { phase, piece, begun, ..Reader::new() }
}

/// How many items end in some bytes, and where those lead.
fn read(mut reader: Reader, bytes: &[u8], values: &Values) -> (usize, End, Reader) {
    let mut ends = 0;
    for &byte in bytes {
        let read = reader.read(byte, values);
        ends += usize::from(read.value.is_some());
        if read.end != End::Within {
            return (ends, read.end, reader);
        }
    }
    (ends, End::Within, reader)
}

fn is_of_many(reader: Reader, bytes: &[u8], values: &Values) -> bool {
    let (ends, end, reader) = read(reader, bytes, values);
    let holds_more = match reader.phase {
        Phase::String(escape) => reader.piece.len() > 1 || escape != Escape::default(),
        Phase::Number => true,
        _ => false,
    };
    end != End::Outside && (ends > 1 || ends > 0 && end == End::Within && holds_more)
}

/// Whether an array stands in a number that may be zero alone.
pub(super) fn ends_in_zero(reader: &Reader, values: &Values) -> bool {
    reader.phase == Phase::Number && numbers::is_zero(&reader.key(values)[1..])
}
