//! What is asked of columns.

use super::ColumnId;
use super::bits::{Bits, SparseWord, has};
use super::rows::{InternedRows, RowId};
use super::tables::Tables;
use super::tree::{ColumnNode, Draft, There, Tree};
use crate::budget::{Halt, Interrupt};
use crate::network::{ClassSet, Network};
use std::ops::Deref;

/// Columns copied between two looks at the interrupt.
const COLUMNS_BETWEEN_CHECKS: u32 = 16;

/// One column.
#[derive(Clone, Copy)]
pub(crate) struct Column<'a> {
    tree: &'a Tree,
    id: ColumnId,
}

/// The columns of one text.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    tree: &'a Tree,
}

impl<'a> Columns<'a> {
    pub(super) fn new(tree: &'a Tree) -> Self {
        Self { tree }
    }

    /// The last.
    pub(crate) fn tip(self) -> Column<'a> {
        self.at(self.len() as u32 - 1)
    }

    /// After so many letters.
    #[inline]
    pub(crate) fn at(self, place: u32) -> Column<'a> {
        Column { tree: self.tree, id: self.tree.path[place as usize] }
    }

    /// The number of columns.
    pub(crate) fn len(self) -> usize {
        self.tree.path.len()
    }

    /// The sets of places.
    pub(super) fn sets(self) -> &'a InternedRows {
        &self.tree.sets
    }

    /// Where on the way a rule may begin.
    #[inline]
    pub(super) fn predicted(self, rule: u32) -> &'a [SparseWord] {
        self.tree.predicted.get(rule as usize).map_or(&[], |words| words)
    }
}

impl<'a> Column<'a> {
    pub(super) fn new(tree: &'a Tree, id: ColumnId) -> Self {
        Self { tree, id }
    }

    fn part<T>(self, all: &'a [T], end: impl Fn(&ColumnNode) -> u32) -> &'a [T] {
        let nodes = &self.tree.nodes;
        let from = self.id.checked_sub(1).map_or(0, |before| end(&nodes[before as usize]));
        &all[from as usize..end(&nodes[self.id as usize]) as usize]
    }

    #[inline]
    pub(super) fn there(self) -> &'a [There] {
        self.part(&self.tree.there, |node| node.there)
    }

    /// The rules that may begin here, as a bit set.
    #[inline]
    pub(super) fn begun(self) -> &'a [SparseWord] {
        self.part(&self.tree.begun, |node| node.begun)
    }

    /// The sets of places of the states that are there.
    #[inline]
    pub(super) fn rows(self) -> &'a [RowId] {
        self.part(&self.tree.rows, |node| node.rows)
    }

    #[inline]
    pub(super) fn counting(self) -> &'a [u32] {
        self.part(&self.tree.counting, |node| node.counting)
    }

    pub(super) fn id(self) -> ColumnId {
        self.id
    }

    /// The number of letters read.
    pub(crate) fn place(self) -> u32 {
        self.tree.nodes[self.id as usize].place
    }

    /// The classes of letters that may be read next.
    pub(crate) fn next(self) -> &'a ClassSet {
        &self.tree.nodes[self.id as usize].next
    }

    /// Whether the text may end here.
    pub(crate) fn accepts(self) -> bool {
        self.tree.nodes[self.id as usize].accepts
    }

    /// The number of states that are there.
    pub(crate) fn len(self) -> usize {
        self.rows().len()
    }

    /// The states that are there, and the sets of places where their rules began.
    pub(super) fn with_rows(self) -> impl Iterator<Item = (u32, RowId)> {
        let listed = self.there().iter().flat_map(members_of);
        listed.chain(self.counting().iter().copied()).zip(self.rows().iter().copied())
    }

    /// The states that are there, and where their rules began: the words of a bit set and the place
    /// of the first.
    pub(crate) fn states(self) -> impl Iterator<Item = (u32, usize, &'a [u64])> {
        self.with_rows().map(move |(state, row)| {
            let (first, words) = self.tree.sets.get(row);
            (state, first, words)
        })
    }

    /// Calls `each` for the states of the tables that are there and in a set, with the sets of places
    /// where their rules began.
    #[inline]
    pub(super) fn each_of(self, states: &[SparseWord], mut each: impl FnMut(u32, RowId)) {
        let (there, rows) = (self.there(), self.rows());
        let mut from = 0;
        for &(at, mask) in states {
            while there.get(from).is_some_and(|found| found.at < at) {
                from += 1;
            }
            let Some(found) = there.get(from) else { break };
            if found.at != at {
                continue;
            }
            for bit in Bits(found.word & mask) {
                let rank = found.before + (found.word & ((1u64 << bit) - 1)).count_ones();
                each(at << 6 | bit, rows[rank as usize]);
            }
        }
    }

    /// Calls `each` for those who called `rule` here and are there: where the call returns to, and
    /// the set of places where the rule of the caller began. It ends where `each` says false.
    #[inline]
    pub(super) fn return_to<N: Deref<Target = Network>>(
        self,
        tables: &Tables<N>,
        rule: u32,
        mut each: impl FnMut(u32, RowId) -> bool,
    ) {
        let (there, rows, returns) = (self.there(), self.rows(), tables.returns());
        let mut from = 0;
        for callers in tables.callers(rule) {
            while there.get(from).is_some_and(|found| found.at < callers.at) {
                from += 1;
            }
            let Some(found) = there.get(from) else { break };
            if found.at != callers.at {
                continue;
            }
            for bit in Bits(found.word & callers.mask) {
                let below = (1u64 << bit) - 1;
                let rank = found.before + (found.word & below).count_ones();
                let call = callers.first + (callers.mask & below).count_ones();
                if !each(returns[call as usize], rows[rank as usize]) {
                    return;
                }
            }
        }
        let counting = self.counting();
        for (&state, &row) in counting.iter().zip(&rows[rows.len() - counting.len()..]) {
            for call in tables.network.calls(state).iter() {
                if tables.called(call) == rule && !each(call.to, row) {
                    return;
                }
            }
        }
    }

    /// Calls `each` for all who called `rule` here, those too whose own rule begins here: where the
    /// call returns to, and where the rule of the caller began.
    pub(crate) fn callers<N: Deref<Target = Network>>(
        self,
        tables: &Tables<N>,
        rule: u32,
        mut each: impl FnMut(u32, usize, &[u64]),
    ) {
        self.return_to(tables, rule, |to, row| {
            let (first, words) = self.tree.sets.get(row);
            each(to, first, words);
            true
        });
        let here = [1 << (self.place() & 63)];
        for call in tables.start_calls(rule) {
            if has(self.begun(), call.rule) {
                each(call.to, self.place() as usize >> 6, &here);
            }
        }
    }
}

impl Tree {
    /// A column.
    pub(crate) fn column(&self, id: ColumnId) -> Column<'_> {
        Column::new(self, id)
    }

    /// The columns up to one.
    pub(crate) fn columns(&mut self, tip: ColumnId) -> Columns<'_> {
        let length = self.column(tip).place() as usize + 1;
        // As a rule the text goes on by one letter.
        if length == self.path.len() + 1
            && self.path.last() == Some(&self.nodes[tip as usize].parent)
        {
            self.enter(tip);
            return Columns::new(self);
        }
        self.leave(length);
        // Up to where the text asked for last went the same way.
        let mut new = Vec::new();
        let mut at = tip;
        for place in (0..length).rev() {
            if self.path.get(place) == Some(&at) {
                break;
            }
            new.push(at);
            at = self.nodes[at as usize].parent;
        }
        self.leave(length - new.len());
        new.into_iter().rev().for_each(|id| self.enter(id));
        Columns::new(self)
    }

    /// The columns up to one, alone, and its number among them, which is its place.
    ///
    /// # Errors
    /// Those of the interrupt.
    pub(crate) fn branch(
        &mut self,
        tip: ColumnId,
        interrupt: &Interrupt,
    ) -> Result<(Tree, ColumnId), Halt> {
        let mut out = Tree::default();
        let columns = self.columns(tip);
        for place in 0..columns.len() as u32 {
            if place.is_multiple_of(COLUMNS_BETWEEN_CHECKS) {
                interrupt.check()?;
            }
            let column = columns.at(place);
            let copied = column.states().map(|(_, first, words)| out.sets.add(first, words));
            let draft = Draft {
                rows: copied.collect(),
                there: column.there().to_vec(),
                begun: column.begun().to_vec(),
                counting: column.counting().to_vec(),
                next: *column.next(),
                accepts: column.accepts(),
            };
            out.push(place.checked_sub(1), &draft);
        }
        let last = out.last();
        Ok((out, last))
    }
}

fn members_of(there: &There) -> impl Iterator<Item = u32> + use<> {
    let at = there.at << 6;
    Bits(there.word).map(move |bit| at | bit)
}
