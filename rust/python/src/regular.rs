//! Regular expressions and sets of texts to grammars.

use crate::boundary::{Call, Interrupt, misuse};
use crate::grammar::{Grammar, limits};
use pyo3::prelude::*;
use tokfold_core::budget::Budget;
use tokfold_core::regular::Bounds;
use tokfold_core::regular::grammars::{self, Operation};
use tokfold_core::regular::pattern::{PatternDialect, parse};

/// An operation in postfix notation: its name, and for a pattern the text, the dialect, the flags and
/// whether a match within the text counts, for texts these, for a repetition its bounds.
#[derive(FromPyObject)]
pub(crate) enum Step {
    Pattern(String, String, String, bool),
    Texts(Vec<String>),
    Repetition(u32, Option<u32>),
    Operation(String),
}

/// The grammar of a regular language that operations make.
#[pyfunction]
#[pyo3(signature = (steps, limits=None, interrupt=None))]
pub(crate) fn regular_grammar(
    py: Python<'_>,
    steps: Vec<Step>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Grammar> {
    let limits = self::limits(limits)?;
    for step in &steps {
        if let Step::Pattern(_, dialect, ..) = step
            && dialect_of(dialect).is_none()
        {
            return Err(misuse(format!("no dialect is named {dialect:?}")));
        }
    }
    let call = Call::with(py, interrupt, None);
    let inner = call.run(py, |interrupt| {
        let budget = Budget::new(&limits, interrupt);
        let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
        let mut operations = Vec::with_capacity(steps.len());
        for step in steps {
            operations.push(match step {
                Step::Pattern(text, dialect, flags, search) => {
                    let dialect = dialect_of(&dialect).unwrap_or(PatternDialect::Ecma);
                    budget.spend(1 + text.len())?;
                    let pattern =
                        parse(&text, dialect, &flags).map_err(|error| error.into_error(&text))?;
                    Operation::Pattern(pattern, search)
                }
                Step::Texts(texts) => Operation::Texts(texts),
                Step::Repetition(min, max) => Operation::Repetition(min, max),
                Step::Operation(name) => match name.as_str() {
                    "and" => Operation::Intersection,
                    "or" => Operation::Union,
                    "then" => Operation::Concatenation,
                    _ => Operation::Complement,
                },
            });
        }
        grammars::grammar(&operations, &bounds)
    })?;
    Ok(Grammar::of(inner))
}

fn dialect_of(name: &str) -> Option<PatternDialect> {
    Some(match name {
        "ecma" => PatternDialect::Ecma,
        "python" => PatternDialect::Python,
        "rust" => PatternDialect::Rust,
        _ => return None,
    })
}
