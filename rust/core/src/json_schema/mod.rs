//! JSON Schema to a grammar, exactly, with every keyword of drafts 4 to 2020-12.
//!
//! Design: docs/design/json-schema.md.
//!
//! A schema is read into an arena, its references are resolved, and its conditions become formulas, one
//! for each type of value. What is left of a formula when a member or an item is read is a formula
//! again: these are the states of automata over members and items, which are written into a grammar as
//! they stand. Strings and numbers are regular languages of their own. Recursion, also under `not`,
//! needs no special case, since there are finitely many formulas.
//!
//! Files, in the order of the work:
//! - [`decimal`]: exact decimal numbers
//! - [`value`]: JSON documents in one arena; `uri`, [`dialect`], `metaschemas`, [`resolve`],
//!   [`keywords`], [`types`]: what a schema says, and where its references lead
//! - [`numbers`], [`formats`]: regular languages of numbers, and of strings under `format`
//! - [`options`]: how texts are written; `formula`: Boolean formulas; `atoms`: what they speak of; `choice`: how
//!   schemas apply others, and which branches are taken; `automata`: over members and items
//! - `converter`: what is kept once, and how a schema is refused (`Converter::unsupported`); `reading`, `constants`,
//!   `members`, `characters`, `one_of`: from schemas to formulas; `scalars`: formulas of strings and numbers as automata
//! - `step`: what is left when a part is read, and which of `properties`, `patternProperties` and `additionalProperties`
//!   hold for a member; `edges`: split by conditions on the value of that part; `order`: of names; `alternatives`:
//!   branches of unions, each with an order of its own; `closed`: which members a closed object may have
//! - `objects` (`objects/names`: names that patterns tell apart), `arrays`, `values`: the automata are made; `unique`, `sizes`, `cardinality`: arrays whose items are
//!   unique, and how many values, texts and numbers there are; `emit`: the grammar
//! - `unordered`: objects whose members stand in any order
//! - `unsatisfiable`: why a schema has no value; `forbidden`: members that one schema lists and another forbids;
//!   `doubts`: what was probably meant otherwise
//! - `origins`: which schemas a value is of; `explain`: why a text leaves the language of a schema

mod alternatives;
mod arrays;
mod atoms;
mod automata;
mod cardinality;
mod characters;
mod choice;
mod closed;
mod constants;
mod converter;
pub mod decimal;
pub mod dialect;
mod doubts;
mod edges;
mod emit;
mod explain;
mod forbidden;
pub mod formats;
mod formula;
pub mod keywords;
mod members;
mod metaschemas;
pub mod numbers;
mod objects;
mod one_of;
mod options;
mod order;
mod origins;
mod reading;
pub mod resolve;
mod scalars;
mod sizes;
mod step;
pub mod types;
mod unique;
mod unordered;
mod unsatisfiable;
mod uri;
pub mod value;
mod values;

pub use emit::marks_of;
pub use explain::{Beginning, Explained, Reason};
pub use options::{Escapes, KeyOrder, Markers, SchemaOptions, Style, Whitespace};
pub use resolve::NoteLevel;

use crate::budget::Budget;
use crate::error::{Error, Result, SchemaFault};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::regular::Bounds;
use atoms::{SchemaId, ValueId};
use converter::Converter;
use resolve::{ReadOptions, Schemas};
use values::ReachedValues;

/// A schema as a grammar.
#[derive(Clone, Debug)]
pub struct Converted {
    /// The grammar of the texts of valid values.
    pub grammar: Grammar,
    /// JSON pointers of schemas whose `uniqueItems` is not enforced.
    pub not_enforced: Vec<String>,
}

/// A keyword that says nothing about what is valid or was probably meant otherwise, or a pattern with
/// what ECMA-262 lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaNote {
    /// How much it matters.
    pub level: NoteLevel,
    /// The JSON pointer of the keyword.
    pub pointer: String,
    /// The keyword; empty where it is the schema as a whole.
    pub keyword: String,
    /// Why it says nothing, or how the pattern is read; and what to write.
    pub message: String,
}

/// What a rule of the grammar of a schema is, and of which schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleOrigin {
    /// The JSON pointers of the schemas, in their order; none where the rule is of no schema.
    pub pointers: Vec<String>,
    /// What the rule has, in words.
    pub description: String,
}

/// A schema, and how it is to be read.
#[derive(Clone, Copy)]
pub struct SchemaSource<'s> {
    /// The text of the schema.
    pub text: &'s str,
    /// Pairs of a URI and the text of the document there.
    pub resources: &'s [(String, String)],
    /// How texts are written.
    pub options: &'s SchemaOptions,
    /// Bounds on size and work.
    pub limits: &'s Limits,
    /// What counts the work.
    pub budget: &'s Budget,
}

/// The grammar of a schema. `resources` are pairs of a URI and the text of the document there.
///
/// # Errors
/// [`Error::Schema`] with the JSON pointer of what is wrong, is not supported, or is satisfied by no
/// value; [`Error::Limit`]; those of the budget.
pub fn convert(
    text: &str,
    resources: &[(String, String)],
    options: &SchemaOptions,
    limits: &Limits,
    budget: &Budget,
) -> Result<Converted> {
    let source = SchemaSource { text, resources, options, limits, budget };
    source.converted(|converter, _, value, values| {
        let grammar = converter.emit(value, values)?;
        let not_enforced = std::mem::take(&mut converter.not_enforced);
        Ok(Converted { grammar, not_enforced })
    })
}

impl SchemaSource<'_> {
    /// The origins of the rules of the grammar, in the order of the rules: the schema is converted
    /// again, so that a conversion keeps nothing for them.
    ///
    /// # Errors
    /// Those of [`convert`].
    pub fn rule_origins(&self) -> Result<Vec<RuleOrigin>> {
        self.converted(|converter, _, value, values| converter.rule_origins(value, values))
    }

    /// Keywords that say nothing about what is valid or were probably meant otherwise, and patterns
    /// with what ECMA-262 lacks, likewise; in the order of the document.
    ///
    /// # Errors
    /// Those of [`convert`].
    pub fn notes(&self) -> Result<Vec<SchemaNote>> {
        self.converted(|converter, _, _, values| {
            let with_forbidden = converter.note_forbidden(&values)?;
            converter.note_impossible(&values, &with_forbidden)?;
            converter.note_untyped(&values)?;
            converter.note_overlapping()?;
            converter.notes()
        })
    }

    /// What the schemas say of the place where a text stops, likewise; `None` where its beginning is no
    /// JSON.
    ///
    /// # Errors
    /// Those of [`convert`].
    pub fn explain(&self, beginning: Beginning<'_>) -> Result<Option<Explained>> {
        // What is read is JSON.
        if self.options.style != Style::Json {
            return Ok(None);
        }
        let explain = |source: &SchemaSource<'_>| {
            source.converted(|converter, root, value, values| {
                let explained =
                    explain::explain(converter, (root, value), values, beginning, self.budget)?;
                let overlap = converter.overlaps.values().any(|overlaps| !overlaps.is_empty());
                Ok((explained, overlap))
            })
        };
        let (mut explained, overlap) = explain(self)?;
        if let Some(explained) = &mut explained {
            if overlap && explained.has_dead_end() {
                explained.say_what_overlaps();
            } else if !self.options.open_objects && explained.has_unknown_member() {
                let opened = SchemaOptions { open_objects: true, ..self.options.clone() };
                let opened = explain(&SchemaSource { options: &opened, ..*self });
                if !matches!(opened, Ok((Some(opened), _)) if opened.has_unknown_member()) {
                    explained.say_what_opens();
                }
            }
        }
        Ok(explained)
    }

    /// Some work on the automata of the schema. Where no value satisfies it, the error says what would help.
    fn converted<T>(
        &self,
        work: impl FnOnce(&mut Converter<'_>, SchemaId, ValueId, ReachedValues) -> Result<T>,
    ) -> Result<T> {
        self.attempt(true, work)
    }

    /// The same; `is_asked` where an error says what would help.
    fn attempt<T>(
        &self,
        is_asked: bool,
        work: impl FnOnce(&mut Converter<'_>, SchemaId, ValueId, ReachedValues) -> Result<T>,
    ) -> Result<T> {
        let SchemaSource { text, resources, options, limits, budget } = *self;
        let given = resources.iter().map(|(_, text)| text.len()).sum::<usize>();
        if text.len().saturating_add(given) > limits.max_grammar_bytes {
            return Err(Error::Limit {
                limit: "max_grammar_bytes",
                value: limits.max_grammar_bytes as u64,
                message:
                    "the schema and its resources have more bytes; shorten them or raise the limit"
                        .into(),
            });
        }
        let read =
            ReadOptions { default_dialect: options.dialect, max_nesting: limits.max_nesting };
        let schemas = Schemas::new(text, resources, read, budget)?;
        let bounds = Bounds { budget, max_states: limits.max_automaton_states };
        let mut converter = Converter::new(&schemas, options, limits, bounds);
        // What the standard has says both.
        let has_metaschemas = schemas.has_metaschemas();
        let says = |names: &[&str]| has_metaschemas || schemas.arena().has_name(names);
        converter.has_dynamic = says(&["$dynamicRef", "$recursiveRef"]);
        converter.has_unevaluated = says(&["unevaluatedProperties", "unevaluatedItems"]);
        let scope = converter.scopes.intern(Box::default());
        let root = converter.child(schemas.root(), scope);
        let mut reached = || {
            let value = converter.value_of(root)?;
            let values = converter.reach(value)?;
            match values.productive.contains(&value) {
                true => Ok((value, values)),
                false => Err(converter.unsatisfiable(value, &values)?),
            }
        };
        match reached() {
            Ok((value, values)) => {
                let done = work(&mut converter, root, value, values);
                done.map_err(|error| converter.placed(error))
            }
            Err(error) => {
                let error = converter.placed(error);
                Err(if is_asked { self.with_what_helps(error) } else { error })
            }
        }
    }

    /// An error; where no value satisfies the schema because of an option, it says of which.
    fn with_what_helps(&self, mut error: Error) -> Error {
        let Error::Schema { kind: SchemaFault::Unsatisfiable, message, .. } = &mut error else {
            return error;
        };
        let passes = |options: SchemaOptions| {
            let other = SchemaSource { options: &options, ..*self };
            other.attempt(false, |_, _, _, _| Ok(())).is_ok()
        };
        let options = self.options;
        if let Some(most) = options.max_digits
            && passes(SchemaOptions { max_digits: None, ..options.clone() })
        {
            *message = format!(
                "no value satisfies what is said here within max_digits={most}, and the schema needs \
                 one; raise the option"
            );
        } else if passes(SchemaOptions { one_of_as_any: true, ..options.clone() }) {
            *message = format!("no value satisfies what is said here: {}", explain::OVERLAPPING);
        } else if !options.open_objects
            && passes(SchemaOptions { open_objects: true, ..options.clone() })
        {
            message.push_str(explain::OPENED);
        }
        error
    }
}
