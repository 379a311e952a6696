//! Rows: the tokens that do the same from one lexer state.

use super::letters::{LexerLetter, SequenceId};
use super::sets::ScannerSetId;
use super::walk::{NOTHING, Store, TokenWay};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// Tokens that lead from one lexer state through one sequence of letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexerRow {
    /// A configuration, or one of the shared parts, or a state of a terminal.
    pub source: u32,
    /// The terminal in progress; for shared parts none (`u32::MAX`).
    pub terminal: u32,
    /// The scanners that it must have begun in.
    pub scanners: ScannerSetId,
    /// The letters.
    pub sequence: SequenceId,
    /// The tokens: which of the token sets.
    pub tokens: u32,
}

/// Rows with their token sets, each kept once.
#[derive(Clone, Debug, Default)]
pub struct LexerRows {
    /// The rows, by source.
    pub rows: Vec<LexerRow>,
    /// Sorted tokens of each set.
    pub token_sets: Vec<Box<[u32]>>,
    known: HashMap<Box<[u32]>, u32, FxBuildHasher>,
}

impl LexerRows {
    fn tokens(&mut self, mut tokens: Vec<u32>) -> u32 {
        tokens.sort_unstable();
        tokens.dedup();
        let tokens = tokens.into_boxed_slice();
        if let Some(&id) = self.known.get(&tokens) {
            return id;
        }
        let id = self.token_sets.len() as u32;
        self.token_sets.push(tokens.clone());
        self.known.insert(tokens, id);
        id
    }
}

/// What one state of a terminal counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TerminalCounts {
    /// The state, or `u32::MAX` for the start of the text.
    pub state: u32,
    /// The terminal, or `u32::MAX`.
    pub terminal: u32,
    /// Tokens with the state after them and the terminals that begin.
    pub transitions: u64,
    /// Sequences of terminals that some token leads through.
    pub rows: u64,
}

impl Store {
    /// The lexer states: configuration and terminal of each.
    pub fn states(&self) -> &[(u32, u32)] {
        &self.states
    }

    /// The letters that sequences are made of.
    pub fn letters(&self) -> &[LexerLetter] {
        self.sequences.letters()
    }

    /// The letters of all sequences, one after the other, and where each begins.
    pub fn sequences(&self) -> (Vec<u32>, Vec<u32>) {
        let (mut letters, mut offsets) = (Vec::new(), vec![0]);
        for sequence in 0..self.sequences.len() as u32 {
            letters.extend(self.sequences.get(sequence));
            offsets.push(letters.len() as u32);
        }
        (letters, offsets)
    }

    /// The sets of scanners, as words of 64.
    pub fn scanner_sets(&self) -> &[Box<[u64]>] {
        self.joints.scanners.sets()
    }

    /// Joint states, configurations, and sets of open questions that have been met.
    pub fn sizes(&self) -> [usize; 3] {
        [self.joints.len(), self.configurations.len(), self.joints.questions.len()]
    }

    /// What ends at the first byte, for each configuration: configuration, terminal, scanners,
    /// part; the column of the newline terminal is what it was before the token.
    pub fn at_once(&self) -> Vec<[u32; 4]> {
        let mut out = Vec::new();
        for (configuration, ends) in self.at_once.iter().enumerate() {
            out.extend(ends.iter().map(|e| [configuration as u32, e.terminal, e.scanners, e.part]));
        }
        out
    }

    /// The rows of the shared parts, and those of the configurations: both sources are numbered
    /// from 0.
    pub fn rows(&self) -> (Vec<LexerRow>, LexerRows) {
        let mut made = LexerRows::default();
        let mut parts = Vec::new();
        for (part, ways) in self.parts.iter().enumerate() {
            let ways = ways.iter().map(|way| ((NOTHING, 0, way.sequence), way.token));
            grouped(&mut made, part as u32, ways, &mut parts);
        }
        let mut own = Vec::new();
        for (configuration, ways) in self.onward.iter().enumerate() {
            let ways = ways.iter().map(|o| ((o.terminal, o.scanners, o.way.sequence), o.way.token));
            grouped(&mut made, configuration as u32, ways, &mut own);
        }
        made.rows = own;
        (parts, made)
    }

    /// The rows of a store over the states of single terminals, for any scanner: what the
    /// joint states tell apart beyond that is joined. Sequences are of terminals alone: their
    /// letters one after the other with offsets.
    pub fn joined(&self) -> (Vec<TerminalCounts>, LexerRows, Vec<u32>, Vec<u32>) {
        let plain = Plain::new(self);
        let mut by_state: HashMap<u32, Vec<u32>, FxBuildHasher> = HashMap::default();
        for (state, &(configuration, terminal)) in self.states.iter().enumerate() {
            let single = plain.single(configuration, terminal);
            by_state.entry(single).or_default().push(state as u32);
        }
        let mut keys: Vec<u32> = by_state.keys().copied().collect();
        keys.sort_unstable();
        let mut made = LexerRows::default();
        let mut counts = Vec::new();
        let mut ways: Vec<(u32, u32, u32)> = Vec::new();
        plain.collect(&self.parts[0], &mut ways);
        counts.push(close(&mut made, NOTHING, NOTHING, &mut ways));
        for key in keys {
            let mut parts = Vec::new();
            for &state in &by_state[&key] {
                let (configuration, terminal) = self.states[state as usize];
                for o in &self.onward[configuration as usize] {
                    if o.terminal == terminal {
                        plain.collect(std::slice::from_ref(&o.way), &mut ways);
                    }
                }
                let ends = &self.at_once[configuration as usize];
                parts.extend(ends.iter().filter(|e| e.terminal == terminal).map(|e| e.part));
                ways.sort_unstable();
                ways.dedup();
            }
            parts.sort_unstable();
            parts.dedup();
            for part in parts {
                plain.collect(&self.parts[part as usize], &mut ways);
            }
            let terminal = self.joints.terminals.owner[key as usize];
            counts.push(close(&mut made, key, terminal, &mut ways));
        }
        let (letters, offsets) = plain.sequences();
        (counts, made, letters, offsets)
    }
}

type RowKey = (u32, ScannerSetId, SequenceId);

fn grouped(
    made: &mut LexerRows,
    source: u32,
    ways: impl Iterator<Item = (RowKey, u32)>,
    out: &mut Vec<LexerRow>,
) {
    let mut last: Option<RowKey> = None;
    let mut tokens = Vec::new();
    let mut flush = |made: &mut LexerRows, key: Option<RowKey>, tokens: &mut Vec<u32>| {
        if let Some((terminal, scanners, sequence)) = key {
            let tokens = made.tokens(std::mem::take(tokens));
            out.push(LexerRow { source, terminal, scanners, sequence, tokens });
        }
    };
    for (key, token) in ways {
        if last != Some(key) {
            flush(made, last, &mut tokens);
            last = Some(key);
        }
        tokens.push(token);
    }
    flush(made, last, &mut tokens);
}

/// Counts and keeps the ways of one state of a terminal: sequence, token, state after it.
fn close(
    made: &mut LexerRows,
    state: u32,
    terminal: u32,
    ways: &mut Vec<(u32, u32, u32)>,
) -> TerminalCounts {
    ways.sort_unstable();
    ways.dedup();
    let mut rows = Vec::new();
    let of = ways.iter().map(|&(sequence, token, _)| ((terminal, 0, sequence), token));
    grouped(made, state, of, &mut rows);
    let counts =
        TerminalCounts { state, terminal, transitions: ways.len() as u64, rows: rows.len() as u64 };
    made.rows.append(&mut rows);
    ways.clear();
    counts
}

/// Sequences of terminals without what their letters say besides.
struct Plain<'a> {
    store: &'a Store,
    known: HashMap<Vec<u32>, u32, FxBuildHasher>,
    sequences: Vec<Vec<u32>>,
    of: Vec<u32>,
    singles: Vec<u32>,
}

impl<'a> Plain<'a> {
    fn new(store: &'a Store) -> Self {
        let mut made = Self {
            store,
            known: HashMap::default(),
            sequences: Vec::new(),
            of: Vec::new(),
            singles: Vec::new(),
        };
        let terminals = &store.joints.terminals;
        for sequence in 0..store.sequences.len() as u32 {
            // The newline in progress is not new, and ignored terminals were only asked for.
            let letters = store.sequences.get(sequence);
            let mut plain = Vec::new();
            for letter in letters {
                let letter = store.sequences.letters()[letter as usize];
                let is_new = letter.scanners != super::EMPTY;
                if is_new && !terminals.ignored[letter.terminal as usize] {
                    plain.push(letter.terminal);
                }
            }
            let next = made.sequences.len() as u32;
            let id = *made.known.entry(plain.clone()).or_insert(next);
            if id == next {
                made.sequences.push(plain);
            }
            made.of.push(id);
        }
        for &(configuration, terminal) in &store.states {
            let single = made.single(configuration, terminal);
            made.singles.push(single);
        }
        made
    }

    /// The state of the terminal itself.
    fn single(&self, configuration: u32, terminal: u32) -> u32 {
        let (joint, _) = self.store.configurations[configuration as usize];
        let entry = self.store.joints.entries(joint).iter().find(|e| e.terminal == terminal);
        entry.map_or(NOTHING, |e| e.state)
    }

    fn collect(&self, ways: &[TokenWay], out: &mut Vec<(u32, u32, u32)>) {
        out.extend(ways.iter().map(|way| {
            let sequence = self.of[way.sequence as usize];
            (sequence, way.token, self.singles[way.state as usize])
        }));
    }

    fn sequences(self) -> (Vec<u32>, Vec<u32>) {
        let (mut letters, mut offsets) = (Vec::new(), vec![0]);
        for sequence in self.sequences {
            letters.extend(sequence);
            offsets.push(letters.len() as u32);
        }
        (letters, offsets)
    }
}
