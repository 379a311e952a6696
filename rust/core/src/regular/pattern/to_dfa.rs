//! The choice among three ways from a pattern to an automaton ([`Pattern::to_dfa`]), and the first of them.
//!
//! The first way takes plain patterns, whose assertions are `^` and `$` at the ends of the text only: these
//! need no formulas. What `^` leads to can be reached before anything is read, so
//! it is a start; what `$` leads to the end from is final.

use super::super::{Bounds, Dfa, ScalarNfa};
use super::program::{END, Program, START, WayCondition};
use super::syntax::{Assertion, PatternTree};
use super::{Pattern, kinds, residual};
use crate::error::Result;
use crate::grammar::CharSet;

impl Pattern {
    /// The texts that hold a match, or with `search` false those that are one as a whole.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn to_dfa(&self, search: bool, bounds: &Bounds<'_>) -> Result<Dfa> {
        match self.is_plain() {
            true => plain(&self.tree, search, bounds),
            false => match kinds::automaton(&self.tree, search, bounds)? {
                Some(known) => Ok(known),
                None => residual::automaton(&self.tree, search, bounds),
            },
        }
    }
}

fn plain(tree: &PatternTree, search: bool, bounds: &Bounds<'_>) -> Result<Dfa> {
    let program = Program::new(tree, tree.root(), bounds)?;
    let free = |condition| condition == WayCondition::Free;
    let at_start =
        |condition| free(condition) || condition == WayCondition::Assert(Assertion::Start);
    let at_end = |condition| free(condition) || condition == WayCondition::Assert(Assertion::End);
    let forwards = |(from, _, to): (u32, WayCondition, u32)| (from, to);
    let backwards = |(from, _, to): (u32, WayCondition, u32)| (to, from);
    let starts = reached(&program, START, at_start, forwards, bounds)?;
    let ends = reached(&program, END, at_end, backwards, bounds)?;
    let in_empty =
        reached(&program, START, |c| at_start(c) || at_end(c), forwards, bounds)?[END as usize];

    let mut nfa = ScalarNfa::new();
    for position in 0..program.positions as usize {
        let state = nfa.add_state();
        if starts[position] {
            nfa.add_start(state);
        }
        if ends[position] {
            nfa.set_final(state);
        }
    }
    // In a search nothing matters once a match is found.
    let is_found = match search {
        true => reached(&program, END, free, backwards, bounds)?,
        false => vec![false; program.positions as usize],
    };
    for &(from, set, to) in program.edges.iter().filter(|edge| !is_found[edge.0 as usize]) {
        nfa.add_edge(from, tree.set(set), to);
    }
    for &(from, _, to) in program.ways.iter().filter(|way| free(way.1)) {
        nfa.add_epsilon(from, to);
    }
    if in_empty {
        let state = nfa.add_state();
        nfa.add_start(state);
        nfa.set_final(state);
    }
    if search {
        let all = CharSet::scalar_values();
        let before = nfa.add_state();
        nfa.add_start(before);
        nfa.add_edge(before, &all, before);
        nfa.add_epsilon(before, START);
        nfa.set_universal(END);
    }
    Dfa::from_nfa(&nfa, bounds)
}

/// Which positions some ways lead to from one.
fn reached(
    program: &Program,
    from: u32,
    is_open: impl Fn(WayCondition) -> bool,
    direction: impl Fn((u32, WayCondition, u32)) -> (u32, u32),
    bounds: &Bounds<'_>,
) -> Result<Vec<bool>> {
    let open = program.ways.iter().filter(|way| is_open(way.1)).map(|&way| direction(way));
    let mut ways: Vec<(u32, u32)> = open.collect();
    ways.sort_unstable();
    bounds.budget.spend(ways.len() + program.positions as usize)?;
    let mut seen = vec![false; program.positions as usize];
    let mut stack = vec![from];
    while let Some(position) = stack.pop() {
        if std::mem::replace(&mut seen[position as usize], true) {
            continue;
        }
        let first = ways.partition_point(|way| way.0 < position);
        stack.extend(ways[first..].iter().take_while(|way| way.0 == position).map(|way| way.1));
    }
    Ok(seen)
}
