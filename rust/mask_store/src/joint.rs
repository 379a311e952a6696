//! All terminals that can be in progress, side by side.
//!
//! A joint state says for each of them how far it is, and in which scanners it can still be what
//! is found: those that look for it and in which none before it in the order has matched.

use super::obligations::{EndQuestion, NONE, OpenQuestions, Questions};
use super::sets::{EMPTY, ScannerSetId};
use super::terminals::{DEAD, MatchEnd, Scanners, TerminalAutomata};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The number of a joint state.
pub(super) type JointId = u32;

/// One terminal of a joint state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct JointTerminal {
    pub(super) terminal: u32,
    /// Its state.
    pub(super) state: u32,
    /// The scanners in which it can still be what is found.
    pub(super) scanners: ScannerSetId,
    /// Whether a match ends here.
    pub(super) end: MatchEnd,
}

/// A terminal that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Ended {
    pub(super) terminal: u32,
    /// The scanners in which this is what they find.
    pub(super) scanners: ScannerSetId,
    /// What must prove true.
    pub(super) open: OpenQuestions,
    /// The match is dropped.
    pub(super) ignored: bool,
}

/// A terminal that may be in progress, with its state and the scanners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Going {
    pub(super) terminal: u32,
    pub(super) scanners: ScannerSetId,
    pub(super) ignored: bool,
}

/// A joint state after a byte, and what must prove true for it.
type Fork = (JointId, OpenQuestions);

/// Joint states, made as they are met.
#[derive(Clone, Debug)]
pub struct Joints {
    pub(super) terminals: TerminalAutomata,
    pub(super) scanners: Scanners,
    pub(super) questions: Questions,
    pub(super) states: Vec<Box<[JointTerminal]>>,
    known: HashMap<Box<[JointTerminal]>, JointId, FxBuildHasher>,
    steps: HashMap<(JointId, u8), Box<[Fork]>, FxBuildHasher>,
    pub(super) able: HashMap<(u32, OpenQuestions), bool, FxBuildHasher>,
    pub(super) pruned: HashMap<(JointId, OpenQuestions, u32), Option<JointId>, FxBuildHasher>,
    ended: Vec<Option<Box<[Ended]>>>,
    going: Vec<Option<Box<[Going]>>>,
    /// Where a terminal begins: one state, or one for each terminal.
    pub(super) fresh: Vec<JointId>,
}

impl Joints {
    /// The joint states of terminals under the scanners of a lexer.
    ///
    /// With `separate`, terminals know nothing of each other: each is followed on its own, as in
    /// the automaton that joins all of them by empty moves.
    pub fn new(terminals: TerminalAutomata, scanners: Scanners, separate: bool) -> Self {
        let mut made = Self {
            terminals,
            scanners,
            questions: Questions::new(),
            states: Vec::new(),
            known: HashMap::default(),
            steps: HashMap::default(),
            able: HashMap::default(),
            pruned: HashMap::default(),
            ended: Vec::new(),
            going: Vec::new(),
            fresh: Vec::new(),
        };
        let all: Vec<JointTerminal> = (0..made.terminals.len() as u32)
            .map(|terminal| JointTerminal {
                terminal,
                state: made.terminals.starts[terminal as usize],
                scanners: made.scanners.looking[terminal as usize],
                end: MatchEnd::No,
            })
            .collect();
        made.fresh = if separate {
            all.into_iter().map(|entry| made.intern(vec![entry])).collect()
        } else {
            vec![made.intern(all)]
        };
        made
    }

    pub(super) fn intern(&mut self, state: Vec<JointTerminal>) -> JointId {
        let state = state.into_boxed_slice();
        if let Some(&id) = self.known.get(&state) {
            return id;
        }
        let id = self.states.len() as JointId;
        self.states.push(state.clone());
        self.known.insert(state, id);
        self.ended.push(None);
        self.going.push(None);
        id
    }

    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn entries(&self, joint: JointId) -> &[JointTerminal] {
        &self.states[joint as usize]
    }

    /// The joint states after a byte. Several where an end that decides about other terminals
    /// waits for what follows: one for each answer.
    pub(super) fn step(&mut self, joint: JointId, byte: u8) -> Box<[Fork]> {
        if let Some(known) = self.steps.get(&(joint, byte)) {
            return known.clone();
        }
        let mut moved = Vec::new();
        for entry in &self.states[joint as usize] {
            let state = self.terminals.step(entry.state, byte);
            if state != DEAD {
                moved.push(JointTerminal {
                    state,
                    end: self.terminals.ends[state as usize],
                    ..*entry
                });
            }
        }
        let mut done = Vec::new();
        let mut work = vec![(moved, 0usize, Vec::new())];
        while let Some((mut entries, mut i, mut asked)) = work.pop() {
            // In the order of the scanners: what has matched stands before all that come after.
            while i < entries.len() {
                let JointTerminal { scanners, end, .. } = entries[i];
                i += 1;
                if end == MatchEnd::No || scanners == EMPTY {
                    continue;
                }
                if let MatchEnd::If(condition) = end
                    && self.touches(&entries[i..], scanners)
                {
                    let mut other = entries.clone();
                    other[i - 1].end = MatchEnd::No;
                    let mut questions: Vec<EndQuestion> = asked.clone();
                    questions.push(EndQuestion::fails(condition));
                    work.push((other, i, questions));
                    entries[i - 1].end = MatchEnd::Yes;
                    asked.push(EndQuestion::holds(condition));
                }
                for after in &mut entries[i..] {
                    after.scanners = self.scanners.sets.minus(after.scanners, scanners);
                }
            }
            let kept = self.kept(entries);
            if !kept.is_empty() {
                let open = self.questions.with(NONE, &asked);
                done.push((self.intern(kept), open));
            }
        }
        let done = done.into_boxed_slice();
        self.steps.insert((joint, byte), done.clone());
        done
    }

    fn touches(&mut self, entries: &[JointTerminal], scanners: ScannerSetId) -> bool {
        entries.iter().any(|entry| self.scanners.sets.and(entry.scanners, scanners) != EMPTY)
    }

    /// Drops what can be found by no scanner, neither on its own nor as the name of a match.
    pub(super) fn kept(&mut self, entries: Vec<JointTerminal>) -> Vec<JointTerminal> {
        let mut kept = Vec::with_capacity(entries.len());
        for entry in &entries {
            let useful = if entry.scanners == EMPTY {
                // A name is no use where its pattern cannot be found.
                self.can_rename(&entries, entry.terminal)
            } else {
                entry.end != MatchEnd::No || !self.terminals.stuck[entry.state as usize]
            };
            if useful {
                kept.push(*entry);
            }
        }
        // Names alone find nothing.
        if kept.iter().all(|entry| entry.scanners == EMPTY) {
            kept.clear();
        }
        kept
    }

    fn can_rename(&mut self, entries: &[JointTerminal], string: u32) -> bool {
        entries.iter().any(|pattern| {
            self.scanners.renamed[pattern.terminal as usize].iter().any(|&(s, both)| {
                s == string && self.scanners.sets.and(both, pattern.scanners) != EMPTY
            })
        })
    }

    /// The terminals that can end in a joint state.
    pub(super) fn ended(&mut self, joint: JointId) -> Box<[Ended]> {
        if let Some(known) = &self.ended[joint as usize] {
            return known.clone();
        }
        let entries = self.states[joint as usize].clone();
        let mut out = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            if entry.end == MatchEnd::No || entry.scanners == EMPTY {
                continue;
            }
            let mut base = Vec::new();
            if let MatchEnd::If(condition) = entry.end {
                base.push(EndQuestion::holds(condition));
            }
            if !self.terminals.stuck[entry.state as usize] {
                base.push(EndQuestion::Never(entry.state));
            }
            for (scanners, questions) in self.groups(&entries[..i], entry.scanners, base) {
                let open = self.questions.with(NONE, &questions);
                self.named(&entries, *entry, scanners, |terminal, scanners, ignored| {
                    out.push(Ended { terminal, scanners, open, ignored });
                });
            }
        }
        let out = out.into_boxed_slice();
        self.ended[joint as usize] = Some(out.clone());
        out
    }

    /// Parts the scanners by what stands before in their order and may still match.
    fn groups(
        &mut self,
        before: &[JointTerminal],
        scanners: ScannerSetId,
        base: Vec<EndQuestion>,
    ) -> Vec<(ScannerSetId, Vec<EndQuestion>)> {
        let mut groups = vec![(scanners, base)];
        for entry in before {
            if entry.scanners == EMPTY || self.terminals.stuck[entry.state as usize] {
                continue;
            }
            let mut parted = Vec::new();
            for (set, questions) in groups {
                let inside = self.scanners.sets.and(set, entry.scanners);
                let outside = self.scanners.sets.minus(set, entry.scanners);
                if inside != EMPTY {
                    let mut more = questions.clone();
                    more.push(EndQuestion::Never(entry.state));
                    parted.push((inside, more));
                }
                if outside != EMPTY {
                    parted.push((outside, questions));
                }
            }
            groups = parted;
        }
        groups
    }

    /// What a match that ends here is called, scanner by scanner.
    fn named(
        &mut self,
        entries: &[JointTerminal],
        entry: JointTerminal,
        mut scanners: ScannerSetId,
        mut emit: impl FnMut(u32, ScannerSetId, bool),
    ) {
        let ignored = self.terminals.ignored[entry.terminal as usize];
        if ignored {
            // Lark drops the match before it looks for another name.
            emit(entry.terminal, scanners, true);
            return;
        }
        for at in 0..self.scanners.renamed[entry.terminal as usize].len() {
            let (string, both) = self.scanners.renamed[entry.terminal as usize][at];
            let here = entries.iter().any(|e| {
                e.terminal == string && self.terminals.ends[e.state as usize] == MatchEnd::Yes
            });
            if here {
                let inside = self.scanners.sets.and(scanners, both);
                // The name of an ignored string is none that a parser reads.
                if inside != EMPTY && !self.terminals.ignored[string as usize] {
                    emit(string, inside, false);
                }
                scanners = self.scanners.sets.minus(scanners, both);
            }
        }
        if scanners != EMPTY {
            emit(entry.terminal, scanners, false);
        }
    }

    /// The terminals that may be in progress in a joint state.
    pub(super) fn going(&mut self, joint: JointId) -> Box<[Going]> {
        if let Some(known) = &self.going[joint as usize] {
            return known.clone();
        }
        let entries = self.states[joint as usize].clone();
        let mut out: Vec<Going> = Vec::new();
        for entry in entries.iter().filter(|entry| entry.scanners != EMPTY) {
            let ignored = self.terminals.ignored[entry.terminal as usize];
            let stuck = self.terminals.stuck[entry.state as usize];
            let mut add = |sets: &mut super::sets::ScannerSets, terminal, scanners| {
                if scanners == EMPTY {
                    return;
                }
                match out.iter_mut().find(|g| g.terminal == terminal && g.ignored == ignored) {
                    Some(going) => going.scanners = sets.or(going.scanners, scanners),
                    None => out.push(Going { terminal, scanners, ignored }),
                }
            };
            let mut own = entry.scanners;
            for at in 0..self.scanners.renamed[entry.terminal as usize].len() {
                let (string, both) = self.scanners.renamed[entry.terminal as usize][at];
                if ignored {
                    break;
                }
                if let Some(name) = entries.iter().find(|e| e.terminal == string) {
                    let ends = self.terminals.ends[name.state as usize] == MatchEnd::Yes;
                    let inside = self.scanners.sets.and(entry.scanners, both);
                    let on = ends && entry.end != MatchEnd::No
                        || !self.terminals.stuck[name.state as usize];
                    if on && !self.terminals.ignored[string as usize] {
                        add(&mut self.scanners.sets, string, inside);
                    }
                    // What can only end here has that name.
                    if stuck && ends {
                        own = self.scanners.sets.minus(own, both);
                    }
                }
            }
            add(&mut self.scanners.sets, entry.terminal, own);
        }
        let out = out.into_boxed_slice();
        self.going[joint as usize] = Some(out.clone());
        out
    }
}
