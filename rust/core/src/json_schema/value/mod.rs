//! JSON documents in one arena.
//!
//! Design: docs/design/json-schema.md.
//!
//! Invariants:
//! - a value stands before everything in it, and what is in it follows without a gap, so a pass over
//!   a value is a loop over a range of ids: nothing recurses, whatever the nesting;
//! - names of an object are unique and stand in document order;
//! - numbers are exact decimals;
//! - every value knows its parent, so a JSON pointer is one walk up.
//!
//! Files: `reader` (text to values), `equality` (JSON equality, hashes by value).

mod equality;
mod reader;
#[cfg(test)]
mod tests;

use super::decimal::Decimal;
use std::fmt::Write as _;
use std::ops::Range;

/// Objects with more names than this have an index.
const LINEAR: usize = 8;

/// A JSON value of an [`Arena`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct JsonNodeId(pub u32);

impl JsonNodeId {
    /// The position in the arena.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonNode {
    /// `null`
    Null,
    /// `true`, `false`
    Boolean(bool),
    /// A number, exact.
    Number(Decimal),
    /// A string of Unicode scalar values.
    String(Box<str>),
    /// An array.
    Array(Box<[JsonNodeId]>),
    /// An object.
    Object(Object),
}

impl JsonNode {
    /// What kind of value it is, with its article, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            JsonNode::Null => "null",
            JsonNode::Boolean(_) => "a boolean",
            JsonNode::Number(_) => "a number",
            JsonNode::String(_) => "a string",
            JsonNode::Array(_) => "an array",
            JsonNode::Object(_) => "an object",
        }
    }

    /// The object, where the value is one.
    pub fn as_object(&self) -> Option<&Object> {
        match self {
            JsonNode::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The items, where the value is an array.
    pub fn as_array(&self) -> Option<&[JsonNodeId]> {
        match self {
            JsonNode::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The text, where the value is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            JsonNode::String(text) => Some(text),
            _ => None,
        }
    }
}

/// The names and values of an object, in document order.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Object {
    entries: Box<[(Box<str>, JsonNodeId)]>,
    /// Positions of `entries` by name; empty where there are few.
    sorted: Box<[u32]>,
    /// The bits of all names: most names that are asked for are not there.
    bits: u64,
}

/// One of 64 bits, by the length and the ends of a name.
fn bit_of(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let end = |byte: Option<&u8>| byte.map_or(0, |&byte| u32::from(byte));
    let number = bytes.len() as u32 + 5 * end(bytes.first()) + 3 * end(bytes.last());
    1 << (number % u64::BITS)
}

impl Object {
    /// An object of these entries, or the position of the first entry that repeats a name.
    fn new(entries: Vec<(Box<str>, JsonNodeId)>) -> Result<Self, usize> {
        let bits = entries.iter().fold(0, |bits, (name, _)| bits | bit_of(name));
        if entries.len() <= LINEAR {
            for (position, (name, _)) in entries.iter().enumerate() {
                if entries[..position].iter().any(|(other, _)| other == name) {
                    return Err(position);
                }
            }
            return Ok(Self { entries: entries.into(), sorted: Box::default(), bits });
        }
        let mut sorted: Vec<u32> = (0..entries.len() as u32).collect();
        let name = |position: u32| &*entries[position as usize].0;
        sorted.sort_unstable_by(|&a, &b| name(a).cmp(name(b)).then(a.cmp(&b)));
        let repeated = sorted.windows(2).filter(|pair| name(pair[0]) == name(pair[1]));
        match repeated.map(|pair| pair[1]).min() {
            Some(position) => Err(position as usize),
            None => Ok(Self { entries: entries.into(), sorted: sorted.into(), bits }),
        }
    }

    /// The number of names.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no names.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a name: some comparisons, or a binary search where there are many names.
    pub fn get(&self, name: &str) -> Option<JsonNodeId> {
        if self.bits & bit_of(name) == 0 {
            return None;
        }
        if self.sorted.is_empty() {
            return self.entries.iter().find(|(known, _)| **known == *name).map(|&(_, id)| id);
        }
        let entry = |position: &u32| &self.entries[*position as usize];
        let found = self.sorted.binary_search_by(|position| (*entry(position).0).cmp(name)).ok()?;
        Some(entry(&self.sorted[found]).1)
    }

    /// Names and values in document order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, JsonNodeId)> + DoubleEndedIterator {
        self.entries.iter().map(|(name, id)| (&**name, *id))
    }

    /// The name at a position, in document order.
    pub fn name(&self, position: usize) -> Option<&str> {
        self.entries.get(position).map(|(name, _)| &**name)
    }
}

/// Where a value stands: in which value, at which position there. A root is its own parent.
#[derive(Clone, Copy)]
struct ValueLink {
    parent: JsonNodeId,
    position: u32,
}

/// A document of an [`Arena`].
struct Document {
    root: JsonNodeId,
    /// What stands before `#` in its pointers.
    name: Box<str>,
}

/// JSON documents, value by value.
#[derive(Default)]
pub struct Arena {
    nodes: Vec<JsonNode>,
    links: Vec<ValueLink>,
    hashes: Vec<u64>,
    documents: Vec<Document>,
}

impl Arena {
    /// An arena without documents.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of values in all documents.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is no document.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// A value.
    #[inline]
    pub fn node(&self, id: JsonNodeId) -> &JsonNode {
        &self.nodes[id.index()]
    }

    /// Whether some object has one of some names.
    pub fn has_name(&self, names: &[&str]) -> bool {
        let mut objects = self.nodes.iter().filter_map(JsonNode::as_object);
        objects.any(|object| names.iter().any(|name| object.get(name).is_some()))
    }

    /// The object, where the value is one.
    pub fn object(&self, id: JsonNodeId) -> Option<&Object> {
        self.node(id).as_object()
    }

    /// The value of a name, where the value is an object that has it.
    pub fn get(&self, id: JsonNodeId, name: &str) -> Option<JsonNodeId> {
        self.object(id)?.get(name)
    }

    /// The value that holds this one; `None` for a root.
    pub fn parent(&self, id: JsonNodeId) -> Option<JsonNodeId> {
        let parent = self.links[id.index()].parent;
        (parent != id).then_some(parent)
    }

    /// The root of the document that holds a value.
    pub fn document_of(&self, id: JsonNodeId) -> JsonNodeId {
        self.document(id).root
    }

    fn document(&self, id: JsonNodeId) -> &Document {
        let after = self.documents.partition_point(|document| document.root <= id);
        &self.documents[after - 1] // a value is made after the document that holds it
    }

    /// The values of a document, its root first.
    pub fn values_of(&self, root: JsonNodeId) -> Range<u32> {
        let after = self.documents.partition_point(|document| document.root <= root);
        let end = self.documents.get(after).map_or(self.nodes.len() as u32, |next| next.root.0);
        root.0..end
    }

    /// The JSON pointer of a value as a URI fragment, behind the name of its document:
    /// `#/properties/a~1b`. Characters that no fragment can hold are percent-encoded.
    pub fn pointer(&self, id: JsonNodeId) -> String {
        let mut path = Vec::new();
        let mut place = id;
        while let Some(parent) = self.parent(place) {
            path.push((parent, self.links[place.index()].position as usize));
            place = parent;
        }
        let mut text = format!("{}#", self.document(id).name);
        for (parent, position) in path.into_iter().rev() {
            match self.object(parent).and_then(|object| object.name(position)) {
                Some(name) => push_token(&mut text, name),
                None => push_index(&mut text, position),
            }
        }
        text
    }

    /// The value that a JSON pointer names (`/a~1b/0`, percent-encoding undone), seen from a value.
    ///
    /// # Errors
    /// The value at which the pointer ends early.
    pub fn follow(&self, from: JsonNodeId, pointer: &str) -> Result<JsonNodeId, JsonNodeId> {
        let mut place = from;
        for token in pointer.split('/').skip(1) {
            let next = match self.node(place) {
                JsonNode::Object(object) if !token.contains('~') => object.get(token),
                JsonNode::Object(object) => {
                    object.get(&token.replace("~1", "/").replace("~0", "~"))
                }
                JsonNode::Array(items) => {
                    index_of(token).and_then(|index| items.get(index).copied())
                }
                _ => None,
            };
            place = next.ok_or(place)?;
        }
        Ok(place)
    }
}

/// The position that a token of a pointer names: digits without a zero before them.
fn index_of(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with('0');
    (is_plain && token.bytes().all(|byte| byte.is_ascii_digit())).then(|| token.parse().ok())?
}

/// Appends a name to a pointer that is no fragment of a URI.
pub(super) fn push_plain_token(pointer: &mut String, name: &str) {
    pointer.push('/');
    pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
}

/// Appends a name to a pointer.
fn push_token(pointer: &mut String, name: &str) {
    pointer.push('/');
    for character in name.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            '%'
            | '"'
            | '<'
            | '>'
            | '\\'
            | '^'
            | '`'
            | '{'
            | '|'
            | '}'
            | '#'
            | '['
            | ']'
            | '\0'..=' '
            | '\x7f' => {
                let _ = write!(pointer, "%{:02X}", character as u32); // a string takes everything
            }
            other => pointer.push(other),
        }
    }
}

/// Appends a position in an array to a pointer.
pub(super) fn push_index(pointer: &mut String, position: usize) {
    let _ = write!(pointer, "/{position}"); // a string takes everything
}
