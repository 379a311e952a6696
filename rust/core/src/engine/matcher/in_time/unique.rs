//! Texts with arrays whose items are unique: their ends in time.
//!
//! A mask does not look for a completion behind every token. Tokens that lead to the same stacks with an item that is
//! like none before have the same completions, as far as these read no further item. Where they must read some, one
//! completion is looked for behind an item that equals none: if there is none, no token has one, and else it is one
//! of each token that it does not repeat.

use crate::budget::Interrupt;
use crate::ending::{Over, UNREACHABLE};
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::engine::matcher::in_time::completions::{BehindAny, Completions, Unit};
use crate::engine::matcher::in_time::visits::{Behind, Sort};
use crate::engine::matcher::in_time::walk::VisitInTime;
use crate::engine::{Engine, Matcher};
use crate::error::{Error, Result};
use crate::stacks::SetId;
use crate::unique::{At, Glance};
use crate::vocabulary::Trie;
use rustc_hash::FxHashMap;

impl Matcher {
    /// Refuses a budget with which the text cannot be completed from where it stands, with the least number
    /// where that is soon found.
    ///
    /// # Errors
    /// [`Error::Budget`]; those of a mask.
    pub(super) fn refuse_late_unique(
        &self,
        family: &mut Family,
        left: u32,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let stand = family.step(self.at).stand;
        let mut completions = Completions::new(self, Unit::Tokens, interrupt);
        if let Some(most) = left.checked_sub(self.stop_tokens())
            && completions.within(family, stand, most)?
        {
            return Ok(());
        }
        let needed = match completions.fewest(family, stand) {
            Ok(fewest) => Some(fewest).filter(|&fewest| fewest < UNREACHABLE),
            Err(Error::Limit { .. }) => None,
            Err(error) => return Err(error),
        };
        Err(Error::Budget { needed: needed.map(|fewest| fewest + self.stop_tokens()), left })
    }

    /// Takes out of the row of what may follow, whatever is left, the tokens behind which the text needs more
    /// than `most`.
    ///
    /// # Errors
    /// Those of a mask.
    pub(super) fn narrow_in_time(
        &self,
        most: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let mut family = lock::write(&self.family, interrupt)?;
        let family = &mut *family;
        let stand = family.step(self.at).stand;
        let at = match stand {
            Stand::Stacks(set) => return self.narrow_outside(family, set, most, row, interrupt),
            Stand::Array(id) => At::Array(id),
            Stand::Chart(_) => return Err(super::misplaced()),
        };
        let set = family.arrays.set(at);
        let arrays = std::mem::take(&mut family.arrays);
        let (alike, doubtful) = (FxHashMap::default(), Vec::new());
        let mut sort = Sort { arrays: &arrays, row, alike, doubtful };
        let start = arrays.glance(at);
        let is_in_escape = start.is_in_escape();
        let trie = &self.engine.plain().trie;
        let walked = self.walk_in_time((trie, family), (set, start), most, &mut sort, interrupt);
        let Sort { alike, mut doubtful, .. } = sort;
        family.arrays = arrays;
        walked?;
        row.fill(0);
        let mut completions = Completions::new(self, Unit::Tokens, interrupt);
        let mut alike: Vec<_> = alike.into_iter().collect();
        alike.sort_unstable_by_key(|group| group.0);
        for ((after, _), (place, tokens)) in alike {
            let Some(&first) = tokens.first() else { continue };
            let is_apart = matches!(place, Glance::Apart) && !is_in_escape;
            if completions.stands_for_all(family, (stand, first), (after, place))? {
                set_tokens(row, &tokens);
                continue;
            }
            let found = match is_apart {
                true => completions.behind_any(family, (stand, first), most)?,
                false => BehindAny::Unclear,
            };
            match found {
                BehindAny::Nothing => {}
                BehindAny::Text(text) => {
                    let repeats = |&id: &u32| !differs(self.engine.vocabulary.bytes(id), &text);
                    let (repeated, others): (Vec<u32>, _) = tokens.into_iter().partition(repeats);
                    set_tokens(row, &others);
                    doubtful.extend(repeated);
                }
                BehindAny::Unclear => doubtful.extend(tokens),
            }
        }
        for token in doubtful {
            if completions.after(family, stand, token, most)? {
                set_tokens(row, &[token]);
            }
        }
        Ok(())
    }

    /// [`Self::narrow_in_time`] for a text that stands in no array. All tokens of a class lead to the same
    /// stacks. If these are in no array, no item read before matters, so one search answers for all tokens
    /// that lead to them. The other tokens are tried one by one.
    fn narrow_outside(
        &self,
        family: &mut Family,
        set: SetId,
        most: u32,
        row: &mut [i32],
        interrupt: &Interrupt,
    ) -> Result<()> {
        let engine: &Engine = &self.engine;
        let halted = |halt| engine.ending_halted(halt, interrupt);
        let thinned = engine.thinned(interrupt).map_err(halted)?;
        let trie = thinned.map_or(&*engine.plain().trie, |thinned| &thinned.trie);
        let mut behind = Behind::default();
        self.walk_in_time((trie, family), (set, ()), most, &mut behind, interrupt)?;
        let mut behind: Vec<_> = behind.0.into_iter().collect();
        behind.sort_unstable_by_key(|group| group.0);
        let words = thinned.map_or(row.len(), |thinned| thinned.words);
        let (mut allowed, mut doubtful) = (vec![0; words], vec![0; words]);
        let mut completions = Completions::new(self, Unit::Tokens, interrupt);
        let network = family.network().clone();
        for (after, entries) in behind {
            let within = family.arrays.within(&network, &mut family.stepper.sets, after);
            if within.map_err(halted)?.any {
                set_tokens(&mut doubtful, &entries);
            } else if completions.within(family, Stand::Stacks(after), most)? {
                set_tokens(&mut allowed, &entries);
            }
        }
        let unfolded = |bits: Vec<i32>| match thinned {
            Some(thinned) => {
                let mut out = vec![0; row.len()];
                thinned.unfolder.write().unfold(&bits, &mut out);
                out
            }
            None => bits,
        };
        let (allowed, doubtful) = (unfolded(allowed), unfolded(doubtful));
        for (at, word) in row.iter_mut().enumerate() {
            let mut left = (*word & doubtful[at]) as u32;
            *word &= allowed[at];
            while left != 0 {
                let token = at as u32 * 32 + left.trailing_zeros();
                left &= left - 1;
                if completions.after(family, Stand::Stacks(set), token, most)? {
                    *word |= 1 << (token & 31);
                }
            }
        }
        Ok(())
    }

    /// The first of some tokens behind which the text can be completed with `most` more.
    ///
    /// # Errors
    /// Those of a mask.
    pub(super) fn first_in_time(
        &self,
        tokens: impl Iterator<Item = u32>,
        most: u32,
        interrupt: &Interrupt,
    ) -> Result<Option<u32>> {
        let mut family = lock::write(&self.family, interrupt)?;
        let stand = family.step(self.at).stand;
        let mut completions = Completions::new(self, Unit::Tokens, interrupt);
        for token in tokens {
            if completions.after(&mut family, stand, token, most)? {
                return Ok(Some(token));
            }
        }
        Ok(None)
    }

    /// Walks a trie of the vocabulary or of representatives; returns how many nodes were passed, and rows made.
    pub(super) fn walk_in_time<V: VisitInTime>(
        &self,
        (trie, family): (&Trie, &mut Family),
        (set, start): (SetId, V::Place),
        most: u32,
        visit: &mut V,
        interrupt: &Interrupt,
    ) -> Result<u64> {
        self.allow(family, interrupt);
        let engine: &Engine = &self.engine;
        let walked = engine.visit_in_time(
            ((trie, 0), Over::Thinned),
            family,
            (set, start),
            most,
            visit,
            interrupt,
        );
        family.release();
        walked.map_err(|halt| engine.ending_halted(halt, interrupt))
    }
}

/// Whether no item of a text can equal a string that a token leads into, whatever the string says besides.
fn differs(token: &[u8], text: &[u8]) -> bool {
    // What the token adds to the string is a part of what it says, and so of an item that equals it.
    let says = token.rsplit(|&byte| byte == b'"').next().unwrap_or_default();
    let has_escape = says.contains(&b'\\') || text.contains(&b'\\');
    !says.is_empty() && !has_escape && !text.windows(says.len()).any(|part| part == says)
}

fn set_tokens(row: &mut [i32], tokens: &[u32]) {
    for &token in tokens {
        row[token as usize >> 5] |= 1 << (token & 31);
    }
}
