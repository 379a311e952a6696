//! What the macros `Regex` and `Substring` of grammar text mean: regular languages.
//!
//! `Regex` is all texts that a pattern (ECMA-262) matches as a whole; with `json_string=true` it is
//! these texts as they are written inside of a JSON string, with the escapes that they need.
//! `Substring` is all runs of its chunks.

use super::grammars::pattern_body;
use super::pattern::{PatternDialect, parse};
use super::substrings::substrings;
use super::{Bounds, JsonEscapes, Spelling};
use crate::error::{Error, Position, Result};
use crate::grammar::{Expr, Grammar, GrammarBuilder, Macro, MacroArgument};
use crate::ids::ExprId;
use rustc_hash::FxHashSet;

impl Grammar {
    /// The grammar with its language in place of each `Regex` and `Substring` that the root can
    /// reach.
    ///
    /// # Errors
    /// [`Error::Unsupported`] at the place of a macro whose pattern is none or means what no
    /// automaton says; [`Error::Limit`]; those of the budget.
    pub fn with_languages(&self, bounds: &Bounds<'_>) -> Result<Grammar> {
        let is_language = |id: &ExprId| {
            let Expr::Macro(call) = self.expr(*id) else { return false };
            matches!(call.name.as_str(), "Regex" | "Substring")
        };
        let wanted: FxHashSet<ExprId> = self.macros().into_iter().filter(is_language).collect();
        if wanted.is_empty() {
            return Ok(self.clone());
        }
        self.with_replaced(|builder, id, call| {
            if !wanted.contains(&id) {
                return Ok(None);
            }
            let position = self.position(id);
            let made = meaning(builder, call, position, bounds);
            made.map(Some).map_err(|error| placed(error, &call.name, position))
        })
    }
}

fn meaning(
    builder: &mut GrammarBuilder,
    call: &Macro,
    position: Position,
    bounds: &Bounds<'_>,
) -> Result<ExprId> {
    let texts = call.positional.iter().filter_map(|argument| match argument {
        MacroArgument::Text(text) => Some(&**text),
        _ => None,
    });
    let texts: Vec<&[u8]> = texts.collect();
    bounds.budget.spend(1 + texts.iter().map(|text| text.len()).sum::<usize>())?;
    if call.name == "Substring" {
        let described = substrings(&texts, bounds)?;
        return Ok(builder.add(Expr::Automaton(described.into()), position));
    }
    let in_json = matches!(call.argument("json_string"), Some(MacroArgument::Boolean(true)));
    let spelling = if in_json { Spelling::Json(JsonEscapes::Plain) } else { Spelling::Utf8 };
    let text = texts.first().copied().unwrap_or_default();
    let Ok(text) = std::str::from_utf8(text) else {
        let message = "the pattern is not UTF-8; write it in characters".to_owned();
        return Err(Error::Unsupported { construct: call.name.clone(), message, position });
    };
    let pattern = parse(text, PatternDialect::Ecma, "").map_err(|error| Error::Unsupported {
        construct: call.name.clone(),
        message: format!("the pattern cannot be read: {error}"),
        position,
    })?;
    pattern_body(builder, &pattern, false, spelling, bounds)
}

/// An error with the place of the macro.
fn placed(error: Error, name: &str, at: Position) -> Error {
    match error {
        Error::Limit { limit, value, message } => {
            let message = format!("line {}, column {}: {name}: {message}", at.line, at.column);
            Error::Limit { limit, value, message }
        }
        other => other,
    }
}
