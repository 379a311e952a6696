//! What masks remember: answers to questions about sets of trie nodes.

use crate::engine::mask::pending::{PendingId, PendingSets};
use crate::engine::mask::pool::{AcceptedEntries, PooledAnswer};
use crate::engine::mask::query::{After, Question};
use crate::hash::hash_of;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Entries of the trie that are accepted.
#[derive(Clone, Copy)]
enum Accepted {
    /// One of `AnswerMemo::lists`.
    Listed(u32),
    /// One of `AnswerMemo::rows`: where that is no larger than the list.
    Row(u32),
}

/// What a question is answered from a set of trie nodes.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Answer {
    /// Accepted for certain.
    accepted: Accepted,
    /// Where the frame has been popped, with more of the trie below.
    pub(in crate::engine) pending: PendingId,
}

/// What may follow where the frames of a question have been popped, and is not known to.
pub(in crate::engine) struct Undecided {
    /// Nodes with entries, sorted; `None` where they are too many to ask about one by one.
    pub(in crate::engine) nodes: Option<Box<[u32]>>,
    /// Whether the answer in its place took too much work.
    is_refused: AtomicBool,
}

impl Undecided {
    pub(in crate::engine) fn new(nodes: Option<Vec<u32>>) -> Self {
        Self { nodes: nodes.map(Into::into), is_refused: AtomicBool::new(false) }
    }

    /// How many nodes there are; `None` where they are too many.
    pub(in crate::engine) fn len(&self) -> Option<usize> {
        self.nodes.as_ref().map(|nodes| nodes.len())
    }

    pub(in crate::engine) fn refuse(&self) {
        self.is_refused.store(true, Ordering::Relaxed);
    }

    pub(in crate::engine) fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    fn bytes(&self) -> usize {
        64 + self.nodes.as_ref().map_or(0, |nodes| nodes.len() * 4)
    }
}

/// What is asked about with what goes on after it.
pub(in crate::engine) type QuestionPlace = (Question, PendingId, After);

/// Answers over one trie.
pub(in crate::engine) struct AnswerMemo {
    answers: FxHashMap<(Question, PendingId), Answer>,
    undecided: FxHashMap<QuestionPlace, Arc<Undecided>>,
    /// For questions whose answers take too much, what frames surely accept, and what they may accept at
    /// most.
    bounds: FxHashMap<(Question, PendingId), (Answer, Arc<Undecided>)>,
    undecided_bytes: usize,
    /// Each by itself, and shared with the pool: one list of all would be copied as it grows.
    lists: Vec<Arc<[u32]>>,
    /// Entries of all lists.
    listed: usize,
    /// All different: what many frames accept is read again while it is near.
    rows: Vec<Arc<[i32]>>,
    /// Their hashes and numbers.
    row_table: HashTable<(u64, u32)>,
    /// Words of a row.
    words: usize,
    pub(in crate::engine) pending: PendingSets,
    /// How often everything was forgotten: numbers of sets are good for one of these times.
    pub(in crate::engine) age: u64,
}

impl AnswerMemo {
    pub(in crate::engine) fn new(words: usize, ids: Option<u32>, age: u64) -> Self {
        Self {
            answers: FxHashMap::default(),
            undecided: FxHashMap::default(),
            undecided_bytes: 0,
            bounds: FxHashMap::default(),
            lists: Vec::new(),
            listed: 0,
            rows: Vec::new(),
            row_table: HashTable::new(),
            words,
            pending: PendingSets::new(ids),
            age,
        }
    }

    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.answers.capacity() * 25
            + self.undecided.capacity() * 41
            + self.undecided_bytes
            + self.bounds.capacity() * 37
            + self.listed * 4
            + self.lists.capacity() * 32
            + self.rows.len() * (self.words * 4 + 16)
            + self.row_table.capacity() * 17
            + self.pending.bytes()
    }

    #[inline]
    pub(in crate::engine) fn get(&self, question: Question, pending: PendingId) -> Option<Answer> {
        self.answers.get(&(question, pending)).copied()
    }

    /// Remembers an answer. `room` is what the memo may hold.
    ///
    /// `None` where there is no room: what is over the limit is not remembered, so that the same
    /// question is refused again.
    pub(in crate::engine) fn insert(
        &mut self,
        question: Question,
        pending: PendingId,
        entry: &PooledAnswer,
        room: usize,
    ) -> Option<Answer> {
        if let Some(known) = self.get(question, pending) {
            return Some(known);
        }
        let answer = self.answer_of(entry);
        if self.bytes() > room {
            return None;
        }
        self.answers.insert((question, pending), answer);
        Some(answer)
    }

    fn answer_of(&mut self, entry: &PooledAnswer) -> Answer {
        let accepted = match &entry.accepted {
            AcceptedEntries::Listed(numbers) => {
                self.listed += numbers.len();
                self.lists.push(numbers.clone());
                Accepted::Listed(self.lists.len() as u32 - 1)
            }
            AcceptedEntries::Row(row) => Accepted::Row(self.intern(row)),
        };
        Answer { accepted, pending: self.pending.intern(&entry.popped) }
    }

    pub(in crate::engine) fn undecided(&self, place: QuestionPlace) -> Option<Arc<Undecided>> {
        self.undecided.get(&place).cloned()
    }

    /// Remembers what is undecided at a place; `None` where there is no room.
    pub(in crate::engine) fn insert_undecided(
        &mut self,
        place: QuestionPlace,
        undecided: Undecided,
        room: usize,
    ) -> Option<Arc<Undecided>> {
        if let Some(known) = self.undecided(place) {
            return Some(known);
        }
        if self.bytes() + undecided.bytes() > room {
            return None;
        }
        self.undecided_bytes += undecided.bytes();
        let undecided = Arc::new(undecided);
        self.undecided.insert(place, undecided.clone());
        Some(undecided)
    }

    pub(in crate::engine) fn bounds(
        &self,
        question: Question,
        pending: PendingId,
    ) -> Option<(Answer, Arc<Undecided>)> {
        self.bounds.get(&(question, pending)).cloned()
    }

    /// Remembers the bounds of a question whose answer takes too much; `None` where there is no room.
    pub(in crate::engine) fn insert_bounds(
        &mut self,
        question: Question,
        pending: PendingId,
        (entry, undecided): (&PooledAnswer, Undecided),
        room: usize,
    ) -> Option<(Answer, Arc<Undecided>)> {
        if let Some(known) = self.bounds(question, pending) {
            return Some(known);
        }
        let answer = self.answer_of(entry);
        if self.bytes() + undecided.bytes() > room {
            return None;
        }
        self.undecided_bytes += undecided.bytes();
        let bounds = (answer, Arc::new(undecided));
        self.bounds.insert((question, pending), bounds.clone());
        Some(bounds)
    }

    /// The number of a row.
    fn intern(&mut self, row: &Arc<[i32]>) -> u32 {
        let Self { rows, row_table, .. } = self;
        let hash = hash_of(&**row);
        let is_same = |&(of, number): &(u64, u32)| of == hash && rows[number as usize] == *row;
        if let Some(&(_, known)) = row_table.find(hash, is_same) {
            return known;
        }
        let number = rows.len() as u32;
        rows.push(row.clone());
        row_table.insert_unique(hash, (hash, number), |known| known.0);
        number
    }

    /// Adds the bits of an answer.
    pub(in crate::engine) fn add(&self, answer: Answer, bits: &mut [i32]) {
        match answer.accepted {
            Accepted::Listed(list) => set_bits(bits, &self.lists[list as usize]),
            Accepted::Row(row) => {
                bits.iter_mut().zip(&*self.rows[row as usize]).for_each(|(a, b)| *a |= b);
            }
        }
    }

    /// What it costs to find an answer and to add its bits, in units of about 15 ns.
    pub(in crate::engine) fn cost(&self, answer: Answer) -> u64 {
        let bits = match answer.accepted {
            Accepted::Listed(list) => self.lists[list as usize].len() / 8,
            Accepted::Row(_) => self.words / 50,
        };
        4 + bits as u64
    }

    /// Writes the bits of an answer over what is there.
    pub(in crate::engine) fn write(&self, answer: Answer, bits: &mut [i32]) {
        match answer.accepted {
            Accepted::Row(row) => bits.copy_from_slice(&self.rows[row as usize]),
            Accepted::Listed(..) => {
                bits.fill(0);
                self.add(answer, bits);
            }
        }
    }
}

pub(in crate::engine) fn clear_bits(row: &mut [i32], numbers: &[u32]) {
    for &number in numbers {
        row[number as usize >> 5] &= !(1 << (number & 31));
    }
}

pub(in crate::engine) fn set_bits(row: &mut [i32], numbers: &[u32]) {
    for &number in numbers {
        row[number as usize >> 5] |= 1 << (number & 31);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::mask::pending::AT_ROOT;
    use crate::engine::mask::query::ALONE;

    #[test]
    fn equal_rows_are_held_once() {
        let mut memo = AnswerMemo::new(1_000, None, 0);
        let row = |bits: i32| AcceptedEntries::Row(vec![bits; 1_000].into());
        for frame in 0..20 {
            let entry = PooledAnswer { accepted: row((frame % 2) as i32), popped: Arc::default() };
            let question = Question { frame, under: ALONE };
            memo.insert(question, AT_ROOT, &entry, usize::MAX).expect("there is room");
        }
        assert_eq!(memo.rows.len(), 2);
        for frame in 0..20 {
            let mut bits = vec![7; 1_000];
            let question = Question { frame, under: ALONE };
            memo.write(memo.get(question, AT_ROOT).expect("remembered"), &mut bits);
            assert_eq!(bits, [(frame % 2) as i32; 1_000]);
        }
    }
}
