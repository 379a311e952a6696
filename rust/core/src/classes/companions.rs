//! What always stands beside a state: the frames that the displacement automaton starts from.
//!
//! Taking each network state that a byte can reach as a frame alone is sound but too fine. Inside
//! the keyword `yield`, where a name could stand as well, the keyword's state never occurs
//! without the stack of the name, and what the keyword cannot read (` )`) the name can. So a
//! frame is not the bare state `t` but `U(t)`, the set of stacks, above the same rest, that are
//! there whenever `t` is: every set of stacks that the network can have is then still a union of
//! such sets, each above its own rest, which is all that losslessness needs
//! (docs/design/classes.md, "Frames and their companions").
//!
//! `U(t)` is the intersection, over all byte edges `q -> t`, of what that byte makes of `U(q)`;
//! a state that a call starts at or returns to may stand alone. The greatest solution is found by
//! descending from "everything".

use crate::budget::{Halt, Interrupt};
use crate::limits::Limits;
use crate::network::{BOTTOM, Network, contains};
use crate::stacks::{NONE, REST, SetId, Stepper};

/// Sets with more tops than this, or deeper, are given up for the bare state.
const MAX_TOPS: usize = 24;
const MAX_DEPTH: u32 = 10;
/// States and calls that are looked at between two looks at the interrupt.
const CALLS_BETWEEN_CHECKS: usize = 1 << 14;
/// Times that one set may shrink before it is given up.
const MAX_ROUNDS: u8 = 16;

/// For each state that a byte can reach, and the start of the text, the stacks that are there
/// whenever the state is; `None` for the other states. The bare rest is among them where the
/// state is final. With `are_alone` these are the states alone: what stands beside them changes between tokens, where
/// rules count tokens.
pub(crate) fn companions(
    network: &Network,
    are_alone: bool,
    stepper: &mut Stepper<&Network>,
    limits: &Limits,
    interrupt: &Interrupt,
) -> Result<Vec<Option<SetId>>, Halt> {
    let n = network.len();
    let mut found: Vec<Option<SetId>> = vec![None; n];
    let mut rounds = vec![0u8; n];
    let mut reached = vec![false; n];
    let mut work: Vec<u32> = Vec::new();
    let mut alone = |q: u32, found: &mut Vec<Option<SetId>>, stepper: &mut Stepper<&Network>| {
        if found[q as usize].is_none() {
            found[q as usize] = Some(bare(network, stepper, q)?);
            work.push(q);
        }
        Ok::<(), Halt>(())
    };
    alone(network.start(), &mut found, stepper)?;
    reached[network.start() as usize] = true;
    let mut calls = 0;
    for q in 0..n as u32 {
        if are_alone || network.is_cut(q) {
            alone(q, &mut found, stepper)?;
        }
        calls += network.calls(q).len() + 1;
        if calls > CALLS_BETWEEN_CHECKS {
            calls = 0;
            interrupt.check()?;
        }
        for call in network.calls(q).iter() {
            alone(call.start, &mut found, stepper)?;
            alone(call.to, &mut found, stepper)?;
        }
    }
    // States that may stand alone stay alone, whatever leads to them.
    let fixed: Vec<bool> = found.iter().map(Option::is_some).collect();
    while let Some(q) = work.pop() {
        stepper.sets.spend(1)?;
        let Some(from) = found[q as usize] else { continue };
        for (class, t) in network.edges(q) {
            let t = t as usize;
            reached[t] = true;
            if fixed[t] {
                continue;
            }
            let after = after(network, stepper, limits, interrupt, (q, from), class)?;
            let after = match after {
                Some(after) => after,
                None => bare(network, stepper, t as u32)?,
            };
            let new = match found[t] {
                None => after,
                Some(old) if old == after => continue,
                Some(old) if rounds[t] < MAX_ROUNDS => stepper.sets.intersection(old, after)?,
                Some(_) => bare(network, stepper, t as u32)?,
            };
            if found[t] != Some(new) {
                rounds[t] = rounds[t].saturating_add(1);
                found[t] = Some(new);
                work.push(t as u32);
            }
        }
    }
    for (set, reached) in found.iter_mut().zip(reached) {
        if !reached {
            *set = None;
        }
    }
    Ok(found)
}

/// What one byte makes of the stacks beside `q`; `None` where that is the bare state to which the
/// byte leads, or too much.
fn after(
    network: &Network,
    stepper: &mut Stepper<&Network>,
    limits: &Limits,
    interrupt: &Interrupt,
    (q, from): (u32, SetId),
    class: u8,
) -> Result<Option<SetId>, Halt> {
    let entries = stepper.sets.list(from);
    let only = entries.len() == 1 || (entries.len() == 2 && entries[1].0 == BOTTOM);
    let calls = network.calls(q).iter().any(|call| contains(network.first(call.start), class));
    if only && !calls {
        return Ok(None); // by far the most: a letter inside a literal
    }
    // Too much, or too deep a chain of calls: the bare state is always sound.
    let meter = &mut stepper.sets.meter;
    let left = limits.total_work(network.len()).saturating_sub(meter.spent());
    meter.allow(limits.token_work(network.len()).min(left), interrupt);
    let after = stepper.step(from, class);
    stepper.sets.meter.allow(u64::MAX, interrupt);
    let after = match after {
        Err(halt) if halt.is_interrupt() => return Err(halt),
        after => after.ok(),
    };
    let sets = &stepper.sets;
    let is_small =
        |&set: &SetId| sets.depth(set) <= MAX_DEPTH && sets.entries(set).len() <= MAX_TOPS;
    Ok(after.filter(is_small))
}

/// The state alone, and the bare rest where it is final.
fn bare(network: &Network, stepper: &mut Stepper<&Network>, q: u32) -> Result<SetId, Halt> {
    let mut set = NONE;
    if network.stays(q) {
        set = stepper.sets.add(&[(q, REST)])?;
    }
    if network.is_final(q) || (q == network.start() && network.accepts_empty()) {
        set = stepper.sets.union(set, REST)?;
    }
    Ok(set)
}
