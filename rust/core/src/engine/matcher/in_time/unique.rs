//! Texts with arrays whose items are unique: their ends in time.
//!
//! The stacks know nothing of what an array has read, so their shortest completion may repeat an item: its
//! length is a lower bound. A depth-first search reads the text forwards and leaves out what this bound
//! excludes. It tries the shortest completion of the stacks first, which nearly always holds. The fewest tokens
//! are found by iterative deepening (Korf, 1985): the search is asked with one token more each time. A mask
//! asks it once for all tokens that lead to the same stacks with an item that is like none before.

use crate::budget::{Halt, Interrupt, Meter};
use crate::ending::{Over, UNREACHABLE};
use crate::engine::history::{Family, Stand};
use crate::engine::lock;
use crate::engine::matcher::in_time::visits::{Behind, Collect, Sort};
use crate::engine::matcher::in_time::walk::VisitInTime;
use crate::engine::{Engine, Matcher};
use crate::error::{Error, Result};
use crate::stacks::{NONE, SetId};
use crate::unique::{At, Glance};
use crate::vocabulary::Trie;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;
use std::sync::Arc;

/// Units that are tried before all others are looked for.
const FEW: usize = 64;
/// A search goes so deep, at most, past the last text whose shortest completion was tried.
const MOST_DEPTH: usize = 256;

/// What completions are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Tokens,
    Bytes,
}

/// Tokens, or bytes, each behind the fewest of them that complete the stacks behind it, and with these.
type Ways = Rc<[(u32, u32, SetId)]>;

/// A search for completions of the texts of one family.
pub(super) struct Completions<'m> {
    matcher: &'m Matcher,
    interrupt: &'m Interrupt,
    unit: Unit,
    /// For stacks, a bound and a number as many of the units behind which the stacks need no more than that.
    ways: FxHashMap<(SetId, u32, usize), Ways>,
    /// Places in arrays that cannot be completed with so many units.
    failed: FxHashSet<(SetId, Vec<u32>, u32)>,
    meter: Meter,
}

impl<'m> Completions<'m> {
    pub(super) fn new(matcher: &'m Matcher, unit: Unit, interrupt: &'m Interrupt) -> Self {
        let mut meter = Meter::default();
        meter.allow(matcher.engine.limits.max_mask_work, interrupt);
        let (ways, failed) = (FxHashMap::default(), FxHashSet::default());
        Self { matcher, interrupt, unit, ways, failed, meter }
    }

    /// Whether at most so many units complete a text.
    ///
    /// # Errors
    /// Those of a mask.
    pub(super) fn within(&mut self, family: &mut Family, stand: Stand, most: u32) -> Result<bool> {
        self.tried(family, |completions, family| completions.search(family, stand, most, 0))
    }

    /// The fewest units that complete a text; [`UNREACHABLE`] where none do.
    ///
    /// # Errors
    /// As for [`Self::within`].
    pub(super) fn fewest(&mut self, family: &mut Family, stand: Stand) -> Result<u32> {
        let Some(set) = family.set_of(stand) else { return Ok(UNREACHABLE) };
        let mut count = self.least(family, set)?;
        while count < UNREACHABLE && !self.within(family, stand, count)? {
            count += 1;
        }
        Ok(count)
    }

    fn search(
        &mut self,
        family: &mut Family,
        stand: Stand,
        most: u32,
        depth: usize,
    ) -> Result<bool> {
        let Some(set) = family.set_of(stand) else { return Ok(false) };
        let least = self.least(family, set)?;
        if least > most {
            return Ok(false);
        }
        let shortest = self.shortest(family, set)?;
        if self.runs(family, stand, &shortest)? {
            return Ok(true);
        }
        if most == 0 {
            return Ok(false);
        }
        if depth == MOST_DEPTH {
            return Err(self.halted(Halt::Work));
        }
        let written = match stand {
            Stand::Array(id) => family.arrays.written(id),
            Stand::Stacks(_) | Stand::Chart(_) => Vec::new(),
        };
        self.meter.spend(written.len() as u64).map_err(|halt| self.halted(halt))?;
        let place = (set, written, most);
        if self.failed.contains(&place) {
            return Ok(false);
        }
        for room in [FEW, usize::MAX] {
            let ways = self.ways(family, set, most - 1, room)?;
            for &(_, unit, _) in &*ways {
                let Some(after) = self.advance(family, stand, unit)? else { continue };
                if self.search(family, after, most - 1, depth + 1)? {
                    return Ok(true);
                }
            }
            if ways.len() < room {
                break;
            }
        }
        self.failed.insert(place);
        Ok(false)
    }

    /// Whether a text goes on so to its end.
    fn runs(&mut self, family: &mut Family, stand: Stand, units: &[u32]) -> Result<bool> {
        let mut at = stand;
        for &unit in units {
            match self.advance(family, at, unit)? {
                Some(after) => at = after,
                None => return Ok(false),
            }
        }
        Ok(family.accepts(at))
    }

    fn advance(&mut self, family: &mut Family, stand: Stand, unit: u32) -> Result<Option<Stand>> {
        let (matcher, interrupt) = (self.matcher, self.interrupt);
        self.meter.spend(8).map_err(|halt| self.halted(halt))?;
        matcher.allow(family, interrupt);
        let after = match self.unit {
            Unit::Tokens => matcher.advance_token(family, stand, unit, interrupt),
            Unit::Bytes => {
                matcher.advance(family, stand, &[unit as u8], interrupt).map(|(after, _)| after)
            }
        };
        family.release();
        after.map_err(|halt| matcher.halted(halt, interrupt))
    }

    /// The fewest units that complete some stacks, whatever their arrays have read.
    fn least(&self, family: &mut Family, set: SetId) -> Result<u32> {
        match self.unit {
            Unit::Tokens => self.matcher.fewest(family, set, self.interrupt),
            Unit::Bytes => Ok(self.matcher.letters(family, set, self.interrupt)?.0),
        }
    }

    /// A shortest completion of some stacks, always the same.
    fn shortest(&mut self, family: &mut Family, set: SetId) -> Result<Arc<[u32]>> {
        let in_bytes = self.unit == Unit::Bytes;
        let over = family.memo_is_over();
        let memo = family.take_memo(over);
        let known = memo.shortest(in_bytes, set);
        family.put_memo(memo);
        if let Some(known) = known {
            return Ok(known);
        }
        let (mut at, mut out) = (set, Vec::new());
        for left in (0..self.least(family, set)?).rev() {
            let Some((unit, after)) = self.nearest(family, at, left)? else { break };
            out.push(unit);
            at = after;
        }
        let out: Arc<[u32]> = out.into();
        let mut memo = family.take_memo(over);
        memo.keep_shortest(in_bytes, set, out.clone());
        family.put_memo(memo);
        Ok(out)
    }

    /// A unit behind which some stacks need no more than `most`, and these stacks. All tokens of a class lead
    /// to the same stacks, so one of each is enough.
    fn nearest(
        &mut self,
        family: &mut Family,
        set: SetId,
        most: u32,
    ) -> Result<Option<(u32, SetId)>> {
        let (matcher, interrupt) = (self.matcher, self.interrupt);
        let thinned = match self.unit {
            Unit::Tokens => matcher.engine.thinned(interrupt).map_err(|halt| self.halted(halt))?,
            Unit::Bytes => None,
        };
        let Some(thinned) = thinned else {
            return Ok(self.ways(family, set, most, FEW)?.first().map(|way| (way.1, way.2)));
        };
        let mut found = Collect(Vec::new(), FEW);
        matcher.walk_in_time((&thinned.trie, family), (set, ()), most, &mut found, interrupt)?;
        let nearest = found.0.into_iter().min();
        Ok(nearest.map(|(_, class, after)| (thinned.representatives[class as usize], after)))
    }

    /// About as many as asked for of the units behind which some stacks need no more than `most`, those with
    /// the fewest first; fewer where there are no more.
    fn ways(&mut self, family: &mut Family, set: SetId, most: u32, room: usize) -> Result<Ways> {
        if let Some(known) = self.ways.get(&(set, most, room)) {
            return Ok(known.clone());
        }
        let mut out = match self.unit {
            Unit::Tokens => {
                self.matcher.tokens_in_time(family, set, (most, room), self.interrupt)?
            }
            Unit::Bytes => {
                let mut out = Vec::new();
                for byte in 0..=255u8 {
                    self.matcher.allow(family, self.interrupt);
                    let after = family.stepper.step(set, self.matcher.engine.class(byte));
                    family.release();
                    match after.map_err(|halt| self.matcher.halted(halt, self.interrupt))? {
                        NONE => {}
                        after => {
                            let least = self.least(family, after)?;
                            out.extend((least <= most).then_some((least, u32::from(byte), after)));
                        }
                    }
                }
                out
            }
        };
        out.sort_unstable();
        self.meter.spend(1 + out.len() as u64).map_err(|halt| self.halted(halt))?;
        let out: Ways = out.into();
        self.ways.insert((set, most, room), out.clone());
        Ok(out)
    }

    fn halted(&self, halt: Halt) -> Error {
        self.matcher.engine.ending_halted(halt, self.interrupt)
    }
}

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
            match completions.stands_for_all(family, (stand, first), (after, place))? {
                true => set_tokens(row, &tokens),
                false => doubtful.extend(tokens),
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

    /// About `room` of the tokens behind which some stacks need no more than `most`, each behind what these
    /// need.
    fn tokens_in_time(
        &self,
        family: &mut Family,
        set: SetId,
        (most, room): (u32, usize),
        interrupt: &Interrupt,
    ) -> Result<Vec<(u32, u32, SetId)>> {
        let mut out = Collect(Vec::new(), room);
        let trie = &self.engine.plain().trie;
        self.walk_in_time((trie, family), (set, ()), most, &mut out, interrupt)?;
        Ok(out.0)
    }

    /// Walks a trie of the vocabulary or of representatives.
    fn walk_in_time<V: VisitInTime>(
        &self,
        (trie, family): (&Trie, &mut Family),
        (set, start): (SetId, V::Place),
        most: u32,
        visit: &mut V,
        interrupt: &Interrupt,
    ) -> Result<()> {
        self.allow(family, interrupt);
        let engine: &Engine = &self.engine;
        let walked = engine.visit_in_time(
            (trie, Over::Thinned),
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

impl Completions<'_> {
    /// Whether the shortest completion of the stacks behind a token stands, and behind all tokens that lead
    /// to these stacks and to this kind of place.
    fn stands_for_all(
        &mut self,
        family: &mut Family,
        (stand, token): (Stand, u32),
        (after, mut place): (SetId, Glance),
    ) -> Result<bool> {
        let network = family.network().clone();
        let stacks = &mut family.stepper.sets;
        let within = family.arrays.within(&network, stacks, after);
        let is_within = within.map_err(|halt| self.halted(halt))?.any;
        if is_within == matches!(place, Glance::Outside) {
            return Ok(false);
        }
        let shortest = self.shortest(family, after)?;
        let vocabulary = &self.matcher.engine.vocabulary;
        for &unit in &*shortest {
            if !vocabulary.is_textual(unit) && is_within {
                return Ok(false);
            }
            for &byte in vocabulary.bytes(unit) {
                place = family.arrays.glance_on(&place, byte);
            }
        }
        if place.kind() != Some(0) {
            return Ok(false);
        }
        self.tried(family, |completions, family| {
            match completions.advance(family, stand, token)? {
                Some(at) => completions.runs(family, at, &shortest),
                None => Ok(false),
            }
        })
    }

    /// Whether the text behind a token can be completed with at most so many more.
    fn after(&mut self, family: &mut Family, stand: Stand, token: u32, most: u32) -> Result<bool> {
        self.tried(family, |completions, family| {
            match completions.advance(family, stand, token)? {
                Some(at) => completions.search(family, at, most, 0),
                None => Ok(false),
            }
        })
    }

    /// Reads what is forgotten again.
    fn tried<T>(
        &mut self,
        family: &mut Family,
        read: impl FnOnce(&mut Self, &mut Family) -> Result<T>,
    ) -> Result<T> {
        let mark = family.arrays.mark();
        family.arrays.try_out(true);
        let out = read(self, family);
        family.arrays.reset(mark);
        family.arrays.try_out(false);
        out
    }
}

fn set_tokens(row: &mut [i32], tokens: &[u32]) {
    for &token in tokens {
        row[token as usize >> 5] |= 1 << (token & 31);
    }
}
