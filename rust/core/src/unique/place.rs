//! Where a text stands in an array whose items are unique.

use super::pieces::Piece;
use super::reader::Phase;
use super::values::{Like, SeenId};
use crate::stacks::SetId;

/// A place in a text whose array is being read.
pub(crate) type ArrayId = u32;

/// The stacks and the reader of a text in an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) set: SetId,
    pub(super) seen: SeenId,
    pub(super) phase: Phase,
    pub(super) like: Option<Like>,
    pub(super) piece: Option<Piece>,
}
