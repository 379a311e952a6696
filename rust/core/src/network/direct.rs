//! Rules whose automaton is plain to see: a `TagDispatch` of many tags, a choice of many tags, all names
//! but some.
//!
//! The way of all other rules, an automaton with epsilon edges that is made deterministic and minimal,
//! takes ten times as long for these and finds little: an Aho-Corasick automaton is deterministic,
//! and so is the tree of the beginnings of a choice; the ends that its parts have in common are put
//! together here. Where a rule is not that plain, nothing is made, and it goes the way of all others.
//! States of an Aho-Corasick automaton that fall back on its start do so in the network, too: it has two
//! edges for each state instead of one for each byte class. So do those of names on the state in which a
//! name is another whatever comes, be they few or many: they are minimal as they come.

use super::lower::Lowering;
use super::rules::check_states;
use super::tree::PrefixTree;
use crate::automata::{Automaton, Letter, call};
use crate::budget::Ticks;
use crate::error::Result;
use crate::grammar::{ByteAutomaton, Expr, Guard};
use crate::ids::ExprId;
use rustc_hash::FxHashMap;

/// Choices of fewer parts go the way of all others.
const MANY_PARTS: usize = 48;

impl Lowering<'_> {
    /// The automaton of a rule that is plain to see, and whether it counts as large: nothing is inlined
    /// into it then.
    ///
    /// Only where large repetitions are counted: where they are written out, each state has to say
    /// which of them it stands for.
    ///
    /// # Errors
    /// Those of [`Budget::spend`](crate::budget::Budget::spend).
    pub(super) fn direct(&self, body: ExprId) -> Result<Option<(Automaton, bool)>> {
        let width =
            |&(_, first, last, _): &(u32, u8, u8, u32)| self.alphabet.classes(first, last).len();
        let made = match self.grammar.expr(body) {
            _ if !self.options.counters => return Ok(None),
            Expr::Automaton(automaton) if is_of_names(automaton) => {
                self.work.spend(automaton.bytes.iter().map(width).sum())?;
                return Ok(Some((self.of_names(automaton)?, false)));
            }
            Expr::Automaton(automaton) if self.is_large(automaton) => {
                self.work.spend(automaton.bytes.iter().map(width).sum())?;
                self.of_automaton(automaton)
            }
            Expr::Choice(parts) if parts.len() >= MANY_PARTS => self.of_choice(parts)?,
            _ => None,
        };
        Ok(made.map(|automaton| (automaton, true)))
    }

    /// A deterministic minimal automaton as it stands, whose states fall back on another than its start.
    fn of_names(&self, automaton: &ByteAutomaton) -> Result<Automaton> {
        let ticks = Ticks::new(self.work);
        let states = automaton.finals.len();
        let mut out = Automaton::with_capacity(states, 4 * automaton.bytes.len());
        let mut rows = automaton.bytes.chunk_by(|a, b| a.0 == b.0).peekable();
        for (state, &is_final) in (0..).zip(&automaton.finals) {
            if let Some(row) = rows.next_if(|row| row[0].0 == state) {
                for &(_, first, last, to) in row {
                    let classes = self.alphabet.classes(first, last);
                    classes.for_each(|class| out.push_edge(Letter::from(class), to));
                }
            }
            out.close_state(is_final);
            if automaton.falls_back[state as usize] {
                out.fall_back();
            }
        }
        out.fall_back_on(automaton.fallback);
        out.tidy_within(&ticks)?;
        out.renumber_within(&ticks)?;
        Ok(out)
    }

    /// Whether an automaton is written down as it stands. What states read by falling back counts, so
    /// that small automata become minimal however they are written.
    fn is_large(&self, automaton: &ByteAutomaton) -> bool {
        let many = self.options.large_automaton;
        automaton.bytes.len() >= many || automaton.bytes_in_full().len() >= many
    }

    /// The letter of a part that is read by one edge: a rule without the empty string.
    fn letter(&self, part: ExprId) -> Option<Letter> {
        let Expr::Rule(rule) = self.grammar.expr(part) else { return None };
        let rule = self.shapes.first(*rule).index();
        let is_plain = self.analysis.productive[rule] && !self.analysis.nullable[rule];
        is_plain.then(|| call(rule))
    }

    /// A deterministic automaton as it stands, behind a start that nothing leads back to. On that
    /// start states fall back: it reads what the automaton's own does.
    fn of_automaton(&self, automaton: &ByteAutomaton) -> Option<Automaton> {
        let mut edges: Vec<Vec<(Letter, u32)>> = vec![Vec::new(); automaton.finals.len()];
        for &(from, first, last, to) in &automaton.bytes {
            let classes = self.alphabet.classes(first, last).map(Letter::from);
            edges[from as usize].extend(classes.map(|class| (class, to + 1)));
        }
        for &(from, part, to) in &automaton.parts {
            edges[from as usize].push((self.letter(part)?, to + 1));
        }
        behind_a_start(&edges, automaton.start, &automaton.finals, &automaton.falls_back)
    }

    /// An automaton with guards, which are left out and returned apart; `None` where it is not made of
    /// calls alone, a callee has two guards or says the same as another, or the start asks for members.
    pub(super) fn of_guarded(
        &self,
        automaton: &ByteAutomaton,
    ) -> Option<(Automaton, FxHashMap<usize, Guard>)> {
        let mut guards: FxHashMap<usize, Guard> = FxHashMap::default();
        for (rule, guard) in &automaton.guards {
            let callee = self.shapes.first(*rule).index();
            if guards.insert(callee, guard.clone()).is_some_and(|known| known != *guard) {
                return None;
            }
        }
        let mut edges: Vec<Vec<(Letter, u32)>> = vec![Vec::new(); automaton.finals.len()];
        for &(from, part, to) in &automaton.parts {
            let Expr::Rule(rule) = self.grammar.expr(part) else { return None };
            let callee = self.shapes.first(*rule).index();
            let asks = matches!(guards.get(&callee), Some(Guard::Needs(m)) if !m.is_empty());
            if self.analysis.nullable[callee] || asks && from == automaton.start {
                return None;
            }
            if self.analysis.productive[callee] {
                edges[from as usize].push((call(callee), to + 1));
            }
        }
        let is_plain = automaton.bytes.is_empty() && !automaton.finals[automaton.start as usize];
        let out = written_behind_a_start(&edges, automaton.start, &automaton.finals, &[]);
        is_plain.then_some((out, guards))
    }

    /// The tree of the beginnings of a choice, each a literal, a rule, or a sequence of these.
    fn of_choice(&self, parts: &[ExprId]) -> Result<Option<Automaton>> {
        // All share one end. Behind a first call, parts that go on alike share their states; nothing
        // branches off there.
        let mut tree = PrefixTree::new();
        let end = tree.state();
        tree.set_final(end);
        let mut rests: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        for &part in parts {
            let pieces = match self.grammar.expr(part) {
                Expr::Sequence(pieces) => &**pieces,
                Expr::Literal(_) | Expr::Rule(_) => std::slice::from_ref(&part),
                _ => return Ok(None),
            };
            let (head, rest) = match self.grammar.expr(pieces[0]) {
                Expr::Literal(bytes) => (&**bytes, &pieces[1..]),
                _ => ([].as_slice(), pieces),
            };
            self.work.spend(1 + head.len() + rest.len())?;
            self.check_states(tree.len())?;
            let at = tree.read(0, head.iter().map(|&byte| self.alphabet.class(byte)));
            let Some((&first, behind)) = rest.split_first() else {
                if at != 0 {
                    tree.set_final(at); // the empty string is no matter of automata
                }
                continue;
            };
            let Some(letter) = self.letter(first) else { return Ok(None) };
            let key: Vec<u32> = behind.iter().map(|piece| self.shapes.of(*piece)).collect();
            let to = match rests.get(&key) {
                Some(&known) => known,
                None => {
                    let Some(to) = self.chain(&mut tree, behind, end) else { return Ok(None) };
                    rests.insert(key, to);
                    to
                }
            };
            tree.call(at, letter, to);
        }
        self.work.tick()?;
        let automaton = tree.automaton(&Ticks::new(self.work))?;
        self.work.tick()?;
        Ok(Some(automaton).filter(Automaton::is_deterministic))
    }

    /// Refuses a rule that has more states than a network may.
    fn check_states(&self, states: usize) -> Result<()> {
        check_states(states, &self.options.limits)
    }

    /// The state from which some pieces in a row are read.
    fn chain(&self, tree: &mut PrefixTree, pieces: &[ExprId], end: u32) -> Option<u32> {
        let mut to = end;
        for &piece in pieces.iter().rev() {
            match self.grammar.expr(piece) {
                Expr::Literal(bytes) => {
                    for &byte in bytes.iter().rev() {
                        let from = tree.state();
                        tree.edge(from, self.alphabet.class(byte), to);
                        to = from;
                    }
                }
                _ => {
                    let from = tree.state();
                    tree.call(from, self.letter(piece)?, to);
                    to = from;
                }
            }
        }
        Some(to)
    }
}

/// Whether states of an automaton fall back on another than its start. Such an automaton is deterministic
/// and minimal; here it has no parts, and its edges stand in order.
fn is_of_names(automaton: &ByteAutomaton) -> bool {
    !automaton.falls_back.is_empty()
        && automaton.fallback != automaton.start
        && automaton.start == 0
        && !automaton.finals[0]
        && automaton.parts.is_empty()
        && automaton.bytes.is_sorted()
}

/// The automaton of states and their edges, which lead to the state after the one that is meant: before
/// them stands a start that does what theirs does.
pub(super) fn behind_a_start(
    edges: &[Vec<(Letter, u32)>],
    start: u32,
    finals: &[bool],
    falls_back: &[bool],
) -> Option<Automaton> {
    Some(written_behind_a_start(edges, start, finals, falls_back))
        .filter(Automaton::is_deterministic)
}

/// The same, deterministic or not, in its order.
fn written_behind_a_start(
    edges: &[Vec<(Letter, u32)>],
    start: u32,
    finals: &[bool],
    falls_back: &[bool],
) -> Automaton {
    let num_edges = edges.iter().map(Vec::len).sum();
    let mut out = Automaton::with_capacity(edges.len() + 1, num_edges);
    let start = &edges[start as usize];
    start.iter().for_each(|&(letter, to)| out.push_edge(letter, to));
    out.close_state(false);
    for (state, (edges, &is_final)) in edges.iter().zip(finals).enumerate() {
        edges.iter().for_each(|&(letter, to)| out.push_edge(letter, to));
        out.close_state(is_final);
        if falls_back.get(state) == Some(&true) {
            // Lists of what the start does too would tell classes apart that none are.
            debug_assert!(edges.iter().all(|edge| !start.contains(edge)));
            out.fall_back();
        }
    }
    out.tidy();
    out.renumber();
    out
}
