//! Places of arrays as numbers, for saved states, and copies of them in other tables.

use super::{ArrayId, Arrays, Place};
use crate::budget::Halt;
use crate::network::Network;
use crate::stacks::{SetId, StackSets};
use crate::unique::encoding;
use crate::unique::nested::Nested;
use crate::unique::numbers;
use crate::unique::pieces::Piece;
use crate::unique::reader::{Escape, Phase, STRING};
use crate::unique::values::SeenId;
use rustc_hash::FxHashMap;

impl Arrays {
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
        let (mut seen, mut before) = (SeenId::NONE, Vec::new());
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
            let reader = Nested::replay(seen, &beginning, &self.values, |units| sets.spend(units));
            let reader = reader.ok()??;
            if (reader.depth() as u32) < within.most() {
                return None;
            }
        }
        let piece = self.values.piece(None, &beginning).ok()?;
        Some(self.push(Place { like, piece, ..Place::alone(set, seen, phase) }))
    }

    /// The places that were restored one after the other become those of one text.
    pub(crate) fn restored_together(
        &mut self,
        sets: &mut StackSets,
        places: &[ArrayId],
    ) -> Result<ArrayId, Halt> {
        let places = places.iter().map(|&id| (*self.place(id), None)).collect();
        self.add(sets, places)
    }

    /// What tells a text in an array from others of the same stacks: equal where the texts that may follow are.
    pub(crate) fn key(&self, id: ArrayId) -> Vec<u32> {
        if self.place(id).behind == 0 {
            return self.written(id);
        }
        let mut out = Vec::new();
        for id in self.places_of(id) {
            let written = self.written(id);
            out.extend([self.place(id).set, written.len() as u32]);
            out.extend(written);
        }
        out
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
    nodes: FxHashMap<SeenId, SeenId>,
    pieces: FxHashMap<Piece, Piece>,
}

impl Copying<'_> {
    /// The places of a text there, over copies of [`Arrays::sets`]: the first of them.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no room.
    pub(crate) fn copy(
        &mut self,
        id: ArrayId,
        sets: &[SetId],
        to: &mut Arrays,
    ) -> Result<ArrayId, Halt> {
        let first = (to.forgotten + to.places.len()) as ArrayId;
        let all = sets[sets.len() - 1];
        for (id, &set) in self.from.places_of(id).zip(sets) {
            self.copy_one(id, (set, all), to)?;
        }
        Ok(first)
    }

    fn copy_one(
        &mut self,
        id: ArrayId,
        (set, all): (SetId, SetId),
        to: &mut Arrays,
    ) -> Result<(), Halt> {
        let (place, from) = (self.from.place(id), &self.from.values);
        let seen = from.copy_node(place.seen, &mut to.values, &mut self.nodes);
        let piece = match place.piece {
            None => None,
            Some(piece) => from.pieces.copy(piece, &mut to.values.pieces, &mut self.pieces)?,
        };
        let like = place.like.and_then(|like| to.values.like(from.beginning(like)));
        to.within.insert(set, self.from.within_of(id).clone());
        to.push(Place { set, all, seen, piece, like, ..*place });
        Ok(())
    }

    /// The places of a text there that are kept, over copies of [`Arrays::kept_sets`]; all of them are copied in
    /// their order.
    pub(crate) fn copy_kept(&mut self, kept: ArrayId, sets: &[SetId], to: &mut Arrays) -> ArrayId {
        let (first, all) = (to.kept.len(), sets[sets.len() - 1]);
        for (kept, &set) in (kept..).zip(&sets[..sets.len() - 1]) {
            self.copy_kept_one(kept, (set, all), to);
        }
        first
    }

    fn copy_kept_one(&mut self, kept: u32, (set, all): (SetId, SetId), to: &mut Arrays) {
        let (place, from) = (*self.from.kept.place(kept), &self.from.values);
        let seen = from.copy_node(place.seen, &mut to.values, &mut self.nodes);
        let like = place.like.and_then(|like| to.values.like(from.beginning(like)));
        to.within.insert(set, self.from.within[&place.set].clone());
        to.kept.add_copy(&self.from.kept, kept, Place { set, all, seen, like, ..place });
    }
}
