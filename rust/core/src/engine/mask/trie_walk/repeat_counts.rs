//! What a counted repetition does with the trie, for all numbers of passes at once.
//!
//! A string of at most 96 characters does something else after each of them: near a bound no two
//! counts have the same answer. But they differ by a number only. One walk with a state that may
//! stop after any pass says how many passes each entry takes within the repetition, and after how
//! many it is left; the answer for a count is read off that.
//!
//! It takes a repetition in which a node of the trie tells how many passes are done: characters, and
//! all else that is read in one way. Others are walked for each count.

use super::{CHECK_MASK, COLD, Descent, NODES_OF_WORK, Stop, WalkBounds};
use crate::budget::Halt;
use crate::engine::mask::memo::set_bits;
use crate::engine::mask::pool::{AcceptedEntries, PooledAnswer};
use crate::stacks::{Entry, NONE, REST, SetId};
use crate::vocabulary::{Groups, TEXT, Trie, reads_characters};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;

/// No number of passes.
const NEVER: u8 = 127;
/// The most passes that stand in a byte: its highest bit is needed to compare eight at once.
const MOST: u8 = NEVER - 1;
/// Tallies that are kept at most.
const MAX_TALLIES: usize = 64;

/// How many passes entries of the trie take.
pub(super) struct Tally {
    /// For the number of each entry the passes that it begins, if it does not leave the repetition.
    within: Vec<u8>,
    /// Those that are more than fit there.
    many: Vec<(u32, u32)>,
    /// Entries that leave the repetition after so many passes.
    left: Vec<(u32, Range<u32>)>,
    /// Nodes at which the frame beneath has been popped, if it was left after so many passes.
    popped: Vec<(u32, u32)>,
}

impl Tally {
    /// Of no entry so far, with rows of so many words.
    fn new(words: usize) -> Self {
        Self { within: vec![NEVER; words * 32], many: vec![], left: vec![], popped: vec![] }
    }

    fn bytes(&self) -> usize {
        self.within.capacity()
            + self.many.capacity() * 8
            + self.left.capacity() * 12
            + self.popped.capacity() * 8
    }

    fn put(&mut self, number: u32, passes: u32) {
        match u8::try_from(passes) {
            Ok(passes) if passes <= MOST => self.within[number as usize] = passes,
            _ => self.many.push((number, passes)),
        }
    }

    /// Puts down entries that take a pass for each character past the first ones, after so many passes;
    /// false where one has more than can be told.
    fn put_all(&mut self, entries: Range<u32>, passes: u32, characters: u32, trie: &Trie) -> bool {
        let lengths = trie.characters_of(entries.clone());
        for (&number, &length) in trie.numbers_of(entries).iter().zip(lengths) {
            if length == u8::MAX {
                return false;
            }
            self.put(number, passes + u32::from(length) - characters);
        }
        true
    }

    /// The answer where so many passes are needed and allowed.
    fn answer(&self, needed: u32, allowed: u32, trie: &Trie) -> PooledAnswer {
        let mut row = at_most(&self.within, allowed.min(u32::from(MOST)) as u8);
        for &(number, passes) in &self.many {
            if passes <= allowed {
                set_bits(&mut row, &[number]);
            }
        }
        let is_time = |passes: u32| needed <= passes && passes <= allowed;
        for (passes, entries) in &self.left {
            if is_time(*passes) {
                set_bits(&mut row, trie.numbers_of(entries.clone()));
            }
        }
        let popped = self.popped.iter().filter(|(passes, _)| is_time(*passes));
        let mut popped: Vec<u32> = popped.map(|&(_, node)| node).collect();
        popped.sort_unstable();
        PooledAnswer { accepted: AcceptedEntries::Row(row.into()), popped: popped.into() }
    }
}

/// A bit for each that is at most `most`, which is less than [`NEVER`].
fn at_most(within: &[u8], most: u8) -> Vec<i32> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = ONES << 7;
    let most = (u64::from(most) * ONES) | HIGH;
    let eight = |eight: &[u8]| {
        let passes = eight.iter().rev().fold(0, |word, &passes| word << 8 | u64::from(passes));
        // The highest bit of each byte stays where nothing more than `most` is taken away; then
        // those bits are moved together.
        let fits = ((most - passes) & HIGH) >> 7;
        (fits.wrapping_mul(0x0102_0408_1020_4080) >> 56) as i32
    };
    let words = within.chunks_exact(32);
    words.map(|word| word.chunks_exact(8).rev().fold(0, |out, e| out << 8 | eight(e))).collect()
}

/// Where a walk stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PassPhase {
    /// Before the first pass, or after a pass.
    Between,
    /// In a pass.
    Pass,
    /// Behind the repetition.
    Behind,
}

/// A node on the path: past its last node, the stacks there, their table, where it stands, the
/// passes that were begun, the characters that were begun.
type TallyStep = (u32, SetId, u16, PassPhase, u32, u32);

impl Descent {
    /// The answer to a question about a state that counts, with the frame beneath; `None` where its
    /// passes cannot be told.
    pub(in crate::engine) fn by_passes(
        &mut self,
        frame: u32,
        under: u32,
        words: usize,
        bounds: WalkBounds<'_>,
    ) -> Result<Option<PooledAnswer>, Stop> {
        let network = self.network.clone();
        let Some((free, counts)) = network.free(frame).filter(|_| self.is_whole) else {
            return Ok(None);
        };
        let (body, needed, allowed, _) = network.counting(frame);
        if !self.tallies.contains_key(&(body, under)) {
            // One that does not count is asked about as any other, until it can be read off.
            if !counts {
                return Ok(None);
            }
            let made = self.tally(free, under, words, bounds)?;
            if self.tallies.len() >= MAX_TALLIES {
                self.tallies.clear();
            }
            self.tallies.insert((body, under), made);
        }
        let tally = self.tallies.get(&(body, under)).and_then(Option::as_ref);
        let allowed = allowed.unwrap_or(u32::MAX);
        Ok(tally.map(|tally| tally.answer(needed, allowed, &self.trie)))
    }

    /// Bytes of the tallies.
    pub(super) fn tally_bytes(&self) -> usize {
        self.tallies.values().flatten().map(Tally::bytes).sum()
    }

    /// Walks the trie with a state that may stop after any pass.
    fn tally(
        &mut self,
        free: u32,
        under: u32,
        words: usize,
        bounds: WalkBounds<'_>,
    ) -> Result<Option<Tally>, Stop> {
        if self.network.is_final(under) {
            return Ok(None); // Nearly every node would be pending beneath.
        }
        self.allow(bounds);
        let (start, mut passing) = self.before_passes(free, under)?;
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut out = Tally::new(words);
        let mut path: Vec<TallyStep> = vec![(trie.end(0), start, COLD, PassPhase::Between, 0, 0)];
        let mut entered = 0u64;
        let mut node = 1;
        while node < trie.end(0) {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            let (_, before, hot, at, passes, characters) = path[path.len() - 1];
            let end = trie.end(node);
            entered += 1;
            if entered & CHECK_MASK == 0 {
                bounds.interrupt.check()?;
            }
            let byte = trie.byte(node);
            let mut set = self.step(before, hot, alphabet.class(byte))?;
            if set == NONE {
                node = end;
                continue;
            }
            let Some((at, passes)) = passing.step(self, (at, passes), set)? else {
                return Ok(None);
            };
            let characters = characters + u32::from(starts_character(byte));
            match at {
                PassPhase::Behind => out.left.push((passes, trie.entries_of(node..node + 1))),
                _ => trie.numbers(node).iter().for_each(|&number| out.put(number, passes)),
            }
            if end == node + 1 {
                node = end;
                continue;
            }
            if at == PassPhase::Behind {
                let depth = path.len() as u32;
                set = self.uncounted(set, trie.longest_below(node).saturating_sub(depth))?;
            }
            let hot = self.hot.meet(set, alphabet.len());
            if hot != COLD
                && at != PassPhase::Pass
                && self.stays_counted((set, hot), at, trie.groups_below(node), &mut passing)?
            {
                let entries = trie.entries_of(node + 1..end);
                match at {
                    PassPhase::Behind => out.left.push((passes, entries)),
                    _ if out.put_all(entries, passes, characters, &trie) => {}
                    _ => return Ok(None),
                }
                node = end;
                continue;
            }
            if at == PassPhase::Behind && self.stepper.sets.has_rest(set) {
                out.popped.push((passes, node));
            }
            if set == REST {
                node = end;
                continue;
            }
            path.push((end, set, hot, at, passes, characters));
            node += 1;
        }
        out.left.retain(|(_, entries)| !entries.is_empty());
        self.work += entered / NODES_OF_WORK;
        self.trie_nodes += entered;
        Ok(Some(out))
    }

    /// The stack before a pass, and what tells whether stacks stand in one.
    fn before_passes(&mut self, free: u32, under: u32) -> Result<(SetId, InPass), Halt> {
        let sets = &mut self.stepper.sets;
        let beneath = sets.add(&[(under, REST)])?;
        let before = sets.add(&[(free, beneath)])?;
        let after = sets.union(before, beneath)?;
        let (start, known) = ((free, beneath), FxHashMap::default());
        Ok((before, InPass { start, after, known, reads_characters: None }))
    }

    /// Whether a hot set stays as it is under some groups of bytes, each character a pass where passes begin.
    fn stays_counted(
        &mut self,
        (set, hot): (SetId, u16),
        at: PassPhase,
        groups: Groups,
        passing: &mut InPass,
    ) -> Result<bool, Halt> {
        let mut stays = self.stays(set, hot)?;
        let text = stays & TEXT;
        if at == PassPhase::Between && text != 0 && !passing.reads_characters(self, text)? {
            stays &= !TEXT;
        }
        Ok(groups & !stays == 0)
    }

    /// Whether each character past ASCII of some groups is a pass between passes. It is in whatever
    /// grammar text can say; an automaton in a macro's place might read half of one.
    fn passes_are_characters(
        &mut self,
        passing: &mut InPass,
        groups: Groups,
    ) -> Result<bool, Halt> {
        let after = passing.after;
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let class = |byte| alphabet.class(byte);
        reads_characters((after, groups), class, |before, class, ends| {
            let set = self.stepper.step(before, class)?;
            let is_right = match ends {
                true => set == after,
                false => set != after && passing.is(self, set)?,
            };
            Ok(is_right.then_some(set))
        })
    }
}

/// Whether a byte is the first of a character.
fn starts_character(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

/// Which sets of stacks stand in a pass.
struct InPass {
    /// The stack before a pass.
    start: Entry,
    /// The stacks after a pass.
    after: SetId,
    /// For each set whether some of its stacks stand above those, and whether others do not.
    known: FxHashMap<SetId, (bool, bool)>,
    /// Whether each character past ASCII is a pass, once that was asked for.
    reads_characters: Option<(Groups, bool)>,
}

impl InPass {
    /// Whether all stacks of a set stand above those after a pass.
    fn is(&mut self, descent: &mut Descent, set: SetId) -> Result<bool, Halt> {
        let found = match self.known.get(&set) {
            Some(&found) => found,
            None => {
                let found = self.look(descent, set);
                self.known.insert(set, found);
                found
            }
        };
        Ok(found == (true, false))
    }

    /// Whether none does, of a set that was asked about.
    fn never(&self, set: SetId) -> bool {
        self.known.get(&set) == Some(&(false, true))
    }

    /// Where a walk stands that led to a set, and the passes that were begun; `None` where it is read in
    /// several ways, which differ in their passes.
    #[inline]
    fn step(
        &mut self,
        descent: &mut Descent,
        (at, passes): (PassPhase, u32),
        set: SetId,
    ) -> Result<Option<(PassPhase, u32)>, Halt> {
        let in_pass = at != PassPhase::Behind && self.is(descent, set)?;
        Ok(Some(match at {
            PassPhase::Between if set == self.after => (PassPhase::Between, passes + 1),
            PassPhase::Between if in_pass => (PassPhase::Pass, passes + 1),
            PassPhase::Between if self.never(set) => (PassPhase::Behind, passes),
            PassPhase::Pass if set == self.after => (PassPhase::Between, passes),
            PassPhase::Pass if in_pass => (PassPhase::Pass, passes),
            PassPhase::Behind => (PassPhase::Behind, passes),
            _ => return Ok(None),
        }))
    }

    /// Whether each character past ASCII of some groups is a pass; mostly the groups are the same.
    fn reads_characters(&mut self, descent: &mut Descent, groups: Groups) -> Result<bool, Halt> {
        if let Some((_, known)) = self.reads_characters.filter(|known| known.0 == groups) {
            return Ok(known);
        }
        let found = descent.passes_are_characters(self, groups)?;
        self.reads_characters = Some((groups, found));
        Ok(found)
    }

    fn look(&self, descent: &mut Descent, set: SetId) -> (bool, bool) {
        let mut found = (false, false);
        let mut seen = FxHashSet::default();
        let mut work = vec![set];
        let mut entries = Vec::new();
        while let Some(set) = work.pop() {
            entries.clear();
            descent.stepper.sets.entries_into(set, &mut entries);
            descent.work += entries.len() as u64;
            for &(top, beneath) in &entries {
                match beneath {
                    // Between passes, and something else as well.
                    _ if (top, beneath) == self.start => return (true, true),
                    NONE | REST => found.1 = true,
                    _ if beneath == self.after => found.0 = true,
                    _ if seen.insert(beneath) => work.push(beneath),
                    _ => {}
                }
            }
        }
        found
    }
}
