//! Stack adjacency: what can stand beneath a frame (CFGzip, appendix C).

use super::Network;
use crate::automata::marks::StampMarks;
use crate::budget::{Budget, Interrupt, Ticks};
use crate::error::{Error, Result};
use crate::graph;
use crate::limits::Limits;
use rustc_hash::FxHashMap;

/// The bottom of the stack, as a frame: beneath it is nothing.
pub const BOTTOM: u32 = u32::MAX;

/// Units of work for each entry of a set: each becomes a stack set, and a frame of a state.
const ENTRY: usize = 8;

/// Of more return addresses equal ones are dropped before they are sorted.
const MANY_RETURNS: usize = 1 << 14;

/// For each rule the frames that can be uncovered when it is complete.
///
/// Beneath a frame of rule `B` stands the return address `r` of some call of `B`. An `r` that is
/// final may be passed over, so whatever can stand beneath `r` belongs to the set as well; an end
/// is never pushed, only passed over. [`BOTTOM`] is in the set of each rule with which the whole
/// text can end.
#[derive(Clone, Debug)]
pub struct Adjacency {
    sets: Vec<Vec<u32>>,
    set_of_rule: Vec<u32>,
}

impl Adjacency {
    /// The stack adjacency of a network.
    ///
    /// # Errors
    /// [`Error::Limit`] when all sets together pass `max_entries`.
    pub fn new(network: &Network, max_entries: usize) -> Result<Self> {
        let budget = Budget::new(&Limits::default(), &Interrupt::default());
        Self::make(network, max_entries, &budget)
    }

    /// The stack adjacency of a network, made under a count of work.
    ///
    /// # Errors
    /// [`Error::Limit`] when all sets together pass `max_entries`; those of [`Budget::spend`].
    pub fn make(network: &Network, max_entries: usize, work: &Budget) -> Result<Self> {
        let n = network.num_rules();
        let ticks = Ticks::new(work);
        let Returns { mut own, passed } = Returns::of(network, work, &ticks)?;
        let mut sets: Vec<Vec<u32>> = Vec::new();
        let mut ids: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        let mut set_of_rule = vec![u32::MAX; n];
        let mut entries = 0;
        let mut marks: Option<StampMarks> = None;
        let passes = |b: usize| {
            ticks.steps(1 + passed[b].len())?;
            Ok(passed[b].clone())
        };
        for component in graph::components_within(n, |steps| ticks.steps(steps), passes)?.iter() {
            let mut set: Vec<u32> = Vec::new();
            for &b in component {
                set.append(&mut own[b]);
                ticks.steps(1 + passed[b].len())?;
                for &a in &passed[b] {
                    if set_of_rule[a] != u32::MAX {
                        let part = &sets[set_of_rule[a] as usize];
                        work.spend(1 + part.len())?;
                        set.extend_from_slice(part);
                    }
                }
            }
            // Millions of places may return to one state.
            work.tick()?;
            if set.len() > MANY_RETURNS {
                let marks = marks.get_or_insert_with(|| StampMarks::new(network.len() + 1));
                set = distinct(&set, network.len(), marks, work)?;
            }
            set.sort_unstable();
            set.dedup();
            entries += set.len();
            if entries > max_entries {
                return Err(Error::Limit {
                    limit: "max_network_edges",
                    value: max_entries as u64,
                    message:
                        "stack adjacency has more pairs; simplify the grammar or raise the limit"
                            .to_owned(),
                });
            }
            let size = set.len();
            let next = sets.len() as u32;
            let id = *ids.entry(set).or_insert_with_key(|set| {
                sets.push(set.clone());
                next
            });
            if id == next {
                work.spend(ENTRY * size)?;
            }
            for &b in component {
                set_of_rule[b] = id;
            }
        }
        Ok(Self { sets, set_of_rule })
    }

    /// The distinct sets, each sorted.
    pub fn sets(&self) -> &[Vec<u32>] {
        &self.sets
    }

    /// The number of the set of a rule.
    pub fn set_of_rule(&self, rule: u32) -> u32 {
        self.set_of_rule[rule as usize]
    }
}

/// Where the calls of each rule return to.
struct Returns {
    /// The return addresses that stay on a stack, and [`BOTTOM`]; some may come again.
    own: Vec<Vec<u32>>,
    /// The rules whose sets are part of that of the rule, sorted: a call at their ends is passed over.
    passed: Vec<Vec<usize>>,
}

impl Returns {
    fn of(network: &Network, work: &Budget, ticks: &Ticks) -> Result<Self> {
        let n = network.num_rules();
        let mut own: Vec<Vec<u32>> = vec![Vec::new(); n];
        let mut passed: Vec<Vec<usize>> = vec![Vec::new(); n];
        own[network.rule_of(network.start()) as usize].push(BOTTOM);
        for q in 0..network.len() as u32 {
            work.spend(1 + network.calls(q).len())?;
            for call in network.calls(q).iter() {
                let b = network.rule_of(call.start) as usize;
                if network.stays(call.to) {
                    own[b].push(call.to);
                }
                if network.is_final(call.to) {
                    let rule = network.rule_of(q) as usize;
                    if passed[b].last() != Some(&rule) {
                        passed[b].push(rule);
                    }
                }
            }
        }
        for list in &mut passed {
            ticks.steps(1 + list.len())?;
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self { own, passed })
    }
}

/// Each entry of a set once: states of so many, and [`BOTTOM`].
fn distinct(set: &[u32], states: usize, marks: &mut StampMarks, work: &Budget) -> Result<Vec<u32>> {
    marks.clear();
    let ticks = Ticks::new(work);
    let mut distinct = Vec::new();
    for &entry in set {
        ticks.step()?;
        if marks.mark(entry.min(states as u32)) {
            distinct.push(entry);
        }
    }
    Ok(distinct)
}
