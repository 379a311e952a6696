//! What can be seen of a matcher without changing it.

use crate::budget::Interrupt;
use crate::engine::history::{Family, Read, Stand};
use crate::engine::lock;
use crate::engine::matcher::{Matcher, MatcherCounters};
use crate::error::Result;

/// Steps of a text that is looked at while others wait.
const SHORT_TEXT: usize = 4_096;

/// What can be seen of a matcher without changing it.
pub struct Look<'m> {
    matcher: &'m Matcher,
    family: &'m Family,
}

impl Look<'_> {
    fn stand(&self) -> Stand {
        self.family.step(self.matcher.at).stand
    }

    /// The number of tokens and texts accepted, which can be rolled back.
    pub fn steps(&self) -> usize {
        self.family.depth(self.matcher.at) as usize
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> bool {
        self.family.accepts(self.stand())
    }

    /// Whether the text has ended.
    pub fn is_terminated(&self) -> bool {
        self.matcher.ended(self.family)
    }

    /// The bytes that may come next; `None` in an array whose items are unique, where they are found by
    /// [`Matcher::readable`].
    pub fn expected(&self) -> Option<Vec<u8>> {
        let stand = self.stand();
        let is_plain = !matches!(stand, Stand::Array(_));
        is_plain.then(|| self.matcher.expected_after(self.family, stand))
    }

    /// The tokens that the text may still take, the stop token counted; `None` where it may take any
    /// number.
    pub fn tokens_left(&self) -> Option<u32> {
        self.matcher.tokens_left(self.family, None)
    }

    /// How many of the last tokens may not take the text further from its end.
    pub fn prefer_end(&self) -> u32 {
        self.matcher.prefer_end
    }

    /// Everything read so far.
    pub fn text(&self) -> Vec<u8> {
        self.matcher.text_of(self.family)
    }

    /// Bytes held by the matcher and its forks together.
    pub fn bytes(&self) -> usize {
        self.family.bytes()
    }

    /// What the state holds and what it took to come here.
    pub fn counters(&self) -> MatcherCounters {
        MatcherCounters {
            items: self.family.tops(self.stand()),
            sets: self.family.stepper.sets.len(),
            completions: self.family.stepper.completions,
            work: self.family.work(),
        }
    }
}

impl Matcher {
    /// What `look` says of the state, if no lock is to be waited for and the text is short; else
    /// `None`.
    pub fn now<T>(&self, look: impl FnOnce(&Look<'_>) -> T) -> Option<T> {
        let family = self.family.try_read()?;
        let is_short = (family.depth(self.at) as usize) < SHORT_TEXT;
        is_short.then(|| look(&Look { matcher: self, family: &family }))
    }

    /// What `look` says of the state.
    ///
    /// # Errors
    /// [`Error::Deadline`], [`Error::Cancelled`] while a fork reads on.
    pub fn look<T>(&self, interrupt: &Interrupt, look: impl FnOnce(&Look<'_>) -> T) -> Result<T> {
        let family = lock::read(&self.family, interrupt)?;
        Ok(look(&Look { matcher: self, family: &family }))
    }

    /// The number of tokens and texts accepted, which can be rolled back.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn steps(&self, interrupt: &Interrupt) -> Result<usize> {
        self.look(interrupt, |look| look.steps())
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn is_accepting(&self, interrupt: &Interrupt) -> Result<bool> {
        self.look(interrupt, |look| look.is_accepting())
    }

    /// Whether the text has ended.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn is_terminated(&self, interrupt: &Interrupt) -> Result<bool> {
        self.look(interrupt, |look| look.is_terminated())
    }

    /// Everything read so far.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn text(&self, interrupt: &Interrupt) -> Result<Vec<u8>> {
        self.look(interrupt, |look| look.text())
    }

    /// Bytes held by this matcher and its forks together.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn bytes(&self, interrupt: &Interrupt) -> Result<usize> {
        self.look(interrupt, |look| look.bytes())
    }

    /// The text of a step.
    pub(super) fn text_read<'a>(&'a self, family: &'a Family, read: Read) -> &'a [u8] {
        match read {
            Read::Token(id) => self.engine.vocabulary.bytes(id),
            Read::Bytes(text) => family.bytes_of(text),
            Read::Nothing | Read::Stop(_) => &[],
        }
    }

    pub(in crate::engine) fn text_of(&self, family: &Family) -> Vec<u8> {
        let mut out = Vec::new();
        for (_, read) in family.reads(self.at) {
            out.extend_from_slice(self.text_read(family, read));
        }
        out
    }
}
