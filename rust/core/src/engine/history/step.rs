//! What a step is.

use crate::chart::ColumnId;
use crate::stacks::SetId;
use crate::unique::ArrayId;

/// A place in the tree of steps.
pub(crate) type StepId = u32;

/// What a step read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The start, or a restored state: nothing.
    Nothing,
    /// A token of text.
    Token(u32),
    /// A stop token.
    Stop(u32),
    /// Bytes: their number in `Family::texts`.
    Bytes(u32),
}

/// How what was read is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stand {
    /// As a set of stacks.
    Stacks(SetId),
    /// As a set of stacks, and beside them the array that is being read, whose items are unique.
    Array(ArrayId),
    /// As a column of the chart.
    Chart(ColumnId),
}

/// One accepted token or text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(super) parent: StepId,
    /// An ancestor further up.
    pub(super) jump: StepId,
    pub(super) depth: u32,
    /// The tokens read up to here since the first step, stop tokens too.
    pub(crate) tokens: u32,
    /// The bytes read likewise.
    pub(crate) bytes: u32,
    /// What may follow it.
    pub(crate) stand: Stand,
    pub(crate) read: Read,
}

/// A step that was read again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Again {
    pub(crate) id: StepId,
    pub(crate) stand: Stand,
    pub(crate) read: Read,
    /// The bytes that it read.
    pub(crate) length: usize,
}
