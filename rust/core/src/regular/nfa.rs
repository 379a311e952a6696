//! Nondeterministic automata, as one writes them down.

use super::alphabet::ScalarAlphabet;
use super::determinize::ClassNfa;
use super::dfa::Dfa;
use super::{Bounds, CharSet};
use crate::error::Result;
use rustc_hash::FxHashMap;

/// A nondeterministic automaton over code points, with edges that read nothing, several starts and
/// several final states.
#[derive(Clone, Debug, Default)]
pub struct ScalarNfa {
    is_final: Vec<bool>,
    starts: Vec<u32>,
    universal: Option<u32>,
    /// From, the number of the set, to.
    edges: Vec<(u32, u32, u32)>,
    epsilons: Vec<(u32, u32)>,
    sets: Vec<CharSet>,
    number_of: FxHashMap<CharSet, u32>,
}

impl ScalarNfa {
    /// No state.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a state, neither start nor final, and returns its number.
    pub fn add_state(&mut self) -> u32 {
        self.is_final.push(false);
        self.is_final.len() as u32 - 1
    }

    /// The number of states.
    pub fn num_states(&self) -> usize {
        self.is_final.len()
    }

    /// Makes a state a start.
    pub fn add_start(&mut self, state: u32) {
        self.starts.push(state);
    }

    /// Makes a state final.
    pub fn set_final(&mut self, state: u32) {
        self.is_final[state as usize] = true;
    }

    /// Makes a state final, and one that reads all characters and stays: nothing else matters once it is
    /// reached. There is one such state at most.
    pub(super) fn set_universal(&mut self, state: u32) {
        self.set_final(state);
        self.add_edge(state, &CharSet::scalar_values(), state);
        self.universal = Some(state);
    }

    /// Adds an edge that reads one character of the set. Surrogates in it count for nothing.
    pub fn add_edge(&mut self, from: u32, set: &CharSet, to: u32) {
        let number = match self.number_of.get(set) {
            Some(&number) => number,
            None => {
                let number = self.sets.len() as u32;
                self.number_of.insert(set.clone(), number);
                self.sets.push(set.clone());
                number
            }
        };
        self.edges.push((from, number, to));
    }

    /// Adds an edge that reads nothing.
    pub fn add_epsilon(&mut self, from: u32, to: u32) {
        self.epsilons.push((from, to));
    }

    /// Adds edges that read a text of the automaton: from `from` on to `to`.
    pub fn add_dfa(&mut self, from: u32, dfa: &Dfa, to: u32) {
        let first = self.is_final.len() as u32;
        for state in 0..dfa.len() {
            self.add_state();
            if dfa.is_final(state) {
                self.add_epsilon(first + state, to);
            }
        }
        self.add_epsilon(from, first);
        for state in 0..dfa.len() {
            for (set, target) in dfa.edges(state) {
                self.add_edge(first + state, &set, first + target);
            }
        }
    }

    /// The same automaton with classes in place of sets.
    pub(super) fn over_classes(&self, bounds: &Bounds<'_>) -> Result<ClassNfa> {
        let (alphabet, members) =
            ScalarAlphabet::of_sets(self.sets.iter(), |n| bounds.budget.spend(n))?;
        let mut out = ClassNfa::new(alphabet);
        let mut labels = Vec::with_capacity(members.len());
        for classes in &members {
            labels.push(out.add_label(classes, bounds)?);
        }
        bounds.budget.spend(self.is_final.len() + self.edges.len() + self.epsilons.len())?;
        for &is_final in &self.is_final {
            out.add_state(is_final);
        }
        for &(from, set, to) in &self.edges {
            out.add_edge(from, labels[set as usize], to);
        }
        for &(from, to) in &self.epsilons {
            out.add_epsilon(from, to);
        }
        self.starts.iter().for_each(|&state| out.add_start(state));
        self.universal.into_iter().for_each(|state| out.set_universal(state));
        Ok(out)
    }
}

impl Dfa {
    /// The language of a nondeterministic automaton.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn from_nfa(nfa: &ScalarNfa, bounds: &Bounds<'_>) -> Result<Self> {
        nfa.over_classes(bounds)?.determinize(bounds)?.minimal(bounds)
    }
}
