//! Repetition as counting: `x{m,n}` with large bounds costs the same for every bound.
//!
//! A counted repetition is a rule whose states are the numbers of passes done. They are not
//! written out: they are numbered past the states of the tables, and what they can do follows
//! from the number. After `k` passes the body may be called while `k < n`, which leads to `k + 1`;
//! the rule may be complete when `k >= m`. A repetition without an upper bound stays at `m`.
//!
//! A mask over tokens of at most `L` bytes cannot tell `k` and `k'` apart when both are more than
//! `L` passes away from a bound, on the same side: [`like`](Counters::like). (XGrammar 2, section
//! 3.5, merges such states as well, but up to a constant; this is exact.)

use super::Call;

/// The bounds of a counted repetition. The body takes at least one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Counter {
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
}

impl Counter {
    /// States: after 1, 2, ... passes, as far as they differ.
    fn len(self) -> u32 {
        self.max.unwrap_or(self.min.max(1))
    }
}

#[derive(Clone, Copy, Debug)]
struct Placed {
    counter: Counter,
    /// The number of the state after one pass.
    first: u32,
    /// The start of the body.
    body: u32,
    rule: u32,
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

    /// Makes room for a counter; the number of its state after one pass, or `None` when the
    /// numbers run out.
    pub(crate) fn place(&mut self, counter: Counter, body: u32, rule: u32) -> Option<u32> {
        let first = self.end;
        // The highest bit is left to the bottom of stacks.
        self.end = first.checked_add(counter.len()).filter(|&end| end < 1 << 31)?;
        self.placed.push(Placed { counter, first, body, rule });
        Some(first)
    }

    /// Past the last number of a state.
    pub(crate) fn end(&self) -> u32 {
        self.end
    }

    /// The repetition of a state, and the passes done there.
    fn find(&self, state: u32) -> (&Placed, u32) {
        let i = self.placed.partition_point(|placed| placed.first <= state) - 1;
        let placed = &self.placed[i];
        (placed, state - placed.first + 1)
    }

    /// The call of the body, where another pass may begin.
    pub(crate) fn call(&self, state: u32) -> Option<Call> {
        let (placed, passes) = self.find(state);
        let next = match placed.counter.max {
            Some(max) if passes >= max => return None,
            Some(_) => passes + 1,
            None => (passes + 1).min(placed.counter.len()),
        };
        Some(Call { start: placed.body, to: placed.first + next - 1 })
    }

    pub(crate) fn is_final(&self, state: u32) -> bool {
        let (placed, passes) = self.find(state);
        passes >= placed.counter.min
    }

    pub(crate) fn rule_of(&self, state: u32) -> u32 {
        self.find(state).0.rule
    }

    /// A state that does with up to `longest` more passes what `state` does.
    pub(crate) fn like(&self, state: u32, longest: usize) -> u32 {
        let (placed, passes) = self.find(state);
        let Counter { min, max } = placed.counter;
        let longest = u32::try_from(longest).unwrap_or(u32::MAX);
        let like = match max {
            _ if passes < min && min - passes > longest => min - longest - 1,
            Some(max) if passes >= min && max - passes > longest => min.max(1),
            _ => passes,
        };
        placed.first + like - 1
    }

    /// Bounds and bodies, for fingerprints.
    pub(crate) fn key(&self) -> Vec<(u32, Option<u32>, u32)> {
        self.placed.iter().map(|p| (p.counter.min, p.counter.max, p.body)).collect()
    }
}
