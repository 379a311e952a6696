//! Inlining: which rules are cheap enough, those of a recursive component among them, and copies of them in
//! place of their calls.

use super::Rules;
use crate::automata::splice::spliced;
use crate::automata::{Automaton, FIRST_CALL, Letter, call, callee};
use crate::budget::Ticks;
use crate::error::Result;
use crate::hash::hash_of;
use crate::network::Width;
use rustc_hash::{FxHashMap, FxHashSet};

/// Rules of at most so many states are always inlined.
const TINY: usize = 10;
/// Rules of more states than this are inlined a few times only: each step of a long chain of rules
/// makes the caller's automaton anew, which would take quadratic time.
const MEDIUM: usize = 120;
/// Rules of more states than this are never inlined.
const LARGE: usize = 500;
/// The same where wide rules are shared: a network for the engine, which is made for each
/// request. Chains of rules are then inlined in pieces; calls at the end of rules cost nothing.
const LARGE_SHARING: usize = 64;
/// The same inside a recursive component, of which there are few and no long chains.
const LARGE_RECURSIVE: usize = 4_000;

impl Rules<'_> {
    pub(super) fn is_cheap(&self, b: usize) -> bool {
        if self.is_wide(b) {
            return false;
        }
        let size = self.automata[b].len();
        let growth = self.uses[b].saturating_sub(1).saturating_mul(size);
        let bound = match self.width {
            Some(_) => LARGE_SHARING,
            None if self.medium_left > 0 => LARGE,
            None => MEDIUM,
        };
        size <= TINY || (growth <= self.budget && size <= bound)
    }

    /// Whether a rule has a wide state that is not final, or counts wide passes: where it stays a rule, all who call it
    /// share its masks. (Where it is final, what follows the rule may follow anywhere.)
    fn is_wide(&self, b: usize) -> bool {
        let Some(width) = &self.width else { return false };
        let known = self.wide.borrow()[b];
        known.unwrap_or_else(|| {
            let is_wide = self.looks_wide(b, width);
            self.wide.borrow_mut()[b] = Some(is_wide);
            is_wide
        })
    }

    fn looks_wide(&self, b: usize, width: &Width) -> bool {
        let rule = &self.automata[b];
        let bytes = |edges: &[(Letter, u32)], to: Option<u32>| {
            let edges = edges.iter().filter(|edge| edge.0 < FIRST_CALL);
            width.is_wide(edges.filter(|edge| to.is_none_or(|to| edge.1 == to)).map(|edge| edge.0))
        };
        let counts_wide = |&(letter, q): &(Letter, u32)| {
            callee(letter).is_some_and(|counter| {
                let body = self.automata[counter].left_calls().next();
                let is_wide = |body: usize| match self.outside.get(&body) {
                    Some(&first) => first >= width.least,
                    None => bytes(self.automata[body].edges(0), None),
                };
                self.keep.contains(&counter) && !rule.is_final(q) && body.is_some_and(is_wide)
            })
        };
        rule.states().any(|(p, edges)| {
            !rule.is_final(p) && bytes(edges, Some(p)) || edges.iter().any(counts_wide)
        })
    }

    /// Inlines members of a recursive component into the other members while that is cheap. Of
    /// equally cheap ones the largest goes first: a loop around it is then inlined with it, while
    /// inlining the loop first would multiply its calls.
    pub(super) fn eliminate_within(&mut self, component: &[usize]) -> Result<()> {
        let mut gone: FxHashSet<usize> = FxHashSet::default();
        loop {
            let mut sites_of: FxHashMap<usize, usize> = FxHashMap::default();
            let mut recursive: FxHashSet<usize> = FxHashSet::default();
            for &a in component {
                self.work.spend(self.glance(a)?)?;
                for &(b, _) in &self.called(a)?.sites {
                    *sites_of.entry(b).or_default() += 1;
                    if b == a {
                        recursive.insert(b);
                    }
                }
            }
            let candidates = component.iter().filter_map(|&b| {
                let uses = *sites_of.get(&b)?;
                let size = self.automata[b].len();
                let growth = (uses - 1) * size;
                let fits = size <= TINY || (growth <= self.budget && size <= LARGE_RECURSIVE);
                let may = fits
                    && b != self.start
                    && !gone.contains(&b)
                    && !recursive.contains(&b)
                    && !self.is_wide(b)
                    && !self.keep.contains(&b);
                may.then_some((growth, std::cmp::Reverse(size), b))
            });
            let mut candidates: Vec<_> = candidates.collect();
            candidates.sort_unstable();
            let Some(&(least, ..)) = candidates.first() else { return Ok(()) };
            // Those that cost the same and do not call each other go together.
            let mut chosen: FxHashSet<usize> = FxHashSet::default();
            let mut taboo: FxHashSet<usize> = FxHashSet::default();
            for &(growth, _, b) in &candidates {
                let callees = &self.called(b)?.callees;
                let apart = !taboo.contains(&b) && callees.iter().all(|c| !chosen.contains(c));
                if growth == least && apart {
                    chosen.insert(b);
                    taboo.extend(callees);
                }
            }
            gone.extend(&chosen);
            let keep: FxHashSet<usize> = self.keep.union(&self.as_they_stand).copied().collect();
            for &a in component.iter().filter(|a| !chosen.contains(a) && !keep.contains(a)) {
                if self.called(a)?.callees.iter().any(|b| chosen.contains(b)) {
                    self.inline_into(a, |_, callee| chosen.contains(&callee))?;
                    self.tails(a)?;
                }
            }
        }
    }

    /// Replaces the calls in `rule` of the callees that `select` takes by copies of them.
    pub(super) fn inline_into(
        &mut self,
        rule: usize,
        select: impl Fn(&Self, usize) -> bool,
    ) -> Result<()> {
        if self.automata[rule].has_fallbacks() {
            return Ok(()); // it stays as it stands
        }
        self.work.spend(self.glance(rule)?)?;
        let ticks = Ticks::new(self.work);
        let mut chosen: Vec<usize> = Vec::new();
        for &b in &self.called(rule)?.callees {
            // Whether a rule is wide is found in all of its states.
            ticks.steps(1 + self.automata[b].size())?;
            if b != rule && !self.automata[b].is_empty() && select(self, b) {
                chosen.push(b);
            }
        }
        if chosen.is_empty() {
            return Ok(());
        }
        // What could not be made deterministic cannot the next time either.
        let key = |rules: &Self, chosen: &[usize]| {
            let made_of = [rule].into_iter().chain(chosen.iter().copied());
            let made_of: Vec<&Automaton> = made_of.map(|b| &rules.automata[b]).collect();
            ticks.steps(made_of.iter().map(|automaton| automaton.size()).sum())?;
            Ok((hash_of(&made_of), chosen.to_vec()))
        };
        if !self.stubborn.is_empty() && self.stubborn.contains(&key(self, &chosen)?) {
            return Ok(());
        }
        let medium = chosen.iter().filter(|&&b| self.automata[b].len() > MEDIUM).count();
        self.medium_left = self.medium_left.saturating_sub(medium);
        let callees: Vec<(Letter, &Automaton)> =
            chosen.iter().map(|&b| (call(b), &self.automata[b])).collect();
        match spliced(&self.automata[rule], &callees, self.work)? {
            Some(automaton) => {
                self.is_spliced[rule] = true;
                self.replace(rule, automaton)?;
            }
            None => {
                let key = key(self, &chosen)?;
                self.stubborn.insert(key);
            }
        }
        Ok(())
    }
}
