//! Texts that go back to places that were forgotten.

use super::super::place::{ArrayId, Place};
use super::Arrays;
use crate::budget::Halt;
use crate::stacks::SetId;

impl Arrays {
    /// Keeps a place for a text that goes back there, when others are forgotten; its number among those.
    pub(crate) fn keep(&mut self, id: ArrayId) -> ArrayId {
        let place = *self.place(id);
        let last = self.kept.len().checked_sub(1);
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
