//! Places of texts that went on long ago: what a text needs that goes back there.

use super::arrays::{ArrayId, Arrays, Place};
use super::keys::make_room;
use super::pieces::Piece;
use crate::budget::Halt;
use crate::stacks::SetId;

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
    last: Option<Piece>,
}

impl Kept {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.old.capacity() * size_of::<Old>() + self.text.capacity()
    }

    fn text_of(&self, kept: u32) -> &[u8] {
        let before = (kept as usize).checked_sub(1);
        &self.text[before.map_or(0, |before| self.old[before].end)..self.old[kept as usize].end]
    }

    fn beginning(&self, kept: u32) -> Vec<u8> {
        let next = |&at: &u32| self.old[at as usize].before;
        let mut parts: Vec<&[u8]> =
            std::iter::successors(Some(kept), next).map(|at| self.text_of(at)).collect();
        parts.reverse();
        parts.concat()
    }

    fn push(&mut self, place: Place, before: Option<u32>, text: &[u8]) -> u32 {
        make_room(&mut self.text, text.len());
        self.text.extend_from_slice(text);
        make_room(&mut self.old, 1);
        self.old.push(Old { place, before, end: self.text.len() });
        self.old.len() as u32 - 1
    }

    fn truncate(&mut self, kept: u32) {
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

impl Arrays {
    /// Keeps a place for a text that goes back there, when others are forgotten; its number among those.
    pub(crate) fn keep(&mut self, id: ArrayId) -> ArrayId {
        let place = *self.place(id);
        let last = (self.kept.old.len() as u32).checked_sub(1);
        let (is_behind, text) = match place.piece {
            None => (false, Vec::new()),
            Some(piece) => self.values().pieces.since(piece, self.kept.last),
        };
        let before = last.filter(|_| is_behind);
        self.kept.last = place.piece;
        self.kept.push(place, before, &text)
    }

    /// A place for a text that goes back to one that was kept.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no room.
    pub(crate) fn revive(&mut self, kept: ArrayId) -> Result<ArrayId, Halt> {
        let place = *self.kept.place(kept);
        let beginning = self.kept.beginning(kept);
        let piece = match place.piece {
            None => None,
            Some(_) => self.values_mut().piece(None, &beginning)?,
        };
        Ok(self.push(Place { piece, ..place }))
    }

    /// The stacks of a place that is kept.
    pub(crate) fn kept_set(&self, kept: ArrayId) -> SetId {
        self.kept.place(kept).set
    }

    /// Forgets a place that was kept, and those after it.
    pub(crate) fn forget_kept(&mut self, kept: ArrayId) {
        self.kept.truncate(kept);
    }

    /// Forgets the places before those of some texts; of `last`, from which they go on, the beginning of
    /// its item stays.
    pub(crate) fn forget_before(
        &mut self,
        last: Option<ArrayId>,
        mut places: impl Iterator<Item = ArrayId>,
    ) {
        let mut first = None;
        let mut piece = last.and_then(|id| self.place(id).piece);
        for id in places.by_ref() {
            first = first.or(Some(id));
            piece = piece.or(self.place(id).piece);
            if piece.is_some() {
                break;
            }
        }
        self.forget_places(first);
        self.values_mut().pieces.forget_before(piece);
    }
}
