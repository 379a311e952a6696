//! `oneOf`: exactly one of some formulas. Branches that cannot hold together need no more than a
//! disjunction; the others exclude those that they overlap.

use super::atoms::{Atom, NameId, SchemaId, Type};
use super::converter::{Converter, Overlaps};
use super::formula::{Formula, FormulaId};
use super::step::Member;
use super::value::JsonNodeId;
use crate::error::{Error, Result};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Levels of properties that are looked into for what tells two branches apart.
const MOST_LEVELS: usize = 3;

/// Items that are looked into for what tells two branches of arrays apart.
const MOST_ITEMS: usize = 8;

/// Branches of which some overlap: each of them would exclude all others.
const MOST_OVERLAPPING: usize = 64;

/// The names that branches require, in order, and the finite values that such a member has in a branch.
#[derive(Default)]
struct FiniteMembers {
    required: FxHashMap<FormulaId, Rc<[NameId]>>,
    values: FxHashMap<(FormulaId, NameId), Option<Rc<FxHashSet<String>>>>,
}

impl Converter<'_> {
    /// That exactly one of some branches of a schema holds, by their formulas of a type; where a branch is
    /// taken, that it holds and none of the others.
    pub(super) fn exactly_one(
        &mut self,
        schema: SchemaId,
        node: JsonNodeId,
        branches: &[(SchemaId, FormulaId)],
        kind: Type,
        is_chosen: bool,
    ) -> Result<FormulaId> {
        if self.options.one_of_as_any {
            return Ok(self.formulas.or(branches.iter().map(|branch| branch.1)));
        }
        let key = (schema, kind);
        let overlaps = match self.overlaps.get(&key) {
            Some(known) => known.clone(),
            None => {
                let made = Rc::new(self.make_overlaps(node, branches, kind)?);
                self.overlaps.insert(key, made.clone());
                made
            }
        };
        let mut ways = Vec::with_capacity(branches.len());
        for &(child, formula) in branches {
            let mut parts = vec![formula];
            for &other in overlaps.get(&child).into_iter().flatten() {
                self.spend(1)?;
                // Under a choice the branch is less than it was, and may overlap less.
                if !is_chosen || !self.disjoint(formula, other, kind, 0)? {
                    parts.push(self.formulas.not(other));
                }
            }
            ways.push(self.formulas.and(parts));
        }
        Ok(self.formulas.or(ways))
    }

    /// For each branch that overlaps others, the disjuncts of these that it overlaps.
    fn make_overlaps(
        &mut self,
        node: JsonNodeId,
        branches: &[(SchemaId, FormulaId)],
        kind: Type,
    ) -> Result<Overlaps> {
        let live: Vec<(SchemaId, FormulaId)> =
            branches.iter().copied().filter(|branch| branch.1 != FormulaId::FALSE).collect();
        let formulas: Vec<FormulaId> = live.iter().map(|branch| branch.1).collect();
        let mut out = Overlaps::default();
        if live.len() < 2 || self.told_apart_by_values(&formulas, kind)? {
            return Ok(out);
        }
        let mut counts = vec![0; live.len()];
        let mut members = FiniteMembers::default();
        for first in 0..live.len() {
            for second in first + 1..live.len() {
                self.spend(4)?;
                let both = [formulas[first], formulas[second]];
                if kind == Type::Object && self.told_apart_by_a_member(both, &mut members)?
                    || self.disjoint(formulas[first], formulas[second], kind, 0)?
                {
                    continue;
                }
                for (one, other) in [(first, second), (second, first)] {
                    for part in self.formulas.disjuncts(formulas[other]) {
                        if !self.disjoint(formulas[one], part, kind, 1)? {
                            // A schema that stands among the branches twice excludes itself.
                            out.entry(live[one].0).or_default().push(part);
                        }
                    }
                    counts[one] += 1;
                    if counts[one] > MOST_OVERLAPPING {
                        return Err(Error::LimitInSchema {
                            pointer: self.schemas.arena().pointer(node),
                            limit: "max_overlapping_branches",
                            value: MOST_OVERLAPPING as u64,
                            message: "more branches of oneOf may hold together with one of them; \
                                      give each a required property whose `const` tells them apart, \
                                      or write anyOf"
                                .into(),
                        });
                    }
                }
            }
        }
        Ok(out)
    }

    /// Whether a member that both of two branches require has finite values that tell them apart: what
    /// [`Self::disjoint`] finds too, without looking at each pair of values anew.
    fn told_apart_by_a_member(
        &mut self,
        branches: [FormulaId; 2],
        members: &mut FiniteMembers,
    ) -> Result<bool> {
        let mut required = Vec::with_capacity(2);
        for branch in branches {
            required.push(match members.required.get(&branch) {
                Some(known) => known.clone(),
                None => {
                    let mut names = self.required(branch)?;
                    names.sort_unstable();
                    names.dedup();
                    let names: Rc<[NameId]> = names.into();
                    members.required.insert(branch, names.clone());
                    names
                }
            });
        }
        let [first, second] = &*required else { return Ok(false) };
        self.spend(1 + first.len() / 4)?;
        for &name in first.iter().filter(|name| second.binary_search(name).is_ok()) {
            let mut values = Vec::with_capacity(2);
            for branch in branches {
                let known = match members.values.get(&(branch, name)) {
                    Some(known) => known.clone(),
                    None => {
                        let found = self.values_of_member(branch, name)?;
                        let found = found.map(|values| Rc::new(values.into_iter().collect()));
                        members.values.insert((branch, name), found.clone());
                        found
                    }
                };
                match known {
                    Some(known) => values.push(known),
                    None => break,
                }
            }
            if let [first, second] = &*values
                && first.is_disjoint(second)
            {
                return Ok(true);
            }
            self.spend(1)?;
        }
        Ok(false)
    }

    /// Whether finite values tell all branches apart: those of strings and numbers themselves, or of a
    /// property that every branch requires. One pass instead of a comparison of each with each.
    fn told_apart_by_values(&mut self, branches: &[FormulaId], kind: Type) -> Result<bool> {
        if branches.len() < 4 {
            return Ok(false);
        }
        match kind {
            Type::String => {
                let mut seen: FxHashSet<String> = FxHashSet::default();
                for &branch in branches {
                    let Some(texts) = self.listed_texts(branch)? else { return Ok(false) };
                    if !texts.into_iter().all(|text| seen.insert(text)) {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Type::Object => {
                let names = self.required(branches[0])?;
                'names: for name in names {
                    let mut seen: FxHashSet<String> = FxHashSet::default();
                    for &branch in branches {
                        if !self.required(branch)?.contains(&name) {
                            continue 'names;
                        }
                        let Some(values) = self.values_of_member(branch, name)? else {
                            continue 'names;
                        };
                        if !values.into_iter().all(|text| seen.insert(text)) {
                            continue 'names;
                        }
                    }
                    return Ok(true);
                }
                Ok(false)
            }
            _ => Ok(false),
        }
    }

    /// The names that every object of a conjunction has.
    fn required(&mut self, formula: FormulaId) -> Result<Vec<NameId>> {
        let mut names = Vec::new();
        for part in self.formulas.conjuncts(formula) {
            let Formula::Literal(atom, true) = *self.formulas.get(part) else { continue };
            match *self.atom(atom) {
                Atom::Required(name) => names.push(name),
                Atom::RequiredAll(schema) => {
                    let mut many: Vec<NameId> =
                        self.required_names(schema)?.iter().copied().collect();
                    many.sort_unstable();
                    names.extend(many);
                }
                _ => {}
            }
        }
        Ok(names)
    }

    /// The conditions on the value of a member, where the formula asks for them whatever else holds.
    fn conditions_of_member(
        &mut self,
        formula: FormulaId,
        name: NameId,
    ) -> Result<(FormulaId, Vec<(SchemaId, bool)>)> {
        let rest = self.present(formula, Member::Named(name), 0)?;
        let parts = self.formulas.conjuncts(rest);
        let conditions = parts.into_iter().filter_map(|part| match *self.formulas.get(part) {
            Formula::Literal(atom, sign) => match self.atom(atom) {
                Atom::Value(schema) => Some((*schema, sign)),
                _ => None,
            },
            _ => None,
        });
        Ok((rest, conditions.collect()))
    }

    /// The strings and numbers that the value of a member is among, where these are finitely many.
    fn values_of_member(
        &mut self,
        formula: FormulaId,
        name: NameId,
    ) -> Result<Option<Vec<String>>> {
        let (_, conditions) = self.conditions_of_member(formula, name)?;
        if conditions.is_empty() {
            return Ok(None);
        }
        let mut values: Vec<String> = Vec::new();
        for kind in Type::ALL {
            let mut parts = Vec::new();
            for &(schema, holds) in &conditions {
                let Some(formula) = self.type_formula_if_known(schema, kind)? else {
                    return Ok(None);
                };
                parts.push(if holds { formula } else { self.formulas.not(formula) });
            }
            let formula = self.formulas.and(parts);
            match kind {
                Type::String => {
                    let Some(texts) = self.listed_texts(formula)? else { return Ok(None) };
                    values.extend(texts.into_iter().map(|text| format!("s{text}")));
                }
                Type::Number => {
                    let Some(numbers) = self.listed_decimals(formula)? else { return Ok(None) };
                    values.extend(numbers.into_iter().map(|number| format!("n{number}")));
                }
                _ if formula != FormulaId::FALSE => return Ok(None),
                _ => {}
            }
        }
        Ok(Some(values))
    }

    /// The formula of a schema, unless it takes one that is being made: whether branches are disjoint
    /// is asked while formulas are made.
    fn type_formula_if_known(&mut self, schema: SchemaId, kind: Type) -> Result<Option<FormulaId>> {
        if self.depth > MOST_LEVELS {
            return Ok(self.type_formulas.get(schema, kind).copied());
        }
        self.depth += 1;
        let formula = self.type_formula_unless_open(schema, kind);
        self.depth -= 1;
        formula
    }

    /// Whether two formulas of a type are seen to exclude each other.
    fn disjoint(
        &mut self,
        first: FormulaId,
        second: FormulaId,
        kind: Type,
        level: usize,
    ) -> Result<bool> {
        if self.formulas.and([first, second]) == FormulaId::FALSE {
            return Ok(true);
        }
        if level > MOST_LEVELS {
            return Ok(false);
        }
        self.spend(1)?;
        for (one, other) in [(first, second), (second, first)] {
            let parts = self.formulas.disjuncts(one);
            if parts.len() > 1 {
                for part in parts {
                    if !self.disjoint(part, other, kind, level + 1)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
        }
        match kind {
            Type::Null | Type::Boolean => Ok(false),
            Type::String => {
                for (one, other) in [(first, second), (second, first)] {
                    if let Some(texts) = self.listed_texts(one)? {
                        for text in texts {
                            if self.string_satisfies(other, &text)? {
                                return Ok(false);
                            }
                        }
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Type::Number => {
                for (one, other) in [(first, second), (second, first)] {
                    if let Some(values) = self.listed_decimals(one)? {
                        for value in values {
                            if self.number_satisfies(other, &value)? {
                                return Ok(false);
                            }
                        }
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Type::Array => self.disjoint_arrays(first, second, level),
            Type::Object => self.disjoint_objects(first, second, level),
        }
    }

    /// Whether a member that one of two formulas requires tells them apart.
    fn disjoint_objects(
        &mut self,
        first: FormulaId,
        second: FormulaId,
        level: usize,
    ) -> Result<bool> {
        let mut names = self.required(first)?;
        names.extend(self.required(second)?);
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (first, of_first) = self.conditions_of_member(first, name)?;
            let (second, of_second) = self.conditions_of_member(second, name)?;
            if first == FormulaId::FALSE || second == FormulaId::FALSE {
                return Ok(true);
            }
            if of_first.is_empty() || of_second.is_empty() {
                continue;
            }
            if self.disjoint_values(&of_first, &of_second, level + 1)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether two formulas of arrays ask for different numbers of items, or an item that both have
    /// tells them apart.
    fn disjoint_arrays(
        &mut self,
        first: FormulaId,
        second: FormulaId,
        level: usize,
    ) -> Result<bool> {
        let (least_of_first, most_of_first) = self.counts_of_items(first);
        let (least_of_second, most_of_second) = self.counts_of_items(second);
        let least = least_of_first.max(least_of_second);
        if most_of_first.into_iter().chain(most_of_second).any(|most| most < least) {
            return Ok(true);
        }
        let mut rests = [first, second];
        for index in 0..MOST_ITEMS.min(least as usize) {
            let mut asked: [Vec<(SchemaId, bool)>; 2] = Default::default();
            for place in 0..2 {
                if self.has_repeated_items(rests[place]) {
                    return Ok(false);
                }
                let left = self.item(rests[place], index, 0)?;
                let mut others = Vec::new();
                for part in self.formulas.conjuncts(left) {
                    match *self.formulas.get(part) {
                        Formula::Literal(atom, holds) => match *self.atom(atom) {
                            Atom::Value(schema) => asked[place].push((schema, holds)),
                            _ => others.push(part),
                        },
                        // A part that asks for this item or another one, as `contains` does: it is
                        // left out, which can only hide that the branches exclude each other.
                        _ if !self.value_atoms(part).is_empty() => {}
                        _ => others.push(part),
                    }
                }
                rests[place] = self.formulas.and(others);
                if left == FormulaId::FALSE {
                    return Ok(true);
                }
            }
            let [first, second] = &asked;
            if !first.is_empty()
                && !second.is_empty()
                && self.disjoint_values(first, second, level + 1)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// How many items the arrays of a conjunction have at least, and at most.
    fn counts_of_items(&self, formula: FormulaId) -> (u32, Option<u32>) {
        let (mut least, mut most) = (0, None::<u32>);
        for part in self.formulas.conjuncts(formula) {
            if let Formula::Literal(atom, holds) = *self.formulas.get(part)
                && let Atom::AtLeastItems(count) = *self.atom(atom)
            {
                match holds {
                    true => least = least.max(count),
                    false => most = Some(most.map_or(count - 1, |most| most.min(count - 1))),
                }
            }
        }
        (least, most)
    }

    /// Whether a formula asks for an item that is repeated.
    fn has_repeated_items(&self, formula: FormulaId) -> bool {
        self.formulas.atoms_of(formula).iter().any(|&(atom, holds)| {
            !holds && matches!(self.atom(atom), Atom::Distinct(..) | Atom::Unique(_))
        })
    }

    fn disjoint_values(
        &mut self,
        first: &[(SchemaId, bool)],
        second: &[(SchemaId, bool)],
        level: usize,
    ) -> Result<bool> {
        let mut known: FxHashMap<Type, [FormulaId; 2]> = FxHashMap::default();
        for kind in Type::ALL {
            let mut both = [FormulaId::TRUE; 2];
            for (place, conditions) in [first, second].into_iter().enumerate() {
                for &(schema, holds) in conditions {
                    let Some(formula) = self.type_formula_if_known(schema, kind)? else {
                        return Ok(false);
                    };
                    let formula = if holds { formula } else { self.formulas.not(formula) };
                    both[place] = self.formulas.and([both[place], formula]);
                }
            }
            known.insert(kind, both);
        }
        for kind in Type::ALL {
            let [first, second] = known[&kind];
            if first == FormulaId::FALSE || second == FormulaId::FALSE {
                continue;
            }
            if !self.disjoint(first, second, kind, level)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
