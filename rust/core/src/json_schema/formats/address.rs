//! `ipv4`, `ipv6` (RFC 3986, section 3.2.2, with the texts of RFC 4291) and `uuid` (RFC 9562).

use super::abnf::{
    Part, Rule, any_of, choice, class, digit, exactly, hex_digit, optional, repeated, sequence,
};

/// `IPv4address`: four numbers to 255, without zeros before them.
pub(super) fn ipv4() -> Rule {
    let digit = digit();
    let not_zero = class(&[('1', '9')], "");
    let octet = choice(&[
        &digit,
        &sequence(&[&not_zero, &digit]),
        &sequence(&[&"1", &digit, &digit]),
        &sequence(&[&"2", &class(&[('0', '4')], ""), &digit]),
        &sequence(&[&"25", &class(&[('0', '5')], "")]),
    ]);
    sequence(&[&octet, &".", &octet, &".", &octet, &".", &octet])
}

/// `IPv6address`, with an embedded IPv4 address; `::` stands for one group or more.
///
/// Narrowed: no zone, which is no part of an address.
pub(super) fn ipv6() -> Rule {
    ipv6_with(1)
}

/// The texts of IPv6 addresses in which `::` stands for `least` groups or more.
pub(super) fn ipv6_with(least: u32) -> Rule {
    let h16 = repeated(&hex_digit(), 1, Some(4));
    let h16_colon = sequence(&[&h16, &":"]);
    let ls32 = choice(&[&sequence(&[&h16_colon, &h16]), &ipv4()]);
    // Without `::`, eight groups.
    let mut out = vec![sequence(&[&exactly(6, &h16_colon), &ls32])];
    // Else `behind` groups follow, and as many stand before as there is room for.
    for behind in 0..=8 - least {
        let before = match 8 - least - behind {
            0 => sequence(&[]),
            most => optional(&sequence(&[&repeated(&h16_colon, 0, Some(most - 1)), &h16])),
        };
        let behind = match behind {
            0 => sequence(&[]),
            1 => h16.clone(),
            groups => sequence(&[&exactly(groups - 2, &h16_colon), &ls32]),
        };
        out.push(sequence(&[&before, &"::", &behind]));
    }
    any_of(out)
}

/// `UUID`: hexadecimal digits of either case, of any version and variant.
pub(super) fn uuid() -> Rule {
    let digit = hex_digit();
    let four = exactly(4, &digit);
    let dash: &dyn Part = &"-";
    let eight = exactly(8, &digit);
    sequence(&[&eight, dash, &four, dash, &four, dash, &four, dash, &four, &eight])
}
