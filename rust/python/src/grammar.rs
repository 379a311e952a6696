//! `tokfold._core.Grammar`.

use crate::boundary::{Call, Heavy, Interrupt, OffGil, misuse, raise};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use tokfold_core::budget::Budget;
use tokfold_core::error::Error;
use tokfold_core::grammar;
use tokfold_core::grammar::Expr;
use tokfold_core::ids::RuleId;
use tokfold_core::limits::Limits;
use tokfold_core::network::{self, NetworkOptions, NetworkPart, PartCache};
use tokfold_core::regular::Bounds;
use tokfold_core::syntax::{self, NamedTokens};

/// A record of the core with the fields of the same names of a Python object, and some others.
macro_rules! from_fields {
    ($record:ident of $given:ident: $($name:ident),+ $(; $other:ident: $value:expr)*) => {
        $record {
            $($name: $given.getattr(pyo3::intern!($given.py(), stringify!($name)))?.extract()?,)+
            $($other: $value,)*
        }
    };
}
pub(crate) use from_fields;

/// The bounds of a `tokfold.Limits` on grammars and classes.
pub(crate) fn limits(given: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    let Some(given) = given else { return Ok(Limits::default()) };
    let depth: u64 = given.getattr("max_stack_depth")?.extract()?;
    Ok(from_fields!(
        Limits of given:
        max_grammar_bytes, max_rules, max_nesting, max_schema_formulas, max_schema_states,
        max_automaton_states, max_network_states, max_network_edges, max_network_work, max_set_bytes,
        max_token_work, max_total_work, max_automaton_bytes;
        // No stack is deeper than the number of its states.
        max_stack_depth: u32::try_from(depth).unwrap_or(u32::MAX)
    ))
}

/// The part of a grammar; `None` where it has no string.
pub(crate) type MadePart = Option<Arc<NetworkPart>>;

/// A part with the options under which it was made.
#[derive(Default)]
pub(crate) struct Made(Mutex<Option<(String, MadePart)>>);

impl Made {
    /// The part under some options, made when first asked for.
    pub(crate) fn get(
        &self,
        options: &str,
        make: impl FnOnce() -> Result<MadePart, Error>,
    ) -> Result<MadePart, Error> {
        let made = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, part)) = &*made()
            && known == options
        {
            return Ok(part.clone());
        }
        // Two threads may both make it: what they make is the same.
        let part = make()?;
        *made() = Some((options.to_owned(), part.clone()));
        Ok(part)
    }
}

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Grammar {
    pub(crate) inner: OffGil<grammar::Grammar>,
    part: Made,
}

/// Expressions of a grammar that takes a while to drop.
const MANY_EXPRESSIONS: usize = 1 << 13;

impl Heavy for grammar::Grammar {
    fn is_heavy(&self) -> bool {
        self.exprs().len() > MANY_EXPRESSIONS
    }
}

impl Grammar {
    pub(crate) fn of(inner: grammar::Grammar) -> Self {
        Self { inner: OffGil::new(inner), part: Made::default() }
    }

    /// The grammar as a part of others, made when first asked for; `None` where it has no string.
    pub(crate) fn part(
        &self,
        (options, name): (&NetworkOptions, &str),
        cache: &PartCache,
        work: &Budget,
    ) -> Result<MadePart, Error> {
        self.part.get(name, || NetworkPart::of(&self.inner, options, cache, work))
    }
}

impl Grammar {
    /// Each part with the rule in whose place it stands.
    pub(crate) fn placed<'p, P>(&self, parts: &'p [(String, P)]) -> PyResult<Vec<(RuleId, &'p P)>> {
        let rules = self.inner.rules().iter().map(|rule| rule.name.as_str());
        let rules: HashMap<&str, RuleId> = rules.zip((0..).map(RuleId::new)).collect();
        let found = parts.iter().map(|(name, part)| match rules.get(name.as_str()) {
            Some(&rule) => Ok((rule, part)),
            None => Err(misuse(format!("no rule is named {name:?}"))),
        });
        found.collect()
    }
}

/// Parts of grammars by what they say.
#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Parts {
    pub(crate) inner: PartCache,
}

#[pymethods]
impl Parts {
    #[new]
    fn new(max_bytes: usize) -> Self {
        Self { inner: PartCache::new(max_bytes) }
    }

    fn clear(&self, py: Python<'_>) {
        py.detach(|| self.inner.clear());
    }

    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = py.detach(|| self.inner.counters());
        let out = PyDict::new(py);
        out.set_item("hits", counters.hits)?;
        out.set_item("misses", counters.misses)?;
        out.set_item("evicted", counters.evicted)?;
        out.set_item("parts", counters.parts)?;
        out.set_item("bytes", counters.bytes)?;
        Ok(out)
    }
}

#[pymethods]
impl Grammar {
    #[new]
    #[pyo3(signature = (text, root, limits=None, interrupt=None, tokens=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        root: &str,
        limits: Option<&Bound<'_, PyAny>>,
        interrupt: Option<&Interrupt>,
        tokens: Option<NamedTokens>,
    ) -> PyResult<Self> {
        let limits = self::limits(limits)?;
        let inner = Call::with(py, interrupt, None).run(py, |interrupt| {
            syntax::parse_with_tokens(text, root, tokens.as_ref(), &limits, interrupt)
        })?;
        Ok(Self::of(inner))
    }

    fn text(&self, py: Python<'_>) -> PyResult<String> {
        if self.inner.has_unique_items() {
            let refused = Error::Unsupported {
                construct: "uniqueItems".into(),
                message:
                    "grammar text cannot say that the items of an array are all different; leave \
                          the keyword out of the schema for a grammar that has a text"
                        .into(),
                position: self.inner.rule(self.inner.root()).position,
            };
            return Err(raise(py, &refused));
        }
        if self.inner.has_guards() {
            let refused = Error::Unsupported {
                construct: "members in any order".into(),
                message: "grammar text cannot say that members stand in any order, each at most \
                          once; for a grammar that has a text pass key_order=\"schema\", and where \
                          propertyNames lists names, list them in properties"
                    .into(),
                position: self.inner.rule(self.inner.root()).position,
            };
            return Err(raise(py, &refused));
        }
        if py.detach(|| self.inner.counts_far()) {
            let refused = Error::Unsupported {
                construct: "lengths beside patterns and formats".into(),
                message: "grammar text writes an automaton out once for each length, and these \
                          are too many; lower minLength and maxLength for a grammar that has a \
                          text"
                    .into(),
                position: self.inner.rule(self.inner.root()).position,
            };
            return Err(raise(py, &refused));
        }
        Ok(py.detach(|| {
            let plain = match self.inner.has_automata() {
                true => self.inner.without_automata(),
                false => None,
            };
            syntax::print(plain.as_ref().unwrap_or(&self.inner))
        }))
    }

    /// Whether it has automata, which are written as rules.
    fn has_automata(&self) -> bool {
        self.inner.has_automata()
    }

    /// The names of the macros that the root can reach, each once.
    fn macro_names(&self, py: Python<'_>) -> BTreeSet<String> {
        let name = |id| match self.inner.expr(id) {
            Expr::Macro(call) => Some(call.name.clone()),
            _ => None,
        };
        py.detach(|| self.inner.macros().into_iter().filter_map(name).collect())
    }

    /// The grammar in which some rules are the roots of other grammars, which is not too large.
    fn composed(&self, py: Python<'_>, parts: Vec<(String, PyRef<'_, Grammar>)>) -> PyResult<Self> {
        let found = self.placed(&parts)?;
        let found: Vec<_> = found.into_iter().map(|(rule, part)| (rule, &*part.inner)).collect();
        let inner = py.detach(|| self.inner.composed(&found));
        Ok(Self::of(inner))
    }

    /// The same grammar without lookahead, which its rules imply.
    fn without_lookahead(&self, py: Python<'_>) -> Self {
        Self::of(py.detach(|| self.inner.without_lookahead()))
    }

    /// The name of a rule whose lookahead the rules do not imply, where anything may follow the grammar.
    fn narrowing_lookahead(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let found = Call::with(py, None, None).run(py, |interrupt| {
            network::narrowing_part(&self.inner, &Budget::new(&Limits::default(), interrupt))
        })?;
        Ok(found.map(|rule| self.inner.rule(rule).name.clone()))
    }

    /// Whether a rule has the option `max_chars`, `max_tokens` or `lazy`.
    fn has_bounded_rules(&self) -> bool {
        self.inner.has_bounded_rules()
    }

    /// Replaces macros that are read byte by byte, and rules with `max_chars`, `max_tokens` or `lazy`, by automata.
    #[pyo3(signature = (limits=None, interrupt=None))]
    fn with_automata(
        &self,
        py: Python<'_>,
        limits: Option<&Bound<'_, PyAny>>,
        interrupt: Option<&Interrupt>,
    ) -> PyResult<Self> {
        let limits = self::limits(limits)?;
        let inner = Call::with(py, interrupt, None).run(py, |interrupt| {
            let budget = Budget::new(&limits, interrupt);
            let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
            let meant = self.inner.with_dispatches(&limits)?.with_languages(&bounds)?;
            meant.with_bounded_rules(limits.max_automaton_states, &budget)
        })?;
        Ok(Self::of(inner))
    }

    /// `max_tokens` of each rule that has it, by name.
    fn token_bounds(&self) -> Vec<(String, u32)> {
        let rules = self.inner.rules().iter();
        rules.filter_map(|rule| Some((rule.name.clone(), rule.options.max_tokens?))).collect()
    }

    fn rule_names(&self) -> Vec<String> {
        self.inner.rules().iter().map(|rule| rule.name.clone()).collect()
    }

    fn num_rules(&self) -> usize {
        self.inner.rules().len()
    }

    /// Expressions, and the states and edges of automata.
    fn size(&self) -> usize {
        self.inner.size()
    }

    fn root(&self) -> String {
        self.inner.rule(self.inner.root()).name.clone()
    }
}

/// A digest of a text, made without the GIL: it stands for the text in tables.
#[pyfunction]
pub(crate) fn digest<'py>(py: Python<'py>, text: &str) -> Bound<'py, PyBytes> {
    let digest = py.detach(|| tokfold_core::digest(text.as_bytes()));
    PyBytes::new(py, &digest)
}

/// The texts by which a grammar text names tokens, each once.
#[pyfunction]
pub(crate) fn token_names(py: Python<'_>, text: &str) -> Vec<String> {
    py.detach(|| syntax::token_names(text).into_iter().map(Into::into).collect())
}

/// Grammar text as XGrammar prints it, with its hexadecimal escapes made unambiguous.
#[pyfunction]
pub(crate) fn repair_printed(py: Python<'_>, text: &str) -> String {
    py.detach(|| syntax::repair_printed(text).into_owned())
}
