//! Texts that are deep, long or explode: an answer or a typed error, in bounded time.

use super::*;

fn limited(text: &str, limit: &str) {
    match lark(text) {
        Err(Error::Limit { limit: found, .. }) => assert_eq!(found, limit),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is within limits"),
    }
}

#[test]
fn deep_groups_are_refused() {
    for (open, close) in [("(", ")"), ("[", "]"), ("%lark {start:", "}"), ("t{", "}"), ("~(", ")")]
    {
        for closes in [0, 20_000] {
            limited(
                &format!("start: {}\"a\"{}", open.repeat(20_000), close.repeat(closes)),
                "max_nesting",
            );
        }
    }
    let text = format!("start: {}\"a\"{}", "(".repeat(900), ")+".repeat(900));
    assert!(lark(&text).is_ok());
}

#[test]
fn long_chains_are_read() {
    let chain = |name: &str, more: &str| {
        let lines: Vec<String> =
            (0..20_000).map(|at| format!("{name}{at}: {name}{} {more}", at + 1)).collect();
        format!("start: {name}0\n{}\n{name}20000: \"z\"", lines.join("\n"))
    };
    assert!(lark(&chain("X", "")).is_ok());
    assert!(lark(&chain("x", "")).is_ok());
    // Doubled in each link, terminals stay as long as they are written.
    let doubled: Vec<String> = (0..40).map(|at| format!("X{at}: X{0} X{0}", at + 1)).collect();
    let doubled = format!("start: X0\n{}\nX40: \"z\"", doubled.join("\n"));
    assert!(lark(&doubled).is_ok());
    limited(&format!("{doubled}\nY: X0 & /z*/"), "max_automaton_states");
}

#[test]
fn long_lists_are_read() {
    let words: Vec<String> = (0..20_000).map(|at| format!("\"w{at}\"")).collect();
    assert!(lark(&format!("start: {}", words.join(" | "))).is_ok());
    assert!(lark(&format!("start[lazy]: {}", words.join(" | "))).is_ok());
    assert!(lark(&format!("start: {}", words.join(" "))).is_ok());
    let lazies: Vec<String> =
        (0..5_000).map(|at| format!("x{at}[lazy]: W{at}\nW{at}: /a+/")).collect();
    assert!(lark(&format!("start: x7\n{}", lazies.join("\n"))).is_ok());
    let tokens = "start: <[0-1000000]>";
    assert!(lark(tokens).is_ok());
    limited("start: <[0-2000000000]>", "max_token_ids");
    let text = "a".repeat(20_000);
    assert!(lark(&format!("start: %regex {{\"substring_chars\": \"{text}\"}}")).is_ok());
}

#[test]
fn templates_end() {
    limited("start: t{\"a\"}\nt{x}: x t{u{x}}\nu{x}: \"(\" x \")\"", "max_template_rules");
    let doubled: Vec<String> = (0..12)
        .map(|at| format!("t{at}{{x}}: t{}{{a{{x}}}} t{}{{b{{x}}}}", at + 1, at + 1))
        .collect();
    let text = format!(
        "start: t0{{\"a\"}}\n{}\nt12{{x}}: x\na{{x}}: x \"a\"\nb{{x}}: x \"b\"",
        doubled.join("\n")
    );
    let _ = lark(&text).map(|grammar| assert!(grammar.rules().len() < 1 << 15));
}

#[test]
fn automata_that_explode_end() {
    limited("start: A & B\nA: /(a|b)*a(a|b){40}/\nB: /(a|b)*b(a|b){41}/", "max_automaton_states");
    let limits = Limits { max_network_work: 5_000, ..Limits::default() };
    let options = LarkOptions { limits, ..LarkOptions::default() };
    let words: Vec<String> = (0..20_000).map(|at| format!("\"w{at}\"")).collect();
    let error = within(&format!("start: {}", words.join(" ")), &options, 100_000);
    assert!(matches!(error, Err(Error::Limit { limit: "max_network_work", .. })));
}

#[test]
fn every_beginning_of_a_text_is_answered() {
    let text = "%import common.INT\n%ignore /[ ]+/ \n?start.3[lazy, stop=\"é\"]: (\"a\"i | \"b\"..\"c\")~2..3 [x] -> y\n\
                x: t{\"a\", INT}{1,2} <[1-3]> <|end|> @g %json {\"const\": 1}\nt{a, b}: a & ~b\n\
                y: %lark { start: \"\\u0061\\x62\" } %regex {\"substring_chars\": \"ab\"}\n%llguidance {\"no_forcing\": true}";
    for (at, _) in text.char_indices() {
        let _ = lark(&text[..at]);
        let _ = lark(&text[at..]);
        let _ = lark(&format!("{}\0{}", &text[..at], &text[at..]));
        for sign in ["(", "]", "{", "~", "&", "|", "\n", "\"", "/", "<", "%"] {
            let _ = lark(&format!("{}{sign}{}", &text[..at], &text[at..]));
        }
    }
}

#[test]
fn sizes_are_limited() {
    let limits = Limits { max_grammar_bytes: 20, ..Limits::default() };
    let options = LarkOptions { limits, ..LarkOptions::default() };
    let error = within("start: \"aaaaaaaaaaaaaaaaaaaaaaaaaaa\"", &options, 10);
    assert!(matches!(error, Err(Error::Limit { limit: "max_grammar_bytes", value: 20, .. })));
    let limits = Limits { max_rules: 2, ..Limits::default() };
    let options = LarkOptions { limits, ..LarkOptions::default() };
    assert!(within("start: x\nx: \"a\"", &options, 10).is_ok());
    let error = within("start: x\nx: \"a\"\ny: \"b\"", &options, 10);
    assert!(matches!(error, Err(Error::Limit { limit: "max_rules", .. })));
}
