//! Masks made of answers that are there, for one matcher or many.

use super::memo::Memo;
use super::walker::{WalkCounters, Walker};
use super::way::{Room, View};
use parking_lot::RwLockReadGuard;

/// Answers of a mask that is made while others wait for it.
const FEW: u64 = 16;
/// Answers of a mask that is made under one guard, in a millisecond or two where each is a row. One of
/// more lets others in between, and looks at the interrupt.
const SOME: u64 = 2_048;

/// Answers that are there. What masks cost is counted when it goes, so that threads do not meet at
/// the counters for each mask.
pub(crate) struct Reading<'a> {
    walker: &'a Walker,
    memo: RwLockReadGuard<'a, Memo>,
    counted: WalkCounters,
    room: Room,
    /// Answers that a mask may be made of.
    most: u64,
}

impl Reading<'_> {
    /// As [`Walker::mask`] where every answer is there, over whatever the bits were before, with what
    /// it cost; else `None`, and the bits are to be thrown away.
    pub(crate) fn mask(&mut self, view: View<'_>, bits: &mut [i32]) -> Option<WalkCounters> {
        let Self { walker, memo, room, most, .. } = self;
        let mut counters = WalkCounters { masks: 1, ..WalkCounters::default() };
        let mut is_blank = false;
        let (network, trie) = (&walker.network, &walker.trie);
        let walked: Result<(), ()> = view.walk(network, trie, room, |question, pending| {
            counters.visits += 1;
            let answer = memo.get(walker.like(question), pending).ok_or(())?;
            counters.hits += 1;
            if counters.hits > *most {
                return Err(());
            }
            // A row that comes first is written over what was there: most masks are one row.
            match std::mem::replace(&mut is_blank, true) {
                true => memo.add(answer, bits),
                false => memo.write(answer, bits),
            }
            Ok(answer.pending)
        });
        if !is_blank {
            bits.fill(0);
        }
        walked.ok().map(|()| counters)
    }

    /// Takes note of a mask that was used.
    pub(crate) fn count(&mut self, mask: &WalkCounters) {
        self.counted.masks += mask.masks;
        self.counted.visits += mask.visits;
        self.counted.hits += mask.hits;
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        self.walker.counts.add(&self.counted);
    }
}

impl Walker {
    /// The answers that are there, for one mask or many: meanwhile none is added.
    pub(crate) fn reading(&self) -> Reading<'_> {
        self.reading_of(self.memo.read(), SOME)
    }

    /// The same, for masks of few answers, and only while nobody adds one.
    pub(crate) fn reading_now(&self) -> Option<Reading<'_>> {
        Some(self.reading_of(self.memo.try_read()?, FEW))
    }

    fn reading_of<'a>(&'a self, memo: RwLockReadGuard<'a, Memo>, most: u64) -> Reading<'a> {
        let (counted, room) = (WalkCounters::default(), Room::default());
        Reading { walker: self, memo, counted, room, most }
    }
}
