//! Terminals as automata over bytes, and the scanners that look for them.

use super::letters::{LexerLetter, NewlineColumn};
use super::sets::{ALL, EMPTY, ScannerSetId, ScannerSets};
use tokfold_core::error::{Error, Result};

/// No state: no match lies ahead.
pub(super) const DEAD: u32 = u32::MAX;

/// What must follow an end: whether a match of the look automaton may not lie ahead, and where in
/// that automaton the question begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndCondition {
    /// No match may lie ahead; otherwise one must.
    pub negated: bool,
    /// A state.
    pub state: u32,
}

/// Whether a match ends in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum MatchEnd {
    No,
    Yes,
    If(EndCondition),
}

/// A string that a regular expression matches too: Lark gives the name of the string to what the
/// expression has matched, in the scanners that have both.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    /// The terminal that matches.
    pub pattern: u32,
    /// The string.
    pub string: u32,
    /// The string is not looked for on its own where the expression is.
    pub is_hidden: bool,
}

/// The newline terminal of an indenting post-lexer.
#[derive(Clone, Copy, Debug)]
pub struct Newline {
    /// The terminal.
    pub terminal: u32,
    /// Columns of a tab.
    pub tab: u32,
}

/// The automata of all terminals, and of their lookaheads behind them, in one table of states.
#[derive(Clone, Debug)]
pub struct TerminalAutomata {
    moves: Vec<u32>,
    pub(super) ends: Vec<MatchEnd>,
    /// No move leads on.
    pub(super) stuck: Vec<bool>,
    /// The first state of each terminal.
    pub(super) starts: Vec<u32>,
    /// The terminal of each state; past the last one for lookaheads.
    pub(super) owner: Vec<u32>,
    pub(super) ignored: Vec<bool>,
    pub(super) newline: Option<Newline>,
}

impl TerminalAutomata {
    /// Terminals in the order in which a scanner tries them.
    ///
    /// `moves` are rows of 256 states, -1 for none; the states of terminal `i` are
    /// `offsets[i]..offsets[i + 1]`, the first is its start, and those behind the last offset are
    /// lookaheads. `ends` is 0, 1, or `2 + i` for an end under `conditions[i]`.
    ///
    /// # Errors
    /// [`Error::State`] where the parts do not fit together.
    pub fn new(
        moves: &[i32],
        ends: &[u32],
        conditions: &[EndCondition],
        offsets: &[u32],
        ignored: Vec<bool>,
        newline: Option<Newline>,
    ) -> Result<Self> {
        let count = ends.len();
        let broken = |what: &str| Error::State(format!("automata of terminals: {what}"));
        let terminals = ignored.len();
        if moves.len() != count * 256 || offsets.len() != terminals + 1 {
            return Err(broken("the tables have different lengths"));
        }
        if offsets.windows(2).any(|w| w[0] >= w[1])
            || offsets.last().is_some_and(|&o| o as usize > count)
        {
            return Err(broken("the offsets are not in order"));
        }
        if conditions.iter().any(|c| c.state as usize >= count)
            || newline.is_some_and(|n| n.terminal as usize >= terminals)
        {
            return Err(broken("a condition or the newline is none of them"));
        }
        let mut table = Vec::with_capacity(moves.len());
        for &to in moves {
            table.push(match to {
                -1 => DEAD,
                to if to >= 0 && (to as usize) < count => to as u32,
                _ => return Err(broken("a move leads out of the table")),
            });
        }
        let mut made = Vec::with_capacity(count);
        for &end in ends {
            made.push(match end {
                0 => MatchEnd::No,
                1 => MatchEnd::Yes,
                i => match conditions.get(i as usize - 2) {
                    Some(&condition) => MatchEnd::If(condition),
                    None => return Err(broken("an end has no such condition")),
                },
            });
        }
        let stuck = table.chunks(256).map(|row| row.iter().all(|&to| to == DEAD)).collect();
        let mut owner = vec![terminals as u32; count];
        for (terminal, range) in offsets.windows(2).enumerate() {
            owner[range[0] as usize..range[1] as usize].fill(terminal as u32);
        }
        let starts = offsets[..terminals].to_vec();
        Ok(Self { moves: table, ends: made, stuck, starts, owner, ignored, newline })
    }

    #[inline]
    pub(super) fn step(&self, state: u32, byte: u8) -> u32 {
        self.moves[state as usize * 256 + usize::from(byte)]
    }

    /// The number of terminals.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

/// The scanners of a lexer: which terminals each looks for.
#[derive(Clone, Debug)]
pub struct Scanners {
    pub(super) sets: ScannerSets,
    /// For each terminal the scanners that look for it.
    pub(super) looking: Vec<ScannerSetId>,
    /// For each terminal the scanners in which it can be what is found.
    pub(super) having: Vec<ScannerSetId>,
    /// For each terminal the scanners that the parser can be in once it has been read.
    pub(super) after: Vec<ScannerSetId>,
    /// For each terminal the strings that its matches may be called, and in which scanners.
    pub(super) renamed: Vec<Vec<(u32, ScannerSetId)>>,
}

impl Scanners {
    /// Scanners over so many terminals; `after` are those that the parser can be in once it has
    /// read each terminal.
    ///
    /// # Errors
    /// [`Error::State`] when a scanner or an embedded string names no terminal.
    pub fn new(
        terminals: usize,
        members: &[Vec<u32>],
        after: &[Vec<u32>],
        embedded: &[Embedded],
    ) -> Result<Self> {
        let outside =
            members.iter().flatten().chain(embedded.iter().flat_map(|e| [&e.pattern, &e.string]));
        if members.is_empty() || outside.into_iter().any(|&t| t as usize >= terminals) {
            return Err(Error::State("scanners: there is none, or no such terminal".into()));
        }
        let strange = after.iter().flatten().any(|&j| j as usize >= members.len());
        if after.len() != terminals || strange {
            return Err(Error::State("scanners: what comes after each terminal".into()));
        }
        let mut sets = ScannerSets::new(members.len());
        let after = after.iter().map(|js| sets.of(js.iter().map(|&j| j as usize))).collect();
        let mut having = Vec::with_capacity(terminals);
        for terminal in 0..terminals as u32 {
            let with = (0..members.len()).filter(|&j| members[j].contains(&terminal));
            having.push(sets.of(with));
        }
        let mut looking = having.clone();
        let mut renamed = vec![Vec::new(); terminals];
        for e in embedded {
            let both = sets.and(having[e.pattern as usize], having[e.string as usize]);
            if both == EMPTY {
                continue;
            }
            renamed[e.pattern as usize].push((e.string, both));
            if e.is_hidden {
                let seen = looking[e.string as usize];
                looking[e.string as usize] = sets.minus(seen, both);
            }
        }
        Ok(Self { sets, looking, having, after, renamed })
    }

    /// The letter of a terminal; none for an ignored one that every scanner finds.
    pub(super) fn letter(
        &self,
        terminal: u32,
        scanners: ScannerSetId,
        ignored: bool,
        column: NewlineColumn,
    ) -> Option<LexerLetter> {
        let all = self.having[terminal as usize];
        if ignored && scanners == all {
            return None;
        }
        Some(LexerLetter {
            terminal,
            scanners: if scanners == all { ALL } else { scanners },
            column,
        })
    }

    /// The sets of scanners that have been met, as words of 64 scanners; the first is empty, the
    /// second holds all.
    pub fn sets(&self) -> &[Box<[u64]>] {
        self.sets.all()
    }
}
