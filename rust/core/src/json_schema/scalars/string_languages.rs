//! How strings of a formula are emitted best, and their languages.

use crate::automata::lengths::Lengths;
use crate::error::{Error, Result};
use crate::json_schema::atoms::{Atom, LanguageId};
use crate::json_schema::converter::Converter;
use crate::json_schema::formats::within::{self, PatternsWithin};
use crate::json_schema::formula::{Formula, FormulaId};
use crate::limits::MOST_TEXT_BYTES;
use crate::regular::Dfa;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Patterns whose automata have more states are written as expressions, their counts counted, where
/// nothing else is asked of the string.
const LARGE_PATTERN: usize = 1_000;

/// Automata of so many states with their lengths are written out.
const FEW_STATES: u64 = 256;

/// The most alternatives of one string that count its characters each by itself.
const MOST_WAYS: usize = 32;

/// Bounds of up to so many characters do not make alternatives count.
const WRITTEN_OUT: u32 = 16;

/// What a string is to be, in the form in which it is emitted best.
#[derive(Clone, Debug)]
pub(in crate::json_schema) enum StringForm {
    /// Any characters, between so many and so many.
    Characters(u32, Option<u32>),
    /// One of these.
    Listed(Rc<[String]>),
    /// Of a regular language.
    Automaton(Dfa),
    /// Of a regular language, between so many characters and so many, which are counted.
    Counted(Dfa, u32, Option<u32>),
    /// In one of these forms, each of its own formula: lengths that hold in some of them are counted there.
    Either(Rc<[(FormulaId, StringForm)]>),
    /// As a pattern says, which is large as an automaton.
    Pattern(LanguageId),
    /// A regular expression.
    RegularExpression,
    /// A regular expression that is of an automaton too, by its number.
    ExpressionWithin(u32),
}

impl Converter<'_> {
    /// How a string of a formula is emitted best.
    pub(in crate::json_schema) fn text(&mut self, formula: FormulaId) -> Result<StringForm> {
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
                Some(most) if most < least => StringForm::Listed([].into()),
                _ => StringForm::Characters(least, most),
            });
        }
        if let Some(texts) = self.listed_texts(formula)? {
            return Ok(StringForm::Listed(texts.into()));
        }
        if let [only] = conjuncts.as_slice()
            && let Formula::Literal(number, true) = *self.formulas.get(*only)
        {
            match *self.atom(number) {
                Atom::RegularExpression => return Ok(StringForm::RegularExpression),
                Atom::Language(language) => {
                    let entry = &self.languages[usize::from(language)];
                    let counts = entry.pattern.as_ref();
                    let counts =
                        counts.is_some_and(|p| p.greatest_count() > 16 && p.keeps_counts(true));
                    if counts {
                        match self.automaton_within(language, LARGE_PATTERN) {
                            Ok(_) => {}
                            Err(Error::LimitInSchema { .. }) => {
                                return Ok(StringForm::Pattern(language));
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
                true => StringForm::Listed([].into()),
                false => StringForm::ExpressionWithin(within),
            });
        }
        let is_length = |part: &&FormulaId| match *self.formulas.get(**part) {
            Formula::Literal(number, _) => matches!(self.atom(number), Atom::AtLeastCharacters(_)),
            _ => false,
        };
        let rest: Vec<FormulaId> =
            conjuncts.iter().filter(|part| !is_length(part)).copied().collect();
        if rest.iter().any(|&part| self.has_lengths(part))
            && let Some(either) = self.either(formula)?
        {
            return Ok(either);
        }
        if least > 0 || most.is_some() {
            let rest = self.formulas.and(rest);
            let language = self.string_language(rest)?;
            if let Some(text) = self.of_lengths(&language, least, most)? {
                return Ok(text);
            }
        }
        let automaton = self.string_language(formula)?;
        if automaton.is_universal() {
            return Ok(StringForm::Characters(0, None));
        }
        Ok(StringForm::Automaton(automaton))
    }

    /// The form of a string whose alternatives have lengths of their own, where these are counted; `None`
    /// where one automaton says all.
    fn either(&mut self, formula: FormulaId) -> Result<Option<StringForm>> {
        let Some(ways) = self.ways_of_lengths(formula)? else { return Ok(None) };
        let (with, without): (Vec<FormulaId>, Vec<FormulaId>) =
            ways.into_iter().partition(|&way| self.has_lengths(way));
        if with.is_empty() {
            return Ok(None);
        }
        let mut ways = with;
        ways.push(self.formulas.or(without));
        ways.sort_unstable();
        ways.dedup();
        ways.retain(|&way| way != FormulaId::FALSE && way != formula);
        let mut forms = Vec::new();
        for way in ways {
            let form = self.text(way)?;
            let is_empty = match &form {
                StringForm::Listed(texts) => texts.is_empty(),
                StringForm::Automaton(automaton) => automaton.is_empty(),
                _ => false,
            };
            if !is_empty {
                forms.push((way, form));
            }
        }
        let counts = forms.iter().any(|(_, form)| match form {
            StringForm::Counted(..) => true,
            StringForm::Characters(least, most) => most.unwrap_or(*least) > WRITTEN_OUT,
            _ => false,
        });
        Ok(Some(match forms.as_slice() {
            [] => StringForm::Listed([].into()),
            [(_, only)] => only.clone(),
            _ if counts => StringForm::Either(forms.into()),
            _ => match self.all_of_forms(&forms)? {
                Some(any) if any.is_universal() => StringForm::Characters(0, None),
                Some(any) => StringForm::Automaton(any),
                None => StringForm::Either(forms.into()),
            },
        }))
    }

    /// One automaton for texts of all these forms; `None` where some is no automaton.
    fn all_of_forms(&mut self, forms: &[(FormulaId, StringForm)]) -> Result<Option<Dfa>> {
        let bounds = self.bounds;
        let mut any = Dfa::nothing();
        for (_, form) in forms {
            let texts = match form {
                StringForm::Automaton(automaton) => automaton.clone(),
                StringForm::Listed(texts) => Dfa::texts(texts.iter().map(String::as_str), &bounds)?,
                StringForm::Characters(least, most) => Dfa::lengths(*least, *most, &bounds)?,
                _ => return Ok(None),
            };
            any = any.union(&texts, &bounds)?;
        }
        Ok(Some(any))
    }

    /// A formula as alternatives none of which has lengths in alternatives of its own; `None` where these
    /// are many, or the formula is such a one.
    fn ways_of_lengths(&mut self, formula: FormulaId) -> Result<Option<Vec<FormulaId>>> {
        let mut ways: FxHashMap<FormulaId, Vec<FormulaId>> = FxHashMap::default();
        for part in self.formulas.parts(formula) {
            self.spend(1)?;
            let made = match self.formulas.get(part).clone() {
                _ if !self.has_lengths(part) => vec![part],
                Formula::Or(inner) => inner.iter().flat_map(|part| ways[part].clone()).collect(),
                Formula::And(inner) => {
                    let mut all = vec![FormulaId::TRUE];
                    for part in inner {
                        let parts = &ways[&part];
                        if all.len() * parts.len() > MOST_WAYS {
                            return Ok(None);
                        }
                        let pairs =
                            all.iter().flat_map(|&one| parts.iter().map(move |&two| [one, two]));
                        let pairs: Vec<[FormulaId; 2]> = pairs.collect();
                        all = pairs.into_iter().map(|pair| self.formulas.and(pair)).collect();
                    }
                    all
                }
                Formula::Constant(_) | Formula::Literal(..) => vec![part],
            };
            if made.len() > MOST_WAYS {
                return Ok(None);
            }
            ways.insert(part, made);
        }
        Ok(ways.remove(&formula).filter(|ways| ways.as_slice() != [formula]))
    }

    /// Whether a formula speaks of lengths.
    fn has_lengths(&self, formula: FormulaId) -> bool {
        let atoms = self.formulas.atoms_of(formula);
        atoms.into_iter().any(|(number, _)| matches!(self.atom(number), Atom::AtLeastCharacters(_)))
    }

    /// The language of a formula as an automaton, and bounds on the lengths of its texts that the matcher
    /// counts: `(0, None)` where the automaton holds the bounds itself.
    pub(in crate::json_schema) fn counted_language(
        &mut self,
        formula: FormulaId,
    ) -> Result<(Dfa, (u32, Option<u32>))> {
        match self.text(formula)? {
            StringForm::Counted(language, least, most) => Ok((language, (least, most))),
            StringForm::Characters(least, most)
                if u64::from(most.unwrap_or(least)) > FEW_STATES =>
            {
                Ok((Dfa::anything(), (least, most)))
            }
            _ => Ok((self.string_language(formula)?, (0, None))),
        }
    }

    /// Whether a language has a text of such a number of characters.
    pub(in crate::json_schema) fn has_text_within(
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
    ) -> Result<Option<StringForm>> {
        // A text of more bytes than a matcher reads does not end: greater bounds all mean that.
        let least = least.min(MOST_TEXT_BYTES + 1);
        let last = most.unwrap_or(least);
        if language.is_empty() {
            return Ok(Some(StringForm::Listed([].into())));
        }
        if language.num_states() as u64 * (u64::from(last) + 1) <= FEW_STATES {
            return Ok(None);
        }
        if let Some((_, min, max)) = language.uniform_lengths() {
            // As a repetition is counted.
            let (min, max) = (min.max(least), [max, most].into_iter().flatten().min());
            return Ok(match max {
                Some(max) if max < min => Some(StringForm::Listed([].into())),
                _ => Some(StringForm::Counted(language.clone(), min, max)),
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
            return Ok(Some(StringForm::Listed(texts.into())));
        }
        // A bound that holds of all texts is none.
        let most = most.filter(|&most| longest(&targets).is_none_or(|longest| longest > most));
        let least = if lengths.shortest(0) >= least { 0 } else { least };
        if least == 0 && most.is_none() {
            return Ok(Some(StringForm::Automaton(language.clone())));
        }
        Ok(Some(StringForm::Counted(language.clone(), least, most)))
    }

    /// The automaton of a formula of strings.
    pub(in crate::json_schema) fn string_language(&mut self, formula: FormulaId) -> Result<Dfa> {
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

    /// What a formula of strings asks beside that the text is a regular expression; `None` where it
    /// does not ask for that.
    pub(in crate::json_schema) fn beside_expression(
        &mut self,
        formula: FormulaId,
    ) -> Option<FormulaId> {
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
    pub(in crate::json_schema) fn expression_within(&mut self, automaton: &Dfa) -> Result<u32> {
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
        let made = PatternsWithin::new(automaton, &self.bounds)?;
        let number = self.expressions.len() as u32;
        self.expressions.push((automaton.clone(), Rc::new(made)));
        Ok(number)
    }

    pub(in crate::json_schema) fn expression_beside(&self) -> Error {
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
}

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
