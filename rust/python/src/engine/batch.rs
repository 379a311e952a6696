//! What is done with many matchers in one call, in threads; a row or a matcher that is asked for twice is refused.

use super::matcher::Matcher;
use super::rows::{mask_words, no_row, with_rows};
use crate::boundary::{Call, misuse, raise};
use crate::threads::Crew;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::MutexGuard;
use tokfold_core::budget::Interrupt;
use tokfold_core::engine::{self, Accept};
use tokfold_core::error::Error;

/// Matchers of a batch that one thread takes at once, at least.
const AT_ONCE: usize = 4;

/// Fills rows for many matchers, in their order where none are named; for each, whether it forbids
/// any token.
#[pyfunction]
pub(crate) fn fill_batch<'py>(
    py: Python<'py>,
    matchers: &Bound<'py, PyList>,
    bitmask: &Bound<'py, PyAny>,
    rows: Option<Vec<usize>>,
    threads: usize,
    classes: bool,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let filled = filled(py, matchers, bitmask, rows, threads, classes)?;
    let filled: Result<Vec<bool>, Error> = filled.into_iter().collect();
    Ok(PyArray1::from_vec(py, filled.map_err(|error| raise(py, &error))?))
}

/// [`fill_batch`] with a result for each row: whether it forbids any token, or the exception of that
/// row alone, which then means nothing.
#[pyfunction]
pub(crate) fn fill_batch_each<'py>(
    py: Python<'py>,
    matchers: &Bound<'py, PyList>,
    bitmask: &Bound<'py, PyAny>,
    rows: Option<Vec<usize>>,
    threads: usize,
    classes: bool,
) -> PyResult<Vec<Py<PyAny>>> {
    let filled = filled(py, matchers, bitmask, rows, threads, classes)?;
    let said = filled.into_iter().map(|row| match row {
        Ok(forbids) => Ok(forbids.into_pyobject(py)?.to_owned().into_any().unbind()),
        Err(error) => Ok(raise(py, &error).into_value(py).into_any()),
    });
    said.collect()
}

fn filled<'py>(
    py: Python<'py>,
    matchers: &Bound<'py, PyList>,
    bitmask: &Bound<'py, PyAny>,
    rows: Option<Vec<usize>>,
    threads: usize,
    classes: bool,
) -> PyResult<Vec<Result<bool, Error>>> {
    let crew = Crew::rouse(threads, matchers.len().div_ceil(AT_ONCE))?;
    let matchers = listed(matchers)?;
    let Some(first) = matchers.first() else { return Ok(Vec::new()) };
    let words = mask_words(py, &*first.get().own(py)?, classes)?;
    let mut guards = Vec::with_capacity(matchers.len());
    for matcher in &matchers {
        let guard = matcher.get().own(py)?;
        if mask_words(py, &guard, classes)? != words {
            return Err(misuse(match classes {
                false => "the matchers are for vocabularies of different sizes",
                true => "the matchers are for grammars with different classes",
            }));
        }
        guards.push(guard);
    }
    with_rows(bitmask, words, |all| {
        let mut work = match rows {
            None => in_order(&guards, all, words)?,
            Some(rows) => in_rows(&guards, &rows, all, words)?,
        };
        let fill = match classes {
            false => engine::Matcher::fill_many,
            true => engine::Matcher::fill_classes_many,
        };
        let call = Call::new(py);
        let fill = |work: &mut [(&engine::Matcher, &mut [i32])]| fill(work, &call.interrupt);
        let parts = py.detach(|| crew.map(&mut work, AT_ONCE, fill));
        match call.raised() {
            Some(raised) => Err(raised),
            None => Ok(parts.into_iter().flatten().collect()),
        }
    })
}

fn listed<'py>(matchers: &Bound<'py, PyList>) -> PyResult<Vec<Bound<'py, Matcher>>> {
    let mut out = Vec::with_capacity(matchers.len());
    for matcher in matchers {
        out.push(matcher.cast_into::<Matcher>()?);
    }
    Ok(out)
}

/// Matchers and the rows that they fill.
type Work<'a> = Vec<(&'a engine::Matcher, &'a mut [i32])>;

/// A matcher for each row, as long as there are any.
fn in_order<'a>(
    guards: &'a [MutexGuard<'_, engine::Matcher>],
    all: &'a mut [i32],
    words: usize,
) -> PyResult<Work<'a>> {
    let count = all.len() / words;
    if count < guards.len() {
        return Err(no_row(count, count));
    }
    Ok(guards.iter().map(|guard| &**guard).zip(all.chunks_exact_mut(words)).collect())
}

/// Matchers and the rows that are named.
fn in_rows<'a>(
    guards: &'a [MutexGuard<'_, engine::Matcher>],
    rows: &[usize],
    all: &'a mut [i32],
    words: usize,
) -> PyResult<Work<'a>> {
    let count = all.len() / words;
    let mut places: Vec<Option<&mut [i32]>> = all.chunks_exact_mut(words).map(Some).collect();
    let mut work = Vec::with_capacity(rows.len());
    for (guard, &row) in guards.iter().zip(rows) {
        match places.get_mut(row).map(Option::take) {
            Some(Some(place)) => work.push((&**guard, place)),
            Some(None) => return Err(misuse(format!("row {row} is asked for twice"))),
            None => return Err(no_row(count, row)),
        }
    }
    Ok(work)
}

/// What each of many matchers does, in threads, with the interpreter free; and the call, which knows
/// what Ctrl-C raised.
fn each<T: Send>(
    py: Python<'_>,
    crew: Crew,
    matchers: &[Bound<'_, Matcher>],
    act: impl Fn(usize, &mut engine::Matcher, &Interrupt) -> Result<T, Error> + Sync,
) -> PyResult<(Vec<Result<T, Error>>, Call)> {
    let call = Call::new(py);
    let mut guards = Vec::with_capacity(matchers.len());
    for matcher in matchers {
        guards.push(matcher.get().own(py)?);
    }
    let matchers = guards.iter_mut().map(|guard| &mut **guard);
    let mut all: Vec<(usize, &mut engine::Matcher)> = matchers.enumerate().collect();
    let act = |part: &mut [(usize, &mut engine::Matcher)]| {
        part.iter_mut().map(|(index, matcher)| act(*index, matcher, &call.interrupt)).collect()
    };
    let parts: Vec<Vec<_>> = py.detach(|| crew.map(&mut all, AT_ONCE, act));
    Ok((parts.into_iter().flatten().collect(), call))
}

/// Accepts a token in each of many matchers; for each, whether it was taken. Where one raises, no
/// matcher has moved.
#[pyfunction]
pub(crate) fn accept_batch<'py>(
    py: Python<'py>,
    matchers: &Bound<'py, PyList>,
    tokens: Vec<u32>,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let crew = Crew::rouse(threads, matchers.len().div_ceil(AT_ONCE))?;
    let matchers = listed(matchers)?;
    if tokens.len() != matchers.len() {
        return Err(misuse("as many tokens as matchers are needed"));
    }
    let (accepted, call) = each(py, crew, &matchers, |index, matcher, interrupt| {
        matcher.accept_token(tokens[index], interrupt)
    })?;
    if let Some(error) = accepted.iter().find_map(|accept| accept.as_ref().err()) {
        let error = call.raised().unwrap_or_else(|| raise(py, error));
        let alone = Crew::rouse(1, 1)?;
        each(py, alone, &matchers, |index, matcher, _| match accepted[index] {
            // Whatever ended the call, this is to be done.
            Ok(Accept::Taken) => matcher.rollback(1, &Interrupt::default()),
            _ => Ok(()),
        })?;
        return Err(error);
    }
    let taken = accepted.iter().map(|accept| matches!(accept, Ok(Accept::Taken)));
    Ok(PyArray1::from_iter(py, taken))
}

/// Takes back steps of each of many matchers. Where one has fewer, no matcher has moved.
#[pyfunction]
pub(crate) fn rollback_batch(
    py: Python<'_>,
    matchers: &Bound<'_, PyList>,
    counts: Vec<usize>,
    threads: usize,
) -> PyResult<()> {
    let crew = Crew::rouse(threads, matchers.len().div_ceil(AT_ONCE))?;
    let matchers = listed(matchers)?;
    if counts.len() != matchers.len() {
        return Err(misuse("as many counts as matchers are needed"));
    }
    for (matcher, &count) in matchers.iter().zip(&counts) {
        let steps = matcher.get().steps_of(py)?;
        if count > steps {
            return Err(raise(
                py,
                &Error::State(format!("{count} steps cannot be taken back: {steps} were accepted")),
            ));
        }
    }
    let (done, _) = each(py, crew, &matchers, |index, matcher, _| {
        matcher.rollback(counts[index], &Interrupt::default())
    })?;
    done.into_iter().try_for_each(|done| done.map_err(|error| raise(py, &error)))
}
