//! Conditions on a value that say the same.
//!
//! Alternatives often repeat a member with all that they say of it: an `id` of at most 64 characters in each of
//! 58 payment methods. As many conditions would be decided one by one; one of them stands for all.

use crate::error::Result;
use crate::json_schema::atoms::{SchemaId, SchemaKey, Type};
use crate::json_schema::converter::Converter;
use crate::json_schema::dialect::{Holds, KeywordVocabulary, Language};
use crate::json_schema::formula::FormulaId;
use crate::json_schema::resolve::Schemas;
use crate::json_schema::value::{JsonNode, JsonNodeId};
use rustc_hash::FxHashMap;

/// Schemas that are written with more bytes, without annotations, are not compared.
const LONGEST: usize = 4_096;
/// Nor are those that nest deeper.
const DEEPEST: usize = 32;

/// What a schema says.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Said {
    /// What it is written as, without annotations, in a resource.
    Written(String, JsonNodeId),
    /// What it asks of values that are no objects, where it takes no objects: of these a schema says more than a
    /// formula, as the order of their members.
    Asked([FormulaId; 6]),
}

impl Converter<'_> {
    /// The formula with one condition in the place of all that say the same; and the schemas that it still
    /// asks for.
    pub(super) fn with_equal_conditions(
        &mut self,
        mut formula: FormulaId,
        mut asked: Vec<SchemaId>,
    ) -> Result<(FormulaId, Vec<SchemaId>)> {
        for said in [Self::said_by_keywords, Self::said_by_formulas] {
            let mut first: FxHashMap<Said, SchemaId> = FxHashMap::default();
            let mut equal: FxHashMap<SchemaId, FormulaId> = FxHashMap::default();
            for &schema in &asked {
                let Some(said) = said(self, schema)? else { continue };
                let same = *first.entry(said).or_insert(schema);
                if same != schema {
                    equal.insert(schema, self.value(same));
                }
            }
            if !equal.is_empty() {
                asked.retain(|schema| !equal.contains_key(schema));
                formula = self.substitute(formula, &equal)?;
            }
        }
        Ok((formula, asked))
    }

    fn said_by_formulas(&mut self, schema: SchemaId) -> Result<Option<Said>> {
        let mut formulas = [FormulaId::FALSE; 6];
        for kind in Type::ALL {
            formulas[kind.index()] = self.type_formula(schema, kind)?;
        }
        let takes_objects = formulas[Type::Object.index()] != FormulaId::FALSE;
        Ok((!takes_objects).then_some(Said::Asked(formulas)))
    }

    fn said_by_keywords(&mut self, schema: SchemaId) -> Result<Option<Said>> {
        let SchemaKey::Schema(node, _) = self.key(schema) else { return Ok(None) };
        if self.has_dynamic {
            return Ok(None); // what a dynamic reference means depends on the way to it
        }
        let mut writer = SchemaWriter { schemas: self.schemas, text: String::new(), depth: 0 };
        let is_whole = writer.schema(node, self.schemas.language(node));
        let text = writer.text;
        self.spend(1 + text.len() / 16)?;
        let said = || Said::Written(text, self.schemas.resource(node));
        Ok(is_whole.then(said))
    }
}

/// Writes schemas without their annotations. What it returns is false where a schema is too long or too deep, or
/// has a base of its own.
struct SchemaWriter<'s> {
    schemas: &'s Schemas,
    text: String,
    depth: usize,
}

impl SchemaWriter<'_> {
    fn schema(&mut self, node: JsonNodeId, language: Language) -> bool {
        let JsonNode::Object(object) = self.schemas.arena().node(node) else {
            return self.value(node);
        };
        if object.get("$id").or_else(|| object.get("id")).is_some() {
            return false;
        }
        self.within('{', |writer| {
            object.iter().all(|(name, value)| {
                let keyword = language.keyword(name);
                if keyword.is_some_and(|keyword| keyword.vocabulary == KeywordVocabulary::MetaData)
                {
                    return true;
                }
                writer.string(name);
                writer.keyword(
                    value,
                    keyword.map_or(Holds::NoSchema, |keyword| keyword.holds),
                    language,
                )
            })
        })
    }

    fn keyword(&mut self, value: JsonNodeId, holds: Holds, language: Language) -> bool {
        match (self.schemas.arena().node(value), holds) {
            (JsonNode::Array(items), Holds::Array | Holds::SchemaOrArray) => {
                self.within('[', |writer| items.iter().all(|&item| writer.schema(item, language)))
            }
            (JsonNode::Object(members), Holds::Object) => self.within('(', |writer| {
                members.iter().all(|(name, value)| {
                    writer.string(name);
                    writer.schema(value, language)
                })
            }),
            (_, Holds::Schema | Holds::SchemaOrArray) => self.schema(value, language),
            _ => self.value(value),
        }
    }

    fn value(&mut self, node: JsonNodeId) -> bool {
        match self.schemas.arena().node(node) {
            JsonNode::String(string) => {
                self.string(string);
                self.text.len() <= LONGEST
            }
            JsonNode::Array(items) => {
                self.within('[', |writer| items.iter().all(|&item| writer.value(item)))
            }
            JsonNode::Object(members) => self.within('{', |writer| {
                members.iter().all(|(name, value)| {
                    writer.string(name);
                    writer.value(value)
                })
            }),
            scalar => {
                self.text.push_str(&format!("{scalar:?},"));
                self.text.len() <= LONGEST
            }
        }
    }

    /// What stands between brackets; of which kind the opening one tells.
    fn within(&mut self, bracket: char, inner: impl FnOnce(&mut Self) -> bool) -> bool {
        if self.depth == DEEPEST {
            return false;
        }
        self.text.push(bracket);
        self.depth += 1;
        let is_whole = inner(self);
        self.depth -= 1;
        self.text.push('.');
        is_whole && self.text.len() <= LONGEST
    }

    /// A string behind its length, so that nothing else can be taken for it.
    fn string(&mut self, string: &str) {
        self.text.push_str(&format!("{}:{string}", string.len()));
    }
}
