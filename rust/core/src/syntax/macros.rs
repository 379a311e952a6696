//! XGrammar's macros: which there are and what arguments each takes.
//!
//! Arguments are kept as written; of two named arguments of one name the later counts, as in
//! XGrammar. Nothing nests deeper than a tuple, so nothing here recurses.

use crate::error::{Position, Result};
use crate::grammar::{Macro, MacroArgument};

use super::messages::{shown, syntax};

/// The greatest token id.
pub(super) const LAST_TOKEN: i64 = i32::MAX as i64;

/// Whether a word before `(` is a macro's name.
pub(super) fn is_macro(name: &str) -> bool {
    matches!(
        name,
        "TagDispatch" | "Token" | "ExcludeToken" | "TokenTagDispatch" | "Regex" | "Substring"
    )
}

/// How each macro is written, for messages.
fn usage(name: &str) -> &'static str {
    match name {
        "TagDispatch" => {
            "TagDispatch((\"tag\", rule), ..., loop_after_dispatch=true, excludes=(\"text\", ...))"
        }
        "TokenTagDispatch" => {
            "TokenTagDispatch((token id, rule), ..., loop_after_dispatch=true, excludes=(token id, ...))"
        }
        "Token" => "Token(id, ...)",
        "ExcludeToken" => "ExcludeToken(id, ...)",
        "Regex" => "Regex(\"pattern\", json_string=false)",
        _ => "Substring(\"chunk\", ...)",
    }
}

/// Checks the arguments of a macro whose name stands at `position`.
pub(super) fn check(call: &Macro, position: Position) -> Result<()> {
    let fault = match call.name.as_str() {
        "TagDispatch" => dispatch(call, text_tag),
        "TokenTagDispatch" => dispatch(call, token_id),
        "Token" | "ExcludeToken" => tokens(call),
        "Regex" => regex(call),
        _ => substring(call),
    };
    match fault {
        Ok(()) => Ok(()),
        Err(fault) => {
            let (name, usage) = (&call.name, usage(&call.name));
            Err(syntax(position, format!("{name}: {fault}; write {usage}")))
        }
    }
}

type Check = std::result::Result<(), String>;

fn text_tag(argument: &MacroArgument) -> Check {
    match argument {
        MacroArgument::Text(text) if !text.is_empty() => Ok(()),
        _ => Err("a tag or excluded text must be a literal that is not empty".into()),
    }
}

fn token_id(argument: &MacroArgument) -> Check {
    match argument {
        MacroArgument::Integer(id) if (0..=LAST_TOKEN).contains(id) => Ok(()),
        _ => Err(format!("a token id must be an integer from 0 to {LAST_TOKEN}")),
    }
}

/// Checks that a macro has an argument of a name.
pub(super) fn check_named(call: &Macro, name: &str, position: Position) -> Result<()> {
    let known = match call.name.as_str() {
        "TagDispatch" | "TokenTagDispatch" => matches!(name, "loop_after_dispatch" | "excludes"),
        "Regex" => name == "json_string",
        _ => false,
    };
    if known {
        return Ok(());
    }
    let (of, usage) = (&call.name, usage(&call.name));
    let message = format!("{of} has no argument `{}`; write {usage}", shown(name));
    Err(syntax(position, message))
}

fn boolean(call: &Macro, name: &str) -> Check {
    match call.argument(name) {
        None | Some(MacroArgument::Boolean(_)) => Ok(()),
        Some(_) => Err(format!("`{name}` must be true or false")),
    }
}

/// Pairs of trigger and rule; excluded triggers; and no excluded text may begin a trigger, since
/// then the trigger could never come.
fn dispatch(call: &Macro, check_trigger: fn(&MacroArgument) -> Check) -> Check {
    boolean(call, "loop_after_dispatch")?;
    let mut triggers = Vec::with_capacity(call.positional.len());
    for pair in &call.positional {
        match pair {
            MacroArgument::Tuple(parts) => match parts.as_slice() {
                [trigger, MacroArgument::Rule(_)] => {
                    check_trigger(trigger)?;
                    triggers.push(trigger);
                }
                _ => return Err("each pair must be a trigger and the name of a rule".into()),
            },
            _ => return Err("each argument must be a pair in parentheses".into()),
        }
    }
    let excludes = match call.argument("excludes") {
        None => return Ok(()),
        Some(MacroArgument::Tuple(excludes)) => excludes,
        Some(_) => return Err("`excludes` must be a list in parentheses".into()),
    };
    excludes.iter().try_for_each(check_trigger)?;
    excluded_triggers(&triggers, excludes)
}

/// Triggers that begin with an excluded text. Of the excluded texts only those count that begin
/// with no other; sorted, the only one that can begin a trigger is the last not after it.
fn excluded_triggers(triggers: &[&MacroArgument], excludes: &[MacroArgument]) -> Check {
    let mut sorted: Vec<MacroKey<'_>> = excludes.iter().filter_map(key).collect();
    sorted.sort_unstable();
    let mut shortest: Vec<MacroKey<'_>> = Vec::new();
    for exclude in sorted {
        if !shortest.last().is_some_and(|last| exclude.begins_with(last)) {
            shortest.push(exclude);
        }
    }
    for trigger in triggers.iter().filter_map(|trigger| key(trigger)) {
        let after = shortest.partition_point(|exclude| *exclude <= trigger);
        if after > 0 && trigger.begins_with(&shortest[after - 1]) {
            return Err("an excluded text or token must not begin a trigger".into());
        }
    }
    Ok(())
}

/// A trigger: a token is begun by itself only.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum MacroKey<'m> {
    Token(i64),
    Text(&'m [u8]),
}

impl MacroKey<'_> {
    fn begins_with(&self, other: &MacroKey<'_>) -> bool {
        match (self, other) {
            (MacroKey::Text(whole), MacroKey::Text(start)) => whole.starts_with(start),
            _ => self == other,
        }
    }
}

fn key(argument: &MacroArgument) -> Option<MacroKey<'_>> {
    match argument {
        MacroArgument::Integer(id) => Some(MacroKey::Token(*id)),
        MacroArgument::Text(text) => Some(MacroKey::Text(text)),
        _ => None,
    }
}

fn tokens(call: &Macro) -> Check {
    if call.positional.is_empty() && call.name == "Token" {
        return Err("at least one token id is needed".into());
    }
    call.positional.iter().try_for_each(token_id)
}

fn regex(call: &Macro) -> Check {
    boolean(call, "json_string")?;
    match call.positional.as_slice() {
        [MacroArgument::Text(_)] => Ok(()),
        _ => Err("exactly one literal, the pattern, is needed".into()),
    }
}

fn substring(call: &Macro) -> Check {
    match call.positional.iter().all(|a| matches!(a, MacroArgument::Text(_))) {
        true => Ok(()),
        false => Err("every argument must be a literal".into()),
    }
}
