//! The tokens of rows, wherever they lie.

use super::super::parser::StackState;
use super::token_sets::set_bit;
use super::unions::Gathering;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Sets of tokens in the memory of a process, or in a mapped file.
pub trait TokenSource: Send + Sync {
    /// Shows the tokens of some sets to `look`, with the place of each set among them.
    fn with(&self, sets: &[u32], look: &mut dyn FnMut(usize, &[u32]));
    /// The number of sets.
    fn count(&self) -> u32;
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

    /// Adds the tokens of sets where the states that decide them say.
    pub(super) fn gather(&mut self, wanted: &[(StackState, u32)], into: &mut Gathering) {
        let Self { source, bits: known } = self;
        let mut listed: Vec<(StackState, u32)> = Vec::with_capacity(wanted.len());
        for &(state, set) in wanted {
            match known.get(&set) {
                None => listed.push((state, set)),
                Some(more) => into.of(state).into_iter().for_each(|tokens| tokens.add_bits(more)),
            }
        }
        let sets: Vec<u32> = listed.iter().map(|&(_, set)| set).collect();
        let words = into.words;
        source.with(&sets, &mut |place, tokens| {
            let (state, set) = listed[place];
            let Some(gathered) = into.of(state) else { return };
            if tokens.len() < words * TOKENS_A_WORD {
                gathered.add_tokens(tokens, words);
                return;
            }
            let mut made = vec![0; words];
            tokens.iter().for_each(|&token| set_bit(&mut made, token as usize));
            gathered.add_bits(&made);
            known.insert(set, made.into());
        });
    }

    /// The tokens of a set, if it is one.
    pub(super) fn get(&self, set: u32) -> Option<Vec<u32>> {
        let mut out = Vec::new();
        (set < self.source.count()).then(|| {
            self.source.with(&[set], &mut |_, tokens| out.extend_from_slice(tokens));
            out
        })
    }
}
