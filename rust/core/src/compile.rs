//! One way from a grammar and a vocabulary to an engine, for everybody who compiles.
//!
//! [`compile`] makes the network, then the engine over it. Token classes are made beside it, of a
//! network of their own ([`crate::classes::compile`]).

use crate::budget::{Budget, Interrupt};
use crate::engine::{Engine, EngineOptions, Representation, SharedVocabulary};
use crate::error::Result;
use crate::grammar::{Grammar, WholeTokens};
use crate::ids::RuleId;
use crate::network::{LeftRecursion, Network, NetworkOptions, NetworkPart, WIDE, over_ids};
use std::sync::Arc;

/// How a grammar is made ready for masks. The masks are the same, whatever they say.
#[derive(Clone)]
pub struct CompileOptions {
    /// How its network is made, with bounds on it. Left recursion that may be
    /// [`LeftRecursion::Fitting`] is written out as loops for who needs them.
    pub network: NetworkOptions,
    /// How the engine works, with bounds on its calls.
    pub engine: EngineOptions,
}

impl Default for CompileOptions {
    fn default() -> Self {
        let network = NetworkOptions {
            counters: true,
            unique_items: true,
            share_wide: Some(WIDE),
            left_recursion: LeftRecursion::Fitting,
            ..NetworkOptions::default()
        };
        Self { network, engine: EngineOptions::default() }
    }
}

/// Makes the parts that stand in the place of rules, under the options of their network; `None` for
/// a part that has no string.
pub type MakeParts<'a> =
    dyn Fn(&NetworkOptions, &Budget) -> Result<Vec<(RuleId, Option<Arc<NetworkPart>>)>> + 'a;

/// What is compiled.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A grammar.
    Grammar(&'a Grammar),
    /// A grammar and the parts that stand in the place of some of its rules.
    Frame(&'a Grammar, &'a MakeParts<'a>),
}

impl<'a> From<&'a Grammar> for Source<'a> {
    fn from(grammar: &'a Grammar) -> Self {
        Self::Grammar(grammar)
    }
}

/// Makes a grammar ready for matchers over a vocabulary.
///
/// # Errors
/// [`Error::Unsupported`](crate::error::Error::Unsupported) for a grammar that holds something that
/// is not context-free, has no string, or cannot be read as the options say;
/// [`Error::Limit`](crate::error::Error::Limit) for a bound of the options; and those of
/// [`Interrupt::look`].
pub fn compile<'a>(
    source: impl Into<Source<'a>>,
    vocabulary: &SharedVocabulary,
    options: &CompileOptions,
    interrupt: &Interrupt,
) -> Result<Arc<Engine>> {
    let source = source.into();
    let (Source::Grammar(grammar) | Source::Frame(grammar, _)) = source;
    let representation = options.engine.representation;
    let mut network = options.network.clone();
    // Parts that are linked have loops, the same for every engine.
    let has_loops = matches!(source, Source::Frame(..)) || representation == Representation::Stacks;
    if has_loops && network.left_recursion == LeftRecursion::Fitting {
        network.left_recursion = LeftRecursion::Both;
    }
    let work = Budget::new(&network.limits, interrupt);
    let whole = || WholeTokens { ranges: vocabulary.whole_ranges(), stops: vocabulary.stop_ids() };
    let over_ids = over_ids(grammar, whole, vocabulary.len(), &network.limits, &work)?;
    let grammar = over_ids.as_ref().unwrap_or(grammar);
    let network = match source {
        Source::Frame(_, parts) => {
            let parts = parts(&network, &work)?;
            let frame = NetworkPart::of_frame(grammar, &parts, &network, &work)?;
            frame.link(&network.limits, &work)?
        }
        _ if representation == Representation::Chart => Network::make(grammar, &network, &work)?,
        _ => Network::linked(grammar, &network, &work)?,
    };
    let engine = Engine::new(Arc::new(network), vocabulary, &options.engine)?;
    engine.prepare(interrupt)?;
    Ok(Arc::new(engine))
}
