//! `tokfold._core.Unfolder`: masks of classes as masks of tokens, and written onto logits of numpy (`Target`).

use crate::boundary::misuse;
use numpy::ndarray::ArrayView2;
use numpy::{
    Element, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray1,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use tokfold_core::mask::{self, apply};

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Unfolder {
    inner: Mutex<mask::Unfolder>,
}

impl Unfolder {
    /// The token row of each class mask.
    fn rows(&self, masks: ArrayView2<'_, i32>) -> PyResult<(usize, Vec<Arc<[i32]>>)> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if masks.ncols() != inner.class_words() {
            return Err(misuse(format!("a class mask has {} words", inner.class_words())));
        }
        let mut rows = Vec::with_capacity(masks.nrows());
        for mask in masks.rows() {
            rows.push(inner.row(mask.as_slice().ok_or_else(apart)?));
        }
        Ok((inner.num_tokens(), rows))
    }
}

fn apart() -> PyErr {
    misuse("masks must be contiguous, and the entries of a row of logits lie side by side")
}

/// Where rows of bits go: float32, or 16 bits wide of which one number is -inf.
struct Target<'a, 'py> {
    logits: &'a Bound<'py, PyAny>,
    rows: Option<Vec<i64>>,
    masked: i16,
}

impl Target<'_, '_> {
    /// Writes -inf where the bits of a row are 0, and from entry `size` on.
    fn write<B: AsRef<[i32]> + Sync>(
        self,
        py: Python<'_>,
        bits: &[B],
        size: usize,
    ) -> PyResult<()> {
        if let Ok(logits) = self.logits.cast::<PyArray2<f32>>() {
            return write(py, logits, self.rows, bits, size, f32::NEG_INFINITY);
        }
        if let Ok(logits) = self.logits.cast::<PyArray2<i16>>() {
            return write(py, logits, self.rows, bits, size, self.masked);
        }
        Err(misuse("logits must be float32, or int16 that stand for 16 bits"))
    }
}

fn write<T: Element + Copy + Send + Sync, B: AsRef<[i32]> + Sync>(
    py: Python<'_>,
    logits: &Bound<'_, PyArray2<T>>,
    rows: Option<Vec<i64>>,
    bits: &[B],
    size: usize,
    masked: T,
) -> PyResult<()> {
    let mut logits = logits
        .try_readwrite()
        .map_err(|error| misuse(format!("the logits cannot be written: {error}")))?;
    let mut logits = logits.as_array_mut();
    let (count, width) = logits.dim();
    let rows = rows.unwrap_or_else(|| (0..bits.len() as i64).collect());
    let is_row = |&row: &i64| (-1..count as i64).contains(&row);
    if width < size || rows.len() != bits.len() || !rows.iter().all(is_row) {
        return Err(misuse("masks, logits and rows do not fit together"));
    }
    py.detach(|| {
        for (row, bits) in rows.into_iter().zip(bits) {
            let Ok(row) = usize::try_from(row) else { continue };
            let row = logits.row_mut(row).into_slice().ok_or_else(apart)?;
            apply(row, bits.as_ref(), size, masked);
        }
        Ok(())
    })
}

/// [`Unfolder::apply`] for masks of tokens, of which there are `size`.
#[pyfunction]
#[pyo3(signature = (masks, logits, size, rows=None, masked=0))]
pub(crate) fn apply_bitmask(
    py: Python<'_>,
    masks: PyReadonlyArray2<'_, i32>,
    logits: &Bound<'_, PyAny>,
    size: usize,
    rows: Option<Vec<i64>>,
    masked: i16,
) -> PyResult<()> {
    let masks = masks.as_array();
    if masks.ncols() < size.div_ceil(32) {
        return Err(misuse("the masks have fewer bits than there are tokens"));
    }
    let bits: Option<Vec<&[i32]>> = masks.rows().into_iter().map(|row| row.to_slice()).collect();
    Target { logits, rows, masked }.write(py, &bits.ok_or_else(apart)?, size)
}

#[pymethods]
impl Unfolder {
    #[new]
    #[pyo3(signature = (class_of, num_classes, max_bytes=33_554_432))]
    fn new(
        class_of: PyReadonlyArray1<'_, i32>,
        num_classes: usize,
        max_bytes: usize,
    ) -> PyResult<Self> {
        let inner =
            mask::Unfolder::new(class_of.as_slice()?, num_classes, max_bytes).map_err(misuse)?;
        Ok(Self { inner: Mutex::new(inner) })
    }

    /// Both arrays are int32, contiguous, with exactly the words of a class mask and of a row.
    fn unfold(
        &self,
        class_mask: PyReadonlyArray1<'_, i32>,
        mut row: PyReadwriteArray1<'_, i32>,
    ) -> PyResult<()> {
        // Nothing in `unfold` panics with the lengths checked, so a poisoned lock is whole.
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if class_mask.len() != inner.class_words() || row.len() != inner.token_words() {
            return Err(misuse(format!(
                "a class mask has {} words and a row {}; got {} and {}",
                inner.class_words(),
                inner.token_words(),
                class_mask.len(),
                row.len()
            )));
        }
        let apart = |_| misuse("class mask and row must be contiguous");
        inner.unfold(class_mask.as_slice().map_err(apart)?, row.as_slice_mut().map_err(apart)?);
        Ok(())
    }

    /// Writes -inf over the logits of tokens that class masks do not allow, and past the
    /// vocabulary. Each row of `masks` is for the row of `logits` that `rows` says, by default that
    /// of its own number; -1 is for none. `logits` are float32, or 16 bits wide, of which `masked`
    /// is -inf.
    #[pyo3(signature = (masks, logits, rows=None, masked=0))]
    fn apply(
        &self,
        py: Python<'_>,
        masks: PyReadonlyArray2<'_, i32>,
        logits: &Bound<'_, PyAny>,
        rows: Option<Vec<i64>>,
        masked: i16,
    ) -> PyResult<()> {
        let (size, bits) = self.rows(masks.as_array())?;
        Target { logits, rows, masked }.write(py, &bits, size)
    }
}
