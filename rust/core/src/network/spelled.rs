//! Spells parts over the byte classes of a network.

use super::part::NetworkPart;
use super::spelling::Spelled;
use super::{ClassSet, HOLE, insert};
use crate::automata::alphabet::Alphabet;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// States with more edges than this are written class by class.
const MANY: usize = 12;
/// No state.
const NONE: u32 = u32::MAX;

/// How the classes of a part are spelled in the network.
struct ClassSpelling {
    /// For each class of the part those of the network.
    classes: Vec<Vec<u8>>,
    /// For each class of the network that of the part.
    here: Vec<Option<u8>>,
}

/// Spells parts over the classes of one network.
pub(super) struct Speller<'a> {
    alphabet: &'a Alphabet,
    ways: FxHashMap<Alphabet, Arc<ClassSpelling>>,
    /// Where each class of a part leads, while a state is written.
    targets: Vec<u32>,
}

impl<'a> Speller<'a> {
    pub(super) fn new(alphabet: &'a Alphabet) -> Self {
        Self { alphabet, ways: FxHashMap::default(), targets: Vec::new() }
    }

    /// A part over the classes of the network. `child` is what one of its children can read first.
    pub(super) fn spelled(
        &mut self,
        part: &NetworkPart,
        child: impl Fn(usize) -> ClassSet,
    ) -> Arc<Spelled> {
        if let Some(kept) = part.kept.get(self.alphabet) {
            return kept;
        }
        let made = Arc::new(self.make(part, child));
        part.kept.put(&made);
        made
    }

    fn make(&mut self, part: &NetworkPart, child: impl Fn(usize) -> ClassSet) -> Spelled {
        let tables = &part.tables;
        let way = self.way(&tables.alphabet);
        let mut edge_starts = Vec::with_capacity(tables.len() + 1);
        edge_starts.push(0);
        let mut edges = Vec::with_capacity(tables.edges.len());
        let mut first = Vec::with_capacity(tables.len());
        for state in 0..tables.len() as u32 {
            first.push(self.edges(tables.listed(state), &way, &mut edges));
            edge_starts.push(edges.len() as u32);
        }
        // Calls are not yet among what is read.
        tables.add_fallbacks(&mut first);
        let mut add_callees = |state: u32| {
            for call in tables.calls(state).iter() {
                tables.each_begun(call.start, |start| {
                    let more = match start {
                        start if start >= HOLE => child((start & !HOLE) as usize),
                        start => first[start as usize],
                    };
                    first[state as usize].iter_mut().zip(more).for_each(|(a, b)| *a |= b);
                });
            }
        };
        for &rule in &part.callees_first {
            add_callees(tables.rule_starts[rule as usize]);
        }
        (0..tables.len() as u32).for_each(add_callees);
        Spelled { alphabet: self.alphabet.clone(), edge_starts, edges, first }
    }

    fn way(&mut self, alphabet: &Alphabet) -> Arc<ClassSpelling> {
        if let Some(way) = self.ways.get(alphabet) {
            return way.clone();
        }
        let mut here = vec![None; self.alphabet.len()];
        for byte in 0..=255 {
            here[self.alphabet.class(byte) as usize] = Some(alphabet.class(byte));
        }
        if let Some(escape) = self.alphabet.escape() {
            here[escape as usize] = alphabet.escape();
        }
        let mut classes = vec![Vec::new(); alphabet.len()];
        for (class, here) in (0..=255u8).zip(&here) {
            if let Some(here) = here {
                classes[*here as usize].push(class);
            }
        }
        let way = Arc::new(ClassSpelling { classes, here });
        self.ways.insert(alphabet.clone(), way.clone());
        way
    }

    /// Writes the byte edges of a state, sorted by class; returns the classes.
    fn edges(
        &mut self,
        edges: &[(u8, u32)],
        way: &ClassSpelling,
        out: &mut Vec<(u8, u32)>,
    ) -> ClassSet {
        let from = out.len();
        let mut first = [0; 4];
        let is_deterministic = edges.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if edges.len() > MANY && is_deterministic {
            self.targets.clear();
            self.targets.resize(way.classes.len(), NONE);
            edges.iter().for_each(|&(class, to)| self.targets[class as usize] = to);
            for (class, here) in (0..=255u8).zip(&way.here) {
                let to = here.map_or(NONE, |here| self.targets[here as usize]);
                if to != NONE {
                    out.push((class, to));
                    insert(&mut first, class);
                }
            }
            return first;
        }
        for &(class, to) in edges {
            for &class in &way.classes[class as usize] {
                out.push((class, to));
                insert(&mut first, class);
            }
        }
        if !out[from..].is_sorted() {
            out[from..].sort_unstable();
        }
        first
    }
}
