//! Automata with epsilon edges: how a right-hand side is first written down.

use super::alike::Alike;
use super::marks::StampMarks;
use super::moves::EdgeBuckets;
use super::{Automaton, Letter, minimize};
use crate::apart::Apart;
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Units of work that the subset construction may take for each state and edge of an automaton,
/// and besides. Where it needs more, its sets grow with the automaton, and it is given up.
const SUBSET_WORK: u64 = 16;
const SUBSET_WORK_BESIDES: u64 = 4 << 20;
/// The units of work that the subset construction may take for states and edges of this number.
pub(super) fn subset_work(size: usize) -> u64 {
    SUBSET_WORK.saturating_mul(size as u64).saturating_add(SUBSET_WORK_BESIDES)
}
/// Edges that are passed over in the time of making one.
const GLANCE: usize = 4;

/// With more edges than this letters may be alike, which is worth finding out.
const AS_IT_STANDS: usize = 1_000;

/// Units of work for a set that is met for the first time, besides its members.
const NEW_SET: usize = 3;

/// An automaton with epsilon edges. State 0 is the start.
#[derive(Clone, Debug, Default)]
pub struct Nfa {
    epsilon: Vec<(u32, u32)>,
    edges: Vec<(u32, (Letter, u32))>,
    finals: Vec<bool>,
}

impl Nfa {
    /// A new state.
    pub fn state(&mut self) -> u32 {
        self.finals.push(false);
        (self.finals.len() - 1) as u32
    }

    /// Makes room for so many more states, each with an edge.
    pub fn reserve_path(&mut self, states: usize) {
        self.finals.reserve(states);
        self.reserve(states);
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Whether there is no state.
    pub fn is_empty(&self) -> bool {
        self.finals.is_empty()
    }

    /// The number of edges, epsilon edges included.
    pub fn num_edges(&self) -> usize {
        self.epsilon.len() + self.edges.len()
    }

    /// Makes a state final.
    pub fn set_final(&mut self, state: u32) {
        self.finals[state as usize] = true;
    }

    /// An epsilon edge.
    pub fn skip(&mut self, from: u32, to: u32) {
        self.epsilon.push((from, to));
    }

    /// An edge that reads a letter.
    pub fn edge(&mut self, from: u32, letter: Letter, to: u32) {
        self.edges.push((from, (letter, to)));
    }

    /// Makes room for edges.
    pub fn reserve(&mut self, edges: usize) {
        self.edges.reserve(edges);
    }

    /// Adds the states of an automaton, without their edges, and returns the number of its start
    /// here. Its final states stay final only where `keep_finals`.
    pub fn embed_states(&mut self, automaton: &Automaton, keep_finals: bool) -> u32 {
        let base = self.len() as u32;
        self.finals.resize(self.len() + automaton.len(), false);
        if keep_finals {
            automaton.final_states().for_each(|q| self.set_final(base + q));
        }
        base
    }

    /// Adds an automaton and returns the number of its start here. Its final states stay final
    /// only where `keep_finals`.
    pub fn embed(&mut self, automaton: &Automaton, keep_finals: bool) -> u32 {
        let base = self.embed_states(automaton, keep_finals);
        self.edges.reserve(automaton.num_edges());
        for (p, edges) in automaton.states() {
            let moved = |(letter, q)| (base + p, (letter, base + q));
            match automaton.falls_back(p) {
                false => self.edges.extend(edges.iter().copied().map(moved)),
                true => self.edges.extend(automaton.edges_in_full(p).map(moved)),
            }
        }
        base
    }

    /// The language without the empty string, as a minimal deterministic automaton; where the
    /// subset construction would pass `max_states`, or sets that grow without end, as a
    /// nondeterministic one without epsilon edges (everything downstream takes both).
    ///
    /// # Errors
    /// Those of [`Budget::spend`].
    pub fn reduce(&self, max_states: usize, work: &Budget) -> Result<Automaton> {
        let size = self.len() + self.num_edges();
        work.spend(size)?;
        let ticks = Ticks::new(work);
        if let Some(automaton) = self.as_it_stands(&ticks)? {
            let mut automaton = minimize::minimize(automaton, work)?;
            automaton.renumber_within(&Ticks::new(work))?;
            return Ok(automaton);
        }
        let alike = Alike::of(&self.edges, &ticks)?;
        let kept = self.edges.iter().filter(|e| alike.is_first(e.1.0));
        let edges = GroupedPairs::new(self.len(), kept, &ticks)?;
        let closures = Closures::new(self, &edges, work)?;
        let units = subset_work(size);
        let subsets = Subsets { edges: &edges, closures: &closures, finals: &self.finals };
        let mut automaton = match work.attempt(units, || subsets.determinize(max_states, work))? {
            Some(Some(automaton)) => {
                let smallest = minimize::minimize(automaton, work)?;
                work.spend(smallest.num_edges())?;
                alike.spread(smallest, &ticks)?
            }
            _ => {
                let edges = GroupedPairs::new(self.len(), self.edges.iter(), &ticks)?;
                Subsets { edges: &edges, ..subsets }.without_epsilon(work)?
            }
        };
        automaton.renumber_within(&Ticks::new(work))?;
        Ok(automaton)
    }

    /// The same states and edges, where they are a deterministic automaton already, of few enough
    /// edges: most rules as they are written.
    fn as_it_stands(&self, ticks: &Ticks) -> Result<Option<Automaton>> {
        if !self.epsilon.is_empty() || self.edges.len() > AS_IT_STANDS || self.finals[0] {
            return Ok(None);
        }
        // Nothing leads to the start, and the edges of each state are in order.
        let edges = GroupedPairs::new(self.len(), self.edges.iter(), ticks)?;
        let in_order = |q: u32| edges.of(q).is_sorted_by(|a, b| a.0 < b.0);
        if edges.items.iter().any(|edge| edge.1 == 0) || !(0..self.len() as u32).all(in_order) {
            return Ok(None);
        }
        let mut out = Automaton::with_capacity(self.len(), edges.items.len());
        for (q, &is_final) in (0..).zip(&self.finals) {
            edges.of(q).iter().for_each(|&(letter, target)| out.push_edge(letter, target));
            out.close_state(is_final);
        }
        Ok(Some(out))
    }
}

/// Pairs by their first part, without an allocation for each row.
struct GroupedPairs<T> {
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T: Copy + Default> GroupedPairs<T> {
    fn new<'a>(
        rows: usize,
        pairs: impl Iterator<Item = &'a (u32, T)> + Clone,
        ticks: &Ticks,
    ) -> Result<Self>
    where
        T: 'a,
    {
        let mut starts = vec![0u32; rows + 1];
        for &(row, _) in pairs.clone() {
            ticks.step()?;
            starts[row as usize + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let mut fill = starts.clone();
        let mut items = vec![T::default(); starts[rows] as usize];
        for &(row, item) in pairs {
            ticks.step()?;
            let at = &mut fill[row as usize];
            items[*at as usize] = item;
            *at += 1;
        }
        Ok(Self { starts, items })
    }

    #[inline]
    fn of(&self, row: u32) -> &[T] {
        let row = row as usize;
        &self.items[self.starts[row] as usize..self.starts[row + 1] as usize]
    }
}

/// Ways to do without epsilon edges.
struct Subsets<'a> {
    edges: &'a GroupedPairs<(Letter, u32)>,
    closures: &'a Closures,
    finals: &'a [bool],
}

impl Subsets<'_> {
    /// The subset construction. The start is a state of its own, never a target, so that it can
    /// be non-final while an equal set of states met later is final.
    fn determinize(&self, max_states: usize, work: &Budget) -> Result<Option<Automaton>> {
        let mut out = Automaton::with_capacity(self.finals.len(), self.edges.items.len());
        let mut met = MetSets::new(self.closures, self.finals.len());
        let mut moves = EdgeBuckets::default();
        let ticks = Ticks::new(work);
        let mut next = 0;
        while next < met.sets.len() {
            let sole = if let [p] = *met.sets.of(next) { Some(p) } else { None };
            let before = met.sets.len();
            // Most sets are one state whose edges are in order.
            let in_order = sole.map(|p| self.edges.of(p));
            let in_order = in_order.filter(|edges| edges.is_sorted_by(|a, b| a.0 < b.0));
            let mut visited = 1;
            if let Some(edges) = in_order {
                visited += 1 + edges.len();
                for &(letter, q) in edges {
                    let (id, units) = met.single(q);
                    visited += units;
                    out.push_edge(letter, id);
                }
            } else {
                let set = met.sets.of(next);
                let letters = moves.of(set.iter().map(|&q| self.edges.of(q)));
                // A state of an automaton that stayed nondeterministic may have an edge to each other one.
                let passed: usize = set.iter().map(|&q| self.edges.of(q).len()).sum();
                visited += set.len() + letters + passed / GLANCE;
                ticks.steps(visited)?;
                for index in 0..letters {
                    let (letter, targets) = moves.get(index);
                    let (id, units) = match *targets {
                        [q] => met.single(q),
                        _ => met.union(targets),
                    };
                    visited += units;
                    ticks.steps(1 + units)?;
                    out.push_edge(letter, id);
                }
            }
            if met.sets.len() > max_states {
                return Ok(None);
            }
            visited += NEW_SET * (met.sets.len() - before);
            let mut members = met.sets.of(next).iter();
            out.close_state(next > 0 && members.any(|&q| self.finals[q as usize]));
            next += 1;
            work.spend(visited)?;
        }
        Ok(Some(out))
    }

    /// The same language without epsilon edges, states as they are, behind a fresh start.
    fn without_epsilon(&self, work: &Budget) -> Result<Automaton> {
        let mut out = Automaton::with_capacity(self.finals.len() + 1, self.edges.items.len());
        let mut moves = EdgeBuckets::default();
        let mut marks = StampMarks::new(self.finals.len());
        let ticks = Ticks::new(work);
        let mut push = |q: u32, start: bool| {
            let closure = self.closures.of(q);
            // Members of a closure lead to the same places again and again: each counts once.
            let letters = moves.of(closure.iter().map(|&p| self.edges.of(p)));
            let passed: usize = closure.iter().map(|&p| self.edges.of(p).len()).sum();
            let mut made = 1 + passed / GLANCE;
            ticks.steps(passed)?;
            for index in 0..letters {
                let (letter, targets) = moves.get(index);
                marks.clear();
                ticks.steps(targets.len())?;
                for &t in targets.iter().filter(|&&t| marks.mark(t)) {
                    out.push_edge(letter, t + 1);
                    made += 1;
                }
            }
            out.close_state(!start && closure.iter().any(|&p| self.finals[p as usize]));
            work.spend(made)
        };
        push(0, true)?;
        for q in 0..self.finals.len() as u32 {
            push(q, false)?;
        }
        out.tidy_within(&Ticks::new(work))?;
        Ok(out)
    }
}

const NOWHERE: u32 = u32::MAX;

/// The sets that were met, and which of them edges lead to.
struct MetSets<'a> {
    closures: &'a Closures,
    sets: Sets,
    /// The set of one state alone, where it was met.
    alone: Vec<u32>,
    /// The closure of a state, where it was met and has several members.
    closure: Vec<u32>,
    marks: StampMarks,
    target: Vec<u32>,
}

impl<'a> MetSets<'a> {
    /// The closure of the start alone.
    fn new(closures: &'a Closures, states: usize) -> Self {
        let mut sets = Sets {
            members: Vec::with_capacity(states).into(),
            ends: Vec::with_capacity(states),
            hashes: Vec::with_capacity(states),
            table: HashTable::new(),
        };
        sets.push(closures.of(0), 0);
        Self {
            closures,
            sets,
            alone: vec![NOWHERE; states],
            closure: vec![NOWHERE; states],
            marks: StampMarks::new(states),
            target: Vec::new(),
        }
    }

    /// The set that edges of one letter to one state lead to, and the units of work.
    #[inline]
    fn single(&mut self, q: u32) -> (u32, usize) {
        let closure = self.closures.of(q);
        let known = match *closure {
            [p] => &mut self.alone[p as usize],
            _ => &mut self.closure[q as usize],
        };
        if *known != NOWHERE {
            return (*known, 0);
        }
        *known = match closure.len() {
            1 => self.sets.push(closure, 0),
            _ => self.sets.add(closure),
        };
        (*known, closure.len())
    }

    /// The same for edges to several states.
    fn union(&mut self, targets: &[u32]) -> (u32, usize) {
        self.marks.clear();
        self.target.clear();
        let mut visited = 0;
        for &q in targets {
            let closure = self.closures.of(q);
            self.target.extend(closure.iter().filter(|&&p| self.marks.mark(p)));
            visited += closure.len() / GLANCE;
        }
        visited += targets.len() / GLANCE + self.target.len();
        if let [p] = *self.target {
            let known = &mut self.alone[p as usize];
            if *known == NOWHERE {
                *known = self.sets.push(&self.target, 0);
            }
            return (*known, visited);
        }
        self.target.sort_unstable();
        (self.sets.add(&self.target), visited)
    }
}

/// Sets of states. Those of one state are told apart by whoever adds them, and the first equals no
/// other; the others are distinct.
struct Sets {
    members: Apart<u32>,
    ends: Vec<u32>,
    hashes: Vec<u64>,
    table: HashTable<u32>,
}

impl Sets {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn of(&self, id: usize) -> &[u32] {
        let from = if id == 0 { 0 } else { self.ends[id - 1] as usize };
        &self.members[from..self.ends[id] as usize]
    }

    fn push(&mut self, set: &[u32], hash: u64) -> u32 {
        self.members.extend_from_slice(set);
        self.ends.push(self.members.len() as u32);
        self.hashes.push(hash);
        self.ends.len() as u32 - 1
    }

    /// The number of a set.
    fn add(&mut self, set: &[u32]) -> u32 {
        let mut hasher = FxHasher::default();
        set.hash(&mut hasher);
        let hash = hasher.finish();
        let same = |&id: &u32| self.hashes[id as usize] == hash && self.of(id as usize) == set;
        if let Some(&id) = self.table.find(hash, same) {
            return id;
        }
        let id = self.push(set, hash);
        self.table.insert_unique(hash, id, |&id| self.hashes[id as usize]);
        id
    }
}

/// For each state the states that epsilon edges lead to and that matter: those that have an edge
/// or are final. Sorted.
struct Closures {
    starts: Vec<u32>,
    members: Apart<u32>,
}

impl Closures {
    fn new(nfa: &Nfa, edges: &GroupedPairs<(Letter, u32)>, work: &Budget) -> Result<Self> {
        let ticks = Ticks::new(work);
        let epsilon = GroupedPairs::new(nfa.len(), nfa.epsilon.iter(), &ticks)?;
        let mut starts = Vec::with_capacity(nfa.len() + 1);
        let mut members = Apart::from(Vec::with_capacity(nfa.len()));
        let mut seen = vec![NOWHERE; nfa.len()];
        let mut pending = Vec::new();
        // Only the start and the targets of edges are ever asked for.
        let mut wanted = vec![false; nfa.len()];
        wanted[0] = true;
        for &(_, (_, q)) in &nfa.edges {
            ticks.step()?;
            wanted[q as usize] = true;
        }
        for q in 0..nfa.len() as u32 {
            starts.push(members.len() as u32);
            let from = members.len();
            if !wanted[q as usize] {
                continue;
            }
            seen[q as usize] = q;
            pending.push(q);
            let mut visited = 0;
            while let Some(p) = pending.pop() {
                if !edges.of(p).is_empty() || nfa.finals[p as usize] {
                    members.push(p);
                }
                for &t in epsilon.of(p) {
                    if std::mem::replace(&mut seen[t as usize], q) != q {
                        pending.push(t);
                    }
                }
                visited += 1 + epsilon.of(p).len();
            }
            members[from..].sort_unstable();
            work.spend(visited.div_ceil(2))?;
        }
        starts.push(members.len() as u32);
        Ok(Self { starts, members })
    }

    fn of(&self, q: u32) -> &[u32] {
        &self.members[self.starts[q as usize] as usize..self.starts[q as usize + 1] as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Interrupt;
    use crate::limits::Limits;

    #[test]
    fn edges_of_sets_that_are_looked_at_are_work() {
        for states in [40, 80, 160] {
            let mut nfa = Nfa::default();
            (0..states).for_each(|_| _ = nfa.state());
            for (p, q) in (0..states).flat_map(|p| (0..states).map(move |q| (p, q))) {
                nfa.edge(p, (q + p) % 3, q);
            }
            nfa.set_final(states - 1);
            let work = Budget::new(&Limits::default(), &Interrupt::default());
            nfa.reduce(1_000, &work).expect("within bounds");
            // Each of the sets that letters lead to has most states, and each of those all edges.
            assert!(work.done() > u64::from(states * states) / 4 * 2, "{states}: {}", work.done());
        }
    }
}
