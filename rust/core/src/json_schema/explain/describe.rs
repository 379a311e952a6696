//! What a value is to be, in some words: types, bounds, patterns, formats, lists.

use crate::error::Result;
use crate::json_schema::atoms::{ArrayId, Atom, LanguageId, NameId, Type, ValueId};
use crate::json_schema::automata::ArrayAutomaton;
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use crate::json_schema::numbers::{Bound, Conditions};
use crate::json_schema::values::ReachedValues;

/// Names and values of a list that are shown.
const MOST_LISTED: usize = 8;

/// Conditions that are shown side by side, and levels of them.
const MOST_CONDITIONS: usize = 4;
const MOST_LEVELS: usize = 3;

/// Characters of a text that are shown.
const MOST_CHARACTERS: usize = 48;

/// Some things in a row; the first ones, and how many there are, where these are many.
pub(in crate::json_schema) fn listed(items: &[String], word: &str) -> String {
    match items {
        [] => "nothing".into(),
        [only] => only.clone(),
        [all @ .., last] if items.len() <= MOST_LISTED => {
            format!("{} {word} {last}", all.join(", "))
        }
        _ => format!("{}, ... ({} in all)", items[..MOST_LISTED].join(", "), items.len()),
    }
}

/// A text in quotation marks, shortened.
pub(super) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// ` of 1 to 3 items`.
fn counted(least: u32, most: Option<u32>, what: &str) -> String {
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    match (least, most) {
        (0, None) => String::new(),
        (least, Some(most)) if least == most => format!(" of {least} {what}{}", plural(least)),
        (0, Some(most)) => format!(" of at most {most} {what}{}", plural(most)),
        (least, None) => format!(" of at least {least} {what}{}", plural(least)),
        (least, Some(most)) => format!(" of {least} to {most} {what}s"),
    }
}

/// What may stand at a place.
pub(super) struct Expectation {
    pub(super) texts: Vec<String>,
    /// Whether each is a value, and none a condition on values.
    pub(super) are_listed: bool,
}

impl Expectation {
    fn of(text: &str) -> Self {
        Self { texts: vec![text.to_owned()], are_listed: false }
    }

    pub(super) fn joined(&self) -> String {
        match self.texts.as_slice() {
            [] => "no value".into(),
            texts => listed(texts, "or"),
        }
    }
}

impl Converter<'_> {
    /// What a value is to be: of all its types, or of one.
    pub(in crate::json_schema) fn describe(
        &mut self,
        id: ValueId,
        values: &ReachedValues,
        only: Option<Type>,
    ) -> Result<String> {
        Ok(self.alternatives(id, values, only)?.joined())
    }

    /// What a value is to be, one after the other.
    pub(super) fn alternatives(
        &mut self,
        id: ValueId,
        values: &ReachedValues,
        only: Option<Type>,
    ) -> Result<Expectation> {
        let key = **self.values.get(id);
        let Some(&value) = values.all.get(&id) else { return Ok(Expectation::of("a value")) };
        if only.is_none() && key.formulas == [FormulaId::TRUE; 6] {
            return Ok(Expectation::of("any value"));
        }
        let wants = |kind: Type| only.is_none_or(|only| only == kind);
        let mut texts = Vec::new();
        let mut are_listed = true;
        if let (Some(_), true) = (value.object, wants(Type::Object)) {
            texts.push("an object".to_owned());
            are_listed = false;
        }
        if let (Some(array), true) = (value.array, wants(Type::Array)) {
            texts.push(self.describe_array(array));
            are_listed = false;
        }
        if let (Some(formula), true) = (value.string, wants(Type::String)) {
            let said = self.string_alternatives(formula)?;
            are_listed &= said.are_listed;
            texts.extend(said.texts);
        }
        if let (Some(formula), true) = (value.number, wants(Type::Number)) {
            let said = self.number_alternatives(formula)?;
            are_listed &= said.are_listed;
            texts.extend(said.texts);
        }
        if wants(Type::Boolean) {
            match value.booleans {
                [true, true] => {
                    texts.push("a boolean".into());
                    are_listed = false;
                }
                [true, false] => texts.push("true".into()),
                [false, true] => texts.push("false".into()),
                [false, false] => {}
            }
        }
        if value.null && wants(Type::Null) {
            texts.push("null".into());
        }
        Ok(Expectation { texts, are_listed })
    }

    pub(in crate::json_schema) fn describe_string(&mut self, formula: FormulaId) -> Result<String> {
        Ok(self.string_alternatives(formula)?.joined())
    }

    pub(in crate::json_schema) fn describe_number(&mut self, formula: FormulaId) -> Result<String> {
        Ok(self.number_alternatives(formula)?.joined())
    }

    pub(in crate::json_schema) fn describe_array(&self, array: ArrayId) -> String {
        match &self.arrays[usize::from(array)] {
            ArrayAutomaton::Plain { prefix, rest, least, most } => {
                let most = match rest {
                    Some(_) => *most,
                    None => Some(most.unwrap_or(u32::MAX).min(prefix.len() as u32)),
                };
                match most {
                    Some(0) => "an empty array".into(),
                    most => format!("an array{}", counted(*least, most, "item")),
                }
            }
            ArrayAutomaton::Unique { inner, .. } => match self.arrays[usize::from(*inner)] {
                ArrayAutomaton::Plain { rest: Some(_), least, most, .. }
                    if (least, most) != (0, None) =>
                {
                    format!("an array{}", counted(least, most, "different item"))
                }
                _ => "an array of different items".into(),
            },
            ArrayAutomaton::Distinct { least: 0, most: None, .. } => {
                "an array of different items".into()
            }
            ArrayAutomaton::Distinct { least, most, .. } => {
                format!("an array{}", counted(*least, *most, "different item"))
            }
            ArrayAutomaton::States(_) => "an array".into(),
            ArrayAutomaton::Either(arrays) => {
                let said = |array: &ArrayId| self.describe_array(*array);
                let mut all: Vec<String> = arrays.iter().map(said).collect();
                all.sort_unstable();
                all.dedup();
                match all.as_slice() {
                    [only] => only.clone(),
                    _ => "an array".into(),
                }
            }
        }
    }

    fn string_alternatives(&mut self, formula: FormulaId) -> Result<Expectation> {
        if let Some(texts) = self.listed_texts(formula)? {
            let texts = texts.iter().map(|text| quoted(text)).collect();
            return Ok(Expectation { texts, are_listed: true });
        }
        let (mut least, mut most) = (0, None::<u32>);
        let mut conditions = Vec::new();
        for part in self.formulas.conjuncts(formula) {
            match *self.formulas.get(part) {
                Formula::Literal(number, sign) => match (self.atom(number), sign) {
                    (Atom::AtLeastCharacters(count), true) => least = least.max(*count),
                    (Atom::AtLeastCharacters(count), false) => {
                        most = Some(most.unwrap_or(u32::MAX).min(count - 1));
                    }
                    _ => conditions.push(self.condition(part, 0)),
                },
                _ => conditions.push(self.condition(part, 0)),
            }
        }
        let lengths = counted(least, most, "character");
        Ok(Expectation::of(&format!("a string{lengths}{}", such(&conditions))))
    }

    fn number_alternatives(&mut self, formula: FormulaId) -> Result<Expectation> {
        if let Some(values) = self.listed_decimals(formula)? {
            let texts = values.iter().map(|value| value.abbreviated()).collect();
            return Ok(Expectation { texts, are_listed: true });
        }
        if let Some(conditions) = self.conditions(formula) {
            return Ok(Expectation::of(&described_conditions(&conditions)));
        }
        let parts = self.formulas.conjuncts(formula);
        let conditions: Vec<String> =
            parts.into_iter().map(|part| self.condition(part, 0)).collect();
        Ok(Expectation::of(&format!("a number{}", such(&conditions))))
    }

    /// Names in quotation marks.
    pub(in crate::json_schema) fn names_of(&self, names: &[NameId]) -> Vec<String> {
        names.iter().map(|&name| quoted(self.names.get(name))).collect()
    }

    /// What a formula says of a string or number, as what follows "that".
    fn condition(&self, formula: FormulaId, level: usize) -> String {
        let (parts, word) = match self.formulas.get(formula) {
            Formula::Constant(_) => return "is as the schema says".into(),
            &Formula::Literal(number, sign) => return self.literal_condition(number, sign),
            Formula::And(parts) => (parts, "and"),
            Formula::Or(parts) => (parts, "or"),
        };
        if level >= MOST_LEVELS || parts.len() > MOST_CONDITIONS {
            return format!("meets the {} conditions of the schema", parts.len());
        }
        let parts: Vec<String> =
            parts.iter().map(|&part| self.condition(part, level + 1)).collect();
        parts.join(&format!(" {word} "))
    }

    fn literal_condition(&self, number: u32, sign: bool) -> String {
        let decimal = |id| self.decimals.get(id).abbreviated();
        let is = if sign { "is" } else { "is not" };
        match self.atom(number) {
            Atom::AtLeastCharacters(count) if sign => format!("has {count} or more characters"),
            Atom::AtLeastCharacters(count) => format!("has fewer than {count} characters"),
            Atom::Language(language) => self.language_condition(*language, sign),
            Atom::Texts(set) => {
                let texts: Vec<String> =
                    self.texts.get(*set).iter().map(|text| quoted(text)).collect();
                format!("{is} {}", listed(&texts, "or"))
            }
            Atom::RegularExpression => format!("{is} a regular expression"),
            Atom::Integer => format!("{is} an integer"),
            Atom::AtLeast(bound) if sign => format!("is at least {}", decimal(*bound)),
            Atom::AtLeast(bound) => format!("is less than {}", decimal(*bound)),
            Atom::Greater(bound) if sign => format!("is greater than {}", decimal(*bound)),
            Atom::Greater(bound) => format!("is at most {}", decimal(*bound)),
            Atom::MultipleOf(step) => format!("{is} a multiple of {}", decimal(*step)),
            Atom::Decimals(set) => {
                let values: Vec<String> =
                    self.decimal_sets.get(*set).iter().map(|value| value.abbreviated()).collect();
                format!("{is} {}", listed(&values, "or"))
            }
            _ => "is as the schema says".into(),
        }
    }

    fn language_condition(&self, language: LanguageId, sign: bool) -> String {
        let found = self.language_numbers.iter().find(|(_, id)| **id == language);
        let Some(((keyword, text), _)) = found else { return "is as the schema says".into() };
        match (*keyword, sign) {
            ("format", true) => format!("has the format {}", quoted(text)),
            ("format", false) => format!("has not the format {}", quoted(text)),
            (_, true) => format!("matches the pattern {}", quoted(text)),
            (_, false) => format!("does not match the pattern {}", quoted(text)),
        }
    }
}

/// ` that ...`, where there are conditions.
fn such(conditions: &[String]) -> String {
    match conditions {
        [] => String::new(),
        _ if conditions.len() > MOST_CONDITIONS => {
            format!(" that meets the {} conditions of the schema", conditions.len())
        }
        _ => format!(" that {}", conditions.join(" and ")),
    }
}

/// `an integer between 0 and 150`.
fn described_conditions(conditions: &Conditions) -> String {
    let what = if conditions.integers.is_some() { "an integer" } else { "a number" };
    let side = |bound: &Bound, is_lower: bool| {
        let words = match (is_lower, bound.is_exclusive) {
            (true, false) => "at least",
            (true, true) => "greater than",
            (false, false) => "at most",
            (false, true) => "less than",
        };
        format!("{words} {}", bound.value.abbreviated())
    };
    let range = match (&conditions.lower, &conditions.upper) {
        (None, None) => String::new(),
        (Some(lower), Some(upper)) if !lower.is_exclusive && !upper.is_exclusive => {
            format!(" between {} and {}", lower.value.abbreviated(), upper.value.abbreviated())
        }
        (Some(lower), Some(upper)) => {
            format!(" that is {} and {}", side(lower, true), side(upper, false))
        }
        (Some(lower), None) => format!(" that is {}", side(lower, true)),
        (None, Some(upper)) => format!(" that is {}", side(upper, false)),
    };
    let step = conditions.multiple_of.as_ref();
    let step = step.map(|step| format!(", a multiple of {}", step.abbreviated()));
    format!("{what}{range}{}", step.unwrap_or_default())
}
