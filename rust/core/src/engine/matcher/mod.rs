//! One request's state. Files:
//!
//! - here: what a matcher is, how it begins, when its calls end;
//! - `accept`: a token or bytes as one step; `on_a_chart`: when a chart takes over (`is_better_on_a_chart`), and
//!   tables made anew; `back`: rollbacks;
//! - `fill`: masks of one text and of many; `drafts`: those of the nodes of a draft;
//! - `in_time`: texts that end in time, and a shortest completion (`closing_tokens`), both over `crate::ending`;
//!   `endings`: what the engine knows of them, `hint`: how far the end is;
//! - `ahead`: what must come (`forced_bytes`, `forced_token`), what could, and how much of a token can be read
//!   (`readable`); `look`: what can be seen; `state`: states as values;
//! - `repeats`: arrays whose items are unique; `stop_tokens`: which stop tokens may come.
//!
//! Design: docs/design/matcher.md.

mod accept;
mod ahead;
mod back;
#[cfg(test)]
mod back_tests;
mod drafts;
pub(in crate::engine) mod endings;
mod fill;
mod hint;
pub(in crate::engine) mod in_time;
mod look;
mod on_a_chart;
mod repeats;
mod state;
pub(in crate::engine) mod stop_tokens;

pub use ahead::MAX_FORCED_BYTES;
pub use look::Look;

use crate::budget::{Halt, Interrupt};
use crate::engine::Engine;
use crate::engine::history::{Family, Read, StepId};
use crate::engine::matcher::hint::Hint;
use crate::engine::stop::{crowded, too_many_sets};
use crate::error::{Error, Result};
use crate::unique::too_many_arrays;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    /// How many of the last tokens of a budget may not take the text further from its end.
    pub(in crate::engine) prefer_end: u32,
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
            Halt::Arrays => too_many_arrays(),
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
            prefer_end: 0,
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
        self.has_stopped(family)
            || (self.stops.when_complete && family.accepts(step.stand))
            || self.max_tokens.is_some_and(|most| step.tokens >= most)
    }

    /// Whether the last step was a stop token, which is read where it completes the text.
    fn has_stopped(&self, family: &Family) -> bool {
        match family.step(self.at).read {
            Read::Stop(_) => true,
            Read::Token(id) => self.is_stop(id),
            Read::Nothing | Read::Bytes(_) => false,
        }
    }

    pub(in crate::engine) fn refuse_ended(&self, family: &Family) -> Result<()> {
        if self.ended(family) {
            return Err(Error::State(
                "the text has ended: roll back or reset the matcher to go on".into(),
            ));
        }
        Ok(())
    }

    fn is_stop(&self, id: u32) -> bool {
        self.stop_ids().binary_search(&id).is_ok()
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
            Halt::Arrays => too_many_arrays(),
            halt => interrupt.error(halt).unwrap_or_else(|| over(&self.engine)),
        }
    }

    /// Allows the work of a token, or of a chunk of text.
    pub(in crate::engine) fn allow(&self, family: &mut Family, interrupt: &Interrupt) {
        let limits = &self.engine.limits;
        family.allow(limits.max_accept_work, limits.max_matcher_bytes, interrupt);
    }
}

fn over(engine: &Engine) -> Error {
    Error::Limit {
        limit: "max_accept_work",
        value: engine.limits.max_accept_work,
        message: "reading on takes more work; the grammar is very ambiguous here: \
                  simplify it or raise the limit"
            .into(),
    }
}
