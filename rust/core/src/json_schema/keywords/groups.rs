//! What dialects spell by several keywords, or in several ways: types, bounds, items, dependencies.

use crate::error::Result;
use crate::json_schema::decimal::Decimal;
use crate::json_schema::dialect::Dialect;
use crate::json_schema::resolve::{Schemas, name_like};
use crate::json_schema::types::{NamedType, Types};
use crate::json_schema::value::{JsonNode, JsonNodeId, Object};

/// A bound of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatedBound<'a> {
    /// The bound.
    pub value: &'a Decimal,
    /// Whether the bound itself is left out.
    pub is_exclusive: bool,
    /// The keyword that gives it.
    pub keyword: &'static str,
}

/// The schemas of items.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Items<'a> {
    /// Those of the first items, one each.
    pub first: &'a [JsonNodeId],
    /// That of all others.
    pub others: Option<JsonNodeId>,
}

/// What the presence of a name asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dependency<'a> {
    /// Other names.
    Names(Vec<&'a str>),
    /// That the object is valid under a schema.
    Schema(JsonNodeId),
}

/// The name that another language has another word for, or spells otherwise.
fn meant_type(name: &str) -> Option<&'static str> {
    match name.to_ascii_lowercase().as_str() {
        "none" | "nil" | "nonetype" | "undefined" => Some("null"),
        "bool" => Some("boolean"),
        "int" | "int32" | "int64" | "long" | "bigint" => Some("integer"),
        "float" | "double" | "decimal" => Some("number"),
        "str" | "date" | "datetime" | "uuid" => Some("string"),
        "list" | "tuple" => Some("array"),
        "dict" | "mapping" => Some("object"),
        _ => name_like(name, Types::NAMES.into_iter()),
    }
}

impl Schemas {
    /// The types that `type` lists; in OpenAPI 3.0 with null where `nullable` is true.
    ///
    /// # Errors
    /// Invalid where the value is neither a name of a type nor an array of such, or `nullable` no
    /// boolean.
    pub fn types(&self, schema: JsonNodeId) -> Result<Option<Types>> {
        let Some(value) = self.value(schema, "type") else {
            return Ok(None);
        };
        let items = match self.arena().node(value) {
            JsonNode::Array(items) => items,
            _ => std::slice::from_ref(&value),
        };
        let mut types = Types::default();
        for &item in items {
            match self.arena().node(item) {
                JsonNode::String(name) => match Types::bit(name) {
                    Some(bit) => types.0 |= bit,
                    None if **name == *"any" && self.language(schema).is_draft3 => {
                        types.0 = u8::MAX
                    }
                    None => {
                        let expected = format!("one of {}", Types::NAMES.join(", "));
                        let hint = meant_type(name)
                            .map(|meant| format!("; did you mean {meant:?}?"))
                            .unwrap_or_default();
                        return Err(self.mistyped_with_hint(schema, item, "type", &expected, &hint));
                    }
                },
                JsonNode::Object(_) if self.language(schema).is_draft3 => {
                    return Err(self.only_draft3(schema, "type"));
                }
                _ => return Err(self.mistyped(schema, item, "type", "the name of a type")),
            }
        }
        if self.flag(schema, "nullable")? == Some(true) {
            types.0 |= 1 << NamedType::Null as u8;
        }
        Ok(Some(types))
    }

    /// The names that an object must have: those of `required`, and in draft 3 those of `properties`
    /// whose schemas say `"required": true`. In later dialects a boolean says nothing.
    ///
    /// # Errors
    /// Invalid where the value is neither an array of strings nor a boolean.
    pub fn required(&self, schema: JsonNodeId) -> Result<Option<Vec<&str>>> {
        let value = self.value(schema, "required");
        let is_flag = |value| matches!(self.arena().node(value), JsonNode::Boolean(_));
        let names = match value {
            Some(value) if is_flag(value) => None,
            _ => self.names(schema, "required")?,
        };
        if !self.language(schema).is_draft3 {
            return Ok(names);
        }
        let is_required = |&(_, member): &(&str, JsonNodeId)| {
            let value = self.value(member, "required");
            value.is_some_and(|value| *self.arena().node(value) == JsonNode::Boolean(true))
        };
        let properties = self.named(schema, "properties")?.into_iter().flat_map(Object::iter);
        let flagged: Vec<&str> = properties.filter(is_required).map(|(name, _)| name).collect();
        match names {
            None if flagged.is_empty() => Ok(None),
            names => Ok(Some([names.unwrap_or_default(), flagged].concat())),
        }
    }

    /// The lower bounds: `minimum`, `exclusiveMinimum`.
    ///
    /// # Errors
    /// Invalid where a value has a wrong type for the dialect.
    pub fn lower_bounds(&self, schema: JsonNodeId) -> Result<Vec<StatedBound<'_>>> {
        self.bounds(schema, "minimum", "exclusiveMinimum")
    }

    /// The upper bounds: `maximum`, `exclusiveMaximum`.
    ///
    /// # Errors
    /// Invalid where a value has a wrong type for the dialect.
    pub fn upper_bounds(&self, schema: JsonNodeId) -> Result<Vec<StatedBound<'_>>> {
        self.bounds(schema, "maximum", "exclusiveMaximum")
    }

    /// Draft 4 has a boolean for an exclusive bound, later dialects a number. Where no dialect is
    /// named, each is understood.
    fn bounds(
        &self,
        schema: JsonNodeId,
        keyword: &'static str,
        exclusive: &'static str,
    ) -> Result<Vec<StatedBound<'_>>> {
        let language = self.language(schema);
        let mut bounds = Vec::new();
        let mut is_exclusive = false;
        if let Some(value) = self.value(schema, exclusive) {
            let has_booleans = language.dialect.has_boolean_bounds();
            let may_be_boolean = has_booleans || !language.is_declared;
            match self.arena().node(value) {
                JsonNode::Boolean(flag) if may_be_boolean => is_exclusive = *flag,
                JsonNode::Boolean(_) => {
                    let expected = "a number; true and false are of draft-04, whose $schema is \
                                    \"http://json-schema.org/draft-04/schema#\"";
                    return Err(self.mistyped(schema, value, exclusive, expected));
                }
                JsonNode::Number(value) if !has_booleans => {
                    bounds.push(StatedBound { value, is_exclusive: true, keyword: exclusive });
                }
                JsonNode::Number(_) => {
                    let expected = "true or false; numbers are of draft-06 and later";
                    return Err(self.mistyped(schema, value, exclusive, expected));
                }
                _ => return Err(self.mistyped(schema, value, exclusive, "a number")),
            }
        }
        if let Some(value) = self.number(schema, keyword)? {
            bounds.push(StatedBound { value, is_exclusive, keyword });
        }
        Ok(bounds)
    }

    /// The schemas of items, whatever the dialect's keywords for them. Where no dialect is named, an
    /// array in `items` is understood as `prefixItems`.
    ///
    /// # Errors
    /// Invalid where a value has a wrong type for the dialect.
    pub fn items(&self, schema: JsonNodeId) -> Result<Items<'_>> {
        let language = self.language(schema);
        let Some(value) = self.value(schema, "items") else {
            let first = self.subschemas(schema, "prefixItems")?.unwrap_or_default();
            return Ok(Items { first, others: None });
        };
        let JsonNode::Array(items) = self.arena().node(value) else {
            let first = self.subschemas(schema, "prefixItems")?.unwrap_or_default();
            return Ok(Items { first, others: Some(self.checked(schema, value, "items")?) });
        };
        let is_2020 = language.dialect == Dialect::Draft2020;
        let has_both = is_2020 && self.value(schema, "prefixItems").is_some();
        if has_both || is_2020 && language.is_declared {
            let expected =
                "a schema; schemas of the first items stand in prefixItems since 2020-12";
            return Err(self.mistyped(schema, value, "items", expected));
        }
        for &item in items {
            self.checked(schema, item, "items")?;
        }
        let others = match is_2020 {
            true => self.arena().get(schema, "additionalItems"),
            false => self.value(schema, "additionalItems"),
        };
        let others = others.map(|value| self.checked(schema, value, "additionalItems"));
        Ok(Items { first: items, others: others.transpose()? })
    }

    /// What the presence of names asks for, by `dependencies`, `dependentRequired` and
    /// `dependentSchemas`, with the keyword.
    ///
    /// # Errors
    /// Invalid where a value has a wrong type.
    pub fn dependencies(
        &self,
        schema: JsonNodeId,
    ) -> Result<Vec<(&str, Dependency<'_>, &'static str)>> {
        let mut all = Vec::new();
        for keyword in ["dependencies", "dependentRequired", "dependentSchemas"] {
            let Some(value) = self.value(schema, keyword) else {
                continue;
            };
            let Some(object) = self.arena().object(value) else {
                return Err(self.mistyped(schema, value, keyword, "an object"));
            };
            for (name, value) in object.iter() {
                let dependency = match self.arena().node(value) {
                    JsonNode::Object(_) | JsonNode::Boolean(_)
                        if keyword != "dependentRequired" =>
                    {
                        Dependency::Schema(value)
                    }
                    JsonNode::Array(_) if keyword != "dependentSchemas" => {
                        Dependency::Names(self.strings(schema, value, keyword)?)
                    }
                    JsonNode::String(other) if keyword == "dependencies" => {
                        Dependency::Names(vec![other])
                    }
                    _ => {
                        let expected = match keyword {
                            "dependencies" => "an array of strings, or a schema",
                            "dependentRequired" => "an array of strings",
                            _ => "a schema, that is an object or a boolean",
                        };
                        return Err(self.mistyped(schema, value, keyword, expected));
                    }
                };
                all.push((name, dependency, keyword));
            }
        }
        Ok(all)
    }
}
