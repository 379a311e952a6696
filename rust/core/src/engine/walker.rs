//! Masks as a walk down the stack, each step remembered (DESIGN.md, "The engine").
//!
//! What a frame does with the trie does not depend on what stands beneath it: some entries are
//! accepted while the frame, or what was called above it, is still there; and at some nodes of
//! the trie the frame has just been popped. There the frame beneath goes on. So a mask is the
//! union over the frames from the top down, each asked about the nodes that those above left
//! *pending*, until none is. Every answer is made when first needed and remembered under
//! (frame, pending nodes).

use super::hot::{COLD, HotSets, UNKNOWN};
use super::pending::{AT_ROOT, NOWHERE, PendingId, PendingSets};
use super::pool::{Bits, Entry, Key, Pool};
use super::way::{ALONE, OWN, Question, Way};
use crate::automata::alphabet::Alphabet;
use crate::error::Error;
use crate::network::{Identities, Network, contains};
use crate::stacks::{LABEL, NONE, OverBudget, REST, SetId, StackSets, Stepper};
use crate::vocabulary::{BETWEEN, BROKEN, Trie, UTF8_STATES, group, utf8_step};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

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
    answers: FxHashMap<(Question, PendingId), Answer>,
    /// What a byte makes of frames without the calls that they delegate.
    own_steps: FxHashMap<(u32, u8), SetId>,
    /// For sets with frames that count: the set with frames that do not in their places, and for
    /// how many bytes it does the same.
    uncounted: FxHashMap<SetId, (u32, SetId)>,
    hot: HotSets,
    listed: Vec<u32>,
    rows: Vec<Arc<[i32]>>,
    /// Words of a row.
    words: usize,
    pending: PendingSets,
    /// Where answers are shared with other grammars, and the digests of the states, made when
    /// first needed.
    pool: Option<Arc<Pool>>,
    identities: Option<Identities>,
    /// Whether the trie is that of a whole vocabulary: what loops then take in whole is worth
    /// finding out.
    is_whole: bool,
    /// Work done outside of the stepper.
    work: u64,
    pub(crate) counters: WalkCounters,
    /// Room that is used again and again.
    path: Vec<(u32, SetId, u16)>,
}

/// What a walk over the trie gives besides the entries that it lists.
#[derive(Default)]
struct Found {
    /// Entries of the trie that are accepted: ranges that do not touch, in order.
    accepted: Vec<Range<u32>>,
    /// Nodes where the frame has been popped.
    popped: Vec<u32>,
    /// With `near`: subtrees that were walked, by their nodes.
    walked: Vec<Range<u32>>,
}

impl Found {
    fn accept(&mut self, entries: Range<u32>) {
        match self.accepted.last_mut() {
            Some(last) if last.end == entries.start => last.end = entries.end,
            _ if entries.is_empty() => {}
            _ => self.accepted.push(entries),
        }
    }
}

/// One walk over a part of the trie.
#[derive(Clone, Copy)]
struct Walk<'a> {
    /// The stacks to begin with.
    start: SetId,
    /// Their only frame, where its delegated calls are left out.
    own: Option<u32>,
    /// Whether the frame counts.
    counts: bool,
    /// Nothing is said of nodes at most so many bytes deep.
    near: u32,
    check: Check<'a>,
}

/// What one answer may cost, and whom it asks whether to go on.
#[derive(Clone, Copy)]
struct Bounds<'a> {
    /// What `Walker::spent` may not pass.
    limit: u64,
    max_bytes: usize,
    check: Check<'a>,
}

impl Walker {
    /// Over a trie whose numbers are bits of rows of so many words.
    pub(crate) fn new(network: Arc<Network>, trie: Arc<Trie>, words: usize) -> Self {
        let mut stepper = Stepper::new(network.clone());
        stepper.sets.max_depth = u32::MAX;
        Self {
            network,
            trie,
            stepper,
            answers: FxHashMap::default(),
            own_steps: FxHashMap::default(),
            uncounted: FxHashMap::default(),
            hot: HotSets::default(),
            listed: Vec::new(),
            rows: Vec::new(),
            words,
            pending: PendingSets::new(),
            pool: None,
            identities: None,
            is_whole: false,
            work: 0,
            counters: WalkCounters::default(),
            path: Vec::new(),
        }
    }

    /// Over the trie of a whole vocabulary, with a pool of answers over it.
    pub(crate) fn whole(self, pool: Option<Arc<Pool>>) -> Self {
        Self { pool, is_whole: true, ..self }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.stepper.bytes()
            + self.answers.capacity() * 25
            + self.own_steps.capacity() * 13
            + self.uncounted.capacity() * 13
            + self.hot.bytes()
            + self.listed.capacity() * 4
            + self.rows.len() * (self.words * 4 + 16)
            + self.pending.bytes()
    }

    /// Forgets every answer.
    pub(crate) fn forget(&mut self) {
        let counters = self.counters;
        let (pool, is_whole) = (self.pool.take(), self.is_whole);
        let new = Self::new(self.network.clone(), self.trie.clone(), self.words);
        *self = Self { pool, is_whole, counters, ..new };
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
        let bounds = self.bounds(allowance, check);
        let network = self.network.clone();
        Way::new(&network, sets, set).walk(|question, pending| {
            self.counters.visits += 1;
            self.work += 1;
            let answer = self.answer(question, pending, bounds)?;
            self.write(answer.accepted, bits);
            Ok(answer.pending)
        })
    }

    /// Lets the stepper work up to what is left.
    fn allow(&mut self, bounds: Bounds<'_>) {
        let left = bounds.limit.saturating_sub(self.spent());
        self.stepper.sets.allowance = self.stepper.sets.work.saturating_add(left);
    }

    fn bounds<'a>(&self, allowance: Allowance, check: Check<'a>) -> Bounds<'a> {
        let limit = self.spent().saturating_add(allowance.work);
        Bounds { limit, max_bytes: allowance.bytes, check }
    }

    /// The same where every answer is there, over whatever the bits were before; else false, and
    /// the bits are to be thrown away.
    pub(crate) fn mask_again(
        &self,
        sets: &StackSets,
        set: SetId,
        counters: &mut WalkCounters,
        bits: &mut [i32],
    ) -> bool {
        let way = Way::new(&self.network, sets, set);
        let mut is_blank = false;
        let walked: Result<(), ()> = way.walk(|question, pending| {
            counters.visits += 1;
            let answer = self.answers.get(&(self.like(question), pending)).ok_or(())?;
            counters.hits += 1;
            // A row that comes first is written over what was there: most masks are one row.
            match answer.accepted {
                Accepted::Row(row) if !is_blank => bits.copy_from_slice(&self.rows[row as usize]),
                accepted => {
                    if !is_blank {
                        bits.fill(0);
                    }
                    self.write(accepted, bits);
                }
            }
            is_blank = true;
            Ok(answer.pending)
        });
        if !is_blank {
            bits.fill(0);
        }
        counters.masks += u64::from(walked == Ok(()));
        walked == Ok(())
    }

    /// A question with the same answers, the same for many states that count.
    fn like(&self, question: Question) -> Question {
        let longest = self.trie.longest();
        let like = |state| if state < LABEL { self.network.like(state, longest) } else { state };
        Question { frame: like(question.frame), under: like(question.under) }
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
        let bounds = self.bounds(allowance, check);
        let network = self.network.clone();
        let mut questions = Vec::new();
        let delegated = network.delegated(frame);
        if delegated.is_empty() || network.has_own(frame) {
            let under = if delegated.is_empty() { ALONE } else { OWN };
            questions.push(Question { frame, under });
        }
        for call in delegated {
            let together = network.is_counting(call.start) && network.stays(call.to);
            let under = if together { call.to } else { ALONE };
            questions.push(Question { frame: call.start, under });
        }
        for question in questions {
            match self.answer(question, AT_ROOT, bounds) {
                Ok(_) | Err(Stop::Work) => {}
                Err(stop) => return Err(stop),
            }
        }
        Ok(self.counters.misses > before)
    }

    fn spent(&self) -> u64 {
        self.stepper.sets.work + self.work
    }

    fn answer(
        &mut self,
        question: Question,
        pending: PendingId,
        bounds: Bounds<'_>,
    ) -> Result<Answer, Stop> {
        let question = self.like(question);
        if let Some(&answer) = self.answers.get(&(question, pending)) {
            self.counters.hits += 1;
            return Ok(answer);
        }
        self.counters.misses += 1;
        let key = self.key(question, pending);
        let shared = key.as_ref().zip(self.pool.as_ref()).and_then(|(key, pool)| pool.get(key));
        let answer = match shared {
            Some(entry) => {
                self.counters.shared += 1;
                self.adopt(&entry)
            }
            None => {
                let answer = self.make(question, pending, bounds)?;
                if let (Some(key), Some(pool)) = (key, &self.pool) {
                    pool.put(key, self.entry(answer));
                }
                answer
            }
        };
        // One walk of the whole trie is the least unit. What is over the limit is not remembered,
        // so that the same question is refused again.
        if self.bytes() > bounds.max_bytes {
            return Err(Stop::Memory);
        }
        self.answers.insert((question, pending), answer);
        Ok(answer)
    }

    /// Under what an answer is shared: none that is made as fast as it is found.
    fn key(&mut self, question: Question, pending: PendingId) -> Option<Key> {
        let least = self.pool.as_ref()?.least_nodes;
        let nodes = self.pending.get(pending);
        let below: u32 = nodes.iter().map(|&node| self.trie.end(node) - node).sum();
        if below < least {
            return None;
        }
        let network = &self.network;
        let identities = self.identities.get_or_insert_with(|| Identities::new(network));
        let under = match question.under {
            ALONE => [0; 32],
            OWN => [1; 32],
            state => identities.of(network, state),
        };
        let frame = identities.of(network, question.frame);
        Some(Pool::key(&[frame, under], self.pending.get(pending)))
    }

    /// Takes up an answer of the pool.
    fn adopt(&mut self, entry: &Entry) -> Answer {
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
        Answer { accepted, pending: self.pending.intern(&entry.popped) }
    }

    fn entry(&self, answer: Answer) -> Entry {
        let accepted = match answer.accepted {
            Accepted::Listed(from, to) => {
                Bits::Listed(self.listed[from as usize..to as usize].into())
            }
            Accepted::Row(row) => Bits::Row(self.rows[row as usize].clone()),
        };
        Entry { accepted, popped: self.pending.get(answer.pending).into() }
    }

    /// An answer that is nowhere yet.
    fn make(
        &mut self,
        question: Question,
        pending: PendingId,
        bounds: Bounds<'_>,
    ) -> Result<Answer, Stop> {
        let mut found = Found::default();
        let base = match pending {
            AT_ROOT => self.made_from_another(question, bounds, &mut found)?,
            _ => None,
        };
        let mut row = None;
        match base {
            None => self.walk_all(question, pending, 0, bounds, &mut found)?,
            Some(bases) => {
                let mut bits = vec![0; self.words];
                bases.iter().for_each(|base| self.write(base.accepted, &mut bits));
                for nodes in &found.walked {
                    let entries = self.trie.entries_of(nodes.clone());
                    clear_bits(&mut bits, self.trie.numbers_of(entries));
                }
                row = Some(bits);
                let is_walked = |node: u32| {
                    let after = found.walked.partition_point(|nodes| nodes.start <= node);
                    after > 0 && found.walked[after - 1].contains(&node)
                };
                let popped = bases.last().map_or(NOWHERE, |base| base.pending);
                let before = self.pending.get(popped).iter().copied();
                found.popped.extend(before.filter(|&node| !is_walked(node)));
            }
        }
        if found.accepted.iter().map(Range::len).sum::<usize>() > self.words {
            row.get_or_insert_with(|| vec![0; self.words]);
        }
        let numbers = found.accepted.into_iter().map(|entries| self.trie.numbers_of(entries));
        let accepted = match row {
            None => {
                let from = self.listed.len() as u32;
                numbers.for_each(|numbers| self.listed.extend_from_slice(numbers));
                Accepted::Listed(from, self.listed.len() as u32)
            }
            Some(mut bits) => {
                numbers.for_each(|numbers| set_bits(&mut bits, numbers));
                self.rows.push(bits.into());
                Accepted::Row(self.rows.len() as u32 - 1)
            }
        };
        found.popped.sort_unstable();
        found.popped.dedup();
        Ok(Answer { accepted, pending: self.pending.intern(&found.popped) })
    }

    /// Answers to other questions that are together the same but for some parts of the trie, which
    /// are walked, if there are any; the last says where frames have been popped.
    fn made_from_another(
        &mut self,
        question: Question,
        bounds: Bounds<'_>,
        found: &mut Found,
    ) -> Result<Option<Vec<Answer>>, Stop> {
        // A frame that counts does with few bytes what one does that does not count: then only
        // what is deeper in the trie is walked. So the last characters of a long string take a
        // walk over the longer tokens each, not one over the vocabulary.
        if let Some((frame, bytes)) = self.network.base(question.frame) {
            let answer = self.answer(Question { frame, ..question }, AT_ROOT, bounds)?;
            self.walk_all(question, AT_ROOT, bytes, bounds, found)?;
            return Ok(Some(vec![answer]));
        }
        // A frame that nearly every byte leads into a loop does what the loop does, but for the
        // bytes that do not: a name that has begun like a keyword may go on as any.
        self.allow(bounds);
        let (start, own) = self.start(question)?;
        let Some((like, looping)) = self.main_loop(question, start, own)? else {
            return Ok(None);
        };
        let trie = self.trie.clone();
        let mut node = 1;
        let mut apart = Vec::new();
        while node < trie.end(0) {
            let end = trie.end(node);
            let class = self.network.alphabet().class(trie.byte(node));
            if self.first_step(start, own, class)? != self.stepper.step(looping, class)? {
                apart.push(node..end);
            }
            node = end;
        }
        let nodes: usize = apart.iter().map(Range::len).sum();
        if nodes > trie.len() / 4 {
            return Ok(None);
        }
        let first = Question { under: ALONE, ..like };
        let mut answers = vec![self.answer(first, AT_ROOT, bounds)?];
        if like.under != ALONE && answers[0].pending != NOWHERE {
            let rest = Question { frame: like.under, under: ALONE };
            answers.push(self.answer(rest, answers[0].pending, bounds)?);
        }
        self.allow(bounds);
        let walk = Walk { start, own, counts: false, near: 0, check: bounds.check };
        for nodes in apart {
            self.walk(nodes.clone(), walk, found)?;
            found.walked.push(nodes);
        }
        Ok(Some(answers))
    }

    /// A loop that most of the trie leads to, as a question and as a set.
    fn main_loop(
        &mut self,
        question: Question,
        start: SetId,
        own: Option<u32>,
    ) -> Result<Option<(Question, SetId)>, OverBudget> {
        if !self.is_whole || !matches!(question.under, ALONE | OWN) {
            return Ok(None);
        }
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut weights: Vec<(SetId, u32)> = Vec::new();
        let mut node = 1;
        while node < trie.end(0) {
            let set = self.first_step(start, own, alphabet.class(trie.byte(node)))?;
            let weight = trie.end(node) - node;
            match weights.iter_mut().find(|known| known.0 == set) {
                Some(known) => known.1 += weight,
                None => weights.push((set, weight)),
            }
            node = trie.end(node);
        }
        let Some(&(set, weight)) = weights.iter().max_by_key(|known| known.1) else {
            return Ok(None);
        };
        let like = match *self.stepper.sets.list(set) {
            [(frame, _)] if frame >= LABEL || network.is_counting(frame) => return Ok(None),
            [(frame, REST)] => Question { frame, under: ALONE },
            [(frame, beneath)] => match *self.stepper.sets.list(beneath) {
                [(under, REST)] if under < LABEL => Question { frame, under },
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if like == question || weight < trie.end(0) / 2 {
            return Ok(None);
        }
        // Only what most of the trie leads back to, so that no frame is asked about by way of
        // itself.
        let mut back = 0;
        let mut node = 1;
        while node < trie.end(0) {
            let class = alphabet.class(trie.byte(node));
            if self.stepper.step(set, class)? == set {
                back += trie.end(node) - node;
            }
            node = trie.end(node);
        }
        Ok((back > trie.end(0) / 2).then_some((like, set)))
    }

    /// The stacks of a question, and its frame where that leaves its delegated calls out.
    fn start(&mut self, question: Question) -> Result<(SetId, Option<u32>), OverBudget> {
        let beneath = match question.under {
            ALONE | OWN => REST,
            state => self.stepper.sets.add(&[(state, REST)])?,
        };
        let start = self.stepper.sets.add(&[(question.frame, beneath)])?;
        Ok((start, (question.under == OWN).then_some(question.frame)))
    }

    fn first_step(
        &mut self,
        start: SetId,
        own: Option<u32>,
        class: u8,
    ) -> Result<SetId, OverBudget> {
        match own {
            Some(frame) => self.own_step(frame, class),
            None => self.stepper.step(start, class),
        }
    }

    /// Walks the trie below each pending node with the question's frames alone on the stack.
    /// Nothing is said of nodes at most `near` bytes deep.
    fn walk_all(
        &mut self,
        question: Question,
        pending: PendingId,
        near: u32,
        bounds: Bounds<'_>,
        found: &mut Found,
    ) -> Result<(), Stop> {
        self.allow(bounds);
        let (start, own) = self.start(question)?;
        let counts = self.network.is_counting(question.frame);
        let walk = Walk { start, own, counts, near, check: bounds.check };
        for index in 0..self.pending.get(pending).len() {
            let root = self.pending.get(pending)[index];
            if self.spent() > bounds.limit {
                return Err(Stop::Work);
            }
            (bounds.check)()?;
            self.walk(root + 1..self.trie.end(root), walk, found)?;
        }
        Ok(())
    }

    /// Walks children of one node with all that is below them.
    fn walk(&mut self, nodes: Range<u32>, walk: Walk<'_>, found: &mut Found) -> Result<(), Stop> {
        let Walk { start, own, counts, near, check } = walk;
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut path = std::mem::take(&mut self.path);
        path.clear();
        let hot = if own.is_some() { COLD } else { self.hot.meet(start, alphabet.len()) };
        path.push((nodes.end, start, hot));
        let mut entered = 0u64;
        let mut node = nodes.start;
        while node < nodes.end {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            let depth = path.len() as u32;
            let (_, before, hot) = path[path.len() - 1];
            let end = trie.end(node);
            if near > 0 && trie.is_shallow(node, near) {
                node = end;
                continue;
            }
            entered += 1;
            if entered & CHECK_MASK == 0 {
                check()?;
            }
            let class = alphabet.class(trie.byte(node));
            let set = match (own, depth) {
                (Some(frame), 1) => self.own_step(frame, class)?,
                _ => self.step(before, hot, class)?,
            };
            let is_said = depth > near;
            if near > 0 && depth == near {
                found.walked.push(node + 1..end);
            }
            if set == NONE {
                node = end;
                continue;
            }
            if is_said {
                found.accept(trie.entries_of(node..node + 1));
            }
            if end == node + 1 {
                node = end;
                continue;
            }
            let set = self.uncounted(set, trie.longest_below(node).saturating_sub(depth))?;
            let hot = self.hot.meet(set, alphabet.len());
            // Where all that is below is accepted, it is no matter whether the frame was popped; but
            // one that counts is the base of others, which accept less.
            let may_skip = self.is_whole
                && hot != COLD
                && is_said
                && !(counts && self.stepper.sets.has_rest(set));
            if may_skip && trie.groups_below(node) & !self.stays(set, hot, alphabet)? == 0 {
                found.accept(trie.entries_of(node + 1..end));
                node = end;
                continue;
            }
            if is_said && self.stepper.sets.has_rest(set) {
                found.popped.push(node);
            }
            if set == REST {
                node = end;
                continue;
            }
            path.push((end, set, hot));
            node += 1;
        }
        self.path = path;
        self.work += entered / NODES_OF_WORK;
        self.counters.trie_nodes += entered;
        Ok(())
    }

    #[inline]
    fn step(&mut self, set: SetId, hot: u16, class: u8) -> Result<SetId, OverBudget> {
        if hot == COLD {
            return self.stepper.step(set, class);
        }
        match self.hot.next(hot, class) {
            UNKNOWN => {
                let next = self.stepper.step(set, class)?;
                self.hot.remember(hot, class, next);
                Ok(next)
            }
            next => Ok(next),
        }
    }

    /// A set that does with so many bytes what `set` does, if there is one in which nothing counts:
    /// the inside of a string of bounded length is then a loop as well.
    #[inline]
    fn uncounted(&mut self, set: SetId, bytes: u32) -> Result<SetId, OverBudget> {
        if !self.network.has_counters() {
            return Ok(set);
        }
        let (enough, uncounted) = match self.uncounted.get(&set) {
            Some(&known) => known,
            None => {
                let mut enough = u32::MAX;
                let mut entries = self.stepper.sets.entries(set);
                for (top, _) in entries.iter_mut().filter(|entry| entry.0 < LABEL) {
                    if let Some((base, bytes)) = self.network.base(*top) {
                        enough = enough.min(bytes);
                        *top = base;
                    }
                }
                let made = self.stepper.sets.collect(&mut entries, &[])?;
                self.uncounted.insert(set, (enough, made));
                (enough, made)
            }
        };
        Ok(if bytes <= enough { uncounted } else { set })
    }

    fn own_step(&mut self, frame: u32, class: u8) -> Result<SetId, OverBudget> {
        if let Some(&known) = self.own_steps.get(&(frame, class)) {
            return Ok(known);
        }
        let made = self.stepper.own_step(frame, class)?;
        self.own_steps.insert((frame, class), made);
        Ok(made)
    }

    /// The groups of bytes that leave a hot set as it is, those of whole characters included.
    fn stays(&mut self, set: SetId, hot: u16, alphabet: &Alphabet) -> Result<u32, OverBudget> {
        if let Some(known) = self.hot.stays(hot) {
            return Ok(known);
        }
        let mut leaves = 0;
        for byte in 0..=255u8 {
            if leaves & group(byte) == 0 && self.step(set, hot, alphabet.class(byte))? != set {
                leaves |= group(byte);
            }
        }
        let text = group(u8::MAX);
        if leaves & text != 0 && self.reads_characters(set, hot, alphabet)? {
            // Whole characters leave it as it is, other bytes do not.
            leaves = leaves & !text | BROKEN;
        }
        self.hot.set_stays(hot, !leaves);
        Ok(!leaves)
    }

    /// Whether every character past ASCII can be read from a set, and leaves it as it is.
    fn reads_characters(
        &mut self,
        set: SetId,
        hot: u16,
        alphabet: &Alphabet,
    ) -> Result<bool, OverBudget> {
        let mut sets = [NONE; UTF8_STATES as usize];
        sets[BETWEEN as usize] = set;
        let mut work = vec![BETWEEN];
        while let Some(state) = work.pop() {
            let before = sets[state as usize];
            for byte in 128..=255u8 {
                let Some(next) = utf8_step(state, byte) else { continue };
                let class = alphabet.class(byte);
                let after = match state {
                    BETWEEN => self.step(set, hot, class)?,
                    _ => self.stepper.step(before, class)?,
                };
                let known = &mut sets[next as usize];
                if *known == NONE && after != NONE {
                    *known = after;
                    work.push(next);
                }
                if *known != after || after == NONE {
                    return Ok(false);
                }
            }
        }
        Ok(true)
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
