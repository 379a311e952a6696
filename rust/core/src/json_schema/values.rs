//! All values that a schema speaks of: their automata, and which of them some text has.

use super::atoms::{ArrayId, ObjectId, Type, ValueId};
use super::automata::{ArrayAutomaton, ArrayState};
use super::converter::{Converter, Doing};
use super::formula::FormulaId;
use super::objects::too_many_unordered;
use super::scalars::StringForm;
use super::unordered;
use crate::error::Result;
use crate::regular::Dfa;
use rustc_hash::{FxHashMap, FxHashSet};

/// What a value may be, type by type.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReachedValue {
    pub(super) null: bool,
    /// Whether `true` may be, and whether `false`.
    pub(super) booleans: [bool; 2],
    pub(super) number: Option<FormulaId>,
    pub(super) string: Option<FormulaId>,
    pub(super) array: Option<ArrayId>,
    pub(super) object: Option<ObjectId>,
}

/// The values that are reached from a root.
pub(super) struct ReachedValues {
    pub(super) all: FxHashMap<ValueId, ReachedValue>,
    pub(super) texts: FxHashMap<FormulaId, StringForm>,
    pub(super) numbers: FxHashMap<FormulaId, Dfa>,
    /// Those that some text has.
    pub(super) productive: FxHashSet<ValueId>,
    /// The states of each object from which its end can be reached, where that was asked for.
    pub(super) object_states: FxHashMap<ObjectId, Vec<bool>>,
    pub(super) array_states: FxHashMap<ArrayId, Vec<bool>>,
    pub(super) order: Vec<ValueId>,
}

/// Edges that are looked through as one unit of work.
const EDGES_OF_WORK: usize = 8;

impl Converter<'_> {
    /// Makes the automata of all values that are reached from a root.
    pub(super) fn reach(&mut self, root: ValueId) -> Result<ReachedValues> {
        let mut out = ReachedValues {
            all: FxHashMap::default(),
            texts: FxHashMap::default(),
            numbers: FxHashMap::default(),
            productive: FxHashSet::default(),
            object_states: FxHashMap::default(),
            array_states: FxHashMap::default(),
            order: Vec::new(),
        };
        let mut seen: FxHashSet<ValueId> = [root].into_iter().collect();
        let mut work = vec![root];
        while let Some(id) = work.pop() {
            self.doing = Doing::Value(id);
            self.spend(1)?;
            let value = self.make_value(id, &mut out)?;
            let mut enter = |id: ValueId| {
                if seen.insert(id) {
                    work.push(id);
                }
            };
            if let Some(object) = value.object {
                let states = &self.objects[usize::from(object)].states;
                states.iter().flat_map(|state| &state.members).for_each(|edge| enter(edge.value));
            }
            let arrays = value.array.map(|array| self.alternatives_of_array(array));
            for array in arrays.into_iter().flatten() {
                match self.array_of(array) {
                    ArrayAutomaton::Plain { prefix, rest, .. } => {
                        prefix.iter().chain(rest).copied().for_each(&mut enter);
                    }
                    ArrayAutomaton::Distinct { items, .. } => {
                        items.iter().copied().for_each(&mut enter);
                    }
                    ArrayAutomaton::States(states) => {
                        states.iter().flat_map(|state| &state.items).for_each(|item| enter(item.0));
                    }
                    ArrayAutomaton::Unique { .. } | ArrayAutomaton::Either(_) => {}
                }
            }
            out.all.insert(id, value);
            out.order.push(id);
        }
        self.doing = Doing::Nothing;
        self.find_productive(&mut out)?;
        self.settle_unique_items(&out)?;
        Ok(out)
    }

    fn make_value(&mut self, id: ValueId, out: &mut ReachedValues) -> Result<ReachedValue> {
        let key = **self.values.get(id);
        let some = |kind: Type| Some(key.of(kind)).filter(|&formula| formula != FormulaId::FALSE);
        let booleans = match some(Type::Boolean) {
            None => [false, false],
            Some(formula) => {
                [true, false].map(|truth| self.formulas.evaluate(formula, &mut |_, _| truth))
            }
        };
        let mut string = some(Type::String);
        if let Some(formula) = string {
            let text = match out.texts.remove(&formula) {
                Some(known) => known,
                None => self.text(formula)?,
            };
            let is_empty = match &text {
                StringForm::Listed(texts) => texts.is_empty(),
                StringForm::Automaton(automaton) => automaton.is_empty(),
                StringForm::Characters(..)
                | StringForm::Counted(..)
                | StringForm::Either(_)
                | StringForm::Pattern(_)
                | StringForm::RegularExpression
                | StringForm::ExpressionWithin(_) => false,
            };
            if let StringForm::Either(forms) = &text {
                out.texts.extend(forms.iter().cloned());
            }
            out.texts.insert(formula, text);
            string = string.filter(|_| !is_empty);
        }
        let mut number = some(Type::Number);
        if let Some(formula) = number {
            let automaton = match out.numbers.remove(&formula) {
                Some(known) => known,
                None => self.written_numbers(formula)?,
            };
            number = number.filter(|_| !automaton.is_empty());
            out.numbers.insert(formula, automaton);
        }
        let array = some(Type::Array).map(|formula| self.array(formula)).transpose()?;
        let object = some(Type::Object).map(|_| self.object(key.objects)).transpose()?;
        let null = key.of(Type::Null) == FormulaId::TRUE;
        Ok(ReachedValue { null, booleans, number, string, array, object })
    }

    /// Which values some text has: those that are plain, and those whose parts are.
    fn find_productive(&self, out: &mut ReachedValues) -> Result<()> {
        loop {
            let mut has_changed = false;
            // What is met later stands deeper, as a rule.
            for id in out.order.clone().into_iter().rev() {
                self.bounds.budget.spend(1)?;
                if out.productive.contains(&id) {
                    continue;
                }
                let value = out.all[&id];
                let is_plain = value.null
                    || value.booleans != [false, false]
                    || value.number.is_some()
                    || value.string.is_some();
                let of_array = |array| self.array_is_productive(array, out);
                let is_productive = is_plain
                    || value.array.is_some_and(of_array)
                    || match value.object {
                        Some(object) => self.object_is_productive(object, out)?,
                        None => false,
                    };
                if is_productive {
                    out.productive.insert(id);
                    has_changed = true;
                }
            }
            if !has_changed {
                break;
            }
        }
        for id in out.order.clone() {
            let value = out.all[&id];
            if let Some(object) = value.object
                && !out.object_states.contains_key(&object)
            {
                let live = self.live_members(object, out)?;
                let live = live.ok_or_else(|| {
                    let order = self.objects[usize::from(object)].order;
                    let error = too_many_unordered(self.orders.get(order).len());
                    self.placed_at(Doing::Value(id), error)
                })?;
                self.bounds.budget.spend(live.len())?;
                out.object_states.insert(object, live);
            }
            let arrays = value.array.map(|array| self.alternatives_of_array(array));
            for array in arrays.into_iter().flatten() {
                if out.array_states.contains_key(&array) {
                    continue;
                }
                let live = self.live_items(array, out);
                self.bounds.budget.spend(live.len())?;
                if let ArrayAutomaton::Unique { inner, .. } = self.arrays[usize::from(array)] {
                    out.array_states.insert(inner, live.clone());
                }
                out.array_states.insert(array, live);
            }
            // A value that some text has is no object or array where no text is one: emission and
            // explanations see what is possible. Of a value that no text has all is kept, to say why.
            if out.productive.contains(&id) {
                let array = value.array.filter(|&array| self.array_is_productive(array, out));
                let is_live = |live: &Vec<bool>| live.first() == Some(&true);
                let object = value.object.filter(|object| is_live(&out.object_states[object]));
                out.all.insert(id, ReachedValue { array, object, ..value });
            }
        }
        Ok(())
    }

    pub(super) fn array_is_productive(&self, array: ArrayId, out: &ReachedValues) -> bool {
        let is_productive = |value: &ValueId| out.productive.contains(value);
        match self.array_of(array) {
            ArrayAutomaton::Unique { .. } => false, // what one refers to is another
            ArrayAutomaton::Plain { prefix, rest, least, most } => {
                let least = *least as usize;
                most.is_none_or(|most| least <= most as usize)
                    && prefix.iter().take(least).all(is_productive)
                    && (least <= prefix.len() || rest.as_ref().is_some_and(is_productive))
            }
            ArrayAutomaton::Distinct { items, least, most, .. } => {
                let count = items.iter().filter(|&value| is_productive(value)).count();
                count >= *least as usize && most.is_none_or(|most| least <= &most)
            }
            ArrayAutomaton::States(_) => self.live_items(array, out)[0],
            ArrayAutomaton::Either(arrays) => {
                arrays.iter().any(|&array| self.array_is_productive(array, out))
            }
        }
    }

    fn object_is_productive(&self, object: ObjectId, out: &ReachedValues) -> Result<bool> {
        Ok(self.live_members(object, out)?.is_some_and(|live| live[0]))
    }

    /// For each state of an object whether its end can be reached through values that some text has;
    /// `None` where that depends on which names were read.
    fn live_members(&self, object: ObjectId, out: &ReachedValues) -> Result<Option<Vec<bool>>> {
        let object = &self.objects[usize::from(object)];
        if let Some(required) = &object.required {
            let names = self.orders.get(object.order).len();
            let is_productive = |value: ValueId| out.productive.contains(&value);
            return unordered::live(object, required, names, is_productive, self.bounds.budget);
        }
        let states = &object.states;
        let mut edges = Vec::with_capacity(states.len());
        for state in states.iter() {
            self.bounds.budget.spend(1 + state.members.len() / EDGES_OF_WORK)?;
            let members = state.members.iter();
            let live = members.filter(|edge| out.productive.contains(&edge.value));
            edges.push(live.map(|edge| edge.to).chain(state.absent.iter().copied()).collect());
        }
        Ok(Some(live(edges, states.iter().map(|state| state.is_final))))
    }

    fn live_items(&self, array: ArrayId, out: &ReachedValues) -> Vec<bool> {
        let ArrayAutomaton::States(states) = self.array_of(array) else {
            return Vec::new();
        };
        let edges = states.iter().map(|state| {
            let items = state.items.iter().filter(|item| out.productive.contains(&item.0));
            items.map(|item| item.1).collect()
        });
        // Where items are counted, there are as many as may be asked for.
        let may_end = |state: &ArrayState| {
            state.is_final
                || state.counted.is_some()
                    && state.items.iter().any(|item| out.productive.contains(&item.0))
        };
        live(edges.collect(), states.iter().map(may_end))
    }
}

/// The states from which a final one can be reached.
fn live(edges: Vec<Vec<u32>>, finals: impl Iterator<Item = bool>) -> Vec<bool> {
    let mut back: Vec<Vec<u32>> = vec![Vec::new(); edges.len()];
    for (from, targets) in (0..).zip(&edges) {
        targets.iter().for_each(|&to| back[to as usize].push(from));
    }
    let mut out: Vec<bool> = finals.collect();
    let mut work: Vec<u32> = (0..).zip(&out).filter(|(_, live)| **live).map(|(q, _)| q).collect();
    while let Some(state) = work.pop() {
        for &from in &back[state as usize] {
            if !std::mem::replace(&mut out[from as usize], true) {
                work.push(from);
            }
        }
    }
    out
}
