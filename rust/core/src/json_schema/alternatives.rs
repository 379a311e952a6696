//! The alternatives of an object: which branches of `anyOf` and `oneOf` are taken.
//!
//! Design: docs/design/json-schema.md, "Alternatives".
//!
//! A value that a branch takes may be written in the order of the names of that branch, whatever stands
//! beside it. Where branches name members, each of them is an alternative of its own: a formula, and an
//! order of names. An object that is closed by option is closed in each alternative, by the names of the
//! branches that are taken, so a union of closed objects costs what these objects cost.

use super::atoms::{Alternative, Alternatives, Branch, NameId, OrderId, SchemaId, SchemaKey, Type};
use super::choice::{Applied, BranchUnion, Choice};
use super::converter::Converter;
use super::formula::FormulaId;
use super::options::KeyOrder;
use super::step::Member;
use crate::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Levels of branches inside of branches, and of references, that are looked into.
const MOST_LEVELS: usize = 48;

/// Combinations of branches that stand beside each other, as in an `allOf` of unions. Where there would be
/// more, the branches of the later unions keep one order in common.
const MOST_COMBINATIONS: usize = 128;

/// Alternatives of one union.
const MOST_ALTERNATIVES: usize = 4_096;

/// Each choice with each other; `None` where these are too many.
fn combined(some: &[Choice], others: &[Choice]) -> Option<Vec<Choice>> {
    let most = if some.len() == 1 { MOST_ALTERNATIVES } else { MOST_COMBINATIONS };
    if some.len().saturating_mul(others.len()) > most {
        return None;
    }
    let pairs = some.iter().flat_map(|one| others.iter().map(move |other| one.and(other)));
    Some(pairs.flatten().collect())
}

impl Converter<'_> {
    /// An alternative of which the names keep to their order, unless the options say otherwise.
    pub(super) fn alternative(&self, formula: FormulaId, order: OrderId) -> Alternative {
        let in_order = match self.options.key_order {
            KeyOrder::Schema => self.orders.get(order).len() as u32,
            KeyOrder::Any => 0,
        };
        Alternative { formula, order, in_order }
    }

    /// The alternatives of the objects that meet some conditions, within a formula. `whole` is the
    /// formula of all of them.
    pub(super) fn object_alternatives(
        &mut self,
        conditions: &[(SchemaId, bool)],
        within: FormulaId,
        whole: FormulaId,
    ) -> Result<Alternatives> {
        let closes = !self.options.open_objects;
        let in_any_order = self.options.key_order == KeyOrder::Any;
        if whole == FormulaId::FALSE {
            let order = self.orders.intern(Box::default());
            return Ok(Alternatives {
                own: [self.alternative(whole, order)].into(),
                all: None,
                chained: None,
            });
        }
        let mut choices = vec![Choice::default()];
        if closes || !in_any_order {
            for &(schema, _) in conditions.iter().filter(|condition| condition.1) {
                let more = self.choices(schema, 0)?;
                if let Some(both) = combined(&choices, &more) {
                    choices = both;
                }
            }
        }
        let by_order = self.formulas_by_order(conditions, within, &choices)?;
        let is_one = by_order.len() < 2;
        if is_one && !closes || by_order.is_empty() {
            // One order serves all.
            let none = Choice::default();
            let formula = if closes { self.closed(conditions, whole, &none)? } else { whole };
            let order = self.order(conditions, formula, &none)?;
            let chained = if in_any_order { None } else { self.chained(conditions, order)? };
            return Ok(Alternatives {
                own: [self.alternative(formula, order)].into(),
                all: None,
                chained,
            });
        }
        let mut out = Vec::with_capacity(by_order.len());
        for (order, formulas) in by_order {
            let formula = self.formulas.or(formulas);
            out.push(self.alternative(formula, order));
        }
        if let ([one], true) = (out.as_mut_slice(), in_any_order) {
            let order = self.order(conditions, one.formula, &Choice::default())?;
            *one = self.alternative(one.formula, order);
        }
        let mut all = None;
        if out.len() > 1 {
            let formulas: Vec<FormulaId> = out.iter().map(|one| one.formula).collect();
            let formula = if closes { self.formulas.or(formulas) } else { whole };
            let order = self.order(conditions, formula, &Choice::default())?;
            all = Some(self.alternative(formula, order));
        }
        let last = all.or(out.first().copied()).filter(|_| !in_any_order);
        let chained = last.map_or(Ok(None), |last| self.chained(conditions, last.order))?;
        Ok(Alternatives { own: out.into(), all, chained })
    }

    /// The formulas of choices of branches, by the order in which their members come; none where no branch is chosen.
    fn formulas_by_order(
        &mut self,
        conditions: &[(SchemaId, bool)],
        within: FormulaId,
        choices: &[Choice],
    ) -> Result<Vec<(OrderId, Vec<FormulaId>)>> {
        let mut by_order: Vec<(OrderId, Vec<FormulaId>)> = Vec::new();
        if choices.iter().all(Choice::is_empty) {
            return Ok(by_order);
        }
        let in_any_order = self.options.key_order == KeyOrder::Any;
        let mut places: FxHashMap<OrderId, usize> = FxHashMap::default();
        for choice in choices {
            let formula = self.formula_under(conditions, within, choice)?;
            if formula == FormulaId::FALSE {
                continue;
            }
            let (order, other) = match in_any_order {
                true => (self.orders.intern(Box::default()), None),
                false => {
                    let order = self.order(conditions, formula, choice)?;
                    (order, self.order_of_branches(order, choice)?)
                }
            };
            for order in [Some(order), other].into_iter().flatten() {
                let place = *places.entry(order).or_insert_with(|| {
                    by_order.push((order, Vec::new()));
                    by_order.len() - 1
                });
                by_order[place].1.push(formula);
            }
            self.spend(1)?;
        }
        Ok(by_order)
    }

    /// The formula of objects that meet some conditions where some branches are taken; closed where
    /// objects are.
    fn formula_under(
        &mut self,
        conditions: &[(SchemaId, bool)],
        within: FormulaId,
        choice: &Choice,
    ) -> Result<FormulaId> {
        let mut parts = vec![within];
        for &(schema, holds) in conditions {
            let formula = match holds {
                true => self.chosen_formula(schema, choice)?,
                false => {
                    let formula = self.type_formula(schema, Type::Object)?;
                    self.formulas.not(formula)
                }
            };
            parts.push(formula);
        }
        let formula = self.formulas.and(parts);
        if self.options.open_objects || formula == FormulaId::FALSE {
            return Ok(formula);
        }
        self.closed(conditions, formula, choice)
    }

    /// The formula of a schema for objects where some of its branches are taken.
    pub(super) fn chosen_formula(
        &mut self,
        schema: SchemaId,
        choice: &Choice,
    ) -> Result<FormulaId> {
        if !choice.touches(schema) {
            return self.type_formula(schema, Type::Object);
        }
        self.build(schema, Type::Object, choice)
    }

    /// The choices that a schema leaves: at least one, which may be empty.
    fn choices(&mut self, schema: SchemaId, level: usize) -> Result<Rc<[Choice]>> {
        if let Some(known) = self.choices.get(&schema) {
            return Ok(known.clone());
        }
        if level > MOST_LEVELS {
            return Ok(Rc::from([Choice::default()]));
        }
        let applied = self.applied(schema, Type::Object)?;
        let mut all = vec![Choice::default()];
        for &(child, how) in applied.iter().filter(|child| child.1 == Applied::Always) {
            debug_assert_eq!(how, Applied::Always);
            let more = self.choices(child, level + 1)?;
            let more: Vec<Choice> =
                more.iter().filter_map(|choice| choice.within(schema, None)).collect();
            if let Some(both) = combined(&all, &more) {
                all = both;
            }
        }
        for (how, union) in [(Applied::Any, BranchUnion::Any), (Applied::One, BranchUnion::One)] {
            let mut live = Vec::new();
            for &(child, _) in applied.iter().filter(|child| child.1 == how) {
                if self.type_formula(child, Type::Object)? != FormulaId::FALSE {
                    live.push(child);
                }
            }
            if !live.is_empty() && self.name_differently(schema, &live, level)? {
                self.take_each(schema, union, &live, level, &mut all)?;
            }
        }
        let of = |how: Applied| applied.iter().find(|child| child.1 == how).map(|child| child.0);
        if let (Some(met), Some(unmet)) = (of(Applied::Then), of(Applied::Else))
            && self.stand_in_other_orders(met, unmet)?
        {
            self.take_each(schema, BranchUnion::Condition, &[met, unmet], level, &mut all)?;
        }
        let all: Rc<[Choice]> = all.into();
        self.choices.insert(schema, all.clone());
        Ok(all)
    }

    /// Adds the branches of a union to the choices of a schema, where these do not become too many.
    fn take_each(
        &mut self,
        schema: SchemaId,
        union: BranchUnion,
        branches: &[SchemaId],
        level: usize,
        all: &mut Vec<Choice>,
    ) -> Result<()> {
        let mut more: Vec<Choice> = Vec::new();
        for &branch in branches {
            for choice in self.choices(branch, level + 1)?.iter() {
                more.extend(choice.within(schema, Some((union, branch))));
            }
            self.spend(1)?;
        }
        if let Some(both) = combined(all, &more) {
            *all = both;
        }
        Ok(())
    }

    /// Whether branches of a schema name other members, or the same ones in another order.
    fn name_differently(
        &mut self,
        schema: SchemaId,
        branches: &[SchemaId],
        level: usize,
    ) -> Result<bool> {
        let mut own: FxHashMap<NameId, usize> = FxHashMap::default();
        if let SchemaKey::Schema(node, _) = self.key(schema) {
            own.extend(self.property_names(node)?.iter().copied().zip(0..));
        }
        let mut first: Option<(Vec<NameId>, bool)> = None;
        for &branch in branches {
            if self.choices(branch, level + 1)?.len() > 1 {
                return Ok(true);
            }
            let mut names = self.walked_names(branch)?;
            if !names.iter().filter_map(|name| own.get(name)).is_sorted() {
                return Ok(true);
            }
            names.retain(|name| !own.contains_key(name));
            // What a closed object may have besides depends on the branch.
            let closes = !self.options.open_objects
                && !self.closing_branches(&[(branch, true)], &Choice::default())?.is_empty();
            if closes && branches.len() > 1 {
                return Ok(true);
            }
            let of_branch = (names, closes);
            match &first {
                Some(known) if *known != of_branch => return Ok(true),
                Some(_) => {}
                None => first = Some(of_branch),
            }
        }
        Ok(false)
    }

    /// Whether the names of one schema, and then those that only another has, are not in the order of the
    /// other.
    fn stand_in_other_orders(&mut self, first: SchemaId, second: SchemaId) -> Result<bool> {
        let mut places: FxHashMap<NameId, usize> = FxHashMap::default();
        for schema in [first, second] {
            for name in self.walked_names(schema)? {
                let next = places.len();
                places.entry(name).or_insert(next);
            }
        }
        let names = self.walked_names(second)?;
        Ok(!names.iter().filter_map(|name| places.get(name)).is_sorted())
    }

    /// An order in which the names of the branches that are taken stand as these have them, where the
    /// order that begins with what stands beside them does not have them so.
    fn order_of_branches(&mut self, order: OrderId, choice: &Choice) -> Result<Option<OrderId>> {
        let whole = self.orders.get(order).clone();
        let mut names = whole.to_vec();
        for &(_, branch) in &choice.taken {
            let known: FxHashSet<NameId> = names.iter().copied().collect();
            let mut of_branch = self.walked_names(branch)?;
            of_branch.retain(|name| known.contains(name));
            self.spend(1 + names.len())?;
            let theirs: FxHashSet<NameId> = of_branch.iter().copied().collect();
            let mut due = of_branch.into_iter();
            for name in names.iter_mut().filter(|name| theirs.contains(name)) {
                if let Some(next) = due.next() {
                    *name = next;
                }
            }
        }
        Ok((*names != **whole).then(|| self.orders.intern(names.into())))
    }

    /// The formula without names that a closed object does not have.
    pub(super) fn without_names(
        &mut self,
        mut formula: FormulaId,
        owner: SchemaId,
        branches: &[Branch],
    ) -> Result<FormulaId> {
        let plainly = self.plainly_covered(branches)?;
        'names: for name in self.mentioned(formula)? {
            if plainly.contains(&name) {
                continue;
            }
            for &(_, branch) in branches {
                if self.covers(owner, branch, Member::Named(name))? {
                    continue 'names;
                }
            }
            formula = self.absent(formula, name, 0)?;
        }
        Ok(formula)
    }

    /// The names in the `properties` of branches, which cover these members whatever else they say.
    pub(super) fn plainly_covered(&mut self, branches: &[Branch]) -> Result<FxHashSet<NameId>> {
        let mut out = FxHashSet::default();
        for &(_, branch) in branches {
            if let SchemaKey::Schema(node, _) = self.key(branch) {
                let names = self.property_names(node)?;
                self.spend(1 + names.len())?;
                out.extend(names.iter().copied());
            }
        }
        Ok(out)
    }
}
