//! Lists that a background thread frees when they are long.
//!
//! Freeing a million rules takes tens of milliseconds. A caller that cancels a call should not wait for
//! that.

use std::ops::{Deref, DerefMut};

/// A background thread frees lists of more items than this. Freeing fewer items costs less than
/// starting a thread.
const MANY: usize = 1 << 14;
/// The same bound in bytes, for lists whose items own no memory of their own.
const MANY_BYTES: usize = 8 << 20;

/// A list that a background thread frees if it is long.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Apart<T: Send + 'static>(Vec<T>);

impl<T: Send + 'static> Apart<T> {
    /// The list itself. Its new owner frees it.
    pub(crate) fn into_list(mut self) -> Vec<T> {
        std::mem::take(&mut self.0)
    }
}

impl<T: Send + 'static> Default for Apart<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Send + 'static> From<Vec<T>> for Apart<T> {
    fn from(items: Vec<T>) -> Self {
        Self(items)
    }
}

impl<T: Send + 'static> Deref for Apart<T> {
    type Target = Vec<T>;

    #[inline]
    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T: Send + 'static> DerefMut for Apart<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Send + 'static> Drop for Apart<T> {
    fn drop(&mut self) {
        let is_long = match std::mem::needs_drop::<T>() {
            true => self.0.len() > MANY,
            false => self.0.capacity() > MANY_BYTES / size_of::<T>().max(1),
        };
        if is_long {
            let items = std::mem::take(&mut self.0);
            let thread = std::thread::Builder::new().name("tokfold-free".to_owned());
            // Where no thread can be had the list is freed here.
            drop(thread.spawn(move || drop(items)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};
    use std::thread::{ThreadId, current};

    /// Tells in which thread it is freed.
    struct Tells(Sender<ThreadId>);

    impl Drop for Tells {
        fn drop(&mut self) {
            let _ = self.0.send(current().id());
        }
    }

    #[test]
    fn long_lists_are_freed_apart_and_short_ones_here() {
        for (count, is_apart) in [(MANY, false), (MANY + 1, true)] {
            let (sender, receiver) = channel();
            let items: Vec<Tells> = (0..count).map(|_| Tells(sender.clone())).collect();
            drop((Apart::from(items), sender));
            let freed: Vec<ThreadId> = receiver.iter().collect();
            assert_eq!(freed.len(), count);
            assert!(freed.iter().all(|&thread| (thread != current().id()) == is_apart));
        }
    }
}
