//! Masks where only charts can read: the text's own chart reads on along the trie.
//!
//! Left recursion is so dense there that hundreds of frames can stand on top, and nearly each can
//! follow each other: asked one by one, each from where the others were popped, they take far more
//! than reading the tokens does. So the tokens are read, all that begin alike together, as branches of
//! the chart that are dropped again. Of frames that nothing left-recursive can follow (strings, names,
//! numbers) the usual questions are asked before; below nodes where those accept all that there is
//! nothing is read.

use crate::budget::{Halt, Interrupt};
use crate::chart::ColumnId;
use crate::engine::Engine;
use crate::engine::history::{Family, OnChart, Stand};
use crate::engine::mask::answers::Walker;
use crate::engine::mask::found::{NODES_OF_WORK, class_at};
use crate::engine::mask::memo::set_bits;
use crate::engine::stop::Stop;
use crate::error::Error;
use crate::network::contains;
use crate::vocabulary::Trie;
use rustc_hash::FxHashMap;

/// Trie nodes between two looks at the clock: each may be a step of a dense chart.
const NODES_BETWEEN_CHECKS: u64 = 64;
/// Bytes of branches past which those are dropped from which nothing is read any more.
const MAX_BYTES: usize = 4 << 20;

impl Engine {
    /// [`Self::mask`] of a text on a chart where only charts can read.
    pub(in crate::engine) fn mask_by_chart(
        &self,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
        row: &mut [i32],
    ) -> Result<(), Error> {
        self.over_tokens(row, |walker, bits| {
            self.bits_by_chart(walker, family, stand, interrupt, bits)
        })
    }

    /// The same over the trie of a walker.
    pub(in crate::engine) fn bits_by_chart(
        &self,
        walker: &Walker,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<(), Error> {
        // Questions about frames that charts alone can read on from are left out. What cannot be
        // answered within bounds is read.
        match walker.mask(family.view(stand), self.allowance(), interrupt, bits) {
            Err(Stop::Work | Stop::Memory | Stop::Forgotten) => bits.fill(0),
            made => made.map_err(|stop| self.stopped(stop, interrupt))?,
        }
        self.read_on(walker, family, stand, interrupt, bits)
    }

    /// Writes what may follow a text on a chart by reading on with the chart alone.
    pub(in crate::engine) fn bits_by_branches(
        &self,
        walker: &Walker,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<(), Error> {
        bits.fill(0);
        self.read_on(walker, family, stand, interrupt, bits)
    }

    /// Sets the bits of all entries that the chart of a text can read on; those that are set stay.
    fn read_on(
        &self,
        walker: &Walker,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<(), Error> {
        let max_bytes = MAX_BYTES.min(self.limits.max_matcher_bytes / 8);
        let Some((chart, tip)) = family.on_chart(stand) else { return Ok(()) };
        let branches = Branches::new(chart, &walker.trie, bits, max_bytes);
        let (entered, walked) = branches.walk(tip, self.limits.max_mask_work, interrupt);
        walker.count_nodes(entered);
        walked.map_err(|halt| match halt {
            Halt::Bytes => crate::engine::stop::crowded(self),
            halt => self.stopped(halt.into(), interrupt),
        })
    }
}

/// Branches of a chart along a trie.
struct Branches<'a> {
    chart: OnChart<'a>,
    trie: &'a Trie,
    /// Of the entries before each, in the order of the trie, how many are not accepted so far; nothing
    /// where none is.
    missing: Vec<u32>,
    bits: &'a mut [i32],
    max_bytes: usize,
    /// What follows a column over a class: most classes have many bytes.
    steps: FxHashMap<(ColumnId, u8), Option<ColumnId>>,
    entered: u64,
}

impl<'a> Branches<'a> {
    fn new(chart: OnChart<'a>, trie: &'a Trie, bits: &'a mut [i32], max_bytes: usize) -> Self {
        let mut missing = Vec::new();
        if bits.iter().any(|&word| word != 0) {
            let entries = trie.entries_of(0..trie.len() as u32);
            let mut count = 0;
            missing.push(0);
            missing.extend(trie.numbers_of(entries).iter().map(|&number| {
                count += u32::from(bits[number as usize >> 5] >> (number & 31) & 1 == 0);
                count
            }));
        }
        Self { chart, trie, missing, bits, max_bytes, steps: FxHashMap::default(), entered: 0 }
    }

    /// Sets the bits of all entries that can be read after a column; how many nodes were entered.
    fn walk(mut self, tip: ColumnId, work: u64, interrupt: &Interrupt) -> (u64, Result<(), Halt>) {
        // Columns up to here are the text's and its forks'.
        let last = self.chart.tree.last();
        let before = self.chart.scratch.meter.spent();
        self.chart.scratch.meter.allow(work, interrupt);
        let walked = self.walk_all(tip, last, interrupt);
        self.chart.tree.truncate(last);
        // Masks are no steps of the text.
        self.chart.scratch.meter.back_to(before);
        (self.entered, walked)
    }

    fn walk_all(
        &mut self,
        tip: ColumnId,
        last: ColumnId,
        interrupt: &Interrupt,
    ) -> Result<(), Halt> {
        let (trie, bytes) = (self.trie, self.chart.tree.bytes());
        let tables = self.chart.tables.clone();
        let alphabet = tables.network.alphabet();
        let mut path = vec![(trie.end(0), tip)];
        let mut node = 1;
        while node < trie.end(0) {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            let before = path[path.len() - 1].1;
            let end = trie.end(node);
            if self.is_accepted(node, end) {
                node = end;
                continue;
            }
            if self.chart.tree.bytes() > bytes + self.max_bytes {
                // Columns on the path are older than all that follow them.
                self.chart.tree.truncate(before.max(last));
                self.steps.clear();
            }
            self.entered += 1;
            if self.entered.is_multiple_of(NODES_BETWEEN_CHECKS) {
                interrupt.check()?;
            }
            if self.entered.is_multiple_of(NODES_OF_WORK) {
                self.chart.scratch.meter.spend(1)?;
            }
            let Some(column) = self.step(before, class_at(alphabet, trie, node))? else {
                node = end;
                continue;
            };
            set_bits(self.bits, trie.numbers(node));
            if *self.chart.tree.column(column).next() == [0; 4] {
                node = end;
                continue;
            }
            path.push((end, column));
            node += 1;
        }
        Ok(())
    }

    /// Whether all entries of some nodes are known to be accepted.
    fn is_accepted(&self, node: u32, end: u32) -> bool {
        let entries = self.trie.entries_of(node..end);
        let missing = |entry: u32| self.missing.get(entry as usize);
        !self.missing.is_empty() && missing(entries.start) == missing(entries.end)
    }

    #[inline]
    fn step(&mut self, before: ColumnId, class: u8) -> Result<Option<ColumnId>, Halt> {
        let OnChart { tables, scratch, tree } = &mut self.chart;
        if !contains(tree.column(before).next(), class) {
            return Ok(None);
        }
        if let Some(&known) = self.steps.get(&(before, class)) {
            return Ok(known);
        }
        let next = scratch.step(tables, tree, before, class)?;
        self.steps.insert((before, class), next);
        Ok(next)
    }
}
