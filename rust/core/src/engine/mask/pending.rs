//! Sets of trie nodes, hash-consed: where a frame has been popped, and the next goes on.

use crate::hash::hash_of;
use hashbrown::HashTable;
use std::sync::Arc;

/// A set of trie nodes.
pub(in crate::engine) type PendingId = u32;
/// The root of the trie alone: nothing read yet.
pub(in crate::engine) const AT_ROOT: PendingId = 0;
/// The root of the trie of ids alone, where there is one.
pub(in crate::engine) const AT_IDS: PendingId = 1;
/// No node.
pub(in crate::engine) const NOWHERE: PendingId = u32::MAX;

/// The table of all sets. Each stands by itself: one table of all nodes would be copied as it grows,
/// which some mask would wait for.
pub(in crate::engine) struct PendingSets {
    sets: Vec<Arc<[u32]>>,
    /// Nodes of all sets.
    nodes: usize,
    /// Their hashes and numbers.
    table: HashTable<(u64, PendingId)>,
}

impl PendingSets {
    /// The sets of a trie, which may have a root of ids.
    pub(in crate::engine) fn new(ids: Option<u32>) -> Self {
        let mut out = Self { sets: Vec::new(), nodes: 0, table: HashTable::new() };
        out.intern(&Arc::from([0]));
        ids.map(|ids| out.intern(&Arc::from([ids])));
        out
    }

    pub(in crate::engine) fn bytes(&self) -> usize {
        self.nodes * 4 + self.sets.capacity() * 32 + self.table.capacity() * 17
    }

    pub(in crate::engine) fn get(&self, id: PendingId) -> &[u32] {
        match id {
            NOWHERE => &[],
            id => &self.sets[id as usize],
        }
    }

    /// The number of a sorted set.
    pub(in crate::engine) fn intern(&mut self, nodes: &Arc<[u32]>) -> PendingId {
        if nodes.is_empty() {
            return NOWHERE;
        }
        let Self { sets, table, .. } = self;
        let hash = hash_of(&**nodes);
        let is_same = |&(of, id): &(u64, PendingId)| of == hash && sets[id as usize] == *nodes;
        if let Some(&(_, id)) = table.find(hash, is_same) {
            return id;
        }
        let id = sets.len() as PendingId;
        self.nodes += nodes.len();
        sets.push(nodes.clone());
        table.insert_unique(hash, (hash, id), |known| known.0);
        id
    }
}
