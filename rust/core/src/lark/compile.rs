//! A document to a grammar.
//!
//! Each definition becomes a rule of its name. In rules what may be ignored stands behind each literal,
//! range, pattern, terminal, token and grammar within, as in XGrammar; in terminals nothing does.
//! Grammars within stand as empty rules until the end, when they are linked.

use rustc_hash::FxHashMap;

use crate::error::{Error, Position, Result};
use crate::grammar::{Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::ids::{ExprId, RuleId};
use crate::regular::{Bounds, substrings};

use super::leaves;
use super::messages::{limit, shown, syntax};
use super::names::{self, Index};
use super::settings::{Settings, options};
use super::terminals::{LarkTerminals, definition};
use super::tokens::LarkTokens;
use super::tree::{Definition, LarkDocument, LarkNodeId, LarkNodeKind};
use super::{LarkOptions, Subgrammars};

/// What stands ready when a document is compiled.
pub(super) struct Ready<'r> {
    /// The grammars of the documents before it in its text.
    pub(super) documents: &'r [Grammar],
    /// The grammars that texts name.
    pub(super) named: &'r FxHashMap<String, Grammar>,
}

/// How a part is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// As a rule: what is ignored may stand between its parts.
    Rule,
    /// As a terminal: what it is made of stands together.
    Terminal,
    /// A part of a rule of which the rule as a whole takes what is ignored.
    Whole,
}

/// A grammar that is linked at the end.
enum LinkedPart<'r> {
    Made(Grammar),
    Ready(&'r Grammar),
}

pub(super) struct Compiler<'d, 'b> {
    pub(super) document: &'d LarkDocument,
    pub(super) index: &'d Index,
    pub(super) terminals: LarkTerminals<'d>,
    pub(super) builder: GrammarBuilder,
    pub(super) rules: Vec<Rule>,
    pub(super) subgrammars: &'d mut dyn Subgrammars,
    pub(super) bounds: &'d Bounds<'b>,
    /// The rule of what may be ignored.
    pub(super) skip: Option<RuleId>,
    ready: &'d Ready<'d>,
    parts: Vec<(RuleId, LinkedPart<'d>)>,
    /// The rules of schemas, documents and named grammars, by what they are.
    linked: FxHashMap<String, RuleId>,
    patterns: FxHashMap<(&'d str, &'d str), ExprId>,
}

/// Compiles a document.
///
/// # Errors
/// What is wrong in it, at its place; `Limit`.
pub(super) fn compile(
    mut document: LarkDocument,
    options: &LarkOptions,
    ready: &Ready<'_>,
    subgrammars: &mut dyn Subgrammars,
    bounds: &Bounds<'_>,
) -> Result<Grammar> {
    let settings = Settings::read(&document)?;
    let index = names::resolve(&mut document, options, bounds)?;
    let document = &document;
    if document.definitions.len() > options.limits.max_rules {
        let message = "the text defines more; merge some, or raise the limit";
        return Err(limit("max_rules", options.limits.max_rules, message));
    }
    let Some(&start) = index.get(&*options.start) else {
        return Err(names::without_start(document, &options.start));
    };
    let terminals = LarkTerminals::new(document, &index, options.dialect, bounds)?;
    let mut compiler = Compiler {
        document,
        index: &index,
        terminals,
        builder: GrammarBuilder::new(),
        rules: Vec::with_capacity(document.definitions.len()),
        subgrammars,
        bounds,
        skip: None,
        ready,
        parts: Vec::new(),
        linked: FxHashMap::default(),
        patterns: FxHashMap::default(),
    };
    compiler.run(start, &settings)
}

impl<'d> Compiler<'d, '_> {
    fn run(&mut self, start: usize, settings: &Settings) -> Result<Grammar> {
        let document = self.document;
        for definition in &document.definitions {
            let options = options(definition);
            self.add_rule(definition.name.to_string(), options, definition.position);
        }
        self.add_skip(settings)?;
        for (at, definition) in document.definitions.iter().enumerate() {
            let dispatch = if at == start { self.dispatch(definition)? } else { None };
            let body = match dispatch {
                Some(body) => body,
                None => self.body(RuleId::new(at), definition)?,
            };
            self.rules[at].body = body;
        }
        let root = self.root(start, settings);
        let rules = std::mem::take(&mut self.rules);
        let grammar = std::mem::take(&mut self.builder).finish(rules, root);
        if self.parts.is_empty() {
            return Ok(grammar);
        }
        let parts = self.parts.iter().map(|(rule, part)| match part {
            LinkedPart::Made(grammar) => (*rule, grammar),
            LinkedPart::Ready(grammar) => (*rule, *grammar),
        });
        let parts: Vec<(RuleId, &Grammar)> = parts.collect();
        self.bounds.budget.spend(parts.iter().map(|(_, part)| part.size()).sum())?;
        Ok(grammar.composed(&parts))
    }

    /// Adds a rule, empty at first.
    pub(super) fn add_rule(
        &mut self,
        name: String,
        options: RuleOptions,
        position: Position,
    ) -> RuleId {
        let body = self.builder.add(Expr::Empty, position);
        self.rules.push(Rule { name, options, body, lookahead: None, position, is_common: false });
        RuleId::new(self.rules.len() - 1)
    }

    fn add_skip(&mut self, settings: &Settings) -> Result<()> {
        let document = self.document;
        let Some(&first) = document.ignores.first() else { return Ok(()) };
        let position = document.position(first);
        let mut choices = Vec::new();
        for &ignored in &document.ignores {
            choices.push(self.expression(ignored, Mode::Terminal)?);
        }
        let body = match choices.as_slice() {
            [choice] => *choice,
            _ => self.builder.add(Expr::Choice(choices.into()), position),
        };
        let max = settings.ignores_once.then_some(1);
        let body = self.builder.add(Expr::Repeat { body, min: 0, max }, position);
        let rule = self.add_rule("lark.ignore".into(), RuleOptions::default(), position);
        self.rules[rule.index()].body = body;
        self.skip = Some(rule);
        Ok(())
    }

    /// The rule to start with, around which may stand what is ignored.
    fn root(&mut self, start: usize, settings: &Settings) -> RuleId {
        let definition = &self.document.definitions[start];
        let root = RuleId::new(start);
        let Some(skip) = self.skip else { return root };
        let skips_at_end = definition.is_terminal() || is_lexeme(definition);
        if !settings.skips_at_start && !skips_at_end {
            return root;
        }
        let position = definition.position;
        let mut parts = Vec::new();
        if settings.skips_at_start {
            parts.push(self.builder.add(Expr::Rule(skip), position));
        }
        parts.push(self.builder.add(Expr::Rule(root), position));
        if skips_at_end {
            parts.push(self.builder.add(Expr::Rule(skip), position));
        }
        let body = self.builder.add(Expr::Sequence(parts.into()), position);
        let rule = self.add_rule("lark.start".into(), RuleOptions::default(), position);
        self.rules[rule.index()].body = body;
        rule
    }

    /// The right-hand side of a definition.
    fn body(&mut self, rule: RuleId, definition: &'d Definition) -> Result<ExprId> {
        let attributes = &definition.attributes;
        if definition.is_terminal() {
            return self.expression(definition.body, Mode::Terminal);
        }
        if attributes.is_lazy() {
            return self.lazy(rule, definition);
        }
        if attributes.temperature.is_some() {
            let kind = self.document.kind(definition.body);
            if matches!(
                kind,
                LarkNodeKind::Schema(..) | LarkNodeKind::Document(_) | LarkNodeKind::Grammar(_)
            ) {
                return self.expression(definition.body, Mode::Whole);
            }
            self.terminals.check(definition.body, "a rule with `temperature`", self.bounds)?;
            return self.expression(definition.body, Mode::Terminal);
        }
        self.expression(definition.body, Mode::Rule)
    }

    /// What may be ignored, behind an expression.
    fn skipped(&mut self, expr: ExprId, mode: Mode, position: Position) -> ExprId {
        match self.skip {
            Some(skip) if mode == Mode::Rule => {
                let skip = self.builder.add(Expr::Rule(skip), position);
                self.builder.add(Expr::Sequence([expr, skip].into()), position)
            }
            _ => expr,
        }
    }

    /// The expression of a part.
    pub(super) fn expression(&mut self, root: LarkNodeId, mode: Mode) -> Result<ExprId> {
        let document = self.document;
        let nodes = document.subtree(root);
        let first = nodes.start;
        // What stands under `&` and `~` is for the automaton of these.
        let mut is_inside = vec![false; nodes.len()];
        for at in nodes.clone().rev() {
            let kind = &document.nodes[at].kind;
            if is_inside[at - first] || matches!(kind, LarkNodeKind::Both(_) | LarkNodeKind::Not(_))
            {
                kind.children().iter().for_each(|id| is_inside[id.index() - first] = true);
            }
        }
        let mut made: Vec<Option<ExprId>> = Vec::with_capacity(nodes.len());
        for at in nodes {
            self.bounds.budget.spend(1)?;
            if is_inside[at - first] {
                made.push(None);
                continue;
            }
            let node = &document.nodes[at];
            let of = |id: LarkNodeId| made[id.index() - first];
            let of_all = |ids: &[LarkNodeId]| ids.iter().filter_map(|&id| of(id)).collect();
            let expr = match &node.kind {
                LarkNodeKind::Sequence(parts) if parts.is_empty() => Expr::Empty,
                LarkNodeKind::Sequence(parts) => Expr::Sequence(of_all(parts)),
                LarkNodeKind::Choice(parts) => Expr::Choice(of_all(parts)),
                &LarkNodeKind::Repeat { body, min, max } => match of(body) {
                    Some(body) => Expr::Repeat { body, min, max },
                    None => Expr::Empty,
                },
                _ => {
                    made.push(Some(self.leaf(LarkNodeId(at as u32), mode)?));
                    continue;
                }
            };
            made.push(Some(self.builder.add(expr, node.position)));
        }
        match made.pop().flatten() {
            Some(expr) => Ok(expr),
            None => Ok(self.builder.add(Expr::Empty, document.position(root))),
        }
    }

    /// The expression of what no other expressions make.
    fn leaf(&mut self, id: LarkNodeId, mode: Mode) -> Result<ExprId> {
        let document = self.document;
        let position = document.position(id);
        let expr = match document.kind(id) {
            LarkNodeKind::Text { text, .. } if text.is_empty() => {
                return Ok(self.builder.add(Expr::Empty, position));
            }
            LarkNodeKind::Text { text, of_any_case: false } => {
                leaves::add_text(&mut self.builder, text, position)
            }
            LarkNodeKind::Text { text, .. } => {
                leaves::add_text_of_any_case(&mut self.builder, text, position)
            }
            &LarkNodeKind::Range(a, b) => {
                let set = leaves::range(a, b);
                self.builder.add(Expr::Class(set), position)
            }
            LarkNodeKind::Pattern { text, flags } => self.pattern(text, flags, position)?,
            LarkNodeKind::Both(_) | LarkNodeKind::Not(_) => {
                let construct =
                    if matches!(document.kind(id), LarkNodeKind::Not(_)) { "`~`" } else { "`&`" };
                self.terminals.check(id, construct, self.bounds)?;
                let dfa = self.terminals.dfa(id, self.bounds)?;
                leaves::add_dfa(&mut self.builder, &dfa, position, self.bounds)?
            }
            LarkNodeKind::Structured(text, place) => {
                let chunks = leaves::chunks(text, *place)?;
                let chunks: Vec<&[u8]> = chunks.iter().map(String::as_bytes).collect();
                let described = substrings::substrings(&chunks, self.bounds)?;
                self.builder.add(leaves::automaton(described), position)
            }
            LarkNodeKind::Name(name) => {
                let at = definition(self.index, name, position)?;
                let expr = self.builder.add(Expr::Rule(RuleId::new(at)), position);
                let definition = &document.definitions[at];
                if !definition.is_terminal() && !is_lexeme(definition) {
                    return Ok(expr);
                }
                expr
            }
            LarkNodeKind::Token(text) => {
                let tokens = LarkTokens::read(text, position, self.subgrammars)?;
                self.bounds.budget.spend(tokens.ids.len())?;
                self.builder.add(tokens.expression(), position)
            }
            LarkNodeKind::Schema(text, place) => {
                let rule = self.link(format!("json {text}"), "lark.json", position, |own| {
                    let made = own.subgrammars.json_schema(text, *place);
                    made.map(LinkedPart::Made).map_err(|error| in_schema(error, *place))
                })?;
                self.builder.add(Expr::Rule(rule), position)
            }
            LarkNodeKind::Document(number) => {
                let rule = self.link(format!("lark {number}"), "lark.lark", position, |own| {
                    Ok(LinkedPart::Ready(&own.ready.documents[*number]))
                })?;
                self.builder.add(Expr::Rule(rule), position)
            }
            LarkNodeKind::Grammar(name) => {
                let rule = self.link(format!("@{name}"), "lark.grammar", position, |own| {
                    let found = own.ready.named.get(&**name).map(LinkedPart::Ready);
                    found.ok_or_else(|| unknown_grammar(name, position))
                })?;
                self.builder.add(Expr::Rule(rule), position)
            }
            LarkNodeKind::Template { name, .. } => {
                let message =
                    format!("the template `{}` stands where no template can", shown(name));
                return Err(syntax(position, message));
            }
            LarkNodeKind::Sequence(_) | LarkNodeKind::Choice(_) | LarkNodeKind::Repeat { .. } => {
                self.builder.add(Expr::Empty, position)
            }
        };
        Ok(self.skipped(expr, mode, position))
    }

    fn pattern(&mut self, text: &'d str, flags: &'d str, position: Position) -> Result<ExprId> {
        if let Some(&known) = self.patterns.get(&(text, flags)) {
            return Ok(known);
        }
        let pattern = self.terminals.pattern(text, flags, position)?;
        let expr = leaves::add_pattern(&mut self.builder, pattern, position, self.bounds)?;
        self.patterns.insert((text, flags), expr);
        Ok(expr)
    }

    /// The rule that stands for a grammar within, made once.
    fn link(
        &mut self,
        key: String,
        name: &str,
        position: Position,
        part: impl FnOnce(&mut Self) -> Result<LinkedPart<'d>>,
    ) -> Result<RuleId> {
        if let Some(&rule) = self.linked.get(&key) {
            return Ok(rule);
        }
        let part = part(self)?;
        let name = format!("{name}.{}", self.parts.len() + 1);
        let rule = self.add_rule(name, RuleOptions::default(), position);
        self.parts.push((rule, part));
        self.linked.insert(key, rule);
        Ok(rule)
    }
}

/// Whether a rule is one piece, as terminals are: what is ignored stands behind it, not in it.
fn is_lexeme(definition: &Definition) -> bool {
    definition.attributes.is_lazy() || definition.attributes.temperature.is_some()
}

pub(super) fn unknown_grammar(name: &str, position: Position) -> Error {
    let message = format!("no grammar is given for `@{}`; give one of that name", shown(name));
    syntax(position, message)
}

/// The error of a schema, with the place of the schema.
fn in_schema(error: Error, place: Position) -> Error {
    match error {
        Error::Schema { kind, pointer, keyword, message } => {
            let message = format!(
                "{message} (the schema stands at line {}, column {})",
                place.line, place.column
            );
            Error::Schema { kind, pointer, keyword, message }
        }
        Error::LimitInSchema { pointer, limit, value, message } => {
            let message = format!(
                "{message} (the schema stands at line {}, column {})",
                place.line, place.column
            );
            Error::LimitInSchema { pointer, limit, value, message }
        }
        other => other,
    }
}
