//! One grammar out of several: rules of one stand for whole others.

use super::{ByteAutomaton, Expr, Grammar, GrammarBuilder, Macro, MacroArgument, Rule};
use crate::ids::{ExprId, RuleId};

impl Grammar {
    /// The grammar in which some of its rules are the roots of others, whose rules come after its
    /// own, with the rule's name and `__` before theirs.
    pub fn composed(&self, parts: &[(RuleId, &Grammar)]) -> Grammar {
        let mut builder = GrammarBuilder::new();
        let mut rules = Vec::new();
        self.copy_into(&mut builder, &mut rules, "");
        for &(rule, part) in parts {
            let first = rules.len();
            let prefix = format!("{}__", self.rule(rule).name);
            part.copy_into(&mut builder, &mut rules, &prefix);
            let root = RuleId::new(first + part.root().index());
            rules[rule.index()].body = builder.add(Expr::Rule(root), self.rule(rule).position);
        }
        builder.finish(rules, self.root())
    }

    /// Adds all expressions and rules after those that are there.
    fn copy_into(&self, builder: &mut GrammarBuilder, rules: &mut Vec<Rule>, prefix: &str) {
        let first_rule = rules.len();
        let rule = |id: RuleId| RuleId::new(first_rule + id.index());
        let mut first_expr = None;
        for (index, expr) in self.exprs().iter().enumerate() {
            let new = |id: &ExprId| ExprId::new(first_expr.unwrap_or(0) + id.index());
            let copy = match expr {
                Expr::Sequence(parts) => Expr::Sequence(parts.iter().map(new).collect()),
                Expr::Choice(parts) => Expr::Choice(parts.iter().map(new).collect()),
                &Expr::Repeat { ref body, min, max } => Expr::Repeat { body: new(body), min, max },
                Expr::Rule(id) => Expr::Rule(rule(*id)),
                Expr::Macro(call) => Expr::Macro(moved(call, rule)),
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.iter().map(|(p, part, q)| (*p, new(part), *q));
                    let parts = parts.collect();
                    Expr::Automaton(ByteAutomaton { parts, ..automaton.clone() })
                }
                Expr::Empty | Expr::Literal(_) | Expr::Class(_) => expr.clone(),
            };
            let id = builder.add(copy, self.position(ExprId::new(index)));
            first_expr.get_or_insert(id.index());
        }
        let first_expr = first_expr.unwrap_or(0);
        let new = |id: ExprId| ExprId::new(first_expr + id.index());
        rules.extend(self.rules().iter().map(|rule| Rule {
            name: format!("{prefix}{}", rule.name),
            options: rule.options.clone(),
            body: new(rule.body),
            lookahead: rule.lookahead.map(new),
            position: rule.position,
        }));
    }
}

fn moved(call: &Macro, rule: impl Fn(RuleId) -> RuleId + Copy) -> Macro {
    fn argument(argument: &MacroArgument, rule: impl Fn(RuleId) -> RuleId + Copy) -> MacroArgument {
        match argument {
            MacroArgument::Rule(id) => MacroArgument::Rule(rule(*id)),
            MacroArgument::Tuple(parts) => {
                // Tuples hold no tuples.
                let part = |part: &MacroArgument| match part {
                    MacroArgument::Rule(id) => MacroArgument::Rule(rule(*id)),
                    other => other.clone(),
                };
                MacroArgument::Tuple(parts.iter().map(part).collect())
            }
            other => other.clone(),
        }
    }
    Macro {
        name: call.name.clone(),
        positional: call.positional.iter().map(|value| argument(value, rule)).collect(),
        named: call
            .named
            .iter()
            .map(|(name, value)| (name.clone(), argument(value, rule)))
            .collect(),
    }
}
