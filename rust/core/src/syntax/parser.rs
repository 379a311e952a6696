//! Tokens to a [`Grammar`].
//!
//! The text is scanned twice: once for the rule names, which may be used before they are defined,
//! then to build the rules. Open groups stand on a stack of our own; finished parts of the
//! innermost sequence and choice stand at the ends of `items` and `alternatives`, so that a group
//! costs no allocation.
//!
//! `max_nesting` bounds the open parentheses of the text and also those that the printer would
//! write (stacked repetitions, `"a"**`, are printed as `("a"*)*`).

use std::collections::HashMap;

use crate::error::{Error, Position, Result};
use crate::grammar::{
    CharSet, Expr, Grammar, GrammarBuilder, Macro, MacroArgument, Rule, RuleOptions,
};
use crate::ids::{ExprId, RuleId};
use crate::limits::Limits;

use super::escapes;
use super::macros;
use super::messages::{described, misread, shown, syntax};
use super::options::{Owner, options};
use super::printer::{Around, needs_parentheses};
use super::scanner::{Kind, Scanner, Token};
use super::suggest::nearest;

/// A finished part of an expression.
#[derive(Clone, Copy)]
struct Item {
    id: ExprId,
    position: Position,
    /// Levels of parentheses that printing it takes.
    depth: usize,
}

/// An open group; the outermost is the right-hand side itself.
struct Frame {
    position: Position,
    /// Where its current sequence begins in `items`.
    items: usize,
    /// Where its alternatives begin in `alternatives`.
    alternatives: usize,
}

/// What a right-hand side is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Rule,
    Lookahead,
}

/// Reads one text.
pub(super) struct Parser<'t> {
    text: &'t str,
    limits: &'t Limits,
    scanner: Scanner<'t>,
    current: Token,
    following: Token,
    /// The line of the token before `current`, 0 at the start.
    line_before: u32,
    names: HashMap<&'t str, RuleId>,
    /// The rules' names in order.
    order: Vec<(&'t str, Position)>,
    builder: GrammarBuilder,
    frames: Vec<Frame>,
    items: Vec<Item>,
    alternatives: Vec<Item>,
}

impl<'t> Parser<'t> {
    /// Checks the text's length and collects the names of its rules.
    pub(super) fn new(text: &'t str, limits: &'t Limits) -> Result<Self> {
        // Offsets and expression ids are `u32`; no text makes more than one expression a byte.
        let bound = limits.max_grammar_bytes.min(i32::MAX as usize);
        if text.len() > bound {
            let message = format!("the grammar text has {} bytes; shorten it or raise it", text.len());
            return Err(Error::Limit { limit: "max_grammar_bytes", value: bound as u64, message });
        }
        let mut scanner = Scanner::new(text);
        let (names, order) = rule_names(text, scanner.clone(), limits)?;
        let current = scanner.next_token();
        let following = scanner.next_token();
        Ok(Self {
            text,
            limits,
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
        let mut rules = Vec::with_capacity(self.order.len());
        while self.current.kind != Kind::End {
            let rule = self.rule(rules.len())?;
            rules.push(rule);
        }
        match self.names.get(root) {
            Some(&root) => Ok(self.builder.finish(rules, root)),
            None => Err(self.no_root(root)),
        }
    }

    fn no_root(&self, root: &str) -> Error {
        let names = || self.order.iter().map(|(name, _)| *name);
        let mut list: Vec<String> = names().take(5).map(|n| format!("\"{}\"", shown(n))).collect();
        if self.order.len() > list.len() {
            list.push(format!("{} more", self.order.len() - list.len()));
        }
        let advice = match nearest(root, names()) {
            Some(near) => format!("ask for \"{}\" or rename it", shown(near)),
            None => "ask for one of them or add it".into(),
        };
        let (root, list) = (shown(root), list.join(", "));
        let message =
            format!("no rule is named \"{root}\", the start rule asked for; there are {list}; {advice}");
        syntax(Position { line: 1, column: 1 }, message)
    }

    // ---- tokens ----

    fn slice(&self, token: &Token) -> &'t str {
        &self.text[token.range()]
    }

    fn advance(&mut self) {
        self.line_before = self.current.position.line;
        self.current = self.following;
        self.following = self.scanner.next_token();
    }

    /// Whether the current token is a rule's name.
    fn at_rule(&self) -> bool {
        self.current.kind == Kind::Word
            && matches!(self.following.kind, Kind::Assign | Kind::Options)
    }

    /// The error at a token that cannot stand where it stands.
    fn unexpected(&self, token: &Token, expected: &str) -> Error {
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
        let body = self.side(Side::Rule)?.ok_or_else(|| {
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
        Ok(Rule { name: name.into(), options, body, lookahead, position: head.position })
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
        let Some(body) = self.side(Side::Lookahead)? else {
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
    fn side(&mut self, side: Side) -> Result<Option<ExprId>> {
        debug_assert!(self.frames.is_empty() && self.items.is_empty());
        self.open();
        while !self.at_end(side)? {
            self.step(side)?;
        }
        let nothing = self.items.is_empty() && self.alternatives.is_empty();
        let body = self.close();
        if side == Side::Lookahead {
            self.advance();
        }
        Ok((!nothing).then_some(body.id))
    }

    /// Whether the current token ends the whole side; an error if groups are open there.
    fn at_end(&self, side: Side) -> Result<bool> {
        let kind = self.current.kind;
        let ends_rule = kind == Kind::End || self.at_rule();
        if let (true, [_, .., last]) = (ends_rule, self.frames.as_slice()) {
            return Err(syntax(last.position, "this `(` is not closed in its rule; add a `)`"));
        }
        match side {
            Side::Rule => Ok(ends_rule || (kind == Kind::OpenLookahead && self.frames.len() == 1)),
            Side::Lookahead if ends_rule => {
                Err(self.unexpected(&self.current, "the `)` that closes the lookahead `(= ...)`"))
            }
            Side::Lookahead => Ok(kind == Kind::Close && self.frames.len() == 1),
        }
    }

    /// Takes one token (or a repetition's braces, or a macro) into the innermost group.
    fn step(&mut self, side: Side) -> Result<()> {
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
                let call = token_reference(self.slice(&token), token.position)?;
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
    fn misplaced(&self, token: &Token, side: Side) -> Error {
        let message = match token.kind {
            Kind::Close => "this `)` closes nothing; remove it or add a `(`",
            Kind::CloseBrace => "this `}` closes nothing; remove it or add a `{`",
            Kind::OpenLookahead if side == Side::Lookahead => {
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
            _ => return self.unexpected(token, "a literal, a class, the name of a rule or a group"),
        };
        syntax(token.position, message)
    }

    fn open(&mut self) {
        self.frames.push(Frame {
            position: self.current.position,
            items: self.items.len(),
            alternatives: self.alternatives.len(),
        });
    }

    /// Ends the innermost group.
    fn close(&mut self) -> Item {
        self.end_sequence();
        let frame = self.frames.pop();
        let (start, position) = frame.map_or((0, Position::default()), |f| (f.alternatives, f.position));
        let parts = self.alternatives.split_off(start);
        self.combine(parts, Around::Choice, position)
    }

    /// Ends the innermost sequence, at a `|` or at the end of its group.
    fn end_sequence(&mut self) {
        let start = self.frames.last().map_or(0, |f| f.items);
        let parts = self.items.split_off(start);
        let item = self.combine(parts, Around::Sequence, self.current.position);
        self.alternatives.push(item);
    }

    /// One node out of parts: none is the empty string, a single one stays itself.
    fn combine(&mut self, parts: Vec<Item>, around: Around, position: Position) -> Item {
        let position = parts.first().map_or(position, |p| p.position);
        if let [only] = parts.as_slice() {
            return *only;
        }
        let depth = parts.iter().map(|part| self.depth_in(part, around)).max().unwrap_or(0);
        let ids: Box<[ExprId]> = parts.iter().map(|part| part.id).collect();
        let expr = match around {
            _ if ids.is_empty() => Expr::Empty,
            Around::Choice => Expr::Choice(ids),
            _ => Expr::Sequence(ids),
        };
        Item { id: self.builder.add(expr, position), position, depth }
    }

    fn depth_in(&self, item: &Item, around: Around) -> usize {
        item.depth + usize::from(needs_parentheses(around, self.builder.expr(item.id)))
    }

    fn push(&mut self, expr: Expr, token: Token) {
        let position = token.position;
        let id = self.builder.add(expr, position);
        self.items.push(Item { id, position, depth: 0 });
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
             groups rules of their own, or raise it"
        );
        Err(Error::Limit { limit: "max_nesting", value: value as u64, message })
    }

    // ---- repetitions ----

    /// Repeats what stands before the current token.
    fn repeat(&mut self, min: u32, max: Option<u32>) -> Result<()> {
        self.repeat_from(self.current, min, max)
    }

    /// Repeats what stands before `token`.
    fn repeat_from(&mut self, token: Token, min: u32, max: Option<u32>) -> Result<()> {
        let start = self.frames.last().map_or(0, |f| f.items);
        if self.items.len() <= start {
            let text = self.slice(&token);
            let message = format!(
                "`{text}` has nothing before it to repeat; put it after a literal, a class, a \
                 name or a group, or write \"{text}\" for the character itself"
            );
            return Err(syntax(token.position, message));
        }
        let Some(body) = self.items.pop() else { return Ok(()) };
        let depth = self.depth_in(&body, Around::Repeat);
        self.check_nesting(depth)?;
        let position = body.position;
        let id = self.builder.add(Expr::Repeat { body: body.id, min, max }, position);
        self.items.push(Item { id, position, depth });
        Ok(())
    }

    /// Reads `{m}`, `{m,}`, `{m,n}` or `{m,-1}`.
    fn bounds(&mut self) -> Result<(u32, Option<u32>)> {
        let open = self.current;
        self.advance();
        if self.current.kind == Kind::Comma {
            let message = "`{,n}` is not in the language; write `{0,n}`";
            return Err(syntax(open.position, message));
        }
        let min = self.bound()?;
        if self.current.kind == Kind::CloseBrace {
            self.advance();
            return Ok((min, Some(min)));
        }
        self.expect(Kind::Comma, "`,` or `}` after the lower bound of a repetition")?;
        let unbounded = match self.current.kind {
            Kind::CloseBrace => true,
            _ if self.slice(&self.current) == "-1" => {
                self.advance();
                true
            }
            _ => false,
        };
        let max = if unbounded { None } else { Some(self.bound()?) };
        self.expect(Kind::CloseBrace, "`}` after the bounds of a repetition")?;
        match max {
            Some(max) if max < min => {
                let message = format!(
                    "the repetition `{{{min},{max}}}` has its bounds reversed; write `{{{max},{min}}}`"
                );
                Err(syntax(open.position, message))
            }
            _ => Ok((min, max)),
        }
    }

    fn bound(&mut self) -> Result<u32> {
        let token = self.current;
        let text = self.slice(&token);
        if token.kind != Kind::Word || !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(self.unexpected(
                &token,
                "an integer, the bound of a repetition, as in `{2}`, `{2,}` or `{2,3}`",
            ));
        }
        let bound = text.parse().map_err(|_| {
            let message = format!(
                "the repetition bound {} is greater than {}; write `{{m,}}` for no upper bound",
                shown(text),
                u32::MAX
            );
            syntax(token.position, message)
        })?;
        self.advance();
        Ok(bound)
    }

    // ---- words ----

    /// A rule's name, a macro, or GBNF's dot.
    fn word(&mut self, token: Token) -> Result<()> {
        let name = self.slice(&token);
        let rule = self.names.get(name).copied();
        if macros::is_macro(name) && (self.following.kind == Kind::Open || rule.is_none()) {
            let call = self.call(token)?;
            self.push(Expr::Macro(call), token);
            return Ok(());
        }
        match rule {
            Some(rule) => {
                self.push(Expr::Rule(rule), token);
                if let (true, Some(item)) = (macros::is_macro(name), self.items.last_mut()) {
                    // The printer writes it in parentheses.
                    item.depth = 1;
                    self.check_nesting(1)?;
                }
            }
            None => self.dotted(token)?,
        }
        self.advance();
        Ok(())
    }

    /// A word that is no rule: `.` is any code point, and dots may stand between names of rules.
    fn dotted(&mut self, token: Token) -> Result<()> {
        let name = self.slice(&token);
        let parts = || name.split('.');
        let known = |part: &str| part.is_empty() || self.names.contains_key(part);
        if !name.contains('.') || !parts().all(known) {
            return Err(self.undefined(token));
        }
        let mut here = token;
        for (index, part) in parts().enumerate() {
            if index > 0 {
                self.push(Expr::Class(CharSet::default().complement()), here);
                here.position.column += 1;
            }
            if let Some(&rule) = self.names.get(part) {
                self.push(Expr::Rule(rule), here);
                here.position.column += part.len() as u32;
            }
        }
        Ok(())
    }

    /// The error at a name that no rule has.
    fn undefined(&self, token: Token) -> Error {
        let next = &self.following;
        if next.kind == Kind::Equal || (next.kind == Kind::Stray && self.slice(next) == ":") {
            let found = shown(self.slice(next));
            return syntax(next.position, format!("found `{found}`; a rule is written `name ::= ...`"));
        }
        let name = self.slice(&token);
        let advice = match nearest(name, self.order.iter().map(|(name, _)| *name)) {
            Some(near) => format!("the nearest name is \"{}\"", shown(near)),
            None => "define it, or write it in double quotes if it is text".into(),
        };
        syntax(token.position, format!("the rule \"{}\" is not defined; {advice}", shown(name)))
    }

    // ---- macros ----

    /// Reads a macro whose name is the current token.
    fn call(&mut self, head: Token) -> Result<Macro> {
        let name = self.slice(&head);
        let mut call = Macro { name: name.into(), positional: Vec::new(), named: Vec::new() };
        self.advance();
        self.expect(Kind::Open, &format!("`(` after {name}, which takes arguments"))?;
        while self.current.kind != Kind::Close || !call.positional.is_empty() || !call.named.is_empty()
        {
            if self.current.kind == Kind::Word && self.following.kind == Kind::Equal {
                let name = self.slice(&self.current);
                self.advance();
                self.advance();
                let value = self.argument()?;
                call.named.retain(|(other, _)| other != name);
                call.named.push((name.into(), value));
            } else {
                call.positional.push(self.argument()?);
            }
            if self.current.kind == Kind::Close {
                break;
            }
            self.expect(Kind::Comma, "`,` or `)` after an argument")?;
        }
        self.advance();
        macros::check(&call, head.position)?;
        Ok(call)
    }

    /// Reads one argument.
    fn argument(&mut self) -> Result<MacroArgument> {
        if self.current.kind != Kind::Open {
            return self.atom();
        }
        self.advance();
        let mut parts = Vec::new();
        while self.current.kind != Kind::Close {
            parts.push(self.atom()?);
            if self.current.kind != Kind::Close {
                self.expect(Kind::Comma, "`,` or `)` in a list")?;
            }
        }
        self.advance();
        Ok(MacroArgument::Tuple(parts))
    }

    /// Reads an argument that is not a list.
    fn atom(&mut self) -> Result<MacroArgument> {
        let token = self.current;
        let text = self.slice(&token);
        let value = match token.kind {
            Kind::Literal => MacroArgument::Text(escapes::literal(text, token.position)?),
            Kind::Word => self.word_argument(token, text)?,
            _ => {
                let expected = "an argument: a literal, an integer, true, false, the name of a rule";
                return Err(self.unexpected(&token, expected));
            }
        };
        self.advance();
        Ok(value)
    }

    fn word_argument(&self, token: Token, text: &str) -> Result<MacroArgument> {
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().map(MacroArgument::Integer).map_err(|_| {
                syntax(token.position, format!("the integer {} is too great", shown(text)))
            });
        }
        match text {
            "true" => Ok(MacroArgument::Boolean(true)),
            "false" => Ok(MacroArgument::Boolean(false)),
            _ => match self.names.get(text) {
                Some(&rule) => Ok(MacroArgument::Rule(rule)),
                None => Err(self.undefined(token)),
            },
        }
    }
}

/// The names of all rules, and their order. Of rules of one name the first counts.
type Names<'t> = (HashMap<&'t str, RuleId>, Vec<(&'t str, Position)>);

fn rule_names<'t>(text: &'t str, mut scanner: Scanner<'t>, limits: &Limits) -> Result<Names<'t>> {
    let mut names = HashMap::new();
    let mut order: Vec<(&str, Position)> = Vec::new();
    let mut token = scanner.next_token();
    while token.kind != Kind::End {
        let next = scanner.next_token();
        if token.kind == Kind::Word && matches!(next.kind, Kind::Assign | Kind::Options) {
            if order.len() >= limits.max_rules {
                let line = token.position.line;
                let message = format!("line {line} defines a rule more; shorten the grammar or raise it");
                let value = limits.max_rules as u64;
                return Err(Error::Limit { limit: "max_rules", value, message });
            }
            let name = &text[token.range()];
            names.entry(name).or_insert_with(|| RuleId::new(order.len()));
            order.push((name, token.position));
        }
        token = next;
    }
    Ok((names, order))
}

/// GBNF's `<[id]>` and `!<[id]>` are XGrammar's `Token(id)` and `ExcludeToken(id)`.
fn token_reference(text: &str, position: Position) -> Result<Macro> {
    let (name, inner) = match text.strip_prefix('!') {
        Some(inner) => ("ExcludeToken", inner),
        None => ("Token", text),
    };
    let digits = inner.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>"));
    let id = digits.filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    let Some(digits) = id else {
        return Err(Error::Unsupported {
            construct: shown(text),
            message: format!(
                "a token named by its text needs a vocabulary, which a grammar does not have; \
                 write its id: {name}(id)"
            ),
            position,
        });
    };
    match digits.parse::<i64>() {
        Ok(id) if id <= macros::LAST_TOKEN => Ok(Macro {
            name: name.into(),
            positional: vec![MacroArgument::Integer(id)],
            named: Vec::new(),
        }),
        _ => {
            let message =
                format!("the token id {} is greater than {}", shown(digits), macros::LAST_TOKEN);
            Err(syntax(position, message))
        }
    }
}
