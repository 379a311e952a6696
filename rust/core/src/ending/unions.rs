//! Operations on the nodes of a [`Dawg`], of which each stands for the strings that it goes on with: unions, and the
//! strings of a node that matter.
//!
//! Equal sets of strings are one node, so that an operation on the same nodes is done once (as for decision diagrams;
//! Bryant, 1986; Minato, 1993).

use super::dawg::{Dawg, NodeId, Origin, UNASKED, Unions};
use crate::network::{ClassSet, contains, meet};
use rustc_hash::FxHashSet;

/// A union that waits for those of its children.
struct OpenUnion {
    nodes: Box<[NodeId]>,
    /// The children of all nodes, sorted, each once.
    letters: Vec<(u8, NodeId)>,
    done: usize,
    children: Vec<(u8, NodeId)>,
}

impl OpenUnion {
    fn new(dawg: &Dawg, nodes: &[NodeId]) -> Self {
        let mut letters: Vec<(u8, NodeId)> =
            nodes.iter().flat_map(|&node| dawg.children(node)).copied().collect();
        letters.sort_unstable();
        letters.dedup();
        Self { nodes: nodes.into(), letters, done: 0, children: Vec::new() }
    }
}

impl Dawg {
    /// The node that goes on with the strings of all of some nodes, none of them the root; `None` of none. The nodes
    /// are sorted.
    pub(super) fn union(&mut self, nodes: &mut Vec<NodeId>) -> Option<NodeId> {
        nodes.sort_unstable();
        nodes.dedup();
        match nodes[..] {
            [] => None,
            [node] => Some(node),
            [first, second] => Some(self.union_of_two(first, second)),
            _ => self.union_of_sorted(nodes),
        }
    }

    /// Forgets what can be found again.
    pub(super) fn forget_results(&mut self) {
        let Unions { unions, covers, parts, after, held, .. } = &mut self.unions;
        *held -= unions.keys().map(|nodes| size_of_val(&**nodes)).sum::<usize>();
        (*unions, *covers, *parts, *after) = Default::default();
    }

    /// Whether it holds at most so many bytes, if need be without what can be found again.
    pub(super) fn fits(&mut self, most_bytes: usize) -> bool {
        if self.bytes() > most_bytes && self.unions.bytes() > most_bytes / 4 {
            self.forget_results();
        }
        self.bytes() <= most_bytes
    }

    /// How many letters were looked at since this was asked last.
    pub(super) fn take_work(&mut self) -> u64 {
        std::mem::take(&mut self.unions.work)
    }

    /// The node that goes on with all strings behind a letter of some classes, if a node has any.
    pub(super) fn after(&mut self, node: NodeId, classes: &ClassSet) -> Option<NodeId> {
        if let Some(&known) = self.unions.after.get(&(node, *classes)) {
            return Some(known);
        }
        let mut below: Vec<NodeId> = self.children_by(node, classes).collect();
        let after = self.union(&mut below)?;
        self.unions.after.insert((node, *classes), after);
        Some(after)
    }

    /// The node that goes on with the strings of two nodes, neither of them the root.
    pub(super) fn union_of_two(&mut self, one: NodeId, other: NodeId) -> NodeId {
        let nodes = [one.min(other), one.max(other)];
        if self.covers(one, other) {
            return one;
        }
        self.union_of_sorted(&nodes).unwrap_or(one)
    }

    fn union_of_sorted(&mut self, nodes: &[NodeId]) -> Option<NodeId> {
        if let Some(&known) = self.unions.unions.get(nodes) {
            return Some(known);
        }
        // Tokens may be long, so unions of children wait on a stack.
        let mut work = vec![OpenUnion::new(self, nodes)];
        'work: while let Some(mut open) = work.pop() {
            while let Some(&(class, child)) = open.letters.get(open.done) {
                let rest = open.letters[open.done..].iter();
                let below: Vec<NodeId> =
                    rest.take_while(|letter| letter.0 == class).map(|letter| letter.1).collect();
                let child = match below[..] {
                    [_] => child,
                    _ => match self.unions.unions.get(&below[..]) {
                        Some(&known) => known,
                        None => {
                            let first = OpenUnion::new(self, &below);
                            work.push(open);
                            work.push(first);
                            continue 'work;
                        }
                    },
                };
                open.children.push((class, child));
                open.done += below.len();
            }
            self.close(open);
        }
        self.unions.unions.get(nodes).copied()
    }

    /// Makes the node of a union of which the children are known.
    fn close(&mut self, OpenUnion { nodes, letters, children, .. }: OpenUnion) {
        let is_end = nodes.iter().any(|&node| self.is_end(node));
        let tokens = nodes.iter().map(|&node| self.tokens(node)).max().unwrap_or(0);
        let before = self.len();
        let node = self.node(is_end, &children, tokens);
        self.note_origin(node, before, tokens, || Origin::Union(nodes.clone()));
        self.unions.work += 1 + letters.len() as u64;
        self.unions.held += size_of_val(&*nodes);
        self.unions.unions.insert(nodes, node);
    }

    /// Notes where the strings of a node are from if the node is new: at least `before`.
    fn note_origin(&mut self, node: NodeId, before: usize, tokens: u32, from: impl Fn() -> Origin) {
        let known = &mut self.nodes[node as usize];
        known.tokens = known.tokens.min(tokens);
        if node as usize >= before && tokens == UNASKED {
            // No exit is at this node, so it takes no work: all its strings count as hard.
            known.hard = Some(node);
        } else if node as usize >= before && tokens > 1 {
            let from = from();
            if let Origin::Union(nodes) = &from {
                self.unions.held += size_of_val(&**nodes);
            }
            self.unions.origins.insert(node, from);
        }
    }

    /// The node that goes on with the strings of a node that begin with one of some classes, without the empty one;
    /// `None` where there is no such string.
    pub(super) fn beginning_with(&mut self, node: NodeId, classes: &ClassSet) -> Option<NodeId> {
        let next = self.next(node);
        if !self.is_end(node) && next.iter().zip(classes).all(|(next, of)| next & !of == 0) {
            return Some(node);
        }
        if !meet(next, classes) {
            return None;
        }
        if let Some(&known) = self.unions.parts.get(&(node, *classes)) {
            return Some(known);
        }
        let children = self.children(node).iter().copied();
        let children: Vec<(u8, NodeId)> =
            children.filter(|child| contains(classes, child.0)).collect();
        self.unions.work += 1 + children.len() as u64;
        let (before, tokens) = (self.len(), self.tokens(node));
        let part = self.node(false, &children, tokens);
        self.note_origin(part, before, tokens, || Origin::Part(node, *classes));
        self.unions.parts.insert((node, *classes), part);
        Some(part)
    }

    /// Whether a node goes on with all strings of another.
    pub(super) fn covers(&mut self, node: NodeId, other: NodeId) -> bool {
        if node == other {
            return true;
        }
        if let Some(&known) = self.unions.covers.get(&(node, other)) {
            return known;
        }
        let covers = self.has_all(node, other);
        self.unions.covers.insert((node, other), covers);
        covers
    }

    fn has_all(&mut self, node: NodeId, other: NodeId) -> bool {
        let mut work = vec![(node, other)];
        let mut met: FxHashSet<(NodeId, NodeId)> = FxHashSet::default();
        while let Some((node, other)) = work.pop() {
            if node == other || !met.insert((node, other)) {
                continue;
            }
            match self.unions.covers.get(&(node, other)) {
                Some(true) => continue,
                Some(false) => return false,
                None => {}
            }
            let lacks = |of: fn(&Self, NodeId) -> &ClassSet| {
                of(self, other).iter().zip(of(self, node)).any(|(needed, has)| needed & !has != 0)
            };
            if self.is_end(other) && !self.is_end(node) || lacks(Self::next) || lacks(Self::later) {
                return false;
            }
            self.unions.work += 1 + self.children(other).len() as u64;
            let mut children = self.children(node).iter();
            for &(class, below) in self.children(other) {
                // Children are sorted, and the node has one for each class of the other.
                let has = children.find(|child| child.0 == class);
                work.extend(has.map(|child| (child.1, below)));
            }
        }
        true
    }

    /// The node that goes on with the strings of a node that need more than so many tokens by themselves, and maybe
    /// with more of its strings; `None` where there are no such strings.
    #[inline]
    pub(super) fn harder(&mut self, node: NodeId, tokens: u32) -> Option<NodeId> {
        match tokens {
            0 => Some(node),
            _ if self.tokens(node) <= tokens => None,
            _ => self.hard(node),
        }
    }

    /// The node that goes on with the strings of a node that need more than one token by themselves.
    fn hard(&mut self, node: NodeId) -> Option<NodeId> {
        let mut work = vec![node];
        while let Some(&node) = work.last() {
            let Some(origin) = self.unions.origins.get(&node).cloned() else {
                work.pop();
                continue;
            };
            let of: &[NodeId] = match &origin {
                Origin::Union(nodes) => nodes,
                Origin::Part(node, _) => std::slice::from_ref(node),
            };
            let waiting = work.len();
            work.extend(of.iter().filter(|node| self.unions.origins.contains_key(node)));
            if work.len() > waiting {
                continue;
            }
            work.pop();
            self.unions.origins.remove(&node);
            let mut parts: Vec<NodeId> =
                of.iter().filter_map(|&node| self.nodes[node as usize].hard).collect();
            let hard = match &origin {
                Origin::Union(_) => self.union(&mut parts),
                Origin::Part(_, classes) => {
                    parts.first().and_then(|&part| self.beginning_with(part, classes))
                }
            };
            self.nodes[node as usize].hard = hard;
            if let Some(hard) = hard
                && hard != node
            {
                // All its strings are hard.
                self.unions.origins.remove(&hard);
                self.nodes[hard as usize].hard = Some(hard);
            }
        }
        self.nodes[node as usize].hard
    }
}
