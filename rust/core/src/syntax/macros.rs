//! XGrammar's macros: which there are and what arguments each takes.
//!
//! Arguments are kept as written; of two named arguments of one name the later counts, as in
//! XGrammar. Nothing nests deeper than a tuple, so nothing here recurses.

use crate::error::{Position, Result};
use crate::grammar::{Macro, MacroArgument};

use super::messages::syntax;

/// The greatest token id.
pub(super) const LAST_TOKEN: i64 = i32::MAX as i64;

/// Whether a word before `(` is a macro's name.
pub(super) fn is_macro(name: &str) -> bool {
    matches!(name, "TagDispatch" | "Token" | "ExcludeToken" | "TokenTagDispatch" | "Regex" | "Substring")
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

fn only_named(call: &Macro, allowed: &[&str]) -> Check {
    match call.named.iter().find(|(name, _)| !allowed.contains(&name.as_str())) {
        Some((name, _)) => Err(format!("there is no argument `{name}`")),
        None => Ok(()),
    }
}

fn named<'m>(call: &'m Macro, name: &str) -> Option<&'m MacroArgument> {
    call.named.iter().find(|(n, _)| n == name).map(|(_, value)| value)
}

fn boolean(call: &Macro, name: &str) -> Check {
    match named(call, name) {
        None | Some(MacroArgument::Boolean(_)) => Ok(()),
        Some(_) => Err(format!("`{name}` must be true or false")),
    }
}

/// Pairs of trigger and rule; excluded triggers; and no excluded text may begin a trigger, since
/// then the trigger could never come.
fn dispatch(call: &Macro, check_trigger: fn(&MacroArgument) -> Check) -> Check {
    only_named(call, &["loop_after_dispatch", "excludes"])?;
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
    let excludes = match named(call, "excludes") {
        None => return Ok(()),
        Some(MacroArgument::Tuple(excludes)) => excludes,
        Some(_) => return Err("`excludes` must be a list in parentheses".into()),
    };
    excludes.iter().try_for_each(check_trigger)?;
    excluded_triggers(&triggers, excludes)
}

fn excluded_triggers(triggers: &[&MacroArgument], excludes: &[MacroArgument]) -> Check {
    // Sorted, the excluded texts that begin a trigger are found by one search for each of its
    // prefixes, so the cost is linear in the text but for a logarithm.
    let mut ids = std::collections::BTreeSet::new();
    let mut texts: std::collections::BTreeSet<&[u8]> = std::collections::BTreeSet::new();
    for exclude in excludes {
        match exclude {
            MacroArgument::Integer(id) => drop(ids.insert(*id)),
            MacroArgument::Text(text) => drop(texts.insert(text)),
            _ => {}
        }
    }
    let longest = texts.iter().map(|t| t.len()).max().unwrap_or(0);
    for trigger in triggers {
        let hidden = match trigger {
            MacroArgument::Integer(id) => ids.contains(id),
            MacroArgument::Text(text) => {
                (1..=text.len().min(longest)).any(|length| texts.contains(&text[..length]))
            }
            _ => false,
        };
        if hidden {
            return Err("an excluded text or token must not begin a trigger".into());
        }
    }
    Ok(())
}

fn tokens(call: &Macro) -> Check {
    only_named(call, &[])?;
    if call.positional.is_empty() {
        return Err("at least one token id is needed".into());
    }
    call.positional.iter().try_for_each(token_id)
}

fn regex(call: &Macro) -> Check {
    only_named(call, &["json_string"])?;
    boolean(call, "json_string")?;
    match call.positional.as_slice() {
        [MacroArgument::Text(_)] => Ok(()),
        _ => Err("exactly one literal, the pattern, is needed".into()),
    }
}

fn substring(call: &Macro) -> Check {
    only_named(call, &[])?;
    match call.positional.iter().all(|a| matches!(a, MacroArgument::Text(_))) {
        true => Ok(()),
        false => Err("every argument must be a literal".into()),
    }
}
