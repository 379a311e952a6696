//! States described a few at a time, so that no mask waits for the digests of a whole network.
//!
//! A tour meets the states that one leads to, finds those that lead to each other (Tarjan), callees
//! first, and describes them; it can stop anywhere and go on later. What it does is what
//! [`Naming::describe_from`] does at once.

use super::naming::{DigestSource, MAX_REFINED, Naming, listed_state, named_by};
use rustc_hash::FxHashMap;

/// States met in the time of describing one.
const MET_FOR_ONE: usize = 8;

/// A walk over tables that describes their states.
#[derive(Debug, Default)]
pub(super) struct Tour {
    /// For each state when it was met, from 1 on, and the earliest met one that it is known to lead
    /// back to.
    met: Vec<(u32, u32)>,
    count: u32,
    /// States that were met, and are not known to be a component yet.
    open: Vec<u32>,
    way: Vec<TourFrame>,
    writing: Option<Writing>,
}

/// A state on the way, and the states that it names.
#[derive(Debug)]
struct TourFrame {
    state: u32,
    next: Vec<u32>,
    at: usize,
}

/// Many states that lead to each other, of which some are written down.
#[derive(Debug)]
struct Writing {
    states: Vec<u32>,
    members: FxHashMap<u32, u64>,
    written: usize,
    hasher: blake3::Hasher,
}

impl Tour {
    /// Describes about so many states on the way from where it stands, and from `state` once it has
    /// been everywhere else.
    pub(super) fn go_on(&mut self, naming: &mut Naming<'_>, state: u32, states: usize) {
        let mut left = states.saturating_mul(MET_FOR_ONE);
        while left > 0 {
            if self.writing.is_some() {
                left = left.saturating_sub(self.write(naming, left.div_ceil(MET_FOR_ONE)));
                continue;
            }
            if self.way.is_empty() {
                let Some(from) = listed_state(naming.source().tables, state) else { return };
                if !naming.is_missing(from) {
                    return;
                }
                self.enter(naming.source(), from);
            }
            left = left.saturating_sub(self.step(naming));
        }
    }

    fn enter(&mut self, source: &DigestSource<'_>, state: u32) {
        self.met.resize(source.tables.len(), (0, 0));
        self.count += 1;
        self.met[state as usize] = (self.count, self.count);
        self.open.push(state);
        let mut next = Vec::new();
        named_by(source.tables, state, &mut next);
        self.way.push(TourFrame { state, next, at: 0 });
    }

    /// Goes to one more state, or back; what that took, in states met.
    fn step(&mut self, naming: &mut Naming<'_>) -> usize {
        let Some(frame) = self.way.last_mut() else { return 1 };
        let state = frame.state;
        while let Some(&next) = frame.next.get(frame.at) {
            frame.at += 1;
            let Some(next) = listed_state(naming.source().tables, next) else { continue };
            if !naming.is_missing(next) {
                continue;
            }
            let (number, _) = self.met[next as usize];
            if number == 0 {
                self.enter(naming.source(), next);
                return 1;
            }
            // It was met and has no digest: it is open.
            let back = &mut self.met[state as usize].1;
            *back = number.min(*back);
        }
        self.way.pop();
        let (number, back) = self.met[state as usize];
        if let Some(parent) = self.way.last() {
            let known = &mut self.met[parent.state as usize].1;
            *known = back.min(*known);
        }
        if back < number {
            return 1;
        }
        let from = self.open.iter().rposition(|&open| open == state).unwrap_or_default();
        let mut states = self.open.split_off(from);
        // Whoever was in a hurry has described all of them, or none.
        if !naming.is_missing(state) {
            return 1;
        }
        states.sort_unstable();
        if states.len() <= MAX_REFINED {
            naming.describe_together(&states);
            return states.len() * MET_FOR_ONE;
        }
        let members = states.iter().copied().zip(0..).collect();
        let hasher = blake3::Hasher::new();
        self.writing = Some(Writing { states, members, written: 0, hasher });
        1
    }

    /// Writes some states down; what that took.
    fn write(&mut self, naming: &mut Naming<'_>, states: usize) -> usize {
        let Some(mut writing) = self.writing.take() else { return 1 };
        let end = (writing.written + states).min(writing.states.len());
        naming.members = std::mem::take(&mut writing.members);
        let mut text = Vec::new();
        for &state in &writing.states[writing.written..end] {
            naming.describe(state).write(&mut text);
        }
        writing.hasher.update(&text);
        if end == writing.states.len() {
            naming.give_digests(writing.hasher.finalize().into());
        } else {
            let members = std::mem::take(&mut naming.members);
            self.writing = Some(Writing { members, written: end, ..writing });
        }
        states * MET_FOR_ONE
    }
}
