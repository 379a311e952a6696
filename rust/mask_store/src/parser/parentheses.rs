//! Open parentheses as the stack has them: where a newline is dropped, as one state to decide it.
//!
//! Where each production closes what it opens, the parentheses that are open in a text are those
//! on its stack. So whether an indenting post-lexer drops a newline is a question to the stack, and
//! rows with newlines can be compared exactly as other rows.

use super::canonical::StackAutomaton;
use super::moves::StackState;
use super::paths::StackPaths;
use super::solve::{Computations, NextComputation, Nexts, SolvedStates, solve};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use tokfold_core::error::Result;

/// State inside, state outside, the top, how many parentheses must be open.
type ChoiceKey = (StackState, StackState, u32, i32);

/// Chooses between states of the minimal automaton by the parentheses open on the stack.
#[derive(Clone, Debug)]
pub(super) struct ParenthesesChoice {
    /// For each state of the parser how many parentheses the terminal that led to it opens.
    opens: Vec<i32>,
    start: u32,
    numbers: HashMap<ChoiceKey, u32, FxBuildHasher>,
    keys: Vec<ChoiceKey>,
    found: SolvedStates,
}

impl ParenthesesChoice {
    pub(super) fn new(opens: Vec<i32>, start: u32) -> Self {
        let (numbers, keys, found) = (HashMap::default(), Vec::new(), HashMap::default());
        Self { opens, start, numbers, keys, found }
    }

    /// A state that accepts as `inside` if at least `needed` parentheses are open, else as
    /// `outside`; both are for what is below `top`, which counts itself.
    pub(super) fn choose(
        &mut self,
        automaton: &mut StackAutomaton,
        paths: &StackPaths,
        inside: StackState,
        outside: StackState,
        top: u32,
        needed: i32,
    ) -> Result<StackState> {
        let mut found = std::mem::take(&mut self.found);
        let next = self.begin(inside, outside, top, needed);
        let result = match u32::try_from(next) {
            Err(_) => Ok((-1 - next) as StackState),
            Ok(computation) => {
                let solved = if found.contains_key(&computation) {
                    Ok(())
                } else {
                    let mut work = Chooser { choice: self, paths };
                    solve(automaton, computation, &mut work, &mut found)
                };
                solved.map(|()| found[&computation])
            }
        };
        self.found = found;
        result
    }

    /// The computation that is left when `top` has been counted; below 0: a state.
    fn begin(
        &mut self,
        inside: StackState,
        outside: StackState,
        top: u32,
        needed: i32,
    ) -> NextComputation {
        // A production that closes has opened further down: what closes adds to what is needed.
        let needed = needed - self.opens[top as usize];
        if inside == outside || needed <= 0 {
            return -1 - NextComputation::from(inside);
        }
        if top == self.start {
            return -1 - NextComputation::from(outside);
        }
        let key = (inside, outside, top, needed);
        let next = self.keys.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.keys.push(key);
        }
        NextComputation::from(number)
    }
}

struct Chooser<'a> {
    choice: &'a mut ParenthesesChoice,
    paths: &'a StackPaths,
}

impl Computations for Chooser<'_> {
    fn moves(&mut self, automaton: &StackAutomaton, computation: u32) -> Result<Nexts> {
        let (inside, outside, top, needed) = self.choice.keys[computation as usize];
        let moves = self.paths.below[top as usize].iter().map(|&state| {
            let inside = automaton.step(inside, state);
            let outside = automaton.step(outside, state);
            (state, self.choice.begin(inside, outside, state, needed))
        });
        Ok(moves.collect())
    }

    fn leaf(&self, _: &StackAutomaton, leaf: NextComputation) -> StackState {
        (-1 - leaf) as StackState
    }
}
