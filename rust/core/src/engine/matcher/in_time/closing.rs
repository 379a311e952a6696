//! Shortest completions of a text: how many tokens and bytes they have, and which.

use super::completions::{Completions, Unit};
use super::uncounted;
use crate::budget::Interrupt;
use crate::ending::UNREACHABLE;
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::error::{Error, Result};
use crate::network::{ClassSet, contains, insert};
use crate::stacks::{NONE, SetId};

/// What it takes to end the text of a matcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shortest {
    /// The fewest tokens, the stop token not counted; `None` where no tokens of the vocabulary complete
    /// the text.
    pub tokens: Option<u32>,
    /// The fewest bytes; `None` where no bytes complete it, as where a token must come that is taken whole.
    pub bytes: Option<u32>,
}

impl Matcher {
    /// The fewest tokens and bytes with which the text can end.
    ///
    /// # Errors
    /// [`Error::Unsupported`] as for [`Self::limit_tokens`]; [`Error::Limit`], [`Error::Deadline`],
    /// [`Error::Cancelled`].
    pub fn shortest(&self, interrupt: &Interrupt) -> Result<Shortest> {
        self.refuse_uncounted()?;
        let interrupt = &self.mask_interrupt(interrupt);
        interrupt.look()?;
        let mut family = lock::write(&self.family, interrupt)?;
        if self.ended(&family) {
            return Ok(Shortest { tokens: Some(0), bytes: Some(0) });
        }
        let known = |number: u32| (number < UNREACHABLE).then_some(number);
        let tokens = self.fewest_now(&mut family, interrupt)?;
        let bytes = self.fewest_bytes(&mut family, interrupt)?;
        Ok(Shortest { tokens: known(tokens), bytes: known(bytes) })
    }

    fn fewest_bytes(&self, family: &mut Family, interrupt: &Interrupt) -> Result<u32> {
        if self.engine.network.has_unique_items() {
            let stand = family.step(self.at).stand;
            return Completions::new(self, Unit::Bytes, interrupt).fewest(family, stand);
        }
        self.with_stacks(family, interrupt, |family, set| {
            self.fewest_bytes_of(family, set, interrupt)
        })
    }

    /// A shortest completion: of the tokens with which the fewest follow always that with the lowest id;
    /// at most `most`, without a stop token.
    ///
    /// # Errors
    /// [`Error::Budget`] where no tokens complete the text; those of [`Self::shortest`].
    pub fn closing_tokens(&self, most: usize, interrupt: &Interrupt) -> Result<Vec<u32>> {
        let shortest = self.shortest(interrupt)?;
        let Some(count) = shortest.tokens else {
            return Err(Error::Budget { needed: None, left: 0 });
        };
        let mut fork = self.fork();
        (fork.max_tokens, fork.prefer_end) = (None, 0);
        let interrupt = &self.mask_interrupt(interrupt);
        let mut row = vec![0; crate::mask::words(self.engine.vocabulary.len())];
        let mut out = Vec::new();
        let is_unique = self.engine.network.has_unique_items();
        let mut needed = count;
        while needed > 0 && needed < UNREACHABLE && out.len() < most {
            interrupt.look()?;
            let left = needed - 1;
            let mut family = lock::write(&fork.family, interrupt)?;
            fork.with_stacks(&mut family, interrupt, |family, set| {
                fork.allow(family, interrupt);
                let engine = &fork.engine;
                let over = engine.ends_over(interrupt);
                let over = over.map_err(|halt| engine.ending_halted(halt, interrupt))?;
                let made = engine.over_tokens_in_time(over, &mut row, interrupt, |trie, bits| {
                    engine.entries_in_time((trie, over), family, set, left, interrupt, bits)
                });
                family.release();
                made
            })?;
            drop(family);
            let stops = fork.stop_ids();
            let ids = row.iter().zip(0u32..).flat_map(|(&word, at)| {
                (0..32).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 32 + bit)
            });
            let mut ids = ids.filter(|id| stops.binary_search(id).is_err());
            let id = match is_unique {
                true => fork.first_in_time(ids, left, interrupt)?,
                false => ids.next(),
            };
            let Some(id) = id else { break };
            fork.accept_token(id, interrupt)?;
            out.push(id);
            // What the stacks need is a bound where members come in any order, and behind a token it may be less.
            needed = match is_unique {
                true => left,
                false => fork.fewest_now(&mut *lock::write(&fork.family, interrupt)?, interrupt)?,
            };
        }
        Ok(out)
    }

    /// A completion of the fewest bytes: of the bytes with which the fewest follow always the lowest, but where items
    /// are unique; at most `most`. Bytes cost no tokens.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where a token must come that no bytes write; those of [`Self::shortest`].
    pub fn closing_bytes(&self, most: usize, interrupt: &Interrupt) -> Result<Vec<u8>> {
        self.refuse_uncounted()?;
        let interrupt = &self.mask_interrupt(interrupt);
        interrupt.look()?;
        if self.engine.network.has_unique_items() {
            return self.closing_bytes_of_arrays(most, interrupt);
        }
        let mut family = lock::write(&self.family, interrupt)?;
        if self.ended(&family) {
            return Ok(Vec::new());
        }
        self.with_stacks(&mut family, interrupt, |family, set| {
            self.closing_bytes_of(family, set, most, interrupt)
        })
    }

    /// A completion of some stacks. The bytes are tried on these alone, since steps of a text would be kept.
    fn closing_bytes_of(
        &self,
        family: &mut Family,
        mut set: SetId,
        most: usize,
        interrupt: &Interrupt,
    ) -> Result<Vec<u8>> {
        let mut needed = self.written(self.fewest_bytes_of(family, set, interrupt)?)?;
        let mut out = Vec::new();
        while needed > 0 && out.len() < most {
            // Bytes of one class lead to the same stacks.
            let classes = family.next_classes(Stand::Stacks(set));
            let mut tried: ClassSet = [0; 4];
            let mut nearest: Option<(u32, u8, SetId)> = None;
            for byte in 0..=u8::MAX {
                let class = self.engine.class(byte);
                if !contains(&classes, class) || contains(&tried, class) {
                    continue;
                }
                insert(&mut tried, class);
                interrupt.look()?;
                self.allow(family, interrupt);
                let next = family.stepper.step(set, class);
                family.release();
                let next = next.map_err(|halt| self.halted(halt, interrupt))?;
                if next == NONE {
                    continue;
                }
                let after = self.fewest_bytes_of(family, next, interrupt)?;
                if nearest.is_none_or(|(best, ..)| after < best) {
                    nearest = Some((after, byte, next));
                }
                if after < needed {
                    break;
                }
            }
            let nearest = nearest.filter(|(after, ..)| *after < needed);
            let Some((after, byte, next)) = nearest else { break };
            out.push(byte);
            (needed, set) = (after, next);
        }
        Ok(out)
    }

    /// [`Self::closing_bytes`] of a text with arrays whose items are unique: the bytes that a search finds.
    fn closing_bytes_of_arrays(&self, most: usize, interrupt: &Interrupt) -> Result<Vec<u8>> {
        let mut family = lock::write(&self.family, interrupt)?;
        if self.ended(&family) {
            return Ok(Vec::new());
        }
        let stand = family.step(self.at).stand;
        let mut completions = Completions::new(self, Unit::Bytes, interrupt);
        let count = self.written(completions.fewest(&mut family, stand)?)?;
        let found = completions.found(&mut family, stand, count)?.unwrap_or_default();
        Ok(found.into_iter().take(most).map(|byte| byte as u8).collect())
    }

    /// So many bytes, if bytes complete the text.
    fn written(&self, bytes: u32) -> Result<u32> {
        match bytes < UNREACHABLE {
            true => Ok(bytes),
            false if self.engine.network.takes_tokens() => Err(uncounted(
                "a token must come that is taken whole, which no bytes write; use closing_tokens()"
                    .into(),
            )),
            false => Err(Error::Limit {
                limit: "max_text_bytes",
                value: u64::from(self.engine.network.longest_text()),
                message: "the text takes more bytes to its end; give smaller lower bounds on lengths and \
                          counts"
                    .into(),
            }),
        }
    }
}
