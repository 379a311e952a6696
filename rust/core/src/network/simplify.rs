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
//! Files: [`merge`] makes equal rules one, [`tails`] does absorption and tail recursion, [`inline`] the inlining.
//!
//! Rules are visited callees first; the members of a recursive component are inlined into each
//! other as long as that removes rules cheaply.

mod inline;
mod merge;
mod tails;

use super::Width;
use crate::apart::Apart;
use crate::automata::minimize::minimize;
use crate::automata::twins::merge_twins;
use crate::automata::{Automaton, Nfa};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::graph;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::sync::Arc;

/// How often a rule between `MEDIUM` and `LARGE` may be inlined.
const MEDIUM_TIMES: usize = 64;
/// States and edges that are looked at in the time of making one.
const GLANCE: usize = 4;
/// Units of work for a call that is sorted among the others, several times over.
const CALL: usize = 6;
/// Units of work after which nothing more is simplified: whatever is left is sound as it stands.
const MAX_WORK: u64 = 25_000_000;
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
    /// Whether equal states on cycles of rules with copies of others may stay.
    pub(super) is_quick: bool,
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
    /// Rules with copies of others, whose states may be equal.
    is_spliced: Vec<bool>,
    /// The hash of each rule, where it is known.
    hashes: Vec<Option<u64>>,
    /// Whether a rule is wide, where that is known.
    wide: RefCell<Vec<Option<bool>>>,
    /// Rules that are counted: others may be wide for their sake.
    bodies: FxHashSet<usize>,
    /// How many automata were replaced so far, and for each rule how many when its own was, and when its calls
    /// were last looked at for tails in vain: then they are looked at again where it or a callee is another.
    replaced: u32,
    replaced_at: Vec<u32>,
    without_tails_at: Vec<Option<u32>>,
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
            is_quick: false,
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
            is_spliced: vec![false; n],
            hashes: vec![None; n],
            wide: RefCell::new(vec![None; n]),
            bodies: FxHashSet::default(),
            replaced: 0,
            replaced_at: vec![0; n],
            without_tails_at: vec![None; n],
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
            self.minimize_spliced()?;
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
        self.replaced += 1;
        self.replaced_at[rule] = self.replaced;
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

    /// Minimizes the rules with copies of others: only now, when those that went into others are gone.
    fn minimize_spliced(&mut self) -> Result<()> {
        for rule in 0..self.automata.len() {
            if !std::mem::take(&mut self.is_spliced[rule]) || self.automata[rule].is_empty() {
                continue;
            }
            let ticks = Ticks::new(self.work);
            let automaton = &self.automata[rule];
            let mut automaton = match self.is_quick {
                true => {
                    self.work.spend(automaton.size())?;
                    let Some(merged) = merge_twins(automaton, &ticks)? else { continue };
                    merged
                }
                false => minimize(automaton.clone(), self.work)?,
            };
            automaton.renumber_within(&ticks)?;
            if self.prune {
                automaton.trim_within(&ticks)?;
            }
            self.replace(rule, automaton)?;
        }
        Ok(())
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
