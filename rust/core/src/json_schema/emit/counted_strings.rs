//! Strings whose characters are counted: automata with a call for each character.
//!
//! Where texts are excluded, of which the end of an element is one, the automaton is read beside the search
//! for them: its states say how much of one was just written, and a call reads those spellings of a
//! character that lead from one such state to another. So bounds are counted there too.

use super::automaton::DraftAutomaton;
use super::{Emitter, RuleKey};
use crate::error::Result;
use crate::grammar::{CharSet, Described, Expr};
use crate::ids::ExprId;
use crate::regular::{Dfa, ExcludedTexts, Spelling, encode_character};
use rustc_hash::FxHashMap;

/// Beside a search, an automaton is written out whose states times the characters of its bound are no more.
const WRITTEN_OUT: u64 = 64;
/// Sets of characters that are rules of their own, in an automaton whose characters are counted.
const MOST_COUNTED_SETS: usize = 512;
/// Steps of a search that an automaton may call. With more it is written out.
const MOST_STEPS: usize = 2_000;

/// How characters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum CharacterSpelling {
    /// As in a string of JSON; whether nothing restricts it but its length.
    Json(bool),
    /// As they are, in an element or between marks that no string holds.
    Raw,
}

/// How a character of a set moves the search from one of its states: where to, and by which spellings.
type CharacterMoves = Vec<(u32, Described)>;

/// The steps that were found, by the number of the set.
#[derive(Default)]
pub(super) struct SearchSteps(FxHashMap<(u32, CharacterSpelling, u32), CharacterMoves>);

impl Emitter<'_, '_> {
    /// What stands in a string: a rule that counts characters, of that key, or what says the same.
    pub(super) fn counted(
        &mut self,
        key: RuleKey,
        automaton: &Dfa,
        (min, max): (u32, Option<u32>),
        is_free: bool,
    ) -> Result<ExprId> {
        let is_raw = matches!(key, RuleKey::RawCounted(_));
        let spelling =
            if is_raw { CharacterSpelling::Raw } else { CharacterSpelling::Json(is_free) };
        if is_raw || !self.options().excludes.is_empty() {
            let last = u64::from(max.unwrap_or(min));
            if automaton.num_states() as u64 * last <= WRITTEN_OUT {
                return self.without_counting(automaton, (min, max), spelling);
            }
        } else if let Some((set, least, most)) = automaton.uniform_lengths() {
            let body = self.character(&set, is_free);
            let (min, max) = (min.max(least), [max, most].into_iter().flatten().min());
            return Ok(self.add(Expr::Repeat { body, min, max }));
        }
        if max == Some(0) {
            return Ok(self.empty);
        }
        let call = self.call(key);
        Ok(match automaton.is_final(0) && min == 0 {
            true => self.choice(vec![self.empty, call]),
            false => call,
        })
    }

    /// The automaton with its bounds written out.
    fn without_counting(
        &mut self,
        language: &Dfa,
        (min, max): (u32, Option<u32>),
        spelling: CharacterSpelling,
    ) -> Result<ExprId> {
        let bounds = self.converter.bounds;
        let lengths = Dfa::lengths(min, max, &bounds)?;
        let automaton = language.intersection(&lengths, &bounds)?;
        match spelling {
            CharacterSpelling::Raw => {
                self.encoded_without(&automaton, Spelling::Utf8, &[self.end_of_raw_strings()])
            }
            CharacterSpelling::Json(is_free) => self.text_of(&automaton, is_free),
        }
    }

    /// The automaton of such a rule, but for the empty text.
    pub(super) fn counting(
        &mut self,
        language: &Dfa,
        (min, max): (u32, Option<u32>),
        spelling: CharacterSpelling,
    ) -> Result<ExprId> {
        let calls = match spelling {
            CharacterSpelling::Json(is_free) if self.options().excludes.is_empty() => {
                self.calls_of_characters(language, is_free, MOST_COUNTED_SETS)?
            }
            _ => self.calls_beside_search(language, spelling)?,
        };
        let Some(mut out) = calls else {
            return self.without_counting(language, (min.max(1), max), spelling);
        };
        // The start is a state of its own.
        let start = out.parts.iter().filter(|part| part.0 == 0);
        let start: Vec<(ExprId, u32)> = start.map(|part| (part.1, part.2 + 1)).collect();
        for part in &mut out.parts {
            (part.0, part.2) = (part.0 + 1, part.2 + 1);
        }
        out.finals.insert(0, false);
        start.into_iter().for_each(|(part, to)| out.part(0, part, to));
        out.counts = Some((min, max));
        self.finish_automaton(out)
    }

    /// An automaton that calls a rule for each character, beside the search for excluded texts; `None` where
    /// it would call many.
    fn calls_beside_search(
        &mut self,
        language: &Dfa,
        spelling: CharacterSpelling,
    ) -> Result<Option<DraftAutomaton>> {
        let bounds = self.converter.bounds;
        let end = (spelling == CharacterSpelling::Raw).then(|| self.end_of_raw_strings());
        let mut texts: Vec<&str> = self.options().excludes.iter().map(|one| &**one).collect();
        texts.extend(end);
        let search = ExcludedTexts::new(&texts, &bounds)?;
        let mut out = DraftAutomaton::default();
        let mut places = vec![(0, 0)];
        let mut number_of: FxHashMap<(u32, u32), u32> = [((0, 0), 0)].into_iter().collect();
        while let Some(&(state, seen)) = places.get(out.finals.len()) {
            let from = out.finals.len() as u32;
            out.finals.push(language.is_final(state));
            let mut ranges = language.ranges(state);
            self.converter.spend(1 + ranges.len())?;
            ranges.sort_unstable_by_key(|&(first, _, to)| (to, first));
            for edges in ranges.chunk_by(|a, b| a.2 == b.2) {
                let set = CharSet::new(edges.iter().map(|edge| (edge.0, edge.1)));
                let set = self.set_number(&set);
                for seen in self.moved(&search, set, spelling, seen)? {
                    let place = (edges[0].2, seen.1);
                    let to = *number_of.entry(place).or_insert_with(|| {
                        places.push(place);
                        places.len() as u32 - 1
                    });
                    let call = self.call(RuleKey::Step(set, spelling, seen));
                    out.part(from, call, to);
                }
            }
            if out.parts.len() > MOST_STEPS {
                return Ok(None);
            }
        }
        Ok(Some(out))
    }

    /// The steps of a search over the characters of a set.
    fn moved(
        &mut self,
        search: &ExcludedTexts,
        set: u32,
        spelling: CharacterSpelling,
        seen: u32,
    ) -> Result<Vec<(u32, u32)>> {
        let key = (set, spelling, seen);
        if !self.steps.0.contains_key(&key) {
            let written = match spelling {
                CharacterSpelling::Json(is_free) => Spelling::Json(self.escapes(is_free)),
                CharacterSpelling::Raw => Spelling::Utf8,
            };
            let character = encode_character(&self.sets[set as usize], written);
            let bounds = self.converter.bounds;
            self.steps.0.insert(key, search.steps(&character, seen, &bounds)?);
        }
        Ok(self.steps.0[&key].iter().map(|step| (seen, step.0)).collect())
    }

    /// The spellings of one step.
    pub(super) fn step(
        &mut self,
        set: u32,
        spelling: CharacterSpelling,
        (from, to): (u32, u32),
    ) -> ExprId {
        let steps = self.steps.0.get(&(set, spelling, from)).into_iter().flatten();
        let spelled = steps.filter(|step| step.0 == to).map(|step| step.1.clone()).next();
        spelled.map_or(self.empty, |spelled| self.described(spelled))
    }
}
