//! The automata beside slow statements of what they mean, on all short texts and on random numerals.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

pub(super) fn with_states<T>(max_states: usize, make: impl FnOnce(&Bounds<'_>) -> T) -> T {
    let budget = Budget::new(&Limits::default(), &Interrupt::default());
    make(&Bounds { budget: &budget, max_states })
}

pub(super) fn made(make: impl FnOnce(&Bounds<'_>) -> Result<Dfa>) -> Dfa {
    with_states(20_000, make).expect("it is within the limits")
}

pub(super) fn decimal(text: &str) -> Decimal {
    Decimal::parse(text).expect("it is a number")
}

/// All texts of at most so many of these characters.
fn texts(most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut from = 0;
    for _ in 0..most {
        let to = all.len();
        for place in from..to {
            let longer = "-01259.e".chars().map(|c| format!("{}{c}", all[place]));
            let longer: Vec<String> = longer.collect();
            all.extend(longer);
        }
        from = to;
    }
    all
}

/// A number as the definition spells it: a minus, digits before and behind the point.
#[derive(Clone, Debug)]
struct Plain {
    is_negative: bool,
    before: String,
    behind: String,
}

impl Plain {
    fn read(text: &str) -> Option<Self> {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (before, behind) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let has_point = unsigned.contains('.');
        let is_zero = unsigned.bytes().all(|c| matches!(c, b'0' | b'.'));
        let is_plain = is_digits(before)
            && (before == "0" || !before.starts_with('0'))
            && (!has_point || is_digits(behind))
            && !(is_zero && text.starts_with('-'));
        is_plain.then(|| Self {
            is_negative: text.starts_with('-'),
            before: before.into(),
            behind: behind.into(),
        })
    }

    fn is_integer(&self) -> bool {
        self.behind.bytes().all(|c| c == b'0')
    }

    /// By value: digits are padded to one length and compared as texts.
    fn compare(&self, other: &Self) -> Ordering {
        let padded = |x: &Self| {
            let before = self.before.len().max(other.before.len());
            let behind = self.behind.len().max(other.behind.len());
            format!("{:0>before$}{:0<behind$}", x.before, x.behind)
        };
        match (self.is_negative, other.is_negative) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            (false, false) => padded(self).cmp(&padded(other)),
            (true, true) => padded(other).cmp(&padded(self)),
        }
    }

    /// The number as a fraction: an integer, divided by a power of ten.
    fn fraction(&self) -> (i128, i128) {
        let digits = format!("{}{}", self.before, self.behind).parse::<i128>().expect("few digits");
        (digits, 10i128.pow(self.behind.len() as u32))
    }

    fn is_multiple_of(&self, of: &Self) -> bool {
        let ((a, b), (c, d)) = (self.fraction(), of.fraction());
        (a * d) % (b * c) == 0
    }
}

fn plain_number(text: &str) -> Plain {
    Plain::read(text).expect("it is a plain number")
}

/// Compares an automaton with a slow statement on all short texts.
fn check(dfa: &Dfa, texts: &[String], name: &str, holds: impl Fn(&Plain) -> bool) {
    for text in texts {
        let expected = Plain::read(text).is_some_and(|number| holds(&number));
        assert_eq!(dfa.accepts(text), expected, "{name}: {text}");
    }
}

pub(super) const ONE: NumberOptions = NumberOptions { integers_with_fraction: false };
const ONE_POINT_ZERO: NumberOptions = NumberOptions { integers_with_fraction: true };
const BOUNDS: [&str; 24] = [
    "0", "1", "-1", "2", "9", "-9", "10", "-10", "19", "100", "-100", "0.5", "-0.5", "0.05",
    "-0.05", "0.29", "1.25", "-1.25", "9.9", "-9.99", "10.01", "-20.5", "99999", "0.0001",
];
const DIVISORS: [&str; 27] = [
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "10",
    "12",
    "25",
    "64",
    "100",
    "125",
    "1000",
    "10000",
    "0.1",
    "0.01",
    "0.5",
    "0.25",
    "2.5",
    "1.5",
    "12.5",
    "0.3",
    "0.0005",
    "0.0000001",
    "0.075",
    "128",
];

#[test]
fn plain_numbers_and_integers() {
    let texts = texts(6);
    check(&plain(), &texts, "plain", |_| true);
    check(&integers(ONE), &texts, "integers", |x| x.behind.is_empty());
    check(&integers(ONE_POINT_ZERO), &texts, "integers, 1.0", Plain::is_integer);
    check(&fractions(), &texts, "fractions", |x| !x.is_integer());
}

#[test]
fn comparisons_on_all_short_texts() {
    let texts = texts(5);
    for bound in BOUNDS {
        let (value, number) = (decimal(bound), plain_number(bound));
        let against = |dfa: &Dfa, accepted: &[Ordering]| {
            check(dfa, &texts, &format!("{accepted:?} {bound}"), |x| {
                accepted.contains(&x.compare(&number))
            });
        };
        against(&made(|b| at_least(&value, b)), &[Ordering::Greater, Ordering::Equal]);
        against(&made(|b| at_most(&value, b)), &[Ordering::Less, Ordering::Equal]);
        against(&made(|b| greater(&value, b)), &[Ordering::Greater]);
        against(&made(|b| less(&value, b)), &[Ordering::Less]);
    }
}

#[test]
fn multiples_on_all_short_texts() {
    let texts = texts(5);
    for divisor in DIVISORS {
        let number = plain_number(divisor);
        for value in [decimal(divisor), decimal(divisor).negated()] {
            let dfa = made(|b| multiples(&value, b));
            check(&dfa, &texts, &format!("multiples of {divisor}"), |x| x.is_multiple_of(&number));
        }
    }
    assert!(made(|b| multiples(&Decimal::zero(), b)).is_empty());
}

#[test]
fn exponents_on_all_short_texts() {
    let signs = [Sign::Any, Sign::NonNegative, Sign::Positive, Sign::NonPositive, Sign::Negative];
    let expected = |text: &str, sign: Sign| {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        let is_exponent = !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_digit());
        let Some(number) = Plain::read(mantissa).filter(|_| is_exponent) else { return false };
        match (sign, number.compare(&plain_number("0"))) {
            (Sign::Any, _) => true,
            (Sign::NonNegative, order) => order != Ordering::Less,
            (Sign::Positive, order) => order == Ordering::Greater,
            (Sign::NonPositive, order) => order != Ordering::Greater,
            (Sign::Negative, order) => order == Ordering::Less,
        }
    };
    let texts = texts(6);
    for sign in signs {
        let dfa = with_exponents(sign);
        for text in &texts {
            assert_eq!(dfa.accepts(text), expected(text, sign), "{sign:?} {text}");
        }
        assert_eq!(dfa.accepts("2.5E+07"), expected("2.5e7", sign));
        assert!(!dfa.accepts("-0E5") && !dfa.accepts("1e+") && !dfa.accepts("1e+-2"));
    }
}

#[test]
fn values_in_every_spelling() {
    let texts = texts(5);
    for set in [
        &[][..],
        &["0"],
        &["-0.0"],
        &["1", "1.0", "10e-1"],
        &["1", "1.5", "1.05", "1.005"],
        &["1", "1.01", "1.001", "10.0", "10.05", "-1", "-1.001"],
        &["-2", "2", "20", "200", "0.2", "-0.2", "0.02"],
        &["9.5", "9.50", "9", "0.1", "0.12", "0.125", "1.95", "5.95", "-5.95", "12", "1e3"],
    ] {
        let decimals: Vec<Decimal> = set.iter().map(|text| decimal(text)).collect();
        let dfa = made(|b| values(&decimals, b));
        let plain: Vec<Plain> =
            decimals.iter().map(|value| plain_number(&value.to_string())).collect();
        check(&dfa, &texts, &format!("values {set:?}"), |x| {
            plain.iter().any(|value| value.compare(x) == Ordering::Equal)
        });
    }
}

#[test]
fn conditions_together_are_what_their_intersection_is() {
    for (low, high) in [("0", "1023"), ("-5", "5"), ("-1.5", "0.25"), ("0.1", "0.9"), ("7", "3")] {
        for integers in [None, Some(ONE), Some(ONE_POINT_ZERO)] {
            for multiple in [None, Some("3"), Some("0.25"), Some("100")] {
                for is_exclusive in [false, true] {
                    let bound = |text| Some(Bound { value: decimal(text), is_exclusive });
                    let multiple_of = multiple.map(decimal);
                    let conditions =
                        Conditions { lower: bound(low), upper: bound(high), integers, multiple_of };
                    let dfa = made(|b| matching(&conditions, b));
                    let ends = (decimal(low), decimal(high));
                    let slow = made(|b| {
                        let (lower, upper) = match is_exclusive {
                            true => (greater(&ends.0, b)?, less(&ends.1, b)?),
                            false => (at_least(&ends.0, b)?, at_most(&ends.1, b)?),
                        };
                        let mut all = lower.intersection(&upper, b)?;
                        if let Some(options) = integers {
                            all = all.intersection(&super::integers(options), b)?;
                        }
                        match multiple {
                            Some(of) => all.intersection(&multiples(&decimal(of), b)?, b),
                            None => Ok(all),
                        }
                    });
                    assert_eq!(dfa, slow, "{conditions:?}");
                }
            }
        }
    }
}

#[test]
fn intervals_of_integers_hold_what_lies_between() {
    for (low, high) in [(-25i64, 130), (0, 9), (0, 1023), (7, 7), (95, 105), (-1000, -98), (3, 2)] {
        let dfa = made(|b| integers_between(Some(&low.into()), Some(&high.into()), ONE, b));
        for value in -1_100..1_200i64 {
            assert_eq!(dfa.accepts(&value.to_string()), (low..=high).contains(&value));
        }
        assert!(!dfa.accepts("7.0"));
    }
    let int32 = [Decimal::from(i64::from(i32::MIN)), Decimal::from(i64::from(i32::MAX))];
    let dfa = made(|b| integers_between(Some(&int32[0]), Some(&int32[1]), ONE, b));
    assert!(dfa.accepts("-2147483648") && !dfa.accepts("-2147483649"));
    assert!(dfa.accepts("2147483647") && !dfa.accepts("2147483648"));
}

#[test]
fn sets_that_are_complements_share_nothing_and_make_all() {
    for bound in BOUNDS {
        let value = decimal(bound);
        let (low, high) = (made(|b| less(&value, b)), made(|b| at_least(&value, b)));
        assert!(made(|b| low.intersection(&high, b)).is_empty());
        assert_eq!(made(|b| low.union(&high, b)), plain(), "{bound}");
        assert_eq!(made(|b| plain().difference(&low, b)), high, "{bound}");
        let only = made(|b| at_least(&value, b)?.intersection(&at_most(&value, b)?, b));
        assert_eq!(only, made(|b| values([&value], b)), "{bound}");
    }
    assert_eq!(made(|b| multiples(&decimal("1.0"), b)), integers(ONE_POINT_ZERO));
}

/// A plain numeral near another one, or far from it.
fn near(text: &str, edit: u8, place: usize, digit: u8) -> String {
    let place = place % text.len();
    let digit = char::from(b'0' + digit);
    let mut out = text.to_owned();
    match edit {
        0 if text.as_bytes()[place].is_ascii_digit() => {
            out.replace_range(place..=place, &digit.to_string());
        }
        1 => out.insert(place, digit),
        2 => drop(out.remove(place)),
        3 => out.push(digit),
        4 => out.push_str(if text.contains('.') { "000" } else { ".00" }),
        5 => out = text.strip_prefix('-').map_or_else(|| format!("-{text}"), str::to_owned),
        6 => drop(out.pop()),
        _ => {}
    }
    out
}

const NUMERAL: &str = "-?(0|[1-9][0-9]{0,25})(\\.[0-9]{1,25})?";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn long_numerals_compare(
        bound in NUMERAL, other in NUMERAL,
        edits in prop::collection::vec((0u8..8, any::<usize>(), 0u8..10), 1..20),
    ) {
        let value = decimal(&bound);
        let number = Plain::read(&bound).unwrap_or_else(|| plain_number(&value.to_string()));
        let sets: Vec<(Dfa, &[Ordering])> = vec![
            (made(|b| at_least(&value, b)), &[Ordering::Greater, Ordering::Equal]),
            (made(|b| at_most(&value, b)), &[Ordering::Less, Ordering::Equal]),
            (made(|b| greater(&value, b)), &[Ordering::Greater]),
            (made(|b| less(&value, b)), &[Ordering::Less]),
            (made(|b| values([&value], b)), &[Ordering::Equal]),
        ];
        let near = edits.iter().map(|&(edit, place, digit)| near(&bound, edit, place, digit));
        for text in near.chain([bound.clone(), other]) {
            let order = Plain::read(&text).map(|x| x.compare(&number));
            for (dfa, accepted) in &sets {
                let expected = order.is_some_and(|order| accepted.contains(&order));
                prop_assert_eq!(dfa.accepts(&text), expected, "{} {:?} {}", &text, accepted, &bound);
            }
        }
    }

    #[test]
    fn multiples_divide(
        digits in 1i128..10_000, scale in 0usize..6,
        factors in prop::collection::vec(-1_000_000_000i128..1_000_000_000, 1..10), off in -20i128..20,
    ) {
        let spelled = |value: i128| {
            let text = format!("{:0>width$}", value.unsigned_abs(), width = scale + 1);
            let (before, behind) = text.split_at(text.len() - scale);
            let point = if scale > 0 { "." } else { "" };
            format!("{}{before}{point}{behind}", if value < 0 { "-" } else { "" })
        };
        let divisor = spelled(digits);
        let dfa = with_states(200_000, |b| multiples(&decimal(&divisor), b)).expect("a small one");
        for factor in factors {
            prop_assert_eq!(dfa.accepts(&spelled(factor * digits)), true);
            let value = factor * digits + off;
            let expected = value % digits == 0;
            prop_assert_eq!(dfa.accepts(&spelled(value)), expected, "{} {}", value, &divisor);
            let longer = spelled(factor * digits) + "1";
            prop_assert!(scale == 0 || !dfa.accepts(&longer));
        }
    }

    #[test]
    fn sets_of_values_hold_these_only(set in prop::collection::btree_set(-3_000i64..3_000, 0..60)) {
        let hundredths = |value: i64| {
            let sign = if value < 0 { "-" } else { "" };
            format!("{sign}{}.{:02}", value.abs() / 100, value.abs() % 100)
        };
        let decimals: BTreeSet<Decimal> = set.iter().map(|&value| decimal(&hundredths(value))).collect();
        let dfa = made(|b| values(&decimals, b));
        for value in -3_000..3_000 {
            let text = hundredths(value);
            prop_assert_eq!(dfa.accepts(&text), set.contains(&value), "{}", &text);
            let shortest = decimal(&text).to_string();
            prop_assert_eq!(dfa.accepts(&shortest), set.contains(&value), "{}", &shortest);
            let longer = text + "1";
            prop_assert!(!dfa.accepts(&longer));
        }
    }
}
