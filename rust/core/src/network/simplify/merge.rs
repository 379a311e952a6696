//! Equal rules become one.

use super::{GLANCE, Rules, SLOW};
use crate::automata::{Automaton, Nfa, call, callee};
use crate::budget::Ticks;
use crate::error::Result;
use hashbrown::HashTable;

/// An automaton of more states and edges is a reason to look at the interrupt.
const LARGE: usize = 1 << 14;
/// Rounds of merging equal rules; each makes callers equal whose callees were.
const MAX_ROUNDS: usize = 16;

impl Rules<'_> {
    pub(super) fn merge_equal(&mut self) -> Result<()> {
        let ticks = Ticks::new(self.work);
        for _ in 0..MAX_ROUNDS {
            let mut seen: HashTable<usize> = HashTable::with_capacity(self.automata.len());
            let mut same: Vec<usize> = (0..self.automata.len()).collect();
            let mut any = false;
            for (i, automaton) in self.automata.iter().enumerate() {
                self.work.spend(1 + automaton.size() / GLANCE)?;
                ticks.steps(SLOW)?;
                // The start may have the empty string on top of its automaton: nobody's equal.
                let alone = i == self.start || self.is_written.contains(&i);
                if automaton.is_empty() || alone || self.keep.contains(&i) {
                    continue;
                }
                let hash = match self.hashes[i] {
                    Some(known) => known,
                    None => *self.hashes[i].insert(automaton.hash_within(&ticks)?),
                };
                let is_same = |&other: &usize| {
                    self.hashes[other] == Some(hash) && self.automata[other] == *automaton
                };
                match seen.find(hash, is_same) {
                    Some(&first) => (same[i], any) = (first, true),
                    None => {
                        seen.insert_unique(hash, i, |&i| self.hashes[i].unwrap_or_default());
                    }
                }
            }
            if !any {
                return Ok(());
            }
            let mut changed = Vec::new();
            for (i, &first) in same.iter().enumerate() {
                ticks.step()?;
                if i != first {
                    self.merge_written(first, i)?;
                }
            }
            for i in 0..self.automata.len() {
                ticks.steps(SLOW)?;
                if same[i] != i {
                    self.automata[i] = Automaton::default();
                    self.forget(i);
                } else if self.called(i)?.callees.iter().any(|&b| same[b] != b) {
                    self.forget(i);
                    self.automata[i].relabel(|l| callee(l).map_or(l, |b| call(same[b])));
                    if self.automata[i].size() > LARGE {
                        self.work.tick()?;
                    }
                    if !self.keep.contains(&i) {
                        changed.push(i);
                    }
                }
            }
            for i in changed {
                ticks.steps(SLOW)?;
                self.forget(i);
                if self.automata[i].is_minimal() {
                    self.work.spend(self.automata[i].size())?;
                    self.automata[i].renumber_within(&Ticks::new(self.work))?;
                    continue;
                }
                let mut nfa = Nfa::default();
                nfa.embed(&self.automata[i], true);
                self.automata[i] = nfa.reduce(4 * nfa.len() + 1_000, self.work)?;
            }
            self.forget_widths();
        }
        Ok(())
    }

    /// What is known of widths is forgotten, and what is counted is looked for again.
    pub(super) fn forget_widths(&mut self) {
        self.wide.get_mut().fill(None);
        let bodies = self.keep.iter().flat_map(|&counter| self.automata[counter].left_calls());
        self.bodies = bodies.collect();
    }

    /// Merges what two equal rules were written as. What was written is one by one only where the
    /// calls of each may lead to the other: both forms together, or neither, where one rule was
    /// not left-recursive and says the same by itself.
    fn merge_written(&mut self, first: usize, other: usize) -> Result<()> {
        let gone = self.written.remove(&other).map(|form| {
            self.forget(form);
            std::mem::take(&mut self.automata[form])
        });
        match (self.written.get(&first).copied(), gone) {
            (Some(form), Some(gone)) => {
                let mut nfa = Nfa::default();
                let start = nfa.state();
                for automaton in [&self.automata[form], &gone] {
                    let base = nfa.embed(automaton, true);
                    nfa.skip(start, base);
                }
                self.automata[form] = nfa.reduce(4 * nfa.len() + 1_000, self.work)?;
                self.forget(form);
            }
            (Some(form), None) => {
                self.written.remove(&first);
                self.automata[form] = Automaton::default();
                self.forget(form);
            }
            (None, _) => {}
        }
        Ok(())
    }
}
