//! Why no value satisfies a schema: the deepest place that leaves none, and the keyword there. And which members and
//! items have none, where the schema as a whole has some.

use super::atoms::{ArrayId, Atom, NameId, ObjectId, OrderId, SchemaId, SchemaKey, Type, ValueId};
use super::automata::ArrayAutomaton;
use super::choice::{Applied, Choice};
use super::converter::Converter;
use super::formula::FormulaId;
use super::resolve::{Note, NoteLevel, name_like};
use super::step::Member;
use super::types::Types;
use super::value::{JsonNode, JsonNodeId};
use super::values::ReachedValues;
use crate::error::{Error, Result, SchemaFault};
use rustc_hash::FxHashSet;

/// Keywords that may leave no value of a type, those first that most often do.
fn keywords_of(kind: Type) -> &'static [&'static str] {
    match kind {
        Type::Null | Type::Boolean => &["enum", "const", "type"],
        Type::Number => &[
            "minimum",
            "exclusiveMinimum",
            "maximum",
            "exclusiveMaximum",
            "multipleOf",
            "enum",
            "const",
        ],
        Type::String => &["pattern", "minLength", "format", "maxLength", "enum", "const"],
        Type::Array => &["minItems", "contains", "maxItems", "items", "uniqueItems"],
        Type::Object => &[
            "required",
            "minProperties",
            "propertyNames",
            "additionalProperties",
            "unevaluatedProperties",
            "maxProperties",
        ],
    }
}

/// Keywords that may contradict each other in one schema, whatever the type of the value.
const IN_PLACE: [&str; 8] = ["not", "enum", "const", "allOf", "oneOf", "anyOf", "$ref", "if"];

/// The deepest place that leaves no value, and the keyword there; empty where it is the schema as a whole.
struct Cause {
    node: JsonNodeId,
    keyword: &'static str,
    why: Why,
}

/// What is known of a cause besides.
enum Why {
    Nothing,
    /// The keyword forbids the member of a name that another schema lists, at this place.
    Forbids(JsonNodeId),
    /// The member of this name is required, and no schema lists one; with the order of the names that are known.
    Unlisted(NameId, OrderId),
    /// Conditions on one type, in a schema and those that it applies in place.
    Together(SchemaId, Type),
    /// What is said at these places.
    Places(Vec<JsonNodeId>),
}

impl From<(JsonNodeId, &'static str)> for Cause {
    fn from((node, keyword): (JsonNodeId, &'static str)) -> Self {
        Self { node, keyword, why: Why::Nothing }
    }
}

/// Conditions that an error lists.
const MOST_CONDITIONS: usize = 6;

/// Schemas in place that are looked into.
const MOST_SCHEMAS: usize = 1_000;

impl Converter<'_> {
    /// Notes members and items that are never written, where `false` does not say so. Of schemas `with_forbidden`
    /// members other notes say why.
    pub(super) fn note_impossible(
        &mut self,
        values: &ReachedValues,
        with_forbidden: &FxHashSet<JsonNodeId>,
    ) -> Result<()> {
        let mut none = std::mem::take(&mut self.impossible);
        self.spend(self.asked.len())?;
        let (mut some, mut without) = (FxHashSet::default(), Vec::new());
        for &(value, schema) in self.asked.iter().filter(|one| values.all.contains_key(&one.0)) {
            if values.productive.contains(&value) {
                some.insert(schema);
            } else {
                without.push(schema);
            }
        }
        none.extend(without);
        // What closes an object by itself may be met beside another schema, which names more members.
        none.retain(|schema| !some.contains(schema));
        let mut none: Vec<(JsonNodeId, SchemaId)> =
            none.into_iter().map(|schema| (self.place(schema), schema)).collect();
        none.sort_unstable();
        none.dedup_by_key(|one| one.0);
        for (place, schema) in none {
            let says_so = match (self.key(schema), self.node(place)) {
                (SchemaKey::Schema(..), JsonNode::Object(object)) => {
                    object.iter().all(|(keyword, _)| keyword == "not")
                }
                _ => true,
            };
            if says_so {
                continue;
            }
            let is_closed = !self.options.open_objects
                && !with_forbidden.contains(&place)
                && !self.closing_branches(&[(schema, true)], &Choice::default())?.is_empty();
            let mut message = String::from(
                "no value satisfies this schema and what else applies there, so it is never written",
            );
            if is_closed {
                message.push_str(
                    "; if that is because objects are closed, additional_properties=True opens them",
                );
            }
            if let Some(most) = self.options.max_digits {
                message.push_str(&format!("; if max_digits={most} is why, raise it"));
            }
            let (level, message) = (NoteLevel::Warning, message.into());
            self.never_written.push(Note { place, keyword: "".into(), level, message });
        }
        Ok(())
    }

    /// The error of a value that no text has.
    pub(super) fn unsatisfiable(&mut self, root: ValueId, values: &ReachedValues) -> Result<Error> {
        let Cause { node, keyword, why } = self.cause(root, values)?;
        let says_false = matches!(self.node(node), JsonNode::Boolean(_));
        let what = match node == self.schemas.root() {
            true => "no value satisfies the schema",
            false => "no value satisfies what is said here, and the schema needs one",
        };
        let message = match why {
            Why::Forbids(member) => {
                let member = self.schemas.arena().pointer(member);
                format!(
                    "it forbids the member that {member} lists, and the schema needs that one; list the member here \
                     too, or leave {keyword} out"
                )
            }
            Why::Unlisted(name, order) => {
                let listed = self.orders.get(order).clone();
                let name = &**self.names.get(name);
                let others = listed.iter().map(|&other| &**self.names.get(other));
                let meant = match name_like(name, others.filter(|other| other != &name)) {
                    Some(meant) => format!("did you mean {meant:?}?"),
                    None => format!("allow it, or leave it out of {keyword}"),
                };
                format!(
                    "the member {name:?} is required, and none of that name is allowed; {meant}"
                )
            }
            _ if says_false => "no value satisfies the schema `false`; allow some".into(),
            Why::Together(schema, kind) => {
                let places = self.conditions_on(schema, kind)?;
                format!("{what}{}", self.contradictions(&places))
            }
            Why::Places(places) => format!("{what}{}", self.contradictions(&places)),
            Why::Nothing => format!("{what}{}", self.contradictions(&[])),
        };
        Ok(self.fault(SchemaFault::Unsatisfiable, node, keyword, message))
    }

    /// What contradicts each other, in words.
    fn contradictions(&self, places: &[JsonNodeId]) -> String {
        let mut places = places.to_vec();
        places.sort_unstable();
        let pointers = places.into_iter().map(|place| self.schemas.arena().pointer(place));
        match &*pointers.collect::<Vec<String>>() {
            [all @ .., last] if !all.is_empty() => {
                format!(": {} and {last} contradict each other; change one", all.join(", "))
            }
            _ => "; remove the conditions that contradict each other".into(),
        }
    }

    /// The conditions on a type that a schema has, or one that it applies in place; none where they are many.
    fn conditions_on(&mut self, schema: SchemaId, kind: Type) -> Result<Vec<JsonNodeId>> {
        let mut out: Vec<(&str, JsonNodeId)> = Vec::new();
        for schema in self.always_applied(schema)? {
            let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
            let Some(object) = self.schemas.arena().object(node) else { continue };
            let says = |name: &str| {
                matches!(name, "type" | "not" | "enum" | "const")
                    || keywords_of(kind).contains(&name)
            };
            out.extend(object.iter().filter(|(name, _)| says(name)));
        }
        // Two conditions on values of a type contradict each other whatever names that type.
        let is_plain = |name: &str| !matches!(name, "type" | "not" | "enum" | "const");
        let is_listed = out.iter().any(|(name, _)| matches!(*name, "enum" | "const"));
        if !is_listed && out.iter().filter(|(name, _)| is_plain(name)).count() > 1 {
            out.retain(|(name, _)| *name != "type");
        }
        if out.len() > MOST_CONDITIONS {
            out.clear();
        }
        Ok(out.into_iter().map(|(_, place)| place).collect())
    }

    fn cause(&mut self, root: ValueId, values: &ReachedValues) -> Result<Cause> {
        let mut seen: FxHashSet<ValueId> = FxHashSet::default();
        let mut at = root;
        loop {
            self.spend(1)?;
            seen.insert(at);
            let schema = self.schema_of(at);
            let Some(&value) = values.all.get(&at) else { break };
            let next = match (value.object, value.array) {
                (Some(object), _) => self.impossible_member(object, values),
                (None, Some(array)) => self.impossible_item(usize::from(array), values),
                (None, None) => None,
            };
            match next {
                Some(next) if !seen.contains(&next) => at = next,
                // The value needs one like itself, without end.
                Some(_) => return Ok(self.cause_among(schema, keywords_of(Type::Object))?.into()),
                None => {
                    if let Some(object) = value.object {
                        return self.cause_in_object(object, schema);
                    }
                    let key = **self.values.get(at);
                    if value.array.is_some() {
                        return Ok(self.cause_in_array(key.of(Type::Array), schema)?.into());
                    }
                    let left = Type::ALL.into_iter().find(|&kind| key.of(kind) != FormulaId::FALSE);
                    let Some(kind) = left else { return self.cause_of_types(schema) };
                    let (node, keyword) = self.cause_among(schema, keywords_of(kind))?;
                    return Ok(Cause { node, keyword, why: Why::Together(schema, kind) });
                }
            }
        }
        let schema = self.schema_of(at);
        self.cause_of_types(schema)
    }

    /// The cause in a schema that leaves no type: conditions on the first that its own `type` names.
    fn cause_of_types(&mut self, schema: SchemaId) -> Result<Cause> {
        let (node, keyword) = self.cause_in_place(schema)?;
        let types = self.schemas.types(node)?;
        let is_named = |kind: &Type| {
            let named = |types: Types| {
                types.has(kind.word()) || *kind == Type::Number && types.has("integer")
            };
            types.is_some_and(named)
        };
        let kind = Type::ALL.into_iter().find(is_named);
        Ok(Cause {
            node,
            keyword,
            why: kind.map_or(Why::Nothing, |kind| Why::Together(schema, kind)),
        })
    }

    /// The schema that asks for a value, the first in the document.
    fn schema_of(&self, value: ValueId) -> SchemaId {
        let asked = self.asked.iter().filter(|asked| asked.0 == value).map(|asked| asked.1);
        asked.min_by_key(|&schema| self.place(schema)).unwrap_or(SchemaId(0))
    }

    /// The value of a member without which an object does not end, and which no text has.
    fn impossible_member(&self, object: ObjectId, values: &ReachedValues) -> Option<ValueId> {
        let states = &self.objects[usize::from(object)].states;
        let (mut seen, mut work) = (vec![false; states.len()], vec![0]);
        let mut found = None;
        while let Some(state) = work.pop() {
            if std::mem::replace(&mut seen[state as usize], true) {
                continue;
            }
            let state = &states[state as usize];
            work.extend(&state.absent);
            for edge in &state.members {
                match values.productive.contains(&edge.value) {
                    true => work.push(edge.to),
                    false => found = Some(edge.value),
                }
            }
        }
        found
    }

    fn impossible_item(&self, array: usize, values: &ReachedValues) -> Option<ValueId> {
        let is_impossible = |value: &ValueId| !values.productive.contains(value);
        match self.array_of(ArrayId::from(array)) {
            ArrayAutomaton::Unique { .. } => None,
            ArrayAutomaton::Either(arrays) => {
                arrays.iter().find_map(|&array| self.impossible_item(usize::from(array), values))
            }
            ArrayAutomaton::Plain { prefix, rest, least, .. } => {
                let first = prefix.iter().take(*least as usize).copied();
                first.chain(*rest).find(is_impossible)
            }
            ArrayAutomaton::Distinct { items, .. } => items.iter().copied().find(is_impossible),
            ArrayAutomaton::States(states) => {
                let items = states.iter().flat_map(|state| &state.items).map(|item| item.0);
                items.into_iter().find(is_impossible)
            }
        }
    }

    /// The cause in an object of which a required member has no value at all.
    fn cause_in_object(&mut self, object: ObjectId, schema: SchemaId) -> Result<Cause> {
        let alternatives = self.objects[usize::from(object)].alternatives.clone();
        let mut unlisted = None;
        for alternative in alternatives.iter() {
            let names = self.orders.get(alternative.order).clone();
            for &name in names.iter() {
                self.spend(1)?;
                if self.absent(alternative.formula, name, 0)? != FormulaId::FALSE {
                    continue;
                }
                let asked = self.present(alternative.formula, Member::Named(name), 0)?;
                if !self.edges(asked)?.is_empty() {
                    continue;
                }
                unlisted = unlisted.or(Some((name, alternative.order)));
                let (mut found, mut places) = (None, Vec::new());
                for (atom, _) in self.formulas.atoms_of(alternative.formula) {
                    let Atom::Properties(of) = *self.atom(atom) else { continue };
                    let SchemaKey::Schema(_, scope) = self.key(of) else { continue };
                    let Some(place) = self.place_of_member(of, name) else { continue };
                    if let Some((node, keyword)) = self.forbidding(alternative.formula, of, name)? {
                        return Ok(Cause { node, keyword, why: Why::Forbids(place) });
                    }
                    places.push(place);
                    found = found.or(Some(self.child(place, scope)));
                }
                if let Some(child) = found {
                    let are_several = places.len() > 1 && !self.has_no_values(child)?;
                    let cause = self.cause_of_types(child)?;
                    let why = if are_several { Why::Places(places) } else { cause.why };
                    return Ok(Cause { why, ..cause });
                }
            }
        }
        let (node, keyword) = self.cause_among(schema, keywords_of(Type::Object))?;
        let why = match unlisted {
            Some((name, order)) => Why::Unlisted(name, order),
            None => Why::Together(schema, Type::Object),
        };
        Ok(Cause { node, keyword, why })
    }

    /// The cause in an array of which a required item has no value at all.
    fn cause_in_array(
        &mut self,
        formula: FormulaId,
        schema: SchemaId,
    ) -> Result<(JsonNodeId, &'static str)> {
        for index in 0..self.prefix_length(formula)? {
            let asked = self.item(formula, index, 0)?;
            if !self.edges(asked)?.is_empty() {
                continue;
            }
            for (atom, _) in self.formulas.atoms_of(formula) {
                let Atom::Items(of) = *self.atom(atom) else { continue };
                let SchemaKey::Schema(node, scope) = self.key(of) else { continue };
                if let Some(&child) = self.schemas.items(node)?.first.get(index) {
                    let child = self.child(child, scope);
                    if self.has_no_values(child)? {
                        return self.cause_in_place(child);
                    }
                }
            }
        }
        self.cause_among(schema, keywords_of(Type::Array))
    }

    /// The last schema that applies in place and has one of some keywords, and the keyword.
    fn cause_among(
        &mut self,
        schema: SchemaId,
        keywords: &[&'static str],
    ) -> Result<(JsonNodeId, &'static str)> {
        let mut found = None;
        for schema in self.always_applied(schema)? {
            let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
            let has = |keyword: &&&str| self.schemas.value(node, keyword).is_some();
            if let Some(keyword) = keywords.iter().find(has) {
                found = Some((node, *keyword));
            }
        }
        match found {
            Some(found) => Ok(found),
            None => self.cause_in_place(schema),
        }
    }

    /// The deepest schema in place that leaves no value by itself, and the keyword there.
    fn cause_in_place(&mut self, schema: SchemaId) -> Result<(JsonNodeId, &'static str)> {
        let mut deepest = schema;
        for schema in self.always_applied(schema)? {
            if self.has_no_values(schema)? {
                deepest = schema;
            }
        }
        let node = self.place(deepest);
        let JsonNode::Object(_) = self.node(node) else { return Ok((node, "")) };
        // The keywords of a type come last: they count where the schema names that type.
        let mut candidates: Vec<&'static str> = IN_PLACE.to_vec();
        if self.schemas.value(node, "type").is_some() {
            for kind in Type::ALL {
                if self.allows(node, kind)?.0 {
                    candidates.extend(keywords_of(kind));
                }
            }
            candidates.push("type");
        }
        let said = candidates.into_iter().find(|word| self.schemas.value(node, word).is_some());
        Ok((node, said.unwrap_or_default()))
    }

    /// A schema, and those that it applies in place to every value: what holds another before it.
    pub(super) fn always_applied(&mut self, schema: SchemaId) -> Result<Vec<SchemaId>> {
        let mut out: Vec<SchemaId> = Vec::new();
        let mut seen: FxHashSet<SchemaId> = FxHashSet::default();
        let mut work = vec![schema];
        while let Some(schema) = work.pop() {
            if out.len() == MOST_SCHEMAS || !seen.insert(schema) {
                continue;
            }
            self.spend(1)?;
            out.push(schema);
            for kind in Type::ALL {
                for &(child, how) in self.applied(schema, kind)?.iter() {
                    if how == Applied::Always {
                        work.push(child);
                    }
                }
            }
        }
        Ok(out)
    }

    fn has_no_values(&mut self, schema: SchemaId) -> Result<bool> {
        for kind in Type::ALL {
            if self.type_formula(schema, kind)? != FormulaId::FALSE {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
