//! Which members a closed object may have: those that its schemas describe or ask for.

use super::atoms::{Atom, Branch, SchemaId, SchemaKey, Type};
use super::choice::Choice;
use super::converter::Converter;
use super::formula::FormulaId;
use super::members::BranchUse;
use crate::error::Result;

impl Converter<'_> {
    /// The formula of objects that have no members but those that some schemas name, where some of their
    /// branches are taken; itself where they name none.
    pub(super) fn closed(
        &mut self,
        conditions: &[(SchemaId, bool)],
        formula: FormulaId,
        choice: &Choice,
    ) -> Result<FormulaId> {
        if formula == FormulaId::FALSE {
            return Ok(formula);
        }
        let mut branches = self.closing_branches(conditions, choice)?;
        if branches.is_empty() {
            return Ok(formula);
        }
        for &(schema, _) in conditions.iter().filter(|condition| condition.1) {
            branches.extend(self.listing_branches(schema, choice)?);
            branches.extend(self.asking_branches(schema, choice)?);
        }
        let owner = self.schema_keys.intern(SchemaKey::Closed);
        branches.sort_unstable();
        branches.dedup();
        let formula = self.without_names(formula, owner, &branches)?;
        let only = self.formulas.literal(Atom::UnevaluatedProperties(owner, branches.into()));
        Ok(self.formulas.and([formula, only]))
    }

    /// The schemas that describe the members of a closed object.
    pub(super) fn closing_branches(
        &mut self,
        conditions: &[(SchemaId, bool)],
        choice: &Choice,
    ) -> Result<Vec<Branch>> {
        let mut branches = Vec::new();
        for &(schema, _) in conditions.iter().filter(|condition| condition.1) {
            branches.extend(self.describing_branches(schema, choice)?);
        }
        Ok(branches)
    }

    /// The schemas that describe members, each with the condition under which they are members.
    fn describing_branches(&mut self, schema: SchemaId, choice: &Choice) -> Result<Box<[Branch]>> {
        self.branches_where(schema, Type::Object, (choice, BranchUse::Members), |this, _, node| {
            this.evaluates_members(node, true)
        })
    }

    /// The schemas that list the values that satisfy them, likewise.
    fn listing_branches(&mut self, schema: SchemaId, choice: &Choice) -> Result<Box<[Branch]>> {
        self.branches_where(schema, Type::Object, (choice, BranchUse::Lists), |this, _, node| {
            Ok(this.lists_values(node))
        })
    }

    /// The schemas that ask for members, likewise.
    fn asking_branches(&mut self, schema: SchemaId, choice: &Choice) -> Result<Box<[Branch]>> {
        let schemas = self.schemas;
        self.branches_where(schema, Type::Object, (choice, BranchUse::Names), |this, _, node| {
            Ok(!this.lists_values(node)
                && (schemas.required(node)?.is_some() || !schemas.dependencies(node)?.is_empty()))
        })
    }

    /// Whether neither a schema nor those within it describe members or list values: `required` alone, as a rule.
    pub(super) fn only_asks(&mut self, schema: SchemaId) -> Result<bool> {
        if let Some(&known) = self.only_ask.get(&schema) {
            return Ok(known);
        }
        let none = Choice::default();
        let only_asks = self.describing_branches(schema, &none)?.is_empty()
            && self.listing_branches(schema, &none)?.is_empty();
        self.only_ask.insert(schema, only_asks);
        Ok(only_asks)
    }
}
