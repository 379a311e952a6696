//! `tokfold._core.recognize`.

use crate::boundary::{Call, Interrupt};
use crate::grammar::{Grammar, limits};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use tokfold_core::budget::{self, Budget};
use tokfold_core::error::Result;
use tokfold_core::limits::Limits;
use tokfold_core::network::{Network, NetworkOptions};
use tokfold_core::recognizer;

/// Bytes between two reports of progress.
const REPORT_EVERY: usize = 1 << 14;

/// How many bytes could be read, whether the text may end there, and which bytes may come next.
#[pyfunction]
#[pyo3(signature = (grammar, data, *, skip_lookahead, limits=None, progress=None, interrupt=None))]
// The arguments are those of the Python signature, which names them all.
#[allow(clippy::too_many_arguments)]
pub(crate) fn recognize<'py>(
    py: Python<'py>,
    grammar: &Grammar,
    data: &[u8],
    skip_lookahead: bool,
    limits: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<(usize, bool, Bound<'py, PyBytes>)> {
    let limits = self::limits(limits)?;
    let call = Call::with(py, interrupt, progress);
    let (read, accepting, expected) =
        call.run(py, |interrupt| run(grammar, data, skip_lookahead, limits, interrupt))?;
    Ok((read, accepting, PyBytes::new(py, &expected)))
}

fn run(
    grammar: &Grammar,
    data: &[u8],
    skip_lookahead: bool,
    limits: Limits,
    interrupt: &budget::Interrupt,
) -> Result<(usize, bool, Vec<u8>)> {
    let options = NetworkOptions {
        skip_lookahead,
        unique_items: true,
        without_tokens: true,
        counters: true,
        // Each copy of what is written out reads a byte, so more copies than bytes, and one to tell
        // what may come next, are never reached.
        repeat_window: u32::try_from(data.len()).ok().and_then(|n| n.checked_add(2)),
        limits,
        ..NetworkOptions::default()
    };
    let work = Budget::new(&options.limits, interrupt);
    let network = Network::make(&grammar.inner, &options, &work)?;
    let mut recognizer = recognizer::Recognizer::new(&network, &options.limits, interrupt)?;
    let mut read = 0;
    for &byte in data {
        if read % REPORT_EVERY == 0 {
            interrupt.report(read, data.len())?;
        }
        if !recognizer.advance(byte)? {
            break;
        }
        read += 1;
    }
    Ok((read, recognizer.is_accepting(), recognizer.expected()?))
}

/// The rules that are open after some bytes, outermost first: those of one parse, and last of all
/// every rule that may go on. The network is made without merging rules, so the names are those
/// of the grammar.
#[pyfunction]
#[pyo3(signature = (grammar, data, *, skip_lookahead, limits=None))]
pub(crate) fn open_rules(
    py: Python<'_>,
    grammar: &Grammar,
    data: &[u8],
    skip_lookahead: bool,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<(Vec<String>, Vec<String>)> {
    let options = NetworkOptions {
        skip_lookahead,
        unique_items: true,
        simplify: false,
        counters: true,
        limits: self::limits(limits)?,
        ..NetworkOptions::default()
    };
    let found = Call::new(py).run(py, |interrupt| {
        let work = Budget::new(&options.limits, interrupt);
        let network = Network::make(&grammar.inner, &options, &work)?;
        let mut recognizer = recognizer::Recognizer::new(&network, &options.limits, interrupt)?;
        for &byte in data {
            if !recognizer.advance(byte)? {
                break;
            }
        }
        Ok(recognizer.open_rules())
    })?;
    let rules = grammar.inner.rules();
    // A part of a rule stands behind it, or in its place.
    let names = |numbers: Vec<u32>| {
        let mut names: Vec<String> = Vec::new();
        for rule in numbers.into_iter().filter_map(|rule| rules.get(rule as usize)) {
            let name = rule.written_name();
            if name == rule.name || names.last().is_none_or(|last| last != name) {
                names.push(name.to_owned());
            }
        }
        names
    };
    let (path, tops) = found;
    Ok((names(path), names(tops)))
}
