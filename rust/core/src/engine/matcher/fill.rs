//! Masks of a matcher: of its state, of many matchers; over tokens or classes.

use crate::budget::Interrupt;
use crate::engine::history::{Family, StacksApart, Stand, View};
use crate::engine::lock;
use crate::engine::mask::row_scan::first_gap;
use crate::engine::mask::rows::CachedMasks;
use crate::engine::mask::uncached::{StackWalkBounds, walk_below};
use crate::engine::{Engine, Matcher};
use crate::error::{Error, Result};
use crate::mask::words;
use std::sync::Arc;

/// The cached masks of the engine that was asked last.
type Known<'m> = Option<(&'m Engine, CachedMasks<'m>)>;

/// What a mask that is not cached is made of.
enum RowSource {
    /// The family of the matcher: nobody else has it.
    Own,
    /// A copy of the stacks: forks read on meanwhile.
    Stacks(Box<StacksApart>),
    /// A copy of the columns.
    Chart(Box<(Family, Stand)>),
}

impl Matcher {
    /// Writes the row of tokens that may come next and says whether it forbids any.
    ///
    /// # Errors
    /// [`Error::State`] after the end; [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`]. The
    /// row then means nothing.
    ///
    /// # Panics
    /// If the row has not exactly the words of the vocabulary.
    pub fn fill(&self, row: &mut [i32], interrupt: &Interrupt) -> Result<bool> {
        self.fill_with(&mut None, None, row, interrupt)
    }

    /// [`Self::fill`] where so many tokens are left, the stop token counted: a token is allowed when the
    /// text can be completed in time after it.
    ///
    /// # Errors
    /// As for [`Self::fill`]; [`Error::Budget`] where the text cannot be completed with as many;
    /// [`Error::Unsupported`] where that cannot be found out.
    pub fn fill_with_tokens_left(
        &self,
        tokens_left: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        self.fill_with(&mut None, Some(tokens_left), row, interrupt)
    }

    /// [`Self::fill`] where the budget of the text may forbid a token; else false, and the row is as it was. For
    /// callers whose masks another engine makes.
    ///
    /// # Errors
    /// As for [`Self::fill_with_tokens_left`].
    ///
    /// # Panics
    /// As [`Self::fill`].
    pub fn fill_near_end(&self, row: &mut [i32], interrupt: &Interrupt) -> Result<bool> {
        assert_eq!(row.len(), words(self.engine.vocabulary.len()), "words of a row");
        let family = lock::read(&self.family, &self.mask_interrupt(interrupt))?;
        self.refuse_unready(&family)?;
        match self.tokens_left(&family, None) {
            Some(left) if !self.is_free(family.step(self.at).tokens, left) => {
                self.fill_within(family, left, row, interrupt).map(|filled| filled.is_some())
            }
            _ => Ok(false),
        }
    }

    /// [`Self::fill`] for many matchers, each with a deadline and a result of its own.
    pub fn fill_many(
        work: &mut [(&Matcher, &mut [i32])],
        interrupt: &Interrupt,
    ) -> Vec<Result<bool>> {
        let mut known = None;
        let mut out = Vec::with_capacity(work.len());
        for (matcher, row) in work {
            out.push(matcher.fill_with(&mut known, None, row, interrupt));
        }
        out
    }

    /// [`Self::fill`] where that takes next to no time and no lock is waited for; else `None`, and the
    /// row means nothing. For callers that others wait for.
    ///
    /// # Errors
    /// As for [`Self::fill`].
    ///
    /// # Panics
    /// As [`Self::fill`].
    pub fn fill_now(&self, row: &mut [i32]) -> Result<Option<bool>> {
        assert_eq!(row.len(), words(self.engine.vocabulary.len()), "words of a row");
        let Some(family) = self.family.try_read() else { return Ok(None) };
        self.refuse_unready(&family)?;
        let step = family.step(self.at);
        if let Some(left) = self.tokens_left(&family, None)
            && !self.is_free(step.tokens, left)
        {
            return Ok(None);
        }
        let stand = step.stand;
        let Some(view) = family.stacks(stand) else { return Ok(None) };
        let Some(mut cached) = self.engine.cached_now() else { return Ok(None) };
        let is_there = cached.mask(view, row) && self.repeats_are_seen(&family, stand, row);
        let stops = self.stops_at(&family, stand, &Interrupt::default())?;
        Ok(is_there.then(|| self.finish_row(&stops, row)))
    }

    /// The tokens that begin with bytes and go on with others that may come next, in one walk of the trie with
    /// the stacks; `None` for a text on a chart, and beside unique items.
    ///
    /// # Errors
    /// As for [`Self::fill`].
    pub fn tokens_behind(&self, begin: &[u8], interrupt: &Interrupt) -> Result<Option<Vec<u32>>> {
        let (engine, interrupt) = (&self.engine, &self.mask_interrupt(interrupt));
        let family = lock::read(&self.family, interrupt)?;
        self.refuse_unready(&family)?;
        let view = family.stacks(family.step(self.at).stand);
        let Some(View::Stacks(network, sets, set)) = view else { return Ok(None) };
        if network.has_unique_items() {
            return Ok(None);
        }
        let trie = engine.vocabulary.trie();
        let Some(node) = trie.node_of(begin) else { return Ok(Some(Vec::new())) };
        let bounds = StackWalkBounds {
            work: engine.limits.max_mask_work,
            max_bytes: engine.limits.max_memo_bytes,
            interrupt,
        };
        let mut row = vec![0i32; words(engine.vocabulary.len())];
        walk_below(network, (trie, node), (sets, set), bounds, &mut row)
            .map_err(|halt| engine.stopped(halt.into(), interrupt))?;
        let allows = |token: &u32| row[*token as usize >> 5] >> (token & 31) & 1 != 0;
        Ok(Some((0..engine.vocabulary.len() as u32).filter(allows).collect()))
    }

    pub(super) fn refuse_unready(&self, family: &Family) -> Result<()> {
        self.refuse_ended(family)?;
        self.refuse_cancelled()
    }

    fn fill_with<'m>(
        &'m self,
        known: &mut Known<'m>,
        tokens_left: Option<u32>,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        assert_eq!(row.len(), words(self.engine.vocabulary.len()), "words of a row");
        // A thread that holds the family may wait for an answer to be added: no thread waits for the
        // family while it holds cached masks. Forks that fill rows do not wait for each other.
        let family = match self.family.try_read() {
            Some(family) => family,
            None => {
                *known = None;
                lock::read(&self.family, &self.mask_interrupt(interrupt))?
            }
        };
        self.refuse_unready(&family)?;
        let step = family.step(self.at);
        let stand = step.stand;
        if let Some(left) = self.tokens_left(&family, tokens_left)
            && !self.is_free(step.tokens, left)
        {
            *known = None;
            return match self.fill_within(family, left, row, interrupt)? {
                Some(filled) => Ok(filled),
                None => self.fill_far(row, interrupt),
            };
        }
        self.fill_locked(known, family, stand, row, interrupt)
    }

    /// [`Self::fill`] where so many tokens are left; `None` where these forbid nothing, and the row is as it was.
    fn fill_within(
        &self,
        family: parking_lot::RwLockReadGuard<'_, Family>,
        left: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<Option<bool>> {
        let interrupt = &self.mask_interrupt(interrupt);
        let stops = self.stops_at(&family, family.step(self.at).stand, interrupt)?;
        drop(family);
        let is_near = self.fill_in_time(left, row, interrupt)?;
        Ok(is_near.then(|| self.finish_row(if left > 0 { &stops } else { &[] }, row)))
    }

    /// [`Self::fill`] where no budget forbids anything.
    pub(super) fn fill_far(&self, row: &mut [i32], interrupt: &Interrupt) -> Result<bool> {
        let family = lock::read(&self.family, &self.mask_interrupt(interrupt))?;
        let stand = family.step(self.at).stand;
        self.fill_locked(&mut None, family, stand, row, interrupt)
    }

    fn fill_locked<'m>(
        &'m self,
        known: &mut Known<'m>,
        family: parking_lot::RwLockReadGuard<'_, Family>,
        stand: Stand,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        if let Some(view) = family.stacks(stand) {
            let cached = match known.take() {
                Some((engine, cached)) if std::ptr::eq(engine, &*self.engine) => {
                    known.insert((engine, cached))
                }
                _ => known.insert((&*self.engine, self.engine.cached())),
            };
            if cached.1.mask(view, row) {
                let stops = self.stops_at(&family, stand, interrupt)?;
                let doubtful = self.forbid_repeats_now(&family, stand, row);
                if doubtful.as_ref().is_none_or(|tokens| !tokens.is_empty()) {
                    drop(family);
                    *known = None;
                    let interrupt = &self.mask_interrupt(interrupt);
                    self.forbid_doubtful(stand, doubtful, row, interrupt)?;
                }
                return Ok(self.finish_row(&stops, row));
            }
        }
        drop(family);
        *known = None;
        let interrupt = &self.mask_interrupt(interrupt);
        let mut family = lock::write(&self.family, interrupt)?;
        let stops = self.stops_at_any(&mut family, stand, interrupt)?;
        if family.is_on_chart(stand)
            && !self.engine.network.is_for_charts()
            && self.engine.cached().mask(family.view(stand), row)
        {
            return Ok(self.finish_row(&stops, row));
        }
        self.make(family, stand, interrupt, row)?;
        self.forbid_repeats(stand, row, interrupt)?;
        Ok(self.finish_row(&stops, row))
    }

    /// Makes the row of textual tokens that may follow a stand.
    pub(super) fn make(
        &self,
        family: parking_lot::RwLockWriteGuard<'_, Family>,
        stand: Stand,
        interrupt: &Interrupt,
        row: &mut [i32],
    ) -> Result<()> {
        let engine = &self.engine;
        let mask = |family: &mut Family, stand: Stand, row: &mut [i32]| match engine
            .network
            .is_for_charts()
        {
            true => engine.mask_by_chart(family, stand, interrupt, row),
            false => engine.mask(family, stand, interrupt, row),
        };
        let stacks = |apart: &StacksApart, row: &mut [i32]| {
            engine.mask_of_stacks(apart.view(), interrupt, row)
        };
        self.make_with(family, stand, interrupt, mask, stacks, row)
    }

    /// Makes a row from the family, or from a copy where forks have it too: those then go on reading
    /// while the mask is made.
    fn make_with(
        &self,
        mut family: parking_lot::RwLockWriteGuard<'_, Family>,
        stand: Stand,
        interrupt: &Interrupt,
        mask: impl FnOnce(&mut Family, Stand, &mut [i32]) -> Result<()>,
        stacks: impl FnOnce(&StacksApart, &mut [i32]) -> Result<()>,
        row: &mut [i32],
    ) -> Result<()> {
        interrupt.look()?;
        let with_classes = self.engine.has_classes();
        if family.refused().contains(stand, with_classes) {
            return Err(self.engine.too_much_work());
        }
        let began = std::time::Instant::now();
        let source = self.source(&mut family, stand, interrupt)?;
        let refused = family.refused();
        let made = match source {
            RowSource::Own => mask(&mut family, stand, row),
            RowSource::Stacks(copied) => {
                drop(family);
                stacks(&copied, row)
            }
            RowSource::Chart(mut copied) => {
                drop(family);
                let stand = copied.1;
                mask(&mut copied.0, stand, row)
            }
        };
        self.engine.took(began.elapsed());
        if matches!(&made, Err(Error::Limit { limit: "max_mask_work", .. })) {
            refused.add(stand, with_classes);
        }
        made
    }

    fn source(
        &self,
        family: &mut Family,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<RowSource> {
        if Arc::strong_count(&self.family) == 1 {
            return Ok(RowSource::Own);
        }
        let halted = |halt| self.halted(halt, interrupt);
        if let Some(copied) = family.stacks_apart(stand, interrupt).map_err(halted)? {
            return Ok(RowSource::Stacks(Box::new(copied)));
        }
        let copied = family.chart_apart(stand, interrupt).map_err(halted)?;
        Ok(copied.map_or(RowSource::Own, |copied| RowSource::Chart(Box::new(copied))))
    }

    /// Writes the row of token classes that may come next and says whether it forbids any token.
    ///
    /// # Errors
    /// As for [`Self::fill`]; [`Error::State`] too where there are no classes, or a stop token of
    /// this matcher is no class of its own.
    ///
    /// # Panics
    /// If the row has not exactly [`Engine::class_words`] words.
    pub fn fill_classes(&self, row: &mut [i32], interrupt: &Interrupt) -> Result<bool> {
        self.fill_classes_left(None, row, interrupt)
    }

    /// [`Self::fill_with_tokens_left`] over classes.
    ///
    /// # Errors
    /// Those of both.
    ///
    /// # Panics
    /// As [`Self::fill_classes`].
    pub fn fill_classes_with_tokens_left(
        &self,
        tokens_left: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        self.fill_classes_left(Some(tokens_left), row, interrupt)
    }

    fn fill_classes_left(
        &self,
        tokens_left: Option<u32>,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<bool> {
        let interrupt = self.mask_interrupt(interrupt);
        let family = lock::write(&self.family, &interrupt)?;
        self.refuse_ended(&family)?;
        let stand = family.step(self.at).stand;
        let left = self.tokens_left(&family, tokens_left);
        self.fill_classes_at(family, stand, left, &interrupt, row)
    }

    /// [`Self::fill_classes`] for many matchers, each with a deadline and a result of its own.
    pub fn fill_classes_many(
        work: &mut [(&Matcher, &mut [i32])],
        interrupt: &Interrupt,
    ) -> Vec<Result<bool>> {
        work.iter_mut().map(|(matcher, row)| matcher.fill_classes(row, interrupt)).collect()
    }

    pub(super) fn fill_classes_at(
        &self,
        mut family: parking_lot::RwLockWriteGuard<'_, Family>,
        stand: Stand,
        left: Option<u32>,
        interrupt: &Interrupt,
        row: &mut [i32],
    ) -> Result<bool> {
        let Some(folded) = self.engine.folded.get() else {
            return Err(Error::State(
                "there are no classes: compile with classes=\"now\", or wait for them".into(),
            ));
        };
        assert_eq!(row.len(), folded.words, "words of a row of classes");
        interrupt.look()?;
        let is_stop = |id: &u32| folded.stops.iter().any(|stop| stop.0 == *id);
        if let Some(id) = self.stop_ids().iter().find(|id| !is_stop(id)) {
            return Err(Error::State(format!(
                "stop token {id} of this matcher is no class of its own: use masks of tokens"
            )));
        }
        let engine = &self.engine;
        let stops = self.stops_at_any(&mut family, stand, interrupt)?;
        let is_near = match left {
            None => false,
            Some(left) => self.fill_classes_in_time(&mut family, left, row, interrupt)?,
        };
        let is_there = is_near
            || !engine.network.is_for_charts()
                && engine.cached_class_mask(folded, family.view(stand), row);
        if !is_there {
            let mask = |family: &mut Family, stand: Stand, row: &mut [i32]| match engine
                .network
                .is_for_charts()
            {
                true => engine.bits_by_chart(&folded.walker, family, stand, interrupt, row),
                false => engine.bits(&folded.walker, family, stand, interrupt, row),
            };
            let stacks = |apart: &StacksApart, row: &mut [i32]| {
                engine.bits_of_stacks(&folded.walker, apart.view(), interrupt, row)
            };
            self.make_with(family, stand, interrupt, mask, stacks, row)?;
        }
        if left.is_none_or(|left| left > 0) {
            for (_, class) in folded.stops.iter().filter(|stop| stops.contains(&stop.0)) {
                row[*class as usize >> 5] |= 1 << (class & 31);
            }
        }
        Ok(folded.has_dead || first_gap(row, folded.count).is_some())
    }

    /// Allows of the stop tokens those that may come; says whether the row forbids any token.
    pub(super) fn finish_row(&self, stops: &[u32], row: &mut [i32]) -> bool {
        for &id in self.stop_ids() {
            row[id as usize >> 5] &= !(1 << (id & 31));
        }
        for &id in stops {
            row[id as usize >> 5] |= 1 << (id & 31);
        }
        self.engine.gap.is_in(row, self.engine.vocabulary.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{CompileOptions, compile};
    use crate::engine::{Accept, StopRule};
    use crate::limits::Limits;
    use crate::syntax::parse;
    use crate::vocabulary::Vocabulary;

    #[test]
    fn rows_of_a_text_are_looked_through_once() {
        let grammar = parse("root ::= [a-y]*", "root", &Limits::default()).expect("grammar text");
        // All letters, many times; the last is forbidden.
        let blob: Vec<u8> = (0..9_999).map(|i| b'a' + (i % 25) as u8).chain([b'z']).collect();
        let offsets = (0..=10_000).collect();
        let vocabulary = Vocabulary::new(blob, offsets, &[], &[]).expect("sound").into();
        let (options, none) = (CompileOptions::default(), Interrupt::default());
        let engine = compile(&grammar, &vocabulary, &options, &none).expect("an engine");
        let mut matcher = Matcher::new(engine.clone(), StopRule::default()).expect("stop tokens");
        let mut row = vec![0; words(10_000)];
        for _ in 0..20 {
            assert_eq!(matcher.fill(&mut row, &Interrupt::default()), Ok(true));
            assert_eq!(matcher.accept_bytes(b"some", &Interrupt::default()), Ok(Accept::Taken));
        }
        assert_eq!(engine.gap.searches(), 1);
    }
}
