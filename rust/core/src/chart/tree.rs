//! Columns of texts that begin alike: a tree.

use super::ColumnId;
use super::bits::{SparseWord, members};
use super::fan::Fans;
use super::memo::ColumnMemo;
use super::rows::{InternedRows, RowId};
use crate::network::ClassSet;
use std::ops::Range;

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
pub(super) struct ColumnNode {
    /// The column before; one that follows none is its own.
    pub(super) parent: ColumnId,
    /// The number of letters read.
    pub(super) place: u32,
    pub(super) there: u32,
    pub(super) begun: u32,
    pub(super) rows: u32,
    pub(super) counting: u32,
    /// The sets of places up to this column.
    pub(super) sets: u32,
    pub(super) accepts: bool,
    /// What may be read next.
    pub(super) next: ClassSet,
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
    pub(super) nodes: Vec<ColumnNode>,
    pub(super) there: Vec<There>,
    pub(super) begun: Vec<SparseWord>,
    pub(super) rows: Vec<RowId>,
    pub(super) counting: Vec<u32>,
    pub(super) sets: InternedRows,
    pub(super) memo: ColumnMemo,
    pub(super) fans: Fans,
    /// The columns up to the one that was asked for last, by place.
    pub(super) path: Vec<ColumnId>,
    /// For each rule the places on the path where it may begin.
    pub(super) predicted: Vec<Vec<SparseWord>>,
    /// Their words, together.
    predicted_words: usize,
}

impl Tree {
    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<ColumnNode>()
            + self.there.capacity() * size_of::<There>()
            + (self.begun.capacity() + self.predicted_words) * size_of::<SparseWord>()
            + self.predicted.capacity() * 24
            + (self.rows.capacity() + self.counting.capacity() + self.path.capacity()) * 4
            + self.sets.bytes()
            + self.memo.bytes()
            + self.fans.bytes()
    }

    /// Adds a column, after `parent` or none.
    pub(super) fn push(&mut self, parent: Option<ColumnId>, draft: &Draft) -> ColumnId {
        self.there.extend_from_slice(&draft.there);
        self.begun.extend_from_slice(&draft.begun);
        self.rows.extend_from_slice(&draft.rows);
        self.counting.extend_from_slice(&draft.counting);
        let id = self.nodes.len() as ColumnId;
        self.nodes.push(ColumnNode {
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

    /// Goes on with a column.
    pub(super) fn enter(&mut self, id: ColumnId) {
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
                    _ => {
                        words.push((place >> 6, 1 << (place & 63)));
                        self.predicted_words += 1;
                    }
                }
            }
        }
    }

    /// Goes back to so many columns.
    pub(super) fn leave(&mut self, length: usize) {
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
                            self.predicted_words -= 1;
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

    /// The column that was added last.
    pub(crate) fn last(&self) -> ColumnId {
        (self.nodes.len() as ColumnId).saturating_sub(1)
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
        self.fans.truncate(self.nodes.len());
    }
}
