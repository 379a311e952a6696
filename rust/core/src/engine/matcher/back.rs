//! Going back.

use super::Matcher;
use crate::budget::{Halt, Interrupt};
use crate::engine::history::{Again, Family, Read, StepId};
use crate::engine::lock;
use crate::error::{Error, Result};
use parking_lot::RwLock;
use std::sync::Arc;

/// Steps that are taken back while others wait.
const QUICK_DROPPED: usize = 256;

impl Matcher {
    /// Whether no fork shares the tables: none can come while the matcher is borrowed to be changed.
    pub(super) fn is_alone(&self) -> bool {
        Arc::strong_count(&self.family) == 1
    }

    /// Takes back the last `count` steps. Where those are many, some tokens before them may be read again.
    ///
    /// # Errors
    /// [`Error::State`] when there are fewer; [`Error::Deadline`], [`Error::Cancelled`] while a fork
    /// reads on, or tokens are read again. Nothing has changed then.
    pub fn rollback(&mut self, count: usize, interrupt: &Interrupt) -> Result<()> {
        // A matcher that was cancelled can still go back: that takes little time of its own.
        let mut family = lock::write(&self.family, interrupt)?;
        let id = self.step_before(&family, count)?;
        if family.is_thinned(id) {
            drop(family);
            return self.rollback_far(id, interrupt);
        }
        self.drop_after(&mut family, id);
        drop(family);
        self.at = id;
        Ok(())
    }

    /// [`Self::rollback`] where no lock is waited for, nothing is read again and little is to be dropped;
    /// else `None`.
    pub fn rollback_now(&mut self, count: usize) -> Option<Result<()>> {
        let mut family = self.family.try_write()?;
        let id = match self.step_before(&family, count) {
            Ok(id) => id,
            Err(error) => return Some(Err(error)),
        };
        if family.is_thinned(id) || family.after(id) > QUICK_DROPPED {
            return None;
        }
        self.drop_after(&mut family, id);
        drop(family);
        self.at = id;
        Some(Ok(()))
    }

    /// Back to the first step.
    ///
    /// # Errors
    /// As [`Self::rollback`].
    pub fn reset(&mut self, interrupt: &Interrupt) -> Result<()> {
        let steps = self.steps(interrupt)?;
        self.rollback(steps, interrupt)
    }

    fn step_before(&self, family: &Family, count: usize) -> Result<StepId> {
        let depth = family.depth(self.at);
        let left = u32::try_from(count).ok().and_then(|count| depth.checked_sub(count));
        match left {
            Some(left) => Ok(family.ancestor(self.at, left)),
            None => Err(Error::State(format!(
                "{count} steps cannot be taken back: {depth} were accepted"
            ))),
        }
    }

    fn drop_after(&self, family: &mut Family, id: StepId) {
        self.hint.forget();
        if self.is_alone() {
            family.truncate(id);
        }
    }

    /// Goes back to a step that was thinned: in the tables, or, where forks have these too or they are
    /// full, in new ones with what was read up to there.
    fn rollback_far(&mut self, id: StepId, interrupt: &Interrupt) -> Result<()> {
        let mut family = lock::write(&self.family, interrupt)?;
        if self.is_alone() {
            match self.go_back(&mut family, id, interrupt) {
                Ok(at) => {
                    drop(family);
                    self.at = at;
                    return Ok(());
                }
                Err(halt) if halt.is_interrupt() => return Err(self.halted(halt, interrupt)),
                Err(_) => {}
            }
        }
        let apart = family.rebuilt(id, interrupt);
        drop(family);
        let halted = |halt| self.halted(halt, interrupt);
        let (mut apart, id) = apart.map_err(halted)?;
        let at = self.go_back(&mut apart, id, interrupt).map_err(halted)?;
        self.family = Arc::new(RwLock::new(apart));
        self.at = at;
        Ok(())
    }

    /// Goes back to a step that was thinned, from the checkpoint before it on, in tables that nobody else
    /// has.
    fn go_back(
        &self,
        family: &mut Family,
        id: StepId,
        interrupt: &Interrupt,
    ) -> std::result::Result<StepId, Halt> {
        let mark = family.arrays.mark();
        let mut read_again = || {
            let (first, reads) = family.checkpoint(id)?;
            let (mut stand, mut again) = (first, Vec::with_capacity(reads.len()));
            for (id, read) in reads {
                interrupt.check()?;
                // What was read once needs no allowance.
                family.allow(u64::MAX, usize::MAX, interrupt);
                let length = self.text_read(family, read).len();
                let next = match read {
                    Read::Token(token) => self.advance_token(family, stand, token, interrupt)?,
                    Read::Bytes(text) => {
                        let text = family.bytes_of(text).to_vec();
                        self.advance(family, stand, &text, interrupt)?.0
                    }
                    Read::Nothing | Read::Stop(_) => Some(stand),
                };
                stand = next.ok_or(Halt::Work)?;
                again.push(Again { id, stand, read, length });
            }
            Ok((first, again))
        };
        let read = read_again();
        family.release();
        match read {
            Ok((stand, again)) => {
                self.hint.forget();
                Ok(family.go_back(id, stand, &again))
            }
            Err(halt) => {
                family.arrays.reset(mark);
                Err(halt)
            }
        }
    }
}
