//! Exact decimal numbers of any length.
//!
//! A value is a sign, digits and a power of ten. Digits neither begin nor end with a zero, so equal
//! values are equal fields: `1`, `1.0` and `10e-1` are one `Decimal`, with one hash. Zeros that
//! only an exponent asks for are never written out: `1e1000000` takes as little room as `1`.

use std::cmp::Ordering;
use std::fmt;

/// Zeros that [`fmt::Display`] writes before it prefers an exponent.
const ZEROS_WRITTEN: i64 = 20;
/// Digits that [`Decimal::abbreviated`] shows.
const DIGITS_SHOWN: usize = 20;
/// Where the sum of an exponent stops: past every exponent and every length of a text.
const FAR: i64 = 1 << 56;

/// An exact decimal number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    is_negative: bool,
    /// The digits, 0 to 9 each, without a zero at either end; empty for zero.
    digits: Box<[u8]>,
    /// The power of ten by which the digits, read as an integer, are multiplied; 0 for zero.
    exponent: i64,
}

/// Why a text is not read as a decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecimalFault {
    /// The text is no JSON number.
    Syntax,
    /// The first digit stands further than [`Decimal::MAX_EXPONENT`] places from the point.
    Exponent,
}

impl fmt::Display for DecimalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecimalFault::Syntax => f.write_str("the text is no JSON number"),
            DecimalFault::Exponent => write!(
                f,
                "the exponent of the number passes {}: write a number nearer to zero or to one",
                Decimal::MAX_EXPONENT
            ),
        }
    }
}

impl Decimal {
    /// The greatest power of ten, of either sign, at which the first digit of a number may stand.
    pub const MAX_EXPONENT: i64 = 1_000_000;

    /// Reads a JSON number; `None` where [`Self::read`] refuses it.
    pub fn parse(text: &str) -> Option<Self> {
        Self::read(text).ok()
    }

    /// Reads a JSON number, in time linear in the text.
    ///
    /// # Errors
    /// [`DecimalFault::Syntax`] where the text is no JSON number; [`DecimalFault::Exponent`] where
    /// its first digit stands further than [`Self::MAX_EXPONENT`] places from the point. Zero may
    /// carry any exponent.
    pub fn read(text: &str) -> Result<Self, DecimalFault> {
        let numeral = Numeral::split(text.as_bytes()).ok_or(DecimalFault::Syntax)?;
        let written = numeral.integer.iter().chain(numeral.fraction).map(|&digit| digit - b'0');
        let mut digits: Vec<u8> = written.skip_while(|&digit| digit == 0).collect();
        let length = digits.len();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() {
            return Ok(Self::zero());
        }
        let zeros = (length - digits.len()) as i64;
        let exponent = numeral.exponent - numeral.fraction.len() as i64 + zeros;
        let value = Self { is_negative: numeral.is_negative, digits: digits.into(), exponent };
        match value.leading_exponent().abs() <= Self::MAX_EXPONENT {
            true => Ok(value),
            false => Err(DecimalFault::Exponent),
        }
    }

    /// Zero.
    pub fn zero() -> Self {
        Self { is_negative: false, digits: Box::default(), exponent: 0 }
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// Whether the value is less than zero.
    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// Whether the value has no fraction: `2`, `2.0` and `20e-1` have none.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// The digits, 0 to 9 each, without a zero at either end; none for zero.
    pub fn digits(&self) -> &[u8] {
        &self.digits
    }

    /// The power of ten by which [`Self::digits`], read as an integer, are multiplied.
    pub fn exponent(&self) -> i64 {
        self.exponent
    }

    /// How many digits stand before the point, at least one of them not zero: 0 for 0.5.
    pub(crate) fn integer_digits(&self) -> u64 {
        u64::try_from(self.digits.len() as i64 + self.exponent).unwrap_or(0)
    }

    /// How many digits stand behind the point in the shortest spelling.
    pub(crate) fn fraction_digits(&self) -> u64 {
        u64::try_from(-self.exponent).unwrap_or(0)
    }

    /// The digit that is multiplied by this power of ten.
    pub(crate) fn digit_at(&self, power: i64) -> u8 {
        let from_the_end = usize::try_from(power - self.exponent);
        let place = from_the_end.ok().and_then(|place| self.digits.len().checked_sub(place + 1));
        place.map_or(0, |place| self.digits[place])
    }

    /// The digits alone, read as an integer if there is a fraction, and else the value.
    #[must_use]
    pub(crate) fn scaled_to_integer(&self) -> Self {
        Self { exponent: self.exponent.max(0), ..self.clone() }
    }

    /// The power of ten of the first digit; 0 for zero.
    pub(crate) fn leading_exponent(&self) -> i64 {
        if self.is_zero() { 0 } else { self.exponent + self.digits.len() as i64 - 1 }
    }

    /// The value with the other sign; zero stays.
    #[must_use]
    pub fn negated(&self) -> Self {
        Self { is_negative: !self.is_negative && !self.is_zero(), ..self.clone() }
    }

    /// The value without its sign.
    #[must_use]
    pub fn magnitude(&self) -> Self {
        Self { is_negative: false, ..self.clone() }
    }

    /// The value as an integer of so many bits, where it is one.
    pub fn to_u32(&self) -> Option<u32> {
        self.to_u64().and_then(|value| u32::try_from(value).ok())
    }

    /// The value as an integer of so many bits, where it is one.
    pub fn to_u64(&self) -> Option<u64> {
        self.to_i128().and_then(|value| u64::try_from(value).ok())
    }

    /// The value as an integer, where it is one of at most 38 digits.
    fn to_i128(&self) -> Option<i128> {
        if !self.is_integer() || self.integer_digits() > 38 {
            return None;
        }
        let digits = self.digits.iter().fold(0, |sum, &digit| 10 * sum + i128::from(digit));
        let value = digits * 10i128.pow(u32::try_from(self.exponent).ok()?);
        Some(if self.is_negative { -value } else { value })
    }

    /// Whether the value is an integral multiple of a divisor, in time linear in the digits; zero
    /// has no multiples. `None` where the divisor has more than 18 digits, too many to tell.
    pub fn is_multiple_of(&self, divisor: &Self) -> Option<bool> {
        if divisor.is_zero() || self.is_zero() {
            return Some(!divisor.is_zero());
        }
        // These digits do not end in zeros, so a power of ten does not divide them.
        let Ok(power) = u32::try_from(self.exponent - divisor.exponent) else {
            return Some(false);
        };
        if divisor.digits.len() > 18 {
            return None;
        }
        let modulus = divisor.digits.iter().fold(0, |sum, &digit| 10 * sum + u128::from(digit));
        let rest = |sum: u128, &digit: &u8| (10 * sum + u128::from(digit)) % modulus;
        let mut remainder = self.digits.iter().fold(0, rest);
        let (mut factor, mut left) = (10 % modulus, power);
        while left > 0 {
            if left % 2 == 1 {
                remainder = remainder * factor % modulus;
            }
            factor = factor * factor % modulus;
            left /= 2;
        }
        Some(remainder == 0)
    }

    /// The value for a message: as it is displayed, but of long numbers only the first digits and
    /// how many there are.
    pub fn abbreviated(&self) -> String {
        if self.digits.len() <= 2 * DIGITS_SHOWN {
            return self.to_string();
        }
        let mut shown = String::from(if self.is_negative { "-" } else { "" });
        push_digits(&mut shown, &self.digits[..1]);
        shown.push('.');
        push_digits(&mut shown, &self.digits[1..DIGITS_SHOWN]);
        format!("{shown}…e{} ({} digits)", self.leading_exponent(), self.digits.len())
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Self { is_negative: value < 0, ..Self::from(value.unsigned_abs()) }
    }
}

impl From<u32> for Decimal {
    fn from(value: u32) -> Self {
        Self::from(u64::from(value))
    }
}

impl From<u64> for Decimal {
    fn from(mut value: u64) -> Self {
        if value == 0 {
            return Self::zero();
        }
        let mut exponent = 0;
        while value.is_multiple_of(10) {
            value /= 10;
            exponent += 1;
        }
        let digits = value.to_string().bytes().map(|digit| digit - b'0').collect();
        Self { is_negative: false, digits, exponent }
    }
}

impl Ord for Decimal {
    /// By value, in time linear in the digits that are written.
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.sign().cmp(&other.sign());
        let places = self.leading_exponent().cmp(&other.leading_exponent());
        // No digits end in zeros, so a number whose digits begin with another's is the greater one.
        let magnitudes = places.then_with(|| self.digits.cmp(&other.digits));
        signs.then(if self.is_negative { magnitudes.reverse() } else { magnitudes })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Decimal {
    fn sign(&self) -> i8 {
        i8::from(!self.is_zero()) - 2 * i8::from(self.is_negative)
    }
}

impl fmt::Display for Decimal {
    /// The shortest plain spelling, or one with an exponent where that takes more than 20 zeros
    /// that are no digits of the number: always a JSON number of the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.write_str("0");
        }
        let mut text = String::with_capacity(self.digits.len() + 32);
        if self.is_negative {
            text.push('-');
        }
        let before = self.leading_exponent() + 1;
        if self.exponent > ZEROS_WRITTEN || before < -ZEROS_WRITTEN {
            push_digits(&mut text, &self.digits[..1]);
            if self.digits.len() > 1 {
                text.push('.');
                push_digits(&mut text, &self.digits[1..]);
            }
            text.push_str(&format!("e{}", self.leading_exponent()));
            return f.write_str(&text);
        }
        let split = usize::try_from(before).unwrap_or(0).min(self.digits.len());
        push_digits(&mut text, &self.digits[..split]);
        if split == 0 {
            text.push('0');
        }
        push_zeros(&mut text, self.exponent);
        if split < self.digits.len() {
            text.push('.');
            push_zeros(&mut text, -before);
            push_digits(&mut text, &self.digits[split..]);
        }
        f.write_str(&text)
    }
}

fn push_digits(text: &mut String, digits: &[u8]) {
    text.extend(digits.iter().map(|&digit| char::from(b'0' + digit)));
}

fn push_zeros(text: &mut String, count: i64) {
    text.extend((0..count).map(|_| '0'));
}

/// The parts of a JSON number.
struct Numeral<'a> {
    is_negative: bool,
    integer: &'a [u8],
    fraction: &'a [u8],
    /// The exponent, not past [`FAR`] on either side.
    exponent: i64,
}

impl<'a> Numeral<'a> {
    fn split(text: &'a [u8]) -> Option<Self> {
        let (is_negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            _ => (false, text),
        };
        let (integer, rest) = leading_digits(rest)?;
        if integer.len() > 1 && integer[0] == b'0' {
            return None;
        }
        let (fraction, rest) = match rest {
            [b'.', rest @ ..] => leading_digits(rest)?,
            _ => (&[][..], rest),
        };
        let exponent = match rest {
            [] => 0,
            [b'e' | b'E', b'-', digits @ ..] => -sum(digits)?,
            [b'e' | b'E', b'+', digits @ ..] | [b'e' | b'E', digits @ ..] => sum(digits)?,
            _ => return None,
        };
        Some(Self { is_negative, integer, fraction, exponent })
    }
}

/// The digits at the start, at least one, and what follows.
fn leading_digits(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The number that these digits make, or [`FAR`] where it is greater.
fn sum(digits: &[u8]) -> Option<i64> {
    let (digits, rest) = leading_digits(digits)?;
    let add = |sum: i64, &digit: &u8| (10 * sum + i64::from(digit - b'0')).min(FAR);
    rest.is_empty().then(|| digits.iter().fold(0, add))
}

#[cfg(test)]
#[path = "decimal_tests.rs"]
mod tests;
