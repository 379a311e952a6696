//! What may follow at most once a frame has been popped (docs/design/masks.md, "Bounds").
//!
//! A finite automaton over sets of network states reads on where the frame ended: calls push nothing,
//! and a rule that is complete returns to whatever can stand beneath it anywhere. So it reads all that
//! any stack could, and it needs no stacks: there are few of its sets, whatever the text was. What it
//! reads and the frame has not read by itself is *undecided*; where that is little, the stacks of the
//! text are asked about just that.

use crate::budget::Interrupt;
use crate::engine::mask::found::{Found, class_at};
use crate::engine::mask::query::After;
use crate::engine::stop::Stop;
use crate::network::{Adjacency, BOTTOM, Network, contains};
use crate::vocabulary::{BROKEN, Groups, TEXT, Trie, each_of, group, reads_characters};
use rustc_hash::{FxHashMap, FxHashSet};
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

/// Elements from here on: all that can stand beneath a rule, by the number of its set.
const BENEATH: u32 = 1 << 31;
/// Added to a state: it is there for certain, as the frame that was asked about was not popped, nor what
/// it called.
const SURE: u32 = 1 << 30;
/// Networks of more states have no bounds.
pub(in crate::engine) const MAX_STATES: usize = SURE as usize - 1;
/// A rule was just completed for certain; what goes on is not.
const COMPLETE: u32 = BENEATH - 1;
/// Nothing can be read on.
const EMPTY: u32 = 0;
/// Elements of a set that are looked at for loops.
const MAX_ELEMENTS: usize = 24;
/// States looked at, or trie nodes entered, that count as one unit of work.
const STEPS_OF_WORK: u64 = 8;
/// Trie nodes between two looks at the interrupt, less one.
const CHECK_MASK: u64 = 1_023;

/// Sets of network states, with what bytes make of them.
pub(in crate::engine) struct Upper {
    network: Arc<Network>,
    adjacency: Arc<Adjacency>,
    /// Sets of elements, each sorted: states, and what stands beneath rules.
    sets: Vec<Arc<[u32]>>,
    numbers: FxHashMap<Arc<[u32]>, u32>,
    /// The set after a byte, by set and byte class.
    steps: FxHashMap<(u32, u8), u32>,
    /// The same for single elements.
    single: FxHashMap<(u32, u8), u32>,
    /// For elements that were looked at, the groups of bytes that lead back to them.
    kept: FxHashMap<u32, Groups>,
    /// For sets that were looked at, those of their elements, and whether they are there for certain.
    loops: FxHashMap<u32, Arc<[(Groups, bool)]>>,
    /// Elements of all sets.
    elements: usize,
    /// States looked at and trie nodes entered.
    looked: u64,
}

/// What begins at some nodes of the trie.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) enum Begin {
    /// A frame.
    Frame(u32),
    /// What goes on after one.
    After(After),
}

/// A walk below some nodes.
pub(in crate::engine) struct Asked<'a> {
    /// Sorted.
    pub(in crate::engine) nodes: &'a [u32],
    pub(in crate::engine) begin: Begin,
    /// A row of the numbers that are known to follow.
    pub(in crate::engine) decided: &'a [i32],
    /// Undecided nodes at most.
    pub(in crate::engine) most: usize,
}

impl Upper {
    pub(in crate::engine) fn new(network: Arc<Network>, adjacency: Arc<Adjacency>) -> Self {
        let empty: Arc<[u32]> = Arc::default();
        Self {
            network,
            adjacency,
            sets: vec![empty.clone()],
            numbers: FxHashMap::from_iter([(empty, EMPTY)]),
            steps: FxHashMap::default(),
            single: FxHashMap::default(),
            kept: FxHashMap::default(),
            loops: FxHashMap::default(),
            elements: 0,
            looked: 0,
        }
    }

    /// Bytes held.
    pub(in crate::engine) fn bytes(&self) -> usize {
        self.elements * 8
            + self.sets.len() * 64
            + (self.steps.capacity() + self.single.capacity()) * 13
            + self.kept.capacity() * 13
            + self.loops.capacity() * 21
    }

    /// Work units spent.
    pub(in crate::engine) fn spent(&self) -> u64 {
        self.looked / STEPS_OF_WORK
    }

    /// The nodes with entries that may be read below some nodes, and are not decided; `None` where there
    /// are more than so many. What is read for certain is found.
    ///
    /// Numbers of networks are below [`SURE`]; a larger one has no bounds.
    pub(in crate::engine) fn walk(
        &mut self,
        trie: &Trie,
        asked: Asked<'_>,
        (work, interrupt): (u64, &Interrupt),
        found: &mut Found,
    ) -> Result<Option<Vec<u32>>, Stop> {
        let Asked { nodes: roots, begin, decided, most } = asked;
        let limit = self.spent().saturating_add(work);
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let is_open = |node: u32| {
            let numbers = trie.numbers(node);
            numbers.iter().any(|&n| decided[n as usize >> 5] >> (n & 31) & 1 == 0)
        };
        let begin = self.begin(begin);
        let mut out = Vec::new();
        // The ends of nodes with the sets after them; below a node that is not read may be a root.
        let mut path: Vec<(u32, u32)> = Vec::new();
        let (mut node, mut root) = (0, 0);
        loop {
            while path.last().is_some_and(|last| last.0 <= node) {
                path.pop();
            }
            root += roots[root..].iter().take_while(|&&root| root < node).count();
            let before = path.last().map_or(EMPTY, |last| last.1);
            let next = roots.get(root).copied();
            if before == EMPTY && next != Some(node) {
                // What is below a node that is not read is passed over, but for roots.
                let end = path.last().map(|last| last.0);
                let Some(next) = next.into_iter().chain(end).min() else { break };
                node = next;
                continue;
            }
            self.look(limit, interrupt)?;
            let end = trie.end(node);
            let mut set = EMPTY;
            if before != EMPTY {
                set = self.step(before, class_at(alphabet, trie, node));
                if self.is_sure(set) {
                    found.accept(trie.entries_of(node..node + 1));
                } else if set != EMPTY && is_open(node) {
                    out.push(node);
                }
            }
            if next == Some(node) {
                set = self.united(&[set, begin]);
            }
            let reads_all = match end > node + 1 && set != EMPTY {
                true => self.reads_all(set, trie.groups_below(node)),
                false => None,
            };
            match reads_all {
                Some(true) => {
                    found.accept(trie.entries_of(node + 1..end));
                    node = end;
                    continue;
                }
                // A frame that is there for certain may still read some of it.
                Some(false) if !self.is_sure(set) => {
                    if !push_open(node + 1..end, is_open, most, &mut out) {
                        return Ok(None);
                    }
                    self.looked += u64::from(end - node) / STEPS_OF_WORK;
                    node = end;
                    continue;
                }
                _ => {}
            }
            if out.len() > most {
                return Ok(None);
            }
            path.push((end, set));
            node += 1;
        }
        Ok(Some(out))
    }

    /// Counts one more node, which may be one too many.
    #[inline]
    fn look(&mut self, limit: u64, interrupt: &Interrupt) -> Result<(), Stop> {
        self.looked += 1;
        if self.looked & CHECK_MASK == 0 {
            interrupt.check()?;
        }
        if self.spent() > limit { Err(Stop::Work) } else { Ok(()) }
    }

    fn begin(&mut self, begin: Begin) -> u32 {
        let mut elements = Vec::new();
        match begin {
            Begin::Frame(state) => elements.push(state | SURE),
            Begin::After(after) => {
                elements.extend(after.to);
                elements.extend(after.rule.map(|rule| BENEATH + self.adjacency.set_of_rule(rule)));
            }
        }
        self.intern(elements)
    }

    /// Whether some stack is there for certain.
    fn is_sure(&self, set: u32) -> bool {
        let elements = &self.sets[set as usize];
        let first = elements.partition_point(|&element| element < SURE);
        elements.get(first).is_some_and(|&element| element < BENEATH)
    }

    fn intern(&mut self, mut elements: Vec<u32>) -> u32 {
        elements.sort_unstable();
        elements.dedup();
        if let Some(&known) = self.numbers.get(&elements[..]) {
            return known;
        }
        self.elements += elements.len();
        let (number, elements) = (self.sets.len() as u32, Arc::<[u32]>::from(elements));
        self.sets.push(elements.clone());
        self.numbers.insert(elements, number);
        number
    }

    fn united(&mut self, sets: &[u32]) -> u32 {
        match sets {
            [] => EMPTY,
            &[set] | &[EMPTY, set] | &[set, EMPTY] => set,
            sets => {
                let elements = sets.iter().flat_map(|&set| self.sets[set as usize].iter().copied());
                let elements = elements.collect();
                self.intern(elements)
            }
        }
    }

    /// The set after a byte.
    fn step(&mut self, set: u32, class: u8) -> u32 {
        if let Some(&known) = self.steps.get(&(set, class)) {
            return known;
        }
        let elements = self.sets[set as usize].clone();
        let mut parts: Vec<u32> =
            elements.iter().map(|&element| self.step_of(element, class)).collect();
        parts.sort_unstable();
        parts.dedup();
        self.looked += parts.len() as u64;
        let after = self.united(&parts);
        self.steps.insert((set, class), after);
        after
    }

    /// The same for one element.
    fn step_of(&mut self, element: u32, class: u8) -> u32 {
        if let Some(&known) = self.single.get(&(element, class)) {
            return known;
        }
        let (network, adjacency) = (self.network.clone(), self.adjacency.clone());
        let begins = |state: u32| contains(network.first(state), class);
        let sure = if element < BENEATH { element & SURE } else { 0 };
        let mut work: Vec<u32> = match element {
            COMPLETE => Vec::new(),
            BENEATH.. => {
                let all = &adjacency.sets()[(element - BENEATH) as usize];
                self.looked += all.len() as u64;
                all.iter().copied().filter(|&state| state != BOTTOM && begins(state)).collect()
            }
            state => Some(state & !SURE).filter(|&state| begins(state)).into_iter().collect(),
        };
        let mut seen: FxHashSet<u32> = work.iter().copied().collect();
        let mut found = Vec::new();
        while let Some(state) = work.pop() {
            self.looked += 1;
            for target in network.targets(state, class) {
                if network.stays(target) {
                    found.push(target | sure);
                }
                if network.is_final(target) {
                    found.extend((sure != 0).then_some(COMPLETE));
                    found.push(BENEATH + adjacency.set_of_rule(network.rule_of(state)));
                }
            }
            for call in network.calls(state).iter() {
                self.looked += 1;
                // What it returns to is among what can stand beneath it.
                if begins(call.start) && seen.insert(call.start) {
                    work.push(call.start);
                }
            }
        }
        let after = self.intern(found);
        self.single.insert((element, class), after);
        after
    }

    /// Whether all is read that consists of some groups of bytes, as an element stays under them; if so,
    /// whether that is there for certain.
    fn reads_all(&mut self, set: u32, groups: Groups) -> Option<bool> {
        let kept = match self.loops.get(&set) {
            Some(known) => known.clone(),
            None => {
                let elements = self.sets[set as usize].clone();
                let is_sure = |element: u32| (SURE..COMPLETE).contains(&element);
                let kept = elements.iter().filter(|&&element| element != COMPLETE);
                let mut kept: Vec<(Groups, bool)> = kept
                    .take(MAX_ELEMENTS)
                    .map(|&element| (self.kept(element), is_sure(element)))
                    .collect();
                kept.retain(|kept| kept.0 != 0);
                kept.sort_unstable();
                kept.dedup();
                let kept: Arc<[(Groups, bool)]> = kept.into();
                self.loops.insert(set, kept.clone());
                kept
            }
        };
        kept.iter().filter(|kept| groups & !kept.0 == 0).map(|kept| kept.1).max()
    }

    /// Groups of bytes that lead from an element back to it, those of whole characters included.
    fn kept(&mut self, element: u32) -> Groups {
        if let Some(&known) = self.kept.get(&element) {
            return known;
        }
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let mut leaves = 0;
        for byte in 0..=255u8 {
            // If one byte past ASCII does not lead back, each group of characters is checked below as a whole: the
            // first bytes of a group may lead back while the bytes behind them do not.
            let bit = if byte < 0x80 { group(byte) } else { TEXT | BROKEN };
            if leaves & bit == 0 {
                let after = self.step_of(element, alphabet.class(byte));
                if !self.has(after, element) {
                    leaves |= bit;
                }
            }
        }
        for bit in each_of(leaves & TEXT) {
            if self.reads_characters(element, bit) {
                leaves &= !bit;
            }
        }
        self.kept.insert(element, !leaves);
        !leaves
    }

    fn has(&self, set: u32, element: u32) -> bool {
        self.sets[set as usize].binary_search(&element).is_ok()
    }

    /// Whether every character past ASCII of some groups can be read from an element and leads back to it.
    fn reads_characters(&mut self, element: u32, groups: Groups) -> bool {
        let network = self.network.clone();
        let alphabet = network.alphabet();
        let start = self.intern(vec![element]);
        let step = |set, class, ends: bool| {
            let after = self.step(set, class);
            let leads_on = after != EMPTY && (!ends || self.has(after, element));
            Ok::<_, Infallible>(leads_on.then_some(after))
        };
        reads_characters((start, groups), |byte| alphabet.class(byte), step).unwrap_or(false)
    }
}

/// Adds the nodes of a range that are open to those that are undecided; false once these are more than so
/// many. Where the range is most of the vocabulary, that is soon.
fn push_open(
    nodes: Range<u32>,
    is_open: impl Fn(u32) -> bool,
    most: usize,
    undecided: &mut Vec<u32>,
) -> bool {
    for node in nodes {
        if is_open(node) {
            undecided.push(node);
            if undecided.len() > most {
                return false;
            }
        }
    }
    true
}
