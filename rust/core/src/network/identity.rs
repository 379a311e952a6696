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

use super::Network;
use super::naming::{DigestSource, Identity, LetterSet, Naming, listed_state, write_named};
use super::tour::Tour;
use crate::automata::alphabet::Alphabet;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// States that go into the digest of all tables in the time of describing one.
pub(super) const STATES_AT_ONCE: usize = 16;

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
