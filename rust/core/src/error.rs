//! Every way in which the core can say no.

use std::fmt;

/// A place in grammar text: 1-based line and column (columns count code points).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// 1-based line.
    pub line: u32,
    /// 1-based column, in code points.
    pub column: u32,
}

impl Position {
    /// Of what no grammar text says, as rules that a converter makes.
    pub const NOWHERE: Self = Self { line: 0, column: 0 };
}

/// What went wrong. Each kind is a named exception in Python.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The grammar text is not in the language.
    Syntax {
        /// What is wrong, what was expected and what to do.
        message: String,
        /// Where.
        position: Position,
    },
    /// The grammar is well-formed but holds something that cannot be handled exactly.
    Unsupported {
        /// The construct, by its name in grammar text.
        construct: String,
        /// Why, and what to do instead.
        message: String,
        /// Where.
        position: Position,
    },
    /// A JSON Schema that cannot be turned into a grammar.
    Schema {
        /// In which way.
        kind: SchemaFault,
        /// The JSON pointer of the place, as a fragment of the document's URI: `#/properties/a`.
        pointer: String,
        /// The keyword at fault; empty where it is the schema as a whole.
        keyword: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A bound of [`crate::limits::Limits`] or [`crate::engine::EngineLimits`] was reached.
    Limit {
        /// The field of these.
        limit: &'static str,
        /// The bound in force.
        value: u64,
        /// What reached it, and what to do.
        message: String,
    },
    /// A bound was reached by a JSON Schema, at a place of it that is known.
    LimitInSchema {
        /// The JSON pointer of the place, as of [`Error::Schema`].
        pointer: String,
        /// The field of `Limits`.
        limit: &'static str,
        /// The bound in force.
        value: u64,
        /// What reached it, and what to do.
        message: String,
    },
    /// The vocabulary cannot be used.
    Vocabulary(String),
    /// A saved artefact is damaged, of another version, or made for something else.
    Artifact(String),
    /// A matcher was asked for what its state does not allow.
    State(String),
    /// The tokens that are left cannot complete the text.
    Budget {
        /// The fewest that can, the stop token counted; `None` where no tokens of the vocabulary do.
        needed: Option<u32>,
        /// The tokens that are left.
        left: u32,
    },
    /// Another thread, or an observer, cancelled the call.
    Cancelled,
    /// The call ran past its deadline.
    Deadline {
        /// The field of the limits that set it, or the argument.
        limit: &'static str,
        /// The time that was allowed.
        milliseconds: u64,
    },
}

/// In which way a JSON Schema cannot be turned into a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaFault {
    /// The document is no schema: no JSON, a value of a wrong type, a reference to nothing.
    Invalid,
    /// The schema means what no grammar can say, or what this converter does not know.
    Unsupported,
    /// No value is valid.
    Unsatisfiable,
}

/// The result of whatever may say no.
pub type Result<T> = std::result::Result<T, Error>;

/// The message of a limit that can be raised, with the option that raises it.
fn with_option(limit: &str, message: &str) -> String {
    message.replace("raise the limit", &format!("raise it, Limits({limit}=...)"))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Syntax { message, position } => {
                write!(f, "line {}, column {}: {message}", position.line, position.column)
            }
            Error::Unsupported { construct, message, position: Position::NOWHERE } => {
                write!(f, "{construct}: {message}")
            }
            Error::Unsupported { construct, message, position } => write!(
                f,
                "line {}, column {}: {construct}: {message}",
                position.line, position.column
            ),
            Error::Schema { pointer, keyword, message, .. } if keyword.is_empty() => {
                write!(f, "{pointer}: {message}")
            }
            Error::Schema { pointer, keyword, message, .. } => {
                write!(f, "{pointer}: {keyword}: {message}")
            }
            Error::Limit { limit, value, message } => {
                let message = with_option(limit, message);
                write!(f, "limit {limit} = {value} reached: {message}")
            }
            Error::LimitInSchema { pointer, limit, value, message } => {
                let message = with_option(limit, message);
                write!(f, "{pointer}: limit {limit} = {value} reached: {message}")
            }
            Error::Vocabulary(message) | Error::Artifact(message) | Error::State(message) => {
                f.write_str(message)
            }
            Error::Budget { needed: Some(needed), left } => write!(
                f,
                "{left} tokens are left, and the shortest completion of the text takes {needed}, the \
                 stop token counted: allow {needed} tokens or more from here"
            ),
            Error::Budget { needed: None, .. } => f.write_str(
                "no tokens of the vocabulary complete the text: the grammar needs bytes that no token \
                 has, or more tokens than can be counted",
            ),
            Error::Cancelled => f.write_str("another thread cancelled the call"),
            Error::Deadline { limit, milliseconds } => write!(
                f,
                "deadline {limit} = {milliseconds} ms passed: the call needs more time; nothing has \
                 changed: simplify the grammar, try again or raise the limit"
            ),
        }
    }
}

impl std::error::Error for Error {}
