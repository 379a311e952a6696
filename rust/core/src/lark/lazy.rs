//! Rules that end as soon as they can: `lazy`, `suffix`, `stop`.
//!
//! Such a rule matches a text of its language of which no proper beginning is in the language. Of a
//! regular language these texts are regular again, so that a lazy rule is an automaton like any other
//! and the engines need not know of it. `suffix` and `stop` put their marker behind the body first;
//! they differ in what captures of other rules show.

use crate::error::Result;
use crate::grammar::{Expr, Macro, MacroArgument, RuleOptions};
use crate::ids::{ExprId, RuleId};
use crate::regular::Dfa;

use super::compile::Compiler;
use super::leaves;
use super::messages::unsupported;
use super::terminals;
use super::tokens::LarkTokens;
use super::tree::{Definition, LarkNodeId, LarkNodeKind};

impl<'d> Compiler<'d, '_> {
    /// The right-hand side of a lazy rule.
    pub(super) fn lazy(&mut self, rule: RuleId, definition: &'d Definition) -> Result<ExprId> {
        let position = definition.position;
        if let Some(tokens) = self.token_behind_text(definition)? {
            // Any text is any tokens but those that end it.
            let others = LarkTokens { is_excluding: true, ids: tokens.ids.clone() };
            let free = self.builder.add(others.expression(), position);
            let free = self.builder.add(Expr::Repeat { body: free, min: 0, max: None }, position);
            let last = self.builder.add(tokens.expression(), position);
            return Ok(self.builder.add(Expr::Sequence([free, last].into()), position));
        }
        let (whole, marker) = self.lazy_language(definition)?;
        let dfa = terminals::shortest(&whole, self.bounds)?;
        let Some((marker, _)) = marker.zip(definition.attributes.capture.as_ref()) else {
            return leaves::add_dfa(&mut self.builder, &dfa, position, self.bounds);
        };
        // The capture shows what stands before the marker: a rule of its own.
        let Some([end]) = marker.strings(1).and_then(|texts| <[String; 1]>::try_from(texts).ok())
        else {
            let message = "what stands before a marker of several forms is no rule of its own: leave \
                           `capture` out, or give a marker that is one text";
            return Err(unsupported("capture", position, message));
        };
        let before = terminals::without_end(&dfa, &end, self.bounds)?;
        let body = leaves::add_dfa(&mut self.builder, &before, position, self.bounds)?;
        let capture = self.rules[rule.index()].options.capture.take();
        let options = RuleOptions { capture, ..RuleOptions::default() };
        let inner = self.add_rule(format!("{}.body", definition.name), options, position);
        self.rules[inner.index()].body = body;
        let inner = self.builder.add(Expr::Rule(inner), position);
        let end = leaves::add_text(&mut self.builder, &end, position);
        Ok(self.builder.add(Expr::Sequence([inner, end].into()), position))
    }

    /// What a lazy rule matches if it does not end early, and its marker.
    fn lazy_language(&mut self, definition: &'d Definition) -> Result<(Dfa, Option<Dfa>)> {
        let attributes = &definition.attributes;
        let whose = attributes.marker.map_or("lazy", |(ending, _)| ending.name());
        self.terminals.check(definition.body, &format!("a rule with `{whose}`"), self.bounds)?;
        let body = self.terminals.dfa(definition.body, self.bounds)?;
        let Some((ending, marker)) = attributes.marker else { return Ok((body, None)) };
        self.terminals.check(marker, &format!("`{}`", ending.name()), self.bounds)?;
        let marker = self.terminals.dfa(marker, self.bounds)?;
        Ok((body.concatenation(&marker, self.bounds)?, Some(marker)))
    }

    /// The token of `head[lazy]: TEXT <token>`, where TEXT is any text.
    pub(super) fn token_behind_text(
        &mut self,
        definition: &'d Definition,
    ) -> Result<Option<LarkTokens>> {
        let attributes = &definition.attributes;
        match self.document.kind(definition.body) {
            LarkNodeKind::Sequence(parts)
                if attributes.lazy.is_some() && attributes.marker.is_none() =>
            {
                match **parts {
                    [text, token] => self.trigger_token(text, token),
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    /// The tokens that a token behind any text is one of.
    pub(super) fn trigger_token(
        &mut self,
        text: LarkNodeId,
        token: LarkNodeId,
    ) -> Result<Option<LarkTokens>> {
        let LarkNodeKind::Token(name) = self.document.kind(token) else { return Ok(None) };
        if !self.is_any_text(text)? {
            return Ok(None);
        }
        let position = self.document.position(token);
        let tokens = LarkTokens::read(name, position, self.subgrammars)?;
        if tokens.is_excluding {
            let message = "a token that ends free text is named: it cannot be all but some";
            return Err(unsupported(name.to_string(), position, message));
        }
        Ok(Some(tokens))
    }

    /// Whether a part, through the names that it may be, matches any text.
    pub(super) fn is_any_text(&mut self, mut part: LarkNodeId) -> Result<bool> {
        let document = self.document;
        for _ in 0..=document.definitions.len() {
            self.bounds.budget.spend(1)?;
            let LarkNodeKind::Name(name) = document.kind(part) else {
                if self.terminals.check(part, "", self.bounds).is_err() {
                    return Ok(false);
                }
                return Ok(self.terminals.dfa(part, self.bounds)?.is_universal());
            };
            let Some(&at) = self.index.get(name) else { return Ok(false) };
            if !document.definitions[at].attributes.are_none() {
                return Ok(false);
            }
            part = document.definitions[at].body;
        }
        Ok(false)
    }

    /// The text behind any text with which a lazy rule ends, if it is such a rule.
    pub(super) fn trigger_text(&mut self, definition: &'d Definition) -> Result<Option<String>> {
        if !definition.attributes.is_lazy() {
            return Ok(None);
        }
        if self.terminals.check(definition.body, "", self.bounds).is_err() {
            return Ok(None);
        }
        let (whole, _) = self.lazy_language(definition)?;
        let Some(text) = whole.shortest().filter(|text| !text.is_empty()) else { return Ok(None) };
        let end = Dfa::texts([text.as_str()], self.bounds)?;
        let expected = Dfa::anything().concatenation(&end, self.bounds)?;
        Ok((expected == whole).then_some(text))
    }

    /// A macro that takes free text in which triggers call rules.
    pub(super) fn add_dispatch(
        &mut self,
        name: &str,
        calls: Vec<(MacroArgument, RuleId)>,
        definition: &Definition,
    ) -> ExprId {
        let pair = |(trigger, rule)| MacroArgument::Tuple(vec![trigger, MacroArgument::Rule(rule)]);
        let positional = calls.into_iter().map(pair).collect();
        let named = vec![("loop_after_dispatch".to_owned(), MacroArgument::Boolean(true))];
        let call = Macro { name: name.to_owned(), positional, named };
        self.builder.add(Expr::Macro(call), definition.position)
    }
}
