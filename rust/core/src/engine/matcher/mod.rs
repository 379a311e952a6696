//! One request's state. Files:
//!
//! - here: reading tokens and bytes, looking ahead, going back, when a chart takes over
//!   (`is_better_on_a_chart`), forced bytes;
//! - `back`: rollbacks; `fill`: masks of one text, of many, of drafts; `in_time`: texts that end in time (over
//!   `crate::ending`);
//! - `state`: states as values; `repeats`: arrays whose items are unique; `stop_tokens`: which stop tokens
//!   may come.

mod back;
#[cfg(test)]
mod back_tests;
mod fill;
pub(in crate::engine) mod in_time;
mod repeats;
mod state;
pub(in crate::engine) mod stop_tokens;

use crate::budget::{Halt, Interrupt};
use crate::engine::history::{Again, Family, Read, Stand, StepId};
use crate::engine::lock;
use crate::engine::matcher::in_time::Hint;
use crate::engine::stop::crowded;
use crate::engine::{Engine, Representation};
use crate::error::{Error, Result};
use crate::network::contains;
use crate::unique::two_arrays;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Work units of one accepted token, and as many more for each of its letters, past which a text is
/// better off on a chart.
const HEAVY: u64 = 1_000;
const HEAVY_LETTER: u64 = 500;

/// Bytes read between two looks at the limits: a power of two.
const CHUNK: usize = 1_024;
/// The same for bytes that are read ahead, where more is done for each.
const AHEAD_BETWEEN_CHECKS: usize = 64;
/// Forced bytes of one call, at most: without, a grammar could make one call last for minutes.
pub const MAX_FORCED_BYTES: usize = 1 << 18;

/// Work units, some tens of microseconds, and bytes of a token that is accepted while others wait.
const QUICK_WORK: u64 = 512;
const QUICK_BYTES: usize = 256;
/// Steps of a text that is looked at while others wait.
const SHORT_TEXT: usize = 4_096;

/// How a text ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StopRule {
    /// Stop tokens in place of the vocabulary's, sorted; `None` for those of the vocabulary.
    pub stop_ids: Option<Vec<u32>>,
    /// The text ends by itself as soon as it is complete.
    pub when_complete: bool,
}

/// What became of a token or text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accept {
    /// It was read.
    Taken,
    /// It cannot follow; nothing has changed.
    Refused,
}

/// What a matcher and its forks hold and did, since their tables were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MatcherCounters {
    /// Earley items of the state: the network states that can stand on top.
    pub items: usize,
    /// Earley sets (sets of stacks) made.
    pub sets: usize,
    /// Rules completed.
    pub completions: u64,
    /// Work units spent.
    pub work: u64,
}

/// A set of stacks over the engine's network, with the way there.
///
/// A clone is a fork: it shares all tables and goes its own way.
#[derive(Clone)]
pub struct Matcher {
    pub(in crate::engine) engine: Arc<Engine>,
    pub(in crate::engine) family: Arc<RwLock<Family>>,
    pub(in crate::engine) at: StepId,
    pub(in crate::engine) stops: Arc<StopRule>,
    pub(in crate::engine) cancelled: Arc<AtomicBool>,
    /// The tokens that the text may take from its first step on, the stop token counted.
    pub(in crate::engine) max_tokens: Option<u32>,
    pub(in crate::engine) hint: Hint,
}

impl Matcher {
    /// At the start of the language.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] for a stop token outside of the vocabulary, or where one is missing with which
    /// the grammar ends texts; [`Error::Limit`] where not even the start fits.
    pub fn new(engine: Arc<Engine>, stops: StopRule) -> Result<Self> {
        Self::new_within(engine, stops, &Interrupt::default())
    }

    /// [`Self::new`], which an interrupt ends early: the first matcher on charts may have to make their
    /// tables.
    ///
    /// # Errors
    /// Those of [`Self::new`]; [`Error::Deadline`], [`Error::Cancelled`].
    pub fn new_within(
        engine: Arc<Engine>,
        mut stops: StopRule,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        if let Some(ids) = &mut stops.stop_ids {
            ids.sort_unstable();
            ids.dedup();
            let size = engine.vocabulary.len();
            if let Some(id) = ids.iter().find(|&&id| id as usize >= size) {
                return Err(Error::Vocabulary(format!(
                    "stop token {id} is outside the vocabulary of {size} tokens"
                )));
            }
        }
        let halted = |halt| match halt {
            Halt::Bytes => crowded(&engine),
            Halt::Sets => too_many_sets(&engine.network),
            Halt::Arrays => two_arrays(),
            halt => interrupt.error(halt).unwrap_or_else(|| over(&engine)),
        };
        let mut family = Family::new(&engine.network).map_err(halted)?;
        if engine.begins_on_a_chart() {
            let tables = engine.tables(interrupt);
            let start = tables.and_then(|tables| family.chart_start(&tables));
            family.begin(start.map_err(halted)?, Read::Nothing);
        }
        let out = Self {
            engine,
            family: Arc::new(RwLock::new(family)),
            at: 0,
            stops: Arc::new(stops),
            cancelled: Arc::default(),
            max_tokens: None,
            hint: Hint::default(),
        };
        out.refuse_unended()?;
        Ok(out)
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// A switch that makes the work under way, and all that begins while it is on, end with
    /// [`Error::Cancelled`]. Each matcher has its own.
    pub fn cancel_switch(&self) -> Arc<AtomicBool> {
        self.cancelled.clone()
    }

    /// A matcher at the same place that goes its own way from here.
    pub fn fork(&self) -> Self {
        Self { cancelled: Arc::default(), ..self.clone() }
    }

    /// The stop tokens in force, sorted.
    pub fn stop_ids(&self) -> &[u32] {
        self.stops.stop_ids.as_deref().unwrap_or(self.engine.vocabulary.stop_ids())
    }

    /// Whether the text has ended: by a stop token, by itself, or as no token is left.
    pub(in crate::engine) fn ended(&self, family: &Family) -> bool {
        let step = family.step(self.at);
        matches!(step.read, Read::Stop(_))
            || (self.stops.when_complete && family.accepts(step.stand))
            || self.max_tokens.is_some_and(|most| step.tokens >= most)
    }

    pub(in crate::engine) fn refuse_ended(&self, family: &Family) -> Result<()> {
        if self.ended(family) {
            return Err(Error::State(
                "the text has ended: roll back or reset the matcher to go on".into(),
            ));
        }
        Ok(())
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
                    !self.is_far(step.tokens, most.saturating_sub(step.tokens))
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

    fn refuse_unknown(&self, id: u32) -> Result<()> {
        let size = self.engine.vocabulary.len();
        match (id as usize) < size {
            true => Ok(()),
            false => Err(Error::Vocabulary(format!(
                "token {id} is outside the vocabulary of {size} tokens"
            ))),
        }
    }

    fn is_stop(&self, id: u32) -> bool {
        self.stop_ids().binary_search(&id).is_ok()
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
        match self.stops_at(family, stand, interrupt)?.contains(&id) {
            false => Ok((self.at, Accept::Refused)),
            true => Ok((family.push(self.at, stand, Read::Stop(id), 0), Accept::Taken)),
        }
    }

    fn read(&mut self, what: What<'_>, interrupt: &Interrupt) -> Result<Accept> {
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
            let token = match what {
                What::Token(id) => Some(id),
                What::Bytes(_) => None,
            };
            in_time = self.ends_in_time(&mut family, stand, token, interrupt);
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
    fn settle(&self, family: &mut Family, interrupt: &Interrupt) -> Result<()> {
        family.settle(interrupt).map_err(|halt| self.halted(halt, interrupt))
    }

    pub(in crate::engine) fn refuse_cancelled(&self) -> Result<()> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// When a call that begins now is to end: as the caller says, when the matcher is cancelled, and
    /// at the deadline of accepts.
    pub(in crate::engine) fn accept_interrupt(&self, interrupt: &Interrupt) -> Interrupt {
        let milliseconds = self.engine.limits.max_accept_milliseconds;
        let interrupt = interrupt.clone().with_flag(&self.cancelled);
        interrupt.with_deadline("max_accept_milliseconds", milliseconds)
    }

    /// The same for a mask.
    pub(in crate::engine) fn mask_interrupt(&self, interrupt: &Interrupt) -> Interrupt {
        let milliseconds = self.engine.limits.max_mask_milliseconds;
        let interrupt = interrupt.clone().with_flag(&self.cancelled);
        interrupt.with_deadline("max_mask_milliseconds", milliseconds)
    }

    /// The error of a call that reads.
    pub(in crate::engine) fn halted(&self, halt: Halt, interrupt: &Interrupt) -> Error {
        match halt {
            Halt::Bytes => crowded(&self.engine),
            Halt::Sets => too_many_sets(&self.engine.network),
            Halt::Arrays => two_arrays(),
            halt => interrupt.error(halt).unwrap_or_else(|| over(&self.engine)),
        }
    }

    /// Allows the work of a token, or of a chunk of text.
    pub(in crate::engine) fn allow(&self, family: &mut Family, interrupt: &Interrupt) {
        let limits = &self.engine.limits;
        family.allow(limits.max_accept_work, limits.max_matcher_bytes, interrupt);
    }

    /// Where the text stands after some bytes, or nowhere and how many could be read.
    fn advance(
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
            stand = self.advance(family, before, vocabulary.bytes(id), interrupt)?.0;
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
        Ok(stand)
    }

    fn bytes_of<'w>(&'w self, what: What<'w>) -> &'w [u8] {
        match what {
            What::Token(id) => self.engine.vocabulary.bytes(id),
            What::Bytes(bytes) => bytes,
        }
    }

    /// Whether the text is better off on a chart: stacks took too much work or memory for what was
    /// read, or more than they may.
    fn is_better_on_a_chart(
        &self,
        family: &Family,
        before: Stand,
        what: What<'_>,
        work: u64,
        advanced: &std::result::Result<Option<Stand>, Halt>,
    ) -> bool {
        let letters = self.bytes_of(what).len() as u64;
        let is_heavy = family.work() - work > HEAVY + HEAVY_LETTER * letters;
        let is_wanted = match advanced {
            Err(halt) => !halt.is_interrupt(),
            Ok(stand) => is_heavy && stand.is_some(),
        };
        is_wanted
            && self.engine.representation == Representation::Automatic
            && !self.engine.network.takes_tokens()
            && !self.engine.network.has_sets()
            && self.max_tokens.is_none()
            && family.may_chart
            && matches!(before, Stand::Stacks(_))
    }

    /// Reads the text on a chart, on which it stands from then on, and some more bytes; `None` where
    /// those cannot follow.
    fn read_on_a_chart(
        &self,
        family: &mut Family,
        bytes: &[u8],
        interrupt: &Interrupt,
    ) -> std::result::Result<Option<Stand>, Halt> {
        let tables = self.engine.tables(interrupt)?;
        // What another fork has read again before need not be.
        let path = family.reads(self.at);
        let is_column = |&(id, _): &(StepId, Read)| {
            !family.is_thinned(id) && matches!(family.step(id).stand, Stand::Chart(_))
        };
        let known = path.iter().rposition(is_column);
        let (mut stand, path) = match known {
            Some(place) => (family.step(path[place].0).stand, &path[place + 1..]),
            None => (family.chart_start(&tables)?, &path[..]),
        };
        let mut again = Vec::new();
        for &(id, read) in path {
            let text = self.text_read(family, read).to_vec();
            self.allow(family, interrupt);
            // Stacks have read it.
            stand = self.advance(family, stand, &text, interrupt)?.0.ok_or(Halt::Work)?;
            again.push(Again { id, stand, read, length: text.len() });
        }
        let last = family.last_column();
        self.allow(family, interrupt);
        let after = self.advance(family, stand, bytes, interrupt)?.0;
        if after.is_none() {
            family.forget_columns(last);
        }
        // What was read before stands there too from now on, so that a rollback need not do this
        // again.
        family.restand(&again);
        Ok(after)
    }

    /// Whether tables with what this matcher needs alone would be smaller, as far as can be told.
    fn is_crowded(&self, family: &Family) -> bool {
        family.bytes() > self.soft_limit(family) || family.has_many_sets()
    }

    fn soft_limit(&self, family: &Family) -> usize {
        let grown = family.rebuilt_bytes.saturating_mul(2).max(SOFT_BYTES);
        grown.min(self.engine.limits.max_matcher_bytes)
    }

    /// New tables with nothing but what this matcher needs. Forks keep the old ones.
    fn rebuild(&mut self, interrupt: &Interrupt) -> Result<()> {
        let mut family = lock::write(&self.family, interrupt)?;
        let rebuilt = family.rebuilt(self.at, interrupt);
        drop(family);
        let (family, at) = rebuilt.map_err(|halt| self.halted(halt, interrupt))?;
        if family.bytes() > self.engine.limits.max_matcher_bytes {
            return Err(crowded(&self.engine));
        }
        self.family = Arc::new(RwLock::new(family));
        self.at = at;
        Ok(())
    }

    /// What `look` says of the state, if no lock is to be waited for and the text is short; else
    /// `None`.
    pub fn now<T>(&self, look: impl FnOnce(&Look<'_>) -> T) -> Option<T> {
        let family = self.family.try_read()?;
        let is_short = (family.depth(self.at) as usize) < SHORT_TEXT;
        is_short.then(|| look(&Look { matcher: self, family: &family }))
    }

    /// What `look` says of the state.
    ///
    /// # Errors
    /// [`Error::Deadline`], [`Error::Cancelled`] while a fork reads on.
    pub fn look<T>(&self, interrupt: &Interrupt, look: impl FnOnce(&Look<'_>) -> T) -> Result<T> {
        let family = lock::read(&self.family, interrupt)?;
        Ok(look(&Look { matcher: self, family: &family }))
    }

    /// The number of tokens and texts accepted, which can be rolled back.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn steps(&self, interrupt: &Interrupt) -> Result<usize> {
        self.look(interrupt, |look| look.steps())
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn is_accepting(&self, interrupt: &Interrupt) -> Result<bool> {
        self.look(interrupt, |look| look.is_accepting())
    }

    /// Whether the text has ended.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn is_terminated(&self, interrupt: &Interrupt) -> Result<bool> {
        self.look(interrupt, |look| look.is_terminated())
    }

    /// Everything read so far.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn text(&self, interrupt: &Interrupt) -> Result<Vec<u8>> {
        self.look(interrupt, |look| look.text())
    }

    fn expected_after(&self, family: &Family, stand: Stand) -> Vec<u8> {
        self.engine.bytes_of(&family.next_classes(stand))
    }

    /// The bytes that must come next, whatever is chosen; at most `limit` of them, and
    /// [`MAX_FORCED_BYTES`]. The work of one text is allowed for all of them together.
    ///
    /// # Errors
    /// [`Error::State`] after the end; [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`].
    pub fn forced_bytes(&self, limit: usize, interrupt: &Interrupt) -> Result<Vec<u8>> {
        let interrupt = &self.accept_interrupt(interrupt);
        self.reading_ahead(interrupt, |family, mut stand| {
            let escape = self.engine.network.alphabet().escape();
            let limit = limit.min(MAX_FORCED_BYTES);
            let mut out = Vec::new();
            while out.len() < limit && !family.accepts(stand) {
                let classes = family.next_classes(stand);
                // A token that is taken whole may come as well.
                if escape.is_some_and(|escape| contains(&classes, escape)) {
                    break;
                }
                let bytes = (0..=255).filter(|&b| contains(&classes, self.engine.class(b)));
                let mut alive: Vec<u8> = Vec::new();
                for byte in bytes {
                    // Of what the stacks allow, items that are unique leave some out.
                    let may_follow = !matches!(stand, Stand::Array(_))
                        || self.advance(family, stand, &[byte], interrupt)?.0.is_some();
                    alive.extend(may_follow.then_some(byte));
                    if alive.len() > 1 {
                        break;
                    }
                }
                let &[byte] = &*alive else { break };
                if out.len() % AHEAD_BETWEEN_CHECKS == 0 {
                    interrupt.check()?;
                    if family.bytes() > self.engine.limits.max_matcher_bytes {
                        return Err(Halt::Bytes);
                    }
                }
                match self.advance(family, stand, &[byte], interrupt)?.0 {
                    Some(next) => stand = next,
                    None => break,
                }
                out.push(byte);
            }
            Ok(out)
        })
    }

    /// How many of some bytes could be read next, and what may come there. Nothing changes.
    ///
    /// # Errors
    /// As for [`Self::forced_bytes`].
    pub fn readable(&self, bytes: &[u8], interrupt: &Interrupt) -> Result<(usize, Vec<u8>)> {
        let interrupt = &self.accept_interrupt(interrupt);
        self.reading_ahead(interrupt, |family, mut stand| {
            let mut read = 0;
            for (i, &byte) in bytes.iter().enumerate() {
                if i % AHEAD_BETWEEN_CHECKS == 0 {
                    interrupt.check()?;
                    self.allow(family, interrupt);
                }
                match self.advance(family, stand, &[byte], interrupt)?.0 {
                    Some(next) => stand = next,
                    None => break,
                }
                read += 1;
            }
            let mut expected = self.expected_after(family, stand);
            if self.engine.network.has_unique_items() {
                let mut repeated = Vec::new();
                for &byte in &expected {
                    if self.advance(family, stand, &[byte], interrupt)?.0.is_none() {
                        repeated.push(byte);
                    }
                }
                expected.retain(|byte| !repeated.contains(byte));
            }
            Ok((read, expected))
        })
    }

    /// Reads ahead in the tables of the family and leaves the state as it is.
    fn reading_ahead<T>(
        &self,
        interrupt: &Interrupt,
        read: impl FnOnce(&mut Family, Stand) -> std::result::Result<T, Halt>,
    ) -> Result<T> {
        let mut family = lock::write(&self.family, interrupt)?;
        self.refuse_ended(&family)?;
        interrupt.look()?;
        self.settle(&mut family, interrupt)?;
        let stand = family.step(self.at).stand;
        let (last, mark) = (family.last_column(), family.arrays.mark());
        self.allow(&mut family, interrupt);
        let done = read(&mut family, stand);
        family.release();
        family.forget_columns(last);
        family.arrays.reset(mark);
        done.map_err(|halt| self.halted(halt, interrupt))
    }

    /// The text of a step.
    fn text_read<'a>(&'a self, family: &'a Family, read: Read) -> &'a [u8] {
        match read {
            Read::Token(id) => self.engine.vocabulary.bytes(id),
            Read::Bytes(text) => family.bytes_of(text),
            Read::Nothing | Read::Stop(_) => &[],
        }
    }

    pub(in crate::engine) fn text_of(&self, family: &Family) -> Vec<u8> {
        let mut out = Vec::new();
        for (_, read) in family.reads(self.at) {
            out.extend_from_slice(self.text_read(family, read));
        }
        out
    }

    /// Bytes held by this matcher and its forks together.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub fn bytes(&self, interrupt: &Interrupt) -> Result<usize> {
        self.look(interrupt, |look| look.bytes())
    }
}

/// What can be seen of a matcher without changing it.
pub struct Look<'m> {
    matcher: &'m Matcher,
    family: &'m Family,
}

impl Look<'_> {
    fn stand(&self) -> Stand {
        self.family.step(self.matcher.at).stand
    }

    /// The number of tokens and texts accepted, which can be rolled back.
    pub fn steps(&self) -> usize {
        self.family.depth(self.matcher.at) as usize
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> bool {
        self.family.accepts(self.stand())
    }

    /// Whether the text has ended.
    pub fn is_terminated(&self) -> bool {
        self.matcher.ended(self.family)
    }

    /// The bytes that may come next; `None` in an array whose items are unique, where they are found by
    /// [`Matcher::readable`].
    pub fn expected(&self) -> Option<Vec<u8>> {
        let stand = self.stand();
        let is_plain = !matches!(stand, Stand::Array(_));
        is_plain.then(|| self.matcher.expected_after(self.family, stand))
    }

    /// The tokens that the text may still take, the stop token counted; `None` where it may take any
    /// number.
    pub fn tokens_left(&self) -> Option<u32> {
        self.matcher.tokens_left(self.family, None)
    }

    /// Everything read so far.
    pub fn text(&self) -> Vec<u8> {
        self.matcher.text_of(self.family)
    }

    /// Bytes held by the matcher and its forks together.
    pub fn bytes(&self) -> usize {
        self.family.bytes()
    }

    /// What the state holds and what it took to come here.
    pub fn counters(&self) -> MatcherCounters {
        MatcherCounters {
            items: self.family.tops(self.stand()),
            sets: self.family.stepper.sets.len(),
            completions: self.family.stepper.completions,
            work: self.family.work(),
        }
    }
}

/// What is read as one step.
#[derive(Clone, Copy)]
enum What<'a> {
    Token(u32),
    Bytes(&'a [u8]),
}

/// Bytes below which tables are never rebuilt.
pub(in crate::engine) const SOFT_BYTES: usize = 64 << 20;

fn over(engine: &Engine) -> Error {
    Error::Limit {
        limit: "max_accept_work",
        value: engine.limits.max_accept_work,
        message: "reading on takes more work; the grammar is very ambiguous here: \
                  simplify it or raise the limit"
            .into(),
    }
}

pub(in crate::engine) fn too_many_sets(network: &crate::network::Network) -> Error {
    Error::Limit {
        limit: "max_set_bytes",
        value: network.most_set_bytes() as u64,
        message:
            "the sets of members that the text meets take more; fix the order of members, or raise \
                  the limit"
                .into(),
    }
}
