//! Stacks, and beside them the array that they read.

use super::numbers;
use super::reader::{End, Escape, Phase, Reader, STRING};
use super::values::{Like, Mark, NodeId, Piece, Values};
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::{BOTTOM, Network, contains};
use crate::stacks::{Entry, LABEL, NONE, SetId, StackSets, Stepper, beneath_first};
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Deref;

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
    seen: NodeId,
    phase: Phase,
    like: Option<Like>,
    piece: Option<Piece>,
}

/// Which stacks of a set have a frame of an array whose items are unique, and what its items are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Within {
    pub(crate) any: bool,
    pub(crate) all: bool,
    pub(crate) items: UniqueItems,
}

/// The arrays that the texts of one holder have read.
#[derive(Debug, Default)]
pub(crate) struct Arrays {
    values: Values,
    places: Vec<Place>,
    within: FxHashMap<SetId, Within>,
}

/// How much there is of everything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArraysMark {
    values: Mark,
    places: usize,
}

/// Bytes read between two looks of the caller.
const CHUNK: usize = 1_024;

/// What a caller does now and then while a long text is read: it may end that.
pub(crate) type Look<'l, N> = dyn FnMut(&mut Stepper<N>) -> Result<(), Halt> + 'l;

/// What the ends of an item are looked for with.
type Work = Vec<(SetId, Reader)>;

impl Arrays {
    /// A place in an array.
    pub(crate) fn place(&self, id: ArrayId) -> &Place {
        &self.places[id as usize]
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

    pub(super) fn values(&self) -> &Values {
        &self.values
    }

    /// What the items of a place are.
    pub(super) fn items(&self, id: ArrayId) -> UniqueItems {
        self.within_of(id).items
    }

    /// What is known of the frames of a place: it was asked for when the place was made.
    fn within_of(&self, id: ArrayId) -> Within {
        self.within[&self.place(id).set]
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.values.bytes()
            + self.places.capacity() * size_of::<Place>()
            + self.within.capacity() * (size_of::<(SetId, Within)>() + 1)
    }

    /// How much there is now.
    pub(crate) fn mark(&self) -> ArraysMark {
        ArraysMark { values: self.values.mark(), places: self.places.len() }
    }

    /// Drops what was added since.
    pub(crate) fn reset(&mut self, mark: ArraysMark) {
        self.values.reset(mark.values);
        self.places.truncate(mark.places);
    }

    /// Drops all that was read.
    pub(crate) fn clear(&mut self) {
        self.values = Values::default();
        self.places = Vec::new();
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
        self.places.push(Place { set, ..place });
        Ok(self.places.len() as ArrayId - 1)
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
        };
        let mut out = vec![phase];
        out.extend(escape.number());
        write_bytes(
            &place.piece.map(|piece| self.values.text(piece)).unwrap_or_default(),
            &mut out,
        );
        let mut read = self.values.read(place.seen);
        read.sort_unstable();
        read.iter().for_each(|key| write_bytes(key, &mut out));
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
            _ => return None,
        };
        let beginning = read_bytes(&mut written)?;
        let is_sound = match phase {
            Phase::String(_) => beginning.first() == Some(&STRING),
            Phase::Number => is_number(&beginning) && beginning.len() > 1,
            _ => beginning.is_empty(),
        };
        if !is_sound || escape != Escape::default() && !matches!(phase, Phase::String(_)) {
            return None;
        }
        let (mut seen, mut before) = (NodeId::NONE, Vec::new());
        while !written.is_empty() {
            let key = read_bytes(&mut written)?;
            let is_key = match key.first()? {
                &STRING => true,
                &numbers::NUMBER => is_number(&key),
                b'n' | b't' | b'f' => key.len() == 1,
                _ => false,
            };
            if !is_key || key <= before {
                return None;
            }
            seen = self.values.add(seen, key.clone());
            before = key;
        }
        let like = match phase {
            Phase::String(_) => self.values.like(&beginning),
            _ => None,
        };
        let piece = self.values.piece(None, &beginning).ok()?;
        self.within(network, sets, set).ok().filter(|within| within.any)?;
        self.places.push(Place { set, seen, phase, like, piece });
        Some(self.places.len() as ArrayId - 1)
    }

    /// What is known of the frames of a set.
    pub(crate) fn within(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
    ) -> Result<Within, Halt> {
        if let Some(&known) = self.within.get(&set) {
            return Ok(known);
        }
        let mut steps = 0;
        let known = |set| self.within.contains_key(&set);
        let listed = beneath_first(sets, set, known, &mut |more| {
            steps += more;
            Ok(())
        })?;
        sets.spend(steps)?;
        for set in listed {
            let mut out = Within { any: false, all: true, items: UniqueItems::ENDLESS };
            for (top, beneath) in sets.entries(set) {
                let here = match items_of(network, top) {
                    Some(items) => Within { any: true, all: true, items },
                    None => match self.within.get(&beneath).filter(|_| top != BOTTOM) {
                        Some(&beneath) => beneath,
                        None => Within { any: false, all: false, items: UniqueItems::ENDLESS },
                    },
                };
                out.any |= here.any;
                out.all &= here.all;
                out.items = out.items.both(here.items);
            }
            self.within.insert(set, out);
        }
        Ok(self.within[&set])
    }

    /// The stacks of a set that have such a frame, or the others.
    fn part(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
        with: bool,
    ) -> Result<SetId, Halt> {
        let whole = self.within(network, sets, set)?;
        if whole.all || !whole.any {
            return Ok(if whole.any == with { set } else { NONE });
        }
        let is_pure = |set: SetId| {
            let within = &self.within[&set];
            within.all || !within.any
        };
        let mut steps = 0;
        let listed = beneath_first(sets, set, is_pure, &mut |more| {
            steps += more;
            Ok(())
        })?;
        sets.spend(steps)?;
        let mut parts: FxHashMap<SetId, SetId> = FxHashMap::default();
        for set in listed {
            let mut entries: Vec<Entry> = Vec::new();
            for (top, beneath) in sets.entries(set) {
                if top == BOTTOM || items_of(network, top).is_some() {
                    if (top != BOTTOM) == with {
                        entries.push((top, beneath));
                    }
                    continue;
                }
                let beneath = match parts.get(&beneath) {
                    Some(&part) => part,
                    None if self.within[&beneath].any == with => beneath,
                    None => NONE,
                };
                if beneath != NONE {
                    entries.push((top, beneath));
                }
            }
            let part = if entries.is_empty() { NONE } else { sets.add(&entries)? };
            parts.insert(set, part);
        }
        Ok(parts[&set])
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
            At::Array(id) => Some(self.reader(id)),
        };
        for (place, &byte) in bytes.iter().enumerate() {
            if place > 0 && place.is_multiple_of(CHUNK) {
                look(stepper)?;
            }
            let class = network.alphabet().class(byte);
            let Some(array) = &mut reader else {
                set = stepper.step(set, class)?;
                if set == NONE {
                    return Ok((None, place));
                }
                if byte == b'[' && self.within(network, &mut stepper.sets, set)?.any {
                    reader = Some(Reader::new());
                }
                continue;
            };
            let read = array.read(byte, &self.values);
            let mut is_over = read.end != End::Within;
            if let Some(key) = read.value {
                match self.values.has(array.seen, &key) {
                    true => {
                        set = self.part(network, &mut stepper.sets, set, false)?;
                        is_over = true;
                    }
                    false => array.seen = self.values.add(array.seen, key),
                }
            }
            if byte == b'[' && !is_over {
                self.refuse_another(network, stepper, set)?;
            }
            set = if set == NONE { NONE } else { stepper.step(set, class)? };
            if set == NONE {
                return Ok((None, place));
            }
            if is_over {
                reader = None;
                // What other stacks have begun.
                if self.within(network, &mut stepper.sets, set)?.any {
                    match byte {
                        b'[' => reader = Some(Reader::new()),
                        _ => return Err(Halt::Arrays),
                    }
                }
            }
        }
        let at = match reader {
            None => Some(At::Plain(set)),
            Some(array) => self.settle(network, stepper, set, array)?,
        };
        Ok((at, bytes.len()))
    }

    /// An error where other stacks than those in an array begin one of their own.
    fn refuse_another<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
    ) -> Result<(), Halt> {
        if self.within(network, &mut stepper.sets, set)?.all {
            return Ok(());
        }
        let others = self.part(network, &mut stepper.sets, set, false)?;
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
        array: Reader,
    ) -> Result<Option<At>, Halt> {
        let within = self.within(network, &mut stepper.sets, set)?;
        if !within.any {
            return Ok(Some(At::Plain(set)));
        }
        if !self.can_end(network, stepper, set, within, &array)? {
            set = self.part(network, &mut stepper.sets, set, false)?;
            return Ok((set != NONE).then_some(At::Plain(set)));
        }
        let Reader { seen, phase, like, before, piece } = array;
        let piece = self.values.piece(before, &piece)?;
        self.places.push(Place { set, seen, phase, like, piece });
        Ok(Some(At::Array(self.places.len() as ArrayId - 1)))
    }

    /// Whether the item that is being read, or the next, may be another than all before.
    ///
    /// An item that is no longer like one before may be completed as its network says. Where it is like
    /// some, what may follow is looked through: at most as much as they have in common with each other.
    fn can_end<N: Deref<Target = Network>>(
        &mut self,
        network: &Network,
        stepper: &mut Stepper<N>,
        set: SetId,
        within: Within,
        array: &Reader,
    ) -> Result<bool, Halt> {
        if is_free(array, within.items, &self.values) {
            return Ok(true);
        }
        let set = self.part(network, &mut stepper.sets, set, true)?;
        let mut work: Work = vec![(set, array.clone())];
        let mut met: FxHashSet<(SetId, Vec<u8>)> = FxHashSet::default();
        while let Some((set, array)) = work.pop() {
            stepper.sets.spend(1)?;
            if is_free(&array, within.items, &self.values) {
                return Ok(true);
            }
            if array.phase == Phase::Number {
                let text = array.key(&self.values);
                let is_whole = text.last().is_some_and(u8::is_ascii_digit);
                let key = if is_whole { numbers::key(&text[1..]) } else { text };
                // The same number, and the same may follow.
                if !met.insert((set, key)) {
                    continue;
                }
            }
            let next = next_classes(network, &stepper.sets, set);
            for byte in (0..=255u8).rev() {
                let class = network.alphabet().class(byte);
                if !contains(&next, class) {
                    continue;
                }
                let mut after = array.clone();
                let read = after.read(byte, &self.values);
                if let Some(key) = read.value {
                    if !self.values.has(array.seen, &key) {
                        return Ok(true);
                    }
                    continue;
                }
                // White space leads back, and nothing else is an item.
                if read.end != End::Within || after.phase == array.phase && is_between(after.phase)
                {
                    continue;
                }
                if is_free(&after, within.items, &self.values) {
                    return Ok(true);
                }
                let set = stepper.step(set, class)?;
                if set != NONE {
                    work.push((set, after));
                }
            }
        }
        Ok(false)
    }

    /// Whether all stacks of a place are in its array.
    pub(crate) fn is_alone(&self, id: ArrayId) -> bool {
        self.within_of(id).all
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

/// Whether some bytes are a key of a number, or its beginning.
fn is_number(key: &[u8]) -> bool {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    key.split_first().is_some_and(|(&tag, text)| tag == numbers::NUMBER && text.iter().all(is_part))
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
            Some(piece) => from.copy_piece(piece, &mut to.values, &mut self.pieces)?,
        };
        let like = place.like.and_then(|like| to.values.like(from.beginning(like)));
        to.within.insert(set, self.from.within_of(id));
        to.places.push(Place { set, seen, piece, like, ..*place });
        Ok(to.places.len() as ArrayId - 1)
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
        Phase::Number => items.endless_numbers && !numbers::is_zero(&array.key(values)[1..]),
    }
}

/// The items of the array that a state belongs to, if they are unique.
fn items_of(network: &Network, state: u32) -> Option<UniqueItems> {
    if state >= LABEL { None } else { network.unique_items(state) }
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
