//! What of a network does not depend on the text: who calls whom.

use super::bits::{SparseWord, WordMarks, insert, insert_last};
use crate::budget::{Halt, Meter};
use crate::graph;
use crate::network::{Call, Network};
use std::ops::Deref;
use std::sync::OnceLock;

/// Some states that call a rule: a word of a bit set over states.
#[derive(Clone, Copy)]
pub(super) struct Callers {
    /// The place of the word.
    pub(super) at: u32,
    /// Where in [`Tables::returns`] the call by the first of them returns to; the others follow.
    pub(super) first: u32,
    pub(super) mask: u64,
}

/// A call by the start of a rule.
#[derive(Clone, Copy)]
pub(super) struct StartCall {
    /// The rule that calls.
    pub(super) rule: u32,
    /// Where the call returns to.
    pub(super) to: u32,
    /// Whether that stays.
    pub(super) stays: bool,
}

/// What a state is.
pub(super) const STAYS: u8 = 1;
pub(super) const FINAL: u8 = 2;

/// The network as a chart reads it: left-recursive rules as they were written, which a chart goes
/// through as it goes through any others, and who calls each rule.
pub(crate) struct Tables<N> {
    pub(crate) network: N,
    /// For each state of the tables whether it stays, and whether it is final.
    kinds: Vec<u8>,
    /// For each rule who calls it, in the order of the states. A state that calls it twice is there
    /// twice.
    callers: Vec<Vec<Callers>>,
    returns: Vec<u32>,
    /// For each rule whose start calls it.
    start_calls: Vec<Vec<StartCall>>,
    /// For each rule those that are complete with it, by calls of calls too, as a bit set.
    units: Vec<Vec<SparseWord>>,
    /// For each state the rules that it can begin, by calls of calls too, as a bit set.
    begun: Vec<Vec<SparseWord>>,
    /// For each rule its start, of what counts too.
    starts: Vec<u32>,
    /// For each byte class the rules whose start reads it.
    readers: Vec<Vec<SparseWord>>,
    /// For each byte class the states of the tables that read it.
    reading: Vec<Vec<SparseWord>>,
    /// The calls of each state of the tables, made when first needed.
    outs: OnceLock<Outs>,
}

/// A call as a fan needs it.
#[derive(Clone, Copy)]
pub(super) struct Out {
    /// The rule that is called, as a chart reads it.
    pub(super) called: u32,
    /// Where the call returns to, if that stays.
    pub(super) to: Option<u32>,
    /// The rule that is complete there.
    pub(super) complete: Option<u32>,
}

/// Calls of states, one after the other.
pub(super) struct Outs {
    starts: Vec<u32>,
    outs: Vec<Out>,
}

impl Outs {
    /// Those of one state.
    #[inline]
    pub(super) fn of(&self, state: u32) -> &[Out] {
        let (from, to) = (self.starts[state as usize], self.starts[state as usize + 1]);
        &self.outs[from as usize..to as usize]
    }
}

/// Counts what tables take while they are made: a unit of work for some words or calls, and bytes.
struct Count<'m> {
    meter: &'m mut Meter,
    /// Words and calls not yet counted as work.
    steps: u64,
    bytes: usize,
    max_bytes: usize,
}

/// Words and calls that count as one unit of work.
const STEPS_OF_WORK: u64 = 16;

impl Count<'_> {
    /// So many words or calls are looked at.
    #[inline]
    fn look(&mut self, steps: usize) -> Result<(), Halt> {
        self.steps += steps as u64;
        if self.steps < 1 << 12 { Ok(()) } else { self.settle() }
    }

    /// So many values of a type are kept.
    #[inline]
    fn keep<T>(&mut self, count: usize) -> Result<(), Halt> {
        self.bytes += count * size_of::<T>();
        self.look(count)
    }

    fn settle(&mut self) -> Result<(), Halt> {
        self.meter.spend(std::mem::take(&mut self.steps) / STEPS_OF_WORK)?;
        if self.bytes > self.max_bytes { Err(Halt::Bytes) } else { Ok(()) }
    }
}

impl<N: Deref<Target = Network>> Tables<N> {
    /// The tables of a network, of so many bytes at most.
    ///
    /// # Errors
    /// Those of the meter, and [`Halt::Bytes`].
    pub(crate) fn new(network: N, meter: &mut Meter, max_bytes: usize) -> Result<Self, Halt> {
        let count = &mut Count { meter, steps: 0, bytes: 0, max_bytes };
        let mut starts = network.rule_starts().to_vec();
        let rules = starts.partition_point(|&start| start < network.read_by_charts());
        starts.truncate(rules);
        let states = 0..network.read_by_charts();
        let calls = calls_by_rule(&network, &mut starts, count)?;
        let mut returns = Vec::new();
        let mut callers = Vec::with_capacity(rules);
        for calls in calls {
            count.look(calls.len())?;
            let words = by_words(calls, &mut returns);
            count.keep::<Callers>(words.len())?;
            callers.push(words);
        }
        let mut start_calls = vec![Vec::new(); rules];
        let mut readers = vec![Vec::new(); network.alphabet().len()];
        for (&start, rule) in starts.iter().zip(0..) {
            for call in network.calls(start).iter() {
                let called = read_rule(&network, call) as usize;
                let stays = network.stays(call.to);
                start_calls[called].push(StartCall { rule, to: call.to, stays });
            }
            for (class, _) in network.edges(start) {
                insert(&mut readers[class as usize], rule);
            }
            count.keep::<StartCall>(1 + network.calls(start).len())?;
        }
        let mut reading = vec![Vec::new(); network.alphabet().len()];
        for state in states.clone() {
            for (class, _) in network.edges(state) {
                insert_last(&mut reading[class as usize], state);
                count.look(1)?;
            }
        }
        let complete = |rule: usize| {
            let complete = |call: &&StartCall| network.is_final(call.to);
            start_calls[rule].iter().filter(complete).map(|call| call.rule as usize).collect()
        };
        let units = closures(rules, complete, count)?;
        let begun = begun_by_states(&network, &starts, count)?;
        let kinds = states.map(|state| kind(&network, state)).collect();
        count.settle()?;
        Ok(Self {
            network,
            kinds,
            callers,
            returns,
            start_calls,
            units,
            begun,
            starts,
            readers,
            reading,
            outs: OnceLock::new(),
        })
    }

    /// The numbers of states of the tables, and of rules, are below these.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.kinds.len(), self.starts.len())
    }

    /// Whether a state stays, and whether it is final.
    #[inline]
    pub(super) fn kind(&self, state: u32) -> u8 {
        match self.kinds.get(state as usize) {
            Some(&kind) => kind,
            None => kind(&self.network, state),
        }
    }

    /// The rule that a call is of, as a chart reads it.
    pub(super) fn called(&self, call: &Call) -> u32 {
        read_rule(&self.network, call)
    }

    /// The states that call a rule.
    #[inline]
    pub(super) fn callers(&self, rule: u32) -> &[Callers] {
        &self.callers[rule as usize]
    }

    /// Where calls return to, as [`Callers`] say.
    #[inline]
    pub(super) fn returns(&self) -> &[u32] {
        &self.returns
    }

    /// The calls of a rule by the starts of rules.
    #[inline]
    pub(super) fn start_calls(&self, rule: u32) -> &[StartCall] {
        &self.start_calls[rule as usize]
    }

    /// Gives the rules that a state can begin, as words of a bit set; a word may come again.
    #[inline]
    pub(super) fn begun(&self, state: u32, each: &mut impl FnMut(u32, u64)) {
        match self.begun.get(state as usize) {
            Some(words) => words.iter().for_each(|&(at, word)| each(at, word)),
            None => self.begun_by_counting(state, each),
        }
    }

    fn begun_by_counting(&self, state: u32, each: &mut impl FnMut(u32, u64)) {
        for call in self.network.calls(state).iter() {
            let rule = self.called(call);
            each(rule >> 6, 1 << (rule & 63));
            let start = self.starts[rule as usize];
            match self.begun.get(start as usize) {
                Some(words) => words.iter().for_each(|&(at, word)| each(at, word)),
                // A pass that begins with a counted repetition again: deeper by one.
                None => self.begun_by_counting(start, each),
            }
        }
    }

    /// The rules whose start reads a class.
    #[inline]
    pub(super) fn readers(&self, class: u8) -> &[SparseWord] {
        &self.readers[class as usize]
    }

    /// The states of the tables that read a class.
    #[inline]
    pub(super) fn reading(&self, class: u8) -> &[SparseWord] {
        &self.reading[class as usize]
    }

    /// The calls of the states of the tables, made when first needed.
    ///
    /// # Errors
    /// Those of the meter; nothing is kept then.
    pub(super) fn outs(&self, meter: &mut Meter) -> Result<&Outs, Halt> {
        match self.outs.get() {
            Some(known) => Ok(known),
            None => {
                let made = self.make_outs(meter)?;
                Ok(self.outs.get_or_init(|| made))
            }
        }
    }

    fn make_outs(&self, meter: &mut Meter) -> Result<Outs, Halt> {
        let mut all = Outs { starts: vec![0], outs: Vec::new() };
        for state in 0..self.kinds.len() as u32 {
            let calls = self.network.calls(state);
            meter.spend(1 + calls.len() as u64 / STEPS_OF_WORK)?;
            for call in calls.iter() {
                let kind = self.kind(call.to);
                all.outs.push(Out {
                    called: self.called(call),
                    to: (kind & STAYS != 0).then_some(call.to),
                    complete: (kind & FINAL != 0).then(|| self.network.rule_of(call.to)),
                });
            }
            all.starts.push(all.outs.len() as u32);
        }
        Ok(all)
    }

    /// Where the start of a rule goes over a letter.
    pub(super) fn read_at_start(&self, rule: u32, class: u8) -> impl Iterator<Item = u32> {
        read_at(&self.network, self.starts[rule as usize], class)
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        fn all<T>(lists: &[Vec<T>]) -> usize {
            lists.iter().map(|list| list.capacity() * size_of::<T>() + 24).sum()
        }
        all(&self.callers)
            + all(&self.start_calls)
            + all(&self.units)
            + all(&self.begun)
            + all(&self.readers)
            + all(&self.reading)
            + self
                .outs
                .get()
                .map_or(0, |all| all.starts.capacity() * 4 + all.outs.capacity() * size_of::<Out>())
            + self.kinds.capacity()
            + (self.returns.capacity() + self.starts.capacity()) * 4
    }
}

/// Where a state goes over a letter.
#[inline]
pub(super) fn read_at(network: &Network, state: u32, class: u8) -> impl Iterator<Item = u32> {
    network.targets(state, class)
}

fn read_rule(network: &Network, call: &Call) -> u32 {
    network.as_written(network.rule_of(call.start))
}

fn kind(network: &Network, state: u32) -> u8 {
    let stays = if network.stays(state) { STAYS } else { 0 };
    stays | if network.is_final(state) { FINAL } else { 0 }
}

/// For each rule the calls of it: the states that call, in order, each with where the call returns to. The
/// starts of rules that count become those that are called.
fn calls_by_rule(
    network: &Network,
    starts: &mut [u32],
    count: &mut Count<'_>,
) -> Result<Vec<Vec<(u32, u32)>>, Halt> {
    let mut calls: Vec<Vec<(u32, u32)>> = vec![Vec::new(); starts.len()];
    for state in 0..network.read_by_charts() {
        for call in network.calls(state).iter() {
            // A rule that counts begins elsewhere than its tables.
            if let Some(start) = starts.get_mut(network.rule_of(call.start) as usize) {
                *start = call.start;
            }
            calls[read_rule(network, call) as usize].push((state, call.to));
            count.keep::<(u32, u32)>(1)?;
        }
        count.look(1)?;
    }
    Ok(calls)
}

/// For each state the rules that it can begin, by calls of calls too.
fn begun_by_states(
    network: &Network,
    starts: &[u32],
    count: &mut Count<'_>,
) -> Result<Vec<Vec<SparseWord>>, Halt> {
    let called = |state: u32| {
        let calls = network.calls(state);
        let mut called: Vec<usize> =
            calls.iter().map(|call| read_rule(network, call) as usize).collect();
        called.sort_unstable();
        called.dedup();
        called
    };
    let leading = closures(starts.len(), |rule| called(starts[rule]), count)?;
    let mut marks = WordMarks::new(starts.len());
    let mut begun = Vec::with_capacity(network.read_by_charts() as usize);
    for state in 0..network.read_by_charts() {
        for rule in called(state) {
            count.look(leading[rule].len())?;
            leading[rule].iter().for_each(|&(at, word)| marks.add(at, word));
        }
        let words = drained(&mut marks);
        count.keep::<SparseWord>(words.len() + 2)?;
        begun.push(words);
    }
    Ok(begun)
}

/// Calls of one rule, in the order of the states that call, as words of bit sets. Those of one
/// state that return to different states come into different words.
fn by_words(calls: Vec<(u32, u32)>, returns: &mut Vec<u32>) -> Vec<Callers> {
    // The calls of a state stand side by side: the first of each state makes one layer, the second
    // the next, and so on.
    let mut layers: Vec<Vec<(u32, u32)>> = Vec::new();
    let mut before = None;
    let mut layer = 0;
    for (state, to) in calls {
        layer = if before.replace(state) == Some(state) { layer + 1 } else { 0 };
        if layers.len() == layer {
            layers.push(Vec::new());
        }
        layers[layer].push((state, to));
    }
    let mut out: Vec<Callers> = Vec::new();
    for calls in layers {
        let layer = out.len();
        for (state, to) in calls {
            let mask = 1 << (state & 63);
            match out[layer..].last_mut() {
                Some(last) if last.at == state >> 6 => last.mask |= mask,
                _ => out.push(Callers { at: state >> 6, first: returns.len() as u32, mask }),
            }
            returns.push(to);
        }
    }
    out.sort_by_key(|callers| callers.at);
    out
}

/// For each of some numbers all that it leads to, itself too.
fn closures(
    size: usize,
    direct: impl Fn(usize) -> Vec<usize>,
    count: &mut Count<'_>,
) -> Result<Vec<Vec<SparseWord>>, Halt> {
    let mut out: Vec<Vec<SparseWord>> = vec![Vec::new(); size];
    let mut marks = WordMarks::new(size);
    for component in graph::components(size, &direct) {
        for &number in &component {
            marks.add(number as u32 >> 6, 1 << (number & 63));
            // Those of the component itself have none yet.
            for next in direct(number) {
                count.look(1 + out[next].len())?;
                out[next].iter().for_each(|&(at, word)| marks.add(at, word));
            }
        }
        let words = drained(&mut marks);
        count.keep::<SparseWord>(component.len() * (words.len() + 2))?;
        for &number in &component[1..] {
            out[number].clone_from(&words);
        }
        out[component[0]] = words;
    }
    Ok(out)
}

fn drained(marks: &mut WordMarks) -> Vec<SparseWord> {
    let mut words = Vec::new();
    marks.drain(|at, word| words.push((at, word)));
    words
}

impl<N> Tables<N> {
    /// Words of the rules that are complete with a rule.
    #[inline]
    pub(super) fn num_units(&self, rule: u32) -> usize {
        self.units[rule as usize].len()
    }

    /// Those of `rules` that are complete with a rule that is complete, as words of a bit set.
    #[inline]
    pub(super) fn units_among(
        &self,
        rule: u32,
        rules: &[SparseWord],
        mut each: impl FnMut(u32, u64),
    ) {
        for &(at, mask) in &self.units[rule as usize] {
            let found = rules.binary_search_by_key(&at, |word| word.0);
            each(at, found.map_or(0, |found| rules[found].1) & mask);
        }
    }
}
