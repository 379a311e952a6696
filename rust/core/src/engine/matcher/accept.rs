//! Reading tokens and bytes: one step of a text, all of it or none.

use crate::budget::{Halt, Interrupt};
use crate::engine::history::{Family, Read, Stand, StepId};
use crate::engine::lock;
use crate::engine::matcher::{Accept, Matcher};
use crate::engine::stop::too_many_sets;
use crate::error::{Error, Result};

/// Bytes read between two looks at the limits: a power of two.
const CHUNK: usize = 1_024;

/// Work units, some tens of microseconds, and bytes of a token that is accepted while others wait.
const QUICK_WORK: u64 = 512;
const QUICK_BYTES: usize = 256;

/// What is read as one step.
#[derive(Clone, Copy)]
pub(super) enum What<'a> {
    Token(u32),
    Bytes(&'a [u8]),
}

impl Matcher {
    /// Accepts tokens as long as they are allowed; returns how many.
    ///
    /// # Errors
    /// Those of [`Self::accept_token`], for the first token that has one: none was accepted then.
    pub fn accept_prefix(&mut self, tokens: &[u32], interrupt: &Interrupt) -> Result<usize> {
        for (count, &token) in tokens.iter().enumerate() {
            if self.is_terminated(interrupt)? {
                return Ok(count);
            }
            match self.accept_token(token, interrupt) {
                Ok(Accept::Taken) => {}
                Ok(Accept::Refused) => return Ok(count),
                Err(error) => {
                    // What was taken is taken back, whatever the interrupt says.
                    self.rollback(count, &Interrupt::default())?;
                    return Err(error);
                }
            }
        }
        Ok(tokens.len())
    }

    /// Accepts a token.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] for an id that is none; [`Error::State`] after the end;
    /// [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`]. Nothing has changed then.
    pub fn accept_token(&mut self, id: u32, interrupt: &Interrupt) -> Result<Accept> {
        let interrupt = self.accept_interrupt(interrupt);
        self.refuse_unknown(id)?;
        if !self.is_stop(id) {
            return self.read(What::Token(id), &interrupt);
        }
        let mut family = lock::write(&self.family, &interrupt)?;
        let (at, accept) = self.stopped(&mut family, id, &interrupt)?;
        drop(family);
        self.at = at;
        Ok(accept)
    }

    /// [`Self::accept_token`] where that takes some microseconds at most and no lock is waited for;
    /// else `None`, and nothing has changed. For callers that others wait for.
    pub fn accept_token_now(&mut self, id: u32) -> Option<Result<Accept>> {
        if let Err(error) = self.refuse_unknown(id) {
            return Some(Err(error));
        }
        let mut family = self.family.try_write()?;
        let (at, accept) = match self.is_stop(id) {
            true => match self.stopped(&mut family, id, &Interrupt::default()) {
                Ok(stopped) => stopped,
                Err(error) => return Some(Err(error)),
            },
            false => {
                if let Err(error) =
                    self.refuse_ended(&family).and_then(|()| self.refuse_cancelled())
                {
                    return Some(Err(error));
                }
                let length = self.engine.vocabulary.bytes(id).len();
                if let Err(error) = self.refuse_long(&family, length) {
                    return Some(Err(error));
                }
                let is_long = length > QUICK_BYTES;
                let is_crowded = self.is_crowded(&family);
                let step = family.step(self.at);
                let is_near = self.max_tokens.is_some_and(|most| {
                    !self.is_free(step.tokens, most.saturating_sub(step.tokens))
                });
                let before = step.stand;
                let is_tangled = family.is_tangled(before) && self.is_alone();
                if is_long || is_crowded || is_near || is_tangled || family.is_unsettled() {
                    return None;
                }
                let last = family.last_column();
                let work = QUICK_WORK.min(self.engine.limits.max_accept_work);
                family.allow(work, usize::MAX, &Interrupt::default());
                let stand = self.advance_token(&mut family, before, id, &Interrupt::default());
                family.release();
                match stand {
                    Ok(Some(stand)) => {
                        let at = family.push(self.at, stand, Read::Token(id), length);
                        let at = if self.is_alone() { family.thin(at) } else { at };
                        (at, Accept::Taken)
                    }
                    Ok(None) => {
                        family.forget_columns(last);
                        (self.at, Accept::Refused)
                    }
                    Err(_) => {
                        family.forget_columns(last);
                        return None;
                    }
                }
            }
        };
        drop(family);
        self.at = at;
        Some(Ok(accept))
    }

    /// Accepts bytes as one step; none at all is a step too.
    ///
    /// # Errors
    /// As for [`Self::accept_token`].
    pub fn accept_bytes(&mut self, bytes: &[u8], interrupt: &Interrupt) -> Result<Accept> {
        let interrupt = self.accept_interrupt(interrupt);
        self.read(What::Bytes(bytes), &interrupt)
    }

    /// Refuses to read so many bytes more where the text is longer then than what can be counted.
    fn refuse_long(&self, family: &Family, more: usize) -> Result<()> {
        let most = self.engine.network.longest_text();
        let bytes = family.step(self.at).bytes as usize;
        match bytes.saturating_add(more) <= most as usize {
            true => Ok(()),
            false => Err(Error::Limit {
                limit: "max_text_bytes",
                value: u64::from(most),
                message: "the text is longer than what bounds on lengths can be counted for".into(),
            }),
        }
    }

    fn refuse_unknown(&self, id: u32) -> Result<()> {
        let size = self.engine.vocabulary.len();
        match (id as usize) < size {
            true => Ok(()),
            false => Err(Error::Vocabulary(format!(
                "token {id} is outside the vocabulary of {size} tokens"
            ))),
        }
    }

    /// Where the text stands after a stop token.
    fn stopped(
        &self,
        family: &mut Family,
        id: u32,
        interrupt: &Interrupt,
    ) -> Result<(StepId, Accept)> {
        self.refuse_ended(family)?;
        self.refuse_cancelled()?;
        let stand = family.step(self.at).stand;
        if self.complete_stops_at(family, stand, interrupt)?.contains(&id) {
            return Ok((family.push(self.at, stand, Read::Stop(id), 0), Accept::Taken));
        }
        if !self.stops_at_any(family, stand, interrupt)?.contains(&id) {
            return Ok((self.at, Accept::Refused));
        }
        // It is read, and completes the text.
        let length = self.engine.vocabulary.bytes(id).len();
        self.refuse_long(family, length)?;
        self.allow(family, interrupt);
        let after = self.advance_token(family, stand, id, interrupt);
        family.release();
        match after.map_err(|halt| self.halted(halt, interrupt))? {
            Some(after) => {
                Ok((family.push(self.at, after, Read::Token(id), length), Accept::Taken))
            }
            None => Ok((self.at, Accept::Refused)),
        }
    }

    pub(super) fn read(&mut self, what: What<'_>, interrupt: &Interrupt) -> Result<Accept> {
        match self.read_once(what, interrupt)? {
            Some(accept) => Ok(accept),
            // The tables are new: sets of members that other texts met are gone.
            None => {
                self.read_once(what, interrupt)?.ok_or_else(|| too_many_sets(&self.engine.network))
            }
        }
    }

    /// The same; `None` where there was no room for sets of members, and there may be now.
    fn read_once(&mut self, what: What<'_>, interrupt: &Interrupt) -> Result<Option<Accept>> {
        let mut family = lock::write(&self.family, interrupt)?;
        self.refuse_ended(&family)?;
        self.refuse_long(&family, self.bytes_of(what).len())?;
        interrupt.look()?;
        self.settle(&mut family, interrupt)?;
        let before = family.step(self.at).stand;
        let work = family.work();
        let mut last = family.last_column();
        self.allow(&mut family, interrupt);
        let mut advanced = match what {
            What::Token(id) => self.advance_token(&mut family, before, id, interrupt),
            What::Bytes(bytes) => {
                self.advance(&mut family, before, bytes, interrupt).map(|(stand, _)| stand)
            }
        };
        if self.is_better_on_a_chart(&family, before, what, work, &advanced) {
            match self.read_on_a_chart(&mut family, self.bytes_of(what), interrupt) {
                Ok(stand) => {
                    advanced = Ok(stand);
                    last = None; // steps stand on the columns from now on
                }
                Err(halt) if halt.is_interrupt() => advanced = Err(halt),
                // What failed once would be tried again for each token.
                Err(_) => family.may_chart = false,
            }
        }
        family.release();
        let mut in_time = Ok(true);
        if let Ok(Some(stand)) = advanced {
            in_time = self.ends_in_time(&mut family, stand, what, interrupt);
            if in_time == Ok(false) {
                advanced = Ok(None);
            }
        }
        if in_time.is_err() || !matches!(advanced, Ok(Some(_))) {
            family.forget_columns(last);
        }
        in_time?;
        let stand = match advanced {
            Ok(None) => return Ok(Some(Accept::Refused)),
            Ok(Some(stand)) => stand,
            Err(halt) => {
                // What was made on the way is not to stand in the way of the next.
                let is_crowded = self.is_crowded(&family);
                drop(family);
                // At worst the old tables stay.
                if is_crowded
                    && !halt.is_interrupt()
                    && self.rebuild(interrupt).is_ok()
                    && halt == Halt::Sets
                {
                    return Ok(None);
                }
                return Err(self.halted(halt, interrupt));
            }
        };
        let read = match what {
            What::Token(id) => Read::Token(id),
            What::Bytes(bytes) => {
                self.hint.forget();
                family.text(bytes)
            }
        };
        let mut at = family.push(self.at, stand, read, self.bytes_of(what).len());
        let crowded = self.is_crowded(&family);
        if !crowded && self.is_alone() {
            at = family.thin(at);
        }
        drop(family);
        let before = std::mem::replace(&mut self.at, at);
        if crowded && let Err(error) = self.rebuild(interrupt) {
            self.at = before;
            return Err(error);
        }
        Ok(Some(Accept::Taken))
    }

    /// Drops what a call that was ended left behind.
    pub(super) fn settle(&self, family: &mut Family, interrupt: &Interrupt) -> Result<()> {
        family.settle(interrupt).map_err(|halt| self.halted(halt, interrupt))
    }

    /// Where the text stands after some bytes, or nowhere and how many could be read.
    pub(super) fn advance(
        &self,
        family: &mut Family,
        mut stand: Stand,
        bytes: &[u8],
        interrupt: &Interrupt,
    ) -> std::result::Result<(Option<Stand>, usize), Halt> {
        if self.engine.network.has_unique_items() {
            let limits = &self.engine.limits;
            return family.advance_arrays(stand, bytes, &mut |stepper| {
                interrupt.check()?;
                stepper.sets.meter.allow(limits.max_accept_work, interrupt);
                match stepper.bytes() > limits.max_matcher_bytes {
                    true => Err(Halt::Bytes),
                    false => Ok(()),
                }
            });
        }
        for (i, &byte) in bytes.iter().enumerate() {
            if i > 0 && i & (CHUNK - 1) == 0 {
                interrupt.check()?;
                self.allow(family, interrupt);
                if family.bytes() > self.engine.limits.max_matcher_bytes {
                    return Err(Halt::Bytes);
                }
            }
            match family.advance(stand, self.engine.class(byte))? {
                None => return Ok((None, i)),
                Some(next) => stand = next,
            }
        }
        Ok((Some(stand), bytes.len()))
    }

    /// Where the text stands after a token, by its bytes or whole, if anywhere.
    pub(in crate::engine) fn advance_token(
        &self,
        family: &mut Family,
        before: Stand,
        id: u32,
        interrupt: &Interrupt,
    ) -> std::result::Result<Option<Stand>, Halt> {
        let vocabulary = &self.engine.vocabulary;
        let mut stand = None;
        if vocabulary.is_textual(id) {
            stand = match vocabulary.bytes(id).split_first_chunk::<1>() {
                Some((first, rest)) if family.counts_tokens => {
                    match self.advance(family, before, first, interrupt)?.0 {
                        None => None,
                        Some(stand) => {
                            let stand = family.after_first(stand)?;
                            self.advance(family, stand, rest, interrupt)?.0
                        }
                    }
                }
                _ => self.advance(family, before, vocabulary.bytes(id), interrupt)?.0,
            };
        }
        if let Some(escape) = self.engine.network.alphabet().escape()
            && vocabulary.is_whole(id)
        {
            let mut whole = family.advance(before, escape)?;
            for byte in id.to_be_bytes() {
                let Some(at) = whole else { break };
                whole = family.advance(at, self.engine.class(byte))?;
            }
            stand = match (stand, whole) {
                // Tokens are taken whole on stacks only.
                (Some(Stand::Stacks(set)), Some(Stand::Stacks(whole))) => {
                    Some(Stand::Stacks(family.stepper.sets.union(set, whole)?))
                }
                (Some(Stand::Array(id)), Some(Stand::Stacks(whole))) => {
                    let network = family.network().clone();
                    let Family { stepper, arrays, .. } = family;
                    Some(Stand::Array(arrays.unite(&network, stepper, id, whole)?))
                }
                (stand, whole) => stand.or(whole),
            };
        }
        match stand {
            Some(stand) => family.after_token(stand),
            None => Ok(None),
        }
    }

    pub(super) fn bytes_of<'w>(&'w self, what: What<'w>) -> &'w [u8] {
        match what {
            What::Token(id) => self.engine.vocabulary.bytes(id),
            What::Bytes(bytes) => bytes,
        }
    }
}
