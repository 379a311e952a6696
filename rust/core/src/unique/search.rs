//! Whether an item that begins as others do can still be another, and so whether a text can be completed.
//!
//! Beginnings that no item has are completed as the network says. The others are searched, which is as much
//! as items have in common; where more values may follow than items were read, no search is needed.

use super::arrays::Arrays;
use super::nested::Nested;
use super::numbers;
use super::reader::{End, Phase, Reader};
use super::values::Values;
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::{BOTTOM, Network, contains};
use crate::stacks::{NONE, SetId, StackSets, Stepper};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::ops::Deref;

/// So many sets of stacks are looked at for what an item may still be.
const MOST_LOOKED_AT: usize = 256;
/// Bytes that tell a beginning from others are compared for a unit of work.
const BYTES_A_UNIT: u64 = 16;
/// Words of so many letters are counted.
const DEPTH: usize = 4;

/// What is searched: beginnings of an item, the shortest first, since longer ones may have no end.
struct Search<T> {
    work: VecDeque<(SetId, T)>,
    /// What was searched before.
    met: FxHashSet<(SetId, Vec<u8>)>,
    /// Bytes held.
    bytes: usize,
}

impl<T> Search<T> {
    fn new(set: SetId, array: T) -> Self {
        Self { work: [(set, array)].into(), met: FxHashSet::default(), bytes: 0 }
    }

    /// Adds a beginning that holds so many bytes.
    fn add(&mut self, set: SetId, array: T, bytes: usize) {
        self.bytes += bytes + size_of::<(SetId, T)>();
        self.work.push_back((set, array));
    }

    /// The next beginning; the work and the memory of the search count as those of stacks.
    fn next(&mut self, sets: &mut StackSets) -> Result<Option<(SetId, T)>, Halt> {
        sets.spend(1)?;
        match self.bytes > sets.max_bytes {
            true => Err(Halt::Bytes),
            false => Ok(self.work.pop_front()),
        }
    }

    /// Whether a place is new.
    fn is_new(&mut self, set: SetId, key: Vec<u8>) -> bool {
        self.bytes += key.len() + 40;
        self.met.insert((set, key))
    }
}

impl Arrays {
    /// Whether the item that is being read, or the next, may be another than all before.
    ///
    /// An item that is no longer like one before may be completed as its network says. Where it is like
    /// some, what may follow is looked through: at most as much as they have in common with each other.
    pub(super) fn can_end<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        array: &Reader,
    ) -> Result<bool, Halt> {
        let within = self.within(network, &mut stepper.sets, set)?;
        if is_free(array, within.items, self.values()) {
            return Ok(true);
        }
        let mut search = Search::new(set, array.clone());
        while let Some((set, array)) = search.next(&mut stepper.sets)? {
            if is_free(&array, within.items, self.values()) {
                return Ok(true);
            }
            // One state of the stacks with one number, or between items, is searched once.
            let key = match array.phase {
                Phase::Number => {
                    let text = array.key(self.values());
                    let is_whole = text.last().is_some_and(u8::is_ascii_digit);
                    Some(if is_whole { numbers::key(&text[1..]) } else { text })
                }
                phase => is_between(phase).then(Vec::new),
            };
            if key.is_some_and(|key| !search.is_new(set, key)) {
                continue;
            }
            let next = next_classes(network, &stepper.sets, set);
            for byte in 0..=255u8 {
                let class = network.alphabet().class(byte);
                if !contains(&next, class) {
                    continue;
                }
                let mut after = array.clone();
                let read = after.read(byte, self.values());
                if let Some(key) = read.value {
                    if !self.values().has(array.seen, &key) {
                        return Ok(true);
                    }
                    continue;
                }
                if read.end != End::Within {
                    continue;
                }
                if is_free(&after, within.items, self.values()) {
                    return Ok(true);
                }
                let set = stepper.step(set, class)?;
                if set != NONE {
                    let bytes = after.piece.len();
                    search.add(set, after, bytes);
                }
            }
        }
        Ok(false)
    }

    /// [`Self::can_end`] of an array of any values.
    ///
    /// Items that are no longer like any before may be completed as their networks say, and an array that
    /// has one more item than before can be completed (`UniqueItems`). What is looked through is at most
    /// what items have in common with those before.
    pub(super) fn can_end_nested<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        array: &Nested,
    ) -> Result<bool, Halt> {
        let within = self.within(network, &mut stepper.sets, set)?;
        if array.is_free(within.items, self.values()) {
            return Ok(true);
        }
        let excluded = array.candidates() + array.taken();
        if excluded < self.ways(network, stepper, set, array)? as usize {
            return Ok(true);
        }
        let mut search = Search::new(set, array.clone());
        while let Some((set, array)) = search.next(&mut stepper.sets)? {
            let signature = array.signature();
            stepper.sets.spend(signature.len() as u64 / BYTES_A_UNIT)?;
            if !search.is_new(set, signature) {
                continue;
            }
            let next = next_classes(network, &stepper.sets, set);
            for byte in 0..=255u8 {
                let class = network.alphabet().class(byte);
                if !contains(&next, class) {
                    continue;
                }
                stepper.sets.spend(1 + array.weight())?;
                let mut after = array.clone();
                if byte == b'[' && after.awaits_value() {
                    for (set, after) in self.opened(network, stepper, set, after)? {
                        let within = self.within(network, &mut stepper.sets, set)?;
                        if after.is_free(within.items, self.values()) {
                            return Ok(true);
                        }
                        let bytes = after.bytes_held();
                        search.add(set, after, bytes);
                    }
                    continue;
                }
                let read = after.read(byte);
                if read.repeats.is_some() {
                    continue;
                }
                if let Some(key) = read.item {
                    if !self.values().has(after.seen, &key) {
                        return Ok(true);
                    }
                    continue;
                }
                if read.end != End::Within {
                    continue;
                }
                let set = stepper.step(set, class)?;
                if set == NONE {
                    continue;
                }
                let within = self.within(network, &mut stepper.sets, set)?;
                if after.is_free(within.items, self.values()) {
                    return Ok(true);
                }
                let bytes = after.bytes_held();
                search.add(set, after, bytes);
            }
        }
        Ok(false)
    }

    /// Behind the bracket of an array in an item: the stacks that have a frame of it, and the others.
    fn opened<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        array: Nested,
    ) -> Result<Vec<(SetId, Nested)>, Halt> {
        let (mut out, depth) = (Vec::new(), array.depth() as u32);
        let after = stepper.step(set, network.alphabet().class(b'['))?;
        if after == NONE {
            return Ok(out);
        }
        for is_unique in [false, true] {
            let count = depth + u32::from(is_unique);
            let part = self.part(network, &mut stepper.sets, after, (count, count))?;
            if part != NONE {
                let mut array = array.clone();
                array.open_array(is_unique);
                out.push((part, array));
            }
        }
        Ok(out)
    }

    /// How many values the innermost item may still have that may be equal to one before, at least; less than
    /// there are where that takes longer to see.
    ///
    /// Each item before is one of them at most, and each item of an inner array excludes one at most, so an
    /// item that has more is free. They are counted where strings of any letters or numbers of any digits
    /// may follow, whichever way leads there; what that way has read in inner arrays is subtracted.
    fn ways<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        array: &Nested,
    ) -> Result<u32, Halt> {
        let within = self.within(network, &mut stepper.sets, set)?;
        if array.is_in_number() {
            let next = next_classes(network, &stepper.sets, set);
            let differs = |digit: u8| {
                contains(&next, network.alphabet().class(digit))
                    && array.differs_as_number(&[digit])
            };
            let is_free = array.is_endless_number(within.items)
                || within.items.whole_numbers && (b'1'..=b'9').any(differs);
            return Ok(if is_free { u32::MAX } else { 0 });
        }
        let height = array.height();
        if array.is_apart() || !array.is_between() && !array.is_in_string() {
            return Ok(0);
        }
        if let Some(&known) = self.ways.get(&(set, height)) {
            return Ok(known);
        }
        let least = array.open_containers() - height;
        let mut best = 0;
        let mut met: FxHashSet<SetId> = FxHashSet::default();
        let mut work = vec![(set, array.bare())];
        while let Some((set, array)) = work.pop() {
            if !met.insert(set) || met.len() > MOST_LOOKED_AT || best == u32::MAX {
                continue;
            }
            stepper.sets.spend(1)?;
            let found = if array.is_in_string() {
                let letters = (b' '..=b'~').filter(|byte| !matches!(byte, b'"' | b'\\'));
                words(network, stepper, set, &letters.collect::<Vec<_>>(), DEPTH)?
            } else if array.awaits_value() && within.items.whole_numbers {
                words(network, stepper, set, b"123456789", DEPTH)?
            } else {
                0
            };
            best = best.max(match found {
                u32::MAX => u32::MAX,
                found => found.saturating_sub(array.taken() as u32),
            });
            let next = next_classes(network, &stepper.sets, set);
            let mut classes = [0; 4];
            for byte in 0..=255u8 {
                let class = network.alphabet().class(byte);
                if !contains(&next, class) || contains(&classes, class) {
                    continue;
                }
                classes[class as usize >> 6] |= 1 << (class & 63);
                let mut after = array.clone();
                if byte == b'[' && after.awaits_value() {
                    work.extend(self.opened(network, stepper, set, after)?);
                    continue;
                }
                let read = after.read(byte);
                if read.end != End::Within || read.repeats.is_some() || read.item.is_some() {
                    continue;
                }
                let set = stepper.step(set, class)?;
                if set == NONE {
                    continue;
                }
                // Behind the item nothing counts.
                if after.open_containers() > least || !after.is_between() {
                    work.push((set, after));
                }
            }
        }
        self.ways.insert((set, height), best);
        Ok(best)
    }
}

fn is_between(phase: Phase) -> bool {
    matches!(phase, Phase::Open | Phase::Comma)
}

/// Whether an item can end as no item before did, whatever its network says.
pub(super) fn is_free(array: &Reader, items: UniqueItems, values: &Values) -> bool {
    match array.phase {
        // Behind a comma the item that must come is another one.
        Phase::Open | Phase::Literal | Phase::Behind => true,
        Phase::Comma => items.least > values.count(array.seen),
        Phase::String(_) => items.endless_strings || array.like.is_none(),
        Phase::Number => array.begun.is_endless(items),
        Phase::Nested => false, // another reader knows
    }
}

/// How many words of some letters may follow, at least: of so many letters at most.
fn words<N: Deref<Target = Network>>(
    network: &Network,
    stepper: &mut Stepper<N>,
    set: SetId,
    letters: &[u8],
    depth: usize,
) -> Result<u32, Halt> {
    let next = next_classes(network, &stepper.sets, set);
    let mut classes: FxHashMap<u8, u32> = FxHashMap::default();
    for &letter in letters {
        let class = network.alphabet().class(letter);
        if contains(&next, class) {
            *classes.entry(class).or_default() += 1;
        }
    }
    let mut targets: FxHashMap<SetId, u32> = FxHashMap::default();
    for (class, count) in classes {
        let target = stepper.step(set, class)?;
        if target != NONE {
            *targets.entry(target).or_default() += count;
        }
    }
    let most = targets.into_iter().max_by_key(|&(target, count)| (count, target));
    Ok(match most {
        None => 0,
        Some((target, count)) if target == set && count > 1 => u32::MAX,
        Some((_, count)) if depth == 1 => count,
        Some((target, count)) => {
            let rest = words(network, stepper, target, letters, depth - 1)?;
            count.saturating_mul(rest.max(1))
        }
    })
}

/// The classes of letters that may come next.
fn next_classes(network: &Network, sets: &StackSets, set: SetId) -> [u64; 4] {
    let mut classes = [0u64; 4];
    for (state, _) in sets.entries(set) {
        if state != BOTTOM {
            let first = network.reads_first(state);
            classes.iter_mut().zip(first).for_each(|(a, b)| *a |= b);
        }
    }
    classes
}
