//! Notes on schemas that say what they say, and were probably meant otherwise: conditions on one type where values of
//! all other types are free, and branches of `oneOf` that no value takes alone.

use super::atoms::{SchemaId, SchemaKey, Type, ValueId};
use super::choice::Applied;
use super::converter::Converter;
use super::formula::FormulaId;
use super::resolve::{Note, NoteLevel, types_of};
use super::value::JsonNodeId;
use super::values::ReachedValues;
use crate::error::Result;
use std::collections::BTreeMap;

/// Branches of one `oneOf`, and of all, for which a value is looked for.
const MOST_BRANCHES: usize = 16;
const MOST_LOOKED_FOR: usize = 128;

impl Converter<'_> {
    /// Notes schemas with conditions on one type that leave values of the others free, where no `type` stands beside.
    pub(super) fn note_untyped(&mut self, values: &ReachedValues) -> Result<()> {
        let mut asked: Vec<(ValueId, SchemaId)> = self.asked.iter().copied().collect();
        self.spend(1 + asked.len())?;
        asked.retain(|one| values.productive.contains(&one.0));
        asked.sort_unstable_by_key(|one| (self.place(one.1), one.0));
        // What one place says may be met beside a schema that names the type.
        let mut found: BTreeMap<JsonNodeId, Option<(Box<str>, Type)>> = BTreeMap::new();
        for (value, schema) in asked {
            let key = **self.values.get(value);
            let of = |kind: &Type| key.of(*kind);
            let is_free = Type::ALL.iter().all(|kind| of(kind) != FormulaId::FALSE)
                && Type::ALL.iter().any(|kind| of(kind) == FormulaId::TRUE);
            let limited = Type::ALL.into_iter().find(|kind| of(kind) != FormulaId::TRUE);
            match limited.filter(|_| is_free) {
                Some(kind) => {
                    let (node, keyword) = self.keyword_about(kind, schema)?;
                    found.entry(node).or_insert(Some((keyword, kind)));
                }
                None => {
                    found.insert(self.place(schema), None);
                }
            }
        }
        for (node, doubt) in found {
            let Some((keyword, kind)) = doubt else { continue };
            let name = kind.word();
            let place = self.schemas.value(node, &keyword).unwrap_or(node);
            let message = format!(
                "it is about {name}s, and a value of any other type is valid too; write \"type\": {name:?} beside it \
                 if that is not meant"
            );
            let (level, message) = (NoteLevel::Warning, message.into());
            self.never_written.push(Note { place, keyword, level, message });
        }
        Ok(())
    }

    /// The first keyword about a type, of a schema or of those that it applies in place; empty where branches
    /// alone have one.
    fn keyword_about(&mut self, kind: Type, schema: SchemaId) -> Result<(JsonNodeId, Box<str>)> {
        for schema in self.always_applied(schema)? {
            let SchemaKey::Schema(node, _) = self.key(schema) else { continue };
            let Some(object) = self.schemas.arena().object(node) else { continue };
            let is_about = |name: &str| {
                types_of(name).is_some_and(|about| about.1.strip_suffix('s') == Some(kind.word()))
            };
            if let Some((keyword, _)) = object.iter().find(|(name, _)| is_about(name)) {
                return Ok((node, keyword.into()));
            }
        }
        Ok((self.place(schema), "".into()))
    }

    /// Notes branches of `oneOf` all of whose values other branches take too.
    pub(super) fn note_overlapping(&mut self) -> Result<()> {
        let mut unions: Vec<SchemaId> = self.overlaps.keys().map(|key| key.0).collect();
        unions.sort_unstable();
        unions.dedup();
        let mut left = MOST_LOOKED_FOR;
        let mut noted: Vec<JsonNodeId> = Vec::new();
        for union in unions {
            let (mut branches, mut overlapping) = (Vec::new(), Vec::new());
            for kind in Type::ALL {
                let overlaps = self.overlaps.get(&(union, kind));
                overlapping.extend(overlaps.into_iter().flat_map(|known| known.keys().copied()));
                let applied = self.applied(union, kind)?;
                branches
                    .extend(applied.iter().filter(|one| one.1 == Applied::One).map(|one| one.0));
            }
            for all in [&mut branches, &mut overlapping] {
                all.sort_unstable();
                all.dedup();
            }
            // Of a union without any value another note says so.
            if branches.len() > MOST_BRANCHES || !self.has_text(&[(union, true)])? {
                continue;
            }
            for branch in overlapping {
                let place = self.place(branch);
                if left == 0 || noted.contains(&place) {
                    continue;
                }
                left -= 1;
                let conditions: Vec<(SchemaId, bool)> =
                    branches.iter().map(|&other| (other, other == branch)).collect();
                if self.has_text(&[(branch, true)])? && !self.has_text(&conditions)? {
                    noted.push(place);
                }
            }
        }
        for place in noted {
            let message = "each value that this branch takes another branch takes too, and oneOf refuses what two \
                           branches take, so it is never written; write anyOf, or give each branch a required \
                           member with a const of its own";
            let (level, message) = (NoteLevel::Warning, message.into());
            self.never_written.push(Note { place, keyword: "".into(), level, message });
        }
        Ok(())
    }

    /// Whether some text is a value that satisfies some conditions, or does not.
    fn has_text(&mut self, conditions: &[(SchemaId, bool)]) -> Result<bool> {
        match self.possible_value(conditions, None)? {
            Some(value) => Ok(self.reach(value)?.productive.contains(&value)),
            None => Ok(false),
        }
    }
}
