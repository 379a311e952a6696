//! Masks as a walk down the stack, each step remembered (DESIGN.md, "The engine").
//!
//! What a frame does with the trie does not depend on what stands beneath it: some entries are
//! accepted while the frame, or what was called above it, is still there; and at some nodes of
//! the trie the frame has just been popped. There the frame beneath goes on. So a mask is the
//! union over the frames from the top down, each asked about the nodes that those above left
//! *pending*, until none is. Every answer is made when first needed and remembered under
//! (frame, pending nodes).

use super::pool::{Bits, Entry, Key, Pool};
use crate::error::Error;
use crate::network::{BOTTOM, Identities, Network, contains};
use crate::stacks::{NONE, OverBudget, REST, SetId, StackSets, Stepper};
use crate::vocabulary::Trie;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A set of trie nodes, hash-consed.
type PendingId = u32;
/// The root of the trie alone: nothing read yet.
const AT_ROOT: PendingId = 0;
/// No node.
const NOWHERE: PendingId = u32::MAX;

/// Entries of the trie that are accepted.
#[derive(Clone, Copy)]
enum Accepted {
    /// A range of `Walker::listed`.
    Listed(u32, u32),
    /// One of `Walker::rows`: where that is no larger than the list.
    Row(u32),
}

/// Trie nodes between two looks at the clock, less one.
const CHECK_MASK: u64 = 4_095;
/// Trie nodes that count as one unit of work: a step that is remembered is cheap.
const NODES_OF_WORK: u64 = 8;

/// What a frame does from a set of trie nodes.
#[derive(Clone, Copy)]
struct Answer {
    /// Accepted for certain.
    accepted: Accepted,
    /// Where the frame has been popped, with more of the trie below.
    pending: PendingId,
}

/// What masks cost so far; masks made of answers that were there count where they are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WalkCounters {
    /// Masks made.
    pub masks: u64,
    /// Pairs of a frame and pending nodes looked at.
    pub visits: u64,
    /// Answers that were there.
    pub hits: u64,
    /// Answers that were not.
    pub misses: u64,
    /// Of those, answers that the pool had.
    pub shared: u64,
    /// Trie nodes entered to make them.
    pub trie_nodes: u64,
}

/// Why a mask was not made.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It costs more than it may.
    Work,
    /// What it remembers takes more than it may.
    Memory,
    /// The caller said so.
    Told(Error),
}

/// Asked now and then whether to go on: an error is the reason to stop.
pub(crate) type Check<'a> = &'a dyn Fn() -> Result<(), Error>;

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Told(error)
    }
}

impl From<OverBudget> for Stop {
    fn from(_: OverBudget) -> Self {
        Stop::Work
    }
}

/// What one mask may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Trie nodes, stack set entries and visits, together.
    pub(crate) work: u64,
    /// Bytes of everything remembered.
    pub(crate) bytes: usize,
}

/// The answers over one trie.
pub(crate) struct Walker {
    network: Arc<Network>,
    trie: Arc<Trie>,
    /// Stack sets above an unknown rest, and what bytes do to them.
    stepper: Stepper<Arc<Network>>,
    answers: FxHashMap<(u32, PendingId), Answer>,
    listed: Vec<u32>,
    rows: Vec<Arc<[i32]>>,
    /// Words of a row.
    words: usize,
    pending: PendingSets,
    /// Where answers are shared with other grammars, and the digests of the states, made when
    /// first needed.
    pool: Option<Arc<Pool>>,
    identities: Option<Identities>,
    /// Work done outside of the stepper.
    work: u64,
    pub(crate) counters: WalkCounters,
    /// Room that is used again and again.
    path: Vec<(u32, SetId)>,
}

/// A place on the way down the stacks.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// The tops of a set.
    Set(SetId),
    /// One frame above a set.
    Frame(u32, SetId),
}

/// The way down the stacks: places, each with the pending nodes to ask it about.
#[derive(Default)]
struct Way {
    queue: Vec<(Place, PendingId)>,
    seen: FxHashSet<(Place, PendingId)>,
}

impl Way {
    fn begin(set: SetId) -> Self {
        Self { queue: vec![(Place::Set(set), AT_ROOT)], seen: FxHashSet::default() }
    }

    /// What stands beneath a frame that has been popped.
    fn go_on(&mut self, place: Place, pending: PendingId) {
        if pending != NOWHERE && place != Place::Set(REST) && self.seen.insert((place, pending)) {
            self.queue.push((place, pending));
        }
    }

    /// Asks `answer` about every frame on the way. Frames that delegate are not asked: what they
    /// call is, and then, where that has been popped, what it returns to.
    fn walk<E>(
        &mut self,
        network: &Network,
        sets: &StackSets,
        mut answer: impl FnMut(u32, PendingId) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        while let Some((place, pending)) = self.queue.pop() {
            let one;
            let frames = match place {
                Place::Frame(state, beneath) => {
                    one = [(state, beneath)];
                    &one[..]
                }
                Place::Set(set) => match sets.halves(set) {
                    Some((left, right)) => {
                        self.queue.extend([right, left].map(|half| (Place::Set(half), pending)));
                        continue;
                    }
                    None => sets.list(set),
                },
            };
            for &(top, beneath) in frames.iter().filter(|entry| entry.0 != BOTTOM) {
                if !network.delegates(top) {
                    let popped = answer(top, pending)?;
                    self.go_on(Place::Set(beneath), popped);
                    continue;
                }
                for call in network.calls(top).iter() {
                    let popped = answer(call.start, pending)?;
                    if network.stays(call.to) {
                        self.go_on(Place::Frame(call.to, beneath), popped);
                    }
                    if network.is_final(call.to) {
                        self.go_on(Place::Set(beneath), popped);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Walker {
    /// Over a trie whose numbers are bits of rows of so many words. A pool is one of answers over
    /// the same trie.
    pub(crate) fn new(
        network: Arc<Network>,
        trie: Arc<Trie>,
        words: usize,
        pool: Option<Arc<Pool>>,
    ) -> Self {
        let mut stepper = Stepper::new(network.clone());
        stepper.sets.max_depth = u32::MAX;
        Self {
            network,
            trie,
            stepper,
            answers: FxHashMap::default(),
            listed: Vec::new(),
            rows: Vec::new(),
            words,
            pending: PendingSets::new(),
            pool,
            identities: None,
            work: 0,
            counters: WalkCounters::default(),
            path: Vec::new(),
        }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.stepper.bytes()
            + self.answers.capacity() * 21
            + self.listed.capacity() * 4
            + self.rows.len() * (self.words * 4 + 16)
            + self.pending.bytes()
    }

    /// Forgets every answer.
    pub(crate) fn forget(&mut self) {
        let counters = self.counters;
        let pool = self.pool.take();
        *self = Self::new(self.network.clone(), self.trie.clone(), self.words, pool);
        self.counters = counters;
    }

    /// Sets the bits of the entries that may follow a stack set of `sets`.
    ///
    /// When it stops, everything made is kept and right; the bits are to be thrown away.
    pub(crate) fn mask(
        &mut self,
        sets: &StackSets,
        set: SetId,
        allowance: Allowance,
        check: Check<'_>,
        bits: &mut [i32],
    ) -> Result<(), Stop> {
        self.counters.masks += 1;
        match self.descend(sets, set, allowance, check, bits) {
            // What other masks remember is no reason to refuse this one.
            Err(Stop::Memory) => {
                self.forget();
                bits.fill(0);
                self.descend(sets, set, allowance, check, bits)
            }
            result => result,
        }
    }

    fn descend(
        &mut self,
        sets: &StackSets,
        set: SetId,
        allowance: Allowance,
        check: Check<'_>,
        bits: &mut [i32],
    ) -> Result<(), Stop> {
        let limit = self.spent().saturating_add(allowance.work);
        let network = self.network.clone();
        Way::begin(set).walk(&network, sets, |frame, pending| {
            self.counters.visits += 1;
            self.work += 1;
            let answer = self.answer(frame, pending, limit, allowance.bytes, check)?;
            self.write(answer.accepted, bits);
            Ok(answer.pending)
        })
    }

    /// The same where every answer is there; else false, and the bits are to be thrown away.
    pub(crate) fn mask_again(
        &self,
        sets: &StackSets,
        set: SetId,
        counters: &mut WalkCounters,
        bits: &mut [i32],
    ) -> bool {
        let longest = self.trie.longest();
        let walked: Result<(), ()> = Way::begin(set).walk(&self.network, sets, |frame, pending| {
            counters.visits += 1;
            let frame = self.network.like(frame, longest);
            let answer = self.answers.get(&(frame, pending)).ok_or(())?;
            counters.hits += 1;
            self.write(answer.accepted, bits);
            Ok(answer.pending)
        });
        counters.masks += u64::from(walked == Ok(()));
        walked == Ok(())
    }

    fn write(&self, accepted: Accepted, bits: &mut [i32]) {
        match accepted {
            Accepted::Listed(from, to) => set_bits(bits, &self.listed[from as usize..to as usize]),
            Accepted::Row(row) => {
                bits.iter_mut().zip(&*self.rows[row as usize]).for_each(|(a, b)| *a |= b);
            }
        }
    }

    /// The frames that can stand on top, those first whose answers are likely to cost most: by the
    /// trie nodes below the bytes that they can read first.
    pub(crate) fn costs(&self) -> Vec<u32> {
        let alphabet = self.network.alphabet();
        let mut below = [0u64; 256];
        let mut node = 1;
        while (node as usize) < self.trie.len() {
            let end = self.trie.end(node);
            below[alphabet.class(self.trie.byte(node)) as usize] += u64::from(end - node);
            node = end;
        }
        let cost = |state: u32| {
            let first = self.network.first(state);
            (0..=255u8).filter(|&class| contains(first, class)).map(|c| below[c as usize]).sum()
        };
        let mut out: Vec<(u64, u32)> =
            (0..self.network.len() as u32).map(|state| (cost(state), state)).collect();
        out.sort_unstable_by_key(|&(cost, state)| (std::cmp::Reverse(cost), state));
        out.into_iter().map(|(_, state)| state).collect()
    }

    /// Makes the answer of a frame with nothing read; false where it was there. One that takes
    /// too much is left to the mask that needs it.
    pub(crate) fn warm(
        &mut self,
        frame: u32,
        allowance: Allowance,
        check: Check<'_>,
    ) -> Result<bool, Stop> {
        let before = self.counters.misses;
        let limit = self.spent().saturating_add(allowance.work);
        match self.answer(frame, AT_ROOT, limit, allowance.bytes, check) {
            Ok(_) => Ok(self.counters.misses > before),
            Err(Stop::Work) => Ok(false),
            Err(stop) => Err(stop),
        }
    }

    fn spent(&self) -> u64 {
        self.stepper.sets.work + self.work
    }

    fn answer(
        &mut self,
        frame: u32,
        pending: PendingId,
        limit: u64,
        max_bytes: usize,
        check: Check<'_>,
    ) -> Result<Answer, Stop> {
        let frame = self.network.like(frame, self.trie.longest());
        if let Some(&answer) = self.answers.get(&(frame, pending)) {
            self.counters.hits += 1;
            return Ok(answer);
        }
        self.counters.misses += 1;
        let key = self.key(frame, pending);
        let shared = key.as_ref().zip(self.pool.as_ref()).and_then(|(key, pool)| pool.get(key));
        if let Some(entry) = shared {
            self.counters.shared += 1;
            return Ok(self.adopt(frame, pending, &entry));
        }
        let base = if pending == AT_ROOT { self.network.base(frame) } else { None };
        let answer = match base {
            Some((base, bytes)) => self.answer_near(frame, base, bytes, limit, max_bytes, check)?,
            None => self.answer_alone(frame, pending, limit, max_bytes, check)?,
        };
        if let (Some(key), Some(pool)) = (key, &self.pool) {
            pool.put(key, self.entry(answer));
        }
        Ok(answer)
    }

    /// Under what an answer is shared: none that is made as fast as it is found.
    fn key(&mut self, frame: u32, pending: PendingId) -> Option<Key> {
        let least = self.pool.as_ref()?.least_nodes;
        let nodes = self.pending.get(pending);
        let below: u32 = nodes.iter().map(|&node| self.trie.end(node) - node).sum();
        if below < least {
            return None;
        }
        let network = &self.network;
        let identities = self.identities.get_or_insert_with(|| Identities::new(network));
        Some(Pool::key(&identities.of(network, frame), self.pending.get(pending)))
    }

    /// Takes up an answer of the pool.
    fn adopt(&mut self, frame: u32, pending: PendingId, entry: &Entry) -> Answer {
        let accepted = match &entry.accepted {
            Bits::Listed(numbers) => {
                let from = self.listed.len() as u32;
                self.listed.extend_from_slice(numbers);
                Accepted::Listed(from, self.listed.len() as u32)
            }
            Bits::Row(row) => {
                self.rows.push(row.clone());
                Accepted::Row(self.rows.len() as u32 - 1)
            }
        };
        let answer = Answer { accepted, pending: self.pending.intern(entry.popped.to_vec()) };
        self.answers.insert((frame, pending), answer);
        answer
    }

    fn entry(&self, answer: Answer) -> Entry {
        let accepted = match answer.accepted {
            Accepted::Listed(from, to) => {
                Bits::Listed(self.listed[from as usize..to as usize].into())
            }
            Accepted::Row(row) => Bits::Row(self.rows[row as usize].clone()),
        };
        let popped: &[u32] = match answer.pending {
            NOWHERE => &[],
            pending => self.pending.get(pending),
        };
        Entry { accepted, popped: popped.into() }
    }

    fn answer_alone(
        &mut self,
        frame: u32,
        pending: PendingId,
        limit: u64,
        max_bytes: usize,
        check: Check<'_>,
    ) -> Result<Answer, Stop> {
        let from = self.listed.len();
        let made = self.make(frame, pending, limit, max_bytes, check);
        let popped = match made {
            Ok(popped) => popped,
            Err(stop) => {
                self.listed.truncate(from);
                return Err(stop);
            }
        };
        let mut accepted = Accepted::Listed(from as u32, self.listed.len() as u32);
        if self.listed.len() - from > self.words {
            let mut row = vec![0; self.words];
            set_bits(&mut row, &self.listed[from..]);
            self.listed.truncate(from);
            accepted = Accepted::Row(self.rows.len() as u32);
            self.rows.push(row.into());
        }
        let answer = Answer { accepted, pending: self.pending.intern(popped) };
        self.answers.insert((frame, pending), answer);
        Ok(answer)
    }

    /// The answer of a frame that does with `bytes` bytes what `base` does: where the trie is no
    /// deeper that of `base`, and a walk below. So the last characters of a long string take
    /// a walk over the few longer tokens each, not one over the vocabulary.
    fn answer_near(
        &mut self,
        frame: u32,
        base: u32,
        bytes: u32,
        limit: u64,
        max_bytes: usize,
        check: Check<'_>,
    ) -> Result<Answer, Stop> {
        let answer = self.answer(base, AT_ROOT, limit, max_bytes, check)?;
        let mut row = vec![0; self.words];
        self.write(answer.accepted, &mut row);
        let popped_before = match answer.pending {
            NOWHERE => Vec::new(),
            pending => self.pending.get(pending).to_vec(),
        };
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let left = limit.saturating_sub(self.spent());
        self.stepper.sets.allowance = self.stepper.sets.work.saturating_add(left);
        let start = self.stepper.sets.add(&[(frame, REST)])?;
        let mut popped = Vec::new();
        // Subtrees that are walked anew.
        let mut deep: Vec<(u32, u32)> = Vec::new();
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        path.push((trie.end(0), start));
        let mut entered = 0u64;
        let mut node = 1;
        while node < trie.end(0) {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            let end = trie.end(node);
            let depth = path.len() as u32;
            if trie.longest_below(node) < u16::MAX && u32::from(trie.longest_below(node)) <= bytes {
                node = end;
                continue;
            }
            entered += 1;
            if entered & CHECK_MASK == 0 {
                check()?;
            }
            let set = self.stepper.step(path[path.len() - 1].1, alphabet.class(trie.byte(node)))?;
            // What is no deeper than `bytes` is as `base` has it.
            if depth > bytes && set != NONE {
                set_bits(&mut row, trie.numbers(node));
                if end > node + 1 && self.stepper.sets.has_rest(set) {
                    popped.push(node);
                }
            }
            if depth == bytes {
                clear_bits(&mut row, trie.numbers_of(node + 1..end));
                deep.push((node + 1, end));
            }
            if set == NONE || set == REST {
                node = end;
                continue;
            }
            path.push((end, set));
            node += 1;
        }
        self.path = path;
        self.work += entered / NODES_OF_WORK;
        self.counters.trie_nodes += entered;
        let is_deep = |node: u32| {
            let i = deep.partition_point(|range| range.0 <= node);
            i > 0 && node < deep[i - 1].1
        };
        popped.extend(popped_before.into_iter().filter(|&node| !is_deep(node)));
        popped.sort_unstable();
        let accepted = Accepted::Row(self.rows.len() as u32);
        self.rows.push(row.into());
        let answer = Answer { accepted, pending: self.pending.intern(popped) };
        self.answers.insert((frame, AT_ROOT), answer);
        if self.bytes() > max_bytes {
            return Err(Stop::Memory);
        }
        Ok(answer)
    }

    /// Walks the trie below each pending node with the frame alone on the stack. Accepted entries
    /// go to the end of `self.listed`; the nodes where the frame is popped are returned.
    fn make(
        &mut self,
        frame: u32,
        pending: PendingId,
        limit: u64,
        max_bytes: usize,
        check: Check<'_>,
    ) -> Result<Vec<u32>, Stop> {
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let left = limit.saturating_sub(self.spent());
        self.stepper.sets.allowance = self.stepper.sets.work.saturating_add(left);
        let start = self.stepper.sets.add(&[(frame, REST)])?;
        let mut popped = Vec::new();
        let mut path = std::mem::take(&mut self.path);
        for index in 0..self.pending.get(pending).len() {
            let root = self.pending.get(pending)[index];
            if self.spent() > limit {
                return Err(Stop::Work);
            }
            check()?;
            let mut entered = 0u64;
            path.clear();
            path.push((trie.end(root), start));
            let mut node = root + 1;
            while node < trie.end(root) {
                while path[path.len() - 1].0 <= node {
                    path.pop();
                }
                entered += 1;
                if entered & CHECK_MASK == 0 {
                    check()?;
                }
                let class = alphabet.class(trie.byte(node));
                let set = self.stepper.step(path[path.len() - 1].1, class)?;
                let end = trie.end(node);
                if set == NONE {
                    node = end;
                    continue;
                }
                self.listed.extend_from_slice(trie.numbers(node));
                if end > node + 1 && self.stepper.sets.has_rest(set) {
                    popped.push(node);
                }
                if set == REST {
                    node = end;
                    continue;
                }
                path.push((end, set));
                node += 1;
            }
            self.work += entered / NODES_OF_WORK;
            self.counters.trie_nodes += entered;
            // Looked at between two roots only: one walk of the whole trie is the least unit.
            if self.bytes() > max_bytes {
                return Err(Stop::Memory);
            }
        }
        self.path = path;
        popped.sort_unstable();
        popped.dedup();
        Ok(popped)
    }
}

fn clear_bits(row: &mut [i32], numbers: &[u32]) {
    for &number in numbers {
        row[number as usize >> 5] &= !(1 << (number & 31));
    }
}

fn set_bits(row: &mut [i32], numbers: &[u32]) {
    for &number in numbers {
        row[number as usize >> 5] |= 1 << (number & 31);
    }
}

/// Sets of trie nodes, hash-consed.
struct PendingSets {
    nodes: Vec<u32>,
    ranges: Vec<(u32, u32)>,
    table: HashTable<PendingId>,
}

impl PendingSets {
    fn new() -> Self {
        let mut out = Self { nodes: Vec::new(), ranges: Vec::new(), table: HashTable::new() };
        out.intern(vec![0]);
        out
    }

    fn bytes(&self) -> usize {
        self.nodes.capacity() * 4 + self.ranges.capacity() * 8 + self.table.capacity() * 5
    }

    fn get(&self, id: PendingId) -> &[u32] {
        let (from, to) = self.ranges[id as usize];
        &self.nodes[from as usize..to as usize]
    }

    /// The number of a sorted set.
    fn intern(&mut self, nodes: Vec<u32>) -> PendingId {
        if nodes.is_empty() {
            return NOWHERE;
        }
        let hash = crate::hash::hash_of(nodes.as_slice());
        if let Some(&id) = self.table.find(hash, |&id| self.get(id) == nodes) {
            return id;
        }
        let id = self.ranges.len() as PendingId;
        let from = self.nodes.len() as u32;
        self.nodes.extend_from_slice(&nodes);
        self.ranges.push((from, self.nodes.len() as u32));
        let (all, ranges) = (&self.nodes, &self.ranges);
        self.table.insert_unique(hash, id, |&id| {
            let (from, to) = ranges[id as usize];
            crate::hash::hash_of(&all[from as usize..to as usize])
        });
        id
    }
}
