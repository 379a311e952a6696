//! Masks as a walk down the stack, each step remembered (DESIGN.md, "The engine").
//!
//! What a frame does with the trie does not depend on what stands beneath it: some entries are
//! accepted while the frame, or what was called above it, is still there; and at some nodes of
//! the trie the frame has just been popped. There the frame beneath goes on. So a mask is the
//! union over the frames from the top down, each asked about the nodes that those above left
//! *pending*, until none is. Every answer is made when first needed and remembered under
//! (frame, pending nodes).

use super::descent::{Bounds, Descent, Found};
use super::pending::{AT_ROOT, NOWHERE, PendingId, PendingSets};
use super::pool::{Bits, Entry, Key, Pool};
use super::way::{ALONE, OWN, Question, Way};
use crate::error::Error;
use crate::network::{Identities, Network, contains};
use crate::stacks::{LABEL, OverBudget, SetId, StackSets};
use crate::vocabulary::Trie;
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
    answers: FxHashMap<(Question, PendingId), Answer>,
    /// Where missing answers come from.
    descent: Descent,
    listed: Vec<u32>,
    rows: Vec<Arc<[i32]>>,
    /// Words of a row.
    words: usize,
    pending: PendingSets,
    /// Where answers are shared with other grammars, and the digests of the states, made when
    /// first needed.
    pool: Option<Arc<Pool>>,
    identities: Option<Identities>,
    counters: WalkCounters,
}

impl Walker {
    /// Over a trie whose numbers are bits of rows of so many words.
    pub(crate) fn new(network: Arc<Network>, trie: Arc<Trie>, words: usize) -> Self {
        Self {
            descent: Descent::new(network.clone(), trie.clone(), false),
            network,
            trie,
            answers: FxHashMap::default(),
            listed: Vec::new(),
            rows: Vec::new(),
            words,
            pending: PendingSets::new(),
            pool: None,
            identities: None,
            counters: WalkCounters::default(),
        }
    }

    /// Over the trie of a whole vocabulary, with a pool of answers over it.
    pub(crate) fn whole(self, pool: Option<Arc<Pool>>) -> Self {
        let descent = Descent::new(self.network.clone(), self.trie.clone(), true);
        Self { pool, descent, ..self }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.descent.bytes()
            + self.answers.capacity() * 25
            + self.listed.capacity() * 4
            + self.rows.len() * (self.words * 4 + 16)
            + self.pending.bytes()
    }

    /// What masks cost so far.
    pub(crate) fn counters(&self) -> WalkCounters {
        let trie_nodes = self.counters.trie_nodes + self.descent.trie_nodes;
        WalkCounters { trie_nodes, ..self.counters }
    }

    /// Forgets every answer.
    pub(crate) fn forget(&mut self) {
        let counters = self.counters();
        let new = Self::new(self.network.clone(), self.trie.clone(), self.words);
        let new = if self.descent.is_whole() { new.whole(self.pool.take()) } else { new };
        *self = Self { counters, ..new };
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
            self.descent.work += 1;
            let answer = self.answer(question, pending, bounds)?;
            self.write(answer.accepted, bits);
            Ok(answer.pending)
        })
    }

    fn bounds<'a>(&self, allowance: Allowance, check: Check<'a>) -> Bounds<'a> {
        let limit = self.descent.spent().saturating_add(allowance.work);
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
            None => {
                let roots = self.pending.get(pending);
                self.descent.walk_all(question, roots, 0, bounds, &mut found)?;
            }
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
            self.descent.walk_all(question, &[0], bytes, bounds, found)?;
            return Ok(Some(vec![answer]));
        }
        // A frame that nearly every byte leads into a loop does what the loop does, but for the
        // bytes that do not: a name that has begun like a keyword may go on as any.
        let Some((like, apart)) = self.descent.like_a_loop(question, bounds)? else {
            return Ok(None);
        };
        let first = Question { under: ALONE, ..like };
        let mut answers = vec![self.answer(first, AT_ROOT, bounds)?];
        if like.under != ALONE && answers[0].pending != NOWHERE {
            let rest = Question { frame: like.under, under: ALONE };
            answers.push(self.answer(rest, answers[0].pending, bounds)?);
        }
        self.descent.walk_some(question, apart, bounds, found)?;
        Ok(Some(answers))
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
