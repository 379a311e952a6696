//! The children of some nodes by the letters that lead to them.
//!
//! A question about many nodes mostly begins with few letters. It looks at the children over those
//! alone. Of few nodes, and of nodes on the way, a walk looks at the letters of all children, which
//! stand beside each other, and at the children over those that can be read.

use super::Descent;
use crate::automata::alphabet::Alphabet;
use crate::engine::mask::pending::PendingId;
use crate::network::{ClassSet, add_all, contains};
use crate::stacks::{LABEL, SetId};
use crate::vocabulary::Trie;
use std::ops::Range;
use std::sync::Arc;

/// Letters: the bytes, and the one that is none.
const LETTERS: usize = 257;
/// Nodes from which on their children are sorted by letters.
const MANY: usize = 16;
/// All classes.
const ALL: ClassSet = [u64::MAX; 4];

/// Children of nodes, sorted by letter.
pub(super) struct Roots {
    ends: [u32; LETTERS],
    places: Vec<u32>,
}

/// Children of a node that a walk has yet to look at.
pub(super) struct Siblings {
    places: Range<u32>,
    /// The classes of the letters that are read before them, or more.
    read: ClassSet,
}

impl Siblings {
    fn new(trie: &Trie, places: Range<u32>, read: ClassSet) -> Self {
        // The letter that is no byte has no byte here that its class could be looked up by. It has no siblings.
        let is_escape = !places.is_empty() && trie.is_escape(trie.child(places.start));
        Self { places, read: if is_escape { ALL } else { read } }
    }

    /// The next child over a letter that is read.
    #[inline]
    pub(super) fn next(&mut self, trie: &Trie, alphabet: &Alphabet) -> Option<u32> {
        let bytes = trie.bytes_at(self.places.clone());
        let skipped = bytes.iter().position(|&byte| contains(&self.read, alphabet.class(byte)))?;
        let place = self.places.start + skipped as u32;
        self.places.start = place + 1;
        Some(trie.child(place))
    }
}

impl Roots {
    fn of(trie: &Trie, nodes: &[u32]) -> Self {
        let each = |visit: &mut dyn FnMut(usize, u32)| {
            for place in nodes.iter().flat_map(|&node| trie.places(node)) {
                let is_escape = trie.is_escape(trie.child(place));
                let byte = trie.bytes_at(place..place + 1)[0];
                visit(if is_escape { 256 } else { byte as usize }, place);
            }
        };
        let mut ends = [0u32; LETTERS];
        each(&mut |letter, _| ends[letter] += 1);
        let mut before = 0;
        for end in &mut ends {
            before += std::mem::replace(end, before);
        }
        let mut places = vec![0; before as usize];
        each(&mut |letter, place| {
            places[ends[letter] as usize] = place;
            ends[letter] += 1;
        });
        Self { ends, places }
    }

    fn over(&self, letter: usize) -> &[u32] {
        let from = if letter == 0 { 0 } else { self.ends[letter - 1] };
        &self.places[from as usize..self.ends[letter] as usize]
    }

    /// The places of the children over some classes, in order; those beside each other as one.
    fn beginning(&self, alphabet: &Alphabet, first: &ClassSet) -> Vec<Range<u32>> {
        let bytes = (0..=255u8).filter(|&byte| contains(first, alphabet.class(byte)));
        let escape = alphabet.escape().filter(|&class| contains(first, class)).map(|_| 256);
        let letters = bytes.map(usize::from).chain(escape);
        let mut places: Vec<u32> = letters.flat_map(|letter| self.over(letter)).copied().collect();
        places.sort_unstable();
        let mut out: Vec<Range<u32>> = Vec::with_capacity(places.len().min(64));
        for place in places {
            match out.last_mut() {
                Some(last) if last.end == place => last.end += 1,
                _ => out.push(place..place + 1),
            }
        }
        out
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (LETTERS + self.places.len())
    }
}

impl Descent {
    /// The places of the children of some nodes, those of many without what a frame cannot begin with.
    pub(super) fn beginnings(
        &mut self,
        frame: u32,
        nodes: &[u32],
        pending: PendingId,
    ) -> Vec<Range<u32>> {
        let trie = &self.trie;
        if nodes.len() < MANY {
            return nodes.iter().map(|&root| trie.places(root)).collect();
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
        roots.beginning(self.network.alphabet(), self.network.first(frame))
    }

    /// The classes that the tops of a set read, or more. It goes down the tree of a set, which has a level
    /// for each bit of a state at most.
    fn classes_read(&mut self, set: SetId) -> ClassSet {
        let sets = &self.stepper.sets;
        let Some((left, right)) = sets.halves(set) else {
            let tops = sets.list(set).iter().filter(|entry| entry.0 < LABEL);
            return tops.fold([0; 4], |mut out, &(top, _)| {
                add_all(&mut out, self.network.first(top));
                out
            });
        };
        if let Some(&known) = self.reads.get(&set) {
            return known;
        }
        let mut out = self.classes_read(left);
        add_all(&mut out, &self.classes_read(right));
        self.reads.insert(set, out);
        out
    }

    /// The children at some places: all, or those over letters that a set reads.
    #[inline]
    pub(super) fn siblings(&mut self, places: Range<u32>, set: SetId, all: bool) -> Siblings {
        let read = if all { ALL } else { self.classes_read(set) };
        Siblings::new(&self.trie, places, read)
    }
}
