//! Cases as data: texts with their printed form, and texts with their error.

use crate::error::Error;
use crate::grammar::{Expr, Grammar};
use crate::limits::Limits;

use super::{parse, print, structurally_equal};

fn read(text: &str) -> Result<Grammar, Error> {
    parse(text, "root", &Limits::default())
}

/// Bodies of `root`, before rules `a`, `b` and `c`, and how they print. The printed form must read
/// back as the same grammar.
const BODIES: &[(&str, &str)] = &[
    // Literals: every escape is a code point, encoded as UTF-8 does.
    (r#""a""#, r#""a""#),
    (r#""""#, r#""""#),
    (r#""\n\r\t\\\"\'\?\/""#, r#""\n\r\t\\\"'?/""#),
    (r#""\a\b\f\v\e\0""#, r#""\u0007\u0008\u000c\u000b\u001b\u0000""#),
    (r#""\012""#, r#""\u000012""#),
    (r#""\x41g\x1F600\x00E9h""#, r#""Ag\U0001f600\u00e9h""#),
    (r#""\x41 B""#, r#""A B""#),
    (r#""\x41B""#, r#""\u041b""#), // XGrammar: all digits; llama.cpp: "A" and "B"
    (r#""\u00e9f\U0001F600""#, r#""\u00e9f\U0001f600""#),
    (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#), // two surrogates, not one character
    (r#""\xff""#, r#""\u00ff""#),
    ("\"é😀\u{7f}\"", r#""\u00e9\U0001f600\u007f""#),
    (r#""\[\]\-""#, r#""[]-""#), // GBNF
    ("\"a\tb\"", r#""a\tb""#),
    (r##""#" # comment "b"##, r##""#""##),
    (r#""a" "b""c""#, r#""a" "b" "c""#),
    // Classes.
    ("[a-zA-Z_]", "[A-Z_a-z]"),
    ("[]", "[]"),
    ("[^]", "[^]"),
    (".", "[^]"),
    ("[^^]", r"[^\^]"),
    ("[a^]", r"[\^a]"),
    ("[-a] [a-] [-] [--] [---] [^-]", r"[\-a] [\-a] [\-] [\-] [\-] [^\-]"),
    ("[a-c-e]", r"[\-a-ce]"),
    (r"[a\-z]", r"[\-az]"),
    (r"[\]\[\\]", r"[\[-\]]"),
    (r#"["'] [#]"#, r#"["'] [#]"#),
    (r#"[\^\$\.\*\+\?\(\)\{\}\|\/]"#, r"[$(-+./?\^{-}]"),
    (r#"[^"\\\x7F\x00-\x1F]"#, r#"[^\u0000-\u001f"\\\u007f]"#),
    (r"[\u00e9-\u00fc\U0001F600\x1F601]", r"[\u00e9-\u00fc\U0001f600\U0001f601]"),
    ("[é-ü]", r"[\u00e9-\u00fc]"),
    (r"[\ud800-\udfff]", r"[\ud800-\udfff]"),
    (r"[\x80-\U0010FFFF]", r"[^\u0000-\u007f]"),
    // Sequences, alternatives, groups: single ones collapse, others stay as grouped.
    ("((a))", "a"),
    ("()", r#""""#),
    ("a (b c) | (a | b) | c", "a (b c) | (a | b) | c"),
    ("(a b) | c", "a b | c"),
    ("a |", r#"a | """#),
    ("| a", r#""" | a"#),
    ("(a | | b)", r#"a | "" | b"#),
    ("(|)", r#""" | """#),
    ("\n\n a\n |\r\n b # or\n\r | c\n", "a | b | c"),
    ("a\nb", "a b"),
    ("root | a root", "root | a root"),
    // Repetitions.
    ("a? b* c+", "a? b* c+"),
    ("a{0} a{1} a{2} a{02}", "a{0} a{1} a{2} a{2}"),
    ("a{2,} a{0,} a{1,}", "a{2,} a* a+"),
    ("a{2,3} a{0,1} a{2,2}", "a{2,3} a? a{2}"),
    ("a{0, -1} a{ 1 ,\n-1 }", "a* a+"),
    ("a{4294967295} a{0,4294967295}", "a{4294967295} a{0,4294967295}"),
    ("a *\n?", "(a*)?"), // stacked: GBNF only
    ("a{2}{3}", "(a{2}){3}"),
    ("(a b)* (a | b)+ (a*)*", "(a b)* (a | b)+ (a*)*"),
    (r#""ab"*"#, r#""ab"*"#),
    // GBNF's dot between names; a dotted name that is defined is a name.
    ("a.b", "a [^] b"),
    (".. .*", "[^] [^] [^]*"),
    ("a.*", "a [^]*"),
    ("d.e\nd.e ::= a.", "d.e\nd.e ::= a [^]"),
    // Names.
    (
        "_x-1.y 1a true\n_x-1.y ::= a\n1a ::= a\ntrue ::= a",
        "_x-1.y 1a true\n_x-1.y ::= a\n1a ::= a\ntrue ::= a",
    ),
    ("(Token) (Regex) a\nToken ::= a\nRegex ::= b", "(Token) (Regex) a\nToken ::= a\nRegex ::= b"),
    // Lookahead.
    (r#"a | b (= "c" a)"#, r#"a | b (="c" a)"#),
    (r#"a (=b | (c))"#, "a (=b | c)"),
    // Macros.
    ("Token(3, 1,1) Token ( 5 )*", "Token(3, 1, 1) Token(5)*"),
    ("ExcludeToken(0,2147483647)", "ExcludeToken(0, 2147483647)"),
    ("<[12]> !<[0]>+", "Token(12) ExcludeToken(0)+"), // GBNF
    (
        "TagDispatch(\n  (\"<a>\", a),\n  (\"<b>\", b),\n  loop_after_dispatch=false,\n  excludes=(\"x\", \"y\",)\n)",
        "TagDispatch((\"<a>\", a), (\"<b>\", b), loop_after_dispatch=false, excludes=(\"x\", \"y\"))",
    ),
    ("TagDispatch()", "TagDispatch()"),
    ("a TagDispatch(excludes=()) b", "a TagDispatch(excludes=()) b"),
    (
        "TagDispatch(excludes=(\"x\"), excludes=(\"y\"))", // the later one counts
        "TagDispatch(excludes=(\"y\"))",
    ),
    ("TokenTagDispatch((5, a), excludes=(7))?", "TokenTagDispatch((5, a), excludes=(7))?"),
    (r#"Regex("[a-z]+\\d\"", json_string=true)"#, r#"Regex("[a-z]+\\d\"", json_string=true)"#),
    (r#"Substring("ab", "", "c")"#, r#"Substring("ab", "", "c")"#),
    ("Substring()", "Substring()"),
];

#[test]
fn bodies() {
    for &(text, printed) in BODIES {
        let tail = "a ::= \"a\"\nb ::= \"b\"\nc ::= \"c\"\n";
        let grammar = read(&format!("root ::= {text}\n{tail}"));
        let grammar = grammar.unwrap_or_else(|e| panic!("{text}\n{e}"));
        let found = print(&grammar);
        assert_eq!(found, format!("root ::= {printed}\n{tail}"), "{text}");
        let again = read(&found).unwrap_or_else(|e| panic!("{text}\n{found}\n{e}"));
        assert!(structurally_equal(&grammar, &again), "{text}");
    }
}

/// Whole texts, and how they print.
const GRAMMARS: &[(&str, &str)] = &[
    ("\u{feff}root::=\"a\"", "root ::= \"a\"\n"),
    ("# c\n\n  root ::=a\n a\n::= # c\n \"x\" #", "root ::= a\na ::= \"x\"\n"),
    ("root::=a\ra::=\"x\"\r\n", "root ::= a\na ::= \"x\"\n"),
    ("root[capture]::=[x]", "root[capture=\"root\"] ::= [x]\n"),
    (
        "root[ max_tokens = 05 ,\tmax_chars=0,lazy ] ::= [x]",
        "root[max_tokens=5, max_chars=0, lazy] ::= [x]\n",
    ),
    ("root[capture=\"é ]\"] ::= [x]", "root[capture=\"é ]\"] ::= [x]\n"),
    (
        "root[temperature=1e-5, lazy, stop_capture=\"a b\", capture, max_tokens=4294967295] ::= [x]",
        "root[max_tokens=4294967295, capture=\"root\", stop_capture=\"a b\", lazy, temperature=0.00001] ::= [x]\n",
    ),
    ("root[temperature=.5] ::= [x]", "root[temperature=0.5] ::= [x]\n"),
    ("root[temperature=0.100000001] ::= [x]", "root[temperature=0.100000001] ::= [x]\n"),
    (
        "root[capture_hidden_suffix_bytes=4, capture_hidden_stop_bytes=3] ::= [x]",
        "root[capture_hidden_suffix_bytes=4, capture_hidden_stop_bytes=3] ::= [x]\n",
    ),
    (
        "root[capture_hidden_body_rule_id=1, capture_hidden_marker_rule_id=0] ::= [x]\na::=\"\"",
        "root[capture_hidden_body_rule_id=1, capture_hidden_marker_rule_id=0] ::= [x]\na ::= \"\"\n",
    ),
    // A bracket after a name is a class unless `::=` follows it.
    ("root ::= a[lazy]\na[lazy] ::= [\"] a[\"]", "root ::= a [alyz]\na[lazy] ::= [\"] a [\"]\n"),
];

#[test]
fn grammars() {
    for &(text, printed) in GRAMMARS {
        let grammar = read(text).unwrap_or_else(|e| panic!("{text}\n{e}"));
        let found = print(&grammar);
        assert_eq!(found, printed, "{text}");
        let again = read(&found).unwrap_or_else(|e| panic!("{found}\n{e}"));
        assert!(structurally_equal(&grammar, &again), "{text}");
    }
}

/// Texts that are refused: line, column, message.
const ERRORS: &[(&str, u32, u32, &str)] = &[
    ("", 1, 1, "the grammar has no rules; write at least `root ::= \"...\"`"),
    ("# only\n", 2, 1, "the grammar has no rules; write at least `root ::= \"...\"`"),
    (
        "root",
        1,
        5,
        "found the end of the text, expected `::=` after the name of a rule; a rule is written `name ::= ...`",
    ),
    (
        "root =",
        1,
        6,
        "found `=`, expected `::=` after the name of a rule; a rule is written `name ::= ...`",
    ),
    (
        "root = \"a\"",
        1,
        6,
        "found `=`, expected `::=` after the name of a rule; a rule is written `name ::= ...`",
    ),
    ("root: \"a\"", 1, 5, "found `:`, which begins nothing here; a rule is written `name ::= ...`"),
    (
        "root := \"a\"",
        1,
        6,
        "found `:`, which begins nothing here; a rule is written `name ::= ...`",
    ),
    (
        "root -> a",
        1,
        6,
        "found `-`, expected `::=` after the name of a rule; a rule is written `name ::= ...`",
    ),
    ("::= \"a\"", 1, 1, "found `::=` without the name of a rule before it; write `name ::= ...`"),
    ("\"a\"", 1, 1, "found `\"a\"`, expected a rule, written `name ::= ...`"),
    (
        "root ::=\na ::= \"x\"",
        1,
        1,
        "the rule \"root\" has no right-hand side; write `\"\"` for the empty string",
    ),
    (
        "root ::= # c\n",
        1,
        1,
        "the rule \"root\" has no right-hand side; write `\"\"` for the empty string",
    ),
    ("root ::= a\n\na = \"x\"", 3, 3, "found `=` after \"a\"; write `a ::= ...`"),
    ("root ::= a\na : \"x\"", 2, 3, "found `:` after \"a\"; write `a ::= ...`"),
    (
        "root ::= \"a\nb ::= \"x\"",
        1,
        10,
        "this `\"` is not closed on its line; add the closing `\"`, and write a line end in a literal as `\\n`",
    ),
    (
        "root ::= \"a\\",
        1,
        10,
        "this `\"` is not closed on its line; add the closing `\"`, and write a line end in a literal as `\\n`",
    ),
    (
        "root ::= [a-z\n",
        1,
        10,
        "this `[` is not closed on its line; add the closing `]`, and write a line end in a class as `\\n`",
    ),
    ("root ::= (a | b\nb ::= a\na::=\"x\"", 1, 10, "this `(` is not closed in its rule; add a `)`"),
    ("root ::= ((\"a\")", 1, 10, "this `(` is not closed in its rule; add a `)`"),
    ("root ::= \"a\")", 1, 13, "this `)` closes nothing; remove it or add a `(`"),
    ("root ::= \"a\"}", 1, 13, "this `}` closes nothing; remove it or add a `{`"),
    (
        "root ::= \"a\"]",
        1,
        13,
        "found `]`, which begins nothing here; write `\"]\"` for the character itself",
    ),
    ("root ::= \"a\"{3,1}", 1, 13, "the repetition `{3,1}` has its bounds reversed; write `{1,3}`"),
    ("root ::= \"a\"{,3}", 1, 13, "`{,n}` is not in the language; write `{0,n}`"),
    (
        "root ::= \"a\"{}",
        1,
        14,
        "found `}`, expected an integer, the bound of a repetition, as in `{2}`, `{2,}` or `{2,3}`",
    ),
    (
        "root ::= \"a\"{2",
        1,
        15,
        "found the end of the text, expected `,` or `}` after the lower bound of a repetition",
    ),
    (
        "root ::= \"a\"{2 3}",
        1,
        16,
        "found `3`, expected `,` or `}` after the lower bound of a repetition",
    ),
    (
        "root ::= \"a\"{2,3",
        1,
        17,
        "found the end of the text, expected `}` after the bounds of a repetition",
    ),
    (
        "root ::= \"a\"{-1}",
        1,
        14,
        "found `-1`, expected an integer, the bound of a repetition, as in `{2}`, `{2,}` or `{2,3}`",
    ),
    (
        "root ::= \"a\"{x}",
        1,
        14,
        "found the name `x`, expected an integer, the bound of a repetition, as in `{2}`, `{2,}` or `{2,3}`",
    ),
    (
        "root ::= \"a\"{0,-2}",
        1,
        16,
        "found `-2`, expected an integer, the bound of a repetition, as in `{2}`, `{2,}` or `{2,3}`",
    ),
    (
        "root ::= \"é\"{5000000000}",
        1,
        14,
        "the repetition bound 5000000000 is greater than 4294967295; write `{m,}` for no upper bound",
    ),
    (
        "root ::= * \"a\"",
        1,
        10,
        "`*` has nothing before it to repeat; put it after a literal, a class, a name or a group, or write \"*\" for the character itself",
    ),
    (
        "root ::= \"a\" | +",
        1,
        16,
        "`+` has nothing before it to repeat; put it after a literal, a class, a name or a group, or write \"+\" for the character itself",
    ),
    (
        "root ::= ({2})",
        1,
        11,
        "`{` has nothing before it to repeat; put it after a literal, a class, a name or a group, or write \"{\" for the character itself",
    ),
    (
        "root ::= \"é\\q\"",
        1,
        12,
        "`\\q` is not an escape; write `\\\\` for a backslash, or one of \\n \\r \\t \\0 \\\" \\' \\xHH \\uHHHH \\UHHHHHHHH",
    ),
    ("root ::= \"\\d\"", 1, 11, "`\\d` is not an escape of this language; write `[0-9]`"),
    ("root ::= [\\w]", 1, 11, "`\\w` is not an escape of this language; write `[a-zA-Z0-9_]`"),
    ("root ::= \"\\.\"", 1, 11, "`\\.` is not an escape in a literal; write `.` as it is"),
    ("root ::= \"\\x\"", 1, 11, "`\\x` needs at least 1 hexadecimal digits, found 0"),
    ("root ::= \"\\u12\"", 1, 11, "`\\u` needs 4 hexadecimal digits, found 2"),
    ("root ::= [\\U0011]", 1, 11, "`\\U` needs 8 hexadecimal digits, found 4"),
    (
        "root ::= \"\\x110000\"",
        1,
        11,
        "`\\x` names a code point past U+10FFFF, the last one; `\\x` takes every hexadecimal digit that follows, so write `\\u00HH` before a digit",
    ),
    ("root ::= [\\U00110000]", 1, 11, "`\\U` names a code point past U+10FFFF, the last one"),
    (
        "root ::= [a z-a]",
        1,
        13,
        "the range `z-a` is reversed (U+007A is greater than U+0061); write the smaller end first, or `\\-` for a dash",
    ),
    (
        "root ::= [\\]-Z]",
        1,
        11,
        "the range `\\]-Z` is reversed (U+005D is greater than U+005A); write the smaller end first, or `\\-` for a dash",
    ),
    (
        "root ::= \"x\" exprr\nexpr ::= \"y\"",
        1,
        14,
        "the rule \"exprr\" is not defined; the nearest name is \"expr\"",
    ),
    (
        "root ::= foo",
        1,
        10,
        "the rule \"foo\" is not defined; define it, or write it in double quotes if it is text",
    ),
    (
        "root ::= a.zzz\na ::= \"x\"",
        1,
        10,
        "the rule \"a.zzz\" is not defined; define it, or write it in double quotes if it is text",
    ),
    (
        "root ::= \"a\"\nroot ::= \"b\"",
        2,
        1,
        "the rule \"root\" is defined twice, first on line 1; rename one, or join them with `|`",
    ),
    (
        "a ::= \"a\"",
        1,
        1,
        "no rule is named \"root\", the start rule asked for; the rules are \"a\"; ask for one of them or add it",
    ),
    (
        "rot ::= \"a\"\nb::=rot\nc::=b\nd::=c\ne::=d\nf::=e\ng::=f",
        1,
        1,
        "no rule is named \"root\", the start rule asked for; the rules are \"rot\", \"b\", \"c\", \"d\", \"e\", and 2 more; ask for \"rot\" or rename it",
    ),
    ("root ::= \"a\" b ::= \"c\"", 1, 14, "the rule \"b\" must begin on a line of its own"),
    (
        "root [lazy] ::= \"c\"",
        1,
        6,
        "expected `::=` after the name of a rule; options stand in brackets directly after the name, as in `name[lazy] ::= ...`",
    ),
    ("root ::= 'a'", 1, 10, "literals have double quotes, found 'a'; write \"...\""),
    (
        "root ::= \"a\"; b",
        1,
        13,
        "found `;`, which begins nothing here; comments begin with `#`, and rules have no end mark",
    ),
    (
        "root ::= \"a\" // b",
        1,
        14,
        "found `/`, which begins nothing here; comments begin with `#`, and rules have no end mark",
    ),
    (
        "root ::= \"a\"\u{a0}\"b\"",
        1,
        13,
        "found `U+00A0`, which begins nothing here; write it in a literal, and use plain spaces between words",
    ),
    ("root ::= \"a\0\"", 1, 12, "a NUL byte cannot stand in grammar text; write `\\0`"),
    (
        "root ::= \"a\"\0",
        1,
        13,
        "a NUL byte cannot stand in grammar text; write `\\0` in a literal",
    ),
    (
        "root ::= \"a\" # \0",
        1,
        16,
        "a NUL byte cannot stand in grammar text; write `\\0` in a literal",
    ),
    (
        "root ::= a < b\na::=\"x\"",
        1,
        12,
        "found `<`, which begins nothing here; a token is written `Token(id)` or `<[id]>`",
    ),
    (
        "root ::= !a",
        1,
        10,
        "found `!`, which begins nothing here; a token that may not come is written `!<[id]>`",
    ),
    (
        "root ::= \"a\", \"b\"",
        1,
        13,
        "found `,`, expected a literal, a class, the name of a rule or a group",
    ),
    ("root ::= \"a\" = \"b\"", 1, 14, "found `=`; a rule is written `name ::= ...`"),
    (
        "root ::= \\n",
        1,
        10,
        "found `\\`, which begins nothing here; escapes stand in literals and classes only",
    ),
    (
        "root ::= \"a\" (=\"b\") \"c\"",
        1,
        21,
        "found `\"c\"`, expected the next rule, since a lookahead `(= ...)` ends its rule",
    ),
    (
        "root ::= (\"a\" (=\"b\"))",
        1,
        15,
        "a lookahead `(= ...)` can only end a rule, outside every group; make the group a rule of its own",
    ),
    (
        "root ::= \"a\" (=\"b\"",
        1,
        19,
        "found the end of the text, expected the `)` that closes the lookahead `(= ...)`",
    ),
    ("root ::= \"a\" (=)", 1, 14, "the lookahead `(= ...)` is empty; write what must follow"),
    (
        "root ::= \"a\" (=\"b\" (=\"c\"))",
        1,
        20,
        "a lookahead `(= ...)` cannot stand inside another",
    ),
    (
        "root ::= (=\"b\")",
        1,
        1,
        "the rule \"root\" has no right-hand side; write `\"\"` for the empty string",
    ),
    ("root[lasy] ::= \"a\"", 1, 6, "there is no option `lasy`; write `lazy`"),
    (
        "root[foo] ::= \"a\"",
        1,
        6,
        "there is no option `foo`; the options are max_tokens, max_chars, capture, stop_capture, lazy, temperature",
    ),
    (
        "root[] ::= \"a\"",
        1,
        6,
        "expected an option (max_tokens, max_chars, capture, stop_capture, lazy, temperature), found `]`",
    ),
    (
        "root[lazy,] ::= \"a\"",
        1,
        11,
        "expected an option (max_tokens, max_chars, capture, stop_capture, lazy, temperature), found `]`",
    ),
    ("root[lazy, lazy] ::= \"a\"", 1, 12, "the option `lazy` is given twice; remove one"),
    ("root[max_tokens] ::= \"a\"", 1, 16, "expected `=` and a value after `max_tokens`, found `]`"),
    (
        "root[max_tokens=x] ::= \"a\"",
        1,
        17,
        "expected an integer as the value of `max_tokens`, found `x`",
    ),
    (
        "root[max_tokens=99999999999] ::= \"a\"",
        1,
        17,
        "`max_tokens` is 99999999999, which is greater than 4294967295",
    ),
    (
        "root[capture=x] ::= \"a\"",
        1,
        14,
        "expected a string in double quotes after `capture=`, found `x`",
    ),
    ("root[capture=\"\"] ::= \"a\"", 1, 14, "the name given by `capture` is empty; write one"),
    (
        "root[capture=\"a\\\"] ::= \"a\"",
        1,
        16,
        "expected the closing `\"` (a name has no escapes), found `\\`",
    ),
    (
        "root[temperature=-1] ::= \"a\"",
        1,
        18,
        "the temperature must be a finite number of at least 0, found -1",
    ),
    (
        "root[temperature=1e39] ::= \"a\"",
        1,
        18,
        "the temperature must be a finite number of at least 0, found 1e39",
    ),
    ("root[temperature=1e] ::= \"a\"", 1, 18, "`1e` is not a number"),
    ("root[temperature=] ::= \"a\"", 1, 18, "expected a number as the `temperature`, found `]`"),
    ("root[lazy max_tokens=1] ::= \"a\"", 1, 11, "expected `,` or `]` after an option, found `m`"),
    (
        "root[capture_hidden_body_rule_id=0] ::= \"a\"",
        1,
        5,
        "give both of `capture_hidden_body_rule_id` and `capture_hidden_marker_rule_id`, or neither",
    ),
    (
        "root[capture_hidden_body_rule_id=0,capture_hidden_marker_rule_id=1] ::= \"a\"",
        1,
        36,
        "`capture_hidden_marker_rule_id` is 1, but rules are numbered 0 to 0",
    ),
    (
        "root[capture_hidden_stop_bytes=0] ::= \"a\"",
        1,
        6,
        "`capture_hidden_stop_bytes` must be at least 1",
    ),
    (
        "root ::= Token",
        1,
        15,
        "found the end of the text, expected `(` after Token, which takes arguments",
    ),
    ("root ::= Token()", 1, 10, "Token: at least one token id is needed; write Token(id, ...)"),
    (
        "root ::= Token(-1)",
        1,
        10,
        "Token: a token id must be an integer from 0 to 2147483647; write Token(id, ...)",
    ),
    (
        "root ::= Token(1,)",
        1,
        18,
        "found `)`, expected an argument: a literal, an integer, true, false, the name of a rule",
    ),
    (
        "root ::= Token(2147483648)",
        1,
        10,
        "Token: a token id must be an integer from 0 to 2147483647; write Token(id, ...)",
    ),
    (
        "root ::= Token(99999999999999999999)",
        1,
        16,
        "the integer 99999999999999999999 is too great",
    ),
    ("root ::= Token(x=1)", 1, 16, "Token has no argument `x`; write Token(id, ...)"),
    ("root ::= <[2147483648]>", 1, 10, "the token id 2147483648 is greater than 2147483647"),
    (
        "root ::= TagDispatch((\"t\"))",
        1,
        10,
        "TagDispatch: each pair must be a trigger and the name of a rule; write TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "root ::= TagDispatch(\"t\")",
        1,
        10,
        "TagDispatch: each argument must be a pair in parentheses; write TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "root ::= TagDispatch((\"\", root))",
        1,
        10,
        "TagDispatch: a tag or excluded text must be a literal that is not empty; write TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "root ::= TagDispatch((\"t\", roo))",
        1,
        28,
        "the rule \"roo\" is not defined; the nearest name is \"root\"",
    ),
    (
        "root ::= TagDispatch((\"tab\", root), excludes=(\"x\", \"ta\"))",
        1,
        10,
        "TagDispatch: an excluded text or token must not begin a trigger; write TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "root ::= TagDispatch(loop_after_dispatch=1)",
        1,
        10,
        "TagDispatch: `loop_after_dispatch` must be true or false; write TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "root ::= TagDispatch(excludes=\"x\")",
        1,
        10,
        "TagDispatch: `excludes` must be a list in parentheses; write TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))",
    ),
    (
        "root ::= TokenTagDispatch((5, root), excludes=(5))",
        1,
        10,
        "TokenTagDispatch: an excluded text or token must not begin a trigger; write TokenTagDispatch((token id, rule), ..., loop_after_dispatch=true, excludes=(token id, ...))",
    ),
    (
        "root ::= TokenTagDispatch((\"x\", root))",
        1,
        10,
        "TokenTagDispatch: a token id must be an integer from 0 to 2147483647; write TokenTagDispatch((token id, rule), ..., loop_after_dispatch=true, excludes=(token id, ...))",
    ),
    (
        "root ::= TagDispatch(((\"t\", root)))",
        1,
        23,
        "found `(`, expected an argument: a literal, an integer, true, false, the name of a rule",
    ),
    (
        "root ::= Regex(5)",
        1,
        10,
        "Regex: exactly one literal, the pattern, is needed; write Regex(\"pattern\", json_string=false)",
    ),
    (
        "root ::= Regex(\"a\", json_string=1)",
        1,
        10,
        "Regex: `json_string` must be true or false; write Regex(\"pattern\", json_string=false)",
    ),
    (
        "root ::= Substring(\"a\", 5)",
        1,
        10,
        "Substring: every argument must be a literal; write Substring(\"chunk\", ...)",
    ),
    ("root ::= Regex(\"a\" \"b\")", 1, 20, "found `\"b\"`, expected `,` or `)` after an argument"),
    (
        "root ::= Regex(\"a\"",
        1,
        19,
        "found the end of the text, expected `,` or `)` after an argument",
    ),
];

#[test]
fn errors() {
    for &(text, line, column, message) in ERRORS {
        match read(text) {
            Err(Error::Syntax { message: found, position }) => {
                assert_eq!(
                    (position.line, position.column, found.as_str()),
                    (line, column, message),
                    "{text}"
                );
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn tokens_named_by_their_text_are_unsupported() {
    for (text, construct, column) in
        [("root ::= <think>", "<think>", 10), ("root ::= [é] !<[x]>", "!<[x]>", 14)]
    {
        match read(text) {
            Err(Error::Unsupported { construct: found, message, position }) => {
                assert_eq!(
                    (found.as_str(), position.line, position.column),
                    (construct, 1, column)
                );
                assert!(message.contains("write its id"), "{message}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn any_rule_can_be_the_root() {
    let text = "a ::= b | b a\nb ::= \"x\"";
    for (root, index) in [("a", 0), ("b", 1)] {
        let grammar = parse(text, root, &Limits::default()).expect("the text is a grammar");
        assert_eq!(grammar.root().index(), index);
    }
}

#[test]
fn positions_count_code_points() {
    let grammar =
        read("root ::= \"é\" a [é]\r\n  a ::= (\"x\" | a)*").expect("the text is a grammar");
    let found: Vec<_> = (0..grammar.exprs().len())
        .map(crate::ids::ExprId::new)
        .map(|id| (grammar.position(id).line, grammar.position(id).column, kind(grammar.expr(id))))
        .collect();
    assert_eq!(
        found,
        [
            (1, 10, "literal"),
            (1, 14, "rule"),
            (1, 16, "class"),
            (1, 10, "sequence"),
            (2, 10, "literal"),
            (2, 16, "rule"),
            (2, 10, "choice"),
            (2, 10, "repeat"),
        ]
    );
    assert_eq!((grammar.rules()[1].position.line, grammar.rules()[1].position.column), (2, 3));
}

fn kind(expr: &Expr) -> &'static str {
    match expr {
        Expr::Empty => "empty",
        Expr::Literal(_) => "literal",
        Expr::Class(_) => "class",
        Expr::Rule(_) => "rule",
        Expr::Sequence(_) => "sequence",
        Expr::Choice(_) => "choice",
        Expr::Repeat { .. } => "repeat",
        Expr::Macro(_) => "macro",
        Expr::Automaton(_) => "automaton",
    }
}
