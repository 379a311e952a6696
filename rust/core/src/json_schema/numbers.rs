//! Automata over the spellings of numbers.
//!
//! A number is spelled canonically as a plain decimal, `-?(0|[1-9][0-9]*)(\.[0-9]+)?`, without a
//! minus before a zero; zeros at the end of a fraction are allowed. Each set of numbers here is the
//! set of all such spellings of its values, so sets combine as values do: the intersection of
//! [`at_least`] and [`at_most`] is the interval. Complements are taken within [`plain`].
//!
//! | file | |
//! | --- | --- |
//! | `machine.rs` | automata given by a step function, products of them, and their tables |
//! | `shape.rs` | which texts are numbers at all: fractions, exponents, no minus before a zero |
//! | `comparison.rs` | comparison with a bound, of any length |
//! | `multiples.rs` | multiples of a decimal |
//! | `scientific.rs` | `5e-05`: the spellings with an exponent that are compared with bounds |
//! | `values.rs` | finite sets of values |

mod comparison;
mod machine;
mod multiples;
mod scientific;
mod shape;
mod values;

use super::decimal::Decimal;
use crate::budget::{Budget, Interrupt};
use crate::error::Result;
use crate::limits::Limits;
use crate::regular::{Bounds, Dfa};
use comparison::DecimalComparison;
use machine::{NumberMachine, Union, check_states};
use multiples::Multiples;
use scientific::{ScientificComparison, ScientificShape};
use shape::{DigitRuns, Fraction, NumberShape};
use std::cmp::Ordering;
use std::sync::LazyLock;

pub use multiples::MAX_MULTIPLE;
pub use values::values;

/// How numbers are spelled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NumberOptions {
    /// Whether integers may carry a fraction of zeros: `1.0` beside `1`.
    pub integers_with_fraction: bool,
}

/// The side of zero on which numbers lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// All numbers.
    Any,
    /// Zero and above.
    NonNegative,
    /// Above zero.
    Positive,
    /// Zero and below.
    NonPositive,
    /// Below zero.
    Negative,
}

/// One end of an interval.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Where the interval ends.
    pub value: Decimal,
    /// Whether the value itself lies outside.
    pub is_exclusive: bool,
}

impl Bound {
    /// A bound that belongs to its interval.
    pub fn inclusive(value: Decimal) -> Self {
        Self { value, is_exclusive: false }
    }

    /// A bound that does not belong to its interval.
    pub fn exclusive(value: Decimal) -> Self {
        Self { value, is_exclusive: true }
    }
}

/// What must hold of a number, all of it at once; by default nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Conditions {
    /// Where the numbers begin.
    pub lower: Option<Bound>,
    /// Where the numbers end.
    pub upper: Option<Bound>,
    /// Whether the numbers are integers, and how these are spelled.
    pub integers: Option<NumberOptions>,
    /// What the numbers are multiples of.
    pub multiple_of: Option<Decimal>,
}

/// All numbers that meet the conditions, made in one walk: what the intersection of the single
/// conditions is, without these.
///
/// # Errors
/// [`crate::error::Error::Limit`]: `max_multiple` where the divisor has too great a modulus,
/// `max_automaton_states` where a bound or a divisor has too many digits; those of the budget.
pub fn matching(conditions: &Conditions, bounds: &Bounds<'_>) -> Result<Dfa> {
    let Conditions { lower, upper, integers, multiple_of } = conditions;
    if multiple_of.as_ref().is_some_and(Decimal::is_zero) {
        return Ok(Dfa::nothing());
    }
    let compared = |bound: &Option<Bound>, side| {
        let bound = bound.as_ref()?;
        Some(DecimalComparison::new(
            &bound.value,
            &[side, Ordering::Equal][..2 - usize::from(bound.is_exclusive)],
        ))
    };
    let fraction = match integers {
        None => Fraction::Any,
        Some(NumberOptions { integers_with_fraction: false }) => Fraction::None,
        Some(NumberOptions { integers_with_fraction: true }) => Fraction::Zeros,
    };
    let shape = NumberShape { fraction, has_exponents: false };
    let divisor = multiple_of.as_ref().map(|of| Multiples::new(of, bounds)).transpose()?;
    let interval = (compared(lower, Ordering::Greater), compared(upper, Ordering::Less));
    ((shape, divisor), interval).explore(bounds)
}

/// The numbers of an interval, in plain spellings and with an exponent behind one digit and its fraction:
/// `5e-05`, `1.5E+16`.
///
/// # Errors
/// As [`matching`].
pub fn interval(lower: Option<&Bound>, upper: Option<&Bound>, bounds: &Bounds<'_>) -> Result<Dfa> {
    let compared = |bound: &Bound, side| {
        let accepted = &[side, Ordering::Equal][..2 - usize::from(bound.is_exclusive)];
        let plain = DecimalComparison::new(&bound.value, accepted);
        (plain, ScientificComparison::new(&bound.value, accepted))
    };
    let (plain_lower, lower) = lower.map(|bound| compared(bound, Ordering::Greater)).unzip();
    let (plain_upper, upper) = upper.map(|bound| compared(bound, Ordering::Less)).unzip();
    let plain = (NumberShape::PLAIN, (plain_lower, plain_upper));
    Union(plain, (ScientificShape, (lower, upper))).explore(bounds)
}

/// All numbers.
pub fn plain() -> Dfa {
    static PLAIN: LazyLock<Dfa> = LazyLock::new(|| small(&Conditions::default()));
    PLAIN.clone()
}

/// All integers.
pub fn integers(options: NumberOptions) -> Dfa {
    static BOTH: LazyLock<[Dfa; 2]> = LazyLock::new(|| {
        [false, true].map(|integers_with_fraction| {
            let integers = Some(NumberOptions { integers_with_fraction });
            small(&Conditions { integers, ..Conditions::default() })
        })
    });
    BOTH[usize::from(options.integers_with_fraction)].clone()
}

/// All numbers whose values are no integers: `1.5`, and not `1.0`.
pub fn fractions() -> Dfa {
    static FRACTIONS: LazyLock<Dfa> = LazyLock::new(|| {
        let whole = integers(NumberOptions { integers_with_fraction: true });
        unbounded(|bounds| plain().difference(&whole, bounds))
    });
    FRACTIONS.clone()
}

/// The integers from `low` to `high`, both included; `None` is no bound.
///
/// # Errors
/// As [`matching`].
pub fn integers_between(
    low: Option<&Decimal>,
    high: Option<&Decimal>,
    options: NumberOptions,
    bounds: &Bounds<'_>,
) -> Result<Dfa> {
    let bound = |value: Option<&Decimal>| value.cloned().map(Bound::inclusive);
    let (lower, upper) = (bound(low), bound(high));
    matching(&Conditions { lower, upper, integers: Some(options), multiple_of: None }, bounds)
}

/// The numbers that are not less than the bound.
///
/// # Errors
/// As [`matching`].
pub fn at_least(bound: &Decimal, bounds: &Bounds<'_>) -> Result<Dfa> {
    compared(bound, &[Ordering::Greater, Ordering::Equal], bounds)
}

/// The numbers that are not greater than the bound.
///
/// # Errors
/// As [`matching`].
pub fn at_most(bound: &Decimal, bounds: &Bounds<'_>) -> Result<Dfa> {
    compared(bound, &[Ordering::Less, Ordering::Equal], bounds)
}

/// The numbers that are greater than the bound.
///
/// # Errors
/// As [`matching`].
pub fn greater(bound: &Decimal, bounds: &Bounds<'_>) -> Result<Dfa> {
    compared(bound, &[Ordering::Greater], bounds)
}

/// The numbers that are less than the bound.
///
/// # Errors
/// As [`matching`].
pub fn less(bound: &Decimal, bounds: &Bounds<'_>) -> Result<Dfa> {
    compared(bound, &[Ordering::Less], bounds)
}

fn compared(bound: &Decimal, accepted: &[Ordering], bounds: &Bounds<'_>) -> Result<Dfa> {
    let digits = bound.integer_digits().saturating_add(bound.fraction_digits());
    check_states(usize::try_from(digits).unwrap_or(usize::MAX), bounds)?;
    (NumberShape::PLAIN, DecimalComparison::new(bound, accepted)).explore(bounds)
}

/// The integral multiples of a decimal, whatever its sign; zero has none.
///
/// # Errors
/// As [`matching`].
pub fn multiples(of: &Decimal, bounds: &Bounds<'_>) -> Result<Dfa> {
    let multiple_of = Some(of.clone());
    matching(&Conditions { multiple_of, ..Conditions::default() }, bounds)
}

/// All JSON numbers on one side of zero, also with exponents; no zero has a minus.
pub fn with_exponents(sign: Sign) -> Dfa {
    use Ordering::{Equal, Greater, Less};
    static ALL: LazyLock<[Dfa; 5]> = LazyLock::new(|| {
        let shape = NumberShape { fraction: Fraction::Any, has_exponents: true };
        let accepted: [&[Ordering]; 5] =
            [&[Less, Equal, Greater], &[Equal, Greater], &[Greater], &[Less, Equal], &[Less]];
        accepted.map(|accepted| {
            let machine = (shape, DecimalComparison::new(&Decimal::zero(), accepted));
            unbounded(|bounds| machine.explore(bounds))
        })
    });
    ALL[sign as usize].clone()
}

/// All JSON numbers with at most so many digits in a row: before the point, behind it, and in the exponent.
///
/// # Errors
/// As [`matching`].
pub fn with_digits(most: u32, bounds: &Bounds<'_>) -> Result<Dfa> {
    check_states(usize::try_from(most).unwrap_or(usize::MAX), bounds)?;
    let shape = NumberShape { fraction: Fraction::Any, has_exponents: true };
    (shape, DigitRuns { most }).explore(bounds)
}

fn small(conditions: &Conditions) -> Dfa {
    unbounded(|bounds| matching(conditions, bounds))
}

/// What a small automaton is, that no bound can touch.
fn unbounded(make: impl FnOnce(&Bounds<'_>) -> Result<Dfa>) -> Dfa {
    let budget = Budget::new(&Limits::default(), &Interrupt::default());
    make(&Bounds { budget: &budget, max_states: usize::MAX }).expect("a dozen states")
}

#[cfg(test)]
mod limit_tests;
#[cfg(test)]
mod scientific_tests;
#[cfg(test)]
mod tests;
