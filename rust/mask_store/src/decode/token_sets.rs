//! Sets of tokens, each kept once: as bits, or one by one where they are few.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// The number of a set.
pub(super) type TokenSet = u32;
/// The set without tokens.
pub(super) const NO_TOKENS: TokenSet = 0;
/// The set of the end of the text alone.
pub(super) const ONLY_END: TokenSet = 1;

/// So many tokens for each word of bits take as much memory as the bits.
const TOKENS_A_WORD: usize = 2;

/// Equal sets are written in the same way: by how many tokens there are.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum PackedTokens {
    /// In order.
    Few(Arc<[u32]>),
    Bits(Arc<[u64]>),
}

/// Interned sets of tokens; the number behind the last token stands for the end of the text.
#[derive(Clone, Debug)]
pub(super) struct TokenSets {
    pub(super) size: usize,
    sets: Vec<PackedTokens>,
    known: HashMap<PackedTokens, TokenSet, FxBuildHasher>,
    bytes: usize,
}

impl TokenSets {
    /// Sets over so many tokens.
    pub(super) fn new(size: usize) -> Self {
        let mut made = Self { size, sets: Vec::new(), known: HashMap::default(), bytes: 0 };
        made.intern(Gathered::default());
        made.intern(Gathered { few: vec![size as u32], bits: None });
        made
    }

    fn words(&self) -> usize {
        (self.size + 1).div_ceil(64)
    }

    /// A row of zeros with a bit for each token and for the end.
    pub(super) fn buffer(&self) -> Vec<u64> {
        vec![0; self.words()]
    }

    /// The number of a set that was gathered.
    pub(super) fn intern(&mut self, gathered: Gathered) -> TokenSet {
        let Gathered { mut few, bits } = gathered;
        let tokens = match bits {
            None => {
                few.sort_unstable();
                few.dedup();
                PackedTokens::Few(few.into())
            }
            Some(bits) => {
                let count: u32 = bits.iter().map(|word| word.count_ones()).sum();
                match count as usize <= self.words() * TOKENS_A_WORD {
                    true => PackedTokens::Few(listed(&bits)),
                    false => PackedTokens::Bits(bits.into()),
                }
            }
        };
        let next = self.sets.len() as TokenSet;
        let (id, bytes) = match self.known.get(&tokens) {
            Some(&id) => (id, 0),
            None => {
                let bytes = match &tokens {
                    PackedTokens::Few(few) => few.len() * 4,
                    PackedTokens::Bits(bits) => bits.len() * 8,
                };
                self.sets.push(tokens.clone());
                self.known.insert(tokens, next);
                (next, bytes + 64)
            }
        };
        self.bytes += bytes;
        id
    }

    /// Adds the tokens of a set to others.
    pub(super) fn add_to(&self, set: TokenSet, into: &mut Gathered) {
        match &self.sets[set as usize] {
            PackedTokens::Few(few) => into.add_tokens(few, self.words()),
            PackedTokens::Bits(bits) => into.add_bits(bits),
        }
    }

    /// Whether the end of the text is in a set.
    pub(super) fn has_end(&self, set: TokenSet) -> bool {
        match &self.sets[set as usize] {
            PackedTokens::Few(few) => few.last() == Some(&(self.size as u32)),
            PackedTokens::Bits(bits) => bits[self.size / 64] >> (self.size % 64) & 1 == 1,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Adds the tokens of a set, without the end of the text, to the row of a bitmask.
    pub(super) fn add_to_row(&self, set: TokenSet, row: &mut [i32], is_first: bool) {
        match &self.sets[set as usize] {
            PackedTokens::Few(few) => {
                if is_first {
                    row.fill(0);
                }
                let tokens = few.iter().map(|&token| token as usize);
                for token in tokens.take_while(|&token| token < self.size) {
                    row[token / 32] |= 1 << (token % 32);
                }
            }
            PackedTokens::Bits(words) => self.add_bits_to_row(words, row, is_first),
        }
    }

    fn add_bits_to_row(&self, words: &[u64], row: &mut [i32], is_first: bool) {
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
            *last &= !(-1 << (self.size % 32));
        }
    }
}

/// A set in the making: bits once there are many tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    /// In any order, some of them twice; none beside bits.
    few: Vec<u32>,
    bits: Option<Vec<u64>>,
}

impl Gathered {
    /// A set of no tokens with bits for all.
    pub(super) fn with_bits(bits: Vec<u64>) -> Self {
        Self { few: Vec::new(), bits: Some(bits) }
    }

    /// Adds tokens; bits take so many words.
    pub(super) fn add_tokens(&mut self, tokens: &[u32], words: usize) {
        if self.bits.is_none() && self.few.len() + tokens.len() <= words * TOKENS_A_WORD {
            self.few.extend_from_slice(tokens);
            return;
        }
        let bits = self.bits(words);
        tokens.iter().for_each(|&token| set_bit(bits, token as usize));
    }

    /// Adds the tokens of bits.
    pub(super) fn add_bits(&mut self, more: &[u64]) {
        let bits = self.bits(more.len());
        bits.iter_mut().zip(more).for_each(|(bit, &more)| *bit |= more);
    }

    fn bits(&mut self, words: usize) -> &mut Vec<u64> {
        let few = std::mem::take(&mut self.few);
        let bits = self.bits.get_or_insert_with(|| vec![0; words]);
        few.iter().for_each(|&token| set_bit(bits, token as usize));
        bits
    }

    /// Takes out what is in another set that has bits.
    pub(super) fn remove(&mut self, other: &Self) {
        let Some(known) = &other.bits else { return };
        self.few.retain(|&token| known[token as usize / 64] >> (token % 64) & 1 == 0);
        if let Some(bits) = &mut self.bits {
            bits.iter_mut().zip(known).for_each(|(bit, &known)| *bit &= !known);
        }
    }
}

fn listed(bits: &[u64]) -> Arc<[u32]> {
    let mut out = Vec::new();
    for (place, &word) in bits.iter().enumerate() {
        let mut left = word;
        while left != 0 {
            out.push(place as u32 * 64 + left.trailing_zeros());
            left &= left - 1;
        }
    }
    out.into()
}

#[inline]
pub(super) fn set_bit(bits: &mut [u64], at: usize) {
    bits[at / 64] |= 1 << (at % 64);
}
