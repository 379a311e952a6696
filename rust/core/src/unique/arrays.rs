//! Stacks, and beside them the array that they read. `frames`: which stacks are in how many arrays; `saved`:
//! places as numbers, and in other tables; `back`: texts that go back to a place that was forgotten.

mod back;
mod frames;
mod saved;

pub(crate) use saved::Copying;

use super::kept::Kept;
use super::nested::Nested;
use super::pieces::trim;
use super::place::{ArrayId, Place};
use super::reader::{End, Phase, Reader};
use super::values::{Mark, SeenId, Values};
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::Network;
use crate::stacks::{LABEL, NONE, SetId, Stepper};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// No array that matters is being read.
    Plain(SetId),
    /// One is.
    Array(ArrayId),
}

/// Which stacks of a set have frames of arrays whose items are unique, and what the items are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Within {
    pub(crate) any: bool,
    /// How many such frames stacks have, in order: with [`Nested`] the frame of the outermost array, or those
    /// of the outermost two, and so on.
    pub(super) counts: Arc<[u32]>,
    /// Those of the innermost.
    pub(super) items: UniqueItems,
    /// The least number of values that the items of one of them can have.
    pub(super) fewest: u32,
}

impl Within {
    /// The most frames that a stack has.
    pub(super) fn most(&self) -> u32 {
        self.counts.last().copied().unwrap_or(0)
    }

    /// Whether all stacks have so many frames.
    pub(super) fn are(&self, count: u32) -> bool {
        *self.counts == [count]
    }
}

/// The arrays that the texts of one holder have read.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    values: Values,
    places: VecDeque<Place>,
    /// How many places were forgotten before those.
    forgotten: usize,
    /// Places of texts that went on long ago.
    pub(super) kept: Kept,
    within: FxHashMap<SetId, Within>,
    /// The readers of the last places in arrays of any values, which could be made again from the places.
    readers: VecDeque<(ArrayId, Nested)>,
    /// For stacks in an item, by the number of containers that are open in it, how many values the item may
    /// still have, at least.
    pub(super) ways: FxHashMap<(SetId, usize), u32>,
    /// Whether what is read is forgotten again, so that no reader of it is kept.
    tries: bool,
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArraysMark {
    values: Mark,
    places: usize,
}

/// A reader of an array.
enum Open {
    Flat(Reader),
    Nested(Nested),
}

impl Open {
    fn new(items: UniqueItems) -> Self {
        match items.nested {
            true => Self::Nested(Nested::new(SeenId::NONE, &Values::default())),
            false => Self::Flat(Reader::new()),
        }
    }
}

/// So many readers are kept.
const MOST_READERS: usize = 4;

/// Bytes read between two looks of the caller.
const CHUNK: usize = 1_024;

/// What a caller does now and then while a long text is read: it may end that.
pub(crate) type Pause<'l, N> = dyn FnMut(&mut Stepper<N>) -> Result<(), Halt> + 'l;

impl Arrays {
    /// A place in an array.
    pub(crate) fn place(&self, id: ArrayId) -> &Place {
        &self.places[id as usize - self.forgotten]
    }

    /// Adds a place.
    pub(super) fn push(&mut self, place: Place) -> ArrayId {
        self.places.push_back(place);
        (self.forgotten + self.places.len() - 1) as ArrayId
    }

    /// Forgets the places before one, or all.
    pub(super) fn forget_places(&mut self, first: Option<ArrayId>) {
        let length = self.places.len();
        let count = first.map_or(length, |first| first as usize - self.forgotten);
        self.places.drain(..count);
        trim(&mut self.places);
        self.forgotten += count;
        self.readers.retain(|reader| reader.0 as usize >= self.forgotten);
    }

    /// The stacks of a text.
    pub(crate) fn set(&self, at: At) -> SetId {
        match at {
            At::Plain(set) => set,
            At::Array(id) => self.place(id).set,
        }
    }

    pub(super) fn reader(&self, id: ArrayId) -> Reader {
        let &Place { seen, phase, like, piece, .. } = self.place(id);
        Reader { seen, phase, like, before: piece, piece: Vec::new() }
    }

    /// The reader of a place in an array of any values.
    pub(super) fn nested(&self, id: ArrayId) -> Option<Nested> {
        let &Place { seen, phase: Phase::Nested, piece, .. } = self.place(id) else { return None };
        if let Some((_, reader)) = self.readers.iter().find(|reader| reader.0 == id) {
            return Some(reader.clone());
        }
        let text = piece.map(|piece| self.values.text(piece)).unwrap_or_default();
        let mut reader = Nested::replay(seen, &text, &self.values)?;
        reader.before = piece;
        Some(reader)
    }

    /// Reads what is forgotten again, which [`Self::reset`] does.
    pub(crate) fn try_out(&mut self, tries: bool) {
        self.tries = tries;
    }

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    pub(super) fn values_mut(&mut self) -> &mut Values {
        &mut self.values
    }

    /// What the items of a place are.
    pub(super) fn items(&self, id: ArrayId) -> UniqueItems {
        self.within_of(id).items
    }

    /// What is known of the frames of a place: it was asked for when the place was made.
    pub(super) fn within_of(&self, id: ArrayId) -> &Within {
        &self.within[&self.place(id).set]
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes()
            + self.places.capacity() * size_of::<Place>()
            + self.kept.bytes()
            + self.within.capacity() * (size_of::<(SetId, Within)>() + 1)
            + self.ways.capacity() * (size_of::<((SetId, usize), u32)>() + 1)
    }

    /// How much there is now.
    pub(crate) fn mark(&self) -> ArraysMark {
        ArraysMark { values: self.values.mark(), places: self.forgotten + self.places.len() }
    }

    /// Drops what was added since.
    pub(crate) fn reset(&mut self, mark: ArraysMark) {
        self.values.reset(mark.values);
        self.places.truncate(mark.places - self.forgotten);
        self.readers.retain(|reader| (reader.0 as usize) < mark.places);
    }

    /// Drops all that was read.
    pub(crate) fn clear(&mut self) {
        self.values = Values::default();
        self.kept = Kept::default();
        self.forget_places(None);
        self.places = VecDeque::new();
    }

    /// The place of one text with more stacks, in which no array is being read.
    pub(crate) fn unite<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        id: ArrayId,
        more: SetId,
    ) -> Result<ArrayId, Halt> {
        let place = *self.place(id);
        let set = stepper.sets.union(place.set, more)?;
        self.within(network, &mut stepper.sets, set)?;
        Ok(self.push(Place { set, ..place }))
    }

    /// Where a text stands after some bytes; `None` where they cannot follow, and how many could be read.
    pub(crate) fn advance<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        at: At,
        bytes: &[u8],
        pause: &mut Pause<'_, N>,
    ) -> Result<(Option<At>, usize), Halt> {
        let mut set = self.set(at);
        let mut reader = match at {
            At::Plain(_) => None,
            At::Array(id) => Some(self.open(id)?),
        };
        for (place, &byte) in bytes.iter().enumerate() {
            if place > 0 && place.is_multiple_of(CHUNK) {
                pause(stepper)?;
            }
            let class = network.alphabet().class(byte);
            let is_over = match &mut reader {
                None => false,
                Some(Open::Flat(array)) => {
                    self.read_flat(network, stepper, (array, &mut set), byte)?
                }
                Some(Open::Nested(array)) => {
                    match self.read_nested(network, stepper, (array, &mut set), byte)? {
                        Some(is_over) => is_over,
                        None if set == NONE => return Ok((None, place)),
                        None => continue,
                    }
                }
            };
            set = if set == NONE { NONE } else { stepper.step(set, class)? };
            if set == NONE {
                return Ok((None, place));
            }
            match &mut reader {
                None => {
                    if byte == b'[' {
                        let within = self.within(network, &mut stepper.sets, set)?;
                        reader = within.any.then(|| Open::new(within.items));
                    }
                }
                Some(_) if is_over => {
                    reader = None;
                    // What other stacks have begun.
                    let within = self.within(network, &mut stepper.sets, set)?;
                    if within.any {
                        match byte {
                            b'[' => reader = Some(Open::new(within.items)),
                            _ => return Err(Halt::Arrays),
                        }
                    }
                }
                Some(_) => {}
            }
        }
        let at = match reader {
            None => Some(At::Plain(set)),
            Some(array) => self.settle(network, stepper, set, array)?,
        };
        Ok((at, bytes.len()))
    }

    /// Reads a byte in an array of strings, numbers and literals, before the stacks read it. Removes the stacks in
    /// which the byte completes an item that the array already has. Returns whether the array has ended.
    fn read_flat<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        (array, set): (&mut Reader, &mut SetId),
        byte: u8,
    ) -> Result<bool, Halt> {
        let read = array.read(byte, &self.values);
        let mut is_over = read.end != End::Within;
        if let Some(key) = read.value {
            match self.values.has(array.seen, &key) {
                true => {
                    *set = self.part(network, &mut stepper.sets, *set, (0, 0))?;
                    is_over = true;
                }
                false => array.seen = self.values.add(array.seen, &key),
            }
        }
        if byte == b'[' && !is_over {
            self.refuse_another(network, stepper, *set)?;
        }
        Ok(is_over)
    }

    /// Reads a byte in an array of any values, as [`Self::read_flat`] does. Returns `None` if the byte opens an array
    /// within: the stacks have then read it.
    fn read_nested<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        (array, set): (&mut Nested, &mut SetId),
        byte: u8,
    ) -> Result<Option<bool>, Halt> {
        stepper.sets.spend(array.weight())?;
        let most = self.within(network, &mut stepper.sets, *set)?.most();
        array.keep_outermost(most as usize);
        if most > 0 && byte == b'[' && array.awaits_value() {
            *set = self.step_into(network, stepper, *set, array)?;
            return Ok(None);
        }
        let read = array.read(byte);
        let mut repeats = read.repeats;
        if let Some(key) = read.item {
            match self.values.has(array.seen, &key) {
                true => repeats = Some(0),
                false => {
                    let seen = self.values.add(array.seen, &key);
                    array.add(key, seen);
                }
            }
        }
        if let Some(level) = repeats {
            // Stacks that have no frame of that array go on.
            let kept = (0, level as u32);
            *set = self.part(network, &mut stepper.sets, *set, kept)?;
            array.keep_outermost(level);
        }
        Ok(Some(most == 0 || repeats == Some(0) || read.end != End::Within))
    }

    /// The reader of a place.
    fn open(&mut self, id: ArrayId) -> Result<Open, Halt> {
        if self.place(id).phase != Phase::Nested {
            return Ok(Open::Flat(self.reader(id)));
        }
        self.nested(id).map(Open::Nested).ok_or(Halt::Arrays)
    }

    /// Reads the bracket that opens an array in an item, and tells the reader whether stacks have a frame of
    /// it: those only that have frames of all arrays with unique items around it.
    pub(super) fn step_into<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        array: &mut Nested,
    ) -> Result<SetId, Halt> {
        let class = network.alphabet().class(b'[');
        let depth = array.depth() as u32;
        let before = self.within(network, &mut stepper.sets, set)?;
        for &count in before.counts.iter().filter(|&&count| count < depth) {
            let others = self.part(network, &mut stepper.sets, set, (count, count))?;
            let after = stepper.step(others, class)?;
            if after != NONE && self.within(network, &mut stepper.sets, after)?.most() > count {
                return Err(Halt::Arrays);
            }
        }
        let after = stepper.step(set, class)?;
        if after != NONE {
            let most = self.within(network, &mut stepper.sets, after)?.most();
            array.open_array(most > depth);
        }
        Ok(after)
    }

    /// An error where other stacks than those in an array begin one of their own.
    fn refuse_another<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
    ) -> Result<(), Halt> {
        let others = self.part(network, &mut stepper.sets, set, (0, 0))?;
        if others == NONE {
            return Ok(());
        }
        let after = stepper.step(others, network.alphabet().class(b'['))?;
        match after != NONE && self.within(network, &mut stepper.sets, after)?.any {
            true => Err(Halt::Arrays),
            false => Ok(()),
        }
    }

    /// The place of stacks and the array that they read, without the stacks that cannot be completed.
    fn settle<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        mut set: SetId,
        array: Open,
    ) -> Result<Option<At>, Halt> {
        let within = self.within(network, &mut stepper.sets, set)?;
        // Stacks with more frames are asked first: what they leave is asked for itself.
        for &count in within.counts.iter().rev().filter(|&&count| count > 0) {
            let part = self.part(network, &mut stepper.sets, set, (count, count))?;
            let can_end = match &array {
                Open::Flat(array) => self.can_end(network, stepper, part, array)?,
                Open::Nested(array) => {
                    let mut array = array.clone();
                    array.keep_outermost(count as usize);
                    self.can_end_nested(network, stepper, part, &array)?
                }
            };
            if !can_end {
                let fewer = self.part(network, &mut stepper.sets, set, (0, count - 1))?;
                let more = self.part(network, &mut stepper.sets, set, (count + 1, u32::MAX))?;
                set = match (fewer, more) {
                    (NONE, NONE) => return Ok(None),
                    (NONE, one) | (one, NONE) => one,
                    (fewer, more) => stepper.sets.union(fewer, more)?,
                };
            }
        }
        let within = self.within(network, &mut stepper.sets, set)?;
        if !within.any {
            return Ok(Some(At::Plain(set)));
        }
        let id = (self.forgotten + self.places.len()) as ArrayId;
        let place = match array {
            Open::Flat(Reader { seen, phase, like, before, piece }) => {
                Place { set, seen, phase, like, piece: self.values.piece(before, &piece)? }
            }
            Open::Nested(mut array) => {
                array.keep_outermost(within.most() as usize);
                let piece = self.values.piece(array.before, &array.text)?;
                let place =
                    Place { set, seen: array.seen, phase: Phase::Nested, like: None, piece };
                if !self.tries {
                    (array.before, array.text) = (piece, Vec::new());
                    self.readers.truncate(MOST_READERS - 1);
                    self.readers.push_front((id, array));
                }
                place
            }
        };
        Ok(Some(At::Array(self.push(place))))
    }
}

/// The items of the array that a state belongs to, if they are unique.
fn items_of(network: &Network, state: u32) -> Option<UniqueItems> {
    if state >= LABEL { None } else { network.unique_items(state) }
}
