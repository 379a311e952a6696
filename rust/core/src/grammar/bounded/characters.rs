//! An automaton over bytes as one whose edges read a character or a byte each.

use super::continues;
use crate::automata::Automaton;
use crate::automata::lengths::{NEVER, distances, sources};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use rustc_hash::FxHashMap;

/// What a pass reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Pass {
    Character,
    Byte,
}

/// The characters that lead from one state to another: an automaton that begins in state 0.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct PassKind {
    pub(super) states: u32,
    pub(super) end: u32,
    /// From, the first and the last byte, to.
    pub(super) bytes: Vec<(u32, u8, u8, u32)>,
}

/// Passes between states. State 0 is the start, no end, and no edge leads to it; each other state lies on a
/// way from it to an end.
#[derive(Default)]
pub(super) struct PassGraph {
    pub(super) finals: Vec<bool>,
    /// From, the kind of pass, to.
    pub(super) edges: Vec<(u32, u32, u32)>,
    pub(super) kinds: Vec<PassKind>,
    /// The least number of passes to an end; `None` where there is no way to any.
    pub(super) shortest: Option<u32>,
}

impl PassGraph {
    pub(super) fn of(automaton: &Automaton, pass: Pass, work: &Budget) -> Result<Self> {
        let mut automaton = automaton.clone();
        automaton.trim_within(&Ticks::new(work))?;
        let mut out = Self { finals: vec![false], ..Self::default() };
        let mut known: FxHashMap<PassKind, u32> = FxHashMap::default();
        // The start, whose first byte begins a character whatever it is, and states of the automaton.
        let mut numbers: FxHashMap<u32, u32> = FxHashMap::default();
        let mut todo = vec![(0, 0)];
        while let Some((number, state)) = todo.pop() {
            let begins = |byte: u8| number == 0 || !continues(byte);
            let found = match pass {
                Pass::Character => kinds(&automaton, state, begins, work)?,
                Pass::Byte => bytes(&automaton, state, work)?,
            };
            for (target, kind) in found {
                let fresh = out.finals.len() as u32;
                let to = *numbers.entry(target).or_insert(fresh);
                if to == fresh {
                    out.finals.push(automaton.is_final(target));
                    todo.push((to, target));
                }
                let fresh = known.len() as u32;
                let kind = *known.entry(kind).or_insert(fresh);
                out.edges.push((number, kind, to));
            }
        }
        let mut kinds: Vec<(PassKind, u32)> = known.into_iter().collect();
        kinds.sort_unstable_by_key(|kind| kind.1);
        out.kinds = kinds.into_iter().map(|kind| kind.0).collect();
        out.trim(work)?;
        Ok(out)
    }

    /// Whether the passes are of one kind, of which any number but none makes a text.
    pub(super) fn is_repetition(&self) -> bool {
        self.finals == [false, true] && self.edges == [(0, 0, 1), (1, 0, 1)]
    }

    /// Drops the states from which no end can be reached, and finds the shortest way to one.
    fn trim(&mut self, work: &Budget) -> Result<()> {
        work.spend(self.finals.len() + self.edges.len())?;
        let edges = self.edges.iter().map(|&(from, _, to)| (from, to));
        let passes = distances(&sources(self.finals.len(), edges), &self.finals, work)?;
        let stays = |state: u32| passes[state as usize] != NEVER;
        self.shortest = stays(0).then_some(passes[0]);
        let mut numbers = vec![0; passes.len()];
        let mut kept = vec![false];
        for state in (1..passes.len()).filter(|&state| stays(state as u32)) {
            numbers[state] = kept.len() as u32;
            kept.push(self.finals[state]);
        }
        self.edges.retain(|edge| stays(edge.0) && stays(edge.2));
        for (from, _, to) in &mut self.edges {
            (*from, *to) = (numbers[*from as usize], numbers[*to as usize]);
        }
        self.finals = kept;
        self.edges.sort_unstable();
        Ok(())
    }
}

/// For each state in which a character from `state` may end, those characters.
fn kinds(
    automaton: &Automaton,
    state: u32,
    begins: impl Fn(u8) -> bool,
    work: &Budget,
) -> Result<Vec<(u32, PassKind)>> {
    // The states within a character, in the order in which they are found, and the edges between them.
    let mut within: Vec<u32> = Vec::new();
    let mut places: FxHashMap<u32, u32> = FxHashMap::default();
    let mut edges: Vec<(u32, u8, u32)> = Vec::new();
    let mut place_of = |target: u32, within: &mut Vec<u32>| {
        *places.entry(target).or_insert_with(|| {
            within.push(target);
            within.len() as u32
        })
    };
    for (letter, target) in automaton.edges_in_full(state) {
        work.spend(1)?;
        if begins(letter as u8) {
            edges.push((0, letter as u8, place_of(target, &mut within)));
        }
    }
    let mut next = 0;
    while let Some(&inner) = within.get(next) {
        next += 1;
        for (letter, target) in automaton.edges_in_full(inner) {
            work.spend(1)?;
            if continues(letter as u8) {
                edges.push((next as u32, letter as u8, place_of(target, &mut within)));
            }
        }
    }
    let mut found = Vec::new();
    for (place, &end) in within.iter().enumerate() {
        let goes_on = |(letter, _)| !continues(letter as u8);
        if automaton.is_final(end) || automaton.edges_in_full(end).any(goes_on) {
            work.spend(edges.len())?;
            found.push((end, kind(within.len() + 1, place as u32 + 1, &edges)));
        }
    }
    Ok(found)
}

/// For each state to which an edge leads from `state`, the bytes of such edges.
fn bytes(automaton: &Automaton, state: u32, work: &Budget) -> Result<Vec<(u32, PassKind)>> {
    let mut targets: FxHashMap<u32, Vec<(u32, u8, u32)>> = FxHashMap::default();
    let mut order = Vec::new();
    for (letter, target) in automaton.edges_in_full(state) {
        work.spend(1)?;
        let edges = targets.entry(target).or_default();
        if edges.is_empty() {
            order.push(target);
        }
        edges.push((0, letter as u8, 1));
    }
    Ok(order.into_iter().map(|target| (target, kind(2, 1, &targets[&target]))).collect())
}

/// Of some edges those on ways from state 0 to `end`, with states numbered as a walk meets them.
fn kind(states: usize, end: u32, edges: &[(u32, u8, u32)]) -> PassKind {
    let mut reaches = vec![false; states];
    reaches[end as usize] = true;
    let mut todo = vec![end];
    let mut sources: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    edges.iter().for_each(|&(from, _, to)| sources.entry(to).or_default().push(from));
    while let Some(state) = todo.pop() {
        for &from in sources.get(&state).into_iter().flatten() {
            if !std::mem::replace(&mut reaches[from as usize], true) {
                todo.push(from);
            }
        }
    }
    // Edges stand by the states that they leave, in the order of a walk from the start.
    let mut numbers: FxHashMap<u32, u32> = [(0, 0)].into_iter().collect();
    let mut bytes: Vec<(u32, u8, u8, u32)> = Vec::new();
    for &(from, byte, to) in edges.iter().filter(|edge| reaches[edge.2 as usize]) {
        let fresh = numbers.len() as u32;
        let to = *numbers.entry(to).or_insert(fresh);
        let from = numbers[&from];
        match bytes.last_mut() {
            Some(last) if (last.0, last.3) == (from, to) && last.2.checked_add(1) == Some(byte) => {
                last.2 = byte;
            }
            _ => bytes.push((from, byte, byte, to)),
        }
    }
    PassKind { states: numbers.len() as u32, end: numbers[&end], bytes }
}
