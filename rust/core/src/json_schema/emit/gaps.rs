//! What stands between the parts of arrays and objects: white space, separators, lines.

use super::automaton::Automaton;
use super::{Emitter, RuleKey};
use crate::json_schema::options::Whitespace;

/// What stands between the parts of arrays and objects at one level.
pub(super) struct Gaps {
    /// Behind the opening bracket, where something follows.
    pub(super) open: Gap,
    /// Before a comma, and before the closing bracket behind something.
    pub(super) before_comma: Gap,
    pub(super) after_comma: Gap,
    pub(super) before_close: Gap,
    pub(super) before_colon: Gap,
    pub(super) after_colon: Gap,
}

#[derive(Clone)]
pub(super) enum Gap {
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
        let text = |text: &str| Gap::Text(text.as_bytes().to_vec());
        match &self.options().whitespace {
            Whitespace::Any(_) => Gaps {
                open: Gap::Free,
                before_comma: Gap::Free,
                after_comma: Gap::Free,
                before_close: Gap::Free,
                before_colon: Gap::Free,
                after_colon: Gap::Free,
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
                    open: Gap::Text(line(level + 1)),
                    before_comma: text(""),
                    after_comma: Gap::Text(after_comma),
                    before_close: Gap::Text(line(level)),
                    before_colon: text(""),
                    after_colon: text(name.strip_prefix(':').unwrap_or(name)),
                }
            }
        }
    }

    /// Reads a gap; the state behind it.
    pub(super) fn gap(&mut self, automaton: &mut Automaton, from: u32, gap: &Gap) -> u32 {
        match gap {
            Gap::Text(text) => automaton.text(from, text, None),
            Gap::Free => {
                let to = automaton.state();
                let space = self.call(RuleKey::Whitespace);
                automaton.part(from, space, to);
                to
            }
        }
    }

    /// Reads a comma and what is around it.
    pub(super) fn comma(&mut self, out: &mut Automaton, from: u32, gaps: &Gaps) -> u32 {
        let at = self.gap(out, from, &gaps.before_comma);
        let at = out.text(at, b",", None);
        self.gap(out, at, &gaps.after_comma)
    }
}
