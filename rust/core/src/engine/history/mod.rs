//! What a matcher and its forks share: the stack sets of everything they read, and how they came
//! there.
//!
//! Both tables only grow, and a place in them is a number: so a fork is a copy of a number and a
//! rollback the number of an ancestor. The steps form a tree with jump pointers (Myers' random
//! access lists), by which an ancestor is found in logarithmic time at any depth.
//!
//! Of a family with one member the oldest steps are thinned: what they read stays, and of one in so many
//! where it stands. A rollback to another one reads on from there. Files:
//!
//! - `step`: what a step is; `past`: those that were thinned; `steps`: all of them, and the tree;
//! - `copies`: stacks in other tables; here: the tables, and what changes them.

mod copies;
mod past;
mod step;
mod steps;

pub(in crate::engine) use copies::{StacksApart, copy, copy_set};
pub(crate) use step::{Again, Read, Stand, Step, StepId};

use crate::budget::{Halt, Interrupt};
use crate::chart::{ColumnId, Columns, Scratch, Tables, Tree};
use crate::ending::Memo;
use crate::network::{BOTTOM, ClassSet, Network};
use crate::stacks::{NONE, REST, SetId, StackSets, Stepper};
use crate::unique::{Arrays, At, Copying, Look};
use copies::copy_moved;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;
use steps::Steps;
#[cfg(test)]
pub(crate) use steps::Thinning;

/// What can stand on top of each other: where the way begins, and where it goes on.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// A set of stacks over a network: that of the text, whose sets of members have numbers there only.
    Stacks(&'a Arc<Network>, &'a StackSets, SetId),
    /// The last of the columns of a chart.
    Chart(&'a Tables<Arc<Network>>, Columns<'a>),
}

/// A chart, made when first needed.
struct Chart {
    tables: Arc<Tables<Arc<Network>>>,
    scratch: Scratch,
    tree: Tree,
    /// Columns that are still to be dropped: those after the first of these two, where the second is
    /// the last that there is.
    to_drop: Option<(ColumnId, ColumnId)>,
}

impl Chart {
    fn new(tables: Arc<Tables<Arc<Network>>>, tree: Tree) -> Box<Self> {
        Box::new(Self { scratch: Scratch::new(&tables), tables, tree, to_drop: None })
    }

    /// Drops some of the columns that are to be dropped; whether there are more.
    fn drop_some(&mut self) -> bool {
        let last = self.tree.last();
        // Where others came after them, they stay until the tables are made anew.
        let Some((kept, _)) = self.to_drop.take().filter(|&(_, tip)| tip == last) else {
            return false;
        };
        let next = kept.max(last.saturating_sub(COLUMNS_AT_ONCE));
        self.tree.truncate(next);
        self.to_drop = (next > kept).then_some((kept, next));
        next > kept
    }
}

/// A chart that can be read on.
pub(crate) struct OnChart<'a> {
    pub(crate) tables: &'a Arc<Tables<Arc<Network>>>,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) tree: &'a mut Tree,
}

/// Tables shared by a matcher and its forks.
pub(crate) struct Family {
    network: Arc<Network>,
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

/// What a family remembers of the ends of its texts, by whether entries are classes.
#[derive(Default)]
struct Remembered {
    memo: Memo,
    is_folded: bool,
}

impl Remembered {
    fn bytes(&self) -> usize {
        self.memo.bytes()
    }

    fn take(&mut self, is_folded: bool) -> Memo {
        if self.is_folded != is_folded {
            *self = Self { memo: Memo::default(), is_folded };
        }
        std::mem::take(&mut self.memo)
    }

    fn put(&mut self, memo: Memo) {
        self.memo = memo;
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

/// Steps that a rollback drops from the tables at once. Of more it leaves the tables as they are: they
/// are made anew when they have grown.
const MAX_DROPPED: usize = 1 << 12;
/// Columns that are dropped between two looks at the interrupt: a millisecond or two.
const COLUMNS_AT_ONCE: ColumnId = 1 << 12;

impl Family {
    /// Tables with a first step at the start of the language, or where `state` says.
    pub(crate) fn new(network: &Arc<Network>) -> Result<Self, Halt> {
        Self::over(network.fresh())
    }

    /// The same with the sets of members that were met already.
    fn over(network: Arc<Network>) -> Result<Self, Halt> {
        let mut stepper = Stepper::new(network.clone());
        stepper.sets.max_depth = u32::MAX;
        let mut start = stepper.sets.add(&[(network.start(), REST)])?;
        if network.accepts_empty() {
            start = stepper.sets.union(start, REST)?;
        }
        let mut out = Self {
            network,
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

    /// What is known of the ends of its texts, over classes or over tokens; to be put back.
    pub(in crate::engine) fn take_memo(&mut self, is_folded: bool) -> Memo {
        self.ending.take(is_folded)
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

    /// Whether a step was thinned: [`Self::checkpoint`] and [`Self::go_back`] lead there.
    pub(crate) fn is_thinned(&self, id: StepId) -> bool {
        self.steps.is_thinned(id)
    }

    /// The number of steps that were thinned.
    #[cfg(test)]
    pub(crate) fn thinned(&self) -> u32 {
        self.steps.first()
    }

    /// Thins otherwise from now on.
    #[cfg(test)]
    pub(crate) fn set_thinning(&mut self, thinning: Thinning) {
        self.steps.thinning = thinning;
    }

    /// Whether [`Self::thin`] takes long.
    pub(crate) fn is_tangled(&self, stand: Stand) -> bool {
        self.steps.is_tangled() && !self.is_on_chart(stand)
    }

    /// Thins the oldest steps where there are enough, for a family with one member, which stands at a step
    /// that was just added; the number of that from now on.
    pub(crate) fn thin(&mut self, at: StepId) -> StepId {
        let (at, oldest) = self.steps.oldest(at);
        let Some(last) = oldest.last() else { return at };
        for step in &oldest {
            let every = self.steps.thinning.every;
            let is_checkpoint = step.depth == last.depth || self.steps.past.wants(step, every);
            let stand = is_checkpoint.then(|| match step.stand {
                Stand::Array(id) => Stand::Array(self.arrays.keep(id)),
                stand => stand,
            });
            self.steps.past.push(step, stand);
        }
        // What the last one has read of its item is where the next ones go on.
        self.forget_arrays(Some(last.stand));
        at
    }

    /// Forgets the arrays that whole steps do not stand in, nor `last` before them.
    fn forget_arrays(&mut self, last: Option<Stand>) {
        let array = |stand| match stand {
            Stand::Array(id) => Some(id),
            Stand::Stacks(_) | Stand::Chart(_) => None,
        };
        let whole = self.steps.whole().filter_map(|step| array(step.stand));
        self.arrays.forget_before(last.and_then(array), whole);
    }

    /// The last checkpoint up to a step that was thinned, with its stand from now on, and what the steps
    /// from there on read.
    pub(crate) fn checkpoint(&mut self, id: StepId) -> Result<(Stand, Vec<(StepId, Read)>), Halt> {
        let checkpoint = self.steps.past.checkpoint(id);
        let reads = self.steps.past.reads(checkpoint.depth + 1..id + 1).collect();
        let stand = match checkpoint.stand {
            Stand::Array(kept) => Stand::Array(self.arrays.revive(kept)?),
            stand => stand,
        };
        Ok((stand, reads))
    }

    /// Goes back to a step that was thinned, for a family with one member: to the checkpoint before, which
    /// stands at `stand`, and over the steps that were read again.
    pub(crate) fn go_back(&mut self, id: StepId, stand: Stand, again: &[Again]) -> StepId {
        let checkpoint = self.steps.past.checkpoint(id);
        let first_array = self.steps.past.first_array(checkpoint.depth);
        let at = self.steps.go_back(&checkpoint, stand, again);
        let mut texts = again.iter().filter_map(|step| match step.read {
            Read::Bytes(text) => Some(text + 1),
            _ => None,
        });
        self.drop_texts(texts.next_back().unwrap_or(checkpoint.texts));
        self.refused.0.lock().clear();
        if let Some(kept) = first_array {
            self.arrays.forget_kept(kept);
        }
        match (id, stand) {
            (0, Stand::Stacks(_) | Stand::Chart(_)) => self.arrays.clear(),
            _ => self.forget_arrays(None),
        }
        at
    }

    fn drop_texts(&mut self, first: u32) {
        if (first as usize) < self.text_ends.len() {
            self.texts.truncate(self.text_place(first).start);
            self.text_ends.truncate(first as usize);
        }
    }

    /// How many steps or columns [`Self::truncate`] would drop.
    pub(crate) fn after(&self, id: StepId) -> usize {
        let columns = match (self.steps.get(id).stand, &self.chart) {
            (Stand::Chart(column), Some(chart)) => chart.tree.last() - column,
            _ => 0,
        };
        (self.steps.next() - 1 - id).max(columns) as usize
    }

    /// Drops the steps after `id`, which was not thinned, for a family with one member, where they are few.
    pub(crate) fn truncate(&mut self, id: StepId) {
        if self.after(id) > MAX_DROPPED {
            return;
        }
        self.refused.0.lock().clear(); // numbers of columns are given again
        let step = self.steps.get(id);
        if let Some(chart) = &mut self.chart {
            // Steps before one that stands on stacks may stand on columns of another branch.
            if let Stand::Chart(column) = step.stand {
                chart.to_drop = None;
                chart.tree.truncate(column);
            }
        }
        let texts = self.steps.after(id).filter_map(|step| match step.read {
            Read::Bytes(text) => Some(text),
            _ => None,
        });
        if let Some(first) = texts.min() {
            self.drop_texts(first);
        }
        self.steps.truncate(id);
        if id == 0 && !matches!(step.stand, Stand::Array(_)) {
            self.arrays.clear();
        }
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

    /// The stacks of a stand; `None` on a chart.
    pub(crate) fn set_of(&self, stand: Stand) -> Option<SetId> {
        match stand {
            Stand::Stacks(set) => Some(set),
            Stand::Array(id) => Some(self.arrays.set(At::Array(id))),
            Stand::Chart(_) => None,
        }
    }

    /// Whether the text may end.
    pub(crate) fn accepts(&self, stand: Stand) -> bool {
        match (stand, &self.chart) {
            (Stand::Chart(column), Some(chart)) => chart.tree.column(column).accepts(),
            _ => self.set_of(stand).is_some_and(|set| self.stepper.sets.has_rest(set)),
        }
    }

    /// The classes of letters that may come next.
    pub(crate) fn next_classes(&self, stand: Stand) -> ClassSet {
        let mut classes = [0u64; 4];
        let set = match (stand, &self.chart) {
            (Stand::Chart(column), Some(chart)) => return *chart.tree.column(column).next(),
            _ => self.set_of(stand).unwrap_or(NONE),
        };
        let mut work = vec![set];
        while let Some(set) = work.pop() {
            if let Some((left, right)) = self.stepper.sets.halves(set) {
                work.extend([left, right]);
                continue;
            }
            for &(state, _) in self.stepper.sets.list(set).iter().filter(|e| e.0 != BOTTOM) {
                let first = self.network.reads_first(state);
                classes.iter_mut().zip(first).for_each(|(a, b)| *a |= b);
            }
        }
        classes
    }

    /// Whether a stand is on a chart.
    pub(crate) fn is_on_chart(&self, stand: Stand) -> bool {
        matches!(stand, Stand::Chart(_))
    }

    /// The number of frames that can stand on top.
    pub(crate) fn tops(&self, stand: Stand) -> usize {
        match (stand, &self.chart) {
            (Stand::Chart(column), Some(chart)) => chart.tree.column(column).len(),
            _ => self.set_of(stand).map_or(0, |set| self.stepper.sets.entries(set).len()),
        }
    }

    /// What a mask is made of.
    pub(crate) fn view(&mut self, stand: Stand) -> View<'_> {
        let set = self.set_of(stand).unwrap_or(NONE);
        match (stand, &mut self.chart) {
            (Stand::Chart(column), Some(chart)) => {
                View::Chart(&chart.tables, chart.tree.columns(column))
            }
            _ => View::Stacks(&self.network, &self.stepper.sets, set),
        }
    }

    /// What can stand on top of each other, where that is stacks.
    pub(crate) fn stacks(&self, stand: Stand) -> Option<View<'_>> {
        let set = self.set_of(stand)?;
        Some(View::Stacks(&self.network, &self.stepper.sets, set))
    }

    /// The chart on which a text stands, and where.
    pub(crate) fn on_chart(&mut self, stand: Stand) -> Option<(OnChart<'_>, ColumnId)> {
        match (stand, &mut self.chart) {
            (Stand::Chart(column), Some(chart)) => {
                let Chart { tables, scratch, tree, .. } = &mut **chart;
                Some((OnChart { tables, scratch, tree }, column))
            }
            _ => None,
        }
    }

    /// What may follow some bytes, of a network with arrays whose items are unique; `None` where they
    /// cannot follow, and how many could be read.
    pub(crate) fn advance_arrays(
        &mut self,
        stand: Stand,
        bytes: &[u8],
        look: &mut Look<'_, Arc<Network>>,
    ) -> Result<(Option<Stand>, usize), Halt> {
        let at = match stand {
            Stand::Stacks(set) => At::Plain(set),
            Stand::Array(id) => At::Array(id),
            Stand::Chart(_) => return Ok((None, 0)), // there are no charts of such a network
        };
        let Self { network, stepper, arrays, .. } = self;
        let mark = arrays.mark();
        let advanced = arrays.advance(network, stepper, at, bytes, look);
        if !matches!(advanced, Ok((Some(_), _))) {
            arrays.reset(mark); // what was read cannot follow
        }
        let (at, read) = advanced?;
        let stand = at.map(|at| match at {
            At::Plain(set) => Stand::Stacks(set),
            At::Array(id) => Stand::Array(id),
        });
        Ok((stand, read))
    }

    /// What may follow one more letter; `None` where it cannot follow. In an array with unique items only
    /// the letter that is no byte is read so.
    pub(crate) fn advance(&mut self, stand: Stand, class: u8) -> Result<Option<Stand>, Halt> {
        match (stand, &mut self.chart) {
            (Stand::Chart(column), Some(chart)) => {
                let Chart { tables, scratch, tree, .. } = &mut **chart;
                if tree.bytes() > self.stepper.sets.max_bytes {
                    return Err(Halt::Bytes);
                }
                Ok(scratch.step(tables, tree, column, class)?.map(Stand::Chart))
            }
            _ => {
                let set = self.set_of(stand).unwrap_or(NONE);
                let next = self.stepper.step(set, class)?;
                Ok((next != NONE).then_some(Stand::Stacks(next)))
            }
        }
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

    /// What was added last to the chart; for [`Self::forget_columns`].
    pub(crate) fn last_column(&self) -> Option<ColumnId> {
        self.chart.as_ref().map(|chart| chart.tree.last())
    }

    /// Drops the columns that a call added which came to nothing: some of them now, the others in
    /// [`Self::settle`], as a call that was ended is to return.
    pub(crate) fn forget_columns(&mut self, last: Option<ColumnId>) {
        if let (Some(last), Some(chart)) = (last, &mut self.chart)
            && chart.tree.last() > last
        {
            chart.to_drop = Some((last, chart.tree.last()));
            chart.drop_some();
        }
    }

    /// Whether an earlier call left something to be dropped.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.chart.as_ref().is_some_and(|chart| chart.to_drop.is_some())
    }

    /// Drops what earlier calls left.
    ///
    /// # Errors
    /// Those of the interrupt: the rest is left again.
    pub(crate) fn settle(&mut self, interrupt: &Interrupt) -> Result<(), Halt> {
        let Some(chart) = &mut self.chart else { return Ok(()) };
        while chart.drop_some() {
            interrupt.check()?;
        }
        Ok(())
    }

    /// Where masks took more work than they may.
    pub(crate) fn refused(&self) -> Arc<Refused> {
        self.refused.clone()
    }

    /// Whether half of the room for sets of members is taken, and most of it for texts that are gone.
    pub(crate) fn has_many_sets(&self) -> bool {
        let bytes = self.network.set_bytes();
        bytes > self.network.most_set_bytes() / 2 && bytes > 2 * self.rebuilt_set_bytes
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

    /// A family with the columns of a text on a chart, and no steps before; `None` for one on stacks.
    pub(crate) fn chart_apart(
        &mut self,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<Option<(Self, Stand)>, Halt> {
        let (Stand::Chart(column), Some(chart)) = (stand, &mut self.chart) else {
            return Ok(None);
        };
        let mut out = Self::new(&self.network)?;
        let (tree, last) = chart.tree.branch(column, interrupt)?;
        let tables = chart.tables.clone();
        out.chart = Some(Chart::new(tables, tree));
        let stand = Stand::Chart(last);
        out.begin(stand, Read::Nothing);
        Ok(Some((out, stand)))
    }

    /// The start of the language, as a column.
    pub(crate) fn chart_start(
        &mut self,
        tables: &Arc<Tables<Arc<Network>>>,
    ) -> Result<Stand, Halt> {
        let chart = self.chart.get_or_insert_with(|| Chart::new(tables.clone(), Tree::default()));
        chart.scratch.start(tables, &mut chart.tree).map(Stand::Chart)
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

    /// New tables with what `id` needs, and `id` in them. Where it was thinned, they hold what was thinned
    /// up to there and no whole steps: [`Self::go_back`] is to make some.
    pub(crate) fn rebuilt(
        &mut self,
        id: StepId,
        interrupt: &Interrupt,
    ) -> Result<(Self, StepId), Halt> {
        // Sets of members that no step stands at are left behind.
        let mut out = Self::new(&self.network)?;
        out.stepper.sets.meter.allow(u64::MAX, interrupt);
        out.may_chart = self.may_chart;
        out.steps.thinning = self.steps.thinning;
        let path = if self.is_thinned(id) { Vec::new() } else { self.steps.path(id) };
        let path: Vec<Step> = path.into_iter().map(|id| self.step(id)).collect();
        // A text that went over to the chart stays there: its last column has all before it.
        let last = path.iter().rev().find_map(|step| match step.stand {
            Stand::Chart(column) => Some(column),
            Stand::Stacks(_) | Stand::Array(_) => None,
        });
        if let (Some(column), Some(chart)) = (last, &mut self.chart) {
            let tables = chart.tables.clone();
            let (tree, _) = chart.tree.branch(column, interrupt)?;
            out.chart = Some(Chart::new(tables, tree));
        }
        let mut moving = Moving::new(self);
        let mut past = self.steps.past.clone();
        let first = self.steps.first().min(id.saturating_add(1));
        past.truncate(first);
        for checkpoint in past.checkpoints_mut() {
            checkpoint.stand = moving.kept(checkpoint.stand, &mut out)?;
        }
        let past = past.with_texts(|text| out.copy_text(self.bytes_of(text)));
        out.steps.put_behind(past, first);
        let mut at = id;
        for step in path {
            let stand = moving.stand(step.stand, &mut out)?;
            let read = match step.read {
                Read::Bytes(text) => Read::Bytes(out.copy_text(self.bytes_of(text))),
                read => read,
            };
            at = out.steps.put(&step, stand, read);
        }
        out.rebuilt_bytes = out.bytes();
        out.rebuilt_set_bytes = out.network.set_bytes();
        out.release();
        Ok((out, at))
    }

    fn copy_text(&mut self, bytes: &[u8]) -> u32 {
        self.texts.extend_from_slice(bytes);
        self.text_ends.push(self.texts.len());
        self.text_ends.len() as u32 - 1
    }
}

/// Moves stands of a family to another one.
struct Moving<'a> {
    from: &'a Family,
    sets: FxHashMap<SetId, SetId>,
    arrays: Copying<'a>,
}

impl<'a> Moving<'a> {
    fn new(from: &'a Family) -> Self {
        Self { from, sets: FxHashMap::default(), arrays: from.arrays.copying() }
    }

    fn set(&mut self, set: SetId, to: &mut Family) -> Result<SetId, Halt> {
        let (from, network) = (self.from, to.network.clone());
        let mut moved = |top: u32| network.set_of(&from.network, top).ok_or(Halt::Sets);
        copy_moved(&from.stepper.sets, set, &mut to.stepper.sets, &mut self.sets, &mut moved)
    }

    /// The stand of a whole step.
    fn stand(&mut self, stand: Stand, to: &mut Family) -> Result<Stand, Halt> {
        Ok(match (stand, &self.from.chart) {
            (Stand::Chart(column), Some(chart)) => Stand::Chart(chart.tree.column(column).place()),
            (Stand::Array(id), _) => {
                let set = self.set(self.from.arrays.set(At::Array(id)), to)?;
                Stand::Array(self.arrays.copy(id, set, &mut to.arrays)?)
            }
            (Stand::Stacks(set), _) => Stand::Stacks(self.set(set, to)?),
            (Stand::Chart(_), None) => stand,
        })
    }

    /// The stand of a checkpoint; these are moved in their order.
    fn kept(&mut self, stand: Stand, to: &mut Family) -> Result<Stand, Halt> {
        let Stand::Array(kept) = stand else { return self.stand(stand, to) };
        let set = self.set(self.from.arrays.kept_set(kept), to)?;
        Ok(Stand::Array(self.arrays.copy_kept(kept, set, &mut to.arrays)))
    }
}
