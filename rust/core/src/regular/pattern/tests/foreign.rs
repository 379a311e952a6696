//! What other dialects have and ECMA-262 lacks: read as they agree, with a remark, or refused.

use super::*;

type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Patterns that are searched for, texts with a match, texts without; each has a remark.
const READ: &[Case] = &[
    (r"\A[0-9]+\z", &["12"], &["A12z", "1x", "x1", "12\n"]),
    (r"\A[0-9]+\Z", &["12"], &["A12Z", "12\n", "\n12"]),
    (r"\A\-\z", &["-"], &["A-z"]),
    (r"(?m)\Aa\z", &["a"], &["b\na", "a\nb"]),
    (
        r"^a\hb$",
        &["a b", "a\tb", "a\u{A0}b", "a\u{3000}b"],
        &["ahb", "a\nb", "a\u{B}b", "a\u{FEFF}b"],
    ),
    (r"^[\h,]\H$", &[" a", ",\n"], &["h ", "a\t"]),
    (r"^\e\a[\e\a]$", &["\u{1B}\u{7}\u{7}"], &["eae"]),
    (r"^\x{41}[\x{1F432}-\x{1F433}\x{0}]$", &["A🐲", "A🐳", "A\0"], &["x"]),
    (r"^\x{3}$", &["\u{3}"], &["xxx", "x"]),
    (r"^\U0001F432[\U00000041]$", &["🐲A"], &["U0001F432"]),
    (r"^\pL\PL[\pN\pZ]$", &["a11", "é- "], &["1a1", "aa1", "a1a", "pLPL1"]),
    (r"^\p{^Lu}\P{^Lu}\p{L&}$", &["aAb", "1Éǅ"], &["AAb", "aab", "aAª"]),
    (r"^\p{Lu}\-\u{1F432}$", &["É-🐲"], &["é-🐲", "p-u"]),
    (r"^[\p{Lu}\_]+\@$", &["É_@"], &["é@"]),
    (r"^\Qa.b*(\E+$", &["a.b*(", "a.b*(("], &["axb*(", "a.b(", "a.b*(a.b*("]),
    (r"^\Qa\\E$", &["a\\"], &["a"]),
    (r"^x\Q\E$", &["x"], &["xQE"]),
    (r"^\Q[a]", &["[a]", "[a]b"], &["a"]),
    (r"^[\Q]^-\\Ea]$", &["]", "^", "-", "\\", "a"], &["Q", "E", ""]),
    (r"(?i)^\Qab\E$", &["aB", "AB"], &["a"]),
    (r"^(?P<year>[0-9]{4})-(?P<month>[0-9]{2})$", &["2026-01"], &["26-01"]),
    (r"^(?'a'x)(?P<b>y)$", &["xy"], &["x", "'a'xy"]),
    (r"^(?|(a)|(b))c$", &["ac", "bc"], &["c", "|c"]),
    (r"^a(?#(b)c*$", &["a", "accc"], &["ab", "a(b"]),
    ("(?x)^a (?# or b) #\n + (?#)$", &["a", "aaa"], &["b", ""]),
    (r"(?i)^yes|no$", &["YES", "No", "yes!"], &["maybe", "nope"]),
    (r"(?i)", &["", "a"], &[]),
    (r"^(?i)yes$", &["yEs"], &["no"]),
    (r"^a(?i)b(?-i)c$", &["abc", "aBc"], &["ABc", "abC"]),
    (r"^((?i)a|b)c$", &["Ac", "Bc"], &["AC"]),
    (r"^(a|(?i)b|c)d$", &["Bd", "Cd", "ad"], &["Ad", "bD"]),
    (r"^(?:(?i)a)b$", &["Ab"], &["AB"]),
    (r"(?s)^a.b$", &["a\nb", "a\u{2028}b"], &["ab"]),
    (r"(?m)^b$", &["a\nb\nc", "b"], &["ab", "a\nbc"]),
    (r"(?im)^b$", &["a\nB"], &["aB"]),
    (r"(?is-m)^a.$", &["A\n"], &["b\nA\n"]),
    (r"(?i)(?s)^a.$", &["A\n"], &["A"]),
    (
        "(?x) ^ a b + [c] \\  \\# # (comment] |\n d $ # end",
        &["abc #d", "abbbc #d"],
        &["a b c  # d"],
    ),
    ("^(?x: a | b # \r\n ) c$", &["a c", "b c"], &["ac", "a  c"]),
    ("(?x)^ (?: a b {2} ) {2} $", &["abbabb"], &["abab"]),
    ("(?ix)^ a (?-x: b )$", &["A B "], &["ab"]),
    (r"(?xn)^ (a) \x20 $", &["a "], &["a"]),
    (r"^(?n:(a))$", &["a"], &["n"]),
    (r"^\<b\>$", &["<b>"], &["b"]),
];

#[test]
fn what_dialects_agree_about_is_read_as_they_read_it() {
    for &(text, with, without) in READ {
        let pattern = parse(text, PatternDialect::Ecma, "").expect(text);
        assert!(!pattern.remarks().is_empty(), "{text}");
        let language = automaton(text, PatternDialect::Ecma, "", true);
        for (texts, expected) in [(with, true), (without, false)] {
            for found in texts {
                assert_eq!(language.accepts(found), expected, "{text:?} {found:?}");
            }
        }
        if let Some(written) = written(&pattern, true) {
            assert_eq!(written, language, "{text}");
        }
    }
}

#[test]
fn what_ecma_262_has_is_read_without_a_remark() {
    for text in [
        r"^\-\_\@\:\!\ \é\/\'$",
        r"^a{}]}\-$",
        r"^[\w-a]+$",
        r"(?i:a)(?-s:b)",
        r"(?<n>a)",
        r"\012\177\0",
        r"[\1\12]",
        r"[&&]|[a&&b]|[--]|[[a]",
        r"^[[a-z]*[-]?[a-z]*]*$",
        r"/api/",
        r"/api/v1$",
        r"^/api/$",
        r"/a\$/",
        r"/^a|b/",
        r"#[0-9a-f]{6}#",
        r"(?:/^a/)",
        r"[:alpha:]",
        r"a{1,2,3}",
        "{ 1 }",
    ] {
        let pattern = parse(text, PatternDialect::Ecma, "").expect(text);
        assert_eq!(pattern.remarks(), [], "{text}");
    }
}

#[test]
fn remarks_say_how_a_construct_is_read_once_each() {
    let remarks = |text| -> Vec<String> {
        let pattern = parse(text, PatternDialect::Ecma, "").expect("a pattern");
        pattern.remarks().iter().map(ToString::to_string).collect()
    };
    assert_eq!(
        remarks(r"(?:\Aa\z)|\A\z|\Ab\Z"),
        [
            "ECMA-262 has no `\\A`; it is the start of the text, as in all dialects that have it",
            "ECMA-262 has no `\\z`; it is the end of the text, as in all dialects that have it",
            "ECMA-262 has no `\\Z`; it is the end of the text, as in Python; in Perl, PCRE, Java, \
             .NET and Ruby it also holds before a newline that ends the text",
        ]
    );
    assert_eq!(
        remarks("(?i)a"),
        [
            "ECMA-262 has no `(?i)` without a colon; the flag holds up to the end of its group, as in \
          all dialects that have it"
        ]
    );
    assert!(
        parse(r"\Aa\z(?P<n>b)", PatternDialect::Python, "")
            .expect("a pattern")
            .remarks()
            .is_empty()
    );
    assert!(
        parse(r"\Aa\z(?P<n>b)", PatternDialect::Rust, "").expect("a pattern").remarks().is_empty()
    );
}

/// Patterns that are refused: the construct, the column, the end of the message.
const REFUSED: &[(&str, &str, u32, &str)] = &[
    ("ba++", "possessive quantifier", 3, "drop the `+` behind it"),
    ("a{2}+", "possessive quantifier", 2, "drop the `+` behind it"),
    ("a(?>b)", "atomic group", 2, "write `(?:`"),
    ("(a)(?(1)b)", "conditional", 4, "write the two cases as alternatives"),
    ("(?P<n>a)(?P=n)", "backreference", 9, "in place of the reference"),
    (r"(?'n'a)\k'n'", "backreference", 8, "in place of the reference"),
    (r"(?P<n>a)\1", "backreference", 9, "in place of the reference"),
    (r"(a)\g1", "backreference", 4, "in place of the reference"),
    (r"a\k<n>", "backreference", 2, "in place of the reference"),
    ("(a(?R)?)", "recursion", 3, "repeat the pattern of the group"),
    ("(a(?1)?)", "recursion", 3, "repeat the pattern of the group"),
    ("(?<n>a(?&n)?)", "recursion", 7, "repeat the pattern of the group"),
    ("(?<n>a(?P>n)?)", "recursion", 7, "repeat the pattern of the group"),
    ("(a(?-1)?)", "recursion", 3, "repeat the pattern of the group"),
    ("(?{a})", "code", 1, "drop it"),
    ("(*UTF8)a", "`(*`", 1, "write `\\(\\*` for the characters"),
    ("(?^i)a", "flags", 1, "write `(?-ims:..)`"),
    ("(?a)b", "flags", 3, "drop the flag a"),
    ("(?iu)b", "flags", 4, "for letters or digits of all scripts"),
    ("(?U)b", "flags", 3, "drop it"),
    ("(?xx)b", "flags", 4, "write one x"),
    ("(?L)b", "flags", 3, "the flag L is not supported; drop it"),
    ("^(?i)yes|no$", "flags", 2, "or `(?i:..)` around what they are for"),
    ("x(a(?i)b|c)", "flags", 4, "or `(?i:..)` around what they are for"),
    ("(?x)[a b]", "the flag x", 7, "put a backslash before it"),
    ("(?x)[a#]", "the flag x", 7, "put a backslash before it"),
    ("(?x)a\u{B}b", "the flag x", 6, "write spaces and newlines"),
    ("(?x)a # b\rc", "the flag x", 10, "write spaces and newlines"),
    ("(?x)a{2, 3}", "quantifier", 6, "write `{2,3}`, or `\\{` for the brace"),
    ("(?x)a|{b}", "the flag x", 7, "write `\\{`"),
    ("a{,2}", "quantifier", 2, "write `{0,2}`, or `\\{` for the brace"),
    ("a{1, 2}", "quantifier", 2, "write `{1,2}`, or `\\{` for the brace"),
    ("[[:alpha:]]+", "`[:alpha:]`", 2, "write in its place `A-Za-z`, or `\\p{L}` for all scripts"),
    ("[^_[:^space:]]", "`[:^space:]`", 4, "write a class that begins with `^`"),
    ("[a-z&&[^b]]", "class", 5, "and `\\[` and `\\]` for brackets that are characters"),
    ("[a-z-[aeiou]]", "class", 5, "and `\\[` and `\\]` for brackets that are characters"),
    (r"[\w-[\d]]", "class", 4, "and `\\[` and `\\]` for brackets that are characters"),
    ("[a-z--[aeiou]]", "class", 5, "and `\\[` and `\\]` for brackets that are characters"),
    ("[a-d[m-p]]", "class", 5, "and `\\[` and `\\]` for brackets that are characters"),
    ("[[a-z]&&[aeiou]]", "class", 2, "and `\\[` and `\\]` for brackets that are characters"),
    (r"[\w--\d]", "class", 4, "and `\\[` and `\\]` for brackets that are characters"),
    ("^[]abc]$", "`[]`", 2, "write `\\]` for each bracket that is a character"),
    ("^[^]abc]$", "`[]`", 2, "write `\\]` for each bracket that is a character"),
    (r"a\Gb", "`\\G`", 2, "a pattern is read from its start; drop it"),
    (r"a\Kb", "`\\K`", 2, "drop it"),
    (r"\R", "`\\R`", 1, "write `(?:\\r\\n|[\\n\\v\\f\\r\\x85\\u2028\\u2029])`"),
    (r"\X", "`\\X`", 1, "write `[^]` for any character"),
    (r"\N", "`\\N`", 1, "or `[^\\n]`"),
    (r"\V", "`\\V`", 1, "write `[^\\n\\v\\f\\r\\x85\\u2028\\u2029]`"),
    (r"\C", "`\\C`", 1, "write `[^]` for any character"),
    (r"a\E", "`\\E`", 2, "there is no `\\Q` before it; drop it"),
    (r"[\Qa\E-z]", "`\\Q`", 7, "write the character"),
    (r"[a-\Qz\E]", "`\\Q`", 4, "write the character"),
    (r"\yfoo\y", "`\\y`", 1, "write `\\b`, or the letter alone"),
    (r"\i\c*", "`\\i`", 1, "write a class, such as `[A-Z_a-z:]`"),
    (r"\c1", "`\\c`", 1, "write a class, such as `[-.0-9:A-Z_a-z]`"),
    (r"\q", "`\\q`", 1, "drop the backslash"),
    (r"\x4", "`\\x`", 1, "or `\\x{..}`, up to 10FFFF"),
    (r"\x{110000}", "`\\x`", 1, "or `\\x{..}`, up to 10FFFF"),
    (r"\u12", "`\\u`", 1, "or `\\u{..}`, up to 10FFFF"),
    (r"\U1234", "`\\U`", 1, "or `\\p{Ll}` and `\\p{Lu}`"),
    (r"\o{12}", "`\\o`", 1, "write `\\x` and two hexadecimal digits"),
    (r"\pX", "`\\p`", 1, "as in `\\p{Lu}` or `\\p{Script=Greek}`"),
    (r"[\A]", "`\\A`", 2, "put the assertion outside, as `^`, `$` or `\\b`"),
    (r"[\B]", "`\\B`", 2, "put the assertion outside, as `^`, `$` or `\\b`"),
    (
        r"(a)\2",
        "`\\2`",
        4,
        "there is no group 2; for a character write `\\x` and two hexadecimal digits",
    ),
    (
        r"\12",
        "`\\1`",
        1,
        "there is no group 12; for a character write `\\x` and two hexadecimal digits",
    ),
    (r"[\8]", "`\\8`", 2, "the digit needs no backslash; write `8`"),
    (r"\p{Greek}", "`\\p{Greek}`", 1, "or `\\p{Script_Extensions=Greek}` to have these too"),
    (r"\p{IsGreek}", "`\\p{IsGreek}`", 1, "write `\\p{Script=Greek}`"),
    (r"\p{IsAlphabetic}", "`\\p{IsAlphabetic}`", 1, "write `\\p{Alphabetic}`"),
    (r"\p{InGreekExtended}", "`\\p{InGreekExtended}`", 1, "write a class of the characters"),
    (
        r"\p{Alnum}",
        "`\\p{Alnum}`",
        1,
        "write in a class `0-9A-Za-z`, or `\\p{L}\\p{Nd}` for all scripts",
    ),
    ("/^abc$/", "delimiters", 1, "write `^abc$`"),
    ("/^abc$/gi", "delimiters", 1, "write `(?i)^abc$`"),
    ("/^a|b$/", "delimiters", 1, "write `^a|b$`"),
    ("/abc$/", "delimiters", 1, "write `abc$`"),
    ("/^abc/i", "delimiters", 1, "write `(?i)^abc`"),
    ("#^abc$#u", "delimiters", 1, "write `^abc$`"),
];

#[test]
fn what_dialects_differ_about_is_refused_by_its_name() {
    for &(text, construct, column, end) in REFUSED {
        let error = parse(text, PatternDialect::Ecma, "").expect_err(text);
        assert_eq!(error.kind, PatternFault::Unsupported, "{text}");
        assert_eq!((&*error.construct, error.column), (construct, column), "{text}");
        assert!(error.message.ends_with(end), "{text}: {}", error.message);
        assert!(
            parse(text, PatternDialect::Ecma, "u").is_err() || text.starts_with(['/', '#']),
            "{text}"
        );
    }
}

#[test]
fn no_letter_or_digit_stands_for_itself_behind_a_backslash() {
    for letter in (b'!'..=b'~').map(char::from) {
        for text in [format!("^\\{letter}$"), format!("^[\\{letter}]$")] {
            let Ok(pattern) = parse(&text, PatternDialect::Ecma, "") else {
                assert!(letter.is_ascii_alphanumeric(), "{text}");
                continue;
            };
            let language = pattern.to_dfa(true, &within(&budget())).expect("it is small");
            let itself = language.accepts(&letter.to_string());
            let is_set = "DdHhWwSs".contains(letter);
            assert_eq!(itself && !is_set, !letter.is_ascii_alphanumeric(), "{text}");
        }
    }
}

#[test]
fn with_the_flag_u_ecma_262_alone_counts() {
    for &(text, ..) in READ {
        assert!(parse(text, PatternDialect::Ecma, "u").is_err(), "{text}");
    }
    let error = parse("(?P<n>a)", PatternDialect::Ecma, "u").expect_err("no such group");
    assert_eq!(
        error.to_string(),
        "column 1: `(?P<`: a named group is written `(?<name>..)`; drop the `P`"
    );
    let error = parse("a(?i)b", PatternDialect::Ecma, "u").expect_err("no such group");
    assert_eq!(
        error.to_string(),
        "column 2: flags: flags hold in a group; write `(?i:..)` around what they are for"
    );
}
