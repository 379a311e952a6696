//! Of how many passes the rest of an automaton can be: what a bound on passes needs to know of it.
//!
//! Let an automaton read one pass with each of its edges. From a state `q` the rest takes a set of
//! numbers of passes, and within bounds a state is alive when that set meets what the bounds leave. The
//! set need not be an interval: `(aa)*` has no rest of one pass. But it is periodic in the end, for all
//! states at once: the states from which exactly `l` passes lead to an end are those with an edge into
//! the states of `l - 1`, so the sequence of these sets repeats as soon as one of them comes again.

use crate::budget::Budget;
use crate::error::{Error, Result};
use rustc_hash::FxHashMap;

/// No number of passes.
pub(crate) const NEVER: u32 = u32::MAX;

/// Entries of the table of one automaton, at most: 2 MB.
const MOST_ENTRIES: usize = 1 << 19;

/// For each state of an automaton the numbers of passes to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    /// The least of each state.
    shortest: Box<[u32]>,
    /// The greatest of those.
    most: u32,
    /// Whether a state has numbers without end.
    endless: Box<[bool]>,
    /// Row `l` has for each state how many passes past `l` its next number is, or [`NEVER`]. From row
    /// `lead` on the rows come again and again. Without rows nobody asks but for the least.
    rows: Box<[u32]>,
    lead: u32,
    period: u32,
}

impl Lengths {
    /// Those of an automaton of one state that may stop after any pass.
    pub(crate) fn of_repetition() -> Self {
        Self {
            shortest: [0].into(),
            most: 0,
            endless: [true].into(),
            rows: [0].into(),
            lead: 0,
            period: 1,
        }
    }

    /// Those of an automaton from each of whose states an end can be reached: for each state where its
    /// passes lead, and whether it is an end. `has_least` says whether a number of passes is asked for.
    ///
    /// # Errors
    /// [`Error::Limit`] where they take long to repeat, and what ends the work.
    pub(crate) fn new(
        targets: &[Vec<u32>],
        finals: &[bool],
        has_least: bool,
        work: &Budget,
    ) -> Result<Self> {
        let states = targets.len();
        let edges = (0..).zip(targets);
        let sources = sources(states, edges.flat_map(|(p, to)| to.iter().map(move |&q| (p, q))));
        let shortest = distances(&sources, finals, work)?;
        let most = shortest.iter().copied().filter(|&least| least != NEVER).max().unwrap_or(0);
        if !has_least {
            let endless = vec![true; states].into();
            let (shortest, rows) = (shortest.into(), Box::default());
            return Ok(Self { shortest, most, endless, rows, lead: 0, period: 1 });
        }
        let mut sets: Vec<Box<[bool]>> = vec![finals.into()];
        let mut met: FxHashMap<Box<[bool]>, usize> = FxHashMap::default();
        let lead = loop {
            let place = sets.len() - 1;
            let set = &sets[place];
            if let Some(&lead) = met.get(set) {
                sets.pop();
                break lead;
            }
            met.insert(set.clone(), place);
            if sets.len() * states > MOST_ENTRIES {
                return Err(Error::Limit {
                    limit: "max_automaton_states",
                    value: (MOST_ENTRIES / states) as u64,
                    message: "the lengths of its texts repeat after more characters than that; \
                              write a simpler pattern, or lengths without a lower bound"
                        .to_owned(),
                });
            }
            let mut before = vec![false; states].into_boxed_slice();
            let mut steps = states;
            for (state, _) in set.iter().enumerate().filter(|(_, is_there)| **is_there) {
                steps += sources[state].len();
                sources[state].iter().for_each(|&from| before[from as usize] = true);
            }
            work.spend(1 + steps / 16)?;
            sets.push(before);
        };
        let mut endless = vec![false; states];
        for set in &sets[lead..] {
            endless.iter_mut().zip(set).for_each(|(endless, set)| *endless |= set);
        }
        let rows = rows_of(&sets, lead, work)?;
        let period = sets.len() - lead;
        Ok(Self {
            shortest: shortest.into(),
            most,
            endless: endless.into(),
            rows: rows.into(),
            lead: lead as u32,
            period: period as u32,
        })
    }

    /// The least number of passes of a state.
    pub(crate) fn shortest(&self, state: u32) -> u32 {
        self.shortest[state as usize]
    }

    /// Whether the rest of a state can be of at least and of at most so many passes.
    pub(crate) fn within(&self, state: u32, least: u32, most: Option<u32>) -> bool {
        self.next(state, least).is_some_and(|next| most.is_none_or(|most| next <= most))
    }

    /// The least number of passes of a state that is not below `least`; `None` where there is none.
    pub(crate) fn next(&self, state: u32, least: u32) -> Option<u32> {
        let shortest = self.shortest[state as usize];
        let next = match least <= shortest {
            true => shortest,
            false => least.saturating_add(self.past(state, least)),
        };
        (next != NEVER).then_some(next)
    }

    /// The largest distance from a number of passes to the next number that a state has.
    pub(crate) fn widest_gap(&self) -> u32 {
        let gaps = self.rows.iter().copied().filter(|&past| past != NEVER);
        gaps.max().unwrap_or(0).max(self.most)
    }

    /// How many passes past `least` the next number of a state is.
    fn past(&self, state: u32, least: u32) -> u32 {
        let (states, lead) = (self.shortest.len(), self.lead);
        let row = match least < lead {
            true => least,
            false => lead + (least - lead) % self.period,
        };
        self.rows.get(row as usize * states + state as usize).copied().unwrap_or(0)
    }

    /// The greatest of the least numbers of passes.
    pub(crate) fn most(&self) -> u32 {
        self.most
    }

    /// Whether a state has numbers without end.
    pub(crate) fn is_endless(&self, state: u32) -> bool {
        self.endless[state as usize]
    }

    /// From so many passes on a state is alive within bounds that are so far apart, or farther, exactly
    /// when its numbers have no end.
    pub(crate) fn settled(&self) -> (u32, u32) {
        (self.lead, self.period - 1)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        (self.rows.len() + self.shortest.len()) * 4 + self.endless.len()
    }
}

/// For each state those from which an edge leads to it.
pub(crate) fn sources(states: usize, edges: impl Iterator<Item = (u32, u32)>) -> Vec<Vec<u32>> {
    let mut out = vec![Vec::new(); states];
    edges.for_each(|(from, to)| out[to as usize].push(from));
    out
}

/// How many edges lead from each state to an end, at least; [`NEVER`] where none do. `sources` are those of
/// [`sources`].
///
/// # Errors
/// What ends the work.
pub(crate) fn distances(sources: &[Vec<u32>], finals: &[bool], work: &Budget) -> Result<Vec<u32>> {
    let mut out = vec![NEVER; finals.len()];
    let ends = (0..).zip(finals).filter(|(_, is_end)| **is_end).map(|(state, _)| state);
    let mut order: Vec<u32> = ends.collect();
    order.iter().for_each(|&end| out[end as usize] = 0);
    let mut next = 0;
    while let Some(&state) = order.get(next) {
        next += 1;
        work.spend(1 + sources[state as usize].len() / 16)?;
        for &from in &sources[state as usize] {
            if out[from as usize] == NEVER {
                out[from as usize] = out[state as usize] + 1;
                order.push(from);
            }
        }
    }
    Ok(out)
}

/// The rows of [`Lengths::rows`]: `sets` has for each number of passes the states that end after it, those
/// from `lead` on again and again.
fn rows_of(sets: &[Box<[bool]>], lead: usize, work: &Budget) -> Result<Vec<u32>> {
    let states = sets[0].len();
    let mut rows = vec![NEVER; sets.len() * states];
    let mut next = vec![NEVER; states];
    // Twice around the loop: what comes next may come in the next round.
    let around = (lead..sets.len()).rev();
    for place in around.chain((0..sets.len()).rev()) {
        work.spend(1 + states / 16)?;
        for (state, next) in next.iter_mut().enumerate() {
            *next = match sets[place][state] {
                true => 0,
                false => next.saturating_add(1),
            };
            rows[place * states + state] = *next;
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Interrupt;
    use crate::limits::Limits;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn they_are_those_of_a_search(
            edges in prop::collection::vec((0..6u32, 0..6u32), 0..12),
            finals in prop::collection::vec(any::<bool>(), 6),
            least in 0..40u32,
            width in prop::option::of(0..6u32),
        ) {
            let mut targets = vec![Vec::new(); 6];
            edges.iter().for_each(|&(from, to)| targets[from as usize].push(to));
            let interrupt = Interrupt::default();
            let limits = Limits::default();
            let work = Budget::new(&limits, &interrupt);
            // What each state can end after, for 200 passes.
            let mut sets = vec![finals.clone()];
            for place in 0..200 {
                let before = targets
                    .iter()
                    .map(|to| to.iter().any(|&to| sets[place][to as usize]))
                    .collect();
                sets.push(before);
            }
            let lengths = Lengths::new(&targets, &finals, true, &work).expect("few");
            for state in 0..6 {
                let most = width.map(|width| least + width);
                let to = most.unwrap_or(199) as usize;
                let expected = (least as usize..=to).any(|length| sets[length][state as usize]);
                prop_assert_eq!(lengths.within(state, least, most), expected);
                let endless = (100..200).any(|length| sets[length][state as usize]);
                prop_assert_eq!(lengths.is_endless(state), endless);
            }
        }
    }
}
