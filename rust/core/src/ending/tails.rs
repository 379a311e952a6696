//! Tail calls: calls behind which nothing is left to do. To leave the called rule is to leave the rule that calls it.

use crate::budget::{Halt, Meter};
use crate::network::{Call, ClassSet, Network, insert};
use rustc_hash::FxHashMap;

/// Classes, and the state to which all of them lead.
pub(super) type ClassEdges = Box<[(ClassSet, u32)]>;

/// The tail calls of a network that need no rows of their own.
#[derive(Debug, Default)]
pub(super) struct TailCalls {
    /// For each state that does nothing but make a tail call the start of the rule, for others themselves.
    to: Vec<u32>,
    /// For each rule whether it makes tail calls and no others, and so do the rules that it calls, as far as they
    /// make any: all of them together are one automaton.
    is_linear: Vec<bool>,
}

/// Where letters lead from states, remembered.
#[derive(Default)]
pub(super) struct KnownSteps {
    of: FxHashMap<u32, ClassEdges>,
    /// Bytes held.
    pub(super) bytes: usize,
}

impl KnownSteps {
    /// Those of a state.
    pub(super) fn of(&mut self, network: &Network, tails: &TailCalls, state: u32) -> &ClassEdges {
        let Self { of, bytes } = self;
        of.entry(state).or_insert_with(|| {
            let steps = tails.steps(network, state);
            *bytes += 32 + size_of_val(&*steps);
            steps
        })
    }
}

impl TailCalls {
    /// Those of a network.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn of_network(network: &Network, meter: &mut Meter) -> Result<Self, Halt> {
        Ok(Self { to: only_calls(network, meter)?, is_linear: linear(network, meter)? })
    }

    /// The state itself, or the start of the rule that it goes over to.
    #[inline]
    pub(super) fn of(&self, state: u32) -> u32 {
        self.to.get(state as usize).copied().unwrap_or(state)
    }

    /// Whether a call goes on in the same automaton. A rule without calls, as many rules have for strings, is better
    /// looked at once.
    pub(super) fn goes_on(&self, network: &Network, call: &Call) -> bool {
        is_tail(network, call) && self.is_linear[network.rule_of(call.start) as usize]
    }

    /// A state, with the starts of rules of the same automaton that it calls without having read a letter.
    pub(super) fn starts(&self, network: &Network, state: u32) -> Vec<u32> {
        let mut starts = vec![state];
        let mut done = 0;
        while done < starts.len() {
            for call in network.calls_to_end(starts[done]).iter() {
                if self.goes_on(network, call) && !starts.contains(&call.start) {
                    starts.push(call.start);
                }
            }
            done += 1;
        }
        starts
    }

    /// The calls of the rules that a state goes over to, as far as these do not go on in the same automaton.
    pub(super) fn calls_behind(&self, network: &Network, state: u32) -> Vec<Call> {
        let starts = self.starts(network, state);
        let calls = starts[1..].iter().flat_map(|&start| network.calls_to_end(start).to_vec());
        let mut calls: Vec<Call> = calls.filter(|call| !self.goes_on(network, call)).collect();
        calls.sort_unstable_by_key(|call| (call.start, call.to));
        calls.dedup_by_key(|call| (call.start, call.to));
        calls
    }

    /// Where letters lead from a state, by way of tail calls too.
    fn steps(&self, network: &Network, state: u32) -> ClassEdges {
        let calls = network.calls_to_end(state);
        let mut edges: Vec<(u32, u8)> =
            network.edges(state).map(|(class, to)| (to, class)).collect();
        if calls.iter().any(|call| self.goes_on(network, call)) {
            let starts = self.starts(network, state).into_iter().skip(1);
            edges.extend(
                starts.flat_map(|start| network.edges(start)).map(|(class, to)| (to, class)),
            );
        }
        edges.sort_unstable();
        let by_target = edges.chunk_by(|a, b| a.0 == b.0);
        let step = |edges: &[(u32, u8)]| {
            let mut classes: ClassSet = [0; 4];
            edges.iter().for_each(|&(_, class)| insert(&mut classes, class));
            (classes, edges[0].0)
        };
        by_target.map(step).collect()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.to.capacity() * size_of::<u32>() + self.is_linear.capacity()
    }
}

/// Whether a state is neither one that counts nor one that is a set.
fn is_plain(network: &Network, state: u32) -> bool {
    !network.is_counting(state) && network.unguarded(state) == state
}

fn is_tail(network: &Network, call: &Call) -> bool {
    network.is_final(call.to) && !network.stays(call.to) && is_plain(network, call.start)
}

/// The start of the rule that a state calls at its end, where it does nothing else.
fn only_call(network: &Network, state: u32) -> Option<u32> {
    let [call] = *network.calls(state) else { return None };
    let does_more = network.is_final(state) || network.edges(state).next().is_some();
    (!does_more && is_plain(network, state) && is_tail(network, &call)).then_some(call.start)
}

fn only_calls(network: &Network, meter: &mut Meter) -> Result<Vec<u32>, Halt> {
    let count = network.len() as u32;
    meter.spend(u64::from(count) / 4)?;
    let mut to: Vec<u32> =
        (0..count).map(|state| only_call(network, state).unwrap_or(state)).collect();
    // By state the last from which a way led through it.
    let mut met = vec![u32::MAX; to.len()];
    let mut way = Vec::new();
    for state in 0..count {
        // The way to the last, and then each on it straight there. A way of rules that only call each other ends
        // where it began to go round.
        let mut last = state;
        while std::mem::replace(&mut met[last as usize], state) != state {
            way.push(last);
            last = to[last as usize];
        }
        way.drain(..).for_each(|on_way| to[on_way as usize] = last);
    }
    Ok(to)
}

fn linear(network: &Network, meter: &mut Meter) -> Result<Vec<bool>, Halt> {
    let mut is_linear = vec![true; network.num_rules()];
    let mut callers: Vec<Vec<u32>> = vec![Vec::new(); network.num_rules()];
    let mut has_calls = vec![false; network.num_rules()];
    for state in 0..network.len() as u32 {
        let rule = network.rule_of(state);
        let calls = network.calls(state);
        meter.spend(1 + calls.len() as u64 / 8)?;
        is_linear[rule as usize] &= is_plain(network, state);
        has_calls[rule as usize] |= !calls.is_empty();
        for call in calls.iter() {
            is_linear[rule as usize] &= is_tail(network, call);
            let callers = &mut callers[network.rule_of(call.start) as usize];
            if callers.last() != Some(&rule) {
                callers.push(rule);
            }
        }
    }
    let mut others: Vec<usize> = (0..is_linear.len()).filter(|&rule| !is_linear[rule]).collect();
    while let Some(rule) = others.pop() {
        for &caller in &callers[rule] {
            if std::mem::replace(&mut is_linear[caller as usize], false) {
                others.push(caller as usize);
            }
        }
    }
    Ok(is_linear.into_iter().zip(has_calls).map(|(is_linear, calls)| is_linear && calls).collect())
}
