//! Objects: an automaton over members, whose states are what is left of a formula.
//!
//! In schema order, known names are read one after the other, each present or absent; then come other
//! names, in classes that the formula does not tell apart. In any order, a state also says which of the
//! known names were read.

use super::atoms::{Atom, LanguageId, NameId, ObjectId, OrderId, SchemaId, Type, ValueId};
use super::converter::Converter;
use super::formula::FormulaId;
use super::options::{KeyOrder, Style};
use super::step::{Member, NameClass};
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
    /// How many of the known names are done, where they come in order.
    pub(super) place: u64,
    /// Members that may come next.
    pub(super) members: Vec<MemberEdge>,
    /// The state to go on as where the known name that is due is absent.
    pub(super) absent: Option<u32>,
    /// Whether the object may end here.
    pub(super) is_final: bool,
}

/// The members of objects that satisfy a formula.
#[derive(Clone, Debug)]
pub(super) struct ObjectAutomaton {
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

/// Where a member is read: how many known names are done, or which.
type Place = (u64, FormulaId);

impl Converter<'_> {
    /// The automaton of a formula of objects.
    pub(super) fn object(&mut self, formula: FormulaId, order: OrderId) -> Result<ObjectId> {
        if let Some(&known) = self.object_numbers.get(&(formula, order)) {
            return Ok(known);
        }
        let automaton = self.make_object(formula, order)?;
        let id = ObjectId::from(self.objects.len());
        self.objects.push(automaton);
        self.object_numbers.insert((formula, order), id);
        Ok(id)
    }

    fn make_object(&mut self, whole: FormulaId, order: OrderId) -> Result<ObjectAutomaton> {
        let names = self.orders.get(order).clone();
        let in_any_order = self.options.key_order == KeyOrder::Any && !names.is_empty();
        // Elements of other styles than JSON know no guards: there all sets are written out.
        let has_guards = self.options.style == Style::Json;
        if in_any_order && !has_guards && names.len() > MOST_UNORDERED {
            return Err(too_many_unordered(names.len()));
        }
        if in_any_order && has_guards && names.len() > FEW_UNORDERED {
            let automaton = self.make_unordered(whole, order)?;
            return automaton.ok_or_else(|| too_many_unordered(names.len()));
        }
        let mut classes: Option<Vec<Rc<NameClass>>> = None;
        let spent = self.spent_with(whole, &names)?;
        let mut places: Vec<Place> = vec![(0, whole)];
        let mut numbers: FxHashMap<Place, u32> = [((0, whole), 0)].into_iter().collect();
        let mut states: Vec<ObjectState> = Vec::new();
        while states.len() < places.len() {
            let (at, formula) = places[states.len()];
            self.count_state()?;
            let mut state = ObjectState { place: at, ..ObjectState::default() };
            let mut enter = |place: Place| {
                *numbers.entry(place).or_insert_with(|| {
                    places.push(place);
                    places.len() as u32 - 1
                })
            };
            let due: Vec<usize> = match in_any_order {
                true => (0..names.len()).filter(|&name| at >> name & 1 == 0).collect(),
                false => (at as usize..names.len()).take(1).collect(),
            };
            for &index in &due {
                let rest = self.present(formula, Member::Named(names[index]), 0)?;
                let next = if in_any_order { at | 1 << index } else { at + 1 };
                for &(value, rest) in self.edges(rest)?.iter() {
                    let is_done = |place: usize| match in_any_order {
                        true => next >> place & 1 == 1,
                        false => (place as u64) < next,
                    };
                    let rest = self.without_spent(rest, &spent, is_done)?;
                    let name = Named::Known(index as u32);
                    state.members.push(MemberEdge { name, value, to: enter((next, rest)) });
                }
            }
            let is_tail = in_any_order || at as usize == names.len();
            if !is_tail {
                let rest = self.absent(formula, names[at as usize], 0)?;
                let rest = self.without_spent(rest, &spent, |place| place as u64 <= at)?;
                if rest != FormulaId::FALSE {
                    state.absent = Some(enter((at + 1, rest)));
                }
            } else {
                if classes.is_none() {
                    classes = Some(self.name_classes(whole, &names)?);
                }
                for (index, class) in classes.iter().flatten().enumerate() {
                    let rest = self.present(formula, Member::Other(class), 0)?;
                    for &(value, rest) in self.edges(rest)?.iter() {
                        let name = Named::Other(index as u32);
                        state.members.push(MemberEdge { name, value, to: enter((at, rest)) });
                    }
                }
                let mut rest = formula;
                for &index in &due {
                    rest = self.absent(rest, names[index], 0)?;
                }
                state.is_final = self.ends(rest);
            }
            self.spend(1 + state.members.len())?;
            states.push(state);
        }
        let (states, classes) = (Rc::new(states), classes.unwrap_or_default());
        Ok(ObjectAutomaton { order, states, classes, required: None })
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
            let atom = this.atom(number).clone();
            if let Atom::Properties(schema) = &atom
                && spent.get(schema).is_some_and(|restricted| is_spent(restricted))
            {
                return Ok(FormulaId::TRUE);
            }
            Ok(this.formulas.literal(atom))
        })
    }

    /// Counts a state of an object or array.
    pub(super) fn count_state(&mut self) -> Result<()> {
        self.num_states += 1;
        let most = self.limits.max_schema_states;
        if self.num_states > most {
            return Err(Error::Limit {
                limit: "max_schema_states",
                value: most as u64,
                message: "the objects and arrays of the schema need more states; write fewer \
                          alternatives that overlap, give them a property whose `const` tells them \
                          apart, or raise the limit"
                    .into(),
            });
        }
        Ok(())
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
            let texts: Vec<Rc<Box<str>>> =
                known.iter().map(|&name| self.names.get(name).clone()).collect();
            Dfa::texts(texts.iter().map(|text| &***text), &bounds)?.complement()
        };
        let class = NameClass {
            names: others,
            matches: FxHashMap::default(),
            satisfies: FxHashMap::default(),
        };
        let mut classes = vec![class];
        for pattern in patterns {
            let automaton = self.automaton(pattern)?;
            classes = self.divide(classes, &automaton, |class, holds| {
                class.matches.insert(pattern, holds);
            })?;
        }
        for schema in schemas {
            let formula = self.type_formula(schema, Type::String)?;
            let automaton = self.string_language(formula)?;
            classes = self.divide(classes, &automaton, |class, holds| {
                class.satisfies.insert(schema, holds);
            })?;
        }
        Ok(classes.into_iter().map(Rc::new).collect())
    }

    fn divide(
        &mut self,
        classes: Vec<NameClass>,
        by: &Dfa,
        mut note: impl FnMut(&mut NameClass, bool),
    ) -> Result<Vec<NameClass>> {
        let mut out = Vec::with_capacity(2 * classes.len());
        for class in classes {
            let within = class.names.intersection(by, &self.bounds)?;
            let without = class.names.difference(by, &self.bounds)?;
            for (names, holds) in [(within, true), (without, false)] {
                if !names.is_empty() {
                    let mut class = NameClass { names, ..class.clone() };
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
