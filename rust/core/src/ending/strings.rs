//! The strings of tokens, and how many tokens spell the rests of them.

use crate::vocabulary::Trie;
use rustc_hash::FxHashMap;

/// More than any number of tokens.
pub(crate) const UNREACHABLE: u32 = u32::MAX / 4;

/// Letters of a string of which the suffixes are spelled, at most: more are taken for strings that no
/// tokens spell, which keeps more exits than are needed and no wrong one.
const LONGEST_SPELLED: usize = 256;
/// Strings of more letters than these are spelled while there are not many suffixes: vocabularies have
/// long runs of one letter, which share theirs.
const LONG: usize = 64;
const MANY_SUFFIXES: usize = 1 << 18;

/// Strings of letters, one behind the other.
#[derive(Default)]
pub(super) struct Strings {
    pub(super) letters: Vec<u8>,
    ends: Vec<usize>,
}

impl Strings {
    fn push(&mut self, string: &[u8]) {
        self.letters.extend_from_slice(string);
        self.ends.push(self.letters.len());
    }

    pub(super) fn get(&self, index: usize) -> &[u8] {
        &self.letters[self.start(index)..self.ends[index]]
    }

    /// The strings of a trie, sorted, each once. `class` is that of a node.
    pub(super) fn of_trie(trie: &Trie, class: impl Fn(u32) -> u8) -> Self {
        let mut all = Self::default();
        let mut path: Vec<(u32, u8)> = Vec::new();
        let mut string = Vec::new();
        for node in 1..trie.len() as u32 {
            while path.last().is_some_and(|last| last.0 <= node) {
                path.pop();
            }
            if trie.ids() == Some(node) {
                continue; // a second root
            }
            path.push((trie.end(node), class(node)));
            if !trie.numbers(node).is_empty() {
                string.clear();
                string.extend(path.iter().map(|step| step.1));
                all.push(&string);
            }
        }
        let mut order: Vec<u32> = (0..all.ends.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| all.get(a as usize).cmp(all.get(b as usize)));
        order.dedup_by(|a, b| all.get(*a as usize) == all.get(*b as usize));
        let mut sorted = Self::default();
        order.into_iter().for_each(|index| sorted.push(all.get(index as usize)));
        sorted
    }

    /// Where the letters of a string begin.
    pub(super) fn start(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |before| self.ends[before])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }
}

/// How many letters two strings share.
pub(super) fn shared(before: &[u8], string: &[u8]) -> usize {
    before.iter().zip(string).take_while(|(a, b)| a == b).count()
}

/// Whether it is found out what the suffixes of a string need.
pub(super) fn is_spelled(string: &[u8], escape: Option<u8>) -> bool {
    string.len() <= LONGEST_SPELLED && string.first().copied() != escape
}

/// Where the suffixes of a string lead, letter by letter. Of strings that come sorted most is known from
/// the string before.
#[derive(Default)]
pub(super) struct Paths {
    string: Vec<u8>,
    /// The nodes on the way, by the first letter of the suffix.
    pub(super) of: Vec<Vec<u32>>,
}

impl Paths {
    /// Turns to the next string; a way ends where no letter leads on.
    pub(super) fn turn_to(
        &mut self,
        string: &[u8],
        mut step: impl FnMut((u32, u8)) -> Option<u32>,
    ) {
        let shared = self.string.iter().zip(string).take_while(|(a, b)| a == b).count();
        self.string.clear();
        self.string.extend_from_slice(string);
        self.of.resize_with(string.len().max(self.of.len()), Vec::new);
        for (from, path) in self.of.iter_mut().enumerate().skip(1) {
            path.truncate(shared.saturating_sub(from));
            let rest = string.get(from + path.len()..).unwrap_or_default();
            for &letter in rest {
                let before = path.last().copied().unwrap_or(0);
                let Some(next) = step((before, letter)) else { break };
                path.push(next);
            }
        }
    }
}

/// Numbers in the rows of a [`LetterTrie`], at most: in tests so few that nodes without a row are met.
const MOST_IN_ROWS: usize = if cfg!(test) { 64 } else { 1 << 18 };
/// No node.
const NOWHERE: u32 = u32::MAX;

/// A trie of letters. Its first nodes, which most ways pass, have a row of all letters each.
struct LetterTrie {
    letters: usize,
    rows: Vec<u32>,
    more: FxHashMap<(u32, u8), u32>,
    count: u32,
    /// By node whether any letter leads on.
    goes_on: Vec<bool>,
}

impl LetterTrie {
    /// The root alone, for so many letters.
    fn new(letters: usize) -> Self {
        let (more, goes_on) = (FxHashMap::default(), vec![false]);
        Self { letters, rows: vec![NOWHERE; letters], more, count: 1, goes_on }
    }

    /// Where a letter leads from a node.
    #[inline]
    fn next(&self, (node, letter): (u32, u8)) -> Option<u32> {
        if letter as usize >= self.letters {
            return None;
        }
        let place = node as usize * self.letters + letter as usize;
        match self.rows.get(place) {
            Some(&next) => (next != NOWHERE).then_some(next),
            None => self.more.get(&(node, letter)).copied(),
        }
    }

    /// Where a letter leads from a node; if it leads nowhere, to a node that is added.
    fn next_or_new(&mut self, at: (u32, u8)) -> u32 {
        if let Some(next) = self.next(at) {
            return next;
        }
        let new = self.count;
        self.count += 1;
        self.goes_on[at.0 as usize] = true;
        self.goes_on.push(false);
        match self.rows.get_mut(at.0 as usize * self.letters + at.1 as usize) {
            Some(next) => *next = new,
            None => _ = self.more.insert(at, new),
        }
        let end = self.count as usize * self.letters;
        // A node has a row as long as all before it have one.
        if end == self.rows.len() + self.letters && end <= MOST_IN_ROWS {
            self.rows.resize(end, NOWHERE);
        }
        new
    }
}

/// The suffixes of strings, and which prefixes of them are tokens.
pub(super) struct Suffixes {
    trie: LetterTrie,
    is_token: Vec<bool>,
}

impl Suffixes {
    pub(super) fn new(
        strings: &Strings,
        whole: &Trie,
        class: &impl Fn(&Trie, u32) -> u8,
        escape: Option<u8>,
    ) -> Self {
        let letters = strings.letters.iter().max().map_or(0, |&letter| usize::from(letter) + 1);
        let mut trie = LetterTrie::new(letters);
        let mut paths = Paths::default();
        for string in strings.iter().filter(|string| is_spelled(string, escape)) {
            if string.len() > LONG && trie.count as usize > MANY_SUFFIXES {
                continue;
            }
            paths.turn_to(string, |at| Some(trie.next_or_new(at)));
        }
        let mut out = Self { is_token: vec![false; trie.count as usize], trie };
        out.mark(whole, class);
        out
    }

    /// Where a letter leads from a node.
    pub(super) fn next(&self, at: (u32, u8)) -> Option<u32> {
        self.trie.next(at)
    }

    /// Marks what is a token of the whole vocabulary.
    fn mark(&mut self, whole: &Trie, class: &impl Fn(&Trie, u32) -> u8) {
        let mut path = vec![(whole.end(0), 0)];
        let mut node = 1;
        while node < whole.end(0) {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            let before = path[path.len() - 1].1;
            let Some(here) = self.next((before, class(whole, node))) else {
                node = whole.end(node);
                continue;
            };
            if !whole.numbers(node).is_empty() {
                self.is_token[here as usize] = true;
            }
            if !self.trie.goes_on[here as usize] {
                node = whole.end(node);
                continue;
            }
            path.push((whole.end(node), here));
            node += 1;
        }
    }

    /// The fewest tokens of a string that leads along some nodes, given those of what is left after each
    /// letter.
    pub(super) fn fewest(&self, path: &[u32], needed: &[u32]) -> u32 {
        let ends = path.iter().zip(&needed[1..]);
        let fewest =
            ends.filter(|(node, _)| self.is_token[**node as usize]).map(|(_, left)| left + 1);
        fewest.min().unwrap_or(UNREACHABLE).min(UNREACHABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn letters_lead_on_with_and_without_rows(
            letters in 1u8..9, words in prop::collection::vec(prop::collection::vec(0u8..9, 0..9), 0..60),
        ) {
            let mut trie = LetterTrie::new(usize::from(letters));
            let mut known: BTreeMap<(u32, u8), u32> = BTreeMap::new();
            for word in words {
                let mut node = 0;
                for letter in word.into_iter().map(|letter| letter % letters) {
                    let next = trie.next_or_new((node, letter));
                    prop_assert_eq!(*known.entry((node, letter)).or_insert(next), next);
                    node = next;
                }
            }
            prop_assert_eq!(trie.count as usize, known.len() + 1);
            for node in 0..trie.count {
                for letter in 0..letters + 2 {
                    prop_assert_eq!(trie.next((node, letter)), known.get(&(node, letter)).copied());
                }
            }
        }
    }
}
