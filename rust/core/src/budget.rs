//! What one call may use: counted work, and an interrupt that ends it early.
//!
//! Everything that can take long counts its work, in units that are the same on every machine, and
//! looks at its [`Interrupt`] every [`UNITS_BETWEEN_CHECKS`] units or more often: a small fraction
//! of a millisecond. Three types share the task:
//!
//! - [`Interrupt`]: cancel flags, a deadline, an observer. It says *that* a call is to end.
//! - [`Meter`]: a counter with a bound and an interrupt, owned by tables that grow by `&mut`.
//! - [`Budget`]: the same behind a shared reference, for the passes that make a network. It can
//!   also grant a part of what is left to an attempt that may fail.
//!
//! A call that ends early returns a [`Halt`]; what it made until then stays valid.

use crate::error::{Error, Result};
use crate::limits::Limits;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Units of work between two looks at an interrupt. A unit takes 20 to 100 nanoseconds.
pub const UNITS_BETWEEN_CHECKS: u64 = 1 << 12;

/// Why a call ends before its work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The counted work passed its bound.
    Work,
    /// A stack is deeper than allowed.
    Depth,
    /// The tables hold more bytes than allowed.
    Bytes,
    /// The network has no room for more states that are sets of members.
    Sets,
    /// Too many arrays whose items are unique are read at once.
    Arrays,
    /// The caller cancelled the call.
    Cancelled,
    /// The deadline passed.
    Deadline,
}

impl Halt {
    /// Whether the same call may go further at another time: bounds stay, interrupts pass.
    pub fn is_interrupt(self) -> bool {
        matches!(self, Halt::Cancelled | Halt::Deadline)
    }
}

/// A point in time after which a call ends.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    end: Instant,
    limit: &'static str,
    milliseconds: u64,
}

/// Somebody who watches a call from outside and may end it.
pub trait Observer: Send + Sync {
    /// Returns false to end the call. The call asks every fraction of a millisecond, so an observer
    /// that costs time decides itself how often it looks.
    fn go_on(&self) -> bool;

    /// Takes note of `done` of `total` parts of the work; returns false to end the call.
    fn progress(&self, _done: usize, _total: usize) -> bool {
        self.go_on()
    }
}

/// When a call is to end early: cancel flags, a deadline, an observer; none of them by default.
#[derive(Clone, Default)]
pub struct Interrupt {
    flags: [Option<Arc<AtomicBool>>; 2],
    deadline: Option<Deadline>,
    observer: Option<Arc<dyn Observer>>,
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Interrupt");
        out.field("flags", &self.flags).field("deadline", &self.deadline);
        out.field("is_observed", &self.observer.is_some()).finish()
    }
}

impl Interrupt {
    /// This interrupt with one more cancel flag; at most two count, the first stays.
    #[must_use]
    pub fn with_flag(mut self, flag: &Arc<AtomicBool>) -> Self {
        let place = usize::from(self.flags[0].is_some());
        self.flags[place] = Some(flag.clone());
        self
    }

    /// This interrupt with a deadline so many milliseconds from now; `None` adds none. The
    /// earlier of two deadlines counts. `limit` names the bound in the error.
    #[must_use]
    pub fn with_deadline(mut self, limit: &'static str, milliseconds: Option<u64>) -> Self {
        let Some(milliseconds) = milliseconds else { return self };
        let end = Instant::now().checked_add(Duration::from_millis(milliseconds));
        if let Some(end) = end
            && self.deadline.is_none_or(|known| end < known.end)
        {
            self.deadline = Some(Deadline { end, limit, milliseconds });
        }
        self
    }

    /// This interrupt with an observer.
    #[must_use]
    pub fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Whether the call is to end now.
    ///
    /// # Errors
    /// [`Halt::Cancelled`] or [`Halt::Deadline`].
    pub fn check(&self) -> std::result::Result<(), Halt> {
        self.check_flags()?;
        if self.deadline.is_some_and(|deadline| Instant::now() > deadline.end) {
            return Err(Halt::Deadline);
        }
        match &self.observer {
            Some(observer) if !observer.go_on() => Err(Halt::Cancelled),
            _ => Ok(()),
        }
    }

    /// Whether a flag cancels the call: no clock is read and nobody is asked.
    ///
    /// # Errors
    /// [`Halt::Cancelled`].
    #[inline]
    pub fn check_flags(&self) -> std::result::Result<(), Halt> {
        match self.flags.iter().flatten().any(|flag| flag.load(Ordering::Relaxed)) {
            true => Err(Halt::Cancelled),
            false => Ok(()),
        }
    }

    /// Tells the observer how much of the work is done.
    ///
    /// # Errors
    /// [`Halt::Cancelled`] or [`Halt::Deadline`].
    pub fn progress(&self, done: usize, total: usize) -> std::result::Result<(), Halt> {
        self.check()?;
        match &self.observer {
            Some(observer) if !observer.progress(done, total) => Err(Halt::Cancelled),
            _ => Ok(()),
        }
    }

    /// [`Self::progress`] with its error.
    ///
    /// # Errors
    /// [`Error::Cancelled`] or [`Error::Deadline`].
    pub fn report(&self, done: usize, total: usize) -> Result<()> {
        let going_on = self.progress(done, total);
        going_on.map_err(|halt| self.error(halt).unwrap_or(Error::Cancelled))
    }

    /// The error of a call that this interrupt ended; `None` for a halt of another kind.
    pub fn error(&self, halt: Halt) -> Option<Error> {
        match (halt, self.deadline) {
            (Halt::Deadline, Some(Deadline { limit, milliseconds, .. })) => {
                Some(Error::Deadline { limit, milliseconds })
            }
            (Halt::Cancelled | Halt::Deadline, _) => Some(Error::Cancelled),
            _ => None,
        }
    }

    /// [`Self::check`] with its error.
    ///
    /// # Errors
    /// [`Error::Cancelled`] or [`Error::Deadline`].
    pub fn look(&self) -> Result<()> {
        self.check().map_err(|halt| self.error(halt).unwrap_or(Error::Cancelled))
    }
}

/// Counted work with a bound and an interrupt.
#[derive(Debug)]
pub struct Meter {
    spent: u64,
    /// Where [`Self::spend`] looks closer: the bound, or the next check if that comes first.
    next: u64,
    limit: u64,
    /// Where the interrupt is looked at next.
    check: u64,
    interrupt: Interrupt,
}

impl Default for Meter {
    fn default() -> Self {
        let (next, limit, check) = (u64::MAX, u64::MAX, u64::MAX);
        Self { spent: 0, next, limit, check, interrupt: Interrupt::default() }
    }
}

impl Meter {
    /// Units spent so far.
    #[inline]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Units that may still be spent.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent)
    }

    /// From here on `work` more units may be spent, until `interrupt` says otherwise.
    pub fn allow(&mut self, work: u64, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
        self.check = self.spent.saturating_add(UNITS_BETWEEN_CHECKS);
        self.allow_more(work);
    }

    /// From here on `work` more units may be spent; the interrupt stays, and is looked at when it
    /// would have been.
    pub fn allow_more(&mut self, work: u64) {
        self.limit = self.spent.saturating_add(work);
        self.next = self.limit.min(self.check);
    }

    /// Ends a call: without bound and interrupt until the next [`Self::allow`].
    pub fn release(&mut self) {
        (self.limit, self.next, self.check) = (u64::MAX, u64::MAX, u64::MAX);
        self.interrupt = Interrupt::default();
    }

    /// Ends a call as [`Self::release`] does, and forgets what it spent since the count was `spent`.
    pub(crate) fn back_to(&mut self, spent: u64) {
        self.release();
        self.spent = spent;
    }

    /// Whether the bound is passed.
    pub fn is_over(&self) -> bool {
        self.spent > self.limit
    }

    /// Counts units.
    ///
    /// # Errors
    /// [`Halt::Work`] past the bound; [`Halt::Cancelled`] or [`Halt::Deadline`] from the interrupt.
    #[inline]
    pub fn spend(&mut self, units: u64) -> std::result::Result<(), Halt> {
        if self.count(units) { Ok(()) } else { self.look() }
    }

    /// Counts units; false where it is time for [`Self::look`].
    #[inline]
    pub(crate) fn count(&mut self, units: u64) -> bool {
        self.spent += units;
        self.spent <= self.next
    }

    /// Looks at the bound and the interrupt.
    ///
    /// # Errors
    /// Those of [`Self::spend`].
    #[cold]
    pub(crate) fn look(&mut self) -> std::result::Result<(), Halt> {
        if self.is_over() {
            return Err(Halt::Work);
        }
        if self.spent > self.check {
            self.interrupt.check()?;
            self.check = self.spent.saturating_add(UNITS_BETWEEN_CHECKS);
        }
        self.next = self.limit.min(self.check);
        Ok(())
    }
}

/// Units of a network between two looks at an interrupt: states and edges, some nanoseconds each.
const POLL_EVERY: u64 = 1 << 14;
/// Steps of a loop, some nanoseconds each, between two looks at an interrupt: a power of two.
const STEPS_BETWEEN_TICKS: usize = 1 << 14;

/// A counter of states and edges made or visited, with a bound.
///
/// It is shared by everything that makes a network, so that no stage, and no sum of stages, goes on
/// for long, whatever the input. Being a count, it ends at the same place on every machine.
pub struct Budget {
    done: Cell<u64>,
    /// Where `spend` has to look more closely: the bound, or the next check if that is before it.
    next: Cell<u64>,
    bound: Cell<u64>,
    check: Cell<u64>,
    limit: u64,
    interrupt: Interrupt,
    /// What an interrupt said: it says the same from then on.
    halted: RefCell<Option<Error>>,
}

impl Budget {
    /// Nothing done yet, and [`Limits::max_network_work`] allowed.
    pub fn new(limits: &Limits, interrupt: &Interrupt) -> Self {
        let limit = limits.max_network_work;
        Self {
            done: Cell::new(0),
            next: Cell::new(limit.min(POLL_EVERY)),
            bound: Cell::new(limit),
            check: Cell::new(POLL_EVERY),
            limit,
            interrupt: interrupt.clone(),
            halted: RefCell::default(),
        }
    }

    /// Units so far.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// The interrupt of the call.
    pub fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// Counts what was done, or is to be done next.
    ///
    /// # Errors
    /// [`Error::Limit`] past the bound; [`Error::Cancelled`], [`Error::Deadline`] from the interrupt.
    #[inline]
    pub fn spend(&self, units: usize) -> Result<()> {
        let done = self.done.get().saturating_add(units as u64);
        self.done.set(done);
        if done <= self.next.get() { Ok(()) } else { self.look() }
    }

    /// Looks at the interrupt now: between steps of which each may take long.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Deadline`].
    #[inline]
    pub(crate) fn tick(&self) -> Result<()> {
        match self.interrupt.look() {
            Ok(()) => Ok(()),
            Err(error) => {
                self.next.set(0);
                *self.halted.borrow_mut() = Some(error.clone());
                Err(error)
            }
        }
    }

    /// [`Self::tick`] for every so many steps of a loop.
    ///
    /// # Errors
    /// As there.
    #[inline]
    pub(crate) fn tick_every(&self, step: usize) -> Result<()> {
        if step & (STEPS_BETWEEN_TICKS - 1) == 0 { self.tick() } else { Ok(()) }
    }

    /// Refuses now what would be refused on the way: at least so many units are to be counted yet.
    ///
    /// # Errors
    /// [`Error::Limit`] where that passes the bound.
    pub(crate) fn foresee(&self, units: usize) -> Result<()> {
        let done = self.done.get().saturating_add(units as u64);
        if done <= self.bound.get() { Ok(()) } else { Err(self.passed()) }
    }

    /// Counts from `done` on again: what was done since is given up, and something else done in its
    /// place.
    pub(crate) fn back_to(&self, done: u64) {
        self.done.set(done);
        self.check.set(done.saturating_add(POLL_EVERY));
        self.next.set(self.check.get().min(self.bound.get()));
    }

    fn passed(&self) -> Error {
        Error::Limit {
            limit: "max_network_work",
            value: self.limit,
            message: "making the network takes more; lower repetition bounds, split or drop \
                      long lists of optional parts, or raise the limit"
                .to_owned(),
        }
    }

    #[cold]
    fn look(&self) -> Result<()> {
        let done = self.done.get();
        if let Some(error) = &*self.halted.borrow() {
            return Err(error.clone());
        }
        if done > self.check.get() {
            self.check.set(done.saturating_add(POLL_EVERY));
            if let Err(error) = self.interrupt.look() {
                self.next.set(0);
                *self.halted.borrow_mut() = Some(error.clone());
                return Err(error);
            }
        }
        if done > self.bound.get() {
            return Err(self.passed());
        }
        self.next.set(self.check.get().min(self.bound.get()));
        Ok(())
    }

    /// Does what may be left undone, within `units` and half of what is left: `None` where that
    /// was not enough.
    ///
    /// # Errors
    /// All of `attempt` but for the bound.
    pub(crate) fn attempt<T>(
        &self,
        units: u64,
        attempt: impl FnOnce() -> Result<T>,
    ) -> Result<Option<T>> {
        let (done, outer) = (self.done.get(), self.bound.get());
        let bound = done.saturating_add(units.min(outer.saturating_sub(done) / 2));
        self.restrict(bound);
        let result = attempt();
        self.restrict(outer);
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Error::Limit { limit: "max_network_work", .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn restrict(&self, bound: u64) {
        self.bound.set(bound);
        self.next.set(self.check.get().min(bound));
    }
}

/// Counts the steps of loops, some nanoseconds each, and looks at the interrupt now and then. Steps are
/// no work: they bound how long a pass goes on unheard that was counted as a whole.
pub(crate) struct Ticks<'a> {
    budget: &'a Budget,
    steps: Cell<usize>,
}

impl<'a> Ticks<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, steps: Cell::new(0) }
    }

    /// One more step.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Deadline`].
    #[inline]
    pub(crate) fn step(&self) -> Result<()> {
        self.steps(1)
    }

    /// So many more steps.
    ///
    /// # Errors
    /// As [`Self::step`].
    #[inline]
    pub(crate) fn steps(&self, steps: usize) -> Result<()> {
        let steps = self.steps.get() + steps;
        self.steps.set(steps);
        if steps < STEPS_BETWEEN_TICKS {
            return Ok(());
        }
        self.steps.set(0);
        self.budget.tick()
    }
}

#[cfg(test)]
mod tests;
