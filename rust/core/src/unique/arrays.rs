//! Stacks, and beside them the arrays that they read. `advance`: bytes; `frames`: which stacks are in how many
//! arrays; `readers`: those of the last places; `saved`: places as numbers, and in other tables; `back`: texts that go
//! back to a place that was forgotten.

mod advance;
mod back;
mod frames;
mod readers;
mod saved;

pub(crate) use advance::Pause;
pub(crate) use saved::Copying;

use super::kept::Kept;
use super::nested::Nested;
use super::pieces::trim;
use super::place::{ArrayId, Place};
use super::reader::{Phase, Reader};
use super::values::{Mark, Values};
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::Network;
use crate::stacks::{LABEL, NONE, SetId, StackSets};
use readers::Readers;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
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
    readers: Readers,
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

/// A place, and its reader where that is worth while to keep.
type NewPlace = (Place, Option<Nested>);

/// So many arrays that begin at different places are read at once.
pub(super) const MOST_ARRAYS: usize = 64; // fits a byte

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
        self.readers.retain(|id| id as usize >= self.forgotten);
    }

    /// The stacks of a text.
    pub(crate) fn set(&self, at: At) -> SetId {
        match at {
            At::Plain(set) => set,
            At::Array(id) => self.place(id).all,
        }
    }

    /// The places of all arrays that a text reads, the one that began first in front.
    pub(crate) fn places_of(&self, id: ArrayId) -> impl Iterator<Item = ArrayId> + use<> {
        id..=id + ArrayId::from(self.place(id).behind)
    }

    /// Adds the places of one text, with the readers that are worth while to keep.
    ///
    /// # Errors
    /// [`Halt::Arrays`] where these are too many.
    fn add(&mut self, sets: &mut StackSets, places: Vec<NewPlace>) -> Result<ArrayId, Halt> {
        if places.len() > MOST_ARRAYS {
            return Err(Halt::Arrays);
        }
        let mut all = NONE;
        for (place, _) in &places {
            all = united(sets, all, place.set)?;
        }
        let (first, count) = ((self.forgotten + self.places.len()) as ArrayId, places.len());
        for (number, (place, reader)) in places.into_iter().enumerate() {
            let behind = (count - 1 - number) as u8;
            let id = self.push(Place { all, behind, is_one_of_many: count > 1, ..place });
            if let Some(reader) = reader.filter(|_| !self.tries) {
                self.readers.keep(id, reader, 2 * count);
            }
        }
        Ok(first)
    }

    /// Keeps the readers of a text in arrays of any values, which are read again from its text otherwise.
    ///
    /// # Errors
    /// Those of [`StackSets::spend`].
    pub(crate) fn keep_readers(&mut self, id: ArrayId, sets: &mut StackSets) -> Result<(), Halt> {
        for id in self.places_of(id) {
            if self.readers.get(id).is_none()
                && let Some(reader) = self.nested(id, sets)?
            {
                self.readers.keep(id, reader, 2 * MOST_ARRAYS);
            }
        }
        Ok(())
    }

    /// Whether no reader of a text has to be read again from its text.
    pub(crate) fn has_readers(&self, id: ArrayId) -> bool {
        let is_there = |id| self.place(id).phase != Phase::Nested || self.readers.get(id).is_some();
        self.places_of(id).all(is_there)
    }

    /// Whether it is soon seen which tokens repeat an item: of any values only in a scalar of one that differs from
    /// all before.
    pub(crate) fn is_soon_seen(&self, id: ArrayId) -> bool {
        let is_soon_seen = |reader: &Nested| reader.is_apart() && !reader.is_between();
        self.places_of(id).all(|id| match self.place(id).phase {
            Phase::Nested => self.readers.get(id).is_some_and(is_soon_seen),
            _ => true,
        })
    }

    pub(super) fn reader(&self, id: ArrayId) -> Reader {
        let &Place { seen, phase, like, piece, .. } = self.place(id);
        let begun = self.values.begun(piece);
        Reader { seen, phase, like, before: piece, piece: Vec::new(), begun }
    }

    /// The reader of a place in an array of any values, if it is one.
    ///
    /// # Errors
    /// Those of [`StackSets::spend`].
    fn nested(&self, id: ArrayId, sets: &mut StackSets) -> Result<Option<Nested>, Halt> {
        let &Place { seen, phase: Phase::Nested, piece, .. } = self.place(id) else {
            return Ok(None);
        };
        if let Some(reader) = self.readers.get(id) {
            return Ok(Some(reader.clone()));
        }
        let text = piece.map(|piece| self.values.text(piece)).unwrap_or_default();
        let reader = Nested::replay(seen, &text, &self.values, |units| sets.spend(units))?;
        Ok(reader.map(|mut reader| {
            reader.before = piece;
            reader
        }))
    }

    /// The reader of a place in an array of any values that was kept.
    pub(super) fn kept_reader(&self, id: ArrayId) -> Option<&Nested> {
        self.readers.get(id)
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
            + self.readers.bytes()
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
        self.readers.retain(|id| (id as usize) < mark.places);
    }

    /// Drops all that was read.
    pub(crate) fn clear(&mut self) {
        self.values = Values::default();
        self.kept = Kept::default();
        self.forget_places(None);
        self.places = VecDeque::new();
    }
}

/// All stacks of two sets.
fn united(sets: &mut StackSets, left: SetId, right: SetId) -> Result<SetId, Halt> {
    match (left, right) {
        (NONE, one) | (one, NONE) => Ok(one),
        _ => sets.union(left, right),
    }
}

/// The items of the array that a state belongs to, if they are unique.
fn items_of(network: &Network, state: u32) -> Option<UniqueItems> {
    if state >= LABEL { None } else { network.unique_items(state) }
}
