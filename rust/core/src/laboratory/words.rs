//! Shortest texts: of a state of the network, and of a set of stacks.

use crate::network::{Network, contains};
use crate::stacks::{Entry, NONE, REST, SetId, StackSets};
use rustc_hash::FxHashMap;

/// The length of what has no text.
const NEVER: u64 = u64::MAX;
/// Longer texts are not written out.
const MAX_WORD: u64 = 1 << 20;

/// The shortest texts under a network.
pub(super) struct Words<'n> {
    network: &'n Network,
    /// For each state of the tables the length of the shortest text, not empty, that completes it.
    least: Vec<u64>,
    /// The same for whole stacks.
    of_sets: FxHashMap<SetId, u64>,
    /// For each class the byte to show.
    bytes: Vec<Option<u8>>,
}

/// What is still to be written.
enum Task {
    /// A text of the state that is not empty.
    Some(u32),
    /// A text of the state.
    Any(u32),
}

impl<'n> Words<'n> {
    pub(super) fn new(network: &'n Network) -> Self {
        let mut out = Self {
            network,
            least: vec![NEVER; network.len()],
            of_sets: FxHashMap::default(),
            bytes: representatives(network),
        };
        // Lengths only fall, and each pass makes at least one of them final. States of a rule are
        // numbered along its paths or against them: passes go both ways in turn.
        let (mut changed, mut backwards) = (2, false);
        while changed > 0 {
            changed -= 1;
            backwards = !backwards;
            let count = network.len() as u32;
            for step in 0..count {
                let state = if backwards { count - 1 - step } else { step };
                let least = out.options(state).map(|(length, _)| length).min().unwrap_or(NEVER);
                if least < out.least[state as usize] {
                    out.least[state as usize] = least;
                    changed = 2;
                }
            }
        }
        out
    }

    /// What a state of the tables can do first: the length of the shortest text that begins so, and
    /// the class read, or the number of the call.
    fn options(&self, state: u32) -> impl Iterator<Item = (u64, Result<(u8, u32), usize>)> {
        let edges = self.network.edges(state).map(|(class, to)| {
            let readable = self.bytes[class as usize].is_some();
            let length = if readable { self.any(to).saturating_add(1) } else { NEVER };
            (length, Ok((class, to)))
        });
        let calls = self.network.calls(state);
        let calls = (0..calls.len()).map(move |index| {
            let call = self.network.calls(state)[index];
            (self.some(call.start).saturating_add(self.any(call.to)), Err(index))
        });
        edges.chain(calls)
    }

    /// The length of the shortest text of a state that is not empty.
    pub(super) fn some(&self, state: u32) -> u64 {
        match self.least.get(state as usize) {
            Some(&length) => length,
            None => {
                let (body, needed, ..) = self.network.counting(state);
                self.least[body as usize].saturating_mul(u64::from(needed.max(1)))
            }
        }
    }

    /// The length of the shortest text of a state.
    fn any(&self, state: u32) -> u64 {
        if self.network.is_final(state) { 0 } else { self.some(state) }
    }

    fn write(&self, state: u32, word: &mut Vec<u8>) -> Option<()> {
        if self.some(state).saturating_add(word.len() as u64) > MAX_WORD {
            return None;
        }
        let mut tasks = vec![Task::Some(state)];
        while let Some(task) = tasks.pop() {
            let state = match task {
                Task::Any(state) if self.network.is_final(state) => continue,
                Task::Any(state) | Task::Some(state) => state,
            };
            let best = if (state as usize) < self.least.len() {
                self.options(state).min_by_key(|(length, _)| *length)?.1
            } else {
                Err(0) // a counting state does nothing but call
            };
            match best {
                Ok((class, to)) => {
                    word.push(class);
                    tasks.push(Task::Any(to));
                }
                Err(index) => {
                    let call = *self.network.calls(state).get(index)?;
                    tasks.extend([Task::Any(call.to), Task::Some(call.start)]);
                }
            }
        }
        Some(())
    }

    /// The length of the shortest text of a set of stacks.
    pub(super) fn length(&mut self, sets: &StackSets, set: SetId) -> u64 {
        let mut work = vec![set];
        while let Some(&top) = work.last() {
            if top == NONE || top == REST || self.of_sets.contains_key(&top) {
                work.pop();
                continue;
            }
            let missing = work.len();
            let mut best = if sets.has_rest(top) { 0 } else { NEVER };
            for (state, beneath) in stacks_of(sets, top) {
                match self.known(beneath) {
                    Some(length) => best = best.min(self.some(state).saturating_add(length)),
                    None => work.push(beneath),
                }
            }
            if work.len() == missing {
                self.of_sets.insert(top, best);
                work.pop();
            }
        }
        self.known(set).unwrap_or(NEVER)
    }

    fn known(&self, set: SetId) -> Option<u64> {
        match set {
            NONE => Some(NEVER),
            REST => Some(0),
            _ => self.of_sets.get(&set).copied(),
        }
    }

    /// The shortest text of a set of stacks, as classes; `None` where it is too long to write.
    pub(super) fn of_set(&mut self, sets: &StackSets, set: SetId) -> Option<Vec<u8>> {
        let mut word = Vec::new();
        let mut at = set;
        while !sets.has_rest(at) {
            self.length(sets, at);
            let length = |&(state, beneath): &Entry| {
                self.some(state).saturating_add(self.known(beneath).unwrap_or(NEVER))
            };
            let (state, beneath) = stacks_of(sets, at).into_iter().min_by_key(length)?;
            self.write(state, &mut word)?;
            at = beneath;
        }
        Some(word)
    }

    /// Classes as bytes to show.
    pub(super) fn text(&self, word: &[u8]) -> Vec<u8> {
        word.iter().filter_map(|&class| self.bytes[class as usize]).collect()
    }
}

/// The stacks of a set, without the bare rest.
pub(super) fn stacks_of(sets: &StackSets, set: SetId) -> Vec<Entry> {
    let mut entries = sets.entries(set);
    entries.retain(|entry| entry.0 != crate::network::BOTTOM);
    entries
}

/// For each byte class one of its bytes, one that people can read where there is one. The letter
/// that is no byte has none.
fn representatives(network: &Network) -> Vec<Option<u8>> {
    let alphabet = network.alphabet();
    let mut out = vec![None; alphabet.len()];
    let rank = |byte: u8| match byte {
        b'a'..=b'z' => 0,
        b'0'..=b'9' => 1,
        b'A'..=b'Z' => 2,
        b'!'..=b'~' => 3,
        b' ' | b'\n' => 4,
        _ => 5,
    };
    let mut bytes: Vec<u8> = (0..=255).collect();
    bytes.sort_by_key(|&byte| rank(byte));
    for byte in bytes {
        out[alphabet.class(byte) as usize].get_or_insert(byte);
    }
    if let Some(escape) = alphabet.escape() {
        out[escape as usize] = None;
    }
    out
}

/// The classes that any stack of a set can read next.
pub(super) fn next_classes(network: &Network, sets: &StackSets, of: [SetId; 2]) -> Vec<u8> {
    let mut all = [0u64; 4];
    for set in of {
        for (state, _) in stacks_of(sets, set) {
            all.iter_mut().zip(network.first(state)).for_each(|(a, b)| *a |= b);
        }
    }
    (0..network.alphabet().len() as u32)
        .map(|class| class as u8)
        .filter(|&c| contains(&all, c))
        .collect()
}
