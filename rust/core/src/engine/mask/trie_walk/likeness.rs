//! Questions with the answer of a loop, but for some children of the root: those are walked alone.

use super::{Descent, SubtreeWalk, WalkBounds};
use crate::budget::Halt;
use crate::engine::mask::found::Found;
use crate::engine::mask::query::{ALONE, OWN, Question};
use crate::engine::stop::Stop;
use crate::stacks::{LABEL, REST, SetId};

/// A question with the same answer but for some children of the root, by their places.
pub(in crate::engine) type Likeness = (Question, Vec<u32>);

impl Descent {
    /// A loop that does what the question does, as a question, where most of the trie leads into
    /// one, and the children of the root where it does not.
    pub(in crate::engine) fn like_a_loop(
        &mut self,
        question: Question,
        bounds: WalkBounds<'_>,
    ) -> Result<Option<Likeness>, Stop> {
        if !self.is_whole {
            return Ok(None);
        }
        self.allow(bounds);
        let (start, own) = self.start(question)?;
        let Some((like, looping)) = self.main_loop(question, start, own)? else {
            return Ok(None);
        };
        let trie = self.trie.clone();
        let (mut apart, mut count) = (Vec::new(), 0);
        for (place, (byte, nodes)) in trie.places(0).zip(trie.children(0)) {
            let class = self.network.alphabet().class(byte);
            if self.first_step(start, own, class)? != self.stepper.step(looping, class)? {
                apart.push(place);
                count += nodes.len();
            }
        }
        Ok((count <= trie.end(0) as usize / 4).then_some((like, apart)))
    }

    /// A loop that most of the trie leads to, as a question and as a set.
    fn main_loop(
        &mut self,
        question: Question,
        start: SetId,
        own: Option<u32>,
    ) -> Result<Option<(Question, SetId)>, Halt> {
        if !matches!(question.under, ALONE | OWN) {
            return Ok(None);
        }
        let trie = self.trie.clone();
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut weights: Vec<(SetId, u32)> = Vec::new();
        for (byte, nodes) in trie.children(0) {
            let set = self.first_step(start, own, alphabet.class(byte))?;
            let weight = nodes.len() as u32;
            match weights.iter_mut().find(|known| known.0 == set) {
                Some(known) => known.1 += weight,
                None => weights.push((set, weight)),
            }
        }
        let Some(&(set, weight)) = weights.iter().max_by_key(|known| known.1) else {
            return Ok(None);
        };
        let like = match *self.stepper.sets.list(set) {
            [(frame, _)] if frame >= LABEL || network.is_counting(frame) => return Ok(None),
            [(frame, REST)] => Question { frame, under: ALONE },
            [(frame, beneath)] => match *self.stepper.sets.list(beneath) {
                // A set of members has a number here only.
                [(under, REST)] if under < LABEL && network.as_set(under).is_none() => {
                    Question { frame, under }
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        };
        if like == question || weight < trie.end(0) / 2 {
            return Ok(None);
        }
        // Only what most of the trie leads back to, so that no frame is asked about by way of
        // itself.
        let mut back = 0;
        for (byte, nodes) in trie.children(0) {
            if self.stepper.step(set, alphabet.class(byte))? == set {
                back += nodes.len() as u32;
            }
        }
        Ok((back > trie.end(0) / 2).then_some((like, set)))
    }

    /// Walks some children of the root, by their places, with all that is below them.
    pub(in crate::engine) fn walk_some(
        &mut self,
        question: Question,
        places: Vec<u32>,
        bounds: WalkBounds<'_>,
        found: &mut Found,
    ) -> Result<(), Stop> {
        self.allow(bounds);
        let (start, own) = self.start(question)?;
        let walk = SubtreeWalk { start, own, counts: false, near: 0, interrupt: bounds.interrupt };
        for place in places {
            self.walk(place..place + 1, walk, found)?;
            let child = self.trie.child(place);
            found.walked.push(child..self.trie.end(child));
        }
        Ok(())
    }
}
