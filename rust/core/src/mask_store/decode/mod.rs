//! Decoding with a mask store: masks and accepted tokens of texts.
//!
//! Design: docs/design/mask-stores.md, "Decoding".

mod columns;
mod decoder;
mod groups;
mod layout;
mod matcher;
mod row_tokens;
mod token_sets;
mod unions;
mod walks;

#[cfg(test)]
mod tests;

pub use decoder::{Decoder, DecoderParts, Memory, RawRow};
pub use groups::{RowLimits, RowTable};
pub use layout::{Indentation, Layout};
pub use matcher::{Interpretation, TextMatcher};
pub use row_tokens::TokenSource;
