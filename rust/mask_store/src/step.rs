//! One token from one lexer state, read byte by byte; and the end of the text.

use super::joint::JointId;
use super::letters::{LexerLetter, NewlineColumn};
use super::obligations::{NONE, OpenQuestions};
use super::sets::{ALL, EMPTY, ScannerSetId};
use super::walk::{NOTHING, Store};
use hashbrown::HashSet;

/// One way of a text: the scanners in which it holds, the letters begun, and the state after it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stepped {
    /// The scanners that the terminal in progress before must have begun in.
    pub scanners: ScannerSetId,
    /// The letters that begin.
    pub letters: Vec<LexerLetter>,
    /// The state after it; `None` for one that no token of the vocabulary leads to.
    pub state: Option<u32>,
}

/// A way that is being followed.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Path {
    joint: JointId,
    open: OpenQuestions,
    column: NewlineColumn,
    scanners: ScannerSetId,
    letters: Vec<LexerLetter>,
    /// Which terminal was in progress before, as long as it still is.
    first: Option<u32>,
    /// The terminal before, where none has been read of the one in progress.
    behind: u32,
    /// The last terminal that the parser has read in the text, if there is one.
    last: u32,
}

impl Store {
    /// The state at the start of a text.
    pub fn start(&self) -> u32 {
        self.states.len() as u32
    }

    /// The joint state, the open questions and the terminal of a state.
    fn parts_of(&self, state: u32) -> (JointId, OpenQuestions, u32) {
        match self.states.get(state as usize) {
            None => (self.joints.fresh[0], NONE, NOTHING),
            Some(&(configuration, terminal)) => {
                let (joint, open) = self.configurations[configuration as usize];
                (joint, open, terminal)
            }
        }
    }

    /// Every way of a text from a state.
    pub fn advance(&mut self, state: u32, bytes: &[u8]) -> Vec<Stepped> {
        let mut out = Vec::new();
        for path in self.paths(state, bytes) {
            self.arrive(path, &mut out);
        }
        out.sort_unstable();
        out.dedup();
        out
    }

    /// The columns to which the terminal in progress may have come where a text takes one of its ways, if the terminal
    /// has begun in the text; `None` for one that has no line feed yet.
    pub fn columns(&mut self, state: u32, bytes: &[u8], way: &Stepped) -> Vec<Option<u32>> {
        let mut columns = Vec::new();
        for path in self.paths(state, bytes).into_iter().filter(|path| path.first.is_none()) {
            let column = match path.column {
                NewlineColumn::At(column) => Some(column),
                _ => None,
            };
            let mut ways = Vec::new();
            self.arrive(path, &mut ways);
            columns.extend(ways.contains(way).then_some(column));
        }
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn paths(&mut self, state: u32, bytes: &[u8]) -> HashSet<Path> {
        let (joint, open, terminal) = self.parts_of(state);
        let newline = self.joints.terminals.newline;
        let begin = if newline.is_some() { NewlineColumn::Missing } else { NewlineColumn::None };
        let mut front: HashSet<Path> = HashSet::new();
        if terminal == NOTHING {
            for i in 0..self.joints.fresh.len() {
                let joint = self.joints.fresh[i];
                let letters = Vec::new();
                let behind = NOTHING;
                front.insert(Path {
                    joint,
                    open,
                    column: begin,
                    scanners: ALL,
                    letters,
                    first: None,
                    behind,
                    last: NOTHING,
                });
            }
        } else {
            let column =
                if newline.is_some() { NewlineColumn::After(0) } else { NewlineColumn::None };
            let path = Path {
                joint,
                open,
                column,
                scanners: EMPTY,
                letters: Vec::new(),
                first: Some(terminal),
                behind: NOTHING,
                last: NOTHING,
            };
            self.ends_of(&path, begin, &mut front);
            front.insert(path);
        }
        for (i, &byte) in bytes.iter().enumerate() {
            let mut after = HashSet::new();
            for path in front {
                let open = self.joints.questions.step(&self.joints.terminals, path.open, byte);
                let Some(open) = open else { continue };
                for &(joint, asked) in &self.joints.step(path.joint, byte) {
                    let more = self.joints.questions.get(asked).to_vec();
                    let open = self.joints.questions.with(open, &more);
                    let Some(joint) = self.joints.pruned(joint, open, path.behind) else {
                        continue;
                    };
                    let column = self.column(path.column, byte);
                    let moved = Path { joint, open, column, behind: NOTHING, ..path.clone() };
                    if i + 1 < bytes.len() {
                        self.ends_of(&moved, begin, &mut after);
                    }
                    after.insert(moved);
                }
            }
            front = after;
        }
        front
    }

    fn column(&self, before: NewlineColumn, byte: u8) -> NewlineColumn {
        let tab = self.joints.terminals.newline.map_or(0, |n| n.tab);
        let width = match byte {
            b'\n' if before != NewlineColumn::None => return NewlineColumn::At(0),
            b' ' => 1,
            b'\t' => tab,
            _ => 0,
        };
        match before {
            NewlineColumn::At(at) => NewlineColumn::At(at.saturating_add(width)),
            NewlineColumn::After(by) => NewlineColumn::After(by.saturating_add(width)),
            other => other,
        }
    }

    fn ends_of(&mut self, path: &Path, begin: NewlineColumn, out: &mut HashSet<Path>) {
        for ended in &self.joints.ended(path.joint) {
            if path.first.is_some_and(|first| first != ended.terminal) {
                continue;
            }
            let more = self.joints.questions.get(ended.open).to_vec();
            let open = self.joints.questions.with(path.open, &more);
            if path.first.is_none() && !self.is_read_after(path.last, ended.scanners) {
                continue;
            }
            let is_newline =
                self.joints.terminals.newline.is_some_and(|n| n.terminal == ended.terminal);
            let column = if is_newline { path.column } else { NewlineColumn::None };
            let mut letters = path.letters.clone();
            let mut scanners = path.scanners;
            if path.first.is_some() {
                scanners = ended.scanners;
                if is_newline {
                    letters.push(LexerLetter { terminal: ended.terminal, scanners: EMPTY, column });
                }
            } else {
                letters.extend(self.joints.scanners.letter(
                    ended.terminal,
                    ended.scanners,
                    ended.ignored,
                    column,
                ));
            }
            let behind = if ended.ignored || open == NONE { NOTHING } else { ended.terminal };
            // An ignored terminal leaves the parser where it was.
            let last = if ended.ignored { path.last } else { ended.terminal };
            for &joint in &self.joints.fresh {
                let letters = letters.clone();
                out.insert(Path {
                    joint,
                    open,
                    column: begin,
                    scanners,
                    letters,
                    first: None,
                    behind,
                    last,
                });
            }
        }
    }

    /// Whether a parser that has read a terminal can be in one of some scanners. What cannot be
    /// must not be followed: `*` and `**` alone would have 2^n ways through a line of stars.
    fn is_read_after(&mut self, last: u32, scanners: ScannerSetId) -> bool {
        let after = self.joints.scanners.after.get(last as usize).copied().unwrap_or(ALL);
        self.joints.scanners.sets.and(after, scanners) != EMPTY
    }

    fn arrive(&mut self, path: Path, out: &mut Vec<Stepped>) {
        let configuration =
            self.configurations.iter().position(|&known| known == (path.joint, path.open));
        for going in &self.joints.going(path.joint) {
            if path.first.is_some_and(|first| first != going.terminal) {
                continue;
            }
            if path.first.is_none() && !self.is_read_after(path.last, going.scanners) {
                continue;
            }
            let mut letters = path.letters.clone();
            let mut scanners = path.scanners;
            if path.first.is_some() {
                scanners = going.scanners;
            } else {
                let newline =
                    self.joints.terminals.newline.is_some_and(|n| n.terminal == going.terminal);
                let column = if newline { path.column.open() } else { NewlineColumn::None };
                letters.extend(self.joints.scanners.letter(
                    going.terminal,
                    going.scanners,
                    going.ignored,
                    column,
                ));
            }
            let state = configuration.and_then(|c| {
                let wanted = (c as u32, going.terminal);
                self.states.iter().position(|&known| known == wanted).map(|at| at as u32)
            });
            out.push(Stepped { scanners, letters, state });
        }
    }

    /// Where the text may end: the scanners in which what is in progress is complete.
    pub fn complete(&mut self, state: u32) -> ScannerSetId {
        let (joint, open, terminal) = self.parts_of(state);
        if terminal == NOTHING {
            return ALL;
        }
        if !self.joints.questions.may_end(open) {
            return EMPTY;
        }
        let mut scanners = EMPTY;
        for ended in &self.joints.ended(joint) {
            if ended.terminal == terminal && self.joints.questions.may_end(ended.open) {
                scanners = self.joints.scanners.sets.or(scanners, ended.scanners);
            }
        }
        scanners
    }
}
