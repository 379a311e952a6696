//! The marks of styles other than JSON: what stands around the names and the values of members.

use super::Emitter;
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

impl MemberMarks {
    fn of(style: Style) -> Option<&'static Self> {
        Some(match style {
            Style::Json => return None,
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
    /// The marks of the style; `None` for JSON.
    pub(super) fn marks(&self) -> Option<&'static MemberMarks> {
        MemberMarks::of(self.options().style)
    }
}
