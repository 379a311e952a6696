//! Linking: the network of a part and of all that it calls, each once.
//!
//! Nothing is worked out here that depends on one part alone: states get other numbers, byte classes
//! are split where another part tells bytes apart, and what can be read first is put together. So it
//! costs what copying the tables costs.

use super::counters::Counters;
use super::part::Part;
use super::rules::{check_edges, check_states};
use super::{Call, HOLE, Network, insert};
use crate::automata::alphabet::Alphabet;
use crate::error::{Error, Position, Result};
use crate::limits::Limits;
use crate::work::Work;
use rustc_hash::FxHashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, OnceLock};

/// States with more edges than this are written class by class.
const MANY: usize = 12;
/// No state.
const NONE: u32 = u32::MAX;

/// A part with its place in the network.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) part: Arc<Part>,
    /// The numbers of its children among all parts.
    children: Vec<u32>,
    /// Its first state and rule, of those that charts read and of the others.
    states: [u32; 2],
    rules: [u32; 2],
    /// For each of its counters the number of the first state, here and in the network.
    counters: Vec<(u32, u32)>,
}

impl Placed {
    /// How many states and rules charts read.
    fn read(&self) -> (usize, usize) {
        let tables = &self.part.tables;
        let read = tables.read as usize;
        (read, tables.rule_starts.partition_point(|&start| (start as usize) < read))
    }

    /// The number in the network of a state of its own.
    fn moved(&self, state: u32) -> u32 {
        let tables = &self.part.tables;
        if state < tables.read {
            return self.states[0] + state;
        }
        if tables.is_listed(state) {
            return self.states[1] + (state - tables.read);
        }
        let place = self.counters.partition_point(|counter| counter.0 <= state) - 1;
        let (here, there) = self.counters[place];
        there + (state - here)
    }

    fn moved_rule(&self, rule: u32, read_rules: u32) -> u32 {
        if rule < read_rules { self.rules[0] + rule } else { self.rules[1] + (rule - read_rules) }
    }

    /// The number in its part of a state of the network that counts, where it is one of its own.
    pub(super) fn own_counter(&self, state: u32) -> Option<u32> {
        let place = self.counters.partition_point(|counter| counter.1 <= state).checked_sub(1)?;
        let (here, there) = self.counters[place];
        let end = self.counters.get(place + 1).map_or(self.part.tables.counters.end(), |c| c.0);
        let own = here + (state - there);
        (own < end).then_some(own)
    }

    /// The number in its part of a listed state of the network, where it is one of its own.
    pub(super) fn own(&self, state: u32) -> Option<u32> {
        let (read, _) = self.read();
        let unread = self.part.tables.len() - read;
        let within =
            |from: u32, count: usize| state.checked_sub(from).filter(|&s| (s as usize) < count);
        let behind = |state: u32| state + read as u32;
        within(self.states[0], read).or_else(|| within(self.states[1], unread).map(behind))
    }
}

/// A part and all that it is made of, each once, children first.
pub(super) fn unique(top: &Arc<Part>) -> (Vec<Arc<Part>>, Vec<Vec<u32>>) {
    /// Parts that say the same are one.
    #[derive(PartialEq, Eq, Hash)]
    enum Name {
        Content([u8; 32]),
        Place(*const Part),
    }
    let name = |part: &Arc<Part>| match part.key {
        Some(key) => Name::Content(key),
        None => Name::Place(Arc::as_ptr(part)),
    };
    let mut numbers: FxHashMap<Name, u32> = FxHashMap::default();
    let (mut parts, mut children): (Vec<Arc<Part>>, Vec<Vec<u32>>) = (Vec::new(), Vec::new());
    // Each with how many of its children are done.
    let mut work: Vec<(&Arc<Part>, usize)> = vec![(top, 0)];
    while let Some((part, done)) = work.pop() {
        let missing =
            part.children[done..].iter().position(|child| !numbers.contains_key(&name(child)));
        if let Some(place) = missing {
            work.push((part, done + place + 1));
            work.push((&part.children[done + place], 0));
            continue;
        }
        let own: Vec<u32> = part.children.iter().map(|child| numbers[&name(child)]).collect();
        if let Entry::Vacant(free) = numbers.entry(name(part)) {
            free.insert(parts.len() as u32);
            parts.push(part.clone());
            children.push(own);
        }
    }
    (parts, children)
}

/// The number of states of a part with all that it is made of.
pub(super) fn linked_states(top: &Arc<Part>) -> usize {
    unique(top).0.iter().map(|part| part.tables.len()).sum()
}

pub(super) fn link(top: &Arc<Part>, limits: &Limits, work: &Work<'_>) -> Result<Network> {
    let (parts, children) = unique(top);
    let states: usize = parts.iter().map(|part| part.tables.len()).sum();
    check_states(states, limits)?;
    let placed = place(parts, children);
    let mut link = Link {
        alphabet: joint(&placed)?,
        out: empty(top, states),
        ways: FxHashMap::default(),
        targets: Vec::new(),
    };
    let mut counters = Counters::after(states);
    let placed = link.place_counters(placed, &mut counters)?;
    for is_unread in [false, true] {
        for place in 0..placed.len() {
            link.copy(&placed, place, is_unread, limits, work)?;
        }
        if !is_unread {
            link.out.read = link.out.finals.len() as u32;
        }
    }
    let mut out = link.out;
    out.alphabet = link.alphabet;
    out.counters = counters;
    let top = &placed[placed.len() - 1];
    out.start = top.moved(top.part.tables.start);
    let mut first = std::mem::take(&mut out.first);
    for placed in &placed {
        let (_, read_rules) = placed.read();
        for &rule in &placed.part.callees_first {
            let rule = placed.moved_rule(rule, read_rules as u32);
            out.add_callees(&mut first, out.rule_starts[rule as usize]);
        }
    }
    for state in 0..out.len() as u32 {
        out.add_callees(&mut first, state);
    }
    out.first = first;
    out.linked = Some(placed.into());
    Ok(out)
}

/// Tables without states, with room for so many.
fn empty(top: &Arc<Part>, states: usize) -> Network {
    let edge_starts = || {
        let mut starts = Vec::with_capacity(states + 1);
        starts.push(0);
        starts
    };
    Network {
        alphabet: top.tables.alphabet.clone(),
        start: 0,
        accepts_empty: top.tables.accepts_empty,
        rule_of: Vec::with_capacity(states),
        rule_starts: Vec::new(),
        origins: Vec::new(),
        written: Vec::new(),
        read: 0,
        finals: Vec::with_capacity(states),
        edge_starts: edge_starts(),
        edges: Vec::new(),
        call_starts: edge_starts(),
        calls: Vec::new(),
        first: Vec::with_capacity(states),
        cut: Vec::with_capacity(states),
        delegated: Vec::with_capacity(states),
        counters: Counters::default(),
        linked: None,
        identities: OnceLock::new(),
    }
}

/// Parts one after the other: first all that charts read, then the rest.
fn place(parts: Vec<Arc<Part>>, children: Vec<Vec<u32>>) -> Vec<Placed> {
    let placed = parts.into_iter().zip(children).map(|(part, children)| Placed {
        part,
        children,
        states: [0; 2],
        rules: [0; 2],
        counters: Vec::new(),
    });
    let mut placed: Vec<Placed> = placed.collect();
    let (mut state, mut rule) = (0, 0);
    for half in 0..2 {
        for one in &mut placed {
            let (read, read_rules) = one.read();
            one.states[half] = state;
            one.rules[half] = rule;
            let tables = &one.part.tables;
            let unread = (tables.len() - read, tables.num_rules() - read_rules);
            let (states, rules) = if half == 0 { (read, read_rules) } else { unread };
            state += states as u32;
            rule += rules as u32;
        }
    }
    placed
}

/// The byte classes that all parts together tell apart.
fn joint(placed: &[Placed]) -> Result<Alphabet> {
    let mut out = placed[placed.len() - 1].part.tables.alphabet.clone();
    for one in placed {
        let alphabet = &one.part.tables.alphabet;
        if out.refines(alphabet) {
            continue;
        }
        out = out.refined(alphabet).ok_or_else(|| Error::Unsupported {
            construct: "Token".into(),
            message: "the rules tell all 256 bytes apart and take tokens whole as well; \
                      write fewer single bytes"
                .into(),
            position: Position::default(),
        })?;
    }
    Ok(out)
}

/// How the classes of a part are spelled in the network.
struct Way {
    /// For each class of the part those of the network.
    classes: Vec<Vec<u8>>,
    /// For each class of the network that of the part.
    here: Vec<Option<u8>>,
}

struct Link {
    alphabet: Alphabet,
    out: Network,
    ways: FxHashMap<Alphabet, Arc<Way>>,
    /// Where each class of a part leads, while a state is written.
    targets: Vec<u32>,
}

impl Link {
    fn way(&mut self, alphabet: &Alphabet) -> Arc<Way> {
        if let Some(way) = self.ways.get(alphabet) {
            return way.clone();
        }
        let mut here = vec![None; self.alphabet.len()];
        for byte in 0..=255 {
            here[self.alphabet.class(byte) as usize] = Some(alphabet.class(byte));
        }
        if let Some(escape) = self.alphabet.escape() {
            here[escape as usize] = alphabet.escape();
        }
        let mut classes = vec![Vec::new(); alphabet.len()];
        for (class, here) in (0..=255u8).zip(&here) {
            if let Some(here) = here {
                classes[*here as usize].push(class);
            }
        }
        let way = Arc::new(Way { classes, here });
        self.ways.insert(alphabet.clone(), way.clone());
        way
    }

    /// Numbers the states that count behind all others.
    fn place_counters(
        &self,
        mut placed: Vec<Placed>,
        counters: &mut Counters,
    ) -> Result<Vec<Placed>> {
        for place in 0..placed.len() {
            let tables = &placed[place].part.tables;
            let (_, read_rules) = placed[place].read();
            let mut moved = Vec::new();
            for (counter, first, body, rule) in tables.counters.placed() {
                let body = start_of(&placed, place, body);
                let rule = placed[place].moved_rule(rule, read_rules as u32);
                let there = counters.place(counter, body, rule);
                moved.push((first, there.ok_or_else(super::assemble::too_many_passes)?));
            }
            placed[place].counters = moved;
        }
        Ok(placed)
    }

    /// Copies the states of a part that charts read, or the others.
    fn copy(
        &mut self,
        placed: &[Placed],
        place: usize,
        is_unread: bool,
        limits: &Limits,
        work: &Work<'_>,
    ) -> Result<()> {
        let this = &placed[place];
        let tables = &this.part.tables;
        let (read, read_rules) = this.read();
        let (states, rules) = match is_unread {
            false => (0..read, 0..read_rules),
            true => (read..tables.len(), read_rules..tables.num_rules()),
        };
        if states.is_empty() {
            return Ok(());
        }
        let way = self.way(&tables.alphabet);
        for rule in rules {
            self.out.rule_starts.push(this.moved(tables.rule_starts[rule]));
            self.out.origins.push(u32::MAX);
            self.out.written.push(this.moved_rule(tables.written[rule], read_rules as u32));
        }
        for state in states.clone() {
            let rule = this.moved_rule(tables.rule_of[state], read_rules as u32);
            let first = self.edges(this, state as u32, &way);
            let out = &mut self.out;
            for call in tables.calls(state as u32).iter() {
                let start = start_of(placed, place, call.start);
                out.calls.push(Call { start, to: this.moved(call.to) });
            }
            out.rule_of.push(rule);
            out.finals.push(tables.finals[state]);
            out.cut.push(tables.cut[state]);
            out.delegated.push(tables.delegated.get(state).copied().unwrap_or(0));
            out.edge_starts.push(out.edges.len() as u32);
            out.call_starts.push(out.calls.len() as u32);
            out.first.push(first);
        }
        check_edges(self.out.edges.len() + self.out.calls.len(), limits)?;
        work.spend(states.len())
    }

    /// Writes the byte edges of a state, sorted by class; returns the classes.
    fn edges(&mut self, this: &Placed, state: u32, way: &Way) -> super::ClassSet {
        let edges = this.part.tables.edges(state);
        let out = &mut self.out.edges;
        let from = out.len();
        let mut first = [0; 4];
        let is_deterministic = edges.windows(2).all(|pair| pair[0].0 != pair[1].0);
        if edges.len() > MANY && is_deterministic {
            self.targets.clear();
            self.targets.resize(way.classes.len(), NONE);
            edges.iter().for_each(|&(class, to)| self.targets[class as usize] = this.moved(to));
            for (class, here) in (0..=255u8).zip(&way.here) {
                let to = here.map_or(NONE, |here| self.targets[here as usize]);
                if to != NONE {
                    out.push((class, to));
                    insert(&mut first, class);
                }
            }
            return first;
        }
        for &(class, to) in edges {
            let to = this.moved(to);
            for &class in &way.classes[class as usize] {
                out.push((class, to));
                insert(&mut first, class);
            }
        }
        if !out[from..].is_sorted() {
            out[from..].sort_unstable();
        }
        first
    }
}

/// Where a call of a part leads.
fn start_of(placed: &[Placed], place: usize, start: u32) -> u32 {
    let this = &placed[place];
    if start < HOLE {
        return this.moved(start);
    }
    let child = &placed[this.children[(start & !HOLE) as usize] as usize];
    child.moved(child.part.tables.start)
}

/// Where states of one network are in another that was linked of the same parts but for those in
/// which free text is read.
pub(crate) struct Moves<'n> {
    from: &'n [Placed],
    to: &'n [Placed],
    /// For each part its place in the other network, and whether it is the same there.
    places: Vec<Option<(usize, bool)>>,
}

impl<'n> Moves<'n> {
    /// Between two networks; `None` where they have nothing to do with each other.
    pub(crate) fn between(from: &'n Network, to: &'n Network) -> Option<Self> {
        let (from, to) = (from.linked.as_deref()?, to.linked.as_deref()?);
        let mut out = Self { from, to, places: vec![None; from.len()] };
        let by_key = to.iter().enumerate().filter_map(|(place, one)| Some((one.part.key?, place)));
        let by_key: FxHashMap<[u8; 32], usize> = by_key.collect();
        for (place, one) in from.iter().enumerate() {
            out.places[place] = one.part.key.and_then(|key| Some((*by_key.get(&key)?, true)));
        }
        // Parts that were made for one network alone are paired from the top down.
        let mut pairs = vec![(from.len() - 1, to.len() - 1)];
        while let Some((old, new)) = pairs.pop() {
            let (old_one, new_one) = (&from[old], &to[new]);
            let is_same = old_one.part.says_the_same(&new_one.part);
            out.places[old] = Some((new, is_same));
            if is_same {
                let children = old_one.children.iter().zip(&new_one.children);
                let own = children.filter(|(child, _)| from[**child as usize].part.key.is_none());
                pairs.extend(own.map(|(old, new)| (*old as usize, *new as usize)));
            }
        }
        Some(out)
    }

    /// The state that goes on in the other network as this one does here, where it is in a part that
    /// both have, or where the free text of a part that changed begins anew.
    pub(crate) fn of(&self, from: &Network, state: u32) -> Option<u32> {
        let own = |one: &Placed| match from.is_listed(state) {
            true => one.own(state),
            false => one.own_counter(state),
        };
        let (old, local) = self.from.iter().enumerate().find_map(|(at, p)| Some((at, own(p)?)))?;
        let (new, is_same) = self.places[old]?;
        let new = &self.to[new];
        if is_same {
            return Some(new.moved(local));
        }
        let (here, there) = (&self.from[old].part.tables, &new.part.tables);
        let begins_anew = |tables: &Network, state: u32| {
            let same_edges = tables.edges(state) == tables.edges(tables.start);
            same_edges && *tables.calls(state) == *tables.calls(tables.start)
        };
        if !here.is_listed(local) || !begins_anew(here, local) {
            return None;
        }
        let is_twin =
            |&twin: &u32| begins_anew(there, twin) && there.is_final(twin) == here.is_final(local);
        (0..there.len() as u32).find(is_twin).map(|twin| new.moved(twin))
    }
}
