//! Sets of tokens as bits, each kept once: few occur, and each is kilobytes.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The number of a set.
pub(super) type TokenSet = u32;
/// The set without tokens.
pub(super) const NO_TOKENS: TokenSet = 0;
/// The set of the end of the text alone.
pub(super) const ONLY_END: TokenSet = 1;

/// Interned sets of tokens; the bit behind the last token stands for the end of the text.
#[derive(Clone, Debug)]
pub(super) struct TokenSets {
    pub(super) size: usize,
    sets: Vec<Arc<[u64]>>,
    known: HashMap<Arc<[u64]>, TokenSet, FxBuildHasher>,
}

impl TokenSets {
    /// Sets over so many tokens.
    pub(super) fn new(size: usize) -> Self {
        let mut made = Self { size, sets: Vec::new(), known: HashMap::default() };
        let mut bits = made.buffer();
        made.intern(&bits);
        set_bit(&mut bits, size);
        made.intern(&bits);
        made
    }

    /// A row of zeros that is as long as a set.
    pub(super) fn buffer(&self) -> Vec<u64> {
        vec![0; (self.size + 1).div_ceil(64)]
    }

    pub(super) fn intern(&mut self, bits: &[u64]) -> TokenSet {
        if let Some(&id) = self.known.get(bits) {
            return id;
        }
        let id = self.sets.len() as TokenSet;
        let bits: Arc<[u64]> = bits.into();
        self.sets.push(bits.clone());
        self.known.insert(bits, id);
        id
    }

    #[inline]
    pub(super) fn get(&self, set: TokenSet) -> &[u64] {
        &self.sets[set as usize]
    }

    /// Whether the end of the text is in a set.
    pub(super) fn has_end(&self, set: TokenSet) -> bool {
        self.get(set)[self.size / 64] >> (self.size % 64) & 1 == 1
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.sets.len() * (self.size / 8 + 64)
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Adds the tokens of a set, without the end of the text, to the row of a bitmask.
    pub(super) fn add_to_row(&self, set: TokenSet, row: &mut [i32], is_first: bool) {
        let words = self.get(set);
        let halves = |word: u64| [word as u32 as i32, (word >> 32) as u32 as i32];
        let (pairs, rest) = row.as_chunks_mut::<2>();
        let last = pairs.len();
        if is_first {
            pairs.iter_mut().zip(words).for_each(|(pair, &word)| *pair = halves(word));
            rest.iter_mut().for_each(|out| *out = halves(words[last])[0]);
        } else {
            for (pair, &word) in pairs.iter_mut().zip(words) {
                let [low, high] = halves(word);
                *pair = [pair[0] | low, pair[1] | high];
            }
            rest.iter_mut().for_each(|out| *out |= halves(words[last])[0]);
        }
        if !self.size.is_multiple_of(32)
            && let Some(last) = row.last_mut()
        {
            *last &= (1 << (self.size % 32)) - 1;
        }
    }
}

#[inline]
pub(super) fn set_bit(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}

#[inline]
pub(super) fn add(bits: &mut [u64], more: &[u64]) {
    bits.iter_mut().zip(more).for_each(|(bit, &more)| *bit |= more);
}
