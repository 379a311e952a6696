//! `tokfold._core.StackParser`: which stacks a table can have, and what terminals do to them.

use super::raise_store;
use crate::boundary::misuse;
use pyo3::prelude::*;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokfold_core::error::Error;
use tokfold_mask_store::parser::{
    ANY_TOP, NOTHING_READ, ParseTable, Production, StackLanguages, StackLetter, TableParts,
};

/// A row of pairs for each state.
type Rows = Vec<Vec<(u32, u32)>>;
/// A terminal (-1: nothing is read) with the tops that it can be read on.
type Letter = (i64, Option<Vec<u32>>);

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct StackParser {
    inner: Mutex<StackLanguages>,
    states: usize,
    end: u32,
}

impl StackParser {
    fn lock(&self) -> MutexGuard<'_, StackLanguages> {
        // A panic in between would leave it as it was: steps only add what is known.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is never waited for while the interpreter is held, nor held while errors are made.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut StackLanguages) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut self.lock())).map_err(|error| raise_store(py, &error))
    }

    /// A copy for an engine of its own.
    pub(super) fn copied(&self, py: Python<'_>) -> StackLanguages {
        py.detach(|| self.lock().clone())
    }

    fn check(&self, terminal: u32, states: &[u32]) -> PyResult<()> {
        if terminal != NOTHING_READ && terminal > self.end {
            return Err(misuse(format!("there is no terminal {terminal}")));
        }
        match states.iter().find(|&&state| state as usize >= self.states) {
            Some(state) => Err(misuse(format!("the parser has no state {state}"))),
            None => Ok(()),
        }
    }
}

#[pymethods]
impl StackParser {
    #[new]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        shifts: Rows,
        reductions: Rows,
        gotos: Rows,
        productions: Vec<(u32, Vec<(bool, u32)>)>,
        terminals: u32,
        rules: u32,
        start: u32,
        end_state: u32,
        opens: Vec<i32>,
        max_states: usize,
    ) -> PyResult<Self> {
        if opens.len() != shifts.len() {
            return Err(misuse("parentheses are said for each state of the parser"));
        }
        let productions =
            productions.into_iter().map(|(rule, symbols)| Production { rule, symbols }).collect();
        let parts = TableParts {
            shifts,
            reductions,
            gotos,
            productions,
            terminals,
            rules,
            start,
            end_state,
        };
        let states = parts.shifts.len();
        let end = parts.terminals.saturating_sub(1);
        let made =
            py.detach(|| Ok(StackLanguages::new(ParseTable::new(parts)?, opens, max_states)));
        let parser = made.map_err(|error: Error| raise_store(py, &error))?;
        Ok(Self { inner: Mutex::new(parser), states, end })
    }

    fn below(&self, py: Python<'_>) -> PyResult<Vec<Vec<u32>>> {
        self.with(py, |parser| Ok(parser.paths.below.clone()))
    }

    fn after(&self, py: Python<'_>) -> PyResult<Vec<Vec<u32>>> {
        self.with(py, |parser| Ok(parser.paths.after.clone()))
    }

    fn is_reduced(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |parser| Ok(parser.paths.is_reduced))
    }

    /// The stack after a terminal, the start first; None where the table refuses it.
    fn shift(&self, py: Python<'_>, stack: Vec<u32>, terminal: u32) -> PyResult<Option<Vec<u32>>> {
        self.check(terminal, &stack)?;
        self.with(py, |parser| {
            let found = parser.table.shift(stack.iter().rev().copied(), terminal)?;
            Ok(found.map(|(taken, pushed)| [&stack[..stack.len() - taken], &pushed].concat()))
        })
    }

    /// The number of a row of letters.
    fn reading(&self, py: Python<'_>, letters: Vec<Letter>) -> PyResult<u32> {
        let mut row = Vec::with_capacity(letters.len());
        for (terminal, tops) in letters {
            let terminal = u32::try_from(terminal).unwrap_or(NOTHING_READ);
            self.check(terminal, tops.as_deref().unwrap_or(&[]))?;
            row.push((terminal, tops));
        }
        self.with(py, |parser| {
            let made: Vec<StackLetter> = row
                .into_iter()
                .map(|(terminal, tops)| {
                    let tops = tops.map_or(ANY_TOP, |tops| parser.tops(tops.into_iter()));
                    StackLetter { terminal, tops }
                })
                .collect();
            parser.reading(&made)
        })
    }

    /// What decides below each of some tops.
    fn states(&self, py: Python<'_>, reading: u32, tops: Vec<u32>) -> PyResult<Vec<u32>> {
        self.check(NOTHING_READ, &tops)?;
        let found = self.with(py, |parser| {
            if reading as usize >= parser.readings() {
                return Ok(None);
            }
            let states = tops.iter().map(|&top| parser.state(reading, top));
            states.collect::<Result<Vec<u32>, Error>>().map(Some)
        })?;
        found.ok_or_else(|| misuse(format!("there is no reading {reading}")))
    }

    /// What decides below each of some tops between several readings: the first one, but from so
    /// many open parentheses on the one that stands with that number, in ascending order.
    fn chosen(
        &self,
        py: Python<'_>,
        regions: Vec<(i32, u32)>,
        tops: Vec<u32>,
    ) -> PyResult<Vec<u32>> {
        self.check(NOTHING_READ, &tops)?;
        let found = self.with(py, |parser| {
            let known = parser.readings();
            if regions.is_empty() || regions.iter().any(|&(_, r)| r as usize >= known) {
                return Ok(None);
            }
            let mut out = Vec::with_capacity(tops.len());
            for &top in &tops {
                let mut state = parser.state(regions[0].1, top)?;
                for &(needed, reading) in &regions[1..] {
                    let inside = parser.state(reading, top)?;
                    state = parser.choose(inside, state, top, needed)?;
                }
                out.push(state);
            }
            Ok(Some(out))
        })?;
        found.ok_or_else(|| misuse("there are no such readings"))
    }

    /// The number of states of the minimal automaton.
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |parser| Ok(parser.automaton.len()))
    }

    /// The moves of a state of the minimal automaton.
    fn moves(&self, py: Python<'_>, state: u32) -> PyResult<Vec<(u32, u32)>> {
        let found = self.with(py, |parser| {
            let known = (state as usize) < parser.automaton.len();
            Ok(known.then(|| parser.automaton.moves(state).to_vec()))
        })?;
        found.ok_or_else(|| misuse(format!("the automaton has no state {state}")))
    }

    /// A state that decides by the parentheses that are open.
    fn choose(
        &self,
        py: Python<'_>,
        inside: u32,
        outside: u32,
        top: u32,
        needed: i32,
    ) -> PyResult<u32> {
        self.check(NOTHING_READ, &[top])?;
        let found = self.with(py, |parser| {
            if inside.max(outside) as usize >= parser.automaton.len() {
                return Ok(None);
            }
            parser.choose(inside, outside, top, needed).map(Some)
        })?;
        found.ok_or_else(|| misuse("the automaton has no such states"))
    }
}
