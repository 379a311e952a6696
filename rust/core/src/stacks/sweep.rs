//! A byte read by a large set of stacks at once.
//!
//! [`Stepper::step`] answers for each part of a set alone and remembers the answers, which is best
//! where parts come again. The stacks of the displacement automaton end in labels, so no part
//! comes again; what they share is the rules that they call. A sweep goes through those rules once,
//! callers before callees, each with all that has called it, as a set of Earley's does.

use super::{Entry, LABEL, NONE, OverBudget, SetId, StackSets, Stepper};
use crate::network::{Network, contains};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::sync::Arc;

/// Where each rule stands among those that begin with each other: callers first.
pub(super) struct Order {
    /// For each network state its place if a rule starts there.
    place_of: Vec<u32>,
    /// The rule starts in their order.
    starts: Vec<u32>,
}

const NO_PLACE: u32 = u32::MAX;
/// Calls looked at that count as one unit of work.
const CALLS_OF_WORK: u64 = 4;

impl Order {
    fn new(network: &Network) -> Self {
        let n = network.len();
        let mut starts = Vec::new();
        let mut place_of = vec![NO_PLACE; n];
        let mut seen = vec![false; n];
        // Depth-first along calls; a start is met twice: before its callees and after them.
        let mut work: Vec<(u32, bool)> = Vec::new();
        for q in 0..n as u32 {
            work.extend(network.calls(q).iter().map(|call| (call.start, false)));
            while let Some((start, done)) = work.pop() {
                if done {
                    starts.push(start);
                } else if !std::mem::replace(&mut seen[start as usize], true) {
                    work.push((start, true));
                    work.extend(network.calls(start).iter().map(|call| (call.start, false)));
                }
            }
        }
        starts.reverse();
        for (place, &start) in starts.iter().enumerate() {
            place_of[start as usize] = place as u32;
        }
        Self { place_of, starts }
    }
}

/// What stands beneath a rule that has been called: entries, and whole sets.
#[derive(Default)]
struct Beneath {
    entries: Vec<Entry>,
    sets: Vec<SetId>,
}

impl Beneath {
    fn add(&mut self, sets: &StackSets, set: SetId) {
        match sets.halves(set) {
            Some(_) => self.sets.push(set),
            None => self.entries.extend_from_slice(sets.list(set)),
        }
    }

    fn take(&mut self, sets: &mut StackSets) -> Result<SetId, OverBudget> {
        self.sets.sort_unstable();
        self.sets.dedup();
        let set = sets.collect(&mut self.entries, &self.sets);
        self.entries.clear();
        self.sets.clear();
        set
    }
}

/// Room for sweeps.
#[derive(Default)]
pub(super) struct Sweep {
    order: Option<Arc<Order>>,
    /// For each called rule, by its place, what stands beneath.
    called: Vec<Beneath>,
    /// The places of called rules that have not been gone through, the first first.
    queue: BinaryHeap<Reverse<u32>>,
    out: Beneath,
}

impl<N: Deref<Target = Network>> Stepper<N> {
    /// What [`Self::step`] says, by going through all of the set at once.
    pub(crate) fn sweep(&mut self, set: SetId, class: u8) -> Result<SetId, OverBudget> {
        if let Some(&known) = self.steps.get(&(set, class)) {
            return Ok(known);
        }
        let mut sweep = std::mem::take(&mut self.sweep);
        let result = sweep.run(&self.network, &mut self.sets, set, class);
        if result.is_err() {
            // Nothing of it is to be left in the next.
            sweep = Sweep { order: sweep.order, ..Sweep::default() };
        }
        self.sweep = sweep;
        let after = result?;
        self.steps.insert((set, class), after);
        Ok(after)
    }
}

impl Sweep {
    fn run(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
        class: u8,
    ) -> Result<SetId, OverBudget> {
        let order = self.order.get_or_insert_with(|| Arc::new(Order::new(network))).clone();
        self.called.resize_with(order.starts.len(), Beneath::default);
        let mut work = vec![set];
        while let Some(set) = work.pop() {
            if let Some((left, right)) = sets.halves(set) {
                work.extend([left, right]);
                continue;
            }
            if sets.work > sets.allowance {
                return Err(OverBudget);
            }
            let mut index = 0;
            while let Some(&(state, beneath)) = sets.list(set).get(index) {
                index += 1;
                if state < LABEL && contains(network.first(state), class) {
                    match order.place_of[state as usize] {
                        // Others may call it too.
                        place if place != NO_PLACE => {
                            self.call(sets, place, &[], beneath);
                        }
                        _ => self.state(network, sets, &order, (state, beneath), class),
                    }
                }
            }
        }
        let mut previous = NO_PLACE;
        while let Some(Reverse(place)) = self.queue.pop() {
            if place == previous {
                continue;
            }
            previous = place;
            let beneath = self.called[place as usize].take(sets)?;
            let start = order.starts[place as usize];
            self.state(network, sets, &order, (start, beneath), class);
            if sets.work > sets.allowance {
                return Err(OverBudget);
            }
        }
        self.out.take(sets)
    }

    fn call(&mut self, sets: &StackSets, place: u32, entries: &[Entry], set: SetId) {
        let beneath = &mut self.called[place as usize];
        if beneath.entries.is_empty() && beneath.sets.is_empty() {
            self.queue.push(Reverse(place));
        }
        beneath.entries.extend_from_slice(entries);
        beneath.add(sets, set);
    }

    /// One state with what stands beneath it.
    fn state(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        order: &Order,
        (state, beneath): Entry,
        class: u8,
    ) {
        for target in network.targets(state, class) {
            if network.stays(target) {
                self.out.entries.push((target, beneath));
            }
            if network.is_final(target) {
                self.out.add(sets, beneath);
            }
        }
        let calls = network.calls(state);
        sets.work += 1 + calls.len() as u64 / CALLS_OF_WORK;
        for call in calls.iter() {
            if contains(network.first(call.start), class) {
                let returns = [(call.to, beneath)];
                let entries = &returns[..usize::from(network.stays(call.to))];
                let set = if network.is_final(call.to) { beneath } else { NONE };
                self.call(sets, order.place_of[call.start as usize], entries, set);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{REST, Stepper};
    use super::*;
    use crate::limits::Limits;
    use crate::network::NetworkOptions;
    use crate::syntax::parse;

    #[test]
    fn a_sweep_says_what_a_step_says() {
        let texts = [
            "root ::= root \"a\" root | \"b\" | \"(\" root \")\"",
            "root ::= x y | y x \"a\"\nx ::= \"a\" x \"b\"? | \"a\"\ny ::= x \"b\" | \"a\" y",
            "root ::= (\"a\" one)? (\"b\" two)? (\"a\" root \"b\")?\none ::= \"a\" one \"a\" | \"b\"\n\
             two ::= one two \"b\" | \"a\"",
        ];
        for text in texts {
            let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
            for inline_budget in [0, 20] {
                let options = NetworkOptions { inline_budget, ..NetworkOptions::default() };
                let network = Network::new(&grammar, &options).expect("network");
                let mut stepper = Stepper::new(&network);
                // All states at once, as the displacement automaton begins, and one.
                let mut all: Vec<Entry> = (0..network.len() as u32).map(|q| (q, REST)).collect();
                let all = stepper.sets.collect(&mut all, &[]).expect("no budget");
                let start = stepper.sets.add(&[(network.start(), REST)]).expect("no budget");
                let mut sets = vec![all, start];
                let mut compared = 0;
                while let Some(set) = sets.pop() {
                    for class in 0..network.alphabet().len() as u8 {
                        let swept = stepper.sweep(set, class).expect("no budget");
                        // A sweep remembers where a step would look.
                        stepper.steps.clear();
                        let stepped = stepper.step(set, class).expect("no budget");
                        stepper.steps.clear();
                        assert_eq!(swept, stepped, "{text}");
                        compared += 1;
                        if swept != NONE && compared < 500 {
                            sets.push(swept);
                        }
                    }
                }
                assert!(compared > 20, "{compared} of {text}");
            }
        }
    }
}
