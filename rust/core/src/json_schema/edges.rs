//! A formula that speaks of the value to come, split into edges: a condition on that value, and what is
//! left to hold of what follows.
//!
//! Design: docs/design/json-schema.md, "Edges and cells".
//!
//! Where a formula has alternatives, values are first told apart by type and by the finite values that
//! are named (*cells*): a discriminator is then one edge for each of its values, whatever number of
//! conditions ask for it. What is left is put into disjunctive form.
//!
//! Files: `equal` (conditions that say the same); `cells`; `ways` (the disjunctive form).

mod cells;
mod equal;
mod ways;

use super::atoms::{Atom, SchemaId, Type, ValueId, ValueKey};
use super::converter::{Converter, ValueDemand, ValueEdges};
use super::formula::{Formula, FormulaId};
use crate::error::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Schemas that the value satisfies, and does not satisfy.
type ValueConditions = Rc<[(SchemaId, bool)]>;

/// What is left, by conditions on the value.
type ValueWays = Vec<(ValueConditions, FormulaId)>;

/// What is left of a formula in some cells, the restriction to them, and schemas that hold there.
type Restricted = (FormulaId, Option<[FormulaId; 6]>, Vec<SchemaId>);

/// Conditions inside of `unevaluated...` that are decided one by one.
const MOST_DECIDED: usize = 12;

impl Converter<'_> {
    /// The edges of a formula, each with a condition that some value may satisfy.
    pub(super) fn edges(&mut self, formula: FormulaId) -> Result<ValueEdges> {
        if let Some(known) = self.edges.get(&formula) {
            return Ok(known.clone());
        }
        let mut out: Vec<(ValueId, FormulaId)> = Vec::new();
        let inner = self.inner_values(formula);
        let mut restricted: Vec<Restricted> = Vec::new();
        if !inner.is_empty() || self.has_choice(formula) {
            // A cell decides conditions in branches of `unevaluated...` too, so that a discriminator
            // leaves none of them, however many there are.
            let mut asked = self.value_atoms(formula);
            asked.extend(inner);
            asked.sort_unstable();
            asked.dedup();
            let (formula, asked) = self.with_equal_conditions(formula, asked)?;
            if let Some(cells) = self.cells(&asked)? {
                restricted = self.by_cell(formula, &asked, &cells)?;
            } else {
                restricted.push((formula, None, Vec::new()));
            }
        } else {
            restricted.push((formula, None, Vec::new()));
        }
        for (rest, restriction, held) in restricted {
            for (decided, rest) in self.decide(rest)? {
                self.push_ways(rest, &decided, restriction.as_ref(), &held, &mut out)?;
            }
        }
        // Edges on which the same is left are kept apart; those with the same condition are one.
        let mut merged: Vec<(ValueId, FormulaId)> = Vec::new();
        let mut place: FxHashMap<ValueId, usize> = FxHashMap::default();
        for (value, rest) in out {
            match place.get(&value) {
                Some(&at) => merged[at].1 = self.formulas.or([merged[at].1, rest]),
                None => {
                    place.insert(value, merged.len());
                    merged.push((value, rest));
                }
            }
        }
        self.spend(merged.len())?;
        let edges: ValueEdges = merged.into();
        self.edges.insert(formula, edges.clone());
        Ok(edges)
    }

    /// Whether a formula is more than a conjunction of conditions and what does not speak of the value.
    fn has_choice(&self, formula: FormulaId) -> bool {
        let is_plain = |&part: &FormulaId| {
            matches!(self.formulas.get(part), Formula::Literal(..))
                || self.value_atoms(part).is_empty()
        };
        match self.formulas.get(formula) {
            Formula::And(operands) => !operands.iter().all(is_plain),
            _ => !is_plain(&formula),
        }
    }

    /// The schemas that a formula asks the value for.
    pub(super) fn value_atoms(&self, formula: FormulaId) -> Vec<SchemaId> {
        let atoms = self.formulas.atoms_of(formula);
        let mut out: Vec<SchemaId> = atoms
            .iter()
            .filter_map(|&(atom, _)| match self.atom(atom) {
                Atom::Value(schema) => Some(*schema),
                _ => None,
            })
            .collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The conditions on the value that stand in branches of `unevaluated...`.
    fn inner_values(&self, formula: FormulaId) -> Vec<SchemaId> {
        let mut out = FxHashSet::default();
        let has_branches = |&(atom, _): &(u32, bool)| match self.atom(atom) {
            Atom::UnevaluatedProperties(_, branches) | Atom::UnevaluatedItems(_, branches) => {
                branches.iter().any(|branch| branch.0 != FormulaId::TRUE)
            }
            _ => false,
        };
        if !self.formulas.atoms_of(formula).iter().any(has_branches) {
            return Vec::new();
        }
        let mut work = vec![(formula, false)];
        let mut seen = FxHashSet::default();
        while let Some((formula, is_inner)) = work.pop() {
            for (atom, _) in self.formulas.atoms_of(formula) {
                match self.atom(atom) {
                    Atom::Value(schema) if is_inner => {
                        out.insert(*schema);
                    }
                    Atom::UnevaluatedProperties(_, branches)
                    | Atom::UnevaluatedItems(_, branches) => {
                        let conditions = branches.iter().map(|branch| (branch.0, true));
                        work.extend(conditions.filter(|condition| seen.insert(*condition)));
                    }
                    _ => {}
                }
            }
        }
        let mut out: Vec<SchemaId> = out.into_iter().collect();
        out.sort_unstable();
        out
    }

    /// The formula under each decision of the conditions that stand in branches of `unevaluated...`, with
    /// the decision.
    fn decide(&mut self, formula: FormulaId) -> Result<ValueWays> {
        let inner = self.inner_values(formula);
        if inner.is_empty() {
            return Ok(vec![(Rc::from([]), formula)]);
        }
        if inner.len() > MOST_DECIDED {
            if !self.has_unevaluated {
                return Err(self.too_many_alternatives()); // what closes objects has branches too
            }
            return Err(Error::Limit {
                limit: "max_unevaluated_conditions",
                value: MOST_DECIDED as u64,
                message: "more conditions on one value decide what unevaluatedProperties or \
                          unevaluatedItems refer to; write fewer alternatives beside them"
                    .into(),
            });
        }
        let mut out: ValueWays = Vec::new();
        for decision in 0..1u32 << inner.len() {
            let mut known: FxHashMap<SchemaId, FormulaId> = FxHashMap::default();
            let mut conditions = Vec::with_capacity(inner.len());
            for (bit, &schema) in inner.iter().enumerate() {
                let holds = decision >> bit & 1 == 1;
                known.insert(schema, FormulaId::of(holds));
                conditions.push((schema, holds));
            }
            let rest = self.substitute(formula, &known)?;
            if rest != FormulaId::FALSE {
                out.push((conditions.into(), rest));
            }
        }
        Ok(out)
    }

    /// The formula where others stand in the place of some conditions on the value, in branches too.
    fn substitute(
        &mut self,
        formula: FormulaId,
        known: &FxHashMap<SchemaId, FormulaId>,
    ) -> Result<FormulaId> {
        self.derive(formula, &mut |this, number| {
            Ok(match this.atom(number).clone() {
                Atom::Value(schema) => match known.get(&schema) {
                    Some(&known) => known,
                    None => this.formulas.of_atom(number),
                },
                Atom::UnevaluatedProperties(owner, mut branches) => {
                    for branch in &mut branches {
                        branch.0 = this.substitute(branch.0, known)?;
                    }
                    this.formulas.literal(Atom::UnevaluatedProperties(owner, branches))
                }
                Atom::UnevaluatedItems(owner, mut branches) => {
                    for branch in &mut branches {
                        branch.0 = this.substitute(branch.0, known)?;
                    }
                    this.formulas.literal(Atom::UnevaluatedItems(owner, branches))
                }
                _ => this.formulas.of_atom(number),
            })
        })
    }

    /// Adds the edges of a formula to which nothing but its conditions on the value is left to decide.
    /// `held` are schemas that the restriction has decided.
    fn push_ways(
        &mut self,
        formula: FormulaId,
        decided: &ValueConditions,
        restriction: Option<&[FormulaId; 6]>,
        held: &[SchemaId],
        out: &mut Vec<(ValueId, FormulaId)>,
    ) -> Result<()> {
        let mut work = vec![(formula, decided.to_vec())];
        while let Some((formula, decided)) = work.pop() {
            if let Some(schema) = self.asked_both_ways(formula) {
                // Both answers matter: what is left under each is simpler than what is left under
                // either, and there are fewer such formulas.
                let mut rests = Vec::with_capacity(2);
                for holds in [true, false] {
                    let known = [(schema, FormulaId::of(holds))].into_iter().collect();
                    rests.push((holds, self.substitute(formula, &known)?));
                }
                if rests[0].1 == rests[1].1 {
                    work.push((rests[0].1, decided));
                    continue;
                }
                for (holds, rest) in rests {
                    if rest != FormulaId::FALSE {
                        let mut decided = decided.clone();
                        decided.push((schema, holds));
                        work.push((rest, decided));
                    }
                }
                let most = self.options.max_alternatives;
                if work.len() + out.len() > most {
                    return Err(self.too_many_alternatives());
                }
                continue;
            }
            for (conditions, rest) in self.ways(formula)? {
                let mut all = decided.clone();
                all.extend(conditions.iter());
                all.sort_unstable();
                all.dedup();
                if let Some(value) = self.possible_value(&all, restriction)? {
                    self.asked.extend(held.iter().map(|&schema| (value, schema)));
                    out.push((value, rest));
                }
            }
        }
        Ok(())
    }

    /// The condition of [`Self::value_key`], where some value may satisfy it.
    pub(super) fn possible_value(
        &mut self,
        conditions: &[(SchemaId, bool)],
        restriction: Option<&[FormulaId; 6]>,
    ) -> Result<Option<ValueId>> {
        let key = self.value_key(conditions, restriction)?;
        if key.is_impossible() {
            if let ([(schema, true)], None) = (conditions, restriction) {
                self.impossible.insert(*schema);
            }
            return Ok(None);
        }
        let value = self.values.intern(key);
        self.note_asked(value, conditions);
        Ok(Some(value))
    }

    /// The condition that a conjunction of conditions on the value is, where some value may satisfy it.
    pub(super) fn value_under(&mut self, formula: FormulaId) -> Result<Option<ValueId>> {
        if formula == FormulaId::FALSE {
            return Ok(None);
        }
        let (conditions, rest) = self.conditions_in(formula)?;
        debug_assert!(rest.is_empty());
        self.possible_value(&conditions, None)
    }

    /// A schema that the formula asks the value to satisfy at one place, and not to satisfy at another.
    fn asked_both_ways(&self, formula: FormulaId) -> Option<SchemaId> {
        // The two signs of an atom stand side by side.
        let atoms = self.formulas.atoms_of(formula);
        let both = atoms.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        both.filter_map(|pair| match self.atom(pair[0].0) {
            Atom::Value(schema) => Some(*schema),
            _ => None,
        })
        .next()
    }

    /// The condition that a value satisfies some schemas and not others, within a restriction.
    fn value_key(
        &mut self,
        conditions: &[(SchemaId, bool)],
        restriction: Option<&[FormulaId; 6]>,
    ) -> Result<ValueKey> {
        let asked: ValueDemand = (conditions.into(), restriction.copied());
        if let Some(&known) = self.value_keys.get(&asked) {
            self.spend(1)?;
            return Ok(known);
        }
        let key = self.make_value_key(conditions, restriction)?;
        self.value_keys.insert(asked, key);
        Ok(key)
    }

    fn make_value_key(
        &mut self,
        conditions: &[(SchemaId, bool)],
        restriction: Option<&[FormulaId; 6]>,
    ) -> Result<ValueKey> {
        let mut formulas = restriction.copied().unwrap_or([FormulaId::TRUE; 6]);
        for kind in Type::ALL {
            let place = kind.index();
            for &(schema, holds) in conditions {
                if formulas[place] == FormulaId::FALSE {
                    break;
                }
                let mut formula = self.type_formula(schema, kind)?;
                if !holds {
                    formula = self.formulas.not(formula);
                }
                formulas[place] = self.formulas.and([formulas[place], formula]);
            }
        }
        let within = restriction.map_or(FormulaId::TRUE, |formulas| formulas[Type::Object.index()]);
        let whole = formulas[Type::Object.index()];
        let alternatives = self.object_alternatives(conditions, within, whole)?;
        let all: Vec<FormulaId> = alternatives.own.iter().map(|one| one.formula).collect();
        formulas[Type::Object.index()] = self.formulas.or(all);
        let objects = self.alternative_sets.intern(alternatives);
        Ok(ValueKey { formulas, objects })
    }

    /// The condition that a value satisfies one schema.
    pub(super) fn value_of(&mut self, schema: SchemaId) -> Result<ValueId> {
        let key = self.value_key(&[(schema, true)], None)?;
        let value = self.values.intern(key);
        self.note_asked(value, &[(schema, true)]);
        Ok(value)
    }
}
