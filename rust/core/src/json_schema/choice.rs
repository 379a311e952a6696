//! How schemas apply others to the same value, and which of the branches of unions are taken.

use super::atoms::{NameId, SchemaId};

/// How a schema applies another to the same value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Applied {
    /// `$ref`, `allOf`: always.
    Always,
    /// A branch of `anyOf`.
    Any,
    /// A branch of `oneOf`.
    One,
    /// `not`.
    Not,
    /// `if`, with what follows.
    If,
    /// `then`.
    Then,
    /// `else`.
    Else,
    /// `dependentSchemas`: where the object has a member of the name.
    Dependent(NameId),
}

/// Where a schema has branches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum BranchUnion {
    Any,
    One,
    /// `then` and `else`.
    Condition,
}

/// Which of the branches of a schema are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// The branch that is taken, for a schema and one of its unions.
    pub(super) taken: Vec<((SchemaId, BranchUnion), SchemaId)>,
    /// The schemas in which, or below which in place, a branch is taken.
    touched: Vec<SchemaId>,
}

impl Choice {
    /// The branch of a schema that is taken, where one is.
    pub(super) fn taken(&self, schema: SchemaId, how: Applied) -> Option<SchemaId> {
        let union = match how {
            Applied::Any => BranchUnion::Any,
            Applied::One => BranchUnion::One,
            Applied::Then | Applied::Else => BranchUnion::Condition,
            Applied::Always | Applied::Not | Applied::If | Applied::Dependent(_) => return None,
        };
        let place = self.taken.binary_search_by_key(&(schema, union), |taken| taken.0);
        place.ok().map(|place| self.taken[place].1)
    }

    /// Whether a branch of a schema, or of one that it applies, is taken.
    pub(super) fn touches(&self, schema: SchemaId) -> bool {
        self.touched.binary_search(&schema).is_ok()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// The choice, seen from a schema that applies the one of which it is, as a branch or always.
    pub(super) fn within(
        &self,
        schema: SchemaId,
        branch: Option<(BranchUnion, SchemaId)>,
    ) -> Option<Choice> {
        let mut out = self.clone();
        if let Some((union, child)) = branch {
            out =
                out.and(&Choice { taken: vec![((schema, union), child)], touched: Vec::new() })?;
        }
        if let (false, Err(place)) = (out.is_empty(), out.touched.binary_search(&schema)) {
            out.touched.insert(place, schema);
        }
        Some(out)
    }

    /// Both choices; `None` where they take different branches of one schema.
    pub(super) fn and(&self, other: &Choice) -> Option<Choice> {
        let mut out = self.clone();
        for &(of, branch) in &other.taken {
            match out.taken.binary_search_by_key(&of, |taken| taken.0) {
                Ok(place) if out.taken[place].1 != branch => return None,
                Ok(_) => {}
                Err(place) => out.taken.insert(place, (of, branch)),
            }
        }
        out.touched.extend(&other.touched);
        out.touched.sort_unstable();
        out.touched.dedup();
        Some(out)
    }
}
