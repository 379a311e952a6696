//! What can be asked of the text of an array that is being read.

use super::{Candidate, CandidateArray, Nested, State};
use crate::grammar::UniqueItems;
use crate::unique::encoding::END;
use crate::unique::numbers::{self, NUMBER};
use crate::unique::reader::{End, Escape, Phase};
use crate::unique::values::{SeenId, Values};

impl Nested {
    /// Whether the innermost container is an array with unique items.
    pub(in crate::unique) fn is_on_level(&self) -> bool {
        self.levels.last().is_some_and(|level| level.frame + 1 == self.frames.len())
    }

    /// The number of items that the innermost array with unique items has read.
    pub(in crate::unique) fn count(&self, values: &Values) -> u32 {
        match self.levels.last() {
            Some(level) if level.frame > 0 => level.items.len() as u32,
            _ => values.count(self.seen),
        }
    }

    /// The most items that one of the arrays with unique items has read.
    pub(in crate::unique) fn most_items(&self, values: &Values) -> u32 {
        let inner = self.levels[1..].iter().map(|level| level.items.len() as u32).max();
        inner.unwrap_or(0).max(values.count(self.seen))
    }

    /// Whether nothing that was read can be repeated by the items that are being read, whatever follows;
    /// and whether the item that must come, if one must, can be another than all before.
    pub(in crate::unique) fn is_free(&self, items: UniqueItems, values: &Values) -> bool {
        self.is_apart()
            && (self.state != State::Comma
                || !self.is_on_level()
                || items.least > self.count(values))
    }

    /// Whether no item that was read begins as one that is being read does.
    pub(in crate::unique) fn is_apart(&self) -> bool {
        self.levels.iter().all(|level| level.from == level.to)
    }

    /// Whether an item of an array with unique items may begin here that was read before.
    pub(in crate::unique) fn begins_item(&self, values: &Values) -> bool {
        self.is_on_level()
            && matches!(self.state, State::Open | State::Comma)
            && self.count(values) > 0
    }

    /// Whether the text stands between values: white space may stand here.
    pub(in crate::unique) fn is_between(&self) -> bool {
        !matches!(self.state, State::Name | State::Scalar)
    }

    /// Whether the text stands in an item of the outermost array, or right behind one.
    pub(in crate::unique) fn is_within_item(&self) -> bool {
        self.frames.len() > 1
    }

    /// Whether some bytes may follow as far as is seen without the stacks: they repeat nothing, and what they
    /// lead to is free.
    pub(in crate::unique) fn leads_apart(
        mut self,
        bytes: &[u8],
        items: UniqueItems,
        values: &Values,
    ) -> bool {
        let mut has_item = false;
        for (place, &byte) in bytes.iter().enumerate() {
            let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            // What follows an item is compared with that one too.
            if self.awaits_value() && (byte == b'[' || has_item && byte != b']' && !is_space) {
                return false;
            }
            let step = self.read(byte);
            if let Some(key) = step.item {
                // A second one is compared with the first, and it is one less that is left.
                if has_item || values.has(self.seen, &key) {
                    return false;
                }
                has_item = true;
            }
            if step.repeats.is_some() {
                return false;
            }
            if step.end != End::Within {
                // Behind the array another may begin.
                return !bytes[place + 1..].contains(&b'[');
            }
            // What such an item is compared with holds the one before.
            if has_item && (self.is_within_item() || !self.is_between()) {
                return false;
            }
        }
        self.is_free(items, values)
    }

    /// Whether the text is in a number.
    pub(in crate::unique) fn is_in_number(&self) -> bool {
        self.state == State::Scalar && self.lexer.phase == Phase::Number
    }

    /// Whether the number that is being read may still have infinitely many values.
    pub(in crate::unique) fn is_endless_number(&self, items: UniqueItems) -> bool {
        self.is_in_number() && self.lexer.begun.is_endless(items)
    }

    /// Whether the number that is being read may have infinitely many values behind some bytes more.
    pub(in crate::unique) fn is_endless_behind(&self, more: &[u8], items: UniqueItems) -> bool {
        self.is_in_number() && self.lexer.begun.with(more).is_endless(items)
    }

    /// The digits, as bits, with which the number that is being read may go on behind some bytes more, if it is to be
    /// that of an item before.
    pub(in crate::unique) fn next_digits(&self, more: &[u8]) -> u16 {
        const ALL: u16 = 0x3ff;
        let text = [&self.lexer.piece[1..], more].concat();
        if text.iter().any(|byte| matches!(byte, b'e' | b'E')) {
            return ALL;
        }
        // Keys have the digits without zeros in front and behind.
        let mut key = vec![NUMBER];
        key.extend(text.first().filter(|&&byte| byte == b'-'));
        let digits = text.iter().filter(|byte| byte.is_ascii_digit());
        let sign = key.len();
        key.extend(digits.skip_while(|&&digit| digit == b'0'));
        let zeros = key[sign..].iter().rev().take_while(|&&digit| digit == b'0').count();
        key.truncate(key.len() - zeros);
        if key.len() == sign {
            return ALL;
        }
        let mut out = 0;
        for one in self.levels.iter().flat_map(|level| level.beginning_with(&key)) {
            let rest = &one.rest()[key.len()..];
            let next = match rest.first() {
                Some(b'e') => Some(&b'0'),
                _ if rest.iter().take(zeros).all(|&digit| digit == b'0') => rest.get(zeros),
                _ => None,
            };
            out |= next.filter(|next| next.is_ascii_digit()).map_or(0, |next| 1 << (next - b'0'));
        }
        out
    }

    /// Whether a number that ends here would leave the items apart from all before.
    pub(in crate::unique) fn differs_as_number(&self, more: &[u8]) -> bool {
        let text = [&self.lexer.piece[1..], more].concat();
        if !text.last().is_some_and(u8::is_ascii_digit) {
            return false;
        }
        let mut value = numbers::key(&text);
        value.push(END);
        !self.levels.iter().any(|level| level.has(&value))
    }

    /// Whether the text is in a string or a name, and in no escape sequence there.
    pub(in crate::unique) fn is_in_string(&self) -> bool {
        !self.is_between() && self.lexer.phase == Phase::String(Escape::default())
    }

    /// How many items that were read the current ones may be equal to.
    pub(in crate::unique) fn candidates(&self) -> usize {
        self.levels.iter().map(|level| level.to - level.from).sum()
    }

    /// How many items the inner arrays with unique items have read, and members the innermost object: so many
    /// values or names at most may not be read once more.
    pub(in crate::unique) fn taken(&self) -> usize {
        let items = self.levels[1..].iter().map(|level| level.items.len()).sum::<usize>();
        items + self.top().content.len()
    }

    /// How many containers are open within the innermost item that may be equal to one before.
    pub(in crate::unique) fn height(&self) -> usize {
        let held = self.levels.iter().rfind(|level| level.from < level.to);
        self.frames.len() - held.map_or(0, |level| level.frame + 1)
    }

    /// It without the items that were read.
    pub(in crate::unique) fn bare(&self) -> Self {
        let mut out = self.clone();
        out.seen = SeenId::NONE;
        out.levels
            .iter_mut()
            .for_each(|level| *level = CandidateArray::new(level.frame, Vec::new()));
        out
    }

    /// How many containers are open.
    pub(in crate::unique) fn open_containers(&self) -> usize {
        self.frames.len()
    }

    /// The bytes with which a string or a name may go on as one of an item before does, where each byte
    /// stands for itself.
    pub(in crate::unique) fn next_bytes(&self) -> Option<[u64; 4]> {
        if self.is_between() || self.lexer.phase != Phase::String(Escape::default()) {
            return None;
        }
        let mut out = [0; 4];
        let mut add = |byte: u8| out[byte as usize >> 6] |= 1 << (byte & 63);
        add(b'"');
        add(b'\\');
        let piece = &self.lexer.piece;
        for level in self.levels.iter().filter(|level| level.from < level.to) {
            if self.state == State::Name {
                for one in level.current() {
                    let names = one.item.names(one.container, &piece[1..]);
                    names.filter_map(|name| name.get(piece.len() - 1)).for_each(|&byte| add(byte));
                }
                continue;
            }
            let mut left = level.current();
            while let Some(one) = left.first() {
                let byte = one.rest()[piece.len()];
                if byte != END {
                    add(byte);
                }
                let same = |one: &Candidate| one.rest()[piece.len()] == byte;
                left = &left[left.partition_point(same)..];
            }
        }
        Some(out)
    }

    /// What tells beginnings of items apart that may be completed by other texts, of those that go on from
    /// one text.
    pub(in crate::unique) fn signature(&self) -> Vec<u8> {
        let mut out = vec![self.state as u8];
        let open = self.levels.iter().find(|level| level.from < level.to);
        let from = open.or(self.levels.last()).map_or(0, |level| level.frame + 1);
        for frame in &self.frames[from.min(self.frames.len())..] {
            out.push(if frame.is_object { b'{' } else { b'[' });
            frame.content.pieces().for_each(|piece| out.extend_from_slice(piece));
            frame.name.iter().for_each(|name| out.extend([&**name, &[END]].concat()));
        }
        out.push(END);
        if !self.is_between() {
            let piece = &self.lexer.piece;
            match self.lexer.phase {
                // Spellings of one number that end in a digit have the same continuations here.
                Phase::Number if piece.last().is_some_and(u8::is_ascii_digit) => {
                    out.extend(numbers::key(&piece[1..]));
                }
                Phase::String(escape) => {
                    escape.number().iter().for_each(|part| out.extend(part.to_le_bytes()));
                    out.extend_from_slice(piece);
                }
                _ => out.extend_from_slice(piece),
            }
        }
        out
    }

    /// The bytes that it holds, but for the items that were read.
    pub(in crate::unique) fn bytes_held(&self) -> usize {
        let content: usize = self.frames.iter().map(|frame| frame.content.bytes()).sum();
        self.text.len()
            + self.lexer.piece.len()
            + content
            + size_of_val(&*self.frames)
            + size_of_val(&*self.levels)
    }

    /// The bytes that it holds with these.
    pub(in crate::unique) fn bytes(&self) -> usize {
        let of_level = |level: &CandidateArray| {
            level.bytes + (level.items.len() + level.candidates.len()) * size_of::<Candidate>()
        };
        self.bytes_held() + self.levels.iter().map(of_level).sum::<usize>()
    }

    /// A measure of the work that a byte takes.
    pub(in crate::unique) fn weight(&self) -> u64 {
        self.levels.iter().map(|level| (level.to - level.from) as u64).sum::<u64>() / 16
    }
}
