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
    /// How far the token under way was read then.
    pub(super) node: NodeId,
    /// The tokens finished.
    pub(super) tokens: u32,
    /// The bytes read, where the network counts.
    pub(super) bytes: u32,
}

/// What of an exit can matter beside one between two tokens that costs so many.
pub(super) fn needed(dawg: &Dawg, exit: Exit, clean: u32) -> Option<Exit> {
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

/// Those of some ways out that can matter beside the others, by their nodes.
pub(super) fn cheapest(dawg: &Dawg, mut ways: Vec<Way>) -> Vec<Way> {
    let between = ways.iter().filter(|way| way.0 == dawg.root()).map(|way| way.1);
    let clean = between.min().unwrap_or(UNREACHABLE);
    ways.retain_mut(|way| {
        let exit = needed(dawg, Exit { node: way.0, tokens: way.1, bytes: 0 }, clean);
        exit.inspect(|exit| way.0 = exit.node).is_some()
    });
    ways.sort_unstable();
    ways.dedup_by_key(|way| way.0);
    ways
}

/// The exits of a rule that is one automaton.
pub(super) struct RuleExits {
    /// Its states, as far as letters lead there from the one that was asked about first.
    pub(super) states: FxHashSet<u32>,
    /// The classes behind which it is complete.
    pub(super) last: ClassSet,
    /// Nodes that may be left with behind a token that ended in the rule, where it can be left between two tokens
    /// after one: those whose strings need more than one token by themselves. Each of the others is covered by one.
    pub(super) hard: Box<[NodeId]>,
}

/// The maximum number of hard nodes of a rule.
const MOST_HARD: usize = 64;

impl RuleExits {
    /// From the states and the last classes of a rule, and the classes that can follow it; `None` where the rule has
    /// more than [`MOST_HARD`] hard nodes.
    pub(super) fn new(
        (last, states): (ClassSet, FxHashSet<u32>),
        follow: &ClassSet,
        dawg: &Dawg,
    ) -> Option<Self> {
        let nodes = (0..dawg.len() as NodeId).flat_map(|node| dawg.children_by(node, &last));
        let hard = nodes.filter_map(|node| dawg.harder(node, 1));
        let mut hard: Vec<NodeId> = hard.filter(|&node| meet(follow, dawg.next(node))).collect();
        hard.sort_unstable();
        hard.dedup();
        if hard.len() > 8 * MOST_HARD {
            return None;
        }
        let all = hard.clone();
        // Of nodes that cover each other the first is kept.
        hard.retain(|&node| {
            let covering = dawg.covering(node);
            let is_covered = |&other: &NodeId| {
                other != node
                    && covering.has(other)
                    && (other < node || !dawg.covering(other).has(node))
            };
            !all.iter().any(is_covered)
        });
        (hard.len() <= MOST_HARD).then(|| Self { states, last, hard: hard.into() })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.hard) + self.states.capacity() * 5
    }
}
