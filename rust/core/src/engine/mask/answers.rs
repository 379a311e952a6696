//! Masks as a walk down the stack, each step remembered
//! (docs/design/masks.md, "A walk down the stack").
//!
//! What a frame does with the trie does not depend on what stands beneath it: some entries are
//! accepted while the frame, or what was called above it, is still there; and at some nodes of
//! the trie the frame has just been popped. There the frame beneath goes on. So a mask is the
//! union over the frames from the top down, each asked about the nodes that those above left
//! *pending*, until none is. Every answer is made when first needed and remembered under
//! (frame, pending nodes).
//!
//! Answers that are there are read by all threads at once. One that is missing is made without
//! holding them up, by a [`Descent`] of the thread's own, and put among the others.

use crate::budget::{Halt, Interrupt};
use crate::engine::history::View;
use crate::engine::limits::Thresholds;
use crate::engine::lock;
use crate::engine::mask::found::Found;
use crate::engine::mask::keys::{Digests, FEW_STATES, FirstByteCounts, MOST_STATES};
use crate::engine::mask::memo::{Answer, AnswerMemo, clear_bits, set_bits};
use crate::engine::mask::pending::{AT_ROOT, NOWHERE, PendingId};
use crate::engine::mask::pool::{AcceptedEntries, Pool, PooledAnswer};
use crate::engine::mask::query::{ALONE, NOTHING, Question};
use crate::engine::mask::stack_queries::Room;
use crate::engine::mask::trie_walk::{Descent, WalkBounds};
use crate::engine::mask::uncached;
use crate::engine::mask::walk_counters::{Counts, WalkCounters};
use crate::engine::stop::Stop;
use crate::network::{Adjacency, Network};
use crate::stacks::LABEL;
use crate::vocabulary::Trie;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// What one mask may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    /// Trie nodes, stack set entries and visits, together.
    pub(crate) work: u64,
    /// Bytes of everything remembered.
    pub(crate) bytes: usize,
}

/// Descents that are kept for the next thread that needs one.
const MAX_IDLE: usize = 4;
/// Times that a mask begins anew because others made everything be forgotten.
const MAX_ATTEMPTS: usize = 3;
/// Work units that the answers of one mask may take. What would take more is walked with the whole
/// stacks; the answers that were made until then stay for the next mask.
pub(in crate::engine) const MAX_ANSWERS_WORK: u64 = 400_000;
/// The same for the bounds of what may follow the frames on top.
const MAX_BOUNDS_WORK: u64 = 2_000_000;
/// The part of the memory of a walker that the tables of one descent may take. They are worth little
/// once their answers stand.
const TABLES_OF_MEMORY: usize = 4;

/// The answers over one trie.
pub(crate) struct Walker {
    pub(in crate::engine) network: Arc<Network>,
    pub(in crate::engine) trie: Arc<Trie>,
    /// Words of a row.
    pub(in crate::engine) words: usize,
    pub(in crate::engine) memo: RwLock<AnswerMemo>,
    idle: Mutex<Vec<Descent>>,
    /// Bytes of all descents, as they were when last put away.
    descent_bytes: AtomicUsize,
    /// Whether the trie is that of a whole vocabulary.
    is_whole: bool,
    /// Where answers are shared with other grammars.
    pool: Option<Arc<Pool>>,
    digests: Mutex<Digests>,
    pub(in crate::engine) begun: FirstByteCounts,
    /// What can stand beneath rules, once that was asked for; `None` where it takes too much.
    pub(in crate::engine) adjacency: OnceLock<Option<Arc<Adjacency>>>,
    pub(in crate::engine) thresholds: Thresholds,
    pub(in crate::engine) counts: Counts,
}

/// Questions between two looks at the interrupt, less one.
const VISITS_MASK: u64 = 255;

/// What became of an attempt to make a mask of answers.
pub(in crate::engine) struct Attempt {
    pub(in crate::engine) result: Result<(), Stop>,
    /// Work units.
    pub(in crate::engine) spent: u64,
    /// Bytes of answers added.
    pub(in crate::engine) added: usize,
}

/// One mask under way.
pub(in crate::engine) struct MaskWalk<'a> {
    pub(in crate::engine) descent: Descent,
    pub(in crate::engine) bounds: WalkBounds<'a>,
    /// The age of the memo when it began.
    pub(in crate::engine) age: u64,
    /// So many states may still be described for it.
    states: usize,
    /// Bytes of the answers that it added to the memo.
    pub(in crate::engine) added: usize,
    pub(in crate::engine) counters: WalkCounters,
}

impl Walker {
    /// Over a trie whose numbers are bits of rows of so many words.
    pub(crate) fn new(network: Arc<Network>, trie: Arc<Trie>, words: usize) -> Self {
        let ids = trie.ids();
        Self {
            network,
            trie,
            words,
            memo: RwLock::new(AnswerMemo::new(words, ids, 0)),
            idle: Mutex::default(),
            descent_bytes: AtomicUsize::new(0),
            is_whole: false,
            pool: None,
            digests: Mutex::default(),
            begun: FirstByteCounts::default(),
            adjacency: OnceLock::new(),
            thresholds: Thresholds::default(),
            counts: Counts::default(),
        }
    }

    /// Over the trie of a whole vocabulary, with a pool of answers over it.
    pub(crate) fn whole(self, pool: Option<Arc<Pool>>) -> Self {
        Self { pool, is_whole: true, ..self }
    }

    /// With other thresholds.
    #[cfg(test)]
    pub(in crate::engine) fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.memo.read().bytes() + self.descent_bytes.load(Ordering::Relaxed)
    }

    /// What masks cost so far.
    pub(crate) fn counters(&self) -> WalkCounters {
        self.counts.sums()
    }

    /// Takes note of trie nodes that were entered by others than its own.
    pub(in crate::engine) fn count_nodes(&self, entered: u64) {
        self.counts.add(&WalkCounters { trie_nodes: entered, ..WalkCounters::default() });
    }

    /// Forgets every answer. Masks under way begin anew.
    pub(crate) fn forget(&self) {
        let mut memo = self.memo.write();
        let new = AnswerMemo::new(self.words, self.trie.ids(), memo.age + 1);
        let old = std::mem::replace(&mut *memo, new);
        // Those that are in use are dropped when they come back.
        let gone = std::mem::take(&mut *self.idle.lock());
        drop(memo);
        for descent in &gone {
            self.descent_bytes.fetch_sub(descent.noted_bytes, Ordering::Relaxed);
        }
        drop((old, gone)); // it takes a while, and nobody waits
    }

    pub(in crate::engine) fn begin<'a>(
        &self,
        allowance: Allowance,
        interrupt: &'a Interrupt,
    ) -> MaskWalk<'a> {
        let age = self.memo.read().age;
        let idle = self.idle.lock().pop();
        let make = || Descent::new(self.network.clone(), self.trie.clone(), self.is_whole, age);
        let descent = idle.filter(|descent| descent.age == age).unwrap_or_else(make);
        let limit = descent.spent().saturating_add(allowance.work);
        let max_tables = allowance.bytes / TABLES_OF_MEMORY;
        let bounds = WalkBounds { limit, max_bytes: allowance.bytes, max_tables, interrupt };
        let counters = WalkCounters::default();
        MaskWalk { descent, bounds, age, states: MOST_STATES, added: 0, counters }
    }

    pub(in crate::engine) fn end(&self, mut walk: MaskWalk<'_>) {
        let entered = std::mem::take(&mut walk.descent.trie_nodes);
        self.counts.add(&WalkCounters { trie_nodes: entered, ..walk.counters });
        walk.descent.release();
        if walk.descent.bytes() > walk.bounds.max_tables / 2 {
            walk.descent.clear();
        }
        self.note_bytes(&mut walk.descent);
        let descent = walk.descent;
        // Forgetting takes both locks in this order.
        let memo = self.memo.read();
        let mut idle = self.idle.lock();
        if descent.age == memo.age && idle.len() < MAX_IDLE {
            idle.push(descent);
        } else {
            drop((idle, memo));
            self.descent_bytes.fetch_sub(descent.noted_bytes, Ordering::Relaxed);
        }
    }

    fn note_bytes(&self, descent: &mut Descent) {
        let bytes = descent.bytes();
        self.descent_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.descent_bytes.fetch_sub(descent.noted_bytes, Ordering::Relaxed);
        descent.noted_bytes = bytes;
    }

    /// The memo, if it is still what it was when the mask began.
    pub(in crate::engine) fn memo(
        &self,
        walk: &MaskWalk<'_>,
    ) -> Result<RwLockReadGuard<'_, AnswerMemo>, Stop> {
        let memo = match self.memo.try_read() {
            Some(memo) => memo,
            None => lock::read(&self.memo, walk.bounds.interrupt)?,
        };
        if memo.age == walk.age { Ok(memo) } else { Err(Stop::Forgotten) }
    }

    /// Sets the bits of the entries that may follow.
    ///
    /// When it stops, everything made is kept and right; the bits are to be thrown away.
    pub(crate) fn mask(
        &self,
        view: View<'_>,
        allowance: Allowance,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Result<(), Stop> {
        self.counts.add(&WalkCounters { masks: 1, ..WalkCounters::default() });
        let mut spent = 0;
        if let View::Stacks(network, sets, set) = view
            && Arc::ptr_eq(network, &self.network)
        {
            let work = allowance.work.min(MAX_BOUNDS_WORK);
            let (bounded, stacks) = (Allowance { work, ..allowance }, (sets, set));
            let attempt = match self.adjacency(interrupt)? {
                Some(adjacency) => Some(self.bounded(stacks, &adjacency, bounded, interrupt, bits)),
                None => self.between_counts(stacks, bounded, interrupt, bits),
            };
            match attempt.map(|attempt| (attempt.result, attempt.spent)) {
                Some((Err(Stop::Work | Stop::Memory | Stop::Forgotten), work)) => spent = work,
                Some((result, _)) => return result,
                None => {}
            }
        }
        let work = allowance.work.saturating_sub(spent).min(MAX_ANSWERS_WORK);
        let mut last = Stop::Forgotten;
        for _ in 0..MAX_ATTEMPTS {
            let attempt = self.attempt(view, Allowance { work, ..allowance }, interrupt, bits);
            spent += attempt.spent;
            match attempt.result {
                Err(Stop::Forgotten) => continue,
                Err(Stop::Memory) => {
                    self.forget();
                    // What other masks remember is no reason to make this one without answers.
                    last = Stop::Memory;
                    if attempt.added < allowance.bytes / 4 {
                        continue;
                    }
                }
                Err(Stop::Work) => last = Stop::Work,
                result => return result,
            }
            break;
        }
        let View::Stacks(network, sets, set) = view else { return Err(last) };
        let mut directly = |max_bytes: usize| {
            bits.fill(0);
            let work = allowance.work.saturating_sub(spent);
            let bounds = uncached::StackWalkBounds { work, max_bytes, interrupt };
            uncached::walk(network, &self.trie, (sets, set), bounds, bits)
        };
        let entered = match directly(allowance.bytes / TABLES_OF_MEMORY) {
            // A token as long as a book has as many sets on its path: they take the place of the
            // answers.
            Err(Halt::Bytes) => {
                self.forget();
                directly(allowance.bytes)?
            }
            walked => walked?,
        };
        self.counts.add(&WalkCounters { trie_nodes: entered, direct: 1, ..Default::default() });
        Ok(())
    }

    pub(in crate::engine) fn count_visit(&self, walk: &mut MaskWalk<'_>) -> Result<(), Stop> {
        walk.counters.visits += 1;
        walk.descent.work += 1;
        if walk.counters.visits & VISITS_MASK == 0 {
            walk.bounds.interrupt.check()?;
            if walk.descent.spent() > walk.bounds.limit {
                return Err(Stop::Work);
            }
        }
        Ok(())
    }

    pub(in crate::engine) fn attempt(
        &self,
        view: View<'_>,
        allowance: Allowance,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Attempt {
        bits.fill(0);
        let mut walk = self.begin(allowance, interrupt);
        let before = walk.descent.spent();
        let refused = view.refused_sets();
        let mut result = self.descend(view, &mut walk, bits);
        if view.refused_sets() != refused {
            result = Err(Stop::Sets);
        }
        let (spent, added) = (walk.descent.spent() - before, walk.added);
        self.end(walk);
        Attempt { result, spent, added }
    }

    fn descend(
        &self,
        view: View<'_>,
        walk: &mut MaskWalk<'_>,
        bits: &mut [i32],
    ) -> Result<(), Stop> {
        let mut room = Room::default();
        view.walk(&self.trie, &mut room, |question, pending| {
            self.count_visit(walk)?;
            let answer = self.answer(question, pending, walk)?;
            self.memo(walk)?.add(answer, bits);
            Ok(answer.pending)
        })
    }

    /// A question with the same answers, the same for many states that count.
    pub(in crate::engine) fn like(&self, question: Question) -> Question {
        let longest = self.trie.longest();
        let like = |state| if state < LABEL { self.network.like(state, longest) } else { state };
        Question { frame: like(question.frame), under: like(question.under) }
    }

    pub(in crate::engine) fn answer(
        &self,
        question: Question,
        pending: PendingId,
        walk: &mut MaskWalk<'_>,
    ) -> Result<Answer, Stop> {
        let question = self.like(question);
        let nodes = {
            let memo = self.memo(walk)?;
            if let Some(answer) = memo.get(question, pending) {
                walk.counters.hits += 1;
                return Ok(answer);
            }
            memo.pending.get(pending).to_vec()
        };
        walk.counters.misses += 1;
        let key = self.pool.as_ref().and_then(|pool| {
            // Another thread may describe states for a while: then this answer goes without.
            let over = (&*self.network, &*self.trie, &self.begun);
            self.digests.try_lock()?.key(over, pool, (question, &nodes), &mut walk.states)
        });
        let shared = key.as_ref().zip(self.pool.as_ref()).and_then(|(key, pool)| pool.get(key));
        let entry = match shared {
            Some(entry) => {
                walk.counters.shared += 1;
                entry
            }
            None => {
                let entry = match self.make(question, pending, &nodes, walk) {
                    // The tables of other answers are no reason to refuse this one.
                    Err(Stop::Memory) if walk.descent.clear() => {
                        self.make(question, pending, &nodes, walk)
                    }
                    made => made,
                };
                let entry = entry?;
                if let (Some(key), Some(pool)) = (key, &self.pool) {
                    pool.put(key, entry.clone());
                }
                entry
            }
        };
        self.note_bytes(&mut walk.descent);
        walk.added += entry.bytes();
        let mut memo = lock::write(&self.memo, walk.bounds.interrupt)?;
        if memo.age != walk.age {
            return Err(Stop::Forgotten);
        }
        let room = walk.bounds.max_bytes - walk.bounds.max_tables;
        memo.insert(question, pending, &entry, room).ok_or(Stop::Memory)
    }

    /// An answer that is nowhere yet.
    fn make(
        &self,
        question: Question,
        pending: PendingId,
        nodes: &[u32],
        walk: &mut MaskWalk<'_>,
    ) -> Result<PooledAnswer, Stop> {
        if pending == AT_ROOT && question.under < LABEL {
            let Question { frame, under } = question;
            let entry = walk.descent.by_passes(frame, under, self.words, walk.bounds)?;
            if let Some(entry) = entry {
                return Ok(entry);
            }
        }
        let mut found = Found::default();
        let bases = match pending {
            AT_ROOT => self.made_from_another(question, walk, &mut found)?,
            _ => None,
        };
        let mut row = None;
        match bases {
            None => {
                let roots = (nodes, pending);
                walk.descent.walk_all(question, roots, 0, walk.bounds, &mut found)?;
            }
            Some(bases) => {
                let memo = self.memo(walk)?;
                let mut bits = vec![0; self.words];
                bases.iter().for_each(|&base| memo.add(base, &mut bits));
                for nodes in &found.walked {
                    let entries = self.trie.entries_of(nodes.clone());
                    clear_bits(&mut bits, self.trie.numbers_of(entries));
                }
                row = Some(bits);
                let is_walked = |node: u32| {
                    let after = found.walked.partition_point(|nodes| nodes.start <= node);
                    after > 0 && found.walked[after - 1].contains(&node)
                };
                if let Some(last) = bases.last() {
                    let before = memo.pending.get(last.pending).iter().copied();
                    found.popped.extend(before.filter(|&node| !is_walked(node)));
                }
            }
        }
        if question.under == NOTHING {
            found.popped.clear();
        }
        Ok(self.entry(found, row))
    }

    /// An answer from what was found, and a row of what is accepted besides.
    pub(in crate::engine) fn entry(
        &self,
        mut found: Found,
        mut row: Option<Vec<i32>>,
    ) -> PooledAnswer {
        if found.accepted.iter().map(Range::len).sum::<usize>() > self.words {
            row.get_or_insert_with(|| vec![0; self.words]);
        }
        let numbers = found.accepted.into_iter().map(|entries| self.trie.numbers_of(entries));
        let accepted = match row {
            None => AcceptedEntries::Listed(numbers.flatten().copied().collect()),
            Some(mut bits) => {
                numbers.for_each(|numbers| set_bits(&mut bits, numbers));
                AcceptedEntries::Row(bits.into())
            }
        };
        found.popped.sort_unstable();
        found.popped.dedup();
        PooledAnswer { accepted, popped: found.popped.into() }
    }

    /// Answers to other questions that are together the same but for some parts of the trie, which
    /// are walked, if there are any; the last says where frames have been popped.
    fn made_from_another(
        &self,
        question: Question,
        walk: &mut MaskWalk<'_>,
        found: &mut Found,
    ) -> Result<Option<Vec<Answer>>, Stop> {
        // A frame that counts does with few bytes what one does that does not count: then only
        // what is deeper in the trie is walked. So the last characters of a long string take a
        // walk over the longer tokens each, not one over the vocabulary.
        if let Some((frame, bytes)) = self.network.base(question.frame) {
            let answer = self.answer(Question { frame, ..question }, AT_ROOT, walk)?;
            walk.descent.walk_all(question, (&[0], AT_ROOT), bytes, walk.bounds, found)?;
            return Ok(Some(vec![answer]));
        }
        // A frame that nearly every byte leads into a loop does what the loop does, but for the
        // bytes that do not: a name that has begun like a keyword may go on as any.
        let is_most = self.nodes_begun(question.frame) >= self.trie.end(0) / 2;
        let like = is_most.then(|| walk.descent.like_a_loop(question, walk.bounds)).transpose()?;
        let Some((like, apart)) = like.flatten() else { return Ok(None) };
        // What many grammars have in common is to be found, whatever was described before.
        walk.states = walk.states.max(FEW_STATES);
        let first = Question { under: ALONE, ..like };
        let mut answers = vec![self.answer(first, AT_ROOT, walk)?];
        if like.under != ALONE && answers[0].pending != NOWHERE {
            let rest = Question { frame: like.under, under: ALONE };
            answers.push(self.answer(rest, answers[0].pending, walk)?);
        }
        walk.descent.walk_some(question, apart, walk.bounds, found)?;
        Ok(Some(answers))
    }
}
