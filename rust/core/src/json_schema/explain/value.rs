//! Where a value is due: what may stand there, or why what stands there is excluded.

use super::describe::{listed, quoted};
use super::scan::{end_of_scalar, is_blank, is_numeric};
use super::walk::Possible;
use super::{BLANKS, Explainer};
use crate::error::Result;
use crate::json_schema::atoms::{SchemaId, Type};
use crate::json_schema::options::Whitespace;

const FORM: &str =
    "valid, but not in the form that the options choose (white space, escapes, numbers)";

/// A value or name that its own schemas allow, where those of the whole allow no text behind it.
pub(super) const DEAD_END: &str =
    "valid by itself, but behind it nothing can meet what the schema asks of the whole value";

const DIGITS: &str = "valid, but with more digits in a row than max_digits allows";

const DEPTH: &str = "valid by itself, but it stands deeper than max_depth allows, or behind it nothing can meet what \
                     the schema asks of the whole value";

impl Explainer<'_, '_> {
    /// A value is due, or was read up to here.
    pub(super) fn at_value(&mut self, possible: &[Possible], start: usize) -> Result<()> {
        let first = self.walk.text.get(start).copied();
        let is_begun = start < self.read;
        if !is_begun && first.is_some_and(is_blank) {
            self.push(Vec::new(), BLANKS.into());
            return Ok(());
        }
        let kind = first.and_then(type_begun_by);
        let whole = self.end_of_whole(kind, start);
        let opens = matches!(kind, Some(Type::Object | Type::Array));
        let is_formal = match whole {
            Some(end) => self.fits(possible, start..end)?,
            None => opens && possible.iter().any(|one| self.may_be(one, kind)),
        };
        if is_formal {
            let schemas = possible.iter().flat_map(|one| one.schemas.iter().copied());
            let schemas: Vec<SchemaId> = schemas.collect();
            let end = whole.unwrap_or(start + 1);
            return self.say(&schemas, self.excluded(start..end).into());
        }
        let only = kind.filter(|_| is_begun && possible.iter().any(|one| self.may_be(one, kind)));
        let not = self.instead_of(kind, whole, start)?.unwrap_or_default();
        // Values that are listed, by whichever branches, are told together.
        let (mut texts, mut listing) = (Vec::new(), Vec::new());
        for one in possible {
            if only.is_some() && !self.may_be(one, kind) {
                continue;
            }
            let said = self.walk.converter.alternatives(one.value, &self.walk.values, only)?;
            if said.are_listed {
                let new = said.texts.into_iter().filter(|text| !texts.contains(text));
                let new: Vec<String> = new.collect();
                texts.extend(new);
                listing.extend(one.schemas.iter().copied());
                continue;
            }
            self.say(&one.schemas, format!("expected {}{not}", said.joined()))?;
        }
        if !texts.is_empty() {
            self.say(&listing, format!("expected {}{not}", listed(&texts, "or")))?;
        }
        Ok(())
    }

    /// Whether a value of some conditions may be of a type; `None` is none of them.
    fn may_be(&self, one: &Possible, kind: Option<Type>) -> bool {
        let value = self.walk.values.all.get(&one.value);
        value.is_none_or(|value| match kind {
            Some(Type::Null) => value.null,
            Some(Type::Boolean) => value.booleans != [false, false],
            Some(Type::Number) => value.number.is_some(),
            Some(Type::String) => value.string.is_some(),
            Some(Type::Array) => value.array.is_some(),
            Some(Type::Object) => value.object.is_some(),
            None => false,
        })
    }

    /// Where the scalar ends that begins at a place; `None` where it is none, or not complete.
    fn end_of_whole(&self, kind: Option<Type>, start: usize) -> Option<usize> {
        match kind {
            None | Some(Type::Object | Type::Array) => None,
            Some(_) => {
                let end = end_of_scalar(self.walk.text, start);
                let is_number = kind == Some(Type::Number);
                let length = self.walk.text.len();
                end.or((is_number && self.is_whole).then_some(length))
            }
        }
    }

    /// What stands at a place instead of what is expected, as the end of a sentence; `whole` is where it
    /// ends, if it is a complete scalar.
    fn instead_of(
        &mut self,
        kind: Option<Type>,
        whole: Option<usize>,
        start: usize,
    ) -> Result<Option<String>> {
        let Some(end) = whole else {
            let is_begun = start < self.read;
            return Ok(match kind {
                Some(Type::Object) if !is_begun => Some(", not an object".into()),
                Some(Type::Array) if !is_begun => Some(", not an array".into()),
                _ => None,
            });
        };
        let text = String::from_utf8_lossy(&self.walk.text[start..end]).into_owned();
        Ok(match kind {
            Some(Type::String) => {
                let node = self.walk.read(start..end)?;
                let read = node.and_then(|node| self.walk.arena.node(node).as_str());
                read.map(|text| format!(", not {}", quoted(text)))
            }
            Some(Type::Number) => {
                Some(text).filter(|text| text.len() <= 32).map(|text| format!(", not {text}"))
            }
            _ => Some(format!(", not {text}")),
        })
    }

    /// Why the text of a value or name is excluded that its schemas allow: for its form, or for what
    /// would have to follow. Forms differ where a string has escapes or excluded texts; where a number
    /// has an exponent, a fraction that ends in zero or a sign before zero; where white space is due.
    pub(super) fn excluded(&self, range: std::ops::Range<usize>) -> &'static str {
        let text = &self.walk.text[range];
        let has = |byte: u8| text.contains(&byte);
        let options = &self.walk.converter.options;
        let differs = match text.first() {
            Some(b'"') => has(b'\\') || !options.excludes.is_empty(),
            Some(&byte) if is_numeric(byte) => {
                has(b'e') || has(b'E') || has(b'.') && text.ends_with(b"0") || text == b"-0"
            }
            _ => false,
        };
        let is_number = text.first().is_some_and(|&byte| is_numeric(byte));
        if let (Some(most), true) = (options.max_digits, is_number)
            && text.split(|byte| !byte.is_ascii_digit()).any(|run| run.len() >= most as usize)
        {
            return DIGITS;
        }
        match differs || !matches!(options.whitespace, Whitespace::Any(_)) {
            true => FORM,
            false if options.max_depth.is_some() => DEPTH,
            false => DEAD_END,
        }
    }
}

/// The type of the values that begin with a byte.
fn type_begun_by(byte: u8) -> Option<Type> {
    match byte {
        b'"' => Some(Type::String),
        b'{' => Some(Type::Object),
        b'[' => Some(Type::Array),
        b't' | b'f' => Some(Type::Boolean),
        b'n' => Some(Type::Null),
        _ if is_numeric(byte) => Some(Type::Number),
        _ => None,
    }
}
