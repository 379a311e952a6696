//! Lark text to tokens, on demand.
//!
//! The scanner decides what needs a look ahead, so that the parser never goes back: lines that begin
//! with `|` go on with the line before, `{` and `~` before a number begin a count. Every byte is read a
//! bounded number of times.

use crate::error::{Position, Result};

use super::messages::{shown, syntax};

/// What a token is. Its text says the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LarkTokenKind {
    /// Letters, digits, `_` and inner `-`.
    Name,
    /// `"..."`; the text is what stands between the quotes.
    Text,
    /// `"..."i`.
    TextOfAnyCase,
    /// `/.../flags`; the text has the slashes.
    Pattern,
    /// A number, signed or not.
    Number,
    /// `<...>`.
    Token,
    /// `@name`; the text is the name.
    Grammar,
    /// `%name`.
    Directive,
    /// `{` before a count.
    OpenCount,
    /// `~` before a number.
    TildeCount,
    /// `:`, `->`, `(` and so on.
    Sign(&'static str),
    /// The end of a line, with all blank lines and comments behind it.
    Newline,
    /// The end of the text.
    End,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct LarkToken<'t> {
    pub(super) kind: LarkTokenKind,
    pub(super) text: &'t str,
    pub(super) position: Position,
}

impl LarkToken<'_> {
    /// Whether it is this sign.
    pub(super) fn is(&self, sign: &str) -> bool {
        matches!(self.kind, LarkTokenKind::Sign(own) if own == sign)
    }

    /// What it is, for messages.
    pub(super) fn described(&self) -> String {
        match self.kind {
            LarkTokenKind::Newline => "the end of the line".into(),
            LarkTokenKind::End => "the end of the text".into(),
            LarkTokenKind::Text | LarkTokenKind::TextOfAnyCase => {
                format!("the literal \"{}\"", shown(self.text))
            }
            LarkTokenKind::Grammar => format!("`@{}`", shown(self.text)),
            _ => format!("`{}`", shown(self.text)),
        }
    }
}

/// The signs, longer ones first.
const SIGNS: [&str; 21] = [
    "::", "..", "->", ":", ".", ",", "=", "(", ")", "[", "]", "{", "}", "|", "&", "~", "?", "*",
    "+", "!", ";",
];

pub(super) struct LarkScanner<'t> {
    text: &'t str,
    at: usize,
    position: Position,
}

impl<'t> LarkScanner<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self { text, at: 0, position: Position { line: 1, column: 1 } }
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes past so many bytes and returns them.
    fn take(&mut self, bytes: usize) -> &'t str {
        let taken = &self.text[self.at..self.at + bytes];
        self.at += bytes;
        for c in taken.chars() {
            match c {
                '\n' => self.position = Position { line: self.position.line + 1, column: 1 },
                _ => self.position.column += 1,
            }
        }
        taken
    }

    fn take_while(&mut self, test: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        self.take(rest.find(|c| !test(c)).unwrap_or(rest.len()))
    }

    /// Goes past blanks and comments; says whether a line ended.
    fn blanks(&mut self) -> bool {
        let mut ended = false;
        loop {
            let blank = self.take_while(|c| matches!(c, ' ' | '\t' | '\x0c' | '\r' | '\n'));
            ended |= blank.contains(['\n', '\r']);
            match self.rest() {
                rest if rest.starts_with('#') || rest.starts_with("//") => {
                    self.take_while(|c| !matches!(c, '\n' | '\r'));
                }
                // A backslash at the end of a line: the next one goes on with it.
                rest if rest.starts_with('\\') => {
                    let behind = rest[1..].trim_start_matches([' ', '\t']);
                    let blanks = rest.len() - behind.len();
                    match ["\r\n", "\n"].into_iter().find(|end| behind.starts_with(end)) {
                        Some(end) => drop(self.take(blanks + end.len())),
                        None => return ended,
                    }
                }
                _ => return ended,
            }
        }
    }

    /// The next token.
    ///
    /// # Errors
    /// A literal or pattern without end, or a character that begins nothing.
    pub(super) fn next(&mut self) -> Result<LarkToken<'t>> {
        let before = self.position;
        let ended = self.blanks();
        let position = self.position;
        let Some(first) = self.peek() else {
            let kind = if ended { LarkTokenKind::Newline } else { LarkTokenKind::End };
            return Ok(LarkToken { kind, text: "", position: before });
        };
        if ended && first != '|' {
            return Ok(LarkToken { kind: LarkTokenKind::Newline, text: "", position: before });
        }
        let (kind, text) = match first {
            '"' => self.literal()?,
            '/' => (LarkTokenKind::Pattern, self.pattern()?),
            '<' => (LarkTokenKind::Token, self.token()?),
            '@' | '%' => {
                self.take(1);
                let text = self.name();
                if text.is_empty() {
                    let message = format!("a name must follow `{first}`");
                    return Err(syntax(position, message));
                }
                (if first == '@' { LarkTokenKind::Grammar } else { LarkTokenKind::Directive }, text)
            }
            '0'..='9' => (LarkTokenKind::Number, self.number()),
            '-' if self.rest()[1..].starts_with(|c: char| c.is_ascii_digit()) => {
                (LarkTokenKind::Number, self.number())
            }
            c if c.is_ascii_alphabetic() || c == '_' => (LarkTokenKind::Name, self.name()),
            _ => self.sign()?,
        };
        Ok(LarkToken { kind, text, position })
    }

    fn name(&mut self) -> &'t str {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut end = 0;
        loop {
            end += rest[end..].find(|c| !is_part(c)).unwrap_or(rest.len() - end);
            let goes_on = end > 0 && rest[end..].starts_with('-');
            if !goes_on || !rest[end + 1..].starts_with(is_part) {
                return self.take(end);
            }
            end += 1;
        }
    }

    fn number(&mut self) -> &'t str {
        let rest = self.rest();
        let digits = |from: usize| {
            from + rest[from..].find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len() - from)
        };
        let mut end = digits(usize::from(rest.starts_with('-')));
        if rest[end..].starts_with('.') && digits(end + 1) > end + 1 {
            end = digits(end + 1);
        }
        if rest[end..].starts_with(['e', 'E']) {
            let sign = usize::from(rest[end + 1..].starts_with(['+', '-']));
            if digits(end + 1 + sign) > end + 1 + sign {
                end = digits(end + 1 + sign);
            }
        }
        self.take(end)
    }

    fn sign(&mut self) -> Result<(LarkTokenKind, &'t str)> {
        let Some(sign) = SIGNS.into_iter().find(|sign| self.rest().starts_with(sign)) else {
            return Err(self.stray());
        };
        let text = self.take(sign.len());
        let next = self.rest().trim_start_matches([' ', '\t']).chars().next();
        let kind = match (sign, next) {
            ("{", Some(',' | '0'..='9')) => LarkTokenKind::OpenCount,
            ("~", Some('0'..='9')) => LarkTokenKind::TildeCount,
            _ => LarkTokenKind::Sign(sign),
        };
        Ok((kind, text))
    }

    fn stray(&self) -> crate::error::Error {
        let advice = match self.peek() {
            Some('\'') => "; literals stand in double quotes",
            Some('-') => "; a `-` stands inside names only, and `->` before an alias",
            _ => "",
        };
        let found = self.peek().map(|c| shown(c.encode_utf8(&mut [0; 4]))).unwrap_or_default();
        syntax(self.position, format!("`{found}` begins nothing here{advice}"))
    }

    fn literal(&mut self) -> Result<(LarkTokenKind, &'t str)> {
        let start = self.position;
        let Some(end) = unescaped(&self.rest()[1..], '"', true) else {
            return Err(syntax(start, "this literal does not end on its line; close it with `\"`"));
        };
        let text = &self.take(end + 2)[1..=end];
        // Letters behind the quote are flags, as far as they are no name of their own.
        let flags = self.rest().find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        match &self.rest()[..flags.unwrap_or(self.rest().len())] {
            "i" => {
                self.take(1);
                Ok((LarkTokenKind::TextOfAnyCase, text))
            }
            _ => Ok((LarkTokenKind::Text, text)),
        }
    }

    fn pattern(&mut self) -> Result<&'t str> {
        let start = self.position;
        let unclosed = || {
            let message = "this pattern does not end on its line; close it with `/`, write a `/` in \
                           it as `\\/`, and give the flag `x` if it is to hold line ends";
            syntax(start, message)
        };
        let end = unescaped(&self.rest()[1..], '/', false).ok_or_else(unclosed)? + 2;
        let rest = self.rest();
        let flags = rest[end..].find(|c: char| !c.is_ascii_alphabetic());
        let flags = &rest[end..end + flags.unwrap_or(rest.len() - end)];
        if rest[..end].contains(['\n', '\r']) && !flags.contains('x') {
            return Err(unclosed());
        }
        Ok(self.take(end + flags.len()))
    }

    fn token(&mut self) -> Result<&'t str> {
        let rest = self.rest();
        let stop = |c: char| c == '>' || c == '<' || c.is_whitespace();
        match rest[1..].find(stop) {
            Some(end) if end > 0 && rest[1 + end..].starts_with('>') => Ok(self.take(end + 2)),
            _ => {
                let message = "`<` begins a token, such as `<|end|>` or `<[1,5-7]>`: it ends with `>` \
                               and holds no blanks";
                Err(syntax(self.position, message))
            }
        }
    }

    /// The JSON value that stands next, by its brackets and quotes: whether it is one is for others to
    /// say.
    ///
    /// # Errors
    /// There is none, or its brackets do not close.
    pub(super) fn json(&mut self, directive: &str) -> Result<(&'t str, Position)> {
        self.take_while(|c| matches!(c, ' ' | '\t' | '\r' | '\n'));
        let (start, rest) = (self.position, self.rest());
        let (mut depth, mut at) = (0u64, 0);
        while let Some(c) = rest[at..].chars().next() {
            match c {
                '"' => match unescaped(&rest[at + 1..], '"', false) {
                    Some(end) => at += end + 2,
                    None => break,
                },
                '{' | '[' => (depth, at) = (depth + 1, at + 1),
                '}' | ']' if depth == 0 => break,
                '}' | ']' => (depth, at) = (depth - 1, at + 1),
                c if depth == 0 && !c.is_ascii_alphanumeric() && !matches!(c, '-' | '+' | '.') => {
                    break;
                }
                c => at += c.len_utf8(),
            }
            let goes_on = rest[at..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.');
            let is_word = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-');
            if depth == 0 && !(goes_on && is_word) {
                return Ok((self.take(at), start));
            }
        }
        let message = match depth {
            0 => format!("a JSON value must follow `%{directive}`"),
            _ => format!("the JSON value after `%{directive}` does not end: close its brackets"),
        };
        Err(syntax(start, message))
    }
}

/// Where a character first stands without a backslash before it; on the first line only, or anywhere.
fn unescaped(text: &str, wanted: char, on_line: bool) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\n' | '\r' if on_line => return None,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == wanted => return Some(at),
            _ => {}
        }
    }
    None
}
