//! The grammar: named rules over an arena of expressions.
//!
//! Design: docs/design/grammar.md.
//!
//! Invariants, kept by [`GrammarBuilder`]:
//! - a child stands before its parent in the arena, so every pass is a loop over ids, never a
//!   recursion, and no nesting of the input can overflow the stack;
//! - every [`RuleId`] in an expression names a rule that is defined;
//! - `root` is defined.
//!
//! - here: rules, expressions, and the builder that keeps the invariants
//! - `charset`: sets of code points; `tokens`: what takes a token whole
//! - `automaton`: what a macro means; `right_linear`: automata as rules; `counted`: automata that count, written out
//! - `dispatch`: what `TagDispatch` means; `bounded`: rules of at most so many characters or tokens; `members`: members
//!   in any order without their guards
//! - `compose`: one grammar out of several, with parts in the place of rules; unions, concatenations and repetitions are
//!   written as such frames by `python/tokfold/_sources/operations.py`

mod automaton;
mod bounded;
mod charset;
mod compose;
mod counted;
mod dispatch;
mod members;
mod right_linear;
mod tokens;

pub use automaton::{ByteAutomaton, CallEdge, Callee, Described, Guard, Meaning, UniqueItems};
pub use charset::CharSet;
pub(crate) use compose::{Stub, key_of};
pub(crate) use dispatch::{Compact, Dispatch, compact};
pub use tokens::WholeTokens;
pub(crate) use tokens::{ANY_STOP, FIRST_MARK};

use crate::apart::Apart;
use crate::error::Position;
use crate::ids::{ExprId, RuleId};

/// The right-hand side of a rule, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// The empty string.
    Empty,
    /// Bytes, never empty.
    Literal(Box<[u8]>),
    /// One code point out of a set (UTF-8 encoded; surrogates included where the set has them).
    Class(CharSet),
    /// One token out of a set, taken whole: ranges of ids, in order, that do not touch. Only over a
    /// vocabulary; grammar text has a macro for it.
    Tokens(Box<[(u32, u32)]>),
    /// A rule.
    Rule(RuleId),
    /// One after the other, at least two.
    Sequence(Box<[ExprId]>),
    /// One of these, at least two.
    Choice(Box<[ExprId]>),
    /// `body{min,max}`; `max` of `None` is unbounded.
    Repeat {
        /// What is repeated.
        body: ExprId,
        /// The least number of times.
        min: u32,
        /// The greatest number of times.
        max: Option<u32>,
    },
    /// A construct of XGrammar's that is not a plain context-free expression.
    Macro(Macro),
    /// What stands in a macro's place once its meaning is known; grammar text has no such thing.
    Automaton(ByteAutomaton),
}

/// XGrammar's macros, as written. `name` and `arguments` print back to the same text.
#[derive(Clone, Debug, PartialEq)]
pub struct Macro {
    /// `TagDispatch`, `Token`, ...
    pub name: String,
    /// Positional arguments.
    pub positional: Vec<MacroArgument>,
    /// Named arguments, in the order written.
    pub named: Vec<(String, MacroArgument)>,
}

impl Macro {
    /// A named argument.
    pub fn argument(&self, name: &str) -> Option<&MacroArgument> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The rules that it names, as often as it does.
    pub fn rules(&self) -> impl Iterator<Item = RuleId> {
        let arguments = self.positional.iter().chain(self.named.iter().map(|(_, value)| value));
        arguments
            .flat_map(|argument| match argument {
                MacroArgument::Tuple(parts) => parts.as_slice(), // which hold no tuples
                other => std::slice::from_ref(other),
            })
            .filter_map(|argument| match argument {
                MacroArgument::Rule(rule) => Some(*rule),
                _ => None,
            })
    }
}

/// One argument of a macro.
#[derive(Clone, Debug, PartialEq)]
pub enum MacroArgument {
    /// A quoted string, as bytes.
    Text(Box<[u8]>),
    /// A number.
    Integer(i64),
    /// `true` or `false`.
    Boolean(bool),
    /// A rule.
    Rule(RuleId),
    /// A parenthesised list.
    Tuple(Vec<MacroArgument>),
}

/// What stands in brackets after a rule's name. None of it changes which strings the rule has, except
/// `max_chars` and `lazy`; with `max_tokens` it depends on the tokens too.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RuleOptions {
    /// At most so many tokens begin in the rule; then its nearest end comes.
    pub max_tokens: Option<u32>,
    /// At most so many characters.
    pub max_chars: Option<u32>,
    /// Name under which the matched text is reported.
    pub capture: Option<String>,
    /// No text of the rule begins with a shorter one of its body.
    pub lazy: bool,
    /// Sampling temperature inside the rule, as written.
    pub temperature: Option<f64>,
    /// Options that we read and print but do not know, as written: name and argument.
    pub other: Vec<(String, MacroArgument)>,
}

impl RuleOptions {
    /// Whether the rule has some of the strings of its body only.
    pub(crate) fn is_bounded(&self) -> bool {
        self.max_chars.is_some() || self.max_tokens.is_some() || self.lazy
    }
}

/// Stands in the name of a rule that is a part of another, behind the name of that: no name that is written
/// has it.
pub(crate) const WITHIN: char = '@';

impl Rule {
    /// The name of the rule as it was written, of which this one may be a part.
    pub fn written_name(&self) -> &str {
        self.name.split(WITHIN).next().unwrap_or_default()
    }
}

/// A named right-hand side.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The name, unique in its grammar.
    pub name: String,
    /// Options in brackets after the name.
    pub options: RuleOptions,
    /// The right-hand side.
    pub body: ExprId,
    /// `(= ...)` at the end of the rule.
    pub lookahead: Option<ExprId>,
    /// Where the rule's name stands.
    pub position: Position,
    /// Whether many grammars have this rule, with all that it calls: a process makes its network once
    /// and keeps it. The language does not depend on it. Such a rule has a string.
    pub is_common: bool,
}

/// A whole grammar.
#[derive(Clone, Debug)]
pub struct Grammar {
    rules: Apart<Rule>,
    exprs: Apart<Expr>,
    positions: Vec<Position>,
    root: RuleId,
}

impl Grammar {
    /// The rules, in the order written.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
    /// One rule.
    pub fn rule(&self, id: RuleId) -> &Rule {
        &self.rules[id.index()]
    }
    /// The start rule.
    pub fn root(&self) -> RuleId {
        self.root
    }
    /// One expression.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }
    /// All expressions, children before parents.
    pub fn exprs(&self) -> &[Expr] {
        &self.exprs
    }
    /// Expressions, and the states and edges of automata.
    pub fn size(&self) -> usize {
        let automata = self.exprs.iter().filter_map(|expr| match expr {
            Expr::Automaton(automaton) => Some(automaton.size()),
            _ => None,
        });
        self.exprs.len() + automata.sum::<usize>()
    }
    /// Where an expression stands in the text.
    pub fn position(&self, id: ExprId) -> Position {
        self.positions[id.index()]
    }
    /// The same grammar without any `(= ...)`: for lookahead that the rules imply.
    pub fn without_lookahead(&self) -> Grammar {
        let mut out = self.clone();
        out.rules.iter_mut().for_each(|rule| rule.lookahead = None);
        out
    }
}

/// Builds a [`Grammar`] bottom-up.
#[derive(Debug, Default)]
pub struct GrammarBuilder {
    exprs: Apart<Expr>,
    positions: Vec<Position>,
}

impl GrammarBuilder {
    /// An empty arena.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an expression whose children were added before.
    pub fn add(&mut self, expr: Expr, position: Position) -> ExprId {
        let id = ExprId::new(self.exprs.len());
        debug_assert!(match &expr {
            Expr::Sequence(xs) | Expr::Choice(xs) => xs.len() >= 2 && xs.iter().all(|x| *x < id),
            Expr::Repeat { body, .. } => *body < id,
            Expr::Automaton(automaton) => automaton.parts.iter().all(|part| part.1 < id),
            _ => true,
        });
        self.exprs.push(expr);
        self.positions.push(position);
        id
    }

    /// The number of expressions so far.
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// The expression added under `id`.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id.index()]
    }

    /// Closes the arena. `rules[i]` is the rule that `RuleId(i)` names; `root` is one of them.
    pub fn finish(self, rules: Vec<Rule>, root: RuleId) -> Grammar {
        assert!(root.index() < rules.len(), "the root is a rule of the grammar");
        Grammar { rules: rules.into(), exprs: self.exprs, positions: self.positions, root }
    }
}
