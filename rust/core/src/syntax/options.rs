//! The bracket after a rule's name: `name[max_tokens=5, capture="x", lazy] ::= ...`.

use crate::error::{Error, Position, Result};
use crate::grammar::{MacroArgument, RuleOptions};
use crate::ids::RuleId;

use super::escapes::Cursor;
use super::messages::{shown, syntax};
use super::suggest::nearest;

/// The options that there are, in the order in which they are printed.
const NAMES: [&str; 10] = [
    "max_tokens",
    "max_chars",
    "capture",
    "capture_hidden_suffix_bytes",
    "capture_hidden_stop_bytes",
    BODY,
    MARKER,
    "stop_capture",
    "lazy",
    "temperature",
];
/// The rule, by its number from 0, whose text a capture shows.
const BODY: &str = "capture_hidden_body_rule_id";
/// The rule, by its number from 0, whose text a capture hides.
const MARKER: &str = "capture_hidden_marker_rule_id";

/// The rule whose options are read.
pub(super) struct Owner<'t> {
    /// Its name.
    pub(super) name: &'t str,
    /// How many rules the grammar has.
    pub(super) rules: usize,
}

/// Reads the options of a rule; `text` has its brackets.
pub(super) fn options(text: &str, rule: &Owner<'_>, position: Position) -> Result<RuleOptions> {
    let start = Position { column: position.column + 1, ..position };
    let mut cursor = Cursor::new(&text[1..text.len() - 1], start);
    let mut options = RuleOptions::default();
    let mut seen: Vec<&str> = Vec::new();
    loop {
        blanks(&mut cursor);
        let here = cursor.position;
        let name = word(&mut cursor);
        if seen.contains(&name) {
            return Err(syntax(here, format!("the option `{name}` is given twice; remove one")));
        }
        option(&mut cursor, &mut options, name, rule, here)?;
        seen.push(name);
        blanks(&mut cursor);
        if cursor.peek().is_none() {
            break;
        }
        if !cursor.take(',') {
            return Err(expected(&cursor, "`,` or `]` after an option"));
        }
    }
    if seen.contains(&BODY) != seen.contains(&MARKER) {
        return Err(syntax(position, format!("give both of `{BODY}` and `{MARKER}`, or neither")));
    }
    Ok(options)
}

/// Reads one option whose name has been read at `here`.
fn option(
    cursor: &mut Cursor<'_>,
    options: &mut RuleOptions,
    name: &str,
    rule: &Owner<'_>,
    here: Position,
) -> Result<()> {
    match name {
        "max_tokens" => options.max_tokens = Some(integer(cursor, name)?),
        "max_chars" => options.max_chars = Some(integer(cursor, name)?),
        "lazy" => options.lazy = true,
        "temperature" => options.temperature = Some(temperature(cursor)?),
        "stop_capture" => {
            let value = MacroArgument::Text(string(cursor, name)?.into_bytes().into());
            options.other.push((name.into(), value));
        }
        "capture" => {
            blanks(cursor);
            let named = cursor.peek() == Some('=');
            options.capture = Some(if named { string(cursor, name)? } else { rule.name.into() });
        }
        "capture_hidden_suffix_bytes" | "capture_hidden_stop_bytes" => {
            let count = integer(cursor, name)?;
            if count == 0 {
                return Err(syntax(here, format!("`{name}` must be at least 1")));
            }
            options.other.push((name.into(), MacroArgument::Integer(count.into())));
        }
        BODY | MARKER => {
            let number = integer(cursor, name)? as usize;
            if number >= rule.rules {
                let message =
                    format!("`{name}` is {number}, but rules are numbered 0 to {}", rule.rules - 1);
                return Err(syntax(here, message));
            }
            options.other.push((name.into(), MacroArgument::Rule(RuleId::new(number))));
        }
        _ => return Err(unknown(name, cursor, here)),
    }
    Ok(())
}

fn unknown(name: &str, cursor: &Cursor<'_>, here: Position) -> Error {
    let known = NAMES.into_iter().filter(|name| !name.contains("hidden"));
    let list = known.collect::<Vec<_>>().join(", ");
    if name.is_empty() {
        return expected(cursor, &format!("an option ({list})"));
    }
    let advice = match nearest(name, NAMES.into_iter()) {
        Some(near) => format!("write `{near}`"),
        None => format!("the options are {list}"),
    };
    syntax(here, format!("there is no option `{}`; {advice}", shown(name)))
}

fn expected(cursor: &Cursor<'_>, what: &str) -> Error {
    let found = match cursor.peek() {
        Some(c) => format!("`{}`", shown(c.encode_utf8(&mut [0; 4]))),
        None => "`]`".into(),
    };
    syntax(cursor.position, format!("expected {what}, found {found}"))
}

fn blanks(cursor: &mut Cursor<'_>) {
    while matches!(cursor.peek(), Some(' ' | '\t')) {
        cursor.next();
    }
}

/// The characters from here on that satisfy a test.
fn run<'t>(cursor: &mut Cursor<'t>, test: impl Fn(char) -> bool) -> &'t str {
    let whole = cursor.rest();
    while cursor.peek().is_some_and(&test) {
        cursor.next();
    }
    &whole[..whole.len() - cursor.rest().len()]
}

fn word<'t>(cursor: &mut Cursor<'t>) -> &'t str {
    run(cursor, |c| c.is_ascii_alphanumeric() || c == '_')
}

fn equals(cursor: &mut Cursor<'_>, name: &str) -> Result<()> {
    blanks(cursor);
    if !cursor.take('=') {
        return Err(expected(cursor, &format!("`=` and a value after `{name}`")));
    }
    blanks(cursor);
    Ok(())
}

fn integer(cursor: &mut Cursor<'_>, name: &str) -> Result<u32> {
    equals(cursor, name)?;
    let here = cursor.position;
    let digits = run(cursor, |c| c.is_ascii_digit());
    if digits.is_empty() {
        return Err(expected(cursor, &format!("an integer as the value of `{name}`")));
    }
    digits.parse().map_err(|_| {
        let digits = shown(digits);
        syntax(here, format!("`{name}` is {digits}, which is greater than {}", u32::MAX))
    })
}

fn temperature(cursor: &mut Cursor<'_>) -> Result<f64> {
    equals(cursor, "temperature")?;
    let here = cursor.position;
    let text = run(cursor, |c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value <= f64::from(f32::MAX) => Ok(value.abs()),
        Ok(_) => Err(syntax(
            here,
            format!("the temperature must be a finite number of at least 0, found {}", shown(text)),
        )),
        Err(_) if text.is_empty() => Err(expected(cursor, "a number as the `temperature`")),
        Err(_) => Err(syntax(here, format!("`{}` is not a number", shown(text)))),
    }
}

/// A string in double quotes, without escapes, not empty.
fn string(cursor: &mut Cursor<'_>, name: &str) -> Result<String> {
    equals(cursor, name)?;
    let here = cursor.position;
    if !cursor.take('"') {
        return Err(expected(cursor, &format!("a string in double quotes after `{name}=`")));
    }
    let value = run(cursor, |c| !matches!(c, '"' | '\\' | '\0'));
    match cursor.peek() {
        Some('"') => cursor.next(),
        _ => return Err(expected(cursor, "the closing `\"` (a name has no escapes)")),
    };
    if value.is_empty() {
        return Err(syntax(here, format!("the name given by `{name}` is empty; write one")));
    }
    Ok(value.into())
}
