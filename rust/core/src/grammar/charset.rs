//! Sets of code points.

/// The greatest code point.
const LAST: u32 = 0x10_FFFF;

/// A set of code points (0 to 0x10FFFF, surrogates included) as sorted, disjoint, non-adjacent
/// inclusive ranges: equal sets are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct CharSet(Box<[(u32, u32)]>);

impl CharSet {
    /// The set that the ranges cover; they may overlap and come in any order.
    ///
    /// # Panics
    /// If a range is backwards or passes 0x10FFFF; the parser refuses both before.
    pub fn new(ranges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut ranges: Vec<(u32, u32)> = ranges.into_iter().collect();
        assert!(
            ranges.iter().all(|&(a, b)| a <= b && b <= LAST),
            "ranges are checked by the parser"
        );
        ranges.sort_unstable();
        let mut out: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (a, b) in ranges {
            match out.last_mut() {
                Some((_, end)) if a <= end.saturating_add(1) => *end = (*end).max(b),
                _ => out.push((a, b)),
            }
        }
        Self(out.into())
    }

    /// Every code point that is not in this set.
    pub fn complement(&self) -> Self {
        let mut out = Vec::with_capacity(self.0.len() + 1);
        let mut next = 0;
        for &(a, b) in &self.0 {
            if next < a {
                out.push((next, a - 1));
            }
            next = b + 1;
        }
        if next <= LAST {
            out.push((next, LAST));
        }
        Self(out.into())
    }

    /// The ranges, sorted, disjoint, non-adjacent.
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.0
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_normalized() {
        let set = CharSet::new([(5, 9), (0, 2), (3, 4), (20, 30), (25, 26)]);
        assert_eq!(set.ranges(), [(0, 9), (20, 30)]);
        assert_eq!(set.complement().ranges(), [(10, 19), (31, LAST)]);
        assert_eq!(set.complement().complement(), set);
        assert!(CharSet::default().complement().complement().is_empty());
    }
}
