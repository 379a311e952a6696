//! Sets of stacks over a network, and what a byte does to them.
//!
//! Both the displacement automaton (stacks above an unknown rest) and the recognizer (whole
//! stacks) walk the network this way.

mod sets;

pub(crate) use sets::{Entry, NONE, OverBudget, REST, SetId, StackSets, hash_of};

use crate::network::{BOTTOM, Network, contains};

const UNKNOWN: SetId = SetId::MAX;

/// Stack sets with their transitions, made when first needed.
pub(crate) struct Stepper<'a> {
    network: &'a Network,
    pub(crate) sets: StackSets,
    num_classes: usize,
    /// `steps[set * num_classes + class]`.
    steps: Vec<SetId>,
    scratch: Vec<Entry>,
    calls: Vec<Entry>,
}

impl<'a> Stepper<'a> {
    pub(crate) fn new(network: &'a Network) -> Self {
        Self {
            network,
            sets: StackSets::new(),
            num_classes: network.alphabet().len(),
            steps: Vec::new(),
            scratch: Vec::new(),
            calls: Vec::new(),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.sets.bytes() + self.steps.capacity() * 4
    }

    /// The stacks after one byte, completed rules popped: the top of each has an edge.
    pub(crate) fn step(&mut self, set: SetId, class: u8) -> Result<SetId, OverBudget> {
        let slot = set as usize * self.num_classes + class as usize;
        if let Some(&known) = self.steps.get(slot)
            && known != UNKNOWN
        {
            return Ok(known);
        }
        let network = self.network;
        let mut entries = std::mem::take(&mut self.scratch);
        let mut calls = std::mem::take(&mut self.calls);
        entries.clear();
        calls.clear();
        let mut uncovered: Vec<SetId> = Vec::new();
        calls.extend(
            self.sets.entries(set).iter().filter(|e| {
                e.0 != BOTTOM && contains(network.first(e.0), class)
            }),
        );
        while let Some((state, beneath)) = calls.pop() {
            self.sets.work += 1;
            if self.sets.work > self.sets.allowance {
                return Err(OverBudget);
            }
            let edges = network.edges(state);
            let from = edges.partition_point(|e| e.0 < class);
            for &(_, target) in edges[from..].iter().take_while(|e| e.0 == class) {
                if network.has_edges(target) {
                    entries.push((target, beneath));
                }
                if network.is_final(target) {
                    uncovered.push(beneath);
                }
            }
            for call in network.calls(state) {
                if contains(network.first(call.start), class) {
                    let mut under = NONE;
                    if network.has_edges(call.to) {
                        under = self.sets.add(&[(call.to, beneath)])?;
                    }
                    if network.is_final(call.to) {
                        under = self.sets.union(under, beneath)?;
                    }
                    calls.push((call.start, under));
                }
            }
        }
        uncovered.sort_unstable();
        uncovered.dedup();
        let result = self.sets.collect(&mut entries, &uncovered)?;
        self.scratch = entries;
        self.calls = calls;
        if self.steps.len() <= slot {
            self.steps.resize((set as usize + 1) * self.num_classes, UNKNOWN);
        }
        self.steps[slot] = result;
        Ok(result)
    }
}
