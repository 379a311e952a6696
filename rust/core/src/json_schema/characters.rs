//! Keywords that speak of characters, as atoms: lengths, patterns, formats.

use super::atoms::{Atom, LanguageId};
use super::converter::{Converter, StringLanguage};
use super::formats::{Format, format};
use super::formula::FormulaId;
use super::value::JsonNodeId;
use crate::error::{Error, Result, SchemaFault};
use crate::regular::pattern::{LengthsAside, Pattern, PatternDialect, PatternFault, parse};

/// Patterns of so many texts, with automata of so many states, are lists of texts.
const FEW_TEXTS: usize = 64;
const FEW_STATES: usize = 1_000;

/// A repetition of one set with so many passes is a length beside the set: as an automaton it has as many states.
const LONG: u32 = 256;
const LONG_BESIDE_A_FORMAT: u32 = 16;

/// Whether a pattern looks as if it had few texts: it is whole, and nothing in it repeats.
fn is_plain_text(pattern: &str) -> bool {
    pattern.starts_with('^')
        && pattern.ends_with('$')
        && !pattern.contains(['*', '+', '{', '[', '.'])
}

impl Converter<'_> {
    pub(super) fn string_atoms(
        &mut self,
        node: JsonNodeId,
        parts: &mut Vec<FormulaId>,
    ) -> Result<()> {
        let schemas = self.schemas;
        if let Some(least) = schemas.count(node, "minLength")? {
            parts.push(self.at_least(Atom::AtLeastCharacters, least));
        }
        if let Some(most) = schemas.count(node, "maxLength")? {
            parts.push(self.at_most(Atom::AtLeastCharacters, most));
        }
        if let Some(pattern) = schemas.text(node, "pattern")? {
            let language = self.pattern(node, "pattern", pattern)?;
            let is_alone = schemas.value(node, "format").is_none();
            let language = self.lengths_aside(language, (pattern, is_alone), parts);
            let few = if is_plain_text(pattern) { self.few_texts(language)? } else { None };
            parts.push(match few {
                Some(texts) => self.one_of_texts(texts),
                None => self.formulas.literal(Atom::Language(language)),
            });
        }
        if self.options.assert_formats
            && let Some(name) = schemas.text(node, "format")?
        {
            if let Some(pattern) = self.options.pattern_of_format(name) {
                let language = self.language(node, "format", name, Some(pattern.clone()), None);
                parts.push(self.formulas.literal(Atom::Language(language)));
                return Ok(());
            }
            match format(name, &self.bounds)? {
                Format::Annotation => {} // see the notes
                Format::ContextFree(_) => {
                    self.expression = Some(node);
                    parts.push(self.formulas.literal(Atom::RegularExpression));
                }
                Format::Regular(automaton) => {
                    let language = self.language(node, "format", name, None, Some(automaton));
                    parts.push(self.formulas.literal(Atom::Language(language)));
                }
            }
        }
        Ok(())
    }

    /// A pattern without what bounds the length of the text by itself, which is a condition beside it. A long
    /// repetition is such a bound, and a short one if a format stands beside the pattern: two automata that count
    /// have as many states as their counts multiplied.
    fn lengths_aside(
        &mut self,
        language: LanguageId,
        (text, is_alone): (&str, bool),
        parts: &mut Vec<FormulaId>,
    ) -> LanguageId {
        let whole = &self.languages[usize::from(language)];
        let node = whole.node;
        let (long, what) = match is_alone {
            true => (LONG, "pattern, lengths aside"),
            false => (LONG_BESIDE_A_FORMAT, "pattern, short lengths aside"),
        };
        let aside = whole.pattern.as_ref().and_then(|pattern| pattern.lengths_aside(long));
        let Some(LengthsAside { rest, bounds: (least, most), longer }) = aside else {
            return language;
        };
        parts.push(self.at_least(Atom::AtLeastCharacters, least));
        if let Some(most) = most {
            parts.push(self.at_most(Atom::AtLeastCharacters, most));
        }
        if let Some((most, last)) = longer {
            let last = self.aside(node, "pattern, last character", text, last);
            let last = self.formulas.literal(Atom::Language(last));
            let one_more = self.at_most(Atom::AtLeastCharacters, most.saturating_add(1));
            let one_more = self.formulas.and([one_more, last]);
            let most = self.at_most(Atom::AtLeastCharacters, most);
            parts.push(self.formulas.or([most, one_more]));
        }
        self.aside(node, what, text, rest)
    }

    /// The language of what became of a pattern.
    fn aside(
        &mut self,
        node: JsonNodeId,
        what: &'static str,
        text: &str,
        pattern: Pattern,
    ) -> LanguageId {
        let key = (what, text.into());
        if let Some(&known) = self.language_numbers.get(&key) {
            return known;
        }
        let id = LanguageId::from(self.languages.len());
        let pattern = Some(pattern);
        self.languages.push(StringLanguage { node, keyword: "pattern", pattern, automaton: None });
        self.language_numbers.insert(key, id);
        id
    }

    /// The texts of a pattern, where these are few. The converter compares listed texts all at once, and
    /// languages pair by pair.
    fn few_texts(&mut self, language: LanguageId) -> Result<Option<Vec<Box<str>>>> {
        let automaton = match self.automaton_within(language, FEW_STATES) {
            Ok(automaton) => automaton,
            Err(Error::LimitInSchema { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        let texts = automaton.strings(FEW_TEXTS);
        Ok(texts.map(|texts| texts.into_iter().map(String::into_boxed_str).collect()))
    }

    /// The language of a pattern.
    pub(super) fn pattern(
        &mut self,
        node: JsonNodeId,
        keyword: &'static str,
        text: &str,
    ) -> Result<LanguageId> {
        if let Some(&known) = self.language_numbers.get(&(keyword, text.into())) {
            return Ok(known);
        }
        let pattern = parse(text, PatternDialect::Ecma, "").map_err(|error| {
            let kind = match error.kind {
                PatternFault::Syntax => SchemaFault::Invalid,
                PatternFault::Unsupported => SchemaFault::Unsupported,
            };
            let message = format!(
                "the pattern {text:?}, column {}: {}: {}",
                error.column, error.construct, error.message
            );
            self.fault(kind, node, keyword, message)
        })?;
        self.spend(text.len())?;
        Ok(self.language(node, keyword, text, Some(pattern), None))
    }

    fn language(
        &mut self,
        node: JsonNodeId,
        keyword: &'static str,
        text: &str,
        pattern: Option<Pattern>,
        automaton: Option<crate::regular::Dfa>,
    ) -> LanguageId {
        let key = (keyword, text.into());
        if let Some(&known) = self.language_numbers.get(&key) {
            return known;
        }
        let id = LanguageId::from(self.languages.len());
        self.languages.push(StringLanguage { node, keyword, pattern, automaton });
        self.language_numbers.insert(key, id);
        id
    }
}
