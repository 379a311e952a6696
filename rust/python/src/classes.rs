//! `tokfold._core.compile_classes`.

use crate::boundary::{Call, Interrupt};
use crate::grammar::{Grammar, limits};
use crate::vocabulary::Vocabulary;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokfold_core::classes::{self, ClassOptions};

type Folded<'py> =
    (Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<u32>>, usize, Bound<'py, PyDict>);

// The arguments are those of the Python signature, which names them all.
#[allow(clippy::too_many_arguments)]
#[pyfunction]
#[pyo3(signature = (grammar, vocabulary, *, prune, skip_lookahead, limits=None, progress=None, interrupt=None))]
pub(crate) fn compile_classes<'py>(
    py: Python<'py>,
    grammar: &Grammar,
    vocabulary: &Vocabulary,
    prune: bool,
    skip_lookahead: bool,
    limits: Option<&Bound<'py, PyAny>>,
    progress: Option<Py<PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Folded<'py>> {
    let options = ClassOptions {
        prune,
        skip_lookahead,
        limits: self::limits(limits)?,
        ..ClassOptions::default()
    };
    let call = Call::with(py, interrupt, progress);
    let (classes, stats) = call.run(py, |interrupt| {
        classes::compile(&grammar.inner, &vocabulary.inner, &options, interrupt)
    })?;
    let report = PyDict::new(py);
    report.set_item("rules", stats.rules)?;
    report.set_item("network_states", stats.network_states)?;
    report.set_item("network_work", stats.network_work)?;
    report.set_item("byte_classes", stats.byte_classes)?;
    report.set_item("displacement_states", stats.automaton.states)?;
    report.set_item("stack_sets", stats.automaton.stack_sets)?;
    report.set_item("automaton_bytes", stats.automaton.bytes)?;
    report.set_item("work", stats.automaton.work)?;
    report.set_item("dead_tokens", stats.dead_tokens)?;
    report.set_item("over_budget_tokens", stats.over_budget_tokens)?;
    report.set_item("network_seconds", stats.network_time.as_secs_f64())?;
    report.set_item("walk_seconds", stats.walk_time.as_secs_f64())?;
    Ok((
        classes.class_of.into_pyarray(py),
        classes.representatives.into_pyarray(py),
        classes.num_stop_classes,
        report,
    ))
}
