//! Formulas of strings and of numbers as regular languages.

use super::atoms::{Atom, DecimalId, LanguageId, Type, ValueId};
use super::converter::Converter;
use super::decimal::Decimal;
use super::formats::within::{self, Within};
use super::formula::{Formula, FormulaId};
use super::numbers::{self, Bound, Conditions, NumberOptions, Sign};
use crate::automata::lengths::Lengths;
use crate::error::{Error, Result};
use crate::limits::MOST_TEXT_BYTES;
use crate::regular::{Bounds, Dfa};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Patterns whose automata have more states are written as expressions, their counts counted, where
/// nothing else is asked of the string.
const LARGE_PATTERN: usize = 1_000;

/// Automata of so many states with their lengths are written out.
const FEW_STATES: u64 = 256;

/// The most characters of a text of an automaton; `None` where there is no end.
fn longest(targets: &[Vec<u32>]) -> Option<u32> {
    let mut entries = vec![0; targets.len()];
    targets.iter().flatten().for_each(|&to| entries[to as usize] += 1);
    let mut longest = vec![0; targets.len()];
    let mut work: Vec<u32> =
        (0..targets.len() as u32).filter(|&q| entries[q as usize] == 0).collect();
    let (mut done, mut most) = (0, 0);
    while let Some(state) = work.pop() {
        done += 1;
        let length = longest[state as usize];
        most = most.max(length);
        for &to in &targets[state as usize] {
            longest[to as usize] = longest[to as usize].max(length + 1);
            entries[to as usize] -= 1;
            if entries[to as usize] == 0 {
                work.push(to);
            }
        }
    }
    // What is left stands in a loop, or behind one.
    (done == targets.len()).then_some(most)
}

/// What a string is to be, in the form in which it is emitted best.
#[derive(Clone, Debug)]
pub(super) enum Text {
    /// Any characters, between so many and so many.
    Characters(u32, Option<u32>),
    /// One of these.
    Listed(Rc<[String]>),
    /// Of a regular language.
    Automaton(Dfa),
    /// Of a regular language, between so many characters and so many, which are counted.
    Counted(Dfa, u32, Option<u32>),
    /// As a pattern says, which is large as an automaton.
    Pattern(LanguageId),
    /// A regular expression.
    RegularExpression,
    /// A regular expression that is of an automaton too, by its number.
    ExpressionWithin(u32),
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
        let mut holds: FxHashMap<u32, bool> = FxHashMap::default();
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
            holds.insert(number, value);
        }
        self.spend(1 + text.len() / 16)?;
        Ok(self.formulas.evaluate(formula, &mut |number, _| holds[&number]))
    }

    /// Whether a number satisfies a formula of numbers.
    pub(super) fn number_satisfies(&mut self, formula: FormulaId, value: &Decimal) -> Result<bool> {
        let mut holds: FxHashMap<u32, bool> = FxHashMap::default();
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
            holds.insert(number, truth);
        }
        Ok(self.formulas.evaluate(formula, &mut |number, _| holds[&number]))
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

    /// How a string of a formula is emitted best.
    pub(super) fn text(&mut self, formula: FormulaId) -> Result<Text> {
        let conjuncts = self.formulas.conjuncts(formula);
        let (mut least, mut most, mut plain) = (0, None::<u32>, true);
        for &part in &conjuncts {
            match *self.formulas.get(part) {
                Formula::Literal(number, sign) => match (self.atom(number), sign) {
                    (Atom::AtLeastCharacters(count), true) => least = least.max(*count),
                    (Atom::AtLeastCharacters(count), false) => {
                        most = Some(most.unwrap_or(u32::MAX).min(count - 1));
                    }
                    _ => plain = false,
                },
                _ => plain = false,
            }
        }
        if plain {
            return Ok(match most {
                Some(most) if most < least => Text::Listed([].into()),
                _ => Text::Characters(least, most),
            });
        }
        if let Some(texts) = self.listed_texts(formula)? {
            return Ok(Text::Listed(texts.into()));
        }
        if let [only] = conjuncts.as_slice()
            && let Formula::Literal(number, true) = *self.formulas.get(*only)
        {
            match *self.atom(number) {
                Atom::RegularExpression => return Ok(Text::RegularExpression),
                Atom::Language(language) => {
                    let entry = &self.languages[usize::from(language)];
                    let counts = entry.pattern.as_ref();
                    let counts = counts.is_some_and(|p| p.is_plain() && p.greatest_count() > 16);
                    if counts {
                        match self.automaton_within(language, LARGE_PATTERN) {
                            Ok(_) => {}
                            Err(Error::LimitInSchema { .. }) => {
                                return Ok(Text::Pattern(language));
                            }
                            Err(other) => return Err(other),
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(rest) = self.beside_expression(formula) {
            let rest = self.string_language(rest)?;
            let within = self.expression_within(&rest)?;
            return Ok(match self.expressions[within as usize].1.is_empty() {
                true => Text::Listed([].into()),
                false => Text::ExpressionWithin(within),
            });
        }
        if least > 0 || most.is_some() {
            let is_length = |part: &&FormulaId| match *self.formulas.get(**part) {
                Formula::Literal(number, _) => {
                    matches!(self.atom(number), Atom::AtLeastCharacters(_))
                }
                _ => false,
            };
            let rest: Vec<FormulaId> =
                conjuncts.iter().filter(|part| !is_length(part)).copied().collect();
            let rest = self.formulas.and(rest);
            let language = self.string_language(rest)?;
            if let Some(text) = self.of_lengths(&language, least, most)? {
                return Ok(text);
            }
        }
        let automaton = self.string_language(formula)?;
        if automaton.is_universal() {
            return Ok(Text::Characters(0, None));
        }
        Ok(Text::Automaton(automaton))
    }

    /// The language of a formula as an automaton, and bounds on the lengths of its texts that the matcher
    /// counts: `(0, None)` where the automaton holds the bounds itself.
    pub(super) fn counted_language(
        &mut self,
        formula: FormulaId,
    ) -> Result<(Dfa, (u32, Option<u32>))> {
        match self.text(formula)? {
            Text::Counted(language, least, most) => Ok((language, (least, most))),
            Text::Characters(least, most) if u64::from(most.unwrap_or(least)) > FEW_STATES => {
                Ok((Dfa::anything(), (least, most)))
            }
            _ => Ok((self.string_language(formula)?, (0, None))),
        }
    }

    /// Whether a language has a text of such a number of characters.
    pub(super) fn has_text_within(
        &mut self,
        language: &Dfa,
        (least, most): (u32, Option<u32>),
    ) -> Result<bool> {
        if language.is_empty() || most.is_some_and(|most| most < least) {
            return Ok(false);
        }
        if (least, most) == (0, None) {
            return Ok(true);
        }
        let finals: Vec<bool> =
            (0..language.num_states() as u32).map(|q| language.is_final(q)).collect();
        let targets = language.targets();
        let lengths = Lengths::new(&targets, &finals, least > 0, self.bounds.budget)?;
        Ok(lengths.within(0, least, most))
    }

    /// The texts of a language within bounds on their lengths; `None` where they are written out.
    fn of_lengths(
        &mut self,
        language: &Dfa,
        least: u32,
        most: Option<u32>,
    ) -> Result<Option<Text>> {
        // A text of more bytes than a matcher reads does not end: greater bounds all mean that.
        let least = least.min(MOST_TEXT_BYTES + 1);
        let last = most.unwrap_or(least);
        if language.is_empty() || language.num_states() as u64 * (u64::from(last) + 1) <= FEW_STATES
        {
            return Ok(None);
        }
        if let Some((_, min, max)) = language.uniform_lengths() {
            // As a repetition is counted.
            let (min, max) = (min.max(least), [max, most].into_iter().flatten().min());
            return Ok(match max {
                Some(max) if max < min => Some(Text::Listed([].into())),
                _ => Some(Text::Counted(language.clone(), min, max)),
            });
        }
        let targets = language.targets();
        let finals: Vec<bool> =
            (0..language.num_states() as u32).map(|q| language.is_final(q)).collect();
        self.spend(targets.len())?;
        let lengths = match Lengths::new(&targets, &finals, least > 1, self.bounds.budget) {
            Ok(lengths) => lengths,
            Err(Error::Limit { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        // A text that is not empty goes on from some state behind the start.
        let left = most.map(|most| most.checked_sub(1));
        let may_go_on = targets[0].iter().any(|&to| {
            left != Some(None) && lengths.within(to, least.saturating_sub(1), left.flatten())
        });
        if !may_go_on {
            let has_empty = least == 0 && language.is_final(0);
            let texts: Vec<String> = has_empty.then(String::new).into_iter().collect();
            return Ok(Some(Text::Listed(texts.into())));
        }
        // A bound that holds of all texts is none.
        let most = most.filter(|&most| longest(&targets).is_none_or(|longest| longest > most));
        let least = if lengths.shortest(0) >= least { 0 } else { least };
        if least == 0 && most.is_none() {
            return Ok(Some(Text::Automaton(language.clone())));
        }
        Ok(Some(Text::Counted(language.clone(), least, most)))
    }

    /// The automaton of a formula of strings.
    pub(super) fn string_language(&mut self, formula: FormulaId) -> Result<Dfa> {
        if let Some(known) = self.string_languages.get(&formula) {
            return Ok(known.clone());
        }
        let bounds = self.bounds;
        let dfa = self.combined(formula, &Dfa::anything(), &mut |this, atom, sign| {
            let dfa = match atom {
                Atom::AtLeastCharacters(count) => Dfa::lengths(count, None, &bounds)?,
                Atom::Language(language) => this.automaton(language)?,
                Atom::Texts(set) => {
                    let texts = this.texts.get(set).clone();
                    Dfa::texts(texts.iter().map(|text| &**text), &bounds)?
                }
                Atom::RegularExpression => return Err(this.expression_beside()),
                _ => Dfa::anything(),
            };
            Ok(if sign { dfa } else { dfa.complement() })
        })?;
        self.string_languages.insert(formula, dfa.clone());
        Ok(dfa)
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

    /// The automaton of the spellings of numbers that satisfy a formula.
    pub(super) fn number_language(&mut self, formula: FormulaId) -> Result<Dfa> {
        if let Some(known) = self.number_languages.get(&formula) {
            return Ok(known.clone());
        }
        let bounds = self.bounds;
        let dfa = if let Some(sign) = self.half_line(formula) {
            numbers::with_exponents(sign)
        } else if let Some(conditions) = self.conditions(formula) {
            let made = numbers::matching(&conditions, &bounds);
            match self.step_of(formula) {
                Some(step) => made.map_err(|error| self.at_step(step, error))?,
                None => made?,
            }
        } else {
            self.combined_numbers(formula)?
        };
        self.number_languages.insert(formula, dfa.clone());
        Ok(dfa)
    }

    /// The numbers of a formula as they may be written: with so many digits in a row, but where they are
    /// listed.
    pub(super) fn written_numbers(&mut self, formula: FormulaId) -> Result<Dfa> {
        let all = self.number_language(formula)?;
        let Some(most) = self.options.max_digits else { return Ok(all) };
        if self.listed_decimals(formula)?.is_some() {
            return Ok(all);
        }
        all.intersection(&numbers::with_digits(most, &self.bounds)?, &self.bounds)
    }

    /// The side of zero that a formula says, where it says no more.
    fn half_line(&self, formula: FormulaId) -> Option<Sign> {
        let is_zero = |id: DecimalId| self.decimals.get(id).is_zero();
        match self.formulas.get(formula) {
            Formula::Constant(true) => Some(Sign::Any),
            Formula::Literal(number, sign) => match (self.atom(*number), sign) {
                (Atom::AtLeast(bound), true) if is_zero(*bound) => Some(Sign::NonNegative),
                (Atom::AtLeast(bound), false) if is_zero(*bound) => Some(Sign::Negative),
                (Atom::Greater(bound), true) if is_zero(*bound) => Some(Sign::Positive),
                (Atom::Greater(bound), false) if is_zero(*bound) => Some(Sign::NonPositive),
                _ => None,
            },
            _ => None,
        }
    }

    /// A conjunction of bounds, integrality and one multiple, as conditions that are made at once.
    pub(super) fn conditions(&self, formula: FormulaId) -> Option<Conditions> {
        let mut out = Conditions::default();
        for part in self.formulas.conjuncts(formula) {
            let Formula::Literal(number, sign) = *self.formulas.get(part) else { return None };
            let decimal = |id: DecimalId| (**self.decimals.get(id)).clone();
            let tighter = |old: &Option<Bound>, new: &Bound, is_lower: bool| {
                old.as_ref().is_none_or(|old| {
                    let further =
                        if is_lower { new.value > old.value } else { new.value < old.value };
                    further || new.value == old.value && new.is_exclusive
                })
            };
            match (self.atom(number), sign) {
                (Atom::Integer, true) => out.integers = Some(self.number_options()),
                (Atom::MultipleOf(step), true) if out.multiple_of.is_none() => {
                    out.multiple_of = Some(decimal(*step));
                }
                (Atom::AtLeast(bound) | Atom::Greater(bound), sign) => {
                    let is_greater = matches!(self.atom(number), Atom::Greater(_));
                    let bound = Bound { value: decimal(*bound), is_exclusive: is_greater == sign };
                    let end = if sign { &mut out.lower } else { &mut out.upper };
                    if tighter(end, &bound, sign) {
                        *end = Some(bound);
                    }
                }
                _ => return None,
            }
        }
        Some(out)
    }

    fn number_options(&self) -> NumberOptions {
        NumberOptions { integers_with_fraction: self.options.integers_with_fraction }
    }

    /// The step that a conjunction asks for.
    fn step_of(&self, formula: FormulaId) -> Option<DecimalId> {
        let parts = self.formulas.conjuncts(formula);
        parts.into_iter().find_map(|part| match *self.formulas.get(part) {
            Formula::Literal(number, _) => match self.atom(number) {
                Atom::MultipleOf(step) => Some(*step),
                _ => None,
            },
            _ => None,
        })
    }

    /// The error of multiples, at the keyword that asks for them.
    fn at_step(&self, step: DecimalId, error: Error) -> Error {
        match (error, self.steps.get(&step)) {
            (Error::Limit { limit: "max_multiple", message, .. }, Some(&node)) => {
                self.unsupported(node, "multipleOf", message)
            }
            (error, _) => error,
        }
    }

    /// What a formula of strings asks beside that the text is a regular expression; `None` where it
    /// does not ask for that.
    pub(super) fn beside_expression(&mut self, formula: FormulaId) -> Option<FormulaId> {
        let mut conjuncts = self.formulas.conjuncts(formula);
        let is_expression = |part: &FormulaId| match *self.formulas.get(*part) {
            Formula::Literal(number, true) => *self.atom(number) == Atom::RegularExpression,
            _ => false,
        };
        let place = conjuncts.iter().position(is_expression)?;
        conjuncts.remove(place);
        Some(self.formulas.and(conjuncts))
    }

    /// The number of the regular expressions among the texts of an automaton.
    pub(super) fn expression_within(&mut self, automaton: &Dfa) -> Result<u32> {
        if let Some(known) = self.expressions.iter().position(|known| known.0 == *automaton) {
            return Ok(known as u32);
        }
        if automaton.num_states() > within::MOST_STATES {
            let node = self.expression.unwrap_or_else(|| self.schemas.root());
            return Err(Error::LimitInSchema {
                pointer: self.schemas.arena().pointer(node),
                limit: "max_regex_states",
                value: within::MOST_STATES as u64,
                message: format!(
                    "format: the conditions beside \"regex\" take an automaton of {} states, and the \
                     rules of nested brackets are made for each pair of them; give smaller lengths, \
                     or a simpler pattern",
                    automaton.num_states()
                ),
            });
        }
        let made = Within::new(automaton, &self.bounds)?;
        let number = self.expressions.len() as u32;
        self.expressions.push((automaton.clone(), Rc::new(made)));
        Ok(number)
    }

    pub(super) fn expression_beside(&self) -> Error {
        let node = self.expression.unwrap_or_else(|| self.schemas.root());
        self.unsupported(
            node,
            "format",
            "\"regex\" is no regular language: it may stand beside other conditions, but not under \
             `not`, in an alternative for strings that has others, or where it tells names of \
             members apart; move it out, or pass formats=\"annotation\""
                .into(),
        )
    }

    fn multiple(&mut self, step: DecimalId) -> Result<Dfa> {
        let literal = self.formulas.literal(Atom::MultipleOf(step));
        if let Some(known) = self.number_languages.get(&literal) {
            return Ok(known.clone());
        }
        let dfa = numbers::multiples(&self.decimals.get(step).clone(), &self.bounds)
            .map_err(|error| self.at_step(step, error))?;
        self.number_languages.insert(literal, dfa.clone());
        Ok(dfa)
    }

    fn combined_numbers(&mut self, formula: FormulaId) -> Result<Dfa> {
        let bounds = self.bounds;
        let plain = numbers::plain();
        self.combined(formula, &plain, &mut |this, atom, sign| {
            let dfa = match atom {
                Atom::Integer if sign => numbers::integers(this.number_options()),
                // What is no integer is so by its value, however it is spelled.
                Atom::Integer => return Ok(numbers::fractions()),
                Atom::AtLeast(bound) => numbers::at_least(this.decimals.get(bound), &bounds)?,
                Atom::Greater(bound) => numbers::greater(this.decimals.get(bound), &bounds)?,
                Atom::MultipleOf(step) => this.multiple(step)?,
                Atom::Decimals(set) => numbers::values(this.decimal_sets.get(set).iter(), &bounds)?,
                _ => plain.clone(),
            };
            if sign { Ok(dfa) } else { plain.difference(&dfa, &bounds) }
        })
    }
}

/// Whether a text is a regular expression of ECMA-262.
pub(super) fn is_regular_expression(text: &str) -> bool {
    use crate::regular::pattern::{Dialect, PatternFault, parse};
    match parse(text, Dialect::Ecma, "u") {
        Ok(_) => true,
        Err(error) => error.kind != PatternFault::Syntax,
    }
}
