//! The small JSON values of directives: an object of flags, texts and lists of texts.

use crate::error::{Position, Result};

use super::escapes;
use super::messages::{shown, syntax};

/// A value of such an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum JsonValue {
    Null,
    Boolean(bool),
    Text(String),
    Texts(Vec<String>),
}

/// Reads an object; `directive` names whose it is.
///
/// # Errors
/// It is no such object.
pub(super) fn object(
    text: &str,
    position: Position,
    directive: &str,
) -> Result<Vec<(String, JsonValue)>> {
    let mut reader = ObjectReader { text, at: 0, position, directive };
    let out = reader.object()?;
    reader.blanks();
    if reader.at < text.len() {
        return Err(reader.fault("nothing may follow the object"));
    }
    Ok(out)
}

struct ObjectReader<'t> {
    text: &'t str,
    at: usize,
    position: Position,
    directive: &'t str,
}

impl ObjectReader<'_> {
    fn fault(&self, what: &str) -> crate::error::Error {
        let message = format!("`%{}`: {what}", self.directive);
        syntax(self.place(), message)
    }

    /// Where it is, counted anew: errors only.
    fn place(&self) -> Position {
        let read = &self.text[..self.at];
        let line = read.matches('\n').count() as u32;
        let column = read.rsplit('\n').next().map_or(0, |line| line.chars().count()) as u32;
        match line {
            0 => Position { column: self.position.column + column, ..self.position },
            _ => Position { line: self.position.line + line, column: column + 1 },
        }
    }

    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
    }

    fn takes(&mut self, word: &str) -> bool {
        self.blanks();
        let is_there = self.text[self.at..].starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn object(&mut self) -> Result<Vec<(String, JsonValue)>> {
        if !self.takes("{") {
            return Err(self.fault("its value is an object, `{...}`"));
        }
        let mut out: Vec<(String, JsonValue)> = Vec::new();
        if self.takes("}") {
            return Ok(out);
        }
        loop {
            self.blanks();
            let before = self.at;
            let name = self.string()?;
            if out.iter().any(|(known, _)| *known == name) {
                self.at = before;
                return Err(self.fault(&format!("`{}` is given twice", shown(&name))));
            }
            if !self.takes(":") {
                return Err(self.fault("expected `:` after a name"));
            }
            let value = self.value()?;
            out.push((name, value));
            match (self.takes(","), self.takes("}")) {
                (true, false) => {}
                (false, true) => return Ok(out),
                _ => return Err(self.fault("expected `,` or `}`")),
            }
        }
    }

    fn value(&mut self) -> Result<JsonValue> {
        for (word, value) in [
            ("null", JsonValue::Null),
            ("true", JsonValue::Boolean(true)),
            ("false", JsonValue::Boolean(false)),
        ] {
            if self.takes(word) {
                return Ok(value);
            }
        }
        if !self.takes("[") {
            return self.string().map(JsonValue::Text);
        }
        let mut texts = Vec::new();
        if self.takes("]") {
            return Ok(JsonValue::Texts(texts));
        }
        loop {
            texts.push(self.string()?);
            match (self.takes(","), self.takes("]")) {
                (true, false) => {}
                (false, true) => return Ok(JsonValue::Texts(texts)),
                _ => return Err(self.fault("expected `,` or `]`")),
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        self.blanks();
        let place = self.at;
        let rest = &self.text[place..];
        let inside = rest.strip_prefix('"').and_then(|rest| {
            let mut is_escaped = false;
            let end = rest.find(|c| {
                let ends = c == '"' && !is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                ends
            })?;
            Some(&rest[..end])
        });
        let Some(inside) = inside.filter(|inside| !inside.contains(|c: char| c < ' ')) else {
            let what =
                "expected a text in double quotes, `true`, `false`, `null` or a list of texts";
            return Err(self.fault(what));
        };
        if inside.contains("\\x") || inside.contains("\\U") {
            // `\\x` is a backslash and a letter.
            let plain = inside.replace("\\\\", "");
            if plain.contains("\\x") || plain.contains("\\U") {
                return Err(self.fault("JSON has no escapes `\\x` and `\\U`; write `\\uHHHH`"));
            }
        }
        let text = if inside.contains('\\') {
            escapes::literal(inside, self.place())?
        } else {
            inside.to_owned()
        };
        self.at = place + inside.len() + 2;
        Ok(text)
    }
}
