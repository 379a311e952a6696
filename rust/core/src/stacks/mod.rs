//! Sets of stacks over a network, and what a byte does to them.
//!
//! Design: docs/design/stacks.md.
//!
//! Both the displacement automaton (stacks above an unknown rest) and the recognizer (whole
//! stacks) walk the network this way.
//!
//! - [`sets`]: the sets themselves, hash-consed (a graph-structured stack); `sets/unions.rs` unites them.
//! - [`shards`]: hash tables that grow a part at a time.
//! - [`sweep`]: one byte read by many stacks at once, each called rule gone through once.
//! - [`narrow`]: stacks that count, without those that say nothing beside others.

mod narrow;
mod sets;
mod shards;
mod sweep;

pub(crate) use sets::{
    Entry, LABEL, NONE, REST, SetId, StackSets, beneath_first, beneath_first_by, sort_pairs,
};

use crate::budget::Halt;
use crate::hash::hash_of;
use crate::network::{Network, contains};
use shards::Shards;
use std::ops::Deref;

/// Stack sets with their transitions, made when first needed.
///
/// `N` is a reference to a network, or a share in one.
pub(crate) struct Stepper<N> {
    network: N,
    pub(crate) sets: StackSets,
    /// The set after a byte, by set and byte class. Most sets are asked for few classes, so a
    /// table of all would be mostly empty: 26 MB instead of 4 for Bython.
    steps: Shards<(SetId, u8, SetId)>,
    sweep: sweep::Sweep,
    /// What is left of sets without needless stacks, where the network counts.
    narrowed: Option<narrow::Narrowed>,
    /// Rules completed so far, in steps that were made.
    pub(crate) completions: u64,
}

impl<N: Deref<Target = Network>> Stepper<N> {
    pub(crate) fn new(network: N) -> Self {
        Self {
            narrowed: network.has_counters().then(narrow::Narrowed::default),
            network,
            sets: StackSets::new(),
            steps: Shards::default(),
            sweep: sweep::Sweep::default(),
            completions: 0,
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let narrowed = self.narrowed.as_ref().map_or(0, narrow::Narrowed::bytes);
        self.sets.bytes() + self.steps.bytes() + narrowed
    }

    /// The stacks after one byte, completed rules popped: the top of each has an edge.
    #[inline]
    pub(crate) fn step(&mut self, set: SetId, class: u8) -> Result<SetId, Halt> {
        match self.known(set, class) {
            Some(known) => Ok(known),
            None => self.make(set, class),
        }
    }

    /// The stacks after one byte from a frame above the unknown rest that leaves its delegated
    /// calls out.
    pub(crate) fn own_step(&mut self, state: u32, class: u8) -> Result<SetId, Halt> {
        let refused = self.network.refused_sets();
        let mut entries = Vec::new();
        let mut parts = Vec::new();
        for target in self.network.targets(state, class) {
            if self.network.stays(target) {
                entries.push(entered(&self.network, &mut self.sets, target, REST)?);
            }
            if self.network.is_final(target) {
                parts.push(REST);
            }
        }
        for index in 0..self.network.own_calls(state).len() {
            let call = self.network.own_calls(state)[index];
            if !contains(self.network.first(call.start), class) {
                continue;
            }
            let mut under = NONE;
            if self.network.stays(call.to) {
                under = self.sets.add(&[(call.to, REST)])?;
            }
            if self.network.is_final(call.to) {
                under = self.sets.union(under, REST)?;
            }
            let called = self.sets.add(&[(call.start, under)])?;
            parts.push(self.step(called, class)?);
        }
        parts.sort_unstable();
        parts.dedup();
        self.check_sets(refused)?;
        self.sets.collect(&mut entries, &parts)
    }

    /// The stacks behind the first byte of a token.
    pub(crate) fn after_first(&mut self, set: SetId) -> Result<SetId, Halt> {
        self.with_tops(set, |network, top| Some(network.after_first(top)))
    }

    /// The stacks where a token has ended.
    pub(crate) fn after_token(&mut self, set: SetId) -> Result<SetId, Halt> {
        self.with_tops(set, Network::after_token)
    }

    /// The stacks with other states on top, without those for which there is none.
    fn with_tops(
        &mut self,
        set: SetId,
        of: impl Fn(&Network, u32) -> Option<u32>,
    ) -> Result<SetId, Halt> {
        let entries = self.sets.entries(set);
        self.sets.spend(entries.len() as u64)?;
        let moved = entries.into_iter().filter_map(|(top, beneath)| match top {
            top if top >= LABEL => Some((top, beneath)),
            state => of(&self.network, state).map(|state| (state, beneath)),
        });
        let mut moved = moved.collect();
        self.sets.collect(&mut moved, &[])
    }

    /// The answer where it is cheap or remembered.
    #[inline]
    fn known(&self, set: SetId, class: u8) -> Option<SetId> {
        if let [(top, _)] = *self.sets.list(set)
            && (top >= LABEL || !contains(self.network.first(top), class))
        {
            return Some(NONE);
        }
        let hash = hash_of(&(set, class));
        self.steps.find(hash, |step| (step.0, step.1) == (set, class)).map(|step| step.2)
    }

    /// An error where the network had no room for a state that is a set since it had refused so many.
    /// What was remembered meanwhile is forgotten with all else.
    fn check_sets(&mut self, refused: u64) -> Result<(), Halt> {
        if self.network.refused_sets() == refused {
            return Ok(());
        }
        self.steps = Shards::default();
        Err(Halt::Sets)
    }

    /// Remembers what a set becomes, without stacks that say nothing beside others.
    fn remember(&mut self, set: SetId, class: u8, after: SetId) -> Result<SetId, Halt> {
        let after = self.narrow(after)?;
        self.steps.insert(hash_of(&(set, class)), (set, class, after));
        Ok(after)
    }
}

/// The top of a stack after an edge to a state: what the state calls, where that is all it does.
fn entered(
    network: &Network,
    sets: &mut StackSets,
    state: u32,
    beneath: SetId,
) -> Result<Entry, Halt> {
    let Some(call) = network.passes_on(state) else { return Ok((state, beneath)) };
    let mut under = NONE;
    if network.stays(call.to) {
        under = sets.add(&[(call.to, beneath)])?;
    }
    if network.is_final(call.to) {
        under = sets.union(under, beneath)?;
    }
    Ok((call.start, under))
}
