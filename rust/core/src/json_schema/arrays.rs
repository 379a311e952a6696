//! Arrays: an automaton over items, whose states are what is left of a formula. Bounds on the number of
//! items beside plain items are counted, never written out.

use super::atoms::{ArrayId, Atom, SchemaId};
use super::automata::{ArrayAutomaton, ArrayState};
use super::converter::Converter;
use super::formula::{Formula, FormulaId};
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;

/// Bounds on the number of items beside conditions on items by their place.
struct ItemBounds {
    least: u32,
    most: Option<u32>,
    conditions: FormulaId,
    /// The schema whose `uniqueItems` is said by the set of the items that were read.
    distinct: Option<SchemaId>,
}

/// In a union of arrays, bounds of up to so many items are written out.
const WRITTEN_OUT: u32 = 8;
/// States of one array that count items. With more, the bounds are written out.
const MAX_COUNTED: usize = 16;

impl Converter<'_> {
    /// The automaton of a formula of arrays.
    pub(super) fn array(&mut self, formula: FormulaId) -> Result<ArrayId> {
        if let Some(&known) = self.array_numbers.get(&formula) {
            return Ok(known);
        }
        let positive = self.without_repeated(formula)?;
        let automaton = match self.unique_array(positive)? {
            Some(unique) => unique,
            None => match self.plain_array(positive)? {
                Some(plain) => plain,
                None => self.array_states(positive)?,
            },
        };
        let id = ArrayId::from(self.arrays.len());
        self.arrays.push(automaton);
        self.array_numbers.insert(formula, id);
        Ok(id)
    }

    /// What a conjunction says, where it has bounds and conditions on items alone.
    fn item_bounds(&mut self, formula: FormulaId) -> Option<ItemBounds> {
        let (mut least, mut most) = (0, None::<u32>);
        let mut conditions = Vec::new();
        let mut distinct = None;
        for part in self.formulas.conjuncts(formula) {
            let Formula::Literal(number, sign) = *self.formulas.get(part) else { return None };
            match (self.atom(number), sign) {
                (Atom::AtLeastItems(count), true) => least = least.max(*count),
                (Atom::AtLeastItems(count), false) => {
                    most = Some(most.unwrap_or(u32::MAX).min(count - 1));
                }
                (Atom::Items(_), true) => conditions.push(part),
                (Atom::Distinct(schema, _), true)
                    if self.keeps_items(*schema) && distinct.is_none() =>
                {
                    distinct = Some(*schema);
                }
                _ => return None,
            }
        }
        let conditions = self.formulas.and(conditions);
        Some(ItemBounds { least, most, conditions, distinct })
    }

    /// The automaton of a conjunction of bounds on the number of items and of conditions on items by
    /// their place.
    fn plain_array(&mut self, formula: FormulaId) -> Result<Option<ArrayAutomaton>> {
        let Some(bounds) = self.item_bounds(formula) else { return Ok(None) };
        let ItemBounds { least, most, conditions: items, distinct } = bounds;
        let prefix_length = self.prefix_length(items)?;
        if let Some(schema) = distinct {
            return match prefix_length {
                0 => self.distinct_items(schema, items, (least, most)),
                _ => Ok(None),
            };
        }
        let mut prefix = Vec::new();
        for index in 0..=prefix_length {
            if index < prefix_length && most.is_some_and(|most| index >= most as usize) {
                break;
            }
            self.count_state()?;
            let rest = self.item(items, index, 0)?;
            let value = match self.edges(rest)?.as_ref() {
                [] => None,
                [(value, _)] => Some(*value),
                _ => return Ok(None), // conditions on items are one condition
            };
            if index == prefix_length {
                return Ok(Some(ArrayAutomaton::Plain { prefix, rest: value, least, most }));
            }
            match value {
                Some(value) => prefix.push(value),
                // No item can stand here, nor behind.
                None => {
                    let most = Some(most.unwrap_or(u32::MAX).min(index as u32));
                    return Ok(Some(ArrayAutomaton::Plain { prefix, rest: None, least, most }));
                }
            }
        }
        Ok(Some(ArrayAutomaton::Plain { prefix, rest: None, least, most }))
    }

    /// Values that may each be an item once, of those that satisfy the conditions on items.
    fn distinct_items(
        &mut self,
        schema: SchemaId,
        conditions: FormulaId,
        (least, most): (u32, Option<u32>),
    ) -> Result<Option<ArrayAutomaton>> {
        let asked = self.item(conditions, 0, 0)?;
        let mut items = Vec::new();
        for &one in self.distinct[&schema].clone().iter() {
            let value = self.value(one);
            let both = self.formulas.and([asked, value]);
            match self.edges(both)?.as_ref() {
                [] => {}
                [(value, _)] => items.push(*value),
                _ => return Ok(None),
            }
            self.spend(1)?;
        }
        Ok(Some(ArrayAutomaton::Distinct { schema, items, least, most }))
    }

    /// That which items were read cannot be kept in states: there are too many sets of them.
    fn too_many_sets(&self, formula: FormulaId) -> Option<Error> {
        let atoms = self.formulas.atoms_of(formula);
        let schema = atoms.into_iter().find_map(|(number, _)| match self.atom(number) {
            Atom::Distinct(schema, _) if self.keeps_items(*schema) => Some(*schema),
            _ => None,
        })?;
        let count = self.distinct[&schema].len();
        let message = format!(
            "which of {count} items were read can be kept only where nothing but `items`, `minItems` \
             and `maxItems` stands beside the keyword; list 12 values or fewer, or remove other conditions \
             on the array"
        );
        Some(self.unsupported(self.place(schema), "uniqueItems", message))
    }

    /// A state that counts the items that follow, where these are of one kind and their bounds are large;
    /// `index` is behind all places with items of their own.
    fn counted_items(&mut self, formula: FormulaId, index: usize) -> Result<Option<ArrayState>> {
        let Some(bounds) = self.item_bounds(formula) else { return Ok(None) };
        let ItemBounds { least, most, conditions, distinct } = bounds;
        let is_long = least.max(most.unwrap_or(0)) > WRITTEN_OUT;
        if !is_long || distinct.is_some() || most.is_some_and(|most| most < least) {
            return Ok(None);
        }
        let item = self.item(conditions, index, 0)?;
        Ok(match self.edges(item)?.as_ref() {
            &[(value, rest)] if rest == conditions => {
                let items = vec![(value, 0)];
                Some(ArrayState { items, is_final: least == 0, counted: Some((least, most)) })
            }
            _ => None,
        })
    }

    fn array_states(&mut self, formula: FormulaId) -> Result<ArrayAutomaton> {
        if let Some(error) = self.too_many_sets(formula) {
            return Err(error);
        }
        Ok(ArrayAutomaton::States(self.states_of(formula)?))
    }

    /// The states of a formula, whatever it asks for.
    pub(super) fn states_of(&mut self, formula: FormulaId) -> Result<Vec<ArrayState>> {
        if let Some(states) = self.states_within(formula, MAX_COUNTED)? {
            return Ok(states);
        }
        Ok(self.states_within(formula, 0)?.unwrap_or_default())
    }

    /// The states of a formula; `None` where more of them would count items than `max_counted`. With 0, all
    /// bounds are written out.
    fn states_within(
        &mut self,
        formula: FormulaId,
        max_counted: usize,
    ) -> Result<Option<Vec<ArrayState>>> {
        let last = self.prefix_length(formula)?;
        let mut places: Vec<(usize, FormulaId)> = vec![(0, formula)];
        let mut numbers: FxHashMap<(usize, FormulaId), u32> =
            [((0, formula), 0)].into_iter().collect();
        let mut states: Vec<ArrayState> = Vec::new();
        let mut counted = 0;
        while states.len() < places.len() {
            let number = states.len();
            let (index, formula) = places[number];
            self.count_state()?;
            if max_counted > 0
                && number > 0
                && index == last
                && let Some(mut state) = self.counted_items(formula, index)?
            {
                if counted == max_counted {
                    return Ok(None);
                }
                counted += 1;
                state.items.iter_mut().for_each(|item| item.1 = number as u32);
                states.push(state);
                continue;
            }
            let rest = self.item(formula, index, 0)?;
            let is_final = self.ends(formula);
            let mut state = ArrayState { items: Vec::new(), is_final, counted: None };
            for &(value, rest) in self.edges(rest)?.iter() {
                let place = ((index + 1).min(last), rest);
                let to = *numbers.entry(place).or_insert_with(|| {
                    places.push(place);
                    places.len() as u32 - 1
                });
                state.items.push((value, to));
            }
            self.spend(1 + state.items.len())?;
            states.push(state);
        }
        Ok(Some(states))
    }
}
