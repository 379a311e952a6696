//! Lookahead `(= ...)` that the rules imply.
//!
//! A lookahead narrows which tokens may cross the end of its rule and leaves the language as it is.
//! Where all that may follow the rule agrees with it, it narrows nothing, and masks are exact
//! without it. XGrammar's own converters print such lookahead.
//!
//! What may follow the rule is run through the automaton of the lookahead, from each place where
//! the rule stands up to the root: a text agrees when it begins with a string of the lookahead, or
//! is the beginning of one. Which states a string of an expression leads to is the least solution
//! of the equations between expressions and states, as in the analysis of pushdown systems. Sets
//! are never too small: what is said to be implied is, and what is not may be.

use crate::automata::{Automaton, Nfa, utf8};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::grammar::{CharSet, Expr, Grammar};
use crate::ids::{ExprId, RuleId};
use rustc_hash::{FxHashMap, FxHashSet};

/// States of the automaton of a lookahead, and of what it is made of, at most: sets of the former are
/// words of 64 bits.
const MAX_STATES: usize = 63;
const MAX_NFA_STATES: usize = 4_096;
const MAX_NFA_EDGES: usize = 1 << 16;
/// Rules within each other, and copies of a repeated part, that a lookahead is written out to.
const MAX_DEPTH: u32 = 32;
const MAX_COPIES: u32 = 64;

/// Expressions with a state that are held at most; past it lookahead counts as not implied.
const MAX_RUNS: usize = 1 << 18;

/// A set of states; the highest bit is for texts that disagree.
type States = u64;
const DISAGREES: States = 1 << 63;

/// Where the rules of a grammar stand, for the lookahead of any of them.
pub(super) struct Places<'a> {
    grammar: &'a Grammar,
    /// The expressions that each expression is a child of, of rules that the root needs.
    parents: FxHashMap<ExprId, Vec<ExprId>>,
    /// The rules whose right-hand side an expression is.
    owners: FxHashMap<ExprId, Vec<RuleId>>,
    /// The expressions that call a rule.
    calls: FxHashMap<RuleId, Vec<ExprId>>,
    /// Rules that a macro names or that are elsewhere: what stands beside them is not known.
    unknown: FxHashSet<RuleId>,
    /// Whether the grammar is a part of another, of which anything may follow.
    is_part: bool,
}

/// The first rule of a grammar, in the order of its text, whose lookahead the rules do not imply when
/// the grammar is a part of another and anything may follow it.
///
/// # Errors
/// Those of [`Budget::spend`].
pub fn narrowing_part(grammar: &Grammar, work: &Budget) -> Result<Option<RuleId>> {
    let rules = (0..grammar.rules().len()).map(RuleId::new);
    let with_lookahead = rules.filter(|&rule| grammar.rule(rule).lookahead.is_some());
    let mut places = None;
    for rule in with_lookahead {
        if places.is_none() {
            work.spend(grammar.size())?;
            let made = Places::new(grammar, |_| false, &Ticks::new(work))?;
            places = Some(Places { is_part: true, ..made });
        }
        if let Some(places) = &places
            && !places.imply(rule, work)?
        {
            return Ok(Some(rule));
        }
    }
    Ok(None)
}

impl<'a> Places<'a> {
    pub(super) fn new(
        grammar: &'a Grammar,
        is_elsewhere: impl Fn(RuleId) -> bool,
        ticks: &Ticks,
    ) -> Result<Self> {
        let mut out = Self {
            grammar,
            parents: FxHashMap::default(),
            owners: FxHashMap::default(),
            calls: FxHashMap::default(),
            unknown: FxHashSet::default(),
            is_part: false,
        };
        let mut rules = vec![grammar.root()];
        let mut seen: FxHashSet<RuleId> = rules.iter().copied().collect();
        let mut seen_exprs: FxHashSet<ExprId> = FxHashSet::default();
        let mut exprs = Vec::new();
        while let Some(rule) = rules.pop() {
            if is_elsewhere(rule) {
                out.unknown.insert(rule);
                continue;
            }
            let body = grammar.rule(rule).body;
            out.owners.entry(body).or_default().push(rule);
            exprs.push(body);
            while let Some(id) = exprs.pop() {
                ticks.step()?;
                if !seen_exprs.insert(id) {
                    continue;
                }
                let mut child = |child: ExprId, out: &mut Self| {
                    out.parents.entry(child).or_default().push(id);
                    exprs.push(child);
                };
                let mut needed = |rule: RuleId| {
                    if seen.insert(rule) {
                        rules.push(rule);
                    }
                };
                match grammar.expr(id) {
                    Expr::Sequence(children) | Expr::Choice(children) => {
                        children.iter().for_each(|&part| child(part, &mut out));
                    }
                    Expr::Repeat { body, .. } => child(*body, &mut out),
                    Expr::Automaton(automaton) => {
                        automaton.parts.iter().for_each(|part| child(part.1, &mut out));
                    }
                    Expr::Rule(callee) => {
                        out.calls.entry(*callee).or_default().push(id);
                        needed(*callee);
                    }
                    Expr::Macro(call) => {
                        for rule in call.rules() {
                            out.unknown.insert(rule);
                            needed(rule);
                        }
                    }
                    Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Tokens(_) => {}
                }
            }
        }
        Ok(out)
    }

    /// Whether anything may follow a rule.
    fn is_open(&self, rule: RuleId) -> bool {
        self.is_part && rule == self.grammar.root()
    }

    /// The expressions that call a rule.
    fn calls_of(&self, rule: RuleId) -> impl Iterator<Item = ExprId> + '_ {
        self.calls.get(&rule).into_iter().flatten().copied()
    }

    /// Whether all that may follow a rule agrees with its lookahead.
    ///
    /// # Errors
    /// Those of [`Budget::spend`].
    pub(super) fn imply(&self, rule: RuleId, work: &Budget) -> Result<bool> {
        let Some(lookahead) = self.grammar.rule(rule).lookahead else {
            return Ok(true);
        };
        match automaton(self.grammar, lookahead, work)? {
            Some(automaton) => {
                Follow { places: self, automaton, runs: RunEnds::default() }.agrees(rule, work)
            }
            None => Ok(false),
        }
    }
}

/// The strings of an expression without the empty one, as a small deterministic automaton over bytes;
/// `None` where it is none, or not seen to be one.
fn automaton(grammar: &Grammar, lookahead: ExprId, work: &Budget) -> Result<Option<Automaton>> {
    let mut nfa = Nfa::default();
    let (start, end) = (nfa.state(), nfa.state());
    nfa.set_final(end);
    let mut todo = vec![(lookahead, start, end, 0)];
    while let Some((id, from, to, depth)) = todo.pop() {
        work.spend(1)?;
        // Rules that call others twice are written out twice: edges bound how often.
        let is_large = nfa.len() > MAX_NFA_STATES || nfa.num_edges() > MAX_NFA_EDGES;
        if is_large || depth > MAX_DEPTH {
            return Ok(None);
        }
        match grammar.expr(id) {
            Expr::Empty => nfa.skip(from, to),
            Expr::Literal(bytes) => {
                let last = bytes.len() - 1;
                let mut at = from;
                for (place, &byte) in bytes.iter().enumerate() {
                    let next = if place == last { to } else { nfa.state() };
                    nfa.edge(at, u32::from(byte), next);
                    at = next;
                }
            }
            Expr::Class(set) => each_sequence(set, |ranges| {
                let mut at = from;
                for (place, &(first, last)) in ranges.iter().enumerate() {
                    let next = if place + 1 == ranges.len() { to } else { nfa.state() };
                    (first..=last).for_each(|byte| nfa.edge(at, u32::from(byte), next));
                    at = next;
                }
            }),
            Expr::Rule(rule) => todo.push((grammar.rule(*rule).body, from, to, depth + 1)),
            Expr::Sequence(children) => {
                let mut at = from;
                for (place, &child) in children.iter().enumerate() {
                    let next = if place + 1 == children.len() { to } else { nfa.state() };
                    todo.push((child, at, next, depth));
                    at = next;
                }
            }
            Expr::Choice(children) => {
                todo.extend(children.iter().map(|&child| (child, from, to, depth)));
            }
            &Expr::Repeat { body, min, max } => {
                if min.max(max.unwrap_or(0)) > MAX_COPIES {
                    return Ok(None);
                }
                let mut at = nfa.state();
                nfa.skip(from, at);
                for copy in 0..max.unwrap_or(min) {
                    if copy >= min {
                        nfa.skip(at, to);
                    }
                    let next = nfa.state();
                    todo.push((body, at, next, depth));
                    at = next;
                }
                nfa.skip(at, to);
                if max.is_none() {
                    // A state of its own: one that others leave too would let them loop.
                    let over = nfa.state();
                    nfa.skip(at, over);
                    todo.push((body, over, over, depth));
                    nfa.skip(over, to);
                }
            }
            Expr::Tokens(_) | Expr::Macro(_) | Expr::Automaton(_) => return Ok(None),
        }
    }
    let automaton = nfa.reduce(MAX_STATES, work)?;
    let is_small = automaton.len() <= MAX_STATES && automaton.is_deterministic();
    Ok((is_small && !automaton.has_fallbacks() && automaton.final_states().next().is_some())
        .then_some(automaton))
}

fn each_sequence(set: &CharSet, mut visit: impl FnMut(&[(u8, u8)])) {
    for &(first, last) in set.ranges() {
        utf8::sequences(first, last, &mut |sequence| visit(sequence.ranges()));
    }
}

/// An expression and the state before it.
type ExprRun = (ExprId, u32);

/// Where runs lead, as far as it is known.
#[derive(Default)]
struct RunEnds {
    ends: FxHashMap<ExprRun, States>,
    /// Runs that are computed from a run.
    users: FxHashMap<ExprRun, FxHashSet<ExprRun>>,
    todo: Vec<ExprRun>,
}

struct Follow<'a> {
    places: &'a Places<'a>,
    automaton: Automaton,
    runs: RunEnds,
}

impl Follow<'_> {
    /// Whether whatever follows a rule agrees.
    fn agrees(&mut self, rule: RuleId, work: &Budget) -> Result<bool> {
        let places = self.places;
        if places.unknown.contains(&rule) || places.is_open(rule) {
            return Ok(false);
        }
        // Ends of expressions, and the states there.
        let mut seen: FxHashSet<ExprRun> = FxHashSet::default();
        let mut todo: Vec<ExprRun> = places.calls_of(rule).map(|id| (id, 0)).collect();
        while let Some((id, state)) = todo.pop() {
            work.spend(1)?;
            if !seen.insert((id, state)) {
                continue;
            }
            if seen.len() + todo.len() + self.runs.ends.len() > MAX_RUNS {
                return Ok(false);
            }
            for &owner in places.owners.get(&id).into_iter().flatten() {
                // Behind the root a text ends, and an end agrees with whatever was to come.
                if places.unknown.contains(&owner) || places.is_open(owner) {
                    return Ok(false);
                }
                todo.extend(places.calls_of(owner).map(|call| (call, state)));
            }
            for &parent in places.parents.get(&id).into_iter().flatten() {
                match places.grammar.expr(parent) {
                    Expr::Choice(_) => todo.push((parent, state)),
                    Expr::Sequence(children) => {
                        work.spend(children.len())?;
                        let here = children.iter().enumerate().filter(|(_, child)| **child == id);
                        for (place, _) in here {
                            let mut now: States = 1 << state;
                            for &child in &children[place + 1..] {
                                if now & !DISAGREES == 0 {
                                    break;
                                }
                                now = self.after(child, now, work)?;
                            }
                            if now & DISAGREES != 0 {
                                return Ok(false);
                            }
                            todo.extend(members(now).map(|state| (parent, state)));
                        }
                    }
                    &Expr::Repeat { body, .. } => {
                        todo.push((parent, state));
                        let again = self.after(body, 1 << state, work)?;
                        if again & DISAGREES != 0 {
                            return Ok(false);
                        }
                        todo.extend(members(again).map(|state| (body, state)));
                    }
                    _ => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    /// Where the strings of an expression lead from some states: the runs that are needed are
    /// computed until none changes.
    fn after(&mut self, id: ExprId, states: States, work: &Budget) -> Result<States> {
        let mut out = states & DISAGREES;
        for state in members(states) {
            self.ask((id, state), None);
            while let Some(run) = self.runs.todo.pop() {
                work.spend(1)?;
                if self.runs.ends.len() > MAX_RUNS {
                    return Ok(DISAGREES);
                }
                let found = self.compute(run, work)?;
                let known = self.runs.ends.entry(run).or_default();
                if *known | found != *known {
                    *known |= found;
                    let users = self.runs.users.get(&run);
                    self.runs.todo.extend(users.into_iter().flatten());
                }
            }
            out |= self.runs.ends[&(id, state)];
        }
        Ok(out)
    }

    /// What is known of a run, for another that is computed from it.
    fn ask(&mut self, run: ExprRun, user: Option<ExprRun>) -> States {
        if let Some(user) = user {
            self.runs.users.entry(run).or_default().insert(user);
        }
        let runs = &mut self.runs;
        *runs.ends.entry(run).or_insert_with(|| {
            runs.todo.push(run);
            0
        })
    }

    /// What is known of the runs of one expression from several states; `user` depends on them.
    fn ask_all(&mut self, id: ExprId, states: States, user: ExprRun) -> States {
        members(states)
            .fold(states & DISAGREES, |out, state| out | self.ask((id, state), Some(user)))
    }

    fn compute(&mut self, run: ExprRun, work: &Budget) -> Result<States> {
        let (id, state) = run;
        let start: States = 1 << state;
        let places = self.places;
        Ok(match places.grammar.expr(id) {
            Expr::Empty => start,
            Expr::Literal(bytes) => {
                work.spend(bytes.len())?;
                bytes.iter().fold(start, |now, &byte| self.step(now, byte, byte))
            }
            Expr::Class(set) => {
                let mut out = 0;
                let mut steps = 0;
                each_sequence(set, |ranges| {
                    steps += ranges.len();
                    let step = |now, &(first, last): &(u8, u8)| self.step(now, first, last);
                    out |= ranges.iter().fold(start, step);
                });
                work.spend(steps)?;
                out
            }
            Expr::Rule(rule) if places.unknown.contains(rule) => DISAGREES,
            Expr::Rule(rule) => self.ask_all(places.grammar.rule(*rule).body, start, run),
            Expr::Sequence(children) => {
                work.spend(children.len())?;
                let mut now = start;
                for &child in children {
                    now = self.ask_all(child, now, run);
                }
                now
            }
            Expr::Choice(children) => {
                work.spend(children.len())?;
                children.iter().fold(0, |out, &child| out | self.ask_all(child, start, run))
            }
            &Expr::Repeat { body, min, .. } => {
                // As often as it may be, and oftener.
                let first = self.ask_all(body, start, run);
                let mut out = first;
                loop {
                    let more = out | self.ask_all(body, out, run);
                    if more == out {
                        break;
                    }
                    out = more;
                }
                if min == 0 { out | start } else { out }
            }
            Expr::Tokens(_) | Expr::Macro(_) | Expr::Automaton(_) => DISAGREES,
        })
    }

    /// The states behind any byte of a range; a text that has a string of the lookahead has no state
    /// any more.
    fn step(&self, states: States, first: u8, last: u8) -> States {
        let mut out = states & DISAGREES;
        for state in members(states) {
            for byte in first..=last {
                match self.automaton.next(state, u32::from(byte)) {
                    Some(next) if self.automaton.is_final(next) => {}
                    Some(next) => out |= 1 << next,
                    None => out |= DISAGREES,
                }
            }
        }
        out
    }
}

/// The states of a set.
fn members(states: States) -> impl Iterator<Item = u32> {
    let mut rest = states & !DISAGREES;
    std::iter::from_fn(move || {
        let state = rest.trailing_zeros();
        rest &= rest.checked_sub(1)?;
        Some(state)
    })
}

#[cfg(test)]
#[path = "lookahead_tests.rs"]
mod tests;
