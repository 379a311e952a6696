//! The marks of styles: what stands around the names and the values of members, and around strings.
//!
//! Where a special token stands in a mark, the token is taken whole there, and nowhere else.

use super::automaton::DraftAutomaton;
use super::{Emitter, RuleKey};
use crate::grammar::{Expr, Macro, MacroArgument};
use crate::ids::ExprId;
use crate::json_schema::options::Style;

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    String,
    Number,
    Boolean,
    Null,
    Array,
    Object,
}

/// What stands around the parts of a member.
pub(super) struct MemberMarks {
    /// Before the name, and behind it.
    pub(super) open: &'static str,
    pub(super) named: &'static str,
    /// What the value is, and what stands behind that; by kind. `None` where it is not said.
    pub(super) kinds: Option<([&'static str; 6], &'static str)>,
    /// What stands before the value, behind white space.
    pub(super) before_value: Option<&'static str>,
    /// The end of the element; the name and `>` follow where `closes_by_name`.
    pub(super) close: &'static str,
    pub(super) closes_by_name: bool,
    /// The beginning of an item, where arrays and objects within values are written in elements
    /// too.
    pub(super) item: Option<&'static str>,
    /// Whether white space may stand around values that are no strings, and around strings.
    pub(super) pads_values: bool,
    pub(super) pads_strings: bool,
    /// Characters of names that are spelled otherwise.
    pub(super) escapes: &'static [(char, &'static str)],
    /// The character that ends a name: where it is not spelled otherwise, no name has it.
    pub(super) terminator: char,
}

const QWEN: MemberMarks = MemberMarks {
    open: "<parameter=",
    named: ">",
    kinds: None,
    before_value: None,
    close: "</parameter>",
    closes_by_name: false,
    item: None,
    pads_values: true,
    pads_strings: true,
    escapes: &[],
    terminator: '>',
};

const MINIMAX: MemberMarks =
    MemberMarks { open: "<parameter name=\"", named: "\">", terminator: '"', ..QWEN };

const MINIMAX_M3: MemberMarks = MemberMarks {
    open: "]<]minimax[>[<",
    close: "]<]minimax[>[</",
    closes_by_name: true,
    item: Some("]<]minimax[>[<item>"),
    pads_values: false,
    pads_strings: false,
    ..QWEN
};

const DEEPSEEK: MemberMarks = MemberMarks {
    open: "<｜DSML｜parameter name=\"",
    named: "\" string=\"",
    kinds: Some((["true", "false", "false", "false", "false", "false"], "\">")),
    close: "</｜DSML｜parameter>",
    pads_strings: false,
    terminator: '"',
    ..QWEN
};

const DEEPSEEK_V4_1: MemberMarks =
    MemberMarks {
        open: "<｜DSML｜ parameter name=\"", close: "</｜DSML｜ parameter>", ..DEEPSEEK
    };

const GLM: MemberMarks = MemberMarks {
    open: "<arg_key>",
    named: "</arg_key>",
    before_value: Some("<arg_value>"),
    close: "</arg_value>",
    terminator: '<',
    ..QWEN
};

const COHERE: MemberMarks = MemberMarks {
    open: "<cofl:value name=\"",
    named: "\" type=\"",
    kinds: Some((["raw", "json", "json", "json", "list", "dict"], "\">")),
    close: "</cofl:value>",
    item: Some("<cofl:value type=\""),
    pads_strings: false,
    escapes: &[('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")],
    terminator: '"',
    ..QWEN
};

const KIMI_K3: MemberMarks = MemberMarks {
    open: "<|open|>argument key=\"",
    named: "\" type=\"",
    kinds: Some((["string", "number", "boolean", "null", "array", "object"], "\"<|sep|>")),
    close: "<|close|>argument<|sep|>",
    pads_strings: false,
    escapes: &[('&', "&amp;"), ('"', "&quot;")],
    terminator: '"',
    ..QWEN
};

/// What stands around strings and names in arrays and objects that are written in brackets.
pub(super) struct Quotes {
    /// Before a string, and behind it.
    pub(super) string: &'static str,
    /// Before a name, and behind it.
    pub(super) name: &'static str,
    /// Whether characters are written as they are; else with the escapes of JSON.
    pub(super) is_raw: bool,
}

const JSON_QUOTES: Quotes = Quotes { string: "\"", name: "\"", is_raw: false };
const GEMMA_QUOTES: Quotes = Quotes { string: "<|\"|>", name: "", is_raw: true };

impl Quotes {
    fn of(style: Style) -> &'static Self {
        match style {
            Style::Gemma => &GEMMA_QUOTES,
            _ => &JSON_QUOTES,
        }
    }

    /// Whether a name without quotation marks is read as it was meant.
    pub(super) fn can_be_bare(&self, name: &str) -> bool {
        !name.is_empty()
            && name.trim() == name
            && !name.contains(ENDS_OF_BARE_NAMES)
            && !name.contains(self.string)
    }
}

/// Characters that end a name without quotation marks, or the value before it.
pub(super) const ENDS_OF_BARE_NAMES: [char; 6] = [':', ',', '{', '}', '[', ']'];

impl MemberMarks {
    fn of(style: Style) -> Option<&'static Self> {
        Some(match style {
            Style::Json | Style::Gemma => return None,
            Style::Qwen => &QWEN,
            Style::MiniMax => &MINIMAX,
            Style::MiniMaxM3 => &MINIMAX_M3,
            Style::DeepSeek => &DEEPSEEK,
            Style::DeepSeekV41 => &DEEPSEEK_V4_1,
            Style::Glm => &GLM,
            Style::Cohere => &COHERE,
            Style::KimiK3 => &KIMI_K3,
        })
    }

    /// All of them, as texts of which each is taken by itself.
    fn texts(&self) -> Vec<String> {
        let mut out: Vec<String> = vec![self.open.into(), self.named.into(), self.close.into()];
        if let Some((words, behind)) = self.kinds {
            out.extend(words.iter().map(|word| format!("{word}{behind}")));
        }
        out.extend(self.before_value.map(Into::into));
        out.extend(self.item.map(Into::into));
        if self.closes_by_name {
            out.push(self.end_of_item());
        }
        out
    }

    /// The end of an item whose element is closed by its name.
    pub(super) fn end_of_item(&self) -> String {
        format!("{}item{}", self.close, self.named)
    }

    /// A text in which strings would end: none occurs in them.
    pub(super) fn end_of_strings(&self) -> &'static str {
        match self.closes_by_name {
            true => self.close.trim_end_matches("</"),
            false => self.close,
        }
    }

    /// The spelling of a character of a name, where it is not the character.
    pub(super) fn escape(&self, character: char) -> Option<&'static str> {
        self.escapes.iter().find(|escape| escape.0 == character).map(|escape| escape.1)
    }

    /// A name as it is written; `None` where it holds the character that ends it.
    pub(super) fn name(&self, name: &str) -> Option<String> {
        let mut out = String::with_capacity(name.len());
        for character in name.chars() {
            match self.escape(character) {
                Some(spelled) => out.push_str(spelled),
                None if character == self.terminator => return None,
                None => out.push(character),
            }
        }
        Some(out)
    }
}

impl Emitter<'_, '_> {
    /// The marks of a style that writes elements.
    pub(super) fn marks(&self) -> Option<&'static MemberMarks> {
        MemberMarks::of(self.options().style)
    }

    /// The quotation marks of arrays and objects in brackets.
    pub(super) fn quotes(&self) -> &'static Quotes {
        Quotes::of(self.options().style)
    }

    /// A text in which strings would end that are written as they are: none occurs in them.
    pub(super) fn end_of_raw_strings(&self) -> &'static str {
        self.marks().map_or(self.quotes().string, MemberMarks::end_of_strings)
    }

    /// A mark, which may be empty.
    pub(super) fn mark(&mut self, text: &str) -> ExprId {
        match self.options().markers.first_in(text) {
            None => self.literal(text.as_bytes()),
            Some(_) => self.call(RuleKey::Mark(text.into())),
        }
    }

    /// A mark within an automaton, up to a state; without one to a state of its own.
    pub(super) fn read_mark(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        text: &str,
        to: Option<u32>,
    ) -> u32 {
        if self.options().markers.first_in(text).is_none() {
            return out.text(from, text.as_bytes(), to);
        }
        let to = to.unwrap_or_else(|| out.state());
        let mark = self.mark(text);
        out.part(from, mark, to);
        to
    }

    /// The rule of a mark: what is no marker by its bytes, each marker as its tokens.
    pub(super) fn marked(&mut self, text: &str) -> ExprId {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((place, number)) = self.options().markers.first_in(rest) {
            let (marker, ids) = self.options().markers.tokens[number].clone();
            if place > 0 {
                parts.push(self.literal(&rest.as_bytes()[..place]));
            }
            let whole = self.add(Expr::Macro(Macro {
                name: "Token".into(),
                positional: ids.iter().map(|&id| MacroArgument::Integer(id.into())).collect(),
                named: Vec::new(),
            }));
            parts.push(match self.options().markers.spelled {
                true => {
                    let spelled = self.literal(marker.as_bytes());
                    self.choice(vec![spelled, whole])
                }
                false => whole,
            });
            rest = &rest[place + marker.len()..];
        }
        if !rest.is_empty() {
            parts.push(self.literal(rest.as_bytes()));
        }
        self.sequence(parts)
    }
}

/// The marks of a style, as texts of which each is taken by itself; JSON has none.
pub fn marks_of(style: Style) -> Vec<String> {
    match style {
        Style::Gemma => vec![GEMMA_QUOTES.string.into()],
        _ => MemberMarks::of(style).map(MemberMarks::texts).unwrap_or_default(),
    }
}
