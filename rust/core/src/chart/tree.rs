//! Columns of texts that begin alike: a tree.

use super::bits::{Bits, SparseWord, has, members};
use super::memo::Memo;
use super::rows::{RowId, Rows};
use super::tables::Tables;
use crate::network::{ClassSet, Network};
use std::ops::{Deref, Range};

/// A column of a [`Tree`].
pub(crate) type ColumnId = u32;

/// Some states of the tables that are there: a word of a bit set.
#[derive(Clone, Copy)]
pub(super) struct There {
    /// The place of the word.
    pub(super) at: u32,
    /// How many states are there before it.
    pub(super) before: u32,
    pub(super) word: u64,
}

/// What is known after so many letters: which states are there, and with each where its rule began;
/// which rules may begin here. What has no fixed size stands in the tree, up to these ends.
#[derive(Clone, Copy)]
struct Node {
    /// The column before; one that follows none is its own.
    parent: ColumnId,
    /// The number of letters read.
    place: u32,
    there: u32,
    begun: u32,
    rows: u32,
    counting: u32,
    /// The sets of places up to this column.
    sets: u32,
    accepts: bool,
    /// What may be read next.
    next: ClassSet,
}

/// What stands in a column, before it is added.
#[derive(Default)]
pub(super) struct Draft {
    pub(super) there: Vec<There>,
    pub(super) begun: Vec<SparseWord>,
    /// For each state that is there where its rule began, in the order of the states; then for
    /// each of those that count.
    pub(super) rows: Vec<RowId>,
    /// States that count, ascending.
    pub(super) counting: Vec<u32>,
    pub(super) next: ClassSet,
    pub(super) accepts: bool,
}

/// Columns, each after the one that it follows, in the order in which they were made. They are
/// never written again.
#[derive(Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    there: Vec<There>,
    begun: Vec<SparseWord>,
    rows: Vec<RowId>,
    counting: Vec<u32>,
    pub(super) sets: Rows,
    pub(super) memo: Memo,
    /// The columns up to the one that was asked for last, by place.
    path: Vec<ColumnId>,
    /// For each rule the places on the path where it may begin.
    predicted: Vec<Vec<SparseWord>>,
}

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
    pub(super) fn sets(self) -> &'a Rows {
        &self.tree.sets
    }

    /// Where on the way a rule may begin.
    #[inline]
    pub(super) fn predicted(self, rule: u32) -> &'a [SparseWord] {
        self.tree.predicted.get(rule as usize).map_or(&[], |words| words)
    }
}

impl<'a> Column<'a> {
    fn part<T>(self, all: &'a [T], end: impl Fn(&Node) -> u32) -> &'a [T] {
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
    fn counting(self) -> &'a [u32] {
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
        let listed = self.there().iter().flat_map(|there| members_of(there));
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

    /// Calls `each` for those who called `rule` here and are there: where the call returns to, and
    /// the set of places where the rule of the caller began.
    #[inline]
    pub(super) fn return_to<N: Deref<Target = Network>>(
        self,
        tables: &Tables<N>,
        rule: u32,
        mut each: impl FnMut(u32, RowId),
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
                each(returns[call as usize], rows[rank as usize]);
            }
        }
        let counting = self.counting();
        for (&state, &row) in counting.iter().zip(&rows[rows.len() - counting.len()..]) {
            for call in tables.network.calls(state).iter() {
                if tables.called(call) == rule {
                    each(call.to, row);
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
        });
        let here = [1 << (self.place() & 63)];
        for call in tables.start_calls(rule) {
            if has(self.begun(), call.rule) {
                each(call.to, self.place() as usize >> 6, &here);
            }
        }
    }
}

fn members_of(there: &There) -> impl Iterator<Item = u32> + use<> {
    let at = there.at << 6;
    Bits(there.word).map(move |bit| at | bit)
}

impl Tree {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        let predicted: usize = self.predicted.iter().map(|words| words.capacity()).sum();
        self.nodes.capacity() * size_of::<Node>()
            + self.there.capacity() * size_of::<There>()
            + (self.begun.capacity() + predicted) * size_of::<SparseWord>()
            + self.predicted.capacity() * 24
            + (self.rows.capacity() + self.counting.capacity() + self.path.capacity()) * 4
            + self.sets.bytes()
            + self.memo.bytes()
    }

    /// Adds a column, after `parent` or none.
    pub(super) fn push(&mut self, parent: Option<ColumnId>, draft: &Draft) -> ColumnId {
        self.there.extend_from_slice(&draft.there);
        self.begun.extend_from_slice(&draft.begun);
        self.rows.extend_from_slice(&draft.rows);
        self.counting.extend_from_slice(&draft.counting);
        let id = self.nodes.len() as ColumnId;
        self.nodes.push(Node {
            parent: parent.unwrap_or(id),
            place: parent.map_or(0, |parent| self.nodes[parent as usize].place + 1),
            there: self.there.len() as u32,
            begun: self.begun.len() as u32,
            rows: self.rows.len() as u32,
            counting: self.counting.len() as u32,
            sets: self.sets.len() as u32,
            accepts: draft.accepts,
            next: draft.next,
        });
        id
    }

    pub(crate) fn column(&self, id: ColumnId) -> Column<'_> {
        Column { tree: self, id }
    }

    /// The columns up to one.
    pub(crate) fn columns(&mut self, tip: ColumnId) -> Columns<'_> {
        let length = self.column(tip).place() as usize + 1;
        // As a rule the text goes on by one letter.
        if length == self.path.len() + 1
            && self.path.last() == Some(&self.nodes[tip as usize].parent)
        {
            self.enter(tip);
            return Columns { tree: self };
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
        Columns { tree: self }
    }

    /// Goes on with a column.
    fn enter(&mut self, id: ColumnId) {
        let place = self.path.len() as u32;
        self.path.push(id);
        let begun = self.part_of(id);
        for index in begun {
            let (at, word) = self.begun[index];
            for rule in members(&[(at, word)]) {
                if rule as usize >= self.predicted.len() {
                    self.predicted.resize(rule as usize + 1, Vec::new());
                }
                let words = &mut self.predicted[rule as usize];
                match words.last_mut() {
                    Some(last) if last.0 == place >> 6 => last.1 |= 1 << (place & 63),
                    _ => words.push((place >> 6, 1 << (place & 63))),
                }
            }
        }
    }

    /// Goes back to so many columns.
    fn leave(&mut self, length: usize) {
        while self.path.len() > length {
            let Some(id) = self.path.pop() else { return };
            let place = self.path.len() as u32;
            let begun = self.part_of(id);
            for index in begun {
                let (at, word) = self.begun[index];
                for rule in members(&[(at, word)]) {
                    let words = &mut self.predicted[rule as usize];
                    if let Some(last) = words.last_mut() {
                        last.1 &= !(1 << (place & 63));
                        if last.1 == 0 {
                            words.pop();
                        }
                    }
                }
            }
        }
    }

    /// Where the rules stand that may begin at a column.
    fn part_of(&self, id: ColumnId) -> Range<usize> {
        let from = id.checked_sub(1).map_or(0, |before| self.nodes[before as usize].begun);
        from as usize..self.nodes[id as usize].begun as usize
    }

    /// Drops all columns that were added after one.
    pub(crate) fn truncate(&mut self, last: ColumnId) {
        let kept = self.path.partition_point(|&id| id <= last);
        self.leave(kept);
        let node = self.nodes[last as usize];
        self.nodes.truncate(last as usize + 1);
        self.there.truncate(node.there as usize);
        self.begun.truncate(node.begun as usize);
        self.rows.truncate(node.rows as usize);
        self.counting.truncate(node.counting as usize);
        self.sets.truncate(node.sets as usize);
        self.memo.truncate(self.nodes.len());
    }

    /// The columns up to one, alone; its number among them is its place.
    pub(crate) fn branch(&mut self, tip: ColumnId) -> Tree {
        let mut out = Tree::default();
        let columns = self.columns(tip);
        for place in 0..columns.len() as u32 {
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
        out
    }
}
