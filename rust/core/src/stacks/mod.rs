//! Sets of stacks over a network, and what a byte does to them.
//!
//! Both the displacement automaton (stacks above an unknown rest) and the recognizer (whole
//! stacks) walk the network this way.

mod sets;
mod sweep;

pub(crate) use sets::{Entry, LABEL, NONE, OverBudget, REST, SetId, StackSets, sort_pairs};

use crate::network::{Network, contains};
use rustc_hash::FxHashMap;
use std::ops::Deref;

/// Stack sets with their transitions, made when first needed.
///
/// `N` is a reference to a network, or a share in one.
pub(crate) struct Stepper<N> {
    network: N,
    pub(crate) sets: StackSets,
    /// The set after a byte, by set and byte class. Most sets are asked for few classes, so a
    /// table of all would be mostly empty: 26 MB instead of 4 for Bython.
    steps: FxHashMap<(SetId, u8), SetId>,
    pending: Vec<SetId>,
    parts: Vec<SetId>,
    entries: Vec<Entry>,
    sweep: sweep::Sweep,
    /// Rules completed so far, in steps that were made.
    pub(crate) completions: u64,
}

impl<N: Deref<Target = Network>> Stepper<N> {
    pub(crate) fn new(network: N) -> Self {
        Self {
            network,
            sets: StackSets::new(),
            steps: FxHashMap::default(),
            pending: Vec::new(),
            parts: Vec::new(),
            entries: Vec::new(),
            sweep: sweep::Sweep::default(),
            completions: 0,
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.sets.bytes() + self.steps.capacity() * 13
    }

    /// The stacks after one byte, completed rules popped: the top of each has an edge.
    #[inline]
    pub(crate) fn step(&mut self, set: SetId, class: u8) -> Result<SetId, OverBudget> {
        match self.known(set, class) {
            Some(known) => Ok(known),
            None => self.make(set, class),
        }
    }

    /// The stacks after one byte from a frame above the unknown rest that leaves its delegated
    /// calls out.
    pub(crate) fn own_step(&mut self, state: u32, class: u8) -> Result<SetId, OverBudget> {
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
        self.sets.collect(&mut entries, &parts)
    }

    /// The answer where it is cheap or remembered.
    #[inline]
    fn known(&self, set: SetId, class: u8) -> Option<SetId> {
        if let [(top, _)] = *self.sets.list(set)
            && (top >= LABEL || !contains(self.network.first(top), class))
        {
            return Some(NONE);
        }
        self.steps.get(&(set, class)).copied()
    }

    /// Works off what an answer depends on, deepest first, on a stack of its own: a chain of
    /// rules that each begin with the next may be as long as the grammar.
    fn make(&mut self, set: SetId, class: u8) -> Result<SetId, OverBudget> {
        let base = self.pending.len();
        self.pending.push(set);
        let result = self.work_off(base, class);
        self.pending.truncate(base);
        result?;
        Ok(self.known(set, class).unwrap_or(NONE))
    }

    fn work_off(&mut self, base: usize, class: u8) -> Result<(), OverBudget> {
        while self.pending.len() > base {
            let set = self.pending[self.pending.len() - 1];
            if self.known(set, class).is_some() {
                self.pending.pop();
                continue;
            }
            let before = self.pending.len();
            let answer = match self.sets.halves(set) {
                Some((left, right)) => self.united(left, right, class)?,
                None => self.of_list(set, class)?,
            };
            if let Some(answer) = answer {
                debug_assert_eq!(self.pending.len(), before);
                self.pending.pop();
                self.steps.insert((set, class), answer);
            }
        }
        Ok(())
    }

    /// The union of what a byte makes of two sets, or `None` and what is missing made pending.
    fn united(
        &mut self,
        left: SetId,
        right: SetId,
        class: u8,
    ) -> Result<Option<SetId>, OverBudget> {
        match (self.known(left, class), self.known(right, class)) {
            (Some(left), Some(right)) => self.sets.union(left, right).map(Some),
            (l, r) => {
                self.pending
                    .extend([(left, l), (right, r)].iter().filter(|m| m.1.is_none()).map(|m| m.0));
                Ok(None)
            }
        }
    }

    /// What a byte makes of a list of stacks, or `None` and what is missing made pending.
    fn of_list(&mut self, set: SetId, class: u8) -> Result<Option<SetId>, OverBudget> {
        let network: &Network = &self.network;
        let mut parts = std::mem::take(&mut self.parts);
        let mut entries = std::mem::take(&mut self.entries);
        parts.clear();
        entries.clear();
        let mut missing = false;
        let mut index = 0;
        while let Some(&(state, beneath)) = self.sets.list(set).get(index) {
            index += 1;
            if state >= LABEL || !contains(network.first(state), class) {
                continue;
            }
            for target in network.targets(state, class) {
                if network.stays(target) {
                    entries.push(entered(network, &mut self.sets, target, beneath)?);
                }
                if network.is_final(target) {
                    self.completions += 1;
                    parts.push(beneath);
                }
            }
            for call in network.calls(state).iter() {
                if !contains(network.first(call.start), class) {
                    continue;
                }
                let mut under = NONE;
                if network.stays(call.to) {
                    under = self.sets.add(&[(call.to, beneath)])?;
                }
                if network.is_final(call.to) {
                    under = self.sets.union(under, beneath)?;
                }
                // A set of its own, so that callers with the same rest share the answer.
                let called = self.sets.add(&[(call.start, under)])?;
                match self.known(called, class) {
                    Some(answer) => parts.push(answer),
                    None => {
                        missing = true;
                        self.pending.push(called);
                    }
                }
            }
        }
        let answer = if missing {
            None
        } else {
            parts.sort_unstable();
            parts.dedup();
            Some(self.sets.collect(&mut entries, &parts)?)
        };
        self.parts = parts;
        self.entries = entries;
        Ok(answer)
    }
}

/// The top of a stack after an edge to a state: what the state calls, where that is all it does.
fn entered(
    network: &Network,
    sets: &mut StackSets,
    state: u32,
    beneath: SetId,
) -> Result<Entry, OverBudget> {
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
