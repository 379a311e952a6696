//! What a matcher and its forks share: the stack sets of everything they read, and how they came
//! there.
//!
//! Both tables only grow, and a place in them is a number: so a fork is a copy of a number and a
//! rollback the number of an ancestor. The steps form a tree with jump pointers (Myers' random
//! access lists), by which an ancestor is found in logarithmic time at any depth.

use crate::network::{BOTTOM, Network};
use crate::stacks::{Entry, NONE, OverBudget, REST, SetId, StackSets, Stepper};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A place in the tree of steps.
pub(crate) type StepId = u32;

/// What a step read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// The start, or a restored state: nothing.
    Nothing,
    /// A token of text.
    Token(u32),
    /// A stop token.
    Stop(u32),
    /// Bytes: their number in `Family::texts`.
    Bytes(u32),
}

/// One accepted token or text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    parent: StepId,
    /// An ancestor further up.
    jump: StepId,
    depth: u32,
    /// The stacks after it.
    pub(crate) set: SetId,
    pub(crate) read: Read,
}

/// Tables shared by a matcher and its forks.
pub(crate) struct Family {
    pub(crate) stepper: Stepper<Arc<Network>>,
    steps: Vec<Step>,
    texts: Vec<Box<[u8]>>,
    text_bytes: usize,
    /// Bytes held when the tables were last rebuilt.
    pub(crate) rebuilt_bytes: usize,
}

impl Family {
    /// Tables with a first step at the start of the language, or where `state` says.
    pub(crate) fn new(network: &Arc<Network>) -> Result<Self, OverBudget> {
        let mut stepper = Stepper::new(network.clone());
        stepper.sets.max_depth = u32::MAX;
        let mut start = stepper.sets.add(&[(network.start(), REST)])?;
        if network.accepts_empty() {
            start = stepper.sets.union(start, REST)?;
        }
        let mut out =
            Self { stepper, steps: Vec::new(), texts: Vec::new(), text_bytes: 0, rebuilt_bytes: 0 };
        out.begin(start, Read::Nothing);
        Ok(out)
    }

    /// Makes a set the only step.
    pub(crate) fn begin(&mut self, set: SetId, read: Read) -> StepId {
        self.steps.clear();
        self.steps.push(Step { parent: 0, jump: 0, depth: 0, set, read });
        0
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.stepper.bytes()
            + self.steps.capacity() * size_of::<Step>()
            + self.texts.capacity() * 16
            + self.text_bytes
    }

    pub(crate) fn step(&self, id: StepId) -> Step {
        self.steps[id as usize]
    }

    /// The number of steps from the first.
    pub(crate) fn depth(&self, id: StepId) -> u32 {
        self.steps[id as usize].depth
    }

    /// Adds a step after `parent`.
    pub(crate) fn push(&mut self, parent: StepId, set: SetId, read: Read) -> StepId {
        let p = self.steps[parent as usize];
        let j = self.steps[p.jump as usize];
        let jj = self.steps[j.jump as usize];
        // Two jumps of equal length make one of twice that and one.
        let jump = if p.depth - j.depth == j.depth - jj.depth { j.jump } else { parent };
        let id = self.steps.len() as StepId;
        self.steps.push(Step { parent, jump, depth: p.depth + 1, set, read });
        id
    }

    /// Remembers what a step read that was no token.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> Read {
        self.text_bytes += bytes.len();
        self.texts.push(bytes.into());
        Read::Bytes(self.texts.len() as u32 - 1)
    }

    /// The ancestor at a depth, which is not below `id`.
    pub(crate) fn ancestor(&self, mut id: StepId, depth: u32) -> StepId {
        loop {
            let step = &self.steps[id as usize];
            if step.depth <= depth {
                return id;
            }
            let jump = step.jump;
            id = if self.steps[jump as usize].depth >= depth { jump } else { step.parent };
        }
    }

    /// Drops the steps after `id`, for a family with one member.
    pub(crate) fn truncate(&mut self, id: StepId) {
        for step in self.steps.drain(id as usize + 1..) {
            if let Read::Bytes(text) = step.read
                && (text as usize) < self.texts.len()
            {
                let gone = self.texts.drain(text as usize..);
                self.text_bytes -= gone.map(|t| t.len()).sum::<usize>();
            }
        }
    }

    /// What was read up to a step, oldest first.
    pub(crate) fn path(&self, id: StepId) -> Vec<Step> {
        let mut out = Vec::with_capacity(self.depth(id) as usize + 1);
        let mut at = id;
        loop {
            let step = self.steps[at as usize];
            out.push(step);
            if step.depth == 0 {
                break;
            }
            at = step.parent;
        }
        out.reverse();
        out
    }

    /// The bytes of a step that read some.
    pub(crate) fn bytes_of(&self, text: u32) -> &[u8] {
        &self.texts[text as usize]
    }

    /// New tables with what `id` needs, and `id` in them.
    pub(crate) fn rebuilt(
        &self,
        network: &Arc<Network>,
        id: StepId,
    ) -> Result<(Self, StepId), OverBudget> {
        let mut out = Self::new(network)?;
        out.steps.clear();
        let mut copies = FxHashMap::default();
        let mut parent = 0;
        for step in self.path(id) {
            let set = copy(&self.stepper.sets, step.set, &mut out.stepper.sets, &mut copies)?;
            let read = match step.read {
                Read::Bytes(text) => out.text(self.bytes_of(text)),
                read => read,
            };
            parent = match out.steps.is_empty() {
                true => out.begin(set, read),
                false => out.push(parent, set, read),
            };
        }
        out.rebuilt_bytes = out.bytes();
        Ok((out, parent))
    }
}

/// The same set in another table.
fn copy(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
    copies: &mut FxHashMap<SetId, SetId>,
) -> Result<SetId, OverBudget> {
    for set in beneath_first(from, set, |set| copies.contains_key(&set)) {
        let entries: Vec<Entry> = from
            .entries(set)
            .into_iter()
            .map(|(top, beneath)| (top, if top == BOTTOM { NONE } else { copies[&beneath] }))
            .collect();
        let copied = to.add(&entries)?;
        copies.insert(set, copied);
    }
    Ok(copies[&set])
}

/// The sets that a set is made of, itself the last, each after those beneath its tops; without
/// those that are `known`.
pub(crate) fn beneath_first(
    sets: &StackSets,
    set: SetId,
    known: impl Fn(SetId) -> bool,
) -> Vec<SetId> {
    let mut out = Vec::new();
    let mut seen: rustc_hash::FxHashSet<SetId> = Default::default();
    // A set is met twice: when it is found, and when all beneath it is listed.
    let mut work = vec![(set, false)];
    while let Some((set, ready)) = work.pop() {
        if ready {
            out.push(set);
            continue;
        }
        if known(set) || !seen.insert(set) {
            continue;
        }
        work.push((set, true));
        let beneath = sets.entries(set);
        work.extend(beneath.iter().filter(|e| e.0 != BOTTOM).map(|e| (e.1, false)));
    }
    out
}
