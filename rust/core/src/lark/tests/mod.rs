//! Lark texts beside grammar text that says the same, and beside slow definitions.

mod errors;
mod forms;
mod hostile;
mod lazy;
mod properties;

use super::{LarkOptions, NamedGrammar, Subgrammars, TokenIds, read};
use crate::budget::{Budget, Interrupt};
use crate::error::{Error, Position, Result};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::network::{Network, NetworkOptions};
use crate::recognizer::Recognizer;
use crate::regular::Bounds;
use crate::regular::pattern::PatternDialect;
use crate::syntax;

/// What texts name: schemas that are constants, grammars `g` and `h`, one token.
pub(super) struct Others;

impl Subgrammars for Others {
    fn json_schema(&mut self, text: &str, position: Position) -> Result<Grammar> {
        match text.trim() {
            "{\"const\": 1}" => Ok(ebnf("root ::= \"1\"")),
            "true" => Ok(ebnf("root ::= [0-9]+")),
            other => Err(Error::Unsupported {
                construct: other.into(),
                message: "no schema of the tests".into(),
                position,
            }),
        }
    }

    fn grammar(&mut self, name: &str) -> Result<Option<NamedGrammar>> {
        let lark = |text: &str| Ok(Some(NamedGrammar::Lark(text.into())));
        match name {
            "g" => lark("start: \"a\" @h\n%ignore \"_\""),
            "h" => Ok(Some(NamedGrammar::Grammar(ebnf("root ::= \"b\" | \"c\"")))),
            "ring" => lark("start: \"a\" @ring2"),
            "ring2" => lark("start: \"a\" @ring"),
            "wrong" => lark("start: x"),
            _ => Ok(None),
        }
    }

    fn tokens(&mut self, text: &str) -> TokenIds {
        match text {
            "<|end|>" => TokenIds::Ids(vec![7, 3, 7]),
            "<|none|>" => TokenIds::Ids(Vec::new()),
            _ => TokenIds::Unknown,
        }
    }
}

fn ebnf(text: &str) -> Grammar {
    syntax::parse(text, "root", &Limits::default()).expect("it is a grammar")
}

fn within(text: &str, options: &LarkOptions, max_states: usize) -> Result<Grammar> {
    let budget = Budget::new(&options.limits, &Interrupt::default());
    read(text, options, &mut Others, &Bounds { budget: &budget, max_states })
}

fn lark(text: &str) -> Result<Grammar> {
    within(text, &LarkOptions::default(), 100_000)
}

/// Whether the texts are of a grammar.
fn accepts(grammar: &Grammar, texts: &[String]) -> Vec<bool> {
    let limits = Limits::default();
    let grammar = grammar.with_dispatches(&limits).expect("it fits");
    let network = match Network::new(&grammar, &NetworkOptions::default()) {
        Ok(network) => network,
        Err(Error::Unsupported { message, .. } | Error::Syntax { message, .. })
            if message.starts_with("the language is empty") =>
        {
            return vec![false; texts.len()];
        }
        Err(error) => panic!("{error}"),
    };
    let verdicts = texts.iter().map(|text| {
        let mut reader =
            Recognizer::new(&network, &limits, &Interrupt::default()).expect("it fits");
        let is_read = text.bytes().all(|byte| reader.advance(byte).expect("it fits"));
        is_read && reader.is_accepting()
    });
    verdicts.collect()
}

/// All texts of so many characters at most.
fn texts(alphabet: &str, longest: usize) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut from = 0;
    for _ in 0..longest {
        let until = out.len();
        for at in from..until {
            out.extend(alphabet.chars().map(|c| format!("{}{c}", out[at])).collect::<Vec<_>>());
        }
        from = until;
    }
    out
}

/// Checks that Lark text and grammar text have the same short texts, some of them and not all.
fn same(text: &str, expected: &str, alphabet: &str) {
    const MOST: usize = 4_000;
    let letters = alphabet.chars().count().max(2);
    let longest = (1..12).take_while(|&n| letters.pow(n) <= MOST).count();
    let texts = texts(alphabet, longest);
    let grammar = lark(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let (ours, theirs) = (accepts(&grammar, &texts), accepts(&ebnf(expected), &texts));
    for ((word, ours), theirs) in texts.iter().zip(&ours).zip(&theirs) {
        assert_eq!(ours, theirs, "{word:?} of\n{text}\n{}", syntax::print(&grammar));
    }
    assert!(ours.contains(&true) && ours.contains(&false), "{text} is told by no text");
}

fn python() -> LarkOptions {
    LarkOptions { dialect: PatternDialect::Python, ..LarkOptions::default() }
}
