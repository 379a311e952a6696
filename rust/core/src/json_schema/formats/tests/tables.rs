//! Texts that the standards give as examples, or that lie at the edge of a rule: valid ones, then
//! invalid ones.

use super::automaton;

fn check(name: &str, valid: &[&str], invalid: &[&str]) {
    let automaton = automaton(name);
    valid.iter().for_each(|text| assert!(automaton.accepts(text), "{name} accepts {text:?}"));
    invalid.iter().for_each(|text| assert!(!automaton.accepts(text), "{name} refuses {text:?}"));
    // Nothing stands before or behind, a line feed least of all.
    if !name.ends_with("pointer") {
        for text in valid {
            assert!(!automaton.accepts(&format!("{text}\n")), "{name} refuses a line feed");
            assert!(!automaton.accepts(&format!(" {text}")), "{name} refuses a space");
        }
    }
}

#[test]
fn times() {
    check(
        "date",
        &["0000-01-01", "0000-02-29", "1600-02-29", "2024-12-31", "9999-12-31"],
        &[
            "2023-02-29",
            "1900-02-29",
            "2024-2-9",
            "2024-13-01",
            "2024-04-31",
            "24-01-01",
            "٢٠٢٤-01-01",
        ],
    );
    check(
        "time",
        &["00:00:00Z", "23:59:59.000000000001z", "12:00:00-00:00", "23:59:60Z", "23:59:60.9-00:00"],
        &[
            "24:00:00Z",
            "12:00:00",
            "12:00Z",
            "12:00:00,5Z",
            "12:00:00.Z",
            "22:59:60Z",
            "23:59:61Z",
            "12:00:00+24:00",
            "12:00:00+0100",
            "12:00:00+01",
        ],
    );
    check(
        "date-time",
        &[
            "1985-04-12T23:20:50.52Z",
            "1996-12-19t16:39:57-08:00",
            "1990-12-31T23:59:60Z",
            "1937-01-01T12:00:27.87+00:20",
        ],
        &[
            "1985-04-12 23:20:50Z",
            "1985-04-12",
            "1985-02-29T00:00:00Z",
            "1990-12-31T15:59:60-08:00",
            "1985-04-12T23:20:50",
        ],
    );
    check(
        "duration",
        &["P4Y", "PT0S", "P1M", "PT36H", "P1DT12H", "P2W", "P007D", "P1Y2M3DT4H5M6S"],
        &["", "P", "PT", "P1DT", "P1Y2D", "PT1H2S", "P1W1D", "PT1D", "PT0.5S", "p1d", "-P1D", "P1"],
    );
}

#[test]
fn addresses() {
    check(
        "ipv4",
        &["0.0.0.0", "127.0.0.1", "192.0.2.235", "255.255.255.255", "99.100.199.249"],
        &["", "1.2.3", "1.2.3.4.5", "256.0.0.1", "1.2.3.04", "0x7f.1.1.1", "1.2.3.4/8", "１.2.3.4"],
    );
    check(
        "ipv6",
        &[
            "::",
            "::1",
            "FF01::101",
            "2001:DB8:0:0:8:800:200C:417A",
            "::13.1.68.3",
            "::FFFF:129.144.52.38",
            "1:2:3:4:5:6:7::",
            "fe80::1",
        ],
        &[
            "",
            ":",
            ":::",
            "1",
            "1:2:3:4:5:6:7",
            "1:2:3:4:5:6:7:8::",
            "1::2::3",
            "12345::",
            "::1%eth0",
            "[::1]",
            "::1/64",
            "1.2.3.4",
            "::1.2.3",
            "1:2:3:4:5:6:7:1.2.3.4",
        ],
    );
    check(
        "uuid",
        &[
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "F81D4FAE-7DEC-F1D0-0765-00A0C91E6BF6",
            "00000000-0000-0000-0000-000000000000",
        ],
        &[
            "",
            "f81d4fae7dec11d0a76500a0c91e6bf6",
            "{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf",
            "g81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        ],
    );
}

#[test]
fn names() {
    check(
        "hostname",
        &["localhost", "a", "3com", "a-b.c--d.e1", "1.2.3.4", "xn-a", "abc--d"],
        &[
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "-a",
            "a-",
            "a_b",
            "xn--bcher-kva",
            "XN--A",
            "ab--c",
            "a.ab--c",
            "bücher",
            "a b",
        ],
    );
    check(
        "email",
        &[
            "a@b",
            "joe.bloggs@example.com",
            "!#$%&'*+-/=?^_`{|}~@a.b",
            "\"\"@a",
            "\"a\\\" b@c\"@d.e",
            "a@[192.0.2.1]",
            "a@[IPv6:2001:db8::1]",
        ],
        &[
            "",
            "a",
            "@b",
            "a@",
            ".a@b",
            "a.@b",
            "a..b@c",
            "a b@c",
            "a@b_c",
            "a@-b",
            "a@b.",
            "\"a\"b@c",
            "\"a@b",
            "a@[1.2.3.256]",
            "a@[::1]",
            "a@[tag:x]",
            "é@a",
            "a@[IPv6:1:2:3:4:5:6:7::]",
            "a <b@c>",
        ],
    );
}

#[test]
fn references() {
    let absolute = [
        "a:",
        "http://",
        "http://a:/",
        "file:///etc",
        "a:?#",
        "http://[vA.b:c]/",
        "x:%C3%A9",
        "http://999.1.1.1/",
    ];
    let relative = ["", "a", "//a", "/", "?", "#", "./a:b", "a/b:c", "..", "%41"];
    let neither = [
        "1:a",
        ":a",
        "%4",
        "%zz",
        "http://a b",
        "http://[1::2::3]",
        "a:#b#c",
        "http://a:b:c",
        "//a@b@c",
        "\\",
        "a:[",
        "http://[v1]",
        "http://[::1",
        "a:<>",
        "a:\"",
        "a:|",
        "a:^",
        "a:`",
        "a:{}",
    ];
    let beyond = ["a:é", "http://ü.de/ß?\u{E000}#ß", "a:\u{1F600}"];
    let of = |sets: &[&[&'static str]]| sets.concat();
    check("uri", &absolute, &of(&[&relative, &neither, &beyond]));
    check("uri-reference", &of(&[&absolute, &relative]), &of(&[&neither, &beyond]));
    let no_iri = ["a:\u{E000}", "a:\u{202E}", "a:\u{FFFE}", "a:\u{9F}", "a:#\u{E000}"];
    check("iri", &of(&[&absolute, &beyond]), &of(&[&relative, &neither, &no_iri]));
    check(
        "iri-reference",
        &of(&[&absolute, &relative, &beyond, &["é"]]),
        &of(&[&neither, &no_iri, &["é:a"]]),
    );
}

#[test]
fn templates_and_pointers() {
    check(
        "uri-template",
        &[
            "",
            "http://www.example.com/foo{?query,number}",
            "{+path:6}/here",
            "{/list*,path:9999}",
            "{semi.dot}",
            "{%41_}",
            "'é\u{E000}",
        ],
        &[
            "{",
            "}",
            "{}",
            "{a",
            "{,a}",
            "{a,}",
            "{a..b}",
            "{.}",
            "{a:0}",
            "{a:12345}",
            "{a*:1}",
            "{=a}",
            "{!a}",
            "{a b}",
            "%4",
            "<",
            "\"",
            "{é}",
        ],
    );
    check(
        "json-pointer",
        &["", "/", "/foo/0", "/a~1b", "/c%d", "/ ", "/m~0n", "//", "/é\n\u{0}\u{10FFFF}"],
        &["a", "#", "#/a", "/~", "/~2", "/a~", " "],
    );
    check(
        "relative-json-pointer",
        &["0", "1/0", "2/highly/nested/objects", "0#", "10", "0/", "1//"],
        &["", "/a", "-1", "+1", "01", "0##", "0#/a", "1a", "0/~", "0+1", "٠"],
    );
}
