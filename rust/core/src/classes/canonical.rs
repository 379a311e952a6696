//! Canonical displacement states: what two tokens are compared by.
//!
//! The automaton keeps the continuations beneath a popped frame as a set, since uniting them on
//! the way would make five times as many states. But two sets may say the same: `)` and ` )`
//! differ in that the blank can also be read beneath the frame, which adds nothing to what `)`
//! does there. So the states where tokens end, a few thousand, are made canonical once: each
//! frame gets one continuation, the union of all it has, recursively.

use super::displacement::{DisplacementAutomaton, DisplacementId, Popped};
use crate::budget::Halt;
use crate::stacks::{NONE, SetId, sort_pairs};
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
    ) -> Result<DisplacementId, Halt> {
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
    // Apart from what recurses, so that its frame is not on the stack many times.
    #[inline(never)]
    fn assemble(
        &mut self,
        automaton: &mut DisplacementAutomaton<'_>,
        alive: SetId,
        mut popped: Vec<Popped>,
    ) -> Result<DisplacementId, Halt> {
        automaton.group(&mut popped)?;
        if let Some(pairs) = overlapping(automaton, &popped) {
            automaton.spend(pairs.len())?;
            let mut single: Vec<(DisplacementId, u32)> = Vec::with_capacity(pairs.len());
            for group in pairs.chunk_by(|a, b| a.0 == b.0) {
                let states: Vec<DisplacementId> = group.iter().map(|g| g.1).collect();
                single.push((self.unite(automaton, states)?, group[0].0));
            }
            popped = gather(automaton, single)?;
        }
        Ok(automaton.intern(alive, &popped))
    }

    /// The union of canonical states, which come sorted and distinct.
    fn unite(
        &mut self,
        automaton: &mut DisplacementAutomaton<'_>,
        states: Vec<DisplacementId>,
    ) -> Result<DisplacementId, Halt> {
        if let [only] = states[..] {
            return Ok(only);
        }
        if let Some(&known) = self.unions.get(&states) {
            return Ok(known);
        }
        let mut alive = NONE;
        let mut popped = Vec::new();
        for &state in &states {
            let (a, p) = automaton.parts(state);
            alive = automaton.unite_stacks(alive, a)?;
            popped.extend(p);
        }
        let united = self.assemble(automaton, alive, popped)?;
        self.unions.insert(states, united);
        Ok(united)
    }
}

/// Each frame with each of its continuations, sorted, if some frame has more than one.
fn overlapping(
    automaton: &DisplacementAutomaton<'_>,
    entries: &[Popped],
) -> Option<Vec<(u32, DisplacementId)>> {
    if entries.len() < 2 {
        return None;
    }
    let mut pairs: Vec<(u32, DisplacementId)> = Vec::new();
    for &(continuation, labels) in entries {
        pairs.extend(automaton.frames(labels).map(|frame| (frame, continuation)));
    }
    sort_pairs(&mut pairs);
    pairs.windows(2).any(|w| w[0].0 == w[1].0).then_some(pairs)
}

/// Pairs of a continuation and a frame, the frames distinct, as entries sorted by continuation.
fn gather(
    automaton: &mut DisplacementAutomaton<'_>,
    mut pairs: Vec<(DisplacementId, u32)>,
) -> Result<Vec<Popped>, Halt> {
    sort_pairs(&mut pairs);
    let mut out = Vec::new();
    for group in pairs.chunk_by(|a, b| a.0 == b.0) {
        let frames: Vec<u32> = group.iter().map(|g| g.1).collect();
        out.push((group[0].0, automaton.labels(&frames)?));
    }
    Ok(out)
}
