//! The subset construction.
//!
//! An edge is labelled by a set of classes: those that it reads or, if it reads the rest, those
//! that it does not read. A set of states is thus looked at for the classes that its edges name,
//! and once for all others.

use super::Bounds;
use super::alphabet::{FinerClasses, REST, ScalarAlphabet};
use super::dfa::Dfa;
use super::table::{DEAD, DfaTable};
use crate::error::Result;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;

/// A nondeterministic automaton over the classes of an alphabet.
pub(super) struct ClassNfa {
    alphabet: ScalarAlphabet,
    is_final: Vec<bool>,
    starts: Vec<u32>,
    /// A state from which every text is accepted.
    universal: Option<u32>,
    edges: Vec<(u32, u32, u32)>,
    epsilons: Vec<(u32, u32)>,
    labels: Vec<Label>,
    classes: Vec<u32>,
}

/// Which classes an edge reads.
#[derive(Clone)]
struct Label {
    /// Whether it reads the rest: then it reads all classes but those that it names.
    is_negated: bool,
    /// Where the classes stand that it names, none of which is the rest.
    named: Range<usize>,
}

impl ClassNfa {
    /// No state.
    pub(super) fn new(alphabet: ScalarAlphabet) -> Self {
        Self {
            alphabet,
            is_final: Vec::new(),
            starts: Vec::new(),
            universal: None,
            edges: Vec::new(),
            epsilons: Vec::new(),
            labels: Vec::new(),
            classes: Vec::new(),
        }
    }

    pub(super) fn add_state(&mut self, is_final: bool) -> u32 {
        self.is_final.push(is_final);
        self.is_final.len() as u32 - 1
    }

    pub(super) fn num_states(&self) -> u32 {
        self.is_final.len() as u32
    }

    pub(super) fn add_start(&mut self, state: u32) {
        self.starts.push(state);
    }

    /// Says that every text is accepted from a state: nothing else matters beside it.
    pub(super) fn set_universal(&mut self, state: u32) {
        self.universal = Some(state);
    }

    pub(super) fn add_edge(&mut self, from: u32, label: u32, to: u32) {
        self.edges.push((from, label, to));
    }

    pub(super) fn add_epsilon(&mut self, from: u32, to: u32) {
        self.epsilons.push((from, to));
    }

    /// A label that reads these classes, which come in order.
    pub(super) fn add_label(&mut self, classes: &[u32], bounds: &Bounds<'_>) -> Result<u32> {
        if classes.first() != Some(&REST) {
            return Ok(self.push_label(false, classes.iter().copied()));
        }
        bounds.budget.spend(self.alphabet.len() as usize)?;
        let mut read = classes.iter().copied().peekable();
        let named = (0..self.alphabet.len()).filter(|class| read.next_if_eq(class).is_none());
        Ok(self.push_label(true, named.collect::<Vec<_>>()))
    }

    fn push_label(&mut self, is_negated: bool, named: impl IntoIterator<Item = u32>) -> u32 {
        let start = self.classes.len();
        self.classes.extend(named);
        self.labels.push(Label { is_negated, named: start..self.classes.len() });
        self.labels.len() as u32 - 1
    }

    /// Labels for the edges of an automaton whose classes fall into `pieces`: for each state its
    /// edges.
    pub(super) fn add_labels(
        &mut self,
        dfa: &Dfa,
        pieces: &FinerClasses,
        bounds: &Bounds<'_>,
    ) -> Result<Vec<Vec<(u32, u32)>>> {
        let mut of_class = vec![DEAD; dfa.alphabet().len() as usize];
        let mut out = Vec::with_capacity(dfa.num_states());
        for q in 0..dfa.len() {
            let mut edges = Vec::new();
            let row = dfa.row(q);
            bounds.budget.spend(1 + row.len())?;
            if dfa.default(q) != DEAD {
                // The pieces of the rest are read all, those of other classes where not named.
                let named = row.iter().flat_map(|&(class, _)| pieces.of(class));
                let named: Vec<u32> = named.copied().collect();
                bounds.budget.spend(named.len())?;
                edges.push((self.push_label(true, named), dfa.default(q)));
            }
            for &(class, to) in row.iter().filter(|edge| edge.1 != DEAD) {
                if of_class[class as usize] == DEAD {
                    let named = pieces.of(class);
                    bounds.budget.spend(named.len())?;
                    of_class[class as usize] = self.push_label(false, named.iter().copied());
                }
                edges.push((of_class[class as usize], to));
            }
            out.push(edges);
        }
        Ok(out)
    }

    /// The deterministic automaton of the sets of states that the starts reach.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub(super) fn determinize(mut self, bounds: &Bounds<'_>) -> Result<DfaTable> {
        let states = self.is_final.len();
        self.edges.sort_unstable();
        self.edges.dedup();
        self.epsilons.sort_unstable();
        let edges_of = ranges_by(states, self.edges.iter().map(|edge| edge.0));
        let mut closure = Closure {
            epsilons: &self.epsilons,
            of: ranges_by(states, self.epsilons.iter().map(|edge| edge.0)),
            seen: vec![0; states],
            round: 0,
            stack: Vec::new(),
        };
        let is_kept =
            |q: u32| self.is_final[q as usize] || edges_of[q as usize] < edges_of[q as usize + 1];
        let mut subsets = SubsetTable::default();
        let start = self.telling(closure.of(&self.starts, is_kept, bounds)?);
        subsets.number(start, bounds)?;

        let mut table = DfaTable::new(self.alphabet.clone());
        let mut step = SubsetStep::new(self.alphabet.len());
        let mut known: FxHashMap<Box<[u32]>, u32> = FxHashMap::default();
        let mut next = 0;
        let mut row = Vec::new();
        while next < subsets.len() {
            let subset = subsets.get(next);
            next += 1;
            let is_final = subset.iter().any(|&q| self.is_final[q as usize]);
            step.clear();
            for &q in subset.iter() {
                let edges = edges_of[q as usize] as usize..edges_of[q as usize + 1] as usize;
                for &(_, label, to) in &self.edges[edges] {
                    let label = &self.labels[label as usize];
                    let named = &self.classes[label.named.clone()];
                    bounds.budget.spend(1 + named.len())?;
                    step.add(label.is_negated, named, to);
                }
            }
            let mut number = |targets: &mut Vec<u32>| -> Result<u32> {
                targets.sort_unstable();
                targets.dedup();
                bounds.budget.spend(1 + targets.len())?;
                if targets.is_empty() {
                    return Ok(DEAD);
                }
                if let Some(&state) = known.get(targets.as_slice()) {
                    return Ok(state);
                }
                let reached = self.telling(closure.of(targets, is_kept, bounds)?);
                let state = subsets.number(reached, bounds)?;
                known.insert(targets.as_slice().into(), state);
                Ok(state)
            };
            let mut targets = Vec::new();
            targets.extend_from_slice(&step.of_others);
            let default = number(&mut targets)?;
            row.clear();
            for class in step.classes() {
                bounds.budget.spend(step.of_others.len())?;
                step.targets(class, &mut targets);
                row.push((class, number(&mut targets)?));
            }
            table.push_row(is_final, default, row.iter().copied());
        }
        Ok(table)
    }

    /// The states of a set, in order, that matter for what is accepted.
    fn telling(&self, states: Vec<u32>) -> Vec<u32> {
        match self.universal {
            Some(all) if states.binary_search(&all).is_ok() => vec![all],
            _ => states,
        }
    }
}

/// Where the entries of each number begin in a list sorted by number.
fn ranges_by(numbers: usize, list: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut starts = vec![0; numbers + 1];
    list.for_each(|number| starts[number as usize + 1] += 1);
    for number in 0..numbers {
        starts[number + 1] += starts[number];
    }
    starts
}

/// What states reach by reading nothing.
struct Closure<'a> {
    epsilons: &'a [(u32, u32)],
    of: Vec<u32>,
    seen: Vec<u32>,
    round: u32,
    stack: Vec<u32>,
}

impl Closure<'_> {
    /// The states kept of those that the given ones reach, in order.
    fn of(
        &mut self,
        states: &[u32],
        is_kept: impl Fn(u32) -> bool,
        bounds: &Bounds<'_>,
    ) -> Result<Vec<u32>> {
        self.round += 1;
        let mut out = Vec::with_capacity(states.len());
        let mut reach = |q: u32, stack: &mut Vec<u32>| {
            if std::mem::replace(&mut self.seen[q as usize], self.round) != self.round {
                stack.push(q);
            }
        };
        states.iter().for_each(|&q| reach(q, &mut self.stack));
        while let Some(q) = self.stack.pop() {
            if is_kept(q) {
                out.push(q);
            }
            let edges = self.of[q as usize] as usize..self.of[q as usize + 1] as usize;
            bounds.budget.spend(1 + edges.len())?;
            for &(_, to) in &self.epsilons[edges] {
                reach(to, &mut self.stack);
            }
        }
        out.sort_unstable();
        Ok(out)
    }
}

/// Sets of states, numbered in the order in which they are found.
#[derive(Default)]
struct SubsetTable {
    number_of: FxHashMap<Rc<[u32]>, u32>,
    list: Vec<Rc<[u32]>>,
}

impl SubsetTable {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn get(&self, number: usize) -> Rc<[u32]> {
        self.list[number].clone()
    }

    /// The number of a set; the empty one is dead, but for the start.
    fn number(&mut self, set: Vec<u32>, bounds: &Bounds<'_>) -> Result<u32> {
        if set.is_empty() && !self.list.is_empty() {
            return Ok(DEAD);
        }
        if let Some(&number) = self.number_of.get(set.as_slice()) {
            return Ok(number);
        }
        let number = self.list.len() as u32;
        bounds.check(self.list.len() + 1)?;
        bounds.budget.spend(4 + set.len())?;
        let set: Rc<[u32]> = set.into();
        self.list.push(set.clone());
        self.number_of.insert(set, number);
        Ok(number)
    }
}

/// Where the edges of a set of states lead, class by class.
struct SubsetStep {
    /// Where the classes lead that no edge names.
    of_others: Vec<u32>,
    /// For each class where the edges lead that read it because they name it.
    reading: Vec<Vec<u32>>,
    /// For each class which of `of_others`, in order, do not read it because they name it.
    skipping: Vec<Vec<u32>>,
    named: Vec<u32>,
    is_named: Vec<bool>,
}

impl SubsetStep {
    fn new(classes: u32) -> Self {
        let classes = classes as usize;
        Self {
            of_others: Vec::new(),
            reading: vec![Vec::new(); classes],
            skipping: vec![Vec::new(); classes],
            named: Vec::new(),
            is_named: vec![false; classes],
        }
    }

    fn clear(&mut self) {
        self.of_others.clear();
        for class in self.named.drain(..) {
            self.reading[class as usize].clear();
            self.skipping[class as usize].clear();
            self.is_named[class as usize] = false;
        }
    }

    fn add(&mut self, is_negated: bool, named: &[u32], to: u32) {
        for &class in named {
            if !std::mem::replace(&mut self.is_named[class as usize], true) {
                self.named.push(class);
            }
            if is_negated {
                self.skipping[class as usize].push(self.of_others.len() as u32);
            } else {
                self.reading[class as usize].push(to);
            }
        }
        if is_negated {
            self.of_others.push(to);
        }
    }

    /// The classes that edges name.
    fn classes(&self) -> Vec<u32> {
        let mut classes = self.named.clone();
        classes.sort_unstable();
        classes
    }

    /// Where a named class leads.
    fn targets(&self, class: u32, out: &mut Vec<u32>) {
        out.clear();
        out.extend_from_slice(&self.reading[class as usize]);
        let mut skipped = self.skipping[class as usize].iter().copied().peekable();
        for (place, &to) in (0..).zip(&self.of_others) {
            if skipped.next_if_eq(&place).is_none() {
                out.push(to);
            }
        }
    }
}
