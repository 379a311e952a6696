//! Token classes: the vocabulary folded under one grammar.
//!
//! Two tokens are in one class when their *displacements* are equal (CFGzip, section 3.2): what
//! they do to a stack nobody knows. Then no prefix and no continuation tells them apart, so an
//! engine may look at one of them in place of the other (theorems 1 and 2 there; the proof for
//! the network stands in DESIGN.md).

mod canonical;
mod companions;
mod displacement;

pub use displacement::AutomatonSize;

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::limits::Limits;
use crate::network::{Adjacency, Network, NetworkOptions};
use crate::vocabulary::Vocabulary;
use crate::work::Work;
use canonical::Canonical;
use displacement::{DEAD, DisplacementAutomaton, DisplacementId, Stopped};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};

/// How classes are made.
#[derive(Clone, Debug)]
pub struct ClassOptions {
    /// Drop branches that cannot be completed. XGrammar does not, so classes made for it are
    /// made without.
    pub prune: bool,
    /// Ignore `(= ...)`: for grammars whose lookahead is implied by the rules.
    pub skip_lookahead: bool,
    /// Growth in states that inlining one rule may cause.
    pub inline_budget: usize,
    /// Bounds on size and work.
    pub limits: Limits,
}

impl Default for ClassOptions {
    fn default() -> Self {
        let network = NetworkOptions::default();
        Self {
            prune: true,
            skip_lookahead: false,
            inline_budget: network.inline_budget,
            limits: network.limits,
        }
    }
}

/// How far a compilation is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Tokens done.
    pub done: usize,
    /// Tokens to do.
    pub total: usize,
}

/// What a compilation took. Times are for people; nothing depends on them.
#[derive(Clone, Debug, Default)]
pub struct ClassStats {
    /// Rules of the network.
    pub rules: usize,
    /// States of the network.
    pub network_states: usize,
    /// States and edges made or visited for it.
    pub network_work: u64,
    /// Byte classes.
    pub byte_classes: usize,
    /// The displacement automaton.
    pub automaton: AutomatonSize,
    /// Tokens that the grammar can never take.
    pub dead_tokens: usize,
    /// Tokens that became classes of their own because their work budget was spent.
    pub over_budget_tokens: usize,
    /// Time for the network.
    pub network_time: Duration,
    /// Time for the walk over the vocabulary.
    pub walk_time: Duration,
}

/// The vocabulary, folded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenClasses {
    /// For each token id its class; -1 where the token is never valid.
    pub class_of: Vec<i32>,
    /// For each class the id of its representative: the shortest member, lowest id on ties.
    pub representatives: Vec<u32>,
    /// The last so many classes are those of the stop tokens, one each, in the order of their ids.
    pub num_stop_classes: usize,
}

/// Tokens of more bytes than this are classes of their own under a grammar with repetitions that
/// were cut: the copies that are kept grow with the longest token (DESIGN.md), and one of a
/// megabyte would take millions. No tokenizer of text has any.
const LONGEST_VIEW: usize = 1_024;

/// Tokens between two reports of progress.
const REPORT_EVERY: usize = 4_096;
/// Work units between two reports of progress.
const REPORT_WORK: u64 = 500_000;

/// Folds a vocabulary under a grammar. `report` is called now and then and ends the work by
/// returning false.
///
/// Classes are numbered by their lowest token id, then come the stop tokens.
///
/// # Errors
/// [`Error::Unsupported`] and [`Error::Limit`] as for [`Network::new`]; [`Error::Cancelled`].
pub fn compile(
    grammar: &Grammar,
    vocabulary: &Vocabulary,
    options: &ClassOptions,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<(TokenClasses, ClassStats)> {
    let began = Instant::now();
    let total = vocabulary.order().len();
    let mut go_on = || report(Progress { done: 0, total });
    let over_ids = grammar.with_tokens(|| vocabulary.whole_ranges(), vocabulary.len())?;
    let grammar = over_ids.as_ref().unwrap_or(grammar);
    let work = Work::new(&options.limits, &mut go_on);
    let network = Network::make(
        grammar,
        &NetworkOptions {
            prune: options.prune,
            skip_lookahead: options.skip_lookahead,
            // A token's whole view fits on either side of a bound, with one to spare (DESIGN.md).
            repeat_window: Some(2 * vocabulary.longest().min(LONGEST_VIEW) as u32 + 2),
            inline_budget: options.inline_budget,
            simplify: true,
            share_wide: None,
            counters: false,
            limits: options.limits.clone(),
            ..NetworkOptions::default()
        },
        &work,
    )?;
    let adjacency = Adjacency::make(&network, options.limits.max_network_edges, &work)?;
    let network_work = work.done();
    let network_time = began.elapsed();
    if !report(Progress { done: 0, total }) {
        return Err(Error::Cancelled);
    }
    let began = Instant::now();
    let mut go_on = || report(Progress { done: 0, total });
    let automaton = DisplacementAutomaton::new(&network, &adjacency, &options.limits, &mut go_on);
    let mut automaton = automaton.map_err(|stopped| match stopped {
        Stopped::OverBudget => too_large(&options.limits),
        Stopped::Cancelled => Error::Cancelled,
    })?;
    let texts = vocabulary.order().iter().zip(vocabulary.shared());
    let texts = texts.map(|(&id, &shared)| (shared as usize, vocabulary.bytes(id)));
    let start = End::State(automaton.start());
    let mut ends = walk(&network, &mut automaton, start, texts, &options.limits, report)?;
    canonicalize(&network, &mut automaton, &mut ends, &options.limits, report)?;
    // The same of tokens taken whole, by their ids.
    let mut whole = Vec::new();
    if let Some(escape) = network.alphabet().escape() {
        let escaped = step(&network, &mut automaton, escape, &options.limits, report)?;
        let ids: Vec<[u8; 4]> = whole_ids(vocabulary).map(u32::to_be_bytes).collect();
        let shared = |i: usize| match i {
            0 => 0,
            _ => ids[i].iter().zip(&ids[i - 1]).take_while(|(a, b)| a == b).count(),
        };
        let texts = ids.iter().enumerate().map(|(i, id)| (shared(i), id.as_slice()));
        whole = walk(&network, &mut automaton, escaped, texts, &options.limits, report)?;
        canonicalize(&network, &mut automaton, &mut whole, &options.limits, report)?;
    }
    let mut stats = ClassStats {
        rules: network.num_rules(),
        network_states: network.len(),
        network_work,
        byte_classes: network.alphabet().len(),
        automaton: automaton.size(),
        network_time,
        ..ClassStats::default()
    };
    let classes = number(vocabulary, &ends, &whole, &mut stats);
    stats.walk_time = began.elapsed();
    Ok((classes, stats))
}

fn too_large(limits: &Limits) -> Error {
    Error::Limit {
        limit: "max_automaton_bytes",
        value: limits.max_automaton_bytes as u64,
        message: "the grammar's frames alone take more; simplify the grammar or raise the limit"
            .into(),
    }
}

/// Where a token's bytes lead.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    State(DisplacementId),
    /// Its budget was spent at the node of the trie that this token was the first to reach.
    OverBudget,
}

/// The ids that can be taken whole.
fn whole_ids(vocabulary: &Vocabulary) -> impl Iterator<Item = u32> {
    vocabulary.whole_ranges().into_iter().flat_map(|(first, last)| first..=last)
}

/// Where one letter leads from the start.
fn step(
    network: &Network,
    automaton: &mut DisplacementAutomaton<'_>,
    class: u8,
    limits: &Limits,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<End> {
    let allowance = automaton.work().saturating_add(limits.token_work(network.len()));
    automaton.allow(allowance.min(limits.total_work(network.len())));
    loop {
        match automaton.next(automaton.start(), class) {
            Ok(state) => return Ok(End::State(state)),
            Err(_) if !automaton.is_paused() => return Ok(End::OverBudget),
            Err(_) if !report(Progress { done: 0, total: 0 }) => return Err(Error::Cancelled),
            Err(_) => automaton.resume(),
        }
    }
}

/// One depth-first walk of a trie: texts in order, each with the length of what it shares with the
/// one before.
fn walk<'t>(
    network: &Network,
    automaton: &mut DisplacementAutomaton<'_>,
    start: End,
    texts: impl ExactSizeIterator<Item = (usize, &'t [u8])>,
    limits: &Limits,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<Vec<End>> {
    let alphabet = network.alphabet();
    let total = texts.len();
    let total_work = limits.total_work(network.len());
    let token_work = limits.token_work(network.len());
    let longest = if network.has_cuts() { LONGEST_VIEW } else { usize::MAX };
    let mut ends = Vec::with_capacity(total);
    let mut reported = automaton.work();
    // path[d]: the state after the first d bytes of the current token, as far as it is alive.
    let mut path: Vec<End> = vec![start];
    for (i, (shared, whole)) in texts.enumerate() {
        let due = automaton.work() > reported + REPORT_WORK;
        if due {
            reported = automaton.work();
        }
        if (i % REPORT_EVERY == 0 || due) && !report(Progress { done: i, total }) {
            return Err(Error::Cancelled);
        }
        path.truncate(shared + 1);
        let bytes = &whole[..whole.len().min(longest)];
        let allowance = automaton.work().saturating_add(token_work);
        automaton.allow(allowance.min(total_work));
        while path.len() <= bytes.len() {
            let End::State(state) = path[path.len() - 1] else { break };
            if state == DEAD {
                break;
            }
            let class = alphabet.class(bytes[path.len() - 1]);
            let mut next = automaton.next(state, class);
            while next.is_err() && automaton.is_paused() {
                if !report(Progress { done: i, total }) {
                    return Err(Error::Cancelled);
                }
                automaton.resume();
                next = automaton.next(state, class);
            }
            path.push(next.map_or(End::OverBudget, End::State));
        }
        let end = path[path.len() - 1];
        // Dead so far is dead. Else what follows is out of view.
        let seen = bytes.len() == whole.len() || end == End::State(DEAD);
        ends.push(if seen { end } else { End::OverBudget });
    }
    report(Progress { done: total, total });
    Ok(ends)
}

/// Replaces the states where tokens end by canonical ones. One that takes too much work stays as
/// it is: its tokens then stay apart from others that do the same, which is sound.
fn canonicalize(
    network: &Network,
    automaton: &mut DisplacementAutomaton<'_>,
    ends: &mut [End],
    limits: &Limits,
    report: &mut dyn FnMut(Progress) -> bool,
) -> Result<()> {
    let total_work = limits.total_work(network.len());
    let token_work = limits.token_work(network.len());
    let mut canonical = Canonical::default();
    let total = ends.len();
    let mut reported = automaton.work();
    for end in ends {
        if automaton.work() > reported + REPORT_WORK {
            reported = automaton.work();
            if !report(Progress { done: total, total }) {
                return Err(Error::Cancelled);
            }
        }
        if let End::State(state) = end {
            let allowance = automaton.work().saturating_add(token_work);
            automaton.allow(allowance.min(total_work));
            let mut same = canonical.of(automaton, *state);
            while same.is_err() && automaton.is_paused() {
                if !report(Progress { done: total, total }) {
                    return Err(Error::Cancelled);
                }
                automaton.resume();
                same = canonical.of(automaton, *state);
            }
            *state = same.unwrap_or(*state);
        }
    }
    Ok(())
}

/// The group of tokens that are never taken.
const NO_END: u32 = u32::MAX;

/// Splits groups of tokens by what they do when taken whole; returns how many there are then.
fn split_by_ids(
    vocabulary: &Vocabulary,
    whole: &[End],
    group_of_token: &mut [u32],
    stats: &mut ClassStats,
) -> u32 {
    let mut ends = vec![End::State(DEAD); vocabulary.len()];
    whole_ids(vocabulary).zip(whole).for_each(|(id, &end)| ends[id as usize] = end);
    let mut groups: FxHashMap<(u32, DisplacementId), u32> = FxHashMap::default();
    let mut count = 0;
    stats.dead_tokens = 0;
    for (id, group) in group_of_token.iter_mut().enumerate() {
        let known = match ends[id] {
            End::State(DEAD) if *group == NO_END => {
                stats.dead_tokens += usize::from(vocabulary.is_textual(id as u32));
                continue;
            }
            End::State(state) => groups.get(&(*group, state)).copied(),
            End::OverBudget => {
                stats.over_budget_tokens += 1;
                None
            }
        };
        let split = known.unwrap_or(count);
        count += u32::from(known.is_none());
        if let End::State(state) = ends[id] {
            groups.insert((*group, state), split);
        }
        *group = split;
    }
    count
}

/// Numbers the classes and picks representatives.
fn number(
    vocabulary: &Vocabulary,
    ends: &[End],
    whole: &[End],
    stats: &mut ClassStats,
) -> TokenClasses {
    let mut group_of_token = vec![NO_END; vocabulary.len()];
    let mut groups: FxHashMap<DisplacementId, u32> = FxHashMap::default();
    let mut num_groups = 0;
    let mut fresh = || {
        num_groups += 1;
        num_groups - 1
    };
    let mut previous: Option<(u32, u32)> = None;
    for (&id, end) in vocabulary.order().iter().zip(ends) {
        let group = match *end {
            End::State(DEAD) => {
                stats.dead_tokens += 1;
                continue;
            }
            End::State(state) => *groups.entry(state).or_insert_with(&mut fresh),
            End::OverBudget => {
                stats.over_budget_tokens += 1;
                // Ids with the same bytes stand side by side and stay together.
                match previous {
                    Some((other, group)) if vocabulary.bytes(other) == vocabulary.bytes(id) => {
                        group
                    }
                    _ => fresh(),
                }
            }
        };
        previous = Some((id, group));
        group_of_token[id as usize] = group;
    }
    if !whole.is_empty() {
        num_groups = split_by_ids(vocabulary, whole, &mut group_of_token, stats);
    }
    let mut class_of_group = vec![-1; num_groups as usize];
    let mut representatives: Vec<u32> = Vec::new();
    let mut class_of = vec![-1; vocabulary.len()];
    for id in 0..vocabulary.len() as u32 {
        let group = group_of_token[id as usize];
        if group == NO_END {
            continue;
        }
        let class = &mut class_of_group[group as usize];
        if *class < 0 {
            *class = representatives.len() as i32;
            representatives.push(id);
        }
        let best = &mut representatives[*class as usize];
        if vocabulary.bytes(id).len() < vocabulary.bytes(*best).len() {
            *best = id;
        }
        class_of[id as usize] = *class;
    }
    for &id in vocabulary.stop_ids() {
        class_of[id as usize] = representatives.len() as i32;
        representatives.push(id);
    }
    TokenClasses { class_of, representatives, num_stop_classes: vocabulary.stop_ids().len() }
}
