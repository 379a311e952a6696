//! All that decoding needs of a grammar and a vocabulary, shared by any number of texts.

use super::super::letters::{LexerLetter, NewlineColumn};
use super::super::parser::{ANY_TOP, NOTHING_READ, ReadingId, StackLanguages, StackLetter};
use super::super::sets::{EMPTY, ScannerSetId};
use super::super::step::Stepped;
use super::super::walk::Store;
use super::groups::{GroupId, RowGroups, RowTable};
use super::layout::{Indentation, Layout, NewlineRules};
use super::row_tokens::{RowTokens, TokenSource};
use super::unions::{UnionId, Unions};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokfold_core::budget::Interrupt;
use tokfold_core::error::{Error, Result};

/// Bounds on what is remembered; past one of them all is forgotten, and made anew when asked for.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Places where walks down the stack begin.
    pub max_starts: usize,
    /// Bytes of unions and their token sets, about.
    pub max_bytes: usize,
}

/// Readings, each with the sets of its tokens.
pub(super) type TokenReadings = Arc<[(ReadingId, Box<[u32]>)]>;

/// What the parser reads of a row: terminals ([`NOTHING_READ`] for none) with the tops that they
/// can be read on, if not all; and the set of its tokens.
pub type RawRow = (Vec<(u32, Option<Vec<u32>>)>, u32);

/// What texts do from one lexer state.
type TextWays = HashMap<Box<[u8]>, Arc<[Stepped]>, FxBuildHasher>;

/// Where a walk down the stack begins: lexer state, scanner, layout, top.
pub(super) type Start = (u32, u32, Layout, u32);

/// Unions at which walks begin.
pub(super) type Begun = Arc<[UnionId]>;

/// The parts of a [`Decoder`].
pub struct DecoderParts {
    /// The lexer's side.
    pub lexer: Arc<Mutex<Store>>,
    /// Its rows; the token sets are in `tokens`.
    pub rows: RowTable,
    /// Their tokens.
    pub tokens: Box<dyn TokenSource>,
    /// The number of tokens of the vocabulary.
    pub size: usize,
    /// The parser's side.
    pub parser: StackLanguages,
    /// For each terminal whether it is dropped.
    pub ignored: Vec<bool>,
    /// The post-lexer.
    pub indentation: Option<Indentation>,
    /// The scanner of each state of the parser.
    pub scanner_of_state: Vec<u32>,
    /// Bounds.
    pub memory: Memory,
}

/// The store of a grammar and a vocabulary, with what texts have asked of it.
pub struct Decoder {
    lexer: Arc<Mutex<Store>>,
    pub(super) rows: RowTable,
    pub(super) tokens: RowTokens,
    pub(super) parser: StackLanguages,
    pub(super) newlines: NewlineRules,
    pub(super) scanner_of_state: Vec<u32>,
    pub(super) scanner_sets: Vec<Box<[u64]>>,
    pub(super) states: Vec<(u32, u32)>,
    pub(super) groups: RowGroups,
    pub(super) unions: Unions,
    pub(super) memory: Memory,
    pub(super) closing: HashMap<(u32, u32), Option<u32>, FxBuildHasher>,
    pub(super) readings: HashMap<(GroupId, Option<Layout>), TokenReadings, FxBuildHasher>,
    pub(super) pieces: HashMap<(GroupId, Option<Layout>, u32), UnionId, FxBuildHasher>,
    pub(super) starts: HashMap<Start, Begun, FxBuildHasher>,
    ways: HashMap<u32, TextWays, FxBuildHasher>,
    ways_kept: usize,
    complete: HashMap<u32, ScannerSetId, FxBuildHasher>,
    /// How often all was forgotten.
    pub forgotten: u64,
}

fn lock(store: &Mutex<Store>) -> MutexGuard<'_, Store> {
    // A panic in between would leave the store as it was: steps only add what is known.
    store.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Decoder {
    /// A decoder of its parts.
    ///
    /// # Errors
    /// [`Error::State`] where the parts do not fit together.
    pub fn new(parts: DecoderParts) -> Result<Self> {
        let DecoderParts { lexer, rows, tokens, size, mut parser, memory, .. } = parts;
        if parts.scanner_of_state.len() != parser.table.size() {
            return Err(Error::State("a scanner is needed for each state of the parser".into()));
        }
        let newlines = NewlineRules::new(parts.ignored, parts.indentation, &mut parser);
        let states = lock(&lexer).states().to_vec();
        let mut made = Self {
            lexer,
            rows,
            tokens: RowTokens::new(tokens),
            parser,
            newlines,
            scanner_of_state: parts.scanner_of_state,
            scanner_sets: Vec::new(),
            states,
            groups: RowGroups::default(),
            unions: Unions::new(size),
            memory,
            closing: HashMap::default(),
            readings: HashMap::default(),
            pieces: HashMap::default(),
            starts: HashMap::default(),
            ways: HashMap::default(),
            ways_kept: 0,
            complete: HashMap::default(),
            forgotten: 0,
        };
        made.learn();
        Ok(made)
    }

    /// Takes up the sets of scanners that the lexer has met.
    fn learn(&mut self) {
        let lexer = lock(&self.lexer);
        let sets = lexer.scanner_sets();
        if sets.len() > self.scanner_sets.len() {
            self.newlines.learn(sets, &self.scanner_of_state, &mut self.parser);
            self.scanner_sets.extend_from_slice(&sets[self.scanner_sets.len()..]);
        }
    }

    /// Works out all rows that do not ask for the layout, for every top.
    ///
    /// # Errors
    /// [`Error::Limit`]: too many states of stacks, or a table that reduces without end;
    /// [`Error::Cancelled`], [`Error::Deadline`].
    pub fn prepare(&mut self, interrupt: &Interrupt) -> Result<()> {
        let mut used = vec![false; self.rows.sequences.len()];
        for rows in &self.rows.parts {
            rows.iter().for_each(|&(sequence, _)| used[sequence as usize] = true);
        }
        for rows in self.rows.own.values() {
            rows.iter().for_each(|&(_, sequence, _)| used[sequence as usize] = true);
        }
        let mut tops: Vec<u32> = self.parser.paths.after.iter().flatten().copied().collect();
        tops.push(self.parser.table.start());
        tops.sort_unstable();
        tops.dedup();
        let layout = Layout::anywhere();
        for (sequence, _) in used.iter().enumerate().filter(|(_, used)| **used) {
            if sequence.is_multiple_of(64) {
                interrupt.report(sequence, used.len())?;
            }
            let letters = &self.rows.sequences[sequence];
            if self.newlines.asks(letters) {
                continue;
            }
            if let Some((letters, _)) = self.newlines.read(letters, &layout, &mut self.parser) {
                let reading = self.parser.reading(&letters)?;
                for &top in &tops {
                    self.parser.state(reading, top)?;
                }
            }
        }
        for part in 0..self.rows.parts.len() as u32 {
            interrupt.report(used.len(), used.len())?;
            let Self { groups, rows, newlines, .. } = self;
            let group = groups.part(part, false, rows, newlines);
            self.readings(group, None)?;
        }
        Ok(())
    }

    /// The lexer state at the start of a text.
    pub fn start(&self) -> u32 {
        self.states.len() as u32
    }

    /// The number of scanners.
    pub fn scanners(&self) -> usize {
        self.scanner_of_state.iter().max().map_or(0, |&last| last as usize + 1)
    }

    /// The terminal in progress in a lexer state.
    pub(super) fn terminal(&self, state: u32) -> Option<u32> {
        self.states.get(state as usize).map(|&(_, terminal)| terminal)
    }

    /// The scanner that the lexer takes with a state on top of the stack.
    pub(super) fn scanner(&self, top: u32) -> u32 {
        self.scanner_of_state[top as usize]
    }

    /// Whether a set of scanners has one; the empty set has none.
    #[inline]
    pub(super) fn is_in(&self, scanner: u32, set: ScannerSetId) -> bool {
        holds(&self.scanner_sets, scanner, set)
    }

    pub(super) fn is_newline_state(&self, state: u32) -> bool {
        self.terminal(state).is_some_and(|terminal| self.newlines.is_newline(terminal))
    }

    /// Columns of a tab.
    pub(super) fn tab(&self) -> u32 {
        self.newlines.indentation.as_ref().map_or(1, |rules| rules.tab)
    }

    /// Every way of a text from a lexer state; remembered.
    pub(super) fn ways(&mut self, state: u32, data: &[u8]) -> Arc<[Stepped]> {
        if let Some(known) = self.ways.get(&state).and_then(|ways| ways.get(data)) {
            return known.clone();
        }
        let made: Arc<[Stepped]> = lock(&self.lexer).advance(state, data).into();
        self.learn();
        if self.ways_kept >= self.memory.max_starts {
            self.ways.clear();
            self.ways_kept = 0;
        }
        self.ways_kept += 1;
        self.ways.entry(state).or_default().insert(data.into(), made.clone());
        made
    }

    /// The columns of a newline terminal that begins in a text and is in progress where the text takes one of its ways.
    pub(super) fn columns(&self, state: u32, data: &[u8], way: &Stepped) -> Vec<Option<u32>> {
        lock(&self.lexer).columns(state, data, way)
    }

    /// What the parser still has to read where the text ends, the end included; `None` where the
    /// text cannot end for the lexer or the post-lexer.
    pub(super) fn end_letters(
        &mut self,
        state: u32,
        scanner: u32,
        layout: &Layout,
    ) -> Option<Vec<StackLetter>> {
        let complete = match self.complete.get(&state) {
            Some(&known) => known,
            None => {
                let made = lock(&self.lexer).complete(state);
                self.learn();
                self.complete.insert(state, made);
                made
            }
        };
        if !self.is_in(scanner, complete) {
            return None;
        }
        let mut letters = Vec::new();
        let mut ended = layout.clone();
        if let Some(newline) = self.terminal(state).filter(|&t| self.newlines.is_newline(t)) {
            let letter =
                LexerLetter { terminal: newline, scanners: EMPTY, column: NewlineColumn::After(0) };
            (letters, ended) = self.newlines.read(&[letter], layout, &mut self.parser)?;
        }
        letters.extend(self.newlines.end(&ended));
        letters.push(StackLetter { terminal: self.parser.table.end(), tops: ANY_TOP });
        Some(letters)
    }

    /// What is there: rows of both kinds, sequences, states of the automaton, readings, unions,
    /// token sets of unions, starts, bytes of unions.
    pub fn counts(&self) -> [(&'static str, usize); 9] {
        [
            ("shared_rows", self.rows.parts.iter().map(Vec::len).sum()),
            ("own_rows", self.rows.own.values().map(Vec::len).sum()),
            ("sequences", self.rows.sequences.len()),
            ("stack_states", self.parser.automaton.len()),
            ("readings", self.parser.readings()),
            ("unions", self.unions.len()),
            ("union_token_sets", self.unions.tokens.len()),
            ("starts", self.starts.len()),
            ("union_bytes", self.bytes()),
        ]
    }

    /// The rows of a lexer state before any predicate: what the parser reads of them, and the set
    /// of their tokens. For checks.
    pub fn raw_rows(&mut self, state: u32, scanner: u32, layout: &Layout) -> Vec<RawRow> {
        let mut out = Vec::new();
        for &group in self.groups_of(state, scanner).iter() {
            let Self { groups, newlines, parser, .. } = self;
            let group = &groups.groups[group as usize];
            for (letters, tokens) in group.plain.iter().chain(&group.asking) {
                if let Some((letters, _)) = newlines.read(letters, layout, parser) {
                    let letters = letters.iter().map(|l| (l.terminal, parser.members(l.tops)));
                    out.push((letters.collect(), *tokens));
                }
            }
        }
        out
    }

    /// Refuses what some stacks decide; returns how many readings there were. For tests.
    #[cfg(test)]
    pub(super) fn mutate(&mut self) -> usize {
        self.forget();
        self.parser.refuse_all()
    }

    /// The tokens of a set.
    ///
    /// # Errors
    /// [`Error::State`]: there is no such set.
    pub fn token_set(&self, set: u32) -> Result<Vec<u32>> {
        let found = self.tokens.get(set);
        found.ok_or_else(|| Error::State(format!("there is no token set {set}")))
    }
}

#[inline]
pub(super) fn holds(sets: &[Box<[u64]>], scanner: u32, set: ScannerSetId) -> bool {
    sets[set as usize][scanner as usize / 64] >> (scanner % 64) & 1 == 1
}

/// Whether a letter reads nothing and only asks for the top.
pub(super) fn only_asks(letter: &StackLetter) -> bool {
    letter.terminal == NOTHING_READ
}
