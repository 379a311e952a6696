//! `tokfold._core.LexerStore`: rows of a mask store before any parser looks at them.

use crate::boundary::{Call, detached, misuse};
use crate::vocabulary::Vocabulary;
use numpy::{PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex};
use tokfold_mask_store::{
    Embedded, EndCondition, Joints, LexerLetter, LexerRow, LexerRows, Newline, NewlineColumn,
    SavedLexer, Scanners, Store, TerminalAutomata, WalkLimits,
};

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct LexerStore {
    inner: Arc<Mutex<Store>>,
}

/// A letter: terminal, scanners, kind of column, column.
type Quad = (u32, u32, u32, u32);

/// One way of a text: scanners, letters, the state after it.
type Way = (u32, Vec<Quad>, Option<u32>);

fn quad(letter: &LexerLetter) -> Quad {
    let (kind, value) = match letter.column {
        NewlineColumn::None => (0, 0),
        NewlineColumn::Open(fed) => (1, u32::from(fed)),
        NewlineColumn::At(at) => (2, at),
        NewlineColumn::After(by) => (3, by),
        NewlineColumn::Missing => (4, 0),
    };
    (letter.terminal, letter.scanners, kind, value)
}

/// The letter of four numbers; see [`quad`].
pub(super) fn letter([terminal, scanners, kind, value]: [u32; 4]) -> PyResult<LexerLetter> {
    let column = match kind {
        0 => NewlineColumn::None,
        1 => NewlineColumn::Open(value != 0),
        2 => NewlineColumn::At(value),
        3 => NewlineColumn::After(value),
        4 => NewlineColumn::Missing,
        _ => return Err(misuse("there is no such kind of column")),
    };
    Ok(LexerLetter { terminal, scanners, column })
}

fn flat(rows: &[LexerRow]) -> Vec<u32> {
    rows.iter().flat_map(|r| [r.source, r.terminal, r.scanners, r.sequence, r.tokens]).collect()
}

/// The tokens of all sets, one after the other, and where each begins.
fn sets<'py>(
    py: Python<'py>,
    rows: &LexerRows,
) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>) {
    let mut offsets = vec![0i64];
    let mut tokens = Vec::new();
    for set in &rows.token_sets {
        tokens.extend_from_slice(set);
        offsets.push(tokens.len() as i64);
    }
    (PyArray1::from_vec(py, tokens), PyArray1::from_vec(py, offsets))
}

impl LexerStore {
    pub(super) fn shared(&self) -> Arc<Mutex<Store>> {
        self.inner.clone()
    }

    fn with<T>(&self, f: impl FnOnce(&mut Store) -> T) -> T {
        // A panic in between would leave the store as it was: steps only add what is known.
        f(&mut self.inner.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }
}

/// Automata of terminals, and the scanners that look for them.
#[derive(FromPyObject)]
struct Lexicon<'py>(
    PyReadonlyArray1<'py, i32>,
    Vec<u32>,
    Vec<(bool, u32)>,
    Vec<u32>,
    Vec<bool>,
    Option<(u32, u32)>,
    Vec<Vec<u32>>,
    Vec<Vec<u32>>,
    Vec<(u32, u32, bool)>,
);

impl Lexicon<'_> {
    /// The joint states of the terminals, none of them met yet.
    fn joints(self, py: Python<'_>, separate: bool) -> PyResult<Joints> {
        let Self(moves, ends, conditions, offsets, ignored, newline, scanners, after, embedded) =
            self;
        let moves = moves.as_slice()?.to_vec();
        detached(py, || {
            let conditions: Vec<EndCondition> = conditions
                .into_iter()
                .map(|(negated, state)| EndCondition { negated, state })
                .collect();
            let newline = newline.map(|(terminal, tab)| Newline { terminal, tab });
            let terminals =
                TerminalAutomata::new(&moves, &ends, &conditions, &offsets, ignored, newline)?;
            let embedded: Vec<Embedded> = embedded
                .into_iter()
                .map(|(pattern, string, is_hidden)| Embedded { pattern, string, is_hidden })
                .collect();
            let scanners = Scanners::new(terminals.len(), &scanners, &after, &embedded)?;
            Ok(Joints::new(terminals, scanners, separate))
        })
    }
}

/// Rows of so many numbers each.
pub(super) fn table<const N: usize>(flat: &PyReadonlyArray1<'_, u32>) -> PyResult<Vec<[u32; N]>> {
    let (rows, rest) = flat.as_slice()?.as_chunks::<N>();
    match rest.is_empty() {
        true => Ok(rows.to_vec()),
        false => Err(misuse("an array of numbers has another length")),
    }
}

#[pymethods]
impl LexerStore {
    #[new]
    #[pyo3(signature = (vocabulary, lexicon, separate, max_states, max_work, progress=None))]
    fn new(
        py: Python<'_>,
        vocabulary: &Vocabulary,
        lexicon: Lexicon<'_>,
        separate: bool,
        max_states: usize,
        max_work: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let vocabulary = vocabulary.inner.clone();
        let joints = lexicon.joints(py, separate)?;
        let limits = WalkLimits { max_states, max_work };
        let call = Call::with(py, None, progress);
        let store =
            call.run(py, |interrupt| Store::new(joints, &vocabulary, &limits, interrupt))?;
        Ok(Self { inner: Arc::new(Mutex::new(store)) })
    }

    /// A store of the states that [`Self::saved`] gave, of the same terminals and scanners.
    #[staticmethod]
    #[allow(clippy::too_many_arguments)]
    fn restored(
        py: Python<'_>,
        lexicon: Lexicon<'_>,
        scanner_sets: PyReadonlyArray1<'_, u64>,
        questions: PyReadonlyArray1<'_, u32>,
        question_offsets: PyReadonlyArray1<'_, u32>,
        entries: PyReadonlyArray1<'_, u32>,
        entry_offsets: PyReadonlyArray1<'_, u32>,
        configurations: PyReadonlyArray1<'_, u32>,
        states: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Self> {
        let saved = SavedLexer {
            scanner_sets: scanner_sets.as_slice()?.to_vec(),
            questions: questions.as_slice()?.to_vec(),
            question_offsets: question_offsets.as_slice()?.to_vec(),
            entries: table(&entries)?,
            entry_offsets: entry_offsets.as_slice()?.to_vec(),
            configurations: table(&configurations)?,
            states: table(&states)?,
        };
        let joints = lexicon.joints(py, false)?;
        let store = detached(py, || Store::restored(joints, &saved))?;
        Ok(Self { inner: Arc::new(Mutex::new(store)) })
    }

    /// The states, in the order in which [`Self::restored`] takes them.
    fn saved<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let saved = self.with(|store| store.saved());
        let out = PyDict::new(py);
        out.set_item("scanner_sets", PyArray1::from_vec(py, saved.scanner_sets))?;
        out.set_item("questions", PyArray1::from_vec(py, saved.questions))?;
        out.set_item("question_offsets", PyArray1::from_vec(py, saved.question_offsets))?;
        out.set_item("entries", PyArray1::from_vec(py, saved.entries.concat()))?;
        out.set_item("entry_offsets", PyArray1::from_vec(py, saved.entry_offsets))?;
        out.set_item("configurations", PyArray1::from_vec(py, saved.configurations.concat()))?;
        out.set_item("states", PyArray1::from_vec(py, saved.states.concat()))?;
        Ok(out)
    }

    /// Lets go of the ways of single tokens.
    fn release(&self) {
        self.with(|store| store.release());
    }

    /// Whether the ways of single tokens are here: not in a store that was saved.
    fn has_ways(&self) -> bool {
        self.with(|store| store.has_ways())
    }

    /// Configuration and terminal of each state; the start of a text is the state behind the last.
    fn states(&self) -> Vec<(u32, u32)> {
        self.with(|store| store.states().to_vec())
    }

    fn letters(&self) -> Vec<Quad> {
        self.with(|store| store.letters().iter().map(quad).collect())
    }

    /// Letters of all sequences with offsets.
    fn sequences<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<u32>>) {
        let (letters, offsets) = self.with(|store| store.sequences());
        (PyArray1::from_vec(py, letters), PyArray1::from_vec(py, offsets))
    }

    /// Words of 64 scanners of all sets, one after the other.
    fn scanner_sets<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u64>> {
        let words = self.with(|store| store.scanner_sets().concat());
        PyArray1::from_vec(py, words)
    }

    /// Joint states, configurations, sets of open questions; work.
    fn sizes(&self) -> ([usize; 3], u64) {
        self.with(|store| (store.sizes(), store.work))
    }

    /// Configuration, terminal, scanners, part: what follows an end at the first byte.
    fn at_once<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, numpy::PyArray2<u32>>> {
        let rows = self.with(|store| store.at_once());
        PyArray1::from_vec(py, rows.concat()).reshape([rows.len(), 4])
    }

    /// Rows of the parts, rows of the configurations (source, terminal, scanners, sequence, tokens),
    /// tokens of all sets with offsets.
    #[allow(clippy::type_complexity)]
    fn rows<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Bound<'py, numpy::PyArray2<u32>>,
        Bound<'py, numpy::PyArray2<u32>>,
        Bound<'py, PyArray1<u32>>,
        Bound<'py, PyArray1<i64>>,
    )> {
        let (parts, own) = py.detach(|| self.with(|store| store.rows()));
        let (tokens, offsets) = sets(py, &own);
        Ok((
            PyArray1::from_vec(py, flat(&parts)).reshape([parts.len(), 5])?,
            PyArray1::from_vec(py, flat(&own.rows)).reshape([own.rows.len(), 5])?,
            tokens,
            offsets,
        ))
    }

    /// The store over states of single terminals: counts (state, terminal, transitions, rows),
    /// rows, terminals of all sequences with offsets, tokens of all sets with offsets.
    fn joined<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (counts, rows, letters, offsets) = py.detach(|| self.with(|store| store.joined()));
        let out = PyDict::new(py);
        let counts: Vec<u64> = counts
            .iter()
            .flat_map(|c| [u64::from(c.state), u64::from(c.terminal), c.transitions, c.rows])
            .collect();
        let states = counts.len() / 4;
        out.set_item("counts", PyArray1::from_vec(py, counts).reshape([states, 4])?)?;
        out.set_item(
            "rows",
            PyArray1::from_vec(py, flat(&rows.rows)).reshape([rows.rows.len(), 5])?,
        )?;
        out.set_item("letters", PyArray1::from_vec(py, letters))?;
        out.set_item("offsets", PyArray1::from_vec(py, offsets))?;
        let (tokens, token_offsets) = sets(py, &rows);
        out.set_item("tokens", tokens)?;
        out.set_item("token_offsets", token_offsets)?;
        Ok(out)
    }

    /// Every way of a text from a state: scanners, letters, the state after it.
    fn advance(&self, state: u32, data: &[u8]) -> PyResult<Vec<Way>> {
        self.with(|store| {
            if state > store.start() {
                return Err(misuse(format!("there is no lexer state {state}")));
            }
            let ways = store.advance(state, data);
            Ok(ways
                .into_iter()
                .map(|w| (w.scanners, w.letters.iter().map(quad).collect(), w.state))
                .collect())
        })
    }

    /// The scanners in which the text may end in a state, as far as the lexer is asked.
    fn complete(&self, state: u32) -> PyResult<u32> {
        self.with(|store| {
            if state > store.start() {
                return Err(misuse(format!("there is no lexer state {state}")));
            }
            Ok(store.complete(state))
        })
    }
}
