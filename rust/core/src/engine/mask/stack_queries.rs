//! The way down the stacks: which questions a mask is made of.

use crate::engine::history::View;
use crate::engine::mask::chart_queries::{ChartRoom, ChartWay};
use crate::engine::mask::pending::{AT_IDS, AT_ROOT, NOWHERE, PendingId};
use crate::engine::mask::query::{ALONE, After, MAX_UNDER, NOTHING, OWN, Question};
use crate::network::{BOTTOM, Call, Network, contains};
use crate::stacks::{Entry, REST, SetId, StackSets};
use crate::vocabulary::Trie;
use rustc_hash::FxHashSet;

/// What stands beneath the frames of a question.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Beneath {
    /// The state of the same rule that a call returned to.
    pub(in crate::engine) frame: Option<u32>,
    /// The stacks beneath that.
    pub(in crate::engine) set: SetId,
}

/// A place on the way.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum StackPlace {
    /// The tops of a set.
    Set(SetId),
    /// One frame above a set.
    Frame(u32, SetId),
}

/// Room that is used again and again.
#[derive(Default)]
pub(in crate::engine) struct Room {
    queue: Vec<(StackPlace, PendingId)>,
    seen: FxHashSet<(StackPlace, PendingId)>,
    chart: ChartRoom,
}

impl View<'_> {
    /// How often the network had no room for a set of members.
    pub(in crate::engine) fn refused_sets(self) -> u64 {
        match self {
            View::Stacks(network, ..) => network.refused_sets(),
            View::Chart(..) => 0,
        }
    }

    /// Asks every question on the way down; `answer` says where the frames have been popped, as far as
    /// what stands beneath is to be asked about that.
    pub(in crate::engine) fn walk<E>(
        self,
        trie: &Trie,
        room: &mut Room,
        mut answer: impl FnMut(Question, PendingId) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        match self {
            View::Stacks(network, sets, set) => {
                let answer = |question, pending, _, _| answer(question, pending);
                PlaceQueue::new(network, sets, set, trie, room).walk(answer)
            }
            View::Chart(tables, columns) => {
                ChartWay::new(tables, columns, &mut room.chart).walk(answer)
            }
        }
    }
}

/// Asks every question on the way down from a set of stacks, telling what goes on after it and what stands
/// beneath.
pub(in crate::engine) fn walk_stacks<E>(
    network: &Network,
    (sets, set): (&StackSets, SetId),
    trie: &Trie,
    room: &mut Room,
    answer: impl FnMut(Question, PendingId, After, Beneath) -> Result<PendingId, E>,
) -> Result<(), E> {
    PlaceQueue::new(network, sets, set, trie, room).walk(answer)
}

/// Places, each with the pending nodes to ask it about.
struct PlaceQueue<'a> {
    network: &'a Network,
    sets: &'a StackSets,
    /// The class of the letter before an id, where tokens are asked about by their ids.
    escape: Option<u8>,
    /// Where the way begins: most go no further, so that nothing is to be queued.
    first: SetId,
    room: &'a mut Room,
}

impl<'a> PlaceQueue<'a> {
    fn new(
        network: &'a Network,
        sets: &'a StackSets,
        set: SetId,
        trie: &Trie,
        room: &'a mut Room,
    ) -> Self {
        room.queue.clear();
        room.seen.clear();
        let escape = trie.ids().and(network.alphabet().escape());
        if escape.is_some() {
            room.queue.push((StackPlace::Set(set), AT_IDS));
        }
        Self { network, sets, escape, first: set, room }
    }

    /// What stands beneath a frame that has been popped.
    fn go_on(&mut self, place: StackPlace, pending: PendingId) {
        if pending != NOWHERE
            && place != StackPlace::Set(REST)
            && self.room.seen.insert((place, pending))
        {
            self.room.queue.push((place, pending));
        }
    }

    /// Asks every question on the way; `answer` says where the frames have been popped.
    fn walk<E>(
        mut self,
        mut answer: impl FnMut(Question, PendingId, After, Beneath) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        let mut next = Some((StackPlace::Set(self.first), AT_ROOT));
        while let Some((place, pending)) = next.take().or_else(|| self.room.queue.pop()) {
            match place {
                StackPlace::Frame(state, beneath) => {
                    self.visit((state, beneath), pending, &mut answer)?;
                }
                StackPlace::Set(set) => match self.sets.halves(set) {
                    Some((left, right)) => {
                        let halves = [right, left].map(|half| (StackPlace::Set(half), pending));
                        self.room.queue.extend(halves);
                    }
                    None => {
                        for &entry in self.sets.list(set).iter().filter(|e| e.0 != BOTTOM) {
                            self.visit(entry, pending, &mut answer)?;
                        }
                    }
                },
            }
        }
        Ok(())
    }

    fn visit<E>(
        &mut self,
        (top, beneath): Entry,
        pending: PendingId,
        answer: &mut impl FnMut(Question, PendingId, After, Beneath) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        if pending == AT_IDS
            && let Some(escape) = self.escape
            && !contains(self.network.first(top), escape)
        {
            return Ok(());
        }
        let delegated = self.network.delegated(top);
        if self.network.is_counting(top) && !self.network.counts_narrowly(top) {
            return self.together(top, beneath, pending, answer);
        }
        let beneath_top = After { to: None, rule: Some(self.network.rule_of(top)) };
        // What a set of members does is asked about by the rules that it calls, which are the same for
        // every text.
        let is_set = self.network.as_set(top).is_some();
        if !is_set && (delegated.is_empty() || self.network.has_own(top)) {
            let under = if delegated.is_empty() { ALONE } else { OWN };
            let below = Beneath { frame: None, set: beneath };
            let popped = answer(Question { frame: top, under }, pending, beneath_top, below)?;
            self.go_on(StackPlace::Set(beneath), popped);
        }
        for &call in delegated {
            self.call(call, (beneath_top, beneath), pending, answer)?;
        }
        Ok(())
    }

    /// A delegated call above a set.
    fn call<E>(
        &mut self,
        call: Call,
        (beneath_top, beneath): (After, SetId),
        pending: PendingId,
        answer: &mut impl FnMut(Question, PendingId, After, Beneath) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        let network = self.network;
        let is_apart = network.counts_narrowly(call.start) || network.as_set(call.to).is_some();
        if !network.is_counting(call.start) || is_apart {
            let after = After {
                to: network.stays(call.to).then_some(call.to),
                rule: beneath_top.rule.filter(|_| network.is_final(call.to)),
            };
            let below = Beneath { frame: Some(call.to), set: beneath };
            let question = Question { frame: call.start, under: ALONE };
            let popped = answer(question, pending, after, below)?;
            if network.stays(call.to) {
                self.go_on(StackPlace::Frame(call.to, beneath), popped);
            }
            if network.is_final(call.to) {
                self.go_on(StackPlace::Set(beneath), popped);
            }
            return Ok(());
        }
        if network.stays(call.to) {
            let question = Question { frame: call.start, under: call.to };
            let below = Beneath { frame: None, set: beneath };
            let popped = answer(question, pending, beneath_top, below)?;
            self.go_on(StackPlace::Set(beneath), popped);
        }
        if network.is_final(call.to) {
            self.together(call.start, beneath, pending, answer)?;
        }
        Ok(())
    }

    /// A frame that counts, with each that can stand beneath it: it may be complete after any
    /// pass, so that nearly every node of the trie would be left to the frame beneath. Where many
    /// can, the text is so ambiguous that it is better asked about once.
    fn together<E>(
        &mut self,
        frame: u32,
        beneath: SetId,
        pending: PendingId,
        answer: &mut impl FnMut(Question, PendingId, After, Beneath) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        let sets = self.sets;
        let tops = sets.list(beneath);
        let is_set = |top: u32| top != BOTTOM && self.network.as_set(top).is_some();
        if tops.is_empty() || tops.len() > MAX_UNDER || tops.iter().any(|top| is_set(top.0)) {
            let after = After { to: None, rule: Some(self.network.rule_of(frame)) };
            let below = Beneath { frame: None, set: beneath };
            let popped = answer(Question { frame, under: ALONE }, pending, after, below)?;
            self.go_on(StackPlace::Set(beneath), popped);
            return Ok(());
        }
        for &(under, rest) in tops {
            let is_last = under == BOTTOM;
            let last = if is_last { frame } else { under };
            let after = After { to: None, rule: Some(self.network.rule_of(last)) };
            let below = Beneath { frame: None, set: if is_last { REST } else { rest } };
            let question = Question { frame, under: if is_last { NOTHING } else { under } };
            let popped = answer(question, pending, after, below)?;
            if !is_last {
                self.go_on(StackPlace::Set(rest), popped);
            }
        }
        Ok(())
    }
}
