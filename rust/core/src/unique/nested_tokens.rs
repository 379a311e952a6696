//! Which tokens repeat an item of an array of any values, or leave it no other end.

use super::arrays::Arrays;
use super::many_items::{ManyItems, children};
use super::nested::Nested;
use super::place::ArrayId;
use super::reader::End;
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
        let (items, values, is_alone) =
            (self.items(id), self.values(), self.is_alone(id, array.depth()));
        let allows = |row: &[i32], token: u32| row[token as usize >> 5] >> (token & 31) & 1 != 0;
        let is_few = self.within_of(id).fewest <= array.most_items(values) + 1;
        let count: u32 = row.iter().map(|word| word.count_ones()).sum();
        if count as usize <= 32 * row.len() / FEW_TOKENS {
            let bits = (0..).zip(row.iter()).flat_map(|(place, &word)| {
                (0..32).filter(move |bit| word >> bit & 1 != 0).map(move |bit| 32 * place + bit)
            });
            let leads_apart =
                |token: u32| array.clone().leads_apart(bytes_of(token), items, values);
            doubtful.extend(bits.filter(|&token| is_few || !leads_apart(token)));
            return;
        }
        let mut doubt = |row: &[i32], node: u32, end: u32| {
            let tokens = trie.numbers_of(trie.entries_of(node..end));
            doubtful.extend(tokens.iter().copied().filter(|&token| allows(row, token)));
        };
        let mut work = vec![(0, array.clone())];
        let mut numbers = Vec::new();
        while let Some((node, array)) = work.pop() {
            if items.whole_numbers && array.is_in_number() {
                numbers.push((node, array));
                continue;
            }
            let next = array.next_bytes();
            for (child, byte) in children(trie, node) {
                if next.is_some_and(|next| next[byte as usize >> 6] >> (byte & 63) & 1 == 0) {
                    continue;
                }
                if byte == b'[' && array.awaits_value() {
                    // The stacks say what kind of an array it is.
                    doubt(row, child, trie.end(child));
                    continue;
                }
                let mut after = array.clone();
                let step = after.read(byte);
                match step.item {
                    Some(key) if step.repeats.is_none() && !values.has(after.seen, &key) => {
                        continue;
                    }
                    None if step.repeats.is_none() && step.end != End::Within => continue,
                    None if step.repeats.is_none() => {}
                    _ if is_alone => {
                        for &token in trie.numbers_of(trie.entries_of(child..trie.end(child))) {
                            row[token as usize >> 5] &= !(1 << (token & 31));
                        }
                        continue;
                    }
                    _ => {
                        doubt(row, child, trie.end(child));
                        continue;
                    }
                }
                if after.is_apart() && !after.begins_item(values) {
                    continue;
                }
                if !(items.whole_numbers && after.is_in_number() || after.is_free(items, values)) {
                    doubt(row, child, child + 1);
                }
                work.push((child, after));
            }
        }
        // A number that differs from all before may end wherever a digit stands.
        for (node, array) in numbers {
            let mut work = vec![(node, Vec::new())];
            while let Some((node, more)) = work.pop() {
                let differs = array.differs_as_number(&more);
                if !differs && node > 0 {
                    doubt(row, node, node + 1);
                }
                for (child, byte) in children(trie, node) {
                    match byte {
                        b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E' => {
                            work.push((child, [&*more, &[byte]].concat()));
                        }
                        b' ' | b'\t' | b'\n' | b'\r' | b',' | b']' | b'}' if !differs => {
                            doubt(row, child, trie.end(child));
                        }
                        _ => {}
                    }
                }
            }
        }
        let is_in_string = !array.is_between() && !array.is_in_number();
        // Within an item that is apart, a token matters that ends it.
        let is_deep = array.is_apart() && array.is_within_item() && !array.is_on_level();
        let listed = match (is_in_string, is_deep) {
            (true, true) => &many.closing_string,
            (true, false) => &many.behind_string,
            (false, true) => &many.closing,
            (false, false) => &many.behind_comma,
        };
        let is_doubtful = |&&token: &&u32| {
            allows(row, token) && !array.clone().leads_apart(bytes_of(token), items, values)
        };
        doubtful.extend(listed.iter().chain(many.opening()).filter(is_doubtful));
        // With few values left, a comma may ask for one more than there are.
        if is_few {
            doubtful.extend(many.commas.iter().filter(|&&token| allows(row, token)));
        }
        doubtful.sort_unstable();
        doubtful.dedup();
    }
}
