//! Stacks of the parser that share what lies below.

use rustc_hash::FxBuildHasher;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

#[derive(Debug)]
struct StackCell {
    state: u32,
    depth: u32,
    /// Of the whole stack down from here.
    hash: u64,
    below: Option<Arc<StackCell>>,
}

/// A stack of states, never empty; copies share all of it.
#[derive(Clone, Debug)]
pub struct Stack(Arc<StackCell>);

impl Stack {
    /// A stack of one state.
    pub fn new(state: u32) -> Self {
        Self(Arc::new(StackCell {
            state,
            depth: 1,
            hash: FxBuildHasher.hash_one((state, 0u64)),
            below: None,
        }))
    }

    /// The stack with one more state on top.
    #[must_use]
    pub fn with(&self, state: u32) -> Self {
        let below = Some(self.0.clone());
        let hash = FxBuildHasher.hash_one((state, self.0.hash));
        Self(Arc::new(StackCell { state, depth: self.0.depth + 1, hash, below }))
    }

    /// The state on top.
    #[inline]
    pub fn top(&self) -> u32 {
        self.0.state
    }

    /// The number of states.
    pub fn depth(&self) -> usize {
        self.0.depth as usize
    }

    /// The states, the top first.
    pub fn states(&self) -> impl Iterator<Item = u32> + '_ {
        let mut next = Some(&*self.0);
        std::iter::from_fn(move || {
            let node = next?;
            next = node.below.as_deref();
            Some(node.state)
        })
    }

    /// The stack without so many states on top; `None` where none would be left.
    pub fn below(&self, count: usize) -> Option<Self> {
        let mut node = &self.0;
        for _ in 0..count {
            node = node.below.as_ref()?;
        }
        Some(Self(node.clone()))
    }
}

impl PartialEq for Stack {
    fn eq(&self, other: &Self) -> bool {
        let (mut one, mut two) = (&self.0, &other.0);
        loop {
            if Arc::ptr_eq(one, two) {
                return true;
            }
            let differs = one.hash != two.hash || one.depth != two.depth || one.state != two.state;
            if differs {
                return false;
            }
            match (&one.below, &two.below) {
                (Some(a), Some(b)) => (one, two) = (a, b),
                (None, None) => return true,
                _ => return false,
            }
        }
    }
}

impl Eq for Stack {}

impl Hash for Stack {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.0.hash.hash(hasher);
    }
}

impl Drop for StackCell {
    /// Deep stacks are let go of one by one: not by recursion.
    fn drop(&mut self) {
        let mut next = self.below.take();
        while let Some(node) = next {
            next = Arc::into_inner(node).and_then(|mut node| node.below.take());
        }
    }
}
