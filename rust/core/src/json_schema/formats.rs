//! The formats of JSON Schema as regular languages over code points.
//!
//! Each language is at most what its standard says: what an automaton cannot count, or what
//! validators disagree about, is left out, and the rule that leaves it out says so under
//! *Narrowed*. An automaton is made when its format is first named, and kept for the process.
//!
//! - `abnf`: languages put together as the rules of an RFC are
//! - `time`: `date`, `time`, `date-time`, `duration`
//! - `address`: `ipv4`, `ipv6`, `uuid`
//! - `host`: `hostname`, `email`
//! - `reference`: `uri`, `uri-reference`, `iri`, `iri-reference`
//! - `template`: `uri-template`
//! - `pointer`: `json-pointer`, `relative-json-pointer`
//! - `regex`: `regex`, as rules of a context-free grammar

mod abnf;
mod address;
mod host;
mod pointer;
mod reference;
pub mod regex;
mod template;
mod time;

#[cfg(test)]
mod tests;

use super::resolve::{Level, Remark, name_like};
use crate::budget::{Budget, Interrupt};
use crate::error::Result;
use crate::limits::Limits;
use crate::regular::{Bounds, Dfa};
use std::sync::OnceLock;

/// What the name of a format says about a string.
#[derive(Clone, Debug)]
pub enum Format {
    /// The strings of a regular language, over decoded text.
    Regular(Dfa),
    /// The strings of a context-free language: the rules of the module of this name.
    ContextFree(&'static str),
    /// Nothing: the name is unknown, or tells how a value is stored or shown.
    Annotation,
    /// Something that no automaton says, and why.
    Unsupported(&'static str),
}

/// A format with an automaton: its name, how the automaton is made, and the automaton once it is.
struct Known {
    name: &'static str,
    make: fn(&Bounds<'_>) -> Result<Dfa>,
    made: OnceLock<Result<Dfa>>,
}

impl Known {
    const fn new(name: &'static str, make: fn(&Bounds<'_>) -> Result<Dfa>) -> Self {
        Self { name, make, made: OnceLock::new() }
    }

    /// The automaton, made on a budget of its own: it is the same for every caller, and small.
    fn automaton(&self) -> Result<Dfa> {
        let made = self.made.get_or_init(|| {
            let budget = Budget::new(&Limits::default(), &Interrupt::default());
            (self.make)(&Bounds { budget: &budget, max_states: MAX_STATES })
        });
        made.clone()
    }
}

/// The most states of an automaton on the way to a format: five times what any of them needs.
const MAX_STATES: usize = 20_000;

static KNOWN: [Known; 16] = [
    Known::new("date", |bounds| time::date().automaton(bounds)),
    Known::new("date-time", |bounds| time::date_time().automaton(bounds)),
    Known::new("duration", |bounds| time::duration().automaton(bounds)),
    Known::new("email", host::email),
    Known::new("hostname", host::hostname),
    Known::new("ipv4", |bounds| address::ipv4().automaton(bounds)),
    Known::new("ipv6", |bounds| address::ipv6().automaton(bounds)),
    Known::new("iri", |bounds| reference::iri().automaton(bounds)),
    Known::new("iri-reference", |bounds| reference::iri_reference().automaton(bounds)),
    Known::new("json-pointer", |bounds| pointer::json_pointer().automaton(bounds)),
    Known::new("relative-json-pointer", |bounds| {
        pointer::relative_json_pointer().automaton(bounds)
    }),
    Known::new("time", |bounds| time::time().automaton(bounds)),
    Known::new("uri", |bounds| reference::uri().automaton(bounds)),
    Known::new("uri-reference", |bounds| reference::uri_reference().automaton(bounds)),
    Known::new("uri-template", |bounds| template::uri_template().automaton(bounds)),
    Known::new("uuid", |bounds| address::uuid().automaton(bounds)),
];

/// Formats that tell how a value is stored or shown, and assert nothing.
const OF_STORAGE: [&str; 6] = ["binary", "double", "float", "int32", "int64", "password"];

/// What there is to say of a format that is not enforced.
pub(super) fn remark_on_format(name: &str, is_asserted: bool) -> Option<Remark> {
    if OF_STORAGE.contains(&name) {
        let message = format!("the format {name:?} tells how a value is stored or shown");
        return Some((Level::Info, message.into()));
    }
    let names = || KNOWN.iter().map(|known| known.name);
    let others = ["idn-email", "idn-hostname", "regex"];
    if others.contains(&name) || names().any(|known| known == name) {
        let message = "formats are annotations, as the options say";
        return (!is_asserted).then(|| (Level::Info, message.into()));
    }
    let meant = match name_like(name, names()) {
        Some(known) => format!("did you mean {known:?}?"),
        None => "write a pattern for it".to_owned(),
    };
    let message = format!("the format {name:?} is not known, so it is not enforced; {meant}");
    Some((Level::Warning, message.into()))
}

/// What the format of this name says.
///
/// Each call charges the budget with the states of the automaton, even if an earlier call built it, so
/// that counted work does not depend on earlier calls.
///
/// # Errors
/// [`crate::error::Error::Limit`], or an interrupt, when the budget is spent.
pub fn format(name: &str, bounds: &Bounds<'_>) -> Result<Format> {
    if let Some(known) = KNOWN.iter().find(|known| known.name == name) {
        let automaton = known.automaton()?;
        bounds.budget.spend(automaton.num_states())?;
        return Ok(Format::Regular(automaton));
    }
    Ok(match name {
        "regex" => Format::ContextFree("regex"),
        "idn-email" => Format::Unsupported(
            "the domain of an internationalized address obeys IDNA, whose rules need tables and \
             the order of marks across labels; use \"email\", or a pattern",
        ),
        "idn-hostname" => Format::Unsupported(
            "an internationalized host name obeys IDNA, whose rules need tables and the order of \
             marks across labels; use \"hostname\", or a pattern",
        ),
        _ => Format::Annotation,
    })
}
