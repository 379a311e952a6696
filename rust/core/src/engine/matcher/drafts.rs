//! Masks of the nodes of a draft, a tree of tokens that a small model guessed.

use crate::budget::Interrupt;
use crate::engine::history::Stand;
use crate::engine::lock;
use crate::engine::{Accept, Matcher};
use crate::error::{Error, Result};
use crate::mask::words;

impl Matcher {
    /// Writes the rows of all nodes of a tree of draft tokens: the first for the state as it is, then
    /// one for each node, of what may follow it. Says of each node whether its token is allowed; the
    /// row of one that is not, or that ends the text, is empty. The state stays as it is.
    ///
    /// `parents[i]` is the node before node `i`, less than `i`, or negative for the state itself. Rows
    /// are of tokens, or of `classes`. Each node has the deadlines of an accept and of a mask for
    /// itself.
    ///
    /// # Errors
    /// Those of [`Self::fill`] and [`Self::fill_classes`], and [`Error::State`] for a parent that is no
    /// node before, [`Error::Vocabulary`] for an id that is none. The rows then mean nothing.
    ///
    /// # Panics
    /// If there are not exactly the rows of the tree.
    pub fn fill_draft(
        &self,
        parents: &[i64],
        tokens: &[u32],
        classes: bool,
        rows: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<Vec<bool>> {
        let size = self.engine.vocabulary.len();
        let width = match classes {
            true => self.engine.class_words().unwrap_or(0),
            false => words(size),
        };
        assert_eq!(rows.len(), width * (tokens.len() + 1), "words of the rows");
        assert_eq!(parents.len(), tokens.len(), "a parent for each node");
        let before = places_before(parents, tokens, size)?;
        if self.max_tokens.is_some() {
            return self.fill_draft_in_time(&before, tokens, classes, rows, interrupt);
        }
        let mut family = lock::write(&self.family, &self.accept_interrupt(interrupt))?;
        self.refuse_ended(&family)?;
        // Where the text goes on after each node, if it does.
        let mut stands: Vec<Option<Stand>> = vec![Some(family.step(self.at).stand)];
        let mut allowed = Vec::with_capacity(tokens.len());
        for (&parent, &token) in before.iter().zip(tokens) {
            let (stand, is_allowed) = match stands[parent] {
                None => (None, false),
                Some(before) if self.is_stop(token) => {
                    let stops = self.stops_at_any(&mut family, before, interrupt)?;
                    (None, stops.contains(&token))
                }
                Some(before) => {
                    let interrupt = self.accept_interrupt(interrupt);
                    self.allow(&mut family, &interrupt);
                    let stand = self.advance_token(&mut family, before, token, &interrupt);
                    family.release();
                    let stand = stand.map_err(|halt| self.halted(halt, &interrupt))?;
                    let goes_on =
                        |&stand: &Stand| !(self.stops.when_complete && family.accepts(stand));
                    (stand.filter(goes_on), stand.is_some())
                }
            };
            stands.push(stand);
            allowed.push(is_allowed);
        }
        drop(family);
        for (stand, row) in stands.into_iter().zip(rows.chunks_exact_mut(width.max(1))) {
            let Some(stand) = stand else {
                row.fill(0);
                continue;
            };
            let interrupt = &self.mask_interrupt(interrupt);
            let mut family = lock::write(&self.family, interrupt)?;
            if classes {
                self.fill_classes_at(family, stand, None, interrupt, row)?;
                continue;
            }
            let stops = self.stops_at_any(&mut family, stand, interrupt)?;
            let is_there = !self.engine.network.is_for_charts()
                && self.engine.cached().mask(family.view(stand), row);
            match is_there {
                true => drop(family),
                false => self.make(family, stand, interrupt, row)?,
            }
            self.forbid_repeats(stand, row, interrupt)?;
            self.finish_row(&stops, row);
        }
        Ok(allowed)
    }

    /// [`Self::fill_draft`] under a budget: each node is a fork, which has a token less than the one
    /// before.
    fn fill_draft_in_time(
        &self,
        before: &[usize],
        tokens: &[u32],
        classes: bool,
        rows: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<Vec<bool>> {
        let mut forks = vec![Some(self.clone())];
        let mut allowed = Vec::with_capacity(tokens.len());
        for (&parent, &token) in before.iter().zip(tokens) {
            let mut fork = forks[parent].clone();
            let taken = match &mut fork {
                Some(fork) => fork.accept_token(token, interrupt)? == Accept::Taken,
                None => false,
            };
            allowed.push(taken);
            let goes_on = match &fork {
                Some(fork) if taken => !fork.is_terminated(interrupt)?,
                _ => false,
            };
            forks.push(fork.filter(|_| goes_on));
        }
        let width = rows.len() / forks.len();
        for (fork, row) in forks.iter().zip(rows.chunks_exact_mut(width.max(1))) {
            match fork {
                None => row.fill(0),
                Some(fork) if classes => drop(fork.fill_classes(row, interrupt)?),
                Some(fork) => drop(fork.fill(row, interrupt)?),
            }
        }
        Ok(allowed)
    }
}

/// For each node of a draft the row before it: 0 for the state itself, one more than the node else.
fn places_before(parents: &[i64], tokens: &[u32], size: usize) -> Result<Vec<usize>> {
    let place = |(node, (&parent, &token)): (usize, (&i64, &u32))| {
        if token as usize >= size {
            return Err(Error::Vocabulary(format!(
                "token {token} is outside the vocabulary of {size} tokens"
            )));
        }
        match usize::try_from(parent) {
            Err(_) => Ok(0),
            Ok(parent) if parent < node => Ok(parent + 1),
            Ok(parent) => Err(Error::State(format!(
                "node {node} of the draft follows node {parent}, which does not stand before it"
            ))),
        }
    };
    parents.iter().zip(tokens).enumerate().map(place).collect()
}
