//! Our own engine: exact masks for any context-free grammar.
//!
//! Design: docs/design/engine.md.
//!
//! A state is a hash-consed set of stacks over the network, which is what Earley's sets say
//! without their positions: an item is a network state with the set of what can stand beneath
//! it, and two items that began at different places but go on alike are one. Prediction is the
//! network's calls, completion happens while a byte is read, and tail calls push nothing, so
//! right recursion costs a constant for each step (what Leo's items are for).
//!
//! [`Engine`] is what all requests of one grammar and vocabulary share; [`Matcher`] is one
//! request's state. The modules, each of which uses only modules of the lines above its own:
//!
//! - `limits`, `lock` (locks that are never waited for longer than an interrupt allows), `stop` (why there is no
//!   mask), `shared` (what engines over one vocabulary share);
//! - `history`: the texts that a matcher and its forks have read, step by step, and where each stands;
//! - [`mask`](self): how a mask is made, from which questions, and what of it is remembered;
//! - `matcher`: one request: reading, going back, saved states, masks of one, of many, of drafts.
//!
//! Every call that can take long takes an [`Interrupt`](crate::budget::Interrupt). Where a short
//! answer will do there is a call that ends in `_now`: it waits for nothing and takes microseconds.

mod history;
mod limits;
mod lock;
mod mask;
mod matcher;
mod shared;
mod stop;

pub use limits::EngineLimits;
pub use mask::pool::{LEAST_NODES, Pool, PoolCounters};
pub use mask::walk_counters::WalkCounters;
pub use matcher::in_time::Shortest;
pub use matcher::{Accept, Look, MAX_FORCED_BYTES, Matcher, MatcherCounters, StopRule};
pub use shared::SharedVocabulary;

use crate::budget::{Halt, Interrupt, Meter};
use crate::chart::Tables;
use crate::classes::TokenClasses;
use crate::error::{Error, Position, Result};
use crate::mask::{Unfolder, words};
use crate::network::{ClassSet, Network, members};
use crate::vocabulary::Trie;
use mask::answers::Walker;
use parking_lot::{Mutex, RwLock};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use stop::Stop;

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

/// How an engine works. The masks are the same.
#[derive(Clone, Default)]
pub struct EngineOptions {
    /// How what was read is remembered.
    pub representation: Representation,
    /// Where answers are shared with other engines over the same vocabulary.
    pub pool: Option<Arc<Pool>>,
    /// What work is allowed.
    pub limits: EngineLimits,
}

/// A grammar and a vocabulary, ready for matchers: what [`compile`](crate::compile::compile) makes.
pub struct Engine {
    network: Arc<Network>,
    vocabulary: SharedVocabulary,
    /// The stop tokens that the grammar names, where it names some.
    named_stops: Option<Box<[u32]>>,
    limits: EngineLimits,
    /// Over the whole vocabulary; made when first needed.
    plain: OnceLock<Walker>,
    pool: Option<Arc<Pool>>,
    /// Over the representatives, when there are classes.
    folded: OnceLock<Folded>,
    fingerprint: OnceLock<u64>,
    /// For each class the bytes of it, as a set.
    spelled: Box<[[u64; 4]; 256]>,
    representation: Representation,
    tables: OnceLock<Arc<Tables<Arc<Network>>>>,
    /// Held while the tables are made; why they cannot be, once that is known.
    making_tables: Mutex<Option<Halt>>,
    gap: mask::row_scan::Gap,
    /// The longest that a mask took which was not cached, in microseconds.
    worst_mask: AtomicU64,
    endings: matcher::endings::Endings,
    fold: OnceLock<Fold>,
}

/// Makes classes when they are asked for, as [`classes::compile`](crate::classes::compile) does with
/// items that may repeat.
pub type Fold = Box<dyn Fn(&Interrupt) -> Result<TokenClasses> + Send + Sync>;

/// Tables of charts may take this part of the bytes of a matcher.
const TABLES_OF_MATCHER: usize = 4;
/// Work units of what is made once for an engine: the order of calls, and the tables of charts.
const PREPARATION: u64 = 20_000_000;

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
    /// An engine of a network, without classes.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for a chart where the grammar has what charts do not keep: tokens that
    /// are taken whole, so that a text is read in ways of different lengths; sets of members or items.
    pub fn new(
        network: Arc<Network>,
        vocabulary: &SharedVocabulary,
        options: &EngineOptions,
    ) -> Result<Self> {
        if options.representation == Representation::Chart {
            refuse_chart(&network)?;
        }
        if network.counts_tokens() {
            refuse_uncounted(&network)?;
        }
        match network.takes_tokens() {
            true => vocabulary.trie_of_all(),
            false => vocabulary.trie(),
        };
        if network.has_unique_items() {
            vocabulary.many_items();
        }
        let mut spelled = Box::new([[0; 4]; 256]);
        for byte in 0..=255u8 {
            let class = network.alphabet().class(byte);
            spelled[class as usize][byte as usize >> 6] |= 1 << (byte & 63);
        }
        let named_stops = match network.takes_tokens() {
            true => matcher::stop_tokens::named_stops(&network, vocabulary),
            false => None,
        };
        Ok(Self {
            network,
            named_stops,
            vocabulary: vocabulary.clone(),
            limits: options.limits.clone(),
            plain: OnceLock::new(),
            pool: options.pool.clone(),
            folded: OnceLock::new(),
            fingerprint: OnceLock::new(),
            spelled,
            representation: options.representation,
            tables: OnceLock::new(),
            making_tables: Mutex::default(),
            gap: mask::row_scan::Gap::default(),
            worst_mask: AtomicU64::new(0),
            endings: matcher::endings::Endings::default(),
            fold: OnceLock::new(),
        })
    }

    /// Makes what every request needs: the order of calls, and for charts their tables.
    ///
    /// # Errors
    /// [`Error::Limit`], [`Error::Deadline`], [`Error::Cancelled`].
    pub(crate) fn prepare(&self, interrupt: &Interrupt) -> Result<()> {
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        let mut made = self.network.call_order(&mut meter).map(drop);
        if made.is_ok() && self.begins_on_a_chart() {
            made = self.tables(interrupt).map(drop);
        }
        made.map_err(|halt| {
            interrupt.error(halt).unwrap_or_else(|| Error::Limit {
                limit: if halt == Halt::Bytes { "max_matcher_bytes" } else { "max_network_work" },
                value: match halt {
                    Halt::Bytes => self.limits.max_matcher_bytes as u64,
                    _ => PREPARATION,
                },
                message: "the tables of charts for this grammar take more; simplify the grammar"
                    .into(),
            })
        })
    }

    /// Sets of bytes, of each of which every text has one, of those that no token of a vocabulary has;
    /// `written` says which bytes tokens have. `None` where some text has no other bytes, and where it
    /// takes more than [`PREPARATION`] to find out.
    ///
    /// # Errors
    /// [`Error::Deadline`], [`Error::Cancelled`].
    pub fn needed_bytes(
        &self,
        written: &[bool; 256],
        interrupt: &Interrupt,
    ) -> Result<Option<Vec<Vec<u8>>>> {
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        match self.network.needed(written, &mut meter) {
            Ok(needed) => Ok(needed),
            Err(halt) => interrupt.error(halt).map_or(Ok(None), Err),
        }
    }

    /// Whether texts are known to be finitely many, so that each comes to its end. Not all such grammars
    /// are found, and none where it takes more than [`PREPARATION`] to find out.
    ///
    /// # Errors
    /// [`Error::Deadline`], [`Error::Cancelled`].
    pub fn is_finite(&self, interrupt: &Interrupt) -> Result<bool> {
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        match self.network.is_finite(&mut meter) {
            Ok(is_finite) => Ok(is_finite),
            Err(halt) => interrupt.error(halt).map_or(Ok(false), Err),
        }
    }

    /// What charts need of the network, made when first needed.
    fn tables(
        &self,
        interrupt: &Interrupt,
    ) -> std::result::Result<Arc<Tables<Arc<Network>>>, Halt> {
        if let Some(tables) = self.tables.get() {
            return Ok(tables.clone());
        }
        let mut refused = loop {
            if let Some(guard) = self.making_tables.try_lock_for(Duration::from_millis(1)) {
                break guard;
            }
            interrupt.check()?;
        };
        if let Some(halt) = *refused {
            return Err(halt);
        }
        if let Some(tables) = self.tables.get() {
            return Ok(tables.clone());
        }
        let mut meter = Meter::default();
        meter.allow(PREPARATION, interrupt);
        let max_bytes = self.limits.max_matcher_bytes / TABLES_OF_MATCHER;
        match Tables::new(self.network.clone(), &mut meter, max_bytes) {
            Ok(tables) => Ok(self.tables.get_or_init(|| Arc::new(tables)).clone()),
            Err(halt) => {
                if !halt.is_interrupt() {
                    *refused = Some(halt);
                }
                Err(halt)
            }
        }
    }

    /// Whether texts are on a chart from their first letter on.
    pub fn begins_on_a_chart(&self) -> bool {
        self.representation == Representation::Chart || self.network.is_for_charts()
    }

    /// Takes up classes: from now on masks walk over their representatives. Classes that came
    /// before stay.
    ///
    /// # Errors
    /// [`Error::Vocabulary`] when they are not classes of this vocabulary.
    pub fn take_classes(&self, classes: &TokenClasses) -> Result<bool> {
        if classes.class_of.len() != self.vocabulary.len() {
            return Err(Error::Vocabulary(format!(
                "the classes are for {} tokens, the vocabulary has {}",
                classes.class_of.len(),
                self.vocabulary.len()
            )));
        }
        let trie = Arc::new(self.trie_of(classes)?);
        let textual = classes.representatives.len().saturating_sub(classes.num_stop_classes);
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
        let is_first = self.folded.set(folded).is_ok();
        if is_first && let Some(plain) = self.plain.get() {
            plain.forget(); // nobody asks it any more
        }
        Ok(is_first)
    }

    /// Says how classes are made where there are none and the end of a text asks for them. The first
    /// counts.
    pub fn fold_by(&self, fold: Fold) {
        let _ = self.fold.set(fold);
    }

    /// The representatives of classes, as a trie.
    fn trie_of(&self, classes: &TokenClasses) -> Result<Trie> {
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
        Ok(Trie::with_ids(entries.into_iter(), ids.into_iter()))
    }

    /// Forgets every answer and every row: for measuring what masks cost at first sight.
    pub fn forget(&self) {
        let folded = self.folded.get().map(|f| &f.walker);
        for walker in self.plain.get().into_iter().chain(folded) {
            walker.forget();
        }
        if let Some(folded) = self.folded.get() {
            folded.unfolder.write().forget();
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
    pub fn vocabulary(&self) -> &SharedVocabulary {
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
        let folded = self.folded.get().map_or(0, |f| f.walker.bytes() + f.unfolder.read().bytes());
        plain + folded + self.endings.bytes() + self.tables.get().map_or(0, |tables| tables.bytes())
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
            out.direct += c.direct;
            out.walked += c.walked;
        }
        out
    }

    /// Makes the answers of the frames that are likely to cost most, ahead of time (XGrammar 2,
    /// section 3.2); returns how many were made. With classes, over their representatives.
    ///
    /// # Errors
    /// [`Error::Cancelled`], [`Error::Deadline`]. Limits are none: an answer that takes too much is
    /// not made.
    pub fn warm(&self, count: usize, interrupt: &Interrupt) -> Result<usize> {
        let walker = match self.folded.get() {
            Some(folded) => &folded.walker,
            None => self.plain(),
        };
        let costs = walker.costs();
        let mut made = 0;
        for frame in costs.into_iter().take(count) {
            interrupt.look()?;
            match walker.warm(frame, self.allowance(), interrupt) {
                Ok(fresh) => made += usize::from(fresh),
                // The rest when it is needed.
                Err(Stop::Memory | Stop::Forgotten) => break,
                Err(stop) => return Err(self.stopped(stop, interrupt)),
            }
        }
        Ok(made)
    }
}

/// Refuses a network that no chart can read.
fn refuse_chart(network: &Network) -> Result<()> {
    let what = if network.has_unique_items() {
        "has arrays with uniqueItems, whose items a chart does not keep"
    } else if network.has_sets() {
        "has members in any order, whose sets a chart does not keep"
    } else if network.counts_tokens() {
        "has a rule with max_tokens, and a chart does not see where tokens end"
    } else if network.takes_tokens() {
        "takes tokens whole, which a chart cannot"
    } else {
        return Ok(());
    };
    Err(Error::Unsupported {
        construct: "engine=\"chart\"".into(),
        message: format!("the grammar {what}; use \"auto\" or \"stack\""),
        position: Position::NOWHERE,
    })
}

/// Refuses a network in which a rule counts tokens, where not all texts stand on stacks of states.
fn refuse_uncounted(network: &Network) -> Result<()> {
    let message = if network.is_for_charts() {
        "a rule has max_tokens, and only a chart reads the left recursion of this grammar, which does not \
         see where tokens end; write the left recursion as a repetition, or leave the budget out"
    } else if network.has_unique_items() {
        "a rule has max_tokens, and the grammar has arrays with uniqueItems, in which no tokens are \
         counted; leave one of the two out"
    } else {
        return Ok(());
    };
    Err(Error::Unsupported {
        construct: "max_tokens".into(),
        message: message.into(),
        position: Position::NOWHERE,
    })
}
