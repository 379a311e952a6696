//! Regular languages of texts: finite automata over code points.
//!
//! Design: docs/design/regular-languages.md.
//!
//! A text is a sequence of Unicode scalar values, as a `str` is. A [`Dfa`] is minimal and numbered
//! in one way only, so equal languages are equal values. Its alphabet is a partition of the scalar
//! values into classes; one of them, the *rest*, is the class of U+10FFFF. Each state says where
//! the rest leads, and which other classes lead elsewhere, so a state costs what it names, and a
//! complement costs what the language costs.
//!
//! - [`alphabet`]: classes of code points, and those that two alphabets have in common
//! - [`dfa`]: the automaton, what it accepts and how one walks along it
//! - [`table`]: automata that are being made; [`canonical`]: their canonical form
//! - [`minimize`]: which states of a table are equivalent
//! - [`nfa`]: nondeterministic automata, as one writes them down
//! - [`determinize`]: nondeterministic automata over classes, and the subset construction
//! - [`product`]: intersection, union, difference, disjointness
//! - [`compose`]: concatenation and repetition
//! - [`texts`]: finite sets of texts
//! - [`lengths`]: texts of so many characters of one set
//! - [`words`]: the shortest text, all texts
//! - [`encode`]: automata over the bytes by which texts are written
//! - `pattern`: regular expressions
//! - [`substrings`]: what may stand in a row of chunks
//! - [`grammars`]: patterns and sets of texts as grammars
//! - `macros`: what `Regex` and `Substring` mean in grammar text
//! - [`excluding`]: automata over bytes without texts in which some others occur
//! - [`spell`]: the bytes of code points, as trees that share their ends
//! - [`merge`]: states of automata over bytes that are equivalent

mod alphabet;
mod canonical;
mod compose;
mod determinize;
mod dfa;
mod encode;
mod excluding;
pub mod grammars;
mod lengths;
mod macros;
mod merge;
mod minimize;
mod nfa;
pub mod pattern;
mod product;
mod spell;
pub mod substrings;
mod table;
#[cfg(test)]
mod tests;
mod texts;
mod words;

pub use crate::grammar::CharSet;
pub use dfa::Dfa;
pub use encode::{JsonEscapes, Spelling, encode, encode_all_but, encode_character};
pub use excluding::{ExcludedTexts, excluding, occurs_in};
pub use nfa::ScalarNfa;

use crate::budget::Budget;
use crate::error::{Error, Result};

/// What making an automaton may use.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// Counts the work, and hears the interrupt.
    pub budget: &'a Budget,
    /// The greatest number of states that any automaton may have, those on the way to a result
    /// included.
    pub max_states: usize,
}

impl Bounds<'_> {
    /// Refuses an automaton of more states than allowed.
    pub(super) fn check(&self, states: usize) -> Result<()> {
        if states <= self.max_states {
            return Ok(());
        }
        Err(Error::Limit {
            limit: "max_automaton_states",
            value: self.max_states as u64,
            message: "an automaton over characters has more states; lower counts, shorten lists \
                      of texts, split the pattern, or raise the limit"
                .to_owned(),
        })
    }
}
