//! Texts in which none of some others occurs, as they are written: by bytes.
//!
//! The automaton is read beside the one that looks for the others (Aho and Corasick): a state of it
//! is how much of one of them was just written. What would complete one is no edge.

use super::Bounds;
use crate::error::Result;
use crate::grammar::Described;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The automaton of the texts of another in which none of `texts` occurs, without states that lead
/// to no end. An automaton that calls is no argument.
///
/// # Errors
/// [`crate::error::Error::Limit`] and what ends the work.
pub fn excluding(
    automaton: &Described,
    texts: &[impl AsRef<[u8]>],
    bounds: &Bounds<'_>,
) -> Result<Described> {
    let product = Product::new(automaton, 0, &Watch::new(texts, bounds)?, bounds)?;
    let finals = product.finals.iter().map(|&(state, _)| state).collect();
    Ok(trimmed(product.states, finals, &product.bytes))
}

/// Texts that must not occur, searched for while characters are read one by one.
pub struct ExcludedTexts {
    watch: Watch,
}

impl ExcludedTexts {
    /// # Errors
    /// What ends the work.
    pub fn new(texts: &[impl AsRef<[u8]>], bounds: &Bounds<'_>) -> Result<Self> {
        Ok(Self { watch: Watch::new(texts, bounds)? })
    }

    /// How the spellings of a character move the search from one of its states, of which 0 is the first:
    /// for each state that some of them lead to, in order, the automaton of these. A spelling that
    /// completes a text leads nowhere.
    ///
    /// # Errors
    /// What ends the work.
    pub fn steps(
        &self,
        character: &Described,
        from: u32,
        bounds: &Bounds<'_>,
    ) -> Result<Vec<(u32, Described)>> {
        let product = Product::new(character, from, &self.watch, bounds)?;
        let mut to: Vec<u32> = product.finals.iter().map(|&(_, seen)| seen).collect();
        to.sort_unstable();
        to.dedup();
        let steps = to.into_iter().map(|to| {
            let finals = product.finals.iter().filter(|pair| pair.1 == to);
            let finals = finals.map(|&(state, _)| state).collect();
            (to, trimmed(product.states, finals, &product.bytes))
        });
        Ok(steps.collect())
    }
}

/// An automaton read beside the search from a state of the latter.
struct Product {
    states: usize,
    /// Its states where the automaton may stop, with the state of the search.
    finals: Vec<(u32, u32)>,
    bytes: Vec<(u32, u8, u8, u32)>,
}

impl Product {
    fn new(automaton: &Described, seen: u32, watch: &Watch, bounds: &Bounds<'_>) -> Result<Self> {
        let mut edges: Vec<Vec<(u8, u8, u32)>> = vec![Vec::new(); automaton.states as usize];
        for &(from, first, last, to) in &automaton.bytes {
            edges[from as usize].push((first, last, to));
        }
        let mut is_final = vec![false; automaton.states as usize];
        automaton.finals.iter().for_each(|&state| is_final[state as usize] = true);

        let mut pairs: Vec<(u32, u32)> = vec![(automaton.start, seen)];
        let mut numbers: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        numbers.insert(pairs[0], 0);
        let mut bytes: Vec<(u32, u8, u8, u32)> = Vec::new();
        let mut finals = Vec::new();
        let mut next = 0;
        while let Some(&(state, seen)) = pairs.get(next) {
            let from = next as u32;
            next += 1;
            if is_final[state as usize] {
                finals.push((from, seen));
            }
            let before = bytes.len();
            for &(first, last, to) in &edges[state as usize] {
                for (first, last, seen) in watch.steps(seen, first, last) {
                    let pair = (to, seen);
                    let number = *numbers.entry(pair).or_insert_with(|| {
                        pairs.push(pair);
                        pairs.len() as u32 - 1
                    });
                    bytes.push((from, first, last, number));
                }
            }
            bounds.budget.spend(1 + bytes.len() - before)?;
            bounds.check(pairs.len())?;
        }
        Ok(Self { states: pairs.len(), finals, bytes })
    }
}

/// Whether one of some texts occurs in another.
pub fn occurs_in(text: &[u8], texts: &[impl AsRef<[u8]>]) -> bool {
    texts
        .iter()
        .map(AsRef::as_ref)
        .any(|one| one.is_empty() || text.windows(one.len()).any(|part| part == one))
}

/// The automaton without states from which no end can be reached; the start stays.
fn trimmed(states: usize, finals: Vec<u32>, bytes: &[(u32, u8, u8, u32)]) -> Described {
    let mut back: Vec<Vec<u32>> = vec![Vec::new(); states];
    for &(from, _, _, to) in bytes {
        back[to as usize].push(from);
    }
    let mut is_live = vec![false; states];
    let mut work = finals.clone();
    finals.iter().for_each(|&state| is_live[state as usize] = true);
    while let Some(state) = work.pop() {
        for &from in &back[state as usize] {
            if !std::mem::replace(&mut is_live[from as usize], true) {
                work.push(from);
            }
        }
    }
    is_live[0] = true;
    let mut number = vec![0u32; states];
    let mut kept = 0;
    for (state, &is_live) in is_live.iter().enumerate() {
        number[state] = kept;
        kept += u32::from(is_live);
    }
    let of = |state: u32| number[state as usize];
    let is_kept =
        |&&(from, _, _, to): &&(u32, u8, u8, u32)| is_live[from as usize] && is_live[to as usize];
    let bytes = bytes.iter().filter(is_kept).map(|&(p, a, b, q)| (of(p), a, b, of(q))).collect();
    let finals = finals.into_iter().map(of).collect();
    Described { states: kept, start: 0, finals, bytes, calls: Vec::new() }
}

/// How much of a text was just written.
struct Watch {
    /// For each state the bytes that do not lead to the start, in order, and where they lead;
    /// `None` where a text would be complete.
    moves: Vec<Vec<(u8, Option<u32>)>>,
}

impl Watch {
    fn new(texts: &[impl AsRef<[u8]>], bounds: &Bounds<'_>) -> Result<Self> {
        let mut children: Vec<Vec<(u8, u32)>> = vec![Vec::new()];
        let mut is_whole = vec![false];
        for text in texts {
            let text = text.as_ref();
            bounds.budget.spend(1 + text.len())?;
            let mut at = 0u32;
            for &byte in text {
                let found = children[at as usize].iter().find(|child| child.0 == byte);
                at = match found {
                    Some(&(_, child)) => child,
                    None => {
                        let child = children.len() as u32;
                        children[at as usize].push((byte, child));
                        children.push(Vec::new());
                        is_whole.push(false);
                        child
                    }
                };
            }
            is_whole[at as usize] = true;
            bounds.check(children.len())?;
        }
        let mut moves: Vec<Vec<(u8, Option<u32>)>> = vec![Vec::new(); children.len()];
        // The state of the longest proper suffix comes first.
        let mut suffix = vec![0u32; children.len()];
        let mut todo = VecDeque::from([0u32]);
        while let Some(state) = todo.pop_front() {
            let place = state as usize;
            let mut own: Vec<(u8, Option<u32>)> = match state {
                0 => Vec::new(),
                _ => moves[suffix[place] as usize].clone(),
            };
            for &(byte, child) in &children[place] {
                let known = own.iter().position(|step| step.0 == byte);
                let shorter = known.and_then(|known| own.remove(known).1);
                is_whole[child as usize] |= known.is_some() && shorter.is_none();
                suffix[child as usize] = shorter.unwrap_or(0);
                own.push((byte, (!is_whole[child as usize]).then_some(child)));
                todo.push_back(child);
            }
            own.sort_unstable();
            bounds.budget.spend(1 + own.len())?;
            moves[place] = own;
        }
        Ok(Self { moves })
    }

    /// Where the bytes of a range lead, but for those that complete a text.
    fn steps(&self, state: u32, first: u8, last: u8) -> Vec<(u8, u8, u32)> {
        let mut out = Vec::new();
        let mut from = Some(first);
        let moves = &self.moves[state as usize];
        for &(byte, to) in moves.iter().filter(|step| (first..=last).contains(&step.0)) {
            if let Some(start) = from.filter(|&start| start < byte) {
                out.push((start, byte - 1, 0));
            }
            out.extend(to.map(|to| (byte, byte, to)));
            from = byte.checked_add(1);
        }
        if let Some(start) = from.filter(|&start| start <= last) {
            out.push((start, last, 0));
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Interrupt};
    use crate::limits::Limits;
    use crate::regular::{Dfa, Spelling, encode};
    use proptest::prelude::*;

    fn accepts(automaton: &Described, text: &[u8]) -> bool {
        let mut at = automaton.start;
        for &byte in text {
            let mut edges = automaton.bytes.iter();
            match edges.find(|edge| edge.0 == at && (edge.1..=edge.2).contains(&byte)) {
                Some(edge) => at = edge.3,
                None => return false,
            }
        }
        automaton.finals.contains(&at)
    }

    fn made(texts: &[&str], of: &Dfa) -> Described {
        let limits = Limits::default();
        let budget = Budget::new(&limits, &Interrupt::default());
        let bounds = Bounds { budget: &budget, max_states: 10_000 };
        let described = encode(of, Spelling::Utf8, &bounds).expect("it is small");
        excluding(&described, texts, &bounds).expect("it is small")
    }

    #[test]
    fn what_overlaps_is_found() {
        let found = made(&["aab", "é"], &Dfa::anything());
        for (text, expected) in [
            ("", true),
            ("aab", false),
            ("aaab", false),
            ("abab", true),
            ("aaé", false),
            ("\u{e8}", true),
            ("<aa", true),
        ] {
            assert_eq!(accepts(&found, text.as_bytes()), expected, "{text}");
        }
    }

    #[test]
    fn nothing_is_left() {
        let found = made(&["a"], &Dfa::character(&crate::regular::CharSet::new([(97, 97)])));
        assert!(found.finals.is_empty());
        assert_eq!((found.states, found.bytes.len()), (1, 0));
    }

    proptest! {
        #[test]
        fn as_a_search_says(
            texts in prop::collection::vec("[ab<]{1,4}", 1..4),
            text in "[ab<c]{0,10}",
        ) {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            let found = made(&texts, &Dfa::anything());
            let expected = !texts.iter().any(|one| text.contains(one));
            prop_assert_eq!(accepts(&found, text.as_bytes()), expected);
            prop_assert_eq!(!occurs_in(text.as_bytes(), &texts), expected);
        }
    }
}
