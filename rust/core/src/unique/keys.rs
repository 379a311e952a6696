//! Keys of values: each is held once, with a number, and found by how it begins.

/// The keys, end to end, and their numbers in the order of the keys.
#[derive(Debug, Default)]
pub(super) struct Keys {
    text: Vec<u8>,
    ends: Vec<usize>,
    /// In runs, so that a key is put in its place in little time.
    order: Vec<Vec<u32>>,
}

/// So many numbers are in a run, at most.
const RUN: usize = 256;

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, value: u32) -> &[u8] {
        let before = (value as usize).checked_sub(1);
        let begins = before.map_or(0, |before| self.ends[before]);
        &self.text[begins..self.ends[value as usize]]
    }

    /// Where the first key stands in the order that is not less than some bytes.
    fn place(&self, key: &[u8]) -> (usize, usize) {
        let is_before = |run: &Vec<u32>| run.first().is_some_and(|&first| self.get(first) <= key);
        let run = self.order.partition_point(is_before).saturating_sub(1);
        let place = self
            .order
            .get(run)
            .map_or(0, |run| run.partition_point(|&value| self.get(value) < key));
        (run, place)
    }

    /// The keys from some bytes on, in order, with their numbers.
    pub(super) fn from(&self, key: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
        let (run, place) = self.place(key);
        let first = self.order.get(run).map_or(&[][..], |run| &run[place..]);
        let rest = self.order.iter().skip(run + 1).flatten();
        first.iter().chain(rest).map(|&value| (value, self.get(value)))
    }

    /// The number of a key.
    pub(super) fn find(&self, key: &[u8]) -> Option<u32> {
        self.from(key).next().filter(|found| found.1 == key).map(|found| found.0)
    }

    /// Adds a key that is not there.
    pub(super) fn add(&mut self, key: &[u8]) -> u32 {
        let (run, place) = self.place(key);
        let value = self.len() as u32;
        make_room(&mut self.text, key.len());
        self.text.extend_from_slice(key);
        make_room(&mut self.ends, 1);
        self.ends.push(self.text.len());
        if self.order.is_empty() {
            self.order.push(Vec::new());
        }
        let values = &mut self.order[run];
        make_room(values, 1);
        values.insert(place, value);
        if values.len() > RUN {
            let more = values.split_off(RUN / 2);
            values.shrink_to(RUN * 3 / 4);
            self.order.insert(run + 1, more);
        }
        value
    }

    /// Drops the last one.
    pub(super) fn pop(&mut self) {
        let Some(last) = self.len().checked_sub(1) else { return };
        let (run, place) = self.place(self.get(last as u32));
        self.order[run].remove(place);
        if self.order[run].is_empty() {
            self.order.remove(run);
        }
        self.ends.pop();
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.text.capacity()
            + self.ends.capacity() * size_of::<usize>()
            + self.order.capacity() * size_of::<Vec<u32>>()
            + self.order.iter().map(|run| run.capacity() * 4).sum::<usize>()
    }
}

/// Makes room for more, and for a quarter of what is there where there is none: growth by doubling leaves
/// half of a table empty.
pub(super) fn make_room<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact(more.max(list.len() / 4).max(8));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn keys_are_those_of_a_tree() {
        let (mut keys, mut tree) = (Keys::default(), BTreeMap::new());
        let mut added: Vec<Vec<u8>> = Vec::new();
        let mut random = 5u64;
        for step in 0..6_000u32 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let key = format!("{:x}", random >> 44 & 0x3fff).into_bytes();
            assert_eq!(keys.find(&key), tree.get(&key).copied(), "step {step}");
            let found: Vec<u32> = keys.from(&key).map(|found| found.0).take(5).collect();
            let expected: Vec<u32> =
                tree.range(key.clone()..).map(|found| *found.1).take(5).collect();
            assert_eq!(found, expected);
            if step % 1_000 > 900 {
                keys.pop();
                if let Some(last) = added.pop() {
                    tree.remove(&last);
                }
            } else if !tree.contains_key(&key) {
                assert_eq!(keys.add(&key) as usize, added.len());
                tree.insert(key.clone(), added.len() as u32);
                added.push(key);
            }
        }
        assert_eq!(keys.from(b"").count(), added.len());
        while keys.len() > 0 {
            keys.pop();
        }
        assert_eq!((keys.from(b"").count(), keys.order.len()), (0, 0));
    }
}
