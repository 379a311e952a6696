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
    /// Sorted, each target once.
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

/// The digests of the states of a network, made for those that are asked for and what they lead to.
pub(crate) struct Identities {
    listed: Vec<Identity>,
    is_known: Vec<bool>,
    /// For each byte class its letters.
    sets: Vec<Letters>,
    /// The number of a state among those that are described together with it.
    number: Vec<Option<u64>>,
    /// Where a state stands among those that are to be described, or [`NOWHERE`].
    place: Vec<u32>,
}

const NOWHERE: u32 = u32::MAX;

impl Identities {
    /// Of a network whose repetitions are counted or written out, not cut.
    pub(crate) fn new(network: &Network) -> Self {
        let mut out = Self::unknown(network);
        out.make((0..network.len() as u32).collect(), network);
        out
    }

    /// The same, none of them known yet.
    pub(crate) fn unknown(network: &Network) -> Self {
        debug_assert!(!network.has_cuts());
        let n = network.len();
        Self {
            listed: vec![[0; 32]; n],
            is_known: vec![false; n],
            sets: class_sets(network),
            number: vec![None; n],
            place: vec![NOWHERE; n],
        }
    }

    /// The digest of a state, which may count; `None` where more than `most` states that it leads
    /// to are not known, which then are not known either.
    pub(crate) fn find(&mut self, network: &Network, state: u32, most: usize) -> Option<Identity> {
        let begun = in_tables(network, state);
        if !self.is_known[begun as usize] {
            let missing = self.missing(network, begun, most)?;
            self.make(missing, network);
        }
        Some(self.of(network, state))
    }

    /// The states that are not known among those that a state leads to, if they are few enough.
    fn missing(&mut self, network: &Network, state: u32, most: usize) -> Option<Vec<u32>> {
        let mut found = vec![state];
        self.place[state as usize] = 0;
        let mut next = 0;
        while next < found.len() && found.len() <= most {
            each_successor(network, found[next], |q| {
                if !self.is_known[q as usize] && self.place[q as usize] == NOWHERE {
                    self.place[q as usize] = 0;
                    found.push(q);
                }
            });
            next += 1;
        }
        found.iter().for_each(|&q| self.place[q as usize] = NOWHERE);
        (found.len() <= most).then_some(found)
    }

    /// Describes states that lead to none but each other and those that are known.
    fn make(&mut self, mut states: Vec<u32>, network: &Network) {
        states.sort_unstable();
        (0..).zip(&states).for_each(|(i, &state)| self.place[state as usize] = i);
        let successors = |i: usize| {
            let mut all = Vec::new();
            each_successor(network, states[i], |q| all.push(self.place[q as usize]));
            all.sort_unstable();
            all.dedup();
            all.into_iter().filter(|&q| q != NOWHERE).map(|q| q as usize).collect()
        };
        let components = graph::components(states.len(), successors);
        let mut text = Vec::new();
        for component in components {
            let mut component: Vec<usize> = component.iter().map(|&i| states[i] as usize).collect();
            component.sort_unstable();
            self.describe_together(network, &component, &mut text);
        }
        for &state in &states {
            self.place[state as usize] = NOWHERE;
            self.is_known[state as usize] = true;
        }
    }

    /// Describes states that lead to each other; all others that they lead to are.
    fn describe_together(&mut self, network: &Network, component: &[usize], text: &mut Vec<u8>) {
        text.clear();
        if let &[state] = component {
            self.number[state] = Some(0);
            self.describe(network, state as u32, |q| self.number[q]).write(text);
        } else {
            let mut number = std::mem::take(&mut self.number);
            let describe = |state: usize, number: &[Option<u64>]| {
                self.describe(network, state as u32, |q| number[q])
            };
            if component.len() > MAX_REFINED || !refine(component, &mut number, describe) {
                (0..).zip(component).for_each(|(i, &state)| number[state] = Some(i));
            }
            // All with one number do the same: the first of them speaks for all.
            let mut speakers: BTreeMap<Option<u64>, usize> = BTreeMap::new();
            for &state in component {
                speakers.entry(number[state]).or_insert(state);
            }
            let order: FxHashMap<Option<u64>, u64> = speakers.keys().copied().zip(0..).collect();
            component.iter().for_each(|&q| number[q] = order.get(&number[q]).copied());
            for &speaker in speakers.values() {
                self.describe(network, speaker as u32, |q| number[q]).write(text);
            }
            self.number = number;
        }
        let digest = blake3::hash(text);
        for &state in component {
            // From now on it is known by its digest.
            let number = self.number[state].take().unwrap_or_default();
            let mut of_state = [0; 40];
            of_state[..32].copy_from_slice(digest.as_bytes());
            of_state[32..].copy_from_slice(&number.to_le_bytes());
            self.listed[state] = *blake3::hash(&of_state).as_bytes();
        }
    }

    /// The digest of a state, which may count; it is known, or what it repeats is.
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
        state: u32,
        member: impl Fn(usize) -> Option<u64>,
    ) -> Described {
        let mut targets: Vec<(u32, Letters)> = Vec::new();
        for &(class, target) in network.edges(state) {
            let place = targets.iter().rposition(|entry| entry.0 == target);
            let place = place.unwrap_or_else(|| {
                targets.push((target, Letters::default()));
                targets.len() - 1
            });
            let letters = targets[place].1.iter_mut();
            letters.zip(self.sets[class as usize]).for_each(|(a, b)| *a |= b);
        }
        let name = |q| self.name(network, q, &member);
        let mut edges: Vec<(Named, Letters)> =
            targets.into_iter().map(|(target, letters)| (name(target), letters)).collect();
        edges.sort_unstable();
        edges.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            if is_same {
                kept.1.iter_mut().zip(next.1).for_each(|(a, b)| *a |= b);
            }
            is_same
        });
        let calls = network.calls(state);
        let mut calls: Vec<_> = calls.iter().map(|c| (name(c.start), name(c.to))).collect();
        calls.sort_unstable();
        calls.dedup();
        Described { is_final: network.is_final(state), edges, calls }
    }
}

/// A state of the tables that says what a state does: of one that counts, what it repeats.
fn in_tables(network: &Network, state: u32) -> u32 {
    if network.is_listed(state) { state } else { network.counters.meaning(state).0 }
}

/// The states of the tables that one leads to; some more than once.
fn each_successor(network: &Network, state: u32, mut found: impl FnMut(u32)) {
    network.edges(state).iter().for_each(|edge| found(edge.1));
    for call in network.calls(state).iter() {
        [call.start, call.to].into_iter().for_each(|q| found(in_tables(network, q)));
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
        let all = Identities::new(&network);
        let states: Vec<u32> = (0..).take_while(|&state| network.is_state(state)).collect();
        assert!(states.len() > network.len());
        for step in [1, 3, 7, 11] {
            let mut some = Identities::unknown(&network);
            for &state in states.iter().cycle().step_by(step).take(states.len()) {
                let most = state as usize % 5;
                let few = some.find(&network, state, most);
                let found = some.find(&network, state, usize::MAX);
                assert_eq!(found, Some(all.of(&network, state)));
                assert!(few.is_none() || few == found);
            }
        }
        let mut none = Identities::unknown(&network);
        assert_eq!(none.find(&network, network.start(), 10), None);
        assert!(none.is_known.iter().all(|&is_known| !is_known));
    }
}
