//! What can be told of expressions without automata: nullable, productive, used by the root.
//!
//! Each is one linear pass: an expression is looked at again only when a child has changed, by
//! counting the children that are still missing.

use crate::error::{Error, Result};
use crate::grammar::{Expr, Grammar};
use crate::ids::{ExprId, RuleId};

/// Facts on every expression and rule of a grammar.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// Rules that have the empty string.
    pub(crate) nullable: Vec<bool>,
    /// Rules that have some string.
    pub(crate) productive: Vec<bool>,
    /// Expressions that have the empty string.
    pub(crate) nullable_exprs: Vec<bool>,
    /// Expressions that have some string.
    pub(crate) productive_exprs: Vec<bool>,
}

impl Analysis {
    pub(crate) fn new(grammar: &Grammar) -> Self {
        let graph = Parents::new(grammar);
        let (nullable, nullable_exprs) = graph.least_fixpoint(grammar, |expr| match expr {
            Expr::Empty => Some(true),
            Expr::Repeat { min: 0, .. } => Some(true),
            Expr::Literal(_) | Expr::Class(_) | Expr::Macro(_) => Some(false),
            _ => None,
        });
        let (productive, productive_exprs) = graph.least_fixpoint(grammar, |expr| match expr {
            Expr::Empty | Expr::Literal(_) | Expr::Macro(_) => Some(true),
            Expr::Class(set) => Some(!set.is_empty()),
            Expr::Repeat { min: 0, .. } => Some(true),
            _ => None,
        });
        Self { nullable, productive, nullable_exprs, productive_exprs }
    }
}

/// Who holds an expression: its parent expression or the rule whose body it is; and for each
/// rule the expressions that name it.
struct Parents {
    parent: Vec<Option<ExprId>>,
    body_of: Vec<Option<RuleId>>,
    uses: Vec<Vec<ExprId>>,
}

impl Parents {
    fn new(grammar: &Grammar) -> Self {
        let n = grammar.exprs().len();
        let mut out = Self {
            parent: vec![None; n],
            body_of: vec![None; n],
            uses: vec![Vec::new(); grammar.rules().len()],
        };
        for (i, expr) in grammar.exprs().iter().enumerate() {
            let id = ExprId::new(i);
            match expr {
                Expr::Sequence(children) | Expr::Choice(children) => {
                    for &child in children {
                        out.parent[child.index()] = Some(id);
                    }
                }
                Expr::Repeat { body, .. } => out.parent[body.index()] = Some(id),
                Expr::Rule(rule) => out.uses[rule.index()].push(id),
                _ => {}
            }
        }
        for (i, rule) in grammar.rules().iter().enumerate() {
            out.body_of[rule.body.index()] = Some(RuleId::new(i));
        }
        out
    }

    /// The rules whose body has the property, and the expressions: sequences when all children have it, choices and
    /// repetitions when one has it, the rest as `known` says.
    fn least_fixpoint(
        &self,
        grammar: &Grammar,
        known: impl Fn(&Expr) -> Option<bool>,
    ) -> (Vec<bool>, Vec<bool>) {
        let exprs = grammar.exprs();
        let mut missing: Vec<usize> = exprs
            .iter()
            .map(|expr| match (known(expr), expr) {
                (Some(true), _) => 0,
                (Some(false), _) => usize::MAX,
                (None, Expr::Sequence(children)) => children.len(),
                (None, _) => 1,
            })
            .collect();
        let mut work: Vec<ExprId> =
            (0..exprs.len()).filter(|&i| missing[i] == 0).map(ExprId::new).collect();
        let mut rules = vec![false; grammar.rules().len()];
        let mut meet = |id: ExprId, work: &mut Vec<ExprId>| {
            let count = &mut missing[id.index()];
            if *count != 0 && *count != usize::MAX {
                *count -= 1;
                if *count == 0 {
                    work.push(id);
                }
            }
        };
        while let Some(id) = work.pop() {
            if let Some(parent) = self.parent[id.index()] {
                meet(parent, &mut work);
            }
            if let Some(rule) = self.body_of[id.index()]
                && !std::mem::replace(&mut rules[rule.index()], true)
            {
                for &site in &self.uses[rule.index()] {
                    meet(site, &mut work);
                }
            }
        }
        (rules, missing.into_iter().map(|count| count == 0).collect())
    }
}

/// The rules that the root's derivations can reach, and a check that each is made of what the
/// network can say exactly.
///
/// # Errors
/// [`Error::Unsupported`] for the first macro, lookahead or option, in the order of the text,
/// that changes which tokens are allowed and that the network cannot express.
pub(crate) fn reachable(grammar: &Grammar, skip_lookahead: bool) -> Result<Vec<bool>> {
    let mut seen = vec![false; grammar.rules().len()];
    let mut rules = vec![grammar.root()];
    seen[grammar.root().index()] = true;
    let mut refused: Option<Error> = None;
    let mut exprs = Vec::new();
    while let Some(rule) = rules.pop() {
        exprs.push(grammar.rule(rule).body);
        if let Some(error) = refuse_rule(grammar, rule, skip_lookahead) {
            refused = earlier(refused, error);
        }
        while let Some(id) = exprs.pop() {
            match grammar.expr(id) {
                Expr::Sequence(children) | Expr::Choice(children) => exprs.extend(children),
                Expr::Repeat { body, .. } => exprs.push(*body),
                Expr::Rule(callee) => {
                    if !std::mem::replace(&mut seen[callee.index()], true) {
                        rules.push(*callee);
                    }
                }
                Expr::Macro(call) => {
                    refused = earlier(
                        refused,
                        Error::Unsupported {
                            construct: call.name.clone(),
                            message: "this macro cannot be compressed exactly yet; \
                                  write it as rules, or use the full vocabulary"
                                .to_owned(),
                            position: grammar.position(id),
                        },
                    );
                }
                Expr::Empty | Expr::Literal(_) | Expr::Class(_) => {}
            }
        }
    }
    match refused {
        Some(error) => Err(error),
        None => Ok(seen),
    }
}

/// Of two refusals the one that stands first in the text.
fn earlier(old: Option<Error>, new: Error) -> Option<Error> {
    let position = |error: &Error| match error {
        Error::Unsupported { position, .. } => *position,
        _ => Default::default(),
    };
    match old {
        Some(old) if position(&old) <= position(&new) => Some(old),
        _ => Some(new),
    }
}

fn refuse_rule(grammar: &Grammar, rule: RuleId, skip_lookahead: bool) -> Option<Error> {
    let rule = grammar.rule(rule);
    let options = &rule.options;
    let (construct, why) = if rule.lookahead.is_some() && !skip_lookahead {
        ("lookahead", "(= ...) narrows masks without changing which strings are accepted")
    } else if options.lazy {
        ("lazy", "committing to the earliest completion is not a context-free choice")
    } else if options.max_tokens.is_some() {
        ("max_tokens", "a budget of tokens is not a property of the text")
    } else if options.max_chars.is_some() {
        ("max_chars", "a budget of characters tells tokens apart by their length")
    } else if let Some((name, _)) = options.other.first() {
        (name.as_str(), "this option is not known to leave the language as it is")
    } else {
        return None;
    };
    Some(Error::Unsupported {
        construct: construct.to_owned(),
        message: format!("rule {:?}: {why}; drop it, or use the full vocabulary", rule.name),
        position: rule.position,
    })
}
