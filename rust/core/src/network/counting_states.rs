//! What a network says of states that count: see [`counters`](super::counters).

use super::counters::CountOf;
use super::{HOLE, Network};
use crate::limits::MOST_TEXT_BYTES;

impl Network {
    /// Whether any state counts.
    #[inline]
    pub(crate) fn has_counters(&self) -> bool {
        self.counters.end() as usize > self.finals.len()
    }

    /// Whether a state counts: its rule may be complete after any pass.
    #[inline]
    pub(crate) fn is_counting(&self, state: u32) -> bool {
        !self.is_listed(state) && state < self.counters.end()
    }

    /// Whether a state counts bytes of which there are few: white space. What stands beneath it is asked
    /// about by itself, since few nodes of the trie are left to that.
    #[inline]
    pub(crate) fn counts_narrowly(&self, state: u32) -> bool {
        self.is_counting(state) && self.counters.is_narrow(state)
    }

    /// For a state that counts the one that the tables have in its place: of a repetition the start of its
    /// body, of an automaton the state that does not count.
    pub(super) fn counted(&self, state: u32) -> Option<u32> {
        self.is_counting(state).then(|| self.counters.listed(state))
    }

    /// The rules that begin a pass of the rule of a state that counts.
    pub(crate) fn bodies(&self, state: u32) -> Vec<u32> {
        match self.counted(state) {
            None => Vec::new(),
            Some(_) if self.counters.is_automaton(state) => {
                let first = self.rule_starts[self.counters.rule_of(state) as usize];
                let own = |q: u32| self.rule_of.get(q as usize) == Some(&self.rule_of(first));
                let states = (first..).take_while(|&q| own(q));
                states.flat_map(|q| self.listed_calls(q).iter().map(|call| call.start)).collect()
            }
            Some(body) => vec![body],
        }
    }

    /// The states of the tables at which a call begins: of an automaton that keeps count those of the passes
    /// that may begin.
    pub(super) fn each_begun(&self, start: u32, mut visit: impl FnMut(u32)) {
        match self.counts_an_automaton(start) {
            true => self.calls(start).iter().for_each(|pass| visit(self.begun(pass.start))),
            false => visit(self.begun(start)),
        }
    }

    /// The state in the tables in which a called rule begins to read: of one that counts the start of
    /// its body or automaton, of one with guards that without them. A call of another part stays as it
    /// is.
    pub(super) fn begun(&self, start: u32) -> u32 {
        if start >= HOLE || self.is_listed(start) {
            return start;
        }
        match self.set_state(start) {
            Some((_, set)) => set.listed,
            None => self.counters.listed(start),
        }
    }

    /// What a state that counts does: the start of what it repeats, or the state of the tables without the
    /// count, the passes still needed and allowed, whether it may stop.
    pub(crate) fn counting(&self, state: u32) -> (u32, u32, Option<u32>, bool) {
        self.counters.meaning(state)
    }

    /// The repetitions that are counted, each with the start of what it repeats.
    pub(crate) fn repetitions(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let placed = self.counters.placed().filter(|placed| placed.0.listed.is_none());
        placed.map(|(counting, start)| (counting.rule, self.counters.listed(start)))
    }

    /// Whether an automaton keeps count.
    pub(crate) fn has_counted_automata(&self) -> bool {
        self.counted_automata().next().is_some()
    }

    /// The automata that keep count: the rule of each, and its state before any pass.
    pub(crate) fn counted_automata(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let placed = self.counters.placed().filter(|placed| placed.0.listed.is_some());
        placed.map(|(counting, start)| (counting.rule, start))
    }

    /// Of a state of an automaton that keeps count the least number of passes to an end, and how much more
    /// it can be after a pass.
    pub(crate) fn least_passes(&self, state: u32) -> (Option<u32>, u32) {
        self.counters.least_passes(state)
    }

    /// Whether a state is of an automaton that keeps count.
    pub(crate) fn counts_an_automaton(&self, state: u32) -> bool {
        self.is_counting(state) && self.counters.is_automaton(state)
    }

    /// How many bytes a text may have, where there are not numbers for all that could be counted.
    pub(crate) fn longest_text(&self) -> u32 {
        self.counters.longest().unwrap_or(MOST_TEXT_BYTES).min(MOST_TEXT_BYTES)
    }

    /// How many passes a state has done, which took no fewer bytes.
    pub(crate) fn passes_done(&self, state: u32) -> u32 {
        if self.is_counting(state) { self.counters.done(state) } else { 0 }
    }

    /// Of a state that has counted passes, how it stands to those that have counted otherwise.
    pub(crate) fn count_of(&self, state: u32) -> Option<CountOf> {
        if self.is_counting(state) { self.counters.count_of(state) } else { None }
    }

    /// Whether some rule counts the tokens that begin within its texts.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.has_counters() && self.counters.count_tokens()
    }

    /// Whether the rule of a state counts tokens.
    pub(crate) fn is_counting_tokens(&self, state: u32) -> bool {
        self.is_counting(state) && self.counters.counts_tokens(state)
    }

    /// The state that follows where the first byte of a token has led to `state`.
    pub(crate) fn after_first(&self, state: u32) -> u32 {
        if self.is_counting(state) { self.counters.after_first(state) } else { state }
    }

    /// The state that follows where a token has led to `state`; `None` where the rule ends there.
    pub(crate) fn after_token(&self, state: u32) -> Option<u32> {
        if !self.is_counting(state) {
            return Some(state);
        }
        Some(self.counters.after_token(state)).filter(|&after| self.stays(after))
    }

    /// A state that counts nothing, and for how many bytes it does what `state`, which counts,
    /// does.
    pub(crate) fn base(&self, state: u32) -> Option<(u32, u32)> {
        if self.is_counting(state) { self.counters.base(state) } else { None }
    }

    /// For a state of a counted repetition, the one that may stop after any pass, and whether the state
    /// counts passes itself.
    pub(crate) fn free(&self, state: u32) -> Option<(u32, bool)> {
        if self.is_counting(state) { self.counters.free(state) } else { None }
    }

    /// For the rules that count tokens the least bound, and the largest distance in bytes from a state to the
    /// nearest end; `None` where no rule counts them.
    pub(crate) fn budgets_of_tokens(&self) -> Option<(u32, u32)> {
        self.counters.budgets_of_tokens()
    }

    /// For a state of a rule that counts tokens: how many of them may end before one is read that begins
    /// behind the bound.
    pub(crate) fn tokens_left(&self, state: u32) -> Option<u32> {
        if self.is_counting(state) { self.counters.tokens_left(state) } else { None }
    }

    /// For a state that counts and that no lower bound holds any more, the one without an upper bound, and
    /// for how many bytes that does the same.
    pub(crate) fn unbounded(&self, state: u32) -> Option<(u32, u32)> {
        if self.is_counting(state) { self.counters.unbounded(state) } else { None }
    }

    /// A state that does with every token of at most `longest` bytes what `state` does.
    #[inline]
    pub(crate) fn like(&self, state: u32, longest: usize) -> u32 {
        if self.is_counting(state) { self.counters.like(state, longest) } else { state }
    }
}
