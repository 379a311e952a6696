//! Sets of scanners, each kept once.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

/// The number of a set.
pub type ScannerSetId = u32;
/// The set without scanners.
pub const EMPTY: ScannerSetId = 0;
/// The set of all scanners.
pub const ALL: ScannerSetId = 1;

/// Interned sets over the scanners of a lexer, and what has been computed of them.
#[derive(Clone, Debug)]
pub(super) struct ScannerSets {
    words: usize,
    sets: Vec<Box<[u64]>>,
    known: HashMap<Box<[u64]>, ScannerSetId, FxBuildHasher>,
    both: HashMap<(ScannerSetId, ScannerSetId), ScannerSetId, FxBuildHasher>,
    less: HashMap<(ScannerSetId, ScannerSetId), ScannerSetId, FxBuildHasher>,
    either: HashMap<(ScannerSetId, ScannerSetId), ScannerSetId, FxBuildHasher>,
}

impl ScannerSets {
    pub(super) fn new(scanners: usize) -> Self {
        let words = scanners.div_ceil(64);
        let mut all = vec![u64::MAX; words].into_boxed_slice();
        if let Some(last) = all.last_mut()
            && !scanners.is_multiple_of(64)
        {
            *last = (1 << (scanners % 64)) - 1;
        }
        let mut sets = Self {
            words,
            sets: Vec::new(),
            known: HashMap::default(),
            both: HashMap::default(),
            less: HashMap::default(),
            either: HashMap::default(),
        };
        sets.intern(vec![0; words].into_boxed_slice());
        sets.intern(all);
        sets
    }

    pub(super) fn intern(&mut self, set: Box<[u64]>) -> ScannerSetId {
        if let Some(&id) = self.known.get(&set) {
            return id;
        }
        let id = self.sets.len() as ScannerSetId;
        self.sets.push(set.clone());
        self.known.insert(set, id);
        id
    }

    pub(super) fn of(&mut self, members: impl Iterator<Item = usize>) -> ScannerSetId {
        let mut set = vec![0u64; self.words].into_boxed_slice();
        for member in members {
            set[member / 64] |= 1 << (member % 64);
        }
        self.intern(set)
    }

    fn combine(
        &mut self,
        a: ScannerSetId,
        b: ScannerSetId,
        f: impl Fn(u64, u64) -> u64,
    ) -> ScannerSetId {
        let (a, b) = (&self.sets[a as usize], &self.sets[b as usize]);
        let set = a.iter().zip(b).map(|(&x, &y)| f(x, y)).collect();
        self.intern(set)
    }

    pub(super) fn and(&mut self, a: ScannerSetId, b: ScannerSetId) -> ScannerSetId {
        match (a, b) {
            (EMPTY, _) | (_, EMPTY) => EMPTY,
            (ALL, x) | (x, ALL) => x,
            (a, b) if a == b => a,
            (a, b) => {
                let key = (a.min(b), a.max(b));
                if let Some(&known) = self.both.get(&key) {
                    return known;
                }
                let made = self.combine(a, b, |x, y| x & y);
                self.both.insert(key, made);
                made
            }
        }
    }

    pub(super) fn minus(&mut self, a: ScannerSetId, b: ScannerSetId) -> ScannerSetId {
        match (a, b) {
            (EMPTY, _) | (_, ALL) => EMPTY,
            (a, EMPTY) => a,
            (a, b) if a == b => EMPTY,
            (a, b) => {
                if let Some(&known) = self.less.get(&(a, b)) {
                    return known;
                }
                let made = self.combine(a, b, |x, y| x & !y);
                self.less.insert((a, b), made);
                made
            }
        }
    }

    pub(super) fn or(&mut self, a: ScannerSetId, b: ScannerSetId) -> ScannerSetId {
        match (a, b) {
            (EMPTY, x) | (x, EMPTY) => x,
            (ALL, _) | (_, ALL) => ALL,
            (a, b) if a == b => a,
            (a, b) => {
                let key = (a.min(b), a.max(b));
                if let Some(&known) = self.either.get(&key) {
                    return known;
                }
                let made = self.combine(a, b, |x, y| x | y);
                self.either.insert(key, made);
                made
            }
        }
    }

    /// The sets, as words of 64 scanners.
    pub(super) fn all(&self) -> &[Box<[u64]>] {
        &self.sets
    }
}
