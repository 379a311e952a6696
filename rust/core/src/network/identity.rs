//! What a state does, as a digest that does not depend on the rest of the network: equal for
//! states that do the same by equal means, in any grammar and any process (XGrammar 2, section
//! 3.3 and appendix A).
//!
//! A state is described by whether its rule may be complete, by the bytes that lead to each other
//! state, and by its calls; the states that it names, by their own digests. States that lead to
//! each other are described together: first told apart by what they do, as far as that goes
//! (bisimilar states become one), and then numbered in an order that depends on nothing else.
//! XGrammar hashes simple cycles only, with 64 bits; here any cycle has a digest, and digests are of
//! 256 bits over the whole description, so that equal digests mean equal descriptions.

use super::Network;
use crate::graph;
use crate::hash::hash_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// A digest of what a state does.
pub(crate) type Identity = [u8; 32];

/// States that lead to each other, more than this, are described in the order of their numbers:
/// the same network gives the same digests, but a part of another may not.
const MAX_REFINED: usize = 128;

/// The letters of an edge, as a set: the bytes, and the one that is none.
type Letters = [u64; 5];

/// A state as another names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Named {
    /// Described before.
    Known(Identity),
    /// One of the states that are described together.
    Member(u64),
    /// One that counts: the passes still needed and allowed, whether it may stop, and the digest
    /// or number of what it repeats.
    Counting(u32, Option<u32>, bool, Option<Identity>, u64),
}

/// A state described by the names of others.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Described {
    is_final: bool,
    edges: BTreeMap<Named, Letters>,
    calls: Vec<(Named, Named)>,
}

impl Described {
    fn write(&self, out: &mut Vec<u8>) {
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

fn write_named(named: &Named, out: &mut Vec<u8>) {
    match named {
        Named::Known(identity) => {
            out.push(0);
            out.extend(identity);
        }
        Named::Member(number) => {
            out.push(1);
            out.extend(number.to_le_bytes());
        }
        Named::Counting(needed, allowed, is_final, identity, number) => {
            out.push(2);
            out.extend(needed.to_le_bytes());
            out.push(u8::from(allowed.is_some()));
            out.extend(allowed.unwrap_or(0).to_le_bytes());
            out.push(u8::from(*is_final));
            out.push(u8::from(identity.is_some()));
            out.extend(identity.unwrap_or_default());
            out.extend(number.to_le_bytes());
        }
    }
}

/// The digests of all states of a network.
pub(crate) struct Identities {
    listed: Vec<Identity>,
}

impl Identities {
    /// Of a network whose repetitions are counted or written out, not cut.
    pub(crate) fn new(network: &Network) -> Self {
        debug_assert!(!network.has_cuts());
        let sets = class_sets(network);
        let n = network.len();
        let listed = |state: u32| match network.counters_call(state) {
            Some(body) => body.start as usize,
            None => state as usize,
        };
        let successors = |state: usize| {
            let state = state as u32;
            let edges = network.edges(state).iter().map(|e| e.1);
            let calls = network.calls(state);
            let calls: Vec<u32> = calls.iter().flat_map(|call| [call.start, call.to]).collect();
            let all = edges.chain(calls).map(listed).filter(|&q| q < n);
            let mut all: Vec<usize> = all.collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let mut out = Self { listed: vec![[0; 32]; n] };
        // The number of a state among those that are described together with it.
        let mut number: Vec<Option<u64>> = vec![None; n];
        for mut component in graph::components(n, successors) {
            component.sort_unstable();
            let describe = |state: usize, number: &[Option<u64>]| {
                out.describe(network, &sets, state as u32, |q| number[q])
            };
            if component.len() > MAX_REFINED || !refine(&component, &mut number, describe) {
                (0..).zip(&component).for_each(|(i, &state)| number[state] = Some(i));
            }
            // All with one number do the same: the first of them speaks for all.
            let mut speakers: BTreeMap<Option<u64>, usize> = BTreeMap::new();
            for &state in &component {
                speakers.entry(number[state]).or_insert(state);
            }
            let order: FxHashMap<Option<u64>, u64> = speakers.keys().copied().zip(0..).collect();
            component.iter().for_each(|&q| number[q] = order.get(&number[q]).copied());
            let mut text = Vec::new();
            for &speaker in speakers.values() {
                out.describe(network, &sets, speaker as u32, |q| number[q]).write(&mut text);
            }
            let digest = blake3::hash(&text);
            for &state in &component {
                let mut hasher = blake3::Hasher::new();
                hasher.update(digest.as_bytes());
                hasher.update(&number[state].unwrap_or_default().to_le_bytes());
                out.listed[state] = *hasher.finalize().as_bytes();
                // From now on it is known by its digest.
                number[state] = None;
            }
        }
        out
    }

    /// The digest of a state, which may count.
    pub(crate) fn of(&self, network: &Network, state: u32) -> Identity {
        if let Some(&identity) = self.listed.get(state as usize) {
            return identity;
        }
        let mut text = Vec::new();
        write_named(&self.name(network, state, |_| None), &mut text);
        *blake3::hash(&text).as_bytes()
    }

    fn name(&self, network: &Network, state: u32, member: impl Fn(usize) -> Option<u64>) -> Named {
        if (state as usize) < self.listed.len() {
            return match member(state as usize) {
                Some(number) => Named::Member(number),
                None => Named::Known(self.listed[state as usize]),
            };
        }
        let (body, needed, allowed, is_final) = network.counters.meaning(state);
        match member(body as usize) {
            Some(number) => Named::Counting(needed, allowed, is_final, None, number),
            None => {
                let body = Some(self.listed[body as usize]);
                Named::Counting(needed, allowed, is_final, body, 0)
            }
        }
    }

    fn describe(
        &self,
        network: &Network,
        sets: &[Letters],
        state: u32,
        member: impl Fn(usize) -> Option<u64>,
    ) -> Described {
        let mut edges: BTreeMap<Named, Letters> = BTreeMap::new();
        for &(class, target) in network.edges(state) {
            let letters = edges.entry(self.name(network, target, &member)).or_default();
            letters.iter_mut().zip(sets[class as usize]).for_each(|(a, b)| *a |= b);
        }
        let calls = network.calls(state);
        let name = |q| self.name(network, q, &member);
        let mut calls: Vec<_> = calls.iter().map(|c| (name(c.start), name(c.to))).collect();
        calls.sort_unstable();
        calls.dedup();
        Described { is_final: network.is_final(state), edges, calls }
    }
}

/// Numbers states by what they do, until their descriptions tell no more of them apart; false
/// where numbers collide. Numbers are hashes of descriptions, so that they do not depend on where a
/// state stands in the network; after the last round, states with one number have one description.
fn refine(
    component: &[usize],
    number: &mut [Option<u64>],
    describe: impl Fn(usize, &[Option<u64>]) -> Described,
) -> bool {
    component.iter().for_each(|&state| number[state] = Some(0));
    let mut groups = 1;
    loop {
        let described: Vec<Described> = component.iter().map(|&q| describe(q, number)).collect();
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
        component.iter().zip(hashes).for_each(|(&state, hash)| number[state] = Some(hash));
    }
}

/// For each class its letters.
fn class_sets(network: &Network) -> Vec<Letters> {
    let mut out = vec![[0; 5]; network.alphabet().len()];
    if let Some(escape) = network.alphabet().escape() {
        out[escape as usize][4] = 1;
    }
    for byte in 0..=255u8 {
        out[network.alphabet().class(byte) as usize][byte as usize >> 6] |= 1 << (byte & 63);
    }
    out
}
