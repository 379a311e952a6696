//! The border to Python: errors, the GIL and Ctrl-C, in one place.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::time::{Duration, Instant};
use tokfold_core::error::Error;

/// The exception of `tokfold.errors` for an error of the core.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let made = build(py, error);
    made.unwrap_or_else(|error| error)
}

fn build(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    static ERRORS: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let errors = ERRORS
        .get_or_try_init(py, || PyModule::import(py, "tokfold.errors").map(Bound::unbind))?
        .bind(py);
    let message = error.to_string();
    let value = match error {
        Error::Syntax { position, .. } => errors.getattr("GrammarSyntaxError")?.call1((
            message,
            position.line,
            position.column,
        ))?,
        Error::Unsupported { construct, position, .. } => errors
            .getattr("UnsupportedGrammarError")?
            .call1((message, construct, position.line, position.column))?,
        Error::Limit { limit, value, .. } => {
            errors.getattr("LimitExceededError")?.call1((message, *limit, *value))?
        }
        Error::Vocabulary(_) => errors.getattr("VocabularyError")?.call1((message,))?,
        Error::Artifact(_) => errors.getattr("ArtifactError")?.call1((message,))?,
        Error::State(_) => errors.getattr("MatcherStateError")?.call1((message,))?,
        Error::Cancelled => errors.getattr("TokfoldError")?.call1((message,))?,
    };
    Ok(PyErr::from_value(value))
}

/// Runs `work` without the GIL and turns its error into an exception.
pub(crate) fn detached<T: Send>(
    py: Python<'_>,
    work: impl FnOnce() -> Result<T, Error> + Send,
) -> PyResult<T> {
    py.detach(work).map_err(|error| raise(py, &error))
}

/// Calls a Python progress callback and looks for Ctrl-C, from code that runs without the GIL.
/// What was raised is kept for [`Reporter::finish`]; the core is told to stop.
pub(crate) struct Reporter {
    callback: Option<Py<PyAny>>,
    raised: Option<PyErr>,
}

impl Reporter {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, raised: None }
    }

    /// Whether to go on.
    pub(crate) fn report(&mut self, done: usize, total: usize) -> bool {
        let outcome = Python::attach(|py| {
            py.check_signals()?;
            match &self.callback {
                Some(callback) => callback.call1(py, (done, total)).map(drop),
                None => Ok(()),
            }
        });
        match outcome {
            Ok(()) => true,
            Err(error) => {
                self.raised = Some(error);
                false
            }
        }
    }

    /// What the callback or Ctrl-C raised comes before what the core made of it.
    pub(crate) fn finish<T>(self, py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
        match self.raised {
            Some(raised) => Err(raised),
            None => result.map_err(|error| raise(py, &error)),
        }
    }
}

/// A `ValueError` with a message.
pub(crate) fn misuse(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// When a compilation is to be done.
pub(crate) struct Deadline {
    milliseconds: u64,
    end: Option<Instant>,
    is_passed: bool,
}

impl Deadline {
    pub(crate) fn new(milliseconds: Option<u64>) -> Self {
        let end =
            milliseconds.and_then(|limit| Instant::now().checked_add(Duration::from_millis(limit)));
        Self { milliseconds: milliseconds.unwrap_or(u64::MAX), end, is_passed: false }
    }

    /// Whether there is time left. Once there is none, there never is.
    pub(crate) fn is_ahead(&mut self) -> bool {
        self.is_passed |= self.end.is_some_and(|end| Instant::now() > end);
        !self.is_passed
    }

    /// The error of work that ended, named for what ended it.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match error {
            Error::Cancelled if self.is_passed => Error::Limit {
                limit: "max_call_milliseconds",
                value: self.milliseconds,
                message: "the grammar takes longer to compile; simplify it or raise the limit"
                    .into(),
            },
            error => error,
        }
    }
}
