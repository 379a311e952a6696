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
//! that is done to the shared part is done once.

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
enum Node {
    /// A range of the entry table.
    Leaf(u32, u32),
    /// Tops without and with the highest bit in which they differ.
    Branch(SetId, SetId),
}

/// The table of all stack sets.
pub(crate) struct StackSets {
    nodes: Vec<Node>,
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
                Node::Leaf(a, b) => out.extend_from_slice(&self.entries[a as usize..b as usize]),
                Node::Branch(left, right) => work.extend([right, left]),
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
                Node::Leaf(a, b) => {
                    let list = &self.entries[a as usize..b as usize];
                    out.extend(list.iter().take(most - out.len()));
                }
                Node::Branch(left, right) => work.extend([right, left]),
            }
        }
        out
    }

    /// What stands beneath a top of a set.
    fn beneath(&self, mut set: SetId, top: u32) -> Option<SetId> {
        while let Node::Branch(left, right) = self.nodes[set as usize] {
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
            Node::Leaf(..) => None,
            Node::Branch(left, right) => Some((left, right)),
        }
    }

    /// The tops of a set that is a list.
    #[inline]
    pub(crate) fn list(&self, set: SetId) -> &[Entry] {
        match self.nodes[set as usize] {
            Node::Leaf(a, b) => &self.entries[a as usize..b as usize],
            Node::Branch(..) => &[],
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
            Node::Leaf(a, b) => self.entries[a as usize..b as usize] == *entries,
            Node::Branch(..) => false,
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
        self.insert(hash, Node::Leaf(from, self.entries.len() as u32), ends, depth)
    }

    /// The union of two sets of which all tops of one lack the bit that all of the other have.
    fn branch(&mut self, left: SetId, right: SetId) -> Result<SetId, Halt> {
        let node = Node::Branch(left, right);
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
        node: Node,
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

    /// Everything in either set.
    ///
    /// Stacks may be as deep as a text, so what a union depends on is worked off on a stack of
    /// its own, deepest first.
    pub(crate) fn union(&mut self, a: SetId, b: SetId) -> Result<SetId, Halt> {
        if let Some(known) = self.known_union(a, b) {
            return Ok(known);
        }
        let base = self.pending.len();
        self.pending.push((a, b));
        let result = self.work_off(base);
        self.pending.truncate(base);
        result?;
        Ok(self.known_union(a, b).unwrap_or(NONE))
    }

    #[inline]
    fn known_union(&self, a: SetId, b: SetId) -> Option<SetId> {
        if a == b || b == NONE {
            return Some(a);
        }
        if a == NONE {
            return Some(b);
        }
        let (a, b) = (a.min(b), a.max(b));
        let found = self.unions.find(hash_of(&(a, b)), |known| (known.0, known.1) == (a, b));
        found.map(|known| known.2)
    }

    fn work_off(&mut self, base: usize) -> Result<(), Halt> {
        while self.pending.len() > base {
            let (a, b) = self.pending[self.pending.len() - 1];
            if self.known_union(a, b).is_some() {
                self.pending.pop();
                continue;
            }
            let made = match (self.nodes[a as usize], self.nodes[b as usize]) {
                (Node::Leaf(..), Node::Leaf(..)) => self.union_of_lists(a, b)?,
                _ => self.union_of_trees(a, b)?,
            };
            if let Some(id) = made {
                self.pending.pop();
                self.spend(1)?;
                let (a, b) = (a.min(b), a.max(b));
                self.unions.insert(hash_of(&(a, b)), (a, b, id));
            }
        }
        Ok(())
    }

    /// The union, or `None` and what is missing made pending.
    fn union_of_trees(&mut self, a: SetId, b: SetId) -> Result<Option<SetId>, Halt> {
        let (a_ends, b_ends) = (self.ends[a as usize], self.ends[b as usize]);
        let bit = highest_difference(a_ends.0.min(b_ends.0), a_ends.1.max(b_ends.1));
        let (a_left, a_right) = self.split(a, bit)?;
        let (b_left, b_right) = self.split(b, bit)?;
        let left = self.known_union(a_left, b_left);
        let right = self.known_union(a_right, b_right);
        if let (Some(left), Some(right)) = (left, right) {
            return self.branch(left, right).map(Some);
        }
        if left.is_none() {
            self.pending.push((a_left, b_left));
        }
        if right.is_none() {
            self.pending.push((a_right, b_right));
        }
        Ok(None)
    }

    /// The union, or `None` and what is missing made pending.
    fn union_of_lists(&mut self, a: SetId, b: SetId) -> Result<Option<SetId>, Halt> {
        let mut merged = [(0, NONE); 2 * LEAF];
        let mut len = 0;
        let mut missing = false;
        let (mut i, mut j) = (0, 0);
        loop {
            merged[len] = match (self.list(a).get(i).copied(), self.list(b).get(j).copied()) {
                (None, None) => break,
                (Some(x), Some(y)) if x.0 == y.0 => {
                    i += 1;
                    j += 1;
                    let beneath = self.known_union(x.1, y.1);
                    if beneath.is_none() {
                        missing = true;
                        self.pending.push((x.1, y.1));
                    }
                    (x.0, beneath.unwrap_or(NONE))
                }
                (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => {
                    i += 1;
                    x
                }
                (_, Some(y)) => {
                    j += 1;
                    y
                }
                (Some(_), None) => unreachable!("taken by the third arm"),
            };
            len += 1;
        }
        if missing {
            return Ok(None);
        }
        self.spend(len as u64)?;
        self.add(&merged[..len]).map(Some)
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
            Node::Branch(left, right) => Ok((left, right)),
            Node::Leaf(..) => {
                let entries = self.list(set).to_vec();
                let middle = entries.partition_point(|e| e.0 & bit == 0);
                Ok((self.add(&entries[..middle])?, self.add(&entries[middle..])?))
            }
        }
    }

    /// What is in both sets. Nothing is remembered between calls: for small sets.
    pub(crate) fn intersection(&mut self, a: SetId, b: SetId) -> Result<SetId, Halt> {
        if a == b {
            return Ok(a);
        }
        let mut both = Vec::new();
        let others = self.entries(b);
        for (top, beneath) in self.entries(a) {
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
        self.spend(1 + others.len() as u64)?;
        self.add(&both)
    }

    /// The union of sets, two and two: large ones are then met by large ones.
    fn union_of_many(&mut self, sets: &[SetId]) -> Result<SetId, Halt> {
        match *sets {
            [] => Ok(NONE),
            [a] => Ok(a),
            [a, b] => self.union(a, b),
            _ => {
                let (left, right) = sets.split_at(sets.len() / 2);
                let (left, right) = (self.union_of_many(left)?, self.union_of_many(right)?);
                self.union(left, right)
            }
        }
    }

    /// Sorts pairs of anything and a set; unites the sets of equal first parts.
    pub(crate) fn group(&mut self, pairs: &mut Vec<Entry>) -> Result<(), Halt> {
        sort_within(pairs, &mut self.meter)?;
        pairs.dedup();
        self.spend((pairs.len() / PAIRS_OF_WORK) as u64)?;
        let mut write = 0;
        let mut read = 0;
        while read < pairs.len() {
            let first = pairs[read].0;
            let end = read + pairs[read..].iter().take_while(|pair| pair.0 == first).count();
            let set = match end - read {
                1 => pairs[read].1,
                _ => {
                    let sets: Vec<SetId> = pairs[read..end].iter().map(|pair| pair.1).collect();
                    self.union_of_many(&sets)?
                }
            };
            read = end;
            pairs[write] = (first, set);
            write += 1;
        }
        pairs.truncate(write);
        Ok(())
    }

    /// The set with these entries, in any order, tops possibly repeated, united with `others`.
    pub(crate) fn collect(
        &mut self,
        entries: &mut Vec<Entry>,
        others: &[SetId],
    ) -> Result<SetId, Halt> {
        self.group(entries)?;
        let id = self.add(entries)?;
        match others {
            [] => Ok(id),
            others => {
                let others = self.union_of_many(others)?;
                self.union(id, others)
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

/// Sorts pairs as single numbers, which takes half the time of comparing them as pairs.
pub(crate) fn sort_pairs(pairs: &mut [(u32, u32)]) {
    if pairs.len() > 1 {
        pairs.sort_unstable_by_key(|pair| u64::from(pair.0) << 32 | u64::from(pair.1));
    }
}

/// Pairs that are sorted between two looks at an interrupt.
const SORTED_AT_ONCE: usize = 1 << 14;
/// Pairs sorted or merged that count as one unit of work.
const PAIRS_OF_WORK: usize = 32;

/// [`sort_pairs`] that an interrupt ends early: parts are sorted, and merged two and two.
pub(crate) fn sort_within(pairs: &mut Vec<Entry>, meter: &mut Meter) -> Result<(), Halt> {
    for part in pairs.chunks_mut(SORTED_AT_ONCE) {
        if part.len() == SORTED_AT_ONCE {
            meter.spend((SORTED_AT_ONCE / PAIRS_OF_WORK) as u64)?;
        }
        sort_pairs(part);
    }
    let mut width = SORTED_AT_ONCE;
    let mut merged = Vec::new();
    while width < pairs.len() {
        merged.clear();
        merged.reserve_exact(pairs.len());
        for both in pairs.chunks(2 * width) {
            let (mut left, mut right) = both.split_at(width.min(both.len()));
            while let (Some(a), Some(b)) = (left.first(), right.first()) {
                let from = if a <= b { &mut left } else { &mut right };
                merged.push(from[0]);
                *from = &from[1..];
                if merged.len().is_multiple_of(SORTED_AT_ONCE) {
                    meter.spend((SORTED_AT_ONCE / PAIRS_OF_WORK) as u64)?;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(pairs, &mut merged);
        width *= 2;
    }
    Ok(())
}

/// The highest bit in which two numbers differ; 0 where they are equal.
fn highest_difference(a: u32, b: u32) -> u32 {
    match a ^ b {
        0 => 0,
        difference => 1 << difference.ilog2(),
    }
}

/// All stacks of a set, top first: the obvious way, for tests.
#[cfg(test)]
pub(super) fn stacks_of(sets: &StackSets, set: SetId) -> std::collections::BTreeSet<Vec<u32>> {
    let mut out = std::collections::BTreeSet::new();
    for (top, beneath) in sets.entries(set) {
        match top {
            BOTTOM => drop(out.insert(Vec::new())),
            _ => {
                let stacks = stacks_of(sets, beneath).into_iter();
                out.extend(stacks.map(|stack| [&[top][..], &stack].concat()));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    type Stack = Vec<u32>;

    /// The set of these stacks, one by one: the obvious way.
    fn build(sets: &mut StackSets, stacks: &BTreeSet<Stack>) -> SetId {
        let mut out = NONE;
        for stack in stacks {
            let mut set = REST;
            for &frame in stack.iter().rev() {
                set = sets.add(&[(frame, set)]).expect("no budget");
            }
            out = sets.union(out, set).expect("no budget");
        }
        out
    }

    fn stack_set() -> impl Strategy<Value = BTreeSet<Stack>> {
        let frame = prop_oneof![0u32..6, 0u32..200, any::<u32>().prop_map(|x| x >> 1)];
        proptest::collection::btree_set(proptest::collection::vec(frame, 0..4), 0..40)
    }

    #[test]
    fn parts_are_sorted_and_merged_as_a_whole_is_sorted() {
        for length in [0, 1, SORTED_AT_ONCE, 3 * SORTED_AT_ONCE + 7, 4 * SORTED_AT_ONCE] {
            let number = |i: usize| (i as u32).wrapping_mul(2_654_435_761) >> 12;
            let mut pairs: Vec<Entry> =
                (0..length).map(|i| (number(i), number(i + 9) % 5)).collect();
            let mut expected = pairs.clone();
            expected.sort_unstable();
            sort_within(&mut pairs, &mut Meter::default()).expect("no bound");
            assert_eq!(pairs, expected);
        }
    }

    proptest! {
        #[test]
        fn equal_sets_are_equal_ids(a in stack_set(), b in stack_set()) {
            let mut sets = StackSets::new();
            let (x, y) = (build(&mut sets, &a), build(&mut sets, &b));
            prop_assert_eq!(stacks_of(&sets, x), a.clone());
            let united: BTreeSet<Stack> = a.union(&b).cloned().collect();
            let shared: BTreeSet<Stack> = a.intersection(&b).cloned().collect();
            prop_assert_eq!(sets.union(x, y).expect("no budget"), build(&mut sets, &united));
            prop_assert_eq!(sets.intersection(x, y).expect("no budget"), build(&mut sets, &shared));
            let listed = sets.entries(x);
            prop_assert_eq!(sets.add(&listed).expect("no budget"), x);
            for (top, beneath) in sets.entries(y) {
                let all = stacks_of(&sets, beneath);
                let all: BTreeSet<Stack> =
                    all.into_iter().map(|stack| [&[top][..], &stack].concat()).collect();
                let all = if top == BOTTOM { BTreeSet::from([Vec::new()]) } else { all };
                let is_small = all.len() * 4 < COVER_STEPS;
                let is_part = all.is_subset(&a);
                let covers = sets.covers(x, (top, beneath));
                prop_assert!(covers == is_part || !is_small && is_part, "{covers} {is_part}");
            }
            prop_assert_eq!(&sets.some_entries(x, 9)[..], &listed[..listed.len().min(9)]);
            prop_assert_eq!(sets.has_rest(x), a.contains(&Vec::new()));
            let kept: BTreeSet<Stack> = a.iter().filter(|s| !s.is_empty()).cloned().collect();
            let rest = if kept.len() < a.len() { REST } else { NONE };
            let parts = (build(&mut sets, &kept), rest);
            prop_assert_eq!(sets.without_labels(x).expect("no budget"), parts);
        }
    }
}
