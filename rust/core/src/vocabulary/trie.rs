//! The trie of a vocabulary, or of the representatives of its classes, as one flat array.

use super::groups::{BROKEN, Groups, group};
use super::utf8::{BETWEEN, UTF8_STATES, utf8_step};
use std::ops::Range;
use std::sync::OnceLock;

/// One node. Nodes stand depth-first, so a subtree is a range.
#[derive(Clone, Copy, Debug)]
struct TrieNode {
    /// Past the last node of the subtree.
    end: u32,
    /// The first of the entries of the subtree; the node's own come first.
    first: u32,
    /// The length of the longest entry of the subtree, as far as it fits.
    longest: u16,
    /// The groups of the bytes below ([`group`]); see [`BROKEN`].
    below: Groups,
    /// The byte that leads here.
    byte: u8,
    /// The states of a reader of UTF-8 in which all entries below can be read and end between two characters: a bit
    /// for each.
    characters: u8,
}

/// The parent of each node: as nodes stand depth-first, the last before it that has not ended. A root
/// is its own.
fn parents_of(nodes: &[TrieNode]) -> Vec<u32> {
    let mut parents = Vec::with_capacity(nodes.len() - 1);
    let mut path: Vec<u32> = Vec::new();
    for node in 0..nodes.len() as u32 - 1 {
        while path.last().is_some_and(|&last| nodes[last as usize].end <= node) {
            path.pop();
        }
        parents.push(path.last().copied().unwrap_or(node));
        path.push(node);
    }
    parents
}

fn add_groups(nodes: &mut [TrieNode]) {
    let count = nodes.len() - 1;
    let parents = parents_of(nodes);
    // For each node the states of a reader of UTF-8 in which all that is below can be read.
    let mut readable = vec![u8::MAX; count];
    for (node, parent) in parents.into_iter().enumerate().skip(1).rev() {
        let parent = parent as usize;
        let TrieNode { byte, first, characters, .. } = nodes[node];
        let ends = first < nodes[node + 1].first;
        let broken = Groups::from(readable[node] & 1 << BETWEEN == 0) * BROKEN;
        if parent == node {
            continue;
        }
        nodes[parent].below |= nodes[node].below & !BROKEN | group(byte);
        nodes[node].below = nodes[node].below & !BROKEN | broken;
        let before = (0..UTF8_STATES).filter(|&state| {
            utf8_step(state, byte).is_some_and(|next| readable[node] >> next & 1 == 1)
        });
        readable[parent] &= before.fold(0, |states, state| states | 1 << state);
        let before = (0..UTF8_STATES).filter(|&state| {
            utf8_step(state, byte)
                .is_some_and(|next| characters >> next & 1 == 1 && (!ends || next == BETWEEN))
        });
        nodes[parent].characters &= before.fold(0, |states, state| states | 1 << state);
    }
    if readable[0] & 1 << BETWEEN == 0 {
        nodes[0].below |= BROKEN;
    }
}

/// A trie that grows, entry after entry.
struct TrieBuilder {
    nodes: Vec<TrieNode>,
    numbers: Vec<u32>,
    characters: Vec<u8>,
    longest: usize,
    /// The nodes from the root to the last one made.
    path: Vec<usize>,
}

impl TrieBuilder {
    fn new() -> Self {
        let root =
            TrieNode { end: 0, first: 0, longest: 0, below: 0, byte: 0, characters: u8::MAX };
        let (numbers, characters) = (Vec::new(), Vec::new());
        Self { nodes: vec![root], numbers, characters, longest: 0, path: vec![0] }
    }

    /// A child of the last node of the path, or a root.
    fn open(&mut self, byte: u8) {
        self.path.push(self.nodes.len());
        let first = self.numbers.len() as u32;
        self.nodes.push(TrieNode {
            end: 0,
            first,
            longest: 0,
            below: 0,
            byte,
            characters: u8::MAX,
        });
    }

    /// Leaves so many nodes on the path.
    fn leave(&mut self, count: usize) {
        for closed in self.path.drain(count..) {
            self.nodes[closed].end = self.nodes.len() as u32;
        }
    }

    /// Adds an entry below the node of the path at a depth.
    fn add(&mut self, depth: usize, bytes: &[u8], number: u32) {
        let before = self.path[depth + 1..].iter().map(|&node| self.nodes[node].byte);
        let shared = before.zip(bytes).take_while(|(a, b)| a == *b).count();
        self.leave(depth + 1 + shared);
        bytes[shared..].iter().for_each(|&byte| self.open(byte));
        let length = depth + bytes.len();
        let short = u16::try_from(length).unwrap_or(u16::MAX);
        for &node in &self.path {
            self.nodes[node].longest = self.nodes[node].longest.max(short);
        }
        self.numbers.push(number);
        let characters = bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        self.characters.push(u8::try_from(characters).unwrap_or(u8::MAX));
        self.longest = self.longest.max(length);
    }

    fn finish(mut self, ids: u32) -> Trie {
        self.leave(0);
        // A last node closes the ranges of entries.
        let (end, first) = (self.nodes.len() as u32, self.numbers.len() as u32);
        self.nodes.push(TrieNode {
            end,
            first,
            longest: 0,
            below: 0,
            byte: 0,
            characters: u8::MAX,
        });
        add_groups(&mut self.nodes);
        let TrieBuilder { nodes, numbers, characters, longest, .. } = self;
        let (children, parents) = (Children::of(&nodes), OnceLock::new());
        Trie { nodes, children, numbers, characters, longest, ids, parents }
    }
}

/// The children of all nodes, those of a node beside each other in its *places*: in the nodes they are far
/// apart, and each that a walk looks at is a line of memory.
#[derive(Clone, Debug)]
struct Children {
    /// For each node the first of its places; those of the next node follow.
    starts: Vec<u32>,
    /// The byte that leads to the child.
    bytes: Vec<u8>,
    nodes: Vec<u32>,
}

impl Children {
    fn of(nodes: &[TrieNode]) -> Self {
        let count = nodes.len() - 1;
        let mut starts = Vec::with_capacity(count + 1);
        let (mut bytes, mut children) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for (node, TrieNode { end, .. }) in (0..).zip(&nodes[..count]) {
            starts.push(children.len() as u32);
            let mut child: u32 = node + 1;
            while child < *end {
                bytes.push(nodes[child as usize].byte);
                children.push(child);
                child = nodes[child as usize].end;
            }
        }
        starts.push(children.len() as u32);
        Self { starts, bytes, nodes: children }
    }
}

/// A trie over byte strings, each with a number. Node 0 is the empty string.
///
/// After it may stand a second one, of tokens by their ids: the only child of its root is where the
/// letter that is no byte leads, and below that are the four bytes of each id.
#[derive(Clone, Debug)]
pub struct Trie {
    nodes: Vec<TrieNode>,
    children: Children,
    numbers: Vec<u32>,
    /// For each entry how many characters of UTF-8 it begins, as far as that fits.
    characters: Vec<u8>,
    longest: usize,
    /// The root of the second trie, or past all nodes.
    ids: u32,
    /// The parents of all nodes, once they were asked for.
    parents: OnceLock<Vec<u32>>,
}

impl Trie {
    /// The trie of entries that are sorted by bytes. Bytes may repeat and are not empty.
    pub fn new<'a>(entries: impl Iterator<Item = (&'a [u8], u32)>) -> Self {
        Self::with_ids(entries, std::iter::empty())
    }

    /// The same with entries by token ids, in order.
    pub fn with_ids<'a>(
        entries: impl Iterator<Item = (&'a [u8], u32)>,
        ids: impl Iterator<Item = (u32, u32)>,
    ) -> Self {
        let mut making = TrieBuilder::new();
        entries.for_each(|(bytes, number)| making.add(0, bytes, number));
        let root = making.nodes.len() as u32;
        let mut ids = ids.peekable();
        if ids.peek().is_some() {
            making.leave(0);
            making.open(0);
            making.open(0);
            ids.for_each(|(id, number)| making.add(1, &id.to_be_bytes(), number));
        }
        making.finish(root)
    }

    /// The root of the trie of ids, if there are any.
    pub fn ids(&self) -> Option<u32> {
        ((self.ids as usize) < self.len()).then_some(self.ids)
    }

    /// Whether the letter that is no byte leads to a node.
    #[inline]
    pub fn is_escape(&self, node: u32) -> bool {
        node == self.ids + 1
    }

    /// The node behind some bytes, if entries begin with them.
    pub fn node_of(&self, bytes: &[u8]) -> Option<u32> {
        bytes.iter().try_fold(0, |node, &byte| self.child_by(node, byte))
    }

    /// The child of a node to which a byte leads, if there is one.
    pub fn child_by(&self, node: u32, byte: u8) -> Option<u32> {
        let places = self.places(node);
        let place = self.bytes_at(places.clone()).iter().position(|&other| other == byte)?;
        Some(self.child(places.start + place as u32))
    }

    /// The places of the children of a node.
    #[inline]
    pub fn places(&self, node: u32) -> Range<u32> {
        let starts = &self.children.starts;
        starts[node as usize]..starts[node as usize + 1]
    }

    /// The bytes that lead to the children at some places.
    #[inline]
    pub fn bytes_at(&self, places: Range<u32>) -> &[u8] {
        &self.children.bytes[places.start as usize..places.end as usize]
    }

    /// The child at a place.
    #[inline]
    pub fn child(&self, place: u32) -> u32 {
        self.children.nodes[place as usize]
    }

    /// The bytes that lead to the children of a node, each with the child and all nodes below it.
    pub fn children(&self, node: u32) -> impl Iterator<Item = (u8, Range<u32>)> {
        let places = self.places(node);
        let bytes = self.bytes_at(places.clone()).iter().copied();
        let nodes = &self.children.nodes[places.start as usize..places.end as usize];
        let ends = nodes.iter().skip(1).copied().chain([self.end(node)]);
        bytes.zip(nodes.iter().zip(ends).map(|(&child, end)| child..end))
    }

    /// The parent of each node; a root is its own.
    pub fn parents(&self) -> &[u32] {
        self.parents.get_or_init(|| parents_of(&self.nodes))
    }

    /// The number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Bytes of the longest entry.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// The byte that leads to a node.
    #[inline]
    pub fn byte(&self, node: u32) -> u8 {
        self.nodes[node as usize].byte
    }

    /// Past the last node of the subtree.
    #[inline]
    pub fn end(&self, node: u32) -> u32 {
        self.nodes[node as usize].end
    }

    /// The length of the longest entry below a node.
    #[inline]
    pub fn longest_below(&self, node: u32) -> u32 {
        match self.nodes[node as usize].longest {
            u16::MAX => u32::MAX,
            longest => u32::from(longest),
        }
    }

    /// Whether no entry below a node is longer than so many bytes.
    #[inline]
    pub fn is_shallow(&self, node: u32, bytes: u32) -> bool {
        self.longest_below(node) <= bytes
    }

    /// The groups of the bytes below a node.
    #[inline]
    pub fn groups_below(&self, node: u32) -> Groups {
        self.nodes[node as usize].below
    }

    /// Whether all entries below a node, where a character ends, are whole characters from there on.
    #[inline]
    pub fn has_characters_below(&self, node: u32) -> bool {
        self.nodes[node as usize].characters >> BETWEEN & 1 == 1
    }

    /// The entries that end at a range of nodes.
    #[inline]
    pub fn entries_of(&self, nodes: Range<u32>) -> Range<u32> {
        self.nodes[nodes.start as usize].first..self.nodes[nodes.end as usize].first
    }

    /// The numbers of a range of entries.
    #[inline]
    pub fn numbers_of(&self, entries: Range<u32>) -> &[u32] {
        &self.numbers[entries.start as usize..entries.end as usize]
    }

    /// How many characters of UTF-8 each of a range of entries begins; 255 says that many or more.
    #[inline]
    pub fn characters_of(&self, entries: Range<u32>) -> &[u8] {
        &self.characters[entries.start as usize..entries.end as usize]
    }

    /// The numbers of the entries that end at a node.
    #[inline]
    pub fn numbers(&self, node: u32) -> &[u32] {
        self.numbers_of(self.entries_of(node..node + 1))
    }

    /// The nodes at which entries end whose numbers are bits of a row, in order.
    pub fn nodes_with(&self, bits: &[i32]) -> Vec<u32> {
        if bits.iter().all(|&word| word == 0) {
            return Vec::new();
        }
        let is_met = |&n: &u32| bits[n as usize >> 5] >> (n & 31) & 1 == 1;
        let mut out: Vec<u32> = Vec::new();
        let (entries, mut node) = (self.numbers_of(0..self.numbers.len() as u32), 0);
        for (entry, number) in (0..).zip(entries) {
            if is_met(number) {
                let after = self.nodes[node..].partition_point(|node| node.first <= entry);
                node += after - 1; // the last that begins at the entry has it
                if out.last() != Some(&(node as u32)) {
                    out.push(node as u32);
                }
            }
        }
        out
    }

    /// Bytes held.
    pub fn bytes_held(&self) -> usize {
        self.nodes.capacity() * size_of::<TrieNode>()
            + self.numbers.capacity() * 4
            + self.characters.capacity()
            + self.children.starts.capacity() * 4
            + self.children.nodes.capacity() * 5
            + self.parents.get().map_or(0, |parents| parents.capacity() * 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn every_prefix_is_a_node_and_every_entry_is_found(
            words in proptest::collection::vec(proptest::collection::vec(0u8..3, 1..6), 0..30),
        ) {
            let mut entries: Vec<(Vec<u8>, u32)> =
                words.into_iter().enumerate().map(|(i, w)| (w, i as u32)).collect();
            entries.sort();
            let trie = Trie::new(entries.iter().map(|(w, i)| (w.as_slice(), *i)));
            let prefixes: BTreeSet<&[u8]> =
                entries.iter().flat_map(|(w, _)| (0..=w.len()).map(|n| &w[..n])).collect();
            prop_assert_eq!(trie.len(), prefixes.len().max(1));
            let mut found = Vec::new();
            let mut path: Vec<(u32, Vec<u8>)> = vec![(trie.end(0), Vec::new())];
            for node in 1..trie.len() as u32 {
                while path.last().is_some_and(|p| p.0 <= node) {
                    path.pop();
                }
                let mut word = path.last().map(|p| p.1.clone()).unwrap_or_default();
                word.push(trie.byte(node));
                found.extend(trie.numbers(node).iter().map(|&i| (word.clone(), i)));
                path.push((trie.end(node), word));
            }
            prop_assert_eq!(found, entries);
        }
    }
}
