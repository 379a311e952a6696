//! Bytes that a text reads: its stacks, and beside them a reader for each array.
//!
//! Stacks that are in an array with unique items read it in one way, so one reader is enough for all of them.
//! Other stacks may begin an array at another place of the text, say those of free text in which a string of
//! the array is text. There the text goes on as two *readings*, each with stacks and a reader of its own.

use super::super::nested::Nested;
use super::super::place::{ArrayId, Place};
use super::super::reader::{End, Phase, Reader};
use super::super::values::{SeenId, Values};
use super::{Arrays, At, NewPlace, united};
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::Network;
use crate::stacks::{NONE, SetId, StackSets, Stepper};
use std::collections::VecDeque;
use std::ops::Deref;

/// A reader of an array.
enum ArrayReader {
    Flat(Reader),
    Nested(Nested),
}

impl ArrayReader {
    fn new(items: UniqueItems) -> Self {
        match items.nested {
            true => Self::Nested(Nested::new(SeenId::NONE, &Values::default())),
            false => Self::Flat(Reader::new()),
        }
    }
}

/// Stacks, and the array that those with frames are in.
struct Reading {
    set: SetId,
    array: Option<ArrayReader>,
}

/// Readings of a text that have not read all of its bytes, with the number of those that they have.
type Readings = VecDeque<(Reading, usize)>;

/// Bytes read between two looks of the caller.
const CHUNK: usize = 1_024;

/// What a caller does now and then while a long text is read: it may end that.
pub(crate) type Pause<'l, N> = dyn FnMut(&mut Stepper<N>) -> Result<(), Halt> + 'l;

impl Arrays {
    /// The places of one text with more stacks, in which no array is being read.
    pub(crate) fn unite<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        id: ArrayId,
        more: SetId,
    ) -> Result<ArrayId, Halt> {
        let places: Vec<_> = self.places_of(id).map(|id| (*self.place(id), None)).collect();
        self.add_beside(network, &mut stepper.sets, places, more)
    }

    /// Adds the places of one text with more stacks, in which no array is being read.
    fn add_beside(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        mut places: Vec<NewPlace>,
        more: SetId,
    ) -> Result<ArrayId, Halt> {
        if let Some((first, _)) = places.first_mut()
            && more != NONE
        {
            first.set = sets.union(first.set, more)?;
            self.within(network, sets, first.set)?;
        }
        self.add(sets, places)
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
        let mut todo = Readings::new();
        match at {
            At::Plain(set) => todo.push_back((Reading { set, array: None }, 0)),
            At::Array(id) => {
                for id in self.places_of(id) {
                    let (set, array) =
                        (self.place(id).set, Some(self.open(id, &mut stepper.sets)?));
                    todo.push_back((Reading { set, array }, 0));
                }
            }
        }
        let (mut read, mut plain, mut places) = (0, NONE, Vec::new());
        while let Some((mut reading, from)) = todo.pop_front() {
            let rest = (bytes, from);
            read = read.max(self.read(network, stepper, &mut reading, rest, &mut todo, pause)?);
            let sets = &mut stepper.sets;
            match reading {
                Reading { set: NONE, .. } => {}
                Reading { set, array: None } => plain = united(sets, plain, set)?,
                Reading { set, array: Some(array) } => {
                    match self.settle(network, stepper, set, array)? {
                        (NONE, _) => {}
                        (_, Some(place)) => places.push(place),
                        (set, None) => plain = united(&mut stepper.sets, plain, set)?,
                    }
                }
            }
        }
        let at = match places.is_empty() {
            true => (plain != NONE).then_some(At::Plain(plain)),
            false => {
                let id = self.add_beside(network, &mut stepper.sets, places, plain)?;
                Some(At::Array(id))
            }
        };
        Ok((at, read))
    }

    /// Reads the bytes behind the first ones; returns how many were read in all. The stacks are [`NONE`] where
    /// some cannot follow.
    fn read<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        reading: &mut Reading,
        (bytes, from): (&[u8], usize),
        others: &mut Readings,
        pause: &mut Pause<'_, N>,
    ) -> Result<usize, Halt> {
        for (place, &byte) in bytes.iter().enumerate().skip(from) {
            if place > from && place.is_multiple_of(CHUNK) {
                pause(stepper)?;
            }
            if byte == b'[' && reading.array.is_some() {
                self.part_ways(network, stepper, reading, place, others)?;
                if reading.set == NONE {
                    return Ok(place);
                }
            }
            let class = network.alphabet().class(byte);
            let Reading { set, array } = reading;
            let is_over = match array {
                None => false,
                Some(ArrayReader::Flat(array)) => {
                    self.read_flat(network, &mut stepper.sets, (array, set), byte)?
                }
                Some(ArrayReader::Nested(array)) => {
                    match self.read_nested(network, stepper, (array, set), byte)? {
                        Some(is_over) => is_over,
                        None if *set == NONE => return Ok(place),
                        None => continue,
                    }
                }
            };
            *set = if *set == NONE { NONE } else { stepper.step(*set, class)? };
            if *set == NONE {
                return Ok(place);
            }
            let begins = byte == b'[' && (array.is_none() || is_over);
            if is_over {
                *array = None;
            }
            if begins || is_over {
                let within = self.within(network, &mut stepper.sets, *set)?;
                if within.any {
                    match byte {
                        b'[' => *array = Some(ArrayReader::new(within.items)),
                        _ => return Err(Halt::Arrays),
                    }
                }
            }
        }
        Ok(bytes.len())
    }

    /// Before a bracket is read: stacks that begin an array with it which the reader of the others cannot read
    /// become a reading of their own.
    fn part_ways<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        reading: &mut Reading,
        place: usize,
        others: &mut Readings,
    ) -> Result<(), Halt> {
        let within = self.within(network, &mut stepper.sets, reading.set)?;
        if !within.any {
            // The array that was read is that of no stack any more.
            reading.array = None;
            return Ok(());
        }
        let depth = match &mut reading.array {
            Some(ArrayReader::Nested(array)) => {
                array.keep_outermost(within.most() as usize);
                match array.awaits_value() {
                    true => array.depth() as u32,
                    // Only stacks in no array can begin one where no value does.
                    false => 1,
                }
            }
            _ => 1,
        };
        let class = network.alphabet().class(b'[');
        let mut stay = NONE;
        let mut is_parted = false;
        for &count in within.counts.iter() {
            let part = self.part(network, &mut stepper.sets, reading.set, (count, count))?;
            let after = if count < depth { stepper.step(part, class)? } else { NONE };
            let begins =
                after != NONE && self.within(network, &mut stepper.sets, after)?.most() > count;
            if !begins {
                stay = united(&mut stepper.sets, stay, part)?;
                continue;
            }
            is_parted = true;
            let array = match &reading.array {
                Some(ArrayReader::Nested(array)) if count > 0 => {
                    let mut array = array.clone();
                    array.keep_outermost(count as usize);
                    Some(ArrayReader::Nested(array))
                }
                _ => None,
            };
            others.push_back((Reading { set: part, array }, place));
        }
        if is_parted {
            reading.set = stay;
        }
        Ok(())
    }

    /// Reads a byte in an array of strings, numbers and literals, before the stacks read it. Removes the stacks in
    /// which the byte completes an item that the array already has. Returns whether the array has ended.
    fn read_flat(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        (array, set): (&mut Reader, &mut SetId),
        byte: u8,
    ) -> Result<bool, Halt> {
        let read = array.read(byte, self.values());
        let mut is_over = read.end != End::Within;
        if let Some(key) = read.value {
            match self.values().has(array.seen, &key) {
                true => {
                    *set = self.part(network, sets, *set, (0, 0))?;
                    is_over = true;
                }
                false => array.seen = self.values_mut().add(array.seen, &key),
            }
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
            match self.values().has(array.seen, &key) {
                true => repeats = Some(0),
                false => {
                    let seen = self.values_mut().add(array.seen, &key);
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
    fn open(&mut self, id: ArrayId, sets: &mut StackSets) -> Result<ArrayReader, Halt> {
        if self.place(id).phase != Phase::Nested {
            return Ok(ArrayReader::Flat(self.reader(id)));
        }
        self.nested(id, sets)?.map(ArrayReader::Nested).ok_or(Halt::Arrays)
    }

    /// Reads the bracket that opens an array in an item, and tells the reader whether stacks have a frame of
    /// it: those only that have frames of all arrays with unique items around it.
    fn step_into<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        array: &mut Nested,
    ) -> Result<SetId, Halt> {
        let depth = array.depth() as u32;
        let after = stepper.step(set, network.alphabet().class(b'['))?;
        if after != NONE {
            let most = self.within(network, &mut stepper.sets, after)?.most();
            array.open_array(most > depth);
        }
        Ok(after)
    }

    /// The stacks without those that cannot be completed, and the place of the array that they read, if any.
    fn settle<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        mut set: SetId,
        array: ArrayReader,
    ) -> Result<(SetId, Option<NewPlace>), Halt> {
        let within = self.within(network, &mut stepper.sets, set)?;
        // Stacks with more frames are asked first: what they leave is asked for itself.
        for &count in within.counts.iter().rev().filter(|&&count| count > 0) {
            let part = self.part(network, &mut stepper.sets, set, (count, count))?;
            let can_end = match &array {
                ArrayReader::Flat(array) => self.can_end(network, stepper, part, array)?,
                ArrayReader::Nested(array) => {
                    let mut array = array.clone();
                    array.keep_outermost(count as usize);
                    self.can_end_nested(network, stepper, part, &array)?
                }
            };
            if !can_end {
                let fewer = self.part(network, &mut stepper.sets, set, (0, count - 1))?;
                let more = self.part(network, &mut stepper.sets, set, (count + 1, u32::MAX))?;
                set = united(&mut stepper.sets, fewer, more)?;
                if set == NONE {
                    return Ok((NONE, None));
                }
            }
        }
        let within = self.within(network, &mut stepper.sets, set)?;
        if !within.any {
            return Ok((set, None));
        }
        let (place, reader) = match array {
            ArrayReader::Flat(Reader { seen, phase, like, before, piece, .. }) => {
                let piece = self.values_mut().piece(before, &piece)?;
                (Place { like, piece, ..Place::alone(set, seen, phase) }, None)
            }
            ArrayReader::Nested(mut array) => {
                array.keep_outermost(within.most() as usize);
                let piece = self.values_mut().piece(array.before, &array.text)?;
                (array.before, array.text) = (piece, Vec::new());
                let place = Place::alone(set, array.seen, Phase::Nested);
                (Place { piece, ..place }, Some(array))
            }
        };
        Ok((set, Some((place, reader))))
    }
}
