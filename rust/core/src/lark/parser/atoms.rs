//! What a right-hand side is made of.

use crate::error::{Error, Position, Result};
use crate::lark::escapes;
use crate::lark::messages::{shown, syntax, unsupported};
use crate::lark::scanner::{LarkToken, LarkTokenKind};
use crate::lark::tree::{LarkDocument, LarkNodeId, LarkNodeKind};

use super::{ExpressionLevel, LarkParser, LevelOwner, OpenConstruct};

impl<'t> LarkParser<'t> {
    /// Reads the next part of the level on top, or what ends a part, an alternative or the level.
    pub(super) fn part(&mut self) -> Result<()> {
        let LarkToken { kind, text, position } = self.token;
        match kind {
            LarkTokenKind::Newline => match self.level().owner {
                LevelOwner::Definition(..) | LevelOwner::Ignore => self.close_item(),
                _ => self.next().map(|_| ()),
            },
            LarkTokenKind::End => match self.level().owner {
                LevelOwner::Definition(..) | LevelOwner::Ignore => self.close_item(),
                _ => Err(self.unclosed()),
            },
            LarkTokenKind::Sign(sign) => self.sign(sign, position),
            LarkTokenKind::Directive => self.directive_inside(),
            LarkTokenKind::Name => {
                self.begin_part(position);
                self.named()
            }
            LarkTokenKind::Number => Err(self.expected("a literal, a name, a pattern or a group")),
            LarkTokenKind::OpenCount | LarkTokenKind::TildeCount => Err(syntax(
                position,
                format!("`{text}` counts what stands before it: nothing does"),
            )),
            _ => {
                self.begin_part(position);
                let token = self.next()?;
                let kind = leaf(token)?;
                match kind {
                    LarkNodeKind::Text { of_any_case, .. } if self.token.is("..") => {
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
                let owner = if sign == "(" { LevelOwner::Group } else { LevelOwner::Optional };
                self.open(OpenConstruct::Level(ExpressionLevel::new(owner, position)), position)
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
                    LarkTokenKind::Newline
                        | LarkTokenKind::End
                        | LarkTokenKind::Sign("|" | ")" | "]" | "}")
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
            "::" => Err(parametric(position)),
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
            (LevelOwner::Group, ")") | (LevelOwner::Optional, "]") => {
                let body = self.close_level()?;
                let Some(OpenConstruct::Level(level)) = self.stack.pop() else { return Ok(()) };
                self.next()?;
                match level.owner {
                    LevelOwner::Optional => {
                        let kind = LarkNodeKind::Repeat { body, min: 0, max: Some(1) };
                        let whole = self.add(kind, level.position);
                        self.postfix(whole)
                    }
                    _ => self.postfix(body),
                }
            }
            (LevelOwner::Template { .. }, "," | "}") => self.argument(sign),
            // The brace ends the document, too; its frame sees it next.
            (LevelOwner::Definition(..) | LevelOwner::Ignore, "}") if is_nested => {
                self.close_item()
            }
            (LevelOwner::Definition(..) | LevelOwner::Ignore, _) => {
                Err(syntax(self.token.position, format!("this `{sign}` closes or parts nothing")))
            }
            _ => Err(self.unclosed()),
        }
    }

    fn unclosed(&mut self) -> Error {
        let Position { line, column } = self.level().position;
        let closing = match self.level().owner {
            LevelOwner::Group => "`)`",
            LevelOwner::Optional => "`]`",
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
            LarkNodeKind::Text { .. }
                | LarkNodeKind::Range(..)
                | LarkNodeKind::Pattern { .. }
                | LarkNodeKind::Name(_)
                | LarkNodeKind::Template { .. }
        );
        if !is_value {
            let message = "an argument of a template is a name, a literal, a range or a pattern; make \
                           anything else a rule";
            return Err(syntax(position, message));
        }
        self.next()?;
        if let LevelOwner::Template { arguments, .. } = &mut self.level().owner {
            arguments.push(value);
        }
        if sign == "," {
            return Ok(());
        }
        match self.stack.pop() {
            Some(OpenConstruct::Level(ExpressionLevel {
                owner: LevelOwner::Template { name, arguments },
                ..
            })) => self.atom(LarkNodeKind::Template { name, arguments: arguments.into() }),
            _ => Ok(()),
        }
    }

    /// A name, which may be a template's.
    fn named(&mut self) -> Result<()> {
        let LarkToken { text, position, .. } = self.next()?;
        if self.takes("{")? {
            let owner = LevelOwner::Template { name: text.into(), arguments: Vec::new() };
            return self
                .open(OpenConstruct::Level(ExpressionLevel::new(owner, position)), position);
        }
        self.atom(LarkNodeKind::Name(text.into()))
    }

    fn directive_inside(&mut self) -> Result<()> {
        let LarkToken { text, position, .. } = self.token;
        self.begin_part(position);
        match text {
            "json" | "regex" => {
                let (json, place) = self.scanner.json(text)?;
                let kind = match text {
                    "json" => LarkNodeKind::Schema(json.into(), place),
                    _ => LarkNodeKind::Structured(json.into(), place),
                };
                self.next()?;
                self.atom(kind)
            }
            "lark" => {
                self.next()?;
                if !self.takes("{")? {
                    return Err(self.expected("`{` after `%lark`"));
                }
                let document = LarkDocument { position, ..LarkDocument::default() };
                self.open(OpenConstruct::Document(Box::new(document)), position)
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

    fn range(&mut self, first: LarkToken<'t>, of_any_case: bool) -> Result<()> {
        self.next()?;
        let last = self.token;
        if of_any_case || last.kind != LarkTokenKind::Text {
            return Err(match last.kind {
                LarkTokenKind::Text | LarkTokenKind::TextOfAnyCase => {
                    syntax(first.position, "the ends of a range have no flags; write both cases")
                }
                _ => self.expected("a literal after `..`"),
            });
        }
        self.next()?;
        let end = |token: LarkToken<'_>| {
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
        self.atom(LarkNodeKind::Range(a, b))
    }

    /// Adds a part, with the `~` before it and the repetition behind it.
    pub(super) fn atom(&mut self, kind: LarkNodeKind) -> Result<()> {
        let position = self.level().part.0;
        let node = self.add(kind, position);
        self.postfix(node)
    }

    fn postfix(&mut self, mut node: LarkNodeId) -> Result<()> {
        let level = self.level();
        let (position, is_negated) = std::mem::take(&mut level.part);
        if is_negated {
            node = self.add(LarkNodeKind::Not(node), position);
        }
        let here = self.token.position;
        let bounds = match self.token.kind {
            LarkTokenKind::Sign("?") => Some((0, Some(1))),
            LarkTokenKind::Sign("*") => Some((0, None)),
            LarkTokenKind::Sign("+") => Some((1, None)),
            LarkTokenKind::TildeCount | LarkTokenKind::OpenCount => None,
            _ => {
                self.level().parts.push(node);
                return Ok(());
            }
        };
        let is_braced = self.token.kind == LarkTokenKind::OpenCount;
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
        let node = self.add(LarkNodeKind::Repeat { body: node, min, max }, here);
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
        let LarkToken { kind, text, position } = self.token;
        if kind != LarkTokenKind::Number {
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
            _ => self.add(LarkNodeKind::Sequence(parts.into()), position),
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
            _ => self.add(LarkNodeKind::Both(conjuncts.into()), position),
        };
        self.level().choices.push(node);
        Ok(())
    }

    /// Ends the last alternative; returns what the level says. The level stays.
    pub(super) fn close_level(&mut self) -> Result<LarkNodeId> {
        self.close_choice()?;
        let level = self.level();
        let (choices, position) = (std::mem::take(&mut level.choices), level.position);
        match choices.as_slice() {
            [choice] => Ok(*choice),
            _ => Ok(self.add(LarkNodeKind::Choice(choices.into()), position)),
        }
    }
}

/// What a token is that is a part by itself.
pub(super) fn leaf(token: LarkToken<'_>) -> Result<LarkNodeKind> {
    let LarkToken { kind, text, position } = token;
    Ok(match kind {
        LarkTokenKind::Text | LarkTokenKind::TextOfAnyCase => LarkNodeKind::Text {
            text: escapes::literal(text, position)?.into(),
            of_any_case: kind == LarkTokenKind::TextOfAnyCase,
        },
        LarkTokenKind::Pattern => {
            let end = text.rfind('/').unwrap_or(0);
            LarkNodeKind::Pattern { text: text[1..end].into(), flags: text[end + 1..].into() }
        }
        LarkTokenKind::Name => LarkNodeKind::Name(text.into()),
        LarkTokenKind::Token => LarkNodeKind::Token(text.into()),
        LarkTokenKind::Grammar => LarkNodeKind::Grammar(text.into()),
        _ => return Err(syntax(position, "expected a literal, a name, a pattern or a group")),
    })
}

/// The error of a rule with a parameter.
pub(super) fn parametric(position: Position) -> Error {
    let message = "rules with a parameter of 64 bits are not read here; write the cases as rules";
    unsupported("parametric rules (`::`)", position, message)
}
