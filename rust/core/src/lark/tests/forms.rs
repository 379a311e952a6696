//! Each form of a text.

use super::*;
use crate::grammar::{Expr, MacroArgument};

#[test]
fn rules_and_terminals() {
    same("start: a B\na: \"a\"\nB: \"b\" | C\nC: \"c\"", "root ::= \"a\" [bc]", "abc");
}

/// Leaves that are written alike are one expression: the body of several rules.
#[test]
fn terminals_of_one_pattern_are_all_there() {
    same("start: A*\nA: /[ab]+c?/\nB: /[ab]+c?/", "root ::= ([ab]+ \"c\"?)*", "abc");
    same("start: A B | C\nA: /a+/\nB: /a+/\nC: /a+b/", "root ::= \"a\"+ (\"a\"+ | \"b\")", "ab");
    same("start: x B\nx: A\nA: \"ab\"i\nB: \"ab\"i", "root ::= ([aA] [bB]){2}", "abAB");
}

#[test]
fn signs_before_and_behind_change_nothing() {
    let text = "?start.2: x -> one\n  | _y -> two // of two\n\n # a comment\n\n  | \"c\"\n!x: \"a\"\n!?_y.-1: \"b\"\nZ.5: \"z\"";
    same(text, "root ::= [abc]", "abc");
}

#[test]
fn lines_end_where_nothing_goes_on() {
    same(
        "\n\n  start: \"a\" (\n\"b\"\n | \"c\"\n)\n\n | \"d\"\n\n",
        "root ::= \"a\" [bc] | \"d\"",
        "abcd",
    );
    same("start:\n | \"a\"\r\n | \"b\"\r\nx: \"c\"\r\n", "root ::= \"\" | [ab]", "abc");
    same("start: \"a\" \\\n  \"b\" \\ \r\n\n | \"c\"", "root ::= \"ab\" | \"c\"", "abc");
    same("%declare X \\\n y\nstart: \"a\"", "root ::= \"a\"", "ab");
    same("\u{feff}start: \"a\"\"b\"i?\"c\"", "root ::= \"a\" [bB]? \"c\"", "abBc");
}

#[test]
fn patterns_over_several_lines() {
    let text = "start: /a b # c\n [c ] +/x";
    same(text, "root ::= \"ab\" [c]+", "abc ");
    for (dialect, has_blank) in [(PatternDialect::Rust, false), (PatternDialect::Python, true)] {
        let options = LarkOptions { dialect, ..LarkOptions::default() };
        let grammar = within(text, &options, 100_000).expect("both dialects have the flag");
        let texts = ["abc", "ab c", "a bc", "ab"].map(String::from);
        assert_eq!(accepts(&grammar, &texts), [true, has_blank, false, false], "{dialect:?}");
    }
}

#[test]
fn repetitions() {
    for (written, meant) in [
        ("?", "?"),
        ("*", "*"),
        ("+", "+"),
        ("~2", "{2}"),
        ("~1..3", "{1,3}"),
        (" ~ 1 .. 3", "{1,3}"),
        ("{2}", "{2}"),
        ("{1,3}", "{1,3}"),
        ("{2,}", "{2,}"),
        ("{ , 2}", "{0,2}"),
        ("~0", "{0}"),
    ] {
        let (text, expected) =
            (format!("start: \"ab\"{written} \"a\""), format!("root ::= \"ab\"{meant} \"a\""));
        same(&text, &expected, "ab");
        same(&format!("start: x{written} \"a\"\nx: \"ab\""), &expected, "ab");
        same(&format!("start: (\"a\" \"b\"){written} \"a\""), &expected, "ab");
        same(&format!("start: X \"a\"\nX: \"ab\"{written}"), &expected, "ab");
    }
    same("start: [\"a\" | \"b\"] \"c\"", "root ::= [ab]? \"c\"", "abc");
    // An operator ends a part: what stands behind it is another.
    same("start: \"a\"?b\nb: \"b\"", "root ::= \"a\"? \"b\"", "ab");
}

#[test]
fn literals_and_ranges() {
    same(r#"start: "\u0061\x62\U00000063""#, "root ::= \"abc\"", "abc");
    same(r#"start: "\ud83d\ude00" "\"" "\\" "\/""#, r#"root ::= "😀\"\\/""#, "😀\"\\/");
    same("start: \"aB1\"i", "root ::= [aA] [bB] \"1\"", "aAbB1");
    same("start: \"b\"..\"d\"", "root ::= [b-d]", "abcde");
    same("start: \"é\"i", "root ::= [éÉ]", "éÉe");
    // Letters of ASCII stand for letters of ASCII.
    same("start: \"k\"i \"s\"i", "root ::= [kK] [sS]", "kK\u{212A}sSſ");
    same("start: \"\" \"a\"", "root ::= \"a\"", "ab");
}

#[test]
fn patterns() {
    same("start: /a|b/ \"c\"", "root ::= [ab] \"c\"", "abc");
    same("start: /a.b/s /c/i", "root ::= \"a\" [^] \"b\" [cC]", "abcC\n");
    same("start: /a b # c\n  d/x", "root ::= \"abd\"", "abcd ");
    same("start: /\\//", "root ::= \"/\"", "/\\a");
    same("start: /[\\/]/", "root ::= \"/\"", "/a");
    same("start: /^(?:ab)+$/", "root ::= \"ab\"+", "ab");
    let texts = texts("1٣x", 1);
    for (dialect, expected) in [
        (PatternDialect::Rust, [false, true, true, false]),
        (PatternDialect::Python, [false, true, true, false]),
        (PatternDialect::Ecma, [false, true, false, false]),
    ] {
        let options = LarkOptions { dialect, ..LarkOptions::default() };
        let grammar = within("start: /\\d/", &options, 1_000).expect("it is a pattern");
        assert_eq!(accepts(&grammar, &texts), expected);
    }
    assert!(within("start: /a(?=b)b/", &python(), 1_000).is_ok());
}

#[test]
fn what_is_ignored_stands_behind_parts_and_not_in_terminals() {
    same("start: \"a\" \"b\"\n%ignore \" \"", "root ::= \"a\" \" \"* \"b\" \" \"*", "ab ");
    same(
        "start: A \"b\"\nA: \"a\" \"a\"\n%ignore \" \"",
        "root ::= \"aa\" \" \"* \"b\" \" \"*",
        "ab ",
    );
    same(
        "start: x? \"a\"\nx: \"b\"\n%ignore /[ ]/\n%ignore \"_\"",
        "root ::= (\"b\" [ _]*)? \"a\" [ _]*",
        "ab _",
    );
    same(
        "start: \"\" \"a\"..\"b\" /c/\n%ignore \" \"",
        "root ::= [ab] \" \"* \"c\" \" \"*",
        "abc ",
    );
    same("start: (\"a\" | \"b\")+\n%ignore WS\nWS: \" \"", "root ::= ([ab] \" \"*)+", "ab ");
    same(
        "start: \"a\" b \"c\"\nb[temperature=0.5]: \"b\" \"b\"?\n%ignore \" \"",
        "root ::= \"a\" \" \"* \"b\" \"b\"? \" \"* \"c\" \" \"*",
        "abc ",
    );
    same("start: \"a\" %json true\n%ignore \" \"", "root ::= \"a\" \" \"* [0-9]+ \" \"*", "a1 ");
    same("start: \"a\" \"b\"? & /ab?/\n%ignore \" \"", "root ::= \"a\" \"b\"? \" \"*", "ab ");
}

#[test]
fn settings() {
    let with =
        |name: &str| format!("%llguidance {{\"{name}\": true}}\n%ignore \" \"\nstart: \"a\" \"b\"");
    same(&with("allow_initial_skip"), "root ::= \" \"* \"a\" \" \"* \"b\" \" \"*", "ab ");
    same(&with("ignore_once"), "root ::= \"a\" \" \"? \"b\" \" \"?", "ab ");
    same(&with("no_forcing"), "root ::= \"a\" \" \"* \"b\" \" \"*", "ab ");
    same("%grammar_options {\"allow_invalid_utf8\": false}\nstart: \"a\"", "root ::= \"a\"", "ab");
    // A start rule that is one piece has what is ignored around it.
    same(
        "%llguidance {\"allow_initial_skip\": true}\n%ignore \" \"\nstart[lazy]: /[ab]+b/",
        "root ::= \" \"* [ab] \"a\"* \"b\" \" \"*",
        "ab ",
    );
}

#[test]
fn imports() {
    same("%import common.INT\nstart: INT", "root ::= [0-9]+", "019a");
    same(
        "start: N W\n%import common.INT -> N\n%import common (WORD)\nW: WORD",
        "root ::= [0-9]+ [A-Za-z]+",
        "1aA_",
    );
    // What an import brings along is out of the reach of other names.
    same("%import common.INT\nstart: INT DIGIT\nDIGIT: \"x\"", "root ::= [0-9]+ \"x\"", "01x");
    same(
        "%import common.C_COMMENT\nstart: C_COMMENT",
        "root ::= \"/*\" [^*]* \"*\"+ ([^*/] [^*]* \"*\"+)* \"/\"",
        "/*a",
    );
    same(
        "%import common.FLOAT\nstart: FLOAT",
        "root ::= d (e | ) | [0-9]+ e\nd ::= [0-9]+ \".\" [0-9]* | \".\" [0-9]+\ne ::= [eE] [+-]? [0-9]+",
        "1.e-",
    );
}

#[test]
fn definitions_are_overridden_and_extended() {
    same("%import common.DIGIT\n%override DIGIT: \"a\"\nstart: DIGIT", "root ::= \"a\"", "a1");
    same(
        "%extend X: \"b\" \"c\"\nstart: X X\nX: \"a\"",
        "root ::= (\"a\" | \"bc\") (\"a\" | \"bc\")",
        "abc",
    );
    same("start: x\nx: \"a\" x | \"b\"\n%extend x: \"c\"", "root ::= \"a\"* [bc]", "abc");
}

#[test]
fn templates() {
    same(
        "start: _sep{x, \",\"}\n_sep{i, s}: i (s i)*\nx: \"a\" | \"(\" _sep{x, \";\"} \")\"",
        "root ::= x (\",\" x)*\nx ::= \"a\" | \"(\" x (\";\" x)* \")\"",
        "a,;()",
    );
    same("start: two{two{\"a\"}} two{/b|c/}\ntwo{x}: x x", "root ::= \"aaaa\" [bc] [bc]", "abc");
    same(
        "start: t{\"a\", \"b\"} t{\"b\", \"a\"} t{\"a\", \"b\"}\nt{x, y}: x y",
        "root ::= \"abbaab\"",
        "ab",
    );
    same("start: t{x}\nt{y}: \"a\" t{y} | y\nx: \"b\"", "root ::= \"a\"* \"b\"", "ab");
    // A parameter hides a rule of its name.
    same("start: t{\"a\"} x\nt{x}: x\nx: \"b\"", "root ::= \"ab\"", "ab");
    // The case of a literal is part of an argument.
    same("start: t{\"a\"} t{\"a\"i}\nt{x}: x", "root ::= \"a\" [aA]", "aA");
}

#[test]
fn grammars_within() {
    same("start: \"a\" %json {\"const\": 1} \"b\"", "root ::= \"a1b\"", "ab1");
    same("start: %json\n{\"const\": 1} x\nx: %json {\"const\": 1}", "root ::= \"11\"", "ab1");
    same("start: x \"c\"\nx: \"a\" %lark {\n start: x x\n x: \"b\"\n}", "root ::= \"abbc\"", "abc");
    same(
        "start: %lark { %ignore \" \"\n start: \"a\" \"b\" } \"c\" \"d\"",
        "root ::= \"a\" \" \"* \"b\" \" \"* \"cd\"",
        "abcd ",
    );
    same(
        "start: %lark { start: %lark { start: \"a\" } x\nx: \"b\" } \"c\"\nx: \"d\"",
        "root ::= \"abc\"",
        "abcd",
    );
    same("start: @g \"d\" @h", "root ::= \"a\" \"_\"* [bc] \"_\"* \"d\" [bc]", "abcd_");
}

#[test]
fn substrings() {
    same(
        "start: %regex {\"substring_chars\": \"abca\"}",
        "root ::= \"\" | \"a\" | \"ab\" | \"abc\" | \"abca\" | \"b\" | \"bc\" | \"bca\" | \"c\" | \"ca\"",
        "abc",
    );
    same(
        "start: %regex {\"substring_chunks\": [\"ab\", \"\", \"a\", \"ab\"], \"substring_words\": null} \"c\"",
        "root ::= (\"\" | \"ab\" | \"aba\" | \"abaab\" | \"a\" | \"aab\") \"c\"",
        "abc",
    );
    same(
        "start: %regex {\"substring_words\": \"a_1 b\"}",
        "root ::= \"\" | \"a_1\" | \" \" | \"b\" | \"a_1 \" | \" b\" | \"a_1 b\"",
        "ab_1 ",
    );
    same(
        "start: S & /.../\nS: %regex {\"substring_chars\": \"abcd\"}",
        "root ::= \"abc\" | \"bcd\"",
        "abcd",
    );
}

#[test]
fn regular_operations() {
    same(
        "start: A\nA: /[ab]*/ & ~/(?s:.*)aa(?s:.*)/",
        "root ::= \"\" | x\nx ::= \"b\" x? | \"a\" (\"b\" x?)?",
        "abc",
    );
    same("start: A\nA: \"a\" | /b|c/ & /c|d/", "root ::= [ac]", "abcd");
    same("start: A \"x\"\nA: ~B+ & /[abx]/\nB: \"a\"", "root ::= [bx] \"x\"", "abx");
    same("start: ~(\"a\" | \"b\") & /./", "root ::= [^ab\\n]", "abc\n");
    same("start: L & ABC\nL: /[a-z]+/\nABC: /[abcABC]/", "root ::= [abc]", "abcA");
}

/// The macros of a grammar, as written.
fn macros(text: &str) -> Vec<(String, Vec<i64>)> {
    let grammar = lark(text).expect("it is a grammar");
    let calls = grammar.macros().into_iter().filter_map(|id| match grammar.expr(id) {
        Expr::Macro(call) => {
            let ids = call.positional.iter().filter_map(|argument| match argument {
                MacroArgument::Integer(id) => Some(*id),
                _ => None,
            });
            Some((call.name.clone(), ids.collect()))
        }
        _ => None,
    });
    let mut calls: Vec<_> = calls.collect();
    calls.sort_by_key(|call| !text.contains('\n') || call.0 == "Token");
    calls
}

#[test]
fn tokens() {
    let token = |ids: &[i64]| ("Token".to_owned(), ids.to_vec());
    let other = |ids: &[i64]| ("ExcludeToken".to_owned(), ids.to_vec());
    let text = "start: <[7]> <[5,1-3,2]> \"a\" <[^1-2]> <[*]> <|end|>";
    assert_eq!(
        macros(text),
        [token(&[7]), token(&[1, 2, 3, 5]), other(&[1, 2]), other(&[]), token(&[3, 7])]
    );
    assert_eq!(macros("start: h\nh[lazy]: T <[4]>\nT: /(.|\\n)*/"), [other(&[4]), token(&[4])]);
}

#[test]
fn options_of_rules_stay() {
    let text = "start[capture]: x y\nx[max_tokens=5, capture=\"a.b\"]: \"a\"\ny[temperature=0.5, max_chars=7]: \"b\"";
    let printed = syntax::print(&lark(text).expect("it is a grammar"));
    let expected = "start[capture=\"start\"] ::= x y\nx[max_tokens=5, capture=\"a.b\"] ::= \"a\"\n\
                    y[max_chars=7, temperature=0.5] ::= \"b\"\n";
    assert_eq!(printed, expected);
}

#[test]
fn another_start() {
    let options = LarkOptions { start: "x".into(), ..LarkOptions::default() };
    let grammar = within("start: \"a\"\nx: \"b\" @g", &options, 1_000).expect("it is a grammar");
    assert_eq!(accepts(&grammar, &["a".into(), "bac".into()]), [false, true]);
}

#[test]
fn printed_grammars_say_the_same() {
    let text = "start: x{\"a\"} INT b-c %json {\"const\": 1} @g\nx{y}: y\nb-c: \"b\"\n%import common.INT\n%ignore \" \"";
    let grammar = lark(text).expect("it is a grammar");
    let printed = syntax::print(&grammar);
    let again = syntax::parse(&printed, "start", &Limits::default()).expect(&printed);
    assert!(syntax::structurally_equal(&grammar, &again), "{printed}");
}
