//! Sets of trie nodes, hash-consed: where a frame has been popped, and the next goes on.

use crate::hash::hash_of;
use hashbrown::HashTable;

/// A set of trie nodes.
pub(super) type PendingId = u32;
/// The root of the trie alone: nothing read yet.
pub(super) const AT_ROOT: PendingId = 0;
/// The root of the trie of ids alone, where there is one.
pub(super) const AT_IDS: PendingId = 1;
/// No node.
pub(super) const NOWHERE: PendingId = u32::MAX;

/// The table of all sets.
pub(super) struct PendingSets {
    nodes: Vec<u32>,
    ranges: Vec<(u32, u32)>,
    table: HashTable<PendingId>,
}

impl PendingSets {
    /// The sets of a trie, which may have a root of ids.
    pub(super) fn new(ids: Option<u32>) -> Self {
        let mut out = Self { nodes: Vec::new(), ranges: Vec::new(), table: HashTable::new() };
        out.intern(&[0]);
        ids.map(|ids| out.intern(&[ids]));
        out
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.capacity() * 4 + self.ranges.capacity() * 8 + self.table.capacity() * 5
    }

    pub(super) fn get(&self, id: PendingId) -> &[u32] {
        if id == NOWHERE {
            return &[];
        }
        let (from, to) = self.ranges[id as usize];
        &self.nodes[from as usize..to as usize]
    }

    /// The number of a sorted set.
    pub(super) fn intern(&mut self, nodes: &[u32]) -> PendingId {
        if nodes.is_empty() {
            return NOWHERE;
        }
        let hash = hash_of(nodes);
        if let Some(&id) = self.table.find(hash, |&id| self.get(id) == nodes) {
            return id;
        }
        let id = self.ranges.len() as PendingId;
        let from = self.nodes.len() as u32;
        self.nodes.extend_from_slice(nodes);
        self.ranges.push((from, self.nodes.len() as u32));
        let (all, ranges) = (&self.nodes, &self.ranges);
        self.table.insert_unique(hash, id, |&id| {
            let (from, to) = ranges[id as usize];
            hash_of(&all[from as usize..to as usize])
        });
        id
    }
}
