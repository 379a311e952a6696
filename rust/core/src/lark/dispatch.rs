//! Free text in which tools are called: `start: (tool_a | tool_b)* tail`.
//!
//! Read as it stands, `tail: TEXT` would take every text, calls and all. XGrammar and llguidance both
//! mean that a trigger, once written, is a call: the one by a macro, the other by its lexer, where the
//! lazy head wins. So a start rule of this shape becomes XGrammar's macro, whose meaning is exact.
//!
//! The shape is told by what parts mean, not by how they are written: a tail that matches any text, and
//! tools that begin with a lazy rule that matches any text up to a trigger, or with any text and a
//! token.

use crate::error::Result;
use crate::grammar::{Expr, MacroArgument, RuleOptions};
use crate::ids::{ExprId, RuleId};

use super::compile::{Compiler, Mode};
use super::messages::unsupported;
use super::tree::{Definition, LarkNodeId, LarkNodeKind};

/// How a tool begins.
enum Trigger {
    Text(String),
    Tokens(Vec<u32>),
}

/// A tool: how it begins and what follows.
struct Tool<'d> {
    trigger: Trigger,
    rest: &'d [LarkNodeId],
}

impl<'d> Compiler<'d, '_> {
    /// The macro of a start rule of this shape.
    pub(super) fn dispatch(&mut self, start: &'d Definition) -> Result<Option<ExprId>> {
        let Some((tools, tail)) = self.shape(start) else { return Ok(None) };
        if start.attributes.is_lazy() || start.attributes.temperature.is_some() {
            return Ok(None);
        }
        let mut consumed = vec![tail];
        let mut found = Vec::new();
        for &tool in &tools {
            let Some((tool, head)) = self.tool(tool)? else { return Ok(None) };
            consumed.extend(head);
            found.push(tool);
        }
        if !self.is_any_text(self.document.definitions[tail].body)? {
            return Ok(None);
        }
        consumed.extend(tools);
        self.check_consumed(start, &consumed)?;
        let is_text = |tool: &Tool<'_>| matches!(tool.trigger, Trigger::Text(_));
        if found.iter().any(is_text) != found.iter().all(is_text) {
            let message = "tools begin with texts or with tokens, not some with these and some with \
                           those";
            return Err(unsupported("triggers of two kinds", start.position, message));
        }
        // Tools of one trigger share a rule, in the order of the triggers.
        let mut calls: Vec<(MacroArgument, Vec<ExprId>)> = Vec::new();
        let mut name = "TagDispatch";
        for tool in found {
            let triggers = match tool.trigger {
                Trigger::Text(text) => vec![MacroArgument::Text(text.into_bytes().into())],
                Trigger::Tokens(ids) => {
                    name = "TokenTagDispatch";
                    ids.into_iter().map(|id| MacroArgument::Integer(id.into())).collect()
                }
            };
            let mut parts = Vec::new();
            // What is ignored stands behind the trigger too.
            let skip = self.skip.filter(|_| !tool.rest.is_empty());
            parts.extend(skip.map(|skip| self.builder.add(Expr::Rule(skip), start.position)));
            for &part in tool.rest {
                parts.push(self.expression(part, Mode::Rule)?);
            }
            let rest = match parts.as_slice() {
                [] => self.builder.add(Expr::Empty, start.position),
                [part] => *part,
                _ => self.builder.add(Expr::Sequence(parts.into()), start.position),
            };
            for trigger in triggers {
                self.bounds.budget.spend(1 + calls.len())?;
                match calls.iter_mut().find(|(known, _)| *known == trigger) {
                    Some((_, rests)) => rests.push(rest),
                    None => calls.push((trigger, vec![rest])),
                }
            }
        }
        let mut rules: Vec<(MacroArgument, RuleId)> = Vec::new();
        for (number, (trigger, rests)) in (1..).zip(calls) {
            let body = match rests.as_slice() {
                [rest] => *rest,
                _ => self.builder.add(Expr::Choice(rests.into()), start.position),
            };
            let rule_name = format!("lark.tool.{number}");
            let rule = self.add_rule(rule_name, RuleOptions::default(), start.position);
            self.rules[rule.index()].body = body;
            rules.push((trigger, rule));
        }
        Ok(Some(self.add_dispatch(name, rules, start)))
    }

    /// The rules that the shape names: the tools and the tail.
    fn shape(&self, start: &Definition) -> Option<(Vec<usize>, usize)> {
        let kind = |id: LarkNodeId| self.document.kind(id);
        let rule = |id: LarkNodeId| match kind(id) {
            LarkNodeKind::Name(name) => self.index.get(name).copied(),
            _ => None,
        };
        let LarkNodeKind::Sequence(parts) = kind(start.body) else { return None };
        let [tools, tail] = **parts else { return None };
        let LarkNodeKind::Repeat { body, min: 0, max: None } = *kind(tools) else { return None };
        let tools = match kind(body) {
            LarkNodeKind::Choice(tools) => {
                tools.iter().map(|&tool| rule(tool)).collect::<Option<_>>()?
            }
            _ => vec![rule(body)?],
        };
        Some((tools, rule(tail)?))
    }

    /// How a rule begins, if it is a tool, and the number of the lazy rule with which it does.
    fn tool(&mut self, tool: usize) -> Result<Option<(Tool<'d>, Option<usize>)>> {
        let document = self.document;
        let definition = &document.definitions[tool];
        if definition.is_terminal() || definition.attributes.is_lazy() {
            return Ok(None);
        }
        let parts = match document.kind(definition.body) {
            LarkNodeKind::Sequence(parts) => &**parts,
            _ => std::slice::from_ref(&definition.body),
        };
        let Some(&first) = parts.first() else { return Ok(None) };
        if let LarkNodeKind::Name(name) = document.kind(first)
            && let Some(&head) = self.index.get(name)
        {
            let definition = &document.definitions[head];
            let rest = &parts[1..];
            if let Some(text) = self.trigger_text(definition)? {
                return Ok(Some((Tool { trigger: Trigger::Text(text), rest }, Some(head))));
            }
            if let Some(tokens) = self.token_behind_text(definition)? {
                return Ok(Some((Tool { trigger: Trigger::Tokens(tokens.ids), rest }, Some(head))));
            }
        }
        let &[text, token, ..] = parts else { return Ok(None) };
        let tokens = self.trigger_token(text, token)?;
        let trigger = tokens.map(|tokens| Trigger::Tokens(tokens.ids));
        Ok(trigger.map(|trigger| (Tool { trigger, rest: &parts[2..] }, None)))
    }

    /// Refuses what rules say that the macro takes the place of.
    fn check_consumed(&self, start: &Definition, consumed: &[usize]) -> Result<()> {
        for &rule in consumed {
            let definition = &self.document.definitions[rule];
            let attributes = &definition.attributes;
            let construct = if attributes.capture.is_some() {
                "capture"
            } else if attributes.stop_capture.is_some() {
                "stop_capture"
            } else if attributes.max_tokens.is_some() {
                "max_tokens"
            } else if attributes.max_chars.is_some() {
                "max_chars"
            } else if attributes.temperature.is_some() {
                "temperature"
            } else {
                continue;
            };
            let message = format!(
                "rule `{}` takes part in the free text and the tools of `{}`, where it is no rule of \
                 its own; drop the attribute, or give it to a rule within a tool",
                definition.name, start.name
            );
            return Err(unsupported(construct, definition.position, message));
        }
        Ok(())
    }
}
