//! The state of one conversion: what is kept once, what is known of schemas, and the errors by which a schema is
//! refused (`unsupported`, `fault`).

use super::SchemaNote;
use super::atoms::{
    Alternatives, AlternativesId, ArrayId, Atom, ByType, DecimalId, Decimals, DecimalsId, Interner,
    LanguageId, NameId, ObjectId, OrderId, SchemaId, SchemaKey, ScopeId, TextsId, Type, UsedId,
    ValueId, ValueKey,
};
use super::automata::{ArrayAutomaton, ObjectAutomaton};
use super::choice::{Applied, Choice};
use super::decimal::Decimal;
use super::formats::within::PatternsWithin;
use super::formats::{Beside, remark_on_format};
use super::formula::{FormulaId, Formulas};
use super::keywords::Dependency;
use super::options::{KeyOrder, SchemaOptions};
use super::resolve::{Note, NoteLevel, Schemas};
use super::value::{JsonNode, JsonNodeId, Object};
use crate::error::{Error, Result, SchemaFault};
use crate::limits::Limits;
use crate::regular::pattern::Pattern;
use crate::regular::{Bounds, Dfa};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// A language of strings under a keyword.
pub(super) struct StringLanguage {
    /// Where it stands, for errors.
    pub(super) node: JsonNodeId,
    /// `pattern`, or `format`.
    pub(super) keyword: &'static str,
    /// The pattern, where it is one.
    pub(super) pattern: Option<Pattern>,
    /// Its automaton, made when first needed.
    pub(super) automaton: Option<Dfa>,
}

/// Formulas that a value of a document takes, where nothing is multiplied.
const FORMULAS_OF_A_VALUE: usize = 8;

/// The edges of a formula that speaks of the value to come: a condition on the value, and what is left.
pub(super) type ValueEdges = Rc<[(ValueId, FormulaId)]>;

/// What is asked of a value: schemas that it satisfies, or does not, and a restriction by type.
pub(super) type ValueDemand = (Box<[(SchemaId, bool)]>, Option<[FormulaId; 6]>);

/// A dynamic scope: the schema that each dynamic anchor leads to, by name.
pub(super) type Scope = Box<[(Box<str>, JsonNodeId)]>;

/// For branches, by their schemas, what they overlap of the other branches.
pub(super) type Overlaps = FxHashMap<SchemaId, Vec<FormulaId>>;

/// Schemas that a schema applies to the same value, and how.
pub(super) type Applications = Rc<[(SchemaId, Applied)]>;

/// What a conversion is at, for the errors of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// No schema in particular.
    Nothing,
    /// The formula of a schema.
    Schema(SchemaId),
    /// The automata, or the rules, of a value.
    Value(ValueId),
}

/// One conversion of a schema.
pub(super) struct Converter<'a> {
    pub(super) schemas: &'a Schemas,
    pub(super) options: &'a SchemaOptions,
    pub(super) limits: &'a Limits,
    pub(super) bounds: Bounds<'a>,
    pub(super) formulas: Formulas<Atom>,
    pub(super) schema_keys: Interner<SchemaId, SchemaKey>,
    pub(super) names: Interner<NameId, str>,
    pub(super) texts: Interner<TextsId, Box<[Box<str>]>>,
    pub(super) used: Interner<UsedId, Box<[u64]>>,
    pub(super) decimals: Interner<DecimalId, Decimal>,
    pub(super) decimal_sets: Interner<DecimalsId, Decimals>,
    pub(super) scopes: Interner<ScopeId, Scope>,
    pub(super) orders: Interner<OrderId, Box<[NameId]>>,
    pub(super) alternative_sets: Interner<AlternativesId, Alternatives>,
    pub(super) values: Interner<ValueId, ValueKey>,
    pub(super) languages: Vec<StringLanguage>,
    pub(super) language_numbers: FxHashMap<(&'static str, Box<str>), LanguageId>,
    /// The formula of a schema for a type.
    pub(super) type_formulas: ByType<FormulaId>,
    /// For schemas with a `$ref` the ones that say something, where they say nothing themselves.
    pub(super) referred: FxHashMap<SchemaId, SchemaId>,
    /// The schemas that a schema applies to the same value, by the type of the value.
    pub(super) applied: ByType<Applications>,
    /// The automata of formulas of strings.
    pub(super) string_languages: FxHashMap<FormulaId, Dfa>,
    /// The automata of formulas of numbers.
    pub(super) number_languages: FxHashMap<FormulaId, Dfa>,
    /// Whether some array must not repeat an item, once it was asked.
    pub(super) has_unique_items: Option<bool>,
    /// The finite sets that uniqueItems ranges over, by the schema that says so.
    pub(super) distinct: FxHashMap<SchemaId, Rc<[SchemaId]>>,
    pub(super) edges: FxHashMap<FormulaId, ValueEdges>,
    /// What is left of a formula where a member of a name is read, and where there is none.
    pub(super) present: FxHashMap<(FormulaId, NameId), FormulaId>,
    pub(super) absent: FxHashMap<(FormulaId, NameId), FormulaId>,
    /// The conditions on values that some schemas and restrictions are.
    pub(super) value_keys: FxHashMap<ValueDemand, ValueKey>,
    pub(super) objects: Vec<ObjectAutomaton>,
    pub(super) object_numbers: FxHashMap<AlternativesId, ObjectId>,
    /// The other names of an object beside some known ones, where they are few.
    pub(super) listed: FxHashMap<(FormulaId, OrderId), OrderId>,
    /// The choices of branches that a schema leaves.
    pub(super) choices: FxHashMap<SchemaId, Rc<[Choice]>>,
    /// For the `oneOf` of a schema, what its branches overlap of each other.
    pub(super) overlaps: FxHashMap<(SchemaId, Type), Rc<Overlaps>>,
    pub(super) arrays: Vec<ArrayAutomaton>,
    pub(super) array_numbers: FxHashMap<FormulaId, ArrayId>,
    /// Formulas of arrays that ask for a repeated item, and what says the same without.
    pub(super) positive_arrays: FxHashMap<FormulaId, FormulaId>,
    /// Whether some document has a dynamic reference.
    pub(super) has_dynamic: bool,
    /// Whether some document asks for what is not evaluated.
    pub(super) has_unevaluated: bool,
    /// The formulas that are being made.
    pub(super) open: FxHashSet<(SchemaId, Type)>,
    /// How deep the question is whether branches are disjoint.
    pub(super) depth: usize,
    /// States of objects and arrays so far.
    pub(super) num_states: usize,
    /// The names in the `properties` of schemas.
    pub(super) property_names: FxHashMap<JsonNodeId, Rc<[NameId]>>,
    /// Which names a schema requires, where they are many.
    pub(super) required: FxHashMap<SchemaId, Rc<FxHashSet<NameId>>>,
    /// Which names a schema asks for in a closed object.
    pub(super) asked_names: FxHashMap<SchemaId, Rc<FxHashSet<NameId>>>,
    /// Whether a schema asks for members, and neither describes any nor lists values.
    pub(super) only_ask: FxHashMap<SchemaId, bool>,
    /// Where `multipleOf` asks for a step, for errors.
    pub(super) steps: FxHashMap<DecimalId, JsonNodeId>,
    /// Automata, and the regular expressions that are of them too.
    pub(super) expressions: Vec<(Dfa, Rc<PatternsWithin>)>,
    /// A schema whose format is `regex`, for errors.
    pub(super) expression: Option<JsonNodeId>,
    /// What `uniqueItems` is not enforced at, where that is allowed.
    pub(super) not_enforced: Vec<String>,
    /// Schemas of members or items that no value satisfies.
    pub(super) impossible: FxHashSet<SchemaId>,
    /// Notes of these.
    pub(super) never_written: Vec<Note>,
    /// The schemas that values satisfy, where these are asked for.
    pub(super) asked: FxHashSet<(ValueId, SchemaId)>,
    pub(super) doing: Doing,
}

impl<'a> Converter<'a> {
    pub(super) fn new(
        schemas: &'a Schemas,
        options: &'a SchemaOptions,
        limits: &'a Limits,
        bounds: Bounds<'a>,
    ) -> Self {
        Self {
            schemas,
            options,
            limits,
            bounds,
            formulas: Formulas::new(),
            schema_keys: Interner::new(),
            names: Interner::new(),
            texts: Interner::new(),
            used: Interner::new(),
            decimals: Interner::new(),
            decimal_sets: Interner::new(),
            scopes: Interner::new(),
            orders: Interner::new(),
            alternative_sets: Interner::new(),
            values: Interner::new(),
            languages: Vec::new(),
            language_numbers: FxHashMap::default(),
            type_formulas: ByType::default(),
            referred: FxHashMap::default(),
            applied: ByType::default(),
            string_languages: FxHashMap::default(),
            number_languages: FxHashMap::default(),
            has_unique_items: None,
            distinct: FxHashMap::default(),
            edges: FxHashMap::default(),
            present: FxHashMap::default(),
            absent: FxHashMap::default(),
            value_keys: FxHashMap::default(),
            objects: Vec::new(),
            object_numbers: FxHashMap::default(),
            listed: FxHashMap::default(),
            choices: FxHashMap::default(),
            overlaps: FxHashMap::default(),
            arrays: Vec::new(),
            array_numbers: FxHashMap::default(),
            positive_arrays: FxHashMap::default(),
            has_dynamic: true,
            has_unevaluated: true,
            open: FxHashSet::default(),
            depth: 0,
            num_states: 0,
            property_names: FxHashMap::default(),
            required: FxHashMap::default(),
            asked_names: FxHashMap::default(),
            only_ask: FxHashMap::default(),
            steps: FxHashMap::default(),
            expressions: Vec::new(),
            expression: None,
            not_enforced: Vec::new(),
            impossible: FxHashSet::default(),
            never_written: Vec::new(),
            asked: FxHashSet::default(),
            doing: Doing::Nothing,
        }
    }

    /// Counts work, and holds the numbers of formulas and states against their bounds.
    pub(super) fn spend(&self, units: usize) -> Result<()> {
        self.bounds.budget.spend(units)?;
        // Each value of the document takes some.
        let most = self.limits.max_schema_formulas;
        let plain = FORMULAS_OF_A_VALUE * self.schemas.arena().len();
        if self.formulas.len() > most.saturating_add(plain) {
            return Err(Error::Limit {
                limit: "max_schema_formulas",
                value: most as u64,
                message: "the conditions of the schema that hold or fail together are more than \
                          that; write fewer alternatives that overlap, or raise the limit"
                    .into(),
            });
        }
        Ok(())
    }

    /// The error of a schema that means what no grammar says.
    pub(super) fn unsupported(&self, node: JsonNodeId, keyword: &str, message: String) -> Error {
        self.fault(SchemaFault::Unsupported, node, keyword, message)
    }

    pub(super) fn fault(
        &self,
        kind: SchemaFault,
        node: JsonNodeId,
        keyword: &str,
        message: String,
    ) -> Error {
        let pointer = self.schemas.arena().pointer(node);
        Error::Schema { kind, pointer, keyword: keyword.into(), message }
    }

    pub(super) fn node(&self, node: JsonNodeId) -> &'a JsonNode {
        self.schemas.arena().node(node)
    }

    /// What there is to say of the keywords of the schemas met.
    pub(super) fn notes(&mut self) -> Result<Vec<SchemaNote>> {
        let mut met: Vec<JsonNodeId> = (self.schema_keys.iter())
            .filter_map(|key| match **key {
                SchemaKey::Schema(node, _) => Some(node),
                SchemaKey::Constant(_) | SchemaKey::Truth(_) | SchemaKey::Closed => None,
            })
            .collect();
        for place in 0..met.len() {
            let passed = self.passed_from(met[place])?;
            self.spend(1 + passed.len())?;
            met.extend(passed);
        }
        met.sort_unstable();
        met.dedup();
        let mut notes = self.schemas.all_notes(met.iter().copied(), self.bounds.budget)?;
        for schema in met {
            self.note_format(schema, &mut notes)?;
            self.note_patterns(schema, &mut notes)?;
        }
        if self.options.key_order == KeyOrder::Any {
            for note in notes.iter_mut().filter(|note| *note.keyword == *"propertyOrdering") {
                note.level = NoteLevel::Info;
                note.message = "no dialect has this keyword, and names come in any order".into();
            }
        }
        notes.extend(self.schemas.note_on_root(&notes));
        notes.append(&mut self.never_written);
        notes.sort_by_key(|note| note.place);
        let placed = notes.into_iter().map(|note| {
            let pointer = self.schemas.arena().pointer(note.place);
            self.spend(1 + pointer.len())?;
            let (keyword, message) = (note.keyword.into(), note.message.into());
            Ok(SchemaNote { level: note.level, pointer, keyword, message })
        });
        placed.collect()
    }

    fn note_format(&self, schema: JsonNodeId, notes: &mut Vec<Note>) -> Result<()> {
        let Some(place) = self.schemas.value(schema, "format") else { return Ok(()) };
        let Some(name) = self.schemas.text(schema, "format")? else { return Ok(()) };
        let own = self.options.pattern_of_format(name).filter(|_| self.options.assert_formats);
        for remark in own.map(Pattern::remarks).unwrap_or_default() {
            let (level, message) = (NoteLevel::Info, remark.to_string().into());
            notes.push(Note { place, keyword: "format".into(), level, message });
        }
        let types = self.schemas.types(schema)?;
        let beside = Beside {
            strings: types.is_none_or(|types| types.has("string")),
            pattern: self.schemas.value(schema, "pattern").is_some(),
        };
        let remark = match remark_on_format(name, beside, self.options) {
            Some(remark) => remark,
            None => match self.schemas.on_other_types(schema, "format", self.node(place)) {
                Some(remark) => remark,
                None => return Ok(()),
            },
        };
        let (level, message) = remark;
        notes.push(Note { place, keyword: "format".into(), level, message });
        Ok(())
    }

    /// Notes on patterns of a schema that hold what ECMA-262 lacks.
    fn note_patterns(&self, schema: JsonNodeId, notes: &mut Vec<Note>) -> Result<()> {
        let Some(object) = self.schemas.arena().object(schema) else { return Ok(()) };
        let value = self.schemas.value(schema, "pattern");
        let text = self.schemas.text(schema, "pattern")?;
        let mut patterns: Vec<(&'static str, &str, JsonNodeId)> = Vec::new();
        patterns.extend(text.zip(value).map(|(text, value)| ("pattern", text, value)));
        if object.get("patternProperties").is_some()
            && let Some(properties) = self.object_of(schema, "patternProperties")
        {
            let members = properties.iter();
            patterns.extend(members.map(|(text, value)| ("patternProperties", text, value)));
        }
        for (keyword, text, place) in patterns {
            self.spend(1 + text.len())?;
            let known = self.language_numbers.get(&(keyword, text.into()));
            let language = known.and_then(|&id| self.languages.get(usize::from(id)));
            let pattern = language.and_then(|language| language.pattern.as_ref());
            for remark in pattern.map(Pattern::remarks).unwrap_or_default() {
                let (level, message) = (NoteLevel::Info, remark.to_string().into());
                notes.push(Note { place, keyword: keyword.into(), level, message });
            }
        }
        Ok(())
    }

    /// The object under a keyword of a schema whose keywords were checked when its formula was made.
    pub(super) fn object_of(&self, node: JsonNodeId, keyword: &str) -> Option<&'a Object> {
        let value = self.schemas.value(node, keyword)?;
        self.schemas.arena().object(value)
    }

    /// The names in the `properties` of a schema, in their order.
    pub(super) fn property_names(&mut self, node: JsonNodeId) -> Result<Rc<[NameId]>> {
        if let Some(known) = self.property_names.get(&node) {
            return Ok(known.clone());
        }
        let properties = self.schemas.named(node, "properties")?;
        let members = properties.map(Object::iter).into_iter().flatten();
        let names: Rc<[NameId]> = members.map(|(name, _)| self.names.intern_copy(name)).collect();
        self.spend(1 + names.len())?;
        self.property_names.insert(node, names.clone());
        Ok(names)
    }

    /// The names that a schema requires.
    pub(super) fn required_names(&mut self, schema: SchemaId) -> Result<Rc<FxHashSet<NameId>>> {
        if let Some(known) = self.required.get(&schema) {
            return Ok(known.clone());
        }
        let names = match self.key(schema) {
            SchemaKey::Schema(node, _) => self.schemas.required(node)?,
            _ => None,
        };
        let names: FxHashSet<NameId> =
            names.unwrap_or_default().into_iter().map(|name| self.name(name)).collect();
        let names = Rc::new(names);
        self.required.insert(schema, names.clone());
        Ok(names)
    }

    /// The names that a schema requires, always or beside another, and those on which it makes something depend.
    pub(super) fn asked_names(&mut self, schema: SchemaId) -> Result<Rc<FxHashSet<NameId>>> {
        if let Some(known) = self.asked_names.get(&schema) {
            return Ok(known.clone());
        }
        let mut names = (*self.required_names(schema)?).clone();
        if let SchemaKey::Schema(node, _) = self.key(schema) {
            for (name, dependency, _) in self.schemas.dependencies(node)? {
                names.insert(self.name(name));
                let Dependency::Names(required) = dependency else { continue };
                self.spend(required.len())?;
                names.extend(required.into_iter().map(|name| self.name(name)));
            }
        }
        let names = Rc::new(names);
        self.asked_names.insert(schema, names.clone());
        Ok(names)
    }

    /// The schema at a place, in a scope.
    pub(super) fn schema(&mut self, node: JsonNodeId, scope: ScopeId) -> SchemaId {
        self.schema_keys.intern(SchemaKey::Schema(node, scope))
    }

    /// The schema whose values are those equal to one at a place.
    pub(super) fn constant(&mut self, node: JsonNodeId) -> SchemaId {
        self.schema_keys.intern(SchemaKey::Constant(node))
    }

    pub(super) fn key(&self, schema: SchemaId) -> SchemaKey {
        **self.schema_keys.get(schema)
    }

    pub(super) fn atom(&self, number: u32) -> &Atom {
        self.formulas.atom(number)
    }

    /// Where a schema stands, for errors.
    pub(super) fn place(&self, schema: SchemaId) -> JsonNodeId {
        match self.key(schema) {
            SchemaKey::Schema(node, _) | SchemaKey::Constant(node) => node,
            SchemaKey::Truth(_) | SchemaKey::Closed => self.schemas.root(),
        }
    }

    /// That the value to come satisfies a schema.
    pub(super) fn value(&mut self, schema: SchemaId) -> FormulaId {
        if let SchemaKey::Schema(node, _) = self.key(schema) {
            match self.node(node) {
                JsonNode::Boolean(truth) => return FormulaId::of(*truth),
                JsonNode::Object(object) if object.is_empty() => return FormulaId::TRUE,
                _ => {}
            }
        }
        self.formulas.literal(Atom::Value(schema))
    }

    pub(super) fn name(&mut self, name: &str) -> NameId {
        self.names.intern_copy(name)
    }
}
