//! Members in any order, each at most once: states that are sets.
//!
//! Design: docs/design/counting.md, "Members in any order".
//!
//! A rule with guards ([`crate::grammar::Guard`]) keeps the set of its members that were read. Its
//! automaton in the tables says what it does with the guards left out. The states of the rule proper are
//! pairs of a state of that automaton and a set. They are numbered past all other states when they are
//! met, and never written out: of the `2^n` sets of `n` members, a text meets `n`.
//!
//! A pair that was looked at has a *record*, the only one of that pair. What a pair leads to has numbers
//! of its own, one for each call, in a block that belongs to the record; such a number stands for a
//! record only once somebody looks at it. So a text pays for the sets that it meets, and not for all
//! that could have come next. Two numbers may stand for one record.
//!
//! A state without calls is an end, where the set no longer matters: pairs lead to the state itself.
//!
//! The numbers are good for one holder: a matcher with its forks, or one that makes answers. So they go
//! with the text for which they were made. Past a bound on bytes a pair has no calls, which is counted in
//! [`SetStates::refused`]; whoever asked looks at the count, and reports an error in place of the
//! result.

use super::{Call, ClassSet, Network};
use crate::grammar::UniqueItems;
use crate::hash::hash_of;
use hashbrown::HashTable;
use parking_lot::RwLock;
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A set of members: bit `m % 64` of word `m / 64` stands for member `m`.
pub(super) type MemberSet = Box<[u64]>;

/// What a call asks of the members that were read, and what it adds.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum MemberGuard {
    Adds(u32),
    Needs(MemberSet),
    /// The items of an array, all of them different: nothing is asked here (see [`crate::unique`]).
    Unique(UniqueItems),
}

/// The guards of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GuardedRule {
    /// The start of its automaton in the tables.
    pub(super) start: u32,
    /// The words of its sets.
    pub(super) words: usize,
    /// By the start of the rule that is called.
    pub(super) guards: FxHashMap<u32, MemberGuard>,
}

/// The rules with guards by their numbers.
pub(super) type GuardedRules = FxHashMap<u32, GuardedRule>;

/// A state of the tables with the members that were read.
#[derive(Debug)]
pub(super) struct Record {
    pub(super) listed: u32,
    pub(super) read: MemberSet,
    ways: OnceLock<PairMoves>,
}

/// What a pair may do.
#[derive(Debug, Default)]
pub(super) struct PairMoves {
    pub(super) calls: Box<[Call]>,
    pub(super) first: ClassSet,
    /// For each number of the block what it stands for: the state of the tables, the member that is added.
    led_to: Box<[(u32, Option<u32>)]>,
    /// The record of each.
    records: Box<[OnceLock<u32>]>,
    /// Whether there was no room for the calls.
    is_cut: bool,
}

/// Records of the first page; each further page has as many as all before it, and one page more.
const FIRST_PAGE: u32 = 64;
const PAGES: usize = 26;

/// The states of rules with guards that one holder has met.
pub(super) struct SetStates {
    /// The number of the first state: past all others of the network. The starts of the rules come
    /// first, in the order of the rules.
    first: u32,
    rules: Arc<GuardedRules>,
    /// The rules of arrays whose items are unique.
    unique: FxHashMap<u32, UniqueItems>,
    starts: Box<[(u32, OnceLock<u32>)]>,
    most_bytes: usize,
    table: RwLock<Table>,
    /// Records by number. A page stays where it is: what was found is read without a lock.
    pages: [OnceLock<Box<[OnceLock<Record>]>>; PAGES],
    refused: AtomicU64,
}

#[derive(Default)]
struct Table {
    numbers: HashTable<(u64, u32)>,
    count: u32,
    /// Blocks of numbers: the first of each, and the record that they belong to.
    blocks: Vec<(u32, u32)>,
    /// The number of the next block.
    next: u32,
    bytes: usize,
}

impl std::fmt::Debug for SetStates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetStates").field("first", &self.first).finish_non_exhaustive()
    }
}

/// The page of a record, and its place there.
fn place(index: u32) -> (usize, usize) {
    let page = (index / FIRST_PAGE + 1).ilog2();
    (page as usize, (index - FIRST_PAGE * ((1 << page) - 1)) as usize)
}

impl SetStates {
    /// Without states yet but the starts of the rules.
    pub(super) fn new(first: u32, rules: Arc<GuardedRules>, most_bytes: usize) -> Self {
        let mut starts: Vec<(u32, u32)> =
            rules.iter().map(|(&rule, guarded)| (rule, guarded.start)).collect();
        starts.sort_unstable();
        let next = first + starts.len() as u32;
        let items = rules.iter().filter_map(|(&rule, guarded)| {
            let items = guarded.guards.values().find_map(|guard| match guard {
                MemberGuard::Unique(items) => Some(*items),
                _ => None,
            });
            items.map(|items| (rule, items))
        });
        let unique = items.collect();
        Self {
            first,
            rules,
            unique,
            starts: starts.into_iter().map(|(_, start)| (start, OnceLock::new())).collect(),
            most_bytes,
            table: RwLock::new(Table { next, ..Table::default() }),
            pages: [const { OnceLock::new() }; PAGES],
            refused: AtomicU64::new(0),
        }
    }

    /// The same for another holder, who has met nothing yet.
    pub(super) fn fresh(&self) -> Self {
        Self::new(self.first, self.rules.clone(), self.most_bytes)
    }

    /// The rules of arrays whose items are unique.
    #[inline]
    pub(super) fn unique(&self) -> &FxHashMap<u32, UniqueItems> {
        &self.unique
    }

    /// The rules by their numbers.
    pub(super) fn rules(&self) -> &GuardedRules {
        &self.rules
    }

    /// How often there was no room.
    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Notes that there was no room.
    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The greatest number of bytes.
    pub(super) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    /// Bytes held, about.
    pub(super) fn bytes(&self) -> usize {
        self.table.read().bytes
    }

    /// Whether a number is that of a state that was met.
    pub(super) fn is_met(&self, state: u32) -> bool {
        state >= self.first && state < self.table.read().next
    }

    fn record(&self, number: u32) -> &Record {
        let (page, place) = place(number);
        let records = self.pages[page].get().expect("the page of a record");
        records[place].get().expect("a record that was made")
    }

    /// The number of the record of a state that was met.
    fn number_of(&self, state: u32) -> u32 {
        let index = (state - self.first) as usize;
        if let Some((start, number)) = self.starts.get(index) {
            return *number.get_or_init(|| {
                let words = self.rules.values().find(|rule| rule.start == *start);
                let words = words.map_or(0, |rule| rule.words);
                self.intern(*start, vec![0; words].into())
            });
        }
        let (base, owner) = {
            let table = self.table.read();
            table.blocks[table.blocks.partition_point(|block| block.0 <= state) - 1]
        };
        let owner = self.record(owner);
        let ways = owner.ways.get().expect("a block belongs to a record that was looked at");
        let index = (state - base) as usize;
        *ways.records[index].get_or_init(|| {
            let (listed, added) = ways.led_to[index];
            let mut read = owner.read.clone();
            if let Some(member) = added {
                read[member as usize / 64] |= 1 << (member % 64);
            }
            self.intern(listed, read)
        })
    }

    /// A state that was met.
    pub(super) fn get(&self, state: u32) -> &Record {
        self.record(self.number_of(state))
    }

    /// The record of a pair.
    fn intern(&self, listed: u32, read: MemberSet) -> u32 {
        let hash = hash_of(&(listed, &read));
        let mut table = self.table.write();
        let is_same = |&(known, number): &(u64, u32)| {
            known == hash && {
                let record = self.record(number);
                record.listed == listed && record.read == read
            }
        };
        if let Some(&(_, number)) = table.numbers.find(hash, is_same) {
            return number;
        }
        let number = table.count;
        table.count += 1;
        table.bytes += size_of::<Record>() + read.len() * 8 + 17;
        let (page, at) = place(number);
        let page = self.pages[page].get_or_init(|| {
            let records = FIRST_PAGE << page;
            (0..records).map(|_| OnceLock::new()).collect()
        });
        page[at].get_or_init(|| Record { listed, read, ways: OnceLock::new() });
        table.numbers.insert_unique(hash, (hash, number), |known| known.0);
        number
    }

    /// The number of a state that is restored; `None` where there is no room.
    pub(super) fn restored(&self, listed: u32, read: MemberSet) -> Option<u32> {
        // It is what a record leads to that has nothing else to do.
        let owner = self.intern(u32::MAX, [&[u64::from(listed)], &*read].concat().into());
        let record = self.record(owner);
        let number = self.intern(listed, read);
        let mut state = None;
        let ways = record.ways.get_or_init(|| {
            let records: Box<[OnceLock<u32>]> = [OnceLock::from(number)].into();
            let base = self.reserve(owner, 1);
            let calls = base.map(|to| Call { start: 0, to });
            PairMoves { calls: calls.into_iter().collect(), records, ..PairMoves::default() }
        });
        if let [call] = &*ways.calls {
            state = Some(call.to);
        }
        state
    }

    /// Numbers for what a record leads to; `None` where there is no room.
    fn reserve(&self, owner: u32, count: usize) -> Option<u32> {
        let mut table = self.table.write();
        let bytes = count * (size_of::<Call>() + size_of::<(u32, Option<u32>)>() + 8) + 8;
        // The highest bit is left to the bottom of stacks.
        let next = table.next.checked_add(count as u32).filter(|&next| next < 1 << 31)?;
        if table.bytes + bytes > self.most_bytes {
            return None;
        }
        table.bytes += bytes;
        let base = std::mem::replace(&mut table.next, next);
        if count > 0 {
            table.blocks.push((base, owner));
        }
        Some(base)
    }

    /// What a state may do. Where there was no room for that, it is counted each time.
    pub(super) fn ways(&self, network: &Network, state: u32) -> &PairMoves {
        let number = self.number_of(state);
        let record = self.record(number);
        let ways = record.ways.get_or_init(|| self.make(network, number, record));
        if ways.is_cut {
            self.refuse();
        }
        ways
    }

    fn make(&self, network: &Network, number: u32, record: &Record) -> PairMoves {
        let rule = &self.rules[&network.rule_of(record.listed)];
        let mut ways = PairMoves::default();
        let mut calls: Vec<Call> = Vec::new();
        // Calls that lead to the same share a number.
        let mut led_to: Vec<(u32, Option<u32>)> = Vec::new();
        let mut places: FxHashMap<(u32, Option<u32>), u32> = FxHashMap::default();
        for call in network.listed_calls(record.listed) {
            let guard = rule.guards.get(&call.start);
            let adds = match guard {
                Some(guard) if !guard.is_there(&record.read) => continue,
                Some(MemberGuard::Adds(member)) => Some(*member),
                _ => None,
            };
            if guard.is_none() && !leads_on(network, rule, call.to, &record.read) {
                continue;
            }
            let to = match network.listed_calls(call.to) {
                [] => call.to,
                _ => {
                    let next = led_to.len() as u32;
                    let place = *places.entry((call.to, adds)).or_insert(next);
                    if place == next {
                        led_to.push((call.to, adds));
                    }
                    // Numbers are added when there are some.
                    self.first + place
                }
            };
            calls.push(Call { start: call.start, to });
            let first = ways.first.iter_mut().zip(network.first(call.start));
            first.for_each(|(a, b)| *a |= b);
        }
        let Some(base) = self.reserve(number, led_to.len()) else {
            // Whoever asks what comes first goes on to ask for the calls.
            return PairMoves { is_cut: true, first: [u64::MAX; 4], ..PairMoves::default() };
        };
        for call in calls.iter_mut().filter(|call| call.to >= self.first) {
            call.to += base - self.first;
        }
        ways.records = led_to.iter().map(|_| OnceLock::new()).collect();
        ways.led_to = led_to.into();
        ways.calls = calls.into();
        ways
    }
}

/// Whether something can follow where a state of the tables is entered with a set: an end, or a call with
/// a guard that is there. Only along calls without a guard is it looked further.
fn leads_on(network: &Network, rule: &GuardedRule, listed: u32, read: &[u64]) -> bool {
    let mut met = vec![listed];
    let mut next = 0;
    while let Some(&state) = met.get(next) {
        next += 1;
        if network.is_final(state) {
            return true;
        }
        for call in network.listed_calls(state) {
            match rule.guards.get(&call.start) {
                Some(guard) if guard.is_there(read) => return true,
                None if !met.contains(&call.to) => met.push(call.to),
                _ => {}
            }
        }
    }
    false
}

impl MemberGuard {
    /// Whether a call is there where these members were read.
    fn is_there(&self, read: &[u64]) -> bool {
        match self {
            MemberGuard::Adds(member) => read[*member as usize / 64] >> (member % 64) & 1 == 0,
            MemberGuard::Unique(_) => true,
            MemberGuard::Needs(members) => members.iter().zip(read).all(|(a, b)| a & !b == 0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_page_follows_the_one_before() {
        let mut expected = (0, 0);
        for index in 0..100_000 {
            assert_eq!(place(index), expected, "{index}");
            expected.1 += 1;
            if expected.1 == (FIRST_PAGE as usize) << expected.0 {
                expected = (expected.0 + 1, 0);
            }
        }
    }

    #[test]
    fn each_pair_has_one_record() {
        let states = SetStates::new(1_000, Arc::default(), 1 << 20);
        let number =
            |listed: u32, member: u32| states.intern(listed, vec![u64::from(member), 0].into());
        let numbers: Vec<u32> = (0..200).map(|i| number(i % 7, i)).collect();
        assert_eq!(numbers, (0..200).collect::<Vec<_>>());
        assert_eq!((number(3, 3), number(150 % 7, 150)), (3, 150));
        let restored = states.restored(5, vec![9, 9].into()).expect("room");
        assert_eq!(states.restored(5, vec![9, 9].into()), Some(restored));
        assert_eq!((states.get(restored).listed, &*states.get(restored).read), (5, &[9, 9][..]));
        assert!(states.is_met(restored) && !states.is_met(restored + 1) && !states.is_met(999));
    }
}
