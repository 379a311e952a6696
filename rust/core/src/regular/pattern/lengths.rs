//! What a pattern says of the length of the text alone: by lookaheads at its start, or by one long repetition, perhaps
//! behind lookaheads.

use super::Pattern;
use super::syntax::{Assertion, PatternNode, PatternNodeId, PatternTree};
use crate::grammar::CharSet;

/// What a pattern says of the length of a text by itself, and what is left of it.
#[derive(Clone, Debug)]
pub struct LengthsAside {
    /// The pattern without that.
    pub rest: Pattern,
    /// The least number of characters, and the greatest where there is one.
    pub bounds: (u32, Option<u32>),
    /// Another greatest number; a text of one character more is right too if it matches the pattern.
    pub longer: Option<(u32, Pattern)>,
}

/// Passes of a repetition behind lookaheads that is a length: written out, its states are multiplied by theirs.
const LONG_BESIDE_LOOKAHEADS: u32 = 16;

/// Bounds on the number of characters of a text: the least number, and the greatest where there is one.
type LengthBounds = (u32, Option<u32>);

impl Pattern {
    /// The pattern without what bounds the length of the text alone; `None` where nothing does.
    ///
    /// That is a repetition of at least `long` passes which is the whole pattern, as in `^.{0,4096}$`; one behind
    /// lookaheads alone, as in `^(?=.*[a-z])(?=.*\d).{8,128}$`; and lookaheads behind the `^` that say a length. These are
    /// `(?=.{m,n}$)`, `(?=.{m,})` and `(?!.{n})`, with any set in place of the dot. They say no more than a length where
    /// the rest of the pattern reads the whole text, from `^` to `$`, in characters of that set. Behind
    /// `(?=.{m,n}T?$)` a text of one more character is right too if it ends in one of `T`.
    pub fn lengths_aside(&self, long: u32) -> Option<LengthsAside> {
        let PatternNode::Sequence(parts) = self.tree.node(self.tree.root()) else { return None };
        let is = |part: Option<&PatternNodeId>, assertion| {
            part.is_some_and(|&part| *self.tree.node(part) == PatternNode::Assert(assertion))
        };
        let (Some(&end), true) = (parts.last(), is(parts.first(), Assertion::Start)) else {
            return None;
        };
        if !is(Some(&end), Assertion::End) {
            return None;
        }
        let (mut least, mut most, mut longer) = (0, None::<u32>, None);
        let mut kept: Vec<PatternNodeId> = Vec::new();
        let mut is_leading = true;
        for (place, &part) in parts.iter().enumerate() {
            is_leading &= place == 0 || matches!(self.tree.node(part), PatternNode::Look { .. });
            match self.length_of(part).filter(|_| is_leading) {
                Some((set, (low, high), None)) if self.reads_only(parts, set) => {
                    least = least.max(low);
                    most = [most, high].into_iter().flatten().min();
                }
                Some((set, (low, Some(high)), Some(last)))
                    if longer.is_none() && self.reads_only(parts, set) =>
                {
                    least = least.max(low);
                    longer = Some((high, last));
                }
                _ => kept.push(part),
            }
        }
        let mut tree = self.tree.clone();
        let is_look = |part: &PatternNodeId| {
            matches!(self.tree.node(*part), PatternNode::Look { is_ahead: true, .. })
        };
        if let [_, looks @ .., whole, _] = &*kept
            && looks.iter().all(is_look)
            && let &PatternNode::Repeat { body, min, max } = self.tree.node(*whole)
            && let PatternNode::Set(_) = self.tree.node(body)
            && max.unwrap_or(min) >= if looks.is_empty() { long } else { LONG_BESIDE_LOOKAHEADS }
        {
            least = least.max(min);
            most = [most, max].into_iter().flatten().min();
            let place = kept.len() - 2;
            kept[place] = tree.repeat(body, 0, None);
        } else if kept.len() == parts.len() {
            return None;
        }
        let longer =
            longer.map(|(most, last)| (most, self.of_parts(tree.clone(), vec![last, end])));
        Some(LengthsAside { rest: self.of_parts(tree, kept), bounds: (least, most), longer })
    }

    /// A pattern of some nodes of a tree.
    pub(super) fn of_parts(&self, mut tree: PatternTree, parts: Vec<PatternNodeId>) -> Self {
        tree.root = Some(tree.sequence(parts));
        let is_plain = is_plain(&tree);
        Pattern { tree, is_plain, ..self.clone() }
    }

    /// The set and the bounds of a lookahead over characters of one set, and the set of what may follow these as the
    /// last character.
    fn length_of(
        &self,
        part: PatternNodeId,
    ) -> Option<(&CharSet, LengthBounds, Option<PatternNodeId>)> {
        let &PatternNode::Look { body, is_ahead: true, is_negated } = self.tree.node(part) else {
            return None;
        };
        let is_end =
            |part: PatternNodeId| *self.tree.node(part) == PatternNode::Assert(Assertion::End);
        let (body, last, is_to_end) = match self.tree.node(body) {
            PatternNode::Sequence(parts) => match **parts {
                [body, end] if is_end(end) => (body, None, true),
                [body, last, end] if is_end(end) && !is_negated => (body, Some(last), true),
                _ => return None,
            },
            _ => (body, None, false),
        };
        let &PatternNode::Repeat { body, min, max } = self.tree.node(body) else { return None };
        let PatternNode::Set(set) = *self.tree.node(body) else { return None };
        let set = self.tree.set(set);
        let last = match last {
            None => None,
            Some(last) => Some(self.optional_of(last, set)?),
        };
        let bounds = match (is_negated, is_to_end) {
            (false, true) => (min, max),
            (false, false) => (min, None),
            (true, true) if max.is_some() => return None,
            (true, _) => (0, Some(min.checked_sub(1)?)),
        };
        Some((set, bounds, last))
    }

    /// The set of a node that is at most one character of a set.
    fn optional_of(&self, node: PatternNodeId, set: &CharSet) -> Option<PatternNodeId> {
        let &PatternNode::Repeat { body, min: 0, max: Some(1) } = self.tree.node(node) else {
            return None;
        };
        let PatternNode::Set(last) = *self.tree.node(body) else { return None };
        self.tree.set(last).is_subset(set).then_some(body)
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
