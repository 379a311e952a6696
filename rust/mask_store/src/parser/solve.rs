//! Computations that wait for more of a stack, as states of the minimal automaton.

use super::canonical::StackAutomaton;
use super::moves::{NewMoves, StackState};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use tokfold_core::error::Result;

/// What became of a computation: a number from 0 is another one, below 0 it is a leaf.
pub(super) type NextComputation = i64;

/// For each state of the parser that can be read, ascending, what comes next.
pub(super) type Nexts = Arc<[(u32, NextComputation)]>;

/// The states found so far, for each computation.
pub(super) type SolvedStates = HashMap<u32, StackState, FxBuildHasher>;

/// Computations by number.
pub(super) trait Computations {
    /// What a computation does with each state of the parser that can be read next.
    fn moves(&mut self, automaton: &StackAutomaton, computation: u32) -> Result<Nexts>;
    /// The state for a leaf.
    fn leaf(&self, automaton: &StackAutomaton, leaf: NextComputation) -> StackState;
}

/// Finds the state for a computation and for all those that it leads to.
///
/// Tarjan's strongly connected components, inner ones first, without recursion. After an error
/// what had been found stays, and is right.
pub(super) fn solve(
    automaton: &mut StackAutomaton,
    start: u32,
    work: &mut dyn Computations,
    found: &mut SolvedStates,
) -> Result<()> {
    struct ComputationVisit {
        computation: u32,
        moves: Nexts,
        at: usize,
    }
    let mut order: HashMap<u32, u32, FxBuildHasher> = HashMap::default();
    let mut low: HashMap<u32, u32, FxBuildHasher> = HashMap::default();
    let mut open: Vec<u32> = Vec::new();
    let mut is_open: HashMap<u32, Nexts, FxBuildHasher> = HashMap::default();
    let mut path: Vec<ComputationVisit> = Vec::new();
    let mut enter = Some(start);
    loop {
        if let Some(computation) = enter.take() {
            let moves = work.moves(automaton, computation)?;
            let number = order.len() as u32;
            order.insert(computation, number);
            low.insert(computation, number);
            open.push(computation);
            is_open.insert(computation, moves.clone());
            path.push(ComputationVisit { computation, moves, at: 0 });
        }
        let Some(visit) = path.last_mut() else { return Ok(()) };
        let current = visit.computation;
        while let Some(&(_, next)) = visit.moves.get(visit.at) {
            visit.at += 1;
            let Ok(next) = u32::try_from(next) else { continue };
            if found.contains_key(&next) {
                continue;
            }
            match order.get(&next) {
                None => {
                    enter = Some(next);
                    break;
                }
                Some(&number) if is_open.contains_key(&next) => lower(&mut low, current, number),
                Some(_) => {}
            }
        }
        if enter.is_some() {
            continue;
        }
        path.pop();
        let reached = low[&current];
        if let Some(outer) = path.last() {
            lower(&mut low, outer.computation, reached);
        }
        if reached == order[&current] {
            let place = open.iter().rposition(|&c| c == current).unwrap_or(0);
            let component: Vec<(u32, Nexts)> = open
                .drain(place..)
                .filter_map(|c| is_open.remove(&c).map(|moves| (c, moves)))
                .collect();
            close(automaton, &component, work, found)?;
        }
    }
}

fn lower(low: &mut HashMap<u32, u32, FxBuildHasher>, computation: u32, number: u32) {
    if let Some(known) = low.get_mut(&computation) {
        *known = number.min(*known);
    }
}

fn close(
    automaton: &mut StackAutomaton,
    component: &[(u32, Nexts)],
    work: &dyn Computations,
    found: &mut SolvedStates,
) -> Result<()> {
    let local: HashMap<u32, i64, FxBuildHasher> =
        component.iter().enumerate().map(|(i, &(c, _))| (c, -1 - i as i64)).collect();
    let mut leaves: HashMap<NextComputation, StackState, FxBuildHasher> = HashMap::default();
    let mut is_cycle = component.len() > 1;
    let mut rows: Vec<NewMoves> = Vec::with_capacity(component.len());
    for (_, moves) in component {
        let mut row = Vec::with_capacity(moves.len());
        for &(read, next) in moves.iter() {
            let to = match u32::try_from(next) {
                Err(_) => {
                    i64::from(*leaves.entry(next).or_insert_with(|| work.leaf(automaton, next)))
                }
                Ok(next) => match local.get(&next) {
                    Some(&name) => {
                        is_cycle = true;
                        name
                    }
                    None => i64::from(found[&next]),
                },
            };
            row.push((read, to));
        }
        rows.push(row);
    }
    if is_cycle {
        let states = automaton.add_cycle(&rows)?;
        found.extend(component.iter().zip(states).map(|(&(c, _), state)| (c, state)));
    } else if let (Some(row), Some(&(computation, _))) = (rows.pop(), component.first()) {
        let row = row.into_iter().map(|(read, to)| (read, to as StackState)).collect();
        found.insert(computation, automaton.add(row)?);
    }
    Ok(())
}
