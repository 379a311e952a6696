//! Mask stores: `tokfold._core.LexerStore`, `StackParser`, `StoreEngine` and `StoreText`.
//!
//! One class a file: `lexer`, `parser`, `engine`, `text`.

mod engine;
mod lexer;
mod parser;
mod text;

pub(crate) use engine::StoreEngine;
pub(crate) use lexer::LexerStore;
pub(crate) use parser::StackParser;
pub(crate) use text::StoreText;

use crate::boundary::raise;
use pyo3::prelude::*;
use tokfold_core::error::Error;
use tokfold_mask_store::parser::TABLE_LOOP;

/// As [`raise`]; a table that reduces without end has an exception of its own.
fn raise_store(py: Python<'_>, error: &Error) -> PyErr {
    let Error::Limit { limit: TABLE_LOOP, .. } = error else { return raise(py, error) };
    let made = PyModule::import(py, "tokfold.mask_store.errors")
        .and_then(|errors| errors.getattr("TableLoopError"))
        .and_then(|class| class.call1((error.to_string(),)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}
