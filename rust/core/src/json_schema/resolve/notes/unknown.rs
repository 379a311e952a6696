//! Notes on names that are no keywords, and on a root of such names: what was passed may be no schema.

use super::{Note, NoteLevel, NoteText, info, warning};
use crate::json_schema::dialect::{Holds, Keyword, Role};
use crate::json_schema::resolve::Schemas;
use crate::json_schema::resolve::spelling::keyword_like;
use crate::json_schema::types::Types;
use crate::json_schema::value::{JsonNode, JsonNodeId, Object};
use std::borrow::Cow;

/// What words mean that other programs or older drafts know, and what to write.
fn of_others(name: &str) -> Option<&'static str> {
    Some(match name {
        "disallow" => "it is of draft 3, and is not enforced; write not",
        "divisibleBy" => "it is of draft 3, and is not enforced; write multipleOf",
        "extends" => "it is of draft 3, and is not enforced; write allOf",
        "min" | "minValue" => {
            "no dialect has this keyword, so it is not enforced; write minimum, minLength or minItems"
        }
        "max" | "maxValue" => {
            "no dialect has this keyword, so it is not enforced; write maximum, maxLength or maxItems"
        }
        "regex" | "regexp" => "no dialect has this keyword, so it is not enforced; write pattern",
        "x-guidance" => {
            "these are options of llguidance, and none of them is read; pass what they ask for as \
             options: whitespace, separators, additional_properties"
        }
        _ => return None,
    })
}

/// Keywords under which a schema often stands in what is passed instead of it.
const WRAPPERS: [&str; 6] =
    ["schema", "json_schema", "parameters", "input_schema", "inputSchema", "function"];

impl Schemas {
    /// The note on a name that is no keyword.
    pub(super) fn on_unknown(
        &self,
        schema: JsonNodeId,
        object: &Object,
        name: &str,
        value: JsonNodeId,
    ) -> NoteText {
        let node = self.arena().node(value);
        if let Some(message) = of_others(name) {
            return warning(message);
        }
        if name == "propertyOrdering" {
            return self.on_ordering(schema, node);
        }
        if name.starts_with("x-") {
            return info("the keyword is an extension, and says nothing");
        }
        let fits = |keyword: &'static Keyword| {
            let is_long = name.len() > 4 || !matches!(keyword.name, "const" | "default");
            is_long && object.get(keyword.name).is_none() && self.fits(keyword, node)
        };
        if let Some(keyword) = keyword_like(name, fits) {
            let meant = format!("did you mean {:?}?", keyword.name);
            return match keyword.role {
                Role::Constrains => {
                    warning(format!("no dialect has this keyword, so it is not enforced; {meant}"))
                }
                Role::Structure | Role::Annotates => {
                    info(format!("no dialect has this keyword; {meant}"))
                }
            };
        }
        let types = self.types(schema).ok().flatten();
        let may_be_object = types.is_none_or(|types| types.has("object"));
        let is_wrapper = types.is_none() && WRAPPERS.contains(&name);
        if may_be_object && !is_wrapper && !self.is_walked(value) && self.is_plainly_a_schema(value)
        {
            return warning(
                "no dialect has this keyword, so it is not enforced; its value is a schema: members \
                 of objects stand in properties",
            );
        }
        info("no dialect has this keyword; it says nothing by itself")
    }

    /// The note on `propertyOrdering`, which Gemini's schemas have.
    fn on_ordering(&self, schema: JsonNodeId, value: &JsonNode) -> NoteText {
        let names = value.as_array().unwrap_or_default().iter();
        let names = names.map(|&name| self.arena().node(name).as_str());
        let properties = self.named(schema, "properties").ok().flatten();
        let known = properties.into_iter().flat_map(Object::iter).map(|(name, _)| Some(name));
        match names.eq(known) {
            true => info("no dialect has this keyword; properties says the same order"),
            false => warning(
                "no dialect has this keyword, so it is not enforced: names stand in the order of \
                 properties; sort them as they are to be written, or pass key_order=\"any\"",
            ),
        }
    }

    /// Whether a value is of a type that a keyword may have.
    fn fits(&self, keyword: &Keyword, value: &JsonNode) -> bool {
        match (keyword.holds, value) {
            (Holds::Schema, value) => matches!(value, JsonNode::Object(_) | JsonNode::Boolean(_)),
            (Holds::Array, value) => matches!(value, JsonNode::Array(_)),
            (Holds::Object, value) => matches!(value, JsonNode::Object(_)),
            (Holds::SchemaOrArray, value) => {
                matches!(value, JsonNode::Object(_) | JsonNode::Array(_) | JsonNode::Boolean(_))
            }
            (Holds::NoSchema, value) => match keyword.name {
                "const" | "default" | "example" => true,
                "type" => self.names_types(value),
                "enum" | "required" | "examples" => matches!(value, JsonNode::Array(_)),
                "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" | "nullable"
                | "$recursiveAnchor" => matches!(value, JsonNode::Boolean(_)),
                "dependentRequired" | "$vocabulary" | "discriminator" | "externalDocs" | "xml" => {
                    matches!(value, JsonNode::Object(_))
                }
                "exclusiveMinimum" | "exclusiveMaximum" => {
                    matches!(value, JsonNode::Number(_) | JsonNode::Boolean(_))
                }
                "minimum" | "maximum" | "multipleOf" => matches!(value, JsonNode::Number(_)),
                name if name.starts_with("min") || name.starts_with("max") => {
                    matches!(value, JsonNode::Number(_))
                }
                _ => matches!(value, JsonNode::String(_)),
            },
        }
    }

    fn names_types(&self, value: &JsonNode) -> bool {
        let is_type =
            |node: &JsonNode| node.as_str().is_some_and(|name| Types::NAMES.contains(&name));
        match value {
            JsonNode::Array(items) => items.iter().all(|&item| is_type(self.arena().node(item))),
            other => is_type(other),
        }
    }

    fn is_plainly_a_schema(&self, value: JsonNodeId) -> bool {
        let at = |name| self.arena().get(value, name).map(|value| self.arena().node(value));
        at("type").is_some_and(|types| self.names_types(types))
            || at("$ref").is_some_and(|reference| matches!(reference, JsonNode::String(_)))
    }

    /// The note on a root that constrains nothing: no keyword of it is without a note.
    pub(in crate::json_schema) fn note_on_root(&self, notes: &[Note]) -> Option<Note> {
        let root = self.root();
        let object = self.arena().object(root)?;
        let is_noted = |value| notes.iter().any(|note| note.place == value);
        let mut unknown: Vec<&str> = Vec::new();
        for (name, value) in object.iter() {
            match Keyword::named(name) {
                Some(keyword) if keyword.role != Role::Constrains => {}
                Some(_) if !is_noted(value) => return None,
                Some(_) => {}
                None if name.starts_with("x-") => {}
                None => unknown.push(name),
            }
        }
        let is_misspelt = notes.iter().any(|note| {
            let is_of_root = self.arena().parent(note.place) == Some(root);
            is_of_root
                && note.level == NoteLevel::Warning
                && Keyword::named(&note.keyword).is_none()
        });
        let defined = ["$defs", "definitions"].into_iter().find_map(|keyword| {
            let name = self.named(root, keyword).ok()??.name(0)?;
            Some(format!(
                "#/{keyword}/{}",
                name.replace('~', "~0").replace('/', "~1").replace('%', "%25")
            ))
        });
        let wrapped = WRAPPERS.into_iter().find(|name| {
            object.get(name).is_some_and(|value| self.arena().object(value).is_some())
        });
        let message: Cow<'static, str> = if is_misspelt {
            "no keyword of the schema constrains anything, so any JSON value is accepted".into()
        } else if let Some(reference) = defined {
            format!(
                "the schema only defines others, so any JSON value is accepted; say which is meant, \
                 as {{\"$ref\": {reference:?}}}"
            )
            .into()
        } else if unknown.is_empty() {
            "the schema has no keyword that constrains anything, so any JSON value is accepted; for \
             any object write {\"type\": \"object\"}"
                .into()
        } else {
            let few: Vec<String> = unknown.iter().take(3).map(|name| format!("{name:?}")).collect();
            let mend = match wrapped {
                _ if object.get("openapi").is_some() => {
                    "pass {\"$ref\": \"openapi.json#/components/schemas/...\"} with \
                     resources={\"openapi.json\": ...}"
                        .to_owned()
                }
                Some(name) => format!("pass what stands under {name:?}"),
                None => {
                    "pass a schema of it, such as {\"properties\": {...}}, or a type".to_owned()
                }
            };
            format!(
                "this looks like a document, not like a schema: {} {}, and nothing else \
                 constrains, so any JSON value is accepted; {mend}",
                few.join(", "),
                if few.len() == 1 { "is no keyword" } else { "are no keywords" }
            )
            .into()
        };
        Some(Note { place: root, keyword: Box::default(), level: NoteLevel::Warning, message })
    }
}
