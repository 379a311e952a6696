//! Which of two grammars an error is of.
//!
//! Both are compared as one grammar, whose rules bear names and places that nobody wrote. Whoever
//! wrote the two is told of them as they stand.

use crate::budget::{Budget, Interrupt};
use crate::error::Error;
use crate::grammar::Grammar;
use crate::network::{Network, NetworkOptions};

/// The rules that stand for the two grammars in the one of both; the names of their rules begin with
/// these and `__`.
pub(super) const NAMES: [&str; 2] = ["left", "right"];

const SIDES: [&str; 2] = ["first", "second"];

/// The error of the network of both, as one of the first grammar that has an error by itself; of
/// both together, if each is taken alone.
pub(super) fn told(
    error: Error,
    grammars: [&Grammar; 2],
    options: &NetworkOptions,
    interrupt: &Interrupt,
) -> Error {
    if matches!(error, Error::Cancelled | Error::Deadline { .. }) {
        return error;
    }
    // A grammar without any string can be compared, so that it is no error here.
    let options = NetworkOptions { prune: false, ..options.clone() };
    for (grammar, side) in grammars.into_iter().zip(SIDES) {
        let work = Budget::new(&options.limits, interrupt);
        if let Err(error) = Network::make(grammar, &options, &work) {
            return with(error, |message| format!("in the {side} grammar: {message}"));
        }
    }
    with(error, |message| format!("both grammars together: {}", own_names(message)))
}

fn with(error: Error, say: impl FnOnce(String) -> String) -> Error {
    match error {
        Error::Unsupported { construct, message, position } => {
            Error::Unsupported { construct, message: say(message), position }
        }
        Error::Limit { limit, value, message } => {
            Error::Limit { limit, value, message: say(message) }
        }
        other => other,
    }
}

/// A message about rules of the grammar of both, about those of the two.
fn own_names(mut message: String) -> String {
    for (name, side) in NAMES.into_iter().zip(SIDES) {
        let prefix = format!("\"{name}__");
        while let Some(at) = message.find(&prefix) {
            let begin = at + prefix.len();
            let Some(size) = message[begin..].find('"') else { break };
            let own = format!("{:?} of the {side} grammar", &message[begin..begin + size]);
            message.replace_range(at..=begin + size, &own);
        }
    }
    message
}

#[cfg(test)]
mod tests {
    use crate::laboratory::compare;
    use crate::limits::Limits;
    use crate::syntax::parse;

    /// The error, empty if there is none.
    fn refused(left: &str, right: &str, limits: &Limits) -> String {
        let read = |text: &str| parse(text, "root", &Limits::default()).expect("grammar text");
        let found = compare(&read(left), &read(right), 100, limits, &Default::default());
        found.err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn errors_speak_of_the_rules_of_one_grammar() {
        let empty = "root ::= root";
        let ahead = "root ::= x \"b\"\nx ::= \"a\" (= \"c\")";
        let said = refused(empty, ahead, &Limits::default());
        assert!(
            said.starts_with("line 2, column 1: lookahead: in the second grammar: rule \"x\": ")
        );
        assert_eq!(refused(ahead, empty, &Limits::default()), said.replace("second", "first"));

        let long = format!("root ::= \"{}\"", "ab".repeat(50));
        let few = Limits { max_network_states: 60, ..Limits::default() };
        let said = refused("root ::= \"a\"", &long, &few);
        assert!(said.contains("reached: in the second grammar: rule \"root\" needs"), "{said}");
    }

    #[test]
    fn errors_of_both_together_name_the_rule_as_it_was_written() {
        // The letters that the one grammar tells apart make more edges of the other's rule.
        let wide = format!("root ::= list \"!\"\nlist ::= {}", "[^,] ".repeat(20));
        let letters: Vec<String> = ('a'..='z').map(|c| format!("\"{c}{c}\"")).collect();
        let letters = format!("root ::= {}", letters.join(" | "));
        let at = |bound: usize| {
            let limits = Limits { max_network_edges: bound, ..Limits::default() };
            [(&wide, &letters), (&letters, &wide)].map(|(a, b)| refused(a, b, &limits))
        };
        let mut together = 0;
        for bound in (500..4_000).step_by(100) {
            let [said, turned] = at(bound);
            assert!(!(said.clone() + &turned).contains("__"), "{said}\n{turned}");
            if said.contains("both grammars together: rule \"list\" of the first grammar needs") {
                let expected = "both grammars together: rule \"list\" of the second grammar needs";
                assert!(turned.contains(expected), "{turned}");
                together += 1;
            }
        }
        assert!(together > 0);
    }
}
