//! Minimization of deterministic automata whose transitions are partial: by hashes (`levels`) where
//! those tell the states apart, which is nearly everywhere, else by refinement.
//!
//! Valmari and Lehtinen's refinement of two partitions, of states ("blocks") and of transitions
//! ("cords"), in O(m log m) for m transitions whatever the size of the alphabet: calls make it
//! large, and each state has few. A missing edge differs from every edge, so nothing is merged
//! that differs in which prefixes it takes; states that reach no final state are kept apart from
//! missing edges, which is what unpruned grammars need.

use super::{Automaton, FIRST_CALL, levels};
use crate::budget::{Budget, Ticks};
use crate::error::Result;
use rustc_hash::FxHashMap;

const NONE: u32 = u32::MAX;
/// With more transitions than this most steps wait for memory, and count for more.
const IN_CACHE: usize = 1 << 16;

/// Merges the equivalent states of a deterministic automaton.
///
/// # Errors
/// Those of [`Budget::spend`].
pub fn minimize(automaton: Automaton, work: &Budget) -> Result<Automaton> {
    debug_assert!(automaton.is_deterministic());
    // Hashes, or sorting and the tables below.
    work.spend(2 * weight(&automaton) * automaton.size())?;
    let ticks = Ticks::new(work);
    let (classes, is_alive) = levels::classes(&automaton, &ticks)?;
    if let Some(classes) = classes {
        return merged(automaton, &classes.of, classes.count, is_alive, &ticks);
    }
    let blocks = refined(&automaton, work)?;
    merged(automaton, &blocks.set_of, blocks.len(), is_alive, &ticks)
}

/// The classes of equivalent states.
fn refined(automaton: &Automaton, work: &Budget) -> Result<Partition> {
    let num_states = automaton.len();
    let weight = weight(automaton);
    let transitions = by_letter(automaton);
    work.tick()?;

    let mut blocks = Partition::new(num_states);
    automaton.final_states().for_each(|q| blocks.mark(q));
    blocks.split();

    let mut cords = Partition::by_runs(transitions.iter().map(|t| t.0));
    let incoming = Incoming::new(num_states, &transitions);

    let mut next_block = 1;
    let mut next_cord = 0;
    while next_cord < cords.len() {
        work.spend(weight * cords.range(next_cord).len())?;
        for i in cords.range(next_cord) {
            blocks.mark(transitions[cords.elements[i] as usize].1);
        }
        blocks.split();
        next_cord += 1;
        while next_block < blocks.len() {
            let mut marked = 0;
            for i in blocks.range(next_block) {
                let incoming = incoming.of(blocks.elements[i]);
                incoming.iter().for_each(|&t| cords.mark(t));
                marked += 1 + incoming.len();
            }
            work.spend(weight * marked)?;
            cords.split();
            next_block += 1;
        }
    }
    Ok(blocks)
}

/// Units of work for what looks at each state and transition.
fn weight(automaton: &Automaton) -> usize {
    if automaton.num_edges() > IN_CACHE { 2 } else { 1 }
}

/// One state for each class; that of the start first.
fn merged(
    mut automaton: Automaton,
    class_of: &[u32],
    count: usize,
    is_alive: bool,
    ticks: &Ticks,
) -> Result<Automaton> {
    if count == automaton.len() {
        automaton.set_minimal(is_alive);
        return Ok(automaton);
    }
    let mut new_of = vec![NONE; count];
    let mut members = Vec::with_capacity(count);
    for (q, &class) in class_of.iter().enumerate() {
        let id = &mut new_of[class as usize];
        if *id == NONE {
            *id = members.len() as u32;
            members.push(q as u32);
        }
    }
    let mut out = Automaton::with_capacity(members.len(), automaton.num_edges());
    for q in members {
        ticks.steps(1 + automaton.edges(q).len())?;
        for &(letter, target) in automaton.edges(q) {
            out.push_edge(letter, new_of[class_of[target as usize] as usize]);
        }
        out.close_state(automaton.is_final(q));
    }
    out.set_minimal(is_alive);
    Ok(out)
}

/// All transitions, in order of their letters. Each is written once to its place: sorting them
/// took a sixth of the time of a whole network.
fn by_letter(automaton: &Automaton) -> Vec<(u32, u32, u32)> {
    let mut slot_of: FxHashMap<u32, u32> = FxHashMap::default();
    let mut small = [NONE; FIRST_CALL as usize];
    let mut sizes: Vec<(u32, u32)> = Vec::new();
    let mut slots: Vec<u32> = Vec::with_capacity(automaton.num_edges());
    for (_, edges) in automaton.states() {
        for &(letter, _) in edges {
            let slot = match small.get_mut(letter as usize) {
                Some(slot) => slot,
                None => slot_of.entry(letter).or_insert(NONE),
            };
            if *slot == NONE {
                *slot = sizes.len() as u32;
                sizes.push((letter, 0));
            }
            sizes[*slot as usize].1 += 1;
            slots.push(*slot);
        }
    }
    let mut order: Vec<u32> = (0..sizes.len() as u32).collect();
    order.sort_unstable_by_key(|&slot| sizes[slot as usize].0);
    let mut next = 0;
    for slot in order {
        let size = &mut sizes[slot as usize].1;
        next += std::mem::replace(size, next);
    }
    let mut out = vec![(0, 0, 0); slots.len()];
    let edges = automaton.states().flat_map(|(p, edges)| edges.iter().map(move |e| (p, e)));
    for ((p, &(letter, q)), slot) in edges.zip(slots) {
        let place = &mut sizes[slot as usize].1;
        out[*place as usize] = (letter, p, q);
        *place += 1;
    }
    out
}

/// Transitions by the state they lead to.
struct Incoming {
    starts: Vec<u32>,
    transitions: Vec<u32>,
}

impl Incoming {
    fn new(num_states: usize, transitions: &[(u32, u32, u32)]) -> Self {
        let mut starts = vec![0u32; num_states + 1];
        for &(_, _, q) in transitions {
            starts[q as usize + 1] += 1;
        }
        for q in 0..num_states {
            starts[q + 1] += starts[q];
        }
        let mut fill = starts.clone();
        let mut sorted = vec![0u32; transitions.len()];
        for (t, &(_, _, q)) in transitions.iter().enumerate() {
            sorted[fill[q as usize] as usize] = t as u32;
            fill[q as usize] += 1;
        }
        Self { starts, transitions: sorted }
    }

    fn of(&self, q: u32) -> &[u32] {
        &self.transitions[self.starts[q as usize] as usize..self.starts[q as usize + 1] as usize]
    }
}

/// A refinable partition of `0..n`: mark elements, then split every set by its marks.
struct Partition {
    /// The elements, set by set, the marked ones of a set first.
    elements: Vec<u32>,
    location: Vec<u32>,
    set_of: Vec<u32>,
    starts: Vec<u32>,
    ends: Vec<u32>,
    marked: Vec<u32>,
    touched: Vec<u32>,
}

impl Partition {
    fn new(n: usize) -> Self {
        Self::by_runs(std::iter::repeat_n((), n))
    }

    /// One set for each run of equal keys.
    fn by_runs<K: PartialEq>(keys: impl Iterator<Item = K>) -> Self {
        let mut set_of = Vec::new();
        let mut starts: Vec<u32> = Vec::new();
        let mut previous = None;
        for (i, key) in keys.enumerate() {
            if previous.as_ref() != Some(&key) {
                starts.push(i as u32);
                previous = Some(key);
            }
            set_of.push(starts.len() as u32 - 1);
        }
        let n = set_of.len() as u32;
        let ends = starts.iter().skip(1).copied().chain((n > 0).then_some(n)).collect();
        Self {
            elements: (0..n).collect(),
            location: (0..n).collect(),
            set_of,
            marked: vec![0; starts.len()],
            starts,
            ends,
            touched: Vec::new(),
        }
    }

    fn len(&self) -> usize {
        self.starts.len()
    }

    fn range(&self, set: usize) -> std::ops::Range<usize> {
        self.starts[set] as usize..self.ends[set] as usize
    }

    fn mark(&mut self, element: u32) {
        let set = self.set_of[element as usize] as usize;
        let from = self.location[element as usize];
        let to = self.starts[set] + self.marked[set];
        if from < to {
            return; // marked already
        }
        self.elements.swap(from as usize, to as usize);
        self.location[self.elements[from as usize] as usize] = from;
        self.location[element as usize] = to;
        if self.marked[set] == 0 {
            self.touched.push(set as u32);
        }
        self.marked[set] += 1;
    }

    /// Splits every set with marks in two, unless all or none are marked; the smaller part gets
    /// the new number, which is what bounds the total work.
    fn split(&mut self) {
        for set in std::mem::take(&mut self.touched) {
            let set = set as usize;
            let middle = self.starts[set] + std::mem::take(&mut self.marked[set]);
            if middle == self.ends[set] {
                continue;
            }
            let new = self.starts.len() as u32;
            let (start, end) = (self.starts[set], self.ends[set]);
            if middle - start <= end - middle {
                self.starts.push(start);
                self.ends.push(middle);
                self.starts[set] = middle;
            } else {
                self.starts.push(middle);
                self.ends.push(end);
                self.ends[set] = middle;
            }
            self.marked.push(0);
            for i in self.range(new as usize) {
                self.set_of[self.elements[i] as usize] = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::automata::twins::merge_twins;
    use crate::budget::Interrupt;
    use crate::limits::Limits;
    use proptest::prelude::*;

    /// Moore's refinement: the obvious oracle. Number of classes of states.
    fn moore(a: &Automaton) -> Vec<usize> {
        let states = 0..a.len() as u32;
        let mut class: Vec<usize> = states.map(|q| usize::from(a.is_final(q))).collect();
        loop {
            let keys: Vec<_> = a
                .states()
                .map(|(q, edges)| {
                    let edges: Vec<_> =
                        edges.iter().map(|&(l, t)| (l, class[t as usize])).collect();
                    (class[q as usize], edges)
                })
                .collect();
            let mut distinct: Vec<_> = keys.clone();
            distinct.sort();
            distinct.dedup();
            let next: Vec<usize> =
                keys.iter().map(|k| distinct.binary_search(k).expect("present")).collect();
            let count = |v: &[usize]| v.iter().max().map_or(0, |m| m + 1);
            let old: std::collections::BTreeSet<_> = class.iter().collect();
            if count(&next) == old.len() {
                return next;
            }
            class = next;
        }
    }

    proptest! {
        #[test]
        fn agrees_with_moore(
            n in 1usize..12,
            raw in proptest::collection::vec((0u32..12, 0u32..3, 0u32..12), 0..40),
            finals in proptest::collection::vec(any::<bool>(), 12),
            forward in any::<bool>(),
        ) {
            let mut states: Vec<(bool, Vec<(u32, u32)>)> =
                finals[..n].iter().map(|&is_final| (is_final, Vec::new())).collect();
            states[0].0 = false;
            for (p, l, q) in raw {
                // Without cycles, but for states that lead to themselves.
                let q = if forward { q.max(p % n as u32) } else { q };
                let edges = &mut states[p as usize % n].1;
                if edges.iter().all(|e| e.0 != l) {
                    edges.push((l, q % n as u32));
                }
            }
            let mut a = Automaton::from_states(&states);
            a.renumber();
            let classes = moore(&a);
            let work = Budget::new(&Limits::default(), &Interrupt::default());
            let b = minimize(a.clone(), &work).expect("within bounds");
            let blocks = refined(&a, &work).expect("within bounds");
            prop_assert_eq!(blocks.len(), b.len());
            let distinct: std::collections::BTreeSet<_> = classes.iter().collect();
            prop_assert_eq!(b.len(), distinct.len());
            let again = moore(&b);
            let all: std::collections::BTreeSet<_> = again.iter().collect();
            prop_assert_eq!(all.len(), b.len());
            let merged = merge_twins(&a, &Ticks::new(&work)).expect("within bounds");
            let merged = merged.unwrap_or_else(|| a.clone());
            let has_cycles = states.iter().zip(0..).any(|((_, edges), p)| {
                edges.iter().any(|edge| edge.1 <= p)
            });
            prop_assert!(has_cycles || merged.len() == b.len());
            let both = [merged, a].map(|automaton| {
                let mut out = minimize(automaton, &work).expect("within bounds");
                out.renumber();
                (out.len(), out.states().map(|(q, edges)| (out.is_final(q), edges.to_vec())).collect::<Vec<_>>())
            });
            prop_assert_eq!(&both[0], &both[1]);
        }
    }
}
