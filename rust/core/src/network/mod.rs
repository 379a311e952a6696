//! The network: each rule one automaton over byte classes and calls (a recursive transition network).
//!
//! Design: docs/design/network.md. docs/design/counting.md has states that count or are sets, docs/design/parts.md
//! has parts and identities.
//!
//! Invariants of a finished [`Network`]:
//! - completing a call takes at least one byte (the empty string was folded into the callers);
//! - no rule can call itself before it has read a byte, so what a state can read first is found by a walk without
//!   cycles (for charts there are rules as they were written too, which nobody calls: [`Network::as_written`]); but
//!   for networks without loops, which charts alone can read ([`Network::is_for_charts`]);
//! - a state without edges that is final is an *end*: a call that returns to one pushes nothing;
//! - with pruning, every state lies on a path from the start to a final state through productive
//!   calls; without, states are kept from which nothing can be completed, as XGrammar keeps them.
//!
//! Files:
//!
//! - from a grammar to the automata of its rules: `rules` takes these steps in turn: `analysis`, `lookahead` (before
//!   there are automata), `shapes` (what is written alike), `lower` (right-hand sides; `lower/repetitions`: which counts
//!   are kept; `direct`, `tree`: large ones without subset construction), `left_recursion`, `simplify`
//! - from the automata to a network: `build` ([`Network::make`]) over `assemble` (the tables of states), `written`
//!   (which form of a left-recursive rule charts read), `merge_classes`, `first_sets`, `delegation`
//! - a network linked of parts that other grammars share: `split`, `tags` and `common` say which parts there are,
//!   `part` makes one, `spelled` (kept as a `spelling`) and `link` put them together
//! - states that are in no table: `counter` has the bounds of a rule that counts, `counters` numbers states that count
//!   passes, `counting_states` answers questions about them; `sets` and `set_states` do the same for states that are sets
//!   of members, `members` says which of these completions read
//! - of a finished network: `adjacency` (what can stand beneath a frame), `identity`, `naming` and `tour` (what a state
//!   does, as a digest), `call_order`, `needed` (bytes that every text needs), `display` (for people)
//! - `class_set`: sets of byte classes; `options`: how a network is made; `stop_tokens`: the grammar over the ids of a
//!   vocabulary, before all of this

mod adjacency;
mod analysis;
mod assemble;
mod build;
mod call_order;
mod class_set;
mod common;
mod counter;
mod counters;
mod counting_states;
mod delegation;
mod direct;
mod display;
#[cfg(test)]
mod fallback_tests;
mod first_sets;
mod identity;
#[cfg(test)]
mod identity_tests;
mod left_recursion;
mod link;
mod lookahead;
mod lower;
mod members;
mod merge_classes;
mod naming;
mod needed;
mod options;
mod part;
mod rules;
mod set_states;
mod sets;
#[cfg(test)]
mod sets_tests;
mod shapes;
mod simplify;
mod spelled;
mod spelling;
mod split;
mod stop_tokens;
pub mod tags;
mod tour;
mod tree;
mod written;

pub use adjacency::{Adjacency, BOTTOM};
pub(crate) use call_order::CallOrder;
pub use class_set::{ClassSet, contains};
pub(crate) use class_set::{add_all, insert, meet, members};
pub use delegation::WIDE;
pub(crate) use identity::Quota;
pub(crate) use link::{Moved, Moves};
pub use lookahead::narrowing_part;
pub(crate) use lower::guards_refused;
pub(crate) use naming::Identity;
pub use options::{LeftRecursion, NetworkOptions};
pub use part::NetworkPart;
pub use split::{PartCache, PartCounters};
pub use stop_tokens::over_ids;

use crate::automata::alphabet::Alphabet;
use crate::automata::fallback::with_fallback;
use counters::Counters;
use delegation::Width;
pub(crate) use members::{MemberOrder, MemberPlace, MemberState};
use sets::SetStates;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// In the tables of a part, a call of another part: its place among the children.
const HOLE: u32 = 1 << 31;

/// No state.
const NONE: u32 = u32::MAX;

/// One call of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The start state of the callee.
    pub start: u32,
    /// Where it returns to.
    pub to: u32,
}

/// The calls of a state: a slice.
#[derive(Clone, Debug)]
pub enum Calls<'a> {
    /// From the tables.
    Listed(&'a [Call]),
    /// Of a counted repetition.
    One(Call),
    /// Of an automaton whose passes are counted, or those that a completion makes of members in any order.
    Several(Box<[Call]>),
}

impl Deref for Calls<'_> {
    type Target = [Call];

    #[inline]
    fn deref(&self) -> &[Call] {
        match self {
            Calls::Listed(calls) => calls,
            Calls::One(call) => std::slice::from_ref(call),
            Calls::Several(calls) => calls,
        }
    }
}

/// The automata of all rules: tables of states, and states that are sets of members. Copies share the
/// tables and the sets; [`Network::fresh`] has sets of its own.
#[derive(Clone, Debug)]
pub struct Network {
    tables: Arc<NetworkTables>,
    /// The states of rules with guards, where there are such rules.
    sets: Option<Arc<SetStates>>,
}

impl Deref for Network {
    type Target = NetworkTables;

    #[inline]
    fn deref(&self) -> &NetworkTables {
        &self.tables
    }
}

/// While a network is made, its tables are its own.
impl DerefMut for Network {
    fn deref_mut(&mut self) -> &mut NetworkTables {
        Arc::make_mut(&mut self.tables)
    }
}

/// What is written down of the automata of all rules.
#[derive(Clone, Debug)]
pub struct NetworkTables {
    alphabet: Alphabet,
    start: u32,
    accepts_empty: bool,
    rule_of: Vec<u32>,
    rule_starts: Vec<u32>,
    /// For each rule that is left its number in the grammar, or past those of the grammar.
    origins: Vec<u32>,
    /// For each rule that is left the one that says the same as it was written, or itself.
    written: Vec<u32>,
    /// The states that charts read: all before this one.
    read: u32,
    /// For each rule whether only charts can read it; empty where there is none.
    for_charts: Vec<bool>,
    finals: Vec<bool>,
    /// For each state the one of its rule on which it falls back: as which it reads a class of which it
    /// lists no edge; [`NONE`] for those that do not. Up to the last that does. Such a state lists an
    /// edge; the start of a rule never falls back, nor does a state on which others do.
    fallbacks: Vec<u32>,
    edge_starts: Vec<u32>,
    edges: Vec<(u8, u32)>,
    call_starts: Vec<u32>,
    calls: Vec<Call>,
    first: Vec<ClassSet>,
    /// States that stand for several positions of a repetition whose bounds were cut.
    cut: Vec<bool>,
    /// How many of the calls of a state, the first ones, are of rules that are shared; empty where
    /// none are.
    delegated: Vec<u8>,
    counters: Counters,
    /// The parts of which it was linked, each with its place.
    linked: Option<Arc<[link::PlacedPart]>>,
    /// What its states do, made when first asked for.
    identities: OnceLock<Arc<identity::Identities>>,
    /// The digest of all tables, made when first asked for.
    digest: OnceLock<Identity>,
    /// In which order called rules are gone through, made when first asked for.
    call_order: OnceLock<Arc<CallOrder>>,
    /// In which order completions read members, made when first asked for.
    member_orders: OnceLock<Option<Arc<members::MemberOrders>>>,
}

impl NetworkTables {
    /// Takes note that the last state of the tables falls back on another.
    fn fall_back(&mut self, other: u32) {
        let state = self.finals.len() - 1;
        debug_assert!(self.edge_starts[state] < self.edge_starts[state + 1]);
        self.fallbacks.resize(state, NONE);
        self.fallbacks.push(other);
    }
}

impl Network {
    /// The number of states.
    pub fn len(&self) -> usize {
        self.finals.len()
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> usize {
        let states = self.rule_of.capacity() * 4
            + self.finals.capacity()
            + self.fallbacks.capacity() * 4
            + self.cut.capacity()
            + self.delegated.capacity()
            + self.first.capacity() * size_of::<ClassSet>()
            + (self.edge_starts.capacity() + self.call_starts.capacity()) * 4;
        let rules = self.rule_starts.capacity() + self.origins.capacity() + self.written.capacity();
        let rules = rules * 4 + self.for_charts.capacity();
        // Parts that others may share are held, and counted, where parts are kept.
        let own = self.linked.iter().flat_map(|linked| linked.iter());
        let own = own.filter(|placed| !placed.part.is_kept);
        let own: usize = own.map(|placed| placed.part.bytes()).sum();
        states
            + own
            + rules
            + self.set_bytes()
            + self.counters.bytes()
            + self.edges.capacity() * size_of::<(u8, u32)>()
            + self.calls.capacity() * size_of::<Call>()
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

    /// Whether tokens are taken whole, by their ids.
    pub fn takes_tokens(&self) -> bool {
        self.alphabet.escape().is_some()
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
            None => match self.set_state(state) {
                Some((_, set)) => self.rule_of[set.listed as usize],
                None => self.counters.rule_of(state),
            },
        }
    }

    /// For each rule the first of its states.
    pub(crate) fn rule_starts(&self) -> &[u32] {
        &self.rule_starts
    }

    /// The rule that says the same as `rule` with left recursion as it was written, which charts
    /// read by; `rule` where that is the same. Nobody calls such a rule: its own calls are of the
    /// rules without left recursion, as all calls are.
    pub fn as_written(&self, rule: u32) -> u32 {
        self.written[rule as usize]
    }

    /// The states of the rules that charts read are those before this one.
    pub(crate) fn read_by_charts(&self) -> u32 {
        self.read
    }

    /// Whether only charts can read the network: left recursion stayed as it was written, without
    /// loops.
    pub fn is_for_charts(&self) -> bool {
        !self.for_charts.is_empty()
    }

    /// Whether only charts can read on from a state: its rule is left-recursive as it stands, or may
    /// call one that is.
    #[inline]
    pub(crate) fn needs_chart(&self, state: u32) -> bool {
        !self.for_charts.is_empty() && self.for_charts[self.rule_of(state) as usize]
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
            None => match self.set_state(state) {
                Some((_, set)) => self.finals[set.listed as usize],
                None => self.counters.is_final(state),
            },
        }
    }

    /// Whether a stack keeps the state: all but the ends, which are final and lead nowhere. A
    /// state that is not final and leads nowhere is kept: without pruning, the bytes that led
    /// there were taken.
    #[inline]
    pub fn stays(&self, state: u32) -> bool {
        if !self.is_listed(state) {
            return match self.set_state(state) {
                Some(_) => true,
                None => !self.counters.is_final(state) || self.counters.goes_on(state),
            };
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
        let classes = (classes, self.alphabet.escape());
        let calls: Vec<(u32, u32)> = self.calls.iter().map(|call| (call.start, call.to)).collect();
        let calls = (calls, self.counters.key());
        let tables = (&self.finals, &self.edge_starts, &self.edges, &self.call_starts, calls);
        let tables = (tables, &self.fallbacks, &self.rule_starts);
        let tables = (classes, self.start, self.accepts_empty, tables);
        match self.guards() {
            guards if guards.is_empty() => crate::hash::hash_of(&tables),
            guards => crate::hash::hash_of(&(tables, guards)),
        }
    }

    /// Whether a number is that of a state.
    pub fn is_state(&self, state: u32) -> bool {
        state < self.counters.end() || self.sets.as_ref().is_some_and(|sets| sets.is_met(state))
    }

    /// The number from which on states are sets.
    pub(crate) fn end_of_numbers(&self) -> u32 {
        self.counters.end()
    }

    /// The calls of a state in the tables.
    fn listed_calls(&self, state: u32) -> &[Call] {
        let q = state as usize;
        &self.calls[self.call_starts[q] as usize..self.call_starts[q + 1] as usize]
    }

    /// Whether the state is in the tables: of no counted repetition, and no set.
    #[inline]
    fn is_listed(&self, state: u32) -> bool {
        (state as usize) < self.finals.len()
    }

    /// The byte edges of a state, sorted by class.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = (u8, u32)> + '_ {
        let others = match self.fallback(state) {
            Some(other) => self.listed(other),
            None => &[],
        };
        with_fallback(self.listed(state), others)
    }

    /// The byte edges that a state lists, sorted by class: all it has, but for one that falls back.
    #[inline]
    pub fn listed(&self, state: u32) -> &[(u8, u32)] {
        if !self.is_listed(state) {
            return &[];
        }
        let q = state as usize;
        &self.edges[self.edge_starts[q] as usize..self.edge_starts[q + 1] as usize]
    }

    /// The state of the same rule as which one reads each class of which it lists no edge.
    #[inline]
    pub fn fallback(&self, state: u32) -> Option<u32> {
        self.fallbacks.get(state as usize).copied().filter(|&other| other != NONE)
    }

    /// Where a state goes over a class.
    #[inline]
    pub(crate) fn targets(&self, state: u32, class: u8) -> impl Iterator<Item = u32> + '_ {
        let from = |state: u32| {
            let edges = self.listed(state);
            &edges[edges.partition_point(|edge| edge.0 < class)..]
        };
        let mut edges = from(state);
        if edges.first().is_none_or(|edge| edge.0 != class)
            && let Some(other) = self.fallback(state)
        {
            edges = from(other);
        }
        edges.iter().take_while(move |edge| edge.0 == class).map(|edge| edge.1)
    }

    /// The calls of a state.
    #[inline]
    pub fn calls(&self, state: u32) -> Calls<'_> {
        if self.is_listed(state) {
            return Calls::Listed(self.listed_calls(state));
        }
        match self.set_state(state) {
            Some((sets, _)) => Calls::Listed(&sets.ways(self, state).calls),
            None => self.counters.calls(state),
        }
    }

    /// The byte classes that a state can read first. Of a state of an automaton that keeps count it may be
    /// those that the automaton reads without the count: [`Self::reads_first`] is exact.
    #[inline]
    pub fn first(&self, state: u32) -> &ClassSet {
        if self.is_listed(state) {
            return &self.first[state as usize];
        }
        if let Some((sets, _)) = self.set_state(state) {
            return &sets.ways(self, state).first;
        }
        match self.counters.goes_on(state) {
            true => &self.first[self.counters.listed(state) as usize],
            false => &[0; 4],
        }
    }

    /// The byte classes that a state reads first.
    pub(crate) fn reads_first(&self, state: u32) -> ClassSet {
        if !self.counts_an_automaton(state) {
            return *self.first(state);
        }
        self.calls(state).iter().fold([0; 4], |mut out, call| {
            out.iter_mut().zip(self.first(call.start)).for_each(|(a, b)| *a |= b);
            out
        })
    }
}
