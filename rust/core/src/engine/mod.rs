//! Our own engine: exact masks for any context-free grammar (DESIGN.md, "The engine").
//!
//! A state is a hash-consed set of stacks over the network, which is what Earley's sets say
//! without their positions: an item is a network state with the set of what can stand beneath
//! it, and two items that began at different places but go on alike are one. Prediction is the
//! network's calls, completion happens while a byte is read, and tail calls push nothing, so
//! right recursion costs a constant for each step (what Leo's items are for).
//!
//! [`Engine`] is what all requests of one grammar and vocabulary share; [`Matcher`] is one
//! request's state.

mod by_chart;
mod chart_way;
mod descent;
mod digests;
mod family;
mod fill;
mod gap;
mod hot;
mod limits;
mod matcher;
mod memo;
mod pending;
mod pool;
mod reading;
mod state;
mod walker;
mod way;

pub use limits::EngineLimits;
pub use matcher::{Accept, Matcher, MatcherCounters, StopRule};
pub use pool::{LEAST_NODES, Pool, PoolCounters};
pub use walker::WalkCounters;

use crate::chart::Tables;
use crate::classes::TokenClasses;
use crate::error::{Error, Position, Result};
use crate::mask::{Unfolder, words};
use crate::network::{ClassSet, Network, members};
use crate::vocabulary::{Trie, Vocabulary};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
};
use walker::{Allowance, Check, Stop, Walker};
use way::View;

/// How what was read is remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Representation {
    /// As stacks, until they take too much work; then as a chart. Nobody can tell, but by counters.
    #[default]
    Automatic,
    /// As sets of stacks.
    Stacks,
    /// As a chart.
    Chart,
}

/// A grammar and a vocabulary, ready for matchers.
pub struct Engine {
    network: Arc<Network>,
    vocabulary: Arc<Vocabulary>,
    limits: EngineLimits,
    /// Over the whole vocabulary; made when first needed.
    plain: OnceLock<Walker>,
    tries: Arc<Tries>,
    pool: Option<Arc<Pool>>,
    /// Over the representatives, when there are classes.
    folded: OnceLock<Folded>,
    fingerprint: OnceLock<u64>,
    /// For each class the bytes of it, as a set.
    spelled: Box<[[u64; 4]; 256]>,
    representation: Representation,
    tables: OnceLock<Arc<Tables<Arc<Network>>>>,
    gap: gap::Gap,
}

/// The tries of a vocabulary, made by the first engine that needs them.
#[derive(Default)]
pub struct Tries {
    of_bytes: OnceLock<Arc<Trie>>,
    with_ids: OnceLock<Arc<Trie>>,
}

impl Tries {
    /// That of the textual tokens.
    pub fn of_bytes(&self, vocabulary: &Vocabulary) -> &Arc<Trie> {
        self.of_bytes.get_or_init(|| Arc::new(vocabulary.trie()))
    }

    /// The same with tokens that are taken whole.
    fn with_ids(&self, vocabulary: &Vocabulary) -> &Arc<Trie> {
        self.with_ids.get_or_init(|| Arc::new(vocabulary.trie_with_ids()))
    }
}

struct Folded {
    walker: Walker,
    unfolder: RwLock<Unfolder>,
    words: usize,
    /// The stop tokens, with their classes.
    stops: Vec<(u32, u32)>,
    /// How many classes there are.
    count: usize,
    /// Whether some token is in no class.
    has_dead: bool,
}

impl Engine {
    /// An engine without classes. `tries` are the vocabulary's, which engines over it share, and
    /// `pool` has answers over them.
    pub fn new(
        network: Arc<Network>,
        vocabulary: Arc<Vocabulary>,
        tries: Arc<Tries>,
        pool: Option<Arc<Pool>>,
        limits: EngineLimits,
    ) -> Self {
        let mut spelled = Box::new([[0; 4]; 256]);
        for byte in 0..=255u8 {
            let class = network.alphabet().class(byte);
            spelled[class as usize][byte as usize >> 6] |= 1 << (byte & 63);
        }
        Self {
            network,
            vocabulary,
            limits,
            plain: OnceLock::new(),
            tries,
            pool,
            folded: OnceLock::new(),
            fingerprint: OnceLock::new(),
            spelled,
            representation: Representation::default(),
            tables: OnceLock::new(),
            gap: gap::Gap::default(),
        }
    }

    /// The same, with the texts of its matchers remembered so.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a chart where the grammar takes tokens whole: a text may then be
    /// read in ways of different lengths.
    pub fn remembering(self, representation: Representation) -> Result<Self> {
        if representation == Representation::Chart && self.network.takes_tokens() {
            return Err(Error::Unsupported {
                construct: "engine=\"chart\"".into(),
                message: "the grammar takes tokens whole, which a chart cannot; use \"auto\" or \
                          \"stack\""
                    .into(),
                position: Position { line: 1, column: 1 },
            });
        }
        Ok(Self { representation, ..self })
    }

    /// What charts need of the network, made when first needed.
    fn tables(&self) -> &Arc<Tables<Arc<Network>>> {
        self.tables.get_or_init(|| Arc::new(Tables::new(self.network.clone())))
    }

    /// Whether texts are on a chart from their first letter on.
    fn begins_on_a_chart(&self) -> bool {
        self.representation == Representation::Chart || self.network.is_for_charts()
    }

    /// Takes up classes: from now on masks walk over their representatives. Classes that came
    /// before stay.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] when they are not classes of this vocabulary.
    pub fn take_classes(&self, classes: &TokenClasses) -> Result<()> {
        if classes.class_of.len() != self.vocabulary.len() {
            return Err(Error::Vocabulary(format!(
                "the classes are for {} tokens, the vocabulary has {}",
                classes.class_of.len(),
                self.vocabulary.len()
            )));
        }
        let textual = classes.representatives.len().saturating_sub(classes.num_stop_classes);
        let mut entries: Vec<(&[u8], u32)> = Vec::with_capacity(textual);
        let mut ids: Vec<(u32, u32)> = Vec::new();
        for (class, &id) in classes.representatives.iter().take(textual).enumerate() {
            if id as usize >= self.vocabulary.len() || !self.vocabulary.is_whole(id) {
                return Err(Error::Vocabulary(format!(
                    "class {class} has token {id} as representative, which is no text"
                )));
            }
            if self.vocabulary.is_textual(id) {
                entries.push((self.vocabulary.bytes(id), class as u32));
            }
            if self.network.takes_tokens() {
                ids.push((id, class as u32));
            }
        }
        entries.sort_unstable();
        ids.sort_unstable();
        let trie = Arc::new(Trie::with_ids(entries.into_iter(), ids.into_iter()));
        let count = classes.representatives.len();
        let unfolder = Unfolder::new(&classes.class_of, count, self.limits.max_row_bytes)
            .map_err(Error::Vocabulary)?;
        let walker = Walker::new(self.network.clone(), trie, words(count));
        let stops = classes.representatives.iter().copied().zip(0..).skip(textual).collect();
        let folded = Folded {
            walker,
            unfolder: RwLock::new(unfolder),
            words: words(count),
            stops,
            count,
            has_dead: classes.class_of.contains(&-1),
        };
        if self.folded.set(folded).is_ok()
            && let Some(plain) = self.plain.get()
        {
            plain.forget(); // nobody asks it any more
        }
        Ok(())
    }

    /// Forgets every answer and every row: for measuring what masks cost at first sight.
    pub fn forget(&self) {
        let folded = self.folded.get().map(|f| &f.walker);
        for walker in self.plain.get().into_iter().chain(folded) {
            walker.forget();
        }
        if let Some(folded) = self.folded.get() {
            write(&folded.unfolder).forget();
        }
    }

    /// Whether masks walk over representatives.
    pub fn has_classes(&self) -> bool {
        self.folded.get().is_some()
    }

    /// The network.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    fn class(&self, byte: u8) -> u8 {
        self.network.alphabet().class(byte)
    }

    /// The bytes of some classes, ascending.
    fn bytes_of(&self, classes: &ClassSet) -> Vec<u8> {
        let mut set = [0u64; 4];
        for class in members(classes) {
            set.iter_mut().zip(&self.spelled[class as usize]).for_each(|(a, b)| *a |= b);
        }
        let mut out = Vec::with_capacity(set.iter().map(|word| word.count_ones() as usize).sum());
        out.extend(members(&set));
        out
    }

    /// What work is allowed.
    pub fn limits(&self) -> &EngineLimits {
        &self.limits
    }

    /// Tells networks apart: states are of one of them.
    pub fn fingerprint(&self) -> u64 {
        *self.fingerprint.get_or_init(|| self.network.fingerprint())
    }

    /// Bytes held by what is remembered, network and vocabulary not counted.
    pub fn bytes(&self) -> usize {
        let plain = self.plain.get().map_or(0, Walker::bytes);
        let folded = self.folded.get().map_or(0, |f| f.walker.bytes() + read(&f.unfolder).bytes());
        plain + folded + self.tables.get().map_or(0, |tables| tables.bytes())
    }

    /// What masks cost so far, both walkers together.
    pub fn counters(&self) -> WalkCounters {
        let mut out = WalkCounters::default();
        let folded = self.folded.get().map(|f| &f.walker);
        for walker in self.plain.get().into_iter().chain(folded) {
            let c = walker.counters();
            out.masks += c.masks;
            out.visits += c.visits;
            out.hits += c.hits;
            out.misses += c.misses;
            out.shared += c.shared;
            out.trie_nodes += c.trie_nodes;
        }
        out
    }

    /// Makes the answers of the frames that are likely to cost most, ahead of time (XGrammar 2,
    /// section 3.2); returns how many were made. With classes, over their representatives.
    ///
    /// # Errors
    /// What `check` says, and [`Error::Cancelled`] when `go_on`, which is asked between two
    /// answers, says no. Limits are none: an answer that takes too much is not made.
    pub fn warm(
        &self,
        count: usize,
        check: &dyn Fn() -> Result<()>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<usize> {
        let walker = match self.folded.get() {
            Some(folded) => &folded.walker,
            None => self.plain(),
        };
        let costs = walker.costs();
        let mut made = 0;
        for frame in costs.into_iter().take(count) {
            if !go_on() {
                return Err(Error::Cancelled);
            }
            match walker.warm(frame, self.allowance(), check) {
                Ok(fresh) => made += usize::from(fresh),
                // The rest when it is needed.
                Err(Stop::Memory | Stop::Forgotten) => break,
                Err(stop) => return Err(self.stopped(stop)),
            }
        }
        Ok(made)
    }

    fn plain(&self) -> &Walker {
        self.plain.get_or_init(|| {
            let trie = match self.network.takes_tokens() {
                true => self.tries.with_ids(&self.vocabulary),
                false => self.tries.of_bytes(&self.vocabulary),
            };
            let words = words(self.vocabulary.len());
            let walker = Walker::new(self.network.clone(), trie.clone(), words);
            walker.whole(self.pool.clone())
        })
    }

    fn allowance(&self) -> Allowance {
        Allowance { work: self.limits.max_mask_work, bytes: self.limits.max_memo_bytes }
    }

    /// Writes which textual tokens may follow; bits of other ids are 0.
    fn mask(&self, view: View<'_>, check: Check<'_>, row: &mut [i32]) -> Result<()> {
        let Some(folded) = self.folded.get() else {
            let made = self.plain().mask(view, self.allowance(), check, row);
            return made.map_err(|stop| self.stopped(stop));
        };
        let mut bits = vec![0; folded.words];
        let made = folded.walker.mask(view, self.allowance(), check, &mut bits);
        made.map_err(|stop| self.stopped(stop))?;
        self.unfold(folded, &bits, row);
        Ok(())
    }

    fn unfold(&self, folded: &Folded, bits: &[i32], row: &mut [i32]) {
        if !read(&folded.unfolder).unfold_again(bits, row) {
            write(&folded.unfolder).unfold(bits, row);
        }
    }

    /// Words of a class mask, where there are classes.
    pub fn class_words(&self) -> Option<usize> {
        self.folded.get().map(|folded| folded.words)
    }

    /// Writes which textual classes may follow; bits of stop classes are 0.
    fn class_mask(
        &self,
        folded: &Folded,
        view: View<'_>,
        check: Check<'_>,
        row: &mut [i32],
    ) -> Result<()> {
        let mut there = folded.walker.reading();
        if let Some(mask) = there.mask(view, row) {
            there.count(&mask);
            return Ok(());
        }
        drop(there);
        let made = folded.walker.mask(view, self.allowance(), check, row);
        made.map_err(|stop| self.stopped(stop))
    }

    /// What is there for masks, for one or many.
    fn reading(&self) -> Reading<'_> {
        match self.folded.get() {
            None => Reading { answers: self.plain().reading(), rows: None, bits: Vec::new() },
            Some(folded) => Reading {
                answers: folded.walker.reading(),
                rows: Some(read(&folded.unfolder)),
                bits: vec![0; folded.words],
            },
        }
    }

    /// The same where it is there now, and nobody is changing it.
    fn reading_now(&self) -> Option<Reading<'_>> {
        Some(match self.folded.get() {
            None => {
                Reading { answers: self.plain.get()?.reading_now()?, rows: None, bits: Vec::new() }
            }
            Some(folded) => Reading {
                answers: folded.walker.reading_now()?,
                rows: Some(folded.unfolder.try_read().ok()?),
                bits: vec![0; folded.words],
            },
        })
    }

    fn stopped(&self, stop: Stop) -> Error {
        match stop {
            Stop::Told(error) => error,
            Stop::Work => Error::Limit {
                limit: "max_mask_work",
                value: self.limits.max_mask_work,
                message: "this mask takes more work; the grammar is very ambiguous here: \
                          simplify it or raise the limit"
                    .into(),
            },
            Stop::Memory | Stop::Forgotten => Error::Limit {
                limit: "max_memo_bytes",
                value: self.limits.max_memo_bytes as u64,
                message: "this mask alone remembers more; raise the limit".into(),
            },
        }
    }
}

/// What is there for masks: answers and rows, which many threads read at once. While one holds it
/// none is added; whoever holds it must not ask [`Engine::mask`].
struct Reading<'e> {
    answers: reading::Reading<'e>,
    rows: Option<RwLockReadGuard<'e, Unfolder>>,
    bits: Vec<i32>,
}

impl Reading<'_> {
    /// As [`Engine::mask`] where everything is there; else false, and the row means nothing.
    fn mask(&mut self, view: View<'_>, row: &mut [i32]) -> bool {
        let mask = match &self.rows {
            None => self.answers.mask(view, row),
            Some(rows) => {
                let mask = self.answers.mask(view, &mut self.bits);
                mask.filter(|_| rows.unfold_again(&self.bits, row))
            }
        };
        mask.inspect(|mask| self.answers.count(mask)).is_some()
    }
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// A lock whose holder panicked guards tables that are only ever added to: still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
