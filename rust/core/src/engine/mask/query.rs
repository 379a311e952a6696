//! Questions: what a mask asks about nodes of the trie.

use crate::network::BOTTOM;

/// What is asked about some trie nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine) struct Question {
    /// The frame.
    pub(in crate::engine) frame: u32,
    /// The frame beneath that is asked about with it, or [`ALONE`], [`OWN`] or
    /// [`NOTHING`].
    pub(in crate::engine) under: u32,
}

/// What goes on where the frames of a question have been popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::engine) struct After {
    /// The state of the same rule that a call returned to.
    pub(in crate::engine) to: Option<u32>,
    /// Whatever stands beneath a frame of this rule.
    pub(in crate::engine) rule: Option<u32>,
}

/// Nothing beneath: the answer ends where the frame has been popped.
pub(in crate::engine) const ALONE: u32 = BOTTOM;
/// As `ALONE`, without the calls that the frame delegates.
pub(in crate::engine) const OWN: u32 = BOTTOM - 1;

/// Nothing beneath: the text ends where the frame has been popped, and no node is pending.
pub(in crate::engine) const NOTHING: u32 = BOTTOM - 2;

/// Frames beneath one that counts, at most, that are asked about with it.
pub(in crate::engine) const MAX_UNDER: usize = 2;
