//! The parser of a mask store: which stacks a table can have, and what rows of terminals do to
//! them.
//!
//! Design: docs/design/mask-stores.md, "The parser".
//!
//! A stack is a row of states of the table, the start at its bottom. Whether a row of terminals can
//! be read is a regular language of stacks; all such languages that are asked for are states of one
//! minimal automaton ([`canonical`]), so rows are never legal, always legal or legal together
//! exactly when their states say so.
//!
//! - `table`: the LALR(1) table; `paths`: which stacks it can have
//! - `readings`: on which stacks a row can be read; `solve`: computations that wait for more of a stack; `parentheses`: open
//!   ones, as one state
//! - `canonical`, `minimal`: the minimal automaton; `moves`: its states

mod canonical;
mod minimal;
mod moves;
mod parentheses;
mod paths;
mod readings;
mod solve;
mod table;

pub use canonical::StackAutomaton;
pub use moves::{ACCEPT, REJECT, StackState};
pub use paths::StackPaths;
pub use readings::{ANY_TOP, EMPTY_READING, NOTHING_READ, ReadingId, StackLetter, Tops};
pub use table::{Outcome, ParseTable, Production, TABLE_LOOP, TableParts};

use super::stack::Stack;
use parentheses::ParenthesesChoice;
use readings::{Ground, KnownReadings, TopSets};
use tokfold_core::error::Result;

/// Languages of stacks for rows of letters.
///
/// A *reading* is a row of letters, known by a number; rows that the automaton cannot tell apart
/// after their first letter have the same. [`StackLanguages::state`] is the state of the automaton that
/// reads what is below a given top. Equal states accept the same stacks.
#[derive(Clone, Debug)]
pub struct StackLanguages {
    /// Lark's table.
    pub table: ParseTable,
    /// The stacks that it can have.
    pub paths: StackPaths,
    /// The minimal automaton.
    pub automaton: StackAutomaton,
    tops: TopSets,
    readings: KnownReadings,
    parentheses: ParenthesesChoice,
}

impl StackLanguages {
    /// The languages of a table's stacks; `opens` says for each state of the parser how many
    /// parentheses the terminal that led to it opens (below 0: closes).
    pub fn new(table: ParseTable, opens: Vec<i32>, max_states: usize) -> Self {
        let paths = StackPaths::new(&table);
        let tops = TopSets::new(table.size());
        let parentheses = ParenthesesChoice::new(opens, table.start());
        let automaton = StackAutomaton::new(max_states);
        Self { table, paths, automaton, tops, readings: KnownReadings::default(), parentheses }
    }

    /// A set of states of the parser.
    pub fn tops(&mut self, members: impl Iterator<Item = u32>) -> Tops {
        self.tops.of(members)
    }

    /// The states that are in both sets.
    pub fn common_tops(&mut self, one: Tops, two: Tops) -> Tops {
        self.tops.and(one, two)
    }

    /// The states of a set, ascending; `None` for all of them.
    pub fn members(&self, tops: Tops) -> Option<Vec<u32>> {
        self.tops.members(tops)
    }

    /// Whether a set has a state.
    #[inline]
    pub fn is_top(&self, tops: Tops, state: u32) -> bool {
        self.tops.has(tops, state)
    }

    /// The number of a row of letters.
    ///
    /// # Errors
    /// [`tokfold_core::error::Error::Limit`]: too many states, or a table that reduces without end.
    pub fn reading(&mut self, letters: &[StackLetter]) -> Result<ReadingId> {
        let mut reading = EMPTY_READING;
        for &letter in letters.iter().rev() {
            reading = self.prepend(letter, reading)?;
        }
        Ok(reading)
    }

    /// The reading of a letter and then a reading.
    ///
    /// # Errors
    /// As [`StackLanguages::reading`].
    pub fn prepend(&mut self, letter: StackLetter, rest: ReadingId) -> Result<ReadingId> {
        let (mut ground, readings) = self.ground();
        readings.prepend(&mut ground, letter, rest)
    }

    /// What decides, below a state on top of a stack, whether a reading can be read.
    ///
    /// # Errors
    /// As [`StackLanguages::reading`].
    pub fn state(&mut self, reading: ReadingId, top: u32) -> Result<StackState> {
        let (mut ground, readings) = self.ground();
        readings.state(&mut ground, reading, top)
    }

    /// The stack after some letters; `None` where the table refuses one. The end of the text leaves
    /// the stack as it is.
    ///
    /// # Errors
    /// [`tokfold_core::error::Error::Limit`]: a table that reduces without end.
    pub fn read(&self, stack: &Stack, letters: &[StackLetter]) -> Result<Option<Stack>> {
        let mut stack = stack.clone();
        for letter in letters {
            if !self.tops.has(letter.tops, stack.top()) {
                return Ok(None);
            }
            if letter.terminal == NOTHING_READ {
                continue;
            }
            let found = self.table.shift(stack.states(), letter.terminal)?;
            let Some((taken, pushed)) = found else { return Ok(None) };
            if letter.terminal == self.table.end() {
                continue;
            }
            // What was pushed stands on a state that was there: never is all taken off.
            let mut pushed = pushed.into_iter();
            let base = match stack.below(taken) {
                Some(base) => Some(base),
                None => pushed.next().map(Stack::new),
            };
            let Some(base) = base else { return Ok(None) };
            stack = pushed.fold(base, |stack, state| stack.with(state));
        }
        Ok(Some(stack))
    }

    /// The number of readings so far.
    pub fn readings(&self) -> usize {
        self.readings.len()
    }

    /// Makes every state that a reading begins with one that refuses; returns how many did not.
    #[cfg(test)]
    pub(super) fn refuse_all(&mut self) -> usize {
        self.readings
            .starts_mut()
            .map(|state| usize::from(std::mem::replace(state, REJECT) != REJECT))
            .sum()
    }

    fn ground(&mut self) -> (Ground<'_>, &mut KnownReadings) {
        let Self { table, paths, automaton, tops, readings, .. } = self;
        (Ground { table, paths, tops, automaton }, readings)
    }

    /// A state that accepts as `inside` if at least `needed` parentheses are open on the stack,
    /// else as `outside`; both are for what is below `top`, which counts itself.
    ///
    /// # Errors
    /// As [`StackLanguages::reading`].
    pub fn choose(
        &mut self,
        inside: StackState,
        outside: StackState,
        top: u32,
        needed: i32,
    ) -> Result<StackState> {
        let Self { automaton, paths, parentheses, .. } = self;
        parentheses.choose(automaton, paths, inside, outside, top, needed)
    }
}
