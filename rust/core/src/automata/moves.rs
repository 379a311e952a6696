//! The edges of a set of states, letter by letter: a step of the subset construction.

use super::{FIRST_CALL, Letter};
use rustc_hash::FxHashMap;

/// The edges of a set of states by letter. Sorting them as pairs took a third of the time of a
/// whole network, so each letter has a bucket, and only the letters are sorted.
#[derive(Default)]
pub(super) struct EdgeBuckets {
    /// For each letter its bucket, if `stamp` is that of this set.
    bucket_of: FxHashMap<Letter, (u32, u32)>,
    small: Vec<(u32, u32)>,
    stamp: u32,
    buckets: Vec<Vec<u32>>,
    letters: Vec<(Letter, u32)>,
    /// Few edges are sorted after all: most sets are one state with one or two.
    few: Vec<(Letter, u32)>,
    /// Of few edges, the targets by letter, and where those of each letter end.
    targets: Vec<u32>,
    ends: Vec<u32>,
}

/// So many edges are few.
const FEW: usize = 12;

impl EdgeBuckets {
    /// Collects the edges; returns the number of letters.
    pub(super) fn of<'a>(
        &mut self,
        edges: impl Iterator<Item = &'a [(Letter, u32)]> + Clone,
    ) -> usize {
        self.letters.clear();
        self.few.clear();
        self.few.extend(edges.clone().flatten().take(FEW + 1));
        if self.few.len() <= FEW {
            return self.of_few();
        }
        self.ends.clear();
        self.stamp += 1;
        self.small.resize(FIRST_CALL as usize, (0, 0));
        // Byte classes come in order out of a set of bits; only calls are sorted.
        let mut met = [0u64; FIRST_CALL as usize / 64];
        let mut used = 0;
        for &(letter, q) in edges.flatten() {
            let slot = match self.small.get_mut(letter as usize) {
                Some(slot) => slot,
                None => self.bucket_of.entry(letter).or_default(),
            };
            if slot.0 != self.stamp {
                *slot = (self.stamp, used as u32);
                match met.get_mut(letter as usize / 64) {
                    Some(word) => *word |= 1 << (letter % 64),
                    None => self.letters.push((letter, used as u32)),
                }
                match self.buckets.get_mut(used) {
                    Some(bucket) => bucket.clear(),
                    None => self.buckets.push(Vec::new()),
                }
                used += 1;
            }
            self.buckets[slot.1 as usize].push(q);
        }
        self.letters.sort_unstable();
        let calls = self.letters.len();
        for (word, mut bits) in met.into_iter().enumerate() {
            while bits != 0 {
                let letter = 64 * word as u32 + bits.trailing_zeros();
                self.letters.push((letter, self.small[letter as usize].1));
                bits &= bits - 1;
            }
        }
        self.letters.rotate_left(calls);
        used
    }

    fn of_few(&mut self) -> usize {
        self.few.sort_unstable();
        self.targets.clear();
        self.ends.clear();
        for &(letter, q) in &self.few {
            if self.letters.last().is_none_or(|last| last.0 != letter) {
                self.letters.push((letter, self.targets.len() as u32));
                self.ends.push(0);
            }
            self.targets.push(q);
            if let Some(end) = self.ends.last_mut() {
                *end = self.targets.len() as u32;
            }
        }
        self.letters.len()
    }

    /// The letter at a position, in order of letters, and the targets of its edges.
    pub(super) fn get(&self, index: usize) -> (Letter, &[u32]) {
        let (letter, place) = self.letters[index];
        match self.ends.get(index) {
            Some(&end) => (letter, &self.targets[place as usize..end as usize]),
            None => (letter, &self.buckets[place as usize]),
        }
    }
}
