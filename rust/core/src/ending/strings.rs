//! The strings of tokens, and how many tokens spell the rests of them.

use crate::network::ClassSet;
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
pub(super) fn is_spelled(string: &[u8]) -> bool {
    string.len() <= LONGEST_SPELLED
}

/// Between which letters a frame can be left within a token: nobody asks for the tokens of other rests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cuts {
    /// The classes with which a rule can be complete.
    pub(super) last: ClassSet,
    /// Those that can be read next.
    pub(super) next: ClassSet,
}

impl Cuts {
    /// Between any two letters.
    pub(super) const ALL: Self = Self { last: [u64::MAX; 4], next: [u64::MAX; 4] };
}

/// A rest of a string, before which a frame can be left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rest {
    /// The node of a [`Dawg`](super::Dawg) from which it leads on.
    pub(super) node: u32,
    /// The number of the string.
    pub(super) index: usize,
    /// Its first letter.
    pub(super) at: usize,
}

/// Where suffixes of a string lead, letter by letter. Of strings that come sorted most is known from the string before.
#[derive(Default)]
struct Paths {
    string: Vec<u8>,
    /// How many strings there were.
    turns: usize,
    /// By the first letter of the suffix the nodes on the way, and the last turn that asked for it.
    of: Vec<(Vec<u32>, usize)>,
}

impl Paths {
    /// Turns to the next string, and there to the suffixes that begin at some letters.
    fn turn_to(
        &mut self,
        string: &[u8],
        from: impl Iterator<Item = usize>,
        mut step: impl FnMut((u32, u8)) -> u32,
    ) {
        let shared = shared(&self.string, string);
        self.string.clear();
        self.string.extend_from_slice(string);
        self.of.resize_with(string.len().max(self.of.len()), Default::default);
        self.turns += 1;
        for from in from {
            let (path, turn) = &mut self.of[from];
            let is_known = std::mem::replace(turn, self.turns) + 1 == self.turns;
            path.truncate(if is_known { shared.saturating_sub(from) } else { 0 });
            for &letter in &string[from + path.len()..] {
                let before = path.last().copied().unwrap_or(0);
                path.push(step((before, letter)));
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
    /// By node the one from which a letter leads there.
    before: Vec<u32>,
}

impl LetterTrie {
    /// The root alone, for so many letters.
    fn new(letters: usize) -> Self {
        let (rows, more) = (vec![NOWHERE; letters], FxHashMap::default());
        Self { letters, rows, more, before: vec![NOWHERE] }
    }

    /// How many nodes there are.
    fn len(&self) -> usize {
        self.before.len()
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
        let new = self.len() as u32;
        self.before.push(at.0);
        match self.rows.get_mut(at.0 as usize * self.letters + at.1 as usize) {
            Some(next) => *next = new,
            None => _ = self.more.insert(at, new),
        }
        let end = self.len() * self.letters;
        // A node has a row as long as all before it have one.
        if end == self.rows.len() + self.letters && end <= MOST_IN_ROWS {
            self.rows.resize(end, NOWHERE);
        }
        new
    }
}

/// How many tokens of the whole vocabulary spell rests of strings, by their first letters. Rests come sorted, by string
/// and letter. What nobody asks for is [`UNREACHABLE`], as where no tokens spell a rest.
///
/// Most rests are one token. Where one is not, all behind it are looked for: at once if most rests are asked for anyway.
pub(super) fn spelled(
    strings: &Strings,
    rests: &[Rest],
    whole: &Trie,
    class: &impl Fn(&Trie, u32) -> u8,
) -> Vec<u32> {
    let mut needs = vec![UNREACHABLE; strings.letters.len()];
    let are_most = rests.len() > strings.letters.len() / 2;
    let mut suffixes = Suffixes::new(strings);
    // By rest where it begins, and the node to which it leads.
    let mut ends: Vec<(Rest, u32)> = Vec::new();
    for rests in rests.chunk_by(|a, b| a.index == b.index) {
        let string = strings.get(rests[0].index);
        let is_there = is_spelled(string)
            && match are_most {
                true => suffixes.turn_to(string, rests[0].at..string.len()),
                false => suffixes.turn_to(string, rests.iter().map(|rest| rest.at)),
            };
        if is_there {
            let end = |rest: &Rest| suffixes.way(rest.at).last().copied().unwrap_or(0);
            ends.extend(rests.iter().map(|rest| (*rest, end(rest))));
        }
    }
    match are_most {
        true => suffixes.mark_all(whole, class),
        false => suffixes.mark(ends.iter().map(|end| end.1), whole, class),
    }
    ends.retain(|&(Rest { index, at, .. }, end)| {
        let is_token = suffixes.is_token[end as usize];
        if is_token {
            needs[strings.start(index) + at] = 1;
        }
        !is_token
    });
    // The strings with other rests, with the first of them.
    ends.dedup_by_key(|(rest, _)| rest.index);
    if !are_most {
        suffixes = Suffixes::new(strings);
        for &(Rest { index, at, .. }, _) in &ends {
            let string = strings.get(index);
            suffixes.turn_to(string, at..string.len());
        }
        suffixes.mark_all(whole, class);
    }
    for (Rest { index, at: first, .. }, _) in ends {
        let (string, from) = (strings.get(index), strings.start(index));
        if !suffixes.turn_to(string, first..string.len()) {
            continue;
        }
        for at in (first..string.len()).rev() {
            let behind = needs[from + at + 1..from + string.len()].iter().chain([&0]);
            needs[from + at] = suffixes.fewest(at, behind);
        }
    }
    needs
}

/// The suffixes of strings, and which prefixes of them are tokens.
struct Suffixes {
    trie: LetterTrie,
    paths: Paths,
    is_token: Vec<bool>,
}

impl Suffixes {
    /// None yet, of some strings.
    fn new(strings: &Strings) -> Self {
        let letters = strings.letters.iter().max().map_or(0, |&letter| usize::from(letter) + 1);
        let trie = LetterTrie::new(letters);
        Self { trie, paths: Paths::default(), is_token: Vec::new() }
    }

    /// Turns to the next string, of which some suffixes are added; `false` if there is no room.
    fn turn_to(&mut self, string: &[u8], from: impl Iterator<Item = usize>) -> bool {
        let is_there = string.len() <= LONG || self.trie.len() <= MANY_SUFFIXES;
        if is_there {
            self.paths.turn_to(string, from, |at| self.trie.next_or_new(at));
        }
        is_there
    }

    /// The nodes on the way of a suffix of the string.
    fn way(&self, from: usize) -> &[u32] {
        &self.paths.of[from].0
    }

    /// Marks which nodes are tokens of the whole vocabulary.
    fn mark_all(&mut self, whole: &Trie, class: &impl Fn(&Trie, u32) -> u8) {
        self.mark(1..self.trie.len() as u32, whole, class);
    }

    /// Marks which of some nodes are tokens of the whole vocabulary.
    fn mark(
        &mut self,
        asked: impl Iterator<Item = u32>,
        whole: &Trie,
        class: &impl Fn(&Trie, u32) -> u8,
    ) {
        self.is_token = vec![false; self.trie.len()];
        // How many are asked for and not marked yet, of each node and those behind it: where there are none, nothing
        // is looked for. Many tokens spell the same letters.
        let mut left = vec![0; self.trie.len()];
        let mut waits = vec![false; self.trie.len()];
        for node in asked {
            (left[node as usize], waits[node as usize]) = (1, true);
        }
        for node in (1..self.trie.len()).rev() {
            left[self.trie.before[node] as usize] += left[node];
        }
        let mut path = vec![(whole.end(0), 0)];
        let mut node = 1;
        while node < whole.end(0) {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            let (end, before) = path[path.len() - 1];
            if left[before as usize] == 0 {
                node = end;
                continue;
            }
            let here = self.trie.next((before, class(whole, node)));
            let Some(here) = here.filter(|&here| left[here as usize] > 0) else {
                node = whole.end(node);
                continue;
            };
            path.push((whole.end(node), here));
            if waits[here as usize] && !whole.numbers(node).is_empty() {
                (waits[here as usize], self.is_token[here as usize]) = (false, true);
                path.iter().for_each(|&(_, on_way)| left[on_way as usize] -= 1);
            }
            node += 1;
        }
    }

    /// The fewest tokens of a suffix of the string, given those of what is left behind each of its letters.
    fn fewest<'n>(&self, from: usize, behind: impl Iterator<Item = &'n u32>) -> u32 {
        let ends =
            self.way(from).iter().zip(behind).filter(|(node, _)| self.is_token[**node as usize]);
        ends.map(|(_, left)| left + 1).min().unwrap_or(UNREACHABLE).min(UNREACHABLE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{contains, insert};
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
            prop_assert_eq!(trie.len(), known.len() + 1);
            for node in 0..trie.len() as u32 {
                for letter in 0..letters + 2 {
                    prop_assert_eq!(trie.next((node, letter)), known.get(&(node, letter)).copied());
                }
            }
        }

        #[test]
        fn rests_need_what_a_search_by_hand_finds(
            words in prop::collection::vec(prop::collection::vec(0u8..4, 1..9), 1..30),
            more in prop::collection::vec(prop::collection::vec(0u8..4, 1..4), 0..12),
            (last, next) in any::<([bool; 4], [bool; 4])>(),
            is_whole in any::<bool>(),
        ) {
            let of = |words: &[Vec<u8>]| {
                let sorted: std::collections::BTreeSet<&Vec<u8>> = words.iter().collect();
                Trie::new(sorted.into_iter().map(Vec::as_slice).zip(0..))
            };
            let whole = if is_whole { [words.clone(), more].concat() } else { more };
            let class = |trie: &Trie, node: u32| trie.byte(node);
            let strings = Strings::of_trie(&of(&words), |node| class(&of(&words), node));
            let set = |letters: [bool; 4]| {
                let mut set = [0; 4];
                (0..4u8).filter(|&letter| letters[usize::from(letter)]).for_each(|letter| insert(&mut set, letter));
                set
            };
            let cuts = Cuts { last: set(last), next: set(next) };
            let is_asked = |string: &[u8], at: usize| {
                at > 0 && contains(&cuts.last, string[at - 1]) && contains(&cuts.next, string[at])
            };
            let rests: Vec<Rest> = (0..strings.ends.len())
                .flat_map(|index| (0..strings.get(index).len()).map(move |at| (index, at)))
                .filter(|&(index, at)| is_asked(strings.get(index), at))
                .map(|(index, at)| Rest { node: 0, index, at })
                .collect();
            let found = spelled(&strings, &rests, &of(&whole), &class);
            for (index, string) in strings.iter().enumerate() {
                let mut fewest = vec![UNREACHABLE; string.len() + 1];
                fewest[string.len()] = 0;
                for at in (0..string.len()).rev() {
                    let fits = whole.iter().filter(|token| string[at..].starts_with(token));
                    let after = fits.map(|token| fewest[at + token.len()] + 1).min();
                    fewest[at] = after.unwrap_or(UNREACHABLE).min(UNREACHABLE);
                    let found = found[strings.start(index) + at];
                    let is_none = !is_asked(string, at) && found == UNREACHABLE;
                    prop_assert!(is_none || found == fewest[at]);
                }
            }
        }
    }
}
