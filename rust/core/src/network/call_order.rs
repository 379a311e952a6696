//! The order in which called rules are gone through: each after all that may call it first.

use super::Network;
use crate::budget::{Halt, Meter};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// States and calls looked at that count as one unit of work.
const STEPS_OF_WORK: u64 = 8;

const NO_RANK: u32 = u32::MAX;

/// Ranks of the starts of rules. A rule that may begin with a call of another has a lower rank than
/// that one, so a walk in the order of ranks meets each rule after all its callers.
#[derive(Debug)]
pub(crate) struct CallOrder {
    /// For each state of the tables its rank if a rule starts there.
    rank_of: Vec<u32>,
    /// The same for counted repetitions, whose starts are not in the tables.
    rank_of_counted: FxHashMap<u32, u32>,
    /// The starts by rank.
    starts: Vec<u32>,
}

impl CallOrder {
    fn new(network: &Network, meter: &mut Meter) -> Result<Self, Halt> {
        let n = network.len();
        let mut starts = Vec::new();
        let mut rank_of = vec![NO_RANK; n];
        let mut rank_of_counted = FxHashMap::default();
        let mut seen = vec![false; n];
        let mut seen_counted = rustc_hash::FxHashSet::default();
        let mut steps = 0;
        // Depth-first along calls; a start is met twice: before the rules that it calls and after.
        let mut work: Vec<(u32, bool)> = Vec::new();
        for state in 0..n as u32 {
            steps += 1;
            work.extend(network.calls(state).iter().map(|call| (call.start, false)));
            while let Some((start, is_done)) = work.pop() {
                if is_done {
                    starts.push(start);
                    continue;
                }
                let is_new = match seen.get_mut(start as usize) {
                    Some(seen) => !std::mem::replace(seen, true),
                    None => seen_counted.insert(start),
                };
                steps += 1;
                if is_new {
                    work.push((start, true));
                    let calls = network.calls(start);
                    steps += calls.len() as u64;
                    work.extend(calls.iter().map(|call| (call.start, false)));
                }
                if steps >= 1 << 12 {
                    meter.spend(std::mem::take(&mut steps) / STEPS_OF_WORK)?;
                }
            }
            if steps >= 1 << 12 {
                meter.spend(std::mem::take(&mut steps) / STEPS_OF_WORK)?;
            }
        }
        starts.reverse();
        for (rank, &start) in starts.iter().enumerate() {
            match rank_of.get_mut(start as usize) {
                Some(known) => *known = rank as u32,
                None => {
                    rank_of_counted.insert(start, rank as u32);
                }
            }
        }
        Ok(Self { rank_of, rank_of_counted, starts })
    }

    /// The rank of a state, if a rule starts there that is called.
    #[inline]
    pub(crate) fn rank(&self, state: u32) -> Option<u32> {
        let rank = match self.rank_of.get(state as usize) {
            Some(&rank) => rank,
            None => self.rank_of_counted.get(&state).copied().unwrap_or(NO_RANK),
        };
        (rank != NO_RANK).then_some(rank)
    }

    /// The start of the rule with a rank.
    #[inline]
    pub(crate) fn start(&self, rank: u32) -> u32 {
        self.starts[rank as usize]
    }
}

impl Network {
    /// The order of calls, made once for a network.
    ///
    /// # Errors
    /// Those of [`Meter::spend`]; nothing is kept then.
    pub(crate) fn call_order(&self, meter: &mut Meter) -> Result<Arc<CallOrder>, Halt> {
        if let Some(known) = self.call_order.get() {
            return Ok(known.clone());
        }
        let made = Arc::new(CallOrder::new(self, meter)?);
        // Where two threads made it, both made the same.
        Ok(self.call_order.get_or_init(|| made).clone())
    }
}
