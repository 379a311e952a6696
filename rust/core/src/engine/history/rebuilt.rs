//! New tables with what one step needs.

use crate::budget::{Halt, Interrupt};
use crate::engine::history::chart::Chart;
use crate::engine::history::copies::copy_moved;
use crate::engine::history::{Family, Read, Stand, Step, StepId};
use crate::stacks::SetId;
use crate::unique::Copying;
use rustc_hash::FxHashMap;

impl Family {
    /// Whether half of the room for sets of members is taken, and most of it for texts that are gone.
    pub(crate) fn has_many_sets(&self) -> bool {
        let bytes = self.network.set_bytes();
        bytes > self.network.most_set_bytes() / 2 && bytes > 2 * self.rebuilt_set_bytes
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

    fn sets(&mut self, sets: Vec<SetId>, to: &mut Family) -> Result<Vec<SetId>, Halt> {
        sets.into_iter().map(|set| self.set(set, to)).collect()
    }

    /// The stand of a whole step.
    fn stand(&mut self, stand: Stand, to: &mut Family) -> Result<Stand, Halt> {
        Ok(match (stand, &self.from.chart) {
            (Stand::Chart(column), Some(chart)) => Stand::Chart(chart.tree.column(column).place()),
            (Stand::Array(id), _) => {
                let sets = self.sets(self.from.arrays.sets(id), to)?;
                Stand::Array(self.arrays.copy(id, &sets, &mut to.arrays)?)
            }
            (Stand::Stacks(set), _) => Stand::Stacks(self.set(set, to)?),
            (Stand::Chart(_), None) => stand,
        })
    }

    /// The stand of a checkpoint; these are moved in their order.
    fn kept(&mut self, stand: Stand, to: &mut Family) -> Result<Stand, Halt> {
        let Stand::Array(kept) = stand else { return self.stand(stand, to) };
        let sets = self.sets(self.from.arrays.kept_sets(kept), to)?;
        Ok(Stand::Array(self.arrays.copy_kept(kept, &sets, &mut to.arrays)))
    }
}
