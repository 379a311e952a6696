//! Every way in which the core can say no.

use std::borrow::Cow;
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

/// Characters of a word of a message, such as a pointer or a name that it quotes, and of a message.
const WORD: usize = 300;
const MESSAGE: usize = 4_000;

/// A text without its middle, where it has more characters than that.
fn without_middle(text: &str, most: usize) -> Cow<'_, str> {
    // No text has more characters than bytes.
    let count = if text.len() > most { text.chars().count() } else { 0 };
    if count <= most {
        return Cow::Borrowed(text);
    }
    let starts = |character: usize| text.char_indices().nth(character).map_or(0, |(at, _)| at);
    let (left_out, end) = (count - most, most / 4);
    let (start, rest) = (&text[..starts(most - end)], &text[starts(count - end)..]);
    Cow::Owned(format!("{start}[.. {left_out} characters ..]{rest}"))
}

/// What a person can read of a message, whatever it quotes.
fn brief(message: &str) -> String {
    let words = message.split_inclusive(char::is_whitespace).map(|word| without_middle(word, WORD));
    without_middle(&words.collect::<String>(), MESSAGE).into_owned()
}

/// The message; of long words in it, and of a long message, the middle is left out.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&brief(&self.in_full()))
    }
}

impl std::error::Error for Error {}

impl Error {
    fn in_full(&self) -> String {
        match self {
            Error::Syntax { message, position } => {
                format!("line {}, column {}: {message}", position.line, position.column)
            }
            Error::Unsupported { construct, message, position: Position::NOWHERE } => {
                format!("{construct}: {message}")
            }
            Error::Unsupported { construct, message, position } => format!(
                "line {}, column {}: {construct}: {message}",
                position.line, position.column
            ),
            Error::Schema { pointer, keyword, message, .. } if keyword.is_empty() => {
                format!("{pointer}: {message}")
            }
            Error::Schema { pointer, keyword, message, .. } => {
                format!("{pointer}: {keyword}: {message}")
            }
            Error::Limit { limit, value, message } => {
                let message = with_option(limit, message);
                format!("limit {limit} = {value} reached: {message}")
            }
            Error::LimitInSchema { pointer, limit, value, message } => {
                let message = with_option(limit, message);
                format!("{pointer}: limit {limit} = {value} reached: {message}")
            }
            Error::Vocabulary(message) | Error::Artifact(message) | Error::State(message) => {
                message.clone()
            }
            Error::Budget { needed: Some(needed), left } => format!(
                "{left} tokens are left, and the shortest completion of the text takes {needed}, the \
                 stop token counted: allow {needed} tokens or more from here"
            ),
            Error::Budget { needed: None, .. } => String::from(
                "no tokens of the vocabulary complete the text: the grammar needs bytes that no token \
                 has, or more tokens than can be counted",
            ),
            Error::Cancelled => String::from("another thread cancelled the call"),
            Error::Deadline { limit, milliseconds } => format!(
                "deadline {limit} = {milliseconds} ms passed: the call needs more time; nothing has \
                 changed: simplify the grammar, try again or raise the limit"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_short_whatever_they_quote() {
        let vocabulary = |text: &str| Error::Vocabulary(text.to_owned()).to_string();
        let just = "é".repeat(WORD);
        assert_eq!(vocabulary(&just), just);
        let long = vocabulary(&format!("the word a{}z is long", "é".repeat(2 * WORD)));
        let (start, end) = ("é".repeat(WORD - WORD / 4 - 1), "é".repeat(WORD / 4 - 2));
        // The white space behind a word belongs to it.
        assert_eq!(long, format!("the word a{start}[.. 303 characters ..]{end}z is long"));
        let words = vocabulary(&"word ".repeat(10_000));
        assert!(
            words.chars().count() < MESSAGE + 50 && words.contains("characters ..]"),
            "{words}"
        );
        let pointer = format!("#/{}", "p".repeat(100_000));
        let error = Error::Schema {
            kind: SchemaFault::Invalid,
            pointer: pointer.clone(),
            keyword: "type".into(),
            message: "this is wrong".into(),
        };
        let text = error.to_string();
        assert!(text.len() < 2 * WORD && text.ends_with("type: this is wrong"), "{text}");
        assert!(matches!(error, Error::Schema { pointer: whole, .. } if whole == pointer));
    }
}
