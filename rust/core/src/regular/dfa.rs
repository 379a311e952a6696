//! Deterministic automata over code points.

use super::alphabet::{ClassRanges, ScalarAlphabet};
use super::table::{DEAD, DfaTable};
use super::{Bounds, CharSet};
use crate::error::Result;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

/// A regular language of texts, as its minimal automaton.
///
/// The automaton is trimmed: a text is in the language if its code points lead from state 0 to a
/// final state, and from each state but that of the empty language some text leads to a final
/// state. States are numbered in breadth-first order. Equal languages are equal values. A copy
/// shares everything.
#[derive(Clone)]
pub struct Dfa(Arc<DfaInner>);

struct DfaInner {
    alphabet: ScalarAlphabet,
    ascii: [u32; 128],
    rows: DfaRows,
    hash: u64,
    ranges: OnceLock<ClassRanges>,
}

/// The states of an automaton in its canonical form.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct DfaRows {
    /// For each state whether it is final.
    pub(super) finals: Box<[bool]>,
    /// For each state where the rest leads, or [`DEAD`].
    pub(super) defaults: Box<[u32]>,
    /// Where the edges of each state begin; behind them where the last end.
    pub(super) starts: Box<[u32]>,
    /// Classes that lead elsewhere than the rest, in order, and where, or [`DEAD`].
    pub(super) edges: Box<[(u32, u32)]>,
}

impl Dfa {
    /// The automaton of a table in canonical form.
    pub(super) fn from_canonical(alphabet: ScalarAlphabet, rows: DfaRows) -> Self {
        let hash = crate::hash::hash_of(&(&alphabet, &rows));
        let ascii = alphabet.ascii();
        Self(Arc::new(DfaInner { alphabet, ascii, rows, hash, ranges: OnceLock::new() }))
    }

    /// No text.
    pub fn nothing() -> Self {
        Self::one_state(false, DEAD)
    }

    /// The empty text.
    pub fn empty_string() -> Self {
        Self::one_state(true, DEAD)
    }

    /// All texts.
    pub fn anything() -> Self {
        Self::one_state(true, 0)
    }

    fn one_state(is_final: bool, default: u32) -> Self {
        let rows = DfaRows {
            finals: [is_final].into(),
            defaults: [default].into(),
            starts: [0, 0].into(),
            edges: Box::default(),
        };
        Self::from_canonical(ScalarAlphabet::trivial(), rows)
    }

    /// One character of the set. Surrogates in the set count for nothing.
    pub fn character(set: &CharSet) -> Self {
        let free = |_| Ok::<(), std::convert::Infallible>(());
        let Ok((alphabet, classes)) = ScalarAlphabet::of_sets(std::iter::once(set), free);
        let is_all_or_none = alphabet.len() == 1;
        let holds_rest = classes[0].first() == Some(&super::alphabet::REST);
        if is_all_or_none && !holds_rest {
            return Self::nothing();
        }
        let (named, others) = if holds_rest { (DEAD, 1) } else { (1, DEAD) };
        let mut table = DfaTable::new(alphabet);
        table.push_row(false, others, (!is_all_or_none).then_some((1, named)));
        table.push_row(true, DEAD, []);
        table.canonical()
    }

    /// The deterministic automaton with these states: a row has the state's edges, each by the
    /// number of a symbol. State 0 is the start.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    ///
    /// # Panics
    /// If symbols overlap, a row names a symbol twice, a number names nothing, or there is no
    /// state.
    pub fn from_table(
        symbols: &[CharSet],
        rows: &[Vec<(u32, u32)>],
        finals: &[bool],
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        DfaTable::from_symbols(symbols, rows, finals, bounds)?.minimal(bounds)
    }

    /// All texts that are not in the language.
    #[must_use]
    pub fn complement(&self) -> Self {
        if self.is_empty() {
            return Self::anything();
        }
        let everything = (0..self.len()).find(|&q| self.accepts_all_from(q));
        if everything == Some(0) {
            return Self::nothing();
        }
        let nothing = self.len();
        let target = |to: u32| match to {
            DEAD => nothing,
            to if Some(to) == everything => DEAD,
            to => to,
        };
        let mut table = DfaTable::new(self.0.alphabet.clone());
        for q in 0..self.len() {
            let edges = self.row(q).iter().map(|&(class, to)| (class, target(to)));
            table.push_row(!self.is_final(q), target(self.default(q)), edges);
        }
        table.push_row(true, nothing, []);
        table.canonical()
    }

    /// Whether no text is in the language.
    pub fn is_empty(&self) -> bool {
        self.len() == 1 && !self.is_final(0)
    }

    /// Whether every text is in the language.
    pub fn is_universal(&self) -> bool {
        self.accepts_all_from(0)
    }

    pub(super) fn accepts_all_from(&self, state: u32) -> bool {
        self.is_final(state) && self.default(state) == state && self.row(state).is_empty()
    }

    /// Whether a text is in the language.
    pub fn accepts(&self, text: &str) -> bool {
        let mut state = 0;
        for c in text.chars() {
            match self.step(state, c) {
                Some(next) => state = next,
                None => return false,
            }
        }
        self.is_final(state)
    }

    /// Where a character leads; `None` where no text goes on with it.
    #[inline]
    pub fn step(&self, state: u32, character: char) -> Option<u32> {
        let class = match self.0.ascii.get(character as usize) {
            Some(&class) => class,
            None => self.0.alphabet.class_of(character as u32),
        };
        let row = self.row(state);
        let to = match row.binary_search_by_key(&class, |edge| edge.0) {
            Ok(place) => row[place].1,
            Err(_) => self.default(state),
        };
        (to != DEAD).then_some(to)
    }

    /// The number of states, at least one.
    pub fn num_states(&self) -> usize {
        self.0.rows.finals.len()
    }

    /// The number of edges: classes of characters that a state tells from the rest, and what the
    /// rest is where it leads anywhere. It is a measure of size.
    pub fn num_edges(&self) -> usize {
        let defaults = self.0.rows.defaults.iter().filter(|&&to| to != DEAD).count();
        defaults + self.0.rows.edges.len()
    }

    /// Whether the language has texts that end in this state.
    pub fn is_final(&self, state: u32) -> bool {
        self.0.rows.finals[state as usize]
    }

    /// Whether no text of the language begins with another one.
    ///
    /// # Errors
    /// What ends the work.
    pub fn is_prefix_free(&self, bounds: &Bounds<'_>) -> Result<bool> {
        for state in (0..self.len()).filter(|&state| self.is_final(state)) {
            let row = self.row(state);
            bounds.budget.spend(1 + row.len())?;
            if self.default(state) != DEAD || row.iter().any(|edge| edge.1 != DEAD) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The edges of a state: for each state that follows the characters that lead there. The sets
    /// are disjoint and hold no surrogates; the states come in order.
    pub fn edges(&self, state: u32) -> impl Iterator<Item = (CharSet, u32)> + use<> {
        let mut ranges = self.ranges(state);
        ranges.sort_unstable_by_key(|&(first, _, to)| (to, first));
        let sets: Vec<_> = ranges
            .chunk_by(|a, b| a.2 == b.2)
            .map(|run| (CharSet::new(run.iter().map(|&(a, b, _)| (a, b))), run[0].2))
            .collect();
        sets.into_iter()
    }

    /// The edges of a state as ranges of characters, in order: the first, the last, and where they
    /// lead. Ranges hold no surrogates; neighbours that lead to one state are one range.
    pub fn ranges(&self, state: u32) -> Vec<(u32, u32, u32)> {
        let of_class = self.class_ranges();
        let mut named: Vec<(u32, u32, u32)> = Vec::new();
        let default = self.default(state);
        for &(class, to) in self.row(state) {
            if to != DEAD || default != DEAD {
                named.extend(of_class.of(class).iter().map(|&(a, b)| (a, b, to)));
            }
        }
        named.sort_unstable();
        let mut out: Vec<(u32, u32, u32)> = Vec::with_capacity(named.len() + 2);
        let mut push = |first: u32, last: u32, to: u32| {
            if to == DEAD || first > last {
                return;
            }
            match out.last_mut() {
                Some((_, end, known)) if *known == to && *end + 1 == first => *end = last,
                _ => out.push((first, last, to)),
            }
        };
        if default == DEAD {
            named.into_iter().for_each(|(a, b, to)| push(a, b, to));
            return out;
        }
        let mut next = 0;
        let fill = |next: &mut u32, until: u32, push: &mut dyn FnMut(u32, u32, u32)| {
            // From `next` up to `until`, without it, and without surrogates.
            if *next < 0xD800 {
                push(*next, until.min(0xD800).wrapping_sub(1), default);
            }
            if until > 0xE000 {
                push((*next).max(0xE000), until - 1, default);
            }
            *next = until;
        };
        for (a, b, to) in named {
            if next < a {
                fill(&mut next, a, &mut push);
            }
            push(a, b, to);
            next = b + 1;
        }
        if next <= 0x10_FFFF {
            fill(&mut next, 0x11_0000, &mut push);
        }
        out
    }

    /// For each state those that a character leads to.
    pub(crate) fn targets(&self) -> Vec<Vec<u32>> {
        let of = |q: u32| {
            let named = self.row(q).iter().map(|edge| edge.1);
            let mut out: Vec<u32> = named.chain([self.default(q)]).collect();
            out.retain(|&to| to != DEAD);
            out.sort_unstable();
            out.dedup();
            out
        };
        (0..self.len()).map(of).collect()
    }

    /// The number of states as a state's number would be.
    pub(super) fn len(&self) -> u32 {
        self.0.rows.finals.len() as u32
    }

    /// Where the rest leads, or [`DEAD`].
    #[inline]
    pub(super) fn default(&self, state: u32) -> u32 {
        self.0.rows.defaults[state as usize]
    }

    /// The classes that lead elsewhere than the rest, in order, and where, or [`DEAD`].
    #[inline]
    pub(super) fn row(&self, state: u32) -> &[(u32, u32)] {
        let starts = &self.0.rows.starts;
        let (start, end) = (starts[state as usize], starts[state as usize + 1]);
        &self.0.rows.edges[start as usize..end as usize]
    }

    /// The classes of code points.
    pub(super) fn alphabet(&self) -> &ScalarAlphabet {
        &self.0.alphabet
    }

    /// The ranges of the classes.
    pub(super) fn class_ranges(&self) -> &ClassRanges {
        self.0.ranges.get_or_init(|| self.0.alphabet.ranges())
    }
}

impl PartialEq for Dfa {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.hash == other.0.hash
                && self.0.alphabet == other.0.alphabet
                && self.0.rows == other.0.rows)
    }
}

impl Eq for Dfa {}

impl Hash for Dfa {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.hash);
    }
}

impl fmt::Debug for Dfa {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_map();
        for q in 0..self.len().min(100) {
            out.entry(&(q, self.is_final(q)), &self.ranges(q));
        }
        out.finish()
    }
}
