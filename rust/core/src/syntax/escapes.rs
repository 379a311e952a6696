//! The inside of literals and character classes.
//!
//! A literal is a sequence of characters in UTF-8. A class has code points (0 to 0x10FFFF, surrogates
//! included), each encoded the way UTF-8 encodes it. Two escapes `\u` that are a surrogate pair are one
//! character; half of one is none, and ends a range at most.
//! Escapes are XGrammar's: `\n \r \t \a \b \f \v \e \0 \\ \" \' \? \/`,
//! `\x` with one or two hexadecimal digits, `\u` with four, `\U` with eight; in classes
//! also `\^ \$ \. \* \+ \( \) \[ \] \{ \} \| \-`. GBNF adds `\[ \] \-` in literals.
//! Behind `\x` XGrammar reads every digit that follows, and llama.cpp two: where these differ, neither is meant.

use crate::error::{Error, Position, Result};
use crate::grammar::CharSet;

use super::messages::{shown, syntax};

const LAST: u32 = 0x10_FFFF;

/// A walk over the characters of one line.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'t> {
    rest: &'t str,
    /// Where the next character stands.
    pub(super) position: Position,
}

impl<'t> Cursor<'t> {
    pub(super) fn new(text: &'t str, position: Position) -> Self {
        Self { rest: text, position }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let found = chars.next()?;
        self.rest = chars.as_str();
        self.position.column += 1;
        Some(found)
    }

    /// Passes over a character if it stands here.
    pub(super) fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.next();
        }
        found
    }
}

/// Where an escape stands decides which there are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EscapeContext {
    Literal,
    Class,
}

/// The bytes of a literal; `text` has its quotes.
pub(super) fn literal(text: &str, position: Position) -> Result<Box<[u8]>> {
    let inside = &text[1..text.len() - 1];
    if !inside.bytes().any(|b| matches!(b, b'\\' | 0)) {
        return Ok(inside.as_bytes().into());
    }
    let start = Position { column: position.column + 1, ..position };
    let mut cursor = Cursor::new(inside, start);
    let mut bytes = Vec::with_capacity(inside.len());
    while cursor.peek().is_some() {
        push_utf8(&mut bytes, code_point(&mut cursor, EscapeContext::Literal)?);
    }
    Ok(bytes.into())
}

/// The set of a class; `text` has its brackets.
pub(super) fn class(text: &str, position: Position) -> Result<CharSet> {
    let start = Position { column: position.column + 1, ..position };
    let mut cursor = Cursor::new(&text[1..text.len() - 1], start);
    let negated = cursor.take('^');
    let mut ranges = Vec::new();
    while cursor.peek().is_some() {
        let here = cursor.position;
        let whole = cursor.rest();
        let low = code_point(&mut cursor, EscapeContext::Class)?;
        let is_range = cursor.rest().starts_with('-') && cursor.rest().len() > 1;
        let mut high = low;
        if is_range {
            cursor.next();
            high = code_point(&mut cursor, EscapeContext::Class)?;
        }
        if low > high {
            let range = &whole[..whole.len() - cursor.rest().len()];
            return Err(reversed_range(range, low, high, here));
        }
        ranges.push((low, high));
    }
    let set = CharSet::new(ranges);
    Ok(if negated { set.complement() } else { set })
}

fn reversed_range(range: &str, low: u32, high: u32, position: Position) -> Error {
    let message = format!(
        "the range `{}` is reversed (U+{low:04X} is greater than U+{high:04X}); write the smaller \
         end first, or `\\-` for a dash",
        shown(range)
    );
    syntax(position, message)
}

/// Reads one code point, escaped or not. The cursor is not at its end.
fn code_point(cursor: &mut Cursor<'_>, place: EscapeContext) -> Result<u32> {
    let here = cursor.position;
    match cursor.next() {
        Some('\\') => escape(cursor, place, here),
        Some('\0') => Err(syntax(here, "a NUL byte cannot stand in grammar text; write `\\0`")),
        Some(other) => Ok(other as u32),
        None => Err(syntax(here, "the text ends where a character was expected")),
    }
}

/// Reads what follows a backslash that stood at `here`.
fn escape(cursor: &mut Cursor<'_>, place: EscapeContext, here: Position) -> Result<u32> {
    let Some(letter) = cursor.next() else {
        return Err(syntax(here, "found `\\` with nothing after it; write `\\\\` for a backslash"));
    };
    if let Some(code) = simple(letter, place) {
        return Ok(code);
    }
    let code = match letter {
        'x' => hexadecimal(cursor, here, 'x', None)?,
        'u' => match hexadecimal(cursor, here, 'u', Some(4))? {
            high @ 0xD800..=0xDBFF => paired(cursor, high),
            code => code,
        },
        'U' => hexadecimal(cursor, here, 'U', Some(8))?,
        _ => return Err(syntax(here, unknown(letter, place))),
    };
    match code {
        0xD800..=0xDFFF if place == EscapeContext::Literal => Err(syntax(
            here,
            format!(
                "U+{code:04X} is half of a surrogate pair, and no character; write both halves, as in \
                 `\\ud83d\\ude00`, or the character by its code point, as in `\\U0001F600`"
            ),
        )),
        _ => Ok(code),
    }
}

/// The character of a surrogate pair, if the other half stands here; else the half that it is.
fn paired(cursor: &mut Cursor<'_>, high: u32) -> u32 {
    const LENGTH: usize = "\\uDC00".len();
    let low = cursor.rest().get(..LENGTH).and_then(|text| text.strip_prefix("\\u"));
    let low = low.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
    match low.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        Some(low @ 0xDC00..=0xDFFF) => {
            for _ in 0..LENGTH {
                cursor.next();
            }
            0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)
        }
        _ => high,
    }
}

/// Escapes of one character.
fn simple(letter: char, place: EscapeContext) -> Option<u32> {
    let code = match letter {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'v' => '\u{b}',
        'e' => '\u{1b}',
        '0' => '\0',
        '\\' | '"' | '\'' | '?' | '/' | '[' | ']' | '-' => letter,
        '^' | '$' | '.' | '*' | '+' | '(' | ')' | '{' | '}' | '|'
            if place == EscapeContext::Class =>
        {
            letter
        }
        _ => return None,
    };
    Some(code as u32)
}

fn unknown(letter: char, place: EscapeContext) -> String {
    let found = shown(letter.encode_utf8(&mut [0; 4]));
    let set = match letter {
        'd' => Some("[0-9]"),
        'D' => Some("[^0-9]"),
        's' => Some("[ \\t\\n\\r\\f\\v]"),
        'S' => Some("[^ \\t\\n\\r\\f\\v]"),
        'w' => Some("[a-zA-Z0-9_]"),
        'W' => Some("[^a-zA-Z0-9_]"),
        _ => None,
    };
    match set {
        Some(set) => format!("`\\{found}` is not an escape of this language; write `{set}`"),
        None if place == EscapeContext::Literal && "^$.*+(){}|".contains(letter) => {
            format!("`\\{found}` is not an escape in a literal; write `{found}` as it is")
        }
        None => format!(
            "`\\{found}` is not an escape; write `\\\\` for a backslash, or one of \\n \\r \\t \
             \\0 \\\" \\' \\xHH \\uHHHH \\UHHHHHHHH"
        ),
    }
}

/// Reads hexadecimal digits: so many, or all that follow.
fn hexadecimal(
    cursor: &mut Cursor<'_>,
    here: Position,
    letter: char,
    wanted: Option<usize>,
) -> Result<u32> {
    let from = cursor.rest();
    let mut code: u32 = 0;
    let mut digits = 0;
    while wanted != Some(digits) {
        let Some(digit) = cursor.peek().and_then(|c| c.to_digit(16)) else { break };
        cursor.next();
        code = code.saturating_mul(16).saturating_add(digit);
        digits += 1;
    }
    if digits == 0 || wanted.is_some_and(|w| w != digits) {
        let wanted = wanted.map_or("1 or 2".into(), |count| count.to_string());
        let message = format!("`\\{letter}` needs {wanted} hexadecimal digits, found {digits}");
        return Err(syntax(here, message));
    }
    if letter == 'x' && digits > 2 {
        let text = &from[..digits];
        let (first, rest) = text.split_at(2);
        let whole = match code {
            0..=0xFFFF => format!("U+{code:04X}, which is `\\u{code:04x}`"),
            0x1_0000..=LAST => format!("U+{code:04X}, which is `\\U{code:08x}`"),
            _ => "no code point".into(),
        };
        let message = format!(
            "`\\x{text}` has more than two digits: XGrammar reads all of them, {whole}, and llama.cpp two; for \
             these write `\\u00{first}` before `{rest}`"
        );
        return Err(syntax(here, message));
    }
    if code > LAST {
        let message = format!("`\\{letter}` names a code point past U+10FFFF, the last one");
        return Err(syntax(here, message));
    }
    Ok(code)
}

/// Adds a code point, surrogates too, the way UTF-8 encodes it.
pub(super) fn push_utf8(bytes: &mut Vec<u8>, code: u32) {
    let low = |shift: u32| 0x80 | (code >> shift & 0x3F) as u8;
    match code {
        0..=0x7F => bytes.push(code as u8),
        0x80..=0x7FF => bytes.extend([0xC0 | (code >> 6) as u8, low(0)]),
        0x800..=0xFFFF => bytes.extend([0xE0 | (code >> 12) as u8, low(6), low(0)]),
        _ => bytes.extend([0xF0 | (code >> 18) as u8, low(12), low(6), low(0)]),
    }
}

/// The first code point of bytes and its length, or the bare byte where there is none. The inverse
/// of [`push_utf8`].
pub(super) fn first_code_point(bytes: &[u8]) -> Option<(u32, usize)> {
    let first = u32::from(*bytes.first()?);
    let (length, head) = match first {
        0xC2..=0xDF => (2, first & 0x1F),
        0xE0..=0xEF => (3, first & 0x0F),
        0xF0..=0xF4 => (4, first & 0x07),
        _ => return Some((first, 1)),
    };
    let tail = bytes.get(1..length).filter(|t| t.iter().all(|b| b & 0xC0 == 0x80));
    let code = tail.map(|t| t.iter().fold(head, |code, b| code << 6 | u32::from(b & 0x3F)));
    match code {
        Some(code)
            if code <= LAST && (length < 3 || code > 0x7FF) && (length < 4 || code > 0xFFFF) =>
        {
            Some((code, length))
        }
        _ => Some((first, 1)),
    }
}
