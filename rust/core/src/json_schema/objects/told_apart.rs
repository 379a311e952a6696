//! Unions of objects that a member tells apart: of each branch it has texts that no other has. Branches that do not
//! require it say the same of all that comes behind it.
//!
//! What such a branch leaves is read off as if it stood alone. A formula of all branches would be written anew for each
//! text of the member, in quadratic time.

use super::unjoined::Unjoined;
use crate::error::Result;
use crate::json_schema::atoms::{Atom, NameId, SchemaKey, Type, ValueId};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use rustc_hash::FxHashSet;

/// What all branches ask for, apart from the names that a closed object may have.
type Shared = Vec<FormulaId>;

impl Converter<'_> {
    /// The branches of a union, each with what it says of members, where a member tells them apart and none has
    /// conditions of its own; `names` are the known ones, in order.
    pub(super) fn told_apart(
        &mut self,
        formula: FormulaId,
        names: &[NameId],
    ) -> Result<Option<Vec<(FormulaId, Unjoined)>>> {
        let Some((shared, closing, branches)) = self.union_of(formula) else { return Ok(None) };
        // Branches that name few of the members would each say of all the others that they may be anything.
        let mut named = 0;
        for &branch in &branches {
            named += self.mentioned(branch)?.len();
        }
        for &part in &shared {
            named += branches.len() * self.mentioned(part)?.len();
        }
        if names.len() * branches.len() > 2 * named {
            return Ok(None);
        }
        let mut out = Vec::with_capacity(branches.len());
        for &branch in &branches {
            let mut parts = shared.clone();
            parts.push(branch);
            for &atom in &closing {
                let Some(closed) = self.closed_under(atom, branch, &branches) else {
                    return Ok(None);
                };
                parts.push(closed);
            }
            self.spend(1 + parts.len())?;
            let whole = self.formulas.and(parts);
            let Some(object) = self.unjoined(whole, (names, 0))? else { return Ok(None) };
            out.push((whole, object));
        }
        Ok(self.is_told_apart(names, &out)?.then_some(out))
    }

    /// A formula as what its branches share, the atoms that close the object, and the branches.
    fn union_of(&self, formula: FormulaId) -> Option<(Shared, Vec<u32>, Vec<FormulaId>)> {
        let (mut shared, mut closing, mut branches) = (Vec::new(), Vec::new(), None);
        for part in self.formulas.conjuncts(formula) {
            match self.formulas.get(part) {
                Formula::Or(parts) if branches.is_none() => branches = Some(parts.to_vec()),
                &Formula::Literal(atom, true) => match self.atom(atom) {
                    Atom::UnevaluatedProperties(owner, _)
                        if self.key(*owner) == SchemaKey::Closed =>
                    {
                        closing.push(atom);
                    }
                    _ => shared.push(part),
                },
                _ => return None,
            }
        }
        Some((shared, closing, branches?))
    }

    /// What is left of an atom that closes an object where one of some branches holds and no other does.
    fn closed_under(
        &mut self,
        atom: u32,
        branch: FormulaId,
        branches: &[FormulaId],
    ) -> Option<FormulaId> {
        let Atom::UnevaluatedProperties(owner, described) = self.atom(atom).clone() else {
            return None;
        };
        let mut holding = Vec::with_capacity(described.len());
        for (condition, schema) in described {
            if condition == FormulaId::TRUE || condition == branch {
                holding.push((FormulaId::TRUE, schema));
            } else if branches.binary_search(&condition).is_err() {
                return None;
            }
        }
        Some(self.unevaluated_atom(Atom::UnevaluatedProperties, owner, holding))
    }

    /// Whether the first name of which branches say different things has texts of its own in each, and those that do
    /// not require it are alike behind it.
    fn is_told_apart(
        &mut self,
        names: &[NameId],
        branches: &[(FormulaId, Unjoined)],
    ) -> Result<bool> {
        let Some(((_, first), others)) = branches.split_first() else { return Ok(false) };
        for (place, &name) in names.iter().enumerate() {
            self.spend(1 + branches.len() / 4)?;
            let said = |object: &Unjoined| (object.values[place], object.requires(name));
            if others.iter().all(|(_, object)| said(object) == said(first)) {
                continue;
            }
            let mut met: FxHashSet<String> = FxHashSet::default();
            for value in branches.iter().filter_map(|(_, object)| object.values[place]) {
                let Some(texts) = self.texts_of(value)? else { return Ok(false) };
                self.spend(1 + texts.len())?;
                if !texts.into_iter().all(|text| met.insert(text)) {
                    return Ok(false);
                }
            }
            let without = branches.iter().filter(|(_, object)| !object.requires(name));
            return self.are_alike(&names[place + 1..], &without.collect::<Vec<_>>());
        }
        Ok(false)
    }

    /// Whether branches say the same of the last names, and of what comes behind them.
    fn are_alike(&mut self, last: &[NameId], branches: &[&(FormulaId, Unjoined)]) -> Result<bool> {
        let mut known = None;
        for (formula, object) in branches {
            self.spend(1 + last.len())?;
            let required = last.iter().map(|&name| object.requires(name));
            let values = object.values[object.values.len() - last.len()..].iter().copied();
            let end = match self.has_no_others(*formula)? {
                true => Err(self.ends(object.rest)),
                false => Ok(object.rest),
            };
            let said = (required.zip(values).collect::<Vec<_>>(), end);
            if *known.get_or_insert_with(|| said.clone()) != said {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The texts that a value may be; `None` where it may be something else, or they are not listed.
    fn texts_of(&mut self, value: ValueId) -> Result<Option<Vec<String>>> {
        let key = **self.values.get(value);
        let mut others = Type::ALL.into_iter().filter(|&kind| kind != Type::String);
        match others.all(|kind| key.of(kind) == FormulaId::FALSE) {
            true => self.listed_texts(key.of(Type::String)),
            false => Ok(None),
        }
    }
}
