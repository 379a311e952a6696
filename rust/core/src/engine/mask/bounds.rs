//! Masks by bounds: what the frames on top decide, and the stacks for what lies between
//! (docs/design/masks.md, "Bounds").

use crate::budget::{Budget, Interrupt};
use crate::engine::lock;
use crate::engine::mask::answers::{Allowance, Attempt, MAX_ANSWERS_WORK, MaskWalk, Walker};
use crate::engine::mask::follow;
use crate::engine::mask::found::Found;
use crate::engine::mask::memo::{Answer, QuestionPlace, Undecided, set_bits};
use crate::engine::mask::pending::{NOWHERE, PendingId};
use crate::engine::mask::query::{ALONE, OWN, Question};
use crate::engine::mask::stack_queries::{self, Room};
use crate::engine::stop::Stop;
use crate::error::Error;
use crate::limits::Limits;
use crate::network::Adjacency;
use crate::stacks::{SetId, StackSets};
use std::sync::Arc;

/// Pairs of rules and what can stand beneath them, and work to find them.
const MAX_ADJACENCY: usize = 1 << 20;
const MAX_ADJACENCY_WORK: u64 = 1 << 24;

/// What is known of a question.
enum BoundedAnswer {
    Answer(Answer),
    /// What it says for certain, and nodes at most besides.
    Bounds(Answer, Arc<Undecided>),
}

impl Walker {
    /// What can stand beneath rules; `None` where bounds are not made, as states count or are sets of
    /// members, or where it takes too much.
    pub(in crate::engine) fn adjacency(
        &self,
        interrupt: &Interrupt,
    ) -> Result<Option<Arc<Adjacency>>, Stop> {
        if let Some(known) = self.adjacency.get() {
            return Ok(known.clone());
        }
        let network = &self.network;
        let mut made = None;
        let is_plain = !network.has_counters() && !network.has_sets() && !network.is_for_charts();
        if is_plain && network.len() < follow::MAX_STATES {
            let limits = Limits { max_total_work: MAX_ADJACENCY_WORK, ..Limits::default() };
            let budget = Budget::new(&limits, interrupt);
            match Adjacency::make(network, MAX_ADJACENCY, &budget) {
                Ok(adjacency) => made = Some(Arc::new(adjacency)),
                Err(Error::Limit { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.adjacency.get_or_init(|| made).clone())
    }

    /// Whether bounds are made of masks.
    pub(in crate::engine) fn has_bounds(&self) -> bool {
        matches!(self.adjacency.get(), Some(Some(_)))
    }

    /// The mask by answers of the frames on top and bounds of what those beneath may add: what lies
    /// between is read by the stacks of the text.
    pub(in crate::engine) fn bounded(
        &self,
        (sets, set): (&StackSets, SetId),
        adjacency: &Arc<Adjacency>,
        allowance: Allowance,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Attempt {
        bits.fill(0);
        let mut walk = self.begin(allowance, interrupt);
        let before = walk.descent.spent();
        let mut open = Vec::new();
        let mut cost = 0;
        let network = self.network.clone();
        let answer = |question, pending, after, _| {
            self.count_visit(&mut walk)?;
            let answer = match self.answer_within(question, pending, adjacency, &mut walk)? {
                BoundedAnswer::Answer(answer) => answer,
                BoundedAnswer::Bounds(sure, undecided) => {
                    self.memo(&walk)?.add(sure, bits);
                    open.extend_from_slice(undecided.nodes.as_deref().ok_or(Stop::Work)?);
                    return Ok(NOWHERE);
                }
            };
            {
                let memo = self.memo(&walk)?;
                memo.add(answer, bits);
                cost += memo.cost(answer);
            }
            if answer.pending == NOWHERE {
                return Ok(NOWHERE);
            }
            // While they are few, answers are made: they cost less when they are read again.
            let is_little = walk.descent.spent() - before < self.thresholds.asked_work;
            if cost <= self.thresholds.cost && is_little {
                return Ok(answer.pending);
            }
            let place = (question, pending, after);
            let undecided = self.undecided(place, answer, adjacency, &mut walk)?;
            Ok(match &undecided.nodes {
                Some(nodes) => {
                    open.extend_from_slice(nodes);
                    NOWHERE
                }
                None => answer.pending,
            })
        };
        let mut room = Room::default();
        let mut result =
            stack_queries::walk_stacks(&network, (sets, set), &self.trie, &mut room, answer);
        if result.is_ok() {
            let is_open = |node: &u32| {
                let numbers = self.trie.numbers(*node);
                numbers.iter().any(|&n| bits[n as usize >> 5] >> (n & 31) & 1 == 0)
            };
            open.retain(is_open);
            open.sort_unstable();
            open.dedup();
        }
        if result.is_ok() && !open.is_empty() {
            walk.counters.walked += 1;
            let read = |node| set_bits(bits, self.trie.numbers(node));
            result = walk.descent.read_nodes((sets, set), &open, walk.bounds, read);
        }
        let (spent, added) = (walk.descent.spent() - before, walk.added);
        self.end(walk);
        Attempt { result, spent, added }
    }

    /// The answer to a question, or, where it takes too much, what it says for certain and what at most.
    fn answer_within(
        &self,
        question: Question,
        pending: PendingId,
        adjacency: &Arc<Adjacency>,
        walk: &mut MaskWalk<'_>,
    ) -> Result<BoundedAnswer, Stop> {
        let known = self.memo(walk)?.bounds(question, pending);
        let (sure, undecided) = match known {
            Some(bounds) => bounds,
            None => match self.answer_for(question, pending, self.thresholds.answer_work, walk) {
                Err(Stop::Work) if matches!(question.under, ALONE | OWN) => {
                    self.bounds_of(question, pending, adjacency, walk)?
                }
                answer => return answer.map(BoundedAnswer::Answer),
            },
        };
        // Where bounds leave much, the answer is worth more work.
        let is_much = undecided.len().is_none_or(|nodes| nodes > self.thresholds.few_undecided);
        let left = walk.bounds.limit.saturating_sub(walk.descent.spent());
        if is_much && left > MAX_ANSWERS_WORK && !undecided.is_refused() {
            match self.answer_for(question, pending, left / 2, walk) {
                Err(Stop::Work) => undecided.refuse(),
                answer => return answer.map(BoundedAnswer::Answer),
            }
        }
        walk.counters.hits += 1;
        Ok(BoundedAnswer::Bounds(sure, undecided))
    }

    /// An answer that takes no more than so much work.
    fn answer_for(
        &self,
        question: Question,
        pending: PendingId,
        work: u64,
        walk: &mut MaskWalk<'_>,
    ) -> Result<Answer, Stop> {
        let limit = walk.bounds.limit;
        let spent = walk.descent.spent();
        let left = limit.saturating_sub(spent);
        walk.bounds.limit = spent + work.min(left / 2);
        let answer = self.answer(question, pending, walk);
        walk.bounds.limit = limit;
        answer
    }

    /// What a frame accepts for certain, and what it and those beneath may accept at most.
    fn bounds_of(
        &self,
        question: Question,
        pending: PendingId,
        adjacency: &Arc<Adjacency>,
        walk: &mut MaskWalk<'_>,
    ) -> Result<(Answer, Arc<Undecided>), Stop> {
        let nodes = self.memo(walk)?.pending.get(pending).to_vec();
        let decided = vec![0; self.words];
        let begin = follow::Begin::Frame(question.frame);
        let most = self.thresholds.undecided_of_frame;
        let asked = follow::Asked { nodes: &nodes, begin, decided: &decided, most };
        let mut found = Found::default();
        let undecided = walk.descent.bound(adjacency, asked, walk.bounds, &mut found)?;
        let entry = self.entry(found, None);
        let undecided = Undecided::new(undecided);
        let mut memo = lock::write(&self.memo, walk.bounds.interrupt)?;
        if memo.age != walk.age {
            return Err(Stop::Forgotten);
        }
        let room = walk.bounds.max_bytes - walk.bounds.max_tables;
        memo.insert_bounds(question, pending, (&entry, undecided), room).ok_or(Stop::Memory)
    }

    /// What is undecided at a place.
    fn undecided(
        &self,
        place: QuestionPlace,
        answer: Answer,
        adjacency: &Arc<Adjacency>,
        walk: &mut MaskWalk<'_>,
    ) -> Result<Arc<Undecided>, Stop> {
        let mut decided = Vec::new();
        let popped = {
            let memo = self.memo(walk)?;
            if let Some(known) = memo.undecided(place) {
                return Ok(known);
            }
            decided.resize(self.words, 0);
            memo.add(answer, &mut decided);
            memo.pending.get(answer.pending).to_vec()
        };
        let begin = follow::Begin::After(place.2);
        let most = self.thresholds.undecided;
        let asked = follow::Asked { nodes: &popped, begin, decided: &decided, most };
        let mut found = Found::default();
        let nodes = walk.descent.bound(adjacency, asked, walk.bounds, &mut found)?;
        let undecided = Undecided::new(nodes);
        let mut memo = lock::write(&self.memo, walk.bounds.interrupt)?;
        if memo.age != walk.age {
            return Err(Stop::Forgotten);
        }
        let room = walk.bounds.max_bytes - walk.bounds.max_tables;
        memo.insert_undecided(place, undecided, room).ok_or(Stop::Memory)
    }
}
