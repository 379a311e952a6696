//! What the bytes of a token alone say of the array in which it stands: whether its items are others than
//! all before, whatever follows.

use super::arrays::{Arrays, At};
use super::place::{ArrayId, Place};
use super::reader::{End, Escape, Phase, Reader, STRING};
use crate::budget::Halt;

/// Where a token has led, as far as its bytes say.
#[derive(Clone, Debug)]
pub(crate) enum Glance {
    /// Into no array whose items are unique, or behind the end of one.
    Outside,
    /// Into a string that is no beginning of an item before: any end of it is a new item.
    Apart,
    /// Behind an item, which was a new one.
    Behind,
    /// Into an item, which may still be one before.
    Reading(Box<Reader>),
    /// Somewhere else: behind a comma, say, and an item that the token itself holds.
    Unknown,
}

impl Glance {
    /// Whether a completion that may follow here is as good behind any other token that leads to the
    /// same stacks here.
    pub(crate) fn kind(&self) -> Option<u8> {
        match self {
            Self::Outside => Some(0),
            Self::Apart => Some(1),
            Self::Behind => Some(2),
            Self::Reading(_) | Self::Unknown => None,
        }
    }
}

impl Glance {
    /// Whether the next byte belongs to an escape that has begun.
    pub(crate) fn is_in_escape(&self) -> bool {
        let Self::Reading(reader) = self else { return false };
        matches!(reader.phase, Phase::String(escape) if escape != Escape::default())
    }
}

impl Arrays {
    /// For a text in a string that is no beginning of an item before: the place where it stands in a string that
    /// equals no item at all, also none that follows. `None` for others.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no number for so much text.
    pub(crate) fn any_apart(&mut self, id: ArrayId) -> Result<Option<ArrayId>, Halt> {
        let place = *self.place(id);
        let is_apart = place.phase == Phase::String(Escape::default()) && place.like.is_none();
        if !is_apart || place.is_one_of_many {
            return Ok(None);
        }
        // No string says this byte.
        let piece = self.values_mut().piece(None, &[STRING, 0xff])?;
        Ok(Some(self.push(Place { piece, ..place })))
    }

    /// Where a text stands.
    pub(crate) fn glance(&self, at: At) -> Glance {
        match at {
            At::Plain(_) => Glance::Outside,
            At::Array(id) if !self.is_alone(id, 1) => Glance::Unknown,
            At::Array(id) => self.seen_of(self.reader(id)),
        }
    }

    /// Where one more byte leads.
    pub(crate) fn glance_on(&self, from: &Glance, byte: u8) -> Glance {
        match (from, byte) {
            (Glance::Outside, _) => Glance::Outside,
            (Glance::Apart, b'"') | (Glance::Behind, b' ' | b'\t' | b'\n' | b'\r') => {
                Glance::Behind
            }
            (Glance::Behind, b']') => Glance::Outside,
            (Glance::Apart, b'\\') => {
                let phase = Phase::String(Escape::with(6));
                let piece = vec![STRING];
                Glance::Reading(Box::new(Reader { phase, piece, ..Reader::new() }))
            }
            (Glance::Apart, _) => Glance::Apart,
            (Glance::Reading(reader), _) => {
                let mut after = (**reader).clone();
                let read = after.read(byte, self.values());
                match (read.end, read.value) {
                    (End::Closed, _) => Glance::Outside,
                    (End::Within, None) => self.seen_of(after),
                    (End::Within, Some(_)) if after.phase == Phase::Behind => Glance::Behind,
                    _ => Glance::Unknown,
                }
            }
            (Glance::Behind | Glance::Unknown, _) => Glance::Unknown,
        }
    }

    fn seen_of(&self, reader: Reader) -> Glance {
        match reader.phase {
            Phase::String(escape) if escape == Escape::default() && reader.like.is_none() => {
                Glance::Apart
            }
            Phase::Behind => Glance::Behind,
            Phase::Nested => Glance::Unknown,
            _ => Glance::Reading(Box::new(reader)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(from: &Glance, text: &[u8]) -> Vec<Option<u8>> {
        let arrays = Arrays::default();
        let mut at = from.clone();
        let mut read = |&byte: &u8| {
            at = arrays.glance_on(&at, byte);
            at.kind()
        };
        text.iter().map(&mut read).collect()
    }

    #[test]
    fn a_string_apart_ends_as_a_new_item_and_nothing_is_known_behind_a_comma() {
        let (outside, apart, behind) = (Some(0), Some(1), Some(2));
        assert_eq!(kinds(&Glance::Apart, b"x\" ]"), [apart, behind, behind, outside]);
        assert_eq!(kinds(&Glance::Apart, b"\",\"a"), [behind, None, None, None]);
        assert_eq!(kinds(&Glance::Outside, b"[\"a\","), [outside; 5]);
    }

    #[test]
    fn escapes_are_read_to_their_end() {
        let apart = Some(1);
        assert_eq!(kinds(&Glance::Apart, br#"\"x"#), [None, apart, apart]);
        let expected = [None, None, None, None, None, apart];
        assert_eq!(kinds(&Glance::Apart, br"\u0061"), expected);
        // A high surrogate waits for a low one.
        assert_eq!(kinds(&Glance::Apart, br"\ud83d").last(), Some(&None));
    }

    #[test]
    fn the_first_item_of_an_array_is_like_none() {
        let start = Glance::Reading(Box::new(Reader::new()));
        assert_eq!(kinds(&start, br#" "a"]"#), [None, Some(1), Some(1), Some(2), Some(0)]);
        assert_eq!(kinds(&start, b"10]"), [None, None, Some(0)]);
        assert_eq!(kinds(&start, b"10 ,"), [None, None, Some(2), None]);
    }
}
