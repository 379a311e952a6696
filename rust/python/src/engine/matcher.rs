//! `tokfold._core.Matcher`. `own` refuses one that another thread uses, or that an error inside the core left.

use super::Engine;
use super::rows::{mask_words, no_row, with_rows};
use crate::boundary::{Call, Heavy, Interrupt, MANY_BYTES, OffGil, misuse, raise};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use tokfold_core::engine::{self, Accept, Look, StopRule};
use tokfold_core::error::Error;

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Matcher {
    inner: OffGil<Mutex<engine::Matcher>>,
    cancel: Arc<AtomicBool>,
}

impl Matcher {
    fn wrap(inner: engine::Matcher) -> Self {
        let cancel = inner.cancel_switch();
        Self { inner: OffGil::new(Mutex::new(inner)), cancel }
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

    /// The number of steps that can be taken back.
    pub(super) fn steps_of(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |look| look.steps())
    }

    /// What `look` says of the state: at once where that is possible, else detached.
    fn look<T: Send>(
        &self,
        py: Python<'_>,
        look: impl Fn(&Look<'_>) -> T + Send + Sync,
    ) -> PyResult<T> {
        let guard = self.own(py)?;
        let matcher = &*guard;
        match matcher.now(&look) {
            Some(seen) => Ok(seen),
            None => Call::new(py).run(py, |interrupt| matcher.look(interrupt, &look)),
        }
    }

    /// Fills a row of a bitmask.
    fn fill_row(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
        of: RowOf,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<bool> {
        refuse_ended(py, interrupt)?;
        let matcher = self.own(py)?;
        let matcher = &*matcher;
        let words = mask_words(py, matcher, matches!(of, RowOf::Classes(_)))?;
        with_rows(bitmask, words, |rows| {
            let count = rows.len() / words;
            let place = rows.chunks_exact_mut(words).nth(row);
            let place = place.ok_or_else(|| no_row(count, row))?;
            // What is there takes no longer than to hand over the interpreter and take it back.
            let is_quick = matches!(of, RowOf::Tokens(None));
            let now = if is_quick { matcher.fill_now(place) } else { Ok(None) };
            match now {
                Ok(Some(filled)) => Ok(filled),
                Err(error) => Err(raise(py, &error)),
                Ok(None) => Call::with(py, interrupt, None).run(py, |interrupt| match of {
                    RowOf::Tokens(None) => matcher.fill(place, interrupt),
                    RowOf::Tokens(Some(left)) => {
                        matcher.fill_with_tokens_left(left, place, interrupt)
                    }
                    RowOf::TokensNearEnd => matcher.fill_near_end(place, interrupt),
                    RowOf::Classes(None) => matcher.fill_classes(place, interrupt),
                    RowOf::Classes(Some(left)) => {
                        matcher.fill_classes_with_tokens_left(left, place, interrupt)
                    }
                }),
            }
        })
    }
}

/// What a row is of, and how many tokens are left to the text.
#[derive(Clone, Copy)]
enum RowOf {
    Tokens(Option<u32>),
    /// Where the budget of the text may forbid one.
    TokensNearEnd,
    Classes(Option<u32>),
}

/// Raises what a call within this interrupt would end with: a call that is done at once never looks.
#[inline]
fn refuse_ended(py: Python<'_>, interrupt: Option<&Interrupt>) -> PyResult<()> {
    interrupt.map_or(Ok(()), |interrupt| interrupt.check(py))
}

fn le_bytes(numbers: Vec<u32>) -> Vec<u8> {
    numbers.into_iter().flat_map(u32::to_le_bytes).collect()
}

impl Heavy for Mutex<engine::Matcher> {
    fn is_heavy(&self) -> bool {
        let matcher = self.try_lock();
        matcher.is_ok_and(|matcher| matcher.now(|look| look.bytes()).is_none_or(|n| n > MANY_BYTES))
    }
}

#[pymethods]
impl Matcher {
    #[new]
    #[pyo3(signature = (engine, *, stop_ids=None, when_complete=false, interrupt=None))]
    fn new(
        py: Python<'_>,
        engine: &Engine,
        stop_ids: Option<Vec<u32>>,
        when_complete: bool,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Self> {
        let engine = engine.inner.clone();
        let stops = StopRule { stop_ids, when_complete };
        // A chart has room for all states of the network.
        let inner = match engine.begins_on_a_chart() {
            true => {
                let call = Call::with(py, interrupt, None);
                call.run(py, |interrupt| engine::Matcher::new_within(engine, stops, interrupt))
            }
            false => engine::Matcher::new(engine, stops).map_err(|error| raise(py, &error)),
        };
        inner.map(Self::wrap)
    }

    /// Fills a row of a bitmask, which is int32, contiguous and has the words of the vocabulary.
    #[pyo3(signature = (bitmask, row, interrupt=None, tokens_left=None))]
    fn fill(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
        interrupt: Option<&Interrupt>,
        tokens_left: Option<u32>,
    ) -> PyResult<bool> {
        self.fill_row(py, bitmask, row, RowOf::Tokens(tokens_left), interrupt)
    }

    /// Fills a row of a bitmask where the budget may forbid a token; else false, and the row is as it was.
    #[pyo3(signature = (bitmask, row, interrupt=None))]
    fn fill_near_end(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<bool> {
        self.fill_row(py, bitmask, row, RowOf::TokensNearEnd, interrupt)
    }

    /// Fills a row of a bitmask of classes.
    #[pyo3(signature = (bitmask, row, interrupt=None, tokens_left=None))]
    fn fill_classes(
        &self,
        py: Python<'_>,
        bitmask: &Bound<'_, PyAny>,
        row: usize,
        interrupt: Option<&Interrupt>,
        tokens_left: Option<u32>,
    ) -> PyResult<bool> {
        self.fill_row(py, bitmask, row, RowOf::Classes(tokens_left), interrupt)
    }

    #[pyo3(signature = (id, interrupt=None))]
    fn accept_token(
        &self,
        py: Python<'_>,
        id: u32,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<bool> {
        refuse_ended(py, interrupt)?;
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        // As a rule it takes less than to hand over the interpreter and take it back.
        let accept = match matcher.accept_token_now(id) {
            Some(accept) => accept.map_err(|error| raise(py, &error))?,
            None => {
                let call = Call::with(py, interrupt, None);
                call.run(py, |interrupt| matcher.accept_token(id, interrupt))?
            }
        };
        Ok(accept == Accept::Taken)
    }

    /// Fills a row for the state and one for each node of a tree of draft tokens.
    #[pyo3(signature = (parents, tokens, bitmask, classes, interrupt=None))]
    fn fill_draft(
        &self,
        py: Python<'_>,
        parents: Vec<i64>,
        tokens: Vec<u32>,
        bitmask: &Bound<'_, PyAny>,
        classes: bool,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Vec<bool>> {
        refuse_ended(py, interrupt)?;
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
            Call::with(py, interrupt, None).run(py, |interrupt| {
                matcher.fill_draft(&parents, &tokens, classes, rows, interrupt)
            })
        })
    }

    #[pyo3(signature = (tokens, interrupt=None))]
    fn accept_prefix(
        &self,
        py: Python<'_>,
        tokens: Vec<u32>,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<usize> {
        refuse_ended(py, interrupt)?;
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        let call = Call::with(py, interrupt, None);
        call.run(py, |interrupt| matcher.accept_prefix(&tokens, interrupt))
    }

    #[pyo3(signature = (data, interrupt=None))]
    fn accept_bytes(
        &self,
        py: Python<'_>,
        data: &[u8],
        interrupt: Option<&Interrupt>,
    ) -> PyResult<bool> {
        refuse_ended(py, interrupt)?;
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        let call = Call::with(py, interrupt, None);
        let accept = call.run(py, |interrupt| matcher.accept_bytes(data, interrupt))?;
        Ok(accept == Accept::Taken)
    }

    #[pyo3(signature = (count, interrupt=None))]
    fn rollback(
        &self,
        py: Python<'_>,
        count: usize,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<()> {
        refuse_ended(py, interrupt)?;
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        match matcher.rollback_now(count) {
            Some(done) => done.map_err(|error| raise(py, &error)),
            None => {
                let call = Call::with(py, interrupt, None);
                call.run(py, |interrupt| matcher.rollback(count, interrupt))
            }
        }
    }

    #[pyo3(signature = (interrupt=None))]
    fn reset(&self, py: Python<'_>, interrupt: Option<&Interrupt>) -> PyResult<()> {
        refuse_ended(py, interrupt)?;
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        Call::with(py, interrupt, None).run(py, |interrupt| matcher.reset(interrupt))
    }

    fn fork(&self, py: Python<'_>) -> PyResult<Self> {
        Ok(Self::wrap(self.own(py)?.fork()))
    }

    fn is_accepting(&self, py: Python<'_>) -> PyResult<bool> {
        self.look(py, |look| look.is_accepting())
    }

    fn is_terminated(&self, py: Python<'_>) -> PyResult<bool> {
        self.look(py, |look| look.is_terminated())
    }

    fn steps(&self, py: Python<'_>) -> PyResult<usize> {
        self.steps_of(py)
    }

    fn stop_ids(&self, py: Python<'_>) -> PyResult<Vec<u32>> {
        Ok(self.own(py)?.stop_ids().to_vec())
    }

    #[pyo3(signature = (limit, interrupt=None))]
    fn forced_bytes<'py>(
        &self,
        py: Python<'py>,
        limit: usize,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        let forced = call.run(py, |interrupt| matcher.forced_bytes(limit, interrupt))?;
        Ok(PyBytes::new(py, &forced))
    }

    #[pyo3(signature = (interrupt=None))]
    fn forced_token(&self, py: Python<'_>, interrupt: Option<&Interrupt>) -> PyResult<Option<u32>> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        call.run(py, |interrupt| matcher.forced_token(interrupt))
    }

    /// The ids of the tokens that begin with bytes and go on with others that may come next; `None` where
    /// that is to be found out token by token.
    #[pyo3(signature = (begin, interrupt=None))]
    fn tokens_behind(
        &self,
        py: Python<'_>,
        begin: &[u8],
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Option<Vec<u32>>> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        call.run(py, |interrupt| matcher.tokens_behind(begin, interrupt))
    }

    /// As `tokens_behind`, each behind the fewest tokens that complete the text then, if these are `most` or fewer.
    #[pyo3(signature = (begin, most, interrupt=None))]
    fn tokens_behind_in_time(
        &self,
        py: Python<'_>,
        begin: &[u8],
        most: u32,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Option<Vec<(u32, u32)>>> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        call.run(py, |interrupt| matcher.tokens_behind_in_time(begin, most, interrupt))
    }

    /// Allows so many tokens from the first step on, the stop token counted; of the last `prefer_end` none
    /// may take the text further from its end.
    #[pyo3(signature = (most, prefer_end=0, interrupt=None))]
    fn limit_tokens(
        &self,
        py: Python<'_>,
        most: u32,
        prefer_end: u32,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<()> {
        refuse_ended(py, interrupt)?;
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        let call = Call::with(py, interrupt, None);
        call.run(py, |interrupt| matcher.limit_tokens(most, prefer_end, interrupt))
    }

    /// The tokens that the text may still take, the stop token counted, if that is limited.
    fn tokens_left(&self, py: Python<'_>) -> PyResult<Option<u32>> {
        self.look(py, |look| look.tokens_left())
    }

    /// How many of the last tokens may not take the text further from its end.
    fn prefer_end(&self, py: Python<'_>) -> PyResult<u32> {
        self.look(py, |look| look.prefer_end())
    }

    /// The fewest tokens, the stop token not counted, and the fewest bytes to the end of the text.
    #[pyo3(signature = (interrupt=None))]
    fn shortest(
        &self,
        py: Python<'_>,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<(Option<u32>, Option<u32>)> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        let shortest = call.run(py, |interrupt| matcher.shortest(interrupt))?;
        Ok((shortest.tokens, shortest.bytes))
    }

    /// The first tokens of a shortest completion.
    #[pyo3(signature = (most, interrupt=None))]
    fn closing_tokens(
        &self,
        py: Python<'_>,
        most: usize,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Vec<u32>> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        call.run(py, |interrupt| matcher.closing_tokens(most, interrupt))
    }

    /// The first bytes of a completion of the fewest bytes.
    #[pyo3(signature = (most, interrupt=None))]
    fn closing_bytes<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        refuse_ended(py, interrupt)?;
        let guard = self.own(py)?;
        let matcher = &*guard;
        let call = Call::with(py, interrupt, None);
        let bytes = call.run(py, |interrupt| matcher.closing_bytes(most, interrupt))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// How many of some bytes could be read next, and the bytes that may come there.
    fn readable<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
    ) -> PyResult<(usize, Bound<'py, PyBytes>)> {
        let guard = self.own(py)?;
        let matcher = &*guard;
        let (read, expected) =
            Call::new(py).run(py, |interrupt| matcher.readable(data, interrupt))?;
        Ok((read, PyBytes::new(py, &expected)))
    }

    /// The bytes that may come next.
    fn expected<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        if let Some(expected) = self.look(py, |look| look.expected())? {
            return Ok(PyBytes::new(py, &expected));
        }
        Ok(self.readable(py, b"")?.1)
    }

    fn text<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.look(py, |look| look.text())?))
    }

    /// The state as little-endian numbers.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let guard = self.own(py)?;
        let matcher = &*guard;
        let state = Call::new(py).run(py, |interrupt| matcher.state(interrupt).map(le_bytes))?;
        Ok(PyBytes::new(py, &state))
    }

    /// The state in another engine, whose free text calls other tags.
    fn state_for<'py>(&self, py: Python<'py>, other: &Engine) -> PyResult<Bound<'py, PyBytes>> {
        let guard = self.own(py)?;
        let matcher = &*guard;
        let state = Call::new(py)
            .run(py, |interrupt| matcher.state_for(&other.inner, interrupt).map(le_bytes))?;
        Ok(PyBytes::new(py, &state))
    }

    fn restore(&self, py: Python<'_>, state: &[u8]) -> PyResult<()> {
        let mut guard = self.own(py)?;
        let matcher = &mut *guard;
        Call::new(py).run(py, |interrupt| {
            let number = |c: &[u8]| u32::from_le_bytes([c[0], c[1], c[2], c[3]]);
            let numbers: Vec<u32> = state.chunks_exact(4).map(number).collect();
            matcher.restore(&numbers, interrupt)
        })
    }

    /// Makes the work under way, and all that begins while it is on, end with an error.
    fn cancel(&self, on: bool) {
        self.cancel.store(on, Ordering::Relaxed);
    }

    fn bytes_held(&self, py: Python<'_>) -> PyResult<usize> {
        self.look(py, |look| look.bytes())
    }

    /// What the state holds and what it took to come here.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.look(py, |look| look.counters())?;
        let out = PyDict::new(py);
        out.set_item("items", counters.items)?;
        out.set_item("earley_sets", counters.sets)?;
        out.set_item("completions", counters.completions)?;
        out.set_item("work", counters.work)?;
        Ok(out)
    }
}
