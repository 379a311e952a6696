//! Masks of a matcher: of its state, of many matchers, of a draft's nodes; over tokens or classes.

use super::family::{Family, Stand};
use super::gap::first_gap;
use super::{Engine, Matcher, Reading, read, write};
use crate::error::{Error, Result};
use crate::mask::words;

/// What is there of the engine that was asked last.
type Known<'m> = Option<(&'m Engine, Reading<'m>)>;

impl Matcher {
    /// Writes the row of tokens that may come next and says whether it forbids any.
    ///
    /// # Errors
    /// [`Error::State`] after the end; [`Error::Limit`], [`Error::Cancelled`]. The row then means
    /// nothing.
    ///
    /// # Panics
    /// If the row has not exactly the words of the vocabulary.
    pub fn fill(&self, row: &mut [i32]) -> Result<bool> {
        self.fill_reading(&mut None, row)
    }

    /// [`Self::fill`] for many matchers, which hand on what they read.
    ///
    /// # Errors
    /// That of the first matcher that has one.
    pub fn fill_many(work: &mut [(&Matcher, &mut [i32])]) -> Result<Vec<bool>> {
        let mut known = None;
        work.iter_mut().map(|(matcher, row)| matcher.fill_reading(&mut known, row)).collect()
    }

    /// [`Self::fill`] where that takes next to no time and nobody is to be waited for; else `None`,
    /// and the row means nothing. For callers that others wait for.
    ///
    /// # Errors
    /// As for [`Self::fill`].
    ///
    /// # Panics
    /// As [`Self::fill`].
    pub fn fill_now(&self, row: &mut [i32]) -> Result<Option<bool>> {
        assert_eq!(row.len(), words(self.engine.vocabulary.len()), "words of a row");
        let Ok(family) = self.family.try_read() else { return Ok(None) };
        self.refuse_unready(&family)?;
        let stand = family.step(self.at).stand;
        let Some(view) = family.stacks(stand) else { return Ok(None) };
        let Some(mut reading) = self.engine.reading_now() else { return Ok(None) };
        let is_there = reading.mask(view, row);
        Ok(is_there.then(|| self.finish_row(&family, stand, row)))
    }

    fn refuse_unready(&self, family: &Family) -> Result<()> {
        self.refuse_ended(family)?;
        self.refuse_cancelled()
    }

    fn fill_reading<'m>(&'m self, known: &mut Known<'m>, row: &mut [i32]) -> Result<bool> {
        assert_eq!(row.len(), words(self.engine.vocabulary.len()), "words of a row");
        // Whoever has the family may wait for an answer to be added: nobody waits for the family
        // while holding on to the answers. Forks that fill rows do not wait for each other.
        let family = match self.family.try_read() {
            Ok(family) => family,
            Err(_) => {
                *known = None;
                read(&self.family)
            }
        };
        self.refuse_unready(&family)?;
        let stand = family.step(self.at).stand;
        let Some(view) = family.stacks(stand) else {
            drop(family);
            *known = None;
            return self.fill_on_chart(row);
        };
        let (_, reading) = match known.take() {
            Some((engine, reading)) if std::ptr::eq(engine, &*self.engine) => {
                known.insert((engine, reading))
            }
            _ => known.insert((&*self.engine, self.engine.reading())),
        };
        if reading.mask(view, row) {
            return Ok(self.finish_row(&family, stand, row));
        }
        *known = None;
        let check = self.clock();
        check()?;
        self.engine.mask(view, &check, row)?;
        Ok(self.finish_row(&family, stand, row))
    }

    /// The same for a text on a chart, which remembers the way to where it is read.
    fn fill_on_chart(&self, row: &mut [i32]) -> Result<bool> {
        let mut family = write(&self.family);
        let stand = family.step(self.at).stand;
        if self.engine.network.is_for_charts() {
            self.fill_by_chart(&mut family, stand, row)?;
        } else if !self.engine.reading().mask(family.view(stand), row) {
            let check = self.clock();
            check()?;
            self.engine.mask(family.view(stand), &check, row)?;
        }
        Ok(self.finish_row(&family, stand, row))
    }

    fn fill_by_chart(&self, family: &mut Family, stand: Stand, row: &mut [i32]) -> Result<()> {
        let check = self.clock();
        check()?;
        self.engine.mask_by_chart(family, stand, &check, row)
    }

    /// Writes the row of token classes that may come next and says whether it forbids any token.
    ///
    /// # Errors
    /// As for [`Self::fill`]; [`Error::State`] too where there are no classes, or a stop token of
    /// this matcher is no class of its own.
    ///
    /// # Panics
    /// If the row has not exactly [`Engine::class_words`] words.
    pub fn fill_classes(&self, row: &mut [i32]) -> Result<bool> {
        let mut family = write(&self.family);
        self.refuse_ended(&family)?;
        let stand = family.step(self.at).stand;
        self.fill_classes_at(&mut family, stand, &self.clock(), row)
    }

    /// [`Self::fill_classes`] for many matchers.
    ///
    /// # Errors
    /// That of the first matcher that has one.
    pub fn fill_classes_many(work: &mut [(&Matcher, &mut [i32])]) -> Result<Vec<bool>> {
        work.iter_mut().map(|(matcher, row)| matcher.fill_classes(row)).collect()
    }

    fn fill_classes_at(
        &self,
        family: &mut Family,
        stand: Stand,
        check: &dyn Fn() -> Result<()>,
        row: &mut [i32],
    ) -> Result<bool> {
        let Some(folded) = self.engine.folded.get() else {
            return Err(Error::State(
                "there are no classes: compile with classes=\"now\", or wait for them".into(),
            ));
        };
        assert_eq!(row.len(), folded.words, "words of a row of classes");
        check()?;
        let is_stop = |id: &u32| folded.stops.iter().any(|stop| stop.0 == *id);
        if let Some(id) = self.stop_ids().iter().find(|id| !is_stop(id)) {
            return Err(Error::State(format!(
                "stop token {id} of this matcher is no class of its own: use masks of tokens"
            )));
        }
        match self.engine.network.is_for_charts() {
            true => self.engine.bits_by_chart(&folded.walker, family, stand, check, row)?,
            false => self.engine.class_mask(folded, family.view(stand), check, row)?,
        }
        if family.accepts(stand) {
            let own = |stop: &&(u32, u32)| self.stop_ids().binary_search(&stop.0).is_ok();
            for (_, class) in folded.stops.iter().filter(own) {
                row[*class as usize >> 5] |= 1 << (class & 31);
            }
        }
        Ok(folded.has_dead || first_gap(row, folded.count).is_some())
    }

    /// Sets the bits of stop tokens; says whether the row forbids any token.
    fn finish_row(&self, family: &Family, stand: Stand, row: &mut [i32]) -> bool {
        let size = self.engine.vocabulary.len();
        let accepting = family.accepts(stand);
        for &id in self.stop_ids() {
            let bit = 1 << (id & 31);
            if accepting {
                row[id as usize >> 5] |= bit;
            } else {
                row[id as usize >> 5] &= !bit;
            }
        }
        self.engine.gap.is_in(row, size)
    }

    /// Writes the rows of all nodes of a tree of draft tokens: the first for the state as it is, then
    /// one for each node, of what may follow it. Says of each node whether its token is allowed; the
    /// row of one that is not, or that ends the text, is empty. The state stays as it is.
    ///
    /// `parents[i]` is the node before node `i`, less than `i`, or negative for the state itself. Rows
    /// are of tokens, or of `classes`.
    ///
    /// # Errors
    /// Those of [`Self::fill`] and [`Self::fill_classes`], and [`Error::State`] for a parent that is no node before,
    /// [`Error::Vocabulary`] for an id that is none. The rows then mean nothing.
    ///
    /// # Panics
    /// If there are not exactly the rows of the tree.
    pub fn fill_draft(
        &self,
        parents: &[i64],
        tokens: &[u32],
        classes: bool,
        rows: &mut [i32],
    ) -> Result<Vec<bool>> {
        let size = self.engine.vocabulary.len();
        let width = match classes {
            true => self.engine.class_words().unwrap_or(0),
            false => words(size),
        };
        assert_eq!(rows.len(), width * (tokens.len() + 1), "words of the rows");
        assert_eq!(parents.len(), tokens.len(), "a parent for each node");
        let mut family = write(&self.family);
        self.refuse_ended(&family)?;
        // Where the text goes on after each node, if it does.
        let mut stands: Vec<Option<Stand>> = vec![Some(family.step(self.at).stand)];
        let mut allowed = Vec::with_capacity(tokens.len());
        for (node, (&parent, &token)) in parents.iter().zip(tokens).enumerate() {
            let parent = match usize::try_from(parent) {
                Err(_) => 0,
                Ok(parent) if parent < node => parent + 1,
                Ok(parent) => {
                    return Err(Error::State(format!(
                        "node {node} of the draft follows node {parent}, which does not stand before it"
                    )));
                }
            };
            if token as usize >= size {
                return Err(Error::Vocabulary(format!(
                    "token {token} is outside the vocabulary of {size} tokens"
                )));
            }
            let (stand, is_allowed) = match stands[parent] {
                None => (None, false),
                Some(before) if self.stop_ids().binary_search(&token).is_ok() => {
                    (None, family.accepts(before))
                }
                Some(before) => {
                    let stand = self.advance_token(&mut family, before, token)?;
                    let goes_on =
                        |&stand: &Stand| !(self.stops.when_complete && family.accepts(stand));
                    (stand.filter(goes_on), stand.is_some())
                }
            };
            stands.push(stand);
            allowed.push(is_allowed);
        }
        let check = self.clock();
        for (stand, row) in stands.into_iter().zip(rows.chunks_exact_mut(width.max(1))) {
            match stand {
                None => row.fill(0),
                Some(stand) if classes => {
                    self.fill_classes_at(&mut family, stand, &check, row)?;
                }
                Some(stand) if self.engine.network.is_for_charts() => {
                    self.fill_by_chart(&mut family, stand, row)?;
                    self.finish_row(&family, stand, row);
                }
                Some(stand) => {
                    check()?;
                    if !self.engine.reading().mask(family.view(stand), row) {
                        self.engine.mask(family.view(stand), &check, row)?;
                    }
                    self.finish_row(&family, stand, row);
                }
            }
        }
        Ok(allowed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{Accept, StopRule};
    use crate::limits::Limits;
    use crate::network::{Network, NetworkOptions};
    use crate::syntax::parse;
    use crate::vocabulary::Vocabulary;
    use std::sync::Arc;

    #[test]
    fn rows_of_a_text_are_looked_through_once() {
        let grammar = parse("root ::= [a-y]*", "root", &Limits::default()).expect("grammar text");
        let network = Network::new(&grammar, &NetworkOptions::default()).expect("a network");
        // All letters, many times; the last is forbidden.
        let blob: Vec<u8> = (0..9_999).map(|i| b'a' + (i % 25) as u8).chain([b'z']).collect();
        let offsets = (0..=10_000).collect();
        let vocabulary = Vocabulary::new(blob, offsets, &[], &[]).expect("sound");
        let (network, vocabulary) = (Arc::new(network), Arc::new(vocabulary));
        let engine = Engine::new(network, vocabulary, Arc::default(), None, Default::default());
        let engine = Arc::new(engine);
        let mut matcher = Matcher::new(engine.clone(), StopRule::default()).expect("stop tokens");
        let mut row = vec![0; words(10_000)];
        for _ in 0..20 {
            assert_eq!(matcher.fill(&mut row), Ok(true));
            assert_eq!(matcher.accept_bytes(b"some"), Ok(Accept::Taken));
        }
        assert_eq!(engine.gap.searches(), 1);
    }
}
