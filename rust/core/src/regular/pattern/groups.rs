//! What stands behind `(`: groups, captures, names, lookaround, flags.

use super::error::PatternError;
use super::parser::{PatternParser, PatternReading, Purpose};
use super::unicode;

impl PatternParser<'_> {
    /// Opens the group whose parenthesis comes next, or sets flags, or skips a comment.
    pub(super) fn open(&mut self) -> Result<(), PatternError> {
        let at = self.at;
        self.at += 1;
        let flags = self.flags;
        if !self.takes("?") {
            self.check_verb(at)?;
            self.open_frame(Purpose::Group, at, flags);
            return Ok(());
        }
        let look = |is_ahead, is_negated| Purpose::Look { is_ahead, is_negated };
        let purpose = match () {
            () if self.takes(":") => Purpose::Group,
            () if self.takes("=") => look(true, false),
            () if self.takes("!") => look(true, true),
            () if self.takes("<=") => look(false, false),
            () if self.takes("<!") => look(false, true),
            () if self.reading == PatternReading::Python => return self.open_python(at),
            () if self.takes("<") => {
                let name = self.name('>')?;
                self.add_name(name, at)?;
                Purpose::Group
            }
            () if self.reads_foreign() && self.foreign_group(at)? => return Ok(()),
            () if self.takes("P<") => {
                let message = "a named group is written `(?<name>..)`; drop the `P`";
                return Err(PatternError::syntax("`(?P<`", message, at));
            }
            () => return self.open_with_flags(at),
        };
        self.open_frame(purpose, at, flags);
        Ok(())
    }

    /// `(?ims-ims:..)`, from the flags on, and what other dialects have of that kind.
    fn open_with_flags(&mut self, at: usize) -> Result<(), PatternError> {
        let mut flags = self.flags;
        let (mut seen, mut is_on) = (String::new(), true);
        loop {
            let Some(here) = self.peek(0) else { return Err(self.unknown_group(at)) };
            self.at += 1;
            match here {
                ':' if is_on || seen.len() > 1 => break,
                '-' if is_on => is_on = false,
                'i' | 'm' | 's' if !seen.contains(here) => {
                    flags.set(here, is_on);
                }
                'i' | 'm' | 's' => {
                    let message = format!("the flag {here} stands there twice; drop one");
                    return Err(PatternError::syntax("flags", message, self.at - 1));
                }
                'n' | 'x' if self.reads_foreign() && !seen.contains(here) => {
                    if here == 'x' {
                        flags.is_extended = is_on;
                    }
                    self.remark(if here == 'x' { "(?x)" } else { "(?n)" });
                }
                ')' if self.reads_foreign() && seen.contains(char::is_alphabetic) => {
                    self.set_flags(flags, &seen, at);
                    return Ok(());
                }
                ')' => {
                    let message = "flags hold in a group; write `(?i:..)` around what they are for";
                    return Err(PatternError::syntax("flags", message, at));
                }
                _ if self.reads_foreign() && here != 'P' && here.is_ascii_alphabetic() => {
                    return Err(self.foreign_flag(here, self.at - 1));
                }
                _ => return Err(self.unknown_group(at)),
            }
            seen.push(here);
        }
        self.open_frame(Purpose::Group, at, flags);
        Ok(())
    }

    fn unknown_group(&self, at: usize) -> PatternError {
        let named = match self.reading {
            PatternReading::Python => "(?P<name>",
            _ => "(?<name>",
        };
        let message = format!(
            "there is no such group; write `(?:`, `(?=`, `(?!`, `(?<=`, `(?<!`, `{named}` or `(?i:`, or `\\(` for a \
             parenthesis"
        );
        PatternError::syntax("`(?`", message, at)
    }

    /// A group's name and the `>` behind it, or what else ends it.
    pub(super) fn name(&mut self, end: char) -> Result<String, PatternError> {
        let start = self.at;
        let mut name = String::new();
        while let Some(mut here) = self.peek(0) {
            let at = self.at;
            self.at += 1;
            if here == end && !name.is_empty() {
                return Ok(name);
            }
            if here == '\\' && self.reading != PatternReading::Python {
                let escaped = self.takes("u").then(|| self.name_escape()).flatten();
                here = escaped.ok_or_else(|| bad_name(at))?;
            }
            let is_dollar = here == '$' && self.reading != PatternReading::Python;
            if !(is_dollar || unicode::may_stand_in_name(here, name.is_empty())) {
                return Err(bad_name(at));
            }
            name.push(here);
        }
        Err(bad_name(start))
    }

    /// Opens what only Python writes, from behind the `?`.
    fn open_python(&mut self, at: usize) -> Result<(), PatternError> {
        let refuse = |construct, message: &str| {
            Err(PatternError::unsupported(construct, message.to_owned(), at))
        };
        if self.takes("P<") {
            let name = self.name('>')?;
            self.add_name(name, at)?;
            let flags = self.flags;
            self.open_frame(Purpose::Group, at, flags);
            return Ok(());
        }
        match self.peek(0) {
            Some('#') => self.comment(at),
            Some('P') if self.peek(1) == Some('=') => refuse(
                "backreference",
                "no automaton can compare two parts of a text; repeat the pattern of the group in \
                 place of the reference",
            ),
            Some('>') => refuse("atomic group", "an atomic group forgets matches; write `(?:`"),
            Some('(') => refuse("conditional", "write the two cases as alternatives"),
            _ => self.python_flags(at),
        }
    }

    /// Skips a comment, `(?#..)`.
    pub(super) fn comment(&mut self, at: usize) -> Result<(), PatternError> {
        let end = self.text[self.at..].iter().position(|&here| here == ')');
        let Some(end) = end else {
            let message = "the comment is not closed; add `)`";
            return Err(PatternError::syntax("comment", message, at));
        };
        self.at += end + 1;
        Ok(())
    }

    /// `(?aimsux)` at the start, and `(?aimsux-imsx:..)`.
    fn python_flags(&mut self, at: usize) -> Result<(), PatternError> {
        let (mut flags, mut on, mut off) = (self.flags, String::new(), None);
        while let Some(here) = self.peek(0) {
            self.at += 1;
            let is_on = off.is_none();
            if matches!(here, ':' | ')')
                && let Some(message) = fault_of_flags(&on, off.as_deref())
            {
                return Err(PatternError::syntax("flags", message, at));
            }
            match here {
                'i' | 'm' | 's' => {
                    flags.set(here, is_on);
                }
                'a' | 'u' if is_on => flags.is_ascii = here == 'a',
                'x' => flags.is_extended = is_on,
                'L' => {
                    let message = "the flag L is not supported; drop it";
                    return Err(PatternError::unsupported("flags", message, at));
                }
                '-' if is_on => off = Some(String::new()),
                ':' => {
                    self.open_frame(Purpose::Group, at, flags);
                    return Ok(());
                }
                ')' if is_on && self.has_read_nothing() => {
                    self.flags = flags;
                    return Ok(());
                }
                ')' => {
                    let message = "flags for the whole pattern stand at its start";
                    return Err(PatternError::syntax("flags", message, at));
                }
                _ => break,
            }
            if here != '-' {
                off.as_mut().unwrap_or(&mut on).push(here);
            }
        }
        Err(self.unknown_group(at))
    }
}

/// What is wrong with the flags that Python reads before and behind a `-`.
fn fault_of_flags(on: &str, off: Option<&str>) -> Option<&'static str> {
    if off.unwrap_or(on).is_empty() {
        Some("a flag is missing; write `(?:` for a group without flags")
    } else if on.contains('a') && on.contains('u') {
        Some("the flags a and u exclude each other; drop one")
    } else if off.is_some_and(|off| off.contains(|flag| on.contains(flag))) {
        Some("a flag is both turned on and turned off; drop one")
    } else {
        None
    }
}

fn bad_name(at: usize) -> PatternError {
    let message = "a name is letters, digits and `_`, no digit first, and ends with `>`";
    PatternError::syntax("group name", message, at)
}
