//! From the states of a linked network to those of another one of the same parts, but for some free text.

use super::PlacedPart;
use crate::network::{HOLE, Network};
use rustc_hash::FxHashMap;

/// Where states of one network are in another that was linked of the same parts but for those in
/// which free text is read.
pub(crate) struct Moves<'n> {
    from: &'n [PlacedPart],
    to: &'n [PlacedPart],
    /// For each part its place in the other network, and whether it is the same there.
    places: Vec<Option<(usize, bool)>>,
    /// Whether any part is not.
    pub(crate) changed: bool,
}

/// Where a state is in another network.
pub(crate) enum Moved {
    /// In a part that both have.
    Same(u32),
    /// The same, and free text of a part that changed may begin there.
    Before(u32),
    /// Where the free text of a part that changed begins.
    Anew(u32),
}

impl<'n> Moves<'n> {
    /// Between two networks; `None` where they have nothing to do with each other.
    pub(crate) fn between(from: &'n Network, to: &'n Network) -> Option<Self> {
        let (from, to) = (from.linked.as_deref()?, to.linked.as_deref()?);
        let mut out = Self { from, to, places: vec![None; from.len()], changed: false };
        let by_key = to.iter().enumerate().filter_map(|(place, one)| Some((one.part.key?, place)));
        let by_key: FxHashMap<[u8; 32], usize> = by_key.collect();
        for (place, one) in from.iter().enumerate() {
            out.places[place] = one.part.key.and_then(|key| Some((*by_key.get(&key)?, true)));
        }
        // Parts that were made for one network alone are paired from the top down.
        let mut pairs = vec![(from.len() - 1, to.len() - 1)];
        while let Some((old, new)) = pairs.pop() {
            let (old_one, new_one) = (&from[old], &to[new]);
            let is_same = old_one.part.says_the_same(&new_one.part);
            out.places[old] = Some((new, is_same));
            out.changed |= !is_same;
            // Around free text too that comes after a first of its tags.
            if is_same || old_one.part.has_tables_of(&new_one.part) {
                let children = old_one.children.iter().zip(&new_one.children);
                let has_key =
                    |net: &[PlacedPart], child: u32| net[child as usize].part.key.is_some();
                let own = children.filter(|&(&a, &b)| !has_key(from, a) && !has_key(to, b));
                pairs.extend(own.map(|(old, new)| (*old as usize, *new as usize)));
            }
        }
        Some(out)
    }

    /// Whether a state calls a part that changed before it has read anything.
    fn calls_changed(&self, place: usize, state: u32) -> bool {
        let one = &self.from[place];
        let tables = &one.part.tables;
        let (mut work, mut seen) = (vec![state], vec![state]);
        while let Some(state) = work.pop() {
            for call in tables.calls(state).iter() {
                if call.start >= HOLE {
                    let child = one.children[(call.start & !HOLE) as usize] as usize;
                    if self.places[child].is_none_or(|(_, is_same)| !is_same) {
                        return true;
                    }
                } else if !seen.contains(&call.start) {
                    seen.push(call.start);
                    work.push(call.start);
                }
            }
        }
        false
    }

    /// Whether a state does nothing but call free text that changed.
    fn only_calls_changed(&self, place: usize, state: u32) -> bool {
        let one = &self.from[place];
        let calls = one.part.tables.calls(state);
        let is_free = |child: usize| {
            let is_changed = self.places[child].is_some_and(|(_, is_same)| !is_same);
            is_changed && self.from[child].part.key.is_none()
        };
        let is_free =
            |start: u32| start >= HOLE && is_free(one.children[(start & !HOLE) as usize] as usize);
        let tables = &one.part.tables;
        !calls.is_empty()
            && tables.listed(state).is_empty()
            && tables.fallback(state).is_none()
            && calls.iter().all(|call| is_free(call.start))
    }

    /// The state that goes on in the other network as this one does here, where it is in a part that
    /// both have, or where the free text of a part that changed begins anew; `ends` says whether the rule
    /// of the state may end here, so that what stands beneath it goes on too. It is asked only in the second case.
    pub(crate) fn of(
        &self,
        from: &Network,
        state: u32,
        ends: impl FnOnce() -> bool,
    ) -> Option<Moved> {
        let own = |one: &PlacedPart| match from.is_listed(state) {
            true => one.own(state),
            false => one.own_counter(state),
        };
        let (old, local) = self.from.iter().enumerate().find_map(|(at, p)| Some((at, own(p)?)))?;
        let (new, is_same) = self.places[old]?;
        let new = &self.to[new];
        if is_same {
            let moved = new.moved(local);
            let is_before = self.calls_changed(old, local);
            return Some(if is_before { Moved::Before(moved) } else { Moved::Same(moved) });
        }
        let (here, there) = (&self.from[old].part.tables, &new.part.tables);
        let begins_anew = |tables: &Network, state: u32| {
            // Only one that differs from the start falls back.
            let same_edges = tables.listed(state) == tables.listed(tables.start);
            same_edges
                && tables.fallback(state).is_none()
                && *tables.calls(state) == *tables.calls(tables.start)
        };
        let is_before = here.is_listed(local)
            && self.only_calls_changed(old, local)
            && self.from[old].part.has_tables_of(&new.part);
        if is_before {
            return Some(Moved::Before(new.moved(local)));
        }
        if !here.is_listed(local) || !begins_anew(here, local) {
            return None;
        }
        let ends = ends();
        // The start state of a rule with the empty text is not final: `accepts_empty` says it of the rule.
        let may_end =
            |twin: u32| there.is_final(twin) || twin == there.start && there.accepts_empty;
        let is_twin = |&twin: &u32| begins_anew(there, twin) && may_end(twin) == ends;
        (0..there.len() as u32).find(is_twin).map(|twin| Moved::Anew(new.moved(twin)))
    }
}
