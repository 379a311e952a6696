//! Grammar text to [`Grammar`] and back.
//!
//! The language is the union of XGrammar's EBNF and llama.cpp's GBNF; where the two read one
//! text differently, XGrammar's reading holds (the table in `tests.rs` lists those places):
//! - `\x` takes every hexadecimal digit that follows, not two;
//! - `[]` matches nothing and `[^]` any code point;
//! - a rule ends where the next `name ::=` begins, not at the end of the line;
//! - a name may hold `_` and `.`; a name with a dot that is no rule is read as GBNF's any-code-point
//!   dot between rules.
//!
//! Layers, each knowing only those before it: `scanner` (bytes to tokens, never fails), `escapes`
//! (the inside of literals and classes), `options`, `macros`, `parser` (tokens to arena),
//! `printer`. `suggest` and `messages` word the errors.
//!
//! Invariants: nothing recurses on the depth of the input and no input panics; the first error in
//! reading order is the one reported; [`print`] writes a text that [`parse`] reads back as an
//! equal grammar under the same limits.
//!
//! Cost: time linear in the text, memory linear in the expressions (the text is scanned twice,
//! tokens are not kept).

mod equal;
mod escapes;
mod macros;
mod messages;
mod options;
mod parser;
mod printer;
mod scanner;
mod suggest;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::grammar::Grammar;
use crate::limits::Limits;

pub use equal::structurally_equal;
pub use printer::print;

/// Reads grammar text whose start rule is `root`.
///
/// # Errors
/// `Syntax` at the first place that is not in the language, `Unsupported` for a token named by its
/// text, `Limit` for `max_grammar_bytes`, `max_rules` and `max_nesting`.
pub fn parse(text: &str, root: &str, limits: &Limits) -> Result<Grammar> {
    parser::Parser::new(text, limits)?.grammar(root)
}
