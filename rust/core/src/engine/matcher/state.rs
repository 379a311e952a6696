//! States as values: equal, hashed, saved and restored.

use crate::budget::Interrupt;
use crate::engine::history::{Family, Read, Stand};
use crate::engine::lock;
use crate::engine::matcher::on_a_chart::SOFT_BYTES;
use crate::engine::{Engine, Matcher};
use crate::error::{Error, Result};
use crate::network::{BOTTOM, Moved, Moves, Network};
use crate::stacks::{Entry, LABEL, NONE, SetId, beneath_first_by};
use crate::unique::At;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Says that an array whose items are unique stands before the stacks.
const ARRAY: u32 = u32::MAX;
/// While a text is read again.
const LETTERS_BETWEEN_CHECKS: usize = 64;
/// While a state is written or read.
const SETS_BETWEEN_CHECKS: usize = 1_024;
const ENTRIES_BETWEEN_CHECKS: u64 = 4_096;

/// The states of a saved state that are sets of members.
#[derive(Default)]
struct SavedMembers {
    places: FxHashMap<(u32, Box<[u64]>), u32>,
    /// For each the state without guards, the words of the set, and those words.
    written: Vec<u32>,
}

impl SavedMembers {
    /// A state as it is saved.
    fn name(&mut self, network: &Network, state: u32) -> u32 {
        if state >= LABEL {
            return state;
        }
        let Some((listed, read)) = network.as_set(state) else { return state };
        let next = LABEL + self.places.len() as u32;
        *self.places.entry((listed, read.into())).or_insert_with(|| {
            self.written.extend([listed, read.len() as u32]);
            self.written.extend(read.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]));
            next
        })
    }
}

/// Sorts tops that are sets of members by what they are: their numbers depend on what was read before.
fn by_content(network: &Network, entries: &mut [Entry]) {
    if network.has_sets() {
        entries.sort_by_key(|&(top, _)| match top < LABEL {
            true => (top.min(network.end_of_numbers()), network.as_set(top)),
            false => (top, None),
        });
    }
}

/// The numbers of the sets of members that are listed at the start of a saved state, and what follows;
/// `None` where they are none of this network.
fn restored_sets<'s>(network: &Network, state: &'s [u32]) -> Option<(Vec<u32>, &'s [u32])> {
    let [0, length, rest @ ..] = state else { return Some((Vec::new(), state)) };
    let (mut list, rest) = rest.split_at_checked(*length as usize)?;
    let mut numbers = Vec::new();
    while let [listed, words, after @ ..] = list {
        let (words, after) = after.split_at_checked((*words as usize).checked_mul(2)?)?;
        list = after;
        let words = words.chunks_exact(2);
        let read: Vec<u64> =
            words.map(|half| u64::from(half[0]) | u64::from(half[1]) << 32).collect();
        numbers.push(network.set_number(*listed, &read)?);
    }
    list.is_empty().then_some((numbers, rest))
}

/// The entries of a set of a saved state, which has two numbers for each: a top and the place of a set before it;
/// `None` where they are none of this network.
fn restored_entries(
    network: &Network,
    listed: &[u32],
    numbers: &[u32],
    places: &[SetId],
) -> Option<Vec<Entry>> {
    let entries = listed.chunks_exact(2).map(|pair| {
        let top = match pair[0] {
            BOTTOM => BOTTOM,
            place if place >= LABEL => *numbers.get((place - LABEL) as usize)?,
            // A set of members has no number that lasts.
            top if network.is_state(top) && network.as_set(top).is_some() => return None,
            top => top,
        };
        match (top, places.get(pair[1] as usize)) {
            (BOTTOM, _) => Some((top, NONE)),
            // An end stands on no stack.
            (_, Some(&set)) if network.is_state(top) && network.stays(top) => Some((top, set)),
            _ => None,
        }
    });
    entries.collect()
}

/// The place of the stacks of an array, and what was read of it.
type SavedArray<'s> = (u32, &'s [u32]);

/// The arrays of a saved state, and what follows; `None` where there are no
/// such.
fn saved_arrays(state: &[u32]) -> Option<(Vec<SavedArray<'_>>, &[u32])> {
    let [0, ARRAY, length, rest @ ..] = state else { return Some((Vec::new(), state)) };
    let (mut list, rest) = rest.split_at_checked(*length as usize)?;
    let mut arrays = Vec::new();
    while let [place, words, after @ ..] = list {
        let (written, after) = after.split_at_checked(*words as usize)?;
        list = after;
        arrays.push((*place, written));
    }
    (list.is_empty() && !arrays.is_empty()).then_some((arrays, rest))
}

/// Where a saved text stands, whose stacks were restored; `None` where its arrays are none of these stacks.
fn restored_stand(
    family: &mut Family,
    (written, places): (&[SavedArray<'_>], &[SetId]),
    set: SetId,
) -> Option<Stand> {
    let network = &family.network().clone();
    let Family { arrays, stepper, .. } = family;
    let sets = &mut stepper.sets;
    if written.is_empty() {
        return (!arrays.within(network, sets, set).ok()?.any).then_some(Stand::Stacks(set));
    }
    let mut found = Vec::with_capacity(written.len());
    for &(place, array) in written {
        found.push(arrays.restored(network, sets, *places.get(place as usize)?, array)?);
    }
    match found[..] {
        [id] => (arrays.set(At::Array(id)) == set).then_some(Stand::Array(id)),
        _ => arrays.restored_together(sets, &found).ok().map(Stand::Array),
    }
}

impl Matcher {
    /// The state as numbers that are equal exactly when the states are: the stack sets, each
    /// after those beneath its tops, and whether a stop token was read.
    ///
    /// A list of sets; a set is the number of its tops and for each the network state and the
    /// place of the set beneath it. A text that stands on a chart is read again for it.
    ///
    /// Network states that are sets of members have no numbers of their own in another process. They are
    /// listed first, behind a 0, each with the state without guards and the members, and named by their
    /// place in that list above [`LABEL`]. Before them stand the arrays whose items are unique, if some are
    /// being read: 0, [`ARRAY`], the number of words, and for each array the place of its stacks, the number
    /// of words and what was read of it.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Cancelled`] where that takes too much.
    pub fn state(&self, interrupt: &Interrupt) -> Result<Vec<u32>> {
        self.refuse_stackless()?;
        let interrupt = &self.accept_interrupt(interrupt);
        let family = lock::read(&self.family, interrupt)?;
        let step = family.step(self.at);
        let mut again = None;
        // The stacks of each array, and else those of the text.
        let (roots, sets) = match step.stand {
            Stand::Stacks(set) => (vec![set], &family.stepper.sets),
            Stand::Array(id) => (family.arrays.own_sets(id).collect(), &family.stepper.sets),
            Stand::Chart(_) => {
                let (stacks, set) = self.read_again(&family, interrupt)?;
                (vec![set], &again.insert(stacks).stepper.sets)
            }
        };
        let mut places: FxHashMap<SetId, u32> = FxHashMap::default();
        let network = family.network();
        let mut members = SavedMembers::default();
        let mut out = vec![match step.read {
            Read::Stop(id) => id + 1,
            Read::Token(id) if self.is_stop(id) => id + 1,
            _ => 0,
        }];
        let mut steps = 0;
        let mut spend = |more| {
            steps += more;
            if steps < ENTRIES_BETWEEN_CHECKS {
                return Ok(());
            }
            steps = 0;
            interrupt.check()
        };
        let arrange = |entries: &mut Vec<Entry>| by_content(network, entries);
        // A state that is a set of members may have two numbers, and then sets that are equal are two.
        let mut same: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        for &root in &roots {
            let known = |set| places.contains_key(&set);
            let listed = beneath_first_by(sets, root, known, &mut spend, arrange);
            let listed = listed.map_err(|halt| self.halted(halt, interrupt))?;
            for set in listed {
                // A small state can be looked at whatever the switch says.
                if (places.len() + 1).is_multiple_of(SETS_BETWEEN_CHECKS) {
                    interrupt.look()?;
                }
                let mut entries = sets.entries(set);
                by_content(network, &mut entries);
                let mut written = vec![entries.len() as u32];
                for (top, beneath) in entries {
                    written.push(members.name(network, top));
                    written.push(if top == BOTTOM { 0 } else { places[&beneath] });
                }
                let next = same.len() as u32;
                let place = *same.entry(written).or_insert_with_key(|written| {
                    out.extend_from_slice(written);
                    next
                });
                places.insert(set, place);
            }
        }
        if !members.written.is_empty() {
            let list = [0, members.written.len() as u32];
            out.splice(1..1, list.into_iter().chain(members.written));
        }
        if let Stand::Array(id) = step.stand {
            let mut list = Vec::new();
            for (id, root) in family.arrays.places_of(id).zip(&roots) {
                let written = family.arrays.written(id);
                list.extend([places[root], written.len() as u32]);
                list.extend(written);
            }
            let head = [0, ARRAY, list.len() as u32];
            out.splice(1..1, head.into_iter().chain(list));
        }
        Ok(out)
    }

    /// States are stacks: of a network that only charts can read there are none.
    fn refuse_stackless(&self) -> Result<()> {
        match self.engine().network.is_for_charts() {
            false => Ok(()),
            true => Err(Error::State(
                "states are written as stacks, which need left recursion as loops, and those of this \
                 grammar pass the limits of the network: keep the text and have a new matcher accept \
                 it, or raise max_network_work and max_network_states"
                    .into(),
            )),
        }
    }

    /// The stacks of a text that stands on a chart, in tables of their own.
    pub(in crate::engine) fn read_again(
        &self,
        family: &Family,
        interrupt: &Interrupt,
    ) -> Result<(Family, SetId)> {
        let unreadable = || Error::State("the text cannot be read again".into()); // it was read
        let network = &self.engine().network;
        let mut stacks = Family::new(network).map_err(|_| unreadable())?;
        // What was accepted has a state, whatever an accept may cost.
        let max_bytes = self.engine().limits().max_matcher_bytes.max(SOFT_BYTES);
        let mut stand = Stand::Stacks(stacks.start);
        for (read, byte) in self.text_of(family).into_iter().enumerate() {
            if read % LETTERS_BETWEEN_CHECKS == 0 {
                interrupt.look()?;
                if stacks.bytes() > max_bytes {
                    return Err(crate::engine::stop::crowded(self.engine()));
                }
            }
            stacks.allow(u64::MAX, max_bytes, interrupt);
            let next = stacks.advance(stand, network.alphabet().class(byte));
            stand = next.map_err(|halt| self.halted(halt, interrupt))?.ok_or_else(unreadable)?;
        }
        match stand {
            Stand::Stacks(set) => Ok((stacks, set)),
            Stand::Array(_) | Stand::Chart(_) => Err(unreadable()), // stacks stay stacks
        }
    }

    /// The state of this text in another engine, whose grammar is the same but for the tags that free
    /// text calls; the free text begins anew there.
    ///
    /// # Errors
    /// [`Error::State`] where the text stands in a tag, or in the beginning of one, or the grammars
    /// differ in more; those of [`Self::state`].
    pub fn state_for(&self, other: &Engine, interrupt: &Interrupt) -> Result<Vec<u32>> {
        let (from, to) = (&self.engine().network, other.network());
        let refused = |why: &str| Error::State(why.into());
        if !self.engine().vocabulary.is(other.vocabulary()) {
            return Err(refused("the other grammar was compiled for another vocabulary"));
        }
        let state = self.state(interrupt)?;
        if Arc::ptr_eq(from, to) {
            return Ok(state);
        }
        let moves = Moves::between(from, to);
        let moves = moves.ok_or_else(|| refused("only texts of structural tags can be moved"))?;
        let inside = "this is no dispatch point: the text stands in a tag or in the beginning of one, \
                      or the grammars differ in more than the tags that free text calls";
        let (&stop, mut rest) = state.split_first().ok_or_else(|| refused(inside))?;
        // Members are of an object, which stands in a tag.
        if let [0, ..] = rest {
            return Err(refused(inside));
        }
        let mut out = vec![stop];
        let mut is_anew = !moves.changed;
        let mut sets: Vec<&[u32]> = Vec::new();
        while let Some((&count, after)) = rest.split_first() {
            let (listed, after) = after.split_at(2 * count as usize);
            rest = after;
            let mut entries: Vec<(u32, u32)> = Vec::with_capacity(count as usize);
            for pair in listed.chunks_exact(2) {
                let holds = |beneath: &[u32]| listed.chunks_exact(2).any(|one| one == beneath);
                let moved = match pair[0] {
                    BOTTOM => Some(Moved::Same(BOTTOM)),
                    top => {
                        let beneath = sets.get(pair[1] as usize);
                        let ends = || beneath.is_some_and(|set| set.chunks_exact(2).all(holds));
                        moves.of(from, top, ends)
                    }
                };
                let top = match moved.ok_or_else(|| refused(inside))? {
                    Moved::Same(top) => top,
                    Moved::Before(top) => {
                        is_anew |= rest.is_empty();
                        top
                    }
                    // The last set is what stands on top. Beneath others, free text has called a tag.
                    Moved::Anew(top) if rest.is_empty() => {
                        is_anew = true;
                        top
                    }
                    Moved::Anew(_) => return Err(refused(inside)),
                };
                entries.push((top, pair[1]));
            }
            // Two states that are told apart here may be one there.
            entries.sort_unstable();
            entries.dedup();
            if entries.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(refused(inside));
            }
            out.push(entries.len() as u32);
            out.extend(entries.into_iter().flat_map(|(top, beneath)| [top, beneath]));
            sets.push(listed);
        }
        if is_anew { Ok(out) } else { Err(refused(inside)) }
    }

    /// Goes to a saved state, which becomes the first step: nothing before it can be rolled back.
    ///
    /// # Errors
    /// [`Error::State`] for numbers that are no state of this network. Nothing has changed then.
    pub fn restore(&mut self, state: &[u32], interrupt: &Interrupt) -> Result<()> {
        self.refuse_stackless()?;
        let interrupt = &self.accept_interrupt(interrupt);
        let refused = || Error::State("this is no state of this grammar".into());
        let fresh = Matcher::new(self.engine().clone(), crate::engine::StopRule::default())?;
        let mut places: Vec<SetId> = Vec::new();
        // The text may be longer, but no counter knows of more.
        let mut bytes = 0;
        let at = {
            let mut family = fresh.family.write(); // nobody else has it
            let (&stop, rest) = state.split_first().ok_or_else(refused)?;
            let network = &family.network().clone();
            let (arrays, rest) = saved_arrays(rest).ok_or_else(refused)?;
            let (numbers, mut rest) = restored_sets(network, rest).ok_or_else(refused)?;
            while let Some((&count, after)) = rest.split_first() {
                if (places.len() + 1).is_multiple_of(SETS_BETWEEN_CHECKS) {
                    interrupt.look()?;
                }
                let size = (count as usize).checked_mul(2).filter(|&n| n <= after.len() && n > 0);
                let (listed, after) = after.split_at(size.ok_or_else(refused)?);
                rest = after;
                let entries = restored_entries(network, listed, &numbers, &places);
                let mut entries = entries.ok_or_else(refused)?;
                let tops = entries.iter().filter(|entry| network.is_state(entry.0));
                bytes = tops.fold(bytes, |bytes, entry| bytes.max(network.passes_done(entry.0)));
                // Sets of members come in another order here, and those that are one had two numbers.
                let is_sorted = |entries: &[Entry]| entries.windows(2).all(|e| e[0].0 < e[1].0);
                if numbers.is_empty() && !is_sorted(&entries) {
                    return Err(refused());
                }
                let set = family.stepper.sets.collect(&mut entries, &[]);
                places.push(set.map_err(|_| refused())?);
            }
            let &set = places.last().ok_or_else(refused)?;
            if family.bytes() > self.engine().limits().max_matcher_bytes {
                return Err(crate::engine::stop::crowded(self.engine()));
            }
            let read = match stop.checked_sub(1) {
                None => Read::Nothing,
                Some(id) if (id as usize) < self.engine().vocabulary.len() => Read::Stop(id),
                Some(_) => return Err(refused()),
            };
            family.may_chart = false;
            let stand = restored_stand(&mut family, (&arrays, &places), set).ok_or_else(refused)?;
            family.begin_after(stand, read, bytes)
        };
        self.family = fresh.family;
        self.at = at;
        self.hint.forget();
        Ok(())
    }
}
