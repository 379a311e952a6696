//! The LALR(1) table of a grammar, and what a terminal does to a stack of which the top is known.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use tokfold_core::error::{Error, Result};

/// Reductions before one terminal; more are taken to be without end.
const MAX_REDUCTIONS: usize = 100_000;

/// The name of the limit that a table without end reaches.
pub const TABLE_LOOP: &str = "table_reductions";

/// What a state does before a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Shift(u32),
    /// The symbols that come off the stack, and the rule that takes their place.
    Reduce {
        length: u32,
        rule: u32,
    },
}

/// What became of reading a terminal, as far as the known part of the stack tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The table refuses it.
    Refused,
    /// It was read: the known part of the stack, its top last.
    Read(Vec<u32>),
    /// A reduction takes off more than is known: how many further states before the one that it
    /// goes on from, and the rule that it goes on with there.
    Below {
        /// States to take off before.
        skipped: u32,
        /// The rule.
        rule: u32,
    },
}

/// A production: its rule, and its symbols, rules above the terminals.
#[derive(Clone, Debug)]
pub struct Production {
    /// The rule.
    pub rule: u32,
    /// Symbols: whether it is a rule, and its number.
    pub symbols: Vec<(bool, u32)>,
}

/// The table in the numbers of a caller; see [`ParseTable::new`].
#[derive(Clone, Debug, Default)]
pub struct TableParts {
    /// For each state: terminal and state to shift to.
    pub shifts: Vec<Vec<(u32, u32)>>,
    /// For each state: terminal and production to reduce.
    pub reductions: Vec<Vec<(u32, u32)>>,
    /// For each state: rule and state to go on with.
    pub gotos: Vec<Vec<(u32, u32)>>,
    /// The productions.
    pub productions: Vec<Production>,
    /// The number of terminals, the end of the text included, which is the last one.
    pub terminals: u32,
    /// The number of rules.
    pub rules: u32,
    /// The state at the bottom of each stack.
    pub start: u32,
    /// The state in which the text is complete.
    pub end_state: u32,
}

/// Lark's table.
#[derive(Clone, Debug)]
pub struct ParseTable {
    pub(super) parts: TableParts,
    actions: HashMap<(u32, u32), Action, FxBuildHasher>,
    gotos: HashMap<(u32, u32), u32, FxBuildHasher>,
}

impl ParseTable {
    /// A table of its parts.
    ///
    /// # Errors
    /// [`Error::State`] where a number is outside of what it counts.
    pub fn new(parts: TableParts) -> Result<Self> {
        let broken = |what: &str| Error::State(format!("the table of the parser: {what}"));
        let size = parts.shifts.len();
        let is_state = |state: u32| (state as usize) < size;
        if parts.reductions.len() != size || parts.gotos.len() != size {
            return Err(broken("its parts have different lengths"));
        }
        if !is_state(parts.start) || !is_state(parts.end_state) || parts.terminals == 0 {
            return Err(broken("it has no start, no end or no terminals"));
        }
        for production in &parts.productions {
            let known = production.symbols.iter().all(|&(is_rule, symbol)| {
                symbol < if is_rule { parts.rules } else { parts.terminals }
            });
            if production.rule >= parts.rules || !known {
                return Err(broken("a production has an unknown symbol"));
            }
        }
        let mut actions = HashMap::default();
        let mut gotos = HashMap::default();
        for state in 0..size {
            let at = state as u32;
            for &(terminal, production) in &parts.reductions[state] {
                let Some(made) = parts.productions.get(production as usize) else {
                    return Err(broken("a reduction names no production"));
                };
                let action = Action::Reduce { length: made.symbols.len() as u32, rule: made.rule };
                actions.insert((at, terminal), action);
            }
            for &(terminal, to) in &parts.shifts[state] {
                actions.insert((at, terminal), Action::Shift(to));
            }
            for &(rule, to) in &parts.gotos[state] {
                gotos.insert((at, rule), to);
            }
            let shifts_fit = parts.shifts[state].iter().all(|&(_, to)| is_state(to));
            if !shifts_fit || parts.gotos[state].iter().any(|&(_, to)| !is_state(to)) {
                return Err(broken("it leads out of itself"));
            }
        }
        Ok(Self { parts, actions, gotos })
    }

    /// The number of states.
    pub fn size(&self) -> usize {
        self.parts.shifts.len()
    }

    /// The state at the bottom of each stack.
    pub fn start(&self) -> u32 {
        self.parts.start
    }

    /// The terminal that stands for the end of the text.
    pub fn end(&self) -> u32 {
        self.parts.terminals - 1
    }

    pub(super) fn goto(&self, state: u32, rule: u32) -> Option<u32> {
        self.gotos.get(&(state, rule)).copied()
    }

    /// Reads a terminal with some states on top of a stack, the last one on top.
    ///
    /// # Errors
    /// [`Error::Limit`] of [`TABLE_LOOP`] where the table reduces without end.
    pub fn read(&self, mut known: Vec<u32>, terminal: u32) -> Result<Outcome> {
        for _ in 0..MAX_REDUCTIONS {
            let Some(&top) = known.last() else { return Ok(Outcome::Refused) };
            match self.actions.get(&(top, terminal)) {
                None => return Ok(Outcome::Refused),
                Some(&Action::Shift(to)) => {
                    known.push(to);
                    return Ok(Outcome::Read(known));
                }
                Some(&Action::Reduce { length, rule }) => {
                    let length = length as usize;
                    if length >= known.len() {
                        let skipped = (length - known.len()) as u32;
                        return Ok(Outcome::Below { skipped, rule });
                    }
                    known.truncate(known.len() - length);
                    let bare = known[known.len() - 1];
                    let Some(to) = self.goto(bare, rule) else { return Ok(Outcome::Refused) };
                    known.push(to);
                    if to == self.parts.end_state && terminal == self.end() {
                        return Ok(Outcome::Read(known));
                    }
                }
            }
        }
        Err(Error::Limit {
            limit: TABLE_LOOP,
            value: MAX_REDUCTIONS as u64,
            message: "the table reduces more often before one terminal: look for a rule that can \
                      stand for itself alone, and take it out"
                .into(),
        })
    }

    /// As [`ParseTable::read`], where a reduction to `rule` has just laid bare `state`.
    ///
    /// # Errors
    /// As [`ParseTable::read`].
    pub fn go_on(&self, state: u32, rule: u32, terminal: u32) -> Result<Outcome> {
        match self.goto(state, rule) {
            None => Ok(Outcome::Refused),
            Some(to) if to == self.parts.end_state && terminal == self.end() => {
                Ok(Outcome::Read(vec![state, to]))
            }
            Some(to) => self.read(vec![state, to], terminal),
        }
    }

    /// Reads a terminal on a whole stack, its top first.
    ///
    /// Returns how many states come off, and those that come on in their place; `None` where the
    /// table refuses it.
    ///
    /// # Errors
    /// As [`ParseTable::read`].
    pub fn shift(
        &self,
        stack: impl IntoIterator<Item = u32>,
        terminal: u32,
    ) -> Result<Option<(usize, Vec<u32>)>> {
        let mut stack = stack.into_iter();
        let Some(top) = stack.next() else { return Ok(None) };
        let mut taken = 1;
        let mut outcome = self.read(vec![top], terminal)?;
        loop {
            match outcome {
                Outcome::Refused => return Ok(None),
                Outcome::Read(states) => return Ok(Some((taken, states))),
                Outcome::Below { skipped, rule } => {
                    let Some(bare) = stack.nth(skipped as usize) else { return Ok(None) };
                    taken += skipped as usize + 1;
                    outcome = self.go_on(bare, rule, terminal)?;
                }
            }
        }
    }
}
