//! The displacement automaton: one deterministic automaton for all tokens
//! (docs/design/classes.md, "Displacement").
//!
//! A state says what the bytes read so far do to a stack nobody knows. For each frame that may
//! have been on top:
//! - *alive*: the stacks that now stand in place of the frame, above the unknown rest;
//! - *popped*: the frame was popped somewhere on the way; what the bytes since then do to the
//!   stack beneath is a displacement state again, restricted to the frames that can stand beneath.
//!
//! What is alive is one stack set for all frames: each stack ends in a *label*, the frame in whose
//! place it stands. So a byte is read once for all frames whose stacks begin alike, and a label
//! that comes to the top is a frame that has just been popped. Frames with the same continuation
//! beneath are kept together, as a set of labels. States are hash-consed and transitions made when
//! first needed; two tokens are in one class when they lead to the same state.
//!
//! Cost is counted, not timed ("work": entries of stack sets and of states written), so that a
//! bound on it gives the same result on every machine.

use super::companions::companions;
use crate::budget::{Halt, Interrupt};
use crate::hash::hash_of;
use crate::limits::Limits;
use crate::network::{Adjacency, BOTTOM, Network};
use crate::stacks::{Entry, LABEL, NONE, SetId, Stepper, sort_pairs};
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// A displacement state.
pub(crate) type DisplacementId = u32;

/// No stack survives: the token is never valid.
pub(crate) const DEAD: DisplacementId = 0;

/// A continuation beneath, and the labels of the frames that have it.
pub(crate) type Popped = (DisplacementId, SetId);

const UNKNOWN: u32 = u32::MAX;
const OVER: u32 = u32::MAX - 1;
/// Pops nested deeper than this are over budget: making states canonical recurses along them.
const MAX_NESTING: u32 = 500;

/// The automaton, as far as it has been needed.
pub(crate) struct DisplacementAutomaton<'a> {
    network: &'a Network,
    stepper: Stepper<&'a Network>,
    num_classes: usize,
    /// For each frame the number of its adjacency set.
    beneath_of: Vec<u32>,
    /// For each adjacency set the displacement of the empty string on its frames.
    beneath: Vec<DisplacementId>,
    /// For a set of labels the entries of frames popped with nothing read since.
    popped_now: FxHashMap<SetId, Vec<Popped>>,
    /// For each state what is alive, and the range of its popped entries.
    states: Vec<(SetId, u32, u32)>,
    popped: Vec<Popped>,
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
    /// The automaton before the first byte, all frames unknown. With `are_alone` nothing is known to stand beside
    /// one.
    pub(crate) fn new(
        network: &'a Network,
        adjacency: &Adjacency,
        are_alone: bool,
        limits: &Limits,
        interrupt: &Interrupt,
    ) -> Result<Self, Halt> {
        let mut out = Self {
            network,
            stepper: Stepper::new(network),
            num_classes: network.alphabet().len(),
            beneath_of: (0..network.len() as u32)
                .map(|q| adjacency.set_of_rule(network.rule_of(q)))
                .collect(),
            beneath: Vec::new(),
            popped_now: FxHashMap::default(),
            states: Vec::new(),
            popped: Vec::new(),
            nesting: Vec::new(),
            table: HashTable::new(),
            transitions: Vec::new(),
            max_bytes: limits.max_automaton_bytes,
            start: DEAD,
        };
        out.stepper.sets.max_depth = limits.max_stack_depth;
        out.stepper.sets.max_bytes = limits.max_automaton_bytes;
        out.stepper.sets.meter.allow(u64::MAX, interrupt);
        out.intern(NONE, &[]);
        for set in adjacency.sets() {
            if out.is_full() {
                return Err(Halt::Bytes);
            }
            let alive = out.identity(set)?;
            let id = out.intern(alive, &[]);
            out.beneath.push(id);
        }
        out.start = out.initial(are_alone, limits, interrupt)?;
        Ok(out)
    }

    /// The displacement of the empty string.
    pub(crate) fn start(&self) -> DisplacementId {
        self.start
    }

    /// Work so far.
    pub(crate) fn work(&self) -> u64 {
        self.stepper.sets.meter.spent()
    }

    /// From here on a token may take so much work, and all tokens together no more than `total`.
    pub(crate) fn allow(&mut self, token_work: u64, total: u64) {
        let left = total.saturating_sub(self.work());
        self.stepper.sets.meter.allow_more(token_work.min(left));
    }

    /// What is alive in a state, and its popped entries.
    pub(crate) fn parts(&self, state: DisplacementId) -> (SetId, Vec<Popped>) {
        let (alive, a, b) = self.states[state as usize];
        (alive, self.popped[a as usize..b as usize].to_vec())
    }

    /// The frames of a set of labels, ascending.
    pub(crate) fn frames(&self, labels: SetId) -> impl Iterator<Item = u32> {
        self.stepper.sets.entries(labels).into_iter().map(|entry| entry.0 & !LABEL)
    }

    /// The set of the labels of these frames, which are sorted and distinct.
    pub(crate) fn labels(&mut self, frames: &[u32]) -> Result<SetId, Halt> {
        let entries: Vec<Entry> = frames.iter().map(|&frame| (LABEL | frame, NONE)).collect();
        self.stepper.sets.add(&entries)
    }

    /// The union of two stack sets.
    pub(crate) fn unite_stacks(&mut self, a: u32, b: u32) -> Result<u32, Halt> {
        self.stepper.sets.union(a, b)
    }

    /// Counts work done elsewhere.
    pub(crate) fn spend(&mut self, work: usize) -> Result<(), Halt> {
        self.stepper.sets.spend(work as u64)
    }

    /// How large it has become.
    pub(crate) fn size(&self) -> AutomatonSize {
        AutomatonSize {
            states: self.states.len(),
            stack_sets: self.stepper.sets.len(),
            bytes: self.stepper.bytes()
                + self.popped.capacity() * 8
                + self.states.capacity() * 16
                + self.table.capacity() * 5
                + self.transitions.capacity() * 4,
            work: self.work(),
        }
    }

    /// Frames in whose place they themselves stand; the bottom as the bare bottom, which reads
    /// nothing.
    fn identity(&mut self, frames: &[u32]) -> Result<SetId, Halt> {
        let mut entries: Vec<Entry> = Vec::with_capacity(frames.len());
        for &frame in frames {
            let beneath = if frame == BOTTOM { NONE } else { self.labels(&[frame])? };
            entries.push((frame, beneath));
        }
        self.stepper.sets.collect(&mut entries, &[])
    }

    /// The start: what can be on top after a byte was read, and the start of the text, each with
    /// what always stands beside it.
    ///
    /// A frame that is uncovered by a pop only ever stands beside the frame that was popped, so
    /// it is reached through that frame's continuation and needs no entry here.
    fn initial(
        &mut self,
        are_alone: bool,
        limits: &Limits,
        interrupt: &Interrupt,
    ) -> Result<DisplacementId, Halt> {
        let network = self.network;
        let mut entries = Vec::new();
        let stepper = &mut self.stepper;
        let companions = companions(network, are_alone, stepper, limits, interrupt)?;
        for (q, set) in companions.into_iter().enumerate() {
            if let Some(set) = set {
                let labelled = self.labelled(set, q as u32)?;
                self.stepper.sets.entries_into(labelled, &mut entries);
            }
        }
        let all = self.stepper.sets.collect(&mut entries, &[])?;
        let (alive, labels) = self.stepper.sets.without_labels(all)?;
        let popped = self.popped_now(labels)?;
        Ok(self.intern(alive, &popped))
    }

    /// The set with the label of a frame in place of the unknown rest.
    fn labelled(&mut self, set: SetId, frame: u32) -> Result<SetId, Halt> {
        let mut entries = self.stepper.sets.entries(set);
        for entry in &mut entries {
            // Companions are a few levels deep.
            *entry = match *entry {
                (BOTTOM, _) => (LABEL | frame, NONE),
                (top, beneath) => (top, self.labelled(beneath, frame)?),
            };
        }
        self.stepper.sets.add(&entries)
    }

    /// Entries for frames popped with nothing read since: sorted by continuation.
    fn popped_now(&mut self, labels: SetId) -> Result<Vec<Popped>, Halt> {
        if labels == NONE {
            return Ok(Vec::new());
        }
        if let Some(known) = self.popped_now.get(&labels) {
            return Ok(known.clone());
        }
        let mut by_set: Vec<(u32, u32)> =
            self.frames(labels).map(|f| (self.beneath_of[f as usize], f)).collect();
        sort_pairs(&mut by_set);
        let mut out = Vec::new();
        for group in by_set.chunk_by(|a, b| a.0 == b.0) {
            let continuation = self.beneath[group[0].0 as usize];
            if continuation != DEAD {
                let frames: Vec<u32> = group.iter().map(|g| g.1).collect();
                out.push((continuation, self.labels(&frames)?));
            }
        }
        self.group(&mut out)?;
        self.popped_now.insert(labels, out.clone());
        Ok(out)
    }

    /// The state with these parts; the popped entries are sorted by their first part, which is
    /// distinct.
    pub(crate) fn intern(&mut self, alive: SetId, popped: &[Popped]) -> DisplacementId {
        let hash = hash_of(&(alive, popped));
        let found = self.table.find(hash, |&id| {
            let (other, a, b) = self.states[id as usize];
            other == alive && self.popped[a as usize..b as usize] == *popped
        });
        if let Some(&id) = found {
            return id;
        }
        let id = self.states.len() as DisplacementId;
        let a = self.popped.len() as u32;
        self.popped.extend_from_slice(popped);
        self.states.push((alive, a, self.popped.len() as u32));
        let nesting = popped.iter().map(|e| self.nesting[e.0 as usize] + 1).max().unwrap_or(0);
        self.nesting.push(nesting);
        self.transitions.resize(self.transitions.len() + self.num_classes, UNKNOWN);
        let (states, all) = (&self.states, &self.popped);
        self.table.insert_unique(hash, id, |&id| {
            let (alive, a, b) = states[id as usize];
            hash_of(&(alive, &all[a as usize..b as usize]))
        });
        id
    }

    /// The state after one more byte.
    ///
    /// # Errors
    /// [`Halt::Work`] when it would take more work, depth or memory than is allowed; the answer is
    /// remembered, so that every token that passes here gets the same. An interrupt is not.
    #[inline]
    pub(crate) fn next(
        &mut self,
        state: DisplacementId,
        class: u8,
    ) -> Result<DisplacementId, Halt> {
        match self.transitions[self.slot(state, class)] {
            UNKNOWN => self.make(state, class),
            OVER => Err(Halt::Work),
            known => Ok(known),
        }
    }

    #[inline]
    fn slot(&self, state: DisplacementId, class: u8) -> usize {
        state as usize * self.num_classes + class as usize
    }

    /// Makes a transition after those of the continuations beneath, deepest first.
    fn make(&mut self, state: DisplacementId, class: u8) -> Result<DisplacementId, Halt> {
        let mut work = vec![state];
        while let Some(&state) = work.last() {
            let slot = self.slot(state, class);
            if self.transitions[slot] != UNKNOWN {
                work.pop(); // several asked for it
                continue;
            }
            let (_, a, b) = self.states[state as usize];
            let before = work.len();
            for i in a..b {
                let beneath = self.popped[i as usize].0;
                if self.transitions[self.slot(beneath, class)] == UNKNOWN {
                    work.push(beneath);
                }
            }
            if work.len() == before {
                self.transitions[slot] = match self.make_one(state, class) {
                    Err(halt) if halt.is_interrupt() => return Err(halt),
                    made => made.unwrap_or(OVER),
                };
            }
        }
        match self.transitions[self.slot(state, class)] {
            OVER => Err(Halt::Work),
            known => Ok(known),
        }
    }

    /// Makes a transition when those of the continuations beneath are known.
    fn make_one(&mut self, state: DisplacementId, class: u8) -> Result<DisplacementId, Halt> {
        if self.nesting[state as usize] > MAX_NESTING || self.is_full() {
            return Err(Halt::Depth);
        }
        let (set, a, b) = self.states[state as usize];
        let after = self.stepper.sweep(set, class)?;
        let (alive, labels) = self.stepper.sets.without_labels(after)?;
        let mut popped = self.popped_now(labels)?;
        for i in a..b {
            let (beneath, frames) = self.popped[i as usize];
            match self.transitions[self.slot(beneath, class)] {
                OVER => return Err(Halt::Work),
                DEAD => {}
                after => popped.push((after, frames)),
            }
        }
        self.group(&mut popped)?;
        self.spend(1 + popped.len())?;
        Ok(self.intern(alive, &popped))
    }

    fn is_full(&self) -> bool {
        // Checked once a transition: the parts that grow are the large ones.
        let own = self.popped.len() * 8 + self.transitions.len() * 4 + self.states.len() * 16;
        own + self.stepper.bytes() > self.max_bytes
    }

    /// Unites the frames of entries with the same continuation; sorts.
    pub(crate) fn group(&mut self, entries: &mut Vec<Popped>) -> Result<(), Halt> {
        self.stepper.sets.group(entries)
    }
}
