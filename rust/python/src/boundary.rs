//! The border to Python: errors, the GIL, cancelling and Ctrl-C, in one place.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyModule;
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokfold_core::budget::{self, Observer};
use tokfold_core::error::{Error, SchemaFault};

/// Between two looks for Ctrl-C: each waits for the interpreter.
const BETWEEN_SIGNALS: Duration = Duration::from_millis(50);

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
            .call1((message, construct, position.line.max(1), position.column.max(1)))?,
        Error::Schema { kind, pointer, keyword, message: reason } => {
            let class = match kind {
                SchemaFault::Invalid => "InvalidSchemaError",
                SchemaFault::Unsupported => "UnsupportedSchemaError",
                SchemaFault::Unsatisfiable => "UnsatisfiableSchemaError",
            };
            errors.getattr(class)?.call1((message, pointer, keyword, reason))?
        }
        Error::Limit { limit, value, .. } => {
            errors.getattr("LimitExceededError")?.call1((message, *limit, *value))?
        }
        Error::LimitInSchema { pointer, limit, value, .. } => {
            errors.getattr("LimitExceededError")?.call1((message, *limit, *value, pointer))?
        }
        Error::Deadline { limit, milliseconds } => {
            errors.getattr("DeadlineExceededError")?.call1((message, *limit, *milliseconds))?
        }
        Error::Vocabulary(_) => errors.getattr("VocabularyError")?.call1((message,))?,
        Error::Artifact(_) => errors.getattr("ArtifactError")?.call1((message,))?,
        Error::State(_) => errors.getattr("MatcherStateError")?.call1((message,))?,
        Error::Budget { needed, left } => {
            errors.getattr("TokenBudgetError")?.call1((message, *needed, *left))?
        }
        Error::Cancelled => errors.getattr("CancelledError")?.call1((message,))?,
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

/// `tokfold._core.Interrupt`: a cancel flag, and a deadline that begins when it is made.
#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Interrupt {
    flag: Arc<AtomicBool>,
    inner: budget::Interrupt,
}

#[pymethods]
impl Interrupt {
    #[new]
    #[pyo3(signature = (milliseconds=None, *, limit="milliseconds"))]
    fn new(milliseconds: Option<u64>, limit: &str) -> Self {
        let flag = Arc::new(AtomicBool::new(false));
        let limits = ["max_compile_milliseconds", "max_mask_milliseconds"];
        let limit = limits.into_iter().find(|&one| one == limit).unwrap_or("milliseconds");
        let inner = budget::Interrupt::default().with_flag(&flag);
        Self { flag, inner: inner.with_deadline(limit, milliseconds) }
    }

    fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }

    #[getter]
    fn is_cancelled(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// Raises where the deadline has passed or the flag is set.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.inner.look().map_err(|error| raise(py, &error))
    }
}

/// One call into the core that may take long: what ends it, and what ended it.
pub(crate) struct Call {
    watcher: Option<Arc<Watcher>>,
    /// For the core.
    pub(crate) interrupt: budget::Interrupt,
}

impl Call {
    /// A call that Ctrl-C ends.
    pub(crate) fn new(py: Python<'_>) -> Self {
        Self::with(py, None, None)
    }

    /// A call that an interrupt ends, and Ctrl-C, and what a progress callback raises.
    pub(crate) fn with(
        py: Python<'_>,
        interrupt: Option<&Interrupt>,
        progress: Option<Py<PyAny>>,
    ) -> Self {
        let inner = interrupt.map_or_else(budget::Interrupt::default, |given| given.inner.clone());
        let hears_signals = is_main_thread(py);
        if !hears_signals && progress.is_none() {
            return Self { watcher: None, interrupt: inner };
        }
        let watcher = Arc::new(Watcher {
            hears_signals,
            progress,
            state: Mutex::new(Watched { looked: Instant::now(), raised: None }),
        });
        let interrupt = inner.with_observer(watcher.clone());
        Self { watcher: Some(watcher), interrupt }
    }

    /// Runs `work` without the GIL; what Ctrl-C or the callback raised comes before its own error.
    pub(crate) fn run<T: Send>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&budget::Interrupt) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        let result = py.detach(|| work(&self.interrupt));
        self.finish(py, result)
    }

    /// The result as Python gets it.
    pub(crate) fn finish<T>(&self, py: Python<'_>, result: Result<T, Error>) -> PyResult<T> {
        match self.raised() {
            Some(raised) => Err(raised),
            None => result.map_err(|error| raise(py, &error)),
        }
    }

    /// What Ctrl-C or the callback raised.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.watcher.as_ref().and_then(|watcher| watcher.lock().raised.take())
    }
}

/// Looks for Ctrl-C and calls a progress callback, from code that runs without the GIL.
struct Watcher {
    hears_signals: bool,
    progress: Option<Py<PyAny>>,
    state: Mutex<Watched>,
}

struct Watched {
    looked: Instant,
    raised: Option<PyErr>,
}

impl Watcher {
    fn lock(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(&self, ask: impl FnOnce(Python<'_>) -> PyResult<()>) -> bool {
        match Python::attach(ask) {
            Ok(()) => true,
            Err(error) => {
                self.lock().raised = Some(error);
                false
            }
        }
    }
}

impl Observer for Watcher {
    fn go_on(&self) -> bool {
        if !self.hears_signals && self.progress.is_none() {
            return true;
        }
        {
            let mut state = self.lock();
            if state.raised.is_some() {
                return false;
            }
            if !self.hears_signals || state.looked.elapsed() < BETWEEN_SIGNALS {
                return true;
            }
            state.looked = Instant::now();
        }
        self.ask(|py| py.check_signals())
    }

    fn progress(&self, done: usize, total: usize) -> bool {
        match &self.progress {
            None => self.go_on(),
            Some(callback) => self.ask(|py| {
                py.check_signals()?;
                callback.call1(py, (done, total)).map(drop)
            }),
        }
    }
}

/// Whether the interpreter gives signals to this thread.
fn is_main_thread(py: Python<'_>) -> bool {
    static THREADING: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    thread_local! {
        // A child process may begin in any thread of its parent.
        static KNOWN: Cell<Option<(u32, bool)>> = const { Cell::new(None) };
    }
    let process = std::process::id();
    if let Some((known, is_main)) = KNOWN.get()
        && known == process
    {
        return is_main;
    }
    let ask = || -> PyResult<bool> {
        let import = || PyModule::import(py, "threading").map(Bound::unbind);
        let threading = THREADING.get_or_try_init(py, import)?.bind(py);
        let main = threading.call_method0("main_thread")?.getattr("ident")?;
        threading.call_method0("get_ident")?.eq(main)
    };
    // Where that cannot be told, signals are looked for.
    let is_main = ask().unwrap_or(true);
    KNOWN.set(Some((process, is_main)));
    is_main
}

/// Tables of more bytes take a while to drop.
pub(crate) const MANY_BYTES: usize = 1 << 18;

/// What may take a while to drop.
pub(crate) trait Heavy {
    /// Whether it does, and nobody else has it.
    fn is_heavy(&self) -> bool;
}

/// A value of a Python object that is dropped without the GIL where that takes a while.
pub(crate) struct OffGil<T: Heavy + Send>(Option<T>);

impl<T: Heavy + Send> OffGil<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T: Heavy + Send> std::ops::Deref for OffGil<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match &self.0 {
            Some(value) => value,
            None => unreachable!("only a drop takes the value"),
        }
    }
}

impl<T: Heavy + Send> Drop for OffGil<T> {
    fn drop(&mut self) {
        if let Some(value) = self.0.take().filter(Heavy::is_heavy) {
            Python::attach(|py| py.detach(|| drop(value)));
        }
    }
}

/// A `ValueError` with a message.
pub(crate) fn misuse(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}
