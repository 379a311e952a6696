//! What masks cost.

use std::sync::atomic::{AtomicU64, Ordering};

/// What masks cost so far; masks made of answers that were there count where they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkCounters {
    /// Masks made.
    pub masks: u64,
    /// Pairs of a frame and pending nodes looked at.
    pub visits: u64,
    /// Answers that were there.
    pub hits: u64,
    /// Answers that were not.
    pub misses: u64,
    /// Of those, answers that the pool had.
    pub shared: u64,
    /// Trie nodes entered to make them.
    pub trie_nodes: u64,
    /// Masks made by a walk with the whole stacks, without answers.
    pub direct: u64,
    /// Masks made by a walk with the whole stacks over nodes that bounds had left undecided.
    pub walked: u64,
}

/// [`WalkCounters`] to which many threads add.
#[derive(Default)]
pub(in crate::engine) struct Counts {
    masks: AtomicU64,
    visits: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    shared: AtomicU64,
    trie_nodes: AtomicU64,
    direct: AtomicU64,
    walked: AtomicU64,
}

impl Counts {
    pub(in crate::engine) fn add(&self, counters: &WalkCounters) {
        let add = |to: &AtomicU64, count| match count {
            0 => {}
            count => {
                to.fetch_add(count, Ordering::Relaxed);
            }
        };
        add(&self.masks, counters.masks);
        add(&self.visits, counters.visits);
        add(&self.hits, counters.hits);
        add(&self.misses, counters.misses);
        add(&self.shared, counters.shared);
        add(&self.trie_nodes, counters.trie_nodes);
        add(&self.direct, counters.direct);
        add(&self.walked, counters.walked);
    }

    pub(super) fn sums(&self) -> WalkCounters {
        WalkCounters {
            masks: self.masks.load(Ordering::Relaxed),
            visits: self.visits.load(Ordering::Relaxed),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            shared: self.shared.load(Ordering::Relaxed),
            trie_nodes: self.trie_nodes.load(Ordering::Relaxed),
            direct: self.direct.load(Ordering::Relaxed),
            walked: self.walked.load(Ordering::Relaxed),
        }
    }
}
