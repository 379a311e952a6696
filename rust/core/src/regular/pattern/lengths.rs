//! What a pattern says of the length of the text alone: by lookaheads at its start, or by one long repetition.

use super::Pattern;
use super::syntax::{Assertion, PatternNode, PatternNodeId, PatternTree};
use crate::grammar::CharSet;

/// A repetition of one set with so many passes is a length beside the set: as an automaton it has as many states.
const LONG: u32 = 256;

/// Bounds on the number of characters of a text: the least number, and the greatest where there is one.
type LengthBounds = (u32, Option<u32>);

impl Pattern {
    /// The pattern without what bounds the length of the text alone, and the bounds; `None` where there are none.
    ///
    /// That is a long repetition which is the whole pattern, as in `^.{0,4096}$`, and lookaheads behind its `^`.
    /// These are `(?=.{m,n}$)`, `(?=.{m,})` and `(?!.{n})`, with any set in place of the dot. They say no
    /// more than a length where the rest of the pattern reads the whole text, from `^` to `$`, in characters
    /// of that set.
    pub fn lengths_aside(&self) -> Option<(Pattern, (u32, Option<u32>))> {
        let PatternNode::Sequence(parts) = self.tree.node(self.tree.root()) else { return None };
        let is = |part: Option<&PatternNodeId>, assertion| {
            part.is_some_and(|&part| *self.tree.node(part) == PatternNode::Assert(assertion))
        };
        if !is(parts.first(), Assertion::Start) || !is(parts.last(), Assertion::End) {
            return None;
        }
        let (mut least, mut most) = (0, None::<u32>);
        let mut kept: Vec<PatternNodeId> = Vec::new();
        let mut is_leading = true;
        for (place, &part) in parts.iter().enumerate() {
            is_leading &= place == 0 || matches!(self.tree.node(part), PatternNode::Look { .. });
            match self.length_of(part).filter(|_| is_leading) {
                Some((set, (low, high))) if self.reads_only(parts, set) => {
                    least = least.max(low);
                    most = [most, high].into_iter().flatten().min();
                }
                _ => kept.push(part),
            }
        }
        let mut tree = self.tree.clone();
        if let [start, whole, end] = *kept
            && let &PatternNode::Repeat { body, min, max } = self.tree.node(whole)
            && let PatternNode::Set(_) = self.tree.node(body)
            && max.unwrap_or(min) >= LONG
        {
            least = least.max(min);
            most = [most, max].into_iter().flatten().min();
            kept = vec![start, tree.repeat(body, 0, None), end];
        } else if kept.len() == parts.len() {
            return None;
        }
        tree.root = Some(tree.sequence(kept));
        let is_plain = super::is_plain(&tree);
        Some((Pattern { tree, is_plain, ..self.clone() }, (least, most)))
    }

    /// The set and the bounds of a lookahead over characters of one set.
    fn length_of(&self, part: PatternNodeId) -> Option<(&CharSet, LengthBounds)> {
        let &PatternNode::Look { body, is_ahead: true, is_negated } = self.tree.node(part) else {
            return None;
        };
        let (body, is_to_end) = match self.tree.node(body) {
            PatternNode::Sequence(parts) => match **parts {
                [body, end] if *self.tree.node(end) == PatternNode::Assert(Assertion::End) => {
                    (body, true)
                }
                _ => return None,
            },
            _ => (body, false),
        };
        let &PatternNode::Repeat { body, min, max } = self.tree.node(body) else { return None };
        let PatternNode::Set(set) = *self.tree.node(body) else { return None };
        let set = self.tree.set(set);
        match (is_negated, is_to_end) {
            (false, true) => Some((set, (min, max))),
            (false, false) => Some((set, (min, None))),
            (true, true) if max.is_some() => None,
            (true, _) => Some((set, (0, Some(min.checked_sub(1)?)))),
        }
    }

    /// Whether parts of a pattern read characters of a set alone; what lookaround reads does not matter.
    fn reads_only(&self, parts: &[PatternNodeId], set: &CharSet) -> bool {
        let mut work = parts.to_vec();
        let mut met = vec![false; self.tree.nodes.len()];
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut met[id.index()], true) {
                continue;
            }
            match self.tree.node(id) {
                PatternNode::Set(read) if !self.tree.set(*read).is_subset(set) => return false,
                PatternNode::Sequence(parts) | PatternNode::Choice(parts) => work.extend(parts),
                PatternNode::Repeat { body, .. } => work.push(*body),
                _ => {}
            }
        }
        true
    }
}

/// Whether the only assertions of a pattern are `^` and `$` at an end of the text.
pub(super) fn is_plain(tree: &PatternTree) -> bool {
    let mut nodes = tree.nodes.iter().zip(tree.needed(tree.root()));
    nodes.all(|(node, is_needed)| match node {
        PatternNode::Assert(assertion) => !is_needed || assertion.is_plain(),
        PatternNode::Look { .. } => !is_needed,
        _ => true,
    })
}
