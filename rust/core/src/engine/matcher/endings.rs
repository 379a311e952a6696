//! What an engine knows of the ends of its texts, made when it is first asked for.

use crate::budget::{Halt, Interrupt, Meter};
use crate::ending::{Countdown, Ending};
use crate::engine::{Engine, PREPARATION};
use crate::error::Error;
use crate::network::ClassSet;
use crate::vocabulary::Trie;
use std::sync::{Arc, OnceLock};

/// What an engine knows of the ends of its texts.
#[derive(Default)]
pub(in crate::engine) struct Endings {
    plain: OnceLock<Arc<Ending>>,
    folded: OnceLock<Arc<Ending>>,
    pub(super) countdown: OnceLock<Arc<Countdown>>,
}

impl Endings {
    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        let endings = [&self.plain, &self.folded].into_iter().filter_map(|ending| ending.get());
        let endings: usize = endings.map(|ending| ending.bytes()).sum();
        endings + self.countdown.get().map_or(0, |countdown| countdown.bytes())
    }
}

impl Engine {
    /// The rows of exits over representatives of classes, or over all tokens.
    pub(super) fn ending(
        &self,
        is_folded: bool,
        interrupt: &Interrupt,
    ) -> std::result::Result<&Arc<Ending>, Halt> {
        let folded = self.folded.get().filter(|_| is_folded);
        let place = if folded.is_some() { &self.endings.folded } else { &self.endings.plain };
        if let Some(known) = place.get() {
            return Ok(known);
        }
        let whole = &self.plain().trie;
        let thinned = match folded {
            None => self.thinned(interrupt)?,
            Some(_) => None,
        };
        let own = folded.map(|folded| &*folded.walker.trie);
        let trie = own.or(thinned.as_ref()).unwrap_or(whole);
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        let made = Ending::new(self.network.clone(), trie, whole, &mut meter)?;
        Ok(place.get_or_init(|| Arc::new(made)))
    }

    /// Makes what questions about the end of a text share, ahead of the first one. Nothing where no such
    /// question has an answer.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`].
    pub fn prepare_ending(&self, interrupt: &Interrupt) -> Result<(), Error> {
        let has_stacks = !self.network.is_for_charts() && !self.begins_on_a_chart();
        let counts = !self.network.has_sets() || self.network.only_unique_items().is_some();
        if has_stacks && counts {
            let made = self.ending(self.has_classes(), interrupt);
            made.map_err(|halt| self.ending_halted(halt, interrupt))?;
        }
        Ok(())
    }

    /// A trie of representatives, made for the rows alone: these look at each token in each state, so
    /// that classes are sooner made. `None` where there can be none.
    fn thinned(&self, interrupt: &Interrupt) -> std::result::Result<Option<Trie>, Halt> {
        let Some(fold) = self.fold.get() else { return Ok(None) };
        match fold(interrupt).and_then(|classes| self.trie_of(&classes)) {
            Ok(trie) => Ok(Some(trie)),
            Err(_) => interrupt.check().map(|()| None), // what halts for good is said of the rows
        }
    }

    /// Bounds from the network alone.
    pub(super) fn countdown(
        &self,
        interrupt: &Interrupt,
    ) -> std::result::Result<&Arc<Countdown>, Halt> {
        if let Some(known) = self.endings.countdown.get() {
            return Ok(known);
        }
        let mut single: ClassSet = [0; 4];
        let vocabulary = &self.vocabulary;
        let order = vocabulary.order().iter().map(|&id| vocabulary.bytes(id));
        for bytes in order.filter(|bytes| bytes.len() == 1) {
            let class = self.class(bytes[0]);
            single[class as usize >> 6] |= 1 << (class & 63);
        }
        // Tokens of one class do the same: the longest that counts is the longest representative.
        let trie = self.folded.get().map_or(&self.plain().trie, |folded| &folded.walker.trie);
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        let network = self.network.clone();
        let mut made = Countdown::new(network, trie.longest(), &single, &mut meter)?;
        if self.network.has_unique_items() && !self.spells_plain_letters() {
            // The letters that make an item another one may be no tokens.
            made.most_raised = None;
        }
        Ok(self.endings.countdown.get_or_init(|| Arc::new(made)))
    }

    /// Whether each printable letter of ASCII is a token of its own.
    fn spells_plain_letters(&self) -> bool {
        let vocabulary = &self.vocabulary;
        let bytes = vocabulary.order().iter().map(|&id| vocabulary.bytes(id));
        let mut missing = (0x20..0x7f).fold(0u128, |all, byte: u8| all | 1 << byte);
        bytes.filter(|bytes| bytes.len() == 1 && bytes[0] < 0x80).for_each(|bytes| {
            missing &= !(1 << bytes[0]);
        });
        missing == 0
    }

    /// The error of a question about the end of a text.
    pub(in crate::engine) fn ending_halted(&self, halt: Halt, interrupt: &Interrupt) -> Error {
        let (limit, value) = match halt {
            Halt::Bytes => ("max_memo_bytes", self.limits.max_memo_bytes as u64),
            _ => ("max_mask_work", self.limits.max_mask_work),
        };
        interrupt.error(halt).unwrap_or_else(|| Error::Limit {
            limit,
            value,
            message:
                "the fewest tokens to the end of this text take more to find out; raise the limit, \
                 or read without max_tokens"
                    .into(),
        })
    }
}
