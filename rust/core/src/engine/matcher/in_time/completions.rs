//! Completions of texts with arrays whose items are unique.
//!
//! The stacks know nothing of what an array has read, so their shortest completion may repeat an item: its
//! length is a lower bound. A depth-first search reads the text forwards and leaves out what this bound
//! excludes. It tries the shortest completion of the stacks first, which nearly always holds. Where it does not, it
//! tries few units: those that take the stacks nearer to their end, and then those that take them no further, as a
//! letter does that makes an item new. Only then it tries all units.
//! The fewest tokens are found by iterative deepening (Korf, 1985): the search is asked with one token more each time.

use crate::budget::{Halt, Interrupt, Meter};
use crate::ending::UNREACHABLE;
use crate::engine::Matcher;
use crate::engine::history::{Family, Stand};
use crate::engine::matcher::in_time::visits::Collect;
use crate::error::{Error, Result};
use crate::stacks::{NONE, SetId};
use crate::unique::Glance;
use crate::vocabulary::Trie;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Units that are tried before all others are looked for.
const FEW: usize = 64;
/// Places from which few units are tried, at most, until all are.
const MOST_TRIES: usize = 512;
/// A search goes so deep, at most, past the last text whose shortest completion was tried.
const MOST_DEPTH: usize = 256;

/// Units of work of reading a unit, besides those that the stacks take.
const READING: u64 = 32;

/// Tokens or bytes that are put in order for a unit of work.
const WAYS_A_UNIT: u64 = 16;

/// Nodes of a trie that are passed for a unit of work.
const NODES_A_UNIT: u64 = 8;

/// What completions are made of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Tokens,
    Bytes,
}

/// What is tried.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Effort {
    /// Few units, and no more than [`MOST_TRIES`] of them.
    Few,
    /// All.
    Full,
}

/// Tokens, or bytes, each behind the fewest of them that complete the stacks behind it, and with these.
type Ways = Rc<[(u32, u32, SetId)]>;

/// What follows behind an item of an array that equals none.
pub(super) enum BehindAny {
    /// A completion.
    Text(Vec<u8>),
    /// None that is short enough.
    Nothing,
    /// It is not known.
    Unclear,
}

/// A search for completions of the texts of one family.
pub(super) struct Completions<'m> {
    matcher: &'m Matcher,
    interrupt: &'m Interrupt,
    unit: Unit,
    /// For stacks, a bound and a number as many of the units behind which the stacks need no more than that.
    ways: FxHashMap<(SetId, u32, usize), Ways>,
    /// Places in arrays that cannot be completed with so many units.
    failed: FxHashSet<(SetId, Vec<u32>, u32, Effort)>,
    /// For stacks and a bound few of these units.
    few: FxHashMap<(SetId, u32), Ways>,
    tries: usize,
    meter: Meter,
}

impl<'m> Completions<'m> {
    pub(super) fn new(matcher: &'m Matcher, unit: Unit, interrupt: &'m Interrupt) -> Self {
        let mut meter = Meter::default();
        meter.allow(matcher.engine.limits.max_mask_work, interrupt);
        let (ways, few) = (FxHashMap::default(), FxHashMap::default());
        Self { matcher, interrupt, unit, ways, failed: FxHashSet::default(), few, tries: 0, meter }
    }

    /// Whether at most so many units complete a text.
    ///
    /// # Errors
    /// Those of a mask.
    pub(super) fn within(&mut self, family: &mut Family, stand: Stand, most: u32) -> Result<bool> {
        Ok(self.found(family, stand, most)?.is_some())
    }

    /// At most so many units that complete a text, if there are any; they are read while it is looked for.
    pub(super) fn completion(
        &mut self,
        family: &mut Family,
        stand: Stand,
        most: u32,
    ) -> Result<Option<Vec<u32>>> {
        self.tries = 0;
        let most = most.min(UNREACHABLE - 1);
        let mut units = Vec::new();
        for effort in [Effort::Few, Effort::Full] {
            if self.search(family, stand, (most, effort), 0, &mut units)? {
                units.reverse();
                return Ok(Some(units));
            }
        }
        Ok(None)
    }

    /// At most so many units that complete a text, if there are any.
    ///
    /// # Errors
    /// As for [`Self::within`].
    pub(super) fn found(
        &mut self,
        family: &mut Family,
        stand: Stand,
        most: u32,
    ) -> Result<Option<Vec<u32>>> {
        self.tried(family, |completions, family| completions.completion(family, stand, most))
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

    /// Looks for a completion, and adds its units, the last first.
    fn search(
        &mut self,
        family: &mut Family,
        stand: Stand,
        (most, effort): (u32, Effort),
        depth: usize,
        units: &mut Vec<u32>,
    ) -> Result<bool> {
        let Some(set) = family.set_of(stand) else { return Ok(false) };
        let least = self.least(family, set)?;
        if least > most {
            return Ok(false);
        }
        if self.runs(family, stand, set, units)? {
            return Ok(true);
        }
        if most == 0 {
            return Ok(false);
        }
        if depth == MOST_DEPTH {
            return if effort == Effort::Few { Ok(false) } else { Err(self.halted(Halt::Work)) };
        }
        let written = match stand {
            Stand::Array(id) => family.arrays.key(id),
            Stand::Stacks(_) | Stand::Chart(_) => Vec::new(),
        };
        self.meter.spend(written.len() as u64).map_err(|halt| self.halted(halt))?;
        let place = (set, written, most, effort);
        if self.failed.contains(&place) {
            return Ok(false);
        }
        for round in 0..2 {
            let ways = match effort {
                Effort::Few if self.tries > MOST_TRIES => break,
                // First units that take the stacks nearer to their end, then others that take them no further.
                Effort::Few => {
                    self.few(family, set, (least + round).saturating_sub(1).min(most - 1))?
                }
                Effort::Full => {
                    self.ways(family, set, most - 1, [FEW, usize::MAX][round as usize])?
                }
            };
            for &(_, unit, _) in &*ways {
                let Some(after) = self.advance(family, stand, unit)? else { continue };
                self.tries += 1;
                if self.search(family, after, (most - 1, effort), depth + 1, units)? {
                    units.push(unit);
                    return Ok(true);
                }
            }
            if effort == Effort::Full && ways.len() < FEW {
                break;
            }
        }
        self.failed.insert(place);
        Ok(false)
    }

    /// Few of the units behind which some stacks need no more than `most`: tokens of all classes, some of each.
    fn few(&mut self, family: &mut Family, set: SetId, most: u32) -> Result<Ways> {
        if let Some(known) = self.few.get(&(set, most)) {
            return Ok(known.clone());
        }
        let (matcher, interrupt) = (self.matcher, self.interrupt);
        let thinned = match self.unit {
            Unit::Tokens => matcher.engine.thinned(interrupt).map_err(|halt| self.halted(halt))?,
            Unit::Bytes => None,
        };
        let Some(thinned) = thinned else { return self.ways(family, set, most, FEW) };
        let mut found = self.collected(family, (&thinned.trie, set), most, FEW)?;
        found.sort_unstable();
        let some = |&(fewest, class, after): &(u32, u32, SetId)| {
            let tokens = thinned.some.get(class as usize).map_or(&[][..], |some| &some[..]);
            tokens.iter().map(move |&token| (fewest, token, after))
        };
        let ways: Ways = found.iter().flat_map(some).collect();
        self.meter.spend(1 + ways.len() as u64).map_err(|halt| self.halted(halt))?;
        self.few.insert((set, most), ways.clone());
        Ok(ways)
    }

    /// Whether a text whose stacks are those of a set goes on to its end as a shortest completion of these. Adds its
    /// units, the last first.
    fn runs(
        &mut self,
        family: &mut Family,
        stand: Stand,
        mut set: SetId,
        units: &mut Vec<u32>,
    ) -> Result<bool> {
        let (mut at, from) = (stand, units.len());
        while let Some((unit, after)) = self.nearest(family, set)? {
            let Some(next) = self.advance(family, at, unit)? else {
                units.truncate(from);
                return Ok(false);
            };
            units.push(unit);
            (at, set) = (next, after);
        }
        let ends = family.accepts(at);
        match ends {
            true => units[from..].reverse(),
            false => units.truncate(from),
        }
        Ok(ends)
    }

    fn advance(&mut self, family: &mut Family, stand: Stand, unit: u32) -> Result<Option<Stand>> {
        let (matcher, interrupt, in_bytes) =
            (self.matcher, self.interrupt, self.unit == Unit::Bytes);
        self.metered(family, |family| match in_bytes {
            false => matcher.advance_token(family, stand, unit, interrupt),
            true => {
                matcher.advance(family, stand, &[unit as u8], interrupt).map(|(after, _)| after)
            }
        })
    }

    /// Reads, with the work that is left.
    fn metered<T>(
        &mut self,
        family: &mut Family,
        read: impl FnOnce(&mut Family) -> std::result::Result<T, Halt>,
    ) -> Result<T> {
        let (matcher, interrupt) = (self.matcher, self.interrupt);
        self.meter.spend(READING).map_err(|halt| self.halted(halt))?;
        let limits = &matcher.engine.limits;
        let (work, before) = (limits.max_accept_work.min(self.meter.left()), family.work());
        family.allow(work, limits.max_matcher_bytes, interrupt);
        let read = read(family);
        let spent = family.work() - before;
        family.release();
        let read = read.map_err(|halt| match halt {
            Halt::Work => self.halted(halt),
            halt => matcher.halted(halt, interrupt),
        })?;
        self.meter.spend(spent).map_err(|halt| self.halted(halt))?;
        Ok(read)
    }

    /// The fewest units that complete some stacks, whatever their arrays have read.
    fn least(&self, family: &mut Family, set: SetId) -> Result<u32> {
        match self.unit {
            Unit::Tokens => self.matcher.fewest(family, set, self.interrupt),
            Unit::Bytes => self.matcher.fewest_bytes_of(family, set, self.interrupt),
        }
    }

    /// The first unit of a shortest completion of some stacks, always the same, and the stacks behind it; `None` at
    /// their end. All tokens of a class lead to the same stacks, so one of each is enough.
    fn nearest(&mut self, family: &mut Family, set: SetId) -> Result<Option<(u32, SetId)>> {
        let (matcher, in_bytes) = (self.matcher, self.unit == Unit::Bytes);
        let over = family.memo_is_over();
        let memo = family.take_memo(over);
        let known = memo.nearest(in_bytes, set);
        family.put_memo(memo);
        if known.is_some() {
            return Ok(known);
        }
        let most = match self.least(family, set)? {
            0 | UNREACHABLE.. => return Ok(None),
            least => least - 1,
        };
        let thinned = match self.unit {
            Unit::Tokens => {
                matcher.engine.thinned(self.interrupt).map_err(|halt| self.halted(halt))?
            }
            Unit::Bytes => None,
        };
        let found = match thinned {
            None => self.ways(family, set, most, FEW)?.first().map(|way| (way.1, way.2)),
            Some(thinned) => {
                let found = self.collected(family, (&thinned.trie, set), most, FEW)?;
                let nearest = found.into_iter().min();
                nearest.map(|(_, class, after)| (thinned.representatives[class as usize], after))
            }
        };
        if let Some(nearest) = found {
            let mut memo = family.take_memo(over);
            memo.keep_nearest(in_bytes, set, nearest);
            family.put_memo(memo);
        }
        Ok(found)
    }

    /// About `room` of the entries of a trie behind which some stacks need no more than `most`.
    fn collected(
        &mut self,
        family: &mut Family,
        (trie, set): (&Trie, SetId),
        most: u32,
        room: usize,
    ) -> Result<Vec<(u32, u32, SetId)>> {
        let mut found = Collect(Vec::new(), room);
        let (matcher, interrupt, before) = (self.matcher, self.interrupt, family.work());
        let nodes = matcher.walk_in_time((trie, family), (set, ()), most, &mut found, interrupt)?;
        let spent = 1 + family.work() - before + nodes / NODES_A_UNIT;
        self.meter.spend(spent).map_err(|halt| self.halted(halt))?;
        Ok(found.0)
    }

    /// About as many as asked for of the units behind which some stacks need no more than `most`, those with
    /// the fewest first; fewer where there are no more.
    fn ways(&mut self, family: &mut Family, set: SetId, most: u32, room: usize) -> Result<Ways> {
        if let Some(known) = self.ways.get(&(set, most, room)) {
            return Ok(known.clone());
        }
        let mut out = match self.unit {
            Unit::Tokens => {
                let trie = &self.matcher.engine.plain().trie;
                self.collected(family, (trie, set), most, room)?
            }
            Unit::Bytes => {
                let engine = &self.matcher.engine;
                let classes = family.next_classes(Stand::Stacks(set));
                let bytes = engine.bytes_of(&classes);
                let steps: Vec<(u32, SetId)> = self.metered(family, |family| {
                    let step = |&byte: &u8| {
                        let after = family.stepper.step(set, engine.class(byte))?;
                        Ok((u32::from(byte), after))
                    };
                    bytes.iter().map(step).collect()
                })?;
                let mut out = Vec::new();
                for (byte, after) in steps.into_iter().filter(|step| step.1 != NONE) {
                    let least = self.least(family, after)?;
                    out.extend((least <= most).then_some((least, byte, after)));
                }
                out
            }
        };
        out.sort_unstable();
        let units = 1 + out.len() as u64 / WAYS_A_UNIT;
        self.meter.spend(units).map_err(|halt| self.halted(halt))?;
        let out: Ways = out.into();
        self.ways.insert((set, most, room), out.clone());
        Ok(out)
    }

    fn halted(&self, halt: Halt) -> Error {
        self.matcher.engine.ending_halted(halt, self.interrupt)
    }

    /// Whether the shortest completion of the stacks behind a token stands, and behind all tokens that lead
    /// to these stacks and to this kind of place.
    pub(super) fn stands_for_all(
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
        let mut shortest = Vec::new();
        let mut end = after;
        while let Some((unit, next)) = self.nearest(family, end)? {
            shortest.push(unit);
            end = next;
        }
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
                Some(at) => completions.runs(family, at, after, &mut Vec::new()),
                None => Ok(false),
            }
        })
    }

    /// A completion of at most so many units behind a string that equals no item before and none that follows. The
    /// string is one to which a token leads.
    pub(super) fn behind_any(
        &mut self,
        family: &mut Family,
        (stand, token): (Stand, u32),
        most: u32,
    ) -> Result<BehindAny> {
        self.tried(family, |completions, family| {
            let at = match completions.advance(family, stand, token)? {
                Some(Stand::Array(id)) => family.arrays.any_apart(id),
                _ => Ok(None),
            };
            let Some(at) = at.map_err(|halt| completions.halted(halt))? else {
                return Ok(BehindAny::Unclear);
            };
            let Some(units) = completions.completion(family, Stand::Array(at), most)? else {
                return Ok(BehindAny::Nothing);
            };
            let vocabulary = &completions.matcher.engine.vocabulary;
            if !units.iter().all(|&unit| vocabulary.is_textual(unit)) {
                return Ok(BehindAny::Unclear);
            }
            let text = units.iter().flat_map(|&unit| vocabulary.bytes(unit)).copied();
            Ok(BehindAny::Text(text.collect()))
        })
    }

    /// Whether the text behind a token can be completed with at most so many more.
    pub(super) fn after(
        &mut self,
        family: &mut Family,
        stand: Stand,
        token: u32,
        most: u32,
    ) -> Result<bool> {
        self.tried(family, |completions, family| {
            match completions.advance(family, stand, token)? {
                Some(at) => Ok(completions.completion(family, at, most)?.is_some()),
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
