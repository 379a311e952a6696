//! What masks remember, shared by all grammars over one vocabulary (XGrammar 2, section 3.3).
//!
//! What a state does with the trie depends on the state alone, so it is kept under the state's
//! [`Identity`]: a JSON string is looked at once, whatever the schemas around it. Bounded; what
//! was not used for longest goes first. Entries can be written out and read back by another
//! process, which refuses damaged bytes.

use crate::error::{Error, Result};
use crate::network::Identity;
use lru::LruCache;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A state and the trie nodes that it is asked about, as one digest.
pub(in crate::engine) type PoolKey = [u8; 32];

/// Entries of the trie that are accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) enum AcceptedEntries {
    /// Their numbers.
    Listed(Arc<[u32]>),
    /// A row of bits.
    Row(Arc<[i32]>),
}

/// What a state does from some trie nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::engine) struct PooledAnswer {
    /// Accepted for certain.
    pub(in crate::engine) accepted: AcceptedEntries,
    /// Where the state's rule has been completed, with more of the trie below.
    pub(in crate::engine) popped: Arc<[u32]>,
}

impl PooledAnswer {
    pub(in crate::engine) fn bytes(&self) -> usize {
        let accepted = match &self.accepted {
            AcceptedEntries::Listed(numbers) => numbers.len(),
            AcceptedEntries::Row(row) => row.len(),
        };
        ENTRY + 4 * (accepted + self.popped.len())
    }
}

/// Bytes of an entry besides its numbers: key, links, headers.
const ENTRY: usize = 160;

/// What a pool holds and did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PoolCounters {
    /// Answers held.
    pub entries: usize,
    /// Bytes held.
    pub bytes: usize,
    /// Answers asked for that were there.
    pub hits: u64,
    /// Answers asked for that were not.
    pub misses: u64,
    /// Answers that went to make room.
    pub evicted: u64,
}

struct PoolContents {
    entries: LruCache<PoolKey, PooledAnswer>,
    counters: PoolCounters,
}

/// Answers over one trie, for all engines that share it.
pub struct Pool {
    inner: Mutex<PoolContents>,
    max_bytes: usize,
    /// Trie nodes below those that are asked about, from which on an answer is shared.
    pub(in crate::engine) least_nodes: u32,
}

/// A good value for [`Pool::new`]: with fewer trie nodes an answer is made as fast as found.
pub const LEAST_NODES: u32 = 256;

impl Pool {
    /// An empty pool that holds at most so many bytes, of answers about so many trie nodes or more.
    pub fn new(max_bytes: usize, least_nodes: u32) -> Self {
        let inner =
            PoolContents { entries: LruCache::unbounded(), counters: PoolCounters::default() };
        Self { inner: Mutex::new(inner), max_bytes, least_nodes }
    }

    fn lock(&self) -> MutexGuard<'_, PoolContents> {
        // Whoever panicked was not between two changes that belong together.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it holds and did.
    pub fn counters(&self) -> PoolCounters {
        let inner = self.lock();
        PoolCounters { entries: inner.entries.len(), ..inner.counters }
    }

    /// Forgets everything.
    pub fn clear(&self) {
        let mut inner = self.lock();
        inner.entries.clear();
        inner.counters.bytes = 0;
    }

    /// The key of a question about some trie nodes.
    pub(in crate::engine) fn key(question: &[Identity], nodes: &[u32]) -> PoolKey {
        let mut text = question.concat();
        text.reserve(4 * nodes.len());
        nodes.iter().for_each(|node| text.extend(node.to_le_bytes()));
        *blake3::hash(&text).as_bytes()
    }

    pub(in crate::engine) fn get(&self, key: &PoolKey) -> Option<PooledAnswer> {
        let mut inner = self.lock();
        let found = inner.entries.get(key).cloned();
        match found {
            Some(_) => inner.counters.hits += 1,
            None => inner.counters.misses += 1,
        }
        found
    }

    pub(in crate::engine) fn put(&self, key: PoolKey, entry: PooledAnswer) {
        let bytes = entry.bytes();
        if bytes > self.max_bytes {
            return;
        }
        let mut inner = self.lock();
        if let Some(old) = inner.entries.put(key, entry) {
            inner.counters.bytes -= old.bytes();
        }
        inner.counters.bytes += bytes;
        while inner.counters.bytes > self.max_bytes {
            let Some((_, oldest)) = inner.entries.pop_lru() else { break };
            inner.counters.bytes -= oldest.bytes();
            inner.counters.evicted += 1;
        }
    }

    /// All answers as bytes, those used last first; at most `max_bytes` of them.
    pub fn to_bytes(&self, max_bytes: usize) -> Vec<u8> {
        // Copies of the handles only: requests do not wait while bytes are written.
        let entries: Vec<(PoolKey, PooledAnswer)> =
            self.lock().entries.iter().map(|(key, entry)| (*key, entry.clone())).collect();
        let mut out = Vec::new();
        let numbers = |out: &mut Vec<u8>, numbers: &[u32]| {
            out.extend((numbers.len() as u32).to_le_bytes());
            numbers.iter().for_each(|n| out.extend(n.to_le_bytes()));
        };
        for (key, entry) in entries {
            let before = out.len();
            out.extend(key);
            match &entry.accepted {
                AcceptedEntries::Listed(listed) => {
                    out.push(0);
                    numbers(&mut out, listed);
                }
                AcceptedEntries::Row(row) => {
                    out.push(1);
                    out.extend((row.len() as u32).to_le_bytes());
                    row.iter().for_each(|word| out.extend(word.to_le_bytes()));
                }
            }
            numbers(&mut out, &entry.popped);
            if out.len() > max_bytes {
                out.truncate(before);
                break;
            }
        }
        out
    }

    /// Takes up what [`Self::to_bytes`] wrote over the same trie, of `numbers` numbers in rows of
    /// `words` words, with `nodes` nodes. What is there stays.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] where the bytes are no such answers; nothing was taken up then.
    pub fn add_bytes(&self, data: &[u8], numbers: u32, words: usize, nodes: u32) -> Result<usize> {
        let damaged = || Error::Vocabulary("the saved masks are damaged".into());
        let mut reader = PoolReader { data };
        let mut entries = Vec::new();
        while !reader.data.is_empty() {
            let key: PoolKey =
                reader.take(32).and_then(|b| b.try_into().ok()).ok_or_else(damaged)?;
            let kind = reader.take(1).ok_or_else(damaged)?[0];
            let accepted = reader.numbers().ok_or_else(damaged)?;
            let accepted = match kind {
                0 if accepted.iter().all(|&n| n < numbers) => {
                    AcceptedEntries::Listed(accepted.into())
                }
                1 if accepted.len() == words && fits(&accepted, numbers) => {
                    AcceptedEntries::Row(accepted.into_iter().map(|word| word as i32).collect())
                }
                _ => return Err(damaged()),
            };
            let popped = reader.numbers().ok_or_else(damaged)?;
            if !popped.is_sorted_by(|a, b| a < b) || popped.last().is_some_and(|&n| n >= nodes) {
                return Err(damaged());
            }
            entries.push((key, PooledAnswer { accepted, popped: popped.into() }));
        }
        let count = entries.len();
        // Those used last are to stay last.
        for (key, entry) in entries.into_iter().rev() {
            if !self.lock().entries.contains(&key) {
                self.put(key, entry);
            }
        }
        Ok(count)
    }
}

/// Whether no bit of a row stands for a number past the last.
fn fits(row: &[u32], numbers: u32) -> bool {
    let rest = numbers % 32;
    rest == 0 || row.last().is_none_or(|word| word >> rest == 0)
}

struct PoolReader<'a> {
    data: &'a [u8],
}

impl<'a> PoolReader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.data.split_at_checked(count)?;
        self.data = rest;
        Some(taken)
    }

    fn numbers(&mut self) -> Option<Vec<u32>> {
        let number = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let count = number(self.take(4)?) as usize;
        let bytes = self.take(count.checked_mul(4)?)?;
        Some(bytes.chunks_exact(4).map(number).collect())
    }
}
