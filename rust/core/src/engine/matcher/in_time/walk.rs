//! A walk over a trie along the stacks of a text, with what each entry leaves to be done.

use super::answers::without_answers;
use crate::budget::{Halt, Interrupt, Meter};
use crate::ending::{Over, Stacks, class_of};
use crate::engine::Engine;
use crate::engine::history::Family;
use crate::engine::mask::memo::set_bits;
use crate::stacks::{NONE, SetId, Stepper};
use crate::vocabulary::Trie;
use std::sync::Arc;

/// Trie nodes between two looks at the interrupt, less one.
const CHECK_MASK: u32 = 255;

/// What is done at the entries of a trie behind which a text can be completed in time.
pub(super) trait VisitInTime {
    /// What is known of a node beside its stacks.
    type Place: Clone;

    /// Where a byte leads from a node.
    fn step(&mut self, from: &Self::Place, byte: u8) -> Self::Place;

    /// Where a token that is taken whole leads.
    fn whole(&mut self, start: &Self::Place) -> Self::Place;

    /// Entries, with the stacks behind them and the fewest tokens that complete these; false where no
    /// more are wanted.
    fn found(&mut self, place: &Self::Place, entries: &[u32], after: SetId, fewest: u32) -> bool;
}

/// Sets the bits of the entries.
pub(super) struct EntryBits<'b>(pub(super) &'b mut [i32]);

impl VisitInTime for EntryBits<'_> {
    type Place = ();

    #[inline]
    fn step(&mut self, (): &(), _byte: u8) {}

    fn whole(&mut self, (): &()) {}

    #[inline]
    fn found(&mut self, (): &(), entries: &[u32], _after: SetId, _fewest: u32) -> bool {
        set_bits(self.0, entries);
        true
    }
}

impl Engine {
    /// Writes which entries of a trie leave the text to be ended with `most` more tokens.
    pub(super) fn entries_in_time(
        &self,
        (trie, over): (&Arc<Trie>, Over),
        family: &mut Family,
        set: SetId,
        most: u32,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> std::result::Result<(), Halt> {
        bits.fill(0);
        // Of states that are sets, and of those that count tokens, it matters where a token began.
        if !family.counts_tokens && !family.network().has_sets() {
            let answered = self.answers_in_time((trie, over), family, (set, most), interrupt, bits);
            match answered {
                Ok(()) => return Ok(()),
                Err(stop) => without_answers(stop)?,
            }
            bits.fill(0);
        }
        let (visit, trie) = (&mut EntryBits(bits), (&**trie, 0));
        self.visit_in_time((trie, over), family, (set, ()), most, visit, interrupt).map(|_| ())
    }

    /// Visits the entries of a trie below a node, from which the stacks go on, behind which these can be completed with
    /// `most` more tokens; below the root of a trie those of tokens that are taken whole too. Returns the units of work: nodes passed, and what ends were asked for.
    pub(super) fn visit_in_time<V: VisitInTime>(
        &self,
        ((trie, root), over): ((&Trie, u32), Over),
        family: &mut Family,
        (set, start): (SetId, V::Place),
        most: u32,
        visit: &mut V,
        interrupt: &Interrupt,
    ) -> std::result::Result<u64, Halt> {
        let ending = self.ending(over, interrupt)?;
        let mut meter = Meter::default();
        meter.allow(self.ending_work(), interrupt);
        let mut asking = ending.ask(self.limits.max_memo_bytes, interrupt)?;
        let mut memo = family.take_memo(over);
        let network = family.network().clone();
        let counts_tokens = family.counts_tokens;
        let stepper = &mut family.stepper;
        let step = |stepper: &mut Stepper<_>, before, node| {
            stepper.step(before, class_of(&self.network, trie, node))
        };
        let mut walk = || {
            let mut path = vec![(trie.end(root), set, start.clone())];
            let (mut node, mut is_whole) = (root + 1, false);
            let nodes = if root == 0 { trie.len() as u32 } else { trie.end(root) };
            while node < nodes {
                if trie.ids() == Some(node) {
                    path = vec![(trie.end(node), set, visit.whole(&start))];
                    node += 1;
                    is_whole = true;
                    continue;
                }
                while path[path.len() - 1].0 <= node {
                    path.pop();
                }
                if node & CHECK_MASK == 0 {
                    interrupt.check()?;
                }
                meter.spend(1)?;
                let end = trie.end(node);
                let (_, before, from) = &path[path.len() - 1];
                let mut after = step(stepper, *before, node)?;
                if after == NONE {
                    node = end;
                    continue;
                }
                if counts_tokens && path.len() == 1 && !is_whole {
                    after = stepper.after_first(after)?;
                }
                let place = match is_whole {
                    true => from.clone(),
                    false => visit.step(from, trie.byte(node)),
                };
                let entries = trie.numbers(node);
                if !entries.is_empty() {
                    let ended = match counts_tokens {
                        true => stepper.after_token(after)?,
                        false => after,
                    };
                    let stacks = Stacks { network: &network, sets: &stepper.sets };
                    let fewest = asking.fewest(stacks, &mut memo, ended, &mut meter)?;
                    if fewest <= most && !visit.found(&place, entries, ended, fewest) {
                        break;
                    }
                }
                path.push((end, after, place));
                node += 1;
            }
            Ok(())
        };
        let walked = walk();
        family.put_memo(memo);
        walked.map(|()| meter.spent())
    }
}
