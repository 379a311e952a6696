//! How states are described by the digests of those that they name.

use super::{Call, HOLE, Network};
use crate::graph;
use crate::hash::hash_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::convert::Infallible;

/// A digest of what a state does.
pub(crate) type Identity = [u8; 32];

/// States that lead to each other, more than this, are described in the order of their numbers:
/// the same network gives the same digests, but a part of another may not.
pub(super) const MAX_REFINED: usize = 128;

/// The letters of an edge, as a set: the bytes, and the one that is none.
pub(super) type LetterSet = [u64; 5];

/// Bytes of the description of a state, as a rule.
const TEXT: usize = 1 << 10;

/// A state as another names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum StateName {
    /// Described before.
    Known(Identity),
    /// One of the states that are described together.
    Member(u64),
    /// One that counts: the passes still needed and allowed, whether it may stop, and the digest
    /// or number of what it repeats.
    Counting(u32, Option<u32>, u8, Option<Identity>, u64),
}

/// A state described by the names of others.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct StateDescription {
    is_final: bool,
    edges: Vec<(StateName, LetterSet)>,
    calls: Vec<(StateName, StateName)>,
}

impl StateDescription {
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_final));
        out.extend((self.edges.len() as u32).to_le_bytes());
        for (named, letters) in &self.edges {
            write_named(named, out);
            letters.iter().for_each(|word| out.extend(word.to_le_bytes()));
        }
        out.extend((self.calls.len() as u32).to_le_bytes());
        for (start, to) in &self.calls {
            write_named(start, out);
            write_named(to, out);
        }
    }
}

pub(super) fn write_named(named: &StateName, out: &mut Vec<u8>) {
    match named {
        StateName::Known(identity) => {
            out.push(0);
            out.extend(identity);
        }
        StateName::Member(number) => {
            out.push(1);
            out.extend(number.to_le_bytes());
        }
        StateName::Counting(needed, allowed, is_final, identity, number) => {
            out.push(2);
            out.extend(needed.to_le_bytes());
            out.push(u8::from(allowed.is_some()));
            out.extend(allowed.unwrap_or(0).to_le_bytes());
            out.push(*is_final);
            out.push(u8::from(identity.is_some()));
            out.extend(identity.unwrap_or_default());
            out.extend(number.to_le_bytes());
        }
    }
}

/// What digests are made of.
pub(super) struct DigestSource<'s> {
    /// Tables whose repetitions are counted or written out, not cut.
    pub(super) tables: &'s Network,
    /// The digest of what a call leads to that is not in the tables, by its place.
    pub(super) outer: &'s dyn Fn(u32) -> Identity,
    /// The digest of all tables, where their states are not described one by one.
    pub(super) large: Option<&'s dyn Fn() -> Identity>,
    /// How many states stand for the digest of all tables, where it is not there.
    pub(super) large_cost: usize,
}

/// The digests that are there, and the numbers of the states that are described together now.
pub(super) struct Naming<'s> {
    pub(super) source: &'s DigestSource<'s>,
    pub(super) sets: &'s [LetterSet],
    pub(super) listed: &'s mut [Option<Identity>],
    pub(super) members: FxHashMap<u32, u64>,
}

impl<'s> Naming<'s> {
    pub(super) fn source(&self) -> &'s DigestSource<'s> {
        self.source
    }

    /// Makes the digests that are missing of a state and all that it can reach, if they are few
    /// enough; how many.
    pub(super) fn describe_from(&mut self, state: u32, most: usize) -> Option<usize> {
        let tables = self.source.tables;
        let mut reached: Vec<u32> = Vec::new();
        let mut places: FxHashMap<u32, usize> = FxHashMap::default();
        let mut next = Vec::new();
        let mut successors: Vec<Vec<usize>> = Vec::new();
        let mut meet = |state: u32, reached: &mut Vec<u32>, listed: &[Option<Identity>]| {
            let state = listed_state(tables, state)?;
            if listed[state as usize].is_some() {
                return None;
            }
            Some(*places.entry(state).or_insert_with(|| {
                reached.push(state);
                reached.len() - 1
            }))
        };
        meet(state, &mut reached, self.listed);
        let (mut at, mut large) = (0, 0);
        while let Some(&state) = reached.get(at) {
            at += 1;
            next.clear();
            if self.source.large.is_some() {
                large = self.source.large_cost;
            } else {
                named_by(tables, state, &mut next);
            }
            let met = next.iter().filter_map(|&q| meet(q, &mut reached, self.listed));
            successors.push(met.collect());
            if reached.len() + large > most {
                return None;
            }
        }
        reached.iter().for_each(|&state| self.give(state));
        let next = |place: usize| Ok(std::mem::take(&mut successors[place]));
        let look = |_| Ok::<_, Infallible>(());
        let Ok(components) = graph::components_within(reached.len(), look, next);
        let mut component: Vec<u32> = Vec::new();
        for places in components.iter() {
            component.clear();
            component.extend(places.iter().map(|&at| reached[at]));
            component.sort_unstable();
            if component.len() > 1 || self.is_missing(component[0]) {
                self.describe_together(&component);
            }
        }
        Some(reached.len())
    }

    /// The digest of a state, where states are not described one by one.
    fn give(&mut self, state: u32) {
        if let Some(digest) = self.source.large {
            self.listed[state as usize] = Some(numbered(&digest(), u64::from(state)));
        }
    }

    pub(super) fn is_missing(&self, state: u32) -> bool {
        self.listed[state as usize].is_none()
    }

    /// Makes the digests of states that lead to each other.
    pub(super) fn describe_together(&mut self, component: &[u32]) {
        if let [state] = *component {
            self.members.insert(state, 0);
            let mut text = Vec::with_capacity(TEXT);
            self.describe(state).write(&mut text);
            return self.give_digests(*blake3::hash(&text).as_bytes());
        }
        if component.len() > MAX_REFINED || !self.refine(component) {
            self.members = component.iter().copied().zip(0..).collect();
        }
        // All with one number do the same: the first of them speaks for all.
        let mut speakers: BTreeMap<u64, u32> = BTreeMap::new();
        for state in component {
            speakers.entry(self.members[state]).or_insert(*state);
        }
        let order: FxHashMap<u64, u64> = speakers.keys().copied().zip(0..).collect();
        self.members.values_mut().for_each(|number| *number = order[number]);
        let mut text = Vec::new();
        for &speaker in speakers.values() {
            self.describe(speaker).write(&mut text);
        }
        self.give_digests(*blake3::hash(&text).as_bytes());
    }

    /// From now on the states that were described together are known by their digests.
    pub(super) fn give_digests(&mut self, digest: Identity) {
        for (state, number) in self.members.drain() {
            self.listed[state as usize] = Some(numbered(&digest, number));
        }
    }

    /// Numbers states by what they do, until their descriptions tell no more of them apart; false
    /// where numbers collide. Numbers are hashes of descriptions, so that they do not depend on
    /// where a state stands in the tables; after the last round, states with one number have one
    /// description.
    fn refine(&mut self, component: &[u32]) -> bool {
        self.members = component.iter().map(|&state| (state, 0)).collect();
        let mut groups = 1;
        loop {
            let described: Vec<StateDescription> =
                component.iter().map(|&q| self.describe(q)).collect();
            let hashes: Vec<u64> = described.iter().map(hash_of).collect();
            let distinct = described.iter().collect::<FxHashSet<_>>().len();
            if hashes.iter().collect::<FxHashSet<_>>().len() != distinct {
                return false;
            }
            // Each round refines the one before, so as many groups are the same groups.
            if distinct == groups {
                return true;
            }
            groups = distinct;
            self.members = component.iter().copied().zip(hashes).collect();
        }
    }

    pub(super) fn name(&self, state: u32) -> StateName {
        if state >= HOLE {
            return StateName::Known((self.source.outer)(state & !HOLE));
        }
        if let Some(&number) = self.members.get(&state) {
            return StateName::Member(number);
        }
        if let Some(known) = self.listed.get(state as usize) {
            return StateName::Known(known.expect("callees are described before their callers"));
        }
        let counters = &self.source.tables.counters;
        let (body, needed, allowed, is_final) = counters.meaning(state);
        let kind = u8::from(is_final)
            | u8::from(counters.is_automaton(state)) << 1
            | u8::from(counters.counts_tokens(state)) << 2;
        match self.name(body) {
            StateName::Member(number) => StateName::Counting(needed, allowed, kind, None, number),
            StateName::Known(body) => StateName::Counting(needed, allowed, kind, Some(body), 0),
            // A body is a rule that does not count itself.
            counting @ StateName::Counting(..) => counting,
        }
    }

    pub(super) fn describe(&self, state: u32) -> StateDescription {
        let tables = self.source.tables;
        let mut targets: Vec<(u32, LetterSet)> = Vec::new();
        for (class, target) in tables.edges(state) {
            let place = targets.iter().rposition(|entry| entry.0 == target);
            let place = place.unwrap_or_else(|| {
                targets.push((target, LetterSet::default()));
                targets.len() - 1
            });
            let letters = targets[place].1.iter_mut();
            letters.zip(self.sets[class as usize]).for_each(|(a, b)| *a |= b);
        }
        let mut edges: Vec<(StateName, LetterSet)> =
            targets.into_iter().map(|(target, letters)| (self.name(target), letters)).collect();
        edges.sort_unstable();
        edges.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1.iter_mut().zip(next.1).for_each(|(a, b)| *a |= b);
            }
            is_same
        });
        let calls = tables.calls(state);
        let name = |call: &Call| (self.name(call.start), self.name(call.to));
        let mut calls: Vec<_> = calls.iter().map(name).collect();
        calls.sort_unstable();
        calls.dedup();
        StateDescription { is_final: tables.is_final(state), edges, calls }
    }
}

/// One of some states that have a digest together.
pub(super) fn numbered(digest: &Identity, number: u64) -> Identity {
    let mut hasher = blake3::Hasher::new();
    hasher.update(digest);
    hasher.update(&number.to_le_bytes());
    *hasher.finalize().as_bytes()
}

/// The states that another names, in order.
pub(super) fn named_by(tables: &Network, state: u32, out: &mut Vec<u32>) {
    out.extend(tables.edges(state).map(|edge| edge.1));
    out.extend(tables.calls(state).iter().flat_map(|call| [call.start, call.to]));
    out.sort_unstable();
    out.dedup();
}

/// The state that stands for one in the tables, for one that counts the start of its body or that of its
/// automaton; `None`
/// where it is elsewhere.
pub(super) fn listed_state(tables: &Network, state: u32) -> Option<u32> {
    let listed = if state < HOLE { tables.counted(state) } else { None };
    let state = listed.unwrap_or(state);
    tables.is_listed(state).then_some(state)
}
