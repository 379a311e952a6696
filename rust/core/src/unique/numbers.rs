//! Numbers by value: `1`, `1.0` and `10e-1` are one.

use crate::grammar::UniqueItems;

/// What the key of a number begins with.
pub(super) const NUMBER: u8 = b'#';

/// The key of the value of a JSON number: its sign, its digits without zeros at either end, and the
/// exponent of the last of them, whatever the size of that. All zeros have one key. What is spelled of
/// the same letters and is no number has some key that no number has.
pub(super) fn key(text: &[u8]) -> Vec<u8> {
    let (sign, text) = match text.strip_prefix(b"-") {
        Some(rest) => (&b"-"[..], rest),
        None => (&b""[..], text),
    };
    let mark = text.iter().position(|byte| matches!(byte, b'e' | b'E')).unwrap_or(text.len());
    let (mantissa, exponent) = (&text[..mark], text.get(mark + 1..).unwrap_or_default());
    let point = mantissa.iter().position(|&byte| byte == b'.').unwrap_or(mantissa.len());
    let fraction = mantissa.get(point + 1..).unwrap_or_default();
    let mut digits = [&mantissa[..point], fraction].concat();
    let zeros = digits.iter().rev().take_while(|&&digit| digit == b'0').count();
    digits.truncate(digits.len() - zeros);
    let leading = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[leading..];
    if digits.is_empty() {
        return vec![NUMBER, b'0'];
    }
    let shift = zeros as i64 - fraction.len() as i64;
    [&[NUMBER], sign, digits, b"e", &sum(exponent, shift)].concat()
}

/// Whether some bytes are the key of a number, or its beginning.
pub(super) fn is_part(key: &[u8]) -> bool {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    key.split_first().is_some_and(|(&tag, text)| tag == NUMBER && text.iter().all(is_part))
}

/// Whether the digits of a number that may go on are all zeros.
pub(super) fn is_zero(text: &[u8]) -> bool {
    let mantissa = text.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    !mantissa.into_iter().any(|byte| (b'1'..=b'9').contains(byte))
}

/// What matters of a number that has begun for whether it may have many values.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    /// Whether a digit other than zero stands before the exponent.
    has_digit: bool,
    has_point: bool,
    has_exponent: bool,
}

impl Begun {
    /// It with more of its text behind.
    pub(super) fn with(mut self, more: &[u8]) -> Self {
        for byte in more {
            match byte {
                b'.' => self.has_point = true,
                b'e' | b'E' => self.has_exponent = true,
                b'1'..=b'9' => self.has_digit |= !self.has_exponent,
                _ => {}
            }
        }
        self
    }

    /// Whether the number may still have infinitely many values.
    pub(super) fn is_endless(self, items: UniqueItems) -> bool {
        let is_integer = !self.has_point && !self.has_exponent;
        self.has_digit && (items.endless_numbers || items.endless_integers && is_integer)
    }
}

/// A decimal integer of any length and a small one together.
fn sum(text: &[u8], more: i64) -> Vec<u8> {
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if !digits.iter().all(u8::is_ascii_digit) {
        return text.to_vec();
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[zeros..];
    if digits.len() <= 18 {
        let size = digits.iter().fold(0i64, |sum, digit| sum * 10 + i64::from(digit - b'0'));
        let value = if is_negative { -size } else { size };
        return (i128::from(value) + i128::from(more)).to_string().into_bytes();
    }
    // The sign stays: the small one has fewer digits.
    let mut digits: Vec<u8> = digits.to_vec();
    let mut carry = if is_negative { -i128::from(more) } else { i128::from(more) };
    for digit in digits.iter_mut().rev() {
        carry += i128::from(*digit - b'0');
        *digit = b'0' + carry.rem_euclid(10) as u8;
        carry = carry.div_euclid(10);
    }
    let mut out = if is_negative { vec![b'-'] } else { Vec::new() };
    if carry > 0 {
        out.extend(carry.to_string().into_bytes());
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0' && carry == 0).count();
    out.extend(&digits[zeros..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_have_one_key() {
        let nines = "9".repeat(30);
        let ten = format!("1{}", "0".repeat(30));
        let texts: &[&[&str]] = &[
            &["0", "-0", "0.0", "0e5", "-0.00E-7"],
            &["1", "1.0", "1e0", "10e-1", "0.1e1", "0.001E+3", "1.000", "1e00"],
            &["-1", "-1.0"],
            &["10", "1e1", "1E+01"],
            &["0.5", "5e-1", "50e-2"],
            &["123.25", "12325e-2", "1.2325e2"],
            &[&format!("1e{ten}"), &format!("10e{nines}"), &format!("0.1e1{}1", "0".repeat(29))],
            &[&format!("1e-{nines}"), &format!("0.1e-{}8", "9".repeat(29))],
            &[&format!("1e-{ten}"), &format!("0.1e-{nines}")],
            &["1e5", "100000", "1.00000e5"],
        ];
        let mut keys = Vec::new();
        for group in texts {
            let key = key(group[0].as_bytes());
            for text in *group {
                assert_eq!(super::key(text.as_bytes()), key, "{text}");
            }
            assert!(!keys.contains(&key), "{group:?}");
            keys.push(key);
        }
    }

    #[test]
    fn what_is_no_number_has_a_key_of_its_own() {
        for text in ["1e5-3", "1e--", "1e.", "1.2.3", "--1", "1e+-2"] {
            let key = key(text.as_bytes());
            assert!(!["0", "1", "5", "12"].iter().any(|one| super::key(one.as_bytes()) == key));
        }
    }

    #[test]
    fn a_number_of_zeros_may_stay_zero() {
        for text in ["0", "-0", "-", "0.", "0.000", "0e", "0.0e12", "0E-3"] {
            assert!(is_zero(text.as_bytes()), "{text}");
        }
        for text in ["1", "0.01", "10", "1e0", "-0.5"] {
            assert!(!is_zero(text.as_bytes()), "{text}");
        }
    }
}
