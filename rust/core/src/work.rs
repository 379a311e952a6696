//! What the making of a network costs: counted, bounded, and now and then told.

use crate::error::{Error, Result};
use crate::limits::Limits;
use std::cell::{Cell, RefCell};

/// Units between two calls of the caller's function: some hundredths of a second.
const POLL_EVERY: u64 = 1 << 20;

/// A counter of states and edges made or visited, with a bound.
///
/// It is shared by everything that makes a network, so that no stage, and no sum of stages, goes
/// on for long, whatever the input; and it calls a function of the caller now and then, which may
/// say that the work is not wanted any more. Being a count, it ends at the same place on every
/// machine.
pub struct Work<'a> {
    done: Cell<u64>,
    /// Where `spend` has to look more closely: the bound, or the next call if that is before it.
    next: Cell<u64>,
    bound: Cell<u64>,
    call: Cell<u64>,
    limit: u64,
    go_on: RefCell<&'a mut dyn FnMut() -> bool>,
}

impl<'a> Work<'a> {
    /// Nothing done yet; `go_on` ends the work by returning false.
    pub fn new(limits: &Limits, go_on: &'a mut dyn FnMut() -> bool) -> Self {
        let limit = limits.max_network_work;
        Self {
            done: Cell::new(0),
            next: Cell::new(limit.min(POLL_EVERY)),
            bound: Cell::new(limit),
            call: Cell::new(POLL_EVERY),
            limit,
            go_on: RefCell::new(go_on),
        }
    }

    /// Units so far.
    pub fn done(&self) -> u64 {
        self.done.get()
    }

    /// Counts what was done, or is to be done next.
    ///
    /// # Errors
    /// [`Error::Limit`] past the bound; [`Error::Cancelled`] where the caller says so.
    #[inline]
    pub fn spend(&self, units: usize) -> Result<()> {
        let done = self.done.get().saturating_add(units as u64);
        self.done.set(done);
        if done <= self.next.get() { Ok(()) } else { self.look() }
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
        self.call.set(done.saturating_add(POLL_EVERY));
        self.next.set(self.call.get().min(self.bound.get()));
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
        if done > self.call.get() {
            self.call.set(done.saturating_add(POLL_EVERY));
            if !(self.go_on.borrow_mut())() {
                return Err(Error::Cancelled);
            }
        }
        if done > self.bound.get() {
            return Err(self.passed());
        }
        self.next.set(self.call.get().min(self.bound.get()));
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
        self.next.set(self.call.get().min(bound));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(max_network_work: u64) -> Limits {
        Limits { max_network_work, ..Limits::default() }
    }

    #[test]
    fn the_bound_is_reached_exactly() {
        let mut go_on = || true;
        let work = Work::new(&limits(10), &mut go_on);
        assert_eq!(work.spend(10), Ok(()));
        let error = work.spend(1).expect_err("one more");
        assert!(error.to_string().starts_with("limit max_network_work = 10 reached: "), "{error}");
    }

    #[test]
    fn the_caller_is_asked_now_and_then_and_obeyed() {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            asked < 3
        };
        let work = Work::new(&limits(u64::MAX), &mut go_on);
        let mut spent = 0u64;
        while work.spend(1 << 10).is_ok() {
            spent += 1 << 10;
        }
        assert_eq!(work.spend(POLL_EVERY as usize + 1), Err(Error::Cancelled));
        assert!((2 * POLL_EVERY..=3 * POLL_EVERY + (4 << 10)).contains(&spent), "{spent}");
    }

    #[test]
    fn many_small_attempts_do_not_put_the_call_off() {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            true
        };
        let work = Work::new(&limits(u64::MAX), &mut go_on);
        for _ in 0..100 {
            work.attempt(u64::MAX, || work.spend(POLL_EVERY as usize / 10)).expect("no bound");
        }
        assert!((8..=10).contains(&asked), "{asked}");
    }

    #[test]
    fn what_cannot_be_done_is_refused_before_it_is_begun() {
        let mut go_on = || true;
        let work = Work::new(&limits(10), &mut go_on);
        assert_eq!(work.spend(4), Ok(()));
        assert_eq!(work.foresee(6), Ok(()));
        assert_eq!(work.foresee(7), work.spend(7));
        work.back_to(4);
        assert_eq!(work.spend(6), Ok(()));
        assert!(work.spend(1).is_err());
    }

    #[test]
    fn who_counts_again_is_asked_as_often() {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            true
        };
        let work = Work::new(&limits(u64::MAX), &mut go_on);
        for _ in 0..20 {
            work.spend(POLL_EVERY as usize * 2).expect("no bound");
            work.back_to(0);
        }
        assert_eq!(asked, 20);
    }

    #[test]
    fn an_attempt_leaves_half_of_the_rest() {
        let mut go_on = || true;
        let work = Work::new(&limits(1_000), &mut go_on);
        assert_eq!(work.attempt(u64::MAX, || work.spend(501)), Ok(None));
        assert_eq!(work.attempt(100, || work.spend(101)), Ok(None));
        assert_eq!(work.attempt(100, || work.spend(100).map(|()| 7)), Ok(Some(7)));
        assert_eq!(work.spend(298), Ok(()));
        assert!(work.spend(1).is_err());
        assert_eq!(
            work.attempt(u64::MAX, || Err::<(), _>(Error::Cancelled)),
            Err(Error::Cancelled)
        );
    }
}
