//! What all engines over one vocabulary share.

use crate::unique::ManyItems;
use crate::vocabulary::{Trie, Vocabulary};
use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// A vocabulary with the trie of all its tokens, and what arrays need to know of its tokens, made by the first engine
/// that needs them. Copies share all of that.
#[derive(Clone)]
pub struct SharedVocabulary(Arc<Prepared>);

struct Prepared {
    vocabulary: Vocabulary,
    with_ids: OnceLock<Arc<Trie>>,
    many_items: OnceLock<ManyItems>,
}

impl From<Vocabulary> for SharedVocabulary {
    fn from(vocabulary: Vocabulary) -> Self {
        let (with_ids, many_items) = Default::default();
        Self(Arc::new(Prepared { vocabulary, with_ids, many_items }))
    }
}

impl fmt::Debug for SharedVocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl Deref for SharedVocabulary {
    type Target = Vocabulary;

    #[inline]
    fn deref(&self) -> &Vocabulary {
        &self.0.vocabulary
    }
}

impl SharedVocabulary {
    /// Whether both are copies of one.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The trie of the textual tokens and of the tokens that a grammar takes whole.
    pub(super) fn trie_of_all(&self) -> &Arc<Trie> {
        self.0.with_ids.get_or_init(|| Arc::new(self.trie_with_ids()))
    }

    /// The tokens that hold more than one item of an array. The nodes of bytes have the same numbers in
    /// both tries.
    pub(super) fn many_items(&self) -> &ManyItems {
        self.0.many_items.get_or_init(|| ManyItems::new(self, self.trie()))
    }
}
