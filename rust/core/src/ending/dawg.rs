//! The strings of tokens as a minimal acyclic automaton (a DAWG), over the byte classes of a network.
//!
//! What the rest of a token can be is all that counts while it is read, so equal subtrees of the trie
//! are one node (Daciuk et al., 2000, for sorted strings).

use super::strings::{Cuts, Rest, Strings, UNREACHABLE, is_spelled, shared, spelled};
use crate::network::{ClassSet, add_all, contains, insert};
use crate::vocabulary::Trie;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// A node of a [`Dawg`].
pub(crate) type NodeId = u32;

/// The bound on the tokens of a node at which no frame can be left: no exit is there, so nothing reads the bound.
pub(super) const UNASKED: u32 = u32::MAX;

#[derive(Debug)]
pub(super) struct Node {
    /// The first of its children.
    first: u32,
    /// Whether a token ends here.
    is_end: bool,
    /// The classes that lead to children.
    next: ClassSet,
    /// The classes that lead on from there or from a node behind it.
    later: ClassSet,
    /// A bound on the tokens that any string from here to the end of a token needs by itself, of those that begin
    /// with what can be read where a frame is left.
    pub(super) tokens: u32,
    /// The node that goes on with those strings alone that need more than one token by themselves.
    pub(super) hard: Option<NodeId>,
}

/// Token strings, as paths from the root to nodes where tokens end. Nodes to which no path leads go on with
/// some of the strings of others, or with those of several ([`Dawg::union`]).
#[derive(Debug, Default)]
pub(crate) struct Dawg {
    pub(super) nodes: Vec<Node>,
    children: Vec<(u8, NodeId)>,
    root: NodeId,
    /// How many nodes paths from the root lead to: the first.
    reached: usize,
    /// The most that [`Self::tokens`] is, but for strings of tokens that are taken whole.
    most_tokens: u32,
    /// Whether rules count the tokens.
    pub(super) are_counted: bool,
    /// All nodes but the root: no two go on with the same strings.
    known: HashTable<NodeId>,
    pub(super) unions: Unions,
}

/// What is known of operations on nodes (`unions`).
#[derive(Debug, Default)]
pub(super) struct Unions {
    /// By sorted nodes.
    pub(super) unions: FxHashMap<Box<[NodeId]>, NodeId>,
    /// Whether the first goes on with all strings of the second.
    pub(super) covers: FxHashMap<(NodeId, NodeId), bool>,
    /// What begins with some classes.
    pub(super) parts: FxHashMap<(NodeId, ClassSet), NodeId>,
    /// What is behind a letter of some classes.
    pub(super) after: FxHashMap<(NodeId, ClassSet), NodeId>,
    /// For nodes of which the hard strings were not looked for yet: where their strings are from.
    pub(super) origins: FxHashMap<NodeId, Origin>,
    /// Letters looked at that nobody has asked for ([`Dawg::take_work`]).
    pub(super) work: u64,
    /// Bytes of the keys of unions, and of origins.
    pub(super) held: usize,
}

/// Where the strings of a node are from.
#[derive(Clone, Debug)]
pub(super) enum Origin {
    Union(Box<[NodeId]>),
    /// Those that begin with one of these classes.
    Part(NodeId, ClassSet),
}

impl Unions {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.held
            + self.unions.capacity() * (size_of::<(Box<[NodeId]>, NodeId)>() + 1)
            + self.covers.capacity() * 13
            + (self.parts.capacity() + self.after.capacity()) * 41
            + self.origins.capacity() * (size_of::<(NodeId, Origin)>() + 1)
    }
}

/// Makes nodes, of strings that come sorted.
#[derive(Default)]
struct Making {
    dawg: Dawg,
    /// The nodes on the path of the last string that are still open.
    open: Vec<OpenNode>,
}

/// A node that may get more children.
#[derive(Default)]
struct OpenNode {
    /// Whether a token ends there.
    is_end: bool,
    /// The children that are closed.
    children: Vec<(u8, NodeId)>,
    /// The letter that leads to the child that is open.
    letter: u8,
    /// The most tokens that a string from there needs by itself, as far as known.
    tokens: u32,
}

impl Making {
    /// Reads a string that shares so many letters with the one before; `needed` has the tokens that
    /// what is left of it needs, before each letter.
    fn read(&mut self, string: &[u8], shared: usize, needed: impl Fn(usize) -> u32) {
        self.close(shared);
        for (read, &letter) in string.iter().enumerate() {
            if read >= self.open.len() {
                self.open.push(OpenNode::default());
            }
            let open = &mut self.open[read];
            open.letter = letter;
            open.tokens = open.tokens.max(needed(read));
        }
        self.open.push(OpenNode { is_end: true, ..OpenNode::default() });
    }

    fn close(&mut self, depth: usize) {
        while self.open.len() > depth + 1 {
            let Some(node) = self.open.pop() else { return };
            let node = self.node(node);
            if let Some(before) = self.open.last_mut() {
                before.children.push((before.letter, node));
            }
        }
    }

    /// Closes all, and what they are reached from.
    fn close_all(&mut self) -> OpenNode {
        self.close(0);
        self.open.pop().unwrap_or_default()
    }

    fn node(&mut self, OpenNode { is_end, children, tokens, .. }: OpenNode) -> NodeId {
        let node = self.dawg.node(is_end, &children, tokens);
        let known = &mut self.dawg.nodes[node as usize].tokens;
        *known = tokens.min(*known);
        node
    }

    /// The rests of strings before which a frame can be left, by the node from which they lead on: each string of a
    /// node once. No frame is left within a token that is taken whole. Nodes at which no frame can be left keep no
    /// bound.
    fn rests(
        &mut self,
        strings: &Strings,
        escape: Option<u8>,
        Cuts { last, next }: Cuts,
    ) -> Vec<Rest> {
        let Self { dawg, .. } = self;
        let mut rests = Vec::new();
        // The nodes on the path of a string, and whether this is the first prefix that leads there and ends with a
        // letter behind which a frame can be left.
        let mut path: Vec<(NodeId, bool)> = vec![(dawg.root(), false)];
        let mut before: &[u8] = &[];
        for (index, string) in strings.iter().enumerate() {
            if escape.is_some_and(|escape| string.first() == Some(&escape)) {
                continue;
            }
            path.truncate(shared(before, string) + 1);
            for &letter in &string[path.len() - 1..] {
                let Some(node) = dawg.child(path[path.len() - 1].0, letter) else { break };
                let tokens = &mut dawg.nodes[node as usize].tokens;
                let is_first = contains(&last, letter) && *tokens == UNASKED;
                if is_first {
                    *tokens = 1;
                }
                path.push((node, is_first));
            }
            for (at, &(node, is_first)) in path.iter().enumerate().take(string.len()) {
                if is_first && contains(&next, string[at]) {
                    rests.push(Rest { node, index, at });
                }
            }
            before = string;
        }
        rests
    }

    /// Bounds the tokens of nodes by those that the rests of strings need, and finds for each node the strings that
    /// need more than one token by themselves. `needs` says how many each rest needs.
    fn bound_tokens(&mut self, strings: &Strings, mut rests: Vec<Rest>, needs: &[u32]) {
        let Self { dawg, .. } = self;
        dawg.reached = dawg.len();
        dawg.most_tokens = 1;
        rests.retain(|&Rest { node, index, at }| {
            let needed = needs[strings.start(index) + at];
            let bound = &mut dawg.nodes[node as usize].tokens;
            *bound = needed.max(*bound);
            dawg.most_tokens = dawg.most_tokens.max(needed);
            needed > 1
        });
        // Those of a node stay sorted.
        rests.sort_by_key(|rest| rest.node);
        for rests in rests.chunk_by(|a, b| a.node == b.node) {
            let mut before: &[u8] = &[];
            for &Rest { index, at, .. } in rests {
                let (rest, needed) =
                    (&strings.get(index)[at..], &needs[strings.start(index) + at..]);
                self.read(rest, shared(before, rest), |read| needed[read]);
                before = rest;
            }
            let all = self.close_all();
            let hard = self.node(all);
            self.dawg.nodes[rests[0].node as usize].hard = Some(hard);
        }
        for node in 0..self.dawg.len() {
            let Node { tokens, hard, .. } = &mut self.dawg.nodes[node];
            if *tokens > 1 && hard.is_none() {
                *hard = Some(node as NodeId);
            }
        }
    }
}

impl Dawg {
    /// The automaton of the strings of a trie. `whole` is the trie of the whole vocabulary, whose tokens
    /// can spell what is left of a string; `escape` the letter before an id; frames are left at `cuts` alone.
    pub(super) fn new(
        trie: &Trie,
        whole: &Trie,
        class: impl Fn(&Trie, u32) -> u8,
        escape: Option<u8>,
        cuts: Cuts,
    ) -> Self {
        let strings = Strings::of_trie(trie, |node| class(trie, node));
        let mut making = Making::default();
        let mut before: &[u8] = &[];
        for string in strings.iter() {
            making.read(string, shared(before, string), |_| UNASKED);
            before = string;
        }
        // No other node is the root, though one may do the same: between tokens costs differ.
        let all = making.close_all();
        making.dawg.root = making.dawg.push(false, &all.children, 0);
        let rests = making.rests(&strings, escape, cuts);
        let needs = match std::ptr::eq(trie, whole) {
            true => making.dawg.spelled(&strings, &rests),
            false => spelled(&strings, &rests, whole, &class),
        };
        making.bound_tokens(&strings, rests, &needs);
        making.dawg
    }

    /// The node with some children, which is made if there is none.
    pub(super) fn node(&mut self, is_end: bool, children: &[(u8, NodeId)], tokens: u32) -> NodeId {
        let found = hash_of(is_end, children);
        let is_same =
            |&node: &NodeId| self.is_end(node) == is_end && self.children(node) == children;
        if let Some(&known) = self.known.find(found, is_same) {
            return known;
        }
        let node = self.push(is_end, children, tokens);
        let mut known = std::mem::take(&mut self.known);
        known.insert_unique(found, node, |&node| hash_of(self.is_end(node), self.children(node)));
        self.known = known;
        node
    }

    /// A node more.
    fn push(&mut self, is_end: bool, children: &[(u8, NodeId)], tokens: u32) -> NodeId {
        let mut next = [0; 4];
        children.iter().for_each(|child| insert(&mut next, child.0));
        let mut later = next;
        children.iter().for_each(|child| add_all(&mut later, &self.nodes[child.1 as usize].later));
        let first = self.children.len() as u32;
        self.children.extend_from_slice(children);
        self.nodes.push(Node { first, is_end, next, later, tokens, hard: None });
        self.nodes.len() as NodeId - 1
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
            + self.children.capacity() * size_of::<(u8, NodeId)>()
            + self.known.capacity() * 5
            + self.unions.bytes()
    }

    /// How many nodes paths from the root lead to: the first.
    pub(super) fn reached(&self) -> usize {
        self.reached
    }

    /// Between tokens.
    pub(crate) fn root(&self) -> NodeId {
        self.root
    }

    /// The most tokens that the string of any pending node needs by itself.
    pub(crate) fn most_tokens(&self) -> u32 {
        self.most_tokens
    }

    /// Whether a token ends at a node.
    #[inline]
    pub(crate) fn is_end(&self, node: NodeId) -> bool {
        self.nodes[node as usize].is_end
    }

    /// The most tokens that any string from a node to the end of a token needs by itself.
    #[inline]
    pub(crate) fn tokens(&self, node: NodeId) -> u32 {
        self.nodes[node as usize].tokens
    }

    /// The classes that lead on from a node.
    #[inline]
    pub(crate) fn next(&self, node: NodeId) -> &ClassSet {
        &self.nodes[node as usize].next
    }

    /// The classes that some token reads from a node on.
    #[inline]
    pub(crate) fn later(&self, node: NodeId) -> &ClassSet {
        &self.nodes[node as usize].later
    }

    /// The children of a node, by class.
    #[inline]
    pub(crate) fn children(&self, node: NodeId) -> &[(u8, NodeId)] {
        let from = self.nodes[node as usize].first as usize;
        let count: u32 = self.nodes[node as usize].next.iter().map(|word| word.count_ones()).sum();
        &self.children[from..from + count as usize]
    }

    /// Where classes of a set lead from a node.
    #[inline]
    pub(crate) fn children_by(
        &self,
        node: NodeId,
        classes: &ClassSet,
    ) -> impl Iterator<Item = NodeId> + '_ {
        let Node { first, next, .. } = &self.nodes[node as usize];
        let mut word = 0;
        let mut before = *first;
        let mut left = next[0] & classes[0];
        let rest = [1, 2, 3].map(|word| next[word] & classes[word]);
        std::iter::from_fn(move || {
            while left == 0 {
                before += next[word].count_ones();
                word += 1;
                left = *rest.get(word - 1)?;
            }
            let below = left.trailing_zeros();
            left &= left - 1;
            let rank = (next[word] & ((1 << below) - 1)).count_ones();
            Some(self.children[(before + rank) as usize].1)
        })
    }

    /// Where a class leads from a node.
    #[inline]
    pub(crate) fn child(&self, node: NodeId, class: u8) -> Option<NodeId> {
        let next = self.next(node);
        if !contains(next, class) {
            return None;
        }
        let word = class as usize >> 6;
        let before: u32 = next[..word].iter().map(|word| word.count_ones()).sum();
        let rank = before + (next[word] & ((1u64 << (class & 63)) - 1)).count_ones();
        Some(self.children[(self.nodes[node as usize].first + rank) as usize].1)
    }

    /// The fewest of these tokens that spell a string, given those of what is left after each letter.
    fn fewest(&self, string: &[u8], needed: &[u32]) -> u32 {
        let (mut node, mut best) = (self.root, UNREACHABLE);
        for (read, &letter) in string.iter().enumerate() {
            let Some(next) = self.child(node, letter) else { break };
            node = next;
            if self.is_end(node) {
                best = best.min(needed[read + 1].saturating_add(1));
            }
        }
        best
    }

    /// How many of these tokens spell rests of strings, as [`spelled`] has it.
    fn spelled(&self, strings: &Strings, rests: &[Rest]) -> Vec<u32> {
        let mut needs = vec![UNREACHABLE; strings.letters.len()];
        let mut needed = Vec::new();
        for of_string in rests.chunk_by(|a, b| a.index == b.index) {
            let Rest { index, at: first, .. } = of_string[0];
            let string = strings.get(index);
            if !is_spelled(string) {
                continue;
            }
            needed.clear();
            needed.resize(string.len() + 1, UNREACHABLE);
            needed[string.len()] = 0;
            for at in (first..string.len()).rev() {
                needed[at] = self.fewest(&string[at..], &needed[at..]);
            }
            let from = strings.start(index);
            needs[from + first..from + string.len()].copy_from_slice(&needed[first..string.len()]);
        }
        needs
    }
}

fn hash_of(is_end: bool, children: &[(u8, NodeId)]) -> u64 {
    let mut hasher = FxHasher::default();
    (is_end, children).hash(&mut hasher);
    hasher.finish()
}
