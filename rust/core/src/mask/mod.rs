//! Class masks to token masks, and token masks onto logits.
//!
//! Design: docs/design/masks-onto-logits.md.
//!
//! A bitmask is a row of int32 words, as XGrammar lays them out; bit `j` of word `i` is id `32 i + j`, 1 is allowed.
//!
//! - here: class masks unfolded to token masks; `apply`: token masks onto logits, on a processor

mod apply;

pub use apply::apply;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;

/// Classes of at least so many tokens have their bits ready as a whole row: writing them out one
/// by one is half of the cost of a mask.
const LARGE_CLASS: usize = 512;

/// Unfolds class masks to rows of token bits, and remembers the rows it made.
///
/// Masks recur, so most calls are a copy. Two generations of remembered rows bound the memory:
/// when the young one is full it becomes the old one, and what was not asked for since is
/// forgotten.
#[derive(Debug)]
pub struct Unfolder {
    num_tokens: usize,
    num_classes: usize,
    members: Vec<Members>,
    young: HashMap<Arc<[i32]>, Arc<[i32]>, FxBuildHasher>,
    old: HashMap<Arc<[i32]>, Arc<[i32]>, FxBuildHasher>,
    max_rows: usize,
    /// Masks and rows made lately, to make others from: the last `BASES`, the oldest at `oldest`.
    bases: Vec<Base>,
    oldest: usize,
}

/// A class mask and its row.
type Base = (Arc<[i32]>, Arc<[i32]>);

/// How many rows are kept to make others from.
const BASES: usize = 8;

#[derive(Debug)]
enum Members {
    Ids(Box<[u32]>),
    Row(Box<[i32]>),
}

/// The number of 32-bit words for so many bits.
pub fn words(bits: usize) -> usize {
    bits.div_ceil(32)
}

impl Unfolder {
    /// For a vocabulary whose token `t` is in class `class_of[t]`; -1 is never allowed.
    /// At most `max_bytes` of rows are remembered.
    ///
    /// # Errors
    /// A message when a class is not below `num_classes`.
    pub fn new(class_of: &[i32], num_classes: usize, max_bytes: usize) -> Result<Self, String> {
        let mut ids: Vec<Vec<u32>> = vec![Vec::new(); num_classes];
        for (token, &class) in class_of.iter().enumerate() {
            match usize::try_from(class) {
                Ok(class) if class < num_classes => ids[class].push(token as u32),
                Err(_) if class == -1 => {}
                _ => {
                    return Err(format!(
                        "token {token} has class {class}; there are {num_classes} classes"
                    ));
                }
            }
        }
        let row_words = words(class_of.len());
        let members = ids
            .into_iter()
            .map(|ids| {
                if ids.len() < LARGE_CLASS {
                    return Members::Ids(ids.into());
                }
                let mut row = vec![0; row_words];
                set_bits(&mut row, &ids);
                Members::Row(row.into())
            })
            .collect();
        let row_bytes = 4 * (row_words + words(num_classes)) + 64;
        Ok(Self {
            num_tokens: class_of.len(),
            num_classes,
            members,
            young: HashMap::default(),
            old: HashMap::default(),
            max_rows: (max_bytes / 2 / row_bytes).max(1),
            bases: Vec::new(),
            oldest: 0,
        })
    }

    /// Tokens of the vocabulary.
    pub fn num_tokens(&self) -> usize {
        self.num_tokens
    }

    /// Words of a class mask.
    pub fn class_words(&self) -> usize {
        words(self.num_classes)
    }

    /// Words of a token mask.
    pub fn token_words(&self) -> usize {
        words(self.num_tokens)
    }

    /// Forgets the rows.
    pub fn forget(&mut self) {
        self.young = HashMap::default();
        self.old = HashMap::default();
        self.bases = Vec::new();
        self.oldest = 0;
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let row = 4 * (self.token_words() + self.class_words()) + 64;
        let members = self.members.iter().map(|m| match m {
            Members::Ids(ids) => ids.len() * 4,
            Members::Row(row) => row.len() * 4,
        });
        (self.young.len() + self.old.len() + self.bases.len()) * row + members.sum::<usize>()
    }

    /// Writes the token mask of a class mask. Bits past the last token are 0; bits past the last
    /// class are ignored.
    ///
    /// # Panics
    /// If a slice does not have the number of words that [`Self::class_words`] and
    /// [`Self::token_words`] say.
    pub fn unfold(&mut self, class_mask: &[i32], row: &mut [i32]) {
        assert_eq!(row.len(), self.token_words(), "words of the token mask");
        row.copy_from_slice(&self.row(class_mask));
    }

    /// The token mask of a class mask, as [`Self::unfold`] writes it.
    ///
    /// # Panics
    /// As [`Self::unfold`], for the class mask.
    pub fn row(&mut self, class_mask: &[i32]) -> Arc<[i32]> {
        assert_eq!(class_mask.len(), self.class_words(), "words of the class mask");
        if let Some(known) = self.young.get(class_mask) {
            return known.clone();
        }
        let made = match self.old.remove(class_mask) {
            Some(known) => known,
            None => self.make(class_mask),
        };
        if self.young.len() >= self.max_rows {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(class_mask.into(), made.clone());
        made
    }

    /// The same for a mask that was seen lately; else false, and nothing is written.
    ///
    /// # Panics
    /// As [`Self::unfold`], for the row.
    pub fn unfold_again(&self, class_mask: &[i32], row: &mut [i32]) -> bool {
        let known = self.young.get(class_mask);
        known.inspect(|known| row.copy_from_slice(known)).is_some()
    }

    /// Masks of one text are much alike, and each token is in one class: so a row is one that was
    /// made lately with the tokens flipped of those classes in which the masks differ.
    fn make(&mut self, class_mask: &[i32]) -> Arc<[i32]> {
        let distance = |mask: &[i32]| -> u32 {
            class_mask.iter().zip(mask).map(|(a, b)| (a ^ b).count_ones()).sum()
        };
        let alone: u32 = class_mask.iter().map(|word| word.count_ones()).sum();
        let base = self.bases.iter().map(|base| (distance(&base.0), base));
        let base = base.min_by_key(|base| base.0).filter(|base| base.0 < alone);
        let (mask, mut row) = match base {
            Some((_, (mask, row))) => (mask.clone(), row.to_vec()),
            None => (vec![0; class_mask.len()].into(), vec![0; self.token_words()]),
        };
        for class in self.different(class_mask, &mask) {
            match &self.members[class] {
                Members::Ids(ids) => {
                    for &id in ids {
                        row[id as usize >> 5] ^= 1 << (id & 31);
                    }
                }
                Members::Row(bits) => row.iter_mut().zip(bits).for_each(|(a, b)| *a ^= b),
            }
        }
        let made: Base = (class_mask.into(), row.into());
        if self.bases.len() < BASES {
            self.bases.push(made.clone());
        } else {
            self.bases[self.oldest] = made.clone();
            self.oldest = (self.oldest + 1) % BASES;
        }
        made.1
    }

    /// The classes that are in one mask and not in the other.
    fn different<'a>(&self, a: &'a [i32], b: &'a [i32]) -> impl Iterator<Item = usize> + use<'a> {
        let num_classes = self.num_classes;
        let words = a.iter().zip(b).enumerate();
        words.flat_map(move |(i, (x, y))| {
            let mut rest = (x ^ y) as u32;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.wrapping_sub(1);
                (bit < 32).then_some(32 * i + bit as usize)
            })
            .filter(move |&class| class < num_classes)
        })
    }
}

fn set_bits(row: &mut [i32], ids: &[u32]) {
    for &id in ids {
        row[id as usize >> 5] |= 1 << (id & 31);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unfolding_is_a_gather(
            class_of in proptest::collection::vec(-1i32..40, 1..3_000),
            masks in proptest::collection::vec(proptest::collection::vec(any::<i32>(), 2), 1..20),
            large in any::<bool>(),
        ) {
            // A class with more members than LARGE_CLASS, to cross both forms.
            let mut class_of = class_of;
            if large {
                class_of.extend(std::iter::repeat_n(7, LARGE_CLASS));
            }
            // Room for a single row: every call but a repetition recomputes.
            let mut unfolder = Unfolder::new(&class_of, 40, 1).expect("classes fit");
            for mask in masks.iter().chain(&masks) {
                let mut row = vec![-1; words(class_of.len())];
                unfolder.unfold(mask, &mut row);
                for bit in 0..32 * row.len() {
                    let class = class_of.get(bit).copied().unwrap_or(-1);
                    let expected = class >= 0 && mask[class as usize >> 5] >> (class & 31) & 1 == 1;
                    prop_assert_eq!(row[bit >> 5] >> (bit & 31) & 1 == 1, expected);
                }
            }
        }
    }

    #[test]
    fn a_class_that_does_not_exist_is_named() {
        let error = Unfolder::new(&[0, 2], 2, 0).expect_err("class 2 of 2");
        assert_eq!(error, "token 1 has class 2; there are 2 classes");
    }
}
