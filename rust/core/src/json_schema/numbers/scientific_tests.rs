//! Numbers with exponents beside the definition: the shape by its letters, the value by exact decimals.

use super::tests::{decimal, made};
use super::*;
use proptest::prelude::*;

/// A minus, a digit other than zero, a fraction, an exponent.
fn is_scientific(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let Some((mantissa, exponent)) = unsigned.split_once(['e', 'E']) else { return false };
    let (first, fraction) = match mantissa.split_once('.') {
        Some((first, fraction)) => (first, Some(fraction)),
        None => (mantissa, None),
    };
    first.len() == 1
        && matches!(first.as_bytes()[0], b'1'..=b'9')
        && fraction.is_none_or(is_digits)
        && is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent))
}

fn is_within(text: &str, lower: Option<&Bound>, upper: Option<&Bound>) -> bool {
    let value = decimal(text);
    let holds = |bound: &Bound, side: Ordering| match value.cmp(&bound.value) {
        Ordering::Equal => !bound.is_exclusive,
        ordering => ordering == side,
    };
    lower.is_none_or(|bound| holds(bound, Ordering::Greater))
        && upper.is_none_or(|bound| holds(bound, Ordering::Less))
}

fn check(texts: &[String], lower: Option<&Bound>, upper: Option<&Bound>) {
    let found = made(|bounds| interval(lower, upper, bounds));
    let plain = plain();
    for text in texts {
        let is_number = is_scientific(text) || plain.accepts(text);
        let expected = is_number && is_within(text, lower, upper);
        assert_eq!(found.accepts(text), expected, "{text} within {lower:?} and {upper:?}");
    }
}

#[test]
fn all_short_texts() {
    let mut texts = vec![String::new()];
    let mut from = 0;
    for _ in 0..6 {
        let to = texts.len();
        for place in from..to {
            for letter in "-+0159.e".chars() {
                texts.push(format!("{}{letter}", texts[place]));
            }
        }
        from = to;
    }
    texts.retain(|text| text.len() < 4 || text.contains('e'));
    for bound in ["0", "1", "-1", "5", "0.5", "15", "-0.05", "1e-9", "1.5e10"] {
        for is_exclusive in [false, true] {
            let bound = Bound { value: decimal(bound), is_exclusive };
            check(&texts, Some(&bound), None);
            check(&texts, None, Some(&bound));
        }
    }
    check(&texts, None, None);
}

fn any_bound() -> impl Strategy<Value = Bound> {
    let value = ("-?(0|[1-9](\\.[0159]{1,3})?e-?(0|[1-9][0-9]?|1[0-9]{2}))", any::<bool>());
    value.prop_map(|(text, is_exclusive)| Bound { value: decimal(&text), is_exclusive })
}

proptest! {
    #[test]
    fn random_intervals(
        lower in proptest::option::of(any_bound()),
        upper in proptest::option::of(any_bound()),
        texts in proptest::collection::vec(
            "-?[1-9](\\.[0159]{1,4})?[eE][-+]?0{0,2}([0-9]|[1-9][0-9]|1[0-9]{2})", 40
        ),
    ) {
        // Near the bounds: their own digits and exponents, and more.
        let mut texts = texts;
        for bound in [&lower, &upper].into_iter().flatten().filter(|bound| !bound.value.is_zero()) {
            let digits: String = bound.value.digits().iter().map(|d| char::from(b'0' + d)).collect();
            let sign = if bound.value.is_negative() { "-" } else { "" };
            let exponent = bound.value.leading_exponent();
            for exponent in exponent - 1..=exponent + 1 {
                for tail in ["0", "1", "00", "01"] {
                    texts.push(format!("{sign}{}.{}{tail}e{exponent}", &digits[..1], &digits[1..]));
                }
                texts.push(format!("{sign}{}e{exponent}", &digits[..1]));
            }
        }
        check(&texts, lower.as_ref(), upper.as_ref());
    }
}
