//! What XGrammar's printer writes ambiguously.
//!
//! It writes a code point below 256 as `\x` and two digits, but its reader takes every hexadecimal
//! digit that follows: it prints "éa" as `"\xe9a"`, which it reads as U+0E9A.

use std::borrow::Cow;

/// The text of `str(xgrammar.Grammar)` with each `\xHH` written as `\u00HH`, which reads as what
/// was meant. Not for text that a person wrote, who may mean one code point by `\x1F600`.
///
/// Two losses stay: a literal is printed only up to its first NUL, and a class whose first
/// character is `^` is printed as a negated one.
pub fn repair_printed(text: &str) -> Cow<'_, str> {
    if !text.contains("\\x") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let digits = escape.strip_prefix("\\x").and_then(|tail| tail.get(..2));
        match digits.filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit())) {
            Some(digits) => {
                out.push_str("\\u00");
                out.push_str(digits);
                rest = &escape[4..];
            }
            None => {
                let second = escape.chars().nth(1).map_or(0, char::len_utf8);
                let (whole, tail) = escape.split_at(1 + second);
                out.push_str(whole);
                rest = tail;
            }
        }
    }
    out.push_str(rest);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_digits_are_meant() {
        for (printed, meant) in [
            (r#""\xe9a" [\x01-\x1f]"#, r#""\u00e9a" [\u0001-\u001f]"#),
            (r#""\\xe9" "\n\\\xe9""#, r#""\\xe9" "\n\\\u00e9""#),
            (r#""\u00e9\U0001f600""#, r#""\u00e9\U0001f600""#),
            ("\\x", "\\x"),
            ("\\xé \\", "\\xé \\"),
        ] {
            assert_eq!(repair_printed(printed), meant);
        }
    }
}
