//! What literals and patterns mean: as expressions, and as automata over characters.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use rustc_hash::FxHashMap;

use crate::error::{Error, Position, Result};
use crate::grammar::{CharSet, Described, Expr, GrammarBuilder};
use crate::ids::ExprId;
use crate::regular::pattern::{self, LARGE_COUNT, Pattern, PatternDialect, PatternFault};
use crate::regular::{Bounds, Dfa, Spelling, encode, substrings};

use super::json::{self, JsonValue};
use super::messages::{shown, syntax, unsupported};

/// An automaton over bytes as an expression.
pub(super) fn automaton(described: Described) -> Expr {
    Expr::Automaton(described.into())
}

/// Adds the language of an automaton over characters: as plain an expression as there is.
pub(super) fn add_dfa(
    builder: &mut GrammarBuilder,
    dfa: &Dfa,
    position: Position,
    bounds: &Bounds<'_>,
) -> Result<ExprId> {
    if let Some([text]) = dfa.strings(1).as_deref() {
        return Ok(add_text(builder, text, position));
    }
    let described = encode(dfa, Spelling::Utf8, bounds)?;
    Ok(builder.add(automaton(described), position))
}

/// Adds the texts of a pattern; large counts stay counts where that can be.
///
/// # Errors
/// `Limit`.
pub(super) fn add_pattern(
    builder: &mut GrammarBuilder,
    pattern: &Pattern,
    position: Position,
    bounds: &Bounds<'_>,
) -> Result<ExprId> {
    let mut character = |builder: &mut GrammarBuilder, set: &CharSet| {
        builder.add(Expr::Class(scalar_values(set)), position)
    };
    if let Some(expr) = pattern.to_expr(builder, &mut character, false, bounds)? {
        return Ok(expr);
    }
    let Some(pieces) = pattern.pieces(false, LARGE_COUNT) else {
        return add_dfa(builder, &pattern.to_dfa(false, bounds)?, position, bounds);
    };
    // No piece has pieces of its own.
    let parts = pieces.iter().map(|piece| add_pattern(builder, piece, position, bounds));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    Ok(builder.add(Expr::Sequence(parts.into()), position))
}

/// Adds a literal.
pub(super) fn add_text(builder: &mut GrammarBuilder, text: &str, position: Position) -> ExprId {
    let expr = match text {
        "" => Expr::Empty,
        text => Expr::Literal(text.as_bytes().into()),
    };
    builder.add(expr, position)
}

/// The characters of a set that a text can hold: no surrogates.
pub(super) fn scalar_values(set: &CharSet) -> CharSet {
    set.intersection(&CharSet::scalar_values())
}

/// The characters from one to another.
pub(super) fn range(first: char, last: char) -> CharSet {
    scalar_values(&CharSet::new([(first as u32, last as u32)]))
}

/// The characters that a character of a literal with the flag `i` stands for. Letters of an ASCII
/// text stand for ASCII letters, as in XGrammar: no `ſ` for an `s`.
fn of_any_case(c: char, in_ascii: bool) -> CharSet {
    let single = CharSet::new([(c as u32, c as u32)]);
    if in_ascii {
        let (lower, upper) = (c.to_ascii_lowercase() as u32, c.to_ascii_uppercase() as u32);
        return CharSet::new([(lower, lower), (upper, upper)]);
    }
    let mut class = ClassUnicode::new([ClassUnicodeRange::new(c, c)]);
    match class.try_case_fold_simple() {
        Ok(()) => CharSet::new(class.iter().map(|r| (r.start() as u32, r.end() as u32))),
        Err(_) => single,
    }
}

/// Adds a literal with the flag `i`.
pub(super) fn add_text_of_any_case(
    builder: &mut GrammarBuilder,
    text: &str,
    position: Position,
) -> ExprId {
    let mut parts = Vec::new();
    let mut plain = String::new();
    for c in text.chars() {
        let set = of_any_case(c, text.is_ascii());
        if set.ranges() == [(c as u32, c as u32)] {
            plain.push(c);
            continue;
        }
        if !plain.is_empty() {
            parts.push(add_text(builder, &plain, position));
            plain.clear();
        }
        parts.push(builder.add(Expr::Class(set), position));
    }
    if !plain.is_empty() || parts.is_empty() {
        parts.push(add_text(builder, &plain, position));
    }
    match parts.as_slice() {
        [part] => *part,
        _ => builder.add(Expr::Sequence(parts.into()), position),
    }
}

/// The automaton of a literal.
pub(super) fn text_dfa(text: &str, of_any: bool, bounds: &Bounds<'_>) -> Result<Dfa> {
    if !of_any {
        return Dfa::texts([text], bounds);
    }
    let mut symbols: Vec<CharSet> = Vec::new();
    let mut numbers: FxHashMap<CharSet, u32> = FxHashMap::default();
    let mut rows: Vec<Vec<(u32, u32)>> = Vec::new();
    for c in text.chars() {
        let set = of_any_case(c, text.is_ascii());
        let symbol = *numbers.entry(set).or_insert_with_key(|set| {
            symbols.push(set.clone());
            symbols.len() as u32 - 1
        });
        rows.push(vec![(symbol, rows.len() as u32 + 1)]);
    }
    rows.push(Vec::new());
    let mut finals = vec![false; rows.len()];
    finals[rows.len() - 1] = true;
    Dfa::from_table(&symbols, &rows, &finals, bounds)
}

/// Reads a pattern that stands between slashes; the first of them stands at `position`.
///
/// # Errors
/// Those of the pattern, where they stand in the whole text.
pub(super) fn pattern(
    text: &str,
    flags: &str,
    dialect: PatternDialect,
    position: Position,
) -> Result<Pattern> {
    let mut known = String::new();
    let mut prefix = "";
    for flag in flags.chars() {
        match flag {
            'i' | 'm' | 's' if !known.contains(flag) => known.push(flag),
            'i' | 'm' | 's' | 'u' => {}
            'x' if dialect == PatternDialect::Rust => prefix = "(?x)",
            'x' => known.push(flag),
            'l' => {
                let message =
                    "this flag of a pattern has no meaning here; write the pattern without it";
                return Err(unsupported(format!("the flag `{flag}`"), position, message));
            }
            _ => {
                let message =
                    format!("a pattern has no flag `{flag}`; the flags are i, m, s, u and x");
                return Err(syntax(position, message));
            }
        }
    }
    let owned;
    let text = match prefix {
        "" => text,
        prefix => {
            owned = format!("{prefix}{text}");
            &owned
        }
    };
    let read = pattern::parse(text, dialect, &known).map_err(|error| {
        let column = (error.column as usize).saturating_sub(1).saturating_sub(prefix.len());
        let before: String = text[prefix.len()..].chars().take(column).collect();
        let position = match before.rsplit_once('\n') {
            None => Position { column: position.column + 1 + column as u32, ..position },
            Some((lines, last)) => Position {
                line: position.line + 1 + lines.matches('\n').count() as u32,
                column: last.chars().count() as u32 + 1,
            },
        };
        match error.kind {
            PatternFault::Syntax => {
                syntax(position, format!("{}: {}", error.construct, error.message))
            }
            PatternFault::Unsupported => unsupported(error.construct, position, error.message),
        }
    })?;
    match read.looks_outside(dialect) {
        None => Ok(read),
        Some(construct) => {
            let message = "it looks at the text around the terminal, and a terminal is read for itself: \
                           take it out and write in the rules what may stand there; tokfold.mask_store, which \
                           cuts a text as Lark's lexer does, reads what looks at the text behind a terminal";
            Err(unsupported(construct.to_owned(), position, message))
        }
    }
}

/// The chunks that the JSON text behind `%regex` lists.
///
/// # Errors
/// It is of another form.
pub(super) fn chunks(text: &str, position: Position) -> Result<Vec<String>> {
    let mut fields = json::object(text, position, "regex")?;
    fields.retain(|(_, value)| *value != JsonValue::Null);
    let fault = |what: String| -> Error {
        let message = format!(
            "`%regex`: {what}; write {{\"substring_chunks\": [\"...\"]}}, {{\"substring_words\": \
             \"...\"}} or {{\"substring_chars\": \"...\"}}"
        );
        syntax(position, message)
    };
    let own = |parts: Vec<&str>| parts.into_iter().map(str::to_owned).collect();
    match fields.as_slice() {
        [(name, value)] => match (name.as_str(), value) {
            ("substring_chunks", JsonValue::Texts(chunks)) => Ok(chunks.clone()),
            ("substring_words", JsonValue::Text(text)) => Ok(own(substrings::words(text))),
            ("substring_chars", JsonValue::Text(text)) => Ok(own(substrings::characters(text))),
            ("substring_chunks", _) => Err(fault("`substring_chunks` is a list of texts".into())),
            ("substring_words" | "substring_chars", _) => Err(fault(format!("`{name}` is a text"))),
            _ => Err(fault(format!("there is no field `{}`", shown(name)))),
        },
        [] => Err(fault("it says nothing".into())),
        _ => Err(fault("it says one thing only".into())),
    }
}
