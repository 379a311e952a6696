//! The positions of a pattern and the ways between them: Thompson's construction.
//!
//! A part of the pattern is built between two positions that are given. It adds edges and ways out
//! of the first and into the second only, so parts may share both. Counts are written out; the size
//! is known, and refused, before anything is. Alternatives that begin with the same characters
//! share their beginnings, so that a long list of words is a trie.

use super::super::Bounds;
use super::syntax::{Assertion, CharSetId, PatternNode, PatternNodeId, PatternTree};
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;

/// How many positions there may be for each state that the automaton may have.
const POSITIONS_PER_STATE: usize = 16;

/// What a way needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WayCondition {
    /// Nothing.
    Free,
    /// A place in the text.
    Assert(Assertion),
    /// A lookaround, by its number, holds or does not.
    Look { look: u32, is_negated: bool },
}

/// The body of a lookaround.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lookaround {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) is_ahead: bool,
    /// The body, in the tree.
    pub(super) body: PatternNodeId,
}

/// A pattern as positions.
#[derive(Debug, Default)]
pub(super) struct Program {
    /// The number of positions. The pattern leads from 0 to 1.
    pub(super) positions: u32,
    /// From, what is read, to.
    pub(super) edges: Vec<(u32, CharSetId, u32)>,
    /// From, what must hold, to; nothing is read.
    pub(super) ways: Vec<(u32, WayCondition, u32)>,
    /// The lookarounds; those in the body of another stand before it.
    pub(super) looks: Vec<Lookaround>,
}

pub(super) const START: u32 = 0;
pub(super) const END: u32 = 1;

/// A part that is to be built, between two positions.
enum BuildTask {
    Part(PatternNodeId, u32, u32),
    /// The parts of a sequence from the so many-th on.
    Rest(PatternNodeId, usize, u32, u32),
}

impl Program {
    /// The positions of the part of a tree below `root`.
    ///
    /// # Errors
    /// [`Error::Limit`] and what ends the work.
    pub(super) fn new(
        tree: &PatternTree,
        root: PatternNodeId,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        let is_needed = tree.needed(root);
        check_size(tree, root, &is_needed, bounds)?;
        let mut out = Self { positions: 2, ..Self::default() };
        let mut look_of: FxHashMap<PatternNodeId, u32> = FxHashMap::default();
        let mut tasks = vec![BuildTask::Part(root, START, END)];
        // Inner lookarounds stand before outer ones, as children do in the tree.
        for (index, node) in tree.nodes.iter().enumerate() {
            if let &PatternNode::Look { body, is_ahead, .. } = node
                && is_needed[index]
            {
                let (start, end) = (out.position(), out.position());
                look_of.insert(tree.id(index), out.looks.len() as u32);
                out.looks.push(Lookaround { start, end, is_ahead, body });
                tasks.push(BuildTask::Part(body, start, end));
            }
        }
        while let Some(task) = tasks.pop() {
            bounds.budget.spend(1)?;
            out.build(tree, task, &look_of, &mut tasks);
        }
        Ok(out)
    }

    fn position(&mut self) -> u32 {
        self.positions += 1;
        self.positions - 1
    }

    fn free(&mut self, from: u32, to: u32) {
        self.ways.push((from, WayCondition::Free, to));
    }

    fn build(
        &mut self,
        tree: &PatternTree,
        task: BuildTask,
        look_of: &FxHashMap<PatternNodeId, u32>,
        tasks: &mut Vec<BuildTask>,
    ) {
        let (id, skipped, from, to) = match task {
            BuildTask::Part(id, from, to) => (id, 0, from, to),
            BuildTask::Rest(id, skipped, from, to) => (id, skipped, from, to),
        };
        match tree.node(id) {
            PatternNode::Empty => self.free(from, to),
            PatternNode::Set(set) => self.edges.push((from, *set, to)),
            PatternNode::Sequence(parts) => {
                let mut here = from;
                let last = parts.len() - 1;
                for (place, &part) in parts.iter().enumerate().skip(skipped) {
                    let next = if place == last { to } else { self.position() };
                    tasks.push(BuildTask::Part(part, here, next));
                    here = next;
                }
            }
            PatternNode::Choice(parts) => self.build_choice(tree, parts, (from, to), tasks),
            &PatternNode::Repeat { body, min, max } => {
                self.build_repeat(body, (min, max), (from, to), tasks);
            }
            &PatternNode::Assert(assertion) => {
                self.ways.push((from, WayCondition::Assert(assertion), to));
            }
            &PatternNode::Look { is_negated, .. } => {
                let look = look_of.get(&id).copied().unwrap_or(0);
                self.ways.push((from, WayCondition::Look { look, is_negated }, to));
            }
        }
    }

    fn build_choice(
        &mut self,
        tree: &PatternTree,
        parts: &[PatternNodeId],
        (from, to): (u32, u32),
        tasks: &mut Vec<BuildTask>,
    ) {
        let mut beginnings: FxHashMap<(u32, CharSetId), u32> = FxHashMap::default();
        let mut ends: FxHashMap<(u32, CharSetId), ()> = FxHashMap::default();
        for &part in parts {
            let PatternNode::Sequence(items) = tree.node(part) else {
                tasks.push(BuildTask::Part(part, from, to));
                continue;
            };
            let (mut here, mut read) = (from, 0);
            while let Some(&PatternNode::Set(set)) = items.get(read).map(|&item| tree.node(item)) {
                if read + 1 == items.len() {
                    if ends.insert((here, set), ()).is_none() {
                        self.edges.push((here, set, to));
                    }
                } else if let Some(&next) = beginnings.get(&(here, set)) {
                    here = next;
                } else {
                    let next = self.position();
                    self.edges.push((here, set, next));
                    beginnings.insert((here, set), next);
                    here = next;
                }
                read += 1;
            }
            if read < items.len() {
                tasks.push(BuildTask::Rest(part, read, here, to));
            }
        }
    }

    fn build_repeat(
        &mut self,
        body: PatternNodeId,
        (min, max): (u32, Option<u32>),
        (from, to): (u32, u32),
        tasks: &mut Vec<BuildTask>,
    ) {
        let mut here = from;
        let mut copies = |out: &mut Self, here: &mut u32, count: u32| {
            for _ in 0..count {
                let next = out.position();
                tasks.push(BuildTask::Part(body, *here, next));
                *here = next;
            }
        };
        match max {
            None => {
                // The last copy that is needed is the one that is repeated.
                copies(self, &mut here, min.saturating_sub(1));
                let head = self.position();
                self.free(here, head);
                here = head;
                copies(self, &mut here, 1);
                self.free(here, head);
                self.free(if min == 0 { head } else { here }, to);
            }
            Some(max) => {
                copies(self, &mut here, min);
                for _ in min..max {
                    self.free(here, to);
                    copies(self, &mut here, 1);
                }
                self.free(here, to);
            }
        }
    }
}

/// Refuses a pattern of too many positions, counts written out.
fn check_size(
    tree: &PatternTree,
    root: PatternNodeId,
    is_needed: &[bool],
    bounds: &Bounds<'_>,
) -> Result<()> {
    let mut sizes: Vec<u64> = Vec::with_capacity(tree.nodes.len());
    let mut looks = 0u64;
    for (node, &is_needed) in tree.nodes.iter().zip(is_needed) {
        let of = |id: &PatternNodeId| sizes[id.index()];
        let sum = |parts: &[PatternNodeId]| parts.iter().map(of).fold(1, u64::saturating_add);
        let size = match node {
            PatternNode::Empty | PatternNode::Set(_) | PatternNode::Assert(_) => 1,
            PatternNode::Sequence(parts) | PatternNode::Choice(parts) => sum(parts),
            PatternNode::Repeat { body, min, max } => {
                let copies = u64::from(max.unwrap_or(*min).max(1));
                of(body).saturating_add(1).saturating_mul(copies).saturating_add(1)
            }
            PatternNode::Look { body, .. } => {
                looks = looks.saturating_add(if is_needed { of(body) } else { 0 });
                1
            }
        };
        sizes.push(size);
    }
    let size = sizes[root.index()].saturating_add(looks);
    let allowed = bounds.max_states.saturating_mul(POSITIONS_PER_STATE);
    if size > allowed as u64 {
        return Err(Error::Limit {
            limit: "max_automaton_states",
            value: bounds.max_states as u64,
            message: format!(
                "the pattern has {size} positions, its counts written out, and {allowed} are \
                 allowed, {POSITIONS_PER_STATE} for each state; lower counts, split the pattern, \
                 or raise the limit"
            ),
        });
    }
    bounds.budget.spend(size as usize)
}
