//! The bytes of code points, as trees whose nodes are shared.
//!
//! A code point is written as digits: continuation bytes of UTF-8 are digits to base 64, escapes
//! have digits to base 16. A block of code points that begins at a multiple of its size is read by
//! one node, made of the nodes of the smaller blocks in it. Equal nodes are one, and a block all
//! of whose code points lead to one state has one node for this state.

use super::table::DEAD;
use crate::hash::hash_of;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

/// Code points in order, and where they lead.
pub(super) type Ranges<'a> = &'a [(u32, u32, u32)];

/// How the digits of a block are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Digits {
    /// Continuation bytes of UTF-8.
    Continuation,
    /// Hexadecimal digits.
    Hexadecimal,
    /// Hexadecimal digits of the first half of a pair of surrogates; the second half follows.
    HighSurrogate,
}

impl Digits {
    fn base_bits(self) -> u32 {
        match self {
            Digits::Continuation => 6,
            Digits::Hexadecimal | Digits::HighSurrogate => 4,
        }
    }

    /// The code points of a block of so many digits, as a power of two.
    fn block_bits(self, digits: u32) -> u32 {
        let of_one = if self == Digits::HighSurrogate { 10 } else { 0 };
        of_one + digits * self.base_bits()
    }

    /// Adds the bytes of the digits `first..=last`.
    fn write(self, first: u32, last: u32, to: u32, row: &mut Vec<(u8, u8, u32)>) {
        match self {
            Digits::Continuation => row.push((0x80 | first as u8, 0x80 | last as u8, to)),
            Digits::Hexadecimal | Digits::HighSurrogate => hexadecimal(first, last, to, row),
        }
    }
}

/// Adds hexadecimal digits, of either case.
pub(super) fn hexadecimal(first: u32, last: u32, to: u32, row: &mut Vec<(u8, u8, u32)>) {
    let (first, last) = (first as u8, last as u8);
    if first < 10 {
        row.push((b'0' + first, b'0' + last.min(9), to));
    }
    if last >= 10 {
        let (a, b) = (first.max(10) - 10, last - 10);
        row.push((b'A' + a, b'A' + b, to));
        row.push((b'a' + a, b'a' + b, to));
    }
}

/// Nodes between the states of an automaton.
pub(super) struct SpellNodes {
    /// The number of the first node.
    first: u32,
    ends: Vec<u32>,
    edges: Vec<(u8, u8, u32)>,
    numbers: HashTable<u32>,
    full: FxHashMap<(Digits, u32, u32), u32>,
}

impl SpellNodes {
    /// No node; the numbers below `first` are states.
    pub(super) fn new(first: u32) -> Self {
        Self {
            first,
            ends: Vec::new(),
            edges: Vec::new(),
            numbers: HashTable::new(),
            full: FxHashMap::default(),
        }
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The number of edges of all nodes.
    pub(super) fn num_edges(&self) -> usize {
        self.edges.len()
    }

    /// Sorts and joins the edges of a state.
    pub(super) fn state_row(mut edges: Vec<(u8, u8, u32)>) -> Vec<(u8, u8, u32)> {
        join(&mut edges);
        edges
    }

    /// The edges of the nodes, in order: from, the first and the last byte, to.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u8, u8, u32)> {
        let rows =
            (0..self.ends.len() as u32).map(|node| (node, row(&self.ends, &self.edges, node)));
        rows.flat_map(move |(node, row)| {
            row.iter().map(move |&(a, b, to)| (self.first + node, a, b, to))
        })
    }

    /// The node with these edges, or [`DEAD`] if there are none. Bytes that meet and lead to one
    /// node become one edge.
    pub(super) fn node(&mut self, mut edges: Vec<(u8, u8, u32)>) -> u32 {
        join(&mut edges);
        if edges.is_empty() {
            return DEAD;
        }
        let (ends, known) = (&mut self.ends, &mut self.edges);
        let hash = hash_of(edges.as_slice());
        if let Some(&node) = self.numbers.find(hash, |&node| row(ends, known, node) == edges) {
            return self.first + node;
        }
        let node = ends.len() as u32;
        known.extend_from_slice(&edges);
        ends.push(known.len() as u32);
        let (ends, known) = (&self.ends, &self.edges);
        self.numbers.insert_unique(hash, node, |&node| hash_of(row(ends, known, node)));
        self.first + node
    }

    /// The node of a block of so many digits that begins at `start`. At most four digits deep.
    pub(super) fn block(
        &mut self,
        digits: Digits,
        len: u32,
        start: u32,
        ranges: Ranges<'_>,
    ) -> u32 {
        let bits = digits.block_bits(len);
        let end = start + ((1u32 << bits) - 1);
        let ranges = within(ranges, start, end);
        match *ranges {
            [] => return DEAD,
            [(a, b, to)] if a <= start && end <= b => return self.full(digits, len, to),
            _ if len == 0 => return self.second_half(start, ranges),
            _ => {}
        }
        let mut row = Vec::new();
        for (first, last, to) in self.runs(digits, len - 1, (start, end), ranges) {
            digits.write(first, last, to, &mut row);
        }
        self.node(row)
    }

    /// The nodes of the blocks of so many digits into which a block falls that begins at `start`:
    /// the first and the last block, counted from there, that have one node.
    pub(super) fn runs(
        &mut self,
        digits: Digits,
        len: u32,
        (start, end): (u32, u32),
        ranges: Ranges<'_>,
    ) -> Vec<(u32, u32, u32)> {
        let bits = digits.block_bits(len);
        let mut runs = Vec::new();
        let mut next = start;
        let mut ranges = within(ranges, start, end);
        while let Some(&(a, b, to)) = ranges.first() {
            // The block that holds the next code point that leads somewhere.
            let index = (next.max(a) - start) >> bits;
            let first = start + (index << bits);
            let last = first + ((1 << bits) - 1);
            let (last_index, node) = if a <= first && last <= b {
                let count = (b.min(end) - first + 1) >> bits;
                (index + count - 1, self.full(digits, len, to))
            } else {
                (index, self.block(digits, len, first, ranges))
            };
            runs.push((index, last_index, node));
            next = start + ((last_index + 1) << bits);
            if next > end {
                break;
            }
            ranges = within(ranges, next, end);
        }
        runs
    }

    /// The node of a block all of whose code points lead to one state.
    fn full(&mut self, digits: Digits, len: u32, to: u32) -> u32 {
        if len == 0 && digits != Digits::HighSurrogate {
            return to;
        }
        if let Some(&node) = self.full.get(&(digits, len, to)) {
            return node;
        }
        let node = if len == 0 {
            let block = (1 << Digits::HighSurrogate.block_bits(0)) - 1;
            self.second_half(0, &[(0, block, to)])
        } else {
            let inner = self.full(digits, len - 1, to);
            let mut row = Vec::new();
            digits.write(0, (1 << digits.base_bits()) - 1, inner, &mut row);
            self.node(row)
        };
        self.full.insert((digits, len, to), node);
        node
    }

    /// The node behind the first half of a pair of surrogates that stands for the 1,024 code points
    /// from `start` on: it reads the second half.
    fn second_half(&mut self, start: u32, ranges: Ranges<'_>) -> u32 {
        let mut row = Vec::new();
        for (first, last, to) in self.runs(Digits::Hexadecimal, 2, (start, start + 0x3FF), ranges) {
            hexadecimal(0xC + first, 0xC + last, to, &mut row);
        }
        let last_three = self.node(row);
        if last_three == DEAD {
            return DEAD;
        }
        let mut row = Vec::new();
        hexadecimal(0xD, 0xD, last_three, &mut row);
        let digits = self.node(row);
        let behind_u = self.node(vec![(b'u', b'u', digits)]);
        self.node(vec![(b'\\', b'\\', behind_u)])
    }
}

/// The ranges that have code points in common with `first..=last`.
pub(super) fn within(ranges: Ranges<'_>, first: u32, last: u32) -> Ranges<'_> {
    let from = ranges.partition_point(|range| range.1 < first);
    let until = ranges.partition_point(|range| range.0 <= last);
    &ranges[from..until.max(from)]
}

/// Sorts the edges of a node, and joins those of neighbouring bytes.
fn join(edges: &mut Vec<(u8, u8, u32)>) {
    edges.retain(|edge| edge.2 != DEAD);
    edges.sort_unstable();
    edges.dedup_by(|next, last| {
        let is_one = last.2 == next.2 && last.1 + 1 == next.0;
        if is_one {
            last.1 = next.1;
        }
        is_one
    });
}

/// The edges of a node.
fn row<'a>(ends: &[u32], edges: &'a [(u8, u8, u32)], node: u32) -> &'a [(u8, u8, u32)] {
    let start = if node == 0 { 0 } else { ends[node as usize - 1] };
    &edges[start as usize..ends[node as usize] as usize]
}
