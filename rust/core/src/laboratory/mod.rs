//! Questions about grammars, not about texts: do two say the same?
//!
//! Design: docs/design/laboratory.md.
//!
//! Nothing here is needed to decode.
//!
//! - `equivalence`: whether two grammars have one language, and a text that tells them apart, made as short as it can be
//! - `goals`: pairs of stack sets to be shown equal; `parts`: what these can be split into; `words`: shortest texts of
//!   a state or a set of stacks
//! - `whose`: which of two grammars an error is of

mod equivalence;
mod goals;
mod parts;
mod whose;
mod words;

pub use equivalence::{Comparison, Verdict, compare};
