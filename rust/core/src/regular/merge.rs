//! States of an automaton over bytes that are equivalent.
//!
//! The states of a language differ, and so do the nodes within a character, but a node may be
//! equivalent to a state: behind a backslash `n` may stand for a line feed, as `n` stands for
//! itself elsewhere. This takes a state that is not final and reads the same bytes as a node.

use super::Bounds;
use super::alphabet::{REST, ScalarAlphabet};
use super::minimize;
use super::table::{DEAD, DfaTable};
use crate::error::Result;
use crate::grammar::Described;
use rustc_hash::FxHashSet;

/// Merges the nodes, from number `first` on, that are equivalent to states.
pub(super) fn merge_nodes(
    automaton: Described,
    first: u32,
    bounds: &Bounds<'_>,
) -> Result<Described> {
    if !may_have_equals(&automaton, first) {
        return Ok(automaton);
    }
    // Each range of bytes that no edge splits is a class.
    let mut cuts: Vec<u32> = vec![0];
    cuts.extend(automaton.bytes.iter().flat_map(|edge| [u32::from(edge.1), u32::from(edge.2) + 1]));
    cuts.sort_unstable();
    cuts.dedup();
    let classes = cuts.len() as u32 + 1;
    let place = |byte: u32| cuts.partition_point(|&cut| cut < byte) as u32 + 1;
    let alphabet = cuts.iter().copied().zip(1..).chain([(256, REST)]);
    let mut table = DfaTable::new(ScalarAlphabet::new(alphabet, classes));
    let mut is_final = vec![false; automaton.states as usize];
    automaton.finals.iter().for_each(|&q| is_final[q as usize] = true);
    let mut edges = automaton.bytes.iter().peekable();
    for q in 0..automaton.states {
        let mut row = Vec::new();
        while let Some(&(_, a, b, to)) = edges.next_if(|edge| edge.0 == q) {
            let classes = place(u32::from(a))..place(u32::from(b) + 1);
            bounds.budget.spend(classes.len())?;
            row.extend(classes.map(|class| (class, to)));
        }
        table.push_row(is_final[q as usize], DEAD, row);
    }
    let blocks = minimize::equivalent(&table, bounds)?;
    let mut number = vec![DEAD; blocks.len];
    let mut kept = Vec::new();
    let mut states = 0;
    for q in 0..automaton.states {
        let number = &mut number[blocks.of[q as usize] as usize];
        kept.push(*number == DEAD);
        if *number == DEAD {
            *number = states;
            states += 1;
        }
    }
    let new_of = |q: u32| number[blocks.of[q as usize] as usize];
    let bytes = automaton.bytes.iter().filter(|edge| kept[edge.0 as usize]);
    let bytes = bytes.map(|&(from, a, b, to)| (new_of(from), a, b, new_of(to))).collect();
    Ok(Described { states, bytes, ..automaton })
}

/// Whether a state and a node read the same bytes.
fn may_have_equals(automaton: &Described, first: u32) -> bool {
    let mut of_states = FxHashSet::default();
    let mut runs = automaton.bytes.chunk_by(|a, b| a.0 == b.0);
    let is_final = |q: u32| automaton.finals.binary_search(&q).is_ok();
    runs.any(|run| {
        let mut read = [0u64; 4];
        for &(_, a, b, _) in run {
            for (place, word) in read.iter_mut().enumerate() {
                let from = usize::from(a).max(place * 64);
                let until = (usize::from(b) + 1).min(place * 64 + 64);
                if from < until {
                    *word |= u64::MAX >> (64 - (until - from)) << (from - place * 64);
                }
            }
        }
        if run[0].0 >= first {
            return of_states.contains(&read);
        }
        if !is_final(run[0].0) {
            of_states.insert(read);
        }
        false
    })
}
