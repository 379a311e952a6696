//! Rules that are one automaton by themselves, such as formats and names: what leaves them is looked at first, and
//! tokens that end within them only where those can make a row better.
//!
//! From a state in such a rule tokens lead to most of its states, so each of these has a walk over most tokens. Few of
//! the tokens leave the rule: those that read one of the letters behind which it is complete, a quotation mark as a
//! rule. If the rule can be left between two tokens after one, an exit behind another token costs as much at least.
//! It matters only at nodes whose strings need more than one token by themselves ([`RuleExits::hard`]), and only if the
//! row has nothing there yet.

use super::dawg::{Dawg, NodeId};
use super::exits::{Exit, is_kept};
use super::rows::{PairId, Rows};
use super::walk::Goal;
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, meet};
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// The exits of a rule that is one automaton.
pub(super) struct RuleExits {
    /// Its states, as far as letters lead there from the one that was asked about first.
    pub(super) states: FxHashSet<u32>,
    /// The classes behind which it is complete.
    pub(super) last: ClassSet,
    /// Nodes that may be left with behind a token that ended in the rule, where it can be left between two tokens
    /// after one: those whose strings need more than one token by themselves. Each of the others is covered by one.
    pub(super) hard: Box<[NodeId]>,
}

/// The maximum number of hard nodes of a rule.
const MOST_HARD: usize = 64;

impl RuleExits {
    /// From the states and the last classes of a rule, and the classes that can follow it; `None` where the rule has
    /// more than [`MOST_HARD`] hard nodes.
    pub(super) fn new(
        (last, states): (ClassSet, FxHashSet<u32>),
        follow: &ClassSet,
        dawg: &Dawg,
    ) -> Option<Self> {
        let nodes = (0..dawg.len() as NodeId).flat_map(|node| dawg.children_by(node, &last));
        let hard = nodes.filter_map(|node| dawg.harder(node, 1));
        let mut hard: Vec<NodeId> = hard.filter(|&node| meet(follow, dawg.next(node))).collect();
        hard.sort_unstable();
        hard.dedup();
        if hard.len() > 8 * MOST_HARD {
            return None;
        }
        let all = hard.clone();
        // Of nodes that cover each other the first is kept.
        hard.retain(|&node| {
            let covering = dawg.covering(node);
            let is_covered = |&other: &NodeId| {
                other != node
                    && covering.has(other)
                    && (other < node || !dawg.covering(other).has(node))
            };
            !all.iter().any(is_covered)
        });
        (hard.len() <= MOST_HARD).then(|| Self { states, last, hard: hard.into() })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.hard) + self.states.capacity() * 5
    }
}

impl Rows {
    /// The last pair that is new, of a state that does not count. In a large automaton only what leaves it is
    /// looked for first: most pairs need nothing else.
    pub(super) fn begin_plain(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let exits = self.rule_exits(self.pairs[pair as usize].state, meter)?;
        if let Some(exits) = exits {
            self.walk(pair, Goal::Exits(exits.last), meter)?;
            self.explore(pair);
            if !self.needs_all_tokens(pair, &exits) {
                self.fresh.pop();
                return Ok(());
            }
        }
        self.walk(pair, Goal::All, meter)?;
        self.fresh.pop();
        self.explore(pair);
        Ok(())
    }

    /// How the rule of a state is left, if it is a large automaton by itself, as far as letters lead from there.
    fn rule_exits(
        &mut self,
        state: u32,
        meter: &mut Meter,
    ) -> Result<Option<Arc<RuleExits>>, Halt> {
        if self.network.counts_tokens() {
            return Ok(None);
        }
        let rule = self.network.rule_of(state);
        match self.automata.get(&rule) {
            Some(None) => return Ok(None),
            Some(Some(known)) if known.states.contains(&state) => return Ok(Some(known.clone())),
            _ => {}
        }
        let found = self.walk.automaton_from(state, &self.network, meter)?;
        let exits =
            found.and_then(|found| RuleExits::new(found, &self.follow[rule as usize], &self.dawg));
        meter.spend(self.dawg.len() as u64 / 4)?;
        let exits = exits.map(Arc::new);
        self.bytes += 32 + exits.as_ref().map_or(0, |exits| exits.bytes());
        self.automata.insert(rule, exits.clone());
        Ok(exits)
    }

    /// Whether a pair of a large automaton can gain by tokens that end in it: an exit behind such a token costs at
    /// least one token.
    fn needs_all_tokens(&self, pair: PairId, exits: &RuleExits) -> bool {
        let clean = self.clean[pair as usize];
        if clean > 1 {
            return true;
        }
        let row = &self.pairs[pair as usize].row;
        let is_known = |hard: NodeId| {
            let covering = self.dawg.covering(hard);
            let does = |exit: &Exit| exit.node == hard || covering.has(exit.node);
            row.iter().any(|exit| exit.tokens <= 1 && does(exit))
        };
        let can_gain = |&hard: &NodeId| {
            let exit = Exit { node: hard, tokens: 1, bytes: 0 };
            is_kept(&self.dawg, &exit, clean) && !is_known(hard)
        };
        exits.hard.iter().any(can_gain)
    }
}
