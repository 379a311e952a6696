//! Regular languages as grammars: patterns, finite sets of texts, and what Boolean operations make of
//! them.

use super::pattern::{LARGE_COUNT, Pattern};
use super::{Bounds, CharSet, Dfa, Spelling, encode, encode_character};
use crate::error::{Error, Position, Result};
use crate::grammar::{Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::ids::{ExprId, RuleId};

const HERE: Position = Position::NOWHERE;

/// An operation on a stack of languages, as in postfix notation.
#[derive(Clone, Debug)]
pub enum Operation {
    /// Pushes the texts that match a pattern, or that hold a match where the flag is set.
    Pattern(Pattern, bool),
    /// Pushes these texts.
    Texts(Vec<String>),
    /// Replaces the last two by what both have.
    Intersection,
    /// Replaces the last two by what either has.
    Union,
    /// Replaces the last two by the texts of the first with one of the second behind.
    Concatenation,
    /// Replaces the last by texts of it in a row: so many at least, and at most.
    Repetition(u32, Option<u32>),
    /// Replaces the last by all texts that it lacks.
    Complement,
}

/// The grammar of a language, as texts in UTF-8.
///
/// # Errors
/// [`Error::State`] where the operations leave no single language; [`Error::Limit`]; those of the
/// budget.
pub fn grammar(operations: &[Operation], bounds: &Bounds<'_>) -> Result<Grammar> {
    let mut builder = GrammarBuilder::new();
    let body = match operations {
        [Operation::Texts(texts)] if !texts.is_empty() => choice(&mut builder, texts, bounds)?,
        [Operation::Pattern(pattern, search)] => {
            pattern_body(&mut builder, pattern, *search, Spelling::Utf8, bounds)?
        }
        _ => {
            let automaton = language(operations, bounds)?;
            automaton_body(&mut builder, &automaton, Spelling::Utf8, bounds)?
        }
    };
    let rule = Rule {
        name: "root".into(),
        options: RuleOptions::default(),
        body,
        lookahead: None,
        is_common: false,
        position: HERE,
    };
    Ok(builder.finish(vec![rule], RuleId::new(0)))
}

/// The automaton that operations make.
fn language(operations: &[Operation], bounds: &Bounds<'_>) -> Result<Dfa> {
    let unbalanced = || Error::State("the operations on languages lack an operand".into());
    let mut stack: Vec<Dfa> = Vec::new();
    for operation in operations {
        bounds.budget.spend(1)?;
        let made = match operation {
            Operation::Pattern(pattern, search) => pattern.to_dfa(*search, bounds)?,
            Operation::Texts(texts) => Dfa::texts(texts.iter().map(String::as_str), bounds)?,
            Operation::Complement => stack.pop().ok_or_else(unbalanced)?.complement(),
            Operation::Repetition(min, max) => {
                stack.pop().ok_or_else(unbalanced)?.repetition(*min, *max, bounds)?
            }
            Operation::Intersection | Operation::Union | Operation::Concatenation => {
                let (Some(second), Some(first)) = (stack.pop(), stack.pop()) else {
                    return Err(unbalanced());
                };
                match operation {
                    Operation::Union => first.union(&second, bounds)?,
                    Operation::Concatenation => first.concatenation(&second, bounds)?,
                    _ => first.intersection(&second, bounds)?,
                }
            }
        };
        stack.push(made);
    }
    match (stack.pop(), stack.is_empty()) {
        (Some(made), true) => Ok(made),
        _ => Err(unbalanced()),
    }
}

fn choice(builder: &mut GrammarBuilder, texts: &[String], bounds: &Bounds<'_>) -> Result<ExprId> {
    let mut literals: Vec<ExprId> = Vec::with_capacity(texts.len());
    for text in texts {
        bounds.budget.spend(1 + text.len() / 16)?;
        literals.push(match text.is_empty() {
            true => builder.add(Expr::Empty, HERE),
            false => builder.add(Expr::Literal(text.as_bytes().into()), HERE),
        });
    }
    Ok(match literals.as_slice() {
        [only] => *only,
        _ => builder.add(Expr::Choice(literals.into()), HERE),
    })
}

/// A pattern as its automaton; as an expression, where it has large counts and is one.
pub(super) fn pattern_body(
    builder: &mut GrammarBuilder,
    pattern: &Pattern,
    search: bool,
    spelling: Spelling,
    bounds: &Bounds<'_>,
) -> Result<ExprId> {
    if pattern.greatest_count() > LARGE_COUNT {
        let mut one = |builder: &mut GrammarBuilder, set: &CharSet| {
            character(builder, &set.intersection(&CharSet::scalar_values()), spelling)
        };
        if let Some(written) = pattern.to_expr(builder, &mut one, search, bounds)? {
            return Ok(written);
        }
        if let Some(pieces) = pattern.pieces(search, LARGE_COUNT) {
            let parts = pieces.iter().map(|piece| {
                // No piece has pieces of its own.
                pattern_body(builder, piece, false, spelling, bounds)
            });
            let parts = parts.collect::<Result<Vec<_>>>()?;
            return Ok(builder.add(Expr::Sequence(parts.into()), HERE));
        }
    }
    let automaton = pattern.to_dfa(search, bounds)?;
    automaton_body(builder, &automaton, spelling, bounds)
}

/// One character of a set.
fn character(builder: &mut GrammarBuilder, set: &CharSet, spelling: Spelling) -> ExprId {
    let expr = match spelling {
        Spelling::Utf8 => Expr::Class(set.clone()),
        Spelling::Json(_) => Expr::Automaton(encode_character(set, spelling).into()),
    };
    builder.add(expr, HERE)
}

fn automaton_body(
    builder: &mut GrammarBuilder,
    automaton: &Dfa,
    spelling: Spelling,
    bounds: &Bounds<'_>,
) -> Result<ExprId> {
    if let Some((set, min, max)) = automaton.uniform_lengths()
        && (min, max) != (0, Some(0))
    {
        let body = character(builder, &set, spelling);
        return Ok(match (min, max) {
            (1, Some(1)) => body,
            _ => builder.add(Expr::Repeat { body, min, max }, HERE),
        });
    }
    let described = encode(automaton, spelling, bounds)?;
    Ok(builder.add(Expr::Automaton(described.into()), HERE))
}
