//! `tokfold._core.Unfolder`.

use crate::boundary::misuse;
use numpy::{PyReadonlyArray1, PyReadwriteArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};
use tokfold_core::mask;

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Unfolder {
    inner: Mutex<mask::Unfolder>,
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
}
