//! References: where `$ref`, `$dynamicRef` and `$recursiveRef` lead.

use super::{ResourceId, Schemas, UriTarget};
use crate::error::{Error, Result, SchemaFault};
use crate::json_schema::dialect::Dialect;
use crate::json_schema::metaschemas;
use crate::json_schema::uri;
use crate::json_schema::value::{JsonNode, JsonNodeId};

/// Where documents keep their definitions.
const DEFINITIONS: [&str; 3] = ["/$defs", "/definitions", "/components/schemas"];

/// Where a `$dynamicRef` or `$recursiveRef` leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    /// The schema that it leads to as a plain `$ref`.
    pub target: JsonNodeId,
    /// The name under which the outermost resource of the dynamic scope that offers it replaces the
    /// target; nothing where the reference is as a plain one. It is empty for `$recursiveRef`.
    pub name: Option<Box<str>>,
}

/// Why a reference leads nowhere.
pub(super) enum Missing {
    /// No document has this URI.
    Document(String),
    /// The fragment is no percent-encoded UTF-8.
    Encoding,
    /// The pointer names nothing; this value is the last on its way.
    Pointer(JsonNodeId),
    /// A resource has no such anchor.
    Anchor(ResourceId, String),
    /// Two schemas have the URI, or the anchor.
    Ambiguous(JsonNodeId, JsonNodeId),
}

impl Schemas {
    /// The schema that a reference in a schema leads to. The reference should be one that a `$ref`
    /// or a `$dynamicRef` of that schema holds: the documents of others may not be there.
    ///
    /// # Errors
    /// [`Error::Schema`]: Invalid where it leads nowhere, Unsupported where it leads to a document
    /// that is not given.
    pub fn resolve(&self, schema: JsonNodeId, reference: &str) -> Result<JsonNodeId> {
        self.resolve_keyword(schema, "$ref", reference)
    }

    /// The schema that the `$ref` of a schema leads to, if it has one.
    ///
    /// # Errors
    /// As [`Self::resolve`]; Invalid where the value is no string.
    pub fn reference(&self, schema: JsonNodeId) -> Result<Option<JsonNodeId>> {
        let Some(reference) = self.text(schema, "$ref")? else {
            return Ok(None);
        };
        self.resolve(schema, reference).map(Some)
    }

    /// Where the `$dynamicRef` or `$recursiveRef` of a schema leads, if it has one.
    ///
    /// # Errors
    /// As [`Self::reference`].
    pub fn dynamic(&self, schema: JsonNodeId) -> Result<Option<Dynamic>> {
        if let Some(reference) = self.text(schema, "$recursiveRef")? {
            let target = self.resolve_keyword(schema, "$recursiveRef", reference)?;
            let is_dynamic = self.dynamic_anchor(target, "") == Some(target);
            return Ok(Some(Dynamic { target, name: is_dynamic.then(Box::default) }));
        }
        let Some(reference) = self.text(schema, "$dynamicRef")? else {
            return Ok(None);
        };
        let target = self.resolve_keyword(schema, "$dynamicRef", reference)?;
        let name = uri::split_fragment(reference).1.and_then(uri::percent_decoded);
        let is_dynamic = |name: &String| {
            let is_anchor = !name.is_empty() && self.dialect(target) == Dialect::Draft2020;
            is_anchor && self.dynamic_anchor(target, name) == Some(target)
        };
        Ok(Some(Dynamic { target, name: name.filter(is_dynamic).map(Into::into) }))
    }

    fn resolve_keyword(
        &self,
        schema: JsonNodeId,
        keyword: &'static str,
        reference: &str,
    ) -> Result<JsonNodeId> {
        let target = match self.targets.get(&(schema, keyword)) {
            Some(&target) if self.refers(schema, keyword, reference) => target,
            _ => self
                .look_up(self.owner_id(schema), reference)
                .map_err(|missing| self.missing(schema, keyword, reference, missing))?,
        };
        match self.fault_of(target) {
            Some(fault) => Err(fault.clone()),
            None => Ok(target),
        }
    }

    /// Whether a keyword of a schema holds this reference.
    fn refers(&self, schema: JsonNodeId, keyword: &str, reference: &str) -> bool {
        let value = self.arena.get(schema, keyword).map(|value| self.arena.node(value));
        value.and_then(JsonNode::as_str) == Some(reference)
    }

    fn missing(
        &self,
        schema: JsonNodeId,
        keyword: &str,
        reference: &str,
        missing: Missing,
    ) -> Error {
        let meant = self.meant(schema, reference);
        let message = match missing {
            Missing::Document(uri) => return self.missing_document(schema, keyword, &uri, &meant),
            Missing::Encoding => {
                format!("the fragment of {reference} is not percent-encoded UTF-8")
            }
            Missing::Pointer(last) => format!(
                "{reference} leads to nothing: {} is the last part of it that exists, {}{meant}",
                self.arena.pointer(last),
                self.arena.node(last).kind()
            ),
            Missing::Anchor(resource, anchor) => format!(
                "{reference} leads to nothing: no schema of {}# has the anchor {anchor}{meant}",
                self.resources[resource.0 as usize].base
            ),
            Missing::Ambiguous(first, second) => format!(
                "{reference} stands for two schemas, {} and {}; rename one",
                self.arena.pointer(first),
                self.arena.pointer(second)
            ),
        };
        self.fault(SchemaFault::Invalid, schema, keyword, message)
    }

    /// The reference that was probably meant, in words: a definition of the document that is named otherwise.
    fn meant(&self, schema: JsonNodeId, reference: &str) -> String {
        let name = reference.trim_start_matches('#').trim_start_matches('/');
        let prefixes = DEFINITIONS.iter().filter_map(|place| name.strip_prefix(&place[1..]));
        let name = prefixes.map(|name| name.trim_start_matches('/')).next().unwrap_or(name);
        let name = name.replace("~1", "/").replace("~0", "~");
        let token = name.replace('~', "~0").replace('/', "~1");
        let root = self.resources[self.owner_id(schema).0 as usize].root;
        let pointers = DEFINITIONS.iter().map(|place| format!("{place}/{token}"));
        let mut found = pointers.filter_map(|pointer| self.arena.follow(root, &pointer).ok());
        found.next().map_or_else(String::new, |place| {
            format!("; did you mean {:?}?", self.arena.pointer(place))
        })
    }

    fn missing_document(&self, schema: JsonNodeId, keyword: &str, uri: &str, meant: &str) -> Error {
        let canonical = metaschemas::of(uri).map_or(uri, |(canonical, _)| canonical);
        let document = self.documents.get(uri).or_else(|| self.documents.get(canonical));
        if let Some(Err(error)) = document {
            return error.clone();
        }
        let message = format!(
            "the document {uri} is not given, and references are never fetched; pass its text in \
             resources, under this URI{meant}"
        );
        self.fault(SchemaFault::Unsupported, schema, keyword, message)
    }

    /// The value that a reference in a resource leads to, by what is walked so far.
    pub(super) fn look_up(
        &self,
        from: ResourceId,
        reference: &str,
    ) -> std::result::Result<JsonNodeId, Missing> {
        let resource = &self.resources[from.0 as usize];
        let (uri, fragment) = uri::split_fragment(reference);
        let root = match uri {
            "" => resource.root,
            uri => self.document_at(&uri::resolve(&resource.base, uri), resource.root)?,
        };
        let fragment = uri::percent_decoded(fragment.unwrap_or_default());
        let fragment = fragment.ok_or(Missing::Encoding)?;
        if fragment.is_empty() {
            return Ok(root);
        }
        if fragment.starts_with('/') {
            return self.arena.follow(root, &fragment).map_err(Missing::Pointer);
        }
        match self.owner(root).anchors.get(fragment.as_str()) {
            Some(&UriTarget::One(schema)) => Ok(schema),
            Some(&UriTarget::Several(first, second)) => Err(Missing::Ambiguous(first, second)),
            None => Err(Missing::Anchor(self.owner_id(root), fragment)),
        }
    }

    /// The root of the resource with a URI. A URI that is the base of the reference is that of the
    /// resource around it, whoever else claims it.
    fn document_at(
        &self,
        uri: &str,
        around: JsonNodeId,
    ) -> std::result::Result<JsonNodeId, Missing> {
        if *self.owner(around).base == *uri {
            return Ok(around);
        }
        let known = self.uris.get(uri).or_else(|| {
            let (canonical, _) = metaschemas::of(uri)?;
            self.uris.get(canonical)
        });
        match known {
            Some(&UriTarget::One(root)) => Ok(root),
            Some(&UriTarget::Several(first, second)) => Err(Missing::Ambiguous(first, second)),
            None => Err(Missing::Document(uri.to_owned())),
        }
    }
}
