//! Which schemas a value is of: for explanations, and for the errors of limits.

use super::atoms::{SchemaId, SchemaKey, ValueId};
use super::converter::{Converter, Doing};
use super::value::JsonNodeId;
use crate::error::{Error, Result};

/// References that are followed to the schema that says something.
const MOST_REFERENCES: usize = 64;

/// Keywords beside a `$ref` that say nothing about a value.
const ANNOTATIONS: [&str; 13] = [
    "$schema",
    "$id",
    "$anchor",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
];

impl Converter<'_> {
    /// Notes of which schemas a value is; `conditions` has also those that it does not satisfy.
    pub(super) fn note_asked(&mut self, value: ValueId, conditions: &[(SchemaId, bool)]) {
        let asked = conditions.iter().filter(|condition| condition.1);
        self.asked.extend(asked.map(|&(schema, _)| (value, schema)));
    }

    /// The pointer of a schema, or of the one that it refers to and says nothing beside; `None` of what
    /// stands nowhere.
    pub(super) fn saying(&self, schema: SchemaId) -> Result<Option<JsonNodeId>> {
        let mut node = match self.key(schema) {
            SchemaKey::Schema(node, _) => node,
            SchemaKey::Constant(node) => return Ok(Some(node)),
            SchemaKey::Truth(_) | SchemaKey::Closed => return Ok(None),
        };
        for target in self.passed_from(node)? {
            node = target;
        }
        Ok(Some(node))
    }

    /// The schemas on the way from one that says nothing beside its reference to one that says something.
    pub(super) fn passed_from(&self, mut node: JsonNodeId) -> Result<Vec<JsonNodeId>> {
        let mut out = Vec::new();
        while out.len() < MOST_REFERENCES
            && let Some(object) = self.schemas.arena().object(node)
            && object.get("$ref").is_some()
        {
            let is_alone = self.hides_siblings(node)
                || object.iter().all(|(name, _)| name == "$ref" || ANNOTATIONS.contains(&name));
            match self.schemas.reference(node)? {
                Some(target) if is_alone => node = target,
                _ => break,
            }
            out.push(node);
        }
        Ok(out)
    }

    /// The JSON pointers of some schemas, in the order of the documents.
    pub(super) fn pointers(
        &self,
        schemas: impl IntoIterator<Item = SchemaId>,
    ) -> Result<Vec<String>> {
        let mut nodes = Vec::new();
        for schema in schemas {
            nodes.extend(self.saying(schema)?);
        }
        nodes.sort_unstable();
        nodes.dedup();
        self.spend(nodes.len())?;
        Ok(nodes.into_iter().map(|node| self.schemas.arena().pointer(node)).collect())
    }

    /// An error of a limit, or of a name that cannot be written, with the place of the schema that was being
    /// converted.
    pub(super) fn placed(&self, error: Error) -> Error {
        self.placed_at(self.doing, error)
    }

    /// Such an error, with the place of `doing`.
    pub(super) fn placed_at(&self, doing: Doing, error: Error) -> Error {
        let is_without_place = match &error {
            Error::Limit { .. } => true,
            Error::Schema { pointer, .. } => pointer.is_empty(),
            _ => false,
        };
        if !is_without_place {
            return error;
        }
        let schema = match doing {
            Doing::Nothing => None,
            Doing::Schema(schema) => Some(schema),
            Doing::Value(value) => {
                let asked = self.asked.iter().filter(|(of, _)| *of == value);
                asked.map(|&(_, schema)| schema).min()
            }
        };
        let node = schema.and_then(|schema| self.saying(schema).ok());
        let node = node.flatten();
        let pointer = node.map_or("#".into(), |node| self.schemas.arena().pointer(node));
        match error {
            Error::Limit { .. } if node.is_none() => error,
            Error::Limit { limit, value, message } => {
                Error::LimitInSchema { pointer, limit, value, message }
            }
            Error::Schema { kind, keyword, message, .. } => {
                Error::Schema { kind, pointer, keyword, message }
            }
            other => other,
        }
    }
}
