//! Readers of arrays of any values at the last places of texts.

use crate::unique::nested::Nested;
use crate::unique::place::ArrayId;
use std::collections::VecDeque;

/// The readers of some places, the last one in front. Any could be made again from the text of its place.
#[derive(Debug, Default)]
pub(super) struct Readers {
    list: VecDeque<KeptReader>,
    /// Bytes that they hold.
    bytes: usize,
}

/// A reader, and the bytes that it holds.
#[derive(Debug)]
struct KeptReader {
    id: ArrayId,
    reader: Nested,
    bytes: usize,
}

/// So many are kept, whatever they hold.
const LEAST: usize = 4;
/// More are kept while all hold no more bytes, up to [`MOST`].
const FEW_BYTES: usize = 1 << 20;
const MOST: usize = 64;

impl Readers {
    /// The reader of a place.
    pub(super) fn get(&self, id: ArrayId) -> Option<&Nested> {
        self.list.iter().find(|kept| kept.id == id).map(|kept| &kept.reader)
    }

    /// Keeps the reader of a place; at least so many that were kept before stay.
    pub(super) fn keep(&mut self, id: ArrayId, reader: Nested, least: usize) {
        let bytes = size_of::<KeptReader>() + reader.bytes();
        self.bytes += bytes;
        self.list.push_front(KeptReader { id, reader, bytes });
        let least = least.max(LEAST);
        while self.list.len() > least && (self.bytes > FEW_BYTES || self.list.len() > MOST) {
            let last = self.list.pop_back();
            self.bytes -= last.map_or(0, |last| last.bytes);
        }
    }

    /// Keeps the readers of some places only.
    pub(super) fn retain(&mut self, is_kept: impl Fn(ArrayId) -> bool) {
        self.list.retain(|kept| is_kept(kept.id));
        self.bytes = self.list.iter().map(|kept| kept.bytes).sum();
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unique::values::{SeenId, Values};

    /// A reader that has read an array with a string of so many letters.
    fn reader(letters: usize) -> Nested {
        let mut reader = Nested::new(SeenId::NONE, &Values::default());
        reader.open_array(false);
        format!("\"{}", "a".repeat(letters)).bytes().for_each(|byte| _ = reader.read(byte));
        reader
    }

    #[test]
    fn small_readers_are_kept_and_of_large_ones_the_last() {
        for (letters, kept) in [(10, MOST), (100_000, 5), (2_000_000, LEAST)] {
            let mut readers = Readers::default();
            for id in 0..100 {
                readers.keep(id, reader(letters), 1);
            }
            assert!((0..100).all(|id| readers.get(id).is_some() == (id as usize >= 100 - kept)));
            assert!(readers.bytes() >= kept * letters);
            readers.retain(|id| id == 99);
            assert!(readers.bytes() >= letters && readers.bytes() < 3 * letters + 1_000);
        }
    }
}
