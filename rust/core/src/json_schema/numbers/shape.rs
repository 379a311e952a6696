//! Which texts are numbers, whatever their values.

use super::machine::{NumberMachine, NumberSymbol};

/// Which fractions numbers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fraction {
    /// Any, or none.
    Any,
    /// Zeros, or none.
    Zeros,
    /// None.
    None,
}

/// The spellings of numbers, without a minus before a zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberShape {
    pub(super) fraction: Fraction,
    pub(super) has_exponents: bool,
}

/// Texts in which at most so many digits stand in a row.
#[derive(Clone, Copy, Debug)]
pub(super) struct DigitRuns {
    pub(super) most: u32,
}

impl NumberMachine for DigitRuns {
    /// The digits that were read last.
    type State = u32;

    fn start(&self) -> u32 {
        0
    }

    fn step(&self, &count: &u32, symbol: NumberSymbol) -> Option<u32> {
        match symbol {
            NumberSymbol::Digit(_) => (count < self.most).then_some(count + 1),
            _ => Some(0),
        }
    }

    fn is_final(&self, _: &u32) -> bool {
        true
    }
}

/// What was read. A minus is remembered until a digit other than zero shows up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SpellingState {
    Start,
    Minus,
    Zero { is_negative: bool },
    Integer,
    Point { is_negative_zero: bool },
    Fraction { is_negative_zero: bool },
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl NumberShape {
    /// Plain decimals.
    pub(super) const PLAIN: Self = Self { fraction: Fraction::Any, has_exponents: false };
}

impl NumberMachine for NumberShape {
    type State = SpellingState;

    fn start(&self) -> SpellingState {
        SpellingState::Start
    }

    fn step(&self, &state: &SpellingState, symbol: NumberSymbol) -> Option<SpellingState> {
        use NumberSymbol::{Digit, Minus, Plus, Point};
        use SpellingState as S;
        Some(match (state, symbol) {
            (S::Start, Minus) => S::Minus,
            (S::Start | S::Minus, Digit(0)) => S::Zero { is_negative: state == S::Minus },
            (S::Start | S::Minus | S::Integer, Digit(_)) => S::Integer,
            (S::Zero { .. } | S::Integer, Point) if self.fraction != Fraction::None => {
                S::Point { is_negative_zero: state == S::Zero { is_negative: true } }
            }
            (S::Point { .. } | S::Fraction { .. }, Digit(1..))
                if self.fraction != Fraction::Any =>
            {
                return None;
            }
            (S::Point { is_negative_zero } | S::Fraction { is_negative_zero }, Digit(digit)) => {
                S::Fraction { is_negative_zero: is_negative_zero && digit == 0 }
            }
            (
                S::Zero { is_negative: false }
                | S::Integer
                | S::Fraction { is_negative_zero: false },
                NumberSymbol::Exponent,
            ) if self.has_exponents => S::Exponent,
            (S::Exponent, Minus | Plus) => S::ExponentSign,
            (S::Exponent | S::ExponentSign | S::ExponentDigits, Digit(_)) => S::ExponentDigits,
            _ => return None,
        })
    }

    fn is_final(&self, state: &SpellingState) -> bool {
        match state {
            SpellingState::Integer | SpellingState::ExponentDigits => true,
            SpellingState::Zero { is_negative } => !is_negative,
            SpellingState::Fraction { is_negative_zero } => !is_negative_zero,
            _ => false,
        }
    }
}
