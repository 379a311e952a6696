//! The tree of a pattern.
//!
//! Invariants of the arena:
//! - a child stands before its parent, so every pass is a loop;
//! - equal sets are one set, and a set is one leaf, so the tree is a graph without cycles;
//! - sets hold scalar values only, and are closed under case folding where the flag `i` says so;
//! - what is repeated reads at least one character in some match.

use crate::grammar::CharSet;
use rustc_hash::FxHashMap;

/// A node of a [`PatternTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct PatternNodeId(u32);

/// A set of a [`PatternTree`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct CharSetId(u32);

impl PatternNodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

impl CharSetId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a place in a text must be, reading nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Assertion {
    /// The start of the text.
    Start,
    /// The end of the text.
    End,
    /// The end of the text, or before a newline that ends it: Python's `$`.
    EndOrLastNewline,
    /// The start of the text, or behind one of these.
    LineStart(CharSetId),
    /// The end of the text, or before one of these.
    LineEnd(CharSetId),
    /// Between one of these and none of these, or the ends of the text; or not so.
    Boundary { word: CharSetId, is_negated: bool },
}

impl Assertion {
    /// Whether only the ends of the text matter.
    pub(super) fn is_plain(self) -> bool {
        matches!(self, Assertion::Start | Assertion::End)
    }
}

/// A pattern, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PatternNode {
    /// The empty text.
    Empty,
    /// One character of the set.
    Set(CharSetId),
    /// One after the other, at least two.
    Sequence(Box<[PatternNodeId]>),
    /// One of these, at least two.
    Choice(Box<[PatternNodeId]>),
    /// So many of the body, one after the other; never `{1,1}`, never `{0,0}`.
    Repeat { body: PatternNodeId, min: u32, max: Option<u32> },
    /// A place.
    Assert(Assertion),
    /// A place before which, or behind which, the body has a match; or has none.
    Look { body: PatternNodeId, is_ahead: bool, is_negated: bool },
}

/// A pattern as an arena.
#[derive(Clone, Debug, Default)]
pub(super) struct PatternTree {
    pub(super) nodes: Vec<PatternNode>,
    pub(super) sets: Vec<CharSet>,
    pub(super) root: Option<PatternNodeId>,
    /// For each node whether it reads nothing in any match.
    is_place: Vec<bool>,
    known_sets: FxHashMap<CharSet, CharSetId>,
    leaves: FxHashMap<CharSetId, PatternNodeId>,
    assertions: FxHashMap<Assertion, PatternNodeId>,
    empty: Option<PatternNodeId>,
}

impl PatternTree {
    pub(super) fn node(&self, id: PatternNodeId) -> &PatternNode {
        &self.nodes[id.index()]
    }

    /// The id of the `index`-th node.
    pub(super) fn id(&self, index: usize) -> PatternNodeId {
        PatternNodeId(index as u32)
    }

    /// The whole pattern.
    pub(super) fn root(&self) -> PatternNodeId {
        self.root.unwrap_or(PatternNodeId(0))
    }

    pub(super) fn set(&self, id: CharSetId) -> &CharSet {
        &self.sets[id.index()]
    }

    /// Which nodes are below `root`.
    pub(super) fn needed(&self, root: PatternNodeId) -> Vec<bool> {
        let mut out = vec![false; self.nodes.len()];
        let mut stack = vec![root];
        while let Some(id) = stack.pop() {
            if std::mem::replace(&mut out[id.index()], true) {
                continue;
            }
            match self.node(id) {
                PatternNode::Sequence(parts) | PatternNode::Choice(parts) => stack.extend(parts),
                PatternNode::Repeat { body, .. } | PatternNode::Look { body, .. } => {
                    stack.push(*body)
                }
                PatternNode::Empty | PatternNode::Set(_) | PatternNode::Assert(_) => {}
            }
        }
        out
    }

    /// Adds the nodes that `known` lacks: for each whether it has an empty match. Assertions and lookaround read
    /// nothing.
    pub(super) fn extend_nullable(&self, known: &mut Vec<bool>) {
        for node in &self.nodes[known.len()..] {
            known.push(match node {
                PatternNode::Empty | PatternNode::Assert(_) | PatternNode::Look { .. } => true,
                PatternNode::Set(_) => false,
                PatternNode::Sequence(parts) => parts.iter().all(|part| known[part.index()]),
                PatternNode::Choice(parts) => parts.iter().any(|part| known[part.index()]),
                PatternNode::Repeat { body, min, .. } => *min == 0 || known[body.index()],
            });
        }
    }

    fn add(&mut self, node: PatternNode, is_place: bool) -> PatternNodeId {
        let id = PatternNodeId(self.nodes.len() as u32);
        self.nodes.push(node);
        self.is_place.push(is_place);
        id
    }

    pub(super) fn add_set(&mut self, set: CharSet) -> CharSetId {
        if let Some(&id) = self.known_sets.get(&set) {
            return id;
        }
        let id = CharSetId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.known_sets.insert(set, id);
        id
    }

    pub(super) fn leaf(&mut self, set: CharSetId) -> PatternNodeId {
        if let Some(&id) = self.leaves.get(&set) {
            return id;
        }
        let id = self.add(PatternNode::Set(set), false);
        self.leaves.insert(set, id);
        id
    }

    pub(super) fn empty(&mut self) -> PatternNodeId {
        if let Some(id) = self.empty {
            return id;
        }
        let id = self.add(PatternNode::Empty, true);
        self.empty = Some(id);
        id
    }

    pub(super) fn assert(&mut self, assertion: Assertion) -> PatternNodeId {
        if let Some(&id) = self.assertions.get(&assertion) {
            return id;
        }
        let id = self.add(PatternNode::Assert(assertion), true);
        self.assertions.insert(assertion, id);
        id
    }

    pub(super) fn look(
        &mut self,
        body: PatternNodeId,
        is_ahead: bool,
        is_negated: bool,
    ) -> PatternNodeId {
        self.add(PatternNode::Look { body, is_ahead, is_negated }, true)
    }

    /// One after the other.
    pub(super) fn sequence(&mut self, mut parts: Vec<PatternNodeId>) -> PatternNodeId {
        parts.retain(|&part| *self.node(part) != PatternNode::Empty);
        parts.dedup_by(|a, b| a == b && self.is_place[a.index()]);
        match parts[..] {
            [] => self.empty(),
            [part] => part,
            _ => {
                let is_place = parts.iter().all(|part| self.is_place[part.index()]);
                self.add(PatternNode::Sequence(parts.into()), is_place)
            }
        }
    }

    /// One of these; there is at least one.
    pub(super) fn choice(&mut self, parts: Vec<PatternNodeId>) -> PatternNodeId {
        match parts[..] {
            [] => self.empty(),
            [part] => part,
            _ => {
                let is_place = parts.iter().all(|part| self.is_place[part.index()]);
                self.add(PatternNode::Choice(parts.into()), is_place)
            }
        }
    }

    /// So many of the body. A body that reads nothing is needed once or not at all; loops in loops
    /// are one loop.
    pub(super) fn repeat(
        &mut self,
        body: PatternNodeId,
        min: u32,
        max: Option<u32>,
    ) -> PatternNodeId {
        if max == Some(0) || (min == 0 && self.is_place[body.index()]) {
            return self.empty();
        }
        if (min, max) == (1, Some(1)) || self.is_place[body.index()] {
            return body;
        }
        if let &PatternNode::Repeat { body: inner, min: least, max: most } = self.node(body)
            && least <= 1
            && (most.is_none() || (least, most) == (0, Some(1)))
            && min <= 1
            && max.is_none()
        {
            let min = least.min(min);
            return match self.node(body) {
                PatternNode::Repeat { min: known, max: None, .. } if *known == min => body,
                _ => self.add(PatternNode::Repeat { body: inner, min, max: None }, false),
            };
        }
        self.add(PatternNode::Repeat { body, min, max }, false)
    }
}
