//! Concatenation and repetition, by nondeterministic automata of copies.

use super::Bounds;
use super::alphabet::{FinerClasses, Joint};
use super::determinize::ClassNfa;
use super::dfa::Dfa;
use crate::error::Result;

impl Dfa {
    /// A text of this language, then one of the other.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn concatenation(&self, other: &Self, bounds: &Bounds<'_>) -> Result<Self> {
        let (empty, nothing) = (Self::empty_string(), Self::nothing());
        if *self == empty || *other == nothing {
            return Ok(other.clone());
        }
        if *other == empty || *self == nothing {
            return Ok(self.clone());
        }
        bounds.check(self.num_states().saturating_add(other.num_states()))?;
        bounds.budget.spend(self.alphabet().cuts().len() + other.alphabet().cuts().len())?;
        let joint = Joint::new(self.alphabet(), other.alphabet());
        let mut nfa = ClassNfa::new(joint.alphabet);
        let left = nfa.add_labels(self, &joint.left, bounds)?;
        let right = nfa.add_labels(other, &joint.right, bounds)?;
        let second = self.len();
        add_copy(&mut nfa, self, &left, |_| false, |nfa, q| nfa.add_epsilon(q, second));
        add_copy(&mut nfa, other, &right, |is_final| is_final, |_, _| ());
        nfa.add_start(0);
        nfa.determinize(bounds)?.minimal(bounds)
    }

    /// At least `min` texts of the language one after the other, and at most `max`, where that is
    /// given.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn repetition(&self, min: u32, max: Option<u32>, bounds: &Bounds<'_>) -> Result<Self> {
        if max.is_some_and(|max| max < min) {
            return Ok(Self::nothing());
        }
        if max == Some(0) || (min == 0 && self.is_empty()) {
            return Ok(Self::empty_string());
        }
        if (min, max) == (1, Some(1)) || self.is_empty() || *self == Self::empty_string() {
            return Ok(self.clone());
        }
        // A language with the empty text is in each of its powers, and stays what it is once the
        // second is no larger.
        if self.is_final(0) && self.concatenation(self, bounds)? == *self {
            return Ok(self.clone());
        }
        let optional = max.map(|max| max - min);
        let min = if self.is_final(0) && optional.is_none() { 0 } else { min };
        // Hub i is where i texts are read; without a greatest number the last leads to itself.
        let copies = min as usize + optional.map_or(1, |count| count as usize);
        let hubs = min as usize + 1 + optional.map_or(0, |count| count as usize);
        let states = copies.saturating_mul(self.num_states()).saturating_add(hubs);
        bounds.check(states)?;
        bounds.budget.spend(copies.saturating_mul(2 * (self.num_states() + self.num_edges())))?;
        let mut nfa = ClassNfa::new(self.alphabet().clone());
        let edges = nfa.add_labels(self, &FinerClasses::identity(self.alphabet().len()), bounds)?;
        for hub in 0..hubs {
            nfa.add_state(hub >= min as usize);
        }
        for copy in 0..copies as u32 {
            let next = (copy + 1).min(hubs as u32 - 1);
            let first =
                add_copy(&mut nfa, self, &edges, |_| false, |nfa, q| nfa.add_epsilon(q, next));
            nfa.add_epsilon(copy, first);
        }
        nfa.add_start(0);
        nfa.determinize(bounds)?.minimal(bounds)
    }
}

/// Adds the states of an automaton to another and returns the first; `end` is called for the final
/// ones.
fn add_copy(
    nfa: &mut ClassNfa,
    dfa: &Dfa,
    edges: &[Vec<(u32, u32)>],
    is_final: impl Fn(bool) -> bool,
    mut end: impl FnMut(&mut ClassNfa, u32),
) -> u32 {
    let first = nfa.num_states();
    for q in 0..dfa.len() {
        let state = nfa.add_state(is_final(dfa.is_final(q)));
        if dfa.is_final(q) {
            end(nfa, state);
        }
    }
    for (q, edges) in (first..).zip(edges) {
        for &(label, to) in edges {
            nfa.add_edge(q, label, first + to);
        }
    }
    first
}
