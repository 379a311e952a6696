//! Lark grammars: from text to a [`Grammar`].
//!
//! Design: docs/design/lark.md.
//!
//! - `scanner`, `parser`, `tree`: from text to documents; `escapes`, `json`: what stands in literals and directives
//! - `grammars`: texts that name others; `names`: which name says what; `settings`: options; `common`: Lark's library
//! - `compile`: from documents to a grammar, `%ignore` included; `leaves`, `terminals`, `tokens`: its parts
//! - `lazy`: rules that end as soon as they can; `dispatch`: free text with tools
//! - `messages`: the words of errors; `notes`: warnings about a text that can be read
//!
//! The language is Lark's as XGrammar and llguidance read it, with what either adds: `{n,m}`, `%json`,
//! `%regex`, `%lark`, `@name`, `<tokens>`, `&`, `~`, options in brackets, `%llguidance`.
//!
//! # What a text means
//!
//! A text is a context-free grammar over characters. Lark and llguidance read it through a lexer,
//! which cuts the input into terminals first, the longest one each time (Lark: by priority), so that
//! `start: A "b"` with `A: /[a-z]+/` has no string there. Here, as in XGrammar, a terminal is a rule:
//! every way to cut the input counts, and a grammar whose lexer never has a choice has the same strings
//! in all of them. Hence priorities, aliases (`->`) and the prefixes `?` and `!` change nothing.
//!
//! What `%ignore` names may stand behind each literal, range, pattern, terminal, token and grammar
//! within a rule, as often as it likes, never inside a terminal; at the start of the text only with
//! `allow_initial_skip`.
//!
//! `lazy`, `suffix` and `stop` make a rule end at the first place where it can: see `lazy`. Start
//! rules of free text with tools become XGrammar's macros: see `dispatch`.
//!
//! Patterns are of the crate `regex` (llguidance), or of Python (Lark): [`LarkOptions::dialect`].
//! XGrammar's own patterns know only ASCII (`\d`, `\w`, the flag `i`).
//!
//! # What is refused
//!
//! By name: rules with a parameter of 64 bits (`::`, `%if`), the use of what `%declare` names, imports of other
//! libraries than `common`, `stop=""`, `allow_invalid_utf8`, tokens by name without a vocabulary, what is not regular
//! in terminals and lazy rules. `stop_capture` becomes an option of its rule, which the engines refuse.
//! `max_tokens` and `max_chars` become options of rules too, which `grammar/bounded` gives their meaning.
//!
//! # Layers
//!
//! ```text
//! scanner    text to tokens          escapes    the inside of literals
//! parser     tokens to documents     tree       documents: arenas in postfix order
//!  head      what stands before a right-hand side
//!  atoms     what a right-hand side is made of
//! names      imports, %override, %extend, templates
//! common     the library
//! terminals  checks of terminals, and their automata where `&`, `~` and lazy rules need them
//! leaves     literals and patterns   tokens     `<...>`
//! json       the values of directives
//! compile    a document to a grammar
//!  lazy      lazy, suffix, stop      dispatch   free text with tools
//!  settings  options of texts and rules
//! grammars   texts that name others
//! notes      lazy quantifiers, which decide nothing here
//! ```
//!
//! Nothing recurses on the depth of the input, no input panics, and work is counted: it grows with the
//! length of the text, but for templates and automata, which have bounds of their own.

mod common;
mod compile;
mod dispatch;
mod escapes;
mod grammars;
mod json;
mod lazy;
mod leaves;
mod messages;
mod names;
mod notes;
mod parser;
mod scanner;
mod settings;
mod terminals;
#[cfg(test)]
mod tests;
mod tokens;
mod tree;

pub use notes::{LarkNote, notes};

pub use crate::regular::substrings::{characters, substrings, words};

use crate::error::{Position, Result};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::regular::Bounds;
use crate::regular::pattern::PatternDialect;

/// How a text is read.
#[derive(Clone, Debug, PartialEq)]
pub struct LarkOptions {
    /// The rule to start with.
    pub start: String,
    /// Whose regular expressions stand between slashes. Rust's are those of llguidance.
    pub dialect: PatternDialect,
    /// `max_grammar_bytes`, `max_rules` and `max_nesting` count here.
    pub limits: Limits,
}

impl Default for LarkOptions {
    fn default() -> Self {
        Self { start: "start".into(), dialect: PatternDialect::Rust, limits: Limits::default() }
    }
}

/// What a text names that stands elsewhere.
pub trait Subgrammars {
    /// The grammar of a JSON Schema behind `%json`, which begins at `position` of its text.
    ///
    /// # Errors
    /// The text is no schema, or one that cannot be expressed.
    fn json_schema(&mut self, text: &str, position: Position) -> Result<Grammar>;

    /// The grammar that `@name` means; `None` where there is none of the name.
    ///
    /// # Errors
    /// It cannot be had.
    fn grammar(&mut self, name: &str) -> Result<Option<NamedGrammar>> {
        let _ = name;
        Ok(None)
    }

    /// The tokens whose text is exactly this, with its angle brackets: `<|end|>`.
    fn tokens(&mut self, text: &str) -> TokenIds {
        let _ = text;
        TokenIds::Unknown
    }
}

/// A grammar that a text names.
#[derive(Clone, Debug)]
pub enum NamedGrammar {
    /// A grammar as it is.
    Grammar(Grammar),
    /// Lark text, read with the same options, which may name others; it starts with `start`.
    Lark(String),
}

/// The ids of the tokens of one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenIds {
    /// There is no vocabulary to look it up in.
    Unknown,
    /// These; none where the vocabulary has no such token.
    Ids(Vec<u32>),
}

/// Reads Lark text.
///
/// # Errors
/// `Syntax` and `Unsupported` with a place in the text, errors of schemas within, `Limit` for
/// `max_grammar_bytes`, `max_rules`, `max_nesting`, `max_template_rules`, `max_token_ids`,
/// `max_automaton_states`, the work of
/// `bounds`, and what its interrupt says.
pub fn read(
    text: &str,
    options: &LarkOptions,
    subgrammars: &mut dyn Subgrammars,
    bounds: &Bounds<'_>,
) -> Result<Grammar> {
    grammars::read(text, options, subgrammars, bounds)
}
