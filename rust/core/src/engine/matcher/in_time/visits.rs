//! What a walk over the trie collects where items are unique.

use crate::engine::matcher::in_time::walk::VisitInTime;
use crate::stacks::SetId;
use crate::unique::Glance;
use rustc_hash::FxHashMap;

/// Collects about so many tokens with the fewest that complete the stacks behind each.
pub(super) struct Collect(pub(super) Vec<(u32, u32, SetId)>, pub(super) usize);

impl VisitInTime for Collect {
    type Place = ();

    fn step(&mut self, (): &(), _byte: u8) {}

    fn whole(&mut self, (): &()) {}

    fn found(&mut self, (): &(), tokens: &[u32], after: SetId, fewest: u32) -> bool {
        self.0.extend(tokens.iter().map(|&token| (fewest, token, after)));
        self.0.len() < self.1
    }
}

/// Entries, each behind the fewest tokens that complete the stacks behind it.
#[derive(Default)]
pub(super) struct ByFewest(pub(super) Vec<(u32, u32)>);

impl VisitInTime for ByFewest {
    type Place = ();

    fn step(&mut self, (): &(), _byte: u8) {}

    fn whole(&mut self, (): &()) {}

    fn found(&mut self, (): &(), entries: &[u32], _after: SetId, fewest: u32) -> bool {
        self.0.extend(entries.iter().map(|&entry| (fewest, entry)));
        true
    }
}

/// Entries by the stacks behind them.
#[derive(Default)]
pub(super) struct Behind(pub(super) FxHashMap<SetId, Vec<u32>>);

impl VisitInTime for Behind {
    type Place = ();

    fn step(&mut self, (): &(), _byte: u8) {}

    fn whole(&mut self, (): &()) {}

    fn found(&mut self, (): &(), entries: &[u32], after: SetId, _fewest: u32) -> bool {
        self.0.entry(after).or_default().extend_from_slice(entries);
        true
    }
}

/// Sorts the tokens of a row by what is to be asked about them.
pub(super) struct Sort<'r> {
    pub(super) arrays: &'r crate::unique::Arrays,
    pub(super) row: &'r [i32],
    /// Tokens that lead to the same stacks, and to the same kind of place.
    pub(super) alike: FxHashMap<(SetId, u8), (Glance, Vec<u32>)>,
    /// The others.
    pub(super) doubtful: Vec<u32>,
}

impl VisitInTime for Sort<'_> {
    type Place = Glance;

    fn step(&mut self, from: &Glance, byte: u8) -> Glance {
        self.arrays.glance_on(from, byte)
    }

    fn whole(&mut self, start: &Glance) -> Glance {
        match start {
            Glance::Outside => Glance::Outside,
            _ => Glance::Unknown,
        }
    }

    fn found(&mut self, place: &Glance, tokens: &[u32], after: SetId, _fewest: u32) -> bool {
        let row = self.row;
        let allowed = tokens.iter().copied();
        let allowed = allowed.filter(|&id| row[id as usize >> 5] >> (id & 31) & 1 != 0);
        match place.kind() {
            None => self.doubtful.extend(allowed),
            Some(kind) => {
                let group = self.alike.entry((after, kind));
                group.or_insert_with(|| (place.clone(), Vec::new())).1.extend(allowed);
            }
        }
        true
    }
}
