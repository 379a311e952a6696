//! What a matcher and its forks share: the stack sets of everything they read, and how they came
//! there.
//!
//! Design: docs/design/matcher.md.
//!
//! Both tables only grow, and a place in them is a number: so a fork is a copy of a number and a
//! rollback the number of an ancestor. The steps form a tree with jump pointers (Myers' random
//! access lists), by which an ancestor is found in logarithmic time at any depth.
//!
//! Of a family with one member the oldest steps are thinned: what they read stays, and of one in so many
//! where it stands. A rollback to another one reads on from there. Files:
//!
//! - here: the tables, and the room that a call has in them;
//! - `step`: what a step is; `past`: those that were thinned; `steps`: all of them, and the tree;
//! - `stand`: what may follow a step; `chart`: the chart that texts may stand on;
//! - `thinned`: steps that are thinned or dropped; `rebuilt`: new tables with what one step needs;
//! - `copies`: stacks in other tables.

mod chart;
mod copies;
mod past;
mod rebuilt;
mod stand;
mod step;
mod steps;
mod thinned;

pub(crate) use chart::OnChart;
pub(in crate::engine) use copies::{StacksApart, copy, copy_moved, copy_set};
pub(crate) use stand::View;
pub(crate) use step::{Again, Read, Stand, Step, StepId};

use crate::budget::{Halt, Interrupt};
use crate::ending::{Memo, Over};
use crate::network::Network;
use crate::stacks::{REST, SetId, StackSets, Stepper};
use crate::unique::Arrays;
use chart::Chart;
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;
use steps::Steps;
#[cfg(test)]
pub(crate) use steps::Thinning;

/// Tables shared by a matcher and its forks.
pub(crate) struct Family {
    network: Arc<Network>,
    /// Whether some rule counts the tokens that begin within its texts.
    pub(crate) counts_tokens: bool,
    /// The stacks at the start of the language.
    pub(crate) start: SetId,
    pub(crate) stepper: Stepper<Arc<Network>>,
    /// The arrays with unique items that were read.
    pub(crate) arrays: Arrays,
    steps: Steps,
    /// Bytes that were read as such, and where those of each step end.
    texts: Vec<u8>,
    text_ends: Vec<usize>,
    chart: Option<Box<Chart>>,
    /// Whether the text can be read again on a chart: it began at the start of the language, and no
    /// attempt failed.
    pub(crate) may_chart: bool,
    /// Bytes held when the tables were last rebuilt.
    pub(crate) rebuilt_bytes: usize,
    /// The same for the sets of members alone.
    rebuilt_set_bytes: usize,
    /// Where a mask took more work than it may: it would again.
    refused: Arc<Refused>,
    /// What is known of the ends of its texts.
    ending: Remembered,
}

/// What a family remembers of the ends of its texts.
#[derive(Default)]
struct Remembered {
    tokens: Memo,
    bytes: Memo,
}

impl Remembered {
    fn bytes(&self) -> usize {
        self.tokens.bytes() + self.bytes.bytes()
    }

    fn of(&mut self, over: Over) -> &mut Memo {
        if over == Over::Bytes { &mut self.bytes } else { &mut self.tokens }
    }

    fn take(&mut self, over: Over) -> Memo {
        let memo = std::mem::replace(self.of(over), Memo::new(over));
        if memo.over() == over { memo } else { Memo::new(over) }
    }

    fn put(&mut self, memo: Memo) {
        let over = memo.over();
        *self.of(over) = memo;
    }
}

/// Stands whose masks are known to take too much work, at most.
const MAX_REFUSED: usize = 1 << 12;

/// Where a mask took more work than it may.
#[derive(Default)]
pub(crate) struct Refused(Mutex<FxHashSet<(Stand, bool)>>);

impl Refused {
    /// Whether the mask of a stand, with classes or without, is known to take more work than it may.
    pub(crate) fn contains(&self, stand: Stand, with_classes: bool) -> bool {
        self.0.lock().contains(&(stand, with_classes))
    }

    /// Remembers that it does.
    pub(crate) fn add(&self, stand: Stand, with_classes: bool) {
        let mut refused = self.0.lock();
        if refused.len() >= MAX_REFUSED {
            refused.clear();
        }
        refused.insert((stand, with_classes));
    }
}

impl Family {
    /// Tables with a first step at the start of the language, or where `state` says.
    pub(crate) fn new(network: &Arc<Network>) -> Result<Self, Halt> {
        Self::over(network.fresh())
    }

    /// The same with the sets of members that were met already.
    fn over(network: Arc<Network>) -> Result<Self, Halt> {
        let counts_tokens = network.counts_tokens();
        let mut stepper = Stepper::new(network.clone());
        stepper.sets.max_depth = u32::MAX;
        let mut start = stepper.sets.add(&[(network.start(), REST)])?;
        if network.accepts_empty() {
            start = stepper.sets.union(start, REST)?;
        }
        let mut out = Self {
            network,
            counts_tokens,
            start,
            stepper,
            arrays: Arrays::default(),
            steps: Steps::new(),
            texts: Vec::new(),
            text_ends: Vec::new(),
            chart: None,
            may_chart: true,
            rebuilt_bytes: 0,
            rebuilt_set_bytes: 0,
            refused: Arc::default(),
            ending: Remembered::default(),
        };
        out.begin(Stand::Stacks(start), Read::Nothing);
        Ok(out)
    }

    /// The network, with the sets of members that texts of this family have met.
    pub(crate) fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Makes a stand the only step.
    pub(crate) fn begin(&mut self, stand: Stand, read: Read) -> StepId {
        self.begin_after(stand, read, 0)
    }

    /// Makes a stand the only step, behind so many bytes.
    pub(crate) fn begin_after(&mut self, stand: Stand, read: Read, bytes: u32) -> StepId {
        self.steps.begin(stand, read, bytes);
        0
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.stepper.bytes()
            + self.arrays.bytes()
            + self.network.set_bytes()
            + self.chart.as_ref().map_or(0, |chart| chart.tree.bytes())
            + self.steps.bytes()
            + self.texts.capacity()
            + self.text_ends.capacity() * size_of::<usize>()
            + self.ending.bytes()
    }

    /// What is known of the ends of its texts over some entries; to be put back.
    pub(in crate::engine) fn take_memo(&mut self, over: Over) -> Memo {
        self.ending.take(over)
    }

    /// Over which tokens that was found out last.
    pub(in crate::engine) fn memo_is_over(&self) -> Over {
        self.ending.tokens.over()
    }

    /// Puts back what was taken.
    pub(in crate::engine) fn put_memo(&mut self, memo: Memo) {
        self.ending.put(memo);
    }

    /// A step that was not thinned: the last one of a matcher never was.
    pub(crate) fn step(&self, id: StepId) -> Step {
        self.steps.get(id)
    }

    /// The number of steps from the first.
    pub(crate) fn depth(&self, id: StepId) -> u32 {
        self.steps.depth(id)
    }

    /// Adds a step after `parent` that read so many bytes.
    pub(crate) fn push(
        &mut self,
        parent: StepId,
        stand: Stand,
        read: Read,
        length: usize,
    ) -> StepId {
        self.steps.push(parent, stand, read, length)
    }

    /// Remembers what a step read that was no token.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> Read {
        Read::Bytes(self.copy_text(bytes))
    }

    /// The ancestor at a depth, which is not below `id`.
    pub(crate) fn ancestor(&self, id: StepId, depth: u32) -> StepId {
        self.steps.ancestor(id, depth)
    }

    /// What all steps up to one read, oldest first.
    pub(crate) fn reads(&self, id: StepId) -> Vec<(StepId, Read)> {
        self.steps.reads(id)
    }

    /// The bytes of a step that read some.
    pub(crate) fn bytes_of(&self, text: u32) -> &[u8] {
        &self.texts[self.text_place(text)]
    }

    fn text_place(&self, text: u32) -> std::ops::Range<usize> {
        let before = (text as usize).checked_sub(1);
        before.map_or(0, |before| self.text_ends[before])..self.text_ends[text as usize]
    }

    /// Work units spent.
    pub(crate) fn work(&self) -> u64 {
        let chart = self.chart.as_ref().map_or(0, |chart| chart.scratch.meter.spent());
        self.stepper.sets.meter.spent() + chart
    }

    /// Begins a call: it may do so much work, until `interrupt` says otherwise, and the tables may
    /// hold so many bytes.
    pub(crate) fn allow(&mut self, work: u64, max_bytes: usize, interrupt: &Interrupt) {
        let sets = &mut self.stepper.sets;
        sets.meter.allow(work, interrupt);
        sets.max_bytes = max_bytes;
        if let Some(chart) = &mut self.chart {
            chart.scratch.meter.allow(work, interrupt);
        }
    }

    /// Ends a call: nothing holds on to its interrupt.
    pub(crate) fn release(&mut self) {
        self.stepper.sets.meter.release();
        if let Some(chart) = &mut self.chart {
            chart.scratch.meter.release();
        }
    }

    /// Where masks took more work than they may.
    pub(crate) fn refused(&self) -> Arc<Refused> {
        self.refused.clone()
    }

    /// The stacks of a stand in tables of their own; `None` for one on a chart.
    pub(crate) fn stacks_apart(
        &self,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<Option<StacksApart>, Halt> {
        let Some(set) = self.set_of(stand) else { return Ok(None) };
        let mut sets = StackSets::new();
        sets.max_depth = u32::MAX;
        sets.meter.allow(u64::MAX, interrupt);
        let set = copy_set(&self.stepper.sets, set, &mut sets)?;
        Ok(Some(StacksApart { network: self.network.clone(), sets, set }))
    }

    /// From now on steps stand elsewhere, where the same may follow: all up to one, or those after another
    /// one that is whole.
    pub(crate) fn restand(&mut self, again: &[Again]) {
        if again.first().is_some_and(|first| self.steps.is_thinned(first.id)) {
            self.steps.make_whole(again);
        }
        for step in again {
            self.steps.get_mut(step.id).stand = step.stand;
        }
    }

    fn copy_text(&mut self, bytes: &[u8]) -> u32 {
        self.texts.extend_from_slice(bytes);
        self.text_ends.push(self.texts.len());
        self.text_ends.len() as u32 - 1
    }
}
