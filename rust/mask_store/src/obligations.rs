//! What must not, or must, follow: open questions about terminals that have ended.
//!
//! A terminal ends where its longest match does, and where none before it in the scanner's order
//! matches at all. What comes can still prove an end wrong; until it cannot, the question is kept.

use super::terminals::{DEAD, EndCondition, MatchEnd, TerminalAutomata};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// A set of open questions; 0 is the empty one.
pub(super) type OpenQuestions = u32;
/// No open question.
pub(super) const NONE: OpenQuestions = 0;

/// One question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum EndQuestion {
    /// No match may end after this state.
    Never(u32),
    /// A match must end after this state.
    Must(u32),
}

impl EndQuestion {
    /// That a condition holds.
    pub(super) fn holds(condition: EndCondition) -> Self {
        match condition {
            EndCondition { negated: true, state } => Self::Never(state),
            EndCondition { negated: false, state } => Self::Must(state),
        }
    }

    /// That it does not.
    pub(super) fn fails(condition: EndCondition) -> Self {
        Self::holds(EndCondition { negated: !condition.negated, ..condition })
    }
}

/// Interned sets of questions.
#[derive(Clone, Debug, Default)]
pub(super) struct Questions {
    sets: Vec<Box<[EndQuestion]>>,
    known: HashMap<Box<[EndQuestion]>, OpenQuestions, FxBuildHasher>,
    steps: HashMap<(OpenQuestions, u8), Option<OpenQuestions>, FxBuildHasher>,
}

impl Questions {
    pub(super) fn new() -> Self {
        let mut made = Self::default();
        made.intern(Vec::new());
        made
    }

    pub(super) fn intern(&mut self, mut set: Vec<EndQuestion>) -> OpenQuestions {
        set.sort_unstable();
        set.dedup();
        let set = set.into_boxed_slice();
        if let Some(&id) = self.known.get(&set) {
            return id;
        }
        let id = self.sets.len() as OpenQuestions;
        self.sets.push(set.clone());
        self.known.insert(set, id);
        id
    }

    pub(super) fn with(&mut self, open: OpenQuestions, more: &[EndQuestion]) -> OpenQuestions {
        if more.is_empty() {
            return open;
        }
        let mut set = self.sets[open as usize].to_vec();
        set.extend_from_slice(more);
        self.intern(set)
    }

    pub(super) fn get(&self, open: OpenQuestions) -> &[EndQuestion] {
        &self.sets[open as usize]
    }

    pub(super) fn len(&self) -> usize {
        self.sets.len()
    }

    /// What is open after a byte; `None` when a question has been answered the wrong way.
    pub(super) fn step(
        &mut self,
        terminals: &TerminalAutomata,
        open: OpenQuestions,
        byte: u8,
    ) -> Option<OpenQuestions> {
        if open == NONE {
            return Some(NONE);
        }
        if let Some(&known) = self.steps.get(&(open, byte)) {
            return known;
        }
        let mut after = Vec::new();
        let mut right = true;
        for &question in &self.sets[open as usize] {
            right &= stepped(terminals, question, byte, &mut after);
        }
        let made = right.then(|| self.intern(after));
        self.steps.insert((open, byte), made);
        made
    }

    /// Whether all is answered rightly where the text ends.
    pub(super) fn may_end(&self, open: OpenQuestions) -> bool {
        self.get(open).iter().all(|question| matches!(question, EndQuestion::Never(_)))
    }
}

fn stepped(
    terminals: &TerminalAutomata,
    question: EndQuestion,
    byte: u8,
    after: &mut Vec<EndQuestion>,
) -> bool {
    match question {
        EndQuestion::Never(state) => {
            let to = terminals.step(state, byte);
            if to == DEAD {
                return true;
            }
            match terminals.ends[to as usize] {
                MatchEnd::Yes => return false,
                MatchEnd::If(condition) => after.push(EndQuestion::fails(condition)),
                MatchEnd::No => {}
            }
            if !terminals.stuck[to as usize] {
                after.push(EndQuestion::Never(to));
            }
            true
        }
        EndQuestion::Must(state) => {
            let to = terminals.step(state, byte);
            if to == DEAD {
                return false;
            }
            if terminals.ends[to as usize] != MatchEnd::Yes {
                after.push(EndQuestion::Must(to));
            }
            true
        }
    }
}
