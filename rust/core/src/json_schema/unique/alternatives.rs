//! Alternatives of an array of which some ask for unique items.
//!
//! Design: docs/design/unique-items.md, "Alternatives".

use super::super::atoms::{ArrayId, Atom, SchemaId};
use super::super::automata::{ArrayAutomaton, ArrayState};
use super::super::converter::Converter;
use super::super::formula::{Formula, FormulaId};
use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// So many alternatives of one array are kept apart.
pub(super) const MOST_WAYS: usize = 16;
/// The states of an array are counted through where there are so many.
const MOST_STATES: usize = 512;

impl Converter<'_> {
    /// A formula of arrays without demands for a repeated item.
    ///
    /// Let `u` say that no two items are equal. A formula is `u` and what is left where `u` holds, or not
    /// `u` and what is left where it does not. A repeated item takes two items. So where what the second
    /// part leaves of arrays of two items or more is what the first part leaves of them as well, the
    /// second holds for these whether an item is repeated or not. This is the case in a `oneOf` of sets
    /// of integers and sets of strings, which overlap in the empty array alone.
    ///
    /// # Errors
    /// That of [`Self::repeated_items`] where that is not seen.
    pub(in crate::json_schema) fn without_repeated(
        &mut self,
        formula: FormulaId,
    ) -> Result<FormulaId> {
        let atoms = self.formulas.atoms_of(formula).into_iter();
        let mut negated =
            atoms.filter(|&(_, sign)| !sign).filter_map(|(atom, _)| match self.atom(atom) {
                Atom::Unique(schema) | Atom::Distinct(schema, _) => Some(*schema),
                _ => None,
            });
        let Some(schema) = negated.next() else { return Ok(formula) };
        if let Some(&known) = self.positive_arrays.get(&formula) {
            return Ok(known);
        }
        let is_said = |atom: &Atom| matches!(atom, Atom::Unique(_) | Atom::Distinct(..));
        let with = self.supposing(formula, true, is_said)?;
        let without = self.supposing(formula, false, is_said)?;
        let two = self.formulas.literal(Atom::AtLeastItems(2));
        let without = self.formulas.and([without, two]);
        let opposite = self.formulas.not(with);
        let only_without = self.formulas.and([without, opposite]);
        if !self.has_no_array(only_without)? {
            return Err(self.repeated_items(schema));
        }
        let unique = self.formulas.literal(Atom::Unique(schema));
        let with = self.formulas.and([unique, with]);
        let positive = self.formulas.or([with, without]);
        self.positive_arrays.insert(formula, positive);
        Ok(positive)
    }

    /// What is left of a formula where some atoms are true, or false.
    pub(super) fn supposing(
        &mut self,
        formula: FormulaId,
        holds: bool,
        is_meant: impl Fn(&Atom) -> bool,
    ) -> Result<FormulaId> {
        let parts = self.formulas.parts(formula);
        self.spend(1 + parts.len())?;
        let mut new: Vec<FormulaId> = Vec::with_capacity(parts.len());
        for &part in &parts {
            let replaced = match *self.formulas.get(part) {
                Formula::Literal(atom, sign) if is_meant(self.atom(atom)) => {
                    FormulaId::of(holds == sign)
                }
                _ => self.formulas.rejoined(part, |operand| {
                    parts.binary_search(&operand).map_or(operand, |at| new[at])
                }),
            };
            new.push(replaced);
        }
        Ok(new.last().copied().unwrap_or(formula))
    }

    /// Whether no array satisfies a formula that says nothing of unique items, as far as the types and
    /// listed values of items tell.
    fn has_no_array(&mut self, formula: FormulaId) -> Result<bool> {
        if formula == FormulaId::FALSE {
            return Ok(true);
        }
        match self.states_of(formula) {
            Ok(states) => Ok(!states.iter().any(|state| state.is_final || state.counted.is_some())),
            Err(Error::Schema { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// A formula none of whose parts asks for unique items within a disjunction: an automaton for each of
    /// its disjuncts that does so, one for all others; `None` where there is one disjunct, or where they
    /// are many.
    pub(super) fn alternatives_of_unique(
        &mut self,
        formula: FormulaId,
    ) -> Result<Option<ArrayAutomaton>> {
        if !self.keeps_what_was_read(formula) {
            return Ok(None);
        }
        let ways = match self.ways_of_unique(formula, false)? {
            Some(ways) => Some(ways),
            None => self.ways_of_unique(formula, true)?,
        };
        let Some(ways) = ways else { return Ok(None) };
        let (kept, others): (Vec<FormulaId>, Vec<FormulaId>) =
            ways.into_iter().partition(|&way| self.keeps_what_was_read(way));
        let others = self.formulas.or(others);
        let mut arrays: Vec<ArrayId> = Vec::new();
        for way in kept.into_iter().chain([others]).filter(|&way| way != FormulaId::FALSE) {
            let array = self.array(way)?;
            match &self.arrays[usize::from(array)] {
                ArrayAutomaton::Either(more) => arrays.extend(more.iter()),
                _ => arrays.push(array),
            }
        }
        arrays.sort_unstable();
        arrays.dedup();
        self.nest_all(&mut arrays);
        Ok(Some(ArrayAutomaton::Either(arrays.into())))
    }

    /// The disjuncts of a formula that ask for unique items on their own, and the others; or all.
    fn ways_of_unique(
        &mut self,
        formula: FormulaId,
        takes_all: bool,
    ) -> Result<Option<Vec<FormulaId>>> {
        let mut ways: Vec<FormulaId> = Vec::new();
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            self.spend(1)?;
            if ways.len() + work.len() >= MOST_WAYS {
                return Ok(None);
            }
            let parts = self.formulas.conjuncts(formula);
            let is_choice = |&part: &FormulaId| {
                matches!(self.formulas.get(part), Formula::Or(_))
                    && (takes_all || self.keeps_what_was_read(part))
            };
            let Some(choice) = parts.iter().position(is_choice) else {
                ways.push(formula);
                continue;
            };
            for disjunct in self.formulas.disjuncts(parts[choice]).into_iter().rev() {
                let others = parts.iter().copied().filter(|&part| part != parts[choice]);
                let way = self.formulas.and(others.chain([disjunct]).collect::<Vec<_>>());
                work.push(way);
            }
        }
        ways.retain(|&way| way != FormulaId::FALSE);
        Ok(Some(ways).filter(|ways| ways.len() > 1 || ways.first() != Some(&formula)))
    }

    /// Whether a formula asks for unique items that are not kept in states.
    fn keeps_what_was_read(&self, formula: FormulaId) -> bool {
        let atoms = self.formulas.atoms_of(formula);
        atoms.into_iter().any(|(number, _)| match self.atom(number) {
            Atom::Unique(_) => true,
            Atom::Distinct(schema, _) => self.keeps_items(*schema),
            _ => false,
        })
    }

    /// One reader reads the items of all alternatives: where those of one may be arrays and objects, it is
    /// the reader of such items.
    fn nest_all(&mut self, arrays: &mut [ArrayId]) {
        let is_nested = |array: &ArrayId| {
            let array = &self.arrays[usize::from(*array)];
            matches!(array, ArrayAutomaton::Unique { items, .. } if items.nested)
        };
        if !arrays.iter().any(is_nested) {
            return;
        }
        for array in arrays {
            let mut automaton = self.arrays[usize::from(*array)].clone();
            let ArrayAutomaton::Unique { items, .. } = &mut automaton else { continue };
            if !std::mem::replace(&mut items.nested, true) {
                (items.endless_numbers, items.endless_integers) = (false, false);
                items.whole_numbers = false;
                items.ends_within = None;
                *array = ArrayId::from(self.arrays.len());
                self.arrays.push(automaton);
            }
        }
    }

    /// A schema that asks an array for unique items, if all that is left of the array does.
    pub(in crate::json_schema) fn surely_unique(
        &mut self,
        formula: FormulaId,
    ) -> Result<Option<SchemaId>> {
        let rest = self.supposing(formula, false, |atom| matches!(atom, Atom::Unique(_)))?;
        Ok(self.asks_for_unique(formula).filter(|_| rest == FormulaId::FALSE))
    }

    /// The automata that an array is a choice of: itself where it is none.
    pub(in crate::json_schema) fn alternatives_of_array(&self, id: ArrayId) -> Vec<ArrayId> {
        match &self.arrays[usize::from(id)] {
            ArrayAutomaton::Either(arrays) => arrays.to_vec(),
            _ => vec![id],
        }
    }
}

/// Whether arrays end in time, each item of which is another one of so many values.
pub(super) fn ends_within(states: &[ArrayState], count: u32) -> bool {
    if states.len() > MOST_STATES {
        return false;
    }
    // The fewest items to an end.
    let mut fewest: Vec<Option<u32>> = states
        .iter()
        .map(|state| match state.counted {
            Some((least, _)) => Some(least),
            None => state.is_final.then_some(0),
        })
        .collect();
    let mut has_changed = true;
    while std::mem::take(&mut has_changed) {
        for (place, state) in states.iter().enumerate().filter(|state| state.1.counted.is_none()) {
            let behind = state.items.iter().filter_map(|item| fewest[item.1 as usize]).min();
            let Some(more) = behind.map(|behind| behind.saturating_add(1)) else { continue };
            if fewest[place].is_none_or(|known| more < known) {
                (fewest[place], has_changed) = (Some(more), true);
            }
        }
    }
    // A walk of as many items as there are states comes to a state again, and so may have any number.
    let mut here: BTreeSet<u32> = [0].into();
    for read in 0..=states.len() as u32 {
        let may_be_any = read as usize == states.len();
        let mut behind = BTreeSet::new();
        for &state in &here {
            let Some(more) = fewest[state as usize] else { continue };
            if more > 0 && (may_be_any || read.saturating_add(more) > count) {
                return false;
            }
            if states[state as usize].counted.is_none() {
                behind.extend(states[state as usize].items.iter().map(|item| item.1));
            }
        }
        here = behind;
    }
    true
}
