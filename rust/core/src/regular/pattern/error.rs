//! Why a pattern is refused, and where.

use crate::error::{Error, Position};
use std::fmt;

/// In which way a text cannot be read as a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PatternFault {
    /// The text is no pattern of its dialect.
    Syntax,
    /// The pattern means what no automaton says, or what this reader does not know.
    Unsupported,
}

/// A pattern that is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// In which way.
    pub kind: PatternFault,
    /// The construct at fault, by its name.
    pub construct: String,
    /// What is wrong, and what to do.
    pub message: String,
    /// The 1-based column of the construct in the text of the pattern, in code points.
    pub column: u32,
}

impl PatternError {
    pub(super) fn new(
        kind: PatternFault,
        construct: &str,
        message: impl Into<String>,
        at: usize,
    ) -> Self {
        let column = u32::try_from(at).unwrap_or(u32::MAX).saturating_add(1);
        Self { kind, construct: construct.to_owned(), message: message.into(), column }
    }

    pub(super) fn syntax(construct: &str, message: impl Into<String>, at: usize) -> Self {
        Self::new(PatternFault::Syntax, construct, message, at)
    }

    pub(super) fn unsupported(construct: &str, message: impl Into<String>, at: usize) -> Self {
        Self::new(PatternFault::Unsupported, construct, message, at)
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}: {}", self.column, self.construct, self.message)
    }
}

impl std::error::Error for PatternError {}

impl PatternError {
    /// The error of a grammar whose text is the pattern, which may have several lines.
    pub fn into_error(self, pattern: &str) -> Error {
        let PatternError { kind, construct, message, column } = self;
        let mut position = Position { line: 1, column: 1 };
        for character in pattern.chars().take(column.saturating_sub(1) as usize) {
            position.column += 1;
            if character == '\n' {
                position = Position { line: position.line + 1, column: 1 };
            }
        }
        match kind {
            PatternFault::Syntax => {
                Error::Syntax { message: format!("{construct}: {message}"), position }
            }
            PatternFault::Unsupported => Error::Unsupported { construct, message, position },
        }
    }
}
