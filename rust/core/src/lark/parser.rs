//! Tokens to documents.
//!
//! What is under way stands on an explicit stack: documents (of `%lark`), and in them the levels of a
//! right-hand side (the whole, groups, arguments of templates). `head` reads what stands before a
//! right-hand side, `atoms` what a right-hand side is made of.

mod atoms;
mod head;

use crate::budget::Budget;
use crate::error::{Position, Result};
use crate::limits::Limits;

use super::messages::{limit, syntax};
use super::scanner::{self, LarkScanner, LarkToken};
use super::tree::{Change, Definition, LarkDocument, LarkNodeId, LarkNodeKind};

/// Whose a level is.
enum LevelOwner {
    Definition(Option<Change>, Box<Definition>),
    Ignore,
    Group,
    Optional,
    Template { name: Box<str>, arguments: Vec<LarkNodeId> },
}

/// A right-hand side under way, or a part of it in parentheses.
struct ExpressionLevel {
    owner: LevelOwner,
    /// Where it begins.
    position: Position,
    choices: Vec<LarkNodeId>,
    conjuncts: Vec<LarkNodeId>,
    parts: Vec<LarkNodeId>,
    /// Where the part that comes next begins, and whether `~` stands before it.
    part: (Position, bool),
}

impl ExpressionLevel {
    fn new(owner: LevelOwner, position: Position) -> Self {
        let (choices, conjuncts, parts) = <(Vec<_>, Vec<_>, Vec<_>)>::default();
        Self { owner, position, choices, conjuncts, parts, part: (position, false) }
    }
}

enum OpenConstruct {
    Document(Box<LarkDocument>),
    Level(ExpressionLevel),
}

pub(super) struct LarkParser<'t> {
    scanner: LarkScanner<'t>,
    token: LarkToken<'t>,
    stack: Vec<OpenConstruct>,
    /// Documents that are done; the last is the whole text.
    done: Vec<LarkDocument>,
    limits: &'t Limits,
    budget: &'t Budget,
}

/// Reads a text: its documents, those within others before these.
///
/// # Errors
/// `Syntax` at the first place that is wrong, `Unsupported` for what has no meaning here, `Limit`.
pub(super) fn parse<'t>(
    text: &'t str,
    limits: &'t Limits,
    budget: &'t Budget,
) -> Result<Vec<LarkDocument>> {
    let mut scanner = LarkScanner::new(text);
    let token = scanner.next()?;
    let position = Position { line: 1, column: 1 };
    let first =
        OpenConstruct::Document(Box::new(LarkDocument { position, ..LarkDocument::default() }));
    LarkParser { scanner, token, stack: vec![first], done: Vec::new(), limits, budget }.run()
}

impl<'t> LarkParser<'t> {
    fn run(mut self) -> Result<Vec<LarkDocument>> {
        loop {
            self.budget.spend(1)?;
            match self.stack.last() {
                Some(OpenConstruct::Document(_)) => self.item()?,
                Some(OpenConstruct::Level(_)) => self.part()?,
                None => return Ok(self.done),
            }
        }
    }

    fn next(&mut self) -> Result<LarkToken<'t>> {
        let next = self.scanner.next()?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Goes past a sign, if it stands next.
    fn takes(&mut self, sign: &str) -> Result<bool> {
        let is_there = self.token.is(sign);
        if is_there {
            self.next()?;
        }
        Ok(is_there)
    }

    fn expects(&mut self, sign: &str, after: &str) -> Result<()> {
        match self.takes(sign)? {
            true => Ok(()),
            false => Err(self.expected(&format!("`{sign}` {after}"))),
        }
    }

    fn expected(&self, what: &str) -> crate::error::Error {
        let message = format!("expected {what}, found {}", self.token.described());
        syntax(self.token.position, message)
    }

    /// A name, without a check of its case.
    fn name(&mut self, what: &str) -> Result<LarkToken<'t>> {
        match self.token.kind {
            scanner::LarkTokenKind::Name => self.next(),
            _ => Err(self.expected(what)),
        }
    }

    /// The innermost document under way: there always is one.
    fn document(&mut self) -> &mut LarkDocument {
        let found = self.stack.iter_mut().rev().find_map(|frame| match frame {
            OpenConstruct::Document(document) => Some(&mut **document),
            OpenConstruct::Level(_) => None,
        });
        found.expect("the text as a whole is a document")
    }

    fn level(&mut self) -> &mut ExpressionLevel {
        match self.stack.last_mut() {
            Some(OpenConstruct::Level(level)) => level,
            _ => unreachable!("parts stand in levels"),
        }
    }

    fn add(&mut self, kind: LarkNodeKind, position: Position) -> LarkNodeId {
        self.document().add(kind, position)
    }

    fn open(&mut self, frame: OpenConstruct, position: Position) -> Result<()> {
        // The text as a whole and the body of a rule stand around the groups.
        if self.stack.len() > self.limits.max_nesting.saturating_add(1) {
            let message = format!(
                "line {}, column {}: groups are nested deeper; make some of them rules, or raise the \
                 limit",
                position.line, position.column
            );
            return Err(limit("max_nesting", self.limits.max_nesting, message));
        }
        self.stack.push(frame);
        Ok(())
    }

    /// Ends the document on top: the text, or what stands in the braces of `%lark`.
    fn close_document(&mut self) -> Result<()> {
        if let Some(OpenConstruct::Document(document)) = self.stack.pop() {
            self.done.push(*document);
        }
        if self.stack.is_empty() {
            return Ok(());
        }
        self.next()?;
        let number = self.done.len() - 1;
        self.atom(LarkNodeKind::Document(number))
    }
}
