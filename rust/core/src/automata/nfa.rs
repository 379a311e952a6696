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
        let mut moves = Moves::default();
        let mut target: Vec<u32> = Vec::new();
        let mut next = 0;
        while next < sets.len() {
            let letters = moves.of(sets[next].iter().map(|&q| self.edges[q as usize].as_slice()));
            next += 1;
            let mut edges = Vec::with_capacity(letters);
            for index in 0..letters {
                let (letter, targets) = moves.get(index);
                target.clear();
                for &q in targets {
                    target.extend_from_slice(closures.of(q));
                }
                if targets.len() > 1 {
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
                edges.push((letter, id));
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
                    .flat_map(|&p| {
                        self.edges[p as usize].iter().map(|&(letter, t)| (letter, t + 1))
                    })
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

/// The edges of a set of states by letter. Sorting them as pairs took a third of the time of a
/// whole network, so each letter has a bucket, and only the letters are sorted.
#[derive(Default)]
struct Moves {
    /// For each letter its bucket, if `stamp` is that of this set.
    bucket_of: FxHashMap<Letter, (u32, u32)>,
    small: Vec<(u32, u32)>,
    stamp: u32,
    buckets: Vec<Vec<u32>>,
    letters: Vec<(Letter, u32)>,
}

impl Moves {
    /// Collects the edges; returns the number of letters.
    fn of<'a>(&mut self, edges: impl Iterator<Item = &'a [(Letter, u32)]>) -> usize {
        self.stamp += 1;
        self.letters.clear();
        self.small.resize(super::FIRST_CALL as usize, (0, 0));
        for &(letter, q) in edges.flatten() {
            let slot = match self.small.get_mut(letter as usize) {
                Some(slot) => slot,
                None => self.bucket_of.entry(letter).or_default(),
            };
            if slot.0 != self.stamp {
                let index = self.letters.len();
                *slot = (self.stamp, index as u32);
                self.letters.push((letter, index as u32));
                match self.buckets.get_mut(index) {
                    Some(bucket) => bucket.clear(),
                    None => self.buckets.push(Vec::new()),
                }
            }
            self.buckets[slot.1 as usize].push(q);
        }
        self.letters.sort_unstable();
        self.letters.len()
    }

    /// The letter at a position, in order of letters, and the targets of its edges.
    fn get(&self, index: usize) -> (Letter, &[u32]) {
        let (letter, bucket) = self.letters[index];
        (letter, &self.buckets[bucket as usize])
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
