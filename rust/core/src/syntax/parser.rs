//! Tokens to a [`Grammar`].
//!
//! The text is scanned twice: once for the rule names, which may be used before they are defined,
//! then to build the rules. Open groups stand on a stack of our own; finished parts of the
//! innermost sequence and choice stand at the ends of `items` and `alternatives`, so that a group
//! costs no allocation.
//!
//! `max_nesting` bounds the open parentheses of the text and also those that the printer would
//! write (stacked repetitions, `"a"**`, are printed as `("a"*)*`).
//!
//! - `names`: the first scan; `words`: names, GBNF's dot, macros, token references; `repetition`: what stands behind an item

mod names;
mod repetition;
mod words;

use std::collections::HashMap;

use crate::apart::Apart;
use crate::budget::Interrupt;
use crate::error::{Error, Position, Result};
use crate::grammar::{Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::ids::{ExprId, RuleId};
use crate::limits::Limits;

use super::NamedTokens;
use super::escapes;
use super::messages::{described, misread, shown, syntax};
use super::options::{Owner, options};
use super::printer::{Around, needs_parentheses};
use super::scanner::{GrammarToken, Kind, Scanner};
use super::suggest::nearest;

/// Tokens between two looks at the interrupt.
const TOKENS_BETWEEN_CHECKS: u32 = 1_024;
/// Bytes of a token that take as long as another token.
const BYTES_OF_TOKEN: u32 = 64;

/// A finished part of an expression.
#[derive(Clone, Copy)]
struct Operand {
    id: ExprId,
    position: Position,
    /// Levels of parentheses that printing it takes.
    depth: usize,
}

/// An open group; the outermost is the right-hand side itself.
struct OpenGroup {
    position: Position,
    /// Where its current sequence begins in `items`.
    items: usize,
    /// Where its alternatives begin in `alternatives`.
    alternatives: usize,
}

/// Parts of a sequence or a choice, put together.
enum Combined {
    Empty,
    Single(Operand),
    Several { expr: Expr, position: Position, depth: usize },
}

/// What a right-hand side is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RightHandSide {
    Rule,
    Lookahead,
}

/// Reads one text.
pub(super) struct GrammarParser<'t> {
    text: &'t str,
    tokens: Option<&'t NamedTokens>,
    limits: &'t Limits,
    interrupt: &'t Interrupt,
    /// Tokens taken since the interrupt was looked at.
    taken: u32,
    scanner: Scanner<'t>,
    current: GrammarToken,
    following: GrammarToken,
    /// The line of the token before `current`, 0 at the start.
    line_before: u32,
    names: HashMap<&'t str, RuleId>,
    /// The rules' names in order.
    order: Vec<(&'t str, Position)>,
    builder: GrammarBuilder,
    frames: Vec<OpenGroup>,
    items: Vec<Operand>,
    alternatives: Vec<Operand>,
}

impl<'t> GrammarParser<'t> {
    /// Checks the text's length and collects the names of its rules.
    pub(super) fn new(
        text: &'t str,
        tokens: Option<&'t NamedTokens>,
        limits: &'t Limits,
        interrupt: &'t Interrupt,
    ) -> Result<Self> {
        // Offsets and expression ids are `u32`; no text makes more than one expression a byte.
        let bound = limits.max_grammar_bytes.min(i32::MAX as usize);
        if text.len() > bound {
            let message =
                format!("the grammar text has {} bytes; shorten it or raise the limit", text.len());
            return Err(Error::Limit { limit: "max_grammar_bytes", value: bound as u64, message });
        }
        let mut scanner = Scanner::new(text);
        let (names, order) = names::rule_names(text, scanner.clone(), limits, interrupt)?;
        let current = scanner.next_token();
        let following = scanner.next_token();
        Ok(Self {
            text,
            tokens,
            limits,
            interrupt,
            taken: 0,
            scanner,
            current,
            following,
            line_before: 0,
            names,
            order,
            builder: GrammarBuilder::new(),
            frames: Vec::new(),
            items: Vec::new(),
            alternatives: Vec::new(),
        })
    }

    /// Reads every rule; the start rule is the one named `root`.
    pub(super) fn grammar(mut self, root: &str) -> Result<Grammar> {
        if self.current.kind == Kind::End {
            let message = format!("the grammar has no rules; write at least `{root} ::= \"...\"`");
            return Err(syntax(self.current.position, message));
        }
        let mut rules = Apart::from(Vec::with_capacity(self.order.len()));
        while self.current.kind != Kind::End {
            self.look()?;
            let rule = self.rule(rules.len())?;
            rules.push(rule);
        }
        match self.names.get(root) {
            Some(&root) => Ok(self.builder.finish(rules.into_list(), root)),
            None => Err(self.no_root(root)),
        }
    }

    fn no_root(&self, root: &str) -> Error {
        let names = || self.order.iter().map(|(name, _)| *name);
        let mut list: Vec<String> = names().take(5).map(|n| format!("\"{}\"", shown(n))).collect();
        if self.order.len() > list.len() {
            list.push(format!("and {} more", self.order.len() - list.len()));
        }
        let advice = match nearest(root, names()) {
            Some(near) => format!("rename \"{}\", or ask for it", shown(near)),
            None => "add it, or ask for one of them".into(),
        };
        let (root, list) = (shown(root), list.join(", "));
        let message = format!(
            "no rule is named \"{root}\", the start rule asked for; the rules are {list}; {advice}"
        );
        syntax(Position { line: 1, column: 1 }, message)
    }

    // ---- tokens ----

    fn slice(&self, token: &GrammarToken) -> &'t str {
        &self.text[token.range()]
    }

    fn advance(&mut self) {
        self.line_before = self.current.position.line;
        self.current = self.following;
        self.following = self.scanner.next_token();
    }

    /// Looks at the interrupt now and then.
    fn look(&mut self) -> Result<()> {
        self.taken += 1 + self.current.range().len() as u32 / BYTES_OF_TOKEN;
        if self.taken < TOKENS_BETWEEN_CHECKS {
            return Ok(());
        }
        self.taken = 0;
        self.interrupt.look()
    }

    /// Whether the current token is a rule's name.
    fn at_rule(&self) -> bool {
        self.current.kind == Kind::Word
            && matches!(self.following.kind, Kind::Assign | Kind::Options)
    }

    /// The error at a token that cannot stand where it stands.
    fn unexpected(&self, token: &GrammarToken, expected: &str) -> Error {
        let text = self.slice(token);
        misread(token, text).unwrap_or_else(|| {
            let found = described(token, text);
            syntax(token.position, format!("found {found}, expected {expected}"))
        })
    }

    fn expect(&mut self, kind: Kind, expected: &str) -> Result<()> {
        if self.current.kind != kind {
            return Err(self.unexpected(&self.current, expected));
        }
        self.advance();
        Ok(())
    }

    // ---- rules ----

    fn rule(&mut self, index: usize) -> Result<Rule> {
        if !self.at_rule() {
            return Err(self.no_rule());
        }
        let head = self.current;
        let name = self.slice(&head);
        self.check_head(index, name, head.position)?;
        self.advance();
        let options = if self.current.kind == Kind::Options {
            let owner = Owner { name, rules: self.order.len() };
            let found = options(self.slice(&self.current), &owner, self.current.position)?;
            self.advance();
            found
        } else {
            RuleOptions::default()
        };
        self.expect(Kind::Assign, "`::=`")?;
        let body = self.side(RightHandSide::Rule)?.ok_or_else(|| {
            let message = format!(
                "the rule \"{}\" has no right-hand side; write `\"\"` for the empty string",
                shown(name)
            );
            syntax(head.position, message)
        })?;
        let mut lookahead = None;
        if self.current.kind == Kind::OpenLookahead {
            lookahead = self.lookahead()?;
        }
        let position = head.position;
        Ok(Rule { name: name.into(), options, body, lookahead, position, is_common: false })
    }

    fn check_head(&self, index: usize, name: &str, position: Position) -> Result<()> {
        if self.line_before == position.line {
            let message = format!("the rule \"{}\" must begin on a line of its own", shown(name));
            return Err(syntax(position, message));
        }
        match self.names.get(name) {
            Some(id) if id.index() != index => {
                let first = self.order[id.index()].1.line;
                let name = shown(name);
                Err(syntax(
                    position,
                    format!(
                        "the rule \"{name}\" is defined twice, first on line {first}; rename one, \
                         or join them with `|`"
                    ),
                ))
            }
            _ => Ok(()),
        }
    }

    /// The error where a rule was expected.
    fn no_rule(&self) -> Error {
        if self.following.kind == Kind::Class {
            let message = "expected `::=` after the name of a rule; options stand in brackets \
                           directly after the name, as in `name[lazy] ::= ...`";
            return syntax(self.following.position, message);
        }
        if self.current.kind == Kind::Word {
            return self.unexpected(
                &self.following,
                "`::=` after the name of a rule; a rule is written `name ::= ...`",
            );
        }
        if self.current.kind == Kind::Assign {
            let message = "found `::=` without the name of a rule before it; write `name ::= ...`";
            return syntax(self.current.position, message);
        }
        self.unexpected(&self.current, "a rule, written `name ::= ...`")
    }

    fn lookahead(&mut self) -> Result<Option<ExprId>> {
        let open = self.current.position;
        self.advance();
        let Some(body) = self.side(RightHandSide::Lookahead)? else {
            return Err(syntax(open, "the lookahead `(= ...)` is empty; write what must follow"));
        };
        if self.current.kind != Kind::End && !self.at_rule() {
            return Err(self.unexpected(
                &self.current,
                "the next rule, since a lookahead `(= ...)` ends its rule",
            ));
        }
        Ok(Some(body))
    }

    // ---- expressions ----

    /// Reads a right-hand side, or a lookahead with its `)`. `None` if nothing stands there.
    fn side(&mut self, side: RightHandSide) -> Result<Option<ExprId>> {
        debug_assert!(self.frames.is_empty() && self.items.is_empty());
        self.open();
        while !self.at_end(side)? {
            self.step(side)?;
        }
        let nothing = self.items.is_empty() && self.alternatives.is_empty();
        let body = self.close();
        if side == RightHandSide::Lookahead {
            self.advance();
        }
        Ok((!nothing).then_some(body.id))
    }

    /// Whether the current token ends the whole side; an error if groups are open there.
    fn at_end(&self, side: RightHandSide) -> Result<bool> {
        let kind = self.current.kind;
        let ends_rule = kind == Kind::End || self.at_rule();
        if let (true, [_, .., last]) = (ends_rule, self.frames.as_slice()) {
            return Err(syntax(last.position, "this `(` is not closed in its rule; add a `)`"));
        }
        match side {
            RightHandSide::Rule => {
                Ok(ends_rule || (kind == Kind::OpenLookahead && self.frames.len() == 1))
            }
            RightHandSide::Lookahead if ends_rule => {
                Err(self.unexpected(&self.current, "the `)` that closes the lookahead `(= ...)`"))
            }
            RightHandSide::Lookahead => Ok(kind == Kind::Close && self.frames.len() == 1),
        }
    }

    /// Takes one token (or a repetition's braces, or a macro) into the innermost group.
    fn step(&mut self, side: RightHandSide) -> Result<()> {
        self.look()?;
        let token = self.current;
        match token.kind {
            Kind::Word => return self.word(token),
            Kind::Literal => {
                let bytes = escapes::literal(self.slice(&token), token.position)?;
                self.push(if bytes.is_empty() { Expr::Empty } else { Expr::Literal(bytes) }, token);
            }
            Kind::Class => {
                let set = escapes::class(self.slice(&token), token.position)?;
                self.push(Expr::Class(set), token);
            }
            Kind::TokenRef | Kind::NotTokenRef => {
                let call = words::token_reference(self.slice(&token), self.tokens, token.position)?;
                self.push(Expr::Macro(call), token);
            }
            Kind::Open => {
                self.open();
                self.check_nesting(0)?;
            }
            Kind::Close if self.frames.len() > 1 => {
                let item = self.close();
                self.items.push(item);
            }
            Kind::Pipe => self.end_sequence(),
            Kind::Star => self.repeat(0, None)?,
            Kind::Plus => self.repeat(1, None)?,
            Kind::Question => self.repeat(0, Some(1))?,
            Kind::OpenBrace => {
                let (min, max) = self.bounds()?;
                return self.repeat_from(token, min, max);
            }
            _ => return Err(self.misplaced(&token, side)),
        }
        self.advance();
        Ok(())
    }

    /// The error at a token that begins no part of an expression.
    fn misplaced(&self, token: &GrammarToken, side: RightHandSide) -> Error {
        let message = match token.kind {
            Kind::Close => "this `)` closes nothing; remove it or add a `(`",
            Kind::CloseBrace => "this `}` closes nothing; remove it or add a `{`",
            Kind::OpenLookahead if side == RightHandSide::Lookahead => {
                "a lookahead `(= ...)` cannot stand inside another"
            }
            Kind::OpenLookahead => {
                "a lookahead `(= ...)` can only end a rule, outside every group; make the group a \
                 rule of its own"
            }
            Kind::Assign => {
                "found `::=` without the name of a rule before it; options stand in brackets \
                 directly after the name, as in `name[lazy] ::= ...`"
            }
            Kind::Equal => "found `=`; a rule is written `name ::= ...`",
            _ => {
                return self.unexpected(token, "a literal, a class, the name of a rule or a group");
            }
        };
        syntax(token.position, message)
    }

    fn open(&mut self) {
        self.frames.push(OpenGroup {
            position: self.current.position,
            items: self.items.len(),
            alternatives: self.alternatives.len(),
        });
    }

    /// Ends the innermost group.
    fn close(&mut self) -> Operand {
        self.end_sequence();
        let frame = self.frames.pop();
        let (start, position) =
            frame.map_or((0, Position::default()), |f| (f.alternatives, f.position));
        let item = self.combine(&self.alternatives[start..], Around::Choice);
        self.alternatives.truncate(start);
        self.finish(item, position)
    }

    /// Ends the innermost sequence, at a `|` or at the end of its group.
    fn end_sequence(&mut self) {
        let start = self.frames.last().map_or(0, |f| f.items);
        let item = self.combine(&self.items[start..], Around::Sequence);
        self.items.truncate(start);
        let item = self.finish(item, self.current.position);
        self.alternatives.push(item);
    }

    /// What parts make together: none the empty string, a single one itself.
    fn combine(&self, parts: &[Operand], around: Around) -> Combined {
        let (Some(first), false) = (parts.first(), parts.len() == 1) else {
            return parts.first().map_or(Combined::Empty, |only| Combined::Single(*only));
        };
        let depth = parts.iter().map(|part| self.depth_in(part, around)).max().unwrap_or(0);
        let ids = parts.iter().map(|part| part.id).collect();
        let expr = match around {
            Around::Choice => Expr::Choice(ids),
            _ => Expr::Sequence(ids),
        };
        Combined::Several { expr, position: first.position, depth }
    }

    /// Adds the node that parts make; `position` is for the empty string.
    fn finish(&mut self, parts: Combined, position: Position) -> Operand {
        let (expr, position, depth) = match parts {
            Combined::Single(item) => return item,
            Combined::Empty => (Expr::Empty, position, 0),
            Combined::Several { expr, position, depth } => (expr, position, depth),
        };
        Operand { id: self.builder.add(expr, position), position, depth }
    }

    fn depth_in(&self, item: &Operand, around: Around) -> usize {
        item.depth + usize::from(needs_parentheses(around, self.builder.expr(item.id)))
    }

    fn push(&mut self, expr: Expr, token: GrammarToken) {
        let position = token.position;
        let id = self.builder.add(expr, position);
        self.items.push(Operand { id, position, depth: 0 });
    }

    fn check_nesting(&self, printed: usize) -> Result<()> {
        let open = self.frames.len() - 1;
        let value = self.limits.max_nesting;
        if open + printed <= value {
            return Ok(());
        }
        let Position { line, column } = self.current.position;
        let message = format!(
            "groups and repetitions are nested deeper at line {line}, column {column}; give inner \
             groups rules of their own, or raise the limit"
        );
        Err(Error::Limit { limit: "max_nesting", value: value as u64, message })
    }
}
