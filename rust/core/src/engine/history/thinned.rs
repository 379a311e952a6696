//! Steps that are thinned, and steps that are dropped, in a family with one member.

use crate::budget::Halt;
#[cfg(test)]
use crate::engine::history::Thinning;
use crate::engine::history::{Again, Family, Read, Stand, StepId};

/// Steps that a rollback drops from the tables at once. Of more it leaves the tables as they are: they
/// are made anew when they have grown.
const MAX_DROPPED: usize = 1 << 12;

impl Family {
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
}
