//! What pairs of stack sets can be split into.

use super::goals::{AlignedPart, Goals};
use super::words::stacks_of;
use crate::budget::Halt;
use crate::hash::hash_of;
use crate::network::Identity;
use crate::stacks::{Entry, NONE, REST, SetId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BinaryHeap, VecDeque};

/// Of so many sets beneath a set it is looked whether all stacks go through them.
const MAX_FRAMES: usize = 64;

impl Goals<'_> {
    /// The set in which a state that does nothing but call once is what it calls, above where that
    /// returns to: grammars that divide their rules otherwise then have stacks of one height.
    pub(super) fn entered(&mut self, set: SetId) -> Result<SetId, Halt> {
        let network = self.network;
        let passes = |state: u32| {
            let is_one = !network.is_counting(state) && network.listed(state).is_empty();
            match *network.calls(state) {
                [call] if is_one && !network.is_counting(call.start) => Some(call),
                _ => None,
            }
        };
        let mut set = set;
        loop {
            let entries = stacks_of(&self.stepper.sets, set);
            if !entries.iter().any(|entry| passes(entry.0).is_some()) {
                return Ok(set);
            }
            let sets = &mut self.stepper.sets;
            let mut tops = Vec::new();
            for (state, beneath) in entries {
                let Some(call) = passes(state) else {
                    tops.push((state, beneath));
                    continue;
                };
                let mut under = NONE;
                if network.stays(call.to) {
                    under = sets.add(&[(call.to, beneath)])?;
                }
                if network.is_final(call.to) {
                    under = sets.union(under, beneath)?;
                }
                tops.push((call.start, under));
            }
            let rest = if sets.has_rest(set) { &[REST][..] } else { &[] };
            set = sets.collect(&mut tops, rest)?;
        }
    }

    /// Two sets, each split where all of its stacks come together, as far down as leaves as many
    /// such places beneath both.
    pub(super) fn aligned(
        &mut self,
        left: SetId,
        right: SetId,
    ) -> Result<Option<Vec<AlignedPart>>, Halt> {
        let (ours, theirs) = (self.narrows(left), self.narrows(right));
        let common = ours.len().min(theirs.len());
        if common == 0 {
            return Ok(None);
        }
        let beneath = [ours[ours.len() - common], theirs[theirs.len() - common]];
        let heads = [self.above(left, beneath[0])?, self.above(right, beneath[1])?];
        Ok(Some(vec![AlignedPart { heads, beneath }]))
    }

    /// The sets beneath a set that all of its stacks go through, the first first; none where that is
    /// only the rest, or the stacks are too many to be worth it.
    fn narrows(&self, set: SetId) -> Vec<SetId> {
        let sets = &self.stepper.sets;
        let mut out = Vec::new();
        let mut seen = FxHashSet::default();
        // A set is higher than all beneath it: one that is met alone has all paths through it.
        let mut queue = BinaryHeap::from([(sets.depth(set), set)]);
        while let Some((_, at)) = queue.pop() {
            if at == REST {
                break;
            }
            if queue.is_empty() && at != set {
                out.push(at);
            }
            if sets.has_rest(at) || seen.len() > MAX_FRAMES {
                break; // a stack may end here: nothing beneath is common to all
            }
            for (_, beneath) in stacks_of(sets, at) {
                if seen.insert(beneath) {
                    queue.push((sets.depth(beneath), beneath));
                }
            }
        }
        out
    }

    /// The stacks of a set down to one that they all go through, above the rest.
    fn above(&mut self, set: SetId, end: SetId) -> Result<SetId, Halt> {
        let mut made: FxHashMap<SetId, SetId> = FxHashMap::default();
        made.insert(end, REST);
        let mut work = vec![set];
        while let Some(&at) = work.last() {
            if made.contains_key(&at) {
                work.pop();
                continue;
            }
            let entries = stacks_of(&self.stepper.sets, at);
            let before = work.len();
            work.extend(entries.iter().map(|e| e.1).filter(|below| !made.contains_key(below)));
            if work.len() == before {
                let entries: Vec<Entry> = entries.iter().map(|e| (e.0, made[&e.1])).collect();
                made.insert(at, self.stepper.sets.add(&entries)?);
                work.pop();
            }
        }
        Ok(made[&set])
    }

    /// The stacks of two sets, matched one to one where they seem to do the same; `None` where the
    /// sets have other numbers of stacks, or nothing would be won.
    pub(super) fn matched(
        &mut self,
        left: SetId,
        right: SetId,
    ) -> Result<Option<Vec<AlignedPart>>, Halt> {
        let mut ours = stacks_of(&self.stepper.sets, left);
        let mut theirs = stacks_of(&self.stepper.sets, right);
        if ours.len() != theirs.len() {
            return Ok(None);
        }
        for entries in [&mut ours, &mut theirs] {
            entries.sort_by_cached_key(|entry| {
                let (identity, look) = self.identity(entry.0);
                (look, identity, entry.0)
            });
        }
        // Those with the same digest first: they do the same, whatever stands around them.
        let mut same: FxHashMap<Identity, VecDeque<usize>> = FxHashMap::default();
        for (place, entry) in theirs.iter().enumerate() {
            same.entry(self.identity(entry.0).0).or_default().push_back(place);
        }
        let mut is_taken = vec![false; theirs.len()];
        let mut partner = vec![None; ours.len()];
        for (entry, partner) in ours.iter().zip(&mut partner) {
            let places = same.get_mut(&self.identity(entry.0).0);
            if let Some(place) = places.and_then(VecDeque::pop_front) {
                is_taken[place] = true;
                *partner = Some(place);
            }
        }
        let mut free = (0..theirs.len()).filter(|&place| !is_taken[place]);
        let mut parts = Vec::new();
        for ((p, beneath_p), partner) in ours.iter().copied().zip(partner) {
            let Some(place) = partner.or_else(|| free.next()) else { return Ok(None) };
            let (q, beneath_q) = theirs[place];
            if (beneath_p == REST) != (beneath_q == REST) {
                return Ok(None);
            }
            // Equal digests: the same, and no pair to look at.
            let q = if self.identity(p).0 == self.identity(q).0 { p } else { q };
            let sets = &mut self.stepper.sets;
            let heads = [sets.add(&[(p, REST)])?, sets.add(&[(q, REST)])?];
            parts.push(AlignedPart { heads, beneath: [beneath_p, beneath_q] });
        }
        let is_atom = |part: &AlignedPart| part.beneath == [REST; 2];
        let wins = parts.len() > 1 || !parts.iter().all(is_atom);
        Ok(wins.then_some(parts))
    }

    /// The digest of a state, and what it looks like from outside: equal for states that differ
    /// only in what is more than two edges away.
    fn identity(&mut self, state: u32) -> (Identity, u64) {
        if let Some(&known) = self.known.get(&state) {
            return known;
        }
        let made = (self.network.identity(state), self.look_of(state, 2));
        self.known.insert(state, made);
        made
    }

    /// A hash of what a state does within so many edges.
    fn look_of(&mut self, state: u32, depth: u32) -> u64 {
        if let Some(&known) = self.looks.get(&(state, depth)) {
            return known;
        }
        let network = self.network;
        let here = (network.is_final(state), *network.first(state), network.is_counting(state));
        let (mut edges, mut calls) = (Vec::new(), Vec::new());
        if depth > 0 && !network.is_counting(state) {
            for (class, to) in network.edges(state) {
                edges.push((class, self.look_of(to, depth - 1)));
            }
            for call in network.calls(state).iter() {
                calls.push((self.look_of(call.start, depth - 1), self.look_of(call.to, depth - 1)));
            }
            calls.sort_unstable();
        }
        let made = hash_of(&(here, edges, calls));
        self.looks.insert((state, depth), made);
        made
    }
}
