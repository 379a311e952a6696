//! The tables of states of some rules: their edges and calls, over the classes that merge_classes leaves.

use super::counters::{Counters, Counting, Machine, most_passes};
use super::merge_classes::merge_classes;
use super::rules::{RuleSet, check_edges, check_states};
use super::sets::{GuardedRule, MemberGuard, SetStates};
use super::written::Order;
use super::{Call, HOLE, NONE, Network, NetworkTables};
use crate::automata::alphabet::Alphabet;
use crate::automata::lengths::Lengths;
use crate::automata::{Automaton, callee, is_marker};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::Guard;
use crate::limits::Limits;
use rustc_hash::FxHashMap;
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
        let Offsets { mut base, total, read } = Offsets::of(rules, &order, &ticks)?;
        check_states(total, limits)?;
        let edges = rules.iter().try_fold(0, |edges, automaton| {
            ticks.step()?;
            Ok(edges + automaton.num_edges())
        });
        check_edges(edges?, limits)?;
        work.tick()?;
        let mut counters = Counters::after(total);
        let map = merge_classes(rules, alphabet.len(), work)?;
        let mut out = NetworkTables::without_rules(alphabet.merged(&map), total);
        (out.start, out.accepts_empty, out.read) = (base[start], accepts_empty, read as u32);
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
        out.reserve(present().map(|(_, automaton)| automaton), total, &ticks)?;
        for (number, automaton) in present() {
            out.origins.push(origin[number] as u32);
            out.written.push(numbers[*written.get(&number).unwrap_or(&number)]);
            // The second state of a rule that counts stands for all after it: nothing leads there.
            let is_repetition = counted.contains_key(&number) && !with_lengths.contains(&number);
            let first_pass = is_repetition.then(|| starts[number] + 1);
            let call = |callee: usize, to: u32| Call {
                start: starts[callee],
                to: first_pass.unwrap_or(to),
            };
            out.write_rule(automaton, base[number], &map, call, &ticks)?;
        }
        out.counters = counters;
        Ok(Self { tables: Arc::new(out), sets })
    }
}

/// Where the states of rules stand in the tables.
struct Offsets {
    /// The first of each rule that is present.
    base: Vec<u32>,
    /// How many there are.
    total: usize,
    /// How many charts read.
    read: usize,
}

impl Offsets {
    fn of(rules: &[Automaton], order: &Order, ticks: &Ticks) -> Result<Self> {
        let mut out = Self { base: vec![u32::MAX; rules.len()], total: 0, read: 0 };
        for (place, &number) in order.rules.iter().enumerate() {
            ticks.step()?;
            out.base[number] = out.total as u32;
            out.total += rules[number].len();
            out.read = if place < order.read { out.total } else { out.read };
        }
        Ok(out)
    }
}

impl NetworkTables {
    /// Tables that no rule has been written to, with room for so many states.
    fn without_rules(alphabet: Alphabet, states: usize) -> Self {
        Self {
            alphabet,
            start: 0,
            accepts_empty: false,
            rule_of: Vec::with_capacity(states),
            rule_starts: Vec::new(),
            origins: Vec::new(),
            written: Vec::new(),
            read: 0,
            for_charts: Vec::new(),
            finals: Vec::with_capacity(states),
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
            member_orders: OnceLock::new(),
        }
    }

    /// Makes room for the edges and calls of some rules, which have so many states: tables that grow are
    /// copied as a whole, which nobody can end.
    fn reserve<'a>(
        &mut self,
        rules: impl Iterator<Item = &'a Automaton>,
        states: usize,
        ticks: &Ticks,
    ) -> Result<()> {
        let (mut edges, mut calls) = (0, 0);
        for automaton in rules {
            ticks.step()?;
            for (_, from_here) in automaton.states() {
                ticks.steps(1 + from_here.len())?;
                calls += from_here.iter().filter(|edge| callee(edge.0).is_some()).count();
            }
            edges += automaton.num_edges();
        }
        self.edges.reserve_exact(edges - calls);
        self.calls.reserve_exact(calls);
        for starts in [&mut self.edge_starts, &mut self.call_starts] {
            starts.reserve_exact(states);
        }
        self.cut.reserve_exact(states);
        Ok(())
    }

    /// Writes the states of a rule from the number `offset` on. `classes` says what has become of each byte
    /// class, `call` makes a call of the rule that is called and the state after it.
    fn write_rule(
        &mut self,
        automaton: &Automaton,
        offset: u32,
        classes: &[u8],
        call: impl Fn(usize, u32) -> Call,
        ticks: &Ticks,
    ) -> Result<()> {
        let rule = self.rule_starts.len() as u32;
        self.rule_starts.push(offset);
        for (state, edges) in automaton.states() {
            let from = self.edges.len();
            let mut alone = false;
            for &(letter, q) in edges {
                ticks.step()?;
                match callee(letter) {
                    None if is_marker(letter) => alone = true,
                    Some(b) => self.calls.push(call(b, q + offset)),
                    None => self.edges.push((classes[letter as usize], q + offset)),
                }
            }
            self.edges[from..].sort_unstable();
            dedup_from(&mut self.edges, from);
            self.cut.push(alone);
            self.rule_of.push(rule);
            self.finals.push(automaton.is_final(state));
            self.edge_starts.push(self.edges.len() as u32);
            self.call_starts.push(self.calls.len() as u32);
            if automaton.falls_back(state) {
                self.fall_back(automaton.fallback() + offset);
            }
        }
        Ok(())
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
        starts[number] = counters.place(counting, most).ok_or_else(too_many_counting_states)?;
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

/// The error where states that count would have numbers of more than 31 bits, even with few passes
/// ([`most_passes`]).
pub(super) fn too_many_counting_states() -> Error {
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
