//! Conditions at the edges of a pattern, which look at the text around a match.

use super::syntax::{Assertion, PatternNode};
use super::{Pattern, PatternDialect};

/// An edge of a match.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Start,
    End,
}

impl Pattern {
    /// The name of a condition before which, or behind which, nothing of a match need stand, so that it looks at
    /// the text around the match. A pattern of Rust may have `^` and `$` there.
    pub(crate) fn looks_outside(&self, dialect: PatternDialect) -> Option<&'static str> {
        let tree = &self.tree;
        let mut is_nullable = Vec::new();
        tree.extend_nullable(&mut is_nullable);
        let mut is_met = vec![[false; 2]; tree.nodes.len()];
        let mut work = vec![(tree.root(), Side::Start), (tree.root(), Side::End)];
        while let Some((id, side)) = work.pop() {
            if std::mem::replace(&mut is_met[id.index()][side as usize], true) {
                continue;
            }
            match tree.node(id) {
                PatternNode::Empty | PatternNode::Set(_) => {}
                PatternNode::Sequence(parts) => {
                    let mut within = false;
                    let mut visit = |part: &_| {
                        if !within {
                            work.push((*part, side));
                        }
                        within |= !is_nullable[part.index()];
                    };
                    match side {
                        Side::Start => parts.iter().for_each(&mut visit),
                        Side::End => parts.iter().rev().for_each(&mut visit),
                    }
                }
                PatternNode::Choice(parts) => work.extend(parts.iter().map(|part| (*part, side))),
                PatternNode::Repeat { body, .. } => work.push((*body, side)),
                PatternNode::Assert(assertion) => {
                    if let Some(name) = looks(*assertion, side, dialect) {
                        return Some(name);
                    }
                }
                PatternNode::Look { is_ahead, .. } => match (is_ahead, side) {
                    (true, Side::End) => return Some("lookahead at the end of a terminal"),
                    (false, Side::Start) => return Some("lookbehind at the start of a terminal"),
                    (true, Side::Start) | (false, Side::End) => {}
                },
            }
        }
        None
    }
}

fn looks(assertion: Assertion, side: Side, dialect: PatternDialect) -> Option<&'static str> {
    match (assertion, side) {
        (Assertion::Boundary { is_negated: false, .. }, _) => {
            Some("`\\b` at an edge of a terminal")
        }
        (Assertion::Boundary { .. }, _) => Some("`\\B` at an edge of a terminal"),
        (Assertion::LineStart(_), Side::Start) => Some("`^` of a line at the start of a terminal"),
        (Assertion::LineEnd(_), Side::End) => Some("`$` of a line at the end of a terminal"),
        _ if dialect != PatternDialect::Python => None,
        (Assertion::Start, Side::Start) => Some("`^` at the start of a terminal"),
        (Assertion::End | Assertion::EndOrLastNewline, Side::End) => {
            Some("`$` at the end of a terminal")
        }
        _ => None,
    }
}
