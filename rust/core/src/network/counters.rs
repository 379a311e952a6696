//! Counting: `x{m,n}` with large bounds, and an automaton whose texts are of `m` to `n` characters,
//! cost the same for every bound.
//!
//! Design: docs/design/counting.md, "Any automaton counts its passes".
//!
//! A rule that counts has an automaton each of whose edges is a *pass*: the call of a rule. Its states
//! are pairs of a state of that automaton and the number of passes done. They are not written out: they
//! are numbered past the states of the tables, and what they can do follows from the number. After `k`
//! passes an edge to `q` may be taken where the rest from `q` can be of `m - k - 1` to `n - k - 1`
//! passes ([`Lengths`]); the rule may be complete in an end when `k >= m`. Without an upper bound the
//! count stays at `m`.
//!
//! A counted repetition is such an automaton of one state, an end that the body leads back to. Each state of the
//! automaton has two more that do not count: one may stop after any pass, the other never. A token of fewer
//! bytes than passes are left before the next bound cannot tell a state from one of those two:
//! [`like`](Counters::like) and [`base`](Counters::base). (XGrammar 2, section 3.5, merges such states as well, but
//! up to a constant; this is exact.)
//!
//! A rule may count the tokens that begin within its texts instead, up to the one that is being read. A byte
//! leaves such a count as it is; behind the first byte of a token and behind its last the matcher asks for
//! the state that follows ([`after_first`](Counters::after_first), [`after_token`](Counters::after_token)).
//! Once more than `n` tokens have begun, a pass is taken only where it leads nearer to an end.
//!
//! The numbers of states have 31 bits, and bounds are never refused for that: see [`most_passes`].

use super::counter::{CountedUnit, Counter, UNMET};
use super::{Call, Calls};
use crate::automata::lengths::Lengths;
use std::sync::Arc;

/// The automaton of a rule that counts: for each state its passes, and whether it is an end.
#[derive(Clone, Debug, Default)]
pub(super) struct Machine {
    pub(super) finals: Box<[bool]>,
    starts: Box<[u32]>,
    /// The start of the rule that is called, and the state that follows.
    passes: Box<[(u32, u32)]>,
}

impl Machine {
    /// `passes` are those of each state, in order.
    pub(super) fn new(passes: &[Vec<(u32, u32)>], finals: &[bool]) -> Self {
        let mut starts = vec![0];
        for passes in passes {
            starts.push(starts[starts.len() - 1] + passes.len() as u32);
        }
        Self { finals: finals.into(), starts: starts.into(), passes: passes.concat().into() }
    }

    /// A state that may stop, and goes on with a body.
    pub(super) fn of_body(body: u32) -> Self {
        Self::new(&[vec![(body, 0)]], &[true])
    }

    fn passes(&self, state: u32) -> &[(u32, u32)] {
        let (from, to) = (self.starts[state as usize], self.starts[state as usize + 1]);
        &self.passes[from as usize..to as usize]
    }

    /// The machine with the rules that it calls renumbered.
    pub(super) fn moved(&self, start: impl Fn(u32) -> u32) -> Self {
        let passes = self.passes.iter().map(|&(called, to)| (start(called), to)).collect();
        Self { passes, ..self.clone() }
    }

    pub(super) fn len(&self) -> u32 {
        self.finals.len() as u32
    }
}

/// What a rule that counts is, wherever its states are numbered.
#[derive(Clone, Debug)]
pub(super) struct Counting {
    pub(super) counter: Counter,
    pub(super) machine: Arc<Machine>,
    pub(super) lengths: Arc<Lengths>,
    /// The first state in the tables of an automaton; `None` for a repetition.
    pub(super) listed: Option<u32>,
    pub(super) rule: u32,
}

/// How many passes a state knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Passes {
    /// So many are done.
    Done(u32),
    /// It may stop after any, and go on for ever.
    Free,
    /// It goes on for ever.
    Endless,
}

/// A state that has counted passes, beside states that differ from it in their counts alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CountOf {
    /// The state without bounds: its rule may end after each pass, and further passes may always follow.
    pub(crate) free: u32,
    /// Whether no lower bound holds it any more: then it can do all that one can do which has counted more.
    pub(crate) is_settled: bool,
    /// Of a repetition with an upper bound, one of few that reads no more, as long as the repetition is not complete: as
    /// many passes are left to it as the greatest power of two within those that are left here.
    pub(crate) fewer: Option<u32>,
}

#[derive(Clone, Debug)]
struct PlacedCounter {
    counting: Counting,
    /// The number of the first state. Those that may stop after any pass come first, then those that
    /// never do, then those that count.
    first: u32,
    /// The last number of passes that has states.
    last: u32,
    /// Whether a pass is one byte of a few.
    is_narrow: bool,
}

impl PlacedCounter {
    fn number(&self, passes: Passes, state: u32) -> u32 {
        let level = match passes {
            Passes::Free => 0,
            Passes::Endless => 1,
            Passes::Done(passes) => 2 + passes,
        };
        debug_assert!(level <= self.last + 2, "the number is another counter's");
        self.first + level * self.counting.machine.len() + state
    }

    /// The pass of a state to `to`, where it may be taken; `state` has done so many.
    fn next(&self, passes: Passes, from: u32, to: u32) -> Option<u32> {
        let Counting { counter: Counter { min, max, unit }, lengths, .. } = &self.counting;
        let next = match passes {
            Passes::Free => Passes::Free,
            Passes::Endless if !lengths.is_endless(to) => return None,
            Passes::Endless => Passes::Endless,
            Passes::Done(done) if *unit == CountedUnit::Tokens => {
                let nearer = || lengths.next(to, 0) < lengths.next(from, 0);
                if max.is_some_and(|max| done > max) && !nearer() {
                    return None;
                }
                passes
            }
            Passes::Done(_) if *min >= UNMET => Passes::Endless,
            Passes::Done(done) => {
                let done = done + 1;
                let most = match max {
                    None => None,
                    Some(max) => Some(max.checked_sub(done)?),
                };
                if !lengths.within(to, min.saturating_sub(done), most) {
                    return None;
                }
                // Past the last there is no text, or no bound.
                Passes::Done(done.min(self.last))
            }
        };
        Some(self.number(next, to))
    }
}

/// The rules of a network that count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    placed: Vec<PlacedCounter>,
    end: u32,
    /// Texts of more bytes may have more passes than there are states for.
    longest: Option<u32>,
}

/// The numbers of passes that have states of their own, where there is room for so many states: all
/// where they fit, else a power of two. Texts of more bytes are refused when they are read.
pub(super) fn most_passes(
    counters: impl Iterator<Item = (Counter, u32)> + Clone,
    room: u32,
) -> u32 {
    let fits = |most: u32| {
        let states = counters.clone().map(|(counter, states)| {
            u64::from(states) * (u64::from(counter.met().last().min(most)) + 3)
        });
        states.sum::<u64>() <= u64::from(room)
    };
    if fits(UNMET) {
        return UNMET;
    }
    (0..31).rev().map(|bits| 1 << bits).find(|&most| fits(most)).unwrap_or(1)
}

impl Counters {
    /// Without any, behind so many states of the tables.
    pub(crate) fn after(states: usize) -> Self {
        Self { placed: Vec::new(), end: states as u32, longest: None }
    }

    /// How many states there is room for: the highest bit is left to the bottom of stacks.
    pub(super) fn room(&self) -> u32 {
        (1 << 31) - 1 - self.end
    }

    /// Makes room for a rule that counts, up to so many passes; the number of its first state, or `None`
    /// when the numbers run out.
    pub(super) fn place(&mut self, mut counting: Counting, most: u32) -> Option<u32> {
        counting.counter = counting.counter.met();
        let last = counting.counter.last();
        if last > most {
            self.longest = Some(self.longest.map_or(most, |longest| longest.min(most)));
        }
        let placed =
            PlacedCounter { counting, first: self.end, last: last.min(most), is_narrow: false };
        let states = placed.counting.machine.len().checked_mul(placed.last.checked_add(3)?)?;
        let end = self.end.checked_add(states);
        self.end = end.filter(|&end| end < 1 << 31)?;
        let start = placed.number(Passes::Done(0), 0);
        self.placed.push(placed);
        Some(start)
    }

    /// How many bytes a text may have, where not any number.
    pub(super) fn longest(&self) -> Option<u32> {
        self.longest
    }

    /// Each with the number of the state before any pass.
    pub(super) fn placed(&self) -> impl Iterator<Item = (&Counting, u32)> + Clone + '_ {
        self.placed.iter().map(|p| (&p.counting, p.number(Passes::Done(0), 0)))
    }

    /// Takes note that a pass of the counter with a start is one byte of a few.
    pub(crate) fn set_narrow(&mut self, start: u32) {
        for placed in &mut self.placed {
            placed.is_narrow |= placed.number(Passes::Done(0), 0) == start;
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

    fn find(&self, state: u32) -> (&PlacedCounter, Passes, u32) {
        let i = self.placed.partition_point(|placed| placed.first <= state) - 1;
        let placed = &self.placed[i];
        let (number, states) = (state - placed.first, placed.counting.machine.len());
        let passes = match number / states {
            0 => Passes::Free,
            1 => Passes::Endless,
            level => Passes::Done(level - 2),
        };
        (placed, passes, number % states)
    }

    /// How many passes a state has done, as far as it counts them.
    pub(crate) fn done(&self, state: u32) -> u32 {
        match self.find(state).1 {
            Passes::Done(passes) => passes,
            Passes::Free | Passes::Endless => 0,
        }
    }

    /// Of a state that has counted passes, how it stands to those that have counted otherwise.
    pub(crate) fn count_of(&self, state: u32) -> Option<CountOf> {
        let (placed, Passes::Done(passes), own) = self.find(state) else { return None };
        let Counter { min, max, unit } = placed.counting.counter;
        let fewer = max
            .filter(|&max| placed.counting.listed.is_none() && max > passes)
            .map(|max| max - (1 << (max - passes).ilog2()))
            // There may be fewer states than passes: `most_passes`.
            .filter(|&done| done <= placed.last)
            .map(|done| placed.number(Passes::Done(done), own));
        let free = placed.number(Passes::Free, own);
        (unit == CountedUnit::Passes).then_some(CountOf {
            free,
            is_settled: passes >= min.max(1),
            fewer,
        })
    }

    /// The passes that may begin.
    pub(crate) fn calls(&self, state: u32) -> Calls<'static> {
        let (placed, passes, state) = self.find(state);
        let call =
            |&(start, to): &(u32, u32)| placed.next(passes, state, to).map(|to| Call { start, to });
        match placed.counting.machine.passes(state) {
            [only] => call(only).map_or(Calls::Listed(&[]), Calls::One),
            several => Calls::Several(several.iter().filter_map(call).collect()),
        }
    }

    /// Whether a pass may begin.
    pub(crate) fn goes_on(&self, state: u32) -> bool {
        let (placed, passes, state) = self.find(state);
        let mut targets = placed.counting.machine.passes(state).iter().map(|pass| pass.1);
        targets.any(|to| placed.next(passes, state, to).is_some())
    }

    /// Before the first pass nothing is complete: callers skip what may be empty.
    pub(crate) fn is_final(&self, state: u32) -> bool {
        let (placed, passes, state) = self.find(state);
        let is_end = placed.counting.machine.finals[state as usize];
        is_end
            && match passes {
                Passes::Done(passes) => {
                    let Counter { min, unit, .. } = placed.counting.counter;
                    unit == CountedUnit::Tokens || passes >= min.max(1)
                }
                Passes::Free => true,
                Passes::Endless => false,
            }
    }

    pub(crate) fn rule_of(&self, state: u32) -> u32 {
        self.find(state).0.counting.rule
    }

    /// The state that the tables have in place of one: of a repetition the start of its body.
    pub(crate) fn listed(&self, state: u32) -> u32 {
        let (placed, _, state) = self.find(state);
        match placed.counting.listed {
            Some(first) => first + state,
            None => placed.counting.machine.passes[0].0,
        }
    }

    /// A state that does not count, and for how many bytes it does what `state` does; `None` where
    /// that is none, or `state` does not count itself.
    pub(crate) fn base(&self, state: u32) -> Option<(u32, u32)> {
        let (placed, Passes::Done(passes), state) = self.find(state) else { return None };
        let Counting { counter: Counter { min, max, unit }, lengths, .. } = &placed.counting;
        if *unit == CountedUnit::Tokens {
            // Within a token nothing is counted.
            let is_spent = max.is_some_and(|max| passes > max);
            return (!is_spent).then(|| (placed.number(Passes::Free, state), u32::MAX));
        }
        if *min >= UNMET {
            return Some((placed.number(Passes::Endless, state), u32::MAX));
        }
        let (base, bytes) = match max {
            _ if passes + 1 < *min => {
                let (settled, width) = lengths.settled();
                let is_wide = max.is_none_or(|max| max - min.min(&max) >= width);
                let bytes = (min - passes).saturating_sub(settled.max(1));
                (Passes::Endless, if is_wide { bytes } else { 0 })
            }
            Some(max) => (Passes::Free, (max - passes).saturating_sub(lengths.most())),
            None => (Passes::Free, u32::MAX),
        };
        (bytes > 0).then(|| (placed.number(base, state), bytes))
    }

    /// The state of the same repetition that may stop after any pass, and whether `state` counts; `None`
    /// for an automaton.
    pub(crate) fn free(&self, state: u32) -> Option<(u32, bool)> {
        let (placed, passes, state) = self.find(state);
        let free = placed.number(Passes::Free, state);
        placed.counting.listed.is_none().then_some((free, matches!(passes, Passes::Done(_))))
    }

    /// For a state that no lower bound holds any more, the one without an upper bound, and for how many
    /// bytes that does the same.
    pub(crate) fn unbounded(&self, state: u32) -> Option<(u32, u32)> {
        let (placed, Passes::Done(passes), own) = self.find(state) else { return None };
        let Counter { min, max, unit } = placed.counting.counter;
        if unit == CountedUnit::Tokens {
            return self.base(state);
        }
        let is_end = placed.counting.machine.finals[own as usize];
        let least = if is_end { min.max(1) } else { min };
        let left = (max? - passes).saturating_sub(placed.counting.lengths.most());
        (passes >= least && left > 0).then(|| (placed.number(Passes::Free, own), left))
    }

    /// For the rules that count tokens the least bound and the largest distance to the nearest end, if any do.
    pub(crate) fn budgets_of_tokens(&self) -> Option<(u32, u32)> {
        let budgets = self.placed.iter().map(|placed| &placed.counting);
        let budgets = budgets.filter(|one| one.counter.unit == CountedUnit::Tokens);
        let budgets = budgets.map(|one| (one.counter.max.unwrap_or(u32::MAX), one.lengths.most()));
        budgets.reduce(|one, other| (one.0.min(other.0), one.1.max(other.1)))
    }

    /// Of a rule that counts tokens: how many may end before one is read that begins behind the bound.
    pub(crate) fn tokens_left(&self, state: u32) -> Option<u32> {
        let (placed, Passes::Done(tokens), _) = self.find(state) else { return None };
        let Counter { max, unit, .. } = placed.counting.counter;
        max.filter(|_| unit == CountedUnit::Tokens).map(|max| max.saturating_sub(tokens.max(1)))
    }

    /// A state that does with up to `longest` bytes what `state` does.
    pub(crate) fn like(&self, state: u32, longest: usize) -> u32 {
        match self.base(state) {
            Some((base, bytes)) if bytes as usize >= longest => base,
            _ => state,
        }
    }

    /// What a state does, whatever else is in the network: what it repeats or the state of the tables
    /// with which it goes on, the passes still needed, those still allowed, whether it may stop at once;
    /// `None` where it goes on without end.
    pub(crate) fn meaning(&self, state: u32) -> (u32, u32, Option<u32>, bool) {
        let (placed, passes, _) = self.find(state);
        let (needed, allowed) = match passes {
            Passes::Done(k) => {
                let Counter { min, max, unit } = placed.counting.counter;
                // Where more tokens than the bound have begun, none is left.
                let max = max.map(|max| max + u32::from(unit == CountedUnit::Tokens));
                (min.saturating_sub(k), max.map(|max| max.saturating_sub(k)))
            }
            Passes::Free => (0, None),
            Passes::Endless => (u32::MAX, None),
        };
        (self.listed(state), needed, allowed, self.is_final(state))
    }

    /// The least number of passes from a state to an end, and how much more it can be after a pass.
    pub(crate) fn least_passes(&self, state: u32) -> (Option<u32>, u32) {
        let (placed, passes, own) = self.find(state);
        let Counting { counter, lengths, .. } = &placed.counting;
        let least = match passes {
            Passes::Done(done) => lengths.next(own, counter.min.saturating_sub(done)),
            Passes::Free => lengths.next(own, 0),
            Passes::Endless => None,
        };
        (least, lengths.widest_gap())
    }

    /// Whether some rule counts tokens.
    pub(crate) fn count_tokens(&self) -> bool {
        self.placed.iter().any(|placed| placed.counting.counter.unit == CountedUnit::Tokens)
    }

    /// Whether the rule of a state counts tokens.
    pub(crate) fn counts_tokens(&self, state: u32) -> bool {
        self.find(state).0.counting.counter.unit == CountedUnit::Tokens
    }

    /// The state behind the first byte of a token: where no token had begun in the rule this one has.
    pub(crate) fn after_first(&self, state: u32) -> u32 {
        match self.find(state) {
            (placed, Passes::Done(0), own) if self.counts_tokens(state) => {
                placed.number(Passes::Done(placed.last.min(1)), own)
            }
            _ => state,
        }
    }

    /// The state behind a token that has led to `state`: if the rule goes on, another token begins in it.
    pub(crate) fn after_token(&self, state: u32) -> u32 {
        match self.find(state) {
            (placed, Passes::Done(tokens), own) if self.counts_tokens(state) => {
                // Where there are no numbers for so many, no text is long enough.
                placed.number(Passes::Done((tokens + 1).min(placed.last)), own)
            }
            _ => state,
        }
    }

    /// Whether the rule of a state is an automaton, not a repetition.
    pub(crate) fn is_automaton(&self, state: u32) -> bool {
        self.find(state).0.counting.listed.is_some()
    }

    /// Bounds and bodies, for fingerprints.
    pub(crate) fn key(&self) -> Vec<[u32; 4]> {
        let key = |p: &PlacedCounter| {
            let Counter { min, max, unit } = p.counting.counter;
            let body = p.counting.listed.unwrap_or(p.counting.machine.passes[0].0);
            let kind = u32::from(max.is_some())
                | u32::from(p.counting.listed.is_some()) << 1
                | u32::from(unit == CountedUnit::Tokens) << 2;
            [min, kind, max.unwrap_or(0), body]
        };
        self.placed.iter().map(key).collect()
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        let bytes = self.placed.iter().map(|p| {
            let machine = &p.counting.machine;
            size_of::<PlacedCounter>()
                + machine.passes.len() * 8
                + machine.len() as usize * 5
                + p.counting.lengths.bytes()
        });
        bytes.sum()
    }
}
