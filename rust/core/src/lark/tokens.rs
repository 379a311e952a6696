//! What `<...>` names: tokens that are taken whole, by their ids.

use crate::error::{Position, Result};
use crate::grammar::{Expr, Macro, MacroArgument};

use super::messages::{limit, shown, syntax, unsupported};
use super::{Subgrammars, TokenIds};

/// The greatest id of a token.
const LAST: u64 = i32::MAX as u64;
/// Ids that the tokens of one grammar may list.
const MOST_IDS: usize = 1 << 20;

/// A set of tokens.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LarkTokens {
    /// Whether it is all other tokens.
    pub(super) is_excluding: bool,
    /// The ids, in order.
    pub(super) ids: Vec<u32>,
}

impl LarkTokens {
    /// Reads a reference, with its brackets.
    ///
    /// # Errors
    /// It is none; it names a token that there is not, or by a name where no vocabulary is known.
    pub(super) fn read(
        text: &str,
        position: Position,
        subgrammars: &mut dyn Subgrammars,
    ) -> Result<LarkTokens> {
        let listed = text.strip_prefix("<[").and_then(|text| text.strip_suffix("]>"));
        match listed {
            Some(listed) => numbered(listed, position),
            None => named(text, position, subgrammars),
        }
    }

    /// The expression that takes one token of the set.
    pub(super) fn expression(&self) -> Expr {
        let name = if self.is_excluding { "ExcludeToken" } else { "Token" };
        let positional = self.ids.iter().map(|&id| MacroArgument::Integer(id.into())).collect();
        Expr::Macro(Macro { name: name.into(), positional, named: Vec::new() })
    }
}

fn named(text: &str, position: Position, subgrammars: &mut dyn Subgrammars) -> Result<LarkTokens> {
    let construct = || shown(text);
    match subgrammars.tokens(text) {
        TokenIds::Unknown => Err(unsupported(
            construct(),
            position,
            "a token that is named by its text is looked up in a vocabulary, and here is none; write \
             its id: `<[id]>`",
        )),
        TokenIds::Ids(ids) if ids.is_empty() => Err(unsupported(
            construct(),
            position,
            "the vocabulary has no such token; write its text as a literal, or another token",
        )),
        TokenIds::Ids(mut ids) => {
            ids.sort_unstable();
            ids.dedup();
            Ok(LarkTokens { is_excluding: false, ids })
        }
    }
}

/// `1,5-7`, `^1`, `*`.
fn numbered(listed: &str, position: Position) -> Result<LarkTokens> {
    let (is_excluding, listed) = match listed.strip_prefix('^') {
        Some(rest) => (true, rest),
        None => (false, listed),
    };
    if listed == "*" {
        return match is_excluding {
            true => Err(syntax(position, "`<[^*]>` is no token at all; name those that it may be")),
            false => Ok(LarkTokens { is_excluding: true, ids: Vec::new() }),
        };
    }
    let mut ids = Vec::new();
    for range in listed.split(',').filter(|range| !range.is_empty()) {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse::<u64>().ok().filter(|&id| is_number && id <= LAST)
        };
        let (Some(first), Some(last)) = (number(first), number(last)) else {
            let message = format!(
                "`{}` is no id of a token and no range of ids: write numbers from 0 to {LAST}, such as \
                 `<[3,7-9]>`",
                shown(range)
            );
            return Err(syntax(position, message));
        };
        if first > last {
            return Err(syntax(position, format!("the range `{range}` is backwards")));
        }
        if (last - first) as usize >= MOST_IDS - ids.len().min(MOST_IDS) {
            let message = format!(
                "line {}, column {}: these ranges have more tokens; name those that are excluded, as \
                 in `<[^5]>`",
                position.line, position.column
            );
            return Err(limit("max_token_ids", MOST_IDS, message));
        }
        ids.extend((first..=last).map(|id| id as u32));
    }
    if ids.is_empty() {
        return Err(syntax(position, "this names no token; write ids, such as `<[3,7-9]>`"));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(LarkTokens { is_excluding, ids })
}
