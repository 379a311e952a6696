//! The oldest steps of a family, thinned: of each only what it read, four bytes; now and then a checkpoint,
//! from which what followed is read again by a text that goes back so far.

use super::step::{Read, Stand, Step, StepId};
use crate::unique::ArrayId;
use std::ops::Range;
use std::sync::Arc;

/// A step that can be gone back to. Its stand in an array is one that `Arrays` keeps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Checkpoint {
    pub(super) depth: u32,
    pub(super) tokens: u32,
    pub(super) bytes: u32,
    /// The number of texts of `Family::texts` up to here.
    pub(super) texts: u32,
    pub(super) stand: Stand,
}

/// What steps read, in chunks that copies share, and the checkpoints.
#[derive(Clone, Default)]
pub(super) struct Past {
    chunks: Vec<Arc<[u32]>>,
    rest: Vec<u32>,
    checkpoints: Vec<Checkpoint>,
    /// The number of texts so far.
    texts: u32,
}

/// Steps of a chunk.
const CHUNK: usize = 1 << 10;
/// Bytes between two checkpoints, but for those of one step.
const BYTES: u32 = 1 << 12;
/// What tells the kinds of [`Read`] apart, in the lowest bits of a number.
const KIND: u32 = 2;

impl Past {
    pub(super) fn bytes(&self) -> usize {
        self.chunks.len() * (CHUNK * 4 + 2 * size_of::<Arc<[u32]>>())
            + self.rest.capacity() * 4
            + self.checkpoints.capacity() * size_of::<Checkpoint>()
    }

    fn len(&self) -> usize {
        self.chunks.len() * CHUNK + self.rest.len()
    }

    /// Whether a step is to be a checkpoint, the last of some that are thinned or another one.
    pub(super) fn wants(&self, step: &Step, every: usize) -> bool {
        self.checkpoints.last().is_none_or(|last| {
            (step.depth - last.depth) as usize >= every || step.bytes - last.bytes >= BYTES
        })
    }

    /// Adds a step, with its stand if it is a checkpoint.
    pub(super) fn push(&mut self, step: &Step, stand: Option<Stand>) {
        if let Read::Bytes(text) = step.read {
            self.texts = text + 1;
        }
        self.rest.push(packed(step.read));
        if self.rest.len() == CHUNK {
            self.chunks.push(std::mem::take(&mut self.rest).into());
        }
        if let Some(stand) = stand {
            let Step { depth, tokens, bytes, .. } = *step;
            make_room(&mut self.checkpoints);
            self.checkpoints.push(Checkpoint { depth, tokens, bytes, texts: self.texts, stand });
        }
    }

    pub(super) fn read(&self, id: StepId) -> Read {
        let (chunk, place) = (id as usize / CHUNK, id as usize % CHUNK);
        unpacked(self.chunks.get(chunk).map_or_else(|| self.rest[place], |chunk| chunk[place]))
    }

    /// What some steps read.
    pub(super) fn reads(&self, ids: Range<StepId>) -> impl Iterator<Item = (StepId, Read)> {
        ids.map(|id| (id, self.read(id)))
    }

    /// The last checkpoint up to a step that was thinned.
    pub(super) fn checkpoint(&self, id: StepId) -> Checkpoint {
        let after = self.checkpoints.partition_point(|one| one.depth <= id);
        self.checkpoints[after - 1] // the first step is one
    }

    /// The bytes before the first step.
    pub(super) fn first_bytes(&self) -> u32 {
        self.checkpoints.first().map_or(0, |first| first.bytes)
    }

    pub(super) fn checkpoints_mut(&mut self) -> &mut [Checkpoint] {
        &mut self.checkpoints
    }

    /// The first array that is kept for a checkpoint at a step or after it.
    pub(super) fn first_array(&self, id: StepId) -> Option<ArrayId> {
        let before = self.checkpoints.partition_point(|one| one.depth < id);
        self.checkpoints[before..].iter().find_map(|one| match one.stand {
            Stand::Array(array) => Some(array),
            Stand::Stacks(_) | Stand::Chart(_) => None,
        })
    }

    /// Forgets a step and those after it.
    pub(super) fn truncate(&mut self, id: StepId) {
        let length = id as usize;
        if length < self.len() {
            if let Some(chunk) = self.chunks.get(length / CHUNK) {
                self.rest = chunk[..length % CHUNK].to_vec();
                self.chunks.truncate(length / CHUNK);
            } else {
                self.rest.truncate(length % CHUNK);
            }
        }
        let before = self.checkpoints.partition_point(|one| one.depth < id);
        self.checkpoints.truncate(before);
        self.texts = self.texts_of_rest();
    }

    /// The number of texts, those of the last checkpoint and what was read since.
    fn texts_of_rest(&self) -> u32 {
        let last = self.checkpoints.last();
        let since = last.map_or(0, |last| last.depth + 1)..self.len() as StepId;
        let texts = self.reads(since).filter_map(|(_, read)| match read {
            Read::Bytes(text) => Some(text + 1),
            _ => None,
        });
        texts.last().unwrap_or(last.map_or(0, |last| last.texts))
    }

    /// It with other numbers of texts.
    pub(super) fn with_texts(&self, mut moved: impl FnMut(u32) -> u32) -> Self {
        // Nothing else changes where no text was read.
        if self.texts == 0 {
            return self.clone();
        }
        let mut out = Self { checkpoints: self.checkpoints.clone(), ..Self::default() };
        let mut next = out.checkpoints.iter_mut().peekable();
        for (id, read) in self.reads(0..self.len() as StepId) {
            let read = match read {
                Read::Bytes(text) => {
                    let text = moved(text);
                    out.texts = text + 1;
                    Read::Bytes(text)
                }
                read => read,
            };
            if let Some(checkpoint) = next.next_if(|one| one.depth == id) {
                checkpoint.texts = out.texts;
            }
            out.rest.push(packed(read));
            if out.rest.len() == CHUNK {
                out.chunks.push(std::mem::take(&mut out.rest).into());
            }
        }
        out
    }
}

/// Makes room for one more, and for a quarter of what is there where there is none.
fn make_room(checkpoints: &mut Vec<Checkpoint>) {
    if checkpoints.len() == checkpoints.capacity() {
        checkpoints.reserve_exact((checkpoints.len() / 4).max(8));
    }
}

/// Whether what a step read has a number.
pub(super) fn is_small(read: Read) -> bool {
    match read {
        Read::Nothing => true,
        Read::Token(id) | Read::Stop(id) | Read::Bytes(id) => id <= u32::MAX >> KIND,
    }
}

fn packed(read: Read) -> u32 {
    match read {
        Read::Nothing => 0,
        Read::Token(id) => id << KIND | 1,
        Read::Stop(id) => id << KIND | 2,
        Read::Bytes(text) => text << KIND | 3,
    }
}

fn unpacked(number: u32) -> Read {
    let id = number >> KIND;
    match number & 3 {
        0 => Read::Nothing,
        1 => Read::Token(id),
        2 => Read::Stop(id),
        _ => Read::Bytes(id),
    }
}
