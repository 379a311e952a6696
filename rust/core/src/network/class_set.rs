//! Sets of byte classes.

/// A set of byte classes.
pub type ClassSet = [u64; 4];

/// Whether a class is in a set.
#[inline]
pub fn contains(set: &ClassSet, class: u8) -> bool {
    set[class as usize >> 6] >> (class & 63) & 1 == 1
}

/// The classes of a set, ascending.
pub(crate) fn members(set: &ClassSet) -> impl Iterator<Item = u8> {
    let words = set.iter().zip([0, 64, 128, 192u8]);
    words.flat_map(|(&word, base)| {
        let lowest = |left: &u64| (*left != 0).then(|| left & (left - 1));
        let left = std::iter::successors(Some(word), lowest).take_while(|&left| left != 0);
        left.map(move |left| base | left.trailing_zeros() as u8)
    })
}

pub(crate) fn insert(set: &mut ClassSet, class: u8) {
    set[class as usize >> 6] |= 1 << (class & 63);
}

pub(crate) fn add_all(to: &mut ClassSet, classes: &ClassSet) {
    to.iter_mut().zip(classes).for_each(|(a, b)| *a |= b);
}

/// Whether two sets have a class in common.
#[inline]
pub(crate) fn meet(a: &ClassSet, b: &ClassSet) -> bool {
    a.iter().zip(b).any(|(a, b)| a & b != 0)
}
