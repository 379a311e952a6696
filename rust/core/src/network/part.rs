//! Parts: rules that are made once, by what they say, and linked into any number of networks.
//!
//! Design: docs/design/parts.md, "Parts".
//!
//! A part has the tables of its own rules; what it calls of others are its *children*. It does not
//! know where it will stand: its states are numbered from 0, its byte classes are those that its own
//! rules tell apart. What depends on its rules and children alone is worked out here, once; the rest
//! when a network is linked.

use super::identity::{Identities, Quota, STATES_AT_ONCE, class_sets};
use super::naming::{DigestSource, Identity, LetterSet};
use super::rules::{Outside, RuleSet};
use super::spelling::KeptSpelling;
use super::{ClassSet, HOLE, Network, NetworkOptions, Width};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::grammar::Grammar;
use crate::ids::RuleId;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Edges over the classes of a network for each over those of a part, about.
const EDGES_FOR_ONE: usize = 2;

/// Rules ready to be linked.
#[derive(Debug)]
pub struct NetworkPart {
    /// Equal for parts that say the same by the same rules; `None` where that was not looked at.
    pub(super) key: Option<Identity>,
    /// Whether a cache of parts holds it, or did, and counts it.
    pub(super) is_kept: bool,
    /// The tables of its own rules, without what can be read first.
    pub(super) tables: Network,
    /// What its rules call besides, by the number in their calls: see [`HOLE`].
    pub(super) children: Vec<Arc<NetworkPart>>,
    /// Its rules, each after those that it calls before it has read anything.
    pub(super) callees_first: Vec<u32>,
    /// What can be read first, and whether the rule at which it is entered is wide.
    first: LetterSet,
    is_wide: bool,
    identities: OnceLock<Identities>,
    /// Whether its states are not described one by one, and the digest of all tables with what they
    /// call: see [`DigestSource::large`].
    is_large: bool,
    whole: OnceLock<Identity>,
    /// How deep its children are nested.
    depth: u32,
    /// As it was linked last.
    pub(super) kept: KeptSpelling,
}

impl NetworkPart {
    /// The part of a grammar's root.
    ///
    /// `children` are the parts of some of its rules, whose bodies say only whether they are
    /// nullable and productive. With `has_caller` the root is called by a rule of its own that nobody
    /// calls, as the root of a whole network must be.
    ///
    /// # Errors
    /// Those of [`Network::make`].
    pub(super) fn make(
        grammar: &Grammar,
        children: &FxHashMap<RuleId, Arc<NetworkPart>>,
        has_caller: bool,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Self> {
        let width = |part: &Arc<NetworkPart>| part.first_width();
        let parts = children.iter().map(|(rule, part)| (rule.index(), width(part))).collect();
        let outside = Outside::of(parts, has_caller, false);
        let rules = RuleSet::make(grammar, &outside, options, work)?;
        Self::of_rules(&rules, children, options, work)
    }

    /// The part of rules, some of which are other parts.
    pub(super) fn of_rules(
        rules: &RuleSet,
        children: &FxHashMap<RuleId, Arc<NetworkPart>>,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Self> {
        // In the order of the rules, so that equal grammars make equal parts.
        let mut used: Vec<usize> =
            rules.automata.iter().flat_map(|a| a.calls()).map(|c| c.1).collect();
        used.retain(|rule| children.contains_key(&RuleId::new(*rule)));
        used.sort_unstable();
        used.dedup();
        let places: FxHashMap<usize, u32> = used.iter().copied().zip(0..).collect();
        let children = used.iter().map(|&rule| children[&RuleId::new(rule)].clone()).collect();
        let tables = Network::assemble(rules, &places, &options.limits, work)?;
        let mut out = Self::of_tables(tables, children, options, work)?;
        out.is_large = rules.has_large || !rules.guarded.is_empty();
        Ok(out)
    }

    /// The part of tables in which calls of children are holes.
    pub(super) fn of_tables(
        tables: Network,
        children: Vec<Arc<NetworkPart>>,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Self> {
        let ticks = Ticks::new(work);
        let callees_first = tables.callees_first(&ticks)?;
        let depth = children.iter().map(|child| child.depth + 1).max().unwrap_or(0);
        let mut out = Self {
            key: None,
            is_kept: false,
            tables,
            children,
            callees_first,
            first: [0; 5],
            is_wide: false,
            identities: OnceLock::new(),
            is_large: false,
            whole: OnceLock::new(),
            depth,
            kept: KeptSpelling::default(),
        };
        let firsts = out.firsts();
        let root = out.tables.rule_of(out.tables.start) as usize;
        out.first = firsts[root];
        if let Some(least) = options.share_wide {
            let width = Width { least, of: out.tables.alphabet.widths() };
            let children = &out.children;
            let first = |tables: &Network, start: u32| match start {
                start if start >= HOLE => children[(start & !HOLE) as usize].first_width(),
                start => bytes(&firsts[tables.rule_of(start) as usize]),
            };
            let is_wide = |child: u32| children[child as usize].is_wide;
            out.is_wide = out.tables.delegate(&width, first, is_wide, &ticks)?[root];
        }
        Ok(out)
    }

    /// What each of its rules can read first.
    fn firsts(&self) -> Vec<LetterSet> {
        let tables = &self.tables;
        let sets = class_sets(&tables.alphabet);
        let mut out = vec![[0; 5]; tables.num_rules()];
        for &rule in &self.callees_first {
            let start = tables.rule_starts[rule as usize];
            let mut first: LetterSet = [0; 5];
            let mut add = |more: &LetterSet| first.iter_mut().zip(more).for_each(|(a, b)| *a |= b);
            tables.edges(start).for_each(|edge| add(&sets[edge.0 as usize]));
            for call in tables.calls(start).iter() {
                match tables.begun(call.start) {
                    start if start >= HOLE => add(&self.children[(start & !HOLE) as usize].first),
                    start => add(&out[tables.rule_of(start) as usize]),
                }
            }
            out[rule as usize] = first;
        }
        out
    }

    /// How many bytes can come first.
    pub(super) fn first_width(&self) -> u32 {
        bytes(&self.first)
    }

    /// Whether the empty string is among its strings; its callers have to take care of it.
    pub(super) fn is_nullable(&self) -> bool {
        self.tables.accepts_empty
    }

    /// The digest of one of its states; `None` where more of its own would have to be described than
    /// `quota` allows. What it calls was, mostly: others share it.
    pub(super) fn find_identity(&self, state: u32, quota: &mut Quota) -> Option<Identity> {
        let identities = self.identities.get_or_init(|| Identities::new(&self.tables));
        let outer = |child: u32| {
            let child = &self.children[child as usize];
            let found = child.find_identity(child.tables.start, &mut Quota::all());
            found.expect("however many states it takes")
        };
        let whole = || *self.whole.get_or_init(|| self.digest(&outer));
        let large = self.is_large.then_some(&whole as &dyn Fn() -> Identity);
        let is_made = self.whole.get().is_some();
        let large_cost = if is_made { 0 } else { self.tables.len() / STATES_AT_ONCE };
        let source = DigestSource { tables: &self.tables, outer: &outer, large, large_cost };
        identities.find(&source, state, quota)
    }

    /// The digest of the tables as they stand, with what they call: a state's number and this say all
    /// that it does.
    pub(super) fn digest(&self, outer: &dyn Fn(u32) -> Identity) -> Identity {
        // What a child is made of says all that it does, and is known; others with these tables
        // are made of the same.
        let name = |(child, part): (u32, &Arc<Self>)| part.key.unwrap_or_else(|| outer(child));
        self.tables.digest((0..).zip(&self.children).map(name))
    }

    /// A key for a part of which what its rules say is not put into words: equal for equal tables
    /// around children of equal keys.
    pub(super) fn key_of_tables(&self, options: &NetworkOptions) -> Identity {
        let outer = |child: u32| {
            let child = &self.children[child as usize];
            child.key.unwrap_or_else(|| child.key_of_tables(options))
        };
        let tables = &self.tables;
        let mut hasher = blake3::Hasher::new_derive_key("tokfold part by its tables");
        hasher.update(&self.digest(&outer));
        hasher
            .update(format!("{:?}", (tables.start, tables.accepts_empty, tables.read)).as_bytes());
        hasher.update(format!("{:?}", (&tables.rule_starts, &tables.written, options)).as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// Whether it is another but for what its children without a key say.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        let keys = |part: &Self| part.children.iter().map(|child| child.key).collect::<Vec<_>>();
        keys(self) == keys(other) && self.has_tables_of(other)
    }

    /// Whether it is another but for what its children say.
    pub(super) fn has_tables_of(&self, other: &Self) -> bool {
        let (a, b) = (&self.tables, &other.tables);
        let tables = |t: &Network| (t.start, t.accepts_empty, t.alphabet.clone(), t.counters.key());
        tables(a) == tables(b)
            && self.children.len() == other.children.len()
            && (&a.finals, &a.fallbacks) == (&b.finals, &b.fallbacks)
            && (&a.edge_starts, &a.edges) == (&b.edge_starts, &b.edges)
            && (&a.call_starts, &a.calls) == (&b.call_starts, &b.calls)
            && a.guards() == b.guards()
    }

    /// How deep its children are nested.
    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Bytes of its own tables, and about those of what it keeps when it is linked.
    pub fn bytes(&self) -> usize {
        let tables = &self.tables;
        let states = tables.len() * (size_of::<ClassSet>() + size_of::<u32>());
        let kept = states + EDGES_FOR_ONE * tables.edges.len() * size_of::<(u8, u32)>();
        size_of::<Self>()
            + tables.bytes()
            + kept
            + self.children.capacity() * size_of::<Arc<NetworkPart>>()
    }
}

fn bytes(letters: &LetterSet) -> u32 {
    letters[..4].iter().map(|word| word.count_ones()).sum()
}
