//! Calls of rules whose masks look at most of the vocabulary, which many states share.

use super::{Call, Network};

/// A good value of [`share_wide`](super::NetworkOptions::share_wide): more than all letters and digits, less than
/// printable ASCII.
pub const WIDE: u32 = 80;
/// So few bytes are narrow where they are counted.
pub(super) const NARROW: u32 = 4;
/// Calls that a state delegates, at most.
pub(super) const MAX_DELEGATED: usize = 4;

/// What makes a rule wide: a loop over so many bytes, the inside of a string, a comment, free
/// text. Masks there look at most of the vocabulary.
pub(super) struct Width {
    pub(super) least: u32,
    /// For each byte class how many bytes it has.
    pub(super) of: Vec<u32>,
}

impl Width {
    pub(super) fn is_wide(&self, classes: impl Iterator<Item = u32>) -> bool {
        classes.map(|class| self.of[class as usize]).sum::<u32>() >= self.least
    }
}

impl Network {
    /// The calls of a state that are of rules whose masks look at most of the vocabulary, or that count
    /// white space, which many states call: it is asked about by way of those, and for the rest about
    /// itself.
    #[inline]
    pub(crate) fn delegated(&self, state: u32) -> &[Call] {
        match self.delegated.get(state as usize) {
            None => match self.set_state(state) {
                None => &[],
                // All: what is known of masks speaks of called rules, which outlast a text.
                Some((sets, _)) => &sets.ways(self, state).calls,
            },
            Some(0) => &[],
            Some(&count) => {
                let first = self.call_starts[state as usize] as usize;
                &self.calls[first..first + count as usize]
            }
        }
    }

    /// The calls of a state that it does not delegate.
    pub(crate) fn own_calls(&self, state: u32) -> &[Call] {
        if self.set_state(state).is_some() {
            return &[];
        }
        let q = state as usize;
        let first = self.call_starts[q] as usize + self.delegated(state).len();
        &self.calls[first..self.call_starts[q + 1] as usize]
    }

    /// Whether a state that delegates does anything besides.
    #[inline]
    pub(crate) fn has_own(&self, state: u32) -> bool {
        !self.listed(state).is_empty() || !self.own_calls(state).is_empty()
    }

    /// The only call of a state that does nothing else and is delegated: such a state need not
    /// stand on a stack.
    #[inline]
    pub(crate) fn passes_on(&self, state: u32) -> Option<Call> {
        match *self.delegated(state) {
            [call] if !self.has_own(state) && !self.is_final(state) => Some(call),
            _ => None,
        }
    }
}
