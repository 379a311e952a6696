//! Texts that are read, and how they print.

/// Bodies of `root`, before rules `a`, `b` and `c`, and how they print. The printed form must read
/// back as the same grammar.
pub(super) const BODIES: &[(&str, &str)] = &[
    // Literals: every escape is a code point, encoded as UTF-8 does.
    (r#""a""#, r#""a""#),
    (r#""""#, r#""""#),
    (r#""\n\r\t\\\"\'\?\/""#, r#""\n\r\t\\\"'?/""#),
    (r#""\a\b\f\v\e\0""#, r#""\u0007\u0008\u000c\u000b\u001b\u0000""#),
    (r#""\012""#, r#""\u000012""#),
    (r#""\x41g\xE9h\x9""#, r#""Ag\u00e9h\t""#),
    (r#""\x41 B""#, r#""A B""#),
    (r#""\u00e9f\U0001F600""#, r#""\u00e9f\U0001f600""#),
    (r#""\ud83d\ude00\uD83D\uDE00x""#, r#""\U0001f600\U0001f600x""#), // as in JSON
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
    (r"[\u00e9-\u00fc\U0001F600\U0001F601]", r"[\u00e9-\u00fc\U0001f600\U0001f601]"),
    ("[é-ü]", r"[\u00e9-\u00fc]"),
    (r"[\ud800-\udfff]", r"[\ud800-\udfff]"),
    (r"[\ud83d\ude00-\ud83d\ude0e\ud83d]", r"[\ud83d\U0001f600-\U0001f60e]"),
    (r"[\udbff\U0000dc00]", r"[\udbff\U0000dc00]"),
    (r"[\ud83d\U0000de00]", r"[\ud83d\U0000de00]"),
    (r"[\ud800-\udbff\U0000dd00-\udfff]", r"[\ud800-\udbff\U0000dd00-\udfff]"),
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

/// Whole texts, and how they print.
pub(super) const GRAMMARS: &[(&str, &str)] = &[
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
