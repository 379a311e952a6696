//! When a chart takes over from stacks, and when tables are made anew.

use crate::budget::{Halt, Interrupt};
use crate::engine::Representation;
use crate::engine::history::{Again, Family, Read, Stand, StepId};
use crate::engine::lock;
use crate::engine::matcher::Matcher;
use crate::engine::matcher::accept::What;
use crate::engine::stop::crowded;
use crate::error::Result;
use parking_lot::RwLock;
use std::sync::Arc;

/// Work units of one accepted token, and as many more for each of its letters, past which a text is
/// better off on a chart.
const HEAVY: u64 = 1_000;
const HEAVY_LETTER: u64 = 500;

/// Bytes below which tables are never rebuilt.
pub(in crate::engine) const SOFT_BYTES: usize = 64 << 20;

impl Matcher {
    /// Whether the text is better off on a chart: stacks took too much work or memory for what was
    /// read, or more than they may.
    pub(super) fn is_better_on_a_chart(
        &self,
        family: &Family,
        before: Stand,
        what: What<'_>,
        work: u64,
        advanced: &std::result::Result<Option<Stand>, Halt>,
    ) -> bool {
        let letters = self.bytes_of(what).len() as u64;
        let is_heavy = family.work() - work > HEAVY + HEAVY_LETTER * letters;
        let is_wanted = match advanced {
            Err(halt) => !halt.is_interrupt(),
            Ok(stand) => is_heavy && stand.is_some(),
        };
        is_wanted
            && self.engine.representation == Representation::Automatic
            && !self.engine.network.takes_tokens()
            && !self.engine.network.has_sets()
            // A chart does not see where tokens end.
            && !family.counts_tokens
            && self.max_tokens.is_none()
            && family.may_chart
            && matches!(before, Stand::Stacks(_))
    }

    /// Reads the text on a chart, on which it stands from then on, and some more bytes; `None` where
    /// those cannot follow.
    pub(super) fn read_on_a_chart(
        &self,
        family: &mut Family,
        bytes: &[u8],
        interrupt: &Interrupt,
    ) -> std::result::Result<Option<Stand>, Halt> {
        let tables = self.engine.tables(interrupt)?;
        // What another fork has read again before need not be.
        let path = family.reads(self.at);
        let is_column = |&(id, _): &(StepId, Read)| {
            !family.is_thinned(id) && matches!(family.step(id).stand, Stand::Chart(_))
        };
        let known = path.iter().rposition(is_column);
        let (mut stand, path) = match known {
            Some(place) => (family.step(path[place].0).stand, &path[place + 1..]),
            None => (family.chart_start(&tables)?, &path[..]),
        };
        let mut again = Vec::new();
        for &(id, read) in path {
            let text = self.text_read(family, read).to_vec();
            self.allow(family, interrupt);
            // Stacks have read it.
            stand = self.advance(family, stand, &text, interrupt)?.0.ok_or(Halt::Work)?;
            again.push(Again { id, stand, read, length: text.len() });
        }
        let last = family.last_column();
        self.allow(family, interrupt);
        let after = self.advance(family, stand, bytes, interrupt)?.0;
        if after.is_none() {
            family.forget_columns(last);
        }
        // What was read before stands there too from now on, so that a rollback need not do this
        // again.
        family.restand(&again);
        Ok(after)
    }

    /// Whether tables with what this matcher needs alone would be smaller, as far as can be told.
    pub(super) fn is_crowded(&self, family: &Family) -> bool {
        family.bytes() > self.soft_limit(family) || family.has_many_sets()
    }

    fn soft_limit(&self, family: &Family) -> usize {
        let grown = family.rebuilt_bytes.saturating_mul(2).max(SOFT_BYTES);
        grown.min(self.engine.limits.max_matcher_bytes)
    }

    /// New tables with nothing but what this matcher needs. Forks keep the old ones.
    pub(super) fn rebuild(&mut self, interrupt: &Interrupt) -> Result<()> {
        let mut family = lock::write(&self.family, interrupt)?;
        let rebuilt = family.rebuilt(self.at, interrupt);
        drop(family);
        let (family, at) = rebuilt.map_err(|halt| self.halted(halt, interrupt))?;
        if family.bytes() > self.engine.limits.max_matcher_bytes {
            return Err(crowded(&self.engine));
        }
        self.family = Arc::new(RwLock::new(family));
        self.at = at;
        Ok(())
    }
}
