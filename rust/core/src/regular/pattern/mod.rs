//! Regular expressions: from the text of a pattern to an automaton or to a grammar's expression.
//!
//! ```text
//! error      what a pattern is refused for, and at which column
//! syntax     the tree: an arena whose children stand before their parents
//! parser     alternatives and groups: one loop over the text with a stack of groups
//!  flags     the flags
//!  groups    what stands behind `(?`
//!  quantifiers  `*`, `+`, `?`, counts
//!  escapes   what stands behind a backslash
//!  classes   what stands in brackets
//! rust       the dialect of the crate `regex`, read by its own parser
//! unicode    properties, case folding, the sets behind \d \w \s
//! program    the positions of a pattern and the ways between them (Thompson's construction)
//! to_dfa     automata of patterns whose assertions are only `^` and `$`
//! residual   automata of all other patterns: formulas over positions, read character by character
//!  clauses   the formulas: disjunctions of conjunctions
//! to_expr    expressions of a grammar, in which counts stay counts
//! ```
//!
//! No pass recurses, so the nesting of groups costs memory and no stack.

mod classes;
mod clauses;
mod error;
mod escapes;
mod flags;
mod groups;
mod parser;
mod program;
mod quantifiers;
mod residual;
mod rust;
mod syntax;
#[cfg(test)]
mod tests;
mod to_dfa;
mod to_expr;
mod unicode;

pub use error::{PatternError, PatternFault};

use syntax::{Node, Tree};

/// Whose regular expressions a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// ECMA-262 (2025) as with the flag `u`, and the syntax of its Annex B where the text is no
    /// pattern with that flag: see [`parse`].
    #[default]
    Ecma,
    /// Python's `re` for `str`. `\d`, `\w`, `\s`, `\b` and `.` are Python's, `$` also holds before
    /// a newline that ends the text. Where versions of Python differ, the text is read as by 3.14:
    /// `\z` is known, and `\B` matches in the empty text.
    Python,
    /// The crate `regex` of Rust, with its flag `u`.
    Rust,
}

/// A regular expression that was read.
///
/// A match is looked for in a text of Unicode scalar values; which of several matches would be
/// reported is no question here, so greedy and lazy quantifiers are the same.
#[derive(Clone, Debug)]
pub struct Pattern {
    tree: Tree,
    is_annex_b: bool,
    is_plain: bool,
}

/// Reads a regular expression. `flags` are letters out of `i`, `m`, `s`; `u` besides, which keeps
/// a pattern of [`Dialect::Ecma`] from being read by Annex B.
///
/// A text of [`Dialect::Ecma`] is read by one of two grammars of ECMA-262. The grammar with the
/// flag `u` comes first. Where the text is no pattern by it, the grammar of Annex B without that
/// flag is taken for the whole text: a backslash before any other character is that character
/// (`\-`, `\_`, `\Z`), `{`, `}` and `]` may stand alone, `\1` to `\377` are octal where there is no
/// such group, `[\w-a]` holds a hyphen, lookaheads take quantifiers. In both readings a character
/// is a code point, and case is folded as with the flag `u`; that differs from ECMA-262 without
/// the flag only for characters past U+FFFF and for a few foldings (`ſ`, `K`). Annex B would read
/// `\p{..}` and `\u{..}` as the letters p and u: such a text is refused.
///
/// `\p{..}`, case folding, and the `\d \w \s` of Python and Rust are those of Unicode 16.
///
/// # Errors
/// [`PatternFault::Syntax`] where the text is no pattern, [`PatternFault::Unsupported`] where it
/// means what no automaton says (a backreference) or what this reader does not know.
pub fn parse(text: &str, dialect: Dialect, flags: &str) -> Result<Pattern, PatternError> {
    let flags = flags::Flags::read(flags, dialect)?;
    let (tree, is_annex_b) = match dialect {
        Dialect::Rust => (rust::parse(text, flags)?, false),
        Dialect::Ecma | Dialect::Python => parser::parse(text, dialect, flags)?,
    };
    let mut nodes = tree.nodes.iter().zip(tree.needed(tree.root()));
    let is_plain = nodes.all(|(node, is_needed)| match node {
        Node::Assert(assertion) => !is_needed || assertion.is_plain(),
        Node::Look { .. } => !is_needed,
        _ => true,
    });
    Ok(Pattern { tree, is_annex_b, is_plain })
}

impl Pattern {
    /// Whether the text is no pattern with the flag `u`, so that Annex B says what it means.
    pub fn is_annex_b(&self) -> bool {
        self.is_annex_b
    }

    /// Whether the only assertions are `^` and `$` at an end of the text: neither lookaround, nor
    /// `\b`, nor anchors of lines.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The greatest count of a quantifier; 1 where there is none.
    pub fn greatest_count(&self) -> u32 {
        let counts = self.tree.nodes.iter().map(|node| match *node {
            Node::Repeat { min, max, .. } => max.unwrap_or(min).max(min),
            _ => 1,
        });
        counts.max().unwrap_or(1)
    }
}
