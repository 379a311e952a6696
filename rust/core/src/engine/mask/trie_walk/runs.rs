//! Subtrees of the trie that are read as a whole: what every byte below does to a set is known.
//!
//! In a loop it leaves the set as it is, however many there are; or one of its entries, whatever becomes
//! of the others: a name goes on beside the keyword that it began like. In a run (eight hexadecimal
//! digits, a name of at most twelve letters, written out) it leads to the next set, and from there to
//! the one after that; so all is read that is no longer than the run. Where bytes lead to several sets, as in a text in
//! which a word is looked for or may not stand (`"pattern": "github"`), all is read that is no longer than the shortest
//! way to where one of them ends; there may be none.

use super::Descent;
use crate::budget::Halt;
use crate::engine::mask::transition_cache::{MAX_KEPT, Reads};
use crate::stacks::{Entry, LABEL, NONE, SetId};
use crate::vocabulary::{BROKEN, Groups, NUM_GROUPS, TEXT, each_of, group, reads_characters};
use rustc_hash::FxHashMap;

/// Sets of a run that are looked at. What is longer is walked: few entries are.
const MAX_RUN: u32 = 12;

/// Nodes at which a run would have been of use, before one is looked for.
const MISSED: u32 = 16;

/// Misses of a set before the walk looks at all sets that it leads to, which takes about as long as so many nodes.
const MISSED_LONG: u32 = if cfg!(test) { 20 } else { 1_024 };

/// Such searches in vain, less those with success, after which there are no more for a while.
const MOST_IN_VAIN: u32 = 12;

/// Trie nodes after which one search in vain is forgotten: as many as take some ten times as long as a search. Else
/// what was searched in vain in one text would slow down all texts after it.
const NODES_OF_SEARCH: u64 = if cfg!(test) { 1 << 8 } else { 1 << 19 };

/// A search that finds fewer bytes than this is in vain: it spares hardly any nodes.
const LEAST_FAR: u32 = 3;

/// The most sets that one search looks at.
const MAX_WIDE: usize = 32;

/// Entries of a set that are looked at one by one.
const MAX_ENTRIES: usize = 16;
impl Descent {
    /// Whether a hot set reads all that is below a node: at most `left` bytes, of some groups.
    #[inline]
    pub(super) fn reads_all(
        &mut self,
        set: SetId,
        hot: u16,
        groups: Groups,
        left: u32,
    ) -> Result<bool, Halt> {
        let mut reads = self.reads(set, hot)?;
        if groups & !reads.stays == 0 || groups & !reads.wide == 0 && left <= reads.far {
            return Ok(true);
        }
        let kept = match reads.kept {
            Some(kept) => kept,
            None => {
                let kept = self.kept_entries(set)?;
                reads.kept = Some(kept);
                self.hot.set_reads(hot, reads);
                kept
            }
        };
        if kept.iter().any(|kept| groups & !kept == 0) {
            return Ok(true);
        }
        if reads.missed < MISSED_LONG {
            reads.missed += 1;
            if reads.missed == MISSED {
                let (tip, runs) = self.lead(set)?;
                reads = Reads { runs, steps: u32::from(runs != 0), tip: Some(tip), ..reads };
            }
            if reads.missed == MISSED_LONG && self.in_vain < MOST_IN_VAIN {
                (reads.wide, reads.far) = self.find_wide(set)?;
                let is_of_use = reads.far >= LEAST_FAR && reads.wide & !reads.stays != 0;
                self.in_vain = match is_of_use {
                    true => self.in_vain.saturating_sub(1),
                    false => self.in_vain + 1,
                };
            }
            self.hot.set_reads(hot, reads);
        }
        if groups & !reads.runs != 0 || left > MAX_RUN {
            return Ok(false);
        }
        if left <= reads.steps || reads.tip.is_none() {
            return Ok(left <= reads.steps);
        }
        self.runs_on(hot, reads, left)
    }

    /// Forgets searches in vain where much was walked since they were made.
    pub(super) fn forget_searches(&mut self) {
        let forgotten = self.since_vain / NODES_OF_SEARCH;
        self.since_vain %= NODES_OF_SEARCH;
        self.in_vain = self.in_vain.saturating_sub(forgotten.min(u64::from(u32::MAX)) as u32);
    }

    /// Looks further along a run.
    fn runs_on(&mut self, hot: u16, mut reads: Reads, left: u32) -> Result<bool, Halt> {
        while let Some(tip) = reads.tip.filter(|_| reads.steps < left) {
            let (next, more) = self.lead(tip)?;
            if reads.runs & !more == 0 {
                reads.steps += 1;
                reads.tip = Some(next);
            } else {
                reads.tip = None;
            }
        }
        self.hot.set_reads(hot, reads);
        Ok(left <= reads.steps)
    }

    fn reads(&mut self, set: SetId, hot: u16) -> Result<Reads, Halt> {
        if let Some(known) = self.hot.reads(hot) {
            return Ok(known);
        }
        let stays = self.find_loop(set, |descent, class| descent.step(set, hot, class), None)?;
        let reads = Reads { stays, ..Reads::default() };
        self.hot.set_reads(hot, reads);
        Ok(reads)
    }

    /// The groups of bytes that leave a hot set as it is, those of whole characters included.
    pub(super) fn stays(&mut self, set: SetId, hot: u16) -> Result<Groups, Halt> {
        Ok(self.reads(set, hot)?.stays)
    }

    /// Groups of bytes under which single entries of a set stay, those that say most.
    fn kept_entries(&mut self, set: SetId) -> Result<[Groups; MAX_KEPT], Halt> {
        let mut found: Vec<Groups> = Vec::new();
        for entry in self.stepper.sets.some_entries(set, MAX_ENTRIES) {
            let kept = self.kept(entry)?;
            if found.iter().all(|known| kept & !known != 0) {
                found.retain(|known| known & !kept != 0);
                found.push(kept);
            }
        }
        found.sort_unstable_by_key(|kept| std::cmp::Reverse(kept.count_ones()));
        let mut out = [0; MAX_KEPT];
        out.iter_mut().zip(found).for_each(|(out, kept)| *out = kept);
        Ok(out)
    }

    /// Groups of bytes that lead from an entry back to it, those of whole characters included.
    fn kept(&mut self, entry: Entry) -> Result<Groups, Halt> {
        if entry.0 >= LABEL {
            return Ok(0);
        }
        if let Some(&known) = self.kept.get(&entry) {
            return Ok(known);
        }
        let alone = self.stepper.sets.add(&[entry])?;
        let step = |descent: &mut Self, class| descent.stepper.step(alone, class);
        let kept = self.find_loop(alone, step, Some(entry))?;
        self.kept.insert(entry, kept);
        Ok(kept)
    }

    /// Groups of bytes that lead from a set back to it, or to one that covers an entry.
    fn find_loop(
        &mut self,
        set: SetId,
        mut step: impl FnMut(&mut Self, u8) -> Result<SetId, Halt>,
        entry: Option<Entry>,
    ) -> Result<Groups, Halt> {
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut leaves = 0;
        for byte in 0..=255u8 {
            // If one byte past ASCII does not lead back, each group of characters is checked below as a whole: the
            // first bytes of a group may lead back while the bytes behind them do not.
            let bit = if byte < 0x80 { group(byte) } else { TEXT | BROKEN };
            if leaves & bit == 0 {
                let after = step(self, alphabet.class(byte))?;
                if !self.is_back(set, entry, after) {
                    leaves |= bit;
                }
            }
        }
        // Whole characters may lead back where single bytes do not.
        let mut reads = |groups: Groups| {
            let read = |before: SetId, class, ends: bool| {
                let after = match before == set {
                    true => step(self, class)?,
                    false => self.stepper.step(before, class)?,
                };
                let leads_on = after != NONE && (!ends || self.is_back(set, entry, after));
                Ok(leads_on.then_some(after))
            };
            reads_characters((set, groups), |byte| alphabet.class(byte), read)
        };
        let text = leaves & TEXT;
        if text != 0 && reads(text)? {
            return Ok(!(leaves & !text));
        }
        for bit in each_of(text) {
            if reads(bit)? {
                leaves &= !bit;
            }
        }
        Ok(!leaves)
    }

    /// Groups of bytes, those of whole characters included, and how many such bytes a set reads whatever they are: the
    /// search is breadth first, and ends where one of them leads nowhere.
    fn find_wide(&mut self, set: SetId) -> Result<(Groups, u32), Halt> {
        let mut known = FxHashMap::default();
        let all = self.read_by(set, &mut known)?;
        if all == 0 {
            return Ok((0, 0));
        }
        // What leads to a set that reads less than half of it is left out, as a quotation mark and a backslash.
        let mut groups = all;
        for (byte, after) in (0u8..).zip(self.steps_by_ascii(set)?) {
            if all & group(byte) != 0
                && 2 * (all & self.read_by(after, &mut known)?).count_ones() < all.count_ones()
            {
                groups &= !group(byte);
            }
        }
        let has_rest = self.stepper.sets.has_rest(set);
        let mut met = vec![set];
        let (mut done, mut bytes) = (0, 0);
        loop {
            let level = met.len();
            while done < level {
                if !self.leads_on(met[done], groups, &mut met)? || met.len() > MAX_WIDE {
                    return Ok((groups, bytes));
                }
                done += 1;
            }
            // Whether the frame is popped on the way matters where it is not at the start.
            if !has_rest && met[level..].iter().any(|&set| self.stepper.sets.has_rest(set)) {
                return Ok((groups, bytes));
            }
            if met.len() == level {
                return Ok((groups, u32::MAX));
            }
            bytes += 1;
        }
    }

    /// Whether all bytes of some groups lead on from a set; where they lead to is added.
    fn leads_on(
        &mut self,
        from: SetId,
        groups: Groups,
        met: &mut Vec<SetId>,
    ) -> Result<bool, Halt> {
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let steps = self.steps_by_ascii(from)?;
        let mut add = |after: SetId| {
            if after != NONE && !met.contains(&after) {
                met.push(after);
            }
            after != NONE
        };
        for (byte, after) in (0u8..).zip(steps) {
            if groups & group(byte) != 0 && !add(after) {
                return Ok(false);
            }
        }
        if groups & TEXT == 0 {
            return Ok(true);
        }
        let read = |before: SetId, class, ends: bool| {
            let after = self.stepper.step(before, class)?;
            let leads_on = if ends { add(after) } else { after != NONE };
            Ok(leads_on.then_some(after))
        };
        reads_characters((from, groups), |byte| alphabet.class(byte), read)
    }

    /// Where each byte of ASCII leads from a set.
    fn steps_by_ascii(&mut self, set: SetId) -> Result<[SetId; 128], Halt> {
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut by_class = [None; 256];
        let mut steps = [NONE; 128];
        for (byte, step) in (0u8..).zip(&mut steps) {
            let class = alphabet.class(byte);
            let known = &mut by_class[usize::from(class)];
            *step = match *known {
                Some(known) => known,
                None => *known.insert(self.stepper.step(set, class)?),
            };
        }
        Ok(steps)
    }

    /// The groups of which every byte leads on from a set, and every whole character.
    fn read_by(
        &mut self,
        set: SetId,
        known: &mut FxHashMap<SetId, Groups>,
    ) -> Result<Groups, Halt> {
        if let Some(&groups) = known.get(&set) {
            return Ok(groups);
        }
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut groups = !BROKEN;
        for (byte, after) in (0u8..).zip(self.steps_by_ascii(set)?) {
            if after == NONE {
                groups &= !group(byte);
            }
        }
        for bit in each_of(TEXT) {
            let read = |before: SetId, class, _| {
                let after = self.stepper.step(before, class)?;
                Ok((after != NONE).then_some(after))
            };
            if !reads_characters((set, bit), |byte| alphabet.class(byte), read)? {
                groups &= !bit;
            }
        }
        known.insert(set, groups);
        Ok(groups)
    }

    /// Whether a set is the one that a loop began with, or covers the entry that it began with.
    fn is_back(&self, set: SetId, entry: Option<Entry>, after: SetId) -> bool {
        match entry {
            Some(entry) => self.stepper.sets.covers(after, entry),
            None => after == set,
        }
    }

    /// The set to which most groups of bytes lead, and those that do; bytes past ASCII do not count.
    fn lead(&mut self, set: SetId) -> Result<(SetId, Groups), Halt> {
        if let Some(&known) = self.leads.get(&set) {
            return Ok(known);
        }
        let network = self.network.clone();
        let alphabet = network.alphabet();
        // For each group where its bytes lead, if to one set.
        let mut leads = [None; NUM_GROUPS];
        for byte in 0..128u8 {
            let lead = &mut leads[group(byte).trailing_zeros() as usize];
            if *lead == Some(NONE) {
                continue;
            }
            let to = self.stepper.step(set, alphabet.class(byte))?;
            if *lead.get_or_insert(to) != to {
                *lead = Some(NONE);
            }
        }
        let of = |to: SetId| {
            let led = leads.iter().enumerate().filter(|(_, lead)| **lead == Some(to));
            led.fold(0, |groups: Groups, (place, _)| groups | 1 << place)
        };
        let targets = leads.iter().flatten().filter(|&&to| to != NONE);
        let most = targets.copied().max_by_key(|&to| (of(to).count_ones(), to));
        let found = most.map_or((NONE, 0), |to| (to, of(to)));
        self.leads.insert(set, found);
        Ok(found)
    }
}
