//! What walks of the trie find, and what they share.

use crate::automata::alphabet::Alphabet;
use crate::vocabulary::Trie;
use std::ops::Range;

/// Trie nodes that count as one unit of work: a step that is remembered is cheap.
pub(in crate::engine) const NODES_OF_WORK: u64 = 8;

/// What a walk over the trie gives besides the entries that it lists.
#[derive(Default)]
pub(in crate::engine) struct Found {
    /// Entries of the trie that are accepted: ranges that do not touch, in order.
    pub(in crate::engine) accepted: Vec<Range<u32>>,
    /// Nodes where the frame has been popped: tokens below them go on in the frame beneath.
    pub(in crate::engine) popped: Vec<u32>,
    /// With `near`: subtrees that were walked, by their nodes.
    pub(in crate::engine) walked: Vec<Range<u32>>,
}

impl Found {
    pub(in crate::engine) fn accept(&mut self, entries: Range<u32>) {
        match self.accepted.last_mut() {
            Some(last) if last.end == entries.start => last.end = entries.end,
            _ if entries.is_empty() => {}
            _ => self.accepted.push(entries),
        }
    }
}

/// The class of the letter that leads to a node.
#[inline]
pub(in crate::engine) fn class_at(alphabet: &Alphabet, trie: &Trie, node: u32) -> u8 {
    class_of(alphabet, trie.byte(node), trie.is_escape(node))
}

/// The class of a byte, or of the letter that is none.
#[inline]
pub(in crate::engine) fn class_of(alphabet: &Alphabet, byte: u8, is_escape: bool) -> u8 {
    alphabet.escape().filter(|_| is_escape).unwrap_or_else(|| alphabet.class(byte))
}
