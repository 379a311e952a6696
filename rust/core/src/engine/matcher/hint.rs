//! How far the end of a text is, as far as that is known: one comparison for a mask.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a text needed at most to end, after so many tokens.
#[derive(Debug)]
pub(in crate::engine) struct Hint(AtomicU64);

const NO_HINT: u64 = u64::MAX;

impl Default for Hint {
    fn default() -> Self {
        Self(AtomicU64::new(NO_HINT))
    }
}

impl Clone for Hint {
    fn clone(&self) -> Self {
        Self(AtomicU64::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Hint {
    /// Takes note that nothing is known: the text went on otherwise than by a token.
    pub(in crate::engine) fn forget(&self) {
        self.0.store(NO_HINT, Ordering::Relaxed);
    }

    pub(super) fn set(&self, tokens: u32, needed: u32) {
        self.0.store(u64::from(tokens) << 32 | u64::from(needed), Ordering::Relaxed);
    }

    /// What a text needs at most after one more token than `tokens`, where each adds at most `raised`.
    #[inline]
    pub(super) fn needed_after(&self, tokens: u32, raised: u32) -> Option<u64> {
        let hint = self.0.load(Ordering::Relaxed);
        let since = u64::from(tokens).checked_sub(hint >> 32).filter(|_| hint != NO_HINT)?;
        Some((hint & u64::from(u32::MAX)) + (since + 1) * u64::from(raised))
    }
}
