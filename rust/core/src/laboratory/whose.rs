//! Which of two grammars an error is of.
//!
//! Both are compared as one grammar, whose rules bear names and places that nobody wrote. Whoever
//! wrote the two is told of them as they stand.

use crate::error::Error;
use crate::grammar::Grammar;
use crate::network::{Network, NetworkOptions};
use crate::work::Work;

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
    go_on: &mut dyn FnMut() -> bool,
) -> Error {
    if error == Error::Cancelled {
        return error;
    }
    // A grammar without any string can be compared, so that it is no error here.
    let options = NetworkOptions { prune: false, ..options.clone() };
    for (grammar, side) in grammars.into_iter().zip(SIDES) {
        let work = Work::new(&options.limits, go_on);
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
