//! From a grammar to the automata of its rules: lowered, without left recursion, simplified. Rules that no text
//! completes are left out here, and a grammar without any text is refused: `empty_language`.

use super::counter::Counter;
use super::shapes::Shapes;
use super::{LeftRecursion, NetworkOptions, Width, analysis, left_recursion, lower, simplify};
use crate::apart::Apart;
use crate::automata::alphabet::Alphabet;
use crate::automata::{Automaton, call, callee};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::{Grammar, Guard};
use crate::ids::RuleId;
use crate::limits::Limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::Cell;

/// Units of work for each state of a finished network: what is made of it later, whatever for,
/// begins with each of its states.
pub(super) const FRAME: usize = 56;

/// Units of work for 64 rules that a call can begin, where the network is for charts only.
const CHART_WORD: usize = 8;

/// What is outside of the rules that are made.
pub(super) struct Outside {
    /// Rules that are parts of their own, with how many bytes may come first in each: their bodies
    /// say only whether they are nullable and productive.
    pub(super) parts: FxHashMap<usize, u32>,
    /// Whether the root gets a caller, which nobody calls: the root may occur in bodies.
    pub(super) has_caller: bool,
    /// Whether the rules are all that the network is made of, and not linked with others.
    pub(super) is_whole: bool,
    /// Whether left recursion was met among the rules.
    pub(super) is_left_recursive: Cell<bool>,
}

impl Outside {
    /// Nothing: the rules are all there are.
    pub(super) fn nothing() -> Self {
        Self::of(FxHashMap::default(), true, true)
    }

    /// Some parts, with a caller or not, of rules that are all there are or not.
    pub(super) fn of(parts: FxHashMap<usize, u32>, has_caller: bool, is_whole: bool) -> Self {
        Self { parts, has_caller, is_whole, is_left_recursive: Cell::new(false) }
    }
}

/// The guards on the calls of a rule, by the rule that is called.
pub(super) type Guards = FxHashMap<usize, Guard>;

/// The rules of a grammar as automata.
pub(super) struct RuleSet {
    pub(super) automata: Apart<Automaton>,
    /// For rules that were left-recursive the rule as it was written, which nobody calls.
    pub(super) written: FxHashMap<usize, usize>,
    pub(super) start: usize,
    pub(super) alphabet: Alphabet,
    pub(super) accepts_empty: bool,
    /// The rules that count.
    pub(super) counted: FxHashMap<usize, Counter>,
    /// Those of them that are automata, not repetitions.
    pub(super) with_lengths: FxHashSet<usize>,
    /// The rules with guards, and the guards on their calls, by the rule that is called.
    pub(super) guarded: FxHashMap<usize, Guards>,
    /// Whether there is a large rule that was written down as it stands.
    pub(super) has_large: bool,
    /// Whether left recursion became loops, if there was any.
    pub(super) has_loops: bool,
}

/// Rules that were lowered, and what holds of them whatever becomes of their left recursion.
#[derive(Clone)]
struct Lowered<'a> {
    automata: Apart<Automaton>,
    start: usize,
    accepts_empty: bool,
    alphabet: &'a Alphabet,
    counted: &'a FxHashMap<usize, Counter>,
    with_lengths: &'a FxHashSet<usize>,
    guarded: &'a FxHashMap<usize, Guards>,
    as_they_stand: &'a FxHashSet<usize>,
    kept: &'a FxHashSet<usize>,
    outside: &'a Outside,
    options: &'a NetworkOptions,
    work: &'a Budget,
}

impl RuleSet {
    /// The rules that the root needs.
    ///
    /// # Errors
    /// Those of [`super::Network::make`].
    pub(super) fn make(
        grammar: &Grammar,
        outside: &Outside,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Self> {
        // Three passes over all expressions.
        work.spend(3 * grammar.size())?;
        let ticks = Ticks::new(work);
        let is_elsewhere = |rule: RuleId| outside.parts.contains_key(&rule.index());
        let reachable = analysis::reachable(grammar, options.skip_lookahead, is_elsewhere, work)?;
        let facts = analysis::Analysis::new(grammar, &ticks)?;
        let root = grammar.root();
        if options.prune && !facts.productive[root.index()] {
            return Err(empty_language(grammar));
        }
        let alphabet = lower::alphabet(grammar, work)?;
        let is_needed = |(rule, &reachable): (usize, &bool)| {
            let is_here = reachable && !outside.parts.contains_key(&rule);
            is_here && (!options.prune || facts.productive[rule])
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
            as_they_stand: Default::default(),
            guarded: Default::default(),
            with_lengths: Default::default(),
            kept: Default::default(),
            work,
        };
        let mut size = Size { limits: &options.limits, states: 0, edges: 0 };
        let mut automata = lower_needed(&lowering, &needed, &mut size, &ticks)?;
        // The number of the caller is taken where there is none too: what counts comes after.
        let root_rule = shapes.first(root).index();
        let guarded = lowering.guarded.take();
        let mut counted = lowering.with_lengths.take();
        // States that are sets or count are called: the tables do not begin with one.
        let is_called = guarded.contains_key(&root_rule) || counted.contains_key(&root_rule);
        let has_caller = outside.has_caller || is_called;
        let start = if has_caller { automata.len() } else { root_rule };
        automata.push(if has_caller { caller_of(root_rule) } else { Automaton::default() });
        let with_lengths: FxHashSet<usize> = counted.keys().copied().collect();
        for (automaton, counter) in lowering.counted()? {
            counted.extend(counter.map(|counter| (automata.len(), counter)));
            size.add(&automaton)?;
            automata.push(automaton);
        }
        let has_states = |rule: &usize| counted.contains_key(rule) || guarded.contains_key(rule);
        for body in wrap_bodies(&mut automata, &counted, has_states) {
            size.add(&body)?;
            automata.push(body);
        }
        if left_recursion::is_in_cycle(&automata, |a| guarded.contains_key(&a), work)? {
            return Err(lower::guards_refused(grammar, "left recursion of the rule"));
        }
        if left_recursion::is_in_cycle(&automata, |a| counted.contains_key(&a), work)? {
            // What is before a pass would have to be counted from behind: written out instead.
            let options = NetworkOptions { counters: false, ..options.clone() };
            return Self::make(grammar, outside, &options, work);
        }
        let (as_they_stand, kept) = (lowering.as_they_stand.take(), lowering.kept.take());
        let cycle = left_recursion::largest_cycle(&automata, work)?;
        outside.is_left_recursive.set(cycle.is_some());
        let lowered = Lowered {
            automata,
            start,
            accepts_empty: facts.nullable[root.index()],
            alphabet: &alphabet,
            counted: &counted,
            with_lengths: &with_lengths,
            guarded: &guarded,
            as_they_stand: &as_they_stand,
            kept: &kept,
            outside,
            options,
            work,
        };
        lowered.rules(cycle)
    }
}

impl Lowered<'_> {
    /// The rules of a network, with left recursion as the options say. `cycle` says how many rules
    /// call each other before they have read anything.
    fn rules(self, cycle: Option<usize>) -> Result<RuleSet> {
        // A text with tokens that are taken whole is read in ways of different lengths.
        // Charts keep no sets of members.
        let may_keep =
            self.outside.is_whole && self.alphabet.escape().is_none() && self.guarded.is_empty();
        let without = match (cycle, self.options.left_recursion) {
            (None, _) => return self.finish(true),
            (_, LeftRecursion::Kept) if may_keep => return self.finish(false),
            (_, LeftRecursion::Fitting) => may_keep.then(|| self.clone()),
            _ => None,
        };
        let by_chart = may_keep && self.options.left_recursion == LeftRecursion::Both;
        let (work, done) = (self.work, self.work.done());
        match (self.finish(true), without) {
            (Err(Error::Limit { .. }), Some(without)) => {
                work.back_to(done);
                without.finish(false)
            }
            (Err(Error::Limit { limit, value, message }), None) => {
                let message = passed_by_loops(&message, cycle.unwrap_or(1), by_chart);
                Err(Error::Limit { limit, value, message })
            }
            (made, _) => made,
        }
    }

    fn finish(self, with_loops: bool) -> Result<RuleSet> {
        let Self { mut automata, start, options, work, .. } = self;
        let mut written = FxHashMap::default();
        if with_loops {
            let changed = left_recursion::eliminate(&mut automata, &options.limits, work)?;
            let is_kept = options.left_recursion != LeftRecursion::Loops;
            for (rule, automaton) in changed.into_iter().filter(|_| is_kept) {
                written.insert(rule, automata.len());
                automata.push(automaton);
            }
        }
        if options.prune {
            let ticks = Ticks::new(work);
            for automaton in automata.iter_mut().filter(|a| !a.is_empty()) {
                ticks.step()?;
                automaton.trim_within(&ticks)?;
            }
        }
        let mut rules =
            simplify::Rules::new(automata, start, options.inline_budget, options.prune, work);
        // So do those with guards, and those that are called with one: the guards go by them.
        let called = self.guarded.values().flat_map(|guards| guards.keys());
        let keep = self.counted.keys().chain(self.guarded.keys()).chain(called);
        rules.keep = keep.chain(self.kept).copied().collect::<FxHashSet<_>>();
        rules.outside.clone_from(&self.outside.parts);
        rules.is_quick = options.is_quick;
        rules.as_they_stand.clone_from(self.as_they_stand);
        rules.take_written(written);
        rules.width = options.share_wide.map(|least| Width { least, of: self.alphabet.widths() });
        if options.simplify {
            rules.simplify()?;
        }
        let (states, edges) = rules.size()?;
        work.spend(edges + FRAME * states)?;
        if !with_loops {
            // Charts list for each state the rules that it can begin.
            let present = rules.automata.iter().filter(|a| !a.is_empty());
            let calls: usize = present.clone().map(|a| a.calls().count()).sum();
            work.spend(CHART_WORD * calls * present.count().div_ceil(64))?;
        }
        // Looked at where without loops it may be less.
        check_states(states, &options.limits)?;
        check_edges(edges, &options.limits)?;
        Ok(RuleSet {
            has_large: rules.as_they_stand.iter().any(|rule| !self.with_lengths.contains(rule)),
            automata: rules.automata,
            written: rules.written,
            start,
            accepts_empty: self.accepts_empty,
            alphabet: self.alphabet.clone(),
            counted: self.counted.clone(),
            with_lengths: self.with_lengths.clone(),
            guarded: self.guarded.clone(),
            has_loops: with_loops,
        })
    }
}

/// A pass begins at a state of the tables, and rules that count or are sets begin at others: a rule in between
/// calls each of those that is a body. Returns the rules in between, which come after all others.
fn wrap_bodies(
    automata: &mut Apart<Automaton>,
    counted: &FxHashMap<usize, Counter>,
    has_states: impl Fn(&usize) -> bool,
) -> Vec<Automaton> {
    let mut order: Vec<usize> = counted.keys().copied().collect();
    order.sort_unstable();
    let mut between: FxHashMap<usize, usize> = FxHashMap::default();
    let mut out = Vec::new();
    for rule in order {
        for (_, body, _) in automata[rule].calls().filter(|(_, body, _)| has_states(body)) {
            between.entry(body).or_insert_with(|| {
                out.push(caller_of(body));
                automata.len() + out.len() - 1
            });
        }
        automata[rule].relabel(|letter| {
            callee(letter).and_then(|body| between.get(&body)).map_or(letter, |&rule| call(rule))
        });
    }
    out
}

/// The right-hand sides of the rules that are needed, each shape once, with nothing in the place of others.
fn lower_needed(
    lowering: &lower::Lowering<'_>,
    needed: &[bool],
    size: &mut Size<'_>,
    ticks: &Ticks,
) -> Result<Apart<Automaton>> {
    let mut automata = Apart::from(Vec::with_capacity(needed.len() + 1));
    for (rule, &needed) in (0..).map(RuleId::new).zip(needed) {
        ticks.step()?;
        let is_first = lowering.shapes.first(rule) == rule;
        let automaton =
            if needed && is_first { lowering.rule(rule)? } else { Automaton::default() };
        size.add(&automaton)?;
        automata.push(automaton);
    }
    Ok(automata)
}

/// A rule that calls another and does nothing else.
fn caller_of(rule: usize) -> Automaton {
    Automaton::from_states(&[(false, [(call(rule), 1)].as_slice()), (true, &[])])
}

fn empty_language(grammar: &Grammar) -> Error {
    let root = grammar.rule(grammar.root());
    Error::Unsupported {
        construct: root.name.clone(),
        message: "the language is empty: no text of this rule ever ends, as where it always calls itself \
                  again, or none matches, as of the pattern `$a` or of an intersection; add an alternative \
                  that has a text"
            .to_owned(),
        position: root.position,
    }
}

/// An error of rules with left recursion as loops, with what to do about those.
fn passed_by_loops(message: &str, rules: usize, by_chart: bool) -> String {
    let advice = match by_chart {
        true => "engine=\"chart\" does without its loops",
        false => "break it up",
    };
    format!("{message}. A left-recursive cycle of {rules} rules may be why: {advice}")
}

/// States and edges of all rules so far.
struct Size<'l> {
    limits: &'l Limits,
    states: usize,
    edges: usize,
}

impl Size<'_> {
    fn add(&mut self, automaton: &Automaton) -> Result<()> {
        self.states += automaton.len();
        self.edges += automaton.num_edges();
        check_states(self.states, self.limits)?;
        check_edges(self.edges, self.limits)
    }
}

pub(super) fn check_states(states: usize, limits: &Limits) -> Result<()> {
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

pub(super) fn check_edges(edges: usize, limits: &Limits) -> Result<()> {
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
