//! What is done with many matchers in one call, in threads.

use super::matcher::Matcher;
use super::rows::{mask_words, no_row, with_rows};
use crate::boundary::{misuse, raise};
use crate::threads;
use numpy::PyArray1;
use pyo3::prelude::*;
use tokfold_core::engine::{self, Accept};
use tokfold_core::error::Error;

/// Matchers of a batch that one thread takes at once.
const AT_ONCE: usize = 8;

/// Fills rows for many matchers; for each, whether it forbids any token.
#[pyfunction]
pub(crate) fn fill_batch<'py>(
    py: Python<'py>,
    matchers: Vec<PyRef<'py, Matcher>>,
    bitmask: &Bound<'py, PyAny>,
    rows: Vec<usize>,
    threads: usize,
    classes: bool,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    let Some(first) = matchers.first() else { return Ok(PyArray1::from_vec(py, Vec::new())) };
    let words = mask_words(py, &*first.own(py)?, classes)?;
    let mut guards = Vec::with_capacity(matchers.len());
    for matcher in &matchers {
        let guard = matcher.own(py)?;
        if mask_words(py, &guard, classes)? != words {
            return Err(misuse(match classes {
                false => "the matchers are for vocabularies of different sizes",
                true => "the matchers are for grammars with different classes",
            }));
        }
        guards.push(guard);
    }
    with_rows(bitmask, words, |all| {
        let count = all.len() / words;
        let mut places: Vec<Option<&mut [i32]>> = all.chunks_exact_mut(words).map(Some).collect();
        let mut work = Vec::with_capacity(rows.len());
        for (guard, &row) in guards.iter().zip(&rows) {
            match places.get_mut(row).map(Option::take) {
                Some(Some(place)) => work.push((&**guard, place)),
                Some(None) => return Err(misuse(format!("row {row} is asked for twice"))),
                None => return Err(no_row(count, row)),
            }
        }
        let fill = match classes {
            false => engine::Matcher::fill_many,
            true => engine::Matcher::fill_classes_many,
        };
        let results = py.detach(|| threads::map(threads, &mut work, AT_ONCE, fill))?;
        let said = results.into_iter().map(|said| said.map_err(|error| raise(py, &error)));
        Ok(PyArray1::from_vec(py, said.collect::<PyResult<_>>()?))
    })
}

/// What each of many matchers does, in threads, with the interpreter free.
fn each<T: Send>(
    py: Python<'_>,
    matchers: &[PyRef<'_, Matcher>],
    threads: usize,
    act: impl Fn(usize, &mut engine::Matcher) -> Result<T, Error> + Sync,
) -> PyResult<Vec<Result<T, Error>>> {
    let mut guards = Vec::with_capacity(matchers.len());
    for matcher in matchers {
        guards.push(matcher.own(py)?);
    }
    let matchers = guards.iter_mut().map(|guard| &mut **guard);
    let mut all: Vec<(usize, &mut engine::Matcher)> = matchers.enumerate().collect();
    let act = |part: &mut [(usize, &mut engine::Matcher)]| {
        part.iter_mut().map(|(index, matcher)| act(*index, matcher)).collect()
    };
    py.detach(|| threads::map(threads, &mut all, AT_ONCE, act))
}

/// Accepts a token in each of many matchers; for each, whether it was taken. Where one raises, no
/// matcher has moved.
#[pyfunction]
pub(crate) fn accept_batch<'py>(
    py: Python<'py>,
    matchers: Vec<PyRef<'py, Matcher>>,
    tokens: Vec<u32>,
    threads: usize,
) -> PyResult<Bound<'py, PyArray1<bool>>> {
    if tokens.len() != matchers.len() {
        return Err(misuse("as many tokens as matchers are needed"));
    }
    let accepted =
        each(py, &matchers, threads, |index, matcher| matcher.accept_token(tokens[index]))?;
    if let Some(error) = accepted.iter().find_map(|accept| accept.as_ref().err()) {
        let error = raise(py, error);
        each(py, &matchers, 1, |index, matcher| match accepted[index] {
            Ok(Accept::Taken) => matcher.rollback(1),
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
    matchers: Vec<PyRef<'_, Matcher>>,
    counts: Vec<usize>,
    threads: usize,
) -> PyResult<()> {
    if counts.len() != matchers.len() {
        return Err(misuse("as many counts as matchers are needed"));
    }
    for (matcher, &count) in matchers.iter().zip(&counts) {
        let steps = matcher.own(py)?.steps();
        if count > steps {
            return Err(raise(
                py,
                &Error::State(format!("{count} steps cannot be taken back: {steps} were accepted")),
            ));
        }
    }
    let done = each(py, &matchers, threads, |index, matcher| matcher.rollback(counts[index]))?;
    done.into_iter().try_for_each(|done| done.map_err(|error| raise(py, &error)))
}
