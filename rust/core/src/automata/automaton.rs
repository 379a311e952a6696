//! Automata without epsilon edges.

use super::{Letter, callee, is_marker};

/// The language of one rule without the empty string. State 0 is the start; it is not final.
///
/// All edges stand in one table, state by state: a list for each state would take an allocation
/// for each, which was half of the time of a network.
///
/// Invariant: every state can be reached from the start; the edges of a state are sorted and
/// distinct.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Automaton {
    edges: Vec<(Letter, u32)>,
    /// Where the edges of each state end.
    ends: Vec<u32>,
    finals: Vec<bool>,
    deterministic: bool,
}

impl Automaton {
    /// An automaton without states, to be filled, with room for some.
    pub fn with_capacity(states: usize, edges: usize) -> Self {
        Self {
            edges: Vec::with_capacity(edges),
            ends: Vec::with_capacity(states),
            finals: Vec::with_capacity(states),
            deterministic: true,
        }
    }

    /// The automaton with these states: whether each is final, and its edges.
    pub fn from_states<E: AsRef<[(Letter, u32)]>>(states: &[(bool, E)]) -> Self {
        let mut out = Self::default();
        for (is_final, edges) in states {
            out.edges.extend_from_slice(edges.as_ref());
            out.close_state(*is_final);
        }
        out.tidy();
        out
    }

    /// Adds an edge to the state that is being written.
    #[inline]
    pub fn push_edge(&mut self, letter: Letter, target: u32) {
        self.edges.push((letter, target));
    }

    /// Ends the state that is being written.
    #[inline]
    pub fn close_state(&mut self, is_final: bool) {
        self.ends.push(self.edges.len() as u32);
        self.finals.push(is_final);
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Whether there is no state at all (a rule that was removed).
    pub fn is_empty(&self) -> bool {
        self.finals.is_empty()
    }

    /// The number of edges.
    pub fn num_edges(&self) -> usize {
        self.edges.len()
    }

    /// States and edges: what a pass over the automaton costs.
    pub fn size(&self) -> usize {
        self.finals.len() + self.edges.len()
    }

    /// Whether each state has at most one edge for each letter.
    pub fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// The edges of a state.
    #[inline]
    pub fn edges(&self, state: u32) -> &[(Letter, u32)] {
        let q = state as usize;
        let from = if q == 0 { 0 } else { self.ends[q - 1] as usize };
        &self.edges[from..self.ends[q] as usize]
    }

    /// Whether the rule may be complete at a state.
    #[inline]
    pub fn is_final(&self, state: u32) -> bool {
        self.finals[state as usize]
    }

    /// Each state with its edges.
    pub fn states(&self) -> impl Iterator<Item = (u32, &[(Letter, u32)])> + '_ {
        (0..self.len() as u32).map(|q| (q, self.edges(q)))
    }

    /// The final states.
    pub fn final_states(&self) -> impl Iterator<Item = u32> + '_ {
        self.finals.iter().enumerate().filter(|f| *f.1).map(|f| f.0 as u32)
    }

    /// All edges, state by state.
    pub fn all_edges(&self) -> &[(Letter, u32)] {
        &self.edges
    }

    /// Every call: the state, the callee and the state to return to.
    pub fn calls(&self) -> impl Iterator<Item = (u32, usize, u32)> + '_ {
        self.states().flat_map(|(p, edges)| {
            edges.iter().filter_map(move |&(letter, q)| callee(letter).map(|b| (p, b, q)))
        })
    }

    /// Calls from the start state: callees.
    pub fn left_calls(&self) -> impl Iterator<Item = usize> + '_ {
        let start = if self.is_empty() { &[] } else { self.edges(0) };
        start.iter().filter_map(|&(letter, _)| callee(letter))
    }

    /// Whether the state is final and has no edge: a call that returns to it is a tail call.
    pub fn is_end(&self, state: u32) -> bool {
        self.is_final(state) && self.edges(state).is_empty()
    }

    /// Gives edges other letters.
    pub fn relabel(&mut self, letter_of: impl Fn(Letter) -> Letter) {
        for edge in &mut self.edges {
            edge.0 = letter_of(edge.0);
        }
        self.tidy();
    }

    /// Sorts edges, drops doubles and settles whether the automaton is deterministic.
    pub fn tidy(&mut self) {
        let mut deterministic = true;
        let (mut from, mut write) = (0, 0);
        for end in &mut self.ends {
            let to = *end as usize;
            self.edges[from..to].sort_unstable();
            let first = write;
            for i in from..to {
                let edge = self.edges[i];
                if write > first && self.edges[write - 1] == edge {
                    continue;
                }
                deterministic &= write == first || self.edges[write - 1].0 != edge.0;
                self.edges[write] = edge;
                write += 1;
            }
            from = to;
            *end = write as u32;
        }
        self.edges.truncate(write);
        self.deterministic = deterministic;
    }

    /// Drops the states from which no final state can be reached, whatever the calls do.
    /// The start stays, without edges where nothing is left.
    pub fn trim(&mut self) {
        let alive = self.alive();
        if alive.iter().all(|&a| a) {
            return;
        }
        let (mut from, mut write) = (0, 0);
        for end in &mut self.ends {
            for i in from..*end as usize {
                let (letter, q) = self.edges[i];
                if is_marker(letter) || alive[q as usize] {
                    self.edges[write] = (letter, q);
                    write += 1;
                }
            }
            from = *end as usize;
            *end = write as u32;
        }
        self.edges.truncate(write);
        self.renumber();
    }

    /// The states from which a final state can be reached without a marker.
    fn alive(&self) -> Vec<bool> {
        let n = self.len();
        let mut starts = vec![0u32; n + 1];
        let unmarked = |e: &&(Letter, u32)| !is_marker(e.0);
        for &(_, q) in self.edges.iter().filter(unmarked) {
            starts[q as usize + 1] += 1;
        }
        for q in 0..n {
            starts[q + 1] += starts[q];
        }
        let mut fill = starts.clone();
        let mut incoming = vec![0u32; starts[n] as usize];
        for (p, edges) in self.states() {
            for &(_, q) in edges.iter().filter(unmarked) {
                incoming[fill[q as usize] as usize] = p;
                fill[q as usize] += 1;
            }
        }
        let mut alive = self.finals.clone();
        let mut work: Vec<u32> = self.final_states().collect();
        while let Some(q) = work.pop() {
            for &p in &incoming[starts[q as usize] as usize..starts[q as usize + 1] as usize] {
                if !std::mem::replace(&mut alive[p as usize], true) {
                    work.push(p);
                }
            }
        }
        alive
    }

    /// Renumbers the states breadth-first from the start, edges in order of their letters, and
    /// drops what cannot be reached. Equal deterministic minimal automata become equal values.
    pub fn renumber(&mut self) {
        let mut new_of = vec![u32::MAX; self.len()];
        let mut order = Vec::with_capacity(self.len());
        order.push(0u32);
        new_of[0] = 0;
        let mut next = 0;
        while let Some(&p) = order.get(next) {
            next += 1;
            for &(_, q) in self.edges(p) {
                if new_of[q as usize] == u32::MAX {
                    new_of[q as usize] = order.len() as u32;
                    order.push(q);
                }
            }
        }
        let mut out = Self::with_capacity(order.len(), self.edges.len());
        for &p in &order {
            let from = out.edges.len();
            out.edges.extend(self.edges(p).iter().map(|&(l, q)| (l, new_of[q as usize])));
            out.edges[from..].sort_unstable();
            out.close_state(self.is_final(p));
        }
        out.deterministic = self.deterministic;
        *self = out;
    }
}
