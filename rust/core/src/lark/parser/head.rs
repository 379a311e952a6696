//! What stands before a right-hand side: directives, names, parameters, attributes.

use crate::error::{Error, Position, Result};
use crate::lark::escapes;
use crate::lark::messages::{shown, syntax, unsupported};
use crate::lark::scanner::{LarkToken, LarkTokenKind};
use crate::lark::tree::{
    Attributes, Change, Definition, Import, LarkNodeId, LarkNodeKind, MarkerEnding, is_terminal,
};

use super::{ExpressionLevel, LarkParser, LevelOwner, OpenConstruct};

/// The greatest number that an attribute may be.
const MOST: u32 = 1_000_000;

impl<'t> LarkParser<'t> {
    /// Reads what stands on the level of a document up to a right-hand side, or its end.
    pub(super) fn item(&mut self) -> Result<()> {
        match self.token.kind {
            LarkTokenKind::Newline => self.next().map(|_| ()),
            LarkTokenKind::End if self.stack.len() == 1 => self.close_document(),
            LarkTokenKind::Sign("}") if self.stack.len() > 1 => self.close_document(),
            LarkTokenKind::Directive => self.directive(),
            LarkTokenKind::Name | LarkTokenKind::Sign("?" | "!") => self.definition(None),
            LarkTokenKind::End => Err(self.expected("`}` at the end of `%lark`")),
            _ => {
                let what = "a definition (`name: ...`) or a directive; a definition goes on in the \
                            next line only if that begins with `|`";
                Err(self.expected(what))
            }
        }
    }

    fn directive(&mut self) -> Result<()> {
        let LarkToken { text, position, .. } = self.token;
        match text {
            "ignore" => {
                self.next()?;
                self.open(
                    OpenConstruct::Level(ExpressionLevel::new(LevelOwner::Ignore, position)),
                    position,
                )
            }
            "import" => {
                self.next()?;
                self.import(position)?;
                self.end_of_item()
            }
            "override" | "extend" => {
                self.next()?;
                let change = if text == "extend" { Change::Extend } else { Change::Override };
                self.definition(Some(change))
            }
            "llguidance" | "grammar_options" => {
                let (json, place) = self.scanner.json(text)?;
                self.next()?;
                self.document().options.push((json.into(), place));
                self.end_of_item()
            }
            "declare" => {
                self.next()?;
                self.declaration(position)?;
                self.end_of_item()
            }
            "json" | "regex" | "lark" => {
                let message =
                    format!("`%{text}` stands on the right of a rule: `name: %{text} ...`");
                Err(syntax(position, message))
            }
            _ => Err(unknown_directive(text, position)),
        }
    }

    /// The names behind `%declare`, which stands at a place.
    fn declaration(&mut self, position: Position) -> Result<()> {
        if self.token.kind != LarkTokenKind::Name {
            return Err(self.expected("the name of a terminal"));
        }
        while self.token.kind == LarkTokenKind::Name {
            let name = self.token.text.into();
            self.document().declared.push((name, position));
            self.next()?;
        }
        Ok(())
    }

    fn end_of_item(&mut self) -> Result<()> {
        match self.token.kind {
            LarkTokenKind::Newline | LarkTokenKind::End | LarkTokenKind::Sign("}") => Ok(()),
            _ => Err(self.expected("the end of the line")),
        }
    }

    fn import(&mut self, position: Position) -> Result<()> {
        if self.token.is(".") {
            let message = "files are not read here: write what you import into the text";
            return Err(unsupported("%import", position, message));
        }
        let first = self.name("a library and a terminal, such as `common.INT`")?;
        let (position, mut path) = (first.position, vec![first.text]);
        while self.takes(".")? {
            path.push(self.name("a name after `.`")?.text);
        }
        let mut imports = Vec::new();
        if self.takes("(")? {
            loop {
                let LarkToken { text, position, .. } = self.name("a terminal to import")?;
                imports.push((text, text, position));
                if !self.takes(",")? {
                    break;
                }
            }
            self.expects(")", "after the terminals to import")?;
        } else {
            let Some(name) = path.pop().filter(|_| !path.is_empty()) else {
                return Err(self.expected("`.` and the terminal to import"));
            };
            let alias = if self.takes("->")? { self.name("a name after `->`")?.text } else { name };
            imports.push((name, alias, position));
        }
        let library = path.join(".");
        for (name, alias, position) in imports {
            let (library, name, alias) = (library.clone(), name.into(), alias.into());
            self.document().imports.push(Import { library, name, alias, position });
        }
        Ok(())
    }

    /// Reads a definition up to its `:`.
    fn definition(&mut self, change: Option<Change>) -> Result<()> {
        while self.token.is("!") || self.token.is("?") {
            self.next()?;
        }
        let LarkToken { text: name, position, .. } = self.name("the name of a rule or terminal")?;
        let mut attributes = Attributes::default();
        let mut parameters = Vec::new();
        loop {
            let here = self.token.position;
            if self.takes("::")? {
                return Err(super::atoms::parametric(here));
            } else if parameters.is_empty() && self.takes("{")? {
                parameters = self.parameters()?;
            } else if self.token.is("[") {
                if is_terminal(name) {
                    let message =
                        "attributes are for rules; give the terminal to a rule that has them";
                    return Err(syntax(here, message));
                }
                self.next()?;
                self.attributes(name, &mut attributes)?;
            } else if self.takes(".")? {
                self.priority()?;
            } else {
                break;
            }
        }
        if !parameters.is_empty() && is_terminal(name) {
            return Err(syntax(position, "a template is a rule: its name begins in lower case"));
        }
        self.expects(":", &format!("after the name `{}`", shown(name)))?;
        let body = LarkNodeId(0);
        let definition = Definition { name: name.into(), position, parameters, attributes, body };
        let owner = LevelOwner::Definition(change, Box::new(definition));
        self.open(OpenConstruct::Level(ExpressionLevel::new(owner, self.token.position)), position)
    }

    fn parameters(&mut self) -> Result<Vec<Box<str>>> {
        let mut out: Vec<Box<str>> = Vec::new();
        loop {
            let LarkToken { text, position, .. } = self.name("the name of a parameter")?;
            if out.iter().any(|known| **known == *text) {
                let message = format!("the parameter `{}` is named twice", shown(text));
                return Err(syntax(position, message));
            }
            out.push(text.into());
            if !self.takes(",")? {
                break;
            }
        }
        self.expects("}", "after the parameters")?;
        Ok(out)
    }

    /// A priority chooses between parses and lexers: no string comes or goes by it.
    fn priority(&mut self) -> Result<()> {
        let is_integer =
            self.token.text.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit());
        match self.token.kind {
            LarkTokenKind::Number if is_integer => self.next().map(|_| ()),
            _ => Err(self.expected("a priority, an integer")),
        }
    }

    fn attributes(&mut self, rule: &str, out: &mut Attributes) -> Result<()> {
        loop {
            let key = self.name(
                "an attribute (lazy, suffix, stop, stop_capture, capture, max_tokens, max_chars, \
                 temperature)",
            )?;
            self.attribute(key, rule, out)?;
            if !self.takes(",")? || self.token.is("]") {
                break;
            }
        }
        self.expects("]", "after the attributes")?;
        match &out.stop_capture {
            Some((_, position)) if out.marker.is_none() => Err(syntax(
                *position,
                "`stop_capture` names what stops a rule, and this one has neither `stop` nor `suffix`; leave it out",
            )),
            _ => Ok(()),
        }
    }

    fn attribute(&mut self, key: LarkToken<'t>, rule: &str, out: &mut Attributes) -> Result<()> {
        let here = key.position;
        let is_given = match key.text {
            "lazy" => out.lazy.is_some(),
            "suffix" | "stop" => out.marker.is_some(),
            "capture" => out.capture.is_some(),
            "stop_capture" => out.stop_capture.is_some(),
            "max_tokens" => out.max_tokens.is_some(),
            "max_chars" => out.max_chars.is_some(),
            "temperature" => out.temperature.is_some(),
            unknown => {
                let message = format!(
                    "there is no attribute `{}`; the attributes are lazy, suffix, stop, \
                     stop_capture, capture, max_tokens, max_chars, temperature",
                    shown(unknown)
                );
                return Err(syntax(here, message));
            }
        };
        if is_given {
            let message = match key.text {
                "suffix" | "stop" => "a rule has one `suffix` or one `stop`".into(),
                name => format!("the attribute `{name}` is given twice"),
            };
            return Err(syntax(here, format!("{message}; remove one")));
        }
        match key.text {
            "lazy" => out.lazy = Some(here),
            "capture" if !self.token.is("=") => out.capture = Some((rule.into(), here)),
            name => {
                self.expects("=", &format!("after `{name}`"))?;
                match name {
                    "suffix" => out.marker = Some((MarkerEnding::Suffix, self.marker(name)?)),
                    "stop" => out.marker = Some((MarkerEnding::Stop, self.marker(name)?)),
                    "capture" => out.capture = Some((self.capture_name()?, here)),
                    "stop_capture" => out.stop_capture = Some((self.capture_name()?, here)),
                    "max_tokens" => out.max_tokens = Some((self.amount(name, 1)?, here)),
                    "max_chars" => out.max_chars = Some((self.amount(name, 0)?, here)),
                    _ => out.temperature = Some(self.temperature()?),
                }
            }
        }
        Ok(())
    }

    /// What a rule ends with: a literal, a pattern or a terminal.
    fn marker(&mut self, name: &str) -> Result<LarkNodeId> {
        let position = self.token.position;
        let is_marker = match self.token.kind {
            LarkTokenKind::Text | LarkTokenKind::TextOfAnyCase | LarkTokenKind::Pattern => true,
            LarkTokenKind::Name => is_terminal(self.token.text),
            _ => false,
        };
        if !is_marker {
            return Err(self.expected("a literal, a pattern or a terminal"));
        }
        if self.token.kind == LarkTokenKind::Text && self.token.text.is_empty() {
            let message = "an empty marker stands for the end of the text, which a rule cannot wait \
                           for; write the text that ends it";
            return Err(unsupported(format!("{name}=\"\""), position, message));
        }
        let token = self.next()?;
        let kind = super::atoms::leaf(token)?;
        Ok(self.add(kind, position))
    }

    fn capture_name(&mut self) -> Result<String> {
        let LarkToken { kind, text, position } = self.token;
        if kind != LarkTokenKind::Text {
            return Err(self.expected("a name in double quotes"));
        }
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let name = escapes::literal(text, position)?;
        if name.is_empty() || !name.chars().all(is_part) {
            let message = "the name of a capture has letters, digits, `_`, `-` and `.`";
            return Err(syntax(position, message));
        }
        self.next()?;
        Ok(name)
    }

    fn amount(&mut self, name: &str, least: u32) -> Result<u32> {
        let LarkToken { kind, text, position } = self.token;
        match (kind, text.parse::<u32>()) {
            (LarkTokenKind::Number, Ok(value)) if (least..=MOST).contains(&value) => {
                self.next()?;
                Ok(value)
            }
            (LarkTokenKind::Number, _) => {
                let message = format!("`{name}` is an integer from {least} to {MOST}");
                Err(syntax(position, message))
            }
            _ => Err(self.expected("an integer")),
        }
    }

    fn temperature(&mut self) -> Result<f64> {
        let LarkToken { kind, text, position } = self.token;
        match (kind, text.parse::<f64>()) {
            (LarkTokenKind::Number, Ok(value)) if value >= 0.0 && value <= f64::from(f32::MAX) => {
                self.next()?;
                Ok(value.abs())
            }
            (LarkTokenKind::Number, _) => {
                Err(syntax(position, "the temperature is a finite number of at least 0"))
            }
            _ => Err(self.expected("a number")),
        }
    }

    /// Ends the right-hand side on top, whose owner is a definition or `%ignore`.
    pub(super) fn close_item(&mut self) -> Result<()> {
        let body = self.close_level()?;
        let Some(OpenConstruct::Level(level)) = self.stack.pop() else { return Ok(()) };
        match level.owner {
            LevelOwner::Definition(change, mut definition) => {
                definition.body = body;
                let document = self.document();
                match change {
                    Some(change) => document.changes.push((change, *definition)),
                    None => document.definitions.push(*definition),
                }
            }
            LevelOwner::Ignore => {
                let is_empty = matches!(self.document().kind(body),
                    LarkNodeKind::Sequence(parts) if parts.is_empty());
                if is_empty {
                    return Err(syntax(
                        level.position,
                        "`%ignore` names what is ignored; nothing follows",
                    ));
                }
                self.document().ignores.push(body);
            }
            _ => {}
        }
        Ok(())
    }
}

fn unknown_directive(name: &str, position: Position) -> Error {
    let message = format!(
        "there is no directive `%{}`; the directives are %import, %ignore, %override, %extend, \
         %llguidance and %grammar_options, and on the right %json, %regex and %lark",
        shown(name)
    );
    syntax(position, message)
}
