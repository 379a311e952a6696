//! Rows of rules that are one automaton by themselves, such as formats and names: from each state only those tokens are
//! walked that can make its row better.
//!
//! From a state in such a rule tokens lead to most of its states, so each of these has a walk over most tokens. Few of
//! them bring the end nearer. With each state goes the number of tokens that must begin before the rule is left
//! ([`LetterAutomaton::begun`]). A token that ends in a state of `b` has exits that finish `b` tokens at least, so where `n`
//! are enough to leave the rule between two tokens, it matters only if `b < n`, but for the strings that need more than
//! one token by themselves ([`LetterAutomaton::hard`]). So rows are made of tokens that end in states nearer to the end first,
//! and of others only where something is missing.
//!
//! A walk toward some states goes on with those strings alone that have the letters which each way there reads: an
//! at-sign and a quotation mark, say.

use super::automata::{AutomatonState, ExitLevel, LetterAutomaton, LetterGraph, Toward, UNKNOWN};
use super::dawg::{NodeId, UNASKED};
use super::exits::{Exit, is_kept};
use super::pairs::PairId;
use super::rows::Rows;
use super::strings::UNREACHABLE;
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, Network, add_all};

/// Automata of fewer states are walked at once.
const MANY_STATES: usize = if cfg!(test) { 1 } else { 24 };

impl Rows {
    /// The last pair that is new, of a state that does not count.
    pub(super) fn begin_plain(&mut self, pair: PairId, meter: &mut Meter) -> Result<(), Halt> {
        let Some(at) = self.place_of(self.pairs[pair as usize].state, meter)? else {
            self.walk(pair, meter)?;
            self.fresh.pop();
            self.explore(pair);
            return Ok(());
        };
        let automaton = &self.automata[at.automaton];
        let level = match automaton.begun[at.place] {
            UNREACHABLE if self.is_between(pair) => {
                self.fresh.pop();
                return Ok(()); // no way out
            }
            UNREACHABLE | UNKNOWN => 0,
            begun if self.is_between(pair) => begun.saturating_sub(1),
            _ => 0,
        };
        self.walk_toward(pair, (at, level), meter)?;
        self.fresh.pop();
        self.explore(pair);
        self.unfinished.push((pair, at, level));
        Ok(())
    }

    fn is_between(&self, pair: PairId) -> bool {
        self.pairs[pair as usize].node == self.dawg.root()
    }

    fn walk_toward(
        &mut self,
        pair: PairId,
        (at, level): (AutomatonState, ExitLevel),
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        let from = (self.pairs[pair as usize].state, self.pairs[pair as usize].node);
        let automaton = &self.automata[at.automaton];
        let toward = Toward { automaton, level, is_one_enough: false };
        let most_bytes = self.most_bytes.saturating_sub(self.bytes);
        self.walk.from(from, Some(toward), (&self.network, &mut self.dawg), most_bytes, meter)
    }

    /// Looks at more tokens for the last pair of an automaton that may need them.
    pub(super) fn go_on_with_last(&mut self, meter: &mut Meter) -> Result<(), Halt> {
        let Some(&(pair, at, level)) = self.unfinished.last() else { return Ok(()) };
        // A token that ends in a state of a higher level has exits of more tokens.
        let clean = self.clean[pair as usize];
        let is_enough = clean <= level + 1 && !self.lacks(pair, at, level + 1);
        let mut next = level;
        if !is_enough {
            self.find_begun(at, meter)?;
            let automaton = &self.automata[at.automaton];
            let begun = automaton.begun[at.place];
            let is_between = self.is_between(pair);
            // Each walk begins anew, so that a pair has few: where strings are missing all tokens are looked at.
            next = match clean {
                _ if is_between && begun == UNREACHABLE => level,
                UNREACHABLE if is_between && begun > level + 1 => begun - 1,
                0..UNREACHABLE if clean > level + 1 => clean - 1,
                _ => automaton.highest(),
            };
            next = next.min(automaton.highest());
        }
        if next > level {
            self.walk_toward(pair, (at, next), meter)?;
            self.explore(pair);
            if let Some(last) = self.unfinished.last_mut() {
                last.2 = next;
            }
        } else {
            self.unfinished.pop();
        }
        Ok(())
    }

    /// Whether exits that finish so many tokens may be missing, at the node that covers all that there can be.
    fn lacks(&mut self, pair: PairId, at: AutomatonState, tokens: u32) -> bool {
        let Some(node) = self.automata[at.automaton].hard else { return false };
        let clean = self.clean[pair as usize];
        if !is_kept(&self.dawg, &Exit { node, tokens, bytes: 0 }, clean) {
            return false;
        }
        let root = self.dawg.root();
        let row = self.pairs[pair as usize].row.exits.iter();
        let known = row.filter(|exit| exit.tokens <= tokens && exit.node != root);
        let mut known: Vec<NodeId> = known.map(|exit| exit.node).collect();
        let known = self.dawg.union(&mut known);
        !known.is_some_and(|known| self.dawg.covers(known, node))
    }

    /// The place of a state in its automaton, if letters lead from there to no call.
    fn place_of(&mut self, state: u32, meter: &mut Meter) -> Result<Option<AutomatonState>, Halt> {
        if self.network.counts_tokens() {
            return Ok(None);
        }
        let rule = self.network.rule_of(state);
        let automaton = match self.automaton_of_rule.get(&rule) {
            Some(&known) => known,
            None => self.find_automaton(rule, meter)?,
        };
        Ok(automaton.and_then(|automaton| {
            let place = *self.automata[automaton].graph.places.get(&state)? as usize;
            Some(AutomatonState { automaton, place })
        }))
    }

    /// Whether letters may lead from the start of a rule to many states: to those of the rule, and by tail calls to
    /// others.
    fn may_have_many(&self, rule: u32, network: &Network) -> bool {
        let start = network.rule_starts()[rule as usize];
        let mut states = (start..network.len() as u32).take_while(|&q| network.rule_of(q) == rule);
        let goes_on =
            |state: u32| network.calls(state).iter().any(|call| self.tails.goes_on(network, call));
        states.by_ref().take(MANY_STATES - 1).any(goes_on) || states.next().is_some()
    }

    /// Makes the automaton of a rule, if it has a large one.
    fn find_automaton(&mut self, rule: u32, meter: &mut Meter) -> Result<Option<usize>, Halt> {
        let network = self.network.clone();
        let mut number = None;
        let graph = match self.may_have_many(rule, &network) {
            true => {
                LetterGraph::of_rule(rule, &network, (&self.tails, &mut self.walk.steps), meter)?
            }
            false => LetterGraph::default(),
        };
        if graph.states.len() >= MANY_STATES {
            let is_final: Vec<bool> =
                graph.states.iter().map(|&state| network.is_final(state)).collect();
            let hard = self.hard_behind(&graph, &is_final, meter)?;
            let automaton = LetterAutomaton::new(graph, is_final, hard, meter)?;
            self.bytes += automaton.bytes();
            number = Some(self.automata.len());
            self.automata.push(automaton);
        }
        self.bytes += 25;
        self.automaton_of_rule.insert(rule, number);
        Ok(number)
    }

    /// Finds out how far a place is from the end, and all to which letters lead from there.
    fn find_begun(&mut self, at: AutomatonState, meter: &mut Meter) -> Result<(), Halt> {
        let places = self.automata[at.automaton].unknown_from(at.place);
        if places.is_empty() {
            return Ok(());
        }
        let found = self.find_begun_of(at.automaton, &places, meter);
        if found.is_err() {
            let begun = &mut self.automata[at.automaton].begun;
            places.iter().for_each(|&place| begun[place] = UNKNOWN);
        }
        found
    }

    fn find_begun_of(
        &mut self,
        number: usize,
        places: &[usize],
        meter: &mut Meter,
    ) -> Result<(), Halt> {
        for level in 0.. {
            let automaton = &mut self.automata[number];
            if level > automaton.highest() {
                self.bytes += automaton.add_level();
            }
            if level > 0 {
                automaton.find_needs(level, places, meter)?;
            }
            let mut found = Vec::new();
            let automaton = &self.automata[number];
            for &place in places.iter().filter(|&&place| automaton.begun[place] >= UNREACHABLE) {
                let from = (automaton.graph.states[place], self.dawg.root());
                let toward = Toward { automaton, level, is_one_enough: true };
                let most_bytes = self.most_bytes.saturating_sub(self.bytes);
                let both = (&*self.network, &mut self.dawg);
                self.walk.from(from, Some(toward), both, most_bytes, meter)?;
                let is_found = !self.walk.left.is_empty() || !self.walk.ended.is_empty();
                found.extend(is_found.then_some(place));
            }
            let automaton = &mut self.automata[number];
            if level == 0 {
                for &place in places {
                    automaton.begun[place] =
                        if automaton.is_final[place] { 0 } else { UNREACHABLE };
                }
            }
            for &place in &found {
                automaton.begun[place] = automaton.begun[place].min(level + 1);
            }
            if found.is_empty() && level >= automaton.highest() {
                break;
            }
        }
        Ok(())
    }

    /// Where a token can leave an automaton with strings that need more than one token by themselves.
    fn hard_behind(
        &mut self,
        graph: &LetterGraph,
        is_final: &[bool],
        meter: &mut Meter,
    ) -> Result<Option<NodeId>, Halt> {
        let mut last: ClassSet = [0; 4];
        let steps = graph.steps.iter().flatten();
        steps.filter(|step| is_final[step.1 as usize]).for_each(|step| add_all(&mut last, &step.0));
        let mut follow: ClassSet = [0; 4];
        for &state in &graph.states {
            add_all(&mut follow, &self.follow[self.network.rule_of(state) as usize]);
        }
        let all = 0..self.dawg.reached() as NodeId;
        meter.spend(all.len() as u64)?;
        let mut nodes: Vec<NodeId> =
            all.flat_map(|node| self.dawg.children_by(node, &last)).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|&node| self.dawg.tokens(node) != UNASKED);
        let hard = |&node: &NodeId| {
            let hard = self.dawg.harder(node, 1)?;
            self.dawg.beginning_with(hard, &follow)
        };
        let mut nodes: Vec<NodeId> = nodes.iter().filter_map(hard).collect();
        Ok(self.dawg.union(&mut nodes))
    }
}
