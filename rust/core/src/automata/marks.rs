//! Sets of numbers that are emptied at once.

/// Which of some numbers were met since all marks were taken away, which takes no time.
pub(crate) struct StampMarks {
    stamps: Vec<u32>,
    stamp: u32,
}

impl StampMarks {
    /// Marks on the numbers below `numbers`, none of them there yet.
    pub(crate) fn new(numbers: usize) -> Self {
        // No mark is 0.
        Self { stamps: vec![0; numbers], stamp: 1 }
    }

    /// Takes all marks away.
    pub(crate) fn clear(&mut self) {
        if self.stamp == u32::MAX {
            self.stamps.fill(0);
            self.stamp = 0;
        }
        self.stamp += 1;
    }

    /// Marks a number. True: it was not marked.
    #[inline]
    pub(crate) fn mark(&mut self, number: u32) -> bool {
        std::mem::replace(&mut self.stamps[number as usize], self.stamp) != self.stamp
    }
}
