//! The extension module `tokfold._core`.

use pyo3::prelude::*;

#[pymodule]
mod _core {}
