//! What is refused: where, and in which words.

use super::*;

/// Checks a message, its place and the construct that it names.
fn refused(text: &str, place: (u32, u32), construct: &str, words: &str) {
    let error = lark(text).map(|grammar| syntax::print(&grammar)).expect_err(text);
    let (found, message, position) = match &error {
        Error::Syntax { message, position } => ("", message, position),
        Error::Unsupported { construct, message, position } => (&**construct, message, position),
        other => panic!("{text}: {other}"),
    };
    assert_eq!((position.line, position.column), place, "{text}: {error}");
    assert_eq!(found, construct, "{text}: {error}");
    assert!(message.contains(words), "{text}: {error}");
}

fn wrong(text: &str, line: u32, column: u32, words: &str) {
    refused(text, (line, column), "", words);
}

#[test]
fn names() {
    wrong("", 1, 1, "there is no rule `start` to start with; define it");
    let first = "there is no rule `start` to start with; define it, or name another rule: start=\"x\" takes the first";
    wrong("A: \"a\"\nt{y}: y\nx: A t{\"b\"}\nz: A", 1, 1, first);
    let other = "define it, or name another rule: start=\"...\"";
    wrong("A: \"a\"", 1, 1, other);
    wrong("start: \"a\" x", 1, 12, "`x` is not defined");
    wrong("start: \"a\"\nX: \"b\" Y", 2, 8, "`Y` is not defined");
    wrong("start: \"a\"\nx: \"b\"\nstart: \"c\"", 3, 1, "`start` is defined at line 1 already");
    wrong("start: A\nA: \"a\"\n%import common.INT -> A", 3, 9, "`A` is defined at line 2 already");
    wrong("start: A\nA: B\nB: \"b\" | A", 2, 1, "the terminal `A` names itself");
    wrong("start: A\nA: A?", 2, 1, "the terminal `A` names itself");
    wrong(
        "start: A\nA: \"a\" x\nx: \"b\"",
        2,
        8,
        "a terminal is made of terminals, literals and patterns",
    );
    wrong("start: \"a\"\n%ignore start", 2, 9, "`%ignore` is made of terminals");
}

#[test]
fn signs() {
    wrong("start \"a\"", 1, 7, "expected `:` after the name `start`, found the literal \"a\"");
    wrong("start: \"a\" )", 1, 12, "this `)` closes or parts nothing");
    wrong(
        "start: (\"a\"\nx: \"b\"",
        2,
        2,
        "expected a literal, a name, a pattern or a group, found `:`",
    );
    wrong("start: (\"a\"", 1, 12, "expected `)` (opened at line 1, column 8)");
    wrong("start: [\"a\")", 1, 12, "expected `]` (opened at line 1, column 8), found `)`");
    wrong("start: \"a\"++", 1, 12, "repeats what stands before it");
    wrong("start: * \"a\"", 1, 8, "repeats what stands before it");
    wrong("start: {2}", 1, 8, "counts what stands before it");
    wrong("start: \"a\"{3,2}", 1, 11, "the upper bound is less than the lower bound 3");
    wrong("start: \"a\"{99999999999}", 1, 12, "is no integer from 0 to 2147483647");
    wrong("start: \"a\" ~ | \"b\"", 1, 12, "`~` stands before what is not to match");
    wrong("start: ~~\"a\"", 1, 9, "two `~` in a row");
    wrong("start: \"a\" &", 1, 13, "expected");
    wrong("start: \"a\" -> x y", 1, 17, "expected `|` or the end of the definition");
    wrong("start: \"a\"\n \"b\"", 2, 2, "only if that begins with `|`");
    wrong("start: 'a'", 1, 8, "literals stand in double quotes");
    wrong("start: a;", 1, 9, "expected a literal");
    wrong("start: \"a\" §", 1, 12, "`§` begins nothing here");
    wrong("%ignore\nstart: \"a\"", 1, 1, "nothing follows");
    wrong("start: %lark { start: \"a\"", 1, 26, "expected `}` at the end of `%lark`");
    wrong("start: %lark start", 1, 14, "expected `{` after `%lark`");
    wrong("%foo\nstart: \"a\"", 1, 1, "there is no directive `%foo`");
    wrong("start: %ignore", 1, 8, "begins a line of its own");
    wrong("%json {}", 1, 1, "stands on the right of a rule");
}

#[test]
fn literals() {
    wrong("start: \"a", 1, 8, "does not end on its line");
    wrong("start: /a\nx: /b", 1, 8, "does not end on its line");
    wrong("start: \"é\\q\"", 1, 10, "a literal has no escape `\\q`");
    wrong("start: \"\\ud800\"", 1, 9, "`\\ud800` is half of a surrogate pair, and no character");
    wrong("start: \"\\ude00\\ud83d\"", 1, 9, "`\\ude00` is half of a surrogate pair");
    wrong("start: \"\\U00110000\"", 1, 9, "names no character: U+10FFFF is the last");
    wrong("start: \"\\u00g0\"", 1, 9, "4 hexadecimal digits must follow `\\u`");
    wrong("start: \"b\"..\"a\"", 1, 8, "this range is backwards");
    wrong("start: \"ab\"..\"c\"", 1, 8, "an end of a range is one character");
    wrong("start: \"a\"i..\"c\"", 1, 8, "the ends of a range have no flags");
    wrong("start: \"a\"..x", 1, 13, "expected a literal after `..`");
    wrong("start: /a(b/", 1, 10, "");
    wrong("start: /a/q", 1, 8, "a pattern has no flag `q`");
    refused("start: /a/l", (1, 8), "the flag `l`", "has no meaning here");
    wrong("start: /a b\n (c/x", 2, 2, "");
    wrong("start: < a>", 1, 8, "`<` begins a token");
    wrong("start: <[5-1]>", 1, 8, "the range `5-1` is backwards");
    wrong("start: <[x]>", 1, 8, "is no id of a token");
    wrong("start: <[]>", 1, 8, "this names no token");
    wrong("start: <[^*]>", 1, 8, "is no token at all");
}

#[test]
fn attributes() {
    wrong("start[foo]: \"a\"", 1, 7, "there is no attribute `foo`");
    wrong("start[lazy, lazy]: \"a\"", 1, 13, "given twice");
    wrong("start[suffix=\"a\", stop=\"b\"]: \"a\"", 1, 19, "one `suffix` or one `stop`");
    wrong("start[stop_capture=\"b\"]: \"a\"", 1, 7, "`stop_capture` names what stops a rule");
    wrong("start[capture=\"\"]: \"a\"", 1, 15, "the name of a capture has");
    wrong("start[max_tokens=0]: \"a\"", 1, 18, "an integer from 1 to 1000000");
    wrong("start[temperature=-1]: \"a\"", 1, 19, "a finite number of at least 0");
    wrong("start: A\nA[lazy]: \"a\"", 2, 2, "attributes are for rules");
    wrong("start[suffix=x]: \"a\"\nx: \"b\"", 1, 14, "expected a literal, a pattern or a terminal");
    wrong("start[lazy]: x\nx: \"b\"", 1, 14, "a rule with `lazy` is made of terminals");
    wrong("start[temperature=1]: x\nx: \"b\"", 1, 23, "a rule with `temperature` is made of");
}

#[test]
fn what_has_no_meaning_here_is_named() {
    refused("start: x::0\nx::_: \"a\"", (1, 9), "parametric rules (`::`)", "64 bits");
    refused("start: \"a\" %if x", (1, 12), "%if", "write the cases as rules");
    refused("%declare X\nstart: X", (1, 1), "%declare", "the terminal `X`");
    refused("%declare Z X\nstart: X", (1, 1), "%declare", "define it here");
    wrong("%declare\nstart: \"a\"", 1, 9, "expected the name of a terminal");
    wrong("%declare X = 3\nstart: \"a\"", 1, 12, "expected the end of the line");
    refused("%import python.NAME\nstart: NAME", (1, 9), "%import", "only the library `common`");
    refused("%import .x\nstart: \"a\"", (1, 1), "%import", "files are not read here");
    wrong("%import common.FOO\nstart: FOO", 1, 9, "has no `FOO`; it has CNAME");
    wrong("%import common._SIGN\nstart: _SIGN", 1, 9, "has no `_SIGN`");
    refused("start[stop=\"\"]: \"a\"", (1, 12), "stop=\"\"", "the end of the text");
    refused(
        "%llguidance {\"allow_invalid_utf8\": true}\nstart: \"a\"",
        (1, 13),
        "allow_invalid_utf8",
        "",
    );
    refused("start: <|other|>", (1, 8), "<|other|>", "looked up in a vocabulary");
    refused("start: <|none|>", (1, 8), "<|none|>", "has no such token");
    refused("start: A\nA: %json true", (2, 4), "%json", "a terminal is a regular language");
    refused("start: A\nA: <[1]>", (2, 4), "<[1]>", "a terminal is a regular language");
    refused("start: A\nA: @g", (2, 4), "@g", "a terminal is a regular language");
    refused("start: \"a\" & %lark { start: \"a\" }", (1, 14), "%lark", "`&` is a regular language");
    let message = "the dialect \"rust\" has no lookaround; take dialect=\"python\"";
    refused("start: /a(?=b)/", (1, 10), "lookaround `(?=`", message);
    refused(
        "start: x\nx[capture, suffix=/a|b/]: /c*/",
        (2, 1),
        "capture",
        "a marker of several forms",
    );
    refused(
        "start: tool* tail\ntail[capture]: T\nT: /(.|\\n)*/\ntool: h \"a\"\nh[lazy]: T \"b\"",
        (2, 1),
        "capture",
        "takes part in the free text",
    );
    refused(
        "start: (a | b)* tail\ntail: T\nT: /(.|\\n)*/\na: h\nb: T <[5]>\nh[lazy]: T \"b\"",
        (1, 1),
        "triggers of two kinds",
        "",
    );
}

#[test]
fn templates_and_changes() {
    wrong("start: t{\"a\"}", 1, 8, "there is no template `t`");
    wrong("start: t{\"a\", \"b\"}\nt{x}: x", 1, 8, "has 1 parameters, not 2");
    wrong("start: t\nt{x}: x", 1, 8, "is used without arguments");
    wrong("start: t{(\"a\" \"b\")}\nt{x}: x", 1, 19, "an argument of a template is a name");
    wrong("start: t{\"a\"\nt{x}: x", 2, 5, "found `:`");
    wrong("start: \"a\"\nt{x, x}: x", 2, 6, "named twice");
    wrong("start: \"a\"\nT{x}: x", 2, 1, "a template is a rule");
    wrong("%override X: \"a\"\nstart: X", 1, 11, "no `X` is");
    wrong("%extend start[lazy]: \"a\"\nstart: \"b\"", 1, 9, "attributes stand there");
}

#[test]
fn values_of_directives() {
    wrong("%llguidance 5\nstart: \"a\"", 1, 13, "its value is an object");
    wrong("%llguidance {\"x\": true}\nstart: \"a\"", 1, 13, "there is no option `x`");
    wrong("%llguidance {\"no_forcing\": 1}\nstart: \"a\"", 1, 28, "expected a text");
    wrong("%llguidance {\n \"no_forcing\": null}\nstart: \"a\"", 1, 13, "is true or false");
    wrong("start: %json", 1, 13, "a JSON value must follow `%json`");
    wrong("start: %json {", 1, 14, "does not end");
    wrong("start: %regex {}", 1, 15, "it says nothing");
    wrong("start: %regex {\"substring_chars\": [\"a\"]}", 1, 15, "`substring_chars` is a text");
    wrong("start: %regex {\"a\": \"b\"}", 1, 15, "there is no field `a`");
    wrong("start: %regex {\"substring_chars\": \"a\\x62\"}", 1, 35, "JSON has no escapes");
    wrong("start: %regex {\"a\": \"b\", \"a\": \"b\"}", 1, 26, "given twice");
}

#[test]
fn other_grammars() {
    wrong("start: @none", 1, 8, "no grammar is given for `@none`");
    wrong("start: @ring", 1, 12, "in the grammar `@ring`: `@ring`, `@ring2` is named by itself");
    wrong("start: @wrong", 1, 8, "in the grammar `@wrong`: `x` is not defined");
}

/// A condition at the edge of a terminal looks at the text around it, which the terminal is read without.
#[test]
fn conditions_that_look_around_a_terminal() {
    let refused = |pattern: &str, options: &LarkOptions| {
        let text = format!("start: \"x\" A \"y\"\nA: {pattern}");
        match within(&text, options, 1_000) {
            Err(Error::Unsupported { construct, position, .. }) => {
                assert_eq!((position.line, position.column), (2, 4), "{pattern}");
                construct.contains(" of a terminal")
            }
            Err(error) => panic!("{pattern}: {error}"),
            Ok(_) => false,
        }
    };
    let rust = LarkOptions::default();
    let both = [
        "/if\\b/",
        "/\\bif/",
        "/a(b|c\\b)/",
        "/(a\\b)+/",
        "/a\\bb?/",
        "/b?\\Ba/",
        "/(?m:a$)/",
        "/(?m:^a)/",
    ];
    for pattern in both {
        assert!(refused(pattern, &rust), "{pattern}");
        assert!(refused(pattern, &python()), "{pattern}");
    }
    let python_alone =
        ["/if(?!\\w)/", "/a(?=b)/", "/a((?=b)|c)/", "/(?<!x)b/", "/^b/", "/b$/", "/a(?!b)c?/"];
    for pattern in python_alone {
        assert!(refused(pattern, &python()), "{pattern}");
    }
    for pattern in ["/^b/", "/b$/", "/^(a|b)$/", "/a\\b-/"] {
        assert!(!refused(pattern, &rust), "{pattern}");
    }
    for pattern in [
        "/(?!if$)[a-z]+/",
        "/a(?=b)b/",
        "/ab(?<!x)c/",
        "/[a-z]+(?<!if)/",
        "/a\\b-/",
        "/(?!and\\b)\\w+/",
    ] {
        assert!(!refused(pattern, &python()), "{pattern}");
    }
}
