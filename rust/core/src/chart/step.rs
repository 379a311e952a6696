//! How one column follows another: the byte is read by all items of a column, and rules that are complete go on where
//! they were called (completion).

use super::ColumnId;
use super::bits::{Bits, SparseWord, WordMarks, members};
use super::column::Columns;
use super::fan::{self, FanRoom, Fans, Narrow};
use super::memo::{ColumnMemo, Reach};
use super::rows::{InternedRows, NO_ROW, RowId, unite};
use super::tables::{FINAL, STAYS, Tables, read_at};
use super::tree::{Draft, There, Tree};
use crate::budget::{Halt, Meter};
use crate::network::{Network, contains};
use rustc_hash::FxHashMap;
use std::ops::Deref;

const NONE: u32 = u32::MAX;
/// Words of rules that may begin which count as one unit of work.
const BEGUN_OF_WORK: u64 = 16;

/// A state that was reached.
struct Reached {
    state: u32,
    /// The last set of places that it was reached with; all of them while there are no words.
    last: RowId,
    /// Where its words are, if it was reached with several sets.
    words: u32,
}

/// Room in which the next column is made.
pub(crate) struct Scratch {
    /// For each state of the tables its place among those reached, or none.
    reached_at: Vec<u32>,
    counting: FxHashMap<u32, u32>,
    reached: Vec<Reached>,
    words: Vec<u64>,
    /// Words of a set of places.
    stride: usize,
    /// For each rule its place among those complete, or none.
    complete_at: Vec<u32>,
    complete: Vec<u32>,
    /// For each rule that is complete where it began.
    began: Vec<u64>,
    /// Where any complete rule began, and nobody has gone on yet.
    places: Vec<u64>,
    /// The rules that are complete from one place, and the same as a bit set.
    here: Vec<u32>,
    is_here: Vec<u64>,
    /// What is reached from there.
    from_here: Vec<Reach>,
    /// What was reached while sets of places are one word.
    narrow: Narrow,
    fan_room: FanRoom,
    states: WordMarks,
    rules: WordMarks,
    draft: Draft,
    /// Counts words written.
    pub(crate) meter: Meter,
    /// Why the step under way is to end.
    halt: Option<Halt>,
}

impl Scratch {
    pub(crate) fn new<N: Deref<Target = Network>>(tables: &Tables<N>) -> Self {
        let (states, rules) = tables.sizes();
        Self {
            reached_at: vec![NONE; states],
            counting: FxHashMap::default(),
            reached: Vec::new(),
            words: Vec::new(),
            stride: 0,
            complete_at: vec![NONE; rules],
            complete: Vec::new(),
            began: Vec::new(),
            places: Vec::new(),
            here: Vec::new(),
            is_here: vec![0; rules.div_ceil(64)],
            from_here: Vec::new(),
            narrow: Narrow::new(states),
            fan_room: FanRoom::default(),
            states: WordMarks::new(states),
            rules: WordMarks::new(rules),
            draft: Draft::default(),
            meter: Meter::default(),
            halt: None,
        }
    }

    /// Adds a column before the first letter.
    pub(crate) fn start<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        tree: &mut Tree,
    ) -> Result<ColumnId, Halt> {
        self.begin(1);
        let zero = tree.sets.single(0);
        let start = tables.network.start();
        let at = self.reach_state(start);
        self.reached[at].last = zero;
        self.compose(tables, &mut tree.sets, tables.network.accepts_empty())?;
        Ok(tree.push(None, &self.draft))
    }

    /// Counts work; whether the step is to go on.
    #[inline]
    fn count(&mut self, units: u64) -> bool {
        if !self.meter.count(units) && self.halt.is_none() {
            self.halt = self.meter.look().err();
        }
        self.halt.is_none()
    }

    /// Ends the step where that is due.
    fn halted(&mut self) -> Result<(), Halt> {
        match self.halt.take() {
            Some(halt) => Err(halt),
            None => Ok(()),
        }
    }

    fn begin(&mut self, stride: usize) {
        for reached in &self.reached {
            match self.reached_at.get_mut(reached.state as usize) {
                Some(at) => *at = NONE,
                None => self.counting.clear(),
            }
        }
        self.reached.clear();
        self.narrow.drain(|_, _| {});
        self.words.clear();
        self.complete.iter().for_each(|&rule| self.complete_at[rule as usize] = NONE);
        self.complete.clear();
        self.began.clear();
        self.places.clear();
        self.places.resize(stride, 0);
        self.stride = stride;
    }

    /// The place of a state among those reached.
    #[inline]
    fn reach_state(&mut self, state: u32) -> usize {
        let at = match self.reached_at.get_mut(state as usize) {
            Some(at) => at,
            None => self.counting.entry(state).or_insert(NONE),
        };
        if *at == NONE {
            *at = self.reached.len() as u32;
            self.reached.push(Reached { state, last: NO_ROW, words: NONE });
        }
        *at as usize
    }

    /// Room for words of a state that was reached with several sets.
    fn spread(&mut self, sets: &InternedRows, at: usize) -> usize {
        if self.reached[at].words == NONE {
            let from = self.words.len();
            self.reached[at].words = from as u32;
            self.words.resize(from + self.stride, 0);
            if self.reached[at].last != NO_ROW {
                let (first, words) = sets.get(self.reached[at].last);
                unite(&mut self.words[from..], first..first + words.len(), words);
            }
        }
        self.reached[at].words as usize
    }

    /// Where words of a complete rule begin.
    #[inline]
    fn complete(&mut self, rule: u32) -> usize {
        let at = &mut self.complete_at[rule as usize];
        if *at == NONE {
            *at = self.complete.len() as u32;
            self.complete.push(rule);
            self.began.resize(self.began.len() + self.stride, 0);
        }
        *at as usize * self.stride
    }

    /// A state was reached whose rule began at these places; whether the step is to go on.
    #[inline]
    fn reach<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        sets: &InternedRows,
        state: u32,
        row: RowId,
    ) -> bool {
        let kind = tables.kind(state);
        let mut units = 1;
        if kind & STAYS != 0 {
            let at = self.reach_state(state);
            let last = std::mem::replace(&mut self.reached[at].last, row);
            if last != NO_ROW && last != row {
                if self.reached[at].words == NONE {
                    self.reached[at].last = last;
                    self.spread(sets, at);
                    self.reached[at].last = row;
                }
                let from = self.reached[at].words as usize;
                let (first, words) = sets.get(row);
                units += words.len() as u64;
                unite(&mut self.words[from..], first..first + words.len(), words);
            }
        }
        if kind & FINAL != 0 {
            let from = self.complete(tables.network.rule_of(state));
            let (first, words) = sets.get(row);
            units += words.len() as u64;
            unite(&mut self.began[from..], first..first + words.len(), words);
            unite(&mut self.places, first..first + words.len(), words);
        }
        self.count(units)
    }

    /// Adds the column after one more letter; none where no string of the grammar goes on so.
    pub(crate) fn step<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        tree: &mut Tree,
        tip: ColumnId,
        class: u8,
    ) -> Result<Option<ColumnId>, Halt> {
        self.halt = None;
        if !contains(tree.column(tip).next(), class) {
            return Ok(None);
        }
        let place = tree.column(tip).place();
        let here = tree.sets.single(place);
        let mut memo = std::mem::take(&mut tree.memo);
        let mut fans = std::mem::take(&mut tree.fans);
        let columns = tree.columns(tip);
        self.begin((place as usize >> 6) + 1);
        columns.tip().each_of(tables.reading(class), |state, row| {
            for to in read_at(&tables.network, state, class) {
                self.reach(tables, columns.sets(), to, row);
            }
        });
        let begun = columns.tip().begun();
        for &(at, mask) in tables.readers(class) {
            let found = begun.binary_search_by_key(&at, |word| word.0);
            let word = found.map_or(0, |found| begun[found].1);
            for rule in members(&[(at, word & mask)]) {
                for to in tables.read_at_start(rule, class) {
                    self.reach(tables, columns.sets(), to, here);
                }
            }
        }
        let mut done = self.halted();
        if done.is_ok() {
            done = self.complete_rules(tables, columns, &mut memo, &mut fans);
        }
        if done.is_ok() {
            done = self.return_to_starts(tables, columns);
        }
        tree.memo = memo;
        tree.fans = fans;
        done?;
        let top = self.complete_at[tables.network.rule_of(tables.network.start()) as usize];
        let accepts = top != NONE;
        if self.reached.is_empty() && self.narrow.is_empty() && !accepts {
            return Ok(None);
        }
        self.compose(tables, &mut tree.sets, accepts)?;
        Ok(Some(tree.push(Some(tip), &self.draft)))
    }

    /// Goes on with those who called the rules that are complete, from the latest places on.
    fn complete_rules<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        columns: Columns<'_>,
        memo: &mut ColumnMemo,
        fans: &mut Fans,
    ) -> Result<(), Halt> {
        let mut here = std::mem::take(&mut self.here);
        let mut from_here = std::mem::take(&mut self.from_here);
        let done = self.complete_from(tables, columns, memo, fans, (&mut here, &mut from_here));
        self.is_here.iter_mut().for_each(|word| *word = 0);
        here.clear();
        self.here = here;
        self.from_here = from_here;
        done
    }

    /// Lists the rules that are complete and began at a place: those that are known to be, and those that they
    /// complete.
    #[inline]
    fn complete_at<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        begun: &[SparseWord],
        (at, bit): (usize, u32),
        here: &mut Vec<u32>,
    ) -> Result<(), Halt> {
        let top = tables.network.rule_of(tables.network.start());
        here.clear();
        for (index, &rule) in self.complete.iter().enumerate() {
            if self.began[index * self.stride + at] >> bit & 1 == 1 && rule != top {
                here.push(rule);
                self.is_here[rule as usize >> 6] |= 1 << (rule & 63);
            }
        }
        self.count(1 + self.complete.len() as u64 / 8);
        // A rule that is complete may complete others that began at its place.
        for index in 0..here.len() {
            self.count(tables.num_units(here[index]) as u64 / 8);
            self.halted()?;
            tables.units_among(here[index], begun, |word_at, units| {
                let new = units & !self.is_here[word_at as usize];
                self.is_here[word_at as usize] |= new;
                for unit in members(&[(word_at, new)]) {
                    let from = self.complete(unit) + at;
                    self.began[from] |= 1 << bit;
                    here.push(unit);
                }
            });
        }
        here.iter().for_each(|&rule| self.is_here[rule as usize >> 6] = 0);
        Ok(())
    }

    fn complete_from<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        columns: Columns<'_>,
        memo: &mut ColumnMemo,
        fans: &mut Fans,
        (here, from_here): (&mut Vec<u32>, &mut Vec<Reach>),
    ) -> Result<(), Halt> {
        for at in (0..self.stride).rev() {
            while self.places[at] != 0 {
                let bit = 63 - self.places[at].leading_zeros();
                self.places[at] &= !(1 << bit);
                let column = columns.at((at << 6) as u32 | bit);
                self.complete_at(tables, column.begun(), (at, bit), here)?;
                let has_fan = self.stride == 1
                    && column.len() >= fan::LEAST
                    && column.counting().is_empty()
                    && !tables.network.has_counters();
                if has_fan {
                    let states = (column.id(), column.states());
                    let fan = fans.get(tables, states, &mut self.fan_room, &mut self.meter)?;
                    for &rule in here.iter() {
                        let (states, rules) = fan.of(rule);
                        self.count((states.len() + rules.len()) as u64);
                        self.halted()?;
                        self.narrow.reach(states);
                        for &(rule, word) in rules {
                            let from = self.complete(rule);
                            self.began[from] |= word;
                            self.places[0] |= word;
                        }
                    }
                    self.places[at] &= (1 << bit) - 1;
                    continue;
                }
                here.sort_unstable();
                if let Some(known) = memo.get(column.id(), here) {
                    for &(to, row) in known {
                        if !self.reach(tables, columns.sets(), to, row) {
                            break;
                        }
                    }
                } else {
                    from_here.clear();
                    for &rule in here.iter() {
                        column.return_to(tables, rule, |to, row| {
                            from_here.push((to, row));
                            self.reach(tables, columns.sets(), to, row)
                        });
                        self.halted()?;
                    }
                    memo.note(column.id(), here, from_here);
                }
                self.halted()?;
                // Whoever called began earlier.
                self.places[at] &= (1 << bit) - 1;
            }
        }
        Ok(())
    }

    /// Goes on with rules whose first call is complete: they began where it did, if they may begin
    /// there.
    fn return_to_starts<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        columns: Columns<'_>,
    ) -> Result<(), Halt> {
        for index in 0..self.complete.len() {
            let rule = self.complete[index];
            self.halted()?;
            if self.stride == 1 && !tables.network.has_counters() {
                let began = self.began[index];
                for call in tables.start_calls(rule).iter().filter(|call| call.stays) {
                    let word = columns.predicted(call.rule).first().map_or(0, |found| found.1);
                    if began & word != 0 {
                        self.narrow.add(call.to, began & word);
                    }
                }
                self.count(tables.start_calls(rule).len() as u64);
                continue;
            }
            for call in tables.start_calls(rule) {
                if !call.stays {
                    continue;
                }
                let began = index * self.stride;
                let predicted = columns.predicted(call.rule);
                let mut target = None;
                for &(at, mask) in predicted {
                    let word = self.began[began + at as usize] & mask;
                    if word != 0 {
                        let target = *target.get_or_insert_with(|| {
                            let at = self.reach_state(call.to);
                            self.spread(columns.sets(), at)
                        });
                        self.words[target + at as usize] |= word;
                    }
                }
                self.count(predicted.len() as u64);
            }
        }
        self.halted()
    }

    /// What was reached, as a column.
    fn compose<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        sets: &mut InternedRows,
        accepts: bool,
    ) -> Result<(), Halt> {
        let network: &Network = &tables.network;
        let mut narrow = std::mem::take(&mut self.narrow);
        narrow.drain(|state, word| {
            let at = self.reach_state(state);
            let known = &self.reached[at];
            if (known.last, known.words) == (NO_ROW, NONE) {
                self.reached[at].last = sets.word(word);
            } else {
                let from = self.spread(sets, at);
                self.words[from] |= word;
            }
        });
        self.narrow = narrow;
        let Self { reached, reached_at, counting, states, rules, draft, words, meter, .. } = self;
        draft.there.clear();
        draft.begun.clear();
        draft.rows.clear();
        draft.counting.clear();
        draft.next = [0; 4];
        draft.accepts = accepts;
        for found in reached.iter_mut() {
            if found.words != NONE {
                let from = found.words as usize;
                found.last = sets.add(0, &words[from..from + self.stride]);
            }
            match (found.state as usize) < reached_at.len() {
                true => states.add(found.state >> 6, 1 << (found.state & 63)),
                false => draft.counting.push(found.state),
            }
            let mut begun = 0;
            tables.begun(found.state, &mut |at, word| {
                begun += 1;
                rules.add(at, word);
            });
            if let Err(halt) = meter.spend(begun / BEGUN_OF_WORK) {
                states.drain(|_, _| {});
                rules.drain(|_, _| {});
                return Err(halt);
            }
            let first = network.reads_first(found.state);
            draft.next.iter_mut().zip(first).for_each(|(a, b)| *a |= b);
        }
        states.drain(|at, word| {
            draft.there.push(There { at, before: draft.rows.len() as u32, word });
            for bit in Bits(word) {
                let place = reached_at[(at << 6 | bit) as usize];
                draft.rows.push(reached[place as usize].last);
            }
        });
        draft.counting.sort_unstable();
        let rows = draft.counting.iter().map(|state| reached[counting[state] as usize].last);
        draft.rows.extend(rows);
        rules.drain(|at, word| draft.begun.push((at, word)));
        Ok(())
    }
}
