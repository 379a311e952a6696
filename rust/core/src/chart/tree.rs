//! Columns of texts that begin alike: a tree.

use super::column::Column;
use std::sync::Arc;

/// A column of a [`Tree`].
pub(crate) type ColumnId = u32;

struct Node {
    column: Arc<Column>,
    /// The column before; one that follows none is its own.
    parent: ColumnId,
}

/// Columns, each after the one that it follows.
#[derive(Default)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// The columns up to the one that was asked for last, by place.
    path: Vec<ColumnId>,
    bytes: usize,
}

/// The columns of one text.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'a> {
    nodes: &'a [Node],
    path: &'a [ColumnId],
}

impl<'a> Columns<'a> {
    /// The last.
    pub(crate) fn tip(self) -> &'a Column {
        self.at(self.path.len() as u32 - 1)
    }

    /// After so many letters.
    #[inline]
    pub(crate) fn at(self, place: u32) -> &'a Column {
        &self.nodes[self.path[place as usize] as usize].column
    }

    /// The number of columns.
    pub(crate) fn len(self) -> usize {
        self.path.len()
    }
}

impl Tree {
    /// Adds a column that follows none.
    pub(crate) fn root(&mut self, column: Column) -> ColumnId {
        self.add(self.nodes.len() as ColumnId, Arc::new(column))
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a column after another.
    pub(crate) fn push(&mut self, parent: ColumnId, column: Column) -> ColumnId {
        self.add(parent, Arc::new(column))
    }

    fn add(&mut self, parent: ColumnId, column: Arc<Column>) -> ColumnId {
        self.bytes += column.bytes() + size_of::<Node>();
        self.nodes.push(Node { column, parent });
        self.nodes.len() as ColumnId - 1
    }

    pub(crate) fn column(&self, id: ColumnId) -> &Column {
        &self.nodes[id as usize].column
    }

    /// The columns up to one.
    pub(crate) fn columns(&mut self, tip: ColumnId) -> Columns<'_> {
        let length = self.column(tip).place() as usize + 1;
        self.path.resize(length, ColumnId::MAX);
        let mut at = tip;
        // Up to where the text asked for last went the same way.
        for place in (0..length).rev() {
            if self.path[place] == at {
                break;
            }
            self.path[place] = at;
            at = self.nodes[at as usize].parent;
        }
        Columns { nodes: &self.nodes, path: &self.path }
    }

    /// Drops all columns that were added after one.
    pub(crate) fn truncate(&mut self, last: ColumnId) {
        for node in self.nodes.drain(last as usize + 1..) {
            self.bytes -= node.column.bytes() + size_of::<Node>();
        }
        // What is left of the path may be of columns that are gone.
        self.path.clear();
    }

    /// The columns up to one, alone; its number among them is its place.
    pub(crate) fn branch(&mut self, tip: ColumnId) -> Tree {
        let mut out = Tree::default();
        let path = self.columns(tip).path.to_vec();
        for (place, id) in path.into_iter().enumerate() {
            let column = self.nodes[id as usize].column.clone();
            out.add((place as ColumnId).saturating_sub(1), column);
        }
        out
    }
}
