//! What each rule says, and of which schemas.

use super::{Emitter, RuleKey};
use crate::error::{Error, Result};
use crate::json_schema::RuleOrigin;
use crate::json_schema::atoms::{ArrayId, NameId, ObjectId, SchemaId, ValueId};
use crate::json_schema::automata::MemberName;
use crate::json_schema::converter::{Converter, Doing};
use crate::json_schema::formula::FormulaId;
use crate::json_schema::values::ReachedValues;
use rustc_hash::FxHashMap;

/// The values that a part is of: those of an object, an array, a formula of strings or of numbers.
#[derive(Default)]
struct Owners {
    objects: FxHashMap<ObjectId, Vec<ValueId>>,
    arrays: FxHashMap<ArrayId, Vec<ValueId>>,
    strings: FxHashMap<FormulaId, Vec<ValueId>>,
    numbers: FxHashMap<FormulaId, Vec<ValueId>>,
}

impl Converter<'_> {
    /// The origins of the rules that [`Converter::emit`] writes, in the order of the rules.
    pub(in crate::json_schema) fn rule_origins(
        &mut self,
        root: ValueId,
        values: ReachedValues,
    ) -> Result<Vec<RuleOrigin>> {
        self.written(root, values)?.origins()
    }
}

impl Emitter<'_, '_> {
    /// Says of which value a rule is that cannot be written. A name that cannot be is of its object.
    pub(super) fn blame(&mut self, key: &RuleKey, error: &Error) {
        let mut order = self.values.order.iter().copied();
        let value = |value: &ValueId| &self.values.all[value];
        let is_of_name = matches!(error, Error::Schema { pointer, .. } if pointer.is_empty());
        let found = match *key {
            RuleKey::Member(object, ..) | RuleKey::NamedElement(object, ..) if is_of_name => {
                order.find(|id| value(id).object == Some(object))
            }
            RuleKey::Value(value, _)
            | RuleKey::Member(_, _, value, _)
            | RuleKey::Entry(value, _)
            | RuleKey::Root(value)
            | RuleKey::Element(value)
            | RuleKey::NamedElement(_, _, value)
            | RuleKey::Only(_, value, _)
            | RuleKey::Item(value) => Some(value),
            RuleKey::Object(object, _)
            | RuleKey::Names(object, _)
            | RuleKey::CountedNames(object, _)
            | RuleKey::Members(object)
            | RuleKey::RawNames(object, _)
            | RuleKey::Close(object, ..) => order.find(|id| value(id).object == Some(object)),
            RuleKey::Array(array, _) | RuleKey::Unclosed(array, _) | RuleKey::Items(array) => {
                let of = |array| self.converter.alternatives_of_array(array);
                order.find(|id| {
                    let arrays = value(id).array;
                    arrays == Some(array) || arrays.is_some_and(|all| of(all).contains(&array))
                })
            }
            RuleKey::String(formula)
            | RuleKey::Raw(formula)
            | RuleKey::Counted(formula)
            | RuleKey::RawCounted(formula) => order.find(|id| value(id).string == Some(formula)),
            RuleKey::Number(formula) => order.find(|id| value(id).number == Some(formula)),
            RuleKey::Character(..)
            | RuleKey::Step(..)
            | RuleKey::Whitespace
            | RuleKey::RegularExpression
            | RuleKey::Expression(..)
            | RuleKey::ExpressionItem(..)
            | RuleKey::ExpressionLeaf(..)
            | RuleKey::Around(..)
            | RuleKey::Mark(_)
            | RuleKey::Empty(_)
            | RuleKey::Open(_)
            | RuleKey::Comma(_) => None,
        };
        self.converter.doing = found.map_or(Doing::Nothing, Doing::Value);
    }

    fn owners(&self) -> Owners {
        let mut out = Owners::default();
        for &id in &self.values.order {
            let value = &self.values.all[&id];
            if let Some(object) = value.object {
                out.objects.entry(object).or_default().push(id);
            }
            if let Some(array) = value.array {
                let mut arrays = self.converter.alternatives_of_array(array);
                arrays.push(array);
                arrays.dedup();
                arrays.into_iter().for_each(|array| out.arrays.entry(array).or_default().push(id));
            }
            if let Some(formula) = value.string {
                out.strings.entry(formula).or_default().push(id);
            }
            if let Some(formula) = value.number {
                out.numbers.entry(formula).or_default().push(id);
            }
        }
        out
    }

    fn origins(mut self) -> Result<Vec<RuleOrigin>> {
        let owners = self.owners();
        let mut schemas: FxHashMap<ValueId, Vec<SchemaId>> = FxHashMap::default();
        for &(value, schema) in &self.converter.asked {
            schemas.entry(value).or_default().push(schema);
        }
        let mut out = Vec::with_capacity(self.order.len());
        for key in std::mem::take(&mut self.order) {
            let of = |values: &[ValueId]| -> Vec<SchemaId> {
                values.iter().filter_map(|value| schemas.get(value)).flatten().copied().collect()
            };
            let asked = match &key {
                RuleKey::Value(value, _)
                | RuleKey::Member(_, _, value, _)
                | RuleKey::Entry(value, _)
                | RuleKey::Root(value)
                | RuleKey::Element(value)
                | RuleKey::NamedElement(_, _, value)
                | RuleKey::Only(_, value, _)
                | RuleKey::Item(value) => of(&[*value]),
                RuleKey::Object(object, _)
                | RuleKey::Names(object, _)
                | RuleKey::CountedNames(object, _)
                | RuleKey::Members(object)
                | RuleKey::RawNames(object, _)
                | RuleKey::Close(object, ..) => of(&owners.objects[object]),
                RuleKey::Array(array, _) | RuleKey::Unclosed(array, _) | RuleKey::Items(array) => {
                    of(&owners.arrays[array])
                }
                RuleKey::String(formula)
                | RuleKey::Raw(formula)
                | RuleKey::Counted(formula)
                | RuleKey::RawCounted(formula) => of(&owners.strings[formula]),
                RuleKey::Number(formula) => of(&owners.numbers[formula]),
                RuleKey::Character(..)
                | RuleKey::Step(..)
                | RuleKey::Whitespace
                | RuleKey::RegularExpression
                | RuleKey::Expression(..)
                | RuleKey::ExpressionItem(..)
                | RuleKey::ExpressionLeaf(..)
                | RuleKey::Around(..)
                | RuleKey::Mark(_)
                | RuleKey::Empty(_)
                | RuleKey::Open(_)
                | RuleKey::Comma(_) => Vec::new(),
            };
            let pointers = self.converter.pointers(asked)?;
            let description = self.said(&key)?;
            self.converter.spend(1)?;
            out.push(RuleOrigin { pointers, description });
        }
        Ok(out)
    }

    /// What a rule is, in some words.
    fn said(&mut self, key: &RuleKey) -> Result<String> {
        let values = &self.values;
        Ok(match *key {
            RuleKey::Value(value, _)
            | RuleKey::Root(value)
            | RuleKey::Element(value)
            | RuleKey::Only(_, value, _)
            | RuleKey::Item(value) => self.converter.describe(value, values, None)?,
            RuleKey::Object(object, _) | RuleKey::Members(object) => {
                let automaton = &self.converter.objects[usize::from(object)];
                let names = self.converter.orders.get(automaton.order).clone();
                described_names(&self.converter.names_of(&names))
            }
            RuleKey::Array(array, _) | RuleKey::Unclosed(array, _) | RuleKey::Items(array) => {
                self.converter.describe_array(array)
            }
            RuleKey::String(formula)
            | RuleKey::Raw(formula)
            | RuleKey::Counted(formula)
            | RuleKey::RawCounted(formula) => self.converter.describe_string(formula)?,
            RuleKey::Number(formula) => self.converter.describe_number(formula)?,
            RuleKey::Names(..) | RuleKey::CountedNames(..) | RuleKey::RawNames(..) => {
                "the names of other members".into()
            }
            RuleKey::Member(object, MemberName::Known(place), ..)
            | RuleKey::NamedElement(object, MemberName::Known(place), _) => {
                let order = self.converter.objects[usize::from(object)].order;
                let name: NameId = self.converter.orders.get(order)[place as usize];
                format!("the member {:?}", self.converter.names.get(name))
            }
            RuleKey::Member(..) | RuleKey::NamedElement(..) => "a member of another name".into(),
            RuleKey::Character(..) | RuleKey::Step(..) => "a character of a string".into(),
            RuleKey::Whitespace => "white space".into(),
            RuleKey::RegularExpression | RuleKey::Expression(_, None) => {
                "a regular expression".into()
            }
            RuleKey::Expression(..) | RuleKey::ExpressionItem(..) | RuleKey::ExpressionLeaf(..) => {
                "a part of a regular expression".into()
            }
            RuleKey::Entry(..) => "the value of a member of another name".into(),
            RuleKey::Empty(_) => "an object without members".into(),
            RuleKey::Open(_) => "the beginning of an object".into(),
            RuleKey::Comma(_) => "a comma between members".into(),
            RuleKey::Around(what, _) => what.said().into(),
            RuleKey::Close(..) => "the end of an object that has all required members".into(),
            RuleKey::Mark(_) => "what stands around names and values".into(),
        })
    }
}

/// An object, by the names that its schemas mention.
fn described_names(names: &[String]) -> String {
    match names {
        [] => "an object".into(),
        names => format!("an object with {}", crate::json_schema::explain::listed(names, "and")),
    }
}
