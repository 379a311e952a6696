//! The part of many tags, made from the tags themselves: of a choice of them, or of free text that
//! calls them.
//!
//! The way of all other rules goes over a grammar many times; here there is one pass over the texts.
//! So a request that has one tool more costs little where the parts of the others are there. Where
//! tags are not plain (see [`plain`]), they go the way of all others as a grammar.

use super::NetworkOptions;
use super::direct::behind_a_start;
use super::naming::Identity;
use super::part::NetworkPart;
use super::rules::{FRAME, RuleSet};
use super::tree::PrefixTree;
use crate::automata::alphabet::{Alphabet, AlphabetBuilder};
use crate::automata::{Automaton, Letter, call};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Position, Result};
use crate::grammar::{
    Callee, Compact, Dispatch, Expr, Grammar, GrammarBuilder, Macro, MacroArgument, Rule,
    RuleOptions, compact,
};
use crate::ids::{ExprId, RuleId};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// A tag with more contents that may be empty goes the way of all others: each is one branch more.
const MANY_NULLABLE: usize = 3;

/// Texts and strings of contents in turn; at the end one of a few texts.
#[derive(Clone, Copy, Debug)]
pub struct Tag<'a> {
    /// The text with which it begins: where it comes in free text, what calls it.
    pub begin: &'a [u8],
    /// For each of its contents the text before it.
    pub texts: &'a [Box<[u8]>],
    /// The texts of which one ends it; none is the empty one.
    pub ends: &'a [Box<[u8]>],
}

impl<'a> Tag<'a> {
    fn all_texts(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let more = self.texts.iter().chain(self.ends).map(|text| &**text);
        std::iter::once(self.begin).chain(more)
    }
}

/// Tags with their contents, those of the first tag first.
struct Filled<'a> {
    tags: &'a [Tag<'a>],
    contents: &'a [Option<Arc<NetworkPart>>],
}

impl<'a> Filled<'a> {
    /// The tags, each with the number of its first content, counted from 0.
    fn tags(&self) -> impl Iterator<Item = (&'a Tag<'a>, usize)> + use<'a> {
        let mut next = 0;
        self.tags.iter().map(move |tag| {
            let first = next;
            next += tag.texts.len();
            (tag, first)
        })
    }

    /// Whether all contents of a tag have strings.
    fn has_strings(&self, (tag, first): (&Tag<'_>, usize)) -> bool {
        self.contents[first..first + tag.texts.len()].iter().all(Option::is_some)
    }

    fn is_nullable(&self, content: usize) -> bool {
        self.contents[content].as_ref().is_some_and(|part| part.is_nullable())
    }

    /// The numbers of contents, counted from 1: those that say the same are one, so that what is not
    /// deterministic is seen.
    fn numbers(&self) -> Vec<usize> {
        let mut known: FxHashMap<Identity, usize> = FxHashMap::default();
        let numbers = (1..).zip(self.contents).map(|(number, content)| {
            let key = content.as_ref().and_then(|part| part.key);
            key.map_or(number, |key| *known.entry(key).or_insert(number))
        });
        numbers.collect()
    }
}

/// How tags come.
#[derive(Clone, Copy, Debug)]
pub enum TagPlacement<'a> {
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

impl NetworkPart {
    /// The part of tags; `None` where none of their strings is one.
    ///
    /// The contents of all tags are those of the first, of the second and so on: each its part, or
    /// `None` where it has no string.
    ///
    /// # Errors
    /// Those of [`Network::make`](super::Network::make).
    pub fn of_tags(
        tags: &[Tag<'_>],
        contents: &[Option<Arc<Self>>],
        way: TagPlacement<'_>,
        options: &NetworkOptions,
        work: &Budget,
    ) -> Result<Option<Arc<Self>>> {
        let tags = Filled { tags, contents };
        let texts = tags.tags.iter().flat_map(Tag::all_texts);
        work.spend(3 * (tags.tags.len() + texts.map(<[u8]>::len).sum::<usize>()))?;
        let is_choice = matches!(way, TagPlacement::Choice);
        if is_choice && options.prune && !tags.tags().any(|tag| tags.has_strings(tag)) {
            return Ok(None);
        }
        let made = match plain(&tags, way, options, work)? {
            Some(rules) => {
                work.spend(FRAME * rules.automata[0].len() + rules.automata[0].num_edges())?;
                let contents = (1..).map(RuleId::new).zip(contents);
                let contents = contents.filter_map(|(n, content)| Some((n, content.clone()?)));
                let mut made = Self::of_rules(&rules, &contents.collect(), options, work)?;
                // Free text has no key, as when it is written: texts move between parts without one.
                made.key = if is_choice { key(&tags, options) } else { None };
                Arc::new(made)
            }
            None => {
                let parts: Vec<_> = (1..).map(RuleId::new).zip(contents.iter().cloned()).collect();
                let grammar = grammar(tags.tags, way).with_dispatches(&options.limits)?;
                Self::around(&grammar, &parts, false, options, work)?
            }
        };
        Ok(Some(made))
    }
}

/// The grammar of tags: the first rule; each content a rule after it, of which nothing is said.
pub fn grammar(tags: &[Tag<'_>], way: TagPlacement<'_>) -> Grammar {
    let mut out = Written::default();
    let num_contents = tags.iter().map(|tag| tag.texts.len()).sum::<usize>();
    let mut rules = vec![out.add(Expr::Empty); 1 + num_contents];
    let mut number = 0;
    let mut parts_of = |out: &mut Written, tag: &Tag<'_>, begin: &[u8]| {
        let mut parts = Vec::with_capacity(2 * tag.texts.len() + 1);
        let mut text = begin.to_vec();
        for before in tag.texts {
            text.extend(&**before);
            if !text.is_empty() {
                parts.push(out.text(&text));
            }
            text.clear();
            number += 1;
            parts.push(out.add(Expr::Rule(RuleId::new(number))));
        }
        if !text.is_empty() {
            parts.push(out.text(&text)); // one without contents
        }
        let ends = tag.ends.iter().map(|end| out.text(end)).collect();
        let end = out.choice(ends);
        if !matches!(out.builder.expr(end), Expr::Empty) {
            parts.push(end);
        }
        out.sequence(parts)
    };
    rules[0] = match way {
        TagPlacement::Choice => {
            let choices = tags.iter().map(|tag| parts_of(&mut out, tag, tag.begin)).collect();
            out.choice(choices)
        }
        TagPlacement::Dispatch { loops, excludes } => {
            let mut positional = Vec::with_capacity(tags.len());
            for tag in tags {
                let rule = MacroArgument::Rule(RuleId::new(rules.len()));
                rules.push(parts_of(&mut out, tag, &[]));
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
        number if number <= num_contents => format!("content_{}", number - 1),
        number => format!("tag_{}", number - 1 - num_contents),
    };
    let rule = |(number, body)| Rule {
        name: name(number),
        options: RuleOptions::default(),
        body,
        lookahead: None,
        is_common: false,
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
            [] => self.add(Expr::Empty),
            [only] => only,
            _ => self.add(Expr::Sequence(parts.into())),
        }
    }
}

/// The digest of what the tags say; `None` where that of a content is not known.
fn key(tags: &Filled<'_>, options: &NetworkOptions) -> Option<Identity> {
    let mut text = format!("{options:?}").into_bytes();
    let mut add = |bytes: &[u8]| {
        text.extend((bytes.len() as u64).to_le_bytes());
        text.extend(bytes);
    };
    for (tag, first) in tags.tags() {
        add(tag.begin);
        add(&(tag.texts.len() as u64).to_le_bytes());
        for (before, content) in tag.texts.iter().zip(&tags.contents[first..]) {
            add(before);
            match content {
                Some(part) => add(&part.key?),
                None => add(&[]),
            }
        }
        add(&(tag.ends.len() as u64).to_le_bytes());
        tag.ends.iter().for_each(|end| add(end));
    }
    let mut hasher = blake3::Hasher::new_derive_key("tokfold choice of tags");
    hasher.update(&text);
    Some(*hasher.finalize().as_bytes())
}

/// The rule of tags, rule 0, where it is plain to see: what may come at the same place twice is
/// followed by the same, and in free text all contents have strings. Contents have their places,
/// counted from 1, as numbers.
fn plain(
    tags: &Filled<'_>,
    way: TagPlacement<'_>,
    options: &NetworkOptions,
    work: &Budget,
) -> Result<Option<RuleSet>> {
    // Without counters and pruning the way of all others says more of each state.
    let is_usual = options.counters && options.prune && options.simplify;
    let nullable_of = |(tag, first): (&Tag<'_>, usize)| {
        (first..first + tag.texts.len()).filter(|&content| tags.is_nullable(content)).count()
    };
    if !is_usual || tags.tags().any(|tag| nullable_of(tag) > MANY_NULLABLE) {
        return Ok(None);
    }
    let mut letters = AlphabetBuilder::default();
    for (tag, _) in tags.tags().filter(|&tag| tags.has_strings(tag)) {
        tag.all_texts().for_each(|text| text.iter().for_each(|&byte| letters.add(byte, byte)));
    }
    let (alphabet, automaton, accepts_empty) = match way {
        TagPlacement::Choice => {
            let alphabet = letters.finish().ok_or_else(too_many_classes)?;
            let (automaton, accepts_empty) = tree(tags, &alphabet, work)?;
            (alphabet, automaton, accepts_empty)
        }
        TagPlacement::Dispatch { loops, excludes } => {
            if tags.tags().any(|tag| !tags.has_strings(tag) || tag.0.ends.len() != 1) {
                return Ok(None);
            }
            excludes.iter().flatten().for_each(|&byte| letters.add(byte, byte));
            let alphabet = letters.finish().ok_or_else(too_many_classes)?;
            let excludes = excludes.iter().map(|text| &**text).collect();
            let begins = tags.tags.iter().zip(0..).map(|(tag, number)| (tag.begin, number));
            let dispatch = Dispatch { tags: begins.collect(), excludes, loops };
            let compact = compact(&dispatch, &options.limits)?;
            let accepts_empty = compact.automaton.finals.contains(&compact.automaton.start);
            let Some(automaton) = free_text(tags, compact, &alphabet) else { return Ok(None) };
            (alphabet, automaton, accepts_empty)
        }
    };
    if !automaton.is_deterministic() {
        return Ok(None);
    }
    let mut automata = vec![Automaton::default(); tags.contents.len() + 1];
    automata[0] = automaton;
    Ok(Some(RuleSet {
        automata: automata.into(),
        written: FxHashMap::default(),
        start: 0,
        alphabet,
        accepts_empty,
        counted: FxHashMap::default(),
        with_lengths: FxHashSet::default(),
        guarded: FxHashMap::default(),
        has_large: true,
        has_loops: true,
    }))
}

fn too_many_classes() -> Error {
    Error::State("256 bytes have classes".into())
}

/// The automaton of free text, with the tags behind what calls them.
fn free_text(tags: &Filled<'_>, compact: Compact, alphabet: &Alphabet) -> Option<Automaton> {
    let Compact { automaton, fallbacks } = compact;
    let mut edges: Vec<Edges> = vec![Vec::new(); automaton.states as usize];
    for &(from, first, last, to) in &automaton.bytes {
        let classes = alphabet.classes(first, last).map(Letter::from);
        edges[from as usize].extend(classes.map(|class| (class, to + 1)));
    }
    let mut behind: FxHashMap<&[u8], u32> = FxHashMap::default();
    let (numbers, tags_there): (_, Vec<_>) = (tags.numbers(), tags.tags().collect());
    for edge in &automaton.calls {
        let Callee::Rule(number) = edge.callee else { return None };
        let (tag, first) = tags_there[number];
        // Where the end is read from its last byte back, all lead to the same state.
        let end = &tag.ends[0];
        let mut to =
            *behind.entry(end).or_insert_with(|| read_before(&mut edges, edge.to, end, alphabet));
        if tag.texts.is_empty() && to == edge.to {
            return None; // nothing is between what calls it and the free text
        }
        let mut here = if tag.texts.is_empty() { edges[to as usize].clone() } else { Edges::new() };
        for (place, before) in tag.texts.iter().enumerate().rev() {
            let content = first + place;
            if place + 1 < tag.texts.len() {
                to = state_of(&mut edges, here);
            }
            here = vec![(call(numbers[content]), to + 1)];
            if tags.is_nullable(content) {
                if to == edge.to {
                    return None;
                }
                here.extend_from_slice(&edges[to as usize]);
            }
            if let Some((&byte, more)) = before.split_first() {
                let at = state_of(&mut edges, here);
                let at = read_before(&mut edges, at, more, alphabet);
                here = vec![(Letter::from(alphabet.class(byte)), at + 1)];
            }
        }
        edges[edge.from as usize].append(&mut here);
    }
    let mut finals = vec![false; edges.len()];
    automaton.finals.iter().for_each(|&state| finals[state as usize] = true);
    let mut falls_back = vec![false; edges.len()];
    fallbacks.iter().for_each(|&state| falls_back[state as usize] = true);
    behind_a_start(&edges, automaton.start, &finals, &falls_back)
}

/// The edges of a state, which lead to the state after the one that is meant.
type Edges = Vec<(Letter, u32)>;

/// A new state with some edges.
fn state_of(edges: &mut Vec<Edges>, of: Edges) -> u32 {
    edges.push(of);
    edges.len() as u32 - 1
}

/// The state from which a text leads to another.
fn read_before(edges: &mut Vec<Edges>, to: u32, text: &[u8], alphabet: &Alphabet) -> u32 {
    text.iter()
        .rev()
        .fold(to, |to, &byte| state_of(edges, vec![(Letter::from(alphabet.class(byte)), to + 1)]))
}

/// The tree of the tags, and whether the empty string is one. Behind their last contents, tags that
/// end alike share their states.
fn tree<'a>(tags: &Filled<'a>, alphabet: &Alphabet, work: &Budget) -> Result<(Automaton, bool)> {
    let mut tree = PrefixTree::new();
    let read = |tree: &mut PrefixTree, from: u32, text: &[u8]| {
        tree.read(from, text.iter().map(|&byte| alphabet.class(byte)))
    };
    let mut accepts_empty = false;
    let mut end = |tree: &mut PrefixTree, from: u32, ends: &[Box<[u8]>]| {
        let one: &[u8] = &[];
        let all = ends.iter().map(|end| &**end).chain(ends.is_empty().then_some(one));
        for end in all {
            match read(tree, from, end) {
                0 => accepts_empty = true,
                last => tree.set_final(last),
            }
        }
    };
    let mut behind: FxHashMap<&'a [Box<[u8]>], u32> = FxHashMap::default();
    // Behind a content that is not the last, by where it is called.
    let mut between: FxHashMap<(u32, Letter), u32> = FxHashMap::default();
    let numbers = tags.numbers();
    let mut todo: Vec<(u32, usize)> = Vec::new();
    let ticks = Ticks::new(work);
    for (tag, first) in tags.tags().filter(|&tag| tags.has_strings(tag)) {
        ticks.step()?;
        todo.push((read(&mut tree, 0, tag.begin), 0));
        // A content that may be empty is called, and left out.
        while let Some((at, place)) = todo.pop() {
            let Some(before) = tag.texts.get(place) else {
                end(&mut tree, at, tag.ends);
                continue;
            };
            let at = read(&mut tree, at, before);
            let letter = call(numbers[first + place]);
            let is_last = place + 1 == tag.texts.len();
            let to = if is_last {
                *behind.entry(tag.ends).or_insert_with(|| {
                    let to = tree.state();
                    end(&mut tree, to, tag.ends);
                    to
                })
            } else {
                *between.entry((at, letter)).or_insert_with(|| tree.state())
            };
            tree.call(at, letter, to);
            if !is_last {
                todo.push((to, place + 1));
            }
            if tags.is_nullable(first + place) {
                todo.push((at, place + 1));
            }
        }
    }
    Ok((tree.automaton(&ticks)?, accepts_empty))
}
