//! Languages put together as the rules of an RFC are.

use crate::error::Result;
use crate::grammar::CharSet;
use crate::regular::{Bounds, Dfa, ScalarNfa};
use std::rc::Rc;

/// A rule of ABNF (RFC 5234) without names, so that it says a regular language.
///
/// Texts are compared as they stand: where a rule means both cases of a letter, it says so. Rules
/// are ours and nest a few levels, so functions may call themselves on parts.
#[derive(Clone)]
pub(super) enum AbnfRule {
    /// One character of the set.
    Class(CharSet),
    /// These characters.
    Text(String),
    /// One after the other.
    Sequence(Rc<[AbnfRule]>),
    /// One of these.
    Choice(Rc<[AbnfRule]>),
    /// So many times at least and at most.
    Repeat(Rc<AbnfRule>, u32, Option<u32>),
    /// What an automaton accepts.
    Automaton(Dfa),
}

/// A part of a rule: another rule, or a text.
pub(super) trait AbnfPart {
    /// The part as a rule.
    fn rule(&self) -> AbnfRule;
}

impl AbnfPart for AbnfRule {
    fn rule(&self) -> AbnfRule {
        self.clone()
    }
}

impl AbnfPart for &str {
    fn rule(&self) -> AbnfRule {
        AbnfRule::Text((*self).to_owned())
    }
}

impl AbnfRule {
    /// The automaton of the rule.
    pub(super) fn automaton(&self, bounds: &Bounds<'_>) -> Result<Dfa> {
        let mut nfa = ScalarNfa::new();
        let (start, end) = (nfa.add_state(), nfa.add_state());
        nfa.add_start(start);
        nfa.set_final(end);
        self.add_to(&mut nfa, start, end);
        Dfa::from_nfa(&nfa, bounds)
    }

    /// Adds what reads a text of the rule from `from` on to `to`. No edge leads back to `from` or
    /// on from `to`, so parts may share them.
    pub(super) fn add_to(&self, nfa: &mut ScalarNfa, from: u32, to: u32) {
        match self {
            AbnfRule::Class(set) => nfa.add_edge(from, set, to),
            AbnfRule::Text(text) => {
                let mut here = from;
                for one in text.chars() {
                    let next = nfa.add_state();
                    nfa.add_edge(here, &CharSet::new([(u32::from(one), u32::from(one))]), next);
                    here = next;
                }
                nfa.add_epsilon(here, to);
            }
            AbnfRule::Sequence(parts) => {
                let mut here = from;
                for (place, part) in parts.iter().enumerate() {
                    let next = if place + 1 == parts.len() { to } else { nfa.add_state() };
                    part.add_to(nfa, here, next);
                    here = next;
                }
                if parts.is_empty() {
                    nfa.add_epsilon(from, to);
                }
            }
            AbnfRule::Choice(parts) => parts.iter().for_each(|part| part.add_to(nfa, from, to)),
            AbnfRule::Repeat(part, min, max) => {
                let mut here = from;
                // Without a bound, the last that must be there is the one that comes again.
                for count in 0..max.unwrap_or(min.saturating_sub(1)) {
                    if count >= *min {
                        nfa.add_epsilon(here, to);
                    }
                    let next = nfa.add_state();
                    part.add_to(nfa, here, next);
                    here = next;
                }
                if max.is_none() {
                    let again = nfa.add_state();
                    let end = if *min == 0 { again } else { nfa.add_state() };
                    nfa.add_epsilon(here, again);
                    part.add_to(nfa, again, end);
                    nfa.add_epsilon(end, again);
                    here = end;
                }
                nfa.add_epsilon(here, to);
            }
            AbnfRule::Automaton(automaton) => nfa.add_dfa(from, automaton, to),
        }
    }
}

/// One character of these ranges, or one of `characters`.
pub(super) fn class(ranges: &[(char, char)], characters: &str) -> AbnfRule {
    let ranges = ranges.iter().map(|&(first, last)| (u32::from(first), u32::from(last)));
    let single = characters.chars().map(|one| (u32::from(one), u32::from(one)));
    AbnfRule::Class(CharSet::new(ranges.chain(single)))
}

/// One character out of these.
pub(super) fn one_of(characters: &str) -> AbnfRule {
    class(&[], characters)
}

/// One character that is none of these.
pub(super) fn none_of(characters: &str) -> AbnfRule {
    let single = characters.chars().map(|one| (u32::from(one), u32::from(one)));
    AbnfRule::Class(CharSet::new(single).complement())
}

/// `ALPHA`, `DIGIT`, or one of `characters`.
pub(super) fn alphanumeric(characters: &str) -> AbnfRule {
    class(&[('A', 'Z'), ('a', 'z'), ('0', '9')], characters)
}

/// `DIGIT`.
pub(super) fn digit() -> AbnfRule {
    class(&[('0', '9')], "")
}

/// `HEXDIG`, of either case.
pub(super) fn hex_digit() -> AbnfRule {
    class(&[('0', '9'), ('A', 'F'), ('a', 'f')], "")
}

/// `pct-encoded` of RFC 3986.
pub(super) fn percent_encoded() -> AbnfRule {
    sequence(&[&"%", &hex_digit(), &hex_digit()])
}

/// One after the other.
pub(super) fn sequence(parts: &[&dyn AbnfPart]) -> AbnfRule {
    AbnfRule::Sequence(parts.iter().map(|part| part.rule()).collect())
}

/// One of these.
pub(super) fn choice(parts: &[&dyn AbnfPart]) -> AbnfRule {
    AbnfRule::Choice(parts.iter().map(|part| part.rule()).collect())
}

/// One of many.
pub(super) fn any_of(parts: Vec<AbnfRule>) -> AbnfRule {
    AbnfRule::Choice(parts.into())
}

/// One of these texts.
pub(super) fn texts(texts: &[&str]) -> AbnfRule {
    AbnfRule::Choice(texts.iter().map(AbnfPart::rule).collect())
}

/// `[part]`.
pub(super) fn optional(part: &dyn AbnfPart) -> AbnfRule {
    repeated(part, 0, Some(1))
}

/// `*part`.
pub(super) fn any_number(part: &dyn AbnfPart) -> AbnfRule {
    repeated(part, 0, None)
}

/// `min*max part`.
pub(super) fn repeated(part: &dyn AbnfPart, min: u32, max: Option<u32>) -> AbnfRule {
    AbnfRule::Repeat(Rc::new(part.rule()), min, max)
}

/// `count part`.
pub(super) fn exactly(count: u32, part: &dyn AbnfPart) -> AbnfRule {
    repeated(part, count, Some(count))
}
