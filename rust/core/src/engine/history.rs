//! What a matcher and its forks share: the stack sets of everything they read, and how they came
//! there.
//!
//! Both tables only grow, and a place in them is a number: so a fork is a copy of a number and a
//! rollback the number of an ancestor. The steps form a tree with jump pointers (Myers' random
//! access lists), by which an ancestor is found in logarithmic time at any depth.

use crate::budget::{Halt, Interrupt};
use crate::chart::{ColumnId, Columns, Scratch, Tables, Tree};
use crate::ending::Memo;
use crate::network::{BOTTOM, ClassSet, Network};
use crate::stacks::{Entry, NONE, REST, SetId, StackSets, Stepper, beneath_first};
use crate::unique::{ArrayId, Arrays, At, Look};
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
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

/// How what was read is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stand {
    /// As a set of stacks.
    Stacks(SetId),
    /// As a set of stacks, and beside them the array that is being read, whose items are unique.
    Array(ArrayId),
    /// As a column of the chart.
    Chart(ColumnId),
}

/// What can stand on top of each other: where the way begins, and where it goes on.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// A set of stacks over a network: that of the text, whose sets of members have numbers there only.
    Stacks(&'a Arc<Network>, &'a StackSets, SetId),
    /// The last of the columns of a chart.
    Chart(&'a Tables<Arc<Network>>, Columns<'a>),
}

/// One accepted token or text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    parent: StepId,
    /// An ancestor further up.
    jump: StepId,
    depth: u32,
    /// The tokens read up to here since the first step, stop tokens too.
    pub(crate) tokens: u32,
    /// The bytes read likewise.
    pub(crate) bytes: u32,
    /// What may follow it.
    pub(crate) stand: Stand,
    pub(crate) read: Read,
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
    steps: Vec<Step>,
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
            steps: Vec::new(),
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
        self.steps.clear();
        self.steps.push(Step { parent: 0, jump: 0, depth: 0, tokens: 0, bytes, stand, read });
        0
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.stepper.bytes()
            + self.arrays.bytes()
            + self.network.set_bytes()
            + self.chart.as_ref().map_or(0, |chart| chart.tree.bytes())
            + self.steps.capacity() * size_of::<Step>()
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

    pub(crate) fn step(&self, id: StepId) -> Step {
        self.steps[id as usize]
    }

    /// The number of steps from the first.
    pub(crate) fn depth(&self, id: StepId) -> u32 {
        self.steps[id as usize].depth
    }

    /// Adds a step after `parent` that read so many bytes.
    pub(crate) fn push(
        &mut self,
        parent: StepId,
        stand: Stand,
        read: Read,
        length: usize,
    ) -> StepId {
        let p = self.steps[parent as usize];
        let j = self.steps[p.jump as usize];
        let jj = self.steps[j.jump as usize];
        // Two jumps of equal length make one of twice that and one.
        let jump = if p.depth - j.depth == j.depth - jj.depth { j.jump } else { parent };
        let id = self.steps.len() as StepId;
        let tokens = p.tokens + u32::from(matches!(read, Read::Token(_) | Read::Stop(_)));
        let bytes = p.bytes.saturating_add(u32::try_from(length).unwrap_or(u32::MAX));
        self.steps.push(Step { parent, jump, depth: p.depth + 1, tokens, bytes, stand, read });
        id
    }

    /// Remembers what a step read that was no token.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> Read {
        self.texts.extend_from_slice(bytes);
        self.text_ends.push(self.texts.len());
        Read::Bytes(self.text_ends.len() as u32 - 1)
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

    /// How many steps or columns [`Self::truncate`] would drop.
    pub(crate) fn after(&self, id: StepId) -> usize {
        let columns = match (self.steps[id as usize].stand, &self.chart) {
            (Stand::Chart(column), Some(chart)) => chart.tree.last() - column,
            _ => 0,
        };
        (self.steps.len() - 1 - id as usize).max(columns as usize)
    }

    /// Drops the steps after `id`, for a family with one member, where they are few.
    pub(crate) fn truncate(&mut self, id: StepId) {
        if self.after(id) > MAX_DROPPED {
            return;
        }
        self.refused.0.lock().clear(); // numbers of columns are given again
        if let Some(chart) = &mut self.chart {
            // Steps before one that stands on stacks may stand on columns of another branch.
            if let Stand::Chart(column) = self.steps[id as usize].stand {
                chart.to_drop = None;
                chart.tree.truncate(column);
            }
        }
        let texts = self.steps[id as usize + 1..].iter().filter_map(|step| match step.read {
            Read::Bytes(text) => Some(text),
            _ => None,
        });
        if let Some(first) = texts.min() {
            self.texts.truncate(self.text_place(first).start);
            self.text_ends.truncate(first as usize);
        }
        self.steps.truncate(id as usize + 1);
        if id == 0 && !matches!(self.steps[0].stand, Stand::Array(_)) {
            self.arrays.clear();
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

    /// From now on a step stands elsewhere, where the same may follow.
    pub(crate) fn restand(&mut self, id: StepId, stand: Stand) {
        self.steps[id as usize].stand = stand;
    }

    /// The steps up to one, oldest first, by their numbers.
    pub(crate) fn path_ids(&self, id: StepId) -> Vec<StepId> {
        let mut out = vec![id];
        let mut at = id;
        while self.steps[at as usize].depth > 0 {
            at = self.steps[at as usize].parent;
            out.push(at);
        }
        out.reverse();
        out
    }

    /// New tables with what `id` needs, and `id` in them.
    pub(crate) fn rebuilt(
        &mut self,
        id: StepId,
        interrupt: &Interrupt,
    ) -> Result<(Self, StepId), Halt> {
        // Sets of members that no step stands at are left behind.
        let mut out = Self::new(&self.network)?;
        let network = out.network.clone();
        let mut moved = |top: u32| network.set_of(&self.network, top).ok_or(Halt::Sets);
        out.stepper.sets.meter.allow(u64::MAX, interrupt);
        out.may_chart = self.may_chart;
        out.steps.clear();
        let path = self.path(id);
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
        let mut copies = FxHashMap::default();
        let mut arrays = self.arrays.copying();
        let (mut parent, mut before) = (0, 0);
        for step in path {
            let stand = match (step.stand, &self.chart) {
                (Stand::Chart(column), Some(chart)) => {
                    Stand::Chart(chart.tree.column(column).place())
                }
                (stand, _) => {
                    let sets = &mut out.stepper.sets;
                    let (from, set) = (&self.stepper.sets, self.set_of(stand).unwrap_or(NONE));
                    let set = copy_moved(from, set, sets, &mut copies, &mut moved)?;
                    match stand {
                        Stand::Array(id) => Stand::Array(arrays.copy(id, set, &mut out.arrays)?),
                        _ => Stand::Stacks(set),
                    }
                }
            };
            let read = match step.read {
                Read::Bytes(text) => out.text(self.bytes_of(text)),
                read => read,
            };
            parent = match out.steps.is_empty() {
                true => out.begin(stand, read),
                false => out.push(parent, stand, read, (step.bytes - before) as usize),
            };
            before = step.bytes;
        }
        out.rebuilt_bytes = out.bytes();
        out.rebuilt_set_bytes = out.network.set_bytes();
        out.release();
        Ok((out, parent))
    }
}

/// The stacks of a stand in tables of their own.
pub(crate) struct StacksApart {
    network: Arc<Network>,
    sets: StackSets,
    set: SetId,
}

impl StacksApart {
    /// What a mask is made of.
    pub(crate) fn view(&self) -> View<'_> {
        View::Stacks(&self.network, &self.sets, self.set)
    }

    /// What says which tokens can be taken whole.
    pub(crate) fn into_marks(self) -> Marks {
        let mut stepper = Stepper::new(self.network.clone());
        stepper.sets = self.sets;
        Marks { network: self.network, stepper, set: self.set }
    }
}

/// Stacks, of which is asked which tokens can be taken whole.
pub(crate) struct Marks {
    network: Arc<Network>,
    stepper: Stepper<Arc<Network>>,
    set: SetId,
}

impl Marks {
    /// Whether a token can be taken whole.
    pub(crate) fn can_follow(&mut self, id: u32) -> Result<bool, Halt> {
        let Self { network, stepper, set } = self;
        let Some(escape) = network.alphabet().escape() else { return Ok(false) };
        let mut set = stepper.step(*set, escape)?;
        for byte in id.to_be_bytes() {
            if set == NONE {
                break;
            }
            set = stepper.step(set, network.alphabet().class(byte))?;
        }
        Ok(set != NONE)
    }
}

/// The same set in another table.
pub(in crate::engine) fn copy_set(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
) -> Result<SetId, Halt> {
    copy(from, set, to, &mut FxHashMap::default())
}

/// The same set in another table; `copies` are those that are there.
pub(in crate::engine) fn copy(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
    copies: &mut FxHashMap<SetId, SetId>,
) -> Result<SetId, Halt> {
    copy_moved(from, set, to, copies, &mut |top| Ok(top))
}

/// The same; `moved` says which state stands there for a state.
fn copy_moved(
    from: &StackSets,
    set: SetId,
    to: &mut StackSets,
    copies: &mut FxHashMap<SetId, SetId>,
    moved: &mut impl FnMut(u32) -> Result<u32, Halt>,
) -> Result<SetId, Halt> {
    let is_there = |set| copies.contains_key(&set);
    for set in beneath_first(from, set, is_there, &mut |steps| to.spend(steps))? {
        let mut entries: Vec<Entry> = Vec::new();
        for (top, beneath) in from.entries(set) {
            entries.push(match top {
                BOTTOM => (BOTTOM, NONE),
                top => (moved(top)?, copies[&beneath]),
            });
        }
        let is_sorted = entries.windows(2).all(|pair| pair[0].0 < pair[1].0);
        let copied = match is_sorted {
            true => to.add(&entries)?,
            false => to.collect(&mut entries, &[])?,
        };
        copies.insert(set, copied);
    }
    Ok(copies[&set])
}
