//! Names, GBNF's dot, macros and token references.

use crate::error::{Error, Position, Result};
use crate::grammar::{CharSet, Expr, Macro, MacroArgument};

use super::super::messages::{shown, syntax};
use super::super::scanner::{GrammarToken, Kind, Scanner};
use super::super::suggest::nearest;
use super::super::{NamedTokens, escapes, macros};
use super::GrammarParser;

impl<'t> GrammarParser<'t> {
    /// A rule's name, a macro, or GBNF's dot.
    pub(super) fn word(&mut self, token: GrammarToken) -> Result<()> {
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
    fn dotted(&mut self, token: GrammarToken) -> Result<()> {
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

    /// The error at a line that begins with `name =` or `name :`, which was to define the name.
    fn misdefined(&self, name: &str) -> Option<Error> {
        let mut scanner = Scanner::new(self.text);
        let mut line_before = 0;
        let mut token = scanner.next_token();
        while token.kind != Kind::End {
            let next = scanner.next_token();
            let assigns = next.kind == Kind::Equal || self.slice(&next) == ":";
            if assigns && line_before != token.position.line && self.slice(&token) == name {
                let (name, found) = (shown(name), shown(self.slice(&next)));
                let message = format!("found `{found}` after \"{name}\"; write `{name} ::= ...`");
                return Some(syntax(next.position, message));
            }
            line_before = token.position.line;
            token = next;
        }
        None
    }

    /// The error at a name that no rule has.
    fn undefined(&self, token: GrammarToken) -> Error {
        let name = self.slice(&token);
        if let Some(error) = self.misdefined(name) {
            return error;
        }
        let advice = match nearest(name, self.order.iter().map(|(name, _)| *name)) {
            Some(near) => format!("the nearest name is \"{}\"", shown(near)),
            None => "define it, or write it in double quotes if it is text".into(),
        };
        syntax(token.position, format!("the rule \"{}\" is not defined; {advice}", shown(name)))
    }

    /// Reads a macro whose name is the current token.
    fn call(&mut self, head: GrammarToken) -> Result<Macro> {
        let name = self.slice(&head);
        let mut call = Macro { name: name.into(), positional: Vec::new(), named: Vec::new() };
        self.advance();
        self.expect(Kind::Open, &format!("`(` after {name}, which takes arguments"))?;
        while self.current.kind != Kind::Close
            || !call.positional.is_empty()
            || !call.named.is_empty()
        {
            if self.current.kind == Kind::Word && self.following.kind == Kind::Equal {
                let name = self.slice(&self.current);
                macros::check_named(&call, name, self.current.position)?;
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
                let expected =
                    "an argument: a literal, an integer, true, false, the name of a rule";
                return Err(self.unexpected(&token, expected));
            }
        };
        self.advance();
        Ok(value)
    }

    fn word_argument(&self, token: GrammarToken, text: &str) -> Result<MacroArgument> {
        if text.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse().map(MacroArgument::Integer).map_err(|_| {
                syntax(token.position, format!("the integer {} is too great", shown(text)))
            });
        }
        match (text, self.names.get(text)) {
            ("true", _) => Ok(MacroArgument::Boolean(true)),
            ("false", _) => Ok(MacroArgument::Boolean(false)),
            (_, Some(&rule)) => Ok(MacroArgument::Rule(rule)),
            // Only to be refused with the right words: no macro takes a negative number.
            _ => match text.parse() {
                Ok(number) => Ok(MacroArgument::Integer(number)),
                Err(_) => Err(self.undefined(token)),
            },
        }
    }
}

/// GBNF's `<[id]>` and `!<[id]>` are XGrammar's `Token(id)` and `ExcludeToken(id)`; `<text>` names all tokens with
/// that text.
pub(super) fn token_reference(
    text: &str,
    tokens: Option<&NamedTokens>,
    position: Position,
) -> Result<Macro> {
    let (name, inner) = match text.strip_prefix('!') {
        Some(inner) => ("ExcludeToken", inner),
        None => ("Token", text),
    };
    let refused =
        |message: String| Error::Unsupported { construct: shown(text), message, position };
    let digits = inner.strip_prefix("<[").and_then(|rest| rest.strip_suffix("]>"));
    let id = digits.filter(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()));
    let ids = match (id, tokens.filter(|_| !inner.starts_with("<["))) {
        (Some(digits), _) => match digits.parse::<i64>() {
            Ok(id) if id <= macros::LAST_TOKEN => vec![id],
            _ => {
                let (digits, last) = (shown(digits), macros::LAST_TOKEN);
                return Err(syntax(
                    position,
                    format!("the token id {digits} is greater than {last}"),
                ));
            }
        },
        (None, Some(tokens)) => match tokens.get(inner) {
            Some(ids) if !ids.is_empty() => ids.iter().map(|&id| i64::from(id)).collect(),
            _ => {
                let message = "the vocabulary has no such token; write its text as a literal, or another token";
                return Err(refused(message.into()));
            }
        },
        (None, None) => {
            return Err(refused(format!(
                "a grammar has no vocabulary to look for a token in; write its id, a number from 0: \
                 {name}(id)"
            )));
        }
    };
    let positional = ids.into_iter().map(MacroArgument::Integer).collect();
    Ok(Macro { name: name.into(), positional, named: Vec::new() })
}
