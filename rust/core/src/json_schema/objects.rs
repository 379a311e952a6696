//! Objects: an automaton over members, whose states are what is left of a formula.
//!
//! In schema order, the known names of an alternative are read one after the other, each present or
//! absent; then come other names, in classes that the formula does not tell apart. Alternatives in which
//! the same name is due are one state, so they share what they begin with. In any order, a state also
//! says which of the known names were read.

use super::atoms::{
    Alternative, Alternatives, AlternativesId, Atom, LanguageId, NameId, ObjectId, OrderId,
    SchemaId, SchemaKey, Type, ValueId,
};
use super::converter::Converter;
use super::formula::{Formula, FormulaId};
use super::options::{KeyOrder, Style};
use super::step::{Member, NameClass};
use super::value::Node;
use crate::error::{Error, Result};
use crate::regular::Dfa;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Known names whose sets are written out where members may stand in any order: so many in any case, and
/// so many that matter for what may follow.
const FEW_UNORDERED: usize = 5;
pub(super) const MOST_UNORDERED: usize = 12;

/// Classes of other names.
const MOST_CLASSES: usize = 256;

/// A member that may come in a state.
#[derive(Clone, Debug)]
pub(super) struct MemberEdge {
    /// The known name, by its place in the order; or a class of other names.
    pub(super) name: Named,
    pub(super) value: ValueId,
    pub(super) to: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Named {
    Known(u32),
    Other(u32),
}

/// What is left of an object.
#[derive(Clone, Debug, Default)]
pub(super) struct ObjectState {
    /// A number that is greater in the states to go on as where nothing is read.
    pub(super) place: u64,
    /// Members that may come next.
    pub(super) members: Vec<MemberEdge>,
    /// The states to go on as where the known name that is due is absent, and for each alternative where
    /// these go apart.
    pub(super) absent: Vec<u32>,
    /// Whether the object may end here.
    pub(super) is_final: bool,
}

/// The members of objects that satisfy a formula.
#[derive(Clone, Debug)]
pub(super) struct ObjectAutomaton {
    /// The alternatives that it has.
    pub(super) alternatives: Rc<[Alternative]>,
    /// The known names of all of them.
    pub(super) order: OrderId,
    pub(super) states: Rc<Vec<ObjectState>>,
    pub(super) classes: Vec<Rc<NameClass>>,
    /// Where the states do not say which names were read: for each the names that are required, by their
    /// places in the order. Then no name comes twice, and an object ends once these were read.
    pub(super) required: Option<Rc<Vec<Rc<[u32]>>>>,
}

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

/// For atoms that speak of known names alone, by their schema, which names those are.
type Spent = FxHashMap<SchemaId, Vec<usize>>;

/// Where a member is read in any order: which known names were read.
type Place = (u64, FormulaId);

/// An alternative on the way: its number, how many of its names are done, and what is left of it.
type Thread = (u32, u32, FormulaId);

/// What threads have in common that go on together: the name that is due, or the alternative.
type Group = (Option<NameId>, u32);

/// So few alternatives, with so few names, may also be written in the order of all their names together.
const FEW_ALTERNATIVES: usize = 8;
const FEW_NAMES: usize = 48;

/// So many alternatives may also be written with their own names in that order.
const SOME_ALTERNATIVES: usize = 64;

/// The automaton of the alternatives of an object, in the orders of their names, while it is made.
struct Ordered<'o> {
    alternatives: &'o [Alternative],
    /// The known names of each alternative, which of them some atoms speak of alone, and the classes of
    /// other names: where these begin among all classes, once they are made.
    names: Vec<Rc<Box<[NameId]>>>,
    spent: Vec<Spent>,
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

    fn group(&self, thread: &Thread) -> Group {
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
        let mut groups: Vec<(Group, Vec<Thread>)> = Vec::new();
        let mut known: FxHashMap<Group, usize> = FxHashMap::default();
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
        let Alternatives { own, all } = (**self.alternative_sets.get(alternatives)).clone();
        if let (KeyOrder::Any, [one]) = (self.options.key_order, &*own)
            && !self.orders.get(one.order).is_empty()
        {
            return self.make_in_any_order(one);
        }
        let Some(all) = all else {
            let automaton = self.make_ordered(&own, true, usize::MAX)?;
            return automaton.ok_or_else(|| self.too_many_states());
        };
        let mut names = 0;
        for alternative in own.iter() {
            names += self.orders.get(alternative.order).len() + 2;
        }
        // The order of all names together is one more, where that costs nothing. Alternatives that share
        // names may tell too many sets of each other apart; then each goes by itself, or all go together.
        let mut more = own.to_vec();
        if own.len() <= FEW_ALTERNATIVES && self.orders.get(all.order).len() <= FEW_NAMES {
            more.push(all);
        } else if own.len() <= SOME_ALTERNATIVES {
            more.extend(self.in_common_order(&own, all.order)?);
        }
        if more.len() > own.len()
            && let Some(automaton) = self.make_ordered(&more, true, 8 * names + 64)?
        {
            return Ok(automaton);
        }
        for is_shared in [true, false] {
            if let Some(automaton) = self.make_ordered(&own, is_shared, 12 * names + 128)? {
                return Ok(automaton);
            }
        }
        let automaton = self.make_ordered(&[all], true, usize::MAX)?;
        automaton.ok_or_else(|| self.too_many_states())
    }

    /// Alternatives with their own names in an order of all names together, where that is another one.
    fn in_common_order(&mut self, own: &[Alternative], order: OrderId) -> Result<Vec<Alternative>> {
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
    /// several, these are one state, if they are shared; `None` where there are more than so many states.
    fn make_ordered(
        &mut self,
        alternatives: &[Alternative],
        is_shared: bool,
        most: usize,
    ) -> Result<Option<ObjectAutomaton>> {
        let mut out = Ordered {
            alternatives,
            names: Vec::with_capacity(alternatives.len()),
            spent: Vec::with_capacity(alternatives.len()),
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
            out.spent.push(self.spent_with(alternative.formula, &names)?);
            out.names.push(names);
            threads.push((number, 0, alternative.formula));
        }
        let order = self.orders.intern(order.into());
        let separately = !is_shared;
        let before = self.num_states;
        out.enter(threads);
        let mut states: Vec<ObjectState> = Vec::new();
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
            if states.len() > most {
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
            let spent = &out.spent[number as usize];
            let is_done = |place: usize| place < next as usize;
            let rest = self.present(formula, Member::Named(name), 0)?;
            for &(value, rest) in self.edges(rest)?.iter() {
                let rest = self.without_spent(rest, spent, is_done)?;
                let place = *known.entry(value).or_insert_with(|| {
                    behind.push((value, Vec::new()));
                    behind.len() - 1
                });
                behind[place].1.push((number, next, rest));
            }
            let rest = self.absent(formula, name, 0)?;
            let rest = self.without_spent(rest, spent, is_done)?;
            if rest != FormulaId::FALSE {
                without.push((number, next, rest));
            }
        }
        let name = Named::Known(out.places[&name]);
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
            let name = Named::Other(class as u32);
            for (value, threads) in behind {
                state.members.push(MemberEdge { name, value, to: out.enter(threads) });
            }
        }
        state.is_final = threads.iter().any(|thread| self.ends(thread.2));
        Ok(())
    }

    /// Whether it is plain that an object has no names but those that its formula mentions.
    fn has_no_others(&self, formula: FormulaId) -> Result<bool> {
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
                    let none = rest.is_some_and(|rest| *self.node(rest) == Node::Boolean(false));
                    if none && self.object_of(node, "patternProperties").is_none() {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// The automaton of an object whose names may come in any order.
    fn make_in_any_order(&mut self, alternative: &Alternative) -> Result<ObjectAutomaton> {
        let (whole, order) = (alternative.formula, alternative.order);
        let names = self.orders.get(order).clone();
        // Elements of other styles than JSON know no guards: there all sets are written out.
        let has_guards = self.options.style == Style::Json;
        if !has_guards && names.len() > MOST_UNORDERED {
            return Err(too_many_unordered(names.len()));
        }
        if has_guards && names.len() > FEW_UNORDERED {
            let automaton = self.make_unordered(alternative)?;
            return automaton.ok_or_else(|| too_many_unordered(names.len()));
        }
        let classes = self.name_classes(whole, &names)?;
        let spent = self.spent_with(whole, &names)?;
        let mut places: Vec<Place> = vec![(0, whole)];
        let mut numbers: FxHashMap<Place, u32> = [((0, whole), 0)].into_iter().collect();
        let mut states: Vec<ObjectState> = Vec::new();
        while states.len() < places.len() {
            let (read, formula) = places[states.len()];
            self.count_state()?;
            let mut state = ObjectState::default();
            let mut enter = |place: Place| {
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
                    let rest = self.without_spent(rest, &spent, |place| next >> place & 1 == 1)?;
                    let name = Named::Known(index as u32);
                    state.members.push(MemberEdge { name, value, to: enter((next, rest)) });
                }
                rest_at_end = self.absent(rest_at_end, name, 0)?;
            }
            for (index, class) in classes.iter().enumerate() {
                let rest = self.present(formula, Member::Other(class), 0)?;
                for &(value, rest) in self.edges(rest)?.iter() {
                    let name = Named::Other(index as u32);
                    state.members.push(MemberEdge { name, value, to: enter((read, rest)) });
                }
            }
            state.is_final = self.ends(rest_at_end);
            self.spend(1 + state.members.len())?;
            states.push(state);
        }
        let (alternatives, states) = (Rc::from([*alternative]), Rc::new(states));
        Ok(ObjectAutomaton { alternatives, order, states, classes, required: None })
    }

    /// The atoms of a formula that speak of known names alone: which of these they restrict, as places
    /// in the order. Once all of them were read or are absent, the atom holds whatever comes.
    pub(super) fn spent_with(&mut self, formula: FormulaId, names: &[NameId]) -> Result<Spent> {
        let places: FxHashMap<NameId, usize> = names.iter().copied().zip(0..).collect();
        let mut out = FxHashMap::default();
        for (atom, _) in self.formulas.atoms_of(formula) {
            let Atom::Properties(schema) = *self.atom(atom) else { continue };
            let super::atoms::SchemaKey::Schema(node, scope) = self.key(schema) else { continue };
            let restricts_others = self.object_of(node, "patternProperties").is_some()
                || self.schemas.subschema(node, "additionalProperties")?.is_some();
            let Some(properties) = self.object_of(node, "properties") else { continue };
            if restricts_others {
                continue;
            }
            let mut restricted = Vec::new();
            for (name, child) in properties.iter() {
                self.spend(1)?;
                let child = self.child(child, scope);
                let name = self.name(name);
                if !self.is_trivial(child)
                    && let Some(&place) = places.get(&name)
                {
                    restricted.push(place);
                }
            }
            restricted.sort_unstable();
            out.insert(schema, restricted);
        }
        Ok(out)
    }

    /// The formula without atoms that hold whatever comes. `is_done` says whether a known name, by its
    /// place in the order, was read or is absent.
    pub(super) fn without_spent(
        &mut self,
        formula: FormulaId,
        spent: &Spent,
        is_done: impl Fn(usize) -> bool,
    ) -> Result<FormulaId> {
        let is_spent = |restricted: &[usize]| restricted.iter().rev().all(|&place| is_done(place));
        let applies = self.formulas.atoms_of(formula).iter().any(|&(atom, _)| {
            matches!(self.atom(atom), Atom::Properties(schema)
                if spent.get(schema).is_some_and(|restricted| is_spent(restricted)))
        });
        if !applies {
            return Ok(formula);
        }
        self.derive(formula, &mut |this, number| {
            if let Atom::Properties(schema) = this.atom(number)
                && spent.get(schema).is_some_and(|restricted| is_spent(restricted))
            {
                return Ok(FormulaId::TRUE);
            }
            Ok(this.formulas.of_atom(number))
        })
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

    /// The classes of names beside the known ones that a formula does not tell apart.
    pub(super) fn name_classes(
        &mut self,
        formula: FormulaId,
        known: &[NameId],
    ) -> Result<Vec<Rc<NameClass>>> {
        let bounds = self.bounds;
        let (patterns, schemas) = self.asked_of_names(formula)?;
        let others = if known.is_empty() {
            Dfa::anything()
        } else {
            let texts: Vec<Rc<str>> =
                known.iter().map(|&name| self.names.get(name).clone()).collect();
            Dfa::texts(texts.iter().map(|text| &**text), &bounds)?.complement()
        };
        let class = NameClass {
            names: others,
            lengths: (0, None),
            expression: None,
            matches: FxHashMap::default(),
            satisfies: FxHashMap::default(),
        };
        let mut classes = vec![class];
        for pattern in patterns {
            let automaton = self.automaton(pattern)?;
            classes = self.divide(classes, (&automaton, (0, None)), |class, holds| {
                class.matches.insert(pattern, holds);
            })?;
        }
        let mut expressions = Vec::new();
        for schema in schemas {
            let formula = self.type_formula(schema, Type::String)?;
            if let Some(rest) = self.beside_expression(formula) {
                expressions.push((schema, rest));
                continue;
            }
            let (automaton, lengths) = self.counted_language(formula)?;
            classes = self.divide(classes, (&automaton, lengths), |class, holds| {
                class.satisfies.insert(schema, holds);
            })?;
        }
        if !expressions.is_empty() {
            classes = self.of_expressions(formula, classes, &expressions)?;
        }
        Ok(classes.into_iter().map(Rc::new).collect())
    }

    /// Those of the classes that are regular expressions, as schemas of `propertyNames` ask. Other names
    /// are in no class, so the formula must ask for these schemas in any case.
    fn of_expressions(
        &mut self,
        formula: FormulaId,
        classes: Vec<NameClass>,
        schemas: &[(SchemaId, FormulaId)],
    ) -> Result<Vec<NameClass>> {
        let mut language = Dfa::anything();
        for &(schema, rest) in schemas {
            let names = self.formulas.literal(Atom::Names(schema));
            if !self.formulas.conjuncts(formula).contains(&names) {
                return Err(self.expression_beside());
            }
            let rest = self.string_language(rest)?;
            language = language.intersection(&rest, &self.bounds)?;
        }
        let mut out = Vec::new();
        for mut class in classes {
            let (least, most) = class.lengths;
            let lengths = Dfa::lengths(least, most, &self.bounds)?;
            let names = class.names.intersection(&language, &self.bounds)?;
            let names = names.intersection(&lengths, &self.bounds)?;
            let within = self.expression_within(&names)?;
            if self.expressions[within as usize].1.is_empty() {
                continue;
            }
            class.expression = Some(within);
            class.satisfies.extend(schemas.iter().map(|&(schema, _)| (schema, true)));
            out.push(class);
        }
        Ok(out)
    }

    fn divide(
        &mut self,
        classes: Vec<NameClass>,
        (by, (least, most)): (&Dfa, (u32, Option<u32>)),
        mut note: impl FnMut(&mut NameClass, bool),
    ) -> Result<Vec<NameClass>> {
        let mut out = Vec::with_capacity(2 * classes.len());
        for class in classes {
            let within = class.names.intersection(by, &self.bounds)?;
            let without = class.names.difference(by, &self.bounds)?;
            // Of those within, some are too short and some too long.
            let mut parts =
                vec![(within.clone(), (least, most), true), (without, (0, None), false)];
            if least > 0 {
                parts.push((within.clone(), (0, Some(least - 1)), false));
            }
            parts.extend(most.map(|most| (within, (most.saturating_add(1), None), false)));
            for (names, (least, most), holds) in parts {
                let (from, to) = class.lengths;
                let to = [to, most].into_iter().flatten().min();
                let lengths = (from.max(least), to);
                if self.has_text_within(&names, lengths)? {
                    let mut class = NameClass { names, lengths, ..class.clone() };
                    note(&mut class, holds);
                    out.push(class);
                }
            }
            self.spend(1)?;
        }
        if out.len() > MOST_CLASSES {
            return Err(Error::Limit {
                limit: "max_name_classes",
                value: MOST_CLASSES as u64,
                message: "patternProperties and propertyNames of an object divide names into more \
                          classes; write fewer patterns that overlap"
                    .into(),
            });
        }
        Ok(out)
    }

    /// The patterns and the schemas that a formula of objects asks names for.
    fn asked_of_names(&mut self, formula: FormulaId) -> Result<(Vec<LanguageId>, Vec<SchemaId>)> {
        let (mut patterns, mut schemas) = (Vec::new(), Vec::new());
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            if !seen.insert(formula) {
                continue;
            }
            for (atom, _) in self.formulas.atoms_of(formula) {
                match self.atom(atom).clone() {
                    Atom::Properties(schema) => patterns.extend(self.patterns_of(schema)?),
                    Atom::Names(schema) => schemas.push(schema),
                    Atom::UnevaluatedProperties(_, branches) => {
                        for &(condition, branch) in &branches {
                            patterns.extend(self.patterns_of(branch)?);
                            work.push(condition);
                        }
                    }
                    _ => {}
                }
            }
        }
        patterns.sort_unstable();
        patterns.dedup();
        schemas.sort_unstable();
        schemas.dedup();
        Ok((patterns, schemas))
    }

    fn patterns_of(&mut self, schema: SchemaId) -> Result<Vec<LanguageId>> {
        let super::atoms::SchemaKey::Schema(node, _) = self.key(schema) else {
            return Ok(Vec::new());
        };
        let Some(patterns) = self.object_of(node, "patternProperties") else {
            return Ok(Vec::new());
        };
        patterns
            .iter()
            .map(|(pattern, _)| self.pattern(node, "patternProperties", pattern))
            .collect()
    }
}
