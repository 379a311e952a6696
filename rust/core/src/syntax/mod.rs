//! Grammar text to [`Grammar`] and back.
//!
//! Design: docs/design/grammar.md, "Syntax".
//!
//! The language is the union of XGrammar's EBNF and llama.cpp's GBNF; where the two read one
//! text differently, XGrammar's reading holds:
//! - `[]` matches nothing and `[^]` any code point (in GBNF both are the empty string);
//! - a rule ends where the next `name ::=` begins, not at the end of the line;
//! - a name may hold `_` and `.`; a name with a dot that is no rule is read as GBNF's any-code-point
//!   dot between rules;
//! - a rule may be defined once only, and bounds of repetitions count as written.
//!
//! Against both, `\ud83d\ude00` is the one character that JSON means by it, not two surrogates.
//!
//! From GBNF alone: empty alternatives, stacked repetitions, `.`, `<[id]>`, the escapes
//! `\[ \] \-` in literals, names that begin with a digit or are `true` or `false`.
//!
//! Refused though an engine reads it, since it is a slip or has no exact meaning: a line end inside
//! a literal or class, an empty right-hand side, half of a surrogate pair in a literal, code points past U+10FFFF, numbers past their
//! range (XGrammar wraps them), text after a NUL (XGrammar drops it), `\x` with more than two digits (XGrammar takes all
//! of them, llama.cpp two).
//!
//! Layers, each knowing only those before it: `scanner` (bytes to tokens, never fails), `escapes`
//! (the inside of literals and classes), `options`, `macros`, `parser` (tokens to arena),
//! `printer`. `suggest` and `messages` word the errors; `printed` mends what XGrammar
//! prints; `equal` compares grammars.
//!
//! Invariants: nothing recurses on the depth of the input and no input panics; the first error in
//! reading order is the one reported; [`print()`] writes a text that [`parse`] reads back as an
//! equal grammar under the same limits (but for its length in bytes).
//!
//! Cost: time linear in the text, memory linear in the expressions (the text is scanned twice,
//! tokens are not kept).

mod equal;
mod escapes;
mod macros;
mod messages;
mod options;
mod parser;
mod printed;
mod printer;
mod scanner;
mod suggest;
#[cfg(test)]
mod tests;

use crate::budget::Interrupt;
use crate::error::Result;
use crate::grammar::Grammar;
use crate::limits::Limits;
use scanner::Kind;
use std::collections::HashMap;

/// The ids of tokens by their texts.
pub type NamedTokens = HashMap<String, Vec<u32>>;

pub use equal::structurally_equal;
pub use printed::repair_printed;
pub use printer::{print, print_macro};

/// Reads grammar text whose start rule is `root`.
///
/// # Errors
/// `Syntax` at the first place that is not in the language, `Unsupported` for a token named by its
/// text, `Limit` for `max_grammar_bytes`, `max_rules` and `max_nesting`.
pub fn parse(text: &str, root: &str, limits: &Limits) -> Result<Grammar> {
    parse_within(text, root, limits, &Interrupt::default())
}

/// [`parse`], which an interrupt ends early.
///
/// # Errors
/// Those of [`parse`]; [`Error::Cancelled`](crate::error::Error::Cancelled),
/// [`Error::Deadline`](crate::error::Error::Deadline).
pub fn parse_within(
    text: &str,
    root: &str,
    limits: &Limits,
    interrupt: &Interrupt,
) -> Result<Grammar> {
    parse_with_tokens(text, root, None, limits, interrupt)
}

/// [`parse_within`] of a text that may name tokens by their texts: `tokens` has the ids of each, none where the
/// vocabulary has no such token.
///
/// # Errors
/// Those of [`parse_within`]; `Unsupported` for a token that has no id.
pub fn parse_with_tokens(
    text: &str,
    root: &str,
    tokens: Option<&NamedTokens>,
    limits: &Limits,
    interrupt: &Interrupt,
) -> Result<Grammar> {
    parser::GrammarParser::new(text, tokens, limits, interrupt)?.grammar(root)
}

/// The texts by which a grammar text names tokens (`<|end|>`), each once.
pub fn token_names(text: &str) -> Vec<&str> {
    let mut scanner = scanner::Scanner::new(text);
    let mut names = Vec::new();
    loop {
        let token = scanner.next_token();
        match token.kind {
            Kind::End => break,
            Kind::TokenRef | Kind::NotTokenRef => {
                let name = text[token.range()].trim_start_matches('!');
                if !name.starts_with("<[") {
                    names.push(name);
                }
            }
            _ => {}
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}
