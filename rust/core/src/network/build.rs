//! From a grammar to a network.

use super::rules::{Outside, RuleSet};
use super::{Network, NetworkOptions, Width};
use crate::budget::{Budget, Interrupt, Ticks};
use crate::error::Result;
use crate::grammar::Grammar;
use rustc_hash::FxHashMap;

impl Network {
    /// The network of a grammar.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for what the network cannot express exactly and, with pruning, for
    /// a grammar without any string; [`Error::Limit`] when a bound on states, edges or work is
    /// reached.
    pub fn new(grammar: &Grammar, options: &NetworkOptions) -> Result<Self> {
        Self::make(grammar, options, &Budget::new(&options.limits, &Interrupt::default()))
    }

    /// The network of a grammar, made under a count of work that others may go on with, and that
    /// can be ended.
    ///
    /// # Errors
    /// Those of [`Network::new`] and [`Budget::spend`].
    pub fn make(grammar: &Grammar, options: &NetworkOptions, work: &Budget) -> Result<Self> {
        let rules = RuleSet::make(grammar, &Outside::nothing(), options, work)?;
        work.tick()?;
        let mut out = Self::assemble(&rules, &FxHashMap::default(), &options.limits, work)?;
        work.tick()?;
        out.first = out.first_sets(work)?;
        if let Some(least) = options.share_wide {
            let width = Width { least, of: out.alphabet.widths() };
            let first = |network: &Network, start| network.first_width(&width, start);
            out.delegate(&width, first, |_| false, &Ticks::new(work))?;
        }
        work.tick()?;
        if !rules.has_loops {
            out.find_for_charts(&Ticks::new(work))?;
        }
        Ok(out)
    }
}
