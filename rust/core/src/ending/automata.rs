//! Rules that are one automaton by themselves, such as formats and names: what leaves them is looked at first, and
//! tokens that end within them only where those can make a row better.
//!
//! From a state in such a rule tokens lead to most of its states, so each of these has a walk over most tokens. Few of
//! the tokens leave the rule: those that read one of the letters behind which it is complete, a quotation mark as a
//! rule. If the rule can be left between two tokens after one, an exit behind another token costs as much at least.
//! It matters only at nodes whose strings need more than one token by themselves ([`RuleExits::hard`]), and only if the
//! row has nothing there yet.

use super::dawg::NodeId;
use super::exits::{Exit, RuleExits, is_kept};
use super::rows::{PairId, Rows};
use super::walk::Goal;
use crate::budget::{Halt, Meter};
use std::sync::Arc;

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
        let follow = &self.follow[rule as usize];
        let exits = found.map(|found| RuleExits::new(found, follow, &mut self.dawg));
        meter.spend(self.dawg.len() as u64 / 4)?;
        let exits = exits.map(Arc::new);
        self.bytes += 32 + exits.as_ref().map_or(0, |exits| exits.bytes());
        self.automata.insert(rule, exits.clone());
        Ok(exits)
    }

    /// Whether a pair of a large automaton can gain by tokens that end in it: an exit behind such a token costs at
    /// least one token.
    fn needs_all_tokens(&mut self, pair: PairId, exits: &RuleExits) -> bool {
        let clean = self.clean[pair as usize];
        if clean > 1 {
            return true;
        }
        let Some(hard) = exits.hard else { return false };
        if !is_kept(&self.dawg, &Exit { node: hard, tokens: 1, bytes: 0 }, clean) {
            return false;
        }
        let root = self.dawg.root();
        let row = self.pairs[pair as usize].row.iter();
        let known: Vec<NodeId> = row
            .filter(|exit| exit.tokens <= 1 && exit.node != root)
            .map(|exit| exit.node)
            .collect();
        let known = self.dawg.union(&known);
        !known.is_some_and(|known| self.dawg.covers(known, hard))
    }
}
