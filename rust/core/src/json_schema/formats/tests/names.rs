//! Addresses and names beside the parsers of the standard library and parsers written by hand.

use super::random::compare;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Labels of a name, as RFC 1123 and RFC 5890 have them.
fn are_labels(name: &str) -> bool {
    name.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.get(2..4) != Some("--")
    })
}

/// Whether a name of these labels is no longer than it may be, by the rule of its narrowing.
fn is_short(name: &str, charged: usize, rest: usize) -> bool {
    let parts: Vec<&str> = name.splitn(charged + 1, '.').collect();
    let [.., last, tail] = parts[..] else { return true };
    let is_short = tail.len() <= rest && (charged < 3 || last.len() + tail.len() <= 124);
    parts.len() <= charged || is_short
}

fn is_hostname(text: &str) -> bool {
    are_labels(text) && is_short(text, 3, 66)
}

fn is_email(text: &str) -> bool {
    let Some((local, domain)) = text.rsplit_once('@') else { return false };
    let atom = |atom: &str| {
        let is_text = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-/=?^_`{|}~".contains(&b);
        !atom.is_empty() && atom.bytes().all(is_text)
    };
    let quoted = |text: &str| {
        let Some(text) = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')) else {
            return false;
        };
        let mut bytes = text.bytes();
        while let Some(byte) = bytes.next() {
            let is_printable = |b: u8| (b' '..=b'~').contains(&b);
            let is_good = match byte {
                b'\\' => bytes.next().is_some_and(|b| b != b' ' && is_printable(b)),
                b'"' => false,
                other => is_printable(other),
            };
            if !is_good {
                return false;
            }
        }
        true
    };
    // A quotation mark alone is no quoted text.
    let is_local = local.split('.').all(atom) || (local.len() >= 2 && quoted(local));
    let literal = domain.strip_prefix('[').and_then(|domain| domain.strip_suffix(']'));
    let is_domain = match literal {
        Some(literal) => match literal.strip_prefix("IPv6:") {
            Some(six) => is_ipv6(six) && gap(six) != 1,
            None => is_ipv4(literal),
        },
        None => are_labels(domain) && is_short(domain, 1, 63),
    };
    local.len() <= 64 && is_local && is_domain
}

fn is_ipv4(text: &str) -> bool {
    text.parse::<Ipv4Addr>().is_ok()
}

fn is_ipv6(text: &str) -> bool {
    text.parse::<Ipv6Addr>().is_ok()
}

/// For how many groups `::` stands.
fn gap(text: &str) -> usize {
    let groups = text.split(':').filter(|group| !group.is_empty()).count();
    8 - groups - usize::from(text.contains('.'))
}

#[test]
fn addresses_are_those_that_the_standard_library_reads() {
    let given = ["0.0.0.0", "255.255.255.255", "192.168.0.1", "1.2.3", "01.2.3.4", "256.1.1.1"];
    assert!(compare("ipv4", "0123456789.", &given, is_ipv4) > 2_000);
    let given = [
        "::",
        "::1",
        "1::",
        "1:2:3:4:5:6:7::",
        "::2:3:4:5:6:7:8",
        "1:2:3:4:5:6:7:8",
        "1:2:3:4:5:6:1.2.3.4",
        "::ffff:1.2.3.4",
        "1:2:3:4:5::1.2.3.4",
        "1:2:3:4:5:6::1.2.3.4",
        "2001:db8::8:800:200c:417a",
    ];
    assert!(compare("ipv6", "0123456789abcdefABCDEF::::..", &given, is_ipv6) > 3_000);
    // Each octet, and each number of groups on both sides of `::`.
    let (four, six) = (super::automaton("ipv4"), super::automaton("ipv6"));
    for octet in 0..=1_100 {
        assert_eq!(four.accepts(&format!("1.{octet}.3.4")), octet < 256);
        assert_eq!(six.accepts(&format!("::{octet}.2.3.4")), octet < 256);
    }
    for before in 0..=9 {
        for behind in 0..=9 {
            for four in [false, true] {
                let mut groups = vec!["a"; behind];
                if four {
                    groups.push("1.2.3.4");
                }
                let text = format!("{}::{}", vec!["b"; before].join(":"), groups.join(":"));
                assert_eq!(six.accepts(&text), is_ipv6(&text), "{text}");
            }
        }
    }
}

#[test]
fn host_names_are_those_of_a_parser() {
    let label = "a".repeat(63);
    let nibbles = "8.b.d.0.1.0.0.2.ip6.arpa";
    let reverse = format!("{}{nibbles}", "0.".repeat(24));
    let full = format!("{label}.{label}.{label}.{}", "b".repeat(61));
    let over = format!("{label}.{label}.{label}.{}", "b".repeat(62));
    let rest = format!("a.b.{}.{}", "c".repeat(58), "d.".repeat(32) + "ef");
    let given = [
        label.as_str(),
        &reverse,
        &full,
        &over,
        &rest,
        &format!("{label}a.com"),
        &format!("a.{label}a.com"),
        &format!("a.b.c.{label}.de"),
        &format!("a.b.c.{label}a.d"),
        &format!("a.b.c.d.{label}a"),
        "www.example.com",
        "xn--a.com",
        "ab--c.de",
        "abc--c.de",
        "a--b.de",
        "a.b.c.d.xn--e",
        "a-.b",
    ];
    assert_eq!(full.len(), 253);
    assert!(is_hostname(&reverse) && is_hostname(&full) && !is_hostname(&over));
    assert!(compare("hostname", "abcxn019---..._A", &given, is_hostname) > 2_500);
}

#[test]
fn mail_addresses_are_those_of_a_parser() {
    let local = "a".repeat(64);
    let label = "b".repeat(63);
    let given = [
        "joe.bloggs@example.com",
        "\"joe b@\\\"loggs\"@[127.0.0.1]",
        "\"\"@a",
        "a@[IPv6:::1]",
        "a@[IPv6:1:2:3:4:5:6:7::]",
        "a@[IPv6:1:2:3:4:5:6::]",
        "a@[IPv6:1:2:3:4::1.2.3.4]",
        "a@[IPv6:1:2:3:4:5::1.2.3.4]",
        "a@[IPv6:1:2:3:4:5:6:7:8]",
        &format!("{local}@{label}.{label}"),
        &format!("{local}@{label}.{label}b"),
        &format!("{local}@{label}.{}.d", "c".repeat(61)),
        &format!("{local}@{label}.{}.d", "c".repeat(62)),
        &format!("{local}a@b.c"),
        &format!("a@{label}b"),
        &format!("\"{}\"@b", "a".repeat(62)),
        &format!("\"{}\"@b", "a".repeat(63)),
        "a@b.c.d.e.f.g.h",
        "a@xn--b.c",
    ];
    assert!(compare("email", "ab.\"\\@ -[]:1@IPv6", &given, is_email) > 2_500);
}

#[test]
fn uuids_are_five_groups_of_digits() {
    let is_uuid = |text: &str| {
        let groups: Vec<usize> = text.split('-').map(str::len).collect();
        groups == [8, 4, 4, 4, 12] && text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit())
    };
    let given = ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6"];
    assert!(compare("uuid", "0123456789abcdefABCDEFg--", &given, is_uuid) > 3_000);
}
