//! Flags: the letters beside a pattern, or within it.

use super::PatternDialect;
use super::error::PatternError;

/// The flags in force at a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Flags {
    /// `i`: characters of either case.
    pub(super) ignores_case: bool,
    /// `m`: `^` and `$` hold at lines.
    pub(super) is_multiline: bool,
    /// `s`: `.` is any character.
    pub(super) dot_is_all: bool,
    /// `u`, given as a flag: Annex B is out of the question.
    pub(super) is_unicode: bool,
    /// Python's `a`: `\d \w \s \b` are those of ASCII.
    pub(super) is_ascii: bool,
    /// `x`, of Python and other dialects: white space and comments are left out.
    pub(super) is_extended: bool,
}

impl Flags {
    pub(super) fn read(text: &str, dialect: PatternDialect) -> Result<Self, PatternError> {
        let mut flags = Self::default();
        for letter in text.chars() {
            if letter == 'v' && dialect == PatternDialect::Ecma {
                let message = "the set operations of the flag v are not supported; drop the flag, \
                               which reads the pattern as with u";
                return Err(PatternError::unsupported("the flag v", message, 0));
            }
            if letter == 'x' && dialect == PatternDialect::Python {
                flags.is_extended = true;
            } else if !flags.set(letter, true) {
                let message = format!("there is no flag {letter:?}; i, m, s and u are known");
                return Err(PatternError::syntax("flags", message, 0));
            }
        }
        Ok(flags)
    }

    /// Sets a flag; false where it is unknown.
    pub(super) fn set(&mut self, letter: char, value: bool) -> bool {
        match letter {
            'i' => self.ignores_case = value,
            'm' => self.is_multiline = value,
            's' => self.dot_is_all = value,
            'u' => self.is_unicode = value,
            _ => return false,
        }
        true
    }
}
