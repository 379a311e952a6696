//! One byte read by many stacks at once.
//!
//! A set is stepped by the parts of its tree, as far as they call nothing: their answers are
//! remembered, and sets that differ little share most of their parts. The parts that call rules are
//! read together, by one sweep: it goes through the called rules once, callers before callees, each
//! with everything that stands beneath it united, as a set of Earley's predicts each symbol once. A
//! step of each path of calls by itself would take as long as there are paths: 51,000 sets instead
//! of 136 rules at the first token of a grammar of air travel.

use super::{Entry, LABEL, NONE, SetId, StackSets, Stepper, entered};
use crate::budget::Halt;
use crate::network::{CallOrder, Network, contains};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Deref;
use std::sync::Arc;

/// Calls looked at that count as one unit of work.
const CALLS_OF_WORK: u64 = 4;
/// The same for lists.
const LISTS_OF_WORK: u64 = 8;
/// Lists read between two looks at the bound.
const LISTS_AT_ONCE: usize = 256;

/// What stands beneath a rule that has been called: entries, and whole sets.
#[derive(Default)]
struct ReturnStacks {
    entries: Vec<Entry>,
    sets: Vec<SetId>,
}

impl ReturnStacks {
    fn add(&mut self, sets: &StackSets, set: SetId) {
        match sets.halves(set) {
            Some(_) => self.sets.push(set),
            None => self.entries.extend_from_slice(sets.list(set)),
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.sets.is_empty()
    }

    fn take(&mut self, sets: &mut StackSets) -> Result<SetId, Halt> {
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
    order: Option<Arc<CallOrder>>,
    /// For each rank of a called rule its place in `called`.
    places: FxHashMap<u32, u32>,
    /// What stands beneath the called rules; those past `used` are room.
    called: Vec<ReturnStacks>,
    used: usize,
    /// The ranks of called rules that have not been gone through, the lowest first.
    queue: BinaryHeap<Reverse<u32>>,
    out: ReturnStacks,
}

impl<N: Deref<Target = Network>> Stepper<N> {
    /// Makes the answer of [`Stepper::step`].
    pub(super) fn make(&mut self, set: SetId, class: u8) -> Result<SetId, Halt> {
        let refused = self.network.refused_sets();
        let alone = self.alone(set, class)?;
        self.check_sets(refused)?;
        if let Some(after) = alone {
            return self.remember(set, class, after);
        }
        let mut calling = Vec::new();
        let mut parts = Vec::new();
        let without = self.without_calls(set, class, &mut calling, &mut parts)?;
        self.check_sets(refused)?;
        match without {
            Some(after) => Ok(after),
            None => self.sweep_lists(set, class, &calling, &parts),
        }
    }

    /// The answer for one top that calls nothing and leads to one state at most: most sets are such.
    fn alone(&mut self, set: SetId, class: u8) -> Result<Option<SetId>, Halt> {
        let [(state, beneath)] = *self.sets.list(set) else { return Ok(None) };
        let network: &Network = &self.network;
        if state >= LABEL || !network.calls(state).is_empty() {
            return Ok(None);
        }
        let mut targets = network.targets(state, class);
        let (target, more) = (targets.next(), targets.next());
        if more.is_some() {
            return Ok(None);
        }
        self.sets.spend(1)?;
        let Some(target) = target else { return Ok(Some(NONE)) };
        let mut after = NONE;
        if network.stays(target) {
            let entry = entered(network, &mut self.sets, target, beneath)?;
            after = self.sets.add(&[entry])?;
        }
        if network.is_final(target) {
            self.completions += 1;
            after = self.sets.union(after, beneath)?;
        }
        Ok(Some(after))
    }

    /// What [`Stepper::step`] says, by one sweep through all of the set: for sets of which no part
    /// comes again, as those are that end in labels.
    pub(crate) fn sweep(&mut self, set: SetId, class: u8) -> Result<SetId, Halt> {
        if let Some(known) = self.known(set, class) {
            return Ok(known);
        }
        let mut lists = Vec::new();
        let mut work = vec![set];
        while let Some(set) = work.pop() {
            match self.sets.halves(set) {
                Some((left, right)) => work.extend([left, right]),
                None => lists.push(set),
            }
        }
        self.sets.spend(lists.len() as u64 / LISTS_OF_WORK)?;
        self.sweep_lists(set, class, &lists, &[])
    }

    /// Reads a class with some lists of a set by one sweep; what its other parts became is added.
    fn sweep_lists(
        &mut self,
        set: SetId,
        class: u8,
        lists: &[SetId],
        others: &[SetId],
    ) -> Result<SetId, Halt> {
        let order = match &self.sweep.order {
            Some(order) => order.clone(),
            None => {
                let order = self.network.call_order(&mut self.sets.meter)?;
                self.sweep.order.insert(order).clone()
            }
        };
        let mut sweep = std::mem::take(&mut self.sweep);
        let run = SweepState {
            network: &self.network,
            order: &order,
            sets: &mut self.sets,
            completions: &mut self.completions,
            class,
            room: &mut sweep,
        };
        let refused = run.network.refused_sets();
        let result = run.all(lists, others);
        if result.is_err() {
            // Nothing of it is to be left in the next.
            sweep = Sweep { order: sweep.order, ..Sweep::default() };
        }
        self.sweep = sweep;
        let after = result?;
        self.check_sets(refused)?;
        self.remember(set, class, after)
    }

    /// The answer where no top calls a rule that can begin with the class; else `None`, and the
    /// lists with such tops and the answers of all other parts are added.
    ///
    /// It goes down the tree of a set, which has a level for each bit of a state at most.
    fn without_calls(
        &mut self,
        set: SetId,
        class: u8,
        calling: &mut Vec<SetId>,
        parts: &mut Vec<SetId>,
    ) -> Result<Option<SetId>, Halt> {
        if let Some(known) = self.known(set, class) {
            return Ok(Some(known));
        }
        let after = match self.sets.halves(set) {
            Some((left, right)) => {
                let left = self.without_calls(left, class, calling, parts)?;
                let right = self.without_calls(right, class, calling, parts)?;
                match (left, right) {
                    (Some(left), Some(right)) => self.sets.union(left, right)?,
                    (left, right) => {
                        parts.extend(left.or(right));
                        return Ok(None);
                    }
                }
            }
            None => {
                let network: &Network = &self.network;
                let mut looked = 0;
                let mut calls = |&(state, _): &Entry| {
                    let may = state < LABEL && contains(network.first(state), class);
                    may && network.calls(state).iter().any(|call| {
                        looked += 1;
                        contains(network.first(call.start), class)
                    })
                };
                let is_calling = self.sets.list(set).iter().any(&mut calls);
                self.sets.spend(1 + looked / CALLS_OF_WORK)?;
                if is_calling {
                    calling.push(set);
                    return Ok(None);
                }
                self.list_without_calls(set, class)?
            }
        };
        self.remember(set, class, after).map(Some)
    }

    fn list_without_calls(&mut self, set: SetId, class: u8) -> Result<SetId, Halt> {
        let network: &Network = &self.network;
        let (mut entries, mut parts) = (Vec::new(), Vec::new());
        let mut index = 0;
        while let Some(&(state, beneath)) = self.sets.list(set).get(index) {
            index += 1;
            if state >= LABEL || !contains(network.first(state), class) {
                continue;
            }
            for target in network.targets(state, class) {
                if network.stays(target) {
                    entries.push(entered(network, &mut self.sets, target, beneath)?);
                }
                if network.is_final(target) {
                    self.completions += 1;
                    parts.push(beneath);
                }
            }
        }
        parts.sort_unstable();
        parts.dedup();
        self.sets.collect(&mut entries, &parts)
    }
}

/// One sweep.
struct SweepState<'a> {
    network: &'a Network,
    order: &'a CallOrder,
    sets: &'a mut StackSets,
    completions: &'a mut u64,
    class: u8,
    room: &'a mut Sweep,
}

impl SweepState<'_> {
    /// Reads the class with the stacks of some lists; what other stacks became is added.
    fn all(mut self, lists: &[SetId], others: &[SetId]) -> Result<SetId, Halt> {
        for (number, &list) in lists.iter().enumerate() {
            if number.is_multiple_of(LISTS_AT_ONCE) {
                self.sets.spend(1)?;
            }
            let mut index = 0;
            while let Some(&(state, beneath)) = self.sets.list(list).get(index) {
                index += 1;
                if state < LABEL && contains(self.network.first(state), self.class) {
                    match self.order.rank(state) {
                        // Others may call it too.
                        Some(rank) => self.call(rank, None, beneath),
                        None => self.state(state, beneath)?,
                    }
                }
            }
        }
        while let Some(Reverse(rank)) = self.room.queue.pop() {
            let Some(place) = self.room.places.remove(&rank) else { continue };
            let beneath = self.room.called[place as usize].take(self.sets)?;
            self.state(self.order.start(rank), beneath)?;
        }
        self.room.used = 0;
        self.room.out.sets.extend_from_slice(others);
        self.room.out.take(self.sets)
    }

    /// A rule is called above an entry, and above a set.
    fn call(&mut self, rank: u32, entry: Option<Entry>, set: SetId) {
        let Sweep { places, called, used, queue, .. } = &mut *self.room;
        let place = *places.entry(rank).or_insert_with(|| {
            queue.push(Reverse(rank));
            *used += 1;
            *used as u32 - 1
        });
        if called.len() <= place as usize {
            called.resize_with(place as usize + 1, ReturnStacks::default);
        }
        let beneath = &mut called[place as usize];
        debug_assert!(!beneath.is_empty() || place as usize + 1 == *used);
        beneath.entries.extend(entry);
        beneath.add(self.sets, set);
    }

    /// One state with what stands beneath it.
    fn state(&mut self, state: u32, beneath: SetId) -> Result<(), Halt> {
        let Self { network, class, .. } = *self;
        for target in network.targets(state, class) {
            if network.stays(target) {
                let entry = entered(network, self.sets, target, beneath)?;
                self.room.out.entries.push(entry);
            }
            if network.is_final(target) {
                *self.completions += 1;
                self.room.out.add(self.sets, beneath);
            }
        }
        let calls = network.calls(state);
        self.sets.spend(1 + calls.len() as u64 / CALLS_OF_WORK)?;
        for call in calls.iter() {
            if !contains(network.first(call.start), class) {
                continue;
            }
            let entry = network.stays(call.to).then_some((call.to, beneath));
            let set = if network.is_final(call.to) { beneath } else { NONE };
            let Some(rank) = self.order.rank(call.start) else {
                unreachable!("the order has every start of a call")
            };
            self.call(rank, entry, set);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::shards::Shards;
    use super::super::{REST, Stepper};
    use super::*;
    use crate::limits::Limits;
    use crate::network::NetworkOptions;
    use crate::stacks::sets::tests::stacks_of;
    use crate::syntax::parse;
    use std::collections::BTreeSet;

    /// A stack, the top first.
    type Stack = Vec<u32>;

    /// The stacks after a byte: the obvious way, each path of calls by itself.
    fn step(network: &Network, stack: &[u32], class: u8, out: &mut BTreeSet<Stack>) {
        let Some((&top, beneath)) = stack.split_first() else { return };
        for target in network.targets(top, class) {
            if network.stays(target) {
                out.insert([&[target][..], beneath].concat());
            }
            if network.is_final(target) {
                out.insert(beneath.to_vec());
            }
        }
        for call in network.calls(top).iter() {
            if network.stays(call.to) {
                step(network, &[&[call.start, call.to][..], beneath].concat(), class, out);
            }
            if network.is_final(call.to) {
                step(network, &[&[call.start][..], beneath].concat(), class, out);
            }
        }
    }

    /// The stack with what its top passes on to in its place, as sets keep it.
    fn entered(network: &Network, stack: Stack) -> Vec<Stack> {
        let Some(call) = stack.first().and_then(|&top| network.passes_on(top)) else {
            return vec![stack];
        };
        let mut out = Vec::new();
        if network.stays(call.to) {
            out.push([&[call.start, call.to][..], &stack[1..]].concat());
        }
        if network.is_final(call.to) {
            out.push([&[call.start][..], &stack[1..]].concat());
        }
        out
    }

    #[test]
    fn a_step_is_what_each_path_of_calls_says() {
        let texts = [
            "root ::= root \"a\" root | \"b\" | \"(\" root \")\"",
            "root ::= x y | y x \"a\"\nx ::= \"a\" x \"b\"? | \"a\"\ny ::= x \"b\" | \"a\" y",
            "root ::= (\"a\" one)? (\"b\" two)? (\"a\" root \"b\")?\none ::= \"a\" one \"a\" | \"b\"\n\
             two ::= one two \"b\" | \"a\"",
            "root ::= x{2,70} \"b\" | y\nx ::= \"a\" | y{0,80} \"b\"\ny ::= \"(\" root \")\" | \"a\"",
            "root ::= \"\\\"\" text | \"{\" root \"}\" | name text\ntext ::= [^\"]* \"\\\"\"\n\
             name ::= \"a\" | \"ab\" name",
            "root ::= e e e e e e e e e e e e \"b\"\ne ::= \"a\" | \"ab\" | \"\"",
        ];
        for text in texts {
            let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
            for (inline_budget, counters, share_wide) in
                [(0, false, None), (20, false, None), (0, true, Some(80)), (20, true, Some(80))]
            {
                let options = NetworkOptions {
                    inline_budget,
                    counters,
                    share_wide,
                    ..NetworkOptions::default()
                };
                let network = Network::new(&grammar, &options).expect("network");
                let mut stepper = Stepper::new(&network);
                stepper.narrowed = None; // all stacks, those that say nothing beside others too
                // All states at once, as the displacement automaton begins, and one.
                let mut all: Vec<Entry> = (0..network.len() as u32).map(|q| (q, REST)).collect();
                let all = stepper.sets.collect(&mut all, &[]).expect("no budget");
                let start = stepper.sets.add(&[(network.start(), REST)]).expect("no budget");
                let mut sets = vec![all, start];
                let mut compared = 0;
                while let Some(set) = sets.pop() {
                    let stacks = stacks_of(&stepper.sets, set);
                    if stacks.len() > 300 {
                        continue; // too many for the obvious way
                    }
                    for class in 0..network.alphabet().len() as u8 {
                        let mut expected = BTreeSet::new();
                        stacks.iter().for_each(|stack| step(&network, stack, class, &mut expected));
                        let expected: BTreeSet<Stack> = expected
                            .into_iter()
                            .flat_map(|stack| entered(&network, stack))
                            .collect();
                        let swept = stepper.sweep(set, class).expect("no budget");
                        // A sweep remembers where a step would look.
                        stepper.steps = Shards::default();
                        let after = stepper.step(set, class).expect("no budget");
                        assert_eq!(after, swept, "{text}");
                        assert_eq!(stacks_of(&stepper.sets, after), expected, "{text}");
                        compared += 1;
                        if after != NONE && compared < 500 {
                            sets.push(after);
                        }
                    }
                }
                assert!(compared > 20, "{compared} of {text}");
            }
        }
    }

    #[test]
    fn work_grows_with_rules_not_with_paths_of_calls() {
        // Each level calls the next in two ways: 2^30 paths of calls, 30 rules.
        let mut text = String::from("root ::= r0 \"!\"\n");
        for i in 0..30 {
            text += &format!("r{i} ::= r{} \"a\" | r{} \"b\" | \"c\"\n", i + 1, i + 1);
        }
        text += "r30 ::= \"c\"";
        let grammar = parse(&text, "root", &Limits::default()).expect("grammar text");
        let options = NetworkOptions { inline_budget: 0, ..NetworkOptions::default() };
        let network = Network::new(&grammar, &options).expect("network");
        let mut stepper = Stepper::new(&network);
        let start = stepper.sets.add(&[(network.start(), REST)]).expect("no budget");
        let class = network.alphabet().class(b'c');
        assert_ne!(stepper.step(start, class).expect("no budget"), NONE);
        let work = stepper.sets.meter.spent();
        assert!(work < 2_000, "{work}");
    }
}
