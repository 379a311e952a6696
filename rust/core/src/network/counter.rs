//! What a rule counts, and its bounds.

use crate::limits::MOST_TEXT_BYTES;

/// What a rule counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CountedUnit {
    Passes,
    /// The tokens that begin within its texts. There is no lower bound.
    Tokens,
}

/// The bounds of a rule that counts. A pass takes at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counter {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) unit: CountedUnit,
}

/// Texts have fewer bytes: a bound of so many passes is met by none.
pub(super) const UNMET: u32 = MOST_TEXT_BYTES + 1;

impl Counter {
    /// The bounds without an upper one that no text of fewer than [`UNMET`] bytes reaches.
    pub(super) fn met(self) -> Self {
        Self { max: self.max.filter(|&max| max < UNMET), ..self }
    }

    /// The last number of passes that differs from those before.
    pub(super) fn last(self) -> u32 {
        match self.max {
            // No text has so many passes, so none needs a state but the one behind the first: the count never ends.
            _ if self.min >= UNMET => 1,
            Some(max) => max + u32::from(self.unit == CountedUnit::Tokens),
            None => self.min.max(1),
        }
    }
}
