//! The tokens of rows, wherever they lie.

use super::token_sets::{add, set_bit};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Sets of tokens in the memory of a process, or in a mapped file.
pub trait TokenSource: Send + Sync {
    /// Shows the tokens of a set to `look`.
    fn with(&self, set: u32, look: &mut dyn FnMut(&[u32]));
    /// The number of sets.
    fn count(&self) -> u32;
}

/// Sets one after the other in memory.
#[derive(Clone, Debug)]
pub struct TokenLists {
    tokens: Vec<u32>,
    offsets: Vec<usize>,
}

impl TokenLists {
    /// Sets, each sorted.
    pub fn new(sets: &[Box<[u32]>]) -> Self {
        let mut offsets = vec![0];
        offsets.extend(sets.iter().scan(0, |at, set| {
            *at += set.len();
            Some(*at)
        }));
        Self { tokens: sets.concat(), offsets }
    }
}

impl TokenSource for TokenLists {
    fn with(&self, set: u32, look: &mut dyn FnMut(&[u32])) {
        let set = set as usize;
        look(&self.tokens[self.offsets[set]..self.offsets[set + 1]]);
    }

    fn count(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }
}

/// A set of at least this part of the words of its bits is kept as bits too.
const TOKENS_A_WORD: usize = 2;

/// Sets of tokens that are added to rows of bits.
pub(super) struct RowTokens {
    source: Box<dyn TokenSource>,
    /// Large sets as bits.
    bits: HashMap<u32, Box<[u64]>, FxBuildHasher>,
}

impl RowTokens {
    pub(super) fn new(source: Box<dyn TokenSource>) -> Self {
        Self { source, bits: HashMap::default() }
    }

    /// Adds the tokens of a set to bits.
    pub(super) fn add(&mut self, set: u32, bits: &mut [u64]) {
        let Self { source, bits: known } = self;
        if let Some(more) = known.get(&set) {
            add(bits, more);
            return;
        }
        source.with(set, &mut |tokens| {
            if tokens.len() < bits.len() * TOKENS_A_WORD {
                tokens.iter().for_each(|&token| set_bit(bits, token as usize));
                return;
            }
            let mut made = vec![0; bits.len()];
            tokens.iter().for_each(|&token| set_bit(&mut made, token as usize));
            add(bits, &made);
            known.insert(set, made.into());
        });
    }

    /// The tokens of a set, if it is one.
    pub(super) fn get(&self, set: u32) -> Option<Vec<u32>> {
        let mut out = Vec::new();
        (set < self.source.count()).then(|| {
            self.source.with(set, &mut |tokens| out.extend_from_slice(tokens));
            out
        })
    }
}
