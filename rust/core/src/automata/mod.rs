//! Finite automata over letters: the right-hand side of one rule.
//!
//! Design: docs/design/automata.md.
//!
//! A *letter* is a `u32`: below [`FIRST_CALL`] a byte class, from there on a call of a rule.
//! Nothing here knows what a letter means; the network gives it its meaning.
//!
//! - [`utf8`]: sets of code points as sequences of byte ranges
//! - [`ids`]: sets of token ids likewise
//! - [`alphabet`]: byte classes
//! - [`nfa`]: automata with epsilon edges, determinization, epsilon removal
//! - `moves`: the edges of a set of states by letter
//! - `alike`: byte classes that an automaton does not tell apart
//! - [`automaton`]: automata without epsilon edges, trimming, canonical form
//! - [`fallback`]: edges of states that fall back on the start
//! - `marks`: sets of numbers that are emptied at once
//! - [`minimize`]: minimization of deterministic automata with partial transitions; chooses between refinement and
//!   `levels`: hashes of what states do, faster where they suffice
//! - `twins`: what of minimization takes one pass, where no states on cycles are equal
//! - `splice`: copies of automata in place of calls, by a subset construction without epsilon edges
//! - `lengths`: how many passes an automaton can still take from each of its states

mod alike;
pub mod alphabet;
pub mod automaton;
pub mod fallback;
pub mod ids;
pub(crate) mod lengths;
mod levels;
pub(crate) mod marks;
pub mod minimize;
mod moves;
pub mod nfa;
pub(crate) mod splice;
pub(crate) mod twins;
pub mod utf8;

pub use automaton::Automaton;
pub use nfa::Nfa;

/// What an edge reads: a byte class, or a call.
pub type Letter = u32;

/// The first letter that is a call: `FIRST_CALL + rule`.
pub const FIRST_CALL: Letter = 256;

/// The first letter that is a marker: no byte and no call, so nothing ever reads it. It keeps
/// states apart that would be equal without it.
pub const FIRST_MARKER: Letter = 1 << 31;

/// Whether a letter is a marker.
#[inline]
pub fn is_marker(letter: Letter) -> bool {
    letter >= FIRST_MARKER
}

/// The rule that a letter calls, if it is a call.
#[inline]
pub fn callee(letter: Letter) -> Option<usize> {
    (FIRST_CALL..FIRST_MARKER).contains(&letter).then(|| (letter - FIRST_CALL) as usize)
}

/// The letter that calls a rule.
#[inline]
pub fn call(rule: usize) -> Letter {
    FIRST_CALL + u32::try_from(rule).expect("rules are bounded far below 2^32")
}
