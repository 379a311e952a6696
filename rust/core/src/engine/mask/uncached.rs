//! A mask as one walk of the trie with the whole stacks of a text.
//!
//! Nothing of it is remembered, and it asks no questions: each byte of the trie is read by all stacks
//! at once. It takes longer than a mask made of answers that are there, and far less where the answers
//! would be many: it serves the masks whose answers pass the memory of the engine, or take too much
//! work. Its own tables are bounded. When they are full they are made anew with the sets on the path
//! from the root of the trie, which are all that the walk needs.

use crate::budget::{Halt, Interrupt};
use crate::engine::history::copy;
use crate::engine::mask::found::{NODES_OF_WORK, class_at};
use crate::engine::mask::memo::set_bits;
use crate::network::Network;
use crate::stacks::{NONE, REST, SetId, StackSets, Stepper};
use crate::vocabulary::Trie;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Trie nodes between two looks at the interrupt, less one.
const CHECK_MASK: u64 = 1_023;
/// The tables may take this many bytes, whatever the bound: the sets of a path need some.
const LEAST_BYTES: usize = 1 << 20;

/// What the walk may use.
#[derive(Clone, Copy)]
pub(in crate::engine) struct StackWalkBounds<'a> {
    pub(in crate::engine) work: u64,
    pub(in crate::engine) max_bytes: usize,
    pub(in crate::engine) interrupt: &'a Interrupt,
}

/// Sets the bits of the entries of a trie that can follow a set of stacks; how many nodes were
/// entered.
///
/// # Errors
/// [`Halt::Work`]; [`Halt::Bytes`] where the sets of one path pass the bound; those of the interrupt.
pub(in crate::engine) fn walk(
    network: &Arc<Network>,
    trie: &Trie,
    (sets, set): (&StackSets, SetId),
    bounds: StackWalkBounds<'_>,
    bits: &mut [i32],
) -> Result<u64, Halt> {
    let (mut walk, start) = StackWalk::new(network, (sets, set), bounds)?;
    let mut path = vec![(trie.end(0), start)];
    walk.below(trie, 1..trie.end(0), &mut path, bits)?;
    if let Some(ids) = trie.ids() {
        let start = path[0].1;
        let mut path = vec![(trie.end(ids), start)];
        walk.below(trie, ids + 1..trie.end(ids), &mut path, bits)?;
    }
    Ok(walk.entered)
}

/// Sets the bits of the entries below a node of a trie whose bytes behind those of the node can follow a
/// set of stacks.
///
/// # Errors
/// Those of [`walk`].
pub(in crate::engine) fn walk_below(
    network: &Arc<Network>,
    (trie, node): (&Trie, u32),
    (sets, set): (&StackSets, SetId),
    bounds: StackWalkBounds<'_>,
    bits: &mut [i32],
) -> Result<(), Halt> {
    let (mut walk, start) = StackWalk::new(network, (sets, set), bounds)?;
    let end = trie.end(node);
    walk.below(trie, node + 1..end, &mut vec![(end, start)], bits)
}

fn fresh(network: &Arc<Network>) -> Stepper<Arc<Network>> {
    let mut stepper = Stepper::new(network.clone());
    stepper.sets.max_depth = u32::MAX;
    stepper
}

struct StackWalk<'a> {
    network: &'a Arc<Network>,
    stepper: Stepper<Arc<Network>>,
    max_bytes: usize,
    entered: u64,
    /// Work units that the tables made last may take.
    left: u64,
    interrupt: &'a Interrupt,
}

impl<'a> StackWalk<'a> {
    /// At a set of stacks.
    fn new(
        network: &'a Arc<Network>,
        (sets, set): (&StackSets, SetId),
        bounds: StackWalkBounds<'a>,
    ) -> Result<(Self, SetId), Halt> {
        let mut walk = Self {
            network,
            stepper: fresh(network),
            max_bytes: bounds.max_bytes.max(LEAST_BYTES),
            entered: 0,
            left: bounds.work,
            interrupt: bounds.interrupt,
        };
        walk.stepper.sets.meter.allow(walk.left, walk.interrupt);
        let start = copy(sets, set, &mut walk.stepper.sets, &mut FxHashMap::default())?;
        Ok((walk, start))
    }

    /// Walks some nodes; the path begins with the stacks before them, and has them at the end too.
    fn below(
        &mut self,
        trie: &Trie,
        nodes: std::ops::Range<u32>,
        path: &mut Vec<(u32, SetId)>,
        bits: &mut [i32],
    ) -> Result<(), Halt> {
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut node = nodes.start;
        while node < nodes.end {
            while path[path.len() - 1].0 <= node {
                path.pop();
            }
            self.entered += 1;
            if self.entered & CHECK_MASK == 0 {
                self.interrupt.check()?;
            }
            if self.entered.is_multiple_of(NODES_OF_WORK) {
                self.stepper.sets.spend(1)?;
            }
            if self.stepper.bytes() > self.max_bytes {
                self.make_anew(path)?;
            }
            let end = trie.end(node);
            let class = class_at(alphabet, trie, node);
            let set = self.stepper.step(path[path.len() - 1].1, class)?;
            if set == NONE {
                node = end;
                continue;
            }
            set_bits(bits, trie.numbers(node));
            if set == REST || end == node + 1 {
                node = end;
                continue;
            }
            path.push((end, set));
            node += 1;
        }
        path.truncate(1);
        Ok(())
    }

    /// New tables with the sets of the path.
    fn make_anew(&mut self, path: &mut [(u32, SetId)]) -> Result<(), Halt> {
        let meter = &self.stepper.sets.meter;
        self.left = self.left.saturating_sub(meter.spent());
        let mut new = fresh(self.network);
        new.sets.meter.allow(self.left, self.interrupt);
        let mut copies = FxHashMap::default();
        for (_, set) in path {
            *set = copy(&self.stepper.sets, *set, &mut new.sets, &mut copies)?;
        }
        if new.bytes() > self.max_bytes / 2 {
            return Err(Halt::Bytes);
        }
        self.stepper = new;
        Ok(())
    }
}
