//! What ECMA-262 lacks and other dialects have: where they agree it is read as they read it, with a
//! remark; else it is refused by its name. With the flag `u` given, ECMA-262 alone counts.
//!
//! The dialects are those of Python, Perl, PCRE, Java, .NET, Go, Rust and Ruby, and XML Schema's.
//!
//! What remarks say, and what to write instead, stands in [`advice`](super::advice).

use super::advice::{POSIX, REMARKS, advice_on_escape};
use super::error::PatternError;
use super::parser::{PatternParser, PatternReading, Purpose};
use super::reading::{Doubt, PatternEscape, Quantifiers, Remark, class_escape};
use super::syntax::PatternNodeId;
use super::unicode;

impl PatternParser<'_> {
    /// Whether what ECMA-262 lacks is read, or refused by its name.
    pub(super) fn reads_foreign(&self) -> bool {
        self.reading != PatternReading::Python && !self.flags.is_unicode
    }

    /// Whether the text is read by Annex B, where what it makes of a text may be meant otherwise.
    pub(super) fn doubts(&self) -> bool {
        self.reading == PatternReading::AnnexB && self.reads_foreign()
    }

    /// Remarks, once, on how a construct is read.
    pub(super) fn remark(&mut self, construct: &str) {
        if let Some(&(construct, text)) = REMARKS.iter().find(|(known, _)| *known == construct) {
            let remark = Remark { construct, text };
            if !self.remarks.contains(&remark) {
                self.remarks.push(remark);
            }
        }
    }

    /// An escape that ECMA-262 lacks, whose letter is read.
    pub(super) fn foreign_escape(
        &mut self,
        here: char,
        at: usize,
        in_class: bool,
    ) -> Result<Option<PatternEscape>, PatternError> {
        let (construct, escape) = match here {
            'A' if !in_class => ("\\A", PatternEscape::Start),
            'z' if !in_class => ("\\z", PatternEscape::End),
            'Z' if !in_class => ("\\Z", PatternEscape::End),
            'h' => ("\\h", class_escape(here, unicode::blanks())),
            'H' => ("\\H", class_escape(here, unicode::blanks())),
            'e' => ("\\e", PatternEscape::Character(0x1B)),
            'a' => ("\\a", PatternEscape::Character(7)),
            'x' => match self.braced_number() {
                Some(number) => ("\\x{..}", PatternEscape::Character(number)),
                None => return Ok(None),
            },
            'U' => match self.hexadecimal(8).filter(|&number| number <= unicode::LAST) {
                Some(number) => ("\\U", PatternEscape::Character(number)),
                None => return Ok(None),
            },
            'p' | 'P' if self.peek(0).is_some_and(|letter| "CLMNPSZ".contains(letter)) => {
                let name = self.peek(0).map(String::from).unwrap_or_default();
                self.at += 1;
                ("\\pL", class_escape(here, self.named_property(name, at)?))
            }
            'g' | 'k' if !in_class => return Err(self.backreference(at, in_class)),
            _ => return Ok(None),
        };
        self.remark(construct);
        Ok(Some(escape))
    }

    /// The refusal of a backslash before a letter or digit that would make it this character.
    pub(super) fn no_escape(&self, here: char, in_class: bool, at: usize) -> PatternError {
        let advice = advice_on_escape(here, in_class);
        PatternError::unsupported(&format!("`\\{here}`"), advice, at)
    }

    /// The text of a quotation, whose `\Q` comes next; reads the `\E` too.
    pub(super) fn quotation(&mut self) -> Option<std::ops::Range<usize>> {
        if !(self.reads_foreign() && self.peek(0) == Some('\\') && self.peek(1) == Some('Q')) {
            return None;
        }
        self.remark("\\Q..\\E");
        let start = self.at + 2;
        let length = self.text[start..].windows(2).position(|pair| pair == ['\\', 'E']);
        let end = length.map_or(self.text.len(), |length| start + length);
        self.at = self.text.len().min(end + 2);
        Some(start..end)
    }

    /// The last character of a quotation, which a quantifier behind it is for; those before it are
    /// added.
    pub(super) fn quoted(&mut self, text: std::ops::Range<usize>) -> (PatternNodeId, Quantifiers) {
        let Some((&last, others)) = self.text[text].split_last() else {
            return (self.tree.empty(), Quantifiers::Forbidden);
        };
        for &character in others {
            let node = self.character(character as u32);
            self.push(node);
        }
        (self.character(last as u32), Quantifiers::Allowed)
    }

    /// Skips comments, `(?#..)`, and under the flag `x` white space and comments behind `#`.
    pub(super) fn skip_blanks(&mut self) -> Result<(), PatternError> {
        loop {
            let at = self.at;
            if self.flags.is_extended {
                match self.reading {
                    PatternReading::Python => self.skip_white_space_of_python(),
                    _ => self.skip_white_space()?,
                }
            }
            let is_python = self.reading == PatternReading::Python;
            if (is_python || self.reads_foreign()) && self.takes("(?#") {
                if !is_python {
                    self.remark("(?#");
                }
                self.comment(at)?;
            }
            if self.at == at {
                return Ok(());
            }
        }
    }

    fn skip_white_space_of_python(&mut self) {
        while let Some(here) = self.peek(0) {
            match here {
                ' ' | '\t' | '\n' | '\r' | '\u{B}' | '\u{C}' => self.at += 1,
                '#' => {
                    let rest = &self.text[self.at..];
                    let end = rest.iter().position(|&here| here == '\n');
                    self.at += end.unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    fn skip_white_space(&mut self) -> Result<(), PatternError> {
        let differ = |at| {
            let message = "under the flag x the dialects differ about which white space ends a \
                           comment or is left out; write spaces and newlines";
            Err(PatternError::unsupported("the flag x", message, at))
        };
        while let Some(here) = self.peek(0) {
            match here {
                ' ' | '\t' | '\n' | '\r' | '\u{C}' => self.at += 1,
                '#' => {
                    while let Some(here) = self.peek(0).filter(|&here| here != '\n') {
                        let ends_elsewhere = matches!(here, '\u{85}' | '\u{2028}' | '\u{2029}')
                            || here == '\r' && self.peek(1) != Some('\n');
                        if ends_elsewhere {
                            return differ(self.at);
                        }
                        self.at += 1;
                    }
                }
                '\u{B}' | '\u{85}' | '\u{200E}' | '\u{200F}' | '\u{2028}' | '\u{2029}' => {
                    return differ(self.at);
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Refuses what stands next in a class where the dialects differ about it.
    pub(super) fn check_class(&mut self) -> Result<(), PatternError> {
        if !self.reads_foreign() {
            return Ok(());
        }
        let here = self.peek(0).unwrap_or_default();
        if self.flags.is_extended && (here.is_whitespace() || here == '#') {
            let message = "under the flag x the dialects differ about white space and `#` in a \
                           class; put a backslash before it";
            return Err(PatternError::unsupported("the flag x", message, self.at));
        }
        if here == '[' && self.peek(1) == Some(':') {
            let is_negated = self.peek(2) == Some('^');
            let start = self.at + 2 + usize::from(is_negated);
            let rest = &self.text[start..self.text.len().min(start + 8)];
            let name: String = rest.iter().take_while(|c| c.is_ascii_lowercase()).collect();
            let is_closed = rest[name.len()..].starts_with(&[':', ']']);
            let known = POSIX.iter().find(|(known, _)| is_closed && *known == name);
            if let Some((_, advice)) = known {
                let advice = match is_negated {
                    true => "write a class that begins with `^`".to_owned(),
                    false => format!("write in its place {advice}"),
                };
                let message = format!(
                    "ECMA-262 has no classes by name, and other dialects differ about what they \
                     hold; {advice}"
                );
                let construct: String = self.text[self.at..start].iter().collect();
                let construct = format!("`{construct}{name}:]`");
                return Err(PatternError::unsupported(&construct, message, self.at));
            }
        }
        let is_operator = match here {
            '&' => self.peek(1) == Some('&') && self.peek(2) == Some('['),
            '-' => {
                self.peek(1) == Some('[') || self.peek(1) == Some('-') && self.peek(2) == Some('[')
            }
            _ => false,
        };
        match self.doubt {
            None | Some(Doubt::Inner(_)) if is_operator => {
                self.doubt = Some(Doubt::Operation(self.at));
            }
            None if here == '[' => self.doubt = Some(Doubt::Inner(self.at)),
            _ => {}
        }
        Ok(())
    }

    /// Refuses `[\w--\d]` behind its second hyphen.
    pub(super) fn check_difference(&self) -> Result<(), PatternError> {
        let is_set =
            self.peek(0) == Some('\\') && self.peek(1).is_some_and(|c| "dDsSwWpP".contains(c));
        match is_set && self.doubts() {
            true => Err(no_sets_of_sets(self.at - 2)),
            false => Ok(()),
        }
    }

    /// Refuses a bracket that stands alone, where a class before it may be meant to reach up to it.
    pub(super) fn check_lone_bracket(&self, here: char, at: usize) -> Result<(), PatternError> {
        let is_python = self.reading == PatternReading::Python;
        if here == '{' && self.flags.is_extended && !is_python {
            let message = "under the flag x the dialects differ about a brace that stands alone; \
                           write `\\{`";
            return Err(PatternError::unsupported("the flag x", message, at));
        }
        let refuse = |construct, message: &str, at| {
            Err(PatternError::unsupported(construct, message.to_owned(), at))
        };
        match self.doubt {
            Some(Doubt::Empty(at)) if here == ']' && self.doubts() => refuse(
                "`[]`",
                "ECMA-262 closes the class at once, and other dialects take the bracket for a \
                 character of it; write `\\]` for each bracket that is a character",
                at,
            ),
            Some(Doubt::Operation(at)) if here == ']' && self.doubts() => Err(no_sets_of_sets(at)),
            Some(Doubt::Inner(inner)) if here == ']' && self.doubts() => {
                let before = |back| at.checked_sub(back).map(|place| self.text[place]);
                let is_behind_class = before(1) == Some(']') && before(2) != Some('\\');
                if is_behind_class { Err(no_sets_of_sets(inner)) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    /// Refuses braces that are a quantifier in some dialects and characters in others.
    pub(super) fn check_loose_braces(&self) -> Result<(), PatternError> {
        let is_python = self.reading == PatternReading::Python;
        if !(self.doubts() || self.flags.is_extended) || is_python {
            return Ok(());
        }
        let is_within = |c: &&char| c.is_ascii_digit() || matches!(c, ',' | ' ');
        let within: String = self.text[self.at + 1..].iter().take_while(is_within).collect();
        let commas = within.matches(',').count();
        let has_digit = within.contains(|c: char| c.is_ascii_digit());
        let is_closed = self.text.get(self.at + 1 + within.len()) == Some(&'}');
        if !is_closed || commas > 1 || !(has_digit || commas > 0) {
            return Ok(());
        }
        let plain = within.replace(' ', "");
        let plain = if plain.starts_with(',') { format!("0{plain}") } else { plain };
        let message = format!(
            "the dialects differ about whether it counts or is characters; write `{{{plain}}}`, or \
             `\\{{` for the brace"
        );
        Err(PatternError::unsupported("quantifier", message, self.at))
    }

    /// Opens a group that ECMA-262 lacks, from behind the `?`; false where there is no such.
    pub(super) fn foreign_group(&mut self, at: usize) -> Result<bool, PatternError> {
        let refuse = |construct, message: &str| {
            Err(PatternError::unsupported(construct, message.to_owned(), at))
        };
        let flags = self.flags;
        let next = self.peek(1);
        let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        match self.peek(0) {
            Some('P') if next == Some('<') => {
                self.at += 2;
                self.remark("(?P<");
                let name = self.name('>')?;
                self.add_name(name, at)?;
            }
            Some('\'') => {
                self.at += 1;
                self.remark("(?'");
                let name = self.name('\'')?;
                self.add_name(name, at)?;
            }
            Some('|') => {
                self.at += 1;
                self.remark("(?|");
            }
            Some('>') => {
                return refuse("atomic group", "an atomic group forgets matches; write `(?:`");
            }
            Some('(') => return refuse("conditional", "write the two cases as alternatives"),
            Some('P') if next == Some('=') => return Err(self.backreference(at, false)),
            Some('P') if next == Some('>') => return Err(recursion(at)),
            Some('R') if next == Some(')') => return Err(recursion(at)),
            Some('0'..='9' | '&') => return Err(recursion(at)),
            Some('+' | '-') if is_digit(next) => return Err(recursion(at)),
            Some('^') => {
                return refuse("flags", "flags behind `^` are not supported; write `(?-ims:..)`");
            }
            Some('{' | '?' | 'C') => {
                return refuse("code", "code within a pattern is not run; drop it");
            }
            _ => return Ok(false),
        }
        self.open_frame(Purpose::Group, at, flags);
        Ok(true)
    }

    /// Refuses a control verb, `(*`, whose parenthesis is read.
    pub(super) fn check_verb(&self, at: usize) -> Result<(), PatternError> {
        let is_verb = self.peek(0) == Some('*')
            && self.peek(1).is_some_and(|letter| letter.is_ascii_alphabetic());
        if self.reads_foreign() && is_verb {
            let message = "verbs of Perl and PCRE are not supported; drop it, or write `\\(\\*` for \
                           the characters";
            return Err(PatternError::unsupported("`(*`", message, at));
        }
        Ok(())
    }

    /// The refusal of a flag that ECMA-262 lacks.
    pub(super) fn foreign_flag(&self, flag: char, at: usize) -> PatternError {
        let message = match flag {
            'a' => "`\\d`, `\\w` and `\\b` are those of ASCII already; drop the flag a",
            'u' => {
                "the flag u changes classes or cases by dialect; drop it, and write `\\p{L}` or \
                 `\\p{Nd}` for letters or digits of all scripts"
            }
            'U' => "the flag U is for greed or for classes by dialect; drop it",
            'x' => "the flag xx is not supported; write one x",
            _ => {
                let message = format!("the flag {flag} is not supported; drop it");
                return PatternError::unsupported("flags", message, at);
            }
        };
        PatternError::unsupported("flags", message, at)
    }

    /// Flags without a colon hold up to the end of the group.
    pub(super) fn set_flags(&mut self, flags: super::flags::Flags, letters: &str, at: usize) {
        self.flags = flags;
        self.switch(at);
        for (letter, construct) in [('i', "(?i)"), ('m', "(?m)"), ('s', "(?s)")] {
            if letters.contains(letter) {
                self.remark(construct);
            }
        }
    }

    /// The refusal of a `|` behind flags that stand within an alternative.
    pub(super) fn late_flags(&self, at: usize) -> PatternError {
        let message = "the dialects differ about flags that stand within an alternative and the \
                       alternatives behind it; write the flags at the start of the group, or \
                       `(?i:..)` around what they are for";
        PatternError::unsupported("flags", message, at)
    }
}

fn recursion(at: usize) -> PatternError {
    let message = "no automaton can call a group within itself; repeat the pattern of the group";
    PatternError::unsupported("recursion", message, at)
}

/// The refusal of classes within classes.
fn no_sets_of_sets(at: usize) -> PatternError {
    let message = "ECMA-262 without the flag v has no classes within classes, which are unions, \
                   intersections and differences elsewhere; write the ranges that are left, or a \
                   lookahead, as in `(?![aeiou])[a-z]`, and `\\[` and `\\]` for brackets that are \
                   characters";
    PatternError::unsupported("class", message.to_owned(), at)
}
