//! Sets of small numbers as bits.

/// A word of a bit set, by its place.
pub(super) type SparseWord = (u32, u64);

/// The bits of a word that are set, from the lowest.
pub(super) struct Bits(pub(super) u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

/// The numbers of a set, ascending.
pub(super) fn members(words: &[SparseWord]) -> impl Iterator<Item = u32> {
    words.iter().flat_map(|&(at, word)| Bits(word).map(move |bit| at << 6 | bit))
}

/// Whether a number is in a set.
pub(super) fn has(words: &[SparseWord], bit: u32) -> bool {
    let found = words.binary_search_by_key(&(bit >> 6), |word| word.0);
    found.is_ok_and(|found| words[found].1 >> (bit & 63) & 1 == 1)
}

/// Adds a number; whether it was not there.
pub(super) fn insert(words: &mut Vec<SparseWord>, bit: u32) -> bool {
    let (at, mask) = (bit >> 6, 1 << (bit & 63));
    match words.binary_search_by_key(&at, |word| word.0) {
        Ok(found) => {
            let is_new = words[found].1 & mask == 0;
            words[found].1 |= mask;
            is_new
        }
        Err(place) => {
            words.insert(place, (at, mask));
            true
        }
    }
}

/// Adds a number that is no less than all there are.
pub(super) fn insert_last(words: &mut Vec<SparseWord>, bit: u32) {
    let (at, mask) = (bit >> 6, 1 << (bit & 63));
    match words.last_mut() {
        Some(last) if last.0 == at => last.1 |= mask,
        _ => words.push((at, mask)),
    }
}

/// A set that is filled and emptied again and again, and read in order: which of its words are not
/// zero is a set too.
#[derive(Default)]
pub(super) struct WordMarks {
    words: Vec<u64>,
    filled: Vec<u64>,
}

impl WordMarks {
    pub(super) fn new(size: usize) -> Self {
        let words = size.div_ceil(64);
        Self { words: vec![0; words], filled: vec![0; words.div_ceil(64)] }
    }

    /// Adds the numbers of a word.
    #[inline]
    pub(super) fn add(&mut self, at: u32, word: u64) {
        self.words[at as usize] |= word;
        self.filled[at as usize >> 6] |= 1 << (at & 63);
    }

    /// Gives the words in order and empties the set.
    pub(super) fn drain(&mut self, mut each: impl FnMut(u32, u64)) {
        for (high, filled) in self.filled.iter_mut().enumerate() {
            for low in Bits(std::mem::take(filled)) {
                let at = (high as u32) << 6 | low;
                each(at, std::mem::take(&mut self.words[at as usize]));
            }
        }
    }
}
