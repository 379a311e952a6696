//! The network: each rule one automaton over byte classes and calls (a recursive transition
//! network, DESIGN.md section 4).
//!
//! Invariants of a finished [`Network`]:
//! - completing a call takes at least one byte (the empty string was folded into the callers);
//! - no rule can call itself before it has read a byte, so what a state can read first is found
//!   by a walk without cycles;
//! - a state without edges that is final is an *end*: a call that returns to one pushes nothing;
//! - with pruning, every state lies on a path from the start to a final state through productive
//!   calls; without, states are kept from which nothing can be completed, as XGrammar keeps them.
//!
//! Dependencies inside: [`analysis`](self) -> lower -> left_recursion -> simplify -> here.

mod adjacency;
mod analysis;
mod counters;
mod display;
mod graph;
mod left_recursion;
mod lower;
mod simplify;

pub use adjacency::{Adjacency, BOTTOM};

use crate::automata::alphabet::Alphabet;
use crate::automata::{Automaton, FIRST_CALL, call, callee, is_marker};
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::ids::RuleId;
use crate::limits::Limits;
use crate::work::Work;
use counters::{Counter, Counters};
use rustc_hash::FxHashMap;
use std::ops::Deref;

/// Units of work for each state of a finished network: what is made of it later, whatever for,
/// begins with each of its states.
const FRAME: usize = 56;

/// How a network is made.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Drop what cannot be completed.
    pub prune: bool,
    /// Ignore `(= ...)`: for grammars whose lookahead is implied by the rules.
    pub skip_lookahead: bool,
    /// Keep at most so many copies on either side of a repetition's lower bound: exact for the
    /// displacement of tokens of less than half as many bytes, not for recognition. `None` keeps
    /// all.
    pub repeat_window: Option<u32>,
    /// Growth in states that inlining one rule may cause.
    pub inline_budget: usize,
    /// Merge and inline rules. Without, each rule keeps its states, and the network is larger.
    pub simplify: bool,
    /// Count large repetitions instead of writing them out. Then some states are not in the
    /// tables; needs `prune`.
    pub counters: bool,
    /// Bounds on states and edges.
    pub limits: Limits,
}

impl Default for NetworkOptions {
    fn default() -> Self {
        Self {
            prune: true,
            skip_lookahead: false,
            repeat_window: None,
            inline_budget: 20,
            simplify: true,
            counters: false,
            limits: Limits::default(),
        }
    }
}

/// A set of byte classes.
pub type ClassSet = [u64; 4];

/// Whether a class is in a set.
#[inline]
pub fn contains(set: &ClassSet, class: u8) -> bool {
    set[class as usize >> 6] >> (class & 63) & 1 == 1
}

fn insert(set: &mut ClassSet, class: u8) {
    set[class as usize >> 6] |= 1 << (class & 63);
}

/// One call of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The start state of the callee.
    pub start: u32,
    /// Where it returns to.
    pub to: u32,
}

/// The calls of a state: a slice.
#[derive(Clone, Copy, Debug)]
pub enum Calls<'a> {
    /// From the tables.
    Listed(&'a [Call]),
    /// Of a counted repetition.
    One(Call),
}

impl Deref for Calls<'_> {
    type Target = [Call];

    #[inline]
    fn deref(&self) -> &[Call] {
        match self {
            Calls::Listed(calls) => calls,
            Calls::One(call) => std::slice::from_ref(call),
        }
    }
}

/// The automata of all rules in one table of states.
#[derive(Clone, Debug)]
pub struct Network {
    alphabet: Alphabet,
    start: u32,
    accepts_empty: bool,
    rule_of: Vec<u32>,
    rule_starts: Vec<u32>,
    /// For each rule that is left its number in the grammar, or past those of the grammar.
    origins: Vec<u32>,
    finals: Vec<bool>,
    edge_starts: Vec<u32>,
    edges: Vec<(u8, u32)>,
    call_starts: Vec<u32>,
    calls: Vec<Call>,
    first: Vec<ClassSet>,
    /// States that stand for several positions of a repetition whose bounds were cut.
    cut: Vec<bool>,
    counters: Counters,
}

impl Network {
    /// The network of a grammar.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what the network cannot express exactly and, with pruning, for
    /// a grammar without any string; [`Error::Limit`] when a bound on states, edges or work is
    /// reached.
    pub fn new(grammar: &Grammar, options: &NetworkOptions) -> Result<Self> {
        let mut go_on = || true;
        Self::make(grammar, options, &Work::new(&options.limits, &mut go_on))
    }

    /// The network of a grammar, made under a count of work that others may go on with, and that
    /// can be ended.
    ///
    /// # Errors
    /// Those of [`Network::new`] and [`Work::spend`].
    pub fn make(grammar: &Grammar, options: &NetworkOptions, work: &Work<'_>) -> Result<Self> {
        // Three passes over all expressions.
        work.spend(3 * grammar.size())?;
        let reachable = analysis::reachable(grammar, options.skip_lookahead)?;
        let facts = analysis::Analysis::new(grammar);
        let root = grammar.root();
        if options.prune && !facts.productive[root.index()] {
            return Err(Error::Unsupported {
                construct: grammar.rule(root).name.clone(),
                message: "the language is empty: no derivation from this rule ever ends; \
                          add an alternative that does not call the rule again"
                    .to_owned(),
                position: grammar.rule(root).position,
            });
        }
        let alphabet = lower::alphabet(grammar, work)?;
        let shapes = lower::shapes(grammar, work)?;
        let lowering = lower::Lowering {
            grammar,
            alphabet: &alphabet,
            analysis: &facts,
            options,
            shapes: &shapes,
            markers: Default::default(),
            counted: Default::default(),
            work,
        };
        let mut automata = Vec::with_capacity(grammar.rules().len() + 1);
        let (mut states, mut edges) = (0, 0);
        for (i, &reachable) in reachable.iter().enumerate() {
            let needed = reachable && (!options.prune || facts.productive[i]);
            let automaton =
                if needed { lowering.rule(RuleId::new(i))? } else { Automaton::default() };
            states += automaton.len();
            edges += automaton.num_edges();
            check_states(states, &options.limits)?;
            check_edges(edges, &options.limits)?;
            automata.push(automaton);
        }

        // A start rule of our own: the root may occur in bodies.
        let start = automata.len();
        automata.push(Automaton::from_states(&[
            (false, [(call(root.index()), 1)].as_slice()),
            (true, &[]),
        ]));
        let mut counted = FxHashMap::default();
        for (automaton, counter) in lowering.counted()? {
            counted.extend(counter.map(|counter| (automata.len(), counter)));
            states += automaton.len();
            edges += automaton.num_edges();
            check_states(states, &options.limits)?;
            check_edges(edges, &options.limits)?;
            automata.push(automaton);
        }
        if left_recursion::is_in_cycle(&automata, |a| counted.contains_key(&a)) {
            // What is before a pass would have to be counted from behind: written out instead.
            let options = NetworkOptions { counters: false, ..options.clone() };
            return Self::make(grammar, &options, work);
        }
        left_recursion::eliminate(&mut automata, &options.limits, work)?;
        if options.prune {
            automata.iter_mut().filter(|a| !a.is_empty()).for_each(Automaton::trim);
        }
        let mut rules =
            simplify::Rules::new(automata, start, options.inline_budget, options.prune, work);
        rules.keep = counted.keys().copied().collect();
        if options.simplify {
            rules.simplify()?;
        }
        let accepts_empty = facts.nullable[root.index()];
        let (states, edges) = rules.size();
        work.spend(edges + FRAME * states)?;
        Self::assemble(&rules.automata, start, alphabet, accepts_empty, &counted, &options.limits)
    }

    fn assemble(
        rules: &[Automaton],
        start: usize,
        alphabet: Alphabet,
        accepts_empty: bool,
        counted: &FxHashMap<usize, Counter>,
        limits: &Limits,
    ) -> Result<Self> {
        let mut base = vec![u32::MAX; rules.len()];
        let mut total = 0;
        for (automaton, base) in rules.iter().zip(&mut base) {
            *base = total as u32;
            total += automaton.len();
        }
        check_states(total, limits)?;
        check_edges(rules.iter().map(Automaton::num_edges).sum(), limits)?;
        let mut counters = Counters::after(total);
        let map = merge_classes(rules, alphabet.len());
        let mut out = Self {
            alphabet: alphabet.merged(&map),
            start: base[start],
            accepts_empty,
            rule_of: Vec::with_capacity(total),
            rule_starts: Vec::new(),
            origins: Vec::new(),
            finals: Vec::with_capacity(total),
            edge_starts: vec![0],
            edges: Vec::new(),
            call_starts: vec![0],
            calls: Vec::new(),
            first: Vec::new(),
            cut: Vec::new(),
            counters: Counters::default(),
        };
        for (number, automaton) in rules.iter().enumerate().filter(|(_, a)| !a.is_empty()) {
            let offset = base[number];
            out.origins.push(number as u32);
            let rule = out.rule_starts.len() as u32;
            // The second state of a rule that counts stands for all after it: nothing leads there.
            let first_pass = match counted.get(&number).zip(automaton.left_calls().next()) {
                None => None,
                Some((&counter, body)) => match counters.place(counter, base[body], rule) {
                    None => return Err(too_many_passes()),
                    first => first,
                },
            };
            out.rule_starts.push(offset);
            for (state, edges) in automaton.states() {
                let from = out.edges.len();
                let mut alone = false;
                for &(letter, q) in edges {
                    match callee(letter) {
                        None if is_marker(letter) => alone = true,
                        Some(b) => {
                            let to = first_pass.unwrap_or(q + offset);
                            out.calls.push(Call { start: base[b], to });
                        }
                        None => out.edges.push((map[letter as usize], q + offset)),
                    }
                }
                out.edges[from..].sort_unstable();
                dedup_from(&mut out.edges, from);
                out.cut.push(alone);
                out.rule_of.push(rule);
                out.finals.push(automaton.is_final(state));
                out.edge_starts.push(out.edges.len() as u32);
                out.call_starts.push(out.calls.len() as u32);
            }
        }
        out.first = out.first_sets(rules, &base);
        out.counters = counters;
        Ok(out)
    }

    /// What each state can read first, calls included; callees first, which is an order since no
    /// left call leads back.
    fn first_sets(&self, rules: &[Automaton], base: &[u32]) -> Vec<ClassSet> {
        let mut first: Vec<ClassSet> = (0..self.len())
            .map(|q| {
                let mut set = [0; 4];
                self.edges(q as u32).iter().for_each(|&(class, _)| insert(&mut set, class));
                set
            })
            .collect();
        let add_callees = |first: &mut Vec<ClassSet>, q: u32| {
            for call in self.calls(q).iter() {
                let set = first[call.start as usize];
                first[q as usize].iter_mut().zip(set).for_each(|(a, b)| *a |= b);
            }
        };
        let order = graph::components(rules.len(), |a| rules[a].left_calls().collect());
        for a in order.into_iter().flatten().filter(|&a| !rules[a].is_empty()) {
            add_callees(&mut first, base[a]);
        }
        for q in 0..self.len() as u32 {
            add_callees(&mut first, q);
        }
        first
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Never: there is a start.
    pub fn is_empty(&self) -> bool {
        self.finals.is_empty()
    }

    /// The number of rules that are left.
    pub fn num_rules(&self) -> usize {
        self.rule_starts.len()
    }

    /// The byte classes that the network tells apart.
    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The start state. Minimization may have merged it with an equal state that is not final.
    pub fn start(&self) -> u32 {
        self.start
    }

    /// Whether the empty string is in the language.
    pub fn accepts_empty(&self) -> bool {
        self.accepts_empty
    }

    /// The rule that a state belongs to.
    pub fn rule_of(&self, state: u32) -> u32 {
        match self.rule_of.get(state as usize) {
            Some(&rule) => rule,
            None => self.counters.rule_of(state),
        }
    }

    /// The number in the grammar of the rule that a state belongs to.
    pub fn origin_of(&self, state: u32) -> u32 {
        self.origins[self.rule_of(state) as usize]
    }

    /// Whether the rule of a state may be complete there.
    #[inline]
    pub fn is_final(&self, state: u32) -> bool {
        match self.finals.get(state as usize) {
            Some(&is_final) => is_final,
            None => self.counters.is_final(state),
        }
    }

    /// Whether a stack keeps the state: all but the ends, which are final and lead nowhere. A
    /// state that is not final and leads nowhere is kept: without pruning, the bytes that led
    /// there were taken.
    #[inline]
    pub fn stays(&self, state: u32) -> bool {
        if !self.is_listed(state) {
            return self.counters.call(state).is_some() || !self.counters.is_final(state);
        }
        let q = state as usize;
        !self.finals[q]
            || self.edge_starts[q] != self.edge_starts[q + 1]
            || self.call_starts[q] != self.call_starts[q + 1]
    }

    /// Whether the state stands for several positions of a repetition whose bounds were cut.
    pub(crate) fn is_cut(&self, state: u32) -> bool {
        self.cut[state as usize]
    }

    /// Whether there is any such state.
    pub(crate) fn has_cuts(&self) -> bool {
        self.cut.contains(&true)
    }

    /// Tells networks apart, in any process.
    pub fn fingerprint(&self) -> u64 {
        let classes: Vec<u8> = (0..=255).map(|byte| self.alphabet.class(byte)).collect();
        let calls: Vec<(u32, u32)> = self.calls.iter().map(|call| (call.start, call.to)).collect();
        let calls = (calls, self.counters.key());
        let tables = (&self.finals, &self.edge_starts, &self.edges, &self.call_starts, calls);
        crate::hash::hash_of(&(classes, self.start, self.accepts_empty, tables))
    }

    /// Whether a number is that of a state.
    pub fn is_state(&self, state: u32) -> bool {
        state < self.counters.end()
    }

    /// Whether the state is in the tables, and none of a counted repetition.
    #[inline]
    fn is_listed(&self, state: u32) -> bool {
        (state as usize) < self.finals.len()
    }

    /// A state that does with every token of at most `longest` bytes what `state` does.
    #[inline]
    pub(crate) fn like(&self, state: u32, longest: usize) -> u32 {
        if self.is_listed(state) { state } else { self.counters.like(state, longest) }
    }

    /// The byte edges of a state, sorted by class.
    #[inline]
    pub fn edges(&self, state: u32) -> &[(u8, u32)] {
        if !self.is_listed(state) {
            return &[];
        }
        let q = state as usize;
        &self.edges[self.edge_starts[q] as usize..self.edge_starts[q + 1] as usize]
    }

    /// The calls of a state.
    #[inline]
    pub fn calls(&self, state: u32) -> Calls<'_> {
        if !self.is_listed(state) {
            return self.counters.call(state).map_or(Calls::Listed(&[]), Calls::One);
        }
        let q = state as usize;
        Calls::Listed(&self.calls[self.call_starts[q] as usize..self.call_starts[q + 1] as usize])
    }

    /// The byte classes that a state can read first.
    #[inline]
    pub fn first(&self, state: u32) -> &ClassSet {
        if self.is_listed(state) {
            return &self.first[state as usize];
        }
        self.counters.call(state).map_or(&[0; 4], |call| &self.first[call.start as usize])
    }
}

fn check_states(states: usize, limits: &Limits) -> Result<()> {
    if states <= limits.max_network_states {
        return Ok(());
    }
    Err(Error::Limit {
        limit: "max_network_states",
        value: limits.max_network_states as u64,
        message: format!(
            "the network has {states} states or more; simplify the grammar or raise the limit"
        ),
    })
}

fn check_edges(edges: usize, limits: &Limits) -> Result<()> {
    if edges <= limits.max_network_edges {
        return Ok(());
    }
    Err(Error::Limit {
        limit: "max_network_edges",
        value: limits.max_network_edges as u64,
        message: format!(
            "the network has {edges} edges or more; simplify the grammar or raise the limit"
        ),
    })
}

fn too_many_passes() -> Error {
    Error::Limit {
        limit: "max_network_states",
        value: 1 << 31,
        message: "the bounds of the repetitions add up to more; lower them, or drop an upper \
                  bound that no text reaches"
            .to_owned(),
    }
}

fn dedup_from<T: PartialEq>(items: &mut Vec<T>, from: usize) {
    let mut keep = from;
    for i in from..items.len() {
        if i == from || items[i] != items[keep - 1] {
            items.swap(keep, i);
            keep += 1;
        }
    }
    items.truncate(keep);
}

/// Maps each byte class to a number that it shares with the classes that no state tells apart.
fn merge_classes(rules: &[Automaton], num_classes: usize) -> Vec<u8> {
    let mut moves: Vec<Vec<(u32, u32, u32)>> = vec![Vec::new(); num_classes];
    for (r, automaton) in rules.iter().enumerate() {
        for (p, edges) in automaton.states() {
            for &(letter, q) in edges.iter().filter(|e| e.0 < FIRST_CALL) {
                moves[letter as usize].push((r as u32, p, q));
            }
        }
    }
    let mut ids: FxHashMap<&[(u32, u32, u32)], u8> = FxHashMap::default();
    moves
        .iter()
        .map(|moves| {
            let next = ids.len() as u8;
            *ids.entry(moves.as_slice()).or_insert(next)
        })
        .collect()
}
