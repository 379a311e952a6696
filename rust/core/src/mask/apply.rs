//! Token masks onto logits, on a processor.

/// Entries that share a word of bits.
const BITS: usize = 32;

/// Writes `masked` over each entry of a row whose bit is 0, and over all from entry `size` on.
///
/// Most words of a mask allow all or nothing: those are skipped, or filled. The others are a choice
/// for each entry without a branch, which compilers turn into vector instructions.
///
/// # Panics
/// If there are fewer bits than `size`, or fewer entries.
pub fn apply<T: Copy>(row: &mut [T], bits: &[i32], size: usize, masked: T) {
    let (row, past) = row.split_at_mut(size);
    past.fill(masked);
    let (blocks, rest) = row.as_chunks_mut::<BITS>();
    for (block, &word) in blocks.iter_mut().zip(bits) {
        match word {
            -1 => {}
            0 => block.fill(masked),
            _ => {
                for (bit, entry) in block.iter_mut().enumerate() {
                    *entry = if word & (1 << bit) == 0 { masked } else { *entry };
                }
            }
        }
    }
    for (bit, entry) in rest.iter_mut().enumerate() {
        if bits[size / BITS] & (1 << bit) == 0 {
            *entry = masked;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_entry_goes_by_its_bit(
            bits in proptest::collection::vec(prop_oneof![Just(0), Just(-1), any::<i32>()], 0..5),
            short in 0usize..32,
            past in 0usize..40,
        ) {
            let size = (32 * bits.len()).saturating_sub(short);
            let mut row: Vec<u16> = (1..=(size + past) as u16).collect();
            let before = row.clone();
            apply(&mut row, &bits, size, 0);
            for (i, (&entry, &was)) in row.iter().zip(&before).enumerate() {
                let is_allowed = i < size && bits[i / 32] >> (i % 32) & 1 == 1;
                prop_assert_eq!(entry, if is_allowed { was } else { 0 });
            }
        }
    }
}
