//! Rows of bitmasks, as numpy hands them over.

use crate::boundary::{misuse, raise};
use numpy::ndarray::Dimension;
use numpy::{BorrowError, PyArray, PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use tokfold_core::engine::Matcher;
use tokfold_core::error::Error;

/// Calls `work` with all words of a bitmask.
pub(super) fn with_rows<T>(
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
                "a row of the bitmask must have {words} words of int32, not {wide}: allocate_bitmask(batch, \
                 len(vocabulary)) makes one that fits, for masks over classes allocate_bitmask(batch, \
                 len(compiled.classes))"
            )));
        }
        // A slice of numpy's may also run along columns.
        if !array.is_c_contiguous() {
            return Err(misuse(
                "the bitmask must be C-contiguous: allocate_bitmask() makes one that is",
            ));
        }
        let mut rows = array.try_readwrite().map_err(|error| {
            misuse(match error {
                BorrowError::AlreadyBorrowed => "the bitmask is in use by another thread: give \
                    each rows of its own, bitmask[row : row + 1]"
                    .into(),
                error => format!("the bitmask cannot be written: {error}"),
            })
        })?;
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

/// Words of a mask, of tokens or of classes.
pub(super) fn mask_words(py: Python<'_>, matcher: &Matcher, classes: bool) -> PyResult<usize> {
    if !classes {
        return Ok(matcher.engine().vocabulary().len().div_ceil(32));
    }
    let state = |message: &str| Err(raise(py, &Error::State(message.into())));
    match matcher.engine().class_words() {
        None => state("there are no classes yet: compile with classes=\"now\", or wait"),
        Some(0) => state("the grammar takes no token of this vocabulary"),
        Some(words) => Ok(words),
    }
}

/// A row was asked for that the bitmask does not have.
pub(super) fn no_row(count: usize, row: usize) -> PyErr {
    misuse(format!("the bitmask has {count} rows, not one of index {row}"))
}
