//! Word boundaries written out as sets of characters, so that counts beside them stay counts.
//!
//! A boundary in a row of parts asks that the characters before and behind it are of different kinds, word
//! characters or not; `\B`, that they are of one kind. So what stands before the first boundary is written
//! twice, for texts that end with a word character and for those that end with another one, and behind each
//! only those texts of the next part stand that begin as the boundary says. For `a{1,6}\b` the texts of
//! `a{1,6}` that end with one of a set are `a{0,5}` and one of that set: counts stay.
//!
//! A boundary within a repetition, an alternative or a lookaround is left to automata.

use super::Pattern;
use super::syntax::{Assertion, CharSetId, PatternNode, PatternNodeId, PatternTree};
use crate::grammar::CharSet;
use rustc_hash::FxHashMap;

/// How many times as large a pattern may become.
const MOST_GROWTH: u64 = 8;

/// Patterns with more boundaries are left to automata.
const MOST_BOUNDARIES: usize = 16;

/// Which end of a part is meant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartEnd {
    First,
    Last,
}

/// A pattern as a row of parts between boundaries.
struct BoundaryRow {
    /// How many `^` stand first, and how many `$` last.
    starts: usize,
    ends: usize,
    /// The parts between boundaries: one list more than there are boundaries.
    segments: Vec<Vec<PatternNodeId>>,
    /// Whether each boundary is a `\B`.
    negated: Vec<bool>,
    /// What word characters are.
    word: CharSetId,
}

struct BoundaryWriter {
    tree: PatternTree,
    is_nullable: Vec<bool>,
    /// Other characters and word characters.
    kinds: [CharSetId; 2],
}

impl Pattern {
    /// Whether [`Pattern::to_expr`] writes the pattern, as far as its assertions go.
    pub fn keeps_counts(&self, search: bool) -> bool {
        self.is_plain() || self.tree_without_boundaries(search).is_some()
    }

    /// The tree with its boundaries written out; `None` where it has none, or where they are not in a row
    /// of parts without other assertions.
    pub(super) fn tree_without_boundaries(&self, search: bool) -> Option<PatternTree> {
        if self.is_plain() {
            return None;
        }
        let row = BoundaryRow::of(&self.tree)?;
        let mut tree = self.tree.clone();
        let other = CharSet::scalar_values().difference(tree.set(row.word));
        let kinds = [tree.add_set(other), row.word];
        let mut writer = BoundaryWriter { tree, is_nullable: Vec::new(), kinds };
        let root = writer.write(&row, search)?;
        let mut tree = writer.tree;
        tree.root = Some(root);
        let allowed = MOST_GROWTH.saturating_mul(size(&self.tree)).saturating_add(64);
        (size(&tree) <= allowed).then_some(tree)
    }
}

impl BoundaryRow {
    fn of(tree: &PatternTree) -> Option<Self> {
        let mut parts = Vec::new();
        let mut work = vec![tree.root()];
        while let Some(id) = work.pop() {
            match tree.node(id) {
                PatternNode::Sequence(inner) => work.extend(inner.iter().rev()),
                _ => parts.push(id),
            }
        }
        let is = |part: &PatternNodeId, anchor: Assertion| {
            *tree.node(*part) == PatternNode::Assert(anchor)
        };
        let starts = parts.iter().take_while(|part| is(part, Assertion::Start)).count();
        let ends = parts.iter().rev().take_while(|part| is(part, Assertion::End)).count();
        let asserts = asserts(tree);
        let (mut segments, mut negated, mut of_words) = (vec![Vec::new()], Vec::new(), None);
        for &part in parts.get(starts..parts.len() - ends)? {
            if let &PatternNode::Assert(Assertion::Boundary { word, is_negated }) = tree.node(part)
            {
                if of_words.is_some_and(|known| known != word) || negated.len() == MOST_BOUNDARIES {
                    return None;
                }
                of_words = Some(word);
                negated.push(is_negated);
                segments.push(Vec::new());
            } else if asserts[part.index()] {
                return None;
            } else {
                segments.last_mut()?.push(part);
            }
        }
        Some(Self { starts, ends, segments, negated, word: of_words? })
    }
}

impl BoundaryWriter {
    /// The whole pattern; `None` where no text has a match.
    fn write(&mut self, row: &BoundaryRow, search: bool) -> Option<PatternNodeId> {
        let (first, others) = row.segments.split_first()?;
        // What may stand behind the boundary, by the kind of the character before it.
        let mut behind: Option<(bool, [Option<PatternNodeId>; 2])> = None;
        for (segment, &is_negated) in others.iter().zip(&row.negated).rev() {
            let segment = self.tree.sequence(segment.clone());
            let mut here = [None; 2];
            for last in 0..2 {
                let next = last ^ usize::from(!is_negated);
                let mut ways = Vec::new();
                match behind {
                    None => {
                        ways.extend(self.cut(segment, PartEnd::First, next));
                        if self.is_nullable(segment) {
                            let is_open = search && row.ends == 0;
                            ways.extend(self.beyond(Assertion::End, next, is_open));
                        }
                    }
                    Some((was_negated, following)) => {
                        for (kind, rest) in following.into_iter().enumerate() {
                            let Some(rest) = rest else { continue };
                            let part = self.cut(segment, PartEnd::Last, kind);
                            let part = part.and_then(|part| self.cut(part, PartEnd::First, next));
                            ways.extend(part.map(|part| self.tree.sequence(vec![part, rest])));
                        }
                        if self.is_nullable(segment) && was_negated == is_negated {
                            ways.extend(following[last]);
                        }
                    }
                }
                here[last] = self.either(ways);
            }
            behind = Some((is_negated, here));
        }
        let (_, behind) = behind?;
        // What comes before the last part that is never empty is no business of the boundary.
        let kept = first.iter().rposition(|&part| !self.is_nullable(part)).unwrap_or(0);
        let (before, beside) = first.split_at(kept);
        let beside = self.tree.sequence(beside.to_vec());
        let mut ways = Vec::new();
        for (kind, rest) in behind.into_iter().enumerate() {
            let Some(rest) = rest else { continue };
            let mut parts: Vec<_> = self.cut(beside, PartEnd::Last, kind).into_iter().collect();
            if self.is_nullable(beside) {
                let is_open = search && row.starts == 0;
                parts.extend(self.beyond(Assertion::Start, kind, is_open));
            }
            ways.extend(self.either(parts).map(|part| self.tree.sequence(vec![part, rest])));
        }
        let ways = self.either(ways)?;
        let mut whole = vec![self.tree.assert(Assertion::Start); row.starts.min(1)];
        whole.extend(before);
        whole.push(ways);
        whole.extend(vec![self.tree.assert(Assertion::End); row.ends.min(1)]);
        Some(self.tree.sequence(whole))
    }

    fn either(&mut self, ways: Vec<PatternNodeId>) -> Option<PatternNodeId> {
        (!ways.is_empty()).then(|| self.tree.choice(ways))
    }

    /// What stands beyond an end of the pattern, where a boundary asks for a character of a kind: the edge of
    /// the text is no word character.
    fn beyond(&mut self, edge: Assertion, kind: usize, is_open: bool) -> Option<PatternNodeId> {
        match (is_open, kind) {
            (false, 0) => Some(self.tree.empty()),
            (false, _) => None,
            (true, _) => {
                let one = self.tree.leaf(self.kinds[kind]);
                let mut ways = vec![one];
                if kind == 0 {
                    ways.push(self.tree.assert(edge));
                }
                self.either(ways)
            }
        }
    }

    /// Whether a part has the empty text.
    fn is_nullable(&mut self, part: PatternNodeId) -> bool {
        self.tree.extend_nullable(&mut self.is_nullable);
        self.is_nullable[part.index()]
    }

    /// The texts of a part without assertions that begin, or end, with a character of a kind; `None` where
    /// there are none.
    fn cut(&mut self, root: PatternNodeId, end: PartEnd, kind: usize) -> Option<PatternNodeId> {
        let is_needed = self.tree.needed(root);
        let mut cuts: FxHashMap<PatternNodeId, Option<PatternNodeId>> = FxHashMap::default();
        // Children stand before their parents.
        for index in (0..=root.index()).filter(|&index| is_needed[index]) {
            let id = self.tree.id(index);
            let made = match self.tree.node(id).clone() {
                PatternNode::Set(set) => {
                    let set = self.tree.set(set).intersection(self.tree.set(self.kinds[kind]));
                    (!set.is_empty()).then(|| {
                        let set = self.tree.add_set(set);
                        self.tree.leaf(set)
                    })
                }
                PatternNode::Sequence(parts) => self.cut_sequence(&parts, &cuts, end),
                PatternNode::Choice(parts) => {
                    let ways = parts.iter().filter_map(|part| *cuts.get(part)?).collect();
                    self.either(ways)
                }
                // A pass that reads nothing may as well be one of the others.
                PatternNode::Repeat { body, min, max } => {
                    cuts.get(&body).copied().flatten().map(|part| {
                        let max = max.map(|max| max.saturating_sub(1));
                        let others = self.tree.repeat(body, min.saturating_sub(1), max);
                        self.beside(part, others, end)
                    })
                }
                PatternNode::Empty | PatternNode::Assert(_) | PatternNode::Look { .. } => None,
            };
            cuts.insert(id, made);
        }
        cuts.get(&root).copied().flatten()
    }

    /// One of the parts up to the first that is never empty begins the text, and the others follow; from the
    /// other end likewise.
    fn cut_sequence(
        &mut self,
        parts: &[PatternNodeId],
        cuts: &FxHashMap<PatternNodeId, Option<PatternNodeId>>,
        end: PartEnd,
    ) -> Option<PatternNodeId> {
        let mut parts = parts.to_vec();
        if end == PartEnd::Last {
            parts.reverse();
        }
        let solid = parts.iter().position(|&part| !self.is_nullable(part));
        let reached = solid.map_or(parts.len(), |solid| solid + 1);
        let mut others = parts.split_off(reached);
        if end == PartEnd::Last {
            others.reverse();
        }
        let mut others = self.tree.sequence(others);
        let mut ways = Vec::new();
        for part in parts.into_iter().rev() {
            if let Some(cut) = cuts.get(&part).copied().flatten() {
                ways.push(self.beside(cut, others, end));
            }
            others = self.beside(part, others, end);
        }
        self.either(ways)
    }

    /// A part with others on the far side of an end.
    fn beside(
        &mut self,
        part: PatternNodeId,
        others: PatternNodeId,
        end: PartEnd,
    ) -> PatternNodeId {
        self.tree.sequence(match end {
            PartEnd::First => vec![part, others],
            PartEnd::Last => vec![others, part],
        })
    }
}

/// For each node whether there is an assertion or a lookaround below it.
fn asserts(tree: &PatternTree) -> Vec<bool> {
    let mut out: Vec<bool> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let asserts = match node {
            PatternNode::Empty | PatternNode::Set(_) => false,
            PatternNode::Sequence(parts) | PatternNode::Choice(parts) => {
                parts.iter().any(|part| out[part.index()])
            }
            PatternNode::Repeat { body, .. } => out[body.index()],
            PatternNode::Assert(_) | PatternNode::Look { .. } => true,
        };
        out.push(asserts);
    }
    out
}

/// The number of nodes, those that stand at several places counted at each.
fn size(tree: &PatternTree) -> u64 {
    let mut sizes: Vec<u64> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let of = |part: &PatternNodeId| sizes[part.index()];
        let size = match node {
            PatternNode::Empty | PatternNode::Set(_) | PatternNode::Assert(_) => 1,
            PatternNode::Sequence(parts) | PatternNode::Choice(parts) => {
                parts.iter().map(of).fold(1, u64::saturating_add)
            }
            PatternNode::Repeat { body, .. } | PatternNode::Look { body, .. } => {
                of(body).saturating_add(1)
            }
        };
        sizes.push(size);
    }
    sizes[tree.root().index()]
}
