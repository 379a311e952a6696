//! How a text may be meant: where the parser, the lexer and the post-lexer are.

use super::super::stack::Stack;
use super::layout::Layout;

/// One way in which the text so far may be meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Interpretation {
    /// States of the parser; the terminal in progress has been read, unless it is ignored or the
    /// newline of a post-lexer.
    pub stack: Stack,
    /// Of the lexer.
    pub state: u32,
    /// In which the terminal in progress began.
    pub scanner: u32,
    /// Of the post-lexer, before the newline terminal in progress.
    pub layout: Layout,
}
