//! `tokfold._core.StoreText`: one text on its way through a mask store.

use super::StoreEngine;
use crate::boundary::{misuse, raise};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokfold_mask_store::decode::TextMatcher;

/// Stack (the start first), lexer state, scanner, parentheses, columns, column.
type PlaceParts = (Vec<u32>, u32, u32, u32, Vec<u32>, Option<u32>);

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct StoreText {
    engine: Py<StoreEngine>,
    inner: Mutex<TextMatcher>,
}

impl StoreText {
    fn lock(&self) -> MutexGuard<'_, TextMatcher> {
        // What was refused or has failed leaves the text as it was.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is never waited for while the interpreter is held: whoever fills a row from a
    /// mapped file holds it and asks for the interpreter.
    fn with<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut TextMatcher) -> T + Send) -> T {
        py.detach(|| work(&mut self.lock()))
    }
}

#[pymethods]
impl StoreText {
    #[new]
    fn new(
        py: Python<'_>,
        engine: Py<StoreEngine>,
        stops: Vec<u32>,
        silent: Vec<u32>,
    ) -> PyResult<Self> {
        let shared = engine.get();
        let size = shared.vocabulary.len();
        if stops.iter().chain(&silent).any(|&token| token as usize >= size) {
            return Err(misuse("a token is outside the vocabulary"));
        }
        let (stops, silent): (Arc<[u32]>, Arc<[u32]>) = (stops.into(), silent.into());
        let text = shared.with(py, |engine| Ok(TextMatcher::new(engine, stops, silent)))?;
        Ok(Self { engine, inner: Mutex::new(text) })
    }

    /// Writes the mask into a row of int32 words.
    fn fill(&self, py: Python<'_>, row: &Bound<'_, PyArray1<i32>>) -> PyResult<()> {
        let shared = self.engine.get();
        let mut row = row.try_readwrite()?;
        let row = row.as_slice_mut()?;
        if row.len() != shared.vocabulary.len().div_ceil(32) {
            return Err(misuse("the row has another length than the masks of the vocabulary"));
        }
        shared.with(py, |engine| self.lock().fill(engine, row))
    }

    fn depths(&self, py: Python<'_>) -> PyResult<Vec<usize>> {
        self.engine.get().with(py, |engine| self.lock().depths(engine))
    }

    fn accept(&self, py: Python<'_>, token: u32) -> PyResult<bool> {
        let shared = self.engine.get();
        if token as usize >= shared.vocabulary.len() {
            return Err(misuse("the token is outside the vocabulary"));
        }
        shared.with(py, |engine| self.lock().accept(engine, &shared.vocabulary, token))
    }

    /// Tokens one after the other as far as they are taken; how many.
    fn accept_many(&self, py: Python<'_>, tokens: Vec<u32>) -> PyResult<usize> {
        let shared = self.engine.get();
        if tokens.iter().any(|&token| token as usize >= shared.vocabulary.len()) {
            return Err(misuse("a token is outside the vocabulary"));
        }
        shared.with(py, |engine| {
            let mut text = self.lock();
            for (count, &token) in tokens.iter().enumerate() {
                if text.is_ended() || !text.accept(engine, &shared.vocabulary, token)? {
                    return Ok(count);
                }
            }
            Ok(tokens.len())
        })
    }

    fn accept_pieces(&self, py: Python<'_>, pieces: Vec<Vec<u8>>) -> PyResult<bool> {
        self.engine.get().with(py, |engine| {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            self.lock().accept_pieces(engine, &pieces)
        })
    }

    fn may_end(&self, py: Python<'_>) -> PyResult<bool> {
        self.engine.get().with(py, |engine| self.lock().may_end(engine))
    }

    fn is_ended(&self, py: Python<'_>) -> bool {
        self.with(py, |text| text.is_ended())
    }

    fn rollback(&self, py: Python<'_>, count: usize) -> PyResult<()> {
        let result = self.with(py, |text| text.rollback(count));
        result.map_err(|error| raise(py, &error))
    }

    fn steps(&self, py: Python<'_>) -> usize {
        self.with(py, |text| text.len())
    }

    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = self.with(py, |text| text.bytes().to_vec());
        PyBytes::new(py, &bytes)
    }

    fn fork(&self, py: Python<'_>) -> Self {
        let inner = self.with(py, |text| text.clone());
        Self { engine: self.engine.clone_ref(py), inner: Mutex::new(inner) }
    }

    /// The ways in which the text so far may be meant.
    fn places(&self, py: Python<'_>) -> Vec<PlaceParts> {
        self.with(py, |text| {
            let places = text.places().iter().map(|place| {
                let mut stack: Vec<u32> = place.stack.states().collect();
                stack.reverse();
                let layout = &place.layout;
                let columns = layout.columns.to_vec();
                (stack, place.state, place.scanner, layout.parens, columns, layout.column)
            });
            places.collect()
        })
    }
}
