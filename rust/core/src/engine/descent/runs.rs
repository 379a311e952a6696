//! Subtrees of the trie that are read as a whole: what every byte below does to a set is known.
//!
//! In a loop it leaves the set as it is, however many there are. In a run (eight hexadecimal digits, a
//! name of at most twelve letters, written out) it leads to the next set, and from there to the one
//! after that; so all is read that is no longer than the run.

use super::Descent;
use crate::automata::alphabet::Alphabet;
use crate::budget::Halt;
use crate::stacks::{NONE, SetId};
use crate::vocabulary::{BETWEEN, BROKEN, UTF8_STATES, group, utf8_step};

/// Sets of a run that are looked at. What is longer is walked: few entries are.
const MAX_RUN: u32 = 12;

/// Nodes at which a run would have been of use, before one is looked for.
const MISSED: u32 = 16;

/// What a set reads, whatever stands below a node.
#[derive(Clone, Copy)]
pub(in crate::engine) struct Reads {
    /// Groups of bytes that leave it as it is, those of whole characters included.
    stays: u32,
    /// Groups of bytes that lead from set to set.
    runs: u32,
    /// For so many bytes they do, as far as was looked.
    steps: u32,
    /// The set after those; `None` where the run is known to end.
    tip: Option<SetId>,
    /// Nodes at which it was not looked for a run.
    missed: u32,
}

impl Descent {
    /// Whether a hot set reads all that is below a node: at most `left` bytes, of some groups.
    #[inline]
    pub(super) fn reads_all(
        &mut self,
        set: SetId,
        hot: u16,
        groups: u32,
        left: u32,
    ) -> Result<bool, Halt> {
        let mut reads = self.reads(set, hot)?;
        if groups & !reads.stays == 0 {
            return Ok(true);
        }
        if reads.missed < MISSED {
            reads.missed += 1;
            if reads.missed == MISSED {
                let (tip, runs) = self.lead(set)?;
                reads = Reads { runs, steps: u32::from(runs != 0), tip: Some(tip), ..reads };
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
        let stays = self.find_stays(set, hot)?;
        let reads = Reads { stays, runs: 0, steps: 0, tip: None, missed: 0 };
        self.hot.set_reads(hot, reads);
        Ok(reads)
    }

    /// The groups of bytes that leave a hot set as it is, those of whole characters included.
    pub(super) fn stays(&mut self, set: SetId, hot: u16) -> Result<u32, Halt> {
        Ok(self.reads(set, hot)?.stays)
    }

    fn find_stays(&mut self, set: SetId, hot: u16) -> Result<u32, Halt> {
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let text = group(u8::MAX);
        let mut leaves = 0;
        for byte in 0..=255u8 {
            if leaves & group(byte) == 0 && self.step(set, hot, alphabet.class(byte))? != set {
                leaves |= group(byte);
            }
        }
        if leaves & text != 0 && self.reads_characters(set, hot, alphabet)? {
            // Whole characters leave it as it is, other bytes do not.
            leaves = leaves & !text | BROKEN;
        }
        Ok(!leaves)
    }

    /// The set to which most groups of bytes lead, and those that do; bytes past ASCII do not count.
    fn lead(&mut self, set: SetId) -> Result<(SetId, u32), Halt> {
        if let Some(&known) = self.leads.get(&set) {
            return Ok(known);
        }
        let network = self.network.clone();
        let alphabet = network.alphabet();
        // For each group where its bytes lead, if to one set.
        let mut leads = [None; 32];
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
            led.fold(0, |groups, (place, _)| groups | 1u32 << place)
        };
        let targets = leads.iter().flatten().filter(|&&to| to != NONE);
        let most = targets.copied().max_by_key(|&to| (of(to).count_ones(), to));
        let found = most.map_or((NONE, 0), |to| (to, of(to)));
        self.leads.insert(set, found);
        Ok(found)
    }

    /// Whether every character past ASCII can be read from a set, and leaves it as it is.
    fn reads_characters(
        &mut self,
        set: SetId,
        hot: u16,
        alphabet: &Alphabet,
    ) -> Result<bool, Halt> {
        let mut sets = [NONE; UTF8_STATES as usize];
        sets[BETWEEN as usize] = set;
        let mut work = vec![BETWEEN];
        while let Some(state) = work.pop() {
            let before = sets[state as usize];
            for byte in 128..=255u8 {
                let Some(next) = utf8_step(state, byte) else { continue };
                let class = alphabet.class(byte);
                let after = match state {
                    BETWEEN => self.step(set, hot, class)?,
                    _ => self.stepper.step(before, class)?,
                };
                let known = &mut sets[next as usize];
                if *known == NONE && after != NONE {
                    *known = after;
                    work.push(next);
                }
                if *known != after || after == NONE {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
