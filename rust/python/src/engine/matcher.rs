//! `tokfold._core.Matcher`.

use super::Engine;
use super::rows::{mask_words, no_row, with_rows};
use crate::boundary::{detached, misuse, raise};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use tokfold_core::engine::{self, Accept, StopRule};
use tokfold_core::error::Error;

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Matcher {
    inner: Mutex<engine::Matcher>,
    cancel: Arc<AtomicBool>,
}

impl Matcher {
    fn wrap(inner: engine::Matcher) -> Self {
        let cancel = inner.cancel_switch();
        Self { inner: Mutex::new(inner), cancel }
    }

    /// The state, unless another thread is using it.
    pub(super) fn own(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, engine::Matcher>> {
        match self.inner.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::WouldBlock) => Err(raise(
                py,
                &Error::State(
                    "this matcher is in use, by another thread or twice in one batch: \
                     give each a fork of its own"
                        .into(),
                ),
            )),
            Err(TryLockError::Poisoned(_)) => Err(raise(
                py,
                &Error::State(
                    "this matcher failed inside and cannot be used any more: make a new one".into(),
                ),
            )),
        }
    }

    /// Fills a row of a bitmask, of tokens or of classes.
    fn fill_row(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
        classes: bool,
    ) -> PyResult<bool> {
        let matcher = self.own(py)?;
        let matcher = &*matcher;
        let words = mask_words(py, matcher, classes)?;
        with_rows(bitmask, words, |rows| {
            let count = rows.len() / words;
            let place = rows.chunks_exact_mut(words).nth(row);
            let place = place.ok_or_else(|| no_row(count, row))?;
            // What is there takes no longer than to hand over the interpreter and take it back.
            let now = if classes { Ok(None) } else { matcher.fill_now(place) };
            let filled = match now {
                Ok(None) if classes => py.detach(|| matcher.fill_classes(place)),
                Ok(None) => py.detach(|| matcher.fill(place)),
                Ok(Some(filled)) => Ok(filled),
                Err(error) => Err(error),
            };
            filled.map_err(|error| raise(py, &error))
        })
    }
}

#[pymethods]
impl Matcher {
    #[new]
    #[pyo3(signature = (engine, *, stop_ids=None, when_complete=false))]
    fn new(
        py: Python<'_>,
        engine: &Engine,
        stop_ids: Option<Vec<u32>>,
        when_complete: bool,
    ) -> PyResult<Self> {
        let inner =
            engine::Matcher::new(engine.inner.clone(), StopRule { stop_ids, when_complete });
        inner.map(Self::wrap).map_err(|error| raise(py, &error))
    }

    /// Fills a row of a bitmask, which is int32, contiguous and has the words of the vocabulary.
    fn fill(&self, py: Python<'_>, bitmask: &Bound<'_, PyAny>, row: usize) -> PyResult<bool> {
        self.fill_row(py, bitmask, row, false)
    }

    /// Fills a row of a bitmask of classes.
    fn fill_classes(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<bool> {
        self.fill_row(py, bitmask, row, true)
    }

    fn accept_token(&self, py: Python<'_>, id: u32) -> PyResult<bool> {
        let mut matcher = self.own(py)?;
        let accept = matcher.accept_token(id).map_err(|error| raise(py, &error))?;
        Ok(accept == Accept::Taken)
    }

    /// Fills a row for the state and one for each node of a tree of draft tokens.
    fn fill_draft(
        &self,
        py: Python<'_>,
        parents: Vec<i64>,
        tokens: Vec<u32>,
        bitmask: &Bound<'_, PyAny>,
        classes: bool,
    ) -> PyResult<Vec<bool>> {
        let matcher = self.own(py)?;
        if parents.len() != tokens.len() {
            return Err(misuse("as many parents as tokens are needed"));
        }
        let words = mask_words(py, &matcher, classes)?;
        with_rows(bitmask, words, |rows| {
            let (count, needed) = (rows.len() / words, tokens.len() + 1);
            let Some(rows) = rows.get_mut(..needed * words) else {
                return Err(misuse(format!(
                    "the bitmask has {count} rows, and the draft needs {needed}: one for the \
                     state and one for each token"
                )));
            };
            let matcher = &*matcher;
            py.detach(|| matcher.fill_draft(&parents, &tokens, classes, rows))
                .map_err(|error| raise(py, &error))
        })
    }

    fn accept_prefix(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<usize> {
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        py.detach(|| matcher.accept_prefix(&tokens)).map_err(|error| raise(py, &error))
    }

    fn accept_bytes(&self, py: Python<'_>, data: &[u8]) -> PyResult<bool> {
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        let accept = py.detach(|| matcher.accept_bytes(data)).map_err(|error| raise(py, &error))?;
        Ok(accept == Accept::Taken)
    }

    fn rollback(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        self.own(py)?.rollback(count).map_err(|error| raise(py, &error))
    }

    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        self.own(py)?.reset();
        Ok(())
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::wrap(self.own(py)?.fork()))
    }

    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.own(py)?.is_accepting())
    }

    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.own(py)?.is_terminated())
    }

    fn steps(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.own(py)?.steps())
    }

    fn stop_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.own(py)?.stop_ids().to_vec())
    }

    fn forced_bytes<'py>(&self, py: Python<'py>, limit: usize) -> PyResult<Bound<'py, PyBytes>> {
        let matcher = self.own(py)?;
        let forced =
            py.detach(|| matcher.forced_bytes(limit)).map_err(|error| raise(py, &error))?;
        Ok(PyBytes::new(py, &forced))
    }

    /// How many of some bytes could be read next, and the bytes that may come there.
    fn readable<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
    ) -> PyResult<(usize, Bound<'py, PyBytes>)> {
        let matcher = self.own(py)?;
        let (read, expected) =
            py.detach(|| matcher.readable(data)).map_err(|error| raise(py, &error))?;
        Ok((read, PyBytes::new(py, &expected)))
    }

    /// The bytes that may come next.
    fn expected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.own(py)?.expected()))
    }

    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.own(py)?.text()))
    }

    /// The state as little-endian numbers.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let guard = self.own(py)?;
        let matcher = &*guard;
        let state = detached(py, || matcher.state())?;
        let state: Vec<u8> = state.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(PyBytes::new(py, &state))
    }

    /// The state in another engine, whose free text calls other tags.
    fn state_for<'py>(&self, py: Python<'py>, other: &Engine) -> PyResult<Bound<'py, PyBytes>> {
        let guard = self.own(py)?;
        let matcher = &*guard;
        let state = detached(py, || matcher.state_for(&other.inner))?;
        let state: Vec<u8> = state.into_iter().flat_map(u32::to_le_bytes).collect();
        Ok(PyBytes::new(py, &state))
    }

    fn restore(&self, py: Python<'_>, state: &[u8]) -> PyResult<()> {
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        let numbers: Vec<u32> =
            state.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect();
        py.detach(|| matcher.restore(&numbers)).map_err(|error| raise(py, &error))
    }

    /// Makes the work under way, and all that begins while it is on, end with an error.
    fn cancel(&self, on: bool) {
        self.cancel.store(on, Ordering::Relaxed);
    }

    fn bytes_held(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.own(py)?.bytes())
    }

    /// What the state holds and what it took to come here.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.own(py)?.counters();
        let out = PyDict::new(py);
        out.set_item("items", counters.items)?;
        out.set_item("earley_sets", counters.sets)?;
        out.set_item("completions", counters.completions)?;
        out.set_item("work", counters.work)?;
        Ok(out)
    }
}
