//! The dialect of the crate `regex`: its own parser, `regex-syntax`, says what a pattern means.
//!
//! What that parser returns is copied node by node. It holds no lookaround; the places where words
//! begin and end become lookaround here.

use super::error::{PatternError, PatternFault};
use super::flags::Flags;
use super::parser::ParsedPattern;
use super::syntax::{Assertion, PatternNodeId, PatternTree};
use super::unicode;
use crate::grammar::CharSet;
use regex_syntax::ast::ErrorKind;
use regex_syntax::hir::{Hir, HirKind, Look};
use regex_syntax::{Error, ParserBuilder};

/// What is left to do: a part to be read, or one whose parts are read.
enum HirStep<'a> {
    Read(&'a Hir),
    Build(&'a Hir),
}

pub(super) fn parse(text: &str, flags: Flags) -> Result<ParsedPattern, PatternError> {
    let hir = ParserBuilder::new()
        .case_insensitive(flags.ignores_case)
        .multi_line(flags.is_multiline)
        .dot_matches_new_line(flags.dot_is_all)
        .nest_limit(u32::MAX)
        .build()
        .parse(text)
        .map_err(|error| refusal(text, &error))?;
    let mut tree = PatternTree::default();
    let mut has_lazy = false;
    let mut done: Vec<PatternNodeId> = Vec::new();
    let mut steps = vec![HirStep::Read(&hir)];
    while let Some(step) = steps.pop() {
        let node = match step {
            HirStep::Read(hir) => match hir.kind() {
                HirKind::Concat(parts) | HirKind::Alternation(parts) => {
                    steps.push(HirStep::Build(hir));
                    steps.extend(parts.iter().rev().map(HirStep::Read));
                    continue;
                }
                HirKind::Repetition(repetition) => {
                    has_lazy |= !repetition.greedy && Some(repetition.min) != repetition.max;
                    steps.push(HirStep::Build(hir));
                    steps.push(HirStep::Read(&repetition.sub));
                    continue;
                }
                HirKind::Capture(capture) => {
                    steps.push(HirStep::Read(&capture.sub));
                    continue;
                }
                HirKind::Empty => tree.empty(),
                HirKind::Literal(literal) => {
                    let text = String::from_utf8_lossy(&literal.0);
                    let leaves = text.chars().map(|c| leaf(&mut tree, CharSet::single(c.into())));
                    let leaves = leaves.collect();
                    tree.sequence(leaves)
                }
                HirKind::Class(class) => leaf(&mut tree, unicode::set_of(class)),
                HirKind::Look(look) => place(&mut tree, *look)?,
            },
            HirStep::Build(hir) => match hir.kind() {
                HirKind::Concat(parts) => {
                    let parts = done.split_off(done.len() - parts.len());
                    tree.sequence(parts)
                }
                HirKind::Alternation(parts) => {
                    let parts = done.split_off(done.len() - parts.len());
                    tree.choice(parts)
                }
                HirKind::Repetition(repetition) => match done.pop() {
                    Some(body) => tree.repeat(body, repetition.min, repetition.max),
                    None => continue,
                },
                _ => continue,
            },
        };
        done.push(node);
    }
    tree.root = done.pop();
    Ok(ParsedPattern { tree, is_annex_b: false, remarks: Vec::new(), has_lazy })
}

fn leaf(tree: &mut PatternTree, set: CharSet) -> PatternNodeId {
    let set = tree.add_set(unicode::without_surrogates(&set));
    tree.leaf(set)
}

fn place(tree: &mut PatternTree, look: Look) -> Result<PatternNodeId, PatternError> {
    let is_ascii = matches!(
        look,
        Look::WordAscii
            | Look::WordAsciiNegate
            | Look::WordStartAscii
            | Look::WordEndAscii
            | Look::WordStartHalfAscii
            | Look::WordEndHalfAscii
    );
    let word = if is_ascii { unicode::ascii_word() } else { unicode::word_of_rust() };
    let word = |tree: &mut PatternTree| tree.add_set(word.clone());
    let beside = |tree: &mut PatternTree, is_ahead, is_negated| {
        let set = word(tree);
        let body = tree.leaf(set);
        tree.look(body, is_ahead, is_negated)
    };
    Ok(match look {
        Look::Start => tree.assert(Assertion::Start),
        Look::End => tree.assert(Assertion::End),
        Look::StartLF => {
            let lines = tree.add_set(unicode::newline());
            tree.assert(Assertion::LineStart(lines))
        }
        Look::EndLF => {
            let lines = tree.add_set(unicode::newline());
            tree.assert(Assertion::LineEnd(lines))
        }
        Look::StartCRLF | Look::EndCRLF => {
            let message = "lines that end with a carriage return are not supported; drop the flag";
            return Err(PatternError::unsupported("the flag R", message, 0));
        }
        Look::WordAscii | Look::WordUnicode => {
            let word = word(tree);
            tree.assert(Assertion::Boundary { word, is_negated: false })
        }
        Look::WordAsciiNegate | Look::WordUnicodeNegate => {
            let word = word(tree);
            tree.assert(Assertion::Boundary { word, is_negated: true })
        }
        Look::WordStartAscii | Look::WordStartUnicode => {
            let parts = vec![beside(tree, false, true), beside(tree, true, false)];
            tree.sequence(parts)
        }
        Look::WordEndAscii | Look::WordEndUnicode => {
            let parts = vec![beside(tree, false, false), beside(tree, true, true)];
            tree.sequence(parts)
        }
        Look::WordStartHalfAscii | Look::WordStartHalfUnicode => beside(tree, false, true),
        Look::WordEndHalfAscii | Look::WordEndHalfUnicode => beside(tree, true, true),
    })
}

/// What the parser says no for.
fn refusal(text: &str, error: &Error) -> PatternError {
    let (message, offset, kind) = match error {
        Error::Parse(error) if *error.kind() == ErrorKind::UnsupportedLookAround => {
            return without_lookaround(text, error.span().start.offset);
        }
        Error::Parse(error) => {
            let kind = match error.kind() {
                ErrorKind::UnsupportedBackreference => PatternFault::Unsupported,
                _ => PatternFault::Syntax,
            };
            (error.kind().to_string(), error.span().start.offset, kind)
        }
        Error::Translate(error) => {
            (error.kind().to_string(), error.span().start.offset, PatternFault::Syntax)
        }
        _ => ("the text is no pattern of the crate regex".to_owned(), 0, PatternFault::Syntax),
    };
    let at = text.char_indices().take_while(|&(place, _)| place < offset).count();
    let construct = text.chars().nth(at).map_or("the end".to_owned(), |here| format!("`{here}`"));
    PatternError::new(kind, &construct, message, at)
}

/// The refusal of a lookaround, which begins at a byte of the text.
fn without_lookaround(text: &str, offset: usize) -> PatternError {
    let before = text.get(..offset).unwrap_or_default();
    let rest = text.get(offset..).unwrap_or_default();
    let signs = ["(?<=", "(?<!", "(?=", "(?!"];
    let sign = signs.into_iter().find(|sign| rest.starts_with(sign)).unwrap_or("(?=");
    let message = "the dialect \"rust\" has no lookaround; take dialect=\"python\", or dialect=\"ecma\" where the \
                   pattern is not in Lark";
    let at = before.chars().count();
    PatternError::unsupported(&format!("lookaround `{sign}`"), message, at)
}
