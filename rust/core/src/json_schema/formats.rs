//! The formats of JSON Schema as regular languages over code points.
//!
//! Each language is at most what its standard says: what an automaton cannot count, or what
//! validators disagree about, is left out, and the rule that leaves it out says so under
//! *Narrowed*. An automaton is made when its format is first named, and kept for the process.
//!
//! - `abnf`: languages put together as the rules of an RFC are
//! - `time`: `date`, `time`, `date-time`, `duration`
//! - `address`: `ipv4`, `ipv6`, `uuid`, and those of pydantic for Python's `ipaddress` and `uuid`
//! - `binary`: `base64`, `base64url`, `byte`
//! - `host`: `hostname`, `email`, `idn-hostname`, `idn-email`, `name-email`
//! - `reference`: `uri`, `uri-reference`, `iri`, `iri-reference`
//! - `template`: `uri-template`
//! - `pointer`: `json-pointer`, `relative-json-pointer`
//! - `regex`: `regex`, as rules of a context-free grammar; `within`: beside other conditions

mod abnf;
mod address;
mod binary;
mod host;
mod pointer;
mod reference;
pub mod regex;
mod template;
mod time;
pub mod within;

#[cfg(test)]
mod tests;

use super::options::SchemaOptions;
use super::resolve::{NoteLevel, NoteText, name_like};
use crate::budget::{Budget, Interrupt};
use crate::error::Result;
use crate::limits::Limits;
use crate::regular::{Bounds, Dfa};
use abnf::choice;
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
}

/// A format with an automaton: its name, how the automaton is made, and the automaton once it is.
struct KnownFormat {
    name: &'static str,
    make: fn(&Bounds<'_>) -> Result<Dfa>,
    made: OnceLock<Result<Dfa>>,
}

impl KnownFormat {
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

static KNOWN: [KnownFormat; 36] = [
    KnownFormat::new("base64", |bounds| binary::base64().automaton(bounds)),
    KnownFormat::new("base64url", |bounds| binary::base64url().automaton(bounds)),
    KnownFormat::new("byte", |bounds| binary::base64().automaton(bounds)),
    KnownFormat::new("date", |bounds| time::date().automaton(bounds)),
    KnownFormat::new("date-time", |bounds| time::date_time().automaton(bounds)),
    KnownFormat::new("duration", |bounds| time::duration().automaton(bounds)),
    KnownFormat::new("email", host::email),
    KnownFormat::new("hostname", host::hostname),
    KnownFormat::new("idn-email", host::idn_email),
    KnownFormat::new("idn-hostname", host::idn_hostname),
    KnownFormat::new("ipv4", |bounds| address::ipv4().automaton(bounds)),
    KnownFormat::new("ipv4interface", |bounds| address::ipv4_interface().automaton(bounds)),
    KnownFormat::new("ipv4network", |bounds| address::ipv4_network().automaton(bounds)),
    KnownFormat::new("ipv6", |bounds| address::ipv6().automaton(bounds)),
    KnownFormat::new("ipv6interface", |bounds| address::ipv6_interface().automaton(bounds)),
    KnownFormat::new("ipv6network", |bounds| address::ipv6_network(bounds)?.automaton(bounds)),
    KnownFormat::new("ipvanyaddress", |bounds| {
        choice(&[&address::ipv4(), &address::ipv6()]).automaton(bounds)
    }),
    KnownFormat::new("ipvanyinterface", |bounds| {
        choice(&[&address::ipv4_interface(), &address::ipv6_interface()]).automaton(bounds)
    }),
    KnownFormat::new("ipvanynetwork", |bounds| {
        choice(&[&address::ipv4_network(), &address::ipv6_network(bounds)?]).automaton(bounds)
    }),
    KnownFormat::new("iri", |bounds| reference::iri().automaton(bounds)),
    KnownFormat::new("iri-reference", |bounds| reference::iri_reference().automaton(bounds)),
    KnownFormat::new("json-pointer", |bounds| pointer::json_pointer().automaton(bounds)),
    KnownFormat::new("name-email", host::name_email),
    KnownFormat::new("relative-json-pointer", |bounds| {
        pointer::relative_json_pointer().automaton(bounds)
    }),
    KnownFormat::new("time", |bounds| time::time().automaton(bounds)),
    KnownFormat::new("uri", |bounds| reference::uri().automaton(bounds)),
    KnownFormat::new("uri-reference", |bounds| reference::uri_reference().automaton(bounds)),
    KnownFormat::new("uri-template", |bounds| template::uri_template().automaton(bounds)),
    KnownFormat::new("uuid", |bounds| address::uuid().automaton(bounds)),
    KnownFormat::new("uuid1", |bounds| address::uuid_of("1").automaton(bounds)),
    KnownFormat::new("uuid3", |bounds| address::uuid_of("3").automaton(bounds)),
    KnownFormat::new("uuid4", |bounds| address::uuid_of("4").automaton(bounds)),
    KnownFormat::new("uuid5", |bounds| address::uuid_of("5").automaton(bounds)),
    KnownFormat::new("uuid6", |bounds| address::uuid_of("6").automaton(bounds)),
    KnownFormat::new("uuid7", |bounds| address::uuid_of("7").automaton(bounds)),
    KnownFormat::new("uuid8", |bounds| address::uuid_of("8").automaton(bounds)),
];

/// Formats that tell how a value is stored or shown, and assert nothing.
///
/// `int32` and `int64` are among them: validators of JSON Schema let them say nothing, and `minimum`
/// and `maximum` say a range.
const OF_STORAGE: [&str; 7] = ["binary", "double", "float", "int32", "int64", "password", "path"];

/// Formats that tell how a number or an array is stored or shown. Rust, .NET and JavaScript libraries write those of
/// numbers, and json-editor writes those of arrays.
const OF_OTHER_TYPES: [&str; 16] = [
    "decimal",
    "decimal128",
    "double-int",
    "int",
    "int16",
    "int8",
    "long",
    "set",
    "table",
    "uint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unix-time",
    "utc-millisec",
];

/// What stands beside a format.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beside {
    /// Whether `type` allows strings.
    pub(super) strings: bool,
    pub(super) pattern: bool,
}

/// What there is to say of a format that is not enforced.
pub(super) fn remark_on_format(
    name: &str,
    beside: Beside,
    options: &SchemaOptions,
) -> Option<NoteText> {
    let own = options.formats.iter().map(|(name, _)| &**name);
    if options.assert_formats && own.clone().any(|known| known == name) {
        return None;
    }
    if OF_STORAGE.contains(&name) || !beside.strings && OF_OTHER_TYPES.contains(&name) {
        let message = format!("the format {name:?} tells how a value is stored or shown");
        return Some((NoteLevel::Info, message.into()));
    }
    let names = || KNOWN.iter().map(|known| known.name);
    if name == "regex" || names().any(|known| known == name) {
        let message = "formats are annotations, as the options say";
        return (!options.assert_formats).then(|| (NoteLevel::Info, message.into()));
    }
    let what = format!("the format {name:?} is not known, so it is not enforced");
    if beside.strings && beside.pattern {
        return Some((NoteLevel::Info, format!("{what}; the pattern beside it is").into()));
    }
    let meant = match name_like(name, names().chain(own)) {
        Some(known) if beside.strings => format!("did you mean {known:?}?"),
        None if beside.strings => {
            format!("write a pattern for it, or pass formats={{{name:?}: pattern}}")
        }
        _ => "formats are about strings, so write what it says in other keywords".into(),
    };
    Some((NoteLevel::Warning, format!("{what}; {meant}").into()))
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
        _ => Format::Annotation,
    })
}
