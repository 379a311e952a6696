//! Documents, and the dialects that they are written in: what `$schema` says, and what an unknown one means.

use super::lookup::Missing;
use super::{NoteLevel, ResourceId, Schemas};
use crate::budget::Budget;
use crate::error::{Error, Result, SchemaFault};
use crate::json_schema::dialect::{Dialect, Language};
use crate::json_schema::metaschemas;
use crate::json_schema::uri;
use crate::json_schema::value::{JsonNode, JsonNodeId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Bytes of a URI that count as one unit of work.
pub(super) const BYTES_PER_UNIT: usize = 4;

/// Metaschemas of metaschemas that are looked at to find a dialect.
const MAX_METASCHEMAS: usize = 16;

/// Keywords that may lead to other documents.
const REFERENCES: [&str; 2] = ["$ref", "$dynamicRef"];

/// Makes the tables of [`Schemas`].
pub(super) struct Loader<'a> {
    pub(super) schemas: &'a mut Schemas,
    pub(super) budget: &'a Budget,
    /// Texts that the caller gave, by URI.
    given: BTreeMap<&'a str, &'a str>,
    /// Schemas with references that are to be followed.
    pub(super) references: VecDeque<JsonNodeId>,
    /// Whether every given document is walked.
    has_all: bool,
}

impl<'a> Loader<'a> {
    pub(super) fn new(
        schemas: &'a mut Schemas,
        resources: &'a [(String, String)],
        budget: &'a Budget,
    ) -> Self {
        let given = resources.iter().map(|(uri, text)| (uri::split_fragment(uri).0, text.as_str()));
        let (given, references) = (given.collect(), VecDeque::new());
        Self { schemas, budget, given, references, has_all: false }
    }

    /// Walks the root document, then whatever references lead to.
    pub(super) fn run(mut self) -> Result<()> {
        let root = self.schemas.root;
        self.check_metaschema(root)?;
        self.walk_document(root, "")?;
        self.schemas.default_language = self.schemas.language(root);
        while let Some(schema) = self.references.pop_front() {
            for keyword in REFERENCES {
                if let Some(reference) = self.text(schema, keyword) {
                    self.follow(schema, keyword, &reference)?;
                }
            }
        }
        Ok(())
    }

    fn check_metaschema(&self, root: JsonNodeId) -> Result<()> {
        let arena = &self.schemas.arena;
        match arena.get(root, "$schema").map(|value| arena.node(value)) {
            None | Some(JsonNode::String(_)) => Ok(()),
            Some(other) => {
                let message = format!("expected the URI of a metaschema, found {}", other.kind());
                Err(self.schemas.fault(SchemaFault::Invalid, root, "$schema", message))
            }
        }
    }

    /// Makes sure that a reference can be answered, if that can be.
    fn follow(&mut self, schema: JsonNodeId, keyword: &'static str, reference: &str) -> Result<()> {
        let owner = self.schemas.owner_id(schema);
        if reference.starts_with('#') {
            self.budget.spend(1 + reference.len() / BYTES_PER_UNIT)?;
        } else {
            self.absolute(owner, reference)?; // for its work; looking it up does that again
        }
        let target = loop {
            match self.schemas.look_up(owner, reference) {
                Ok(target) => break target,
                Err(Missing::Document(uri)) if self.load(&uri)? => {}
                Err(_) => return Ok(()),
            }
        };
        let around = self.schemas.owner_id(target);
        self.walk(target, around)?;
        self.schemas.targets.insert((schema, keyword), target);
        Ok(())
    }

    /// Walks the document of a URI, or where none has it, all that are given: one may hold a schema
    /// of this URI. Gives whether there is more now than before.
    fn load(&mut self, uri: &str) -> Result<bool> {
        if self.load_one(uri)? {
            return Ok(true);
        }
        if self.has_all {
            return Ok(false);
        }
        self.has_all = true;
        let uris: Vec<&str> = self.given.keys().copied().collect();
        for uri in uris {
            self.load_one(uri)?;
        }
        Ok(true)
    }

    /// Walks the document of a URI, if there is one that is not walked yet.
    fn load_one(&mut self, uri: &str) -> Result<bool> {
        if self.schemas.uris.contains_key(uri) {
            return Ok(false);
        }
        match self.read(uri)? {
            Some(root) if self.schemas.owners.get(root.index()).is_none_or(Option::is_none) => {
                self.walk_document(root, uri).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    /// Reads the document of a URI, if there is one and it is JSON.
    fn read(&mut self, uri: &str) -> Result<Option<JsonNodeId>> {
        let (uri, text) = match (self.given.get(uri), metaschemas::of(uri)) {
            (Some(&text), _) => (uri, text),
            (None, Some((canonical, text))) => (canonical, text),
            (None, None) => return Ok(None),
        };
        if let Some(known) = self.schemas.documents.get(uri) {
            return Ok(known.as_ref().ok().copied());
        }
        let max_nesting = self.schemas.options.max_nesting;
        let document = self.schemas.arena.read(text, uri, max_nesting, self.budget);
        if let Err(error) = &document
            && !matches!(error, Error::Schema { .. } | Error::Limit { limit: "max_nesting", .. })
        {
            return Err(error.clone());
        }
        let root = document.as_ref().ok().copied();
        self.schemas.documents.insert(uri.into(), document);
        Ok(root)
    }

    /// The language of a schema that may be a resource, with the fault that its metaschema has.
    pub(super) fn language_at(
        &mut self,
        schema: JsonNodeId,
        around: ResourceId,
    ) -> Result<(Language, Option<Arc<Error>>)> {
        let outer = &self.schemas.resources[around.0 as usize];
        let inherited = (outer.language, outer.fault.clone());
        let Some(metaschema) = self.text(schema, "$schema") else {
            return Ok(inherited);
        };
        if let Some(language) = Language::of_metaschema(&metaschema) {
            return Ok((language, None));
        }
        let uri = self.absolute(around, &metaschema)?;
        match self.language_of(&uri)? {
            Ok(Some(language)) => Ok((language, None)),
            Ok(None) => {
                let Language { dialect, is_declared, .. } = inherited.0;
                let latest = ["http://json-schema.org/schema", "https://json-schema.org/schema"];
                let (level, why) = match latest.contains(&metaschema.trim_end_matches('#')) {
                    true => (NoteLevel::Info, "it names no dialect"),
                    false => (
                        if is_declared { NoteLevel::Info } else { NoteLevel::Warning },
                        "the metaschema is neither of the standard nor given in resources",
                    ),
                };
                let message = format!("{why}; the schema is read as {}", dialect.name());
                self.note(schema, "$schema", (level, message.into()));
                Ok((inherited.0, None))
            }
            Err(Error::Schema { kind, message, .. }) => {
                let fault = self.schemas.fault(kind, schema, "$schema", message);
                Ok((inherited.0, Some(Arc::new(fault))))
            }
            Err(other) => Err(other),
        }
    }

    /// The language that a metaschema describes; nothing where it is not given.
    fn language_of(&mut self, uri: &str) -> Result<Result<Option<Language>>> {
        if let Some(known) = self.schemas.languages.get(uri) {
            return Ok(known.clone());
        }
        let language = match self.read(uri)? {
            Some(root) => self.language_described(root, uri)?,
            None => match self.schemas.documents.get(uri) {
                Some(Err(error)) => Err(error.clone()),
                _ => Ok(None),
            },
        };
        self.schemas.languages.insert(uri.into(), language.clone());
        Ok(language)
    }

    fn language_described(
        &mut self,
        root: JsonNodeId,
        uri: &str,
    ) -> Result<Result<Option<Language>>> {
        let mut place = root;
        let mut base = uri.to_owned();
        let mut language = Language::by_default();
        for _ in 0..MAX_METASCHEMAS {
            let Some(metaschema) = self.text(place, "$schema") else {
                break;
            };
            if let Some(known) = Language::of_metaschema(&metaschema) {
                language = known;
                break;
            }
            base = uri::resolve(&base, &metaschema);
            match self.read(&base)? {
                Some(next) if next != place => place = next,
                _ => break,
            }
        }
        let arena = &self.schemas.arena;
        let listed = arena.get(root, "$vocabulary").and_then(|value| arena.object(value));
        let (Some(listed), true) = (listed, language.dialect >= Dialect::Draft2019) else {
            return Ok(Ok(Some(language)));
        };
        let is_required = |value: JsonNodeId| *arena.node(value) == JsonNode::Boolean(true);
        let listed = listed.iter().map(|(name, value)| (name, is_required(value)));
        Ok(match language.restricted(listed) {
            Ok(language) => Ok(Some(language)),
            Err(vocabulary) => {
                let message = format!(
                    "the metaschema {uri} requires the vocabulary {vocabulary}, which is unknown; \
                     use a metaschema of the standard, or mark the vocabulary as optional"
                );
                Err(self.schemas.fault(SchemaFault::Unsupported, root, "$vocabulary", message))
            }
        })
    }
}
