//! `tokfold._core.compare`.

use crate::boundary::Call;
use crate::grammar::{Grammar, limits};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokfold_core::grammar;
use tokfold_core::laboratory::{self, Verdict};

/// The text that tells the grammars apart, whether the first takes it, whether it is a shortest
/// one; the bytes below which none is; the pairs met. Proved: neither text nor number of bytes.
type Answer<'py> = (Option<(Bound<'py, PyBytes>, bool, bool)>, Option<u32>, usize);

/// Compares the languages of two grammars; `skip_lookahead` for each of them.
#[pyfunction]
#[pyo3(signature = (left, right, skip_lookahead, max_pairs, limits=None, progress=None))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    left: &Grammar,
    right: &Grammar,
    skip_lookahead: (bool, bool),
    max_pairs: usize,
    limits: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answer<'py>> {
    let limits = self::limits(limits)?;
    let call = Call::with(py, None, progress);
    let found = call.run(py, |interrupt| {
        let stripped = |grammar: &grammar::Grammar, skip: bool| {
            if skip { grammar.without_lookahead() } else { grammar.clone() }
        };
        let left = stripped(&left.inner, skip_lookahead.0);
        let right = stripped(&right.inner, skip_lookahead.1);
        laboratory::compare(&left, &right, max_pairs, &limits, interrupt)
    })?;
    let (text, depth) = match found.verdict {
        Verdict::Proved => (None, None),
        Verdict::Bounded { depth } => (None, Some(depth)),
        Verdict::Different { text, is_left, is_shortest } => {
            (Some((PyBytes::new(py, &text), is_left, is_shortest)), None)
        }
    };
    Ok((text, depth, found.pairs))
}
