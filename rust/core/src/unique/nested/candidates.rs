//! The items that the one which is being read may be equal to.

use crate::unique::encoding::{END, HEADER, Item};
use std::sync::Arc;

/// An item that the one which is being read may be equal to.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) item: Arc<Item>,
    /// Where in its encoding the innermost container is that is open, and those around it.
    pub(super) container: usize,
    pub(super) outer: Option<Arc<Outer>>,
    /// Where the value is that is being read.
    pub(super) value: usize,
    /// Where the next element is, in an array.
    pub(super) next: usize,
}

/// Where a container is that is open, and those around it.
#[derive(Debug)]
pub(super) struct Outer {
    container: usize,
    outer: Option<Arc<Outer>>,
}

impl Drop for Outer {
    /// One after the other: there may be many.
    fn drop(&mut self) {
        let mut outer = self.outer.take();
        while let Some(mut last) = outer.and_then(Arc::into_inner) {
            outer = last.outer.take();
        }
    }
}

impl Candidate {
    pub(super) fn new(item: Item) -> Self {
        Self { item: Arc::new(item), container: 0, outer: None, value: 0, next: 0 }
    }

    /// What its encoding says from the value on that is being read.
    pub(super) fn rest(&self) -> &[u8] {
        &self.item.encoding()[self.value..]
    }

    /// It in its value, which is a container.
    pub(super) fn opened(&self) -> Self {
        let outer = Outer { container: self.container, outer: self.outer.clone() };
        Self {
            item: self.item.clone(),
            container: self.value,
            outer: Some(Arc::new(outer)),
            value: self.value,
            next: self.value + HEADER,
        }
    }

    /// It behind the container that is open, if that is a value.
    pub(super) fn closed(&self, value: &[u8]) -> Option<Self> {
        let outer = self.outer.as_ref()?;
        let behind = self.behind(self.container, value)?;
        Some(Self { container: outer.container, outer: outer.outer.clone(), ..behind })
    }

    /// It behind the value at a place, if that is one.
    pub(super) fn behind(&self, place: usize, value: &[u8]) -> Option<Self> {
        let is_equal = self.item.encoding()[place..].starts_with(value);
        is_equal.then(|| Self { next: place + value.len(), ..self.clone() })
    }
}

/// An array with unique items that is open.
#[derive(Clone, Debug)]
pub(super) struct CandidateArray {
    /// Its place among the open containers.
    pub(super) frame: usize,
    /// All its items, in order, and the bytes that they hold.
    pub(super) items: Arc<Vec<Candidate>>,
    pub(super) bytes: usize,
    /// The items that the current one may be equal to. Where its innermost value is being read they stand
    /// in the order of that, and these are those in the range.
    pub(super) candidates: Arc<Vec<Candidate>>,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl CandidateArray {
    pub(super) fn new(frame: usize, mut items: Vec<Candidate>) -> Self {
        items.sort_unstable_by(|a, b| compare(a.rest(), b.rest()));
        let bytes = items.iter().map(|one| one.item.bytes()).sum();
        let (items, candidates) = (Arc::new(items), Arc::default());
        Self { frame, items, bytes, candidates, from: 0, to: 0 }
    }

    /// Adds an item; false where it is there.
    pub(super) fn add(&mut self, item: Item) -> bool {
        match self.items.binary_search_by(|one| compare(one.rest(), item.encoding())) {
            Ok(_) => false,
            Err(place) => {
                self.bytes += item.bytes();
                Arc::make_mut(&mut self.items).insert(place, Candidate::new(item));
                true
            }
        }
    }

    pub(super) fn current(&self) -> &[Candidate] {
        &self.candidates[self.from..self.to]
    }

    /// Keeps those whose value has a byte at a place, where they stand in order and are alike up to there.
    pub(super) fn narrow_at(&mut self, place: usize, byte: u8) {
        // No text has the byte that ends a scalar in a candidate.
        let current = if byte == END { &[] } else { self.current() };
        let at = |one: &Candidate| order(one.rest()[place]);
        let first = current.partition_point(|one| at(one) < order(byte));
        let last = current.partition_point(|one| at(one) <= order(byte));
        (self.from, self.to) = (self.from + first, self.from + last);
    }

    /// Keeps those whose scalar is one, where they stand in order.
    pub(super) fn narrow(&mut self, scalar: &[u8]) {
        let first = self.current().partition_point(|one| compare(one.rest(), scalar).is_lt());
        let equal = self.beginning_with(scalar).count();
        (self.from, self.to) = (self.from + first, self.from + first + equal);
    }

    /// Whether the scalar of one is this, where they stand in order.
    pub(super) fn has(&self, scalar: &[u8]) -> bool {
        self.beginning_with(scalar).next().is_some()
    }

    /// Those whose value begins so, where they stand in order.
    pub(super) fn beginning_with(&self, begin: &[u8]) -> impl Iterator<Item = &Candidate> {
        let current = self.current();
        let first = current.partition_point(|one| compare(one.rest(), begin).is_lt());
        current[first..].iter().take_while(|one| one.rest().starts_with(begin))
    }

    pub(super) fn set(&mut self, candidates: Vec<Candidate>) {
        (self.from, self.to) = (0, candidates.len());
        self.candidates = Arc::new(candidates);
    }

    pub(super) fn keep(&mut self, keeps: impl FnMut(&Candidate) -> Option<Candidate>) {
        if self.from < self.to {
            let kept = self.current().iter().filter_map(keeps).collect();
            self.set(kept);
        }
    }
}

/// The end of a scalar comes before all longer ones.
fn order(byte: u8) -> u8 {
    byte.wrapping_add(1)
}

pub(super) fn compare(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.iter().map(|&byte| order(byte)).cmp(b.iter().map(|&byte| order(byte)))
}
