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
    stepper: Stepper<'a>,
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
        let current = stepper
            .sets
            .add(&[(network.start(), REST)])
            .map_err(|OverBudget| too_deep(0))?;
        Ok(Self { network, stepper, current, read: 0, max_bytes: limits.max_automaton_bytes })
    }

    /// Reads a byte. False: no string of the grammar goes on like this, and nothing has changed.
    ///
    /// # Errors
    /// [`Error::Limit`] when the text is nested too deeply or the stacks take too much memory.
    pub fn advance(&mut self, byte: u8) -> Result<bool> {
        let class = self.network.alphabet().class(byte);
        let next = self
            .stepper
            .step(self.current, class)
            .map_err(|OverBudget| too_deep(self.read))?;
        if next == NONE {
            return Ok(false);
        }
        if self.stepper.bytes() > self.max_bytes {
            return Err(Error::Limit {
                limit: "max_automaton_bytes",
                value: self.max_bytes as u64,
                message: format!("recognition holds more after {} bytes; raise the limit", self.read),
            });
        }
        self.current = next;
        self.read += 1;
        Ok(true)
    }

    /// Whether the bytes read are a string of the grammar.
    pub fn is_accepting(&self) -> bool {
        if self.read == 0 { self.network.accepts_empty() } else { self.stepper.sets.has_rest(self.current) }
    }

    /// The bytes that may come next, ascending.
    pub fn expected(&self) -> Vec<u8> {
        let mut classes = [0u64; 4];
        for &(state, _) in self.stepper.sets.entries(self.current) {
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

// TEMP
/// temp
pub fn sample(network: &Network, vocab: &crate::vocabulary::Vocabulary, ids: &[u32], texts: &[Vec<u8>], seed: u64, walks: usize, len: usize) -> Vec<Vec<(usize, u32)>> {
    let mut st = Stepper::new(network);
    let start = st.sets.add(&[(network.start(), REST)]).ok().unwrap();
    let mut contexts: rustc_hash::FxHashSet<SetId> = Default::default();
    contexts.insert(start);
    let mut x = seed | 1;
    let mut rnd = |n: usize| { x ^= x << 13; x ^= x >> 7; x ^= x << 17; (x >> 11) as usize % n };
    for t in texts { let mut c = start; for &b in t { c = st.step(c, network.alphabet().class(b)).ok().unwrap(); if c == NONE {break;} contexts.insert(c);} }
    for _ in 0..walks {
        let mut c = start;
        if rnd(2)==0 && !texts.is_empty() { let t=&texts[rnd(texts.len())]; let n = rnd(t.len()); for &b in &t[..n] { c = st.step(c, network.alphabet().class(b)).ok().unwrap(); } }
        for _ in 0..len {
            if st.sets.entries(c).iter().all(|e| e.0==crate::network::BOTTOM) {break;}
            // random viable token
            let mut tries = 0;
            let mut n = NONE;
            while n == NONE && tries < 200 {
                tries += 1;
                let id = ids[rnd(ids.len())];
                n = c;
                for &b in vocab.bytes(id) { n = st.step(n, network.alphabet().class(b)).ok().unwrap(); if n == NONE {break;} }
            }
            if n == NONE {break;}
            c = n;
            contexts.insert(c);
        }
    }
    let mut ctx: Vec<SetId> = contexts.into_iter().collect();
    ctx.sort();
    let mut sig: rustc_hash::FxHashMap<SetId,u32> = Default::default();
    let mut sigs: rustc_hash::FxHashMap<Vec<u64>,u32> = Default::default();
    let conts: Vec<u32> = (0..700).map(|_| ids[rnd(ids.len())]).collect();
    if walks > 100_000 { panic!(); }
    ids.iter().map(|&id| {
        let mut v = Vec::new();
        for (k, &c) in ctx.iter().enumerate() {
            let mut n = c;
            for &b in vocab.bytes(id) { n = st.step(n, network.alphabet().class(b)).ok().unwrap(); if n == NONE {break;} }
            if n != NONE {
                let g = match sig.get(&n) { Some(&g) => g, None => {
                    let mut bits = vec![0u64; 700/64+1];
                    if st.sets.has_rest(n) { bits[0] |= 1; }
                    for (i,&t) in conts.iter().enumerate() { let mut m = n; for &b in vocab.bytes(t) { m = st.step(m, network.alphabet().class(b)).ok().unwrap(); if m == NONE {break;} } if m != NONE { bits[(i+1)/64] |= 1u64 << ((i+1)%64); } }
                    let next = sigs.len() as u32;
                    let g = *sigs.entry(bits).or_insert(next);
                    sig.insert(n, g); g } };
                v.push((k, g)); }
        }
        v
    }).collect()
}
