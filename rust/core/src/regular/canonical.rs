//! Tables as automata: minimal, with states numbered as they are met and no class too many.

use super::alphabet::REST;
use super::dfa::{Dfa, DfaRows};
use super::table::{DEAD, DfaTable};
use super::{Bounds, minimize};
use crate::error::Result;

impl DfaTable {
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
