//! `uri`, `uri-reference` (RFC 3986, appendix A) and `iri`, `iri-reference` (RFC 3987, section 2.2).

use super::abnf::{
    AbnfRule, alphanumeric, any_number, choice, class, digit, hex_digit, one_of, optional,
    percent_encoded, repeated, sequence,
};
use super::address;

/// The characters of `ucschar`.
///
/// Left out are the marks that turn the direction of writing, LRM, RLM, LRE, RLE, PDF, LRO and RLO:
/// section 4.1 forbids them in an IRI.
const UCSCHAR: [(char, char); 19] = [
    ('\u{A0}', '\u{200D}'),
    ('\u{2010}', '\u{2029}'),
    ('\u{202F}', '\u{D7FF}'),
    ('\u{F900}', '\u{FDCF}'),
    ('\u{FDF0}', '\u{FFEF}'),
    ('\u{1_0000}', '\u{1_FFFD}'),
    ('\u{2_0000}', '\u{2_FFFD}'),
    ('\u{3_0000}', '\u{3_FFFD}'),
    ('\u{4_0000}', '\u{4_FFFD}'),
    ('\u{5_0000}', '\u{5_FFFD}'),
    ('\u{6_0000}', '\u{6_FFFD}'),
    ('\u{7_0000}', '\u{7_FFFD}'),
    ('\u{8_0000}', '\u{8_FFFD}'),
    ('\u{9_0000}', '\u{9_FFFD}'),
    ('\u{A_0000}', '\u{A_FFFD}'),
    ('\u{B_0000}', '\u{B_FFFD}'),
    ('\u{C_0000}', '\u{C_FFFD}'),
    ('\u{D_0000}', '\u{D_FFFD}'),
    ('\u{E_1000}', '\u{E_FFFD}'),
];

/// The characters of `iprivate`.
const IPRIVATE: [(char, char); 3] =
    [('\u{E000}', '\u{F8FF}'), ('\u{F_0000}', '\u{F_FFFD}'), ('\u{10_0000}', '\u{10_FFFD}')];

/// The characters of `ucschar` and of `iprivate`, for literals of templates.
pub(super) fn beyond_ascii() -> Vec<(char, char)> {
    UCSCHAR.iter().chain(&IPRIVATE).copied().collect()
}

/// `URI`.
pub(super) fn uri() -> AbnfRule {
    UriRules::new(&[], &[]).absolute()
}

/// `URI-reference`.
pub(super) fn uri_reference() -> AbnfRule {
    UriRules::new(&[], &[]).reference()
}

/// `IRI`.
pub(super) fn iri() -> AbnfRule {
    UriRules::new(&UCSCHAR, &IPRIVATE).absolute()
}

/// `IRI-reference`.
pub(super) fn iri_reference() -> AbnfRule {
    UriRules::new(&UCSCHAR, &IPRIVATE).reference()
}

/// The rules that the four share.
struct UriRules {
    /// `segment`, of any length.
    segment: AbnfRule,
    /// `segment-nz`.
    segment_nz: AbnfRule,
    /// `segment-nz-nc`.
    segment_nz_nc: AbnfRule,
    /// `"//" authority path-abempty`, `path-absolute`: what `hier-part` and `relative-part` share.
    rooted: AbnfRule,
    /// `[ "?" query ] [ "#" fragment ]`.
    tail: AbnfRule,
}

impl UriRules {
    /// The rules where `beyond` are unreserved, and `private` may stand in a query.
    fn new(beyond: &[(char, char)], private: &[(char, char)]) -> Self {
        let percent = percent_encoded();
        // `unreserved / sub-delims`, and some more.
        let plain = |more: &str, private: &[(char, char)]| -> AbnfRule {
            let mut ranges = vec![('A', 'Z'), ('a', 'z'), ('0', '9')];
            ranges.extend_from_slice(beyond);
            ranges.extend_from_slice(private);
            let class = class(&ranges, &format!("-._~!$&'()*+,;={more}"));
            choice(&[&class, &percent])
        };
        let pchar = plain(":@", &[]);
        let segment = any_number(&pchar);
        let segment_nz = repeated(&pchar, 1, None);
        let segment_nz_nc = repeated(&plain("@", &[]), 1, None);
        let userinfo = any_number(&plain(":", &[]));
        // Each `IPv4address` is a `reg-name`.
        let host = choice(&[&ip_literal(), &any_number(&plain("", &[]))]);
        let authority = sequence(&[
            &optional(&sequence(&[&userinfo, &"@"])),
            &host,
            &optional(&sequence(&[&":", &any_number(&digit())])),
        ]);
        let more = any_number(&sequence(&[&"/", &segment]));
        let absolute = optional(&sequence(&[&segment_nz, &more]));
        let rooted =
            choice(&[&sequence(&[&"//", &authority, &more]), &sequence(&[&"/", &absolute])]);
        let query = any_number(&plain(":@/?", private));
        let fragment = any_number(&plain(":@/?", &[]));
        let tail = sequence(&[
            &optional(&sequence(&[&"?", &query])),
            &optional(&sequence(&[&"#", &fragment])),
        ]);
        Self { segment, segment_nz, segment_nz_nc, rooted, tail }
    }

    /// What begins with a scheme.
    fn absolute(&self) -> AbnfRule {
        let letter = class(&[('A', 'Z'), ('a', 'z')], "");
        let more = alphanumeric("+-.");
        let scheme = sequence(&[&letter, &any_number(&more)]);
        let rest = self.with_first(&self.segment_nz);
        sequence(&[&scheme, &":", &rest])
    }

    /// What begins with a scheme, or relates to what does.
    fn reference(&self) -> AbnfRule {
        choice(&[&self.absolute(), &self.with_first(&self.segment_nz_nc)])
    }

    /// `hier-part` or `relative-part` and what follows: a path without a root begins with `first`.
    fn with_first(&self, first: &AbnfRule) -> AbnfRule {
        let more = any_number(&sequence(&[&"/", &self.segment]));
        let rootless = sequence(&[first, &more]);
        let path = choice(&[&self.rooted, &rootless, &""]);
        sequence(&[&path, &self.tail])
    }
}

/// `IP-literal`.
fn ip_literal() -> AbnfRule {
    let version = repeated(&hex_digit(), 1, None);
    let rest = alphanumeric("-._~!$&'()*+,;=:");
    let rest = repeated(&rest, 1, None);
    let future = sequence(&[&one_of("Vv"), &version, &".", &rest]);
    sequence(&[&"[", &choice(&[&address::ipv6(), &future]), &"]"])
}
