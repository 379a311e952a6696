//! Which tokens repeat an item of an array of any values, or leave it no other end.

use super::arrays::Arrays;
use super::many_items::{ManyItems, children};
use super::nested::Nested;
use super::place::ArrayId;
use super::reader::End;
use super::values::Values;
use crate::grammar::UniqueItems;
use crate::vocabulary::Trie;

/// One token in so many is looked at by itself, rather than the trie of all.
const FEW_TOKENS: usize = 256;

impl Arrays {
    /// [`Self::forbid`] in such an array: the trie is walked along what items that were read have in common
    /// with the one that is being read.
    pub(super) fn forbid_nested<'v>(
        &self,
        id: ArrayId,
        array: &Nested,
        (trie, many): (&Trie, &ManyItems),
        bytes_of: impl Fn(u32) -> &'v [u8],
        row: &mut [i32],
        doubtful: &mut Vec<u32>,
    ) {
        let (items, values) = (self.items(id), self.values());
        let is_few = self.within_of(id).fewest <= array.most_items(values) + 1;
        let leads_apart = |token: u32| array.clone().leads_apart(bytes_of(token), items, values);
        let count: u32 = row.iter().map(|word| word.count_ones()).sum();
        if count as usize <= 32 * row.len() / FEW_TOKENS {
            doubtful.extend(tokens_of(row).filter(|&token| is_few || !leads_apart(token)));
            return;
        }
        let is_alone = self.is_alone(id, array.depth());
        let mut walk = NestedWalk { trie, values, items, is_alone, row, doubtful };
        for (node, array) in walk.items(array) {
            walk.number(node, &array);
        }
        let listed = listed(array, many).iter().chain(many.opening());
        let in_doubt = listed.filter(|&&token| walk.allows(token) && !leads_apart(token));
        let mut in_doubt: Vec<u32> = in_doubt.copied().collect();
        // With few values left, a comma may ask for one more than there are.
        let commas = many.commas.iter().filter(|&&token| is_few && walk.allows(token));
        in_doubt.extend(commas);
        doubtful.extend(in_doubt);
    }
}

/// The tokens of a row.
pub(super) fn tokens_of(row: &[i32]) -> impl Iterator<Item = u32> {
    (0..).zip(row).flat_map(|(place, &word)| {
        (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| 32 * place + bit)
    })
}

/// The tokens that are looked at one by one where an array stands: those that end an item and go on.
fn listed<'m>(array: &Nested, many: &'m ManyItems) -> &'m [u32] {
    let is_in_string = !array.is_between() && !array.is_in_number();
    // Within an item that is apart, a token matters that ends it.
    let is_deep = array.is_apart() && array.is_within_item() && !array.is_on_level();
    match (is_in_string, is_deep) {
        (true, true) => &many.closing_string,
        (true, false) => &many.behind_string,
        (false, true) => &many.closing,
        (false, false) => &many.behind_comma,
    }
}

/// A walk over the trie along what was read.
struct NestedWalk<'a> {
    trie: &'a Trie,
    values: &'a Values,
    items: UniqueItems,
    /// Whether all stacks are in the array.
    is_alone: bool,
    row: &'a mut [i32],
    doubtful: &'a mut Vec<u32>,
}

impl NestedWalk<'_> {
    fn allows(&self, token: u32) -> bool {
        self.row[token as usize >> 5] >> (token & 31) & 1 != 0
    }

    /// Leaves the tokens of some nodes to the stacks.
    fn doubt(&mut self, node: u32, end: u32) {
        let tokens = self.trie.numbers_of(self.trie.entries_of(node..end));
        let row = &*self.row;
        let is_allowed = |&token: &u32| row[token as usize >> 5] >> (token & 31) & 1 != 0;
        self.doubtful.extend(tokens.iter().copied().filter(is_allowed));
    }

    /// The tokens below a node repeat an item, where the text is in the array.
    fn repeat(&mut self, node: u32) {
        let end = self.trie.end(node);
        if !self.is_alone {
            return self.doubt(node, end);
        }
        for &token in self.trie.numbers_of(self.trie.entries_of(node..end)) {
            self.row[token as usize >> 5] &= !(1 << (token & 31));
        }
    }

    /// Walks along what is read behind a place, and returns the nodes where a number is read that differs from
    /// others only as a whole.
    fn items(&mut self, array: &Nested) -> Vec<(u32, Nested)> {
        let mut work = vec![(0, array.clone())];
        let mut numbers = Vec::new();
        while let Some((node, array)) = work.pop() {
            if array.is_in_number() {
                numbers.push((node, array));
                continue;
            }
            let next = array.next_bytes();
            for (child, byte) in children(self.trie, node) {
                if next.is_some_and(|next| next[byte as usize >> 6] >> (byte & 63) & 1 == 0) {
                    continue;
                }
                if byte == b'[' && array.awaits_value() {
                    // The stacks say what kind of an array it is.
                    self.doubt(child, self.trie.end(child));
                } else if let Some(after) = self.after(child, byte, &array) {
                    work.push((child, after));
                }
            }
        }
        numbers
    }

    /// Where a byte leads, if what follows is to be looked at.
    fn after(&mut self, child: u32, byte: u8, array: &Nested) -> Option<Nested> {
        let mut after = array.clone();
        let step = after.read(byte);
        match step.item {
            Some(key) if step.repeats.is_none() && !self.values.has(after.seen, &key) => {
                return None;
            }
            None if step.repeats.is_none() && step.end != End::Within => return None,
            None if step.repeats.is_none() => {}
            _ => {
                self.repeat(child);
                return None;
            }
        }
        if after.is_apart() && !after.begins_item(self.values) {
            return None;
        }
        if !after.is_in_number() && !after.is_free(self.items, self.values) {
            self.doubt(child, child + 1);
        }
        Some(after)
    }

    /// Follows numbers as far as they may be those of items before. One that may still have infinitely many values is
    /// in no doubt, nor is one that differs, where numbers may end wherever a digit stands.
    fn number(&mut self, node: u32, array: &Nested) {
        let mut work = vec![(node, Vec::new())];
        while let Some((node, more)) = work.pop() {
            let differs = array.differs_as_number(&more);
            let is_free =
                differs && self.items.whole_numbers || array.is_endless_behind(&more, self.items);
            if !is_free && node > 0 {
                self.doubt(node, node + 1);
            }
            let digits = array.next_digits(&more);
            for (child, byte) in children(self.trie, node) {
                match byte {
                    // Whatever follows, the number differs.
                    b'0'..=b'9' if digits >> (byte - b'0') & 1 == 0 => {}
                    b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' => {
                        work.push((child, [&*more, &[byte]].concat()));
                    }
                    b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}' if !differs => {
                        self.doubt(child, self.trie.end(child));
                    }
                    _ => {}
                }
            }
        }
    }
}
