//! Automata that are being made.

use super::alphabet::{REST, ScalarAlphabet};
use super::{Bounds, CharSet};
use crate::error::Result;

/// What stands for a state from which no text is accepted.
pub(super) const DEAD: u32 = u32::MAX;

/// A deterministic automaton whose states are added one after the other.
///
/// State 0 is the start. A row says where the rest leads, and which other classes lead elsewhere.
#[derive(Debug)]
pub(super) struct DfaTable {
    pub(super) alphabet: ScalarAlphabet,
    finals: Vec<bool>,
    defaults: Vec<u32>,
    starts: Vec<u32>,
    pub(super) edges: Vec<(u32, u32)>,
}

impl DfaTable {
    /// No state yet.
    pub(super) fn new(alphabet: ScalarAlphabet) -> Self {
        Self { alphabet, finals: vec![], defaults: vec![], starts: vec![0], edges: vec![] }
    }

    /// Adds a state. Each class stands in at most one edge; the rest in none.
    pub(super) fn push_row(
        &mut self,
        is_final: bool,
        default: u32,
        edges: impl IntoIterator<Item = (u32, u32)>,
    ) {
        self.finals.push(is_final);
        self.defaults.push(default);
        self.edges.extend(edges.into_iter().filter(|edge| edge.1 != default));
        self.starts.push(self.edges.len() as u32);
    }

    /// The number of states.
    pub(super) fn len(&self) -> usize {
        self.finals.len()
    }

    /// The number of classes.
    pub(super) fn num_classes(&self) -> usize {
        self.alphabet.len() as usize
    }

    /// The number of edges besides those of the rest.
    pub(super) fn num_edges(&self) -> usize {
        self.edges.len()
    }

    /// Whether a state is final.
    pub(super) fn is_final(&self, state: u32) -> bool {
        self.finals[state as usize]
    }

    /// Where the rest leads.
    pub(super) fn default(&self, state: u32) -> u32 {
        self.defaults[state as usize]
    }

    /// The classes that lead elsewhere than the rest.
    pub(super) fn row(&self, state: u32) -> &[(u32, u32)] {
        let (start, end) = (self.starts[state as usize], self.starts[state as usize + 1]);
        &self.edges[start as usize..end as usize]
    }
    /// A table by symbols instead of classes, of what its start reaches.
    pub(super) fn from_symbols(
        symbols: &[CharSet],
        rows: &[Vec<(u32, u32)>],
        finals: &[bool],
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        assert!(!rows.is_empty() && rows.len() == finals.len(), "each state has one row");
        let (alphabet, classes) =
            ScalarAlphabet::of_sets(symbols.iter(), |n| bounds.budget.spend(n))?;
        bounds.check(rows.len())?;
        let named: usize = classes.iter().map(Vec::len).sum();
        let mut seen = vec![false; alphabet.len() as usize];
        for &class in classes.iter().flatten() {
            assert!(!std::mem::replace(&mut seen[class as usize], true), "symbols are disjoint");
        }
        let rest = classes.iter().position(|classes| classes.first() == Some(&REST));
        // What the start reaches, in the order in which it does.
        let mut number = vec![DEAD; rows.len()];
        let mut order = vec![0u32];
        number[0] = 0;
        let mut table = Self::new(alphabet);
        let mut next = 0;
        let mut is_named = vec![false; symbols.len()];
        while let Some(&q) = order.get(next) {
            next += 1;
            let row = &rows[q as usize];
            bounds.budget.spend(1 + row.len())?;
            for &(symbol, to) in row {
                assert!(
                    !std::mem::replace(&mut is_named[symbol as usize], true),
                    "a row has one edge for a symbol"
                );
                if number[to as usize] == DEAD {
                    number[to as usize] = order.len() as u32;
                    order.push(to);
                }
            }
            let of_rest = row.iter().find(|edge| Some(edge.0 as usize) == rest);
            let default = of_rest.map_or(DEAD, |edge| number[edge.1 as usize]);
            let mut edges = Vec::new();
            for &(symbol, to) in row {
                let classes = classes[symbol as usize].iter().filter(|&&class| class != REST);
                edges.extend(classes.map(|&class| (class, number[to as usize])));
            }
            if default != DEAD {
                bounds.budget.spend(named)?;
                let absent = (0..).zip(&is_named).filter(|(_, is_named)| !**is_named);
                for (symbol, _) in absent {
                    let classes: &Vec<u32> = &classes[symbol as usize];
                    edges.extend(classes.iter().map(|&class| (class, DEAD)));
                }
                // What no symbol holds.
                let unnamed = (0..).zip(&seen).filter(|(_, seen)| !**seen);
                edges.extend(unnamed.map(|(class, _)| (class, DEAD)));
            }
            row.iter().for_each(|edge| is_named[edge.0 as usize] = false);
            table.push_row(finals[q as usize], default, edges);
        }
        Ok(table)
    }
}
