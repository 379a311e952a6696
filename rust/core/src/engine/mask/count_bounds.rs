//! Bounds of masks where a text stands at many counts at once (docs/design/masks.md, "Many counts").
//!
//! Where counts nest and a byte may end a pass or go on with it, a text stands in each pair of counts, and questions
//! are as many. Below a lower bound none of them stands for the others (`stacks/narrow.rs`), yet nearly all allow the
//! same tokens. The least and the greatest count of each automaton allow some tokens by themselves, so the text allows
//! them; what stacks that count nothing forbid, the text forbids. Its own stacks read what lies between, along their
//! paths in the trie.

use crate::budget::{Halt, Interrupt};
use crate::engine::history::{View, copy_moved};
use crate::engine::mask::answers::{Allowance, Attempt, Walker};
use crate::engine::mask::memo::set_bits;
use crate::engine::stop::Stop;
use crate::network::{BOTTOM, Network};
use crate::stacks::{Entry, NONE, REST, SetId, StackSets, beneath_first_by};
use rustc_hash::{FxHashMap, FxHashSet};

/// Work units of answers that are made before bounds take their place, where a text does not stand at many counts.
const LITTLE_WORK: u64 = 4_000;
/// Entries of a set that a glance looks at.
const LOOKED_AT: usize = 8;
/// Entries of sets that are looked at for counts.
const MAX_ENTRIES: u64 = 1 << 13;

/// Stacks that allow less than those of a text, and stacks that allow more.
struct CountBounds {
    sets: StackSets,
    /// Those that allow less: a few counts, each above an unknown rest.
    few: SetId,
    /// Those that allow more: unbounded repetitions in place of those that count.
    free: SetId,
}

/// At how many counts a text stands, as far as a glance at its upper frames tells.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Multiplicity {
    None,
    Some,
    /// One above another into which it may pop, or one beside another of the same automaton.
    Many,
}

impl Walker {
    /// The mask by bounds where a text stands at many counts, or where answers take much work; `None` where it is at
    /// no count.
    pub(in crate::engine) fn between_counts(
        &self,
        (sets, set): (&StackSets, SetId),
        allowance: Allowance,
        interrupt: &Interrupt,
        bits: &mut [i32],
    ) -> Option<Attempt> {
        match Multiplicity::of(&self.network, sets, set) {
            Multiplicity::None => return None,
            Multiplicity::Some => {
                let little = Allowance { work: allowance.work.min(LITTLE_WORK), ..allowance };
                let view = View::Stacks(&self.network, sets, set);
                let attempt = self.attempt(view, little, interrupt, bits);
                if !matches!(attempt.result, Err(Stop::Work)) {
                    return Some(attempt);
                }
            }
            Multiplicity::Many => {}
        }
        let bounds = CountBounds::of(&self.network, sets, set)?;
        let view = |set| View::Stacks(&self.network, &bounds.sets, set);
        let least = self.attempt(view(bounds.few), allowance, interrupt, bits);
        if least.result.is_err() {
            return Some(least);
        }
        let work = allowance.work.saturating_sub(least.spent);
        let mut may = vec![0; bits.len()];
        let left = Allowance { work, ..allowance };
        let mut most = self.attempt(view(bounds.free), left, interrupt, &mut may);
        most.spent += least.spent;
        most.added += least.added;
        if most.result.is_err() {
            return Some(most);
        }
        for (may, is) in may.iter_mut().zip(&*bits) {
            *may &= !is;
        }
        let open = self.trie.nodes_with(&may);
        if !open.is_empty() {
            let work = allowance.work.saturating_sub(most.spent);
            let mut walk = self.begin(Allowance { work, ..allowance }, interrupt);
            let before = walk.descent.spent();
            walk.counters.walked += 1;
            let read = |node| set_bits(bits, self.trie.numbers(node));
            most.result = walk.descent.read_nodes((sets, set), &open, walk.bounds, read);
            most.spent += walk.descent.spent() - before;
            self.end(walk);
        }
        Some(most)
    }
}

impl CountBounds {
    /// `None` where the stacks of a text are too many to look at.
    fn of(network: &Network, sets: &StackSets, set: SetId) -> Option<Self> {
        let mut out = Self { sets: StackSets::new(), few: NONE, free: NONE };
        out.sets.max_depth = u32::MAX;
        let mut left = MAX_ENTRIES;
        let mut look = |entries| {
            left = left.checked_sub(entries).ok_or(Halt::Work)?;
            Ok(())
        };
        let order = beneath_first_by(
            sets,
            set,
            |_| false,
            &mut look,
            |entries| keep_ends(network, entries),
        );
        let mut copies: FxHashMap<SetId, SetId> = FxHashMap::default();
        for set in order.ok()? {
            let mut entries = sets.entries(set);
            keep_ends(network, &mut entries);
            for (top, beneath) in entries.iter_mut().filter(|entry| entry.0 != BOTTOM) {
                match network.is_counting(*top) {
                    true => (*top, *beneath) = (fewer(network, *top), REST),
                    false => *beneath = copies[beneath],
                }
            }
            copies.insert(set, out.sets.collect(&mut entries, &[]).ok()?);
        }
        out.few = copies[&set];
        let moved = &mut |top| Ok(free(network, top).unwrap_or(top));
        out.free = copy_moved(sets, set, &mut out.sets, &mut FxHashMap::default(), moved).ok()?;
        Some(out)
    }
}

impl Multiplicity {
    fn of(network: &Network, sets: &StackSets, set: SetId) -> Self {
        if !network.has_counters() {
            return Self::None;
        }
        let tops = sets.some_entries(set, LOOKED_AT);
        let beneath = tops.iter().filter(|entry| entry.0 != BOTTOM).map(|entry| entry.1);
        let beneath = beneath.map(|set| sets.some_entries(set, LOOKED_AT));
        let all = std::iter::once(tops.clone()).chain(beneath);
        all.map(|entries| Self::of_entries(network, sets, &entries)).max().unwrap_or(Self::None)
    }

    fn of_entries(network: &Network, sets: &StackSets, entries: &[Entry]) -> Self {
        let is_above = |set| {
            let beneath = sets.some_entries(set, LOOKED_AT);
            beneath.iter().any(|entry| free(network, entry.0).is_some())
        };
        let mut before = None;
        for &(top, beneath) in entries {
            let Some(free) = free(network, top) else { continue };
            if before.replace(free) == Some(free) || is_above(beneath) {
                return Self::Many;
            }
        }
        if before.is_some() { Self::Some } else { Self::None }
    }
}

/// Keeps of the states of one automaton that have counted differently those with the least and the greatest count.
/// The entries are sorted, and stay so.
fn keep_ends(network: &Network, entries: &mut Vec<Entry>) {
    let counted = entries.iter().filter_map(|&(top, _)| Some((free(network, top)?, top)));
    let last: FxHashMap<u32, u32> = counted.collect();
    let mut met: FxHashSet<u32> = FxHashSet::default();
    entries.retain(|&(top, _)| {
        free(network, top).is_none_or(|free| met.insert(free) || last.get(&free) == Some(&top))
    });
}

/// The state without bounds that stands for one that has counted passes.
fn free(network: &Network, top: u32) -> Option<u32> {
    if top == BOTTOM { None } else { Some(network.count_of(top)?.free) }
}

/// A state that counts in the place of another, of which there are few: it reads no more before its rule is complete.
fn fewer(network: &Network, state: u32) -> u32 {
    network.count_of(state).and_then(|count| count.fewer).unwrap_or(state)
}
