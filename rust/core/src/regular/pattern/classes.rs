//! What stands in brackets.

use super::error::PatternError;
use super::parser::{PatternParser, PatternReading};
use super::reading::{Doubt, PatternEscape};
use super::syntax::PatternNodeId;
use crate::grammar::CharSet;

/// After so many more ranges than twice those that are left, ranges that overlap are merged.
const RANGES_BETWEEN_MERGES: usize = 10_000;

/// One end of a range, or what stands alone.
enum ClassAtom {
    Character(u32),
    Set(CharSet),
}

impl PatternParser<'_> {
    /// Reads a class whose bracket, at `at`, is read.
    pub(super) fn class(&mut self, at: usize) -> Result<PatternNodeId, PatternError> {
        let is_negated = self.takes("^");
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        let mut kept: Vec<(u32, u32)> = Vec::new();
        let (first, mut most) = (self.at, RANGES_BETWEEN_MERGES);
        loop {
            match self.peek(0) {
                None => {
                    let message = "the class is not closed; add `]`, or write `\\[` for a bracket";
                    return Err(PatternError::syntax("`[`", message, at));
                }
                // Python takes a bracket that comes first for a character.
                Some(']') if self.reading != PatternReading::Python || self.at > first => break,
                Some(_) => {}
            }
            if ranges.len() + kept.len() > most {
                kept = CharSet::new(kept).ranges().to_vec();
                ranges = CharSet::new(ranges).ranges().to_vec();
                most = 2 * (ranges.len() + kept.len()) + RANGES_BETWEEN_MERGES;
            }
            if let Some(text) = self.quotation() {
                ranges.extend(self.text[text].iter().map(|&here| (here as u32, here as u32)));
                if self.peek(0) == Some('-') && self.peek(1).is_some_and(|c| c != ']') {
                    return Err(self.no_escape('Q', true, self.at));
                }
                continue;
            }
            self.check_class()?;
            let start = self.at;
            let low = self.class_atom()?;
            let is_range = self.peek(0) == Some('-') && self.peek(1).is_some_and(|c| c != ']');
            if !is_range {
                match low {
                    ClassAtom::Set(set) if self.keeps_sets() => kept.extend(set.ranges()),
                    low => add(&mut ranges, &low),
                }
                continue;
            }
            if self.peek(1) == Some('[') {
                self.check_class()?; // the hyphen may be an operator
            }
            self.at += 1;
            let high = self.class_atom()?;
            match (&low, &high) {
                (&ClassAtom::Character(low), &ClassAtom::Character(high)) if low <= high => {
                    ranges.push((low, high));
                }
                (ClassAtom::Character(_), ClassAtom::Character(_)) => {
                    let message = "the range ends before it begins; exchange its ends";
                    return Err(PatternError::syntax("range", message, start));
                }
                _ if self.reading == PatternReading::AnnexB => {
                    if matches!(high, ClassAtom::Character(high) if high == u32::from('-')) {
                        self.check_difference()?;
                    }
                    add(&mut ranges, &low);
                    ranges.push(('-' as u32, '-' as u32));
                    add(&mut ranges, &high);
                }
                _ => {
                    let message =
                        "a set of characters cannot end a range; write `\\-` for a hyphen";
                    return Err(PatternError::syntax("range", message, start));
                }
            }
        }
        if self.at == first {
            self.doubt.get_or_insert(Doubt::Empty(at));
        }
        self.at += 1;
        let set = CharSet::new(ranges);
        let mut set = self.with_cases(&set).union(&CharSet::new(kept));
        if is_negated {
            set = set.complement();
        }
        Ok(self.leaf_of_closed(&set))
    }

    fn class_atom(&mut self) -> Result<ClassAtom, PatternError> {
        let at = self.at;
        let Some(here) = self.peek(0) else {
            return Err(PatternError::syntax("`[`", "the class is not closed; add `]`", at));
        };
        self.at += 1;
        if here != '\\' {
            return Ok(ClassAtom::Character(here as u32));
        }
        match self.escape(at, true)? {
            PatternEscape::Character(character) => Ok(ClassAtom::Character(character)),
            PatternEscape::Set(set) => Ok(ClassAtom::Set(set)),
            PatternEscape::Boundary { .. } | PatternEscape::Start | PatternEscape::End => {
                let message = "a class holds characters only; put the assertion outside";
                Err(PatternError::syntax("class", message, at))
            }
        }
    }
}

fn add(ranges: &mut Vec<(u32, u32)>, atom: &ClassAtom) {
    match atom {
        ClassAtom::Character(character) => ranges.push((*character, *character)),
        ClassAtom::Set(set) => ranges.extend(set.ranges()),
    }
}
