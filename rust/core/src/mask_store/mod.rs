//! The lexer of a mask store: what tokens do to the terminals of a grammar.
//!
//! Design: docs/design/mask-stores.md.
//!
//! Terminals come as automata over bytes ([`TerminalAutomata`]), with the scanners of a lexer: the sets of
//! terminals that it looks for in one state of the parser. All terminals that can be in progress
//! are followed side by side ([`joint`]), so what a scanner decides is known exactly: which
//! terminal is first in its order, how far it reaches, and what must not follow. Walks over the
//! trie of the vocabulary from every lexer state give the rows ([`walk`], [`rows`]). What rows do to
//! the stack of the parser is worked out in [`parser`]; [`decode`] brings both together.

pub mod decode;
mod joint;
mod letters;
mod obligations;
pub mod parser;
mod prune;
mod rows;
mod saved;
mod sets;
mod stack;
mod step;
mod terminals;
mod walk;
mod writing;

#[cfg(test)]
mod tests;

pub use joint::Joints;
pub use letters::{LexerLetter, NewlineColumn};
pub use rows::{LexerRow, LexerRows, TerminalCounts};
pub use saved::SavedLexer;
pub use sets::{ALL, EMPTY, ScannerSetId};
pub use stack::Stack;
pub use step::Stepped;
pub use terminals::{Embedded, EndCondition, Newline, Scanners, TerminalAutomata};
pub use walk::{Store, WalkLimits};
