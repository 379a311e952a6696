//! Formulas of strings and of numbers as regular languages.
//!
//! Files: `string_languages` (and the form in which strings are emitted best), `number_languages`. What
//! both need stands here: automata of patterns, values that satisfy a formula, finite sets.

mod number_languages;
mod string_languages;

pub(super) use string_languages::StringForm;

use super::atoms::{Atom, LanguageId, Type, ValueId};
use super::converter::Converter;
use super::decimal::Decimal;
use super::formula::{Formula, FormulaId};
use super::numbers;
use crate::error::{Error, Result};
use crate::regular::{Bounds, Dfa};
use rustc_hash::FxHashMap;

/// Which atoms of a formula hold, in the order of their numbers.
#[derive(Default)]
struct TruthValues(Vec<(u32, bool)>);

impl TruthValues {
    fn of(&self, number: u32) -> bool {
        let place = self.0.binary_search_by_key(&number, |value| value.0);
        debug_assert!(place.is_ok(), "each atom of the formula has a value");
        place.is_ok_and(|place| self.0[place].1)
    }
}

impl Converter<'_> {
    /// The automaton of a pattern or format.
    pub(super) fn automaton(&mut self, language: LanguageId) -> Result<Dfa> {
        self.automaton_within(language, self.bounds.max_states)
    }

    pub(super) fn automaton_within(&mut self, id: LanguageId, most: usize) -> Result<Dfa> {
        let language = &mut self.languages[usize::from(id)];
        if let Some(known) = &language.automaton {
            return Ok(known.clone());
        }
        let bounds = Bounds { max_states: most, ..self.bounds };
        let made = match &language.pattern {
            Some(pattern) => pattern.to_dfa(true, &bounds),
            None => Ok(Dfa::nothing()), // a format comes with its automaton
        };
        let (node, keyword) = (language.node, language.keyword);
        match made {
            Ok(made) => {
                language.automaton = Some(made.clone());
                Ok(made)
            }
            Err(Error::Limit { limit, value, message }) => {
                let pointer = self.schemas.arena().pointer(node);
                let message = format!("{keyword}: {message}");
                Err(Error::LimitInSchema { pointer, limit, value, message })
            }
            Err(other) => Err(other),
        }
    }

    /// Whether a text satisfies a formula of strings.
    pub(super) fn string_satisfies(&mut self, formula: FormulaId, text: &str) -> Result<bool> {
        let mut holds = TruthValues::default();
        for (number, _) in self.formulas.atoms_of(formula) {
            let value = match self.atom(number).clone() {
                Atom::AtLeastCharacters(count) => text.chars().count() >= count as usize,
                Atom::Texts(set) => {
                    self.texts.get(set).binary_search_by(|known| (**known).cmp(text)).is_ok()
                }
                Atom::Language(language) => self.automaton(language)?.accepts(text),
                Atom::RegularExpression => is_regular_expression(text),
                _ => true,
            };
            holds.0.push((number, value));
        }
        self.spend(1 + text.len() / 16)?;
        Ok(self.formulas.evaluate(formula, &mut |number, _| holds.of(number)))
    }

    /// Whether a number satisfies a formula of numbers.
    pub(super) fn number_satisfies(&mut self, formula: FormulaId, value: &Decimal) -> Result<bool> {
        let mut holds = TruthValues::default();
        for (number, _) in self.formulas.atoms_of(formula) {
            let truth = match self.atom(number).clone() {
                Atom::Integer => value.is_integer(),
                Atom::AtLeast(bound) => *value >= **self.decimals.get(bound),
                Atom::Greater(bound) => *value > **self.decimals.get(bound),
                Atom::Decimals(set) => self.decimal_sets.get(set).binary_search(value).is_ok(),
                Atom::MultipleOf(step) => {
                    let of = self.multiple(step)?;
                    let only = numbers::values([value], &self.bounds)?;
                    !only.is_disjoint_from(&of, &self.bounds)?
                }
                _ => true,
            };
            holds.0.push((number, truth));
        }
        Ok(self.formulas.evaluate(formula, &mut |number, _| holds.of(number)))
    }

    /// The finite sets that a formula is within, by its positive sets; `None` where there is none.
    pub(super) fn candidates(&self, formula: FormulaId) -> Option<Vec<u32>> {
        let mut within: FxHashMap<FormulaId, Option<Vec<u32>>> = FxHashMap::default();
        for part in self.formulas.parts(formula) {
            let sets = match self.formulas.get(part) {
                Formula::Constant(true) => None,
                Formula::Constant(false) => Some(Vec::new()),
                Formula::Literal(atom, true) => match self.atom(*atom) {
                    Atom::Texts(_) | Atom::Decimals(_) => Some(vec![*atom]),
                    _ => None,
                },
                Formula::Literal(..) => None,
                Formula::And(inner) => {
                    inner.iter().filter_map(|part| within[part].clone()).min_by_key(Vec::len)
                }
                Formula::Or(inner) => {
                    let all: Option<Vec<Vec<u32>>> =
                        inner.iter().map(|part| within[part].clone()).collect();
                    all.map(|all| {
                        let mut all = all.concat();
                        all.sort_unstable();
                        all.dedup();
                        all
                    })
                }
            };
            within.insert(part, sets);
        }
        within.remove(&formula).flatten()
    }

    /// The texts of a formula of strings, where sets that are written out bound it.
    pub(super) fn listed_texts(&mut self, formula: FormulaId) -> Result<Option<Vec<String>>> {
        let Some(sets) = self.candidates(formula) else { return Ok(None) };
        let mut out: Vec<String> = Vec::new();
        for set in sets {
            let Atom::Texts(set) = *self.atom(set) else { continue };
            let texts = self.texts.get(set).clone();
            if self.formulas.get(formula) == &Formula::Literal(self.number_of(formula), true) {
                for text in texts.iter() {
                    self.spend(1)?;
                    out.push(text.to_string());
                }
                continue;
            }
            for text in texts.iter() {
                if self.string_satisfies(formula, text)? {
                    out.push(text.to_string());
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(Some(out))
    }

    fn number_of(&self, formula: FormulaId) -> u32 {
        match self.formulas.get(formula) {
            Formula::Literal(atom, _) => *atom,
            _ => u32::MAX,
        }
    }

    /// The numbers of a formula, likewise.
    pub(super) fn listed_decimals(&mut self, formula: FormulaId) -> Result<Option<Vec<Decimal>>> {
        let Some(sets) = self.candidates(formula) else { return Ok(None) };
        let mut out: Vec<Decimal> = Vec::new();
        for set in sets {
            let Atom::Decimals(set) = *self.atom(set) else { continue };
            let decimals = self.decimal_sets.get(set).clone();
            for value in decimals.iter() {
                if self.number_satisfies(formula, value)? {
                    out.push(value.clone());
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(Some(out))
    }

    /// Whether a value may be any at all.
    pub(super) fn is_any(&self, value: ValueId) -> bool {
        let key = self.values.get(value);
        Type::ALL.iter().all(|&kind| key.of(kind) == FormulaId::TRUE)
    }

    /// Whether an automaton is that of a format, whatever else is asked of the same texts.
    pub(super) fn is_format(&self, automaton: &Dfa) -> bool {
        let formats = self.languages.iter().filter(|language| language.pattern.is_none());
        formats.filter_map(|language| language.automaton.as_ref()).any(|known| known == automaton)
    }

    /// The automaton of a formula, from those of its literals; `all` has every text that there is.
    fn combined(
        &mut self,
        formula: FormulaId,
        all: &Dfa,
        literal: &mut dyn FnMut(&mut Self, Atom, bool) -> Result<Dfa>,
    ) -> Result<Dfa> {
        let bounds = self.bounds;
        let mut made: FxHashMap<FormulaId, Dfa> = FxHashMap::default();
        for part in self.formulas.parts(formula) {
            let dfa = match self.formulas.get(part).clone() {
                Formula::Constant(true) => all.clone(),
                Formula::Constant(false) => Dfa::nothing(),
                Formula::Literal(number, sign) => {
                    let atom = self.atom(number).clone();
                    literal(self, atom, sign)?
                }
                Formula::And(inner) => {
                    // The small ones first, so that what is made on the way stays small.
                    let mut parts: Vec<&Dfa> = inner.iter().map(|part| &made[part]).collect();
                    parts.sort_by_key(|part| part.num_states());
                    let mut both = all.clone();
                    for part in parts {
                        both = both.intersection(part, &bounds)?;
                    }
                    both
                }
                Formula::Or(inner) => {
                    let mut any = Dfa::nothing();
                    for part in &inner {
                        any = any.union(&made[part], &bounds)?;
                    }
                    any
                }
            };
            self.spend(dfa.num_states())?;
            made.insert(part, dfa);
        }
        Ok(made[&formula].clone())
    }
}

/// Whether a text is a regular expression of ECMA-262.
pub(super) fn is_regular_expression(text: &str) -> bool {
    use crate::regular::pattern::{PatternDialect, PatternFault, parse};
    match parse(text, PatternDialect::Ecma, "u") {
        Ok(_) => true,
        Err(error) => error.kind != PatternFault::Syntax,
    }
}
