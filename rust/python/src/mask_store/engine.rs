//! `tokfold._core.StoreEngine`: what decoding with a mask store needs, shared by texts.

use super::lexer::{letter, table};
use super::{LexerStore, StackParser, raise_store};
use crate::boundary::{Call, misuse, raise};
use crate::vocabulary::Vocabulary;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokfold_core::engine::SharedVocabulary;
use tokfold_core::error::Error;
use tokfold_mask_store::decode::{
    Decoder, DecoderParts, Indentation, Layout, Memory, RawRow, RowLimits, RowTable, TokenSource,
};
use tokfold_mask_store::{LexerLetter, LexerRow, Store};

/// The token sets of rows in one array of numpy, which may lie in a mapped file.
struct Mapped {
    tokens: Py<PyArray1<u32>>,
    offsets: Vec<usize>,
}

impl TokenSource for Mapped {
    fn with(&self, sets: &[u32], look: &mut dyn FnMut(usize, &[u32])) {
        Python::attach(|py| {
            let tokens = self.tokens.bind(py).readonly();
            // The array was found to be contiguous, and the offsets to lie in it.
            let tokens = tokens.as_slice().unwrap_or(&[]);
            for (place, &set) in sets.iter().enumerate() {
                let set = set as usize;
                look(place, tokens.get(self.offsets[set]..self.offsets[set + 1]).unwrap_or(&[]));
            }
        });
    }

    fn count(&self) -> u32 {
        self.offsets.len() as u32 - 1
    }
}

/// The rows of a store: letters, letters of sequences with offsets, rows of the parts, rows of
/// the configurations, ends at the first byte, tokens of all sets with offsets.
#[derive(FromPyObject)]
struct SavedRows<'py>(
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u32>,
    Bound<'py, PyArray1<u32>>,
    PyReadonlyArray1<'py, i64>,
);

impl SavedRows<'_> {
    fn read(self, terminals: u32, sets: u32, size: usize) -> PyResult<(RowTable, Mapped)> {
        let broken = || raise(self.6.py(), &Error::Artifact("the rows are damaged".into()));
        let tokens = self.6.try_readonly()?;
        let tokens = tokens.as_slice()?;
        let offsets: Vec<usize> = self
            .7
            .as_slice()?
            .iter()
            .map(|&offset| usize::try_from(offset))
            .collect::<Result<_, _>>()
            .map_err(|_| broken())?;
        let fits = offsets.first() == Some(&0)
            && offsets.is_sorted()
            && offsets.last() == Some(&tokens.len())
            && tokens.iter().all(|&token| (token as usize) < size);
        if !fits {
            return Err(broken());
        }
        let limits = RowLimits { terminals, sets, token_sets: offsets.len() as u32 - 1 };
        let letters: Vec<LexerLetter> =
            table(&self.0)?.into_iter().map(letter).collect::<PyResult<_>>()?;
        let rows = RowTable::saved(
            &letters,
            (self.1.as_slice()?, self.2.as_slice()?),
            &rows(&self.3)?,
            &rows(&self.4)?,
            &table(&self.5)?,
            limits,
        );
        let rows = rows.map_err(|error| raise(self.6.py(), &error))?;
        Ok((rows, Mapped { tokens: self.6.clone().unbind(), offsets }))
    }
}

fn rows(flat: &PyReadonlyArray1<'_, u32>) -> PyResult<Vec<LexerRow>> {
    let made = table(flat)?.into_iter().map(|[source, terminal, scanners, sequence, tokens]| {
        LexerRow { source, terminal, scanners, sequence, tokens }
    });
    Ok(made.collect())
}

/// Newline, indent, dedent, tab, opening and closing parentheses, whether they are balanced.
type Layouts = (u32, Option<u32>, Option<u32>, u32, Vec<u32>, Vec<u32>, bool);

fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct StoreEngine {
    inner: Mutex<Decoder>,
    pub(super) vocabulary: SharedVocabulary,
}

impl StoreEngine {
    fn lock(&self) -> MutexGuard<'_, Decoder> {
        // A panic in between would leave it as it was: steps only add what is known.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lock is never waited for while the interpreter is held, nor held while errors are made.
    pub(super) fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Decoder) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        py.detach(|| work(&mut self.lock())).map_err(|error| raise_store(py, &error))
    }
}

#[pymethods]
impl StoreEngine {
    #[new]
    #[pyo3(signature = (lexer, vocabulary, parser, ignored, indentation, scanner_of_state, max_starts, max_bytes, rows, progress=None))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        lexer: &LexerStore,
        vocabulary: &Vocabulary,
        parser: &StackParser,
        ignored: Vec<bool>,
        indentation: Option<Layouts>,
        scanner_of_state: Vec<u32>,
        max_starts: usize,
        max_bytes: usize,
        rows: SavedRows<'_>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let indentation =
            indentation.map(|(newline, indent, dedent, tab, opens, closes, is_balanced)| {
                Indentation { newline, indent, dedent, tab, opens, closes, is_balanced }
            });
        let parser = parser.copied(py);
        let store = lexer.shared();
        let call = Call::with(py, None, progress);
        let size = vocabulary.inner.len();
        let sets = py.detach(|| lock(&store).scanner_sets().len()) as u32;
        let (rows, tokens) = rows.read(ignored.len() as u32, sets, size)?;
        let made = py.detach(|| {
            let mut engine = Decoder::new(DecoderParts {
                lexer: store,
                rows,
                tokens: Box::new(tokens),
                size,
                parser,
                ignored,
                indentation,
                scanner_of_state,
                memory: Memory { max_starts, max_bytes },
            })?;
            engine.prepare(&call.interrupt)?;
            Ok(engine)
        });
        let engine = match made {
            Err(error) if !matches!(error, Error::Cancelled) => {
                return Err(raise_store(py, &error));
            }
            made => call.finish(py, made)?,
        };
        Ok(Self { inner: Mutex::new(engine), vocabulary: vocabulary.inner.clone() })
    }

    /// What is there, by name.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (counts, forgotten) =
            self.with(py, |engine| Ok((engine.counts(), engine.forgotten)))?;
        let out = PyDict::new(py);
        for (name, count) in counts {
            out.set_item(name, count)?;
        }
        out.set_item("forgotten", forgotten)?;
        Ok(out)
    }

    /// The rows of a lexer state before any predicate, with the letters that the parser reads
    /// (terminal, all bits for none, and the tops) and the number of their token set.
    fn raw_rows(
        &self,
        py: Python<'_>,
        state: u32,
        scanner: u32,
        layout: (u32, Vec<u32>, Option<u32>),
    ) -> PyResult<Vec<RawRow>> {
        let (parens, columns, column) = layout;
        let layout = Layout { parens, columns: columns.into(), column };
        if layout.columns.is_empty() {
            return Err(misuse("a layout has at least one column"));
        }
        self.with(py, |engine| {
            if state > engine.start() || scanner as usize >= engine.scanners() {
                return Err(Error::State("there is no such lexer state or scanner".into()));
            }
            Ok(engine.raw_rows(state, scanner, &layout))
        })
    }

    /// The tokens of a set.
    fn token_set<'py>(&self, py: Python<'py>, set: u32) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let tokens = self.with(py, |engine| engine.token_set(set))?;
        Ok(PyArray1::from_vec(py, tokens))
    }
}
