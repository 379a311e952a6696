//! Large rules whose automaton is plain to see: a `TagDispatch` of many tags, a choice of many tags.
//!
//! The way of all other rules, an automaton with epsilon edges that is made deterministic and minimal,
//! takes ten times as long for these and finds little: an Aho-Corasick automaton is deterministic,
//! and so is the tree of the beginnings of a choice; the ends that its parts have in common are put
//! together here. Where a rule is not that plain, nothing is made, and it goes the way of all others.

use super::lower::Lowering;
use crate::automata::{Automaton, Letter, call};
use crate::error::Result;
use crate::grammar::{ByteAutomaton, Expr};
use crate::ids::ExprId;
use rustc_hash::FxHashMap;

/// Rules of fewer edges, and choices of fewer parts, go the way of all others.
const MANY_EDGES: usize = 2_000;
const MANY_PARTS: usize = 48;

impl Lowering<'_, '_> {
    /// The automaton of a large rule that is plain to see.
    ///
    /// Only where large repetitions are counted: where they are written out, each state has to say
    /// which of them it stands for.
    ///
    /// # Errors
    /// Those of [`Work::spend`](crate::work::Work::spend).
    pub(super) fn direct(&self, body: ExprId) -> Result<Option<Automaton>> {
        match self.grammar.expr(body) {
            _ if !self.options.counters => Ok(None),
            Expr::Automaton(automaton) if automaton.bytes.len() >= MANY_EDGES => {
                let width = |&(_, first, last, _): &(u32, u8, u8, u32)| {
                    self.alphabet.classes(first, last).len()
                };
                self.work.spend(automaton.bytes.iter().map(width).sum())?;
                Ok(self.of_automaton(automaton))
            }
            Expr::Choice(parts) if parts.len() >= MANY_PARTS => {
                self.work.spend(self.grammar.size())?;
                Ok(self.of_choice(parts))
            }
            _ => Ok(None),
        }
    }

    /// The letter of a part that is read by one edge: a rule without the empty string.
    fn letter(&self, part: ExprId) -> Option<Letter> {
        let Expr::Rule(rule) = self.grammar.expr(part) else { return None };
        let rule = self.shapes.first(*rule).index();
        let is_plain = self.analysis.productive[rule] && !self.analysis.nullable[rule];
        is_plain.then(|| call(rule))
    }

    /// A deterministic automaton as it stands, behind a start that nothing leads back to.
    fn of_automaton(&self, automaton: &ByteAutomaton) -> Option<Automaton> {
        let mut edges: Vec<Vec<(Letter, u32)>> = vec![Vec::new(); automaton.finals.len()];
        for &(from, first, last, to) in &automaton.bytes {
            let classes = self.alphabet.classes(first, last).map(Letter::from);
            edges[from as usize].extend(classes.map(|class| (class, to + 1)));
        }
        for &(from, part, to) in &automaton.parts {
            edges[from as usize].push((self.letter(part)?, to + 1));
        }
        let num_edges = edges.iter().map(Vec::len).sum();
        let mut out = Automaton::with_capacity(edges.len() + 1, num_edges);
        let start = automaton.start as usize;
        let states =
            std::iter::once((start, false)).chain((0..).zip(automaton.finals.iter().copied()));
        for (state, is_final) in states {
            edges[state].iter().for_each(|&(letter, to)| out.push_edge(letter, to));
            out.close_state(is_final);
        }
        plain(out)
    }

    /// The tree of the beginnings of a choice, each a literal, a rule, or a sequence of these.
    fn of_choice(&self, parts: &[ExprId]) -> Option<Automaton> {
        // State 0 is the start, state 1 the end that all share. Behind a first call, parts that go
        // on alike share their states; nothing branches off there.
        let mut tree = Tree { states: vec![(false, Vec::new()), (true, Vec::new())] };
        let mut rests: FxHashMap<Vec<u32>, u32> = FxHashMap::default();
        for &part in parts {
            let pieces = match self.grammar.expr(part) {
                Expr::Sequence(pieces) => &**pieces,
                Expr::Literal(_) | Expr::Rule(_) => std::slice::from_ref(&part),
                _ => return None,
            };
            let (head, rest) = match self.grammar.expr(pieces[0]) {
                Expr::Literal(bytes) => (&**bytes, &pieces[1..]),
                _ => ([].as_slice(), pieces),
            };
            let mut at = 0;
            for &byte in head {
                at = tree.branch(at, Letter::from(self.alphabet.class(byte)));
            }
            let Some((&first, behind)) = rest.split_first() else {
                // The empty string is no matter of automata.
                tree.states[at as usize].0 |= at != 0;
                continue;
            };
            let letter = self.letter(first)?;
            let key: Vec<u32> = behind.iter().map(|piece| self.shapes.of(*piece)).collect();
            let to = match rests.get(&key) {
                Some(&known) => known,
                None => {
                    let to = self.chain(&mut tree, behind)?;
                    rests.insert(key, to);
                    to
                }
            };
            tree.states[at as usize].1.push((letter, to));
        }
        let size = tree.states.iter().map(|state| state.1.len()).sum();
        let mut out = Automaton::with_capacity(tree.states.len(), size);
        for (is_final, edges) in tree.states {
            edges.into_iter().for_each(|(letter, to)| out.push_edge(letter, to));
            out.close_state(is_final);
        }
        plain(out)
    }

    /// The state from which some pieces in a row are read.
    fn chain(&self, tree: &mut Tree, pieces: &[ExprId]) -> Option<u32> {
        let mut to = 1;
        for &piece in pieces.iter().rev() {
            match self.grammar.expr(piece) {
                Expr::Literal(bytes) => {
                    for &byte in bytes.iter().rev() {
                        to = tree.state(Letter::from(self.alphabet.class(byte)), to);
                    }
                }
                _ => to = tree.state(self.letter(piece)?, to),
            }
        }
        Some(to)
    }
}

/// States under construction: whether each is final, and its edges.
struct Tree {
    states: Vec<(bool, Vec<(Letter, u32)>)>,
}

impl Tree {
    /// A state with one edge.
    fn state(&mut self, letter: Letter, to: u32) -> u32 {
        self.states.push((false, vec![(letter, to)]));
        self.states.len() as u32 - 1
    }

    /// Where the tree goes from a state over a letter.
    fn branch(&mut self, at: u32, letter: Letter) -> u32 {
        let known = self.states[at as usize].1.iter().find(|edge| edge.0 == letter);
        if let Some(&(_, to)) = known {
            return to;
        }
        self.states.push((false, Vec::new()));
        let to = self.states.len() as u32 - 1;
        self.states[at as usize].1.push((letter, to));
        to
    }
}

/// The automaton in its order, where it is deterministic.
fn plain(mut automaton: Automaton) -> Option<Automaton> {
    automaton.tidy();
    automaton.renumber();
    automaton.is_deterministic().then_some(automaton)
}
