//! What a right-hand side is made of.

use crate::error::{Position, Result};
use crate::lark::escapes;
use crate::lark::messages::{shown, syntax, unsupported};
use crate::lark::scanner::{Kind as TokenKind, Token};
use crate::lark::tree::{Document, Kind, NodeId};

use super::{Frame, Level, Owner, Parser};

impl<'t> Parser<'t> {
    /// Reads the next part of the level on top, or what ends a part, an alternative or the level.
    pub(super) fn part(&mut self) -> Result<()> {
        let Token { kind, text, position } = self.token;
        match kind {
            TokenKind::Newline => match self.level().owner {
                Owner::Definition(..) | Owner::Ignore => self.close_item(),
                _ => self.next().map(|_| ()),
            },
            TokenKind::End => match self.level().owner {
                Owner::Definition(..) | Owner::Ignore => self.close_item(),
                _ => Err(self.unclosed()),
            },
            TokenKind::Sign(sign) => self.sign(sign, position),
            TokenKind::Directive => self.directive_inside(),
            TokenKind::Name => {
                self.begin_part(position);
                self.named()
            }
            TokenKind::Number => Err(self.expected("a literal, a name, a pattern or a group")),
            TokenKind::OpenCount | TokenKind::TildeCount => Err(syntax(
                position,
                format!("`{text}` counts what stands before it: nothing does"),
            )),
            _ => {
                self.begin_part(position);
                let token = self.next()?;
                let kind = leaf(token)?;
                match kind {
                    Kind::Text { of_any_case, .. } if self.token.is("..") => {
                        self.range(token, of_any_case)
                    }
                    kind => self.atom(kind),
                }
            }
        }
    }

    /// Notes where a part begins, unless a `~` before it did.
    fn begin_part(&mut self, position: Position) {
        let level = self.level();
        if !level.part.1 {
            level.part.0 = position;
        }
    }

    fn sign(&mut self, sign: &'static str, position: Position) -> Result<()> {
        match sign {
            "(" | "[" => {
                self.begin_part(position);
                self.next()?;
                let owner = if sign == "(" { Owner::Group } else { Owner::Optional };
                self.open(Frame::Level(Level::new(owner, position)), position)
            }
            ")" | "]" | "}" | "," => self.close(sign),
            "|" => {
                self.next()?;
                self.close_choice()
            }
            "&" => {
                if self.level().parts.is_empty() {
                    return Err(self.expected("what `&` is to hold with"));
                }
                self.next()?;
                self.close_conjunct()
            }
            "~" => {
                if std::mem::replace(&mut self.level().part, (position, true)).1 {
                    return Err(syntax(position, "two `~` in a row undo each other; remove both"));
                }
                self.next().map(|_| ())
            }
            "->" => {
                self.next()?;
                self.name("the name of an alternative after `->`")?;
                let ends = matches!(
                    self.token.kind,
                    TokenKind::Newline | TokenKind::End | TokenKind::Sign("|" | ")" | "]" | "}")
                );
                if ends { Ok(()) } else { Err(self.expected("`|` or the end of the definition")) }
            }
            "?" | "*" | "+" => {
                let message = format!(
                    "`{sign}` repeats what stands before it: there is nothing, or it is repeated \
                     already; put that in parentheses"
                );
                Err(syntax(position, message))
            }
            "::" => Err(super::head::parametric(position)),
            _ => Err(self.expected("a literal, a name, a pattern or a group")),
        }
    }

    fn check_negated(&mut self) -> Result<()> {
        match self.level().part {
            (position, true) => {
                Err(syntax(position, "`~` stands before what is not to match: nothing follows"))
            }
            _ => Ok(()),
        }
    }

    /// A closing sign, or the comma between arguments.
    fn close(&mut self, sign: &'static str) -> Result<()> {
        let is_nested = self.stack.len() > 2;
        match (&self.level().owner, sign) {
            (Owner::Group, ")") | (Owner::Optional, "]") => {
                let body = self.close_level()?;
                let Some(Frame::Level(level)) = self.stack.pop() else { return Ok(()) };
                self.next()?;
                match level.owner {
                    Owner::Optional => {
                        let kind = Kind::Repeat { body, min: 0, max: Some(1) };
                        let whole = self.add(kind, level.position);
                        self.postfix(whole)
                    }
                    _ => self.postfix(body),
                }
            }
            (Owner::Template { .. }, "," | "}") => self.argument(sign),
            // The brace ends the document, too; its frame sees it next.
            (Owner::Definition(..) | Owner::Ignore, "}") if is_nested => self.close_item(),
            (Owner::Definition(..) | Owner::Ignore, _) => {
                Err(syntax(self.token.position, format!("this `{sign}` closes or parts nothing")))
            }
            _ => Err(self.unclosed()),
        }
    }

    fn unclosed(&mut self) -> crate::error::Error {
        let Position { line, column } = self.level().position;
        let closing = match self.level().owner {
            Owner::Group => "`)`",
            Owner::Optional => "`]`",
            _ => "`,` or `}`",
        };
        self.expected(&format!("{closing} (opened at line {line}, column {column})"))
    }

    /// Ends an argument of a template, or all of them.
    fn argument(&mut self, sign: &str) -> Result<()> {
        let position = self.token.position;
        let value = self.close_level()?;
        let is_value = matches!(
            self.document().kind(value),
            Kind::Text { .. }
                | Kind::Range(..)
                | Kind::Pattern { .. }
                | Kind::Name(_)
                | Kind::Template { .. }
        );
        if !is_value {
            let message = "an argument of a template is a name, a literal, a range or a pattern; make \
                           anything else a rule";
            return Err(syntax(position, message));
        }
        self.next()?;
        if let Owner::Template { arguments, .. } = &mut self.level().owner {
            arguments.push(value);
        }
        if sign == "," {
            return Ok(());
        }
        match self.stack.pop() {
            Some(Frame::Level(Level { owner: Owner::Template { name, arguments }, .. })) => {
                self.atom(Kind::Template { name, arguments: arguments.into() })
            }
            _ => Ok(()),
        }
    }

    /// A name, which may be a template's.
    fn named(&mut self) -> Result<()> {
        let Token { text, position, .. } = self.next()?;
        if self.takes("{")? {
            let owner = Owner::Template { name: text.into(), arguments: Vec::new() };
            return self.open(Frame::Level(Level::new(owner, position)), position);
        }
        self.atom(Kind::Name(text.into()))
    }

    fn directive_inside(&mut self) -> Result<()> {
        let Token { text, position, .. } = self.token;
        self.begin_part(position);
        match text {
            "json" | "regex" => {
                let (json, place) = self.scanner.json(text)?;
                let kind = match text {
                    "json" => Kind::Schema(json.into(), place),
                    _ => Kind::Structured(json.into(), place),
                };
                self.next()?;
                self.atom(kind)
            }
            "lark" => {
                self.next()?;
                if !self.takes("{")? {
                    return Err(self.expected("`{` after `%lark`"));
                }
                let document = Document { position, ..Document::default() };
                self.open(Frame::Document(Box::new(document)), position)
            }
            "if" => Err(unsupported(
                "%if",
                position,
                "conditions on a parameter are not read here; write the cases as rules",
            )),
            other => {
                let message = format!("`%{}` begins a line of its own", shown(other));
                Err(syntax(position, message))
            }
        }
    }

    fn range(&mut self, first: Token<'t>, of_any_case: bool) -> Result<()> {
        self.next()?;
        let last = self.token;
        if of_any_case || last.kind != TokenKind::Text {
            return Err(match last.kind {
                TokenKind::Text | TokenKind::TextOfAnyCase => {
                    syntax(first.position, "the ends of a range have no flags; write both cases")
                }
                _ => self.expected("a literal after `..`"),
            });
        }
        self.next()?;
        let end = |token: Token<'_>| {
            let text = escapes::literal(token.text, token.position)?;
            let mut chars = text.chars();
            match (chars.next(), chars.next()) {
                (Some(c), None) => Ok(c),
                _ => Err(syntax(token.position, "an end of a range is one character")),
            }
        };
        let (a, b) = (end(first)?, end(last)?);
        if a > b {
            let message = format!("this range is backwards: {a:?} comes after {b:?}");
            return Err(syntax(first.position, message));
        }
        self.atom(Kind::Range(a, b))
    }

    /// Adds a part, with the `~` before it and the repetition behind it.
    pub(super) fn atom(&mut self, kind: Kind) -> Result<()> {
        let position = self.level().part.0;
        let node = self.add(kind, position);
        self.postfix(node)
    }

    fn postfix(&mut self, mut node: NodeId) -> Result<()> {
        let level = self.level();
        let (position, is_negated) = std::mem::take(&mut level.part);
        if is_negated {
            node = self.add(Kind::Not(node), position);
        }
        let here = self.token.position;
        let bounds = match self.token.kind {
            TokenKind::Sign("?") => Some((0, Some(1))),
            TokenKind::Sign("*") => Some((0, None)),
            TokenKind::Sign("+") => Some((1, None)),
            TokenKind::TildeCount | TokenKind::OpenCount => None,
            _ => {
                self.level().parts.push(node);
                return Ok(());
            }
        };
        let is_braced = self.token.kind == TokenKind::OpenCount;
        self.next()?;
        let (min, max) = match bounds {
            Some(bounds) => bounds,
            None if is_braced => self.braced()?,
            None => {
                let min = self.count()?;
                (min, Some(if self.takes("..")? { self.count()? } else { min }))
            }
        };
        if max.is_some_and(|max| max < min) {
            let message = format!("the upper bound is less than the lower bound {min}");
            return Err(syntax(here, message));
        }
        let node = self.add(Kind::Repeat { body: node, min, max }, here);
        self.level().parts.push(node);
        Ok(())
    }

    /// `3}`, `3,}`, `,4}`, `3,4}`.
    fn braced(&mut self) -> Result<(u32, Option<u32>)> {
        let min = if self.token.is(",") { 0 } else { self.count()? };
        let max = if !self.takes(",")? {
            Some(min)
        } else if self.token.is("}") {
            None
        } else {
            Some(self.count()?)
        };
        self.expects("}", "after a count")?;
        Ok((min, max))
    }

    fn count(&mut self) -> Result<u32> {
        let Token { kind, text, position } = self.token;
        if kind != TokenKind::Number {
            return Err(self.expected("a count"));
        }
        self.next()?;
        let out_of_range = || {
            let message = format!("`{}` is no integer from 0 to {}", shown(text), i32::MAX);
            syntax(position, message)
        };
        match text.parse::<u32>() {
            Ok(count) if count <= i32::MAX as u32 => Ok(count),
            _ => Err(out_of_range()),
        }
    }

    /// Ends what stands between two `&`.
    fn close_conjunct(&mut self) -> Result<()> {
        self.check_negated()?;
        let level = self.level();
        let (parts, position) = (std::mem::take(&mut level.parts), level.position);
        if parts.is_empty() && !self.level().conjuncts.is_empty() {
            return Err(self.expected("what `&` is to hold with"));
        }
        let node = match parts.as_slice() {
            [part] => *part,
            _ => self.add(Kind::Sequence(parts.into()), position),
        };
        self.level().conjuncts.push(node);
        Ok(())
    }

    /// Ends an alternative.
    fn close_choice(&mut self) -> Result<()> {
        self.close_conjunct()?;
        let level = self.level();
        let (conjuncts, position) = (std::mem::take(&mut level.conjuncts), level.position);
        let node = match conjuncts.as_slice() {
            [conjunct] => *conjunct,
            _ => self.add(Kind::Both(conjuncts.into()), position),
        };
        self.level().choices.push(node);
        Ok(())
    }

    /// Ends the last alternative; returns what the level says. The level stays.
    pub(super) fn close_level(&mut self) -> Result<NodeId> {
        self.close_choice()?;
        let level = self.level();
        let (choices, position) = (std::mem::take(&mut level.choices), level.position);
        match choices.as_slice() {
            [choice] => Ok(*choice),
            _ => Ok(self.add(Kind::Choice(choices.into()), position)),
        }
    }
}

/// What a token is that is a part by itself.
pub(super) fn leaf(token: Token<'_>) -> Result<Kind> {
    let Token { kind, text, position } = token;
    Ok(match kind {
        TokenKind::Text | TokenKind::TextOfAnyCase => Kind::Text {
            text: escapes::literal(text, position)?.into(),
            of_any_case: kind == TokenKind::TextOfAnyCase,
        },
        TokenKind::Pattern => {
            let end = text.rfind('/').unwrap_or(0);
            Kind::Pattern { text: text[1..end].into(), flags: text[end + 1..].into() }
        }
        TokenKind::Name => Kind::Name(text.into()),
        TokenKind::Token => Kind::Token(text.into()),
        TokenKind::Grammar => Kind::Grammar(text.into()),
        _ => return Err(syntax(position, "expected a literal, a name, a pattern or a group")),
    })
}
