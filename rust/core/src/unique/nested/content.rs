//! What a container holds so far, shared between the readers of forks.

use std::sync::Arc;

/// What a container holds, encoded, in pieces that copies share: a copy takes a fraction of its length.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    pieces: Vec<Arc<[u8]>>,
    rest: Vec<u8>,
    /// Bytes of the pieces.
    length: usize,
    /// Items or members.
    count: usize,
}

/// A piece that copies share has at least so many bytes.
const SHARED: usize = 1 << 10;

impl Content {
    /// Adds an item, or a member: what it is encoded as, in parts.
    pub(super) fn push(&mut self, parts: &[&[u8]]) {
        parts.iter().for_each(|part| self.rest.extend_from_slice(part));
        self.count += 1;
        if self.rest.len() >= SHARED {
            self.length += self.rest.len();
            self.pieces.push(std::mem::take(&mut self.rest).into());
        }
    }

    /// The number of items or members.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// The encodings of the items or members, some after the other in each piece.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(|piece| &**piece).chain([&*self.rest])
    }

    /// The bytes of all encodings.
    pub(super) fn bytes(&self) -> usize {
        self.length + self.rest.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_what_a_container_holds() {
        let mut content = Content::default();
        for number in 0..1_000u32 {
            content.push(&[b"x", &number.to_be_bytes()]);
        }
        let mut copy = content.clone();
        copy.push(&[&[0; 5]]);
        assert!(content.pieces.iter().zip(&copy.pieces).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert!(content.rest.len() < SHARED);
        assert_eq!((content.len(), copy.len()), (1_000, 1_001));
        let expected: Vec<u8> =
            (0..1_000u32).flat_map(|number| [&b"x"[..], &number.to_be_bytes()].concat()).collect();
        assert_eq!(content.pieces().collect::<Vec<_>>().concat(), expected);
        assert_eq!((content.bytes(), copy.bytes()), (5_000, 5_005));
    }
}
