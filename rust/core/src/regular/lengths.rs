//! Texts of so many characters of one set.

use super::alphabet::{REST, ScalarAlphabet};
use super::dfa::Dfa;
use super::table::{DEAD, DfaTable};
use super::{Bounds, CharSet};
use crate::error::Result;

impl Dfa {
    /// All texts of at least `min` characters, and of at most `max` where that is given.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn lengths(min: u32, max: Option<u32>, bounds: &Bounds<'_>) -> Result<Self> {
        if max.is_some_and(|max| max < min) {
            return Ok(Self::nothing());
        }
        let last = max.unwrap_or(min);
        bounds.check((last as usize).saturating_add(1))?;
        bounds.budget.spend(last as usize + 1)?;
        let mut table = DfaTable::new(ScalarAlphabet::trivial());
        for length in 0..last {
            table.push_row(length >= min, length + 1, []);
        }
        table.push_row(true, if max.is_none() { last } else { DEAD }, []);
        Ok(table.canonical())
    }

    /// The set, the least and the greatest number of characters, where the language is all texts
    /// of so many characters of one set. The set is empty for the empty text alone.
    pub fn uniform_lengths(&self) -> Option<(CharSet, u32, Option<u32>)> {
        let last = self.len() - 1;
        if self.is_empty() || self.alphabet().len() > 2 {
            return None;
        }
        // Whether the rest is in the set, and the other class.
        let mut members: Option<(bool, bool)> = None;
        let mut min = None;
        let mut loops = false;
        for q in 0..=last {
            let default = self.default(q);
            let named = match self.row(q) {
                [] => default,
                row => row[0].1,
            };
            let to = if default == DEAD { named } else { default };
            if self.is_final(q) {
                min = min.or(Some(q));
            } else if min.is_some() {
                return None;
            }
            if to == DEAD {
                if q != last {
                    return None;
                }
                continue;
            }
            let read = (default == to, named == to);
            let is_uniform = [default, named].iter().all(|&target| target == to || target == DEAD);
            let is_next = to == q + 1 || (q == last && to == last);
            if !is_uniform || !is_next || members.is_some_and(|known| known != read) {
                return None;
            }
            loops = to == q;
            members = Some(read);
        }
        let mut ranges = Vec::new();
        let (has_rest, has_other) = members.unwrap_or((false, false));
        for class in 0..self.alphabet().len() {
            if if class == REST { has_rest } else { has_other } {
                ranges.extend_from_slice(self.class_ranges().of(class));
            }
        }
        Some((CharSet::new(ranges), min?, (!loops).then_some(last)))
    }
}
