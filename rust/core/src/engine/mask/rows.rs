//! Rows of tokens, of the walker that an engine has: over its classes, or over the whole vocabulary.

use crate::budget::Interrupt;
use crate::engine::history::{Family, Stand, View};
use crate::engine::mask::answers::{Allowance, Walker};
use crate::engine::mask::cached;
use crate::engine::stop::{Stop, too_many_sets};
use crate::engine::{Engine, Folded};
use crate::error::{Error, Result};
use crate::mask::{Unfolder, words};
use parking_lot::RwLockReadGuard;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Engine {
    pub(in crate::engine) fn plain(&self) -> &Walker {
        self.plain.get_or_init(|| {
            let trie = match self.network.takes_tokens() {
                true => self.vocabulary.trie_of_all(),
                false => self.vocabulary.trie(),
            };
            let words = words(self.vocabulary.len());
            let walker = Walker::new(self.network.clone(), trie.clone(), words);
            walker.whole(self.pool.clone())
        })
    }

    pub(in crate::engine) fn allowance(&self) -> Allowance {
        Allowance { work: self.limits.max_mask_work, bytes: self.limits.max_memo_bytes }
    }

    /// Writes which textual tokens may follow a stand; bits of other ids are 0.
    pub(in crate::engine) fn mask(
        &self,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
        row: &mut [i32],
    ) -> Result<()> {
        self.over_tokens(row, |walker, bits| self.bits(walker, family, stand, interrupt, bits))
    }

    /// Writes which textual tokens may follow a set of stacks; bits of other ids are 0.
    pub(in crate::engine) fn mask_of_stacks(
        &self,
        view: View<'_>,
        interrupt: &Interrupt,
        row: &mut [i32],
    ) -> Result<()> {
        self.over_tokens(row, |walker, bits| self.bits_of_stacks(walker, view, interrupt, bits))
    }

    /// Writes which entries of the trie of a walker may follow a stand.
    pub(in crate::engine) fn bits(
        &self,
        walker: &Walker,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<()> {
        match walker.mask(family.view(stand), self.allowance(), interrupt, bits) {
            Err(Stop::Memory | Stop::Forgotten | Stop::Work) if family.is_on_chart(stand) => {
                self.bits_by_branches(walker, family, stand, interrupt, bits)
            }
            made => made.map_err(|stop| self.stopped(stop, interrupt)),
        }
    }

    pub(in crate::engine) fn bits_of_stacks(
        &self,
        walker: &Walker,
        view: View<'_>,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<()> {
        let made = walker.mask(view, self.allowance(), interrupt, bits);
        made.map_err(|stop| self.stopped(stop, interrupt))
    }

    /// Makes a row of tokens by the walker that there is: over classes, which are unfolded, or over
    /// the whole vocabulary.
    pub(in crate::engine) fn over_tokens(
        &self,
        row: &mut [i32],
        make: impl FnOnce(&Walker, &mut [i32]) -> Result<()>,
    ) -> Result<()> {
        let Some(folded) = self.folded.get() else { return make(self.plain(), row) };
        let mut bits = vec![0; folded.words];
        make(&folded.walker, &mut bits)?;
        if !folded.unfolder.read().unfold_again(&bits, row) {
            folded.unfolder.write().unfold(&bits, row);
        }
        Ok(())
    }

    /// Words of a class mask, where there are classes.
    pub fn class_words(&self) -> Option<usize> {
        self.folded.get().map(|folded| folded.words)
    }

    /// Writes which textual classes may follow where that is cached; bits of stop classes are 0.
    pub(in crate::engine) fn cached_class_mask(
        &self,
        folded: &Folded,
        view: View<'_>,
        row: &mut [i32],
    ) -> bool {
        let mut there = folded.walker.reading();
        match there.mask(view, row) {
            Some(mask) => {
                there.count(&mask);
                true
            }
            None => false,
        }
    }

    /// The cached masks, for one or many.
    pub(in crate::engine) fn cached(&self) -> CachedMasks<'_> {
        match self.folded.get() {
            None => CachedMasks { answers: self.plain().reading(), rows: None, bits: Vec::new() },
            Some(folded) => CachedMasks {
                answers: folded.walker.reading(),
                rows: Some(folded.unfolder.read()),
                bits: vec![0; folded.words],
            },
        }
    }

    /// The cached masks, if no lock is to be waited for.
    pub(in crate::engine) fn cached_now(&self) -> Option<CachedMasks<'_>> {
        Some(match self.folded.get() {
            None => CachedMasks {
                answers: self.plain.get()?.reading_now()?,
                rows: None,
                bits: Vec::new(),
            },
            Some(folded) => CachedMasks {
                answers: folded.walker.reading_now()?,
                rows: Some(folded.unfolder.try_read()?),
                bits: vec![0; folded.words],
            },
        })
    }

    /// Takes note of what a mask took that was not cached.
    pub(in crate::engine) fn took(&self, time: Duration) {
        self.worst_mask.fetch_max(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// The longest that a mask took which was not cached, in microseconds.
    pub fn worst_mask_microseconds(&self) -> u64 {
        self.worst_mask.load(Ordering::Relaxed)
    }

    pub(in crate::engine) fn too_much_work(&self) -> Error {
        Error::Limit {
            limit: "max_mask_work",
            value: self.limits.max_mask_work,
            message: "this mask takes more work; the grammar is very ambiguous here: \
                      simplify it or raise the limit"
                .into(),
        }
    }

    pub(in crate::engine) fn stopped(&self, stop: Stop, interrupt: &Interrupt) -> Error {
        match stop {
            Stop::Halted(halt) => interrupt.error(halt).unwrap_or_else(|| self.too_much_work()),
            Stop::Told(error) => error,
            Stop::Work => self.too_much_work(),
            Stop::Sets => too_many_sets(&self.network),
            Stop::Memory | Stop::Forgotten => Error::Limit {
                limit: "max_memo_bytes",
                value: self.limits.max_memo_bytes as u64,
                message: "the stacks of one path of tokens take more; raise the limit".into(),
            },
        }
    }
}

/// Read guards on the caches of masks, which many threads hold at once. A writer waits while one is
/// alive, so the holder must not ask for a mask that is not cached.
pub(in crate::engine) struct CachedMasks<'e> {
    answers: cached::CachedAnswers<'e>,
    rows: Option<RwLockReadGuard<'e, Unfolder>>,
    bits: Vec<i32>,
}

impl CachedMasks<'_> {
    /// Writes the row of a view where all that it is made of is cached; else false, and the row means
    /// nothing.
    pub(in crate::engine) fn mask(&mut self, view: View<'_>, row: &mut [i32]) -> bool {
        let mask = match &self.rows {
            None => self.answers.mask(view, row),
            Some(rows) => {
                let mask = self.answers.mask(view, &mut self.bits);
                mask.filter(|_| rows.unfold_again(&self.bits, row))
            }
        };
        mask.inspect(|mask| self.answers.count(mask)).is_some()
    }
}
