//! Keywords that speak of members, items and numbers, as atoms. Which names a closed object
//! may have is decided in [`alternatives`](super::alternatives).

use super::atoms::{Atom, Branch, DecimalId, SchemaId, SchemaKey, ScopeId, Type};
use super::choice::{Applied, Choice};
use super::converter::Converter;
use super::decimal::Decimal;
use super::formula::FormulaId;
use super::keywords::Dependency;
use super::value::{JsonNode, JsonNodeId};
use crate::error::{Error, Result};
use std::rc::Rc;

/// Required names of which each has an atom of its own.
const MANY_REQUIRED: usize = 16;

/// Items that `contains` counts.
const MOST_CONTAINED: u32 = 512;

/// `uniqueItems` is said by states for sets of used values where there are at most so many values, and
/// up to a greater number by one set that is kept while items are read.
const MOST_DISTINCT: usize = 12;
const MOST_KEPT: usize = 1_000;

/// What the branches of a schema are used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BranchUse {
    /// What `unevaluatedProperties` and `unevaluatedItems` leave over, as the standard has it.
    Evaluation,
    /// Members of a closed object. What an `if` asks for are members although it fails.
    Members,
    /// Names that a closed object may have besides. Where a schema only asks for members, it does not matter whether
    /// it holds.
    Names,
    /// Values of a closed object that are listed.
    Lists,
}

impl Converter<'_> {
    pub(super) fn object_atoms(
        &mut self,
        schema: SchemaId,
        node: JsonNodeId,
        scope: ScopeId,
        choice: &Choice,
        parts: &mut Vec<FormulaId>,
    ) -> Result<()> {
        let schemas = self.schemas;
        if self.says_properties(node)? {
            parts.push(self.formulas.literal(Atom::Properties(schema)));
        }
        if let Some(required) = schemas.required(node)? {
            if required.len() > MANY_REQUIRED {
                // One atom that does not change: the work for an object is linear in its names.
                parts.push(self.formulas.literal(Atom::RequiredAll(schema)));
            } else {
                for name in required {
                    let name = self.name(name);
                    parts.push(self.formulas.literal(Atom::Required(name)));
                }
            }
        }
        if let Some(least) = schemas.count(node, "minProperties")? {
            parts.push(self.at_least(Atom::AtLeastProperties, least));
        }
        if let Some(most) = schemas.count(node, "maxProperties")? {
            parts.push(self.at_most(Atom::AtLeastProperties, most));
        }
        if let Some(names) = schemas.subschema(node, "propertyNames")? {
            let names = self.child(names, scope);
            if !self.is_trivial(names) {
                parts.push(self.formulas.literal(Atom::Names(names)));
            }
        }
        for (name, dependency, _) in schemas.dependencies(node)? {
            let Dependency::Names(required) = dependency else { continue };
            let mut all = Vec::with_capacity(required.len());
            for required in required {
                let required = self.name(required);
                all.push(self.formulas.literal(Atom::Required(required)));
            }
            let name = self.name(name);
            let present = self.formulas.literal(Atom::Required(name));
            let absent = self.formulas.not(present);
            let all = self.formulas.and(all);
            parts.push(self.formulas.or([absent, all]));
        }
        if let Some(rest) = schemas.subschema(node, "unevaluatedProperties")? {
            let rest = self.child(rest, scope);
            if !self.is_trivial(rest) {
                let branches = self.branches(schema, Type::Object, choice)?;
                parts.push(self.formulas.literal(Atom::UnevaluatedProperties(schema, branches)));
            }
        }
        self.spend(parts.len())
    }

    /// Whether a schema evaluates members, as the standard calls it; `others` counts those that no other
    /// schema evaluates.
    pub(super) fn evaluates_members(&self, node: JsonNodeId, others: bool) -> Result<bool> {
        Ok(self.says_properties(node)?
            || others && self.schemas.subschema(node, "unevaluatedProperties")?.is_some())
    }

    /// Whether a schema restricts members by name.
    pub(super) fn says_properties(&self, node: JsonNodeId) -> Result<bool> {
        let schemas = self.schemas;
        Ok(schemas.named(node, "properties")?.is_some()
            || schemas.named(node, "patternProperties")?.is_some()
            || schemas.subschema(node, "additionalProperties")?.is_some())
    }

    /// Whether every value satisfies a schema, as far as is plain to see.
    pub(super) fn is_trivial(&self, schema: SchemaId) -> bool {
        match self.key(schema) {
            SchemaKey::Schema(node, _) => match self.node(node) {
                JsonNode::Boolean(truth) => *truth,
                JsonNode::Object(object) => object.is_empty(),
                _ => false,
            },
            SchemaKey::Constant(_) | SchemaKey::Truth(_) | SchemaKey::Closed => false,
        }
    }

    /// The schemas that may evaluate members or items for `unevaluated...` of a schema: each with the
    /// condition under which it is valid and so evaluates them, where some branches are taken.
    pub(super) fn branches(
        &mut self,
        schema: SchemaId,
        kind: Type,
        choice: &Choice,
    ) -> Result<Box<[Branch]>> {
        let schemas = self.schemas;
        self.branches_where(schema, kind, (choice, BranchUse::Evaluation), |this, branch, node| {
            Ok(match kind {
                Type::Object => this.evaluates_members(node, branch != schema)?,
                _ => {
                    this.says_items(node)?
                        || schemas.subschema(node, "contains")?.is_some()
                        || branch != schema
                            && schemas.subschema(node, "unevaluatedItems")?.is_some()
                }
            })
        })
    }

    /// Whether a schema lists the values that satisfy it.
    pub(super) fn lists_values(&self, node: JsonNodeId) -> bool {
        self.schemas.value(node, "const").is_some() || self.schemas.value(node, "enum").is_some()
    }

    /// The schemas of some kind that apply to a value, each with the condition under which it is
    /// valid.
    pub(super) fn branches_where(
        &mut self,
        schema: SchemaId,
        kind: Type,
        (choice, usage): (&Choice, BranchUse),
        is_wanted: impl Fn(&Self, SchemaId, JsonNodeId) -> Result<bool>,
    ) -> Result<Box<[Branch]>> {
        let mut out: Vec<Branch> = Vec::new();
        // With each whether it stands in an `if`.
        let mut work = vec![(schema, FormulaId::TRUE, false)];
        while let Some((branch, condition, is_asked)) = work.pop() {
            self.spend(1)?;
            if condition == FormulaId::FALSE {
                continue;
            }
            if let SchemaKey::Schema(node, _) = self.key(branch)
                && is_wanted(self, branch, node)?
            {
                out.push((condition, branch));
            }
            let applied = self.applied(branch, kind)?;
            let mut test = None;
            for &(child, how) in applied.iter() {
                if how == Applied::If {
                    test = Some(self.type_formula(child, kind)?);
                }
            }
            for &(child, how) in applied.iter() {
                let taken = choice.taken(branch, how);
                let is_asked = is_asked || how == Applied::If;
                let counts_always = match usage {
                    BranchUse::Evaluation | BranchUse::Lists => false,
                    BranchUse::Members => is_asked,
                    BranchUse::Names => is_asked || self.only_asks(child)?,
                };
                let more = match how {
                    _ if counts_always || taken == Some(child) => FormulaId::TRUE,
                    // Of `oneOf` no other branch is valid, and a closed object has the names of those
                    // that are taken.
                    Applied::One | Applied::Then | Applied::Else if taken.is_some() => continue,
                    Applied::Any if taken.is_some() && usage != BranchUse::Evaluation => continue,
                    Applied::Not => continue,
                    Applied::Always => FormulaId::TRUE,
                    Applied::Any | Applied::One | Applied::If => self.type_formula(child, kind)?,
                    Applied::Then => test.unwrap_or(FormulaId::FALSE),
                    Applied::Else => match test {
                        Some(test) => self.formulas.not(test),
                        None => FormulaId::FALSE,
                    },
                    Applied::Dependent(name) => self.formulas.literal(Atom::Required(name)),
                };
                let condition = self.formulas.and([condition, more]);
                work.push((child, condition, is_asked));
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out.into())
    }

    pub(super) fn says_items(&self, node: JsonNodeId) -> Result<bool> {
        let items = self.schemas.items(node)?;
        Ok(!items.first.is_empty() || items.others.is_some())
    }

    pub(super) fn array_atoms(
        &mut self,
        schema: SchemaId,
        node: JsonNodeId,
        scope: ScopeId,
        parts: &mut Vec<FormulaId>,
    ) -> Result<()> {
        let schemas = self.schemas;
        if self.says_items(node)? {
            parts.push(self.formulas.literal(Atom::Items(schema)));
        }
        let most = schemas.count(node, "maxItems")?;
        if let Some(least) = schemas.count(node, "minItems")? {
            parts.push(self.at_least(Atom::AtLeastItems, least));
        }
        if let Some(most) = most {
            parts.push(self.at_most(Atom::AtLeastItems, most));
        }
        if let Some(contained) = schemas.subschema(node, "contains")? {
            let contained = self.child(contained, scope);
            let least = schemas.count(node, "minContains")?.unwrap_or(1);
            let most = schemas.count(node, "maxContains")?;
            for count in [Some(least), most].into_iter().flatten() {
                if count > MOST_CONTAINED {
                    return Err(Error::LimitInSchema {
                        pointer: schemas.arena().pointer(node),
                        limit: "max_contained_items",
                        value: u64::from(MOST_CONTAINED),
                        message:
                            "minContains and maxContains take a state for each item that they \
                                  count; lower them"
                                .into(),
                    });
                }
            }
            let atom = |count| Atom::AtLeastContains(contained, count);
            parts.push(self.at_least(atom, least));
            if let Some(most) = most {
                parts.push(self.at_most(atom, most));
            }
        }
        if schemas.flag(node, "uniqueItems")? == Some(true) && most.is_none_or(|most| most > 1) {
            self.unique_items(schema, node, scope, parts)?;
        }
        if let Some(rest) = schemas.subschema(node, "unevaluatedItems")? {
            let rest = self.child(rest, scope);
            if !self.is_trivial(rest) {
                let branches = self.branches(schema, Type::Array, &Choice::default())?;
                parts.push(self.formulas.literal(Atom::UnevaluatedItems(schema, branches)));
            }
        }
        self.spend(parts.len())
    }

    fn unique_items(
        &mut self,
        schema: SchemaId,
        node: JsonNodeId,
        scope: ScopeId,
        parts: &mut Vec<FormulaId>,
    ) -> Result<()> {
        let Some(values) = self.few_items(node, scope)? else {
            parts.push(self.formulas.literal(Atom::Unique(schema)));
            return Ok(());
        };
        let none = vec![0; values.len().div_ceil(64)];
        let none = self.used.intern(none.into());
        self.distinct.insert(schema, values);
        parts.push(self.formulas.literal(Atom::Distinct(schema, none)));
        Ok(())
    }

    /// Whether `uniqueItems` of a schema is said by one set of the items that were read.
    pub(super) fn keeps_items(&self, schema: SchemaId) -> bool {
        self.distinct[&schema].len() > MOST_DISTINCT
    }

    /// The values that all items of a schema are among, where it is plain that they are few.
    fn few_items(&mut self, node: JsonNodeId, scope: ScopeId) -> Result<Option<Rc<[SchemaId]>>> {
        let schemas = self.schemas;
        let mut places: Vec<SchemaId> = Vec::new();
        let items = schemas.items(node)?;
        for &item in items.first {
            places.push(self.child(item, scope));
        }
        match items.others {
            Some(rest) => places.push(self.child(rest, scope)),
            None => match schemas.count(node, "maxItems")? {
                Some(most) if most as usize <= places.len() => {}
                _ => return Ok(None),
            },
        }
        let mut values: Vec<JsonNodeId> = Vec::new();
        let mut is_boolean = false;
        for place in places {
            let mut at = place;
            let mut steps = 0;
            let listed = loop {
                let SchemaKey::Schema(node, scope) = self.key(at) else { return Ok(None) };
                match self.node(node) {
                    JsonNode::Boolean(false) => break Vec::new(),
                    JsonNode::Boolean(true) => return Ok(None),
                    _ => {}
                }
                if let Some(values) = schemas.values(node, "enum")? {
                    break values.to_vec();
                }
                if let Some(value) = schemas.value(node, "const") {
                    break vec![value];
                }
                match schemas.types(node)? {
                    Some(types)
                        if ["null", "number", "integer", "string", "array", "object"]
                            .iter()
                            .all(|name| !types.has(name)) =>
                    {
                        is_boolean = true;
                        break Vec::new();
                    }
                    _ => {}
                }
                let Some(target) = schemas.reference(node)? else { return Ok(None) };
                at = self.child(target, scope);
                steps += 1;
                if steps > 64 {
                    return Ok(None);
                }
            };
            for value in listed {
                let arena = schemas.arena();
                if !values.iter().any(|&known| arena.equal(known, value)) {
                    values.push(value);
                }
                if values.len() > MOST_KEPT {
                    return Ok(None);
                }
            }
        }
        let arena = schemas.arena();
        if is_boolean {
            values.retain(|&value| !matches!(arena.node(value), JsonNode::Boolean(_)));
        }
        let mut out: Vec<SchemaId> = values.into_iter().map(|value| self.constant(value)).collect();
        if is_boolean {
            out.extend([true, false].map(|truth| self.schema_keys.intern(SchemaKey::Truth(truth))));
        }
        Ok(Some(out.into()))
    }

    pub(super) fn number_atoms(
        &mut self,
        node: JsonNodeId,
        parts: &mut Vec<FormulaId>,
    ) -> Result<()> {
        let schemas = self.schemas;
        for bound in schemas.lower_bounds(node)? {
            let value = self.decimal(bound.value);
            let atom = if bound.is_exclusive { Atom::Greater(value) } else { Atom::AtLeast(value) };
            parts.push(self.formulas.literal(atom));
        }
        for bound in schemas.upper_bounds(node)? {
            let value = self.decimal(bound.value);
            let atom = if bound.is_exclusive { Atom::AtLeast(value) } else { Atom::Greater(value) };
            let more = self.formulas.literal(atom);
            parts.push(self.formulas.not(more));
        }
        if let Some(step) = schemas.positive(node, "multipleOf")? {
            let step = self.decimal(step);
            self.steps.entry(step).or_insert(node);
            parts.push(self.formulas.literal(Atom::MultipleOf(step)));
        }
        Ok(())
    }

    fn decimal(&mut self, value: &Decimal) -> DecimalId {
        self.decimals.intern(value.clone())
    }
}
