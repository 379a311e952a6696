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
use super::scanner::{self, Scanner, Token};
use super::tree::{Change, Definition, Document, Kind, NodeId};

/// Whose a level is.
enum Owner {
    Definition(Option<Change>, Box<Definition>),
    Ignore,
    Group,
    Optional,
    Template { name: Box<str>, arguments: Vec<NodeId> },
}

/// A right-hand side under way, or a part of it in parentheses.
struct Level {
    owner: Owner,
    /// Where it begins.
    position: Position,
    choices: Vec<NodeId>,
    conjuncts: Vec<NodeId>,
    parts: Vec<NodeId>,
    /// Where the part that comes next begins, and whether `~` stands before it.
    part: (Position, bool),
}

impl Level {
    fn new(owner: Owner, position: Position) -> Self {
        let (choices, conjuncts, parts) = <(Vec<_>, Vec<_>, Vec<_>)>::default();
        Self { owner, position, choices, conjuncts, parts, part: (position, false) }
    }
}

enum Frame {
    Document(Box<Document>),
    Level(Level),
}

pub(super) struct Parser<'t> {
    scanner: Scanner<'t>,
    token: Token<'t>,
    stack: Vec<Frame>,
    /// Documents that are done; the last is the whole text.
    done: Vec<Document>,
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
) -> Result<Vec<Document>> {
    let mut scanner = Scanner::new(text);
    let token = scanner.next()?;
    let position = Position { line: 1, column: 1 };
    let first = Frame::Document(Box::new(Document { position, ..Document::default() }));
    Parser { scanner, token, stack: vec![first], done: Vec::new(), limits, budget }.run()
}

impl<'t> Parser<'t> {
    fn run(mut self) -> Result<Vec<Document>> {
        loop {
            self.budget.spend(1)?;
            match self.stack.last() {
                Some(Frame::Document(_)) => self.item()?,
                Some(Frame::Level(_)) => self.part()?,
                None => return Ok(self.done),
            }
        }
    }

    fn next(&mut self) -> Result<Token<'t>> {
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
    fn name(&mut self, what: &str) -> Result<Token<'t>> {
        match self.token.kind {
            scanner::Kind::Name => self.next(),
            _ => Err(self.expected(what)),
        }
    }

    /// The innermost document under way: there always is one.
    fn document(&mut self) -> &mut Document {
        let found = self.stack.iter_mut().rev().find_map(|frame| match frame {
            Frame::Document(document) => Some(&mut **document),
            Frame::Level(_) => None,
        });
        found.expect("the text as a whole is a document")
    }

    fn level(&mut self) -> &mut Level {
        match self.stack.last_mut() {
            Some(Frame::Level(level)) => level,
            _ => unreachable!("parts stand in levels"),
        }
    }

    fn add(&mut self, kind: Kind, position: Position) -> NodeId {
        self.document().add(kind, position)
    }

    fn open(&mut self, frame: Frame, position: Position) -> Result<()> {
        if self.stack.len() > self.limits.max_nesting {
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
        if let Some(Frame::Document(document)) = self.stack.pop() {
            self.done.push(*document);
        }
        if self.stack.is_empty() {
            return Ok(());
        }
        self.next()?;
        let number = self.done.len() - 1;
        self.atom(Kind::Document(number))
    }
}
