//! Options: of a text as a whole, and of its rules.

use crate::error::Result;
use crate::grammar::{MacroArgument, RuleOptions};

use super::json::{self, JsonValue};
use super::messages::{shown, syntax, unsupported};
use super::tree::{Definition, LarkDocument};

/// What `%llguidance` and `%grammar_options` say.
#[derive(Default)]
pub(super) struct Settings {
    pub(super) skips_at_start: bool,
    pub(super) ignores_once: bool,
}

impl Settings {
    pub(super) fn read(document: &LarkDocument) -> Result<Self> {
        let mut out = Settings::default();
        for (text, place) in &document.options {
            for (name, value) in json::object(text, *place, "llguidance")? {
                let JsonValue::Boolean(is_set) = value else {
                    let message = format!("the option `{}` is true or false", shown(&name));
                    return Err(syntax(*place, message));
                };
                match name.as_str() {
                    "allow_initial_skip" => out.skips_at_start |= is_set,
                    "ignore_once" => out.ignores_once |= is_set,
                    // How text is cut into tokens is no matter of the grammar.
                    "no_forcing" => {}
                    "allow_invalid_utf8" if !is_set => {}
                    "allow_invalid_utf8" => {
                        return Err(unsupported(
                            "allow_invalid_utf8",
                            *place,
                            "patterns and literals are of characters: bytes that are no UTF-8 \
                             match none of them",
                        ));
                    }
                    _ => {
                        let message = format!(
                            "there is no option `{}`; the options are allow_initial_skip, \
                             ignore_once, no_forcing and allow_invalid_utf8",
                            shown(&name)
                        );
                        return Err(syntax(*place, message));
                    }
                }
            }
        }
        Ok(out)
    }
}

/// The options of a definition's rule. What `lazy`, `suffix` and `stop` say stands in its body.
pub(super) fn options(definition: &Definition) -> RuleOptions {
    let attributes = &definition.attributes;
    let stop_capture = attributes.stop_capture.iter();
    let stop_capture = stop_capture
        .map(|(name, _)| ("stop_capture".to_owned(), MacroArgument::Text(name.as_bytes().into())));
    RuleOptions {
        max_tokens: attributes.max_tokens.map(|(count, _)| count),
        max_chars: attributes.max_chars.map(|(count, _)| count),
        capture: attributes.capture.as_ref().map(|(name, _)| name.clone()),
        lazy: false,
        temperature: attributes.temperature,
        other: stop_capture.collect(),
    }
}
