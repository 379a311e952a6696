//! Formulas of values that are given: `const`, `enum`.

use super::atoms::{Atom, SchemaId, Type};
use super::converter::Converter;
use super::formula::FormulaId;
use super::value::{JsonNode, JsonNodeId};
use crate::error::Result;

impl Converter<'_> {
    /// That a value is one of those at some places, all of a type.
    pub(super) fn one_of_values(&mut self, values: &[JsonNodeId], kind: Type) -> Result<FormulaId> {
        self.spend(values.len())?;
        Ok(match kind {
            Type::Null => FormulaId::of(!values.is_empty()),
            Type::Boolean => {
                let truth = self.formulas.literal(Atom::True);
                let falsehood = self.formulas.not(truth);
                let literals = values.iter().map(|&value| match self.node(value) {
                    JsonNode::Boolean(true) => truth,
                    _ => falsehood,
                });
                let literals: Vec<FormulaId> = literals.collect();
                self.formulas.or(literals)
            }
            Type::String => {
                let texts = values.iter().filter_map(|&value| match self.node(value) {
                    JsonNode::String(text) => Some(text.clone()),
                    _ => None,
                });
                self.one_of_texts(texts.collect())
            }
            Type::Number => {
                let decimals = values.iter().filter_map(|&value| match self.node(value) {
                    JsonNode::Number(decimal) => Some(decimal.clone()),
                    _ => None,
                });
                self.one_of_decimals(decimals.collect())
            }
            Type::Array | Type::Object => {
                let mut formulas = Vec::with_capacity(values.len());
                for &value in values {
                    let constant = self.constant(value);
                    formulas.push(self.type_formula(constant, kind)?);
                }
                self.formulas.or(formulas)
            }
        })
    }

    pub(super) fn one_of_texts(&mut self, mut texts: Vec<Box<str>>) -> FormulaId {
        texts.sort_unstable();
        texts.dedup();
        if texts.is_empty() {
            return FormulaId::FALSE;
        }
        let texts = self.texts.intern(texts.into());
        self.formulas.literal(Atom::Texts(texts))
    }

    pub(super) fn one_of_decimals(
        &mut self,
        mut decimals: Vec<super::decimal::Decimal>,
    ) -> FormulaId {
        decimals.sort_unstable();
        decimals.dedup();
        if decimals.is_empty() {
            return FormulaId::FALSE;
        }
        let decimals = self.decimal_sets.intern(decimals.into());
        self.formulas.literal(Atom::Decimals(decimals))
    }

    /// The formula of a value that is equal to the one at a place.
    pub(super) fn build_constant(
        &mut self,
        schema: SchemaId,
        node: JsonNodeId,
        kind: Type,
    ) -> Result<FormulaId> {
        if self.type_at(node) != kind {
            return Ok(FormulaId::FALSE);
        }
        match self.node(node) {
            JsonNode::Object(object) => {
                let mut parts = vec![self.formulas.literal(Atom::Properties(schema))];
                for (name, _) in object.iter() {
                    let name = self.name(name);
                    parts.push(self.formulas.literal(Atom::Required(name)));
                }
                self.spend(parts.len())?;
                Ok(self.formulas.and(parts))
            }
            JsonNode::Array(items) => {
                let count = items.len() as u32;
                let least = self.at_least(Atom::AtLeastItems, count);
                let more = self.at_least(Atom::AtLeastItems, count + 1);
                let parts =
                    [self.formulas.literal(Atom::Items(schema)), least, self.formulas.not(more)];
                Ok(self.formulas.and(parts))
            }
            _ => self.one_of_values(&[node], kind),
        }
    }
}
