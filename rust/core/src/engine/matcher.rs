//! One request's state.

use super::family::{Family, Read, Stand, StepId};
use super::{Engine, Representation, read, write};
use crate::error::{Error, Result};
use crate::network::contains;
use crate::stacks::OverBudget;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

/// Work units of one accepted token, and as many more for each of its letters, past which a text is
/// better off on a chart.
const HEAVY: u64 = 1_000;
const HEAVY_LETTER: u64 = 500;

/// Bytes read between two looks at the limits: a power of two.
const CHUNK: usize = 1_024;

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
    pub(super) engine: Arc<Engine>,
    pub(super) family: Arc<RwLock<Family>>,
    pub(super) at: StepId,
    pub(super) stops: Arc<StopRule>,
    pub(super) cancelled: Arc<AtomicBool>,
}

impl Matcher {
    /// At the start of the language.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] for a stop token outside of the vocabulary.
    pub fn new(engine: Arc<Engine>, mut stops: StopRule) -> Result<Self> {
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
        let mut family = Family::new(&engine.network).map_err(|_| over(&engine))?;
        if engine.begins_on_a_chart() {
            let start = family.chart_start(engine.tables());
            family.begin(start, Read::Nothing);
        }
        Ok(Self {
            engine,
            family: Arc::new(RwLock::new(family)),
            at: 0,
            stops: Arc::new(stops),
            cancelled: Arc::default(),
        })
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

    /// The number of tokens and texts accepted, which can be rolled back.
    pub fn steps(&self) -> usize {
        read(&self.family).depth(self.at) as usize
    }

    /// Whether the text may end here.
    pub fn is_accepting(&self) -> bool {
        let family = read(&self.family);
        family.accepts(family.step(self.at).stand)
    }

    /// Whether the text has ended.
    pub fn is_terminated(&self) -> bool {
        self.ended(&read(&self.family))
    }

    fn ended(&self, family: &Family) -> bool {
        let step = family.step(self.at);
        matches!(step.read, Read::Stop(_))
            || (self.stops.when_complete && family.accepts(step.stand))
    }

    pub(super) fn refuse_ended(&self, family: &Family) -> Result<()> {
        if self.ended(family) {
            return Err(Error::State(
                "the text has ended: roll back or reset the matcher to go on".into(),
            ));
        }
        Ok(())
    }

    /// Accepts tokens as long as they are allowed; returns how many.
    ///
    /// # Errors
    /// Those of [`Self::accept_token`], for the first token that has one: none was accepted then.
    pub fn accept_prefix(&mut self, tokens: &[u32]) -> Result<usize> {
        for (count, &token) in tokens.iter().enumerate() {
            if self.is_terminated() {
                return Ok(count);
            }
            match self.accept_token(token) {
                Ok(Accept::Taken) => {}
                Ok(Accept::Refused) => return Ok(count),
                Err(error) => {
                    self.rollback(count)?;
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
    /// [`Error::Limit`], [`Error::Cancelled`]. Nothing has changed then.
    pub fn accept_token(&mut self, id: u32) -> Result<Accept> {
        let size = self.engine.vocabulary.len();
        if id as usize >= size {
            return Err(Error::Vocabulary(format!(
                "token {id} is outside the vocabulary of {size} tokens"
            )));
        }
        let is_stop = self.stop_ids().binary_search(&id).is_ok();
        if is_stop {
            let mut family = write(&self.family);
            self.refuse_ended(&family)?;
            let stand = family.step(self.at).stand;
            if !family.accepts(stand) {
                return Ok(Accept::Refused);
            }
            let at = family.push(self.at, stand, Read::Stop(id));
            drop(family);
            self.at = at;
            return Ok(Accept::Taken);
        }
        self.read(What::Token(id))
    }

    /// Accepts bytes as one step; none at all is a step too.
    ///
    /// # Errors
    /// As for [`Self::accept_token`].
    pub fn accept_bytes(&mut self, bytes: &[u8]) -> Result<Accept> {
        self.read(What::Bytes(bytes))
    }

    fn read(&mut self, what: What<'_>) -> Result<Accept> {
        let mut family = write(&self.family);
        self.refuse_ended(&family)?;
        let before = family.step(self.at).stand;
        let work = family.work();
        let mut advanced = match what {
            What::Token(id) => self.advance_token(&mut family, before, id),
            What::Bytes(bytes) => self.advance(&mut family, before, bytes).map(|(stand, _)| stand),
        };
        if let Some(stand) = self.on_a_chart(&mut family, before, what, work, &advanced) {
            advanced = Ok(Some(stand));
        }
        let stand = match advanced {
            Ok(None) => return Ok(Accept::Refused),
            Ok(Some(stand)) => stand,
            Err(error) => {
                // What was made on the way is not to stand in the way of the next.
                let is_crowded = family.bytes() > self.soft_limit(&family);
                drop(family);
                if is_crowded {
                    let _ = self.rebuild(); // at worst the old tables stay
                }
                return Err(error);
            }
        };
        let read = match what {
            What::Token(id) => Read::Token(id),
            What::Bytes(bytes) => family.text(bytes),
        };
        let at = family.push(self.at, stand, read);
        let crowded = family.bytes() > self.soft_limit(&family);
        drop(family);
        let before = std::mem::replace(&mut self.at, at);
        if crowded && let Err(error) = self.rebuild() {
            self.at = before;
            return Err(error);
        }
        Ok(Accept::Taken)
    }

    pub(super) fn refuse_cancelled(&self) -> Result<()> {
        match self.cancelled.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// Says when a call that begins now is to end.
    pub(super) fn clock(&self) -> impl Fn() -> Result<()> + '_ {
        let limit = self.engine.limits.max_call_milliseconds;
        let end = Instant::now().checked_add(Duration::from_millis(limit));
        move || {
            self.refuse_cancelled()?;
            if end.is_some_and(|end| Instant::now() > end) {
                return Err(Error::Limit {
                    limit: "max_call_milliseconds",
                    value: limit,
                    message: "the call takes longer; nothing has changed".into(),
                });
            }
            Ok(())
        }
    }

    /// Where the text stands after some bytes, or nowhere and how many could be read.
    fn advance(
        &self,
        family: &mut Family,
        mut stand: Stand,
        bytes: &[u8],
    ) -> Result<(Option<Stand>, usize)> {
        let mut reader = Reader { matcher: self, check: self.clock(), read: 0 };
        for (i, &byte) in bytes.iter().enumerate() {
            match reader.next(family, stand, self.engine.class(byte))? {
                None => return Ok((None, i)),
                Some(next) => stand = next,
            }
        }
        (reader.check)()?;
        Ok((Some(stand), bytes.len()))
    }

    /// Where the text stands after a token, by its bytes or whole, if anywhere.
    pub(super) fn advance_token(
        &self,
        family: &mut Family,
        before: Stand,
        id: u32,
    ) -> Result<Option<Stand>> {
        let vocabulary = &self.engine.vocabulary;
        let mut stand = None;
        if vocabulary.is_textual(id) {
            stand = self.advance(family, before, vocabulary.bytes(id))?.0;
        }
        if let Some(escape) = self.engine.network.alphabet().escape()
            && vocabulary.is_whole(id)
        {
            let mut reader = Reader { matcher: self, check: self.clock(), read: 0 };
            let mut whole = reader.next(family, before, escape)?;
            for byte in id.to_be_bytes() {
                let Some(at) = whole else { break };
                whole = reader.next(family, at, self.engine.class(byte))?;
            }
            stand = match (stand, whole) {
                // Tokens are taken whole on stacks only.
                (Some(Stand::Stacks(set)), Some(Stand::Stacks(whole))) => {
                    let union = family.stepper.sets.union(set, whole);
                    Some(Stand::Stacks(union.map_err(|OverBudget| over(&self.engine))?))
                }
                (stand, whole) => stand.or(whole),
            };
        }
        Ok(stand)
    }

    /// Where the text stands on a chart, if it is better off there: stacks took too much work for
    /// what was read, or more than they may.
    fn on_a_chart(
        &self,
        family: &mut Family,
        before: Stand,
        what: What<'_>,
        work: u64,
        advanced: &Result<Option<Stand>>,
    ) -> Option<Stand> {
        let is_over = matches!(advanced, Err(Error::Limit { limit: "max_accept_work", .. }));
        let bytes = match what {
            What::Token(id) => self.engine.vocabulary.bytes(id),
            What::Bytes(bytes) => bytes,
        };
        let is_heavy = family.work() - work > HEAVY + HEAVY_LETTER * bytes.len() as u64;
        let wanted = is_over || (is_heavy && matches!(advanced, Ok(Some(_))));
        let may = self.engine.representation == Representation::Automatic
            && !self.engine.network.takes_tokens()
            && family.may_chart
            && matches!(before, Stand::Stacks(_));
        if !wanted || !may {
            return None;
        }
        let stand = self.read_on_a_chart(family, bytes);
        // What failed once would be tried again for each token.
        family.may_chart = stand.is_some();
        stand
    }

    /// Reads the text and some more bytes on a chart.
    fn read_on_a_chart(&self, family: &mut Family, bytes: &[u8]) -> Option<Stand> {
        let mut reader = Reader { matcher: self, check: self.clock(), read: 0 };
        // What another fork has read again before need not be.
        let path = family.path_ids(self.at);
        let is_column = |&id: &StepId| matches!(family.step(id).stand, Stand::Chart(_));
        let known = path.iter().rposition(is_column);
        let (mut stand, path) = match known {
            Some(place) => (family.step(path[place]).stand, &path[place + 1..]),
            None => (family.chart_start(self.engine.tables()), &path[..]),
        };
        let mut stands = Vec::new();
        for &id in path {
            let text = match family.step(id).read {
                Read::Token(token) => self.engine.vocabulary.bytes(token).to_vec(),
                Read::Bytes(text) => family.bytes_of(text).to_vec(),
                Read::Nothing | Read::Stop(_) => Vec::new(),
            };
            for byte in text {
                stand = reader.next(family, stand, self.engine.class(byte)).ok()??;
            }
            stands.push((id, stand));
        }
        for &byte in bytes {
            stand = reader.next(family, stand, self.engine.class(byte)).ok()??;
        }
        // What was read before stands there too from now on, so that a rollback need not do this
        // again.
        stands.into_iter().for_each(|(id, stand)| family.restand(id, stand));
        Some(stand)
    }

    fn soft_limit(&self, family: &Family) -> usize {
        let grown = family.rebuilt_bytes.saturating_mul(2).max(SOFT_BYTES);
        grown.min(self.engine.limits.max_matcher_bytes)
    }

    /// New tables with nothing but what this matcher needs. Forks keep the old ones.
    fn rebuild(&mut self) -> Result<()> {
        let (family, at) = write(&self.family)
            .rebuilt(&self.engine.network, self.at)
            .map_err(|OverBudget| over(&self.engine))?;
        if family.bytes() > self.engine.limits.max_matcher_bytes {
            return Err(crowded(&self.engine));
        }
        self.family = Arc::new(RwLock::new(family));
        self.at = at;
        Ok(())
    }

    /// Takes back the last `count` steps.
    ///
    /// # Errors
    /// [`Error::State`] when there are fewer.
    pub fn rollback(&mut self, count: usize) -> Result<()> {
        let mut family = write(&self.family);
        let depth = family.depth(self.at);
        let Some(left) = u32::try_from(count).ok().and_then(|count| depth.checked_sub(count))
        else {
            return Err(Error::State(format!(
                "{count} steps cannot be taken back: {depth} were accepted"
            )));
        };
        let at = family.ancestor(self.at, left);
        if Arc::strong_count(&self.family) == 1 {
            family.truncate(at);
        }
        drop(family);
        self.at = at;
        Ok(())
    }

    /// Back to the first step.
    pub fn reset(&mut self) {
        let steps = self.steps();
        // Never more than there are.
        let _ = self.rollback(steps);
    }

    /// The bytes that may come next.
    pub fn expected(&self) -> Vec<u8> {
        let family = read(&self.family);
        self.expected_after(&family, family.step(self.at).stand)
    }

    fn expected_after(&self, family: &Family, stand: Stand) -> Vec<u8> {
        self.engine.bytes_of(&family.next_classes(stand))
    }

    /// The bytes that must come next, whatever is chosen; at most `limit` of them.
    ///
    /// # Errors
    /// [`Error::State`] after the end; [`Error::Limit`], [`Error::Cancelled`].
    pub fn forced_bytes(&self, limit: usize) -> Result<Vec<u8>> {
        let mut family = write(&self.family);
        self.refuse_ended(&family)?;
        let mut stand = family.step(self.at).stand;
        let mut reader = Reader { matcher: self, check: self.clock(), read: 0 };
        let escape = self.engine.network.alphabet().escape();
        let mut out = Vec::new();
        while out.len() < limit && !family.accepts(stand) {
            let classes = family.next_classes(stand);
            // A token that is taken whole may come as well.
            if escape.is_some_and(|escape| contains(&classes, escape)) {
                break;
            }
            let mut bytes = (0..=255).filter(|&b| contains(&classes, self.engine.class(b)));
            let (Some(byte), None) = (bytes.next(), bytes.next()) else { break };
            match reader.next(&mut family, stand, self.engine.class(byte))? {
                Some(next) => stand = next,
                None => break,
            }
            out.push(byte);
        }
        Ok(out)
    }

    /// How many of some bytes could be read next. Nothing changes.
    ///
    /// # Errors
    /// As for [`Self::forced_bytes`].
    pub fn readable(&self, bytes: &[u8]) -> Result<(usize, Vec<u8>)> {
        let mut family = write(&self.family);
        self.refuse_ended(&family)?;
        let mut stand = family.step(self.at).stand;
        let mut reader = Reader { matcher: self, check: self.clock(), read: 0 };
        for (i, &byte) in bytes.iter().enumerate() {
            match reader.next(&mut family, stand, self.engine.class(byte))? {
                Some(next) => stand = next,
                None => return Ok((i, self.expected_after(&family, stand))),
            }
        }
        Ok((bytes.len(), self.expected_after(&family, stand)))
    }

    /// Everything read so far.
    pub fn text(&self) -> Vec<u8> {
        self.text_of(&read(&self.family))
    }

    pub(super) fn text_of(&self, family: &Family) -> Vec<u8> {
        let mut out = Vec::new();
        for step in family.path(self.at) {
            match step.read {
                Read::Token(id) => out.extend_from_slice(self.engine.vocabulary.bytes(id)),
                Read::Bytes(text) => out.extend_from_slice(family.bytes_of(text)),
                Read::Nothing | Read::Stop(_) => {}
            }
        }
        out
    }

    /// Bytes held by this matcher and its forks together.
    pub fn bytes(&self) -> usize {
        read(&self.family).bytes()
    }

    /// What the state holds and what it took to come here.
    pub fn counters(&self) -> MatcherCounters {
        let family = read(&self.family);
        let sets = &family.stepper.sets;
        MatcherCounters {
            items: family.tops(family.step(self.at).stand),
            sets: sets.len(),
            completions: family.stepper.completions,
            work: family.work(),
        }
    }
}

/// What is read as one step.
#[derive(Clone, Copy)]
enum What<'a> {
    Token(u32),
    Bytes(&'a [u8]),
}

/// Reads letter after letter within the bounds of one call.
struct Reader<'a, C> {
    matcher: &'a Matcher,
    check: C,
    read: usize,
}

impl<C: Fn() -> Result<()>> Reader<'_, C> {
    fn next(&mut self, family: &mut Family, stand: Stand, class: u8) -> Result<Option<Stand>> {
        let engine = &self.matcher.engine;
        if self.read & (CHUNK - 1) == 0 {
            match self.read {
                0 => self.matcher.refuse_cancelled()?, // no time has passed
                _ => (self.check)()?,
            }
            family.allow(engine.limits.max_accept_work);
            if self.read > 0 && family.bytes() > engine.limits.max_matcher_bytes {
                return Err(crowded(engine));
            }
        }
        self.read += 1;
        let next = family.advance(stand, class);
        next.map_err(|OverBudget| over(engine))
    }
}

/// Bytes below which tables are never rebuilt.
pub(super) const SOFT_BYTES: usize = 64 << 20;

fn over(engine: &Engine) -> Error {
    Error::Limit {
        limit: "max_accept_work",
        value: engine.limits.max_accept_work,
        message: "reading on takes more work; the grammar is very ambiguous here: \
                  simplify it or raise the limit"
            .into(),
    }
}

pub(super) fn crowded(engine: &Engine) -> Error {
    Error::Limit {
        limit: "max_matcher_bytes",
        value: engine.limits.max_matcher_bytes as u64,
        message: "the text so far takes more memory; raise the limit".into(),
    }
}
