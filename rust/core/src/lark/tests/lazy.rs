//! Rules that end as soon as they can, and free text with tools.

use super::*;

#[test]
fn a_lazy_rule_ends_where_it_can() {
    same("start: x \"b\"\nx[lazy]: /[ab]*b/", "root ::= \"a\"* \"bb\"", "abc");
    same("start: x\nx[lazy]: \"a\" \"b\"*", "root ::= \"a\"", "ab");
    same("start: x \"a\"\nx[lazy]: /.*/", "root ::= \"a\"", "ab");
    same(
        "start: x \"b\"\nx[lazy]: \"ab\" | \"abb\" | \"b\"",
        "root ::= (\"ab\" | \"b\") \"b\"",
        "ab",
    );
    same(
        "start: x \"a\"\nx[lazy]: T+ \"!\"*\nT: \"ab\" | \"b\" | \"abb\"",
        "root ::= (\"ab\" | \"b\") \"a\"",
        "ab!",
    );
}

#[test]
fn markers_end_rules() {
    for ending in ["suffix", "stop"] {
        same(
            &format!("start: x \"b\"\nx[{ending}=\"c\"]: /[abc]*/"),
            "root ::= [ab]* \"cb\"",
            "abc",
        );
        same(
            &format!("start: x \"b\"\nx[{ending}=/c+/]: /[abc]*/"),
            "root ::= [ab]* \"cb\"",
            "abc",
        );
        same(
            &format!("start: x \"b\"\nx[lazy, {ending}=END]: /[ab]*/\nEND: \"c\" | \"b\""),
            "root ::= \"a\"* [bc] \"b\"",
            "abc",
        );
        same(&format!("start: x\nx[{ending}=\"C\"i]: /[ab]*/"), "root ::= [ab]* [cC]", "abcC");
    }
    // The marker is needed, also behind any text: XGrammar lets such a rule end without.
    same("start: x\nx[lazy]: T \"c\"\nT: /(.|\\n)*/", "root ::= [^c]* \"c\"", "abc");
}

#[test]
fn what_is_ignored_stands_behind_lazy_rules() {
    same(
        "start: x \"a\"\nx[lazy]: \"a\" /b+/\n%ignore \" \"",
        "root ::= \"ab\" \" \"* \"a\" \" \"*",
        "ab ",
    );
}

#[test]
fn captures_show_what_stands_before_the_marker() {
    let text = "start: x \"z\"\nx[capture, suffix=\"!\"]: /[a!]*/";
    let printed = syntax::print(&lark(text).expect("it is a grammar"));
    assert!(printed.contains("x ::= x.body \"!\"\n"), "{printed}");
    assert!(printed.contains("x.body[capture=\"x\"] ::= "), "{printed}");
    same(text, "root ::= \"a\"* \"!z\"", "a!z");
    same(
        "start: x\nx[capture, stop=\"ab\"]: /[ab]*/",
        "root ::= \"b\"* (\"a\"+ \"b\" | \"\" \"ab\")",
        "abc",
    );
}

#[test]
fn tools_in_free_text() {
    let any = "TEXT: /(.|\\n)*/\ntail: TEXT\n";
    let root = "root ::= TagDispatch((\"c\", tool))\n";
    for head in [
        "h[lazy]: TEXT \"c\"",
        "h[suffix=\"c\"]: TEXT",
        "h[stop=/c/]: TEXT",
        "h[lazy]: /[\\s\\S]*c/",
    ] {
        let text = format!("start: tool* tail\n{any}tool: h \"a\" \"b\"\n{head}");
        same(&text, &format!("{root}tool ::= \"ab\""), "abc");
    }
    let two = format!(
        "start: (one | two)* tail\n{any}one: h \"a\"\ntwo: i \"b\"\nh[lazy]: TEXT \"c\"\ni[lazy]: TEXT \"c\""
    );
    same(&two, &format!("{root}tool ::= [ab]"), "abc");
    let apart = format!(
        "start: (one | two)* tail\n{any}one: h \"a\"\ntwo: i\ni[lazy]: TEXT \"d\"\nh[lazy]: TEXT \"c\""
    );
    same(&apart, "root ::= TagDispatch((\"c\", a), (\"d\", e))\na ::= \"a\"\ne ::= \"\"", "acd");
    let ignoring =
        format!("%ignore \" \"\nstart: tool* tail\n{any}tool: h \"a\" \"b\"\nh[lazy]: TEXT \"c\"");
    same(&ignoring, &format!("{root}tool ::= \" \"* \"a\" \" \"* \"b\" \" \"*"), "abc ");
    // A head that is not any text up to a trigger makes it a rule like others, too.
    for head in
        ["h[lazy]: /[ab]*c/", "h[lazy]: TEXT \"c\"?", "h[lazy]: TEXT /c|d/", "h: TEXT \"c\""]
    {
        let text = format!("start: tool* tail\n{any}tool: h \"a\"\n{head}");
        assert!(lark(&text).expect("it is a grammar").macros().is_empty(), "{text}");
    }
    // So does an attribute of a rule on the way to that text.
    let bounded = "start: tool* tail\nTEXT: /(.|\\n)*/\ntail: body\nbody[max_chars=3]: TEXT\ntool: h \"a\"\nh[lazy]: TEXT \"c\"";
    assert!(lark(bounded).expect("it is a grammar").macros().is_empty());
    let head = "start: h \"x\"\nh[lazy]: text <[5]>\ntext[max_chars=3]: /(.|\\n)*/";
    assert!(lark(head).is_err());
    // A tail that is not any text makes it a rule like others.
    let plain = "start: tool* tail\ntail: /[ab]/\ntool: h \"a\"\nh[lazy]: /[ab]*c/";
    same(plain, "root ::= ([ab]* \"ca\")* [ab]", "abc");
}

#[test]
fn tools_called_by_tokens() {
    let any = "TEXT: /(.|\\n)*/\ntail: TEXT\n";
    for tool in ["tool: TEXT <[5,6]> \"a\"", "tool: h \"a\"\nh[lazy]: TEXT <[5-6]>"] {
        let printed =
            syntax::print(&lark(&format!("start: tool* tail\n{any}{tool}")).expect("it is one"));
        let expected = "start ::= TokenTagDispatch((5, lark.tool.1), (6, lark.tool.2), loop_after_dispatch=true)";
        assert!(printed.replace(['\n', ' '], "").contains(&expected.replace(' ', "")), "{printed}");
    }
}
