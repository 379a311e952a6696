//! Decisions out of a fuzzer's bytes.

use arbitrary::Unstructured;

/// The bytes that are left. Numbers come from the front; past the end all numbers are 0.
pub struct Input<'a>(Unstructured<'a>);

impl<'a> Input<'a> {
    /// An input with all bytes left.
    pub fn new(data: &'a [u8]) -> Self {
        Self(Unstructured::new(data))
    }

    /// Whether no byte is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// A number below a bound, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        debug_assert!(bound > 0, "a bound of at least 1");
        self.0.int_in_range(0..=bound.max(1) - 1).unwrap_or(0)
    }

    /// One of the items, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// True for one byte in so many.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) + 1 == count
    }

    /// Four bytes as a number: small, near the greatest, or any.
    pub fn number(&mut self) -> u32 {
        match self.byte() {
            255 => u32::MAX - u32::from(self.byte()),
            254 => self.0.arbitrary().unwrap_or(0),
            small => u32::from(small),
        }
    }

    /// So many of the next bytes, or as many as are left.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let count = count.min(self.0.len());
        self.0.bytes(count).unwrap_or_default()
    }

    /// All bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.0.take_rest()
    }
}
