//! `uniqueItems` where no list bounds the items: an array as its other conditions say, whose matcher
//! remembers what was read ([`crate::grammar::UniqueItems`]).
//!
//! Design: docs/design/unique-items.md.
//!
//! What must be shown here is that an array which has read some items can always be completed: each
//! place has infinitely many values, or all places have the same, and there are at least as many as
//! `minItems` asks for.
//!
//! File: `alternatives` (arrays of which some ask for unique items).

mod alternatives;

use super::atoms::{ArrayId, Atom, SchemaId, Type, ValueId};
use super::automata::ArrayAutomaton;
use super::cardinality::{
    has_endless_integers, has_endless_numbers, has_endless_strings, has_whole_numbers,
    longest_text, numbers_end_soon, numbers_of, strings_end_soon,
};
use super::converter::Converter;
use super::formula::{Formula, FormulaId};
use super::scalars::StringForm;
use super::sizes::Sizes;
use super::values::ReachedValues;
use crate::error::{Error, Result};
use crate::grammar::UniqueItems;
use alternatives::{MOST_WAYS, ends_within};

/// Of so many listed items there is a state for each set of those that were read.
const FEW_LISTED: usize = 8;
/// The characters that there are, at least.
const CHARACTERS: u64 = 1_000_000;

impl Converter<'_> {
    /// The automaton of an array, of one whose items are unique that of the other conditions.
    pub(super) fn array_of(&self, id: ArrayId) -> &ArrayAutomaton {
        match &self.arrays[usize::from(id)] {
            ArrayAutomaton::Unique { inner, .. } => &self.arrays[usize::from(*inner)],
            other => other,
        }
    }

    /// The automaton of a formula that asks for unique items.
    pub(super) fn unique_array(&mut self, formula: FormulaId) -> Result<Option<ArrayAutomaton>> {
        let Some(schema) = self.asks_for_unique(formula) else {
            let listed = self.unique_of_listed(formula)?;
            return match listed {
                Some(listed) => Ok(Some(listed)),
                None => self.alternatives_of_unique(formula),
            };
        };
        let known = self.unique_of_any(formula, schema);
        // What cannot be one array may be a choice of several.
        if let Err(Error::Schema { .. }) = &known
            && let Some(either) = self.alternatives_of_unique(formula)?
        {
            return Ok(Some(either));
        }
        if let Some(automaton) = self.unless_lossy(known, schema)? {
            return Ok(Some(automaton));
        }
        let all = self.derive(formula, &mut |this, atom| match this.atom(atom) {
            Atom::Unique(_) => Ok(FormulaId::TRUE),
            other => {
                let other = other.clone();
                Ok(this.formulas.literal(other))
            }
        })?;
        let plain = self.array(all)?;
        Ok(Some(self.arrays[usize::from(plain)].clone()))
    }

    /// The automaton of a formula that asks for unique items, which no list bounds.
    fn unique_of_any(&mut self, formula: FormulaId, schema: SchemaId) -> Result<ArrayAutomaton> {
        let is_unique = |atom: &Atom| matches!(atom, Atom::Unique(_));
        if self.supposing(formula, false, is_unique)? != FormulaId::FALSE {
            let message = format!(
                "more than {MOST_WAYS} alternatives of the array ask for unique items or do not, each \
                 with conditions of its own; write fewer, or the keyword beside them"
            );
            return Err(self.refused(schema, &message));
        }
        let others = self.supposing(formula, true, is_unique)?;
        let inner = self.array(others)?;
        if let ArrayAutomaton::Plain { most: Some(0 | 1), .. } = self.arrays[usize::from(inner)] {
            return Ok(self.arrays[usize::from(inner)].clone());
        }
        Ok(match self.unique_of(inner, schema)? {
            Some(items) => ArrayAutomaton::Unique { schema, inner, items },
            // There are fewer values than items.
            None => {
                ArrayAutomaton::Plain { prefix: Vec::new(), rest: None, least: 1, most: Some(0) }
            }
        })
    }

    /// The same of a formula whose items are listed, if they are scalars and so many that the sets of those
    /// that were read are many.
    fn unique_of_listed(&mut self, formula: FormulaId) -> Result<Option<ArrayAutomaton>> {
        let (mut others, mut asks) = (Vec::new(), None);
        for part in self.formulas.conjuncts(formula) {
            match *self.formulas.get(part) {
                Formula::Literal(number, true) if asks.is_none() => match *self.atom(number) {
                    Atom::Distinct(schema, _) if self.distinct[&schema].len() > FEW_LISTED => {
                        asks = Some(schema);
                    }
                    _ => others.push(part),
                },
                _ => others.push(part),
            }
        }
        let others = self.formulas.and(others);
        let Some(schema) = asks.filter(|_| !self.has_distinct(others)) else { return Ok(None) };
        if self.prefix_length(others)? > 0 {
            return Ok(None);
        }
        let inner = self.array(others)?;
        if !matches!(self.arrays[usize::from(inner)], ArrayAutomaton::Plain { .. }) {
            return Ok(None);
        }
        match self.unique_of(inner, schema) {
            // Objects and arrays among them are kept as sets.
            Ok(Some(items)) if items.nested => Ok(None),
            Ok(Some(items)) => Ok(Some(ArrayAutomaton::Unique { schema, inner, items })),
            Ok(None) | Err(Error::Schema { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn has_distinct(&self, formula: FormulaId) -> bool {
        let atoms = self.formulas.atoms_of(formula);
        atoms.into_iter().any(|(number, _)| matches!(self.atom(number), Atom::Distinct(..)))
    }

    /// A schema in a formula that asks for unique items, if there is one.
    fn asks_for_unique(&self, formula: FormulaId) -> Option<SchemaId> {
        let atoms = self.formulas.atoms_of(formula);
        atoms.into_iter().find_map(|(number, _)| match self.atom(number) {
            Atom::Unique(schema) => Some(*schema),
            _ => None,
        })
    }

    pub(super) fn refused(&self, schema: SchemaId, why: &str) -> Error {
        let message = format!("{why}, or pass lossy={{\"uniqueItems\"}} and check the result");
        self.unsupported(self.place(schema), "uniqueItems", message)
    }

    /// What is known of the items of an array; `None` where there are fewer than it must have.
    fn unique_of(&mut self, inner: ArrayId, schema: SchemaId) -> Result<Option<UniqueItems>> {
        let (values, least) = self.items_of_array(inner, schema)?;
        let mut out = UniqueItems::ENDLESS;
        let mut is_exact = true;
        for &value in &values {
            let (items, counts_all) = self.items_of_value(value)?;
            out = out.both(items);
            is_exact &= counts_all;
        }
        let is_plain = matches!(self.arrays[usize::from(inner)], ArrayAutomaton::Plain { .. });
        if !is_plain || out.nested {
            out.ends_within = None;
        }
        for &value in &values {
            let Some(most) = out.ends_within else { break };
            out.ends_within = self.values_end_within(value)?.map(|own| own.max(most));
        }
        // As many items as the array must have may be longer than those of a shortest completion.
        out.ends_within = out.ends_within.and_then(|most| most.checked_mul(least.max(1)));
        match self.suffices((inner, &values), least, out, is_exact, schema)? {
            true => Ok(Some(out)),
            false => Ok(None),
        }
    }

    /// The bytes that end an item which is equal to none of those before, at most; see
    /// [`UniqueItems::ends_within`].
    fn values_end_within(&mut self, value: ValueId) -> Result<Option<u32>> {
        let key = **self.values.get(value);
        let (strings, numbers) = (key.of(Type::String), key.of(Type::Number));
        let soon = |is_soon: bool| is_soon.then_some(UniqueItems::SOON);
        // Quotes, and each character as two escape sequences.
        let of_characters = |most: u32| most.saturating_mul(12).saturating_add(2);
        let strings = match strings {
            FormulaId::FALSE => Some(0),
            _ => match self.text(strings)? {
                StringForm::Characters(_, Some(most)) | StringForm::Counted(_, _, Some(most)) => {
                    Some(of_characters(most))
                }
                StringForm::Characters(..) => Some(UniqueItems::SOON),
                StringForm::Automaton(automaton) => {
                    self.spend(automaton.num_states())?;
                    let longest = longest_text(&automaton).map(of_characters);
                    longest.or_else(|| soon(strings_end_soon(&automaton)))
                }
                StringForm::Counted(automaton, 0, None) => {
                    self.spend(automaton.num_states())?;
                    soon(strings_end_soon(&automaton))
                }
                _ => None,
            },
        };
        let numbers = match numbers {
            FormulaId::FALSE => Some(0),
            _ => {
                let automaton = self.written_numbers(numbers)?;
                self.spend(automaton.num_states())?;
                longest_text(&automaton).or_else(|| soon(numbers_end_soon(&automaton)))
            }
        };
        // Literals are among the least that an item of any type may need.
        let literals = 8;
        Ok(strings.zip(numbers).map(|(strings, numbers)| strings.max(numbers).max(literals)))
    }

    /// Whether arrays of such items can be completed whatever they have read; false where there are fewer
    /// values than an array must have.
    fn suffices(
        &self,
        (inner, values): (ArrayId, &[ValueId]),
        least: u32,
        items: UniqueItems,
        is_exact: bool,
        schema: SchemaId,
    ) -> Result<bool> {
        if values.len() > 1 && items.least < u32::MAX {
            return Err(self.refused(
                schema,
                "items at different places have conditions of their own, and those at some place have \
                 finitely many values, which others could take; give all items one schema, and take `contains` out",
            ));
        }
        if let ArrayAutomaton::States(states) = &self.arrays[usize::from(inner)]
            && items.least < u32::MAX
        {
            self.spend(states.len())?;
            if !ends_within(states, items.least) {
                return Err(self.refused(
                    schema,
                    "other keywords ask for items, and it cannot be shown that there are as many \
                     different ones; remove these keywords, or allow more values",
                ));
            }
        }
        if least > items.least.max(1) {
            if is_exact {
                return Ok(false);
            }
            let message = format!(
                "minItems asks for {least} different items, and it cannot be shown that there are so \
                 many; lower it"
            );
            return Err(self.refused(schema, &message));
        }
        Ok(true)
    }

    /// The values of the items of an array, and how many items it must have.
    pub(super) fn items_of_array(
        &self,
        inner: ArrayId,
        schema: SchemaId,
    ) -> Result<(Vec<ValueId>, u32)> {
        let (mut values, least): (Vec<ValueId>, u32) = match &self.arrays[usize::from(inner)] {
            ArrayAutomaton::Plain { prefix, rest, least, .. } => {
                (prefix.iter().chain(rest).copied().collect(), *least)
            }
            ArrayAutomaton::States(states) => {
                let items = states.iter().flat_map(|state| &state.items).map(|item| item.0);
                (items.collect(), 0)
            }
            ArrayAutomaton::Unique { .. }
            | ArrayAutomaton::Distinct { .. }
            | ArrayAutomaton::Either(_) => {
                return Err(self.refused(schema, "the keyword stands beside itself; write it once"));
            }
        };
        values.sort_unstable();
        values.dedup();
        Ok((values, least))
    }

    /// A result, or `None` where it is a refusal and `lossy` leaves the keyword out instead.
    fn unless_lossy<T>(&mut self, known: Result<T>, schema: SchemaId) -> Result<Option<T>> {
        match known {
            Err(Error::Schema { .. }) if self.options.lossy_unique_items => {
                let pointer = self.schemas.arena().pointer(self.place(schema));
                if !self.not_enforced.contains(&pointer) {
                    self.not_enforced.push(pointer);
                }
                Ok(None)
            }
            known => known.map(Some),
        }
    }

    /// Completes what is known of arrays whose unique items may be arrays and objects, when all values are
    /// known.
    pub(super) fn settle_unique_items(&mut self, values: &ReachedValues) -> Result<()> {
        let arrays = values.all.values().filter_map(|value| value.array);
        let mut arrays: Vec<ArrayId> =
            arrays.flat_map(|array| self.alternatives_of_array(array)).collect();
        arrays.sort_unstable();
        arrays.dedup();
        let is_nested = |array: &ArrayId| {
            let array = &self.arrays[usize::from(*array)];
            matches!(array, ArrayAutomaton::Unique { items, .. } if items.nested)
        };
        arrays.retain(is_nested);
        if arrays.is_empty() {
            return Ok(());
        }
        let sizes = Sizes::of(self, values)?;
        let whole_numbers = values.numbers.values().all(has_whole_numbers);
        let endless_numbers = values.numbers.values().all(has_endless_numbers);
        let endless_integers = values.numbers.values().all(has_endless_integers);
        for array in arrays {
            let ArrayAutomaton::Unique { schema, inner, items } = self.arrays[usize::from(array)]
            else {
                continue;
            };
            let (held, least) = self.items_of_array(inner, schema)?;
            let fewest = held.iter().map(|&value| sizes.of_value(value)).min().unwrap_or(0);
            let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
            let items = UniqueItems {
                least: fewest,
                whole_numbers,
                endless_numbers,
                endless_integers,
                ..items
            };
            let known = self.suffices((inner, &held), least, items, false, schema);
            self.arrays[usize::from(array)] = match self.unless_lossy(known, schema)? {
                Some(_) => ArrayAutomaton::Unique { schema, inner, items },
                None => self.arrays[usize::from(inner)].clone(),
            };
        }
        Ok(())
    }

    /// What is known of the values that an item may have, and whether they are no more than that says.
    fn items_of_value(&mut self, value: ValueId) -> Result<(UniqueItems, bool)> {
        let key = **self.values.get(value);
        let mut out = UniqueItems { least: 0, ..UniqueItems::ENDLESS };
        let (mut count, mut is_exact) = (0u64, true);
        if [Type::Object, Type::Array].iter().any(|&kind| key.of(kind) != FormulaId::FALSE) {
            // How many there are is seen when all values that they hold are known.
            out = UniqueItems {
                nested: true,
                whole_numbers: false,
                endless_numbers: false,
                endless_integers: false,
                ..out
            };
            (count, is_exact) = (u64::from(u32::MAX), false);
        }
        let strings = key.of(Type::String);
        if strings != FormulaId::FALSE {
            let (is_endless, strings, counts_all) = self.strings_of(strings)?;
            is_exact &= counts_all;
            out.endless_strings = is_endless;
            out.strings = u32::try_from(strings).unwrap_or(u32::MAX);
            count = count.saturating_add(strings);
        }
        let numbers = key.of(Type::Number);
        if numbers != FormulaId::FALSE {
            let automaton = self.written_numbers(numbers)?;
            self.spend(automaton.num_states())?;
            out.endless_numbers &= has_endless_numbers(&automaton);
            out.endless_integers &= has_endless_integers(&automaton);
            out.whole_numbers &= has_whole_numbers(&automaton);
            count = count.saturating_add(numbers_of(&automaton));
        }
        for truth in [true, false] {
            let booleans = key.of(Type::Boolean);
            let is_one = self.formulas.evaluate(booleans, &mut |_, _| truth);
            count = count.saturating_add(u64::from(is_one));
        }
        count = count.saturating_add(u64::from(key.of(Type::Null) != FormulaId::FALSE));
        out.least = u32::try_from(count).unwrap_or(u32::MAX);
        Ok((out, is_exact))
    }

    /// Whether each beginning of a string of a formula is one of infinitely many, how many strings
    /// there are at least, and whether there are no more.
    pub(super) fn strings_of(&mut self, formula: FormulaId) -> Result<(bool, u64, bool)> {
        Ok(match self.text(formula)? {
            StringForm::Characters(_, None) | StringForm::RegularExpression => {
                (true, u64::from(u32::MAX), false)
            }
            StringForm::Characters(_, Some(most)) => {
                (false, CHARACTERS.saturating_pow(most), most == 0)
            }
            StringForm::Listed(texts) => (false, texts.len() as u64, true),
            StringForm::Either(forms) => {
                let (mut is_endless, mut most) = (true, 0);
                for &(way, _) in forms.iter() {
                    let (endless, count, _) = self.strings_of(way)?;
                    (is_endless, most) = (is_endless && endless, most.max(count));
                }
                (is_endless, most, false)
            }
            // What is not looked into may be few.
            StringForm::Pattern(_) | StringForm::ExpressionWithin(_) => (false, 1, false),
            StringForm::Automaton(automaton) => {
                self.spend(automaton.num_states())?;
                let (count, is_exact) = self.words_within(&automaton, 0, None)?;
                (has_endless_strings(&automaton), count, is_exact)
            }
            StringForm::Counted(automaton, least, most) => {
                self.spend(automaton.num_states())?;
                let is_endless = most.is_none() && has_endless_strings(&automaton);
                let (count, is_exact) = self.words_within(&automaton, least, most)?;
                (is_endless, count, is_exact)
            }
        })
    }
}
