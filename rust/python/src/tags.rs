//! `tokfold._core.Tags`.

use crate::boundary::{misuse, raise};
use crate::grammar::{Grammar, Made, MadePart, limits};
use crate::threads::side_by_side;
use pyo3::prelude::*;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};
use tokfold_core::budget::Budget;
use tokfold_core::error::Error;
use tokfold_core::grammar;
use tokfold_core::ids::RuleId;
use tokfold_core::limits::Limits;
use tokfold_core::network::tags::{self, Tag, TagPlacement};
use tokfold_core::network::{NetworkOptions, NetworkPart, PartCache};

/// How a tag begins; its contents, each with the text before it, as it was written and as it is
/// compiled; the texts of which one ends it.
type Given = (String, Vec<(String, Py<Grammar>, Py<Grammar>)>, Vec<String>);

/// Whether free text goes on after a tag, and the texts that do not come in it.
type FreeText = (bool, Box<[Box<[u8]>]>);

/// A tag with its contents.
#[derive(PartialEq)]
struct Held {
    begin: Box<[u8]>,
    /// The texts before its contents.
    texts: Box<[Box<[u8]>]>,
    contents: Box<[Content]>,
    ends: Box<[Box<[u8]>]>,
}

/// A content as it was written and as it is compiled.
struct Content {
    written: Py<Grammar>,
    compiled: Py<Grammar>,
}

impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.written.as_ptr() == other.written.as_ptr()
            && self.compiled.as_ptr() == other.compiled.as_ptr()
    }
}

impl Held {
    fn new((begin, given, ends): Given) -> Self {
        let bytes = |text: String| text.into_bytes().into_boxed_slice();
        let mut texts = Vec::with_capacity(given.len());
        let mut contents = Vec::with_capacity(given.len());
        for (text, written, compiled) in given {
            texts.push(bytes(text));
            contents.push(Content { written, compiled });
        }
        Self {
            begin: bytes(begin),
            texts: texts.into(),
            contents: contents.into(),
            ends: ends.into_iter().map(bytes).collect(),
        }
    }

    fn tag(&self) -> Tag<'_> {
        Tag { begin: &self.begin, texts: &self.texts, ends: &self.ends }
    }
}

/// A choice of tags, or free text with them: each texts and strings of grammars in turn, and one of a
/// few texts at its end.
/// Equal to another of the same tags, their contents the same objects.
#[pyclass(frozen, eq, hash, module = "tokfold._core")]
pub(crate) struct Tags {
    tags: Vec<Arc<Held>>,
    /// Where they come in free text.
    dispatch: Option<FreeText>,
    /// Rules of all contents.
    rules: usize,
    /// Bytes of all texts.
    bytes: usize,
    /// A hash of the texts.
    hash: u64,
    written: OnceLock<grammar::Grammar>,
    part: Made,
}

impl PartialEq for Tags {
    fn eq(&self, other: &Self) -> bool {
        let is_same = |(a, b): (&Arc<Held>, &Arc<Held>)| Arc::ptr_eq(a, b) || a == b;
        self.hash == other.hash
            && self.dispatch == other.dispatch
            && self.tags.len() == other.tags.len()
            && self.tags.iter().zip(&other.tags).all(is_same)
    }
}

impl Hash for Tags {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}

impl Tags {
    /// The same without the tags at some places, in order, and with others at the end.
    fn with(
        &self,
        py: Python<'_>,
        gone: &[usize],
        added: Vec<Given>,
        limits: &Limits,
    ) -> PyResult<Self> {
        let mut out = Self::none(self.dispatch.clone());
        out.tags.reserve(self.tags.len() + added.len());
        let mut gone = gone.iter().peekable();
        for (place, held) in self.tags.iter().enumerate() {
            if gone.next_if(|gone| **gone == place).is_none() {
                out.push(held.clone());
            }
        }
        if gone.peek().is_some() {
            return Err(misuse("what goes is not there, or not in order"));
        }
        added.into_iter().for_each(|given| out.push(Arc::new(Held::new(given))));
        if out.tags.is_empty() {
            return Err(misuse("there is no tag to choose"));
        }
        // As in grammar text.
        if out.bytes > limits.max_grammar_bytes {
            let error = Error::Limit {
                limit: "max_grammar_bytes",
                value: limits.max_grammar_bytes as u64,
                message: format!("the texts of the tags have {} bytes; use fewer", out.bytes),
            };
            return Err(raise(py, &error));
        }
        Ok(out)
    }

    fn push(&mut self, held: Arc<Held>) {
        let rules = |content: &Content| 1 + content.written.get().inner.rules().len();
        self.rules += 1 + held.contents.iter().map(rules).sum::<usize>();
        let texts = held.texts.iter().chain(&held.ends);
        self.bytes += held.begin.len() + texts.map(|text| text.len()).sum::<usize>();
        let mut hasher = DefaultHasher::new();
        (self.hash, &held.begin, &held.texts, &held.ends).hash(&mut hasher);
        self.hash = hasher.finish();
        self.tags.push(held);
    }

    fn none(dispatch: Option<FreeText>) -> Self {
        let excludes = dispatch.iter().flat_map(|(_, excludes)| excludes);
        let mut hasher = DefaultHasher::new();
        dispatch.hash(&mut hasher);
        Self {
            tags: Vec::new(),
            rules: 1,
            bytes: excludes.map(|text| text.len()).sum(),
            hash: hasher.finish(),
            dispatch,
            written: OnceLock::new(),
            part: Made::default(),
        }
    }

    fn way(&self) -> TagPlacement<'_> {
        match &self.dispatch {
            Some((loops, excludes)) => TagPlacement::Dispatch { loops: *loops, excludes },
            None => TagPlacement::Choice,
        }
    }

    /// The number of rules, contents included.
    pub(crate) fn num_rules(&self) -> usize {
        self.rules
    }

    /// All of it as a grammar, as it was written.
    fn written(&self) -> &grammar::Grammar {
        self.written.get_or_init(|| self.with_contents(|content| &content.written))
    }

    /// All of it as a grammar, as networks are made of it.
    pub(crate) fn compiled(&self) -> grammar::Grammar {
        self.with_contents(|content| &content.compiled)
    }

    fn with_contents(&self, said: impl Fn(&Content) -> &Py<Grammar>) -> grammar::Grammar {
        let contents = self.contents().map(|content| &*said(content).get().inner);
        let parts: Vec<_> = (1..).map(RuleId::new).zip(contents).collect();
        tags::grammar(&self.tags(), self.way()).composed(&parts)
    }

    fn tags(&self) -> Vec<Tag<'_>> {
        self.tags.iter().map(|held| held.tag()).collect()
    }

    fn contents(&self) -> impl Iterator<Item = &Content> {
        self.tags.iter().flat_map(|held| &held.contents)
    }

    /// The choice as a part of others, made when first asked for; `None` where it has no string.
    pub(crate) fn part(
        &self,
        (options, name): (&NetworkOptions, &str),
        cache: &PartCache,
        work: &Budget,
    ) -> Result<MadePart, Error> {
        self.part.get(name, || {
            let given: Vec<&Content> = self.contents().collect();
            // Each counts for itself, so that the sum is the same wherever it is made.
            let interrupt = work.interrupt();
            let made = side_by_side(given.len(), |place| {
                let own = Budget::new(&options.limits, interrupt);
                let part = given[place].compiled.get().part((options, name), cache, &own);
                (part, own.done())
            });
            let mut contents = Vec::with_capacity(made.len());
            for (part, done) in made {
                work.spend(usize::try_from(done).unwrap_or(usize::MAX))?;
                contents.push(part?);
            }
            NetworkPart::of_tags(&self.tags(), &contents, self.way(), options, work)
        })
    }
}

#[pymethods]
impl Tags {
    #[new]
    #[pyo3(signature = (tags, limits=None, dispatch=None))]
    fn new(
        py: Python<'_>,
        tags: Vec<Given>,
        limits: Option<&Bound<'_, PyAny>>,
        dispatch: Option<(bool, Vec<String>)>,
    ) -> PyResult<Self> {
        let bytes = |text: String| text.into_bytes().into_boxed_slice();
        let dispatch =
            dispatch.map(|(loops, excludes)| (loops, excludes.into_iter().map(bytes).collect()));
        Self::none(dispatch).with(py, &[], tags, &self::limits(limits)?)
    }

    /// The same without the tags at some places, in order, and with others at the end.
    #[pyo3(signature = (gone, added, limits=None))]
    fn changed(
        &self,
        py: Python<'_>,
        gone: Vec<usize>,
        added: Vec<Given>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        self.with(py, &gone, added, &self::limits(limits)?)
    }

    fn __len__(&self) -> usize {
        self.tags.len()
    }

    fn grammar(&self, py: Python<'_>) -> Grammar {
        Grammar::of(py.detach(|| self.written().clone()))
    }
}
