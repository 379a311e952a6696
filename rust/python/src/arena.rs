//! A grammar's rules and expressions as plain values, for the laboratory, and back.

use crate::boundary::{misuse, raise};
use crate::grammar::{Grammar, limits};
use pyo3::prelude::*;
use std::collections::HashSet;
use tokfold_core::error::{Error, Position};
use tokfold_core::grammar::{
    self, CharSet, Expr, GrammarBuilder, Macro, MacroArgument, Rule, RuleOptions,
};
use tokfold_core::ids::{ExprId, RuleId};

/// An expression: its kind, numbers, bytes. See `tokfold.laboratory.form` for what they are.
type Flat = (u8, Vec<u32>, Vec<u8>);
/// A rule: name, body, lookahead, whether it has options, line and column.
type FlatRule = (String, u32, Option<u32>, bool, u32, u32);
/// Rules, expressions, the places of expressions, and the root.
type Arena = (Vec<FlatRule>, Vec<Flat>, Vec<(u32, u32)>, u32);
/// A rule to be made: name, body, lookahead, the rule of the base grammar whose options it takes.
type NewRule = (String, u32, Option<u32>, Option<u32>);

const EMPTY: u8 = 0;
const LITERAL: u8 = 1;
const CLASS: u8 = 2;
const RULE: u8 = 3;
const SEQUENCE: u8 = 4;
const CHOICE: u8 = 5;
const REPEAT: u8 = 6;
const MACRO: u8 = 7;

/// Rules, expressions (children before parents), the places of expressions, and the root.
#[pyfunction]
pub(crate) fn read_arena(grammar: &Grammar) -> PyResult<Arena> {
    let grammar = &grammar.inner;
    let rules = grammar.rules().iter().map(|rule| {
        let has_options = rule.options != RuleOptions::default();
        let Position { line, column } = rule.position;
        let lookahead = rule.lookahead.map(|id| id.0);
        (rule.name.clone(), rule.body.0, lookahead, has_options, line, column)
    });
    let mut exprs = Vec::with_capacity(grammar.exprs().len());
    let mut places = Vec::with_capacity(grammar.exprs().len());
    for index in 0..grammar.exprs().len() {
        let id = ExprId::new(index);
        let Position { line, column } = grammar.position(id);
        places.push((line, column));
        exprs.push(flat(grammar, id)?);
    }
    Ok((rules.collect(), exprs, places, grammar.root().0))
}

fn flat(grammar: &grammar::Grammar, id: ExprId) -> PyResult<Flat> {
    let ids = |parts: &[ExprId]| parts.iter().map(|part| part.0).collect();
    Ok(match grammar.expr(id) {
        Expr::Empty => (EMPTY, vec![], vec![]),
        Expr::Literal(bytes) => (LITERAL, vec![], bytes.to_vec()),
        Expr::Class(set) => (CLASS, set.ranges().iter().flat_map(|r| [r.0, r.1]).collect(), vec![]),
        Expr::Rule(rule) => (RULE, vec![rule.0], vec![]),
        Expr::Sequence(parts) => (SEQUENCE, ids(parts), vec![]),
        Expr::Choice(parts) => (CHOICE, ids(parts), vec![]),
        Expr::Repeat { body, min, max } => {
            let numbers = [body.0, *min].into_iter().chain(*max);
            (REPEAT, numbers.collect(), vec![])
        }
        Expr::Macro(call) => {
            let numbers = [id.0].into_iter().chain(call.rules().map(|rule| rule.0));
            (MACRO, numbers.collect(), call.name.clone().into_bytes())
        }
        Expr::Tokens(_) | Expr::Automaton(_) => {
            return Err(misuse("the grammar is already prepared for compilation"));
        }
    })
}

/// The grammar of these rules. Macros and options are taken from `base`.
#[pyfunction]
#[pyo3(signature = (base, rules, exprs, root, bounds=None))]
pub(crate) fn build_arena(
    py: Python<'_>,
    base: &Grammar,
    rules: Vec<NewRule>,
    exprs: Vec<Flat>,
    root: u32,
    bounds: Option<&Bound<'_, PyAny>>,
) -> PyResult<Grammar> {
    let limits = limits(bounds)?;
    if rules.len() > limits.max_rules {
        let message = "the rewritten grammar has more rules; raise the limit";
        let value = limits.max_rules as u64;
        return Err(raise(
            py,
            &Error::Limit { limit: "max_rules", value, message: message.into() },
        ));
    }
    let names: HashSet<&str> = rules.iter().map(|rule| rule.0.as_str()).collect();
    if names.len() < rules.len() || root as usize >= rules.len() {
        return Err(misuse("rules have distinct names, and the root is one of them"));
    }
    let mut builder = GrammarBuilder::new();
    for (index, (kind, numbers, bytes)) in exprs.into_iter().enumerate() {
        let expr = unflat(&base.inner, index as u32, rules.len() as u32, kind, &numbers, bytes);
        let expr = expr.ok_or_else(|| misuse(format!("expression {index} is malformed")))?;
        builder.add(expr, Position::NOWHERE);
    }
    let mut made = Vec::with_capacity(rules.len());
    let count = builder.len();
    for (name, body, lookahead, options) in rules {
        let known = |id: u32| (id as usize) < count;
        let options = match options {
            None => RuleOptions::default(),
            Some(index) => {
                let rule = base.inner.rules().get(index as usize);
                rule.ok_or_else(|| misuse("no such rule"))?.options.clone()
            }
        };
        if !known(body) || !lookahead.is_none_or(known) {
            return Err(misuse(format!("rule {name:?} has a body that is not there")));
        }
        let position = Position::NOWHERE;
        let (body, lookahead) = (ExprId(body), lookahead.map(ExprId));
        made.push(Rule { name, options, body, lookahead, position, is_common: false });
    }
    Ok(Grammar::of(builder.finish(made, RuleId(root))))
}

fn unflat(
    base: &grammar::Grammar,
    index: u32,
    rules: u32,
    kind: u8,
    numbers: &[u32],
    bytes: Vec<u8>,
) -> Option<Expr> {
    let parts = || {
        let before = numbers.iter().all(|&part| part < index);
        let parts = numbers.iter().map(|&part| ExprId(part)).collect();
        (before && numbers.len() >= 2).then_some(parts)
    };
    match (kind, numbers) {
        (EMPTY, []) => Some(Expr::Empty),
        (LITERAL, []) if !bytes.is_empty() => Some(Expr::Literal(bytes.into())),
        (CLASS, ranges) => {
            let (pairs, rest) = ranges.as_chunks::<2>();
            let good = pairs.iter().all(|&[a, b]| a <= b && b <= 0x10_FFFF);
            let pairs = pairs.iter().map(|&[a, b]| (a, b));
            (good && rest.is_empty()).then(|| Expr::Class(CharSet::new(pairs)))
        }
        (RULE, &[rule]) if rule < rules => Some(Expr::Rule(RuleId(rule))),
        (SEQUENCE, _) => parts().map(Expr::Sequence),
        (CHOICE, _) => parts().map(Expr::Choice),
        (REPEAT, &[body, min]) if body < index => {
            Some(Expr::Repeat { body: ExprId(body), min, max: None })
        }
        (REPEAT, &[body, min, max]) if body < index && min <= max => {
            Some(Expr::Repeat { body: ExprId(body), min, max: Some(max) })
        }
        (MACRO, [number, names @ ..]) if names.iter().all(|&rule| rule < rules) => {
            let Expr::Macro(call) = base.exprs().get(*number as usize)? else { return None };
            renamed(call, names).map(Expr::Macro)
        }
        _ => None,
    }
}

/// The macro with other rules in place of those that it names.
fn renamed(call: &Macro, rules: &[u32]) -> Option<Macro> {
    fn rename(argument: &mut MacroArgument, next: &mut impl Iterator<Item = u32>) -> Option<()> {
        match argument {
            MacroArgument::Rule(rule) => *rule = RuleId(next.next()?),
            MacroArgument::Tuple(parts) => {
                for part in parts {
                    rename(part, next)?; // tuples hold no tuples
                }
            }
            _ => {}
        }
        Some(())
    }
    let mut call = call.clone();
    let mut next = rules.iter().copied();
    let named = call.named.iter_mut().map(|(_, value)| value);
    for argument in call.positional.iter_mut().chain(named) {
        rename(argument, &mut next)?;
    }
    next.next().is_none().then_some(call)
}
