//! The strings of tokens as a minimal acyclic automaton (a DAWG), over the byte classes of a network.
//!
//! What the rest of a token can be is all that counts while it is read, so equal subtrees of the trie
//! are one node (Daciuk et al., 2000, for sorted strings).

use super::strings::{Paths, Strings, Suffixes, UNREACHABLE, is_spelled, shared};
use crate::network::{ClassSet, add_all, contains, insert};
use crate::vocabulary::Trie;
use hashbrown::HashTable;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};

/// A node of a [`Dawg`].
pub(crate) type NodeId = u32;

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
    /// A bound on the tokens that any string from here to the end of a token needs by itself.
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
        self.dawg.node(is_end, &children, tokens)
    }

    /// Finds for each node the strings that need more than one token by themselves. `needs` says how many
    /// each rest of each string needs.
    fn find_hard(&mut self, strings: &Strings, needs: &[u32]) {
        let Self { dawg, .. } = self;
        let mut rests: Vec<Vec<(usize, usize)>> = vec![Vec::new(); dawg.len()];
        let mut is_met = vec![false; dawg.len()];
        // The nodes on the path of a string, and whether this is the first prefix that leads there.
        let mut path: Vec<(NodeId, bool)> = vec![(dawg.root(), false)];
        let mut before: &[u8] = &[];
        for (index, string) in strings.iter().enumerate() {
            path.truncate(shared(before, string) + 1);
            for &letter in &string[path.len() - 1..] {
                let Some(node) = dawg.child(path[path.len() - 1].0, letter) else { break };
                let is_first = !std::mem::replace(&mut is_met[node as usize], true);
                path.push((node, is_first));
            }
            let from = strings.start(index);
            for (read, &(node, is_first)) in path.iter().enumerate().take(string.len()) {
                if is_first && needs[from + read] > 1 {
                    rests[node as usize].push((index, read));
                }
            }
            before = string;
        }
        for (node, rests) in rests.into_iter().enumerate().filter(|(_, rests)| !rests.is_empty()) {
            let mut before: &[u8] = &[];
            for (index, read) in rests {
                let (rest, needed) =
                    (&strings.get(index)[read..], &needs[strings.start(index) + read..]);
                self.read(rest, shared(before, rest), |read| needed[read]);
                before = rest;
            }
            let all = self.close_all();
            let hard = self.node(all);
            self.dawg.nodes[node].hard = Some(hard);
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
    /// can spell what is left of a string; `escape` the letter before an id.
    pub(crate) fn new(
        trie: &Trie,
        whole: &Trie,
        class: impl Fn(&Trie, u32) -> u8,
        escape: Option<u8>,
    ) -> Self {
        let strings = Strings::of_trie(trie, |node| class(trie, node));
        let mut making = Making::default();
        let mut before: &[u8] = &[];
        for string in strings.iter() {
            making.read(string, shared(before, string), |_| 1);
            before = string;
        }
        // No other node is the root, though one may do the same: between tokens costs differ.
        let all = making.close_all();
        making.dawg.root = making.dawg.push(false, &all.children, 0);
        let suffixes = match std::ptr::eq(trie, whole) {
            true => None,
            false => Some(Suffixes::new(&strings, whole, &class, escape)),
        };
        let needs = making.dawg.spell(&strings, suffixes.as_ref(), escape);
        making.dawg.reached = making.dawg.len();
        making.find_hard(&strings, &needs);
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

    /// Finds out how many tokens the rests of strings need, and returns it letter by letter: tokens of the whole
    /// vocabulary where its part in the rests is given, else of these strings.
    fn spell(
        &mut self,
        strings: &Strings,
        suffixes: Option<&Suffixes>,
        escape: Option<u8>,
    ) -> Vec<u32> {
        let mut needed = Vec::new();
        let mut needs = Vec::with_capacity(strings.letters.len());
        self.most_tokens = 1;
        let mut paths = Paths::default();
        for string in strings.iter() {
            needed.clear();
            needed.resize(string.len() + 1, UNREACHABLE);
            needed[string.len()] = 0;
            if is_spelled(string, escape) {
                if let Some(suffixes) = suffixes {
                    paths.turn_to(string, |at| suffixes.next(at));
                }
                for from in (1..string.len()).rev() {
                    let (rest, after) = (&string[from..], &needed[from..]);
                    needed[from] = match suffixes {
                        Some(suffixes) => suffixes.fewest(&paths.of[from], after),
                        None => self.fewest(rest, after),
                    };
                }
            }
            let mut node = self.root;
            for (read, &letter) in string.iter().enumerate() {
                if read > 0 {
                    let tokens = &mut self.nodes[node as usize].tokens;
                    *tokens = (*tokens).max(needed[read]);
                    // No frame is left within a token that is taken whole.
                    if string.first().copied() != escape {
                        self.most_tokens = self.most_tokens.max(needed[read]);
                    }
                }
                let Some(next) = self.child(node, letter) else { break };
                node = next;
            }
            needs.extend_from_slice(&needed[..string.len()]);
        }
        needs
    }
}

fn hash_of(is_end: bool, children: &[(u8, NodeId)]) -> u64 {
    let mut hasher = FxHasher::default();
    (is_end, children).hash(&mut hasher);
    hasher.finish()
}
