//! What of a network does not depend on the text: who calls whom.

use crate::network::{Call, Network};
use std::ops::Deref;

/// A word of a bit set, by its place.
pub(super) type SparseWord = (u32, u64);

/// Who calls each rule, as bit sets.
pub(crate) struct Tables<N> {
    pub(crate) network: N,
    /// For each rule the words of the set of states that call it.
    callers: Vec<Vec<SparseWord>>,
    /// For each rule the words of the set of rules whose start calls it.
    start_callers: Vec<Vec<SparseWord>>,
    /// For each state the words of the set of rules that it can begin, by calls of calls too.
    begun: Vec<Vec<SparseWord>>,
    /// For each rule its start, of what counts too.
    pub(super) starts: Vec<u32>,
    /// For each byte class the rules whose start reads it, and where that leads.
    readers: Vec<Vec<(u32, u32)>>,
    /// For each rule the calls by each state that calls it, in the order of the states.
    calls: Vec<Vec<(u32, u32)>>,
}

impl<N: Deref<Target = Network>> Tables<N> {
    pub(crate) fn new(network: N) -> Self {
        let rules = network.num_rules();
        let mut starts = network.rule_starts().to_vec();
        let states = 0..network.len() as u32;
        // A rule that counts begins elsewhere than its tables.
        for state in states.clone() {
            for call in network.calls(state).iter() {
                starts[network.rule_of(call.start) as usize] = call.start;
            }
        }
        let mut callers = vec![Vec::new(); rules];
        let mut start_callers = vec![Vec::new(); rules];
        let mut calls = vec![Vec::new(); rules];
        let mut begun: Vec<Vec<SparseWord>> = Vec::new();
        for state in states {
            let mut direct = Vec::new();
            for call in network.calls(state).iter() {
                let rule = network.rule_of(call.start);
                calls[rule as usize].push((state, call.to));
                insert(&mut callers[rule as usize], state);
                direct.push(rule);
            }
            begun.push(all_begun(&network, &starts, direct));
        }
        for (rule, &start) in starts.iter().enumerate() {
            for call in network.calls(start).iter() {
                insert(&mut start_callers[network.rule_of(call.start) as usize], rule as u32);
            }
        }
        let mut readers = vec![Vec::new(); network.alphabet().len()];
        for (rule, &start) in starts.iter().enumerate() {
            for &(class, to) in network.edges(start) {
                readers[class as usize].push((rule as u32, to));
            }
        }
        calls.iter_mut().for_each(|calls| calls.sort_unstable());
        Self { network, callers, start_callers, begun, starts, readers, calls }
    }

    /// The states that call a rule, as words of a bit set over states.
    pub(super) fn callers(&self, rule: u32) -> &[SparseWord] {
        &self.callers[rule as usize]
    }

    /// The rules whose start calls a rule, as words of a bit set over rules.
    pub(super) fn start_callers(&self, rule: u32) -> &[SparseWord] {
        &self.start_callers[rule as usize]
    }

    /// Adds the rules that a state can begin to a bit set.
    pub(super) fn begin(&self, state: u32, begun: &mut [u64]) {
        match self.begun.get(state as usize) {
            Some(words) => words.iter().for_each(|&(at, word)| begun[at as usize] |= word),
            None => {
                for call in self.network.calls(state).iter() {
                    let rule = self.network.rule_of(call.start);
                    begun[rule as usize >> 6] |= 1 << (rule & 63);
                    if (call.start as usize) < self.begun.len() {
                        self.begin(call.start, begun);
                    } else {
                        // A pass that begins with a counted repetition again: deeper by one.
                        self.begin_counted(call.start, begun);
                    }
                }
            }
        }
    }

    fn begin_counted(&self, start: u32, begun: &mut [u64]) {
        let mut work = vec![start];
        while let Some(state) = work.pop() {
            for call in self.network.calls(state).iter() {
                let rule = self.network.rule_of(call.start);
                let is_new = begun[rule as usize >> 6] >> (rule & 63) & 1 == 0;
                begun[rule as usize >> 6] |= 1 << (rule & 63);
                if is_new {
                    work.push(call.start);
                }
            }
        }
    }

    /// The rules whose start reads a class, and where that leads.
    pub(super) fn readers(&self, class: u8) -> &[(u32, u32)] {
        &self.readers[class as usize]
    }

    /// Where the calls of a rule by a state of the tables return to.
    pub(super) fn returns(&self, state: u32, rule: u32) -> impl Iterator<Item = u32> {
        let calls = &self.calls[rule as usize];
        let from = calls.partition_point(|call| call.0 < state);
        calls[from..].iter().take_while(move |call| call.0 == state).map(|call| call.1)
    }

    /// Where the calls of a rule by the start of another return to.
    pub(super) fn start_returns(&self, caller: u32, rule: u32) -> impl Iterator<Item = u32> {
        let start = self.starts[caller as usize];
        let calls = self.network.calls(start);
        let of_rule = |call: &Call| self.network.rule_of(call.start) == rule;
        let found: Vec<u32> = calls.iter().filter(|call| of_rule(call)).map(|c| c.to).collect();
        found.into_iter()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let words = |sets: &[Vec<SparseWord>]| {
            sets.iter().map(|words| words.capacity() * size_of::<SparseWord>() + 24).sum::<usize>()
        };
        words(&self.callers)
            + words(&self.start_callers)
            + words(&self.begun)
            + self.calls.iter().map(|calls| calls.capacity() * 8 + 24).sum::<usize>()
    }
}

/// The rules that are begun with these, as words.
fn all_begun(network: &Network, starts: &[u32], direct: Vec<u32>) -> Vec<SparseWord> {
    let mut words = Vec::new();
    let mut work = direct;
    while let Some(rule) = work.pop() {
        if insert(&mut words, rule) {
            let calls = network.calls(starts[rule as usize]);
            work.extend(calls.iter().map(|call| network.rule_of(call.start)));
        }
    }
    words
}

/// Sets a bit; whether it was not set.
fn insert(words: &mut Vec<SparseWord>, bit: u32) -> bool {
    let (at, mask) = (bit >> 6, 1 << (bit & 63));
    match words.binary_search_by_key(&at, |word| word.0) {
        Ok(found) => {
            let is_new = words[found].1 & mask == 0;
            words[found].1 |= mask;
            is_new
        }
        Err(place) => {
            words.insert(place, (at, mask));
            true
        }
    }
}
