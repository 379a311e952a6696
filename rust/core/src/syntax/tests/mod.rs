//! Cases as data: texts with their printed form, and texts with their error.

mod argument_errors;
mod printed_forms;
mod rule_errors;

use crate::error::Error;
use crate::grammar::{Expr, Grammar};
use crate::limits::Limits;

use super::{parse, print, structurally_equal};
use argument_errors::ARGUMENT_ERRORS;
use printed_forms::{BODIES, GRAMMARS};
use rule_errors::RULE_ERRORS;

/// A text that is refused: line, column, message.
type Refusal = (&'static str, u32, u32, &'static str);

fn read(text: &str) -> Result<Grammar, Error> {
    parse(text, "root", &Limits::default())
}

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

#[test]
fn errors() {
    for &(text, line, column, message) in RULE_ERRORS.iter().chain(ARGUMENT_ERRORS) {
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

/// Long pieces are read many bytes at once: what stands behind them is read as behind short ones.
#[test]
fn long_pieces_are_read_as_short_ones() {
    for length in (0..200).chain([1_000, 4_096, 10_001]) {
        let pieces = |piece: &str| piece.chars().cycle().take(length).collect::<String>();
        for (space, last) in [
            (" ", " "),
            ("\t  ", " "),
            ("\n", "\n"),
            ("  \n \r\n\t", "\n"),
            ("\r", "\n"),
            ("\r\n", "\n"),
        ] {
            let space = pieces(space) + last;
            let lines = 1 + space.replace("\r\n", "\n").matches(['\n', '\r']).count() as u32;
            let at = space.chars().rev().take_while(|&c| !matches!(c, '\n' | '\r')).count();
            let column = if lines == 1 { 10 } else { 1 } + at as u32;
            let text = format!("root ::= {space})");
            let Err(Error::Syntax { position, .. }) = read(&text) else { panic!("{text}") };
            assert_eq!((position.line, position.column), (lines, column), "{text:?}");
        }
        for comment in ["#", "é#", "a \t€"] {
            let text = format!("root ::= \"a\" #{}\n  )", pieces(comment));
            let Err(Error::Syntax { position, .. }) = read(&text) else { panic!("{text}") };
            assert_eq!((position.line, position.column), (2, 3), "{text:?}");
            let text = format!("root ::= \"a\" #{}", pieces(comment));
            assert!(read(&text).is_ok(), "{text:?}");
            let text = format!("root ::= \"a\" #{}\0", pieces(comment));
            assert!(read(&text).is_err(), "{text:?}");
        }
        for piece in ["a", "é", "a\\\\", "\\\"b", "x]'"] {
            // A backslash at the end would take the quote along.
            let inside = pieces(piece).trim_end_matches('\\').to_owned();
            let text = format!("root ::= \"{inside}\" )");
            let Err(Error::Syntax { position, .. }) = read(&text) else { panic!("{text}") };
            let column = 13 + inside.chars().count() as u32;
            assert_eq!((position.line, position.column), (1, column), "{text:?}");
            assert!(read(&text[..text.len() - 2]).is_ok(), "{text:?}");
            assert!(read(&text[..text.len() - 3]).is_err(), "{text:?}");
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
        Expr::Tokens(_) => "tokens",
    }
}
