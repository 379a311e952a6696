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
const MAX_REFINED: usize = 128;

/// The letters of an edge, as a set: the bytes, and the one that is none.
pub(super) type Letters = [u64; 5];

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
    edges: Vec<(Named, Letters)>,
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

/// The digests of the states of some tables, each made when first asked for, with those of the states
/// that it can reach.
#[derive(Debug)]
pub(crate) struct Identities {
    sets: Vec<Letters>,
    listed: Mutex<Vec<Option<Identity>>>,
}

/// What digests are made of.
pub(super) struct Source<'s> {
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
struct Naming<'s> {
    source: &'s Source<'s>,
    sets: &'s [Letters],
    listed: &'s mut [Option<Identity>],
    members: FxHashMap<u32, u64>,
}

impl Identities {
    /// Of tables with these byte classes, of so many states.
    pub(super) fn new(tables: &Network) -> Self {
        debug_assert!(!tables.has_cuts());
        let listed = Mutex::new(vec![None; tables.len()]);
        Self { sets: class_sets(&tables.alphabet), listed }
    }

    /// The digest of a state, which may count; `None` where more than `most` states that it leads to
    /// have none yet, which then get none either.
    pub(super) fn find(&self, source: &Source<'_>, state: u32, most: usize) -> Option<Identity> {
        let mut listed = lock(&self.listed);
        if let Some(&Some(identity)) = listed.get(state as usize) {
            return Some(identity);
        }
        let members = FxHashMap::default();
        let mut naming = Naming { source, sets: &self.sets, listed: &mut listed, members };
        naming.describe_from(state, most)?;
        if let Some(&Some(identity)) = naming.listed.get(state as usize) {
            return Some(identity);
        }
        let mut text = Vec::new();
        write_named(&naming.name(state), &mut text);
        Some(*blake3::hash(&text).as_bytes())
    }
}

impl Naming<'_> {
    /// Makes the digests that are missing of a state and all that it can reach, if they are few enough.
    fn describe_from(&mut self, state: u32, most: usize) -> Option<()> {
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
                next.extend(tables.edges(state).map(|edge| edge.1));
                next.extend(tables.calls(state).iter().flat_map(|call| [call.start, call.to]));
                next.sort_unstable();
                next.dedup();
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
            if component.len() > 1 || self.listed[component[0] as usize].is_none() {
                self.describe_together(&component);
            }
        }
        Some(())
    }

    /// The digest of a state, where states are not described one by one.
    fn give(&mut self, state: u32) {
        if let Some(digest) = self.source.large {
            self.listed[state as usize] = Some(numbered(&digest(), u64::from(state)));
        }
    }

    /// Makes the digests of states that lead to each other.
    fn describe_together(&mut self, component: &[u32]) {
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
        let digest = *blake3::hash(&text).as_bytes();
        // From now on they are known by their digests.
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
            let described: Vec<Described> = component.iter().map(|&q| self.describe(q)).collect();
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

    fn name(&self, state: u32) -> Named {
        if state >= HOLE {
            return Named::Known((self.source.outer)(state & !HOLE));
        }
        if let Some(&number) = self.members.get(&state) {
            return Named::Member(number);
        }
        if let Some(known) = self.listed.get(state as usize) {
            return Named::Known(known.expect("callees are described before their callers"));
        }
        let (body, needed, allowed, is_final) = self.source.tables.counters.meaning(state);
        match self.name(body) {
            Named::Member(number) => Named::Counting(needed, allowed, is_final, None, number),
            Named::Known(body) => Named::Counting(needed, allowed, is_final, Some(body), 0),
            // A body is a rule that does not count itself.
            counting @ Named::Counting(..) => counting,
        }
    }

    fn describe(&self, state: u32) -> Described {
        let tables = self.source.tables;
        let mut targets: Vec<(u32, Letters)> = Vec::new();
        for (class, target) in tables.edges(state) {
            let place = targets.iter().rposition(|entry| entry.0 == target);
            let place = place.unwrap_or_else(|| {
                targets.push((target, Letters::default()));
                targets.len() - 1
            });
            let letters = targets[place].1.iter_mut();
            letters.zip(self.sets[class as usize]).for_each(|(a, b)| *a |= b);
        }
        let mut edges: Vec<(Named, Letters)> =
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
        Described { is_final: tables.is_final(state), edges, calls }
    }
}

/// One of some states that have a digest together.
pub(super) fn numbered(digest: &Identity, number: u64) -> Identity {
    let mut hasher = blake3::Hasher::new();
    hasher.update(digest);
    hasher.update(&number.to_le_bytes());
    *hasher.finalize().as_bytes()
}

/// The state that stands for one in the tables, the start of its body for one that counts; `None`
/// where it is elsewhere.
fn listed_state(tables: &Network, state: u32) -> Option<u32> {
    let body = if state < HOLE { tables.counters_call(state) } else { None };
    let state = body.map_or(state, |body| body.start);
    tables.is_listed(state).then_some(state)
}

impl Network {
    /// The digest of a state, which may count.
    pub(crate) fn identity(&self, state: u32) -> Identity {
        self.find_identity(state, usize::MAX).expect("however many states it takes")
    }

    /// The same; `None` where more than `most` states would have to be described.
    pub(crate) fn find_identity(&self, state: u32, most: usize) -> Option<Identity> {
        let Some(placed) = &self.linked else {
            let identities = self.identities.get_or_init(|| Arc::new(Identities::new(self)));
            let outer = &|_| Identity::default();
            let source = Source { tables: self, outer, large: None, large_cost: 0 };
            return identities.find(&source, state, most);
        };
        let own = placed.iter().find_map(|placed| match self.is_listed(state) {
            true => Some((&placed.part, placed.own(state)?)),
            false => Some((&placed.part, placed.own_counter(state)?)),
        });
        let (part, state) = own.expect("each state is of a part");
        part.find_identity(state, most)
    }
}

/// For each class its letters.
pub(super) fn class_sets(alphabet: &Alphabet) -> Vec<Letters> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::network::NetworkOptions;
    use crate::syntax;

    const GRAMMAR: &str = r#"
        root ::= "{" pair ("," pair)* "}" | list | "<" [a-z]{20,40} ">"
        pair ::= text ":" value
        value ::= text | list | root | "-"? [0-9]+
        list ::= "[" (value ("," value)*)? "]" | "(" value ")"
        text ::= "'" [^']* "'"
    "#;

    #[test]
    fn digests_do_not_depend_on_what_is_asked_first() {
        let grammar = syntax::parse(GRAMMAR, "root", &Limits::default()).expect("it is a grammar");
        let options =
            NetworkOptions { counters: true, simplify: false, ..NetworkOptions::default() };
        let network = Network::new(&grammar, &options).expect("within bounds");
        let states: Vec<u32> = (0..).take_while(|&state| network.is_state(state)).collect();
        assert!(states.len() > network.len());
        let all: Vec<Identity> = states.iter().map(|&state| network.identity(state)).collect();
        for step in [1, 3, 7, 11] {
            let some = Network::new(&grammar, &options).expect("within bounds");
            for &state in states.iter().cycle().step_by(step).take(states.len()) {
                let most = state as usize % 5;
                let few = some.find_identity(state, most);
                let found = some.find_identity(state, usize::MAX);
                assert_eq!(found, Some(all[state as usize]));
                assert!(few.is_none() || few == found);
            }
        }
        let none = Network::new(&grammar, &options).expect("within bounds");
        assert_eq!(none.find_identity(none.start(), 10), None);
        let known = none.identities.get().map(|identities| lock(&identities.listed).clone());
        assert!(known.expect("it was asked").iter().all(Option::is_none));
    }
}
