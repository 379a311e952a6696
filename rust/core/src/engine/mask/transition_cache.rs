//! Tables of the stack sets that a walk of the trie meets most.
//!
//! Nearly all nodes of a walk are met in a few sets: the inside of a string, the middle of a
//! character. For those, what a byte makes of them stands in a table, found without hashing.

use crate::stacks::SetId;
use crate::vocabulary::Groups;

/// Not known yet.
pub(in crate::engine) const UNKNOWN: SetId = SetId::MAX;
/// A set without a table.
pub(in crate::engine) const COLD: u16 = u16::MAX;
/// Times that a set is met before it gets a table.
const MEETINGS: u16 = 8;
/// Tables at most.
const MAX_TABLES: usize = if cfg!(test) { 1 << 4 } else { 1 << 10 };
/// Trie nodes, so many at least, that are entered between two times that all tables are given up: making them
/// again then takes the smaller part of the time.
const NODES_OF_TABLES: u64 = if cfg!(test) { 1 << 8 } else { 1 << 19 };

/// Loops of single entries that a set remembers.
pub(in crate::engine) const MAX_KEPT: usize = 3;

/// What a set reads, whatever stands below a node.
#[derive(Clone, Copy, Default)]
pub(in crate::engine) struct Reads {
    /// Groups of bytes that leave it as it is, those of whole characters included.
    pub(in crate::engine) stays: Groups,
    /// Groups of bytes that lead to several sets, as far as was looked, and how many such bytes are surely read.
    pub(in crate::engine) wide: Groups,
    pub(in crate::engine) far: u32,
    /// For each of its first entries the groups of bytes that leave that entry as it is; `None` where the
    /// entries were not looked at.
    pub(in crate::engine) kept: Option<[Groups; MAX_KEPT]>,
    /// Groups of bytes that lead from set to set.
    pub(in crate::engine) runs: Groups,
    /// For so many bytes they do, as far as was looked.
    pub(in crate::engine) steps: u32,
    /// The set after those; `None` where the run is known to end.
    pub(in crate::engine) tip: Option<SetId>,
    /// Nodes at which it was not looked for a run.
    pub(in crate::engine) missed: u32,
}

/// The tables.
#[derive(Default)]
pub(in crate::engine) struct HotSets {
    /// For each set its table, or how often it was met.
    of: Vec<Heat>,
    next: Vec<SetId>,
    reads: Vec<Option<Reads>>,
    classes: usize,
    /// Trie nodes entered since there was no table.
    entered: u64,
}

#[derive(Clone, Copy)]
enum Heat {
    Times(u16),
    Table(u16),
}

impl HotSets {
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.of.capacity() * 4
            + self.next.capacity() * 4
            + self.reads.capacity() * size_of::<Option<Reads>>()
    }

    /// Takes note of trie nodes that were entered.
    pub(in crate::engine) fn count_nodes(&mut self, entered: u64) {
        self.entered += entered;
    }

    /// Gives up all tables where no more are made and others may be of more use. A text goes through sets that no text
    /// before it met, such as the inside of another string.
    pub(in crate::engine) fn make_room(&mut self) {
        if self.reads.len() < MAX_TABLES || self.entered < NODES_OF_TABLES {
            return;
        }
        self.of.fill(Heat::Times(0));
        self.next.clear();
        self.reads.clear();
        self.entered = 0;
    }

    /// The table of a set that is met.
    #[inline]
    pub(in crate::engine) fn meet(&mut self, set: SetId, classes: usize) -> u16 {
        let set = set as usize;
        if self.of.len() <= set {
            self.of.resize(set + 1 + set / 2, Heat::Times(0));
        }
        match &mut self.of[set] {
            Heat::Table(table) => *table,
            Heat::Times(times) if *times < MEETINGS || self.reads.len() >= MAX_TABLES => {
                *times = times.saturating_add(1);
                COLD
            }
            met => {
                let table = self.reads.len() as u16;
                *met = Heat::Table(table);
                self.classes = classes;
                self.reads.push(None);
                self.next.resize(self.next.len() + classes, UNKNOWN);
                table
            }
        }
    }

    /// What a byte makes of the set of a table.
    #[inline]
    pub(in crate::engine) fn next(&self, table: u16, class: u8) -> SetId {
        self.next[table as usize * self.classes + class as usize]
    }

    pub(in crate::engine) fn remember(&mut self, table: u16, class: u8, next: SetId) {
        self.next[table as usize * self.classes + class as usize] = next;
    }

    /// What the set of a table reads, where it is known.
    #[inline]
    pub(in crate::engine) fn reads(&self, table: u16) -> Option<Reads> {
        self.reads[table as usize]
    }

    pub(in crate::engine) fn set_reads(&mut self, table: u16, reads: Reads) {
        self.reads[table as usize] = Some(reads);
    }
}
