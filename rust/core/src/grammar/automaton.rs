//! What a macro means: a finite automaton over bytes and calls.
//!
//! The core reads macros and does not know their meaning; whoever does hands over automata
//! ([`Meaning`]), which take the macro's place in the arena ([`super::Grammar::with_meanings`]).
//! So rules keep their names and numbers, and everything its place in the text.

use super::{Expr, Grammar, GrammarBuilder, Macro};
use crate::error::Position;
use crate::ids::{ExprId, RuleId};
use rustc_hash::FxHashSet;
use std::borrow::Cow;
use std::collections::HashMap;

/// A finite automaton as an expression.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ByteAutomaton {
    /// The state to begin in.
    pub start: u32,
    /// For each state whether it may stop there.
    pub finals: Box<[bool]>,
    /// Edges that read a byte: from, the first and the last byte, to.
    pub bytes: Box<[(u32, u8, u8, u32)]>,
    /// Edges that read a string of an expression: from, the expression, to; by expression.
    pub parts: Box<[(u32, ExprId, u32)]>,
    /// For each state whether it falls back: whether it reads a byte of which it has no edge as
    /// the state `fallback` does. Empty where none does.
    pub falls_back: Box<[bool]>,
    /// The state on which others fall back; it does not itself. Where it is not the start, the start
    /// does not fall back either, and an edge of it leads there.
    pub fallback: u32,
    /// Guards on the calls of some rules, by rule; see [`Guard`]. An automaton with guards is the whole
    /// body of a rule, and all its edges are calls of rules.
    pub guards: Box<[(RuleId, Guard)]>,
    /// How many parts its texts have, at least and at most, where they are counted. Such an automaton is
    /// the whole body of a rule, and all its edges are calls of rules that have no empty text. No edge
    /// leads to its start, which is no end; from each state an end can be reached; and there is a text
    /// of such a number of parts.
    pub counts: Option<(u32, Option<u32>)>,
    /// Whether `counts` is of tokens that begin within the texts, and not of parts. Behind so many of them a
    /// text goes on to the nearest end only. Each part is a byte.
    pub counts_tokens: bool,
    /// Whether its states are those of an automaton that counted tokens, beside copies of them in which the budget
    /// is spent. A text may come to such a copy whatever else is read of it.
    pub has_copies: bool,
}

/// What a call asks of the members that were read, and what it adds to them.
///
/// An automaton with guards keeps the set of its members that were read, which is empty at its start. So
/// members may come in any order, each at most once, without a state for each set (an *all group* of
/// XML Schema; the `&` of SGML).
///
/// Whoever makes such an automaton guarantees that what it has read can be completed: after each call
/// that adds a member there is a way to an end, whatever the set is then. Only along calls without a
/// guard is that looked at: a call that leads to where nothing can follow is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Guard {
    /// The call is there where this member was not read; from then on it was.
    Adds(u32),
    /// The call is there where all of these members were read.
    Needs(Box<[u32]>),
    /// The call reads the items of a JSON array up to its closing bracket, no two of which are equal.
    Unique(UniqueItems),
}

/// What is known of the values of the items of an array whose items are unique.
///
/// The author of the automaton guarantees: if the current item, or the next one, can be completed to a
/// value that the array does not have yet, the whole array can be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UniqueItems {
    /// Whether every prefix of a string item is a prefix of infinitely many string items.
    pub endless_strings: bool,
    /// Whether every prefix of a number item that has a nonzero digit is a prefix of items with infinitely
    /// many values. Prefixes of zero (`0`, `0.0e`) may have that value alone.
    pub endless_numbers: bool,
    /// Whether every prefix of a number item that has a nonzero digit, no point and no exponent is a prefix of items
    /// with infinitely many values. Multiples of seven have such prefixes, but behind a point only zeros may follow.
    pub endless_integers: bool,
    /// A lower bound on the number of values that items can have.
    pub least: u32,
    /// A lower bound on the number of strings among them; `u32::MAX` if no item is a string.
    pub strings: u32,
    /// Whether an item may be an array or an object.
    pub nested: bool,
    /// Whether each number in an item may end behind each digit of it.
    pub whole_numbers: bool,
    /// The bytes by which the shortest end of any array is longer than one that may repeat items, at most, whatever
    /// it has read, where such a number is known: for each item that the array must have, and for one at least, the
    /// bytes of an item. Either no item has more bytes. Or behind each prefix of a string item, and of a number
    /// item that has a nonzero digit, follow two printable ASCII letters, for numbers two nonzero digits, and an
    /// end within [`Self::MOST_TO_END`] letters: then they are [`Self::SOON`].
    pub ends_within: Option<u32>,
}

impl UniqueItems {
    /// Any number of strings and numbers.
    pub const ENDLESS: Self = Self {
        endless_strings: true,
        endless_numbers: true,
        endless_integers: true,
        least: u32::MAX,
        strings: u32::MAX,
        nested: false,
        whole_numbers: true,
        ends_within: Some(0),
    };

    /// The letters that end an item, at most, of those that end soon.
    pub(crate) const MOST_TO_END: u32 = 3;

    /// Bytes that make such an item another than the million before it and end it, at most: the letters to a
    /// place where two may follow, 25 of these, and the letters to an end. The first and the last are few,
    /// and each may be two escape sequences. Quotes and the rest of a letter that has begun are among the
    /// other 16.
    pub(crate) const SOON: u32 = 25 + 16 + 2 * 12 * Self::MOST_TO_END;

    /// What holds for both of two.
    pub(crate) fn both(self, other: Self) -> Self {
        Self {
            endless_strings: self.endless_strings && other.endless_strings,
            endless_numbers: self.endless_numbers && other.endless_numbers,
            endless_integers: self.endless_integers && other.endless_integers,
            least: self.least.min(other.least),
            strings: self.strings.min(other.strings),
            nested: self.nested || other.nested,
            whole_numbers: self.whole_numbers && other.whole_numbers,
            ends_within: self.ends_within.zip(other.ends_within).map(|(a, b)| a.max(b)),
        }
    }

    /// Whether there may be no more than so many, or no more strings.
    pub(crate) fn few(self, count: u32) -> bool {
        self.least.min(self.strings) <= count
    }

    /// It as numbers, for fingerprints.
    pub(crate) fn key(self) -> [u32; 4] {
        let numbers = [self.endless_numbers, self.endless_integers, self.whole_numbers];
        let flags = [self.endless_strings, self.nested].into_iter().chain(numbers);
        let flags = flags.fold(0, |all, flag| all << 1 | u32::from(flag));
        [flags, self.least, self.strings, self.ends_within.unwrap_or(u32::MAX)]
    }
}

impl ByteAutomaton {
    /// The edges that read a byte, with those of states that fall back: what these have of the
    /// ranges of the state on which they do stands behind all others.
    pub fn bytes_in_full(&self) -> Cow<'_, [(u32, u8, u8, u32)]> {
        if self.falls_back.is_empty() {
            return Cow::Borrowed(&self.bytes);
        }
        let of_fallback: Vec<_> =
            self.bytes.iter().filter(|edge| edge.0 == self.fallback).collect();
        let mut listed = vec![Vec::new(); self.finals.len()];
        for &(from, first, last, _) in &self.bytes {
            listed[from as usize].push((first, last));
        }
        let mut out = self.bytes.to_vec();
        for ((state, listed), &falls_back) in (0..).zip(&mut listed).zip(&self.falls_back) {
            if !falls_back {
                continue;
            }
            listed.sort_unstable();
            for &&(_, first, last, to) in &of_fallback {
                let mut from = Some(first);
                for &(a, b) in listed.iter().filter(|(a, b)| *a <= last && first <= *b) {
                    out.extend(from.filter(|&from| from < a).map(|from| (state, from, a - 1, to)));
                    from = from.zip(b.checked_add(1)).map(|(from, next)| from.max(next));
                }
                out.extend(from.filter(|&from| from <= last).map(|from| (state, from, last, to)));
            }
        }
        Cow::Owned(out)
    }

    /// States and edges.
    pub fn size(&self) -> usize {
        self.finals.len() + self.bytes.len() + self.parts.len()
    }

    /// The states where it may stop.
    pub fn ends(&self) -> Vec<u32> {
        (0..).zip(&self.finals).filter(|(_, is_final)| **is_final).map(|(q, _)| q).collect()
    }
}

/// What an edge of a [`Described`] automaton calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callee {
    /// A rule of the grammar, by its number.
    Rule(usize),
    /// An automaton of the same meaning, which must stand before this one.
    Automaton(usize),
}

/// An edge of a [`Described`] automaton that calls, so many times in a row.
#[derive(Clone, Copy, Debug)]
pub struct CallEdge {
    /// The state it leads from.
    pub from: u32,
    /// What is called.
    pub callee: Callee,
    /// The least number of times.
    pub min: u32,
    /// The greatest number of times.
    pub max: Option<u32>,
    /// The state it leads to.
    pub to: u32,
}

/// An automaton from outside.
#[derive(Clone, Debug, Default)]
pub struct Described {
    /// The number of states.
    pub states: u32,
    /// The state to begin in.
    pub start: u32,
    /// States where it may stop.
    pub finals: Vec<u32>,
    /// Edges that read a byte: from, the first and the last byte, to.
    pub bytes: Vec<(u32, u8, u8, u32)>,
    /// Edges that call.
    pub calls: Vec<CallEdge>,
}

impl Described {
    /// Whether every number names something; `automata` and `rules` are there to be called.
    fn is_sound(&self, automata: usize, rules: usize) -> bool {
        let is_state = |state: u32| state < self.states;
        is_state(self.start)
            && self.finals.iter().all(|&q| is_state(q))
            && self.bytes.iter().all(|&(p, a, b, q)| is_state(p) && is_state(q) && a <= b)
            && self.calls.iter().all(|edge| {
                is_state(edge.from)
                    && is_state(edge.to)
                    && edge.max.is_none_or(|max| edge.min <= max)
                    && match edge.callee {
                        Callee::Rule(rule) => rule < rules,
                        Callee::Automaton(other) => other < automata,
                    }
            })
    }
}

/// An automaton without calls, as an expression has it. Edges that call are left out: what they call
/// has no place in the arena yet.
impl From<Described> for ByteAutomaton {
    fn from(described: Described) -> Self {
        let mut finals = vec![false; described.states as usize];
        described.finals.iter().for_each(|&state| finals[state as usize] = true);
        Self {
            start: described.start,
            finals: finals.into(),
            bytes: described.bytes.into(),
            parts: Box::default(),
            falls_back: Box::default(),
            guards: Box::default(),
            counts: None,
            counts_tokens: false,
            has_copies: false,
            fallback: described.start,
        }
    }
}

/// The automata of one macro; the last is the macro's own.
pub type Meaning = Vec<Described>;

impl Grammar {
    /// The same grammar with automata in place of macros. What has no meaning stays a macro.
    ///
    /// # Errors
    /// `None` where a number in a meaning names nothing, or an expression is no macro.
    pub fn with_meanings(&self, meanings: &HashMap<ExprId, Meaning>) -> Option<Grammar> {
        let is_macro = |id: &ExprId| matches!(self.exprs.get(id.index()), Some(Expr::Macro(_)));
        if !meanings.keys().all(is_macro) {
            return None;
        }
        let replaced = self.with_replaced(|builder, id, _| match meanings.get(&id) {
            None => Ok(None),
            Some(meaning) => {
                self.add_meaning(builder, meaning, self.position(id)).ok_or(()).map(Some)
            }
        });
        replaced.ok()
    }

    /// The same grammar with other expressions in place of macros: those that `replace` adds.
    pub(crate) fn with_replaced<E>(
        &self,
        mut replace: impl FnMut(&mut GrammarBuilder, ExprId, &Macro) -> Result<Option<ExprId>, E>,
    ) -> Result<Grammar, E> {
        let mut builder = GrammarBuilder::new();
        let mut renamed: Vec<ExprId> = Vec::with_capacity(self.exprs.len());
        for (index, expr) in self.exprs.iter().enumerate() {
            let new = |id: &ExprId| renamed[id.index()];
            let copy = match expr {
                Expr::Macro(call) => {
                    if let Some(id) = replace(&mut builder, ExprId::new(index), call)? {
                        renamed.push(id);
                        continue;
                    }
                    expr.clone()
                }
                Expr::Sequence(parts) => Expr::Sequence(parts.iter().map(new).collect()),
                Expr::Choice(parts) => Expr::Choice(parts.iter().map(new).collect()),
                &Expr::Repeat { ref body, min, max } => Expr::Repeat { body: new(body), min, max },
                Expr::Automaton(automaton) => {
                    let parts = automaton.parts.iter().map(|&(p, part, q)| (p, new(&part), q));
                    let parts = parts.collect();
                    Expr::Automaton(ByteAutomaton { parts, ..automaton.clone() })
                }
                other => other.clone(),
            };
            renamed.push(builder.add(copy, self.positions[index]));
        }
        let mut rules = self.rules.clone();
        for rule in rules.iter_mut() {
            rule.body = renamed[rule.body.index()];
            rule.lookahead = rule.lookahead.map(|id| renamed[id.index()]);
        }
        Ok(builder.finish(rules.into_list(), self.root))
    }

    fn add_meaning(
        &self,
        builder: &mut GrammarBuilder,
        meaning: &Meaning,
        position: Position,
    ) -> Option<ExprId> {
        let mut added: Vec<ExprId> = Vec::with_capacity(meaning.len());
        for described in meaning {
            added.push(self.add_described(builder, described.clone(), &[], &added, position)?);
        }
        added.pop()
    }

    /// Adds an automaton; `added` are those that it may call, `fallbacks` the states that fall back.
    pub(super) fn add_described(
        &self,
        builder: &mut GrammarBuilder,
        described: Described,
        fallbacks: &[u32],
        added: &[ExprId],
        position: Position,
    ) -> Option<ExprId> {
        if !described.is_sound(added.len(), self.rules.len()) {
            return None;
        }
        // Calls of the same share one expression, here and in what calls this automaton.
        let mut callees: HashMap<(Callee, u32, Option<u32>), ExprId> = HashMap::new();
        let mut parts = Vec::with_capacity(described.calls.len());
        for edge in &described.calls {
            let key = (edge.callee, edge.min, edge.max);
            let part = *callees.entry(key).or_insert_with(|| {
                let body = match edge.callee {
                    Callee::Rule(rule) => builder.add(Expr::Rule(RuleId::new(rule)), position),
                    Callee::Automaton(other) => added[other],
                };
                match (edge.min, edge.max) {
                    (1, Some(1)) => body,
                    (min, max) => builder.add(Expr::Repeat { body, min, max }, position),
                }
            });
            parts.push((edge.from, part, edge.to));
        }
        parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        let mut finals = vec![false; described.states as usize];
        described.finals.iter().for_each(|&q| finals[q as usize] = true);
        let mut falls_back = vec![false; if fallbacks.is_empty() { 0 } else { finals.len() }];
        for &state in fallbacks {
            if state == described.start || !*finals.get(state as usize)? {
                return None;
            }
            falls_back[state as usize] = true;
        }
        let automaton = ByteAutomaton {
            start: described.start,
            finals: finals.into(),
            bytes: described.bytes.into(),
            parts: parts.into(),
            falls_back: falls_back.into(),
            guards: Box::default(),
            counts: None,
            counts_tokens: false,
            has_copies: false,
            fallback: described.start,
        };
        Some(builder.add(Expr::Automaton(automaton), position))
    }

    /// The rules whose calls have guards in some automaton.
    pub(crate) fn called_with_guards(&self) -> FxHashSet<usize> {
        self.guards().map(|(rule, _)| rule.index()).collect()
    }

    /// Whether some automaton has guards.
    pub fn has_guards(&self) -> bool {
        self.guards().next().is_some()
    }

    /// Whether some automaton has guards, unique items left aside.
    pub(crate) fn has_member_guards(&self) -> bool {
        self.guards().any(|(_, guard)| !matches!(guard, Guard::Unique(_)))
    }

    /// Whether the tokens that begin within the texts of some automaton are counted.
    pub fn counts_tokens(&self) -> bool {
        let counts = |expr: &Expr| matches!(expr, Expr::Automaton(one) if one.counts_tokens);
        self.exprs.iter().any(counts)
    }

    /// Whether the items of some arrays are unique.
    pub fn has_unique_items(&self) -> bool {
        self.guards().any(|(_, guard)| matches!(guard, Guard::Unique(_)))
    }

    /// The guards of all automata.
    pub(super) fn guards(&self) -> impl Iterator<Item = &(RuleId, Guard)> {
        let guards = self.exprs.iter().filter_map(|expr| match expr {
            Expr::Automaton(automaton) => Some(automaton.guards.iter()),
            _ => None,
        });
        guards.flatten()
    }

    /// The macros that derivations from the root can reach, in the order of the text. What a
    /// macro names counts as reached.
    pub fn macros(&self) -> Vec<ExprId> {
        if !self.exprs.iter().any(|expr| matches!(expr, Expr::Macro(_))) {
            return Vec::new();
        }
        let mut seen = vec![false; self.rules.len()];
        let mut rules = vec![self.root];
        seen[self.root.index()] = true;
        let mut exprs = Vec::new();
        let mut found = Vec::new();
        while let Some(rule) = rules.pop() {
            exprs.push(self.rule(rule).body);
            while let Some(id) = exprs.pop() {
                let mut reach = |rule: RuleId| {
                    if !std::mem::replace(&mut seen[rule.index()], true) {
                        rules.push(rule);
                    }
                };
                match self.expr(id) {
                    Expr::Sequence(parts) | Expr::Choice(parts) => exprs.extend(parts),
                    Expr::Repeat { body, .. } => exprs.push(*body),
                    Expr::Automaton(automaton) => {
                        exprs.extend(automaton.parts.iter().map(|&(_, part, _)| part));
                    }
                    Expr::Rule(rule) => reach(*rule),
                    Expr::Macro(call) => {
                        call.rules().for_each(&mut reach);
                        found.push(id);
                    }
                    Expr::Empty | Expr::Literal(_) | Expr::Class(_) | Expr::Tokens(_) => {}
                }
            }
        }
        found.sort_unstable_by_key(|&id| self.position(id));
        found
    }
}

#[cfg(test)]
impl Grammar {
    /// The same grammar, in whose automata no state falls back.
    pub(crate) fn in_full(&self) -> Grammar {
        let mut out = self.clone();
        for expr in out.exprs.iter_mut() {
            if let Expr::Automaton(automaton) = expr {
                automaton.bytes = automaton.bytes_in_full().into();
                automaton.falls_back = Box::default();
            }
        }
        out
    }
}
