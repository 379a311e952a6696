//! The walk over the trie of a vocabulary from every lexer state.
//!
//! What a text does from where a terminal begins does not depend on what stood before, but for the
//! questions that are still open. So the walk from a node of the trie on which a terminal has
//! ended is made once ([`NodeRecord`]), whoever comes there, and what follows an end at the first byte
//! of a token is shared by all lexer states.

use super::joint::{JointId, Joints};
use super::letters::{NewlineColumn, SequenceId, Sequences};
use super::obligations::{NONE, OpenQuestions};
use super::sets::ScannerSetId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use tokfold_core::budget::Interrupt;
use tokfold_core::error::{Error, Result};
use tokfold_core::vocabulary::{Trie, Vocabulary};

/// Bounds on the walk.
#[derive(Clone, Copy, Debug)]
pub struct WalkLimits {
    /// Lexer states.
    pub max_states: usize,
    /// Nodes of the trie visited, and entries written.
    pub max_work: u64,
}

/// A joint state with its open questions.
pub(super) type Configuration = u32;
/// A configuration with the terminal that is taken to be in progress.
pub(super) type LexerState = u32;

/// The state at the start of a text, in which nothing is in progress.
pub(super) const NOTHING: u32 = u32::MAX;

/// A token that ends while a terminal is in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenEnd {
    pub(super) terminal: u32,
    pub(super) scanners: ScannerSetId,
    pub(super) ignored: bool,
    pub(super) node: u32,
    pub(super) configuration: Configuration,
    pub(super) column: NewlineColumn,
}

/// A terminal that ends inside of a token; what follows is another record.
#[derive(Clone, Copy, Debug)]
pub(super) struct TerminalEnd {
    pub(super) terminal: u32,
    pub(super) scanners: ScannerSetId,
    pub(super) ignored: bool,
    pub(super) column: NewlineColumn,
    pub(super) target: u32,
}

/// What the tokens below a node do.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeRecord {
    pub(super) node: u32,
    pub(super) tokens: Vec<TokenEnd>,
    pub(super) links: Vec<TerminalEnd>,
}

/// One way of one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TokenWay {
    pub(super) sequence: SequenceId,
    pub(super) token: u32,
    pub(super) state: LexerState,
}

/// One way of one token from a lexer state, while its terminal goes on at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Onward {
    pub(super) terminal: u32,
    pub(super) scanners: ScannerSetId,
    pub(super) way: TokenWay,
}

/// A terminal in progress that ends at the first byte of a token: what follows is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct AtOnce {
    pub(super) terminal: u32,
    pub(super) scanners: ScannerSetId,
    /// Which of the shared parts.
    pub(super) part: u32,
}

/// What all tokens do from all lexer states that tokens lead to.
#[derive(Debug)]
pub struct Store {
    pub(super) joints: Joints,
    pub(super) sequences: Sequences,
    /// Joint state and open questions.
    pub(super) configurations: Vec<(JointId, OpenQuestions)>,
    pub(super) states: Vec<(Configuration, u32)>,
    /// Ways that begin with the end of what was in progress, for each set of open questions.
    pub(super) parts: Vec<Vec<TokenWay>>,
    /// For each configuration.
    pub(super) onward: Vec<Vec<Onward>>,
    pub(super) at_once: Vec<Vec<AtOnce>>,
    /// Nodes visited and ways written.
    pub work: u64,
}

impl Store {
    /// Walks all textual tokens; the observer of `interrupt` hears of the configurations done and
    /// known.
    ///
    /// # Errors
    /// [`Error::Limit`] at a bound; [`Error::Cancelled`], [`Error::Deadline`].
    pub fn new(
        joints: Joints,
        vocabulary: &Vocabulary,
        limits: &WalkLimits,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let trie = vocabulary.trie();
        let mut walk = LexerWalk::new(joints, trie, *limits);
        walk.all(interrupt)?;
        walk.finish()
    }
}

pub(super) struct LexerWalk<'a> {
    pub(super) trie: &'a Trie,
    pub(super) limits: WalkLimits,
    pub(super) joints: Joints,
    pub(super) configurations: Vec<(JointId, OpenQuestions)>,
    pub(super) configuration_ids: HashMap<(JointId, OpenQuestions), Configuration, FxBuildHasher>,
    pub(super) records: Vec<NodeRecord>,
    pub(super) record_ids: HashMap<(u32, OpenQuestions, u32), u32, FxBuildHasher>,
    /// The records not yet made, with their open questions and the terminal before.
    pub(super) waiting: Vec<(u32, OpenQuestions, u32)>,
    /// For each configuration its own record, and what ends before the first byte.
    pub(super) tops: Vec<(NodeRecord, Vec<TerminalEnd>)>,
    pub(super) work: u64,
}

impl<'a> LexerWalk<'a> {
    fn new(joints: Joints, trie: &'a Trie, limits: WalkLimits) -> Self {
        Self {
            trie,
            limits,
            joints,
            configurations: Vec::new(),
            configuration_ids: HashMap::default(),
            records: Vec::new(),
            record_ids: HashMap::default(),
            waiting: Vec::new(),
            tops: Vec::new(),
            work: 0,
        }
    }

    fn all(&mut self, interrupt: &Interrupt) -> Result<()> {
        // Part 0 is what follows where nothing is open: the start of the text among others.
        self.record(0, NONE, NOTHING);
        loop {
            while let Some((record, open, behind)) = self.waiting.pop() {
                interrupt.look()?;
                self.make_fresh(record, open, behind)?;
            }
            let next = self.tops.len();
            if next == self.configurations.len() {
                return Ok(());
            }
            if next.is_multiple_of(16) {
                interrupt.report(next, self.configurations.len())?;
            }
            self.make_top(next)?;
        }
    }

    pub(super) fn spend(&mut self, work: u64) -> Result<()> {
        self.work += work;
        if self.work > self.limits.max_work {
            return Err(Error::Limit {
                limit: "max_walk_work",
                value: self.limits.max_work,
                message: "the walk over the vocabulary takes more steps: raise the limit or use a \
                          smaller vocabulary"
                    .into(),
            });
        }
        Ok(())
    }

    fn configuration(&mut self, joint: JointId, open: OpenQuestions) -> Result<Configuration> {
        if let Some(&known) = self.configuration_ids.get(&(joint, open)) {
            return Ok(known);
        }
        if self.configurations.len() >= self.limits.max_states {
            return Err(Error::Limit {
                limit: "max_lexer_states",
                value: self.limits.max_states as u64,
                message: "the terminals together have more lexer states: raise the limit or \
                          simplify terminals that overlap"
                    .into(),
            });
        }
        let made = self.configurations.len() as Configuration;
        self.configurations.push((joint, open));
        self.configuration_ids.insert((joint, open), made);
        Ok(made)
    }

    fn record(&mut self, node: u32, open: OpenQuestions, behind: u32) -> u32 {
        // Without open questions it is the same whatever stands before.
        let behind = if open == NONE { NOTHING } else { behind };
        *self.record_ids.entry((node, open, behind)).or_insert_with(|| {
            let made = self.records.len() as u32;
            self.records.push(NodeRecord { node, ..NodeRecord::default() });
            self.waiting.push((made, open, behind));
            made
        })
    }

    fn start_column(&self, inside: bool) -> NewlineColumn {
        match self.joints.terminals.newline {
            None => NewlineColumn::None,
            Some(_) if inside => NewlineColumn::After(0),
            Some(_) => NewlineColumn::Missing,
        }
    }

    fn column(&self, before: NewlineColumn, byte: u8) -> NewlineColumn {
        let Some(newline) = self.joints.terminals.newline else { return NewlineColumn::None };
        let width = match byte {
            b'\n' => return NewlineColumn::At(0),
            b' ' => 1,
            b'\t' => newline.tab,
            _ => 0,
        };
        match before {
            NewlineColumn::At(at) => NewlineColumn::At(at.saturating_add(width)),
            NewlineColumn::After(by) => NewlineColumn::After(by.saturating_add(width)),
            other => other,
        }
    }

    fn make_fresh(&mut self, record: u32, open: OpenQuestions, behind: u32) -> Result<()> {
        let node = self.records[record as usize].node;
        let column = self.start_column(false);
        let starts: Vec<_> =
            self.joints.fresh.iter().map(|&joint| (node, joint, open, column, behind)).collect();
        let made = self.below(node, starts)?;
        self.records[record as usize] = made;
        Ok(())
    }

    fn make_top(&mut self, configuration: usize) -> Result<()> {
        let (joint, open) = self.configurations[configuration];
        let column = self.start_column(true);
        let mut links = Vec::new();
        self.link(0, joint, open, column, &mut links);
        let made = self.below(0, vec![(0, joint, open, column, NOTHING)])?;
        self.tops.push((made, links));
        Ok(())
    }

    /// Follows what is in progress through all that is below a node.
    fn below(
        &mut self,
        node: u32,
        mut work: Vec<(u32, JointId, OpenQuestions, NewlineColumn, u32)>,
    ) -> Result<NodeRecord> {
        let trie = self.trie;
        let mut made = NodeRecord { node, ..NodeRecord::default() };
        while let Some((parent, joint, open, column, behind)) = work.pop() {
            let mut child = parent + 1;
            while child < trie.end(parent) {
                let (at, byte) = (child, trie.byte(child));
                child = trie.end(at);
                self.spend(1)?;
                let forks = self.joints.step(joint, byte);
                if forks.is_empty() {
                    continue;
                }
                let Some(after) = self.joints.questions.step(&self.joints.terminals, open, byte)
                else {
                    continue;
                };
                let column = self.column(column, byte);
                for &(joint, asked) in &forks {
                    let more = self.joints.questions.get(asked).to_vec();
                    let open = self.joints.questions.with(after, &more);
                    let Some(joint) = self.joints.pruned(joint, open, behind) else { continue };
                    self.arrive(at, joint, open, column, &mut made)?;
                    if trie.end(at) > at + 1 {
                        self.link(at, joint, open, column, &mut made.links);
                        work.push((at, joint, open, column, NOTHING));
                    }
                }
            }
        }
        Ok(made)
    }

    /// Notes the tokens that end at a node.
    fn arrive(
        &mut self,
        node: u32,
        joint: JointId,
        open: OpenQuestions,
        column: NewlineColumn,
        made: &mut NodeRecord,
    ) -> Result<()> {
        if self.trie.numbers(node).is_empty() {
            return Ok(());
        }
        let configuration = self.configuration(joint, open)?;
        for going in &self.joints.going(joint) {
            made.tokens.push(TokenEnd {
                terminal: going.terminal,
                scanners: going.scanners,
                ignored: going.ignored,
                node,
                configuration,
                column,
            });
        }
        Ok(())
    }

    /// Notes the terminals that end at a node, if anything can follow there.
    fn link(
        &mut self,
        node: u32,
        joint: JointId,
        open: OpenQuestions,
        column: NewlineColumn,
        links: &mut Vec<TerminalEnd>,
    ) {
        for ended in &self.joints.ended(joint) {
            let more = self.joints.questions.get(ended.open).to_vec();
            let open = self.joints.questions.with(open, &more);
            if !self.goes_on(node, open) {
                continue;
            }
            let newline = self.is_newline(ended.terminal);
            links.push(TerminalEnd {
                terminal: ended.terminal,
                scanners: ended.scanners,
                ignored: ended.ignored,
                column: if newline { column } else { NewlineColumn::None },
                target: self.record(
                    node,
                    open,
                    if ended.ignored { NOTHING } else { ended.terminal },
                ),
            });
        }
    }

    fn goes_on(&mut self, node: u32, open: OpenQuestions) -> bool {
        let trie = self.trie;
        let mut child = node + 1;
        while child < trie.end(node) {
            let byte = trie.byte(child);
            child = trie.end(child);
            if self.joints.questions.step(&self.joints.terminals, open, byte).is_some()
                && (0..self.joints.fresh.len()).any(|i| {
                    let joint = self.joints.fresh[i];
                    !self.joints.step(joint, byte).is_empty()
                })
            {
                return true;
            }
        }
        false
    }

    pub(super) fn is_newline(&self, terminal: u32) -> bool {
        self.joints.terminals.newline.is_some_and(|n| n.terminal == terminal)
    }
}
