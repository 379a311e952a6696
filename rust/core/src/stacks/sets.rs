//! Sets of stacks, hash-consed.
//!
//! A *stack set* is a set of stacks, read from the top: it lists the possible tops, each with the
//! set of what can stand beneath it. There is one entry for each top, so equal sets are equal
//! ids. The entry [`BOTTOM`] stands for the end of what was pushed above a frame: beneath it is
//! the unknown rest of the stack.
//!
//! Up to [`LEAF`] entries stand in a list; more are split at the highest bit in which two tops
//! differ, again and again (a Patricia tree). The form depends on the entries alone, and sets
//! that differ little share most of their nodes: in a JSON object of a thousand optional keys
//! the tops after a comma are the remaining keys, for each key one fewer, and everything
//! that is done to the shared part is done once. [`unions`] unites sets.

#[cfg(test)]
pub(super) mod tests;
mod unions;

pub(crate) use unions::sort_pairs;

use super::shards::Shards;
use crate::budget::{Halt, Meter};
use crate::hash::hash_of;
use crate::network::BOTTOM;
use rustc_hash::FxHashSet;

/// A stack set.
pub(crate) type SetId = u32;

/// The set without stacks.
pub(crate) const NONE: SetId = 0;
/// The set of the stack that is just the unknown rest.
pub(crate) const REST: SetId = 1;

/// Tops from here on are labels, not network states: they end stacks, and nothing is read there.
/// [`BOTTOM`] is the last of them.
pub(crate) const LABEL: u32 = 1 << 31;

/// One top of a stack set and what stands beneath it.
pub(crate) type Entry = (u32, SetId);

/// The depth that is allowed where nobody says otherwise: a token does not nest deeper.
const MAX_DEPTH: u32 = 1_000;

/// Entries that are looked at to tell whether a set covers another.
const COVER_STEPS: usize = 32;

/// The most entries of a list.
const LEAF: usize = 8;

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum SetNode {
    /// A range of the entry table.
    Leaf(u32, u32),
    /// Tops without and with the highest bit in which they differ.
    Branch(SetId, SetId),
}

/// The table of all stack sets.
pub(crate) struct StackSets {
    nodes: Vec<SetNode>,
    /// The least and the greatest top of each set.
    ends: Vec<(u32, u32)>,
    depths: Vec<u32>,
    entries: Vec<Entry>,
    table: Shards<SetId>,
    unions: Shards<(SetId, SetId, SetId)>,
    /// Pairs to be united, what they depend on above them.
    pending: Vec<(SetId, SetId)>,
    /// A set nested deeper, stacks and tree levels together, is over budget.
    pub(crate) max_depth: u32,
    /// Bytes that the tables may hold; looked at as often as the meter looks at its interrupt.
    pub(crate) max_bytes: usize,
    /// Entries written and pairs united so far: the measure of work.
    pub(crate) meter: Meter,
}

impl StackSets {
    pub(crate) fn new() -> Self {
        let mut out = Self {
            nodes: Vec::new(),
            ends: Vec::new(),
            depths: Vec::new(),
            entries: Vec::new(),
            table: Shards::default(),
            unions: Shards::default(),
            pending: Vec::new(),
            max_depth: MAX_DEPTH,
            max_bytes: usize::MAX,
            meter: Meter::default(),
        };
        out.add(&[]).ok();
        out.add(&[(BOTTOM, NONE)]).ok();
        out
    }

    /// The number of sets.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.capacity() * 8
            + self.nodes.capacity() * 24
            + self.table.bytes()
            + self.unions.bytes()
    }

    /// Adds the tops of a set to a list, sorted.
    pub(crate) fn entries_into(&self, set: SetId, out: &mut Vec<Entry>) {
        let mut work = vec![set];
        while let Some(set) = work.pop() {
            match self.nodes[set as usize] {
                SetNode::Leaf(a, b) => out.extend_from_slice(&self.entries[a as usize..b as usize]),
                SetNode::Branch(left, right) => work.extend([right, left]),
            }
        }
    }

    /// The tops of a set, sorted.
    pub(crate) fn entries(&self, set: SetId) -> Vec<Entry> {
        let mut out = Vec::new();
        self.entries_into(set, &mut out);
        out
    }

    /// The first tops of a set, at most so many.
    pub(crate) fn some_entries(&self, set: SetId, most: usize) -> Vec<Entry> {
        let mut out = Vec::new();
        let mut work = vec![set];
        while let Some(set) = work.pop().filter(|_| out.len() < most) {
            match self.nodes[set as usize] {
                SetNode::Leaf(a, b) => {
                    let list = &self.entries[a as usize..b as usize];
                    out.extend(list.iter().take(most - out.len()));
                }
                SetNode::Branch(left, right) => work.extend([right, left]),
            }
        }
        out
    }

    /// What stands beneath a top of a set.
    fn beneath(&self, mut set: SetId, top: u32) -> Option<SetId> {
        while let SetNode::Branch(left, right) = self.nodes[set as usize] {
            set = if top <= self.ends[left as usize].1 { left } else { right };
        }
        self.list(set).iter().find(|entry| entry.0 == top).map(|entry| entry.1)
    }

    /// Whether a set has all stacks of an entry, as far as a few steps tell; nothing is remembered.
    pub(crate) fn covers(&self, set: SetId, (top, beneath): Entry) -> bool {
        let mut pending = vec![(set, top, beneath)];
        let mut left = COVER_STEPS;
        while let Some((set, top, beneath)) = pending.pop() {
            let Some(found) = self.beneath(set, top) else { return false };
            if found == beneath {
                continue;
            }
            let entries = self.some_entries(beneath, left + 1);
            if entries.len() > left {
                return false;
            }
            left -= entries.len();
            pending.extend(entries.into_iter().map(|(top, beneath)| (found, top, beneath)));
        }
        true
    }

    /// The two halves of a set that is no list.
    #[inline]
    pub(crate) fn halves(&self, set: SetId) -> Option<(SetId, SetId)> {
        match self.nodes[set as usize] {
            SetNode::Leaf(..) => None,
            SetNode::Branch(left, right) => Some((left, right)),
        }
    }

    /// The tops of a set that is a list.
    #[inline]
    pub(crate) fn list(&self, set: SetId) -> &[Entry] {
        match self.nodes[set as usize] {
            SetNode::Leaf(a, b) => &self.entries[a as usize..b as usize],
            SetNode::Branch(..) => &[],
        }
    }

    /// Levels of stacks and tree beneath a set.
    pub(crate) fn depth(&self, set: SetId) -> u32 {
        self.depths[set as usize]
    }

    /// Whether the set holds the bare rest (the frame has been popped).
    #[inline]
    pub(crate) fn has_rest(&self, set: SetId) -> bool {
        set != NONE && self.ends[set as usize].1 == BOTTOM
    }

    /// The set without the labels on top, and those labels.
    pub(crate) fn without_labels(&mut self, set: SetId) -> Result<(SetId, SetId), Halt> {
        self.split(set, LABEL)
    }

    /// The set of these entries, which are sorted and have distinct tops.
    pub(crate) fn add(&mut self, entries: &[Entry]) -> Result<SetId, Halt> {
        if entries.len() > LEAF {
            let bit = highest_difference(entries[0].0, entries[entries.len() - 1].0);
            let middle = entries.partition_point(|e| e.0 & bit == 0);
            let left = self.add(&entries[..middle])?;
            let right = self.add(&entries[middle..])?;
            return self.branch(left, right);
        }
        let hash = hash_of(entries);
        let same = |&id: &SetId| match self.nodes[id as usize] {
            SetNode::Leaf(a, b) => self.entries[a as usize..b as usize] == *entries,
            SetNode::Branch(..) => false,
        };
        if let Some(&id) = self.table.find(hash, same) {
            return Ok(id);
        }
        let beneath = entries.iter().filter(|e| e.0 != BOTTOM).map(|e| self.depths[e.1 as usize]);
        let depth = beneath.max().map_or(0, |d| d + 1);
        let ends = entries.first().zip(entries.last()).map_or((0, 0), |(a, b)| (a.0, b.0));
        let from = self.entries.len() as u32;
        self.spend(1 + entries.len() as u64)?;
        self.entries.extend_from_slice(entries);
        self.insert(hash, SetNode::Leaf(from, self.entries.len() as u32), ends, depth)
    }

    /// The union of two sets of which all tops of one lack the bit that all of the other have.
    fn branch(&mut self, left: SetId, right: SetId) -> Result<SetId, Halt> {
        let node = SetNode::Branch(left, right);
        let hash = hash_of(&(left, right));
        if let Some(&id) = self.table.find(hash, |&id| self.nodes[id as usize] == node) {
            return Ok(id);
        }
        self.spend(1)?;
        let depth = 1 + self.depths[left as usize].max(self.depths[right as usize]);
        let ends = (self.ends[left as usize].0, self.ends[right as usize].1);
        self.insert(hash, node, ends, depth)
    }

    fn insert(
        &mut self,
        hash: u64,
        node: SetNode,
        ends: (u32, u32),
        depth: u32,
    ) -> Result<SetId, Halt> {
        if depth > self.max_depth {
            return Err(Halt::Depth);
        }
        let id = self.nodes.len() as SetId;
        self.nodes.push(node);
        self.ends.push(ends);
        self.depths.push(depth);
        self.table.insert(hash, id);
        Ok(id)
    }

    #[inline]
    pub(crate) fn spend(&mut self, work: u64) -> Result<(), Halt> {
        if self.meter.count(work) { Ok(()) } else { self.look() }
    }

    #[cold]
    fn look(&mut self) -> Result<(), Halt> {
        self.meter.look()?;
        if self.bytes() > self.max_bytes { Err(Halt::Bytes) } else { Ok(()) }
    }

    /// The tops without and with a bit, where that bit is the highest in which they may differ.
    fn split(&mut self, set: SetId, bit: u32) -> Result<(SetId, SetId), Halt> {
        let (least, greatest) = self.ends[set as usize];
        if greatest & bit == 0 {
            return Ok((set, NONE));
        }
        if least & bit != 0 {
            return Ok((NONE, set));
        }
        match self.nodes[set as usize] {
            SetNode::Branch(left, right) => Ok((left, right)),
            SetNode::Leaf(..) => {
                let entries = self.list(set).to_vec();
                let middle = entries.partition_point(|e| e.0 & bit == 0);
                Ok((self.add(&entries[..middle])?, self.add(&entries[middle..])?))
            }
        }
    }
}

/// The sets that a set is made of, itself the last, each after those beneath its tops; without
/// those that are `known`. `spend` counts the entries looked at.
pub(crate) fn beneath_first(
    sets: &StackSets,
    set: SetId,
    known: impl Fn(SetId) -> bool,
    spend: &mut dyn FnMut(u64) -> Result<(), Halt>,
) -> Result<Vec<SetId>, Halt> {
    beneath_first_by(sets, set, known, spend, |_| {})
}

/// The same, with the tops of each set in another order.
pub(crate) fn beneath_first_by(
    sets: &StackSets,
    set: SetId,
    known: impl Fn(SetId) -> bool,
    spend: &mut dyn FnMut(u64) -> Result<(), Halt>,
    arrange: impl Fn(&mut Vec<Entry>),
) -> Result<Vec<SetId>, Halt> {
    let mut out = Vec::new();
    let mut seen: FxHashSet<SetId> = Default::default();
    // A set is met twice: when it is found, and when all beneath it is listed.
    let mut work = vec![(set, false)];
    while let Some((set, ready)) = work.pop() {
        if ready {
            out.push(set);
            continue;
        }
        if known(set) || !seen.insert(set) {
            continue;
        }
        work.push((set, true));
        let mut beneath = sets.entries(set);
        arrange(&mut beneath);
        spend(1 + beneath.len() as u64)?;
        work.extend(beneath.iter().filter(|e| e.0 != BOTTOM).map(|e| (e.1, false)));
    }
    Ok(out)
}

/// The highest bit in which two numbers differ; 0 where they are equal.
fn highest_difference(a: u32, b: u32) -> u32 {
    match a ^ b {
        0 => 0,
        difference => 1 << difference.ilog2(),
    }
}
