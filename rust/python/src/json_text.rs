//! Python values as JSON text, as `json.dumps` writes them, without recursion and without Python code for each
//! value: most schemas are dicts.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyIterator, PyList, PyString, PyTuple};
use std::fmt::Write as _;

/// Values between two looks at signals, where other threads may run: a fraction of a millisecond.
const VALUES_AT_ONCE: usize = 1 << 12;

/// What is no JSON, or too much: which of these, the keys that lead there, and the type of what stands there.
type Refused = (&'static str, Vec<Py<PyAny>>, String);

/// What a value becomes.
#[derive(IntoPyObject)]
pub(crate) enum Written {
    Text(String),
    Refused(Refused),
}

/// A container that is being written: what is left of it, whether it is a dict, and where in it the writer is.
struct Open<'py> {
    items: Bound<'py, PyIterator>,
    is_dict: bool,
    at: At<'py>,
}

/// The name of a value, where it has one, and the value.
type Item<'py> = (Option<Bound<'py, PyAny>>, Bound<'py, PyAny>);

/// A place in a container.
enum At<'py> {
    Start,
    Name(Bound<'py, PyAny>),
    Item(usize),
}

impl<'py> Open<'py> {
    /// A dict, list or tuple; `None` of other values.
    fn of(value: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let is_dict = value.is_instance_of::<PyDict>();
        if !is_dict && !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
            return Ok(None);
        }
        let items = match is_dict {
            true => value.call_method0("items")?.try_iter()?,
            false => value.try_iter()?,
        };
        Ok(Some(Self { items, is_dict, at: At::Start }))
    }

    /// The next name, where it is a dict, and value.
    fn next(&mut self) -> PyResult<Option<Item<'py>>> {
        let Some(item) = self.items.next().transpose()? else { return Ok(None) };
        Ok(Some(match self.is_dict {
            true => item.extract().map(|(name, value)| (Some(name), value))?,
            false => (None, item),
        }))
    }
}

/// The text of a value whose containers stand in each other at most `levels` deep, and which has at most
/// `values` values. `default` makes a value of JSON of what is none.
#[pyfunction]
#[pyo3(signature = (value, levels, values, default=None))]
pub(crate) fn json_text(
    value: Bound<'_, PyAny>,
    levels: usize,
    values: usize,
    default: Option<&Bound<'_, PyAny>>,
) -> PyResult<Written> {
    let py = value.py();
    let mut out = String::new();
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut count = 0;
    let mut found = value;
    loop {
        count += 1;
        if count % VALUES_AT_ONCE == 0 {
            py.check_signals()?;
            py.detach(|| ());
        }
        if count > values {
            return Ok(refused("values", &open, &found));
        }
        if let Some(container) = Open::of(&found)? {
            if open.len() >= levels {
                return Ok(refused("levels", &open, &found));
            }
            out.push(if container.is_dict { '{' } else { '[' });
            open.push(container);
        } else if !scalar(&mut out, &found)? {
            let Some(default) = default else { return Ok(refused("type", &open, &found)) };
            found = default.call1((found,))?;
            continue;
        }
        // The next value of the innermost container that has one.
        loop {
            let Some(last) = open.last_mut() else { return Ok(Written::Text(out)) };
            let Some((key, next)) = last.next()? else {
                out.push(if last.is_dict { '}' } else { ']' });
                open.pop();
                continue;
            };
            if !matches!(last.at, At::Start) {
                out.push_str(", ");
            }
            last.at = match (key, &last.at) {
                (Some(key), _) => {
                    if !name(&mut out, &key)? {
                        let path = &open[..open.len() - 1];
                        return Ok(refused("name", path, &key));
                    }
                    out.push_str(": ");
                    At::Name(key)
                }
                (None, At::Item(place)) => At::Item(place + 1),
                (None, _) => At::Item(0),
            };
            found = next;
            break;
        }
    }
}

fn refused(why: &'static str, open: &[Open<'_>], found: &Bound<'_, PyAny>) -> Written {
    let py = found.py();
    let path = open.iter().filter_map(|each| match &each.at {
        At::Start => None,
        At::Name(name) => Some(name.clone().unbind()),
        At::Item(place) => Some(PyInt::new(py, *place).into_any().unbind()),
    });
    let name = found.get_type().name();
    let name = name.map_or_else(|_| "?".to_owned(), |name| name.to_string());
    Written::Refused((why, path.collect(), name))
}

/// Writes a string, a number, a truth value or null; whether it is one.
fn scalar(out: &mut String, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(text) = value.cast::<PyString>() {
        string(out, text)?;
    } else if value.is_none() {
        out.push_str("null");
    } else if let Ok(truth) = value.cast::<PyBool>() {
        out.push_str(if truth.is_true() { "true" } else { "false" });
    } else if let Ok(number) = value.cast::<PyInt>() {
        match number.extract::<i64>() {
            Ok(number) => _ = write!(out, "{number}"),
            Err(_) => {
                let py = value.py();
                let text = py.get_type::<PyInt>().call_method1("__repr__", (number,))?;
                out.push_str(text.cast::<PyString>()?.to_str()?);
            }
        }
    } else if let Ok(number) = value.cast::<PyFloat>() {
        float(out, number)?;
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Writes the name of a member: what is no string becomes one.
fn name(out: &mut String, key: &Bound<'_, PyAny>) -> PyResult<bool> {
    if let Ok(text) = key.cast::<PyString>() {
        string(out, text)?;
        return Ok(true);
    }
    out.push('"');
    let is_one = scalar(out, key)?;
    out.push('"');
    Ok(is_one)
}

fn float(out: &mut String, number: &Bound<'_, PyFloat>) -> PyResult<()> {
    match number.value() {
        value if value.is_nan() => out.push_str("NaN"),
        f64::INFINITY => out.push_str("Infinity"),
        f64::NEG_INFINITY => out.push_str("-Infinity"),
        value => out.push_str(PyFloat::new(number.py(), value).repr()?.to_str()?),
    }
    Ok(())
}

fn string(out: &mut String, text: &Bound<'_, PyString>) -> PyResult<()> {
    out.push('"');
    match text.to_str() {
        Ok(text) => {
            let mut rest = text;
            while let Some(place) = rest.find(is_escaped) {
                out.push_str(&rest[..place]);
                let mut characters = rest[place..].chars();
                if let Some(character) = characters.next() {
                    let mut units = [0; 2];
                    character.encode_utf16(&mut units).iter().for_each(|&unit| escape(out, unit));
                }
                rest = characters.as_str();
            }
            out.push_str(rest);
        }
        // A lone surrogate is written as one: who reads the text says that it is no character.
        Err(_) => {
            let units = text.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
            let units: Vec<u8> = units.extract()?;
            for unit in units.chunks_exact(2) {
                let unit = u16::from_le_bytes([unit[0], unit[1]]);
                match char::from_u32(unit.into()) {
                    Some(character) if !is_escaped(character) => out.push(character),
                    _ => escape(out, unit),
                }
            }
        }
    }
    out.push('"');
    Ok(())
}

fn is_escaped(character: char) -> bool {
    !matches!(character, ' '..='~') || matches!(character, '"' | '\\')
}

fn escape(out: &mut String, unit: u16) {
    match char::from_u32(unit.into()) {
        Some('"') => out.push_str("\\\""),
        Some('\\') => out.push_str("\\\\"),
        Some('\n') => out.push_str("\\n"),
        Some('\r') => out.push_str("\\r"),
        Some('\t') => out.push_str("\\t"),
        Some('\u{8}') => out.push_str("\\b"),
        Some('\u{c}') => out.push_str("\\f"),
        _ => _ = write!(out, "\\u{unit:04x}"),
    }
}
