//! The words of errors: what was found, what was expected, what to do.

use crate::error::{Error, Position};

use super::scanner::{GrammarToken, Kind};

/// A syntax error.
pub(super) fn syntax(position: Position, message: impl Into<String>) -> Error {
    Error::Syntax { message: message.into(), position }
}

/// A piece of the text for a message: cut to 40 characters, control characters escaped.
pub(super) fn shown(text: &str) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == 40 {
            out.push_str("...");
            break;
        }
        match character {
            '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' | '\u{feff}' | '\u{200b}'..='\u{200f}' => {
                out.push_str(&format!("U+{:04X}", character as u32));
            }
            _ => out.push(character),
        }
    }
    out
}

/// A token for a message.
pub(super) fn described(token: &GrammarToken, text: &str) -> String {
    match token.kind {
        Kind::End => "the end of the text".into(),
        Kind::Word if !text.starts_with(|c: char| c.is_ascii_digit() || c == '-') => {
            format!("the name `{}`", shown(text))
        }
        _ => format!("`{}`", shown(text)),
    }
}

/// A token that no valid grammar has, or `None` for the others.
pub(super) fn misread(token: &GrammarToken, text: &str) -> Option<Error> {
    let message = match token.kind {
        Kind::UnclosedLiteral => {
            "this `\"` is not closed on its line; add the closing `\"`, and write a line end in a \
             literal as `\\n`"
                .into()
        }
        Kind::UnclosedClass => {
            "this `[` is not closed on its line; add the closing `]`, and write a line end in a \
             class as `\\n`"
                .into()
        }
        Kind::SingleQuoted => {
            format!("literals have double quotes, found {}; write \"...\"", shown(text))
        }
        Kind::Stray => stray(text),
        _ => return None,
    };
    Some(syntax(token.position, message))
}

fn stray(text: &str) -> String {
    let text = text.chars().next().map_or("", |first| &text[..first.len_utf8()]);
    let advice = match text {
        "\0" => return "a NUL byte cannot stand in grammar text; write `\\0` in a literal".into(),
        ":" => "; a rule is written `name ::= ...`",
        "'" => "; literals have double quotes",
        "/" | ";" => "; comments begin with `#`, and rules have no end mark",
        "\\" => "; escapes stand in literals and classes only",
        "]" => "; write `\"]\"` for the character itself",
        "<" | ">" => "; a token is written `Token(id)` or `<[id]>`",
        "!" => "; a token that may not come is written `!<[id]>`",
        "~" => "; repeat with `{m,n}`",
        _ if !text.is_ascii() => "; write it in a literal, and use plain spaces between words",
        _ => "; write it in a literal: \"...\"",
    };
    format!("found `{}`, which begins nothing here{advice}", shown(text))
}
