//! What no longer matters of a formula of objects once the names that it speaks of were read or are absent.
//!
//! Without this, a state would keep for each condition of a chain whether it held.

use crate::error::Result;
use crate::json_schema::atoms::{Atom, Branch, NameId, SchemaId, SchemaKey};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::FormulaId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Of the schemas that a formula mentions, those that speak of known names alone: of which, as places in an order.
#[derive(Default)]
pub(in crate::json_schema) struct Spent {
    /// The names whose members a schema restricts.
    restricted: FxHashMap<SchemaId, Box<[usize]>>,
    /// The names that a branch evaluates, for `unevaluatedProperties` of an owner; of branches under a condition.
    evaluated: FxHashMap<(SchemaId, SchemaId), Box<[usize]>>,
}

impl Spent {
    /// Whether an atom is spent, or a part of it is.
    fn applies_to(&self, atom: &Atom, is_done: &dyn Fn(usize) -> bool) -> bool {
        match atom {
            Atom::Properties(schema) => self.is_met(*schema, is_done),
            Atom::UnevaluatedProperties(owner, branches) => {
                branches.iter().any(|&(condition, branch)| {
                    condition != FormulaId::TRUE || self.is_useless(*owner, branch, is_done)
                })
            }
            _ => false,
        }
    }

    /// Whether a schema restricts no member that may still come.
    fn is_met(&self, schema: SchemaId, is_done: &dyn Fn(usize) -> bool) -> bool {
        let places = self.restricted.get(&schema);
        places.is_some_and(|places| places.iter().rev().all(|&place| is_done(place)))
    }

    /// Whether a branch evaluates no member that may still come.
    fn is_useless(
        &self,
        owner: SchemaId,
        branch: SchemaId,
        is_done: &dyn Fn(usize) -> bool,
    ) -> bool {
        let places = self.evaluated.get(&(owner, branch));
        places.is_some_and(|places| places.iter().rev().all(|&place| is_done(place)))
    }
}

impl Converter<'_> {
    /// What of a formula may be spent, where names have places in an order.
    pub(in crate::json_schema) fn spent_with(
        &mut self,
        formula: FormulaId,
        names: &[NameId],
    ) -> Result<Spent> {
        let places: FxHashMap<NameId, usize> = names.iter().copied().zip(0..).collect();
        let mut out = Spent::default();
        let mut known: FxHashSet<FormulaId> = [formula].into_iter().collect();
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            for (atom, _) in self.formulas.atoms_of(formula) {
                self.spend(1)?;
                match self.atom(atom).clone() {
                    Atom::Properties(schema) => {
                        if let Some(restricted) = self.restricted_names(schema, &places)? {
                            out.restricted.insert(schema, restricted);
                        }
                    }
                    Atom::UnevaluatedProperties(owner, branches) => {
                        for (condition, branch) in branches {
                            if condition == FormulaId::TRUE {
                                continue;
                            }
                            if known.insert(condition) {
                                work.push(condition);
                            }
                            if let Some(evaluated) = self.evaluated_names(owner, branch, &places)? {
                                out.evaluated.insert((owner, branch), evaluated);
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(out)
    }

    /// Whether a schema restricts members of known names alone.
    pub(super) fn names_all_it_restricts(&self, schema: SchemaId) -> Result<bool> {
        let SchemaKey::Schema(node, _) = self.key(schema) else { return Ok(false) };
        Ok(self.object_of(node, "properties").is_some()
            && self.object_of(node, "patternProperties").is_none()
            && self.schemas.subschema(node, "additionalProperties")?.is_none())
    }

    /// The places of the names that a schema restricts; `None` where it restricts others too.
    fn restricted_names(
        &mut self,
        schema: SchemaId,
        places: &FxHashMap<NameId, usize>,
    ) -> Result<Option<Box<[usize]>>> {
        let SchemaKey::Schema(node, scope) = self.key(schema) else { return Ok(None) };
        let Some(properties) = self.object_of(node, "properties") else { return Ok(None) };
        if !self.names_all_it_restricts(schema)? {
            return Ok(None);
        }
        let mut restricted = Vec::new();
        let known = self.property_names(node)?;
        for ((_, child), name) in properties.iter().zip(known.iter()) {
            self.spend(1)?;
            let child = self.child(child, scope);
            if !self.is_trivial(child)
                && let Some(&place) = places.get(name)
            {
                restricted.push(place);
            }
        }
        restricted.sort_unstable();
        Ok(Some(restricted.into()))
    }

    /// The places of the names of the members that a branch evaluates, as [`Converter::covers`] says; `None` where
    /// it may evaluate members of other names.
    fn evaluated_names(
        &mut self,
        owner: SchemaId,
        branch: SchemaId,
        places: &FxHashMap<NameId, usize>,
    ) -> Result<Option<Box<[usize]>>> {
        let SchemaKey::Schema(node, _) = self.key(branch) else { return Ok(None) };
        let is_closed = self.key(owner) == SchemaKey::Closed;
        if self.object_of(node, "patternProperties").is_some()
            || self.schemas.subschema(node, "additionalProperties")?.is_some()
            || branch != owner && self.schemas.subschema(node, "unevaluatedProperties")?.is_some()
            || is_closed && self.lists_values(node)
        {
            return Ok(None);
        }
        let mut names = self.property_names(node)?.to_vec();
        if is_closed {
            names.extend(self.asked_names(branch)?.iter());
        }
        self.spend(1 + names.len())?;
        let mut evaluated: Vec<usize> =
            names.iter().filter_map(|name| places.get(name).copied()).collect();
        evaluated.sort_unstable();
        evaluated.dedup();
        Ok(Some(evaluated.into()))
    }

    /// The formula without what no longer matters. `is_done` says whether a known name, by its place in the order,
    /// was read or is absent.
    pub(in crate::json_schema) fn without_spent(
        &mut self,
        formula: FormulaId,
        spent: &Spent,
        is_done: &dyn Fn(usize) -> bool,
    ) -> Result<FormulaId> {
        let atoms = self.formulas.atoms_of(formula);
        if !atoms.iter().any(|&(atom, _)| spent.applies_to(self.atom(atom), is_done)) {
            return Ok(formula);
        }
        self.derive(formula, &mut |this, number| {
            Ok(match this.atom(number).clone() {
                Atom::Properties(schema) if spent.is_met(schema, is_done) => FormulaId::TRUE,
                Atom::UnevaluatedProperties(owner, branches) => {
                    let mut left: Vec<Branch> = Vec::with_capacity(branches.len());
                    for (condition, branch) in branches {
                        if !spent.is_useless(owner, branch, is_done) {
                            let condition = this.without_spent(condition, spent, is_done)?;
                            left.push((condition, branch));
                        }
                    }
                    this.unevaluated_atom(Atom::UnevaluatedProperties, owner, left)
                }
                _ => this.formulas.of_atom(number),
            })
        })
    }
}
