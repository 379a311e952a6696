//! From text to tree: alternatives, groups and quantifiers.
//!
//! One loop over the characters with a stack of open groups. The text is read at most three
//! times: once to count its groups, which Annex B needs to know what `\1` is, once with the flag
//! `u`, and once by Annex B.

use super::delimiters::check_delimiters;
use super::error::PatternError;
use super::flags::Flags;
use super::reading::{Doubt, PatternEscape, Quantifiers, Remark};
use super::syntax::{Assertion, CharSetId, PatternNodeId, PatternTree};
use super::{PatternDialect, unicode};
use crate::grammar::CharSet;
use rustc_hash::FxHashMap;

/// By which grammar a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PatternReading {
    /// ECMA-262 with the flag `u`.
    Unicode,
    /// Annex B of ECMA-262, without it.
    AnnexB,
    /// Python's `re`.
    Python,
}

/// What a group is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The whole text; nothing closes it.
    Whole,
    /// A group.
    Group,
    /// A lookaround.
    Look { is_ahead: bool, is_negated: bool },
}

/// An open group.
pub(super) struct GroupFrame {
    pub(super) purpose: Purpose,
    /// Where its parenthesis stands.
    pub(super) opened: usize,
    /// Where its last `|` stands.
    bar: usize,
    /// Where flags were set within an alternative.
    switched: Option<usize>,
    /// The flags that are in force behind it.
    flags: Flags,
    alternatives: Vec<PatternNodeId>,
    items: Vec<PatternNodeId>,
}

pub(super) struct PatternParser<'a> {
    pub(super) text: &'a [char],
    pub(super) at: usize,
    pub(super) reading: PatternReading,
    pub(super) flags: Flags,
    pub(super) tree: PatternTree,
    pub(super) frames: Vec<GroupFrame>,
    /// The number of capturing groups of the whole text.
    pub(super) groups: usize,
    /// Whether some group of the whole text has a name.
    pub(super) has_names: bool,
    /// Where each name was given to a group last.
    pub(super) names: FxHashMap<String, usize>,
    /// The leaves of characters, by the flags that they stand under.
    characters: FxHashMap<(u32, Flags), PatternNodeId>,
    /// Sets as written, with the sets that they are under the flags.
    folded: FxHashMap<(CharSet, Flags), CharSet>,
    /// Properties by name.
    pub(super) properties: FxHashMap<String, CharSet>,
    /// How constructs were read that ECMA-262 lacks.
    pub(super) remarks: Vec<Remark>,
    /// The first class that other dialects may read as another one.
    pub(super) doubt: Option<Doubt>,
    /// Whether a quantifier is lazy that leaves a choice.
    pub(super) has_lazy: bool,
}

/// A text that was read.
pub(super) struct ParsedPattern {
    pub(super) tree: PatternTree,
    /// Whether Annex B was needed.
    pub(super) is_annex_b: bool,
    pub(super) remarks: Vec<Remark>,
    /// Whether a quantifier is lazy that leaves a choice.
    pub(super) has_lazy: bool,
}

/// Reads a text.
pub(super) fn parse(
    text: &str,
    dialect: PatternDialect,
    flags: Flags,
) -> Result<ParsedPattern, PatternError> {
    let text: Vec<char> = text.chars().collect();
    if dialect == PatternDialect::Python {
        return PatternParser::new(&text, PatternReading::Python, flags).read();
    }
    if !flags.is_unicode {
        check_delimiters(&text)?;
    }
    match PatternParser::new(&text, PatternReading::Unicode, flags).read() {
        Err(error) if error.kind == super::PatternFault::Syntax && !flags.is_unicode => {
            PatternParser::new(&text, PatternReading::AnnexB, flags).read()
        }
        read => read,
    }
}

/// Counts the capturing groups; says whether one has a name.
fn count_groups(text: &[char]) -> (usize, bool) {
    let (mut groups, mut has_names, mut in_class, mut at) = (0, false, false, 0);
    while let Some(&here) = text.get(at) {
        let is_open = here == '(' && !in_class;
        match here {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if is_open && text.get(at + 1) != Some(&'?') => groups += 1,
            '(' if is_open => {
                let name = at + if text.get(at + 2) == Some(&'P') { 3 } else { 2 };
                let has_name = match text.get(name) {
                    Some('<') => !matches!(text.get(name + 1), Some('=' | '!')),
                    Some('\'') => name == at + 2,
                    _ => false,
                };
                groups += usize::from(has_name);
                has_names |= has_name;
            }
            _ => {}
        }
        at += 1;
    }
    (groups, has_names)
}

impl<'a> PatternParser<'a> {
    fn new(text: &'a [char], reading: PatternReading, flags: Flags) -> Self {
        let (groups, has_names) = count_groups(text);
        let whole = GroupFrame {
            purpose: Purpose::Whole,
            opened: 0,
            bar: 0,
            switched: None,
            flags,
            alternatives: Vec::new(),
            items: Vec::new(),
        };
        Self {
            text,
            at: 0,
            reading,
            flags,
            tree: PatternTree::default(),
            frames: vec![whole],
            groups,
            has_names,
            names: FxHashMap::default(),
            characters: FxHashMap::default(),
            folded: FxHashMap::default(),
            properties: FxHashMap::default(),
            remarks: Vec::new(),
            doubt: None,
            has_lazy: false,
        }
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<char> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn takes(&mut self, expected: &str) -> bool {
        let mut end = self.at;
        for character in expected.chars() {
            if self.text.get(end) != Some(&character) {
                return false;
            }
            end += 1;
        }
        self.at = end;
        true
    }

    fn read(mut self) -> Result<ParsedPattern, PatternError> {
        loop {
            self.skip_blanks()?;
            let Some(here) = self.peek(0) else { break };
            let start = self.at;
            let (node, quantifiers) = match here {
                '|' => {
                    if let Some(switched) = self.frames.last().and_then(|frame| frame.switched) {
                        return Err(self.late_flags(switched));
                    }
                    self.at += 1;
                    self.close_alternative(start);
                    continue;
                }
                '(' => {
                    self.open()?;
                    continue;
                }
                ')' => self.close()?,
                _ => self.term(here)?,
            };
            let node = self.quantified(node, quantifiers)?;
            self.push(node);
        }
        match self.frames.pop() {
            Some(GroupFrame { purpose: Purpose::Whole, mut alternatives, items, .. }) => {
                alternatives.push(self.tree.sequence(items));
                self.tree.root = Some(self.tree.choice(alternatives));
                let is_annex_b = self.reading == PatternReading::AnnexB;
                let Self { tree, remarks, has_lazy, .. } = self;
                Ok(ParsedPattern { tree, is_annex_b, remarks, has_lazy })
            }
            frame => {
                let opened = frame.map_or(0, |frame| frame.opened);
                let message = "the group is not closed; add `)`, or write `\\(` for a parenthesis";
                Err(PatternError::syntax("`(`", message, opened))
            }
        }
    }

    /// Flags are set at a place; within an alternative that is kept.
    pub(super) fn switch(&mut self, at: usize) {
        if let Some(frame) = self.frames.last_mut()
            && !frame.items.is_empty()
        {
            frame.switched.get_or_insert(at);
        }
    }

    pub(super) fn push(&mut self, node: PatternNodeId) {
        if let Some(frame) = self.frames.last_mut() {
            frame.items.push(node);
        }
    }

    fn close_alternative(&mut self, at: usize) {
        let Some(frame) = self.frames.last_mut() else { return };
        let items = std::mem::take(&mut frame.items);
        let node = self.tree.sequence(items);
        frame.alternatives.push(node);
        frame.bar = at;
    }

    /// Opens a group whose parenthesis stands at `opened`; `flags` hold within it.
    pub(super) fn open_frame(&mut self, purpose: Purpose, opened: usize, flags: Flags) {
        let outer = std::mem::replace(&mut self.flags, flags);
        self.frames.push(GroupFrame {
            purpose,
            opened,
            bar: opened,
            switched: None,
            flags: outer,
            alternatives: Vec::new(),
            items: Vec::new(),
        });
    }

    fn close(&mut self) -> Result<(PatternNodeId, Quantifiers), PatternError> {
        let at = self.at;
        self.at += 1;
        if self.frames.len() < 2 {
            let message = "there is no group to close; write `\\)` for a parenthesis";
            return Err(PatternError::syntax("`)`", message, at));
        }
        self.close_alternative(at);
        let Some(frame) = self.frames.pop() else { unreachable!("two frames were there") };
        self.flags = frame.flags;
        let body = self.tree.choice(frame.alternatives);
        Ok(match frame.purpose {
            Purpose::Look { is_ahead, is_negated } => {
                let is_allowed = match self.reading {
                    PatternReading::Unicode => false,
                    PatternReading::AnnexB => is_ahead,
                    PatternReading::Python => true,
                };
                let node = self.tree.look(body, is_ahead, is_negated);
                (node, if is_allowed { Quantifiers::Allowed } else { Quantifiers::Forbidden })
            }
            Purpose::Group | Purpose::Whole => (body, Quantifiers::Allowed),
        })
    }

    /// Gives the next group a name, which no group has that takes part in the same matches: two
    /// groups of one name stand in different alternatives of a group.
    pub(super) fn add_name(&mut self, name: String, at: usize) -> Result<(), PatternError> {
        let Some(before) = self.names.insert(name.clone(), at) else { return Ok(()) };
        // The innermost open group that holds both: frames are ordered by where they open.
        let holds = self
            .frames
            .partition_point(|frame| frame.purpose == Purpose::Whole || frame.opened < before);
        if self.reading != PatternReading::Python
            && holds.checked_sub(1).and_then(|i| self.frames.get(i)).is_some_and(|f| f.bar > before)
        {
            return Ok(());
        }
        let message = format!("two groups have the name {name:?}; give each its own");
        Err(PatternError::syntax("group name", message, at))
    }

    /// Anything but a group and a `|`.
    fn term(&mut self, here: char) -> Result<(PatternNodeId, Quantifiers), PatternError> {
        let at = self.at;
        if let Some(text) = self.quotation() {
            return Ok(self.quoted(text));
        }
        self.at += 1;
        let assertion = match here {
            '^' if self.flags.is_multiline => Assertion::LineStart(self.line_ends()),
            '^' => Assertion::Start,
            '$' if self.flags.is_multiline => Assertion::LineEnd(self.line_ends()),
            '$' if self.reading == PatternReading::Python => Assertion::EndOrLastNewline,
            '$' => Assertion::End,
            '\\' => return self.escaped_term(at),
            '[' => return Ok((self.class(at)?, Quantifiers::Allowed)),
            '.' => {
                let set = match (self.flags.dot_is_all, self.reading) {
                    (true, _) => CharSet::new([(0, unicode::LAST)]),
                    (false, PatternReading::Python) => unicode::newline().complement(),
                    (false, _) => unicode::line_terminators().complement(),
                };
                let node = self.leaf_of(&set);
                return Ok((node, Quantifiers::Allowed));
            }
            '*' | '+' | '?' => return Err(self.nothing_to_repeat(here, at)),
            '{' | '}' | ']' => {
                self.lone_bracket(here, at)?;
                return Ok((self.character(here as u32), Quantifiers::Allowed));
            }
            _ => return Ok((self.character(here as u32), Quantifiers::Allowed)),
        };
        Ok((self.tree.assert(assertion), Quantifiers::Forbidden))
    }

    fn escaped_term(&mut self, at: usize) -> Result<(PatternNodeId, Quantifiers), PatternError> {
        Ok(match self.escape(at, false)? {
            PatternEscape::Character(character) => {
                (self.character(character), Quantifiers::Allowed)
            }
            PatternEscape::Set(set) if self.keeps_sets() => {
                (self.leaf_of_closed(&set), Quantifiers::Allowed)
            }
            PatternEscape::Set(set) => (self.leaf_of(&set), Quantifiers::Allowed),
            PatternEscape::Boundary { is_negated } => {
                let word = self.word_set();
                let word = self.tree.add_set(word);
                let node = self.tree.assert(Assertion::Boundary { word, is_negated });
                (node, Quantifiers::Forbidden)
            }
            PatternEscape::Start => (self.tree.assert(Assertion::Start), Quantifiers::Forbidden),
            PatternEscape::End => (self.tree.assert(Assertion::End), Quantifiers::Forbidden),
        })
    }

    fn line_ends(&mut self) -> CharSetId {
        self.tree.add_set(match self.reading {
            PatternReading::Python => unicode::newline(),
            _ => unicode::line_terminators(),
        })
    }

    /// The leaf of a character as written.
    pub(super) fn character(&mut self, character: u32) -> PatternNodeId {
        let key = (character, self.flags);
        if let Some(&node) = self.characters.get(&key) {
            return node;
        }
        let node = self.leaf_of(&CharSet::new([(character, character)]));
        self.characters.insert(key, node);
        node
    }

    /// The leaf of a set as written.
    pub(super) fn leaf_of(&mut self, set: &CharSet) -> PatternNodeId {
        let set = self.with_cases(set);
        self.leaf_of_closed(&set)
    }

    /// The leaf of a set that holds all cases of its characters already.
    pub(super) fn leaf_of_closed(&mut self, set: &CharSet) -> PatternNodeId {
        let id = self.tree.add_set(unicode::without_surrogates(set));
        self.tree.leaf(id)
    }

    /// Whether the pattern holds nothing before this place but flags, comments and white space.
    pub(super) fn has_read_nothing(&self) -> bool {
        match &self.frames[..] {
            [whole] => whole.items.is_empty() && whole.alternatives.is_empty(),
            _ => false,
        }
    }

    /// Whether sets such as `\w` are the same without regard to case: Python gives other cases to characters and
    /// ranges alone.
    pub(super) fn keeps_sets(&self) -> bool {
        self.reading == PatternReading::Python
    }

    /// What a set as written means under the flags.
    pub(super) fn with_cases(&mut self, set: &CharSet) -> CharSet {
        if !self.flags.ignores_case {
            return set.clone();
        }
        let key = (set.clone(), self.flags);
        if let Some(known) = self.folded.get(&key) {
            return known.clone();
        }
        let closed = match self.reading {
            PatternReading::Python => unicode::with_cases_of_python(set, self.flags.is_ascii),
            _ => unicode::with_cases(set),
        };
        self.folded.insert(key, closed.clone());
        closed
    }
}
