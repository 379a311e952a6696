//! Schemas and what they refer to.
//!
//! Design: docs/design/json-schema.md.
//!
//! [`Schemas::new`] reads the root document, walks its schemas, and does the same with every document
//! that a reference leads to: one of `resources`, or a metaschema of the standard. Afterwards nothing
//! changes: every question is answered from tables. A reference that leads nowhere is an error only
//! when somebody asks for it.
//!
//! Invariants:
//! - schemas are found only where a keyword of their dialect holds schemas, so a `$id` in `enum`,
//!   `const` or an unknown keyword names nothing;
//! - what a JSON pointer reaches elsewhere is walked as a schema then, in the resource around it;
//! - every walked value belongs to one resource: a document, or an embedded schema with a URI.
//!
//! Files: `walk` (schemas, URIs and anchors of a document), `load` (documents and the languages that
//! they are written in), `lookup` (references), `notes` (what says nothing about validity),
//! `spelling` (names that are like known ones).

mod load;
mod lookup;
mod notes;
mod spelling;
#[cfg(test)]
mod tests;
mod walk;

pub use lookup::Dynamic;
pub use notes::{Note, NoteLevel};
pub(super) use notes::{NoteText, types_of};
pub(super) use spelling::name_like;

use super::dialect::{Dialect, Language};
use super::value::{Arena, JsonNodeId};
use crate::budget::Budget;
use crate::error::{Error, Result, SchemaFault};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What [`Schemas::new`] may be told.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// The dialect of documents without `$schema`; 2020-12 where nothing is said.
    pub default_dialect: Option<Dialect>,
    /// Levels of arrays and objects in a document.
    pub max_nesting: usize,
}

/// A document, or a schema in it that has a URI of its own.
struct Resource {
    root: JsonNodeId,
    base: Box<str>,
    language: Language,
    anchors: BTreeMap<Box<str>, UriTarget>,
    /// Anchors of `$dynamicAnchor`, in document order; the empty name is `$recursiveAnchor`.
    dynamic_anchors: Vec<(Box<str>, JsonNodeId)>,
    /// Why the resource cannot be understood: its metaschema requires an unknown vocabulary.
    fault: Option<Arc<Error>>,
}

/// Where a URI or an anchor leads.
#[derive(Clone, Copy)]
enum UriTarget {
    One(JsonNodeId),
    /// Two schemas that differ claim the name; these are the first two.
    Several(JsonNodeId, JsonNodeId),
}

/// A number of a [`Resource`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ResourceId(u32);

/// A schema, and every document that it refers to.
pub struct Schemas {
    arena: Arena,
    root: JsonNodeId,
    options: ReadOptions,
    /// The language of documents that name none.
    default_language: Language,
    resources: Vec<Resource>,
    /// The resource of each walked value, by its position in the arena.
    owners: Vec<Option<ResourceId>>,
    /// Resources by their URIs without fragments.
    uris: BTreeMap<Box<str>, UriTarget>,
    /// Documents that the caller gave or the standard has, read so far, or why they cannot be.
    documents: BTreeMap<Box<str>, Result<JsonNodeId>>,
    languages: BTreeMap<Box<str>, Result<Option<Language>>>,
    /// Where the `$ref` of a schema leads, and its `$dynamicRef` as a plain one.
    targets: BTreeMap<(JsonNodeId, &'static str), JsonNodeId>,
    notes: Vec<Note>,
}

impl Schemas {
    /// Reads a schema and what it refers to. `resources` are pairs of a URI and the text of the
    /// document there.
    ///
    /// # Errors
    /// [`Error::Schema`] where the text is no JSON or its metaschema cannot be honoured;
    /// [`Error::Limit`] where it nests too deeply; those of the budget.
    pub fn new(
        text: &str,
        resources: &[(String, String)],
        options: ReadOptions,
        budget: &Budget,
    ) -> Result<Self> {
        let default = options.default_dialect.map_or_else(Language::by_default, Language::of);
        let mut schemas = Self {
            arena: Arena::new(),
            root: JsonNodeId(0),
            options,
            default_language: default,
            resources: Vec::new(),
            owners: Vec::new(),
            uris: BTreeMap::new(),
            documents: BTreeMap::new(),
            languages: BTreeMap::new(),
            targets: BTreeMap::new(),
            notes: Vec::new(),
        };
        schemas.root = schemas.arena.read(text, "", options.max_nesting, budget)?;
        load::Loader::new(&mut schemas, resources, budget).run()?;
        match &schemas.owner(schemas.root).fault {
            Some(fault) => Err(Error::clone(fault)),
            None => Ok(schemas),
        }
    }

    /// The root of the schema.
    pub fn root(&self) -> JsonNodeId {
        self.root
    }

    /// Whether a document of the standard was read, since a reference leads there.
    pub fn has_metaschemas(&self) -> bool {
        self.documents.keys().any(|uri| uri.contains("json-schema.org"))
    }

    /// All documents.
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The dialect of a schema.
    pub fn dialect(&self, schema: JsonNodeId) -> Dialect {
        self.language(schema).dialect
    }

    /// The language of a schema: its dialect, and which vocabularies of it count.
    pub fn language(&self, schema: JsonNodeId) -> Language {
        self.owner(schema).language
    }

    /// The root of the schema resource that a schema belongs to.
    pub fn resource(&self, schema: JsonNodeId) -> JsonNodeId {
        self.owner(schema).root
    }

    /// The names and schemas of the `$dynamicAnchor`s of a resource, in document order. The empty
    /// name stands for `$recursiveAnchor: true`.
    pub fn dynamic_anchors(&self, resource: JsonNodeId) -> &[(Box<str>, JsonNodeId)] {
        &self.owner(resource).dynamic_anchors
    }

    /// The schema that a resource offers under a dynamic name.
    pub fn dynamic_anchor(&self, resource: JsonNodeId, name: &str) -> Option<JsonNodeId> {
        let anchors = self.dynamic_anchors(resource).iter();
        anchors.filter(|(known, _)| **known == *name).map(|&(_, schema)| schema).next()
    }

    /// Every schema that was found, in document order, document by document.
    pub fn schemas(&self) -> impl Iterator<Item = JsonNodeId> {
        let walked = self.owners.iter().enumerate().filter(|(_, owner)| owner.is_some());
        walked.map(|(index, _)| JsonNodeId(index as u32))
    }

    /// Whether a value was found as a schema.
    fn is_walked(&self, value: JsonNodeId) -> bool {
        self.owners.get(value.index()).is_some_and(Option::is_some)
    }

    /// Why the resource of a schema cannot be understood, if so.
    pub(super) fn fault_of(&self, schema: JsonNodeId) -> Option<&Error> {
        self.owner(schema).fault.as_deref()
    }

    /// The resource of a value: that of the nearest walked value around it.
    fn owner_id(&self, value: JsonNodeId) -> ResourceId {
        let mut place = value;
        loop {
            if let Some(owner) = self.owners.get(place.index()).copied().flatten() {
                return owner;
            }
            match self.arena.parent(place) {
                Some(parent) => place = parent,
                None => return ResourceId(0), // roots are walked before anybody can ask
            }
        }
    }

    fn owner(&self, value: JsonNodeId) -> &Resource {
        &self.resources[self.owner_id(value).0 as usize]
    }

    /// An error at a keyword of a schema.
    pub(super) fn fault(
        &self,
        kind: SchemaFault,
        schema: JsonNodeId,
        keyword: &str,
        message: impl Into<String>,
    ) -> Error {
        Error::Schema {
            kind,
            pointer: self.arena.pointer(schema),
            keyword: keyword.to_owned(),
            message: message.into(),
        }
    }
}
