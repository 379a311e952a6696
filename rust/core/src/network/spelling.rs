//! A part over the byte classes of a network: what linking needs of it whose cost grows with its
//! edges, kept until it is wanted over other classes.
//!
//! Networks that have most of their parts in common mostly tell the same bytes apart. So when a
//! tool is added to a request, what is left to do for the others is to copy tables.

use super::ClassSet;
use crate::automata::alphabet::Alphabet;
use std::sync::{Arc, Mutex, PoisonError};

/// The edges of a part over the classes of a network, and what its states can read first. The
/// states have the numbers of the part.
#[derive(Debug)]
pub(super) struct Spelled {
    pub(super) alphabet: Alphabet,
    pub(super) edge_starts: Vec<u32>,
    pub(super) edges: Vec<(u8, u32)>,
    /// What each state can read first, calls included.
    pub(super) first: Vec<ClassSet>,
}

/// Where a part keeps it.
#[derive(Debug, Default)]
pub(super) struct KeptSpelling(Mutex<Option<Arc<Spelled>>>);

impl KeptSpelling {
    pub(super) fn get(&self, alphabet: &Alphabet) -> Option<Arc<Spelled>> {
        // Nothing that panics stands between two changes that belong together.
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.as_ref().filter(|kept| kept.alphabet == *alphabet).cloned()
    }

    pub(super) fn put(&self, spelled: &Arc<Spelled>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(spelled.clone());
    }
}
