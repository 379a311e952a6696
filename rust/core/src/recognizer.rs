//! Byte-by-byte recognition: is this text, so far, the beginning of a string of the grammar?
//!
//! It keeps the set of all stacks that the network can have, shared and hash-consed, so any
//! context-free grammar is recognized exactly, ambiguity included. It answers the command line's
//! questions; it is not built for speed.

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::network::{Network, contains};
use crate::stacks::{NONE, OverBudget, REST, SetId, Stepper};

/// The state of a recognition.
pub struct Recognizer<'a> {
    network: &'a Network,
    stepper: Stepper<&'a Network>,
    current: SetId,
    read: usize,
    max_bytes: usize,
}

impl<'a> Recognizer<'a> {
    /// Before the first byte.
    ///
    /// # Errors
    /// Never in practice: [`Error::Limit`] if not even the start fits.
    pub fn new(network: &'a Network, limits: &Limits) -> Result<Self> {
        let mut stepper = Stepper::new(network);
        let current =
            stepper.sets.add(&[(network.start(), REST)]).map_err(|OverBudget| too_deep(0))?;
        Ok(Self { network, stepper, current, read: 0, max_bytes: limits.max_automaton_bytes })
    }

    /// Reads a byte. False: no string of the grammar goes on like this, and nothing has changed.
    ///
    /// # Errors
    /// [`Error::Limit`] when the text is nested too deeply or the stacks take too much memory.
    pub fn advance(&mut self, byte: u8) -> Result<bool> {
        let class = self.network.alphabet().class(byte);
        let next =
            self.stepper.step(self.current, class).map_err(|OverBudget| too_deep(self.read))?;
        if next == NONE {
            return Ok(false);
        }
        if self.stepper.bytes() > self.max_bytes {
            return Err(Error::Limit {
                limit: "max_automaton_bytes",
                value: self.max_bytes as u64,
                message: format!(
                    "recognition holds more after {} bytes; raise the limit",
                    self.read
                ),
            });
        }
        self.current = next;
        self.read += 1;
        Ok(true)
    }

    /// Whether the bytes read are a string of the grammar.
    pub fn is_accepting(&self) -> bool {
        if self.read == 0 {
            self.network.accepts_empty()
        } else {
            self.stepper.sets.has_rest(self.current)
        }
    }

    /// The rules of one of the parses, outermost first, and those of all tops.
    pub fn open_rules(&self) -> (Vec<u32>, Vec<u32>) {
        let is_state = |entry: &&(u32, SetId)| entry.0 != crate::network::BOTTOM;
        let mut path = Vec::new();
        let mut set = self.current;
        let entries = self.stepper.sets.entries(set);
        let mut tops: Vec<u32> =
            entries.iter().filter(is_state).map(|e| self.network.origin_of(e.0)).collect();
        tops.sort_unstable();
        tops.dedup();
        while let Some(&(state, beneath)) = self.stepper.sets.entries(set).iter().find(is_state) {
            path.push(self.network.origin_of(state));
            set = beneath;
        }
        path.reverse();
        (path, tops)
    }

    /// The bytes that may come next, ascending.
    pub fn expected(&self) -> Vec<u8> {
        let mut classes = [0u64; 4];
        for (state, _) in self.stepper.sets.entries(self.current) {
            if state != crate::network::BOTTOM {
                let first = self.network.first(state);
                classes.iter_mut().zip(first).for_each(|(a, b)| *a |= b);
            }
        }
        (0..=255).filter(|&b| contains(&classes, self.network.alphabet().class(b))).collect()
    }
}

fn too_deep(read: usize) -> Error {
    Error::Limit {
        limit: "stack depth",
        value: 1_000,
        message: format!("after {read} bytes the text is nested deeper than that"),
    }
}
