//! Rules that are one automaton by themselves, such as formats and names: from each state only those tokens are walked
//! that can make its row better.
//!
//! From a state in such a rule tokens lead to most of its states, so each of these has a walk over most tokens. Few of
//! them bring the end nearer. With each state goes the number of tokens that must begin before the rule is left
//! ([`Automaton::begun`]). A token that ends in a state of `b` has exits that finish `b` tokens at least, so where `n`
//! are enough to leave the rule between two tokens, it matters only if `b < n`, but for the strings that need more than
//! one token by themselves ([`Automaton::hard`]). So rows are made of tokens that end in states nearer to the end first,
//! and of others only where something is missing.
//!
//! A walk toward some states goes on with those strings alone that have the letters which each way there needs
//! ([`Automaton::needs`]): an at-sign and a quotation mark, say.

use super::dawg::NodeId;
use super::exits::{Exit, is_kept};
use super::rows::{PairId, Rows};
use super::strings::UNREACHABLE;
use super::walk::Walk;
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, Network, add_all, members};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// Automata of fewer states are walked at once.
const MANY_STATES: usize = if cfg!(test) { 1 } else { 24 };
/// The maximum number of states of an automaton.
const MOST_STATES: usize = 1 << 15;

/// States of a rule, and where letters lead from them.
#[derive(Debug, Default)]
struct Graph {
    states: Vec<u32>,
    /// The places of states.
    places: FxHashMap<u32, u32>,
    /// By place the places to which classes lead.
    steps: Vec<Vec<(ClassSet, u32)>>,
}

/// What tokens of an automaton are looked at: those that lead out of the rule, or those that end where at most so many
/// more tokens lead out.
type Level = u32;

/// States from which letters lead to no call and to no state that counts.
struct Automaton {
    graph: Graph,
    /// By place those from which letters lead there.
    before: Vec<Vec<u32>>,
    is_final: Vec<bool>,
    /// By place the tokens that begin until the rule is left, at least: [`UNREACHABLE`] where no tokens lead out,
    /// [`UNKNOWN`] where nobody asked.
    begun: Vec<u32>,
    /// By level and place the classes that are read on each way to where the level leads.
    needs: Vec<Vec<ClassSet>>,
    /// Where a token can leave the rule with strings that need more than one token by themselves, if anywhere.
    hard: Option<NodeId>,
}

const UNKNOWN: u32 = u32::MAX;

/// The automata of a network.
#[derive(Default)]
pub(super) struct Automata {
    all: Vec<Automaton>,
    /// By rule the automaton of those of its states that are in one, if any.
    of_rule: FxHashMap<u32, Option<usize>>,
    /// Pairs that may need more tokens than were looked at.
    unfinished: Vec<(PairId, Place, Level)>,
}

/// A state of an automaton: the number of the one, and the place of the other.
#[derive(Clone, Copy)]
struct Place {
    automaton: usize,
    place: usize,
}

/// Where a walk in an automaton leads.
#[derive(Clone, Copy)]
pub(super) struct Toward<'a> {
    automaton: &'a Automaton,
    level: Level,
    /// Whether it is enough to know that there is a way.
    pub(super) is_one_enough: bool,
}

impl Toward<'_> {
    /// Whether a token that ends in a state is one of those looked for.
    pub(super) fn ends_in(&self, state: u32) -> bool {
        let Automaton { graph, begun, .. } = self.automaton;
        let place = graph.places.get(&state);
        self.level > 0 && place.is_some_and(|&place| begun[place as usize] <= self.level)
    }

    /// Whether the strings of a node have all classes that are read on each way from a state.
    pub(super) fn may_lead(&self, state: u32) -> impl Fn(&ClassSet) -> bool {
        let place = self.automaton.graph.places.get(&state);
        let needs = &self.automaton.needs[self.level as usize];
        let needs = place.map(|&place| needs[place as usize]);
        move |later| needs.is_some_and(|needs| needs.iter().zip(later).all(|(a, b)| a & !b == 0))
    }
}

impl Graph {
    /// The states of a rule from which letters lead to no call, to no set, and to no state that counts.
    ///
    /// # Errors
    /// Those of the meter.
    fn of_rule(
        rule: u32,
        walk: &mut Walk,
        network: &Network,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let mut all = Self::default();
        let mut leaves = Vec::new();
        all.place(network.rule_starts()[rule as usize]);
        while let Some(&state) = all.states.get(all.steps.len()) {
            let is_plain = network.unguarded(state) == state && network.unbounded(state).is_none();
            let is_full = all.states.len() > MOST_STATES;
            let calls = network.calls(state);
            leaves.push(is_full || !is_plain || !calls.is_empty());
            calls.iter().filter(|_| !is_full).for_each(|call| _ = all.place(call.to));
            let steps = if is_full { &[][..] } else { walk.steps_of(state, network) };
            meter.spend(1 + steps.len() as u64)?;
            let steps = steps.iter().map(|&(classes, to)| (classes, all.place(to))).collect();
            all.steps.push(steps);
        }
        let before = all.before();
        let mut work: Vec<usize> = (0..leaves.len()).filter(|&place| leaves[place]).collect();
        while let Some(place) = work.pop() {
            meter.spend(1 + before[place].len() as u64)?;
            let before = before[place].iter().map(|&from| from as usize);
            work.extend(before.filter(|&from| !std::mem::replace(&mut leaves[from], true)));
        }
        let mut kept = Self::default();
        let stay = (0..leaves.len()).filter(|&place| !leaves[place]);
        stay.clone().for_each(|place| _ = kept.place(all.states[place]));
        for place in stay {
            let steps = all.steps[place].iter();
            let steps = steps.map(|&(by, to)| (by, kept.place(all.states[to as usize])));
            let steps = steps.collect();
            kept.steps.push(steps);
        }
        Ok(kept)
    }

    fn place(&mut self, state: u32) -> u32 {
        let Self { states, places, .. } = self;
        *places.entry(state).or_insert_with(|| {
            states.push(state);
            states.len() as u32 - 1
        })
    }

    /// By place those from which letters lead there.
    fn before(&self) -> Vec<Vec<u32>> {
        let mut before = vec![Vec::new(); self.states.len()];
        for (from, steps) in self.steps.iter().enumerate() {
            steps.iter().for_each(|step| before[step.1 as usize].push(from as u32));
        }
        before
    }
}

impl Automaton {
    /// Finds the classes that are read on each way to where a level leads, from some places from which letters lead to
    /// these and to places where they are known: the greatest solution, as dominators are found.
    fn find_needs(
        &mut self,
        level: Level,
        places: &[usize],
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        let Self { graph, before, is_final, begun, needs, .. } = self;
        let is_goal = |place: usize| match level {
            0 => is_final[place],
            _ => begun[place] <= level,
        };
        let needs = &mut needs[level as usize];
        // Others are known, or nobody asks about them.
        let mut waits = vec![true; needs.len()];
        for &place in places {
            needs[place] = if is_goal(place) { [0; 4] } else { [u64::MAX; 4] };
        }
        let mut work: VecDeque<usize> =
            places.iter().rev().copied().filter(|&place| !is_goal(place)).collect();
        while let Some(place) = work.pop_front() {
            waits[place] = false;
            meter.spend(1 + graph.steps[place].len() as u64)?;
            let mut needed = needs[place];
            for (classes, to) in &graph.steps[place] {
                let mut on_way = needs[*to as usize];
                if members(classes).nth(1).is_none() {
                    add_all(&mut on_way, classes);
                }
                needed.iter_mut().zip(on_way).for_each(|(all, on_way)| *all &= on_way);
            }
            if needed != needs[place] {
                needs[place] = needed;
                for &from in &before[place] {
                    let from = from as usize;
                    if !is_goal(from) && !std::mem::replace(&mut waits[from], true) {
                        work.push_back(from);
                    }
                }
            }
        }
        Ok(())
    }

    /// The places to which letters lead from one, as far as nobody asked about them.
    fn unknown_from(&self, place: usize) -> Vec<usize> {
        let mut met = vec![false; self.begun.len()];
        let mut places = vec![place];
        let mut done = 0;
        places.retain(|&place| self.begun[place] == UNKNOWN);
        places.iter().for_each(|&place| met[place] = true);
        while let Some(&place) = places.get(done) {
            done += 1;
            for &(_, to) in &self.graph.steps[place] {
                let to = to as usize;
                if self.begun[to] == UNKNOWN && !std::mem::replace(&mut met[to], true) {
                    places.push(to);
                }
            }
        }
        places
    }

    /// The highest level: what leads out of the rule at all leads there.
    fn highest(&self) -> Level {
        self.needs.len() as Level - 1
    }

    /// Bytes held, with so many levels.
    fn bytes(&self, levels: usize) -> usize {
        let steps: usize = self.graph.steps.iter().map(|steps| size_of_val(&**steps) + 52).sum();
        let classes = size_of::<ClassSet>() * levels;
        size_of::<Self>() + self.graph.states.len() * (18 + classes) + steps
    }
}

impl Automata {
    /// Whether all pairs have all tokens that they need.
    pub(super) fn is_finished(&self) -> bool {
        self.unfinished.is_empty()
    }
}

impl Rows {
    /// The last pair that is new, of a state that does not count.
    pub(super) fn begin_plain(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let Some(at) = self.place_of(self.pairs[pair as usize].state, meter)? else {
            self.walk(pair, meter)?;
            self.fresh.pop();
            self.explore(pair);
            return Ok(());
        };
        let automaton = &self.automata.all[at.automaton];
        let level = match automaton.begun[at.place] {
            UNREACHABLE if self.is_between(pair) => {
                self.fresh.pop();
                return Ok(()); // no way out
            }
            UNREACHABLE | UNKNOWN => 0,
            begun if self.is_between(pair) => begun.saturating_sub(1),
            _ => 0,
        };
        self.walk_toward(pair, (at, level), meter)?;
        self.fresh.pop();
        self.explore(pair);
        self.automata.unfinished.push((pair, at, level));
        Ok(())
    }

    fn is_between(&self, pair: PairId) -> bool {
        self.pairs[pair as usize].node == self.dawg.root()
    }

    fn walk_toward(
        &mut self,
        pair: PairId,
        (at, level): (Place, Level),
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        let from = (self.pairs[pair as usize].state, self.pairs[pair as usize].node);
        let automaton = &self.automata.all[at.automaton];
        let toward = Toward { automaton, level, is_one_enough: false };
        let most_bytes = self.most_bytes.saturating_sub(self.bytes);
        self.walk.from(from, Some(toward), (&self.network, &self.dawg), most_bytes, meter)
    }

    /// Looks at more tokens for the last pair of an automaton that may need them.
    pub(super) fn go_on_with_last(&mut self, meter: &mut Meter) -> Result<(), Halt> {
        let Some(&(pair, at, level)) = self.automata.unfinished.last() else { return Ok(()) };
        // A token that ends in a state of a higher level has exits of more tokens.
        let clean = self.clean[pair as usize];
        let is_enough = clean <= level + 1 && !self.lacks(pair, at, level + 1);
        let mut next = level;
        if !is_enough {
            self.find_begun(at, meter)?;
            let automaton = &self.automata.all[at.automaton];
            let begun = automaton.begun[at.place];
            next = match clean {
                UNREACHABLE if self.is_between(pair) && begun > level + 1 => begun - 1,
                UNREACHABLE => automaton.highest(),
                _ => clean.saturating_sub(1).max(level + 1),
            };
            let is_left = begun != UNREACHABLE || !self.is_between(pair);
            next = if is_left { next.min(automaton.highest()) } else { level };
        }
        if next > level {
            self.walk_toward(pair, (at, next), meter)?;
            self.explore(pair);
            if let Some(last) = self.automata.unfinished.last_mut() {
                last.2 = next;
            }
        } else {
            self.automata.unfinished.pop();
        }
        Ok(())
    }

    /// Whether exits that finish so many tokens may be missing, at the node that covers all that there can be.
    fn lacks(&mut self, pair: PairId, at: Place, tokens: u32) -> bool {
        let Some(node) = self.automata.all[at.automaton].hard else { return false };
        let clean = self.clean[pair as usize];
        if !is_kept(&self.dawg, &Exit { node, tokens, bytes: 0 }, clean) {
            return false;
        }
        let root = self.dawg.root();
        let row = self.pairs[pair as usize].row.exits.iter();
        let known = row.filter(|exit| exit.tokens <= tokens && exit.node != root);
        let known: Vec<NodeId> = known.map(|exit| exit.node).collect();
        let known = self.dawg.union(&known);
        !known.is_some_and(|known| self.dawg.covers(known, node))
    }

    /// The place of a state in its automaton, if letters lead from there to no call.
    fn place_of(&mut self, state: u32, meter: &mut Meter) -> Result<Option<Place>, Halt> {
        if self.network.counts_tokens() {
            return Ok(None);
        }
        let rule = self.network.rule_of(state);
        let automaton = match self.automata.of_rule.get(&rule) {
            Some(&known) => known,
            None => self.find_automaton(rule, meter)?,
        };
        Ok(automaton.and_then(|automaton| {
            let place = *self.automata.all[automaton].graph.places.get(&state)? as usize;
            Some(Place { automaton, place })
        }))
    }

    /// Makes the automaton of a rule, if it has a large one.
    fn find_automaton(&mut self, rule: u32, meter: &mut Meter) -> Result<Option<usize>, Halt> {
        let network = self.network.clone();
        let graph = Graph::of_rule(rule, &mut self.walk, &network, meter)?;
        let mut number = None;
        if graph.states.len() >= MANY_STATES {
            let is_final: Vec<bool> =
                graph.states.iter().map(|&state| network.is_final(state)).collect();
            let mut automaton = Automaton {
                before: graph.before(),
                begun: vec![UNKNOWN; is_final.len()],
                needs: vec![vec![[0; 4]; is_final.len()]],
                hard: self.hard_behind(&graph, &is_final, meter)?,
                is_final,
                graph,
            };
            let all: Vec<usize> = (0..automaton.begun.len()).collect();
            automaton.find_needs(0, &all, meter)?;
            self.bytes += automaton.bytes(1);
            number = Some(self.automata.all.len());
            self.automata.all.push(automaton);
        }
        self.bytes += 25;
        self.automata.of_rule.insert(rule, number);
        Ok(number)
    }

    /// Finds out how far a place is from the end, and all to which letters lead from there.
    fn find_begun(&mut self, at: Place, meter: &mut Meter) -> Result<(), Halt> {
        let places = self.automata.all[at.automaton].unknown_from(at.place);
        if places.is_empty() {
            return Ok(());
        }
        let found = self.find_begun_of(at.automaton, &places, meter);
        if found.is_err() {
            let begun = &mut self.automata.all[at.automaton].begun;
            places.iter().for_each(|&place| begun[place] = UNKNOWN);
        }
        found
    }

    fn find_begun_of(
        &mut self,
        number: usize,
        places: &[usize],
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        for level in 0.. {
            let automaton = &mut self.automata.all[number];
            if level > automaton.highest() {
                // Where the distance is known, there is nothing left to read, or no way.
                let known = automaton.begun.iter();
                let known = known.map(|&begun| if begun <= level { [0; 4] } else { [u64::MAX; 4] });
                automaton.needs.push(known.collect());
                self.bytes += size_of::<ClassSet>() * automaton.begun.len();
            }
            if level > 0 {
                automaton.find_needs(level, places, meter)?;
            }
            let mut found = Vec::new();
            let automaton = &self.automata.all[number];
            for &place in places.iter().filter(|&&place| automaton.begun[place] >= UNREACHABLE) {
                let from = (automaton.graph.states[place], self.dawg.root());
                let toward = Toward { automaton, level, is_one_enough: true };
                let most_bytes = self.most_bytes.saturating_sub(self.bytes);
                let both = (&*self.network, &self.dawg);
                self.walk.from(from, Some(toward), both, most_bytes, meter)?;
                let is_found = !self.walk.left.is_empty() || !self.walk.ended.is_empty();
                found.extend(is_found.then_some(place));
            }
            let automaton = &mut self.automata.all[number];
            if level == 0 {
                for &place in places {
                    automaton.begun[place] =
                        if automaton.is_final[place] { 0 } else { UNREACHABLE };
                }
            }
            for &place in &found {
                automaton.begun[place] = automaton.begun[place].min(level + 1);
            }
            if found.is_empty() && level >= automaton.highest() {
                break;
            }
        }
        Ok(())
    }

    /// Where a token can leave an automaton with strings that need more than one token by themselves.
    fn hard_behind(
        &mut self,
        graph: &Graph,
        is_final: &[bool],
        meter: &mut Meter,
    ) -> Result<Option<NodeId>, Halt> {
        let mut last: ClassSet = [0; 4];
        let steps = graph.steps.iter().flatten();
        steps.filter(|step| is_final[step.1 as usize]).for_each(|step| add_all(&mut last, &step.0));
        let mut follow: ClassSet = [0; 4];
        for &state in &graph.states {
            add_all(&mut follow, &self.follow[self.network.rule_of(state) as usize]);
        }
        let all = 0..self.dawg.reached() as NodeId;
        meter.spend(all.len() as u64)?;
        let mut nodes: Vec<NodeId> =
            all.flat_map(|node| self.dawg.children_by(node, &last)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let hard = |&node: &NodeId| {
            let hard = self.dawg.harder(node, 1)?;
            self.dawg.beginning_with(hard, &follow)
        };
        let nodes: Vec<NodeId> = nodes.iter().filter_map(hard).collect();
        Ok(self.dawg.union(&nodes))
    }
}
