//! Conditions at the edges of a pattern, which look at the text around a match.

use super::syntax::{Assertion, PatternNode, PatternNodeId, PatternTree};
use super::{Pattern, PatternDialect};
use rustc_hash::FxHashSet;

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

impl Pattern {
    /// Whether a lookahead may look at more than what a match still holds behind it.
    pub(crate) fn may_look_past(&self) -> bool {
        let tree = &self.tree;
        let root = tree.root();
        let lengths = lengths(&self.tree);
        // For each part the fewest characters that follow it in a match.
        let mut work = vec![(root, 0)];
        let mut met: FxHashSet<(u32, u32)> = FxHashSet::default();
        while let Some((id, rest)) = work.pop() {
            if !met.insert((id.index() as u32, rest)) {
                continue;
            }
            match tree.node(id) {
                PatternNode::Empty | PatternNode::Set(_) | PatternNode::Assert(_) => {}
                PatternNode::Sequence(parts) => {
                    let mut rest = rest;
                    for &part in parts.iter().rev() {
                        work.push((part, rest));
                        rest = rest.saturating_add(lengths[part.index()].least);
                    }
                }
                PatternNode::Choice(parts) => work.extend(parts.iter().map(|&part| (part, rest))),
                PatternNode::Repeat { body, .. } => work.push((*body, rest)),
                PatternNode::Look { is_ahead: false, .. } => {}
                PatternNode::Look { body, .. } => {
                    if lengths[body.index()].sees.is_none_or(|sees| sees > rest) {
                        return true;
                    }
                }
            }
        }
        false
    }
}

/// How much a part of a pattern reads, and looks at.
#[derive(Clone, Copy)]
struct Extent {
    /// The fewest characters that it reads.
    least: u32,
    /// The most that it reads, or looks at from where it begins; `None` for any number.
    sees: Option<u32>,
}

/// The extents of all nodes.
fn lengths(tree: &PatternTree) -> Vec<Extent> {
    let mut known: Vec<Extent> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        let of = |part: &PatternNodeId| known[part.index()];
        known.push(match node {
            PatternNode::Empty => Extent { least: 0, sees: Some(0) },
            PatternNode::Set(_) => Extent { least: 1, sees: Some(1) },
            // It looks at one character more, or at whether there is one.
            PatternNode::Assert(_) => Extent { least: 0, sees: Some(1) },
            PatternNode::Sequence(parts) => Extent {
                least: parts.iter().map(of).fold(0, |sum, one| sum.saturating_add(one.least)),
                sees: parts.iter().map(of).try_fold(0, |sum: u32, one| sum.checked_add(one.sees?)),
            },
            PatternNode::Choice(parts) => Extent {
                least: parts.iter().map(|part| of(part).least).min().unwrap_or(0),
                sees: parts.iter().map(of).try_fold(0, |most, one| Some(one.sees?.max(most))),
            },
            PatternNode::Repeat { body, min, max } => Extent {
                least: of(body).least.saturating_mul(*min),
                sees: max.and_then(|max| of(body).sees?.checked_mul(max)),
            },
            PatternNode::Look { body, is_ahead, .. } => {
                Extent { least: 0, sees: if *is_ahead { of(body).sees } else { Some(0) } }
            }
        });
    }
    known
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
