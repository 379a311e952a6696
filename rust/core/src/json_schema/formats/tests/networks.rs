//! Networks, beside a rule for each length of a prefix.

use super::*;
use crate::json_schema::formats::abnf::{
    AbnfPart, AbnfRule, any_of, hex_digit, one_of, optional, sequence,
};
use crate::json_schema::formats::address;

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

fn ipv4_network() -> AbnfRule {
    let octet = |zeros: u32| {
        let values = (0..256u32).step_by(1 << zeros).map(|value| value.to_string());
        any_of(values.map(|value| value.as_str().rule()).collect())
    };
    let of_length = |length: u32| {
        let octets = (0..4).map(|place| octet(zeros(length, place, 8)));
        let length = length.to_string();
        sequence(&[&joined(octets.collect(), "."), &"/", &length.as_str()])
    };
    any_of((0..=32).map(of_length).chain([address::ipv4()]).collect())
}

fn ipv6_network() -> AbnfRule {
    let of_length = |length: u32| {
        let group = |place: u32| group_with(zeros(length, place, 16));
        let short =
            (0..8).map(|groups| sequence(&[&joined((0..groups).map(group).collect(), ":"), &"::"]));
        let address = any_of(short.chain([joined((0..8).map(group).collect(), ":")]).collect());
        let length = length.to_string();
        sequence(&[&address, &"/", &length.as_str()])
    };
    let whole = sequence(&[&address::ipv6(), &optional(&"/128")]);
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

#[test]
fn networks_are_those_of_each_length() {
    for (name, slow) in [("ipv4network", ipv4_network()), ("ipv6network", ipv6_network())] {
        let fast = automaton(name);
        with_bounds(|bounds| {
            let slow = slow.automaton(bounds).expect("within bounds");
            for (one, other) in [(&fast, &slow), (&slow, &fast)] {
                let more = one.difference(other, bounds).expect("within bounds");
                assert!(more.is_empty(), "{name}: {:?}", more.shortest());
            }
        });
    }
}
