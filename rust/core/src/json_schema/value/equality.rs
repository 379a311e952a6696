//! JSON equality and hashes by value.
//!
//! `1` equals `1.0`, the order of names is no matter, and nothing else is equal that differs. Every
//! value has a hash from the time when it is read, so values that differ are told apart at once, and
//! sets of values take time linear in their size.

use super::{Arena, JsonNode, JsonNodeId};
use crate::budget::Budget;
use crate::error::Result;
use rustc_hash::FxHashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

impl Arena {
    /// Whether two values are equal as JSON values.
    pub fn equal(&self, left: JsonNodeId, right: JsonNodeId) -> bool {
        let mut pairs = vec![(left, right)];
        while let Some((left, right)) = pairs.pop() {
            if left == right {
                continue;
            }
            if self.hash_by_value(left) != self.hash_by_value(right) {
                return false;
            }
            match (self.node(left), self.node(right)) {
                (JsonNode::Array(left), JsonNode::Array(right)) if left.len() == right.len() => {
                    pairs.extend(left.iter().copied().zip(right.iter().copied()));
                }
                (JsonNode::Object(left), JsonNode::Object(right)) if left.len() == right.len() => {
                    for (name, value) in left.iter() {
                        match right.get(name) {
                            Some(other) => pairs.push((value, other)),
                            None => return false,
                        }
                    }
                }
                (JsonNode::Array(_) | JsonNode::Object(_), _) => return false,
                (left, right) if left == right => {}
                _ => return false,
            }
        }
        true
    }

    /// A hash of the value: equal values have equal hashes, in every process.
    #[inline]
    pub fn hash_by_value(&self, id: JsonNodeId) -> u64 {
        self.hashes[id.index()]
    }

    /// The first of each class of equal values, in the order given.
    ///
    /// # Errors
    /// Those of the budget.
    pub fn distinct(&self, values: &[JsonNodeId], budget: &Budget) -> Result<Vec<JsonNodeId>> {
        let mut known: FxHashMap<u64, Vec<JsonNodeId>> = FxHashMap::default();
        let mut distinct = Vec::new();
        for &value in values {
            budget.spend(1)?;
            let alike = known.entry(self.hash_by_value(value)).or_default();
            if !alike.iter().any(|&other| self.equal(value, other)) {
                alike.push(value);
                distinct.push(value);
            }
        }
        Ok(distinct)
    }

    /// The hash of a value whose parts have theirs. Names of an object may come in any order, so
    /// their hashes are added.
    pub(super) fn hash_of_parts(&self, node: &JsonNode) -> u64 {
        let mut hasher = DefaultHasher::new(); // its keys are fixed
        match node {
            JsonNode::Null => 0u8.hash(&mut hasher),
            JsonNode::Boolean(value) => (1u8, value).hash(&mut hasher),
            JsonNode::Number(value) => (2u8, value).hash(&mut hasher),
            JsonNode::String(text) => (3u8, text).hash(&mut hasher),
            JsonNode::Array(items) => {
                (4u8, items.len()).hash(&mut hasher);
                items.iter().for_each(|&item| self.hash_by_value(item).hash(&mut hasher));
            }
            JsonNode::Object(object) => {
                let entries = object.iter().map(|(name, value)| {
                    let mut hasher = DefaultHasher::new();
                    (name, self.hash_by_value(value)).hash(&mut hasher);
                    hasher.finish()
                });
                (5u8, object.len(), entries.fold(0, u64::wrapping_add)).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}
