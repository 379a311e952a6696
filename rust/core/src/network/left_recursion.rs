//! Left recursion out of the network.
//!
//! The left spine of a cycle of left calls is regular: it starts where some rule of the cycle
//! starts without a left call into the cycle, and each completed rule goes on where a rule of the
//! cycle goes on after having called it. So every rule of the cycle becomes one automaton, with
//! loops for the spine, exactly; only the trees change, not the strings and not the prefixes.

use crate::automata::{Automaton, Nfa, callee};
use crate::error::{Error, Result};
use crate::graph;
use crate::limits::Limits;
use crate::work::Work;

/// Whether one of some rules can call itself before it has read a byte.
pub(crate) fn is_in_cycle(rules: &[Automaton], select: impl Fn(usize) -> bool) -> bool {
    let components = graph::components(rules.len(), |a| rules[a].left_calls().collect());
    components.into_iter().any(|component| {
        let alone = component.len() == 1;
        component
            .into_iter()
            .any(|a| select(a) && (!alone || rules[a].left_calls().any(|b| b == a)))
    })
}

/// Rewrites the rules until no rule can call itself before it has read a byte.
///
/// # Errors
/// [`Error::Limit`] when the copies of a large cycle pass the limits; those of [`Work::spend`].
pub(crate) fn eliminate(rules: &mut [Automaton], limits: &Limits, work: &Work<'_>) -> Result<()> {
    let components = graph::components(rules.len(), |a| {
        let mut callees: Vec<usize> = rules[a].left_calls().collect();
        callees.sort_unstable();
        callees.dedup();
        callees
    });
    for component in components {
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
        let rewritten: Vec<Automaton> =
            component.iter().map(|&a| spine(rules, &component, a, work)).collect::<Result<_>>()?;
        for (&a, automaton) in component.iter().zip(rewritten) {
            rules[a] = automaton;
        }
    }
    Ok(())
}

/// The automaton of `rule`, a member of the left-recursive `cycle`, with its spine as a loop.
fn spine(rules: &[Automaton], cycle: &[usize], rule: usize, work: &Work<'_>) -> Result<Automaton> {
    let in_cycle = |b: usize| cycle.binary_search(&b).is_ok();
    let mut nfa = Nfa::default();
    let start = nfa.state();
    let bases: Vec<u32> = cycle.iter().map(|&x| nfa.embed(&rules[x], x == rule)).collect();
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
    let cap = 4 * nfa.len() + 1_000;
    nfa.reduce(cap, work)
}
