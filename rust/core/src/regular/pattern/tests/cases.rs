//! What single constructs mean in each dialect: patterns, texts with a match, texts without.

use super::*;

type Case = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

fn check(dialect: PatternDialect, cases: &[Case]) {
    for &(text, flags, with, without) in cases {
        let language = automaton(text, dialect, flags, true);
        for (texts, expected) in [(with, true), (without, false)] {
            for found in texts {
                assert_eq!(language.accepts(found), expected, "{text:?} {flags:?} {found:?}");
            }
        }
    }
}

#[test]
fn ecma_with_the_flag_u() {
    check(
        PatternDialect::Ecma,
        &[
            (r"^\d$", "", &["7"], &["\u{663}", "a"]),
            (r"^\w$", "", &["_", "Z"], &["é", "-"]),
            (r"^\s$", "", &["\u{FEFF}", "\u{A0}", "\u{2029}"], &["\u{1C}", "\u{85}", "\u{200B}"]),
            (r"^.$", "", &["\u{1F432}", "\u{85}"], &["\n", "\r", "\u{2028}", ""]),
            (r"^.$", "s", &["\n"], &["ab"]),
            (
                r"^\cJ\t\v\f\r\0\x41\u0042\u{1F432}\uD83D\uDC32$",
                "",
                &["\n\t\u{b}\u{c}\r\0AB🐲🐲"],
                &[],
            ),
            (r"^[\b\-\cA]+$", "", &["\u{8}-\u{1}"], &["b"]),
            (r"^[]$", "", &[], &["", "a"]),
            (r"^[^]$", "", &["\n", "\u{10FFFF}"], &[""]),
            (r"^[\uD83D\uDC32]$", "", &["🐲"], &["\u{FFFD}"]),
            (r"^\uD83D$", "", &[], &["🐲", "\u{FFFD}"]),
            (r"^\p{Lu}\P{L}\p{Script=Greek}\p{scx=Deva}\p{Any}$", "", &["É1α\u{964}x"], &["é1αx"]),
            (r"^\p{Cs}$|^\p{Assigned}$", "", &["a"], &["\u{378}"]),
            (r"^\p{Zl}\p{gc=Zp}$", "", &["\u{2028}\u{2029}"], &["\u{2029}\u{2028}"]),
            (r"^\p{Script=Unknown}$", "", &["\u{378}"], &["a", "\u{17C4}"]),
            (r"^ſK$", "i", &["sk", "S\u{212A}"], &["ß"]),
            (r"^ß$", "i", &["ẞ"], &["ss"]),
            (r"^\W$", "i", &["-"], &["s", "ſ", "k"]),
            (r"^[^x]$", "i", &["y"], &["x", "X"]),
            (r"^\P{Lu}$", "i", &["a", "A"], &[]),
            (r"^(?i:a)b(?-i:c)$", "", &["Abc", "abc"], &["ABc"]),
            (r"^(?i:a(?-i:b))$", "", &["Ab"], &["AB"]),
            (r"^a$", "m", &["b\na\rc", "x\u{2028}a"], &["b\nab"]),
            (r"a\b.", "", &["a-", "xa "], &["ab", "a"]),
            (r"\bé", "", &["aé"], &["é", " é"]),
            (r"^(?:a{0}b{2}c{1,}){2,3}$", "", &["bbcbbcc"], &["bbc", "abbcbbc"]),
            (r"^(a*)*$", "", &["", "aaa"], &["b"]),
            (r"a{0,2}?b{2,2}", "", &["bb"], &["ab"]),
            (r"(?=.*\d)(?=.*[a-z]).{3,}$", "", &["-1a", "a1-"], &["a1", "abc"]),
            (r"^(?!foo$|bar).*$", "", &["food", "ba"], &["foo", "bart"]),
            (r"(?<=a.*)b(?<!cb)", "", &["a-b"], &["b", "acb", "ba"]),
            (r"^(?:(?=a)a|(?<!b)c)+$", "", &["aac", "cc"], &["b"]),
            (r"(?<a>x)|(?<a>y)", "", &["y"], &["z"]),
            (r"^(?<$é_9>x)\/\{$", "", &["x/{"], &[]),
            ("", "", &["", "a"], &[]),
            ("a|", "", &["b"], &[]),
            ("$^", "", &[""], &["a", "\n"]),
            ("$^", "m", &["", "\na"], &["a"]),
        ],
    );
}

#[test]
fn annex_b_where_the_text_is_no_pattern_with_the_flag_u() {
    check(
        PatternDialect::Ecma,
        &[
            (r"^\-\_\@\:$", "", &["-_@:"], &[]),
            (r"^a{}]}\-$", "", &["a{}]}-"], &["aa"]),
            (r"^x{1$", "", &["x{1"], &["x"]),
            (r"^\012\377\08$", "", &["\n\u{ff}\08"], &[]),
            (r"^[\1\12]$", "", &["\u{1}", "\n"], &["1"]),
            (r"^[\w-a]+$", "", &["b-"], &["+"]),
            (r"^\ca\-$", "", &["\u{1}-"], &[]),
            (r"^(?=a)*(?=b){2}b\-", "", &["b-"], &["a-"]),
            (r"^.\-$", "", &["🐲-"], &[]),
        ],
    );
    let is_annex_b = |text| parse(text, PatternDialect::Ecma, "").expect("a pattern").is_annex_b();
    assert!(is_annex_b(r"\-"));
    assert!(!is_annex_b(r"[\-]"));
}

#[test]
fn python() {
    check(
        PatternDialect::Python,
        &[
            (r"^\d\w\s$", "", &["\u{663}é\u{1C}"], &["1a\u{FEFF}"]),
            (r"(?a)^\d\w$", "", &["1a"], &["1é", "\u{663}a"]),
            (r"a$", "", &["a", "a\n"], &["a\n\n", "ab"]),
            (r"a\Z", "", &["a"], &["a\n"]),
            (r"\Aa\z", "", &["a"], &["ba"]),
            (r"^a$", "m", &["b\na\n\n"], &["\ra"]),
            (r"^.$", "", &["\r", "\u{2028}"], &["\n"]),
            (r"(?i)^i$", "", &["I", "İ", "ı"], &["j"]),
            (r"(?i:(?a:I))|(?i:(I))-", "", &["i", "İ-"], &["İ"]),
            (r"^(?P<n>a)(?#b)c{,2}[]x]{,}{,\a\141\0\U0001F432$", "", &["acc]x{,\u{7}a\0🐲"], &[]),
            (r"^[[a&&b]{2}$", "", &["[&"], &["aa]"]),
            // Sets such as `\w` have no other cases, also within a class; U+0345 is one of iota.
            (r"(?i)^[^\W\d_]+$", "", &["και", "É"], &["1", "\u{345}"]),
            (r"(?i)^\W$", "", &["-", "\u{345}"], &["ι", "a"]),
            ("(?i)^[\u{345}\\d]$", "", &["ι", "\u{345}", "1"], &["a"]),
            (r"(?i)^[\Wa]$", "", &["A", "-"], &["ι", "b"]),
            (r"(?i)(?m)^b$", "", &["a\nB"], &["ab"]),
            (r"(?#c)(?i)(?#d)(?s)a.$", "", &["A\n"], &["b"]),
            ("(?x) (?i) ^a $", "", &["A"], &["b"]),
            ("^ a b # c\n [c #] + $ # d", "x", &["abc# "], &["a b", "ab"]),
            ("(?x) ^a(?# b) * \u{B} \\  \\# {2} $", "", &["aa ##", " ##"], &["a#"]),
            ("^ a (?-x: b# ) (?x: c {2} ) { $", "x", &["a b# cc{"], &["ab#cc{", "a b# c{2}{"]),
            ("^(?x:a # ) b\n) b # \u{85}$", "", &["a b # \u{85}"], &["ab"]),
            ("^\u{2028}\u{85} # \u{2028} b\n$", "x", &["\u{2028}\u{85}"], &["", "b"]),
        ],
    );
}

#[test]
fn rust() {
    check(
        PatternDialect::Rust,
        &[
            (r"^\d\w$", "", &["\u{663}\u{300}"], &["1-"]),
            (r"(?i)^a(?-i)b$", "", &["Ab"], &["AB"]),
            (r"^[a-z&&[^b]]$", "", &["a"], &["b"]),
            (r"\Aa\z|(?m:^b$)", "", &["a", "\nb\n"], &["a\n"]),
            (r"\b{start}a\b{end}|\<b\>", "", &["-a-", "b"], &["ab"]),
            (r"\b{start-half}c\b{end-half}", "", &["c"], &["cc"]),
            (r"^(?-u:\w)\bé", "", &[], &["aé"]),
            (r"^(?-u:\w\b)é", "", &["aé"], &[]),
            (r"^(?x) a b # c", "", &["ab"], &["a b"]),
        ],
    );
}

#[test]
fn folding_is_that_of_every_character() {
    for code_point in (0..=0x10_FFFF).filter_map(char::from_u32) {
        let range = regex_syntax::hir::ClassUnicodeRange::new(code_point, code_point);
        let mut class = regex_syntax::hir::ClassUnicode::new([range]);
        class.case_fold_simple();
        let expected =
            CharSet::new(class.iter().map(|range| (range.start().into(), range.end().into())));
        let folded = unicode::with_cases(&CharSet::single(code_point.into()));
        assert_eq!(folded, expected, "{code_point:?}");
    }
}

#[test]
fn every_name_of_a_property_is_known() {
    let known = unicode::property_names();
    let missing: Vec<&String> =
        known.iter().filter(|name| unicode::property(name).is_err()).collect();
    assert_eq!(missing, ["CWKCF", "Changes_When_NFKC_Casefolded"]);
}

#[test]
fn counts_stay_counts() {
    let count = |text: &str| {
        let pattern = parse(text, PatternDialect::Ecma, "").expect("a pattern");
        let mut builder = GrammarBuilder::new();
        let mut character = |builder: &mut GrammarBuilder, set: &CharSet| {
            builder.add(Expr::Class(set.clone()), Default::default())
        };
        let budget = budget();
        let written = pattern.to_expr(&mut builder, &mut character, true, &within(&budget));
        written.expect("no limit").map(|_| (builder.len(), pattern.greatest_count()))
    };
    assert_eq!(count("^[0-9a-f]{64}$"), Some((3, 64)));
    assert_eq!(count(r"^(?:.{0,4096}|(x{1000}){1000})$"), Some((7, 4096)));
    assert!(count(r"^(a|^b$)$").is_some());
    for text in ["a^b", "(?:^a)*", r"(?:\ba)*", "(?=a)", "[]", "$a"] {
        assert_eq!(count(text), None, "{text}");
    }
}

#[test]
fn counts_beside_boundaries_stay_counts() {
    for (text, is_written) in [
        (r"^[a-z.]{1,256}\.[a-z(]{1,6}\b[a-z/]*$", true),
        (r"\ba", true),
        (r"\b(?:\w{1,64}-?)\b", true),
        (r"x{0,20}\B-?\b[^x]{3}", true),
        (r"^(?:\b\w{1,64})+$", false),
        (r"^(?:a\b|b)-{20}$", false),
        (r"^(?=a)a{1,20}\b-$", false),
        (&r"a{0,9}\B".repeat(9), false),
        (&r"a{2}\B".repeat(17), false),
    ] {
        let pattern = parse(text, PatternDialect::Ecma, "").expect("the test's pattern is one");
        assert_eq!(pattern.keeps_counts(true), is_written, "{text}");
        let expected = is_written.then(|| automaton(text, PatternDialect::Ecma, "", true));
        assert_eq!(written(&pattern, true), expected, "{text}");
    }
}
