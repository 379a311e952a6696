//! Byte-by-byte recognition: is this text, so far, the beginning of a string of the grammar?
//!
//! It keeps the set of all stacks that the network can have, shared and hash-consed, so any
//! context-free grammar is recognized exactly, ambiguity included. It answers the command line's
//! questions; it is not built for speed.

use crate::budget::{Halt, Interrupt};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::network::{Network, contains};
use crate::stacks::{NONE, REST, SetId, Stepper};
use crate::unique::{Arrays, At, too_many_arrays};

/// The state of a recognition.
pub struct Recognizer<'a> {
    network: &'a Network,
    stepper: Stepper<&'a Network>,
    arrays: Arrays,
    current: At,
    read: usize,
    limits: Limits,
    interrupt: Interrupt,
}

/// Work units (see `classes`) that each byte of the text may take, over all bytes so far, besides
/// those of [`Limits::max_total_work`]: few, since what a byte does is remembered.
const WORK_PER_BYTE: u64 = 200;

impl<'a> Recognizer<'a> {
    /// Before the first byte.
    ///
    /// # Errors
    /// Never in practice: [`Error::Limit`] if not even the start fits.
    pub fn new(network: &'a Network, limits: &Limits, interrupt: &Interrupt) -> Result<Self> {
        let mut stepper = Stepper::new(network);
        stepper.sets.max_depth = limits.max_stack_depth;
        stepper.sets.max_bytes = limits.max_automaton_bytes;
        let (limits, interrupt) = (limits.clone(), interrupt.clone());
        let (arrays, current) = (Arrays::default(), At::Plain(NONE));
        let mut out = Self { network, stepper, arrays, current, read: 0, limits, interrupt };
        let start = out.stepper.sets.add(&[(network.start(), REST)]);
        out.current = At::Plain(start.map_err(|halt| out.halted(halt))?);
        Ok(out)
    }

    /// Reads a byte. False: no string of the grammar goes on like this, and nothing has changed.
    ///
    /// # Errors
    /// [`Error::Limit`] when the text is nested too deeply, or is so ambiguous that it takes too
    /// much memory or work; [`Error::Cancelled`] and [`Error::Deadline`] from the interrupt.
    pub fn advance(&mut self, byte: u8) -> Result<bool> {
        let bytes_read = WORK_PER_BYTE.saturating_mul(self.read as u64 + 1);
        let allowance = self.limits.total_work(self.network.len()).saturating_add(bytes_read);
        let meter = &mut self.stepper.sets.meter;
        meter.allow(allowance.saturating_sub(meter.spent()), &self.interrupt);
        let Self { network, stepper, arrays, current, .. } = self;
        let next = match (*current, network.has_unique_items()) {
            (At::Plain(set), false) => stepper
                .step(set, network.alphabet().class(byte))
                .map(|next| (next != NONE).then_some(At::Plain(next))),
            (at, _) => {
                arrays.advance(network, stepper, at, &[byte], &mut |_| Ok(())).map(|next| next.0)
            }
        };
        let Some(next) = next.map_err(|halt| self.halted(halt))? else { return Ok(false) };
        if self.stepper.bytes() + self.arrays.bytes() > self.limits.max_automaton_bytes {
            return Err(self.halted(Halt::Bytes));
        }
        self.current = next;
        self.read += 1;
        Ok(true)
    }

    fn set(&self) -> SetId {
        self.arrays.set(self.current)
    }

    /// Whether the bytes read are a string of the grammar.
    pub fn is_accepting(&self) -> bool {
        if self.read == 0 {
            self.network.accepts_empty()
        } else {
            self.stepper.sets.has_rest(self.set())
        }
    }

    /// The rules of one of the parses, outermost first, and those of all tops.
    pub fn open_rules(&self) -> (Vec<u32>, Vec<u32>) {
        let is_state = |entry: &&(u32, SetId)| entry.0 != crate::network::BOTTOM;
        let mut path = Vec::new();
        let mut set = self.set();
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
    ///
    /// # Errors
    /// Those of [`Self::advance`].
    pub fn expected(&mut self) -> Result<Vec<u8>> {
        let mut classes = [0u64; 4];
        for (state, _) in self.stepper.sets.entries(self.set()) {
            if state != crate::network::BOTTOM {
                let first = self.network.reads_first(state);
                classes.iter_mut().zip(first).for_each(|(a, b)| *a |= b);
            }
        }
        let class = |byte| self.network.alphabet().class(byte);
        let mut out: Vec<u8> = (0..=255).filter(|&b| contains(&classes, class(b))).collect();
        if let At::Array(_) = self.current {
            let mut repeated = Vec::new();
            for &byte in &out {
                let mark = self.arrays.mark();
                let Self { network, stepper, arrays, current, .. } = self;
                let next = arrays.advance(network, stepper, *current, &[byte], &mut |_| Ok(()));
                if next.map_err(|halt| self.halted(halt))?.0.is_none() {
                    repeated.push(byte);
                }
                self.arrays.reset(mark);
            }
            out.retain(|byte| !repeated.contains(byte));
        }
        Ok(out)
    }

    /// The error of a step that was not made.
    fn halted(&self, halt: Halt) -> Error {
        let read = self.read;
        let (limit, value, message) = match halt {
            Halt::Cancelled | Halt::Deadline => {
                return self.interrupt.error(halt).unwrap_or(Error::Cancelled);
            }
            Halt::Arrays => return too_many_arrays(),
            Halt::Work => (
                "max_total_work",
                self.limits.max_total_work,
                format!(
                    "recognition takes more after {read} bytes; make the grammar less ambiguous \
                     or raise the limit"
                ),
            ),
            Halt::Bytes => (
                "max_automaton_bytes",
                self.limits.max_automaton_bytes as u64,
                format!(
                    "recognition holds more after {read} bytes; make the grammar less ambiguous or \
                     raise the limit"
                ),
            ),
            Halt::Sets => (
                "max_set_bytes",
                self.network.most_set_bytes() as u64,
                format!(
                    "the sets of members that the text meets take more after {read} bytes; fix the \
                     order of members or raise the limit"
                ),
            ),
            Halt::Depth => (
                "max_stack_depth",
                u64::from(self.limits.max_stack_depth),
                format!(
                    "after {read} bytes the text is nested deeper than that; raise the limit to \
                     read on"
                ),
            ),
        };
        Error::Limit { limit, value, message }
    }
}
