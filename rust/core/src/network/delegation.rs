//! Calls of rules whose masks look at most of the vocabulary, which many states share.

use super::{Call, HOLE, Network};
use crate::budget::Ticks;
use crate::error::Result;
use rustc_hash::FxHashMap;
use std::cell::RefCell;

/// A good value of [`share_wide`](super::NetworkOptions::share_wide): more than all letters and digits, less than
/// printable ASCII.
pub const WIDE: u32 = 80;
/// So few bytes are narrow where they are counted.
const NARROW: u32 = 4;
/// Calls that a state delegates, at most.
const MAX_DELEGATED: usize = 4;

/// What makes a rule wide: a loop over so many bytes, the inside of a string, a comment, free
/// text. Masks there look at most of the vocabulary.
pub(super) struct Width {
    pub(super) least: u32,
    /// For each byte class how many bytes it has.
    pub(super) of: Vec<u32>,
}

impl Width {
    pub(super) fn is_wide(&self, classes: impl Iterator<Item = u32>) -> bool {
        classes.map(|class| self.of[class as usize]).sum::<u32>() >= self.least
    }
}

impl Network {
    /// The calls of a state that are of rules whose masks look at most of the vocabulary, or that count
    /// white space, which many states call: it is asked about by way of those, and for the rest about
    /// itself.
    #[inline]
    pub(crate) fn delegated(&self, state: u32) -> &[Call] {
        match self.delegated.get(state as usize) {
            None => match self.set_state(state) {
                None => &[],
                // All: what is known of masks speaks of called rules, which outlast a text.
                Some((sets, _)) => &sets.ways(self, state).calls,
            },
            Some(0) => &[],
            Some(&count) => {
                let first = self.call_starts[state as usize] as usize;
                &self.calls[first..first + count as usize]
            }
        }
    }

    /// The calls of a state that it does not delegate.
    pub(crate) fn own_calls(&self, state: u32) -> &[Call] {
        if self.set_state(state).is_some() {
            return &[];
        }
        let q = state as usize;
        let first = self.call_starts[q] as usize + self.delegated(state).len();
        &self.calls[first..self.call_starts[q + 1] as usize]
    }

    /// Whether a state that delegates does anything besides.
    #[inline]
    pub(crate) fn has_own(&self, state: u32) -> bool {
        !self.listed(state).is_empty() || !self.own_calls(state).is_empty()
    }

    /// The only call of a state that does nothing else and is delegated: such a state need not
    /// stand on a stack. A rule that counts tokens is entered by a byte of its own, which says
    /// whether a token begins in it.
    #[inline]
    pub(crate) fn passes_on(&self, state: u32) -> Option<Call> {
        match *self.delegated(state) {
            [call]
                if self.has_own(state)
                    || self.is_final(state)
                    || self.is_counting_tokens(call.start) =>
            {
                None
            }
            [call] => Some(call),
            _ => None,
        }
    }

    /// Puts the calls that are delegated before the others; returns which rules are wide.
    ///
    /// `first` says how many bytes can come first in a rule, by where it starts; `is_wide` which
    /// parts are wide.
    ///
    /// # Errors
    /// Those of [`Ticks::step`].
    pub(super) fn delegate(
        &mut self,
        width: &Width,
        first: impl Fn(&Self, u32) -> u32,
        is_wide: impl Fn(u32) -> bool,
        ticks: &Ticks,
    ) -> Result<Vec<bool>> {
        for counter in self.narrow_counters(&first) {
            self.counters.set_narrow(counter);
        }
        let states = 0..self.len() as u32;
        let mut wide = vec![false; self.num_rules()];
        // What is counted need not loop: it is the counting that does.
        let known: RefCell<FxHashMap<u32, bool>> = RefCell::default();
        let counts = |call: &Call| {
            *known.borrow_mut().entry(call.start).or_insert_with(|| {
                let bodies = if call.start < HOLE { self.bodies(call.start) } else { Vec::new() };
                bodies.into_iter().any(|body| first(self, body) >= width.least)
            })
        };
        for q in states {
            ticks.steps(1 + self.listed(q).len() + self.calls(q).len())?;
            let loops = !self.is_final(q) && self.loops(q, width);
            let counts = self.calls(q).iter().any(|call| !self.is_final(call.to) && counts(call));
            wide[self.rule_of(q) as usize] |= loops || counts;
        }
        let is_shared = |call: &Call| {
            self.is_listed(call.to)
                && match call.start {
                    start if start >= HOLE => is_wide(start & !HOLE),
                    start if self.is_listed(start) => wide[self.rule_of(start) as usize],
                    _ => counts(call),
                }
        };
        let is_narrow = |call: &Call| {
            let counts = call.start < HOLE && self.counts_narrowly(call.start);
            counts && self.is_listed(call.to) && !is_shared(call)
        };
        let mut calls = Vec::with_capacity(self.calls.len());
        let mut delegated = Vec::with_capacity(self.len());
        for q in 0..self.len() {
            let own = self.call_starts[q] as usize..self.call_starts[q + 1] as usize;
            let own = &self.calls[own];
            ticks.steps(1 + own.len())?;
            let from = calls.len();
            calls.extend(own.iter().filter(|call| is_shared(call)));
            calls.extend(own.iter().filter(|call| is_narrow(call)));
            let mut shared = calls.len() - from;
            calls.extend(own.iter().filter(|call| !is_shared(call) && !is_narrow(call)));
            if shared > MAX_DELEGATED {
                shared = own.iter().filter(|call| is_shared(call)).count();
            }
            delegated.push(if shared <= MAX_DELEGATED { shared as u8 } else { 0 });
        }
        self.calls = calls;
        self.delegated = delegated;
        Ok(wide)
    }

    /// The counters each of whose passes is one byte of a few, by the numbers of their first states.
    fn narrow_counters(&self, first: impl Fn(&Self, u32) -> u32) -> Vec<u32> {
        let is_narrow = |body: u32| {
            let ends = |&(_, to): &(u8, u32)| self.is_final(to) && !self.stays(to);
            body < HOLE
                && self.is_listed(body)
                && self.calls(body).is_empty()
                && self.edges(body).all(|edge| ends(&edge))
                && first(self, body) <= NARROW
        };
        let placed = self.counters.placed().filter(|placed| placed.0.listed.is_none());
        let placed = placed.map(|placed| placed.1);
        placed.filter(|&start| is_narrow(self.counters.listed(start))).collect()
    }

    /// Whether many bytes lead from a state back to it.
    fn loops(&self, state: u32, width: &Width) -> bool {
        let leads_here = |edges: &[(u8, u32)]| edges.iter().any(|edge| edge.1 == state);
        let back = |edge: &(u8, u32)| edge.1 == state;
        match self.fallback(state) {
            Some(other) if leads_here(self.listed(other)) => {
                width.is_wide(self.edges(state).filter(back).map(|edge| u32::from(edge.0)))
            }
            _ => width
                .is_wide(self.listed(state).iter().copied().filter(back).map(|e| u32::from(e.0))),
        }
    }
}
