//! How a schema becomes a grammar, and how its texts are written.

use super::dialect::Dialect;
use crate::regular::pattern::Pattern;

/// The order in which the members of an object may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrder {
    /// As their names first appear in the schema; names that it does not mention come last.
    Schema,
    /// Any.
    Any,
}

/// What stands between the parts of arrays and objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whitespace {
    /// Any of JSON's four characters, up to a number of them at each place; `None` is no bound.
    Any(Option<u32>),
    /// These texts behind values and behind names, and nothing else.
    Separators(Box<str>, Box<str>),
    /// A line for each member, indented by so many spaces a level; the texts are separators.
    Indented(u32, Box<str>, Box<str>),
}

/// Which spellings of characters strings have, beside those that JSON prescribes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escapes {
    /// `\/` and `\uXXXX` in strings that are not told apart by a pattern, format or enum.
    Standard,
    /// In all strings but names of properties.
    Any,
    /// Nowhere.
    Plain,
}

/// How values are written: as JSON, or as a model family writes the arguments of calls. All but JSON and Gemma
/// write the members of the object as elements of a kind of XML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// JSON.
    Json,
    /// `<parameter=name>value</parameter>`
    Qwen,
    /// `<parameter name="name">value</parameter>`
    MiniMax,
    /// `]<]minimax[>[<name>value]<]minimax[>[</name>`, and so within values.
    MiniMaxM3,
    /// `<｜DSML｜parameter name="name" string="true">value</｜DSML｜parameter>`
    DeepSeek,
    /// The same with a blank behind `｜DSML｜`.
    DeepSeekV41,
    /// `<arg_key>name</arg_key><arg_value>value</arg_value>`
    Glm,
    /// `<cofl:value name="name" type="raw">value</cofl:value>`, and so within values.
    Cohere,
    /// `<|open|>argument key="name" type="string"<|sep|>value<|close|>argument<|sep|>`
    KimiK3,
    /// `{name:<|"|>value<|"|>}`: JSON with bare names, and strings between marks of their own, and so within values.
    Gemma,
}

impl Style {
    /// Whether a matcher can remember which members of an object it read. Elements have no rule for a member.
    pub(super) fn has_guards(self) -> bool {
        matches!(self, Self::Json | Self::Gemma)
    }
}

/// Special tokens of a vocabulary, which the marks of a style take whole; values and names hold none.
#[derive(Clone, Debug, Default)]
pub struct Markers {
    /// Texts, none of them empty, each with the ids of its tokens; the longer of two at one place counts.
    pub tokens: Vec<(Box<str>, Vec<u32>)>,
    /// Whether other tokens may spell the text too.
    pub spelled: bool,
}

impl Markers {
    /// The first marker in a text, as its place and its number.
    pub(super) fn first_in(&self, text: &str) -> Option<(usize, usize)> {
        let places = self.tokens.iter().enumerate();
        let places =
            places.filter_map(|(number, (marker, _))| Some((text.find(&**marker)?, number)));
        places
            .min_by_key(|&(place, number)| (place, std::cmp::Reverse(self.tokens[number].0.len())))
    }
}

/// How a schema becomes a grammar.
#[derive(Clone, Debug)]
pub struct SchemaOptions {
    /// The dialect of schemas without `$schema`; 2020-12 where nothing is said.
    pub dialect: Option<Dialect>,
    /// How values are written. All but JSON take white space of the kind [`Whitespace::Any`].
    pub style: Style,
    /// Special tokens in the marks of the style.
    pub markers: Markers,
    /// Texts that do not occur in strings and names, as they are written.
    pub excludes: Vec<Box<str>>,
    /// The order of members.
    pub key_order: KeyOrder,
    /// White space.
    pub whitespace: Whitespace,
    /// Whether integers may have a fraction of zeros.
    pub integers_with_fraction: bool,
    /// Spellings of characters.
    pub escapes: Escapes,
    /// Whether `format` is a condition; else it is an annotation.
    pub assert_formats: bool,
    /// Formats that are patterns, by their names; of a name that is known too, the pattern counts.
    pub formats: Vec<(Box<str>, Pattern)>,
    /// Whether objects that do not say so may have other members.
    pub open_objects: bool,
    /// Whether `oneOf` is read as `anyOf`: so errors find out whether branches that overlap leave no value.
    pub one_of_as_any: bool,
    /// Whether `uniqueItems` is left out where it cannot be said.
    pub lossy_unique_items: bool,
    /// Edges that one condition on a value is split into.
    pub max_alternatives: usize,
    /// The digits of a number that may stand in a row, but in numbers that are listed; `None` is no bound.
    pub max_digits: Option<u32>,
    /// The arrays and objects in which a value may stand; `None` is no bound.
    pub max_depth: Option<u32>,
    /// Levels of values, where they are indented.
    pub max_indented_levels: u32,
}

impl SchemaOptions {
    /// The pattern that a format is by these options.
    pub(super) fn pattern_of_format(&self, name: &str) -> Option<&Pattern> {
        let mut named = self.formats.iter().filter(|(known, _)| **known == *name);
        named.next().map(|(_, pattern)| pattern)
    }

    /// Whether a name that is known has the same texts as one of a class of other names: what encloses or ends names
    /// takes nothing from it.
    pub(super) fn spells_as_known(&self, name: &str) -> bool {
        let is_plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
        let is_alone = self.style == Style::Json || !name.is_empty() && name.chars().all(is_plain);
        is_alone && !self.excludes.iter().any(|text| name.contains(&**text))
    }
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self {
            dialect: None,
            style: Style::Json,
            markers: Markers::default(),
            excludes: Vec::new(),
            key_order: KeyOrder::Schema,
            whitespace: Whitespace::Any(Some(32)),
            integers_with_fraction: false,
            escapes: Escapes::Standard,
            assert_formats: true,
            formats: Vec::new(),
            open_objects: false,
            one_of_as_any: false,
            lossy_unique_items: false,
            max_alternatives: 4_096,
            max_digits: None,
            max_depth: None,
            max_indented_levels: 32,
        }
    }
}
