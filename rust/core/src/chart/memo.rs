//! What is done again at one column: where texts go on from rules that were complete there together.

use super::ColumnId;
use super::rows::RowId;

/// So many states reached from one column are worth remembering; tests remember all.
const LEAST: usize = if cfg!(test) { 1 } else { 32 };

/// A state that is reached, and where its rule began.
pub(super) type Reach = (u32, RowId);

/// What was complete together at a column, and what is reached from there, each once.
struct Completion {
    rules: Box<[u32]>,
    reached: Box<[Reach]>,
}

/// For each column the rules that were last complete together from it.
#[derive(Default)]
struct MemoEntry {
    /// Their hash, until they come again.
    hash: u64,
    known: Option<Box<Completion>>,
}

/// By columns, in the order in which they were made.
#[derive(Default)]
pub(super) struct ColumnMemo {
    entries: Vec<MemoEntry>,
    bytes: usize,
}

impl ColumnMemo {
    /// What is reached from a column where these rules, ascending, are complete.
    #[inline]
    pub(super) fn get(&self, column: ColumnId, rules: &[u32]) -> Option<&[Reach]> {
        let known = self.entries.get(column as usize)?.known.as_ref()?;
        (*known.rules == *rules).then_some(&known.reached)
    }

    /// Takes note of what was reached; if it was the same the time before, it is kept.
    pub(super) fn note(&mut self, column: ColumnId, rules: &[u32], reached: &mut Vec<Reach>) {
        if reached.len() < LEAST {
            return;
        }
        if self.entries.len() <= column as usize {
            self.entries.resize_with(column as usize + 1, MemoEntry::default);
        }
        let entry = &mut self.entries[column as usize];
        let hash = crate::hash::hash_of(&rules);
        if std::mem::replace(&mut entry.hash, hash) != hash {
            return;
        }
        reached.sort_unstable();
        reached.dedup();
        let known = Completion { rules: rules.into(), reached: reached.as_slice().into() };
        self.bytes += size(&known);
        if let Some(old) = entry.known.replace(Box::new(known)) {
            self.bytes -= size(&old);
        }
    }

    /// Forgets all columns after the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        for entry in self.entries.drain(len.min(self.entries.len())..) {
            self.bytes -= entry.known.map_or(0, |known| size(&known));
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<MemoEntry>() + self.bytes
    }
}

fn size(known: &Completion) -> usize {
    size_of::<Completion>() + known.rules.len() * 4 + known.reached.len() * size_of::<Reach>()
}
