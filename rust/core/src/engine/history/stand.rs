//! What may follow where a text stands: on stacks, in an array with unique items, on a chart.

use crate::budget::Halt;
use crate::chart::{Columns, Tables};
use crate::engine::history::chart::Chart;
use crate::engine::history::{Family, Stand};
use crate::network::{BOTTOM, ClassSet, Network};
use crate::stacks::{NONE, SetId, StackSets};
use crate::unique::{At, Pause};
use std::sync::Arc;

/// What can stand on top of each other: where the way begins, and where it goes on.
#[derive(Clone, Copy)]
pub(crate) enum View<'a> {
    /// A set of stacks over a network: that of the text, whose sets of members have numbers there only.
    Stacks(&'a Arc<Network>, &'a StackSets, SetId),
    /// The last of the columns of a chart.
    Chart(&'a Tables<Arc<Network>>, Columns<'a>),
}

impl Family {
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

    /// What may follow some bytes, of a network with arrays whose items are unique; `None` where they
    /// cannot follow, and how many could be read.
    pub(crate) fn advance_arrays(
        &mut self,
        stand: Stand,
        bytes: &[u8],
        pause: &mut Pause<'_, Arc<Network>>,
    ) -> Result<(Option<Stand>, usize), Halt> {
        let at = match stand {
            Stand::Stacks(set) => At::Plain(set),
            Stand::Array(id) => At::Array(id),
            Stand::Chart(_) => return Ok((None, 0)), // there are no charts of such a network
        };
        let Self { network, stepper, arrays, .. } = self;
        let mark = arrays.mark();
        let advanced = arrays.advance(network, stepper, at, bytes, pause);
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

    /// Where a text stands once its last token has ended, whose bytes were read: rules that count tokens
    /// count it. `None` where nothing can follow.
    pub(crate) fn after_token(&mut self, stand: Stand) -> Result<Option<Stand>, Halt> {
        let Stand::Stacks(set) = stand else { return Ok(Some(stand)) };
        if !self.counts_tokens {
            return Ok(Some(stand));
        }
        let next = self.stepper.after_token(set)?;
        Ok((next != NONE).then_some(Stand::Stacks(next)))
    }

    /// Where a text stands once the first byte of a token was read: a rule that counts tokens and was entered
    /// by that byte counts the token.
    pub(crate) fn after_first(&mut self, stand: Stand) -> Result<Stand, Halt> {
        let Stand::Stacks(set) = stand else { return Ok(stand) };
        self.stepper.after_first(set).map(Stand::Stacks)
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
}
