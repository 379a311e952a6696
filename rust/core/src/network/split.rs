//! Which rules of a grammar are parts of their own.
//!
//! Design: docs/design/parts.md, "Parts".
//!
//! A rule with all that it calls is a part where others would call it anyway, since simplifying does
//! not inline it: rules of a cycle of calls, and rules with a wide terminal (the inside of strings) or
//! with free text. That is told by what the rules say, and by nothing else; so the network of a grammar
//! does not depend on what was compiled before. Parts are kept by the digest of what they say.

use super::naming::{Identity, numbered};
use super::part::NetworkPart;
use super::{NetworkOptions, WIDE, analysis};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use crate::grammar::{Expr, Grammar, Stub, key_of};
use crate::graph;
use crate::ids::RuleId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Parts are nested no deeper than this.
const MAX_DEPTH: u32 = 32;

/// What a cache of parts did and holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCounters {
    /// Parts that were there.
    pub hits: u64,
    /// Parts that were made.
    pub misses: u64,
    /// Parts that went to make room.
    pub evicted: u64,
    /// Parts held.
    pub parts: u64,
    /// Bytes that they take.
    pub bytes: u64,
}

/// Parts by what they say, the ones used last; safe between threads.
#[derive(Debug)]
pub struct PartCache {
    inner: Mutex<PartCacheContents>,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct PartCacheContents {
    parts: FxHashMap<Identity, (Arc<NetworkPart>, u64)>,
    /// By when they were used last.
    used: BTreeMap<u64, Identity>,
    clock: u64,
    counters: PartCounters,
}

impl PartCache {
    /// An empty cache, which holds about so many bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self { inner: Mutex::default(), max_bytes }
    }

    fn lock(&self) -> MutexGuard<'_, PartCacheContents> {
        // Nothing that panics stands between two changes that belong together.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds and did.
    pub fn counters(&self) -> PartCounters {
        self.lock().counters
    }

    /// Forgets all parts.
    pub fn clear(&self) {
        let mut inner = self.lock();
        let counters = PartCounters { parts: 0, bytes: 0, ..inner.counters };
        *inner = PartCacheContents { counters, clock: inner.clock, ..PartCacheContents::default() };
    }

    fn get(&self, key: &Identity) -> Option<Arc<NetworkPart>> {
        let mut inner = self.lock();
        let PartCacheContents { parts, used, clock, counters } = &mut *inner;
        let Some((part, time)) = parts.get_mut(key) else {
            counters.misses += 1;
            return None;
        };
        counters.hits += 1;
        *clock += 1;
        used.remove(time);
        used.insert(*clock, *key);
        *time = *clock;
        Some(part.clone())
    }

    fn put(&self, key: Identity, part: Arc<NetworkPart>) {
        let mut inner = self.lock();
        let PartCacheContents { parts, used, clock, counters } = &mut *inner;
        if parts.contains_key(&key) || part.bytes() > self.max_bytes {
            return;
        }
        *clock += 1;
        used.insert(*clock, key);
        counters.bytes += part.bytes() as u64;
        parts.insert(key, (part, *clock));
        while counters.bytes > self.max_bytes as u64
            && let Some((_, oldest)) = used.pop_first()
        {
            if let Some((part, _)) = parts.remove(&oldest) {
                counters.bytes -= part.bytes() as u64;
                counters.evicted += 1;
            }
        }
        counters.parts = parts.len() as u64;
    }
}

impl NetworkPart {
    /// The part of a grammar's root, made of parts that are in a cache or put there.
    ///
    /// The grammar's lookahead is ignored; `None` where it has no string at all, and what cannot be
    /// completed is pruned. The network is that of [`Network::make`], but for the numbers of states
    /// and for calls that are not inlined.
    ///
    /// # Errors
    /// Those of [`Network::make`].
    ///
    /// [`Network::make`]: super::Network::make
    pub fn of(
        grammar: &Grammar,
        options: &NetworkOptions,
        cache: &PartCache,
        work: &Budget,
    ) -> Result<Option<Arc<Self>>> {
        work.spend(3 * grammar.size())?;
        let ticks = Ticks::new(work);
        let is_needed = analysis::reachable(grammar, options.skip_lookahead, |_| false, work)?;
        let productive = analysis::Analysis::new(grammar, &ticks)?.productive;
        if options.prune && !productive[grammar.root().index()] {
            return Ok(None);
        }
        let there = FxHashMap::default();
        let is_apart = apart(grammar, &productive, options);
        let groups = RuleGroups::new(grammar, &is_needed, options, &there, is_apart);
        groups.part(grammar, there, Some(cache), false, options, work).map(Some)
    }

    /// The part of a frame, a grammar in which some rules are parts, or `None` where they have no
    /// string: of a whole network.
    ///
    /// # Errors
    /// Those of [`Network::make`](super::Network::make).
    pub fn of_frame(
        frame: &Grammar,
        parts: &[(RuleId, Option<Arc<NetworkPart>>)],
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Arc<Self>> {
        Self::around(frame, parts, true, options, work)
    }

    /// The part of a grammar in which some rules are parts, of a whole network or not.
    pub(super) fn around(
        frame: &Grammar,
        parts: &[(RuleId, Option<Arc<NetworkPart>>)],
        is_whole: bool,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Arc<Self>> {
        let stub =
            |part: &Option<Arc<NetworkPart>>| part.as_ref().map_or(Stub::Nothing, |p| p.stub());
        let stubs: Vec<(RuleId, Stub)> =
            parts.iter().map(|(rule, part)| (*rule, stub(part))).collect();
        let frame = frame.with_stubs(&stubs);
        work.spend(3 * frame.size())?;
        let ticks = Ticks::new(work);
        let is_needed = analysis::reachable(&frame, options.skip_lookahead, |_| false, work)?;
        let productive = analysis::Analysis::new(&frame, &ticks)?.productive;
        let there = parts.iter().filter_map(|(rule, part)| Some((rule.index(), part.clone()?)));
        let there = there.collect();
        let is_apart = apart(&frame, &productive, options);
        let groups = RuleGroups::new(&frame, &is_needed, options, &there, is_apart);
        groups.part(&frame, there, None, is_whole, options, work)
    }

    fn stub(&self) -> Stub {
        if self.is_nullable() { Stub::Nullable } else { Stub::Plain }
    }
}

/// Which groups of rules are parts: those of a cycle of calls, and those that are wide.
fn apart<'a>(
    grammar: &'a Grammar,
    productive: &'a [bool],
    options: &'a NetworkOptions,
) -> impl Fn(&[usize]) -> bool + 'a {
    let called = grammar.called_with_guards();
    move |group| {
        // The calls of a rule with guards are told apart by the rules that are called: they stay
        // together.
        let is_apart = group.len() > 1 || group.iter().any(|&rule| is_wide(grammar, rule));
        let has_guards = |&rule: &usize| {
            let body = grammar.expr(grammar.rules()[rule].body);
            called.contains(&rule)
                || matches!(body, Expr::Automaton(automaton) if !automaton.guards.is_empty())
        };
        is_apart
            && !group.iter().any(has_guards)
            && group.iter().all(|&rule| productive[rule] || !options.prune)
    }
}

/// The rules of a grammar, with those that are parts of their own.
pub(super) struct RuleGroups {
    /// Each group of rules that call each other, callees first.
    groups: Vec<Vec<usize>>,
    /// For each rule its group.
    of: Vec<usize>,
    callees: Vec<Vec<usize>>,
    /// For each rule the digest of what it says, with all that it calls.
    keys: Vec<Option<Identity>>,
    /// Whether the rules of a group are parts.
    is_part: Vec<bool>,
}

impl RuleGroups {
    /// Of the rules that are needed; `is_apart` says of a group whether it is to be a part.
    pub(super) fn new(
        grammar: &Grammar,
        is_needed: &[bool],
        options: &NetworkOptions,
        there: &FxHashMap<usize, Arc<NetworkPart>>,
        is_apart: impl Fn(&[usize]) -> bool,
    ) -> Self {
        let count = grammar.rules().len();
        let callees_of = |rule: usize| match is_needed[rule] && !there.contains_key(&rule) {
            true => grammar.callees(&grammar.rules()[rule], false),
            false => Vec::new(),
        };
        let callees: Vec<Vec<usize>> = (0..count).map(callees_of).collect();
        let mut groups = graph::components(count, |rule| callees[rule].clone());
        groups.retain(|group| is_needed[group[0]]);
        let mut out = Self {
            of: vec![usize::MAX; count],
            keys: vec![None; count],
            is_part: Vec::with_capacity(groups.len()),
            groups: Vec::new(),
            callees,
        };
        let salt = blake3::hash(format!("{options:?}").as_bytes());
        // How deep parts are nested in what a group calls.
        let mut depths: Vec<u32> = Vec::with_capacity(groups.len());
        for (number, group) in groups.iter().enumerate() {
            group.iter().for_each(|&rule| out.of[rule] = number);
            let calls = group.iter().flat_map(|&rule| &out.callees[rule]);
            let below = calls.map(|&rule| out.of[rule]).filter(|&callee| callee != number);
            let depth = below.map(|callee| depths[callee] + u32::from(out.is_part[callee])).max();
            let depth = depth.unwrap_or(0);
            if let Some(part) = there.get(&group[0]) {
                out.is_part.push(true);
                depths.push(part.depth());
                out.keys[group[0]] = part.key;
                continue;
            }
            let key = out.key(grammar, group, salt.as_bytes());
            out.is_part.push(depth < MAX_DEPTH && is_apart(group));
            depths.push(depth);
            for (place, &rule) in (0u64..).zip(group) {
                out.keys[rule] = key.map(|key| numbered(&key, place));
            }
        }
        out.groups = groups;
        out
    }

    /// The digest of what a group says, whose callees have theirs.
    fn key(&self, grammar: &Grammar, group: &[usize], salt: &[u8]) -> Option<Identity> {
        let calls = || group.iter().flat_map(|&rule| &self.callees[rule]);
        if calls().any(|&callee| self.keys[callee].is_none() && !group.contains(&callee)) {
            return None;
        }
        let name = |rule: usize, out: &mut Vec<u8>| match self.keys[rule] {
            Some(key) => {
                out.push(0);
                out.extend(key);
            }
            None => {
                let place = group.binary_search(&rule).unwrap_or_default();
                out.push(1);
                out.extend((place as u32).to_le_bytes());
            }
        };
        let text = key_of(grammar, group, false, name)?;
        let mut hasher = blake3::Hasher::new();
        hasher.update(salt);
        hasher.update(&text);
        Some(*hasher.finalize().as_bytes())
    }

    /// The rules of the part that is entered at a rule, and the rules at which it enters others.
    fn members(&self, entry: usize) -> (Vec<usize>, Vec<usize>) {
        let (mut members, mut children) = (vec![entry], Vec::new());
        let mut seen: FxHashSet<usize> = [entry].into_iter().collect();
        let mut at = 0;
        while let Some(&rule) = members.get(at) {
            at += 1;
            for &callee in self.callees[rule].iter().filter(|&&callee| seen.insert(callee)) {
                let group = self.of[callee];
                let is_child = self.is_part[group] && group != self.of[entry];
                if is_child { &mut children } else { &mut members }.push(callee);
            }
        }
        members.sort_unstable();
        children.sort_unstable();
        (members, children)
    }

    /// The part of the root, some of whose parts are there; of a whole network or not.
    fn part(
        &self,
        grammar: &Grammar,
        there: FxHashMap<usize, Arc<NetworkPart>>,
        cache: Option<&PartCache>,
        is_whole: bool,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Arc<NetworkPart>> {
        let root = grammar.root().index();
        let whole = is_whole.then_some(root);
        let parts = self.parts(grammar, vec![root], there, cache, whole, options, work)?;
        Ok(parts[&root].clone())
    }

    /// The parts that are entered at some rules and those that they call, some of which are there.
    /// The one that is `whole` is of a whole network.
    // Each is said by the caller, and they have nothing in common.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn parts(
        &self,
        grammar: &Grammar,
        mut wanted: Vec<usize>,
        mut there: FxHashMap<usize, Arc<NetworkPart>>,
        cache: Option<&PartCache>,
        whole: Option<usize>,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<FxHashMap<usize, Arc<NetworkPart>>> {
        let mut missing: BTreeMap<(usize, usize), (Vec<usize>, Vec<usize>)> = BTreeMap::new();
        while let Some(entry) = wanted.pop() {
            let place = (self.of[entry], entry);
            if there.contains_key(&entry) || missing.contains_key(&place) {
                continue;
            }
            match self.keys[entry].zip(cache).and_then(|(key, cache)| cache.get(&key)) {
                Some(part) => {
                    there.insert(entry, part);
                }
                None => {
                    let (members, children) = self.members(entry);
                    wanted.extend(&children);
                    missing.insert(place, (members, children));
                }
            }
        }
        // Callees come first.
        for ((_, entry), (members, children)) in missing {
            let rules =
                |rules: &[usize]| rules.iter().copied().map(RuleId::new).collect::<Vec<_>>();
            let stubs: Vec<(RuleId, Stub)> =
                children.iter().map(|child| (RuleId::new(*child), there[child].stub())).collect();
            let rules = grammar.extracted(RuleId::new(entry), &rules(&members), &stubs);
            let places = (members.len()..).map(RuleId::new);
            let parts = places.zip(children.iter().map(|child| there[child].clone())).collect();
            let is_whole = whole == Some(entry);
            let mut part = NetworkPart::make(&rules, &parts, is_whole, options, work)?;
            // What belongs to one network alone has no name: it is found by where it stands.
            part.key = self.keys[entry].filter(|_| !is_whole && cache.is_some());
            let key = part.key.zip(cache);
            part.is_kept = key.is_some();
            if part.key.is_none() && cache.is_some() {
                part.key = Some(part.key_of_tables(options));
            }
            let part = Arc::new(part);
            if let Some((key, cache)) = key {
                cache.put(key, part.clone());
            }
            there.insert(entry, part);
        }
        Ok(there)
    }

    /// Whether a rule belongs to a group that is a part.
    pub(super) fn is_apart(&self, rule: usize) -> bool {
        self.of[rule] != usize::MAX && self.is_part[self.of[rule]]
    }
}

/// Whether a rule has a terminal of many characters, or an automaton of free text or calls.
fn is_wide(grammar: &Grammar, rule: usize) -> bool {
    let mut work = vec![grammar.rules()[rule].body];
    while let Some(id) = work.pop() {
        match grammar.expr(id) {
            Expr::Sequence(parts) | Expr::Choice(parts) => work.extend(parts),
            Expr::Repeat { body, .. } => work.push(*body),
            Expr::Class(set) => {
                let size = set.ranges().iter().map(|(first, last)| last - first + 1).sum::<u32>();
                if size >= WIDE {
                    return true;
                }
            }
            Expr::Automaton(automaton) => {
                if !automaton.parts.is_empty() {
                    return true;
                }
                let mut widths = vec![0; automaton.finals.len()];
                for &(from, first, last, _) in automaton.bytes_in_full().iter() {
                    widths[from as usize] += u32::from(last - first) + 1;
                }
                if widths.into_iter().any(|width| width >= WIDE) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}
