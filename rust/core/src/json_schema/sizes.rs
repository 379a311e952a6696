//! How many values there are, at least: what arrays ask whose items are unique.

use super::atoms::{ArrayId, ObjectId, ValueId};
use super::automata::{ArrayAutomaton, MemberName};
use super::cardinality::numbers_of;
use super::converter::Converter;
use super::values::ReachedValues;
use crate::error::Result;
use rustc_hash::FxHashMap;

/// As many as that are without end.
const ENDLESS: u64 = u32::MAX as u64;
/// Values that hold themselves are counted so often: what is found is less than there are.
const ROUNDS: usize = 4;

/// Lower bounds on the numbers of values.
pub(super) struct Sizes(FxHashMap<ValueId, u64>);

impl Sizes {
    /// Those of all values that are reached.
    pub(super) fn of(converter: &mut Converter<'_>, values: &ReachedValues) -> Result<Self> {
        let mut scalars = FxHashMap::default();
        for &id in values.order.iter().filter(|id| values.productive.contains(id)) {
            let value = values.all[&id];
            let mut count = u64::from(value.null);
            let booleans: u64 = value.booleans.into_iter().map(u64::from).sum();
            count = count.saturating_add(booleans);
            if let Some(formula) = value.string {
                count = count.saturating_add(converter.strings_of(formula)?.1);
            }
            if let Some(automaton) = value.number.and_then(|formula| values.numbers.get(&formula)) {
                converter.spend(automaton.num_states())?;
                count = count.saturating_add(numbers_of(automaton));
            }
            scalars.insert(id, count.min(ENDLESS));
        }
        let names = names_of(converter, values)?;
        let mut out = Self(scalars.clone());
        for _ in 0..ROUNDS {
            let mut has_changed = false;
            // What is met later stands deeper, as a rule.
            for id in values.order.iter().rev() {
                let Some(&count) = scalars.get(id) else { continue };
                let value = values.all[id];
                let array = value.array.map_or(0, |array| out.of_array(array, converter, values));
                let object = match value.object {
                    Some(object) => out.of_object(object, converter, values, &names)?,
                    None => 0,
                };
                let count = count.saturating_add(array).saturating_add(object).min(ENDLESS);
                has_changed |= out.0.insert(*id, count) != Some(count);
            }
            if !has_changed {
                break;
            }
        }
        Ok(out)
    }

    /// That of a value.
    pub(super) fn of_value(&self, value: ValueId) -> u64 {
        self.0.get(&value).copied().unwrap_or(0)
    }

    fn of_array(&self, array: ArrayId, converter: &Converter<'_>, values: &ReachedValues) -> u64 {
        let is_unique =
            matches!(converter.arrays[usize::from(array)], ArrayAutomaton::Unique { .. });
        let most_of = |items: &mut dyn Iterator<Item = ValueId>| {
            items.map(|value| self.of_value(value)).max().unwrap_or(0)
        };
        match converter.array_of(array) {
            ArrayAutomaton::Plain { prefix, rest, least, most } => {
                let can_stand = |count: usize| {
                    let mut first = prefix.iter().take(count);
                    first.all(|&value| self.of_value(value) > 0)
                        && (count <= prefix.len()
                            || rest.is_some_and(|value| self.of_value(value) > 0))
                };
                let fewest = (*least as usize).max(1);
                if most.is_some_and(|most| fewest > most as usize) || !can_stand(fewest) {
                    return u64::from(*least == 0);
                }
                let held = most_of(&mut prefix.iter().chain(rest).copied().take(fewest));
                match most {
                    // Arrays of any length are without end, if there are items for them.
                    None if can_stand(prefix.len() + 1) && (!is_unique || held == ENDLESS) => {
                        ENDLESS
                    }
                    _ => held,
                }
            }
            ArrayAutomaton::States(states) => {
                let Some(live) = values.array_states.get(&array) else { return 0 };
                let behind = |state: usize| {
                    let items = states[state].items.iter().filter(|item| live[item.1 as usize]);
                    most_of(&mut items.map(|item| item.0))
                };
                match live.first() {
                    Some(true) => behind(0).max(u64::from(states[0].is_final)),
                    _ => 0,
                }
            }
            ArrayAutomaton::Distinct { .. } => 1,
            ArrayAutomaton::Unique { .. } => 0,
            ArrayAutomaton::Either(arrays) => {
                let sizes = arrays.iter().map(|&array| self.of_array(array, converter, values));
                sizes.max().unwrap_or(0)
            }
        }
    }

    /// Of the ways through an object the one with the most values.
    fn of_object(
        &self,
        object: ObjectId,
        converter: &Converter<'_>,
        values: &ReachedValues,
        names: &FxHashMap<(ObjectId, u32), u64>,
    ) -> Result<u64> {
        let automaton = &converter.objects[usize::from(object)];
        let Some(live) = values.object_states.get(&object) else { return Ok(0) };
        let mut order: Vec<usize> = (0..automaton.states.len()).collect();
        order.sort_unstable_by_key(|&state| std::cmp::Reverse(automaton.states[state].place));
        let mut most = vec![0u64; automaton.states.len()];
        for state in order {
            let here = &automaton.states[state];
            converter.spend(1 + here.members.len() / 8)?;
            let mut best = u64::from(here.is_final);
            for edge in here.members.iter().filter(|edge| live[edge.to as usize]) {
                let names = match edge.name {
                    MemberName::Known(_) => 1,
                    MemberName::Other(class) => names.get(&(object, class)).copied().unwrap_or(1),
                };
                let ways = names.saturating_mul(self.of_value(edge.value));
                // What leads back has not been counted: one way goes on from there.
                let rest = most[edge.to as usize].max(1);
                best = best.max(ways.saturating_mul(rest));
            }
            for &to in here.absent.iter().filter(|&&to| live[to as usize]) {
                best = best.max(most[to as usize]);
            }
            most[state] = best.min(ENDLESS);
        }
        Ok(if live.first() == Some(&true) { most.first().copied().unwrap_or(0) } else { 0 })
    }
}

/// How many names each class of other names has, at least.
fn names_of(
    converter: &mut Converter<'_>,
    values: &ReachedValues,
) -> Result<FxHashMap<(ObjectId, u32), u64>> {
    let mut out = FxHashMap::default();
    for object in values.all.values().filter_map(|value| value.object) {
        let classes = converter.objects[usize::from(object)].classes.clone();
        for (number, class) in (0..).zip(&classes) {
            if out.contains_key(&(object, number)) {
                continue;
            }
            let (least, most) = class.lengths;
            let count = match class.expression {
                Some(_) => ENDLESS,
                None => converter.words_within(&class.names, least, most)?.0,
            };
            out.insert((object, number), count);
        }
    }
    Ok(out)
}
