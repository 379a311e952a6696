//! Dates, times and durations beside a calendar and parsers written by hand.

use super::automaton;
use super::random::compare;

fn days_of_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(400) => 29,
        2 if year.is_multiple_of(4) && !year.is_multiple_of(100) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    }
}

fn number(text: &str) -> Option<u32> {
    (text.len() == 2 || text.len() == 4)
        .then(|| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok()))
        .flatten()
        .flatten()
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    if (year.len(), month.len(), day.len()) != (4, 2, 2) {
        return false;
    }
    let (Some(year), Some(month), Some(day)) = (number(year), number(month), number(day)) else {
        return false;
    };
    (1..=days_of_month(year, month)).contains(&day)
}

fn is_time(text: &str) -> bool {
    if !text.is_ascii() || text.len() < 9 {
        return false;
    }
    let clock = |text: &str| {
        let colon = text.as_bytes()[2] == b':';
        let (hour, minute) = (number(&text[..2]), number(&text[3..5]));
        hour.zip(minute).filter(|&(hour, minute)| colon && hour < 24 && minute < 60)
    };
    let Some(time) = clock(text) else { return false };
    let (Some(second), b':') = (number(&text[6..8]), text.as_bytes()[5]) else { return false };
    let mut rest = &text[8..];
    if let Some(fraction) = rest.strip_prefix('.') {
        rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == fraction.len() {
            return false;
        }
    }
    let is_zulu = rest == "Z" || rest == "z";
    let offset = match rest.as_bytes() {
        [b'+' | b'-', _, _, _, _, _] => clock(&rest[1..]),
        _ => None,
    };
    match second {
        60 => time == (23, 59) && (is_zulu || offset == Some((0, 0))),
        _ => second < 60 && (is_zulu || offset.is_some()),
    }
}

fn is_date_time(text: &str) -> bool {
    let Some((date, time)) = text.split_once(['T', 't']) else { return false };
    is_date(date) && is_time(time)
}

fn is_duration(text: &str) -> bool {
    // The units in turn: those that are given form a run, without one left out.
    fn units(text: &str, units: &str) -> bool {
        let mut places = Vec::new();
        let mut digits = 0;
        for c in text.chars() {
            match units.find(c) {
                Some(place) if digits > 0 => places.push(place),
                None if c.is_ascii_digit() => {
                    digits += 1;
                    continue;
                }
                _ => return false,
            }
            digits = 0;
        }
        digits == 0 && !places.is_empty() && places.windows(2).all(|pair| pair[1] == pair[0] + 1)
    }
    let Some(rest) = text.strip_prefix('P') else { return false };
    match rest.split_once('T') {
        Some(("", time)) => units(time, "HMS"),
        Some((date, time)) => units(date, "YMD") && units(time, "HMS"),
        None => units(rest, "YMD") || units(rest, "W"),
    }
}

#[test]
fn dates_are_those_of_the_calendar() {
    let date = automaton("date");
    for year in [0, 1, 4, 99, 100, 200, 400, 1582, 1900, 1999, 2000, 2023, 2024, 2100, 9999] {
        for month in 0..=99 {
            for day in 0..=99 {
                let text = format!("{year:04}-{month:02}-{day:02}");
                let expected = (1..=days_of_month(year, month)).contains(&day);
                assert_eq!(date.accepts(&text), expected, "{text}");
            }
        }
    }
    for year in 0..=9_999 {
        let text = format!("{year:04}-02-29");
        assert_eq!(date.accepts(&text), days_of_month(year, 2) == 29, "{text}");
    }
}

#[test]
fn times_are_those_of_the_clock() {
    let time = automaton("time");
    for hour in 0..=99 {
        for minute in [0, 1, 9, 10, 29, 58, 59, 60, 61, 99] {
            for second in [0, 9, 10, 59, 60, 61, 99] {
                for rest in ["Z", "z", ".5Z", "+00:00", "-00:00", "+00:01", "-23:59", ""] {
                    let text = format!("{hour:02}:{minute:02}:{second:02}{rest}");
                    assert_eq!(time.accepts(&text), is_time(&text), "{text}");
                }
                let text = format!("12:00:00+{hour:02}:{minute:02}");
                assert_eq!(time.accepts(&text), hour < 24 && minute < 60, "{text}");
            }
        }
    }
}

#[test]
fn random_times_are_those_of_parsers() {
    let given = ["2024-02-29T23:59:60.25Z", "1985-04-12T23:20:50.52Z", "1996-12-19T16:39:57-08:00"];
    assert!(compare("date-time", "0123456789-:.+TtZz", &given, is_date_time) > 2_000);
    let given = ["23:59:60Z", "23:59:60+00:00", "23:59:60-01:00", "00:00:60Z"];
    assert!(compare("time", "0123456789-:.+Zz", &given, is_time) > 2_000);
    assert!(compare("date", "0123456789-", &["2000-02-29", "1900-02-28"], is_date) > 2_000);
    let given = ["P1Y2M3DT4H5M6S", "P4W", "PT1M", "P1MT1M"];
    assert!(compare("duration", "0123PTYMDHSWp.", &given, is_duration) > 2_000);
}
