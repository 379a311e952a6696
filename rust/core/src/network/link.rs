//! Linking: the network of a part and of all that it calls, each once.
//!
//! Design: docs/design/parts.md, "Parts".
//!
//! Nothing is worked out here that depends on one part alone: states get other numbers, byte classes
//! are split where another part tells bytes apart, and what can be read first is put together. So it
//! costs what copying the tables costs. [`moves`] finds the states of one linked network in another.

mod moves;

pub(crate) use moves::{Moved, Moves};

use super::counters::{Counters, Counting, most_passes};
use super::part::NetworkPart;
use super::rules::{check_edges, check_states};
use super::sets::{GuardedRule, SetStates};
use super::spelled::Speller;
use super::spelling::Spelled;
use super::{Call, HOLE, NONE, Network, NetworkTables};
use crate::automata::alphabet::Alphabet;
use crate::budget::Budget;
use crate::error::{Error, Position, Result};
use crate::limits::Limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

/// A part with its place in the network.
#[derive(Debug)]
pub(super) struct PlacedPart {
    pub(super) part: Arc<NetworkPart>,
    /// The numbers of its children among all parts.
    children: Vec<u32>,
    /// Its first state and rule, of those that charts read and of the others.
    states: [u32; 2],
    rules: [u32; 2],
    /// For each of its counters the number of the first state, here and in the network; then the same
    /// for each of its rules with guards.
    counters: Vec<(u32, u32)>,
}

impl PlacedPart {
    /// How many states and rules charts read.
    fn read(&self) -> (usize, usize) {
        let tables = &self.part.tables;
        let read = tables.read as usize;
        (read, tables.rule_starts.partition_point(|&start| (start as usize) < read))
    }

    /// The number in the network of a state of its own.
    fn moved(&self, state: u32) -> u32 {
        let tables = &self.part.tables;
        if state < tables.read {
            return self.states[0] + state;
        }
        if tables.is_listed(state) {
            return self.states[1] + (state - tables.read);
        }
        let place = self.counters.partition_point(|counter| counter.0 <= state) - 1;
        let (here, there) = self.counters[place];
        there + (state - here)
    }

    fn moved_rule(&self, rule: u32, read_rules: u32) -> u32 {
        if rule < read_rules { self.rules[0] + rule } else { self.rules[1] + (rule - read_rules) }
    }

    /// The number in its part of a state of the network that counts, where it is one of its own.
    pub(super) fn own_counter(&self, state: u32) -> Option<u32> {
        let counters = self.counters.partition_point(|c| c.0 < self.part.tables.counters.end());
        let counters = &self.counters[..counters];
        let place = counters.partition_point(|counter| counter.1 <= state).checked_sub(1)?;
        let (here, there) = counters[place];
        let end = counters.get(place + 1).map_or(self.part.tables.counters.end(), |c| c.0);
        let own = here + (state - there);
        (own < end).then_some(own)
    }

    /// The number in its part of a listed state of the network, where it is one of its own.
    pub(super) fn own(&self, state: u32) -> Option<u32> {
        let (read, _) = self.read();
        let unread = self.part.tables.len() - read;
        let within =
            |from: u32, count: usize| state.checked_sub(from).filter(|&s| (s as usize) < count);
        let behind = |state: u32| state + read as u32;
        within(self.states[0], read).or_else(|| within(self.states[1], unread).map(behind))
    }
}

/// A part and all that it is made of, each once, children first.
pub(super) fn unique(top: &Arc<NetworkPart>) -> (Vec<Arc<NetworkPart>>, Vec<Vec<u32>>) {
    /// Parts that say the same are one.
    #[derive(PartialEq, Eq, Hash)]
    enum Name {
        Content([u8; 32]),
        Place(*const NetworkPart),
    }
    let name = |part: &Arc<NetworkPart>| match part.key {
        Some(key) => Name::Content(key),
        None => Name::Place(Arc::as_ptr(part)),
    };
    let mut numbers: FxHashMap<Name, u32> = FxHashMap::default();
    let (mut parts, mut children): (Vec<Arc<NetworkPart>>, Vec<Vec<u32>>) =
        (Vec::new(), Vec::new());
    // Each with how many of its children are done.
    let mut work: Vec<(&Arc<NetworkPart>, usize)> = vec![(top, 0)];
    while let Some((part, done)) = work.pop() {
        let missing =
            part.children[done..].iter().position(|child| !numbers.contains_key(&name(child)));
        if let Some(place) = missing {
            work.push((part, done + place + 1));
            work.push((&part.children[done + place], 0));
            continue;
        }
        let own: Vec<u32> = part.children.iter().map(|child| numbers[&name(child)]).collect();
        if let Entry::Vacant(free) = numbers.entry(name(part)) {
            free.insert(parts.len() as u32);
            parts.push(part.clone());
            children.push(own);
        }
    }
    (parts, children)
}

impl NetworkPart {
    /// The network of a part that nobody calls, with all that it is made of.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] for more states or edges than there may be, and those of
    /// [`Budget::spend`].
    pub fn link(self: &Arc<Self>, limits: &Limits, work: &Budget) -> Result<Network> {
        link(self, limits, work)
    }
}

fn link(top: &Arc<NetworkPart>, limits: &Limits, work: &Budget) -> Result<Network> {
    let (parts, children) = unique(top);
    let states: usize = parts.iter().map(|part| part.tables.len()).sum();
    check_states(states, limits)?;
    let placed = place(parts, children);
    let alphabet = joint(&placed)?;
    let spelled = spelled(&placed, &alphabet, limits, work)?;
    let edges = spelled.iter().map(|part| part.edges.len()).sum();
    let calls = placed.iter().map(|one| one.part.tables.calls.len()).sum();
    let mut out = empty(top, states, edges, calls);
    let mut counters = Counters::after(states);
    let mut placed = place_counters(placed, &mut counters)?;
    let sets = place_sets(&mut placed, counters.end(), limits);
    for is_unread in [false, true] {
        for (place, spelled) in spelled.iter().enumerate() {
            copy(&mut out, &placed, place, spelled, is_unread);
        }
        if !is_unread {
            out.read = out.finals.len() as u32;
        }
    }
    out.alphabet = alphabet;
    out.counters = counters;
    out.sets = sets;
    let top = &placed[placed.len() - 1];
    out.start = top.moved(top.part.tables.start);
    out.linked = Some(placed.into());
    Ok(out)
}

/// Tables without states, with room for so many, their edges and calls.
fn empty(top: &Arc<NetworkPart>, states: usize, edges: usize, calls: usize) -> Network {
    let edge_starts = || {
        let mut starts = Vec::with_capacity(states + 1);
        starts.push(0);
        starts
    };
    let tables = NetworkTables {
        alphabet: top.tables.alphabet.clone(),
        start: 0,
        accepts_empty: top.tables.accepts_empty,
        rule_of: Vec::with_capacity(states),
        rule_starts: Vec::new(),
        origins: Vec::new(),
        written: Vec::new(),
        read: 0,
        for_charts: Vec::new(),
        finals: Vec::with_capacity(states),
        fallbacks: Vec::new(),
        edge_starts: edge_starts(),
        edges: Vec::with_capacity(edges),
        call_starts: edge_starts(),
        calls: Vec::with_capacity(calls),
        first: Vec::with_capacity(states),
        cut: Vec::with_capacity(states),
        delegated: Vec::with_capacity(states),
        counters: Counters::default(),
        linked: None,
        identities: OnceLock::new(),
        digest: OnceLock::new(),
        call_order: OnceLock::new(),
        member_orders: OnceLock::new(),
    };
    Network { tables: Arc::new(tables), sets: None }
}

/// Parts one after the other: first all that charts read, then the rest.
fn place(parts: Vec<Arc<NetworkPart>>, children: Vec<Vec<u32>>) -> Vec<PlacedPart> {
    let placed = parts.into_iter().zip(children).map(|(part, children)| PlacedPart {
        part,
        children,
        states: [0; 2],
        rules: [0; 2],
        counters: Vec::new(),
    });
    let mut placed: Vec<PlacedPart> = placed.collect();
    let (mut state, mut rule) = (0, 0);
    for half in 0..2 {
        for one in &mut placed {
            let (read, read_rules) = one.read();
            one.states[half] = state;
            one.rules[half] = rule;
            let tables = &one.part.tables;
            let unread = (tables.len() - read, tables.num_rules() - read_rules);
            let (states, rules) = if half == 0 { (read, read_rules) } else { unread };
            state += states as u32;
            rule += rules as u32;
        }
    }
    placed
}

/// The byte classes that all parts together tell apart.
fn joint(placed: &[PlacedPart]) -> Result<Alphabet> {
    let mut out = placed[placed.len() - 1].part.tables.alphabet.clone();
    let mut seen = FxHashSet::default();
    for one in placed {
        let alphabet = &one.part.tables.alphabet;
        if !seen.insert(alphabet) || out.refines(alphabet) {
            continue;
        }
        out = out.refined(alphabet).ok_or_else(|| Error::Unsupported {
            construct: "Token".into(),
            message: "the rules tell all 256 bytes apart and take tokens whole as well; \
                      write fewer single bytes"
                .into(),
            position: Position::default(),
        })?;
    }
    Ok(out)
}

/// All parts over the classes of the network, children first.
fn spelled(
    placed: &[PlacedPart],
    alphabet: &Alphabet,
    limits: &Limits,
    work: &Budget,
) -> Result<Vec<Arc<Spelled>>> {
    let mut speller = Speller::new(alphabet);
    let mut out: Vec<Arc<Spelled>> = Vec::with_capacity(placed.len());
    let mut edges = 0;
    for one in placed {
        let child = |child: usize| {
            let child = one.children[child] as usize;
            out[child].first[placed[child].part.tables.start as usize]
        };
        let spelled = speller.spelled(&one.part, child);
        edges += spelled.edges.len() + one.part.tables.calls.len();
        check_edges(edges, limits)?;
        // The same whether it was kept or not, so that limits do not depend on what was linked before.
        work.spend(one.part.tables.len())?;
        out.push(spelled);
    }
    Ok(out)
}

/// Numbers the states that count behind all others.
fn place_counters(mut placed: Vec<PlacedPart>, counters: &mut Counters) -> Result<Vec<PlacedPart>> {
    let all = placed.iter().flat_map(|one| one.part.tables.counters.placed());
    let all = all.map(|(counting, _)| (counting.counter, counting.machine.len()));
    let most = most_passes(all, counters.room());
    for place in 0..placed.len() {
        let tables = &placed[place].part.tables;
        let (_, read_rules) = placed[place].read();
        let mut moved = Vec::new();
        for (counting, start) in tables.counters.placed() {
            let machine = counting.machine.moved(|body| start_of(&placed, place, body));
            let there = Counting {
                machine: Arc::new(machine),
                listed: counting.listed.map(|first| placed[place].moved(first)),
                rule: placed[place].moved_rule(counting.rule, read_rules as u32),
                ..counting.clone()
            };
            let there = counters.place(there, most);
            let there = there.ok_or_else(super::assemble::too_many_counting_states)?;
            if tables.counters.is_narrow(start) {
                counters.set_narrow(there);
            }
            // Of the states of a rule those before any pass come last but for those that count.
            let before = 2 * counting.machine.len();
            moved.push((start - before, there - before));
        }
        placed[place].counters = moved;
    }
    Ok(placed)
}

/// Numbers the starts of rules with guards behind the states that count.
fn place_sets(placed: &mut [PlacedPart], end: u32, limits: &Limits) -> Option<Arc<SetStates>> {
    let mut next = end;
    for one in placed.iter_mut() {
        let first = one.part.tables.counters.end();
        let here =
            one.part.tables.sets.iter().flat_map(|sets| first..first + sets.rules().len() as u32);
        let moved: Vec<(u32, u32)> = here.zip(next..).collect();
        next += moved.len() as u32;
        one.counters.extend(moved);
    }
    let mut rules = FxHashMap::default();
    for (place, one) in placed.iter().enumerate() {
        let Some(sets) = &one.part.tables.sets else { continue };
        let (_, read_rules) = one.read();
        let mut own: Vec<_> = sets.rules().iter().collect();
        own.sort_unstable_by_key(|(rule, _)| **rule);
        for (&rule, guarded) in own {
            let guards = guarded.guards.iter();
            let guards =
                guards.map(|(&callee, guard)| (start_of(placed, place, callee), guard.clone()));
            let start = one.moved(guarded.start);
            let rule = one.moved_rule(rule, read_rules as u32);
            let guards = guards.collect();
            rules.insert(rule, GuardedRule { start, words: guarded.words, guards });
        }
    }
    let is_empty = rules.is_empty();
    (!is_empty).then(|| Arc::new(SetStates::new(end, Arc::new(rules), limits.max_set_bytes)))
}

/// Copies the states of a part that charts read, or the others.
fn copy(
    out: &mut NetworkTables,
    placed: &[PlacedPart],
    place: usize,
    spelled: &Spelled,
    is_unread: bool,
) {
    let this = &placed[place];
    let tables = &this.part.tables;
    let (read, read_rules) = this.read();
    let (states, rules) = match is_unread {
        false => (0..read, 0..read_rules),
        true => (read..tables.len(), read_rules..tables.num_rules()),
    };
    if states.is_empty() {
        return;
    }
    for rule in rules {
        out.rule_starts.push(this.moved(tables.rule_starts[rule]));
        out.origins.push(u32::MAX);
        out.written.push(this.moved_rule(tables.written[rule], read_rules as u32));
    }
    let rules = tables.rule_of[states.clone()].iter();
    out.rule_of.extend(rules.map(|&rule| this.moved_rule(rule, read_rules as u32)));
    out.finals.extend_from_slice(&tables.finals[states.clone()]);
    if !tables.fallbacks.is_empty() {
        out.fallbacks.resize(out.finals.len() - states.len(), NONE);
        let moved = |state| tables.fallback(state as u32).map_or(NONE, |other| this.moved(other));
        out.fallbacks.extend(states.clone().map(moved));
    }
    out.cut.extend_from_slice(&tables.cut[states.clone()]);
    out.delegated.extend_from_slice(tables.delegated.get(states.clone()).unwrap_or_default());
    out.delegated.resize(out.finals.len(), 0);
    out.first.extend_from_slice(&spelled.first[states.clone()]);
    // The starts of a part are as far from those of the network for all of its states here.
    let starts = |starts: &[u32], out: &mut Vec<u32>, there: usize| {
        let (from, to) = (starts[states.start], starts[states.end]);
        let ends = &starts[states.start + 1..=states.end];
        out.extend(ends.iter().map(|&end| there as u32 + (end - from)));
        from as usize..to as usize
    };
    let edges = starts(&spelled.edge_starts, &mut out.edge_starts, out.edges.len());
    let calls = starts(&tables.call_starts, &mut out.call_starts, out.calls.len());
    let edges = &spelled.edges[edges];
    if tables.read as usize == tables.len() {
        // No edge leads to a state that counts.
        out.edges.extend(edges.iter().map(|&(class, to)| (class, this.states[0] + to)));
    } else {
        out.edges.extend(edges.iter().map(|&(class, to)| (class, this.moved(to))));
    }
    for call in &tables.calls[calls] {
        let start = start_of(placed, place, call.start);
        out.calls.push(Call { start, to: this.moved(call.to) });
    }
}

/// Where a call of a part leads.
fn start_of(placed: &[PlacedPart], place: usize, start: u32) -> u32 {
    let this = &placed[place];
    if start < HOLE {
        return this.moved(start);
    }
    let child = &placed[this.children[(start & !HOLE) as usize] as usize];
    child.moved(child.part.tables.start)
}
