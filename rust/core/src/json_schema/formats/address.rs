//! `ipv4`, `ipv6` (RFC 3986, section 3.2.2, with the texts of RFC 4291), `uuid` (RFC 9562), and the
//! formats that pydantic writes for UUIDs of one version and for Python's `ipaddress`.

use super::abnf::{
    AbnfPart, AbnfRule, any_of, choice, class, digit, exactly, hex_digit, one_of, optional,
    repeated, sequence,
};
use crate::error::Result;
use crate::grammar::CharSet;
use crate::regular::{Bounds, Dfa, ScalarNfa};

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
/// A prefix may have any length from the last bit that is set: the rule says which octet has that bit, so
/// that few of its alternatives begin alike.
///
/// Narrowed: as [`ipv4_interface`].
pub(super) fn ipv4_network() -> AbnfRule {
    let octets = |keeps: &dyn Fn(u32) -> bool| {
        let values = (0..256).filter(|&value| keeps(value)).map(|value| value.to_string());
        any_of(values.map(|value| value.as_str().rule()).collect())
    };
    let any = octets(&|_| true);
    // What follows once `read` octets are read and no bit behind those of `length` may be set.
    let zeros = |read: usize, length: u32| {
        sequence(&[&".0".repeat(4 - read).as_str(), &"/", &prefix(length, 32)])
    };
    let mut rest: Option<AbnfRule> = None;
    for place in (0..4u32).rev() {
        let last = (0..8).map(|zero_bits| {
            let has_last = |value: u32| value > 0 && value.trailing_zeros() == zero_bits;
            sequence(&[&octets(&has_last), &zeros(place as usize + 1, 8 * place + 8 - zero_bits)])
        });
        let earlier = rest.map(|rest| sequence(&[&any, &".", &rest]));
        rest = Some(any_of(last.chain(earlier).collect()));
    }
    any_of(rest.into_iter().chain([sequence(&[&"0", &zeros(1, 0)]), ipv4()]).collect())
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
pub(super) fn ipv6_network(bounds: &Bounds<'_>) -> Result<AbnfRule> {
    let whole = sequence(&[&ipv6(), &optional(&"/128")]);
    Ok(any_of(vec![AbnfRule::Automaton(short_ipv6_networks(bounds)?), whole]))
}

/// IPv6 networks of fewer than 128 bits. A prefix may have any length from the last bit that is set: behind
/// the digit with that bit, all others are zero.
fn short_ipv6_networks(bounds: &Bounds<'_>) -> Result<Dfa> {
    const GROUPS: usize = 8;
    const DIGITS: usize = 4;
    const BITS: usize = 128;
    let set = |digits: &str| CharSet::new(digits.chars().map(|c| (u32::from(c), u32::from(c))));
    let mut nfa = ScalarNfa::new();
    let (start, end) = (nfa.add_state(), nfa.add_state());
    nfa.add_start(start);
    nfa.set_final(end);
    // Behind the slash: a length, or a greater one.
    let lengths: Vec<u32> = (0..BITS).map(|_| nfa.add_state()).collect();
    for (length, &state) in lengths.iter().enumerate() {
        AbnfRule::Text(length.to_string()).add_to(&mut nfa, state, end);
        if let Some(&longer) = lengths.get(length + 1) {
            nfa.add_epsilon(state, longer);
        }
    }
    // Behind some groups of which the last bit that is set is the one before `length`.
    let mut behind = vec![vec![None; BITS]; GROUPS + 1];
    for groups in (0..=GROUPS).rev() {
        for length in 0..BITS.min(16 * groups + 1) {
            let state = if groups == 0 { start } else { nfa.add_state() };
            behind[groups][length] = Some(state);
            if groups == GROUPS {
                nfa.add_edge(state, &set("/"), lengths[length]);
                continue;
            }
            AbnfRule::Text("::/".to_owned()).add_to(&mut nfa, state, lengths[length]);
            let mut zeros = state;
            if groups > 0 {
                zeros = nfa.add_state();
                nfa.add_edge(state, &set(":"), zeros);
            }
            for _ in 0..DIGITS {
                let next = nfa.add_state();
                nfa.add_edge(zeros, &set("0"), next);
                nfa.add_epsilon(next, behind[groups + 1][length].unwrap_or(next));
                zeros = next;
            }
        }
    }
    // Groups before the one with that bit, digit by digit.
    let mut here = start;
    for group in 0..GROUPS {
        let next_group = nfa.add_state();
        for digit in 1..=DIGITS {
            for (zero_bits, digits) in ["13579BDFbdf", "26AEae", "4Cc", "8"].iter().enumerate() {
                let mut last = nfa.add_state();
                nfa.add_edge(here, &set(digits), last);
                for zeros in 0..=DIGITS - digit {
                    let length = 16 * group + 16 - 4 * zeros - zero_bits;
                    if let Some(&Some(state)) = behind[group + 1].get(length) {
                        nfa.add_epsilon(last, state);
                    }
                    let next = nfa.add_state();
                    nfa.add_edge(last, &set("0"), next);
                    last = next;
                }
            }
            let next = nfa.add_state();
            nfa.add_edge(here, &set("0123456789ABCDEFabcdef"), next);
            nfa.add_edge(next, &set(":"), next_group);
            here = next;
        }
        here = next_group;
    }
    Dfa::from_nfa(&nfa, bounds)
}
