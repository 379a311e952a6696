//! What can be read behind each rule (FOLLOW of Aho, Sethi and Ullman), in byte classes.

use super::strings::Cuts;
use crate::budget::{Halt, Meter};
use crate::network::{ClassSet, Network, add_all, insert};

/// For each rule the classes that can be read next where it is complete.
pub(super) fn follow(network: &Network, meter: &mut Meter) -> Result<Vec<ClassSet>, Halt> {
    let mut follow: Vec<ClassSet> = vec![[0; 4]; network.num_rules()];
    let mut passed: Vec<Vec<u32>> = vec![Vec::new(); network.num_rules()];
    let mut note = |rule: u32, called: u32, first: &ClassSet, is_final: bool| {
        // Charts read the rule as it was written.
        for called in [called, network.as_written(called)] {
            add_all(&mut follow[called as usize], first);
            if is_final && passed[rule as usize].last() != Some(&called) {
                passed[rule as usize].push(called);
            }
        }
    };
    for state in 0..network.len() as u32 {
        meter.spend(1 + network.calls(state).len() as u64 / 8)?;
        for call in network.calls(state).iter() {
            let (rule, called) = (network.rule_of(state), network.rule_of(call.start));
            note(rule, called, network.first(call.to), network.is_final(call.to));
        }
    }
    for (rule, body) in network.repetitions() {
        // Another pass may follow, and so may what follows the repetition.
        note(rule, network.rule_of(body), network.first(body), true);
    }
    let mut work: Vec<u32> = (0..network.num_rules() as u32).collect();
    while let Some(rule) = work.pop() {
        let own = follow[rule as usize];
        meter.spend(1 + passed[rule as usize].len() as u64 / 8)?;
        for &called in &passed[rule as usize] {
            let known = &mut follow[called as usize];
            if own.iter().zip(&*known).any(|(own, known)| own & !known != 0) {
                add_all(known, &own);
                work.push(called);
            }
        }
    }
    Ok(follow)
}

/// Between which letters a frame can be left within a token, given what can be read behind each rule. A letter that
/// leads to a final state of its rule ends each frame that is left there, since calls read at least one letter.
///
/// # Errors
/// Those of the meter.
pub(super) fn cuts(
    network: &Network,
    follow: &[ClassSet],
    meter: &mut Meter,
) -> Result<Cuts, Halt> {
    if network.has_sets() || network.counts_tokens() {
        return Ok(Cuts::ALL);
    }
    let mut cuts = Cuts { last: [0; 4], next: [0; 4] };
    follow.iter().for_each(|next| add_all(&mut cuts.next, next));
    meter.spend(network.len() as u64)?;
    for state in 0..network.len() as u32 {
        let leaving = network.listed(state).iter().filter(|edge| network.is_final(edge.1));
        leaving.for_each(|edge| insert(&mut cuts.last, edge.0));
    }
    Ok(cuts)
}
