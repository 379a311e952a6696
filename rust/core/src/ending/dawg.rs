//! The strings of tokens as a minimal acyclic automaton (a DAWG), over the byte classes of a network.
//!
//! What the rest of a token can be is all that counts while it is read, so equal subtrees of the trie
//! are one node (Daciuk et al., 2000, for sorted strings).

use super::strings::{Paths, Strings, Suffixes, UNREACHABLE, is_spelled, shared};
use crate::network::{ClassSet, add_all, contains, insert};
use crate::vocabulary::Trie;
use rustc_hash::FxHashMap;

/// A node of a [`Dawg`].
pub(crate) type NodeId = u32;

/// Nodes for which it is known which others can go on as they can, at most: the table is quadratic. Where
/// more are reached, none is made for hard strings either.
const MOST_COMPARED: usize = 2_048;

#[derive(Clone, Debug)]
struct Node {
    /// The first of its children.
    first: u32,
    /// Whether a token ends here.
    is_end: bool,
    /// The classes that lead to children.
    next: ClassSet,
    /// The classes that lead on from there or from a node behind it.
    later: ClassSet,
    /// The most tokens that any string from here to the end of a token needs by itself.
    tokens: u32,
    /// The node that goes on with those strings alone that need more than one token by themselves.
    hard: Option<NodeId>,
}

/// Token strings, as paths from the root to nodes where tokens end. Nodes to which no path leads go on with
/// some of the strings of others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dawg {
    nodes: Vec<Node>,
    children: Vec<(u8, NodeId)>,
    root: NodeId,
    /// The most that [`Self::tokens`] is.
    most_tokens: u32,
    /// For each node the nodes that can go on with all that it can go on with: a bit set, empty where
    /// there are too many nodes.
    covering: Vec<u64>,
    /// The same the other way round: the nodes whose strings it can all go on with.
    covered: Vec<u64>,
    /// How many nodes these tables speak of: the first.
    compared: usize,
}

/// Some nodes of a [`Dawg`].
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'d>(&'d [u64]);

impl Nodes<'_> {
    /// Whether a node is one of them; the root never is.
    #[inline]
    pub(crate) fn has(self, node: NodeId) -> bool {
        self.0.get(node as usize >> 6).is_some_and(|word| word >> (node & 63) & 1 == 1)
    }
}

/// Makes nodes, of strings that come sorted.
#[derive(Default)]
struct Making {
    dawg: Dawg,
    known: FxHashMap<(bool, Vec<(u8, NodeId)>), NodeId>,
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

    /// A node, or one that was made before and does the same.
    fn node(&mut self, OpenNode { is_end, children, tokens, .. }: OpenNode) -> NodeId {
        if let Some(&known) = self.known.get(&(is_end, children.clone())) {
            return known;
        }
        let node = self.dawg.push(is_end, &children, tokens);
        self.known.insert((is_end, children), node);
        node
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
        let reached = making.dawg.len();
        if reached <= MOST_COMPARED {
            making.find_hard(&strings, &needs);
            let all = making.dawg.len();
            making.dawg.compare(if all <= MOST_COMPARED { all } else { reached });
        }
        making.dawg
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
            + (self.covering.capacity() + self.covered.capacity()) * 8
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

    /// A node that goes on with all strings of a node that need more than so many tokens by themselves, and
    /// maybe with more of its strings; `None` where there are no such strings.
    #[inline]
    pub(crate) fn harder(&self, node: NodeId, tokens: u32) -> Option<NodeId> {
        let Node { tokens: most, hard, .. } = &self.nodes[node as usize];
        match tokens {
            0 => Some(node),
            _ if *most <= tokens => None,
            _ => hard.or(Some(node)),
        }
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

    /// Whether a token ends at a node and nothing goes on from there.
    #[inline]
    pub(crate) fn is_last(&self, node: NodeId) -> bool {
        let Node { is_end, next, .. } = &self.nodes[node as usize];
        *is_end && *next == [0; 4]
    }

    /// The nodes that can go on with all that a node can go on with, as far as that is known.
    #[inline]
    pub(crate) fn covering(&self, node: NodeId) -> Nodes<'_> {
        self.nodes_of(&self.covering, node)
    }

    /// The nodes that can go on with nothing but what a node can go on with, as far as that is known.
    #[inline]
    pub(crate) fn covered(&self, node: NodeId) -> Nodes<'_> {
        self.nodes_of(&self.covered, node)
    }

    #[inline]
    fn nodes_of<'d>(&self, table: &'d [u64], node: NodeId) -> Nodes<'d> {
        let words = self.compared.div_ceil(64);
        let from = node as usize * words;
        Nodes(table.get(from..from + words).unwrap_or(&[]))
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

    /// Finds out which of the first nodes can go on with all that others of them can go on with.
    fn compare(&mut self, count: usize) {
        let words = count.div_ceil(64);
        let set = |table: &mut [u64], node: usize, other: usize| {
            table[node * words + (other >> 6)] |= 1 << (other & 63);
        };
        let mut by_class: Vec<Vec<(NodeId, NodeId)>> = vec![Vec::new(); 256];
        for node in 0..count as NodeId {
            for &(class, child) in self.children(node) {
                by_class[class as usize].push((node, child));
            }
        }
        let mut all = vec![u64::MAX; words];
        all[words - 1] >>= (words * 64 - count) as u32;
        let mut covering = vec![0u64; count * words];
        // By a class and a child the nodes which that class leads to what covers the child.
        let mut leading: FxHashMap<(u8, NodeId), Vec<u64>> = FxHashMap::default();
        // Children have lower numbers than their parents.
        for node in 0..count {
            let mut covers = all.clone();
            for &(class, child) in self.children(node as NodeId) {
                let nodes = leading.entry((class, child)).or_insert_with(|| {
                    let mut nodes = vec![0; words];
                    let known = &covering[child as usize * words..][..words];
                    for &(other, below) in &by_class[class as usize] {
                        let is_covering = child == below
                            || known[below as usize >> 6] >> (below & 63) & 1 == 1
                                && (!self.is_end(child) || self.is_end(below));
                        if is_covering {
                            set(&mut nodes, 0, other as usize);
                        }
                    }
                    nodes
                });
                covers.iter_mut().zip(nodes).for_each(|(covers, nodes)| *covers &= *nodes);
            }
            covering[node * words..][..words].copy_from_slice(&covers);
        }
        let mut covered = vec![0u64; count * words];
        for node in 0..count {
            for word in 0..words {
                let mut left = covering[node * words + word];
                while left != 0 {
                    set(&mut covered, word * 64 + left.trailing_zeros() as usize, node);
                    left &= left - 1;
                }
            }
        }
        (self.covering, self.covered, self.compared) = (covering, covered, count);
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
                    self.most_tokens = self.most_tokens.max(needed[read]);
                }
                let Some(next) = self.child(node, letter) else { break };
                node = next;
            }
            needs.extend_from_slice(&needed[..string.len()]);
        }
        needs
    }
}
