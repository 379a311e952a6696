//! Masks near the end, put together of answers to the questions of a mask.
//!
//! An entry behind which a frame is still there leaves the frame in some *ways*: at nodes of the tokens'
//! automaton, with so many tokens finished. They depend on the frame, the pending nodes and the entry, and on
//! nothing beneath. So an answer has the entries by their ways, and serves every text. Beneath the frame a
//! text says what each node of a way costs; with that an entry takes the least sum.

use crate::budget::{Halt, Interrupt, Meter};
use crate::ending::{Asking, KnownExits, NodeId, Over, Stacks, UNREACHABLE, Way};
use crate::engine::Engine;
use crate::engine::history::Family;
use crate::engine::mask::memo::set_bits;
use crate::engine::mask::pending::{PendingId, PendingSets};
use crate::engine::mask::query::Question;
use crate::engine::mask::stack_queries::{Beneath, Room, walk_stacks};
use crate::engine::mask::trie_walk::{Descent, WalkBounds};
use crate::engine::stop::Stop;
use crate::network::Network;
use crate::stacks::SetId;
use crate::vocabulary::Trie;
use parking_lot::Mutex;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Work units that walks for the answers of one mask may take; past them the trie is walked with the stacks of the
/// text.
const MAX_WORK: u64 = 1_000_000;
/// The part of the memory of masks that answers may take, the part that the tables may of which they are made, and the
/// part that these may keep from mask to mask.
const ANSWERS_OF_MEMORY: usize = 4;
const TABLES_OF_MEMORY: usize = 2;
const KEPT_OF_MEMORY: usize = 16;

/// Answers over one trie.
pub(in crate::engine) struct EndAnswers {
    made: Mutex<AnswerTables>,
    bytes: AtomicUsize,
}

struct AnswerTables {
    network: Arc<Network>,
    trie: Arc<Trie>,
    descent: Descent,
    /// The ways out of the sets of stacks of the descent.
    exits: KnownExits,
    pending: PendingSets,
    /// `None` where an answer takes too much work.
    answers: FxHashMap<(Question, PendingId), Option<Arc<EntriesByWay>>>,
    /// All different.
    entries: FxHashSet<Arc<Entries>>,
    answer_bytes: usize,
}

/// Entries of the trie.
#[derive(PartialEq, Eq, Hash)]
enum Entries {
    Listed(Box<[u32]>),
    /// Where that is no larger than the list.
    Row(Box<[i32]>),
}

struct EntriesByWay {
    /// The nodes of all ways.
    nodes: Box<[NodeId]>,
    /// For each way the index of its node, and the tokens finished.
    ways: Box<[(u32, u32)]>,
    groups: Box<[Group]>,
    /// Where the frames were popped, with more of the trie below.
    popped: PendingId,
}

/// Entries that have the same ways.
struct Group {
    ways: Range<u32>,
    entries: Arc<Entries>,
}

/// What one mask may use.
#[derive(Clone, Copy)]
struct MaskBounds<'a> {
    walk: WalkBounds<'a>,
    /// Words of a row.
    words: usize,
}

impl EndAnswers {
    pub(in crate::engine) fn new(network: Arc<Network>, trie: Arc<Trie>) -> Self {
        let made = AnswerTables {
            descent: Descent::new(network.clone(), trie.clone(), false, 0),
            exits: KnownExits::default(),
            pending: PendingSets::new(trie.ids()),
            answers: FxHashMap::default(),
            entries: FxHashSet::default(),
            answer_bytes: 0,
            network,
            trie,
        };
        Self { bytes: AtomicUsize::new(0), made: Mutex::new(made) }
    }

    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl Engine {
    /// Adds the entries of a trie that leave the text to be ended with `most` more tokens, out of answers.
    ///
    /// When it stops, the bits are to be thrown away.
    pub(super) fn answers_in_time(
        &self,
        (trie, over): (&Arc<Trie>, Over),
        family: &mut Family,
        (set, most): (SetId, u32),
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<(), Stop> {
        let ending = self.ending(over, interrupt)?;
        let mut asking = ending.ask(self.limits.max_memo_bytes, interrupt)?;
        // A caller takes this lock only while it holds the lock of the rows, so no other caller holds this one.
        let answers = self.end_answers(trie, over);
        let mut made = answers.made.lock();
        let mut meter = Meter::default();
        meter.allow(self.ending_work(), interrupt);
        let max_bytes = self.limits.max_memo_bytes / ANSWERS_OF_MEMORY;
        let max_tables = self.limits.max_memo_bytes / TABLES_OF_MEMORY;
        let work = self.limits.max_mask_work.min(MAX_WORK);
        let limit = made.descent.spent().saturating_add(work);
        let walk = WalkBounds { limit, max_bytes, max_tables, interrupt };
        let bounds = MaskBounds { walk, words: bits.len() };
        made.exits.most_bytes = max_tables;
        let mut memo = family.take_memo(over);
        let network = family.network().clone();
        let sets = &family.stepper.sets;
        let stacks = Stacks { network: &network, sets };
        let mut costs = Vec::new();
        let answer = |question, pending, _, Beneath { frame, set }| -> Result<PendingId, Stop> {
            let answer = made.answer((question, pending), &mut asking, &mut meter, bounds)?;
            costs.clear();
            for &node in &answer.nodes {
                let beneath = (frame, set, node);
                costs.push(asking.fewest_beneath(stacks, &mut memo, beneath, &mut meter)?);
            }
            for group in &answer.groups {
                let ways = &answer.ways[group.ways.start as usize..group.ways.end as usize];
                let cost = |&(node, tokens): &(u32, u32)| {
                    costs[node as usize].saturating_add(tokens).min(UNREACHABLE)
                };
                if ways.iter().map(cost).min().is_some_and(|fewest| fewest <= most) {
                    group.entries.add(bits);
                }
            }
            Ok(answer.popped)
        };
        let walked = walk_stacks(&network, (sets, set), trie, &mut Room::default(), answer);
        family.put_memo(memo);
        let most_kept = self.limits.max_memo_bytes / KEPT_OF_MEMORY;
        made.end(most_kept, matches!(walked, Err(Stop::Memory)));
        answers.bytes.store(made.bytes(), Ordering::Relaxed);
        walked
    }
}

impl AnswerTables {
    fn bytes(&self) -> usize {
        self.table_bytes()
            + self.answer_bytes
            + self.pending.bytes()
            + self.answers.capacity() * 25
            + self.entries.capacity() * 9
    }

    /// Bytes of what answers are made of.
    fn table_bytes(&self) -> usize {
        self.descent.bytes() + self.exits.bytes()
    }

    /// Ends a mask; one that had no room has everything forgotten.
    fn end(&mut self, most_kept: usize, forgets: bool) {
        self.descent.release();
        if forgets || self.table_bytes() > most_kept {
            self.forget_tables();
        }
        if forgets {
            self.answers = FxHashMap::default();
            self.entries = FxHashSet::default();
            self.pending = PendingSets::new(self.trie.ids());
            self.answer_bytes = 0;
        }
    }

    fn forget_tables(&mut self) {
        self.descent = Descent::new(self.network.clone(), self.trie.clone(), false, 0);
        self.exits = KnownExits::default();
    }

    fn answer(
        &mut self,
        asked: (Question, PendingId),
        asking: &mut Asking<'_>,
        meter: &mut Meter,
        bounds: MaskBounds<'_>,
    ) -> Result<Arc<EntriesByWay>, Stop> {
        if let Some(known) = self.answers.get(&asked) {
            return known.clone().ok_or(Stop::Work);
        }
        let before = self.descent.spent();
        let made = self.make(asked, asking, meter, bounds);
        let spent = self.descent.spent() - before;
        if matches!(made, Err(Stop::Work)) && spent > MAX_WORK / 2 {
            self.answers.insert(asked, None);
        }
        let answer = Arc::new(made?);
        self.answer_bytes += size_of::<EntriesByWay>()
            + answer.nodes.len() * size_of::<NodeId>()
            + answer.ways.len() * size_of::<(u32, u32)>()
            + answer.groups.len() * size_of::<Group>();
        if self.bytes() - self.table_bytes() > bounds.walk.max_bytes {
            return Err(Stop::Memory);
        }
        self.answers.insert(asked, Some(answer.clone()));
        Ok(answer)
    }

    fn make(
        &mut self,
        (question, pending): (Question, PendingId),
        asking: &mut Asking<'_>,
        meter: &mut Meter,
        bounds: MaskBounds<'_>,
    ) -> Result<EntriesByWay, Stop> {
        let Self { trie, descent, exits, .. } = self;
        // A token may begin a rule with guards: the numbers of its states are those of the descent.
        let network = descent.network().clone();
        // Entries by the stacks behind them, and these by their ways.
        let mut group_of: FxHashMap<SetId, usize> = FxHashMap::default();
        let mut by_ways: FxHashMap<Arc<[Way]>, usize> = FxHashMap::default();
        let mut groups: Vec<(Arc<[Way]>, Vec<u32>)> = Vec::new();
        let roots = (self.pending.get(pending), pending);
        let popped = descent.walk_entries(question, roots, bounds.walk, |sets, node, after| {
            let group = match group_of.get(&after) {
                Some(&known) => known,
                None => {
                    let stacks = Stacks { network: &network, sets };
                    let ways = asking.exits_above(stacks, exits, after, meter)?;
                    let group = *by_ways.entry(ways.clone()).or_insert(groups.len());
                    if group == groups.len() {
                        groups.push((ways, Vec::new()));
                    }
                    group_of.insert(after, group);
                    group
                }
            };
            groups[group].1.extend_from_slice(trie.numbers(node));
            Ok(())
        })?;
        let mut nodes: Vec<NodeId> =
            groups.iter().flat_map(|(ways, _)| ways.iter().map(|way| way.0)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        let mut ways: Vec<(u32, u32)> = Vec::new();
        let mut out = Vec::with_capacity(groups.len());
        for (own, entries) in groups.into_iter().filter(|(ways, _)| !ways.is_empty()) {
            let from = ways.len() as u32;
            for &(node, tokens) in &*own {
                ways.push((nodes.partition_point(|&known| known < node) as u32, tokens));
            }
            let entries = self.entries_of(entries, bounds.words);
            out.push(Group { ways: from..ways.len() as u32, entries });
        }
        let popped = self.pending.intern(&popped.into());
        Ok(EntriesByWay { nodes: nodes.into(), ways: ways.into(), groups: out.into(), popped })
    }

    fn entries_of(&mut self, mut numbers: Vec<u32>, words: usize) -> Arc<Entries> {
        numbers.sort_unstable();
        numbers.dedup();
        let entries = match numbers.len() < words {
            true => Entries::Listed(numbers.into()),
            false => {
                let mut row = vec![0; words];
                set_bits(&mut row, &numbers);
                Entries::Row(row.into())
            }
        };
        if let Some(known) = self.entries.get(&entries) {
            return known.clone();
        }
        self.answer_bytes += size_of::<Entries>() + 16 + entries.bytes();
        let entries = Arc::new(entries);
        self.entries.insert(entries.clone());
        entries
    }
}

impl Entries {
    fn bytes(&self) -> usize {
        match self {
            Self::Listed(numbers) => size_of_val(&**numbers),
            Self::Row(row) => size_of_val(&**row),
        }
    }

    fn add(&self, bits: &mut [i32]) {
        match self {
            Self::Listed(numbers) => set_bits(bits, numbers),
            Self::Row(row) => bits.iter_mut().zip(&**row).for_each(|(a, b)| *a |= b),
        }
    }
}

/// Whether a mask that stopped can be made without answers.
pub(super) fn without_answers(stop: Stop) -> Result<(), Halt> {
    match stop {
        Stop::Halted(halt) => Err(halt),
        Stop::Work | Stop::Memory | Stop::Sets | Stop::Forgotten | Stop::Told(_) => Ok(()),
    }
}
