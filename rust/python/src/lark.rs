//! Lark grammars.

use crate::boundary::{Call, Interrupt, misuse};
use crate::grammar::{Grammar, limits};
use crate::json_schema::options;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashMap;
use tokfold_core::budget::Budget;
use tokfold_core::error::{Error, Position};
use tokfold_core::grammar;
use tokfold_core::json_schema::{self, SchemaOptions};
use tokfold_core::lark::{self, LarkOptions, NamedGrammar, Subgrammars, TokenIds};
use tokfold_core::limits::Limits;
use tokfold_core::regular::Bounds;
use tokfold_core::regular::pattern::PatternDialect;

/// A grammar that a text names: Lark text, or a grammar.
#[derive(FromPyObject)]
pub(crate) enum Given {
    Text(String),
    Grammar(Py<Grammar>),
}

struct Outside<'a> {
    named: HashMap<String, NamedGrammar>,
    tokens: Option<HashMap<String, Vec<u32>>>,
    options: SchemaOptions,
    limits: Limits,
    budget: &'a Budget,
}

impl Subgrammars for Outside<'_> {
    fn json_schema(&mut self, text: &str, _: Position) -> Result<grammar::Grammar, Error> {
        let converted = json_schema::convert(text, &[], &self.options, &self.limits, self.budget)?;
        Ok(converted.grammar)
    }

    fn grammar(&mut self, name: &str) -> Result<Option<NamedGrammar>, Error> {
        Ok(self.named.get(name).cloned())
    }

    fn tokens(&mut self, text: &str) -> TokenIds {
        match &self.tokens {
            None => TokenIds::Unknown,
            Some(known) => TokenIds::Ids(known.get(text).cloned().unwrap_or_default()),
        }
    }
}

/// The grammar of Lark text. `tokens` has the ids of the tokens that the text may name, by their texts;
/// without a vocabulary it is missing.
#[pyfunction]
#[pyo3(signature = (
    text, start, dialect, named, tokens, schema_options, limits=None, interrupt=None
))]
#[expect(clippy::too_many_arguments, reason = "the Python package names them")]
pub(crate) fn read_lark(
    py: Python<'_>,
    text: &str,
    start: String,
    dialect: &str,
    named: HashMap<String, Given>,
    tokens: Option<HashMap<String, Vec<u32>>>,
    schema_options: &Bound<'_, PyDict>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Grammar> {
    let dialect = dialect_of(dialect)?;
    let schema_options = options(schema_options)?;
    let limits = self::limits(limits)?;
    let mut texts: HashMap<String, NamedGrammar> = HashMap::new();
    for (name, given) in named {
        match given {
            Given::Text(text) => {
                texts.insert(name, NamedGrammar::Lark(text));
            }
            Given::Grammar(given) => {
                texts.insert(name, NamedGrammar::Grammar((*given.get().inner).clone()));
            }
        }
    }
    let call = Call::with(py, interrupt, None);
    let inner = call.run(py, |interrupt| {
        let budget = Budget::new(&limits, interrupt);
        let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
        let mut outside = Outside {
            named: texts,
            tokens,
            options: schema_options,
            limits: limits.clone(),
            budget: &budget,
        };
        let options = LarkOptions { start, dialect, limits: limits.clone() };
        lark::read(text, &options, &mut outside, &bounds)
    })?;
    Ok(Grammar::of(inner))
}

/// What there is to say of Lark text that can be read: lines, columns, names and messages.
#[pyfunction]
#[pyo3(signature = (text, start, dialect, limits=None, interrupt=None))]
pub(crate) fn lark_notes(
    py: Python<'_>,
    text: &str,
    start: String,
    dialect: &str,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Vec<(u32, u32, String, String)>> {
    let limits = self::limits(limits)?;
    let options = LarkOptions { start, dialect: dialect_of(dialect)?, limits };
    let notes = Call::with(py, interrupt, None).run(py, |interrupt| {
        let budget = Budget::new(&options.limits, interrupt);
        let max_states = options.limits.max_automaton_states;
        lark::notes(text, &options, &Bounds { budget: &budget, max_states })
    })?;
    let said =
        |note: lark::LarkNote| (note.position.line, note.position.column, note.name, note.message);
    Ok(notes.into_iter().map(said).collect())
}

fn dialect_of(name: &str) -> PyResult<PatternDialect> {
    match name {
        "rust" => Ok(PatternDialect::Rust),
        "python" => Ok(PatternDialect::Python),
        _ => Err(misuse(format!("no dialect is named {name:?}"))),
    }
}
