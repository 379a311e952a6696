//! What a network says of states that are sets of members: see [`sets`](super::sets).

use super::Network;
use super::sets::{MemberGuard, Record, SetStates};
use crate::grammar::UniqueItems;
use std::sync::Arc;

impl Network {
    /// A copy without the states that stand for sets of members. Texts that read the copy make these anew,
    /// under numbers of their own. A network without such states returns itself.
    pub(crate) fn fresh(self: &Arc<Self>) -> Arc<Self> {
        match &self.sets {
            None => self.clone(),
            Some(sets) => {
                let (tables, sets) = (self.tables.clone(), Some(Arc::new(sets.fresh())));
                Arc::new(Self { tables, sets })
            }
        }
    }

    /// Bytes of the states that are sets.
    pub(crate) fn set_bytes(&self) -> usize {
        self.sets.as_ref().map_or(0, |sets| sets.bytes())
    }

    /// Whether some rule has guards, so that some states are sets.
    pub fn has_sets(&self) -> bool {
        self.sets.is_some()
    }

    /// How often there was no room for a state that is a set: where the number grows while something
    /// is found out, that is not to be trusted.
    #[inline]
    pub(crate) fn refused_sets(&self) -> u64 {
        self.sets.as_ref().map_or(0, |sets| sets.refused())
    }

    /// How many bytes they may take.
    pub(crate) fn most_set_bytes(&self) -> usize {
        self.sets.as_ref().map_or(0, |sets| sets.most_bytes())
    }

    /// The guards of all rules, in an order that depends on nothing else: the start of the rule, that
    /// of the rule that is called, and what is asked or added.
    pub(super) fn guards(&self) -> Vec<(u32, u32, MemberGuard)> {
        let rules = self.sets.iter().flat_map(|sets| sets.rules().values());
        let mut out: Vec<(u32, u32, MemberGuard)> = rules
            .flat_map(|rule| {
                let guards = rule.guards.iter();
                guards.map(|(&callee, guard)| (rule.start, callee, guard.clone()))
            })
            .collect();
        out.sort_unstable_by_key(|guard| (guard.0, guard.1));
        out
    }

    /// The guards as bytes.
    pub(super) fn guards_into(&self, out: &mut Vec<u8>) {
        for (start, callee, guard) in self.guards() {
            let (kind, members) = match &guard {
                MemberGuard::Adds(member) => (0, std::slice::from_ref(member).to_vec()),
                MemberGuard::Unique(items) => (2, items.key().to_vec()),
                MemberGuard::Needs(set) => {
                    let words = set.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]);
                    (1, words.collect())
                }
            };
            for number in [start, callee, kind, members.len() as u32].into_iter().chain(members) {
                out.extend(number.to_le_bytes());
            }
        }
    }

    /// A state that is a set, for one that is.
    #[inline]
    pub(super) fn set_state(&self, state: u32) -> Option<(&SetStates, &Record)> {
        let sets = self.sets.as_ref().filter(|_| state >= self.counters.end())?;
        Some((sets, sets.get(state)))
    }

    /// For a state that is a set, the state without guards and the members that were read.
    pub(crate) fn as_set(&self, state: u32) -> Option<(u32, &[u64])> {
        self.set_state(state).map(|(_, set)| (set.listed, &*set.read))
    }

    /// For a state that is a set, the state without guards; else the state itself.
    #[inline]
    pub(crate) fn unguarded(&self, state: u32) -> u32 {
        self.set_state(state).map_or(state, |(_, set)| set.listed)
    }

    /// What is known of all arrays whose items are unique, where nothing but such arrays makes states that
    /// are sets.
    pub(crate) fn only_unique_items(&self) -> Option<UniqueItems> {
        let rules = self.sets.as_ref()?.rules().values();
        let mut guards = rules.flat_map(|rule| rule.guards.values());
        guards.try_fold(UniqueItems::ENDLESS, |all, guard| match guard {
            MemberGuard::Unique(items) => Some(all.both(*items)),
            MemberGuard::Adds(_) | MemberGuard::Needs(_) => None,
        })
    }

    /// Whether the items of some arrays are unique.
    pub(crate) fn has_unique_items(&self) -> bool {
        self.sets.as_ref().is_some_and(|sets| !sets.unique().is_empty())
    }

    /// For a state of the rule of an array whose items are unique, what they are.
    pub(crate) fn unique_items(&self, state: u32) -> Option<UniqueItems> {
        let unique = self.sets.as_ref()?.unique();
        if unique.is_empty() {
            return None;
        }
        let (_, set) = self.set_state(state)?;
        unique.get(&self.rule_of(set.listed)).copied()
    }

    /// The number of a state that is a set; `None` where its rule has none with such members, or there is
    /// no room.
    pub(crate) fn set_number(&self, listed: u32, read: &[u64]) -> Option<u32> {
        let sets = self.sets.as_ref()?;
        let rule = sets.rules().get(self.rule_of.get(listed as usize)?)?;
        let is_known = read.len() == rule.words && !self.listed_calls(listed).is_empty();
        if is_known { sets.restored(listed, read.into()) } else { None }
    }

    /// The number here of a state of `other`, which is this network with other sets; `None` where there is
    /// no room.
    pub(crate) fn set_of(&self, other: &Self, state: u32) -> Option<u32> {
        match other.set_state(state) {
            None => Some(state),
            Some((_, set)) => self.set_number(set.listed, &set.read),
        }
    }
}
