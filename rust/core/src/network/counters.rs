//! Repetition as counting: `x{m,n}` with large bounds costs the same for every bound.
//!
//! A counted repetition is a rule whose states are the numbers of passes done. They are not
//! written out: they are numbered past the states of the tables, and what they can do follows
//! from the number. After `k` passes the body may be called while `k < n`, which leads to `k + 1`;
//! the rule may be complete when `k >= m`. A repetition without an upper bound stays at `m`.
//!
//! Two more states do not count: one may stop after any pass, the other never. A token of fewer
//! bytes than passes are left before the next bound cannot tell a state from one of those two:
//! [`like`](Counters::like) and [`base`](Counters::base). (XGrammar 2, section 3.5, merges such
//! states as well, but up to a constant; this is exact.)

use super::Call;

/// The bounds of a counted repetition. The body takes at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counter {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Counter {
    /// The last number of passes that differs from those before.
    fn last(self) -> u32 {
        self.max.unwrap_or(self.min.max(1))
    }
}

/// What a state of a counted repetition is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Passes {
    /// So many are done.
    Done(u32),
    /// It may stop after any, and go on for ever.
    Free,
    /// It goes on for ever.
    Endless,
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    counter: Counter,
    /// The number of the state before any pass. After those that count stand the other two.
    first: u32,
    /// The start of the body.
    body: u32,
    rule: u32,
    /// Whether a pass is one byte of a few.
    is_narrow: bool,
}

impl Placed {
    fn number(&self, passes: Passes) -> u32 {
        let last = self.first + self.counter.last();
        match passes {
            Passes::Done(passes) => self.first + passes,
            Passes::Free => last + 1,
            Passes::Endless => last + 2,
        }
    }
}

/// The counted repetitions of a network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    placed: Vec<Placed>,
    end: u32,
}

impl Counters {
    /// Without any, behind so many states of the tables.
    pub(crate) fn after(states: usize) -> Self {
        Self { placed: Vec::new(), end: states as u32 }
    }

    /// Makes room for a counter; the number of its first state, or `None` when the numbers run
    /// out.
    pub(crate) fn place(&mut self, counter: Counter, body: u32, rule: u32) -> Option<u32> {
        let first = self.end;
        // The highest bit is left to the bottom of stacks.
        let end = counter.last().checked_add(3).and_then(|states| first.checked_add(states));
        self.end = end.filter(|&end| end < 1 << 31)?;
        self.placed.push(Placed { counter, first, body, rule, is_narrow: false });
        Some(first)
    }

    /// Each with its bounds, the number of its first state, the start of its body, its rule.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (Counter, u32, u32, u32)> + '_ {
        self.placed.iter().map(|p| (p.counter, p.first, p.body, p.rule))
    }

    /// Takes note that a pass of the counter whose states begin with one is one byte of a few.
    pub(crate) fn set_narrow(&mut self, first: u32) {
        for placed in self.placed.iter_mut().filter(|placed| placed.first == first) {
            placed.is_narrow = true;
        }
    }

    /// Whether a pass of the counter of a state is one byte of a few.
    pub(crate) fn is_narrow(&self, state: u32) -> bool {
        self.find(state).0.is_narrow
    }

    /// Past the last number of a state.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    fn find(&self, state: u32) -> (&Placed, Passes) {
        let i = self.placed.partition_point(|placed| placed.first <= state) - 1;
        let placed = &self.placed[i];
        let passes = state - placed.first;
        let passes = match passes.checked_sub(placed.counter.last() + 1) {
            None => Passes::Done(passes),
            Some(0) => Passes::Free,
            Some(_) => Passes::Endless,
        };
        (placed, passes)
    }

    /// The call of the body, where another pass may begin.
    pub(crate) fn call(&self, state: u32) -> Option<Call> {
        let (placed, passes) = self.find(state);
        let next = match (passes, placed.counter.max) {
            (Passes::Done(passes), Some(max)) if passes >= max => return None,
            (Passes::Done(passes), Some(_)) => Passes::Done(passes + 1),
            (Passes::Done(passes), None) => Passes::Done((passes + 1).min(placed.counter.last())),
            (other, _) => other,
        };
        Some(Call { start: placed.body, to: placed.number(next) })
    }

    /// Before the first pass nothing is complete: callers skip what may be empty.
    pub(crate) fn is_final(&self, state: u32) -> bool {
        match self.find(state) {
            (placed, Passes::Done(passes)) => passes >= placed.counter.min.max(1),
            (_, Passes::Free) => true,
            (_, Passes::Endless) => false,
        }
    }

    pub(crate) fn rule_of(&self, state: u32) -> u32 {
        self.find(state).0.rule
    }

    /// A state that does not count, and for how many bytes it does what `state` does; `None` where
    /// that is none, or `state` does not count itself.
    pub(crate) fn base(&self, state: u32) -> Option<(u32, u32)> {
        let (placed, Passes::Done(passes)) = self.find(state) else { return None };
        let Counter { min, max } = placed.counter;
        let (base, bytes) = match max {
            _ if passes + 1 < min => (Passes::Endless, min - passes - 1),
            Some(max) => (Passes::Free, max - passes),
            None => (Passes::Free, u32::MAX),
        };
        (bytes > 0).then(|| (placed.number(base), bytes))
    }

    /// The state of the same repetition that may stop after any pass, and whether `state` counts.
    pub(crate) fn free(&self, state: u32) -> (u32, bool) {
        let (placed, passes) = self.find(state);
        (placed.number(Passes::Free), matches!(passes, Passes::Done(_)))
    }

    /// A state that does with up to `longest` bytes what `state` does.
    pub(crate) fn like(&self, state: u32, longest: usize) -> u32 {
        match self.base(state) {
            Some((base, bytes)) if bytes as usize >= longest => base,
            _ => state,
        }
    }

    /// What a state does, whatever else is in the network: what it repeats, the passes still
    /// needed, those still allowed, whether it may stop at once; `None` where it repeats without
    /// end.
    pub(crate) fn meaning(&self, state: u32) -> (u32, u32, Option<u32>, bool) {
        let (placed, passes) = self.find(state);
        let (needed, allowed) = match passes {
            Passes::Done(k) => {
                let Counter { min, max } = placed.counter;
                (min.saturating_sub(k), max.map(|max| max.saturating_sub(k)))
            }
            Passes::Free => (0, None),
            Passes::Endless => (u32::MAX, None),
        };
        (placed.body, needed, allowed, self.is_final(state))
    }

    /// Bounds and bodies, for fingerprints.
    pub(crate) fn key(&self) -> Vec<(u32, Option<u32>, u32)> {
        self.placed.iter().map(|p| (p.counter.min, p.counter.max, p.body)).collect()
    }
}
