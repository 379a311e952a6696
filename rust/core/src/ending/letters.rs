//! The fewest letters that leave a frame, and by how many each letter can raise what a text still needs.
//!
//! Knuth's generalization of Dijkstra's algorithm to grammars (1977), over the states of the network.
//! States that count are not written out: of so many passes each takes what the body takes. The passes of
//! an automaton take different letters, so for such a state only an upper bound is known.

use super::members::MemberLetters;
use super::strings::UNREACHABLE;
use crate::budget::{Halt, Meter};
use crate::network::{Call, ClassSet, Network};
use crate::vocabulary::Trie;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// For each state the fewest letters to the end of its rule.
pub(super) struct Letters {
    fewest: Vec<u32>,
    /// For each rule whose automaton counts its passes the starts of the rules that a pass calls.
    bodies: FxHashMap<u32, Box<[u32]>>,
    /// For each rule whose members come in any order what they take.
    members: FxHashMap<u32, MemberLetters>,
    /// By class the most letters that reading one of it adds to what is still needed, by how many it takes
    /// away where it is below zero; `None` where nobody knows a bound.
    pub(super) raised: Option<Box<[i64; 256]>>,
    /// The classes that any state reads.
    pub(super) used: ClassSet,
}

/// What a state waits for.
#[derive(Clone, Copy)]
enum Waits {
    /// The target of an edge.
    Edge(u32),
    /// One half of a call: the state that calls, and the call.
    Half(u32, Call),
    /// A rule that the rule of an object calls, whose members come in any order.
    Members(u32),
}

impl Letters {
    /// Counts the letters of all classes but `without`. What one letter raises is known only if no class is
    /// left out.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn new(
        network: &Network,
        without: Option<u8>,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let bodies = network.counted_automata().map(|(rule, start)| {
            let mut bodies: Vec<u32> = network.bodies(start);
            bodies.sort_unstable();
            bodies.dedup();
            (rule, bodies.into())
        });
        let bodies: FxHashMap<u32, Box<[u32]>> = bodies.collect();
        let fewest = vec![UNREACHABLE; network.len()];
        let members = FxHashMap::default();
        let mut out = Self { fewest, bodies, members, raised: None, used: [0; 4] };
        let (waiting, ends) = out.waiting(network, without, meter)?;
        out.settle(network, waiting, ends, meter)?;
        for (&rule, order) in network.member_orders().into_iter().flatten() {
            let members =
                MemberLetters::new(&|state| out.of(network, state), network, (rule, order), meter)?;
            out.members.insert(rule, members);
        }
        if without.is_none() {
            out.raised = out.raise(network, meter)?;
        }
        Ok(out)
    }

    /// For each state what waits for it, and the states at which a rule ends.
    fn waiting(
        &mut self,
        network: &Network,
        without: Option<u8>,
        meter: &mut Meter,
    ) -> Result<(Vec<Vec<Waits>>, Vec<u32>), Halt> {
        let mut waiting: Vec<Vec<Waits>> = vec![Vec::new(); network.len()];
        let mut ends = Vec::new();
        let mut waiters = FxHashSet::default();
        let orders = network.member_orders();
        for state in 0..network.len() as u32 {
            let rule = network.rule_of(state);
            if orders.is_some_and(|orders| orders.contains_key(&rule)) {
                let callees = network.calls(state);
                meter.spend(1 + callees.len() as u64)?;
                for call in callees.iter() {
                    let callee = table_state(network, call.start);
                    // All states of an object wait once: written-out counts of members are thousands of states.
                    if waiters.insert((callee, rule)) {
                        waiting[callee as usize].push(Waits::Members(rule));
                    }
                }
                continue;
            }
            if network.is_final(state) {
                ends.push(state);
            }
            let mut edges = 0;
            for (class, to) in network.edges(state).filter(|edge| Some(edge.0) != without) {
                edges += 1;
                self.used[class as usize >> 6] |= 1 << (class & 63);
                waiting[to as usize].push(Waits::Edge(state));
            }
            for call in network.calls(state).iter() {
                // What counts waits for the body of the repetition.
                let callee = table_state(network, call.start);
                waiting[callee as usize].push(Waits::Half(state, *call));
                let after = table_state(network, call.to);
                if after != callee {
                    waiting[after as usize].push(Waits::Half(state, *call));
                }
                // Each pass takes as many letters as the longest of them at most.
                if network.counts_an_automaton(call.start) {
                    let bodies = self.bodies.get(&network.rule_of(call.start));
                    for &body in bodies.into_iter().flatten() {
                        let body = table_state(network, body);
                        waiting[body as usize].push(Waits::Half(state, *call));
                        meter.spend(1)?;
                    }
                }
            }
            meter.spend(1 + edges / 4 + network.calls(state).len() as u64)?;
        }
        Ok((waiting, ends))
    }

    /// Settles the states as Dijkstra does, those with the fewest letters first.
    fn settle(
        &mut self,
        network: &Network,
        mut waiting: Vec<Vec<Waits>>,
        ends: Vec<u32>,
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        let orders = network.member_orders();
        let mut heap: BinaryHeap<_> = ends.into_iter().map(|state| Reverse((0, state))).collect();
        while let Some(Reverse((cost, state))) = heap.pop() {
            if cost >= self.fewest[state as usize] {
                continue;
            }
            self.fewest[state as usize] = cost;
            meter.spend(1 + waiting[state as usize].len() as u64)?;
            for waits in std::mem::take(&mut waiting[state as usize]) {
                let (waiter, cost) = match waits {
                    Waits::Edge(from) => (from, cost + 1),
                    Waits::Half(from, Call { start, to }) => {
                        let start = self.of(network, network.unguarded(start));
                        (from, start.saturating_add(self.of(network, to)))
                    }
                    Waits::Members(rule) => {
                        let Some(order) = orders.and_then(|orders| orders.get(&rule)) else {
                            continue;
                        };
                        let members = MemberLetters::new(
                            &|state| self.of(network, state),
                            network,
                            (rule, order),
                            meter,
                        )?;
                        (order.start, members.at_start)
                    }
                };
                if cost < self.fewest[waiter as usize] {
                    heap.push(Reverse((cost, waiter)));
                }
            }
        }
        Ok(())
    }

    /// The fewest letters from a state to the end of its rule.
    pub(super) fn of(&self, network: &Network, state: u32) -> u32 {
        if let Some(found) = network.as_members(state) {
            let members = self.members.get(&found.rule);
            return members.map_or(UNREACHABLE, |members| {
                members.of(&|state| self.of(network, state), network, state, found)
            });
        }
        let state = network.unguarded(state);
        if !network.is_counting(state) {
            return self.fewest[state as usize];
        }
        let (body, needed, _, may_stop) = network.counting(state);
        if network.counts_an_automaton(state) {
            return self.passes(network, state, network.least_passes(state).0);
        }
        let passes = if may_stop { 0 } else { needed.max(1) };
        match self.fewest[body as usize] {
            UNREACHABLE if passes > 0 => UNREACHABLE,
            letters => letters.saturating_mul(passes).min(UNREACHABLE),
        }
    }

    /// An upper bound on the letters of so many passes of the automaton of a state.
    fn passes(&self, network: &Network, state: u32, passes: Option<u32>) -> u32 {
        let Some(passes) = passes else { return UNREACHABLE };
        let bodies = self.bodies.get(&network.rule_of(state)).into_iter().flatten();
        let longest = bodies.map(|&body| self.of(network, body)).max().unwrap_or(UNREACHABLE);
        if passes == 0 { 0 } else { longest.saturating_mul(passes).min(UNREACHABLE) }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let bodies = self.bodies.values().map(|bodies| 32 + bodies.len() * 4);
        let members = self.members.values().map(MemberLetters::bytes);
        self.fewest.len() * 4 + bodies.sum::<usize>() + members.sum::<usize>()
    }

    /// The most that a letter of each class raises what is needed: over all frames and all ways to read such
    /// a letter from them, what the frames that are there then need, less what the frame needed.
    fn raise(&self, network: &Network, meter: &mut Meter) -> Result<Option<Box<[i64; 256]>>, Halt> {
        if network.is_for_charts() || !network.counts_sets() {
            return Ok(None);
        }
        let Some(callees_first) = callees_first(network, meter)? else { return Ok(None) };
        // For each rule whose automaton counts its passes the most by which a pass raises what it needs.
        let gap = |(rule, start)| {
            (rule, i64::from(self.passes(network, start, Some(network.least_passes(start).1))))
        };
        let gaps: FxHashMap<u32, i64> = network.counted_automata().map(gap).collect();
        // What is added until a frame of each state is on top: nothing, or by the calls on the way there.
        let mut pushed: Vec<i64> = vec![0; network.len()];
        for (_, body) in network.repetitions() {
            // Another pass begins where the repetition may stop.
            let before = &mut pushed[body as usize];
            *before = i64::from(self.of(network, body)).max(*before);
        }
        let mut raised = Box::new([i64::from(i32::MIN); 256]);
        let orders = network.member_orders();
        for &state in callees_first.iter().rev() {
            let rule = network.rule_of(state);
            let order =
                orders.and_then(|orders| Some((orders.get(&rule)?, self.members.get(&rule)?)));
            if let Some((order, members)) = order {
                let of = |state| self.of(network, state);
                for call in network.calls(state).iter() {
                    let callee = table_state(network, call.start);
                    let taken = of(network.unguarded(call.start)).max(of(callee));
                    let step = (state, call, taken);
                    let added = members.raised(&of, network, (rule, order), step);
                    let Some(added) = added else { return Ok(None) };
                    let added = pushed[state as usize] + added;
                    let known = &mut pushed[callee as usize];
                    *known = added.max(*known);
                }
                continue;
            }
            let own = i64::from(self.of(network, state));
            if own >= i64::from(UNREACHABLE) {
                return Ok(None);
            }
            let before = pushed[state as usize];
            for (class, to) in network.edges(state) {
                let most = &mut raised[usize::from(class)];
                *most = (before + i64::from(self.of(network, to)) - own).max(*most);
            }
            // This state stands for all counts of its automaton: what is needed after a pass exceeds what
            // was needed before it by the gap at most.
            let gap = gaps.get(&network.rule_of(state)).copied();
            for call in network.calls(state).iter() {
                let callee = table_state(network, call.start);
                let inside = i64::from(self.of(network, callee));
                let mut added = gap.unwrap_or_else(|| i64::from(self.of(network, call.to)) - own);
                added += inside;
                if network.is_counting(call.start) {
                    // The passes that are left after this one.
                    let all = i64::from(self.of(network, call.start));
                    added += (all - inside).max(0);
                }
                let known = &mut pushed[callee as usize];
                *known = (before + added).max(*known);
            }
        }
        let is_bounded = raised.iter().all(|&most| most < i64::from(UNREACHABLE));
        Ok(is_bounded.then_some(raised))
    }

    /// The most by which a token of a trie can raise what is needed.
    pub(super) fn most_raised(&self, trie: &Trie, class: impl Fn(u32) -> u8) -> Option<u32> {
        let raised = self.raised.as_ref()?;
        let mut path: Vec<(u32, i64)> = vec![(trie.end(0), 0)];
        let mut most = 0;
        for node in 1..trie.len() as u32 {
            while path.last().is_some_and(|last| last.0 <= node) {
                path.pop();
            }
            if trie.ids() == Some(node) {
                path = vec![(trie.end(node), 0)];
                continue;
            }
            let before = path.last().map_or(0, |last| last.1);
            let after = before + raised[usize::from(class(node))];
            if !trie.numbers(node).is_empty() {
                most = after.max(most);
            }
            path.push((trie.end(node), after));
        }
        u32::try_from(most).ok().filter(|&most| most < UNREACHABLE)
    }
}

/// The states of a network, those that a state calls before it; `None` where one calls itself before it
/// reads, by left recursion.
fn callees_first(network: &Network, meter: &mut Meter) -> Result<Option<Vec<u32>>, Halt> {
    #[derive(Clone, Copy, PartialEq)]
    enum Met {
        No,
        Open,
        Done,
    }
    let mut met = vec![Met::No; network.len()];
    let mut order = Vec::with_capacity(network.len());
    let mut work: Vec<(u32, bool)> = Vec::new();
    for state in 0..network.len() as u32 {
        work.push((state, false));
        while let Some((state, is_ready)) = work.pop() {
            if is_ready {
                met[state as usize] = Met::Done;
                order.push(state);
                continue;
            }
            match met[state as usize] {
                Met::Done => continue,
                Met::Open => return Ok(None),
                Met::No => met[state as usize] = Met::Open,
            }
            let calls = network.calls(state);
            meter.spend(1 + calls.len() as u64)?;
            work.push((state, true));
            let callees = calls.iter().map(|call| table_state(network, call.start));
            work.extend(callees.filter(|&to| met[to as usize] != Met::Done).map(|to| (to, false)));
        }
    }
    Ok(Some(order))
}

/// The state of the tables in which a rule begins to read: of a repetition that of its body.
fn table_state(network: &Network, state: u32) -> u32 {
    let state = network.unguarded(state);
    match network.is_counting(state) {
        true => network.counting(state).0,
        false => state,
    }
}
