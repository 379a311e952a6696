//! Equivalent states of a deterministic automaton by hashes of what they do: a few passes, where
//! refinement needs many tables and splits what is told apart step by step.
//!
//! Where no cycle can be reached, a state has a hash of its letters and of the hashes of their
//! targets. Elsewhere the *level* of a state is the number of edges that it takes to a final state,
//! and of the targets those count with their hashes that have a lower level, or reach no cycle; the
//! others with their levels. Equivalent states have equal levels, and so, level by level, equal
//! hashes: states of one hash are a class that may be too large, never too small. Where all
//! members of each class lead to the same classes, the classes are right. Where not, hashes of
//! the classes that the targets have tell more of them apart, once more for each round.

use super::{Automaton, is_marker};
use crate::budget::Ticks;
use crate::error::Result;
use hashbrown::HashTable;

/// The level of a state that leads to no final state.
const NEVER: u32 = u32::MAX;
/// Rounds after which refinement is faster: each brings what is one edge further.
const MAX_ROUNDS: usize = 8;

/// The classes of equivalent states.
pub(super) struct Classes {
    /// For each state its class.
    pub(super) of: Vec<u32>,
    /// How many there are.
    pub(super) count: usize,
}

/// The classes, if a few rounds tell them, and whether every state leads to a final one without a
/// marker.
///
/// # Errors
/// Those of [`Ticks::step`], as below.
pub(super) fn classes(automaton: &Automaton, ticks: &Ticks) -> Result<(Option<Classes>, bool)> {
    let (mut hashes, leads_to_end) = hashes(automaton, ticks)?;
    let is_alive = leads_to_end && !automaton.all_edges().iter().any(|edge| is_marker(edge.0));
    let mut groups = Groups::new(automaton.len());
    let mut count = groups.make(&hashes, ticks)?;
    for _ in 0..MAX_ROUNDS {
        if groups.agree(automaton, ticks)? {
            return Ok((Some(Classes { of: groups.of, count }), is_alive));
        }
        for (q, edges) in automaton.states() {
            ticks.steps(1 + edges.len())?;
            let class = |q: u32| u64::from(groups.of[q as usize]);
            hashes[q as usize] = edges.iter().fold(class(q), |hash, &(_, q)| mix(hash, class(q)));
        }
        let before = std::mem::replace(&mut count, groups.make(&hashes, ticks)?);
        if count <= before {
            break;
        }
    }
    Ok((None, is_alive))
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5)
}

/// A hash for each state, equal for equivalent ones, and whether every state leads to a final one.
fn hashes(automaton: &Automaton, ticks: &Ticks) -> Result<(Vec<u64>, bool)> {
    let n = automaton.len();
    let sources = Sources::of(automaton, ticks)?;
    let mut hashes = vec![0u64; n];
    let mut levels = vec![NEVER; n];
    // States from which no cycle can be reached: after all that they lead to. Of each the edges
    // to states that are still to come.
    let mut left: Vec<u32> = automaton.states().map(|(_, edges)| edges.len() as u32).collect();
    let mut order: Vec<u32> = Vec::with_capacity(n);
    order.extend((0..n as u32).filter(|&q| left[q as usize] == 0));
    let mut next = 0;
    while let Some(&q) = order.get(next) {
        next += 1;
        ticks.steps(1 + automaton.edges(q).len() + sources.of_edges_to(q).len())?;
        let is_final = automaton.is_final(q);
        let (mut hash, mut level) = (u64::from(is_final), if is_final { 0 } else { NEVER });
        for &(letter, target) in automaton.edges(q) {
            hash = mix(mix(hash, u64::from(letter)), hashes[target as usize]);
            level = level.min(levels[target as usize].saturating_add(1));
        }
        (hashes[q as usize], levels[q as usize]) = (hash, level);
        for &p in sources.of_edges_to(q) {
            left[p as usize] -= 1;
            if left[p as usize] == 0 {
                order.push(p);
            }
        }
    }
    if order.len() < n {
        let is_done = |q: u32| left[q as usize] == 0;
        rank(automaton, &sources, &mut levels, &mut order, ticks)?;
        let others = (0..n as u32).filter(|&q| levels[q as usize] == NEVER);
        for q in order.iter().copied().chain(others).filter(|&q| !is_done(q)) {
            ticks.steps(1 + automaton.edges(q).len())?;
            let level = levels[q as usize];
            let seed = u64::from(automaton.is_final(q));
            hashes[q as usize] = automaton.edges(q).iter().fold(seed, |hash, &(letter, target)| {
                let below = levels[target as usize];
                let is_known = below < level || is_done(target);
                let said = if is_known { hashes[target as usize] } else { u64::from(below) };
                mix(mix(hash, u64::from(letter)), said)
            });
        }
    }
    let leads_to_end = !levels.contains(&NEVER);
    Ok((hashes, leads_to_end))
}

/// The levels of all states, and the states that have one, the lowest first.
fn rank(
    automaton: &Automaton,
    sources: &Sources,
    levels: &mut [u32],
    order: &mut Vec<u32>,
    ticks: &Ticks,
) -> Result<()> {
    levels.fill(NEVER);
    order.clear();
    order.extend(automaton.final_states());
    order.iter().for_each(|&q| levels[q as usize] = 0);
    let mut next = 0;
    while let Some(&q) = order.get(next) {
        next += 1;
        let level = levels[q as usize] + 1;
        ticks.steps(1 + sources.of_edges_to(q).len())?;
        for &p in sources.of_edges_to(q) {
            let known = &mut levels[p as usize];
            if *known == NEVER {
                *known = level;
                order.push(p);
            }
        }
    }
    Ok(())
}

/// The states that edges leave, by those that they lead to.
struct Sources {
    starts: Vec<u32>,
    states: Vec<u32>,
}

impl Sources {
    fn of(automaton: &Automaton, ticks: &Ticks) -> Result<Self> {
        let n = automaton.len();
        let mut starts = vec![0u32; n + 2];
        for &(_, q) in automaton.all_edges() {
            ticks.step()?;
            starts[q as usize + 2] += 1;
        }
        for q in 2..n + 2 {
            starts[q] += starts[q - 1];
        }
        // Each start moves on as its places are filled, to where the next one stood.
        let mut states = vec![0u32; automaton.num_edges()];
        for (p, edges) in automaton.states() {
            ticks.steps(1 + edges.len())?;
            for &(_, q) in edges {
                let at = &mut starts[q as usize + 1];
                states[*at as usize] = p;
                *at += 1;
            }
        }
        Ok(Self { starts, states })
    }

    fn of_edges_to(&self, q: u32) -> &[u32] {
        &self.states[self.starts[q as usize] as usize..self.starts[q as usize + 1] as usize]
    }
}

/// States of equal hashes.
struct Groups {
    of: Vec<u32>,
    /// The first state of each.
    first: Vec<u32>,
    table: HashTable<u32>,
}

impl Groups {
    fn new(states: usize) -> Self {
        let table = HashTable::with_capacity(states);
        Self { of: vec![0; states], first: Vec::with_capacity(states), table }
    }

    /// Puts states of equal hashes together; how many groups there are.
    fn make(&mut self, hashes: &[u64], ticks: &Ticks) -> Result<usize> {
        self.first.clear();
        self.table.clear();
        for (q, &hash) in hashes.iter().enumerate() {
            ticks.steps(4)?;
            let of = |first: &[u32], group: u32| hashes[first[group as usize] as usize];
            let first = &self.first;
            let found = self.table.find(hash, |&group| of(first, group) == hash).copied();
            self.of[q] = found.unwrap_or_else(|| {
                let group = first.len() as u32;
                self.table.insert_unique(hash, group, |&group| of(first, group));
                group
            });
            if found.is_none() {
                self.first.push(q as u32);
            }
        }
        Ok(self.first.len())
    }

    /// Whether all members of a group do the same as its first, as far as the groups tell.
    fn agree(&self, automaton: &Automaton, ticks: &Ticks) -> Result<bool> {
        let group = |q: u32| self.of[q as usize];
        for (q, edges) in automaton.states() {
            ticks.steps(1 + edges.len())?;
            let first = self.first[group(q) as usize];
            let same = automaton.edges(first);
            let agrees = first == q
                || automaton.is_final(first) == automaton.is_final(q)
                    && edges.len() == same.len()
                    && edges.iter().zip(same).all(|(a, b)| a.0 == b.0 && group(a.1) == group(b.1));
            if !agrees {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
