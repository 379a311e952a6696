//! Tests of patterns.
//!
//! - `oracle`: random patterns against a slow statement of what ECMA-262 means
//! - `cases`: what single constructs mean in each dialect
//! - `foreign`: what other dialects have and ECMA-262 lacks
//! - `refusals`: errors, their columns and their words
//! - `hostile`: deep, long and growing patterns

mod cases;
mod foreign;
mod hostile;
mod lengths;
mod oracle;
mod refusals;

use super::*;
use crate::budget::{Budget, Interrupt};
use crate::grammar::{CharSet, Expr, GrammarBuilder};
use crate::ids::ExprId;
use crate::limits::Limits;
use crate::regular::{Bounds, Dfa};

fn budget() -> Budget {
    Budget::new(&Limits::default(), &Interrupt::default())
}

fn within(budget: &Budget) -> Bounds<'_> {
    Bounds { budget, max_states: 20_000 }
}

/// The automaton of a pattern, which is known to be small.
fn automaton(text: &str, dialect: PatternDialect, flags: &str, search: bool) -> Dfa {
    let pattern = parse(text, dialect, flags).expect("the test's pattern is one");
    pattern.to_dfa(search, &within(&budget())).expect("the test's pattern is small")
}

/// The language of what [`Pattern::to_expr`] writes, where it does.
fn written(pattern: &Pattern, search: bool) -> Option<Dfa> {
    let budget = budget();
    let bounds = within(&budget);
    let mut builder = GrammarBuilder::new();
    let mut character = |builder: &mut GrammarBuilder, set: &CharSet| {
        builder.add(Expr::Class(set.clone()), Default::default())
    };
    let written = pattern.to_expr(&mut builder, &mut character, search, &bounds);
    let root = written.expect("the test's pattern is small")?;
    let mut languages: Vec<Dfa> = Vec::new();
    for index in 0..=root.index() {
        let of = |id: &ExprId| &languages[id.index()];
        let language = match builder.expr(ExprId::new(index)) {
            Expr::Class(set) => Ok(Dfa::character(set)),
            Expr::Sequence(parts) => parts.iter().try_fold(Dfa::empty_string(), |known, part| {
                known.concatenation(of(part), &bounds)
            }),
            Expr::Choice(parts) => {
                parts.iter().try_fold(Dfa::nothing(), |known, part| known.union(of(part), &bounds))
            }
            Expr::Repeat { body, min, max } => of(body).repetition(*min, *max, &bounds),
            _ => Ok(Dfa::empty_string()),
        };
        languages.push(language.expect("the test's pattern is small"));
    }
    languages.pop()
}
