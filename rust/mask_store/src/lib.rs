//! Mask stores: what tokens do to the terminals of a grammar (the lexer, here), and what terminals do to the stack of
//! the parser.
//!
//! Design: docs/design/mask-stores.md.
//!
//! Terminals come as automata over bytes ([`TerminalAutomata`]), with the scanners of a lexer: the sets of
//! terminals that it looks for in one state of the parser. All terminals that can be in progress
//! are followed side by side ([`joint`]), so what a scanner decides is known exactly: which
//! terminal is first in its order, how far it reaches, and what must not follow. Walks over the
//! trie of the vocabulary from every lexer state give the rows ([`walk`], [`rows`]). What rows do to
//! the stack of the parser is worked out in [`parser`]; [`decode`] brings both together.
//!
//! - `terminals`, `sets`, `joint`: terminals as automata, sets of scanners, and all of them side by side
//! - `step`, `walk`: one token from one lexer state, and the walk over the trie from every one; `obligations`: what must not,
//!   or must, follow; `prune`: what need not be followed
//! - `letters`, `rows`, `writing`: what rows are made of, and how; `saved`: what a walk has found, in numbers
//! - `stack`: stacks that share what lies below; `parser`, `decode`: folders of their own
#![forbid(unsafe_code)]

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
