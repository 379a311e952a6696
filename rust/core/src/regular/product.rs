//! Intersection, union and difference: automata of pairs of states.

use super::Bounds;
use super::alphabet::Joint;
use super::dfa::Dfa;
use super::table::{DEAD, DfaTable};
use crate::error::Result;
use rustc_hash::FxHashMap;

/// Which texts a combination has, by which of both languages has them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Combination {
    Intersection,
    Union,
    Difference,
}

impl Combination {
    fn accepts(self, left: bool, right: bool) -> bool {
        match self {
            Combination::Intersection => left && right,
            Combination::Union => left || right,
            Combination::Difference => left && !right,
        }
    }

    /// Whether a pair of states leads nowhere.
    fn is_dead(self, (left, right): (u32, u32)) -> bool {
        match self {
            Combination::Intersection => left == DEAD || right == DEAD,
            Combination::Union => left == DEAD && right == DEAD,
            Combination::Difference => left == DEAD,
        }
    }
}

impl Dfa {
    /// The texts that are in both languages.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn intersection(&self, other: &Self, bounds: &Bounds<'_>) -> Result<Self> {
        if self == other || self.is_empty() || other.is_universal() {
            return Ok(self.clone());
        }
        if other.is_empty() || self.is_universal() {
            return Ok(other.clone());
        }
        product(self, other, Combination::Intersection, bounds)
    }

    /// The texts that are in one of both languages.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn union(&self, other: &Self, bounds: &Bounds<'_>) -> Result<Self> {
        if self == other || other.is_empty() || self.is_universal() {
            return Ok(self.clone());
        }
        if self.is_empty() || other.is_universal() {
            return Ok(other.clone());
        }
        product(self, other, Combination::Union, bounds)
    }

    /// The texts of this language that are not in the other.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn difference(&self, other: &Self, bounds: &Bounds<'_>) -> Result<Self> {
        if self == other || self.is_empty() || other.is_universal() {
            return Ok(Self::nothing());
        }
        if other.is_empty() {
            return Ok(self.clone());
        }
        if self.is_universal() {
            return Ok(other.complement());
        }
        product(self, other, Combination::Difference, bounds)
    }

    /// Whether no text is in both languages.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn is_disjoint_from(&self, other: &Self, bounds: &Bounds<'_>) -> Result<bool> {
        if self.is_empty() || other.is_empty() {
            return Ok(true);
        }
        if self == other || self.is_universal() || other.is_universal() {
            return Ok(false);
        }
        let mut pairs = Pairs::new(self, other, Combination::Intersection, *bounds)?;
        while let Some(place) = pairs.next() {
            let (p, q) = pairs.order[place];
            if self.is_final(p) && other.is_final(q) {
                return Ok(false);
            }
            pairs.expand(place, &mut Vec::new())?;
        }
        Ok(true)
    }

    /// Whether every text of this language is in the other.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn is_subset_of(&self, other: &Self, bounds: &Bounds<'_>) -> Result<bool> {
        if self == other {
            return Ok(true);
        }
        self.is_disjoint_from(&other.complement(), bounds)
    }
}

fn product(left: &Dfa, right: &Dfa, operation: Combination, bounds: &Bounds<'_>) -> Result<Dfa> {
    let mut pairs = Pairs::new(left, right, operation, *bounds)?;
    let mut table = DfaTable::new(pairs.joint.alphabet.clone());
    let mut row = Vec::new();
    while let Some(place) = pairs.next() {
        let (p, q) = pairs.order[place];
        let is_final = |dfa: &Dfa, q: u32| q != DEAD && dfa.is_final(q);
        let is_final = operation.accepts(is_final(left, p), is_final(right, q));
        let default = pairs.expand(place, &mut row)?;
        table.push_row(is_final, default, row.drain(..));
    }
    table.minimal(bounds)
}

/// The pairs of states that texts reach, in the order in which they are found.
struct Pairs<'a> {
    left: &'a Dfa,
    right: &'a Dfa,
    operation: Combination,
    bounds: Bounds<'a>,
    joint: Joint,
    order: Vec<(u32, u32)>,
    number_of: FxHashMap<(u32, u32), u32>,
    next: usize,
    /// For each class where it leads on both sides, where one names it.
    targets: Vec<(u32, u32)>,
    is_named: Vec<bool>,
    named: Vec<u32>,
}

impl<'a> Pairs<'a> {
    fn new(
        left: &'a Dfa,
        right: &'a Dfa,
        operation: Combination,
        bounds: Bounds<'a>,
    ) -> Result<Self> {
        bounds.budget.spend(left.alphabet().cuts().len() + right.alphabet().cuts().len())?;
        let joint = Joint::new(left.alphabet(), right.alphabet());
        let classes = joint.alphabet.len() as usize;
        let mut number_of = FxHashMap::default();
        number_of.insert((0, 0), 0);
        Ok(Self {
            left,
            right,
            operation,
            bounds,
            joint,
            order: vec![(0, 0)],
            number_of,
            next: 0,
            targets: vec![(DEAD, DEAD); classes],
            is_named: vec![false; classes],
            named: Vec::new(),
        })
    }

    /// The place of the next pair that was not looked at.
    fn next(&mut self) -> Option<usize> {
        let place = self.next;
        self.next += 1;
        (place < self.order.len()).then_some(place)
    }

    /// The edges of a pair: where the rest leads, and into `row` where the named classes do.
    fn expand(&mut self, place: usize, row: &mut Vec<(u32, u32)>) -> Result<u32> {
        let (p, q) = self.order[place];
        let side = |dfa: &'a Dfa, q: u32| match q {
            DEAD => (DEAD, [].as_slice()),
            q => (dfa.default(q), dfa.row(q)),
        };
        let (of_left, left) = side(self.left, p);
        let (of_right, right) = side(self.right, q);
        let rest = (of_left, of_right);
        self.bounds.budget.spend(1 + left.len() + right.len())?;
        for &(class, to) in left {
            let pieces = self.joint.left.of(class);
            self.bounds.budget.spend(pieces.len())?;
            for &piece in pieces {
                self.is_named[piece as usize] = true;
                self.targets[piece as usize] = (to, of_right);
                self.named.push(piece);
            }
        }
        for &(class, to) in right {
            let pieces = self.joint.right.of(class);
            self.bounds.budget.spend(pieces.len())?;
            for &piece in pieces {
                if !std::mem::replace(&mut self.is_named[piece as usize], true) {
                    self.targets[piece as usize].0 = of_left;
                    self.named.push(piece);
                }
                self.targets[piece as usize].1 = to;
            }
        }
        let default = self.number(rest)?;
        for piece in std::mem::take(&mut self.named) {
            self.is_named[piece as usize] = false;
            let to = self.number(self.targets[piece as usize])?;
            row.push((piece, to));
        }
        Ok(default)
    }

    fn number(&mut self, pair: (u32, u32)) -> Result<u32> {
        if self.operation.is_dead(pair) {
            return Ok(DEAD);
        }
        let next = self.order.len() as u32;
        let number = *self.number_of.entry(pair).or_insert(next);
        if number == next {
            self.order.push(pair);
            self.bounds.check(self.order.len())?;
        }
        Ok(number)
    }
}
