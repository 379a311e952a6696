//! The part of many tags, made from the tags themselves: of a choice of them, or of free text that
//! calls them.
//!
//! The way of all other rules goes over a grammar many times; here there is one pass over the texts.
//! So a request that has one tool more costs little where the parts of the others are there. Where
//! tags are not plain (see [`plain`]), they go the way of all others as a grammar.

use super::NetworkOptions;
use super::direct::behind_a_start;
use super::identity::Identity;
use super::part::Part;
use super::rules::{FRAME, RuleSet};
use super::tree::Tree;
use crate::automata::alphabet::{Alphabet, AlphabetBuilder};
use crate::automata::{Automaton, Letter, call};
use crate::error::{Error, Position, Result};
use crate::grammar::{
    Callee, Compact, Dispatch, Expr, Grammar, GrammarBuilder, Macro, MacroArgument, Rule,
    RuleOptions, compact,
};
use crate::ids::{ExprId, RuleId};
use crate::work::Work;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A text, a string of the content, one of a few texts.
#[derive(Clone, Debug)]
pub struct Tag<'a, C> {
    /// The text with which it begins.
    pub begin: &'a [u8],
    /// What stands between, in whatever form.
    pub content: C,
    /// The texts of which one ends it; none is the empty one.
    pub ends: &'a [Box<[u8]>],
}

/// How tags come.
#[derive(Clone, Copy, Debug)]
pub enum Way<'a> {
    /// One of them.
    Choice,
    /// In free text, as in a `TagDispatch`; each has one end.
    Dispatch {
        /// Whether free text goes on after a tag.
        loops: bool,
        /// Texts that do not come in free text.
        excludes: &'a [Box<[u8]>],
    },
}

impl Part {
    /// The part of tags; `None` where none of their strings is one.
    ///
    /// The content of a tag is its part, or `None` where it has no string.
    ///
    /// # Errors
    /// Those of [`Network::make`](super::Network::make).
    pub fn of_tags(
        tags: &[Tag<'_, Option<Arc<Self>>>],
        way: Way<'_>,
        options: &NetworkOptions,
        work: &Work<'_>,
    ) -> Result<Option<Arc<Self>>> {
        let texts = tags.iter().flat_map(texts);
        work.spend(3 * (tags.len() + texts.map(<[u8]>::len).sum::<usize>()))?;
        let is_choice = matches!(way, Way::Choice);
        if is_choice && options.prune && tags.iter().all(|tag| tag.content.is_none()) {
            return Ok(None);
        }
        let made = match plain(tags, way, options)? {
            Some(rules) => {
                work.spend(FRAME * rules.automata[0].len() + rules.automata[0].num_edges())?;
                let contents = (1..).map(RuleId::new).zip(tags);
                let contents = contents.filter_map(|(n, tag)| Some((n, tag.content.clone()?)));
                let mut made = Self::of_rules(&rules, &contents.collect(), options)?;
                // Free text has no key, as when it is written: texts move between parts without one.
                made.key = if is_choice { key(tags, options) } else { None };
                Arc::new(made)
            }
            None => {
                let parts = tags.iter().map(|tag| tag.content.clone());
                let parts: Vec<_> = (1..).map(RuleId::new).zip(parts).collect();
                let grammar = grammar(tags, way).with_dispatches(&options.limits)?;
                Self::around(&grammar, &parts, false, options, work)?
            }
        };
        Ok(Some(made))
    }
}

fn texts<'t, C>(tag: &'t Tag<'_, C>) -> impl Iterator<Item = &'t [u8]> {
    std::iter::once(tag.begin).chain(tag.ends.iter().map(|end| &**end))
}

/// The grammar of tags: the first rule; each content a rule after it, of which nothing is said.
pub fn grammar<C>(tags: &[Tag<'_, C>], way: Way<'_>) -> Grammar {
    let mut out = Written::default();
    let contents: Vec<ExprId> =
        (1..=tags.len()).map(|n| out.add(Expr::Rule(RuleId::new(n)))).collect();
    let with_end = |out: &mut Written, tag: &Tag<'_, C>, parts: &mut Vec<ExprId>| {
        let ends = tag.ends.iter().map(|end| out.text(end)).collect();
        let end = out.choice(ends);
        if !matches!(out.builder.expr(end), Expr::Empty) {
            parts.push(end);
        }
    };
    let mut rules = vec![ExprId::new(0)];
    rules.extend(tags.iter().map(|_| out.add(Expr::Empty)));
    rules[0] = match way {
        Way::Choice => {
            let mut choices = Vec::with_capacity(tags.len());
            for (tag, &content) in tags.iter().zip(&contents) {
                let mut parts = Vec::with_capacity(3);
                if !tag.begin.is_empty() {
                    parts.push(out.text(tag.begin));
                }
                parts.push(content);
                with_end(&mut out, tag, &mut parts);
                choices.push(out.sequence(parts));
            }
            out.choice(choices)
        }
        Way::Dispatch { loops, excludes } => {
            let mut positional = Vec::with_capacity(tags.len());
            for (tag, &content) in tags.iter().zip(&contents) {
                let mut parts = vec![content];
                with_end(&mut out, tag, &mut parts);
                let rule = MacroArgument::Rule(RuleId::new(rules.len()));
                rules.push(out.sequence(parts));
                let text = MacroArgument::Text(tag.begin.into());
                positional.push(MacroArgument::Tuple(vec![text, rule]));
            }
            let mut named = vec![("loop_after_dispatch".to_owned(), MacroArgument::Boolean(loops))];
            if !excludes.is_empty() {
                let texts = excludes.iter().map(|text| MacroArgument::Text(text.clone())).collect();
                named.push(("excludes".to_owned(), MacroArgument::Tuple(texts)));
            }
            let name = "TagDispatch".to_owned();
            out.add(Expr::Macro(Macro { name, positional, named }))
        }
    };
    let name = |number: usize| match number {
        0 => "root".to_owned(),
        number if number <= tags.len() => format!("content_{}", number - 1),
        number => format!("tag_{}", number - 1 - tags.len()),
    };
    let rule = |(number, body)| Rule {
        name: name(number),
        options: RuleOptions::default(),
        body,
        lookahead: None,
        position: Position::default(),
    };
    let rules = rules.into_iter().enumerate().map(rule).collect();
    out.builder.finish(rules, RuleId::new(0))
}

/// A grammar that stands in no text.
#[derive(Default)]
struct Written {
    builder: GrammarBuilder,
}

impl Written {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.builder.add(expr, Position::default())
    }

    fn text(&mut self, text: &[u8]) -> ExprId {
        self.add(if text.is_empty() { Expr::Empty } else { Expr::Literal(text.into()) })
    }

    fn choice(&mut self, choices: Vec<ExprId>) -> ExprId {
        match choices[..] {
            [] => self.add(Expr::Empty),
            [only] => only,
            _ => self.add(Expr::Choice(choices.into())),
        }
    }

    fn sequence(&mut self, parts: Vec<ExprId>) -> ExprId {
        match parts[..] {
            [only] => only,
            _ => self.add(Expr::Sequence(parts.into())),
        }
    }
}

/// The digest of what the tags say; `None` where that of a content is not known.
fn key(tags: &[Tag<'_, Option<Arc<Part>>>], options: &NetworkOptions) -> Option<Identity> {
    let mut text = format!("{options:?}").into_bytes();
    let mut add = |bytes: &[u8]| {
        text.extend((bytes.len() as u64).to_le_bytes());
        text.extend(bytes);
    };
    for tag in tags {
        add(tag.begin);
        match &tag.content {
            Some(part) => add(&part.key?),
            None => add(&[]),
        }
        add(&(tag.ends.len() as u64).to_le_bytes());
        tag.ends.iter().for_each(|end| add(end));
    }
    let mut hasher = blake3::Hasher::new_derive_key("tokfold choice of tags");
    hasher.update(&text);
    Some(*hasher.finalize().as_bytes())
}

/// The rule of tags, rule 0, where it is plain to see: no content has the empty string, content that
/// may come at the same place twice is followed by the same, and in free text all contents have
/// strings. Contents have their places among the tags, counted from 1, as numbers.
fn plain(
    tags: &[Tag<'_, Option<Arc<Part>>>],
    way: Way<'_>,
    options: &NetworkOptions,
) -> Result<Option<RuleSet>> {
    // Without counters and pruning the way of all others says more of each state.
    let is_usual = options.counters && options.prune && options.simplify;
    let parts = || tags.iter().filter_map(|tag| Some((tag, tag.content.as_ref()?)));
    if !is_usual || parts().any(|(_, part)| part.is_nullable()) {
        return Ok(None);
    }
    let mut letters = AlphabetBuilder::default();
    for (tag, _) in parts() {
        texts(tag).for_each(|text| text.iter().for_each(|&byte| letters.add(byte, byte)));
    }
    let (alphabet, automaton, accepts_empty) = match way {
        Way::Choice => {
            let alphabet = letters.finish().ok_or_else(too_many_classes)?;
            let automaton = tree(tags, &alphabet);
            (alphabet, automaton, false)
        }
        Way::Dispatch { loops, excludes } => {
            if tags.iter().any(|tag| tag.content.is_none() || tag.ends.len() != 1) {
                return Ok(None);
            }
            excludes.iter().flatten().for_each(|&byte| letters.add(byte, byte));
            let alphabet = letters.finish().ok_or_else(too_many_classes)?;
            let excludes = excludes.iter().map(|text| &**text).collect();
            let begins = tags.iter().zip(0..).map(|(tag, number)| (tag.begin, number)).collect();
            let compact = compact(&Dispatch { tags: begins, excludes, loops }, &options.limits)?;
            let accepts_empty = compact.automaton.finals.contains(&compact.automaton.start);
            let Some(automaton) = free_text(tags, compact, &alphabet) else { return Ok(None) };
            (alphabet, automaton, accepts_empty)
        }
    };
    if !automaton.is_deterministic() {
        return Ok(None);
    }
    let mut automata = vec![Automaton::default(); tags.len() + 1];
    automata[0] = automaton;
    Ok(Some(RuleSet {
        automata,
        written: FxHashMap::default(),
        start: 0,
        alphabet,
        accepts_empty,
        counted: FxHashMap::default(),
        has_large: true,
        has_loops: true,
    }))
}

fn too_many_classes() -> Error {
    Error::State("256 bytes have classes".into())
}

/// The automaton of free text, with the ends of the tags behind their contents.
fn free_text(
    tags: &[Tag<'_, Option<Arc<Part>>>],
    compact: Compact,
    alphabet: &Alphabet,
) -> Option<Automaton> {
    let Compact { automaton, fallbacks } = compact;
    let mut edges: Vec<Vec<(Letter, u32)>> = vec![Vec::new(); automaton.states as usize];
    for &(from, first, last, to) in &automaton.bytes {
        let classes = alphabet.classes(first, last).map(Letter::from);
        edges[from as usize].extend(classes.map(|class| (class, to + 1)));
    }
    let mut behind: FxHashMap<&[u8], u32> = FxHashMap::default();
    let numbers = numbers(tags);
    for edge in &automaton.calls {
        let Callee::Rule(number) = edge.callee else { return None };
        let end = &tags[number].ends[0];
        // Where the end is read from its last byte back, all lead to the same state.
        let to = *behind.entry(end).or_insert_with(|| {
            end.iter().rev().fold(edge.to, |to, &byte| {
                edges.push(vec![(Letter::from(alphabet.class(byte)), to + 1)]);
                edges.len() as u32 - 1
            })
        });
        edges[edge.from as usize].push((call(numbers[number]), to + 1));
    }
    let mut finals = vec![false; edges.len()];
    automaton.finals.iter().for_each(|&state| finals[state as usize] = true);
    let mut falls_back = vec![false; edges.len()];
    fallbacks.iter().for_each(|&state| falls_back[state as usize] = true);
    behind_a_start(&edges, automaton.start, &finals, &falls_back)
}

/// The numbers of contents: those that say the same are one, so that what is not deterministic is
/// seen.
fn numbers(tags: &[Tag<'_, Option<Arc<Part>>>]) -> Vec<usize> {
    let mut known: FxHashMap<Identity, usize> = FxHashMap::default();
    let numbers = (1..).zip(tags).map(|(number, tag)| {
        let key = tag.content.as_ref().and_then(|part| part.key);
        key.map_or(number, |key| *known.entry(key).or_insert(number))
    });
    numbers.collect()
}

/// The tree of the beginnings. Behind their contents, tags that end alike share their states.
fn tree(tags: &[Tag<'_, Option<Arc<Part>>>], alphabet: &Alphabet) -> Automaton {
    let mut tree = Tree::new();
    let read = |tree: &mut Tree, from: u32, text: &[u8]| {
        tree.read(from, text.iter().map(|&byte| alphabet.class(byte)))
    };
    let mut behind: FxHashMap<&[Box<[u8]>], u32> = FxHashMap::default();
    for (number, tag) in numbers(tags).into_iter().zip(tags) {
        if tag.content.is_none() {
            continue;
        }
        let to = *behind.entry(tag.ends).or_insert_with(|| {
            let to = tree.state();
            for end in tag.ends {
                let last = read(&mut tree, to, end);
                tree.set_final(last);
            }
            if tag.ends.is_empty() {
                tree.set_final(to);
            }
            to
        });
        let from = read(&mut tree, 0, tag.begin);
        tree.call(from, call(number), to);
    }
    tree.automaton()
}
