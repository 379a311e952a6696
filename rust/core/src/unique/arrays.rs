//! Stacks, and beside them the array that they read.

use super::encoding;
use super::kept::Kept;
use super::nested::Nested;
use super::numbers;
use super::pieces::{Piece, trim};
use super::reader::{End, Escape, Phase, Reader, STRING};
use super::values::{Like, Mark, NodeId, Values};
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::{BOTTOM, Network};
use crate::stacks::{Entry, LABEL, NONE, SetId, StackSets, Stepper, beneath_first};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

/// A place in a text whose array is being read.
pub(crate) type ArrayId = u32;

/// Where a text stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum At {
    /// No array that matters is being read.
    Plain(SetId),
    /// One is.
    Array(ArrayId),
}

/// The stacks and the reader of a text in an array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) set: SetId,
    pub(super) seen: NodeId,
    pub(super) phase: Phase,
    pub(super) like: Option<Like>,
    pub(super) piece: Option<Piece>,
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
            true => Self::Nested(Nested::new(NodeId::NONE, &Values::default())),
            false => Self::Flat(Reader::new()),
        }
    }
}

/// So many readers are kept.
const MOST_READERS: usize = 4;

/// Bytes read between two looks of the caller.
const CHUNK: usize = 1_024;

/// What a caller does now and then while a long text is read: it may end that.
pub(crate) type Look<'l, N> = dyn FnMut(&mut Stepper<N>) -> Result<(), Halt> + 'l;

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

    /// What copies places into other tables.
    pub(crate) fn copying(&self) -> Copying<'_> {
        Copying { from: self, nodes: FxHashMap::default(), pieces: FxHashMap::default() }
    }

    /// A place without its stacks as numbers. Places with equal numbers and equal stacks allow the same
    /// texts; numbers that differ may do so too, as after `1.0` and `1.00`.
    pub(crate) fn written(&self, id: ArrayId) -> Vec<u32> {
        let place = self.place(id);
        let (phase, escape) = match place.phase {
            Phase::Open => (0, Escape::default()),
            Phase::Comma => (1, Escape::default()),
            Phase::String(escape) => (2, escape),
            Phase::Number => (3, Escape::default()),
            Phase::Literal => (4, Escape::default()),
            Phase::Behind => (5, Escape::default()),
            Phase::Nested => (6, Escape::default()),
        };
        let mut out = vec![phase];
        out.extend(escape.number());
        write_bytes(
            &place.piece.map(|piece| self.values.text(piece)).unwrap_or_default(),
            &mut out,
        );
        let mut read = self.values.read(place.seen);
        read.sort_unstable();
        read.into_iter().for_each(|key| write_bytes(key, &mut out));
        out
    }

    /// The place that was written, over stacks; `None` where it is none.
    pub(crate) fn restored(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
        written: &[u32],
    ) -> Option<ArrayId> {
        let (&[phase, high, rest], mut written) = written.split_first_chunk::<3>()?;
        let escape = Escape::of([high, rest])?;
        let phase = match phase {
            0 => Phase::Open,
            1 => Phase::Comma,
            2 => Phase::String(escape),
            3 => Phase::Number,
            4 => Phase::Literal,
            5 => Phase::Behind,
            6 => Phase::Nested,
            _ => return None,
        };
        let beginning = read_bytes(&mut written)?;
        let is_sound = match phase {
            Phase::String(_) => beginning.first() == Some(&STRING),
            Phase::Number => numbers::is_part(&beginning) && beginning.len() > 1,
            Phase::Nested => true,
            _ => beginning.is_empty(),
        };
        if !is_sound || escape != Escape::default() && !matches!(phase, Phase::String(_)) {
            return None;
        }
        let (mut seen, mut before) = (NodeId::NONE, Vec::new());
        while !written.is_empty() {
            let key = read_bytes(&mut written)?;
            let is_container = matches!(key.first(), Some(b'[' | b'{'));
            let is_key = encoding::is_key(&key) && (phase == Phase::Nested || !is_container);
            if !is_key || key <= before {
                return None;
            }
            seen = self.values.add(seen, &key);
            before = key;
        }
        let like = match phase {
            Phase::String(_) => self.values.like(&beginning),
            _ => None,
        };
        let within = self.within(network, sets, set).ok().filter(|within| within.any)?;
        if (phase == Phase::Nested) != within.items.nested && within.most() == 1 {
            return None;
        }
        if phase == Phase::Nested {
            let reader = Nested::replay(seen, &beginning, &self.values)?;
            if (reader.depth() as u32) < within.most() {
                return None;
            }
        }
        let piece = self.values.piece(None, &beginning).ok()?;
        Some(self.push(Place { set, seen, phase, like, piece }))
    }

    /// What is known of the frames of a set.
    pub(crate) fn within(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
    ) -> Result<Within, Halt> {
        if let Some(known) = self.within.get(&set) {
            return Ok(known.clone());
        }
        let mut steps = 0;
        let known = |set| self.within.contains_key(&set);
        let listed = beneath_first(sets, set, known, &mut |more| {
            steps += more;
            Ok(())
        })?;
        sets.spend(steps)?;
        for set in listed {
            let mut counts: Vec<u32> = Vec::new();
            let (mut items, mut fewest) = (UniqueItems::ENDLESS, u32::MAX);
            for (top, beneath) in sets.entries(set) {
                let below = self.within.get(&beneath).filter(|_| top != BOTTOM);
                let guard = items_of(network, top);
                match below {
                    None => counts.push(u32::from(guard.is_some())),
                    Some(below) => {
                        let more = u32::from(guard.is_some());
                        counts.extend(below.counts.iter().map(|count| count + more));
                        fewest = fewest.min(below.fewest);
                    }
                }
                let here = guard.or(below.filter(|below| below.any).map(|below| below.items));
                items = here.map_or(items, |here| items.both(here));
                fewest = guard.map_or(fewest, |guard| fewest.min(guard.least).min(guard.strings));
            }
            counts.sort_unstable();
            counts.dedup();
            let any = counts.iter().any(|&count| count > 0);
            self.within.insert(set, Within { any, counts: counts.into(), items, fewest });
        }
        Ok(self.within[&set].clone())
    }

    /// The stacks of a set that have a number of such frames in a range.
    pub(super) fn part(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
        (least, most): (u32, u32),
    ) -> Result<SetId, Halt> {
        // For each set that is met with a range its part: all, none, or what is made of those beneath.
        let mut parts: FxHashMap<(SetId, u32, u32), SetId> = FxHashMap::default();
        let mut work = vec![(set, least, most, false)];
        while let Some((set, least, most, is_ready)) = work.pop() {
            if parts.contains_key(&(set, least, most)) {
                continue;
            }
            sets.spend(1)?;
            let counts = self.within(network, sets, set)?.counts;
            let is_in = |count: &u32| (least..=most).contains(count);
            if counts.iter().all(is_in) || !counts.iter().any(is_in) {
                parts.insert((set, least, most), if is_in(&counts[0]) { set } else { NONE });
                continue;
            }
            let below = |top: u32| match items_of(network, top) {
                Some(_) => most.checked_sub(1).map(|most| (least.saturating_sub(1), most)),
                None => Some((least, most)),
            };
            let entries = sets.entries(set);
            if !is_ready {
                work.push((set, least, most, true));
                let entries = entries.iter().filter(|entry| entry.0 != BOTTOM);
                work.extend(entries.filter_map(|&(top, beneath)| {
                    below(top).map(|(least, most)| (beneath, least, most, false))
                }));
                continue;
            }
            let mut kept: Vec<Entry> = Vec::new();
            for (top, beneath) in entries {
                let part = match (top, below(top)) {
                    (BOTTOM, _) if least == 0 => Some(beneath),
                    (BOTTOM, _) | (_, None) => None,
                    (_, Some((least, most))) => parts.get(&(beneath, least, most)).copied(),
                };
                kept.extend(
                    part.filter(|&part| top == BOTTOM || part != NONE).map(|part| (top, part)),
                );
            }
            let part = if kept.is_empty() { NONE } else { sets.add(&kept)? };
            parts.insert((set, least, most), part);
        }
        Ok(parts[&(set, least, most)])
    }

    /// Where a text stands after some bytes; `None` where they cannot follow, and how many could be read.
    pub(crate) fn advance<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        at: At,
        bytes: &[u8],
        look: &mut Look<'_, N>,
    ) -> Result<(Option<At>, usize), Halt> {
        let mut set = self.set(at);
        let mut reader = match at {
            At::Plain(_) => None,
            At::Array(id) => Some(self.open(id)?),
        };
        for (place, &byte) in bytes.iter().enumerate() {
            if place > 0 && place.is_multiple_of(CHUNK) {
                look(stepper)?;
            }
            let class = network.alphabet().class(byte);
            let is_over = match &mut reader {
                None => false,
                Some(Open::Flat(array)) => {
                    let read = array.read(byte, &self.values);
                    let mut is_over = read.end != End::Within;
                    if let Some(key) = read.value {
                        match self.values.has(array.seen, &key) {
                            true => {
                                set = self.part(network, &mut stepper.sets, set, (0, 0))?;
                                is_over = true;
                            }
                            false => array.seen = self.values.add(array.seen, &key),
                        }
                    }
                    if byte == b'[' && !is_over {
                        self.refuse_another(network, stepper, set)?;
                    }
                    is_over
                }
                Some(Open::Nested(array)) => {
                    stepper.sets.spend(array.weight())?;
                    let most = self.within(network, &mut stepper.sets, set)?.most();
                    array.keep_outermost(most as usize);
                    if most > 0 && byte == b'[' && array.awaits_value() {
                        set = self.step_into(network, stepper, set, array)?;
                        if set == NONE {
                            return Ok((None, place));
                        }
                        continue;
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
                        set = self.part(network, &mut stepper.sets, set, kept)?;
                        array.keep_outermost(level);
                    }
                    most == 0 || repeats == Some(0) || read.end != End::Within
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

    /// Whether all stacks of a place are in so many arrays.
    pub(super) fn is_alone(&self, id: ArrayId, depth: usize) -> bool {
        self.within_of(id).are(depth as u32)
    }
}

/// Bytes behind their number, four in a word.
fn write_bytes(bytes: &[u8], out: &mut Vec<u32>) {
    out.push(bytes.len() as u32);
    out.extend(
        bytes
            .chunks(4)
            .map(|chunk| chunk.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))),
    );
}

/// The bytes that stand in front, which are taken away; `None` where there are no such.
fn read_bytes(from: &mut &[u32]) -> Option<Vec<u8>> {
    let (&length, rest) = from.split_first()?;
    let (words, rest) = rest.split_at_checked((length as usize).div_ceil(4))?;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    if bytes.drain(length as usize..).any(|byte| byte != 0) {
        return None;
    }
    *from = rest;
    Some(bytes)
}

/// Copies places into other tables.
pub(crate) struct Copying<'a> {
    from: &'a Arrays,
    nodes: FxHashMap<NodeId, NodeId>,
    pieces: FxHashMap<Piece, Piece>,
}

impl Copying<'_> {
    /// A place there, over a copy of its stacks.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no room.
    pub(crate) fn copy(
        &mut self,
        id: ArrayId,
        set: SetId,
        to: &mut Arrays,
    ) -> Result<ArrayId, Halt> {
        let (place, from) = (self.from.place(id), &self.from.values);
        let seen = from.copy_node(place.seen, &mut to.values, &mut self.nodes);
        let piece = match place.piece {
            None => None,
            Some(piece) => from.pieces.copy(piece, &mut to.values.pieces, &mut self.pieces)?,
        };
        let like = place.like.and_then(|like| to.values.like(from.beginning(like)));
        to.within.insert(set, self.from.within_of(id).clone());
        Ok(to.push(Place { set, seen, piece, like, ..*place }))
    }

    /// A place there that is kept, over a copy of its stacks; all of them are copied in their order.
    pub(crate) fn copy_kept(&mut self, kept: ArrayId, set: SetId, to: &mut Arrays) -> ArrayId {
        let (place, from) = (*self.from.kept.place(kept), &self.from.values);
        let seen = from.copy_node(place.seen, &mut to.values, &mut self.nodes);
        let like = place.like.and_then(|like| to.values.like(from.beginning(like)));
        to.within.insert(set, self.from.within[&place.set].clone());
        to.kept.add_copy(&self.from.kept, kept, Place { set, seen, like, ..place })
    }
}

/// The items of the array that a state belongs to, if they are unique.
fn items_of(network: &Network, state: u32) -> Option<UniqueItems> {
    if state >= LABEL { None } else { network.unique_items(state) }
}
