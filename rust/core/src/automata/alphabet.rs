//! Letters: bytes, and one that is none, after which the four bytes of an id stand for a token
//! that is taken whole. Classes: intervals of bytes that no edge tells apart, and that letter.

/// Collects the ends of all byte ranges in use.
#[derive(Clone, Debug)]
pub struct AlphabetBuilder {
    /// `starts[b]`: some range starts at `b` or ends at `b - 1`.
    starts: [bool; 257],
    has_escape: bool,
}

impl Default for AlphabetBuilder {
    fn default() -> Self {
        let mut starts = [false; 257];
        starts[0] = true;
        Self { starts, has_escape: false }
    }
}

impl AlphabetBuilder {
    /// Takes note of an inclusive range of bytes.
    pub fn add(&mut self, first: u8, last: u8) {
        self.starts[first as usize] = true;
        self.starts[last as usize + 1] = true;
    }

    /// Takes note of the letter that is no byte.
    pub fn add_escape(&mut self) {
        self.has_escape = true;
    }

    /// The coarsest partition into intervals of which every added range is a union; `None` where
    /// that takes more than 256 classes.
    pub fn finish(&self) -> Option<Alphabet> {
        let mut class_of = [0u8; 256];
        let mut class = 0u8;
        for (slot, &starts) in class_of.iter_mut().zip(&self.starts).skip(1) {
            class += u8::from(starts);
            *slot = class;
        }
        let escape = match self.has_escape {
            true => Some(class.checked_add(1)?),
            false => None,
        };
        Some(Alphabet { class_of, escape, len: escape.unwrap_or(class) as usize + 1 })
    }
}

/// A partition of the letters into classes, numbered from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alphabet {
    class_of: [u8; 256],
    escape: Option<u8>,
    len: usize,
}

impl Alphabet {
    /// The class of a byte.
    #[inline]
    pub fn class(&self, byte: u8) -> u8 {
        self.class_of[byte as usize]
    }

    /// The class of the letter that is no byte, where any edge reads it.
    #[inline]
    pub fn escape(&self) -> Option<u8> {
        self.escape
    }

    /// For each class how many bytes it has.
    pub fn widths(&self) -> Vec<u32> {
        let mut out = vec![0; self.len];
        self.class_of.iter().for_each(|&class| out[class as usize] += 1);
        out
    }

    /// How many classes there are: 1 to 256.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: there is at least one class.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The classes of an added range.
    pub fn classes(&self, first: u8, last: u8) -> std::ops::RangeInclusive<u8> {
        self.class(first)..=self.class(last)
    }

    /// The partition in which the old class `c` is class `map[c]`.
    pub fn merged(&self, map: &[u8]) -> Alphabet {
        let class_of = self.class_of.map(|c| map[c as usize]);
        let escape = self.escape.map(|c| map[c as usize]);
        Alphabet { class_of, escape, len: map.iter().max().map_or(1, |&m| m as usize + 1) }
    }
}
