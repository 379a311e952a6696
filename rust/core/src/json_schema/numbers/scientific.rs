//! Numbers as writers of JSON spell what is very small or large: `5e-05`, `1.5E+16`.
//!
//! One digit, other than zero, stands before the point. So a number is compared with a bound by its
//! exponent, and where that is the exponent of the bound's first digit, by its digits. Other spellings with
//! exponents, as `50e-6` or `0.5e-4`, would have to count digits against the exponent.

use super::machine::{NumberMachine, NumberSymbol};
use crate::json_schema::decimal::Decimal;
use std::cmp::Ordering;

/// The spellings, whatever their values.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScientificShape;

/// What was read of a spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ShapeState {
    Start,
    Minus,
    Digit,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

impl NumberMachine for ScientificShape {
    type State = ShapeState;

    fn start(&self) -> ShapeState {
        ShapeState::Start
    }

    fn step(&self, state: &ShapeState, symbol: NumberSymbol) -> Option<ShapeState> {
        use NumberSymbol::{Digit, Minus, Plus, Point};
        use ShapeState as S;
        Some(match (state, symbol) {
            (S::Start, Minus) => S::Minus,
            (S::Start | S::Minus, Digit(1..)) => S::Digit,
            (S::Digit, Point) => S::Point,
            (S::Point | S::Fraction, Digit(_)) => S::Fraction,
            (S::Digit | S::Fraction, NumberSymbol::Exponent) => S::Exponent,
            (S::Exponent, Minus | Plus) => S::ExponentSign,
            (S::Exponent | S::ExponentSign | S::ExponentDigits, Digit(_)) => S::ExponentDigits,
            _ => return None,
        })
    }

    fn is_final(&self, state: &ShapeState) -> bool {
        *state == ShapeState::ExponentDigits
    }
}

/// The numbers that compare with a bound in one of several ways. The texts are of [`ScientificShape`]: the
/// machine does not check it.
#[derive(Clone, Debug)]
pub(super) struct ScientificComparison {
    bound: Decimal,
    accepted: Vec<Ordering>,
    /// The digits of the exponent of the bound's first digit, without its sign; none for zero.
    exponent: Vec<u8>,
}

/// How what was read compares with the bound; but for `Decided`, without their common sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ScientificState {
    /// Nothing was read.
    Start,
    /// So many digits were read, and equal those of the bound.
    Digits(usize),
    /// The digits compare so with those of the bound.
    Differs(Ordering),
    /// The digits compare so, and what was read of the exponent is `read` digits behind its zeros, which
    /// compare so with as many of the bound's.
    Exponent { digits: Ordering, is_negative: bool, read: usize, compared: Ordering },
    /// The signs differ.
    Decided(Ordering),
}

impl ScientificComparison {
    /// The numbers that compare with the bound in one of these ways.
    pub(super) fn new(bound: &Decimal, accepted: &[Ordering]) -> Self {
        let exponent = bound.leading_exponent().unsigned_abs();
        let digits = exponent.to_string().bytes().map(|digit| digit - b'0').collect();
        Self {
            bound: bound.clone(),
            accepted: accepted.to_vec(),
            exponent: if exponent == 0 { Vec::new() } else { digits },
        }
    }

    fn digit(&self, read: usize, digit: u8) -> ScientificState {
        let digits = self.bound.digits();
        match digit.cmp(digits.get(read).unwrap_or(&0)) {
            Ordering::Equal => ScientificState::Digits(digits.len().min(read + 1)),
            ordering => ScientificState::Differs(ordering),
        }
    }

    /// How a number that ends here compares with the bound.
    fn verdict(&self, state: ScientificState) -> Option<Ordering> {
        let (digits, is_negative, read, compared) = match state {
            ScientificState::Decided(ordering) => return Some(ordering),
            ScientificState::Exponent { digits, is_negative, read, compared } => {
                (digits, is_negative, read, compared)
            }
            _ => return None,
        };
        let bound = self.bound.leading_exponent();
        let magnitudes = read.cmp(&self.exponent.len()).then(compared);
        let exponents = match (read, is_negative) {
            (0, _) => 0.cmp(&bound),
            (_, false) if bound < 0 => Ordering::Greater,
            (_, false) => magnitudes,
            (_, true) if bound < 0 => magnitudes.reverse(),
            (_, true) => Ordering::Less,
        };
        let magnitudes = exponents.then(digits);
        Some(if self.bound.is_negative() { magnitudes.reverse() } else { magnitudes })
    }
}

impl NumberMachine for ScientificComparison {
    type State = ScientificState;

    fn start(&self) -> ScientificState {
        ScientificState::Start
    }

    fn step(&self, &state: &ScientificState, symbol: NumberSymbol) -> Option<ScientificState> {
        use NumberSymbol::{Digit, Minus, Plus, Point};
        use ScientificState as S;
        let is_negative = self.bound.is_negative();
        let next = match (state, symbol) {
            (S::Decided(_), _) | (S::Digits(_) | S::Differs(_), Point) => state,
            (S::Start, Minus) if is_negative => S::Digits(0),
            (S::Start, Minus) => S::Decided(Ordering::Less),
            (S::Start, Digit(_)) if is_negative || self.bound.is_zero() => {
                S::Decided(Ordering::Greater)
            }
            (S::Start, Digit(digit)) => self.digit(0, digit),
            (S::Digits(read), Digit(digit)) => self.digit(read, digit),
            (S::Differs(_), Digit(_)) => state,
            (S::Digits(_) | S::Differs(_), NumberSymbol::Exponent) => {
                let digits = match state {
                    S::Differs(ordering) => ordering,
                    S::Digits(read) if read == self.bound.digits().len() => Ordering::Equal,
                    _ => Ordering::Less,
                };
                S::Exponent { digits, is_negative: false, read: 0, compared: Ordering::Equal }
            }
            (S::Exponent { digits, read, compared, .. }, Minus | Plus) => {
                S::Exponent { digits, is_negative: symbol == Minus, read, compared }
            }
            (S::Exponent { read: 0, .. }, Digit(0)) => state,
            (S::Exponent { digits, is_negative, read, compared }, Digit(digit)) => {
                let of_bound = self.exponent.get(read).unwrap_or(&digit);
                let compared = compared.then(digit.cmp(of_bound));
                let read = (read + 1).min(self.exponent.len() + 1);
                S::Exponent { digits, is_negative, read, compared }
            }
            _ => return None,
        };
        let is_lost = matches!(next, S::Decided(ordering) if !self.accepted.contains(&ordering));
        (!is_lost).then_some(next)
    }

    fn is_final(&self, &state: &ScientificState) -> bool {
        self.verdict(state).is_some_and(|ordering| self.accepted.contains(&ordering))
    }
}
