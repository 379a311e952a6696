//! `tokfold._core.Vocabulary`.

use crate::boundary::{detached, misuse};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use tokfold_core::engine::SharedVocabulary;
use tokfold_core::vocabulary;

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Vocabulary {
    pub(crate) inner: SharedVocabulary,
}

#[pymethods]
impl Vocabulary {
    #[new]
    fn new(
        py: Python<'_>,
        blob: &[u8],
        offsets: PyReadonlyArray1<'_, i64>,
        stop_ids: Vec<u32>,
        special_ids: Vec<u32>,
    ) -> PyResult<Self> {
        let offsets: Vec<u32> = offsets
            .as_slice()?
            .iter()
            .map(|&offset| u32::try_from(offset))
            .collect::<Result<_, _>>()
            .map_err(|_| misuse("token bytes take more than 4 GiB"))?;
        let blob = blob.to_vec();
        let inner =
            detached(py, || vocabulary::Vocabulary::new(blob, offsets, &stop_ids, &special_ids))?;
        Ok(Self { inner: inner.into() })
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// Tokens of bytes, each the longest that fits, and how many bytes these have.
    fn encode_greedy(&self, py: Python<'_>, data: &[u8]) -> (Vec<u32>, usize) {
        py.detach(|| self.inner.encode_greedy(data))
    }

    /// How many of the last bytes may begin a token that is longer than they are.
    fn unsettled(&self, py: Python<'_>, data: &[u8]) -> usize {
        py.detach(|| self.inner.unsettled(data))
    }

    /// The ids of the textual tokens with some bytes; or, in order, of those that begin so and go on.
    fn ids_of(&self, py: Python<'_>, data: &[u8], longer: bool) -> Vec<u32> {
        py.detach(|| self.inner.ids_of(data, longer).to_vec())
    }
}
