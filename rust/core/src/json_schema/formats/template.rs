//! `uri-template` (RFC 6570, section 2).

use super::abnf::{
    AbnfRule, alphanumeric, any_number, choice, class, digit, one_of, optional, percent_encoded,
    repeated, sequence,
};
use super::reference::beyond_ascii;

/// `URI-Template`. An apostrophe is a literal, as erratum 6937 corrects.
///
/// Narrowed: no operator that is reserved for extensions (`op-reserve`), and no mark that turns the
/// direction of writing.
pub(super) fn uri_template() -> AbnfRule {
    let mut literals = beyond_ascii();
    // All of ASCII but controls, space, and " % < > \ ^ ` { | }.
    literals.extend([('&', ';'), ('?', '['), ('a', 'z'), ('#', '$')]);
    let literal = class(&literals, "!=]_~");
    let percent = percent_encoded();
    let literal = choice(&[&literal, &percent]);
    let varchar = alphanumeric("_");
    let varchar = choice(&[&varchar, &percent]);
    let word = repeated(&varchar, 1, None);
    let varname = sequence(&[&word, &any_number(&sequence(&[&".", &word]))]);
    let digits = repeated(&digit(), 0, Some(3));
    let prefix = sequence(&[&":", &class(&[('1', '9')], ""), &digits]);
    let modifier = optional(&choice(&[&prefix, &"*"]));
    let varspec = sequence(&[&varname, &modifier]);
    let more = any_number(&sequence(&[&",", &varspec]));
    let operator = optional(&one_of("+#./;?&"));
    let expression = sequence(&[&"{", &operator, &varspec, &more, &"}"]);
    any_number(&choice(&[&literal, &expression]))
}
