//! What may stand in a row: all substrings of a list of chunks, by a suffix automaton.
//!
//! The automaton over chunks has at most twice as many states as there are chunks, and at most three
//! times as many edges (Blumer and others, 1985); all its states are final. An edge that reads a chunk
//! then becomes a path that reads its bytes, or its characters.

use std::hash::Hash;

use rustc_hash::FxHashMap;

use super::{Bounds, CharSet, Dfa, ScalarNfa};
use crate::error::{Error, Result};
use crate::grammar::Described;

/// The deterministic automaton of all substrings of a list of chunks, over the chunks.
struct SuffixAutomaton {
    /// For each state its edges, by chunk.
    edges: Vec<Vec<(u32, u32)>>,
}

impl SuffixAutomaton {
    fn new(chunks: &[u32], bounds: &Bounds<'_>) -> Result<Self> {
        let mut out = Self { edges: vec![Vec::new()] };
        // For each state the length of its longest string, and the state of the longest suffix of
        // that which leads elsewhere; the start has none.
        let mut lengths = vec![0u32];
        let mut links: Vec<Option<u32>> = vec![None];
        let mut last = 0u32;
        for &chunk in chunks {
            bounds.budget.spend(1)?;
            let new = out.edges.len() as u32;
            out.edges.push(Vec::new());
            lengths.push(lengths[last as usize] + 1);
            links.push(None);
            let mut at = Some(last);
            while let Some(state) = at.filter(|&state| out.step(state, chunk).is_none()) {
                bounds.budget.spend(1)?;
                out.set(state, chunk, new);
                at = links[state as usize];
            }
            links[new as usize] = match at {
                None => Some(0),
                Some(state) => {
                    let next = out.step(state, chunk).unwrap_or(0);
                    if lengths[next as usize] == lengths[state as usize] + 1 {
                        Some(next)
                    } else {
                        // The shorter strings of `next` get a state of their own.
                        let clone = out.edges.len() as u32;
                        bounds.budget.spend(out.edges[next as usize].len())?;
                        out.edges.push(out.edges[next as usize].clone());
                        lengths.push(lengths[state as usize] + 1);
                        links.push(links[next as usize]);
                        let mut at = Some(state);
                        while let Some(state) = at.filter(|&q| out.step(q, chunk) == Some(next)) {
                            bounds.budget.spend(1)?;
                            out.set(state, chunk, clone);
                            at = links[state as usize];
                        }
                        links[next as usize] = Some(clone);
                        Some(clone)
                    }
                }
            };
            last = new;
        }
        Ok(out)
    }

    fn step(&self, state: u32, chunk: u32) -> Option<u32> {
        let edges = &self.edges[state as usize];
        edges.binary_search_by_key(&chunk, |edge| edge.0).ok().map(|found| edges[found].1)
    }

    fn set(&mut self, state: u32, chunk: u32, to: u32) {
        let edges = &mut self.edges[state as usize];
        match edges.binary_search_by_key(&chunk, |edge| edge.0) {
            Ok(found) => edges[found].1 = to,
            Err(place) => edges.insert(place, (chunk, to)),
        }
    }
}

/// A text, or bytes.
trait Chunk: AsRef<[u8]> + Eq + Hash {}

impl Chunk for str {}
impl Chunk for [u8] {}

/// Chunks as numbers, by their first occurrence, and what each number stands for. Empty chunks go.
fn numbered<'c, C: Chunk + ?Sized>(chunks: &[&'c C]) -> (Vec<u32>, Vec<&'c C>) {
    let mut numbers: FxHashMap<&C, u32> = FxHashMap::default();
    let mut distinct = Vec::new();
    let listed = chunks.iter().filter(|chunk| !chunk.as_ref().is_empty()).map(|&chunk| {
        *numbers.entry(chunk).or_insert_with(|| {
            distinct.push(chunk);
            distinct.len() as u32 - 1
        })
    });
    (listed.collect(), distinct)
}

/// Edges of states on the way through a chunk: from, what is read, to.
type ChunkPaths<S> = Vec<(u32, S, u32)>;

/// The automaton with its edges as paths over parts of chunks, and the number of its states; those
/// of the suffix automaton, which are the final ones, come first.
fn paths<C: Chunk + ?Sized, S: Copy + Eq + Hash>(
    chunks: &[&C],
    parts: impl Fn(&C) -> Vec<S>,
    bounds: &Bounds<'_>,
) -> Result<(ChunkPaths<S>, u32, u32)> {
    let (listed, distinct) = numbered(chunks);
    let suffixes = SuffixAutomaton::new(&listed, bounds)?;
    let finals = suffixes.edges.len() as u32;
    let mut states = finals;
    let mut edges = Vec::new();
    // Chunks that begin alike share their beginnings.
    let mut begun: FxHashMap<(u32, S), u32> = FxHashMap::default();
    for (state, out) in (0u32..).zip(&suffixes.edges) {
        begun.clear();
        for &(chunk, to) in out {
            let parts = parts(distinct[chunk as usize]);
            bounds.budget.spend(parts.len())?;
            let mut at = state;
            for (place, &part) in parts.iter().enumerate() {
                if place + 1 == parts.len() {
                    edges.push((at, part, to));
                    break;
                }
                at = *begun.entry((at, part)).or_insert_with(|| {
                    edges.push((at, part, states));
                    states += 1;
                    states - 1
                });
            }
            if states as usize > bounds.max_states {
                return Err(Error::Limit {
                    limit: "max_automaton_states",
                    value: bounds.max_states as u64,
                    message: "the substrings of these chunks take more states; give fewer or \
                              shorter chunks, or raise the limit"
                        .to_owned(),
                });
            }
        }
    }
    Ok((edges, states, finals))
}

/// The automaton over bytes of `chunks[n..m].concat()` for all `n <= m`.
///
/// # Errors
/// [`Limit`](crate::error::Error::Limit); what an interrupt says.
pub fn substrings(chunks: &[&[u8]], bounds: &Bounds<'_>) -> Result<Described> {
    let (edges, states, finals) = paths(chunks, <[u8]>::to_vec, bounds)?;
    let bytes = edges.into_iter().map(|(from, byte, to)| (from, byte, byte, to)).collect();
    Ok(Described { states, start: 0, finals: (0..finals).collect(), bytes, calls: Vec::new() })
}

/// The same over characters.
///
/// # Errors
/// As [`substrings`].
pub(crate) fn substrings_dfa(chunks: &[&str], bounds: &Bounds<'_>) -> Result<Dfa> {
    let (edges, states, finals) = paths(chunks, |chunk: &str| chunk.chars().collect(), bounds)?;
    let mut nfa = ScalarNfa::new();
    for _ in 0..states {
        nfa.add_state();
    }
    nfa.add_start(0);
    (0..finals).for_each(|state| nfa.set_final(state));
    for (from, c, to) in edges {
        nfa.add_edge(from, &CharSet::new([(c as u32, c as u32)]), to);
    }
    Dfa::from_nfa(&nfa, bounds)
}

/// A text in words: runs of blanks, runs of letters, digits and `_`, runs of anything else.
pub fn words(text: &str) -> Vec<&str> {
    let kind = |c: char| match c {
        c if c.is_whitespace() => 0,
        c if c.is_alphanumeric() || c == '_' => 1,
        _ => 2,
    };
    let mut out = Vec::new();
    let mut start = 0;
    let mut before = None;
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| before != kind(c)) {
            out.push(&text[start..at]);
            start = at;
        }
        before = Some(kind(c));
    }
    if start < text.len() {
        out.push(&text[start..]);
    }
    out
}

/// A text in characters.
pub fn characters(text: &str) -> Vec<&str> {
    text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect()
}
