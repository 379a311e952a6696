//! Notes: parts of schemas that have no influence on what is valid.

use super::Schemas;
use crate::budget::Budget;
use crate::error::Result;
use crate::json_schema::dialect::{Dialect, Keyword, ONLY_DRAFT3, Role};
use crate::json_schema::value::NodeId;
use std::fmt;

/// Why a part of a schema has no influence on what is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteReason {
    /// `$schema` names a metaschema that is not given: the schema is read as 2020-12.
    UnknownMetaschema,
    /// The keyword informs, and asserts nothing.
    Annotation,
    /// No dialect has the keyword.
    UnknownKeyword,
    /// Another dialect has the keyword.
    OtherDialect(Dialect),
    /// The metaschema leaves the vocabulary of the keyword out.
    Vocabulary,
    /// `$ref` stands beside it; in this dialect it hides the keyword.
    HiddenByReference(Dialect),
    /// `$schema` stands in a schema without a URI, where it has no meaning.
    NotAResource,
}

/// A part of a schema that has no influence on what is valid.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Note {
    /// The value of the keyword; [`Arena::pointer`] has its pointer.
    pub place: NodeId,
    /// The keyword.
    pub keyword: Box<str>,
    /// Why.
    pub reason: NoteReason,
}

/// A [`Note`] that outlives the documents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlacedNote {
    /// The JSON pointer of the keyword.
    pub pointer: String,
    /// The keyword.
    pub keyword: Box<str>,
    /// Why it has no influence.
    pub reason: NoteReason,
}

impl fmt::Display for NoteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoteReason::UnknownMetaschema => f.write_str(
                "the metaschema is neither of the standard nor given in resources; the schema is \
                 read as 2020-12",
            ),
            NoteReason::Annotation => f.write_str("the keyword is an annotation"),
            NoteReason::UnknownKeyword => f.write_str("no dialect has this keyword"),
            NoteReason::OtherDialect(dialect) => {
                write!(f, "the dialect of the schema, {}, has no such keyword", dialect.name())
            }
            NoteReason::Vocabulary => {
                f.write_str("the metaschema leaves out the vocabulary of the keyword")
            }
            NoteReason::HiddenByReference(dialect) => {
                write!(f, "in {}, $ref hides all keywords beside it", dialect.name())
            }
            NoteReason::NotAResource => f.write_str(
                "$schema has a meaning only at the root of a document and beside the URI of a schema",
            ),
        }
    }
}

impl Schemas {
    /// Notes on documents as a whole.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The notes on documents, then those on some schemas, each schema once, with pointers.
    ///
    /// # Errors
    /// As [`Self::notes_on`]; those of the budget.
    pub fn placed_notes(
        &self,
        schemas: impl IntoIterator<Item = NodeId>,
        budget: &Budget,
    ) -> Result<Vec<PlacedNote>> {
        let mut schemas: Vec<NodeId> = schemas.into_iter().collect();
        schemas.sort_unstable();
        schemas.dedup();
        let mut placed = Vec::new();
        let mut place = |note: &Note| {
            let pointer = self.arena().pointer(note.place);
            budget.spend(1 + pointer.len())?;
            placed.push(PlacedNote { pointer, keyword: note.keyword.clone(), reason: note.reason });
            Ok(())
        };
        self.notes.iter().try_for_each(&mut place)?;
        for schema in schemas {
            budget.spend(1 + self.arena().object(schema).map_or(0, |object| object.len()))?;
            self.notes_on(schema)?.iter().try_for_each(&mut place)?;
        }
        Ok(placed)
    }

    /// The keywords of a schema that have no influence on what is valid, in document order.
    ///
    /// # Errors
    /// Unsupported where a schema of draft 3 has a keyword that draft 4 replaced.
    pub fn notes_on(&self, schema: NodeId) -> Result<Vec<Note>> {
        let Some(object) = self.arena().object(schema) else {
            return Ok(Vec::new());
        };
        let language = self.language(schema);
        let hides = language.dialect.reference_hides_siblings() && object.get("$ref").is_some();
        let mut notes = Vec::new();
        for (name, value) in object.iter() {
            if language.is_draft3 && ONLY_DRAFT3.contains(&name) && !hides {
                return Err(self.only_draft3(schema, name));
            }
            let reason = match Keyword::named(name) {
                None => Some(NoteReason::UnknownKeyword),
                Some(keyword) => match keyword.role {
                    Role::Structure if language.counts(keyword) => None,
                    Role::Annotates if keyword.is_in(language.dialect) => {
                        Some(NoteReason::Annotation)
                    }
                    _ if !keyword.is_in(language.dialect) => {
                        Some(NoteReason::OtherDialect(language.dialect))
                    }
                    _ if !language.has(keyword.vocabulary) => Some(NoteReason::Vocabulary),
                    _ if hides && name != "$ref" => {
                        Some(NoteReason::HiddenByReference(language.dialect))
                    }
                    _ => None,
                },
            };
            if let Some(reason) = reason {
                notes.push(Note { place: value, keyword: name.into(), reason });
            }
        }
        Ok(notes)
    }
}
