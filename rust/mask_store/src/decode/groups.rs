//! The rows of lexer states in groups that states share, ready to be asked for by a stack.

use super::super::letters::{LexerLetter, NewlineColumn, SequenceId};
use super::super::rows::LexerRow;
use super::super::sets::{EMPTY, ScannerSetId};
use super::layout::NewlineRules;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use tokfold_core::error::{Error, Result};

/// The number of a group.
pub(super) type GroupId = u32;

/// Letters, and which of the token sets of the rows.
pub(super) type GroupRow = (Arc<[LexerLetter]>, u32);

/// Rows that do not ask for the layout, and those that do.
#[derive(Clone, Debug)]
pub(super) struct RowGroup {
    pub(super) plain: Vec<GroupRow>,
    pub(super) asking: Vec<GroupRow>,
    /// The most parentheses that an asking row closes; `None` if no row asks.
    pub(super) closes: Option<u32>,
}

/// Scanners, sequence, tokens.
pub(super) type OwnRow = (ScannerSetId, SequenceId, u32);

/// How many there are of what rows speak of.
#[derive(Clone, Copy, Debug)]
pub struct RowLimits {
    /// Terminals.
    pub terminals: u32,
    /// Sets of scanners.
    pub sets: u32,
    /// Sets of tokens.
    pub token_sets: u32,
}

/// The rows of all lexer states, as they were walked.
#[derive(Clone, Debug, Default)]
pub struct RowTable {
    /// Letters of each sequence.
    pub sequences: Vec<Arc<[LexerLetter]>>,
    /// For each shared part: sequence, tokens.
    pub parts: Vec<Vec<(SequenceId, u32)>>,
    /// For each configuration and terminal: scanners, sequence, tokens.
    pub(super) own: HashMap<(u32, u32), Vec<OwnRow>, FxBuildHasher>,
    /// For each configuration and terminal: scanners, part.
    pub at_once: HashMap<(u32, u32), Vec<(ScannerSetId, u32)>, FxBuildHasher>,
}

impl RowTable {
    /// The rows of a saved store: letters, the letters of all sequences with offsets, and rows as
    /// [`RowTable::new`] takes them; `states`, `sets` and `token_sets` are how many there are.
    ///
    /// # Errors
    /// [`Error::Artifact`] where a number is outside of what it counts.
    pub fn saved(
        letters: &[LexerLetter],
        (flat, offsets): (&[u32], &[u32]),
        shared: &[LexerRow],
        own: &[LexerRow],
        ends: &[[u32; 4]],
        limits: RowLimits,
    ) -> Result<Self> {
        let broken = || Error::Artifact("the saved rows are damaged".into());
        let fits = offsets.first() == Some(&0)
            && offsets.is_sorted()
            && offsets.last().is_some_and(|&end| end as usize == flat.len())
            && flat.iter().all(|&letter| (letter as usize) < letters.len())
            && letters.iter().all(|l| l.terminal < limits.terminals && l.scanners < limits.sets);
        if !fits {
            return Err(broken());
        }
        let sequences: Vec<Arc<[LexerLetter]>> = offsets
            .windows(2)
            .map(|w| flat[w[0] as usize..w[1] as usize].iter().map(|&l| letters[l as usize]))
            .map(Iterator::collect)
            .collect();
        let is_row = |row: &LexerRow| {
            (row.sequence as usize) < sequences.len() && row.tokens < limits.token_sets
        };
        let parts = shared.iter().map(|row| row.source.saturating_add(1)).max().unwrap_or(1);
        let fits = parts <= shared.len() as u32 + ends.len() as u32 + 1
            && shared.iter().chain(own).all(is_row)
            && own.iter().all(|row| row.scanners < limits.sets)
            && ends.iter().all(|end| end[2] < limits.sets && end[3] <= ends.len() as u32);
        match fits {
            true => Ok(Self::new(sequences, shared, own, ends)),
            false => Err(broken()),
        }
    }

    /// A table of rows: those of the parts, those of the configurations, and for each
    /// configuration and terminal the scanners and parts that follow an end at the first byte.
    pub fn new(
        sequences: Vec<Arc<[LexerLetter]>>,
        shared: &[LexerRow],
        own: &[LexerRow],
        ends: &[[u32; 4]],
    ) -> Self {
        let mut made = Self { sequences, ..Self::default() };
        let parts = ends.iter().map(|e| e[3]).chain(shared.iter().map(|r| r.source));
        made.parts.resize(parts.max().map_or(1, |last| last as usize + 1), Vec::new());
        for row in shared {
            made.parts[row.source as usize].push((row.sequence, row.tokens));
        }
        for row in own {
            let rows = made.own.entry((row.source, row.terminal)).or_default();
            rows.push((row.scanners, row.sequence, row.tokens));
        }
        for &[configuration, terminal, scanners, part] in ends {
            made.at_once.entry((configuration, terminal)).or_default().push((scanners, part));
        }
        made
    }
}

/// Groups as they are met; equal ones are one.
#[derive(Clone, Debug, Default)]
pub(super) struct RowGroups {
    pub(super) groups: Vec<RowGroup>,
    known: HashMap<Vec<GroupRow>, GroupId, FxBuildHasher>,
    parts: HashMap<(u32, bool), GroupId, FxBuildHasher>,
    of_state: HashMap<(u32, u32), Arc<[GroupId]>, FxBuildHasher>,
}

impl RowGroups {
    /// The groups of a configuration's terminal in a scanner; `None` for what stands at the start
    /// of a text.
    pub(super) fn of(
        &mut self,
        key: (u32, u32),
        place: Option<(u32, u32)>,
        table: &RowTable,
        newlines: &NewlineRules,
        mut is_in: impl FnMut(ScannerSetId) -> bool,
    ) -> Arc<[GroupId]> {
        if let Some(known) = self.of_state.get(&key) {
            return known.clone();
        }
        let mut groups = Vec::new();
        match place {
            None => groups.push(self.part(0, false, table, newlines)),
            Some(place) => {
                let own = table.own.get(&place).map_or(&[][..], Vec::as_slice);
                let rows = own
                    .iter()
                    .filter(|&&(scanners, ..)| is_in(scanners))
                    .map(|&(_, sequence, tokens)| {
                        (table.sequences[sequence as usize].clone(), tokens)
                    })
                    .collect();
                groups.push(self.intern(rows, newlines));
                for &(scanners, part) in table.at_once.get(&place).map_or(&[][..], Vec::as_slice) {
                    if is_in(scanners) {
                        let ended = newlines.is_newline(place.1);
                        groups.push(self.part(part, ended, table, newlines));
                    }
                }
            }
        }
        groups.sort_unstable();
        groups.dedup();
        groups.retain(|&group| {
            let group = &self.groups[group as usize];
            !group.plain.is_empty() || !group.asking.is_empty()
        });
        let groups: Arc<[GroupId]> = groups.into();
        self.of_state.insert(key, groups.clone());
        groups
    }

    /// A part; with `ended`, behind a newline terminal that ends between two tokens, which is
    /// where the last token did.
    pub(super) fn part(
        &mut self,
        part: u32,
        ended: bool,
        table: &RowTable,
        newlines: &NewlineRules,
    ) -> GroupId {
        if let Some(&known) = self.parts.get(&(part, ended)) {
            return known;
        }
        let before = newlines.indentation.as_ref().filter(|_| ended).map(|rules| LexerLetter {
            terminal: rules.newline,
            scanners: EMPTY,
            column: NewlineColumn::After(0),
        });
        let rows = table.parts[part as usize].iter().map(|&(sequence, tokens)| {
            let letters = &table.sequences[sequence as usize];
            match before {
                None => (letters.clone(), tokens),
                Some(newline) => {
                    (std::iter::once(newline).chain(letters.iter().copied()).collect(), tokens)
                }
            }
        });
        let made = self.intern(rows.collect(), newlines);
        self.parts.insert((part, ended), made);
        made
    }

    fn intern(&mut self, rows: Vec<GroupRow>, newlines: &NewlineRules) -> GroupId {
        if let Some(&known) = self.known.get(&rows) {
            return known;
        }
        let (asking, plain): (Vec<_>, Vec<_>) =
            rows.iter().cloned().partition(|(letters, _)| newlines.asks(letters));
        let closes = asking.iter().map(|(letters, _)| newlines.closes(letters)).max();
        let id = self.groups.len() as GroupId;
        self.groups.push(RowGroup { plain, asking, closes });
        self.known.insert(rows, id);
        id
    }
}
