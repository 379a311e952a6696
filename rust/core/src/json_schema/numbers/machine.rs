//! Automata that are given by a step function, products of them, and their tables.

use crate::error::{Error, Result};
use crate::grammar::CharSet;
use crate::regular::{Bounds, Dfa};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// A symbol of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberSymbol {
    /// A digit, 0 to 9.
    Digit(u8),
    /// `.`
    Point,
    /// `-`
    Minus,
    /// `+`
    Plus,
    /// `e` or `E`
    Exponent,
}

impl NumberSymbol {
    /// All symbols, and the characters that each of them is.
    fn all() -> Vec<(NumberSymbol, CharSet)> {
        let of = |characters: &[u8]| CharSet::new(characters.iter().map(|&c| (c.into(), c.into())));
        let digits = (0..10).map(|digit| (NumberSymbol::Digit(digit), of(&[b'0' + digit])));
        let others = [
            (NumberSymbol::Point, of(b".")),
            (NumberSymbol::Minus, of(b"-")),
            (NumberSymbol::Plus, of(b"+")),
            (NumberSymbol::Exponent, of(b"eE")),
        ];
        digits.chain(others).collect()
    }
}

/// A deterministic automaton whose states are values.
pub(super) trait NumberMachine {
    /// A state.
    type State: Clone + Eq + Hash;

    /// Where every text begins.
    fn start(&self) -> Self::State;

    /// The state behind a symbol; `None` where no text that goes on so is accepted.
    fn step(&self, state: &Self::State, symbol: NumberSymbol) -> Option<Self::State>;

    /// Whether a text may end here.
    fn is_final(&self, state: &Self::State) -> bool;

    /// The automaton as a table, with the states that can be reached.
    fn explore(&self, bounds: &Bounds<'_>) -> Result<Dfa> {
        let (symbols, sets): (Vec<NumberSymbol>, Vec<CharSet>) =
            NumberSymbol::all().into_iter().unzip();
        let mut numbers = FxHashMap::default();
        let mut states = vec![self.start()];
        numbers.insert(self.start(), 0u32);
        let (mut rows, mut finals) = (Vec::new(), Vec::new());
        while rows.len() < states.len() {
            let state = states[rows.len()].clone();
            bounds.budget.spend(symbols.len())?;
            let mut row = Vec::new();
            for (place, &symbol) in (0u32..).zip(&symbols) {
                let Some(next) = self.step(&state, symbol) else { continue };
                let number = *numbers.entry(next).or_insert_with_key(|next| {
                    states.push(next.clone());
                    states.len() as u32 - 1
                });
                row.push((place, number));
            }
            rows.push(row);
            finals.push(self.is_final(&state));
            check_states(states.len(), bounds)?;
        }
        Dfa::from_table(&sets, &rows, &finals, bounds)
    }
}

/// Refuses more states than the bounds allow.
pub(super) fn check_states(states: usize, bounds: &Bounds<'_>) -> Result<()> {
    if states <= bounds.max_states {
        return Ok(());
    }
    Err(Error::Limit {
        limit: "max_automaton_states",
        value: bounds.max_states as u64,
        message: "the automaton of a set of numbers takes more states; use bounds, divisors and \
                  values with fewer digits, or raise the limit"
            .to_owned(),
    })
}

/// The intersection of two languages.
impl<A: NumberMachine, B: NumberMachine> NumberMachine for (A, B) {
    type State = (A::State, B::State);

    fn start(&self) -> Self::State {
        (self.0.start(), self.1.start())
    }

    fn step(&self, (a, b): &Self::State, symbol: NumberSymbol) -> Option<Self::State> {
        Some((self.0.step(a, symbol)?, self.1.step(b, symbol)?))
    }

    fn is_final(&self, (a, b): &Self::State) -> bool {
        self.0.is_final(a) && self.1.is_final(b)
    }
}

/// The union of two languages.
pub(super) struct Union<A, B>(pub(super) A, pub(super) B);

impl<A: NumberMachine, B: NumberMachine> NumberMachine for Union<A, B> {
    /// `None` where no text that goes on so is of the one language, or of the other.
    type State = (Option<A::State>, Option<B::State>);

    fn start(&self) -> Self::State {
        (Some(self.0.start()), Some(self.1.start()))
    }

    fn step(&self, (a, b): &Self::State, symbol: NumberSymbol) -> Option<Self::State> {
        let next = (
            a.as_ref().and_then(|a| self.0.step(a, symbol)),
            b.as_ref().and_then(|b| self.1.step(b, symbol)),
        );
        (next.0.is_some() || next.1.is_some()).then_some(next)
    }

    fn is_final(&self, (a, b): &Self::State) -> bool {
        a.as_ref().is_some_and(|a| self.0.is_final(a))
            || b.as_ref().is_some_and(|b| self.1.is_final(b))
    }
}

/// A language, or all texts.
impl<M: NumberMachine> NumberMachine for Option<M> {
    type State = Option<M::State>;

    fn start(&self) -> Self::State {
        self.as_ref().map(NumberMachine::start)
    }

    fn step(&self, state: &Self::State, symbol: NumberSymbol) -> Option<Self::State> {
        match (self, state) {
            (Some(machine), Some(state)) => machine.step(state, symbol).map(Some),
            _ => Some(None),
        }
    }

    fn is_final(&self, state: &Self::State) -> bool {
        match (self, state) {
            (Some(machine), Some(state)) => machine.is_final(state),
            _ => true,
        }
    }
}
