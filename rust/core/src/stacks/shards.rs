//! Hash tables that grow a part at a time.
//!
//! A table of millions that doubles moves all of them at once, which takes hundreds of milliseconds
//! in which nothing else is heard. Past [`SPLIT`] entries a table is many, each with its share.

use hashbrown::HashTable;

/// Entries of a table before it becomes [`SHARDS`] of them.
const SPLIT: usize = 1 << 15;
const SHARDS: usize = 1 << 8;

/// Entries of a hash table, with the hash of each.
pub(crate) struct Shards<T> {
    tables: Vec<HashTable<(u64, T)>>,
    len: usize,
}

impl<T> Default for Shards<T> {
    fn default() -> Self {
        Self { tables: vec![HashTable::new()], len: 0 }
    }
}

impl<T> Shards<T> {
    #[inline]
    fn place(&self, hash: u64) -> usize {
        // The table itself goes by the lowest and the highest bits.
        (hash >> 40) as usize & (self.tables.len() - 1)
    }

    /// The entry with a hash that `is_same` takes.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is_same: impl FnMut(&T) -> bool) -> Option<&T> {
        let table = &self.tables[self.place(hash)];
        table.find(hash, |entry| entry.0 == hash && is_same(&entry.1)).map(|entry| &entry.1)
    }

    /// Adds an entry that is not there.
    pub(crate) fn insert(&mut self, hash: u64, entry: T) {
        if self.len == SPLIT && self.tables.len() == 1 {
            self.split();
        }
        let place = self.place(hash);
        self.tables[place].insert_unique(hash, (hash, entry), |entry| entry.0);
        self.len += 1;
    }

    #[cold]
    fn split(&mut self) {
        let old = std::mem::take(&mut self.tables);
        self.tables.resize_with(SHARDS, HashTable::new);
        for (hash, entry) in old.into_iter().flatten() {
            let place = self.place(hash);
            self.tables[place].insert_unique(hash, (hash, entry), |entry| entry.0);
        }
    }

    /// Bytes held, about: tables are between seven and fourteen sixteenths full.
    pub(crate) fn bytes(&self) -> usize {
        (self.len + self.len / 2) * (size_of::<(u64, T)>() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::hash_of;

    #[test]
    fn entries_are_found_before_and_after_the_split() {
        let mut shards = Shards::default();
        for number in 0..3 * SPLIT as u64 {
            let hash = hash_of(&number);
            assert_eq!(shards.find(hash, |&known: &u64| known == number), None);
            shards.insert(hash, number);
        }
        assert_eq!(shards.tables.len(), SHARDS);
        for number in 0..4 * SPLIT as u64 {
            let found = shards.find(hash_of(&number), |&known| known == number);
            assert_eq!(found.copied(), (number < 3 * SPLIT as u64).then_some(number));
        }
    }
}
