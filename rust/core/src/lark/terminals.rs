//! Terminals: what they may hold, and their automata where an operation needs one.
//!
//! Automata are made of what `&`, `~`, lazy rules and markers need, and of nothing else: all other
//! terminals become rules of the grammar, in which counts stay counts.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::error::{Position, Result};
use crate::graph;
use crate::regular::pattern::{Pattern, PatternDialect};
use crate::regular::{Bounds, Dfa, ScalarNfa, substrings};

use super::leaves;
use super::messages::{shown, syntax, unsupported};
use super::names::Index;
use super::tree::{LarkDocument, LarkNodeId, LarkNodeKind};

pub(super) struct LarkTerminals<'d> {
    document: &'d LarkDocument,
    index: &'d Index,
    dialect: PatternDialect,
    /// For each definition where its terminal stands in an order of callees first.
    ranks: Vec<usize>,
    dfas: Vec<Option<Dfa>>,
    patterns: FxHashMap<(&'d str, &'d str), Pattern>,
}

impl<'d> LarkTerminals<'d> {
    /// Checks what terminals and `%ignore` hold.
    ///
    /// # Errors
    /// A terminal names a rule, nothing, or itself; it holds what no terminal can.
    pub(super) fn new(
        document: &'d LarkDocument,
        index: &'d Index,
        dialect: PatternDialect,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        let count = document.definitions.len();
        let (ranks, dfas) = (vec![0; count], vec![None; count]);
        let mut out =
            Self { document, index, dialect, ranks, dfas, patterns: FxHashMap::default() };
        let mut callees = vec![Vec::new(); count];
        for (at, definition) in document.definitions.iter().enumerate() {
            if definition.is_terminal() {
                out.check(definition.body, "a terminal", bounds)?;
                callees[at] = out.named(definition.body);
            }
        }
        for &ignored in &document.ignores {
            out.check(ignored, "`%ignore`", bounds)?;
        }
        let groups = graph::components(count, |at| callees[at].clone());
        for (rank, group) in groups.into_iter().enumerate() {
            let is_circle = group.len() > 1 || callees[group[0]].contains(&group[0]);
            if let Some(first) = group.iter().min().filter(|_| is_circle) {
                let definition = &document.definitions[*first];
                let message = format!(
                    "the terminal `{}` names itself, directly or through others; make it a rule",
                    shown(&definition.name)
                );
                return Err(syntax(definition.position, message));
            }
            out.ranks[group[0]] = rank;
        }
        Ok(out)
    }

    /// Checks that a part holds nothing but what is regular.
    ///
    /// # Errors
    /// What stands in the way, with its place; `whose` says where it may not stand.
    pub(super) fn check(&self, root: LarkNodeId, whose: &str, bounds: &Bounds<'_>) -> Result<()> {
        for at in self.document.subtree(root) {
            bounds.budget.spend(1)?;
            let node = &self.document.nodes[at];
            let construct = match &node.kind {
                LarkNodeKind::Name(name) => match definition(self.index, name, node.position)? {
                    at if self.document.definitions[at].is_terminal() => continue,
                    _ => {
                        let message = format!(
                            "{whose} is made of terminals, literals and patterns: it cannot name the \
                             rule `{}`",
                            shown(name)
                        );
                        return Err(syntax(node.position, message));
                    }
                },
                LarkNodeKind::Schema(..) => "%json".to_owned(),
                LarkNodeKind::Document(_) => "%lark".to_owned(),
                LarkNodeKind::Token(text) => shown(text),
                LarkNodeKind::Grammar(name) => format!("@{name}"),
                _ => continue,
            };
            let message =
                format!("{whose} is a regular language over text: this cannot stand in it");
            return Err(unsupported(construct, node.position, message));
        }
        Ok(())
    }

    pub(super) fn document(&self) -> &'d LarkDocument {
        self.document
    }

    /// The terminals that a part names.
    fn named(&self, root: LarkNodeId) -> Vec<usize> {
        let names =
            self.document.subtree(root).filter_map(|at| match &self.document.nodes[at].kind {
                LarkNodeKind::Name(name) => self.index.get(name).copied(),
                _ => None,
            });
        let mut out: Vec<usize> = names.collect();
        out.sort_unstable();
        out.dedup();
        out
    }

    /// A pattern, read once.
    pub(super) fn pattern(
        &mut self,
        text: &'d str,
        flags: &'d str,
        position: Position,
    ) -> Result<&Pattern> {
        use std::collections::hash_map::Entry;
        match self.patterns.entry((text, flags)) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(place) => {
                Ok(place.insert(leaves::pattern(text, flags, self.dialect, position)?))
            }
        }
    }

    /// The automaton of a part that was checked.
    ///
    /// # Errors
    /// [`Limit`](crate::error::Error::Limit); what is wrong with a pattern.
    pub(super) fn dfa(&mut self, root: LarkNodeId, bounds: &Bounds<'_>) -> Result<Dfa> {
        let mut needed = self.named(root);
        let mut at = 0;
        needed.retain(|&terminal| self.dfas[terminal].is_none());
        let mut seen: FxHashSet<usize> = needed.iter().copied().collect();
        while let Some(&terminal) = needed.get(at) {
            at += 1;
            for callee in self.named(self.document.definitions[terminal].body) {
                bounds.budget.spend(1)?;
                if self.dfas[callee].is_none() && seen.insert(callee) {
                    needed.push(callee);
                }
            }
        }
        needed.sort_unstable_by_key(|&terminal| self.ranks[terminal]);
        for terminal in needed {
            let dfa = self.evaluate(self.document.definitions[terminal].body, bounds)?;
            self.dfas[terminal] = Some(dfa);
        }
        self.evaluate(root, bounds)
    }

    /// The automaton of a part whose terminals have theirs.
    fn evaluate(&mut self, root: LarkNodeId, bounds: &Bounds<'_>) -> Result<Dfa> {
        let document = self.document;
        let nodes = document.subtree(root);
        let first = nodes.start;
        let mut made: Vec<Dfa> = Vec::with_capacity(nodes.len());
        for at in nodes {
            bounds.budget.spend(1)?;
            let of = |id: LarkNodeId| &made[id.index() - first];
            let node = &document.nodes[at];
            let dfa = match &node.kind {
                LarkNodeKind::Sequence(parts) => {
                    let parts: Vec<&Dfa> = parts.iter().map(|&part| of(part)).collect();
                    in_a_row(&parts, bounds)?
                }
                LarkNodeKind::Choice(parts) => one_of(document, parts, of, bounds)?,
                LarkNodeKind::Both(parts) => {
                    let mut whole = of(parts[0]).clone();
                    for &part in &parts[1..] {
                        whole = whole.intersection(of(part), bounds)?;
                    }
                    whole
                }
                LarkNodeKind::Not(body) => of(*body).complement(),
                &LarkNodeKind::Repeat { body, min, max } => {
                    of(body).repetition(min, max, bounds)?
                }
                LarkNodeKind::Text { text, of_any_case } => {
                    leaves::text_dfa(text, *of_any_case, bounds)?
                }
                &LarkNodeKind::Range(a, b) => Dfa::character(&leaves::range(a, b)),
                LarkNodeKind::Pattern { text, flags } => {
                    self.pattern(text, flags, node.position)?.to_dfa(false, bounds)?
                }
                LarkNodeKind::Structured(text, place) => {
                    let chunks = leaves::chunks(text, *place)?;
                    let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
                    substrings::substrings_dfa(&chunks, bounds)?
                }
                LarkNodeKind::Name(name) => {
                    match self.index.get(name).and_then(|&at| self.dfas[at].clone()) {
                        Some(dfa) => dfa,
                        None => return Err(undefined(name, node.position)),
                    }
                }
                _ => Dfa::nothing(),
            };
            made.push(dfa);
        }
        Ok(made.pop().unwrap_or_else(Dfa::nothing))
    }
}

/// One automaton after the other.
fn in_a_row(parts: &[&Dfa], bounds: &Bounds<'_>) -> Result<Dfa> {
    match parts {
        [] => return Ok(Dfa::empty_string()),
        [only] => return Ok((*only).clone()),
        _ => {}
    }
    let mut nfa = ScalarNfa::new();
    let mut at = nfa.add_state();
    nfa.add_start(at);
    for part in parts {
        bounds.budget.spend(part.num_edges())?;
        let next = nfa.add_state();
        nfa.add_dfa(at, part, next);
        at = next;
    }
    nfa.set_final(at);
    Dfa::from_nfa(&nfa, bounds)
}

/// One of several; literals among them are taken together.
fn one_of<'m>(
    document: &LarkDocument,
    parts: &[LarkNodeId],
    of: impl Fn(LarkNodeId) -> &'m Dfa,
    bounds: &Bounds<'_>,
) -> Result<Dfa> {
    let mut nfa = ScalarNfa::new();
    let (start, end) = (nfa.add_state(), nfa.add_state());
    nfa.add_start(start);
    nfa.set_final(end);
    let mut texts = Vec::new();
    for &part in parts {
        match document.kind(part) {
            LarkNodeKind::Text { text, of_any_case: false } => texts.push(&**text),
            _ => {
                bounds.budget.spend(of(part).num_edges())?;
                nfa.add_dfa(start, of(part), end);
            }
        }
    }
    let texts = Dfa::texts(texts, bounds)?;
    nfa.add_dfa(start, &texts, end);
    Dfa::from_nfa(&nfa, bounds)
}

/// The definition of a name.
///
/// # Errors
/// There is none.
pub(super) fn definition(index: &Index, name: &str, position: Position) -> Result<usize> {
    index.get(name).copied().ok_or_else(|| undefined(name, position))
}

fn undefined(name: &str, position: Position) -> crate::error::Error {
    // The library has terminals alone, whose names have no small letters.
    let is_terminal = !name.contains(|letter: char| letter.is_ascii_lowercase());
    let or = if is_terminal { ", or import it from `common`" } else { "" };
    let message = format!("`{}` is not defined; define it{or}", shown(name));
    syntax(position, message)
}

/// The texts of an automaton that no other text of it begins: what a lazy rule matches, which ends
/// where it can.
///
/// # Errors
/// [`Limit`](crate::error::Error::Limit).
pub(super) fn shortest(dfa: &Dfa, bounds: &Bounds<'_>) -> Result<Dfa> {
    let mut nfa = ScalarNfa::new();
    let states = dfa.num_states() as u32;
    for _ in 0..states {
        nfa.add_state();
    }
    if states == 0 {
        return Ok(Dfa::nothing());
    }
    nfa.add_start(0);
    for state in 0..states {
        if dfa.is_final(state) {
            nfa.set_final(state);
            continue;
        }
        for (set, to) in dfa.edges(state) {
            bounds.budget.spend(1)?;
            nfa.add_edge(state, &set, to);
        }
    }
    Dfa::from_nfa(&nfa, bounds)
}

/// The texts that together with a text behind them are of the automaton.
///
/// # Errors
/// [`Limit`](crate::error::Error::Limit).
pub(super) fn without_end(dfa: &Dfa, end: &str, bounds: &Bounds<'_>) -> Result<Dfa> {
    let mut nfa = ScalarNfa::new();
    let states = dfa.num_states() as u32;
    for _ in 0..states {
        nfa.add_state();
    }
    if states == 0 {
        return Ok(Dfa::nothing());
    }
    nfa.add_start(0);
    for state in 0..states {
        bounds.budget.spend(1 + end.len())?;
        let reached = end.chars().try_fold(state, |state, c| dfa.step(state, c));
        if reached.is_some_and(|state| dfa.is_final(state)) {
            nfa.set_final(state);
        }
        for (set, to) in dfa.edges(state) {
            nfa.add_edge(state, &set, to);
        }
    }
    Dfa::from_nfa(&nfa, bounds)
}
