//! Members in any order, as completions read them: the members that are required and not there yet, in the order of
//! the schema, and no others.
//!
//! A completion that could take any members in any order would have a set for each choice; these take as many sets as
//! members are left. Only where a comma has been read and nothing is required any more does a completion read another
//! member: any one.
//!
//! That works for rules of one form ([`MemberOrder`]), which nearly all objects have. Others, such as objects whose
//! conditions change what is required, have no completions of this kind.

use super::sets::{GuardedRule, MemberGuard, MemberSet, SetStates};
use super::{Call, Calls, ClassSet, Network};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What a state of a rule with members reads next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum MemberPlace {
    /// The opening brace.
    Start,
    /// A member: a known one, or another name.
    Name,
    /// What follows another name.
    Between,
    /// A comma, or the closing brace.
    Behind,
    /// Nothing.
    End,
}

/// A rule whose completions are in order. From each state before a name all required members can be read, and
/// behind each member the closing brace, once these were read, or a comma; it makes no difference where. Of a rule
/// that requires none, states may differ in whether a comma follows: where members are counted, the last has none.
#[derive(Debug)]
pub(crate) struct MemberOrder {
    /// The start of the automaton in the tables.
    pub(crate) start: u32,
    needed: MemberSet,
    places: FxHashMap<u32, MemberPlace>,
}

/// A state that is a set of members.
#[derive(Clone, Copy)]
pub(crate) struct MemberState<'n> {
    pub(crate) rule: u32,
    pub(crate) order: &'n MemberOrder,
    /// The state of the tables.
    pub(crate) listed: u32,
    /// The members that were read; of a segment also those that it leaves out.
    pub(crate) read: &'n [u64],
}

/// The rules with members of a network, by their numbers.
pub(super) type MemberOrders = FxHashMap<u32, MemberOrder>;

/// The rules with members of a network; `None` where one has another form.
pub(super) fn member_orders(network: &Network, sets: &SetStates) -> Option<MemberOrders> {
    let orders = sets.rules().iter();
    orders.map(|(&rule, guarded)| Some((rule, MemberOrder::of(network, guarded)?))).collect()
}

impl MemberOrder {
    fn of(network: &Network, rule: &GuardedRule) -> Option<Self> {
        let mut needed: Option<&MemberSet> = None;
        for guard in rule.guards.values() {
            match guard {
                MemberGuard::Unique(_) => return None,
                MemberGuard::Needs(set) if *needed.get_or_insert(set) != set => return None,
                MemberGuard::Needs(_) | MemberGuard::Adds(_) => {}
            }
        }
        let needed = needed.cloned().unwrap_or_else(|| vec![0; rule.words].into());
        let mut out = Self { start: rule.start, needed, places: FxHashMap::default() };
        let mut work = vec![rule.start];
        while let Some(state) = work.pop() {
            if !out.places.contains_key(&state) {
                out.places.insert(state, out.place_of(network, rule, state)?);
                work.extend(network.listed_calls(state).iter().map(|call| call.to));
            }
        }
        let mut known: FxHashMap<MemberPlace, Vec<(u32, u32)>> = FxHashMap::default();
        for (&state, &place) in &out.places {
            let own = out.in_common(network, rule, state)?;
            if out.needs_any() && *known.entry(place).or_insert_with(|| own.clone()) != own {
                return None;
            }
        }
        (out.places[&rule.start] == MemberPlace::Start).then_some(out)
    }

    fn place_of(&self, network: &Network, rule: &GuardedRule, state: u32) -> Option<MemberPlace> {
        let calls = network.listed_calls(state);
        let is_end = calls.is_empty();
        if network.edges(state).next().is_some() || network.is_final(state) != is_end {
            return None;
        }
        let mut place = match state == rule.start {
            true => MemberPlace::Start,
            false if is_end => MemberPlace::End,
            false => MemberPlace::Between,
        };
        for call in calls {
            let guarded = match rule.guards.get(&call.start) {
                Some(MemberGuard::Adds(_)) => MemberPlace::Name,
                Some(MemberGuard::Needs(_)) => MemberPlace::Behind,
                Some(MemberGuard::Unique(_)) => return None,
                None => continue,
            };
            if !matches!(place, MemberPlace::Between) && place != guarded {
                return None;
            }
            place = guarded;
        }
        Some(place)
    }

    /// What all states of a place have in common: of a state before a name the calls of required members, of one behind
    /// a member all calls; `None` where a call leads elsewhere than to the place that follows, or one is missing.
    fn in_common(
        &self,
        network: &Network,
        rule: &GuardedRule,
        state: u32,
    ) -> Option<Vec<(u32, u32)>> {
        let place = self.places[&state];
        let mut out = Vec::new();
        let mut read: Vec<u64> = vec![0; rule.words];
        let (mut has_comma, mut has_end) = (false, false);
        for call in network.listed_calls(state) {
            let to = self.places[&call.to];
            let follows = match (place, rule.guards.get(&call.start)) {
                (MemberPlace::Name, Some(MemberGuard::Adds(member))) => {
                    let (word, bit) = (*member as usize / 64, 1 << (member % 64));
                    read[word] |= bit;
                    out.extend((self.needed[word] & bit != 0).then_some((*member, call.start)));
                    to == MemberPlace::Behind
                }
                (MemberPlace::Name, _) => to == MemberPlace::Between,
                (MemberPlace::Behind, Some(_)) => {
                    has_end = true;
                    out.push((0, call.start));
                    to == MemberPlace::End
                }
                (MemberPlace::Behind, None) => {
                    has_comma = true;
                    out.push((1, call.start));
                    to == MemberPlace::Name
                }
                (MemberPlace::Between, _) => to == MemberPlace::Behind,
                (MemberPlace::Start, _) => matches!(to, MemberPlace::Name | MemberPlace::End),
                (MemberPlace::End, _) => false,
            };
            if !follows {
                return None;
            }
        }
        let has_all = match place {
            MemberPlace::Name => {
                self.needed.iter().zip(&read).all(|(needed, read)| needed & !read == 0)
            }
            MemberPlace::Behind if self.needs_any() => has_comma,
            MemberPlace::Behind => has_end,
            _ => true,
        };
        out.sort_unstable();
        has_all.then_some(out)
    }

    /// Whether a member is required.
    fn needs_any(&self) -> bool {
        self.needed.iter().any(|&word| word != 0)
    }

    /// Whether members were left out, so that a set is only a part of those of an object.
    fn is_segment(&self, read: &[u64]) -> bool {
        read.len() > self.needed.len()
    }

    /// The set of a segment of some members.
    fn segment(&self, members: &[u32]) -> MemberSet {
        let mut read = self.needed.to_vec();
        members.iter().for_each(|member| read[*member as usize / 64] &= !(1 << (member % 64)));
        read.push(0);
        read.into()
    }

    /// A set with another member.
    fn added(&self, read: &[u64], member: u32) -> MemberSet {
        let mut read: MemberSet = read.into();
        read[member as usize / 64] |= 1 << (member % 64);
        read
    }

    /// The required members of a set.
    fn needed_of(&self, read: &[u64]) -> MemberSet {
        self.needed.iter().zip(read).map(|(a, b)| a & b).collect()
    }

    /// No members.
    pub(crate) fn nothing(&self) -> MemberSet {
        vec![0; self.needed.len()].into()
    }

    /// Whether this member is required.
    pub(crate) fn needs(&self, member: u32) -> bool {
        self.needed[member as usize / 64] >> (member % 64) & 1 == 1
    }

    /// Members have numbers below this one.
    pub(crate) fn num_members(&self) -> usize {
        64 * self.needed.len()
    }

    /// The place of a state of the tables.
    pub(crate) fn place(&self, listed: u32) -> MemberPlace {
        self.places.get(&listed).copied().unwrap_or(MemberPlace::End)
    }

    /// The states of the tables that are some place.
    pub(crate) fn states(&self, place: MemberPlace) -> impl Iterator<Item = u32> + '_ {
        let places = self.places.iter();
        places.filter(move |known| *known.1 == place).map(|(&state, _)| state)
    }

    /// The members that are required and not there yet, ascending.
    pub(crate) fn left(&self, read: &[u64]) -> impl Iterator<Item = u32> + '_ {
        let words: Vec<u64> = self.needed.iter().zip(read).map(|(a, b)| a & !b).collect();
        words.into_iter().zip(0u32..).flat_map(|(word, at)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * 64 + bit)
        })
    }
}

impl Network {
    /// The rules whose states are sets of members, if completions of all of them are in order; `None` also where
    /// there are no such rules.
    pub(crate) fn member_orders(&self) -> Option<&FxHashMap<u32, MemberOrder>> {
        let sets = self.sets.as_ref()?;
        self.tables.member_orders.get_or_init(|| member_orders(self, sets).map(Arc::new)).as_deref()
    }

    /// Whether completions know what to make of the states that are sets: there are none, all are of arrays whose
    /// items are unique, or members are read in order.
    pub(crate) fn counts_sets(&self) -> bool {
        let counts = || self.only_unique_items().is_some() || self.member_orders().is_some();
        !self.has_sets() || counts()
    }

    /// The member that a call adds.
    pub(crate) fn adds(&self, rule: u32, call: &Call) -> Option<u32> {
        match self.sets.as_ref()?.rules().get(&rule)?.guards.get(&call.start) {
            Some(MemberGuard::Adds(member)) => Some(*member),
            _ => None,
        }
    }

    /// A state that is a set of members, if completions of these are in order.
    pub(crate) fn as_members(&self, state: u32) -> Option<MemberState<'_>> {
        let (listed, read) = self.as_set(state)?;
        let rule = self.rule_of(listed);
        let order = self.member_orders()?.get(&rule)?;
        Some(MemberState { rule, order, listed, read })
    }

    /// The calls of a state that a completion may make.
    ///
    /// Members that are left are a *segment*, a callee of its own: its halves are segments too, and sets that differ in
    /// few members have most of them in common.
    pub(crate) fn calls_to_end(&self, state: u32) -> Calls<'_> {
        let (Some(found), Some(sets)) = (self.as_members(state), &self.sets) else {
            return self.calls(state);
        };
        let MemberState { rule, order, listed, read } = found;
        let left: Vec<u32> = order.left(read).collect();
        let is_segment = order.is_segment(read);
        let listed_calls = self.listed_calls(listed).iter();
        let segment = |state: u32, members: &[u32]| sets.restored(state, order.segment(members));
        let calls: Option<Box<[Call]>> = match (order.place(listed), &*left) {
            (MemberPlace::Name, [first, ..]) => {
                let added = order.added(read, *first);
                let to = |call: &Call| match is_segment {
                    true => order.states(MemberPlace::End).next(),
                    false => sets.restored(call.to, added.clone()),
                };
                let calls = listed_calls.filter(|call| self.adds(rule, call) == Some(*first));
                calls.map(|call| Some(Call { start: call.start, to: to(call)? })).collect()
            }
            (MemberPlace::Behind, []) => {
                let close = listed_calls.filter(|call| order.place(call.to) == MemberPlace::End);
                Some(close.copied().collect())
            }
            (MemberPlace::Behind, [_]) if is_segment => {
                let commas = listed_calls.filter(|call| order.place(call.to) == MemberPlace::Name);
                let call =
                    |call: &Call| Some(Call { start: call.start, to: segment(call.to, &left)? });
                commas.map(call).collect()
            }
            (MemberPlace::Behind, [first, .., last]) if is_segment => {
                let bit = (first ^ last).ilog2();
                let (one, other) =
                    left.split_at(left.partition_point(|member| member >> bit & 1 == 0));
                let call =
                    || Some(Call { start: segment(listed, one)?, to: segment(listed, other)? });
                call().map(|call| [call].into())
            }
            (MemberPlace::Behind, all) => {
                let to = sets.restored(listed, order.needed.clone());
                let call = || Some(Call { start: segment(listed, all)?, to: to? });
                call().map(|call| [call].into())
            }
            _ => return self.calls(state),
        };
        if calls.is_none() {
            sets.refuse();
        }
        Calls::Several(calls.unwrap_or_default())
    }

    /// The classes that a completion may read first in a state, and maybe others.
    pub(crate) fn first_to_end(&self, state: u32) -> &ClassSet {
        match self.as_members(state) {
            Some(found) => &self.first[found.listed as usize],
            None => self.first(state),
        }
    }

    /// Whether a state is a part of what a completion reads of an object, behind which the object goes on.
    pub(crate) fn is_segment(&self, state: u32) -> bool {
        self.as_members(state).is_some_and(|found| found.order.is_segment(found.read))
    }

    /// The state as which completions count a state of `other`, which is this network with other sets: a set of
    /// members has one number. Items of an array may repeat: theirs is the state without guards. `None` where there
    /// is no room.
    pub(crate) fn counted_as(&self, other: &Self, state: u32) -> Option<u32> {
        match other.as_members(state) {
            Some(MemberState { order, read, .. }) if order.is_segment(read) => Some(state),
            Some(MemberState { order, listed, read, .. }) => {
                // Which members are there that are not required matters where one of them has to come.
                let matters =
                    order.place(listed) == MemberPlace::Name && order.left(read).next().is_none();
                let read = if matters { read.into() } else { order.needed_of(read) };
                self.sets.as_ref()?.restored(listed, read)
            }
            None => Some(other.unguarded(state)),
        }
    }
}
