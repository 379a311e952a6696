//! Copies of automata in place of calls of them, by a subset construction that needs no epsilon edges.
//! Most of its sets have one member: a callee mostly begins with other letters than the edges beside its
//! call, and goes on with other letters than the edges behind it.

use super::nfa::subset_work;
use super::{Automaton, FIRST_CALL, Letter};
use crate::budget::Budget;
use crate::error::Result;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;
/// The place of a state of the caller itself.
const CALLER: u32 = u32::MAX;

/// `caller` with copies of `callees` in place of the calls that are their letters, which are in order.
/// Calls of one letter that return to one state share a copy. The result is deterministic, its states are
/// numbered as [`Automaton::renumber`] numbers them, and need not be minimal. `None` where it would have
/// more states than four for each state that it is made of, and 1,000, or take the work at which
/// [`super::Nfa::reduce`] gives up.
///
/// # Errors
/// Those of [`Budget::spend`].
pub(crate) fn spliced(
    caller: &Automaton,
    callees: &[(Letter, &Automaton)],
    work: &Budget,
) -> Result<Option<Automaton>> {
    let mut splicing = Splicing {
        caller,
        callees,
        copies: Vec::new(),
        copy_of: FxHashMap::default(),
        number_of: vec![NONE; caller.len()],
        number_of_set: FxHashMap::default(),
        order: Vec::with_capacity(caller.len()),
        row: Vec::new(),
    };
    let mut made_of = callees.iter().map(|callee| callee.1).chain([caller]);
    let size: usize = made_of.clone().map(Automaton::size).sum();
    let made = work.attempt(subset_work(size), || splicing.subsets(work))?;
    Ok(made.flatten().map(|mut made| {
        if made_of.all(Automaton::is_alive) {
            made.set_alive();
        }
        made
    }))
}

/// The copy, or [`CALLER`], and a state of it.
type CopyState = (u32, u32);

/// What a new state is.
enum Made {
    Single(CopyState),
    Set(Box<[CopyState]>),
}

/// A callee in the place of a call.
struct Copy<'a> {
    automaton: &'a Automaton,
    /// The state of the caller that it returns to.
    back: u32,
    /// Where the numbers of its states stand.
    base: usize,
}

struct Splicing<'a> {
    caller: &'a Automaton,
    callees: &'a [(Letter, &'a Automaton)],
    copies: Vec<Copy<'a>>,
    /// The copy for each letter and state to return to.
    copy_of: FxHashMap<(Letter, u32), u32>,
    /// The new number of each state of the caller, and of those of the copies.
    number_of: Vec<u32>,
    /// The new number of each set of several places, which are in order.
    number_of_set: FxHashMap<Box<[CopyState]>, u32>,
    order: Vec<Made>,
    /// The edges of the state that is being written.
    row: Vec<(Letter, CopyState)>,
}

impl<'a> Splicing<'a> {
    fn subsets(&mut self, work: &Budget) -> Result<Option<Automaton>> {
        let mut out = Automaton::with_capacity(self.caller.len(), self.caller.num_edges());
        self.number((CALLER, 0));
        let mut next = 0;
        while next < self.order.len() {
            let is_final = self.collect(next);
            next += 1;
            let mut row = std::mem::take(&mut self.row);
            work.spend(1 + row.len())?;
            if !row.is_sorted_by(|a, b| a.0 < b.0) {
                row.sort_unstable();
                row.dedup();
            }
            for run in row.chunk_by(|a, b| a.0 == b.0) {
                let number = match *run {
                    [(_, place)] => self.number(place),
                    _ => self.number_set(run.iter().map(|edge| edge.1).collect()),
                };
                out.push_edge(run[0].0, number);
            }
            out.close_state(is_final);
            if self.order.len() > 4 * self.number_of.len() + 1_000 {
                return Ok(None);
            }
            self.row = row;
        }
        Ok(Some(out))
    }

    /// The new number of a state.
    fn number(&mut self, (copy, q): CopyState) -> u32 {
        let base = if copy == CALLER { 0 } else { self.copies[copy as usize].base };
        let number = &mut self.number_of[base + q as usize];
        if *number == NONE {
            *number = self.order.len() as u32;
            self.order.push(Made::Single((copy, q)));
        }
        *number
    }

    fn number_set(&mut self, places: Box<[CopyState]>) -> u32 {
        if let Some(&number) = self.number_of_set.get(&places) {
            return number;
        }
        let number = self.order.len() as u32;
        self.order.push(Made::Set(places.clone()));
        self.number_of_set.insert(places, number);
        number
    }

    /// Puts the edges of a new state into the row; whether it is final.
    fn collect(&mut self, number: usize) -> bool {
        self.row.clear();
        let places = match &mut self.order[number] {
            &mut Made::Single(place) => return self.collect_of(place),
            Made::Set(places) => std::mem::take(places),
        };
        places.iter().fold(false, |is_final, &place| self.collect_of(place) | is_final)
    }

    fn collect_of(&mut self, (copy, q): CopyState) -> bool {
        let Some(&Copy { automaton, back, .. }) = self.copies.get(copy as usize) else {
            self.collect_of_caller(q);
            return self.caller.is_final(q);
        };
        self.collect_of_copy(copy, q);
        if !automaton.is_final(q) {
            return false;
        }
        self.collect_of_caller(back);
        self.caller.is_final(back)
    }

    fn collect_of_caller(&mut self, q: u32) {
        let caller = self.caller;
        for (letter, target) in caller.edges_in_full(q) {
            match self.copy(letter, target) {
                Some(copy) => self.collect_of_copy(copy, 0),
                None => self.row.push((letter, (CALLER, target))),
            }
        }
    }

    /// A final state without edges is the state that the copy returns to.
    fn collect_of_copy(&mut self, copy: u32, q: u32) {
        let Copy { automaton, back, .. } = self.copies[copy as usize];
        let place = |q: u32| if automaton.is_end(q) { (CALLER, back) } else { (copy, q) };
        let edges = automaton.edges_in_full(q).map(|(letter, q)| (letter, place(q)));
        self.row.extend(edges);
    }

    /// The copy in the place of a call, if it is to have one.
    fn copy(&mut self, letter: Letter, back: u32) -> Option<u32> {
        if letter < FIRST_CALL {
            return None;
        }
        let place = self.callees.binary_search_by_key(&letter, |callee| callee.0).ok()?;
        let automaton = self.callees[place].1;
        let next = self.copies.len() as u32;
        let copy = *self.copy_of.entry((letter, back)).or_insert(next);
        if copy == next {
            let base = self.number_of.len();
            self.number_of.resize(base + automaton.len(), NONE);
            self.copies.push(Copy { automaton, back, base });
        }
        Some(copy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automata::{Nfa, call, minimize};
    use crate::budget::{Budget, Interrupt};
    use crate::limits::Limits;
    use proptest::prelude::*;

    /// The slow oracle: copies of the callees, joined to the caller by epsilon edges.
    fn by_epsilon(caller: &Automaton, callees: &[(Letter, &Automaton)]) -> Nfa {
        let mut nfa = Nfa::default();
        nfa.embed_states(caller, true);
        for (p, edges) in caller.states() {
            for &(letter, q) in edges {
                let Some(callee) = callees.iter().find(|callee| callee.0 == letter) else {
                    nfa.edge(p, letter, q);
                    continue;
                };
                let base = nfa.embed(callee.1, false);
                callee.1.final_states().for_each(|f| nfa.skip(base + f, q));
                nfa.skip(p, base);
            }
        }
        nfa
    }

    /// An automaton of edges (state, letter, target), whose letters stand for `letters`.
    fn automaton(
        edges: &[(u8, u8, u8)],
        finals: &[bool],
        letters: &[Letter],
        is_deterministic: bool,
    ) -> Automaton {
        let n = finals.len();
        let mut states: Vec<(bool, Vec<(Letter, u32)>)> =
            finals.iter().map(|&is_final| (is_final, Vec::new())).collect();
        states[0].0 = false;
        for &(p, letter, q) in edges {
            let letter = letters[letter as usize % letters.len()];
            let edges = &mut states[p as usize % n].1;
            if !is_deterministic || edges.iter().all(|edge| edge.0 != letter) {
                edges.push((letter, (q as usize % n) as u32));
            }
        }
        let mut out = Automaton::from_states(&states);
        out.renumber();
        out
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4_000))]
        #[test]
        fn agrees_with_epsilon_edges(
            edges in proptest::collection::vec(any::<(u8, u8, u8)>(), 1..9),
            first in proptest::collection::vec(any::<(u8, u8, u8)>(), 1..6),
            second in proptest::collection::vec(any::<(u8, u8, u8)>(), 1..6),
            finals in proptest::collection::vec(any::<bool>(), 9),
            trims in any::<bool>(),
            is_deterministic in any::<bool>(),
        ) {
            let (a, b) = (call(3), call(5));
            let mut caller = automaton(&edges, &finals[..4], &[a, b, 0, 1, call(4)], is_deterministic);
            let mut one = automaton(&first, &finals[4..7], &[2, 3, call(4), 0], is_deterministic);
            let mut other = automaton(&second, &finals[6..], &[5, 1, call(6), 2], is_deterministic);
            if trims {
                [&mut caller, &mut one, &mut other].into_iter().for_each(Automaton::trim);
            }
            let work = Budget::new(&Limits::default(), &Interrupt::default());
            let callees = [(a, &one), (b, &other)];
            let made = spliced(&caller, &callees, &work).expect("within bounds");
            let made = made.expect("of few states");
            prop_assert!(made.is_deterministic());
            let mut again = made.clone();
            again.renumber();
            prop_assert_eq!(&made, &again);
            if made.is_alive() {
                let is_marked = |edge: &(Letter, u32)| crate::automata::is_marker(edge.0);
                prop_assert!(!made.all_edges().iter().any(is_marked));
            }
            let mut made = minimize::minimize(made, &work).expect("within bounds");
            made.renumber();
            let expected = by_epsilon(&caller, &callees).reduce(1_000, &work).expect("within bounds");
            prop_assert_eq!(made, expected);
        }
    }
}
