//! Rules that are one automaton by themselves, such as formats and names, and the letters that each way to the end of
//! such a rule reads.

use super::dawg::NodeId;
use super::tails::{KnownSteps, TailCalls};
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, Network, add_all, members};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The maximum number of states of an automaton.
const MOST_STATES: usize = 1 << 15;

/// States of a rule, and where letters lead from them.
#[derive(Debug, Default)]
pub(super) struct LetterGraph {
    pub(super) states: Vec<u32>,
    /// The places of states.
    pub(super) places: FxHashMap<u32, u32>,
    /// By place the places to which classes lead.
    pub(super) steps: Vec<Vec<(ClassSet, u32)>>,
}

/// What tokens of an automaton are looked at: those that lead out of the rule, or those that end where at most so many
/// more tokens lead out.
pub(super) type ExitLevel = u32;

/// States from which letters lead to no call and to no state that counts.
pub(super) struct LetterAutomaton {
    pub(super) graph: LetterGraph,
    /// By place those from which letters lead there.
    before: Vec<Vec<u32>>,
    pub(super) is_final: Vec<bool>,
    /// By place the tokens that begin until the rule is left, at least: [`UNREACHABLE`] where no tokens lead out,
    /// [`UNKNOWN`] where nobody asked.
    pub(super) begun: Vec<u32>,
    /// By level and place the classes that are read on each way to where the level leads.
    needs: Vec<Vec<ClassSet>>,
    /// Where a token can leave the rule with strings that need more than one token by themselves, if anywhere.
    pub(super) hard: Option<NodeId>,
}

/// What nobody asked for.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// A state of an automaton: the number of the one, and the place of the other.
#[derive(Clone, Copy)]
pub(super) struct AutomatonState {
    pub(super) automaton: usize,
    pub(super) place: usize,
}

/// Where a walk in an automaton leads.
#[derive(Clone, Copy)]
pub(super) struct Toward<'a> {
    pub(super) automaton: &'a LetterAutomaton,
    pub(super) level: ExitLevel,
    /// Whether it is enough to know that there is a way.
    pub(super) is_one_enough: bool,
}

impl Toward<'_> {
    /// Whether a token that ends in a state is one of those looked for.
    pub(super) fn ends_in(&self, state: u32) -> bool {
        let LetterAutomaton { graph, begun, .. } = self.automaton;
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

impl LetterGraph {
    /// The states of a rule from which letters lead to no call, to no set, and to no state that counts.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn of_rule(
        rule: u32,
        network: &Network,
        (tails, known): (&TailCalls, &mut KnownSteps),
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
            let steps: &[_] = if is_full { &[] } else { known.of(network, tails, state) };
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

impl LetterAutomaton {
    /// Of a graph; nobody has asked for distances.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn new(
        graph: LetterGraph,
        is_final: Vec<bool>,
        hard: Option<NodeId>,
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let (begun, needs) = (vec![UNKNOWN; is_final.len()], vec![vec![[0; 4]; is_final.len()]]);
        let all: Vec<usize> = (0..is_final.len()).collect();
        let mut out = Self { before: graph.before(), graph, is_final, begun, needs, hard };
        out.find_needs(0, &all, meter)?;
        Ok(out)
    }

    /// Adds a level, which leads to all places from which tokens lead out; how many bytes it takes.
    pub(super) fn add_level(&mut self) -> usize {
        // Where distances are known, the highest level leads to the same places as this one.
        let needs = self.needs[self.highest() as usize].clone();
        self.needs.push(needs);
        size_of::<ClassSet>() * self.begun.len()
    }

    /// Finds the classes that are read on each way to where a level leads, from some places from which letters lead to
    /// these and to places where they are known: the greatest solution, as dominators are found.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn find_needs(
        &mut self,
        level: ExitLevel,
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
    pub(super) fn unknown_from(&self, place: usize) -> Vec<usize> {
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
    pub(super) fn highest(&self) -> ExitLevel {
        self.needs.len() as ExitLevel - 1
    }

    /// Bytes held, without levels but the first.
    pub(super) fn bytes(&self) -> usize {
        let steps: usize = self.graph.steps.iter().map(|steps| size_of_val(&**steps) + 52).sum();
        size_of::<Self>() + self.graph.states.len() * (18 + size_of::<ClassSet>()) + steps
    }
}
