//! The steps of a family: a tree, whose oldest steps are thinned.
//!
//! A step that was thinned has its depth as its number, as nothing branches off before the first whole
//! step: everything that is held descends from that.

use super::past::{Checkpoint, Past, is_small};
use super::step::{Again, Read, Stand, Step, StepId};
use std::collections::VecDeque;

/// Which steps are thinned: so many of the last ones stay whole, and one of so many others is a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thinning {
    pub(crate) keep: usize,
    pub(crate) every: usize,
}

/// As many stay whole as are taken back while others wait.
const THINNING: Thinning = Thinning { keep: 256, every: 64 };
/// Steps that are put in a row while others wait.
const QUICK_IN_A_ROW: usize = 1 << 10;

pub(super) struct Steps {
    pub(super) past: Past,
    /// The number of the first whole step, and of the steps that were thinned.
    first: StepId,
    whole: VecDeque<Step>,
    /// The first step that does not follow the one before it.
    branch: Option<StepId>,
    pub(super) thinning: Thinning,
}

impl Steps {
    pub(super) fn new() -> Self {
        Self {
            past: Past::default(),
            first: 0,
            whole: VecDeque::new(),
            branch: None,
            thinning: THINNING,
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.past.bytes() + self.whole.capacity() * size_of::<Step>()
    }

    /// The first step alone.
    pub(super) fn begin(&mut self, stand: Stand, read: Read, bytes: u32) {
        *self = Self { thinning: self.thinning, ..Self::new() };
        self.whole.push_back(Step { parent: 0, jump: 0, depth: 0, tokens: 0, bytes, stand, read });
    }

    /// A step that is whole.
    pub(super) fn get(&self, id: StepId) -> Step {
        self.whole[(id - self.first) as usize]
    }

    pub(super) fn get_mut(&mut self, id: StepId) -> &mut Step {
        &mut self.whole[(id - self.first) as usize]
    }

    pub(super) fn is_thinned(&self, id: StepId) -> bool {
        id < self.first
    }

    pub(super) fn depth(&self, id: StepId) -> u32 {
        if self.is_thinned(id) { id } else { self.get(id).depth }
    }

    /// The number of the next step.
    pub(super) fn next(&self) -> StepId {
        self.first + self.whole.len() as StepId
    }

    /// The whole steps, oldest first.
    pub(super) fn whole(&self) -> impl Iterator<Item = &Step> {
        self.whole.iter()
    }

    /// The whole steps after one.
    pub(super) fn after(&self, id: StepId) -> impl Iterator<Item = &Step> {
        self.whole.range((id - self.first) as usize + 1..)
    }

    /// The number of steps that were thinned.
    pub(super) fn first(&self) -> StepId {
        self.first
    }

    /// An ancestor that is whole, further up where there is one.
    fn jump(&self, step: &Step) -> StepId {
        step.jump.max(self.first)
    }

    pub(super) fn push(
        &mut self,
        parent: StepId,
        stand: Stand,
        read: Read,
        length: usize,
    ) -> StepId {
        let p = self.get(parent);
        let j = self.get(self.jump(&p));
        let jj = self.get(self.jump(&j));
        // Two jumps of equal length make one of twice that and one.
        let is_even = p.depth - j.depth == j.depth - jj.depth;
        let jump = if is_even { self.jump(&j) } else { parent };
        let id = self.next();
        let tokens = p.tokens + u32::from(matches!(read, Read::Token(_) | Read::Stop(_)));
        let bytes = p.bytes.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
        if parent + 1 != id {
            self.branch.get_or_insert(id);
        }
        self.whole.push_back(Step { parent, jump, depth: p.depth + 1, tokens, bytes, stand, read });
        id
    }

    /// The ancestor at a depth, which is not below `id`.
    pub(super) fn ancestor(&self, mut id: StepId, depth: u32) -> StepId {
        if depth < self.first {
            return depth;
        }
        loop {
            let step = self.get(id);
            if step.depth <= depth {
                return id;
            }
            let jump = self.jump(&step);
            id = if self.get(jump).depth >= depth { jump } else { step.parent };
        }
    }

    /// The whole steps up to one, oldest first, by their numbers.
    pub(super) fn path(&self, id: StepId) -> Vec<StepId> {
        let mut out = Vec::new();
        let mut at = id;
        while at > self.first {
            out.push(at);
            at = self.get(at).parent;
        }
        out.push(at);
        out.reverse();
        out
    }

    /// What all steps up to one read, oldest first.
    pub(super) fn reads(&self, id: StepId) -> Vec<(StepId, Read)> {
        let path = self.path(id).into_iter().map(|id| (id, self.get(id).read));
        self.past.reads(0..self.first).chain(path).collect()
    }

    /// Drops the steps after one that is whole.
    pub(super) fn truncate(&mut self, id: StepId) {
        self.whole.truncate((id - self.first) as usize + 1);
        self.branch = self.branch.filter(|&branch| branch <= id);
    }

    /// Whether it takes long to put the steps in a row.
    pub(super) fn is_tangled(&self) -> bool {
        self.branch.is_some() && self.whole.len() > QUICK_IN_A_ROW
    }

    /// The oldest steps, which are to be thinned now that `at` was added, and its number from now on; it is
    /// the only one that matters.
    pub(super) fn oldest(&mut self, mut at: StepId) -> (StepId, Vec<Step>) {
        let Thinning { keep, every } = self.thinning;
        // A chart holds the text of its columns anyway.
        let stays = |step: &Step| matches!(step.stand, Stand::Chart(_)) || !is_small(step.read);
        if self.whole.len() < keep + every || stays(&self.get(at)) {
            return (at, Vec::new());
        }
        if self.branch.is_some() {
            at = self.put_in_a_row(at);
        }
        let count = if self.whole.len() < keep + every { 0 } else { every };
        if self.whole.range(..count).any(stays) {
            return (at, Vec::new());
        }
        self.first += count as StepId;
        let oldest = self.whole.drain(..count).collect();
        // Many that stayed for a fork leave room behind.
        if self.whole.capacity() > 4 * self.whole.len().max(keep) {
            self.whole.shrink_to(2 * self.whole.len());
        }
        (at, oldest)
    }

    /// Drops all steps that do not lead to one, and numbers the others in order.
    fn put_in_a_row(&mut self, at: StepId) -> StepId {
        let path = self.path(at);
        let steps: Vec<Step> = path.into_iter().map(|id| self.get(id)).collect();
        let Some((&root, rest)) = steps.split_first() else { return at };
        self.whole.clear();
        self.branch = None;
        self.whole.push_back(Step { parent: self.first, jump: self.first, ..root });
        for step in rest {
            self.push_copy(step);
        }
        self.next() - 1
    }

    /// Adds a step of another numbering after the last one.
    fn push_copy(&mut self, step: &Step) {
        let id = self.push(self.next() - 1, step.stand, step.read, 0);
        let added = self.get_mut(id);
        (added.tokens, added.bytes) = (step.tokens, step.bytes);
    }

    /// The steps behind those that were thinned, in other tables.
    pub(super) fn put_behind(&mut self, past: Past, first: StepId) {
        (self.past, self.first) = (past, first);
        self.whole.clear();
        self.branch = None;
    }

    /// Adds a copy of a step of other tables, where it stands here.
    pub(super) fn put(&mut self, step: &Step, stand: Stand, read: Read) -> StepId {
        let step = Step { stand, read, ..*step };
        match self.whole.is_empty() {
            true => self.whole.push_back(Step { parent: self.first, jump: self.first, ..step }),
            false => self.push_copy(&step),
        }
        self.next() - 1
    }

    /// Goes back to a checkpoint, and over what was read again from there on.
    pub(super) fn go_back(&mut self, to: &Checkpoint, stand: Stand, again: &[Again]) -> StepId {
        let read = self.past.read(to.depth);
        self.past.truncate(to.depth);
        self.first = to.depth;
        self.whole.clear();
        self.branch = None;
        let Checkpoint { depth, tokens, bytes, .. } = *to;
        let (parent, jump) = (depth, depth);
        self.whole.push_back(Step { parent, jump, depth, tokens, bytes, stand, read });
        let mut at = depth;
        for step in again {
            at = self.push(at, step.stand, step.read, step.length);
        }
        at
    }

    /// Makes the steps that were thinned whole again, which were all read again.
    pub(super) fn make_whole(&mut self, again: &[Again]) {
        let thinned = &again[..self.first as usize];
        let Some((root, rest)) = thinned.split_first() else { return };
        let (mut old, branch) = (std::mem::take(&mut self.whole), self.branch);
        if let Some(first) = old.front_mut() {
            (first.parent, first.jump) = (self.first - 1, self.first - 1);
        }
        let bytes = self.past.first_bytes();
        self.begin(root.stand, root.read, bytes);
        for step in rest {
            self.push(self.next() - 1, step.stand, step.read, step.length);
        }
        self.whole.extend(old);
        self.branch = branch;
    }
}
