//! Automata without epsilon edges.

use super::{Letter, callee, is_marker};

/// The language of one rule without the empty string. State 0 is the start; it is not final.
///
/// Invariant: every state can be reached from the start; the edges of a state are sorted and
/// distinct.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Automaton {
    /// Edges of each state: letter and target.
    pub edges: Vec<Vec<(Letter, u32)>>,
    /// Whether the rule may be complete at each state.
    pub finals: Vec<bool>,
    /// At most one edge for each letter of a state.
    pub deterministic: bool,
}

impl Automaton {
    /// The number of states.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// Whether there is no state at all (a rule that was removed).
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The number of edges.
    pub fn num_edges(&self) -> usize {
        self.edges.iter().map(Vec::len).sum()
    }

    /// Every call: the state, the callee and the state to return to.
    pub fn calls(&self) -> impl Iterator<Item = (u32, usize, u32)> + '_ {
        self.edges.iter().enumerate().flat_map(|(p, edges)| {
            edges.iter().filter_map(move |&(letter, q)| callee(letter).map(|b| (p as u32, b, q)))
        })
    }

    /// Calls from the start state: callees.
    pub fn left_calls(&self) -> impl Iterator<Item = usize> + '_ {
        self.edges.first().into_iter().flatten().filter_map(|&(letter, _)| callee(letter))
    }

    /// Whether the state is final and has no edge: a call that returns to it is a tail call.
    pub fn is_end(&self, state: u32) -> bool {
        self.finals[state as usize] && self.edges[state as usize].is_empty()
    }

    /// Sorts edges, drops doubles and settles whether the automaton is deterministic.
    pub fn tidy(&mut self) {
        let mut deterministic = true;
        for edges in &mut self.edges {
            edges.sort_unstable();
            edges.dedup();
            deterministic &= edges.windows(2).all(|w| w[0].0 != w[1].0);
        }
        self.deterministic = deterministic;
    }

    /// Drops the states from which no final state can be reached, whatever the calls do.
    /// The start stays, without edges where nothing is left.
    pub fn trim(&mut self) {
        let mut incoming = vec![Vec::new(); self.len()];
        for (p, edges) in self.edges.iter().enumerate() {
            for &(_, q) in edges.iter().filter(|e| !is_marker(e.0)) {
                incoming[q as usize].push(p as u32);
            }
        }
        let mut alive = self.finals.clone();
        let mut work: Vec<u32> = (0..self.len() as u32).filter(|&q| alive[q as usize]).collect();
        while let Some(q) = work.pop() {
            for &p in &incoming[q as usize] {
                if !std::mem::replace(&mut alive[p as usize], true) {
                    work.push(p);
                }
            }
        }
        if alive.iter().all(|&a| a) {
            return;
        }
        for edges in &mut self.edges {
            edges.retain(|&(letter, q)| is_marker(letter) || alive[q as usize]);
        }
        self.renumber();
    }

    /// Renumbers the states breadth-first from the start, edges in order of their letters, and
    /// drops what cannot be reached. Equal deterministic minimal automata become equal values.
    pub fn renumber(&mut self) {
        let mut new_of = vec![u32::MAX; self.len()];
        let mut order = vec![0u32];
        new_of[0] = 0;
        let mut next = 0;
        while let Some(&p) = order.get(next) {
            next += 1;
            for &(_, q) in &self.edges[p as usize] {
                if new_of[q as usize] == u32::MAX {
                    new_of[q as usize] = order.len() as u32;
                    order.push(q);
                }
            }
        }
        let edges = order
            .iter()
            .map(|&p| {
                let mut edges = std::mem::take(&mut self.edges[p as usize]);
                for edge in &mut edges {
                    edge.1 = new_of[edge.1 as usize];
                }
                edges.sort_unstable();
                edges
            })
            .collect();
        self.finals = order.iter().map(|&p| self.finals[p as usize]).collect();
        self.edges = edges;
    }
}
