//! The beginnings of the items that are being read: each is a piece of text behind another beginning.

use super::numbers::Begun;
use crate::budget::Halt;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::num::NonZeroU32;

/// The beginning of an item: its last piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Piece(NonZeroU32);

impl Piece {
    fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Gives back room of which little is used.
pub(super) fn trim<T>(list: &mut VecDeque<T>) {
    if list.capacity() > 4 * list.len().max(256) {
        list.shrink_to(2 * list.len());
    }
}

/// One piece.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// The piece before.
    before: Option<Piece>,
    /// Where it ends in the text.
    end: u32,
    /// What the beginning up to it says if it is of a number.
    begun: Begun,
}

/// The pieces behind those that were forgotten.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    list: VecDeque<Link>,
    /// How many were forgotten, and how much text.
    forgotten: usize,
    text_forgotten: u32,
    text: Vec<u8>,
}

impl Pieces {
    /// How many there are, those that were forgotten too.
    pub(super) fn len(&self) -> usize {
        self.forgotten + self.list.len()
    }

    fn at(&self, piece: Piece) -> Link {
        self.list[piece.index() - self.forgotten]
    }

    fn begins(&self, piece: Piece) -> u32 {
        let before = (piece.index() - self.forgotten).checked_sub(1);
        before.map_or(self.text_forgotten, |before| self.list[before].end)
    }

    fn bytes_of(&self, piece: Piece) -> &[u8] {
        let (begins, ends) = (self.begins(piece), self.at(piece).end);
        &self.text[(begins - self.text_forgotten) as usize..(ends - self.text_forgotten) as usize]
    }

    /// Adds a piece behind another one.
    ///
    /// # Errors
    /// [`Halt::Bytes`] where there is no number for so much text.
    pub(super) fn add(
        &mut self,
        before: Option<Piece>,
        bytes: &[u8],
    ) -> Result<Option<Piece>, Halt> {
        if bytes.is_empty() {
            return Ok(before);
        }
        let end = self.text_forgotten as usize + self.text.len() + bytes.len();
        let end = u32::try_from(end).map_err(|_| Halt::Bytes)?;
        let number = u32::try_from(self.len() + 1).map_err(|_| Halt::Bytes)?;
        self.text.extend_from_slice(bytes);
        let begun = self.begun(before).with(bytes);
        self.list.push_back(Link { before, end, begun });
        Ok(NonZeroU32::new(number).map(Piece))
    }

    /// What a beginning says if it is of a number.
    pub(super) fn begun(&self, piece: Option<Piece>) -> Begun {
        piece.map_or_else(Begun::default, |piece| self.at(piece).begun)
    }

    /// The pieces of a beginning up to one of them, the last one first.
    fn chain(&self, piece: Piece, until: Option<Piece>) -> impl Iterator<Item = Piece> {
        let next = move |at: &Piece| self.at(*at).before;
        std::iter::successors(Some(piece), next).take_while(move |&at| Some(at) != until)
    }

    /// The text of a beginning.
    pub(super) fn text(&self, piece: Piece) -> Vec<u8> {
        self.text_behind(piece, None)
    }

    /// The text of a beginning behind another beginning of the same item.
    fn text_behind(&self, piece: Piece, before: Option<Piece>) -> Vec<u8> {
        let mut parts: Vec<&[u8]> =
            self.chain(piece, before).map(|piece| self.bytes_of(piece)).collect();
        parts.reverse();
        parts.concat()
    }

    /// The text of a beginning, behind another one where that is a beginning of it; else all of it.
    pub(super) fn since(&self, piece: Piece, before: Option<Piece>) -> (bool, Vec<u8>) {
        let is_behind = before.is_some_and(|before| self.chain(piece, None).any(|at| at == before));
        (is_behind, self.text_behind(piece, before.filter(|_| is_behind)))
    }

    /// Forgets the pieces before one, which becomes the first of its item; all where there is none.
    pub(super) fn forget_before(&mut self, first: Option<Piece>) {
        let Some(first) = first else {
            self.forgotten = self.len();
            self.text_forgotten += self.text.len() as u32;
            self.list.clear();
            self.text = Vec::new();
            return;
        };
        let mut root = first;
        while let Some(before) = self.at(root).before
            && before.index() + 1 == root.index()
        {
            root = before;
        }
        let Link { end, .. } = self.at(first);
        let begins = match self.at(root).before {
            // Its text stands in one place.
            None => self.begins(root),
            Some(_) => {
                let text = self.text(first);
                let rest = self.text.split_off((end - self.text_forgotten) as usize);
                let begins = end - text.len() as u32;
                (self.text, self.text_forgotten) = ([text, rest].concat(), begins);
                begins
            }
        };
        self.text.drain(..(begins - self.text_forgotten) as usize);
        self.text_forgotten = begins;
        self.list.drain(..first.index() - self.forgotten);
        trim(&mut self.list);
        self.forgotten = first.index();
        if let Some(first) = self.list.front_mut() {
            first.before = None;
        }
    }

    /// A beginning in other tables; `copies` are those that are there.
    pub(super) fn copy(
        &self,
        piece: Piece,
        to: &mut Self,
        copies: &mut FxHashMap<Piece, Piece>,
    ) -> Result<Option<Piece>, Halt> {
        let chain = self.chain(piece, None);
        let missing: Vec<Piece> = chain.take_while(|piece| !copies.contains_key(piece)).collect();
        let known = missing.last().map_or(Some(piece), |&last| self.at(last).before);
        let mut before = known.and_then(|piece| copies.get(&piece).copied());
        for piece in missing.into_iter().rev() {
            before = to.add(before, self.bytes_of(piece))?;
            copies.extend(before.map(|copy| (piece, copy)));
        }
        Ok(before)
    }

    /// Drops those after so many.
    pub(super) fn truncate(&mut self, length: usize) {
        self.list.truncate(length - self.forgotten);
        let end = self.list.back().map_or(self.text_forgotten, |last| last.end);
        self.text.truncate((end - self.text_forgotten) as usize);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.list.capacity() * size_of::<Link>() + self.text.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_forgotten_stays() {
        for branches in [false, true] {
            let mut pieces = Pieces::default();
            let mut before = pieces.add(None, b"another").expect("room");
            let mut texts = vec![];
            let mut text = Vec::new();
            for step in 0..40u8 {
                if step == 0 {
                    before = None;
                }
                if branches && step % 3 == 0 {
                    pieces.add(before, b"what another text reads").expect("room");
                }
                text.extend([step, step]);
                before = pieces.add(before, &[step, step]).expect("room");
                texts.push((before.expect("bytes"), text.clone()));
            }
            for first in [3, 3, 10, 39] {
                pieces.forget_before(Some(texts[first].0));
                for (piece, text) in &texts[first..] {
                    assert_eq!(pieces.text(*piece), *text);
                }
                let (is_behind, since) = pieces.since(texts[39].0, Some(texts[first].0));
                assert_eq!((is_behind, &*since), (true, &text[2 * first + 2..]));
            }
            assert_eq!(pieces.list.len(), 1);
            assert_eq!(pieces.text, text);
            pieces.forget_before(None);
            let more = pieces.add(None, b"new").expect("room").expect("bytes");
            assert_eq!((pieces.text(more), pieces.text.len()), (b"new".to_vec(), 3));
        }
    }
}
