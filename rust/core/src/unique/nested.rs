//! A reader of JSON arrays of any values, byte by byte: which items were read, and which of them the one
//! that is being read may still be equal to. Arrays in it may have unique items as well.
//!
//! `candidates`: the items that the one which is being read may be equal to; `content`: what a container holds so far;
//! `questions`: what can be asked of the reader. It reads nothing but arrays that a network reads as well, which is what
//! refuses all other texts.

mod candidates;
mod content;
mod questions;

use super::encoding::{END, Item, encoded_array, encoded_object, item_key};
use super::numbers::NUMBER;
use super::pieces::Piece;
use super::reader::{End, Phase, Reader, STRING};
use super::values::{SeenId, Values};
use crate::budget::Halt;
use candidates::{Candidate, CandidateArray, compare};
use content::Content;
use std::sync::Arc;

/// How an array with unique items that stands in another is written where the text of an item is kept. No
/// text in UTF-8 has this byte.
const UNIQUE_ARRAY: u8 = 0xff;
/// And where the innermost of those need no longer be.
const NO_LONGER_UNIQUE: u8 = 0xfe;

/// Bytes that are read again for a unit of work.
const BYTES_A_UNIT: usize = 8;

/// Where a text is in its innermost container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    /// Behind the bracket or brace that opens it.
    Open,
    /// Behind a comma.
    Comma,
    /// In the name of a member.
    Name,
    /// Behind it.
    Named,
    /// Behind a colon.
    Colon,
    /// In a string, a number or a literal.
    Scalar,
    /// Behind an item or a member.
    Behind,
}

/// A container that is open.
#[derive(Clone, Debug, Default)]
struct Frame {
    is_object: bool,
    /// The items or members that were read.
    content: Content,
    /// The name of the member that is being read.
    name: Option<Vec<u8>>,
}

/// What a byte does.
#[derive(Debug)]
pub(super) struct NestedStep {
    /// The item of the outermost array that is complete with it, or was before it: its key.
    pub(super) item: Option<Vec<u8>>,
    /// The array an item of which is equal to one before, if it is another: its place among those with unique
    /// items, the outermost first.
    pub(super) repeats: Option<usize>,
    pub(super) end: End,
}

/// The text of an array, as far as it matters for what may follow.
#[derive(Clone, Debug)]
pub(super) struct Nested {
    /// The items of the outermost array.
    pub(super) seen: SeenId,
    frames: Vec<Arc<Frame>>,
    state: State,
    /// Whether the value before is a literal of which more letters may follow.
    in_literal: bool,
    /// Reads the scalar or the name.
    lexer: Reader,
    /// The arrays with unique items, the outermost first.
    levels: Vec<CandidateArray>,
    /// The text behind the last item of the outermost array: where its beginning stands, and the rest.
    pub(super) before: Option<Piece>,
    pub(super) text: Vec<u8>,
}

impl Nested {
    /// Behind the opening bracket, or behind the items that were read.
    pub(super) fn new(seen: SeenId, values: &Values) -> Self {
        let state = if seen == SeenId::NONE { State::Open } else { State::Behind };
        let items = values.read(seen).into_iter().map(|key| Candidate::new(Item::of_key(key)));
        let level = CandidateArray::new(0, items.collect());
        Self {
            seen,
            frames: vec![Arc::default()],
            state,
            in_literal: seen != SeenId::NONE, // the last item may be one
            lexer: Reader::new(),
            levels: vec![level],
            before: None,
            text: Vec::new(),
        }
    }

    /// It again, from the text that was kept; `None` where that is not the beginning of an item.
    ///
    /// # Errors
    /// Those of `spend`, which counts units of work.
    pub(super) fn replay(
        seen: SeenId,
        text: &[u8],
        values: &Values,
        mut spend: impl FnMut(u64) -> Result<(), Halt>,
    ) -> Result<Option<Self>, Halt> {
        let mut out = Self::new(seen, values);
        spend(u64::from(values.count(seen)) / 4)?;
        for (place, &byte) in text.iter().enumerate() {
            spend(u64::from(place % BYTES_A_UNIT == 0) + out.weight())?;
            match byte {
                NO_LONGER_UNIQUE => out.keep_outermost(out.levels.len().saturating_sub(1).max(1)),
                UNIQUE_ARRAY | b'[' if out.awaits_value() => {
                    out.open_array(byte == UNIQUE_ARRAY);
                }
                _ => {
                    let step = out.read(byte);
                    if step.end != End::Within || step.item.is_some() {
                        return Ok(None);
                    }
                }
            }
        }
        out.text.clear();
        Ok(Some(out))
    }

    /// Adds an item to the outermost array.
    pub(super) fn add(&mut self, key: Vec<u8>, seen: SeenId) {
        self.seen = seen;
        self.levels[0].add(Item::of_key(&key));
    }

    /// Forgets that the items of the other arrays are unique: no stack asks that any more.
    pub(super) fn keep_outermost(&mut self, count: usize) {
        while self.levels.len() > count.max(1) {
            self.levels.pop();
            self.text.push(NO_LONGER_UNIQUE);
        }
    }

    /// How many arrays with unique items are open.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Whether a value may begin here: then `[` is for [`Self::open_array`].
    pub(super) fn awaits_value(&self) -> bool {
        match self.state {
            State::Open | State::Comma => !self.top().is_object,
            State::Colon => true,
            _ => false,
        }
    }

    fn top(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    fn top_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        Arc::make_mut(&mut self.frames[last])
    }

    /// Opens an array, with unique items or without.
    pub(super) fn open_array(&mut self, is_unique: bool) {
        self.text.push(if is_unique { UNIQUE_ARRAY } else { b'[' });
        self.begin_value(b'[');
        self.open(false);
        if is_unique {
            self.levels.push(CandidateArray::new(self.frames.len() - 1, Vec::new()));
        }
    }

    fn open(&mut self, is_object: bool) {
        self.frames.push(Arc::new(Frame { is_object, ..Frame::default() }));
        self.state = State::Open;
        self.levels.iter_mut().for_each(|level| level.keep(|one| Some(one.opened())));
    }

    /// Reads a byte that opens no array.
    pub(super) fn read(&mut self, byte: u8) -> NestedStep {
        let mut step = NestedStep { item: None, repeats: None, end: End::Within };
        if matches!(self.state, State::Name | State::Scalar) {
            let is_string = self.lexer.phase != Phase::Number;
            let length = self.lexer.piece.len();
            match self.lexer.read(byte, &Values::default()).value {
                None => {
                    self.narrow(length);
                    self.text.push(byte);
                    return step;
                }
                Some(key) => {
                    // The byte ends a string, or stands behind a number.
                    if is_string {
                        self.text.push(byte);
                    }
                    self.end_scalar(&key, &mut step);
                    if is_string {
                        return step;
                    }
                }
            }
        }
        self.text.push(byte);
        let is_object = self.top().is_object;
        let was_in_literal = std::mem::take(&mut self.in_literal);
        match (self.state, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => {}
            (State::Open | State::Behind, b'}') if is_object => self.close(&mut step),
            (State::Open | State::Behind, b']') if !is_object => match self.frames.len() {
                1 => step.end = End::Closed,
                _ => self.close(&mut step),
            },
            (State::Behind, b',') => {
                self.state = State::Comma;
                if !is_object {
                    self.expect();
                }
            }
            // The value of a literal was complete with its first letter.
            (State::Behind, b'a'..=b'z') if was_in_literal => self.in_literal = true,
            (State::Named, b':') => {
                self.state = State::Colon;
                self.expect();
            }
            (State::Open | State::Comma, b'"') if is_object => {
                self.begin_scalar(byte);
                self.state = State::Name;
            }
            (_, b'{') if self.awaits_value() => {
                self.begin_value(byte);
                self.open(true);
            }
            (_, b'"' | b'-' | b'0'..=b'9' | b'n' | b't' | b'f') if self.awaits_value() => {
                self.begin_value(byte);
                self.state = State::Scalar;
                if let Some(key) = self.begin_scalar(byte) {
                    self.end_scalar(&key, &mut step);
                    self.in_literal = true;
                }
            }
            _ => step.end = End::Outside,
        }
        step
    }

    /// Begins a scalar or a name; the key of a literal, which its first letter tells.
    fn begin_scalar(&mut self, byte: u8) -> Option<Vec<u8>> {
        self.lexer = Reader::new();
        self.lexer.read(byte, &Values::default()).value
    }

    /// Narrows the candidates by what was added to a string or a name.
    fn narrow(&mut self, length: usize) {
        let piece = &self.lexer.piece;
        match self.state {
            State::Name => {
                for level in self.levels.iter_mut().filter(|level| level.from < level.to) {
                    // Which have the name is looked at when it is complete.
                    let goes_on = |one: &Candidate| {
                        one.item.names(one.container, &piece[1..]).next().is_some()
                    };
                    if !level.current().iter().any(goes_on) {
                        level.set(Vec::new());
                    }
                }
            }
            _ if piece[0] == STRING => {
                for level in &mut self.levels {
                    for (place, &byte) in piece.iter().enumerate().skip(length) {
                        level.narrow_at(place, byte);
                    }
                }
            }
            _ => {}
        }
    }

    /// The scalar or the name that is being read is complete.
    fn end_scalar(&mut self, key: &[u8], step: &mut NestedStep) {
        if self.state == State::Name {
            let name = key[1..].to_vec();
            for level in &mut self.levels {
                level.keep(|one| one.item.member(one.container, &name).map(|_| one.clone()));
            }
            self.top_mut().name = Some(name);
            self.state = State::Named;
            return;
        }
        let value = [key, &[END]].concat();
        for level in &mut self.levels {
            level.narrow(&value);
            level.keep(|one| one.behind(one.value, &value));
        }
        self.end_value(&value, step);
    }

    /// Goes from the containers of the candidates to the values that come next in them.
    fn expect(&mut self) {
        let frame = self.frames.len() - 1;
        let top = self.frames[frame].clone();
        for level in self.levels.iter_mut().filter(|level| level.frame < frame) {
            level.keep(|one| {
                let value = match (&top.name, top.is_object) {
                    (_, false) => one.item.element(one.container, one.next)?,
                    (Some(name), true) => one.item.member(one.container, name)?,
                    (None, true) => return None,
                };
                Some(Candidate { value, ..one.clone() })
            });
            if let Some(candidates) = Arc::get_mut(&mut level.candidates) {
                candidates[level.from..level.to]
                    .sort_unstable_by(|a, b| compare(a.rest(), b.rest()));
            }
        }
    }

    /// Begins a value with a byte.
    fn begin_value(&mut self, byte: u8) {
        if self.state == State::Open {
            self.expect();
        }
        if self.is_on_level()
            && let Some(level) = self.levels.last_mut()
        {
            (level.from, level.to) = (0, level.items.len());
            level.candidates = level.items.clone();
        }
        let tag = tag_of(byte);
        self.levels.iter_mut().for_each(|level| level.narrow_at(0, tag));
    }

    /// Closes the innermost container.
    fn close(&mut self, step: &mut NestedStep) {
        let Some(frame) = self.frames.pop() else { return };
        let value = match frame.is_object {
            true => encoded_object(frame.content.pieces()),
            false => encoded_array(frame.content.pieces()),
        };
        if self.levels.last().is_some_and(|level| level.frame == self.frames.len()) {
            self.levels.pop();
        }
        self.levels.iter_mut().for_each(|level| level.keep(|one| one.closed(&value)));
        self.end_value(&value, step);
    }

    /// A value of the innermost container is complete.
    fn end_value(&mut self, value: &[u8], step: &mut NestedStep) {
        self.state = State::Behind;
        if self.is_on_level()
            && let Some(level) = self.levels.last_mut()
        {
            level.set(Vec::new());
            if level.frame == 0 {
                (self.before, self.text) = (None, Vec::new());
                step.item = Some(item_key(value).to_vec());
                return;
            }
        }
        let depth = self.levels.len();
        if self.is_on_level()
            && let Some(level) = self.levels.last_mut()
            && !level.add(Item::new(value))
        {
            step.repeats = Some(depth - 1);
        }
        let top = self.top_mut();
        match top.name.take() {
            Some(name) => top.content.push(&[&name, &[END], value]),
            None => top.content.push(&[value]),
        }
    }
}

/// What the encoding of a value begins with, by its first byte.
fn tag_of(byte: u8) -> u8 {
    match byte {
        b'-' | b'0'..=b'9' => NUMBER,
        byte => byte,
    }
}
