//! One minimal automaton that grows: equal languages of stacks are the same state of it.
//!
//! A state reads a stack downwards, one state of the parser after the other, until it is decided.
//! Which states of the parser can follow is known, so moves are given for these alone and two
//! states are only compared over them.

use super::minimal::{one_sided, partition};
use super::moves::{ACCEPT, NewMoves, REJECT, StackMoves, StackState};
use hashbrown::{HashMap, HashSet};
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use tokfold_core::error::{Error, Result};

/// The automaton: never two states that are equal.
///
/// Equal means: the same stacks are accepted. A state from which all stacks are accepted is
/// [`ACCEPT`], one from which none is [`REJECT`].
#[derive(Clone, Debug)]
pub struct StackAutomaton {
    moves: Vec<StackMoves>,
    known: HashMap<StackMoves, StackState, FxBuildHasher>,
    cycles: HashMap<Box<[NewMoves]>, StackState, FxBuildHasher>,
    /// Whether a cycle can be reached from a state; only such are equal to states of a new one.
    leads: Vec<bool>,
    max_states: usize,
}

impl StackAutomaton {
    /// An automaton with the two states that are decided.
    pub fn new(max_states: usize) -> Self {
        let none: StackMoves = Arc::from([]);
        Self {
            moves: vec![none.clone(), none],
            known: HashMap::default(),
            cycles: HashMap::default(),
            leads: vec![false; 2],
            max_states,
        }
    }

    /// The number of states.
    pub fn len(&self) -> usize {
        self.moves.len()
    }

    /// Whether there is none but the two that are decided.
    pub fn is_empty(&self) -> bool {
        self.len() == 2
    }

    /// The moves of a state, ascending.
    pub fn moves(&self, state: StackState) -> &[(u32, StackState)] {
        &self.moves[state as usize]
    }

    /// The state after reading one state of the parser; a stack that cannot be is refused.
    #[inline]
    pub fn step(&self, state: StackState, read: u32) -> StackState {
        if state <= ACCEPT {
            return state;
        }
        let moves = &self.moves[state as usize];
        match moves.binary_search_by_key(&read, |&(read, _)| read) {
            Ok(at) => moves[at].1,
            Err(_) => REJECT,
        }
    }

    /// The state after reading a part of a stack, its upper end first.
    pub fn run(&self, state: StackState, stack: impl IntoIterator<Item = u32>) -> StackState {
        stack.into_iter().fold(state, |state, read| self.step(state, read))
    }

    /// The state with these moves, ascending, all of them to states that are there already.
    ///
    /// # Errors
    /// [`Error::Limit`] at the bound on states.
    pub fn add(&mut self, moves: Vec<(u32, StackState)>) -> Result<StackState> {
        if let Some(&(_, only)) = moves.first()
            && only <= ACCEPT
            && moves.iter().all(|&(_, to)| to == only)
        {
            return Ok(only);
        }
        let moves: StackMoves = moves.into();
        if let Some(&state) = self.known.get(&moves) {
            return Ok(state);
        }
        let leads = moves.iter().any(|&(_, to)| self.leads[to as usize]);
        let state = self.make(moves.clone(), leads)?;
        self.known.insert(moves, state);
        Ok(state)
    }

    fn make(&mut self, moves: StackMoves, leads: bool) -> Result<StackState> {
        self.check_room(1)?;
        self.moves.push(moves);
        self.leads.push(leads);
        Ok(self.moves.len() as StackState - 1)
    }

    fn check_room(&self, more: usize) -> Result<()> {
        if self.moves.len() + more > self.max_states {
            return Err(Error::Limit {
                limit: "stack_states",
                value: self.max_states as u64,
                message: "the languages of stacks need more states: the grammar is too large for \
                          a mask store"
                    .into(),
            });
        }
        Ok(())
    }

    /// The states with these moves, which lead to one another: from each of them the others can be
    /// reached.
    ///
    /// # Errors
    /// As [`StackAutomaton::add`].
    pub(super) fn add_cycle(&mut self, moves: &[NewMoves]) -> Result<Vec<StackState>> {
        let mut found = one_sided(moves);
        let rows: Vec<(usize, NewMoves)> = (0..moves.len())
            .filter(|&i| found[i].is_none())
            .map(|i| {
                let resolved = moves[i].iter().map(|&(read, to)| match usize::try_from(-1 - to) {
                    Ok(new) => (read, found[new].map_or(to, i64::from)),
                    Err(_) => (read, to),
                });
                (i, resolved.collect())
            })
            .collect();
        if !rows.is_empty() {
            self.merge(&rows, &mut found)?;
        }
        Ok(found.into_iter().map(|state| state.unwrap_or(REJECT)).collect())
    }

    /// Each new state's equal among those that are there; new ones are added.
    fn merge(
        &mut self,
        rows: &[(usize, NewMoves)],
        found: &mut [Option<StackState>],
    ) -> Result<()> {
        let outward = rows.iter().flat_map(|(_, row)| row.iter().map(|&(_, to)| to));
        let old = self.leading_from(outward.filter_map(|to| StackState::try_from(to).ok()));
        // New states by negative names, as in their moves; old ones by their own.
        let mut every: Vec<(i64, NewMoves)> =
            rows.iter().map(|(i, row)| (-1 - *i as i64, row.clone())).collect();
        every.extend(old.iter().map(|&state| {
            let row = self.moves(state).iter().map(|&(read, to)| (read, i64::from(to)));
            (i64::from(state), row.collect())
        }));
        let blocks = partition(&every);
        let block_of: HashMap<i64, u32, FxBuildHasher> =
            every.iter().zip(&blocks).map(|((name, _), &block)| (*name, block)).collect();
        let old_of: HashMap<u32, StackState, FxBuildHasher> =
            old.iter().map(|&state| (block_of[&i64::from(state)], state)).collect();
        // Equal to an old state, so are all that can be reached from it: all of a cycle or none.
        let mut members: Vec<(u32, usize)> = Vec::new();
        let mut place_of: HashMap<u32, usize, FxBuildHasher> = HashMap::default();
        for (at, (i, _)) in rows.iter().enumerate() {
            let block = blocks[at];
            match old_of.get(&block) {
                Some(&state) => found[*i] = Some(state),
                None if place_of.contains_key(&block) => {}
                None => {
                    place_of.insert(block, members.len());
                    members.push((block, at));
                }
            }
        }
        // A cycle is taken up whole or not at all.
        self.check_room(members.len())?;
        let cycle = Cycle { rows, blocks: &blocks, block_of: &block_of, members: &members };
        let mut numbers: HashMap<u32, StackState, FxBuildHasher> = HashMap::default();
        let mut made = Vec::new();
        for &(block, at) in &members {
            let written = cycle.written(block, at, &place_of, found);
            let state = match self.cycles.get(&written) {
                Some(&state) => state,
                None => {
                    let state = self.make(Arc::from([]), true)?;
                    self.cycles.insert(written, state);
                    made.push((state, at));
                    state
                }
            };
            numbers.insert(block, state);
        }
        for (state, at) in made {
            let row = rows[at].1.iter().map(|&(read, to)| {
                let new = usize::try_from(-1 - to).ok();
                let known = new.map_or(Some(to as StackState), |new| found[new]);
                (read, known.unwrap_or_else(|| numbers[&block_of[&to]]))
            });
            let row: StackMoves = row.collect();
            // What leads into the cycle from outside may be equal to one of its states.
            self.known.insert(row.clone(), state);
            self.moves[state as usize] = row;
        }
        for (at, (i, _)) in rows.iter().enumerate() {
            if found[*i].is_none() {
                found[*i] = Some(numbers[&blocks[at]]);
            }
        }
        Ok(())
    }

    /// The states that can be reached and from which a cycle can, ascending.
    fn leading_from(&self, states: impl Iterator<Item = StackState>) -> Vec<StackState> {
        let mut seen: HashSet<StackState, FxBuildHasher> = HashSet::default();
        let mut waiting: Vec<StackState> = states.collect();
        while let Some(state) = waiting.pop() {
            if self.leads[state as usize] && seen.insert(state) {
                waiting.extend(self.moves(state).iter().map(|&(_, to)| to));
            }
        }
        let mut seen: Vec<StackState> = seen.into_iter().collect();
        seen.sort_unstable();
        seen
    }
}

/// New states that lead to one another, one of each block.
struct Cycle<'a> {
    rows: &'a [(usize, NewMoves)],
    blocks: &'a [u32],
    block_of: &'a HashMap<i64, u32, FxBuildHasher>,
    members: &'a [(u32, usize)],
}

impl Cycle<'_> {
    /// The cycle written down from one of its states: equal for equal states.
    fn written(
        &self,
        block: u32,
        at: usize,
        place_of: &HashMap<u32, usize, FxBuildHasher>,
        found: &[Option<StackState>],
    ) -> Box<[NewMoves]> {
        let mut order: HashMap<u32, i64, FxBuildHasher> = HashMap::default();
        order.insert(block, 0);
        let mut waiting = vec![at];
        let mut written = Vec::new();
        while let Some(&at) = waiting.get(written.len()) {
            let row = self.rows[at].1.iter().map(|&(read, to)| {
                let Ok(new) = usize::try_from(-1 - to) else { return (read, to) };
                if let Some(state) = found[new] {
                    return (read, i64::from(state));
                }
                let inner = self.block_of[&to];
                let next = order.len() as i64;
                let place = *order.entry(inner).or_insert(next);
                if place == next {
                    waiting.push(self.members[place_of[&inner]].1);
                }
                (read, -1 - place)
            });
            let row: NewMoves = row.collect();
            debug_assert_eq!(order.get(&self.blocks[at]), Some(&(written.len() as i64)));
            written.push(row);
        }
        written.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_cycles_are_one_state_whenever_they_come() {
        let mut automaton = StackAutomaton::new(100);
        let (accept, reject) = (i64::from(ACCEPT), i64::from(REJECT));
        let made = automaton
            .add_cycle(&[vec![(5, -2), (6, accept)], vec![(5, -1), (6, reject)]])
            .expect("small");
        let (one, two) = (made[0], made[1]);
        // The same, written with each state twice.
        let again = automaton.add_cycle(&[
            vec![(5, -2), (6, accept)],
            vec![(5, -3), (6, reject)],
            vec![(5, -4), (6, accept)],
            vec![(5, -1), (6, reject)],
        ]);
        assert_eq!(again.expect("small"), [one, two, one, two]);
        // A cycle that is equal to where it leads.
        let led = automaton
            .add_cycle(&[vec![(5, -2), (6, accept)], vec![(5, i64::from(one)), (6, reject)]]);
        assert_eq!(led.expect("small"), [one, two]);
        // Cycles that can only end one way are decided.
        let decided = automaton.add_cycle(&[vec![(5, -2), (6, accept)], vec![(5, -1)]]);
        assert_eq!(decided.expect("small"), [ACCEPT, ACCEPT]);
        assert_eq!(automaton.len(), 4);
        // What leads into a cycle and is equal to one of its states.
        assert_eq!(automaton.add(vec![(5, two), (6, ACCEPT)]), Ok(one));
        assert_eq!(automaton.len(), 4);
    }

    #[test]
    fn the_bound_on_states_is_an_error() {
        let mut automaton = StackAutomaton::new(3);
        let one = automaton.add(vec![(1, ACCEPT), (2, REJECT)]).expect("one more");
        assert_eq!(automaton.add(vec![(1, ACCEPT), (2, REJECT)]), Ok(one));
        let error = automaton.add(vec![(1, one)]).expect_err("full");
        assert!(matches!(error, Error::Limit { limit: "stack_states", .. }));
    }
}
