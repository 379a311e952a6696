//! Ranges of code points as sequences of byte ranges.
//!
//! Surrogates are encoded like any other code point of three bytes (ED A0 80 to ED BF BF):
//! XGrammar's character classes take them, so ours do. Overlong forms, bare continuation bytes
//! and everything past U+10FFFF have no code point and so appear in no sequence.

/// One to four inclusive byte ranges, to be read one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sequence {
    ranges: [(u8, u8); 4],
    len: usize,
}

impl Sequence {
    /// The byte ranges.
    pub fn ranges(&self) -> &[(u8, u8)] {
        &self.ranges[..self.len]
    }
}

/// The greatest code points that take 1, 2, 3 and 4 bytes.
const LENGTH_ENDS: [u32; 4] = [0x7F, 0x7FF, 0xFFFF, 0x10_FFFF];

/// Calls `emit` with disjoint sequences that together have exactly the encodings of
/// `first..=last`; at most about ten for each length of encoding.
pub fn sequences(first: u32, last: u32, emit: &mut impl FnMut(Sequence)) {
    let mut start = first;
    for (i, &end) in LENGTH_ENDS.iter().enumerate() {
        if start > last {
            return;
        }
        if start <= end {
            split(start, last.min(end), i + 1, emit);
            start = end + 1;
        }
    }
}

/// Splits a range whose code points all take `len` bytes into ranges whose encodings are a
/// product of byte ranges, by aligning both ends to blocks of 64, 4096, ... code points.
fn split(first: u32, last: u32, len: usize, emit: &mut impl FnMut(Sequence)) {
    let mut work = vec![(first, last)];
    'next: while let Some((a, b)) = work.pop() {
        for i in 1..len {
            let mask = (1u32 << (6 * i)) - 1;
            if a & !mask != b & !mask {
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
        }
        let (low, high) = (encode(a, len), encode(b, len));
        let mut ranges = [(0, 0); 4];
        for i in 0..len {
            ranges[i] = (low[i], high[i]);
        }
        emit(Sequence { ranges, len });
    }
}

/// The `len`-byte encoding of a code point.
fn encode(code_point: u32, len: usize) -> [u8; 4] {
    if len == 1 {
        return [code_point as u8, 0, 0, 0];
    }
    let mut out = [0; 4];
    let mut rest = code_point;
    for i in (1..len).rev() {
        out[i] = 0x80 | (rest & 0x3F) as u8;
        rest >>= 6;
    }
    let lead = [0, 0, 0xC0, 0xE0, 0xF0][len];
    out[0] = lead | rest as u8;
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The obvious oracle: encode every code point on its own.
    fn encodings(first: u32, last: u32) -> BTreeSet<Vec<u8>> {
        (first..=last)
            .map(|c| {
                let len = LENGTH_ENDS.iter().position(|&e| c <= e).expect("in range") + 1;
                let bytes = encode(c, len)[..len].to_vec();
                if let Some(ch) = char::from_u32(c) {
                    assert_eq!(bytes, ch.to_string().into_bytes());
                }
                bytes
            })
            .collect()
    }

    fn expand(first: u32, last: u32) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        sequences(first, last, &mut |s| {
            let mut partial: Vec<Vec<u8>> = vec![Vec::new()];
            for &(a, b) in s.ranges() {
                partial = partial
                    .into_iter()
                    .flat_map(|p| (a..=b).map(move |x| [p.as_slice(), &[x]].concat()))
                    .collect();
            }
            all.extend(partial);
        });
        all
    }

    #[test]
    fn sequences_have_exactly_the_encodings() {
        let ends = [
            0, 1, 0x7F, 0x80, 0xFF, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDFFF, 0xFFFF, 0x10000, 0x10123,
        ];
        for &a in &ends {
            for &b in ends.iter().filter(|&&b| b >= a) {
                let got = expand(a, b);
                let set: BTreeSet<_> = got.iter().cloned().collect();
                assert_eq!(set.len(), got.len(), "{a:x}-{b:x}: sequences overlap");
                assert_eq!(set, encodings(a, b), "{a:x}-{b:x}");
            }
        }
        assert_eq!(expand(0x10_FFFE, 0x10_FFFF).len(), 2);
    }
}
