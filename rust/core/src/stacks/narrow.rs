//! Stacks that say nothing beside others: after the same passes of the same automaton, one that counted fewer of them
//! can do all that one does which counted more, once no lower bound holds either.
//!
//! Where counts nest and a byte may end a pass or go on with it (`(.{1,80}\n?){1,20}`), a text stands in each pair of
//! counts at once. Of those with the same outer count beneath the least inner count says all, and the least outer one
//! of those beneath the same inner count.

use super::sets::{Entry, SetId};
use super::{LABEL, Stepper};
use crate::budget::Halt;
use crate::network::Network;
use rustc_hash::FxHashSet;
use std::ops::Deref;

/// It is not known what is left of a set.
const UNKNOWN: SetId = SetId::MAX;

/// For each set what is left of it without stacks that say nothing beside others.
#[derive(Default)]
pub(super) struct Narrowed(Vec<SetId>);

impl Narrowed {
    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<SetId>()
    }

    fn get(&self, set: SetId) -> Option<SetId> {
        self.0.get(set as usize).copied().filter(|&known| known != UNKNOWN)
    }

    fn keep(&mut self, set: SetId, narrowed: SetId) {
        let most = set.max(narrowed) as usize + 1;
        if self.0.len() < most {
            self.0.resize(most, UNKNOWN);
        }
        self.0[set as usize] = narrowed;
        self.0[narrowed as usize] = narrowed;
    }
}

impl<N: Deref<Target = Network>> Stepper<N> {
    /// A set without stacks that say nothing beside others, where the network counts.
    pub(super) fn narrow(&mut self, set: SetId) -> Result<SetId, Halt> {
        let Some(narrowed) = &self.narrowed else { return Ok(set) };
        if let Some(known) = narrowed.get(set) {
            return Ok(known);
        }
        // Stacks may be as deep as a text, so what an answer depends on is worked off on a stack too.
        let mut work = vec![set];
        let mut entries = Vec::new();
        while let Some(&set) = work.last() {
            let Some(narrowed) = &mut self.narrowed else { return Ok(set) };
            if narrowed.get(set).is_some() {
                work.pop();
                continue;
            }
            entries.clear();
            self.sets.entries_into(set, &mut entries);
            let before = work.len();
            let mut is_changed = false;
            for (top, beneath) in &mut entries {
                if *top >= LABEL {
                    continue;
                }
                match narrowed.get(*beneath) {
                    Some(known) => {
                        is_changed |= known != *beneath;
                        *beneath = known;
                    }
                    None => work.push(*beneath),
                }
            }
            if work.len() > before {
                continue;
            }
            work.pop();
            is_changed |= drop_needless(&self.network, &mut entries);
            let narrow = if is_changed { self.sets.add(&entries)? } else { set };
            self.sets.spend(1 + entries.len() as u64 / 8)?;
            narrowed.keep(set, narrow);
        }
        Ok(self.narrowed.as_ref().and_then(|narrowed| narrowed.get(set)).unwrap_or(set))
    }
}

/// Drops the entries that another says more than; whether there were any. The entries are sorted, and of one automaton
/// those that counted fewer passes come first.
fn drop_needless(network: &Network, entries: &mut Vec<Entry>) -> bool {
    if entries.len() < 2 {
        return false;
    }
    let before = entries.len();
    let mut met: FxHashSet<(u32, SetId)> = FxHashSet::default();
    entries.retain(|&(top, beneath)| {
        let count = if top < LABEL { network.count_of(top) } else { None };
        count.is_none_or(|count| !count.is_settled || met.insert((count.free, beneath)))
    });
    entries.len() < before
}
