//! The way down a chart: which questions a mask is made of, where places stand for stacks.
//!
//! A frame is a state and the places where its rule began; beneath it stand all who called the rule
//! there. Frames with one state go on together, for all places at once. In networks that only charts
//! can read, frames that something left-recursive can follow are left out (see `chart_walk`).

use crate::chart::{Columns, Tables};
use crate::engine::mask::pending::{AT_ROOT, NOWHERE, PendingId};
use crate::engine::mask::query::{ALONE, MAX_UNDER, NOTHING, OWN, Question};
use crate::network::Network;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The places where a rule began: a row of the room.
type Row = usize;

/// What is still to be asked about.
#[derive(Clone, Copy)]
enum Ask {
    /// A frame.
    Frame(u32, Row),
    /// A frame that counts, with each that can stand beneath it: where the rule of that was called.
    Counting(u32, u32, Row),
    /// What stands beneath a rule that began at these places.
    Beneath(u32, Row),
}

/// Room that is used again and again.
#[derive(Default)]
pub(in crate::engine) struct ChartRoom {
    queue: Vec<(Ask, PendingId)>,
    /// For each state, by what was pending, the places that it was asked about with.
    seen: FxHashMap<(u32, PendingId), Row>,
    words: Vec<u64>,
    /// Words of a row.
    stride: usize,
    /// Who called a rule, while they are collected.
    callers: Vec<(u32, Row)>,
}

impl ChartRoom {
    fn row(&mut self) -> Row {
        let row = self.words.len();
        self.words.resize(row + self.stride, 0);
        row
    }
}

/// The way down from the last of some columns.
pub(in crate::engine) struct ChartWay<'a> {
    network: &'a Network,
    tables: &'a Tables<Arc<Network>>,
    columns: Columns<'a>,
    room: &'a mut ChartRoom,
}

impl<'a> ChartWay<'a> {
    pub(in crate::engine) fn new(
        tables: &'a Tables<Arc<Network>>,
        columns: Columns<'a>,
        room: &'a mut ChartRoom,
    ) -> Self {
        room.queue.clear();
        room.seen.clear();
        room.words.clear();
        room.stride = columns.len().div_ceil(64);
        // What charts alone can read on from nobody asks about.
        let tops = columns.tip().states();
        for (state, first, words) in tops.filter(|top| !tables.network.needs_chart(top.0)) {
            let row = room.row();
            room.words[row + first..row + first + words.len()].copy_from_slice(words);
            room.queue.push((Ask::Frame(state, row), AT_ROOT));
        }
        Self { network: &tables.network, tables, columns, room }
    }

    /// Asks every question on the way; `answer` says where the frames have been popped.
    pub(in crate::engine) fn walk<E>(
        mut self,
        mut answer: impl FnMut(Question, PendingId) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        while let Some((ask, pending)) = self.room.queue.pop() {
            match ask {
                Ask::Frame(state, row) => {
                    if let Some(new) = self.unseen(state, row, pending) {
                        self.visit(state, new, pending, &mut answer)?;
                    }
                }
                Ask::Counting(state, rule, row) => {
                    self.together(state, rule, row, pending, &mut answer)?;
                }
                Ask::Beneath(rule, row) => {
                    for index in 0..self.collect(rule, row) {
                        let (to, row) = self.room.callers[index];
                        if self.network.stays(to) && !self.network.needs_chart(to) {
                            self.room.queue.push((Ask::Frame(to, row), pending));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Those of the places that the state was not asked about with; `None` where there are none.
    fn unseen(&mut self, state: u32, row: Row, pending: PendingId) -> Option<Row> {
        let stride = self.room.stride;
        let Some(&seen) = self.room.seen.get(&(state, pending)) else {
            // A row of its own: others are asked about with the row as it is.
            let seen = self.room.row();
            self.room.words.copy_within(row..row + stride, seen);
            self.room.seen.insert((state, pending), seen);
            return Some(row);
        };
        let new = self.room.row();
        let mut any = 0;
        for i in 0..stride {
            let word = self.room.words[row + i] & !self.room.words[seen + i];
            self.room.words[new + i] = word;
            self.room.words[seen + i] |= word;
            any |= word;
        }
        (any != 0).then_some(new)
    }

    fn go_on(&mut self, ask: Ask, popped: PendingId) {
        if popped != NOWHERE {
            self.room.queue.push((ask, popped));
        }
    }

    fn visit<E>(
        &mut self,
        top: u32,
        row: Row,
        pending: PendingId,
        answer: &mut impl FnMut(Question, PendingId) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        let network = self.network;
        let rule = network.rule_of(top);
        if network.is_counting(top) && !network.counts_narrowly(top) {
            return self.together(top, rule, row, pending, answer);
        }
        let delegated = network.delegated(top);
        if delegated.is_empty() || network.has_own(top) {
            let under = if delegated.is_empty() { ALONE } else { OWN };
            let popped = answer(Question { frame: top, under }, pending)?;
            self.go_on(Ask::Beneath(rule, row), popped);
        }
        for &call in delegated {
            if !network.is_counting(call.start) || network.counts_narrowly(call.start) {
                let popped = answer(Question { frame: call.start, under: ALONE }, pending)?;
                if network.stays(call.to) {
                    self.go_on(Ask::Frame(call.to, row), popped);
                }
                if network.is_final(call.to) {
                    self.go_on(Ask::Beneath(rule, row), popped);
                }
                continue;
            }
            if network.stays(call.to) {
                let popped = answer(Question { frame: call.start, under: call.to }, pending)?;
                self.go_on(Ask::Beneath(rule, row), popped);
            }
            if network.is_final(call.to) {
                self.go_on(Ask::Counting(call.start, rule, row), pending);
            }
        }
        Ok(())
    }

    /// A frame that counts, above a rule that began at these places: asked about together with what
    /// can stand beneath, where that is little (see `PlaceQueue::together`).
    fn together<E>(
        &mut self,
        frame: u32,
        rule: u32,
        row: Row,
        pending: PendingId,
        answer: &mut impl FnMut(Question, PendingId) -> Result<PendingId, E>,
    ) -> Result<(), E> {
        let network = self.network;
        let is_top = |rule| rule == network.rule_of(network.start());
        let count = self.collect(rule, row);
        let mut unders: Vec<(u32, Row)> = self.room.callers[..count].to_vec();
        let may_end = is_top(rule) || unders.iter().any(|&(to, _)| self.ends_with(to, is_top));
        unders.retain(|&(to, _)| network.stays(to));
        let asked = if may_end { unders.len() + 1 } else { unders.len() };
        if asked == 0
            || asked > MAX_UNDER
            || unders.iter().any(|&(under, _)| network.needs_chart(under))
        {
            let popped = answer(Question { frame, under: ALONE }, pending)?;
            self.go_on(Ask::Beneath(rule, row), popped);
            return Ok(());
        }
        for (under, row) in unders {
            let popped = answer(Question { frame, under }, pending)?;
            self.go_on(Ask::Beneath(network.rule_of(under), row), popped);
        }
        if may_end {
            answer(Question { frame, under: NOTHING }, pending)?;
        }
        Ok(())
    }

    fn ends_with(&self, to: u32, is_top: impl Fn(u32) -> bool) -> bool {
        self.network.is_final(to) && is_top(self.network.rule_of(to))
    }

    /// Collects who called a rule at these places, and, where that completes their own rules, who
    /// called those; how many there are.
    fn collect(&mut self, rule: u32, row: Row) -> usize {
        let Self { network, tables, columns, room } = self;
        room.callers.clear();
        // Rules, with the places where they began that were not looked at yet.
        let mut work = vec![(rule, room.words[row..row + room.stride].to_vec())];
        let mut complete: Vec<(u32, Vec<u64>)> = work.clone();
        while let Some((rule, places)) = work.pop() {
            let mut more: Vec<(u32, Vec<u64>)> = Vec::new();
            for (at, &word) in places.iter().enumerate() {
                let mut left = word;
                while left != 0 {
                    let bit = left.trailing_zeros();
                    left &= left - 1;
                    let column = columns.at((at as u32) << 6 | bit);
                    column.callers(tables, rule, |to, first, words| {
                        let found = room.callers.iter().find(|caller| caller.0 == to);
                        let row = match found {
                            Some(&(_, row)) => row,
                            None => {
                                let row = room.words.len();
                                room.words.resize(row + room.stride, 0);
                                room.callers.push((to, row));
                                row
                            }
                        };
                        let row = &mut room.words[row + first..row + first + words.len()];
                        row.iter_mut().zip(words).for_each(|(a, b)| *a |= b);
                        if network.is_final(to) {
                            let caller = network.rule_of(to);
                            let new = match more.iter().position(|found| found.0 == caller) {
                                Some(index) => &mut more[index].1,
                                None => {
                                    more.push((caller, vec![0; room.stride]));
                                    let last = more.len() - 1;
                                    &mut more[last].1
                                }
                            };
                            let new = &mut new[first..first + words.len()];
                            new.iter_mut().zip(words).for_each(|(a, b)| *a |= b);
                        }
                    });
                }
            }
            for (rule, mut places) in more {
                match complete.iter().position(|found| found.0 == rule) {
                    Some(index) => {
                        let known = &mut complete[index].1;
                        for (new, known) in places.iter_mut().zip(known) {
                            *new &= !*known;
                            *known |= *new;
                        }
                    }
                    None => complete.push((rule, places.clone())),
                }
                if places.iter().any(|&word| word != 0) {
                    work.push((rule, places));
                }
            }
        }
        room.callers.len()
    }
}
