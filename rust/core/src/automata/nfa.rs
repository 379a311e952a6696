//! Automata with epsilon edges: how a right-hand side is first written down.

use super::{Automaton, Letter, minimize};
use rustc_hash::FxHashMap;

/// An automaton with epsilon edges. State 0 is the start.
#[derive(Clone, Debug, Default)]
pub struct Nfa {
    /// Epsilon edges of each state.
    pub epsilon: Vec<Vec<u32>>,
    /// Other edges of each state.
    pub edges: Vec<Vec<(Letter, u32)>>,
    /// Final states.
    pub finals: Vec<bool>,
}

impl Nfa {
    /// A new state.
    pub fn state(&mut self) -> u32 {
        self.epsilon.push(Vec::new());
        self.edges.push(Vec::new());
        self.finals.push(false);
        (self.epsilon.len() - 1) as u32
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.epsilon.len()
    }

    /// Whether there is no state.
    pub fn is_empty(&self) -> bool {
        self.epsilon.is_empty()
    }

    /// An epsilon edge.
    pub fn skip(&mut self, from: u32, to: u32) {
        self.epsilon[from as usize].push(to);
    }

    /// An edge that reads a letter.
    pub fn edge(&mut self, from: u32, letter: Letter, to: u32) {
        self.edges[from as usize].push((letter, to));
    }

    /// Adds the states of an automaton and returns the number of its start here. Its final
    /// states stay final only where `keep_finals`.
    pub fn embed(&mut self, automaton: &Automaton, keep_finals: bool) -> u32 {
        let base = self.len() as u32;
        for (edges, &is_final) in automaton.edges.iter().zip(&automaton.finals) {
            self.epsilon.push(Vec::new());
            self.edges.push(edges.iter().map(|&(letter, q)| (letter, q + base)).collect());
            self.finals.push(is_final && keep_finals);
        }
        base
    }

    /// The language without the empty string, as a minimal deterministic automaton; where the
    /// subset construction would pass `max_states`, as a nondeterministic one without epsilon
    /// edges (everything downstream takes both).
    pub fn reduce(&self, max_states: usize) -> Automaton {
        let closures = Closures::new(self);
        let mut automaton = match self.determinize(&closures, max_states) {
            Some(mut automaton) => {
                minimize::minimize(&mut automaton);
                automaton
            }
            None => self.without_epsilon(&closures),
        };
        automaton.renumber();
        automaton
    }

    /// The subset construction. The start is a state of its own, never a target, so that it can
    /// be non-final while an equal set of states met later is final.
    fn determinize(&self, closures: &Closures, max_states: usize) -> Option<Automaton> {
        let mut out = Automaton { deterministic: true, ..Automaton::default() };
        let mut ids: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut sets: Vec<Box<[u32]>> = vec![closures.of(0).into()];
        out.finals.push(false);
        let mut moves: Vec<(Letter, u32)> = Vec::new();
        let mut target: Vec<u32> = Vec::new();
        let mut next = 0;
        while next < sets.len() {
            moves.clear();
            for &q in &sets[next] {
                moves.extend_from_slice(&self.edges[q as usize]);
            }
            moves.sort_unstable();
            moves.dedup();
            next += 1;
            let mut edges = Vec::new();
            for group in moves.chunk_by(|a, b| a.0 == b.0) {
                target.clear();
                for &(_, q) in group {
                    target.extend_from_slice(closures.of(q));
                }
                if group.len() > 1 {
                    target.sort_unstable();
                    target.dedup();
                }
                let id = match ids.get(target.as_slice()) {
                    Some(&id) => id,
                    None => {
                        let id = sets.len() as u32;
                        if sets.len() >= max_states {
                            return None;
                        }
                        let set: Box<[u32]> = target.as_slice().into();
                        out.finals.push(set.iter().any(|&q| self.finals[q as usize]));
                        ids.insert(set.clone(), id);
                        sets.push(set);
                        id
                    }
                };
                edges.push((group[0].0, id));
            }
            out.edges.push(edges);
        }
        Some(out)
    }

    /// The same language without epsilon edges, states as they are, behind a fresh start.
    fn without_epsilon(&self, closures: &Closures) -> Automaton {
        let mut out = Automaton::default();
        let mut push = |q: u32, start: bool| {
            let closure = closures.of(q);
            out.edges.push(
                closure
                    .iter()
                    .flat_map(|&p| self.edges[p as usize].iter().map(|&(letter, t)| (letter, t + 1)))
                    .collect(),
            );
            out.finals.push(!start && closure.iter().any(|&p| self.finals[p as usize]));
        };
        push(0, true);
        for q in 0..self.len() as u32 {
            push(q, false);
        }
        out.tidy();
        out
    }
}

/// For each state the states that epsilon edges lead to and that matter: those that have an edge
/// or are final. Sorted.
struct Closures {
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl Closures {
    fn new(nfa: &Nfa) -> Self {
        let mut starts = Vec::with_capacity(nfa.len() + 1);
        let mut members = Vec::new();
        let mut seen = vec![u32::MAX; nfa.len()];
        let mut work = Vec::new();
        // Only the start and the targets of edges are ever asked for.
        let mut wanted = vec![false; nfa.len()];
        wanted[0] = true;
        for &(_, q) in nfa.edges.iter().flatten() {
            wanted[q as usize] = true;
        }
        for q in 0..nfa.len() as u32 {
            starts.push(members.len() as u32);
            let from = members.len();
            if wanted[q as usize] {
                seen[q as usize] = q;
                work.push(q);
            }
            while let Some(p) = work.pop() {
                if !nfa.edges[p as usize].is_empty() || nfa.finals[p as usize] {
                    members.push(p);
                }
                for &t in &nfa.epsilon[p as usize] {
                    if std::mem::replace(&mut seen[t as usize], q) != q {
                        work.push(t);
                    }
                }
            }
            members[from..].sort_unstable();
        }
        starts.push(members.len() as u32);
        Self { starts, members }
    }

    fn of(&self, q: u32) -> &[u32] {
        &self.members[self.starts[q as usize] as usize..self.starts[q as usize + 1] as usize]
    }
}
