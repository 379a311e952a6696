//! Right-hand sides to automata. [`repetitions`] writes repetitions out or has them counted.

mod repetitions;

use super::NetworkOptions;
use super::analysis::Analysis;
use super::counter::{CountedUnit, Counter};
use super::shapes::Shapes;
use crate::automata::alphabet::{Alphabet, AlphabetBuilder};
use crate::automata::{Automaton, FIRST_MARKER, Nfa, call, ids, utf8};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Position, Result};
use crate::grammar::{ByteAutomaton, Expr, Grammar, Guard};
use crate::ids::{ExprId, RuleId};
use repetitions::{Counted, CutPosition};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// Bytes of a literal between two looks at an interrupt, and those that count as one unit of work.
const BYTES_AT_ONCE: usize = 1 << 14;
const BYTES_OF_WORK: usize = 16;

/// Choices of more parts than this are looked through for equal ones.
const MANY: usize = 16;

/// Refuses guards where there is no exact meaning for them.
pub(crate) fn guards_refused(grammar: &Grammar, what: &str) -> Error {
    if grammar.has_unique_items() {
        return Error::Unsupported {
            construct: "uniqueItems".into(),
            message: format!(
                "{what} cannot keep the items that an array has read, as tokfold.compile without token \
                 classes and tokfold.recognize do; leave the keyword out and check the result"
            ),
            position: grammar.rule(grammar.root()).position,
        };
    }
    Error::Unsupported {
        construct: "members in any order".into(),
        message: format!(
            "{what} cannot keep the set of the members that were read; use the engine without token \
             classes, or a fixed order of members"
        ),
        position: grammar.rule(grammar.root()).position,
    }
}

/// The byte classes of all terminals of a grammar.
pub(crate) fn alphabet(grammar: &Grammar, work: &Budget) -> Result<Alphabet> {
    let mut builder = AlphabetBuilder::default();
    for expr in grammar.exprs() {
        work.spend(1)?;
        match expr {
            Expr::Literal(bytes) => {
                for part in bytes.chunks(BYTES_AT_ONCE) {
                    work.spend(part.len() / BYTES_OF_WORK)?;
                    part.iter().for_each(|&b| builder.add(b, b));
                }
            }
            Expr::Automaton(automaton) => {
                work.spend(automaton.size())?;
                automaton.bytes.iter().for_each(|&(_, first, last, _)| builder.add(first, last));
            }
            Expr::Tokens(ids) => {
                work.spend(ids.len())?;
                builder.add_escape();
                for &(first, last) in ids {
                    ids::sequences(first, last, &mut |sequence| {
                        sequence.iter().for_each(|&(a, b)| builder.add(a, b));
                    });
                }
            }
            Expr::Class(set) => {
                work.spend(set.ranges().len())?;
                for &(first, last) in set.ranges() {
                    utf8::sequences(first, last, &mut |sequence| {
                        sequence.ranges().iter().for_each(|&(a, b)| builder.add(a, b));
                    });
                }
            }
            _ => {}
        }
    }
    builder.finish().ok_or_else(|| Error::Unsupported {
        construct: "Token".into(),
        message: "the rules tell all 256 bytes apart and take tokens whole as well; \
                  write fewer single bytes"
            .into(),
        position: Position::default(),
    })
}

/// Bounds on how many parts the texts of an automaton have.
type PartBounds = (u32, Option<u32>);

/// An automaton whose parts are no longer counted.
struct WrittenOut {
    automaton: ByteAutomaton,
    /// Where it was cut: its shape, its own bounds, and for each state the passes done.
    cut: Option<(u32, PartBounds, Vec<u32>)>,
}

fn automaton_bounds(expr: &Expr) -> PartBounds {
    match expr {
        Expr::Automaton(automaton) => automaton.counts.unwrap_or_default(),
        _ => (0, None),
    }
}

/// Writes the right-hand sides of one grammar as automata.
pub(crate) struct Lowering<'a> {
    pub(crate) grammar: &'a Grammar,
    pub(crate) alphabet: &'a Alphabet,
    pub(crate) analysis: &'a Analysis,
    pub(crate) options: &'a NetworkOptions,
    pub(crate) shapes: &'a Shapes,
    /// The marker of each position of each repetition that was cut: by the body's shape, the
    /// bounds and the position.
    pub(crate) markers: RefCell<FxHashMap<CutPosition, u32>>,
    pub(crate) counted: RefCell<Counted>,
    /// Rules that were written down as they stand: see [`super::direct`].
    pub(crate) as_they_stand: RefCell<FxHashSet<usize>>,
    /// Rules with guards, with the guards on the calls of other rules.
    pub(crate) guarded: RefCell<FxHashMap<usize, FxHashMap<usize, Guard>>>,
    /// Rules that stay as they are: neither their callers nor their equals become one with them.
    pub(crate) kept: RefCell<FxHashSet<usize>>,
    /// Automata that count their parts, by rule.
    pub(crate) with_lengths: RefCell<FxHashMap<usize, Counter>>,
    pub(crate) work: &'a Budget,
}

impl Lowering<'_> {
    /// The language of a rule without the empty string, minimal where that is affordable.
    ///
    /// A call of a nullable rule has an epsilon edge beside it: from here on, completing a call
    /// takes at least one byte.
    ///
    /// # Errors
    /// [`Error::Limit`] when the automaton grows past the limits.
    pub(crate) fn rule(&self, rule: RuleId) -> Result<Automaton> {
        let body = self.grammar.rule(rule).body;
        if let Expr::Automaton(automaton) = self.grammar.expr(body)
            && !automaton.guards.is_empty()
        {
            return self.with_guards(automaton, rule);
        }
        if let Expr::Automaton(automaton) = self.grammar.expr(body)
            && automaton.counts.is_some()
        {
            return self.with_lengths(automaton, rule);
        }
        if let Expr::Automaton(automaton) = self.grammar.expr(body)
            && automaton.has_copies
        {
            self.kept.borrow_mut().insert(rule.index());
        }
        if let Some((mut automaton, is_large)) = self.direct(body)? {
            if is_large {
                self.as_they_stand.borrow_mut().insert(rule.index());
            }
            if self.options.prune {
                automaton.trim_within(&Ticks::new(self.work))?;
            }
            return Ok(automaton);
        }
        self.body(body, rule)
    }

    /// A rule with guards: its automaton as it stands, the guards left out, and aside the guards.
    fn with_guards(&self, automaton: &ByteAutomaton, rule: RuleId) -> Result<Automaton> {
        if !self.options.prune {
            return Err(guards_refused(self.grammar, "a network that is not pruned"));
        }
        let is_unique = |guard: &(RuleId, Guard)| matches!(guard.1, Guard::Unique(_));
        let may_repeat = self.options.for_ends;
        let has_unique = automaton.guards.iter().any(is_unique);
        if has_unique && !self.options.unique_items && !may_repeat {
            return Err(guards_refused(self.grammar, "this use of a grammar"));
        }
        self.work.spend(automaton.size())?;
        if may_repeat && !has_unique {
            return self.with_member_states(automaton, rule);
        }
        let Some((mut out, guards)) = self.of_guarded(automaton) else {
            return Err(guards_refused(self.grammar, "an automaton of this form"));
        };
        out.trim_within(&Ticks::new(self.work))?;
        if !(has_unique && may_repeat) {
            self.guarded.borrow_mut().insert(rule.index(), guards);
        }
        self.as_they_stand.borrow_mut().insert(rule.index());
        Ok(out)
    }

    /// A rule with members in any order without its guards. States behind different members must not become equal:
    /// each has a marker that tells the member.
    fn with_member_states(&self, automaton: &ByteAutomaton, rule: RuleId) -> Result<Automaton> {
        let (marked, members) = self.grammar.with_member_states(automaton);
        self.work.spend(marked.size())?;
        let shape = self.shapes.of(self.grammar.rule(rule).body);
        self.lowered(rule, |nfa, work, from, to| {
            let states = self.automaton(nfa, &marked, (from, to), work);
            let sink = nfa.state();
            let mut markers = self.markers.borrow_mut();
            for (state, member) in members {
                let next = FIRST_MARKER + markers.len() as u32;
                let marker = *markers.entry((shape, member, None, 0)).or_insert(next);
                nfa.edge(states[state as usize], marker, sink);
            }
        })
    }

    /// A rule that counts its parts: its automaton as it stands, the bounds aside; written out where
    /// nothing is counted.
    fn with_lengths(&self, automaton: &ByteAutomaton, rule: RuleId) -> Result<Automaton> {
        self.work.spend(automaton.size())?;
        if self.options.counters
            && self.options.counted_automata
            && self.options.prune
            && !(automaton.counts_tokens && self.options.without_tokens)
            && let Some((min, max)) = automaton.counts
            && let Some((mut out, _)) = self.of_guarded(automaton)
        {
            out.trim_within(&Ticks::new(self.work))?;
            let unit =
                if automaton.counts_tokens { CountedUnit::Tokens } else { CountedUnit::Passes };
            self.with_lengths.borrow_mut().insert(rule.index(), Counter { min, max, unit });
            self.as_they_stand.borrow_mut().insert(rule.index());
            return Ok(out);
        }
        let written = self.written_out(self.grammar.rule(rule).body, automaton, rule)?;
        self.lowered(rule, |nfa, work, from, to| {
            self.without_count(nfa, &written, (from, to), work);
        })
    }

    /// An automaton without its count, of which no more is written out than tokens tell apart.
    fn written_out(
        &self,
        expr: ExprId,
        automaton: &ByteAutomaton,
        rule: RuleId,
    ) -> Result<WrittenOut> {
        if automaton.counts_tokens {
            if !self.options.without_tokens {
                let rule = self.grammar.rule(rule);
                return Err(Error::Unsupported {
                    construct: "max_tokens".into(),
                    message: format!(
                        "rule {:?}: only the engine counts the tokens of a rule, as tokfold.compile makes \
                         it; leave the budget out",
                        rule.written_name()
                    ),
                    position: rule.position,
                });
            }
            let automaton =
                ByteAutomaton { counts: None, counts_tokens: false, ..automaton.clone() };
            return Ok(WrittenOut { automaton, cut: None });
        }
        let most = self.options.limits.max_network_states;
        let cut = match self.options.repeat_window {
            Some(window) => automaton.within_window(window, self.work)?,
            None => None,
        };
        let shown = cut.as_ref().unwrap_or(automaton);
        let written = shown.with_passes(most, self.work)?;
        let (automaton, passes) = written.ok_or_else(|| self.too_large(rule))?;
        let bounds = automaton_bounds(self.grammar.expr(expr));
        let cut = cut.map(|_| (self.shapes.of(expr), bounds, passes));
        Ok(WrittenOut { automaton, cut })
    }

    /// Adds an automaton without its count. As with repetitions, what is cut must not become equal to
    /// what is cut elsewhere: each state has a marker that tells its passes.
    fn without_count(
        &self,
        nfa: &mut Nfa,
        WrittenOut { automaton, cut }: &WrittenOut,
        (from, to): (u32, u32),
        work: &mut Vec<(ExprId, u32, u32)>,
    ) {
        let states = self.automaton(nfa, automaton, (from, to), work);
        let Some((shape, (min, max), passes)) = cut else { return };
        let sink = nfa.state();
        let mut markers = self.markers.borrow_mut();
        for (&state, &passes) in states.iter().zip(passes) {
            let next = FIRST_MARKER + markers.len() as u32;
            let key = (*shape, *min, *max, passes);
            nfa.edge(state, *markers.entry(key).or_insert(next), sink);
        }
    }

    fn body(&self, body: ExprId, rule: RuleId) -> Result<Automaton> {
        self.lowered(rule, |_, work, from, to| work.push((body, from, to)))
    }

    /// The automaton of a rule that begins with some edges, and parts that are expressions.
    fn lowered(
        &self,
        rule: RuleId,
        begin: impl FnOnce(&mut Nfa, &mut Vec<(ExprId, u32, u32)>, u32, u32),
    ) -> Result<Automaton> {
        let mut nfa = Nfa::default();
        let start = nfa.state();
        let end = nfa.state();
        nfa.set_final(end);
        let mut work = Vec::new();
        begin(&mut nfa, &mut work, start, end);
        let mut counted = 0;
        while let Some((expr, from, to)) = work.pop() {
            self.expr(&mut nfa, expr, from, to, &mut work, rule)?;
            let size = nfa.len() + nfa.num_edges();
            self.work.spend(1 + size - counted)?;
            counted = size;
            self.check(&nfa, rule, work.len())?;
        }
        let cap = 4 * nfa.len() + 1_000;
        let cap = cap.min(self.options.limits.max_network_states);
        let mut automaton = nfa.reduce(cap, self.work)?;
        if self.options.prune {
            automaton.trim_within(&Ticks::new(self.work))?;
        }
        Ok(automaton)
    }

    /// Adds edges for `expr` between two states; parts that are expressions go to `work`.
    fn expr(
        &self,
        nfa: &mut Nfa,
        expr: ExprId,
        from: u32,
        to: u32,
        work: &mut Vec<(ExprId, u32, u32)>,
        rule: RuleId,
    ) -> Result<()> {
        match self.grammar.expr(expr) {
            Expr::Empty => nfa.skip(from, to),
            Expr::Literal(bytes) => self.literal(nfa, bytes, (from, to), rule)?,
            Expr::Class(set) => {
                for &(first, last) in set.ranges() {
                    utf8::sequences(first, last, &mut |sequence| {
                        self.byte_ranges(nfa, sequence.ranges(), from, to);
                    });
                }
            }
            Expr::Tokens(ids) => {
                if let Some(escape) = self.alphabet.escape() {
                    let begun = nfa.state();
                    nfa.edge(from, u32::from(escape), begun);
                    for &(first, last) in ids {
                        ids::sequences(first, last, &mut |sequence| {
                            self.byte_ranges(nfa, &sequence, begun, to);
                        });
                    }
                }
            }
            Expr::Rule(rule) => {
                if !self.options.prune || self.analysis.productive[rule.index()] {
                    nfa.edge(from, call(self.shapes.first(*rule).index()), to);
                }
                if self.analysis.nullable[rule.index()] {
                    nfa.skip(from, to);
                }
            }
            Expr::Sequence(parts) => {
                let mut at = from;
                for (i, &part) in parts.iter().enumerate() {
                    let next = if i + 1 == parts.len() { to } else { nfa.state() };
                    work.push((part, at, next));
                    at = next;
                }
            }
            Expr::Choice(parts) if parts.len() > MANY => {
                let mut seen = FxHashSet::default();
                let fresh = parts.iter().filter(|part| seen.insert(self.shapes.of(**part)));
                work.extend(fresh.map(|&part| (part, from, to)));
            }
            Expr::Choice(parts) => work.extend(parts.iter().map(|&part| (part, from, to))),
            Expr::Repeat { body, min, max } => {
                self.repeat(nfa, *body, (*min, *max), (from, to), work, rule)?;
            }
            Expr::Automaton(automaton) if !automaton.guards.is_empty() => {
                return Err(guards_refused(self.grammar, "an automaton within a rule"));
            }
            Expr::Automaton(automaton) if automaton.counts.is_some() => {
                let written = self.written_out(expr, automaton, rule)?;
                self.without_count(nfa, &written, (from, to), work);
            }
            Expr::Automaton(automaton) => {
                self.automaton(nfa, automaton, (from, to), work);
            }
            Expr::Macro(_) => unreachable!("refused before"),
        }
        Ok(())
    }

    /// A path of the bytes of a literal.
    fn literal(
        &self,
        nfa: &mut Nfa,
        bytes: &[u8],
        (from, to): (u32, u32),
        rule: RuleId,
    ) -> Result<()> {
        // What does not fit is refused before it is written.
        let limits = &self.options.limits;
        if nfa.num_edges() + bytes.len() <= limits.max_network_edges
            && nfa.len() + bytes.len() > limits.max_network_states
        {
            return Err(self.too_large(rule));
        }
        let mut at = from;
        // Tables that grow are copied as a whole, which nobody can end.
        nfa.reserve_path(bytes.len().min(limits.max_network_states));
        for (i, &byte) in bytes.iter().enumerate() {
            self.work.tick_every(i + 1)?;
            let next = if i + 1 == bytes.len() { to } else { nfa.state() };
            nfa.edge(at, u32::from(self.alphabet.class(byte)), next);
            at = next;
        }
        Ok(())
    }

    /// Its states, which are returned, are none of those that lead to it or away: it may come back to its
    /// start.
    fn automaton(
        &self,
        nfa: &mut Nfa,
        automaton: &ByteAutomaton,
        (from, to): (u32, u32),
        work: &mut Vec<(ExprId, u32, u32)>,
    ) -> Vec<u32> {
        let states: Vec<u32> = automaton.finals.iter().map(|_| nfa.state()).collect();
        let at = |state: u32| states[state as usize];
        nfa.skip(from, at(automaton.start));
        for (&state, &is_final) in states.iter().zip(&automaton.finals) {
            if is_final {
                nfa.skip(state, to);
            }
        }
        for &(p, first, last, q) in automaton.bytes_in_full().iter() {
            for class in self.alphabet.classes(first, last) {
                nfa.edge(at(p), u32::from(class), at(q));
            }
        }
        work.extend(automaton.parts.iter().map(|&(p, part, q)| (part, at(p), at(q))));
        states
    }

    fn byte_ranges(&self, nfa: &mut Nfa, ranges: &[(u8, u8)], from: u32, to: u32) {
        let mut at = from;
        for (i, &(a, b)) in ranges.iter().enumerate() {
            let next = if i + 1 == ranges.len() { to } else { nfa.state() };
            for class in self.alphabet.classes(a, b) {
                nfa.edge(at, u32::from(class), next);
            }
            at = next;
        }
    }

    fn check(&self, nfa: &Nfa, rule: RuleId, pending: usize) -> Result<()> {
        let limits = &self.options.limits;
        if nfa.num_edges() > limits.max_network_edges {
            return Err(self.too_many(
                "max_network_edges",
                limits.max_network_edges,
                "edges",
                rule,
            ));
        }
        let states = nfa.len().max(pending);
        if states < limits.max_network_states { Ok(()) } else { Err(self.too_large(rule)) }
    }

    fn too_large(&self, rule: RuleId) -> Error {
        let limit = self.options.limits.max_network_states;
        self.too_many("max_network_states", limit, "states", rule)
    }

    fn too_many(&self, limit: &'static str, value: usize, what: &str, rule: RuleId) -> Error {
        Error::Limit {
            limit,
            value: value as u64,
            message: format!(
                "rule {:?} needs more {what} than that; lower its repetition bounds, write fewer \
                 or smaller parts, or raise the limit",
                self.grammar.rule(rule).name
            ),
        }
    }
}
