//! The tables of states of some rules.

use super::counters::{Counters, Counting, Machine, most_passes};
use super::rules::{RuleSet, check_edges, check_states};
use super::sets::{GuardedRule, MemberGuard, SetStates};
use super::written::Order;
use super::{
    Call, ClassSet, HOLE, MAX_DELEGATED, NARROW, NONE, Network, Tables, Width, contains, insert,
};
use crate::automata::lengths::Lengths;
use crate::automata::{Automaton, FIRST_CALL, callee, is_marker};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::Guard;
use crate::graph::{self, Components};
use crate::limits::Limits;
use rustc_hash::FxHashMap;
use std::cell::RefCell;
use std::sync::{Arc, OnceLock};

impl Network {
    /// The tables of rules. A call of a rule that is outside has its number there in place of a
    /// state; see [`HOLE`]. What can be read first is not told yet.
    pub(super) fn assemble(
        set: &RuleSet,
        outside: &FxHashMap<usize, u32>,
        limits: &Limits,
        work: &Budget,
    ) -> Result<Self> {
        let RuleSet {
            automata: rules,
            written,
            start,
            alphabet,
            accepts_empty,
            counted,
            with_lengths,
            ..
        } = set;
        let (start, accepts_empty) = (*start, *accepts_empty);
        let order = Order::new(rules, start, written);
        let ticks = Ticks::new(work);
        work.tick()?;
        let mut base = vec![u32::MAX; rules.len()];
        let (mut total, mut read) = (0, 0);
        for (place, &number) in order.rules.iter().enumerate() {
            ticks.step()?;
            base[number] = total as u32;
            total += rules[number].len();
            read = if place < order.read { total } else { read };
        }
        check_states(total, limits)?;
        let edges = rules.iter().try_fold(0, |edges, automaton| {
            ticks.step()?;
            Ok(edges + automaton.num_edges())
        });
        check_edges(edges?, limits)?;
        work.tick()?;
        let mut counters = Counters::after(total);
        let map = merge_classes(rules, alphabet.len(), work)?;
        let mut out = Tables {
            alphabet: alphabet.merged(&map),
            start: base[start],
            accepts_empty,
            rule_of: Vec::with_capacity(total),
            rule_starts: Vec::new(),
            origins: Vec::new(),
            written: Vec::new(),
            read: read as u32,
            for_charts: Vec::new(),
            finals: Vec::with_capacity(total),
            fallbacks: Vec::new(),
            edge_starts: vec![0],
            edges: Vec::new(),
            call_starts: vec![0],
            calls: Vec::new(),
            first: Vec::new(),
            cut: Vec::new(),
            delegated: Vec::new(),
            counters: Counters::default(),
            linked: None,
            identities: OnceLock::new(),
            digest: OnceLock::new(),
            call_order: OnceLock::new(),
        };
        let present = || order.rules.iter().map(|&number| (number, &rules[number]));
        // Where calls of each rule lead: those of a rule that counts, to its own states.
        outside.iter().for_each(|(&number, &place)| base[number] = HOLE | place);
        let mut starts = base.clone();
        place_counters(set, &order, &base, &mut starts, &mut counters, work)?;
        let sets = place_sets(set, &order, &base, &mut starts, counters.end(), limits);
        let mut origin: Vec<usize> = (0..rules.len()).collect();
        written.iter().for_each(|(&rule, &form)| origin[form] = rule);
        let mut numbers = vec![u32::MAX; rules.len()];
        for ((number, _), rule) in present().zip(0..) {
            ticks.step()?;
            numbers[number] = rule;
        }
        // Tables that grow are copied as a whole, which nobody can end.
        let (mut edges, mut calls) = (0, 0);
        for (_, automaton) in present() {
            ticks.step()?;
            for (_, from_here) in automaton.states() {
                ticks.steps(1 + from_here.len())?;
                calls += from_here.iter().filter(|edge| callee(edge.0).is_some()).count();
            }
            edges += automaton.num_edges();
        }
        out.edges.reserve_exact(edges - calls);
        out.calls.reserve_exact(calls);
        for starts in [&mut out.edge_starts, &mut out.call_starts] {
            starts.reserve_exact(total);
        }
        out.cut.reserve_exact(total);
        for (number, automaton) in present() {
            let offset = base[number];
            out.origins.push(origin[number] as u32);
            out.written.push(numbers[*written.get(&number).unwrap_or(&number)]);
            let rule = out.rule_starts.len() as u32;
            // The second state of a rule that counts stands for all after it: nothing leads there.
            let is_repetition = counted.contains_key(&number) && !with_lengths.contains(&number);
            let first_pass = is_repetition.then(|| starts[number] + 1);
            out.rule_starts.push(offset);
            for (state, edges) in automaton.states() {
                let from = out.edges.len();
                let mut alone = false;
                for &(letter, q) in edges {
                    ticks.step()?;
                    match callee(letter) {
                        None if is_marker(letter) => alone = true,
                        Some(b) => {
                            let to = first_pass.unwrap_or(q + offset);
                            out.calls.push(Call { start: starts[b], to });
                        }
                        None => out.edges.push((map[letter as usize], q + offset)),
                    }
                }
                out.edges[from..].sort_unstable();
                dedup_from(&mut out.edges, from);
                out.cut.push(alone);
                out.rule_of.push(rule);
                out.finals.push(automaton.is_final(state));
                out.edge_starts.push(out.edges.len() as u32);
                out.call_starts.push(out.calls.len() as u32);
                if automaton.falls_back(state) {
                    out.fall_back(automaton.fallback() + offset);
                }
            }
        }
        out.counters = counters;
        Ok(Self { tables: Arc::new(out), sets })
    }

    /// Puts the calls that are delegated before the others; returns which rules are wide.
    ///
    /// `first` says how many bytes can come first in a rule, by where it starts; `is_wide` which
    /// parts are wide.
    ///
    /// # Errors
    /// Those of [`Ticks::step`].
    pub(super) fn delegate(
        &mut self,
        width: &Width,
        first: impl Fn(&Self, u32) -> u32,
        is_wide: impl Fn(u32) -> bool,
        ticks: &Ticks,
    ) -> Result<Vec<bool>> {
        for counter in self.narrow_counters(&first) {
            self.counters.set_narrow(counter);
        }
        let states = 0..self.len() as u32;
        let mut wide = vec![false; self.num_rules()];
        // What is counted need not loop: it is the counting that does.
        let known: RefCell<FxHashMap<u32, bool>> = RefCell::default();
        let counts = |call: &Call| {
            *known.borrow_mut().entry(call.start).or_insert_with(|| {
                let bodies = if call.start < HOLE { self.bodies(call.start) } else { Vec::new() };
                bodies.into_iter().any(|body| first(self, body) >= width.least)
            })
        };
        for q in states {
            ticks.steps(1 + self.listed(q).len() + self.calls(q).len())?;
            let loops = !self.is_final(q) && self.loops(q, width);
            let counts = self.calls(q).iter().any(|call| !self.is_final(call.to) && counts(call));
            wide[self.rule_of(q) as usize] |= loops || counts;
        }
        let is_shared = |call: &Call| {
            self.is_listed(call.to)
                && match call.start {
                    start if start >= HOLE => is_wide(start & !HOLE),
                    start if self.is_listed(start) => wide[self.rule_of(start) as usize],
                    _ => counts(call),
                }
        };
        let is_narrow = |call: &Call| {
            let counts = call.start < HOLE && self.counts_narrowly(call.start);
            counts && self.is_listed(call.to) && !is_shared(call)
        };
        let mut calls = Vec::with_capacity(self.calls.len());
        let mut delegated = Vec::with_capacity(self.len());
        for q in 0..self.len() {
            let own = self.call_starts[q] as usize..self.call_starts[q + 1] as usize;
            let own = &self.calls[own];
            ticks.steps(1 + own.len())?;
            let from = calls.len();
            calls.extend(own.iter().filter(|call| is_shared(call)));
            calls.extend(own.iter().filter(|call| is_narrow(call)));
            let mut shared = calls.len() - from;
            calls.extend(own.iter().filter(|call| !is_shared(call) && !is_narrow(call)));
            if shared > MAX_DELEGATED {
                shared = own.iter().filter(|call| is_shared(call)).count();
            }
            delegated.push(if shared <= MAX_DELEGATED { shared as u8 } else { 0 });
        }
        self.calls = calls;
        self.delegated = delegated;
        Ok(wide)
    }

    /// The counters each of whose passes is one byte of a few, by the numbers of their first states.
    fn narrow_counters(&self, first: impl Fn(&Self, u32) -> u32) -> Vec<u32> {
        let is_narrow = |body: u32| {
            let ends = |&(_, to): &(u8, u32)| self.is_final(to) && !self.stays(to);
            body < HOLE
                && self.is_listed(body)
                && self.calls(body).is_empty()
                && self.edges(body).all(|edge| ends(&edge))
                && first(self, body) <= NARROW
        };
        let placed = self.counters.placed().filter(|placed| placed.0.listed.is_none());
        let placed = placed.map(|placed| placed.1);
        placed.filter(|&start| is_narrow(self.counters.listed(start))).collect()
    }

    /// Whether many bytes lead from a state back to it.
    fn loops(&self, state: u32, width: &Width) -> bool {
        let leads_here = |edges: &[(u8, u32)]| edges.iter().any(|edge| edge.1 == state);
        let back = |edge: &(u8, u32)| edge.1 == state;
        match self.fallback(state) {
            Some(other) if leads_here(self.listed(other)) => {
                width.is_wide(self.edges(state).filter(back).map(|edge| u32::from(edge.0)))
            }
            _ => width
                .is_wide(self.listed(state).iter().copied().filter(back).map(|e| u32::from(e.0))),
        }
    }

    /// How many bytes a state can read first, calls included.
    pub(super) fn first_width(&self, width: &Width, state: u32) -> u32 {
        let first = self.first(state);
        let classes = (0..width.of.len()).filter(|&class| contains(first, class as u8));
        classes.map(|class| width.of[class]).sum()
    }

    /// What each state can read first, calls included: callees first. Rules that call each other before
    /// they have read anything, which is where there are no loops, read first what any of them does.
    ///
    /// # Errors
    /// Those of the interrupt.
    pub(super) fn first_sets(&self, work: &Budget) -> Result<Vec<ClassSet>> {
        let ticks = Ticks::new(work);
        let mut first: Vec<ClassSet> = Vec::with_capacity(self.len());
        for q in 0..self.len() {
            let mut set = [0; 4];
            let edges = self.listed(q as u32);
            ticks.steps(1 + edges.len())?;
            edges.iter().for_each(|edge| insert(&mut set, edge.0));
            first.push(set);
        }
        self.add_fallbacks(&mut first);
        for component in self.components_first(&ticks)?.iter() {
            ticks.steps(component.len())?;
            let start = |&rule: &usize| self.rule_starts[rule];
            component.iter().for_each(|rule| self.add_callees(&mut first, start(rule)));
            if component.len() > 1 {
                let mut all = [0; 4];
                for rule in component {
                    let set = first[start(rule) as usize];
                    all.iter_mut().zip(set).for_each(|(a, b)| *a |= b);
                }
                component.iter().for_each(|rule| first[start(rule) as usize] = all);
            }
        }
        for q in 0..self.len() as u32 {
            ticks.steps(1 + self.calls(q).len())?;
            self.add_callees(&mut first, q);
        }
        Ok(first)
    }

    /// Adds to the bytes that states list those that they read by falling back.
    pub(super) fn add_fallbacks(&self, first: &mut [ClassSet]) {
        for (state, &other) in
            self.fallbacks.iter().enumerate().filter(|(_, other)| **other != NONE)
        {
            let others = first[other as usize];
            first[state].iter_mut().zip(others).for_each(|(a, b)| *a |= b);
        }
    }

    /// Adds to what a state can read first what the rules can that it calls.
    pub(super) fn add_callees(&self, first: &mut [ClassSet], q: u32) {
        for call in self.calls(q).iter() {
            let set = first[self.begun(call.start) as usize];
            first[q as usize].iter_mut().zip(set).for_each(|(a, b)| *a |= b);
        }
    }

    /// The rules, each after those that it calls before it has read anything.
    ///
    /// # Errors
    /// Those of [`Ticks::step`], as for the functions below.
    pub(super) fn callees_first(&self, ticks: &Ticks) -> Result<Vec<u32>> {
        Ok(self.components_first(ticks)?.nodes().iter().map(|&rule| rule as u32).collect())
    }

    /// Takes note of the rules that only charts can read: those that are left-recursive as they stand,
    /// and all that may call one of them.
    pub(super) fn find_for_charts(&mut self, ticks: &Ticks) -> Result<()> {
        let mut out = vec![false; self.num_rules()];
        let rule_of = |call: &Call| self.rule_of(call.start) as usize;
        for component in self.components_first(ticks)?.iter() {
            ticks.steps(component.len())?;
            let alone = component.len() == 1;
            let start = self.rule_starts[component[0]];
            let is_cycle = !alone || self.calls(start).iter().any(|c| rule_of(c) == component[0]);
            component.iter().for_each(|&rule| out[rule] = is_cycle);
        }
        if !out.contains(&true) {
            return Ok(());
        }
        let mut callers: Vec<Vec<u32>> = vec![Vec::new(); self.num_rules()];
        for q in 0..self.len() as u32 {
            for call in self.calls(q).iter() {
                ticks.step()?;
                callers[rule_of(call)].push(self.rule_of(q));
                // The body of a rule that counts is called by states that are not in the tables.
                for body in self.bodies(call.start) {
                    callers[self.rule_of(body) as usize].push(self.rule_of(call.start));
                }
            }
        }
        let mut work: Vec<usize> = (0..out.len()).filter(|&rule| out[rule]).collect();
        while let Some(rule) = work.pop() {
            for &caller in &callers[rule] {
                ticks.step()?;
                if !std::mem::replace(&mut out[caller as usize], true) {
                    work.push(caller as usize);
                }
            }
        }
        // Nothing is delegated by them: what they lead to is asked about in one.
        let tables: &mut Tables = self;
        for (count, &rule) in tables.delegated.iter_mut().zip(&tables.rule_of) {
            *count = if out[rule as usize] { 0 } else { *count };
        }
        self.for_charts = out;
        Ok(())
    }

    /// Rules that call each other before they have read anything, each group after those that it calls.
    fn components_first(&self, ticks: &Ticks) -> Result<Components> {
        let callees = |rule: usize| {
            let calls = self.calls(self.rule_starts[rule]);
            ticks.steps(1 + calls.len())?;
            let here = calls.iter().filter(|call| call.start < HOLE);
            Ok(here.map(|call| self.rule_of(call.start) as usize).collect())
        };
        graph::components_within(self.num_rules(), |steps| ticks.steps(steps), callees)
    }
}

/// Numbers the states of the rules that count, to which calls of those rules lead.
fn place_counters(
    set: &RuleSet,
    order: &Order,
    base: &[u32],
    starts: &mut [u32],
    counters: &mut Counters,
    work: &Budget,
) -> Result<()> {
    let ticks = Ticks::new(work);
    let mut all: Vec<(usize, Counting)> = Vec::new();
    for (&number, rule) in order.rules.iter().zip(0..) {
        ticks.step()?;
        let automaton = &set.automata[number];
        let Some(&counter) = set.counted.get(&number) else { continue };
        let counting = match set.with_lengths.contains(&number) {
            false => {
                let Some(body) = automaton.left_calls().next() else { continue };
                let machine = Arc::new(Machine::of_body(base[body]));
                let lengths = Arc::new(Lengths::of_repetition());
                Counting { counter, machine, lengths, listed: None, rule }
            }
            true => {
                let mut passes = vec![Vec::new(); automaton.len()];
                for (p, body, q) in automaton.calls() {
                    ticks.step()?;
                    passes[p as usize].push((base[body], q));
                }
                let finals: Vec<bool> =
                    automaton.states().map(|(q, _)| automaton.is_final(q)).collect();
                let targets =
                    passes.iter().map(|passes| passes.iter().map(|pass| pass.1).collect());
                let targets: Vec<Vec<u32>> = targets.collect();
                let lengths = Arc::new(Lengths::new(&targets, &finals, counter.min > 1, work)?);
                let machine = Arc::new(Machine::new(&passes, &finals));
                Counting { counter, machine, lengths, listed: Some(base[number]), rule }
            }
        };
        all.push((number, counting));
    }
    let sizes = all.iter().map(|(_, one)| (one.counter, one.machine.len()));
    let most = most_passes(sizes, counters.room());
    for (number, counting) in all {
        starts[number] = counters.place(counting, most).ok_or_else(too_many_passes)?;
    }
    Ok(())
}

/// The states of rules with guards: their starts, to which calls of those rules lead, have the first
/// numbers past all others.
fn place_sets(
    set: &RuleSet,
    order: &Order,
    base: &[u32],
    starts: &mut [u32],
    end: u32,
    limits: &Limits,
) -> Option<Arc<SetStates>> {
    if set.guarded.is_empty() {
        return None;
    }
    let present = order.rules.iter().enumerate();
    let present: Vec<(u32, usize)> = present
        .filter(|(_, number)| set.guarded.contains_key(number))
        .map(|(rule, &number)| (rule as u32, number))
        .collect();
    for (place, &(_, number)) in present.iter().enumerate() {
        starts[number] = end + place as u32;
    }
    let rules = present.iter().map(|&(rule, number)| {
        let guards = &set.guarded[&number];
        let words = words_of(guards.values());
        // A rule that no call leads to any more is not in the tables, nor is its guard.
        let guards = guards.iter().filter(|(callee, _)| starts[**callee] != NONE);
        let guards = guards.map(|(&callee, guard)| {
            let guard = match guard {
                Guard::Adds(member) => MemberGuard::Adds(*member),
                Guard::Unique(items) => MemberGuard::Unique(*items),
                Guard::Needs(members) => {
                    let mut set = vec![0; words];
                    members.iter().for_each(|&m| set[m as usize / 64] |= 1 << (m % 64));
                    MemberGuard::Needs(set.into())
                }
            };
            (starts[callee], guard)
        });
        (rule, GuardedRule { start: base[number], words, guards: guards.collect() })
    });
    Some(Arc::new(SetStates::new(end, Arc::new(rules.collect()), limits.max_set_bytes)))
}

/// The words of sets of the members that guards speak of.
fn words_of<'g>(guards: impl Iterator<Item = &'g Guard>) -> usize {
    let members = guards.flat_map(|guard| match guard {
        Guard::Adds(member) => std::slice::from_ref(member),
        Guard::Needs(members) => members,
        Guard::Unique(_) => &[],
    });
    members.max().map_or(0, |&last| last as usize / 64 + 1)
}

pub(super) fn too_many_passes() -> Error {
    Error::Limit {
        limit: "max_network_states",
        value: 1 << 31,
        message: "the bounds of the repetitions add up to more; lower them, or drop an upper \
                  bound that no text reaches"
            .to_owned(),
    }
}

fn dedup_from<T: PartialEq>(items: &mut Vec<T>, from: usize) {
    let mut keep = from;
    for i in from..items.len() {
        if i == from || items[i] != items[keep - 1] {
            items.swap(keep, i);
            keep += 1;
        }
    }
    items.truncate(keep);
}

/// Where the edges of one state lead with the classes of each group.
struct Met {
    /// The first target, how many classes lead there, and whether some class leads elsewhere.
    groups: Vec<(u32, usize, bool)>,
}

impl Met {
    fn new(groups: usize) -> Self {
        Self { groups: vec![(0, 0, false); groups] }
    }

    /// Keeps what leads from a state with the classes of groups that the state tells apart. Edges are in
    /// the order of their letters.
    fn keep_told_apart(&mut self, leads: &mut Vec<(u32, u32, u32)>, sizes: &[usize]) {
        let mut last = None;
        for &(group, letter, to) in leads.iter() {
            let (target, classes, goes_apart) = &mut self.groups[group as usize];
            if *classes == 0 {
                *target = to;
            }
            *goes_apart |= *target != to || last == Some(letter);
            *classes += 1;
            last = Some(letter);
        }
        let groups = &mut self.groups;
        let is_told = |group: u32| {
            let (_, classes, goes_apart) = groups[group as usize];
            goes_apart || classes != sizes[group as usize]
        };
        let told: Vec<bool> = leads.iter().map(|lead| is_told(lead.0)).collect();
        leads.iter().for_each(|lead| groups[lead.0 as usize] = (0, 0, false));
        let mut told = told.into_iter();
        leads.retain(|_| told.next() == Some(true));
    }
}

/// Splits a group of classes by where a state leads with each: `leads` has group, class and target.
fn split(leads: &[(u32, u32, u32)], group: &mut [u32], sizes: &mut Vec<usize>) {
    let mut classes: Vec<(Vec<u32>, u32)> = leads
        .chunk_by(|a, b| a.1 == b.1)
        .map(|leads| (leads.iter().map(|lead| lead.2).collect(), leads[0].1))
        .collect();
    classes.sort_unstable();
    for alike in classes.chunk_by(|a, b| a.0 == b.0) {
        let old = leads[0].0 as usize;
        // Classes with which the state leads nowhere keep the number, and else the last part.
        if alike.len() == sizes[old] {
            continue;
        }
        sizes[old] -= alike.len();
        alike.iter().for_each(|&(_, class)| group[class as usize] = sizes.len() as u32);
        sizes.push(alike.len());
    }
}

/// Maps each byte class to a number that it shares with the classes that no state tells apart.
fn merge_classes(rules: &[Automaton], num_classes: usize, work: &Budget) -> Result<Vec<u8>> {
    let ticks = Ticks::new(work);
    // Classes that no state told apart so far are one group.
    let mut group = vec![0u32; num_classes];
    let mut sizes = vec![num_classes];
    let mut leads: Vec<(u32, u32, u32)> = Vec::new();
    let mut met = Met::new(num_classes);
    'rules: for automaton in rules {
        ticks.step()?;
        for (_, edges) in automaton.states() {
            if sizes.len() == num_classes {
                break 'rules;
            }
            ticks.steps(1 + edges.len())?;
            let letters = edges.iter().filter(|edge| edge.0 < FIRST_CALL);
            let open = letters.filter(|edge| sizes[group[edge.0 as usize] as usize] > 1);
            leads.clear();
            leads.extend(open.map(|&(letter, to)| (group[letter as usize], letter, to)));
            // Most states tell no classes apart, which is seen without putting anything in order.
            met.keep_told_apart(&mut leads, &sizes);
            leads.sort_unstable();
            leads.dedup();
            let of_group = |a: &(u32, u32, u32), b: &(u32, u32, u32)| a.0 == b.0;
            leads.chunk_by(of_group).for_each(|leads| split(leads, &mut group, &mut sizes));
        }
    }
    // Groups are numbered in the order of their first classes.
    let mut ids: FxHashMap<u32, u8> = FxHashMap::default();
    let out = group.into_iter().map(|group| {
        let next = ids.len() as u8;
        *ids.entry(group).or_insert(next)
    });
    let out = out.collect();
    Ok(out)
}
