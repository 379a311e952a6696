//! What stands in place of a rule of a grammar: another grammar, or tags.

use crate::boundary::raise;
use crate::grammar::{Grammar, MadePart, limits};
use crate::tags::Tags;
use pyo3::prelude::*;
use std::borrow::Cow;
use tokfold_core::budget::Budget;
use tokfold_core::error::Error;
use tokfold_core::grammar;
use tokfold_core::network::{NetworkOptions, PartCache};

/// What stands in place of a rule.
#[derive(FromPyObject)]
pub(crate) enum Piece {
    Grammar(Py<Grammar>),
    Tags(Py<Tags>),
}

impl Piece {
    pub(crate) fn part(
        &self,
        options: (&NetworkOptions, &str),
        cache: &PartCache,
        work: &Budget,
    ) -> Result<MadePart, Error> {
        match self {
            Piece::Grammar(grammar) => grammar.get().part(options, cache, work),
            Piece::Tags(tags) => tags.get().part(options, cache, work),
        }
    }

    /// The grammar that a network is made of.
    pub(crate) fn grammar(&self) -> Cow<'_, grammar::Grammar> {
        match self {
            Piece::Grammar(grammar) => Cow::Borrowed(&*grammar.get().inner),
            Piece::Tags(tags) => Cow::Owned(tags.get().compiled()),
        }
    }

    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        match self {
            Piece::Grammar(grammar) => Piece::Grammar(grammar.clone_ref(py)),
            Piece::Tags(tags) => Piece::Tags(tags.clone_ref(py)),
        }
    }

    fn num_rules(&self) -> usize {
        match self {
            Piece::Grammar(grammar) => grammar.get().inner.rules().len(),
            Piece::Tags(tags) => tags.get().num_rules(),
        }
    }
}

/// Checks that the grammar in which some rules are the roots of others is not too large.
#[pyfunction]
#[pyo3(signature = (frame, parts, limits=None))]
pub(crate) fn check_composed(
    py: Python<'_>,
    frame: &Grammar,
    parts: Vec<(String, Piece)>,
    limits: Option<&Bound<'_, PyAny>>,
) -> PyResult<()> {
    let limits = self::limits(limits)?;
    frame.placed(&parts)?;
    let sizes = parts.iter().map(|(_, part)| part.num_rules());
    if frame.inner.rules().len() + sizes.sum::<usize>() > limits.max_rules {
        let message = "the parts have more rules together; use fewer, or raise the limit";
        let value = limits.max_rules as u64;
        let error = Error::Limit { limit: "max_rules", value, message: message.into() };
        return Err(raise(py, &error));
    }
    Ok(())
}
