//! Where the parts of a pattern look, and patterns cut into pieces of which none looks into another.
//!
//! The lookbehind of `.*(?<!x)y{1,9999}z` looks at what `.*` reads, and nothing else looks anywhere. So the texts of
//! the pattern are those of `.*(?<!x)` with those of `y{1,9999}z` behind. The first piece takes formulas, the second
//! keeps its count as a count; formulas over the whole pattern grow with the square of the count.

use super::Pattern;
use super::syntax::{Assertion, PatternNode, PatternNodeId, PatternTree};

/// Counts above this are kept as counts, where the whole language is one pattern.
pub(crate) const LARGE_COUNT: u32 = 16;

/// What the nodes below one look at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Directions {
    /// There is a lookbehind.
    pub(super) has_lookbehind: bool,
    /// Something depends on what was read before.
    pub(super) looks_back: bool,
    /// Something depends on what is read next.
    pub(super) looks_ahead: bool,
}

/// What each node, and those below it, look at.
pub(super) fn directions(tree: &PatternTree) -> Vec<Directions> {
    let mut out: Vec<Directions> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let any = |parts: &[PatternNodeId]| {
            parts.iter().fold(Directions::default(), |known, part| Directions {
                has_lookbehind: known.has_lookbehind || out[part.index()].has_lookbehind,
                looks_back: known.looks_back || out[part.index()].looks_back,
                looks_ahead: known.looks_ahead || out[part.index()].looks_ahead,
            })
        };
        out.push(match node {
            PatternNode::Empty | PatternNode::Set(_) => Directions::default(),
            PatternNode::Sequence(parts) | PatternNode::Choice(parts) => any(parts),
            PatternNode::Repeat { body, .. } => any(&[*body]),
            PatternNode::Look { body, is_ahead: true, .. } => {
                Directions { looks_ahead: true, ..any(&[*body]) }
            }
            PatternNode::Look { body, is_ahead: false, .. } => {
                Directions { has_lookbehind: true, looks_back: true, ..any(&[*body]) }
            }
            PatternNode::Assert(assertion) => {
                let (looks_back, looks_ahead) = match assertion {
                    Assertion::Start | Assertion::LineStart(_) => (true, false),
                    Assertion::End | Assertion::EndOrLastNewline | Assertion::LineEnd(_) => {
                        (false, true)
                    }
                    Assertion::Boundary { .. } => (true, true),
                };
                Directions { has_lookbehind: false, looks_back, looks_ahead }
            }
        });
    }
    out
}

impl Pattern {
    /// Patterns whose texts, one behind the other, are the texts of this one, where that keeps a count above `count`
    /// out of the pieces with lookaround; else `None`.
    ///
    /// The first piece ends behind the last part that looks back, the last begins with the first part that looks
    /// ahead, and what stands between looks nowhere. A pattern that is searched for (`search`) must be bound to the
    /// text by `^` and `$`.
    pub(crate) fn pieces(&self, search: bool, count: u32) -> Option<Vec<Pattern>> {
        if self.is_plain || self.greatest_count() <= count {
            return None;
        }
        let tree = &self.tree;
        let PatternNode::Sequence(parts) = tree.node(tree.root()) else { return None };
        let is = |part: &PatternNodeId, assertion: Assertion| {
            *tree.node(*part) == PatternNode::Assert(assertion)
        };
        let starts = parts.iter().take_while(|part| is(part, Assertion::Start)).count();
        let parts = &parts[starts..];
        let ends = parts.iter().rev().take_while(|part| is(part, Assertion::End)).count();
        let parts = &parts[..parts.len() - ends];
        if search && (starts == 0 || ends == 0) {
            return None;
        }
        let directions = directions(tree);
        let back = parts.iter().rposition(|part| directions[part.index()].looks_back);
        let first = back.map_or(0, |place| place + 1);
        let ahead = parts.iter().position(|part| directions[part.index()].looks_ahead);
        let last = ahead.unwrap_or(parts.len());
        if first >= last {
            return None;
        }
        let pieces = [&parts[..first], &parts[first..last], &parts[last..]];
        let pieces = pieces.map(|parts| self.of_parts(tree.clone(), parts.to_vec()));
        (pieces[1].greatest_count() > count).then(|| Vec::from(pieces))
    }
}
