//! What stands between the parts of arrays and objects: white space, separators, lines.

use super::automaton::DraftAutomaton;
use super::{Emitter, RuleKey};
use crate::json_schema::options::Whitespace;

/// What stands between the parts of arrays and objects at one level.
pub(super) struct Gaps {
    /// Behind the opening bracket, where something follows.
    pub(super) open: Spacing,
    /// Before a comma, and before the closing bracket behind something.
    pub(super) before_comma: Spacing,
    pub(super) after_comma: Spacing,
    pub(super) before_close: Spacing,
    pub(super) before_colon: Spacing,
    pub(super) after_colon: Spacing,
}

#[derive(Clone)]
pub(super) enum Spacing {
    /// White space as the options say.
    Free,
    /// This text.
    Text(Vec<u8>),
}

impl Emitter<'_, '_> {
    pub(super) fn level_below(&self, level: u32) -> u32 {
        let options = self.options();
        let counts =
            options.max_depth.is_some() || matches!(options.whitespace, Whitespace::Indented(..));
        if counts { level + 1 } else { 0 }
    }

    /// Whether something may stand inside of a bracket at a level.
    pub(super) fn is_too_deep(&self, level: u32) -> bool {
        let options = self.options();
        let most = match options.whitespace {
            Whitespace::Indented(..) => Some(options.max_indented_levels),
            _ => None,
        };
        most.into_iter().chain(options.max_depth).any(|most| level >= most)
    }

    pub(super) fn gaps(&self, level: u32) -> Gaps {
        let text = |text: &str| Spacing::Text(text.as_bytes().to_vec());
        match &self.options().whitespace {
            Whitespace::Any(_) => Gaps {
                open: Spacing::Free,
                before_comma: Spacing::Free,
                after_comma: Spacing::Free,
                before_close: Spacing::Free,
                before_colon: Spacing::Free,
                after_colon: Spacing::Free,
            },
            Whitespace::Separators(item, name) => Gaps {
                open: text(""),
                before_comma: text(""),
                after_comma: text(item.strip_prefix(',').unwrap_or(item)),
                before_close: text(""),
                before_colon: text(""),
                after_colon: text(name.strip_prefix(':').unwrap_or(name)),
            },
            Whitespace::Indented(width, item, name) => {
                let line = |level: u32| {
                    let mut line = vec![b'\n'];
                    line.resize(1 + (width * level) as usize, b' ');
                    line
                };
                let mut after_comma = item.strip_prefix(',').unwrap_or(item).as_bytes().to_vec();
                after_comma.extend(line(level + 1));
                Gaps {
                    open: Spacing::Text(line(level + 1)),
                    before_comma: text(""),
                    after_comma: Spacing::Text(after_comma),
                    before_close: Spacing::Text(line(level)),
                    before_colon: text(""),
                    after_colon: text(name.strip_prefix(':').unwrap_or(name)),
                }
            }
        }
    }

    /// Reads a gap; the state behind it.
    pub(super) fn gap(&mut self, automaton: &mut DraftAutomaton, from: u32, gap: &Spacing) -> u32 {
        match gap {
            Spacing::Text(text) => automaton.text(from, text, None),
            Spacing::Free => {
                let to = automaton.state();
                let space = self.call(RuleKey::Whitespace);
                automaton.part(from, space, to);
                to
            }
        }
    }

    /// Reads a comma and what is around it.
    pub(super) fn comma(&mut self, out: &mut DraftAutomaton, from: u32, gaps: &Gaps) -> u32 {
        let at = self.gap(out, from, &gaps.before_comma);
        let at = out.text(at, b",", None);
        self.gap(out, at, &gaps.after_comma)
    }
}
