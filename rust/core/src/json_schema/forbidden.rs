//! Members that one schema lists and another, which applies beside it, forbids: a base with
//! `additionalProperties: false` under `allOf` has no members but its own.

use super::atoms::{Atom, NameId, ObjectId, SchemaId, SchemaKey, Type};
use super::automata::MemberName;
use super::converter::Converter;
use super::formula::{Formula, FormulaId};
use super::resolve::{Note, NoteLevel};
use super::step::Member;
use super::value::{JsonNode, JsonNodeId};
use super::values::ReachedValues;
use crate::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

/// The schema that forbids a member, and its keyword that does.
pub(super) type Forbidding = (JsonNodeId, &'static str);

impl Converter<'_> {
    /// Notes members that no object has though they are listed, since what applies beside the list forbids them, and
    /// `propertyNames` that no name satisfies. Returns the schemas within which there are such members.
    pub(super) fn note_forbidden(
        &mut self,
        values: &ReachedValues,
    ) -> Result<FxHashSet<JsonNodeId>> {
        let mut objects: Vec<ObjectId> =
            values.all.values().filter_map(|value| value.object).collect();
        objects.sort_unstable();
        objects.dedup();
        self.note_no_names(&objects)?;
        // By the schema that lists a member and its name.
        let mut written: FxHashSet<(SchemaId, NameId)> = FxHashSet::default();
        let mut forbidden: FxHashMap<(SchemaId, NameId), Forbidding> = FxHashMap::default();
        for object in objects {
            let automaton = self.objects[usize::from(object)].clone();
            let order = self.orders.get(automaton.order).clone();
            let mut here: FxHashSet<NameId> = FxHashSet::default();
            for member in automaton.states.iter().flat_map(|state| &state.members) {
                if let MemberName::Known(place) = member.name {
                    here.insert(order[place as usize]);
                }
            }
            self.spend(automaton.states.len())?;
            for alternative in automaton.alternatives.iter() {
                for listing in self.listings(alternative.formula) {
                    let SchemaKey::Schema(node, _) = self.key(listing) else { continue };
                    let names = self.property_names(node)?;
                    self.spend(names.len())?;
                    for &name in names.iter() {
                        if here.contains(&name) {
                            written.insert((listing, name));
                        } else if let Some(by) =
                            self.forbidding(alternative.formula, listing, name)?
                        {
                            forbidden.entry((listing, name)).or_insert(by);
                        }
                    }
                }
            }
        }
        let mut notes = Vec::new();
        for ((listing, name), (by, keyword)) in forbidden {
            let place = self.place_of_member(listing, name);
            if let Some(place) = place.filter(|_| !written.contains(&(listing, name))) {
                notes.push((place, by, keyword));
            }
        }
        notes.sort_unstable();
        notes.dedup_by_key(|note| note.0);
        let around = self.schemas_around(&notes)?;
        for (place, by, keyword) in notes {
            let pointer = self.schemas.arena().pointer(by);
            let message = format!(
                "the member is never written: {keyword} at {pointer} forbids it; list the member there too, or leave \
                 that {keyword} out"
            );
            let (level, message) = (NoteLevel::Warning, message.into());
            self.never_written.push(Note { place, keyword: "".into(), level, message });
        }
        Ok(around)
    }

    /// Notes `propertyNames` that ask for names which are no strings, of some objects.
    fn note_no_names(&mut self, objects: &[ObjectId]) -> Result<()> {
        let mut places: Vec<JsonNodeId> = Vec::new();
        for &object in objects {
            let alternatives = self.objects[usize::from(object)].alternatives.clone();
            for alternative in alternatives.iter() {
                for (atom, is_positive) in self.formulas.atoms_of(alternative.formula) {
                    self.spend(1)?;
                    let Atom::Names(schema) = *self.atom(atom) else { continue };
                    let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
                    if is_positive
                        && matches!(self.node(node), JsonNode::Object(_))
                        && self.type_formula(schema, Type::String)? == FormulaId::FALSE
                    {
                        places.push(node);
                    }
                }
            }
        }
        places.sort_unstable();
        places.dedup();
        for place in places {
            let message =
                "no name satisfies this schema, so no member is ever written: names are strings";
            let (level, message) = (NoteLevel::Warning, message.into());
            self.never_written.push(Note { place, keyword: "".into(), level, message });
        }
        Ok(())
    }

    /// The schemas within which a note says of a member what forbids it.
    fn schemas_around(
        &mut self,
        notes: &[(JsonNodeId, JsonNodeId, &str)],
    ) -> Result<FxHashSet<JsonNodeId>> {
        let mut around = FxHashSet::default();
        for &(place, ..) in notes {
            let mut place = self.schemas.arena().parent(place);
            while let Some(known) = place.filter(|&place| around.insert(place)) {
                self.spend(1)?;
                place = self.schemas.arena().parent(known);
            }
        }
        Ok(around)
    }

    /// What forbids a member that a schema lists, among what else a formula asks for.
    pub(super) fn forbidding(
        &mut self,
        formula: FormulaId,
        listing: SchemaId,
        name: NameId,
    ) -> Result<Option<Forbidding>> {
        if self.member(listing, Member::Named(name))? == FormulaId::FALSE {
            return Ok(None); // the list itself says that there is none
        }
        for part in self.formulas.conjuncts(formula) {
            self.spend(1)?;
            if self.present(part, Member::Named(name), 0)? != FormulaId::FALSE {
                continue;
            }
            for (atom, _) in self.formulas.atoms_of(part).into_iter().filter(|atom| atom.1) {
                let (schema, keyword) = match *self.atom(atom) {
                    Atom::Properties(other) if other != listing => (other, "additionalProperties"),
                    Atom::UnevaluatedProperties(owner, _) => (owner, "unevaluatedProperties"),
                    _ => continue,
                };
                let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
                let says_so = self.schemas.value(node, keyword);
                let is_false =
                    says_so.is_some_and(|value| *self.node(value) == JsonNode::Boolean(false));
                let itself = self.formulas.of_atom(atom);
                if is_false && self.present(itself, Member::Named(name), 0)? == FormulaId::FALSE {
                    return Ok(Some((node, keyword)));
                }
            }
        }
        Ok(None)
    }

    /// The schemas whose `properties` a formula asks for.
    fn listings(&self, formula: FormulaId) -> Vec<SchemaId> {
        let atom_of = |part| match *self.formulas.get(part) {
            Formula::Literal(atom, true) => Some(atom),
            _ => None,
        };
        let listing_of = |atom| match *self.atom(atom) {
            Atom::Properties(schema) => Some(schema),
            _ => None,
        };
        self.formulas
            .conjuncts(formula)
            .into_iter()
            .filter_map(atom_of)
            .filter_map(listing_of)
            .collect()
    }

    /// Where a schema lists a member.
    pub(super) fn place_of_member(&self, schema: SchemaId, name: NameId) -> Option<JsonNodeId> {
        let SchemaKey::Schema(node, _) = self.key(schema) else { return None };
        self.object_of(node, "properties")?.get(self.names.get(name))
    }
}
