//! The vocabulary as byte strings, in the order in which a walk of its trie meets them.
//!
//! Design: docs/design/masks.md, "Whole subtrees".
//!
//! - here: the bytes of tokens, which of them are text, and which are special or stop tokens
//! - `groups`: groups of bytes, by which a subtree of the trie is read as a whole
//! - `trie`: the trie of the tokens of text as one flat array
//! - `utf8`: a reader of UTF-8, and which states of others read whole characters as it does

mod groups;
mod trie;
mod utf8;

pub use groups::{BROKEN, Groups, NUM_GROUPS, TEXT, each_of, group};
pub use trie::Trie;
pub use utf8::reads_characters;

use crate::error::{Error, Result};
use std::sync::{Arc, OnceLock};

/// The bytes of every token, and which ids are tokens of text at all.
///
/// Invariant: `order` holds the *textual* ids (bytes not empty, neither stop nor special), sorted
/// by bytes and then by id.
#[derive(Clone, Debug)]
pub struct Vocabulary {
    blob: Vec<u8>,
    offsets: Vec<u32>,
    stop_ids: Vec<u32>,
    textual: Vec<bool>,
    order: Vec<u32>,
    longest: usize,
    trie: OnceLock<Arc<Trie>>,
}

impl Vocabulary {
    /// A vocabulary of `offsets.len() - 1` ids; id `i` has the bytes `blob[offsets[i]..offsets[i + 1]]`.
    /// Ids in `special_ids`, and ids without bytes, are never valid as text.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] when there is no id, the offsets do not fit, or a stop or special id
    /// is not an id.
    pub fn new(
        blob: Vec<u8>,
        offsets: Vec<u32>,
        stop_ids: &[u32],
        special_ids: &[u32],
    ) -> Result<Self> {
        let size = offsets.len().saturating_sub(1);
        if size == 0 {
            return Err(Error::Vocabulary(
                "the vocabulary is empty: it needs at least one token".into(),
            ));
        }
        let fits = offsets[0] == 0
            && offsets.windows(2).all(|w| w[0] <= w[1])
            && offsets[size] as usize == blob.len();
        if !fits {
            return Err(Error::Vocabulary("token offsets do not divide the token bytes".into()));
        }
        let mut textual: Vec<bool> = offsets.windows(2).map(|w| w[0] != w[1]).collect();
        for (kind, ids) in [("stop", stop_ids), ("special", special_ids)] {
            for &id in ids {
                match textual.get_mut(id as usize) {
                    Some(flag) => *flag = false,
                    None => {
                        return Err(Error::Vocabulary(format!(
                            "{kind} token {id} is outside the vocabulary of {size} tokens: \
                             pass ids below {size}, or a larger size"
                        )));
                    }
                }
            }
        }
        let mut stop_ids = stop_ids.to_vec();
        stop_ids.sort_unstable();
        stop_ids.dedup();
        let bytes =
            |id: u32| &blob[offsets[id as usize] as usize..offsets[id as usize + 1] as usize];
        let mut keyed: Vec<(u64, u32)> = (0..size as u32)
            .filter(|&id| textual[id as usize])
            .map(|id| (sort_key(bytes(id)), id))
            .collect();
        keyed.sort_unstable_by(|a, b| {
            a.0.cmp(&b.0).then_with(|| bytes(a.1).cmp(bytes(b.1))).then(a.1.cmp(&b.1))
        });
        let order: Vec<u32> = keyed.into_iter().map(|k| k.1).collect();
        let longest = order.iter().map(|&id| bytes(id).len()).max().unwrap_or(0);
        Ok(Self { blob, offsets, stop_ids, textual, order, longest, trie: OnceLock::new() })
    }

    /// The number of ids.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Never: there is at least one id.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The bytes of an id.
    pub fn bytes(&self, id: u32) -> &[u8] {
        &self.blob[self.offsets[id as usize] as usize..self.offsets[id as usize + 1] as usize]
    }

    /// How many bytes each id has.
    pub fn lengths(&self) -> impl Iterator<Item = usize> {
        self.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize)
    }

    /// The stop tokens, sorted.
    pub fn stop_ids(&self) -> &[u32] {
        &self.stop_ids
    }

    /// The textual ids, sorted by bytes and then by id.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// Whether an id is a token of text: it has bytes and is neither stop nor special.
    pub fn is_textual(&self, id: u32) -> bool {
        self.textual[id as usize]
    }

    /// Whether an id can be taken whole where a grammar names it: it has bytes and is no stop
    /// token.
    pub fn is_whole(&self, id: u32) -> bool {
        !self.bytes(id).is_empty() && self.stop_ids.binary_search(&id).is_err()
    }

    /// The ids that can be taken whole, as ranges that do not touch.
    pub fn whole_ranges(&self) -> Vec<(u32, u32)> {
        let mut out: Vec<(u32, u32)> = Vec::new();
        for id in (0..self.len() as u32).filter(|&id| self.is_whole(id)) {
            match out.last_mut() {
                Some(last) if last.1 + 1 == id => last.1 = id,
                _ => out.push((id, id)),
            }
        }
        out
    }

    /// The trie of all textual tokens, whose numbers are their ids; made once.
    pub fn trie(&self) -> &Arc<Trie> {
        let entries = || self.order.iter().map(|&id| (self.bytes(id), id));
        self.trie.get_or_init(|| Arc::new(Trie::new(entries())))
    }

    /// The same with all ids that can be taken whole: nodes of bytes keep their numbers.
    pub fn trie_with_ids(&self) -> Trie {
        let ids = (0..self.len() as u32).filter(|&id| self.is_whole(id)).map(|id| (id, id));
        Trie::with_ids(self.order.iter().map(|&id| (self.bytes(id), id)), ids)
    }

    /// Splits bytes into textual tokens, each the longest that fits, of those with the same bytes the lowest; with how
    /// many bytes were split: fewer than all where no token fits.
    pub fn encode_greedy(&self, bytes: &[u8]) -> (Vec<u32>, usize) {
        let (trie, mut at, mut out) = (self.trie(), 0, Vec::new());
        while at < bytes.len() {
            let (mut node, mut longest) = (0, None);
            for (read, &byte) in bytes[at..].iter().enumerate() {
                let Some(next) = trie.child_by(node, byte) else { break };
                node = next;
                longest = trie.numbers(node).first().map(|&id| (id, read + 1)).or(longest);
            }
            let Some((id, length)) = longest else { break };
            out.push(id);
            at += length;
        }
        (out, at)
    }

    /// How many of the last bytes may begin a textual token that is longer than they are.
    pub fn unsettled(&self, bytes: &[u8]) -> usize {
        let trie = self.trie();
        let goes_on = |&count: &usize| {
            let node = trie.node_of(&bytes[bytes.len() - count..]);
            node.is_some_and(|node| trie.end(node) > node + 1)
        };
        (1..=bytes.len().min(self.longest)).rev().find(goes_on).unwrap_or(0)
    }

    /// The textual ids with some bytes; or, in order of their bytes, those whose bytes begin so and go on.
    pub fn ids_of(&self, bytes: &[u8], are_longer: bool) -> &[u32] {
        let trie = self.trie();
        match trie.node_of(bytes) {
            Some(node) if are_longer => trie.numbers_of(trie.entries_of(node + 1..trie.end(node))),
            Some(node) => trie.numbers(node),
            None => &[],
        }
    }

    /// The length in bytes of the longest textual token.
    pub fn longest(&self) -> usize {
        self.longest
    }
}

/// The first eight bytes as a number that sorts like them.
fn sort_key(bytes: &[u8]) -> u64 {
    let mut key = [0; 8];
    let n = bytes.len().min(8);
    key[..n].copy_from_slice(&bytes[..n]);
    u64::from_be_bytes(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocabulary(tokens: &[&[u8]], stop: &[u32], special: &[u32]) -> Result<Vocabulary> {
        let mut offsets = vec![0];
        let mut blob = Vec::new();
        for token in tokens {
            blob.extend_from_slice(token);
            offsets.push(blob.len() as u32);
        }
        Vocabulary::new(blob, offsets, stop, special)
    }

    #[test]
    fn order_is_by_bytes_then_id() {
        let tokens: [&[u8]; 8] = [b"b", b"ab", b"", b"a", b"ab", b"a\0", b"</s>", b"abcdefghij"];
        let v = vocabulary(&tokens, &[6], &[]).expect("valid");
        assert_eq!(v.order(), [3, 5, 1, 4, 7, 0]);
        assert_eq!(v.longest(), 10);
    }

    #[test]
    fn bad_ids_are_named() {
        let error = vocabulary(&[b"a"], &[1], &[]).expect_err("outside");
        assert!(error.to_string().contains("stop token 1 is outside the vocabulary of 1"));
        assert!(vocabulary(&[], &[], &[]).is_err());
    }
}
