//! The JSON reader: RFC 8259, and no more.
//!
//! Refused besides what the grammar refuses: names that an object repeats, and `\u` escapes that are
//! half of a surrogate pair. A byte order mark before the document is skipped.

use super::super::decimal::{Decimal, DecimalFault};
use super::{Arena, Document, JsonNode, JsonNodeId, Object, ValueLink, push_index, push_token};
use crate::budget::Budget;
use crate::error::{Error, Result, SchemaFault};

/// Bytes of text that count as one unit of work.
const BYTES_PER_UNIT: usize = 16;

impl Arena {
    /// Reads one document and gives its root. `name` stands before `#` in pointers to its values:
    /// its URI, or nothing.
    ///
    /// # Errors
    /// [`Error::Schema`] with pointer, line and column where the text is not JSON;
    /// [`Error::Limit`] where values nest deeper than `max_nesting`; those of the budget. The arena
    /// then holds what it held before.
    pub fn read(
        &mut self,
        text: &str,
        name: &str,
        max_nesting: usize,
        budget: &Budget,
    ) -> Result<JsonNodeId> {
        if u32::try_from(text.len()).is_err() || self.len() + text.len() > u32::MAX as usize {
            return Err(Error::Limit {
                limit: "max_grammar_bytes",
                value: u64::from(u32::MAX),
                message: "documents hold more bytes in all; split them".to_owned(),
            });
        }
        let before = self.nodes.len();
        let root = JsonNodeId(before as u32);
        self.documents.push(Document { root, name: name.into() });
        let position = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let reader = JsonReader {
            arena: self,
            text,
            position,
            max_nesting,
            budget,
            frames: Vec::new(),
            names: Vec::new(),
            values: Vec::new(),
        };
        let result = reader.document();
        if result.is_err() {
            self.nodes.truncate(before);
            self.links.truncate(before);
            self.hashes.truncate(before);
            self.documents.pop();
        }
        result.map(|()| root)
    }
}

/// An array or an object that is not closed yet.
struct OpenContainer {
    node: JsonNodeId,
    is_object: bool,
    /// Where its names and values begin in the stacks of the reader.
    names: usize,
    values: usize,
}

struct JsonReader<'a> {
    arena: &'a mut Arena,
    text: &'a str,
    /// The byte to read next; always at the border of a character.
    position: usize,
    max_nesting: usize,
    budget: &'a Budget,
    frames: Vec<OpenContainer>,
    /// The names of all open objects, and where they stand.
    names: Vec<(Box<str>, usize)>,
    /// The values of all open arrays and objects.
    values: Vec<JsonNodeId>,
}

impl JsonReader<'_> {
    fn document(mut self) -> Result<()> {
        loop {
            let is_open = self.value()?;
            if !(is_open || self.next_place()?) {
                break;
            }
        }
        self.skip_blanks();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault("expected the end of the document")),
        }
    }

    /// Reads a value, or opens an array or object up to its first value and then gives `true`.
    fn value(&mut self) -> Result<bool> {
        self.skip_blanks();
        let start = self.position;
        let node = match self.peek() {
            Some(b'{') => return self.open(true),
            Some(b'[') => return self.open(false),
            Some(b'"') => JsonNode::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => JsonNode::Number(self.number()?),
            Some(b't') if self.take("true") => JsonNode::Boolean(true),
            Some(b'f') if self.take("false") => JsonNode::Boolean(false),
            Some(b'n') if self.take("null") => JsonNode::Null,
            Some(b']') if self.is_behind_comma() => {
                return Err(self.fault("expected a value; drop the comma before \"]\""));
            }
            _ => {
                return Err(self.fault(
                    "expected a JSON value: an object, an array, a string in double quotes, a \
                     number, true, false or null",
                ));
            }
        };
        self.budget.spend(1 + (self.position - start) / BYTES_PER_UNIT)?;
        let id = self.push(JsonNode::Null);
        self.finish(id, node);
        Ok(false)
    }

    /// Whether the innermost array has values, so that a comma stands before what comes.
    fn is_behind_comma(&self) -> bool {
        let frame = self.frames.last();
        frame.is_some_and(|frame| !frame.is_object && self.values.len() > frame.values)
    }

    /// Appends a value to the arena, whose parent is the innermost open array or object.
    fn push(&mut self, node: JsonNode) -> JsonNodeId {
        let id = JsonNodeId(self.arena.nodes.len() as u32);
        let link = match self.frames.last() {
            None => ValueLink { parent: id, position: 0 },
            Some(frame) => {
                let position = (self.values.len() - frame.values) as u32;
                ValueLink { parent: frame.node, position }
            }
        };
        self.arena.nodes.push(node);
        self.arena.links.push(link);
        self.arena.hashes.push(0);
        id
    }

    /// Gives a value its content; all that is in it is there.
    fn finish(&mut self, id: JsonNodeId, node: JsonNode) {
        self.arena.hashes[id.index()] = self.arena.hash_of_parts(&node);
        self.arena.nodes[id.index()] = node;
        self.values.push(id);
    }

    fn open(&mut self, is_object: bool) -> Result<bool> {
        if self.frames.len() >= self.max_nesting {
            let (line, column) = self.line_and_column(self.position);
            return Err(Error::Limit {
                limit: "max_nesting",
                value: self.max_nesting as u64,
                message: format!(
                    "line {line}, column {column}: arrays and objects nest deeper; lower the \
                     nesting or raise the limit"
                ),
            });
        }
        self.budget.spend(1)?;
        let node = self.push(JsonNode::Null);
        self.position += 1;
        let (names, values) = (self.names.len(), self.values.len());
        self.frames.push(OpenContainer { node, is_object, names, values });
        self.skip_blanks();
        match (is_object, self.peek()) {
            (true, Some(b'}')) | (false, Some(b']')) => {
                self.close()?;
                self.next_place()
            }
            (true, _) => self.name().map(|()| true),
            (false, _) => Ok(true),
        }
    }

    /// Goes from the end of a value to where the next one begins; `false` where the document ends.
    fn next_place(&mut self) -> Result<bool> {
        while let Some(frame) = self.frames.last() {
            let is_object = frame.is_object;
            self.skip_blanks();
            match (is_object, self.peek()) {
                (_, Some(b',')) => {
                    self.position += 1;
                    if is_object {
                        self.skip_blanks();
                        self.name()?;
                    }
                    return Ok(true);
                }
                (true, Some(b'}')) | (false, Some(b']')) => self.close()?,
                (true, _) => return Err(self.fault("expected \",\" or \"}\" after the value")),
                (false, _) => return Err(self.fault("expected \",\" or \"]\" after the value")),
            }
        }
        Ok(false)
    }

    /// Closes the innermost array or object at its bracket.
    fn close(&mut self) -> Result<()> {
        self.position += 1;
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        self.budget.spend(self.values.len() - frame.values)?;
        if !frame.is_object {
            let items = self.values.split_off(frame.values);
            self.finish(frame.node, JsonNode::Array(items.into()));
            return Ok(());
        }
        let values = &self.values[frame.values..];
        let names = self.names[frame.names..].iter_mut();
        let taken = names.map(|(name, _)| std::mem::take(name)).zip(values.iter().copied());
        let entries: Vec<(Box<str>, JsonNodeId)> = taken.collect();
        match Object::new(entries) {
            Ok(object) => {
                self.names.truncate(frame.names);
                self.values.truncate(frame.values);
                self.finish(frame.node, JsonNode::Object(object));
                Ok(())
            }
            Err(position) => {
                let start = self.names[frame.names + position].1;
                Err(self.repeated(frame, start))
            }
        }
    }

    /// The error for a name that stands twice in an object, the second time at `start`.
    fn repeated(&mut self, frame: OpenContainer, start: usize) -> Error {
        self.names.truncate(frame.names);
        self.values.truncate(frame.values);
        let mut pointer = self.pointer();
        self.position = start;
        let name = self.string().unwrap_or_default(); // it was read before
        push_token(&mut pointer, &name);
        self.fault_at(start, pointer, "the object has this name before; names must be unique")
    }

    /// Reads a name and its colon.
    fn name(&mut self) -> Result<()> {
        let start = self.position;
        match self.peek() {
            Some(b'"') => {}
            Some(b'}') => return Err(self.fault("expected a name; drop the comma before \"}\"")),
            _ => return Err(self.fault("expected a name in double quotes")),
        }
        let name = self.string()?;
        self.budget.spend(1 + name.len() / BYTES_PER_UNIT)?;
        self.names.push((name, start));
        self.skip_blanks();
        if self.peek() != Some(b':') {
            return Err(self.fault("expected \":\" after the name"));
        }
        self.position += 1;
        Ok(())
    }

    fn number(&mut self) -> Result<Decimal> {
        let rest = &self.text.as_bytes()[self.position..];
        let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
        let length = rest.iter().take_while(is_part).count();
        let text = &self.text[self.position..self.position + length];
        match Decimal::read(text) {
            Ok(number) => {
                self.position += length;
                Ok(number)
            }
            Err(DecimalFault::Syntax) => Err(self.fault(
                "the number is not one of JSON: write digits without a zero before them, with \
                 digits on both sides of a point",
            )),
            Err(fault) => Err(self.fault(&fault.to_string())),
        }
    }

    fn string(&mut self) -> Result<Box<str>> {
        let bytes = self.text.as_bytes();
        self.position += 1;
        let mut start = self.position;
        let mut out = String::new();
        loop {
            match bytes.get(self.position) {
                Some(b'"') => {
                    let last = &self.text[start..self.position];
                    self.position += 1;
                    return Ok(if out.is_empty() { last.into() } else { (out + last).into() });
                }
                Some(b'\\') => {
                    out.push_str(&self.text[start..self.position]);
                    out.push(self.escape()?);
                    start = self.position;
                }
                Some(0..0x20) => {
                    return Err(self.fault(
                        "the string holds a control character; write it as an escape, such as \
                         \\n or \\u0001",
                    ));
                }
                Some(_) => self.position += 1,
                None => return Err(self.fault("the document ends within a string")),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let character = match self.text.as_bytes().get(self.position + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => {
                return Err(self.fault(
                    "a backslash begins no escape of JSON here; those are \\\" \\\\ \\/ \\b \\f \
                     \\n \\r \\t and \\u with four hexadecimal digits",
                ));
            }
        };
        self.position += 2;
        Ok(character)
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let Some(first) = self.hex_digits(self.position) else {
            return Err(self.fault("\\u needs four hexadecimal digits"));
        };
        let second = match first {
            0xd800..0xdc00 => self.hex_digits(self.position + 6),
            _ => None,
        };
        let (code, length) = match second {
            Some(second @ 0xdc00..0xe000) => {
                (0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
            }
            _ => (first, 6),
        };
        match char::from_u32(code) {
            Some(character) => {
                self.position += length;
                Ok(character)
            }
            None => Err(self.fault(
                "the \\u escape is half of a surrogate pair; write both halves, or the character \
                 itself",
            )),
        }
    }

    /// The code of `\uXXXX` at a position.
    fn hex_digits(&self, position: usize) -> Option<u32> {
        let escape = self.text.as_bytes().get(position..position + 6)?;
        let digits = escape.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |code, &digit| Some(code << 4 | (digit as char).to_digit(16)?))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.text.as_bytes()[self.position..].starts_with(word.as_bytes());
        self.position += if is_there { word.len() } else { 0 };
        is_there
    }

    fn skip_blanks(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.position += 1;
        }
    }

    fn line_and_column(&self, position: usize) -> (usize, usize) {
        let before = &self.text[..position];
        let before = before.strip_prefix('\u{feff}').unwrap_or(before);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// The pointer of the value that is being read.
    fn pointer(&self) -> String {
        let mut pointer = format!("{}#", self.arena.documents.last().map_or("", |last| &last.name));
        for (level, frame) in self.frames.iter().enumerate() {
            let next = self.frames.get(level + 1);
            let position = next.map_or(self.values.len(), |next| next.values) - frame.values;
            if !frame.is_object {
                push_index(&mut pointer, position);
            } else if let Some((name, _)) = self.names.get(frame.names + position) {
                push_token(&mut pointer, name);
            }
        }
        pointer
    }

    fn fault(&self, message: &str) -> Error {
        self.fault_at(self.position, self.pointer(), message)
    }

    fn fault_at(&self, position: usize, pointer: String, message: &str) -> Error {
        let (line, column) = self.line_and_column(position);
        Error::Schema {
            kind: SchemaFault::Invalid,
            pointer,
            keyword: String::new(),
            message: format!("line {line}, column {column}: {message}"),
        }
    }
}
