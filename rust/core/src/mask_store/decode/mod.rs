//! Decoding with a mask store: masks and accepted tokens of texts.
//!
//! Design: docs/design/mask-stores.md, "Decoding".

mod columns;
mod engine;
mod groups;
mod layout;
mod matcher;
mod row_tokens;
mod token_sets;
mod unions;
mod walks;

#[cfg(test)]
mod tests;

pub use engine::{Engine, EngineParts, Memory, RawRow};
pub use groups::{RowLimits, RowTable};
pub use layout::{Indentation, Layout};
pub use matcher::{Place, Text};
pub use row_tokens::TokenSource;
