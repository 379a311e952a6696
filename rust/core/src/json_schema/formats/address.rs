//! `ipv4`, `ipv6` (RFC 3986, section 3.2.2, with the texts of RFC 4291), `uuid` (RFC 9562), and the
//! formats that pydantic writes for UUIDs of one version and for Python's `ipaddress`.

use super::abnf::{
    AbnfPart, AbnfRule, any_of, choice, class, digit, exactly, hex_digit, one_of, optional,
    repeated, sequence,
};

/// `IPv4address`: four numbers to 255, without zeros before them.
pub(super) fn ipv4() -> AbnfRule {
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
pub(super) fn ipv6() -> AbnfRule {
    ipv6_with(1)
}

/// The texts of IPv6 addresses in which `::` stands for `least` groups or more.
pub(super) fn ipv6_with(least: u32) -> AbnfRule {
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
pub(super) fn uuid() -> AbnfRule {
    let digit = hex_digit();
    let four = exactly(4, &digit);
    let dash: &dyn AbnfPart = &"-";
    let eight = exactly(8, &digit);
    sequence(&[&eight, dash, &four, dash, &four, dash, &four, dash, &four, &eight])
}

/// A UUID of one version, whose variant is that of RFC 9562.
pub(super) fn uuid_of(version: &str) -> AbnfRule {
    let digit = hex_digit();
    let (three, four) = (exactly(3, &digit), exactly(4, &digit));
    let dash: &dyn AbnfPart = &"-";
    let eight = exactly(8, &digit);
    let variant = one_of("89ABab");
    sequence(&[
        &eight, dash, &four, dash, &version, &three, dash, &variant, &three, dash, &four, &eight,
    ])
}

/// A decimal number from `least` to `most`, without zeros before it.
fn prefix(least: u32, most: u32) -> AbnfRule {
    any_of((least..=most).map(|length| length.to_string().as_str().rule()).collect())
}

/// An IPv4 address, with the length of a prefix or alone.
///
/// Narrowed: no mask (`/255.255.255.0`), and no zeros before the length.
pub(super) fn ipv4_interface() -> AbnfRule {
    sequence(&[&ipv4(), &optional(&sequence(&[&"/", &prefix(0, 32)]))])
}

/// An IPv4 address whose bits behind the prefix are zero; alone it is a network of itself.
///
/// Narrowed: as [`ipv4_interface`].
pub(super) fn ipv4_network() -> AbnfRule {
    let octet = |zeros: u32| {
        let values = (0..256u32).step_by(1 << zeros).map(|value| value.to_string());
        any_of(values.map(|value| value.as_str().rule()).collect())
    };
    let of_length = |length: u32| {
        let octets = (0..4).map(|place| octet(zeros(length, place, 8)));
        sequence(&[&joined(octets.collect(), "."), &"/", &prefix(length, length)])
    };
    any_of((0..=32).map(of_length).chain([ipv4()]).collect())
}

/// Bits of a group that stand behind the prefix.
fn zeros(length: u32, place: u32, bits: u32) -> u32 {
    ((place + 1) * bits).saturating_sub(length).min(bits)
}

/// Parts with a mark between them.
fn joined(parts: Vec<AbnfRule>, mark: &str) -> AbnfRule {
    let mut out = Vec::with_capacity(2 * parts.len());
    for part in parts {
        if !out.is_empty() {
            out.push(mark.rule());
        }
        out.push(part);
    }
    AbnfRule::Sequence(out.into())
}

/// An IPv6 address, with the length of a prefix or alone.
///
/// Narrowed: as [`ipv6`], and no zeros before the length.
pub(super) fn ipv6_interface() -> AbnfRule {
    sequence(&[&ipv6(), &optional(&sequence(&[&"/", &prefix(0, 128)]))])
}

/// An IPv6 address whose bits behind the prefix are zero; alone it is a network of itself.
///
/// Narrowed: as [`ipv6_interface`]; and where the prefix has fewer than 128 bits, all eight groups
/// are written, or `::` stands at the end, and no group is in decimal.
pub(super) fn ipv6_network() -> AbnfRule {
    let of_length = |length: u32| {
        let group = |place: u32| group_with(zeros(length, place, 16));
        let short =
            (0..8).map(|groups| sequence(&[&joined((0..groups).map(group).collect(), ":"), &"::"]));
        let address = any_of(short.chain([joined((0..8).map(group).collect(), ":")]).collect());
        sequence(&[&address, &"/", &prefix(length, length)])
    };
    let whole = sequence(&[&ipv6(), &optional(&"/128")]);
    any_of((0..128).map(of_length).chain([whole]).collect())
}

/// A group of IPv6 whose last bits are zero.
fn group_with(zeros: u32) -> AbnfRule {
    let digit = |from_end: u32| match zeros.saturating_sub(4 * from_end).min(4) {
        0 => hex_digit(),
        1 => one_of("02468ACEace"),
        2 => one_of("048Cc"),
        3 => one_of("08"),
        _ => one_of("0"),
    };
    let of_digits = |count: u32| AbnfRule::Sequence((0..count).rev().map(digit).collect());
    any_of((1..=4).map(of_digits).collect())
}
