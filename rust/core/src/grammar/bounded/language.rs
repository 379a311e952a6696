//! The texts of a rule as an automaton over bytes, where they are regular.
//!
//! A rule may call itself as the last thing that it does: a call that goes on in the same state begins in
//! the same state. Any other rule that calls itself is refused.

use super::continues;
use crate::automata::lengths::{distances, sources};
use crate::automata::utf8;
use crate::automata::{Automaton, Nfa};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::{ByteAutomaton, Expr, Grammar};
use crate::ids::{ExprId, RuleId};
use rustc_hash::FxHashMap;

/// Texts as an automaton whose letters are bytes.
#[derive(Clone)]
pub(super) struct ByteLanguage {
    /// The texts but for the empty one.
    pub(super) automaton: Automaton,
    pub(super) has_empty: bool,
}

/// What becomes of a rule.
pub(super) enum RuleLanguage {
    Language(ByteLanguage),
    /// A rule within is lazy or has a smaller bound, and its texts have to be known first.
    Needs(RuleId),
}

impl ByteLanguage {
    /// The texts of a rule, whatever their length. `known` has those of some rules within.
    pub(super) fn of(
        grammar: &Grammar,
        rule: RuleId,
        known: &FxHashMap<RuleId, ByteLanguage>,
        max_states: usize,
        work: &Budget,
    ) -> Result<RuleLanguage> {
        let mut writer = LanguageWriter {
            grammar,
            bounded: rule,
            most: grammar.rule(rule).options.max_chars.unwrap_or(u32::MAX),
            known,
            nfa: Nfa::default(),
            skips: Vec::new(),
            calls: Vec::new(),
            starts: FxHashMap::default(),
            todo: Vec::new(),
            max_states,
            work,
        };
        let (start, end) = (writer.nfa.state(), writer.nfa.state());
        writer.nfa.set_final(end);
        writer.call(rule, start, end, None)?;
        while let Some((expr, from, to, call)) = writer.todo.pop() {
            work.spend(1)?;
            if let Some(inner) = writer.expr(expr, from, to, call)? {
                return Ok(RuleLanguage::Needs(inner));
            }
        }
        let has_empty = writer.skips_to(start, end);
        let automaton = writer.nfa.reduce(max_states, work)?;
        let language = Self { automaton, has_empty };
        if !grammar.rule(rule).options.lazy {
            return Ok(RuleLanguage::Language(language));
        }
        language.first_ends(work)?.map(RuleLanguage::Language).ok_or_else(|| {
            refused(grammar, rule, "no automaton of moderate size tells where it ends first")
        })
    }

    /// The shortest texts: no other is shorter.
    pub(super) fn shortest(&self, work: &Budget) -> Result<Self> {
        let automaton = &self.automaton;
        let mut out = Automaton::with_capacity(automaton.len(), automaton.num_edges());
        if self.has_empty {
            out.close_state(false);
            return Ok(Self { automaton: out, has_empty: true });
        }
        work.spend(automaton.num_edges())?;
        let states = 0..automaton.len() as u32;
        let edges =
            states.clone().flat_map(|p| automaton.edges_in_full(p).map(move |edge| (p, edge.1)));
        let finals: Vec<bool> = states.clone().map(|state| automaton.is_final(state)).collect();
        let bytes = distances(&sources(automaton.len(), edges), &finals, work)?;
        for state in states {
            let edges = automaton.edges_in_full(state);
            let nearer = edges.filter(|edge| bytes[edge.1 as usize] < bytes[state as usize]);
            nearer.for_each(|(byte, to)| out.push_edge(byte, to));
            out.close_state(automaton.is_final(state));
        }
        let ticks = Ticks::new(work);
        out.tidy_within(&ticks)?;
        out.renumber_within(&ticks)?;
        Ok(Self { automaton: out, has_empty: false })
    }

    /// The texts that do not begin with a shorter one; `None` where the automaton may be in several states at
    /// once.
    fn first_ends(&self, work: &Budget) -> Result<Option<Self>> {
        let automaton = &self.automaton;
        if !automaton.is_deterministic() {
            return Ok(None);
        }
        work.spend(automaton.num_edges())?;
        let mut out = Automaton::with_capacity(automaton.len(), automaton.num_edges());
        for state in 0..automaton.len() as u32 {
            let is_end = automaton.is_final(state) || self.has_empty;
            if !is_end {
                automaton.edges_in_full(state).for_each(|(byte, to)| out.push_edge(byte, to));
            }
            out.close_state(automaton.is_final(state));
        }
        let ticks = Ticks::new(work);
        out.tidy_within(&ticks)?;
        out.renumber_within(&ticks)?;
        Ok(Some(Self { automaton: out, has_empty: self.has_empty }))
    }
}

/// The refusal of a rule's option.
pub(super) fn refused(grammar: &Grammar, rule: RuleId, why: &str) -> Error {
    let rule = grammar.rule(rule);
    let construct = match &rule.options {
        options if options.lazy => "lazy",
        options if options.max_tokens.is_some() => "max_tokens",
        _ => "max_chars",
    };
    Error::Unsupported {
        construct: construct.to_owned(),
        message: format!(
            "rule {:?} must be one whose texts an automaton can follow, and {why}; give the option to a \
             smaller rule, or leave it out",
            rule.name
        ),
        position: rule.position,
    }
}

/// The place of a rule's body in the automaton, and the place in which it is called.
struct OpenedRule {
    rule: RuleId,
    within: Option<usize>,
}

struct LanguageWriter<'a> {
    grammar: &'a Grammar,
    /// The rule whose texts these are.
    bounded: RuleId,
    /// Its bound.
    most: u32,
    known: &'a FxHashMap<RuleId, ByteLanguage>,
    nfa: Nfa,
    /// The edges that read nothing.
    skips: Vec<(u32, u32)>,
    calls: Vec<OpenedRule>,
    /// Where a rule begins that goes on in some state: so a rule may call itself as the last thing it does.
    starts: FxHashMap<(RuleId, u32), u32>,
    todo: Vec<(ExprId, u32, u32, usize)>,
    max_states: usize,
    work: &'a Budget,
}

impl LanguageWriter<'_> {
    fn refused(&self, why: &str) -> Error {
        refused(self.grammar, self.bounded, why)
    }

    fn skip(&mut self, from: u32, to: u32) {
        self.nfa.skip(from, to);
        self.skips.push((from, to));
    }

    fn state(&mut self) -> Result<u32> {
        if self.nfa.len() < self.max_states {
            return Ok(self.nfa.state());
        }
        Err(Error::Limit {
            limit: "max_automaton_states",
            value: self.max_states as u64,
            message: format!(
                "the automaton of rule {:?}, which has a bound or is lazy, has more states; lower the \
                 counts in it, or raise the limit",
                self.grammar.rule(self.bounded).name
            ),
        })
    }

    /// Whether edges that read nothing lead from one state to another.
    fn skips_to(&self, from: u32, to: u32) -> bool {
        let mut targets: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        self.skips.iter().for_each(|&(p, q)| targets.entry(p).or_default().push(q));
        let mut seen = vec![false; self.nfa.len()];
        let mut todo = vec![from];
        while let Some(state) = todo.pop() {
            if !std::mem::replace(&mut seen[state as usize], true) {
                todo.extend(targets.get(&state).into_iter().flatten());
            }
        }
        seen[to as usize]
    }

    fn call(&mut self, rule: RuleId, from: u32, to: u32, within: Option<usize>) -> Result<()> {
        if let Some(&start) = self.starts.get(&(rule, to)) {
            self.skip(from, start);
            return Ok(());
        }
        let mut outer = within;
        while let Some(call) = outer {
            self.work.spend(1)?;
            if self.calls[call].rule == rule {
                let name = &self.grammar.rule(rule).name;
                return Err(self.refused(&format!("{name:?} calls itself before its end")));
            }
            outer = self.calls[call].within;
        }
        let start = self.state()?;
        self.skip(from, start);
        self.starts.insert((rule, to), start);
        self.calls.push(OpenedRule { rule, within });
        self.todo.push((self.grammar.rule(rule).body, start, to, self.calls.len() - 1));
        Ok(())
    }

    /// Adds the edges of an expression between two states; its parts go to `todo`. What comes back is a
    /// bounded rule within whose texts are not known.
    fn expr(&mut self, expr: ExprId, from: u32, to: u32, call: usize) -> Result<Option<RuleId>> {
        match self.grammar.expr(expr) {
            Expr::Empty => self.skip(from, to),
            Expr::Literal(bytes) => {
                let mut at = from;
                for (place, &byte) in bytes.iter().enumerate() {
                    let next = if place + 1 == bytes.len() { to } else { self.state()? };
                    self.nfa.edge(at, u32::from(byte), next);
                    at = next;
                }
            }
            Expr::Class(set) => {
                let mut sequences = Vec::new();
                for &(first, last) in set.ranges() {
                    utf8::sequences(first, last, &mut |sequence| sequences.push(sequence));
                }
                for sequence in sequences {
                    let ranges = sequence.ranges();
                    let mut at = from;
                    for (place, &(first, last)) in ranges.iter().enumerate() {
                        let next = if place + 1 == ranges.len() { to } else { self.state()? };
                        self.work.spend(1 + usize::from(last - first))?;
                        (first..=last).for_each(|byte| self.nfa.edge(at, u32::from(byte), next));
                        at = next;
                    }
                }
            }
            Expr::Sequence(parts) => {
                let mut at = from;
                for (place, &part) in parts.iter().enumerate() {
                    let next = if place + 1 == parts.len() { to } else { self.state()? };
                    self.todo.push((part, at, next, call));
                    at = next;
                }
            }
            Expr::Choice(parts) => {
                self.todo.extend(parts.iter().map(|&part| (part, from, to, call)));
            }
            &Expr::Repeat { body, min, max } => self.repeat(body, (min, max), (from, to), call)?,
            Expr::Rule(rule) => {
                let options = &self.grammar.rule(*rule).options;
                if options.max_tokens.is_some() && *rule != self.bounded {
                    let name = &self.grammar.rule(*rule).name;
                    return Err(self
                        .refused(&format!("it has the rule {name:?}, whose tokens are counted")));
                }
                // What is no shorter than the bound outside says nothing.
                let most = options.max_chars.filter(|&most| most < self.most);
                if most.is_none() && !options.lazy {
                    self.call(*rule, from, to, Some(call))?;
                } else if let Some(language) = self.known.get(rule) {
                    self.known_rule(language, most, from, to)?;
                } else {
                    return Ok(Some(*rule));
                }
            }
            Expr::Automaton(automaton) => self.automaton(automaton, (from, to), call)?,
            Expr::Tokens(_) => return Err(self.refused("it takes tokens whole")),
            Expr::Macro(named) => {
                return Err(self.refused(&format!("it has the macro {}", named.name)));
            }
        }
        Ok(None)
    }

    fn repeat(
        &mut self,
        body: ExprId,
        (min, max): (u32, Option<u32>),
        (from, to): (u32, u32),
        call: usize,
    ) -> Result<()> {
        let mut at = from;
        for _ in 0..min {
            self.work.spend(1)?;
            let next = self.state()?;
            self.todo.push((body, at, next, call));
            at = next;
        }
        let Some(max) = max else {
            let again = self.state()?;
            self.skip(at, again);
            self.todo.push((body, again, again, call));
            self.skip(again, to);
            return Ok(());
        };
        for _ in min..max {
            self.work.spend(1)?;
            self.skip(at, to);
            let next = self.state()?;
            self.todo.push((body, at, next, call));
            at = next;
        }
        self.skip(at, to);
        Ok(())
    }

    fn automaton(
        &mut self,
        automaton: &ByteAutomaton,
        (from, to): (u32, u32),
        call: usize,
    ) -> Result<()> {
        if !automaton.guards.is_empty() {
            return Err(self.refused("it has members in any order, or unique items"));
        }
        self.work.spend(automaton.size())?;
        let Some(written) = automaton.without_count(self.max_states, self.work)? else {
            return Err(self.refused("it counts far itself"));
        };
        let mut states = Vec::with_capacity(written.finals.len());
        for &is_final in &written.finals {
            let state = self.state()?;
            if is_final {
                self.skip(state, to);
            }
            states.push(state);
        }
        let at = |state: u32| states[state as usize];
        self.skip(from, at(written.start));
        for &(p, first, last, q) in written.bytes_in_full().iter() {
            self.work.spend(1 + usize::from(last - first))?;
            (first..=last).for_each(|byte| self.nfa.edge(at(p), u32::from(byte), at(q)));
        }
        self.todo.extend(written.parts.iter().map(|&(p, part, q)| (part, at(p), at(q), call)));
        Ok(())
    }

    /// A rule within whose texts are known: its states, with a bound once for each number of characters.
    fn known_rule(
        &mut self,
        language: &ByteLanguage,
        most: Option<u32>,
        from: u32,
        to: u32,
    ) -> Result<()> {
        if language.has_empty {
            self.skip(from, to);
        }
        let ByteLanguage { automaton, .. } = language;
        // The text begins in a state of its own: its first byte begins a character, whatever it is.
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        let mut todo = vec![(from, 0, 0, true)];
        while let Some((here, state, done, is_first)) = todo.pop() {
            for (letter, target) in automaton.edges_in_full(state) {
                self.work.spend(1)?;
                let next = match most {
                    None => 0,
                    Some(_) => done + u32::from(is_first || !continues(letter as u8)),
                };
                if most.is_some_and(|most| next > most) {
                    continue;
                }
                let there = match numbers.get(&(target, next)) {
                    Some(&there) => there,
                    None => {
                        let there = self.state()?;
                        numbers.insert((target, next), there);
                        if automaton.is_final(target) {
                            self.skip(there, to);
                        }
                        todo.push((there, target, next, false));
                        there
                    }
                };
                self.nfa.edge(here, letter, there);
            }
        }
        Ok(())
    }
}
