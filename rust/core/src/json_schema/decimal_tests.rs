use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn decimal(text: &str) -> Decimal {
    Decimal::read(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
}

/// The value times 10^20, where that fits: an exact oracle for short numbers.
fn scaled(text: &str) -> i128 {
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: i128 = format!("{integer}{fraction}").parse().expect("few digits");
    let power = 20 + exponent.parse::<i32>().expect("small") - fraction.len() as i32;
    digits * 10i128.pow(power.try_into().expect("not so small"))
}

#[test]
fn equal_values_are_equal_and_hash_alike() {
    for group in [
        &["1", "1.0", "10e-1", "1e0", "0.1E+1", "1.00000e+00"][..],
        &["0", "-0", "0.00", "-0e5", "0e-999999999999999999999999999999"],
        &["-250", "-2.5e2", "-0.00025e6", "-250.000"],
        &["1e1000000", "10e999999", "0.001e1000003"],
    ] {
        let values: HashSet<Decimal> = group.iter().map(|text| decimal(text)).collect();
        assert_eq!(values.len(), 1, "{group:?}");
    }
    assert!(!decimal("-0").is_negative());
    assert_eq!(Decimal::zero(), decimal("-0").negated());
}

#[test]
fn only_json_numbers_are_read() {
    for text in [
        "", "-", "+1", "01", "-01", "00", ".5", "5.", "1.e5", "1e", "1e+", "1e1.0", "1 ", " 1",
        "--1", "0x1", "NaN", "Infinity", "1_000", "١", "1e5e5", "1..2", "1.2.3", "1e--5",
    ] {
        assert_eq!(Decimal::read(text), Err(DecimalFault::Syntax), "{text}");
    }
}

#[test]
fn far_exponents_are_refused() {
    let nines = "9".repeat(30);
    for text in ["1e1000001", "1e-1000001", "1e1000000000", "10e1000000", "0.1e-1000000"] {
        assert_eq!(Decimal::read(text), Err(DecimalFault::Exponent), "{text}");
    }
    for sign in ["", "+", "-"] {
        let text = format!("-1.5e{sign}{nines}");
        assert_eq!(Decimal::read(&text), Err(DecimalFault::Exponent));
        assert!(decimal(&format!("-0.0e{sign}{nines}")).is_zero());
    }
    let message = DecimalFault::Exponent.to_string();
    assert!(message.contains("1000000"), "{message}");
    assert_eq!(decimal("1e1000000").to_string(), "1e1000000");
    assert_eq!(decimal("-1e-1000000").to_string(), "-1e-1000000");
    let zeros = "0".repeat(2_000_000);
    assert_eq!(decimal(&format!("0.{zeros}1e2000001")), decimal("1"));
    assert_eq!(Decimal::parse(&format!("1{zeros}")), None);
}

#[test]
fn the_spelling_is_the_shortest_plain_one_or_has_an_exponent() {
    for (text, shown) in [
        ("1.50", "1.5"),
        ("100e0", "100"),
        ("-0.050", "-0.05"),
        ("12.34e1", "123.4"),
        ("1e-7", "0.0000001"),
        ("1e20", "100000000000000000000"),
        ("1e21", "1e21"),
        ("-12e21", "-1.2e22"),
        ("123e-40", "1.23e-38"),
        ("1e-21", "0.000000000000000000001"),
        ("1e-22", "1e-22"),
        ("3.6893488147419103e+19", "36893488147419103000"),
    ] {
        assert_eq!(decimal(text).to_string(), shown);
    }
    let long = format!("-{}7", "12".repeat(5_000));
    assert_eq!(decimal(&long).to_string(), long);
    assert_eq!(decimal(&long).abbreviated(), "-1.2121212121212121212…e10000 (10001 digits)");
    assert_eq!(decimal("0.30").abbreviated(), "0.3");
}

#[test]
fn order_looks_at_values_without_writing_zeros() {
    let rising = [
        "-1e1000000",
        "-100000",
        "-99999.9",
        "-1",
        "-0.3",
        "-0.29999999999999999999",
        "-1e-1000000",
        "0",
        "1e-1000000",
        "1.5e-999999",
        "0.29999999999999999999",
        "0.3",
        "0.31",
        "1",
        "9.99",
        "10",
        "123",
        "1e308",
        "1e1000000",
    ]
    .map(decimal);
    for (i, a) in rising.iter().enumerate() {
        for (j, b) in rising.iter().enumerate() {
            assert_eq!(a.cmp(b), i.cmp(&j), "{a} {b}");
        }
    }
}

#[test]
fn integers_are_told_from_others() {
    let whole = ["2.0", "20e-1", "1e1000000", "0.0", "-3", "4294967295", "4294967296"].map(decimal);
    assert!(whole.iter().all(Decimal::is_integer));
    assert!(!decimal("0.5").is_integer() && !decimal("1e-1000000").is_integer());
    let to_u32: Vec<_> = whole.iter().map(Decimal::to_u32).collect();
    assert_eq!(to_u32, [Some(2), Some(2), None, Some(0), None, Some(u32::MAX), None]);
    assert_eq!(decimal("18446744073709551615").to_u64(), Some(u64::MAX));
    assert_eq!(decimal("18446744073709551616").to_u64(), None);
    assert_eq!(decimal("1.5").to_u64(), None);
    assert_eq!(Decimal::from(i64::MIN), decimal("-9223372036854775808"));
    assert_eq!(Decimal::from(0i64), decimal("0"));
    assert_eq!(Decimal::from(1_000u32), decimal("1e3"));
}

#[test]
fn multiples_are_exact() {
    let is_multiple = |a: &str, b: &str| decimal(a).is_multiple_of(&decimal(b));
    for (a, b) in [
        ("0", "3"),
        ("9", "3"),
        ("-9", "3"),
        ("9", "-3"),
        ("0.0075", "0.0001"),
        ("4.5", "1.5"),
        ("1e1000000", "64"),
        ("3.0", "3"),
        ("1e308", "1e-300"),
        ("1", "0.5"),
        ("0.30", "0.1"),
    ] {
        assert_eq!(is_multiple(a, b), Some(true), "{a} {b}");
    }
    for (a, b) in [
        ("1", "3"),
        ("10", "3"),
        ("0.00751", "0.0001"),
        ("1", "10"),
        ("3", "6"),
        ("0.35", "1.5"),
        ("1", "1e1000000"),
        ("0", "0"),
        ("5", "0"),
        ("1e-1000000", "1"),
        ("1", "0.75"),
    ] {
        assert_eq!(is_multiple(a, b), Some(false), "{a} {b}");
    }
    assert_eq!(is_multiple("1e30", "1234567890123456789"), None);
    assert_eq!(is_multiple("123456789012345678e3", "123456789012345678"), Some(true));
    assert_eq!(is_multiple(&"123456789".repeat(10_000), "123456789"), Some(true));
    assert_eq!(is_multiple(&("123456789".repeat(10_000) + "1"), "123456789"), Some(false));
}

#[test]
fn digits_stand_at_their_powers() {
    let value = decimal("-120.034");
    let digits: Vec<u8> = (-5..4).rev().map(|power| value.digit_at(power)).collect();
    assert_eq!(digits, [0, 1, 2, 0, 0, 3, 4, 0, 0]);
    assert_eq!((value.integer_digits(), value.fraction_digits()), (3, 3));
    let value = decimal("0.05");
    assert_eq!((value.integer_digits(), value.fraction_digits()), (0, 2));
    let value = decimal("500");
    assert_eq!((value.integer_digits(), value.fraction_digits()), (3, 0));
    assert_eq!(decimal("1e1000000").digit_at(1_000_000), 1);
    assert_eq!(decimal("0").digit_at(0), 0);
}

#[test]
fn long_numbers_take_linear_time() {
    // Hours, where the time were quadratic.
    let text = format!("0.{}{}", "0".repeat(500_000), "9".repeat(4_000_000));
    let (a, b) = (decimal(&text), decimal(&format!("{text}0001")));
    assert!(a < b && a.negated() > b.negated());
    assert_eq!(decimal(&a.to_string()), a);
}

proptest! {
    #[test]
    fn order_and_equality_are_those_of_rationals(
        a in "-?(0|[1-9][0-9]{0,6})(\\.[0-9]{1,6})?([eE][+-]?[0-9])?",
        b in "-?(0|[1-9][0-9]{0,6})(\\.[0-9]{1,6})?([eE][+-]?[0-9])?",
    ) {
        let (x, y) = (decimal(&a), decimal(&b));
        prop_assert_eq!(x.cmp(&y), scaled(&a).cmp(&scaled(&b)));
        prop_assert_eq!(x == y, scaled(&a) == scaled(&b));
        prop_assert_eq!(x.is_integer(), scaled(&a) % 10i128.pow(20) == 0);
        let divides = !y.is_zero() && scaled(&a) % scaled(&b).max(1) == 0;
        prop_assert!(y.is_negative() || x.is_multiple_of(&y) == Some(divides));
    }

    #[test]
    fn what_is_displayed_reads_back(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,30})?([eE][+-]?[0-9]{1,5})?") {
        let value = decimal(&text);
        prop_assert_eq!(decimal(&value.to_string()), value.clone());
        prop_assert_eq!(value.negated().negated(), value);
    }

    #[test]
    fn integers_come_and_go(value: i64) {
        prop_assert_eq!(Decimal::from(value).to_string(), value.to_string());
        prop_assert_eq!(Decimal::from(value), decimal(&value.to_string()));
    }

    /// Shortest spellings of binary64 are read as the decimals that they are.
    #[test]
    fn floats_keep_their_order(a in proptest::num::f64::NORMAL, b in proptest::num::f64::NORMAL) {
        let (x, y) = (decimal(&format!("{a:e}")), decimal(&format!("{b}")));
        prop_assert_eq!(Some(x.cmp(&y)), a.partial_cmp(&b));
        prop_assert_eq!(x.to_string().parse::<f64>().ok(), Some(a));
    }

    #[test]
    fn no_text_panics(text in "[-+0-9.eE]{0,12}") {
        let is_number = text.parse::<f64>().is_ok();
        prop_assert!(Decimal::parse(&text).is_none() || is_number);
    }
}
