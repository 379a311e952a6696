//! Ways to leave a frame, and which of them can matter beside others (docs/design/ending-in-time.md, "What may be
//! dropped").

use super::dawg::{Dawg, NodeId};
use super::strings::UNREACHABLE;
use crate::budget::Halt;
use crate::network::{ClassSet, meet};
use crate::stacks::SetId;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A node of the tokens' automaton at which something is left, and the tokens finished until then.
pub(crate) type Way = (NodeId, u32);

/// The ways out of sets of stacks above an unknown rest, with a token read as far as a node.
#[derive(Default)]
pub(crate) struct KnownExits {
    ways: FxHashMap<(SetId, NodeId), Arc<[Way]>>,
    /// Bytes of all ways.
    held: usize,
    /// Bytes that they may hold.
    pub(crate) most_bytes: usize,
}

impl KnownExits {
    pub(super) fn get(&self, set: SetId, node: NodeId) -> Option<&Arc<[Way]>> {
        self.ways.get(&(set, node))
    }

    /// Remembers the ways of a set.
    ///
    /// # Errors
    /// [`Halt::Bytes`].
    pub(super) fn insert(&mut self, set: SetId, node: NodeId, ways: Vec<Way>) -> Result<(), Halt> {
        self.held += 16 + size_of_val(&*ways);
        self.ways.insert((set, node), ways.into());
        if self.bytes() > self.most_bytes { Err(Halt::Bytes) } else { Ok(()) }
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.held + self.ways.capacity() * 25
    }
}

/// One way to leave a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exit {
    /// How far the token under way was read then: the strings with which it may go on.
    pub(super) node: NodeId,
    /// The tokens finished.
    pub(super) tokens: u32,
    /// The bytes read, where the network counts.
    pub(super) bytes: u32,
}

/// What of an exit can matter beside one between two tokens that costs so many.
pub(super) fn needed(dawg: &mut Dawg, exit: Exit, clean: u32) -> Option<Exit> {
    if exit.node == dawg.root() {
        return (exit.tokens <= clean).then_some(exit);
    }
    let node = dawg.harder(exit.node, (exit.tokens + 1).saturating_sub(clean))?;
    Some(Exit { node, ..exit })
}

/// Whether an exit can matter beside one between two tokens that costs so many.
pub(super) fn is_kept(dawg: &Dawg, exit: &Exit, clean: u32) -> bool {
    match exit.node == dawg.root() {
        true => exit.tokens <= clean,
        false => exit.tokens + 1 < clean.saturating_add(dawg.tokens(exit.node)),
    }
}

/// Those of some exits that can matter beside the others, cheapest first: one between two tokens, and one for each
/// cost.
pub(super) fn cheapest(dawg: &mut Dawg, exits: &mut Vec<Exit>) {
    let root = dawg.root();
    let between = exits.iter().filter(|exit| exit.node == root).map(|exit| exit.tokens);
    let clean = between.min().unwrap_or(UNREACHABLE);
    exits.sort_unstable_by_key(|exit| (exit.tokens, exit.bytes, exit.node != root, exit.node));
    let mut kept: Vec<Exit> = Vec::new();
    let mut is_left = false;
    for same in exits.chunk_by(|a, b| (a.tokens, a.bytes) == (b.tokens, b.bytes)) {
        let Exit { tokens, bytes, .. } = same[0];
        if same[0].node == root && !std::mem::replace(&mut is_left, true) {
            kept.push(same[0]);
        }
        let pending = same.iter().filter_map(|exit| needed(dawg, *exit, clean));
        let nodes: Vec<NodeId> =
            pending.map(|exit| exit.node).filter(|&node| node != root).collect();
        let Some(node) = dawg.union(&nodes) else { continue };
        if !kept.iter().any(|known| known.node != root && dawg.covers(known.node, node)) {
            kept.push(Exit { node, tokens, bytes });
        }
    }
    *exits = kept;
}

/// The exits of a rule that is one automaton.
pub(super) struct RuleExits {
    /// Its states, as far as letters lead there from the one that was asked about first.
    pub(super) states: FxHashSet<u32>,
    /// The classes behind which it is complete.
    pub(super) last: ClassSet,
    /// Where it may be left behind a token that ended in the rule, where it can be left between two tokens after one:
    /// the strings that need more than one token by themselves. `None` where there are none.
    pub(super) hard: Option<NodeId>,
}

impl RuleExits {
    /// From the states and the last classes of a rule, and the classes that can follow it.
    pub(super) fn new(
        (last, states): (ClassSet, FxHashSet<u32>),
        follow: &ClassSet,
        dawg: &mut Dawg,
    ) -> Self {
        let all = 0..dawg.reached() as NodeId;
        let mut nodes: Vec<NodeId> = all.flat_map(|node| dawg.children_by(node, &last)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain_mut(|node| {
            let hard = dawg.harder(*node, 1).filter(|&hard| meet(follow, dawg.next(hard)));
            hard.inspect(|&hard| *node = hard).is_some()
        });
        let hard = dawg.union(&nodes);
        Self { states, last, hard }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.states.capacity() * 5
    }
}
