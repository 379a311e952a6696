//! Which tokens of a row make an item equal to one before, or leave it no other end.
//!
//! Nearly all of that is seen from the bytes: the trie of the vocabulary is walked along what the array
//! has read, and where a value that was read is complete all tokens below are forbidden. What only the
//! stacks can tell is left to whoever has them: the tokens in doubt.

use super::arrays::Arrays;
use super::many_items::{Ends, ManyItems, children, ends_in_zero};
use super::nested_tokens::tokens_of;
use super::numbers::{self, Begun, NUMBER};
use super::place::ArrayId;
use super::reader::{End, Escape, Phase, Reader, STRING};
use super::search::is_free;
use super::values::{SeenId, Values};
use crate::grammar::UniqueItems;
use crate::vocabulary::{Trie, group};

/// So many values, and as many as there are ends of items, are looked for among these.
const SOME_VALUES: usize = 4_096;

impl Arrays {
    /// Takes out of a row of tokens those that repeat an item; adds those for which the stacks are needed, in
    /// order.
    pub(crate) fn forbid<'v>(
        &self,
        id: ArrayId,
        (trie, many): (&Trie, &ManyItems),
        bytes_of: impl Fn(u32) -> &'v [u8],
        row: &mut [i32],
        doubtful: &mut Vec<u32>,
    ) {
        // Stacks in no array may open one, and end items there.
        let is_beside = self.place(id).is_one_of_many || self.within_of(id).counts[0] == 0;
        let opening = if is_beside { many.opening() } else { &many.reopening };
        let allows = |token: u32| row[token as usize >> 5] >> (token & 31) & 1 != 0;
        doubtful.extend(opening.iter().filter(|&&token| allows(token)));
        for id in self.places_of(id) {
            self.forbid_in_one(id, (trie, many), &bytes_of, row, doubtful);
        }
        doubtful.sort_unstable();
        doubtful.dedup();
    }

    /// What [`Arrays::forbid`] does, for one place of a text. Where the text has others, it only adds doubtful tokens.
    fn forbid_in_one<'v>(
        &self,
        id: ArrayId,
        (trie, many): (&Trie, &ManyItems),
        bytes_of: impl Fn(u32) -> &'v [u8],
        row: &mut [i32],
        doubtful: &mut Vec<u32>,
    ) {
        if let Some(array) = self.kept_reader(id) {
            self.forbid_nested(id, array, (trie, many), bytes_of, row, doubtful);
            return;
        }
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
            return;
        }
        let mut walk =
            TokenWalk { trie, values, seen, items, is_alone, row, doubtful, work: Vec::new() };
        let next = match reader.phase {
            Phase::Open | Phase::Comma => Next::Item(reader.phase),
            Phase::Behind | Phase::Literal => {
                Next::Behind { in_literal: reader.phase == Phase::Literal }
            }
            Phase::String(_) => Next::String(reader.clone()),
            Phase::Number => Next::Number(reader.key(values)),
            Phase::Nested => {
                // Without a reader nothing is seen from the bytes.
                doubtful.extend(tokens_of(row));
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
                    TokenItems::Repeat => walk.forbid(token),
                    TokenItems::MayRepeat => walk.doubtful.push(token),
                    TokenItems::New => {}
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
        if values.count(seen) > 0 {
            let beginning = match (is_in_string, reader.like) {
                (true, like) => like.map(|like| values.beginning(like)),
                (false, _) => Some(&[STRING][..]),
            };
            for node in ends_read(ends, (values, seen), beginning, &number[1..]) {
                for &token in trie.numbers_of(trie.entries_of(node..trie.end(node))) {
                    row[token as usize >> 5] &= !(1 << (token & 31));
                }
            }
        }
        for &token in ends.two.iter().chain(&ends.zeros) {
            if row[token as usize >> 5] >> (token & 31) & 1 == 0 {
                continue;
            }
            match items_in(reader.clone(), bytes_of(token), items, values) {
                TokenItems::Repeat => row[token as usize >> 5] &= !(1 << (token & 31)),
                TokenItems::MayRepeat => doubtful.push(token),
                TokenItems::New => {}
            }
        }
        true
    }
}

/// The nodes of the ends behind which an item is one that was read: a string goes on from a beginning, if one that
/// was read has it, and a number from its text.
fn ends_read(
    ends: &Ends,
    (values, seen): (&Values, SeenId),
    beginning: Option<&[u8]>,
    number: &[u8],
) -> Vec<u32> {
    let mut nodes = Vec::new();
    if let Some(beginning) = beginning.filter(|_| !ends.strings.is_empty()) {
        // Either what was read is looked for among the ends, or these among what was read.
        let mut left = SOME_VALUES + ends.strings.len();
        for key in values.beginning_with(beginning) {
            let more = &key[beginning.len()..];
            if more.len() <= ends.longest
                && let Some(read) = ends.strings.get(more)
                && values.has(seen, key)
            {
                nodes.extend_from_slice(read);
            }
            left -= 1;
            if left == 0 {
                break;
            }
        }
        for (more, read) in ends.strings.iter().filter(|_| left == 0) {
            if values.has(seen, &[beginning, more].concat()) {
                nodes.extend_from_slice(read);
            }
        }
    }
    for (text, node) in &ends.numbers {
        let text = [number, text].concat();
        if text.last().is_some_and(u8::is_ascii_digit) && values.has(seen, &numbers::key(&text)) {
            nodes.push(*node);
        }
    }
    let literals = ends.literals.iter().filter(|(letter, _)| values.has(seen, &[*letter]));
    nodes.extend(literals.map(|(_, node)| *node));
    nodes
}

/// What some bytes do with items.
#[derive(PartialEq, Eq)]
enum TokenItems {
    /// One is equal to one before, in those bytes or in front of them.
    Repeat,
    /// They end in a number that may be zero alone, and what it may be was perhaps read before.
    MayRepeat,
    /// All are new.
    New,
}

fn items_in(mut reader: Reader, bytes: &[u8], items: UniqueItems, values: &Values) -> TokenItems {
    let mut here: Vec<Vec<u8>> = Vec::new();
    for &byte in bytes {
        let read = reader.read(byte, values);
        if let Some(key) = read.value {
            if here.contains(&key) || values.has(reader.seen, &key) {
                return TokenItems::Repeat;
            }
            here.push(key);
        }
        if read.end != End::Within {
            return TokenItems::New;
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
        true => TokenItems::MayRepeat,
        false => TokenItems::New,
    }
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
struct TokenWalk<'a> {
    trie: &'a Trie,
    values: &'a Values,
    seen: SeenId,
    items: UniqueItems,
    /// Whether all stacks are in the array.
    is_alone: bool,
    row: &'a mut [i32],
    doubtful: &'a mut Vec<u32>,
    work: Vec<(u32, Next)>,
}

impl TokenWalk<'_> {
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
                let is_free = Begun::default().with(&text()).is_endless(self.items);
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
        let is_free = Begun::default().with(text).is_endless(self.items);
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
