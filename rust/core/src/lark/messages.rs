//! How errors are worded.

use crate::error::{Error, Position};

/// A text as it is shown in a message: short, on one line.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 40;
    let mut out: String = text.chars().take(LONGEST).flat_map(char::escape_debug).collect();
    if text.chars().nth(LONGEST).is_some() {
        out.push_str("...");
    }
    out
}

/// The text is not in the language.
pub(super) fn syntax(position: Position, message: impl Into<String>) -> Error {
    Error::Syntax { message: message.into(), position }
}

/// The text means what cannot be handled exactly.
pub(super) fn unsupported(
    construct: impl Into<String>,
    position: Position,
    message: impl Into<String>,
) -> Error {
    Error::Unsupported { construct: construct.into(), message: message.into(), position }
}

/// A bound was reached.
pub(super) fn limit(limit: &'static str, value: usize, message: impl Into<String>) -> Error {
    Error::Limit { limit, value: value as u64, message: message.into() }
}
