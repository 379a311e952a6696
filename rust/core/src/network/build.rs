//! From a grammar to the table of states.

use super::counters::{Counter, Counters};
use super::shapes::Shapes;
use super::written::Order;
use super::{
    Call, ClassSet, MAX_DELEGATED, Network, NetworkOptions, Width, analysis, contains, insert,
    left_recursion, lower, simplify,
};
use crate::automata::alphabet::Alphabet;
use crate::automata::{Automaton, FIRST_CALL, call, callee, is_marker};
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::graph;
use crate::ids::RuleId;
use crate::limits::Limits;
use crate::work::Work;
use rustc_hash::FxHashMap;

/// Units of work for each state of a finished network: what is made of it later, whatever for,
/// begins with each of its states.
const FRAME: usize = 56;

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
        let is_needed = |(rule, &reachable): (usize, &bool)| {
            reachable && (!options.prune || facts.productive[rule])
        };
        let needed: Vec<bool> = reachable.iter().enumerate().map(is_needed).collect();
        let shapes = Shapes::new(grammar, &needed, options.simplify, work)?;
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
        for (rule, &needed) in (0..).map(RuleId::new).zip(&needed) {
            let is_first = shapes.first(rule) == rule;
            let automaton =
                if needed && is_first { lowering.rule(rule)? } else { Automaton::default() };
            states += automaton.len();
            edges += automaton.num_edges();
            check_states(states, &options.limits)?;
            check_edges(edges, &options.limits)?;
            automata.push(automaton);
        }

        // A start rule of our own: the root may occur in bodies.
        let start = automata.len();
        automata.push(Automaton::from_states(&[
            (false, [(call(shapes.first(root).index()), 1)].as_slice()),
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
        let changed = left_recursion::eliminate(&mut automata, &options.limits, work)?;
        let mut written = FxHashMap::default();
        for (rule, automaton) in changed.into_iter().filter(|_| options.charts) {
            written.insert(rule, automata.len());
            automata.push(automaton);
        }
        if options.prune {
            automata.iter_mut().filter(|a| !a.is_empty()).for_each(Automaton::trim);
        }
        let mut rules =
            simplify::Rules::new(automata, start, options.inline_budget, options.prune, work);
        rules.keep = counted.keys().copied().collect();
        rules.take_written(written);
        rules.width = options.share_wide.map(|least| Width { least, of: alphabet.widths() });
        if options.simplify {
            rules.simplify()?;
        }
        let accepts_empty = facts.nullable[root.index()];
        let (states, edges) = rules.size();
        work.spend(edges + FRAME * states)?;
        let mut out = Self::assemble(
            (&rules.automata, &rules.written),
            start,
            alphabet,
            accepts_empty,
            &counted,
            &options.limits,
        )?;
        if let Some(least) = options.share_wide {
            out.delegate(&Width { least, of: out.alphabet.widths() });
        }
        Ok(out)
    }

    fn assemble(
        (rules, written): (&[Automaton], &FxHashMap<usize, usize>),
        start: usize,
        alphabet: Alphabet,
        accepts_empty: bool,
        counted: &FxHashMap<usize, Counter>,
        limits: &Limits,
    ) -> Result<Self> {
        let order = Order::new(rules, start, written);
        let mut base = vec![u32::MAX; rules.len()];
        let (mut total, mut read) = (0, 0);
        for (place, &number) in order.rules.iter().enumerate() {
            base[number] = total as u32;
            total += rules[number].len();
            read = if place < order.read { total } else { read };
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
            written: Vec::new(),
            read: read as u32,
            finals: Vec::with_capacity(total),
            edge_starts: vec![0],
            edges: Vec::new(),
            call_starts: vec![0],
            calls: Vec::new(),
            first: Vec::new(),
            cut: Vec::new(),
            delegated: Vec::new(),
            counters: Counters::default(),
        };
        let present = || order.rules.iter().map(|&number| (number, &rules[number]));
        // Where calls of each rule lead: those of a rule that counts, to its own states.
        let mut starts = base.clone();
        for (rule, (number, automaton)) in present().enumerate() {
            if let Some((&counter, body)) = counted.get(&number).zip(automaton.left_calls().next())
            {
                let placed = counters.place(counter, base[body], rule as u32);
                starts[number] = placed.ok_or_else(too_many_passes)?;
            }
        }
        let mut origin: Vec<usize> = (0..rules.len()).collect();
        written.iter().for_each(|(&rule, &form)| origin[form] = rule);
        let mut numbers = vec![u32::MAX; rules.len()];
        for ((number, _), rule) in present().zip(0..) {
            numbers[number] = rule;
        }
        for (number, automaton) in present() {
            let offset = base[number];
            out.origins.push(origin[number] as u32);
            out.written.push(numbers[*written.get(&number).unwrap_or(&number)]);
            let rule = out.rule_starts.len() as u32;
            // The second state of a rule that counts stands for all after it: nothing leads there.
            let first_pass = (starts[number] != offset).then(|| starts[number] + 1);
            out.rule_starts.push(offset);
            for (state, edges) in automaton.states() {
                let from = out.edges.len();
                let mut alone = false;
                for &(letter, q) in edges {
                    match callee(letter) {
                        None if is_marker(letter) => alone = true,
                        Some(b) => {
                            let to = first_pass.unwrap_or(q + offset);
                            out.calls.push(Call { start: starts[b], to });
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
        out.counters = counters;
        out.first = out.first_sets(rules, &base);
        Ok(out)
    }

    /// Puts the calls that are delegated before the others.
    fn delegate(&mut self, width: &Width) {
        let states = 0..self.len() as u32;
        let mut wide = vec![false; self.num_rules()];
        // What is counted need not loop: it is the counting that does.
        let counts = |call: &Call| {
            self.counters_call(call.start).is_some_and(|body| {
                let first = self.first(body.start);
                width.is_wide((0..width.of.len() as u32).filter(|&c| contains(first, c as u8)))
            })
        };
        for q in states {
            let staying = self.edges(q).iter().filter(|e| e.1 == q).map(|e| u32::from(e.0));
            let loops = !self.is_final(q) && width.is_wide(staying);
            let counts = self.calls(q).iter().any(|call| !self.is_final(call.to) && counts(call));
            wide[self.rule_of(q) as usize] |= loops || counts;
        }
        let is_shared = |call: &Call| {
            self.is_listed(call.to)
                && match self.is_listed(call.start) {
                    true => wide[self.rule_of(call.start) as usize],
                    false => counts(call),
                }
        };
        let mut calls = self.calls.clone();
        let mut delegated = Vec::with_capacity(self.len());
        for q in 0..self.len() {
            let own = &mut calls[self.call_starts[q] as usize..self.call_starts[q + 1] as usize];
            own.sort_by_key(|call| !is_shared(call));
            let shared = own.iter().filter(|call| is_shared(call)).count();
            delegated.push(if shared <= MAX_DELEGATED { shared as u8 } else { 0 });
        }
        self.calls = calls;
        self.delegated = delegated;
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
                let passed = self.counters_call(call.start);
                let set = first[passed.map_or(call.start, |body| body.start) as usize];
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
