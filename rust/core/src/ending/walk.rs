//! What a state leads to by letters alone, within one token.

use super::automata::Toward;
use super::dawg::{Dawg, NodeId};
use super::tails::{KnownSteps, TailCalls};
use crate::budget::{Halt, Meter};
use crate::network::{Call, ClassSet, Network, add_all, meet};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A walk goes into rules of at most so many states.
const FEW_STATES: usize = 64;
/// Walks that hold more give it back.
const MANY_BYTES: usize = 1 << 20;

/// Walks that have met so many nodes are worth unions: the nodes of a place are one from then on that goes on with the
/// strings of all. Later walks come to the same ones.
const MANY_NODES: u64 = if cfg!(test) { 64 } else { 1 << 20 };

/// Fewer nodes are not united.
const FEW_NODES: usize = if cfg!(test) { 1 } else { 4 };

/// What stands beneath where the walk is in no other rule.
const NO_RETURN: u32 = u32::MAX;

/// What one state leads to by letters alone, with a token read as far as a node: each place with the
/// fewest bytes read before.
///
/// A walk goes on in rules that tail calls enter where these make tail calls alone: printed automata are many rules.
/// It goes into other rules that are called where these are finite and call no others, as characters are that a
/// repetition counts. States of automata are many, and from each a text may read most tokens: the
/// nodes that a walk reaches in one state, after as many letters, are taken together. Where walks are long, they become
/// one node (`unions`).
#[derive(Default)]
pub(super) struct Walk {
    tails: Arc<TailCalls>,
    /// Nodes at which the rule is complete.
    pub(super) left: Vec<(NodeId, u32)>,
    /// States in which a token ends.
    pub(super) ended: Vec<(u32, u32)>,
    /// States of called rules in which a token ends, and the states to which those calls return.
    pub(super) ended_within: Vec<(u32, u32, u32)>,
    /// Starts of rules that are called from where the walk begins, and where the calls return to.
    pub(super) calls: Vec<(u32, u32)>,
    /// Places with calls, and those of states that count up to a bound far away: many walks meet them,
    /// so that each has one of its own.
    pub(super) met: Vec<(u32, NodeId, u32)>,
    pub(super) steps: KnownSteps,
    /// Calls of the rules that a state goes over to, which the walk does not go on in.
    behind: FxHashMap<u32, Option<Arc<[Call]>>>,
    /// Whether walks go into a rule, by its start.
    is_entered: FxHashMap<u32, bool>,
    bytes_held: usize,
    /// Nodes met so far, by all walks.
    nodes_met: u64,
    level: NodesByPlace,
    next_level: NodesByPlace,
    /// By node the number of the last group that had it.
    marks: Vec<u32>,
    groups: u32,
}

/// A state, and where the rule of it returns to.
type StateWithReturn = (u32, u32);

/// The place of a group that was taken out.
const TAKEN: StateWithReturn = (u32::MAX, u32::MAX);
/// Among so many groups one is found by looking at each.
const FEW_GROUPS: usize = if cfg!(test) { 2 } else { 8 };

/// Nodes by the place at which they are reached.
#[derive(Default)]
struct NodesByPlace {
    /// Those in use come first.
    groups: Vec<(StateWithReturn, Vec<NodeId>)>,
    used: usize,
    /// By place the group, where there are more than a few.
    numbers: FxHashMap<StateWithReturn, usize>,
    /// Nodes that were looked for so far, for the meter.
    reached: usize,
}

impl NodesByPlace {
    fn clear(&mut self) {
        self.numbers.clear();
        self.groups[..self.used].iter_mut().for_each(|(_, nodes)| nodes.clear());
        self.used = 0;
    }

    /// Bytes held.
    fn bytes(&self) -> usize {
        self.groups.iter().map(|(_, nodes)| nodes.capacity() * 4).sum()
    }

    fn nodes(&mut self, place: StateWithReturn) -> &mut Vec<NodeId> {
        let known = match self.used <= FEW_GROUPS {
            true => self.groups[..self.used].iter().position(|group| group.0 == place),
            false => self.numbers.get(&place).copied(),
        };
        let number = known.unwrap_or_else(|| self.add(place));
        &mut self.groups[number].1
    }

    /// One more group, at a place that has none.
    fn add(&mut self, place: StateWithReturn) -> usize {
        let number = self.used;
        match self.groups.get_mut(number) {
            Some(group) => group.0 = place,
            None => self.groups.push((place, Vec::new())),
        }
        self.used += 1;
        if self.used == FEW_GROUPS + 1 {
            let all = self.groups[..self.used].iter().zip(0..);
            self.numbers.extend(all.map(|(group, number)| (group.0, number)));
        } else if self.used > FEW_GROUPS {
            self.numbers.insert(place, number);
        }
        number
    }

    /// The nodes of a group, which is taken out.
    fn take(&mut self, number: usize) -> (StateWithReturn, Vec<NodeId>) {
        let (place, nodes) = &mut self.groups[number];
        let place = std::mem::replace(place, TAKEN);
        if self.used > FEW_GROUPS {
            self.numbers.remove(&place);
        }
        (place, std::mem::take(nodes))
    }

    /// Moves each group to the place to which reading the first byte of a token leads: a rule that counts
    /// tokens and was entered by that byte has counted one.
    fn after_first(&mut self, network: &Network) {
        let mut moved = Self::default();
        for ((state, beneath), nodes) in self.groups.drain(..self.used) {
            let beneath = match beneath {
                NO_RETURN => NO_RETURN,
                state => network.after_first(state),
            };
            moved.nodes((network.after_first(state), beneath)).extend(nodes);
        }
        *self = moved;
    }

    /// Gives the memory of a group back that was taken out.
    fn put_back(&mut self, number: usize, mut nodes: Vec<NodeId>) {
        nodes.clear();
        self.groups[number].1 = nodes;
    }
}

impl Walk {
    pub(super) fn new(tails: Arc<TailCalls>) -> Self {
        Self { tails, ..Self::default() }
    }

    /// Bytes held for good.
    pub(super) fn bytes(&self) -> usize {
        self.bytes_held + self.steps.bytes + self.marks.capacity() * 4
    }

    fn clear(&mut self) {
        self.left.clear();
        self.ended.clear();
        self.ended_within.clear();
        self.calls.clear();
        self.met.clear();
        self.level.clear();
        self.next_level.clear();
    }

    /// Walks on from a state with a token read as far as a node; in an automaton maybe only toward some states.
    ///
    /// # Errors
    /// Those of the meter; [`Halt::Bytes`] where it takes more than `most_bytes`.
    pub(super) fn from(
        &mut self,
        (state, node): (u32, NodeId),
        toward: Option<Toward<'_>>,
        (network, dawg): (&Network, &mut Dawg),
        most_bytes: usize,
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        self.clear();
        self.level.nodes((state, NO_RETURN)).push(node);
        let mut bytes = 0;
        while self.level.used > 0 {
            let mut number = 0;
            while number < self.level.used {
                let (place, mut nodes) = self.level.take(number);
                let before = self.next_level.reached;
                self.group(place, toward, &mut nodes, bytes, (network, dawg));
                let reached = (self.next_level.reached - before + nodes.len()) as u64;
                self.nodes_met += reached;
                meter.spend(1 + reached / 2 + dawg.take_work() / 4)?;
                self.level.put_back(number, nodes);
                number += 1;
            }
            let is_found = !self.left.is_empty() || !self.ended.is_empty();
            if is_found && toward.is_some_and(|toward| toward.is_one_enough) {
                return Ok(());
            }
            bytes += 1;
            std::mem::swap(&mut self.level, &mut self.next_level);
            if bytes == 1 && node == dawg.root() && dawg.are_counted {
                self.level.after_first(network);
            }
            self.next_level.clear();
            let held = self.level.bytes() + self.next_level.bytes();
            if held > MANY_BYTES {
                self.next_level = NodesByPlace::default();
            }
            if !dawg.fits(most_bytes.saturating_sub(self.bytes() + held)) {
                self.level = NodesByPlace::default();
                return Err(Halt::Bytes);
            }
        }
        // The first of each has the fewest bytes.
        self.left.sort_unstable();
        self.left.dedup_by_key(|(node, _)| *node);
        self.ended.sort_unstable();
        self.ended.dedup_by_key(|(state, _)| *state);
        self.ended_within.sort_unstable();
        self.ended_within.dedup_by_key(|&mut (state, to, _)| (state, to));
        self.met.sort_unstable();
        self.met.dedup_by_key(|&mut (state, node, _)| (state, node));
        Ok(())
    }

    /// Goes on from the nodes at one place.
    fn group(
        &mut self,
        (state, beneath): StateWithReturn,
        toward: Option<Toward<'_>>,
        nodes: &mut Vec<NodeId>,
        bytes: u32,
        (network, dawg): (&Network, &mut Dawg),
    ) {
        self.marks.resize(dawg.len() + 1, 0);
        if self.groups == u32::MAX {
            self.marks.fill(0);
            self.groups = 0;
        }
        self.groups += 1;
        nodes.retain(|&node| {
            std::mem::replace(&mut self.marks[node as usize], self.groups) != self.groups
        });
        let ends = nodes.iter().any(|&node| node != dawg.root() && dawg.is_end(node));
        if beneath == NO_RETURN {
            if bytes > 0 && network.unbounded(state).is_some() {
                self.met.extend(nodes.iter().map(|&node| (state, node, bytes)));
                return;
            }
            self.call(state, nodes, bytes, (network, dawg));
            if network.is_final(state) {
                self.left.extend(nodes.iter().map(|&node| (node, bytes)));
            }
            if let Some(toward) = toward {
                let may_lead = toward.may_lead(state);
                nodes.retain(|&node| may_lead(dawg.later(node)));
            }
            let is_looked_for = ends && toward.is_none_or(|toward| toward.ends_in(state));
            let after = match dawg.are_counted {
                true => network.after_token(state),
                false => Some(state).filter(|&state| network.stays(state)),
            };
            let ended = after.filter(|_| is_looked_for);
            self.ended.extend(ended.map(|state| (state, bytes)));
        } else {
            if network.is_final(state) {
                self.level.nodes((beneath, NO_RETURN)).extend_from_slice(nodes);
            }
            // At its end the rule is left, and the token ends where the call returns to.
            let goes_on = ends && network.stays(state);
            self.ended_within.extend(goes_on.then_some((state, beneath, bytes)));
        }
        if self.nodes_met > MANY_NODES
            && nodes.len() > FEW_NODES
            && let Some(all) = dawg.union(nodes)
        {
            nodes.clear();
            nodes.push(all);
        }
        self.step(state, |to| (to, beneath), nodes, (network, dawg));
    }

    /// Goes into the rules that a state calls; what meets others leaves the group.
    fn call(
        &mut self,
        state: u32,
        nodes: &mut Vec<NodeId>,
        bytes: u32,
        (network, dawg): (&Network, &mut Dawg),
    ) {
        let mut others: ClassSet = [0; 4];
        let listed = network.calls_to_end(state);
        if listed.is_empty() {
            return;
        }
        let behind = match listed.iter().any(|call| self.tails.goes_on(network, call)) {
            true => self.calls_behind(state, network),
            false => None,
        };
        let own = listed.iter().filter(|call| !self.tails.goes_on(network, call));
        let calls: Vec<Call> =
            own.chain(behind.as_deref().into_iter().flatten()).copied().collect();
        for call in &calls {
            let first = network.first_to_end(call.start);
            if self.enters(call.start, network) {
                continue;
            }
            if bytes > 0 {
                add_all(&mut others, first);
            } else if nodes.iter().any(|&node| meet(first, dawg.next(node))) {
                self.calls.push((call.start, call.to));
            }
        }
        nodes.retain(|&node| {
            let calls = meet(&others, dawg.next(node));
            self.met.extend(calls.then_some((state, node, bytes)));
            !calls
        });
        for call in &calls {
            if self.enters(call.start, network) {
                self.step(call.start, |to| (to, call.to), nodes, (network, dawg));
            }
        }
    }

    /// [`TailCalls::calls_behind`] of a state that goes over to others, remembered; `None` where there are none.
    fn calls_behind(&mut self, state: u32, network: &Network) -> Option<Arc<[Call]>> {
        let Self { tails, behind, bytes_held, .. } = self;
        let known = behind.entry(state).or_insert_with(|| {
            let calls = tails.calls_behind(network, state);
            *bytes_held += 32 + std::mem::size_of_val(&*calls);
            (!calls.is_empty()).then(|| calls.into())
        });
        known.clone()
    }

    /// Reads a letter from a state.
    fn step(
        &mut self,
        state: u32,
        place: impl Fn(u32) -> StateWithReturn,
        nodes: &[NodeId],
        (network, dawg): (&Network, &mut Dawg),
    ) {
        let is_worth_it = self.nodes_met > MANY_NODES;
        let steps = self.steps.of(network, &self.tails, state);
        self.next_level.reached += steps.len() * (1 + nodes.len() / 4);
        for (classes, to) in steps {
            if !nodes.iter().any(|&node| meet(classes, dawg.next(node))) {
                continue;
            }
            let to = self.next_level.nodes(place(*to));
            let before = to.len();
            for &node in nodes {
                let is_united = is_worth_it && count_both(classes, dawg.next(node)) > FEW_NODES;
                match is_united.then(|| dawg.after(node, classes)).flatten() {
                    Some(child) => to.push(child),
                    None => to.extend(dawg.children_by(node, classes)),
                }
            }
            let reached = to.len() - before;
            self.next_level.reached += reached;
        }
    }

    /// Whether the rule of a start is finite, small, and calls no other.
    fn enters(&mut self, start: u32, network: &Network) -> bool {
        if let Some(&known) = self.is_entered.get(&start) {
            return known;
        }
        let is_entered = is_finite(network, start);
        self.bytes_held += 16;
        self.is_entered.insert(start, is_entered);
        is_entered
    }
}

/// How many classes two sets have in common.
fn count_both(one: &ClassSet, other: &ClassSet) -> usize {
    one.iter().zip(other).map(|(one, other)| (one & other).count_ones() as usize).sum()
}

/// Whether a rule has few states, calls no other, and none of its states leads back to itself. No rule
/// that is called is complete at its start: a call takes at least one byte.
fn is_finite(network: &Network, start: u32) -> bool {
    // Depth first: a state that is met while it is open leads back to itself.
    let mut is_open: FxHashMap<u32, bool> = FxHashMap::default();
    let mut work = vec![(start, true)];
    while let Some((state, enters)) = work.pop() {
        if !enters {
            is_open.insert(state, false);
            continue;
        }
        match is_open.get(&state) {
            Some(true) => return false,
            Some(false) => continue,
            None => {}
        }
        let has_calls = network.unguarded(state) != state || !network.calls(state).is_empty();
        if has_calls || network.is_counting(state) || is_open.len() == FEW_STATES {
            return false;
        }
        is_open.insert(state, true);
        work.push((state, false));
        work.extend(network.edges(state).map(|(_, to)| (to, true)));
    }
    true
}
