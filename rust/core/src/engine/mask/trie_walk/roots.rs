//! The children of some nodes by the letters that lead to them.
//!
//! A question about many nodes, or about the root, mostly begins with few letters. It looks at the
//! children over those alone.

use super::Descent;
use crate::automata::alphabet::Alphabet;
use crate::engine::mask::frontier::PendingId;
use crate::network::{ClassSet, contains};
use crate::vocabulary::Trie;
use std::ops::Range;
use std::sync::Arc;

/// Letters: the bytes, and the one that is none.
const LETTERS: usize = 257;
/// Nodes from which on their children are sorted by letters; but those of a root always are.
const MANY: usize = 16;

/// Children of nodes, sorted by letter.
pub(super) struct Roots {
    ends: [u32; LETTERS],
    children: Vec<u32>,
}

impl Roots {
    fn of(trie: &Trie, nodes: &[u32]) -> Self {
        let each = |visit: &mut dyn FnMut(usize, u32)| {
            for &node in nodes {
                let mut child = node + 1;
                while child < trie.end(node) {
                    let is_escape = trie.is_escape(child);
                    visit(if is_escape { 256 } else { trie.byte(child) as usize }, child);
                    child = trie.end(child);
                }
            }
        };
        let mut ends = [0u32; LETTERS];
        each(&mut |letter, _| ends[letter] += 1);
        let mut before = 0;
        for end in &mut ends {
            before += std::mem::replace(end, before);
        }
        let mut children = vec![0; before as usize];
        each(&mut |letter, child| {
            children[ends[letter] as usize] = child;
            ends[letter] += 1;
        });
        Self { ends, children }
    }

    fn over(&self, letter: usize) -> &[u32] {
        let from = if letter == 0 { 0 } else { self.ends[letter - 1] };
        &self.children[from as usize..self.ends[letter] as usize]
    }

    /// The children over some classes with all below them, in order; those beside each other as one.
    fn beginning(&self, trie: &Trie, alphabet: &Alphabet, first: &ClassSet) -> Vec<Range<u32>> {
        let bytes = (0..=255u8).filter(|&byte| contains(first, alphabet.class(byte)));
        let escape = alphabet.escape().filter(|&class| contains(first, class)).map(|_| 256);
        let letters = bytes.map(usize::from).chain(escape);
        let mut children: Vec<u32> =
            letters.flat_map(|letter| self.over(letter)).copied().collect();
        children.sort_unstable();
        let mut out: Vec<Range<u32>> = Vec::with_capacity(children.len().min(64));
        for child in children {
            match out.last_mut() {
                Some(last) if last.end == child => last.end = trie.end(child),
                _ => out.push(child..trie.end(child)),
            }
        }
        out
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (LETTERS + self.children.len())
    }
}

impl Descent {
    /// What a frame can begin with below some nodes, as ranges of siblings with all below them.
    pub(super) fn beginnings(
        &mut self,
        frame: u32,
        nodes: &[u32],
        pending: PendingId,
    ) -> Vec<Range<u32>> {
        let trie = &self.trie;
        if nodes.len() < MANY && nodes.iter().any(|&root| root != 0) {
            return nodes.iter().map(|&root| root + 1..trie.end(root)).collect();
        }
        let roots = match self.roots.get(&pending) {
            Some(known) => known.clone(),
            None => {
                let made = Arc::new(Roots::of(trie, nodes));
                self.roots_bytes += made.bytes();
                self.roots.insert(pending, made.clone());
                made
            }
        };
        roots.beginning(trie, self.network.alphabet(), self.network.first(frame))
    }

    /// Whether a frame can begin with the bytes below which most of the trie is.
    pub(super) fn begins_with_most(&mut self, frame: u32) -> bool {
        let trie = &self.trie;
        let below = self.below.get_or_insert_with(|| {
            let mut below = Box::new([0u32; 256]);
            let mut node = 1;
            while node < trie.end(0) {
                below[trie.byte(node) as usize] += trie.end(node) - node;
                node = trie.end(node);
            }
            below
        });
        let (alphabet, first) = (self.network.alphabet(), self.network.first(frame));
        let below = (0..=255u8).zip(below.iter());
        let begun = below.filter(|(byte, _)| contains(first, alphabet.class(*byte)));
        begun.map(|(_, nodes)| nodes).sum::<u32>() >= trie.end(0) / 2
    }
}
