//! `base64`, `byte` and `base64url` (RFC 4648, sections 4 and 5).

use super::abnf::{AbnfRule, alphanumeric, any_number, choice, exactly, one_of, sequence};

/// Groups of four digits, the last of which may be padded.
///
/// Narrowed: padding is written, its bits are zero (section 3.5 lets readers refuse others), and
/// lines are not broken.
fn digits(last: &str) -> AbnfRule {
    let digit = alphanumeric(last);
    let one_byte = sequence(&[&digit, &one_of("AQgw"), &"=="]);
    let two_bytes = sequence(&[&digit, &digit, &one_of("AEIMQUYcgkosw048"), &"="]);
    let end = choice(&[&"", &one_byte, &two_bytes]);
    sequence(&[&any_number(&exactly(4, &digit)), &end])
}

/// `base64`, and `byte` of OpenAPI.
pub(super) fn base64() -> AbnfRule {
    digits("+/")
}

/// `base64url`.
pub(super) fn base64url() -> AbnfRule {
    digits("-_")
}
