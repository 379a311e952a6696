//! The engine as the targets call it: the one place that knows its limits, options and calls.

use crate::input::Input;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokfold_core::budget::{Interrupt, Observer};
use tokfold_core::engine::{
    Accept, Engine, EngineLimits, EngineOptions, Look, Matcher, Pool, Representation,
    SharedVocabulary, StopRule,
};
use tokfold_core::error::{Error, Result};
use tokfold_core::limits::Limits;
use tokfold_core::network::{LeftRecursion, Network, NetworkOptions, WIDE};

/// Limits on grammars and networks, small enough for executions to be short.
pub fn small_limits() -> Limits {
    Limits {
        max_grammar_bytes: 4_096,
        max_rules: 64,
        max_nesting: 32,
        max_network_states: 2_000,
        max_network_edges: 8_000,
        max_network_work: 40_000,
        max_stack_depth: 200,
        max_token_work: 5_000,
        max_total_work: 50_000,
        max_automaton_bytes: 4 << 20,
        ..Limits::default()
    }
}

/// The ways in which an engine's network is made.
pub const NETWORKS: usize = 4;

/// How a network is made for an engine.
pub fn network_options(way: usize, limits: Limits) -> NetworkOptions {
    let (left_recursion, share_wide) = match way {
        0 => (LeftRecursion::Both, Some(WIDE)),
        1 => (LeftRecursion::Fitting, Some(3)),
        2 => (LeftRecursion::Kept, Some(WIDE)),
        _ => (LeftRecursion::Loops, None),
    };
    NetworkOptions {
        left_recursion,
        share_wide,
        counters: way < 3,
        unique_items: true,
        limits,
        ..Default::default()
    }
}

/// The limit that is a bound on what an engine remembers.
pub const MEMO: usize = 2;

/// How an engine works.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Which of the [`NETWORKS`].
    pub network: usize,
    /// Stacks, chart or both in turn.
    pub representation: Representation,
    /// Whether answers go through the pool of the case.
    pub is_pooled: bool,
    /// Which limit is small, if any, and how small.
    pub limit: Option<(usize, u32)>,
}

impl Way {
    /// A way out of two bytes.
    pub fn read(input: &mut Input<'_>) -> Self {
        let network = input.below(NETWORKS);
        let representations =
            [Representation::Automatic, Representation::Stacks, Representation::Chart];
        let representation = input.pick(&representations);
        let more = input.byte();
        let value = [0, 1, 3, 10, 40, 150, 600, 2_500][usize::from(more >> 4 & 7)];
        let limit = (more & 8 != 0).then_some((usize::from(more >> 1 & 3), value));
        Self { network, representation, is_pooled: more & 1 == 1, limit }
    }

    fn limits(&self) -> EngineLimits {
        let mut limits = EngineLimits::default();
        match self.limit {
            Some((0, value)) => limits.max_mask_work = u64::from(value),
            Some((1, value)) => limits.max_accept_work = u64::from(value),
            Some((MEMO, value)) => {
                limits.max_memo_bytes = 16 * value as usize;
                limits.max_row_bytes = 0;
            }
            Some((_, value)) => limits.max_matcher_bytes = 64 * value as usize,
            None => {}
        }
        limits
    }

    /// An engine that works so.
    pub fn engine(
        &self,
        network: &Arc<Network>,
        vocabulary: &SharedVocabulary,
        pool: &Arc<Pool>,
    ) -> Arc<Engine> {
        let pool = self.is_pooled.then(|| pool.clone());
        let make = |representation| {
            let options =
                EngineOptions { representation, pool: pool.clone(), limits: self.limits() };
            Engine::new(network.clone(), vocabulary, &options)
        };
        let made = make(self.representation).or_else(|error| match error {
            Error::Unsupported { .. } if network.takes_tokens() => make(Representation::Automatic),
            other => Err(other),
        });
        Arc::new(made.expect("an engine of any representation"))
    }
}

/// A pool small enough that answers come and go.
pub fn pool() -> Arc<Pool> {
    Arc::new(Pool::new(20_000, 0))
}

/// An interrupt that never ends a call.
pub fn none() -> Interrupt {
    Interrupt::default()
}

/// An interrupt that ends a call at the look after so many.
pub fn patient(looks: u32) -> Interrupt {
    struct Patience(AtomicU32);
    impl Observer for Patience {
        fn go_on(&self) -> bool {
            let less = |left: u32| left.checked_sub(1);
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
        }
    }
    Interrupt::default().with_observer(Arc::new(Patience(AtomicU32::new(looks))))
}

/// A matcher at the start; `None` where not even that fits.
pub fn matcher(engine: &Arc<Engine>, stops: &StopRule) -> Option<Matcher> {
    match Matcher::new(engine.clone(), stops.clone()) {
        Ok(matcher) => Some(matcher),
        Err(Error::Limit { limit: "max_matcher_bytes", value, .. }) => {
            let bytes = engine.limits().max_matcher_bytes;
            assert!(value == bytes as u64 && bytes < 1 << 20, "{bytes} bytes are not enough");
            None
        }
        Err(error) => panic!("stop tokens of the vocabulary are refused: {error}"),
    }
}

/// What a call says where it does what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said<T> {
    /// The answer.
    Done(T),
    /// The text has ended, or there is no such state.
    State,
    /// An id that is none.
    Vocabulary,
    /// A limit is reached.
    Limit,
    /// The call was cancelled.
    Cancelled,
}

impl<T> Said<T> {
    /// What a call says; other errors are findings.
    pub fn of(result: Result<T>) -> Self {
        match result {
            Ok(value) => Said::Done(value),
            Err(error) => {
                assert!(!error.to_string().is_empty(), "an error says something");
                match error {
                    Error::State(_) => Said::State,
                    Error::Vocabulary(_) => Said::Vocabulary,
                    Error::Limit { .. } => Said::Limit,
                    Error::Cancelled => Said::Cancelled,
                    other => panic!("no matcher says {other:?}"),
                }
            }
        }
    }
}

/// [`Matcher::accept_token`]: whether the token is taken.
pub fn accept_token(matcher: &mut Matcher, id: u32) -> Said<bool> {
    Said::of(matcher.accept_token(id, &none()).map(|accept| accept == Accept::Taken))
}

/// [`Matcher::accept_bytes`]: whether the text is taken.
pub fn accept_bytes(matcher: &mut Matcher, bytes: &[u8]) -> Said<bool> {
    accept_bytes_until(matcher, bytes, &none())
}

/// The same until an interrupt ends it.
pub fn accept_bytes_until(
    matcher: &mut Matcher,
    bytes: &[u8],
    interrupt: &Interrupt,
) -> Said<bool> {
    Said::of(matcher.accept_bytes(bytes, interrupt).map(|accept| accept == Accept::Taken))
}

/// [`Matcher::fill`]: the row, and whether it forbids any token.
pub fn fill(matcher: &Matcher, words: usize) -> Said<(Vec<i32>, bool)> {
    fill_until(matcher, words, &none())
}

/// The same until an interrupt ends it.
pub fn fill_until(
    matcher: &Matcher,
    words: usize,
    interrupt: &Interrupt,
) -> Said<(Vec<i32>, bool)> {
    // What was in the row before must not matter.
    let mut row = vec![0x5A5A_5A5A; words];
    Said::of(matcher.fill(&mut row, interrupt)).map_done(|forbids| (row, forbids))
}

impl<T> Said<T> {
    /// The same with another answer.
    pub fn map_done<U>(self, map: impl FnOnce(T) -> U) -> Said<U> {
        match self {
            Said::Done(value) => Said::Done(map(value)),
            Said::State => Said::State,
            Said::Vocabulary => Said::Vocabulary,
            Said::Limit => Said::Limit,
            Said::Cancelled => Said::Cancelled,
        }
    }
}

/// Switches the work of a matcher off or on.
pub fn set_cancelled(matcher: &Matcher, cancelled: bool) {
    matcher.cancel_switch().store(cancelled, Ordering::Relaxed);
}

/// All that a refused call leaves as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    steps: usize,
    text: Vec<u8>,
    is_accepting: bool,
    is_terminated: bool,
    expected: Vec<u8>,
    state: Said<Vec<u32>>,
}

/// What can be seen of a matcher.
pub fn seen(matcher: &Matcher) -> Seen {
    let look = |look: &Look<'_>| Seen {
        steps: look.steps(),
        text: look.text(),
        is_accepting: look.is_accepting(),
        is_terminated: look.is_terminated(),
        expected: look.expected().unwrap_or_default(),
        state: Said::State,
    };
    let state = Said::of(matcher.state(&none()));
    Seen { state, ..matcher.look(&none(), look).expect("nobody holds the tables") }
}
