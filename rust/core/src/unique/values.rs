//! The values of the items that the texts of one holder have read.
//!
//! A value is a key: of a string what it says, of a number its value, of a literal its first letter. Keys
//! are held once, in order, so that one is found by how it begins. What an array has read is a node of a
//! tree, from which the way to the root names its values: texts that part share what they read before,
//! and a text that goes back goes to an ancestor. Jump pointers (Myers' random access lists) tell in
//! logarithmic time whether a node is an ancestor.

use super::keys::{Keys, make_room};
use super::numbers::Begun;
use super::pieces::{Piece, Pieces};
use crate::budget::Halt;
use rustc_hash::FxHashMap;
use std::num::NonZeroU32;

/// A beginning of a value: the number of the value, and how many bytes of its key.
pub(super) type Like = (u32, NonZeroU32);

/// The last value that an array has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SeenId(u32);

impl SeenId {
    /// Of an array that has read none.
    pub(super) const NONE: Self = Self(u32::MAX);
}

#[derive(Clone, Copy, Debug)]
struct SeenNode {
    parent: SeenId,
    /// An ancestor further up, or the node itself where none has a parent.
    jump: SeenId,
    depth: u32,
    value: u32,
    /// The last node before with the same value.
    same: SeenId,
}

#[derive(Debug, Default)]
pub(super) struct Values {
    keys: Keys,
    /// For each value its last node.
    nodes_of: Vec<SeenId>,
    nodes: Vec<SeenNode>,
    pub(super) pieces: Pieces,
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    values: usize,
    nodes: usize,
    pieces: usize,
}

impl Values {
    fn node(&self, id: SeenId) -> SeenNode {
        self.nodes[id.0 as usize]
    }

    /// The number of values that an array has read.
    pub(super) fn count(&self, seen: SeenId) -> u32 {
        if seen == SeenId::NONE { 0 } else { self.node(seen).depth + 1 }
    }

    /// Whether an array has read a value.
    pub(super) fn has(&self, seen: SeenId, key: &[u8]) -> bool {
        if seen == SeenId::NONE {
            return false;
        }
        let Some(value) = self.keys.find(key) else { return false };
        let mut node = self.nodes_of[value as usize];
        while node != SeenId::NONE {
            if self.is_above(node, seen) {
                return true;
            }
            node = self.node(node).same;
        }
        false
    }

    fn is_above(&self, above: SeenId, mut node: SeenId) -> bool {
        let depth = self.node(above).depth;
        loop {
            let SeenNode { parent, jump, depth: here, .. } = self.node(node);
            if here <= depth {
                return node == above;
            }
            node = if self.node(jump).depth >= depth { jump } else { parent };
        }
    }

    /// What an array has read after one more value.
    pub(super) fn add(&mut self, seen: SeenId, key: &[u8]) -> SeenId {
        let value = self.keys.find(key).unwrap_or_else(|| {
            make_room(&mut self.nodes_of, 1);
            self.nodes_of.push(SeenId::NONE);
            self.keys.add(key)
        });
        let id = SeenId(self.nodes.len() as u32);
        let (depth, jump) = match seen {
            SeenId::NONE => (0, id),
            seen => {
                let p = self.node(seen);
                let j = if p.jump == seen { p } else { self.node(p.jump) };
                let jj = self.node(j.jump);
                let is_even = p.depth - j.depth == j.depth - jj.depth && p.depth > 0;
                (p.depth + 1, if is_even { j.jump } else { seen })
            }
        };
        let same = std::mem::replace(&mut self.nodes_of[value as usize], id);
        make_room(&mut self.nodes, 1);
        self.nodes.push(SeenNode { parent: seen, jump, depth, value, same });
        id
    }

    /// A value that begins so, with the length of the beginning.
    pub(super) fn like(&self, beginning: &[u8]) -> Option<Like> {
        let (value, key) = self.keys.from(beginning).next()?;
        let length = NonZeroU32::new(u32::try_from(beginning.len()).ok()?)?;
        key.starts_with(beginning).then_some((value, length))
    }

    /// The values that begin so, of all texts, in order.
    pub(super) fn beginning_with<'a>(
        &'a self,
        beginning: &'a [u8],
    ) -> impl Iterator<Item = &'a [u8]> {
        let keys = self.keys.from(beginning).map(|found| found.1);
        keys.take_while(move |key| key.starts_with(beginning))
    }

    /// A value that begins as one does, and goes on with a byte.
    pub(super) fn longer(&self, (value, length): Like, byte: u8) -> Option<Like> {
        match self.keys.get(value).get(length.get() as usize) {
            Some(&next) if next == byte => Some((value, length.checked_add(1)?)),
            _ => self.like(&[self.beginning((value, length)), &[byte]].concat()),
        }
    }

    /// Whether an array has read the value that is the beginning of another.
    pub(super) fn has_beginning(&self, seen: SeenId, like: Like) -> bool {
        self.has(seen, self.beginning(like))
    }

    /// Remembers the beginning of an item behind another piece of it.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no number for so much text.
    pub(super) fn piece(
        &mut self,
        before: Option<Piece>,
        bytes: &[u8],
    ) -> Result<Option<Piece>, Halt> {
        self.pieces.add(before, bytes)
    }

    /// What is known of the beginning of a number.
    pub(super) fn begun(&self, piece: Option<Piece>) -> Begun {
        self.pieces.begun(piece)
    }

    /// The beginning of an item.
    pub(super) fn text(&self, piece: Piece) -> Vec<u8> {
        self.pieces.text(piece)
    }

    /// The values that an array has read, the first one first.
    pub(super) fn read(&self, seen: SeenId) -> Vec<&[u8]> {
        let mut out = Vec::new();
        let mut at = seen;
        while at != SeenId::NONE {
            let node = self.node(at);
            out.push(self.keys.get(node.value));
            at = node.parent;
        }
        out.reverse();
        out
    }

    /// The beginning of a value.
    pub(super) fn beginning(&self, (value, length): Like) -> &[u8] {
        &self.keys.get(value)[..length.get() as usize]
    }

    /// A node in other tables; `copies` are those that are there.
    pub(super) fn copy_node(
        &self,
        node: SeenId,
        to: &mut Self,
        copies: &mut FxHashMap<SeenId, SeenId>,
    ) -> SeenId {
        let mut missing = Vec::new();
        let mut at = node;
        while at != SeenId::NONE && !copies.contains_key(&at) {
            missing.push(at);
            at = self.node(at).parent;
        }
        let mut copy = copies.get(&at).copied().unwrap_or(SeenId::NONE);
        for node in missing.into_iter().rev() {
            copy = to.add(copy, self.keys.get(self.node(node).value));
            copies.insert(node, copy);
        }
        copy
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.nodes_of.capacity() * size_of::<SeenId>()
            + self.nodes.capacity() * size_of::<SeenNode>()
            + self.pieces.bytes()
    }

    /// How much there is now.
    pub(super) fn mark(&self) -> Mark {
        Mark { values: self.keys.len(), nodes: self.nodes.len(), pieces: self.pieces.len() }
    }

    /// Drops what was added since.
    pub(super) fn reset(&mut self, mark: Mark) {
        while self.nodes.len() > mark.nodes
            && let Some(node) = self.nodes.pop()
        {
            self.nodes_of[node.value as usize] = node.same;
        }
        while self.keys.len() > mark.values {
            self.keys.pop();
            self.nodes_of.pop();
        }
        self.pieces.truncate(mark.pieces);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn values_are_those_of_the_way_to_the_root() {
        let mut values = Values::default();
        let mut texts: Vec<(SeenId, BTreeSet<Vec<u8>>)> = vec![(SeenId::NONE, BTreeSet::new())];
        let mut random = 7u64;
        for step in 0..2_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = match random >> 40 & 7 {
                0 => (random >> 45) as usize % texts.len(),
                _ => texts.len() - 1,
            };
            let key = format!("\"{}", random >> 33 & 255).into_bytes();
            let (seen, read) = texts[at].clone();
            assert_eq!(values.has(seen, &key), read.contains(&key), "step {step}");
            assert_eq!(values.count(seen) as usize, read.len());
            if read.contains(&key) {
                continue;
            }
            let mark = values.mark();
            values.add(seen, b"\"what is dropped again");
            values.reset(mark);
            let mut more = read;
            more.insert(key.clone());
            texts.push((values.add(seen, &key), more));
        }
        for (seen, read) in &texts {
            let keys: BTreeSet<Vec<u8>> =
                values.read(*seen).iter().map(|key| key.to_vec()).collect();
            assert_eq!(keys, *read);
        }
    }

    #[test]
    fn a_value_is_found_by_how_it_begins() {
        let mut values = Values::default();
        let mut seen = SeenId::NONE;
        for key in ["\"ab", "\"abc", "\"b", "#1e0"] {
            seen = values.add(seen, key.as_bytes());
        }
        let begins = |text: &str| values.like(text.as_bytes()).map(|like| like.0);
        assert_eq!(
            ["\"", "\"ab", "\"abc", "\"abd", "#"].map(begins),
            [Some(0), Some(0), Some(1), None, Some(3)]
        );
        let mut like = values.like(b"\"");
        for (byte, is_read) in [(b'a', false), (b'b', true), (b'c', true)] {
            like = values.longer(like.expect("more begin so"), byte);
            assert_eq!(values.has_beginning(seen, like.expect("one goes on so")), is_read);
        }
        assert_eq!(values.longer(like.expect("the last"), b'x'), None);
    }
}
