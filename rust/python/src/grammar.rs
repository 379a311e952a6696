//! `tokfold._core.Grammar`.

use crate::boundary::detached;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokfold_core::limits::Limits;
use tokfold_core::{grammar, syntax};

/// Limits from a mapping of field names; a name that is no field is a mistake of the package.
pub(crate) fn limits(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    let Some(fields) = fields else { return Ok(limits) };
    for (name, value) in fields {
        let name: String = name.extract()?;
        match name.as_str() {
            "max_grammar_bytes" => limits.max_grammar_bytes = value.extract()?,
            "max_rules" => limits.max_rules = value.extract()?,
            "max_nesting" => limits.max_nesting = value.extract()?,
            "max_network_states" => limits.max_network_states = value.extract()?,
            "max_network_edges" => limits.max_network_edges = value.extract()?,
            "max_network_work" => limits.max_network_work = value.extract()?,
            "max_stack_depth" => {
                // No stack is deeper than the number of its states.
                limits.max_stack_depth = u32::try_from(value.extract::<u64>()?).unwrap_or(u32::MAX);
            }
            "max_token_work" => limits.max_token_work = value.extract()?,
            "max_total_work" => limits.max_total_work = value.extract()?,
            "max_automaton_bytes" => limits.max_automaton_bytes = value.extract()?,
            _ => return Err(crate::boundary::misuse(format!("no limit is named {name:?}"))),
        }
    }
    Ok(limits)
}

#[pyclass(frozen, module = "tokfold._core")]
pub(crate) struct Grammar {
    pub(crate) inner: grammar::Grammar,
}

#[pymethods]
impl Grammar {
    #[new]
    #[pyo3(signature = (text, root, limits=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        root: &str,
        limits: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let limits = self::limits(limits)?;
        let inner = detached(py, || syntax::parse(text, root, &limits))?;
        Ok(Self { inner })
    }

    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| syntax::print(&self.inner))
    }

    fn rule_names(&self) -> Vec<String> {
        self.inner.rules().iter().map(|rule| rule.name.clone()).collect()
    }

    fn root(&self) -> String {
        self.inner.rule(self.inner.root()).name.clone()
    }
}

/// Grammar text as XGrammar prints it, with its hexadecimal escapes made unambiguous.
#[pyfunction]
pub(crate) fn repair_printed(py: Python<'_>, text: &str) -> String {
    py.detach(|| syntax::repair_printed(text).into_owned())
}
