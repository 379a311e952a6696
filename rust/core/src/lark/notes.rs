//! Warnings about a text that can be read: lazy quantifiers, which have no effect here, and lookaheads that Lark lets
//! look past their terminal.
//!
//! A lookahead sees the text of its pattern here, and in Lark all that follows.
//!
//! Lark's lexer ends `/".*?"/` at the first `"`. Here the terminal has every text of the pattern, as with `.*`. Both
//! readings are the same only where no text of the terminal begins with another one, as with `/"[^"]*?"/`.

use crate::error::{Error, Position, Result};
use crate::regular::{Bounds, Dfa};

use super::LarkOptions;
use super::names;
use super::parser;
use super::terminals::LarkTerminals;
use super::tree::{LarkNodeId, LarkNodeKind};

/// A warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LarkNote {
    /// Where the pattern stands.
    pub position: Position,
    /// The terminal, or the rule, that holds it; `%ignore` where neither does.
    pub name: String,
    /// How it is read, and what to write.
    pub message: String,
}

/// The warnings about a text that can be read. Texts that it imports have none.
///
/// # Errors
/// Those of [`super::read`].
pub fn notes(text: &str, options: &LarkOptions, bounds: &Bounds<'_>) -> Result<Vec<LarkNote>> {
    let mut out: Vec<LarkNote> = Vec::new();
    for mut document in parser::parse(text, &options.limits, bounds.budget)? {
        let index = names::resolve(&mut document, options, bounds)?;
        let document = &document;
        let mut terminals = LarkTerminals::new(document, &index, options.dialect, bounds)?;
        let ignores = document.ignores.iter().map(|&body| ("%ignore", body, true));
        let definitions = document.definitions.iter();
        // What a lazy rule holds ends as soon as it can.
        let definitions = definitions.filter(|definition| !definition.attributes.is_lazy());
        let definitions = definitions.map(|known| (&*known.name, known.body, known.is_terminal()));
        for (name, body, is_terminal) in definitions.chain(ignores) {
            for position in lazy_patterns(&mut terminals, body, is_terminal, bounds)? {
                // A template stands in several rules.
                if !out.iter().any(|note| note.position == position) {
                    out.push(lazy_note(name, position));
                }
            }
            for position in far_lookaheads(&mut terminals, body, bounds)? {
                let note = lookahead_note(name, position);
                if !out.contains(&note) {
                    out.push(note);
                }
            }
        }
    }
    out.sort_by_key(|note| (note.position.line, note.position.column));
    Ok(out)
}

/// The places of patterns whose lazy quantifiers Lark would heed: in a terminal those of its own, else each for itself.
fn lazy_patterns(
    terminals: &mut LarkTerminals<'_>,
    body: LarkNodeId,
    is_terminal: bool,
    bounds: &Bounds<'_>,
) -> Result<Vec<Position>> {
    let document = terminals.document();
    let mut out = Vec::new();
    for at in document.subtree(body) {
        bounds.budget.spend(1)?;
        let node = &document.nodes[at];
        let LarkNodeKind::Pattern { text, flags } = &node.kind else { continue };
        let pattern = terminals.pattern(text, flags, node.position)?;
        if !pattern.has_lazy_quantifier() {
            continue;
        }
        let decides = |dfa: Result<Dfa>| match dfa {
            Ok(dfa) => Ok(!dfa.is_prefix_free(bounds)?),
            // Nobody knows, and a warning is due.
            Err(Error::Limit { .. }) => Ok(true),
            Err(error) => Err(error),
        };
        if !is_terminal {
            if decides(pattern.to_dfa(false, bounds))? {
                out.push(node.position);
            }
        } else if !out.is_empty() || decides(terminals.dfa(body, bounds))? {
            out.push(node.position);
        } else {
            break;
        }
    }
    Ok(out)
}

/// The places of patterns in which a lookahead may look at more than the pattern still has to read.
fn far_lookaheads(
    terminals: &mut LarkTerminals<'_>,
    body: LarkNodeId,
    bounds: &Bounds<'_>,
) -> Result<Vec<Position>> {
    let document = terminals.document();
    let mut out = Vec::new();
    for at in document.subtree(body) {
        bounds.budget.spend(1)?;
        let node = &document.nodes[at];
        if let LarkNodeKind::Pattern { text, flags } = &node.kind
            && terminals.pattern(text, flags, node.position)?.may_look_past()
        {
            out.push(node.position);
        }
    }
    Ok(out)
}

/// What templates become has a number behind the name.
fn written(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

fn lookahead_note(name: &str, position: Position) -> LarkNote {
    let name = written(name);
    let message = format!(
        "a lookahead of a pattern in `{name}` looks at the text of the pattern alone, where Lark's looks at what follows \
         too; write what it asks for, or excludes, into the pattern itself"
    );
    LarkNote { position, name: name.to_owned(), message }
}

fn lazy_note(name: &str, position: Position) -> LarkNote {
    let name = written(name);
    let message = format!(
        "the lazy quantifier of a pattern in `{name}` is read as a greedy one, so that the texts of the pattern may go \
         on behind its first end; write what cannot stand before the end, as in /\"[^\"]*\"/ for /\".*?\"/, or make \
         it a rule with the option lazy"
    );
    LarkNote { position, name: name.to_owned(), message }
}
