//! `tokfold._core.Engine` and `tokfold._core.Matcher`.

use crate::boundary::{Reporter, detached, misuse, raise};
use crate::grammar::{Grammar, limits};
use crate::vocabulary::Vocabulary;
use numpy::{PyReadonlyArray1, PyReadwriteArray1};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use tokfold_core::classes::TokenClasses;
use tokfold_core::engine::{self, Accept, EngineLimits, StopRule};
use tokfold_core::error::Error;
use tokfold_core::network::{Network, NetworkOptions};

/// Limits from a mapping of field names, those of the grammar left out.
fn engine_limits(fields: Option<&Bound<'_, PyDict>>) -> PyResult<EngineLimits> {
    let mut limits = EngineLimits::default();
    let Some(fields) = fields else { return Ok(limits) };
    for (name, value) in fields {
        let name: String = name.extract()?;
        match name.as_str() {
            "max_mask_work" => limits.max_mask_work = value.extract()?,
            "max_accept_work" => limits.max_accept_work = value.extract()?,
            "max_memo_bytes" => limits.max_memo_bytes = value.extract()?,
            "max_row_bytes" => limits.max_row_bytes = value.extract()?,
            "max_matcher_bytes" => limits.max_matcher_bytes = value.extract()?,
            _ => return Err(misuse(format!("no limit is named {name:?}"))),
        }
    }
    Ok(limits)
}

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Engine {
    inner: Arc<engine::Engine>,
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (grammar, vocabulary, *, skip_lookahead, limits=None, engine_limits=None, progress=None))]
    fn new(
        py: Python<'_>,
        grammar: &Grammar,
        vocabulary: &Vocabulary,
        skip_lookahead: bool,
        limits: Option<&Bound<'_, PyDict>>,
        engine_limits: Option<&Bound<'_, PyDict>>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let options = NetworkOptions {
            skip_lookahead,
            limits: self::limits(limits)?,
            ..NetworkOptions::default()
        };
        let limits = self::engine_limits(engine_limits)?;
        let reporter = Reporter::new(progress);
        let network = py.detach(|| Network::new(&grammar.inner, &options));
        let network = Arc::new(reporter.finish(py, network)?);
        let inner =
            engine::Engine::new(network, vocabulary.inner.clone(), vocabulary.trie.clone(), limits);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Takes up classes: masks then walk over their representatives.
    fn take_classes(
        &self,
        py: Python<'_>,
        class_of: PyReadonlyArray1<'_, i32>,
        representatives: PyReadonlyArray1<'_, u32>,
        num_stop_classes: usize,
    ) -> PyResult<()> {
        let classes = TokenClasses {
            class_of: class_of.as_slice()?.to_vec(),
            representatives: representatives.as_slice()?.to_vec(),
            num_stop_classes,
        };
        detached(py, || self.inner.take_classes(&classes))
    }

    #[getter]
    fn has_classes(&self) -> bool {
        self.inner.has_classes()
    }

    #[getter]
    fn fingerprint(&self) -> u64 {
        self.inner.fingerprint()
    }

    #[getter]
    fn network_states(&self) -> usize {
        self.inner.network().len()
    }

    #[getter]
    fn bytes_held(&self) -> usize {
        self.inner.bytes()
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.inner.counters();
        let out = PyDict::new(py);
        out.set_item("masks", counters.masks)?;
        out.set_item("sets_visited", counters.visits)?;
        out.set_item("memo_hits", counters.hits)?;
        out.set_item("memo_misses", counters.misses)?;
        out.set_item("trie_nodes", counters.trie_nodes)?;
        Ok(out)
    }
}

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
    fn own(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, engine::Matcher>> {
        match self.inner.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::WouldBlock) => Err(raise(
                py,
                &Error::State(
                    "another thread is using this matcher: give each thread a fork of its own"
                        .into(),
                ),
            )),
            Err(TryLockError::Poisoned(_)) => Err(raise(
                py,
                &Error::State(
                    "this matcher failed inside and cannot be used any more: make a new one"
                        .into(),
                ),
            )),
        }
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

    /// Fills a contiguous row with exactly the words of the vocabulary.
    fn fill(&self, py: Python<'_>, mut row: PyReadwriteArray1<'_, i32>) -> PyResult<bool> {
        let matcher = self.own(py)?;
        let row = row.as_slice_mut().map_err(|_| misuse("the row must be contiguous"))?;
        let words = matcher.engine().vocabulary().len().div_ceil(32);
        if row.len() != words {
            return Err(misuse(format!("a row has {words} words; got {}", row.len())));
        }
        py.detach(|| matcher.fill(row)).map_err(|error| raise(py, &error))
    }

    fn accept_token(&self, py: Python<'_>, id: u32) -> PyResult<bool> {
        let mut matcher = self.own(py)?;
        let accept = matcher.accept_token(id).map_err(|error| raise(py, &error))?;
        Ok(accept == Accept::Taken)
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

    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.own(py)?.text()))
    }

    fn state(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        let matcher = self.own(py)?;
        Ok(py.detach(|| matcher.state()))
    }

    fn restore(&self, py: Python<'_>, state: Vec<u32>) -> PyResult<()> {
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        py.detach(|| matcher.restore(&state)).map_err(|error| raise(py, &error))
    }

    /// Makes the work under way, and all that begins while it is on, end with an error.
    fn cancel(&self, on: bool) {
        self.cancel.store(on, Ordering::Relaxed);
    }

    fn bytes_held(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.own(py)?.bytes())
    }

    /// Items of the state, stack sets made, work units spent.
    fn counters(&self, py: Python<'_>) -> PyResult<(usize, usize, u64)> {
        Ok(self.own(py)?.counters())
    }
}
