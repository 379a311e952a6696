//! `?`, `*`, `+`, `{m}`, `{m,}`, `{m,n}`.

use crate::error::Result;
use crate::grammar::Expr;

use super::super::messages::{shown, syntax};
use super::super::printer::Around;
use super::super::scanner::{GrammarToken, Kind};
use super::{GrammarParser, Operand};

impl GrammarParser<'_> {
    /// Repeats what stands before the current token.
    pub(super) fn repeat(&mut self, min: u32, max: Option<u32>) -> Result<()> {
        self.repeat_from(self.current, min, max)
    }

    /// Repeats what stands before `token`.
    pub(super) fn repeat_from(
        &mut self,
        token: GrammarToken,
        min: u32,
        max: Option<u32>,
    ) -> Result<()> {
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
        self.items.push(Operand { id, position, depth });
        Ok(())
    }

    /// Reads `{m}`, `{m,}`, `{m,n}` or `{m,-1}`.
    pub(super) fn bounds(&mut self) -> Result<(u32, Option<u32>)> {
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
                "the repetition bound {} is greater than {}; write a smaller one, or `{{m,}}` for no upper bound",
                shown(text),
                u32::MAX
            );
            syntax(token.position, message)
        })?;
        self.advance();
        Ok(bound)
    }
}
