//! The languages of numbers of a formula.

use crate::error::{Error, Result};
use crate::json_schema::atoms::{Atom, DecimalId};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use crate::json_schema::numbers::{self, Bound, Conditions, NumberOptions, Sign};
use crate::json_schema::value::{JsonNode, JsonNodeId};
use crate::regular::Dfa;

impl Converter<'_> {
    /// The automaton of the spellings of numbers that satisfy a formula.
    fn number_language(&mut self, formula: FormulaId) -> Result<Dfa> {
        if let Some(known) = self.number_languages.get(&formula) {
            return Ok(known.clone());
        }
        let bounds = self.bounds;
        let dfa = if let Some(sign) = self.half_line(formula) {
            numbers::with_exponents(sign)
        } else if let Some(conditions) = self.conditions(formula) {
            let made = match &conditions {
                Conditions { lower, upper, integers: None, multiple_of: None }
                    if !self.has_unique_items() =>
                {
                    numbers::interval(lower.as_ref(), upper.as_ref(), &bounds)
                }
                Conditions {
                    lower: None,
                    upper: None,
                    integers: Some(options),
                    multiple_of: None,
                } => Ok(numbers::integers(*options)),
                _ => numbers::matching(&conditions, &bounds),
            };
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

    /// Whether some array of the documents must not repeat an item: the values of bounded numbers are then
    /// counted by their spellings, and have none with exponents.
    fn has_unique_items(&mut self) -> bool {
        let arena = self.schemas.arena();
        *self.has_unique_items.get_or_insert_with(|| {
            let mut nodes = (0..arena.len()).map(|number| JsonNodeId(number as u32));
            nodes.any(|node| {
                let keyword = arena.get(node, "uniqueItems");
                keyword.is_some_and(|value| *arena.node(value) == JsonNode::Boolean(true))
            })
        })
    }

    /// The numbers of a formula as they may be written: with so many digits in a row, but where they are
    /// listed.
    pub(in crate::json_schema) fn written_numbers(&mut self, formula: FormulaId) -> Result<Dfa> {
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
    pub(in crate::json_schema) fn conditions(&self, formula: FormulaId) -> Option<Conditions> {
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

    pub(super) fn multiple(&mut self, step: DecimalId) -> Result<Dfa> {
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
