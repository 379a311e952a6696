//! Hash-consed sets of frames.

use crate::stacks::hash_of;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// A set of frames.
pub(crate) type FrameSetId = u32;

/// The table of all frame sets; equal sets are equal ids.
#[derive(Default)]
pub(crate) struct FrameSets {
    starts: Vec<u32>,
    frames: Vec<u32>,
    table: HashTable<FrameSetId>,
    unions: FxHashMap<(FrameSetId, FrameSetId), FrameSetId>,
}

impl FrameSets {
    pub(crate) fn new() -> Self {
        Self { starts: vec![0], ..Self::default() }
    }

    /// The frames of a set, sorted.
    #[inline]
    pub(crate) fn frames(&self, set: FrameSetId) -> &[u32] {
        &self.frames[self.starts[set as usize] as usize..self.starts[set as usize + 1] as usize]
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.frames.capacity() * 4
            + self.starts.capacity() * 4
            + self.table.capacity() * 5
            + self.unions.capacity() * 13
    }

    /// The set of these frames, which are sorted and distinct.
    pub(crate) fn add(&mut self, frames: &[u32]) -> FrameSetId {
        let hash = hash_of(frames);
        if let Some(&id) = self.table.find(hash, |&id| self.frames(id) == frames) {
            return id;
        }
        let id = (self.starts.len() - 1) as FrameSetId;
        self.frames.extend_from_slice(frames);
        self.starts.push(self.frames.len() as u32);
        let (starts, all) = (&self.starts, &self.frames);
        self.table.insert_unique(hash, id, |&id| {
            hash_of(&all[starts[id as usize] as usize..starts[id as usize + 1] as usize])
        });
        id
    }

    /// The union of sets; `work` counts the frames written.
    pub(crate) fn union(&mut self, sets: &[FrameSetId], work: &mut u64) -> FrameSetId {
        match *sets {
            [a] => a,
            [a, b] => {
                let key = (a.min(b), a.max(b));
                if let Some(&id) = self.unions.get(&key) {
                    return id;
                }
                let id = self.union_of_many(sets, work);
                self.unions.insert(key, id);
                id
            }
            _ => self.union_of_many(sets, work),
        }
    }

    fn union_of_many(&mut self, sets: &[FrameSetId], work: &mut u64) -> FrameSetId {
        let mut all: Vec<u32> = Vec::new();
        for &set in sets {
            all.extend_from_slice(self.frames(set));
        }
        all.sort_unstable();
        all.dedup();
        *work += all.len() as u64;
        self.add(&all)
    }
}
