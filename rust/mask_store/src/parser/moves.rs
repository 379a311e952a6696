//! States of the minimal automaton, and what they do.

use std::sync::Arc;

/// The number of a state.
pub type StackState = u32;
/// No stack is accepted.
pub const REJECT: StackState = 0;
/// Every stack is.
pub const ACCEPT: StackState = 1;

/// Moves in ascending order of what is read.
pub(super) type StackMoves = Arc<[(u32, StackState)]>;
/// Moves of new states: a target below 0 is the new state `-1 - target`.
pub(super) type NewMoves = Vec<(u32, i64)>;
