//! What parts of a pattern are read as.

use crate::grammar::CharSet;
use std::fmt;

/// How a construct was read that ECMA-262 lacks, or that dialects tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Remark {
    /// The construct, as one writes it.
    pub construct: &'static str,
    /// How it is read, a sentence.
    pub text: &'static str,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// A class that may be another one in other dialects, if a bracket stands alone behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// `[]` and `[^]`, with the place.
    Empty(usize),
    /// `[a-z&&[..]` and `[a-z-[..]`, with the place of the operator.
    Operation(usize),
    /// `[a[..]`, if the bracket stands right behind a class, with the place of the inner one.
    Inner(usize),
}

/// What may be said of quantifiers behind a node.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifiers {
    Allowed,
    Forbidden,
}

/// What an escape means.
pub(super) enum PatternEscape {
    /// A code point, which may be a surrogate.
    Character(u32),
    /// One of a set, as written.
    Set(CharSet),
    /// `\b` or `\B`.
    Boundary { is_negated: bool },
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
}

/// A capital letter is for the characters that are not in the set.
pub(super) fn class_escape(letter: char, set: CharSet) -> PatternEscape {
    PatternEscape::Set(if letter.is_ascii_uppercase() { set.complement() } else { set })
}
