//! Ranges of token ids as sequences of byte ranges: the four bytes of an id, greatest first.

/// Four inclusive byte ranges, to be read one after the other.
pub type IdSequence = [(u8, u8); 4];

/// Calls `emit` with disjoint sequences that together have exactly the ids of `first..=last`; at
/// most seven.
pub fn sequences(first: u32, last: u32, emit: &mut impl FnMut(IdSequence)) {
    let mut work = vec![(first, last)];
    'next: while let Some((a, b)) = work.pop() {
        for bytes in 1..4 {
            // Both ends are aligned to blocks of 256, 65536, ... ids.
            let mask = (1u32 << (8 * bytes)) - 1;
            if a & !mask == b & !mask {
                continue;
            }
            if a & mask != 0 {
                work.push(((a | mask) + 1, b));
                work.push((a, a | mask));
                continue 'next;
            }
            if b & mask != mask {
                work.push((b & !mask, b));
                work.push((a, (b & !mask) - 1));
                continue 'next;
            }
        }
        let (low, high) = (a.to_be_bytes(), b.to_be_bytes());
        emit(std::array::from_fn(|i| (low[i], high[i])));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sequences_have_exactly_the_ids(
            ends in (0u32..5, 0u32..5).prop_flat_map(|(a, b)| {
                // Near the ends of blocks.
                let near = |k: u32| (1u64 << (8 * k.min(4))).saturating_sub(3) as u32;
                (near(a)..=near(a).saturating_add(5), near(b)..=near(b).saturating_add(5))
            }),
            others in proptest::collection::vec(any::<u32>(), 20),
        ) {
            let (first, last) = (ends.0.min(ends.1), ends.0.max(ends.1));
            let mut found = Vec::new();
            sequences(first, last, &mut |sequence| found.push(sequence));
            prop_assert!(found.len() <= 7);
            let near = (0..12u32).flat_map(|d| [first, last].map(|end| end.wrapping_add(d).wrapping_sub(6)));
            for id in near.chain(others) {
                let bytes = id.to_be_bytes();
                let has = |s: &&IdSequence| s.iter().zip(bytes).all(|(r, b)| (r.0..=r.1).contains(&b));
                let times = found.iter().filter(has).count();
                prop_assert_eq!(times, usize::from((first..=last).contains(&id)), "{}", id);
            }
        }
    }
}
