//! Automata without epsilon edges.

use super::fallback::with_fallback;
use super::{FIRST_CALL, Letter, callee, is_marker};
use crate::budget::Ticks;
use crate::error::Error;
use std::convert::Infallible;
use std::hash::{Hash, Hasher};

/// The language of one rule without the empty string. State 0 is the start; it is not final.
///
/// All edges stand in one table, state by state: a list for each state would take an allocation
/// for each, which was half of the time of a network.
///
/// A state may *fall back*: it reads a byte class of which it lists no edge as one state of the automaton
/// does, the start or another. Only automata that stay as they stand have such states.
///
/// Invariant: every state can be reached from the start; the edges of a state are sorted and
/// distinct. A state that falls back lists a byte edge; the start does not fall back, nor does the
/// state on which others do. A state that falls back on the start is final.
#[derive(Clone, Debug, Default)]
pub struct Automaton {
    edges: Vec<(Letter, u32)>,
    /// Where the edges of each state end.
    ends: Vec<u32>,
    finals: Vec<bool>,
    /// Whether each state falls back, up to the last that does.
    falls_back: Vec<bool>,
    /// On which state.
    fallback: u32,
    deterministic: bool,
    /// Known to be minimal; what is minimal need not be known to be.
    minimal: bool,
    /// Likewise that every state leads to a final one without a marker.
    alive: bool,
}

impl PartialEq for Automaton {
    /// What is known of an automaton is no part of it.
    fn eq(&self, other: &Self) -> bool {
        self.deterministic == other.deterministic
            && self.finals == other.finals
            && (&self.falls_back, self.fallback) == (&other.falls_back, other.fallback)
            && self.ends == other.ends
            && self.edges == other.edges
    }
}

impl Eq for Automaton {}

impl Hash for Automaton {
    fn hash<H: Hasher>(&self, state: &mut H) {
        for &(letter, target) in &self.edges {
            state.write_u64(u64::from(letter) << 32 | u64::from(target));
        }
        for (&end, &is_final) in self.ends.iter().zip(&self.finals) {
            state.write_u64(u64::from(end) << 1 | u64::from(is_final));
        }
        if self.has_fallbacks() {
            (&self.falls_back, self.fallback).hash(state);
        }
    }
}

impl Automaton {
    /// The hash of the automaton, which looks at the interrupt between pieces.
    ///
    /// # Errors
    /// Those of [`Ticks::step`].
    pub(crate) fn hash_within(&self, ticks: &Ticks) -> Result<u64, Error> {
        const PIECE: usize = 1 << 14;
        let mut hasher = rustc_hash::FxHasher::default();
        for edges in self.edges.chunks(PIECE) {
            ticks.steps(edges.len())?;
            edges.hash(&mut hasher);
        }
        for states in self.ends.chunks(PIECE).zip(self.finals.chunks(PIECE)) {
            ticks.steps(states.0.len())?;
            states.hash(&mut hasher);
        }
        if self.has_fallbacks() {
            (&self.falls_back, self.fallback).hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    /// An automaton without states, to be filled, with room for some.
    pub fn with_capacity(states: usize, edges: usize) -> Self {
        Self {
            edges: Vec::with_capacity(edges),
            ends: Vec::with_capacity(states),
            finals: Vec::with_capacity(states),
            falls_back: Vec::new(),
            fallback: 0,
            deterministic: true,
            minimal: false,
            alive: false,
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

    /// Takes note that the state that was ended last falls back.
    pub fn fall_back(&mut self) {
        let state = self.finals.len() - 1;
        debug_assert!(state > 0);
        self.falls_back.resize(state, false);
        self.falls_back.push(true);
    }

    /// Takes note on which state others fall back, where that is not the start, and that each state leads
    /// to a final one without a marker.
    pub(crate) fn fall_back_on(&mut self, state: u32) {
        self.fallback = state;
        self.alive = true;
    }

    /// The state on which others fall back.
    pub fn fallback(&self) -> u32 {
        self.fallback
    }

    /// Whether a state reads as another does what it lists no edge of.
    #[inline]
    pub fn falls_back(&self, state: u32) -> bool {
        self.falls_back.get(state as usize) == Some(&true)
    }

    /// Whether any state falls back.
    pub fn has_fallbacks(&self) -> bool {
        !self.falls_back.is_empty()
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Whether there is no state at all (a rule that was removed).
    pub fn is_empty(&self) -> bool {
        self.finals.is_empty()
    }

    /// The number of edges that are listed.
    pub fn num_edges(&self) -> usize {
        self.edges.len()
    }

    /// States and edges that are listed: what a pass over the automaton costs.
    pub fn size(&self) -> usize {
        self.finals.len() + self.edges.len()
    }

    /// Whether each state has at most one edge for each letter.
    pub fn is_deterministic(&self) -> bool {
        self.deterministic
    }

    /// Whether the automaton is known to be deterministic and minimal: reducing it would only
    /// number its states.
    pub(crate) fn is_minimal(&self) -> bool {
        self.minimal
    }

    /// Takes note that the automaton, which is deterministic, is minimal, and whether every state
    /// leads to a final one without a marker.
    pub(super) fn set_minimal(&mut self, alive: bool) {
        self.minimal = self.deterministic;
        self.alive = alive;
    }

    /// Whether every state is known to lead to a final one without a marker.
    pub(super) fn is_alive(&self) -> bool {
        self.alive
    }

    /// Takes note that every state leads to a final one without a marker.
    pub(super) fn set_alive(&mut self) {
        self.alive = true;
    }

    /// Takes note that what is known of another automaton holds of this one.
    pub(super) fn know_of(&mut self, other: &Self) {
        (self.minimal, self.alive) = (other.minimal, other.alive);
    }

    /// The edges that a state lists.
    #[inline]
    pub fn edges(&self, state: u32) -> &[(Letter, u32)] {
        let q = state as usize;
        let from = if q == 0 { 0 } else { self.ends[q - 1] as usize };
        &self.edges[from..self.ends[q] as usize]
    }

    /// All edges of a state, sorted: those that it lists, and those of the state on which it falls
    /// back.
    pub fn edges_in_full(&self, state: u32) -> impl Iterator<Item = (Letter, u32)> + '_ {
        let others = if self.falls_back(state) { self.edges(self.fallback) } else { &[] };
        let bytes = others.partition_point(|edge| edge.0 < FIRST_CALL);
        with_fallback(self.edges(state), &others[..bytes])
    }

    /// Where a state of a deterministic automaton goes over a letter.
    pub fn next(&self, state: u32, letter: Letter) -> Option<u32> {
        let among = |edges: &[(Letter, u32)]| {
            edges.binary_search_by_key(&letter, |edge| edge.0).ok().map(|place| edges[place].1)
        };
        let fallback = || match self.falls_back(state) && letter < FIRST_CALL {
            true => among(self.edges(self.fallback)),
            false => None,
        };
        among(self.edges(state)).or_else(fallback)
    }

    /// The same automaton, in which no state falls back.
    fn in_full(&self) -> Self {
        let mut out = Self::with_capacity(self.len(), self.num_edges());
        for q in 0..self.len() as u32 {
            out.edges.extend(self.edges_in_full(q));
            out.close_state(self.is_final(q));
        }
        out.deterministic = self.deterministic;
        out.know_of(self);
        out
    }

    /// Whether the rule may be complete at a state.
    #[inline]
    pub fn is_final(&self, state: u32) -> bool {
        self.finals[state as usize]
    }

    /// Each state with the edges that it lists.
    pub fn states(&self) -> impl Iterator<Item = (u32, &[(Letter, u32)])> + '_ {
        (0..self.len() as u32).map(|q| (q, self.edges(q)))
    }

    /// The final states.
    pub fn final_states(&self) -> impl Iterator<Item = u32> + '_ {
        self.finals.iter().enumerate().filter(|f| *f.1).map(|f| f.0 as u32)
    }

    /// All edges that are listed, state by state.
    pub fn all_edges(&self) -> &[(Letter, u32)] {
        &self.edges
    }

    /// Every call: the state, the callee and the state to return to.
    pub fn calls(&self) -> impl Iterator<Item = (u32, usize, u32)> + '_ {
        self.states().flat_map(|(p, edges)| {
            edges.iter().filter_map(move |&(letter, q)| callee(letter).map(|b| (p, b, q)))
        })
    }

    /// The callee and the state to return to, for every call.
    pub fn sites(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        self.edges.iter().filter_map(|&(letter, q)| callee(letter).map(|b| (b, q)))
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

    /// Gives calls other letters. Where different letters stay different, a minimal automaton stays
    /// minimal.
    pub fn relabel(&mut self, letter_of: impl Fn(Letter) -> Letter) {
        let mut letters: Vec<(Letter, Letter)> = Vec::new();
        for edge in self.edges.iter_mut().filter(|edge| edge.0 >= FIRST_CALL) {
            let new = letter_of(edge.0);
            letters.push((new, edge.0));
            edge.0 = new;
        }
        letters.sort_unstable();
        letters.dedup();
        self.minimal &= letters.is_sorted_by(|a, b| a.0 < b.0);
        self.tidy();
    }

    /// Sorts edges, drops doubles and settles whether the automaton is deterministic.
    pub fn tidy(&mut self) {
        let Ok(()) = self.tidy_by(&mut unheard);
    }

    /// [`Self::tidy`] for an automaton that may be large: it looks at the interrupt.
    pub(crate) fn tidy_within(&mut self, ticks: &Ticks) -> Result<(), Error> {
        self.tidy_by(&mut |steps| ticks.steps(steps))
    }

    fn tidy_by<E>(&mut self, look: &mut impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        let mut deterministic = true;
        let (mut from, mut write) = (0, 0);
        for end in &mut self.ends {
            let to = *end as usize;
            look(to - from)?;
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
        Ok(())
    }

    /// Drops the states from which no final state can be reached, whatever the calls do.
    /// The start stays, without edges where nothing is left.
    pub fn trim(&mut self) {
        let Ok(()) = self.trim_by(&mut unheard);
    }

    /// [`Self::trim`] for an automaton that may be large: it looks at the interrupt.
    pub(crate) fn trim_within(&mut self, ticks: &Ticks) -> Result<(), Error> {
        self.trim_by(&mut |steps| ticks.steps(steps))
    }

    fn trim_by<E>(&mut self, look: &mut impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        if self.alive {
            return Ok(());
        }
        if self.fallback != 0 && self.has_fallbacks() {
            *self = self.in_full();
        }
        let alive = self.alive(look)?;
        self.alive = true;
        if alive.iter().all(|&a| a) {
            return Ok(());
        }
        if self.has_fallbacks() {
            // What is dropped here would be read as the start reads it.
            *self = self.in_full();
        }
        let (mut from, mut write) = (0, 0);
        for end in &mut self.ends {
            look(*end as usize - from)?;
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
        // States may be equal now that differed in what led nowhere. The start may be dead.
        self.minimal = false;
        self.alive = alive[0];
        self.renumber_by(look)
    }

    /// The states from which a final state can be reached without a marker: those that fall back are
    /// final themselves.
    fn alive<E>(&self, look: &mut impl FnMut(usize) -> Result<(), E>) -> Result<Vec<bool>, E> {
        let n = self.len();
        let mut starts = vec![0u32; n + 1];
        let unmarked = |e: &&(Letter, u32)| !is_marker(e.0);
        for (_, edges) in self.states() {
            look(edges.len())?;
            edges.iter().filter(unmarked).for_each(|&(_, q)| starts[q as usize + 1] += 1);
        }
        for q in 0..n {
            starts[q + 1] += starts[q];
        }
        let mut fill = starts.clone();
        let mut incoming = vec![0u32; starts[n] as usize];
        for (p, edges) in self.states() {
            look(edges.len())?;
            for &(_, q) in edges.iter().filter(unmarked) {
                incoming[fill[q as usize] as usize] = p;
                fill[q as usize] += 1;
            }
        }
        let mut alive = self.finals.clone();
        let mut work: Vec<u32> = self.final_states().collect();
        while let Some(q) = work.pop() {
            let into = &incoming[starts[q as usize] as usize..starts[q as usize + 1] as usize];
            look(into.len())?;
            for &p in into {
                if !std::mem::replace(&mut alive[p as usize], true) {
                    work.push(p);
                }
            }
        }
        Ok(alive)
    }

    /// Renumbers the states breadth-first from the start, edges in order of their letters, and
    /// drops what cannot be reached. Equal deterministic minimal automata become equal values.
    /// The numbers are those of the automaton in full: where a state falls back on one that came before,
    /// as the start does, what it reads by that has its numbers.
    pub fn renumber(&mut self) {
        let Ok(()) = self.renumber_by(&mut unheard);
    }

    /// [`Self::renumber`] for an automaton that may be large: it looks at the interrupt.
    pub(crate) fn renumber_within(&mut self, ticks: &Ticks) -> Result<(), Error> {
        self.renumber_by(&mut |steps| ticks.steps(steps))
    }

    fn renumber_by<E>(&mut self, look: &mut impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        let mut new_of = vec![u32::MAX; self.len()];
        let mut order = Vec::with_capacity(self.len());
        order.push(0u32);
        new_of[0] = 0;
        let mut next = 0;
        let mut fallback_is_done = false;
        while let Some(&p) = order.get(next) {
            next += 1;
            let mut meet = |q: u32| {
                if new_of[q as usize] == u32::MAX {
                    new_of[q as usize] = order.len() as u32;
                    order.push(q);
                }
            };
            if self.falls_back(p) && !fallback_is_done {
                look(self.edges(self.fallback).len())?;
                self.edges_in_full(p).for_each(|edge| meet(edge.1));
            } else {
                look(self.edges(p).len())?;
                self.edges(p).iter().for_each(|edge| meet(edge.1));
            }
            fallback_is_done |= p == self.fallback;
        }
        let is_numbered = order.len() == self.len() && order.is_sorted();
        if is_numbered && self.states().all(|(_, edges)| edges.is_sorted()) {
            return Ok(());
        }
        let mut out = Self::with_capacity(order.len(), self.edges.len());
        for &p in &order {
            look(self.edges(p).len())?;
            let from = out.edges.len();
            out.edges.extend(self.edges(p).iter().map(|&(l, q)| (l, new_of[q as usize])));
            out.edges[from..].sort_unstable();
            out.close_state(self.is_final(p));
            if self.falls_back(p) {
                out.fall_back();
            }
        }
        out.deterministic = self.deterministic;
        out.know_of(self);
        if self.has_fallbacks() {
            out.fallback = new_of[self.fallback as usize];
        }
        *self = out;
        Ok(())
    }
}

/// For passes that nobody interrupts.
fn unheard(_: usize) -> Result<(), Infallible> {
    Ok(())
}
