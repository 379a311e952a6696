//! Pairs of a state and a node, and who depends on the row of each.

use super::dawg::NodeId;
use super::exits::PairExits;

pub(super) type PairId = u32;

/// A frame on top, with a token read as far as a node.
pub(super) struct Pair {
    pub(super) state: u32,
    pub(super) node: NodeId,
    pub(super) row: PairExits,
    /// The last of each, if any: a link.
    pub(super) followers: u32,
    pub(super) callers: u32,
    pub(super) is_explored: bool,
}

/// Who takes over the exits of a pair, with the tokens finished and the bytes read before.
#[derive(Clone, Copy)]
pub(super) struct Follower {
    pub(super) pair: PairId,
    pub(super) tokens: u32,
    pub(super) bytes: u32,
}

/// A pair that calls another.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) pair: PairId,
    /// Where the call returns to.
    pub(super) to: u32,
    /// The tokens finished before, and the bytes read.
    pub(super) tokens: u32,
    pub(super) bytes: u32,
}

/// The pair without a bound of which a pair of a state that counts takes the exits over.
#[derive(Clone, Copy)]
pub(super) struct Unbounded {
    pub(super) pair: PairId,
    /// Only those of at most so many bytes and tokens.
    pub(super) bytes: u32,
    pub(super) tokens: u32,
}

/// No link.
pub(super) const NO_LINK: u32 = u32::MAX;

/// Lists of many pairs, in one piece of memory: elements, each with the link to the one before.
pub(super) struct Links<T>(Vec<(T, u32)>);

impl<T> Default for Links<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy> Links<T> {
    /// Adds an element to the list of which `last` is the last link.
    pub(super) fn push(&mut self, last: &mut u32, element: T) {
        let before = std::mem::replace(last, self.0.len() as u32);
        self.0.push((element, before));
    }

    /// The element of a link, and the link to the one before.
    pub(super) fn get(&self, link: u32) -> Option<(T, u32)> {
        self.0.get(link as usize).copied()
    }
}
