//! References, templates and pointers beside parsers written by hand.

use super::random::compare;
use std::net::Ipv6Addr;

/// Whether each character is unreserved, a delimiter within a part, one of `more`, or encoded.
fn is_made_of(text: &str, more: &str, beyond: fn(u32) -> bool) -> bool {
    let mut chars = text.chars();
    while let Some(one) = chars.next() {
        let is_good = match one {
            '%' => (0..2).all(|_| chars.next().is_some_and(|digit| digit.is_ascii_hexdigit())),
            _ => {
                one.is_ascii_alphanumeric()
                    || "-._~!$&'()*+,;=".contains(one)
                    || more.contains(one)
                    || beyond(u32::from(one))
            }
        };
        if !is_good {
            return false;
        }
    }
    true
}

fn none(_: u32) -> bool {
    false
}

fn is_ucschar(code: u32) -> bool {
    let is_mark = matches!(code, 0x200E | 0x200F | 0x202A..=0x202E);
    let in_first_plane = matches!(code, 0xA0..=0xD7FF | 0xF900..=0xFDCF | 0xFDF0..=0xFFEF);
    let in_others = (0x1_0000..0xF_0000).contains(&code)
        && code % 0x1_0000 <= 0xFFFD
        && !(0xE_0000..0xE_1000).contains(&code);
    !is_mark && (in_first_plane || in_others)
}

fn is_private(code: u32) -> bool {
    matches!(code, 0xE000..=0xF8FF) || (code >= 0xF_0000 && code % 0x1_0000 <= 0xFFFD)
}

fn is_ucschar_or_private(code: u32) -> bool {
    is_ucschar(code) || is_private(code)
}

fn is_authority(text: &str, beyond: fn(u32) -> bool) -> bool {
    let rest = match text.split_once('@') {
        Some((user, _)) if !is_made_of(user, ":", beyond) => return false,
        Some((_, rest)) => rest,
        None => text,
    };
    let (host, port) = match rest.strip_prefix('[') {
        Some(literal) => {
            let Some((literal, port)) = literal.split_once(']') else { return false };
            let is_future = literal.strip_prefix(['v', 'V']).is_some_and(|future| {
                future.split_once('.').is_some_and(|(version, address)| {
                    let is_hex = version.bytes().all(|b| b.is_ascii_hexdigit());
                    let is_plain = !address.contains('%') && is_made_of(address, ":", none);
                    is_hex && is_plain && !version.is_empty() && !address.is_empty()
                })
            });
            if !is_future && literal.parse::<Ipv6Addr>().is_err() {
                return false;
            }
            ("", port)
        }
        None => match rest.find(':') {
            Some(colon) => rest.split_at(colon),
            None => (rest, ""),
        },
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    (port.is_empty() || port.starts_with(':'))
        && digits.bytes().all(|b| b.is_ascii_digit())
        && is_made_of(host, "", beyond)
}

/// Splits as appendix B of RFC 3986 does, then looks at each part.
fn is_reference(text: &str, needs_scheme: bool, beyond: fn(u32) -> bool, is_iri: bool) -> bool {
    let in_query = if is_iri { is_ucschar_or_private } else { none };
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (text, query) = text.split_once('?').unwrap_or((text, ""));
    if !is_made_of(fragment, ":@/?", beyond) || !is_made_of(query, ":@/?", in_query) {
        return false;
    }
    let head = text.find(['/', ':']).filter(|&place| text[place..].starts_with(':'));
    let rest = match head {
        Some(colon) => {
            let scheme = &text[..colon];
            let is_good = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
            if !is_good {
                return false;
            }
            &text[colon + 1..]
        }
        None if needs_scheme => return false,
        None => text,
    };
    match rest.strip_prefix("//") {
        Some(rest) => {
            let end = rest.find('/').unwrap_or(rest.len());
            is_authority(&rest[..end], beyond) && is_made_of(&rest[end..], ":@/", beyond)
        }
        None => is_made_of(rest, ":@/", beyond),
    }
}

fn is_template(text: &str) -> bool {
    let is_literal = |text: &str| {
        !text.contains(['"', '<', '>', '\\', '^', '`', '|', '}'])
            && is_made_of(text, ":/?#[]@", is_ucschar_or_private)
    };
    let is_variable = |text: &str| {
        let name = match (text.strip_suffix('*'), text.split_once(':')) {
            (Some(name), _) => name,
            (None, Some((name, most))) => {
                let is_number = most.bytes().all(|b| b.is_ascii_digit());
                if !is_number || most.starts_with('0') || !(1..=4).contains(&most.len()) {
                    return false;
                }
                name
            }
            (None, None) => text,
        };
        name.split('.').all(|word| {
            let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '%';
            !word.is_empty() && word.chars().all(of_name) && is_made_of(word, "_", none)
        })
    };
    let mut rest = text;
    while let Some((literal, more)) = rest.split_once('{') {
        let Some((expression, more)) = more.split_once('}') else { return false };
        let list = expression.strip_prefix(['+', '#', '.', '/', ';', '?', '&']);
        if !is_literal(literal) || !list.unwrap_or(expression).split(',').all(is_variable) {
            return false;
        }
        rest = more;
    }
    is_literal(rest)
}

fn is_pointer(text: &str) -> bool {
    let escapes = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    escapes && (text.is_empty() || text.starts_with('/'))
}

fn is_relative_pointer(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = &text[..text.len() - rest.len()];
    let is_number = !number.is_empty() && (number == "0" || !number.starts_with('0'));
    is_number && (rest == "#" || is_pointer(rest))
}

const URIS: [&str; 14] = [
    "ftp://ftp.is.co.za/rfc/rfc1808.txt",
    "ldap://[2001:db8::7]/c=GB?objectClass?one",
    "mailto:John.Doe@example.com",
    "tel:+1-816-555-1212",
    "telnet://192.0.2.16:80/",
    "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
    "http://user:pass@[v1.fe:x]:80/a//b?q=/?#/f?",
    "../../../g;x=1/../y",
    "//g?y#s",
    "g:h",
    "1:b",
    "./1:b",
    "http:///%41%zz",
    "http://[::1.2.3.4]]/",
];

#[test]
fn references_are_those_of_a_parser() {
    let alphabet = "aZ09%%//::::@[]?#.v&'\"<{ ";
    let uri = |text: &str| is_reference(text, true, none, false);
    assert!(compare("uri", alphabet, &URIS, uri) > 2_000);
    let reference = |text: &str| is_reference(text, false, none, false);
    assert!(compare("uri-reference", alphabet, &URIS, reference) > 2_500);
    let marks =
        "aZ0%//::@[]?#é\u{202E}\u{E000}\u{FDD0}\u{FFFF}\u{A0}\u{9F}\u{E0FFF}\u{F0000}\u{10FFFF}";
    let iri = |text: &str| is_reference(text, true, is_ucschar, true);
    assert!(compare("iri", marks, &URIS, iri) > 2_000);
    let reference = |text: &str| is_reference(text, false, is_ucschar, true);
    assert!(compare("iri-reference", marks, &URIS, reference) > 2_500);
}

#[test]
fn each_character_of_an_iri_stands_where_it_may() {
    let (iri, template) = (super::automaton("iri"), super::automaton("uri-template"));
    for one in (0x80..=0x10_FFFF).filter_map(char::from_u32) {
        let code = u32::from(one);
        let text = |before: &str| format!("{before}{one}");
        assert_eq!(iri.accepts(&text("a:")), is_ucschar(code), "{code:X}");
        assert_eq!(iri.accepts(&text("a:#")), is_ucschar(code), "{code:X}");
        assert_eq!(iri.accepts(&text("a:?")), is_ucschar_or_private(code), "{code:X}");
        assert_eq!(template.accepts(&text("")), is_ucschar_or_private(code), "{code:X}");
    }
}

#[test]
fn templates_and_pointers_are_those_of_parsers() {
    let given = ["http://example.com/{+path,x:3}{?q*,r}", "{%41.b}", "{a..b}", "{;x,y:0}", "a'b"];
    assert!(compare("uri-template", "ab0{{}},,:*.%+'\"<\\|^ é=!", &given, is_template) > 2_000);
    let given = ["", "/", "/a~0b~1c/", "/m~n", "a/b", "/é\u{0}"];
    assert!(compare("json-pointer", "a/~01é\n\u{10FFFF}", &given, is_pointer) > 2_500);
    let given = ["0", "1/0", "2/highly/nested", "0#", "00", "1#/a", "01/a", "0+1/a"];
    assert!(compare("relative-json-pointer", "a/~0123#+-", &given, is_relative_pointer) > 2_000);
}
