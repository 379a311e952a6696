//! Where a text stands in an array whose items are unique.

use super::pieces::Piece;
use super::reader::Phase;
use super::values::{Like, SeenId};
use crate::stacks::SetId;

/// A place in a text whose array is being read.
pub(crate) type ArrayId = u32;

/// The stacks and the reader of a text in an array. A text that begins several arrays at different places has
/// one after the other, each with stacks of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// The stacks in this array, and perhaps some in none.
    pub(super) set: SetId,
    /// The stacks of all places of the text.
    pub(super) all: SetId,
    /// How many places of the text follow.
    pub(super) behind: u8,
    pub(super) is_one_of_many: bool,
    pub(super) seen: SeenId,
    pub(super) phase: Phase,
    pub(super) like: Option<Like>,
    pub(super) piece: Option<Piece>,
}

impl Place {
    /// The one place of a text.
    pub(super) fn alone(set: SetId, seen: SeenId, phase: Phase) -> Self {
        let (like, piece) = (None, None);
        Self { set, all: set, behind: 0, is_one_of_many: false, seen, phase, like, piece }
    }
}
