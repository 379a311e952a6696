//! What a container holds so far, shared between the readers of forks.

use std::sync::Arc;

/// What a container holds, in parts that copies share: a copy takes a fraction of its length.
#[derive(Clone, Debug, Default)]
pub(super) struct Content {
    parts: Vec<Arc<Vec<Part>>>,
    rest: Vec<Part>,
}

/// An item or a member, encoded; of a member with its name.
pub(super) type Part = (Vec<u8>, Arc<[u8]>);

/// So many are in a part that copies share.
const SHARED: usize = 64;

impl Content {
    pub(super) fn push(&mut self, part: Part) {
        self.rest.push(part);
        if self.rest.len() == SHARED {
            self.parts.push(Arc::new(std::mem::take(&mut self.rest)));
        }
    }

    pub(super) fn len(&self) -> usize {
        SHARED * self.parts.len() + self.rest.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Part> {
        self.parts.iter().flat_map(|part| part.iter()).chain(&self.rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_share_what_a_container_holds() {
        let mut content = Content::default();
        for number in 0..1_000u32 {
            content.push((Vec::new(), number.to_be_bytes().to_vec().into()));
        }
        let mut copy = content.clone();
        copy.push((Vec::new(), Arc::default()));
        assert!(content.parts.iter().zip(&copy.parts).all(|(a, b)| Arc::ptr_eq(a, b)));
        assert!(content.rest.len() < SHARED);
        assert_eq!((content.len(), copy.len()), (1_000, 1_001));
        let values = content.iter().map(|part| part.1.to_vec());
        assert!(values.eq((0..1_000u32).map(|number| number.to_be_bytes().to_vec())));
    }
}
