//! Along the beginning of a text: what the schemas ask of the place at its end.
//!
//! What is left of the formulas of objects and arrays is worked out anew along this one way, so a
//! conversion keeps nothing for explanations. Several conditions may be possible on the way (the
//! branches of `anyOf`); those whose values were not read are left out.

use crate::budget::Budget;
use crate::error::Result;
use crate::json_schema::atoms::{
    Alternative, Alternatives, ArrayId, NameId, SchemaId, Type, ValueId,
};
use crate::json_schema::automata::{ArrayAutomaton, NameClass};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::FormulaId;
use crate::json_schema::scalars::is_regular_expression;
use crate::json_schema::step::Member;
use crate::json_schema::value::{Arena, JsonNode, JsonNodeId};
use crate::json_schema::values::{ReachedValue, ReachedValues};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;

/// Levels of a value that are looked into, to tell branches apart; deeper ones are taken to hold.
const MOST_LEVELS: usize = 16;

/// What may stand at a place: a condition, and the schemas that ask for it there.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Possible {
    pub(super) value: ValueId,
    pub(super) schemas: Rc<[SchemaId]>,
}

/// An object of which some members were read.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct OpenObject {
    pub(super) of: Possible,
    alternative: Alternative,
    pub(super) formula: FormulaId,
    pub(super) names: Rc<[NameId]>,
    /// How many of the names that keep to their order are done.
    place: usize,
    /// Which of the others were read.
    read: Rc<[bool]>,
}

impl OpenObject {
    /// How many of the names keep to their order.
    fn in_order(&self) -> usize {
        self.alternative.in_order as usize
    }

    /// Whether a name was read, or left out.
    fn is_done(&self, index: usize) -> bool {
        match index.checked_sub(self.in_order()) {
            Some(index) => self.read[index],
            None => index < self.place,
        }
    }
}

/// An array of which some items were read.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct OpenArray {
    pub(super) of: Possible,
    array: ArrayId,
    pub(super) formula: FormulaId,
    pub(super) count: usize,
}

/// Why a name may not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedName {
    /// It was read before.
    Repeated,
    /// It comes before one that was read, or was left out.
    TooLate,
    /// This one is required, and comes before it.
    Missing(NameId),
    /// No member of this name is allowed here.
    Unknown,
}

/// One way through the text.
pub(super) struct SchemaWalk<'w, 'a> {
    pub(super) converter: &'w mut Converter<'a>,
    pub(super) values: ReachedValues,
    pub(super) text: &'w [u8],
    pub(super) arena: Arena,
    pub(super) budget: &'w Budget,
    /// Which values meet which conditions, as far as that was asked.
    pub(super) met: FxHashMap<(ValueId, JsonNodeId), bool>,
}

impl SchemaWalk<'_, '_> {
    /// The JSON value at a place of the text; `None` where it is none.
    pub(super) fn read(&mut self, range: Range<usize>) -> Result<Option<JsonNodeId>> {
        let Ok(text) = std::str::from_utf8(&self.text[range]) else { return Ok(None) };
        let most = self.converter.limits.max_nesting;
        match self.arena.read(text, "", most, self.budget) {
            Ok(node) => Ok(Some(node)),
            Err(
                error @ (crate::error::Error::Cancelled | crate::error::Error::Deadline { .. }),
            ) => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The name at a place of the text.
    pub(super) fn name(&mut self, range: Range<usize>) -> Result<Option<String>> {
        let Some(node) = self.read(range)? else { return Ok(None) };
        Ok(self.arena.node(node).as_str().map(str::to_owned))
    }

    /// The objects among what is possible.
    pub(super) fn objects(&self, possible: &[Possible]) -> Vec<OpenObject> {
        let of_alternatives = possible.iter().flat_map(|one| {
            let object = self.values.all.get(&one.value).and_then(|value| value.object);
            let alternatives =
                object.map(|id| &self.converter.objects[usize::from(id)].alternatives);
            let all = alternatives.into_iter().flat_map(|alternatives| alternatives.iter());
            all.map(move |&alternative| (one.clone(), alternative))
        });
        of_alternatives
            .map(|(of, alternative)| {
                let names: Rc<[NameId]> = self.converter.orders.get(alternative.order)[..].into();
                let read = vec![false; names.len() - alternative.in_order as usize];
                let formula = alternative.formula;
                OpenObject { of, alternative, formula, names, place: 0, read: read.into() }
            })
            .collect()
    }

    /// The arrays among what is possible.
    pub(super) fn arrays(&self, possible: &[Possible]) -> Vec<OpenArray> {
        let arrays = possible.iter().filter_map(|one| {
            let array = self.values.all.get(&one.value)?.array?;
            let formula = self.converter.values.get(one.value).of(Type::Array);
            let positive = self.converter.positive_arrays.get(&formula);
            let formula = positive.copied().unwrap_or(formula);
            Some(OpenArray { of: one.clone(), array, formula, count: 0 })
        });
        arrays.collect()
    }

    /// What may stand where a formula asks for a value, with what is left behind it.
    fn edges(&mut self, asked: FormulaId) -> Result<Vec<(Possible, FormulaId)>> {
        let here = self.converter.value_atoms(asked);
        let edges = self.converter.edges(asked)?;
        for &(value, _) in edges.iter() {
            // Objects in any order may have been converted in another way than this walk goes.
            if !self.values.all.contains_key(&value) {
                let more = self.converter.reach(value)?;
                self.values.all.extend(more.all);
                self.values.productive.extend(more.productive);
            }
        }
        let mut out = Vec::with_capacity(edges.len());
        for &(value, rest) in edges.iter().filter(|edge| self.values.productive.contains(&edge.0)) {
            let asked = &self.converter.asked;
            let both: Vec<SchemaId> =
                here.iter().copied().filter(|&schema| asked.contains(&(value, schema))).collect();
            let schemas = if both.is_empty() { here.clone() } else { both };
            out.push((Possible { value, schemas: schemas.into() }, rest));
        }
        Ok(out)
    }

    /// What may be the value of a member of an open object, and the object behind it.
    pub(super) fn member(
        &mut self,
        object: &OpenObject,
        name: &str,
    ) -> Result<std::result::Result<Vec<(Possible, OpenObject)>, RefusedName>> {
        let number = self.converter.name(name);
        let known = object.names.iter().position(|&known| known == number);
        let in_order = object.in_order();
        let mut next = object.clone();
        let until = match known {
            Some(index) if index < object.place => return Ok(Err(RefusedName::TooLate)),
            Some(index) if index >= in_order && object.is_done(index) => {
                return Ok(Err(RefusedName::Repeated));
            }
            _ => known.map_or(in_order, |index| index.min(in_order)),
        };
        for &left_out in &object.names[object.place..until] {
            next.formula = self.converter.absent(next.formula, left_out, 0)?;
            if next.formula == FormulaId::FALSE {
                return Ok(Err(RefusedName::Missing(left_out)));
            }
        }
        next.place = until;
        match known {
            Some(index) if index < in_order => next.place += 1,
            Some(index) => {
                let mut read = object.read.to_vec();
                read[index - in_order] = true;
                next.read = read.into();
            }
            None => {}
        }
        let asked = match known {
            Some(_) => self.converter.present(next.formula, Member::Named(number), 0)?,
            None => {
                let classes = self.name_classes(object)?;
                let class = classes.iter().find(|class| {
                    let (least, most) = class.lengths;
                    let count = name.chars().count();
                    let is_long_enough = count >= least as usize;
                    let is_short_enough = most.is_none_or(|most| count <= most as usize);
                    let is_expression = class.expression.is_none() || is_regular_expression(name);
                    is_expression && is_long_enough && is_short_enough && class.names.accepts(name)
                });
                let Some(class) = class else { return Ok(Err(RefusedName::Unknown)) };
                self.converter.present(next.formula, Member::Other(class), 0)?
            }
        };
        let edges = self.edges(asked)?;
        if edges.is_empty() {
            return Ok(Err(RefusedName::Unknown));
        }
        let edges = edges.into_iter();
        Ok(Ok(edges.map(|(one, formula)| (one, OpenObject { formula, ..next.clone() })).collect()))
    }

    /// The classes of the names that an object does not know.
    fn name_classes(&mut self, object: &OpenObject) -> Result<Vec<Rc<NameClass>>> {
        let own = [object.alternative].into();
        let alone = Alternatives { own, all: None, chained: None };
        let alone = self.converter.alternative_sets.intern(alone);
        let whole = self.converter.object(alone)?;
        Ok(self.converter.objects[usize::from(whole)].classes.clone())
    }

    /// Whether an open object may have a further member.
    pub(super) fn may_go_on(&mut self, object: &OpenObject) -> Result<bool> {
        if !self.next_names(object, 0)?.is_empty() {
            return Ok(true);
        }
        // Names in any order may still come behind others.
        let formula = self.without_names(object, object.in_order())?;
        for class in self.name_classes(object)?.iter() {
            let asked = self.converter.present(formula, Member::Other(class), 0)?;
            if !self.edges(asked)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What an open object asks for where none of the first so many known names comes any more.
    fn without_names(&mut self, object: &OpenObject, count: usize) -> Result<FormulaId> {
        let mut formula = object.formula;
        for (index, &name) in object.names[..count].iter().enumerate() {
            if !object.is_done(index) {
                formula = self.converter.absent(formula, name, 0)?;
            }
        }
        Ok(formula)
    }

    /// The names that an open object must still have.
    pub(super) fn missing(&mut self, object: &OpenObject) -> Result<Vec<NameId>> {
        let mut out = Vec::new();
        for (index, &name) in object.names.iter().enumerate() {
            if !object.is_done(index)
                && self.converter.absent(object.formula, name, 0)? == FormulaId::FALSE
            {
                out.push(name);
            }
        }
        Ok(out)
    }

    /// Whether an open object may end.
    pub(super) fn may_end(&mut self, object: &OpenObject) -> Result<bool> {
        let formula = self.without_names(object, object.names.len())?;
        Ok(self.converter.ends(formula))
    }

    /// The schema that asks an open array for unique items, where the matcher remembers them.
    pub(super) fn unique_schema(&mut self, array: &OpenArray) -> Result<Option<SchemaId>> {
        match &self.converter.arrays[usize::from(array.array)] {
            &ArrayAutomaton::Unique { schema, .. } => {
                let left = self.converter.surely_unique(array.formula)?;
                Ok(Some(left.unwrap_or(schema)))
            }
            // What was read may have left those that ask for it.
            ArrayAutomaton::Either(_) => self.converter.surely_unique(array.formula),
            _ => Ok(None),
        }
    }

    /// What may be the next item of an open array, and the array behind it.
    pub(super) fn item(&mut self, array: &OpenArray) -> Result<Vec<(Possible, OpenArray)>> {
        let mut next = OpenArray { count: array.count + 1, ..array.clone() };
        let plain = match self.converter.array_of(array.array) {
            ArrayAutomaton::Plain { prefix, rest, most, .. } => {
                let is_full = most.is_some_and(|most| array.count >= most as usize);
                let value = prefix.get(array.count).copied().or(*rest);
                Some((value.filter(|_| !is_full), prefix.len()))
            }
            ArrayAutomaton::Unique { .. }
            | ArrayAutomaton::Distinct { .. }
            | ArrayAutomaton::Either(_)
            | ArrayAutomaton::States(_) => None,
        };
        let Some((value, prefix)) = plain else {
            let asked = self.converter.item(array.formula, array.count, 0)?;
            let edges = self.edges(asked)?.into_iter();
            return Ok(edges
                .map(|(one, formula)| (one, OpenArray { formula, ..next.clone() }))
                .collect());
        };
        // The counts of items are no matter: the formula stays that of the whole.
        let Some(value) = value.filter(|value| self.values.productive.contains(value)) else {
            return Ok(Vec::new());
        };
        let asked = self.converter.item(array.formula, array.count.min(prefix), 0)?;
        next.formula = array.formula;
        let edges = self.edges(asked)?.into_iter();
        let here = edges.filter(|edge| edge.0.value == value).map(|edge| edge.0.schemas);
        let schemas = here.reduce(|first, _| first).unwrap_or_default();
        Ok(vec![(Possible { value, schemas }, next)])
    }

    /// Those ways on which the value that was read is possible; all where there is one.
    pub(super) fn narrowed<T: PartialEq>(
        &mut self,
        ways: Vec<(Possible, T)>,
        value: Range<usize>,
    ) -> Result<Vec<T>> {
        let mut out: Vec<T> = Vec::new();
        let node = if ways.len() > 1 { self.read(value)? } else { None };
        for (possible, way) in ways {
            self.converter.spend(1)?;
            let holds = match node {
                Some(node) => self.satisfies(possible.value, node, 0)?,
                None => true,
            };
            if holds && !out.contains(&way) {
                out.push(way);
            }
        }
        Ok(out)
    }

    /// Whether a value meets a condition.
    pub(super) fn satisfies(
        &mut self,
        id: ValueId,
        node: JsonNodeId,
        level: usize,
    ) -> Result<bool> {
        let Some(&value) = self.values.all.get(&id) else { return Ok(true) };
        if level > MOST_LEVELS {
            return Ok(true);
        }
        if let Some(&known) = self.met.get(&(id, node)) {
            return Ok(known);
        }
        let meets = self.meets(id, value, node, level)?;
        self.met.insert((id, node), meets);
        Ok(meets)
    }

    fn meets(
        &mut self,
        id: ValueId,
        value: ReachedValue,
        node: JsonNodeId,
        level: usize,
    ) -> Result<bool> {
        self.converter.spend(1)?;
        match self.arena.node(node).clone() {
            JsonNode::Null => Ok(value.null),
            JsonNode::Boolean(truth) => Ok(value.booleans[usize::from(!truth)]),
            JsonNode::Number(decimal) => match value.number {
                Some(formula) => self.converter.number_satisfies(formula, &decimal),
                None => Ok(false),
            },
            JsonNode::String(text) => match value.string {
                Some(formula) => self.converter.string_satisfies(formula, &text),
                None => Ok(false),
            },
            JsonNode::Array(items) => {
                let possible = Possible { value: id, schemas: Rc::from([]) };
                let mut open = self.arrays(&[possible]);
                for &item in &items {
                    let mut behind: Vec<OpenArray> = Vec::new();
                    for array in open {
                        for (one, next) in self.item(&array)? {
                            if !behind.contains(&next)
                                && self.satisfies(one.value, item, level + 1)?
                            {
                                behind.push(next);
                            }
                        }
                    }
                    open = behind;
                }
                Ok(open.iter().any(|array| self.may_end_array(array)))
            }
            JsonNode::Object(object) => {
                let possible = Possible { value: id, schemas: Rc::from([]) };
                let mut open = self.objects(&[possible]);
                for (name, member) in object.iter() {
                    let mut behind: Vec<OpenObject> = Vec::new();
                    for object in open {
                        let Ok(ways) = self.member(&object, name)? else { continue };
                        for (one, next) in ways {
                            if !behind.contains(&next)
                                && self.satisfies(one.value, member, level + 1)?
                            {
                                behind.push(next);
                            }
                        }
                    }
                    open = behind;
                }
                for object in &open {
                    if self.may_end(object)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }

    pub(super) fn may_end_array(&self, array: &OpenArray) -> bool {
        match self.converter.array_of(array.array) {
            ArrayAutomaton::Plain { least, .. } => array.count >= *least as usize,
            ArrayAutomaton::Unique { .. }
            | ArrayAutomaton::Distinct { .. }
            | ArrayAutomaton::Either(_)
            | ArrayAutomaton::States(_) => self.converter.ends(array.formula),
        }
    }

    /// The names of members that may come next, the first ones.
    pub(super) fn next_names(&mut self, object: &OpenObject, most: usize) -> Result<Vec<NameId>> {
        let mut out = Vec::new();
        let mut seen: FxHashSet<NameId> = FxHashSet::default();
        let mut formula = object.formula;
        for (index, &name) in object.names.iter().enumerate() {
            if object.is_done(index) || !seen.insert(name) {
                continue;
            }
            if out.len() > most {
                break;
            }
            let asked = self.converter.present(formula, Member::Named(name), 0)?;
            if !self.edges(asked)?.is_empty() {
                out.push(name);
            }
            if index < object.in_order() {
                formula = self.converter.absent(formula, name, 0)?;
                if formula == FormulaId::FALSE {
                    break;
                }
            }
        }
        Ok(out)
    }
}
