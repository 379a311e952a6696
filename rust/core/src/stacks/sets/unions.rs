//! Stack sets united, pair by pair and many at once; intersections; and the sorting of pairs for both.

use super::{Entry, LEAF, NONE, SetId, SetNode, StackSets, highest_difference};
use crate::budget::{Halt, Meter};
use crate::hash::hash_of;
use crate::network::BOTTOM;

/// Pairs that are sorted between two looks at an interrupt.
pub(super) const SORTED_AT_ONCE: usize = 1 << 14;
/// Pairs sorted or merged that count as one unit of work.
const PAIRS_OF_WORK: usize = 32;

impl StackSets {
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
                (SetNode::Leaf(..), SetNode::Leaf(..)) => self.union_of_lists(a, b)?,
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

/// Sorts pairs as single numbers, which takes half the time of comparing them as pairs.
pub(crate) fn sort_pairs(pairs: &mut [(u32, u32)]) {
    if pairs.len() > 1 {
        pairs.sort_unstable_by_key(|pair| u64::from(pair.0) << 32 | u64::from(pair.1));
    }
}

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
