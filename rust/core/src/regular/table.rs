//! Automata that are being made, and their canonical form.

use super::alphabet::{REST, ScalarAlphabet};
use super::dfa::{Dfa, DfaRows};
use super::{Bounds, CharSet, minimize};
use crate::error::Result;

/// What stands for a state from which no text is accepted.
pub(super) const DEAD: u32 = u32::MAX;

/// A deterministic automaton whose states are added one after the other.
///
/// State 0 is the start. A row says where the rest leads, and which other classes lead elsewhere.
#[derive(Debug)]
pub(super) struct DfaTable {
    alphabet: ScalarAlphabet,
    finals: Vec<bool>,
    defaults: Vec<u32>,
    starts: Vec<u32>,
    edges: Vec<(u32, u32)>,
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

    /// The minimal automaton of the language. The start reaches every state.
    ///
    /// # Errors
    /// What ends the work.
    pub(super) fn minimal(self, bounds: &Bounds<'_>) -> Result<Dfa> {
        bounds.budget.spend(4 * (self.len() + self.edges.len()))?;
        let blocks = minimize::equivalent(&self, bounds)?;
        let dead = blocks.of[self.len()];
        if blocks.of[0] == dead {
            return Ok(Dfa::nothing());
        }
        if blocks.len == self.len() + 1 {
            return Ok(self.canonical());
        }
        // One state for each block, that of the start first.
        let mut number = vec![DEAD; blocks.len];
        let mut members = Vec::with_capacity(blocks.len);
        for (q, &block) in blocks.of[..self.len()].iter().enumerate() {
            if block != dead && number[block as usize] == DEAD {
                number[block as usize] = members.len() as u32;
                members.push(q as u32);
            }
        }
        let new_of = |q: u32| match q {
            DEAD => DEAD,
            q => number[blocks.of[q as usize] as usize],
        };
        let mut out = Self::new(self.alphabet.clone());
        for q in members {
            let edges = self.row(q).iter().map(|&(class, to)| (class, new_of(to)));
            out.push_row(self.is_final(q), new_of(self.default(q)), edges);
        }
        Ok(out.canonical())
    }

    /// The canonical form of a minimal table. States that nothing reaches may be in it as long as
    /// they tell no classes apart.
    pub(super) fn canonical(self) -> Dfa {
        let (alphabet, new_of) = self.alphabet.merged(&self.columns());
        // One class of the table for each that is left.
        let mut chosen = vec![DEAD; alphabet.len() as usize];
        for (class, &new) in new_of.iter().enumerate() {
            chosen[new as usize] = chosen[new as usize].min(class as u32);
        }
        chosen[REST as usize] = DEAD;
        let mut number = vec![DEAD; self.len()];
        let mut order = Vec::with_capacity(self.len());
        let mut visit = |q: u32, order: &mut Vec<u32>| {
            if q == DEAD {
                return DEAD;
            }
            let number = &mut number[q as usize];
            if *number == DEAD {
                *number = order.len() as u32;
                order.push(q);
            }
            *number
        };
        visit(0, &mut order);
        let mut finals = Vec::with_capacity(self.len());
        let mut defaults = Vec::with_capacity(self.len());
        let mut starts = Vec::with_capacity(self.len() + 1);
        let mut edges: Vec<(u32, u32)> = Vec::with_capacity(self.edges.len());
        starts.push(0);
        let mut next = 0;
        while let Some(&q) = order.get(next) {
            next += 1;
            finals.push(self.is_final(q));
            defaults.push(visit(self.default(q), &mut order));
            let start = edges.len();
            let row = self.row(q).iter().filter_map(|&(class, to)| {
                let new = new_of[class as usize];
                (chosen[new as usize] == class).then_some((new, to))
            });
            edges.extend(row);
            edges[start..].sort_unstable();
            for edge in &mut edges[start..] {
                edge.1 = visit(edge.1, &mut order);
            }
            starts.push(edges.len() as u32);
        }
        let rows = DfaRows {
            finals: finals.into(),
            defaults: defaults.into(),
            starts: starts.into(),
            edges: edges.into(),
        };
        Dfa::from_canonical(alphabet, rows)
    }

    /// Which classes lead to the same state everywhere: equal numbers.
    fn columns(&self) -> Vec<u32> {
        let mut column = vec![0u32; self.alphabet.len() as usize];
        let mut count = 1;
        let mut named = Vec::new();
        for q in 0..self.len() as u32 {
            // What leads to the same state, and was alike before, stays alike.
            named.clear();
            named
                .extend(self.row(q).iter().map(|&(class, to)| (column[class as usize], to, class)));
            named.sort_unstable();
            for run in named.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
                run.iter().for_each(|&(_, _, class)| column[class as usize] = count);
                count += 1;
            }
        }
        column
    }
}
