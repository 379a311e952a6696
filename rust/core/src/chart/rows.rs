//! Sets of places, each kept once.
//!
//! Many states of a column began at the same places, and most of those of one column are also
//! those of the next. A set is a number in a table, so a state that goes on over a letter takes its
//! places along by their number.

use std::ops::Range;

/// A set of places in a table of [`InternedRows`].
pub(super) type RowId = u32;

pub(super) const NO_ROW: RowId = u32::MAX;

/// Where the words of a set are.
#[derive(Clone, Copy, Debug)]
struct Span {
    at: u32,
    /// The place in the set of the first that is not zero.
    first: u32,
    /// Words up to the last that is not zero.
    count: u32,
}

/// A table of sets. It grows at its end and shrinks there, so that what is older stays as it is.
#[derive(Default)]
pub(super) struct InternedRows {
    spans: Vec<Span>,
    words: Vec<u64>,
    /// Sets by their hashes: a power of two, at most half of it used.
    slots: Vec<RowId>,
}

impl InternedRows {
    pub(super) fn len(&self) -> usize {
        self.spans.len()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.spans.capacity() * size_of::<Span>()
            + self.words.capacity() * 8
            + self.slots.capacity() * 4
    }

    /// The words of a set, and the place of the first.
    #[inline]
    pub(super) fn get(&self, id: RowId) -> (usize, &[u64]) {
        let span = self.spans[id as usize];
        (span.first as usize, &self.words[span.at as usize..(span.at + span.count) as usize])
    }

    /// The set of these words, the first of them `first` words from the start.
    pub(super) fn add(&mut self, first: usize, words: &[u64]) -> RowId {
        let skipped = words.iter().position(|&word| word != 0).unwrap_or(words.len());
        let kept = words.iter().rposition(|&word| word != 0).map_or(skipped, |last| last + 1);
        let (first, words) = (first + skipped, &words[skipped..kept]);
        if self.spans.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut slot = self.slot(first, words);
        while self.slots[slot] != NO_ROW {
            let id = self.slots[slot];
            if self.get(id) == (first, words) {
                return id;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let id = self.spans.len() as RowId;
        self.slots[slot] = id;
        self.spans.push(Span {
            at: self.words.len() as u32,
            first: first as u32,
            count: words.len() as u32,
        });
        self.words.extend_from_slice(words);
        id
    }

    /// The set of places before the 64th.
    #[inline]
    pub(super) fn word(&mut self, word: u64) -> RowId {
        if self.spans.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut slot = self.slot(0, &[word]);
        while let Some(span) = self.spans.get(self.slots[slot] as usize) {
            if (span.first, span.count) == (0, 1) && self.words[span.at as usize] == word {
                return self.slots[slot];
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        self.add(0, &[word])
    }

    /// The set of one place.
    pub(super) fn single(&mut self, place: u32) -> RowId {
        self.add(place as usize >> 6, &[1 << (place & 63)])
    }

    /// Drops the sets that were added after the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        // The latest first: none that stays was put behind one of them.
        for id in (len..self.spans.len()).rev() {
            let (first, words) = self.get(id as RowId);
            let mut slot = self.slot(first, words);
            while self.slots[slot] != id as RowId {
                slot = (slot + 1) & (self.slots.len() - 1);
            }
            self.slots[slot] = NO_ROW;
        }
        if let Some(span) = self.spans.get(len) {
            self.words.truncate(span.at as usize);
        }
        self.spans.truncate(len);
    }

    fn slot(&self, first: usize, words: &[u64]) -> usize {
        let mut hash = first as u64;
        for &word in words {
            hash = (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        (hash ^ hash >> 32) as usize & (self.slots.len() - 1)
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        self.slots.clear();
        self.slots.resize(size, NO_ROW);
        // In the order in which they came (see `truncate`).
        for id in 0..self.spans.len() as RowId {
            let (first, words) = self.get(id);
            let mut slot = self.slot(first, words);
            while self.slots[slot] != NO_ROW {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = id;
        }
    }
}

/// Adds words to a set that is wide enough; `range` says where.
#[inline]
pub(super) fn unite(set: &mut [u64], range: Range<usize>, words: &[u64]) {
    set[range].iter_mut().zip(words).for_each(|(a, b)| *a |= b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_kept_once_and_leaves_no_trace() {
        let mut rows = InternedRows::default();
        let words = |n: u64| [0, n * n, n, 0];
        let ids: Vec<RowId> = (1..500).map(|n| rows.add(n as usize, &words(n))).collect();
        assert_eq!(rows.len(), 499);
        let held = (rows.spans.len(), rows.words.len(), rows.slots.clone());
        for n in 1..500 {
            assert_eq!(rows.add(n as usize + 1, &words(n)[1..]), ids[n as usize - 1]);
            assert_eq!(rows.get(ids[n as usize - 1]), (n as usize + 1, &[n * n, n][..]));
        }
        assert_eq!(rows.len(), 499);
        for n in 600..610 {
            rows.add(n, &words(n as u64));
        }
        rows.truncate(499);
        assert_eq!((rows.spans.len(), rows.words.len(), rows.slots.clone()), held);
        rows.truncate(100);
        let again = rows.add(101, &words(101));
        assert_eq!((again, rows.single(130)), (100, 101));
        assert_eq!(rows.get(101), (2, &[4][..]));
    }
}
