//! Questions about grammars, not about texts: do two say the same?
//!
//! Design: docs/design/laboratory.md.
//!
//! Nothing here is needed to decode.

mod equivalence;
mod goals;
mod parts;
mod whose;
mod words;

pub use equivalence::{Comparison, Verdict, compare};
