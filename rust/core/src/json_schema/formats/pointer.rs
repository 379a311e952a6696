//! `json-pointer` (RFC 6901) and `relative-json-pointer`.

use super::abnf::{AbnfRule, any_number, choice, class, digit, none_of, one_of, sequence};

/// `json-pointer`.
pub(super) fn json_pointer() -> AbnfRule {
    let unescaped = none_of("/~");
    let escaped = sequence(&[&"~", &one_of("01")]);
    let token = any_number(&choice(&[&unescaped, &escaped]));
    any_number(&sequence(&[&"/", &token]))
}

/// A number without zeros before it, then a JSON pointer or `#`.
///
/// Narrowed: no manipulation of an index (`+1`, `-1`), which only later drafts have.
pub(super) fn relative_json_pointer() -> AbnfRule {
    let digits = any_number(&digit());
    let positive = sequence(&[&class(&[('1', '9')], ""), &digits]);
    let number = choice(&[&"0", &positive]);
    sequence(&[&number, &choice(&[&"#", &json_pointer()])])
}
