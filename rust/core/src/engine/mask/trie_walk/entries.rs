//! The stacks behind each entry, where more is asked of them than whether there are any.

use super::{CHECK_MASK, Descent, Level, WalkBounds};
use crate::engine::mask::found::{NODES_OF_WORK, class_at};
use crate::engine::mask::pending::PendingId;
use crate::engine::mask::query::Question;
use crate::engine::stop::Stop;
use crate::stacks::{NONE, REST, SetId, StackSets};

impl Descent {
    /// Walks the trie below some nodes, a set with a number, with the question's frames alone on the stack:
    /// each node at which tokens end, with the stacks there above the unknown rest. Returns the nodes
    /// above others where these frames have been popped, sorted.
    pub(in crate::engine) fn walk_entries(
        &mut self,
        question: Question,
        (roots, pending): (&[u32], PendingId),
        bounds: WalkBounds<'_>,
        mut found: impl FnMut(&StackSets, u32, SetId) -> Result<(), Stop>,
    ) -> Result<Vec<u32>, Stop> {
        self.allow(bounds);
        let (start, own) = self.start(question)?;
        let (trie, network) = (self.trie.clone(), self.network.clone());
        let alphabet = network.alphabet();
        let mut popped = Vec::new();
        let mut path: Vec<Level> = Vec::new();
        for places in self.beginnings(question.frame, roots, pending) {
            let hot = self.hot.meet(start, alphabet.len());
            path.push(Level { children: self.siblings(places, start, false), set: start, hot });
            while let Some(level) = path.last_mut() {
                let Some(node) = level.children.next(&trie, alphabet) else {
                    path.pop();
                    continue;
                };
                let (before, hot) = (level.set, level.hot);
                self.trie_nodes += 1;
                if self.trie_nodes.is_multiple_of(NODES_OF_WORK) {
                    self.work += 1;
                }
                if self.trie_nodes & CHECK_MASK == 0 {
                    bounds.interrupt.check()?;
                    if self.spent() > bounds.limit {
                        return Err(Stop::Work);
                    }
                }
                let end = trie.end(node);
                let class = class_at(alphabet, &trie, node);
                let after = match own {
                    Some(frame) if path.len() == 1 => self.own_step(frame, class)?,
                    _ => self.step(before, hot, class)?,
                };
                if after == NONE {
                    continue;
                }
                if !trie.numbers(node).is_empty() {
                    found(&self.stepper.sets, node, after)?;
                }
                let is_last = end == node + 1;
                if !is_last && self.stepper.sets.has_rest(after) {
                    popped.push(node);
                }
                if is_last || after == REST {
                    continue;
                }
                let hot = self.hot.meet(after, alphabet.len());
                let children = self.siblings(trie.places(node), after, false);
                path.push(Level { children, set: after, hot });
            }
        }
        Ok(popped)
    }
}
