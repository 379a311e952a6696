//! Texts that name others by `@name`: read each once, those that are named first.

use rustc_hash::FxHashMap;

use crate::error::{Error, Position, Result};
use crate::grammar::Grammar;
use crate::graph;
use crate::regular::Bounds;

use super::compile::{self, Ready};
use super::messages::{limit, shown, syntax};
use super::parser;
use super::tree::{LarkDocument, LarkNodeKind};
use super::{LarkOptions, NamedGrammar, Subgrammars};

/// A text that was read: the whole, or one that `@name` names.
struct GrammarText {
    name: Option<String>,
    documents: Vec<LarkDocument>,
    /// The texts that it names, and where.
    callees: Vec<(usize, Position)>,
}

pub(super) fn read(
    text: &str,
    options: &LarkOptions,
    subgrammars: &mut dyn Subgrammars,
    bounds: &Bounds<'_>,
) -> Result<Grammar> {
    let mut named: FxHashMap<String, Grammar> = FxHashMap::default();
    let mut texts = all(text, options, subgrammars, &mut named, bounds)?;
    let callees = |at: usize| texts[at].callees.iter().map(|callee| callee.0).collect::<Vec<_>>();
    let groups = graph::components(texts.len(), callees);
    if let Some(circle) = groups.iter().find(|group| {
        group.len() > 1 || texts[group[0]].callees.iter().any(|callee| callee.0 == group[0])
    }) {
        return Err(circular(&texts, circle));
    }
    let mut last = None;
    for at in groups.into_iter().flatten() {
        let GrammarText { name, documents, .. } = &mut texts[at];
        let place = |error| in_grammar(error, name.as_deref());
        let own = LarkOptions { start: "start".into(), ..options.clone() };
        let mut made: Vec<Grammar> = Vec::new();
        let documents = std::mem::take(documents);
        let count = documents.len();
        for (number, document) in documents.into_iter().enumerate() {
            let is_whole = number + 1 == count && name.is_none();
            let ready = Ready { documents: &made, named: &named };
            let options = if is_whole { options } else { &own };
            made.push(
                compile::compile(document, options, &ready, subgrammars, bounds).map_err(place)?,
            );
        }
        let grammar = made.pop();
        match name {
            Some(name) => named.extend(grammar.map(|grammar| (name.clone(), grammar))),
            None => last = grammar,
        }
    }
    last.ok_or_else(|| syntax(Position { line: 1, column: 1 }, "there is no text"))
}

/// Reads a text and all that it names; grammars that are no texts go to `named`.
fn all(
    text: &str,
    options: &LarkOptions,
    subgrammars: &mut dyn Subgrammars,
    named: &mut FxHashMap<String, Grammar>,
    bounds: &Bounds<'_>,
) -> Result<Vec<GrammarText>> {
    let mut bytes = 0;
    let mut parse = |text: &str| {
        bytes += text.len();
        if bytes > options.limits.max_grammar_bytes {
            let message = "the text is longer; shorten it, or raise the limit";
            return Err(limit("max_grammar_bytes", options.limits.max_grammar_bytes, message));
        }
        parser::parse(text, &options.limits, bounds.budget)
    };
    let mut texts = vec![GrammarText { name: None, documents: parse(text)?, callees: Vec::new() }];
    let mut numbers: FxHashMap<String, usize> = FxHashMap::default();
    let mut at = 0;
    while at < texts.len() {
        let mut callees = Vec::new();
        let mut new = Vec::new();
        for node in texts[at].documents.iter().flat_map(|document| &document.nodes) {
            bounds.budget.spend(1)?;
            let LarkNodeKind::Grammar(name) = &node.kind else { continue };
            if named.contains_key(&**name) {
                continue;
            }
            if let Some(&number) = numbers.get(&**name) {
                callees.push((number, node.position));
                continue;
            }
            let place = |error| in_grammar(error, texts[at].name.as_deref());
            match subgrammars.grammar(name)? {
                None => return Err(place(compile::unknown_grammar(name, node.position))),
                Some(NamedGrammar::Grammar(grammar)) => {
                    drop(named.insert(name.to_string(), grammar))
                }
                Some(NamedGrammar::Lark(text)) => {
                    let documents = parse(&text).map_err(|error| in_grammar(error, Some(name)))?;
                    let number = texts.len() + new.len();
                    numbers.insert(name.to_string(), number);
                    callees.push((number, node.position));
                    new.push(GrammarText {
                        name: Some(name.to_string()),
                        documents,
                        callees: Vec::new(),
                    });
                }
            }
        }
        texts[at].callees = callees;
        texts.extend(new);
        at += 1;
    }
    Ok(texts)
}

fn circular(texts: &[GrammarText], circle: &[usize]) -> Error {
    let first = circle.iter().copied().min().unwrap_or(0);
    let name = |at: usize| texts[at].name.as_deref().unwrap_or_default();
    let callee = texts[first].callees.iter().find(|callee| circle.contains(&callee.0));
    let position = callee.map_or(Position { line: 1, column: 1 }, |callee| callee.1);
    let mut names: Vec<&str> = circle.iter().map(|&at| name(at)).collect();
    names.sort_unstable();
    let names: Vec<String> = names.into_iter().map(|name| format!("`@{}`", shown(name))).collect();
    let message = format!(
        "{} is named by itself, directly or through others; make them rules of one text",
        names.join(", ")
    );
    in_grammar(syntax(position, message), texts[first].name.as_deref())
}

/// The error of a text that another names.
fn in_grammar(error: Error, name: Option<&str>) -> Error {
    let Some(name) = name else { return error };
    let with = |message: String| format!("in the grammar `@{}`: {message}", shown(name));
    match error {
        Error::Syntax { message, position } => Error::Syntax { message: with(message), position },
        Error::Unsupported { construct, message, position } => {
            Error::Unsupported { construct, message: with(message), position }
        }
        other => other,
    }
}
