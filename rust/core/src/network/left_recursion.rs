//! Left recursion out of the network.
//!
//! Design: docs/design/network.md, "Left recursion".
//!
//! The left spine of a cycle of left calls is regular: it starts where some rule of the cycle
//! starts without a left call into the cycle, and each completed rule goes on where a rule of the
//! cycle goes on after having called it. So every rule of the cycle becomes one automaton, with
//! loops for the spine, exactly; only the trees change, not the strings and not the prefixes.

use crate::automata::minimize::minimize;
use crate::automata::{Automaton, FIRST_MARKER, Letter, Nfa, callee};
use crate::budget::{Budget, Ticks};
use crate::error::{Error, Result};
use crate::graph::{self, Components};
use crate::limits::Limits;

/// Whether one of some rules can call itself before it has read a byte.
///
/// # Errors
/// Those of [`Budget::tick`], as for the functions below.
pub(crate) fn is_in_cycle(
    rules: &[Automaton],
    select: impl Fn(usize) -> bool,
    work: &Budget,
) -> Result<bool> {
    let ticks = Ticks::new(work);
    for component in components(rules, work)?.iter() {
        ticks.steps(component.len())?;
        let alone = component.len() == 1;
        let is_in_cycle =
            |&a: &usize| select(a) && (!alone || rules[a].left_calls().any(|b| b == a));
        if component.iter().any(is_in_cycle) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Rules that call each other before they have read a byte, callees first.
fn components(rules: &[Automaton], work: &Budget) -> Result<Components> {
    let ticks = Ticks::new(work);
    let look = |steps| ticks.steps(steps);
    graph::components_within(rules.len(), look, |a| {
        let mut callees: Vec<usize> = rules[a].left_calls().collect();
        ticks.steps(1 + callees.len())?;
        callees.sort_unstable();
        callees.dedup();
        Ok(callees)
    })
}

/// How many rules the largest cycle of rules has that call each other before they have read a byte.
pub(crate) fn largest_cycle(rules: &[Automaton], work: &Budget) -> Result<Option<usize>> {
    let ticks = Ticks::new(work);
    let mut largest = None;
    for component in components(rules, work)?.iter() {
        let a = component[0];
        ticks.step()?;
        if component.len() > 1 || rules[a].left_calls().any(|b| b == a) {
            largest = largest.max(Some(component.len()));
        }
    }
    Ok(largest)
}

/// Rewrites the rules until no rule can call itself before it has read a byte. Returns those that
/// changed as they were.
///
/// # Errors
/// [`Error::Limit`] when the copies of a large cycle pass the limits; those of [`Budget::spend`].
pub(crate) fn eliminate(
    rules: &mut [Automaton],
    limits: &Limits,
    work: &Budget,
) -> Result<Vec<(usize, Automaton)>> {
    let mut written = Vec::new();
    let ticks = Ticks::new(work);
    for component in components(rules, work)?.iter() {
        ticks.steps(component.len())?;
        let in_cycle = |b: usize| component.binary_search(&b).is_ok();
        if component.len() == 1 && !rules[component[0]].left_calls().any(in_cycle) {
            continue;
        }
        let states: usize = component.iter().map(|&a| rules[a].len()).sum();
        if states.saturating_mul(component.len()) > limits.max_network_states {
            return Err(Error::Limit {
                limit: "max_network_states",
                value: limits.max_network_states as u64,
                message: format!(
                    "a left-recursive cycle of {} rules needs more states; break the cycle up or raise the limit",
                    component.len()
                ),
            });
        }
        let rewritten = spines(rules, component, work)?;
        for (&a, automaton) in component.iter().zip(rewritten) {
            written.push((a, std::mem::replace(&mut rules[a], automaton)));
        }
    }
    Ok(written)
}

/// Behind a final state of the k-th rule of a cycle, while the automata of all are one: past the
/// markers of repetitions.
const COMPLETE: Letter = FIRST_MARKER + (1 << 30);

/// The automata of all rules of a left-recursive cycle, with its spine as a loop: they differ only
/// in where they end, so that one subset construction serves for all.
fn spines(rules: &[Automaton], cycle: &[usize], work: &Budget) -> Result<Vec<Automaton>> {
    let mut nfa = joined(rules, cycle);
    let bases = bases(rules, cycle);
    let end = nfa.state();
    nfa.set_final(end);
    for (k, (&x, &base)) in cycle.iter().zip(&bases).enumerate() {
        for q in rules[x].final_states() {
            nfa.edge(base + q, COMPLETE + k as Letter, end);
        }
    }
    let joined = nfa.reduce(4 * nfa.len() + 1_000, work)?;
    // Each rule gets a copy: where that is too much, it need not be begun.
    work.foresee(cycle.len().saturating_mul(joined.len() + joined.num_edges()))?;
    let of_rule = |k: usize| {
        let mut out = Automaton::with_capacity(joined.len(), joined.num_edges());
        for (_, edges) in joined.states() {
            for &(letter, q) in edges.iter().filter(|edge| edge.0 < COMPLETE) {
                out.push_edge(letter, q);
            }
            out.close_state(edges.iter().any(|edge| edge.0 == COMPLETE + k as Letter));
        }
        work.spend(joined.len() + joined.num_edges())?;
        out.renumber();
        if joined.is_deterministic() {
            out = minimize(out, work)?;
            out.renumber();
        }
        Ok(out)
    };
    (0..cycle.len()).map(of_rule).collect()
}

/// Where the automaton of each rule of a cycle stands among all, behind the start.
fn bases(rules: &[Automaton], cycle: &[usize]) -> Vec<u32> {
    let mut next = 1;
    let place = |&x: &usize| {
        let base = next;
        next += rules[x].len() as u32;
        base
    };
    cycle.iter().map(place).collect()
}

/// The automata of all rules of a cycle, its spine a loop; none of them ends.
fn joined(rules: &[Automaton], cycle: &[usize]) -> Nfa {
    let in_cycle = |b: usize| cycle.binary_search(&b).is_ok();
    let mut nfa = Nfa::default();
    let start = nfa.state();
    let bases = bases(rules, cycle);
    for &x in cycle {
        nfa.embed(&rules[x], false);
    }
    // Where the cycle goes on after a left call of its k-th rule.
    let mut after: Vec<Vec<u32>> = vec![Vec::new(); cycle.len()];
    for (&x, &base) in cycle.iter().zip(&bases) {
        for &(letter, q) in rules[x].edges(0) {
            match callee(letter).filter(|&b| in_cycle(b)) {
                Some(b) => {
                    let k = cycle.binary_search(&b).unwrap_or(0);
                    after[k].push(base + q);
                }
                None => nfa.edge(start, letter, base + q),
            }
        }
    }
    for (k, (&x, &base)) in cycle.iter().zip(&bases).enumerate() {
        // One hub for each rule keeps the number of edges linear.
        let hub = nfa.state();
        for &q in &after[k] {
            nfa.skip(hub, q);
        }
        rules[x].final_states().for_each(|q| nfa.skip(base + q, hub));
    }
    nfa
}
