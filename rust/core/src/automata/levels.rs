//! Equivalent states of a deterministic automaton by hashes of what they do: a few passes, where
//! refinement needs many tables and splits what is told apart step by step.
//!
//! A state on no cycle has a *name*, a hash of its letters and of the names of their targets, from the ends back.
//! States on cycles are named component by component. The *level* of a state is the number of edges that it takes to a
//! final state, and its *look* a hash of its letters and of what their targets look like where these have a lower
//! level, or reach no cycle, and of their levels elsewhere: level by level, equivalent states look the same. Either
//! each state of a component does what a state of an earlier one does, which is tried with those that look like one of
//! them, and has its name; or none does. Then its states have names that no others have: looks, and names that are
//! there, tell them apart, and where they do not, what the targets have does, once more for each round. So equivalent
//! states have one name. That states of one name are equivalent is seen at the end, where all of them lead to the same
//! names.

use super::{Automaton, is_marker};
use crate::budget::Ticks;
use crate::error::Result;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// The level of a state that leads to no final state.
const NEVER: u32 = u32::MAX;
/// Rounds after which refinement is faster: each brings what is one edge further.
const MAX_ROUNDS: usize = 8;
/// Of small components there are more rounds, of so many steps together.
const SMALL: usize = 4_096;

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
    let n = automaton.len();
    let (mut names, mut levels) = (vec![0u64; n], vec![NEVER; n]);
    let is_done = straight(automaton, &mut names, &mut levels, ticks)?;
    let mut groups = HashGroups::new(n);
    let mut is_named = true;
    if is_done.contains(&false) {
        let components = CycleComponents::of(automaton, &is_done, ticks)?;
        let order = rank(automaton, &mut levels, ticks)?;
        let looks = looks(automaton, &is_done, &names, &levels, &order, ticks)?;
        let mut naming = CycleNaming {
            automaton,
            looks,
            names,
            component: &components.of,
            by_key: FxHashMap::default(),
            by_look: FxHashMap::default(),
            partners: vec![NEVER; n],
            steps_left: 8 * automaton.size() + 4_096,
        };
        for number in 0..components.len() {
            if !naming.name(number as u32, components.states(number), &mut groups, ticks)? {
                is_named = false;
                break;
            }
        }
        names = naming.names;
    }
    let leads_to_end = !levels.contains(&NEVER);
    let is_alive = leads_to_end && !automaton.all_edges().iter().any(|edge| is_marker(edge.0));
    if !is_named {
        return Ok((None, is_alive));
    }
    let all = 0..n as u32;
    let count = groups.make(all.clone(), &names, ticks)?;
    let agree = groups.agree(automaton, all, &names, ticks)?;
    Ok((agree.then_some(Classes { of: groups.of, count }), is_alive))
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5)
}

/// A hash of the letters of a state and of what their targets are called.
#[inline]
fn hash(automaton: &Automaton, q: u32, of: impl Fn(u32) -> u64) -> u64 {
    let seed = u64::from(automaton.is_final(q));
    let edges = automaton.edges(q).iter();
    edges.fold(seed, |hash, &(letter, q)| mix(mix(hash, u64::from(letter)), of(q)))
}

/// Names states from which no cycle can be reached, and says which: after all that they lead to, depth first.
fn straight(
    automaton: &Automaton,
    names: &mut [u64],
    levels: &mut [u32],
    ticks: &Ticks,
) -> Result<Vec<bool>> {
    let n = automaton.len();
    let (mut is_met, mut is_done) = (vec![false; n], vec![false; n]);
    // The states on the way, with the edges that were followed.
    let mut path: Vec<(u32, u32)> = Vec::new();
    for root in 0..n as u32 {
        if is_met[root as usize] {
            continue;
        }
        is_met[root as usize] = true;
        path.push((root, 0));
        while let Some((q, followed)) = path.last_mut() {
            let (here, edges) = (*q as usize, automaton.edges(*q));
            let mut rest = edges[*followed as usize..].iter().zip(1..);
            if let Some((&(_, to), step)) = rest.find(|(edge, _)| !is_met[edge.1 as usize]) {
                *followed += step;
                ticks.steps(step as usize)?;
                is_met[to as usize] = true;
                path.push((to, 0));
                continue;
            }
            ticks.steps(1 + edges.len())?;
            path.pop();
            // What is met and not done is on the way here, or leads to a cycle itself.
            if edges.iter().all(|edge| is_done[edge.1 as usize]) {
                is_done[here] = true;
                names[here] = hash(automaton, here as u32, |q| names[q as usize]);
                let below = edges.iter().map(|edge| levels[edge.1 as usize]).min();
                levels[here] = match automaton.is_final(here as u32) {
                    true => 0,
                    false => below.map_or(NEVER, |level| level.saturating_add(1)),
                };
            }
        }
    }
    Ok(is_done)
}

/// What states look like that are not named yet; `order` has those with a level, the lowest first.
fn looks(
    automaton: &Automaton,
    is_done: &[bool],
    names: &[u64],
    levels: &[u32],
    order: &[u32],
    ticks: &Ticks,
) -> Result<Vec<u64>> {
    let mut looks = names.to_vec();
    let others = (0..levels.len() as u32).filter(|&q| levels[q as usize] == NEVER);
    for q in order.iter().copied().chain(others).filter(|&q| !is_done[q as usize]) {
        ticks.steps(1 + automaton.edges(q).len())?;
        let level = levels[q as usize];
        looks[q as usize] = hash(automaton, q, |target| {
            let below = levels[target as usize];
            let is_known = below < level || is_done[target as usize];
            if is_known { looks[target as usize] } else { u64::from(below) }
        });
    }
    Ok(looks)
}

/// Names for states that lead to cycles, one strongly connected component after the other.
struct CycleNaming<'a> {
    automaton: &'a Automaton,
    looks: Vec<u64>,
    names: Vec<u64>,
    component: &'a [u32],
    /// The names of states on cycles, by the hashes of what they do.
    by_key: FxHashMap<u64, u64>,
    /// One state on a cycle of each name, by its look.
    by_look: FxHashMap<u64, Vec<u32>>,
    /// For a state of the component that is tried, the state that does the same.
    partners: Vec<u32>,
    /// So many more are compared.
    steps_left: usize,
}

impl CycleNaming<'_> {
    /// Names the states of a component, those it leads to being named; whether that was done.
    fn name(
        &mut self,
        number: u32,
        states: &[u32],
        groups: &mut HashGroups,
        ticks: &Ticks,
    ) -> Result<bool> {
        let automaton = self.automaton;
        if let [q] = *states
            && automaton.edges(q).iter().all(|edge| edge.1 != q)
        {
            ticks.steps(1 + automaton.edges(q).len())?;
            let key = hash(automaton, q, |q| self.names[q as usize]);
            // What leads to cycles may do the same as a state on one.
            self.names[q as usize] = self.by_key.get(&key).copied().unwrap_or(key);
            return Ok(true);
        }
        let size: usize = states.iter().map(|&q| 1 + automaton.edges(q).len()).sum();
        ticks.steps(size)?;
        let alike = |q: u32| self.by_look.get(&self.looks[q as usize]).map_or(0, |some| some.len());
        if let Some((_, first)) = states.iter().map(|&q| (alike(q), q)).min() {
            let look = self.looks[first as usize];
            for partner in self.by_look.get(&look).cloned().unwrap_or_default() {
                if self.does_the_same(number, states, first, partner, ticks)? {
                    for &q in states {
                        self.names[q as usize] = self.names[self.partners[q as usize] as usize];
                    }
                    return Ok(true);
                }
                if self.steps_left == 0 {
                    return Ok(false);
                }
            }
        }
        for &q in states {
            // No other component has these names.
            self.names[q as usize] = mix(self.looks[q as usize], u64::from(number));
        }
        if !self.tell_apart(states, size, groups, ticks)? {
            return Ok(false);
        }
        for &q in &groups.first {
            let key = hash(automaton, q, |q| self.names[q as usize]);
            self.by_key.insert(key, self.names[q as usize]);
            self.by_look.entry(self.looks[q as usize]).or_default().push(q);
        }
        Ok(true)
    }

    /// Whether the states of a component do what states do that are named, one of them what a
    /// partner does; then all have partners.
    fn does_the_same(
        &mut self,
        number: u32,
        states: &[u32],
        first: u32,
        partner: u32,
        ticks: &Ticks,
    ) -> Result<bool> {
        states.iter().for_each(|&q| self.partners[q as usize] = NEVER);
        self.partners[first as usize] = partner;
        let mut work = vec![first];
        while let Some(q) = work.pop() {
            let p = self.partners[q as usize];
            let (own, theirs) = (self.automaton.edges(q), self.automaton.edges(p));
            ticks.steps(1 + own.len())?;
            self.steps_left = self.steps_left.saturating_sub(1 + own.len());
            if own.len() != theirs.len()
                || self.automaton.is_final(q) != self.automaton.is_final(p)
                || self.steps_left == 0
            {
                return Ok(false);
            }
            for (&(letter, to), &(other, there)) in own.iter().zip(theirs) {
                let name = self.names[there as usize];
                let known = match self.component[to as usize] == number {
                    false => Some(self.names[to as usize]),
                    true if self.partners[to as usize] == NEVER => None,
                    true => Some(self.names[self.partners[to as usize] as usize]),
                };
                if letter != other || known.is_some_and(|known| known != name) {
                    return Ok(false);
                }
                if known.is_none() {
                    self.partners[to as usize] = there;
                    work.push(to);
                }
            }
        }
        Ok(true)
    }

    /// Whether a few rounds tell the states of a component apart. Their names then do.
    fn tell_apart(
        &mut self,
        states: &[u32],
        size: usize,
        groups: &mut HashGroups,
        ticks: &Ticks,
    ) -> Result<bool> {
        let all = || states.iter().copied();
        let mut count = 0;
        for _ in 0..MAX_ROUNDS.max(SMALL / size) {
            let mut next = Vec::with_capacity(states.len());
            for q in all() {
                ticks.steps(1 + self.automaton.edges(q).len())?;
                let targets = self.automaton.edges(q).iter();
                let name = |q: u32| self.names[q as usize];
                next.push(targets.fold(name(q), |hash, &(_, q)| mix(hash, name(q))));
            }
            for (q, name) in all().zip(next) {
                self.names[q as usize] = name;
            }
            let before = std::mem::replace(&mut count, groups.make(all(), &self.names, ticks)?);
            if groups.agree(self.automaton, all(), &self.names, ticks)? {
                return Ok(true);
            }
            if count <= before {
                break;
            }
        }
        Ok(false)
    }
}

/// The strongly connected components of the states that lead to cycles, each after those that it
/// leads to.
struct CycleComponents {
    of: Vec<u32>,
    states: Vec<u32>,
    ends: Vec<u32>,
}

impl CycleComponents {
    /// Tarjan's algorithm.
    fn of(automaton: &Automaton, is_done: &[bool], ticks: &Ticks) -> Result<Self> {
        let n = automaton.len();
        let mut out = Self { of: vec![NEVER; n], states: Vec::new(), ends: Vec::new() };
        // When a state was met, and the earliest that it leads back to.
        let (mut met, mut low) = (vec![NEVER; n], vec![NEVER; n]);
        let (mut open, mut path): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        let mut time = 0;
        for root in 0..n as u32 {
            ticks.step()?;
            if is_done[root as usize] || met[root as usize] != NEVER {
                continue;
            }
            path.push((root, 0));
            while let Some((q, at)) = path.last_mut() {
                let here = *q as usize;
                if met[here] == NEVER {
                    (met[here], low[here]) = (time, time);
                    time += 1;
                    open.push(*q);
                }
                let mut next = None;
                while let (None, Some(&(_, to))) = (next, automaton.edges(*q).get(*at)) {
                    *at += 1;
                    if is_done[to as usize] {
                        continue;
                    }
                    if met[to as usize] == NEVER {
                        next = Some(to);
                    } else if out.of[to as usize] == NEVER {
                        low[here] = low[here].min(met[to as usize]);
                    }
                }
                ticks.step()?;
                if let Some(next) = next {
                    path.push((next, 0));
                    continue;
                }
                path.pop();
                if let Some(&(above, _)) = path.last() {
                    low[above as usize] = low[above as usize].min(low[here]);
                }
                if low[here] == met[here] {
                    while let Some(q) = open.pop() {
                        out.of[q as usize] = out.ends.len() as u32;
                        out.states.push(q);
                        if q as usize == here {
                            break;
                        }
                    }
                    out.ends.push(out.states.len() as u32);
                }
            }
        }
        Ok(out)
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn states(&self, number: usize) -> &[u32] {
        let from = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.states[from as usize..self.ends[number] as usize]
    }
}

/// The levels of all states, and the states that have one, the lowest first.
fn rank(automaton: &Automaton, levels: &mut [u32], ticks: &Ticks) -> Result<Vec<u32>> {
    let sources = Sources::of(automaton, ticks)?;
    levels.fill(NEVER);
    let mut order: Vec<u32> = Vec::with_capacity(levels.len());
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
    Ok(order)
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
struct HashGroups {
    of: Vec<u32>,
    /// The first state of each.
    first: Vec<u32>,
    table: HashTable<u32>,
}

impl HashGroups {
    fn new(states: usize) -> Self {
        let table = HashTable::with_capacity(states);
        Self { of: vec![0; states], first: Vec::with_capacity(states), table }
    }

    /// Puts states of equal hashes together; how many groups there are.
    fn make(
        &mut self,
        states: impl Iterator<Item = u32>,
        hashes: &[u64],
        ticks: &Ticks,
    ) -> Result<usize> {
        self.first.clear();
        self.table.clear();
        for q in states {
            ticks.steps(4)?;
            let hash = hashes[q as usize];
            let of = |first: &[u32], group: u32| hashes[first[group as usize] as usize];
            let first = &self.first;
            let found = self.table.find(hash, |&group| of(first, group) == hash).copied();
            self.of[q as usize] = found.unwrap_or_else(|| {
                let group = first.len() as u32;
                self.table.insert_unique(hash, group, |&group| of(first, group));
                group
            });
            if found.is_none() {
                self.first.push(q);
            }
        }
        Ok(self.first.len())
    }

    /// Whether all members of a group do the same as its first, as far as hashes tell.
    fn agree(
        &self,
        automaton: &Automaton,
        states: impl Iterator<Item = u32>,
        hashes: &[u64],
        ticks: &Ticks,
    ) -> Result<bool> {
        for q in states {
            let edges = automaton.edges(q);
            ticks.steps(1 + edges.len())?;
            let first = self.first[self.of[q as usize] as usize];
            let (same, hash) = (automaton.edges(first), |q: u32| hashes[q as usize]);
            let agrees = first == q
                || automaton.is_final(first) == automaton.is_final(q)
                    && edges.len() == same.len()
                    && edges.iter().zip(same).all(|(a, b)| a.0 == b.0 && hash(a.1) == hash(b.1));
            if !agrees {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
