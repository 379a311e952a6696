//! `date`, `time`, `date-time` (RFC 3339, section 5.6) and `duration` (its appendix A).

use super::abnf::{
    AbnfRule, choice, class, digit, exactly, one_of, optional, repeated, sequence, texts,
};

/// `full-date`: years 0000 to 9999 of the Gregorian calendar, carried back before its time.
pub(super) fn date() -> AbnfRule {
    let digit = digit();
    let year = exactly(4, &digit);
    let to_28 = choice(&[
        &sequence(&[&"0", &class(&[('1', '9')], "")]),
        &sequence(&[&"1", &digit]),
        &sequence(&[&"2", &class(&[('0', '8')], "")]),
    ]);
    let to_30 = choice(&[&to_28, &"29", &"30"]);
    let to_31 = choice(&[&to_30, &"31"]);
    let long = texts(&["01", "03", "05", "07", "08", "10", "12"]);
    let short = texts(&["04", "06", "09", "11"]);
    let day_of_year = choice(&[
        &sequence(&[&long, &"-", &to_31]),
        &sequence(&[&short, &"-", &to_30]),
        &sequence(&[&"02-", &to_28]),
    ]);
    choice(&[&sequence(&[&year, &"-", &day_of_year]), &sequence(&[&leap_year(), &"-02-29"])])
}

/// Years whose number four divides, but of whole centuries only those that 400 divides.
fn leap_year() -> AbnfRule {
    let by_four = choice(&[
        &sequence(&[&one_of("02468"), &one_of("048")]),
        &sequence(&[&one_of("13579"), &one_of("26")]),
    ]);
    let within = choice(&[
        &sequence(&[&"0", &one_of("48")]),
        &sequence(&[&one_of("2468"), &one_of("048")]),
        &sequence(&[&one_of("13579"), &one_of("26")]),
    ]);
    let century = exactly(2, &digit());
    choice(&[&sequence(&[&by_four, &"00"]), &sequence(&[&century, &within])])
}

/// `full-time`, `Z` of either case.
///
/// Narrowed: a leap second is written as 23:59:60 with `Z` or an offset of zero; other offsets
/// that put it at the end of a UTC day would need a state for each minute of the day.
pub(super) fn time() -> AbnfRule {
    let digit = digit();
    let hour = choice(&[
        &sequence(&[&one_of("01"), &digit]),
        &sequence(&[&"2", &class(&[('0', '3')], "")]),
    ]);
    let to_59 = sequence(&[&class(&[('0', '5')], ""), &digit]);
    let fraction = sequence(&[&".", &repeated(&digit, 1, None)]);
    let fraction = optional(&fraction);
    let zulu = one_of("Zz");
    let offset = sequence(&[&one_of("+-"), &hour, &":", &to_59]);
    let offset = choice(&[&zulu, &offset]);
    let no_offset = choice(&[&zulu, &"+00:00", &"-00:00"]);
    choice(&[
        &sequence(&[&hour, &":", &to_59, &":", &to_59, &fraction, &offset]),
        &sequence(&[&"23:59:60", &fraction, &no_offset]),
    ])
}

/// `date-time`, `T` of either case.
///
/// Narrowed: as [`time`]; and the date and the time stand apart by `T` only.
pub(super) fn date_time() -> AbnfRule {
    sequence(&[&date(), &one_of("Tt"), &time()])
}

/// `duration`: no unit is left out between two others, and weeks stand alone.
///
/// Narrowed: the letters are capitals, as ISO 8601 writes them.
pub(super) fn duration() -> AbnfRule {
    let number = repeated(&digit(), 1, None);
    let second = sequence(&[&number, &"S"]);
    let minute = sequence(&[&number, &"M", &optional(&second)]);
    let hour = sequence(&[&number, &"H", &optional(&minute)]);
    let time = sequence(&[&"T", &choice(&[&hour, &minute, &second])]);
    let day = sequence(&[&number, &"D"]);
    let month = sequence(&[&number, &"M", &optional(&day)]);
    let year = sequence(&[&number, &"Y", &optional(&month)]);
    let week = sequence(&[&number, &"W"]);
    let days = choice(&[&day, &month, &year]);
    let date = sequence(&[&days, &optional(&time)]);
    sequence(&[&"P", &choice(&[&date, &time, &week])])
}
