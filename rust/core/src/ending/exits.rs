//! Ways to leave a frame, and which of them can matter beside others (docs/design/ending-in-time.md, "What may be
//! dropped").

use super::dawg::{Dawg, NodeId, UNASKED};
use super::strings::UNREACHABLE;
use crate::budget::Halt;
use crate::stacks::SetId;
use rustc_hash::FxHashMap;
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
    debug_assert!(dawg.tokens(exit.node) != UNASKED, "a frame is left where none can be: {exit:?}");
    match exit.node == dawg.root() {
        true => exit.tokens <= clean,
        false => exit.tokens + 1 < clean.saturating_add(dawg.tokens(exit.node)),
    }
}

/// The exits of a pair.
#[derive(Debug, Default)]
pub(super) struct PairExits {
    /// At most one between two tokens, and one within a token for each cost.
    pub(super) exits: Vec<Exit>,
    /// Whether only exits that can matter are there.
    is_tidy: bool,
}

impl PairExits {
    /// Puts an exit between two tokens in place of a dearer one; whether it is new.
    pub(super) fn put_between(&mut self, exit: Exit) -> bool {
        match self.exits.iter_mut().find(|known| known.node == exit.node) {
            Some(known) if (known.tokens, known.bytes) <= (exit.tokens, exit.bytes) => {
                return false;
            }
            Some(known) => *known = exit,
            None => self.exits.push(exit),
        }
        self.is_tidy = false;
        true
    }

    /// Adds an exit within a token: it and the one of the same cost become one, which is returned if it is new.
    pub(super) fn put_within(&mut self, dawg: &mut Dawg, mut exit: Exit) -> Option<Exit> {
        let root = dawg.root();
        // Where a grammar counts bytes, rows may have a hundred exits.
        dawg.unions.work += self.exits.len() as u64;
        let mut same = None;
        for (at, known) in self.exits.iter().enumerate() {
            if known.node == root || known.tokens > exit.tokens {
                continue;
            }
            if dawg.covers(known.node, exit.node) {
                return None;
            }
            if (known.tokens, known.bytes) == (exit.tokens, exit.bytes) {
                same = Some(at);
            }
        }
        if let Some(at) = same {
            exit.node = dawg.union_of_two(exit.node, self.exits.swap_remove(at).node);
        }
        self.exits.retain(|known| {
            let is_cheaper = known.node == root || known.tokens < exit.tokens;
            is_cheaper || !dawg.covers(exit.node, known.node)
        });
        self.exits.push(exit);
        self.is_tidy = false;
        Some(exit)
    }

    /// The exits that can matter. Cheaper ones, found later, may have made others needless, or strings of them.
    pub(super) fn tidied(&mut self, dawg: &mut Dawg) -> &[Exit] {
        if !std::mem::replace(&mut self.is_tidy, true) {
            cheapest(dawg, &mut self.exits);
        }
        &self.exits
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
        let mut nodes: Vec<NodeId> =
            pending.map(|exit| exit.node).filter(|&node| node != root).collect();
        let Some(node) = dawg.union(&mut nodes) else { continue };
        if !kept.iter().any(|known| known.node != root && dawg.covers(known.node, node)) {
            kept.push(Exit { node, tokens, bytes });
        }
    }
    *exits = kept;
}
