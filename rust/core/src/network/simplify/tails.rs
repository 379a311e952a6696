//! Calls whose return need not be remembered, and direct tail recursion.

use super::{GLANCE, Rules};
use crate::automata::{Automaton, Nfa, callee};
use crate::budget::Budget;
use crate::error::Result;
use rustc_hash::{FxHashMap, FxHashSet};

/// Pairs of states after which a test for absorption gives up.
const MAX_PAIRS: usize = 2_000;

impl Rules<'_> {
    /// Turns calls whose return need not be remembered into tail calls, and direct tail
    /// recursion into loops.
    pub(super) fn tails(&mut self, rule: usize) -> Result<()> {
        let automaton = &self.automata[rule];
        if automaton.has_fallbacks() {
            return Ok(()); // it stays as it stands
        }
        if self.is_known_without_tails(rule)? {
            return Ok(());
        }
        self.work.spend(self.glance(rule)?)?;
        let mut tail: Vec<(u32, usize, u32)> = Vec::new();
        let mut known: FxHashMap<(usize, u32), bool> = FxHashMap::default();
        let is_written = self.is_written.contains(&rule);
        for (p, b, r) in automaton.calls() {
            // That a rule does what follows its own left call holds of it with that call alone.
            let is_circular = is_written && p == 0 && self.written.contains_key(&b);
            if is_circular {
                continue;
            }
            // Many states call a rule to return to one.
            let absorbed = match known.get(&(b, r)) {
                Some(&absorbed) => absorbed,
                None => {
                    let absorbed = self.absorbs(rule, b, r)?;
                    known.insert((b, r), absorbed);
                    absorbed
                }
            };
            if absorbed {
                tail.push((p, b, r));
            }
        }
        let is_new = |&(_, b, r): &(u32, usize, u32)| b == rule || !automaton.is_end(r);
        if !tail.iter().any(is_new) {
            // What counts as a tail of a rule as it was written changes with other rules than its callees.
            self.without_tails_at[rule] = (!is_written).then_some(self.replaced);
            return Ok(());
        }
        let tail: FxHashSet<(u32, usize, u32)> = tail.into_iter().collect();
        let mut nfa = Nfa::default();
        nfa.embed_states(automaton, true);
        let end = nfa.state();
        nfa.set_final(end);
        for (p, edges) in automaton.states() {
            for &(letter, q) in edges {
                match callee(letter) {
                    // The start is not final, so going on from it is starting once more.
                    Some(b) if b == rule && tail.contains(&(p, b, q)) => nfa.skip(p, 0),
                    Some(b) if tail.contains(&(p, b, q)) => nfa.edge(p, letter, end),
                    _ => nfa.edge(p, letter, q),
                }
            }
        }
        if let Some(reduced) = self.reduce(&nfa)? {
            self.replace(rule, reduced)?;
        }
        Ok(())
    }

    /// Whether the calls of a rule were looked at before in vain, and neither it nor what it calls has changed.
    fn is_known_without_tails(&self, rule: usize) -> Result<bool> {
        let Some(seen) = self.without_tails_at[rule] else { return Ok(false) };
        let is_old = |rule: usize| self.replaced_at[rule] <= seen;
        Ok(is_old(rule) && self.called(rule)?.callees.iter().all(|&callee| is_old(callee)))
    }

    /// Whether a call of `b` from `rule` that returns to `r` may forget `r`: `r` is final, and
    /// each final state of `b` simulates it.
    fn absorbs(&self, rule: usize, b: usize, r: u32) -> Result<bool> {
        let caller = &self.automata[rule];
        if !caller.is_final(r) {
            return Ok(false);
        }
        if caller.is_end(r) {
            return Ok(true);
        }
        let inner = &self.automata[b];
        if inner.is_empty() || self.keep.contains(&b) {
            return Ok(false);
        }
        self.work.spend(1 + inner.len() / GLANCE)?;
        for f in inner.final_states() {
            if !simulates(inner, f, caller, r, self.work)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether state `f` of `big` can do, up to the completion of its rule, all that `r` of `small`
/// can: every edge is matched and finality too. Sound, not complete.
fn simulates(big: &Automaton, f: u32, small: &Automaton, r: u32, budget: &Budget) -> Result<bool> {
    if std::ptr::eq(big, small) && f == r {
        return Ok(true);
    }
    if !big.is_deterministic() {
        return Ok(false);
    }
    let mut seen: FxHashSet<(u32, u32)> = FxHashSet::default();
    let mut work = vec![(f, r)];
    seen.insert((f, r));
    while let Some((f, r)) = work.pop() {
        budget.spend(1)?;
        if small.is_final(r) && !big.is_final(f) {
            return Ok(false);
        }
        for (letter, r_next) in small.edges_in_full(r) {
            let Some(f_next) = big.next(f, letter) else { return Ok(false) };
            let pair = (f_next, r_next);
            if seen.insert(pair) {
                if seen.len() > MAX_PAIRS {
                    return Ok(false);
                }
                work.push(pair);
            }
        }
    }
    Ok(true)
}
