//! Where texts go on from one column, by the rule that is complete: for columns with many states.
//!
//! From a column of a dense grammar nearly every rule is complete again and again. What is reached then
//! is listed once, each state once for a rule, with its places as one word: for texts of up to 64
//! columns.

use super::ColumnId;
use super::tables::Tables;
use crate::budget::{Halt, Meter};
use crate::network::Network;
use std::ops::Deref;

/// A column of so many states has a fan, if none counts; tests make one for all.
pub(super) const LEAST: usize = if cfg!(test) { 1 } else { 256 };

/// Calls that count as one unit of work.
const OUTS_OF_WORK: u64 = 8;

/// A state or rule, and a word of places.
pub(super) type Spoke = (u32, u64);

/// What is reached from a column, by the rule that is complete.
#[derive(Default)]
pub(super) struct Fan {
    /// Where those of each rule begin: states that stay, then rules that are complete with it.
    starts: Vec<(u32, u32)>,
    spokes: Vec<Spoke>,
}

impl Fan {
    /// The states that stay which are reached, with the places where their rules began; and the rules
    /// that are complete there too.
    #[inline]
    pub(super) fn of(&self, rule: u32) -> (&[Spoke], &[Spoke]) {
        let (states, rules) = self.starts[rule as usize];
        let end = self.starts[rule as usize + 1].0;
        let all = &self.spokes[states as usize..end as usize];
        all.split_at((rules - states) as usize)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.starts.capacity() * size_of::<(u32, u32)>()
            + self.spokes.capacity() * size_of::<Spoke>()
    }
}

/// Room in which fans are made.
#[derive(Default)]
pub(super) struct FanRoom {
    /// By the rule that is called: where calls return to, and the rules that are complete there.
    stays: Vec<Vec<Spoke>>,
    complete: Vec<Vec<Spoke>>,
    /// For each rule its place among those listed as complete.
    listed: Vec<u32>,
}

impl FanRoom {
    fn make<'s, N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        states: impl Iterator<Item = (u32, usize, &'s [u64])>,
        meter: &mut Meter,
    ) -> Result<Fan, Halt> {
        let (_, rules) = tables.sizes();
        self.stays.resize_with(rules, Vec::new);
        self.complete.resize_with(rules, Vec::new);
        self.listed.resize(rules, u32::MAX);
        let outs = tables.outs(meter)?;
        for (state, _, words) in states {
            meter.spend(1 + outs.of(state).len() as u64 / OUTS_OF_WORK)?;
            for out in outs.of(state) {
                if let Some(to) = out.to {
                    self.stays[out.called as usize].push((to, words[0]));
                }
                if let Some(complete) = out.complete {
                    self.complete[out.called as usize].push((complete, words[0]));
                }
            }
        }
        let mut out = Fan { starts: Vec::with_capacity(rules + 1), spokes: Vec::new() };
        for (stays, complete) in self.stays.iter_mut().zip(&mut self.complete) {
            meter.spend(1 + (stays.len() + complete.len()) as u64 / OUTS_OF_WORK)?;
            let from = out.spokes.len();
            out.spokes.append(stays);
            let first = out.spokes.len();
            for (rule, word) in complete.drain(..) {
                let listed = &mut self.listed[rule as usize];
                match out.spokes.get_mut(*listed as usize) {
                    Some(spoke) => spoke.1 |= word,
                    None => {
                        *listed = out.spokes.len() as u32;
                        out.spokes.push((rule, word));
                    }
                }
            }
            for spoke in &out.spokes[first..] {
                self.listed[spoke.0 as usize] = u32::MAX;
            }
            out.starts.push((from as u32, first as u32));
        }
        out.starts.push((out.spokes.len() as u32, out.spokes.len() as u32));
        Ok(out)
    }
}

/// The fans of columns, in the order in which those were made.
#[derive(Default)]
pub(super) struct Fans {
    fans: Vec<Option<Box<Fan>>>,
    bytes: usize,
}

impl Fans {
    /// The fan of a column with these states, of which none counts.
    pub(super) fn get<'s, N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        (id, states): (ColumnId, impl Iterator<Item = (u32, usize, &'s [u64])>),
        room: &mut FanRoom,
        meter: &mut Meter,
    ) -> Result<&Fan, Halt> {
        let id = id as usize;
        if self.fans.len() <= id {
            self.fans.resize_with(id + 1, || None);
        }
        let fan = match self.fans[id].take() {
            Some(known) => known,
            None => {
                let made = room.make(tables, states, meter);
                if made.is_err() {
                    *room = FanRoom::default(); // nothing of it is to be left in the next
                }
                let fan = made?;
                self.bytes += fan.bytes();
                Box::new(fan)
            }
        };
        Ok(self.fans[id].insert(fan))
    }

    /// Forgets all columns after the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        let gone = self.fans.drain(len.min(self.fans.len())..).flatten();
        self.bytes -= gone.map(|fan| fan.bytes()).sum::<usize>();
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.fans.capacity() * size_of::<Option<Box<Fan>>>() + self.bytes
    }
}

/// For a text of up to 64 columns: states with the places where their rules began, as one word each.
#[derive(Default)]
pub(super) struct Narrow {
    words: Vec<u64>,
    reached: Vec<u32>,
}

impl Narrow {
    pub(super) fn new(states: usize) -> Self {
        Self { words: vec![0; states], reached: Vec::new() }
    }

    /// States were reached that stay.
    #[inline]
    pub(super) fn reach(&mut self, states: &[Spoke]) {
        for &(state, word) in states {
            self.add(state, word);
        }
    }

    /// A state of the tables was reached.
    #[inline]
    pub(super) fn add(&mut self, state: u32, word: u64) {
        let known = &mut self.words[state as usize];
        if *known == 0 {
            self.reached.push(state);
        }
        *known |= word;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reached.is_empty()
    }

    /// Gives what was reached and empties it.
    pub(super) fn drain(&mut self, mut each: impl FnMut(u32, u64)) {
        for state in self.reached.drain(..) {
            each(state, std::mem::take(&mut self.words[state as usize]));
        }
    }
}
