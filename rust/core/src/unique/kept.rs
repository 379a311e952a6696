//! Places of texts that went on long ago: what a text needs that goes back there.

use super::keys::make_room;
use super::pieces::Piece;
use super::place::Place;

/// A place, with the beginning of its item apart.
#[derive(Clone, Copy, Debug)]
struct Old {
    /// Its piece says only whether there is one.
    place: Place,
    /// What the beginning goes on from.
    before: Option<u32>,
    /// Where its text ends, behind that of the one before.
    end: usize,
}

/// The places that are kept, oldest first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    old: Vec<Old>,
    text: Vec<u8>,
    /// The piece of the last one, if it has one.
    pub(super) last: Option<Piece>,
}

impl Kept {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.old.capacity() * size_of::<Old>() + self.text.capacity()
    }

    /// How many there are.
    pub(super) fn len(&self) -> u32 {
        self.old.len() as u32
    }

    fn text_of(&self, kept: u32) -> &[u8] {
        let before = (kept as usize).checked_sub(1);
        &self.text[before.map_or(0, |before| self.old[before].end)..self.old[kept as usize].end]
    }

    pub(super) fn beginning(&self, kept: u32) -> Vec<u8> {
        let next = |&at: &u32| self.old[at as usize].before;
        let mut parts: Vec<&[u8]> =
            std::iter::successors(Some(kept), next).map(|at| self.text_of(at)).collect();
        parts.reverse();
        parts.concat()
    }

    pub(super) fn push(&mut self, place: Place, before: Option<u32>, text: &[u8]) -> u32 {
        make_room(&mut self.text, text.len());
        self.text.extend_from_slice(text);
        make_room(&mut self.old, 1);
        self.old.push(Old { place, before, end: self.text.len() });
        self.old.len() as u32 - 1
    }

    pub(super) fn truncate(&mut self, kept: u32) {
        if (kept as usize) < self.old.len() {
            self.old.truncate(kept as usize);
            self.text.truncate(self.old.last().map_or(0, |last| last.end));
            self.last = None;
        }
    }

    /// The place of one.
    pub(super) fn place(&self, kept: u32) -> &Place {
        &self.old[kept as usize].place
    }

    /// Adds one of another table.
    pub(super) fn add_copy(&mut self, from: &Self, kept: u32, place: Place) -> u32 {
        self.push(place, from.old[kept as usize].before, from.text_of(kept))
    }
}
