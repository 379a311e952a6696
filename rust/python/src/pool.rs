//! `tokfold._core.Pool`.

use crate::boundary::detached;
use crate::vocabulary::Vocabulary;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::sync::Arc;
use tokfold_core::engine::{self, LEAST_NODES, SharedVocabulary};

/// What masks remember, shared by all grammars over one vocabulary.
#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Pool {
    pub(crate) inner: Arc<engine::Pool>,
    pub(crate) vocabulary: SharedVocabulary,
}

#[pymethods]
impl Pool {
    #[new]
    fn new(vocabulary: &Vocabulary, max_bytes: usize) -> Self {
        Self {
            inner: Arc::new(engine::Pool::new(max_bytes, LEAST_NODES)),
            vocabulary: vocabulary.inner.clone(),
        }
    }

    fn clear(&self) {
        self.inner.clear();
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.inner.counters();
        let out = PyDict::new(py);
        out.set_item("entries", counters.entries)?;
        out.set_item("bytes", counters.bytes)?;
        out.set_item("hits", counters.hits)?;
        out.set_item("misses", counters.misses)?;
        out.set_item("evicted", counters.evicted)?;
        Ok(out)
    }

    fn to_bytes<'py>(&self, py: Python<'py>, max_bytes: usize) -> Bound<'py, PyBytes> {
        let data = py.detach(|| self.inner.to_bytes(max_bytes));
        PyBytes::new(py, &data)
    }

    fn add_bytes(&self, py: Python<'_>, data: &[u8]) -> PyResult<usize> {
        let size = self.vocabulary.len();
        detached(py, || {
            let trie = self.vocabulary.trie();
            self.inner.add_bytes(data, size as u32, size.div_ceil(32), trie.len() as u32)
        })
    }
}
