//! JSON Schema to grammars.

use crate::boundary::{Call, Interrupt, misuse};
use crate::grammar::{Grammar, limits};
use crate::threads::side_by_side;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tokfold_core::budget::Budget;
use tokfold_core::error::Result;
use tokfold_core::json_schema::dialect::{Dialect, Keyword, Role};
use tokfold_core::json_schema::{
    self, Beginning, Escapes, KeyOrder, Markers, NoteLevel, SchemaNote, SchemaOptions,
    SchemaSource, Style, Whitespace,
};

use tokfold_core::regular::pattern::{Pattern, PatternDialect, parse};

/// What a note says: its level, the pointer, the keyword, and what there is to say of it.
type Note = (&'static str, String, String, String);

/// A grammar, and where `uniqueItems` is not enforced.
type Returned = (Grammar, Vec<String>);

/// Options from a mapping of field names; a name that is no field is a mistake of the package.
pub(crate) fn options(fields: &Bound<'_, PyDict>) -> PyResult<SchemaOptions> {
    let mut options = SchemaOptions::default();
    for (name, value) in fields {
        let name: String = name.extract()?;
        match name.as_str() {
            "dialect" => {
                let name: String = value.extract()?;
                let found = Dialect::named(&name);
                let unknown = || misuse(format!("no dialect is named {name:?}"));
                options.dialect = Some(found.ok_or_else(unknown)?);
            }
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
            "formats" => options.formats = formats(value.extract()?)?,
            "open_objects" => options.open_objects = value.extract()?,
            "style" => options.style = style(&value.extract::<String>()?)?,
            "markers" => {
                let (tokens, spelled): (Vec<(String, Vec<u32>)>, bool) = value.extract()?;
                let tokens = tokens.into_iter().map(|(text, ids)| (text.into(), ids)).collect();
                options.markers = Markers { tokens, spelled };
            }
            "excludes" => {
                let texts: Vec<String> = value.extract()?;
                options.excludes = texts.into_iter().map(Into::into).collect();
            }
            "max_digits" => options.max_digits = value.extract()?,
            "max_depth" => options.max_depth = value.extract()?,
            "lossy_unique_items" => options.lossy_unique_items = value.extract()?,
            _ => return Err(misuse(format!("no option is named {name:?}"))),
        }
    }
    Ok(options)
}

/// What a keyword of JSON Schema is for; `None` where the name is no keyword.
#[pyfunction]
pub(crate) fn keyword_role(name: &str) -> Option<&'static str> {
    Keyword::named(name).map(|keyword| match keyword.role {
        Role::Constrains => "constrains",
        Role::Structure => "structure",
        Role::Annotates => "annotates",
    })
}

/// What a style writes around names and values, as texts of which each is taken by itself.
#[pyfunction]
pub(crate) fn style_marks(name: &str) -> PyResult<Vec<String>> {
    Ok(json_schema::marks_of(style(name)?))
}

/// The same of many schemas side by side, without resources; `None` where one cannot be converted.
/// Each has the limits for itself.
#[pyfunction]
#[pyo3(signature = (texts, options, limits=None, interrupt=None))]
pub(crate) fn convert_json_schemas(
    py: Python<'_>,
    texts: Vec<String>,
    options: &Bound<'_, PyDict>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Vec<Option<Returned>>> {
    let options = self::options(options)?;
    let limits = self::limits(limits)?;
    let call = Call::with(py, interrupt, None);
    let converted = call.run(py, |interrupt| {
        let convert = |place: usize| {
            let budget = Budget::new(&limits, interrupt);
            json_schema::convert(&texts[place], &[], &options, &limits, &budget).ok()
        };
        let found = side_by_side(texts.len(), convert);
        interrupt.look()?;
        Ok(found)
    })?;
    Ok(converted.into_iter().map(|converted| converted.map(returned)).collect())
}

fn returned(converted: json_schema::Converted) -> Returned {
    (Grammar::of(converted.grammar), converted.not_enforced)
}

fn said(note: SchemaNote) -> Note {
    let level = match note.level {
        NoteLevel::Info => "info",
        NoteLevel::Warning => "warning",
    };
    (level, note.pointer, note.keyword, note.message)
}

/// Formats of the caller, each a pattern.
fn formats(given: Vec<(String, String)>) -> PyResult<Vec<(Box<str>, Pattern)>> {
    let read = |(name, text): (String, String)| match parse(&text, PatternDialect::Ecma, "") {
        Ok(pattern) => Ok((name.into(), pattern)),
        Err(error) => Err(misuse(format!(
            "formats[{name:?}]: the pattern {text:?}, column {}: {}: {}",
            error.column, error.construct, error.message
        ))),
    };
    given.into_iter().map(read).collect()
}

fn style(name: &str) -> PyResult<Style> {
    Ok(match name {
        "json" => Style::Json,
        "qwen_xml" => Style::Qwen,
        "minimax_xml" => Style::MiniMax,
        "minimax_m3_xml" => Style::MiniMaxM3,
        "deepseek_xml" => Style::DeepSeek,
        "deepseek_v4_1_xml" => Style::DeepSeekV41,
        "glm_xml" => Style::Glm,
        "cohere_xml" => Style::Cohere,
        "kimi_k3_xml" => Style::KimiK3,
        "gemma" => Style::Gemma,
        _ => return Err(misuse(format!("no style is named {name:?}"))),
    })
}

/// The grammar of the texts that a schema allows, and where `uniqueItems` is not enforced.
#[pyfunction]
#[pyo3(signature = (text, resources, options, limits=None, interrupt=None))]
pub(crate) fn convert_json_schema(
    py: Python<'_>,
    text: &str,
    resources: Vec<(String, String)>,
    options: &Bound<'_, PyDict>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Returned> {
    let options = self::options(options)?;
    let limits = self::limits(limits)?;
    let call = Call::with(py, interrupt, None);
    let converted = call.run(py, |interrupt| {
        let budget = Budget::new(&limits, interrupt);
        json_schema::convert(text, &resources, &options, &limits, &budget)
    })?;
    Ok(returned(converted))
}

/// A schema as Python gives it.
type Given<'g> = (&'g str, &'g [(String, String)], &'g Bound<'g, PyDict>);

/// Asks something of a schema, which is converted again.
fn asked<T: Send>(
    py: Python<'_>,
    (text, resources, options): Given<'_>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
    ask: impl FnOnce(&SchemaSource<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let options = &self::options(options)?;
    let limits = &self::limits(limits)?;
    Call::with(py, interrupt, None).run(py, |interrupt| {
        let budget = &Budget::new(limits, interrupt);
        ask(&SchemaSource { text, resources, options, limits, budget })
    })
}

/// What there is to say of the keywords of a schema.
#[pyfunction]
#[pyo3(signature = (text, resources, options, limits=None, interrupt=None))]
pub(crate) fn schema_notes(
    py: Python<'_>,
    text: &str,
    resources: Vec<(String, String)>,
    options: &Bound<'_, PyDict>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Vec<Note>> {
    let given = (text, resources.as_slice(), options);
    let notes = asked(py, given, limits, interrupt, |source| source.notes())?;
    Ok(notes.into_iter().map(said).collect())
}

/// What is expected: the pointers of schemas, and what they say.
type Said = (Vec<String>, String);

/// Where each rule of the grammar of a schema comes from: pointers of schemas, and what it is.
#[pyfunction]
#[pyo3(signature = (text, resources, options, limits=None, interrupt=None))]
pub(crate) fn schema_rule_origins(
    py: Python<'_>,
    text: &str,
    resources: Vec<(String, String)>,
    options: &Bound<'_, PyDict>,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Vec<Said>> {
    let given = (text, resources.as_slice(), options);
    let origins = asked(py, given, limits, interrupt, |source| source.rule_origins())?;
    Ok(origins.into_iter().map(|origin| (origin.pointers, origin.description)).collect())
}

/// What a schema says of the place of a text up to which its grammar reads: the pointer into the
/// text, and what is expected; `None` where the text does not begin as JSON.
#[pyfunction]
#[pyo3(signature = (text, resources, options, document, read, is_whole, limits=None, interrupt=None))]
// The arguments are those of the Python signature, which names them all.
#[allow(clippy::too_many_arguments)]
pub(crate) fn explain_document(
    py: Python<'_>,
    text: &str,
    resources: Vec<(String, String)>,
    options: &Bound<'_, PyDict>,
    document: &[u8],
    read: usize,
    is_whole: bool,
    limits: Option<&Bound<'_, PyAny>>,
    interrupt: Option<&Interrupt>,
) -> PyResult<Option<(String, Vec<Said>)>> {
    let given = (text, resources.as_slice(), options);
    let beginning = Beginning { text: document, read, is_whole };
    let explained = asked(py, given, limits, interrupt, |source| source.explain(beginning))?;
    Ok(explained.map(|found| {
        let reasons = found.reasons.into_iter();
        (found.pointer, reasons.map(|reason| (reason.pointers, reason.message)).collect())
    }))
}
