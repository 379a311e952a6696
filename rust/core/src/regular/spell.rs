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
    fn write(self, first: u32, last: u32, to: u32, row: &mut Vec<SpellEdge>) {
        match self {
            Digits::Continuation => row.push((0x80 | first as u8, 0x80 | last as u8, to)),
            Digits::Hexadecimal | Digits::HighSurrogate => hexadecimal(first, last, to, row),
        }
    }
}

/// Adds hexadecimal digits, of either case.
pub(super) fn hexadecimal(first: u32, last: u32, to: u32, row: &mut Vec<SpellEdge>) {
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
    edges: Vec<SpellEdge>,
    numbers: HashTable<u32>,
    full: FxHashMap<(Digits, u32, u32), u32>,
    /// The edges of the nodes that are being made, each behind those that wait for it.
    open: Vec<SpellEdge>,
}

/// The first and the last byte, and where they lead.
pub(super) type SpellEdge = (u8, u8, u32);

/// Where the edges of a node that is being made begin.
#[derive(Clone, Copy)]
pub(super) struct FirstEdge(usize);

impl SpellNodes {
    /// No node; the numbers below `first` are states.
    pub(super) fn new(first: u32) -> Self {
        Self {
            first,
            ends: Vec::new(),
            edges: Vec::new(),
            numbers: HashTable::new(),
            full: FxHashMap::default(),
            open: Vec::new(),
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

    /// The edges of the nodes, in order: from, the first and the last byte, to.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u8, u8, u32)> {
        let rows =
            (0..self.ends.len() as u32).map(|node| (node, row(&self.ends, &self.edges, node)));
        rows.flat_map(move |(node, row)| {
            row.iter().map(move |&(a, b, to)| (self.first + node, a, b, to))
        })
    }

    /// Begins a node, or the row of a state: the edges that are added from here on.
    pub(super) fn begin(&self) -> FirstEdge {
        FirstEdge(self.open.len())
    }

    /// The edges that are being added.
    pub(super) fn row(&mut self) -> &mut Vec<SpellEdge> {
        &mut self.open
    }

    /// The edges since a beginning as those of a state, in order.
    pub(super) fn state_row(&mut self, FirstEdge(begun): FirstEdge) -> Vec<SpellEdge> {
        join(&mut self.open, begun);
        self.open.split_off(begun)
    }

    /// The node with the edges since a beginning, or [`DEAD`] if there are none. Bytes that meet and
    /// lead to one node become one edge.
    pub(super) fn node(&mut self, FirstEdge(begun): FirstEdge) -> u32 {
        join(&mut self.open, begun);
        let new = &self.open[begun..];
        if new.is_empty() {
            return DEAD;
        }
        let (ends, known) = (&mut self.ends, &mut self.edges);
        let hash = hash_of(new);
        let found = self.numbers.find(hash, |&node| row(ends, known, node) == new).copied();
        let node = found.unwrap_or_else(|| {
            let node = ends.len() as u32;
            known.extend_from_slice(new);
            ends.push(known.len() as u32);
            self.numbers.insert_unique(hash, node, |&node| hash_of(row(ends, known, node)));
            node
        });
        self.open.truncate(begun);
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
        let begun = self.begin();
        self.runs(digits, len - 1, (start, end), ranges, |first, last, to, row| {
            digits.write(first, last, to, row);
        });
        self.node(begun)
    }

    /// Writes the nodes of the blocks of so many digits into which a block falls that begins at
    /// `start`: the first and the last block, counted from there, that have one node.
    pub(super) fn runs(
        &mut self,
        digits: Digits,
        len: u32,
        (start, end): (u32, u32),
        ranges: Ranges<'_>,
        write: impl Fn(u32, u32, u32, &mut Vec<SpellEdge>),
    ) {
        let bits = digits.block_bits(len);
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
            write(index, last_index, node, &mut self.open);
            next = start + ((last_index + 1) << bits);
            if next > end {
                break;
            }
            ranges = within(ranges, next, end);
        }
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
            let begun = self.begin();
            digits.write(0, (1 << digits.base_bits()) - 1, inner, &mut self.open);
            self.node(begun)
        };
        self.full.insert((digits, len, to), node);
        node
    }

    /// The node behind the first half of a pair of surrogates that stands for the 1,024 code points
    /// from `start` on: it reads the second half.
    fn second_half(&mut self, start: u32, ranges: Ranges<'_>) -> u32 {
        let begun = self.begin();
        let block = (start, start + 0x3FF);
        self.runs(Digits::Hexadecimal, 2, block, ranges, |first, last, to, row| {
            hexadecimal(0xC + first, 0xC + last, to, row);
        });
        let last_three = self.node(begun);
        if last_three == DEAD {
            return DEAD;
        }
        hexadecimal(0xD, 0xD, last_three, &mut self.open);
        let digits = self.node(begun);
        self.open.push((b'u', b'u', digits));
        let behind_u = self.node(begun);
        self.open.push((b'\\', b'\\', behind_u));
        self.node(begun)
    }
}

/// The ranges that have code points in common with `first..=last`.
pub(super) fn within(ranges: Ranges<'_>, first: u32, last: u32) -> Ranges<'_> {
    let from = ranges.partition_point(|range| range.1 < first);
    let until = ranges.partition_point(|range| range.0 <= last);
    &ranges[from..until.max(from)]
}

/// Sorts the last edges, from `begun` on, and joins those of neighbouring bytes; those that lead nowhere go.
fn join(edges: &mut Vec<SpellEdge>, begun: usize) {
    edges[begun..].sort_unstable();
    let mut end = begun;
    for place in begun..edges.len() {
        let (first, last, to) = edges[place];
        if to == DEAD {
            continue;
        }
        if end > begun && edges[end - 1].2 == to && edges[end - 1].1 + 1 == first {
            edges[end - 1].1 = last;
        } else {
            edges[end] = edges[place];
            end += 1;
        }
    }
    edges.truncate(end);
}

/// The edges of a node.
fn row<'a>(ends: &[u32], edges: &'a [SpellEdge], node: u32) -> &'a [SpellEdge] {
    let start = if node == 0 { 0 } else { ends[node as usize - 1] };
    &edges[start as usize..ends[node as usize] as usize]
}
