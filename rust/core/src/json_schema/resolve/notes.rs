//! Notes: parts of schemas that have no influence on what is valid, and what was probably meant.
//!
//! File: `unknown` (names that are no keywords: misspelt ones, and those of other programs and drafts).

mod unknown;

use super::Schemas;
use crate::budget::Budget;
use crate::error::Result;
use crate::json_schema::dialect::{Dialect, Keyword, Language, Role};
use crate::json_schema::types::Types;
use crate::json_schema::value::{JsonNode, JsonNodeId};
use std::borrow::Cow;

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteLevel {
    /// What the keyword says is no condition, or is met anyway.
    Info,
    /// A condition that is not enforced, or a keyword that was probably meant otherwise.
    Warning,
}

/// A part of a schema that has no influence on what is valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The value of the keyword; [`crate::json_schema::value::Arena::pointer`] has its pointer.
    pub place: JsonNodeId,
    /// The keyword.
    pub keyword: Box<str>,
    /// How much it matters.
    pub level: NoteLevel,
    /// Why it has no influence, and what to write.
    pub message: Cow<'static, str>,
}

/// The level and the message of a note.
pub(in crate::json_schema) type NoteText = (NoteLevel, Cow<'static, str>);

/// Whether a schema itself says something of the member of a name.
type Says = fn(&Schemas, JsonNodeId, &str) -> bool;

/// Schemas on the way to one whose `enum` or `const` is looked for.
const MOST_STEPS: usize = 16;

/// Schemas that are looked at for a `discriminator`, beside [`MOST_STEPS`] for each branch.
const MORE_STEPS: usize = 128;

fn info(message: impl Into<Cow<'static, str>>) -> NoteText {
    (NoteLevel::Info, message.into())
}

fn warning(message: impl Into<Cow<'static, str>>) -> NoteText {
    (NoteLevel::Warning, message.into())
}

/// The names of types that a keyword is about, and a word for them.
pub(in crate::json_schema) fn types_of(
    keyword: &str,
) -> Option<(&'static [&'static str], &'static str)> {
    Some(match keyword {
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => {
            (&["number", "integer"], "numbers")
        }
        "minLength" | "maxLength" | "pattern" | "format" => (&["string"], "strings"),
        "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems"
        | "contains" | "minContains" | "maxContains" | "unevaluatedItems" => (&["array"], "arrays"),
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "propertyNames"
        | "required"
        | "minProperties"
        | "maxProperties"
        | "dependencies"
        | "dependentRequired"
        | "dependentSchemas"
        | "unevaluatedProperties" => (&["object"], "objects"),
        _ => return None,
    })
}

impl Schemas {
    /// Notes on documents as a whole.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The notes on documents and on some schemas, each schema once.
    ///
    /// # Errors
    /// As [`Self::notes_on`]; those of the budget.
    pub fn all_notes(
        &self,
        schemas: impl IntoIterator<Item = JsonNodeId>,
        budget: &Budget,
    ) -> Result<Vec<Note>> {
        let mut schemas: Vec<JsonNodeId> = schemas.into_iter().collect();
        schemas.sort_unstable();
        schemas.dedup();
        let mut notes = self.notes.clone();
        budget.spend(notes.len())?;
        for schema in schemas {
            notes.extend(self.notes_on(schema, budget)?);
        }
        Ok(notes)
    }

    /// The keywords of a schema that have no influence on what is valid, in document order.
    ///
    /// # Errors
    /// Unsupported where a schema of draft 3 has a keyword that draft 4 replaced; those of the budget.
    pub fn notes_on(&self, schema: JsonNodeId, budget: &Budget) -> Result<Vec<Note>> {
        let Some(object) = self.arena().object(schema) else {
            return Ok(Vec::new());
        };
        let language = self.language(schema);
        let hides = language.dialect.reference_hides_siblings() && object.get("$ref").is_some();
        let mut notes = Vec::new();
        if let Some(keyword) = self.replaced_by_draft4(schema, object) {
            return Err(self.only_draft3(schema, keyword));
        }
        for (name, value) in object.iter() {
            budget.spend(1 + name.len())?;
            let remark = match Keyword::named(name) {
                None => Some(self.on_unknown(schema, object, name, value)),
                Some(keyword) => self.on_keyword(schema, language, hides, keyword, value),
            };
            if let Some((level, message)) = remark {
                notes.push(Note { place: value, keyword: name.into(), level, message });
            }
        }
        Ok(notes)
    }

    fn on_keyword(
        &self,
        schema: JsonNodeId,
        language: Language,
        hides: bool,
        keyword: &'static Keyword,
        value: JsonNodeId,
    ) -> Option<NoteText> {
        let level = match keyword.role {
            Role::Constrains => NoteLevel::Warning,
            Role::Structure | Role::Annotates => NoteLevel::Info,
        };
        match keyword.role {
            Role::Structure if language.counts(keyword) => None,
            Role::Annotates if keyword.is_in(language.dialect) || is_of_openapi(keyword) => {
                Some(self.on_annotation(schema, keyword, value))
            }
            _ if !keyword.is_in(language.dialect) => {
                self.on_other_dialect(schema, language, keyword, value)
            }
            _ if !language.has(keyword.vocabulary) => {
                Some((level, "the metaschema leaves out the vocabulary of the keyword".into()))
            }
            _ if hides && keyword.name == "nullable" => {
                self.on_effect(schema, language, keyword.name, value)
            }
            _ if hides && keyword.name != "$ref" => {
                // What the target says too is enforced.
                let target = self.reference(schema).ok().flatten();
                let same = target.and_then(|target| self.value(target, keyword.name));
                let is_same = same.is_some_and(|same| self.arena().equal(same, value));
                let level = if is_same { NoteLevel::Info } else { level };
                let message = match (is_same, level) {
                    (false, NoteLevel::Warning) => {
                        "$ref hides all keywords beside it, so it is not enforced; write both into \
                         allOf"
                    }
                    _ => "$ref hides all keywords beside it",
                };
                Some((level, format!("in {}, {message}", language.dialect.name()).into()))
            }
            _ => self.on_effect(schema, language, keyword.name, value),
        }
    }

    /// The notes on a keyword that is enforced.
    fn on_effect(
        &self,
        schema: JsonNodeId,
        language: Language,
        keyword: &'static str,
        value: JsonNodeId,
    ) -> Option<NoteText> {
        let node = self.arena().node(value);
        let lacks = |name: &str| self.value(schema, name).is_none();
        match (keyword, node) {
            ("required", JsonNode::Boolean(flag)) => {
                return (!language.is_draft3).then_some(match flag {
                    true => warning(
                        "a boolean is of draft 3, and is not enforced; list the name of this member \
                         in required of the object around it",
                    ),
                    false => info("a boolean is of draft 3, and false says nothing"),
                });
            }
            ("nullable", JsonNode::Boolean(true)) => return self.on_nullable(schema, language),
            ("nullable", _) => return None,
            ("then" | "else", _) if lacks("if") => {
                return Some(warning("it says nothing without if"));
            }
            ("if", _) if lacks("then") && lacks("else") => {
                return Some(info("it asks for nothing without then or else"));
            }
            ("minContains" | "maxContains", _) if lacks("contains") => {
                return Some(warning("it says nothing without contains"));
            }
            ("exclusiveMinimum", JsonNode::Boolean(true)) if lacks("minimum") => {
                return Some(warning("true says nothing without minimum"));
            }
            ("exclusiveMaximum", JsonNode::Boolean(true)) if lacks("maximum") => {
                return Some(warning("true says nothing without maximum"));
            }
            ("additionalItems", _) if !self.has_item_array(schema) => {
                return Some(info("it says nothing without an array of schemas in items"));
            }
            _ => {}
        }
        if keyword == "format" { None } else { self.on_other_types(schema, keyword, node) }
    }

    /// The note on a keyword for types that `type` excludes.
    pub(in crate::json_schema) fn on_other_types(
        &self,
        schema: JsonNodeId,
        keyword: &str,
        value: &JsonNode,
    ) -> Option<NoteText> {
        let (names, word) = types_of(keyword)?;
        let types = self.types(schema).ok().flatten()?;
        if names.iter().any(|name| types.has(name)) {
            return None;
        }
        let named: Vec<&str> = Types::NAMES.into_iter().filter(|name| types.has(name)).collect();
        let says_nothing = match value {
            JsonNode::Boolean(flag) => *flag != (keyword == "uniqueItems"),
            JsonNode::Array(items) => items.is_empty(),
            JsonNode::Object(object) => object.is_empty(),
            JsonNode::Number(number) => {
                number.is_zero() && keyword.starts_with("min") && keyword != "minimum"
            }
            JsonNode::String(_) | JsonNode::Null => false,
        };
        let message =
            format!("it is about {word}, and says nothing beside the type {}", named.join(", "));
        Some((if says_nothing { NoteLevel::Info } else { NoteLevel::Warning }, message.into()))
    }

    fn has_item_array(&self, schema: JsonNodeId) -> bool {
        let items = self.value(schema, "items").map(|items| self.arena().node(items));
        matches!(items, Some(JsonNode::Array(_)))
    }

    fn on_annotation(&self, schema: JsonNodeId, keyword: &Keyword, value: JsonNodeId) -> NoteText {
        match keyword.name {
            "discriminator" => self.on_discriminator(schema, value),
            "contentEncoding" | "contentSchema" => warning(
                "the keyword is an annotation, so what it says of the text is not enforced; look at \
                 the text after it is parsed",
            ),
            _ if is_of_openapi(keyword) => info("the keyword is an annotation of OpenAPI"),
            _ => info("the keyword is an annotation"),
        }
    }

    fn on_other_dialect(
        &self,
        schema: JsonNodeId,
        language: Language,
        keyword: &Keyword,
        value: JsonNodeId,
    ) -> Option<NoteText> {
        let node = self.arena().node(value);
        match keyword.name {
            "nullable" if *node == JsonNode::Boolean(true) => {
                return self.on_nullable(schema, language);
            }
            "nullable" => {
                return Some(info("the keyword is of openapi-3.0, and says nothing here"));
            }
            "additionalItems" if self.value(schema, "prefixItems").is_none() => {
                // Without `$schema`, it counts where items is an array.
                return match self.has_item_array(schema) {
                    true => self.on_other_types(schema, keyword.name, node),
                    false => Some(info("it says nothing without an array of schemas in items")),
                };
            }
            _ => {}
        }
        let dialects = keyword.dialects();
        let lacking = format!(
            "the dialect of the schema, {}, has no such keyword; it is of {dialects}",
            language.dialect.name()
        );
        Some(match (keyword.role, keyword.name) {
            (Role::Constrains, "additionalItems") => {
                warning(format!("{lacking}, and is not enforced; write items beside prefixItems"))
            }
            (Role::Constrains, _) => warning(format!(
                "{lacking}, and is not enforced; name a dialect that has it in $schema"
            )),
            _ => info(lacking),
        })
    }

    /// The note on `"nullable": true`.
    fn on_nullable(&self, schema: JsonNodeId, language: Language) -> Option<NoteText> {
        let is_openapi = language.dialect == Dialect::OpenApi30;
        let types = self.types(schema).ok().flatten();
        let lacks_null = self.lists_null(schema) == Some(false);
        match types {
            Some(_) if is_openapi && !lacks_null => None,
            _ if self.plainly_takes_null(schema) => {
                Some(info("the keyword is of openapi-3.0; null is allowed without it"))
            }
            Some(_) if is_openapi => Some(warning(
                "it is not enforced: enum stands beside it without null; list null in enum",
            )),
            Some(_) if lacks_null => Some(warning(
                "the keyword is of openapi-3.0, and is not enforced: null is refused; list null in \
                 enum, and pass dialect=\"openapi-3.0\" or add \"null\" to type",
            )),
            Some(_) => Some(warning(
                "the keyword is of openapi-3.0, and is not enforced: null is refused; pass \
                 dialect=\"openapi-3.0\", or add \"null\" to type",
            )),
            None => Some(warning(
                "it is not enforced: openapi-3.0 gives it a meaning beside type alone; write \
                 \"anyOf\": [{...}, {\"type\": \"null\"}]",
            )),
        }
    }

    /// Whether null is among the values that `enum` or `const` list, where there are any.
    fn lists_null(&self, schema: JsonNodeId) -> Option<bool> {
        let is_null = |value: JsonNodeId| *self.arena().node(value) == JsonNode::Null;
        let values = self.values(schema, "enum").ok().flatten();
        let listed = values.map(|values| values.iter().any(|&value| is_null(value)));
        match (listed, self.value(schema, "const").map(is_null)) {
            (Some(listed), Some(constant)) => Some(listed && constant),
            (listed, constant) => listed.or(constant),
        }
    }

    /// Whether null is allowed by what a schema and the branches of its unions say of types and values.
    fn plainly_takes_null(&self, schema: JsonNodeId) -> bool {
        let takes = |schema| {
            let types = self.types(schema).ok().flatten();
            match (types.map(|types| types.has("null")), self.lists_null(schema)) {
                (None, None) => None,
                (types, values) => Some(types.unwrap_or(true) && values.unwrap_or(true)),
            }
        };
        if let Some(takes) = takes(schema) {
            return takes;
        }
        let union = ["anyOf", "oneOf"]
            .into_iter()
            .find_map(|keyword| self.subschemas(schema, keyword).ok().flatten());
        let others = ["$ref", "allOf", "not", "if"];
        match union {
            Some(branches) => branches.iter().any(|&branch| takes(branch) == Some(true)),
            None => others.into_iter().all(|keyword| self.value(schema, keyword).is_none()),
        }
    }

    /// The note on a `discriminator`: whether each branch names its values by itself.
    fn on_discriminator(&self, schema: JsonNodeId, value: JsonNodeId) -> NoteText {
        let arena = self.arena();
        let name = arena.get(value, "propertyName").unwrap_or(value);
        let Some(name) = arena.node(name).as_str() else {
            return info("the keyword is an annotation of OpenAPI");
        };
        let branches = |keyword| self.values(schema, keyword).ok().flatten();
        let Some(branches) = branches("oneOf").or_else(|| branches("anyOf")) else {
            return warning(
                "it is not enforced: the keyword is an annotation of OpenAPI, and neither oneOf nor \
                 anyOf stands beside it; list the schemas in oneOf",
            );
        };
        let first_without = |says: Says| {
            let mut left = MORE_STEPS.saturating_add(MOST_STEPS.saturating_mul(branches.len()));
            let mut has = |branch| self.says_of_member(branch, (name, says), 0, &mut left);
            branches.iter().copied().find(|&branch| !has(branch))
        };
        if let Some(branch) = first_without(Self::lists_values) {
            return warning(format!(
                "it is not enforced: the keyword is an annotation of OpenAPI, and {} takes any value \
                 of {name:?}; write an enum or const there",
                arena.pointer(branch)
            ));
        }
        match first_without(Self::requires) {
            None => info(format!(
                "the keyword is an annotation of OpenAPI; each branch lists its values of {name:?}"
            )),
            Some(branch) => info(format!(
                "the keyword is an annotation of OpenAPI; each branch lists its values of {name:?}, but \
                 {} does not require it, so a text may leave it out, which readers that choose by it \
                 refuse (pydantic: union_tag_not_found); write it into required there",
                arena.pointer(branch)
            )),
        }
    }

    /// Whether a schema says something of a member, itself or where `$ref`, `allOf` and all
    /// branches of a union lead. A schema without objects has no such member.
    fn says_of_member(
        &self,
        schema: JsonNodeId,
        asked: (&str, Says),
        depth: usize,
        left: &mut usize,
    ) -> bool {
        if depth >= MOST_STEPS || *left == 0 {
            return false;
        }
        *left -= 1;
        if let Some(target) = self.reference(schema).ok().flatten() {
            return self.says_of_member(target, asked, depth + 1, left);
        }
        let types = self.types(schema).ok().flatten();
        if types.is_some_and(|types| !types.has("object")) {
            return true;
        }
        if self.value(schema, "enum").is_some() || self.value(schema, "const").is_some() {
            return true;
        }
        let (name, says) = asked;
        if says(self, schema, name) {
            return true;
        }
        let parts = self.subschemas(schema, "allOf").ok().flatten().unwrap_or_default();
        if parts.iter().any(|&part| self.says_of_member(part, asked, depth + 1, left)) {
            return true;
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(branches) = self.subschemas(schema, keyword).ok().flatten()
                && branches
                    .iter()
                    .all(|&branch| self.says_of_member(branch, asked, depth + 1, left))
            {
                return true;
            }
        }
        false
    }

    /// Whether a schema lists the values of a member.
    fn lists_values(&self, schema: JsonNodeId, name: &str) -> bool {
        let properties = self.named(schema, "properties").ok().flatten();
        let member = properties.and_then(|properties| properties.get(name));
        let member = member.map(|member| self.reference(member).ok().flatten().unwrap_or(member));
        let lists = |keyword| member.is_some_and(|member| self.value(member, keyword).is_some());
        lists("enum") || lists("const")
    }

    /// Whether a schema requires a member.
    fn requires(&self, schema: JsonNodeId, name: &str) -> bool {
        let required = self.value(schema, "required").map(|required| self.arena().node(required));
        let Some(JsonNode::Array(names)) = required else { return false };
        names.iter().any(|&of| self.arena().node(of).as_str() == Some(name))
    }
}

fn is_of_openapi(keyword: &Keyword) -> bool {
    keyword.first == Dialect::OpenApi30
}
