//! Canonical displacement states: what two tokens are compared by.
//!
//! The automaton keeps the continuations beneath a popped frame as a set, since uniting them on
//! the way would make five times as many states. But two sets may say the same: `)` and ` )`
//! differ in that the blank can also be read beneath the frame, which adds nothing to what `)`
//! does there. So the states where tokens end, a few thousand, are made canonical once: each
//! frame gets one continuation, the union of all it has, recursively.

use super::displacement::{DisplacementAutomaton, DisplacementId, FramePair};
use super::frames::FrameSets;
use crate::stacks::OverBudget;
use rustc_hash::FxHashMap;

/// Remembers canonical states and unions of them.
#[derive(Default)]
pub(crate) struct Canonical {
    known: FxHashMap<DisplacementId, DisplacementId>,
    unions: FxHashMap<Vec<DisplacementId>, DisplacementId>,
}

impl Canonical {
    /// The state with the same effects in which each popped frame has one continuation.
    pub(crate) fn of(
        &mut self,
        automaton: &mut DisplacementAutomaton<'_>,
        state: DisplacementId,
    ) -> Result<DisplacementId, OverBudget> {
        if let Some(&known) = self.known.get(&state) {
            return Ok(known);
        }
        let (alive, mut popped) = automaton.parts(state);
        for entry in &mut popped {
            entry.0 = self.of(automaton, entry.0)?;
        }
        let canonical = self.assemble(automaton, alive, popped)?;
        self.known.insert(state, canonical);
        self.known.insert(canonical, canonical);
        Ok(canonical)
    }

    /// The canonical state of these entries; continuations are canonical, and a frame may have
    /// several.
    fn assemble(
        &mut self,
        automaton: &mut DisplacementAutomaton<'_>,
        mut alive: Vec<FramePair>,
        mut popped: Vec<FramePair>,
    ) -> Result<DisplacementId, OverBudget> {
        automaton.group(&mut alive);
        automaton.group(&mut popped);
        if overlaps(&automaton.frames, &popped) {
            let mut pairs = spread(&automaton.frames, &popped);
            pairs.sort_unstable();
            let mut single: Vec<(DisplacementId, u32)> = Vec::with_capacity(pairs.len());
            for group in pairs.chunk_by(|a, b| a.0 == b.0) {
                let states: Vec<DisplacementId> = group.iter().map(|g| g.1).collect();
                single.push((self.unite(automaton, states)?, group[0].0));
            }
            popped = gather(&mut automaton.frames, single);
        }
        Ok(automaton.intern(&alive, &popped))
    }

    /// The union of canonical states, which come sorted and distinct.
    fn unite(
        &mut self,
        automaton: &mut DisplacementAutomaton<'_>,
        states: Vec<DisplacementId>,
    ) -> Result<DisplacementId, OverBudget> {
        if let [only] = states[..] {
            return Ok(only);
        }
        if let Some(&known) = self.unions.get(&states) {
            return Ok(known);
        }
        let mut alive = Vec::new();
        let mut popped = Vec::new();
        for &state in &states {
            let (a, p) = automaton.parts(state);
            alive.extend(a);
            popped.extend(p);
        }
        let mut pairs = spread(&automaton.frames, &alive);
        pairs.sort_unstable();
        pairs.dedup();
        automaton.spend(pairs.len())?;
        let mut single = Vec::with_capacity(pairs.len());
        for group in pairs.chunk_by(|a, b| a.0 == b.0) {
            let mut set = group[0].1;
            for &(_, other) in &group[1..] {
                set = automaton.unite_stacks(set, other)?;
            }
            single.push((set, group[0].0));
        }
        let alive = gather(&mut automaton.frames, single);
        let united = self.assemble(automaton, alive, popped)?;
        self.unions.insert(states, united);
        Ok(united)
    }
}

/// Whether a frame is in two of the entries.
fn overlaps(frames: &FrameSets, entries: &[FramePair]) -> bool {
    if entries.len() < 2 {
        return false;
    }
    let mut all: Vec<u32> = entries.iter().flat_map(|e| frames.frames(e.1)).copied().collect();
    all.sort_unstable();
    all.windows(2).any(|w| w[0] == w[1])
}

/// Each frame with each of its values.
fn spread(frames: &FrameSets, entries: &[FramePair]) -> Vec<(u32, u32)> {
    entries
        .iter()
        .flat_map(|&(value, set)| frames.frames(set).iter().map(move |&f| (f, value)))
        .collect()
}

/// Pairs of a value and a frame, the frames distinct, as entries sorted by value.
fn gather(frames: &mut FrameSets, mut pairs: Vec<(u32, u32)>) -> Vec<FramePair> {
    pairs.sort_unstable();
    pairs
        .chunk_by(|a, b| a.0 == b.0)
        .map(|group| {
            let members: Vec<u32> = group.iter().map(|g| g.1).collect();
            (group[0].0, frames.add(&members))
        })
        .collect()
}
