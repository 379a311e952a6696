//! The terminals of Lark's library `common`, as XGrammar and llguidance have them.
//!
//! In Lark itself `ESCAPED_STRING` holds no line end, which its two followers let through; what they
//! read counts here.

/// The library, as Lark text.
pub(super) const TEXT: &str = r##"
DIGIT: "0".."9"
HEXDIGIT: DIGIT | "a".."f" | "A".."F"
INT: DIGIT+
SIGNED_INT: _SIGN? INT
DECIMAL: INT "." INT? | "." INT
_EXP: "e"i SIGNED_INT
FLOAT: DECIMAL _EXP? | INT _EXP
SIGNED_FLOAT: _SIGN? FLOAT
NUMBER: INT | FLOAT
SIGNED_NUMBER: _SIGN? NUMBER
ESCAPED_STRING: "\"" (/[^"\\]/ | "\\" /[^\n]/)* "\""
LCASE_LETTER: "a".."z"
UCASE_LETTER: "A".."Z"
LETTER: LCASE_LETTER | UCASE_LETTER
WORD: LETTER+
CNAME: ("_" | LETTER) ("_" | LETTER | DIGIT)*
WS_INLINE: (" " | "\t")+
WS: (" " | "\t" | "\f" | "\r" | "\n")+
CR: "\r"
LF: "\n"
NEWLINE: (CR? LF)+
SH_COMMENT: "#" _REST
CPP_COMMENT: "//" _REST
SQL_COMMENT: "--" _REST
C_COMMENT: "/*" /[^*]/* "*"+ (/[^*\/]/ /[^*]/* "*"+)* "/"
_SIGN: "+" | "-"
_REST: /[^\n]*/
"##;

/// Terminals that only the library itself names.
pub(super) const INNER: [&str; 2] = ["_SIGN", "_REST"];
