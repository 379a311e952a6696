//! Which states of a table are equivalent: Hopcroft's refinement, in O(m log n) for n states and m
//! edges, where a row that names few classes has few edges whatever the size of the alphabet.
//!
//! The rest is a class like any other, and the same for all states. So a block is first split by
//! where the rest leads. Of the states whose rest leads into the splitter, those that name a class
//! and lead elsewhere with it are then split off; of the others those that name it and lead into
//! the splitter. A state looks at its own edges only when the target of its rest falls into the
//! smaller half of a block, which happens log n times.

use super::Bounds;
use super::table::{DEAD, DfaTable};
use crate::error::Result;

/// A partition of the states of a table, and of one more behind them: the dead state.
pub(super) struct Blocks {
    /// The block of each state.
    pub(super) of: Vec<u32>,
    /// The number of blocks.
    pub(super) len: usize,
}

/// The blocks of equivalent states.
///
/// # Errors
/// What ends the work.
pub(super) fn equivalent(table: &DfaTable, bounds: &Bounds<'_>) -> Result<Blocks> {
    let dead = table.len() as u32;
    let target = |q: u32| if q == DEAD { dead } else { q };
    let states = 0..dead;
    let edges = states
        .clone()
        .flat_map(|p| table.row(p).iter().map(move |&(class, q)| (target(q), (class, p))));
    let named = ReverseEdges::new(table.len() + 1, table.num_edges(), edges);
    let rests = states.clone().map(|p| (target(table.default(p)), (0, p)));
    let rests =
        ReverseEdges::new(table.len() + 1, table.len() + 1, rests.chain([(dead, (0, dead))]));

    let mut partition = RefinablePartition::new(table.len() + 1);
    states.filter(|&q| table.is_final(q)).for_each(|q| partition.mark(q));
    partition.split();
    let mut is_inside = vec![false; table.len() + 1];
    let mut inside = Vec::new();
    let mut by_rest = Vec::new();
    let mut marks: Vec<(u32, u32)> = Vec::new();
    let mut by_class = ClassGroups::new(table.num_classes());
    while let Some(block) = partition.pending.pop() {
        inside.clear();
        inside.extend_from_slice(partition.members(block));
        inside.iter().for_each(|&q| is_inside[q as usize] = true);
        by_rest.clear();
        for &q in &inside {
            by_rest.extend(rests.of(q).iter().map(|&(_, p)| p));
        }
        by_rest.iter().for_each(|&p| partition.mark(p));
        partition.split();
        marks.clear();
        for &q in &inside {
            let from_elsewhere =
                |&&(_, p): &&(u32, u32)| !is_inside[target(table.default(p)) as usize];
            marks.extend(named.of(q).iter().filter(from_elsewhere));
        }
        for &p in by_rest.iter().filter(|&&p| p != dead) {
            let row = table.row(p).iter().filter(|edge| !is_inside[target(edge.1) as usize]);
            marks.extend(row.map(|&(class, _)| (class, p)));
        }
        bounds.budget.spend(inside.len() + by_rest.len() + 2 * marks.len())?;
        by_class.each_group(&marks, |states| {
            states.iter().for_each(|&p| partition.mark(p));
            partition.split();
        });
        inside.iter().for_each(|&q| is_inside[q as usize] = false);
    }
    Ok(Blocks { len: partition.starts.len(), of: partition.block_of })
}

/// For each state the edges that lead to it: their classes and where they come from.
struct ReverseEdges {
    starts: Vec<u32>,
    edges: Vec<(u32, u32)>,
}

impl ReverseEdges {
    fn new(
        states: usize,
        edges: usize,
        list: impl Iterator<Item = (u32, (u32, u32))> + Clone,
    ) -> Self {
        let mut starts = vec![0u32; states + 1];
        list.clone().for_each(|(q, _)| starts[q as usize + 1] += 1);
        for q in 0..states {
            starts[q + 1] += starts[q];
        }
        let mut fill = starts.clone();
        let mut out = vec![(0, 0); edges];
        for (q, edge) in list {
            let place = &mut fill[q as usize];
            out[*place as usize] = edge;
            *place += 1;
        }
        Self { starts, edges: out }
    }

    fn of(&self, q: u32) -> &[(u32, u32)] {
        &self.edges[self.starts[q as usize] as usize..self.starts[q as usize + 1] as usize]
    }
}

/// Groups states by class, in time linear in their number.
struct ClassGroups {
    /// For each class how many states there are, then where the next one goes; 0 between calls.
    places: Vec<u32>,
    classes: Vec<u32>,
    states: Vec<u32>,
}

impl ClassGroups {
    fn new(num_classes: usize) -> Self {
        Self { places: vec![0; num_classes], classes: Vec::new(), states: Vec::new() }
    }

    fn each_group(&mut self, marks: &[(u32, u32)], mut visit: impl FnMut(&[u32])) {
        self.classes.clear();
        for &(class, _) in marks {
            let count = &mut self.places[class as usize];
            if *count == 0 {
                self.classes.push(class);
            }
            *count += 1;
        }
        let mut next = 0;
        for &class in &self.classes {
            next += std::mem::replace(&mut self.places[class as usize], next);
        }
        self.states.resize(marks.len(), 0);
        for &(class, state) in marks {
            let place = &mut self.places[class as usize];
            self.states[*place as usize] = state;
            *place += 1;
        }
        let mut start = 0;
        for &class in &self.classes {
            let end = std::mem::take(&mut self.places[class as usize]) as usize;
            visit(&self.states[start..end]);
            start = end;
        }
    }
}

/// A partition that is refined: elements are marked, then every block with marks is split.
struct RefinablePartition {
    /// The elements, block by block, the marked ones of a block first.
    elements: Vec<u32>,
    place: Vec<u32>,
    block_of: Vec<u32>,
    starts: Vec<u32>,
    ends: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
    /// Blocks by which the others are to be split yet.
    pending: Vec<u32>,
}

impl RefinablePartition {
    fn new(len: usize) -> Self {
        Self {
            elements: (0..len as u32).collect(),
            place: (0..len as u32).collect(),
            block_of: vec![0; len],
            starts: vec![0],
            ends: vec![len as u32],
            marked: vec![0],
            touched: Vec::new(),
            pending: Vec::new(),
        }
    }

    fn members(&self, block: u32) -> &[u32] {
        &self.elements[self.starts[block as usize] as usize..self.ends[block as usize] as usize]
    }

    fn mark(&mut self, element: u32) {
        let block = self.block_of[element as usize] as usize;
        let from = self.place[element as usize];
        let to = self.starts[block] + self.marked[block];
        if from < to {
            return; // It is marked already.
        }
        let other = self.elements[to as usize];
        self.elements.swap(from as usize, to as usize);
        self.place[other as usize] = from;
        self.place[element as usize] = to;
        if self.marked[block] == 0 {
            self.touched.push(block as u32);
        }
        self.marked[block] += 1;
    }

    /// Splits each block of which some elements are marked and some are not. The smaller part
    /// becomes a new block, by which the others are to be split: where the old block is to split
    /// them too, both parts do, else the smaller one suffices.
    fn split(&mut self) {
        while let Some(block) = self.touched.pop() {
            let block = block as usize;
            let (start, end) = (self.starts[block], self.ends[block]);
            let middle = start + std::mem::take(&mut self.marked[block]);
            if middle == end {
                continue;
            }
            let new = self.starts.len() as u32;
            let (first, last) = if middle - start <= end - middle {
                self.starts[block] = middle;
                (start, middle)
            } else {
                self.ends[block] = middle;
                (middle, end)
            };
            self.starts.push(first);
            self.ends.push(last);
            self.marked.push(0);
            self.pending.push(new);
            for place in first..last {
                self.block_of[self.elements[place as usize] as usize] = new;
            }
        }
    }
}
