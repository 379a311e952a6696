//! A reader of JSON arrays of strings, numbers and literals, byte by byte: which values were read, and
//! what the one that is being read has in common with them.
//!
//! It reads nothing but arrays that a network reads as well, which is what refuses all other texts.

use super::numbers::{self, Begun, NUMBER};
use super::pieces::Piece;
use super::values::{Like, SeenId, Values};
use std::num::NonZeroU16;

/// What the key of a string begins with.
pub(super) const STRING: u8 = b'"';

/// Where an array is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    /// Behind its opening bracket.
    Open,
    /// Behind a comma.
    Comma,
    /// In a string.
    String(Escape),
    /// In a number.
    Number,
    /// In `null`, `true` or `false`, which its first letter tells.
    Literal,
    /// Behind an item.
    Behind,
    /// Wherever [`super::nested`] says, where items may be arrays and objects.
    Nested,
}

/// An escape sequence that has begun, and a high surrogate before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Escape {
    high: Option<NonZeroU16>,
    /// The hexadecimal digits that are still to come, and one more; for the letter behind the backslash 6.
    left: u8,
    code: u16,
}

impl Escape {
    /// One of which so many digits are still to come, and one more.
    pub(super) fn with(left: u8) -> Self {
        Self { left, ..Self::default() }
    }

    /// It as a number, for saved states.
    pub(super) fn number(self) -> [u32; 2] {
        let high = self.high.map_or(0, NonZeroU16::get);
        [u32::from(high), u32::from(self.left) << 16 | u32::from(self.code)]
    }

    /// The one with a number.
    pub(super) fn of([high, rest]: [u32; 2]) -> Option<Self> {
        let high = NonZeroU16::new(u16::try_from(high).ok()?);
        if high.is_some_and(|high| high.get() & 0xfc00 != 0xd800) {
            return None;
        }
        let left = u8::try_from(rest >> 16).ok().filter(|&left| left <= 6)?;
        Some(Self { high, left, code: rest as u16 })
    }
}

/// What a byte does.
#[derive(Debug)]
pub(super) struct ByteRead {
    /// The value that is complete with it, or was before it.
    pub(super) value: Option<Vec<u8>>,
    pub(super) end: End,
}

/// Whether an array goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It does.
    Within,
    /// This was its closing bracket.
    Closed,
    /// No array of strings, numbers and literals goes on so.
    Outside,
}

/// The text of an array, as far as it matters for what may follow.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    /// The values that were read.
    pub(super) seen: SeenId,
    pub(super) phase: Phase,
    /// A value that begins as the string does that is being read, and how many bytes of its key have been
    /// read; `None` where there is none.
    pub(super) like: Option<Like>,
    /// Where the beginning of the item stands, and what follows that: of a string what it says, of a
    /// number its text; with the first byte of the key.
    pub(super) before: Option<Piece>,
    pub(super) piece: Vec<u8>,
    /// What matters of a number that is being read.
    pub(super) begun: Begun,
}

impl Reader {
    /// Behind an opening bracket.
    pub(super) fn new() -> Self {
        let (seen, phase) = (SeenId::NONE, Phase::Open);
        let (piece, begun) = (Vec::new(), Begun::default());
        Self { seen, phase, like: None, before: None, piece, begun }
    }

    fn begin(&mut self, phase: Phase, tag: u8, values: &Values) {
        self.phase = phase;
        self.before = None;
        self.piece = vec![tag];
        self.begun = Begun::default();
        self.like = if tag == STRING { values.like(&[STRING]) } else { None };
    }

    /// The key of the item so far.
    pub(super) fn key(&self, values: &Values) -> Vec<u8> {
        match self.before {
            None => self.piece.clone(),
            Some(before) => [&*values.text(before), &self.piece].concat(),
        }
    }

    /// What the string is like if it ends here; `None` where it cannot.
    pub(super) fn like_at_end(&self, values: &Values) -> Option<Option<Like>> {
        let Phase::String(escape) = self.phase else { return None };
        if escape.left > 0 {
            return None;
        }
        let mut whole = Self { piece: Vec::new(), ..self.clone() };
        whole.flush(escape.high, values);
        Some(whole.like)
    }

    fn push(&mut self, bytes: &[u8], values: &Values) {
        for &byte in bytes {
            self.like = self.like.and_then(|like| values.longer(like, byte));
        }
        self.piece.extend_from_slice(bytes);
    }

    /// Reads a byte.
    pub(super) fn read(&mut self, byte: u8, values: &Values) -> ByteRead {
        let mut value = None;
        let end = match self.phase {
            Phase::Open | Phase::Comma => match byte {
                b' ' | b'\t' | b'\n' | b'\r' => End::Within,
                b'"' => {
                    self.begin(Phase::String(Escape::default()), STRING, values);
                    End::Within
                }
                b'-' | b'0'..=b'9' => {
                    self.begin(Phase::Number, NUMBER, values);
                    self.begun = self.begun.with(&[byte]);
                    self.piece.push(byte);
                    End::Within
                }
                b'n' | b't' | b'f' => {
                    self.phase = Phase::Literal;
                    value = Some(vec![byte]);
                    End::Within
                }
                b']' if self.phase == Phase::Open => End::Closed,
                _ => End::Outside,
            },
            Phase::String(escape) if byte == b'"' && escape.left == 0 => {
                self.flush(escape.high, values);
                value = Some(self.leave(values));
                End::Within
            }
            Phase::String(escape) => self.in_string(escape, byte, values),
            Phase::Number if matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E') => {
                self.begun = self.begun.with(&[byte]);
                self.piece.push(byte);
                End::Within
            }
            Phase::Literal if byte.is_ascii_lowercase() => End::Within,
            Phase::Number => {
                value = Some(numbers::key(&self.leave(values)[1..]));
                self.behind(byte)
            }
            Phase::Literal | Phase::Behind => self.behind(byte),
            Phase::Nested => End::Outside, // that is for another reader
        };
        ByteRead { value, end }
    }

    /// The key of the item, which is complete.
    fn leave(&mut self, values: &Values) -> Vec<u8> {
        let key = self.key(values);
        self.phase = Phase::Behind;
        self.like = None;
        self.before = None;
        self.piece = Vec::new();
        key
    }

    fn behind(&mut self, byte: u8) -> End {
        self.phase = Phase::Behind;
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => End::Within,
            b',' => {
                self.phase = Phase::Comma;
                End::Within
            }
            b']' => End::Closed,
            _ => End::Outside,
        }
    }

    /// A high surrogate without a low one stands for itself.
    fn flush(&mut self, high: Option<NonZeroU16>, values: &Values) {
        if let Some(high) = high {
            self.push(&encoded(u32::from(high.get())).1[..3], values);
        }
    }

    fn in_string(&mut self, escape: Escape, byte: u8, values: &Values) -> End {
        let mut next = Escape { high: escape.high, ..Escape::default() };
        match (escape.left, byte) {
            (0, b'\\') => next.left = 6,
            (0, _) => {
                self.flush(next.high.take(), values);
                self.push(&[byte], values);
            }
            (6, b'u') => next.left = 5,
            (6, _) => {
                self.flush(next.high.take(), values);
                let said = match byte {
                    b'b' => 8,
                    b'f' => 12,
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    byte => byte,
                };
                self.push(&[said], values);
            }
            (left, _) => {
                let Some(digit) = char::from(byte).to_digit(16) else { return End::Outside };
                let code = escape.code << 4 | digit as u16;
                match left {
                    2 => self.unit(next.high.take(), code, &mut next, values),
                    _ => (next.left, next.code) = (left - 1, code),
                }
            }
        }
        self.phase = Phase::String(next);
        End::Within
    }

    /// A code unit of UTF-16, behind a high surrogate perhaps.
    fn unit(&mut self, high: Option<NonZeroU16>, code: u16, next: &mut Escape, values: &Values) {
        let character = match (high, code) {
            (Some(high), 0xdc00..=0xdfff) => {
                0x1_0000 + (u32::from(high.get() & 0x3ff) << 10 | u32::from(code & 0x3ff))
            }
            (high, _) => {
                self.flush(high, values);
                if code & 0xfc00 == 0xd800 {
                    next.high = NonZeroU16::new(code);
                    return;
                }
                u32::from(code)
            }
        };
        let (length, bytes) = encoded(character);
        self.push(&bytes[..length], values);
    }
}

/// A code point in UTF-8, surrogates as if they were characters.
fn encoded(code: u32) -> (usize, [u8; 4]) {
    let tail = |shift: u32| 0x80 | (code >> shift & 0x3f) as u8;
    match code {
        0..=0x7f => (1, [code as u8, 0, 0, 0]),
        0x80..=0x7ff => (2, [0xc0 | (code >> 6) as u8, tail(0), 0, 0]),
        0x800..=0xffff => (3, [0xe0 | (code >> 12) as u8, tail(6), tail(0), 0]),
        _ => (4, [0xf0 | (code >> 18) as u8, tail(12), tail(6), tail(0)]),
    }
}
