//! Schemas, URIs and anchors of a document.

use super::load::{BYTES_PER_UNIT, Loader};
use super::{Note, NoteLevel, NoteText, Resource, ResourceId, UriTarget};
use crate::error::Result;
use crate::json_schema::dialect::{Dialect, Holds, Language};
use crate::json_schema::uri;
use crate::json_schema::value::{JsonNode, JsonNodeId};

impl Loader<'_> {
    /// Walks a document as a schema. `uri` is where it was found.
    pub(super) fn walk_document(&mut self, root: JsonNodeId, uri: &str) -> Result<()> {
        let language = self.schemas.default_language;
        let owner = self.add_resource(root, uri, language)?;
        self.walk(root, owner)
    }

    /// Walks a value as a schema of a resource, and the schemas in it.
    pub(super) fn walk(&mut self, schema: JsonNodeId, owner: ResourceId) -> Result<()> {
        self.schemas.owners.resize(self.schemas.arena.len(), None);
        let mut open = vec![(schema, owner)];
        while let Some((schema, owner)) = open.pop() {
            self.budget.spend(1)?;
            if self.schemas.owners[schema.index()].is_some() {
                continue;
            }
            let owner = match self.schemas.arena.object(schema) {
                Some(_) => self.enter(schema, owner)?,
                None => owner,
            };
            self.schemas.owners[schema.index()] = Some(owner);
            let first = open.len();
            self.push_subschemas(schema, owner, &mut open)?;
            open[first..].reverse();
        }
        Ok(())
    }

    fn push_subschemas(
        &self,
        schema: JsonNodeId,
        owner: ResourceId,
        open: &mut Vec<(JsonNodeId, ResourceId)>,
    ) -> Result<()> {
        let arena = &self.schemas.arena;
        let Some(object) = arena.object(schema) else {
            return Ok(());
        };
        let language = self.schemas.resources[owner.0 as usize].language;
        for (name, value) in object.iter() {
            self.budget.spend(1)?;
            let holds = language.keyword(name).map_or(Holds::NoSchema, |keyword| keyword.holds);
            match (holds, arena.node(value)) {
                (Holds::Schema | Holds::SchemaOrArray, node) if is_schema(node) => {
                    open.push((value, owner));
                }
                (Holds::Array | Holds::SchemaOrArray, JsonNode::Array(items)) => {
                    for &item in items.iter() {
                        self.budget.spend(1)?;
                        if is_schema(arena.node(item)) {
                            open.push((item, owner));
                        }
                    }
                }
                (Holds::Object, JsonNode::Object(named)) => {
                    for (_, value) in named.iter() {
                        self.budget.spend(1)?;
                        if is_schema(arena.node(value)) {
                            open.push((value, owner));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes a schema's names in: a resource of its own, anchors, references to follow later.
    fn enter(&mut self, schema: JsonNodeId, around: ResourceId) -> Result<ResourceId> {
        let is_document = self.schemas.arena.parent(schema).is_none();
        let (language, fault) = self.language_at(schema, around)?;
        let text = |name: &str| self.text(schema, name);
        let hides = language.dialect.reference_hides_siblings();
        let is_hidden = hides && self.schemas.arena.get(schema, "$ref").is_some();
        let id_keyword = language.dialect.id_keyword();
        let id = text(id_keyword).filter(|_| !is_hidden && language.keyword(id_keyword).is_some());
        let (uri, fragment) = id.as_deref().map_or(("", None), uri::split_fragment);
        let mut owner = around;
        if !uri.is_empty() {
            let base = self.absolute(around, uri)?;
            owner = match is_document {
                true => self.rename(around, base)?,
                false => self.add_resource(schema, &base, language)?,
            };
        }
        let is_resource = is_document || !uri.is_empty();
        if is_resource {
            let resource = &mut self.schemas.resources[owner.0 as usize];
            (resource.language, resource.fault) = (language, fault);
        } else if self.schemas.arena.get(schema, "$schema").is_some() {
            let is_same =
                language.dialect == self.schemas.resources[owner.0 as usize].language.dialect;
            let level = if is_same { NoteLevel::Info } else { NoteLevel::Warning };
            let message = "$schema has a meaning only at the root of a document and beside the URI of \
                           a schema";
            self.note(schema, "$schema", (level, message.into()));
        }
        let language = self.schemas.resources[owner.0 as usize].language;
        if let Some(anchor) = fragment.filter(|anchor| is_anchor(anchor)) {
            self.add_anchor(owner, anchor, schema)?;
        }
        if language.dialect >= Dialect::Draft2019 {
            self.enter_anchors(schema, owner, language.dialect)?;
        }
        let refers =
            |name: &str| language.keyword(name).is_some() && self.text(schema, name).is_some();
        if refers("$ref") || refers("$dynamicRef") {
            self.references.push_back(schema);
        }
        Ok(owner)
    }

    fn enter_anchors(
        &mut self,
        schema: JsonNodeId,
        owner: ResourceId,
        dialect: Dialect,
    ) -> Result<()> {
        if let Some(anchor) = self.text(schema, "$anchor") {
            self.add_anchor(owner, &anchor, schema)?;
        }
        if dialect == Dialect::Draft2020 {
            if let Some(anchor) = self.text(schema, "$dynamicAnchor") {
                self.add_anchor(owner, &anchor, schema)?;
                self.resource(owner).dynamic_anchors.push((anchor.into(), schema));
            }
            return Ok(());
        }
        let anchor = self.schemas.arena.get(schema, "$recursiveAnchor");
        let is_true =
            anchor.map(|anchor| self.schemas.arena.node(anchor)) == Some(&JsonNode::Boolean(true));
        if is_true && self.resource(owner).root == schema {
            self.resource(owner).dynamic_anchors.push((Box::default(), schema));
        }
        Ok(())
    }

    fn resource(&mut self, id: ResourceId) -> &mut Resource {
        &mut self.schemas.resources[id.0 as usize]
    }

    /// What a reference in a resource means.
    pub(super) fn absolute(&self, owner: ResourceId, reference: &str) -> Result<String> {
        let base = &self.schemas.resources[owner.0 as usize].base;
        self.budget.spend(1 + (base.len() + reference.len()) / BYTES_PER_UNIT)?;
        Ok(uri::resolve(base, reference))
    }

    /// The text of a name, where the schema has one.
    pub(super) fn text(&self, schema: JsonNodeId, name: &str) -> Option<String> {
        let arena = &self.schemas.arena;
        arena.get(schema, name).and_then(|value| arena.node(value).as_str()).map(str::to_owned)
    }

    pub(super) fn note(&mut self, schema: JsonNodeId, keyword: &str, (level, message): NoteText) {
        let place = self.schemas.arena.get(schema, keyword).unwrap_or(schema);
        self.schemas.notes.push(Note { place, keyword: keyword.into(), level, message });
    }

    fn add_resource(
        &mut self,
        root: JsonNodeId,
        base: &str,
        language: Language,
    ) -> Result<ResourceId> {
        let id = ResourceId(self.schemas.resources.len() as u32);
        self.schemas.resources.push(Resource {
            root,
            base: base.into(),
            language,
            anchors: Default::default(),
            dynamic_anchors: Vec::new(),
            fault: None,
        });
        self.add_uri(base, root)?;
        Ok(id)
    }

    /// Gives a document the URI of its own choice beside that under which it was found.
    fn rename(&mut self, id: ResourceId, base: String) -> Result<ResourceId> {
        self.add_uri(&base, self.schemas.resources[id.0 as usize].root)?;
        self.resource(id).base = base.into();
        Ok(id)
    }

    fn add_uri(&mut self, uri: &str, root: JsonNodeId) -> Result<()> {
        self.budget.spend(1 + uri.len() / BYTES_PER_UNIT)?;
        let arena = &self.schemas.arena;
        let places = &mut self.schemas.uris;
        match places.get_mut(uri) {
            Some(place) => place.join(root, |first| arena.equal(first, root)),
            None => {
                places.insert(uri.into(), UriTarget::One(root));
            }
        }
        Ok(())
    }

    fn add_anchor(&mut self, owner: ResourceId, anchor: &str, schema: JsonNodeId) -> Result<()> {
        self.budget.spend(1 + anchor.len() / BYTES_PER_UNIT)?;
        let anchors = &mut self.resource(owner).anchors;
        match anchors.get_mut(anchor) {
            Some(place) => place.join(schema, |_| false),
            None => {
                anchors.insert(anchor.into(), UriTarget::One(schema));
            }
        }
        Ok(())
    }
}

impl UriTarget {
    /// A name that stands for one more schema: no matter if that is the same, or an equal one.
    fn join(&mut self, other: JsonNodeId, is_equal_to: impl FnOnce(JsonNodeId) -> bool) {
        if let UriTarget::One(first) = *self
            && first != other
            && !is_equal_to(first)
        {
            *self = UriTarget::Several(first, other);
        }
    }
}

/// Whether a value can be a schema.
fn is_schema(node: &JsonNode) -> bool {
    matches!(node, JsonNode::Object(_) | JsonNode::Boolean(_))
}

/// Whether the fragment of an `$id` names its schema: it is no JSON pointer, and not empty.
fn is_anchor(fragment: &str) -> bool {
    !fragment.is_empty() && !fragment.starts_with('/')
}
