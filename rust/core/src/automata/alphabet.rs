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
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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

    /// Whether every class of another partition is a union of classes of this one.
    pub fn refines(&self, other: &Alphabet) -> bool {
        let mut class_there = [None; 256];
        let is_split = |byte: u8| {
            let there = other.class(byte);
            *class_there[self.class(byte) as usize].get_or_insert(there) != there
        };
        !(0..=255).any(is_split) && (self.escape.is_some() || other.escape.is_none())
    }

    /// The coarsest partition that refines two, its classes in the order of their first bytes; `None`
    /// where that takes more than 256 classes.
    pub fn refined(&self, other: &Alphabet) -> Option<Alphabet> {
        let mut classes: Vec<(u8, u8)> = Vec::new();
        let mut class_of = [0u8; 256];
        for (byte, slot) in (0..=255u8).zip(&mut class_of) {
            let pair = (self.class(byte), other.class(byte));
            let class = classes.iter().position(|&known| known == pair);
            // At most 256 bytes, so the number of a class fits.
            *slot = class.unwrap_or(classes.len()) as u8;
            if class.is_none() {
                classes.push(pair);
            }
        }
        let has_escape = self.escape.is_some() || other.escape.is_some();
        let escape = match has_escape {
            true => Some(u8::try_from(classes.len()).ok()?),
            false => None,
        };
        Some(Alphabet { class_of, escape, len: classes.len() + usize::from(has_escape) })
    }

    /// The partition in which the old class `c` is class `map[c]`.
    pub fn merged(&self, map: &[u8]) -> Alphabet {
        let class_of = self.class_of.map(|c| map[c as usize]);
        let escape = self.escape.map(|c| map[c as usize]);
        Alphabet { class_of, escape, len: map.iter().max().map_or(1, |&m| m as usize + 1) }
    }
}
