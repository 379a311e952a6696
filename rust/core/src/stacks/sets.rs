//! Sets of stacks as hash-consed directed acyclic graphs.
//!
//! A *stack set* is a set of stacks, read from the top; a node lists the possible tops, each with
//! the set of what can stand beneath it. One entry for each top, so equal sets are equal ids. The
//! entry [`BOTTOM`] stands for the end of what was pushed above a frame: beneath it is the
//! unknown rest of the stack.

use crate::network::BOTTOM;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};

/// A stack set.
pub(crate) type SetId = u32;

/// The set without stacks.
pub(crate) const NONE: SetId = 0;
/// The set of the stack that is just the unknown rest.
pub(crate) const REST: SetId = 1;

/// One top of a stack set and what stands beneath it.
pub(crate) type Entry = (u32, SetId);

/// What cannot be done within the bounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverBudget;

/// A stack set nested deeper than this is over budget: unions recurse along the depth.
const MAX_DEPTH: u32 = 1_000;

/// The table of all stack sets.
pub(crate) struct StackSets {
    starts: Vec<u32>,
    entries: Vec<Entry>,
    depths: Vec<u32>,
    table: HashTable<SetId>,
    unions: FxHashMap<(SetId, SetId), SetId>,
    /// Entries written and pairs united so far: the measure of work.
    pub(crate) work: u64,
    /// `work` may not pass this.
    pub(crate) allowance: u64,
}

pub(crate) fn hash_of<T: Hash + ?Sized>(value: &T) -> u64 {
    let mut hasher = rustc_hash::FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

impl StackSets {
    pub(crate) fn new() -> Self {
        let mut out = Self {
            starts: vec![0],
            entries: Vec::new(),
            depths: Vec::new(),
            table: HashTable::new(),
            unions: FxHashMap::default(),
            work: 0,
            allowance: u64::MAX,
        };
        out.add(&[]).ok();
        out.add(&[(BOTTOM, NONE)]).ok();
        out
    }

    /// The tops of a set, sorted.
    #[inline]
    pub(crate) fn entries(&self, set: SetId) -> &[Entry] {
        &self.entries[self.starts[set as usize] as usize..self.starts[set as usize + 1] as usize]
    }

    /// The number of sets.
    pub(crate) fn len(&self) -> usize {
        self.depths.len()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * 8
            + self.starts.capacity() * 4
            + self.depths.capacity() * 4
            + self.table.capacity() * 5
            + self.unions.capacity() * 13
    }

    /// Whether the set holds the bare rest (the frame has been popped).
    #[inline]
    pub(crate) fn has_rest(&self, set: SetId) -> bool {
        self.entries(set).last().is_some_and(|e| e.0 == BOTTOM)
    }

    /// The set of these entries, which are sorted and have distinct tops.
    pub(crate) fn add(&mut self, entries: &[Entry]) -> Result<SetId, OverBudget> {
        let hash = hash_of(entries);
        if let Some(&id) = self.table.find(hash, |&id| self.entries(id) == entries) {
            return Ok(id);
        }
        let depth = entries
            .iter()
            .filter(|e| e.0 != BOTTOM)
            .map(|e| self.depths[e.1 as usize] + 1)
            .max()
            .unwrap_or(0);
        self.work += 1 + entries.len() as u64;
        if depth > MAX_DEPTH || self.work > self.allowance {
            return Err(OverBudget);
        }
        let id = self.depths.len() as SetId;
        self.entries.extend_from_slice(entries);
        self.starts.push(self.entries.len() as u32);
        self.depths.push(depth);
        let (starts, all) = (&self.starts, &self.entries);
        self.table.insert_unique(hash, id, |&id| {
            hash_of(&all[starts[id as usize] as usize..starts[id as usize + 1] as usize])
        });
        Ok(id)
    }

    /// Everything in either set.
    pub(crate) fn union(&mut self, a: SetId, b: SetId) -> Result<SetId, OverBudget> {
        if a == b || b == NONE {
            return Ok(a);
        }
        if a == NONE {
            return Ok(b);
        }
        let key = (a.min(b), a.max(b));
        if let Some(&id) = self.unions.get(&key) {
            return Ok(id);
        }
        let mut merged: Vec<Entry> =
            Vec::with_capacity(self.entries(a).len() + self.entries(b).len());
        let (mut i, mut j) = (0, 0);
        loop {
            match (self.entries(a).get(i).copied(), self.entries(b).get(j).copied()) {
                (None, None) => break,
                (Some(x), Some(y)) if x.0 == y.0 => {
                    let beneath = self.union(x.1, y.1)?;
                    merged.push((x.0, beneath));
                    i += 1;
                    j += 1;
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    merged.push(x);
                    i += 1;
                }
                (_, Some(y)) => {
                    merged.push(y);
                    j += 1;
                }
                (Some(_), None) => unreachable!("taken by the third arm"),
            }
        }
        let id = self.add(&merged)?;
        self.work += merged.len() as u64;
        if self.work > self.allowance {
            return Err(OverBudget);
        }
        self.unions.insert(key, id);
        Ok(id)
    }

    /// How many frames the deepest stack has above the rest.
    pub(crate) fn depth(&self, set: SetId) -> u32 {
        self.depths[set as usize]
    }

    /// What is in both sets. Nothing is remembered between calls: for small sets.
    pub(crate) fn intersection(&mut self, a: SetId, b: SetId) -> Result<SetId, OverBudget> {
        if a == b {
            return Ok(a);
        }
        let mut both = Vec::new();
        for (top, beneath) in self.entries(a).to_vec() {
            let others = self.entries(b);
            let Ok(i) = others.binary_search_by_key(&top, |e| e.0) else { continue };
            if top == BOTTOM {
                both.push((BOTTOM, NONE));
                continue;
            }
            let shared = self.intersection(beneath, others[i].1)?;
            if shared != NONE {
                both.push((top, shared));
            }
        }
        self.add(&both)
    }

    /// The set with these entries, in any order, tops possibly repeated, united with `others`.
    pub(crate) fn collect(
        &mut self,
        entries: &mut Vec<Entry>,
        others: &[SetId],
    ) -> Result<SetId, OverBudget> {
        entries.sort_unstable();
        entries.dedup();
        let mut write = 0;
        let mut read = 0;
        while read < entries.len() {
            let (top, mut beneath) = entries[read];
            read += 1;
            while read < entries.len() && entries[read].0 == top {
                beneath = self.union(beneath, entries[read].1)?;
                read += 1;
            }
            entries[write] = (top, beneath);
            write += 1;
        }
        entries.truncate(write);
        let mut id = self.add(entries)?;
        for &other in others {
            id = self.union(id, other)?;
        }
        Ok(id)
    }
}
