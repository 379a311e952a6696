//! What dialects read in different ways, in words: remarks on how it is read, and what to write instead.

/// What a backslash and this letter, or flag, stand for; the text of the remark.
pub(super) const REMARKS: &[(&str, &str)] = &[
    ("\\A", "ECMA-262 has no `\\A`; it is the start of the text, as in all dialects that have it"),
    ("\\z", "ECMA-262 has no `\\z`; it is the end of the text, as in all dialects that have it"),
    (
        "\\Z",
        "ECMA-262 has no `\\Z`; it is the end of the text, as in Python; in Perl, PCRE, Java, .NET \
         and Ruby it also holds before a newline that ends the text",
    ),
    (
        "\\h",
        "ECMA-262 has no `\\h`; it is a space or a tab of any width, as in Perl, PCRE and Java; in \
         Ruby it is a hexadecimal digit: write `[0-9A-Fa-f]`",
    ),
    (
        "\\H",
        "ECMA-262 has no `\\H`; it is anything but a space or a tab, as in Perl, PCRE and Java; in \
         Ruby it is anything but a hexadecimal digit: write `[^0-9A-Fa-f]`",
    ),
    ("\\e", "ECMA-262 has no `\\e`; it is the character U+001B, as in all dialects that have it"),
    ("\\a", "ECMA-262 has no `\\a`; it is the character U+0007, as in all dialects that have it"),
    (
        "\\x{..}",
        "ECMA-262 has no `\\x{..}`; it is the character of that hexadecimal number, as in all \
         dialects that have it",
    ),
    (
        "\\U",
        "ECMA-262 has no `\\U`; with eight hexadecimal digits it is the character of that number, \
         as in Python and Rust",
    ),
    (
        "\\pL",
        "ECMA-262 has no `\\pL`; a category of one letter needs no braces, as in all dialects that \
         allow it",
    ),
    (
        "\\p{^..}",
        "ECMA-262 has no `\\p{^..}`; it is what lacks the property, as in all dialects that have it",
    ),
    ("\\p{L&}", "ECMA-262 has no `\\p{L&}`; it is `\\p{LC}`, as in Perl and PCRE"),
    (
        "\\p{..}",
        "without the flag u, which another part of the pattern rules out, ECMA-262 has no \
         `\\p{..}`; it is a property, as with that flag",
    ),
    (
        "\\u{..}",
        "without the flag u, which another part of the pattern rules out, ECMA-262 has no \
         `\\u{..}`; it is a character, as with that flag",
    ),
    (
        "\\Q..\\E",
        "ECMA-262 has no `\\Q..\\E`; what stands between is read as characters, as in all dialects \
         that have it",
    ),
    (
        "\\<",
        "`\\<` is the character `<`, as in ECMA-262 and most dialects; in Rust it is the start of \
         a word: write `\\b(?=\\w)`",
    ),
    (
        "\\>",
        "`\\>` is the character `>`, as in ECMA-262 and most dialects; in Rust it is the end of a \
         word: write `\\b(?<=\\w)`",
    ),
    (
        "(?P<",
        "ECMA-262 has no `(?P<name>..)`; it is a group with a name, as `(?<name>..)` is, in all \
         dialects that have it",
    ),
    (
        "(?'",
        "ECMA-262 has no `(?'name'..)`; it is a group with a name, as `(?<name>..)` is, in all \
         dialects that have it",
    ),
    (
        "(?|",
        "ECMA-262 has no `(?|..)`; it is a group as `(?:..)` is, but for the numbers of groups \
         within",
    ),
    ("(?#", "ECMA-262 has no `(?#..)`; it is a comment, as in all dialects that have it"),
    (
        "(?i)",
        "ECMA-262 has no `(?i)` without a colon; the flag holds up to the end of its group, as in \
         all dialects that have it",
    ),
    (
        "(?s)",
        "ECMA-262 has no `(?s)` without a colon; the flag holds up to the end of its group, as in \
         all dialects that have it",
    ),
    (
        "(?m)",
        "ECMA-262 has no `(?m)` without a colon; the flag holds up to the end of its group, where \
         `^` and `$` hold at lines, as in all dialects but Ruby's, where `.` is any character: \
         write `(?s)`",
    ),
    (
        "(?x)",
        "ECMA-262 has no flag x; white space and comments behind `#` are left out, as in all \
         dialects that have it",
    ),
    (
        "(?n)",
        "ECMA-262 has no flag n; groups capture nothing, as in .NET, Perl and PCRE, and match the \
         same",
    ),
];

/// POSIX classes, with what to write in place of each within a class.
pub(super) const POSIX: &[(&str, &str)] = &[
    ("alnum", "`0-9A-Za-z`, or `\\p{L}\\p{Nd}` for all scripts"),
    ("alpha", "`A-Za-z`, or `\\p{L}` for all scripts"),
    ("ascii", "`\\x00-\\x7F`"),
    ("blank", "` \\t`"),
    ("cntrl", "`\\x00-\\x1F\\x7F`"),
    ("digit", "`0-9`, or `\\p{Nd}` for all scripts"),
    ("graph", "`!-~`"),
    ("lower", "`a-z`, or `\\p{Ll}` for all scripts"),
    ("print", "` -~`"),
    ("punct", "``!-\\/:-@\\[-`{-~``, or `\\p{P}` for all scripts"),
    ("space", "`\\s`"),
    ("upper", "`A-Z`, or `\\p{Lu}` for all scripts"),
    ("word", "`\\w`, or `\\p{L}\\p{Nd}_` for all scripts"),
    ("xdigit", "`0-9A-Fa-f`"),
];

/// What a name is in ECMA-262.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::regular::pattern) enum NameMeaning {
    Property,
    Script,
    Nothing,
}

/// What to write in place of a property whose name dialects read in different ways; `what` says what
/// a name is in ECMA-262.
pub(in crate::regular::pattern) fn advice_on_property(
    name: &str,
    what: impl Fn(&str) -> NameMeaning,
) -> Option<String> {
    if what(name) == NameMeaning::Script {
        return Some(format!(
            "the dialects that have it differ about what several scripts share; write \
             `\\p{{Script={name}}}`, or `\\p{{Script_Extensions={name}}}` to have these too"
        ));
    }
    if let Some(rest) = name.strip_prefix("Is").or_else(|| name.strip_prefix("In")) {
        let advice = match what(rest) {
            NameMeaning::Property => format!("`\\p{{{rest}}}`"),
            NameMeaning::Script => format!("`\\p{{Script={rest}}}`"),
            NameMeaning::Nothing => "a class of the characters".to_owned(),
        };
        return Some(format!("it is a script, a block or a property by dialect; write {advice}"));
    }
    let lower = name.to_ascii_lowercase();
    let (_, advice) = POSIX.iter().find(|(known, _)| *known == lower)?;
    Some(format!("it holds ASCII or all scripts by dialect; write in a class {advice}"))
}

/// What to do where a backslash stands before a letter that means nothing in ECMA-262.
pub(super) fn advice_on_escape(letter: char, in_class: bool) -> &'static str {
    match letter {
        'C' | 'R' | 'X' if in_class => {
            "it may be several characters, and a class holds one; write the characters that you mean"
        }
        'N' if in_class => {
            "it is a character by name or what ends no line, by dialect; write `\\u{..}` with the \
             number, or a class of its own beside this one, `(?:[..]|[^\\n])`"
        }
        'V' if in_class => {
            "`\\v` is one character in ECMA-262, and several in Perl, PCRE and Java; write a class of its \
             own beside this one, `(?:[..]|[^\\n\\v\\f\\r\\x85\\u2028\\u2029])`"
        }
        'G' => {
            "it stands where the search before ended, and a pattern is read from its start; drop it"
        }
        'A' | 'B' | 'Z' | 'z' => {
            "a class holds characters only; put the assertion outside, as `^`, `$` or `\\b`"
        }
        'C' => "it is a byte, and a pattern reads characters; write `[^]` for any character",
        'c' => {
            "a letter must stand behind it, as in `\\cJ`; for a character of XML names write a \
             class, such as `[-.0-9:A-Z_a-z]`"
        }
        'E' => "there is no `\\Q` before it; drop it",
        'I' | 'i' => {
            "only XML Schema has it, for the first character of a name; write a class, such as \
             `[A-Z_a-z:]`"
        }
        'K' => "it only moves the start of the match that is reported; drop it",
        'L' | 'U' | 'l' => {
            "it changes letters or is a class of them by dialect; write the letters, or \
             `\\p{Ll}` and `\\p{Lu}`"
        }
        'M' | 'Y' | 'm' | 'y' => {
            "it is a place at a word by dialect; write `\\b`, or the letter alone"
        }
        'N' => {
            "it is a character by name or what ends no line, by dialect; write `\\u{..}` with the \
             number, or `[^\\n]`"
        }
        'Q' => "no range of a class begins or ends with a quotation; write the character",
        'R' => {
            "the dialects differ about what may follow a carriage return; write \
             `(?:\\r\\n|[\\n\\v\\f\\r\\x85\\u2028\\u2029])`"
        }
        'V' => {
            "`\\v` is one character in ECMA-262, and several in Perl, PCRE and Java; write \
             `[^\\n\\v\\f\\r\\x85\\u2028\\u2029]`"
        }
        'X' => "clusters of characters are not supported; write `[^]` for any character",
        'o' => "octal numbers are not supported; write `\\x` and two hexadecimal digits",
        'P' | 'p' => "a property must stand behind it, as in `\\p{Lu}` or `\\p{Script=Greek}`",
        'u' => "write four hexadecimal digits behind it, or `\\u{..}`, up to 10FFFF",
        'x' => "write two hexadecimal digits behind it, or `\\x{..}`, up to 10FFFF",
        _ => "neither ECMA-262 nor other dialects agree on a meaning; drop the backslash",
    }
}
