//! What a state does, as a digest that does not depend on the rest of the network: equal for
//! states that do the same by equal means, in any grammar and any process (XGrammar 2, section
//! 3.3 and appendix A).
//!
//! Design: docs/design/parts.md, "Shared answers".
//!
//! A state is described by whether its rule may be complete, by the bytes that lead to each other
//! state, and by its calls; the states that it names, by their own digests. States that lead to
//! each other are described together: first told apart by what they do, as far as that goes
//! (bisimilar states become one), and then numbered in an order that depends on nothing else.
//! XGrammar hashes simple cycles only, with 64 bits; here any cycle has a digest, and digests are of
//! 256 bits over the whole description, so that equal digests mean equal descriptions.

use super::tour::Tour;
use super::{Call, HOLE, Network};
use crate::automata::alphabet::Alphabet;
use crate::graph;
use crate::hash::hash_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A digest of what a state does.
pub(crate) type Identity = [u8; 32];

/// States that lead to each other, more than this, are described in the order of their numbers:
/// the same network gives the same digests, but a part of another may not.
pub(super) const MAX_REFINED: usize = 128;

/// States that go into the digest of all tables in the time of describing one.
pub(super) const STATES_AT_ONCE: usize = 16;

/// The letters of an edge, as a set: the bytes, and the one that is none.
pub(super) type LetterSet = [u64; 5];

/// Bytes of the description of a state, as a rule.
const TEXT: usize = 1 << 10;

/// A state as another names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum StateName {
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

fn write_named(named: &StateName, out: &mut Vec<u8>) {
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

/// The digests of the states of some tables, each made when first asked for, with those of the states
/// that it can reach.
#[derive(Debug)]
pub(crate) struct Identities {
    sets: Vec<LetterSet>,
    known: Mutex<KnownIdentities>,
}

#[derive(Debug, Default)]
struct KnownIdentities {
    listed: Vec<Option<Identity>>,
    tour: Tour,
}

/// How many states may be described for one answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quota {
    /// So many, if the digest is there then.
    pub(crate) most: usize,
    /// Where it is not, so many that will be asked for later; next time they are there.
    pub(crate) ahead: usize,
    /// The same as `most`, where tables are described as a whole.
    pub(crate) at_once: usize,
    /// So many were.
    pub(crate) used: usize,
}

impl Quota {
    /// However many it takes.
    pub(crate) fn all() -> Self {
        Self { most: usize::MAX, ahead: 0, at_once: usize::MAX, used: 0 }
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
    source: &'s DigestSource<'s>,
    sets: &'s [LetterSet],
    listed: &'s mut [Option<Identity>],
    pub(super) members: FxHashMap<u32, u64>,
}

impl Identities {
    /// Of tables with these byte classes, of so many states.
    pub(super) fn new(tables: &Network) -> Self {
        debug_assert!(!tables.has_cuts());
        let known = KnownIdentities { listed: vec![None; tables.len()], tour: Tour::default() };
        Self { sets: class_sets(&tables.alphabet), known: Mutex::new(known) }
    }

    /// The digest of a state, which may count; `None` where more states that it leads to have none
    /// yet than `quota` allows.
    pub(super) fn find(
        &self,
        source: &DigestSource<'_>,
        state: u32,
        quota: &mut Quota,
    ) -> Option<Identity> {
        let mut known = lock(&self.known);
        let KnownIdentities { listed, tour } = &mut *known;
        if let Some(&Some(identity)) = listed.get(state as usize) {
            return Some(identity);
        }
        let members = FxHashMap::default();
        let mut naming = Naming { source, sets: &self.sets, listed, members };
        let most = if source.large.is_some() { quota.at_once } else { quota.most };
        if let Some(states) = naming.describe_from(state, most) {
            quota.used += states;
        } else {
            if source.large.is_none() {
                quota.used += quota.ahead;
                tour.go_on(&mut naming, state, quota.ahead);
            }
            if listed_state(source.tables, state).is_some_and(|state| naming.is_missing(state)) {
                return None;
            }
        }
        if let Some(&Some(identity)) = naming.listed.get(state as usize) {
            return Some(identity);
        }
        let mut text = Vec::new();
        write_named(&naming.name(state), &mut text);
        Some(*blake3::hash(&text).as_bytes())
    }
}

impl<'s> Naming<'s> {
    pub(super) fn source(&self) -> &'s DigestSource<'s> {
        self.source
    }

    /// Makes the digests that are missing of a state and all that it can reach, if they are few
    /// enough; how many.
    fn describe_from(&mut self, state: u32, most: usize) -> Option<usize> {
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
        for component in graph::components(reached.len(), |place| successors[place].clone()) {
            let mut component: Vec<u32> = component.into_iter().map(|at| reached[at]).collect();
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
        for (state, number) in std::mem::take(&mut self.members) {
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

    fn name(&self, state: u32) -> StateName {
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

impl Network {
    /// The digest of a state, which may count.
    pub(crate) fn identity(&self, state: u32) -> Identity {
        self.find_identity(state, &mut Quota::all()).expect("however many states it takes")
    }

    /// The digest of the tables as they stand, with those of what they call besides.
    pub(super) fn digest(&self, children: impl Iterator<Item = Identity>) -> Identity {
        let mut text: Vec<u8> = (0..=255).map(|byte| self.alphabet.class(byte)).collect();
        let escape = self.alphabet.escape();
        text.extend([u8::from(escape.is_some()), escape.unwrap_or_default()]);
        let mut number = |number: u32| text.extend(number.to_le_bytes());
        number(self.len() as u32);
        self.edge_starts.iter().chain(&self.call_starts).for_each(|&start| number(start));
        for &(class, to) in &self.edges {
            number(u32::from(class));
            number(to);
        }
        for call in &self.calls {
            number(call.start);
            number(call.to);
        }
        self.finals.iter().for_each(|&is_final| number(u32::from(is_final)));
        number(self.fallbacks.len() as u32);
        self.fallbacks.iter().for_each(|&other| number(other));
        self.counters.key().concat().into_iter().for_each(&mut number);
        self.guards_into(&mut text);
        children.for_each(|child| text.extend(child));
        *blake3::hash(&text).as_bytes()
    }

    /// The same; `None` where more states would have to be described than `quota` allows.
    pub(crate) fn find_identity(&self, state: u32, quota: &mut Quota) -> Option<Identity> {
        if let Some((listed, read)) = self.as_set(state) {
            // Tables with guards have one digest for all their states, which says what a set means.
            let mut hasher =
                blake3::Hasher::new_derive_key("tokfold state of members that were read");
            hasher.update(&self.find_identity(listed, quota)?);
            for word in read {
                hasher.update(&word.to_le_bytes());
            }
            return Some(*hasher.finalize().as_bytes());
        }
        let Some(placed) = &self.linked else {
            let identities = self.identities.get_or_init(|| Arc::new(Identities::new(self)));
            let outer = &|_| Identity::default();
            if !self.has_sets() {
                let source = DigestSource { tables: self, outer, large: None, large_cost: 0 };
                return identities.find(&source, state, quota);
            }
            let whole = || *self.digest.get_or_init(|| self.digest(std::iter::empty()));
            let is_made = self.digest.get().is_some();
            let large_cost = if is_made { 0 } else { self.len() / STATES_AT_ONCE };
            let source = DigestSource { tables: self, outer, large: Some(&whole), large_cost };
            return identities.find(&source, state, quota);
        };
        let own = placed.iter().find_map(|placed| match self.is_listed(state) {
            true => Some((&placed.part, placed.own(state)?)),
            false => Some((&placed.part, placed.own_counter(state)?)),
        });
        let (part, state) = own.expect("each state is of a part");
        part.find_identity(state, quota)
    }
}

/// For each class its letters.
pub(super) fn class_sets(alphabet: &Alphabet) -> Vec<LetterSet> {
    let mut out = vec![[0; 5]; alphabet.len()];
    if let Some(escape) = alphabet.escape() {
        out[escape as usize][4] = 1;
    }
    for byte in 0..=255u8 {
        out[alphabet.class(byte) as usize][byte as usize >> 6] |= 1 << (byte & 63);
    }
    out
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
