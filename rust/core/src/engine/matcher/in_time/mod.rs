//! Texts that end in time: which tokens still leave enough tokens to complete the text.
//!
//! Design: docs/design/ending-in-time.md.
//!
//! With `k` tokens left, the stop token counted, a token is allowed exactly when the text can be
//! completed after it with `k - 1`. While the budget is far that forbids nothing, and a mask pays one
//! comparison: [`Hint`](super::hint::Hint) says what the stacks of a text needed at most when they were last looked at, and
//! one token adds a bounded number to that. Files:
//!
//! - [`closing`]: shortest completions;
//! - [`answers`]: masks near the end, put together of answers that all texts share;
//! - [`walk`]: the same by a walk of the trie with the stacks of the text, where answers take too much;
//! - [`unique`]: arrays whose items are unique, of which the stacks give a bound alone; [`completions`] looks for their
//!   ends, [`visits`] collects their tokens.
//!
//! A budget in which even the shortest completion has no room is refused: `refuse_late`.
//!
//! With `prefer_end` the last tokens of a budget may not take the text further from its end: then the budget
//! is at most one token more than the text needs where it stands.

pub(super) mod answers;
mod closing;
mod completions;
#[cfg(test)]
mod tests;
mod unique;
mod visits;
mod walk;

use crate::budget::{Interrupt, Meter};
use crate::ending::{Over, Stacks, UNREACHABLE};
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::engine::matcher::accept::What;
use crate::engine::{Engine, Matcher};
use crate::error::{Error, Position, Result};
use crate::stacks::{NONE, SetId};
use crate::unique::At;
pub use closing::Shortest;
use completions::{Completions, Unit};
use visits::ByFewest;

impl Matcher {
    /// Allows so many tokens from the first step on, the stop token counted: every mask leaves enough to
    /// complete the text. Of the last `prefer_end` of them none may take the text further from its end.
    ///
    /// # Errors
    /// [`Error::Budget`] where even the shortest text takes more; [`Error::Unsupported`] where only
    /// charts can read the grammar, sets are not counted, or a stop token is text of the vocabulary;
    /// [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`].
    pub fn limit_tokens(
        &mut self,
        most: u32,
        prefer_end: u32,
        interrupt: &Interrupt,
    ) -> Result<()> {
        self.refuse_uncounted()?;
        let interrupt = &self.mask_interrupt(interrupt);
        let mut family = lock::write(&self.family, interrupt)?;
        let left = most.saturating_sub(family.step(self.at).tokens);
        if !self.has_stopped(&family) {
            self.refuse_late(&mut family, left, interrupt)?;
        }
        drop(family);
        self.max_tokens = Some(most);
        self.prefer_end = prefer_end;
        Ok(())
    }

    /// Refuses what cannot be counted.
    fn refuse_uncounted(&self) -> Result<()> {
        let Engine { network, vocabulary, .. } = &*self.engine;
        let is_text = |&&id: &&u32| {
            vocabulary.is_textual(id) || network.takes_tokens() && vocabulary.is_whole(id)
        };
        let unique = network.only_unique_items();
        let message = if !network.counts_sets() && network.has_unique_items() {
            "the text has arrays with uniqueItems, and objects whose members come in any order, which are not counted \
             together; compile with key_order=\"schema\", and where propertyNames lists names, list them in properties"
                .into()
        } else if !network.counts_sets() {
            "what is required of an object whose members come in any order changes with the members that were read, \
             and its sets are not counted; compile with key_order=\"schema\", and where propertyNames lists names, list \
             them in properties"
                .into()
        } else if unique.is_some_and(|items| items.nested) {
            "the text has arrays with uniqueItems whose items may be arrays or objects, which are not \
             counted; leave the keyword out there and check the result, or give the items a type that is no array \
             or object"
                .into()
        } else if network.is_for_charts() {
            "only a chart reads the left recursion of this grammar, whose ends are not counted; write it as a \
             repetition"
                .into()
        } else if let Some(id) = self.stop_ids().iter().find(is_text) {
            format!(
                "token {id} ends this text and is text in the vocabulary, with which tokens are \
                 counted; compile with vocabulary.replace(stop_token_ids=[..., {id}])"
            )
        } else {
            return Ok(());
        };
        Err(uncounted(message))
    }

    /// The tokens that this text may still take, the stop token counted.
    pub(in crate::engine) fn tokens_left(
        &self,
        family: &Family,
        given: Option<u32>,
    ) -> Option<u32> {
        let own = self.max_tokens.map(|most| most.saturating_sub(family.step(self.at).tokens));
        match (own, given) {
            (Some(own), Some(given)) => Some(own.min(given)),
            (own, given) => own.or(given),
        }
    }

    /// The budget that counts where the text stands: among the last tokens the one with which no token
    /// takes the text further from its end.
    fn preferred(&self, family: &mut Family, left: u32, interrupt: &Interrupt) -> Result<u32> {
        if left > self.prefer_end || left == 0 {
            return Ok(left);
        }
        let needed = self.fewest_now(family, interrupt)?.saturating_add(self.stop_tokens());
        Ok(left.min(needed.saturating_add(1)))
    }

    /// Tokens that end a text which is complete.
    fn stop_tokens(&self) -> u32 {
        u32::from(!self.stops.when_complete && !self.stop_ids().is_empty())
    }

    /// Whether the budget forbids nothing, as far as that was found out. After `tokens` tokens `left` are
    /// left.
    #[inline]
    pub(in crate::engine) fn is_free(&self, tokens: u32, left: u32) -> bool {
        left > self.prefer_end && self.is_far(tokens, left)
    }

    /// Whether no token can leave too little, as far as that was found out.
    #[inline]
    fn is_far(&self, tokens: u32, left: u32) -> bool {
        let countdown = self.engine.endings.countdown.get();
        let Some(raised) = countdown.and_then(|countdown| countdown.most_raised) else {
            return false;
        };
        let needed = self.hint.needed_after(tokens, raised);
        needed.is_some_and(|needed| needed + u64::from(self.stop_tokens()) < u64::from(left))
    }

    /// The same, found out anew where that takes no table.
    fn is_far_now(&self, family: &mut Family, left: u32, interrupt: &Interrupt) -> Result<bool> {
        let step = family.step(self.at);
        if self.is_far(step.tokens, left) {
            return Ok(true);
        }
        let network = &self.engine.network;
        // What an item may need beyond what the stacks say, since it must be new.
        let more = match network.only_unique_items() {
            _ if !network.has_unique_items() => Some(0),
            Some(items) if !items.nested => items.ends_within,
            _ => None,
        };
        let Some(more) = more else { return Ok(false) };
        let halted = |halt| self.engine.ending_halted(halt, interrupt);
        let countdown = self.engine.countdown(interrupt).map_err(halted)?;
        if countdown.most_raised.is_none() {
            return Ok(false);
        }
        let (_, needed) = self
            .with_stacks(family, interrupt, |family, set| self.letters(family, set, interrupt))?;
        self.hint.set(step.tokens, needed.saturating_add(more));
        Ok(self.is_far(step.tokens, left))
    }

    /// The fewest bytes that complete some stacks, and the most letters that any of them needs: upper bounds.
    fn letters(
        &self,
        family: &mut Family,
        set: SetId,
        interrupt: &Interrupt,
    ) -> Result<(u32, u32)> {
        let halted = |halt| self.engine.ending_halted(halt, interrupt);
        let countdown = self.engine.countdown(interrupt).map_err(halted)?;
        let mut meter = Meter::default();
        meter.allow(self.engine.ending_work(), interrupt);
        let mut memo = family.take_memo(family.memo_is_over());
        let stacks = Stacks { network: family.network(), sets: &family.stepper.sets };
        let letters = countdown.letters(stacks, &mut memo, set, &mut meter);
        family.put_memo(memo);
        letters.map_err(halted)
    }

    /// The fewest tokens that complete the text from some stacks, the stop token not counted.
    fn fewest(&self, family: &mut Family, set: SetId, interrupt: &Interrupt) -> Result<u32> {
        let over = self.engine.ends_over(interrupt);
        let over = over.map_err(|halt| self.engine.ending_halted(halt, interrupt))?;
        self.fewest_over(over, family, set, interrupt)
    }

    /// The fewest bytes that complete some stacks.
    fn fewest_bytes_of(
        &self,
        family: &mut Family,
        set: SetId,
        interrupt: &Interrupt,
    ) -> Result<u32> {
        match self.engine.network.has_counted_automata() {
            // Of the letters that their passes take an upper bound is known.
            true => self.fewest_over(Over::Bytes, family, set, interrupt),
            false => Ok(self.letters(family, set, interrupt)?.0),
        }
    }

    fn fewest_over(
        &self,
        over: Over,
        family: &mut Family,
        set: SetId,
        interrupt: &Interrupt,
    ) -> Result<u32> {
        let halted = |halt| self.engine.ending_halted(halt, interrupt);
        let ending = self.engine.ending(over, interrupt).map_err(halted)?;
        let mut meter = Meter::default();
        meter.allow(self.engine.ending_work(), interrupt);
        let most_bytes = self.engine.limits.max_memo_bytes;
        let mut asking = ending.ask(most_bytes, interrupt).map_err(halted)?;
        let mut memo = family.take_memo(over);
        let stacks = Stacks { network: family.network(), sets: &family.stepper.sets };
        let fewest = asking.fewest(stacks, &mut memo, set, &mut meter);
        family.put_memo(memo);
        fewest.map_err(halted)
    }

    /// The stacks of the text, read again where it stands on a chart.
    fn with_stacks<T>(
        &self,
        family: &mut Family,
        interrupt: &Interrupt,
        work: impl FnOnce(&mut Family, SetId) -> Result<T>,
    ) -> Result<T> {
        match family.step(self.at).stand {
            Stand::Stacks(set) => work(family, set),
            Stand::Array(id) => {
                let set = family.arrays.set(At::Array(id));
                work(family, set)
            }
            Stand::Chart(_) => {
                self.refuse_uncounted()?;
                let (mut stacks, set) = self.read_again(family, interrupt)?;
                work(&mut stacks, set)
            }
        }
    }

    /// The fewest tokens that complete the text from where it stands, the stop token not counted.
    fn fewest_now(&self, family: &mut Family, interrupt: &Interrupt) -> Result<u32> {
        let stand = family.step(self.at).stand;
        match self.engine.network.has_unique_items() {
            true => Completions::new(self, Unit::Tokens, interrupt).fewest(family, stand),
            false => self
                .with_stacks(family, interrupt, |family, set| self.fewest(family, set, interrupt)),
        }
    }

    /// Refuses a budget with which the text cannot be completed from where it stands.
    fn refuse_late(&self, family: &mut Family, left: u32, interrupt: &Interrupt) -> Result<()> {
        if self.is_far_now(family, left, interrupt)? {
            return Ok(());
        }
        if self.engine.network.has_unique_items() {
            return self.refuse_late_unique(family, left, interrupt);
        }
        let fewest = self.fewest_now(family, interrupt)?;
        let needed = (fewest < UNREACHABLE).then(|| fewest + self.stop_tokens());
        match needed.is_some_and(|needed| needed <= left) {
            true => Ok(()),
            false => Err(Error::Budget { needed, left }),
        }
    }

    /// Whether the text can still be completed in time once it stands elsewhere: after a token, or after
    /// bytes, which are no tokens.
    pub(in crate::engine::matcher) fn ends_in_time(
        &self,
        family: &mut Family,
        stand: Stand,
        read: What<'_>,
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let Some(mut left) = self.tokens_left(family, None) else { return Ok(true) };
        let is_token = matches!(read, What::Token(_));
        if is_token {
            left = self.preferred(family, left, interrupt)?;
            if self.is_far_now(family, left, interrupt)? {
                return Ok(true);
            }
        }
        let taken = u32::from(is_token) + self.stop_tokens();
        if self.engine.network.has_unique_items() {
            let Some(most) = left.checked_sub(taken) else { return Ok(false) };
            let mut completions = Completions::new(self, Unit::Tokens, interrupt);
            return completions.within(family, stand, most);
        }
        let fewest = match stand {
            Stand::Stacks(set) => self.fewest(family, set, interrupt)?,
            // The text before is read again on stacks, and what follows on these.
            Stand::Chart(_) => self.with_stacks(family, interrupt, |family, set| {
                let before = Stand::Stacks(set);
                self.allow(family, interrupt);
                let after = match read {
                    What::Token(id) => self.advance_token(family, before, id, interrupt),
                    What::Bytes(bytes) => {
                        self.advance(family, before, bytes, interrupt).map(|(stand, _)| stand)
                    }
                };
                family.release();
                match after.map_err(|halt| self.halted(halt, interrupt))? {
                    Some(Stand::Stacks(set)) => self.fewest(family, set, interrupt),
                    _ => Ok(UNREACHABLE),
                }
            })?,
            Stand::Array(_) => return Err(misplaced()),
        };
        Ok(fewest < UNREACHABLE && fewest + taken <= left)
    }

    /// Writes the row of tokens that leave the text to be completed with `left` tokens, one of them
    /// itself; false where the budget is far and forbids nothing, and the row is as it was.
    ///
    /// # Errors
    /// [`Error::Budget`] where even the shortest completion takes more; those of a mask.
    pub(in crate::engine) fn fill_in_time(
        &self,
        left: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let mut family = lock::write(&self.family, interrupt)?;
        if self.engine.network.has_unique_items() {
            self.refuse_uncounted()?;
            let left = self.preferred(&mut family, left, interrupt)?;
            if self.is_far_now(&mut family, left, interrupt)? {
                return Ok(false);
            }
            self.refuse_late(&mut family, left, interrupt)?;
            drop(family);
            match left.checked_sub(1 + self.stop_tokens()) {
                None => row.fill(0),
                Some(most) => {
                    self.fill_far(row, interrupt)?;
                    self.narrow_in_time(most, row, interrupt)?;
                }
            }
            return Ok(true);
        }
        self.with_rows_in_time(&mut family, left, interrupt, |family, set, most| {
            let engine = &self.engine;
            let over = engine.ends_over(interrupt);
            let over = over.map_err(|halt| engine.ending_halted(halt, interrupt))?;
            engine.over_tokens_in_time(over, row, interrupt, |trie, bits| {
                engine.entries_in_time((trie, over), family, set, most, interrupt, bits)
            })
        })
    }

    /// The tokens that begin with bytes and go on with others that may come next, each behind the fewest tokens that
    /// complete the text then, the stop token counted, if these are `most` or fewer; in one walk of the trie with the
    /// stacks. `None` beside unique items, and where rules count tokens: bytes are none.
    ///
    /// # Errors
    /// As for [`Self::fill_with_tokens_left`].
    pub fn tokens_behind_in_time(
        &self,
        begin: &[u8],
        most: u32,
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<(u32, u32)>>> {
        self.refuse_uncounted()?;
        let (engine, interrupt) = (&self.engine, &self.mask_interrupt(interrupt));
        let mut family = lock::write(&self.family, interrupt)?;
        self.refuse_unready(&family)?;
        if engine.network.has_unique_items() || family.counts_tokens {
            return Ok(None);
        }
        let (trie, stop) = (engine.vocabulary.trie(), self.stop_tokens());
        let (Some(node), Some(most)) = (trie.node_of(begin), most.checked_sub(stop)) else {
            return Ok(Some(Vec::new()));
        };
        let mut found = ByFewest::default();
        self.with_stacks(&mut family, interrupt, |family, set| {
            let halted = |halt| engine.ending_halted(halt, interrupt);
            let over = engine.ends_over(interrupt).map_err(halted)?;
            self.allow(family, interrupt);
            let (trie, start, visit) = (((&**trie, node), over), (set, ()), &mut found);
            let walked = engine.visit_in_time(trie, family, start, most, visit, interrupt);
            family.release();
            walked.map(|_| ()).map_err(halted)
        })?;
        let reached = found.0.into_iter().filter(|behind| behind.0 < UNREACHABLE);
        Ok(Some(reached.map(|(fewest, token)| (fewest + stop, token)).collect()))
    }

    /// Makes a row where the budget may forbid a token; false where it does not.
    fn with_rows_in_time(
        &self,
        family: &mut Family,
        left: u32,
        interrupt: &Interrupt,
        make: impl FnOnce(&mut Family, SetId, u32) -> Result<()>,
    ) -> Result<bool> {
        self.refuse_uncounted()?;
        let left = self.preferred(family, left, interrupt)?;
        if self.is_far_now(family, left, interrupt)? {
            return Ok(false);
        }
        self.refuse_late(family, left, interrupt)?;
        let most = left.saturating_sub(1 + self.stop_tokens());
        let has_room = left > self.stop_tokens();
        self.with_stacks(family, interrupt, |family, set| {
            self.allow(family, interrupt);
            let made = match has_room {
                true => make(family, set, most),
                // The stop token alone.
                false => make(family, NONE, 0),
            };
            family.release();
            made
        })?;
        Ok(true)
    }

    /// [`Self::fill_in_time`] over classes.
    pub(in crate::engine) fn fill_classes_in_time(
        &self,
        family: &mut Family,
        left: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let Some(folded) = self.engine.folded.get() else { return Ok(false) };
        if self.engine.network.has_unique_items() {
            return Err(uncounted(
                "the text has arrays with uniqueItems, whose items tell tokens of one class apart; use \
                 masks of tokens"
                    .into(),
            ));
        }
        self.with_rows_in_time(family, left, interrupt, |family, set, most| {
            let halted = |halt| self.engine.ending_halted(halt, interrupt);
            let over = self.engine.ends_over(interrupt);
            if over.map_err(halted)? == Over::All {
                return Err(uncounted(
                    "a rule has few max_tokens, which tells tokens of one class \
                     apart; use masks of tokens"
                        .into(),
                ));
            }
            let trie = (&folded.walker.trie, Over::Classes);
            self.engine.entries_in_time(trie, family, set, most, interrupt, row).map_err(halted)
        })
    }
}

fn uncounted(message: String) -> Error {
    let construct = "max_tokens".into();
    Error::Unsupported { construct, message, position: Position::NOWHERE }
}

/// Of what does not come about: a text stands in an array exactly where its grammar has unique items, and then it
/// stands on no chart.
fn misplaced() -> Error {
    Error::State("the text stands where texts of its grammar do not".into())
}
