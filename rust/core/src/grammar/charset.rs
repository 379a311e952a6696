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

    /// The set of one code point.
    ///
    /// # Panics
    /// If it passes 0x10FFFF.
    pub fn single(code_point: u32) -> Self {
        Self::new([(code_point, code_point)])
    }

    /// Every code point that a text can hold: all but the surrogates.
    pub fn scalar_values() -> Self {
        Self([(0, 0xD7FF), (0xE000, LAST)].into())
    }

    /// What is in one of both sets.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self::new(self.0.iter().chain(&other.0).copied())
    }

    /// What is in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut out = Vec::new();
        let (mut i, mut j) = (0, 0);
        while let (Some(&(a, b)), Some(&(c, d))) = (self.0.get(i), other.0.get(j)) {
            if a.max(c) <= b.min(d) {
                out.push((a.max(c), b.min(d)));
            }
            if b <= d { i += 1 } else { j += 1 }
        }
        Self(out.into())
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        self.intersection(&other.complement())
    }

    /// Whether a code point is in the set.
    pub fn contains(&self, code_point: u32) -> bool {
        let after = self.0.partition_point(|range| range.0 <= code_point);
        after > 0 && code_point <= self.0[after - 1].1
    }

    /// Whether everything in this set is in the other too.
    pub fn is_subset(&self, other: &Self) -> bool {
        let holder = |a: u32| other.0.partition_point(|range| range.0 <= a).checked_sub(1);
        self.0.iter().all(|&(a, b)| holder(a).is_some_and(|place| b <= other.0[place].1))
    }

    /// The number of code points in the set.
    pub fn len(&self) -> u32 {
        self.0.iter().map(|(a, b)| b - a + 1).sum()
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

    #[test]
    fn algebra_agrees_with_membership() {
        let samples = [
            CharSet::default(),
            CharSet::scalar_values(),
            CharSet::single(7),
            CharSet::new([(0, 3), (5, 9), (12, 12)]),
            CharSet::new([(2, 6), (8, 8), (10, 13), (LAST, LAST)]),
            CharSet::new([(0, LAST)]),
        ];
        let points = (0..20).chain([0xD7FF, 0xD800, 0xDFFF, 0xE000, LAST - 1, LAST]);
        let points: Vec<u32> = points.collect();
        for a in &samples {
            for b in &samples {
                let (or, and, without) = (a.union(b), a.intersection(b), a.difference(b));
                for &x in &points {
                    assert_eq!(or.contains(x), a.contains(x) || b.contains(x));
                    assert_eq!(and.contains(x), a.contains(x) && b.contains(x));
                    assert_eq!(without.contains(x), a.contains(x) && !b.contains(x));
                }
                assert_eq!(a.is_subset(b), without.is_empty());
                assert_eq!(and.len() + without.len(), a.len());
                assert_eq!(and.union(&without), *a);
            }
        }
    }
}
