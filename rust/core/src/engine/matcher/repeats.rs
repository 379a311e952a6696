//! Masks in arrays whose items are unique: what the stacks allow, without what repeats an item.

use crate::budget::Interrupt;
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::error::Result;

impl Matcher {
    /// Takes what repeats an item out of a row for a stand; false where that takes the stacks, and the
    /// row is not right yet.
    pub(in crate::engine) fn forbid_repeats_now(
        &self,
        family: &Family,
        stand: Stand,
        row: &mut [i32],
    ) -> bool {
        !self.engine.network.has_unique_items() || self.doubtful(family, stand, row).is_empty()
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

    /// Takes what repeats an item out of a row for a stand.
    ///
    /// # Errors
    /// Those of an accept.
    pub(in crate::engine) fn forbid_repeats(
        &self,
        stand: Stand,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<()> {
        if !self.engine.network.has_unique_items() {
            return Ok(());
        }
        let doubtful = self.doubtful(&*lock::read(&self.family, interrupt)?, stand, row);
        if doubtful.is_empty() {
            return Ok(());
        }
        let mut family = lock::write(&self.family, interrupt)?;
        if let Stand::Array(id) = stand {
            family.arrays.keep_readers(id);
        }
        let mark = family.arrays.mark();
        family.arrays.try_out(true);
        let mut read = Ok(());
        for token in doubtful {
            read = interrupt.look();
            if read.is_err() {
                break;
            }
            self.allow(&mut family, interrupt);
            match self.advance_token(&mut family, stand, token, interrupt) {
                Ok(Some(_)) => {}
                Ok(None) => row[token as usize >> 5] &= !(1 << (token & 31)),
                Err(halt) => {
                    read = Err(self.halted(halt, interrupt));
                    break;
                }
            }
        }
        family.release();
        family.arrays.reset(mark);
        family.arrays.try_out(false);
        read
    }
}
