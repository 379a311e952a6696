//! Quantifiers, and braces that are none.

use super::error::PatternError;
use super::parser::{PatternParser, PatternReading};
use super::reading::Quantifiers;
use super::syntax::PatternNodeId;

impl PatternParser<'_> {
    pub(super) fn nothing_to_repeat(&self, quantifier: char, at: usize) -> PatternError {
        let construct = format!("`{quantifier}`");
        let message = format!(
            "there is nothing that the quantifier could repeat; put a character or a group before \
             it, or write `\\{quantifier}` for the character"
        );
        PatternError::syntax(&construct, message, at)
    }

    /// Whether a bracket or brace may stand on its own.
    pub(super) fn lone_bracket(&mut self, here: char, at: usize) -> Result<(), PatternError> {
        let is_count = here == '{' && {
            self.at = at;
            let is_count = self.braces()?.is_some();
            self.at = at + 1;
            is_count
        };
        if is_count {
            return Err(self.nothing_to_repeat(here, at));
        }
        self.check_lone_bracket(here, at)?;
        if self.reading == PatternReading::Unicode {
            let message = format!("with the flag u it needs a backslash; write `\\{here}`");
            return Err(PatternError::syntax(&format!("`{here}`"), message, at));
        }
        Ok(())
    }

    pub(super) fn quantified(
        &mut self,
        node: PatternNodeId,
        quantifiers: Quantifiers,
    ) -> Result<PatternNodeId, PatternError> {
        self.skip_blanks()?;
        let at = self.at;
        let (min, max) = match self.peek(0) {
            Some('*') => (0, None),
            Some('+') => (1, None),
            Some('?') => (0, Some(1)),
            Some('{') => match self.braces()? {
                Some(counts) => {
                    self.at -= 1; // the closing brace
                    counts
                }
                None => {
                    self.check_loose_braces()?;
                    return Ok(node);
                }
            },
            _ => return Ok(node),
        };
        self.at += 1;
        if quantifiers == Quantifiers::Forbidden {
            let message = "an assertion takes no quantifier; put it into a group";
            return Err(PatternError::syntax("quantifier", message, at));
        }
        if self.peek(0) == Some('?') {
            self.at += 1;
            self.has_lazy |= Some(min) != max;
        } else if self.peek(0) == Some('+')
            && (self.reading == PatternReading::Python || self.reads_foreign())
        {
            let message = "a possessive quantifier forgets matches; drop the `+` behind it";
            return Err(PatternError::unsupported("possessive quantifier", message, at));
        }
        if self.reading == PatternReading::Python && matches!(self.peek(0), Some('*' | '+' | '?')) {
            return Err(self.nothing_to_repeat(self.peek(0).unwrap_or('*'), self.at));
        }
        Ok(self.tree.repeat(node, min, max))
    }

    /// Reads `{n}`, `{n,}`, `{n,m}`; `None`, and nothing is read, where there is no such thing.
    fn braces(&mut self) -> Result<Option<(u32, Option<u32>)>, PatternError> {
        let start = self.at;
        self.at += 1;
        let least = self.digits();
        let has_comma = self.peek(0) == Some(',');
        self.at += usize::from(has_comma);
        let most = if has_comma { self.digits() } else { None };
        let is_open_count = self.reading == PatternReading::Python && has_comma;
        if self.peek(0) != Some('}') || (least.is_none() && !is_open_count) {
            self.at = start;
            return Ok(None);
        }
        self.at += 1;
        let count = |digits: u64| {
            u32::try_from(digits).ok().filter(|&count| count < u32::MAX).ok_or_else(|| {
                let message = "a count may be at most 4294967294; lower it";
                PatternError::unsupported("quantifier", message, start)
            })
        };
        let min = count(least.unwrap_or(0))?;
        let max = match (has_comma, most) {
            (false, _) => Some(min),
            (true, most) => most.map(count).transpose()?,
        };
        if max.is_some_and(|max| max < min) {
            let message = "the greatest count is below the least; exchange them";
            return Err(PatternError::syntax("quantifier", message, start));
        }
        Ok(Some((min, max)))
    }

    /// A decimal number; large ones are the largest.
    pub(super) fn digits(&mut self) -> Option<u64> {
        let mut value = None;
        while let Some(digit) = self.peek(0).and_then(|here| here.to_digit(10)) {
            let known: u64 = value.unwrap_or(0);
            value = Some(known.saturating_mul(10).saturating_add(u64::from(digit)));
            self.at += 1;
        }
        value
    }
}
