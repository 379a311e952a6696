//! Texts as a tree, with calls and ends behind them.

use crate::automata::{Automaton, Letter};
use crate::budget::Ticks;
use crate::error::Result;

/// No edge.
const NONE: u32 = u32::MAX;

/// A tree under construction, which begins at state 0.
pub(super) struct PrefixTree {
    finals: Vec<bool>,
    /// The last edge of each state over a byte class, and for each edge the one before it.
    last: Vec<u32>,
    edges: Vec<(Letter, u32, u32)>,
    /// Calls apart, of which a state may have any number: from, the letter, to.
    calls: Vec<(u32, Letter, u32)>,
}

impl PrefixTree {
    /// The start alone.
    pub(super) fn new() -> Self {
        let mut out =
            Self { finals: Vec::new(), last: Vec::new(), edges: Vec::new(), calls: Vec::new() };
        out.state();
        out
    }

    /// A new state.
    pub(super) fn state(&mut self) -> u32 {
        self.finals.push(false);
        self.last.push(NONE);
        self.last.len() as u32 - 1
    }

    /// The number of states.
    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    /// Takes note that a state is final.
    pub(super) fn set_final(&mut self, state: u32) {
        self.finals[state as usize] = true;
    }

    /// Adds an edge over a byte class of which the state has none.
    pub(super) fn edge(&mut self, from: u32, class: u8, to: u32) {
        let before = std::mem::replace(&mut self.last[from as usize], self.edges.len() as u32);
        self.edges.push((Letter::from(class), to, before));
    }

    /// Adds a call.
    pub(super) fn call(&mut self, from: u32, letter: Letter, to: u32) {
        self.calls.push((from, letter, to));
    }

    /// Where a state leads over classes, which is new where it did not.
    pub(super) fn read(&mut self, from: u32, classes: impl Iterator<Item = u8>) -> u32 {
        let mut at = from;
        for class in classes {
            let known = self.edges(at).find(|edge| edge.0 == Letter::from(class));
            at = match known {
                Some((_, to)) => to,
                None => {
                    let to = self.state();
                    self.edge(at, class, to);
                    to
                }
            };
        }
        at
    }

    fn edges(&self, state: u32) -> impl Iterator<Item = (Letter, u32)> {
        let mut at = self.last[state as usize];
        std::iter::from_fn(move || {
            let &(letter, to, before) = self.edges.get(at as usize)?;
            at = before;
            Some((letter, to))
        })
    }

    /// The automaton, in its order.
    ///
    /// # Errors
    /// Those of [`Ticks::step`].
    pub(super) fn automaton(mut self, ticks: &Ticks) -> Result<Automaton> {
        let edges = self.edges.len() + self.calls.len();
        let mut out = Automaton::with_capacity(self.finals.len(), edges);
        self.calls.sort_unstable();
        let mut calls = self.calls.iter().peekable();
        for (state, &is_final) in (0..).zip(&self.finals) {
            ticks.step()?;
            self.edges(state).for_each(|(letter, to)| out.push_edge(letter, to));
            while let Some(&(_, letter, to)) = calls.next_if(|call| call.0 == state) {
                out.push_edge(letter, to);
            }
            out.close_state(is_final);
        }
        out.tidy_within(ticks)?;
        out.renumber_within(ticks)?;
        Ok(out)
    }
}
