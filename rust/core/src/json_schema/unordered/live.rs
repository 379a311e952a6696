//! Which states surely lead to no end, whatever members were read.

use crate::budget::Budget;
use crate::error::Result;
use crate::json_schema::atoms::ValueId;
use crate::json_schema::automata::{MemberName, ObjectAutomaton};
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Edges that are looked through, and words of sets that are joined, as one unit of work.
const EDGES_OF_WORK: usize = 8;

const WORDS_OF_WORK: usize = 64;

/// A set of names, by their places.
type NameSet = Box<[u64]>;

/// An edge: the known name that is read, or none, and where it leads.
type NamedEdge = (Option<u32>, u32);

/// The states of an object from which an end can be reached, where the values that `is_productive` takes
/// are all there are; `None` where that depends on which names were read.
///
/// A state is surely dead where no path leads to an end, or a name is required that was surely not read
/// and that no state on the way reads. The others are alive whatever was read if at each
/// - every required name can be read, so that all that are missing can be read one after the other; and
/// - a path leads to an end on which each step reads no known name, or can read more of them than can have been read:
///   names that were surely not read, or so many that one of them is left.
pub(in crate::json_schema) fn live(
    object: &ObjectAutomaton,
    required: &[Rc<[u32]>],
    num_names: usize,
    is_productive: impl Fn(ValueId) -> bool,
    budget: &Budget,
) -> Result<Option<Vec<bool>>> {
    let mut edges: Vec<Vec<NamedEdge>> = Vec::with_capacity(object.states.len());
    for state in object.states.iter() {
        budget.spend(1 + state.members.len() / EDGES_OF_WORK)?;
        let members = state.members.iter().filter(|edge| is_productive(edge.value));
        let here = members.map(|edge| {
            let name = match edge.name {
                MemberName::Known(place) => Some(place),
                MemberName::Other(_) => None,
            };
            (name, edge.to)
        });
        edges.push(here.collect());
    }
    let num_edges: usize = edges.iter().map(Vec::len).sum();
    let is_final = |state: usize| object.states[state].is_final;
    let words = num_names.div_ceil(64);
    let mut alive = vec![true; edges.len()];
    loop {
        // The passes below that have no budget of their own.
        let num_required: usize = required.iter().map(|names| names.len()).sum();
        budget.spend((num_edges + num_required) / EDGES_OF_WORK)?;
        let may_be_read = names_before(&edges, &alive, words, budget)?;
        let reaches = back_from_ends(&edges, &alive, is_final, |_, _| true);
        let can_be_read = names_after(&edges, &alive, words, budget)?;
        let is_dead = |state: usize| {
            !reaches[state]
                || required[state].iter().any(|&name| {
                    !contains(&may_be_read[state], name) && !contains(&can_be_read[state], name)
                })
        };
        let dead: Vec<usize> = (0..edges.len()).filter(|&q| alive[q] && is_dead(q)).collect();
        if !dead.is_empty() {
            dead.into_iter().for_each(|state| alive[state] = false);
            continue;
        }
        if !alive[0] {
            return Ok(Some(alive));
        }
        let mut ends = back_from_ends(&edges, &alive, is_final, |state, (name, _)| {
            name.is_none_or(|name| !contains(&may_be_read[state], name))
        });
        if (0..edges.len()).any(|state| alive[state] && !ends[state]) {
            let most_read = most_read(&edges, &alive, &may_be_read, budget)?;
            let steps = names_to(&edges, budget)?;
            ends = back_from_ends(&edges, &alive, is_final, |state, (name, to)| {
                let names = steps.get(&(state as u32, to));
                name.is_none_or(|name| !contains(&may_be_read[state], name))
                    || names.is_some_and(|&names| names > most_read[state])
            });
        }
        let is_sure = |state: usize| {
            let here = &edges[state];
            let is_read = |&name: &u32| {
                here.iter().any(|edge| edge.0 == Some(name) && alive[edge.1 as usize])
            };
            ends[state] && required[state].iter().all(is_read)
        };
        let met = met(&edges, &alive);
        let all_sure = (0..edges.len()).all(|state| !met[state] || is_sure(state));
        return Ok(all_sure.then_some(alive));
    }
}

/// Adds a name; whether it is new.
fn insert(set: &mut NameSet, name: u32) -> bool {
    let (word, bit) = (&mut set[name as usize / 64], 1 << (name % 64));
    let is_new = *word & bit == 0;
    *word |= bit;
    is_new
}

fn contains(set: &NameSet, name: u32) -> bool {
    set[name as usize / 64] >> (name % 64) & 1 == 1
}

/// Adds names to a set; whether there were new ones.
fn add(set: &mut NameSet, more: &NameSet) -> bool {
    let mut is_new = false;
    for (a, b) in set.iter_mut().zip(more) {
        is_new |= b & !*a != 0;
        *a |= b;
    }
    is_new
}

/// The states that are met from the start.
fn met(edges: &[Vec<NamedEdge>], alive: &[bool]) -> Vec<bool> {
    let mut met = vec![false; edges.len()];
    let mut work = vec![0];
    while let Some(state) = work.pop() {
        if alive[state] && !std::mem::replace(&mut met[state], true) {
            work.extend(edges[state].iter().map(|edge| edge.1 as usize));
        }
    }
    met
}

/// For each state the known names that some path to it reads.
fn names_before(
    edges: &[Vec<NamedEdge>],
    alive: &[bool],
    words: usize,
    budget: &Budget,
) -> Result<Vec<NameSet>> {
    let mut out = vec![vec![0; words].into_boxed_slice(); edges.len()];
    let mut is_due = vec![false; edges.len()];
    is_due[0] = alive[0];
    let mut has_been = vec![false; edges.len()];
    let mut work = vec![0];
    while let Some(state) = work.pop() {
        if !std::mem::take(&mut is_due[state]) {
            continue;
        }
        let names = out[state].clone();
        let mut joined = None;
        for &(name, to) in edges[state].iter().filter(|edge| alive[edge.1 as usize]) {
            let to = to as usize;
            let mut is_new = name.is_some_and(|name| insert(&mut out[to], name));
            // Edges of a state mostly lead to one or two.
            if joined.replace(to) != Some(to) {
                budget.spend(1 + words / WORDS_OF_WORK)?;
                is_new |= add(&mut out[to], &names);
            }
            if (is_new || !std::mem::replace(&mut has_been[to], true))
                && !std::mem::replace(&mut is_due[to], true)
            {
                work.push(to);
            }
        }
    }
    Ok(out)
}

/// For each state how many names can have been read: those of the longest path to it, and no more than may be read.
fn most_read(
    edges: &[Vec<NamedEdge>],
    alive: &[bool],
    may_be_read: &[NameSet],
    budget: &Budget,
) -> Result<Vec<u32>> {
    let count = |names: &NameSet| names.iter().map(|word| word.count_ones()).sum::<u32>();
    let most: Vec<u32> = may_be_read.iter().map(count).collect();
    let mut out: Vec<u32> = vec![0; edges.len()];
    let mut work = vec![0];
    let mut has_been = vec![false; edges.len()];
    while let Some(state) = work.pop() {
        budget.spend(1 + edges[state].len() / EDGES_OF_WORK)?;
        for &(name, to) in edges[state].iter().filter(|edge| alive[edge.1 as usize]) {
            let to = to as usize;
            let read = match name {
                Some(_) if to == state => most[to], // in a circle
                _ => (out[state] + u32::from(name.is_some())).min(most[to]),
            };
            if read > out[to] || !std::mem::replace(&mut has_been[to], true) {
                out[to] = out[to].max(read);
                work.push(to);
            }
        }
    }
    Ok(out)
}

/// How many known names lead from one state to another.
fn names_to(edges: &[Vec<NamedEdge>], budget: &Budget) -> Result<FxHashMap<(u32, u32), u32>> {
    let mut out: FxHashMap<(u32, u32), FxHashSet<u32>> = FxHashMap::default();
    for (state, edges) in (0..).zip(edges) {
        budget.spend(1 + edges.len() / EDGES_OF_WORK)?;
        for &(name, to) in edges {
            out.entry((state, to)).or_default().extend(name);
        }
    }
    Ok(out.into_iter().map(|(step, names)| (step, names.len() as u32)).collect())
}

/// For each state the known names that some path from it reads.
fn names_after(
    edges: &[Vec<NamedEdge>],
    alive: &[bool],
    words: usize,
    budget: &Budget,
) -> Result<Vec<NameSet>> {
    let mut out = vec![vec![0; words].into_boxed_slice(); edges.len()];
    let mut callers: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
    for (state, edges) in edges.iter().enumerate() {
        for &(name, to) in edges.iter().filter(|edge| alive[edge.1 as usize]) {
            if let Some(name) = name {
                insert(&mut out[state], name);
            }
            if callers[to as usize].last() != Some(&state) {
                callers[to as usize].push(state);
            }
        }
    }
    let mut work: Vec<usize> = (0..edges.len()).collect();
    while let Some(state) = work.pop() {
        let names = out[state].clone();
        for &caller in &callers[state] {
            budget.spend(1 + words / WORDS_OF_WORK)?;
            if caller != state && add(&mut out[caller], &names) {
                work.push(caller);
            }
        }
    }
    Ok(out)
}

/// The states from which an end is reached along edges that `is_way` takes.
fn back_from_ends(
    edges: &[Vec<NamedEdge>],
    alive: &[bool],
    is_final: impl Fn(usize) -> bool,
    is_way: impl Fn(usize, NamedEdge) -> bool,
) -> Vec<bool> {
    let mut back: Vec<Vec<usize>> = vec![Vec::new(); edges.len()];
    for (state, edges) in edges.iter().enumerate().filter(|(state, _)| alive[*state]) {
        let ways = edges.iter().filter(|edge| is_way(state, **edge) && alive[edge.1 as usize]);
        ways.for_each(|edge| back[edge.1 as usize].push(state));
    }
    let mut out: Vec<bool> = (0..edges.len()).map(|q| alive[q] && is_final(q)).collect();
    let mut work: Vec<usize> = (0..edges.len()).filter(|&q| out[q]).collect();
    while let Some(state) = work.pop() {
        for &from in &back[state] {
            if !std::mem::replace(&mut out[from], true) {
                work.push(from);
            }
        }
    }
    out
}
