//! Networks of grammars with common rules: those that many grammars have ([`Rule::is_common`]), such as
//! any string or any value of JSON. A process makes the parts of such rules once.
//!
//! What a network is made of depends on its grammar alone: common rules are parts, whether they are
//! kept or not, and count the same work.
//!
//! [`Rule::is_common`]: crate::grammar::Rule::is_common

use super::link::unique;
use super::part::NetworkPart;
use super::rules::{FRAME, Outside, RuleSet};
use super::split::{PartCache, RuleGroups};
use super::{LeftRecursion, Network, NetworkOptions};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::grammar::{Expr, Grammar};
use crate::ids::RuleId;
use crate::limits::Limits;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::{Arc, LazyLock};

/// Bytes of parts that a process keeps.
const MAX_BYTES: usize = 16 << 20;

static PARTS: LazyLock<PartCache> = LazyLock::new(|| PartCache::new(MAX_BYTES));

impl Network {
    /// The network of a grammar, linked of parts where it has common rules: that of [`Network::make`],
    /// but for the numbers of states and for calls that are not inlined.
    ///
    /// # Errors
    /// Those of [`Network::make`].
    pub fn linked(grammar: &Grammar, options: &NetworkOptions, work: &Budget) -> Result<Self> {
        let is_common = grammar.rules().iter().any(|rule| rule.is_common);
        if !is_common || !options.prune || options.left_recursion == LeftRecursion::Kept {
            return Self::make(grammar, options, work);
        }
        let done = work.done();
        let children = match children(grammar, options, work) {
            Ok(children) => children,
            // A rule without any string is called beside them: it is no part.
            Err(Error::Unsupported { .. }) => return Self::make(grammar, options, work),
            Err(other) => return Err(other),
        };
        let widths = children.iter().map(|(&rule, part)| (rule, part.first_width()));
        let outside = Outside::of(widths.collect(), true, false);
        match of_parts(grammar, children, &outside, options, work) {
            // Where loops for left recursion are too large there may be a network without them.
            Err(Error::Limit { .. }) if outside.is_left_recursive.get() => {
                work.back_to(done);
                Self::make(grammar, options, work)
            }
            made => made,
        }
    }
}

fn of_parts(
    grammar: &Grammar,
    children: FxHashMap<usize, Arc<NetworkPart>>,
    outside: &Outside,
    options: &NetworkOptions,
    work: &Budget,
) -> Result<Network> {
    // Grammars with common rules are made of schemas: objects of which hardly any states on cycles are equal.
    let options = &NetworkOptions { is_quick: true, ..options.clone() };
    let rules = RuleSet::make(grammar, outside, options, work)?;
    let children = children.into_iter().map(|(rule, part)| (RuleId::new(rule), part)).collect();
    let frame = Arc::new(NetworkPart::of_rules(&rules, &children, options, work)?);
    // What the rules of the grammar take was counted as they were made, parts of common rules were not.
    let (parts, _) = unique(&frame);
    let parts = parts.iter().filter(|part| !Arc::ptr_eq(part, &frame));
    let sizes = parts.map(|part| FRAME * part.tables.len() + part.tables.edges.len());
    work.spend(sizes.sum())?;
    frame.link(&options.limits, work)
}

/// The rules that have guards, or are called with one.
fn guarded(grammar: &Grammar) -> FxHashSet<usize> {
    let mut out = grammar.called_with_guards();
    if !out.is_empty() {
        let has_guards = |rule: &usize| {
            let body = grammar.expr(grammar.rules()[*rule].body);
            matches!(body, Expr::Automaton(automaton) if !automaton.guards.is_empty())
        };
        out.extend((0..grammar.rules().len()).filter(has_guards));
    }
    out
}

/// The parts of common rules that other rules call, by rule.
fn children(
    grammar: &Grammar,
    options: &NetworkOptions,
    work: &Budget,
) -> Result<FxHashMap<usize, Arc<NetworkPart>>> {
    let ticks = Ticks::new(work);
    let rules = grammar.rules();
    let callees = |rule: usize| grammar.callees(&rules[rule], false);
    let reached = |from: Vec<usize>| -> Result<Vec<bool>> {
        let mut reached = vec![false; rules.len()];
        let mut pending = from;
        while let Some(rule) = pending.pop() {
            ticks.step()?;
            if !std::mem::replace(&mut reached[rule], true) {
                pending.extend(callees(rule));
            }
        }
        Ok(reached)
    };
    // Guards go by the rules that are called: those stay with the rule that calls them.
    let with_guards = guarded(grammar);
    let mut common = Vec::new();
    for rule in (0..rules.len()).filter(|&rule| rules[rule].is_common) {
        if with_guards.is_empty() || {
            let reached = reached(vec![rule])?;
            !with_guards.iter().any(|&rule| reached[rule])
        } {
            common.push(rule);
        }
    }
    let below = reached(common.clone())?;
    let common: FxHashSet<usize> = common.into_iter().collect();
    let is_apart = |group: &[usize]| group.iter().any(|rule| common.contains(rule));
    let groups = RuleGroups::new(grammar, &below, options, &FxHashMap::default(), is_apart);
    let mut seen = vec![false; rules.len()];
    let mut entries = Vec::new();
    let mut pending = vec![grammar.root().index()];
    while let Some(rule) = pending.pop() {
        ticks.step()?;
        match std::mem::replace(&mut seen[rule], true) {
            true => {}
            false if groups.is_apart(rule) => entries.push(rule),
            false => pending.extend(callees(rule)),
        }
    }
    // Limits are those of all grammars: a part is the same whoever asks for it first.
    let limits = Limits::default();
    let own = Budget::new(&limits, work.interrupt());
    let options = NetworkOptions { limits, left_recursion: LeftRecursion::Both, ..options.clone() };
    let there = FxHashMap::default();
    let parts =
        groups.parts(grammar, entries.clone(), there, Some(&PARTS), None, &options, &own)?;
    Ok(entries.into_iter().map(|rule| (rule, parts[&rule].clone())).collect())
}
