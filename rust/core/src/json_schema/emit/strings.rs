//! Strings: texts by character, by list, by automaton or by pattern, as JSON spells them.

use super::automaton::DraftAutomaton;
use super::{Emitter, HERE, RuleKey};
use crate::error::{Error, Result};
use crate::grammar::{CharSet, Described, Expr, GrammarBuilder};
use crate::ids::ExprId;
use crate::json_schema::formats::within::RegexItem;
use crate::json_schema::formula::FormulaId;
use crate::json_schema::options::Escapes;
use crate::json_schema::scalars::StringForm;
use crate::regular::{self, Dfa, Spelling, encode, encode_character};
use rustc_hash::FxHashMap;

/// Sets of characters that are rules of their own.
const MOST_SETS: usize = 64;

impl Emitter<'_, '_> {
    pub(super) fn escapes(&self, is_free: bool) -> regular::JsonEscapes {
        match self.options().escapes {
            Escapes::Any => regular::JsonEscapes::Any,
            Escapes::Standard if is_free => regular::JsonEscapes::Any,
            Escapes::Standard | Escapes::Plain => regular::JsonEscapes::Plain,
        }
    }

    /// Texts with their quotation marks; `None` where one has a control character without a letter
    /// of its own, which has two spellings.
    fn spelled_in_one_way(&mut self, texts: &[String]) -> Result<Option<Vec<ExprId>>> {
        let mut quoted = Vec::with_capacity(texts.len());
        for text in texts {
            self.converter.spend(1 + text.len() / 16)?;
            let mut written = vec![b'"'];
            written.extend(spelled(text));
            if has_digits(&written) {
                return Ok(None);
            }
            written.push(b'"');
            quoted.push(written);
        }
        let mut literals = Vec::with_capacity(quoted.len());
        for written in quoted {
            self.converter.spend(1)?;
            literals.push(self.literal(&written));
        }
        Ok(Some(literals))
    }

    /// A string with its quotation marks.
    pub(super) fn string(&mut self, formula: FormulaId) -> Result<ExprId> {
        if self.quotes().is_raw {
            let body = self.call(RuleKey::Raw(formula));
            let quote = self.mark(self.quotes().string);
            return Ok(self.sequence(vec![quote, body, quote]));
        }
        let body = match self.values.texts[&formula].clone() {
            StringForm::Either(forms) => return Ok(self.either(&forms, RuleKey::String)),
            StringForm::Counted(automaton, min, max) => {
                self.counted(RuleKey::Counted(formula), &automaton, (min, max), false)?
            }
            StringForm::Characters(min, max)
                if !self.options().excludes.is_empty() && (min, max) != (0, None) =>
            {
                self.counted(RuleKey::Counted(formula), &Dfa::anything(), (min, max), true)?
            }
            text if !self.options().excludes.is_empty() => {
                let (automaton, is_free) = self.language(text)?;
                self.text_of(&automaton, is_free)?
            }
            StringForm::Characters(0, None) => self.text_of(&Dfa::anything(), true)?,
            StringForm::Characters(min, max) => {
                let body = self.character(&CharSet::scalar_values(), true);
                self.add(Expr::Repeat { body, min, max })
            }
            StringForm::Listed(texts) => {
                if self.options().escapes != Escapes::Any
                    && let Some(literals) = self.spelled_in_one_way(&texts)?
                {
                    return Ok(self.choice(literals));
                }
                let bounds = self.converter.bounds;
                let automaton = Dfa::texts(texts.iter().map(String::as_str), &bounds)?;
                self.encoded(&automaton, Spelling::Json(self.escapes(false)))?
            }
            StringForm::Automaton(automaton) => self.text_of(&automaton, false)?,
            StringForm::Pattern(language) => {
                let pattern = self.converter.languages[usize::from(language)].pattern.clone();
                let bounds = self.converter.bounds;
                let mut sets: Vec<CharSet> = Vec::new();
                let spelling = Spelling::Json(self.escapes(false));
                let mut character = |builder: &mut GrammarBuilder, set: &CharSet| {
                    sets.push(set.clone());
                    builder.add(Expr::Automaton(encode_character(set, spelling).into()), HERE)
                };
                let written = match pattern {
                    Some(pattern) => {
                        pattern.to_expr(&mut self.builder, &mut character, true, &bounds)?
                    }
                    None => None,
                };
                match written {
                    Some(written) => written,
                    None => {
                        let automaton = self.converter.automaton(language)?;
                        self.text_of(&automaton, false)?
                    }
                }
            }
            StringForm::RegularExpression => self.call(RuleKey::RegularExpression),
            StringForm::ExpressionWithin(within) => self.call(RuleKey::Expression(within, None)),
        };
        let quote = self.literal(b"\"");
        Ok(self.sequence(vec![quote, body, quote]))
    }

    /// One of several forms, each a rule of its own.
    pub(super) fn either(
        &mut self,
        forms: &[(FormulaId, StringForm)],
        key: impl Fn(FormulaId) -> RuleKey,
    ) -> ExprId {
        let calls = forms.iter().map(|&(formula, _)| self.call(key(formula))).collect();
        self.choice(calls)
    }

    /// A regular expression between two states of an automaton, or from its start to its ends.
    pub(super) fn expression(
        &mut self,
        number: u32,
        between: Option<(u32, u32)>,
    ) -> Result<ExprId> {
        let within = self.converter.expressions[number as usize].1.clone();
        let (start, ends) = within.ends(between);
        let is_on_way = |state: u32| {
            within.leads(start, state) && ends.iter().any(|&end| within.leads(state, end))
        };
        let mut out = DraftAutomaton::default();
        let mut states: FxHashMap<u32, u32> = FxHashMap::default();
        let mut state = |out: &mut DraftAutomaton, of: u32| {
            *states.entry(of).or_insert_with(|| {
                let new = out.state();
                out.finals[new as usize] = ends.contains(&of);
                new
            })
        };
        state(&mut out, start);
        for &(from, to) in within.pairs.iter().filter(|pair| is_on_way(pair.0) && is_on_way(pair.1))
        {
            let item = self.call(RuleKey::ExpressionItem(number, (from, to)));
            let (from, to) = (state(&mut out, from), state(&mut out, to));
            out.part(from, item, to);
        }
        if out.parts.is_empty() {
            return Ok(self.empty);
        }
        self.finish_automaton(out)
    }

    /// A part of a regular expression, or a group, between two states of an automaton.
    pub(super) fn expression_item(&mut self, number: u32, pair: (u32, u32)) -> Result<ExprId> {
        let within = self.converter.expressions[number as usize].1.clone();
        let mut out = Vec::new();
        for item in within.items.get(&pair).into_iter().flatten() {
            self.converter.spend(1)?;
            out.push(match *item {
                RegexItem::Leaf(leaf) => self.call(RuleKey::ExpressionLeaf(number, leaf)),
                RegexItem::Group(open, inner, close) => {
                    let open = self.call(RuleKey::ExpressionLeaf(number, open));
                    let inner = self.call(RuleKey::Expression(number, Some(inner)));
                    let close = self.call(RuleKey::ExpressionLeaf(number, close));
                    self.sequence(vec![open, inner, close])
                }
            });
        }
        Ok(self.choice(out))
    }

    /// The inside of a string: characters that are counted, where all are of one set.
    pub(super) fn text_of(&mut self, automaton: &Dfa, is_free: bool) -> Result<ExprId> {
        if !self.options().excludes.is_empty() {
            return self.encoded_without(automaton, Spelling::Json(self.escapes(is_free)), &[]);
        }
        if let Some((set, min, max)) = automaton.uniform_lengths()
            && (min > 1 || max.is_some_and(|max| max > 1))
        {
            let body = self.character(&set, is_free);
            return Ok(self.add(Expr::Repeat { body, min, max }));
        }
        let spelling = Spelling::Json(self.escapes(is_free));
        let bounds = self.converter.bounds;
        match encode(automaton, spelling, &bounds) {
            Ok(described) => Ok(self.described(described)),
            Err(error @ Error::Limit { .. }) => {
                self.by_characters(automaton, is_free)?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    /// An automaton that calls a rule for each character; `None` where it has many sets of them. A pattern
    /// that counts within a `maxLength` has thousands of states, each of which reads the same two or
    /// three sets: written out in bytes each would have its own.
    fn by_characters(&mut self, automaton: &Dfa, is_free: bool) -> Result<Option<ExprId>> {
        let Some(out) = self.calls_of_characters(automaton, is_free, MOST_SETS)? else {
            return Ok(None);
        };
        self.finish_automaton(out).map(Some)
    }

    pub(super) fn calls_of_characters(
        &mut self,
        automaton: &Dfa,
        is_free: bool,
        most_sets: usize,
    ) -> Result<Option<DraftAutomaton>> {
        let mut calls: FxHashMap<Vec<(u32, u32)>, ExprId> = FxHashMap::default();
        let mut out = DraftAutomaton::default();
        for state in 0..automaton.num_states() as u32 {
            out.finals.push(automaton.is_final(state));
            let mut ranges = automaton.ranges(state);
            self.converter.spend(1 + ranges.len())?;
            ranges.sort_unstable_by_key(|&(first, _, to)| (to, first));
            for edges in ranges.chunk_by(|a, b| a.2 == b.2) {
                let set: Vec<(u32, u32)> = edges.iter().map(|edge| (edge.0, edge.1)).collect();
                let call = match calls.get(&set) {
                    Some(&known) => known,
                    None if calls.len() == most_sets => return Ok(None),
                    None => {
                        let call = self.character(&CharSet::new(set.iter().copied()), is_free);
                        calls.insert(set, call);
                        call
                    }
                };
                out.part(state, call, edges[0].2);
            }
        }
        Ok(Some(out))
    }

    pub(super) fn character(&mut self, set: &CharSet, is_free: bool) -> ExprId {
        let number = self.set_number(set);
        self.call(RuleKey::Character(number, is_free))
    }

    pub(super) fn set_number(&mut self, set: &CharSet) -> u32 {
        if let Some(&known) = self.set_numbers.get(set) {
            return known;
        }
        let number = self.sets.len() as u32;
        self.sets.push(set.clone());
        self.set_numbers.insert(set.clone(), number);
        number
    }

    pub(super) fn encoded(&mut self, automaton: &Dfa, spelling: Spelling) -> Result<ExprId> {
        let bounds = self.converter.bounds;
        let described = encode(automaton, spelling, &bounds)?;
        Ok(self.described(described))
    }

    pub(super) fn described(&mut self, described: Described) -> ExprId {
        self.add(Expr::Automaton(described.into()))
    }
}

/// Whether a character is spelled by digits of either case.
fn has_digits(spelled: &[u8]) -> bool {
    spelled.windows(2).any(|pair| pair == b"\\u")
}

/// A text inside of a string of JSON, in its canonical spelling.
pub(super) fn spelled(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for character in text.chars() {
        let short = match character {
            '"' => Some(b'"'),
            '\\' => Some(b'\\'),
            '\u{8}' => Some(b'b'),
            '\u{c}' => Some(b'f'),
            '\n' => Some(b'n'),
            '\r' => Some(b'r'),
            '\t' => Some(b't'),
            _ => None,
        };
        match short {
            Some(letter) => out.extend([b'\\', letter]),
            None if character < ' ' => {
                out.extend(format!("\\u{:04x}", u32::from(character)).into_bytes());
            }
            None => out.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}
