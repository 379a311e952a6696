//! Objects whose members stand in any order, without a state for each set of names that were read.
//!
//! Design: docs/design/json-schema.md, "Any order".
//!
//! What is left of a formula when a member is read does not depend on which other members were read, but
//! for the names that are required: those stand apart, as a set that only grows. So an automaton of few
//! states says what may come whatever was read; that each name comes once, and that the required ones
//! came before the end, are guards (see [`crate::grammar::Guard`]).
//!
//! A guard must lead to no dead end. [`live()`] finds which states surely lead nowhere, and checks that
//! all others do lead to an end, whatever was read. Where it cannot tell, sets are written out, or the
//! schema is refused.
//!
//! File: `live` (which states surely lead nowhere).

mod live;

pub(super) use live::live;

use super::atoms::{Alternative, Atom, NameId, OrderId, ValueId};
use super::automata::{MemberEdge, MemberName, NameClass, ObjectAutomaton, ObjectState};
use super::converter::Converter;
use super::formula::{Formula, FormulaId};
use super::objects::{MOST_UNORDERED, Spent};
use super::step::Member;
use crate::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Where a member is read: which value of the discriminator is supposed, which of the names that matter
/// were read, which others are required, by their places in the order, and what is left of the formula
/// besides.
type UnorderedPlace = (u32, u32, Rc<[u32]>, FormulaId);

/// Of so many states, and more, are automata that a discriminator may make smaller.
const MANY_STATES: usize = 500;

/// Values of a discriminator.
const MOST_SUPPOSED: usize = 64;

/// A name whose value is supposed from the start: the conditions on its value, each with what is left of
/// the formula.
struct Supposed {
    place: u32,
    edges: Vec<(ValueId, FormulaId)>,
}

/// What an automaton is written of.
struct ExplorationPlan<'b> {
    whole: FormulaId,
    order: OrderId,
    classes: &'b [Rc<NameClass>],
    supposed: Option<Supposed>,
    most_states: usize,
    /// Whether a name matters where reading it leads to another state. Where it does not, what follows
    /// is right all the same; but whether it has an end may depend on sets that states do not say.
    moves_matter: bool,
}

/// An automaton while it is written.
struct Exploration<'b> {
    begin: &'b ExplorationPlan<'b>,
    /// The known names, and the place of each in their order.
    names: Rc<Box<[NameId]>>,
    places: FxHashMap<NameId, u32>,
    /// The names that matter, by their places in the order: states say which of them were read.
    mattering: &'b [u32],
    spent: Spent,
    numbers: FxHashMap<UnorderedPlace, u32>,
    todo: Vec<UnorderedPlace>,
}

impl Exploration<'_> {
    /// The bit of a name that matters.
    fn bit(&self, place: u32) -> Option<u32> {
        let at = self.mattering.binary_search(&place).ok()?;
        Some(1u32 << at)
    }

    fn discriminator(&self) -> Option<u32> {
        self.begin.supposed.as_ref().map(|supposed| supposed.place)
    }

    /// The number of the state of a place, which is put with those to do where it is new.
    fn enter(&mut self, place: UnorderedPlace) -> u32 {
        let next = self.todo.len() as u32;
        let number = *self.numbers.entry(place.clone()).or_insert(next);
        if number == next {
            self.todo.push(place);
        }
        number
    }
}

/// What came of writing an automaton.
enum Explored {
    Done(ObjectAutomaton),
    /// It has more states than were asked for.
    Large,
    /// Names turned out to matter, by their places.
    Matter(Vec<u32>),
}

impl Converter<'_> {
    /// The automaton of a formula in which states do not say which members were read, but of those names
    /// that matter; `None` where so many do that sets of them are not written out, and what is left of
    /// the formula asks for names at once.
    pub(super) fn make_unordered(
        &mut self,
        alternative: &Alternative,
    ) -> Result<Option<ObjectAutomaton>> {
        let &Alternative { formula: whole, order, .. } = alternative;
        let names = self.orders.get(order).clone();
        let classes = self.name_classes(whole, &names)?;
        let begins = |most_states| ExplorationPlan {
            whole,
            order,
            classes: &classes,
            supposed: None,
            most_states,
            moves_matter: true,
        };
        if let Some(automaton) = self.explore_mattering(&begins(MANY_STATES))? {
            return Ok(Some(automaton));
        }
        // Where a name tells most conditions apart, they are simple once its value is known.
        if let Some(supposed) = self.discriminator(whole, order)? {
            let begin = ExplorationPlan { supposed: Some(supposed), ..begins(usize::MAX) };
            if let Some(automaton) = self.explore_mattering(&begin)? {
                return Ok(Some(automaton));
            }
        }
        if let Some(automaton) = self.explore_mattering(&begins(usize::MAX))? {
            return Ok(Some(automaton));
        }
        self.explore_mattering(&ExplorationPlan { moves_matter: false, ..begins(usize::MAX) })
    }

    /// The same where the names are those that the schema lists without an order; `None` also where it is not sure that
    /// each beginning has an end, which counts of members may leave open.
    pub(super) fn make_listed(
        &mut self,
        alternative: &Alternative,
    ) -> Result<Option<ObjectAutomaton>> {
        let &Alternative { formula: whole, order, .. } = alternative;
        let names = self.orders.get(order).clone();
        let classes = &self.name_classes(whole, &names)?[..];
        for moves_matter in [false, true] {
            let (supposed, most_states) = (None, MANY_STATES);
            let plan =
                ExplorationPlan { whole, order, classes, supposed, most_states, moves_matter };
            if let Some(automaton) = self.explore_mattering(&plan)?
                && let Some(required) = &automaton.required
                && live(&automaton, required, names.len(), |_| true, self.bounds.budget)?.is_some()
            {
                return Ok(Some(automaton));
            }
        }
        Ok(None)
    }

    /// The automaton whose states say which of the names that matter were read; `None` where too many do,
    /// or it has too many states.
    fn explore_mattering(
        &mut self,
        begin: &ExplorationPlan<'_>,
    ) -> Result<Option<ObjectAutomaton>> {
        let before = self.num_states;
        let mut mattering: Vec<u32> = Vec::new();
        while mattering.len() <= MOST_UNORDERED {
            match self.explore(begin, &mattering)? {
                Explored::Done(automaton) => return Ok(Some(automaton)),
                Explored::Matter(more) => {
                    mattering.extend(more);
                    mattering.sort_unstable();
                    mattering.dedup();
                }
                Explored::Large => break,
            }
            self.num_states = before;
        }
        self.num_states = before;
        Ok(None)
    }

    /// A required name of which each value leaves something else of a formula, with what each leaves.
    fn discriminator(&mut self, whole: FormulaId, order: OrderId) -> Result<Option<Supposed>> {
        let names = self.orders.get(order).clone();
        let mut best: Option<Supposed> = None;
        for (place, &name) in (0..).zip(names.iter()) {
            if self.absent(whole, name, 0)? != FormulaId::FALSE {
                continue;
            }
            let rest = self.present(whole, Member::Named(name), 0)?;
            let edges = self.edges(rest)?.to_vec();
            let is_better = best.as_ref().is_none_or(|best| best.edges.len() < edges.len());
            if (2..=MOST_SUPPOSED).contains(&edges.len()) && is_better {
                best = Some(Supposed { place, edges });
            }
            self.spend(1)?;
        }
        Ok(best)
    }

    fn explore(&mut self, begin: &ExplorationPlan<'_>, mattering: &[u32]) -> Result<Explored> {
        let mut out = self.begin_exploration(begin, mattering)?;
        let starts = out.todo.len();
        let mut states: Vec<ObjectState> = Vec::new();
        let mut required: Vec<Rc<[u32]>> = Vec::new();
        while let Some(here) = out.todo.get(states.len()).cloned() {
            let (_, _, before, formula) = &here;
            self.count_state()?;
            if states.len() > begin.most_states {
                return Ok(Explored::Large);
            }
            let many = self.names_asked_at_once(*formula)?;
            let many = many.iter().filter_map(|name| out.places.get(name).copied());
            let many: Vec<u32> = many.filter(|&place| out.bit(place).is_none()).collect();
            if !many.is_empty() {
                return Ok(Explored::Matter(many));
            }
            let mut state = ObjectState::default();
            let matter = self.read_members(&mut out, &here, states.len() as u32, &mut state)?;
            if !matter.is_empty() {
                return Ok(Explored::Matter(matter));
            }
            let rest = self.left_at_end(&out, &here)?;
            state.is_final = self.ends(rest);
            states.push(state);
            required.push(before.clone());
        }
        if begin.supposed.is_some() || states.is_empty() {
            first_of_all(&mut states, &mut required, starts);
        }
        let (classes, required) = (begin.classes.to_vec(), Some(required));
        let (states, required) = (Rc::new(states), required.map(Rc::new));
        let &ExplorationPlan { whole, order, .. } = begin;
        let alternatives = Rc::from([Alternative { formula: whole, order, in_order: 0 }]);
        Ok(Explored::Done(ObjectAutomaton { alternatives, order, states, classes, required }))
    }

    /// An automaton that has no state yet, but those to begin with to do. With a discriminator the first
    /// state does what each of those does that suppose a value of it.
    fn begin_exploration<'b>(
        &mut self,
        begin: &'b ExplorationPlan<'b>,
        mattering: &'b [u32],
    ) -> Result<Exploration<'b>> {
        let names = self.orders.get(begin.order).clone();
        let places: FxHashMap<NameId, u32> = names.iter().copied().zip(0..).collect();
        let spent = self.spent_with(begin.whole, &names)?;
        let (numbers, todo) = (FxHashMap::default(), Vec::new());
        let mut out = Exploration { begin, names, places, mattering, spent, numbers, todo };
        let begun: Vec<FormulaId> = match &begin.supposed {
            None => vec![begin.whole],
            Some(supposed) => supposed.edges.iter().map(|edge| edge.1).collect(),
        };
        let discriminator = out.discriminator();
        for (value, formula) in (0..).zip(begun) {
            // What restricts no known name holds from the start.
            let is_done = |place| discriminator == Some(place as u32);
            let formula = self.without_spent(formula, &out.spent, &is_done)?;
            let before: Vec<u32> = discriminator.into_iter().collect();
            let (required, formula) = self.apart_required(formula, &before, &out)?;
            if formula != FormulaId::FALSE {
                let place = (value, 0, required, formula);
                out.numbers.insert(place.clone(), out.todo.len() as u32);
                out.todo.push(place);
            }
        }
        Ok(out)
    }

    /// Adds the members that may come at a place to its state, which has this number; gives names that
    /// turned out to matter.
    fn read_members(
        &mut self,
        out: &mut Exploration<'_>,
        here: &UnorderedPlace,
        number: u32,
        state: &mut ObjectState,
    ) -> Result<Vec<u32>> {
        let &ExplorationPlan { classes, ref supposed, moves_matter, .. } = out.begin;
        let (value_supposed, read, ..) = here;
        let mut matter = Vec::new();
        let names = out.names.clone();
        let known = (0..)
            .zip(names.iter())
            .map(|(place, &name)| (MemberName::Known(place), Member::Named(name)));
        let others = (0..)
            .zip(classes)
            .map(|(class, names)| (MemberName::Other(class), Member::Other(names)));
        for (name, member) in known.chain(others) {
            let own = match name {
                MemberName::Known(place) => out.bit(place),
                MemberName::Other(_) => None,
            };
            if own.is_some_and(|own| read & own != 0) {
                continue;
            }
            if let (Some(supposed), MemberName::Known(place)) = (supposed, name)
                && supposed.place == place
            {
                let value = supposed.edges[*value_supposed as usize].0;
                state.members.push(MemberEdge { name, value, to: number });
                continue;
            }
            let (edges, moves) = self.read_member(out, here, (name, member, own), state)?;
            if let (MemberName::Known(name), None) = (name, own)
                && moves_matter
                && moves
            {
                matter.push(name);
            }
            self.spend(1 + edges)?;
        }
        Ok(matter)
    }
    /// Adds the edges of a member that may come at a place; gives how many there are, and whether one of
    /// them leads elsewhere, or none is there. `own` is the bit of a name that matters.
    fn read_member(
        &mut self,
        out: &mut Exploration<'_>,
        here: &UnorderedPlace,
        (name, member, own): (MemberName, Member<'_>, Option<u32>),
        state: &mut ObjectState,
    ) -> Result<(usize, bool)> {
        let (value_supposed, read, before, formula) = here;
        let discriminator = out.discriminator();
        let rest = self.present(*formula, member, 0)?;
        let edges = self.edges(rest)?;
        let next_read = read | own.unwrap_or(0);
        let mut moves = edges.is_empty();
        for &(value, rest) in edges.iter() {
            let is_done = |place| {
                let is_read = out.bit(place as u32).is_some_and(|own| next_read & own != 0);
                is_read || discriminator == Some(place as u32)
            };
            let rest = self.without_spent(rest, &out.spent, &is_done)?;
            let (required, rest) = self.apart_required(rest, before, out)?;
            if rest == FormulaId::FALSE {
                continue;
            }
            let place = (*value_supposed, next_read, required, rest);
            moves |= place != *here;
            let to = out.enter(place);
            state.members.push(MemberEdge { name, value, to });
        }
        Ok((edges.len(), moves))
    }

    /// What is left of the formula of a place where the object ends there: of the names that were read
    /// nothing asks any more.
    fn left_at_end(&mut self, out: &Exploration<'_>, here: &UnorderedPlace) -> Result<FormulaId> {
        let &(_, read, _, formula) = here;
        let mut rest = formula;
        if self.asks_for_names(rest) {
            for (place, &name) in (0..).zip(out.names.iter()) {
                if out.bit(place).is_none_or(|own| read & own == 0) {
                    rest = self.absent(rest, name, 0)?;
                }
            }
        }
        Ok(rest)
    }

    /// A formula without the names that it requires whatever else holds, but for those that matter, and
    /// these names with the ones that were required before.
    fn apart_required(
        &mut self,
        formula: FormulaId,
        before: &[u32],
        out: &Exploration<'_>,
    ) -> Result<(Rc<[u32]>, FormulaId)> {
        let mut required = before.to_vec();
        let mut rest = Vec::new();
        for conjunct in self.formulas.conjuncts(formula) {
            let atom = match *self.formulas.get(conjunct) {
                Formula::Literal(atom, true) => Some(self.atom(atom).clone()),
                _ => None,
            };
            let asked = match atom {
                Some(Atom::Required(name)) => vec![name],
                Some(Atom::RequiredAll(schema)) => {
                    self.required_names(schema)?.iter().copied().collect()
                }
                _ => Vec::new(),
            };
            let known: Vec<u32> =
                asked.iter().filter_map(|name| out.places.get(name).copied()).collect();
            if asked.is_empty() || known.len() < asked.len() {
                rest.push(conjunct);
                continue;
            }
            for place in known {
                match out.bit(place).is_some() {
                    true => {
                        let name = out.names[place as usize];
                        rest.push(self.formulas.literal(Atom::Required(name)));
                    }
                    false => required.push(place),
                }
            }
        }
        let rest = self.formulas.and(rest);
        let rest = self.settled(rest)?;
        required.sort_unstable();
        required.dedup();
        Ok((required.into(), rest))
    }

    /// A formula as it is written where a name is read that it does not speak of.
    fn settled(&mut self, formula: FormulaId) -> Result<FormulaId> {
        let mut formula = formula;
        loop {
            let next = self.derive(formula, &mut |this, number| {
                let atom = this.atom(number).clone();
                Ok(this.formulas.literal(atom))
            })?;
            if next == formula {
                return Ok(formula);
            }
            formula = next;
        }
    }

    /// The names of atoms that ask for many at once.
    fn names_asked_at_once(&mut self, formula: FormulaId) -> Result<Vec<NameId>> {
        let mut schemas = Vec::new();
        self.each_atom(formula, |atom| {
            if let Atom::RequiredAll(schema) = atom {
                schemas.push(*schema);
            }
        });
        let mut out = Vec::new();
        for schema in schemas {
            out.extend(self.required_names(schema)?.iter());
        }
        Ok(out)
    }

    /// Whether a formula has an atom to which names that are absent matter.
    fn asks_for_names(&self, formula: FormulaId) -> bool {
        let mut asks = false;
        self.each_atom(formula, |atom| {
            asks |= matches!(
                atom,
                Atom::Required(_) | Atom::RequiredAll(_) | Atom::UnevaluatedProperties(..)
            );
        });
        asks
    }

    /// Looks at the atoms of a formula and of the conditions in its atoms.
    fn each_atom(&self, formula: FormulaId, mut look: impl FnMut(&Atom)) {
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            if !seen.insert(formula) {
                continue;
            }
            for (atom, _) in self.formulas.atoms_of(formula) {
                let atom = self.atom(atom);
                look(atom);
                if let Atom::UnevaluatedProperties(_, branches) = atom {
                    work.extend(branches.iter().map(|branch| branch.0));
                }
            }
        }
    }
}

/// Puts a state before all others that does what each of the first so many does. An object ends there only
/// where it has no member.
fn first_of_all(states: &mut Vec<ObjectState>, required: &mut Vec<Rc<[u32]>>, starts: usize) {
    for state in states.iter_mut() {
        state.members.iter_mut().for_each(|edge| edge.to += 1);
    }
    let begun = states.iter().zip(required.iter()).take(starts);
    let mut first = ObjectState::default();
    for (state, required) in begun {
        first.members.extend(state.members.iter().cloned());
        first.is_final |= state.is_final && required.is_empty();
    }
    first.members.sort_by_key(|edge| (edge.name, edge.value, edge.to));
    states.insert(0, first);
    required.insert(0, Rc::default());
}
