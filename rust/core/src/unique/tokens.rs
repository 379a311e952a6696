//! Which tokens of a row make an item equal to one before, or leave it no other end.
//!
//! Nearly all of that is seen from the bytes: the trie of the vocabulary is walked along what the array
//! has read, and where a value that was read is complete all tokens below are forbidden. What only the
//! stacks can tell is left to whoever has them: the tokens in doubt.

use super::arrays::{ArrayId, Arrays};
use super::nested::Nested;
use super::numbers::{self, NUMBER};
use super::reader::{End, Escape, Phase, Reader, STRING};
use super::search::is_free;
use super::values::{NodeId, Values};
use crate::grammar::UniqueItems;
use crate::vocabulary::{Trie, Vocabulary, group};
use rustc_hash::FxHashMap;

/// So many values, and as many as there are ends of items, are looked for among these.
const SOME_VALUES: usize = 4_096;

/// The tokens that hold more than the end of one item and the beginning of the next.
#[derive(Debug)]
pub(crate) struct ManyItems {
    /// Those in which two items end, or one that is not the first begins and holds something.
    within: Vec<u32>,
    /// Those with a comma.
    pub(super) commas: Vec<u32>,
    /// Those that open an array, end an item there, and go on to the next.
    opening: Vec<u32>,
    /// Those of them in which an array ends before.
    reopening: Vec<u32>,
    /// Those in which a value begins behind a comma: wherever it stands, and behind the end of a string.
    pub(super) behind_comma: Vec<u32>,
    pub(super) behind_string: Vec<u32>,
    /// Those of them that close something.
    pub(super) closing: Vec<u32>,
    pub(super) closing_string: Vec<u32>,
    /// What ends in a token in a string, in a number, before and behind an item.
    in_string: Ends,
    in_number: Ends,
    before: Ends,
    behind: Ends,
}

/// The items that tokens end which begin at one kind of place, each with the nodes of the trie below which
/// all tokens do.
#[derive(Debug, Default)]
struct Ends {
    /// Strings, by what the tokens add to what they say.
    strings: FxHashMap<Box<[u8]>, Vec<u32>>,
    /// The most that they add.
    longest: usize,
    /// Numbers, likewise by their text.
    numbers: Vec<(Box<[u8]>, u32)>,
    /// Literals, by their first letter.
    literals: Vec<(u8, u32)>,
    /// The tokens in which two items end.
    two: Vec<u32>,
    /// The tokens that end in a number that may be zero alone (`0`, `-0.0`), as far as they say.
    zeros: Vec<u32>,
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
                        _ => u32::MAX,
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
            for (phase, ends) in [
                (Phase::String(Escape::default()), &mut out.in_string),
                (Phase::Number, &mut out.in_number),
                (Phase::Comma, &mut out.before),
                (Phase::Behind, &mut out.behind),
            ] {
                let (_, end, reader) = read(beginning(phase, b"0"), bytes, &values);
                let may_be_zero = end == End::Within && ends_in_zero(&reader, &values);
                ends.zeros.extend(may_be_zero.then_some(id));
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
    let mut array = Nested::new(NodeId::NONE, &Values::default());
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
    Reader { phase, piece, ..Reader::new() }
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

impl Arrays {
    /// Takes out of a row of tokens those that repeat an item; adds those for which the stacks are needed.
    pub(crate) fn forbid<'v>(
        &self,
        id: ArrayId,
        (trie, many): (&Trie, &ManyItems),
        bytes_of: impl Fn(u32) -> &'v [u8],
        row: &mut [i32],
        doubtful: &mut Vec<u32>,
    ) {
        if let Some(array) = self.nested(id) {
            self.forbid_nested(id, &array, (trie, many), bytes_of, row, doubtful);
            return;
        }
        let allows = |row: &[i32], token: u32| row[token as usize >> 5] >> (token & 31) & 1 != 0;
        doubtful.extend(many.reopening.iter().filter(|&&token| allows(row, token)));
        let (reader, items, values) = (self.reader(id), self.items(id), self.values());
        let is_alone = self.is_alone(id, 1);
        let count = values.count(reader.seen);
        let is_endless = items.endless_strings && items.endless_numbers && items.least == u32::MAX;
        let seen = reader.seen;
        let ends = (trie, many);
        if is_alone
            && is_endless
            && self.forbid_by_ends((&reader, items), ends, &bytes_of, row, doubtful)
        {
            doubtful.sort_unstable();
            doubtful.dedup();
            return;
        }
        let mut walk =
            Walk { trie, values, seen, items, is_alone, row, doubtful, work: Vec::new() };
        let next = match reader.phase {
            Phase::Open | Phase::Comma => Next::Item(reader.phase),
            Phase::Behind | Phase::Literal => {
                Next::Behind { in_literal: reader.phase == Phase::Literal }
            }
            Phase::String(_) => Next::String(reader.clone()),
            Phase::Number => Next::Number(reader.key(values)),
            Phase::Nested => {
                // The reader cannot be made again; reading any token raises the error.
                doubtful.extend(
                    (0..)
                        .zip(row.iter())
                        .find(|word| *word.1 != 0)
                        .map(|(place, word)| 32 * place as u32 + word.trailing_zeros()),
                );
                return;
            }
        };
        let is_apart = matches!(&next, Next::String(reader) if reader.like.is_none());
        if count > 0 && !is_apart {
            walk.walk(next);
        }
        for &token in &many.within {
            if !walk.allows(token) {
                continue;
            }
            match is_endless && is_alone {
                true => match items_in(reader.clone(), bytes_of(token), items, values) {
                    Items::Repeat => walk.forbid(token),
                    Items::MayRepeat => walk.doubtful.push(token),
                    Items::New => {}
                },
                false => walk.doubtful.push(token),
            }
        }
        // With few values left, a comma may ask for one more than there are.
        if items.few(count + 1) {
            let allowed: Vec<u32> =
                many.commas.iter().copied().filter(|&token| walk.allows(token)).collect();
            walk.doubtful.extend(allowed);
        }
        doubtful.sort_unstable();
        doubtful.dedup();
    }
}

impl Arrays {
    /// The same from the ends of items that tokens hold, where all stacks are in the array and each beginning
    /// of an item has an end that was not read; false where that does not tell.
    fn forbid_by_ends<'v>(
        &self,
        (reader, items): (&Reader, UniqueItems),
        (trie, many): (&Trie, &ManyItems),
        bytes_of: impl Fn(u32) -> &'v [u8],
        row: &mut [i32],
        doubtful: &mut Vec<u32>,
    ) -> bool {
        let (values, seen) = (self.values(), reader.seen);
        let ends = match reader.phase {
            Phase::Open | Phase::Comma => &many.before,
            Phase::Behind => &many.behind,
            Phase::String(escape) if escape == Escape::default() => &many.in_string,
            Phase::Number => &many.in_number,
            Phase::String(_) | Phase::Literal | Phase::Nested => return false,
        };
        let is_in_string = matches!(reader.phase, Phase::String(_));
        let number = match reader.phase {
            Phase::Number => reader.key(values),
            _ => vec![NUMBER],
        };
        // Of zero there are beginnings that have no other end.
        let may_be_zero = !is_in_string && numbers::is_zero(&number[1..]);
        if may_be_zero && values.has(seen, &numbers::key(b"0")) {
            return false;
        }
        let mut forbid = |nodes: &[u32]| {
            for &node in nodes {
                for &token in trie.numbers_of(trie.entries_of(node..trie.end(node))) {
                    row[token as usize >> 5] &= !(1 << (token & 31));
                }
            }
        };
        if values.count(seen) > 0 {
            let beginning = match (is_in_string, reader.like) {
                (true, like) => like.map(|like| values.beginning(like)),
                (false, _) => Some(&[STRING][..]),
            };
            if let Some(beginning) = beginning.filter(|_| !ends.strings.is_empty()) {
                // Either what was read is looked for among the ends, or these among what was read.
                let few = SOME_VALUES + ends.strings.len();
                let mut left = few;
                for key in values.beginning_with(beginning) {
                    let more = &key[beginning.len()..];
                    if more.len() <= ends.longest
                        && let Some(nodes) = ends.strings.get(more)
                        && values.has(seen, key)
                    {
                        forbid(nodes);
                    }
                    left -= 1;
                    if left == 0 {
                        break;
                    }
                }
                for (more, nodes) in ends.strings.iter().filter(|_| left == 0) {
                    if values.has(seen, &[beginning, more].concat()) {
                        forbid(nodes);
                    }
                }
            }
            for (text, node) in &ends.numbers {
                let text = [&number[1..], text].concat();
                if text.last().is_some_and(u8::is_ascii_digit)
                    && values.has(seen, &numbers::key(&text))
                {
                    forbid(&[*node]);
                }
            }
            for (letter, node) in &ends.literals {
                if values.has(seen, &[*letter]) {
                    forbid(&[*node]);
                }
            }
        }
        for &token in ends.two.iter().chain(&ends.zeros) {
            if row[token as usize >> 5] >> (token & 31) & 1 == 0 {
                continue;
            }
            match items_in(reader.clone(), bytes_of(token), items, values) {
                Items::Repeat => row[token as usize >> 5] &= !(1 << (token & 31)),
                Items::MayRepeat => doubtful.push(token),
                Items::New => {}
            }
        }
        true
    }
}

/// What some bytes do with items.
#[derive(PartialEq, Eq)]
enum Items {
    /// One is equal to one before, in those bytes or in front of them.
    Repeat,
    /// They end in a number that may be zero alone, and what it may be was perhaps read before.
    MayRepeat,
    /// All are new.
    New,
}

fn items_in(mut reader: Reader, bytes: &[u8], items: UniqueItems, values: &Values) -> Items {
    let mut here: Vec<Vec<u8>> = Vec::new();
    for &byte in bytes {
        let read = reader.read(byte, values);
        if let Some(key) = read.value {
            if here.contains(&key) || values.has(reader.seen, &key) {
                return Items::Repeat;
            }
            here.push(key);
        }
        if read.end != End::Within {
            return Items::New;
        }
    }
    let may_repeat = || match items.whole_numbers {
        true => {
            let zero = numbers::key(b"0");
            here.contains(&zero) || values.has(reader.seen, &zero)
        }
        false => !here.is_empty() || values.count(reader.seen) > 0,
    };
    match ends_in_zero(&reader, values) && may_repeat() {
        true => Items::MayRepeat,
        false => Items::New,
    }
}

/// Whether an array stands in a number that may be zero alone.
fn ends_in_zero(reader: &Reader, values: &Values) -> bool {
    reader.phase == Phase::Number && numbers::is_zero(&reader.key(values)[1..])
}

/// What is read next at a node of the trie.
enum Next {
    /// An item.
    Item(Phase),
    /// What follows an item.
    Behind { in_literal: bool },
    /// The rest of a string.
    String(Reader),
    /// The rest of a number, with its key so far.
    Number(Vec<u8>),
}

/// A walk over the trie along what was read.
struct Walk<'a> {
    trie: &'a Trie,
    values: &'a Values,
    seen: NodeId,
    items: UniqueItems,
    /// Whether all stacks are in the array.
    is_alone: bool,
    row: &'a mut [i32],
    doubtful: &'a mut Vec<u32>,
    work: Vec<(u32, Next)>,
}

impl Walk<'_> {
    fn allows(&self, token: u32) -> bool {
        self.row[token as usize >> 5] >> (token & 31) & 1 != 0
    }

    fn forbid(&mut self, token: u32) {
        self.row[token as usize >> 5] &= !(1 << (token & 31));
    }

    /// The tokens below a node repeat an item, where the text is in the array.
    fn repeat(&mut self, node: u32) {
        let trie = self.trie;
        for &token in trie.numbers_of(trie.entries_of(node..trie.end(node))) {
            if !self.allows(token) {
                continue;
            }
            match self.is_alone {
                true => self.forbid(token),
                false => self.doubtful.push(token),
            }
        }
    }

    /// All that may follow the tokens of a node may have been read.
    fn doubt(&mut self, node: u32) {
        for &token in self.trie.numbers(node) {
            if self.allows(token) {
                self.doubtful.push(token);
            }
        }
    }

    fn walk(&mut self, from: Next) {
        self.work.push((0, from));
        while let Some((node, next)) = self.work.pop() {
            match &next {
                Next::String(reader) if !is_free(reader, self.items, self.values) => {
                    self.doubt(node);
                }
                Next::Number(text) => self.number(node, text),
                _ => {}
            }
            for (child, byte) in children(self.trie, node) {
                if let Some(after) = self.after(child, byte, &next) {
                    self.work.push((child, after));
                }
            }
        }
    }

    fn after(&mut self, child: u32, byte: u8, next: &Next) -> Option<Next> {
        match next {
            Next::Item(phase) => self.item(child, byte, *phase),
            Next::Behind { in_literal } => match byte {
                b' ' | b'\t' | b'\n' | b'\r' => Some(Next::Behind { in_literal: false }),
                b',' => Some(Next::Item(Phase::Comma)),
                b'a'..=b'z' if *in_literal => Some(Next::Behind { in_literal: true }),
                _ => None,
            },
            Next::String(reader) => self.string(child, byte, reader),
            Next::Number(text) => {
                let is_digit = matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let text = || [&**text, &[byte]].concat();
                // The end of a number that needs no look goes on with what ends it.
                let ends =
                    [b' ', b'\t', b'\n', b',', b']'].into_iter().map(group).fold(0, |a, b| a | b);
                let is_free = self.items.endless_numbers && !numbers::is_zero(&text()[1..]);
                let matters = !is_free || self.trie.groups_below(child) & ends != 0;
                (is_digit && matters).then(|| Next::Number(text()))
            }
        }
    }

    fn item(&mut self, child: u32, byte: u8, phase: Phase) -> Option<Next> {
        let mut reader = Reader::new();
        (reader.seen, reader.phase) = (self.seen, phase);
        let read = reader.read(byte, self.values);
        if let Some(key) = read.value {
            if self.values.has(self.seen, &key) {
                self.repeat(child);
            }
            return None;
        }
        match reader.phase {
            _ if read.end != End::Within => None,
            Phase::String(_) => reader.like.is_some().then_some(Next::String(reader)),
            Phase::Number => Some(Next::Number(reader.piece)),
            _ => Some(Next::Item(phase)),
        }
    }

    fn string(&mut self, child: u32, byte: u8, reader: &Reader) -> Option<Next> {
        if byte == b'"'
            && let Some(whole) = reader.like_at_end(self.values)
        {
            if whole.is_some_and(|whole| self.values.has_beginning(self.seen, whole)) {
                self.repeat(child);
            }
            return None;
        }
        if self.items.endless_strings && self.trie.groups_below(child) & group(b'"') == 0 {
            return None;
        }
        let mut after = Reader { piece: Vec::new(), before: None, ..reader.clone() };
        let read = after.read(byte, self.values);
        (read.end == End::Within && after.like.is_some()).then_some(Next::String(after))
    }

    /// Looks at the tokens that lead into a number, and at those that end it at once.
    fn number(&mut self, node: u32, text: &[u8]) {
        let is_whole = text.last().is_some_and(u8::is_ascii_digit);
        let is_read = is_whole && self.values.has(self.seen, &numbers::key(&text[1..]));
        let is_free = self.items.endless_numbers && !numbers::is_zero(&text[1..]);
        if (is_read || !is_whole || !self.items.whole_numbers) && !is_free {
            self.doubt(node);
        }
        if !is_read {
            return;
        }
        for (child, byte) in children(self.trie, node) {
            if matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b',' | b']') {
                self.repeat(child);
            }
        }
    }
}
