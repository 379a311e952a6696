//! Random texts: of an automaton, and near one.

use crate::regular::{CharSet, Dfa};
use std::collections::VecDeque;

/// Numbers that look random, the same in each run (SplitMix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }

    /// One of these.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// A character of the set, often the first or the last of a range.
    fn character(&mut self, set: &CharSet) -> char {
        let &(first, last) = self.one(set.ranges());
        let code = match self.below(4) {
            0 => first,
            1 => last,
            _ => first + self.below((last - first + 1) as usize) as u32,
        };
        char::from_u32(code).expect("edges hold no surrogates")
    }

    /// A text with one character removed, put in, changed, or two swapped.
    pub(super) fn mutated(&mut self, text: &str, alphabet: &[char]) -> String {
        let mut text: Vec<char> = text.chars().collect();
        let place = self.below(text.len() + 1);
        let one = *self.one(alphabet);
        match self.below(4) {
            0 => text.insert(place, one),
            1 if place < text.len() => text[place] = one,
            2 if place + 1 < text.len() => text.swap(place, place + 1),
            _ if place < text.len() => drop(text.remove(place)),
            _ => text.push(one),
        }
        text.into_iter().collect()
    }
}

/// Draws texts that an automaton accepts.
pub(super) struct Sampler {
    edges: Vec<Vec<(CharSet, u32)>>,
    finals: Vec<bool>,
    /// How many characters a text needs at least, from each state.
    distances: Vec<usize>,
}

impl Sampler {
    pub(super) fn new(automaton: &Dfa) -> Self {
        let states = 0..automaton.num_states() as u32;
        let edges: Vec<Vec<(CharSet, u32)>> =
            states.clone().map(|state| automaton.edges(state).collect()).collect();
        let finals: Vec<bool> = states.map(|state| automaton.is_final(state)).collect();
        let mut before = vec![Vec::new(); edges.len()];
        for (from, edges) in edges.iter().enumerate() {
            edges.iter().for_each(|edge| before[edge.1 as usize].push(from));
        }
        let mut distances = vec![usize::MAX; edges.len()];
        let mut queue: VecDeque<usize> = (0..edges.len()).filter(|&q| finals[q]).collect();
        queue.iter().for_each(|&q| distances[q] = 0);
        while let Some(q) = queue.pop_front() {
            for &p in &before[q] {
                if distances[p] == usize::MAX {
                    distances[p] = distances[q] + 1;
                    queue.push_back(p);
                }
            }
        }
        Self { edges, finals, distances }
    }

    /// A text; past some length it goes the shortest way to its end.
    pub(super) fn draw(&self, random: &mut Random) -> String {
        let (mut out, mut state) = (String::new(), 0usize);
        let long = *random.one(&[4, 20, 60, 300]);
        let stop = *random.one(&[2, 8, 100]);
        loop {
            let is_long = out.len() > long;
            if self.finals[state] && (is_long || random.below(stop) == 0) {
                return out;
            }
            let leads_on = |edge: &&(CharSet, u32)| {
                !is_long || self.distances[edge.1 as usize] < self.distances[state]
            };
            let edges: Vec<_> = self.edges[state].iter().filter(leads_on).collect();
            if edges.is_empty() {
                return out; // A final state that nothing follows.
            }
            let (set, to) = random.one(&edges);
            out.push(random.character(set));
            state = *to as usize;
        }
    }
}

/// Compares an automaton with a validator: on texts of the automaton, on these with up to three
/// mutations, and on texts given. Says how many of the texts were valid.
pub(super) fn compare(
    name: &str,
    alphabet: &str,
    given: &[&str],
    is_valid: impl Fn(&str) -> bool,
) -> usize {
    let automaton = super::automaton(name);
    let sampler = Sampler::new(&automaton);
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut random = Random(name.len() as u64);
    let mut valid = 0;
    let mut check = |text: &str| {
        let expected = is_valid(text);
        assert_eq!(automaton.accepts(text), expected, "{name}: {text:?}");
        valid += usize::from(expected);
    };
    given.iter().for_each(|text| check(text));
    for round in 0..3_000 {
        let mut text = match given.len() {
            0 => sampler.draw(&mut random),
            _ if round % 3 > 0 => sampler.draw(&mut random),
            _ => (*random.one(given)).to_owned(),
        };
        check(&text);
        for _ in 0..3 {
            text = random.mutated(&text, &alphabet);
            check(&text);
        }
    }
    valid
}
