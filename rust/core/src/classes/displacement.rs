//! The displacement automaton: one deterministic automaton for all tokens (DESIGN.md).
//!
//! A state says what the bytes read so far do to a stack nobody knows. For each frame that may
//! have been on top:
//! - *alive*: the set of stacks that now stand in place of the frame, above the unknown rest;
//! - *popped*: the frame was popped somewhere on the way; what the bytes since then do to the
//!   stack beneath is a displacement state again, restricted to the frames that can stand beneath.
//!
//! Frames with the same alive set, and frames with the same continuation beneath, are kept
//! together. States are hash-consed and transitions made when first needed; two tokens are in one
//! class when they lead to the same state.
//!
//! Cost is counted, not timed ("work": entries of stack sets and of states written), so that a
//! bound on it gives the same result on every machine.

use super::companions::companions;
use super::frames::{FrameSetId, FrameSets};
use crate::limits::Limits;
use crate::network::{Adjacency, BOTTOM, Network};
use crate::stacks::{NONE, OverBudget, REST, SetId, Stepper, hash_of, sort_pairs};
use hashbrown::HashTable;

/// A displacement state.
pub(crate) type DisplacementId = u32;

/// No stack survives: the token is never valid.
pub(crate) const DEAD: DisplacementId = 0;

/// A value, and the frames that have it: an alive set, or a continuation beneath.
pub(crate) type FramePair = (u32, FrameSetId);

const UNKNOWN: u32 = u32::MAX;
const OVER: u32 = u32::MAX - 1;
/// Pops nested deeper than this are over budget: a transition recurses along them.
const MAX_NESTING: u32 = 500;

/// Frames written between two looks for an end of the work.
pub(crate) const POLL_EVERY: usize = 1 << 17;

/// Why there is no automaton.
pub(crate) enum Stopped {
    OverBudget,
    /// The caller wants no more of it.
    Cancelled,
}

impl From<OverBudget> for Stopped {
    fn from(_: OverBudget) -> Self {
        Stopped::OverBudget
    }
}

/// The automaton, as far as it has been needed.
pub(crate) struct DisplacementAutomaton<'a> {
    network: &'a Network,
    stepper: Stepper<&'a Network>,
    pub(crate) frames: FrameSets,
    num_classes: usize,
    /// For each frame the number of its adjacency set.
    beneath_of: Vec<u32>,
    /// For each adjacency set the displacement of the empty string on its frames.
    beneath: Vec<DisplacementId>,
    /// States: alive entries, then popped entries, flat.
    pairs: Vec<FramePair>,
    bounds: Vec<(u32, u32, u32)>,
    nesting: Vec<u32>,
    table: HashTable<DisplacementId>,
    transitions: Vec<DisplacementId>,
    max_bytes: usize,
    start: DisplacementId,
}

/// Sizes of the automaton, for reports and tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AutomatonSize {
    /// Displacement states made.
    pub states: usize,
    /// Stack sets made.
    pub stack_sets: usize,
    /// Bytes held.
    pub bytes: usize,
    /// Work units spent.
    pub work: u64,
}

impl<'a> DisplacementAutomaton<'a> {
    /// The automaton before the first byte, all frames unknown.
    pub(crate) fn new(
        network: &'a Network,
        adjacency: &Adjacency,
        limits: &Limits,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Stopped> {
        let mut out = Self {
            network,
            stepper: Stepper::new(network),
            frames: FrameSets::new(),
            num_classes: network.alphabet().len(),
            beneath_of: (0..network.len() as u32)
                .map(|q| adjacency.set_of_rule(network.rule_of(q)))
                .collect(),
            beneath: Vec::new(),
            pairs: Vec::new(),
            bounds: Vec::new(),
            nesting: Vec::new(),
            table: HashTable::new(),
            transitions: Vec::new(),
            max_bytes: limits.max_automaton_bytes,
            start: DEAD,
        };
        out.stepper.sets.max_depth = limits.max_stack_depth;
        out.intern(&[], &[]);
        let mut written = 0;
        for set in adjacency.sets() {
            written += 1 + set.len();
            if written > POLL_EVERY {
                written = 0;
                if out.is_full() {
                    return Err(Stopped::OverBudget);
                }
                if !go_on() {
                    return Err(Stopped::Cancelled);
                }
            }
            let alive = out.identity(set.iter().copied())?;
            let id = out.intern(&alive, &[]);
            out.beneath.push(id);
        }
        out.start = out.initial(limits, go_on)?;
        Ok(out)
    }

    /// The displacement of the empty string.
    pub(crate) fn start(&self) -> DisplacementId {
        self.start
    }

    /// Work so far.
    pub(crate) fn work(&self) -> u64 {
        self.stepper.sets.work
    }

    /// From here on work may reach `allowance` and no more.
    pub(crate) fn allow(&mut self, allowance: u64) {
        self.stepper.sets.allowance = allowance;
    }

    /// The alive and the popped entries of a state.
    pub(crate) fn parts(&self, state: DisplacementId) -> (Vec<FramePair>, Vec<FramePair>) {
        let (a, b, c) = self.bounds[state as usize];
        (self.pairs[a as usize..b as usize].to_vec(), self.pairs[b as usize..c as usize].to_vec())
    }

    /// The union of two stack sets.
    pub(crate) fn unite_stacks(&mut self, a: u32, b: u32) -> Result<u32, OverBudget> {
        self.stepper.sets.union(a, b)
    }

    /// Counts work done elsewhere.
    pub(crate) fn spend(&mut self, work: usize) -> Result<(), OverBudget> {
        self.stepper.sets.work += work as u64;
        if self.stepper.sets.work > self.stepper.sets.allowance { Err(OverBudget) } else { Ok(()) }
    }

    /// How large it has become.
    pub(crate) fn size(&self) -> AutomatonSize {
        AutomatonSize {
            states: self.bounds.len(),
            stack_sets: self.stepper.sets.len(),
            bytes: self.stepper.bytes()
                + self.frames.bytes()
                + self.pairs.capacity() * 8
                + self.bounds.capacity() * 16
                + self.table.capacity() * 5
                + self.transitions.capacity() * 4,
            work: self.stepper.sets.work,
        }
    }

    /// Frames whose alive set is themselves, grouped as states group them.
    fn identity(
        &mut self,
        frames: impl Iterator<Item = u32>,
    ) -> Result<Vec<FramePair>, OverBudget> {
        let mut alive = Vec::new();
        for frame in frames {
            let set =
                if frame == BOTTOM { REST } else { self.stepper.sets.add(&[(frame, REST)])? };
            alive.push((set, self.frames.add(&[frame])));
        }
        alive.sort_unstable();
        Ok(alive)
    }

    /// The start: what can be on top after a byte was read, and the start of the text, each with
    /// what always stands beside it.
    ///
    /// A frame that is uncovered by a pop only ever stands beside the frame that was popped, so
    /// it is reached through that frame's continuation and needs no entry here.
    fn initial(
        &mut self,
        limits: &Limits,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<DisplacementId, Stopped> {
        let network = self.network;
        let mut alive = Vec::new();
        let mut popped = Vec::new();
        for (q, set) in
            companions(network, &mut self.stepper, limits, go_on)?.into_iter().enumerate()
        {
            let Some(set) = set else { continue };
            let (stacks, pops) = self.without_rest(set)?;
            if stacks != NONE {
                alive.push((stacks, self.frames.add(&[q as u32])));
            }
            if pops {
                popped.push(q as u32);
            }
        }
        self.group(&mut alive);
        let popped = self.popped_now(&popped);
        Ok(self.intern(&alive, &popped))
    }

    /// The set without the bare rest, and whether that was in it.
    fn without_rest(&mut self, set: SetId) -> Result<(SetId, bool), OverBudget> {
        if !self.stepper.sets.has_rest(set) {
            return Ok((set, false));
        }
        Ok((self.stepper.sets.without_rest(set)?, true))
    }

    /// Entries for frames popped with nothing read since: sorted by continuation.
    fn popped_now(&mut self, frames: &[u32]) -> Vec<FramePair> {
        let mut by_set: Vec<(u32, u32)> =
            frames.iter().map(|&f| (self.beneath_of[f as usize], f)).collect();
        by_set.sort_unstable();
        let mut out: Vec<FramePair> = by_set
            .chunk_by(|a, b| a.0 == b.0)
            .map(|group| {
                let members: Vec<u32> = group.iter().map(|g| g.1).collect();
                (self.beneath[group[0].0 as usize], self.frames.add(&members))
            })
            .filter(|entry| entry.0 != DEAD)
            .collect();
        out.sort_unstable();
        out
    }

    /// The state with these entries, each list sorted by its first part, which is distinct.
    pub(crate) fn intern(&mut self, alive: &[FramePair], popped: &[FramePair]) -> DisplacementId {
        let hash = hash_of(&(alive, popped));
        let found = self.table.find(hash, |&id| {
            let (a, b, c) = self.bounds[id as usize];
            self.pairs[a as usize..b as usize] == *alive
                && self.pairs[b as usize..c as usize] == *popped
        });
        if let Some(&id) = found {
            return id;
        }
        let id = self.bounds.len() as DisplacementId;
        let a = self.pairs.len() as u32;
        self.pairs.extend_from_slice(alive);
        let b = self.pairs.len() as u32;
        self.pairs.extend_from_slice(popped);
        self.bounds.push((a, b, self.pairs.len() as u32));
        let nesting = popped.iter().map(|e| self.nesting[e.0 as usize] + 1).max().unwrap_or(0);
        self.nesting.push(nesting);
        self.transitions.resize(self.transitions.len() + self.num_classes, UNKNOWN);
        let (bounds, pairs) = (&self.bounds, &self.pairs);
        self.table.insert_unique(hash, id, |&id| {
            let (a, b, c) = bounds[id as usize];
            hash_of(&(&pairs[a as usize..b as usize], &pairs[b as usize..c as usize]))
        });
        id
    }

    /// The state after one more byte.
    ///
    /// # Errors
    /// [`OverBudget`] when it would take more work than is allowed; the answer is remembered, so
    /// that every token that passes here gets the same.
    #[inline]
    pub(crate) fn next(
        &mut self,
        state: DisplacementId,
        class: u8,
    ) -> Result<DisplacementId, OverBudget> {
        let slot = state as usize * self.num_classes + class as usize;
        match self.transitions[slot] {
            UNKNOWN => {
                let result = self.make(state, class);
                self.transitions[slot] = *result.as_ref().unwrap_or(&OVER);
                result
            }
            OVER => Err(OverBudget),
            known => Ok(known),
        }
    }

    fn make(&mut self, state: DisplacementId, class: u8) -> Result<DisplacementId, OverBudget> {
        if self.nesting[state as usize] > MAX_NESTING || self.is_full() {
            return Err(OverBudget);
        }
        let (a, b, c) = self.bounds[state as usize];
        let mut alive: Vec<FramePair> = Vec::new();
        let mut done: Vec<u32> = Vec::new();
        for i in a..b {
            let (set, frames) = self.pairs[i as usize];
            let after = self.stepper.step(set, class)?;
            if after == NONE {
                continue;
            }
            let (stacks, pops) = self.without_rest(after)?;
            if stacks != NONE {
                alive.push((stacks, frames));
            }
            if pops {
                done.extend_from_slice(self.frames.frames(frames));
            }
        }
        let mut popped = if done.is_empty() { Vec::new() } else { self.popped_now(&done) };
        for i in b..c {
            let (beneath, frames) = self.pairs[i as usize];
            let after = self.next(beneath, class)?;
            if after != DEAD {
                popped.push((after, frames));
            }
        }
        self.group(&mut alive);
        self.group(&mut popped);
        self.stepper.sets.work += (alive.len() + popped.len()) as u64;
        if self.stepper.sets.work > self.stepper.sets.allowance {
            return Err(OverBudget);
        }
        Ok(self.intern(&alive, &popped))
    }

    fn is_full(&self) -> bool {
        // Checked once a transition: the parts that grow are the large ones.
        self.pairs.len() * 8 + self.transitions.len() * 4 + self.stepper.bytes() > self.max_bytes
    }

    /// Unites the frames of entries with the same first part; sorts.
    pub(crate) fn group(&mut self, entries: &mut Vec<FramePair>) {
        sort_pairs(entries);
        if entries.windows(2).all(|w| w[0].0 != w[1].0) {
            return;
        }
        let mut out = Vec::with_capacity(entries.len());
        let mut sets = Vec::new();
        for group in entries.chunk_by(|x, y| x.0 == y.0) {
            sets.clear();
            sets.extend(group.iter().map(|e| e.1));
            sets.dedup();
            out.push((group[0].0, self.frames.union(&sets, &mut self.stepper.sets.work)));
        }
        *entries = out;
    }
}
