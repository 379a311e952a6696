//! Which stop tokens may end a text: all of them, but where the grammar names some of them.

use crate::budget::{Halt, Interrupt};
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::error::{Error, Result};
use crate::grammar::{ANY_STOP, FIRST_MARK};
use crate::network::Network;
use crate::vocabulary::Vocabulary;
use std::borrow::Cow;

/// The stop tokens that a grammar names, sorted; `None` where it names none.
pub(in crate::engine) fn named_stops(
    network: &Network,
    vocabulary: &Vocabulary,
) -> Option<Box<[u32]>> {
    let marks: Vec<u32> = vocabulary.stop_ids().iter().map(|id| FIRST_MARK | id).collect();
    let stops = vocabulary.stop_ids().iter().zip(network.names_ids(&marks));
    let named: Box<[u32]> = stops.filter(|(_, is_named)| *is_named).map(|(id, _)| *id).collect();
    if named.is_empty() { None } else { Some(named) }
}

impl Matcher {
    /// Refuses stop tokens of its own that leave out one with which the grammar ends texts: nothing would
    /// end those.
    ///
    /// # Errors
    /// [`Error::Vocabulary`].
    pub(super) fn refuse_unended(&self) -> Result<()> {
        let Some(named) = &self.engine.named_stops else { return Ok(()) };
        match named.iter().find(|&&id| !self.is_stop(id)) {
            None => Ok(()),
            Some(id) => Err(Error::Vocabulary(format!(
                "the grammar ends texts with the stop token {id}, which is none of the matcher's: \
                 add it to stop_token_ids"
            ))),
        }
    }

    /// The stop tokens that may come next.
    ///
    /// # Errors
    /// [`Error::Deadline`], [`Error::Cancelled`], and [`Error::Limit`] where the grammar names stop tokens.
    pub(in crate::engine) fn stops_at(
        &self,
        family: &Family,
        stand: Stand,
        interrupt: &Interrupt,
    ) -> Result<Cow<'_, [u32]>> {
        if !family.accepts(stand) {
            return Ok(Cow::Borrowed(&[]));
        }
        match &self.engine.named_stops {
            None => Ok(Cow::Borrowed(self.stop_ids())),
            Some(named) => self
                .named_stops_at(family, stand, named, interrupt)
                .map_err(|halt| self.halted(halt, interrupt)),
        }
    }

    /// The same where the grammar names stop tokens: the marks of those that may come are read in tables
    /// apart, as others may look at the family too.
    fn named_stops_at(
        &self,
        family: &Family,
        stand: Stand,
        named: &[u32],
        interrupt: &Interrupt,
    ) -> std::result::Result<Cow<'_, [u32]>, Halt> {
        // Charts do not take tokens whole.
        let Some(apart) = family.stacks_apart(stand, interrupt)? else {
            return Ok(Cow::Borrowed(self.stop_ids()));
        };
        let mut marks = apart.into_marks();
        if marks.can_follow(ANY_STOP)? {
            return Ok(Cow::Borrowed(self.stop_ids()));
        }
        let mut stops = Vec::new();
        for &id in named {
            if marks.can_follow(FIRST_MARK | id)? {
                stops.push(id);
            }
        }
        Ok(Cow::Owned(stops))
    }
}
