//! Equality of grammars up to positions and the numbering of expressions.

use std::collections::HashSet;

use crate::grammar::{Expr, Grammar};
use crate::ids::ExprId;

/// Whether two grammars have the same start, the same rules in the same order (name and options)
/// and the same right-hand sides, node by node.
///
/// Cost: at most one step for each pair of expressions that stand in the same place.
pub fn structurally_equal(a: &Grammar, b: &Grammar) -> bool {
    if a.root() != b.root() || a.rules().len() != b.rules().len() {
        return false;
    }
    let mut pairs: Vec<(ExprId, ExprId)> = Vec::new();
    for (x, y) in a.rules().iter().zip(b.rules()) {
        if x.name != y.name || x.options != y.options {
            return false;
        }
        pairs.push((x.body, y.body));
        match (x.lookahead, y.lookahead) {
            (Some(p), Some(q)) => pairs.push((p, q)),
            (None, None) => {}
            _ => return false,
        }
    }
    let mut seen = HashSet::new();
    while let Some((x, y)) = pairs.pop() {
        if seen.insert((x, y)) && !heads_equal(a.expr(x), b.expr(y), &mut pairs) {
            return false;
        }
    }
    true
}

/// Compares two nodes and adds their children to the pairs that are still to be compared.
fn heads_equal(x: &Expr, y: &Expr, pairs: &mut Vec<(ExprId, ExprId)>) -> bool {
    match (x, y) {
        (Expr::Sequence(xs), Expr::Sequence(ys)) | (Expr::Choice(xs), Expr::Choice(ys)) => {
            pairs.extend(xs.iter().copied().zip(ys.iter().copied()));
            xs.len() == ys.len()
        }
        (Expr::Repeat { body: x, min: a, max: b }, Expr::Repeat { body: y, min: c, max: d }) => {
            pairs.push((*x, *y));
            (a, b) == (c, d)
        }
        _ => x == y,
    }
}
