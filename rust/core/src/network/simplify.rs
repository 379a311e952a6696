//! Fewer rules, fewer states, fewer calls: the same strings and the same prefixes.
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

use super::Width;
use crate::automata::marks::Marks;
use crate::automata::{Automaton, FIRST_CALL, Letter, Nfa, call, callee};
use crate::error::Result;
use crate::graph;
use crate::hash::hash_of;
use crate::work::Work;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

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
/// Rounds of merging equal rules; each makes callers equal whose callees were.
const MAX_ROUNDS: usize = 16;
/// Rules of more states than this are never inlined.
const LARGE: usize = 500;
/// The same where wide rules are shared: a network for the engine, which is made for each
/// request. Chains of rules are then inlined in pieces; calls at the end of rules cost nothing.
const LARGE_SHARING: usize = 64;
/// The same inside a recursive component, of which there are few and no long chains.
const LARGE_RECURSIVE: usize = 4_000;
/// Pairs of states after which a test for absorption gives up.
const MAX_PAIRS: usize = 2_000;
/// Recursive components of more rules than this are left as they are.
const MAX_COMPONENT: usize = 256;

/// The rules of a network under construction. Rule `start` is called by nobody.
pub(crate) struct Rules<'a, 'w> {
    pub(crate) automata: Vec<Automaton>,
    pub(crate) start: usize,
    /// Growth in states that inlining one rule may cause.
    pub(crate) budget: usize,
    /// Whether states that cannot be completed are dropped.
    pub(crate) prune: bool,
    /// Number of sites of each rule: copies that inlining it would make.
    uses: Vec<usize>,
    work: &'a Work<'w>,
    /// Rules met while those are listed that a rule calls.
    met: RefCell<Marks>,
    /// How often a rule larger than `MEDIUM` may still be inlined.
    medium_left: usize,
    /// Rules that are known to lie on no cycle of calls.
    acyclic: Vec<bool>,
    /// Where wide rules are to stay rules, what makes a rule wide.
    pub(super) width: Option<Width>,
    /// Rules that count: their automata say less than they mean, so they stay as they are.
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

impl<'a, 'w> Rules<'a, 'w> {
    pub(crate) fn new(
        automata: Vec<Automaton>,
        start: usize,
        budget: usize,
        prune: bool,
        work: &'a Work<'w>,
    ) -> Self {
        let n = automata.len();
        Self {
            automata,
            start,
            budget,
            prune,
            uses: vec![0; n],
            work,
            met: RefCell::new(Marks::new(n)),
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
        self.drop_unreachable();
        Ok(())
    }

    /// Every step leaves rules that say the same, so an error between two does no harm.
    fn rounds(&mut self) -> Result<()> {
        self.forget_widths();
        for _ in 0..4 {
            let before = (self.count(), self.size());
            self.merge_equal()?;
            self.drop_unreachable();
            self.count_uses();
            let components = graph::components(self.automata.len(), |a| self.callees(a));
            for component in components {
                self.component(&component)?;
            }
            self.drop_unreachable();
            if (self.count(), self.size()) == before {
                break;
            }
        }
        self.merge_equal()
    }

    /// States and edges of all rules.
    pub(crate) fn size(&self) -> (usize, usize) {
        self.automata.iter().fold((0, 0), |(s, e), a| (s + a.len(), e + a.num_edges()))
    }

    fn count(&self) -> usize {
        self.automata.iter().filter(|a| !a.is_empty()).count()
    }

    fn callees(&self, rule: usize) -> Vec<usize> {
        // A rule may have millions of calls of a few rules: each counts once before they are sorted.
        let mut met = self.met.borrow_mut();
        met.clear();
        let calls = self.automata[rule].sites().map(|(b, _)| b);
        let mut out: Vec<usize> = calls.filter(|&b| met.mark(b as u32)).collect();
        out.sort_unstable();
        out
    }

    fn count_uses(&mut self) {
        self.uses.iter_mut().for_each(|u| *u = 0);
        for (rule, automaton) in self.automata.iter().enumerate() {
            // What charts alone read by decides nothing for stacks.
            if self.is_written.contains(&rule) {
                continue;
            }
            for (b, _) in sites(automaton) {
                self.uses[b] += 1;
            }
        }
    }

    fn replace(&mut self, rule: usize, automaton: Automaton) {
        if !self.is_written.contains(&rule) {
            for (b, _) in sites(&self.automata[rule]) {
                self.uses[b] -= 1;
            }
            for (b, _) in sites(&automaton) {
                self.uses[b] += 1;
            }
        }
        self.automata[rule] = automaton;
        self.hashes[rule] = None;
        match self.bodies.contains(&rule) {
            true => self.wide.get_mut().fill(None),
            false => self.wide.get_mut()[rule] = None,
        }
    }

    /// Reduces an automaton with epsilon edges; `None` where it stays nondeterministic.
    fn reduce(&self, nfa: &Nfa) -> Result<Option<Automaton>> {
        let mut out = nfa.reduce(4 * nfa.len() + 1_000, self.work)?;
        if self.prune {
            out.trim();
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
            called.extend(self.callees(b));
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
                self.work.spend(glance(&self.automata[a]))?;
                for (b, _) in sites(&self.automata[a]) {
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
                let callees = self.callees(b);
                let apart = !taboo.contains(&b) && callees.iter().all(|c| !chosen.contains(c));
                if growth == least && apart {
                    chosen.insert(b);
                    taboo.extend(callees);
                }
            }
            gone.extend(&chosen);
            let keep: FxHashSet<usize> = self.keep.union(&self.as_they_stand).copied().collect();
            for &a in component.iter().filter(|a| !chosen.contains(a) && !keep.contains(a)) {
                if self.automata[a].sites().any(|site| chosen.contains(&site.0)) {
                    self.inline_into(a, |_, callee| chosen.contains(&callee))?;
                    self.tails(a)?;
                }
            }
        }
    }

    /// Replaces the calls in `rule` of the callees that `select` takes by copies of them.
    fn inline_into(&mut self, rule: usize, select: impl Fn(&Self, usize) -> bool) -> Result<()> {
        self.work.spend(glance(&self.automata[rule]))?;
        let mut chosen = self.callees(rule);
        chosen.retain(|&b| b != rule && !self.automata[b].is_empty() && select(self, b));
        if chosen.is_empty() {
            return Ok(());
        }
        // What could not be made deterministic cannot the next time either.
        let key = |rules: &Self, chosen: &[usize]| {
            let made_of = [rule].into_iter().chain(chosen.iter().copied());
            let made_of: Vec<&Automaton> = made_of.map(|b| &rules.automata[b]).collect();
            (hash_of(&made_of), chosen.to_vec())
        };
        if !self.stubborn.is_empty() && self.stubborn.contains(&key(self, &chosen)) {
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
            for &(letter, q) in edges {
                match callee(letter).filter(|b| chosen.binary_search(b).is_ok()) {
                    None => nfa.edge(p, letter, q),
                    Some(b) => {
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
            Some(automaton) => self.replace(rule, automaton),
            None => {
                self.stubborn.insert(key(self, &chosen));
            }
        }
        Ok(())
    }

    /// Turns calls whose return need not be remembered into tail calls, and direct tail
    /// recursion into loops.
    fn tails(&mut self, rule: usize) -> Result<()> {
        let automaton = &self.automata[rule];
        self.work.spend(glance(automaton))?;
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
            self.replace(rule, reduced);
        }
        Ok(())
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

    fn merge_equal(&mut self) -> Result<()> {
        for _ in 0..MAX_ROUNDS {
            self.work.spend(self.automata.iter().map(|a| 1 + a.size() / GLANCE).sum())?;
            let mut seen: HashTable<usize> = HashTable::with_capacity(self.automata.len());
            let mut same: Vec<usize> = (0..self.automata.len()).collect();
            let mut any = false;
            for (i, automaton) in self.automata.iter().enumerate() {
                // The start may have the empty string on top of its automaton: nobody's equal.
                let alone = i == self.start || self.is_written.contains(&i);
                if automaton.is_empty() || alone || self.keep.contains(&i) {
                    continue;
                }
                let hash = *self.hashes[i].get_or_insert_with(|| hash_of(automaton));
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
            for (i, &first) in same.iter().enumerate().filter(|(i, first)| i != *first) {
                self.merge_written(first, i)?;
            }
            for i in 0..self.automata.len() {
                if same[i] != i {
                    self.automata[i] = Automaton::default();
                    self.hashes[i] = None;
                } else if self.automata[i].sites().any(|(b, _)| same[b] != b) {
                    self.hashes[i] = None;
                    self.automata[i].relabel(|l| callee(l).map_or(l, |b| call(same[b])));
                    if !self.keep.contains(&i) {
                        changed.push(i);
                    }
                }
            }
            for i in changed {
                if self.automata[i].is_minimal() {
                    self.work.spend(self.automata[i].size())?;
                    self.automata[i].renumber();
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
    fn forget_widths(&mut self) {
        self.wide.get_mut().fill(None);
        let bodies = self.keep.iter().flat_map(|&counter| self.automata[counter].left_calls());
        self.bodies = bodies.collect();
    }

    /// Merges what two equal rules were written as. What was written is one by one only where the
    /// calls of each may lead to the other: both forms together, or neither, where one rule was
    /// not left-recursive and says the same by itself.
    fn merge_written(&mut self, first: usize, other: usize) -> Result<()> {
        let gone = self.written.remove(&other).map(|form| std::mem::take(&mut self.automata[form]));
        match (self.written.get(&first).copied(), gone) {
            (Some(form), Some(gone)) => {
                let mut nfa = Nfa::default();
                let start = nfa.state();
                for automaton in [&self.automata[form], &gone] {
                    let base = nfa.embed(automaton, true);
                    nfa.skip(start, base);
                }
                self.automata[form] = nfa.reduce(4 * nfa.len() + 1_000, self.work)?;
            }
            (Some(form), None) => {
                self.written.remove(&first);
                self.automata[form] = Automaton::default();
            }
            (None, _) => {}
        }
        Ok(())
    }

    fn drop_unreachable(&mut self) {
        let mut seen = vec![false; self.automata.len()];
        seen[self.start] = true;
        let mut work = vec![self.start];
        while let Some(a) = work.pop() {
            let forms = self.written.get(&a).copied();
            for b in self.callees(a).into_iter().chain(forms) {
                if !std::mem::replace(&mut seen[b], true) {
                    work.push(b);
                }
            }
        }
        for (automaton, seen) in self.automata.iter_mut().zip(seen) {
            if !seen {
                *automaton = Automaton::default();
            }
        }
    }
}

/// What it costs to pass over an automaton and to sort its calls.
fn glance(automaton: &Automaton) -> usize {
    1 + automaton.size() / GLANCE + CALL * automaton.sites().count()
}

/// The distinct pairs of a callee and the state it returns to.
fn sites(automaton: &Automaton) -> Vec<(usize, u32)> {
    let mut out: Vec<(usize, u32)> = automaton.sites().collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Whether state `f` of `big` can do, up to the completion of its rule, all that `r` of `small`
/// can: every edge is matched and finality too. Sound, not complete.
fn simulates(
    big: &Automaton,
    f: u32,
    small: &Automaton,
    r: u32,
    budget: &Work<'_>,
) -> Result<bool> {
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
        let edges = big.edges(f);
        for &(letter, r_next) in small.edges(r) {
            let Ok(i) = edges.binary_search_by_key(&letter, |e| e.0) else { return Ok(false) };
            let pair = (edges[i].1, r_next);
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
