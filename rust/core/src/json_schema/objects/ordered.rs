//! Objects whose known names come in an order: the automaton of some alternatives, each in the order of
//! its own names.

use super::Spent;
use super::unjoined::Unjoined;
use crate::error::Result;
use crate::json_schema::atoms::{Alternative, Atom, NameId, OrderId, SchemaId, SchemaKey, ValueId};
use crate::json_schema::automata::{
    MemberEdge, MemberName, NameClass, ObjectAutomaton, ObjectState,
};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use crate::json_schema::step::Member;
use crate::json_schema::value::JsonNode;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// An alternative on the way: its number, how many of its names are done, and what is left of it.
type Thread = (u32, u32, FormulaId);

/// What threads have in common that go on together: the name that is due, or the alternative.
type ThreadGroup = (Option<NameId>, u32);

/// How many states an automaton may have: in all, and where as many names are done.
#[derive(Clone, Copy)]
pub(super) struct Room {
    pub(super) states: usize,
    pub(super) at_a_place: usize,
}

impl Room {
    pub(super) const ANY: Self = Self { states: usize::MAX, at_a_place: usize::MAX };

    pub(super) fn of_states(states: usize) -> Self {
        Self { states, ..Self::ANY }
    }
}

/// The automaton of the alternatives of an object, in the orders of their names, while it is made.
struct Ordered<'o> {
    alternatives: &'o [Alternative],
    /// The known names of each alternative, which of them some atoms speak of alone, and the classes of
    /// other names: where these begin among all classes, once they are made.
    names: Vec<Rc<Box<[NameId]>>>,
    spent: Vec<Spent>,
    /// What each alternative says of its members one by one, where no condition joins them.
    unjoined: Vec<Option<Unjoined>>,
    classes_of: Vec<Option<std::ops::Range<usize>>>,
    classes: Vec<Rc<NameClass>>,
    /// The place of each known name in the order of all.
    places: FxHashMap<NameId, u32>,
    /// Threads at the same name, or threads that go apart.
    threads: Vec<Rc<[Thread]>>,
    numbers: FxHashMap<Rc<[Thread]>, u32>,
}

impl Ordered<'_> {
    /// The name that is due in a thread; `None` where all are done.
    fn due(&self, thread: &Thread) -> Option<NameId> {
        self.names[thread.0 as usize].get(thread.1 as usize).copied()
    }

    fn group(&self, thread: &Thread) -> ThreadGroup {
        let due = self.due(thread);
        (due, if due.is_some() { 0 } else { thread.0 })
    }

    fn is_together(&self, threads: &[Thread]) -> bool {
        threads.windows(2).all(|pair| self.group(&pair[0]) == self.group(&pair[1]))
    }

    /// The state of some threads.
    fn enter(&mut self, mut threads: Vec<Thread>) -> u32 {
        threads.sort_unstable();
        threads.dedup();
        let threads: Rc<[Thread]> = threads.into();
        let next = self.threads.len() as u32;
        *self.numbers.entry(threads.clone()).or_insert_with(|| {
            self.threads.push(threads);
            next
        })
    }

    /// The states of threads that go apart.
    fn parted(&mut self, threads: &[Thread], separately: bool) -> Vec<u32> {
        let mut groups: Vec<(ThreadGroup, Vec<Thread>)> = Vec::new();
        let mut known: FxHashMap<ThreadGroup, usize> = FxHashMap::default();
        for thread in threads {
            let mut key = self.group(thread);
            if separately {
                key.1 = thread.0;
            }
            let place = *known.entry(key).or_insert_with(|| {
                groups.push((key, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(*thread);
        }
        groups.into_iter().map(|(_, threads)| self.enter(threads)).collect()
    }
}

impl Converter<'_> {
    /// Alternatives with their own names in an order of all names together, where that is another one.
    pub(super) fn in_common_order(
        &mut self,
        own: &[Alternative],
        order: OrderId,
    ) -> Result<Vec<Alternative>> {
        let common = self.orders.get(order).clone();
        let mut out = Vec::new();
        for &Alternative { formula, order } in own {
            self.spend(1 + common.len() / 8)?;
            let names = self.orders.get(order).clone();
            let known: FxHashSet<NameId> = names.iter().copied().collect();
            let sorted: Box<[NameId]> =
                common.iter().copied().filter(|name| known.contains(name)).collect();
            if *sorted != **names && sorted.len() == names.len() {
                out.push(Alternative { formula, order: self.orders.intern(sorted) });
            }
        }
        Ok(out)
    }

    /// The automaton of alternatives, each in the order of its own names. Where the same name is due in
    /// several, these are one state, if they are shared; `None` where there is not the room for the states.
    pub(super) fn make_ordered(
        &mut self,
        alternatives: &[Alternative],
        is_shared: bool,
        room: Room,
    ) -> Result<Option<ObjectAutomaton>> {
        let mut out = Ordered {
            alternatives,
            names: Vec::with_capacity(alternatives.len()),
            spent: Vec::with_capacity(alternatives.len()),
            unjoined: Vec::with_capacity(alternatives.len()),
            classes_of: vec![None; alternatives.len()],
            classes: Vec::new(),
            places: FxHashMap::default(),
            threads: Vec::new(),
            numbers: FxHashMap::default(),
        };
        let mut order: Vec<NameId> = Vec::new();
        let mut threads: Vec<Thread> = Vec::new();
        for (number, alternative) in (0..).zip(alternatives) {
            let names = self.orders.get(alternative.order).clone();
            self.spend(1 + names.len())?;
            for &name in names.iter() {
                out.places.entry(name).or_insert_with(|| {
                    order.push(name);
                    order.len() as u32 - 1
                });
            }
            let unjoined = self.unjoined(alternative, &names)?;
            out.spent.push(match unjoined {
                Some(_) => Spent::default(),
                None => self.spent_with(alternative.formula, &names)?,
            });
            out.unjoined.push(unjoined);
            out.names.push(names);
            threads.push((number, 0, alternative.formula));
        }
        let order_length = order.len();
        let order = self.orders.intern(order.into());
        let separately = !is_shared;
        let before = self.num_states;
        out.enter(threads);
        let mut states: Vec<ObjectState> = Vec::new();
        let mut at_places = vec![0; order_length + 1];
        while states.len() < out.threads.len() {
            self.count_state()?;
            let threads = out.threads[states.len()].clone();
            let done = threads.iter().map(|thread| thread.1).min().unwrap_or(0);
            let goes_apart = if separately {
                threads.windows(2).any(|pair| pair[0].0 != pair[1].0)
            } else {
                !out.is_together(&threads)
            };
            let mut state =
                ObjectState { place: 2 * u64::from(done) + 1, ..ObjectState::default() };
            if goes_apart {
                state.place -= 1;
                state.absent = out.parted(&threads, separately);
            } else if let Some(name) = threads.first().and_then(|thread| out.due(thread)) {
                self.read_known(&mut out, &threads, name, &mut state)?;
            } else {
                self.read_others(&mut out, &threads, &mut state)?;
            }
            self.spend(1 + state.members.len() + threads.len())?;
            states.push(state);
            at_places[done as usize] += 1;
            if states.len() > room.states || at_places[done as usize] > room.at_a_place {
                self.num_states = before;
                return Ok(None);
            }
        }
        let (classes, states) = (out.classes, Rc::new(states));
        let alternatives = alternatives.into();
        Ok(Some(ObjectAutomaton { alternatives, order, states, classes, required: None }))
    }

    /// The members of a known name that may come in threads, and what is left where it is absent.
    fn read_known(
        &mut self,
        out: &mut Ordered<'_>,
        threads: &[Thread],
        name: NameId,
        state: &mut ObjectState,
    ) -> Result<()> {
        let mut behind: Vec<(ValueId, Vec<Thread>)> = Vec::new();
        let mut known: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut without: Vec<Thread> = Vec::new();
        for &(number, at, formula) in threads {
            let next = at + 1;
            let mut goes_on = |value: ValueId, thread: Thread| {
                let place = *known.entry(value).or_insert_with(|| {
                    behind.push((value, Vec::new()));
                    behind.len() - 1
                });
                behind[place].1.push(thread);
            };
            if let Some(object) = &out.unjoined[number as usize] {
                let is_last = next as usize == out.names[number as usize].len();
                let rest = if is_last { object.rest } else { formula };
                if let Some(value) = self.unjoined_value(object, name)? {
                    goes_on(value, (number, next, rest));
                }
                if !object.requires(name) {
                    without.push((number, next, rest));
                }
                continue;
            }
            let spent = &out.spent[number as usize];
            let is_done = |place: usize| place < next as usize;
            let rest = self.present(formula, Member::Named(name), 0)?;
            for &(value, rest) in self.edges(rest)?.iter() {
                let rest = self.without_spent(rest, spent, &is_done)?;
                goes_on(value, (number, next, rest));
            }
            let rest = self.absent(formula, name, 0)?;
            let rest = self.without_spent(rest, spent, &is_done)?;
            if rest != FormulaId::FALSE {
                without.push((number, next, rest));
            }
        }
        let name = MemberName::Known(out.places[&name]);
        for (value, threads) in behind {
            state.members.push(MemberEdge { name, value, to: out.enter(threads) });
        }
        if !without.is_empty() {
            state.absent.push(out.enter(without));
        }
        Ok(())
    }

    /// The members of other names that may come in threads of one alternative, and whether it may end.
    fn read_others(
        &mut self,
        out: &mut Ordered<'_>,
        threads: &[Thread],
        state: &mut ObjectState,
    ) -> Result<()> {
        let Some(&(number, ..)) = threads.first() else { return Ok(()) };
        let place = number as usize;
        let range = match &out.classes_of[place] {
            Some(known) => known.clone(),
            None => {
                let whole = out.alternatives[place].formula;
                let names = out.names[place].clone();
                let classes = match self.has_no_others(whole)? {
                    true => Vec::new(),
                    false => self.name_classes(whole, &names)?,
                };
                let range = out.classes.len()..out.classes.len() + classes.len();
                out.classes.extend(classes);
                out.classes_of[place] = Some(range.clone());
                range
            }
        };
        for class in range {
            let of_class = out.classes[class].clone();
            let mut behind: Vec<(ValueId, Vec<Thread>)> = Vec::new();
            for &(number, at, formula) in threads {
                let rest = self.present(formula, Member::Other(&of_class), 0)?;
                for &(value, rest) in self.edges(rest)?.iter() {
                    match behind.iter_mut().find(|known| known.0 == value) {
                        Some(known) => known.1.push((number, at, rest)),
                        None => behind.push((value, vec![(number, at, rest)])),
                    }
                }
            }
            let name = MemberName::Other(class as u32);
            for (value, threads) in behind {
                state.members.push(MemberEdge { name, value, to: out.enter(threads) });
            }
        }
        state.is_final = threads.iter().any(|thread| self.ends(thread.2));
        Ok(())
    }

    /// Whether it is plain that an object has no names but those that its formula mentions.
    pub(super) fn has_no_others(&self, formula: FormulaId) -> Result<bool> {
        let names_all = |schema: SchemaId| -> Result<bool> {
            let SchemaKey::Schema(node, _) = self.key(schema) else { return Ok(false) };
            Ok(self.object_of(node, "patternProperties").is_none()
                && self.schemas.subschema(node, "unevaluatedProperties")?.is_none()
                && !self.lists_values(node))
        };
        for part in self.formulas.conjuncts(formula) {
            let Formula::Literal(atom, true) = *self.formulas.get(part) else { continue };
            match self.atom(atom) {
                Atom::UnevaluatedProperties(owner, branches)
                    if self.key(*owner) == SchemaKey::Closed =>
                {
                    let mut all = true;
                    for &(_, branch) in branches {
                        let SchemaKey::Schema(node, _) = self.key(branch) else { return Ok(false) };
                        all &= names_all(branch)?
                            && self.schemas.subschema(node, "additionalProperties")?.is_none();
                    }
                    if all {
                        return Ok(true);
                    }
                }
                Atom::Properties(schema) => {
                    let SchemaKey::Schema(node, _) = self.key(*schema) else { continue };
                    let rest = self.schemas.subschema(node, "additionalProperties")?;
                    let none =
                        rest.is_some_and(|rest| *self.node(rest) == JsonNode::Boolean(false));
                    if none && self.object_of(node, "patternProperties").is_none() {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }
}
