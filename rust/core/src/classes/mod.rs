//! Token classes: the vocabulary folded under one grammar.
//!
//! Design: docs/design/classes.md.
//!
//! Two tokens are in one class when their *displacements* are equal (CFGzip, section 3.2): what
//! they do to a stack nobody knows. Then no prefix and no continuation tells them apart, so an
//! engine may look at one of them in place of the other (theorems 1 and 2 there; the design
//! page has the proof for the network).
//!
//! - here: `compile`, from a grammar and a vocabulary to the class of each token; tokens that the grammar names by
//!   their ids are split from others of the same text
//! - `companions`: the frames that may stand beneath a state
//! - `displacement`: the automaton that reads tokens from all these frames at once
//! - `walk`: where the tokens of a vocabulary lead in it, subtrees of the trie at once
//! - `canonical`: its states by what they do, by which two tokens are compared

mod canonical;
mod companions;
mod displacement;
mod walk;

pub use displacement::AutomatonSize;

use crate::budget::{Budget, Interrupt};
use crate::error::{Error, Result};
use crate::grammar::{Expr, Grammar, WholeTokens};
use crate::limits::Limits;
use crate::network::{Adjacency, Network, NetworkOptions, guards_refused, over_ids};
use crate::vocabulary::{Trie, Vocabulary};
use displacement::{DEAD, DisplacementAutomaton, DisplacementId};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};
use walk::{Folding, Run, TokenTarget};

/// How classes are made.
#[derive(Clone, Debug)]
pub struct ClassOptions {
    /// Drop branches that cannot be completed. XGrammar does not, so classes made for it are
    /// made without.
    pub prune: bool,
    /// Ignore `(= ...)`: for grammars whose lookahead is implied by the rules.
    pub skip_lookahead: bool,
    /// For what the stacks of a text say of its end, not for its masks: unique items are taken for items that may
    /// repeat, and members in any order may repeat too. Tokens of one class lead to the same members; those that may
    /// hold a whole member are classes of their own.
    pub for_ends: bool,
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
            for_ends: false,
            inline_budget: network.inline_budget,
            limits: network.limits,
        }
    }
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
/// were cut: the copies that are kept grow with the longest token
/// (docs/design/counting.md, "The repetition window"), and one of a megabyte would take millions.
/// No tokenizer of text has any.
const LONGEST_VIEW: usize = 1_024;
/// [`LONGEST_VIEW`] for a grammar with an automaton whose count is cut, such as a `format` beside a
/// `maxLength`. It is smaller because the network has a copy of each state of that automaton for each count
/// that is kept. One token in two hundred of Llama 3 and o200k is longer.
const LONGEST_VIEW_OF_PASSES: usize = 24;

/// The most work of the network of classes that are made for ends alone. A network that takes more has a copy of a large
/// automaton for each of many counts, which nobody needs who can look at each token: `[\p{L}]{200}` takes 2 s with
/// classes and 0.2 s without.
const WORK_FOR_ENDS: u64 = 4 << 20;

/// Folds a vocabulary under a grammar. The observer of `interrupt` hears how many tokens are done.
///
/// Classes are numbered by their lowest token id, then come the stop tokens.
///
/// # Errors
/// [`Error::Unsupported`] and [`Error::Limit`] as for [`Network::new`]; [`Error::Cancelled`],
/// [`Error::Deadline`].
pub fn compile(
    grammar: &Grammar,
    vocabulary: &Vocabulary,
    options: &ClassOptions,
    interrupt: &Interrupt,
) -> Result<(TokenClasses, ClassStats)> {
    let began = Instant::now();
    let of_members = grammar.bytes_of_members();
    refuse_guards(grammar, options, &of_members)?;
    let work = budget_of(options, interrupt);
    let without_count = grammar.without_counted_tokens(&work)?;
    let grammar = without_count.as_ref().unwrap_or(grammar);
    let whole = || WholeTokens { ranges: vocabulary.whole_ranges(), stops: vocabulary.stop_ids() };
    let over_ids = over_ids(grammar, whole, vocabulary.len(), &options.limits, &work)?;
    let grammar = over_ids.as_ref().unwrap_or(grammar);
    let longest_view = longest_view(grammar);
    let network = Network::make(
        grammar,
        &NetworkOptions {
            prune: options.prune,
            skip_lookahead: options.skip_lookahead,
            // A token's whole view fits on either side of a bound, with one to spare
            // (docs/design/counting.md, "The repetition window").
            repeat_window: Some(window(vocabulary.longest().min(longest_view))),
            inline_budget: options.inline_budget,
            simplify: true,
            share_wide: None,
            counters: false,
            for_ends: options.for_ends,
            limits: options.limits.clone(),
            ..NetworkOptions::default()
        },
        &work,
    )?;
    let adjacency = Adjacency::make(&network, options.limits.max_network_edges, &work)?;
    let network_work = work.done();
    let network_time = began.elapsed();
    let halted = |halt| interrupt.error(halt).unwrap_or_else(|| too_large(&options.limits));
    interrupt.progress(0, vocabulary.order().len()).map_err(halted)?;
    let began = Instant::now();
    let (limits, are_alone) = (&options.limits, without_count.is_some());
    let automaton = DisplacementAutomaton::new(&network, &adjacency, are_alone, limits, interrupt);
    let automaton = automaton.map_err(halted)?;
    let mut folding = Folding::new(&network, automaton, longest_view, of_members, &options.limits);
    let trie = vocabulary.trie();
    let mut runs = folding.walk(vocabulary, interrupt).map_err(halted)?;
    folding.canonicalize(&mut runs).map_err(halted)?;
    // The same of tokens taken whole, by their ids.
    let ids: Vec<u32> = match network.alphabet().escape() {
        Some(_) => whole_ids(vocabulary).collect(),
        None => Vec::new(),
    };
    let mut whole = folding.walk_ids(&ids, interrupt).map_err(halted)?;
    folding.canonicalize(&mut whole).map_err(halted)?;
    let mut stats = ClassStats {
        rules: network.num_rules(),
        network_states: network.len(),
        network_work,
        byte_classes: network.alphabet().len(),
        automaton: folding.size(),
        network_time,
        ..ClassStats::default()
    };
    let classes = number(vocabulary, trie, &runs, (&ids, &whole), &mut stats);
    stats.walk_time = began.elapsed();
    Ok((classes, stats))
}

/// Refuses a grammar whose guards tell tokens apart by more than their bytes.
fn refuse_guards(grammar: &Grammar, options: &ClassOptions, of_members: &[Vec<u8>]) -> Result<()> {
    let are_refused = match options.for_ends {
        true => {
            let are_apart = !of_members.is_empty() && !of_members.iter().any(Vec::is_empty);
            grammar.has_member_guards() && !are_apart
        }
        false => grammar.has_guards(),
    };
    match are_refused {
        true => Err(guards_refused(grammar, "a token class")),
        false => Ok(()),
    }
}

/// The work that classes may take.
fn budget_of(options: &ClassOptions, interrupt: &Interrupt) -> Budget {
    let mut limits = options.limits.clone();
    if options.for_ends {
        limits.max_network_work = limits.max_network_work.min(WORK_FOR_ENDS);
    }
    Budget::new(&limits, interrupt)
}

/// How many copies, or passes, are kept on either side of a bound if no token that is looked at is longer.
fn window(longest: usize) -> u32 {
    2 * longest as u32 + 2
}

/// The length in bytes up to which tokens are looked at under a grammar some of whose bounds are cut.
fn longest_view(grammar: &Grammar) -> usize {
    let is_cut = |expr: &Expr| match expr {
        Expr::Automaton(automaton) => automaton.counts.is_some_and(|(min, max)| {
            max.is_some_and(|max| max - min.min(max) > window(LONGEST_VIEW_OF_PASSES))
        }),
        _ => false,
    };
    if grammar.exprs().iter().any(is_cut) { LONGEST_VIEW_OF_PASSES } else { LONGEST_VIEW }
}

fn too_large(limits: &Limits) -> Error {
    Error::Limit {
        limit: "max_automaton_bytes",
        value: limits.max_automaton_bytes as u64,
        message: "the grammar's frames alone take more; simplify the grammar or raise the limit"
            .into(),
    }
}

/// The ids that can be taken whole.
fn whole_ids(vocabulary: &Vocabulary) -> impl Iterator<Item = u32> {
    vocabulary.whole_ranges().into_iter().flat_map(|(first, last)| first..=last)
}

/// The group of tokens that are never taken.
const NO_END: u32 = u32::MAX;

/// Splits groups of tokens by what they do when taken whole; returns how many there are then.
fn split_by_ids(
    vocabulary: &Vocabulary,
    (ids, whole): (&[u32], &[Run]),
    group_of_token: &mut [u32],
    stats: &mut ClassStats,
) -> u32 {
    let mut ends = vec![TokenTarget::State(DEAD); vocabulary.len()];
    for run in whole {
        ids[run.places()].iter().for_each(|&id| ends[id as usize] = run.end);
    }
    let mut groups: FxHashMap<(u32, DisplacementId), u32> = FxHashMap::default();
    let mut count = 0;
    stats.dead_tokens = 0;
    for (id, group) in group_of_token.iter_mut().enumerate() {
        let known = match ends[id] {
            TokenTarget::State(DEAD) if *group == NO_END => {
                stats.dead_tokens += usize::from(vocabulary.is_textual(id as u32));
                continue;
            }
            TokenTarget::State(state) => groups.get(&(*group, state)).copied(),
            TokenTarget::OverBudget => {
                stats.over_budget_tokens += 1;
                None
            }
        };
        let split = known.unwrap_or(count);
        count += u32::from(known.is_none());
        if let TokenTarget::State(state) = ends[id] {
            groups.insert((*group, state), split);
        }
        *group = split;
    }
    count
}

/// Numbers the classes and picks representatives.
fn number(
    vocabulary: &Vocabulary,
    trie: &Trie,
    runs: &[Run],
    whole: (&[u32], &[Run]),
    stats: &mut ClassStats,
) -> TokenClasses {
    let mut group_of_token = vec![NO_END; vocabulary.len()];
    let mut groups: FxHashMap<DisplacementId, u32> = FxHashMap::default();
    let mut num_groups = 0;
    let mut fresh = || {
        num_groups += 1;
        num_groups - 1
    };
    for Run { entries, end } in runs {
        let ids = trie.numbers_of(entries.clone());
        match *end {
            TokenTarget::State(DEAD) => stats.dead_tokens += ids.len(),
            TokenTarget::State(state) => {
                let group = *groups.entry(state).or_insert_with(&mut fresh);
                ids.iter().for_each(|&id| group_of_token[id as usize] = group);
            }
            TokenTarget::OverBudget => {
                stats.over_budget_tokens += ids.len();
                // Ids with the same bytes stand side by side and stay together.
                for same in ids.chunk_by(|&a, &b| vocabulary.bytes(a) == vocabulary.bytes(b)) {
                    let group = fresh();
                    same.iter().for_each(|&id| group_of_token[id as usize] = group);
                }
            }
        }
    }
    if !whole.0.is_empty() {
        num_groups = split_by_ids(vocabulary, whole, &mut group_of_token, stats);
    }
    // For each group its class and how long the representative is.
    let mut groups = vec![(-1, usize::MAX); num_groups as usize];
    let mut representatives: Vec<u32> = Vec::new();
    let tokens = group_of_token.iter().zip(vocabulary.lengths()).zip(0u32..);
    let class = |((&group, length), id)| {
        if group == NO_END {
            return -1;
        }
        let (class, shortest) = &mut groups[group as usize];
        if *class < 0 {
            *class = representatives.len() as i32;
            representatives.push(id);
        }
        if length < *shortest {
            *shortest = length;
            representatives[*class as usize] = id;
        }
        *class
    };
    let mut class_of: Vec<i32> = tokens.map(class).collect();
    for &id in vocabulary.stop_ids() {
        class_of[id as usize] = representatives.len() as i32;
        representatives.push(id);
    }
    TokenClasses { class_of, representatives, num_stop_classes: vocabulary.stop_ids().len() }
}
