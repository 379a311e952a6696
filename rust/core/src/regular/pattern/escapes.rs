//! What stands behind a backslash.

use super::error::PatternError;
use super::parser::{PatternParser, PatternReading};
use super::reading::{PatternEscape, class_escape};
use super::unicode;
use crate::grammar::CharSet;

/// Characters that a pattern with the flag `u` may escape.
const SYNTAX_CHARACTERS: &str = "^$\\.*+?()[]{}|/";

impl PatternParser<'_> {
    /// Reads an escape whose backslash, at `at`, is read.
    pub(super) fn escape(
        &mut self,
        at: usize,
        in_class: bool,
    ) -> Result<PatternEscape, PatternError> {
        let Some(here) = self.peek(0) else {
            let message = "a pattern cannot end with a backslash; write `\\\\` for the character";
            return Err(PatternError::syntax("`\\`", message, at));
        };
        self.at += 1;
        if let Some(escape) = self.shared_escape(here, in_class)? {
            return Ok(escape);
        }
        if self.reads_foreign()
            && let Some(escape) = self.foreign_escape(here, at, in_class)?
        {
            return Ok(escape);
        }
        match self.reading {
            PatternReading::Python => self.python_escape(here, at, in_class),
            _ => self.ecma_escape(here, at, in_class),
        }
    }

    /// What is the same in every reading.
    fn shared_escape(
        &mut self,
        here: char,
        in_class: bool,
    ) -> Result<Option<PatternEscape>, PatternError> {
        Ok(Some(match here {
            'd' | 'D' => class_escape(here, self.digit_set()),
            'w' | 'W' => class_escape(here, self.word_set()),
            's' | 'S' => class_escape(here, self.space_set()),
            't' => PatternEscape::Character(9),
            'n' => PatternEscape::Character(10),
            'v' => PatternEscape::Character(11),
            'f' => PatternEscape::Character(12),
            'r' => PatternEscape::Character(13),
            'b' if in_class => PatternEscape::Character(8),
            'b' | 'B' if !in_class => PatternEscape::Boundary { is_negated: here == 'B' },
            _ => return Ok(None),
        }))
    }

    fn digit_set(&self) -> CharSet {
        match self.reading {
            PatternReading::Python if !self.flags.is_ascii => unicode::digits_of_python(),
            _ => CharSet::new([(0x30, 0x39)]),
        }
    }

    /// The characters of words under the flags.
    pub(super) fn word_set(&mut self) -> CharSet {
        match self.reading {
            PatternReading::Python if self.flags.is_ascii => unicode::ascii_word(),
            PatternReading::Python => unicode::word_of_python(),
            _ => self.with_cases(&unicode::ascii_word()),
        }
    }

    fn space_set(&self) -> CharSet {
        match self.reading {
            PatternReading::Python if self.flags.is_ascii => CharSet::new([(9, 13), (32, 32)]),
            PatternReading::Python => unicode::space_of_python(),
            _ => unicode::space(),
        }
    }

    fn ecma_escape(
        &mut self,
        here: char,
        at: usize,
        in_class: bool,
    ) -> Result<PatternEscape, PatternError> {
        let is_unicode = self.reading == PatternReading::Unicode;
        match here {
            '0'..='9' => return self.decimal_escape(here, at, in_class),
            'c' => return self.control_escape(at),
            'x' => {
                if let Some(value) = self.hexadecimal(2) {
                    return Ok(PatternEscape::Character(value));
                }
            }
            'u' => {
                if let Some(character) = self.unicode_escape() {
                    return Ok(PatternEscape::Character(character));
                }
            }
            'p' | 'P' if is_unicode || self.peek(0) == Some('{') => {
                let set = self.property(at)?;
                return Ok(class_escape(here, set));
            }
            'k' if self.has_names => return Err(self.backreference(at, in_class)),
            _ => {}
        }
        let is_allowed = match is_unicode {
            true => SYNTAX_CHARACTERS.contains(here) || (in_class && here == '-'),
            false if here.is_ascii_alphabetic() => return Err(self.no_escape(here, in_class, at)),
            false => true,
        };
        if matches!(here, '<' | '>') && !is_unicode {
            self.remark(if here == '<' { "\\<" } else { "\\>" });
        }
        if is_allowed {
            return Ok(PatternEscape::Character(here as u32));
        }
        let message = match here {
            'x' => "two hexadecimal digits must stand behind it, as in `\\x41`".to_owned(),
            'u' => "write four hexadecimal digits behind it, or `\\u{..}`, up to 10FFFF".to_owned(),
            _ => format!("the character needs no backslash; write `{here}`"),
        };
        Err(PatternError::syntax(&format!("`\\{here}`"), message, at))
    }

    pub(super) fn backreference(&self, at: usize, in_class: bool) -> PatternError {
        if in_class {
            return PatternError::syntax("`\\k`", "a class holds no backreference", at);
        }
        let message = "no automaton can compare two parts of a text; repeat the pattern of the \
                       group in place of the reference";
        PatternError::unsupported("backreference", message, at)
    }

    /// `\0`, backreferences, and those of Annex B's octal escapes that no dialect takes for a
    /// backreference.
    fn decimal_escape(
        &mut self,
        here: char,
        at: usize,
        in_class: bool,
    ) -> Result<PatternEscape, PatternError> {
        let follows_digit = self.peek(0).is_some_and(|next| next.is_ascii_digit());
        if here == '0' && !follows_digit {
            return Ok(PatternEscape::Character(0));
        }
        self.at -= 1;
        let first = self.at;
        let number = self.digits().unwrap_or(0);
        if !in_class && here != '0' && number <= self.groups as u64 {
            return Err(self.backreference(at, in_class));
        }
        if self.reading == PatternReading::Unicode {
            let message = match (in_class, here) {
                (false, '1'..='9') => format!("there is no group {number}"),
                _ => "a number is no escape; write `\\x` and two hexadecimal digits".to_owned(),
            };
            return Err(PatternError::syntax(&format!("`\\{here}`"), message, at));
        }
        self.at = first + 1;
        let is_octal = |ahead| self.peek(ahead).is_some_and(|next| next.is_digit(8));
        let value = here
            .to_digit(8)
            .filter(|value| in_class || *value == 0 || (*value <= 3 && is_octal(0) && is_octal(1)));
        let Some(value) = value else {
            let message = match in_class {
                false => format!(
                    "there is no group {number}; for a character write `\\x` and two hexadecimal \
                     digits"
                ),
                true => format!("the digit needs no backslash; write `{here}`"),
            };
            return Err(PatternError::unsupported(&format!("`\\{here}`"), message, at));
        };
        Ok(PatternEscape::Character(self.octal(value, if here <= '3' { 2 } else { 1 })))
    }

    /// Up to so many octal digits more.
    fn octal(&mut self, mut value: u32, more: usize) -> u32 {
        for _ in 0..more {
            let Some(digit) = self.peek(0).and_then(|next| next.to_digit(8)) else { break };
            value = value * 8 + digit;
            self.at += 1;
        }
        value
    }

    /// `\cX`.
    fn control_escape(&mut self, at: usize) -> Result<PatternEscape, PatternError> {
        if let Some(letter) = self.peek(0).filter(char::is_ascii_alphabetic) {
            self.at += 1;
            return Ok(PatternEscape::Character(letter as u32 % 32));
        }
        if self.reading == PatternReading::AnnexB {
            return Err(self.no_escape('c', false, at));
        }
        let message = "a letter must stand behind it, as in `\\cJ`";
        Err(PatternError::syntax("`\\c`", message, at))
    }

    /// So many hexadecimal digits; reads nothing where there are fewer.
    pub(super) fn hexadecimal(&mut self, count: usize) -> Option<u32> {
        let mut value = 0;
        for ahead in 0..count {
            value = value * 16 + self.peek(ahead)?.to_digit(16)?;
        }
        self.at += count;
        Some(value)
    }

    /// What stands behind `\u`: a code point, also of two surrogates; `None` where nothing does.
    fn unicode_escape(&mut self) -> Option<u32> {
        if self.peek(0) == Some('{') {
            let number = self.braced_number()?;
            if self.reading == PatternReading::AnnexB {
                self.remark("\\u{..}");
            }
            return Some(number);
        }
        let first = self.hexadecimal(4)?;
        if (0xD800..0xDC00).contains(&first) && self.peek(0) == Some('\\') {
            let back = self.at;
            self.at += 1;
            if self.takes("u")
                && let Some(second @ 0xDC00..0xE000) = self.hexadecimal(4)
            {
                return Some(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00));
            }
            self.at = back;
        }
        Some(first)
    }

    /// The number of a code point in braces; reads nothing where there is none.
    pub(super) fn braced_number(&mut self) -> Option<u32> {
        if self.peek(0) != Some('{') {
            return None;
        }
        let (mut value, mut ahead) = (0u32, 1);
        while let Some(digit) = self.peek(ahead).and_then(|here| here.to_digit(16)) {
            value = value.saturating_mul(16).saturating_add(digit);
            ahead += 1;
        }
        if ahead == 1 || self.peek(ahead) != Some('}') || value > unicode::LAST {
            return None;
        }
        self.at += ahead + 1;
        Some(value)
    }

    /// What stands behind `\\u` in a group's name.
    pub(super) fn name_escape(&mut self) -> Option<char> {
        let reading = std::mem::replace(&mut self.reading, PatternReading::Unicode);
        let character = self.unicode_escape();
        self.reading = reading;
        character.and_then(char::from_u32)
    }

    /// What stands behind `\p`.
    fn property(&mut self, at: usize) -> Result<CharSet, PatternError> {
        let name = (self.peek(0) == Some('{'))
            .then(|| self.text[self.at..].iter().position(|&here| here == '}'))
            .flatten()
            .map(|end| self.text[self.at + 1..self.at + end].iter().collect::<String>());
        let Some(name) = name else {
            let message = "a property must stand behind it, as in `\\p{Lu}` or `\\p{Script=Greek}`";
            return Err(PatternError::syntax("`\\p`", message, at));
        };
        self.at += name.chars().count() + 2;
        if self.reading == PatternReading::AnnexB {
            self.remark("\\p{..}");
        }
        if self.reads_foreign() {
            if name == "L&" {
                self.remark("\\p{L&}");
                return self.named_property("LC".to_owned(), at);
            }
            if let Some(name) = name.strip_prefix('^') {
                self.remark("\\p{^..}");
                return Ok(self.named_property(name.to_owned(), at)?.complement());
            }
        }
        self.named_property(name, at)
    }

    /// The set of a property.
    pub(super) fn named_property(
        &mut self,
        name: String,
        at: usize,
    ) -> Result<CharSet, PatternError> {
        if let Some(known) = self.properties.get(&name) {
            return Ok(known.clone());
        }
        let set = unicode::property(&name)
            .map_err(|why| PatternError::unsupported(&format!("`\\p{{{name}}}`"), why, at))?;
        self.properties.insert(name, set.clone());
        Ok(set)
    }

    fn python_escape(
        &mut self,
        here: char,
        at: usize,
        in_class: bool,
    ) -> Result<PatternEscape, PatternError> {
        let digits = match here {
            'A' if !in_class => return Ok(PatternEscape::Start),
            'Z' | 'z' if !in_class => return Ok(PatternEscape::End),
            'a' => return Ok(PatternEscape::Character(7)),
            'N' => {
                let message = "characters by name are not supported; write `\\u` and its number";
                return Err(PatternError::unsupported("`\\N`", message, at));
            }
            '0'..='9' => return self.python_number(here, at, in_class),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            'p' | 'P' => {
                let message = "Python's re has no properties; take dialect=\"rust\", or dialect=\"ecma\" where the \
                               pattern is not in Lark, or list the characters";
                return Err(PatternError::syntax(&format!("`\\{here}`"), message, at));
            }
            _ if here.is_ascii_alphabetic() => {
                let message = format!("there is no such escape; write `{here}` for the letter");
                return Err(PatternError::syntax(&format!("`\\{here}`"), message, at));
            }
            _ => return Ok(PatternEscape::Character(here as u32)),
        };
        match self.hexadecimal(digits).filter(|&value| value <= unicode::LAST) {
            Some(value) => Ok(PatternEscape::Character(value)),
            None => {
                let message = format!("{digits} hexadecimal digits up to 10FFFF must follow");
                Err(PatternError::syntax(&format!("`\\{here}`"), message, at))
            }
        }
    }

    /// `\0` and up to two octal digits; three octal digits; else a backreference.
    fn python_number(
        &mut self,
        here: char,
        at: usize,
        in_class: bool,
    ) -> Result<PatternEscape, PatternError> {
        let is_octal = |ahead| self.peek(ahead).is_some_and(|next| next.is_digit(8));
        let value = match here.to_digit(8) {
            Some(0) => self.octal(0, 2),
            Some(value) if is_octal(0) && is_octal(1) => self.octal(value, 2),
            _ if in_class => {
                let message = "a class holds no backreference; write three octal digits";
                return Err(PatternError::syntax(&format!("`\\{here}`"), message, at));
            }
            _ => return Err(self.backreference(at, in_class)),
        };
        if value > 0o377 {
            let message = "an octal escape goes up to 377; write `\\u` and four hexadecimal digits";
            return Err(PatternError::syntax(&format!("`\\{here}`"), message, at));
        }
        Ok(PatternEscape::Character(value))
    }
}
