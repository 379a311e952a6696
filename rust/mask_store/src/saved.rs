//! What a walk has found, in numbers: to be written, and to be taken up again without a walk.
//!
//! Joint states, sets of scanners and of open questions are written by what they hold. The rows are
//! not here: whoever decodes has them.

use super::joint::{JointTerminal, Joints};
use super::letters::Sequences;
use super::obligations::EndQuestion;
use super::terminals::{EndCondition, MatchEnd};
use super::walk::Store;
use hashbrown::HashMap;
use tokfold_core::error::{Error, Result};

/// The states of a lexer; rows of different lengths come with the offsets at which each begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedLexer {
    /// Sets of scanners, each in so many words as hold a bit for every scanner.
    pub scanner_sets: Vec<u64>,
    /// Open questions: a state times two, plus one where a match must end after it.
    pub questions: Vec<u32>,
    /// For each set of questions.
    pub question_offsets: Vec<u32>,
    /// Terminal, state, set of scanners, end (0: no, 1: yes, else 2 plus twice the state of the
    /// condition, plus one where it is negated).
    pub entries: Vec<[u32; 4]>,
    /// For each joint state.
    pub entry_offsets: Vec<u32>,
    /// Joint state and set of questions.
    pub configurations: Vec<[u32; 2]>,
    /// Configuration and terminal of each lexer state.
    pub states: Vec<[u32; 2]>,
}

fn broken(what: &str) -> Error {
    Error::Artifact(format!("the saved lexer is damaged: {what}"))
}

/// The rows between offsets.
fn rows<'a, T>(flat: &'a [T], offsets: &'a [u32]) -> Result<Vec<&'a [T]>> {
    let fits = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last().is_some_and(|&end| end as usize == flat.len());
    if !fits {
        return Err(broken("offsets do not divide what they should"));
    }
    Ok(offsets.windows(2).map(|w| &flat[w[0] as usize..w[1] as usize]).collect())
}

impl Store {
    /// The states of the lexer, for saving.
    pub fn saved(&self) -> SavedLexer {
        let mut out = SavedLexer {
            scanner_sets: self.scanner_sets().concat(),
            question_offsets: vec![0],
            entry_offsets: vec![0],
            ..SavedLexer::default()
        };
        for open in 0..self.joints.questions.len() as u32 {
            out.questions.extend(self.joints.questions.get(open).iter().map(|q| match *q {
                EndQuestion::Never(state) => state * 2,
                EndQuestion::Must(state) => state * 2 + 1,
            }));
            out.question_offsets.push(out.questions.len() as u32);
        }
        let mut places: HashMap<u32, u32> = HashMap::new();
        for &(joint, open) in &self.configurations {
            let next = places.len() as u32;
            let place = *places.entry(joint).or_insert(next);
            if place == next {
                out.entries.extend(self.joints.entries(joint).iter().map(|entry| {
                    let end = match entry.end {
                        MatchEnd::No => 0,
                        MatchEnd::Yes => 1,
                        MatchEnd::If(c) => 2 + c.state * 2 + u32::from(c.negated),
                    };
                    [entry.terminal, entry.state, entry.scanners, end]
                }));
                out.entry_offsets.push(out.entries.len() as u32);
            }
            out.configurations.push([place, open]);
        }
        out.states = self.states.iter().map(|&(c, terminal)| [c, terminal]).collect();
        out
    }

    /// A store that has these states, without the ways of single tokens; `joints` are new ones of
    /// the same terminals and scanners.
    ///
    /// # Errors
    /// [`Error::Artifact`] where the parts do not fit together.
    pub fn restored(mut joints: Joints, saved: &SavedLexer) -> Result<Self> {
        let states = joints.terminals.ends.len() as u32;
        let terminals = joints.terminals.len() as u32;
        let words = joints.scanners.sets()[0].len();
        if words == 0 || !saved.scanner_sets.len().is_multiple_of(words) {
            return Err(broken("sets of scanners have another length"));
        }
        let all: Vec<u64> = joints.scanners.sets()[1].to_vec();
        let sets = (saved.scanner_sets.len() / words) as u32;
        for (id, set) in saved.scanner_sets.chunks(words).enumerate() {
            let fits = set.iter().zip(&all).all(|(&word, &all)| word & !all == 0);
            if !fits || joints.scanners.sets.intern(set.into()) != id as u32 {
                return Err(broken("sets of scanners are not those of the grammar"));
            }
        }
        for (id, set) in rows(&saved.questions, &saved.question_offsets)?.into_iter().enumerate() {
            let questions = set.iter().map(|&code| match code % 2 {
                0 => EndQuestion::Never(code / 2),
                _ => EndQuestion::Must(code / 2),
            });
            let known = set.iter().all(|&code| code / 2 < states);
            if !known || joints.questions.intern(questions.collect()) != id as u32 {
                return Err(broken("open questions"));
            }
        }
        let mut places = Vec::new();
        for entries in rows(&saved.entries, &saved.entry_offsets)? {
            let mut made = Vec::with_capacity(entries.len());
            for &[terminal, state, scanners, end] in entries {
                let end = match end {
                    0 => MatchEnd::No,
                    1 => MatchEnd::Yes,
                    code => {
                        let (state, negated) = ((code - 2) / 2, code % 2 == 1);
                        if state >= states {
                            return Err(broken("a condition"));
                        }
                        MatchEnd::If(EndCondition { negated, state })
                    }
                };
                if terminal >= terminals || state >= states || scanners >= sets {
                    return Err(broken("a joint state"));
                }
                made.push(JointTerminal { terminal, state, scanners, end });
            }
            places.push(joints.intern(made));
        }
        let opens = joints.questions.len() as u32;
        let mut configurations = Vec::with_capacity(saved.configurations.len());
        for &[place, open] in &saved.configurations {
            match places.get(place as usize) {
                Some(&joint) if open < opens => configurations.push((joint, open)),
                _ => return Err(broken("a configuration")),
            }
        }
        let known = configurations.len() as u32;
        if saved.states.iter().any(|&[c, terminal]| c >= known || terminal >= terminals) {
            return Err(broken("a lexer state"));
        }
        Ok(Self {
            joints,
            sequences: Sequences::default(),
            configurations,
            states: saved.states.iter().map(|&[c, terminal]| (c, terminal)).collect(),
            parts: Vec::new(),
            onward: Vec::new(),
            at_once: Vec::new(),
            work: 0,
        })
    }

    /// Lets go of the ways of single tokens: rows can then be made no more.
    pub fn release(&mut self) {
        (self.parts, self.onward, self.at_once) = (Vec::new(), Vec::new(), Vec::new());
    }

    /// Whether the ways of single tokens are here: not in a store that was saved.
    pub fn has_ways(&self) -> bool {
        !self.parts.is_empty()
    }
}
