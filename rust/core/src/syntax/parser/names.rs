//! The names of all rules of a text, which are read before the rules.

use super::{BYTES_OF_TOKEN, TOKENS_BETWEEN_CHECKS};
use crate::budget::Interrupt;
use crate::error::{Error, Position, Result};
use crate::ids::RuleId;
use crate::limits::Limits;
use crate::syntax::scanner::{Kind, Scanner};
use std::collections::HashMap;

/// The names of all rules, and their order. Of rules of one name the first counts.
type Names<'t> = (HashMap<&'t str, RuleId>, Vec<(&'t str, Position)>);

pub(super) fn rule_names<'t>(
    text: &'t str,
    mut scanner: Scanner<'t>,
    limits: &Limits,
    interrupt: &Interrupt,
) -> Result<Names<'t>> {
    let mut read = 0u32;
    let mut order: Vec<(&str, Position)> = Vec::new();
    let mut token = scanner.next_token();
    while token.kind != Kind::End {
        let next = scanner.next_token();
        read += 1 + token.range().len() as u32 / BYTES_OF_TOKEN;
        if read >= TOKENS_BETWEEN_CHECKS {
            read = 0;
            interrupt.look()?;
        }
        if token.kind == Kind::Word && matches!(next.kind, Kind::Assign | Kind::Options) {
            if order.len() >= limits.max_rules {
                let line = token.position.line;
                let message = format!(
                    "line {line} defines one rule more; shorten the grammar or raise the limit"
                );
                let value = limits.max_rules as u64;
                return Err(Error::Limit { limit: "max_rules", value, message });
            }
            order.push((&text[token.range()], token.position));
        }
        token = next;
    }
    // A table that grows is written anew as a whole, which nobody can end.
    let mut names = HashMap::with_capacity(order.len());
    for (rule, &(name, _)) in order.iter().enumerate() {
        read += 1 + name.len() as u32 / BYTES_OF_TOKEN;
        if read >= TOKENS_BETWEEN_CHECKS {
            read = 0;
            interrupt.look()?;
        }
        names.entry(name).or_insert_with(|| RuleId::new(rule));
    }
    Ok((names, order))
}
