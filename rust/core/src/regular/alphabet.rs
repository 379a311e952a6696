//! Classes of code points.
//!
//! An alphabet is a list of cuts: from each cut on to the next, all code points are of one class.
//! Class [`REST`] is that of U+10FFFF, which hardly any text and no range of a pattern names, so
//! that it is the class of what is not named. Surrogates are no scalar values; they go with U+D7FF,
//! so that two alphabets that agree on scalar values are equal.

use crate::grammar::CharSet;
use rustc_hash::FxHashMap;

/// The class of U+10FFFF.
pub(super) const REST: u32 = 0;
/// The greatest code point.
pub(super) const LAST: u32 = 0x10_FFFF;
const FIRST_SURROGATE: u32 = 0xD800;
const AFTER_SURROGATES: u32 = 0xE000;

/// A partition of the scalar values.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ScalarAlphabet {
    /// Where another class begins, and which; the first begins at 0.
    cuts: Box<[(u32, u32)]>,
    /// The number of classes.
    len: u32,
}

/// Ranges of code points by class; surrogates are in none.
#[derive(Clone, Debug)]
pub(super) struct ClassRanges {
    starts: Vec<u32>,
    ranges: Vec<(u32, u32)>,
}

impl ClassRanges {
    /// The ranges of a class, in order.
    pub(super) fn of(&self, class: u32) -> &[(u32, u32)] {
        let class = class as usize;
        &self.ranges[self.starts[class] as usize..self.starts[class + 1] as usize]
    }
}

/// The place from which code points differ: never between surrogates.
fn cut_at(code_point: u32) -> u32 {
    match code_point {
        FIRST_SURROGATE..AFTER_SURROGATES => AFTER_SURROGATES,
        other => other,
    }
}

impl ScalarAlphabet {
    /// One class.
    pub(super) fn trivial() -> Self {
        Self { cuts: [(0, REST)].into(), len: 1 }
    }

    /// The alphabet of `cuts` in order, of which the last is of class [`REST`]. Neighbours of one
    /// class become one.
    pub(super) fn new(cuts: impl IntoIterator<Item = (u32, u32)>, len: u32) -> Self {
        let mut out: Vec<(u32, u32)> = Vec::new();
        for (cut, class) in cuts {
            if out.last().is_none_or(|last| last.1 != class) {
                out.push((cut, class));
            }
        }
        debug_assert!(out.first().is_some_and(|cut| cut.0 == 0));
        debug_assert!(out.last().is_some_and(|cut| cut.1 == REST));
        Self { cuts: out.into(), len }
    }

    /// The coarsest alphabet that tells apart what one of the sets does, and the classes of each
    /// set, in order. Counts as work what it returns; `spend` may refuse it.
    pub(super) fn of_sets<'a, E>(
        sets: impl Iterator<Item = &'a CharSet> + Clone,
        mut spend: impl FnMut(usize) -> Result<(), E>,
    ) -> Result<(Self, Vec<Vec<u32>>), E> {
        let mut starts = vec![0];
        for set in sets.clone() {
            spend(set.ranges().len())?;
            for &(a, b) in set.ranges() {
                starts.push(cut_at(a));
                starts.push(cut_at(b + 1));
            }
        }
        starts.sort_unstable();
        starts.dedup();
        starts.retain(|&start| start <= LAST);
        let place = |code_point: u32| starts.partition_point(|&start| start < cut_at(code_point));
        // Each set splits the classes that it meets.
        let mut class_of = vec![0u32; starts.len()];
        let mut count = 1;
        let mut split: FxHashMap<u32, u32> = FxHashMap::default();
        for set in sets.clone() {
            split.clear();
            for &(a, b) in set.ranges() {
                let covered = place(a)..place(b + 1);
                spend(covered.len())?;
                for class in &mut class_of[covered] {
                    *class = *split.entry(*class).or_insert_with(|| {
                        count += 1;
                        count - 1
                    });
                }
            }
        }
        let len = renumber(&mut class_of);
        let mut members = Vec::new();
        for set in sets {
            let mut of_set = Vec::new();
            for &(a, b) in set.ranges() {
                of_set.extend_from_slice(&class_of[place(a)..place(b + 1)]);
            }
            of_set.sort_unstable();
            of_set.dedup();
            spend(of_set.len())?;
            members.push(of_set);
        }
        Ok((Self::new(starts.into_iter().zip(class_of), len), members))
    }

    /// The number of classes.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Where another class begins, and which.
    pub(super) fn cuts(&self) -> &[(u32, u32)] {
        &self.cuts
    }

    /// The class of a scalar value.
    pub(super) fn class_of(&self, code_point: u32) -> u32 {
        self.cuts[self.cuts.partition_point(|cut| cut.0 <= code_point) - 1].1
    }

    /// The classes of the ASCII characters.
    pub(super) fn ascii(&self) -> [u32; 128] {
        let mut out = [REST; 128];
        for (place, &(cut, class)) in self.cuts.iter().enumerate() {
            if cut >= 128 {
                break;
            }
            let end = self.cuts.get(place + 1).map_or(128, |next| next.0.min(128));
            out[cut as usize..end as usize].fill(class);
        }
        out
    }

    /// The ranges of all classes.
    pub(super) fn ranges(&self) -> ClassRanges {
        let ends = self.cuts.iter().skip(1).map(|cut| cut.0 - 1).chain([LAST]);
        let mut all: Vec<(u32, u32, u32)> = Vec::with_capacity(self.cuts.len() + 1);
        for (&(first, class), last) in self.cuts.iter().zip(ends) {
            if first < FIRST_SURROGATE && last >= FIRST_SURROGATE {
                all.push((class, first, FIRST_SURROGATE - 1));
                if last >= AFTER_SURROGATES {
                    all.push((class, AFTER_SURROGATES, last));
                }
            } else {
                all.push((class, first, last));
            }
        }
        all.sort_unstable();
        let starts =
            (0..=self.len).map(|class| all.partition_point(|range| range.0 < class) as u32);
        let starts = starts.collect();
        ClassRanges { starts, ranges: all.into_iter().map(|(_, a, b)| (a, b)).collect() }
    }

    /// This alphabet with other classes: `class_of[c]` in place of class `c`. They are numbered
    /// anew, and the numbers are returned too: by their first code points, behind the rest.
    pub(super) fn merged(&self, class_of: &[u32]) -> (Self, Vec<u32>) {
        let mut classes: Vec<u32> =
            self.cuts.iter().map(|&(_, class)| class_of[class as usize]).collect();
        let len = renumber(&mut classes);
        let mut new_of = vec![REST; class_of.len()];
        for (cut, &class) in self.cuts.iter().zip(&classes) {
            new_of[cut.1 as usize] = class;
        }
        (Self::new(self.cuts.iter().map(|cut| cut.0).zip(classes), len), new_of)
    }
}

/// Numbers the classes of neighbouring intervals anew: that of the last is the rest, the others
/// follow in the order in which they come first. Returns how many there are.
fn renumber(classes: &mut [u32]) -> u32 {
    let mut new_of: FxHashMap<u32, u32> = FxHashMap::default();
    new_of.extend(classes.last().map(|&rest| (rest, REST)));
    for class in classes {
        let next = new_of.len() as u32;
        *class = *new_of.entry(*class).or_insert(next);
    }
    new_of.len() as u32
}

/// For each class of an alphabet the classes of a finer one into which it falls.
#[derive(Clone, Debug)]
pub(super) struct FinerClasses {
    starts: Vec<u32>,
    pieces: Vec<u32>,
}

impl FinerClasses {
    /// Each class as its only piece.
    pub(super) fn identity(len: u32) -> Self {
        Self::new(0..len, len)
    }

    /// `class_of` says for each finer class in which of the `len` it lies.
    fn new(class_of: impl Iterator<Item = u32> + Clone, len: u32) -> Self {
        let mut starts = vec![0; len as usize + 1];
        class_of.clone().for_each(|class| starts[class as usize + 1] += 1);
        for class in 0..len as usize {
            starts[class + 1] += starts[class];
        }
        let mut fill: Vec<u32> = starts.clone();
        let mut pieces = vec![0; starts[len as usize] as usize];
        for (piece, class) in (0..).zip(class_of) {
            let place = &mut fill[class as usize];
            pieces[*place as usize] = piece;
            *place += 1;
        }
        Self { starts, pieces }
    }

    /// The pieces of a class, in order.
    pub(super) fn of(&self, class: u32) -> &[u32] {
        let class = class as usize;
        &self.pieces[self.starts[class] as usize..self.starts[class + 1] as usize]
    }
}

/// The coarsest common refinement of two alphabets.
pub(super) struct Joint {
    /// The refinement.
    pub(super) alphabet: ScalarAlphabet,
    /// What becomes of the classes of the first alphabet.
    pub(super) left: FinerClasses,
    /// What becomes of the classes of the second.
    pub(super) right: FinerClasses,
}

impl Joint {
    /// Refines two alphabets.
    pub(super) fn new(left: &ScalarAlphabet, right: &ScalarAlphabet) -> Self {
        let mut pairs = vec![(REST, REST)];
        let mut number: FxHashMap<(u32, u32), u32> = FxHashMap::default();
        number.insert((REST, REST), REST);
        let mut cuts = Vec::with_capacity(left.cuts.len() + right.cuts.len());
        let (mut i, mut j) = (0, 0);
        let mut at = 0;
        loop {
            let pair = (left.cuts[i].1, right.cuts[j].1);
            let class = *number.entry(pair).or_insert_with(|| {
                pairs.push(pair);
                pairs.len() as u32 - 1
            });
            cuts.push((at, class));
            let next = |cuts: &[(u32, u32)], place: usize| cuts.get(place + 1).map(|cut| cut.0);
            let (a, b) = (next(&left.cuts, i), next(&right.cuts, j));
            at = match (a, b) {
                (None, None) => break,
                (Some(a), Some(b)) => a.min(b),
                (Some(at), None) | (None, Some(at)) => at,
            };
            i += usize::from(a == Some(at));
            j += usize::from(b == Some(at));
        }
        Self {
            alphabet: ScalarAlphabet::new(cuts, pairs.len() as u32),
            left: FinerClasses::new(pairs.iter().map(|pair| pair.0), left.len),
            right: FinerClasses::new(pairs.iter().map(|pair| pair.1), right.len),
        }
    }
}
