//! Which stacks of a set stand in how many arrays whose items are unique.

use super::{ArrayId, Arrays, Within, items_of};
use crate::budget::Halt;
use crate::grammar::UniqueItems;
use crate::network::{BOTTOM, Network};
use crate::stacks::{Entry, NONE, SetId, StackSets, beneath_first};
use rustc_hash::FxHashMap;

impl Arrays {
    /// What is known of the frames of a set.
    pub(crate) fn within(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
    ) -> Result<Within, Halt> {
        if let Some(known) = self.within.get(&set) {
            return Ok(known.clone());
        }
        let mut steps = 0;
        let known = |set| self.within.contains_key(&set);
        let listed = beneath_first(sets, set, known, &mut |more| {
            steps += more;
            Ok(())
        })?;
        sets.spend(steps)?;
        for set in listed {
            let mut counts: Vec<u32> = Vec::new();
            let (mut items, mut fewest) = (UniqueItems::ENDLESS, u32::MAX);
            for (top, beneath) in sets.entries(set) {
                let below = self.within.get(&beneath).filter(|_| top != BOTTOM);
                let guard = items_of(network, top);
                match below {
                    None => counts.push(u32::from(guard.is_some())),
                    Some(below) => {
                        let more = u32::from(guard.is_some());
                        counts.extend(below.counts.iter().map(|count| count + more));
                        fewest = fewest.min(below.fewest);
                    }
                }
                let here = guard.or(below.filter(|below| below.any).map(|below| below.items));
                items = here.map_or(items, |here| items.both(here));
                fewest = guard.map_or(fewest, |guard| fewest.min(guard.least).min(guard.strings));
            }
            counts.sort_unstable();
            counts.dedup();
            let any = counts.iter().any(|&count| count > 0);
            self.within.insert(set, Within { any, counts: counts.into(), items, fewest });
        }
        Ok(self.within[&set].clone())
    }

    /// The stacks of a set that have a number of such frames in a range.
    pub(in crate::unique) fn part(
        &mut self,
        network: &Network,
        sets: &mut StackSets,
        set: SetId,
        (least, most): (u32, u32),
    ) -> Result<SetId, Halt> {
        // For each set that is met with a range its part: all, none, or what is made of those beneath.
        let mut parts: FxHashMap<(SetId, u32, u32), SetId> = FxHashMap::default();
        let mut work = vec![(set, least, most, false)];
        while let Some((set, least, most, is_ready)) = work.pop() {
            if parts.contains_key(&(set, least, most)) {
                continue;
            }
            sets.spend(1)?;
            let counts = self.within(network, sets, set)?.counts;
            let is_in = |count: &u32| (least..=most).contains(count);
            if counts.iter().all(is_in) || !counts.iter().any(is_in) {
                parts.insert((set, least, most), if is_in(&counts[0]) { set } else { NONE });
                continue;
            }
            let below = |top: u32| match items_of(network, top) {
                Some(_) => most.checked_sub(1).map(|most| (least.saturating_sub(1), most)),
                None => Some((least, most)),
            };
            let entries = sets.entries(set);
            if !is_ready {
                work.push((set, least, most, true));
                let entries = entries.iter().filter(|entry| entry.0 != BOTTOM);
                work.extend(entries.filter_map(|&(top, beneath)| {
                    below(top).map(|(least, most)| (beneath, least, most, false))
                }));
                continue;
            }
            let mut kept: Vec<Entry> = Vec::new();
            for (top, beneath) in entries {
                let part = match (top, below(top)) {
                    (BOTTOM, _) if least == 0 => Some(beneath),
                    (BOTTOM, _) | (_, None) => None,
                    (_, Some((least, most))) => parts.get(&(beneath, least, most)).copied(),
                };
                kept.extend(
                    part.filter(|&part| top == BOTTOM || part != NONE).map(|part| (top, part)),
                );
            }
            let part = if kept.is_empty() { NONE } else { sets.add(&kept)? };
            parts.insert((set, least, most), part);
        }
        Ok(parts[&(set, least, most)])
    }

    /// Whether all stacks of a text are in so many arrays, and these are those of one place.
    pub(in crate::unique) fn is_alone(&self, id: ArrayId, depth: usize) -> bool {
        !self.place(id).is_one_of_many && self.within_of(id).are(depth as u32)
    }
}
