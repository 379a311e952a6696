//! `tokfold._core.Engine`, and what is made of one: matchers, alone and in batches.
//!
//! - `matcher`: one text, by one thread at a time; `batch`: many in one call, in threads, after a check of their rows; `rows`: rows of bitmasks as numpy has them

mod batch;
mod matcher;
mod rows;

pub(crate) use batch::{accept_batch, fill_batch, fill_batch_each, rollback_batch};
pub(crate) use matcher::Matcher;

use crate::boundary::{Call, Heavy, Interrupt, MANY_BYTES, OffGil, detached, misuse};
use crate::grammar::{Grammar, MadePart, Parts, from_fields, limits};
use crate::pieces::Piece;
use crate::pool::Pool;
use crate::vocabulary::Vocabulary;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::borrow::Cow;
use std::sync::Arc;
use tokfold_core::budget::Budget;
use tokfold_core::classes::{self, ClassOptions, TokenClasses};
use tokfold_core::compile::{CompileOptions, Source, compile};
use tokfold_core::engine::{self, EngineLimits, EngineOptions, Representation};
use tokfold_core::error::Error;
use tokfold_core::grammar;
use tokfold_core::ids::RuleId;
use tokfold_core::network::{LeftRecursion, NetworkOptions, PartCache};

/// The bounds of a `tokfold.Limits` on masks and matchers.
fn engine_limits(given: Option<&Bound<'_, PyAny>>) -> PyResult<EngineLimits> {
    let Some(given) = given else { return Ok(EngineLimits::default()) };
    Ok(from_fields!(
        EngineLimits of given:
        max_mask_work, max_accept_work, max_memo_bytes, max_row_bytes, max_matcher_bytes,
        max_mask_milliseconds, max_accept_milliseconds
    ))
}

/// Parts by the names of the rules for which they stand, and where parts are kept.
type NamedParts<'p> = (Vec<(String, Piece)>, PyRef<'p, Parts>);

/// Makes the parts that stand in the place of rules.
fn made_of(
    parts: &[(RuleId, &Piece)],
    cache: &PartCache,
) -> impl Fn(&NetworkOptions, &Budget) -> Result<Vec<(RuleId, MadePart)>, Error> {
    move |options, work| {
        let name = format!("{options:?}");
        let part = |piece: &Piece| piece.part((options, &name), cache, work);
        parts.iter().map(|&(rule, piece)| Ok((rule, part(piece)?))).collect()
    }
}

/// A grammar with parts in the place of rules, as one.
fn composed<'g>(
    frame: &'g grammar::Grammar,
    parts: &[(RuleId, Piece)],
) -> Cow<'g, grammar::Grammar> {
    if parts.is_empty() {
        return Cow::Borrowed(frame);
    }
    let parts: Vec<_> = parts.iter().map(|(rule, piece)| (*rule, piece.grammar())).collect();
    let parts: Vec<_> = parts.iter().map(|(rule, part)| (*rule, &**part)).collect();
    Cow::Owned(frame.composed(&parts))
}

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Engine {
    inner: OffGil<Arc<engine::Engine>>,
}

impl Heavy for Arc<engine::Engine> {
    fn is_heavy(&self) -> bool {
        Arc::strong_count(self) == 1 && self.network().bytes() > MANY_BYTES
    }
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (grammar, vocabulary, *, skip_lookahead, counters=true, limits=None, pool=None, representation="auto", parts=None, loops=true, interrupt=None))]
    // The arguments are those of the Python signature, which names them all.
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        grammar: Py<Grammar>,
        vocabulary: &Vocabulary,
        skip_lookahead: bool,
        counters: bool,
        limits: Option<&Bound<'_, PyAny>>,
        pool: Option<&Pool>,
        representation: &str,
        parts: Option<NamedParts<'_>>,
        loops: bool,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Self> {
        let representation = match representation {
            "auto" => Representation::Automatic,
            "stack" => Representation::Stacks,
            "chart" => Representation::Chart,
            other => return Err(misuse(format!("no representation is named {other:?}"))),
        };
        if pool.is_some_and(|pool| !pool.vocabulary.is(&vocabulary.inner)) {
            return Err(misuse("the pool is of another vocabulary"));
        }
        let mut options = CompileOptions::default();
        options.network.skip_lookahead = skip_lookahead;
        options.network.counters = counters;
        options.network.limits = self::limits(limits)?;
        if !loops {
            options.network.left_recursion = LeftRecursion::Kept;
        }
        options.engine = EngineOptions {
            representation,
            pool: pool.map(|pool| pool.inner.clone()),
            limits: engine_limits(limits)?,
        };
        let frame = grammar.get();
        let placed = match &parts {
            Some((parts, cache)) => Some((frame.placed(parts)?, &cache.inner)),
            None => None,
        };
        let inner = Call::with(py, interrupt, None).run(py, |interrupt| {
            let made;
            let source = match &placed {
                None => Source::Grammar(&frame.inner),
                Some((parts, cache)) => {
                    made = made_of(parts, cache);
                    Source::Frame(&frame.inner, &made)
                }
            };
            compile(source, &vocabulary.inner, &options, interrupt)
        })?;
        let parts: Vec<(RuleId, Piece)> = match placed {
            Some((placed, _)) => {
                placed.into_iter().map(|(rule, piece)| (rule, piece.clone_ref(py))).collect()
            }
            None => Vec::new(),
        };
        let vocabulary = vocabulary.inner.clone();
        let options = ClassOptions {
            skip_lookahead,
            for_ends: true,
            limits: options.network.limits,
            ..ClassOptions::default()
        };
        inner.fold_by(Box::new(move |interrupt| {
            let whole = composed(&grammar.get().inner, &parts);
            let made = classes::compile(&whole, &vocabulary, &options, interrupt);
            made.map(|(classes, _)| classes)
        }));
        Ok(Self { inner: OffGil::new(inner) })
    }

    /// Takes up classes: masks then walk over their representatives.
    fn take_classes(
        &self,
        py: Python<'_>,
        class_of: PyReadonlyArray1<'_, i32>,
        representatives: PyReadonlyArray1<'_, u32>,
        num_stop_classes: usize,
    ) -> PyResult<bool> {
        let classes = TokenClasses {
            class_of: class_of.as_slice()?.to_vec(),
            representatives: representatives.as_slice()?.to_vec(),
            num_stop_classes,
        };
        detached(py, || self.inner.take_classes(&classes))
    }

    /// Makes the answers that are likely to cost most, ahead of time; returns how many.
    #[pyo3(signature = (count, interrupt=None))]
    fn warm(&self, py: Python<'_>, count: usize, interrupt: Option<&Interrupt>) -> PyResult<usize> {
        Call::with(py, interrupt, None).run(py, |interrupt| self.inner.warm(count, interrupt))
    }

    /// Makes what questions about the end of a text share, ahead of the first one.
    #[pyo3(signature = (interrupt=None))]
    fn prepare_ending(&self, py: Python<'_>, interrupt: Option<&Interrupt>) -> PyResult<()> {
        Call::with(py, interrupt, None).run(py, |interrupt| self.inner.prepare_ending(interrupt))
    }

    /// Sets of bytes that are not written, of each of which every text has one; None where some text
    /// has none.
    #[pyo3(signature = (written, interrupt=None))]
    fn needed_bytes<'py>(
        &self,
        py: Python<'py>,
        written: &[u8],
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
        let mut has = [false; 256];
        written.iter().for_each(|&byte| has[byte as usize] = true);
        let call = Call::with(py, interrupt, None);
        let needed = call.run(py, |interrupt| self.inner.needed_bytes(&has, interrupt))?;
        Ok(needed.map(|sets| sets.iter().map(|bytes| PyBytes::new(py, bytes)).collect()))
    }

    /// Whether texts are known to be finitely many.
    #[pyo3(signature = (interrupt=None))]
    fn is_finite(&self, py: Python<'_>, interrupt: Option<&Interrupt>) -> PyResult<bool> {
        Call::with(py, interrupt, None).run(py, |interrupt| self.inner.is_finite(interrupt))
    }

    /// Forgets every answer: for measuring what masks cost at first sight.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| self.inner.forget());
    }

    #[getter]
    fn has_classes(&self) -> bool {
        self.inner.has_classes()
    }

    #[getter]
    fn fingerprint(&self) -> u64 {
        self.inner.fingerprint()
    }

    #[getter]
    fn network_states(&self) -> usize {
        self.inner.network().len()
    }

    /// Whether only charts can read the network.
    #[getter]
    fn is_for_charts(&self) -> bool {
        self.inner.network().is_for_charts()
    }

    #[getter]
    fn network_bytes(&self) -> usize {
        self.inner.network().bytes()
    }

    #[getter]
    fn bytes_held(&self) -> usize {
        self.inner.bytes()
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.inner.counters();
        let out = PyDict::new(py);
        out.set_item("masks", counters.masks)?;
        out.set_item("sets_visited", counters.visits)?;
        out.set_item("memo_hits", counters.hits)?;
        out.set_item("memo_misses", counters.misses)?;
        out.set_item("memo_shared", counters.shared)?;
        out.set_item("trie_nodes", counters.trie_nodes)?;
        out.set_item("direct_masks", counters.direct)?;
        out.set_item("worst_mask_microseconds", self.inner.worst_mask_microseconds())?;
        Ok(out)
    }
}
