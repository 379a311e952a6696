//! Text to tokens.
//!
//! The scanner never fails: what it cannot read becomes a token of a kind that only the parser's
//! error path takes, so that errors are reported in reading order. No token spans lines. Every
//! byte is looked at a bounded number of times.

use crate::error::Position;

/// What a token is. The text of a token says the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A run of letters, digits, `_`, `-` and `.`: a name, a number, `true`, the dot.
    Word,
    /// `"..."`, closed on its line.
    Literal,
    /// `[...]`, closed on its line.
    Class,
    /// `[...]` that directly follows a word and directly precedes `::=`.
    Options,
    /// `<...>`.
    TokenRef,
    /// `!<...>`.
    NotTokenRef,
    /// `::=`.
    Assign,
    /// `(`.
    Open,
    /// `(=`.
    OpenLookahead,
    /// `)`.
    Close,
    /// `{`.
    OpenBrace,
    /// `}`.
    CloseBrace,
    /// `|`.
    Pipe,
    /// `,`.
    Comma,
    /// `*`.
    Star,
    /// `+`.
    Plus,
    /// `?`.
    Question,
    /// `=`.
    Equal,
    /// `"...` without its end.
    UnclosedLiteral,
    /// `[...` without its end.
    UnclosedClass,
    /// `'...'`.
    SingleQuoted,
    /// Any other character; `<` and `!<` without a `>`, with the rest of the line.
    Stray,
    /// The end of the text.
    End,
}

/// A piece of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct GrammarToken {
    pub(super) kind: Kind,
    start: u32,
    end: u32,
    pub(super) position: Position,
}

impl GrammarToken {
    /// The bytes that the token covers.
    pub(super) fn range(&self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A place in the text from which the next token is read.
///
/// The text is shorter than 2^32 bytes (the parser checks).
#[derive(Clone, Debug)]
pub(super) struct Scanner<'t> {
    bytes: &'t [u8],
    at: usize,
    line: u32,
    column: u32,
    /// The previous token was a word and nothing stands between it and `at`.
    after_word: bool,
}

/// Bytes that are looked at together where a piece is long.
const CHUNK: usize = 64;

/// Whether a byte can stand in a name (a number, the dot).
pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn is_newline(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

impl<'t> Scanner<'t> {
    /// Stands at the start of a text; a byte order mark there is passed over.
    pub(super) fn new(text: &'t str) -> Self {
        let at = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { bytes: text.as_bytes(), at, line: 1, column: 1, after_word: false }
    }

    fn byte(&self, offset: usize) -> Option<u8> {
        self.bytes.get(self.at + offset).copied()
    }

    /// The next token; `End` for ever at the end.
    pub(super) fn next_token(&mut self) -> GrammarToken {
        let before = self.at;
        self.skip_space();
        let touches_word = self.after_word && self.at == before;
        let (kind, length) = self.classify(touches_word);
        self.after_word = kind == Kind::Word;
        let start = self.at;
        let position = Position { line: self.line, column: self.column };
        let covered = &self.bytes[start..start + length];
        let characters = covered.iter().filter(|&&b| b & 0xC0 != 0x80).count();
        self.at += length;
        self.column += characters as u32;
        GrammarToken { kind, start: start as u32, end: self.at as u32, position }
    }

    /// Passes over blanks, line ends and comments. A NUL ends even a comment: the parser refuses it.
    fn skip_space(&mut self) {
        let mut in_comment = false;
        let mut skipped = 0;
        loop {
            skipped += 1;
            // Megabytes of it take no longer than the interrupt may be unheard.
            if skipped > CHUNK {
                while self.skip_chunk(in_comment) {}
                // One byte less, as a chunk that ends within a line end is not taken.
                skipped = 1;
            }
            let Some(byte) = self.byte(0) else { return };
            match byte {
                b'\n' => self.newline(),
                b'\r' if self.byte(1) != Some(b'\n') => self.newline(),
                b'\r' => {}
                0 => return,
                b' ' | b'\t' => self.column += 1,
                b'#' => {
                    in_comment = true;
                    self.column += 1;
                }
                _ if in_comment => self.column += u32::from(byte & 0xC0 != 0x80),
                _ => return,
            }
            in_comment &= !is_newline(byte);
            self.at += 1;
        }
    }

    /// Passes over a chunk of nothing but space, or of one comment.
    fn skip_chunk(&mut self, in_comment: bool) -> bool {
        let Some(chunk) = self.bytes.get(self.at..self.at + CHUNK) else { return false };
        // Whole chunks: such loops are done for many bytes at once.
        let all = |is: fn(u8) -> bool| chunk.iter().fold(true, |all, &byte| all & is(byte));
        if in_comment {
            if !all(|byte| !is_newline(byte) && byte != 0) {
                return false;
            }
            self.column += chunk.iter().filter(|&&byte| byte & 0xC0 != 0x80).count() as u32;
        } else {
            // Line ends of two bytes are of one column, and one may stand on both sides of an end.
            let is_space = |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
            if !all(is_space) || chunk[CHUNK - 1] == b'\r' {
                return false;
            }
            let returns = chunk.windows(2).filter(|pair| pair[0] == b'\r' && pair[1] != b'\n');
            let feeds = chunk.iter().filter(|&&byte| byte == b'\n');
            self.line += (feeds.count() + returns.count()) as u32;
            match chunk.iter().rposition(|&byte| is_newline(byte)) {
                Some(last) => self.column = (CHUNK - last) as u32,
                None => self.column += CHUNK as u32,
            }
        }
        self.at += CHUNK;
        true
    }

    fn newline(&mut self) {
        self.line += 1;
        self.column = 1;
    }

    /// The kind and the length in bytes of the token that starts here.
    fn classify(&self, touches_word: bool) -> (Kind, usize) {
        let Some(first) = self.byte(0) else { return (Kind::End, 0) };
        match first {
            b'"' => self.quoted(),
            b'\'' => self.single_quoted(),
            b'[' => self.bracketed(touches_word),
            b'<' => self.token_ref(1, Kind::TokenRef),
            b'!' if self.byte(1) == Some(b'<') => self.token_ref(2, Kind::NotTokenRef),
            b':' if self.bytes[self.at..].starts_with(b"::=") => (Kind::Assign, 3),
            b'(' if self.byte(1) == Some(b'=') => (Kind::OpenLookahead, 2),
            b'(' => (Kind::Open, 1),
            b')' => (Kind::Close, 1),
            b'{' => (Kind::OpenBrace, 1),
            b'}' => (Kind::CloseBrace, 1),
            b'|' => (Kind::Pipe, 1),
            b',' => (Kind::Comma, 1),
            b'*' => (Kind::Star, 1),
            b'+' => (Kind::Plus, 1),
            b'?' => (Kind::Question, 1),
            b'=' => (Kind::Equal, 1),
            _ if is_word_byte(first) => {
                let rest = &self.bytes[self.at..];
                let length = rest.iter().position(|&b| !is_word_byte(b)).unwrap_or(rest.len());
                (Kind::Word, length)
            }
            _ => self.stray(),
        }
    }

    /// One character that begins no token.
    fn stray(&self) -> (Kind, usize) {
        let rest = &self.bytes[self.at + 1..];
        let tail = rest.iter().take_while(|&&b| b & 0xC0 == 0x80).count();
        (Kind::Stray, 1 + tail)
    }

    /// From here to an unescaped `end` on this line; `Err` with the length up to the line's end.
    fn escaped_until(&self, end: u8) -> Result<usize, usize> {
        let mut length = 1;
        loop {
            while length > CHUNK
                && let Some(chunk) = self.bytes.get(self.at + length..self.at + length + CHUNK)
                && chunk.iter().fold(true, |plain, &byte| {
                    plain & (byte != end) & (byte != b'\\') & !is_newline(byte)
                })
            {
                length += CHUNK;
            }
            let Some(byte) = self.byte(length) else { break };
            match byte {
                b if b == end => return Ok(length + 1),
                b if is_newline(b) => break,
                b'\\' if self.byte(length + 1).is_some_and(|b| !is_newline(b)) => length += 2,
                _ => length += 1,
            }
        }
        Err(length)
    }

    fn quoted(&self) -> (Kind, usize) {
        match self.escaped_until(b'"') {
            Ok(length) => (Kind::Literal, length),
            Err(length) => (Kind::UnclosedLiteral, length),
        }
    }

    fn bracketed(&self, touches_word: bool) -> (Kind, usize) {
        if touches_word && let Some(length) = self.options_length() {
            return (Kind::Options, length);
        }
        match self.escaped_until(b']') {
            Ok(length) => (Kind::Class, length),
            Err(length) => (Kind::UnclosedClass, length),
        }
    }

    /// The length of the bracket that starts here if `::=` follows it. A bracket inside double
    /// quotes does not end it. The scan stops at the bracket's end, so that all such scans
    /// together are linear: one that opens a quote only passes brackets that hold quotes in pairs,
    /// and those stop at once.
    fn options_length(&self) -> Option<usize> {
        let mut in_quotes = false;
        let mut length = 1;
        loop {
            match self.byte(length)? {
                b'"' => in_quotes = !in_quotes,
                b']' if !in_quotes => break,
                b if is_newline(b) => return None,
                _ => {}
            }
            length += 1;
        }
        let after = &self.bytes[self.at + length + 1..];
        let blanks = after.iter().take_while(|&&b| matches!(b, b' ' | b'\t')).count();
        after[blanks..].starts_with(b"::=").then_some(length + 1)
    }

    /// `'...'`, or a stray quote where there is no other on the line.
    fn single_quoted(&self) -> (Kind, usize) {
        let rest = &self.bytes[self.at + 1..];
        match rest.iter().position(|&b| b == b'\'' || is_newline(b)) {
            Some(length) if rest[length] == b'\'' => (Kind::SingleQuoted, length + 2),
            _ => self.stray(),
        }
    }

    /// `<...>` on one line. Without its end it takes the line, so that a line of `<` is not scanned
    /// once for each.
    fn token_ref(&self, skip: usize, kind: Kind) -> (Kind, usize) {
        let rest = &self.bytes[self.at + skip..];
        match rest.iter().position(|&b| b == b'>' || is_newline(b)) {
            Some(length) if rest[length] == b'>' => (kind, skip + length + 1),
            Some(length) => (Kind::Stray, skip + length),
            None => (Kind::Stray, skip + rest.len()),
        }
    }
}
