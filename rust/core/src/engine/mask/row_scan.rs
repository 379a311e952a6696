//! Whether a row forbids any token.
//!
//! What is forbidden in one row mostly is in the next: in free text the tokens taken whole, at the
//! very end of a vocabulary. So the word that forbade one last is looked at before all others.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Words of a row that are looked at together.
const BLOCK: usize = 64;

/// A word in which a row forbade a token. Which one it is says nothing: it is looked at in each row.
#[derive(Default)]
pub(in crate::engine) struct Gap {
    word: AtomicUsize,
    searches: AtomicU64,
}

impl Gap {
    /// Whether one of so many bits is 0.
    pub(in crate::engine) fn is_in(&self, row: &[i32], count: usize) -> bool {
        if has_gap(row, count, self.word.load(Ordering::Relaxed)) {
            return true;
        }
        self.searches.fetch_add(1, Ordering::Relaxed);
        let found = first_gap(row, count);
        found.inspect(|&word| self.word.store(word, Ordering::Relaxed)).is_some()
    }

    /// Rows that were looked through, as that word said nothing.
    #[cfg(test)]
    pub(in crate::engine) fn searches(&self) -> u64 {
        self.searches.load(Ordering::Relaxed)
    }
}

/// Whether a bit of a word is 0, among so many of the row.
fn has_gap(row: &[i32], count: usize, word: usize) -> bool {
    let before = word.saturating_mul(32);
    let mine = match count.saturating_sub(before) {
        0 => return false,
        mine @ 1..32 => i32::MAX >> (31 - mine),
        _ => -1,
    };
    row.get(word).is_some_and(|bits| bits & mine != mine)
}

/// The first word in which one of so many bits is 0.
pub(in crate::engine) fn first_gap(row: &[i32], count: usize) -> Option<usize> {
    // In blocks that a processor takes at once.
    let mut blocks = row[..count / 32].chunks(BLOCK);
    let block = blocks.position(|block| block.iter().fold(-1, |all, word| all & word) != -1);
    let from = block.map_or(count / 32, |block| BLOCK * block);
    (from..row.len().min(from + BLOCK)).find(|&word| has_gap(row, count, word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        /// Rows nearly full, of bits past the last too, against a look at each bit.
        #[test]
        fn a_gap_is_a_bit_that_is_0(
            size in 0usize..200,
            rows in vec((vec(0usize..6_600, 0..3), 0usize..6_600), 1..20),
        ) {
            let gap = Gap::default();
            for (cleared, count) in rows {
                let count = count.min(32 * size);
                let mut row = vec![-1; size];
                for bit in cleared.iter().filter(|&&bit| bit < 32 * size) {
                    row[bit / 32] &= !(1 << (bit % 32));
                }
                let expected = (0..count).find(|bit| row[bit / 32] >> (bit % 32) & 1 == 0);
                prop_assert_eq!(first_gap(&row, count), expected.map(|bit| bit / 32));
                prop_assert_eq!(gap.is_in(&row, count), expected.is_some());
            }
        }
    }

    #[test]
    fn a_row_like_the_last_is_not_looked_through() {
        let gap = Gap::default();
        let mut row = vec![-1; 4_000];
        row[3_990] = 0;
        assert!(gap.is_in(&row, 128_000));
        assert_eq!(gap.searches(), 1);
        row[7] = 0;
        assert!(gap.is_in(&row, 128_000));
        assert_eq!(gap.searches(), 1, "the word of before says it");
        row[3_990] = -1;
        assert!(gap.is_in(&row, 128_000), "another word does");
        row[7] = -1;
        assert!(!gap.is_in(&row, 128_000), "none does");
        assert_eq!(gap.searches(), 3);
    }
}
