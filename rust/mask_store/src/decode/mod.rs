//! Decoding with a mask store: masks and accepted tokens of texts.
//!
//! Design: docs/design/mask-stores.md, "Decoding".
//!
//! - `decoder`: what texts share; `matcher`: one text (`fill` makes its mask, of rows that `walks` looks up);
//!   `interpretation`: a way in which it may be meant
//! - `groups`, `row_tokens`, `token_sets`: rows and their tokens, ready to be asked for by a stack
//! - `walks`: down the stack, which rows are allowed (`allowed`); `unions`: rows that a part of the stack has not decided yet
//! - `layout`, `columns`: newlines, as the post-lexer has them

mod columns;
mod decoder;
mod groups;
mod interpretation;
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
pub use interpretation::Interpretation;
pub use layout::{Indentation, Layout};
pub use matcher::TextMatcher;
pub use row_tokens::TokenSource;
