//! JSON Schema to grammars.

use crate::boundary::{Call, Interrupt, misuse};
use crate::grammar::{Grammar, limits};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokfold_core::budget::Budget;
use tokfold_core::json_schema::{self, Escapes, KeyOrder, SchemaOptions, Whitespace};

/// What a note says: the pointer, the keyword, why it says nothing about what is valid.
type Note = (String, String, String);

/// Options from a mapping of field names; a name that is no field is a mistake of the package.
pub(crate) fn options(fields: &Bound<'_, PyDict>) -> PyResult<SchemaOptions> {
    let mut options = SchemaOptions::default();
    for (name, value) in fields {
        let name: String = name.extract()?;
        match name.as_str() {
            "any_order" => {
                options.key_order = if value.extract()? { KeyOrder::Any } else { KeyOrder::Schema };
            }
            "max_whitespace" => options.whitespace = Whitespace::Any(value.extract()?),
            "separators" => {
                let (item, name): (String, String) = value.extract()?;
                options.whitespace = Whitespace::Separators(item.into(), name.into());
            }
            "indented" => {
                let (width, item, name): (u32, String, String) = value.extract()?;
                options.whitespace = Whitespace::Indented(width, item.into(), name.into());
            }
            "integers_with_fraction" => options.integers_with_fraction = value.extract()?,
            "escapes" => {
                options.escapes = match value.extract::<String>()?.as_str() {
                    "any" => Escapes::Any,
                    "plain" => Escapes::Plain,
                    _ => Escapes::Standard,
                };
            }
            "assert_formats" => options.assert_formats = value.extract()?,
            "open_objects" => options.open_objects = value.extract()?,
            "lossy_unique_items" => options.lossy_unique_items = value.extract()?,
            _ => return Err(misuse(format!("no option is named {name:?}"))),
        }
    }
    Ok(options)
}

/// The grammar of the texts that a schema allows, what of the schema says nothing, and where
/// `uniqueItems` is not enforced.
#[pyfunction]
#[pyo3(signature = (text, resources, options, limits=None, interrupt=None))]
pub(crate) fn convert_json_schema(
    py: Python<'_>,
    text: &str,
    resources: Vec<(String, String)>,
    options: &Bound<'_, PyDict>,
    limits: Option<&Bound<'_, PyDict>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<(Grammar, Vec<Note>, Vec<String>)> {
    let options = self::options(options)?;
    let limits = self::limits(limits)?;
    let call = Call::with(py, interrupt, None);
    let converted = call.run(py, |interrupt| {
        let budget = Budget::new(&limits, interrupt);
        json_schema::convert(text, &resources, &options, &limits, &budget)
    })?;
    let notes = converted.notes.into_iter();
    let notes = notes.map(|note| (note.pointer, note.keyword, note.reason)).collect();
    Ok((Grammar::of(converted.grammar), notes, converted.not_enforced))
}
