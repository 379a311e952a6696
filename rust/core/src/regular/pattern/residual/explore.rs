//! Reading characters: what becomes of atoms, formulas and what runs along, state by state.

use super::super::clauses::{Disjunction, Literal};
use super::{Bounds, Dfa, Moment, ResidualAtom, ResidualEngine, ResidualState, Running};
use crate::error::Result;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Units of work for what an atom becomes, where that is not known yet.
const UNITS_PER_DERIVATIVE: usize = 12;
/// Units of work for what runs along to one more position: it is looked up, joined and sorted.
const UNITS_PER_RUN: usize = 8;

impl ResidualEngine<'_, '_> {
    /// What an atom becomes when a symbol is read.
    fn derivative(&mut self, atom: u32, symbol: u32, moment: Moment) -> Result<Rc<Disjunction>> {
        let key = (atom, symbol, moment);
        if let Some(known) = self.derivatives.get(&key) {
            return Ok(known.clone());
        }
        self.bounds.budget.spend(UNITS_PER_DERIVATIVE)?;
        let formula = match self.atoms[atom as usize] {
            ResidualAtom::End => Disjunction::constant(false),
            ResidualAtom::LastNewline if self.newline == Some(symbol) => {
                self.atom(ResidualAtom::End)
            }
            ResidualAtom::LastNewline => Disjunction::constant(false),
            ResidualAtom::Next(set) => {
                Disjunction::constant(self.holds[set.index()][symbol as usize])
            }
            ResidualAtom::Position(position) => {
                let mut parts = Vec::new();
                for place in 0..self.edges_of[position as usize].len() {
                    let (set, to) = self.edges_of[position as usize][place];
                    self.bounds.budget.spend(1)?;
                    if self.holds[set as usize][symbol as usize] {
                        parts.push(self.closure(to, moment)?);
                    }
                }
                Disjunction::any(parts.iter().map(Rc::as_ref), self.bounds)?
            }
            ResidualAtom::Rest(automaton, state) => {
                let to = self.symbols[symbol as usize].ranges().first().and_then(|range| {
                    let character = char::from_u32(range.0)?;
                    self.automata[automaton as usize].0.step(state, character)
                });
                self.rest(automaton, to)
            }
        };
        let formula = Rc::new(formula);
        self.derivatives.insert(key, formula.clone());
        Ok(formula)
    }

    /// What an atom or its negation becomes when a symbol is read.
    fn literal_derivative(
        &mut self,
        literal: Literal,
        symbol: u32,
        moment: Moment,
    ) -> Result<Rc<Disjunction>> {
        if !literal.is_negated() {
            return self.derivative(literal.atom(), symbol, moment);
        }
        let key = (literal.atom(), symbol, moment);
        if let Some(known) = self.negated_derivatives.get(&key) {
            return Ok(known.clone());
        }
        let formula = self.derivative(literal.atom(), symbol, moment)?;
        let formula = Rc::new(formula.not(self.bounds)?);
        self.negated_derivatives.insert(key, formula.clone());
        Ok(formula)
    }

    /// What a formula becomes when a symbol is read.
    fn read(&mut self, formula: &Disjunction, symbol: u32, moment: Moment) -> Result<Disjunction> {
        self.bounds.budget.spend(formula.single().len())?;
        let mut parts = Vec::with_capacity(formula.single().len() + formula.long().len());
        for &literal in formula.single() {
            parts.push(self.literal_derivative(literal, symbol, moment)?);
        }
        for clause in formula.long() {
            let mut part = Rc::new(Disjunction::constant(true));
            for &literal in clause {
                let next = self.literal_derivative(literal, symbol, moment)?;
                part = Rc::new(part.and(&next, self.bounds)?);
                if part.is_false() {
                    break;
                }
            }
            parts.push(part);
        }
        Disjunction::any(parts.iter().map(Rc::as_ref), self.bounds)
    }

    /// Makes the moment behind a character of a kind the present; returns it, and what runs along
    /// from then on.
    ///
    /// `before` is what ran along until the character, and the character's symbol.
    fn advance(
        &mut self,
        kind: u32,
        before: Option<(&[Running], u32)>,
    ) -> Result<(Moment, Vec<Running>)> {
        let mut moment = self.begin(kind);
        let mut running = Vec::new();
        let (mut known, symbol) = before.unwrap_or((&[], 0));
        for place in 0..self.followed.len() {
            let look = self.followed[place];
            let body = self.program.looks[look];
            self.bounds.budget.spend(1)?;
            if body.is_ahead {
                let holds = self.closure(body.start, moment)?;
                moment = self.settle(moment, holds);
                continue;
            }
            let mut from: FxHashMap<u32, Vec<Disjunction>> = FxHashMap::default();
            from.insert(body.start, vec![Disjunction::constant(true)]);
            let count = known.iter().take_while(|run| run.look as usize == look).count();
            let (here, others) = known.split_at(count);
            known = others;
            for run in here {
                let formula = self.read(&run.formula, symbol, moment)?;
                for &(set, to) in &self.edges_of[run.position as usize] {
                    self.bounds.budget.spend(UNITS_PER_RUN)?;
                    if self.holds[set as usize][symbol as usize] {
                        from.entry(to).or_default().push(formula.clone());
                    }
                }
            }
            let mut starts = Vec::with_capacity(from.len());
            for (position, formulas) in from {
                starts.push((position, Disjunction::any(&formulas, self.bounds)?));
            }
            let mut reached = self.spread(starts)?;
            let holds = reached.remove(&body.end).unwrap_or_default();
            moment = self.settle(moment, Rc::new(holds));
            let mut reached: Vec<_> = reached.into_iter().collect();
            reached.retain(|(position, formula)| {
                !formula.is_false() && !self.edges_of[*position as usize].is_empty()
            });
            reached.sort_unstable_by_key(|entry| entry.0);
            let look = look as u32;
            running.extend(reached.into_iter().map(|(position, formula)| Running {
                look,
                position,
                formula: Rc::new(formula),
            }));
        }
        Ok((moment, running))
    }

    /// The automaton of the texts that a position leads to the end with, behind a character of a
    /// kind.
    pub(super) fn explore(&mut self, position: u32, kind: u32, runs_along: bool) -> Result<Dfa> {
        let (moment, behind) = match runs_along {
            true => self.advance(kind, None)?,
            false => (self.begin(kind), Vec::new()),
        };
        let rest = self.closure(position, moment)?;
        let mut states: Vec<ResidualState> = Vec::new();
        let mut state_of: FxHashMap<ResidualState, u32> = FxHashMap::default();
        let mut number =
            |state: ResidualState, states: &mut Vec<ResidualState>, bounds: &Bounds<'_>| {
                // Nothing matters any more where all is said.
                let is_said = state.rest.is_true() || state.rest.is_false();
                let behind = if is_said { Vec::new() } else { state.behind };
                let state = ResidualState { behind, ..state };
                if let Some(&known) = state_of.get(&state) {
                    return Ok(known);
                }
                bounds.check(states.len() + 1)?;
                bounds.budget.spend(4 + state.behind.len())?;
                let number = states.len() as u32;
                state_of.insert(state.clone(), number);
                states.push(state);
                Ok::<u32, crate::error::Error>(number)
            };
        number(ResidualState { rest, behind }, &mut states, self.bounds)?;
        let (mut rows, mut finals, mut next) = (Vec::new(), Vec::new(), 0);
        while next < states.len() {
            let state = states[next].clone();
            next += 1;
            finals.push(state.rest.value(|atom| self.holds_at_end(atom)));
            let mut row = Vec::new();
            for symbol in 0..self.symbols.len() as u32 {
                let kind = self.kind_of[symbol as usize];
                self.bounds.budget.spend(1)?;
                let (moment, behind) = match runs_along {
                    true => self.advance(kind, Some((&state.behind, symbol)))?,
                    false => (self.begin(kind), Vec::new()),
                };
                let rest = Rc::new(self.read(&state.rest, symbol, moment)?);
                if !rest.is_false() {
                    let target = number(ResidualState { rest, behind }, &mut states, self.bounds)?;
                    row.push((symbol, target));
                }
            }
            rows.push(row);
        }
        Dfa::from_table(&self.symbols, &rows, &finals, self.bounds)
    }

    /// Whether an atom holds where nothing is left.
    fn holds_at_end(&self, atom: u32) -> bool {
        match self.atoms[atom as usize] {
            ResidualAtom::End => true,
            ResidualAtom::LastNewline | ResidualAtom::Next(_) | ResidualAtom::Position(_) => false,
            ResidualAtom::Rest(automaton, state) => {
                self.automata[automaton as usize].0.is_final(state)
            }
        }
    }
}
