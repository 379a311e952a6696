//! Comparison of a number with a bound, digit by digit.
//!
//! What decides between two numbers of one sign is first the count of digits before the point, then
//! the first digit in which they differ. While the integer part is read, either all its digits are
//! those of the bound so far, or a digit differed: then it is known how many more digits make the
//! number the longer one, or as long and greater, and all that is left is to count them. So a bound
//! of n digits takes some 2n states, and no digit of a bound that an exponent implies is written out.

use super::machine::{NumberMachine, NumberSymbol};
use crate::json_schema::decimal::Decimal;
use std::cmp::Ordering;

/// The numbers that compare with a bound in one of several ways. The texts are numbers: the machine
/// does not check it. Exponents may occur where the bound is zero.
#[derive(Clone, Debug)]
pub(super) struct DecimalComparison {
    bound: Decimal,
    accepts_less: bool,
    accepts_equal: bool,
    accepts_greater: bool,
    integer_digits: u64,
    fraction_digits: u64,
}

/// How what was read compares with the bound; but for `Decided`, without their common sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ComparisonState {
    /// Nothing was read.
    Start,
    /// So many digits were read, all before the point, and equal those of the bound.
    Integer(u64),
    /// The number is less if its integer part ends here, and greater with so many more digits.
    Lacks(u64),
    /// The integer parts are equal, and so many digits behind the point.
    Fraction(u64),
    /// No more digits change how the number compares with the bound.
    Decided(Ordering),
}

impl DecimalComparison {
    /// The numbers that compare with the bound in one of these ways.
    pub(super) fn new(bound: &Decimal, accepted: &[Ordering]) -> Self {
        Self {
            bound: bound.clone(),
            accepts_less: accepted.contains(&Ordering::Less),
            accepts_equal: accepted.contains(&Ordering::Equal),
            accepts_greater: accepted.contains(&Ordering::Greater),
            integer_digits: bound.integer_digits(),
            fraction_digits: bound.fraction_digits(),
        }
    }

    fn accepts(&self, ordering: Ordering) -> bool {
        match ordering {
            Ordering::Less => self.accepts_less,
            Ordering::Equal => self.accepts_equal,
            Ordering::Greater => self.accepts_greater,
        }
    }

    /// The state where the magnitudes compare so, whatever follows.
    fn decided(&self, magnitudes: Ordering) -> ComparisonState {
        let is_negative = self.bound.is_negative();
        ComparisonState::Decided(if is_negative { magnitudes.reverse() } else { magnitudes })
    }

    /// How a number that ends here compares with the bound.
    fn verdict(&self, state: ComparisonState) -> Ordering {
        let all_read = match state {
            ComparisonState::Decided(ordering) => return ordering,
            ComparisonState::Integer(read) => {
                read == self.integer_digits && self.fraction_digits == 0
            }
            ComparisonState::Fraction(read) => read == self.fraction_digits,
            ComparisonState::Start | ComparisonState::Lacks(_) => false,
        };
        let less = if self.bound.is_negative() { Ordering::Greater } else { Ordering::Less };
        if all_read { Ordering::Equal } else { less }
    }

    /// The state behind one more digit of the integer part, of which `read` equal the bound's.
    fn integer_digit(&self, read: u64, digit: u8) -> ComparisonState {
        let Some(left) = self.integer_digits.checked_sub(read + 1) else {
            // A zero before the point is no digit of a bound below one.
            let is_zero = read == 0 && digit == 0;
            return if is_zero {
                ComparisonState::Integer(0)
            } else {
                self.decided(Ordering::Greater)
            };
        };
        match (digit.cmp(&self.bound.digit_at(left as i64)), left) {
            (Ordering::Equal, _) => ComparisonState::Integer(read + 1),
            (Ordering::Less, _) => ComparisonState::Lacks(left + 1),
            (Ordering::Greater, 0) => self.decided(Ordering::Greater),
            (Ordering::Greater, _) => ComparisonState::Lacks(left),
        }
    }

    fn fraction_digit(&self, read: u64, digit: u8) -> ComparisonState {
        match digit.cmp(&self.bound.digit_at(-1 - read as i64)) {
            Ordering::Equal => ComparisonState::Fraction(self.fraction_digits.min(read + 1)),
            ordering => self.decided(ordering),
        }
    }

    fn advance(&self, state: ComparisonState, symbol: NumberSymbol) -> ComparisonState {
        match (state, symbol) {
            (ComparisonState::Decided(_), _) => state,
            (ComparisonState::Start, NumberSymbol::Minus) if self.bound.is_negative() => {
                ComparisonState::Integer(0)
            }
            (_, NumberSymbol::Minus) => ComparisonState::Decided(Ordering::Less),
            (ComparisonState::Start, NumberSymbol::Digit(_)) if self.bound.is_negative() => {
                ComparisonState::Decided(Ordering::Greater)
            }
            (ComparisonState::Start, NumberSymbol::Digit(digit)) => self.integer_digit(0, digit),
            (ComparisonState::Integer(read), NumberSymbol::Digit(digit)) => {
                self.integer_digit(read, digit)
            }
            (ComparisonState::Fraction(read), NumberSymbol::Digit(digit)) => {
                self.fraction_digit(read, digit)
            }
            (ComparisonState::Lacks(1), NumberSymbol::Digit(_)) => self.decided(Ordering::Greater),
            (ComparisonState::Lacks(digits), NumberSymbol::Digit(_)) => {
                ComparisonState::Lacks(digits - 1)
            }
            (ComparisonState::Integer(read), NumberSymbol::Point)
                if read == self.integer_digits =>
            {
                ComparisonState::Fraction(0)
            }
            (_, NumberSymbol::Point) => self.decided(Ordering::Less),
            (_, NumberSymbol::Exponent | NumberSymbol::Plus) => {
                ComparisonState::Decided(self.verdict(state))
            }
        }
    }
}

impl NumberMachine for DecimalComparison {
    type State = ComparisonState;

    fn start(&self) -> ComparisonState {
        ComparisonState::Start
    }

    fn step(&self, &state: &ComparisonState, symbol: NumberSymbol) -> Option<ComparisonState> {
        let next = self.advance(state, symbol);
        let is_lost = matches!(next, ComparisonState::Decided(ordering) if !self.accepts(ordering));
        (!is_lost).then_some(next)
    }

    fn is_final(&self, &state: &ComparisonState) -> bool {
        self.accepts(self.verdict(state))
    }
}
