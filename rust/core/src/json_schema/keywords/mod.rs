//! Keywords of a schema, read with the type that they must have.
//!
//! Design: docs/design/json-schema.md.
//!
//! Each function gives nothing where the schema lacks the keyword, where its dialect has no such
//! keyword, or where `$ref` hides it; [`Schemas::notes_on`] says so. A value of a wrong type is an
//! error with the pointer of the schema. Schemas that validators accept are accepted, though the
//! metaschema may say more: repeated names in `required`, an empty `enum`, `type` or `anyOf`.
//!
//! Files: `groups` (what dialects spell by several keywords, or in several ways).

mod groups;
#[cfg(test)]
mod tests;

pub use super::types::{NamedType, Types};
pub use groups::{Dependency, Items, StatedBound};

use super::decimal::Decimal;
use super::dialect::ONLY_DRAFT3;
use super::resolve::Schemas;
use super::value::{JsonNode, JsonNodeId, Object};
use crate::error::{Error, Result, SchemaFault};

/// What a schema is.
#[derive(Clone, Copy, Debug)]
pub enum Shape<'a> {
    /// `true`, `{}`: every value is valid.
    Always,
    /// `false`: no value is valid.
    Never,
    /// Keywords.
    Keywords(&'a Object),
}

impl Schemas {
    /// What a value is as a schema.
    ///
    /// # Errors
    /// Invalid where the value is neither object nor boolean, Unsupported where its resource needs
    /// a vocabulary that is unknown, or where it is of draft 3 and has a keyword that draft 4 replaced.
    pub fn shape(&self, schema: JsonNodeId) -> Result<Shape<'_>> {
        if let Some(fault) = self.fault_of(schema) {
            return Err(fault.clone());
        }
        match self.arena().node(schema) {
            JsonNode::Boolean(true) => Ok(Shape::Always),
            JsonNode::Boolean(false) => Ok(Shape::Never),
            JsonNode::Object(object) if object.is_empty() => Ok(Shape::Always),
            JsonNode::Object(object) => match self.replaced_by_draft4(schema, object) {
                Some(keyword) => Err(self.only_draft3(schema, keyword)),
                None => Ok(Shape::Keywords(object)),
            },
            other => {
                let message = format!("a schema is an object or a boolean; found {}", other.kind());
                Err(self.fault(SchemaFault::Invalid, schema, "", message))
            }
        }
    }

    /// A keyword of a schema of draft 3 that counts there, and in no later draft.
    pub(super) fn replaced_by_draft4(
        &self,
        schema: JsonNodeId,
        object: &Object,
    ) -> Option<&'static str> {
        let language = self.language(schema);
        let hides = language.dialect.reference_hides_siblings() && object.get("$ref").is_some();
        let counts = language.is_draft3 && !hides;
        ONLY_DRAFT3.into_iter().find(|keyword| counts && object.get(keyword).is_some())
    }

    /// The value of a keyword, if the schema has it and the keyword counts there.
    pub fn value(&self, schema: JsonNodeId, keyword: &str) -> Option<JsonNodeId> {
        let object = self.arena().object(schema)?;
        let value = object.get(keyword)?;
        let language = self.language(schema);
        language.keyword(keyword)?;
        let is_hidden = keyword != "$ref"
            && language.dialect.reference_hides_siblings()
            && object.get("$ref").is_some();
        (!is_hidden).then_some(value)
    }

    /// A string.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn text(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<&str>> {
        let Some(value) = self.value(schema, keyword) else {
            return Ok(None);
        };
        match self.arena().node(value) {
            JsonNode::String(text) => Ok(Some(text)),
            _ => Err(self.mistyped(schema, value, keyword, "a string")),
        }
    }

    /// A boolean.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn flag(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<bool>> {
        let Some(value) = self.value(schema, keyword) else {
            return Ok(None);
        };
        match self.arena().node(value) {
            JsonNode::Boolean(flag) => Ok(Some(*flag)),
            _ => Err(self.mistyped(schema, value, keyword, "true or false")),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn number(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<&Decimal>> {
        let Some(value) = self.value(schema, keyword) else {
            return Ok(None);
        };
        match self.arena().node(value) {
            JsonNode::Number(number) => Ok(Some(number)),
            _ => Err(self.mistyped(schema, value, keyword, "a number")),
        }
    }

    /// A number above zero.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn positive(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<&Decimal>> {
        match (self.number(schema, keyword)?, self.value(schema, keyword)) {
            (Some(number), Some(value)) if number.is_zero() || number.is_negative() => {
                Err(self.mistyped(schema, value, keyword, "a number above zero"))
            }
            (number, _) => Ok(number),
        }
    }

    /// An integer that is not negative; `2.0` is one. What passes `u32` is its greatest value.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn count(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<u32>> {
        let Some(value) = self.value(schema, keyword) else {
            return Ok(None);
        };
        match self.arena().node(value) {
            JsonNode::Number(number) if number.is_integer() && !number.is_negative() => {
                Ok(Some(number.to_u32().unwrap_or(u32::MAX)))
            }
            _ => Err(self.mistyped(schema, value, keyword, "an integer that is not negative")),
        }
    }

    /// Strings, in document order.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn names(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<Vec<&str>>> {
        match self.value(schema, keyword) {
            Some(value) => self.strings(schema, value, keyword).map(Some),
            None => Ok(None),
        }
    }

    fn strings(&self, schema: JsonNodeId, value: JsonNodeId, keyword: &str) -> Result<Vec<&str>> {
        let Some(items) = self.arena().node(value).as_array() else {
            return Err(self.mistyped(schema, value, keyword, "an array of strings"));
        };
        let text = |&item: &JsonNodeId| {
            let text = self.arena().node(item).as_str();
            text.ok_or_else(|| self.mistyped(schema, item, keyword, "a string"))
        };
        items.iter().map(text).collect()
    }

    /// Values of any kind.
    ///
    /// # Errors
    /// Invalid where the value is no array.
    pub fn values(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<&[JsonNodeId]>> {
        let Some(value) = self.value(schema, keyword) else {
            return Ok(None);
        };
        let items = self.arena().node(value).as_array();
        items.ok_or_else(|| self.mistyped(schema, value, keyword, "an array")).map(Some)
    }

    /// A schema.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn subschema(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<JsonNodeId>> {
        match self.value(schema, keyword) {
            Some(value) => self.checked(schema, value, keyword).map(Some),
            None => Ok(None),
        }
    }

    /// Schemas, in document order.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn subschemas(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<&[JsonNodeId]>> {
        let items = self.values(schema, keyword)?;
        for &item in items.unwrap_or_default() {
            self.checked(schema, item, keyword)?;
        }
        Ok(items)
    }

    /// Schemas by name, in document order.
    ///
    /// # Errors
    /// Invalid where the value is something else.
    pub fn named(&self, schema: JsonNodeId, keyword: &str) -> Result<Option<&Object>> {
        let Some(value) = self.value(schema, keyword) else {
            return Ok(None);
        };
        let Some(object) = self.arena().object(value) else {
            return Err(self.mistyped(schema, value, keyword, "an object of schemas"));
        };
        for (_, value) in object.iter() {
            self.checked(schema, value, keyword)?;
        }
        Ok(Some(object))
    }

    fn checked(&self, schema: JsonNodeId, value: JsonNodeId, keyword: &str) -> Result<JsonNodeId> {
        match self.arena().node(value) {
            JsonNode::Object(_) | JsonNode::Boolean(_) => Ok(value),
            _ => Err(self.mistyped(
                schema,
                value,
                keyword,
                "a schema, that is an object or a boolean",
            )),
        }
    }

    pub(super) fn only_draft3(&self, schema: JsonNodeId, keyword: &str) -> Error {
        let message = "the keyword has this form in draft 3 only; rewrite the schema in draft-04 or \
                       later";
        self.fault(SchemaFault::Unsupported, schema, keyword, message)
    }

    /// The error for a value, of a keyword or in one, that has a wrong type.
    fn mistyped(
        &self,
        schema: JsonNodeId,
        value: JsonNodeId,
        keyword: &str,
        expected: &str,
    ) -> Error {
        self.mistyped_with_hint(schema, value, keyword, expected, "")
    }

    /// [`Self::mistyped`], with what was probably meant behind it.
    fn mistyped_with_hint(
        &self,
        schema: JsonNodeId,
        value: JsonNodeId,
        keyword: &str,
        expected: &str,
        hint: &str,
    ) -> Error {
        let found = match self.arena().node(value) {
            JsonNode::Number(number) => number.abbreviated(),
            JsonNode::String(text) if text.chars().count() <= 40 => format!("{text:?}"),
            JsonNode::Boolean(flag) => flag.to_string(),
            other => other.kind().to_owned(),
        };
        let place = match self.arena().get(schema, keyword) {
            Some(whole) if whole != value => {
                let (whole, value) = (self.arena().pointer(whole), self.arena().pointer(value));
                format!("at {}: ", &value[whole.len()..])
            }
            _ => String::new(),
        };
        let message = format!("{place}expected {expected}; found {found}{hint}");
        self.fault(SchemaFault::Invalid, schema, keyword, message)
    }
}
