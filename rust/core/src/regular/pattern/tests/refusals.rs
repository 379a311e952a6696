//! What is refused, where, and in which words.

use super::*;

fn refusal(text: &str, dialect: PatternDialect, flags: &str) -> String {
    let error = parse(text, dialect, flags).expect_err(text);
    format!("{:?}, {error}", error.kind)
}

#[test]
fn errors_say_what_where_and_what_to_do() {
    for (text, expected) in [
        (
            "(a",
            "Syntax, column 1: `(`: the group is not closed; add `)`, or write `\\(` for a parenthesis",
        ),
        (
            "é🐲)",
            "Syntax, column 3: `)`: there is no group to close; write `\\)` for a parenthesis",
        ),
        (
            "a**",
            "Syntax, column 3: `*`: there is nothing that the quantifier could repeat; put a \
                 character or a group before it, or write `\\*` for the character",
        ),
        (
            "a{2,1}",
            "Syntax, column 2: quantifier: the greatest count is below the least; exchange them",
        ),
        ("[b-a]", "Syntax, column 2: range: the range ends before it begins; exchange its ends"),
        (
            "[a",
            "Syntax, column 1: `[`: the class is not closed; add `]`, or write `\\[` for a bracket",
        ),
        (
            "a\\",
            "Syntax, column 2: `\\`: a pattern cannot end with a backslash; write `\\\\` for the \
                 character",
        ),
        (
            "^*",
            "Syntax, column 2: quantifier: an assertion takes no quantifier; put it into a group",
        ),
        (
            "(?<=a)*",
            "Syntax, column 7: quantifier: an assertion takes no quantifier; put it into a \
                     group",
        ),
        ("(?ii:a)", "Syntax, column 4: flags: the flag i stands there twice; drop one"),
        (
            "(?-:a)",
            "Syntax, column 1: `(?`: there is no such group; write `(?:`, `(?=`, `(?!`, \
                    `(?<=`, `(?<!`, `(?<name>` or `(?i:`, or `\\(` for a parenthesis",
        ),
        (
            "(?<1>a)",
            "Syntax, column 4: group name: a name is letters, digits and `_`, no digit \
                     first, and ends with `>`",
        ),
        (
            "(?<n>a)(?<n>b)",
            "Syntax, column 8: group name: two groups have the name \"n\"; give each \
                            its own",
        ),
        (
            "((?<n>a)|b)(?<n>b)",
            "Syntax, column 12: group name: two groups have the name \"n\"; give \
                                each its own",
        ),
        (
            r"(a)\1",
            "Unsupported, column 4: backreference: no automaton can compare two parts of a \
                    text; repeat the pattern of the group in place of the reference",
        ),
        (
            r"(?<n>a)\-\k<n>",
            "Unsupported, column 10: backreference: no automaton can compare two \
                             parts of a text; repeat the pattern of the group in place of the \
                             reference",
        ),
        (
            r"\p{Foo}",
            "Unsupported, column 1: `\\p{Foo}`: ECMA-262 knows no such property; names are \
                      spelled as in Unicode's tables, as in `\\p{Lu}`, `\\p{Letter}`, \
                      `\\p{Script=Greek}`",
        ),
        (
            r"\p{lu}",
            "Unsupported, column 1: `\\p{lu}`: ECMA-262 knows no such property; names are \
                     spelled as in Unicode's tables, as in `\\p{Lu}`, `\\p{Letter}`, \
                     `\\p{Script=Greek}`",
        ),
        (
            "a{4294967295}",
            "Unsupported, column 2: quantifier: a count may be at most 4294967294; \
                           lower it",
        ),
    ] {
        assert_eq!(refusal(text, PatternDialect::Ecma, ""), expected, "{text}");
    }
}

#[test]
fn the_flag_u_keeps_annex_b_out() {
    let expected = "Syntax, column 1: `\\-`: the character needs no backslash; write `-`";
    assert_eq!(refusal(r"\-", PatternDialect::Ecma, "u"), expected);
    for text in ["]", "{", "}", r"\-", r"[\w-a]", r"\08", r"(?=a)*"] {
        let error = parse(text, PatternDialect::Ecma, "u").expect_err(text);
        assert_eq!(error.kind, PatternFault::Syntax, "{text}");
        assert!(parse(text, PatternDialect::Ecma, "").is_ok(), "{text}");
    }
    for text in [r"\1", r"\c", r"\x1", r"\u{110000}"] {
        let error = parse(text, PatternDialect::Ecma, "u").expect_err(text);
        assert_eq!(error.kind, PatternFault::Syntax, "{text}");
        let error = parse(text, PatternDialect::Ecma, "").expect_err(text);
        assert_eq!(error.kind, PatternFault::Unsupported, "{text}");
    }
}

#[test]
fn other_dialects_and_flags() {
    for (text, dialect, flags, expected) in [
        (
            "a",
            PatternDialect::Ecma,
            "v",
            "Unsupported, column 1: the flag v: the set operations of the flag \
                                   v are not supported; drop the flag, which reads the pattern as \
                                   with u",
        ),
        (
            "a",
            PatternDialect::Ecma,
            "x",
            "Syntax, column 1: flags: there is no flag 'x'; i, m, s and u are \
                                   known",
        ),
        (
            "a++",
            PatternDialect::Python,
            "",
            "Unsupported, column 2: possessive quantifier: a possessive \
                                      quantifier forgets matches; drop the `+` behind it",
        ),
        (
            "(?>a)",
            PatternDialect::Python,
            "",
            "Unsupported, column 1: atomic group: an atomic group forgets \
                                        matches; write `(?:`",
        ),
        (
            "(a)(?(1)b)",
            PatternDialect::Python,
            "",
            "Unsupported, column 4: conditional: write the two cases \
                                             as alternatives",
        ),
        (
            "a(?i)",
            PatternDialect::Python,
            "",
            "Syntax, column 2: flags: flags for the whole pattern stand \
                                        at its start",
        ),
        (
            "a|(?i)b",
            PatternDialect::Python,
            "",
            "Syntax, column 3: flags: flags for the whole pattern stand \
                                        at its start",
        ),
        (
            r"\y",
            PatternDialect::Python,
            "",
            "Syntax, column 1: `\\y`: there is no such escape; write `y` for \
                                      the letter",
        ),
        (
            "é(?=a)",
            PatternDialect::Rust,
            "",
            "Unsupported, column 2: lookaround `(?=`: the dialect \"rust\" has no lookaround; take \
             dialect=\"python\", or dialect=\"ecma\" where the pattern is not in Lark",
        ),
        (
            "a(?<!b)",
            PatternDialect::Rust,
            "",
            "Unsupported, column 2: lookaround `(?<!`: the dialect \"rust\" has no lookaround; take \
             dialect=\"python\", or dialect=\"ecma\" where the pattern is not in Lark",
        ),
        (
            r"a\p{L}",
            PatternDialect::Python,
            "",
            r#"Syntax, column 2: `\p`: Python's re has no properties; take dialect="rust", or dialect="ecma" where the pattern is not in Lark, or list the characters"#,
        ),
        (
            r"[\PL]",
            PatternDialect::Python,
            "",
            r#"Syntax, column 2: `\P`: Python's re has no properties; take dialect="rust", or dialect="ecma" where the pattern is not in Lark, or list the characters"#,
        ),
        ("é(a", PatternDialect::Rust, "", "Syntax, column 2: `(`: unclosed group"),
    ] {
        assert_eq!(refusal(text, dialect, flags), expected, "{text}");
    }
}

#[test]
fn flags_that_python_refuses() {
    for (text, message) in [
        ("(?i-:a)", "a flag is missing"),
        ("(?-:a)", "a flag is missing"),
        ("(?i-i:a)", "both turned on and turned off"),
        ("(?au:a)", "exclude each other"),
        ("(?au)a", "exclude each other"),
    ] {
        let error = refusal(text, PatternDialect::Python, "");
        assert!(error.starts_with("Syntax, column 1: flags: "), "{text}: {error}");
        assert!(error.contains(message), "{text}: {error}");
    }
    for text in ["(?-i:a)", "(?i-s:a)", "(?is)a", "(?ii-mx:a)"] {
        assert!(parse(text, PatternDialect::Python, "").is_ok(), "{text}");
    }
}
