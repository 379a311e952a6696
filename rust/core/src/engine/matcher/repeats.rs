//! Masks in arrays whose items are unique: what the stacks allow, without what repeats an item.

use crate::budget::{Halt, Interrupt};
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::error::{Error, Result};
use crate::unique::ArrayId;

impl Matcher {
    /// Takes what is seen from the bytes alone out of a row for a stand; the tokens for which the stacks are needed.
    /// `None` where that takes readers that are to be made again.
    pub(in crate::engine) fn forbid_repeats_now(
        &self,
        family: &Family,
        stand: Stand,
        row: &mut [i32],
    ) -> Option<Vec<u32>> {
        if !self.engine.network.has_unique_items() {
            return Some(Vec::new());
        }
        let has_readers = match stand {
            Stand::Array(id) => family.arrays.has_readers(id),
            _ => true,
        };
        has_readers.then(|| self.doubtful(family, stand, row))
    }

    /// Whether no token of a row for a stand is in doubt, as far as that is soon seen.
    pub(in crate::engine) fn repeats_are_seen(
        &self,
        family: &Family,
        stand: Stand,
        row: &mut [i32],
    ) -> bool {
        let may_be = match stand {
            Stand::Array(id) => family.arrays.is_soon_seen(id),
            _ => true,
        };
        may_be
            && self.forbid_repeats_now(family, stand, row).is_some_and(|tokens| tokens.is_empty())
    }

    /// Takes out of a row what is seen from the bytes; the tokens for which the stacks are needed.
    fn doubtful(&self, family: &Family, stand: Stand, row: &mut [i32]) -> Vec<u32> {
        let many = self.engine.vocabulary.many_items();
        let allows = |row: &[i32], token: u32| row[token as usize >> 5] >> (token & 31) & 1 != 0;
        let mut doubtful = Vec::new();
        match stand {
            Stand::Array(id) => {
                let trie = &self.engine.plain().trie;
                let bytes = |token| self.engine.vocabulary.bytes(token);
                family.arrays.forbid(id, (trie, many), bytes, row, &mut doubtful);
            }
            _ => doubtful.extend(many.opening().iter().filter(|&&token| allows(row, token))),
        }
        doubtful
    }

    /// Takes what repeats an item out of a row for a stand. All tokens together may take the work of one mask.
    ///
    /// # Errors
    /// Those of a mask.
    pub(in crate::engine) fn forbid_repeats(
        &self,
        stand: Stand,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<()> {
        if !self.engine.network.has_unique_items() {
            return Ok(());
        }
        let doubtful = self.forbid_repeats_now(&*lock::read(&self.family, interrupt)?, stand, row);
        self.forbid_doubtful(stand, doubtful, row, interrupt)
    }

    /// [`Self::forbid_repeats`] of the tokens that are in doubt; `None` where these are to be found.
    ///
    /// # Errors
    /// Those of a mask.
    pub(in crate::engine) fn forbid_doubtful(
        &self,
        stand: Stand,
        doubtful: Option<Vec<u32>>,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let doubtful = match (doubtful, stand) {
            (Some(doubtful), _) => doubtful,
            (None, Stand::Array(id)) => {
                let mut family = lock::write(&self.family, interrupt)?;
                self.keep_readers(&mut family, id, interrupt)?;
                self.doubtful(&family, stand, row)
            }
            (None, _) => self.doubtful(&*lock::read(&self.family, interrupt)?, stand, row),
        };
        if doubtful.is_empty() {
            return Ok(());
        }
        let mut family = lock::write(&self.family, interrupt)?;
        if let Stand::Array(id) = stand {
            self.keep_readers(&mut family, id, interrupt)?;
        }
        let mark = family.arrays.mark();
        family.arrays.try_out(true);
        self.allow_mask(&mut family, interrupt);
        let mut read = Ok(());
        for token in doubtful {
            read = interrupt.look();
            if read.is_err() {
                break;
            }
            match self.advance_token(&mut family, stand, token, interrupt) {
                Ok(Some(_)) => {}
                Ok(None) => row[token as usize >> 5] &= !(1 << (token & 31)),
                Err(halt) => {
                    read = Err(self.mask_halted(halt, interrupt));
                    break;
                }
            }
        }
        family.release();
        family.arrays.reset(mark);
        family.arrays.try_out(false);
        read
    }

    /// Keeps the readers of a text while its mask is made.
    fn keep_readers(&self, family: &mut Family, id: ArrayId, interrupt: &Interrupt) -> Result<()> {
        self.allow_mask(family, interrupt);
        let kept = family.arrays.keep_readers(id, &mut family.stepper.sets);
        family.release();
        kept.map_err(|halt| self.mask_halted(halt, interrupt))
    }

    /// Allows the work of a mask.
    fn allow_mask(&self, family: &mut Family, interrupt: &Interrupt) {
        let limits = &self.engine.limits;
        family.allow(limits.max_mask_work, limits.max_matcher_bytes, interrupt);
    }

    /// The error of a mask that reads tokens as a text does.
    fn mask_halted(&self, halt: Halt, interrupt: &Interrupt) -> Error {
        match halt {
            Halt::Work => self.engine.too_much_work(),
            halt => self.halted(halt, interrupt),
        }
    }
}
