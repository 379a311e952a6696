//! Texts that go back to places that were forgotten.

use super::super::place::{ArrayId, Place};
use super::Arrays;
use crate::budget::Halt;
use crate::stacks::SetId;

impl Arrays {
    /// Keeps the places of a text that goes back there, when others are forgotten; the number of the first among
    /// those.
    pub(crate) fn keep(&mut self, id: ArrayId) -> ArrayId {
        let first = self.kept.len();
        self.places_of(id).for_each(|id| self.keep_one(id));
        first
    }

    fn keep_one(&mut self, id: ArrayId) {
        let place = *self.place(id);
        let last = self.kept.len().checked_sub(1);
        let (is_behind, text) = match place.piece {
            None => (false, Vec::new()),
            Some(piece) => self.values().pieces.since(piece, self.kept.last),
        };
        let before = last.filter(|_| is_behind);
        self.kept.last = place.piece;
        self.kept.push(place, before, &text);
    }

    /// Places for a text that goes back to some that were kept: the first of them.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no room.
    pub(crate) fn revive(&mut self, kept: ArrayId) -> Result<ArrayId, Halt> {
        let behind = ArrayId::from(self.kept.place(kept).behind);
        let first = self.revive_one(kept)?;
        for kept in kept + 1..=kept + behind {
            self.revive_one(kept)?;
        }
        Ok(first)
    }

    fn revive_one(&mut self, kept: u32) -> Result<ArrayId, Halt> {
        let place = *self.kept.place(kept);
        let beginning = self.kept.beginning(kept);
        let piece = match place.piece {
            None => None,
            Some(_) => self.values_mut().piece(None, &beginning)?,
        };
        Ok(self.push(Place { piece, ..place }))
    }

    /// The stacks of the places of a text that are kept, each by itself, and all of them.
    pub(crate) fn kept_sets(&self, kept: ArrayId) -> Vec<SetId> {
        let Place { all, behind, .. } = *self.kept.place(kept);
        let own = (kept..=kept + ArrayId::from(behind)).map(|kept| self.kept.place(kept).set);
        own.chain([all]).collect()
    }

    /// The stacks of the places of a text that are held, each by itself, and all of them.
    pub(crate) fn sets(&self, id: ArrayId) -> Vec<SetId> {
        self.own_sets(id).chain([self.place(id).all]).collect()
    }

    /// The stacks of the places of a text, each by itself.
    pub(crate) fn own_sets(&self, id: ArrayId) -> impl Iterator<Item = SetId> {
        self.places_of(id).map(|id| self.place(id).set)
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
        places: impl Iterator<Item = ArrayId>,
    ) {
        let mut first = None;
        let mut piece = last.and_then(|id| self.place(id).piece);
        for id in places {
            // The beginnings of several items stand in each other's way.
            if self.place(id).is_one_of_many {
                return;
            }
            first = first.or(Some(id));
            piece = piece.or(self.place(id).piece);
        }
        if last.is_some_and(|id| self.place(id).is_one_of_many) {
            return;
        }
        self.forget_places(first);
        self.values_mut().pieces.forget_before(piece);
    }
}
