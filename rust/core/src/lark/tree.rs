//! What the parser makes of a text: documents, each an arena of nodes in postfix order.
//!
//! Postfix order means that a subtree is a run of nodes that ends with its root, so that every pass is
//! a loop.

use crate::error::{Position, Result};

/// A node of a [`LarkDocument`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct LarkNodeId(pub(super) u32);

impl LarkNodeId {
    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LarkNodeKind {
    /// One after the other; of none, the empty string.
    Sequence(Box<[LarkNodeId]>),
    /// One of these, at least two.
    Choice(Box<[LarkNodeId]>),
    /// What all of these have, at least two.
    Both(Box<[LarkNodeId]>),
    /// What it has not.
    Not(LarkNodeId),
    /// A repetition.
    Repeat { body: LarkNodeId, min: u32, max: Option<u32> },
    /// A literal.
    Text { text: Box<str>, of_any_case: bool },
    /// One character of a range.
    Range(char, char),
    /// A regular expression with its flags.
    Pattern { text: Box<str>, flags: Box<str> },
    /// A rule or terminal, or a parameter of a template.
    Name(Box<str>),
    /// A template with its arguments.
    Template { name: Box<str>, arguments: Box<[LarkNodeId]> },
    /// `%json`, with the schema and its place.
    Schema(Box<str>, Position),
    /// `%regex`, with the JSON text.
    Structured(Box<str>, Position),
    /// `%lark`: the number of the document.
    Document(usize),
    /// `<...>`, with the brackets.
    Token(Box<str>),
    /// `@name`.
    Grammar(Box<str>),
}

impl LarkNodeKind {
    /// The nodes under it, in order.
    pub(super) fn children(&self) -> &[LarkNodeId] {
        match self {
            LarkNodeKind::Sequence(parts)
            | LarkNodeKind::Choice(parts)
            | LarkNodeKind::Both(parts) => parts,
            LarkNodeKind::Template { arguments, .. } => arguments,
            LarkNodeKind::Not(body) | LarkNodeKind::Repeat { body, .. } => {
                std::slice::from_ref(body)
            }
            _ => &[],
        }
    }

    /// The same over nodes that stand elsewhere.
    fn moved(&self, by: impl Fn(LarkNodeId) -> LarkNodeId) -> LarkNodeKind {
        let all = |ids: &[LarkNodeId]| ids.iter().map(|&id| by(id)).collect();
        match self {
            LarkNodeKind::Sequence(parts) => LarkNodeKind::Sequence(all(parts)),
            LarkNodeKind::Choice(parts) => LarkNodeKind::Choice(all(parts)),
            LarkNodeKind::Both(parts) => LarkNodeKind::Both(all(parts)),
            LarkNodeKind::Not(body) => LarkNodeKind::Not(by(*body)),
            &LarkNodeKind::Repeat { body, min, max } => {
                LarkNodeKind::Repeat { body: by(body), min, max }
            }
            LarkNodeKind::Template { name, arguments } => {
                LarkNodeKind::Template { name: name.clone(), arguments: all(arguments) }
            }
            leaf => leaf.clone(),
        }
    }
}

/// A node with its place.
#[derive(Clone, Debug)]
pub(super) struct LarkNode {
    pub(super) kind: LarkNodeKind,
    pub(super) position: Position,
}

/// How a rule ends that ends at a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkerEnding {
    Suffix,
    Stop,
}

impl MarkerEnding {
    pub(super) fn name(self) -> &'static str {
        match self {
            MarkerEnding::Suffix => "suffix",
            MarkerEnding::Stop => "stop",
        }
    }
}

/// What stands in brackets behind a rule's name.
#[derive(Clone, Debug, Default)]
pub(super) struct Attributes {
    pub(super) lazy: Option<Position>,
    pub(super) marker: Option<(MarkerEnding, LarkNodeId)>,
    pub(super) stop_capture: Option<(String, Position)>,
    pub(super) capture: Option<(String, Position)>,
    pub(super) max_tokens: Option<(u32, Position)>,
    pub(super) max_chars: Option<(u32, Position)>,
    pub(super) temperature: Option<f64>,
}

impl Attributes {
    /// Whether there are none.
    pub(super) fn are_none(&self) -> bool {
        let Self { lazy, marker, stop_capture, capture, max_tokens, max_chars, temperature } = self;
        lazy.is_none()
            && marker.is_none()
            && stop_capture.is_none()
            && capture.is_none()
            && max_tokens.is_none()
            && max_chars.is_none()
            && temperature.is_none()
    }

    /// Whether the rule matches as little as it can.
    pub(super) fn is_lazy(&self) -> bool {
        self.lazy.is_some() || self.marker.is_some()
    }
}

/// A rule, a terminal or a template.
#[derive(Clone, Debug)]
pub(super) struct Definition {
    pub(super) name: Box<str>,
    pub(super) position: Position,
    /// The names of a template's parameters; none for others.
    pub(super) parameters: Vec<Box<str>>,
    pub(super) attributes: Attributes,
    pub(super) body: LarkNodeId,
}

impl Definition {
    pub(super) fn is_terminal(&self) -> bool {
        is_terminal(&self.name)
    }
}

/// Whether a name is a terminal's: its first letter is upper case.
pub(super) fn is_terminal(name: &str) -> bool {
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    name.trim_start_matches('_').starts_with(|c: char| c.is_ascii_uppercase())
}

/// `%override` or `%extend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Override,
    Extend,
}

/// `%import library.NAME -> ALIAS`.
#[derive(Clone, Debug)]
pub(super) struct Import {
    pub(super) library: String,
    pub(super) name: Box<str>,
    pub(super) alias: Box<str>,
    pub(super) position: Position,
}

/// A whole Lark grammar: a text, or what stands in the braces of `%lark`.
#[derive(Clone, Debug, Default)]
pub(super) struct LarkDocument {
    pub(super) nodes: Vec<LarkNode>,
    pub(super) definitions: Vec<Definition>,
    pub(super) changes: Vec<(Change, Definition)>,
    pub(super) imports: Vec<Import>,
    pub(super) ignores: Vec<LarkNodeId>,
    /// Terminals that other code finds, and where `%declare` names them.
    pub(super) declared: Vec<(Box<str>, Position)>,
    /// Options as JSON texts.
    pub(super) options: Vec<(Box<str>, Position)>,
    /// Where it begins.
    pub(super) position: Position,
}

impl LarkDocument {
    pub(super) fn add(&mut self, kind: LarkNodeKind, position: Position) -> LarkNodeId {
        let id = LarkNodeId(self.nodes.len() as u32);
        self.nodes.push(LarkNode { kind, position });
        id
    }

    pub(super) fn kind(&self, id: LarkNodeId) -> &LarkNodeKind {
        &self.nodes[id.index()].kind
    }

    pub(super) fn position(&self, id: LarkNodeId) -> Position {
        self.nodes[id.index()].position
    }

    /// The numbers of the nodes of a subtree; the last is its root.
    pub(super) fn subtree(&self, root: LarkNodeId) -> std::ops::Range<usize> {
        let mut first = root;
        while let Some(&child) = self.kind(first).children().first() {
            first = child;
        }
        first.index()..root.index() + 1
    }

    /// Adds a copy of a subtree, whose leaves `change` may make other ones.
    pub(super) fn copy(
        &mut self,
        from: Option<&LarkDocument>,
        root: LarkNodeId,
        mut change: impl FnMut(&LarkNodeKind) -> Result<Option<LarkNodeKind>>,
    ) -> Result<LarkNodeId> {
        let source = from.unwrap_or(self).subtree(root);
        let (old, new) = (source.start as u32, self.nodes.len() as u32);
        for index in source {
            let node = &from.unwrap_or(self).nodes[index];
            let position = node.position;
            let kind = match change(&node.kind)? {
                Some(kind) => kind,
                None => node.kind.moved(|id| LarkNodeId(id.0 - old + new)),
            };
            self.add(kind, position);
        }
        Ok(LarkNodeId(self.nodes.len() as u32 - 1))
    }
}
