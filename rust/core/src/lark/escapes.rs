//! The inside of literals.
//!
//! The escapes are those of JSON, as XGrammar and llguidance read them, and Lark's `\xHH` and
//! `\UHHHHHHHH`. Lark reads some others in its own way (`\d` as two characters): they are refused.

use crate::error::{Position, Result};

use super::messages::{shown, syntax};

/// The text that the inside of a literal says; its opening quote stands at `position`.
///
/// # Errors
/// An escape that there is not, or one that names no character.
pub(super) fn literal(inside: &str, position: Position) -> Result<String> {
    let mut out = String::with_capacity(inside.len());
    let (mut at, mut column) = (0, position.column + 1);
    while let Some(c) = inside[at..].chars().next() {
        if c != '\\' {
            out.push(c);
            (at, column) = (at + c.len_utf8(), column + 1);
            continue;
        }
        let (c, length) = escape(&inside[at + 1..], Position { column, ..position })?;
        out.push(c);
        // An escape is ASCII: its bytes are its characters.
        (at, column) = (at + 1 + length, column + 1 + length as u32);
    }
    Ok(out)
}

/// The character that stands behind a backslash at `position`, and how many bytes say it.
fn escape(text: &str, position: Position) -> Result<(char, usize)> {
    let simple = |c| Ok((c, 1));
    match text.chars().next() {
        Some(c @ ('"' | '\\' | '/')) => simple(c),
        Some('b') => simple('\u{8}'),
        Some('f') => simple('\u{c}'),
        Some('n') => simple('\n'),
        Some('r') => simple('\r'),
        Some('t') => simple('\t'),
        Some('x') => numbered(text, 2, position),
        Some('U') => numbered(text, 8, position),
        Some('u') => match hexadecimal(&text[1..], 4) {
            Some(high @ 0xD800..=0xDBFF) => {
                let low = text[5..].strip_prefix("\\u").and_then(|low| hexadecimal(low, 4));
                match low {
                    Some(low @ 0xDC00..=0xDFFF) => {
                        let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                        char::from_u32(code)
                            .map(|c| (c, 11))
                            .ok_or_else(|| no_character(text, 4, position))
                    }
                    _ => Err(no_character(text, 4, position)),
                }
            }
            _ => numbered(text, 4, position),
        },
        other => {
            let found: String = other.into_iter().collect();
            let message = format!(
                "a literal has no escape `\\{}`; write `\\\\` for a backslash (the escapes are \\\" \
                 \\\\ \\/ \\b \\f \\n \\r \\t \\xHH \\uHHHH \\UHHHHHHHH)",
                shown(&found)
            );
            Err(syntax(position, message))
        }
    }
}

fn numbered(text: &str, digits: usize, position: Position) -> Result<(char, usize)> {
    match hexadecimal(&text[1..], digits) {
        Some(code) => match char::from_u32(code) {
            Some(c) => Ok((c, 1 + digits)),
            None => Err(no_character(text, digits, position)),
        },
        None => {
            let message = format!("{digits} hexadecimal digits must follow `\\{}`", &text[..1]);
            Err(syntax(position, message))
        }
    }
}

fn no_character(text: &str, digits: usize, position: Position) -> crate::error::Error {
    let escape = &text[..1 + digits];
    let message = match hexadecimal(&text[1..], digits) {
        Some(0xD800..=0xDFFF) => format!(
            "`\\{escape}` is half of a surrogate pair, and no character; write both halves, as in \
             `\\ud83d\\ude00`, or the character by its code point, as in `\\U0001F600`"
        ),
        _ => format!("`\\{escape}` names no character: U+10FFFF is the last"),
    };
    syntax(position, message)
}

fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let digits = text.get(..digits).filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u32::from_str_radix(digits, 16).ok()
}
