//! Multiples of a decimal.
//!
//! Let the divisor be m/10^k with an integer m. A number with the integer part I and k digits F behind
//! the point is a multiple if m divides 10^k I + F; digits further behind the point must be zeros.
//! So what must be kept of I is, for each i >= k: which digits F, i of them, make 10^i I + F a
//! multiple of m (i - k more digits before the point, k behind it). They are
//! F = -10^i I modulo m, if that has no more than i digits. From some i on, 10^i takes all factors 2
//! and 5 out of m, and the remainder of I modulo what is left of m says the same for all of them.
//! A state is that remainder and one F, or none, for each i before: this makes exactly as many states
//! as the language needs. 64 is divided with 25 of them, 100,000 with 6.

use super::machine::{NumberMachine, NumberSymbol, check_states};
use crate::error::{Error, Result};
use crate::json_schema::decimal::Decimal;
use crate::regular::Bounds;

/// The greatest modulus: of a divisor, read as an integer, without its factors 2 and 5.
pub const MAX_MULTIPLE: u64 = 10_000;
/// Digits of a divisor that is read as an integer: sums of two such numbers fit 64 bits.
const MAX_DIGITS: u64 = 18;

/// The multiples of a decimal other than zero. The texts are plain numbers: the machine does not
/// check it.
#[derive(Clone, Debug)]
pub(super) struct Multiples {
    /// The divisor, times `10^scale`.
    modulus: u64,
    scale: usize,
    /// The modulus without its factors 2 and 5.
    odd: u64,
    /// The least power of ten, not below the scale, that takes these factors out of the modulus.
    top: usize,
    /// `10^i`, or `u64::MAX` where that is greater; for i up to `top`.
    powers: Vec<u64>,
    /// `10^i` modulo the modulus, for the same i.
    remainders: Vec<u64>,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum MultipleState {
    /// A part of the integer part.
    Integer {
        /// Its remainder modulo `odd`.
        rest: u64,
        /// For each i from `scale` to `top`, without this: the i digits that would make a multiple.
        missing: Box<[Option<u64>]>,
    },
    /// The point, and all but so many digits of those that must make this number.
    Fraction { left: usize, missing: u64 },
}

impl Multiples {
    /// The multiples of a decimal other than zero, whatever its sign.
    pub(super) fn new(of: &Decimal, bounds: &Bounds<'_>) -> Result<Self> {
        let refuse = || Error::Limit {
            limit: "max_multiple",
            value: MAX_MULTIPLE,
            message: format!(
                "the multiples of {} take more remainders than an automaton keeps; use a divisor of fewer digits, or check \
                 the number when it is read",
                of.abbreviated()
            ),
        };
        let scaled = of.magnitude().scaled_to_integer();
        if scaled.integer_digits() > MAX_DIGITS {
            return Err(refuse());
        }
        let scale = usize::try_from(of.fraction_digits()).unwrap_or(usize::MAX);
        check_states(scale, bounds)?;
        let modulus = scaled.to_u64().filter(|&modulus| modulus > 0).ok_or_else(refuse)?;
        let (mut odd, mut factors) = (modulus, [0, 0]);
        for (prime, count) in [2, 5].into_iter().zip(&mut factors) {
            while odd.is_multiple_of(prime) {
                odd /= prime;
                *count += 1;
            }
        }
        if odd > MAX_MULTIPLE {
            return Err(refuse());
        }
        let top = scale.max(factors[0]).max(factors[1]);
        let (mut powers, mut remainders) = (vec![1u64], vec![1 % modulus]);
        for i in 0..top {
            powers.push(powers[i].saturating_mul(10));
            remainders.push(remainders[i] * 10 % modulus);
        }
        Ok(Self { modulus, scale, odd, top, powers, remainders })
    }

    /// The number of `top` digits, or more, that makes a multiple with this integer part before it.
    fn missing_at_top(&self, rest: u64) -> u64 {
        let product = u128::from(rest) * u128::from(self.remainders[self.top]);
        let remainder = (product % u128::from(self.modulus)) as u64;
        (self.modulus - remainder) % self.modulus
    }

    /// What is missing at `i` digits, once `digit` is the first of the `i + 1` that make `missing`.
    fn without(&self, missing: u64, digit: u8, i: usize) -> Option<u64> {
        let taken = self.remainders[i] * u64::from(digit) % self.modulus;
        let left = (missing + self.modulus - taken) % self.modulus;
        (left < self.powers[i]).then_some(left)
    }

    /// What is missing behind the point.
    fn behind_point(&self, rest: u64, missing: &[Option<u64>]) -> Option<u64> {
        match missing.first() {
            Some(&missing) => missing,
            None => Some(self.missing_at_top(rest)).filter(|&m| m < self.powers[self.scale]),
        }
    }
}

impl NumberMachine for Multiples {
    type State = MultipleState;

    fn start(&self) -> MultipleState {
        MultipleState::Integer { rest: 0, missing: vec![Some(0); self.top - self.scale].into() }
    }

    fn step(&self, state: &MultipleState, symbol: NumberSymbol) -> Option<MultipleState> {
        match (state, symbol) {
            (MultipleState::Integer { rest, missing }, NumberSymbol::Digit(digit)) => {
                let above = missing.iter().copied().skip(1);
                let above = above.chain([Some(self.missing_at_top(*rest))]);
                let missing = (self.scale..self.top).zip(above);
                let missing = missing.map(|(i, above)| self.without(above?, digit, i)).collect();
                Some(MultipleState::Integer {
                    rest: (10 * rest + u64::from(digit)) % self.odd,
                    missing,
                })
            }
            (MultipleState::Integer { rest, missing }, NumberSymbol::Point) => {
                let missing = self.behind_point(*rest, missing)?;
                Some(MultipleState::Fraction { left: self.scale, missing })
            }
            (MultipleState::Fraction { left: 0, .. }, NumberSymbol::Digit(digit)) => {
                (digit == 0).then(|| state.clone())
            }
            (MultipleState::Fraction { left, missing }, NumberSymbol::Digit(digit)) => {
                let missing = self.without(*missing, digit, left - 1)?;
                Some(MultipleState::Fraction { left: left - 1, missing })
            }
            _ => Some(state.clone()),
        }
    }

    fn is_final(&self, state: &MultipleState) -> bool {
        match state {
            MultipleState::Integer { rest, missing } => {
                self.behind_point(*rest, missing) == Some(0)
            }
            MultipleState::Fraction { missing, .. } => *missing == 0,
        }
    }
}
