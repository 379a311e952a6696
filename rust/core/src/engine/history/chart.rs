//! The chart of a family: made when first needed, its columns dropped in portions.

use crate::budget::{Halt, Interrupt};
use crate::chart::{ColumnId, Scratch, Tables, Tree};
use crate::engine::history::{Family, Read, Stand};
use crate::network::Network;
use std::sync::Arc;

/// Columns that are dropped between two looks at the interrupt: a millisecond or two.
const COLUMNS_AT_ONCE: ColumnId = 1 << 12;

/// A chart, made when first needed.
pub(super) struct Chart {
    pub(super) tables: Arc<Tables<Arc<Network>>>,
    pub(super) scratch: Scratch,
    pub(super) tree: Tree,
    /// Columns that are still to be dropped: those after the first of these two, where the second is
    /// the last that there is.
    pub(super) to_drop: Option<(ColumnId, ColumnId)>,
}

impl Chart {
    pub(super) fn new(tables: Arc<Tables<Arc<Network>>>, tree: Tree) -> Box<Self> {
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

impl Family {
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
}
