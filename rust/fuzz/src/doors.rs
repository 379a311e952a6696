//! What the targets of the front doors share: limits, errors, and the texts of a grammar.

use crate::engines::{network_options, none, small_limits};
use crate::input::Input;
use tokfold_core::error::Error;
use tokfold_core::grammar::Grammar;
use tokfold_core::limits::Limits;
use tokfold_core::network::Network;
use tokfold_core::recognizer::Recognizer;

/// States of an automaton over characters that a case may have.
pub const STATES: usize = 400;

/// Bytes of a text that is led along a grammar.
const LONGEST_WALK: usize = 60;

/// Limits on what comes through a front door.
pub fn door_limits() -> Limits {
    Limits {
        max_automaton_states: STATES,
        max_schema_formulas: 3_000,
        max_schema_states: 600,
        max_set_bytes: 1 << 20,
        max_network_work: 150_000,
        ..small_limits()
    }
}

/// A limit that is reached is one of a door or of the network, with its value.
pub fn check_limit(limit: &str, value: u64, message: &str, limits: &Limits) {
    assert!(!message.is_empty(), "the limit {limit} says what to do");
    let known = match limit {
        "max_grammar_bytes" => limits.max_grammar_bytes as u64,
        "max_rules" => limits.max_rules as u64,
        "max_nesting" => limits.max_nesting as u64,
        "max_schema_formulas" => limits.max_schema_formulas as u64,
        "max_schema_states" => limits.max_schema_states as u64,
        "max_automaton_states" => limits.max_automaton_states as u64,
        "max_network_states" => limits.max_network_states as u64,
        "max_network_edges" => limits.max_network_edges as u64,
        "max_network_work" => limits.max_network_work,
        "max_set_bytes" => limits.max_set_bytes as u64,
        "max_stack_depth" => u64::from(limits.max_stack_depth),
        "max_total_work" => limits.max_total_work,
        "max_automaton_bytes" => limits.max_automaton_bytes as u64,
        // Those that are no field.
        "max_schema_alternatives"
        | "max_contained_items"
        | "max_overlapping_branches"
        | "max_unordered_names"
        | "max_name_classes"
        | "max_unevaluated_conditions"
        | "max_unevaluated_nesting"
        | "max_multiple"
        | "max_template_rules"
        | "max_token_ids" => value,
        other => panic!("{other} is no limit here: {message}"),
    };
    assert_eq!(value, known, "the limit {limit}");
}

/// A grammar whose texts can be asked for.
pub struct Texts {
    network: Option<Network>,
    limits: Limits,
}

impl Texts {
    /// The texts of a grammar; `None` where that takes too much, or is for charts alone.
    pub fn new(grammar: &Grammar, limits: &Limits) -> Option<Self> {
        let limits = limits.clone();
        let made = grammar.with_dispatches(&limits);
        let made =
            made.and_then(|grammar| Network::new(&grammar, &network_options(0, limits.clone())));
        match made {
            Ok(network) if network.is_for_charts() => None,
            Ok(network) => Some(Self { network: Some(network), limits }),
            Err(Error::Limit { limit, value, message }) => {
                check_limit(limit, value, &message, &limits);
                None
            }
            Err(Error::Syntax { message, .. } | Error::Unsupported { message, .. })
                if message.starts_with("the language is empty") =>
            {
                Some(Self { network: None, limits })
            }
            // Options of rules, which a door hands on.
            Err(Error::Unsupported { .. }) => None,
            Err(error) => panic!("what a door makes is refused: {error:?}"),
        }
    }

    /// Whether there is no text at all.
    pub fn is_empty(&self) -> bool {
        self.network.is_none()
    }

    /// What reads the texts, if there is any.
    pub fn network(&self) -> Option<&Network> {
        self.network.as_ref()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Whether a text is one of the grammar; `None` where that takes too much.
    pub fn holds(&self, text: &str) -> Option<bool> {
        self.read(text).map(|(read, is_accepted)| is_accepted && read == text.len())
    }

    /// How many bytes of a text can be read, and whether what was read is a text of the grammar.
    pub fn read(&self, text: &str) -> Option<(usize, bool)> {
        let Some(network) = &self.network else { return Some((0, false)) };
        let mut recognizer = Recognizer::new(network, &self.limits, &none()).ok()?;
        for (place, byte) in text.bytes().enumerate() {
            match recognizer.advance(byte) {
                Ok(true) => {}
                Ok(false) => return Some((place, recognizer.is_accepting())),
                Err(Error::Limit { limit, value, message }) => {
                    check_limit(limit, value, &message, &self.limits);
                    return None;
                }
                Err(error) => panic!("no recognizer says {error:?}"),
            }
        }
        Some((text.len(), recognizer.is_accepting()))
    }
}

/// Leads texts along a grammar, as the input says and mostly by some letters; those that end are
/// handed over.
pub fn walks(texts: &Texts, letters: &[u8], input: &mut Input<'_>, mut check: impl FnMut(&str)) {
    let Some(network) = texts.network() else { return };
    for _ in 0..3 {
        let Ok(mut recognizer) = Recognizer::new(network, texts.limits(), &none()) else { return };
        let mut text: Vec<u8> = Vec::new();
        loop {
            if recognizer.is_accepting() {
                check(std::str::from_utf8(&text).expect("texts of a grammar are UTF-8"));
            }
            let expected = recognizer.expected().expect("no limit");
            let is_long = text.len() >= LONGEST_WALK;
            let preferred: &[u8] = if is_long { b"\"]})" } else { letters };
            let choice = usize::from(input.byte());
            let likely: Vec<u8> =
                expected.iter().copied().filter(|byte| preferred.contains(byte)).collect();
            let among = if likely.is_empty() || choice > 240 { &expected } else { &likely };
            if among.is_empty() || text.len() > 2 * LONGEST_WALK {
                break;
            }
            let byte = among[choice % among.len()];
            match recognizer.advance(byte) {
                Ok(is_read) => assert!(is_read, "{byte} was expected behind {text:?}"),
                Err(_) => return,
            }
            text.push(byte);
        }
    }
}
