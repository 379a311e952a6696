//! Walks down the stack: what is allowed at a place, and what is remembered of it.

use super::super::parser::{REJECT, ReadingId};
use super::decoder::{Begun, Decoder, Start, TokenReadings, holds};
use super::groups::{GroupId, GroupRow};
use super::interpretation::Interpretation;
use super::layout::Layout;
use super::token_sets::{ONLY_END, TokenSet};
use super::unions::{UnionId, Unions};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use std::sync::Arc;
use tokfold_core::error::Result;

/// Which kinds of rows a group has.
struct GroupKinds {
    has_plain: bool,
    has_asking: bool,
}

impl Decoder {
    /// The tokens that are allowed at a place, and how many states of the stack below its top
    /// were read for it.
    pub(super) fn allowed(&mut self, place: &Interpretation) -> Result<(TokenSet, usize)> {
        let begun = self.begun(place.state, place.scanner, &place.layout, place.stack.top())?;
        let mut depth = 0;
        let mut sets = Vec::with_capacity(begun.len());
        for &union in begun.iter() {
            let below = place.stack.states().skip(1);
            let (set, read) = self.unions.decided(union, below, &self.parser.automaton);
            sets.push(set);
            depth = depth.max(read);
        }
        Ok((self.unions.all_of(sets), depth))
    }

    /// Where the walks down the stack begin: one for each group of rows, and one for the end.
    fn begun(&mut self, state: u32, scanner: u32, layout: &Layout, top: u32) -> Result<Begun> {
        let start: Start = (state, scanner, layout.clone(), top);
        if let Some(known) = self.starts.get(&start) {
            return Ok(known.clone());
        }
        if self.starts.len() >= self.memory.max_starts || self.bytes() > self.memory.max_bytes {
            self.forget();
        }
        let relevant = self.relevant(state, scanner, layout);
        let fewer: Start = (state, scanner, relevant.clone(), top);
        let made = match self.starts.get(&fewer) {
            Some(known) => known.clone(),
            None => {
                let made = self.begin(state, scanner, &relevant, top)?;
                self.starts.insert(fewer, made.clone());
                made
            }
        };
        self.starts.insert(start, made.clone());
        Ok(made)
    }

    fn begin(&mut self, state: u32, scanner: u32, layout: &Layout, top: u32) -> Result<Begun> {
        let mut pieces = Vec::new();
        for &group in self.groups_of(state, scanner).iter() {
            let GroupKinds { has_plain, has_asking } = self.kinds(group);
            if has_plain {
                pieces.push(self.piece(group, None, top)?);
            }
            if has_asking {
                pieces.push(self.piece(group, Some(layout), top)?);
            }
        }
        if let Some(letters) = self.end_letters(state, scanner, layout) {
            let reading = self.parser.reading(&letters)?;
            let decides = self.parser.state(reading, top)?;
            pieces.push(self.unions.single(decides, ONLY_END));
        }
        pieces.sort_unstable();
        pieces.dedup();
        Ok(pieces.into())
    }

    fn kinds(&self, group: GroupId) -> GroupKinds {
        let group = &self.groups.groups[group as usize];
        GroupKinds { has_plain: !group.plain.is_empty(), has_asking: !group.asking.is_empty() }
    }

    pub(super) fn groups_of(&mut self, state: u32, scanner: u32) -> Arc<[GroupId]> {
        let place = self.states.get(state as usize).copied();
        let Self { groups, rows, newlines, scanner_sets, .. } = self;
        groups.of((state, scanner), place, rows, newlines, |set| holds(scanner_sets, scanner, set))
    }

    /// As much of a layout as the rows of a state can ask for; so few layouts are kept.
    fn relevant(&mut self, state: u32, scanner: u32, layout: &Layout) -> Layout {
        if self.newlines.indentation.is_none() {
            return Layout::start();
        }
        let closes = match self.closing.get(&(state, scanner)) {
            Some(&known) => known,
            None => {
                let groups = self.groups_of(state, scanner);
                let closes = groups.iter().map(|&g| self.groups.groups[g as usize].closes).max();
                let closes = closes.flatten();
                self.closing.insert((state, scanner), closes);
                closes
            }
        };
        let closes = closes.unwrap_or(0);
        if layout.parens > closes && self.newlines.is_balanced() {
            // Deep in parentheses all newlines are dropped, and no text ends there.
            return Layout { parens: closes + 1, ..Layout::start() };
        }
        let column = layout.column.filter(|_| self.is_newline_state(state));
        Layout { column, ..layout.clone() }
    }

    /// The rows of a group for a top: those that ask for the layout, or those that do not.
    fn piece(&mut self, group: GroupId, layout: Option<&Layout>, top: u32) -> Result<UnionId> {
        let key = (group, layout.cloned(), top);
        if let Some(&known) = self.pieces.get(&key) {
            return Ok(known);
        }
        let readings = self.readings(group, layout)?;
        let mut gathering = self.unions.gather();
        let mut wanted = Vec::new();
        for (reading, sets) in readings.iter() {
            let state = self.parser.state(*reading, top)?;
            if state != REJECT {
                wanted.extend(sets.iter().map(|&set| (state, set)));
            }
        }
        self.tokens.gather(&wanted, &mut gathering);
        let made = self.unions.finish(gathering);
        self.pieces.insert(key, made);
        Ok(made)
    }

    /// Rows that nothing tells apart are joined.
    pub(super) fn readings(
        &mut self,
        group: GroupId,
        layout: Option<&Layout>,
    ) -> Result<TokenReadings> {
        let key = (group, layout.cloned());
        if let Some(known) = self.readings.get(&key) {
            return Ok(known.clone());
        }
        let anywhere = Layout::anywhere();
        let Self { groups, newlines, parser, .. } = self;
        let group = &groups.groups[group as usize];
        let rows: &[GroupRow] = if layout.is_some() { &group.asking } else { &group.plain };
        let layout = layout.unwrap_or(&anywhere);
        let mut sets: HashMap<ReadingId, Vec<u32>, FxBuildHasher> = HashMap::default();
        for (letters, tokens) in rows {
            if let Some((letters, _)) = newlines.read(letters, layout, parser) {
                sets.entry(parser.reading(&letters)?).or_default().push(*tokens);
            }
        }
        let mut made: Vec<(ReadingId, Box<[u32]>)> =
            sets.into_iter().map(|(reading, sets)| (reading, sets.into())).collect();
        made.sort_unstable();
        let made: TokenReadings = made.into();
        self.readings.insert(key, made.clone());
        Ok(made)
    }

    /// Drops what is made anew when it is asked for; layouts without end must not fill memory.
    pub(super) fn forget(&mut self) {
        self.starts.clear();
        self.pieces.clear();
        self.readings.retain(|(_, layout), _| layout.is_none());
        self.unions = Unions::new(self.unions.tokens.size);
        self.forgotten += 1;
    }

    pub(super) fn bytes(&self) -> usize {
        self.unions.bytes() + (self.starts.len() + self.pieces.len()) * 64
    }
}
