//! On which stacks a row of terminals can be read, as states of the minimal automaton.
//!
//! Reading a terminal from a stack of which the top is known goes on without choice until a
//! reduction takes off more than is known; then it waits for further states of the stack. What
//! waits is finite for one terminal: how many states to skip, which rule to go on with, what was
//! read last. What the rest of the row does is one state of the minimal automaton for each state
//! that the terminal can leave on top. So each terminal is worked out once for each distinct rest,
//! and many rows have equal rests.

use super::canonical::StackAutomaton;
use super::moves::{ACCEPT, REJECT, StackState};
use super::paths::StackPaths;
use super::solve::{Computations, NextComputation, Nexts, SolvedStates, solve};
use super::table::{Outcome, ParseTable};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use tokfold_core::error::{Error, Result};

/// The number of a reading; equal ones do the same behind their first letter.
pub type ReadingId = u32;
/// The reading of no letter at all.
pub const EMPTY_READING: ReadingId = 0;

/// In place of a terminal: the letter leaves the stack as it is. It comes last: before another
/// letter it is part of that one's tops.
pub const NOTHING_READ: u32 = u32::MAX;

/// A set of states of the parser; 0 stands for all of them.
pub type Tops = u32;
/// All states of the parser.
pub const ANY_TOP: Tops = 0;

/// A terminal that is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackLetter {
    /// The terminal, or [`NOTHING_READ`].
    pub terminal: u32,
    /// It can be read only with one of these states on top. So the contextual lexer is said: a
    /// scanner finds it only in some states of the parser.
    pub tops: Tops,
}

const REFUSED: NextComputation = -1;

const UNKNOWN: StackState = StackState::MAX;

/// Bound on readings times states of the parser; four bytes each.
const MAX_CELLS: usize = 1 << 26;

/// What waits while one terminal is read; grows as stacks are asked for.
///
/// A result is [`REFUSED`], a waiting computation (0 or more), or below that a leaf: the terminal
/// was read, `leaves[-2 - result]` is the known part of the stack, its top first.
#[derive(Clone, Debug, Default)]
struct StackMachine {
    numbers: HashMap<Waiting, u32, FxBuildHasher>,
    waiting: Vec<Waiting>,
    moves: Vec<Option<Nexts>>,
    leaves: Vec<Box<[u32]>>,
    leaf_numbers: HashMap<Box<[u32]>, u32, FxBuildHasher>,
    starts: HashMap<u32, NextComputation, FxBuildHasher>,
    laid_bare: HashMap<(u32, u32), NextComputation, FxBuildHasher>,
}

/// A state read last, states to skip below it, and the rule to go on with then.
type Waiting = (u32, u32, u32);

/// A letter and what is read after it, told by the states for the tops that the letter leaves.
#[derive(Clone, Debug)]
struct LetterReading {
    letter: StackLetter,
    /// By top, ascending.
    leaves: Box<[(u32, StackState)]>,
    found: SolvedStates,
    /// For each state of the parser on top; [`UNKNOWN`] until it is asked for.
    starts: Box<[StackState]>,
}

/// Readings as they are asked for.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownReadings {
    machines: HashMap<u32, StackMachine, FxBuildHasher>,
    /// The first is that of no letter and never looked into.
    readings: Vec<LetterReading>,
    numbers: HashMap<(StackLetter, Box<[StackState]>), ReadingId, FxBuildHasher>,
    prepended: HashMap<(StackLetter, ReadingId), ReadingId, FxBuildHasher>,
}

/// What readings are made in.
pub(super) struct Ground<'a> {
    pub(super) table: &'a ParseTable,
    pub(super) paths: &'a StackPaths,
    pub(super) tops: &'a TopSets,
    pub(super) automaton: &'a mut StackAutomaton,
}

impl KnownReadings {
    /// The reading of a letter and then a reading.
    pub(super) fn prepend(
        &mut self,
        ground: &mut Ground<'_>,
        letter: StackLetter,
        rest: ReadingId,
    ) -> Result<ReadingId> {
        if let Some(&known) = self.prepended.get(&(letter, rest)) {
            return Ok(known);
        }
        let tops: &[u32] = match letter.terminal {
            NOTHING_READ => &[],
            terminal => &ground.paths.after[terminal as usize],
        };
        let mut leaves = Vec::with_capacity(tops.len());
        for &top in tops {
            leaves.push((top, self.state(ground, rest, top)?));
        }
        let states: Box<[StackState]> = leaves.iter().map(|&(_, state)| state).collect();
        let size = ground.table.size();
        if (self.readings.len() + 1).saturating_mul(size) > MAX_CELLS {
            return Err(Error::Limit {
                limit: "stack_readings",
                value: MAX_CELLS as u64,
                message: "rows of terminals times states of the parser are more: the grammar is \
                          too large for a mask store"
                    .into(),
            });
        }
        let next = self.readings.len() as ReadingId + 1;
        let id = *self.numbers.entry((letter, states)).or_insert(next);
        if id == next {
            self.readings.push(LetterReading {
                letter,
                leaves: leaves.into(),
                found: HashMap::default(),
                starts: vec![UNKNOWN; size].into(),
            });
        }
        self.prepended.insert((letter, rest), id);
        Ok(id)
    }

    /// The number of readings, that of no letter included.
    pub(super) fn len(&self) -> usize {
        self.readings.len() + 1
    }

    /// What decides, below a state on top of a stack, whether a reading can be read.
    pub(super) fn state(
        &mut self,
        ground: &mut Ground<'_>,
        reading: ReadingId,
        top: u32,
    ) -> Result<StackState> {
        if reading == EMPTY_READING {
            return Ok(ACCEPT);
        }
        let known = &self.readings[reading as usize - 1];
        let state = known.starts[top as usize];
        if state != UNKNOWN {
            return Ok(state);
        }
        let letter = known.letter;
        let state = if !ground.tops.has(letter.tops, top) {
            REJECT
        } else if letter.terminal == NOTHING_READ {
            ACCEPT
        } else {
            self.begun(ground, reading, letter.terminal, top)?
        };
        self.readings[reading as usize - 1].starts[top as usize] = state;
        Ok(state)
    }

    fn begun(
        &mut self,
        ground: &mut Ground<'_>,
        reading: ReadingId,
        terminal: u32,
        top: u32,
    ) -> Result<StackState> {
        let machine = self.machines.entry(terminal).or_default();
        let result = match machine.starts.get(&top) {
            Some(&known) => known,
            None => {
                let outcome = ground.table.read(vec![top], terminal)?;
                let made = machine.result(outcome, top);
                machine.starts.insert(top, made);
                made
            }
        };
        let LetterReading { leaves, found, .. } = &mut self.readings[reading as usize - 1];
        let mut work =
            TerminalReader { machine, table: ground.table, paths: ground.paths, terminal, leaves };
        let Ok(computation) = u32::try_from(result) else {
            return Ok(work.leaf(ground.automaton, result));
        };
        if !found.contains_key(&computation) {
            solve(ground.automaton, computation, &mut work, found)?;
        }
        Ok(found[&computation])
    }

    #[cfg(test)]
    pub(super) fn starts_mut(&mut self) -> impl Iterator<Item = &mut StackState> {
        let all = self.readings.iter_mut().flat_map(|reading| reading.starts.iter_mut());
        all.filter(|state| **state != UNKNOWN)
    }
}

impl StackMachine {
    fn result(&mut self, outcome: Outcome, last: u32) -> NextComputation {
        match outcome {
            Outcome::Refused => REFUSED,
            Outcome::Below { skipped, rule } => {
                NextComputation::from(self.number((last, skipped, rule)))
            }
            Outcome::Read(mut known) => {
                known.reverse();
                let known = known.into_boxed_slice();
                let next = self.leaves.len() as u32;
                let number = *self.leaf_numbers.entry(known.clone()).or_insert(next);
                if number == next {
                    self.leaves.push(known);
                }
                -2 - NextComputation::from(number)
            }
        }
    }

    fn number(&mut self, waiting: Waiting) -> u32 {
        let next = self.waiting.len() as u32;
        let number = *self.numbers.entry(waiting).or_insert(next);
        if number == next {
            self.waiting.push(waiting);
            self.moves.push(None);
        }
        number
    }
}

/// One terminal on its way down the stack, before one reading of the rest.
struct TerminalReader<'a> {
    machine: &'a mut StackMachine,
    table: &'a ParseTable,
    paths: &'a StackPaths,
    terminal: u32,
    leaves: &'a [(u32, StackState)],
}

impl Computations for TerminalReader<'_> {
    fn moves(&mut self, _: &StackAutomaton, computation: u32) -> Result<Nexts> {
        if let Some(known) = &self.machine.moves[computation as usize] {
            return Ok(known.clone());
        }
        let (last, skipped, rule) = self.machine.waiting[computation as usize];
        let mut moves = Vec::new();
        for &state in &self.paths.below[last as usize] {
            let next = if skipped > 0 {
                NextComputation::from(self.machine.number((state, skipped - 1, rule)))
            } else if let Some(&known) = self.machine.laid_bare.get(&(state, rule)) {
                known
            } else {
                let outcome = self.table.go_on(state, rule, self.terminal)?;
                let made = self.machine.result(outcome, state);
                self.machine.laid_bare.insert((state, rule), made);
                made
            };
            moves.push((state, next));
        }
        let moves: Nexts = moves.into();
        self.machine.moves[computation as usize] = Some(moves.clone());
        Ok(moves)
    }

    fn leaf(&self, automaton: &StackAutomaton, leaf: NextComputation) -> StackState {
        let Ok(number) = usize::try_from(-2 - leaf) else { return REJECT };
        let known = &self.machine.leaves[number];
        let state = match self.leaves.binary_search_by_key(&known[0], |&(top, _)| top) {
            Ok(at) => self.leaves[at].1,
            Err(_) => REJECT,
        };
        automaton.run(state, known[1..].iter().copied())
    }
}

/// Sets of states of the parser, each kept once.
#[derive(Clone, Debug)]
pub(super) struct TopSets {
    sets: Vec<Box<[u64]>>,
    known: HashMap<Box<[u64]>, Tops, FxBuildHasher>,
    words: usize,
}

impl TopSets {
    pub(super) fn new(states: usize) -> Self {
        // The set of all is never looked into.
        Self { sets: vec![Box::default()], known: HashMap::default(), words: states.div_ceil(64) }
    }

    pub(super) fn of(&mut self, members: impl Iterator<Item = u32>) -> Tops {
        let mut set = vec![0u64; self.words].into_boxed_slice();
        for member in members {
            set[member as usize / 64] |= 1 << (member % 64);
        }
        self.intern(set)
    }

    fn intern(&mut self, set: Box<[u64]>) -> Tops {
        let next = self.sets.len() as Tops;
        let id = *self.known.entry(set.clone()).or_insert(next);
        if id == next {
            self.sets.push(set);
        }
        id
    }

    /// The states of a set, ascending; `None` for all.
    pub(super) fn members(&self, tops: Tops) -> Option<Vec<u32>> {
        let states = (0..self.words as u32 * 64).filter(|&state| self.has(tops, state));
        (tops != ANY_TOP).then(|| states.collect())
    }

    #[inline]
    pub(super) fn has(&self, tops: Tops, state: u32) -> bool {
        tops == ANY_TOP || self.sets[tops as usize][state as usize / 64] >> (state % 64) & 1 == 1
    }

    pub(super) fn and(&mut self, one: Tops, two: Tops) -> Tops {
        match (one, two) {
            (ANY_TOP, other) | (other, ANY_TOP) => other,
            (one, two) if one == two => one,
            _ => {
                let (one, two) = (&self.sets[one as usize], &self.sets[two as usize]);
                let both = one.iter().zip(two).map(|(&a, &b)| a & b).collect();
                self.intern(both)
            }
        }
    }
}
