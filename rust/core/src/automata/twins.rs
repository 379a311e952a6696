//! States that are equal at first sight, made one: nearly all that minimization does where no states on cycles are
//! equal, in one pass.

use super::Automaton;
use crate::budget::Ticks;
use crate::error::Result;
use hashbrown::HashTable;

const NONE: u32 = u32::MAX;

/// Makes states one that are both final or not and lead over the same letters to the same states, from the ends back
/// (the construction of minimal acyclic automata of Daciuk, Mihov, Watson and Watson, 2000); `None` where there are no
/// two. States that lead to themselves count as the same there. Equal states on longer cycles stay apart, and so does
/// what leads to a state that does the same.
///
/// # Errors
/// Those of [`Ticks::step`].
pub(crate) fn merge_twins(automaton: &Automaton, ticks: &Ticks) -> Result<Option<Automaton>> {
    debug_assert!(automaton.is_deterministic() && !automaton.has_fallbacks());
    let n = automaton.len();
    if n == 0 {
        return Ok(None);
    }
    let order = post_order(automaton, ticks)?;
    // For each state the one that stands for it, once that is known.
    let mut of: Vec<u32> = (0..n as u32).collect();
    let mut table: HashTable<(u64, u32)> = HashTable::with_capacity(n);
    let mut count = n;
    for q in order {
        let (edges, is_final) = (automaton.edges(q), automaton.is_final(q));
        ticks.steps(1 + edges.len())?;
        let target = |from: u32, to: u32| if to == from { NONE } else { of[to as usize] };
        let hash = edges.iter().fold(u64::from(is_final), |hash, &(letter, to)| {
            mix(mix(hash, u64::from(letter)), u64::from(target(q, to)))
        });
        let is_same = |&(known, p): &(u64, u32)| {
            let others = automaton.edges(p);
            let mut both = others.iter().zip(edges);
            known == hash
                && automaton.is_final(p) == is_final
                && others.len() == edges.len()
                && both.all(|(a, b)| a.0 == b.0 && target(p, a.1) == target(q, b.1))
        };
        match table.find(hash, is_same) {
            Some(&(_, p)) => {
                of[q as usize] = p;
                count -= 1;
            }
            None => _ = table.insert_unique(hash, (hash, q), |known| known.0),
        }
    }
    if count == n {
        return Ok(None);
    }
    let mut new_of = vec![NONE; n];
    // That of the start first.
    let start = of[0];
    let others = (0..n as u32).filter(|&q| of[q as usize] == q && q != start);
    let kept = std::iter::once(start).chain(others);
    kept.clone().zip(0..).for_each(|(q, number)| new_of[q as usize] = number);
    let mut out = Automaton::with_capacity(count, automaton.num_edges());
    for q in kept {
        ticks.steps(1 + automaton.edges(q).len())?;
        for &(letter, to) in automaton.edges(q) {
            out.push_edge(letter, new_of[of[to as usize] as usize]);
        }
        out.close_state(automaton.is_final(q));
    }
    if automaton.is_alive() {
        out.set_alive();
    }
    Ok(Some(out))
}

#[inline]
fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(26) ^ word).wrapping_mul(0xf135_7aea_2e62_a9c5)
}

/// All states, each behind those that it leads to, but for cycles.
fn post_order(automaton: &Automaton, ticks: &Ticks) -> Result<Vec<u32>> {
    let n = automaton.len();
    let mut is_met = vec![false; n];
    let mut order = Vec::with_capacity(n);
    let mut path: Vec<(u32, u32)> = Vec::new();
    for root in 0..n as u32 {
        if std::mem::replace(&mut is_met[root as usize], true) {
            continue;
        }
        path.push((root, 0));
        while let Some((q, followed)) = path.last_mut() {
            let mut rest = automaton.edges(*q)[*followed as usize..].iter().zip(1..);
            match rest.find(|(edge, _)| !is_met[edge.1 as usize]) {
                Some((&(_, to), step)) => {
                    *followed += step;
                    ticks.steps(step as usize)?;
                    is_met[to as usize] = true;
                    path.push((to, 0));
                }
                None => {
                    order.push(*q);
                    path.pop();
                }
            }
        }
    }
    Ok(order)
}
