//! What rows are made of: terminals that have ended, and sequences of them.

use super::sets::ScannerSetId;
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The column at which a newline terminal of an indenting post-lexer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NewlineColumn {
    /// No newline terminal.
    None,
    /// It is still in progress; whether it has a line feed yet. (The column so far is that of the
    /// whole text.)
    Open(bool),
    /// Its last line feed is in the token: the column.
    At(u32),
    /// It is not: so much further than before the token.
    After(u32),
    /// It has no line feed at all, and has begun in this token.
    Missing,
}

/// A terminal that begins in a token, with the scanners in which it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LexerLetter {
    /// The terminal. An ignored one is only asked for its scanners.
    pub terminal: u32,
    /// The scanners: the one that the parser is in when the terminal begins must be among them.
    /// Without any, the letter does not begin here: it is the newline terminal that was in
    /// progress, and says where that ends.
    pub scanners: ScannerSetId,
    /// For the newline terminal, where it ends.
    pub column: NewlineColumn,
}

impl NewlineColumn {
    /// The same for a terminal that goes on where a token ends.
    pub(super) fn open(self) -> Self {
        match self {
            Self::None => Self::None,
            other => Self::Open(matches!(other, Self::At(_))),
        }
    }
}

/// The number of a sequence; 0 is the empty one.
pub(super) type SequenceId = u32;

/// Sequences of letters, the first one foremost, each kept once.
#[derive(Clone, Debug)]
pub(super) struct Sequences {
    letters: Vec<LexerLetter>,
    letter_ids: HashMap<LexerLetter, u32, FxBuildHasher>,
    /// The first letter and the sequence behind it; the entry of the empty one means nothing.
    parts: Vec<(u32, SequenceId)>,
    known: HashMap<(u32, SequenceId), SequenceId, FxBuildHasher>,
}

impl Default for Sequences {
    fn default() -> Self {
        Self {
            letters: Vec::new(),
            letter_ids: HashMap::default(),
            parts: vec![(0, 0)],
            known: HashMap::default(),
        }
    }
}

impl Sequences {
    pub(super) fn letter(&mut self, letter: LexerLetter) -> u32 {
        *self.letter_ids.entry(letter).or_insert_with(|| {
            self.letters.push(letter);
            self.letters.len() as u32 - 1
        })
    }

    /// The sequence of one letter.
    pub(super) fn single(&mut self, letter: LexerLetter) -> SequenceId {
        let letter = self.letter(letter);
        self.prefixed(letter, 0)
    }

    pub(super) fn prefixed(&mut self, letter: u32, behind: SequenceId) -> SequenceId {
        *self.known.entry((letter, behind)).or_insert_with(|| {
            self.parts.push((letter, behind));
            self.parts.len() as u32 - 1
        })
    }

    /// The first letter and what stands behind it.
    pub(super) fn first(&self, sequence: SequenceId) -> Option<(LexerLetter, SequenceId)> {
        let &(letter, behind) = self.parts.get(sequence as usize).filter(|_| sequence != 0)?;
        Some((self.letters[letter as usize], behind))
    }

    /// The letters of a sequence.
    pub(super) fn get(&self, mut sequence: SequenceId) -> Vec<u32> {
        let mut out = Vec::new();
        while sequence != 0 {
            let (letter, behind) = self.parts[sequence as usize];
            out.push(letter);
            sequence = behind;
        }
        out
    }

    pub(super) fn letters(&self) -> &[LexerLetter] {
        &self.letters
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }
}
