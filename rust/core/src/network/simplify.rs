//! Fewer rules, fewer states, fewer calls: the same strings and the same prefixes.
//!
//! Design: docs/design/network.md, "Simplify".
//!
//! - *Equal rules* become one.
//! - *Absorption*: where a call of `B` returns to a final state `r`, and every final state of `B`
//!   can do whatever `r` can, the return need not be remembered: the call becomes a tail call.
//!   `expr op expr` loses its ambiguity that way.
//! - *Direct tail recursion* becomes a loop.
//! - *Inlining* of rules that are not recursive, under a bound on growth. It also makes the
//!   classes fewer, since a call hides that two places go on alike.
//!
//! Rules are visited callees first; the members of a recursive component are inlined into each
//! other as long as that removes rules cheaply.

mod merge;
mod tails;

use super::Width;
use crate::apart::Apart;
use crate::automata::{Automaton, FIRST_CALL, Letter, Nfa, callee};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::graph;
use crate::hash::hash_of;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;

/// Rules of at most so many states are always inlined.
const TINY: usize = 10;
/// Rules of more states than this are inlined a few times only: each step of a long chain of rules
/// makes the caller's automaton anew, which would take quadratic time.
const MEDIUM: usize = 120;
/// How often a rule between `MEDIUM` and `LARGE` may be inlined.
const MEDIUM_TIMES: usize = 64;
/// States and edges that are looked at in the time of making one.
const GLANCE: usize = 4;
/// Units of work for a call that is sorted among the others, several times over.
const CALL: usize = 6;
/// Units of work after which nothing more is simplified: whatever is left is sound as it stands.
const MAX_WORK: u64 = 25_000_000;
/// Rules of more states than this are never inlined.
const LARGE: usize = 500;
/// The same where wide rules are shared: a network for the engine, which is made for each
/// request. Chains of rules are then inlined in pieces; calls at the end of rules cost nothing.
const LARGE_SHARING: usize = 64;
/// The same inside a recursive component, of which there are few and no long chains.
const LARGE_RECURSIVE: usize = 4_000;
/// Recursive components of more rules than this are left as they are.
const MAX_COMPONENT: usize = 256;

/// The rules of a network under construction. Rule `start` is called by nobody.
pub(crate) struct Rules<'a> {
    pub(crate) automata: Apart<Automaton>,
    pub(crate) start: usize,
    /// Growth in states that inlining one rule may cause.
    pub(crate) budget: usize,
    /// Whether states that cannot be completed are dropped.
    pub(crate) prune: bool,
    /// Number of sites of each rule: copies that inlining it would make.
    uses: Vec<usize>,
    work: &'a Budget,
    /// What each rule calls, where that is known.
    called: RefCell<Apart<Option<Arc<Called>>>>,
    /// How often a rule larger than `MEDIUM` may still be inlined.
    medium_left: usize,
    /// Rules that are known to lie on no cycle of calls.
    acyclic: Vec<bool>,
    /// Where wide rules are to stay rules, what makes a rule wide.
    pub(super) width: Option<Width>,
    /// Rules that count or have guards, or are called with a guard: their automata say less than they
    /// mean, so they stay as they are.
    pub(crate) keep: FxHashSet<usize>,
    /// Large rules that nothing is inlined into: they would be made anew, and are what they are.
    pub(super) as_they_stand: FxHashSet<usize>,
    /// Rules that are elsewhere, without states here: how many bytes may come first in each.
    pub(super) outside: FxHashMap<usize, u32>,
    /// For rules that were left-recursive the rule as it was written, which nobody calls.
    pub(super) written: FxHashMap<usize, usize>,
    is_written: FxHashSet<usize>,
    /// Inlinings that ended in a nondeterministic automaton: a hash of what they were made of, and
    /// the callees.
    stubborn: FxHashSet<(u64, Vec<usize>)>,
    /// The hash of each rule, where it is known.
    hashes: Vec<Option<u64>>,
    /// Whether a rule is wide, where that is known.
    wide: RefCell<Vec<Option<bool>>>,
    /// Rules that are counted: others may be wide for their sake.
    bodies: FxHashSet<usize>,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(
        automata: Apart<Automaton>,
        start: usize,
        budget: usize,
        prune: bool,
        work: &'a Budget,
    ) -> Self {
        let n = automata.len();
        Self {
            automata,
            start,
            budget,
            prune,
            uses: vec![0; n],
            work,
            called: RefCell::new(vec![None; n].into()),
            medium_left: MEDIUM_TIMES,
            acyclic: vec![false; n],
            width: None,
            keep: FxHashSet::default(),
            as_they_stand: FxHashSet::default(),
            outside: FxHashMap::default(),
            written: FxHashMap::default(),
            is_written: FxHashSet::default(),
            stubborn: FxHashSet::default(),
            hashes: vec![None; n],
            wide: RefCell::new(vec![None; n]),
            bodies: FxHashSet::default(),
        }
    }

    /// Takes up rules as they were written.
    pub(super) fn take_written(&mut self, written: FxHashMap<usize, usize>) {
        self.is_written = written.values().copied().collect();
        self.written = written;
    }

    /// Simplifies until nothing changes, or a few times, or it takes too much.
    ///
    /// # Errors
    /// [`crate::error::Error::Cancelled`]: what is not done is no error.
    pub(crate) fn simplify(&mut self) -> Result<()> {
        let work = self.work;
        work.attempt(MAX_WORK, || self.rounds())?;
        self.drop_unreachable()
    }

    /// Every step leaves rules that say the same, so an error between two does no harm.
    fn rounds(&mut self) -> Result<()> {
        self.forget_widths();
        for _ in 0..4 {
            let before = (self.count()?, self.size()?);
            self.merge_equal()?;
            self.drop_unreachable()?;
            self.count_uses()?;
            let mut callees = Apart::from(Vec::with_capacity(self.automata.len()));
            let ticks = Ticks::new(self.work);
            for rule in 0..self.automata.len() {
                ticks.steps(SLOW)?;
                callees.push(self.called(rule)?.callees.clone());
            }
            let ticks = Ticks::new(self.work);
            let of = |a: usize| {
                ticks.steps(1 + callees[a].len())?;
                Ok(callees[a].clone())
            };
            let look = |steps| ticks.steps(steps);
            for component in graph::components_within(self.automata.len(), look, of)?.iter() {
                ticks.steps(SLOW * component.len())?;
                self.component(component)?;
            }
            self.drop_unreachable()?;
            if (self.count()?, self.size()?) == before {
                break;
            }
        }
        self.merge_equal()
    }

    /// States and edges of all rules.
    pub(crate) fn size(&self) -> Result<(usize, usize)> {
        let ticks = Ticks::new(self.work);
        self.automata.iter().try_fold((0, 0), |(states, edges), automaton| {
            ticks.step()?;
            Ok((states + automaton.len(), edges + automaton.num_edges()))
        })
    }

    fn count(&self) -> Result<usize> {
        let ticks = Ticks::new(self.work);
        self.automata.iter().try_fold(0, |count, automaton| {
            ticks.step()?;
            Ok(count + usize::from(!automaton.is_empty()))
        })
    }

    /// What a rule calls, found once until its automaton is another.
    fn called(&self, rule: usize) -> Result<Arc<Called>> {
        if let Some(known) = &self.called.borrow()[rule] {
            return Ok(known.clone());
        }
        let mut out = Called::default();
        let mut met: FxHashSet<(usize, u32)> = FxHashSet::default();
        for (step, site) in self.automata[rule].sites().enumerate() {
            if step > 0 {
                self.work.tick_every(step)?;
            }
            // Of a few each counts, and is sorted below; of millions most come again.
            if step < FEW_SITES || met.insert(site) {
                out.sites.push(site);
            }
            out.calls += 1;
        }
        // Pieces in order are merged fast; a sort as a whole is nothing that can be ended.
        for (number, piece) in out.sites.chunks_mut(SORTED_AT_ONCE).enumerate() {
            if number > 0 {
                self.work.tick()?;
            }
            piece.sort_unstable();
        }
        out.sites.sort();
        out.sites.dedup();
        out.callees.extend(out.sites.iter().map(|site| site.0));
        out.callees.dedup();
        let out = Arc::new(out);
        if out.sites.len() <= MANY_SITES {
            self.called.borrow_mut()[rule] = Some(out.clone());
        }
        Ok(out)
    }

    /// What it costs to pass over the automaton of a rule and to sort its calls.
    fn glance(&self, rule: usize) -> Result<usize> {
        Ok(1 + self.automata[rule].size() / GLANCE + CALL * self.called(rule)?.calls)
    }

    /// What was known of a rule is so no more.
    fn forget(&mut self, rule: usize) {
        self.hashes[rule] = None;
        self.called.get_mut()[rule] = None;
    }

    fn count_uses(&mut self) -> Result<()> {
        self.uses.fill(0);
        let ticks = Ticks::new(self.work);
        for rule in 0..self.automata.len() {
            // What charts alone read by decides nothing for stacks.
            ticks.steps(SLOW)?;
            if self.is_written.contains(&rule) {
                continue;
            }
            for &(b, _) in &self.called(rule)?.sites {
                self.uses[b] += 1;
            }
        }
        Ok(())
    }

    fn replace(&mut self, rule: usize, automaton: Automaton) -> Result<()> {
        let before = self.called(rule)?;
        self.automata[rule] = automaton;
        self.forget(rule);
        let after = self.called(rule)?;
        if !self.is_written.contains(&rule) {
            before.sites.iter().for_each(|&(b, _)| self.uses[b] -= 1);
            after.sites.iter().for_each(|&(b, _)| self.uses[b] += 1);
        }
        match self.bodies.contains(&rule) {
            true => self.wide.get_mut().fill(None),
            false => self.wide.get_mut()[rule] = None,
        }
        Ok(())
    }

    /// Reduces an automaton with epsilon edges; `None` where it stays nondeterministic.
    fn reduce(&self, nfa: &Nfa) -> Result<Option<Automaton>> {
        let mut out = nfa.reduce(4 * nfa.len() + 1_000, self.work)?;
        if self.prune {
            out.trim_within(&Ticks::new(self.work))?;
        }
        Ok(out.is_deterministic().then_some(out))
    }

    fn component(&mut self, component: &[usize]) -> Result<()> {
        for &a in component {
            if self.keep.contains(&a) || self.as_they_stand.contains(&a) {
                continue;
            }
            self.inline_into(a, |rules, b| rules.acyclic[b] && rules.is_cheap(b))?;
            self.tails(a)?;
        }
        if component.len() > 1 && component.len() <= MAX_COMPONENT {
            self.eliminate_within(component)?;
        }
        // A member that no member calls any more is on no cycle: what is outside cannot call back.
        let mut called: FxHashSet<usize> = FxHashSet::default();
        for &b in component {
            called.extend(&self.called(b)?.callees);
        }
        for &a in component {
            self.acyclic[a] = !called.contains(&a) && !self.keep.contains(&a);
        }
        Ok(())
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

    fn is_cheap(&self, b: usize) -> bool {
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

    /// Inlines members of a recursive component into the other members while that is cheap. Of
    /// equally cheap ones the largest goes first: a loop around it is then inlined with it, while
    /// inlining the loop first would multiply its calls.
    fn eliminate_within(&mut self, component: &[usize]) -> Result<()> {
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
    fn inline_into(&mut self, rule: usize, select: impl Fn(&Self, usize) -> bool) -> Result<()> {
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
        let caller = &self.automata[rule];
        let mut nfa = Nfa::default();
        nfa.embed_states(caller, true);
        nfa.reserve(caller.num_edges());
        // Calls of one rule that return to one state share a copy.
        let mut copies: FxHashMap<(usize, u32), u32> = FxHashMap::default();
        for (p, edges) in caller.states() {
            ticks.steps(1 + edges.len())?;
            for &(letter, q) in edges {
                match callee(letter).filter(|b| chosen.binary_search(b).is_ok()) {
                    None => nfa.edge(p, letter, q),
                    Some(b) => {
                        ticks.steps(self.automata[b].size())?;
                        let base = *copies.entry((b, q)).or_insert_with(|| {
                            let inlined = &self.automata[b];
                            let base = nfa.embed(inlined, false);
                            inlined.final_states().for_each(|f| nfa.skip(base + f, q));
                            base
                        });
                        nfa.skip(p, base);
                    }
                }
            }
        }
        match self.reduce(&nfa)? {
            Some(automaton) => self.replace(rule, automaton)?,
            None => {
                let key = key(self, &chosen)?;
                self.stubborn.insert(key);
            }
        }
        Ok(())
    }

    fn drop_unreachable(&mut self) -> Result<()> {
        let mut seen = vec![false; self.automata.len()];
        seen[self.start] = true;
        let mut work = vec![self.start];
        let ticks = Ticks::new(self.work);
        while let Some(a) = work.pop() {
            ticks.steps(SLOW)?;
            let forms = self.written.get(&a).copied();
            for b in self.called(a)?.callees.iter().copied().chain(forms) {
                if !std::mem::replace(&mut seen[b], true) {
                    work.push(b);
                }
            }
        }
        for (rule, seen) in seen.into_iter().enumerate() {
            ticks.step()?;
            if !seen && !self.automata[rule].is_empty() {
                ticks.steps(SLOW)?;
                self.automata[rule] = Automaton::default();
                self.forget(rule);
            }
        }
        Ok(())
    }
}

/// Steps for what allocates, or frees, for each rule.
const SLOW: usize = 16;

/// Sites that are sorted as they come.
const FEW_SITES: usize = 1 << 10;

/// Sites that are sorted in one piece.
const SORTED_AT_ONCE: usize = 1 << 13;

/// Sites of rules with more are not remembered.
const MANY_SITES: usize = 1 << 16;

/// What a rule calls.
#[derive(Default)]
struct Called {
    /// The distinct callees, in order.
    callees: Vec<usize>,
    /// The distinct pairs of a callee and the state it returns to, in order.
    sites: Vec<(usize, u32)>,
    /// How many calls there are.
    calls: usize,
}
