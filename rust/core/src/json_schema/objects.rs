//! Objects: an automaton over members, whose states are what is left of a formula.
//!
//! In schema order, the known names of an alternative are read one after the other, each present or
//! absent; then come other names, in classes that the formula does not tell apart. Alternatives in which
//! the same name is due are one state, so they share what they begin with. In any order, a state also
//! says which of the known names were read.
//!
//! Files: `names` (classes of other names), `listed` (other names that are few, in any order), `ordered` (schema order), `spent` (what no longer matters once its names
//! were read), `unjoined` (objects that are a chain of members), `tails` (what is left of such chains, equal ones once),
//! `told_apart` (unions of such chains, by a member of which each has texts of its own). Any order stands here where few
//! names are known, and in [`unordered`](super::unordered) else.

mod listed;
mod names;
mod ordered;
mod spent;
mod tails;
mod told_apart;
mod unjoined;

use ordered::StateLimits;
pub(super) use spent::Spent;

use super::atoms::{Alternative, Alternatives, AlternativesId, ObjectId, OrderId};
use super::automata::{MemberEdge, MemberName, ObjectAutomaton, ObjectState};
use super::converter::Converter;
use super::formula::FormulaId;
use super::options::KeyOrder;
use super::step::Member;
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Known names whose sets are written out where members may stand in any order: so many in any case, so many where the
/// schema lists them without an order, and so many that matter for what may follow.
const FEW_UNORDERED: usize = 5;
const FEW_LISTED: usize = 7;
pub(super) const MOST_UNORDERED: usize = 12;

/// The error of an object in which it matters for what may follow which of many names were read.
pub(super) fn too_many_unordered(names: usize) -> Error {
    Error::Limit {
        limit: "max_unordered_names",
        value: MOST_UNORDERED as u64,
        message: format!(
            "what may follow in an object of the schema depends on which of its {names} names were \
             read, and sets of more than {MOST_UNORDERED} that matter are not written out; pass \
             key_order=\"schema\", or state fewer conditions on names"
        ),
    }
}

/// Where a member is read in any order: which known names were read.
type AnyOrderPlace = (u64, FormulaId);

/// So few alternatives, with so few names, may also be written in the order of all their names together.
const FEW_ALTERNATIVES: usize = 8;
const FEW_NAMES: usize = 48;

/// So many states may stand at one name of an object with conditions before its order chains them: those of six
/// conditions that are open at once.
const MOST_CONDITIONS_APART: usize = 64;

/// So many alternatives may also be written with their own names in that order.
const SOME_ALTERNATIVES: usize = 64;

impl Converter<'_> {
    /// The automaton of the alternatives of an object.
    pub(super) fn object(&mut self, alternatives: AlternativesId) -> Result<ObjectId> {
        if let Some(&known) = self.object_numbers.get(&alternatives) {
            return Ok(known);
        }
        let automaton = self.make_object(alternatives)?;
        let id = ObjectId::from(self.objects.len());
        self.objects.push(automaton);
        self.object_numbers.insert(alternatives, id);
        Ok(id)
    }

    fn make_object(&mut self, alternatives: AlternativesId) -> Result<ObjectAutomaton> {
        let Alternatives { own, all, chained } =
            (**self.alternative_sets.get(alternatives)).clone();
        if let ([one], None) = (&*own, &all)
            && let Some(automaton) = self.without_order(*one)?
        {
            return Ok(automaton);
        }
        let Some(all) = all else {
            return match (&*own, chained) {
                ([one], Some(chained)) => self.with_conditions(one, chained),
                _ => self.in_one_order(&own),
            };
        };
        let mut names = 0;
        for alternative in own.iter() {
            names += self.orders.get(alternative.order).len() + 2;
        }
        // The order of all names together is one more, where that costs nothing: of few alternatives as one
        // formula, else each with its own names in that order, which is the same where none has others.
        // Alternatives that share names may tell too many sets of each other apart; then each goes by
        // itself, or all go together.
        let are_few =
            own.len() <= FEW_ALTERNATIVES && self.orders.get(all.order).len() <= FEW_NAMES;
        let (mut keep_to_their_names, mut is_listed) = (true, false);
        for &alternative in own.iter() {
            keep_to_their_names &= self.has_no_others(alternative.formula)?;
            is_listed |= self.with_listed(alternative, false)? != alternative;
        }
        // Names that one alternative lists would repeat where all of them together have too many.
        let are_few = are_few && (!is_listed || self.with_listed(all, false)? != all);
        let mut in_common = Vec::new();
        if own.len() <= SOME_ALTERNATIVES && (keep_to_their_names || !are_few) {
            in_common = self.in_common_order(&own, all.order)?;
            if in_common.is_empty() {
                return self.each_by_itself(&own, (&all, chained), names);
            }
            in_common.splice(..0, own.iter().copied());
        }
        let as_one = if are_few { [&own[..], &[all]].concat() } else { Vec::new() };
        for more in [in_common, as_one] {
            if !more.is_empty()
                && let Some(automaton) =
                    self.make_ordered(&more, true, StateLimits::of_states(8 * names + 64))?
            {
                return Ok(automaton);
            }
        }
        self.each_by_itself(&own, (&all, chained), names)
    }

    /// The automaton of alternatives, each in its own order, or, where this takes too many states, all in
    /// one order, or in that one with conditions chained. `names` bounds their names.
    fn each_by_itself(
        &mut self,
        own: &[Alternative],
        (all, chained): (&Alternative, Option<OrderId>),
        names: usize,
    ) -> Result<ObjectAutomaton> {
        for is_shared in [true, false] {
            let room = StateLimits::of_states(12 * names + 128);
            if let Some(automaton) = self.make_ordered(own, is_shared, room)? {
                return Ok(automaton);
            }
        }
        match chained {
            Some(chained) => self.with_conditions(all, chained),
            None => self.in_one_order(&[*all]),
        }
    }

    fn in_one_order(&mut self, alternatives: &[Alternative]) -> Result<ObjectAutomaton> {
        let automaton = self.make_ordered(alternatives, true, StateLimits::ANY)?;
        automaton.ok_or_else(|| self.too_many_states())
    }

    /// The automaton of an alternative with conditions: in its own order where it has few states at each name, else in
    /// the order that chains them where that has, else in its own.
    fn with_conditions(
        &mut self,
        alternative: &Alternative,
        chained: OrderId,
    ) -> Result<ObjectAutomaton> {
        let room = StateLimits { at_a_place: MOST_CONDITIONS_APART, ..StateLimits::ANY };
        for order in [alternative.order, chained] {
            let alternative = self.alternative(alternative.formula, order);
            if let Some(automaton) = self.make_ordered(&[alternative], true, room)? {
                return Ok(automaton);
            }
        }
        self.in_one_order(&[*alternative])
    }

    /// The automaton of an alternative none of whose names keeps to an order; `None` where some do, or none is known.
    /// Names that are only listed may repeat where it matters which of many were read.
    fn without_order(&mut self, alternative: Alternative) -> Result<Option<ObjectAutomaton>> {
        let with_listed = self.with_listed(alternative, true)?;
        if with_listed.in_order > 0 {
            return Ok(None);
        }
        if with_listed != alternative {
            let before = self.num_states;
            if let Some(automaton) = self.make_in_any_order(&with_listed, true)? {
                return Ok(Some(automaton));
            }
            self.num_states = before;
        }
        match self.orders.get(alternative.order).len() {
            0 => Ok(None),
            names => {
                let automaton = self.make_in_any_order(&alternative, false)?;
                automaton.map(Some).ok_or_else(|| too_many_unordered(names))
            }
        }
    }

    /// The automaton of an object whose names may come in any order; `None` where it matters which of many were read.
    fn make_in_any_order(
        &mut self,
        alternative: &Alternative,
        is_listed: bool,
    ) -> Result<Option<ObjectAutomaton>> {
        let (whole, order) = (alternative.formula, alternative.order);
        let names = self.orders.get(order).clone();
        // Elements know no guards: there all sets are written out.
        let has_guards = self.options.style.has_guards();
        if !has_guards && names.len() > MOST_UNORDERED {
            return Ok(None);
        }
        let few = match self.options.key_order {
            KeyOrder::Schema => FEW_LISTED,
            KeyOrder::Any => FEW_UNORDERED,
        };
        if has_guards && names.len() > few {
            return match is_listed {
                true => self.make_listed(alternative),
                false => self.make_unordered(alternative),
            };
        }
        let classes = self.name_classes(whole, &names)?;
        let spent = self.spent_with(whole, &names)?;
        let mut places: Vec<AnyOrderPlace> = vec![(0, whole)];
        let mut numbers: FxHashMap<AnyOrderPlace, u32> = [((0, whole), 0)].into_iter().collect();
        let mut states: Vec<ObjectState> = Vec::new();
        while states.len() < places.len() {
            let (read, formula) = places[states.len()];
            self.count_state()?;
            let mut state = ObjectState::default();
            let mut enter = |place: AnyOrderPlace| {
                *numbers.entry(place).or_insert_with(|| {
                    places.push(place);
                    places.len() as u32 - 1
                })
            };
            let mut rest_at_end = formula;
            for (index, &name) in names.iter().enumerate() {
                if read >> index & 1 == 1 {
                    continue;
                }
                let rest = self.present(formula, Member::Named(name), 0)?;
                let next = read | 1 << index;
                for &(value, rest) in self.edges(rest)?.iter() {
                    let rest = self.without_spent(rest, &spent, &|place| next >> place & 1 == 1)?;
                    let name = MemberName::Known(index as u32);
                    state.members.push(MemberEdge { name, value, to: enter((next, rest)) });
                }
                rest_at_end = self.absent(rest_at_end, name, 0)?;
            }
            for (index, class) in classes.iter().enumerate() {
                let rest = self.present(formula, Member::Other(class), 0)?;
                for &(value, rest) in self.edges(rest)?.iter() {
                    let name = MemberName::Other(index as u32);
                    state.members.push(MemberEdge { name, value, to: enter((read, rest)) });
                }
            }
            state.is_final = self.ends(rest_at_end);
            self.spend(1 + state.members.len())?;
            states.push(state);
        }
        let (alternatives, states) = (Rc::from([*alternative]), Rc::new(states));
        Ok(Some(ObjectAutomaton { alternatives, order, states, classes, required: None }))
    }

    /// Counts a state of an object or array.
    pub(super) fn count_state(&mut self) -> Result<()> {
        self.num_states += 1;
        if self.num_states > self.limits.max_schema_states {
            return Err(self.too_many_states());
        }
        Ok(())
    }

    fn too_many_states(&self) -> Error {
        Error::Limit {
            limit: "max_schema_states",
            value: self.limits.max_schema_states as u64,
            message: "the objects and arrays of the schema need more states; write fewer \
                      alternatives that overlap, give them a property whose `const` tells them \
                      apart, or raise the limit"
                .into(),
        }
    }
}
