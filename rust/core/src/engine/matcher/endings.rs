//! What an engine knows of the ends of its texts, made when it is first asked for.

use super::in_time::answers::EndAnswers;
use crate::budget::{Halt, Interrupt, Meter};
use crate::ending::{Countdown, Ending, Over};
use crate::engine::{Engine, PREPARATION};
use crate::error::Error;
use crate::mask::{Unfolder, words};
use crate::network::{ClassSet, insert};
use crate::vocabulary::Trie;
use parking_lot::RwLock;
use std::sync::{Arc, OnceLock};

/// A question about the end of a text may take the work of so many masks.
const MASKS_OF_WORK: u64 = 16;

/// What an engine knows of the ends of its texts.
#[derive(Default)]
pub(in crate::engine) struct Endings {
    /// By [`Over`].
    rows: [OnceLock<Arc<Ending>>; 4],
    /// What masks near the end are put together of, by [`Over`].
    answers: [OnceLock<EndAnswers>; 4],
    pub(super) countdown: OnceLock<Arc<Countdown>>,
    /// Classes made for ends alone, where there are no others; `None` where there can be none.
    thinned: OnceLock<Option<Thinned>>,
}

/// Tokens of a class that are tried where items are unique.
const SOME_OF_CLASS: usize = 4;

/// Classes of what the stacks of a text say of its end.
pub(super) struct Thinned {
    pub(super) trie: Arc<Trie>,
    pub(super) unfolder: RwLock<Unfolder>,
    /// Words of a row of them.
    pub(super) words: usize,
    /// For each class a token of it.
    pub(super) representatives: Vec<u32>,
    /// For each class some tokens of it, where these do not all do the same: where items are unique.
    pub(super) some: Vec<Vec<u32>>,
}

impl Endings {
    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        let endings = self.rows.iter().filter_map(|ending| ending.get());
        let endings: usize = endings.map(|ending| ending.bytes()).sum();
        let answers = self.answers.iter().filter_map(|answers| answers.get());
        let answers: usize = answers.map(EndAnswers::bytes).sum();
        let thinned = self.thinned.get().and_then(Option::as_ref);
        let thinned = thinned.map_or(0, |thinned| thinned.unfolder.read().bytes());
        endings + answers + thinned + self.countdown.get().map_or(0, |countdown| countdown.bytes())
    }
}

impl Engine {
    /// Over which entries the rows of exits are.
    ///
    /// A token that enters a rule by its first byte leaves the rule one token less than a token of the same
    /// class that enters it later. That matters only where the rule has so few tokens that a shortest end of
    /// it might need them all. In a rule that was entered before, each token counts.
    ///
    /// # Errors
    /// Those of [`Self::ending`] and [`Self::countdown`].
    pub(super) fn ends_over(&self, interrupt: &Interrupt) -> std::result::Result<Over, Halt> {
        let usual = self.usual_ends();
        let Some((fewest, farthest)) = self.network.budgets_of_tokens() else { return Ok(usual) };
        if self.countdown(interrupt)?.most_raised.is_none() {
            return Ok(Over::All); // letters bound no tokens
        }
        // An exit that finishes more tokens is not kept.
        let most = self.ending(usual, interrupt)?.most_tokens().saturating_add(farthest);
        // The token that enters the rule, and the next one, are counted already.
        Ok(if fewest >= most.saturating_add(2) { usual } else { Over::All })
    }

    /// Over which classes the rows of exits are, where no rule counts tokens: those that the rows were made with
    /// first. Classes of masks that come later, from a thread in the background, do not ask for other rows.
    fn usual_ends(&self) -> Over {
        let is_made = |over: Over| self.endings.rows[over as usize].get().is_some();
        let is_thinned = self.endings.thinned.get().is_some_and(Option::is_some);
        match self.has_classes() {
            true if is_made(Over::Thinned) && is_thinned && !is_made(Over::Classes) => {
                Over::Thinned
            }
            true => Over::Classes,
            false => Over::Thinned,
        }
    }

    /// The rows of exits.
    pub(super) fn ending(
        &self,
        over: Over,
        interrupt: &Interrupt,
    ) -> std::result::Result<&Arc<Ending>, Halt> {
        let place = &self.endings.rows[over as usize];
        if let Some(known) = place.get() {
            return Ok(known);
        }
        let whole = &self.plain().trie;
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        let over_trie = |trie: Option<&Trie>, meter: &mut Meter| {
            Ending::new(self.network.clone(), trie.unwrap_or(whole), whole, meter)
        };
        let made = match over {
            Over::Classes => {
                over_trie(self.folded.get().map(|folded| &*folded.walker.trie), &mut meter)
            }
            Over::Thinned => {
                let thinned = self.thinned(interrupt)?;
                over_trie(thinned.map(|thinned| &*thinned.trie), &mut meter)
            }
            Over::All => over_trie(None, &mut meter),
            Over::Bytes => Ending::over_bytes(self.network.clone(), &mut meter),
        }?;
        Ok(place.get_or_init(|| Arc::new(made)))
    }

    /// What masks near the end are put together of.
    pub(super) fn end_answers(&self, trie: &Arc<Trie>, over: Over) -> &EndAnswers {
        let make = || EndAnswers::new(self.network.clone(), trie.clone());
        self.endings.answers[over as usize].get_or_init(make)
    }

    /// Makes what questions about the end of a text share, ahead of the first one, with the work of a
    /// compilation and not of a mask. Nothing where no such question has an answer.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`].
    pub fn prepare_ending(&self, interrupt: &Interrupt) -> Result<(), Error> {
        let has_stacks = !self.network.is_for_charts();
        if has_stacks && self.network.counts_sets() {
            let mut meter = Meter::default();
            meter.allow(self.ending_work().max(PREPARATION), interrupt);
            let most_bytes = self.limits.max_memo_bytes;
            let over = self.usual_ends();
            let made = self.ending(over, interrupt).and_then(|ending| {
                ending.prepare(&self.network, most_bytes, interrupt, &mut meter)
            });
            let made = made.and_then(|()| self.countdown(interrupt).map(|_| ()));
            made.map_err(|halt| self.ending_halted(halt, interrupt))?;
        }
        Ok(())
    }

    /// The work of one question about the end of a text. Most of it makes rows that all texts of the grammar share, so
    /// that it is more than that of a mask.
    pub(super) fn ending_work(&self) -> u64 {
        self.limits.max_mask_work.saturating_mul(MASKS_OF_WORK)
    }

    /// Classes made for ends alone: rows and walks look at each token in each state, so that classes
    /// are sooner made. `None` where there can be none.
    pub(super) fn thinned(
        &self,
        interrupt: &Interrupt,
    ) -> std::result::Result<Option<&Thinned>, Halt> {
        if let Some(known) = self.endings.thinned.get() {
            return Ok(known.as_ref());
        }
        let Some(fold) = self.fold.get() else { return Ok(None) };
        let made = fold(interrupt).and_then(|classes| {
            let (trie, count) = (Arc::new(self.trie_of(&classes)?), classes.representatives.len());
            let unfolder = Unfolder::new(&classes.class_of, count, self.limits.max_row_bytes);
            let unfolder = RwLock::new(unfolder.map_err(Error::Vocabulary)?);
            let mut some = Vec::new();
            if self.network.has_unique_items() {
                some.resize(count, Vec::new());
                for (token, &class) in classes.class_of.iter().enumerate() {
                    let class = usize::try_from(class).ok().and_then(|class| some.get_mut(class));
                    if let Some(some) = class.filter(|some| some.len() < SOME_OF_CLASS) {
                        some.push(token as u32);
                    }
                }
            }
            let representatives = classes.representatives;
            Ok(Thinned { trie, unfolder, words: words(count), representatives, some })
        });
        if made.is_err() {
            interrupt.check()?; // without classes the rows are made over all tokens, which is as exact
        }
        Ok(self.endings.thinned.get_or_init(|| made.ok()).as_ref())
    }

    /// Makes a row of tokens of what a trie of representatives says, or of the whole vocabulary.
    pub(super) fn over_tokens_in_time(
        &self,
        over: Over,
        row: &mut [i32],
        interrupt: &Interrupt,
        make: impl FnOnce(&Arc<Trie>, &mut [i32]) -> std::result::Result<(), Halt>,
    ) -> Result<(), Error> {
        let halted = |halt| self.ending_halted(halt, interrupt);
        let thinned = match over {
            Over::Classes => {
                return self
                    .over_tokens(row, |walker, bits| make(&walker.trie, bits).map_err(halted));
            }
            Over::Thinned => self.thinned(interrupt).map_err(halted)?,
            Over::All | Over::Bytes => None,
        };
        let Some(thinned) = thinned else {
            return make(&self.plain().trie, row).map_err(halted);
        };
        let mut bits = vec![0; thinned.words];
        make(&thinned.trie, &mut bits).map_err(halted)?;
        thinned.unfolder.write().unfold(&bits, row);
        Ok(())
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
        self.single_bytes().for_each(|byte| insert(&mut single, self.class(byte)));
        // Tokens of one class do the same: what a representative raises all of them raise.
        let thinned = || self.endings.thinned.get().and_then(Option::as_ref);
        let trie = match self.folded.get() {
            Some(folded) => &folded.walker.trie,
            None => thinned().map_or(&self.plain().trie, |thinned| &thinned.trie),
        };
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        let mut made = Countdown::new(&self.network, trie, &single, &mut meter)?;
        if self.network.has_unique_items() && !self.spells_plain_letters() {
            // The letters that make an item another one may be no tokens.
            made.most_raised = None;
        }
        Ok(self.endings.countdown.get_or_init(|| Arc::new(made)))
    }

    /// The bytes that are tokens of their own.
    fn single_bytes(&self) -> impl Iterator<Item = u8> + '_ {
        let trie = &self.plain().trie;
        let children = trie.children(0);
        let single = children.filter(|(_, nodes)| !trie.numbers(nodes.start).is_empty());
        single.map(|(byte, _)| byte)
    }

    /// Whether each printable letter of ASCII is a token of its own.
    fn spells_plain_letters(&self) -> bool {
        let mut missing = (0x20..0x7f).fold(0u128, |all, byte: u8| all | 1 << byte);
        let printable = self.single_bytes().filter(|&byte| byte < 0x80);
        printable.for_each(|byte| missing &= !(1 << byte));
        missing == 0
    }

    /// The error of a question about the end of a text.
    pub(in crate::engine) fn ending_halted(&self, halt: Halt, interrupt: &Interrupt) -> Error {
        let (limit, value) = match halt {
            Halt::Bytes => ("max_memo_bytes", self.limits.max_memo_bytes as u64),
            Halt::Sets => ("max_set_bytes", self.network.most_set_bytes() as u64),
            _ => ("max_mask_work", self.limits.max_mask_work),
        };
        let why = match limit {
            "max_mask_work" => format!("more than {MASKS_OF_WORK} times as much work"),
            _ => "more".to_owned(),
        };
        interrupt.error(halt).unwrap_or_else(|| Error::Limit {
            limit,
            value,
            message: format!(
                "the fewest tokens to the end of this text take {why} to find out; raise the limit, or read without \
                 max_tokens"
            ),
        })
    }
}
