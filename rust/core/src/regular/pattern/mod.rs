//! Regular expressions: from the text of a pattern to an automaton or to a grammar's expression.
//!
//! Design: docs/design/regular-languages.md, "Patterns".
//!
//! ```text
//! error      what a pattern is refused for, and at which column
//! syntax     the tree: an arena whose children stand before their parents
//! parser     alternatives and groups: one loop over the text with a stack of groups
//!  flags     which flags are in force
//!  groups    what stands behind `(`: groups, captures, names, lookaround, flags such as `(?i)`
//!  quantifiers  `*`, `+`, `?`, counts
//!  escapes   what stands behind a backslash
//!  classes   what stands in brackets
//!  foreign   what ECMA-262 lacks and other dialects have: `\A`, `\z`, `\h`, `(?P<name>`; advice: what its notes and
//!            refusals say; delimiters: `/^abc$/`
//!  reading   what an escape, a quantifier and a class may be read as
//! rust       the dialect of the crate `regex`, read by its own parser
//! unicode    properties, case folding, the sets behind \d \w \s
//! program    the positions of a pattern and the ways between them (Thompson's construction)
//! lengths    lookaheads that bound the length of the text
//! to_dfa     the choice of one of three ways to an automaton (`Pattern::to_dfa`), and the first way itself:
//!            patterns whose only assertions are `^` and `$`
//! kinds      the second way: patterns with `\b`, `\B` and anchors of lines, where few kinds of characters are
//!            told apart
//! residual   the third way, for all other patterns, such as those with lookaround: formulas over positions, read
//!            character by character
//!  clauses   the formulas: disjunctions of conjunctions
//! directions where parts look, and patterns cut into pieces of which none looks into another
//! outside    conditions at the edges of a pattern, which look at the text around a match
//! to_expr    expressions of a grammar, in which counts stay counts
//! boundaries `\b` and `\B` written out as sets of characters, for these
//! ```
//!
//! No pass recurses, so the nesting of groups costs memory and no stack.

mod advice;
mod boundaries;
mod classes;
mod clauses;
mod delimiters;
mod directions;
mod error;
mod escapes;
mod flags;
mod foreign;
mod groups;
mod kinds;
mod lengths;
mod outside;
mod parser;
mod program;
mod quantifiers;
mod reading;
mod residual;
mod rust;
mod syntax;
#[cfg(test)]
mod tests;
mod to_dfa;
mod to_expr;
mod unicode;

pub(crate) use directions::LARGE_COUNT;
pub use error::{PatternError, PatternFault};
pub use lengths::LengthsAside;
pub use reading::Remark;

use lengths::is_plain;
use parser::ParsedPattern;
use syntax::{PatternNode, PatternTree};

/// Whose regular expressions a text is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum PatternDialect {
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
    tree: PatternTree,
    is_annex_b: bool,
    is_plain: bool,
    has_lazy: bool,
    remarks: Vec<Remark>,
}

/// Reads a regular expression. `flags` are letters out of `i`, `m`, `s`; `u` besides, which keeps
/// a pattern of [`PatternDialect::Ecma`] from being read by Annex B.
///
/// A text of [`PatternDialect::Ecma`] is read by one of two grammars of ECMA-262. The grammar with the
/// flag `u` comes first. Where the text is no pattern by it, the grammar of Annex B without that
/// flag is taken for the whole text: a backslash before a character that is neither an ASCII letter
/// nor a digit is that character (`\-`, `\_`), `{`, `}` and `]` may stand alone, `\012` and `\177`
/// are octal, `[\w-a]` holds a hyphen, lookaheads take quantifiers. In both readings a character
/// is a code point, and case is folded as with the flag `u`; that differs from ECMA-262 without
/// the flag only for characters past U+FFFF and for a few foldings (`ſ`, `K`).
///
/// Patterns come from other dialects too. What ECMA-262 lacks and they have is read as they read it
/// where they agree (`(?i)`, `(?P<n>..)`, `\A`, `\z`, `\pL`, `\Q..\E`, `\x{41}`), and
/// [`Pattern::remarks`] says so; else it is refused by its name. No letter stands for itself behind a
/// backslash, as Annex B would have it, and `\p{..}` and `\u{..}` mean in both readings what they
/// mean with the flag `u`. With that flag given, ECMA-262 alone counts.
///
/// `\p{..}`, case folding, and the `\d \w \s` of Python and Rust are those of Unicode 16.
///
/// # Errors
/// [`PatternFault::Syntax`] where the text is no pattern, [`PatternFault::Unsupported`] where it
/// means what no automaton says (a backreference) or what this reader does not know.
pub fn parse(text: &str, dialect: PatternDialect, flags: &str) -> Result<Pattern, PatternError> {
    let flags = flags::Flags::read(flags, dialect)?;
    let ParsedPattern { tree, is_annex_b, remarks, has_lazy } = match dialect {
        PatternDialect::Rust => rust::parse(text, flags)?,
        PatternDialect::Ecma | PatternDialect::Python => parser::parse(text, dialect, flags)?,
    };
    let is_plain = is_plain(&tree);
    Ok(Pattern { tree, is_annex_b, is_plain, has_lazy, remarks })
}

impl Pattern {
    /// Whether the text is no pattern with the flag `u`, so that Annex B says what it means.
    pub fn is_annex_b(&self) -> bool {
        self.is_annex_b
    }

    /// Whether a quantifier is lazy, which changes no text that matches as a whole.
    pub fn has_lazy_quantifier(&self) -> bool {
        self.has_lazy
    }

    /// How constructs were read that ECMA-262 lacks, each once, in the order of the text.
    pub fn remarks(&self) -> &[Remark] {
        &self.remarks
    }

    /// Whether the only assertions are `^` and `$` at an end of the text: neither lookaround, nor
    /// `\b`, nor anchors of lines.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The greatest count of a quantifier; 1 where there is none.
    pub fn greatest_count(&self) -> u32 {
        let needed = self.tree.needed(self.tree.root());
        let counts = self.tree.nodes.iter().zip(needed).map(|(node, is_needed)| match *node {
            PatternNode::Repeat { min, max, .. } if is_needed => max.unwrap_or(min).max(min),
            _ => 1,
        });
        counts.max().unwrap_or(1)
    }
}
