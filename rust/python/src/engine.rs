//! `tokfold._core.Engine` and `tokfold._core.Matcher`.

use crate::boundary::{Deadline, Reporter, detached, misuse, raise};
use crate::grammar::{Grammar, limits};
use crate::pool::Pool;
use crate::threads;
use crate::vocabulary::Vocabulary;
use numpy::ndarray::Dimension;
use numpy::{PyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};
use tokfold_core::classes::TokenClasses;
use tokfold_core::engine::{self, Accept, EngineLimits, Representation, StopRule};
use tokfold_core::error::Error;
use tokfold_core::network::{Network, NetworkOptions, WIDE};
use tokfold_core::work::Work;

/// Between two looks for Ctrl-C: each waits for the interpreter.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

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
            "max_call_milliseconds" => limits.max_call_milliseconds = value.extract()?,
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
    #[pyo3(signature = (grammar, vocabulary, *, skip_lookahead, counters=true, limits=None, engine_limits=None, pool=None, representation="auto"))]
    // The arguments are those of the Python signature, which names them all.
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        grammar: &Grammar,
        vocabulary: &Vocabulary,
        skip_lookahead: bool,
        counters: bool,
        limits: Option<&Bound<'_, PyDict>>,
        engine_limits: Option<&Bound<'_, PyDict>>,
        pool: Option<&Pool>,
        representation: &str,
    ) -> PyResult<Self> {
        let representation = match representation {
            "auto" => Representation::Automatic,
            "stack" => Representation::Stacks,
            "chart" => Representation::Chart,
            other => return Err(misuse(format!("no representation is named {other:?}"))),
        };
        if pool.is_some_and(|pool| !Arc::ptr_eq(&pool.vocabulary, &vocabulary.inner)) {
            return Err(misuse("the pool is of another vocabulary"));
        }
        let pool = pool.map(|pool| pool.inner.clone());
        let options = NetworkOptions {
            skip_lookahead,
            counters,
            share_wide: Some(WIDE),
            charts: true,
            limits: self::limits(limits)?,
            ..NetworkOptions::default()
        };
        let limits = self::engine_limits(engine_limits)?;
        let mut reporter = Reporter::new(None);
        let mut deadline = Deadline::new(Some(limits.max_call_milliseconds));
        let network = py.detach(|| {
            let mut go_on = || deadline.is_ahead() && reporter.report(0, 1);
            let tokens = &vocabulary.inner;
            let over_ids = grammar.inner.with_tokens(|| tokens.whole_ranges(), tokens.len())?;
            let grammar = over_ids.as_ref().unwrap_or(&grammar.inner);
            let work = Work::new(&options.limits, &mut go_on);
            Network::make(grammar, &options, &work)
        });
        let network = network.map_err(|error| deadline.explain(error));
        let network = Arc::new(reporter.finish(py, network)?);
        let (tries, vocabulary) = (vocabulary.tries.clone(), vocabulary.inner.clone());
        let inner = engine::Engine::new(network, vocabulary, tries, pool, limits);
        let inner = inner.remembering(representation).map_err(|error| raise(py, &error))?;
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

    /// Makes the answers that are likely to cost most, ahead of time; returns how many.
    fn warm(&self, py: Python<'_>, count: usize, switch: &Switch) -> PyResult<usize> {
        let on = switch.on.clone();
        let check = || if on.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) };
        // Signals are looked at between two answers, when no lock is held: whoever waits for the
        // interpreter may hold one.
        let mut reporter = Reporter::new(None);
        let mut asked = Instant::now();
        let mut go_on = || {
            let is_time = asked.elapsed() > BETWEEN_SIGNALS;
            if is_time {
                asked = Instant::now();
            }
            !is_time || reporter.report(0, 1)
        };
        let made = py.detach(|| self.inner.warm(count, &check, &mut go_on));
        reporter.finish(py, made)
    }

    /// Forgets every answer: for measuring what masks cost at first sight.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| self.inner.forget());
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
    fn network_bytes(&self) -> usize {
        self.inner.network().bytes()
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
        out.set_item("memo_shared", counters.shared)?;
        out.set_item("trie_nodes", counters.trie_nodes)?;
        Ok(out)
    }
}

/// A switch that stops work in another thread.
#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Switch {
    on: Arc<AtomicBool>,
}

#[pymethods]
impl Switch {
    #[new]
    fn new() -> Self {
        Self { on: Arc::default() }
    }

    fn set(&self) {
        self.on.store(true, Ordering::Relaxed);
    }
}

/// Matchers of a batch that one thread takes at once.
const AT_ONCE: usize = 8;

/// Calls `work` with all words of a bitmask.
fn with_rows<T>(
    bitmask: &Bound<'_, PyAny>,
    words: usize,
    work: impl FnOnce(&mut [i32]) -> PyResult<T>,
) -> PyResult<T> {
    fn run<D: Dimension, T>(
        array: &Bound<'_, PyArray<i32, D>>,
        words: usize,
        work: impl FnOnce(&mut [i32]) -> PyResult<T>,
    ) -> PyResult<T> {
        let wide = array.shape().last().copied().unwrap_or(0);
        if wide != words {
            return Err(misuse(format!(
                "a row of the bitmask must have {words} words of int32, not {wide}: \
                 allocate_bitmask(batch, len(vocabulary)) makes one that fits"
            )));
        }
        // A slice of numpy's may also run along columns.
        if !array.is_c_contiguous() {
            return Err(misuse(
                "the bitmask must be C-contiguous: allocate_bitmask() makes one that is",
            ));
        }
        let mut rows = array
            .try_readwrite()
            .map_err(|error| misuse(format!("the bitmask cannot be written: {error}")))?;
        work(rows.as_slice_mut().map_err(|_| {
            misuse("the bitmask must be contiguous: allocate_bitmask() makes one that is")
        })?)
    }
    if let Ok(array) = bitmask.cast::<PyArray2<i32>>() {
        return run(array, words, work);
    }
    if let Ok(array) = bitmask.cast::<PyArray1<i32>>() {
        return run(array, words, work);
    }
    Err(PyTypeError::new_err(
        "the bitmask must be a numpy array of dtype int32 with one or two dimensions",
    ))
}

/// Words of a class mask.
fn class_words(py: Python<'_>, matcher: &engine::Matcher) -> PyResult<usize> {
    let none =
        || Error::State("there are no classes yet: compile with classes=\"now\", or wait".into());
    match matcher.engine().class_words() {
        None => Err(raise(py, &none())),
        Some(0) => {
            Err(raise(py, &Error::State("the grammar takes no token of this vocabulary".into())))
        }
        Some(words) => Ok(words),
    }
}

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
    let width = |matcher: &engine::Matcher| match classes {
        false => Ok(matcher.engine().vocabulary().len().div_ceil(32)),
        true => class_words(py, matcher),
    };
    let words = width(&*first.own(py)?)?;
    let mut guards = Vec::with_capacity(matchers.len());
    for matcher in &matchers {
        let guard = matcher.own(py)?;
        if width(&guard)? != words {
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
                None => {
                    return Err(misuse(format!(
                        "the bitmask has {count} rows, not one of index {row}"
                    )));
                }
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
        let matcher = self.own(py)?;
        let words = matcher.engine().vocabulary().len().div_ceil(32);
        with_rows(bitmask, words, |rows| {
            let count = rows.len() / words;
            let Some(row) = rows.chunks_exact_mut(words).nth(row) else {
                return Err(misuse(format!(
                    "the bitmask has {count} rows, not one of index {row}"
                )));
            };
            let matcher = &*matcher;
            py.detach(|| matcher.fill(row)).map_err(|error| raise(py, &error))
        })
    }

    /// Fills a row of a bitmask of classes.
    fn fill_classes(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
    ) -> PyResult<bool> {
        let matcher = self.own(py)?;
        let words = class_words(py, &matcher)?;
        with_rows(bitmask, words, |rows| {
            let count = rows.len() / words;
            let Some(row) = rows.chunks_exact_mut(words).nth(row) else {
                return Err(misuse(format!(
                    "the bitmask has {count} rows, not one of index {row}"
                )));
            };
            let matcher = &*matcher;
            py.detach(|| matcher.fill_classes(row)).map_err(|error| raise(py, &error))
        })
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
        let words = match classes {
            true => class_words(py, &matcher)?,
            false => matcher.engine().vocabulary().len().div_ceil(32),
        };
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
